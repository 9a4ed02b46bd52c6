"""The audit: every decision is a row, and the hash of each row covers the row and the hash of the previous one.

Any number of processes append: the row and the head of the chain change in one transaction, so the chain never forks. Rows of
threads that append at the same time are written in one batch. Now and then the head is also written to a second place, the
mark (see `AuditChain`): rows cut off at the end of the audit are then noticed. A gateway calls `save_mark` every second; a
command writes the mark when it closes its ledger. Old rows are removed in `audit_checkpoint`.
"""

from __future__ import annotations

import json
import time
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quote_json
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.base.batch_queue import BatchQueue
from holdfast.base.record import Record
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from builtins import list as List  # `list` is a method here
    from collections.abc import Iterable, Iterator

    from holdfast.ledger.audit_checkpoint import Checkpoint
    from holdfast.ledger.interface import AuditChain, LedgerDatabase, SecretKey, Transaction

FIRST, LAST = -(2**63), 2**63 - 1  # the numbers that a row can have, also a forged one
_ROWS_PER_QUERY = 1000
_MARK_SECONDS, _MARK_ROWS = 5, 256  # after which the mark is due; a gateway does not let it wait so long
_MAX_CHARS, _MAX_FIELDS = 200, 24  # of metadata: names and ids, never a text
_dump = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


class Decision(Record):
    """A decision to be recorded."""

    agent: str
    action: str
    outcome: str
    metadata: dict[str, Any]
    tenant: str = "default"


class Entry(Record):
    """One decision."""  # published in openapi.json

    number: int
    time: str
    tenant: str
    agent: str
    action: str
    outcome: str
    metadata: dict[str, Any]
    hash: str


class ChainedEntry(Entry):
    """One decision of an export, with the hash of the row before it: so every part of the chain can be verified."""

    previous: str


class AuditRow(NamedTuple):
    """A row of the audit as it is stored."""

    number: int
    time: str
    tenant: str
    agent: str
    action: str
    outcome: str
    metadata: str
    hash: str

    @property
    def entry(self) -> Entry:
        """The row as it is shown; damaged metadata is shown as it is."""
        return Entry(**{**self._asdict(), "metadata": self._parse_metadata()})

    def chained_entry(self, previous: str) -> ChainedEntry:
        """Return the row as it is exported."""
        return ChainedEntry(**{**self._asdict(), "metadata": self._parse_metadata(), "previous": previous})

    def _parse_metadata(self) -> dict[str, Any]:
        try:
            parsed = json.loads(self.metadata)
        except ValueError:
            parsed = None
        return parsed if isinstance(parsed, dict) else {"unreadable": str(self.metadata)[:_MAX_CHARS]}


class AuditMark(Record):
    """The number of the last row and its hash."""

    count: int
    hash: str

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"


def parse_mark(text: str) -> AuditMark | None:
    """Parse `12:ab34...`, or the whole line as `audit verify` prints it; None if it is neither."""
    count, _, hash = text.strip().removeprefix("head ").partition(":")
    is_mark = count.isascii() and count.isdecimal() and len(hash) == 64 and hash.isascii() and hash.isalnum()
    return AuditMark(int(count), hash) if is_mark else None


class Audit:
    """The audit of one home or tenant, shared by all threads."""

    def __init__(self, database: LedgerDatabase, chain: AuditChain, secret: SecretKey) -> None:
        self._database, self._chain = database, chain
        self.secret = secret  # signs checkpoints
        self._queue = BatchQueue(self._write_batch)
        self._marked_at = 0.0
        self._appended = self._marked = 0  # rows of this object, and how many of them the mark covers
        self._deferred: List[Decision] = []  # rows that a full disk kept out

    @property
    def mark_name(self) -> str:
        """The name of the mark's location in messages."""
        return self._chain.mark_name

    # --- writing --------------------------------------------------------------------------------------------------

    def append(self, decision: Decision, durable: bool = False) -> None:
        """Add a row, in one transaction with the rows of other threads that wait; a durable one is on disk after that."""
        self._queue.submit((decision, durable))

    def _write_batch(self, batch: List[tuple[Decision, bool]]) -> List[None]:
        durable = any(durable for _, durable in batch)
        decisions = [decision for decision, _ in batch]
        self._database.write(lambda transaction: self.append_in(transaction, decisions), durable=durable)
        self.update_mark(len(batch), mark_now=False)
        return [None] * len(batch)

    def defer(self, decision: Decision) -> None:
        """Keep a row until there is space for it."""
        with self._database.lock:
            self._deferred.append(decision)

    def write_deferred(self) -> None:
        """Write the rows for which there was no space."""
        with self._database.lock:
            deferred, self._deferred = self._deferred, []
        try:
            for decision in deferred.copy():
                self.append(decision, durable=True)
                deferred.remove(decision)
        finally:
            with self._database.lock:
                self._deferred = [*deferred, *self._deferred]

    def append_in(self, transaction: Transaction, decisions: Iterable[Decision]) -> None:
        """Add rows inside a transaction that may change other things as well; then call `update_mark`."""
        self._chain.append(transaction, decisions)

    def update_mark(self, count: int, mark_now: bool = True) -> None:
        """Save the mark after `count` rows were added: now, or only if it is due."""
        with self._database.lock:
            self._appended += count
        is_due = self._appended - self._marked >= _MARK_ROWS or time.monotonic() - self._marked_at >= _MARK_SECONDS
        if not mark_now and not is_due:
            return
        try:
            self.save_mark()
        except HoldfastError:
            pass  # the rows are in the chain, and an older mark is still true; `verify` says how far it reaches

    @property
    def is_mark_behind(self) -> bool:
        """Whether this object added rows that the mark does not cover yet."""
        return self._appended != self._marked

    def save_mark(self, always: bool = False) -> None:
        """Write the head of the chain to its second place, if rows were added since, or `always`."""
        appended = self._appended
        if appended != self._marked or always:
            self._marked_at = time.monotonic()
            self._chain.save_mark()
            self._marked = max(self._marked, appended)

    # --- reading --------------------------------------------------------------------------------------------------

    def list(
        self, *, limit: int = 50, before: int | None = None, agent: str | None = None, action: str | None = None,
        outcome: str | None = None, since: str | None = None, until: str | None = None, token: str | None = None,
        address: str | None = None,
    ) -> tuple[List[Entry], int | None]:  # fmt: skip
        """Return the newest entries first, and the number to pass as `before` for the next page; None after the last.

        `since` and `until` have milliseconds (`dates.parse_moment_milliseconds`), as rows have."""
        rows = self._read_rows(
            "audit.list", most=limit + 1, before=before, agent=agent, action=action, outcome=outcome, since=since, until=until,
            token=token, address=address,
        )  # fmt: skip
        return [row.entry for row in rows[:limit]], rows[limit - 1].number if len(rows) > limit else None

    def iterate_entries(self) -> Iterator[Entry]:
        """Yield all entries, oldest first."""
        return (row.entry for row in self.iterate_rows())

    def export(self, since: str | None = None, until: str | None = None) -> Iterator[ChainedEntry]:
        """Yield the entries of a time, oldest first: one unbroken part of the chain, from the first row that is as new as
        `since` to the last one that is older than `until`. Both have milliseconds."""
        ((first, last),) = self._database.read_current("audit.range", since=since, until=until) or [(None, None)]
        if first is not None and last is not None:
            yield from self.iterate_chain(first, last)

    def iterate_chain(self, first: int, last: int = LAST, most: int = _ROWS_PER_QUERY) -> Iterator[ChainedEntry]:
        """Yield the entries between two numbers that were not removed, each with the hash before it; read `most` at a time."""
        checkpoint = self.read_checkpoint()
        if checkpoint is not None and checkpoint.number >= first - 1:
            first, previous = checkpoint.number + 1, checkpoint.hash
        else:
            rows = self._database.read_current("audit.hash_of", number=first - 1)
            previous = str(decode_row(rows[0])[0]) if rows else ""
        for row in self.iterate_rows(first, most):
            if row.number > last:
                return
            yield row.chained_entry(previous)
            previous = row.hash

    def iterate_rows(self, first: int = FIRST, most: int = _ROWS_PER_QUERY) -> Iterator[AuditRow]:
        """Yield the stored rows from this number on, read in portions."""
        while True:
            portion = self._read_rows("audit.walk", first=first, most=most)
            yield from portion
            if len(portion) < most or portion[-1].number == LAST:
                return
            first = portion[-1].number + 1

    def _read_rows(self, statement: str, **values: Any) -> List[AuditRow]:
        return [AuditRow(*decode_row(row)) for row in self._database.read_current(statement, **values)]

    def read_head(self) -> AuditMark | None:
        """Return the end of the chain as the ledger itself says."""
        return self._read_end("audit.head")

    def read_last(self) -> AuditMark | None:
        """Return the last row there is."""
        return self._read_end("audit.last")

    def _read_end(self, statement: str) -> AuditMark | None:
        rows = self._database.read_current(statement)
        return AuditMark(*decode_row(rows[0])) if rows else None

    def read_mark(self) -> AuditMark | None:
        """Return the head as it was last written to the mark."""
        return self._chain.read_mark()

    # --- removed rows -----------------------------------------------------------------------------------------------

    def read_checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint at which removed rows end; None if no row was ever removed."""
        from holdfast.ledger.audit_checkpoint import Checkpoint

        rows = self._database.read_current("audit.checkpoint")
        return Checkpoint(*decode_row(rows[0])) if rows else None

    def find_first_since(self, moment: str) -> int | None:
        """Return the number of the first row that is not older than this; None if there is none."""
        ((first, _),) = self._database.read_current("audit.range", since=moment, until=None) or [(None, None)]
        return None if first is None else int(first)

    def remove_through(self, checkpoint: Checkpoint) -> None:
        """Write a signed checkpoint and remove the rows up to it, in one transaction."""
        self._chain.prune(checkpoint)

    # --- shipped rows -----------------------------------------------------------------------------------------------

    def read_position(self, target: str) -> int:
        """Return the number of the last row that was shipped to a target; 0 if none was."""
        rows = self._database.read_current("audit.position", target=target)
        return int(rows[0][0]) if rows else 0

    def list_unshipped_tenants(self, target: str) -> List[str]:
        """Return the tenants of a server with rows that were not shipped to a target."""
        return [tenant for (tenant,) in self._database.read_any_tenant("audit.unshipped_tenants", target=target)]

    def save_position(self, target: str, number: int) -> None:
        """Record that all rows up to this number were shipped; a lower number changes nothing."""
        self._database.write(
            lambda transaction: transaction.run("audit.put_position", target=target, number=number), durable=False
        )


def target_id(address: str) -> str:
    """Return the name under which the ledger keeps how far the audit was shipped to an address, which may hold a secret."""
    return sha256(address.encode()).hexdigest()[:32]


def chain_hash(previous: str, *fields: object) -> str:
    """Return the hash of a row: of the previous hash, the row's number and its fields, written as one JSON list."""
    written = [str(field) if isinstance(field, int) else quote_json(str(field)) for field in (previous, *fields)]
    return sha256(f"[{','.join(written)}]".encode()).hexdigest()


def canonical_metadata(metadata: dict[str, Any]) -> str:
    """Return the one form in which metadata is stored: sorted, plain values, nothing long enough to be a text."""
    plain = {str(name)[:_MAX_CHARS]: _to_plain_value(value) for name, value in list(metadata.items())[:_MAX_FIELDS]}
    return _dump(plain)


def encode_metadata(metadata: dict[str, Any]) -> str:
    """Return metadata of an exported entry as it was stored and hashed."""
    return _dump(metadata)


def _to_plain_value(value: object) -> object:
    return value if isinstance(value, bool | int | None) else str(value)[:_MAX_CHARS]


def decode_row(row: Iterable[Any]) -> List[Any]:
    """Return the fields with bytes as text; bytes that are not UTF-8 are shown with backslashes."""
    return [field.decode("utf-8", "backslashreplace") if isinstance(field, bytes) else field for field in row]
