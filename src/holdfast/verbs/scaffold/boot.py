"""Compose what an agent that keeps continuity reads when it starts, in a fixed order and within a budget.

Heartbeat, messages of the operator, live state, open loops, identity and goals. Like a briefing it is a block of data between
marks that no file can forge.
"""

from __future__ import annotations

from holdfast.base.dates import format_timestamp
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import HoldfastError, Template, UsageError, command, field
from holdfast.safety import validate
from holdfast.safety.escape import CUT_MARK, escape_text
from holdfast.verbs import operator_messages, scaffold
from holdfast.verbs.brief import render
from holdfast.verbs.operator_messages import INBOX, OUTBOX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.context.caller import Context
    from holdfast.errors import Wording
    from holdfast.models import Scope
    from holdfast.store.interface import Tree
    from holdfast.verbs.operator_messages import Line

DEFAULT_CHARS = 6000
MIN_CHARS = 1500
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
_MESSAGE_CHARS = 500  # of one message of the operator


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


class _Unread(Record):
    """A message of the operator as one line, and whether that is all of it."""

    id: str
    line: str
    is_whole: bool


class _Section(Record):
    """The escaped lines of one file, and its place in the order; of an inbox also its messages and its scope."""

    name: str
    path: str
    date: str
    lines: tuple[str, ...]
    scope: str
    messages: tuple[_Unread, ...] = ()
    inbox: Scope | None = None

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


def boot(
    context: Context, kind: str | None, cap: int | None, scaffolds: str | Iterable[str] | None, remember: bool = True
) -> Boot:
    """Implement `Memory.boot`."""
    answer, shown = compose(context, kind, cap, scaffolds)
    if remember:
        mark_shown(context, shown)
    return answer


def compose(
    context: Context, kind: str | None, cap: int | None, scaffolds: str | Iterable[str] | None
) -> tuple[Boot, dict[Scope, list[str]]]:
    """Return the block, and by scope the ids of the messages that it shows whole, for `mark_shown`.

    First create the files of scaffolds that the client or the settings name.
    """
    chars, wanted = check_cap(cap), scaffold.parse_names(context.config.scaffolds, scaffolds)
    if not context.config.enabled:
        return Boot("", disabled=True), {}
    for name in wanted:
        scaffold.create(context, name, scaffold.choose_scope(context, kind))
    found = [(scope, sections) for scope in _list_scopes(context, kind) if (sections := _read_sections(context, scope))]
    if not found:
        return Boot(""), {}
    scope, sections = _choose_tree(found)
    sections = _add_messages(sections, [section for other, theirs in found if other != scope for section in theirs])
    further = _list_further(context.store.tree(scope.folder))
    answer, lines = _fill(sections, scope, further, chars, context.words)
    return answer, _find_shown(sections, lines)


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


def _choose_tree(found: list[tuple[Scope, list[_Section]]]) -> tuple[Scope, list[_Section]]:
    """Return the first scope with files that can be read; one that has only messages does not hide the files of the next."""
    with_files = [one for one in found if any(section.date and not section.messages for section in one[1])]
    readable = [one for one in found if any(section.date for section in one[1])]
    return [*with_files, *readable, *found][0]


def _add_messages(sections: list[_Section], others: list[_Section]) -> list[_Section]:
    """Add the unread messages of other scopes, which have the path of their file in the store."""
    added = [one.replace(path=f"{one.inbox.folder}/files/{INBOX}") for one in others if one.inbox and one.messages]
    first = [name for name, _ in _ORDER[:2]]
    place = len([section for section in sections if section.name in first])
    return [*sections[:place], *added, *sections[place:]]


def _read_sections(context: Context, scope: Scope) -> list[_Section]:
    tree = context.store.tree(scope.folder)
    return [section for name, path in _ORDER if (section := _read_section(tree, scope, name, path))]


def _read_section(tree: Tree, scope: Scope, name: str, path: str) -> _Section | None:
    """Return the content of a file, or why it cannot be read; None if it has none."""
    messages: list[_Unread] = []
    try:
        path, raw, date = _read_file(tree, path)
        text = validate.hide_secrets(raw)
        if path == INBOX:
            messages = _list_unread(raw, text, _read_outbox(tree))
        lines = [message.line for message in messages] if path == INBOX else _significant_lines(text)
    except HoldfastError as error:
        date, lines = "", [f"cannot be read: {error.message}"]
    if not lines:
        return None
    escaped = escape_text("\n".join(lines)).split("\n")  # as one text: a tag may be split over lines
    return _Section(
        name=name, path=escape_text(path), date=date, lines=tuple(escaped), scope=scope.kind, messages=tuple(messages),
        inbox=scope if messages else None,
    )  # fmt: skip


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


def _list_unread(raw: str, shown: str, outbox: str) -> list[_Unread]:
    """Return the messages of an inbox that are neither marked as read nor answered, newest first; `shown` is the inbox
    without secrets."""
    lines, clean = operator_messages.parse_lines(raw), operator_messages.parse_lines(shown)
    answered = {line.re for line in operator_messages.parse_lines(outbox)}
    ids = [line.id for line in lines] if len(lines) == len(clean) else [line.id for line in clean]
    return [
        _Unread(id, *_format_message(line))
        for id, line in reversed([*zip(ids, clean, strict=True)])
        if not line.read and id not in answered
    ]


def _format_message(line: Line) -> tuple[str, bool]:
    """Return a message as one line, and whether that is all of it."""
    text = _join_lines(line.text)
    cut = text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS].rstrip() + " […]"
    if not line.is_object:
        return f"- line {line.number}: {cut}", cut == text
    about = ", ".join([word for word in (line.time, line.sender or operator_messages.OPERATOR) if word])
    return f"- {_join_lines(line.id)[:60]} ({_join_lines(about)[:80]}): {cut}", cut == text


def _join_lines(text: str) -> str:
    return " / ".join([line for row in text.split("\n") if (line := row.strip(" \t\r"))])


def _find_shown(sections: list[_Section], lines: dict[str, list[str]]) -> dict[Scope, list[str]]:
    """Return the ids of the messages that are whole in these lines of the sections."""
    shown: dict[Scope, list[str]] = {}
    for section in sections:
        rows = zip(section.messages, section.lines, lines.get(section.path, []), strict=False)
        ids = [message.id for message, whole, line in rows if message.is_whole and line == whole]
        if section.inbox is not None and ids:
            shown[section.inbox] = ids
    return shown


def mark_shown(context: Context, shown: dict[Scope, list[str]]) -> None:
    """Mark messages as read. If that fails, they are shown again: none is lost."""
    if context.config.read_only:
        return
    for scope, ids in shown.items():
        try:
            operator_messages.mark_read(context, scope, INBOX, ids)
        except HoldfastError:
            continue


# --- composing --------------------------------------------------------------------------------------------------------


def _fill(
    sections: list[_Section], scope: Scope, further: tuple[str, ...], chars: int, words: Wording
) -> tuple[Boot, dict[str, list[str]]]:
    """Return the block and the lines in it by path. Each section gets a first line while there is space, then the rest is
    shared: the longest are cut first."""
    everything = [(section.path, len(section.lines)) for section in sections]
    room = chars - len(_frame([], scope, _describe_missing(everything, further), words))
    fitting = list(sections)
    while len(fitting) > 1 and sum([section.least for section in fitting]) > room:
        fitting.pop()
    sizes = _share_room(fitting, room)
    rows: list[str] = []
    parts: list[Part] = []
    shown: dict[str, list[str]] = {}
    for section in sections:
        kept = shown[section.path] = section.fit(sizes[section.path]) if section.path in sizes else []
        if kept:
            rows += [section.head(len(kept)), *["  " + line for line in kept]]
        lines = len(section.lines)
        parts.append(Part(name=section.name, path=section.path, date=section.date, lines=lines, left_out=lines - len(kept)))
    cut = [(part.path, part.left_out) for part in parts if part.left_out]
    answer = Boot(
        text=_frame(rows, scope, _describe_missing(cut, further), words),
        scope=scope,
        parts=tuple(parts),
        left_out=sum([lines for _, lines in cut]),
        further=further,
    )
    return answer, shown


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
        "Each section shows its scope, file and date. If two disagree, trust the live state.",
        rows,
        Template(missing, "read a file with ", command("read {}", f"{scope.folder}/files/PATH"), ".").render(words),
    )
