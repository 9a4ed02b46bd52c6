"""Many notes at once: each passes the gate, then all of a scope are flushed together. They come from one caller, or
from threads that wait for each other."""

from __future__ import annotations

import gc
import os
from _thread import allocate_lock
from copy import copy
from threading import Condition
from time import monotonic

from holdfast import company, leaf
from holdfast.errors import Busy, DiskTrouble, HoldfastError, Unsure, UsageError
from holdfast.note import Stored
from holdfast.shelf.folder import Changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from holdfast.desk import Desk
    from holdfast.leaf import Draft
    from holdfast.note import Scope

_ATTEMPTS = 1000  # at notes that others keep changing, before we say Busy
_MOST_TOGETHER = 24  # as many names as a folder in PostgreSQL remembers of its last change
_ABREAST = 2  # batches of one scope
_FIELDS = dict.fromkeys(
    ("text", "key", "type", "tags", "valid_from", "valid_to", "pinned", "origin", "expected", "made_from")
)
_SUCH = 'Such as [{"text": "..."}]'
_EXPORTED = ("scope", "id", "created", "updated", "source", "quarantined", "versions", "redacted")  # told by an export only


def store_many(
    desk: Desk, notes: Iterable[Mapping[str, Any]], place: Scope, origin: str | None, redact: bool = False
) -> list[Stored]:
    """The steps of `Memory.store_many`."""
    if not gc.isenabled():
        return _store_all(desk, notes, place, origin, redact)
    _paused.append(True)
    gc.disable()  # nothing here is litter before the end, and to look for some among so many objects takes a fifth of the time
    try:
        return _store_all(desk, notes, place, origin, redact)
    finally:
        _resume()


def _resume() -> None:
    """Look for litter again, if we said not to; in a child too, where whoever was storing many did not come along."""
    if _paused:
        _paused.clear()
        gc.enable()


def _store_all(
    desk: Desk, notes: Iterable[Mapping[str, Any]], place: Scope, origin: str | None, redact: bool
) -> list[Stored]:
    given = gated(desk, notes, origin, redact)
    drafts = {draft.key: draft for draft in given}
    places: dict[Scope, list[Draft]] = {}
    for draft in drafts.values():
        places.setdefault(desk.place_of(place, draft.key), []).append(draft)
    stored = {one.note.key: one for there, some in places.items() for one in _write([desk] * len(some), there, some)}
    return [stored[draft.key] for draft in given]


def gated(desk: Desk, notes: Iterable[Mapping[str, Any]], origin: str | None, redact: bool) -> list[Draft]:
    """Each of them, once all are through the gate."""
    if hasattr(notes, "keys") or not hasattr(notes, "__iter__"):
        raise UsageError(f"notes are a list of mappings, not {type(notes).__name__}", _SUCH)
    drafts: dict[str, Draft] = {}
    given: list[Draft] = []
    for number, note in enumerate(notes, 1):
        draft = _draft(desk, note, number, origin, redact)
        if drafts.setdefault(draft.key, draft) != draft:
            raise UsageError(f"note {number}: the key {draft.key!r} comes twice with different texts", "Give each its own key")
        given.append(draft)
    return given


def _draft(desk: Desk, note: Mapping[str, Any], number: int, origin: str | None, redact: bool) -> Draft:
    """One of many through the gate; an error names which."""
    try:
        if not hasattr(note, "keys"):
            raise UsageError(f"a note is a mapping, not {type(note).__name__}", _SUCH)
        if not note.keys() <= _FIELDS.keys() or "text" not in note:
            note = {name: value for name, value in note.items() if name not in _EXPORTED}
            unknown = [name for name in note if name not in _FIELDS]
            if unknown or "text" not in note:
                what = ", ".join(map(str, unknown)) or "text"
                raise UsageError(f"unknown or missing field: {what}", f"Known: {', '.join(_FIELDS)}")
        return desk.draft(**{"key": None, **note, "origin": note.get("origin") or origin}, redact=redact)
    except HoldfastError as error:
        error.message = f"note {number}: {error.message}"
        raise


def _write(desks: list[Desk], place: Scope, drafts: list[Draft]) -> list[Stored]:
    """Put the next version of many notes of one scope, flushed together. Each is composed at the desk of who says it:
    how far it may be trusted depends on that; the first one's takes all of them to the shelf."""
    desk = desks[0]
    desk.sync.ready(place.folder)
    doubts: dict[str, str] = {}
    for _ in range(_ATTEMPTS):
        sheets = desk.shelf.read_many(place, [draft.key for draft in drafts])
        made = _composed(desks, drafts, [leaf.opened(old.data, old.modified) if old else None for old in sheets], doubts)
        new = [
            (f"{draft.key}.md", page_, old.stamp if old else None)
            for draft, old, (action, page_) in zip(drafts, sheets, made, strict=True)
            if action != "unchanged"
        ]
        says = [(f"{place.folder}/notes/{draft.key}", draft.text) for draft in drafts]
        says += [("", tag) for draft in drafts for tag in draft.tags or ()]
        whose = list(zip(desks, drafts, strict=True))
        if not desk.config.store:  # a store asks once, when nobody else can write
            desk.refuse_purged(says)
        try:
            written_as = [(name, page_.data, seen) for name, page_, seen in new]
            stamps = desk.shelf.write_many(place, written_as, lambda: desk.refuse(says, doubts, whose))  # noqa: B023
        except Changed:
            continue
        except leaf.Rejected as error:
            doubts = error.rejected
            continue
        written = [(name, page_, stamp, seen) for (name, page_, seen), stamp in zip(new, stamps, strict=True)]
        desk.catalogue(lambda: desk.sync.notes(place.folder, written))  # noqa: B023
        desk.sync.listing(place)
        return [
            Stored(action, leaf.note_of(place, draft.key, page_, desk.config.quarantine), draft.redacted)
            for draft, (action, page_) in zip(drafts, made, strict=True)
        ]
    raise Busy("these notes are changed by others all the time", "Try again")


def _composed(
    desks: list[Desk], drafts: list[Draft], olds: list[leaf.Leaf | None], doubts: Mapping[str, str]
) -> list[tuple[str, leaf.Leaf]]:
    """The next version of each note, all of one desk at once."""
    made: dict[int, tuple[str, leaf.Leaf]] = {}
    for desk in dict.fromkeys(desks):
        places = [place for place, one in enumerate(desks) if one is desk]
        some = desk.composed([drafts[place] for place in places], [olds[place] for place in places], doubts)
        made.update(zip(places, some, strict=True))
    return [made[place] for place in range(len(drafts))]


# --- threads that wait for each other --------------------------------------------------------------------------------


def together(desk: Desk, place: Scope, draft: Draft) -> Stored:
    """As `desk.write` for one note. Who comes while others are written to that scope is written with all who wait."""
    one, name = _Waiting(desk, draft), (desk.config.home, desk.config.store, desk.config.tenant, place.folder)
    with _guard:
        queue = _queues.setdefault(name, _Queue())
        queue.users += 1
    try:
        queue.join(one)
        company.wait()
        while batch := queue.next_batch(one):
            try:
                _write_batch(batch, place)
            finally:
                queue.settle(batch)
    finally:
        queue.leave(one)
        with _guard:
            queue.users -= 1
            if not queue.users:
                del _queues[name]
    if one.failure is not None:
        raise one.failure
    assert one.stored is not None
    return one.stored


class _Waiting:
    """A note on its way to the shelf."""

    __slots__ = ("desk", "draft", "failure", "settled", "stored")

    def __init__(self, desk: Desk, draft: Draft) -> None:
        self.desk, self.draft = desk, draft
        self.settled = False
        self.stored: Stored | None = None
        self.failure: BaseException | None = None

    def write_alone(self, place: Scope) -> None:
        try:
            self.stored = self.desk.write(place, self.draft.key, lambda _: self.draft)
        except (HoldfastError, OSError) as error:
            self.failure = error


class _Queue:
    """Who writes to one scope. Two batches may be under way: one is made while the disk is busy with the other."""

    def __init__(self) -> None:
        self.users = 0
        self.moved = Condition()
        self.waiting: list[_Waiting] = []
        self.abreast = 0  # batches under way
        self._keys: set[str] = set()  # of what is under way

    def join(self, one: _Waiting) -> None:
        with self.moved:
            self.waiting.append(one)

    def next_batch(self, one: _Waiting) -> list[_Waiting]:
        """What is to be written next, once it can be; nothing once this one is written. Nobody waits longer than for any other
        writer, but who is being written waits for what comes of it."""
        end = monotonic() + one.desk.config.lock_seconds
        with self.moved:
            while not one.settled:
                if batch := self._taken():
                    return batch
                left = end - monotonic() if one in self.waiting else None
                if left is not None and left <= 0:
                    raise Busy("others write to this scope all the time", "Try again")
                self.moved.wait(left)
        return []

    def leave(self, one: _Waiting) -> None:
        """Who is not here to be told is not written."""
        with self.moved:
            if one in self.waiting:
                self.waiting.remove(one)

    def _taken(self) -> list[_Waiting]:
        """All who wait, in the order they came. Of two with one key the second waits on: it follows upon the first."""
        if self.abreast == _ABREAST:
            return []
        batch: dict[str, _Waiting] = {}
        for one in self.waiting[:_MOST_TOGETHER]:
            if one.draft.key not in self._keys:
                batch.setdefault(one.draft.key, one)
        if batch:
            self.waiting = [one for one in self.waiting if batch.get(one.draft.key) is not one]
            self._keys.update(batch)
            self.abreast += 1
        return list(batch.values())

    def settle(self, batch: list[_Waiting]) -> None:
        """They were written, or each knows why not."""
        with self.moved:
            for one in batch:
                if one.stored is None and one.failure is None:
                    one.failure = Unsure("the write was interrupted", "Look whether it is there")
                one.settled = True
                self._keys.discard(one.draft.key)
            self.abreast -= 1
            self.moved.notify_all()


_paused: list[bool] = []  # while nobody looks for litter, because we said so
os.register_at_fork(after_in_child=_resume)
_guard = allocate_lock()
_queues: dict[tuple[str | None, ...], _Queue] = {}


def _write_batch(batch: list[_Waiting], place: Scope) -> None:
    """Flushed together. Where something speaks against one of them, each is written alone: then it is told who."""
    if len(batch) == 1:
        batch[0].write_alone(place)
        return
    try:
        stored = _write([one.desk for one in batch], place, [one.draft for one in batch])
    except (HoldfastError, OSError) as error:
        common = isinstance(error, Busy | DiskTrouble | Unsure | OSError) or error.may_be_done
        for one in batch:
            if common:
                one.failure = copy(error)
            else:
                one.write_alone(place)
    else:
        for one, kept in zip(batch, stored, strict=True):
            one.stored = kept
