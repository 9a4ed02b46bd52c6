"""One transaction: it says first who asks, queues what it is told, and sends when somebody wants an answer.

Until the first answer nothing has been relied on: when the server goes away by then, all of it is sent to another one.
After that whoever asked must begin again, and hears so; only when the answer to COMMIT is lost nobody knows.
"""

from __future__ import annotations

import os
import time

import psycopg

from holdfast.errors import DiskTrouble, Unsure, try_again
from holdfast.postgres.line import Answer, Silent
from holdfast.postgres.migrating import ready
from holdfast.postgres.named import SQL
from holdfast.postgres.pool import pool_of
from holdfast.postgres.trouble import READ_URL, Again, gone, ours, overtaken, unfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

    from holdfast.postgres.line import Asked, Line, Values
    from holdfast.postgres.pool import Pool
    from holdfast.postgres.store import Store

_IDLE_SECONDS = 120  # after which a transaction of ours that does nothing is ended by the server, with its locks
_NOT_REPLICATED = "01000"  # the warning with which a server ends its wait for a standby; the transaction stands on this one


class Session:
    """A transaction around a `with`."""

    def __init__(
        self, store: Store, seconds: float, durable: bool = False, reads: bool = False, replica: bool = False,
        idle_seconds: float = _IDLE_SECONDS, pool: Pool | None = None,
        entered: Callable[[Session], None] | None = None, left: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._seconds = seconds
        self.begun: float | None = None  # when what it is a part of began, if that may take no longer in all
        self._reads, self._durable = reads, durable
        self._replica = replica and not pool_of(store, "read").avoided
        self._pool = pool or pool_of(store, "read" if self._replica else "")
        self._idle_seconds = idle_seconds
        self._entered, self._left = entered, left
        self._pid = os.getpid()
        self._line: Line | None = None
        self._queue: list[Asked] = []
        self._answered = False  # whether anybody was told anything
        self._failed = False  # what follows an error would be half of it
        self._asked = 0  # statements
        self._last: Answer | None = None
        self._counted: list[Answer] = []

    # --- what it is told --------------------------------------------------------------------------------------------

    def execute(self, text: str, values: Values = ()) -> Answer:
        """Queue a statement; it is sent when its answer is read, or at the end."""
        return self.queue(text, values)

    def executemany(self, text: str, rows: Iterable[Values]) -> Answers:
        """The same statement for each row."""
        return Answers([self.queue(text, row) for row in rows])

    def queue(self, text: str, values: Values) -> Answer:
        """What is sent next."""
        answer = Answer(self)
        self._queue.append((text, values.copy() if isinstance(values, dict | list) else values, answer))
        self._asked += 1
        self._last = answer
        if not self._reads:
            self._counted.append(answer)
        return answer

    def changes(self) -> int:
        """How many rows the last statement touched."""
        return self._last.settled().changed if self._last is not None else 0

    def total_changes(self) -> int:
        """How many rows all of them touched."""
        return sum([answer.settled().changed for answer in self._counted])

    # --- sending ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what is queued, and read the answers."""
        batch, self._queue = self._queue, []
        if batch:
            self._persist(batch)
            self._answered = True

    def all_of(self, text: str, values: Values) -> list[Any]:
        """The rows of one query: the whole transaction is one round trip."""
        answer = Answer()
        try:
            self._persist([(text, values, answer), (SQL["commit"], (), Answer())])
        finally:
            self._give_back()
        return answer.rows

    def _persist(self, batch: list[Asked], done: Answer | None = None) -> None:
        """Ask; of another connection if this one dies and nothing was relied on. `done` is the answer to COMMIT."""
        if self._failed:
            raise try_again("nothing of this was kept, because a part of it failed")
        self._failed = not self._reads
        asked, pause = time.monotonic(), 0.01
        begun = self.begun or asked
        while True:
            sent = False
            try:
                line, fresh = self._take(asked + self._seconds)
                sent = True
                line.ask([*self._beginning(), *batch] if fresh else batch)
                break
            except (psycopg.Error, UnicodeEncodeError) as error:
                if done is not None and done.status == b"COMMIT":
                    self._drop()
                    break
                if not gone(error) and not (self._replica and (overtaken(error) or unfit(error))):
                    if self._reads:
                        self.undo()  # whoever asks next in this transaction is answered
                    raise ours(error) from error
                self._drop()
                self._tell_others(error.since if isinstance(error, Silent) else time.monotonic())
                if done is not None and sent and not self._reads and not _surely_not_done(error, batch):
                    raise Unsure("the database went away while it was told to keep this", "Look whether it is kept") from error
                if not self._may_repeat(error, begun, pause):
                    raise ours(error) from error
            time.sleep(pause)
            pause = min(pause * 2, 0.5)
        self._failed = False
        self._pool.contact.found()
        if self._replica:
            self._pool.answered()

    def _take(self, end: float) -> tuple[Line, bool]:
        """The connection, and whether it is a fresh one, on which nothing was begun."""
        if self._line is not None:
            return self._line, False
        self._line = self._pool.borrow(end, self._store.tenant)
        if not self._pool.ready and not self._replica:
            ready(self._store, self._line)
            self._pool.ready = True
        return self._line, True

    def _tell_others(self, since: float) -> None:
        """That the server is away; what others would borrow leads to the same dead one. Of a replica only this one knows."""
        if not self._replica:
            self._pool.contact.lost(since)
            self._pool.close()

    def _may_repeat(self, error: BaseException, begun: float, pause: float) -> bool:
        """Whether to ask again. What was asked of a replica is asked of the primary, whatever the replica's trouble is."""
        if self._replica:
            self._pool.avoid("" if overtaken(error) else str(ours(error, READ_URL)))
            self._replica, self._pool = False, pool_of(self._store)
            return True
        if self._answered and not self._reads:
            return False
        return time.monotonic() + pause < self._pool.contact.end(begun, self._seconds)

    def _beginning(self) -> list[Asked]:
        begin = SQL["begin_reading" if self._reads else "begin"]
        who = SQL["ask" if self._reads else "keep" if self._durable else "change"]
        values = {
            "tenant": self._store.tenant, "agent": self._store.agent, "most": _ms(self._store.statement_seconds),
            "wait": _ms(self._seconds), "idle": _ms(self._idle_seconds),
        }  # fmt: skip
        return [(begin, (), Answer()), (who, values, Answer())]

    # --- its beginning and its end ------------------------------------------------------------------------------------

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
            raise ours(error) from error

    def _commit(self) -> None:
        """What waits, and COMMIT behind it."""
        batch, self._queue = self._queue, []
        if self._line is not None and self._line.hung_up():  # before COMMIT was said: certainly not done
            self._drop()
            if self._answered:
                raise Again("the database went away", "Try again in a moment")
        if self._line is not None:
            self._line.warnings.clear()
        done = Answer()
        self._persist([*batch, (SQL["commit"], (), done)], done)
        if self._durable and self._line is not None and _NOT_REPLICATED in self._line.warnings:
            alone = DiskTrouble("this is kept by the primary, but no standby has confirmed it", "Look after the standbys")
            alone.may_be_done = True
            raise alone

    def _undo(self) -> None:
        """Nothing of it counts, and nobody waits for an answer."""
        if self._line is None:
            return
        try:
            self._line.ask([(SQL["rollback"], (), Answer())])
        except psycopg.Error:
            self._drop()

    def undo(self) -> None:
        """End it without a `with`: nothing of it counts."""
        self._undo()
        self._give_back()

    def ours(self) -> bool:
        """Whether this process began it, and not its parent."""
        return self._pid == os.getpid()

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._give_back()

    def _give_back(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            self._pool.give_back(line)


class Answers:
    """What one statement gave for each of many rows."""

    def __init__(self, answers: list[Answer]) -> None:
        self._answers = answers

    def fetchall(self) -> list[Any]:
        return [row for answer in self._answers for row in answer.fetchall()]

    def __iter__(self) -> Any:
        return iter(self.fetchall())


def _surely_not_done(error: BaseException, batch: list[Asked]) -> bool:
    """Whether the server itself refused something that stood before COMMIT, and did not just vanish."""
    return getattr(error, "sqlstate", None) in ("57P01", "25006") and not all(answer.known for _, _, answer in batch[:-1])


def _ms(seconds: float) -> str:
    """As PostgreSQL's settings say it; 0 is for ever."""
    return str(max(int(seconds * 1000), 1) if seconds else 0)
