"""Parse and render the transcript file of a session: JSON lines, a header and then one turn per line.

Memory must not store its own output: `strip_own_output` removes the text that Holdfast put into a conversation.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left

from holdfast.base import dates
from holdfast.base.ids import digest, is_name
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import UsageError
from holdfast.models import ORIGINS, Turn, least_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ROLES = ("user", "assistant", "system", "tool")
VERSION = 1
TURN_BYTES = 1024 * 1024  # of a turn's text
TOOL_BYTES = 16 * 1024  # of the arguments or the result of a tool
CUT_MARK = " […]"
_MAX_WORD_CHARS = 400  # a longer word is split

_ROLE_NAMES = {
    "human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "gemini": "assistant",
    "developer": "system", "function": "tool", "info": "system", "error": "system", "warning": "system",
    **{role: role for role in ROLES},
}  # fmt: skip
_LINE_FIELDS = ("id", "role", "speaker", "time", "text", "agent", "origin")
_ROLE_ORIGINS = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}
# some clients return the tag escaped for JSON or for markup
_TAG_REST = r'holdfast-memory id=(?:\\*"|&quot;)([0-9a-f]{12})(?:\\*"|&quot;)(?:>|&gt;)(?:\\n|\n)?'
_BRIEFING_OPEN = pattern(r"(?:<|&lt;)" + _TAG_REST)
_BRIEFING_CLOSE = pattern(r"(?:<|&lt;)/" + _TAG_REST)
_BRIEFING_LINES = pattern(  # the lines of a block whose end was cut off
    r"(?:(?:Notes (?:kept )?from earlier work|[Ee]ach (?:line|section) shows its scope|Standing notes:|Current facts:|"
    r"(?:Session|Project|Agent|Global) notes, from agents|Other (?:session|project|agent|global) notes, by key:|  |"
    r"- (?:\[(?:session|project|agent|global)\] |[^\n]{1,80} \(\d{4}-\d\d-\d\d|[a-z0-9-]{1,60}: |[^\n]+ \(since \d{4}-)|"
    r"Search with memory_recall|More: memory_recall|[\d,]+ (?:more|notes?|facts?) |"
    r"Nothing was left out)[^\n]*(?:\n|\Z))*"
)
_RENDERED_MARKS = ("<!-- holdfast:begin -->", "<!-- holdfast:end -->")
_EMPTY_TAGS = pattern(r"<(hook_context|hook_result|system[-_]reminder)>\s*</\1>")
_SURROGATE = pattern("[\x00\ud800-\udfff]")
_EPOCH_MS = 10**11  # a number above this counts milliseconds


class TranscriptLine(Record):
    """A turn as a caller gives it or a line stores it; `extra_fields` are not part of the format.

    `agent` and `origin` are those of the token that the turn came with; None if it came without one, as from a hook.
    """

    role: str
    text: str
    id: str | None = None
    time: str | None = None
    speaker: str | None = None
    session: str | None = None
    extra_fields: Mapping[str, Any] = {}
    agent: str | None = None
    origin: str | None = None


LIVE = "live"


class TranscriptHeader(Record):
    """The first line of a transcript file."""

    session: str
    client: str
    started: str
    kept: str = ""  # "live" if a hook or the caller logged the turns as they were said; "" if they were imported from a file

    @property
    def imported(self) -> bool:
        return self.kept != LIVE


# --- the lines --------------------------------------------------------------------------------------------------------


def render_header(header: TranscriptHeader) -> bytes:
    """Return the first line of a new file."""
    fields = {name: value for name, value in header.as_dict().items() if name != "kept" or value}
    return _encode_line({"holdfast": "transcript", "version": VERSION, **fields})


def parse_header(line: bytes) -> TranscriptHeader | None:
    """Parse a header; return None if the line is not one or has an unknown version."""
    fields = _parse_object(line)
    if fields is None or fields.get("holdfast") != "transcript" or fields.get("version") != VERSION:
        return None
    session, client, started = fields.get("session"), fields.get("client"), fields.get("started")
    if not isinstance(session, str) or not isinstance(client, str):
        return None
    return TranscriptHeader(
        session, client, started if isinstance(started, str) else "", LIVE if fields.get("kept") == LIVE else ""
    )


def render_line(line: TranscriptLine) -> bytes:
    """Return the line of a turn."""
    fields: dict[str, Any] = {"id": line.id, "role": line.role}
    if line.speaker is not None:
        fields["speaker"] = line.speaker
    if line.time is not None:
        fields["time"] = line.time
    writer = {"agent": line.agent, "origin": line.origin} if line.origin is not None else {}
    return _encode_line({**fields, "text": line.text, **line.extra_fields, **writer})


def render_purged_line(receipt: str) -> bytes:
    """Return the line that replaces a purged turn, so that other turns keep their line numbers."""
    return _encode_line({"purged": receipt})


def parse_line(line: bytes) -> TranscriptLine | None:
    """Parse a turn; return None if the line is not one."""
    fields = _parse_object(line)
    if fields is None or fields.get("role") not in ROLES:
        return None
    id, role, text = fields.get("id"), fields["role"], fields.get("text")
    speaker, time = fields.get("speaker"), fields.get("time")
    if not isinstance(id, str) or not id or not isinstance(text, str):
        return None
    if not isinstance(speaker, str | None) or not isinstance(time, str | None):
        return None
    extra_fields = {name: value for name, value in fields.items() if name not in _LINE_FIELDS}
    agent, origin = _parse_writer(fields)
    return TranscriptLine(
        role, text, id=id, time=time, speaker=speaker, session=None, extra_fields=extra_fields, agent=agent, origin=origin
    )


def _parse_writer(fields: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the agent and the origin in a line; an origin that is not valid gets the least trust."""
    agent, origin = fields.get("agent"), fields.get("origin")
    if agent is None and origin is None:
        return None, None
    return (agent if isinstance(agent, str) and is_name(agent) else None), origin if origin in ORIGINS else ORIGINS[-1]


def origin_of(line: TranscriptLine, header: TranscriptHeader | None) -> str:
    """Return how far a turn is trusted: as its role and file say, and no more than the token that it came with."""
    said = "import" if header is None or header.imported else _ROLE_ORIGINS[line.role]
    return said if line.origin is None else least_trusted(said, line.origin)


def is_complete_line(tail: bytes) -> bool:
    """Return whether the end of a file without a final newline is a complete line, as some editors leave it."""
    return _parse_object(tail) is not None


def encode_id(id: str) -> bytes:
    """Return an id as it is encoded in a line."""
    return json.dumps(id, ensure_ascii=False).encode("utf-8", "replace")


def _parse_object(line: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _encode_line(fields: dict[str, Any]) -> bytes:
    try:
        return json.dumps(fields, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate in a field that is not ours
        return json.dumps(fields).encode() + b"\n"


# --- ids --------------------------------------------------------------------------------------------------------------


def make_safe_id(id: str) -> str:
    """Return an id if it is short and printable, or a digest of it."""
    fits = 0 < len(id) <= 200 and id.isprintable() and id.strip() == id
    return id if fits else "~" + digest(id.encode("utf-8", "surrogatepass"))[:24]


def derive_id(line: TranscriptLine, occurrence: int) -> str:
    """Return an id for a turn without one, made from its content and the number of earlier equal turns."""
    parts = (line.role, line.speaker or "", line.time or "", str(occurrence), line.text)
    return digest("\0".join(parts).encode("utf-8", "surrogatepass"))[:24]


def derive_other_id(line: TranscriptLine) -> str:
    """Return an id for a turn whose id is taken by another text; it is the same each time."""
    return f"{line.id}~{digest(f'{line.role}{line.text}'.encode('utf-8', 'surrogatepass'))[:8]}"


def make_file_name(name: str) -> str:
    """Return the file name for a session or client: its name if it is a valid one, or a digest."""
    return name if is_name(name) else "~" + digest(name.encode("utf-8", "surrogatepass"))


def hash_texts(*parts: str) -> int:
    """Return a 64-bit hash of these texts, never 0."""
    return int(digest("\0".join(parts).encode("utf-8", "surrogatepass"))[:16], 16) or 1


class CompactMap:
    """A hash table from 64-bit hashes to 32-bit numbers, 12 bytes per slot: it holds millions of turns in memory."""

    def __init__(self) -> None:
        self._hashes, self._values = array("Q", bytes(8 * 1024)), array("I", bytes(4 * 1024))
        self._count = 0

    def get(self, hash: int) -> int | None:
        slot = self._find_slot(hash)
        return self._values[slot] if self._hashes[slot] else None

    def put(self, hash: int, value: int) -> None:
        slot = self._find_slot(hash)
        if not self._hashes[slot]:
            self._count += 1
        self._hashes[slot], self._values[slot] = hash, value & 0xFFFFFFFF
        if 3 * self._count > 2 * len(self._hashes):
            self._grow()

    def _find_slot(self, hash: int) -> int:
        last = len(self._hashes) - 1
        slot = hash & last
        while self._hashes[slot] not in (0, hash):
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        hashes, values = self._hashes, self._values
        self._hashes, self._values = array("Q", bytes(16 * len(hashes))), array("I", bytes(8 * len(hashes)))
        for hash, value in zip(hashes, values, strict=True):
            if hash:
                slot = self._find_slot(hash)
                self._hashes[slot], self._values[slot] = hash, value


class KnownTurns:
    """The turns of a transcript file, known by id and text."""

    def __init__(self) -> None:
        self._texts = CompactMap()

    def add(self, line: TranscriptLine) -> None:
        self._texts.put(hash_texts(line.id or ""), _text_hash(line))

    def add_if_new(self, line: TranscriptLine) -> TranscriptLine | None:
        """Return the turn to store, or None if it is already stored."""
        known_hash = self._texts.get(hash_texts(line.id or ""))
        if known_hash == _text_hash(line):
            return None
        if known_hash is not None:  # the id belongs to another text
            line = line.replace(id=derive_other_id(line))
            if self._texts.get(hash_texts(line.id or "")) is not None:
                return None
        self.add(line)
        return line


def _text_hash(line: TranscriptLine) -> int:
    return hash_texts(line.role, line.text) & 0xFFFFFFFF


# --- values from callers ----------------------------------------------------------------------------------------------


def parse_role(role: object, speaker: str | None = None) -> str | None:
    """Return one of the four roles, or None for an unknown one; without a role the speaker's name decides, else "user"."""
    if role is None:
        return _ROLE_NAMES.get((speaker or "").lower(), "user")
    return _ROLE_NAMES.get(role.lower()) if isinstance(role, str) else None


def parse_time(value: object) -> str | None:
    """Return the timestamp of a text, a date, or seconds or milliseconds since 1970."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 < value < 10**14:
            raise UsageError(f"time: {value!r} is not a date", "Give seconds since 1970, or 2026-03-27T10:00:00Z")
        return dates.format_timestamp(value / 1000 if value > _EPOCH_MS else value)
    return dates.parse_moment(value, "time")


def parse_time_or_none(value: object) -> str | None:
    """Return a timestamp like `parse_time`, but None for an invalid date."""
    try:
        return parse_time(value)
    except UsageError:
        return None


def replace_surrogates(text: str) -> str:
    """Replace NUL and lone surrogates, which no stored text may contain."""
    if text.isascii() and "\0" not in text:
        return text
    return _SURROGATE.sub("\ufffd", text)


def truncate(text: str, max_bytes: int) -> str:
    """Return at most `most` bytes of a text, with a mark where text is missing.

    No word is split, because half a secret would not be recognized.
    """
    if len(text) * 4 <= max_bytes:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return text
    start = data[: max_bytes - len(CUT_MARK.encode())].decode("utf-8", "ignore")
    last = range(len(start) - 1, max(len(start) - _MAX_WORD_CHARS, 0), -1)
    return start[: next((position for position in last if start[position].isspace()), len(start))] + CUT_MARK


def strip_own_output(text: str) -> str:
    """Return the text without the blocks that Holdfast put into it: briefings, even truncated ones, and rendered files."""
    if "holdfast" not in text:
        return text
    stripped = _remove_rendered(_remove_briefings(text))
    return _EMPTY_TAGS.sub("", stripped).strip() if stripped != text else text


def _remove_briefings(text: str) -> str:
    ends: dict[str, list[int]] = {}
    for match in _BRIEFING_CLOSE.finditer(text):
        ends.setdefault(match[1], []).append(match.end())
    kept, position = [], 0
    for match in _BRIEFING_OPEN.finditer(text):
        if match.start() < position:
            continue  # within a block
        kept.append(text[position : match.start()])
        position = _find_briefing_end(text, match.end(), ends.get(match[1], []))
    return "".join([*kept, text[position:]])


def _find_briefing_end(text: str, start: int, ends: list[int]) -> int:
    """Return the end of a block: its closing mark, or the last line that looks like a briefing."""
    position = bisect_left(ends, start)
    if position < len(ends):
        return ends[position]
    match = _BRIEFING_LINES.match(text, start)
    return match.end() if match else start


def _remove_rendered(text: str) -> str:
    begin, end = _RENDERED_MARKS
    kept, position = [], 0
    while (start := text.find(begin, position)) >= 0 and (stop := text.find(end, start)) >= 0:
        kept.append(text[position:start])
        position = stop + len(end)
    return "".join([*kept, text[position:]])


def to_turn(line: TranscriptLine, header: TranscriptHeader, line_number: int, path: str) -> Turn:
    """Return the turn of a line for callers."""
    return Turn(
        id=line.id or "",
        role=line.role,
        speaker=line.speaker,
        time=line.time,
        text=line.text,
        session=header.session,
        client=header.client,
        number=line_number - 2,
        citation=f"{path}:{line_number}-{line_number}",
        agent=line.agent,
        origin=origin_of(line, header),
    )


def assign_id(line: TranscriptLine, session: str, seen: CompactMap) -> TranscriptLine:
    """Return the turn with its own id, or one made from its content and the number of earlier equal turns."""
    if line.id:
        return line.replace(id=make_safe_id(line.id))
    content_hash = hash_texts(session, line.role, line.speaker or "", line.time or "", line.text)
    occurrence = seen.get(content_hash) or 0
    seen.put(content_hash, occurrence + 1)
    return line.replace(id=derive_id(line, occurrence))
