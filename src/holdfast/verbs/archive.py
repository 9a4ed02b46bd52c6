"""Archived notes: how a note gets into the archive, back among the notes, or from the archive to the trash."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context.sync import WrittenNote
from holdfast.context.usage import note_usage_id
from holdfast.errors import HoldfastError
from holdfast.formats.versions import mark_restored, parse_note
from holdfast.store import note_history
from holdfast.store.interface import Changed
from holdfast.verbs import quarantine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.base.ids import FileId
    from holdfast.config import Config
    from holdfast.context.caller import Context
    from holdfast.models import Scope, TrashedNote
    from holdfast.store.interface import NoteKey


def move_notes(context: Context, scope: Scope, keys: list[str], part: str, seen: dict[str, FileId] | None = None) -> list[str]:
    """Move notes to the trash or the archive (`part`), and out of the index; return the keys that were moved.

    With `seen`, a note whose file was replaced since the caller read it stays.
    """
    if part == "trash":
        quarantine.refuse_forget(context, scope, keys)
    context.sync.prepare_scope(scope.folder)
    moved = context.store.move_notes(scope, keys, part, dates.clock(), seen)
    context.update_index(lambda: context.sync.remove_files(scope.folder, "notes", [f"{key}.md" for key in keys]))
    if part == "archive" and moved:
        context.update_index(lambda: context.sync.refresh_folder(scope.folder, part))
    context.sync.write_listing(scope)
    return moved


def unarchive(context: Context, wanted: list[NoteKey]) -> bool:
    """Move the archived notes of these keys back among the notes, with their history; return whether any was moved."""
    found = context.store.find_archived(wanted)
    moved = [note for (scope, _), note in found.items() if unarchive_note(context, scope, note)]
    return bool(moved)


def unarchive_note(context: Context, scope: Scope, archived: TrashedNote) -> bool:
    """Move an archived note back among the notes under its own key, because it is used; its bytes stay the same.

    Return False if another note has the key, if the note may not be restored, or if it cannot be moved.
    """
    try:
        content = context.store.read_file(scope.folder, archived.part, archived.name)
        if content is None:
            return False
        note = parse_note(content.data, content.modified)
        quarantine.refuse_restore(context, note_usage_id(scope, archived.key, note.header.id), archived.key)
        path = f"{scope.folder}/notes/{archived.key}"
        if context.purge_filter.any_purged():
            every = note_history.list_versions(context.store, scope.folder, note)
            context.purge_filter.refuse_purged([(path, version.text) for version in every])
        context.store.restore_note(scope, archived, archived.key)
        context.update_index(lambda: context.sync.remove_files(scope.folder, archived.part, [archived.name]))
        index_restored(context, scope, archived.key)
    except (Changed, HoldfastError, OSError):
        return False
    return True


def index_restored(context: Context, scope: Scope, key: str, from_archive: bool = False) -> None:
    """Index a note that was moved back among the notes.

    A note that a person restored `from_archive` is written with the time, or retention would archive it again at once.
    """
    context.sync.prepare_scope(scope.folder)
    content = context.store.read_note(scope, key)
    try:
        if content:
            note, file_id = parse_note(content.data, content.modified), content.file_id
            if from_archive:
                note = mark_restored(note, dates.now())
                file_id = context.store.write_note(scope, key, note.data, file_id)
            written = WrittenNote(scope=scope, name=f"{key}.md", note=note, file_id=file_id, replaced=None)
            context.update_index(lambda: context.sync.index_notes([written]))
    except Changed:
        pass  # another process updated the note meanwhile, and indexed it
    context.sync.write_listing(scope)


def trash_archived(context: Context, scope: Scope, key: str | None = None) -> int:
    """Move the archived notes of a scope, or only those of a key, to the trash; return how many keys had one."""
    if not context.store.has_folder(scope.folder, "archive"):
        return 0
    archived = [note for note in reversed(context.store.list_trash(scope, key)) if note.part == "archive"]
    moved = [note for note in archived if context.store.trash_archived(scope, note, dates.clock())]  # oldest first
    if moved:
        context.update_index(lambda: context.sync.remove_files(scope.folder, "archive", [note.name for note in moved]))
    return len({note.key for note in moved})


def days_until_archived(config: Config, kind: str) -> int:
    """Return after how many days without update or use a note of this kind of scope is archived; 0 is never."""
    return {"project": config.project_days, "session": config.session_days}.get(kind, 0)


def describe_archived(kinds: Iterable[str], config: Config, verb: str = "archived") -> list[str]:
    """Say how many notes are archived and why, a line per kind of scope; `kinds` has one entry per note."""
    every = list(kinds)
    return [_describe(every.count(kind), kind, days_until_archived(config, kind), verb) for kind in dict.fromkeys(every)]


def _describe(count: int, kind: str, days: int, verb: str) -> str:
    duration = f"{days} days" if days else "a long time"
    return f"{count:,} note{'s' * (count != 1)} {verb}: not updated or used for {duration} ({kind})"
