"""The ledger of a home: one SQLite file, ledger.db, and a few small files beside it.

A file that is damaged or not ours is set aside, never deleted: it is the only copy. Reading never creates the file.
"""

from __future__ import annotations

import os
import time

from holdfast import sqlite
from holdfast.errors import DOCTOR, Busy, Damaged, DiskTrouble, HoldfastError, Template, Trouble, from_os
from holdfast.home import Lock
from holdfast.ledger.projects import ProjectLinks
from holdfast.ledger.usage import Decisions, Sessions, Usage
from holdfast.sqlite import ERRORS, Database, DatabaseReset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    import apsw

    from holdfast.ledger.agents import Agents
    from holdfast.ledger.audit import Audit
    from holdfast.ledger.done import Done, Reviews
    from holdfast.ledger.file_sources import FileSources
    from holdfast.ledger.idempotency import IdempotencyKeys
    from holdfast.ledger.interface import Transaction
    from holdfast.ledger.purges import Purges
    from holdfast.ledger.request_counts import RequestCounts
    from holdfast.ledger.secret_file import SecretKeyFile
    from holdfast.ledger.transfer import Transfer
    from holdfast.ledger.web_sessions import SignInCodes, WebSessions

    T = TypeVar("T")

FILE = "ledger.db"
_STATEMENTS = sqlite.load_statements(__file__)
_MIGRATIONS = (
    "from_version_1", "from_version_2", "from_version_3", "from_version_4", "from_version_5", "from_version_6",
    "from_version_7", "from_version_8",
)  # fmt: skip
SQL = {**_STATEMENTS, "schema": "".join([_STATEMENTS[name] for name in ("schema", *_MIGRATIONS)])}
_APPLICATION, _VERSION = 1215260236, 1 + len(_MIGRATIONS)
_EMPTY_TABLES = (  # for an older file that is read-only
    "as_version_2", "as_version_3", "as_version_4", "as_version_5", "as_version_6", "as_version_7", "as_version_8",
    "as_version_9",
)  # fmt: skip
_PURGED_FLAG, _REJECTED_FLAG = "ledger.purged", "ledger.rejected"
_FLAG_MODE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_WENT_WITH_IT = (
    "receipts, purge records, approvals, agents, tokens, the audit, done work, links and "
    "counts are lost; that file has what can still be read"
)


class SqliteLedger:
    """The ledger of a home. Creating this object touches nothing; the file is opened when needed."""

    tenant = ""

    def __init__(self, home: str, lock_seconds: float = 30) -> None:
        self._home = home
        self.database = SqliteLedgerDatabase(home, lock_seconds)
        self.purge_flags = PurgeFlagFiles(home)
        self.projects = ProjectLinks(self.database)
        self.usage = Usage(self.database)
        self.sessions = Sessions(self.database)
        self.decisions = Decisions(self.database)
        self._purges: Purges | None = None
        self._audit: Audit | None = None
        self._agents: Agents | None = None

    # The parts that a plain recall or store does not need are imported when used.

    @property
    def purges(self) -> Purges:
        """The purged texts that must not come back."""
        if self._purges is None:
            from holdfast.ledger.purges import Purges

            self._purges = Purges(self.database, self.purge_flags)
        return self._purges

    @property
    def audit(self) -> Audit:
        """Every decision; one object for all threads, because they write in batches."""
        if self._audit is None:
            from holdfast.ledger.audit import Audit
            from holdfast.ledger.audit_chain import SqliteAuditChain

            with self.database.lock:
                chain = SqliteAuditChain(self.database, self._home)
                self._audit = self._audit or Audit(self.database, chain, self._audit_key)
        return self._audit

    @property
    def agents(self) -> Agents:
        """The agents that may use the gateway, and their tokens."""
        if self._agents is None:
            from holdfast.ledger.agents import Agents
            from holdfast.ledger.revocations import RevocationFile

            self._agents = Agents(self.database, self.audit, RevocationFile(self._home))
        return self._agents

    def check_ready(self) -> None:
        """Raise if tokens cannot be looked up now; whether the disk takes writes is the caller's to check."""
        self.agents.find_tokens([""])

    @property
    def done(self) -> Done:
        """Work that agents have done and need not do again."""
        from holdfast.ledger.done import Done

        return Done(self.database, self._review_key)

    @property
    def reviews(self) -> Reviews:
        """The pull requests that were reviewed, and claims of those under review."""
        from holdfast.ledger.done import Reviews

        return Reviews(self.database, self._review_key)

    @property
    def idempotency_keys(self) -> IdempotencyKeys:
        """Requests that may be sent twice and are done once."""
        from holdfast.ledger.idempotency import IdempotencyKeys

        return IdempotencyKeys(self.database)

    @property
    def request_counts(self) -> RequestCounts:
        """How many requests each agent made of the gateway today."""
        from holdfast.ledger.request_counts import RequestCounts

        return RequestCounts(self.database)

    @property
    def file_sources(self) -> FileSources:
        """Who last wrote each file of an agent's tree."""
        from holdfast.ledger.file_sources import FileSources

        return FileSources(self.database)

    @property
    def web_sessions(self) -> WebSessions:
        """Sessions of people in the console."""
        from holdfast.ledger.web_sessions import WebSessions

        return WebSessions(self.database)

    @property
    def sign_in_codes(self) -> SignInCodes:
        """Links that let the owner of the home into the console, once."""
        from holdfast.ledger.web_sessions import SignInCodes

        return SignInCodes(self.database)

    @property
    def transfer(self) -> Transfer:
        """All rows, for a copy of the ledger."""
        from holdfast.ledger.transfer import AUDIT, REVIEW, Transfer

        return Transfer(self.database, self.purges, {REVIEW: self._review_key, AUDIT: self._audit_key})

    @property
    def _review_key(self) -> SecretKeyFile:
        from holdfast.ledger.secret_file import REVIEW_KEY, SecretKeyFile

        return SecretKeyFile(self._home, REVIEW_KEY, "without it, earlier reviews are found in the ledger only")

    @property
    def _audit_key(self) -> SecretKeyFile:
        from holdfast.ledger.secret_file import AUDIT_KEY, SecretKeyFile

        return SecretKeyFile(self._home, AUDIT_KEY, "without it, the audit's checkpoint cannot be verified")

    @property
    def problem(self) -> str | None:
        """A message for people: that a ledger was set aside, or why it cannot be read."""
        try:
            aside = sorted([name for name in os.listdir(self._home) if _is_set_aside(name)])
        except OSError:
            aside = []
        if aside:
            return f"a damaged ledger was moved aside as {', '.join(aside)}; {_WENT_WITH_IT}"
        return self.database.unreadable

    def named_lock(self, name: str, seconds: float) -> AbstractContextManager[object]:
        """Return a lock between processes; entering it raises Busy after this many seconds."""
        return Lock(self._home, name, seconds)

    def scrub(self, seconds: float | None = None) -> None:
        """Remove the write-ahead log, so that no byte of deleted rows is left: in the file itself they are zeros already."""
        self.database.scrub(seconds)

    def close(self) -> None:
        """Write what is deferred, save the audit's mark and close the file; the next use opens it again."""
        try:
            self.usage.write_deferred()
        except HoldfastError:
            pass  # a count that fails never fails anything else
        if self._audit is not None:
            self._audit.update_mark(0)
        self.database.close()


class SqliteLedgerDatabase:
    """Named statements on a home's ledger.db."""

    def __init__(self, home: str, lock_seconds: float) -> None:
        self.home = home
        self._path = os.path.join(home, FILE)
        self.file = _LedgerFile(home, FILE, sql=SQL, application=_APPLICATION, version=_VERSION, seconds=lock_seconds)
        self.unreadable: str | None = None  # why the last `read_or_empty` found nothing

    @property
    def lock(self) -> AbstractContextManager[object]:
        return self.file.lock

    def close(self) -> None:
        self.file.close()

    def scrub(self, seconds: float | None) -> None:
        if os.path.lexists(self._path):
            self.file.scrub(seconds)

    def read(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows; none where there is no file. Raises where it cannot be read."""
        if not os.path.lexists(self._path):
            return []
        try:
            rows = self.file.rows(statement, **values)
            if self.file.reason and not self.file.connection().filename:  # an empty database in memory took its place
                usual = Template("Let this user read and write ledger.db: ", DOCTOR, " says how")
                raise DiskTrouble(self.file.reason, self.file.fix or usual)
            return rows
        except DatabaseReset:
            return []

    def read_or_empty(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows; none where the file cannot be read."""
        try:
            rows = self.read(statement, **values)
        except (Busy, Damaged, DiskTrouble) as error:
            self.unreadable = error.message
            return []
        self.unreadable = None
        return rows

    def read_current(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows; raises also where only an older copy can be read, or the file was just replaced."""
        if not os.path.lexists(self._path):
            return []
        with self.file.lock:
            try:
                db = self.file.connection()
                if self.file.reason:
                    raise DiskTrouble(self.file.reason, self.file.fix or "Make the home writable for this user")
                return db.execute(SQL[statement], values).fetchall()
            except ERRORS as error:
                failure = self.file.handle_error(error)
                raise (_reset_error() if isinstance(failure, DatabaseReset) else failure) from error

    read_any_tenant = read_current  # a home has no tenants

    def write(
        self, work: Callable[[Transaction], T], *, durable: bool = True, checkpoint: bool = False,
        retry_after_reset: bool = True,
    ) -> T:  # fmt: skip
        """Run `work` in one transaction; see `LedgerDatabase`."""
        for attempt in (1, 2):
            try:
                with self.file.transaction(durable) as db:
                    result = work(SqliteTransaction(db))
                if checkpoint:
                    self.file.rows("checkpoint")
                return result
            except DatabaseReset as error:
                if not retry_after_reset:
                    raise _reset_error() from None
                if attempt == 2:
                    raise Trouble(f"the ledger is damaged repeatedly: {error}", "Check the disk") from None
        raise AssertionError("unreachable")

    def identity(self) -> int:
        """Return the inode of the file; 0 where there is none."""
        try:
            return os.stat(self._path).st_ino
        except OSError:
            return 0

    def last_reset(self) -> float:
        """Return when a damaged file that is still beside this one was set aside, in seconds since 1970; else 0.0."""
        try:
            aside = [name for name in os.listdir(self.home or os.curdir) if name.startswith(f"{FILE}.damaged-")]
            return max([os.lstat(os.path.join(self.home, name)).st_ctime for name in aside], default=0.0)
        except OSError:
            return 0.0

    def check_complete(self) -> None:
        """Raise Damaged while a damaged file that may know more is beside this one."""
        if self.last_reset():
            raise _reset_error()


class SqliteTransaction:
    """Named statements inside a transaction; no other process writes meanwhile."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def run(self, statement: str, /, **values: Any) -> list[Any]:
        return self._db.execute(SQL[statement], values).fetchall()

    def run_many(self, statement: str, rows: Iterable[dict[str, Any]], /) -> list[Any]:
        return self._db.executemany(SQL[statement], rows).fetchall()

    def lock(self, name: str) -> None:
        """Do nothing: the file has one writer at a time."""


class PurgeFlagFiles:
    """Empty files in the home which say that something was purged or rejected."""

    def __init__(self, home: str) -> None:
        self._home = home

    def any_purged(self) -> bool:
        return os.path.exists(os.path.join(self._home, _PURGED_FLAG))

    def any_rejected(self) -> bool:
        return os.path.exists(os.path.join(self._home, _REJECTED_FLAG))

    def set_purged(self) -> None:
        self._create(_PURGED_FLAG)

    def set_rejected(self) -> None:
        self._create(_REJECTED_FLAG)

    def _create(self, name: str) -> None:
        from holdfast.ledger.secret_file import sync_folder

        path = os.path.join(self._home, name)
        if os.path.exists(path):
            return
        try:
            os.close(os.open(path, _FLAG_MODE, 0o600))
            sync_folder(self._home)
        except OSError as error:
            raise from_os(error, f"cannot write {path}") from error


class _LedgerFile(Database):
    """The file: a damaged one is set aside, and one that a newer Holdfast wrote is left alone."""

    is_source_of_truth = True

    def remove_files(self, path: str) -> None:
        if os.path.lexists(path):
            sqlite.set_aside(path, f"{path}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")

    def adapt_read_only(self, db: apsw.Connection) -> None:
        """Add the tables that an older ledger has not, empty and for this connection only."""
        for name in _EMPTY_TABLES[db.pragma("user_version") - 1 :]:
            db.execute(SQL[name]).fetchall()

    def migrate(self, db: apsw.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        try:
            version = db.pragma("user_version")  # another process may have migrated it meanwhile
            for name in _MIGRATIONS[version - 1 :]:
                db.execute(SQL[name]).fetchall()
            db.execute(f"PRAGMA user_version={_VERSION:d}").fetchall()
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def reject_newer(self, version: int) -> None:
        raise Trouble("ledger.db was written by a newer version of Holdfast", "Upgrade Holdfast")


def _is_set_aside(name: str) -> bool:
    return name.startswith(f"{FILE}.damaged-") and not name.endswith(("-wal", "-shm"))


def _reset_error() -> Damaged:
    """Return the error for questions that only the damaged ledger could answer: unknown does not mean no."""
    message = "the ledger was damaged and was moved aside: its records are not available"
    return Damaged(message, Template("Run ", DOCTOR))
