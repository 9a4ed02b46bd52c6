"""What there may be very much of, a page at a time: notes newest first for whoever leafs through them, by name for an export;
their versions, what is in the trash, facts, and receipts of purges."""

from __future__ import annotations

from holdfast.errors import NotFound, UsageError
from holdfast.index.sqlite import note_of_row
from holdfast.models import Fact, Note, Receipt, Scope, Source, TrashedNote, Version, parse_tags
from holdfast.safety import validate
from holdfast.verbs import facts as fact_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from holdfast.api.memory import Memory
    from holdfast.context.caller import Tags

    T = TypeVar("T")

_AT_A_TIME = 200
_HELD = 1  # only what is in quarantine
_FIX = "Begin again without a cursor"


def page(
    memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None, type: str | None = None, tags: Tags = None,
    source: str | None = None, archived: bool = False,
) -> tuple[list[Note], str | None]:
    """As `Memory.list`, but only so many, and the cursor for the next; none at the end."""
    wanted = validate.note_type(type) if type else None
    folders = memory._context.visible_folders(scope) if memory.config.enabled else ()
    last = _last_note(cursor, folders)
    if source is not None:  # what came from it is followed note by note: all of it is known, or none
        every = memory.list(scope=scope, type=type, tags=tags, source=source, archived=archived)
        return _some([one for one in every if last is None or _is_behind(one, last)], limit, _cursor_of)
    return _noted(memory, limit, folders, last, wanted, parse_tags(tags), archived=archived)


def _noted(
    memory: Memory, limit: int, folders: tuple[str, ...], last: Note | None, type: str | None = None,
    tags: tuple[str, ...] = (), only: int | None = None, archived: bool = False,
) -> tuple[list[Note], str | None]:  # fmt: skip
    """A page of the notes of some folders, behind the last of the page before. `only` is the index's."""
    if not memory.config.enabled:
        return [], None
    context = memory._context
    context.refresh(folders, archived)

    def rows() -> list[tuple[object, ...]]:
        if last is None:
            return context.index.notes(folders, type, tags, most=limit + 1, only=only, archived=archived)
        return context.index.notes_after(last, folders, type, tags, limit + 1, only, archived)

    return _some([note_of_row(row, archived) for row in context.query(rows)], limit, _cursor_of)


def waiting(
    memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None, everywhere: bool = False
) -> tuple[list[Note], str | None, int]:
    """As `Memory.review`, but only so many, the cursor for the next, and how many there are in all."""
    from holdfast.verbs import review

    if not memory.config.enabled:
        return [], None, 0
    context = memory._context
    folders = review.everywhere(context, scope) if everywhere else context.visible_folders(scope)
    found, following = _noted(memory, limit, folders, _last_note(cursor, folders), only=_HELD)
    return found, following, context.query(lambda: context.index.count(folders, only=_HELD))


def every(memory: Memory, scope: str | None = None) -> Iterator[Note]:
    """Every note that this caller may see, by scope and by name; no more than a page of them is held at a time."""
    if not memory.config.enabled:
        return
    context = memory._context
    folders = context.visible_folders(scope)
    context.refresh(folders)
    for folder in folders:
        after = ""
        while True:
            rows = context.query(lambda: context.index.notes_by_key(folder, after, _AT_A_TIME))  # noqa: B023
            yield from [note_of_row(row) for row in rows]
            if len(rows) < _AT_A_TIME:
                break
            after = str(rows[-1][1])


def versions(memory: Memory, key: str, limit: int, cursor: str = "", *, scope: str | None) -> tuple[list[Version], str | None]:
    """As `Memory.history`, but only so many. A cursor says how many older ones are left: new ones move nothing."""
    if cursor and not _is_number(cursor):
        raise UsageError("no such cursor", _FIX)
    every = memory.history(key, scope=scope)
    left = min(int(cursor), len(every)) if cursor else len(every)
    return every[len(every) - left :][:limit], str(left - limit) if left > limit else None


def binned(memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None) -> tuple[list[TrashedNote], str | None]:
    """As `Memory.trash`, but only so many."""
    last = _unpacked(cursor, 4) if cursor else None
    places = memory._context.visible_scopes(scope) if memory.config.enabled else []
    folders = [place.folder for place in places]
    if last is not None and places and last[0] not in folders:
        raise UsageError("no such cursor", _FIX)
    found: list[TrashedNote] = []
    for place in places[folders.index(last[0]) if last and places else 0 :]:
        every = sorted(memory._context.store.list_trash(place), key=_age, reverse=True)
        found += [one for one in every if last is None or place.folder != last[0] or _age(one) < tuple(last[1:])]
        if len(found) > limit:
            break
    return _some(found, limit, lambda one: _packed(one.scope.folder, *_age(one)))


def facts(
    memory: Memory, limit: int, cursor: str = "", *, subject: str | None = None, label: str | None = None,
    as_of: object = None, scope: str | None = None, history: bool = False,
) -> tuple[list[Fact], str | None]:  # fmt: skip
    """As `Memory.facts`, but only so many."""
    last = _fact_of(cursor) if cursor else None
    folders = memory._context.visible_folders(scope) if last and memory.config.enabled else ()
    if last and folders and not last.path.startswith(tuple([f"{folder}/" for folder in folders])):
        raise UsageError("this cursor is of another list", _FIX)
    found = fact_lines.facts_of(memory._context, subject, label, as_of, scope, history, last, limit + 1)
    return _some(found, limit, lambda one: _packed(one.subject, one.label, one.valid_from, str(one.line), one.path))


def receipts(memory: Memory, limit: int, cursor: str = "") -> tuple[list[Receipt], str | None]:
    """As `Memory.receipts`, but only so many: a cursor is the id of the last one, and no receipt ever goes."""
    from holdfast.verbs import purge

    try:
        if cursor:
            memory.receipts(cursor)
    except NotFound:
        raise UsageError("no such cursor", _FIX) from None
    return _some(purge.receipts_behind(memory._context, cursor or None, limit + 1), limit, lambda one: one.id)


def _some(found: list[T], limit: int, name: Callable[[T], str]) -> tuple[list[T], str | None]:
    """A page of what was found, and what the next begins behind; one more than a page tells that there is one."""
    return found[:limit], name(found[limit - 1]) if len(found) > limit else None


def _age(one: TrashedNote) -> tuple[str, str, str]:
    """Which came later to the trash is told by its number: the clock may go back."""
    return one.name.rpartition("-")[2], one.time, f"{one.part}/{one.name}"


def _is_behind(note: Note, last: Note) -> bool:
    """Whether a note stands behind another in a list, as the index orders them."""
    here, there = (note.pinned, note.updated, note.id), (last.pinned, last.updated, last.id)
    return here < there or (here == there and (note.scope.folder, note.key) > (last.scope.folder, last.key))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 15


def _cursor_of(note: Note) -> str:
    return _packed(str(int(note.pinned)), note.updated, note.id, note.scope.folder, note.key)


def _note_of(cursor: str) -> Note:
    """As much of the note as its place in the order needs."""
    pinned, updated, id, folder, key = _unpacked(cursor, 5)
    try:
        place = Scope.of_folder(folder)
    except (ValueError, KeyError):
        raise UsageError("no such cursor", _FIX) from None
    return Note(place, key, id, "", "", (), "", updated, Source(), "", None, pinned == "1", "", (0, 0), "", 1)


def _last_note(cursor: str, folders: tuple[str, ...]) -> Note | None:
    """The last one of the page before, which must be of the list that is asked for."""
    last = _note_of(cursor) if cursor else None
    if last and folders and last.scope.folder not in folders:
        raise UsageError("this cursor is of another list", _FIX)
    return last


def _fact_of(cursor: str) -> Fact:
    """As much of the fact as its place in the order needs."""
    subject, label, start, line, path = _unpacked(cursor, 5)
    if not _is_number(line):
        raise UsageError("no such cursor", _FIX)
    return Fact(subject, label, "", start, path=path, line=int(line))


def _packed(*parts: str) -> str:
    """Where a page ended, as a word without meaning to anybody else."""
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode("\n".join(parts).encode()).decode().rstrip("=")


def _unpacked(cursor: str, many: int) -> list[str]:
    from base64 import urlsafe_b64decode

    try:
        told = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode()
    except ValueError:  # also what is not Unicode, which nothing we list is and no index can be asked for
        raise UsageError("no such cursor", _FIX) from None
    parts = told.split("\n")
    if len(parts) != many:
        raise UsageError("no such cursor", _FIX)
    return parts
