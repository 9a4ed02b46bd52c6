"""Dated lines are facts: `- [2026-03-27] status: enabled`, and closed `- ~~[2026-03-20] status: off~~ superseded 2026-03-27`.

The lines are the whole truth about them: this room reads them out of any markdown and edits them in place. Pure.
"""

from __future__ import annotations

import re

from holdfast.dates import DAY, is_moment
from holdfast.note import Fact, Record
from holdfast.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.note import Scope

_WHEN = rf"{DAY}(?:T\d\d:\d\d:\d\dZ)?"
_LINE = pattern(
    rf"[ \t]*[-*+] (?:\[({_WHEN})\] ([^:\n]+?): (.+?)|~~\[({_WHEN})\] ([^:\n]+?): (.+)~~ (?:superseded|ended|closed) ({_WHEN}))[ \t]*\r?\Z",
    re.ASCII,
)
_HINT = pattern(r"^[ \t]*[-*+] (?:~~)?\[\d{4}-", re.MULTILINE)
_LINK = pattern(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")


class Dated(Record):
    """One dated line of a text."""

    line: int
    label: str
    value: str
    valid_from: str
    valid_to: str | None


class Edit(Record):
    """A text with a fact set in it, and the lines that this retired."""

    text: str
    action: str
    line: int
    retired: tuple[Dated, ...]


def fold(name: str) -> str:
    """Names that differ only in case or spacing are one."""
    return " ".join(name.casefold().split())


def lines(text: str) -> list[Dated]:
    """The dated lines, in the order they stand."""
    if not _HINT.search(text):
        return []
    found = []
    for number, line in enumerate(text.split("\n")):
        match = _LINE.match(line)
        if not match:
            continue
        opened, label, value, begun, label_, value_, ended = match.groups()
        if is_moment(opened or begun) and (not ended or is_moment(ended)):
            found.append(Dated(number, label or label_, value or value_, opened or begun, ended))
    return found


def facts_of(text: str, subject: str, scope: Scope, path: str, first_line: int) -> list[Fact]:
    """The facts a text states about its subject."""
    dated = lines(text)
    return [
        Fact(
            subject=subject,
            label=line.label,
            value=line.value,
            valid_from=line.valid_from,
            valid_to=line.valid_to,
            retired_by=_retired_by(line, dated),
            links=tuple(_LINK.findall(line.value)),
            scope=scope,
            path=path,
            line=first_line + line.line,
        )
        for line in dated
    ]


def set_fact(text: str, label: str, value: str, on: str, many: bool) -> Edit:
    """Write `label: value` as of `on`. The newest date is current; what it replaces is struck through and dated."""
    rows = text.split("\n")
    same = [line for line in lines(text) if fold(line.label) == fold(label)]
    if any(line.value == value and _holds(line, on, many) for line in same):
        return Edit(text, "unchanged", next(line.line for line in same if line.value == value), ())
    later = [] if many else [line for line in same if line.valid_from > on]
    end = min((line.valid_from for line in later), default=None)
    retired = [] if many else [line for line in same if line.valid_from <= on and _open_at(line, on)]
    for line in retired:
        rows[line.line] = render(line.replace(valid_to=on))
    fresh = Dated(0, label, value, on, end)
    place = _place(rows, text, same, later)
    rows.insert(place, render(fresh))
    action = "updated" if same else "created"
    return Edit("\n".join(rows), action, place, tuple([line.replace(valid_to=on) for line in retired]))


def render(line: Dated) -> str:
    """The line as it stands in a file."""
    stated = f"[{line.valid_from}] {line.label}: {line.value}"
    return f"- ~~{stated}~~ superseded {line.valid_to}" if line.valid_to else f"- {stated}"


def _open_at(line: Dated, on: str) -> bool:
    return line.valid_to is None or line.valid_to > on


def _holds(line: Dated, on: str, many: bool) -> bool:
    """Whether this line already says so for that date."""
    return line.valid_to is None if many else line.valid_from <= on and _open_at(line, on)


def _place(rows: list[str], text: str, same: list[Dated], later: list[Dated]) -> int:
    if later:
        return min(line.line for line in later)
    known = same or lines(text)
    if known:
        return max(line.line for line in known) + 1
    while rows and not rows[-1].strip():
        rows.pop()
    if rows and not rows[-1].lstrip().startswith(("- ", "* ", "+ ")):
        rows.append("")
    return len(rows)


def _retired_by(line: Dated, dated: list[Dated]) -> str | None:
    """The fact that took over on the day this one ended."""
    if line.valid_to is None:
        return None
    heirs = [
        other
        for other in dated
        if other is not line and fold(other.label) == fold(line.label) and other.valid_from == line.valid_to
    ]
    after = [other for other in heirs if other.line > line.line] or heirs
    return f"[{after[0].valid_from}] {after[0].label}: {after[0].value}" if after else f"superseded {line.valid_to}"
