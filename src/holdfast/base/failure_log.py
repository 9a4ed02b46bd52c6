"""Log of failures that must not disturb a caller: failed hooks and lost audit records. `doctor` shows it.

Each line has the time, the client, the event, the message and the fix, never text of a note or of a prompt.
"""

from __future__ import annotations

import os

from holdfast.base import dates
from holdfast.base.record import Record, field_names

NAME = "hooks.log"
MAX_BYTES = 64 * 1024
_MAX_CHARS = 400  # of the message and of the fix
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Failure(Record):
    """One logged failure."""

    time: str
    client: str
    event: str
    message: str
    fix: str


def path(home: str, name: str = NAME) -> str:
    """Return the path of a log in the home."""
    return os.path.join(home, "run", name)


def write(home: str, *, client: str, event: str, message: str, fix: str, name: str = NAME) -> None:
    """Append a failure to a log; do nothing if the home is missing, belongs to another user or cannot be written."""
    fields = [dates.now(), client[:60], event[:60], message[:_MAX_CHARS], fix[:_MAX_CHARS]]
    line = "\t".join(["".join([char if char.isprintable() else " " for char in field]) for field in fields])
    try:
        if os.stat(home).st_uid != os.geteuid():
            return
        if not os.path.isdir(os.path.join(home, "run")):
            os.mkdir(os.path.join(home, "run"), 0o700)
        fd = os.open(path(home, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | _FLAGS, 0o600)
        try:
            os.write(fd, line.encode("utf-8", "replace") + b"\n")
            is_full = os.fstat(fd).st_size > MAX_BYTES
        finally:
            os.close(fd)
        if is_full:
            _drop_older_half(home, name)
    except OSError:
        pass  # a failing log must not become another failure


def read(home: str, name: str = NAME) -> list[Failure]:
    """Return the logged failures, oldest first, without damaged lines."""
    try:
        rows = _read_bytes(home, name).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    fields = [row.split("\t") for row in rows]
    return [Failure(*row) for row in fields if len(row) == len(field_names(Failure))]


def _read_bytes(home: str, name: str) -> bytes:
    fd = os.open(path(home, name), os.O_RDONLY | _FLAGS)
    with open(fd, "rb") as file:
        return file.read(4 * MAX_BYTES)


def _drop_older_half(home: str, name: str) -> None:
    data = _read_bytes(home, name)
    newer = data[-(MAX_BYTES // 2) :].partition(b"\n")[2]
    temporary = f"{path(home, name)}.{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
    try:
        os.write(fd, newer)
    finally:
        os.close(fd)
    os.replace(temporary, path(home, name))
