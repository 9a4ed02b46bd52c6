"""A note gone for good: its files, what the catalogue made of them, and what sessions said of it where that is asked for."""

from __future__ import annotations

from holdfast.context.caller import nameless_id
from holdfast.errors import Busy, DiskTrouble
from holdfast.formats.versions import opened, versions_of
from holdfast.index import purge_check
from holdfast.models import Receipt, Scope
from holdfast.store.files import Changed, binned_key
from holdfast.verbs.purge import transcripts as transcripts_module
from holdfast.verbs.purge.job import Work, long_lines
from holdfast.verbs.purge.resume import named_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.context.caller import Desk
    from holdfast.store.atomic import Sheet
    from holdfast.store.files import Shelf

    File = tuple[Scope, str, str]

_ATTEMPTS = 1000


def purge(desk: Desk, places: list[Scope], key: str, transcripts: bool, told_of: Callable[[str], str]) -> Receipt:
    """Nobody can write it any more; then it is taken off the shelf, then out of what was derived; then everything is read."""
    work = Work(desk, "turns" if transcripts else "note", f"the note {key} in {places[0]}", key, places[0])
    work.named = [named_as(desk, place, key) for place in places]
    desk.look(tuple([place.folder for place in places]), archived=True)
    _read(work, _sheets(desk.shelf, places, key))
    if transcripts:  # cut short, it is ended by a purge of the same note or text
        work.marks, work.retry = [desk.ledger.purges.mark(text) for text in work.texts], "purge --text -"
    work.spare([f"shelf/{path}" for path in _paths(desk.shelf, places, key)])
    for place in places:
        for part, names in _catalogued(desk, place, key):
            of = place.folder, part, names
            work.vectors += desk.ask(lambda of=of: purge_check.vectors_of(desk.index, *of))  # type: ignore[misc]
    _erase(work, places, key)
    if transcripts:
        transcripts_module.take_out(work, list(desk.folders(None)), list(work.texts))
    work.index_rows += sum([_uncatalogued(desk, place, key) for place in places])
    work.scrub(places, told_of)
    _must_be_gone(work, places, key)
    work.check()
    here = [f"{place.folder}/notes/{key}.md" for place in places]  # also where it was in the trash
    return work.done([f"shelf/{path}" for path in (*here, *work.removed)])


def _erase(work: Work, places: list[Scope], key: str) -> None:
    """Until nothing is left, whatever others write, restore or forget meanwhile: each version is refused before it goes."""
    shelf = work.desk.shelf
    for _ in range(_ATTEMPTS):
        sheets = _sheets(shelf, places, key)
        if not sheets and not any(are_there(shelf, place, key) for place in places):
            return
        texts = _read(work, sheets)
        purges = work.desk.ledger.purges
        named = [purges.of_note(f"{place.folder}/notes/{key}", text) for place in places for text in texts]
        work.refuse(texts, long_lines(texts), named)
        for (place, part, name), sheet in sheets.items():
            try:
                if shelf.erase(place, part, name, sheet.stamp):
                    work.removed.append(f"{place.folder}/{part}/{name}")
            except Changed:
                continue
    raise Busy(f"the note {key!r} is written by others all the time", "Try again")


def are_there(shelf: Shelf, place: Scope, key: str) -> bool:
    """Whether a scope has a file of this key, seen while nobody can move one from the notes to the trash or back."""
    if not shelf.has(place.folder) or _files(shelf, place, key):
        return shelf.has(place.folder)
    with shelf.lock(place):
        return bool(_files(shelf, place, key))


def _sheets(shelf: Shelf, places: list[Scope], key: str) -> dict[File, Sheet]:
    found = {}
    for place in places:
        for part, name in _files(shelf, place, key):
            sheet = shelf.read_name(place.folder, part, name)
            if sheet is not None:
                found[place, part, name] = sheet
    return found


def _read(work: Work, sheets: dict[File, Sheet]) -> list[str]:
    """Every text of these files, and the ids their uses were counted under."""
    texts: list[str] = []
    for (place, part, name), sheet in sheets.items():
        leaf = opened(sheet.data, sheet.modified)
        named = nameless_id(place.folder, "notes", f"{work.key}.md"), nameless_id(place.folder, part, name)
        work.ids += [id for id in (leaf.head.id, *dict.fromkeys(named)) if id and id not in work.ids]
        texts += [version.text for version in versions_of(leaf)]
    work.texts.update(dict.fromkeys(texts))
    return texts


def _files(shelf: Shelf, place: Scope, key: str) -> list[tuple[str, str]]:
    """Every file of this key in a scope."""
    here = [("notes", f"{key}.md")] if shelf.stamp(place.folder, "notes", f"{key}.md") else []
    return here + [(one.part, one.name) for one in shelf.binned(place, key)]


def _paths(shelf: Shelf, places: list[Scope], key: str) -> list[str]:
    return [f"{place.folder}/{part}/{name}" for place in places for part, name in _files(shelf, place, key)]


def _catalogued(desk: Desk, place: Scope, key: str) -> list[tuple[str, list[str]]]:
    """The files of this key that the catalogue may have rows of, by part."""
    archived = [name for name in desk.ask(lambda: desk.index.stamps(place.folder, "archive")) if binned_key(name) == key]
    return [("notes", [f"{key}.md"]), ("archive", archived)]


def _uncatalogued(desk: Desk, place: Scope, key: str) -> int:
    gone = 0
    for part, names in _catalogued(desk, place, key):
        gone += desk.ask(lambda part=part, names=names: desk.sync.gone(place.folder, part, names))  # type: ignore[misc]
    return gone


def _must_be_gone(work: Work, places: list[Scope], key: str) -> None:
    """The folders are listed again, and the index is asked. A new note of that key may stand there by now: it is another."""
    desk = work.desk
    there = _sheets(desk.shelf, places, key)
    for (place, part, name), sheet in there.items():
        if any(version.text in work.texts for version in versions_of(opened(sheet.data, sheet.modified))):
            raise DiskTrouble(f"{place.folder}/{part}/{name} says it again", "Purge again; somebody wrote it meanwhile")
    rows = [(place.folder, name, part) for place in places for part, names in _catalogued(desk, place, key) for name in names]
    if not there and any(desk.index.has_note(*row) for row in rows):
        raise DiskTrouble(f"the index still has a row of {key!r}", "Purge again")
    anew = "a new note of this key, which says something else" if there else "no file of this key"
    work.checks += [f"notes/, trash/ and archive/ listed again: {anew}", "index asked for the note: no row of it"]
