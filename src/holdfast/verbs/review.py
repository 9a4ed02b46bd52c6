"""Quarantine: what is too little trusted to be told waits until a person has read it, and approves or rejects it (S3)."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context.caller import path_usage_id
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

    from holdfast.context.caller import Context
    from holdfast.models import Note

    Forget = Callable[[Context, list[Scope], str, str | None], list[Scope]]

    class Somebody(Protocol):
        """Who asks: a desk, or the memory at it."""

        @property
        def origin(self) -> str: ...


_ATTEMPTS = 100
_HELD = 1


def waiting(context: Context, kind: str | None, of_all: bool = False) -> list[Note]:
    """The notes in quarantine that this caller may see, newest first; those of all there are, if it is a person."""
    folders = everywhere(context, kind) if of_all else context.visible_folders(kind)
    context.refresh(folders)
    return [note_of_row(row) for row in context.query(lambda: context.index.notes(folders, only=_HELD))]


def everywhere(context: Context, kind: str | None = None) -> tuple[str, ...]:
    """The folders of every agent, project and session there is, as far as this caller has a part in such; a person's to ask."""
    must_be_person(context, "look into scopes that are not theirs")
    wanted = (validate.choice(kind, SCOPES, "scope"),) if kind else SCOPES
    kinds = [one for one in wanted if one in context.config.allowed_scopes]
    return tuple([folder for folder in context.store.scopes() if Scope.of_folder(folder).kind in kinds])


def count(context: Context) -> int:
    """How many there are."""
    folders = context.visible_folders(None)
    context.refresh(folders)
    return context.query(lambda: context.index.count(folders, only=_HELD))


def must_be_person(who: Somebody, what: str) -> None:
    """Whoever is judged may not be the judge."""
    if who.origin != "user":
        does = phrase("review as a person", '`holdfast review` in a terminal of their own, or Memory(origin="user")')
        fix = Template("A person does it: ", does)
        raise Refused(f"only a person may {what}", fix)


def approve(context: Context, key: str, where: str | Scope | None, expected: str | None) -> Note:
    """Write into the note itself that a person let this very text pass."""
    must_be_person(context, "approve a note")
    place = _place(context, key, where)
    context.sync.prepare_scope(place.folder)
    on_record = False
    for _ in range(_ATTEMPTS):
        content = context.store.read(place, key)
        if content is None:
            break
        old = versions.parse_note(content.data, content.modified)
        if expected is not None and old.digest != expected:
            raise Conflict(f"the note {key!r} has changed since you read it", "Read it again, and decide on what it says now")
        if old.trust not in context.config.quarantine:
            return versions.to_note(place, key, old, context.config.quarantine)
        new = versions.mark_approved(old, dates.now())
        if not on_record:  # before it stands: nothing passes that nobody is known to have let pass
            decided(context, "approved", place, key, old.header.id)
            on_record = True
        try:
            context.store.write(place, key, new.data, content.stamp)
        except Changed:
            continue
        context.ledger.purges.unreject(_heard_in(context, place, new), new.text)
        context.update_index(lambda: context.sync.refresh_folder(place.folder, "notes"))
        context.sync.listing(place)
        return versions.to_note(place, key, new, context.config.quarantine)
    else:
        raise Busy(f"the note {key!r} is changed by others all the time", "Try again")
    raise NotFound(f"no note {key!r}", Template(command("review"), " lists what waits"))


def _heard_in(context: Context, place: Scope, there: versions.ParsedNote) -> set[str]:
    """The folders whose rejections could hold a note back: those of whoever said it, and of the person who lets it pass."""
    source = there.header.source
    whose = [Scope(kind, id).folder for kind, id in (("agent", source.agent), ("session", source.session)) if id]
    return {place.folder, *whose, *context.visible_folders(None)}


def decided(context: Context, action: str, place: Scope, key: str, id: str, **more: str) -> str:
    """Keep that a person decided, and about what; what the note is known by."""
    subject = id or path_usage_id(place.folder, "notes", f"{key}.md")
    context.ledger.decide(action, subject, {"scope": str(place), "key": key, **more}, int(dates.clock()))
    return subject


def reject(context: Context, key: str, where: str | Scope | None, expected: str | None, forget: Forget) -> list[Scope]:
    """Forget a note that a person read and does not want; the places that had it."""
    must_be_person(context, "reject a note")
    place = _place(context, key, where)
    content = context.store.read(place, key)
    there = versions.parse_note(content.data, content.modified) if content else None
    if there is None or expected not in (None, there.digest):
        return forget(context, [place], key, expected)
    subject = decided(context, "rejected", place, key, there.header.id)
    context.ledger.purges.reject(place.folder, [there.text], subject)
    doubted = put_in_doubt(context, place, "notes", f"{key}.md", there.digest)
    return forget(context, [place], key, (doubted or there).digest)


def put_in_doubt(
    context: Context, place: Scope, part: str, name: str, expected: str | None = None
) -> versions.ParsedNote | None:
    """Write into a note that a person takes away that it is trusted as little as anything that waits: whoever brings it back
    from the trash, it is in quarantine then. Its file after that; None where that is another by now, or gone."""
    held = context.config.quarantine
    for _ in range(_ATTEMPTS):
        content = context.store.read_name(place.folder, part, name)
        there = versions.parse_note(content.data, content.modified) if content else None
        if content is None or there is None or expected not in (None, there.digest):
            return None
        if not held or there.trust in held:
            return there
        new = versions.lower_trust(there, quarantine.least(held))
        try:
            context.store.replace(place, part, name, new.data, content.stamp)
        except Changed:
            continue
        return new
    raise Busy(f"the note {name.removesuffix('.md')!r} is changed by others all the time", "Try again")


def _place(context: Context, key: str, where: str | Scope | None) -> Scope:
    """Where the note is that a person means: among their own, or in the very scope that is named, if there is such a one."""
    validate.existing_key(key)
    if isinstance(where, Scope):
        places = [where] if where.folder in everywhere(context) else []
    else:
        places = context.scopes_holding(key, where)
    if not places:
        raise NotFound(f"no note {key!r}", Template(command("review"), " lists what waits"))
    return places[0]
