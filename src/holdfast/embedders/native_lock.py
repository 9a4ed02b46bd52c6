"""A lock around the native code of models: the program neither ends nor forks while another thread runs native code.

When the program ends, Python unwinds daemon threads that return from native code, and the libraries of models crash on that.
A fork copies the locks of such a library in their present state, and no thread of the child would release them. (numpy's
`unique` does the same where only values are requested; Holdfast does not use it so.) Acquire any other lock around a model
inside this one, so that a fork finds that lock free.
"""

from __future__ import annotations

import atexit
import time
from _thread import RLock, get_ident

from holdfast.base.fork import on_fork
from holdfast.errors import Trouble

_WAIT_SECONDS = 30.0  # how long the end of the program or a fork waits for a model
_POLL_SECONDS = 0.001


class NativeLock:
    """Track the threads that run native code; any number of them may do so at a time, unless one blocks the others."""

    def __init__(self) -> None:
        self._lock = RLock()  # reentrant: the thread that holds it may run native code itself
        self._threads: list[int] = []
        self._closing_thread = 0  # the thread that ends the program; 0 while it runs

    def __enter__(self) -> None:
        current = get_ident()
        if current in self._threads:  # a thread that blocks waits for this one, so do not wait for it
            self._threads.append(current)
            return
        with self._lock:
            if self._closing_thread not in (0, current):  # waiting here for ever would keep locks that a last `close` needs
                raise Trouble("the program is ending", "Call it earlier")
            self._threads.append(current)

    def __exit__(self, *_: object) -> None:
        self._threads.remove(get_ident())

    def close(self) -> None:
        """Wait until other threads have left the native code, and let none in any more."""
        self._closing_thread = get_ident()
        if self._lock.acquire(timeout=_WAIT_SECONDS):
            self._wait_for_others()
            self._lock.release()

    def block(self) -> None:
        """Wait until other threads have left the native code, and let others wait outside."""
        self._lock.acquire(timeout=_WAIT_SECONDS)
        self._wait_for_others()

    def unblock(self) -> None:
        """Let other threads in again."""
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it could not be acquired in time

    def reset(self) -> None:
        """Start again in a child process, which has one thread."""
        self._lock = RLock()
        self._threads = [thread for thread in self._threads if thread == get_ident()]

    def _wait_for_others(self) -> None:
        current, deadline = get_ident(), time.monotonic() + _WAIT_SECONDS
        while set(self._threads) - {current} and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


NATIVE_LOCK = NativeLock()
atexit.register(NATIVE_LOCK.close)
on_fork(before=NATIVE_LOCK.block, parent=NATIVE_LOCK.unblock, child=NATIVE_LOCK.reset)
