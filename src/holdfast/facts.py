"""Dated lines are facts: `- [2026-03-27] status: on`; closed: `- ~~[2026-03-20] status: off~~ superseded 2026-03-27`.

The lines are the whole truth about them: this room reads them out of any markdown and edits them in place. Pure.
"""

from __future__ import annotations

from holdfast.dates import DAY, is_moment
from holdfast.note import KEY, Fact, Record, key_of
from holdfast.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.note import Scope

_WHEN = rf"{DAY}(?:T\d\d:\d\d:\d\dZ)?"
_STATED = rf"(\[({_WHEN})\] ([^:\n]++):[ \t]++"
_LINE = pattern(
    rf"(?a)([ \t]*[-*+] )(?:{_STATED}(.*[^ \t\r]))|~~{_STATED}(.+))~~ (?:superseded|ended|closed) ({_WHEN}))([ \t\r]*)\Z"
)
_HINT = pattern(r"(?m)^[ \t]*[-*+] (?:~~)?\[\d{4}-")
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


def note_key(subject: str) -> str:
    """The key of the note that holds a subject's facts: names that are one subject have one note."""
    name = fold(subject)
    return name if KEY.match(name) else key_of(name)


def lines(text: str) -> list[Dated]:
    """The dated lines, in the order they stand."""
    if not _HINT.search(text):
        return []
    return [line for number, row in enumerate(text.split("\n")) if (line := _dated(row, number))]


def current_text(text: str, now: str) -> str:
    """Return the text without the fact lines that ended by `now` (a day or a UTC moment); every other byte stays."""
    ended = {line.line for line in lines(text) if line.valid_to is not None and _at(line.valid_to) <= _at(now)}
    if not ended:
        return text
    return "\n".join([row for number, row in enumerate(text.split("\n")) if number not in ended])


def statement(subject: str, label: str, value: str, valid_from: str, valid_to: str | None = None) -> str:
    """Return a fact as one plain sentence with its dates: `Canary, share of traffic: 10 % (since 2026-09-01)`."""
    dates = f"{valid_from} to {valid_to}" if valid_to else f"since {valid_from}"
    return f"{subject}, {label}: {value} ({dates})"


def _dated(row: str, number: int) -> Dated | None:
    match = _LINE.match(row)
    if not match:
        return None
    _, _, opened, label, value, _, begun, label_, value_, ended, _ = match.groups()
    label, value = (label or label_).strip(), (value or value_).strip()
    real = is_moment(opened or begun) and (not ended or is_moment(ended))
    return Dated(number, label, value, opened or begun, ended) if real and label and value else None


def facts_of(text: str, subject: str, scope: Scope, path: str, first_line: int) -> list[Fact]:
    """The facts a text states about its subject."""
    dated = lines(text)
    heirs = _heirs(dated)
    return [
        Fact(
            subject=subject,
            label=line.label,
            value=line.value,
            valid_from=line.valid_from,
            valid_to=line.valid_to,
            retired_by=_retired_by(line, heirs),
            links=tuple(_LINK.findall(line.value)),
            scope=scope,
            path=path,
            line=first_line + line.line,
        )
        for line in dated
    ]


def set_fact(text: str, label: str, value: str, on: str, many: bool) -> Edit:
    """Write `label: value` as of `on`. The newest date is current; what it replaces is struck through and dated."""
    known = lines(text)
    same = [line for line in known if fold(line.label) == fold(label)]
    standing = [line for line in same if line.value == value and _holds(line, on, many)]
    if standing:
        return Edit(text, "unchanged", standing[-1].line, ())
    later = [] if many else [line for line in same if _at(line.valid_from) > _at(on)]
    end = min([line.valid_from for line in later], key=_at, default=None)
    retired = [] if many else [line for line in same if _covers(line, on)]
    rows = text.split("\n")
    for line in retired:
        rows[line.line] = _struck(rows[line.line], on)
    place, before, after = _place(rows, same or known, later)
    rows.insert(place, before + render(Dated(0, label, value, on, end))[2:] + after)
    action = "updated" if same else "created"
    return Edit("\n".join(rows), action, place, tuple([line.replace(valid_to=on) for line in retired]))


def render(line: Dated) -> str:
    """The line as it stands in a file."""
    stated = f"[{line.valid_from}] {line.label}: {line.value}"
    return f"- ~~{stated}~~ superseded {line.valid_to}" if line.valid_to else f"- {stated}"


def _at(when: str) -> str:
    """A day and its first second are one moment."""
    return when if len(when) > 10 else when + "T00:00:00Z"


def _covers(line: Dated, on: str) -> bool:
    return _at(line.valid_from) <= _at(on) and (line.valid_to is None or _at(line.valid_to) > _at(on))


def _holds(line: Dated, on: str, many: bool) -> bool:
    """Whether this line already says so for that date."""
    return line.valid_to is None if many else _covers(line, on)


def _struck(row: str, on: str) -> str:
    """The line as somebody wrote it, struck through and dated."""
    before, stated, _, _, _, closed, _, _, _, _, after = _LINE.match(row).groups()  # type: ignore[union-attr]
    return f"{before}~~{stated or closed}~~ superseded {on}{after}"


def _place(rows: list[str], known: list[Dated], later: list[Dated]) -> tuple[int, str, str]:
    """The row for a new line, and what stands before and after a line in that list: its bullet, its line ending."""
    if known:
        beside = min(later, key=_row) if later else max(known, key=_row)
        bullet = _LINE.match(rows[beside.line]).group(1)  # type: ignore[union-attr]
        ending = "\r" if rows[beside.line].endswith("\r") else ""
        return beside.line if later else _below(rows, beside.line, bullet), bullet, ending
    while rows and not rows[-1].strip():
        rows.pop()
    ending = "\r" if rows and rows[-1].endswith("\r") else ""
    if rows and not rows[-1].lstrip().startswith(("- ", "* ", "+ ")):
        rows.append(ending)
    return len(rows), "- ", ending


def _row(line: Dated) -> int:
    return line.line


def _below(rows: list[str], number: int, bullet: str) -> int:
    """The row after a list item and what is indented under it."""
    depth = len(bullet) - 1
    number += 1
    while number < len(rows) and rows[number].strip() and not rows[number][:depth].strip():
        number += 1
    return number


def _heirs(dated: list[Dated]) -> dict[tuple[str, str], list[Dated]]:
    """The lines by what they are about and when they begin."""
    heirs: dict[tuple[str, str], list[Dated]] = {}
    for line in dated:
        heirs.setdefault((fold(line.label), _at(line.valid_from)), []).append(line)
    return heirs


def _retired_by(line: Dated, heirs: dict[tuple[str, str], list[Dated]]) -> str | None:
    """The fact that took over on the day this one ended: the next below it, else the first above."""
    if line.valid_to is None:
        return None
    from bisect import bisect_right

    there = heirs.get((fold(line.label), _at(line.valid_to)), [])
    below = bisect_right(there, line.line, key=_row)
    heir = there[below] if below < len(there) else there[0] if there else line
    return f"superseded {line.valid_to}" if heir is line else f"[{heir.valid_from}] {heir.label}: {heir.value}"
