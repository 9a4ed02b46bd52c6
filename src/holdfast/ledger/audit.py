"""The audit: every decision is one row, and each row's hash is made from the row and from the hash before it.

Any number of processes append: the row and the head of the chain change in one transaction, so the chain never forks.
Threads that come at once are written together. The head also goes to a file beside the ledger now and then (see mark).
"""

from __future__ import annotations

import json
import time
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quoted

from holdfast import sqlite
from holdfast.base import dates
from holdfast.base.batch_queue import BatchQueue
from holdfast.base.record import Record
from holdfast.errors import Damaged, HoldfastError, Template, command
from holdfast.home import Lock
from holdfast.ledger import audit_mark as marks
from holdfast.ledger.records import Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a verb here
    from collections.abc import Iterable, Iterator
    from typing import Any

    import apsw

    from holdfast.home import Database

SQL = sqlite.statements(__file__)
FIRST, LAST = -(2**63), 2**63 - 1  # numbers that a row can have, be it by somebody else's hand
_CHUNK = 1000
_written = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
_MARK_SECONDS, _MARK_ROWS = 5, 256
_MOST_CHARACTERS, _MOST_FIELDS = 200, 24  # of metadata: names and ids, never a text


class Entry(Record):
    """One decision."""

    number: int
    time: str
    tenant: str
    agent: str
    action: str
    outcome: str
    metadata: dict[str, Any]
    hash: str


class Decision(Record):
    """What is to be written down of one."""

    agent: str
    action: str
    outcome: str
    metadata: dict[str, Any]
    tenant: str = "default"


class Audit(Records):
    """The rows of one home."""

    _sql = SQL
    marked_in = f"the file {marks.NAME}"
    _begins_anew = True

    def __init__(self, file: Database, path: str) -> None:
        super().__init__(file, path)
        self._home = path.rpartition("/")[0]
        self._queue = BatchQueue(self._write_batch)
        self._marked_at, self._unmarked = 0.0, 0

    # --- writing --------------------------------------------------------------------------------------------------

    def append(self, decision: Decision, durable: bool = False) -> None:
        """Write one row, in one transaction with the rows of other threads that wait; durable means that it is on the disk
        when this returns."""
        self._queue.submit((decision, durable))

    def _write_batch(self, batch: List[tuple[Decision, bool]]) -> List[None]:
        durable = any(durable for _, durable in batch)
        self._write(lambda db: self.add(db, [decision for decision, _ in batch]), durable)
        self.added(len(batch), due=False)
        return [None] * len(batch)

    def add(self, db: apsw.Connection, decisions: Iterable[Decision]) -> None:
        """The rows, within a transaction that may change other things as well."""
        head = [legible(row) for row in self._run(db, "head")]
        if not head:
            fix = Template("Keep ledger.db as it is and run ", command("audit verify"))
            raise Damaged("the audit has lost its head", fix)
        (count, hash), now, rows = head[0], dates.now(), []
        for one in decisions:
            count += 1
            told = (one.tenant, one.agent, one.action, one.outcome, canonical(one.metadata))
            hash = chained(hash, count, now, *told)
            rows.append((count, now, *told, hash))
        db.executemany(SQL["append"], rows).fetchall()
        self._run(db, "move_head", count=count, hash=hash)

    # --- the mark beside the ledger -------------------------------------------------------------------------------

    def added(self, written: int, due: bool = True) -> None:
        """So many rows went in; where it is due, the mark moves on."""
        self._unmarked += written
        if not due and self._unmarked < _MARK_ROWS and time.monotonic() - self._marked_at < _MARK_SECONDS:
            return
        try:
            self.mark()
        except HoldfastError:
            pass  # the rows are in the chain, and a mark that lags is still true; `verify` says how far it reaches

    def mark(self) -> None:
        """Write the head down beside the ledger, once it is on the disk. A mark that the chain contradicts is evidence: it
        stays as it is."""
        if self._unmarked == 0:
            return
        self._marked_at, self._unmarked = time.monotonic(), 0
        moved = [legible(row) for row in self._write(lambda db: self._run(db, "marked"))]
        if not moved:
            return
        with Lock(self._home, marks.NAME, _MARK_SECONDS):
            new, old = marks.AuditMark(*moved[0]), marks.read(self._home)
            if old is None or (old.count < new.count and self._rows("hash_of", number=old.count) == [(old.hash,)]):
                marks.write(self._home, new)

    # --- reading --------------------------------------------------------------------------------------------------

    def list(
        self, *, limit: int = 50, before: int | None = None, agent: str | None = None, action: str | None = None,
        outcome: str | None = None, since: str | None = None, until: str | None = None,
    ) -> tuple[List[Entry], int | None]:  # fmt: skip
        """The newest first, and the number to give as `before` for the next page; None after the last."""
        rows = self._rows(
            "list", most=limit + 1, before=before, agent=agent, action=action, outcome=outcome, since=since, until=until
        )
        return [entry_of(row) for row in rows[:limit]], rows[limit - 1][0] if len(rows) > limit else None

    def _rows(self, statement: str, **values: Any) -> List[Any]:
        return [legible(row) for row in super()._rows(statement, **values)]

    def walk(self) -> Iterator[Entry]:
        """All of them, oldest first, a few at a time."""
        return (entry_of(row) for row in self.rows())

    def rows(self, first: int = FIRST) -> Iterator[tuple[Any, ...]]:
        """The bare rows from a number on."""
        while True:
            chunk = self._rows("walk", first=first, most=_CHUNK)
            yield from chunk
            if len(chunk) < _CHUNK or chunk[-1][0] == LAST:
                return
            first = chunk[-1][0] + 1

    def head(self) -> marks.AuditMark | None:
        """Where the chain ends, as the ledger itself says."""
        rows = self._rows("head")
        return marks.AuditMark(*rows[0]) if rows else None

    def last(self) -> marks.AuditMark | None:
        """The last row there is."""
        rows = self._rows("last")
        return marks.AuditMark(*rows[0]) if rows else None

    def noted(self) -> marks.AuditMark | None:
        """Where it ended when that was last written down beside the ledger."""
        return marks.read(self._home)


def chained(previous: str, *fields: object) -> str:
    """The hash of a row: over the hash before it, its number, and all that it says, as the JSON list that they make."""
    told = [str(one) if isinstance(one, int) else quoted(str(one)) for one in (previous, *fields)]
    return sha256(f"[{','.join(told)}]".encode()).hexdigest()


def canonical(metadata: dict[str, Any]) -> str:
    """The one way to write it: sorted, plain values, and nothing long enough to be a text."""
    plain = {str(name)[:_MOST_CHARACTERS]: _plain(value) for name, value in list(metadata.items())[:_MOST_FIELDS]}
    return _written(plain)


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | None) else str(value)[:_MOST_CHARACTERS]


def legible(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row with its bytes as text; where they are none, so that it can be seen."""
    return tuple([one.decode("utf-8", "backslashreplace") if isinstance(one, bytes) else one for one in row])


def entry_of(row: tuple[Any, ...]) -> Entry:
    """A row as it is told; metadata that somebody broke is shown as it stands."""
    number, time, tenant, agent, action, outcome, text, hash = row
    try:
        metadata = json.loads(text)
    except ValueError:
        metadata = text
    told = metadata if isinstance(metadata, dict) else {"unreadable": str(text)[:_MOST_CHARACTERS]}
    return Entry(number, time, tenant, agent, action, outcome, told, hash)
