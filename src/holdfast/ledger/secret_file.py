"""Secrets as one line in a file that only its owner can read."""

from __future__ import annotations

import os
import stat

from holdfast.errors import Damaged, from_os

REVIEW_KEY = "review.key"  # the marks of reviews on GitHub are made with it
AUDIT_KEY = "audit.key"  # signs the audit's checkpoint
_KEY_BYTES = 32
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class SecretKeyFile:
    """A key of a home, in a file of its own.

    It is beside the ledger, not in it: a damaged ledger is set aside and replaced by an empty one, and what was signed before
    must still be recognised; and a person who has only the ledger cannot sign."""

    def __init__(self, home: str, name: str, loss: str) -> None:
        self._home, self._loss = home, loss  # what is lost without the key
        self._path = os.path.join(home, name)

    def load(self) -> bytes:
        """Return the key; make one if there is none."""
        try:
            if not os.path.lexists(self._path):
                create_secret(self._path, os.urandom(_KEY_BYTES).hex().encode())
            return self._read()
        except OSError as error:
            raise from_os(error, f"cannot store a secret in {self._path}") from error

    def find(self) -> bytes | None:
        """Return the key, or None if there is none."""
        return self.load() if os.path.lexists(self._path) else None

    def save(self, value: bytes) -> None:
        """Keep a key that was made elsewhere, unless there is one."""
        try:
            os.makedirs(self._home, 0o700, exist_ok=True)
            create_secret(self._path, value.hex().encode())
        except OSError as error:
            raise from_os(error, f"cannot store a secret in {self._path}") from error

    def _read(self) -> bytes:
        fix = f"Put it back from a backup; {self._loss}"
        line = read_secret(self._path, 4 * _KEY_BYTES, fix)
        try:
            key = bytes.fromhex(line.decode("ascii"))
        except ValueError:
            key = b""
        if len(key) != _KEY_BYTES:
            raise Damaged(f"{self._path} does not contain a secret", fix)
        return key


def create_secret(path: str, line: bytes) -> None:
    """Write a secret as one line, completely and fsynced; if another process makes one at the same time, the first stays."""
    temp = f"{path}.{os.urandom(8).hex()}"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        os.write(fd, line + b"\n")
        os.fsync(fd)
        os.link(temp, path)
    except FileExistsError:
        pass
    finally:
        os.close(fd)
        os.unlink(temp)
    sync_folder(os.path.dirname(path))


def read_secret(path: str, most: int, fix: str) -> bytes:
    """Return the line in a file, at most this many bytes; raise Damaged with this fix if others can read the file."""
    fd = os.open(path, os.O_RDONLY | _FLAGS)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        line = file.read(most).strip()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise Damaged(f"{path} can be read by other users, so it is not a secret", fix)
    return line


def sync_folder(path: str) -> None:
    """Flush the names in a folder to disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
