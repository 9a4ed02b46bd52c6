"""index.md of a large scope: the lines of notes that changed are put into the file that is there, instead of making all anew.

What was made last is remembered with the folder: which file it was, so that nobody else's is amended, how many lines, and
the newest passage then. Whatever changes a note gives it a newer one; a note that went leaves a line too many, and then all
are made anew.
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

_MOST_PASSAGES = 50_000  # looked through for those of the scope
_MOST_LINES = 5_000  # changed: from there on it is not cheaper
_UNLIKE = "- "  # what is never amended


def made_of(keys: list[str], stamp: Stamp | None, newest: int, plain: Callable[[str], str]) -> str:
    """What to remember of an index.md with these notes: it can be amended if each stands there under its own key."""
    names = "\n".join(keys)
    if stamp is None or "[" in names or "]" in names or plain(names.replace("\n", " ")) != names.replace("\n", " "):
        return _UNLIKE
    return _told(stamp, len(keys), newest)


def amend(shelf: Shelf, index: Index, place: Scope, made: str, line: Line) -> str:
    """Put the lines that changed into index.md. What to remember of it; nothing where it must be made anew."""
    stamp, lines, since = _read(made)
    newest = index.newest()
    if stamp is None or newest - since > _MOST_PASSAGES:
        return ""
    rows = index.listing_since(place.folder, since, _MOST_LINES)
    if not rows or len(rows) == _MOST_LINES or not all(row[-2] for row in rows):
        return ""
    data, count = shelf.read_listing(place, stamp), rows[0][-1]
    if data is None:
        return ""
    head = f"# {place}: {count} notes\n\n"
    parts, more = _amended(data, head, [(row[0], line(row[:-2])) for row in rows])
    written = shelf.write_listing(place, b"".join(parts)) if lines + more == count else None
    return _told(written, count, newest) if written else ""


def _amended(data: bytes, head: str, changed: list[tuple[str, str]]) -> tuple[list[bytes | memoryview], int]:
    """The same lines with these in their places, all in the order of their keys; and how many there are more than before."""
    view, done, more = memoryview(data), data.index(b"\n\n") + 2, 0
    parts: list[bytes | memoryview] = [view[: data.index(b"\n") + 1], head.encode("utf-8", "replace")]
    for key, line in changed:
        name = key.encode("utf-8", "replace")
        place = _place(data, name, done)
        parts += [view[done:place], line.encode("utf-8", "replace")]
        known = _key(data, place) == name
        done = data.index(b"\n", place) + 1 if known else place
        more += not known
    return [*parts, view[done:]], more


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
    return f"{stamp[0]} {stamp[1]} {stamp[2]} {lines} {newest} "


def _read(made: str) -> tuple[Stamp | None, int, int]:
    try:
        ino, ctime, size, lines, newest = map(int, made.split()[:5])
    except ValueError:
        return None, 0, 0
    return (ino, ctime, size), lines, newest
