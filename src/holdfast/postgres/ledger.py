"""The ledger of one tenant in PostgreSQL.

SQLite has one writer at a time; here, locks that end with their transaction do the same. Each tenant has an audit of its own,
whose head moves in the same statement that appends a row.
"""

from __future__ import annotations

import os
from contextlib import suppress
from json.encoder import encode_basestring_ascii as quote_json
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.base import dates
from holdfast.errors import Busy, Conflict, Damaged, DiskTrouble, HoldfastError, Template, command
from holdfast.ledger.agents import Agents
from holdfast.ledger.audit import Audit, AuditMark, canonical_metadata
from holdfast.ledger.done import Done, Reviews
from holdfast.ledger.file_sources import FileSources
from holdfast.ledger.idempotency import IdempotencyKeys
from holdfast.ledger.projects import ProjectLinks
from holdfast.ledger.purges import Purges
from holdfast.ledger.request_counts import RequestCounts
from holdfast.ledger.transfer import AUDIT, REVIEW, Transfer
from holdfast.ledger.usage import Decisions, Sessions, Usage
from holdfast.ledger.web_sessions import SignInCodes, WebSessions
from holdfast.postgres import Database, Lock, statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from holdfast.ledger.audit import Decision
    from holdfast.ledger.audit_checkpoint import Checkpoint
    from holdfast.ledger.interface import LedgerDatabase, Transaction
    from holdfast.postgres import PostgresSettings, Session

T = TypeVar("T")

SQL = statements(__file__)


class PostgresLedger:
    """One tenant's records; of the done records, those that the agent of the settings may see."""

    def __init__(self, settings: PostgresSettings, lock_seconds: float = 30) -> None:
        self._settings = settings
        self.tenant = settings.tenant
        self.database = PostgresLedgerDatabase(settings, lock_seconds)
        self.projects = ProjectLinks(self.database)
        self.usage = Usage(self.database)
        self.sessions = Sessions(self.database)
        self.decisions = Decisions(self.database)
        self.purge_flags = PurgeFlagRows(self.database)
        self.purges = Purges(self.database, self.purge_flags)
        review_key, audit_key = SecretRow(self.database, REVIEW), SecretRow(self.database, AUDIT)
        self.audit = Audit(self.database, PostgresAuditChain(self.database), audit_key)
        self.agents = Agents(self.database, self.audit)
        self.done = Done(self.database, review_key)
        self.reviews = Reviews(self.database, review_key)
        self.idempotency_keys = IdempotencyKeys(self.database)
        self.request_counts = RequestCounts(self.database)
        self.file_sources = FileSources(self.database)
        self.web_sessions = WebSessions(self.database)
        self.sign_in_codes = SignInCodes(self.database)
        self.transfer = Transfer(self.database, self.purges, {REVIEW: review_key, AUDIT: audit_key})

    @property
    def problem(self) -> str | None:
        """Why the ledger could not be read."""
        return self.database.unreadable

    def check_ready(self) -> None:
        """Raise if tokens cannot be looked up now, or if the server accepts no writes, as a standby does."""
        self.agents.find_tokens([""])
        if not self.database.read_any_tenant("accepts_writes")[0][0]:
            raise Busy("the database is read-only", "Make it the primary, or correct store.url")

    def named_lock(self, name: str, seconds: float) -> AbstractContextManager[object]:
        """Return a lock between processes; entering it raises Busy after this many seconds."""
        return Lock(self._settings, name, seconds)

    def scrub(self, seconds: float | None = None) -> None:
        """Do nothing: VACUUM removes deleted rows (see `Database.vacuum`)."""

    def close(self) -> None:
        """Write what is deferred, and save the audit's mark. Connections belong to the process and stay open."""
        with suppress(HoldfastError):  # a count that fails never fails anything else
            self.usage.write_deferred()
        with suppress(HoldfastError):  # the log of the home has what is still missing
            self.audit.write_deferred()
        self.audit.update_mark(0)


class PostgresLedgerDatabase:
    """Named statements on one tenant's tables."""

    home = ""

    def __init__(self, settings: PostgresSettings, lock_seconds: float) -> None:
        self.connection = Database(settings, SQL, lock_seconds)
        self._no_tenant: Database | None = None
        self.unreadable: str | None = None  # why the last `read_or_empty` found nothing

    @property
    def lock(self) -> AbstractContextManager[object]:
        return self.connection.lock

    def read(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows; raises where the database does not answer."""
        return self.connection.rows(statement, **clean_values(values))

    read_current = read  # there is no older copy, and no damaged file that is replaced

    def read_or_empty(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows; none where the database does not answer."""
        try:
            rows = self.read(statement, **values)
        except (Busy, Damaged, DiskTrouble) as error:
            self.unreadable = error.message
            return []
        self.unreadable = None
        return rows

    def read_any_tenant(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows, asked without a tenant."""
        self._no_tenant = self._no_tenant or self.connection.without_tenant()
        return self._no_tenant.rows(statement, **clean_values(values))

    def write(
        self, work: Callable[[Transaction], T], *, durable: bool = True, checkpoint: bool = False,
        retry_after_reset: bool = True,
    ) -> T:  # fmt: skip
        """Run `work` in one transaction. `checkpoint` and `retry_after_reset` are for databases that are a file."""
        return self.connection.write(lambda session: work(PostgresTransaction(session)), durable)

    def identity(self) -> int:
        """Return 1: a tenant's records are never replaced by others."""
        return 1

    def last_reset(self) -> float:
        return 0.0

    def check_complete(self) -> None:
        """Do nothing: no damaged file is ever set aside."""


class PostgresTransaction:
    """Named statements inside a transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, statement: str, /, **values: Any) -> list[Any]:
        return self._session.execute(SQL[statement], clean_values(values)).fetchall()

    def run_many(self, statement: str, rows: Iterable[dict[str, Any]], /) -> list[Any]:
        return self._session.executemany(SQL[statement], [clean_values(row) for row in rows]).fetchall()

    def lock(self, name: str) -> None:
        self._session.execute(SQL["lock"], clean_values({"name": name}))


class PostgresAuditChain:
    """The chain in the tenant's tables; a function of the database computes the hashes. The mark is a row of its own."""

    mark_name = "the row in audit_mark"

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def append(self, transaction: Transaction, decisions: Iterable[Decision]) -> None:
        """Add rows and move the head of the chain; raises Damaged where the head is missing."""
        now = dates.now_milliseconds()
        lines = "\n".join([_hashed_form(decision, now) for decision in decisions])
        if transaction.run("audit.append", rows=lines) != [(0,)]:
            return
        transaction.run("audit.begin")  # of a new tenant
        if transaction.run("audit.append", rows=lines) == [(0,)]:
            fix = Template("Keep the tables as they are and run ", command("audit verify"))
            raise Damaged("the head of the audit is missing", fix)

    def save_mark(self) -> None:
        """Write the head to the mark, unless the mark contradicts the chain."""

        def write_mark(transaction: Transaction) -> None:
            for count, hash in transaction.run("audit.take_unmarked"):
                transaction.run("audit.put_mark", count=count, hash=hash)

        self._database.write(write_mark)

    def read_mark(self) -> AuditMark | None:
        rows = self._database.read_current("audit.mark")
        return AuditMark(*rows[0]) if rows else None

    def prune(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint and remove the rows up to it, by a function of the database: this role cannot delete rows."""

        def remove(transaction: Transaction) -> None:
            if transaction.run("audit.prune", **checkpoint.as_dict()) != [(True,)]:
                raise Conflict(
                    "another process changed the audit at the same time, or its rows are not old enough", "Run it again"
                )

        self._database.write(remove)


class PurgeFlagRows:
    """Whether there are receipts or rejections: the rows themselves say so."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database
        self._purged = self._rejected = False

    def any_purged(self) -> bool:
        if not self._purged:  # receipts are never deleted
            self._purged, rejected = self._database.read("any_purged")[0]
            self._rejected = self._rejected or rejected
        return self._purged

    def any_rejected(self) -> bool:
        """Return what the last query of `any_purged` found; after a purge it is no longer queried, so this returns True."""
        return self._purged or self._rejected

    def set_purged(self) -> None:
        """Do nothing: the receipt is the flag."""

    def set_rejected(self) -> None:
        """Do nothing: the row is the flag."""


class SecretRow:
    """A secret key of the tenant as a row, made by the first process that needs it."""

    def __init__(self, database: LedgerDatabase, name: str) -> None:
        self._database, self._name = database, name

    def load(self) -> bytes:
        """Return the secret; make one if there is none."""
        found = self.find()
        if found is None:
            self.save(os.urandom(32))
            found = self.find()
        assert found is not None
        return found

    def find(self) -> bytes | None:
        rows = self._database.read_current("key", name=self._name)
        return bytes(rows[0][0]) if rows else None

    def save(self, value: bytes) -> None:
        """Keep a secret, unless there is one."""
        self._database.write(lambda transaction: transaction.run("add_key", name=self._name, value=value))


def _hashed_form(decision: Decision, now: str) -> str:
    """Return the fields of a row as they are hashed: plain ASCII on one line."""
    fields = (now, decision.tenant, decision.agent, decision.action, decision.outcome, canonical_metadata(decision.metadata))
    return ",".join([quote_json(_clean_text(field)) for field in fields])


def clean_values(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with U+FFFD for characters that a column of text does not take."""
    return {name: _clean_text(value) if isinstance(value, str) else value for name, value in values.items()}


def _clean_text(value: str) -> str:
    text = value.replace("\0", "\ufffd") if "\0" in value else value
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
