"""What a session's file means to the catalogue: a passage for each turn. A file that grew is read on from where it ended."""

from __future__ import annotations

import zlib

from holdfast.base.ids import FileId
from holdfast.formats import transcript
from holdfast.index.entries import IndexEntry, Passage, unreadable_entry
from holdfast.models import Source
from holdfast.safety.trust import ROLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from holdfast.index.sqlite import SqliteIndex
    from holdfast.store.files import Entry
    from holdfast.store.transcripts import Line, TranscriptFile

    PurgedTurns = Callable[[list[tuple[str, str, str]]], set[int]]  # session, id, text: the places of those that were purged

_BATCH = 2_000  # turns, and
_BYTES = 8 * 1024 * 1024  # bytes of them that are catalogued at once


class ReadPosition:
    """How far a file has been read: bytes, lines, turns, and a sum of its last line that tells if it is still the same."""

    def __init__(self, text: str = "") -> None:
        parts = [int(part) for part in text.split(":")] if text else [0, 0, 0, 0]
        self.offset, self.lines, self.turns, self.sum = parts

    def __str__(self) -> str:
        return f"{self.offset}:{self.lines}:{self.turns}:{self.sum}"

    def pass_(self, line: Line, turns_: int) -> None:
        self.offset, self.lines, self.turns, self.sum = line.end, line.number, turns_, zlib.crc32(line.data[-256:])


def index_transcript(
    index: SqliteIndex, scope: str, transcript_file: TranscriptFile, entry: Entry, purged: PurgedTurns | None
) -> None:
    """Catalogue a session's file; of one that only grew, the turns that are new."""
    if not entry.regular:
        doc = unreadable_entry(scope, "transcripts", entry.name, entry.stamp, "a link or special file; never followed")
        index.put([(doc, None)], lambda _: True)
        return
    for doc in docs(scope, transcript_file, entry.stamp, index.mark(scope, "transcripts", entry.name), purged):
        index.put([(doc, None)], lambda one: _goes_on(one.stamp, transcript_file.stamp()))


def _goes_on(known: FileId, stamp: FileId | None) -> bool:
    """Whether a session's file is the one described, or has only grown: a purge puts another in its place."""
    return stamp is not None and stamp[0] == known[0] and stamp[2] >= known[2]


def docs(
    scope: str, transcript_file: TranscriptFile, stamp: FileId, known: tuple[int, str] | None, purged: PurgedTurns | None = None
) -> Iterator[IndexEntry]:
    """The file in pieces that can be catalogued one after the other; `known` are the inode and the mark read so far. Turns
    that were `purged` and stand there again are nobody's."""
    from holdfast.store.transcripts import Place

    mark = ReadPosition(known[1]) if known and known[0] == stamp[0] and known[1] else ReadPosition()
    grew = stamp[2] > mark.offset  # one that changed and did not was changed in its midst
    if mark.offset and not (grew and transcript_file.ends_so(mark.offset, lambda last: zlib.crc32(last[-256:]) == mark.sum)):
        mark = ReadPosition()
    header = _header(transcript_file)
    sources = {role: _source(transcript_file.name, header, role) for role in transcript.ROLES}
    batch: list[Line] = []
    size = 0
    for line in transcript_file.lines(Place(mark.offset, mark.lines)):
        if line.end > stamp[2]:
            break  # what came since the stamp is for the next look
        batch.append(line)
        size += len(line.data)
        if len(batch) >= _BATCH or size >= _BYTES:
            passages = _passages(batch, mark, header, sources, purged)
            yield _doc(scope, transcript_file.name, (stamp[0], 0, mark.offset), mark, passages, header)
            batch, size = [], 0
    passages = _passages(batch, mark, header, sources, purged)
    yield _doc(scope, transcript_file.name, stamp, mark, passages, header)


def _passages(
    lines: list[Line],
    mark: ReadPosition,
    header: transcript.TranscriptHeader | None,
    sources: dict[str, Source],
    purged: PurgedTurns | None,
) -> list[Passage]:
    """A passage for each turn of these lines, which the mark passes; all are asked about at once."""
    said = [transcript.parse(line.data) for line in lines]
    session = header.session if header else ""
    asked = [(place, one) for place, one in enumerate(said) if one is not None]
    gone = purged([(session, one.id or "", one.text) for _, one in asked]) if purged and asked else set()
    left = {place: one for number, (place, one) in enumerate(asked) if number not in gone}
    passages = []
    for place, line in enumerate(lines):
        one = left.get(place)
        if one is not None:
            passages.append(_passage(mark.turns, one, line, header.started if header else "", sources[one.role]))
        mark.pass_(line, mark.turns + (one is not None))
    return passages


def _header(transcript_file: TranscriptFile) -> transcript.TranscriptHeader | None:
    for line in transcript_file.lines():
        header = transcript.parse_header(line.data)
        return (
            transcript.TranscriptHeader(*map(_sound, (header.session, header.client, header.started, header.kept)))
            if header
            else None
        )
    return None


def _sound(text: str) -> str:
    """Without halves of characters, which JSON can spell and no database keeps."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _passage(number: int, said: transcript.TranscriptLine, line: Line, started: str, source: Source) -> Passage:
    time = _sound(said.time or started)
    return Passage(
        number, False, "", _sound(said.text), (line.number, line.number), None, (), source, time, None, None, None, None,
        _sound(said.id or ""), _sound(said.speaker or said.role), line.start,
    )  # fmt: skip


def _source(name: str, header: transcript.TranscriptHeader | None, role: str = "tool") -> Source:
    """Whose words a turn is; what came out of a file that somebody imported may be anybody's."""
    client, session = (header.client, header.session) if header else ("", name)
    origin = "import" if header is None or header.imported else ROLES[role]
    return Source(origin, None, " ".join(client.split("\n")) or None, " ".join(session.split("\n")))


def _doc(
    scope: str,
    name: str,
    stamp: FileId,
    mark: ReadPosition,
    passages: Iterable[Passage],
    header: transcript.TranscriptHeader | None,
) -> IndexEntry:
    problem = "" if header else "its first line is not a transcript's"
    some = tuple(passages)
    updated = max([passage.recorded for passage in some], default=header.started if header else "")
    session = header.session if header else name
    return IndexEntry(
        scope, "transcripts", name, stamp, str(mark), "session", session, "", session, None, (), updated, updated,
        _source(name, header), None, None, False, updated, (1, max(mark.lines, 1)), mark.turns,
        problem, some, (),
    )  # fmt: skip
