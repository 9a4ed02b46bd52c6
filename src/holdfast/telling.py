"""Gathers what a briefing may tell: the newest notes of each scope and the overview of its files."""

from __future__ import annotations

from holdfast import briefing, dates
from holdfast.index.sqlite import note_of_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.desk import Desk
    from holdfast.note import Note, Scope


def brief(desk: Desk) -> briefing.Brief:
    """The steps of `Memory.brief`."""
    if not desk.config.enabled:
        return briefing.Brief("", disabled=True)
    config = desk.config
    places = desk.places(None)
    desk.look(tuple([place.folder for place in places]))
    parts = [_part(desk, place, config.brief_entries) for place in places]
    return briefing.compose(
        parts, briefing.Budget(config.brief_entries, config.brief_scope_chars, config.brief_total_chars)
    )


def _part(desk: Desk, place: Scope, entries: int) -> briefing.Part:
    from holdfast.browsing import overview

    now = dates.now()
    rows = desk.ask(lambda: desk.index.notes((place.folder,), most=entries, now=now))
    count = desk.ask(lambda: desk.index.count((place.folder,), now))
    path, text = overview(desk.config.home, place)
    return briefing.Part(place.kind, tuple([_told(note_of_row(row), now) for row in rows]), count, text, path)


def _told(note: Note, now: str) -> briefing.Told:
    """A note's line; one that is only going to be true says from when."""
    date = f"from {note.valid_from[:10]}" if note.valid_from > now else note.updated[:10]
    return briefing.Told(note.scope.kind, note.key, date, note.source.origin, note.text[: briefing.MOST_CHARS])
