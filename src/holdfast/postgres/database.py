"""Named statements and transactions on PostgreSQL, with the interface of a home's SQLite file.

Each thread borrows a connection for as long as its transaction takes. A single query is one round trip, and so is a
transaction of which nothing is read before its end.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from weakref import WeakSet

from holdfast.base.fork import on_fork
from holdfast.postgres.errors import RetryLater, translate
from holdfast.postgres.pool import pool_of
from holdfast.postgres.session import Session
from holdfast.postgres.vacuum import analyze, vacuum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    from holdfast.postgres.pipeline import Values
    from holdfast.postgres.settings import PostgresSettings

    T = TypeVar("T")


class Database:
    """One caller's view of a store, by named statements. Making this object does not connect."""

    generation, let_go = 1, 0
    reason = ""

    def __init__(self, settings: PostgresSettings, sql: dict[str, str], seconds: float) -> None:
        self.settings = settings
        self._sql = sql
        self._seconds = seconds
        self._shared = settings.url, settings.tenant, settings.agent  # callers with the same may read in the same transaction
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
        open_ = _sessions()
        current = open_.get(id(self)) or open_.get(self._shared)
        if current is not None:
            return current.queue(text, values).fetchall()
        return Session(self.settings, self._seconds, reads=True).all_of(text, values)

    def for_nobody(self) -> Database:
        """Return the same database without a tenant, for queries before a token is checked: no tenant's share counts."""
        return Database(self.settings.replace(tenant="", agent=""), self._sql, self._seconds)

    def transaction(self, durable: bool = False) -> AbstractContextManager[Session]:
        """Return a transaction for a `with`; a durable one survives a crash once it has ended."""
        return self._session((id(self), self._shared), durable=durable)  # this thread's queries use it, not a second connection

    def write(self, work: Callable[[Session], T], durable: bool = False) -> T:
        """Run `work` in a transaction; repeat it if the server went away before COMMIT, or another writer was faster."""
        begun, outage = time.monotonic(), pool_of(self.settings).outage
        while True:
            try:
                with self.transaction(durable) as db:
                    db.begun = begun
                    return work(db)
            except RetryLater:
                if time.monotonic() >= outage.end(begun, self._seconds):
                    raise

    @contextmanager
    def reading(self, replica: bool = False) -> Iterator[None]:
        """Let the queries of this thread share one transaction: those of all databases on this store, or with `replica` only
        those of this one, on a replica where there is one."""
        elsewhere = bool(replica and self.settings.read_url)
        key: Hashable = id(self) if elsewhere else self._shared
        if key in _sessions():
            yield
            return
        with self._session((key,), reads=True, replica=elsewhere):
            yield

    def _session(
        self, keys: tuple[Hashable, ...], durable: bool = False, reads: bool = False, replica: bool = False
    ) -> Session:
        """Return a transaction that this thread's queries find by these keys while it lasts."""
        before = {key: _sessions().get(key) for key in keys}

        def entered(session: Session) -> None:
            _sessions().update(dict.fromkeys(keys, session))

        def left() -> None:
            for key, session in before.items():
                if session is None:
                    _sessions().pop(key, None)
                else:
                    _sessions()[key] = session

        return Session(self.settings, self._seconds, durable, reads, replica, entered=entered, left=left)

    def mark(self) -> tuple[int, ...]:
        """Return a value that changes with the content: the row of the statement `mark`, where there is one."""
        return (1, *(self.row("mark") or ())) if "mark" in self._sql else (1,)

    def vacuum(self, tables: Sequence[str]) -> str:
        """Remove dead rows from these tables; return why that was not possible, or ""."""
        return vacuum(self.settings, tables)

    def analyze(self, tables: Sequence[str]) -> str:
        """Update the planner's statistics of these tables; return why that was not possible, or ""."""
        return analyze(self.settings, tables)

    # --- for the interface of a file ------------------------------------------------------------------------------------

    def opened(self, make_home: bool = False) -> Direct:
        """Return an object that runs single queries."""
        return Direct(self)

    def failed(self, error: BaseException) -> BaseException:
        """Return an error of PostgreSQL as one of Holdfast's."""
        return translate(error)

    def close(self) -> None:
        """Do nothing: connections belong to the process."""

    def scrub(self, seconds: float | None = None) -> None:
        """Do nothing: see `vacuum`."""

    def renew(self) -> None:
        """Do nothing: there is no file to make again."""

    def go_without_file(self, reason: str) -> None:
        """Do nothing: there is no file."""


class Direct:
    """Runs each query in a transaction of its own, or in this thread's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def execute(self, text: str, values: Values = ()) -> Rows:
        return Rows(self._database.query(text, values))


class Rows(list["Any"]):
    """Rows with the methods of an SQLite cursor."""

    def fetchall(self) -> list[Any]:
        return list(self)

    def fetchone(self) -> Any:
        return self.pop(0) if self else None


class _Local(threading.local):
    """The open transactions of this thread."""

    def __init__(self) -> None:
        self.open: dict[Hashable, Session] = {}


_local = _Local()
_databases: WeakSet[Database] = WeakSet()


def _sessions() -> dict[Hashable, Session]:
    return _local.open


def _after_fork() -> None:
    _local.open = {}  # the parent's transactions are not this process's
    for database in list(_databases):
        database.lock = threading.RLock()  # another thread of the parent may have held it


on_fork(child=_after_fork)
