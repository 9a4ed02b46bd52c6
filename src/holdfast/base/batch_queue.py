"""Group commit: the items of concurrent callers are written in batches, with one flush or commit for each batch."""

from __future__ import annotations

from copy import copy
from threading import Condition, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from holdfast.base import tracing
from holdfast.errors import Busy, HoldfastError, Unsure

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")


_queues: WeakSet[BatchQueue[Any, Any]] = WeakSet()  # of this process
_queues_lock = Lock()


def count_waiting() -> int:
    """Return the number of items that wait for the next batch in all queues of this process."""
    with _queues_lock:
        return sum([len(queue) for queue in _queues])


class BatchQueue(Generic[Item, Result]):
    """A queue with one batch under way at a time.

    A caller that finds no batch under way writes all items that wait, its own first; the other callers sleep until their
    item is written. A single caller therefore writes at once, and under load a batch is what arrived during the previous
    one. `write` returns one result or error for each item, in their order; an error that it raises fails the whole batch.

    Callers that are answered together come back together, a little apart. So that the first of them does not write alone,
    it waits up to `gather_seconds` for as many items as the larger of the last two batches had.
    """

    def __init__(
        self, write: Callable[[list[Item]], Sequence[Result | Exception]], limit: int | None = None, gather_seconds: float = 0
    ) -> None:
        self._write, self._limit, self._gather_seconds = write, limit, gather_seconds
        self._lock = Lock()
        self._writing = False  # or about to
        self._gathering: _Entry[Item, Result] | None = None
        self._sizes = (1, 1)  # of the last two batches
        self._waiting: list[_Entry[Item, Result]] = []
        with _queues_lock:
            _queues.add(self)

    def __len__(self) -> int:
        """Return the number of items that wait for the next batch."""
        return len(self._waiting)

    def submit(self, item: Item, key: Hashable = None, timeout: float | None = None) -> Result:
        """Write the item, alone or in a batch, and return its result or raise its error.

        Two items with the same key are written in different batches, in their order. Raises Busy if no batch has taken the
        item within `timeout` seconds; once a batch has, the caller waits for its result.
        """
        with tracing.span("write_queue.submit"):
            return self._submit(item, key, timeout)

    def _submit(self, item: Item, key: Hashable, timeout: float | None) -> Result:
        entry = _Entry[Item, Result](item, key, Condition(self._lock))
        with self._lock:
            self._waiting.append(entry)
            if self._gathering and len(self._waiting) >= max(self._sizes):
                self._gathering.changed.notify()
            try:
                self._wait_for_turn(entry, timeout)
                if not entry.done:
                    self._gather(entry)
            except BaseException:
                self._withdraw(entry)
                raise
            batch = [] if entry.done else self._take_batch()
        if batch:
            self._write_batch(batch)
        if entry.error is not None:
            raise entry.error
        return entry.result  # type: ignore[return-value]  # set by the thread that wrote the batch

    def _wait_for_turn(self, entry: _Entry[Item, Result], timeout: float | None) -> None:
        """Wait until another caller has written the entry, or until it is first in the queue and no batch is under way."""
        end = None if timeout is None else monotonic() + timeout
        while not entry.done and (self._writing or self._waiting[0] is not entry):
            left = None if end is None or entry.taken else end - monotonic()
            if left is not None and left <= 0:
                raise Busy("others write to this scope all the time", "Try again")
            entry.changed.wait(left)

    def _withdraw(self, entry: _Entry[Item, Result]) -> None:
        if not entry.taken:
            self._waiting.remove(entry)
            self._wake_next()

    def _gather(self, entry: _Entry[Item, Result]) -> None:
        """Wait a moment for as many items as came before."""
        end = monotonic() + self._gather_seconds
        self._writing, self._gathering = True, entry
        try:
            while len(self._waiting) < max(self._sizes) and (left := end - monotonic()) > 0:
                entry.changed.wait(left)
        finally:
            self._writing, self._gathering = False, None

    def _take_batch(self) -> list[_Entry[Item, Result]]:
        batch: list[_Entry[Item, Result]] = []
        keys: set[Hashable] = set()
        for entry in self._waiting[: self._limit]:
            if entry.key is None or entry.key not in keys:
                entry.taken = True
                batch.append(entry)
                keys.add(entry.key)
        self._waiting = [entry for entry in self._waiting if not entry.taken]
        self._writing, self._sizes = True, (self._sizes[1], len(batch))
        return batch

    def _write_batch(self, batch: list[_Entry[Item, Result]]) -> None:
        outcomes: Sequence[Result | Exception]
        outcomes = [Unsure("the write was interrupted", "Look whether it is there") for _ in batch]
        try:
            outcomes = self._write([entry.item for entry in batch])
        except (HoldfastError, OSError) as error:
            outcomes = [error, *[copy(error) for _ in batch[1:]]]
        finally:
            with self._lock:
                self._finish(batch, outcomes)

    def _finish(self, batch: list[_Entry[Item, Result]], outcomes: Sequence[Result | Exception]) -> None:
        self._writing = False
        for entry, outcome in zip(batch, outcomes, strict=True):
            entry.done = True
            if isinstance(outcome, Exception):
                entry.error = outcome
            else:
                entry.result = outcome
            entry.changed.notify()
        self._wake_next()

    def _wake_next(self) -> None:
        if self._waiting and not self._writing:
            self._waiting[0].changed.notify()


class _Entry(Generic[Item, Result]):
    """An item in the queue and its result or error."""

    __slots__ = ("changed", "done", "error", "item", "key", "result", "taken")

    def __init__(self, item: Item, key: Hashable, changed: Condition) -> None:
        self.item, self.key, self.changed = item, key, changed
        self.taken = False  # by a batch
        self.done = False
        self.result: Result | None = None
        self.error: Exception | None = None
