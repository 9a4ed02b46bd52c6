"""Whether a process still lives, for who finds what it began and did not end: it holds a lock on a file of its own, which the
kernel lets go of with it."""

from __future__ import annotations

import os
from _thread import allocate_lock

from holdfast.house import Lock
from holdfast.pattern import pattern

_SIGN = pattern(r"alive\+[0-9]+-[0-9a-f]{12}\Z")
_guard = allocate_lock()
_mine: dict[str, tuple[int, str, Lock]] = {}  # by home: the process that made it, the sign, and what holds it


def sign(home: str) -> str:
    """What tells others that this process lives, made when first asked for; what the dead left of theirs is swept. Without a
    home there is none."""
    if not home:
        return ""
    with _guard:
        pid, name, _ = _mine.get(home, (0, "", None))
        if pid == os.getpid():
            return name
        for one in os.listdir(_folder(home)) if os.path.isdir(_folder(home)) else ():
            is_gone(home, one.removesuffix(".lock"))
        name = f"alive+{os.getpid()}-{os.urandom(6).hex()}"
        held = Lock(home, name, 0)
        if not held.acquire(0):
            return ""
        _mine[home] = os.getpid(), name, held
        return name


def is_gone(home: str, name: str) -> bool:
    """Whether the process of that sign has ended. A sign that is not there says nothing."""
    path = os.path.join(_folder(home), f"{name}.lock")
    if not _SIGN.match(name) or not os.path.lexists(path):
        return False
    found = Lock(home, name, 0)
    if not found.acquire(0):
        return False
    try:
        os.unlink(path)
    except OSError:
        pass  # another was faster
    found.release()
    return True


def _folder(home: str) -> str:
    return os.path.join(home, "run", "locks")
