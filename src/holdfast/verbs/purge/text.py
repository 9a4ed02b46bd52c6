"""Purge a text from everything we keep: versions of notes, turns of sessions and, on request, files."""

from __future__ import annotations

import json
from itertools import pairwise

from holdfast.base.ids import derive_key
from holdfast.context import file_sources
from holdfast.context.usage import path_usage_id
from holdfast.errors import Conflict, UsageError
from holdfast.formats import history_file, note_file
from holdfast.formats.history_file import is_history_name
from holdfast.formats.versions import ParsedNote, list_versions, parse_note
from holdfast.ledger.file_sources import FileVersion
from holdfast.ledger.purges import MIN_WORD_CHARS, fold_text, long_lines
from holdfast.models import Scope
from holdfast.safety import validate
from holdfast.store import note_history
from holdfast.store.interface import Changed
from holdfast.store.layout import FILE_BYTES, parse_trashed_key
from holdfast.verbs.purge import transcripts
from holdfast.verbs.purge.job import PurgeJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.formats.history_file import OlderVersion
    from holdfast.formats.note_file import NoteHeader
    from holdfast.models import Receipt, Version

MIN_TEXT_CHARS = 12  # folded characters
REPLACEMENT = "[purged]"  # replaces the text in a file
_PARTS = ("notes", "trash", "archive")
_INDEXED_PARTS = ("notes", "archive")
_SEARCH_ORDER = ("trash", "archive", *_PARTS)  # before and after the notes: a note that moves meanwhile is found either way
_ATTEMPTS = 100
_IN_HEADER = "it occurs in the metadata of the note, such as a tag; change that, and purge again"


def check_text(value: object) -> str:
    """Return the text to purge; raise UsageError if it is too short to be distinguished from other texts."""
    text = validate.check_text(value, FILE_BYTES, "a text to purge", allowed=True).strip()
    if len(fold_text(text)) < MIN_TEXT_CHARS:
        what = f"a text of {len(fold_text(text))} characters is too short to purge everywhere"
        raise UsageError(what, f"Give at least {MIN_TEXT_CHARS} characters, or purge the note")
    return text


def purge_text(context: Context, text: str, *, files: bool) -> Receipt:
    """Purge a text from every scope of the home, with `files` from the files of trees too; return the receipt."""
    wanted = fold_text(text)
    context.refresh(tuple(context.store.list_scopes()), archived=True)
    job = PurgeJob(
        context, kind="text", what=f"a text of {len(text)} characters", retry="purge --text -" + (" --files" if files else "")
    )
    job.texts[text], job.within_lines, job.marks = None, True, [context.ledger.purges.digest_target(text)]
    words = [wanted] if " " not in wanted and len(wanted) >= MIN_WORD_CHARS else []
    job.refuse([text], digests=context.ledger.purges.digests((), (), words))
    scopes = tuple(context.store.list_scopes())  # includes scopes created before the text was refused
    for scope in map(Scope.of_folder, scopes):
        with context.store.lock_scope(scope):
            pass  # a writer that was allowed before the refusal has written meanwhile, and is found
        while _purge_from_notes(job, scope, wanted):
            pass  # again: a note may have moved to where we had looked already
        if files:
            _purge_from_files(job, scope, text)
    transcripts.remove_turns(job, scopes, [text])
    _report_names(job, scopes, wanted)
    context.refresh(scopes, archived=True)
    job.scrub([Scope.of_folder(folder) for folder in scopes])
    job.verify()
    removed = [path.partition(" (")[0] for path in job.removed]
    return job.finish([f"shelf/{path}" for path in dict.fromkeys([*removed, *map(_original_path, removed)])])


def _original_path(path: str) -> str:
    """Return the path of a file of the trash or the archive when it was a note; other paths unchanged."""
    folder, _, name = path.rpartition("/")
    scope, _, part = folder.rpartition("/")
    is_trashed = part in ("trash", "archive") and "--" in name
    return f"{scope}/notes/{name.rpartition('--')[0]}.md" if is_trashed else path


def _report_names(job: PurgeJob, scopes: tuple[str, ...], wanted: str) -> None:
    """Report files whose names contain the text: only a person can rename them."""
    slug, store = derive_key(wanted), job.context.store
    for folder in scopes:
        notes = [f"{folder}/{part}/{entry.name}" for part in _PARTS for entry in store.entries(folder, part)]
        files = [f"{folder}/files/{entry.name}" for entry in store.tree(folder, 0).entries()]
        for path in [*notes, *files]:
            name = fold_text(path[len(folder) :])
            if wanted in name or (len(slug) >= MIN_TEXT_CHARS and slug in name):
                job.pending.append((f"shelf/{path}", "its name contains it; rename it, and purge again"))


# --- notes ------------------------------------------------------------------------------------------------------------


def _purge_from_notes(job: PurgeJob, scope: Scope, wanted: str) -> bool:
    """Remove the text from every note of a scope; return whether any contained it."""
    before = len(job.removed)
    for entry in list(job.context.store.entries(scope.folder, note_history.PART)):
        if entry.regular and is_history_name(entry.name):
            _purge_from_history(job, scope, entry.name, wanted)
    for part in _SEARCH_ORDER:
        for entry in list(job.context.store.entries(scope.folder, part)):
            if entry.regular and entry.name.endswith(".md"):
                _purge_from_note(job, scope, part, entry.name, wanted)
    return len(job.removed) > before


def _purge_from_history(job: PurgeJob, scope: Scope, name: str, wanted: str) -> None:
    """Replace the texts of versions in a history file that contain the text; the numbers of the others stay."""
    path, store = f"{scope.folder}/{note_history.PART}/{name}", job.context.store
    for _ in range(_ATTEMPTS):
        content = store.read_file(scope.folder, note_history.PART, name)
        if content is None or wanted not in fold_text(content.text()):
            return
        texts = [place.version.text for place in history_file.older_versions(content.data, name)]
        purged = {position: text for position, text in enumerate(texts) if wanted in fold_text(text)}
        if not purged:
            job.pending.append((f"shelf/{path}", _IN_HEADER))
            return
        job.refuse(
            list(purged.values()), lines=[line for text in purged.values() for line in long_lines(text) if wanted in line]
        )
        try:
            data = history_file.replace_texts(content.data, name, dict.fromkeys(purged, REPLACEMENT))
            store.replace_file(scope, note_history.PART, name, data, content.file_id)
        except Changed:
            continue
        job.removed.append(f"{path} ({len(purged)} of {len(texts)} versions)")
        _reindex_notes_of(job, scope, name)
    job.pending.append((f"shelf/{path}", "other processes keep changing it; purge again"))


def _reindex_notes_of(job: PurgeJob, scope: Scope, history_name: str) -> None:
    """Remove from the index the notes that have versions in a history file; the next refresh reads them again."""
    context = job.context
    for part in _INDEXED_PARTS:
        for entry in list(context.store.entries(scope.folder, part)):
            content = context.store.read_file(scope.folder, part, entry.name) if entry.regular else None
            parsed = parse_note(content.data, content.modified) if content else None
            if parsed and parsed.header.older and history_name in note_history.list_files(context.store, scope.folder, parsed):
                job.vectors += _vectors_of(context, scope.folder, part, entry.name)
                _drop_from_index(context, scope.folder, part, entry.name)
                job.index_rows += 1
    context.sync.reset()


def _drop_from_index(context: Context, folder: str, part: str, name: str) -> None:
    context.query(lambda: context.index.remove(folder, part, [name], lambda _: True))


def _purge_from_note(job: PurgeJob, scope: Scope, part: str, name: str, wanted: str) -> None:
    """Remove from one file the versions that contain the text, or the file if all do; retry when others change it."""
    path = f"{scope.folder}/{part}/{name}"
    for _ in range(_ATTEMPTS):
        content = job.context.store.read_file(scope.folder, part, name)
        if content is None or wanted not in fold_text(content.text()):
            return
        parsed = parse_note(content.data, content.modified)
        versions = list_versions(parsed)
        kept = [number for number, version in enumerate(versions) if wanted not in fold_text(version.text)]
        purged = [version.text for version in versions if wanted in fold_text(version.text)]
        if not purged:
            job.pending.append((f"shelf/{path}", _IN_HEADER))
            return
        job.refuse(purged, lines=[line for text in purged for line in long_lines(text) if wanted in line])
        if part in _INDEXED_PARTS and 0 not in kept:
            job.vectors += _vectors_of(job.context, scope.folder, part, name)
        try:
            older = None if kept else _last_older_version(job.context, scope, parsed)
            if kept or older:
                data = _without_versions(parsed, kept) if older is None else _with_older_version(parsed, older)
                job.context.store.replace_file(scope, part, name, data, content.file_id)
                job.removed.append(f"{path} ({len(purged)} of {len(versions)} versions)")
            elif job.context.store.erase_file(scope, part, name, content.file_id):
                counted = (part, name) if part != "archive" else ("notes", f"{parse_trashed_key(name)}.md")
                job.ids += [id for id in (parsed.header.id, path_usage_id(scope.folder, *counted)) if id]
                job.removed.append(path)
            else:
                continue
        except Changed:
            continue
        job.index_rows += part in _INDEXED_PARTS
        if not kept:
            return
    job.pending.append((f"shelf/{path}", "other processes keep changing it; purge again"))


def _last_older_version(context: Context, scope: Scope, parsed: ParsedNote) -> OlderVersion | None:
    """Return the newest version in the history files that was not purged."""
    older = note_history.older_versions(context.store, scope.folder, parsed)
    return next((place for place in older if place.version.text != REPLACEMENT), None)


def _with_older_version(parsed: ParsedNote, place: OlderVersion) -> bytes:
    """Return the bytes of a note file whose only version is one from a history file; those before it stay there."""
    older = parsed.header.older
    assert older is not None
    header = _head_of_version(parsed.header, place.version)
    header = header.replace(older=older.replace(versions=place.number - 1, file=place.file) if place.number > 1 else None)
    body = note_file.create(header, place.version.text).body
    page = note_file.replace_header(parsed.file.replace(body=body, past=""), header)
    return note_file.render(page).encode("utf-8", "surrogateescape")


def _vectors_of(context: Context, folder: str, part: str, name: str) -> list[bytes]:
    return context.query(lambda: context.index.read_vectors(folder, part, [name]))


def _without_versions(parsed: ParsedNote, kept: list[int]) -> bytes:
    """Return the bytes of a note file with only these versions, counted from the newest; the newest of them is current."""
    versions = list_versions(parsed)
    chain = [versions[number] for number in reversed(kept)]
    rebuilt = note_file.create(_head_of_version(parsed.header, chain[0]), chain[0].text)
    for older, newer in pairwise(chain):
        closed = older.closed or older.valid_to or newer.valid_from
        rebuilt = note_file.add_version(
            rebuilt, older.replace(closed=closed), _head_of_version(parsed.header, newer), newer.text
        )
    head = parsed.header if kept[0] == 0 else _head_of_version(parsed.header, chain[-1])
    page = note_file.replace_header(parsed.file.replace(body=rebuilt.body, past=rebuilt.past), head)
    return note_file.render(page).encode("utf-8", "surrogateescape")


def _head_of_version(head: NoteHeader, version: Version) -> NoteHeader:
    return head.replace(
        type=version.type, tags=version.tags, source=version.source, updated=version.recorded,
        valid_from=version.valid_from, valid_to=version.valid_to, approved=None,
    )  # fmt: skip


# --- files ------------------------------------------------------------------------------------------------------------


def _purge_from_files(job: PurgeJob, scope: Scope, text: str) -> None:
    """Replace the text in the files of a scope's tree where it occurs word for word, also as a string of JSON."""
    tree = job.context.store.tree(scope.folder)
    forms = _forms_in_files(text)
    for entry in list(tree.entries()):
        if not entry.regular or entry.file_id.size > FILE_BYTES:
            continue
        parts = tuple(entry.name.split("/"))
        content = tree.read(parts)
        data = content.data if content else b""
        for form in forms:
            data = data.replace(form, REPLACEMENT.encode())
        if content is None or data == content.data:
            continue
        path = f"{scope.folder}/files/{entry.name}"
        try:
            written = tree.write(parts, data, content.file_id)
        except Conflict:
            job.pending.append((f"shelf/{path}", "another process changed it; purge again"))
            continue
        old = FileVersion(scope.folder, entry.name, content.file_id)
        file_sources.record_rewritten(job.context.ledger, old, written.file_id)
        job.removed.append(f"{path} (the text in it)")


def _forms_in_files(text: str) -> list[bytes]:
    """Return a text as it is, as a string of JSON, and as one within a string of JSON, such as arguments of a tool."""
    forms = [text]
    for _ in range(2):
        forms += [json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (False, True)]
    return [form.encode("utf-8", "surrogatepass") for form in dict.fromkeys(forms)]
