"""One transaction: it sets the tenant and agent first, queues statements, and sends them when a result is read.

Until the first result is read, the transaction is repeated on a new connection if the server goes away. After that the caller
has to begin again (`RetryLater`). If the result of COMMIT is lost, the outcome is unknown (`Unsure`).
"""

from __future__ import annotations

import os
import time

import psycopg

from holdfast.errors import DiskTrouble, Unsure, try_again
from holdfast.postgres.errors import (
    READ_URL,
    RetryLater,
    is_connection_lost,
    is_replica_conflict,
    is_replica_unusable,
    translate,
)
from holdfast.postgres.migrate import ready
from holdfast.postgres.pipeline import NoAnswer, Result
from holdfast.postgres.pool import pool_of
from holdfast.postgres.sql import SQL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

    from holdfast.postgres.pipeline import Connection, Statement, Values
    from holdfast.postgres.pool import Pool
    from holdfast.postgres.settings import PostgresSettings

_IDLE_SECONDS = 120  # after which the server ends a transaction that does nothing, and frees its locks
_NOT_REPLICATED = "01000"  # the warning of a server that stopped waiting for a standby: committed on the primary only


class Session:
    """A transaction around a `with`."""

    def __init__(
        self, store: PostgresSettings, seconds: float, durable: bool = False, reads: bool = False, replica: bool = False,
        idle_seconds: float = _IDLE_SECONDS, pool: Pool | None = None,
        entered: Callable[[Session], None] | None = None, left: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._settings = store
        self._seconds = seconds
        self.begun: float | None = None  # when the first of several attempts began, if all of them share one time limit
        self._reads, self._durable = reads, durable
        self._replica = replica and not pool_of(store, "read").avoided
        self._pool = pool or pool_of(store, "read" if self._replica else "")
        self._idle_seconds = idle_seconds
        self._entered, self._left = entered, left
        self._pid = os.getpid()
        self._connection: Connection | None = None
        self._queue: list[Statement] = []
        self._answered = False  # whether the caller has read a result
        self._failed = False  # after an error nothing more is sent
        self._asked = 0  # statements
        self._last: Result | None = None
        self._counted: list[Result] = []

    # --- statements --------------------------------------------------------------------------------------------

    def execute(self, text: str, values: Values = ()) -> Result:
        """Queue a statement; it is sent when its answer is read, or at the end."""
        return self.queue(text, values)

    def executemany(self, text: str, rows: Iterable[Values]) -> Results:
        """Queue the same statement for each row."""
        return Results([self.queue(text, row) for row in rows])

    def queue(self, text: str, values: Values) -> Result:
        """Queue a statement and return its result, which is not known yet."""
        result = Result(self)
        self._queue.append((text, values.copy() if isinstance(values, dict | list) else values, result))
        self._asked += 1
        self._last = result
        if not self._reads:
            self._counted.append(result)
        return result

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        return self._last.settled().changed if self._last is not None else 0

    def total_changes(self) -> int:
        """Return how many rows all statements changed."""
        return sum([result.settled().changed for result in self._counted])

    # --- sending ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what is queued and read the results."""
        batch, self._queue = self._queue, []
        if batch:
            self._persist(batch)
            self._answered = True

    def all_of(self, text: str, values: Values) -> list[Any]:
        """Return the rows of one query: the whole transaction is one round trip."""
        result = Result()
        try:
            self._persist([(text, values, result), (SQL["commit"], (), Result())])
        finally:
            self._give_back()
        return result.rows

    def _persist(self, batch: list[Statement], done: Result | None = None) -> None:
        """Run a batch, again on a new connection if this one dies and no result was read. `done` is the result of COMMIT."""
        if self._failed:
            raise try_again("nothing of this was kept, because a part of it failed")
        self._failed = not self._reads
        asked, pause = time.monotonic(), 0.01
        begun = self.begun or asked
        while True:
            sent = False
            try:
                connection, fresh = self._take(asked + self._seconds)
                sent = True
                connection.run([*self._beginning(), *batch] if fresh else batch)
                break
            except (psycopg.Error, UnicodeEncodeError) as error:
                if done is not None and done.status == b"COMMIT":
                    self._drop()
                    break
                if not is_connection_lost(error) and not (self._replica and _is_of_replica(error)):
                    if self._reads:
                        self.undo()  # the next query of this transaction begins a new one
                    raise translate(error) from error
                self._drop()
                if not self._replica:
                    self._pool.outage.lost(error.since if isinstance(error, NoAnswer) else time.monotonic())
                if done is not None and sent and not self._reads and not _surely_not_done(error, batch):
                    raise Unsure("the database went away while it was told to keep this", "Look whether it is kept") from error
                if not self._may_repeat(error, begun, pause):
                    raise translate(error) from error
            time.sleep(pause)
            pause = min(pause * 2, 0.5)
        self._failed = False
        self._pool.outage.found()
        if self._replica:
            self._pool.answered()

    def _take(self, end: float) -> tuple[Connection, bool]:
        """Return the connection, and whether no transaction was begun on it yet."""
        if self._connection is not None:
            return self._connection, False
        self._connection = self._pool.borrow(end, self._settings.tenant)
        if not self._pool.ready and not self._replica:
            ready(self._settings, self._connection)
            self._pool.ready = True
        return self._connection, True

    def _may_repeat(self, error: BaseException, begun: float, pause: float) -> bool:
        """Return whether to try again. If a replica fails for any reason, the primary is asked."""
        if self._replica:
            self._pool.avoid("" if is_replica_conflict(error) else str(translate(error, READ_URL)))
            self._replica, self._pool = False, pool_of(self._settings)
            return True
        if self._answered and not self._reads:
            return False
        return time.monotonic() + pause < self._pool.outage.end(begun, self._seconds)

    def _beginning(self) -> list[Statement]:
        begin = SQL["begin_reading" if self._reads else "begin"]
        who = SQL["ask" if self._reads else "keep" if self._durable else "change"]
        values = {
            "tenant": self._settings.tenant, "agent": self._settings.agent, "most": _ms(self._settings.statement_seconds),
            "wait": _ms(self._seconds), "idle": _ms(self._idle_seconds),
        }  # fmt: skip
        return [(begin, (), Result()), (who, values, Result())]

    # --- begin and end ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._entered is not None:
            self._entered(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None and self._asked and not self._reads:
                self._commit()
            else:
                self._undo()
        finally:
            self._give_back()
            if self._left is not None:
                self._left()
        if isinstance(error, psycopg.Error):
            raise translate(error) from error

    def _commit(self) -> None:
        """Send what is queued, and COMMIT."""
        batch, self._queue = self._queue, []
        if self._connection is not None and self._connection.hung_up():  # before COMMIT was sent: certainly not committed
            self._drop()
            if self._answered:
                raise RetryLater("the database went away", "Try again in a moment")
        if self._connection is not None:
            self._connection.warnings.clear()
        done = Result()
        self._persist([*batch, (SQL["commit"], (), done)], done)
        if self._durable and self._connection is not None and _NOT_REPLICATED in self._connection.warnings:
            alone = DiskTrouble("this is kept by the primary, but no standby has confirmed it", "Look after the standbys")
            alone.may_be_done = True
            raise alone

    def _undo(self) -> None:
        """Roll back."""
        if self._connection is None:
            return
        try:
            self._connection.run([(SQL["rollback"], (), Result())])
        except psycopg.Error:
            self._drop()

    def undo(self) -> None:
        """Roll back and give the connection back, where there is no `with`."""
        self._undo()
        self._give_back()

    def ours(self) -> bool:
        """Return whether this process began it, and not its parent."""
        return self._pid == os.getpid()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._give_back()

    def _give_back(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection)


class Results:
    """The results of one statement for many rows."""

    def __init__(self, results: list[Result]) -> None:
        self._results = results

    def fetchall(self) -> list[Any]:
        return [row for result in self._results for row in result.fetchall()]

    def __iter__(self) -> Any:
        return iter(self.fetchall())


def _is_of_replica(error: BaseException) -> bool:
    return is_replica_conflict(error) or is_replica_unusable(error)


def _surely_not_done(error: BaseException, batch: list[Statement]) -> bool:
    """Return whether the server itself rejected a statement before COMMIT."""
    return getattr(error, "sqlstate", None) in ("57P01", "25006") and not all(result.known for _, _, result in batch[:-1])


def _ms(seconds: float) -> str:
    """Return milliseconds, as PostgreSQL's settings take them; 0 means no limit."""
    return str(max(int(seconds * 1000), 1) if seconds else 0)
