"""Quarantine: what is too little trusted to be told waits until a person has read it, and approves or rejects it (S3)."""

from __future__ import annotations

from holdfast import dates, leaf
from holdfast.desk import nameless_id
from holdfast.errors import Busy, Conflict, NotFound, Refused
from holdfast.index.sqlite import note_of_row
from holdfast.shelf.folder import Changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from holdfast.desk import Desk
    from holdfast.note import Forgotten, Note, Scope

    class Somebody(Protocol):
        """Who asks: a desk, or the memory at it."""

        @property
        def origin(self) -> str: ...

_ATTEMPTS = 100
_HELD = 1


def waiting(desk: Desk, kind: str | None) -> list[Note]:
    """The notes in quarantine that this caller may see, newest first."""
    folders = desk.folders(kind)
    desk.look(folders)
    return [note_of_row(row) for row in desk.ask(lambda: desk.index.notes(folders, only=_HELD))]


def count(desk: Desk) -> int:
    """How many there are."""
    folders = desk.folders(None)
    desk.look(folders)
    return desk.ask(lambda: desk.index.count(folders, only=_HELD))


def must_be_person(who: Somebody, what: str) -> None:
    """Whoever is judged may not be the judge."""
    if who.origin != "user":
        fix = 'A person does it: `holdfast review` in a terminal of their own, or Memory(origin="user")'
        raise Refused(f"only a person may {what}", fix)


def approve(desk: Desk, key: str, kind: str | None, expected: str | None) -> Note:
    """Write into the note itself that a person let this very text pass."""
    must_be_person(desk, "approve a note")
    place = _place(desk, key, kind)
    desk.sync.ready(place.folder)
    on_record = False
    for _ in range(_ATTEMPTS):
        sheet = desk.shelf.read(place, key)
        if sheet is None:
            break
        old = leaf.opened(sheet.data, sheet.modified)
        if expected is not None and old.digest != expected:
            raise Conflict(f"the note {key!r} has changed since you read it", "Read it again, and decide on what it says now")
        if old.trust not in desk.config.quarantine:
            return leaf.note_of(place, key, old, desk.config.quarantine)
        new = leaf.approved(old, dates.now())
        if not on_record:  # before it stands: nothing passes that nobody is known to have let pass
            decided(desk, "approved", place, key, old.head.id)
            on_record = True
        try:
            desk.shelf.write(place, key, new.data, sheet.stamp)
        except Changed:
            continue
        desk.catalogue(lambda: desk.sync.refresh(place.folder, "notes"))
        desk.sync.listing(place)
        return leaf.note_of(place, key, new, desk.config.quarantine)
    else:
        raise Busy(f"the note {key!r} is changed by others all the time", "Try again")
    raise NotFound(f"no note {key!r}", "`holdfast review` lists what waits")


def decided(desk: Desk, action: str, place: Scope, key: str, id: str, **more: str) -> None:
    """Keep that a person decided, and about what."""
    subject = id or nameless_id(place.folder, "notes", f"{key}.md")
    desk.ledger.decide(action, subject, {"scope": str(place), "key": key, **more}, int(dates.clock()))


def reject(
    desk: Desk, key: str, kind: str | None, expected: str | None, forget: Callable[..., Forgotten]
) -> Forgotten:
    """Forget a note that a person read and does not want."""
    must_be_person(desk, "reject a note")
    place = _place(desk, key, kind)
    sheet = desk.shelf.read(place, key)
    if not sheet:
        return forget(key, scope=place.kind, expected=expected)
    there = leaf.opened(sheet.data, sheet.modified)
    if expected in (None, there.digest):
        decided(desk, "rejected", place, key, there.head.id)
    return forget(key, scope=place.kind, expected=there.digest if expected is None else expected)


def _place(desk: Desk, key: str, kind: str | None) -> Scope:
    from holdfast import guard

    places = desk.places_of(guard.key_of_note(key), kind)
    if not places:
        raise NotFound(f"no note {key!r}", "`holdfast review` lists what waits")
    return places[0]
