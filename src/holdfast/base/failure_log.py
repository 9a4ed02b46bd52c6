"""What went wrong in hooks, for `doctor` to show: a hook itself never bothers the agent with it (B6).

One line each: when, which client, which event, what, and what to do. Never a word of a note or of a prompt.
"""

from __future__ import annotations

import os

from holdfast import home as home_folder
from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import HoldfastError

NAME = "hooks.log"
MOST_BYTES = 64 * 1024
_MOST = 400  # characters of what happened, and of what to do
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Mishap(Record):
    """One failure of a hook."""

    time: str
    client: str
    event: str
    message: str
    fix: str


def path(home: str, name: str = NAME) -> str:
    return os.path.join(home, "run", name)


def write(home: str, client: str, event: str, message: str, fix: str, name: str = NAME) -> None:
    """One more line. Where the home is not there, is somebody else's or cannot be written, nothing."""
    fields = [dates.now(), client[:60], event[:60], message[:_MOST], fix[:_MOST]]
    line = "\t".join(["".join([sign if sign.isprintable() else " " for sign in field]) for field in fields])
    data = line.encode("utf-8", "replace") + b"\n"
    try:
        home_folder.must_be_ours(home)
        if not os.path.isdir(os.path.join(home, "run")):
            os.mkdir(os.path.join(home, "run"), 0o700)
        fd = os.open(path(home, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | _FLAGS, 0o600)
        try:
            os.write(fd, data)
            full = os.fstat(fd).st_size > MOST_BYTES
        finally:
            os.close(fd)
        if full:
            _shorten(home, name)
    except (OSError, HoldfastError):
        pass  # a log that cannot be kept hinders nobody


def read(home: str, name: str = NAME) -> list[Mishap]:
    """What is in the log, oldest first; lines that somebody broke are left out."""
    try:
        rows = _bytes(home, name).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    fields = [row.split("\t") for row in rows]
    return [Mishap(*row) for row in fields if len(row) == len(Mishap._fields)]


def _bytes(home: str, name: str) -> bytes:
    fd = os.open(path(home, name), os.O_RDONLY | _FLAGS)
    with open(fd, "rb") as file:
        return file.read(4 * MOST_BYTES)


def _shorten(home: str, name: str) -> None:
    """Keep the newer half."""
    data = _bytes(home, name)
    newer = data[-(MOST_BYTES // 2) :].partition(b"\n")[2]
    temp = f"{path(home, name)}.{os.getpid()}"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
    try:
        os.write(fd, newer)
    finally:
        os.close(fd)
    os.replace(temp, path(home, name))
