"""Read every record of a ledger as rows, and add them to another ledger, for `holdfast copy`.

The columns that identify a row come first. Numbers that only order the rows are left out; they are given again, in the same
order. A row that exists already stays: the caller has compared before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import Conflict
from holdfast.ledger.audit import AuditMark
from holdfast.ledger.purges import is_rejection

if TYPE_CHECKING:
    from holdfast.ledger.audit import AuditRow
    from holdfast.ledger.audit_checkpoint import Checkpoint
    from holdfast.ledger.interface import LedgerDatabase, SecretKey, Transaction
    from holdfast.ledger.purges import Purges

Row = tuple[Any, ...]
REVIEW, AUDIT = "review", "audit"  # the names of the secret keys among the keys
_NUL, _UNKNOWN = "\0", "\ufffd"  # between the names in a claim's subject, and what PostgreSQL keeps instead


class Table(NamedTuple):
    """One kind of records."""

    name: str
    columns: tuple[str, ...]
    key_columns: int  # how many of the first columns identify a row
    newer_wins: bool = False  # counts and what was shown: where the other ledger differs, it is newer


TABLES = (
    Table("links", ("alias", "project"), 1),
    Table("places", ("id", "nonce", "path"), 1, newer_wins=True),
    Table("keys", ("name", "value"), 1),
    Table("receipts", ("id", "time", "receipt"), 1),
    Table("purged", ("digest", "receipt"), 1),
    Table("usage", ("id", "uses", "counted"), 1, newer_wins=True),
    Table("told", ("session", "note", "version", "time"), 2, newer_wins=True),
    Table("prompts", ("session", "count", "last", "time"), 1, newer_wins=True),
    Table("briefed", ("note", "version", "session", "client", "time"), 3, newer_wins=True),
    Table("decisions", ("time", "action", "subject", "detail"), 4),
    Table("agents", ("name", "role", "created"), 1),
    Table("tokens", ("id", "agent", "digest", "created", "expires", "revoked"), 1),
    Table("grants", ("agent", "kind", "pattern", "created"), 3),
    Table("done", ("agent", "kind", "subject", "time"), 3, newer_wins=True),
    Table("reviewed_prs", ("agent", "owner", "repo", "pr_number", "reviewed_at"), 4, newer_wins=True),
    Table("claims", ("subject", "holder", "time"), 1, newer_wins=True),
    Table("idempotency", ("agent", "key", "digest", "status", "answer", "time"), 2, newer_wins=True),
)


class Transfer:
    """Read and add rows of one ledger."""

    def __init__(self, database: LedgerDatabase, purges: Purges, secrets: dict[str, SecretKey]) -> None:
        self._database, self._purges, self._secrets = database, purges, secrets

    def rows(self, table: Table) -> list[Row]:
        """Return all rows of a table, in the order they were added where that is known."""
        rows = [_decode_row(table, row) for row in self._database.read_current(f"transfer.{table.name}")]
        if table.name != "keys":
            return rows
        secrets = [(name, secret.find()) for name, secret in self._secrets.items()]
        others = [row for row in rows if row[0] not in self._secrets]
        return sorted([*others, *[(name, value) for name, value in secrets if value is not None]])

    def add(self, table: Table, rows: list[Row]) -> None:
        """Add those rows that are missing; they are on disk when this returns."""
        if table.name == "keys":
            for name, value in rows:
                if name in self._secrets:
                    self._secrets[name].save(value)
            rows = [row for row in rows if row[0] not in self._secrets]
        if table.name == "receipts" and rows:  # the flag comes first: without it the rows are never looked up
            self._purges.set_flag()
        if table.name == "purged" and any(is_rejection(row[0]) for row in rows):
            self._purges.set_flag(rejected=True)
        values = [dict(zip(table.columns, row, strict=True)) for row in rows]
        self._database.write(
            lambda transaction: transaction.run_many(f"transfer.add_{table.name}", values), retry_after_reset=False
        )

    def add_audit(self, rows: list[AuditRow], before: AuditMark) -> AuditMark:
        """Add the next rows of the audit, which must end with the row before them; return where it ends then."""
        end = AuditMark(rows[-1].number, rows[-1].hash)

        def append_rows(transaction: Transaction) -> None:
            transaction.run("transfer.begin_audit")
            moved = transaction.run(
                "transfer.move_audit", count=end.count, hash=end.hash, old_count=before.count, old_hash=before.hash
            )
            if not moved:
                raise Conflict("another process writes to the audit", "Stop the server that uses it, and copy again")
            transaction.run_many("transfer.add_audit", [row._asdict() for row in rows])

        self._database.write(append_rows, retry_after_reset=False)
        return end

    def begin_audit_after(self, checkpoint: Checkpoint) -> AuditMark:
        """Begin an empty audit behind the rows that the checkpoint of another one removed; return where it ends."""

        def begin(transaction: Transaction) -> None:
            if not transaction.run("transfer.begin_audit_after", **checkpoint.as_dict()):
                raise Conflict("another process writes to the audit", "Stop the server that uses it, and copy again")

        self._database.write(begin, retry_after_reset=False)
        return AuditMark(checkpoint.number, checkpoint.hash)


def _decode_row(table: Table, row: Row) -> Row:
    if table.name == "claims":
        subject, *others = row
        return subject.replace(_UNKNOWN, _NUL), *others
    return tuple([bytes(value) if isinstance(value, memoryview) else value for value in row])
