"""Tell whether another process is still running: each holds a lock on a file of its own, which the kernel releases with it."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from holdfast.base.fork import on_fork
from holdfast.base.lazy_re import pattern
from holdfast.home import Lock

_NAME = pattern(r"alive\+[0-9]+-[0-9a-f]{12}\Z")
_HOUR = 3600  # after which the file of an ended process is removed
_names_lock = allocate_lock()
_names: dict[str, tuple[str, Lock]] = {}  # by home: the name of this process, and the lock on its file


def process_name(home: str) -> str:
    """Return the name by which other processes see that this one is running; "" without a home."""
    if not home:
        return ""
    with _names_lock:
        if home in _names and os.path.lexists(_path(home, _names[home][0])):
            return _names[home][0]
        _remove_old(home)
        name = f"alive+{os.getpid()}-{os.urandom(6).hex()}"
        lock = Lock(home, name, 0)
        if not lock.acquire(0):
            return ""
        _names[home] = name, lock
        return name


def has_ended(home: str, name: str) -> bool:
    """Return whether the process of that name has certainly ended; False if its file is missing."""
    if not _NAME.match(name) or not os.path.lexists(_path(home, name)):
        return False
    lock = Lock(home, name, 0)
    if not lock.acquire(0):
        return False
    lock.release()
    return True


def _remove_old(home: str) -> None:
    """Remove the files of processes that ended long ago."""
    try:
        names = [file.removesuffix(".lock") for file in os.listdir(os.path.dirname(_path(home, "")))]
        for name in names:
            is_old = _NAME.match(name) and os.lstat(_path(home, name)).st_mtime < time.time() - _HOUR
            if is_old and has_ended(home, name):
                os.unlink(_path(home, name))
    except OSError:
        pass  # there are none yet, or another process removes them too


def _path(home: str, name: str) -> str:
    return os.path.join(home, "run", "locks", f"{name}.lock")


def _after_fork() -> None:
    """Let a child process have a name of its own: its parent's ends with the parent."""
    global _names_lock
    _names_lock = allocate_lock()
    for _, lock in _names.values():
        lock.close_in_child()
    _names.clear()


on_fork(child=_after_fork)
