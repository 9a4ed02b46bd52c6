"""Archived notes: how one comes back among the notes or goes to the trash, and why notes are archived."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.errors import HoldfastError
from holdfast.formats.versions import list_versions, mark_restored, parse_note
from holdfast.store.files import Changed
from holdfast.verbs import quarantine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.config import Config
    from holdfast.context.caller import Context
    from holdfast.models import Scope, TrashedNote


def bring_back(context: Context, place: Scope, one: TrashedNote) -> bool:
    """Move an archived note back among the notes under its own key, because it is used; its bytes stay the same. False where
    another note has the key now, where it must not come back, or where it cannot be moved."""
    try:
        content = context.store.read_name(place.folder, one.part, one.name)
        if content is None:
            return False
        there = parse_note(content.data, content.modified)
        quarantine.must_not_restore(context, context.usage_id_of(place, one.key, there.header.id), one.key)
        context.refuse_purged([(f"{place.folder}/notes/{one.key}", version.text) for version in list_versions(there)])
        context.store.restore(place, one, one.key)
        context.update_index(lambda: context.sync.remove_files(place.folder, one.part, [one.name]))
        returned(context, place, one.key)
    except (Changed, HoldfastError, OSError):
        return False
    return True


def returned(context: Context, place: Scope, key: str, touched: bool = False) -> None:
    """Index a note that was moved back among the notes; one that a person restored from the archive counts as `touched`."""
    context.sync.prepare_scope(place.folder)
    content = context.store.read(place, key)
    try:
        if content:
            there, stamp = parse_note(content.data, content.modified), content.stamp
            if touched:
                there = mark_restored(there, dates.now())
                stamp = context.store.write(place, key, there.data, stamp)
            context.update_index(lambda: context.sync.index_notes(place.folder, [(f"{key}.md", there, stamp, None)]))
    except Changed:
        pass  # another process updated it meanwhile, and indexed that
    context.sync.listing(place)


def discard(context: Context, place: Scope, key: str | None = None) -> int:
    """Move the archived notes of a scope to the trash, oldest first, or only those of a key; how many keys had one."""
    if not context.store.has(place.folder, "archive"):
        return 0
    archived = [one for one in reversed(context.store.list_trash(place, key)) if one.part == "archive"]
    moved = [one for one in archived if context.store.trash_archived(place, one, dates.clock())]
    if moved:
        context.update_index(lambda: context.sync.remove_files(place.folder, "archive", [one.name for one in moved]))
    return len({one.key for one in moved})


def days(config: Config, kind: str) -> int:
    """After how many days without update or use a note of this kind of scope is archived; 0 is never."""
    return {"project": config.project_days, "session": config.session_days}.get(kind, 0)


def reasons(kinds: Iterable[str], config: Config, verb: str = "archived") -> list[str]:
    """How many notes are archived and why, a line for each kind of scope; `kinds` has one entry for each note."""
    every = list(kinds)
    return [_reason(every.count(kind), kind, days(config, kind), verb) for kind in dict.fromkeys(every)]


def _reason(count: int, kind: str, days: int, verb: str) -> str:
    long = f"{days} days" if days else "a long time"
    return f"{count:,} note{'s' * (count != 1)} {verb}: not updated or used for {long} ({kind})"
