"""What was said in sessions, purged: turns that hold a text, or a whole session. Where a turn was, a line names the receipt."""

from __future__ import annotations

from holdfast.formats import transcript
from holdfast.ledger.purges import LINE_LEAST, TEXT_LEAST, folded, lines_of
from holdfast.models import Scope
from holdfast.verbs.purge.job import PurgeJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from holdfast.context.caller import Context
    from holdfast.formats.transcript import TranscriptLine
    from holdfast.models import Receipt
    from holdfast.store.interface import Line, Transcript

_ATTEMPTS = 100
_LOOKED_FOR = 2000  # turns of a session, and vectors, that are looked for in bytes afterwards


def take_out(work: PurgeJob, folders: Iterable[str], texts: list[str]) -> None:
    """Every turn of these scopes that holds one of the texts, or a line of one."""
    wanted = {one for text in texts for one in (folded(text), *lines_of(text)) if len(one) >= TEXT_LEAST}
    if wanted:
        for folder in folders:
            work.context.store.transcript_files(folder).wait_for_writers()
            changed = [
                transcript_file.name
                for transcript_file in _rolls(work.context, folder)
                if _take_out(work, transcript_file, wanted)
            ]
            if changed:
                _catalogue(work.context, folder)


def _take_out(work: PurgeJob, transcript_file: Transcript, wanted: set[str]) -> bool:
    """Out of one session's file; whether it held any. What goes is refused before it goes."""
    transcript_file.wait_for_writers()  # who asked before it was refused may be about to write
    found = [said for _, said in _said(transcript_file) if _holds(said, wanted)]
    if not found:
        return False
    session = _session_of(transcript_file)
    _refuse(work, session, found, TEXT_LEAST)
    gone: list[TranscriptLine] = []

    def instead(line: Line) -> bytes | None:
        said = transcript.parse(line.data)
        if said is None or not _holds(said, wanted):
            return None
        gone.append(said)
        return transcript.purged_line(work.id)

    work.turns += transcript_file.replace_lines(instead)
    _refuse(work, session, [said for said in gone if said not in found], TEXT_LEAST)
    return True


def purge_session(context: Context, session: str, client: str | None, told_of: Callable[[str], str]) -> Receipt | None:
    """A whole session of this caller's, here and in the trash; None where there is none."""
    folders = context.visible_folders(None)
    transcript_files = _of(context, folders, session, client)
    if not transcript_files:
        return None
    place = Scope.of_folder(next(iter(transcript_files.values()))[0])
    work = PurgeJob(
        context, "session", f"the transcript of session {session}", scope=place, retry=_again(place, session, client)
    )
    work.marks = [context.ledger.purges.digest_target(f"{place.folder} {session}")]
    context.refresh(folders)
    beyond = 0
    for _ in range(_ATTEMPTS):  # until nothing is left, whatever others add, forget or restore meanwhile
        found = _of(context, folders, session, client)
        if not found:
            break
        transcript_files |= found
        beyond += sum([_erase(work, folder, transcript_file, session) for folder, transcript_file in found.values()])
    work.scrub(
        [Scope.of_folder(folder) for folder in dict.fromkeys([folder for folder, _ in transcript_files.values()])], told_of
    )
    goes_on = _of(context, folders, session, client)
    now = "the session goes on, and its file holds what was said since" if goes_on else "no file of this session"
    work.checks.append(f"the transcript's folder and the trash listed again: {now}")
    if beyond:
        why = f"shorter than {LINE_LEAST} characters, or beyond the first {_LOOKED_FOR:,}"
        work.checks.append(f"{beyond} of its turns not looked for in bytes: {why}")
    work.check()
    here = [
        f"shelf/{folder}/transcripts/{_stem(transcript_file)}.jsonl" for folder, transcript_file in transcript_files.values()
    ]
    return work.done([*here, *[f"shelf/{path}" for path in work.removed]])


def _of(context: Context, folders: Iterable[str], session: str, client: str | None) -> dict[str, tuple[str, Transcript]]:
    """By path, the files of a session, each with the scope it is in."""
    transcript_files = [(folder, transcript_file) for folder in folders for transcript_file in _rolls(context, folder)]
    return {
        transcript_file.path: (folder, transcript_file)
        for folder, transcript_file in transcript_files
        if _is_of(transcript_file, session, client)
    }


def _erase(work: PurgeJob, folder: str, transcript_file: Transcript, session: str) -> int:
    """One file, as it was read: what goes is refused before it goes. How many of its turns are not looked for in bytes."""
    context, seen, name = work.context, transcript_file.file_id(), [transcript_file.name]
    every = [said for _, said in _said(transcript_file)]
    looked = [said.text for said in every if len(said.text) >= LINE_LEAST][:_LOOKED_FOR]
    vectors = context.query(lambda: context.index.read_vectors(folder, "transcripts", name))
    _refuse(work, session, every, LINE_LEAST)
    if seen is None or not transcript_file.erase(seen):
        return 0  # it was moved, or more was said: it is met again
    work.texts.update(dict.fromkeys(looked))
    work.vectors += vectors[:_LOOKED_FOR]
    work.removed.append(transcript_file.path)
    work.turns += len(every)
    work.index_rows += 1
    _catalogue(context, folder)
    return len(every) - len(looked)


def _again(place: Scope, session: str, client: str | None) -> str:
    """The words that purge the session again."""
    from shlex import quote

    whose = f" --{place.kind} {quote(place.id)}" if place.id and place.kind != "session" else ""
    return f"purge --session {quote(session)}{f' --client {quote(client)}' if client else ''}{whose}"


def _is_of(transcript_file: Transcript, session: str, client: str | None) -> bool:
    folder, _, stem = _stem(transcript_file).partition("/")
    return stem == transcript.file_name(session) and (client is None or transcript.file_name(client) == folder)


def _stem(transcript_file: Transcript) -> str:
    """The client and the session of a file, here or in the trash."""
    stem = transcript_file.name.removesuffix(".jsonl")
    return stem.rpartition("--")[0] if transcript_file.part == "trash" else stem


def _rolls(context: Context, folder: str) -> Iterator[Transcript]:
    """Every session's file of a scope, and those in its trash; that on both sides of the others, so that one which is moved
    meanwhile is met, whichever way it goes."""
    transcript_files = context.store.transcript_files(folder)
    yield from transcript_files.list_trashed()
    yield from [transcript_files.transcript_file(entry.name) for entry in transcript_files.census() if entry.regular]
    yield from transcript_files.list_trashed()


def _said(transcript_file: Transcript) -> Iterator[tuple[Line, TranscriptLine]]:
    for line in transcript_file.read_lines():
        said = transcript.parse(line.data)
        if said is not None:
            yield line, said


def _session_of(transcript_file: Transcript) -> str:
    header = next((transcript.parse_header(line.data) for line in transcript_file.read_lines()), None)
    return header.session if header else ""


def _holds(said: TranscriptLine, wanted: set[str]) -> bool:
    text = folded(said.text)
    return any(one in text for one in wanted)


def _refuse(work: PurgeJob, session: str, said: list[TranscriptLine], least: int) -> None:
    """Each turn by its id, and by its words where it has enough of them not to be said by chance, and no note says them."""
    texts = [one.text for one in said if len(folded(one.text)) >= least]
    work.spare_said(texts)
    work.refuse(texts, more=[work.context.ledger.purges.digest_turn(session, one.id or "", one.text) for one in said])


def _catalogue(context: Context, folder: str) -> None:
    context.query(lambda: context.sync.refresh_folder(folder, "transcripts"))
