"""Group commit: the items of concurrent callers are written in batches, with one flush or commit for each batch."""

from __future__ import annotations

from copy import copy
from threading import Condition, Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.base import tracing
from holdfast.errors import HoldfastError, Unsure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchQueue(Generic[Item, Result]):
    """A queue with one batch under way at a time.

    A caller that finds no batch under way writes all items that wait, its own first; the other callers sleep until their
    item is written. A single caller therefore writes at once, and under load a batch is what arrived during the previous
    one. `write` returns one result or error for each item, in their order; an error that it raises fails the whole batch.
    """

    def __init__(self, write: Callable[[list[Item]], Sequence[Result | Exception]]) -> None:
        self._write = write
        self._lock = Lock()
        self._writing = False
        self._waiting: list[_Entry[Item, Result]] = []

    def __len__(self) -> int:
        """Return the number of items that wait for the next batch."""
        return len(self._waiting)

    def submit(self, item: Item) -> Result:
        """Write the item, alone or in a batch, and return its result or raise its error."""
        with tracing.span("write_queue.submit"):
            return self._submit(item)

    def _submit(self, item: Item) -> Result:
        entry: _Entry[Item, Result] = _Entry(item, Condition(self._lock))
        with self._lock:
            self._waiting.append(entry)
            try:
                while not entry.done and (self._writing or self._waiting[0] is not entry):
                    entry.changed.wait()
            except BaseException:
                self._withdraw(entry)
                raise
            batch = [] if entry.done else self._take_batch()
        if batch:
            self._write_batch(batch)
        if entry.error is not None:
            raise entry.error
        return entry.result  # type: ignore[return-value]  # set by the thread that wrote the batch

    def _withdraw(self, entry: _Entry[Item, Result]) -> None:
        if not entry.taken:
            self._waiting.remove(entry)
            self._wake_next()

    def _take_batch(self) -> list[_Entry[Item, Result]]:
        batch, self._waiting, self._writing = self._waiting, [], True
        for entry in batch:
            entry.taken = True
        return batch

    def _write_batch(self, batch: list[_Entry[Item, Result]]) -> None:
        outcomes: Sequence[Result | Exception]
        outcomes = [Unsure("the write was interrupted", "Check whether it was stored") for _ in batch]
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

    __slots__ = ("changed", "done", "error", "item", "result", "taken")

    def __init__(self, item: Item, changed: Condition) -> None:
        self.item, self.changed = item, changed
        self.taken = False  # by a batch
        self.done = False
        self.result: Result | None = None
        self.error: Exception | None = None
