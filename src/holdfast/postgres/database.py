"""PostgreSQL with the face of a home's SQLite file: named statements, one transaction around a `with`.

Threads do not wait for each other here: each borrows a connection for as long as its transaction takes. A query of its own
is one round trip, and so is a transaction of which nothing is read before its end.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from weakref import WeakSet

from holdfast.postgres.pool import pool_of
from holdfast.postgres.session import Session
from holdfast.postgres.tending import analyze, vacuum
from holdfast.postgres.trouble import Again, ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    from holdfast.postgres.line import Values
    from holdfast.postgres.store import Store

    T = TypeVar("T")


class Database:
    """One caller's view of a store, by named statements. Making this object touches nothing."""

    generation, let_go = 1, 0
    reason = ""

    def __init__(self, store: Store, sql: dict[str, str], seconds: float) -> None:
        self.store = store
        self._sql = sql
        self._seconds = seconds
        self._shared = store.url, store.tenant, store.agent  # whoever has the same may read in the same transaction
        self.lock = threading.RLock()
        _databases.add(self)

    # --- running statements --------------------------------------------------------------------------------------

    def rows(self, statement: str, /, **values: Any) -> list[Any]:
        """All rows of a named query, which must not change anything."""
        return self.query(self._sql[statement], values)

    def row(self, statement: str, /, **values: Any) -> Any:
        """Its first row, or None."""
        rows = self.rows(statement, **values)
        return rows[0] if rows else None

    def query(self, text: str, values: Values) -> list[Any]:
        """All rows of a query: in this thread's transaction if it is in one, else in one of its own."""
        open_ = _sessions()
        current = open_.get(id(self)) or open_.get(self._shared)
        if current is not None:
            return current.queue(text, values).fetchall()
        return Session(self.store, self._seconds, reads=True).all_of(text, values)

    def for_nobody(self) -> Database:
        """The same for whoever has no tenant yet: what it may ask is answered however much any tenant asks."""
        return Database(self.store.replace(tenant="", agent=""), self._sql, self._seconds)

    def transaction(self, durable: bool = False) -> AbstractContextManager[Session]:
        """BEGIN ... COMMIT around a `with`; durable means that it outlives a crash when it ends."""
        return self._session((id(self), self._shared), durable=durable)  # one thread never waits for two connections

    def write(self, work: Callable[[Session], T], durable: bool = False) -> T:
        """Do it in a transaction; all of it again if the server went away before COMMIT, or another writer was faster."""
        begun, contact = time.monotonic(), pool_of(self.store).contact
        while True:
            try:
                with self.transaction(durable) as db:
                    db.begun = begun
                    return work(db)
            except Again:
                if time.monotonic() >= contact.end(begun, self._seconds):
                    raise

    @contextmanager
    def reading(self, replica: bool = False) -> Iterator[None]:
        """The queries of this thread share one transaction: those of all rooms on this store, or with `replica` only what
        this one asks, of a replica where there is one."""
        elsewhere = bool(replica and self.store.read_url)
        key: Hashable = id(self) if elsewhere else self._shared
        if key in _sessions():
            yield
            return
        with self._session((key,), reads=True, replica=elsewhere):
            yield

    def _session(
        self, keys: tuple[Hashable, ...], durable: bool = False, reads: bool = False, replica: bool = False
    ) -> Session:
        """A transaction that this thread's queries find by those keys while it lasts."""
        before = {key: _sessions().get(key) for key in keys}

        def entered(session: Session) -> None:
            _sessions().update(dict.fromkeys(keys, session))

        def left() -> None:
            for key, session in before.items():
                if session is None:
                    _sessions().pop(key, None)
                else:
                    _sessions()[key] = session

        return Session(self.store, self._seconds, durable, reads, replica, entered=entered, left=left)

    def mark(self) -> tuple[int, ...]:
        """Another one, another content: what the statement `mark` says, where there is one."""
        return (1, *(self.row("mark") or ())) if "mark" in self._sql else (1,)

    def vacuum(self, tables: Sequence[str]) -> str:
        """Take the dead rows out of these tables; why it could not be done, if it could not."""
        return vacuum(self.store, tables)

    def analyze(self, tables: Sequence[str]) -> str:
        """Let the server count what these tables hold; why it could not be done, if it could not."""
        return analyze(self.store, tables)

    # --- what a file would need ------------------------------------------------------------------------------------

    def opened(self, make_home: bool = False) -> Direct:
        """Something to run single queries with."""
        return Direct(self)

    def failed(self, error: BaseException) -> BaseException:
        """What PostgreSQL said, as one of ours."""
        return ours(error)

    def close(self) -> None:
        """Connections belong to the process, not to this view."""

    def scrub(self, seconds: float | None = None) -> None:
        """What is deleted is gone with VACUUM: see `vacuum`."""

    def renew(self) -> None:
        """There is no file to be made anew."""

    def go_without_file(self, reason: str) -> None:
        """There is no file to go without."""


class Direct:
    """What `opened` gives: each query a transaction of its own, or part of this thread's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def execute(self, text: str, values: Values = ()) -> Rows:
        return Rows(self._database.query(text, values))


class Rows(list["Any"]):
    """Rows, as whoever asks SQLite reads them."""

    def fetchall(self) -> list[Any]:
        return list(self)

    def fetchone(self) -> Any:
        return self.pop(0) if self else None


class _Here(threading.local):
    """The transactions that this thread is in."""

    def __init__(self) -> None:
        self.open: dict[Hashable, Session] = {}


_here = _Here()
_databases: WeakSet[Database] = WeakSet()


def _sessions() -> dict[Hashable, Session]:
    return _here.open


def _in_the_child() -> None:
    _here.open = {}  # the parent's transactions are not this process's
    for database in list(_databases):
        database.lock = threading.RLock()  # another thread may have held it, and there are no others here


os.register_at_fork(after_in_child=_in_the_child)
