"""Threads for whatever touches files or a database, beside the one that listens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Aside:
    """So many threads at most. What one has begun it does to its end, whoever hangs up meanwhile."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(most, "holdfast")

    async def __call__(self, work: Callable[[], T]) -> T:
        """What came of the work. Who is told to stop waiting stops when it is done."""
        done = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            while not done.done():
                try:
                    await asyncio.wait([done])
                except asyncio.CancelledError:
                    pass  # it is told again
            done.exception()  # nobody is left to hear of it
            raise

    def end(self) -> None:
        """Take on nothing more; what was begun is finished."""
        self._threads.shutdown(wait=False)
