"""A note gone for good: its files, what the catalogue made of them, and what sessions said of it where that is asked for."""

from __future__ import annotations

from holdfast.context.caller import path_usage_id
from holdfast.errors import Busy, DiskTrouble
from holdfast.formats.versions import list_versions, parse_note
from holdfast.index import purge_check
from holdfast.models import Receipt, Scope
from holdfast.store.files import Changed, key_of_trashed
from holdfast.verbs.purge import transcripts as transcripts_module
from holdfast.verbs.purge.job import PurgeJob, long_lines
from holdfast.verbs.purge.resume import named_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.context.caller import Context
    from holdfast.store.atomic import FileContent
    from holdfast.store.files import FileStore

    File = tuple[Scope, str, str]

_ATTEMPTS = 1000


def purge(context: Context, places: list[Scope], key: str, transcripts: bool, told_of: Callable[[str], str]) -> Receipt:
    """Nobody can write it any more; then it is taken off the shelf, then out of what was derived; then everything is read."""
    work = PurgeJob(context, "turns" if transcripts else "note", f"the note {key} in {places[0]}", key, places[0])
    work.named = [named_as(context, place, key) for place in places]
    context.refresh(tuple([place.folder for place in places]), archived=True)
    _read(work, _sheets(context.store, places, key))
    if transcripts:  # cut short, it is ended by a purge of the same note or text
        work.marks, work.retry = [context.ledger.purges.mark(text) for text in work.texts], "purge --text -"
    work.spare([f"shelf/{path}" for path in _paths(context.store, places, key)])
    for place in places:
        for part, names in _catalogued(context, place, key):
            of = place.folder, part, names
            work.vectors += context.query(lambda of=of: purge_check.vectors_of(context.index, *of))  # type: ignore[misc]
    _erase(work, places, key)
    if transcripts:
        transcripts_module.take_out(work, list(context.visible_folders(None)), list(work.texts))
    work.index_rows += sum([_uncatalogued(context, place, key) for place in places])
    work.scrub(places, told_of)
    _must_be_gone(work, places, key)
    work.check()
    here = [f"{place.folder}/notes/{key}.md" for place in places]  # also where it was in the trash
    return work.done([f"shelf/{path}" for path in (*here, *work.removed)])


def _erase(work: PurgeJob, places: list[Scope], key: str) -> None:
    """Until nothing is left, whatever others write, restore or forget meanwhile: each version is refused before it goes."""
    store = work.context.store
    for _ in range(_ATTEMPTS):
        contents = _sheets(store, places, key)
        if not contents and not any(are_there(store, place, key) for place in places):
            return
        texts = _read(work, contents)
        purges = work.context.ledger.purges
        named = [purges.of_note(f"{place.folder}/notes/{key}", text) for place in places for text in texts]
        work.refuse(texts, long_lines(texts), named)
        for (place, part, name), content in contents.items():
            try:
                if store.erase(place, part, name, content.stamp):
                    work.removed.append(f"{place.folder}/{part}/{name}")
            except Changed:
                continue
    raise Busy(f"the note {key!r} is written by others all the time", "Try again")


def are_there(store: FileStore, place: Scope, key: str) -> bool:
    """Whether a scope has a file of this key, seen while nobody can move one from the notes to the trash or back."""
    if not store.has(place.folder) or _files(store, place, key):
        return store.has(place.folder)
    with store.lock(place):
        return bool(_files(store, place, key))


def _sheets(store: FileStore, places: list[Scope], key: str) -> dict[File, FileContent]:
    found = {}
    for place in places:
        for part, name in _files(store, place, key):
            content = store.read_name(place.folder, part, name)
            if content is not None:
                found[place, part, name] = content
    return found


def _read(work: PurgeJob, contents: dict[File, FileContent]) -> list[str]:
    """Every text of these files, and the ids their uses were counted under."""
    texts: list[str] = []
    for (place, part, name), content in contents.items():
        parsed = parse_note(content.data, content.modified)
        named = path_usage_id(place.folder, "notes", f"{work.key}.md"), path_usage_id(place.folder, part, name)
        work.ids += [id for id in (parsed.header.id, *dict.fromkeys(named)) if id and id not in work.ids]
        texts += [version.text for version in list_versions(parsed)]
    work.texts.update(dict.fromkeys(texts))
    return texts


def _files(store: FileStore, place: Scope, key: str) -> list[tuple[str, str]]:
    """Every file of this key in a scope."""
    here = [("notes", f"{key}.md")] if store.stamp(place.folder, "notes", f"{key}.md") else []
    return here + [(one.part, one.name) for one in store.list_trash(place, key)]


def _paths(store: FileStore, places: list[Scope], key: str) -> list[str]:
    return [f"{place.folder}/{part}/{name}" for place in places for part, name in _files(store, place, key)]


def _catalogued(context: Context, place: Scope, key: str) -> list[tuple[str, list[str]]]:
    """The files of this key that the catalogue may have rows of, by part."""
    archived = [
        name for name in context.query(lambda: context.index.stamps(place.folder, "archive")) if key_of_trashed(name) == key
    ]
    return [("notes", [f"{key}.md"]), ("archive", archived)]


def _uncatalogued(context: Context, place: Scope, key: str) -> int:
    gone = 0
    for part, names in _catalogued(context, place, key):
        gone += context.query(lambda part=part, names=names: context.sync.remove_files(place.folder, part, names))  # type: ignore[misc]
    return gone


def _must_be_gone(work: PurgeJob, places: list[Scope], key: str) -> None:
    """The folders are listed again, and the index is asked. A new note of that key may stand there by now: it is another."""
    context = work.context
    there = _sheets(context.store, places, key)
    for (place, part, name), content in there.items():
        if any(version.text in work.texts for version in list_versions(parse_note(content.data, content.modified))):
            raise DiskTrouble(f"{place.folder}/{part}/{name} says it again", "Purge again; somebody wrote it meanwhile")
    rows = [
        (place.folder, name, part) for place in places for part, names in _catalogued(context, place, key) for name in names
    ]
    if not there and any(context.index.has_note(*row) for row in rows):
        raise DiskTrouble(f"the index still has a row of {key!r}", "Purge again")
    anew = "a new note of this key, which says something else" if there else "no file of this key"
    work.checks += [f"notes/, trash/ and archive/ listed again: {anew}", "index asked for the note: no row of it"]
