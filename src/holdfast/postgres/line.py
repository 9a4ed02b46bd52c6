"""One connection. Statements are sent together and answered together: one round trip for all of them.

The driver's own pipeline writes every statement to the socket by itself, which wakes the server as often; this one writes
once. Values never become part of a statement's text: a server that logs a statement that failed logs none of them.
"""

from __future__ import annotations

import select
import threading
import time
from contextlib import suppress

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format, PollingStatus, TransactionStatus

from holdfast.postgres.contact import SILENCE_SECONDS
from holdfast.postgres.named import numbered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from psycopg.pq.abc import PGcancelConn, PGresult

    Values = Mapping[str, Any] | Sequence[Any]
    Asked = tuple[str, Values, "Answer"]

    class Settling(Protocol):
        """Whoever can make an answer known."""

        def flush(self) -> None: ...


_CHANGES = (b"INSERT", b"UPDATE", b"DELETE", b"MERGE")
_GRACE = 15  # seconds beyond what the server may take until we hold it to be gone
_CALL_OFF_SECONDS = 30.0  # that a server has to come to and hear that; by then it mostly has ended a statement by itself


class Answer:
    """What a statement gave. Reading it sends what waits to be sent."""

    def __init__(self, asker: Settling | None = None) -> None:
        self._asker = asker
        self.known = False
        self.rows: list[Any] = []
        self.changed = 0
        self.status = b""

    def settled(self) -> Answer:
        """Itself, when the server has answered."""
        if not self.known and self._asker is not None:
            self._asker.flush()
        return self

    def fetchall(self) -> list[Any]:
        """The rows that nobody has read yet."""
        rows = self.settled().rows
        self.rows = []
        return rows

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self.rows.pop(0) if self.settled().rows else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


class Silent(psycopg.OperationalError):
    """The server did not answer, and nobody else either since then."""

    def __init__(self, since: float) -> None:
        super().__init__("the server did not answer")
        self.since = since


class Line:
    """A connection that always sends in batches."""

    def __init__(
        self, connection: psycopg.Connection[Any], patience: float, is_there: Callable[[], bool] = lambda: True
    ) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.enter_pipeline_mode()
        self._transformer = Transformer(connection)
        self._poll = select.poll()
        self._patience = patience + _GRACE
        self._is_there = is_there  # whether the server answers anybody
        self.warnings: list[str] = []
        self.since = time.monotonic()  # when it was last given back
        self.holder, self.tenant = 0, ""  # the thread that has it, and for whom
        connection.add_notice_handler(self._hear)

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings.append(notice.sqlstate or "")

    def ask(self, batch: Sequence[Asked]) -> None:
        """Send these statements and make their answers known; the first error is raised when all were read."""
        try:
            for statement, values, _ in batch:
                self._send(statement, values)
            self._pg.pipeline_sync()
            self._write()
            failure = self._read([answer for _, _, answer in batch])
        except BaseException:
            self.close()  # half a conversation is of no use to the next one
            raise
        if failure is not None:
            raise failure

    def _send(self, statement: str, values: Values) -> None:
        text, names = numbered(statement)
        given = _in_order(names, values)
        if given:
            dumped = self._transformer.dump_sequence(given, [PyFormat.AUTO] * len(given))
            types, formats = self._transformer.types, self._transformer.formats
            self._pg.send_query_params(text, dumped, types, formats, Format.BINARY)
        else:
            self._pg.send_query_params(text, None, result_format=Format.BINARY)

    def _write(self) -> None:
        while self._pg.flush():
            self._wait(select.POLLIN | select.POLLOUT)
            self._pg.consume_input()

    def _read(self, answers: list[Answer]) -> psycopg.Error | None:
        """The results of each statement, then that of the sync that ends the batch."""
        failure: psycopg.Error | None = None
        waiting = iter(answers)
        answer: Answer | None = next(waiting)
        while True:
            result = self._next()
            if result is None:
                if self._pg.status != psycopg.pq.ConnStatus.OK:
                    raise failure or psycopg.OperationalError("the connection was closed")
                answer = next(waiting, None)  # nothing follows an answer
            elif result.status == ExecStatus.PIPELINE_SYNC:
                return failure
            elif result.status == ExecStatus.FATAL_ERROR:
                failure = failure or error_from_result(result)
            elif result.status != ExecStatus.PIPELINE_ABORTED and answer is not None:
                self._keep(answer, result)

    def _keep(self, answer: Answer, result: PGresult) -> None:
        answer.known = True
        answer.status = result.command_status or b""
        if result.status == ExecStatus.TUPLES_OK:
            self._transformer.set_pgresult(result)
            answer.rows = self._transformer.load_rows(0, result.ntuples, tuple)
        if answer.status.startswith(_CHANGES):
            answer.changed = result.command_tuples or 0

    def _next(self) -> PGresult | None:
        """The next result; other threads go on while it is awaited."""
        while self._pg.is_busy():
            self._wait(select.POLLIN)
            self._pg.consume_input()
        while self._pg.notifies():
            pass  # nobody here listens
        return self._pg.get_result()

    def _wait(self, events: int) -> None:
        self._poll.register(self._pg.socket, events)
        heard = time.monotonic()
        end = heard + self._patience
        while not self._poll.poll(SILENCE_SECONDS * 1000):
            if time.monotonic() >= end or not self._is_there():
                self._call_off()
                raise Silent(heard)
            heard = time.monotonic()

    def _call_off(self) -> None:
        """Let the server know, on the side, that nobody waits any more: it need not go on when it comes to."""
        with suppress(psycopg.Error, RuntimeError):  # a client library before 17 has no way that is as safe; no more threads
            calling = self._pg.cancel_conn()
            threading.Thread(target=_send, args=(calling,), daemon=True).start()

    # --- its state -----------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether it can be given to the next one."""
        return not self._connection.closed and self._pg.transaction_status == TransactionStatus.IDLE

    def hung_up(self) -> bool:
        """Whether the server has hung up: what can be read though nothing was asked is its farewell."""
        if self._connection.closed:
            return True
        self._poll.register(self._pg.socket, select.POLLIN)
        return bool(self._poll.poll(0))

    def close(self) -> None:
        self._connection.close()


def _send(calling: PGcancelConn) -> None:
    """It is sent, or its time is over; whether it was heard nobody waits for."""
    ready, end = select.poll(), time.monotonic() + _CALL_OFF_SECONDS
    with suppress(psycopg.Error):
        calling.start()
        while (left := end - time.monotonic()) > 0:
            state = calling.poll()
            if state not in (PollingStatus.READING, PollingStatus.WRITING):
                break
            ready.register(calling.socket, select.POLLIN if state == PollingStatus.READING else select.POLLOUT)
            ready.poll(left * 1000)
            ready.unregister(calling.socket)
    calling.finish()


def _in_order(names: tuple[str, ...] | int, values: Values) -> Sequence[Any]:
    """The values as the statement counts them."""
    if isinstance(names, int):
        return list(values)
    return [values[name] for name in names]  # type: ignore[call-overload]
