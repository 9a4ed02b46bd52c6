"""Compose what an agent that keeps continuity reads when it starts, in a fixed order and within a budget.

Heartbeat, messages of the operator, live state, open loops, identity and goals. Like a briefing it is a block of data between
marks that no file can forge.
"""

from __future__ import annotations

from holdfast.base.dates import format_timestamp
from holdfast.base.ids import digest
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import HoldfastError, Template, UsageError, command, field
from holdfast.safety import validate
from holdfast.safety.escape import CUT_MARK, escape_text
from holdfast.verbs import scaffold
from holdfast.verbs.brief import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.errors import Wording
    from holdfast.models import Scope
    from holdfast.store.interface import Tree

DEFAULT_CHARS = 6000
MIN_CHARS = 1500
INBOX, OUTBOX = "operator-inbox.jsonl", "operator-outbox.jsonl"
_ORDER = (
    ("Heartbeat", "HEARTBEAT.md"),
    ("Operator inbox", INBOX),
    ("Live state", "memory/RUNTIME_REALITY.md"),  # before any prose that may be older
    ("Open loops", "memory/OPEN_LOOPS.md"),
    ("Identity", "memory/CORE_MEMORY.md"),
    ("Goals", "memory/GOALS.md"),
)
_FURTHER = ("memory/WORLD_MODEL.md", "memory/CAPABILITIES.md")
_RESEARCH = "memory/research"
_MIN_LINE = 60  # characters that the first line of a part gets, if it is that long
_COMMENT = pattern(r"(?s)<!--.*?-->")
_TEXT_FIELDS = ("text", "body", "content", "message")  # of a message in the operator's inbox
_TIME_FIELDS = ("time", "ts", "at", "created")
_SENDER_FIELDS = ("from", "sender", "author")
_ANSWER_FIELDS = ("re", "reply_to", "in_reply_to")
_MESSAGE_CHARS = 500  # of one message of the operator
_READ_STATUSES = ("read", "done", "closed", "handled", "answered")  # as a status; the first also as a mark of its own


class Part(Record):
    """The lines of one file: how many there are, and how many were left out."""

    name: str
    path: str
    date: str
    lines: int
    left_out: int


class Boot(Record):
    """The block, the scope of its files, and what is not in it. Without such files the text is empty."""

    text: str
    scope: Scope | None = None
    parts: tuple[Part, ...] = ()
    left_out: int = 0  # lines
    further: tuple[str, ...] = ()  # files and folders that have something and are not part of a start-up
    disabled: bool = False


class _Section(Record):
    """The escaped lines of one file, and its place in the order."""

    name: str
    path: str
    date: str
    lines: tuple[str, ...]
    scope: str

    def head(self, shown: int) -> str:
        """Return the line above them."""
        of = f", {shown} of {len(self.lines)} lines" if shown < len(self.lines) else ""
        return f"- [{self.scope}] {self.name}, {self.path} ({self.date or 'no date'}{of}):"

    @property
    def _head_chars(self) -> int:
        return len(self.head(len(self.lines) - 1)) + 1  # the longest it can be

    @property
    def full(self) -> int:
        """Return the characters of all lines, with the head and newlines."""
        return self._head_chars + sum([len(line) + 3 for line in self.lines])

    @property
    def least(self) -> int:
        """Return the minimum number of characters with any content."""
        return min(self.full, self._head_chars + min(len(self.lines[0]), _MIN_LINE) + len(CUT_MARK) + 3)

    def fit(self, size: int) -> list[str]:
        """Return as many whole lines as fit; of a first line that is too long, its beginning."""
        room, kept = size - self._head_chars, []
        for line in self.lines:
            room -= len(line) + 3
            if room < 0:
                break
            kept.append(line)
        return kept or [self.lines[0][: room + len(self.lines[0]) - len(CUT_MARK)].rstrip() + CUT_MARK]


def boot(context: Context, kind: str | None, cap: int | None, scaffolds: str | Iterable[str] | None) -> Boot:
    """Implement `Memory.boot`; first create the files of scaffolds that the client or the settings name."""
    chars, wanted = check_cap(cap), scaffold.parse_names(context.config.scaffolds, scaffolds)
    if not context.config.enabled:
        return Boot("", disabled=True)
    for name in wanted:
        scaffold.create(context, name, scaffold.choose_scope(context, kind))
    found = [(scope, sections) for scope in _list_scopes(context, kind) if (sections := _read_sections(context, scope))]
    if not found:
        return Boot("")
    scope, sections = next((one for one in found if any(section.date for section in one[1])), found[0])
    return _compose(sections, scope, _list_further(context.store.tree(scope.folder)), chars, context.words)


def check_cap(cap: int | None) -> int:
    """Return the budget in characters; raise UsageError if the cap is too small."""
    if cap is None:
        return DEFAULT_CHARS
    if not isinstance(cap, int) or isinstance(cap, bool) or cap < MIN_CHARS:
        fix = f"Use {MIN_CHARS:,} to {render.MOST_CHARS:,}"
        raise UsageError(
            Template(field("cap"), f" must be {MIN_CHARS:,} to {render.MOST_CHARS:,} characters, not {cap!r}"), fix
        )
    return min(cap, render.MOST_CHARS)


# --- reading ----------------------------------------------------------------------------------------------------------


def _list_scopes(context: Context, kind: str | None) -> list[Scope]:
    """Return the scopes to look in: by default the agent's own first, since this is about its identity."""
    scopes = context.visible_scopes(kind)
    return sorted(scopes, key=lambda scope: scope.kind != "agent") if kind is None else scopes


def _read_sections(context: Context, scope: Scope) -> list[_Section]:
    tree = context.store.tree(scope.folder)
    return [section for name, path in _ORDER if (section := _read_section(tree, scope, name, path))]


def _read_section(tree: Tree, scope: Scope, name: str, path: str) -> _Section | None:
    """Return the content of a file, or why it cannot be read; None if it has none."""
    try:
        path, text, date = _read_file(tree, path)
        text = validate.hide_secrets(text)
        lines = _list_unread(text, _read_outbox(tree)) if path == INBOX else _significant_lines(text)
    except HoldfastError as error:
        date, lines = "", [f"cannot be read: {error.message}"]
    if not lines:
        return None
    escaped = escape_text("\n".join(lines)).split("\n")  # as one text: a tag may be split over lines
    return _Section(name=name, path=escape_text(path), date=date, lines=tuple(escaped), scope=scope.kind)


def _read_outbox(tree: Tree) -> str:
    """Return the answers to the operator; if they cannot be read, no message counts as answered."""
    try:
        return _read_file(tree, OUTBOX)[1]
    except HoldfastError:
        return ""


def _read_file(tree: Tree, path: str) -> tuple[str, str, str]:
    """Return the real path of a file (it may be at the top of the tree), its text, and the day of its last change."""
    for candidate in dict.fromkeys((path, path.rpartition("/")[2])):
        content = tree.read(tuple(candidate.split("/")))
        if content is not None:
            return candidate, content.text().removeprefix("\ufeff"), format_timestamp(content.modified)[:10]
    return path, "", ""


def _significant_lines(text: str) -> list[str]:
    """Return the lines that say something: no comments, no blank lines, no heading with nothing below it."""
    kept: list[str] = []
    below = 0  # the depth of the heading that was kept last, from the end; a plain line is deeper than all
    for line in reversed(_COMMENT.sub("", text).split("\n")):
        if not line.strip(" \t\r"):
            continue
        depth = _heading_depth(line)
        if not depth or below > depth:
            kept.append(line.rstrip(" \t\r"))
            below = depth or 99
    return kept[::-1]


def _heading_depth(line: str) -> int:
    """Return the depth of a heading; 0 for any other line."""
    marks = len(line) - len(line.lstrip("#"))
    return marks if 1 <= marks <= 6 and line[marks : marks + 1] in ("", " ") else 0


def _list_further(tree: Tree) -> tuple[str, ...]:
    """Return the other files and folders of the agent that say something."""
    found = []
    for path in _FURTHER:
        try:
            real_path, text, _ = _read_file(tree, path)
        except HoldfastError:
            continue
        if _significant_lines(text):
            found.append(real_path)
    try:
        research = tree.list_names(tuple(_RESEARCH.split("/")))
    except HoldfastError:
        research = None
    return (*found, f"{_RESEARCH}/") if research else tuple(found)


# --- messages of the operator -----------------------------------------------------------------------------------------


def _list_unread(inbox: str, outbox: str = "") -> list[str]:
    """Return the messages that are neither marked as read nor answered, newest first. A line that is not JSON is a message."""
    answered = _answered_ids(outbox) if inbox.strip() else set()
    messages = [
        _format_message(line, number, answered) for number, line in enumerate(inbox.split("\n"), 1) if line.strip("\r \t\0")
    ]
    return [line for line in reversed(messages) if line]


def _format_message(line: str, number: int, answered: set[str]) -> str:
    """Return a message as one line; "" if it was read or answered."""
    message = _parse_json(line)
    if not isinstance(message, dict):
        return f"- line {number}: {_shorten(message if isinstance(message, str) else line)}"
    id = _first_field(message, ("id",)) or digest(line.strip().encode("utf-8", "replace"))[:8]
    if id in answered or _is_read(message):
        return ""
    about = ", ".join(
        [word for word in (_first_field(message, _TIME_FIELDS), _first_field(message, _SENDER_FIELDS) or "operator") if word]
    )
    return f"- {_join_lines(id)[:60]} ({_join_lines(about)[:80]}): {_shorten(_first_field(message, _TEXT_FIELDS) or line)}"


def _is_read(message: dict[str, Any]) -> bool:
    return bool(message.get("read") or message.get("read_at")) or str(message.get("status")).lower() in _READ_STATUSES


def _answered_ids(outbox: str) -> set[str]:
    """Return the ids of the messages that the answers name."""
    found = [message for line in outbox.split("\n") if isinstance(message := _parse_json(line), dict)]
    return {id for message in found if (id := _first_field(message, _ANSWER_FIELDS))}


def _parse_json(line: str) -> Any:
    """Return the value of a line of JSON; None if it is not JSON."""
    if not line.strip():
        return None
    import json

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _first_field(message: dict[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of these fields that is a non-empty string or a number, as a string."""
    values = (message.get(name) for name in names)
    plain = (str(value).strip() for value in values if isinstance(value, str | int | float) and not isinstance(value, bool))
    return next((value for value in plain if value), "")


def _shorten(text: str) -> str:
    flat = _join_lines(text)
    return flat if len(flat) <= _MESSAGE_CHARS else flat[:_MESSAGE_CHARS].rstrip() + " […]"


def _join_lines(text: str) -> str:
    return " / ".join([line for row in text.split("\n") if (line := row.strip(" \t\r"))])


# --- composing --------------------------------------------------------------------------------------------------------


def _compose(sections: list[_Section], scope: Scope, further: tuple[str, ...], chars: int, words: Wording) -> Boot:
    """Give each section a first line while there is space, then share the rest: the longest are cut first."""
    everything = [(section.path, len(section.lines)) for section in sections]
    room = chars - len(_frame([], scope, _describe_missing(everything, further), words))
    fitting = list(sections)
    while len(fitting) > 1 and sum([section.least for section in fitting]) > room:
        fitting.pop()
    sizes = _share_room(fitting, room)
    rows: list[str] = []
    parts: list[Part] = []
    for section in sections:
        kept = section.fit(sizes[section.path]) if section.path in sizes else []
        if kept:
            rows += [section.head(len(kept)), *["  " + line for line in kept]]
        lines = len(section.lines)
        parts.append(Part(name=section.name, path=section.path, date=section.date, lines=lines, left_out=lines - len(kept)))
    cut = [(part.path, part.left_out) for part in parts if part.left_out]
    return Boot(
        text=_frame(rows, scope, _describe_missing(cut, further), words),
        scope=scope,
        parts=tuple(parts),
        left_out=sum([lines for _, lines in cut]),
        further=further,
    )


def _share_room(sections: list[_Section], room: int) -> dict[str, int]:
    """Return the characters of each section by path: short ones are whole, long ones get an equal share of the rest."""
    spare = max(room - sum([section.least for section in sections]), 0)
    extras = render.share([section.full - section.least for section in sections], spare)
    return {section.path: section.least + extra for section, extra in zip(sections, extras, strict=True)}


def _describe_missing(cut: list[tuple[str, int]], further: tuple[str, ...]) -> str:
    """Return the text about what is not in the block: lines of files, and further files."""
    words = "Nothing was left out; "
    if cut:
        lines = ", ".join([f"{path} ({count})" for path, count in cut])
        words = f"{sum([count for _, count in cut])} more left out; lines of {lines}; "
    return words + (f"other files: {', '.join(further)}; " if further else "")


def _frame(rows: list[str], scope: Scope, missing: str, words: Wording) -> str:
    return render.frame(
        "each section shows its scope, file and date. If two disagree, trust the live state.",
        rows,
        Template(missing, "read a file with ", command("read {}", f"{scope.folder}/files/PATH"), ".").render(words),
    )
