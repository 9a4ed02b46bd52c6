"""Purge: a note gone for good from everything we own, read back to be sure, and a receipt that says so."""

from __future__ import annotations

import os

from holdfast import dates, house
from holdfast.desk import nameless_id
from holdfast.errors import DiskTrouble, from_os
from holdfast.leaf import opened, versions_of
from holdfast.note import Receipt, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.desk import Desk
    from holdfast.shelf.folder import Shelf

_DATABASES = ("index.db", "index.db-wal", "ledger.db", "ledger.db-wal")
_LEAST = 12  # characters of a line that make it worth looking for
_PIECE = 24
BEYOND = (
    "backups and copies of the home",
    "the history of a git repository that the home is in",
    "blocks a disk has not yet overwritten",
    "what was already told to a model",
)


def purge(desk: Desk, places: list[Scope], key: str) -> Receipt:
    """Truth first, then what was derived from it, then look whether anything is left."""
    if not places:
        if house.exists(desk.config.home):  # its file may have been removed by hand: leave nothing of it behind either
            desk.look(desk.folders(None))
            desk.ask(desk.index.scrub)
        return Receipt(key, None, False, (), 0, 0, (), BEYOND, dates.now())
    desk.look(tuple([place.folder for place in places]))
    files = [(place, part, name) for place in places for part, name in _files(desk.shelf, place, key)]
    ids, traces = _known(desk.shelf, files)
    removed = [f"{place.folder}/{part}/{name}" for place, part, name in files if desk.shelf.erase(place, part, name)]
    rows = sum([_uncatalogued(desk, place, key) for place in places])
    desk.ask(desk.index.scrub)
    uses = desk.ledger.forget(ids)
    desk.ledger.scrub()
    for place in places:
        desk.sync.listing(place, now=True)
    checks = _checked(desk, places, key, traces)
    return Receipt(key, places[0], bool(removed), tuple(removed), rows, uses, checks, BEYOND, dates.now())


def _files(shelf: Shelf, place: Scope, key: str) -> list[tuple[str, str]]:
    """Every file of this key in a scope."""
    here = [("notes", f"{key}.md")] if shelf.stamp(place.folder, "notes", f"{key}.md") else []
    return here + [(one.part, one.name) for one in shelf.binned(place, key)]


def _uncatalogued(desk: Desk, place: Scope, key: str) -> int:
    return desk.ask(lambda: desk.sync.gone(place.folder, "notes", [f"{key}.md"]))


def _known(shelf: Shelf, files: list[tuple[Scope, str, str]]) -> tuple[list[str], list[str]]:
    """The ids its uses were counted under, and pieces of its texts to look for afterwards."""
    ids: list[str] = []
    traces: dict[str, None] = {}
    for place, part, name in files:
        sheet = shelf.read_name(place.folder, part, name)
        if sheet is None:
            continue
        leaf = opened(sheet.data, sheet.modified)
        ids += [leaf.head.id, nameless_id(place.folder, part, name)]
        for version in versions_of(leaf):
            longest = max(version.text.split("\n"), key=len).strip()
            traces.update(dict.fromkeys(_pieces(longest)))
    return [id for id in ids if id], list(traces)


def _pieces(line: str) -> list[str]:
    """Short pieces of a line: a long one may be split over pages of a database."""
    return [line[place : place + _PIECE] for place in (0, max(len(line) // 2, 0)) if len(line) - place >= _LEAST]


def _checked(desk: Desk, places: list[Scope], key: str, traces: list[str]) -> tuple[str, ...]:
    left = [f"{place.folder}/{part}/{name}" for place in places for part, name in _files(desk.shelf, place, key)]
    if left:
        raise DiskTrouble(f"purge left {', '.join(left)} behind", "Purge again; somebody wrote it anew meanwhile")
    if any(desk.index.has_note(place.folder, f"{key}.md") for place in places):
        raise DiskTrouble(f"the index still has a row of {key!r}", "Purge again")
    elsewhere = [trace for trace in traces if desk.index.says(trace)]
    mine = [trace.encode("utf-8", "replace") for trace in traces if trace not in elsewhere]
    derived = [*_DATABASES, *[f"shelf/{place.folder}/index.md" for place in places]]
    desk.index.close()  # reading its file through another descriptor would drop the locks of an open one
    desk.ledger.close()
    found = [name for name in derived if _holds(os.path.join(desk.config.home, name), mine)]
    if found:
        raise DiskTrouble(f"a piece of its text still stands in {', '.join(found)}", "Purge again, or `holdfast reindex`")
    told = f"{len(mine)} pieces of its texts looked for in the bytes of {', '.join(derived)}: none found"
    if not traces:
        told = f"its texts are shorter than {_LEAST} characters: too short to look for in the bytes of the databases"
    also = (f"{len(elsewhere)} pieces not looked for: another note or file says the same",) if elsewhere else ()
    return ("notes/, trash/ and archive/ listed again: no file of this key", "index asked for the note: no row", told, *also)


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
