"""A PostgreSQL connection that sends a batch of statements in one write and reads the results in one go: one round trip.

It uses libpq's pipeline mode with psycopg's generators and adapters. psycopg's own `Pipeline` writes each statement by itself,
which wakes the server as often, and may replace the first error by "pipeline aborted". Values never become part of a
statement's text: a server that logs a failed statement logs none of them.
"""

from __future__ import annotations

import select
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import count
from typing import NamedTuple

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, PollingStatus, TransactionStatus
from psycopg.waiting import Ready, Wait

from holdfast.postgres.outage import SILENCE_SECONDS
from holdfast.postgres.sql import number_placeholders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from typing import Any, Protocol, Self

    from psycopg.abc import Buffer
    from psycopg.pq.abc import PGcancelConn, PGresult

    from holdfast.postgres.pool import Connections

    Values = Mapping[str, Any] | Sequence[Any]
    Statement = tuple[str, Values, "Result"]
    _PlanKey = tuple[bytes, tuple[int, ...]]

    class Flushable(Protocol):
        """An object that sends what is queued."""

        def flush(self) -> None: ...


_PREPARE_AFTER = 3  # uses of a statement on one connection after which the server keeps its plan
_MAX_PREPARED = 200  # statements whose plans the server keeps for one connection
_STALE_PLAN = ("0A000", "26000")  # a migration changed the columns of a result, or the server no longer has the statement
_CHANGES = (b"INSERT", b"UPDATE", b"DELETE", b"MERGE")
_GRACE_SECONDS = 15  # beyond the statement timeout, before a server that is silent counts as gone
_CANCEL_SECONDS = 30.0  # for which a cancel request is tried; by then the statement has mostly ended by itself
_EVENTS = {Wait.R: select.POLLIN, Wait.W: select.POLLOUT, Wait.RW: select.POLLIN | select.POLLOUT}


class Result:
    """The result of a statement. Reading it sends what is queued."""

    def __init__(self, queue: Flushable | None = None) -> None:
        self._queue = queue
        self.known = False
        self.rows: list[Any] = []
        self.changed = 0
        self.status = b""

    def wait(self) -> Result:
        """Return itself when the server has answered."""
        if not self.known and self._queue is not None:
            self._queue.flush()
        return self

    def fetchall(self) -> list[Any]:
        """Return the rows that were not read yet."""
        rows = self.wait().rows
        self.rows = []
        return rows

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self.rows.pop(0) if self.wait().rows else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


class NoAnswer(psycopg.OperationalError):
    """The server did not answer, and answers no other connection either."""

    def __init__(self, since: float) -> None:
        super().__init__("the server did not answer")
        self.since = since


class _Query(NamedTuple):
    """A statement and its values as the server reads them."""

    text: bytes
    values: Sequence[Buffer | None] | None = None
    types: tuple[int, ...] = ()
    formats: tuple[int, ...] = ()

    @property
    def key(self) -> _PlanKey:
        """What its plan depends on."""
        return self.text, self.types


class Connection(psycopg.Connection[tuple["Any", ...]]):
    """A connection that is always in pipeline mode and notices a server that no longer answers."""

    pool: Connections | None = None  # where it is given back; None where it is closed after use
    holder = 0, ""  # the thread and the tenant that use it
    keeps_plans = False  # whether statements that are used often are prepared

    @classmethod
    def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, opener: Callable[[], Self] | None = None, **parameters: Any
    ) -> Self:
        """Connect, by calling `opener` where one is given: that is how psycopg_pool makes its connections."""
        return opener() if opener is not None else super().connect(conninfo, **parameters)

    def enter_pipeline(self, statement_seconds: float, server_answers: Callable[[], bool]) -> None:
        """Enter pipeline mode; `server_answers` says whether a server that is silent accepts other connections."""
        self.pgconn.enter_pipeline_mode()
        self._transformer = Transformer(self)
        self._poll = select.poll()
        self._seconds = statement_seconds + _GRACE_SECONDS
        self._server_answers = server_answers
        self.warnings: list[str] = []
        self.add_notice_handler(self._on_notice)
        self._uses: Counter[_PlanKey] = Counter()
        self._plans: dict[_PlanKey, bytes] = {}  # names of prepared statements
        self._names = count(1)  # a statement that may not have been prepared gets a new name

    def detect_pooler(self) -> None:
        """Prepare statements from now on unless a pooler is in between: it runs each transaction on any of its own
        connections. It is recognised by the process id, which is not that of the server process."""
        result = Result()
        self.run([("SELECT pg_backend_pid()", (), result)])
        self.keeps_plans = result.rows == [(self.info.backend_pid,)]

    def _on_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings.append(notice.sqlstate or "")

    def run(self, batch: Sequence[Statement]) -> None:
        """Send these statements and read their results; then raise the first error."""
        queries = [self._encode(statement, values) for statement, values, _ in batch]  # before anything is sent: it may fail
        results: list[Result] = []
        prepared: dict[_PlanKey, Result] = {}
        try:
            for query, (_, _, result) in zip(queries, batch, strict=True):
                if self._send(query):
                    results.append(prepared.setdefault(query.key, Result()))
                results.append(result)
            self.pgconn.pipeline_sync()
            failure = self._run_generator(self._exchange(results))
        except BaseException:
            self.close()  # results that were not read would be taken for those of the next batch
            raise
        for key, result in prepared.items():
            if not result.known:  # the server did not get that far
                del self._plans[key]
        if failure is not None:
            if failure.sqlstate in _STALE_PLAN and self._plans:
                self.close()  # its plans end with it
                raise InvalidSqlStatementName("a prepared statement is outdated") from failure
            raise failure

    def _encode(self, statement: str, values: Values) -> _Query:
        """Return the statement and its values as the server reads them."""
        text, names = number_placeholders(statement)
        ordered = list(values) if isinstance(names, int) else [values[name] for name in names]  # type: ignore[call-overload]
        if not ordered:
            return _Query(text)
        dumped = self._transformer.dump_sequence(ordered, [PyFormat.AUTO] * len(ordered))
        types, formats = self._transformer.types, self._transformer.formats
        return _Query(text, dumped, tuple(types or ()), tuple(formats or ()))

    def _send(self, query: _Query) -> bool:
        """Send a statement, as a prepared one if it is used often; return whether it is prepared now, which has its own
        result."""
        key = query.key
        self._uses[key] += 1
        name = self._plans.get(key)
        is_new = not name and self.keeps_plans and self._uses[key] > _PREPARE_AFTER and len(self._plans) < _MAX_PREPARED
        if is_new:
            name = self._plans[key] = b"holdfast_%d" % next(self._names)
            self.pgconn.send_prepare(name, query.text, query.types)
        if name:
            self.pgconn.send_query_prepared(name, query.values, query.formats, Format.BINARY)
        else:
            self.pgconn.send_query_params(query.text, query.values, query.types, query.formats, Format.BINARY)
        return is_new

    def _exchange(self, results: list[Result]) -> Generator[Wait, Ready, psycopg.Error | None]:
        """Write what is queued, then read the result of each statement and that of the sync that ends the batch."""
        failure: psycopg.Error | None = None
        yield from generators.send(self.pgconn)
        for result in (*results, None):
            try:
                answers = yield from generators.fetch_many(self.pgconn)
            except psycopg.OperationalError as error:
                raise failure or error from None
            for answer in answers:
                if answer.status == ExecStatus.FATAL_ERROR:
                    failure = failure or error_from_result(answer)
                elif result is not None and answer.status != ExecStatus.PIPELINE_ABORTED:
                    self._store(result, answer)
            if self.pgconn.status != ConnStatus.OK:
                raise failure or psycopg.OperationalError("the connection was closed")
        return failure

    def _store(self, result: Result, answer: PGresult) -> None:
        result.known = True
        result.status = answer.command_status or b""
        if answer.status == ExecStatus.TUPLES_OK:
            self._transformer.set_pgresult(answer)
            result.rows = self._transformer.load_rows(0, answer.ntuples, tuple)
        if result.status.startswith(_CHANGES):
            result.changed = answer.command_tuples or 0

    def _run_generator(self, steps: Generator[Wait, Ready, psycopg.Error | None]) -> psycopg.Error | None:
        """Run a generator of psycopg's to its end, and probe the server where it is silent."""
        try:
            state = next(steps)
            while True:
                state = steps.send(self._wait(_EVENTS[state]))
        except StopIteration as end:
            failure: psycopg.Error | None = end.value
            return failure

    def _wait(self, events: int) -> Ready:
        self._poll.register(self.pgconn.socket, events)
        last_answer = time.monotonic()
        end = last_answer + self._seconds
        while not (events_found := self._poll.poll(SILENCE_SECONDS * 1000)):
            if time.monotonic() >= end or not self._server_answers():
                self._cancel_later()
                raise NoAnswer(last_answer)
            last_answer = time.monotonic()
        event = events_found[0][1]
        return Ready.W if event == select.POLLOUT else Ready.RW if event & select.POLLOUT else Ready.R

    def _cancel_later(self) -> None:
        """Ask the server from another thread to cancel the statement, so that it does not go on when it wakes up."""
        with suppress(psycopg.Error, RuntimeError):  # libpq before 17 cannot; no more threads
            request = self.pgconn.cancel_conn()
            threading.Thread(target=_cancel, args=(request,), daemon=True).start()

    @property
    def is_idle(self) -> bool:
        """Whether the next caller can use it."""
        return not self.closed and self.pgconn.transaction_status == TransactionStatus.IDLE

    def is_closed_by_server(self) -> bool:
        """Return whether the server has closed the connection: it sends nothing else unasked."""
        if self.closed:
            return True
        self._poll.register(self.pgconn.socket, select.POLLIN)
        return bool(self._poll.poll(0))


def _cancel(request: PGcancelConn) -> None:
    """Send a cancel request; whether it has an effect is not waited for."""
    ready, end = select.poll(), time.monotonic() + _CANCEL_SECONDS
    with suppress(psycopg.Error):
        request.start()
        while (left := end - time.monotonic()) > 0:
            state = request.poll()
            if state not in (PollingStatus.READING, PollingStatus.WRITING):
                break
            ready.register(request.socket, select.POLLIN if state == PollingStatus.READING else select.POLLOUT)
            ready.poll(left * 1000)
            ready.unregister(request.socket)
    request.finish()
