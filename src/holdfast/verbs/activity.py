"""Activity of the last days: notes written, shown and used, counted by SQL in the index and the ledger."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.models import SCOPES, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.index.results import FoundNote

_DAY = 86400
_LISTED = 8  # notes in each of the two lists
_CANDIDATES = 100  # ids that are looked up for a list: some belong to forgotten notes or to files


class DayActivity(Record):
    """The counts of one day in UTC."""

    day: str
    written: int  # versions of notes recorded on this day
    shown: int  # versions of notes first shown to a session on this day
    used: int  # notes whose last use was on this day


class NoteActivity(Record):
    """A note that was shown or used lately, when last, and how often."""

    scope: Scope
    key: str
    name: str
    type: str | None
    time: str
    count: int  # sessions and versions for a note that was shown, uses for one that was used


class Activity(Record):
    """The activity of the last days, oldest day first."""

    days: tuple[DayActivity, ...]
    shown: tuple[NoteActivity, ...]
    used: tuple[NoteActivity, ...]


def get_activity(context: Context, days: int, everywhere: bool = False) -> Activity:
    """Return the activity of the last days: of the whole home, or of the scopes that the caller may read."""
    today = int(dates.clock()) // _DAY
    first = today - days + 1
    if not context.config.enabled or not context.store.exists():
        return Activity(days=_fill_days(first, today, {}, {}, {}), shown=(), used=())
    folders = context.all_folders() if everywhere else context.visible_folders(None)
    context.refresh(folders, archived=True)
    is_whole = everywhere and set(SCOPES) <= set(context.config.allowed_scopes)
    ids = None if is_whole else context.query(lambda: context.index.list_note_ids(folders))
    usage, since = context.ledger.usage, first * _DAY
    written = context.query(lambda: context.index.count_versions_by_day(folders, dates.format_timestamp(since)))
    return Activity(
        days=_fill_days(first, today, written, usage.count_shown_by_day(since, ids), usage.count_used_by_day(since, ids)),
        shown=_find_notes(context, folders, usage.list_shown_lately(since, ids, _CANDIDATES)),
        used=_find_notes(context, folders, usage.list_used_lately(since, ids, _CANDIDATES)),
    )


def _fill_days(
    first: int, last: int, written: dict[str, int], shown: dict[int, int], used: dict[int, int]
) -> tuple[DayActivity, ...]:
    """Return a record for every day, also for those without activity. Days are numbered from 1970-01-01."""
    names = {day: dates.format_timestamp(day * _DAY)[:10] for day in range(first, last + 1)}
    return tuple(
        [
            DayActivity(day=name, written=written.get(name, 0), shown=shown.get(day, 0), used=used.get(day, 0))
            for day, name in names.items()
        ]
    )


def _find_notes(context: Context, folders: tuple[str, ...], listed: list[tuple[str, int, int]]) -> tuple[NoteActivity, ...]:
    """Return the notes with these ids, in the same order; ids of files and of forgotten notes are left out."""
    ids = [id for id, _, _ in listed]
    found: dict[str, FoundNote] = context.query(lambda: context.index.find_notes_by_id(ids, folders)) if ids else {}
    notes = [(found[id], time, count) for id, time, count in listed if id in found]
    return tuple(
        [
            NoteActivity(
                scope=Scope.of_folder(note.scope), key=note.key, name=note.name, type=note.type,
                time=dates.format_timestamp(time), count=count,
            )
            for note, time, count in notes[:_LISTED]
        ]
    )  # fmt: skip
