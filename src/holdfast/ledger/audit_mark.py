"""Where the audit ended when somebody last wrote it down: one line in a file beside the ledger.

Whoever cuts rows off the end of the audit, or writes all of it anew, must also change this file; and whoever keeps a copy
of the line elsewhere has what no owner of the home can change.
"""

from __future__ import annotations

import os

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import Damaged, from_os

NAME = "audit.head"
_MOST = 4096
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class AuditMark(Record):
    """The number of the last row and its hash."""

    count: int
    hash: str

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"


def path(home: str) -> str:
    return os.path.join(home, NAME)


def parsed(text: str) -> AuditMark | None:
    """`12:ab34...`, or the whole line as `audit verify` prints it."""
    count, _, hash = text.strip().removeprefix("head ").partition(":")
    whole = count.isascii() and count.isdecimal() and len(hash) == 64 and hash.isascii() and hash.isalnum()
    return AuditMark(int(count), hash) if whole else None


def read(home: str) -> AuditMark | None:
    """What the file says; None where there is none."""
    try:
        fd = os.open(path(home), os.O_RDONLY | _FLAGS)
        with open(fd, "rb") as file:
            data = file.read(_MOST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise from_os(error, f"cannot read {path(home)}") from error
    mark = parsed(data.decode("ascii", "replace").partition(" ")[0])
    if mark is None:
        raise Damaged(f"{path(home)} does not say where the audit ends", "Keep it aside: the next decision writes a new one")
    return mark


def write(home: str, mark: AuditMark) -> None:
    """Whole or not at all, and on the disk. One at a time: who writes holds its lock."""
    temp = f"{path(home)}.new"
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
        try:
            os.write(fd, f"{mark} {dates.now()}\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temp, path(home))
    except OSError as error:
        raise from_os(error, f"cannot write {path(home)}") from error
