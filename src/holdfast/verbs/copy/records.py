"""Copy the records of a ledger, and its audit with the hash chain."""

from __future__ import annotations

from collections import Counter

from holdfast.errors import Conflict
from holdfast.ledger.audit import AuditMark
from holdfast.ledger.transfer import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.ledger.audit import AuditRow
    from holdfast.ledger.audit_checkpoint import Checkpoint
    from holdfast.ledger.transfer import Row, Table
    from holdfast.models import Progress
    from holdfast.verbs.copy.endpoints import Endpoint

_MOST = 1000  # rows added with one flush


class RecordsCopy:
    """Copies the records of one ledger."""

    def __init__(self, old: Endpoint, new: Endpoint, progress: Progress) -> None:
        self._old, self._new, self._progress = old, new, progress
        self._missing: list[tuple[Table, list[Row]]] = []
        self._begun = AuditMark(0, "")  # the last row of the audit that the target has already
        self._checkpoint: Checkpoint | None = None  # where the chain has to begin in the target, which has none yet
        self._first_row = 1  # of the audit, which both have: older ones may have been removed from one of them
        self.total = self.copied = self.audit = self.verified = 0

    def find_conflicts(self) -> Iterator[str]:
        """Yield the rows that contradict those of the target; note those that are missing."""
        for table in TABLES:
            mine, theirs = self._old.ledger.transfer.rows(table), self._new.ledger.transfer.rows(table)
            self.total += len(mine)
            missing, others = _compare(table, mine, theirs)
            self._missing.append((table, missing))
            yield from [f"{table.name} {row[0]!s}" for row in others]
        yield from self._compare_audit()

    def _compare_audit(self) -> Iterator[str]:
        """Yield the first row where the target's audit is not the beginning of the source's: two chains cannot be joined."""
        mine, other = _read_removed(self._old), _read_removed(self._new)
        head = self._new.ledger.audit.read_last() or other
        if head.count == 0 and mine.count:
            self._checkpoint, head = self._old.ledger.audit.read_checkpoint(), mine
        self._begun = mine if mine.count > other.count else other
        self._first_row = self._begun.count + 1
        theirs = iter(self._new.ledger.audit.iterate_rows(self._first_row))
        tenant = self._new.ledger.tenant
        for row in self._old.ledger.audit.iterate_rows(self._first_row):
            if tenant and row.tenant != tenant:
                raise Conflict(
                    f"the audit belongs to tenant {row.tenant!r}, and its hash chain is valid only there",
                    f"Copy to that tenant with HOLDFAST_TENANT={row.tenant}",
                )
            if self._begun.count < head.count:
                if next(theirs, None) != row:
                    yield f"audit row {row.number}"
                    return
                self._begun = AuditMark(row.number, row.hash)
        if self._begun != head:
            yield f"audit row {self._begun.count + 1}"

    def copy_missing(self) -> None:
        """Copy the rows that are missing."""
        self._progress.start("copying records", sum([len(rows) for _, rows in self._missing]))
        for table, rows in self._missing:
            for start in range(0, len(rows), _MOST):
                some = rows[start : start + _MOST]
                self._new.ledger.transfer.add(table, some)
                self.copied += len(some)
                self._progress.step(len(some))
        self._copy_audit()
        self._progress.end()

    def _copy_audit(self) -> None:
        end, added = self._begun, 0
        if self._checkpoint is not None:
            end = self._new.ledger.transfer.begin_audit_after(self._checkpoint)
        batch: list[AuditRow] = []
        for row in self._old.ledger.audit.iterate_rows(self._begun.count + 1):
            batch.append(row)
            if len(batch) == _MOST:
                end, added, batch = self._new.ledger.transfer.add_audit(batch, end), added + len(batch), []
        if batch:
            self._new.ledger.transfer.add_audit(batch, end)
        added += len(batch)
        if added:
            self._new.ledger.audit.update_mark(added)

    def find_differences(self) -> Iterator[str]:
        """Yield the rows that are not in the target as they are in the source."""
        for table in TABLES:
            mine, theirs = self._old.ledger.transfer.rows(table), self._new.ledger.transfer.rows(table)
            missing, others = _compare(table, mine, theirs)
            yield from [f"{table.name} {row[0]!s}" for row in (*missing, *others)]
            self.verified += len(mine)
        theirs_too = iter(self._new.ledger.audit.iterate_rows(self._first_row))
        for row in self._old.ledger.audit.iterate_rows(self._first_row):
            if next(theirs_too, None) != row:
                yield f"audit row {row.number}"
                return
            self.audit += 1
        self.verified += self.audit


def _read_removed(endpoint: Endpoint) -> AuditMark:
    """Return the last row that was removed from an audit."""
    checkpoint = endpoint.ledger.audit.read_checkpoint()
    return AuditMark(checkpoint.number, checkpoint.hash) if checkpoint else AuditMark(0, "")


def _compare(table: Table, mine: list[Row], theirs: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of the source that are missing in the target, and those that it has with other values.

    Where all columns are the key, equal rows are counted: each may be there as often as it is in the source."""
    if mine and len(mine[0]) == table.key_columns:
        there = Counter(theirs)
        missing = []
        for row in mine:
            if there[row]:
                there[row] -= 1
            else:
                missing.append(row)
        return missing, []
    by_key: dict[Any, Row] = {row[: table.key_columns]: row for row in theirs}
    absent = [row for row in mine if row[: table.key_columns] not in by_key]
    others = [row for row in mine if by_key.get(row[: table.key_columns], row) != row]
    return absent, [] if table.newer_wins else others
