"""What was forgotten comes back: a note from the trash or the archive, a session's transcript from the trash; and how a
transcript gets there."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context import archive
from holdfast.context.caller import path_usage_id
from holdfast.errors import Conflict, NotFound, Template, command
from holdfast.formats import transcript
from holdfast.formats.versions import list_versions, parse_note
from holdfast.models import Forgotten, Logged, Scope
from holdfast.safety import validate
from holdfast.store.files import Changed
from holdfast.verbs import quarantine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.base.ids import FileId
    from holdfast.context.caller import Context
    from holdfast.store.transcripts import TranscriptFile


def restore(context: Context, key: str, scope: str | None, under: str | None) -> tuple[str, Scope]:
    """The steps of `Memory.restore`: the key under which it is back, and where."""
    otherwise = Template("bring it back under one: ", command("restore {} --as {}", "NAME", "KEY"))
    name = validate.key(under if under is not None else key, otherwise)
    for place in context.visible_scopes(scope):
        binned = context.store.list_trash(place, key)
        if not binned:
            continue
        content = context.store.read_name(place.folder, binned[0].part, binned[0].name)
        there = parse_note(content.data, content.modified) if content else None
        quarantine.must_not_restore(
            context, (there and there.header.id) or path_usage_id(place.folder, "notes", f"{key}.md"), key
        )
        versions = list_versions(there) if there else []
        context.refuse_purged([(f"{place.folder}/notes/{name}", version.text) for version in versions])
        try:
            context.store.restore(place, binned[0], name)
        except Changed:
            fix = Template("Bring it back under another: ", command("restore {} --as {}", key, "OTHER"))
            raise Conflict(f"another note has the key {name!r} by now", fix) from None
        if binned[0].part == "archive":
            gone = place.folder, "archive", [binned[0].name]
            context.update_index(lambda gone=gone: context.sync.remove_files(*gone))  # type: ignore[misc]
        archive.returned(context, place, name, touched=binned[0].part == "archive")
        return name, place
    fix = Template(command("list --trash"), " shows what can be restored")
    raise NotFound(f"nothing forgotten or archived under {key!r}", fix)


def forget(context: Context, places: list[Scope], key: str, expected: str | None) -> list[Scope]:
    """Put a note in the trash; the places that had it. Where a caller says which version it saw, only that one."""
    if expected is None:
        return [place for place in places if _trashed(context, place, key)]
    for place in places:
        content = context.store.read(place, key)
        if (
            content
            and parse_note(content.data, content.modified).digest == expected
            and _trashed(context, place, key, {key: content.stamp})
        ):
            return [place]
        one = context.store.archived(place, [key]).get(key) if content is None else None
        lies = context.store.read_name(place.folder, one.part, one.name) if one else None
        if lies and parse_note(lies.data, lies.modified).digest == expected and _trashed(context, place, key):
            return [place]
    raise Conflict(f"the note {key!r} is another version by now, or gone", "Read it again")


def _trashed(context: Context, place: Scope, key: str, seen: dict[str, FileId] | None = None) -> bool:
    """Move a note to the trash, and with it archived copies of its key: else recall would find those. They are moved first, so
    that `restore` brings back the note that stood."""
    if context.store.has(place.folder, "archive") and context.origin != "user" and context.config.quarantine:
        quarantine.must_not_forget(context, place, [key])
    stood = seen is None or context.store.stamp(place.folder, "notes", f"{key}.md") == seen[key]
    gone = archive.discard(context, place, key) if stood else 0
    return bool(context.move_notes(place, [key], "trash", seen)) or bool(gone and seen is None)


def forget_session(context: Context, session: str, client: str | None) -> Forgotten:
    """Put the transcript of a session of this caller's in the trash."""
    time = dates.now().replace("-", "").replace(":", "")
    for folder in context.visible_folders(None):
        transcript_files = context.store.transcript_files(folder)
        moved = [
            transcript_file
            for entry in transcript_files.census()
            if _is_of(transcript_file := transcript_files.transcript_file(entry.name), session, client)
            and transcript_file.bin(time)
        ]
        if moved:
            context.update_index(lambda folder=folder: context.sync.refresh_folder(folder, "transcripts"))  # type: ignore[misc]
            until = dates.timestamp(dates.clock() + context.config.trash_days * 86400)
            return Forgotten(True, session, Scope.of_folder(folder), until)
    return Forgotten(False, session)


def restore_session(context: Context, session: str, client: str | None) -> Logged:
    """Bring it back from the trash, unless the session has gone on since."""
    for folder in context.visible_folders(None):
        transcript_files = context.store.transcript_files(folder)
        for one in transcript_files.trashed():
            who, _, name = one.name.partition("/")
            transcript_file = transcript_files.transcript_file(f"{who}/{name.rpartition('--')[0]}.jsonl")
            if not _is_of(transcript_file, session, client):
                continue
            if not transcript_file.unbin(name):
                raise Conflict(f"the session {session} has a transcript again", "Forget that one first")
            context.update_index(lambda folder=folder: context.sync.refresh_folder(folder, "transcripts"))  # type: ignore[misc]
            return Logged(
                session,
                who,
                sum([transcript.parse(line.data) is not None for line in transcript_file.lines()]),
                0,
                transcript_file.path,
            )
    raise NotFound(f"no transcript of session {session!r} in the trash", "Sessions stay there for as long as notes do")


def clear(context: Context, scope: object) -> int:
    """Every note of a scope into the trash; how many there were."""
    count = 0
    for place in context.visible_scopes(scope if isinstance(scope, str) else ""):
        names = [entry.name for entry in context.store.entries(place.folder, "notes")]
        here = {name[:-3] for name in names}
        count += len({one.key for one in context.store.list_trash(place) if one.part == "archive"} - here)
        archive.discard(context, place)
        count += len(context.move_notes(place, [name[:-3] for name in names if name.endswith(".md")], "trash"))
    return count


def _is_of(transcript_file: TranscriptFile, session: str, client: str | None) -> bool:
    who, _, name = transcript_file.name.partition("/")
    return name == f"{transcript.file_name(session)}.jsonl" and (client is None or who == transcript.file_name(client))
