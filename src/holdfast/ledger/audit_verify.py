"""Whether the audit is what was written: every row again through the chain, and both ends compared.

It finds a row that was changed, taken out, put in or moved, and rows cut off at the end, as far as the head in the
ledger, the mark beside it or one that somebody kept elsewhere reach.
"""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import HoldfastError
from holdfast.ledger.audit import FIRST, LAST, chained
from holdfast.ledger.audit_mark import AuditMark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.ledger.audit import Audit

_SHOWN = 20


class Verdict(Record):
    """What was found. `head` is what to keep elsewhere: no later change before it can go unnoticed then."""

    ok: bool
    rows: int
    head: str
    marked: int  # up to which row the mark beside the ledger reaches
    broken: int  # how many places are wrong
    problems: tuple[str, ...]  # the first of them


def verify(audit: Audit, known: AuditMark | None = None) -> Verdict:
    """All of it. `known` is a head that was printed before and kept elsewhere."""
    walk = _Walk()
    noted = _noted(audit, walk)
    for place, mark in ((audit.marked_in, noted), ("the head you gave", known)):
        if mark is not None and mark.count:
            walk.anchors.setdefault(mark.count, []).append((place, mark.hash))
    walk.through(audit.rows())
    _end(audit, walk)
    if noted is None and walk.seen and not walk.illegible:
        walk.wrong(f"{audit.marked_in} is missing: rows cut off at the end would not be noticed")
    return Verdict(
        walk.broken == 0, walk.seen, str(AuditMark(walk.last, walk.hash)) if walk.seen else "", noted.count if noted else 0,
        walk.broken, tuple(walk.problems),
    )  # fmt: skip


def glance(audit: Audit) -> str:
    """What both ends of the chain say about each other, without reading it; nothing where they agree."""
    try:
        noted = audit.noted()
    except HoldfastError as error:
        return error.message
    head, last = audit.head(), audit.last() or AuditMark(0, "")
    if head is None:
        return "" if last.count == 0 and noted is None else "the audit has lost its head"
    if noted is not None and noted.count > head.count:
        return f"the audit has {head.count} rows, and {audit.marked_in} knows of {noted.count}"
    again = audit.head()  # somebody may append between two questions
    if head == again and head != last:
        return f"the audit ends with row {last.count}, and its head says {head.count}"
    return ""


def newest(audit: Audit, many: int = 10_000) -> str:
    """What is wrong with the last rows, read again through the chain; nothing where they are as they were written."""
    head, walk = audit.head(), _Walk()
    rows = audit.rows(head.count - many if head and head.count > many else FIRST)
    if head and head.count > many:
        walk.begin(next(rows, None))
    walk.through(rows)
    return walk.problems[0] if walk.problems else ""


def _noted(audit: Audit, walk: _Walk) -> AuditMark | None:
    """Read before the rows: what is appended meanwhile only makes them more."""
    try:
        noted = audit.noted()
    except HoldfastError as error:
        walk.wrong(error.message)
        walk.illegible = True
        return None
    return noted


def _end(audit: Audit, walk: _Walk) -> None:
    """The last row against the head; what was appended while we read is read as well."""
    head = audit.head()
    while head is not None and head.count > walk.last and walk.last < LAST:
        before = walk.seen
        walk.through(audit.rows(walk.last + 1))
        if walk.seen == before:
            break
        head = audit.head()
    if head is None:
        if walk.seen:
            walk.wrong("the head of the audit is missing")
    elif head.count > walk.last:
        walk.wrong(f"{_span(walk.last + 1, head.count)} missing at the end")
    elif head.count < walk.last:
        walk.wrong(f"{_span(head.count + 1, walk.last)} beyond the head: put in by somebody else")
    elif head.hash != walk.hash:
        walk.wrong(f"row {walk.last} is not the one that the head names")
    for count, named in walk.anchors.items():
        for place, _ in named:
            walk.wrong(f"row {count} is missing, and {place} knows of it")


class _Walk:
    """Where a walk through the chain is, and what was wrong on the way."""

    def __init__(self) -> None:
        self.seen, self.last, self.hash = 0, 0, ""
        self.anchors: dict[int, list[tuple[str, str]]] = {}
        self.broken = 0
        self.problems: list[str] = []
        self.illegible = False  # whether the mark is there and says nothing

    def wrong(self, what: str) -> None:
        self.broken += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(what)

    def begin(self, row: tuple[Any, ...] | None) -> None:
        """From behind this row on."""
        if row is not None:
            self.last, self.hash = row[0], row[7]

    def through(self, rows: Any) -> None:
        for row in rows:
            self._step(row)

    def _step(self, row: tuple[Any, ...]) -> None:
        number, hash = row[0], row[7]
        if number != self.last + 1:
            missing = number > self.last
            self.wrong(f"{_span(self.last + 1, number - 1)} missing" if missing else f"row {number} was put in")
        elif chained(self.hash, *row[:7]) != hash:
            self.wrong(f"row {number} is not what was written, or the one before it is not")
        for place, kept in self.anchors.pop(number, ()):
            if kept != hash:
                self.wrong(f"row {number} is not the one that {place} names")
        self.seen, self.last, self.hash = self.seen + 1, number, hash


def _span(first: int, last: int) -> str:
    return f"row {first} is" if first >= last else f"rows {first} to {last} are"

