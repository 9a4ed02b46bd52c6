"""The audit's hash chain in SQLite, and its mark: one line in the file audit.head beside the ledger.

A person who cuts rows off the end of the audit, or writes all of it again, must also change this file; and a copy of the line
that is kept elsewhere cannot be changed by the owner of the home.
"""

from __future__ import annotations

import os

from holdfast.base import dates
from holdfast.errors import Conflict, Damaged, Template, command, from_os
from holdfast.home import Lock
from holdfast.ledger.audit import AuditMark, canonical_metadata, chain_hash, decode_row, parse_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.ledger.audit import Decision
    from holdfast.ledger.audit_checkpoint import Checkpoint
    from holdfast.ledger.interface import LedgerDatabase, Transaction

MARK_FILE = "audit.head"
_MAX_BYTES = 4096
_LOCK_SECONDS = 5
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class SqliteAuditChain:
    """The chain in a home's ledger."""

    mark_name = f"the file {MARK_FILE}"

    def __init__(self, database: LedgerDatabase, home: str) -> None:
        self._database, self._home = database, home

    def append(self, transaction: Transaction, decisions: Iterable[Decision]) -> None:
        """Add rows and move the head of the chain; raises Damaged where the head is missing."""
        head = transaction.run("audit.head")
        if not head:
            fix = Template("Keep ledger.db as it is and run ", command("audit verify"))
            raise Damaged("the head of the audit is missing", fix)
        count, hash = decode_row(head[0])
        now = dates.now_milliseconds()
        rows: list[dict[str, Any]] = []
        for decision in decisions:
            count += 1
            row = {
                "number": count, "time": now, "tenant": decision.tenant, "agent": decision.agent, "action": decision.action,
                "outcome": decision.outcome, "metadata": canonical_metadata(decision.metadata),
            }  # fmt: skip
            hash = chain_hash(hash, *row.values())
            rows.append({**row, "hash": hash})
        transaction.run_many("audit.append", rows)
        transaction.run("audit.move_head", count=count, hash=hash)

    def save_mark(self) -> None:
        """Write the head to the file. A file that the chain contradicts is evidence and stays as it is."""

        def take_head(transaction: Transaction) -> list[Any]:  # all rows are durable before the mark is
            transaction.run("audit.take_unmarked")
            return transaction.run("audit.head")

        head = self._database.write(take_head)
        if not head or head[0][0] == 0:
            return
        new = AuditMark(*decode_row(head[0]))
        with Lock(self._home, MARK_FILE, _LOCK_SECONDS):
            old = read_mark_file(self._home)
            if old is None or (old.count < new.count and self._agrees_with(old)):
                _write_mark_file(self._home, new)

    def _agrees_with(self, mark: AuditMark) -> bool:
        """Return whether the chain has the row that a mark names, or the row was removed since."""
        rows = self._database.read_current("audit.hash_of", number=mark.count)
        removed = self._database.read_current("audit.checkpoint")
        return [decode_row(row) for row in rows] == [[mark.hash]] or bool(removed and removed[0][0] >= mark.count)

    def read_mark(self) -> AuditMark | None:
        """Return what the file says; None if there is none."""
        return read_mark_file(self._home)

    def prune(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint and remove the rows up to it; raises Conflict if they are not what it names."""

        def remove(transaction: Transaction) -> None:
            if not transaction.run("audit.is_removable", **checkpoint.as_dict()):
                raise Conflict("another process changed the audit at the same time", "Run it again")
            transaction.run("audit.put_checkpoint", **checkpoint.as_dict())
            transaction.run("audit.remove", number=checkpoint.number)

        self._database.write(remove)


def read_mark_file(home: str) -> AuditMark | None:
    """Return the mark in a home; None if there is none. Raises Damaged if the file holds something else."""
    path = os.path.join(home, MARK_FILE)
    try:
        fd = os.open(path, os.O_RDONLY | _FLAGS)
        with open(fd, "rb") as file:
            data = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise from_os(error, f"cannot read {path}") from error
    mark = parse_mark(data.decode("ascii", "replace").partition(" ")[0])
    if mark is None:
        raise Damaged(f"{path} does not say where the audit ends", "Keep it aside: the next decision writes a new one")
    return mark


def _write_mark_file(home: str, mark: AuditMark) -> None:
    """Replace the file, completely and fsynced; the caller holds its lock."""
    path = os.path.join(home, MARK_FILE)
    temp = f"{path}.new"
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
        try:
            os.write(fd, f"{mark} {dates.now()}\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temp, path)
    except OSError as error:
        raise from_os(error, f"cannot write {path}") from error
