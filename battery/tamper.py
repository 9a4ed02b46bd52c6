"""Tampering with the audit: row after row is changed, taken out, put in, moved or forged, and each time it must be found.

Whoever tampers here has the database in hand and knows how the chain is made. The ways whose names end in "anew" write all
hashes and the head anew as well; only the mark beside the ledger still contradicts them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from battery.lab import Lab
from battery.report import Report

Row = tuple[Any, ...]
Head = tuple[int, str] | None  # None: the head stays as it was
Way = Callable[[list[Row], int], tuple[list[Row], Head]]
TIME, TENANT, AGENT, ACTION, OUTCOME, METADATA, HASH = range(1, 8)


def run(lab: Lab, report: Report, *, rows: int = 1000) -> None:
    """One way for each row, in turn."""
    home = lab.home("tamper")
    with report.row(f"audit: {rows} rows tampered with, one at a time") as row:
        for problems in attempts(home, rows):
            row.tried(problems, "python -m battery tamper", rows)
    lab.away(home)


def attempts(home: Path, count: int) -> list[list[str]]:
    """For each row what was not found; nothing is as it should be."""
    from holdfast.ledger import SqliteLedger
    from holdfast.ledger.audit_verify import verify

    ledger = SqliteLedger(str(home))
    _fill(ledger, count)
    intruder = Intruder(home)
    found = []
    for place in range(count):
        name, way = WAYS[place % len(WAYS)]
        intruder.put(*way(list(intruder.rows), place))
        found.append([f"row {place + 1}, {name}: not found"] if verify(ledger.audit).ok else [])
    intruder.put(intruder.rows, None)
    if not verify(ledger.audit).ok:
        found[-1].append("all was put back, and yet it is called broken")
    intruder.db.close()
    ledger.close()
    return found


def _fill(ledger: object, count: int) -> None:
    from holdfast.ledger import SqliteLedger
    from holdfast.ledger.audit import Decision

    assert isinstance(ledger, SqliteLedger)
    for number in range(1, count + 1):
        outcome = "denied" if number % 7 == 0 else "allowed"
        told = {"role": "code-review-engineer", "request": number}
        ledger.audit.append(Decision(f"agent-{number % 5}", "agent.memory.read", outcome, told))
    ledger.audit.save_mark()


class Intruder:
    """Somebody who has the database in hand; no check of SQLite's keeps him from anything."""

    def __init__(self, home: Path) -> None:
        self.db = apsw.Connection(str(home / "ledger.db"))
        self.db.set_busy_timeout(10_000)
        self.db.execute("PRAGMA ignore_check_constraints = ON").fetchall()
        self.rows: list[Row] = self.db.execute("SELECT * FROM audit ORDER BY number").fetchall()
        self._now = {row[0]: row for row in self.rows}
        self._head = self.rows[-1][0], self.rows[-1][HASH]

    def put(self, rows: list[Row], head: Head) -> None:
        """Leave these rows, whatever stood there."""
        before, self._now = self._now, {row[0]: row for row in rows}
        with self.db:
            gone = [(number,) for number in before if number not in self._now]
            self.db.executemany("DELETE FROM audit WHERE number = ?", gone).fetchall()
            other = [row for number, row in self._now.items() if before.get(number) != row]
            self.db.executemany("INSERT OR REPLACE INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", other).fetchall()
            self.db.execute("UPDATE audit_head SET count = ?, hash = ?", head or self._head).fetchall()


def _edited(column: int, value: str) -> Way:
    def way(rows: list[Row], place: int) -> tuple[list[Row], Head]:
        row = rows[place]
        new = value if value != row[column] else f"{value}!"
        rows[place] = (*row[:column], new, *row[column + 1 :])
        return rows, None

    return way


def _forged(rows: list[Row], place: int) -> tuple[list[Row], Head]:
    """Changed, with a hash that fits."""
    from holdfast.ledger.audit import chain_hash

    rows, _ = _edited(AGENT, "somebody-else")(rows, place)
    before = rows[place - 1][HASH] if place else ""
    rows[place] = (*rows[place][:HASH], chain_hash(before, *rows[place][:HASH]))
    return rows, None


def _deleted(rows: list[Row], place: int) -> tuple[list[Row], Head]:
    return rows[:place] + rows[place + 1 :], None


def _closed(rows: list[Row], place: int) -> tuple[list[Row], Head]:
    """Taken out, and the numbers after it moved up."""
    return _numbered(rows[:place] + rows[place + 1 :]), None


def _swapped(rows: list[Row], place: int) -> tuple[list[Row], Head]:
    other = place - 1 if place else 1
    rows[place], rows[other] = rows[other], rows[place]
    return _numbered(rows), None


def _inserted(rows: list[Row], place: int) -> tuple[list[Row], Head]:
    """A decision that never was, before this one."""
    return _numbered([*rows[:place], _edited(AGENT, "nobody")(list(rows), place)[0][place], *rows[place:]]), None


def _put_before(rows: list[Row], place: int) -> tuple[list[Row], Head]:
    return [(-place, *rows[place][1:]), *rows], None


def _cut(rows: list[Row], place: int) -> tuple[list[Row], Head]:
    return rows[:place], None


def _cut_anew(rows: list[Row], place: int) -> tuple[list[Row], Head]:
    kept = rows[:place]
    return kept, (kept[-1][0], kept[-1][HASH]) if kept else (0, "")


def _anew(way: Way) -> Way:
    """The same, and then every hash and the head made to fit."""

    def again(rows: list[Row], place: int) -> tuple[list[Row], Head]:
        from holdfast.ledger.audit import chain_hash

        changed, hash = [], ""
        for row in _numbered(way(rows, place)[0]):
            hash = chain_hash(hash, *row[:HASH])
            changed.append((*row[:HASH], hash))
        return changed, (changed[-1][0], hash)

    return again


def _numbered(rows: list[Row]) -> list[Row]:
    return [(number, *row[1:]) for number, row in enumerate(rows, 1)]


WAYS: list[tuple[str, Way]] = [
    ("another time", _edited(TIME, "2020-01-01T00:00:00Z")),
    ("another tenant", _edited(TENANT, "other")),
    ("another agent", _edited(AGENT, "somebody-else")),
    ("another action", _edited(ACTION, "agent.memory.write")),
    ("the other outcome", _edited(OUTCOME, "denied")),
    ("an outcome that there is not", _edited(OUTCOME, "perhaps")),
    ("another role", _edited(METADATA, '{"role":"operator"}')),
    ("another hash", _edited(HASH, "0" * 64)),
    ("forged", _forged),
    ("deleted", _deleted),
    ("deleted, numbers closed", _closed),
    ("swapped", _swapped),
    ("inserted", _inserted),
    ("put before the first", _put_before),
    ("cut off", _cut),
    ("cut off, head anew", _cut_anew),
    ("changed, all anew", _anew(_edited(OUTCOME, "denied"))),
    ("deleted, all anew", _anew(_deleted)),
    ("swapped, all anew", _anew(_swapped)),
    ("inserted, all anew", _anew(_inserted)),
]
