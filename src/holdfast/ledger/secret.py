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
            _make(place, os.urandom(_BYTES))
        return _read(place)
    except OSError as error:
        raise from_os(error, f"cannot keep a secret in {place}") from error


def keep(home: str, value: bytes) -> None:
    """One that was made elsewhere, unless there is one here."""
    place = path(home)
    try:
        os.makedirs(home, 0o700, exist_ok=True)
        _make(place, value)
    except OSError as error:
        raise from_os(error, f"cannot keep a secret in {place}") from error


def _make(place: str, value: bytes) -> None:
    """Whole or not at all, and on the disk; where two make one at once, the first one stays."""
    temp = f"{place}.{os.urandom(8).hex()}"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        os.write(fd, value.hex().encode() + b"\n")
        os.fsync(fd)
        os.link(temp, place)
    except FileExistsError:
        pass
    finally:
        os.close(fd)
        os.unlink(temp)
    folder = os.open(os.path.dirname(place), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read(place: str) -> bytes:
    fix = "Put it back from a backup; without it, reviews posted before are known by the ledger alone"
    fd = os.open(place, os.O_RDONLY | _FLAGS)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        kept = file.read(4 * _BYTES).strip()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise Damaged(f"{place} is not the owner's alone, so it is no secret", fix)
    try:
        secret = bytes.fromhex(kept.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != _BYTES:
        raise Damaged(f"{place} holds no secret", fix)
    return secret
