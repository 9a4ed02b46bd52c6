"""Purge a note: its files, its index rows and, on request, the turns of sessions that say it."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.context.usage import path_usage_id
from holdfast.errors import Busy, DiskTrouble
from holdfast.formats.versions import list_versions, parse_note
from holdfast.models import Receipt, Scope
from holdfast.store import note_history
from holdfast.store.interface import Changed
from holdfast.store.layout import parse_trashed_key
from holdfast.verbs import relations
from holdfast.verbs.purge import transcripts as transcript_purge
from holdfast.verbs.purge.job import PurgeJob, refusable_lines
from holdfast.verbs.purge.resume import mark_of_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.formats.versions import ParsedNote
    from holdfast.store.interface import FileContent, Store

_ATTEMPTS = 1000


class _File(NamedTuple):
    scope: Scope
    part: str  # notes, trash, archive
    name: str

    @property
    def path(self) -> str:
        return f"{self.scope.folder}/{self.part}/{self.name}"


def purge_note(context: Context, scopes: list[Scope], key: str, *, transcripts: bool) -> Receipt:
    """Purge the note of this key from these scopes, with `transcripts` also the turns that say it; return the receipt."""
    job = PurgeJob(
        context, kind="turns" if transcripts else "note", what=f"the note {key} in {scopes[0]}", key=key, scope=scopes[0],
        folders=[scope.folder for scope in context.visible_scopes(scopes[0].kind)],  # also other ids of the same project
    )  # fmt: skip
    job.note_marks = [mark_of_note(context, scope, key) for scope in scopes]
    context.refresh(tuple([scope.folder for scope in scopes]), archived=True)
    contents = _read_files(context.store, scopes, key)
    _collect_texts(job, contents)
    if transcripts:  # if interrupted, it is finished by another purge of the same note or text
        job.marks, job.retry = [context.ledger.purges.digest_target(text) for text in job.texts], "purge --text -"
    own_paths = [file.path for scope in scopes for file in _list_files(context.store, scope, key)]
    job.allow_shared_lines([f"shelf/{path}" for path in [*own_paths, *_history_paths(context.store, contents)]])
    for scope in scopes:
        for part, names in _indexed_names(context, scope, key):
            job.vectors += _vectors_of(context, scope.folder, part, names)
    relations.remove_purged(context, job.ids, scopes, key)  # first, since an interrupted purge does not find the ids again
    _erase_files(job, scopes, key)
    if transcripts:
        transcript_purge.remove_turns(job, list(context.visible_folders(None)), list(job.texts))
    relations.remove_purged(context, job.ids, scopes, key)
    job.index_rows += sum([_remove_index_rows(context, scope, key) for scope in scopes])
    job.scrub(scopes)
    _verify_removed(job, scopes, key)
    job.verify()
    original = [f"{scope.folder}/notes/{key}.md" for scope in scopes]  # git may have it though it was in the trash here
    return job.finish([f"shelf/{path}" for path in (*original, *job.removed)])


def _erase_files(job: PurgeJob, scopes: list[Scope], key: str) -> None:
    """Erase until no file is left, whatever other processes write, restore or forget; refuse each version first."""
    store, purges = job.context.store, job.context.ledger.purges
    for _ in range(_ATTEMPTS):
        contents = _read_files(store, scopes, key)
        if not contents and not any(has_files(store, scope, key) for scope in scopes):
            return
        texts = _collect_texts(job, contents)
        digests = [purges.digest_note(f"{scope.folder}/notes/{key}", text) for scope in scopes for text in texts]
        job.refuse(texts, lines=refusable_lines(texts), digests=digests)
        for file, content in contents.items():
            parsed = parse_note(content.data, content.modified)
            _erase_history(job, file.scope, parsed)  # before the note, which says where it is
            try:
                if store.erase_file(file.scope, file.part, file.name, content.file_id):
                    job.removed.append(file.path)
            except Changed:
                continue
            _erase_history(job, file.scope, parsed)  # what a writer added meanwhile: without the note it adds no more
    raise Busy(f"other processes keep changing the note {key!r}", "Try again")


def _history_paths(store: Store, contents: dict[_File, FileContent]) -> list[str]:
    """Return the paths of the history files of these notes."""
    found = []
    for file, content in contents.items():
        names = note_history.list_files(store, file.scope.folder, parse_note(content.data, content.modified))
        found += [f"{file.scope.folder}/{note_history.PART}/{name}" for name in names]
    return found


def _erase_history(job: PurgeJob, scope: Scope, parsed: ParsedNote) -> None:
    erased = note_history.erase(job.context.store, scope, parsed)
    job.removed += [f"{scope.folder}/{note_history.PART}/{name}" for name in erased]


def has_files(store: Store, scope: Scope, key: str) -> bool:
    """Return whether a scope has a file of this key; looked for under the lock too, since a note may be moving meanwhile."""
    if not store.has_folder(scope.folder) or _list_files(store, scope, key):
        return store.has_folder(scope.folder)
    with store.lock_scope(scope):
        return bool(_list_files(store, scope, key))


def _read_files(store: Store, scopes: list[Scope], key: str) -> dict[_File, FileContent]:
    found = {}
    for scope in scopes:
        for file in _list_files(store, scope, key):
            content = store.read_file(scope.folder, file.part, file.name)
            if content is not None:
                found[file] = content
    return found


def _list_files(store: Store, scope: Scope, key: str) -> list[_File]:
    """Return every file of this key in a scope: the note, and those in the trash and the archive."""
    note = [_File(scope, "notes", f"{key}.md")] if store.file_id(scope.folder, "notes", f"{key}.md") else []
    return note + [_File(scope, trashed.part, trashed.name) for trashed in store.list_trash(scope, key)]


def _collect_texts(job: PurgeJob, contents: dict[_File, FileContent]) -> list[str]:
    """Return every version's text of these files; add it and the ids of the notes to the job."""
    texts: list[str] = []
    for file, content in contents.items():
        parsed = parse_note(content.data, content.modified)
        folder = file.scope.folder
        by_path = path_usage_id(folder, "notes", f"{job.key}.md"), path_usage_id(folder, file.part, file.name)
        job.ids += [id for id in (parsed.header.id, *dict.fromkeys(by_path)) if id and id not in job.ids]
        texts += [version.text for version in note_history.list_versions(job.context.store, folder, parsed)]
    job.texts.update(dict.fromkeys(texts))
    return texts


# --- the index --------------------------------------------------------------------------------------------------------


def _indexed_names(context: Context, scope: Scope, key: str) -> list[tuple[str, list[str]]]:
    """Return the names of this key's files that the index may have rows of, by part."""
    indexed = context.query(lambda: context.index.file_ids(scope.folder, "archive"))
    return [("notes", [f"{key}.md"]), ("archive", [name for name in indexed if parse_trashed_key(name) == key])]


def _vectors_of(context: Context, folder: str, part: str, names: list[str]) -> list[bytes]:
    return context.query(lambda: context.index.read_vectors(folder, part, names))


def _remove_index_rows(context: Context, scope: Scope, key: str) -> int:
    removed = 0
    for part, names in _indexed_names(context, scope, key):
        removed += context.query(lambda part=part, names=names: context.sync.remove_files(scope.folder, part, names))  # type: ignore[misc]
    return removed


def _verify_removed(job: PurgeJob, scopes: list[Scope], key: str) -> None:
    """List the folders and query the index again; raise DiskTrouble if the note is still there.

    Another note may have got the key in the meantime: that one stays.
    """
    context = job.context
    contents = _read_files(context.store, scopes, key)
    for file, content in contents.items():
        if any(version.text in job.texts for version in list_versions(parse_note(content.data, content.modified))):
            raise DiskTrouble(f"{file.path} contains it again", "Purge it again; another process wrote it meanwhile")
    rows = [
        _File(scope, part, name) for scope in scopes for part, names in _indexed_names(context, scope, key) for name in names
    ]
    if not contents and any(context.index.has_note(row.scope.folder, row.name, row.part) for row in rows):
        raise DiskTrouble(f"the index still has a row of {key!r}", "Purge again")
    files = "a new note with this key and another text" if contents else "no file with this key"
    job.checks += [f"listed notes/, trash/ and archive/ again: {files}", "searched the index for the note: no row found"]
