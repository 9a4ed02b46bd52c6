"""Threads for whatever touches files or a database, beside the one that listens."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from holdfast import company

try:
    from greenlet import getcurrent, greenlet
except ImportError:  # installed without the extra `server`: everyone has a thread of its own
    greenlet = None

T = TypeVar("T")
_MOST_TOGETHER = 24


class Aside:
    """So many threads at most. What one has begun it does to its end, whoever hangs up meanwhile."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(most, "holdfast")

    async def __call__(self, work: Callable[[], T]) -> T:
        """What came of the work. Who is told to stop waiting stops when it is done."""
        return await _to_its_end(asyncio.get_running_loop().run_in_executor(self._threads, work))

    def end(self) -> None:
        """Take on nothing more; what was begun is finished."""
        self._threads.shutdown(wait=False)


class Table(Aside):
    """A few threads, each of which takes on all who wait and goes from one to the next. Who comes to a step that can be done
    for many at once gives way until all of them have come there, and then it is done once (see `holdfast.company`)."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._most, self._busy = most, 0
        self._calling: asyncio.AbstractEventLoop | None = None  # that is going to call a thread
        self._guard = threading.Lock()
        self._asked: deque[_Guest] = deque()

    async def __call__(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        guest = _Guest(work, loop)
        with self._guard:
            self._asked.append(guest)
            called = self._busy < self._most and self._calling is not loop
            self._calling = loop if called else self._calling
        if called:
            loop.call_soon(self._call)  # when all who come just now are here
        return await _to_its_end(guest.told)

    def _call(self) -> None:
        """As many more threads as it takes for who waits; where there is none to be had, nor one at work, they are told so."""
        with self._guard:
            self._calling = None
            wanted = min(self._most - self._busy, -(-len(self._asked) // _MOST_TOGETHER))
            self._busy += wanted
        for number in range(wanted):
            try:
                self._threads.submit(self._serve)
            except BaseException as error:
                self._go_without(wanted - number, error)
                return

    def _go_without(self, threads: int, error: BaseException) -> None:
        with self._guard:
            self._busy -= threads
            left = [] if self._busy else list(self._asked)
            self._asked = self._asked if self._busy else deque()
        for guest in left:
            guest.failure = error
        _tell(left)

    def _serve(self) -> None:
        """All who wait, until nobody does."""
        while party := self._party():
            try:
                _seat(party)
            except BaseException:
                with self._guard:
                    self._busy -= 1
                raise

    def _party(self) -> list[_Guest]:
        with self._guard:
            party = [self._asked.popleft() for _ in range(min(len(self._asked), _MOST_TOGETHER))]
            self._busy -= not party
        return party


class _Guest:
    """One piece of work, and where to tell what came of it."""

    __slots__ = ("came", "failure", "loop", "told", "work")

    def __init__(self, work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.work, self.loop, self.told = work, loop, loop.create_future()
        self.came: Any = None
        self.failure: BaseException | None = None

    def do(self) -> None:
        try:
            self.came = self.work()
        except StopIteration as error:  # which no future takes
            self.failure = RuntimeError(str(error))
        except BaseException as error:
            self.failure = error

    def tell(self) -> None:
        if self.told.done():
            return
        if self.failure is not None:
            self.told.set_exception(self.failure)
        else:
            self.told.set_result(self.came)


def _seat(party: list[_Guest]) -> None:
    """Work on all of them in turn; each goes on when the others have done what they can before the same step, and is told as
    soon as it is done."""
    if len(party) == 1:
        party[0].do()
        _tell(party)
        return
    here = getcurrent()
    company.begin(here.switch)
    try:
        going = [(greenlet(guest.do, here), guest) for guest in party]
        while going:
            for one, _ in going:
                one.switch()
            _tell([guest for one, guest in going if one.dead])
            going = [(one, guest) for one, guest in going if not one.dead]
    finally:
        company.end()


def _tell(party: list[_Guest]) -> None:
    """All that are done, with one call of their loop."""
    for loop in {guest.loop for guest in party}:
        loop.call_soon_threadsafe(_tell_all, [one for one in party if one.loop is loop])


def _tell_all(party: list[_Guest]) -> None:
    for guest in party:
        guest.tell()


async def _to_its_end(done: asyncio.Future[T]) -> T:
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


def table(most: int, otherwise: Aside) -> Aside:
    """A table, where there is what it takes."""
    return Table(most) if greenlet is not None else otherwise
