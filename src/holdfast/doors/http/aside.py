"""Worker threads for blocking calls: everything that touches files or a database runs beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import to_thread

T = TypeVar("T")


class ThreadPool:
    """Run blocking calls in the threads that Starlette uses too, at most `size` at a time.

    Each pool has its own limit, so that long calls of one pool do not keep those of another waiting.
    """

    def __init__(self, size: int) -> None:
        self._limiter = anyio.CapacityLimiter(size)

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return the result of `work` or raise its error.

        A thread cannot be stopped: if the caller is cancelled, the work still runs to its end, and only then is the
        cancellation raised. So a request counts as under way, and shutdown waits for it, as long as its thread runs.
        """
        running = asyncio.ensure_future(to_thread.run_sync(work, limiter=self._limiter))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await _finished(running)
            raise


async def _finished(running: asyncio.Future[T]) -> None:
    """Wait for the work and drop its result, however often the caller is cancelled meanwhile."""
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            continue
    if not running.cancelled():
        running.exception()  # mark it as retrieved: nobody is left to hear of it
