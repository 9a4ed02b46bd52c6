"""Verify the audit: compute the hash of every row again, and compare both ends of the chain.

This finds a row that was changed, removed, added or moved, and rows cut off at the end, as far as the head in the ledger, the
mark beside it or a head that was kept elsewhere reach.
"""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import HoldfastError
from holdfast.ledger.audit import FIRST, LAST, AuditMark, chain_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.ledger.audit import Audit, AuditRow

_MAX_PROBLEMS = 20  # problems


class Verdict(Record):
    """The result of a verification. `head` is to be kept elsewhere: then no later change before it can go unnoticed."""

    ok: bool
    rows: int
    head: str
    marked: int  # the row up to which the mark beside the ledger reaches
    broken: int  # how many places are wrong
    problems: tuple[str, ...]  # the first of them


def verify(audit: Audit, known: AuditMark | None = None) -> Verdict:
    """Check the whole audit. `known` is a head that was printed before and kept elsewhere."""
    check = _ChainCheck()
    mark = _read_mark(audit, check)
    for name, anchor in ((audit.mark_name, mark), ("the head you gave", known)):
        if anchor is not None and anchor.count:
            check.anchors.setdefault(anchor.count, []).append((name, anchor.hash))
    check.check_rows(audit.iterate_rows())
    _check_end(audit, check)
    if mark is None and check.seen and not check.mark_unreadable:
        check.report(f"{audit.mark_name} is missing: rows cut off at the end would not be noticed")
    return Verdict(
        ok=check.broken == 0,
        rows=check.seen,
        head=str(AuditMark(check.last, check.hash)) if check.seen else "",
        marked=mark.count if mark else 0,
        broken=check.broken,
        problems=tuple(check.problems),
    )


def compare_ends(audit: Audit) -> str:
    """Return how the ends of the chain contradict each other, without reading it; "" if they agree."""
    try:
        mark = audit.read_mark()
    except HoldfastError as error:
        return error.message
    head, last = audit.read_head(), audit.read_last() or AuditMark(0, "")
    if head is None:
        return "" if last.count == 0 and mark is None else "the audit has lost its head"
    if mark is not None and mark.count > head.count:
        return f"the audit has {head.count} rows, and {audit.mark_name} knows of {mark.count}"
    again = audit.read_head()  # another process may append between two queries
    if head == again and head != last:
        return f"the audit ends with row {last.count}, and its head says {head.count}"
    return ""


def verify_newest(audit: Audit, most: int = 10_000) -> str:
    """Return the first problem with the newest rows, at most this many; "" if they are as they were written."""
    head, check = audit.read_head(), _ChainCheck()
    is_long = head is not None and head.count > most
    rows = audit.iterate_rows(head.count - most if head is not None and is_long else FIRST)
    if is_long:
        check.start_after(next(rows, None))
    check.check_rows(rows)
    return check.problems[0] if check.problems else ""


def _read_mark(audit: Audit, check: _ChainCheck) -> AuditMark | None:
    """Return the mark. It is read before the rows: those appended meanwhile do no harm."""
    try:
        return audit.read_mark()
    except HoldfastError as error:
        check.report(error.message)
        check.mark_unreadable = True
        return None


def _check_end(audit: Audit, check: _ChainCheck) -> None:
    """Compare the last row with the head; first read the rows that were appended meanwhile."""
    head = audit.read_head()
    while head is not None and head.count > check.last and check.last < LAST:
        before = check.seen
        check.check_rows(audit.iterate_rows(check.last + 1))
        if check.seen == before:
            break
        head = audit.read_head()
    if head is None:
        if check.seen:
            check.report("the head of the audit is missing")
    elif head.count > check.last:
        check.report(f"{_format_rows(check.last + 1, head.count)} missing at the end")
    elif head.count < check.last:
        check.report(f"{_format_rows(head.count + 1, check.last)} beyond the head: put in by somebody else")
    elif head.hash != check.hash:
        check.report(f"row {check.last} is not the one that the head names")
    for count, anchors in check.anchors.items():
        for name, _ in anchors:
            check.report(f"row {count} is missing, and {name} knows of it")


class _ChainCheck:
    """The progress of a verification, and the problems found."""

    def __init__(self) -> None:
        self.seen, self.last, self.hash = 0, 0, ""
        self.anchors: dict[int, list[tuple[str, str]]] = {}  # by row number: required hashes with their origin
        self.broken = 0
        self.problems: list[str] = []
        self.mark_unreadable = False

    def report(self, problem: str) -> None:
        self.broken += 1
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)

    def start_after(self, row: AuditRow | None) -> None:
        if row is not None:
            self.last, self.hash = row.number, row.hash

    def check_rows(self, rows: Iterator[AuditRow]) -> None:
        for row in rows:
            self._check(row)

    def _check(self, row: AuditRow) -> None:
        if row.number != self.last + 1:
            is_gap = row.number > self.last
            self.report(f"{_format_rows(self.last + 1, row.number - 1)} missing" if is_gap else f"row {row.number} was put in")
        elif chain_hash(self.hash, *row[:-1]) != row.hash:
            self.report(f"row {row.number} is not what was written, or the one before it is not")
        for name, hash in self.anchors.pop(row.number, ()):
            if hash != row.hash:
                self.report(f"row {row.number} is not the one that {name} names")
        self.seen, self.last, self.hash = self.seen + 1, row.number, row.hash


def _format_rows(first: int, last: int) -> str:
    return f"row {first} is" if first >= last else f"rows {first} to {last} are"
