"""Named statements and transactions on PostgreSQL.

A transaction (`Session`) sets the tenant and the agent first, queues statements, and sends them when a result is read. So a
single query is one round trip, and so is a transaction of which nothing is read before its end.

Until the first result is read, a transaction is repeated on a new connection if the server goes away. After that the caller
has to begin again (`RetryLater`). If the result of COMMIT is lost, the outcome is unknown (`Unsure`).
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import sql
from psycopg.errors import InvalidSqlStatementName

from holdfast.base import tracing
from holdfast.base.fork import on_fork
from holdfast.errors import DiskTrouble, Unsure, try_again
from holdfast.postgres.connection import NoAnswer, Result
from holdfast.postgres.errors import (
    READ_URL,
    RetryLater,
    is_connection_lost,
    is_replica_conflict,
    is_replica_unusable,
    translate,
)
from holdfast.postgres.migrations import check_schema
from holdfast.postgres.pool import get_pool
from holdfast.postgres.sql import SQL

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import LiteralString, Self

    from holdfast.postgres.connection import Connection, Statement, Values
    from holdfast.postgres.pool import Pool
    from holdfast.postgres.settings import PostgresSettings

T = TypeVar("T")

_IDLE_SECONDS = 120  # after which the server ends a transaction that does nothing, and frees its locks
_NOT_REPLICATED = "01000"  # the warning of a server that stopped waiting for a standby: committed on the primary only
_SKIPPED = ("01000", "42501")  # the warnings of a server that skips a table because the login may not VACUUM it


class Database:
    """Named statements for one tenant and agent. Creating this object does not connect."""

    def __init__(self, settings: PostgresSettings, statements: dict[str, str], seconds: float) -> None:
        self.settings = settings
        self._sql = statements
        self._seconds = seconds
        self._caller = settings.url, settings.tenant, settings.agent  # databases of the same caller may share a transaction
        self.lock = threading.RLock()
        _databases.add(self)

    # --- statements --------------------------------------------------------------------------------------

    def rows(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows of a named query, which must not change anything."""
        return self.query(self._sql[statement], values)

    def row(self, statement: str, /, **values: Any) -> Any:
        """Return the first row of a named query, or None."""
        rows = self.rows(statement, **values)
        return rows[0] if rows else None

    def query(self, text: str, values: Values) -> list[Any]:
        """Return all rows of a query, run in this thread's transaction if there is one, else in one of its own."""
        sessions = _local.sessions
        current = sessions.get(id(self)) or sessions.get(self._caller)
        if current is not None:
            return current.queue(text, values).fetchall()
        return Session(self.settings, self._seconds, read_only=True).query(text, values)

    def without_tenant(self) -> Database:
        """Return the same database without a tenant, for queries before a token is checked: no tenant's share counts."""
        return Database(self.settings.replace(tenant="", agent=""), self._sql, self._seconds)

    # --- transactions ---------------------------------------------------------------------------------------

    def transaction(self, durable: bool = False) -> AbstractContextManager[Session]:
        """Return a transaction for a `with`; a durable one survives a crash once it has ended."""
        keys = (id(self), self._caller)  # by which this thread's queries find it, so that they need no second connection
        return Session(self.settings, self._seconds, durable=durable, keys=keys)

    def write(self, work: Callable[[Session], T], durable: bool = False) -> T:
        """Run `work` in a transaction; repeat it if the server went away before COMMIT, or another process changed it first."""
        begun, outage = time.monotonic(), get_pool(self.settings).outage
        while True:
            try:
                with self.transaction(durable) as session:
                    session.begun = begun
                    return work(session)
            except RetryLater:
                if time.monotonic() >= outage.deadline(begun, self._seconds):
                    raise

    @contextmanager
    def read_transaction(self, replica: bool = False) -> Iterator[None]:
        """Let the queries of this thread share one transaction: those of all databases of this caller, or with `replica`
        only those of this one, on a replica where there is one."""
        on_replica = bool(replica and self.settings.read_url)
        key: Hashable = id(self) if on_replica else self._caller
        if key in _local.sessions:
            yield
            return
        with Session(self.settings, self._seconds, read_only=True, replica=on_replica, keys=(key,)):
            yield

    # --- maintenance ----------------------------------------------------------------------------------------

    def vacuum(self, tables: Sequence[str]) -> str:
        """Remove deleted rows from the files of these tables; return why that was not possible, or ""."""
        return self._maintain("VACUUM {}", tables)

    def analyze(self, tables: Sequence[str]) -> str:
        """Update the planner's statistics of these tables, except locked ones; return why that was not possible, or ""."""
        return self._maintain("ANALYZE (SKIP_LOCKED) {}", tables)

    def _maintain(self, command: LiteralString, tables: Sequence[str]) -> str:
        warnings: list[str] = []
        try:
            with psycopg.connect(**get_pool(self.settings).parameters) as connection:
                connection.add_notice_handler(lambda notice: warnings.append(notice.sqlstate or ""))
                for table in tables:
                    connection.execute(sql.SQL(command).format(sql.Identifier("holdfast", table)))
        except psycopg.Error as error:
            return str(translate(error))
        is_skipped = any(warning in _SKIPPED for warning in warnings)
        return "the login of store.url does not have the permission for these tables" if is_skipped else ""


class Session:
    """One transaction, around a `with`."""

    def __init__(
        self, settings: PostgresSettings, seconds: float, *, durable: bool = False, read_only: bool = False,
        replica: bool = False, idle_seconds: float = _IDLE_SECONDS, pool: Pool | None = None, keys: tuple[Hashable, ...] = (),
    ) -> None:  # fmt: skip
        self._settings = settings
        self._seconds = seconds
        self.begun: float | None = None  # when the first of several attempts began, if all of them share one time limit
        self._read_only, self._durable = read_only, durable
        self._replica = replica and not get_pool(settings, "read").is_avoided
        self._pool = pool or get_pool(settings, "read" if self._replica else "")
        self._idle_seconds = idle_seconds
        self._keys = keys  # by which queries of this thread find it while it is open
        self._outer: dict[Hashable, Session | None] = {}
        self._pid = os.getpid()
        self._connection: Connection | None = None
        self._queue: list[Statement] = []
        self._is_read = False  # whether the caller has read a result
        self._failed = False  # after an error nothing more is sent
        self._results: list[Result] = []

    # --- statements --------------------------------------------------------------------------------------------

    def execute(self, text: str, values: Values = ()) -> Result:
        """Queue a statement; it is sent when its result is read, or at the end."""
        return self.queue(text, values)

    def executemany(self, text: str, rows: Iterable[Values]) -> Results:
        """Queue the same statement for each row."""
        return Results([self.queue(text, row) for row in rows])

    def queue(self, text: str, values: Values) -> Result:
        """Queue a statement and return its result, which is not known yet."""
        result = Result(self)
        self._queue.append((text, values.copy() if isinstance(values, dict | list) else values, result))
        if self._read_only:
            self._results = [result]  # those of a long read are not kept
        else:
            self._results.append(result)
        return result

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        return self._results[-1].wait().changed if self._results else 0

    def total_changes(self) -> int:
        """Return how many rows all statements changed."""
        return sum([result.wait().changed for result in self._results])

    # --- sending ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what is queued and read the results."""
        batch, self._queue = self._queue, []
        if batch:
            self._send(batch)
            self._is_read = True

    def query(self, text: str, values: Values) -> list[Any]:
        """Return the rows of one query: the whole transaction is one round trip."""
        result = Result()
        try:
            self._send([(text, values, result), (SQL["commit"], (), Result())])
        finally:
            self._release()
        return result.rows

    def _send(self, batch: list[Statement], commit: Result | None = None) -> None:
        """Run a batch, again on a new connection if this one dies and no result was read. `commit` is the result of COMMIT."""
        with tracing.span("postgres.query", is_client=True, db__system__name="postgresql", holdfast__statements=len(batch)):
            self._run_batch(batch, commit)

    def _run_batch(self, batch: list[Statement], commit: Result | None) -> None:
        if self._failed:
            raise try_again("nothing was stored, because one of the writes failed")
        self._failed = not self._read_only
        started, pause = time.monotonic(), 0.01
        begun = self.begun or started
        while True:
            sent = False
            try:
                connection, is_new = self._connect(started + self._seconds)
                sent = True
                connection.run([*self._begin_statements(), *batch] if is_new else batch)
                break
            except (psycopg.Error, UnicodeEncodeError) as error:
                if commit is not None and commit.status == b"COMMIT":
                    self._drop_connection()
                    break
                if isinstance(error, InvalidSqlStatementName) and (self._read_only or not self._is_read):
                    self._drop_connection()  # a new one has no plans that a migration made invalid
                    continue
                if not is_connection_lost(error) and not (self._replica and _is_replica_error(error)):
                    if self._read_only:
                        self.rollback()  # the next query of this transaction begins a new one
                    raise translate(error) from error
                self._drop_connection()
                if not self._replica:
                    self._pool.outage.record_loss(error.since if isinstance(error, NoAnswer) else time.monotonic())
                if commit is not None and sent and not self._read_only and not _is_surely_not_committed(error, batch):
                    raise Unsure(
                        "the connection to the database was lost during the commit",
                        "Check whether it was stored before you try again",
                    ) from error
                if not self._may_retry(error, begun, pause):
                    raise translate(error) from error
            time.sleep(pause)
            pause = min(pause * 2, 0.5)
        self._failed = False
        self._pool.outage.record_answer()
        if self._replica:
            self._pool.record_replica_answer()

    def _connect(self, end: float) -> tuple[Connection, bool]:
        """Return the connection, and whether no transaction was begun on it yet."""
        if self._connection is not None:
            return self._connection, False
        self._connection = self._pool.acquire(end, self._settings.tenant)
        if not self._pool.ready and not self._replica:
            check_schema(self._settings, self._connection)
            self._pool.ready = True
        return self._connection, True

    def _may_retry(self, error: BaseException, begun: float, pause: float) -> bool:
        """Return whether to try again. If a replica fails for any reason, the primary is asked."""
        if self._replica:
            self._pool.avoid_replica("" if is_replica_conflict(error) else str(translate(error, READ_URL)))
            self._replica, self._pool = False, get_pool(self._settings)
            return True
        if self._is_read and not self._read_only:
            return False
        return time.monotonic() + pause < self._pool.outage.deadline(begun, self._seconds)

    def _begin_statements(self) -> list[Statement]:
        begin = SQL["begin_read_only" if self._read_only else "begin"]
        settings = SQL["read_settings" if self._read_only else "durable_settings" if self._durable else "write_settings"]
        values = {
            "tenant": self._settings.tenant, "agent": self._settings.agent,
            "statement_timeout": _milliseconds(self._settings.statement_seconds),
            "lock_timeout": _milliseconds(self._seconds), "idle_timeout": _milliseconds(self._idle_seconds),
        }  # fmt: skip
        return [(begin, (), Result()), (settings, values, Result())]

    # --- begin and end ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        sessions = _local.sessions
        self._outer = {key: sessions.get(key) for key in self._keys}
        sessions.update(dict.fromkeys(self._keys, self))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None and self._results and not self._read_only:
                self._commit()
            else:
                self._rollback()
        finally:
            self._release()
            self._leave()
        if isinstance(error, psycopg.Error):
            raise translate(error) from error

    def _leave(self) -> None:
        """Let this thread's queries find the transaction around this one again."""
        for key, session in self._outer.items():
            if session is None:
                _local.sessions.pop(key, None)
            else:
                _local.sessions[key] = session

    def _commit(self) -> None:
        """Send what is queued, and COMMIT."""
        batch, self._queue = self._queue, []
        if self._connection is not None and self._connection.is_closed_by_server():  # before COMMIT is sent: not committed
            self._drop_connection()
            if self._is_read:
                raise RetryLater("the connection to the database was lost", "Try again in a moment")
        if self._connection is not None:
            self._connection.warnings.clear()
        commit = Result()
        self._send([*batch, (SQL["commit"], (), commit)], commit)
        if self._durable and self._connection is not None and _NOT_REPLICATED in self._connection.warnings:
            error = DiskTrouble("the primary stored this, but no standby confirmed it", "Check the standbys")
            error.may_be_done = True
            raise error

    def _rollback(self) -> None:
        if self._connection is None:
            return
        try:
            self._connection.run([(SQL["rollback"], (), Result())])
        except psycopg.Error:
            self._drop_connection()

    def rollback(self) -> None:
        """Roll back and release the connection, where there is no `with`."""
        self._rollback()
        self._release()

    def is_of_this_process(self) -> bool:
        """Return whether this process began it, and not its parent."""
        return self._pid == os.getpid()

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._release()

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)


class Results:
    """The results of one statement for many rows."""

    def __init__(self, results: list[Result]) -> None:
        self._results = results

    def fetchall(self) -> list[Any]:
        return [row for result in self._results for row in result.fetchall()]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


def _is_replica_error(error: BaseException) -> bool:
    return is_replica_conflict(error) or is_replica_unusable(error)


def _is_surely_not_committed(error: BaseException, batch: list[Statement]) -> bool:
    """Return whether the server itself rejected a statement before COMMIT."""
    return getattr(error, "sqlstate", None) in ("57P01", "25006") and not all(result.known for _, _, result in batch[:-1])


def _milliseconds(seconds: float) -> str:
    """Return milliseconds, as PostgreSQL's settings take them; 0 means no limit."""
    return str(max(int(seconds * 1000), 1) if seconds else 0)


class _Local(threading.local):
    """The open transactions of this thread."""

    def __init__(self) -> None:
        self.sessions: dict[Hashable, Session] = {}


_local = _Local()
_databases: WeakSet[Database] = WeakSet()


def _in_child() -> None:
    _local.sessions = {}  # the parent's transactions are not this process's
    for database in list(_databases):
        database.lock = threading.RLock()  # another thread of the parent may have held it


on_fork(child=_in_child)
