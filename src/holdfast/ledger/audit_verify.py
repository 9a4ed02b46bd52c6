"""Verify the audit: compute the hash of every row again, and compare both ends of the chain.

This finds a row that was changed, removed, added or moved, and rows cut off at the end, as far as the head in the ledger, the
mark beside it or a head that was kept elsewhere reach. Where old rows were removed on purpose, the chain begins at a signed
checkpoint. An exported file is verified by the same rules (`verify_lines`).
"""

from __future__ import annotations

import json

from holdfast.base.record import Record
from holdfast.errors import HoldfastError
from holdfast.ledger.audit import FIRST, LAST, AuditMark, AuditRow, chain_hash, encode_metadata
from holdfast.ledger.audit_checkpoint import check_checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from holdfast.ledger.audit import Audit
    from holdfast.ledger.audit_checkpoint import Checkpoint

_MAX_PROBLEMS = 20  # problems
_MAX_REPEATED = 10_000  # rows of a file that may come again: a shipped batch whose answer was lost is shipped again
_TEXTS = ("time", "tenant", "agent", "action", "outcome", "hash")


class Verdict(Record):
    """The result of a verification. `head` is to be kept elsewhere: then no later change before it can go unnoticed."""

    ok: bool
    rows: int
    head: str
    marked: int  # the row up to which the mark beside the ledger reaches
    removed: int  # rows that a signed checkpoint stands for; those of a file are the rows before its first one
    broken: int  # how many places are wrong
    problems: tuple[str, ...]  # the first of them


def verify(audit: Audit, known: AuditMark | None = None) -> Verdict:
    """Check the whole audit. `known` is a head that was printed before and kept elsewhere."""
    while True:
        checkpoint = audit.read_checkpoint()
        verdict = _verify(audit, checkpoint, known)
        if audit.read_checkpoint() == checkpoint:  # otherwise rows were removed while they were read
            return verdict


def _verify(audit: Audit, checkpoint: Checkpoint | None, known: AuditMark | None) -> Verdict:
    check = _ChainCheck()
    mark = _read_mark(audit, check)
    check.start_at(checkpoint, check_checkpoint(audit, checkpoint))
    if mark is not None and mark.count >= max(check.last, 1):  # an older one, as in a backup, says nothing about what is left
        check.add_anchor(audit.mark_name, mark)
    if known is not None and known.count:
        check.add_anchor("the head you gave", known)
    check.check_rows(audit.iterate_rows())
    _check_end(audit, check)
    if mark is None and check.seen and not check.mark_unreadable:
        check.report(f"{audit.mark_name} is missing: rows cut off at the end would not be noticed")
    return Verdict(
        ok=check.broken == 0,
        rows=check.seen,
        head=str(AuditMark(check.last, check.hash)) if check.seen else "",
        marked=mark.count if mark else 0,
        removed=checkpoint.number if checkpoint else 0,
        broken=check.broken,
        problems=tuple(check.problems),
    )


def verify_lines(lines: Iterable[bytes], known: AuditMark | None = None) -> Verdict:
    """Check an exported or shipped file: every row, and that none is missing between the first and the last of a tenant.

    A row that was shipped twice counts once. The file cannot prove what was before its first row and after its last."""
    file = _FileCheck(known)
    for number, line in enumerate(lines, 1):
        if line.strip():
            file.check_line(number, line)
    if known is not None and known.count and not file.has_known:
        file.report("no row of the file matches the head you gave")
    chains = list(file.chains.values())
    return Verdict(
        ok=file.broken == 0,
        rows=sum([chain.seen for chain in chains]),
        head=str(AuditMark(chains[0].last, chains[0].hash)) if len(chains) == 1 else "",
        marked=0,
        removed=chains[0].removed if len(chains) == 1 else 0,
        broken=file.broken,
        problems=tuple(file.problems),
    )


def iterate_verified(audit: Audit, last: int) -> Iterator[tuple[AuditRow, str]]:
    """Yield the rows from the checkpoint to this number, each with what is wrong so far; "" if nothing is."""
    check = _ChainCheck()
    check.start_at(audit.read_checkpoint(), "")
    for row in audit.iterate_rows():
        if row.number > last:
            return
        check.check_row(row)
        yield row, check.problems[0] if check.problems else ""


def compare_ends(audit: Audit) -> str:
    """Return how the ends of the chain contradict each other, without reading it; "" if they agree."""
    try:
        mark = audit.read_mark()
    except HoldfastError as error:
        return error.message
    checkpoint = audit.read_checkpoint()
    wrong = check_checkpoint(audit, checkpoint)
    if wrong:
        return wrong
    removed = AuditMark(checkpoint.number, checkpoint.hash) if checkpoint else AuditMark(0, "")
    head, last = audit.read_head(), audit.read_last() or removed
    if head is None:
        return "" if last.count == 0 and mark is None else "the head of the audit is missing"
    if mark is not None and mark.count > head.count:
        return f"the audit has {head.count} rows, and {audit.mark_name} knows of {mark.count}"
    again = audit.read_head()  # another process may append between two queries
    if head == again and head != last:
        return f"the audit ends with row {last.count}, and its head says {head.count}"
    return ""


def verify_newest(audit: Audit, most: int = 10_000) -> str:
    """Return the first problem with the newest rows, at most this many; "" if they are as they were written."""
    head, check = audit.read_head(), _ChainCheck()
    checkpoint = audit.read_checkpoint()
    first = head.count - most if head is not None else 0
    if checkpoint is not None and checkpoint.number >= first:
        check.start_at(checkpoint, "")
        first = checkpoint.number + 1
    rows = audit.iterate_rows(first if first > 0 else FIRST)
    if first > 0 and not check.last:
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
        check.report(f"{_format_rows(head.count + 1, check.last)} beyond the head: not written by Holdfast")
    elif head.hash != check.hash:
        check.report(f"row {check.last} does not match the head")
    check.report_missing_anchors()


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

    def add_anchor(self, name: str, anchor: AuditMark) -> None:
        """Require that a row has this hash. Of a removed row only the last one's hash is known."""
        if anchor.count > self.last:
            self.anchors.setdefault(anchor.count, []).append((name, anchor.hash))
        elif anchor.count < self.last:
            self.report(f"row {anchor.count} was pruned with the rows up to {self.last}, so it cannot be compared with {name}")
        elif anchor.hash != self.hash:
            self.report(f"row {anchor.count} does not match {name}")

    def report_missing_anchors(self) -> None:
        for count, anchors in self.anchors.items():
            for name, _ in anchors:
                self.report(f"row {count} is missing, but {name} refers to it")

    def start_after(self, row: AuditRow | None) -> None:
        if row is not None:
            self.last, self.hash = row.number, row.hash

    def start_at(self, checkpoint: Checkpoint | None, problem: str) -> None:
        """Begin after the rows that were removed; `problem` says what is wrong with the checkpoint."""
        if checkpoint is not None:
            self.last, self.hash = checkpoint.number, checkpoint.hash
        if problem:
            self.report(problem)

    def check_rows(self, rows: Iterator[AuditRow]) -> None:
        for row in rows:
            self.check_row(row)

    def check_row(self, row: AuditRow) -> None:
        if row.number != self.last + 1:
            is_gap = row.number > self.last
            self.report(f"{_format_rows(self.last + 1, row.number - 1)} missing" if is_gap else f"row {row.number} was put in")
        elif not _is_as_written(row, self.hash):
            self.report(f"row {row.number} or the row before it was changed")
        for name, hash in self.anchors.pop(row.number, ()):
            if hash != row.hash:
                self.report(f"row {row.number} does not match {name}")
        self.seen, self.last, self.hash = self.seen + 1, row.number, row.hash


class _FileCheck:
    """The progress of the verification of a file, which may have the rows of several tenants."""

    def __init__(self, known: AuditMark | None) -> None:
        self._known = known
        self.has_known = False  # whether the row of the known head was found
        self.chains: dict[str, _PartCheck] = {}  # by tenant
        self.broken = 0
        self.problems: list[str] = []

    def report(self, problem: str) -> None:
        self.broken += 1
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)

    def check_line(self, number: int, line: bytes) -> None:
        """Check a line of the file."""
        try:
            fields = json.loads(line)
            row, previous = _parse_row(fields), str(fields.get("previous", ""))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.report(f"line {number} is not a row of an audit")
            return
        chain = self.chains.setdefault(row.tenant, _PartCheck())
        before = len(chain.problems)
        chain.check_part(row, previous)
        for problem in chain.problems[before:]:
            self.report(f"line {number}: {problem}")
        chain.problems.clear()
        if self._known is not None and self._known == AuditMark(row.number, row.hash):
            self.has_known = True


class _PartCheck(_ChainCheck):
    """A chain that may begin anywhere and have rows twice."""

    def __init__(self) -> None:
        super().__init__()
        self.removed = 0  # rows before the first one
        self._recent: dict[int, str] = {}  # the hashes of rows that may come again

    def check_part(self, row: AuditRow, previous: str) -> None:
        """Check the next row; `previous` is the hash before it as the file says."""
        if self._recent.get(row.number) == row.hash and _is_as_written(row, previous):
            return  # shipped again
        if not self.seen:
            self.removed = self.last = row.number - 1
            self.hash = previous if self.removed else ""
        self.check_row(row)
        self._recent[row.number] = row.hash
        if len(self._recent) > _MAX_REPEATED:
            del self._recent[next(iter(self._recent))]


def _parse_row(fields: dict[str, Any]) -> AuditRow:
    number = fields["number"]
    if type(number) is not int or not 0 < number <= LAST:
        raise ValueError(number)
    texts = {name: str(fields[name]) for name in _TEXTS}
    return AuditRow(number=number, metadata=encode_metadata(fields["metadata"]), **texts)


def _is_as_written(row: AuditRow, previous: str) -> bool:
    return chain_hash(previous, *row[:-1]) == row.hash


def _format_rows(first: int, last: int) -> str:
    return f"row {first} is" if first >= last else f"rows {first} to {last} are"
