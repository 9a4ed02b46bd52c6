"""Index entries of transcripts: one passage for each turn. Of a transcript that grew, only the new lines are read."""

from __future__ import annotations

import zlib

from holdfast.base.ids import FileId
from holdfast.formats import transcript
from holdfast.index.entries import IndexEntry, Passage, unreadable_entry
from holdfast.models import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.context.purge_filter import PurgeFilter
    from holdfast.index.interface import Index
    from holdfast.store.interface import Entry, Line, Transcript

    _Sources = dict[tuple[str, str | None, str | None], Source]  # by role, agent and origin

_BATCH_TURNS = 2_000
_BATCH_BYTES = 8 * 1024 * 1024


class ReadPosition:
    """The read position in a transcript: bytes, lines, turns, and a checksum of the last line to see if it changed."""

    def __init__(self, text: str = "") -> None:
        parts = [int(part) for part in text.split(":")] if text else [0, 0, 0, 0]
        self.offset, self.lines, self.turns, self.checksum = parts

    def __str__(self) -> str:
        return f"{self.offset}:{self.lines}:{self.turns}:{self.checksum}"

    def advance(self, line: Line, turns: int) -> None:
        """Move past a line; `turns` is the number of turns up to there."""
        self.offset, self.lines, self.turns = line.end, line.number, turns
        self.checksum = zlib.crc32(line.data[-256:])


def index_transcript(index: Index, scope: str, transcript_file: Transcript, entry: Entry, purge_filter: PurgeFilter) -> None:
    """Index a transcript; of one that only grew, the new turns."""
    if not entry.regular:
        unreadable = unreadable_entry(
            scope, "transcripts", entry.name, entry.file_id, problem="a link or special file; never followed"
        )
        index.put([(unreadable, None)], lambda _: True)
        return
    known = index.file_digest(scope, "transcripts", entry.name)
    for part in read_entries(scope, transcript_file, entry.file_id, known, purge_filter):
        index.put([(part, None)], lambda one: _is_same_or_grown(one.file_id, transcript_file.file_id()))


def _is_same_or_grown(known: FileId, current: FileId | None) -> bool:
    """Return whether a file is the one described, or has only grown: a purge replaces it by another file."""
    return current is not None and current.inode == known.inode and current.size >= known.size


def read_entries(
    scope: str, transcript_file: Transcript, file_id: FileId, known: tuple[int, str] | None,
    purge_filter: PurgeFilter | None = None,
) -> Iterator[IndexEntry]:  # fmt: skip
    """Yield the transcript in parts that can be indexed one after the other, without turns that were purged.

    `known` are the inode and the read position of the last time.
    """
    from holdfast.store.interface import Position

    position = ReadPosition(known[1]) if known and known[0] == file_id.inode and known[1] else ReadPosition()
    grew = file_id.size > position.offset  # a file that changed and did not grow was changed in the middle
    if position.offset and not (grew and _ends_as_known(transcript_file, position)):
        position = ReadPosition()
    header = _header(transcript_file)
    sources: _Sources = {}
    batch: list[Line] = []
    size = 0
    for line in transcript_file.read_lines(Position(position.offset, position.lines)):
        if line.end > file_id.size:
            break  # lines that were added since are read by the next refresh
        batch.append(line)
        size += len(line.data)
        if len(batch) >= _BATCH_TURNS or size >= _BATCH_BYTES:
            passages = _passages(batch, position, header, transcript_file.name, sources, purge_filter)
            yield _entry(
                scope,
                transcript_file.name,
                file_id=FileId(file_id.inode, 0, position.offset),
                position=position,
                passages=passages,
                header=header,
            )
            batch, size = [], 0
    passages = _passages(batch, position, header, transcript_file.name, sources, purge_filter)
    yield _entry(scope, transcript_file.name, file_id=file_id, position=position, passages=passages, header=header)


def _ends_as_known(transcript_file: Transcript, position: ReadPosition) -> bool:
    return transcript_file.matches_line_before(position.offset, lambda last: zlib.crc32(last[-256:]) == position.checksum)


def _passages(
    lines: list[Line], position: ReadPosition, header: transcript.TranscriptHeader | None, name: str, sources: _Sources,
    purge_filter: PurgeFilter | None,
) -> list[Passage]:  # fmt: skip
    """Return a passage for each turn of these lines, and move the position past them."""
    parsed = [transcript.parse_line(line.data) for line in lines]
    session = header.session if header else ""
    turns = [(number, turn) for number, turn in enumerate(parsed) if turn is not None]
    purged: set[int] = set()
    if purge_filter and turns:
        purged = purge_filter.find_purged_turns([(session, turn.id or "", turn.text) for _, turn in turns])
    kept = {number: turn for turn_number, (number, turn) in enumerate(turns) if turn_number not in purged}
    passages = []
    for number, line in enumerate(lines):
        turn = kept.get(number)
        if turn is not None:
            started = header.started if header else ""
            writer = turn.role, turn.agent, turn.origin
            if writer not in sources:
                sources[writer] = _source(name, header, transcript.origin_of(turn, header), turn.agent)
            passages.append(_passage(position.turns, turn, line, started, sources[writer]))
        position.advance(line, position.turns + (turn is not None))
    return passages


def _header(transcript_file: Transcript) -> transcript.TranscriptHeader | None:
    for line in transcript_file.read_lines():
        header = transcript.parse_header(line.data)
        if header is None:
            return None
        fields = (header.session, header.client, header.started, header.kept)
        return transcript.TranscriptHeader(*map(_replace_surrogates, fields))
    return None


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can spell and no database stores."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _passage(number: int, turn: transcript.TranscriptLine, line: Line, started: str, source: Source) -> Passage:
    return Passage(
        seq=number,
        past=False,
        names="",
        text=_replace_surrogates(turn.text),
        lines=(line.number, line.number),
        type=None,
        tags=(),
        source=source,
        recorded=_replace_surrogates(turn.time or started),
        turn=_replace_surrogates(turn.id or ""),
        speaker=_replace_surrogates(turn.speaker or turn.role),
        offset=line.start,
    )


def _source(name: str, header: transcript.TranscriptHeader | None, origin: str, agent: str | None = None) -> Source:
    """Return the source of a turn or of the whole file."""
    client, session = (header.client, header.session) if header else ("", name)
    return Source(origin, agent, " ".join(client.split("\n")) or None, " ".join(session.split("\n")))


def _entry(
    scope: str,
    name: str,
    *,
    file_id: FileId,
    position: ReadPosition,
    passages: Iterable[Passage],
    header: transcript.TranscriptHeader | None,
) -> IndexEntry:
    problem = "" if header else "its first line is not the header of a transcript"
    indexed = tuple(passages)
    updated = max([passage.recorded for passage in indexed], default=header.started if header else "")
    session = header.session if header else name
    return IndexEntry(
        scope=scope,
        part="transcripts",
        name=name,
        file_id=file_id,
        digest=str(position),
        kind="session",
        key=session,
        note_id="",
        title=session,
        type=None,
        tags=(),
        created=updated,
        updated=updated,
        source=_source(name, header, "import" if header is None or header.imported else "tool"),
        valid_from=None,
        valid_to=None,
        pinned=False,
        touched=updated,
        lines=(1, max(position.lines, 1)),
        versions=position.turns,
        problem=problem,
        passages=indexed,
        facts=(),
    )
