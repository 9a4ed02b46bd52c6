"""The transcript file of a session: JSON lines, a header and then one turn per line.

Memory must not store its own output: `strip_own_output` removes what Holdfast put into a conversation (H3).
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
from holdfast.models import Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ROLES = ("user", "assistant", "system", "tool")
VERSION = 1
TURN_BYTES = 1024 * 1024  # of a turn's text
TOOL_BYTES = 16 * 1024  # of what a tool was asked or said
CUT = " […]"
_WORD = 400  # characters: a longer one is cut in two

_ROLES = {
    "human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "gemini": "assistant",
    "developer": "system", "function": "tool", "info": "system", "error": "system", "warning": "system",
    **{role: role for role in ROLES},
}  # fmt: skip
_OWN = ("id", "role", "speaker", "time", "text")
# some clients hand it back escaped, for JSON or for markup
_NAMED = r'holdfast-memory id=(?:\\*"|&quot;)([0-9a-f]{12})(?:\\*"|&quot;)(?:>|&gt;)(?:\\n|\n)?'
_OPEN = pattern(r"(?:<|&lt;)" + _NAMED)
_CLOSE = pattern(r"(?:<|&lt;)/" + _NAMED)
_BRIEFED = pattern(  # the lines of a block whose end was cut off
    r"(?:(?:Notes (?:kept )?from earlier work|each line shows its scope|Standing notes:|Current facts:|"
    r"(?:Session|Project|Agent|Global) notes, from agents|Other (?:session|project|agent|global) notes, by key:|  |"
    r"- (?:\[(?:session|project|agent|global)\] |[^\n]{1,80} \(\d{4}-\d\d-\d\d|[a-z0-9-]{1,60}: |[^\n]+ \(since \d{4}-)|"
    r"Search with memory_recall|More: memory_recall|[\d,]+ (?:more|notes?|facts?) |"
    r"Nothing was left out)[^\n]*(?:\n|\Z))*"
)
_RENDERED = ("<!-- holdfast:begin -->", "<!-- holdfast:end -->")
_EMPTIED = pattern(r"<(hook_context|hook_result|system[-_]reminder)>\s*</\1>")
_SURROGATE = pattern("[\x00\ud800-\udfff]")
_EPOCH_MS = 10**11  # a number above this counts milliseconds


class TranscriptLine(Record):
    """A turn as it is given or stored in a line; `more` are the fields that are not part of the format."""

    role: str
    text: str
    id: str | None = None
    time: str | None = None
    speaker: str | None = None
    session: str | None = None
    more: Mapping[str, Any] = {}


LIVE = "live"


class TranscriptHeader(Record):
    """The first line of a transcript file."""

    session: str
    client: str
    started: str
    kept: str = ""  # live: as it was said, by a hook or by who logged it; else its turns came out of somebody's file

    @property
    def imported(self) -> bool:
        return self.kept != LIVE


# --- the lines --------------------------------------------------------------------------------------------------------


def render_header(header: TranscriptHeader) -> bytes:
    """Return the first line of a new file."""
    said = {name: value for name, value in header.as_dict().items() if name != "kept" or value}
    return _line({"holdfast": "transcript", "version": VERSION, **said})


def parse_header(line: bytes) -> TranscriptHeader | None:
    """Parse a header; return None if the line is not one or has an unknown version."""
    fields = _object(line)
    if fields is None or fields.get("holdfast") != "transcript" or fields.get("version") != VERSION:
        return None
    session, client, started = fields.get("session"), fields.get("client"), fields.get("started")
    if not isinstance(session, str) or not isinstance(client, str):
        return None
    return TranscriptHeader(
        session, client, started if isinstance(started, str) else "", LIVE if fields.get("kept") == LIVE else ""
    )


def render(said: TranscriptLine) -> bytes:
    """Return the line of a turn."""
    fields: dict[str, Any] = {"id": said.id, "role": said.role}
    if said.speaker is not None:
        fields["speaker"] = said.speaker
    if said.time is not None:
        fields["time"] = said.time
    return _line({**fields, "text": said.text, **said.more})


def purged_line(receipt: str) -> bytes:
    """Return the line that replaces a purged turn, so that other turns keep their line numbers."""
    return _line({"purged": receipt})


def parse(line: bytes) -> TranscriptLine | None:
    """Parse a turn; return None if the line is not one."""
    fields = _object(line)
    if fields is None or fields.get("role") not in ROLES:
        return None
    id, role, text = fields.get("id"), fields["role"], fields.get("text")
    speaker, time = fields.get("speaker"), fields.get("time")
    if not isinstance(id, str) or not id or not isinstance(text, str):
        return None
    if not isinstance(speaker, str | None) or not isinstance(time, str | None):
        return None
    more = {name: value for name, value in fields.items() if name not in _OWN}
    return TranscriptLine(role, text, id, time, speaker, None, more)


def is_complete_line(tail: bytes) -> bool:
    """Return whether the end of a file without a final newline is a complete line, as some editors leave it."""
    return _object(tail) is not None


def encode_id(id: str) -> bytes:
    """Return an id as it is encoded in a line."""
    return json.dumps(id, ensure_ascii=False).encode("utf-8", "replace")


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _line(fields: dict[str, Any]) -> bytes:
    try:
        return json.dumps(fields, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate in a field that is not ours
        return json.dumps(fields).encode() + b"\n"


# --- ids --------------------------------------------------------------------------------------------------------------


def safe_id(id: str) -> str:
    """Return an id if it is short and printable, or a digest of it."""
    fits = 0 < len(id) <= 200 and id.isprintable() and id.strip() == id
    return id if fits else "~" + digest(id.encode("utf-8", "surrogatepass"))[:24]


def derive_id(said: TranscriptLine, occurrence: int) -> str:
    """Return an id for a turn without one, made from its content and the number of earlier equal turns."""
    parts = (said.role, said.speaker or "", said.time or "", str(occurrence), said.text)
    return digest("\0".join(parts).encode("utf-8", "surrogatepass"))[:24]


def other_id(said: TranscriptLine) -> str:
    """Return an id for a turn whose id is taken by another text; it is the same each time."""
    return f"{said.id}~{digest(f'{said.role}{said.text}'.encode('utf-8', 'surrogatepass'))[:8]}"


def file_name(name: str) -> str:
    """Return the file name for a session or client: its name if it is a valid one, or a digest."""
    return name if is_name(name) else "~" + digest(name.encode("utf-8", "surrogatepass"))


def mark(*parts: str) -> int:
    """Return a 64-bit hash of these texts, never 0."""
    return int(digest("\0".join(parts).encode("utf-8", "surrogatepass"))[:16], 16) or 1


class CompactMap:
    """A hash table from 64-bit hashes to 32-bit numbers, 12 bytes per slot: it holds millions of turns in memory."""

    def __init__(self) -> None:
        self._marks, self._values = array("Q", bytes(8 * 1024)), array("I", bytes(4 * 1024))
        self._count = 0

    def get(self, mark: int) -> int | None:
        place = self._place(mark)
        return self._values[place] if self._marks[place] else None

    def put(self, mark: int, value: int) -> None:
        place = self._place(mark)
        if not self._marks[place]:
            self._count += 1
        self._marks[place], self._values[place] = mark, value & 0xFFFFFFFF
        if 3 * self._count > 2 * len(self._marks):
            self._grow()

    def _place(self, mark: int) -> int:
        last = len(self._marks) - 1
        place = mark & last
        while self._marks[place] not in (0, mark):
            place = (place + 1) & last
        return place

    def _grow(self) -> None:
        marks, values = self._marks, self._values
        self._marks, self._values = array("Q", bytes(16 * len(marks))), array("I", bytes(8 * len(marks)))
        for mark, value in zip(marks, values, strict=True):
            if mark:
                place = self._place(mark)
                self._marks[place], self._values[place] = mark, value


class KnownTurns:
    """The turns of a transcript file, known by id and text."""

    def __init__(self) -> None:
        self._texts = CompactMap()

    def add(self, said: TranscriptLine) -> None:
        self._texts.put(mark(said.id or ""), _check(said))

    def admit(self, said: TranscriptLine) -> TranscriptLine | None:
        """Return the turn to store, or None if it is already stored."""
        kept = self._texts.get(mark(said.id or ""))
        if kept == _check(said):
            return None
        if kept is not None:  # the id of another text
            said = said.replace(id=other_id(said))
            if self._texts.get(mark(said.id or "")) is not None:
                return None
        self.add(said)
        return said


def _check(said: TranscriptLine) -> int:
    return mark(said.role, said.text) & 0xFFFFFFFF


# --- what comes in ----------------------------------------------------------------------------------------------------


def parse_role(role: object, speaker: str | None = None) -> str | None:
    """Return one of the four roles, or None for an unknown one; without a role the speaker's name decides, else "user"."""
    if role is None:
        return _ROLES.get((speaker or "").lower(), "user")
    return _ROLES.get(role.lower()) if isinstance(role, str) else None


def parse_time(value: object) -> str | None:
    """Return the timestamp of a text, a date, or seconds or milliseconds since 1970."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 < value < 10**14:
            raise UsageError(f"time: {value!r} is not a date", "Give seconds since 1970, or 2026-03-27T10:00:00Z")
        return dates.timestamp(value / 1000 if value > _EPOCH_MS else value)
    return dates.parse_moment(value, "time")


def parse_time_or_none(value: object) -> str | None:
    """Do the same, but return None for an invalid date."""
    try:
        return parse_time(value)
    except UsageError:
        return None


def replace_surrogates(text: str) -> str:
    """Replace NUL and lone surrogates, which no stored text may contain."""
    if text.isascii() and "\0" not in text:
        return text
    return _SURROGATE.sub("\ufffd", text)


def truncate(text: str, most: int) -> str:
    """Return at most `most` bytes of a text, with a mark where text is missing.

    No word is split, because half a secret would not be recognized.
    """
    if len(text) * 4 <= most:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= most:
        return text
    kept = data[: most - len(CUT.encode())].decode("utf-8", "ignore")
    last = range(len(kept) - 1, max(len(kept) - _WORD, 0), -1)
    return kept[: next((place for place in last if kept[place].isspace()), len(kept))] + CUT


def strip_own_output(text: str) -> str:
    """Return the text without the blocks that Holdfast put into it: briefings, even truncated ones, and rendered files."""
    if "holdfast" not in text:
        return text
    bare = _without_rendered(_without_briefings(text))
    return _EMPTIED.sub("", bare).strip() if bare != text else text


def _without_briefings(text: str) -> str:
    ends: dict[str, list[int]] = {}
    for match in _CLOSE.finditer(text):
        ends.setdefault(match[1], []).append(match.end())
    kept, done = [], 0
    for match in _OPEN.finditer(text):
        if match.start() < done:
            continue  # within a block
        kept.append(text[done : match.start()])
        done = _end(text, match.end(), ends.get(match[1], []))
    return "".join([*kept, text[done:]])


def _end(text: str, start: int, ends: list[int]) -> int:
    """Return the end of a block: its closing mark, or the last line that looks like a briefing."""
    place = bisect_left(ends, start)
    if place < len(ends):
        return ends[place]
    match = _BRIEFED.match(text, start)
    return match.end() if match else start


def _without_rendered(text: str) -> str:
    begin, end = _RENDERED
    kept, done = [], 0
    while (start := text.find(begin, done)) >= 0 and (stop := text.find(end, start)) >= 0:
        kept.append(text[done:start])
        done = stop + len(end)
    return "".join([*kept, text[done:]])


def to_turn(said: TranscriptLine, header: TranscriptHeader, line: int, path: str) -> Turn:
    """Return the turn of a line for callers."""
    return Turn(
        said.id or "", said.role, said.speaker, said.time, said.text, header.session, header.client, line - 2,
        f"{path}:{line}-{line}",
    )  # fmt: skip


def assign_id(said: TranscriptLine, session: str, seen: CompactMap) -> TranscriptLine:
    """Return the turn with its own id, or one made from its content and the number of earlier equal turns."""
    if said.id:
        return said.replace(id=safe_id(said.id))
    words = mark(session, said.role, said.speaker or "", said.time or "", said.text)
    occurrence = seen.get(words) or 0
    seen.put(words, occurrence + 1)
    return said.replace(id=derive_id(said, occurrence))
