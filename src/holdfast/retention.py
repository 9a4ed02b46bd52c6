"""What has not been touched for its scope's time goes to the archive; trash too old to restore is emptied."""

from __future__ import annotations

from holdfast import dates
from holdfast.index.sqlite import note_of_row
from holdfast.note import Note, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.desk import Desk

_NEVER = ("user", "feedback")  # types that do not expire in any scope


def run(desk: Desk, dry_run: bool) -> list[Note]:
    """The notes that are archived, or with `dry_run` would be."""
    folders = tuple(desk.shelf.scopes())
    desk.look(folders)
    expired = [note for folder in folders for note in _expired(desk, Scope.of_folder(folder))]
    if not dry_run:
        for scope in dict.fromkeys([note.scope for note in expired]):
            known = desk.ask(lambda scope=scope: desk.index.stamps(scope.folder, "notes"))  # type: ignore[misc]
            keys = [note.key for note in expired if note.scope == scope]
            desk.bin(scope, keys, "archive", {key: known[f"{key}.md"][0] for key in keys if f"{key}.md" in known})
        _empty_trash(desk, folders, dates.days_before(dates.now(), desk.config.trash_days))
    return expired


def _expired(desk: Desk, scope: Scope) -> list[Note]:
    days = {"project": desk.config.project_days, "session": desk.config.session_days}.get(scope.kind, 0)
    if not days:
        return []
    before = dates.days_before(dates.now(), days)
    rows = desk.ask(lambda: desk.index.notes((scope.folder,), before=before))
    notes = [note_of_row(row) for row in rows]
    return [note for note in notes if note.type not in _NEVER and not note.pinned]


def _empty_trash(desk: Desk, folders: tuple[str, ...], before: str) -> None:
    for folder in folders:
        scope = Scope.of_folder(folder)
        for one in desk.shelf.binned(scope):
            if one.part == "trash" and one.time < before:
                desk.shelf.erase(scope, one.part, one.name)
        when = before.replace("-", "").replace(":", "")
        for roll in desk.shelf.rolls(folder).trashed():
            if roll.name.removesuffix(".jsonl").rpartition("--")[2] < when:
                roll.erase()
