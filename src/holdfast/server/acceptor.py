"""Accept connections until descriptors run short, then wait: the connections that are open keep working, and new ones wait in
the queue of the listening socket until others are closed.

The event loops' own servers do not do that: asyncio's tries again in a busy loop when accept() fails for want of descriptors,
and uvloop's closes the listening socket.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from holdfast.server.logs import Logs

RETRY_SECONDS = 0.5  # after which a full process looks whether it may accept again
LOG_SECONDS = 60.0  # between two lines of the log about a full process
_MAX_RESERVE = 256  # descriptors that are kept for files and databases, or half of all where those are few
_MIN_CONNECTIONS = 4
_ACCEPTED_AT_ONCE = 100
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class GatewayServer(uvicorn.Server):
    """uvicorn's server, with connections from our own acceptors."""

    def __init__(self, config: uvicorn.Config, listening: socket.socket, logs: Logs) -> None:
        super().__init__(config)
        self._listening, self._logs = listening, logs

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])  # the lifespan only
        loop = asyncio.get_running_loop()

        def create_protocol() -> asyncio.Protocol:
            protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=loop
            )
            return protocol

        acceptor = Acceptor(self._listening, create_protocol, self._logs, count_open=lambda: len(self.server_state.connections))
        acceptor.start()
        self.servers = [acceptor]  # type: ignore[list-item]  # uvicorn closes it and waits for it


class Acceptor:
    """Accept connections of one listening socket in the running event loop."""

    def __init__(
        self, listening: socket.socket, create_protocol: Callable[[], asyncio.Protocol], logs: Logs, *,
        count_open: Callable[[], int], most: int | None = None,
    ) -> None:  # fmt: skip
        self._listening, self._create_protocol, self._logs = listening, create_protocol, logs
        self._count_open = count_open
        self._most = max_connections() if most is None else most
        self._loop = asyncio.get_running_loop()
        self._starting: set[asyncio.Task[object]] = set()  # accepted, and not yet counted as open
        self._timer: asyncio.TimerHandle | None = None
        self._logged_at = float("-inf")
        self._is_logged = False  # whether the log says that it is full, and not yet that it is over

    def start(self) -> None:
        self._listening.setblocking(False)
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def close(self) -> None:
        """Close the listening socket: further connections are refused."""
        if self._timer is not None:
            self._timer.cancel()
        if self._listening.fileno() != -1:
            self._loop.remove_reader(self._listening.fileno())
            self._listening.close()

    async def wait_closed(self) -> None:
        """Return at once: open connections are waited for elsewhere."""

    def _accept(self) -> None:
        """Accept the connections that wait, a number of them at a time."""
        for _ in range(_ACCEPTED_AT_ONCE):
            count = self._count_open() + len(self._starting)
            if count >= self._most:
                self._pause(f"{count} are open, and the others of its descriptors are kept for files")
                return
            try:
                connection, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._pause(f"{count} are open: {error.strerror}")
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._loop.connect_accepted_socket(self._create_protocol, connection))
            self._starting.add(task)
            task.add_done_callback(self._started)
        self._log_end()

    def _started(self, task: asyncio.Task[object]) -> None:
        self._starting.discard(task)
        if not task.cancelled() and task.exception() is None:
            self._log_end()

    def _pause(self, why: str) -> None:
        """Leave the listening socket alone for a while; it stays readable, and would be reported all the time."""
        self._loop.remove_reader(self._listening.fileno())
        self._timer = self._loop.call_later(RETRY_SECONDS, self._resume)
        if self._loop.time() - self._logged_at >= LOG_SECONDS:
            self._logged_at, self._is_logged = self._loop.time(), True
            fix = "raise the limit of descriptors (`ulimit -n`), or close connections"
            self._logs.log("error", event="connections full", message=f"connections are not accepted: {why}", fix=fix)

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def _log_end(self) -> None:
        """Log that connections accepted again, if the log says that they were not."""
        if self._is_logged and self._timer is None:
            self._is_logged = False
            self._logs.log("info", event="connections accepted again")


def max_connections() -> int:
    """Return how many connections this process may have, so that descriptors are left for its files and databases."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(limit - _count_descriptors() - min(_MAX_RESERVE, limit // 2), _MIN_CONNECTIONS)


def _count_descriptors() -> int:
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return 32
