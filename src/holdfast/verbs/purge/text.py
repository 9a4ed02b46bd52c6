"""A text gone from everything we keep: the versions of notes that hold it, the turns, and the files where that is asked for."""

from __future__ import annotations

from holdfast.base.ids import derive_key
from holdfast.context.caller import path_usage_id
from holdfast.errors import Conflict, UsageError
from holdfast.formats.versions import list_versions, parse_note
from holdfast.index import purge_check
from holdfast.ledger.purges import WORD_LEAST, folded, lines_of
from holdfast.models import Scope
from holdfast.safety import validate
from holdfast.store.atomic import FILE_BYTES
from holdfast.store.files import Changed, key_of_trashed
from holdfast.verbs.purge import transcripts
from holdfast.verbs.purge.job import PurgeJob
from holdfast.verbs.purge.versions import without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.context.caller import Context
    from holdfast.models import Receipt

LEAST = 12
INSTEAD = "[purged]"
_PARTS = ("notes", "trash", "archive")
_INDEXED = ("notes", "archive")  # those of them that the catalogue has rows of
_LOOKED_INTO = ("trash", "archive", *_PARTS)  # on both sides of the notes: what moves meanwhile is met either way
_ATTEMPTS = 100
_ABOUT = "it stands in what is said about the note, such as a tag; change that, and purge again"


def purge_text(context: Context, text: str, files: bool, told_of: Callable[[str], str]) -> Receipt:
    """The steps, for every scope of the home: nobody can write it, then it goes, then everything is read back."""
    wanted = folded(text)
    scopes = tuple(context.store.scopes())
    context.refresh(scopes, archived=True)
    work = PurgeJob(
        context, "text", f"a text of {len(text)} characters", retry="purge --text -" + (" --files" if files else "")
    )
    work.texts[text], work.anywhere, work.marks = None, True, [context.ledger.purges.mark(text)]
    words = [wanted] if " " not in wanted and len(wanted) >= WORD_LEAST else []
    work.refuse([text], more=context.ledger.purges.digests((), (), words))
    scopes = tuple(context.store.scopes())  # also those that came meanwhile: from now on nobody may write it
    for folder in scopes:
        with context.store.lock(Scope.of_folder(folder)):
            pass  # who asked before it was refused has written by now, and is found
        while _notes(work, Scope.of_folder(folder), wanted):
            pass  # again: somebody may have moved one to where we had looked already
        if files:
            _files(work, Scope.of_folder(folder), text)
    transcripts.take_out(work, scopes, [text])
    _names(work, scopes, wanted)
    context.refresh(scopes, archived=True)
    work.scrub([Scope.of_folder(folder) for folder in scopes], told_of)
    work.check()
    removed = [path.partition(" (")[0] for path in work.removed]
    return work.done([f"shelf/{path}" for path in dict.fromkeys([*removed, *map(_before, removed)])])


def _before(path: str) -> str:
    """Where a file in the trash or the archive stood when it was a note."""
    folder, _, name = path.rpartition("/")
    scope, _, part = folder.rpartition("/")
    binned = part in ("trash", "archive") and "--" in name
    return f"{scope}/notes/{name.rpartition('--')[0]}.md" if binned else path


def _names(work: PurgeJob, scopes: tuple[str, ...], wanted: str) -> None:
    """What is named after it says it for as long as it has that name."""
    slug = derive_key(wanted)
    for folder in scopes:
        here = [f"{folder}/{part}/{one.name}" for part in _PARTS for one in work.context.store.entries(folder, part)]
        tree = work.context.store.tree(folder, 0)
        for path in [*here, *[f"{folder}/files/{one.name}" for one in tree.census()]]:
            name = folded(path[len(folder) :])
            if wanted in name or (len(slug) >= LEAST and slug in name):
                work.pending.append((f"shelf/{path}", "its name says it; rename it, and purge again"))


def purgeable(value: object) -> str:
    """The text, if it can be told from innocent ones."""
    text = validate.text(value, FILE_BYTES, "a text to purge", allowed=True).strip()
    if len(folded(text)) < LEAST:
        what = f"a text of {len(folded(text))} characters is too short to purge wherever it stands"
        raise UsageError(what, f"Give {LEAST} or more, or purge the note")
    return text


def _notes(work: PurgeJob, place: Scope, wanted: str) -> bool:
    """Out of every note of a scope; whether any held it."""
    before = len(work.removed)
    for part in _LOOKED_INTO:
        for entry in list(work.context.store.entries(place.folder, part)):
            if entry.regular and entry.name.endswith(".md"):
                _note(work, place, part, entry.name, wanted)
    return len(work.removed) > before


def _note(work: PurgeJob, place: Scope, part: str, name: str, wanted: str) -> None:
    """Out of one note's file: the versions that hold it; where all do, the file."""
    store = work.context.store
    for _ in range(_ATTEMPTS):
        content = store.read_name(place.folder, part, name)
        if content is None or wanted not in folded(content.text()):
            return
        parsed = parse_note(content.data, content.modified)
        versions = list_versions(parsed)
        kept = [place_ for place_, version in enumerate(versions) if wanted not in folded(version.text)]
        gone = [version.text for version in versions if wanted in folded(version.text)]
        if not gone:
            work.pending.append((f"shelf/{place.folder}/{part}/{name}", _ABOUT))
            return
        work.refuse(gone, [line for one in gone for line in lines_of(one) if wanted in line])
        path = f"{place.folder}/{part}/{name}"
        if part in _INDEXED and 0 not in kept:
            work.vectors += work.context.query(lambda: purge_check.vectors_of(work.context.index, place.folder, part, [name]))
        try:
            if kept:
                store.replace(place, part, name, without(parsed, kept), content.stamp)
                path += f" ({len(gone)} of {len(versions)} versions)"
            elif not store.erase(place, part, name, content.stamp):
                continue
            else:
                counted = (part, name) if part != "archive" else ("notes", f"{key_of_trashed(name)}.md")
                work.ids += [id for id in (parsed.header.id, path_usage_id(place.folder, *counted)) if id]
        except Changed:
            continue
        work.removed.append(path)
        work.index_rows += part in _INDEXED
        if not kept:
            return
    work.pending.append((f"shelf/{place.folder}/{part}/{name}", "it is written by others all the time; purge again"))


def _files(work: PurgeJob, place: Scope, text: str) -> None:
    """Out of the tree of a scope: where it stands word for word, a mark takes its place."""
    context = work.context
    tree = context.store.tree(place.folder)
    data = text.encode()
    for entry in list(tree.census()):
        if not entry.regular or entry.stamp[2] > FILE_BYTES:
            continue
        parts = tuple(entry.name.split("/"))
        content = tree.read(parts)
        if content is None or data not in content.data:
            continue
        try:
            tree.write(parts, content.data.replace(data, INSTEAD.encode()), content.stamp)
        except Conflict:
            work.pending.append((f"shelf/{place.folder}/files/{entry.name}", "somebody else changed it; purge again"))
            continue
        work.removed.append(f"{place.folder}/files/{entry.name} (the text in it)")
