"""index.md of a large scope waits for the end of a burst: then it is made by a thread, one for all memories of a process, by
whoever closes the memory, or as the process ends."""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import RLock, allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STEP = 0.25  # seconds after which the thread looks whether something else is due


class Late:
    """The folders of one memory whose index.md is to be made soon."""

    def __init__(self, make: Callable[[str], object]) -> None:
        self._make = make  # which fails nobody
        self._due: dict[str, float] = {}
        self._lock = RLock()  # who closes waits for who is at it, unless that is a handler of signals that does so too

    def __contains__(self, folder: str) -> bool:
        """Whether it is going to be made; what is overdue is anybody's to make, should there be no thread."""
        return time.monotonic() < self._due.get(folder, 0.0)

    def add(self, folder: str, seconds: float) -> None:
        """Make it in so many seconds."""
        self._due[folder] = time.monotonic() + seconds
        _wait_for(self)

    def first(self) -> float:
        """When the next one is due; 0 where there is none."""
        return min(list(self._due.values()), default=0.0)

    def finish(self, until: float | None = None) -> None:
        """Make those that are due, or all."""
        with self._lock:
            for folder, when in list(self._due.items()):
                if until is None or when <= until:
                    self._due.pop(folder, None)  # before it is made: what changes meanwhile is late again
                    self._make(folder)


class _Waiting:
    """The memories that have something to be made, and whether a thread waits for it."""

    def __init__(self) -> None:
        self.memories: set[Late] = set()
        self.thread = False
        self.lock = allocate_lock()
        self._last = False  # whether what is left when the process ends is made

    def to_the_end(self) -> None:
        """A child of multiprocessing ends without what atexit knows of, but not without this."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None and not self._last:
            self._last = True
            util.Finalize(None, finish, exitpriority=0)


_waiting = _Waiting()


def _wait_for(late: Late) -> None:
    with _waiting.lock:
        _waiting.memories.add(late)
        _waiting.to_the_end()
        if _waiting.thread:
            return
        _waiting.thread = True
    try:
        start_new_thread(_work, ())
    except RuntimeError:  # no more threads are to be had: it is made when the memory is closed, or by a call when it is overdue
        _waiting.thread = False


def _work() -> None:
    try:
        while seconds := _rest():
            time.sleep(seconds)
            finish(time.monotonic())
    except BaseException:
        _waiting.thread = False
        raise


def _rest() -> float:
    """For how long to wait; 0 where there is nothing to wait for, and then the thread ends."""
    with _waiting.lock:
        _waiting.memories = {late for late in _waiting.memories if late.first()}
        _waiting.thread = bool(_waiting.memories)
        if not _waiting.memories:
            return 0.0
        first = min(late.first() for late in _waiting.memories)
        return max(0.001, min(first - time.monotonic(), _STEP))


def finish(until: float | None = None) -> None:
    """Make what is due, or all, in every memory of this process."""
    for late in list(_waiting.memories):
        late.finish(until)


def _in_the_child() -> None:
    _waiting.__init__()  # type: ignore[misc]


atexit.register(finish)
os.register_at_fork(after_in_child=_in_the_child)
