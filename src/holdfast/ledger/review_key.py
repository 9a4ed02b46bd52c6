"""A secret of this home, with which the marks of its reviews on GitHub are made: one line in a file beside the ledger.

Beside it, not in it: a damaged ledger is set aside and started anew, and what was posted must be known all the same.
"""

from __future__ import annotations

import os
import stat

from holdfast.errors import Damaged, from_os

NAME = "review.key"
_BYTES = 32
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def path(home: str) -> str:
    return os.path.join(home, NAME)


def of(home: str) -> bytes:
    """The home's secret, made if there is none."""
    place = path(home)
    try:
        if not os.path.lexists(place):
            make(place, os.urandom(_BYTES).hex().encode())
        return _read(place)
    except OSError as error:
        raise from_os(error, f"cannot keep a secret in {place}") from error


def keep(home: str, value: bytes) -> None:
    """One that was made elsewhere, unless there is one here."""
    place = path(home)
    try:
        os.makedirs(home, 0o700, exist_ok=True)
        make(place, value.hex().encode())
    except OSError as error:
        raise from_os(error, f"cannot keep a secret in {place}") from error


def make(place: str, line: bytes) -> None:
    """A secret as one line, whole or not at all, and on the disk; where two make one at once, the first one stays."""
    temp = f"{place}.{os.urandom(8).hex()}"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        os.write(fd, line + b"\n")
        os.fsync(fd)
        os.link(temp, place)
    except FileExistsError:
        pass
    finally:
        os.close(fd)
        os.unlink(temp)
    flush_folder(os.path.dirname(place))


def flush_folder(path: str) -> None:
    """The names in it are on the disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(place: str, most: int, fix: str) -> bytes:
    """The line of a file that only its owner can read, or so much of it."""
    fd = os.open(place, os.O_RDONLY | _FLAGS)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        kept = file.read(most).strip()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise Damaged(f"{place} is not the owner's alone, so it is no secret", fix)
    return kept


def _read(place: str) -> bytes:
    fix = "Put it back from a backup; without it, reviews posted before are known by the ledger alone"
    kept = read(place, 4 * _BYTES, fix)
    try:
        secret = bytes.fromhex(kept.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != _BYTES:
        raise Damaged(f"{place} holds no secret", fix)
    return secret
