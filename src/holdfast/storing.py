"""Many notes at once: each passes the gate, then all of a scope go to disk with one flush."""

from __future__ import annotations

from holdfast import leaf
from holdfast.errors import Busy, HoldfastError, UsageError
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
_FIELDS = ("text", "key", "type", "tags", "valid_from", "valid_to", "pinned", "origin", "expected", "made_from")
_EXPORTED = ("scope", "id", "created", "updated", "source", "quarantined", "versions", "redacted")  # told by an export only


def store_many(
    desk: Desk, notes: Iterable[Mapping[str, Any]], place: Scope, origin: str | None, redact: bool = False
) -> list[Stored]:
    """The steps of `Memory.store_many`."""
    given = gated(desk, notes, origin, redact)
    drafts = {draft.key: draft for draft in given}
    places: dict[Scope, list[Draft]] = {}
    for draft in drafts.values():
        places.setdefault(desk.place_of(place, draft.key), []).append(draft)
    stored = {one.note.key: one for there, some in places.items() for one in _write(desk, there, some)}
    return [stored[draft.key] for draft in given]


def gated(desk: Desk, notes: Iterable[Mapping[str, Any]], origin: str | None, redact: bool) -> list[Draft]:
    """Each of them, once all are through the gate."""
    drafts: dict[str, Draft] = {}
    given: list[Draft] = []
    for number, note in enumerate(notes, 1):
        draft = _draft(desk, note, number, origin, redact)
        if drafts.setdefault(draft.key, draft) != draft:
            raise UsageError(f"note {number}: the key {draft.key!r} comes twice with different texts")
        given.append(draft)
    return given


def _draft(desk: Desk, note: Mapping[str, Any], number: int, origin: str | None, redact: bool) -> Draft:
    """One of many through the gate; an error names which."""
    try:
        note = {name: value for name, value in note.items() if name not in _EXPORTED}
        unknown = [name for name in note if name not in _FIELDS]
        if unknown or "text" not in note:
            what = ", ".join(map(str, unknown)) or "text"
            raise UsageError(f"unknown or missing field: {what}", f"Known: {', '.join(_FIELDS)}")
        return desk.draft(**{"key": None, **note, "origin": note.get("origin") or origin}, redact=redact)
    except HoldfastError as error:
        error.message = f"note {number}: {error.message}"
        raise


def _write(desk: Desk, place: Scope, drafts: list[Draft]) -> list[Stored]:
    """Put the next version of many notes of one scope, with one flush for all."""
    desk.sync.ready(place.folder)
    for _ in range(_ATTEMPTS):
        sheets = desk.shelf.read_many(place, [draft.key for draft in drafts])
        made = desk.composed(drafts, [leaf.opened(old.data, old.modified) if old else None for old in sheets])
        new = [
            (f"{draft.key}.md", page_, old.stamp if old else None)
            for draft, old, (action, page_) in zip(drafts, sheets, made, strict=True)
            if action != "unchanged"
        ]
        says = [(f"{place.folder}/notes/{draft.key}", draft.text) for draft in drafts]
        says += [("", tag) for draft in drafts for tag in draft.tags or ()]
        desk.refuse_purged(says)
        try:
            written_as = [(name, page_.data, seen) for name, page_, seen in new]
            stamps = desk.shelf.write_many(place, written_as, lambda: desk.refuse_purged(says))  # noqa: B023
        except Changed:
            continue
        written = [(name, page_, stamp, seen) for (name, page_, seen), stamp in zip(new, stamps, strict=True)]
        desk.catalogue(lambda: desk.sync.notes(place.folder, written))  # noqa: B023
        desk.sync.listing(place)
        return [
            Stored(action, leaf.note_of(place, draft.key, page_, desk.config.quarantine), draft.redacted)
            for draft, (action, page_) in zip(drafts, made, strict=True)
        ]
    raise Busy("these notes are changed by others all the time", "Try again")
