"""Check the history files of notes: versions that are missing, and files that no note has."""

from __future__ import annotations

from holdfast.formats.history_file import belongs_to
from holdfast.formats.versions import parse_note
from holdfast.models import Problem
from holdfast.store import note_history
from holdfast.verbs.doctor.fixes import fixes_for, hide_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.context.caller import Context
    from holdfast.formats.versions import ParsedNote

_MAX_LISTED = 50


def problems(context: Context, scopes: tuple[str, ...]) -> list[Problem]:
    """Return the notes whose older versions are missing, and the history files that belong to no note."""
    found = [problem for scope in scopes for problem in _check_scope(context, scope)]
    return found[:_MAX_LISTED]


def _check_scope(context: Context, scope: str) -> Iterator[Problem]:
    unclaimed = {entry.name for entry in context.store.entries(scope, note_history.PART)}
    for path, note in _read_notes(context, scope, all_notes=bool(unclaimed)):
        if note.header.older:
            unclaimed -= set(note_history.list_files(context.store, scope, note))
            missing = note_history.find_missing(context.store, scope, note)
            if missing:
                what = f"{hide_secrets(path)}: {missing} of its {note.past_count} older versions are missing"
                fix = f"Put {scope}/history/{note.header.older.file} and the files before it back from a backup"
                yield Problem("history", what, fix, hide_secrets(path))
        else:
            unclaimed -= {name for name in unclaimed if belongs_to(name, note.header.id)}
    for name in sorted(unclaimed):
        path = f"{scope}/{note_history.PART}/{name}"
        if context.config.store:
            fix = "Restore the note from a backup, or delete this row of holdfast.document"
        else:
            fix = fixes_for(context.config).move_away(context.store.display_path(path))
        yield Problem("history", f"{hide_secrets(path)} belongs to no note", fix, hide_secrets(path))


def _read_notes(context: Context, scope: str, *, all_notes: bool) -> Iterator[tuple[str, ParsedNote]]:
    """Yield each note of a scope with its path, with those in trash and archive; without `all_notes` those with history."""
    for part in ("notes", "archive", "trash"):
        for entry in context.store.entries(scope, part):
            content = context.store.read_file(scope, part, entry.name) if entry.regular else None
            if content and entry.name.endswith(".md") and (all_notes or b"\nolder:" in content.data):
                yield f"{scope}/{part}/{entry.name}", parse_note(content.data, content.modified)
