"""Retention: archive notes that were not updated or used for a long time, and empty trash that is too old to restore."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.context.usage import note_usage_id
from holdfast.formats.history_file import parse_history_id
from holdfast.formats.versions import parse_note
from holdfast.models import Note, Scope
from holdfast.store import note_history
from holdfast.verbs import archive, review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.models import TrashedNote

_AFTER_ALL = "9999-12-31T23:59:59Z"  # later than any timestamp in the trash
_KEPT_TYPES = ("user", "feedback")  # types of notes that never expire


class Emptied(Record):
    """How many notes and transcripts were erased from the trash."""

    notes: int = 0
    sessions: int = 0


def run(context: Context, dry_run: bool) -> list[Note]:
    """Archive expired notes, after archived notes that were used since are back; return those that are archived.

    With `dry_run`, change nothing and return those that would be archived.
    """
    scopes = [Scope.of_folder(folder) for folder in context.store.list_scopes()]
    context.refresh(tuple([scope.folder for scope in scopes]), archived=True)
    expired = {scope: _find_expired(context, scope) for scope in scopes}
    if not dry_run:
        for scope in scopes:
            _unarchive_used(context, scope)
        for scope, notes in expired.items():
            if notes:
                _archive(context, scope, [note.key for note in notes])
        before = dates.days_before(dates.now(), context.config.trash_days)
        for scope in scopes:
            erase_trash(context, scope, before)
    return [note for notes in expired.values() for note in notes]


def _find_expired(context: Context, scope: Scope) -> list[Note]:
    days = archive.days_until_archived(context.config, scope.kind)
    if not days:
        return []
    before = dates.days_before(dates.now(), days)
    found = context.query(lambda: context.index.list_notes((scope.folder,), before=before))
    notes = [note for note in found if note.type not in _KEPT_TYPES and not note.pinned]
    used = _last_used(context, notes)
    return [note for note in notes if used[note.key] < before]


def _archive(context: Context, scope: Scope, keys: list[str]) -> None:
    """Archive notes, except those that changed since they were indexed."""
    indexed = context.query(lambda: context.index.file_ids(scope.folder, "notes"))
    seen = {key: indexed[f"{key}.md"] for key in keys if f"{key}.md" in indexed}
    archive.move_notes(context, scope, keys, "archive", seen)


def _unarchive_used(context: Context, scope: Scope) -> None:
    """Move archived notes back among the notes that a recall found since they were archived."""
    found = context.query(lambda: context.index.list_notes((scope.folder,), archived=True))
    notes = {note.key: note for note in found}
    used = _last_used(context, list(notes.values()))
    for (_, key), archived in context.store.find_archived([(scope, key) for key in notes]).items():
        if used[key] >= archived.time:
            archive.unarchive_note(context, scope, archived)


def _last_used(context: Context, notes: list[Note]) -> dict[str, str]:
    """Return when each of these notes of one scope was last used, by key; 1970 for never."""
    ids = {note.key: note_usage_id(note.scope, note.key, note.id) for note in notes}
    used = context.ledger.usage.last_used(list(ids.values()))
    return {key: dates.format_timestamp(used.get(id, 0)) for key, id in ids.items()}


def _erase_history(context: Context, scope: Scope, trashed: TrashedNote) -> None:
    """Erase the history files of a note in the trash, unless another note has them too: a person may have copied the note."""
    content = context.store.read_file(scope.folder, trashed.part, trashed.name)
    parsed = parse_note(content.data, content.modified) if content else None
    if parsed is None or parsed.header.older is None:
        return
    id = parse_history_id(parsed.header.older.file).encode()
    for part in ("notes", "archive", "trash"):
        for entry in context.store.entries(scope.folder, part):
            is_other = entry.regular and (part, entry.name) != (trashed.part, trashed.name)
            other = context.store.read_file(scope.folder, part, entry.name) if is_other else None
            if other and id in other.data:
                return
    note_history.erase(context.store, scope, parsed)


def empty_trash(context: Context, scopes: list[Scope], days: int) -> Emptied:
    """Erase what has been in the trash of these scopes for this many days, 0 for all of it; for a person only."""
    review.require_person(context, "empty the trash")
    before = dates.days_before(dates.now(), days) if days else _AFTER_ALL
    erased = [erase_trash(context, scope, before) for scope in scopes]
    return Emptied(sum([one.notes for one in erased]), sum([one.sessions for one in erased]))


def erase_trash(context: Context, scope: Scope, before: str) -> Emptied:
    """Erase the notes and transcripts that were moved to the trash before a timestamp; return how many there were."""
    erased = Emptied()
    for note in context.store.list_trash(scope):
        if note.part == "trash" and note.time < before:
            _erase_history(context, scope, note)
            context.store.erase_file(scope, note.part, note.name)
            erased = erased.replace(notes=erased.notes + 1)
    compact = before.replace("-", "").replace(":", "")  # as the names of trashed transcripts have it
    for transcript_file in context.store.transcripts(scope.folder).list_trashed():
        if transcript_file.name.removesuffix(".jsonl").rpartition("--")[2] < compact:
            transcript_file.erase()
            erased = erased.replace(sessions=erased.sessions + 1)
    return erased
