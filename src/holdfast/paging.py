"""Notes a page at a time, however many there are: newest first for whoever leafs through them, by name for an export."""

from __future__ import annotations

from holdfast import guard
from holdfast.errors import UsageError
from holdfast.index.sqlite import note_of_row
from holdfast.note import Note, Scope, Source, tags_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.desk import Tags
    from holdfast.memory import Memory

_AT_A_TIME = 200
_HELD = 1  # only what is in quarantine
_FIX = "Begin again without a cursor"


def page(
    memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None, type: str | None = None, tags: Tags = None,
    only: int | None = None,
) -> tuple[list[Note], str | None]:
    """As `Memory.list`, but only so many, and the cursor for the next; none at the end. `only` is the index's."""
    wanted = guard.type_(type) if type else None
    last = _note_of(cursor) if cursor else None
    if not memory.config.enabled:
        return [], None
    desk = memory._desk
    folders = desk.folders(scope)
    desk.look(folders)

    def rows() -> list[tuple[object, ...]]:
        if last is None:
            return desk.index.notes(folders, wanted, tags_of(tags), most=limit + 1, only=only)
        return desk.index.notes_after(last, folders, wanted, tags_of(tags), limit + 1, only)

    found = [note_of_row(row) for row in desk.ask(rows)]
    return found[:limit], _cursor_of(found[limit - 1]) if len(found) > limit else None


def waiting(memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None) -> tuple[list[Note], str | None]:
    """As `Memory.review`, but only so many, and the cursor for the next."""
    return page(memory, limit, cursor, scope=scope, only=_HELD)


def held(memory: Memory, scope: str | None = None) -> int:
    """How many are in quarantine."""
    if not memory.config.enabled:
        return 0
    desk = memory._desk
    folders = desk.folders(scope)
    return desk.ask(lambda: desk.index.count(folders, only=_HELD))


def every(memory: Memory, scope: str | None = None) -> Iterator[Note]:
    """Every note that this caller may see, by scope and by name; no more than a page of them is held at a time."""
    if not memory.config.enabled:
        return
    desk = memory._desk
    folders = desk.folders(scope)
    desk.look(folders)
    for folder in folders:
        after = ""
        while True:
            rows = desk.ask(lambda: desk.index.notes_by_key(folder, after, _AT_A_TIME))  # noqa: B023
            yield from [note_of_row(row) for row in rows]
            if len(rows) < _AT_A_TIME:
                break
            after = str(rows[-1][1])


def _cursor_of(note: Note) -> str:
    """Where a page ended, as a word without meaning to anybody else."""
    from base64 import urlsafe_b64encode

    parts = (str(int(note.pinned)), note.updated, note.id, note.scope.folder, note.key)
    return urlsafe_b64encode("\n".join(parts).encode("utf-8", "surrogateescape")).decode().rstrip("=")


def _note_of(cursor: str) -> Note:
    """As much of the note as its place in the order needs."""
    from base64 import urlsafe_b64decode

    try:
        told = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode("utf-8", "surrogateescape")
        pinned, updated, id, folder, key = told.split("\n")
        place = Scope.of_folder(folder)
    except (ValueError, KeyError):
        raise UsageError("no such cursor", _FIX) from None
    return Note(place, key, id, "", "", (), "", updated, Source(), "", None, pinned == "1", "", (0, 0), "", 1)
