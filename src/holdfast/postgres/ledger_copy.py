"""Every record of a ledger on its way out of it or into another: rows as they stand, and the audit with its chain.

What a ledger needs for `holdfast copy`. A row that stands there already stays; whoever adds rows has looked before.
"""

from __future__ import annotations

import os

from holdfast import sqlite
from holdfast.base.record import Record
from holdfast.errors import Conflict
from holdfast.ledger import review_key
from holdfast.ledger.purges import is_rejection
from holdfast.ledger.records import Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from holdfast.ledger.audit_mark import AuditMark
    from holdfast.ledger.sqlite import SqliteLedger

    T = TypeVar("T")
    Row = tuple[Any, ...]

SECRET = "review"  # the name under which a tenant keeps what a home has in review.key
_LETTERS = "abcdefgh"
_NUL, _UNKNOWN = "\0", "\ufffd"  # what a name in `claims` is joined with, and what a column of text takes instead


class Table(Record):
    """One kind of rows: how many of its first columns say which row it is, and whether its rows pass with use."""

    name: str
    known_by: int
    passing: bool = False  # counts and what was shown: where the other ledger says otherwise, it is newer


TABLES = (
    Table("links", 1), Table("places", 1, True), Table("keys", 1), Table("receipts", 1), Table("purged", 1),
    Table("usage", 1, True), Table("told", 2, True), Table("prompts", 1, True), Table("briefed", 3, True),
    Table("decisions", 4), Table("agents", 1), Table("tokens", 1), Table("done", 3, True), Table("reviewed_prs", 4, True),
    Table("claims", 1, True), Table("idempotency", 2, True),
)  # fmt: skip


def carrier(ledger: SqliteLedger) -> Carrier:
    """For a ledger of either kind."""
    return HostedCarrier(ledger, "") if hasattr(ledger, "_settings") else Carrier(ledger, ledger._path)


class Carrier(Records):
    """A home's ledger."""

    _sql = sqlite.statements(__file__)
    _kind = "sqlite"

    def __init__(self, ledger: SqliteLedger, path: str) -> None:
        super().__init__(ledger._file, path)
        self._ledger = ledger

    def rows(self, table: Table) -> list[Row]:
        """All of them, in the order they came where that is known."""
        rows = [self._plain(table, row) for row in self._rows(table.name)]
        return self._with_secret(rows) if table.name == "keys" else rows

    def add(self, table: Table, rows: list[Row]) -> None:
        """Those of them that are not there yet; on the disk when it returns."""
        if table.name == "keys":
            rows = self._keep_secret(rows)
        if table.name == "receipts" and rows:  # a sign comes first: without it nobody would ask for the rows
            self._ledger.purges.show_sign()
        if table.name == "purged" and any(is_rejection(row[0]) for row in rows):
            self._ledger.purges.show_sign(rejected=True)
        statement = f"{self._kind} add agents" if table.name == "agents" else f"add {table.name}"
        self._write(lambda db: self._many(db, statement, [self._spelled(table, row) for row in rows]))

    def add_audit(self, rows: list[Row], before: AuditMark) -> None:
        """The next rows of the audit, which must end where the one before the first of them ends."""

        def work(db: Any) -> None:
            self._run(db, f"{self._kind} begin audit")
            end: dict[str, Any] = {"count": rows[-1][0], "hash": rows[-1][7], "before": before.count, "was": before.hash}
            if not self._run(db, "move audit", **end):
                raise Conflict("somebody else writes to the audit", "Stop whoever serves it, and copy again")
            self._many(db, f"{self._kind} add audit", rows)

        self._write(work)

    def _many(self, db: Any, statement: str, rows: list[Row]) -> None:
        values = [dict(zip(_LETTERS, row, strict=False)) for row in rows]
        if values:
            db.executemany(self._sql[statement], values).fetchall()

    def _with_secret(self, rows: list[Row]) -> list[Row]:
        """What a home keeps in a file is a row elsewhere."""
        home = os.path.dirname(self._path)
        kept = [(SECRET, review_key.of(home))] if os.path.lexists(review_key.path(home)) else []
        return sorted([*kept, *[row for row in rows if row[0] != SECRET]])

    def _keep_secret(self, rows: list[Row]) -> list[Row]:
        """Into its file; the other rows."""
        for value in [row[1] for row in rows if row[0] == SECRET]:
            review_key.keep(os.path.dirname(self._path), value)
        return [row for row in rows if row[0] != SECRET]

    def _plain(self, table: Table, row: Row) -> Row:
        return tuple([bytes(value) if isinstance(value, memoryview) else value for value in row])

    def _spelled(self, table: Table, row: Row) -> Row:
        return row


class HostedCarrier(Carrier):
    """A tenant's, in PostgreSQL."""

    _kind = "postgres"
    _file: Any

    def __init__(self, ledger: SqliteLedger, path: str) -> None:
        super().__init__(ledger, path)
        from holdfast.postgres import statements

        self._sql = statements(__file__)

    def _rows(self, statement: str, **values: Any) -> list[Any]:
        return list(self._file.query(self._sql[statement], values))

    def _write(self, work: Callable[[Any], T], durable: bool = True) -> T:
        answer: T = self._file.write(work, durable)
        return answer

    def _with_secret(self, rows: list[Row]) -> list[Row]:
        return rows

    def _keep_secret(self, rows: list[Row]) -> list[Row]:
        return rows

    def _plain(self, table: Table, row: Row) -> Row:
        row = super()._plain(table, row)
        return (row[0].replace(_UNKNOWN, _NUL), *row[1:]) if table.name == "claims" else row

    def _spelled(self, table: Table, row: Row) -> Row:
        return (row[0].replace(_NUL, _UNKNOWN), *row[1:]) if table.name == "claims" else row
