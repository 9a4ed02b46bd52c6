"""Purge transcripts: the turns that contain a text, or a whole session. A line that names the receipt replaces each turn."""

from __future__ import annotations

from shlex import quote

from holdfast.formats import transcript
from holdfast.ledger.purges import MIN_LINE_CHARS, MIN_TEXT_CHARS, fold_text, long_lines
from holdfast.models import Scope
from holdfast.verbs.purge.job import PurgeJob, refusable_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.context.caller import Context
    from holdfast.formats.transcript import TranscriptLine
    from holdfast.models import Receipt
    from holdfast.store.interface import Line, Transcript

_ATTEMPTS = 100
_MAX_SEARCHED = 2000  # turns of a session, and vectors, that the verification searches for


# --- turns ------------------------------------------------------------------------------------------------------------


def remove_turns(job: PurgeJob, folders: Iterable[str], texts: list[str]) -> None:
    """Remove every turn of these scopes that contains one of the texts, or a line of one."""
    wanted = {line for text in texts for line in (fold_text(text), *long_lines(text)) if len(line) >= MIN_TEXT_CHARS}
    if not wanted:
        return
    for folder in folders:
        job.context.store.transcripts(folder).wait_for_writers()
        files = _list_files(job.context, folder)
        changed = [_remove_turns(job, folder, transcript_file, texts, wanted) for transcript_file in files]
        if any(changed):
            _reindex(job.context, folder)


def _remove_turns(job: PurgeJob, folder: str, transcript_file: Transcript, texts: list[str], wanted: set[str]) -> bool:
    """Remove turns from one session's file, refusing each first; return whether there were any."""
    transcript_file.wait_for_writers()  # a writer that was allowed before the refusal may be about to append
    found = [turn for turn in _read_turns(transcript_file) if _contains_any(turn, wanted)]
    if not found:
        return False
    session = _session_of(transcript_file)
    if job.cover(folder):
        job.refuse(texts, lines=refusable_lines(texts))
    _refuse(job, session, found, MIN_TEXT_CHARS)
    removed: list[TranscriptLine] = []

    def replace(line: Line) -> bytes | None:
        turn = transcript.parse_line(line.data)
        if turn is None or not _contains_any(turn, wanted):
            return None
        removed.append(turn)
        return transcript.render_purged_line(job.id)

    job.turns += transcript_file.replace_lines(replace)
    _refuse(job, session, [turn for turn in removed if turn not in found], MIN_TEXT_CHARS)
    return True


# --- sessions ---------------------------------------------------------------------------------------------------------


def purge_session(context: Context, session: str, client: str | None) -> Receipt | None:
    """Purge a session that this caller sees, also from the trash; return the receipt, or None if there is no such session."""
    folders = context.visible_folders(None)
    files = _files_of_session(context, folders, session, client)
    if not files:
        return None
    scope = Scope.of_folder(next(iter(files.values()))[0])
    job = PurgeJob(
        context, kind="session", what=f"the transcript of session {session}", scope=scope,
        retry=_retry_command(scope, session, client), folders=[folder for folder, _ in files.values()],
    )  # fmt: skip
    job.marks = [context.ledger.purges.digest_target(f"{scope.folder} {session}")]
    context.refresh(folders)
    not_searched = 0
    for _ in range(_ATTEMPTS):  # until none is left, whatever other processes append, forget or restore
        found = _files_of_session(context, folders, session, client)
        if not found:
            break
        files |= found
        not_searched += sum([_erase(job, folder, transcript_file, session) for folder, transcript_file in found.values()])
    job.scrub([Scope.of_folder(folder) for folder in dict.fromkeys([folder for folder, _ in files.values()])])
    continues = _files_of_session(context, folders, session, client)
    now = "the session continues, and its file contains what was said since" if continues else "no file of this session"
    job.checks.append(f"listed the transcript's folder and the trash again: {now}")
    if not_searched:
        why = f"shorter than {MIN_LINE_CHARS} characters, or beyond the first {_MAX_SEARCHED:,}"
        job.checks.append(f"{not_searched} of its turns not searched for in bytes: {why}")
    job.verify()
    original = [f"shelf/{folder}/transcripts/{_stem(transcript_file)}.jsonl" for folder, transcript_file in files.values()]
    return job.finish([*original, *[f"shelf/{path}" for path in job.removed]])


def _erase(job: PurgeJob, folder: str, transcript_file: Transcript, session: str) -> int:
    """Erase one file as it was read, refusing its turns first; return how many turns the verification cannot search for."""
    context, seen = job.context, transcript_file.file_id()
    turns = list(_read_turns(transcript_file))
    searched = [turn.text for turn in turns if len(turn.text) >= MIN_LINE_CHARS][:_MAX_SEARCHED]
    names = [transcript_file.name]
    vectors = context.query(lambda: context.index.read_vectors(folder, "transcripts", names))
    job.cover(folder)
    _refuse(job, session, turns, MIN_LINE_CHARS)
    if seen is None or not transcript_file.erase(seen):
        return 0  # it moved or grew: the next attempt finds it
    job.texts.update(dict.fromkeys(searched))
    job.vectors += vectors[:_MAX_SEARCHED]
    job.removed.append(transcript_file.path)
    job.turns += len(turns)
    job.index_rows += 1
    _reindex(context, folder)
    return len(turns) - len(searched)


def _files_of_session(
    context: Context, folders: Iterable[str], session: str, client: str | None
) -> dict[str, tuple[str, Transcript]]:
    """Return the files of a session by path, each with the folder of its scope."""
    return {
        transcript_file.path: (folder, transcript_file)
        for folder in folders
        for transcript_file in _list_files(context, folder)
        if _is_of_session(transcript_file, session, client)
    }


def _is_of_session(transcript_file: Transcript, session: str, client: str | None) -> bool:
    folder, _, stem = _stem(transcript_file).partition("/")
    return stem == transcript.make_file_name(session) and (client is None or transcript.make_file_name(client) == folder)


def _retry_command(scope: Scope, session: str, client: str | None) -> str:
    """Return the command line that purges the session again."""
    scope_option = f" --{scope.kind} {quote(scope.id)}" if scope.id and scope.kind != "session" else ""
    return f"purge --session {quote(session)}{f' --client {quote(client)}' if client else ''}{scope_option}"


# --- transcript files -------------------------------------------------------------------------------------------------


def _list_files(context: Context, folder: str) -> Iterator[Transcript]:
    """Yield every transcript file of a scope; the trash before and after, so that a file that moves meanwhile is found."""
    transcript_files = context.store.transcripts(folder)
    yield from transcript_files.list_trashed()
    yield from [transcript_files.open(entry.name) for entry in transcript_files.entries() if entry.regular]
    yield from transcript_files.list_trashed()


def _read_turns(transcript_file: Transcript) -> Iterator[TranscriptLine]:
    for line in transcript_file.read_lines():
        turn = transcript.parse_line(line.data)
        if turn is not None:
            yield turn


def _session_of(transcript_file: Transcript) -> str:
    header = next((transcript.parse_header(line.data) for line in transcript_file.read_lines()), None)
    return header.session if header else ""


def _stem(transcript_file: Transcript) -> str:
    """Return CLIENT/SESSION of a file, also of one in the trash."""
    stem = transcript_file.name.removesuffix(".jsonl")
    return stem.rpartition("--")[0] if transcript_file.part == "trash" else stem


def _contains_any(turn: TranscriptLine, wanted: set[str]) -> bool:
    text = fold_text(turn.text)
    return any(line in text for line in wanted)


def _refuse(job: PurgeJob, session: str, turns: list[TranscriptLine], min_chars: int) -> None:
    """Reject each turn by its ID, and by its text if that is long enough to be unique and no note contains it."""
    texts = [turn.text for turn in turns if len(fold_text(turn.text)) >= min_chars]
    job.allow_shared_turns(texts)
    job.refuse(texts, digests=[job.context.ledger.purges.digest_turn(session, turn.id or "", turn.text) for turn in turns])


def _reindex(context: Context, folder: str) -> None:
    context.query(lambda: context.sync.refresh_folder(folder, "transcripts"))
