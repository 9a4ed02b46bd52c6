"""index.md of a large scope: the lines of notes that changed are put into the file that is there, instead of making all anew.

What was made last is remembered with the folder: which file it was, so that nobody else's is amended, how many lines, and
the newest passage then. Whatever changes a note gives it a newer one; a note that went leaves a line too many, and then those
of all notes that are still there stay.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.index.sqlite import Index
    from holdfast.leaf import Stamp
    from holdfast.note import Scope
    from holdfast.shelf.folder import Shelf

    Line = Callable[[Any], str]  # of one note
    Plain = Callable[[str], str]  # a key as it is shown

_MOST_PASSAGES = 50_000  # looked through for those of the scope
_MOST_LINES = 5_000  # changed: from there on it is not cheaper
_HEAD = 3  # lines before the first note's
_UNLIKE = "- "  # what is never amended
_FORMAT = 1  # of a line: another number, and all are made anew


def made_of(keys: list[str], stamp: Stamp | None, newest: int, plain: Plain) -> str:
    """What to remember of an index.md with these notes: it can be amended if each stands there under its own key."""
    return _told(stamp, len(keys), newest) if stamp is not None and _as_they_are(keys, plain) else _UNLIKE


def _as_they_are(keys: list[str], plain: Plain) -> bool:
    """Whether each is shown as it is, and its end can be told."""
    names = " ".join(keys)
    return not ("[" in names or "]" in names or "\n" in names) and plain(names) == names


def amend(shelf: Shelf, index: Index, place: Scope, made: str, which: int, line: Line, plain: Plain) -> str:
    """Put the lines that changed into index.md, as this catalogue has them. What to remember of it; nothing where it must be
    made anew."""
    stamp, lines, since = _read(made)
    newest = index.newest()
    if stamp is None or newest - since > _MOST_PASSAGES:
        return ""
    count = index.listing_count(place.folder)
    rows = index.listing_since(place.folder, since, _MOST_LINES)
    data = shelf.read_listing(place, stamp) if len(rows) < _MOST_LINES else None
    if data is None or not _is_whole(data, lines) or not _as_they_are([row[0] for row in rows], plain):
        return ""
    parts, more = _amended(data, [(row[0], line(row)) for row in rows])
    if lines + more > count:
        parts = _of_notes(parts, index.listing_keys(place.folder))
        more = len(parts) - lines
    if lines + more != count:
        return ""
    head = data[: data.index(b"\n") + 1] + f"# {place}: {count} note{'s' * (count != 1)}\n\n".encode("utf-8", "replace")
    index.must_be(which)
    written = shelf.write_listing(place, b"".join([head, *parts]))
    return _told(written, count, newest) if written else ""


def _is_whole(data: bytes, lines: int) -> bool:
    """Whether these are our bytes: the file is not flushed, and after a power cut it may hold others than were written."""
    return data.startswith(b"<!--") and data.endswith(b"\n") and data.count(b"\n") == lines + _HEAD and b"\0" not in data


def _amended(data: bytes, changed: list[tuple[str, str]]) -> tuple[list[bytes | memoryview], int]:
    """The same lines with these in their places, all in the order of their keys; and how many there are more than before."""
    view, done, more = memoryview(data), data.index(b"\n\n") + 2, 0
    parts: list[bytes | memoryview] = []
    for key, line in changed:
        name = key.encode("utf-8", "replace")
        place = _place(data, name, done)
        parts += [view[done:place], line.encode("utf-8", "replace")]
        known = _key(data, place) == name
        done = data.index(b"\n", place) + 1 if known else place
        more += not known
    return [*parts, view[done:]], more


def _of_notes(parts: list[bytes | memoryview], keys: list[str]) -> list[bytes | memoryview]:
    """One line each, without those of notes that are gone."""
    names = {key.encode("utf-8", "replace") for key in keys}
    return [line + b"\n" for line in b"".join(parts).split(b"\n")[:-1] if _key(line, 0) in names]


def _place(data: bytes, name: bytes, low: int) -> int:
    """Where the line of the first note begins that has this key or a later one."""
    high = len(data)
    while low < high:
        start = data.rfind(b"\n", low, (low + high) // 2) + 1 or low
        if _key(data, start) < name:
            low = data.index(b"\n", start) + 1
        else:
            high = start
    return low


def _key(data: bytes, start: int) -> bytes:
    """Of the note that a line is about: - [key](notes/key.md) ..."""
    return data[start + 3 : data.find(b"]", start)]


def _told(stamp: Stamp, lines: int, newest: int) -> str:
    return f"{_FORMAT} {stamp[0]} {stamp[1]} {stamp[2]} {lines} {newest} "


def _read(made: str) -> tuple[Stamp | None, int, int]:
    try:
        form, ino, ctime, size, lines, newest = map(int, made.split()[:6])
    except ValueError:
        return None, 0, 0
    return (ino, ctime, size) if form == _FORMAT else None, lines, newest
