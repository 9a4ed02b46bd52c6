"""Worker threads for blocking calls: everything that touches files or a database runs beside the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.base import tracing

T = TypeVar("T")


_STUCK_SECONDS = 0.25


class ThreadPool:
    """Run blocking calls in at most `size` threads.

    Pools do not share threads, so that long calls in one pool do not keep those in another waiting.

    At most `at_once` calls run at the same time, because Python threads that compute only take the interpreter from each
    other: 16 concurrent keyword recalls took 1.7 times as long in 16 threads as in two. If no call has ended for a quarter of
    a second, those that run wait for a disk, a lock or a database, and a further one starts.
    """

    def __init__(self, size: int, at_once: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(size, "holdfast")
        self._running = asyncio.Semaphore(at_once) if at_once else None
        self._ended_at = 0.0  # when the last of these calls ended, or one more was started because they were stuck

    async def run_briefly(self, work: Callable[[], T]) -> T:
        """Return the result of `work` like a plain call, but run at most `at_once` of these at the same time."""
        if self._running is None:
            return await self(work)
        held = await self._running.acquire() if not self._running.locked() else await self._wait_for_turn(self._running)
        try:
            return await self(work)
        finally:
            self._ended_at = time.monotonic()
            if held:
                self._running.release()

    async def _wait_for_turn(self, running: asyncio.Semaphore) -> bool:
        """Return True when a running call has ended and this one takes its place, False if all of them are stuck."""
        turn = asyncio.ensure_future(running.acquire())
        try:
            while not (await asyncio.wait([turn], timeout=_STUCK_SECONDS))[0]:
                if time.monotonic() - self._ended_at >= _STUCK_SECONDS:
                    self._ended_at = time.monotonic()
                    turn.cancel()
                    return False
        except asyncio.CancelledError:
            if not turn.cancel():  # it was this one's turn just now
                running.release()
            raise
        return True

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return the result of `work` or raise its error.

        A thread cannot be stopped: if the caller is cancelled, the work still runs to its end, and only then is the
        cancellation raised. So a request counts as under way, and shutdown waits for it, as long as its thread runs.
        (anyio's threads do not do that: a server that shuts down cancels tasks, and they would leave their thread behind.)
        """
        running = asyncio.get_running_loop().run_in_executor(self._threads, tracing.bind(work))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await _wait_until_done(running)
            raise

    def close(self) -> None:
        """Accept no more work; finish what was begun."""
        self._threads.shutdown(wait=False)


async def _wait_until_done(running: asyncio.Future[T]) -> None:
    """Wait for the work and drop its result, however often the caller is cancelled meanwhile."""
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            continue
    running.exception()  # mark it as retrieved: no caller waits for it any more
