"""Notes that were not updated or used for their scope's time are archived; trash that is too old to restore is emptied."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context import archive
from holdfast.models import Note, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context

_NEVER = ("user", "feedback")  # types that do not expire in any scope


def run(context: Context, dry_run: bool) -> list[Note]:
    """Archive what expired, after archived notes that were used since are back; the notes that are archived, or with `dry_run`
    would be."""
    folders = tuple(context.store.scopes())
    context.refresh(folders, archived=True)
    expired = [note for folder in folders for note in _expired(context, Scope.of_folder(folder))]
    if not dry_run:
        for folder in folders:
            _bring_back(context, Scope.of_folder(folder))
        for scope in dict.fromkeys([note.scope for note in expired]):
            known = context.query(lambda scope=scope: context.index.file_ids(scope.folder, "notes"))  # type: ignore[misc]
            keys = [note.key for note in expired if note.scope == scope]
            context.move_notes(scope, keys, "archive", {key: known[f"{key}.md"] for key in keys if f"{key}.md" in known})
        _empty_trash(context, folders, dates.days_before(dates.now(), context.config.trash_days))
    return expired


def _expired(context: Context, scope: Scope) -> list[Note]:
    most = archive.days(context.config, scope.kind)
    if not most:
        return []
    before = dates.days_before(dates.now(), most)
    found = context.query(lambda: context.index.list_notes((scope.folder,), before=before))
    notes = [note for note in found if note.type not in _NEVER and not note.pinned]
    used = _last_used(context, notes)
    return [note for note in notes if used[note.key] < before]


def _bring_back(context: Context, scope: Scope) -> None:
    """Archived notes that were used since they were archived: those that a recall found."""
    archived = context.query(lambda: context.index.list_notes((scope.folder,), archived=True))
    notes = {note.key: note for note in archived}
    used = _last_used(context, list(notes.values()))
    there = context.store.archived(scope, list(notes))
    for one in [one for key, one in there.items() if used[key] >= one.time]:
        archive.bring_back(context, scope, one)


def _last_used(context: Context, notes: list[Note]) -> dict[str, str]:
    """When each of these notes of one scope was last used, by key; 1970 for never."""
    ids = {note.key: context.usage_id_of(note.scope, note.key, note.id) for note in notes}
    used = context.ledger.last_used(list(ids.values()))
    return {key: dates.timestamp(used.get(id, 0)) for key, id in ids.items()}


def _empty_trash(context: Context, folders: tuple[str, ...], before: str) -> None:
    for folder in folders:
        scope = Scope.of_folder(folder)
        for one in context.store.list_trash(scope):
            if one.part == "trash" and one.time < before:
                context.store.erase(scope, one.part, one.name)
        when = before.replace("-", "").replace(":", "")
        for transcript_file in context.store.transcript_files(folder).trashed():
            if transcript_file.name.removesuffix(".jsonl").rpartition("--")[2] < when:
                transcript_file.erase()
