"""Part `audit`: each record of the audit log is changed, deleted, inserted, moved or forged, and verify must notice.

The attacker can write the database and knows how the hash chain is computed. The attacks whose names end in "rehashed" also
compute all hashes and the head again; only the mark beside the ledger contradicts them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import apsw

from battery.report import Report
from battery.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.ledger.sqlite import SqliteLedger


class Row(NamedTuple):
    """A row of the table `audit`, with its columns in order."""

    number: int
    time: str
    tenant: str
    agent: str
    action: str
    outcome: str
    metadata: str
    hash: str


class Head(NamedTuple):
    """The row of the table `audit_head`."""

    number: int  # of the last row
    hash: str


Attack = Callable[[list[Row], int], tuple[list[Row], Head | None]]  # of rows and a position; no head: it stays as it was


def run(workspace: Workspace, report: Report, *, rows: int = 1000) -> None:
    """Attack each of `rows` rows in one way, in turn."""
    home = workspace.new_home("audit")
    with report.start_row(f"audit: {rows} rows tampered with, one at a time") as row:
        for problems in attack_rows(home, rows):
            row.add(problems, "python -m battery audit", rows)
    workspace.remove_home(home)


def attack_rows(home: Path, count: int) -> list[list[str]]:
    """Write an audit log, attack each row and return for each whether the attack was not noticed."""
    from holdfast.ledger.audit_verify import verify
    from holdfast.ledger.sqlite import SqliteLedger

    ledger = SqliteLedger(str(home))
    _append_decisions(ledger, count)
    table = AuditTable(home)
    results = []
    for position in range(count):
        name, attack = ATTACKS[position % len(ATTACKS)]
        table.write(*attack(list(table.rows), position))
        results.append([f"row {position + 1}, {name}: not found"] if verify(ledger.audit).ok else [])
    table.write(table.rows, None)
    if not verify(ledger.audit).ok:
        results[-1].append("the original rows are called broken")
    table.db.close()
    ledger.close()
    return results


def _append_decisions(ledger: SqliteLedger, count: int) -> None:
    from holdfast.ledger.audit import Decision

    for number in range(1, count + 1):
        outcome = "denied" if number % 7 == 0 else "allowed"
        metadata = {"role": "code-review-engineer", "request": number}
        ledger.audit.append(Decision(f"agent-{number % 5}", "agent.memory.read", outcome, metadata))
    ledger.audit.save_mark()


class AuditTable:
    """The table in the database, written without the checks of SQLite; `rows` are those before any attack."""

    def __init__(self, home: Path) -> None:
        self.db = apsw.Connection(str(home / "ledger.db"))
        self.db.set_busy_timeout(10_000)
        self.db.execute("PRAGMA ignore_check_constraints = ON").fetchall()
        self.rows = [Row(*values) for values in self.db.execute("SELECT * FROM audit ORDER BY number")]
        self._current = {row.number: row for row in self.rows}
        self._head = Head(self.rows[-1].number, self.rows[-1].hash)

    def write(self, rows: list[Row], head: Head | None) -> None:
        """Replace the whole table by these rows."""
        before, self._current = self._current, {row.number: row for row in rows}
        with self.db:
            deleted = [(number,) for number in before if number not in self._current]
            self.db.executemany("DELETE FROM audit WHERE number = ?", deleted).fetchall()
            changed = [row for number, row in self._current.items() if before.get(number) != row]
            self.db.executemany("INSERT OR REPLACE INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", changed).fetchall()
            self.db.execute("UPDATE audit_head SET count = ?, hash = ?", head or self._head).fetchall()


# --- attacks ----------------------------------------------------------------------------------------------------------


def _edit(column: str, value: str) -> Attack:
    """Return an attack that changes one column."""

    def attack(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
        row = rows[position]
        new = value if value != getattr(row, column) else f"{value}!"
        rows[position] = row._replace(**{column: new})  # type: ignore[arg-type]
        return rows, None

    return attack


def _forge(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
    """Change the agent and compute the hash of the row again."""
    rows, _ = _edit("agent", "somebody-else")(rows, position)
    previous = rows[position - 1].hash if position else ""
    rows[position] = _rehash_row(rows[position], previous)
    return rows, None


def _delete(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
    return rows[:position] + rows[position + 1 :], None


def _delete_and_renumber(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
    return _renumber(rows[:position] + rows[position + 1 :]), None


def _swap(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
    other = position - 1 if position else 1
    rows[position], rows[other] = rows[other], rows[position]
    return _renumber(rows), None


def _insert(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
    """Insert a decision that never was before this one."""
    edited, _ = _edit("agent", "nobody")(list(rows), position)
    return _renumber([*rows[:position], edited[position], *rows[position:]]), None


def _insert_before_first(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
    return [rows[position]._replace(number=-position), *rows], None


def _truncate(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
    return rows[:position], None


def _truncate_with_head(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
    kept = rows[:position]
    return kept, Head(kept[-1].number, kept[-1].hash) if kept else Head(0, "")


def _rehash(attack: Attack) -> Attack:
    """Return an attack that also computes every hash and the head again."""

    def rehashed(rows: list[Row], position: int) -> tuple[list[Row], Head | None]:
        changed, previous = [], ""
        for row in _renumber(attack(rows, position)[0]):
            changed.append(_rehash_row(row, previous))
            previous = changed[-1].hash
        return changed, Head(changed[-1].number, previous)

    return rehashed


def _rehash_row(row: Row, previous: str) -> Row:
    from holdfast.ledger.audit import chain_hash

    return row._replace(hash=chain_hash(previous, *row[:-1]))


def _renumber(rows: list[Row]) -> list[Row]:
    return [row._replace(number=number) for number, row in enumerate(rows, 1)]


ATTACKS: list[tuple[str, Attack]] = [
    ("another time", _edit("time", "2020-01-01T00:00:00Z")),
    ("another tenant", _edit("tenant", "other")),
    ("another agent", _edit("agent", "somebody-else")),
    ("another action", _edit("action", "agent.memory.write")),
    ("the other outcome", _edit("outcome", "denied")),
    ("an invalid outcome", _edit("outcome", "perhaps")),
    ("another role", _edit("metadata", '{"role":"operator"}')),
    ("another hash", _edit("hash", "0" * 64)),
    ("forged", _forge),
    ("deleted", _delete),
    ("deleted and renumbered", _delete_and_renumber),
    ("swapped", _swap),
    ("inserted", _insert),
    ("inserted before the first", _insert_before_first),
    ("truncated", _truncate),
    ("truncated with a new head", _truncate_with_head),
    ("changed, all rehashed", _rehash(_edit("outcome", "denied"))),
    ("deleted, all rehashed", _rehash(_delete)),
    ("swapped, all rehashed", _rehash(_swap)),
    ("inserted, all rehashed", _rehash(_insert)),
]
