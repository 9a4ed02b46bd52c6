"""Whether a process still lives, for who finds what it began and did not end: it holds a lock on a file of its own, which the
kernel lets go of with it."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from holdfast.base.lazy_re import pattern
from holdfast.home import Lock

_SIGN = pattern(r"alive\+[0-9]+-[0-9a-f]{12}\Z")
_HOUR = 3600  # after which nobody asks for the dead any more
_guard = allocate_lock()
_mine: dict[str, tuple[str, Lock]] = {}  # by home: the sign, and what holds it


def sign(home: str) -> str:
    """What tells others that this process lives, made when first asked for. Without a home there is none."""
    if not home:
        return ""
    with _guard:
        if home in _mine and os.path.lexists(_path(home, _mine[home][0])):
            return _mine[home][0]
        _sweep(home)
        name = f"alive+{os.getpid()}-{os.urandom(6).hex()}"
        held = Lock(home, name, 0)
        if not held.acquire(0):
            return ""
        _mine[home] = name, held
        return name


def is_gone(home: str, name: str) -> bool:
    """Whether the process of that sign has ended. A sign that is not there says nothing."""
    if not _SIGN.match(name) or not os.path.lexists(_path(home, name)):
        return False
    found = Lock(home, name, 0)
    if not found.acquire(0):
        return False
    found.release()
    return True


def _sweep(home: str) -> None:
    """Take the signs of those away who ended long ago."""
    try:
        names = [one.removesuffix(".lock") for one in os.listdir(os.path.dirname(_path(home, "")))]
        for name in names:
            old = _SIGN.match(name) and os.lstat(_path(home, name)).st_mtime < time.time() - _HOUR
            if old and is_gone(home, name):
                os.unlink(_path(home, name))
    except OSError:
        pass  # there are none yet, or another is at it too


def _path(home: str, name: str) -> str:
    return os.path.join(home, "run", "locks", f"{name}.lock")


def _in_the_child() -> None:
    """A child has a life of its own, and its parent's ends with the parent."""
    global _guard
    _guard = allocate_lock()
    for _, held in _mine.values():
        held.close_in_child()
    _mine.clear()


os.register_at_fork(after_in_child=_in_the_child)
