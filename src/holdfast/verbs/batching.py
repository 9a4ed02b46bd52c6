"""Batched stores of a server: concurrent stores to one scope are written with one flush or commit."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from holdfast.base.batch_queue import BatchQueue
from holdfast.errors import Busy, DiskTrouble, HoldfastError, Unsure
from holdfast.models import Stored
from holdfast.verbs.write import WriteRequest, write_notes

if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.formats.versions import Draft
    from holdfast.models import Scope

_LIMIT = 24  # notes in a batch: as many names as PostgreSQL keeps of the last change of a folder
_GATHER_SECONDS = 0.005  # with 16 clients: batches of about 8 notes instead of 5, few of one note


class _Queue(BatchQueue[WriteRequest, Stored]):
    """The stores to one scope."""


_queues: WeakValueDictionary[tuple[str | None, ...], _Queue] = WeakValueDictionary()  # kept alive by the callers in them
_queues_lock = Lock()


def store(context: Context, scope: Scope, draft: Draft) -> Stored:
    """Store one note in a batch with the other callers that store to this scope at the same time."""
    return queue_of(context, scope).submit(WriteRequest(context, draft.key, draft), draft.key, context.config.lock_seconds)


def queue_of(context: Context, scope: Scope) -> _Queue:
    """Return the queue of a scope, which all callers of this process share."""
    name = (context.config.home, context.config.store, context.config.tenant, scope.folder)
    with _queues_lock:
        queue = _queues.get(name)
        if queue is None:
            queue = _queues[name] = _Queue(partial(_write_batch, scope), _LIMIT, _GATHER_SECONDS)
        return queue


def _write_batch(scope: Scope, batch: list[WriteRequest]) -> list[Stored | Exception]:
    """Write the notes together; if one of them is rejected, write each by itself, so that only that one fails."""
    if len(batch) == 1:
        return [_write_single(scope, batch[0])]
    try:
        return [*write_notes(scope, batch)]
    except (HoldfastError, OSError) as error:
        if isinstance(error, Busy | DiskTrouble | Unsure | OSError) or error.may_be_done:
            raise
        return [_write_single(scope, write) for write in batch]


def _write_single(scope: Scope, write: WriteRequest) -> Stored | Exception:
    try:
        return write_notes(scope, [write])[0]
    except (HoldfastError, OSError) as error:
        return error
