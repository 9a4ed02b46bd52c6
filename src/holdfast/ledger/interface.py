"""The interface of a ledger, whichever database holds it.

`SqliteLedger` (ledger.sqlite) and `PostgresLedger` (postgres.ledger) implement `Ledger`. The rules are the same for both and
live in the parts: `ProjectLinks`, `Usage`, `Purges`, `Audit` and so on. A part runs statements by name, through
`LedgerDatabase`; each database has a .sql file with all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from holdfast.ledger.agents import Agents
    from holdfast.ledger.audit import Audit, AuditMark, Decision
    from holdfast.ledger.audit_checkpoint import Checkpoint
    from holdfast.ledger.done import Done, Reviews
    from holdfast.ledger.file_sources import FileSources
    from holdfast.ledger.idempotency import IdempotencyKeys
    from holdfast.ledger.projects import ProjectLinks
    from holdfast.ledger.purges import Purges
    from holdfast.ledger.request_counts import RequestCounts
    from holdfast.ledger.transfer import Transfer
    from holdfast.ledger.usage import Decisions, Sessions, Usage
    from holdfast.ledger.web_sessions import SignInCodes, WebSessions

T = TypeVar("T")


class Ledger(Protocol):
    """Durable records that are not prose: ids, counts and digests, never the text of a note."""

    tenant: str  # the only tenant whose rows it takes; "" where it takes those of any

    projects: ProjectLinks
    usage: Usage
    sessions: Sessions
    decisions: Decisions

    @property
    def purge_flags(self) -> PurgeFlags: ...
    @property
    def purges(self) -> Purges: ...
    @property
    def agents(self) -> Agents: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def done(self) -> Done: ...
    @property
    def reviews(self) -> Reviews: ...
    @property
    def idempotency_keys(self) -> IdempotencyKeys: ...
    @property
    def request_counts(self) -> RequestCounts: ...
    @property
    def file_sources(self) -> FileSources: ...
    @property
    def web_sessions(self) -> WebSessions: ...
    @property
    def sign_in_codes(self) -> SignInCodes: ...
    @property
    def transfer(self) -> Transfer: ...

    @property
    def problem(self) -> str | None:
        """A message for people: why the ledger could not be read, or that a damaged one was set aside."""

    def check_ready(self) -> None:
        """Raise if tokens cannot be looked up now, or if the database is read-only."""

    def named_lock(self, name: str, seconds: float) -> AbstractContextManager[object]:
        """Return a lock between processes; entering it raises Busy after this many seconds."""

    def scrub(self, seconds: float | None = None) -> None:
        """Leave nothing of deleted rows in the write-ahead log; wait this many seconds for other readers, then raise Busy."""

    def close(self) -> None: ...


class Transaction(Protocol):
    """Named statements inside one transaction."""

    def run(self, statement: str, /, **values: Any) -> list[Any]:
        """Run a statement and return its rows."""

    def run_many(self, statement: str, rows: Iterable[dict[str, Any]], /) -> list[Any]:
        """Run a statement once for each of these rows of values and return all result rows."""

    def lock(self, name: str) -> None:
        """Let no other transaction that locks this name run until this one ends."""


class LedgerDatabase(Protocol):
    """Runs named statements. Nothing is opened before the first one."""

    home: str  # the folder of the ledger; "" where there is none

    @property
    def lock(self) -> AbstractContextManager[object]:
        """A lock between the threads of this process; reset in a child process."""

    def read(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows; none where there is no ledger yet. Raises where it cannot be read."""

    def read_or_empty(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows, or none where the ledger cannot be read: for records that are only helpful."""

    def read_current(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows like `read`, but raise also where only an older copy, or the empty ledger that replaced a damaged
        one, can be read.

        For records that decide something: a token that cannot be looked up is not unknown, and work that cannot be looked
        up may have been done."""

    def read_any_tenant(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows like `read_current`, before the tenant of the caller is known."""

    def write(
        self, work: Callable[[Transaction], T], *, durable: bool = True, checkpoint: bool = False,
        retry_after_reset: bool = True,
    ) -> T:  # fmt: skip
        """Run `work` in one transaction, perhaps repeatedly.

        A durable one is on disk when this returns; with `checkpoint`, also in the main file of a database that has a log.
        If a damaged file is replaced on the way, the work is repeated on the new one, or raises Damaged."""

    def identity(self) -> int:
        """Return a number that changes when the whole database is replaced; 0 where there is none."""

    def last_reset(self) -> float:
        """Return when a damaged database that is still there was set aside, in seconds since 1970; 0.0 where none was."""

    def check_complete(self) -> None:
        """Raise Damaged while a damaged database that was set aside, and may know more, is still there."""


class AuditChain(Protocol):
    """Storage of the audit's rows, of the head of their hash chain, and of the mark beside it."""

    mark_name: str  # the name of the mark in messages

    def append(self, transaction: Transaction, decisions: Iterable[Decision]) -> None:
        """Add rows and move the head of the chain; raises Damaged where the head is missing."""

    def save_mark(self) -> None:
        """Write the head to the mark, unless the mark contradicts the chain."""

    def read_mark(self) -> AuditMark | None:
        """Return the mark; None if there is none."""

    def prune(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint and remove the rows up to it; raises Conflict if they are not what it names."""


class PurgeFlags(Protocol):
    """Flags: whether anything was ever purged or rejected. If not, no digest has to be looked up."""

    def any_purged(self) -> bool: ...
    def any_rejected(self) -> bool: ...
    def set_purged(self) -> None: ...
    def set_rejected(self) -> None: ...


class SecretKey(Protocol):
    """A secret that stays the same as long as the home or the tenant exists, even if the ledger is replaced."""

    def load(self) -> bytes:
        """Return the secret; make one if there is none."""

    def find(self) -> bytes | None:
        """Return the secret, or None if there is none."""

    def save(self, value: bytes) -> None:
        """Keep a secret that was made elsewhere, unless there is one."""
