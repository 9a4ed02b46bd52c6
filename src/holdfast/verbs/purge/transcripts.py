"""What was said in sessions, purged: turns that hold a text, or a whole session. Where a turn was, a line names the receipt."""

from __future__ import annotations

from holdfast.formats import transcript
from holdfast.index import purge_check
from holdfast.ledger.purges import LINE_LEAST, TEXT_LEAST, folded, lines_of
from holdfast.models import Scope
from holdfast.verbs.purge.job import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from holdfast.context.caller import Desk
    from holdfast.formats.transcript import Said
    from holdfast.models import Receipt
    from holdfast.store.transcripts import Line, Roll

_ATTEMPTS = 100
_LOOKED_FOR = 2000  # turns of a session, and vectors, that are looked for in bytes afterwards


def take_out(work: Work, folders: Iterable[str], texts: list[str]) -> None:
    """Every turn of these scopes that holds one of the texts, or a line of one."""
    wanted = {one for text in texts for one in (folded(text), *lines_of(text)) if len(one) >= TEXT_LEAST}
    if wanted:
        for folder in folders:
            work.desk.shelf.rolls(folder).settle()
            changed = [roll.name for roll in _rolls(work.desk, folder) if _take_out(work, roll, wanted)]
            if changed:
                _catalogue(work.desk, folder)


def _take_out(work: Work, roll: Roll, wanted: set[str]) -> bool:
    """Out of one session's file; whether it held any. What goes is refused before it goes."""
    roll.settle()  # who asked before it was refused may be about to write
    found = [said for _, said in _said(roll) if _holds(said, wanted)]
    if not found:
        return False
    session = _session_of(roll)
    _refuse(work, session, found, TEXT_LEAST)
    gone: list[Said] = []

    def instead(line: Line) -> bytes | None:
        said = transcript.parse(line.data)
        if said is None or not _holds(said, wanted):
            return None
        gone.append(said)
        return transcript.purged_line(work.id)

    work.turns += roll.rewrite(instead)
    _refuse(work, session, [said for said in gone if said not in found], TEXT_LEAST)
    return True


def purge_session(desk: Desk, session: str, client: str | None, told_of: Callable[[str], str]) -> Receipt | None:
    """A whole session of this caller's, here and in the trash; None where there is none."""
    folders = desk.folders(None)
    rolls = _of(desk, folders, session, client)
    if not rolls:
        return None
    place = Scope.of_folder(next(iter(rolls.values()))[0])
    work = Work(desk, "session", f"the transcript of session {session}", scope=place, retry=_again(place, session, client))
    work.marks = [desk.ledger.purges.mark(f"{place.folder} {session}")]
    desk.look(folders)
    beyond = 0
    for _ in range(_ATTEMPTS):  # until nothing is left, whatever others add, forget or restore meanwhile
        found = _of(desk, folders, session, client)
        if not found:
            break
        rolls |= found
        beyond += sum([_erase(work, folder, roll, session) for folder, roll in found.values()])
    work.scrub([Scope.of_folder(folder) for folder in dict.fromkeys([folder for folder, _ in rolls.values()])], told_of)
    goes_on = _of(desk, folders, session, client)
    now = "the session goes on, and its file holds what was said since" if goes_on else "no file of this session"
    work.checks.append(f"the transcript's folder and the trash listed again: {now}")
    if beyond:
        why = f"shorter than {LINE_LEAST} characters, or beyond the first {_LOOKED_FOR:,}"
        work.checks.append(f"{beyond} of its turns not looked for in bytes: {why}")
    work.check()
    here = [f"shelf/{folder}/transcripts/{_stem(roll)}.jsonl" for folder, roll in rolls.values()]
    return work.done([*here, *[f"shelf/{path}" for path in work.removed]])


def _of(desk: Desk, folders: Iterable[str], session: str, client: str | None) -> dict[str, tuple[str, Roll]]:
    """By path, the files of a session, each with the scope it is in."""
    rolls = [(folder, roll) for folder in folders for roll in _rolls(desk, folder)]
    return {roll.path: (folder, roll) for folder, roll in rolls if _is_of(roll, session, client)}


def _erase(work: Work, folder: str, roll: Roll, session: str) -> int:
    """One file, as it was read: what goes is refused before it goes. How many of its turns are not looked for in bytes."""
    desk, seen, name = work.desk, roll.stamp(), [roll.name]
    every = [said for _, said in _said(roll)]
    looked = [said.text for said in every if len(said.text) >= LINE_LEAST][:_LOOKED_FOR]
    vectors = desk.ask(lambda: purge_check.vectors_of(desk.index, folder, "transcripts", name))
    _refuse(work, session, every, LINE_LEAST)
    if seen is None or not roll.erase(seen):
        return 0  # it was moved, or more was said: it is met again
    work.texts.update(dict.fromkeys(looked))
    work.vectors += vectors[:_LOOKED_FOR]
    work.removed.append(roll.path)
    work.turns += len(every)
    work.index_rows += 1
    _catalogue(desk, folder)
    return len(every) - len(looked)


def _again(place: Scope, session: str, client: str | None) -> str:
    """The words that purge the session again."""
    from shlex import quote

    whose = f" --{place.kind} {quote(place.id)}" if place.id and place.kind != "session" else ""
    return f"purge --session {quote(session)}{f' --client {quote(client)}' if client else ''}{whose}"


def _is_of(roll: Roll, session: str, client: str | None) -> bool:
    folder, _, stem = _stem(roll).partition("/")
    return stem == transcript.file_name(session) and (client is None or transcript.file_name(client) == folder)


def _stem(roll: Roll) -> str:
    """The client and the session of a file, here or in the trash."""
    stem = roll.name.removesuffix(".jsonl")
    return stem.rpartition("--")[0] if roll.part == "trash" else stem


def _rolls(desk: Desk, folder: str) -> Iterator[Roll]:
    """Every session's file of a scope, and those in its trash; that on both sides of the others, so that one which is moved
    meanwhile is met, whichever way it goes."""
    rolls = desk.shelf.rolls(folder)
    yield from rolls.trashed()
    yield from [rolls.roll(entry.name) for entry in rolls.census() if entry.regular]
    yield from rolls.trashed()


def _said(roll: Roll) -> Iterator[tuple[Line, Said]]:
    for line in roll.lines():
        said = transcript.parse(line.data)
        if said is not None:
            yield line, said


def _session_of(roll: Roll) -> str:
    header = next((transcript.parse_header(line.data) for line in roll.lines()), None)
    return header.session if header else ""


def _holds(said: Said, wanted: set[str]) -> bool:
    text = folded(said.text)
    return any(one in text for one in wanted)


def _refuse(work: Work, session: str, said: list[Said], least: int) -> None:
    """Each turn by its id, and by its words where it has enough of them not to be said by chance, and no note says them."""
    texts = [one.text for one in said if len(folded(one.text)) >= least]
    work.spare_said(texts)
    work.refuse(texts, more=[work.desk.ledger.purges.of_turn(session, one.id or "", one.text) for one in said])


def _catalogue(desk: Desk, folder: str) -> None:
    desk.ask(lambda: desk.sync.refresh(folder, "transcripts"))
