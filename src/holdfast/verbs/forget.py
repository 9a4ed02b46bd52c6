"""Forget and restore: notes and transcripts go to the trash, and come back from the trash or the archive."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context.usage import note_usage_id
from holdfast.errors import Conflict, NotFound, Template, command
from holdfast.formats import transcript
from holdfast.formats.versions import parse_note
from holdfast.models import Forgotten, Logged, Scope
from holdfast.safety import validate
from holdfast.store import note_history
from holdfast.store.interface import Changed
from holdfast.verbs import archive, quarantine, quota

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.base.ids import FileId
    from holdfast.context.caller import Context
    from holdfast.models import TrashedNote
    from holdfast.store.interface import Transcript


# --- notes ------------------------------------------------------------------------------------------------------------


def forget_key(context: Context, key: str, kind: str | None, expected: str | None) -> list[Scope]:
    """Move the visible note with this key to the trash; return the scopes that had it."""
    scopes = context.scopes_with_key(validate.check_existing_key(key), kind)
    scopes = scopes or context.scopes_with_key(key, kind, lambda scope, key: bool(context.store.find_archived([(scope, key)])))
    return forget(context, scopes, key, expected)


def forget(context: Context, scopes: list[Scope], key: str, expected: str | None) -> list[Scope]:
    """Move a note of these scopes to the trash; return the scopes that had it.

    With `expected`, only that version is moved. Raises `Conflict` if no scope has it.
    """
    if expected is None:
        return [scope for scope in scopes if _trash_note(context, scope, key)]
    for scope in scopes:
        content = context.store.read_note(scope, key)
        if content is not None:
            is_expected = parse_note(content.data, content.modified).digest == expected
            if is_expected and _trash_note(context, scope, key, {key: content.file_id}):
                return [scope]
            continue
        archived = context.store.find_archived([(scope, key)]).get((scope, key))
        content = context.store.read_file(scope.folder, archived.part, archived.name) if archived else None
        if content and parse_note(content.data, content.modified).digest == expected and _trash_note(context, scope, key):
            return [scope]
    raise Conflict(f"the note {key!r} was changed or deleted since you read it", "Read it again")


def _trash_note(context: Context, scope: Scope, key: str, seen: dict[str, FileId] | None = None) -> bool:
    """Move a note and the archived copies of its key to the trash; return whether there was one.

    The copies are moved first, so that `restore` brings back the note. Recall would find them if they stayed.
    """
    if context.store.has_folder(scope.folder, "archive"):
        quarantine.refuse_forget(context, scope, [key])
    is_current = seen is None or context.store.file_id(scope.folder, "notes", f"{key}.md") == seen[key]
    copies = archive.trash_archived(context, scope, key) if is_current else 0
    moved = archive.move_notes(context, scope, [key], "trash", seen)
    return bool(moved) or bool(copies and seen is None)


def clear(context: Context, kind: object) -> int:
    """Move every note of a scope to the trash; return how many there were."""
    count = 0
    for scope in context.visible_scopes(kind if isinstance(kind, str) else ""):
        names = [entry.name for entry in context.store.entries(scope.folder, "notes") if entry.regular]
        keys = {name[:-3] for name in names}
        count += len({note.key for note in context.store.list_trash(scope) if note.part == "archive"} - keys)
        archive.trash_archived(context, scope)
        notes = [name[:-3] for name in names if name.endswith(".md")]
        count += len(archive.move_notes(context, scope, notes, "trash"))
    return count


def list_trash(context: Context, kind: str | None) -> list[TrashedNote]:
    """Return the notes that can be restored, newest first."""
    scopes = context.visible_scopes(kind) if context.config.enabled else []
    return [note for scope in scopes for note in context.store.list_trash(scope)]


def restore(context: Context, key: str, kind: str | None, under: str | None) -> tuple[str, Scope]:
    """Restore the note that was forgotten or archived last under this key; return its key now and its scope."""
    otherwise = Template("Restore it under a valid key: ", command("restore {} --as {}", "NAME", "KEY"))
    name = validate.check_key(under if under is not None else key, otherwise)
    for scope in context.visible_scopes(kind):
        trashed = context.store.list_trash(scope, key)
        if trashed:
            _restore_note(context, scope, trashed[0], name)
            return name, scope
    fix = Template(command("list --trash"), " shows what can be restored")
    raise NotFound(f"no forgotten or archived note {key!r}", fix)


def _restore_note(context: Context, scope: Scope, trashed: TrashedNote, name: str) -> None:
    """Move a note from the trash or the archive back among the notes, under the key `name`."""
    content = context.store.read_file(scope.folder, trashed.part, trashed.name)
    note = parse_note(content.data, content.modified) if content else None
    quarantine.refuse_restore(context, note_usage_id(scope, trashed.key, note.header.id if note else ""), trashed.key)
    if note and context.purge_filter.any_purged():
        every = note_history.list_versions(context.store, scope.folder, note)
        context.purge_filter.refuse_purged([(f"{scope.folder}/notes/{name}", version.text) for version in every])
    if note and trashed.part == "trash":  # an archived note counts already
        notes, size = quota.count_added(context, scope, None, note)
        quota.check(context, notes=notes, bytes=size)
    try:
        context.store.restore_note(scope, trashed, name)
    except Changed:
        fix = Template("Restore it under another key: ", command("restore {} --as {}", trashed.key, "OTHER"))
        raise Conflict(f"another note has the key {name!r} now", fix) from None
    from_archive = trashed.part == "archive"
    if from_archive:
        context.update_index(lambda: context.sync.remove_files(scope.folder, "archive", [trashed.name]))
    archive.index_restored(context, scope, name, from_archive=from_archive)


# --- transcripts ------------------------------------------------------------------------------------------------------


def forget_session(context: Context, session: str, client: str | None) -> Forgotten:
    """Move the transcript of a session of this caller to the trash."""
    time = dates.now().replace("-", "").replace(":", "")
    for scope in context.visible_scopes(None):
        transcripts = context.store.transcripts(scope.folder)
        files = [transcripts.open(entry.name) for entry in transcripts.entries()]
        moved = [file for file in files if _is_transcript_of(file, session, client) and file.move_to_trash(time)]
        if moved:
            _refresh_transcripts(context, scope)
            until = dates.format_timestamp(dates.clock() + context.config.trash_days * 86400)
            return Forgotten(True, session, scope, until)
    return Forgotten(False, session)


def restore_session(context: Context, session: str, client: str | None) -> Logged:
    """Restore the transcript of a session from the trash; raise `Conflict` if the session has another one."""
    for scope in context.visible_scopes(None):
        transcripts = context.store.transcripts(scope.folder)
        for trashed in transcripts.list_trashed():
            file_client, _, name = trashed.name.partition("/")
            file = transcripts.open(f"{file_client}/{name.rpartition('--')[0]}.jsonl")
            if not _is_transcript_of(file, session, client):
                continue
            if not file.restore(name):
                raise Conflict(f"the session {session} already has a transcript", "Forget that transcript first")
            _refresh_transcripts(context, scope)
            turns = sum([transcript.parse_line(line.data) is not None for line in file.read_lines()])
            return Logged(session, file_client, turns, 0, file.path)
    raise NotFound(f"no forgotten transcript of session {session!r}", "The trash is emptied after `retention.trash_days`")


def _refresh_transcripts(context: Context, scope: Scope) -> None:
    context.update_index(lambda: context.sync.refresh_folder(scope.folder, "transcripts"))


def _is_transcript_of(file: Transcript, session: str, client: str | None) -> bool:
    file_client, _, name = file.name.partition("/")
    if name != f"{transcript.make_file_name(session)}.jsonl":
        return False
    return client is None or file_client == transcript.make_file_name(client)
