"""Read one note, list many, and show the trash."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.errors import UsageError
from holdfast.formats import versions
from holdfast.index.sqlite import note_of_row
from holdfast.models import TYPES, tags_of
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context, Tags, When
    from holdfast.models import Note, TrashedNote, Version

_NO_LIMIT = 10**9


def get_note(context: Context, key: str, *, scope: str | None, as_of: When, known_at: When) -> Note:
    """Return the nearest note of a key, or its version at a time; count the use and bring an archived note back."""
    known = dates.as_of(known_at, "known_at") if known_at is not None else None
    moment = dates.as_of(as_of, "as_of") if as_of is not None else known
    place, parsed, archived = context.find_note(key, scope)
    quarantine = context.config.quarantine
    if moment:
        note = versions.note_at(place, key, parsed, moment, known, quarantine)
    else:
        note = versions.note_of(place, key, parsed, quarantine)
    is_back = context.record_use(place, key, parsed.head.id, archived)
    if archived is None:
        return note
    return note.replace(archived=True, path=note.path if is_back else f"{place.folder}/{archived.part}/{archived.name}")


def note_history(context: Context, key: str, *, scope: str | None) -> list[Version]:
    """Return every version of a note, newest first, and count the use."""
    place, parsed, archived = context.find_note(key, scope)
    context.record_use(place, key, parsed.head.id, archived)
    return versions.versions_of(parsed)


def list_notes(
    context: Context, *, scope: str | None, type: str | None, tags: Tags, limit: int | None, source: str | None, archived: bool
) -> list[Note]:
    """Return the notes that the caller may read, pinned first, then the newest."""
    wanted = validate.choice(type, TYPES, "type") if type else None
    most = validate.limit(limit, _NO_LIMIT) if limit is not None else -1
    if not context.config.enabled:
        return []
    folders = context.visible_folders(scope)
    context.refresh(folders, archived)
    if archived and source is not None:
        raise UsageError("archived notes cannot be listed by source", "Leave out one of archived and source")
    if source is not None:
        from holdfast.verbs import forget_source

        paths = forget_source.paths(context, source, folders)
        rows = context.query(lambda: context.index.notes(folders, wanted, tags_of(tags)))
        return [note for row in rows if (note := note_of_row(row)).path in paths][: limit or len(rows)]
    rows = context.query(lambda: context.index.notes(folders, wanted, tags_of(tags), most=most, archived=archived))
    return [note_of_row(row, archived=archived) for row in rows]


def list_trash(context: Context, *, scope: str | None) -> list[TrashedNote]:
    """Return the notes in the trash of the scopes that the caller may read, newest first."""
    places = context.visible_scopes(scope) if context.config.enabled else []
    return [note for place in places for note in context.store.list_trash(place)]
