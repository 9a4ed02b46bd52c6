"""What an agent that keeps continuity reads when it starts, in its order and within a budget (F7).

Heartbeat, messages of the operator, the state as last seen, open loops, then who it is and what for. The block is made as a
briefing's: data between marks that no file can forge, and nothing in it can close it, open a fence or hide.
"""

from __future__ import annotations

from holdfast.base.dates import timestamp
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import HoldfastError, UsageError
from holdfast.safety import validate
from holdfast.verbs import scaffold
from holdfast.verbs.brief import render
from holdfast.verbs.scaffold.inbox import unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.context.caller import Context
    from holdfast.models import Scope
    from holdfast.store.tree import Tree

CHARS = 6000  # unless somebody asks for more or less
LEAST = 1500
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
_MARK = " […]"
_LINE = 60  # characters that the first line of a part gets, if it is that long
_COMMENT = pattern(r"(?s)<!--.*?-->")


class Part(Record):
    """What one file has to say: how many lines, and how many of them were left out."""

    name: str
    path: str
    date: str
    lines: int
    left_out: int


class Boot(Record):
    """The block, whose files it was made from, and what is not in it. Without such files the text is empty."""

    text: str
    scope: Scope | None = None
    parts: tuple[Part, ...] = ()
    left_out: int = 0  # lines
    further: tuple[str, ...] = ()  # files and folders that have something and are not part of a start-up
    disabled: bool = False


class _Said(Record):
    """The lines of one file, made safe, and its place in the order."""

    name: str
    path: str
    date: str
    lines: tuple[str, ...]
    scope: str

    def head(self, shown: int) -> str:
        """The line above them."""
        of = f", {shown} of {len(self.lines)} lines" if shown < len(self.lines) else ""
        return f"- [{self.scope}] {self.name}, {self.path} ({self.date or 'no date'}{of}):"

    @property
    def _frame(self) -> int:
        return len(self.head(len(self.lines) - 1)) + 1  # the longest it can be

    @property
    def full(self) -> int:
        """What it takes, with its head and newlines."""
        return self._frame + sum([len(line) + 3 for line in self.lines])

    @property
    def least(self) -> int:
        return min(self.full, self._frame + min(len(self.lines[0]), _LINE) + len(_MARK) + 3)

    def within(self, size: int) -> list[str]:
        """As many whole lines as fit; of a first line that is too long, its beginning."""
        room, kept = size - self._frame, []
        for line in self.lines:
            room -= len(line) + 3
            if room < 0:
                break
            kept.append(line)
        return kept or [self.lines[0][: room + len(self.lines[0]) - len(_MARK)].rstrip() + _MARK]


def boot(context: Context, kind: str | None, cap: int | None, scaffolds: str | Iterable[str] | None) -> Boot:
    """The steps of `Memory.boot`. What a client or the agent declares is made first, as far as it is missing."""
    most, wanted = chars(cap), scaffold.declared(context.config.scaffolds, scaffolds)
    if not context.config.enabled:
        return Boot("", disabled=True)
    for name in wanted:
        scaffold.make(context, name, scaffold.place_of(context, kind))
    found = [(place, said) for place in _places(context, kind) if (said := _all_said(context, place))]
    if not found:
        return Boot("")
    place, said = next((one for one in found if any(part.date for part in one[1])), found[0])
    return _composed(said, place, _further(_tree(context, place)), most)


def _tree(context: Context, place: Scope) -> Tree:
    return context.store.tree(place.folder)


def _all_said(context: Context, place: Scope) -> list[_Said]:
    tree = _tree(context, place)
    return [said for name, path in _ORDER if (said := _said(tree, place, name, path))]


def chars(cap: int | None) -> int:
    if cap is None:
        return CHARS
    if not isinstance(cap, int) or isinstance(cap, bool) or cap < LEAST:
        raise UsageError(f"a start-up takes {LEAST:,} to {render.MOST_CHARS:,} characters, not {cap!r}", "Give that many")
    return min(cap, render.MOST_CHARS)


def _places(context: Context, kind: str | None) -> list[Scope]:
    """Where to look: an agent's own files come first, since this is about who it is."""
    places = context.visible_scopes(kind)
    return sorted(places, key=lambda place: place.kind != "agent") if kind is None else places


def _said(tree: Tree, place: Scope, name: str, path: str) -> _Said | None:
    """What a file says, or why it cannot be read; None where it says nothing."""
    try:
        path, text, date = _text(tree, path)
        text = validate.without_secrets(text)
        lines = unread(text, _answers(tree)) if path == INBOX else _lines(text)
    except HoldfastError as error:
        date, lines = "", [f"cannot be read: {error.message}"]
    if not lines:
        return None
    told = render.safe("\n".join(lines)).split("\n")  # as one text: a tag may be split over lines
    return _Said(name, render.safe(path), date, tuple(told), place.kind)


def _answers(tree: Tree) -> str:
    """What was answered; where that cannot be read, no message counts as answered."""
    try:
        return _text(tree, OUTBOX)[1]
    except HoldfastError:
        return ""


def _text(tree: Tree, path: str) -> tuple[str, str, str]:
    """Where the file really stands (some keep all of it at the top), its text, and the day it was last written."""
    for there in dict.fromkeys((path, path.rpartition("/")[2])):
        content = tree.read(tuple(there.split("/")))
        if content is not None:
            return there, content.text().removeprefix("\ufeff"), timestamp(content.modified)[:10]
    return path, "", ""


def _lines(text: str) -> list[str]:
    """The lines that say something: no comments, no blank lines, no heading with nothing below it."""
    kept: list[str] = []
    below = 0  # the depth of the heading that was kept last, from the end; a plain line is deeper than all
    for line in reversed(_COMMENT.sub("", text).split("\n")):
        if not line.strip(" \t\r"):
            continue
        depth = _depth(line)
        if not depth or below > depth:
            kept.append(line.rstrip(" \t\r"))
            below = depth or 99
    return kept[::-1]


def _depth(line: str) -> int:
    """Of a heading: the number of its marks; 0 for any other line."""
    marks = len(line) - len(line.lstrip("#"))
    return marks if 1 <= marks <= 6 and line[marks : marks + 1] in ("", " ") else 0


def _further(tree: Tree) -> tuple[str, ...]:
    """What else there is to read."""
    found = []
    for path in _FURTHER:
        try:
            there, text, _ = _text(tree, path)
        except HoldfastError:
            continue
        if _lines(text):
            found.append(there)
    try:
        research = tree.names(tuple(_RESEARCH.split("/")))
    except HoldfastError:
        research = None
    return (*found, f"{_RESEARCH}/") if research else tuple(found)


def _composed(said: list[_Said], place: Scope, further: tuple[str, ...], chars: int) -> Boot:
    """Each part gets a first line while there is room; what is left goes round, and the longest are cut first."""
    room = chars - len(_block([], place, _Missing([(one.path, len(one.lines)) for one in said], further)))
    fitting = list(said)
    while len(fitting) > 1 and sum([one.least for one in fitting]) > room:
        fitting.pop()
    sizes = _sizes(fitting, room)
    rows: list[str] = []
    parts: list[Part] = []
    for one in said:
        kept = one.within(sizes[one.path]) if one.path in sizes else []
        if kept:
            rows += [one.head(len(kept)), *["  " + line for line in kept]]
        parts.append(Part(one.name, one.path, one.date, len(one.lines), len(one.lines) - len(kept)))
    missing = _Missing([(part.path, part.left_out) for part in parts if part.left_out], further)
    return Boot(_block(rows, place, missing), place, tuple(parts), missing.count, further)


def _sizes(said: list[_Said], room: int) -> dict[str, int]:
    """What each part may take, by its path: the short ones all they want, the long ones an equal share of the rest."""
    spare = max(room - sum([one.least for one in said]), 0)
    extras = render.split([one.full - one.least for one in said], spare)
    return {one.path: one.least + extra for one, extra in zip(said, extras, strict=True)}


class _Missing:
    """What is not in the block, and the words for it."""

    def __init__(self, cut: list[tuple[str, int]], further: tuple[str, ...]) -> None:
        self.count = sum([lines for _, lines in cut])
        lines = ", ".join([f"{path} ({count})" for path, count in cut])
        self.words = f"{self.count} more left out; lines of {lines}; " if cut else "Nothing was left out; "
        self.words += f"beside this there are {', '.join(further)}; " if further else ""


def _block(rows: list[str], place: Scope, missing: _Missing) -> str:
    return render.framed(
        "each line shows its scope, file and day. Where two disagree, the live state is right.",
        rows,
        f"{missing.words}read a file with `holdfast read {place.folder}/files/PATH`.",
    )
