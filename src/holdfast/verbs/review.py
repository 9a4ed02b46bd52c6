"""Quarantine: what is too little trusted to be told waits until a person has read it, and approves or rejects it (S3)."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context.caller import nameless_id
from holdfast.errors import Busy, Conflict, NotFound, Refused, Template, command, phrase
from holdfast.formats import versions
from holdfast.index.sqlite import note_of_row
from holdfast.models import SCOPES, Scope
from holdfast.safety import validate
from holdfast.store.files import Changed
from holdfast.verbs import quarantine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from holdfast.context.caller import Desk
    from holdfast.models import Note

    Forget = Callable[[Desk, list[Scope], str, str | None], list[Scope]]

    class Somebody(Protocol):
        """Who asks: a desk, or the memory at it."""

        @property
        def origin(self) -> str: ...

_ATTEMPTS = 100
_HELD = 1


def waiting(desk: Desk, kind: str | None, of_all: bool = False) -> list[Note]:
    """The notes in quarantine that this caller may see, newest first; those of all there are, if it is a person."""
    folders = everywhere(desk, kind) if of_all else desk.folders(kind)
    desk.look(folders)
    return [note_of_row(row) for row in desk.ask(lambda: desk.index.notes(folders, only=_HELD))]


def everywhere(desk: Desk, kind: str | None = None) -> tuple[str, ...]:
    """The folders of every agent, project and session there is, as far as this caller has a part in such; a person's to ask."""
    must_be_person(desk, "look into scopes that are not theirs")
    wanted = (validate.choice(kind, SCOPES, "scope"),) if kind else SCOPES
    kinds = [one for one in wanted if one in desk.config.sees]
    return tuple([folder for folder in desk.shelf.scopes() if Scope.of_folder(folder).kind in kinds])


def count(desk: Desk) -> int:
    """How many there are."""
    folders = desk.folders(None)
    desk.look(folders)
    return desk.ask(lambda: desk.index.count(folders, only=_HELD))


def must_be_person(who: Somebody, what: str) -> None:
    """Whoever is judged may not be the judge."""
    if who.origin != "user":
        does = phrase("review as a person", '`holdfast review` in a terminal of their own, or Memory(origin="user")')
        fix = Template("A person does it: ", does)
        raise Refused(f"only a person may {what}", fix)


def approve(desk: Desk, key: str, where: str | Scope | None, expected: str | None) -> Note:
    """Write into the note itself that a person let this very text pass."""
    must_be_person(desk, "approve a note")
    place = _place(desk, key, where)
    desk.sync.ready(place.folder)
    on_record = False
    for _ in range(_ATTEMPTS):
        sheet = desk.shelf.read(place, key)
        if sheet is None:
            break
        old = versions.opened(sheet.data, sheet.modified)
        if expected is not None and old.digest != expected:
            raise Conflict(f"the note {key!r} has changed since you read it", "Read it again, and decide on what it says now")
        if old.trust not in desk.config.quarantine:
            return versions.note_of(place, key, old, desk.config.quarantine)
        new = versions.approved(old, dates.now())
        if not on_record:  # before it stands: nothing passes that nobody is known to have let pass
            decided(desk, "approved", place, key, old.head.id)
            on_record = True
        try:
            desk.shelf.write(place, key, new.data, sheet.stamp)
        except Changed:
            continue
        desk.ledger.purges.unreject(_heard_in(desk, place, new), new.text)
        desk.catalogue(lambda: desk.sync.refresh(place.folder, "notes"))
        desk.sync.listing(place)
        return versions.note_of(place, key, new, desk.config.quarantine)
    else:
        raise Busy(f"the note {key!r} is changed by others all the time", "Try again")
    raise NotFound(f"no note {key!r}", Template(command("review"), " lists what waits"))


def _heard_in(desk: Desk, place: Scope, there: versions.Leaf) -> set[str]:
    """The folders whose rejections could hold a note back: those of whoever said it, and of the person who lets it pass."""
    source = there.head.source
    whose = [Scope(kind, id).folder for kind, id in (("agent", source.agent), ("session", source.session)) if id]
    return {place.folder, *whose, *desk.folders(None)}


def decided(desk: Desk, action: str, place: Scope, key: str, id: str, **more: str) -> str:
    """Keep that a person decided, and about what; what the note is known by."""
    subject = id or nameless_id(place.folder, "notes", f"{key}.md")
    desk.ledger.decide(action, subject, {"scope": str(place), "key": key, **more}, int(dates.clock()))
    return subject


def reject(desk: Desk, key: str, where: str | Scope | None, expected: str | None, forget: Forget) -> list[Scope]:
    """Forget a note that a person read and does not want; the places that had it."""
    must_be_person(desk, "reject a note")
    place = _place(desk, key, where)
    sheet = desk.shelf.read(place, key)
    there = versions.opened(sheet.data, sheet.modified) if sheet else None
    if there is None or expected not in (None, there.digest):
        return forget(desk, [place], key, expected)
    subject = decided(desk, "rejected", place, key, there.head.id)
    desk.ledger.purges.reject(place.folder, [there.text], subject)
    doubted = put_in_doubt(desk, place, "notes", f"{key}.md", there.digest)
    return forget(desk, [place], key, (doubted or there).digest)


def put_in_doubt(desk: Desk, place: Scope, part: str, name: str, expected: str | None = None) -> versions.Leaf | None:
    """Write into a note that a person takes away that it is trusted as little as anything that waits: whoever brings it back
    from the trash, it is in quarantine then. Its file after that; None where that is another by now, or gone."""
    held = desk.config.quarantine
    for _ in range(_ATTEMPTS):
        sheet = desk.shelf.read_name(place.folder, part, name)
        there = versions.opened(sheet.data, sheet.modified) if sheet else None
        if sheet is None or there is None or expected not in (None, there.digest):
            return None
        if not held or there.trust in held:
            return there
        new = versions.doubted(there, quarantine.least(held))
        try:
            desk.shelf.replace(place, part, name, new.data, sheet.stamp)
        except Changed:
            continue
        return new
    raise Busy(f"the note {name.removesuffix('.md')!r} is changed by others all the time", "Try again")


def _place(desk: Desk, key: str, where: str | Scope | None) -> Scope:
    """Where the note is that a person means: among their own, or in the very scope that is named, if there is such a one."""
    validate.key_of_note(key)
    if isinstance(where, Scope):
        places = [where] if where.folder in everywhere(desk) else []
    else:
        places = desk.places_of(key, where)
    if not places:
        raise NotFound(f"no note {key!r}", Template(command("review"), " lists what waits"))
    return places[0]
