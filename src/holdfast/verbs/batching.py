"""Group commit of a server's stores: a few threads write what all callers wait for, with one flush or commit for each batch."""

from __future__ import annotations

import logging
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from threading import Lock
from typing import TYPE_CHECKING

from holdfast.errors import Busy, DiskTrouble, HoldfastError, Unsure, from_os
from holdfast.verbs.write import WriteRequest, write_notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.context.caller import Context
    from holdfast.models import Scope, Stored

_BATCH = 64  # notes that are written together at most
_MAX_WAITING = 2000
_log = logging.getLogger("holdfast.writes")


class WriteQueue:
    """The stores of one home or tenant that wait to be written.

    A batch is what arrived while the previous one was written: a single caller is written at once, and under load many share
    a flush. The notes of a batch may be of several scopes and callers; two notes with the same key and scope are written in
    different batches, in their order. index.md of a note that is written alone is written before its caller is answered; for
    the others the server calls `write_listings` once a second.

    Each of the `contexts` has a store and an index for one writing thread. Several of them write batches at the same time,
    never for the same scope or agent: on PostgreSQL one batch waits for its commit while the other is prepared.
    """

    def __init__(self, *contexts: Context) -> None:
        self._context = contexts[0]
        self._idle = list(contexts)  # of writers that have nothing to write
        self._contexts = contexts
        self._writer = ThreadPoolExecutor(len(contexts), "holdfast-writer")
        self._lock = Lock()
        self._waiting: list[tuple[WriteRequest, Future[Stored]]] = []
        self._under_way: Counter[Scope | str] = Counter()  # scopes and agents of the batches that are being written
        self._is_closed = False
        self._unlisted: set[Scope] = set()  # scopes whose index.md lacks notes

    def __len__(self) -> int:
        """Return the number of notes that wait."""
        return len(self._waiting)

    def submit(self, request: WriteRequest) -> Future[Stored]:
        """Queue a note and return the future result of its store; raise `Busy` if too many wait."""
        future: Future[Stored] = Future()
        with self._lock:
            if not self._is_closed:
                if len(self._waiting) >= _MAX_WAITING:
                    raise Busy(f"{_MAX_WAITING:,} stores are waiting already", "Try again")
                self._waiting.append((request, future))
                if self._idle:
                    self._writer.submit(self._write_all, self._idle[-1])
                    self._idle.pop()
                return future
        future.set_result(write_notes([request])[0])  # the settings changed while this caller prepared its note
        return future

    def write_listings(self) -> None:
        """Write index.md of the scopes whose notes were written since, without waiting for it."""
        with self._lock:
            if self._unlisted and not self._is_closed:
                self._writer.submit(self._write_listings)

    def close(self) -> None:
        """Write what waits, then close the store and the index."""
        with self._lock:  # a store that is queued before this is written, and none is queued after it
            if not self._is_closed:
                self._writer.submit(self._write_listings)
            self._is_closed = True
        self._writer.shutdown()
        for context in self._contexts:
            context.close()

    def _write_all(self, context: Context) -> None:
        while batch := self._take_batch(context):
            results = self._write([request for request, _ in batch], context)
            self._end_batch(batch)
            if len(batch) == len(self._unlisted) == 1 and not self._waiting:
                self._write_listings()
            for (_, future), result in zip(batch, results, strict=True):
                if isinstance(result, BaseException):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def _write_listings(self) -> None:
        """Write index.md of the scopes that changed, in the writing thread."""
        try:
            while self._unlisted:
                self._context.sync.write_listing(self._unlisted.pop())
        except Exception as error:  # noqa: BLE001  # the notes are stored, and their callers must learn it
            _log.warning("index.md was not written: %s", type(error).__name__)

    def _take_batch(self, context: Context) -> list[tuple[WriteRequest, Future[Stored]]]:
        """Return the notes that one writer may write now; if there are none, it is idle."""
        with self._lock:
            batch: list[tuple[WriteRequest, Future[Stored]]] = []
            later, paths = [], set[str]()
            waiting: set[Scope | str] = set()
            for entry in self._waiting:
                owners = _owners(entry[0])
                is_free = not any(owner in self._under_way or owner in waiting for owner in owners)
                if len(batch) < _BATCH and entry[0].path not in paths and is_free:
                    batch.append(entry)
                else:
                    later.append(entry)
                    if not is_free:
                        waiting.update(owners)  # so that the notes of an agent stay in their order
                paths.add(entry[0].path)
            self._waiting = later
            self._under_way.update([owner for request, _ in batch for owner in _owners(request)])
            if not batch:
                self._idle.append(context)
            return batch

    def _end_batch(self, batch: list[tuple[WriteRequest, Future[Stored]]]) -> None:
        """Let other writers write for the scopes and agents of a batch."""
        with self._lock:
            for request, _ in batch:
                for owner in _owners(request):
                    self._under_way[owner] -= 1
                    if not self._under_way[owner]:
                        del self._under_way[owner]

    def _write(self, batch: list[WriteRequest], context: Context) -> Sequence[Stored | BaseException]:
        """Write the notes together; if that fails for one note or scope, write them in parts, so that only that one fails."""
        try:
            own = [request.replace(context=request.context.with_backend(context.backend)) for request in batch]
            return write_notes(own, context=context, unlisted=self._unlisted)
        except OSError as error:
            return [from_os(error) for _ in batch]
        except Exception as error:  # noqa: BLE001  # the end of the thread: whatever it is, the callers must learn it
            parts = _split(batch, error)
            if len(parts) == 1:
                return [error, *[copy(error) for _ in batch[1:]]]
        results = {
            request.path: result for part in parts for request, result in zip(part, self._write(part, context), strict=True)
        }
        return [results[request.path] for request in batch]


def _owners(request: WriteRequest) -> tuple[Scope | str, ...]:
    """Return the scope and the agent of a note: only one writer at a time writes for them, so that quotas are exact."""
    agent = request.context.agent
    return (request.scope, agent) if agent else (request.scope,)


def _split(batch: list[WriteRequest], error: Exception) -> list[list[WriteRequest]]:
    """Return the parts of a batch to try again after an error; one part if that would not help."""
    if not isinstance(error, HoldfastError) or isinstance(error, DiskTrouble | Unsure) or error.may_be_done:
        return [batch]
    if not isinstance(error, Busy):  # halves, so that one note that is refused costs the others few flushes
        middle = len(batch) // 2
        return [batch[:middle], batch[middle:]] if middle else [batch]
    by_scope: dict[Scope, list[WriteRequest]] = {}  # another process may hold the lock of one scope
    for request in batch:
        by_scope.setdefault(request.scope, []).append(request)
    return list(by_scope.values())
