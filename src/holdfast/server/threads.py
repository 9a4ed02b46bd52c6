"""Worker threads for blocking calls: everything that touches files or a database runs beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.base import tracing

T = TypeVar("T")


class ThreadPool:
    """Run blocking calls in at most `size` threads.

    Pools do not share threads, so that long calls in one pool do not keep those in another waiting.
    """

    def __init__(self, size: int) -> None:
        self._threads = ThreadPoolExecutor(size, "holdfast")

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
