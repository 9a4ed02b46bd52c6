"""Worker threads for blocking calls: everything that touches files or a database runs beside the event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

from holdfast.base import tracing

T = TypeVar("T")


_STUCK_SECONDS = 0.25


class ThreadPool:
    """Run blocking calls in at most `size` threads.

    Pools do not share threads, so that long calls in one pool do not keep those in another waiting.

    At most `at_once` brief calls run at the same time, because Python threads that compute only take the interpreter from each
    other: 16 concurrent keyword recalls took 1.7 times as long in 16 threads as in two. A thread that has ended a brief call
    takes the next one that waits, without a turn of the event loop in between. If no call has ended for a quarter of a second,
    those that run wait for a disk, a lock or a database, and a further one starts.

    A thread cannot be stopped: if a caller is cancelled, its call still runs to its end, and only then is the cancellation
    raised. So a request counts as under way, and shutdown waits for it, as long as its thread runs. (anyio's threads do not do
    that: a server that shuts down cancels tasks, and they would leave their thread behind.)
    """

    def __init__(self, size: int, at_once: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(size, "holdfast")
        self._at_once = at_once
        self._lock = Lock()
        self._waiting: deque[_Call] = deque()  # brief calls
        self._takers = 0  # threads that run brief calls until none waits
        self._ended_at = 0.0  # when the last brief call ended, or one more was started because they were stuck
        self._timer: asyncio.TimerHandle | None = None  # while brief calls wait

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return the result of `work` or raise its error."""
        call = _Call(work)
        self._threads.submit(call.run)
        try:
            await call.future
        except asyncio.CancelledError:
            await call.wait_until_done()
            raise
        return call.result()  # type: ignore[no-any-return]  # that of `work`

    async def run_briefly(self, work: Callable[[], T]) -> T:
        """Return the result of `work` like a plain call, but run at most `at_once` of these at the same time."""
        if self._at_once is None:
            return await self(work)
        call = _Call(work)
        with self._lock:
            self._waiting.append(call)
            if self._takers < self._at_once:
                self._threads.submit(self._run_waiting)
                self._takers += 1
            elif self._timer is None:
                self._timer = call.loop.call_later(_STUCK_SECONDS, self._start_if_stuck, call.loop)
        try:
            await call.future
        except asyncio.CancelledError:
            with self._lock, suppress(ValueError):
                self._waiting.remove(call)
                raise  # it has not begun
            await call.wait_until_done()
            raise
        return call.result()  # type: ignore[no-any-return]

    def count_waiting(self) -> int:
        """Return the number of brief calls that wait."""
        return len(self._waiting)

    def _run_waiting(self) -> None:
        """Run the brief calls that wait, one after the other, until there is none."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._takers -= 1
                    return
                call = self._waiting.popleft()
            call.run()
            self._ended_at = time.monotonic()

    def _start_if_stuck(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the first call that waits if none has ended for long, and look again while calls wait."""
        with self._lock:
            left = self._ended_at + _STUCK_SECONDS - time.monotonic()
            if left <= 0 and self._waiting:
                self._threads.submit(self._waiting.popleft().run)
                self._ended_at, left = time.monotonic(), _STUCK_SECONDS
            self._timer = loop.call_later(left, self._start_if_stuck, loop) if self._waiting else None

    def close(self) -> None:
        """Accept no more work; finish what was begun."""
        self._threads.shutdown(wait=False)


class _Call:
    """A call of the event loop that a thread runs."""

    __slots__ = ("_error", "_is_done", "_value", "_work", "future", "loop")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()  # done when the call has ended
        self._work = tracing.bind(work)
        self._is_done = False
        self._value: Any = None
        self._error: Exception | None = RuntimeError("the thread was stopped before the call ended")

    def run(self) -> None:
        """Run the call, in a thread."""
        try:
            self._value, self._error = self._work(), None
        except Exception as error:
            self._error = error
        finally:
            with suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        self._is_done = True
        if not self.future.done():  # a caller that was cancelled has cancelled it
            self.future.set_result(None)

    def result(self) -> Any:
        """Return the result of the call or raise its error, once."""
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error  # its traceback has this frame: no cycle for the garbage collector

    async def wait_until_done(self) -> None:
        """Wait for the call and drop its result, however often the caller is cancelled meanwhile."""
        while not self._is_done:
            self.future = self.loop.create_future()
            with suppress(asyncio.CancelledError):
                await self.future
