"""Purge: a note gone for good from everything we own, read back to be sure, and a receipt that says so."""

from __future__ import annotations

import os

from holdfast import dates
from holdfast.errors import DiskTrouble, from_os
from holdfast.leaf import opened, versions_of
from holdfast.note import Receipt, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.desk import Desk
    from holdfast.index.sqlite import Index
    from holdfast.shelf.folder import Shelf

_DATABASES = ("index.db", "index.db-wal", "ledger.db", "ledger.db-wal")
_LEAST = 12  # characters of a line that make it worth looking for
BEYOND = (
    "backups and copies of the home",
    "the history of a git repository that the home is in",
    "blocks a disk has not yet overwritten",
    "what was already told to a model",
)


def purge(desk: Desk, place: Scope | None, key: str) -> Receipt:
    """Truth first, then what was derived from it, then look whether anything is left."""
    shelf, index = desk.shelf, desk.index
    if place is None:
        return Receipt(key, None, False, (), 0, 0, (), BEYOND, dates.now())
    wanted = [("notes", f"{key}.md"), *[(one.part, one.name) for one in shelf.binned(place, key)]]
    ids, traces = _known(shelf, place, key, wanted)
    desk.look((place.folder,))
    removed = [f"{place.folder}/{part}/{name}" for part, name in wanted if shelf.erase(place, key, part, name)]
    rows = desk.ask(lambda: desk.sync.gone(place.folder, "notes", [f"{key}.md"]))
    desk.ask(index.scrub)
    uses = desk.ledger.forget(ids)
    desk.ledger.scrub()
    desk.sync.listing(place, now=True)
    checks = _checked(shelf, index, place, key, traces)
    return Receipt(key, place, bool(removed), tuple(removed), rows, uses, checks, BEYOND, dates.now())


def _known(shelf: Shelf, place: Scope, key: str, wanted: list[tuple[str, str]]) -> tuple[list[str], list[bytes]]:
    """The ids its uses were counted under, and lines of its texts to look for afterwards."""
    ids: list[str] = []
    traces: dict[bytes, None] = {}
    for part, name in wanted:
        sheet = shelf.read_name(place.folder, part, name)
        if sheet is None:
            continue
        leaf = opened(sheet.data, sheet.modified)
        ids.append(leaf.head.id)
        for version in versions_of(leaf):
            longest = max(version.text.split("\n"), key=len).strip()
            if len(longest) >= _LEAST:
                traces[longest.encode("utf-8", "replace")] = None
    return [id for id in ids if id], list(traces)


def _checked(shelf: Shelf, index: Index, place: Scope, key: str, traces: list[bytes]) -> tuple[str, ...]:
    left = [f"{part}/{one}" for part, one in _left(shelf, place, key)]
    if left:
        raise DiskTrouble(f"purge left {', '.join(left)} behind", "Purge again; somebody wrote it anew meanwhile")
    if index.has_note(place.folder, f"{key}.md"):
        raise DiskTrouble(f"the index still has a row of {key!r}", "Purge again")
    found = [name for name in _DATABASES if _holds(os.path.join(shelf.home, name), traces)]
    told = (
        f"its text still stands in {', '.join(found)}, because another note or file says the same"
        if found
        else f"{len(traces)} lines of its texts looked for in the bytes of {', '.join(_DATABASES)}: none found"
    )
    return ("notes/, trash/ and archive/ listed again: no file of this key", "index asked for the note: no row", told)


def _left(shelf: Shelf, place: Scope, key: str) -> list[tuple[str, str]]:
    here = [("notes", f"{key}.md")] if shelf.stamp(place.folder, "notes", f"{key}.md") else []
    return here + [(one.part, one.name) for one in shelf.binned(place, key)]


def _holds(path: str, traces: list[bytes]) -> bool:
    """Whether any of these stands in the file, read in pieces that overlap."""
    if not os.path.isfile(path):
        return False
    overlap = max((len(trace) for trace in traces), default=1)
    try:
        with open(path, "rb") as file:
            tail = b""
            while piece := file.read(1 << 20):
                window = tail + piece
                if any(trace in window for trace in traces):
                    return True
                tail = window[-overlap:]
    except OSError as error:
        raise from_os(error, f"cannot read {path} back") from error
    return False
