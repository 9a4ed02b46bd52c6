"""The server process: listen, say where, answer until stopped, and let writes under way finish first."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from holdfast.errors import Busy
from holdfast.server import running
from holdfast.server.acceptor import GatewayServer
from holdfast.server.app import create_app
from holdfast.server.body import ARRIVED
from holdfast.server.gateway import Gateway
from holdfast.server.hosts import TARGET
from holdfast.server.logs import LibraryLogHandler, Logs
from holdfast.server.metrics import count_restart
from holdfast.server.processes import Workers
from holdfast.server.shared_counters import SharedCounters

HOST = "127.0.0.1"
_REACHED_BY = {"0.0.0.0": HOST, "::": "::1"}  # at every address: from this machine by loopback's
PORT = 8710
HEAD_SECONDS = 30.0  # from the first byte of a request's head, or from the start of the connection, to the head's end
MAX_HEAD_BYTES = 64 * 1024
_SHUTDOWN_SECONDS = 20  # for requests under way; what a thread has begun is finished in any case
_KEEP_ALIVE_SECONDS = 75
_GC_THRESHOLD = 20_000  # objects between two runs of the garbage collector; a request frees its own with its answer
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def serve(
    make_app: Callable[[SharedCounters, int], Starlette], host: str, port: int, logs: Logs, ready: Callable[[str], object],
    workers: int = 1, *, home: str,
) -> None:  # fmt: skip
    """Answer until SIGTERM or Ctrl-C; port 0 means any that is free. Other commands of the home find the server meanwhile.

    Each of several workers makes an app of its own, from the counters that all of them share and its number."""
    counters = SharedCounters(workers)

    def restarted(code: int) -> None:
        count_restart(counters)
        logs.log("error", event="worker died", code=code)

    with ExitStack() as stack:
        sockets = [stack.enter_context(one) for one in _listen(host, port, workers)]
        port = sockets[0].getsockname()[1]
        _on_signals(_exit_at_once)  # a caller who reads that it is ready may stop it at once
        stack.enter_context(running.announce(home, _format_url(_REACHED_BY.get(host, host), port)))
        ready(_format_url(host, port))
        if workers == 1:
            _run(make_app(counters, 0), sockets[0], logs)
        else:
            Workers(
                workers,
                lambda number: _run(make_app(counters, number), _own_socket(sockets, number), logs),
                restarted,
                stack.close,
            ).run()


def _format_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def app_of(
    home: str | None, hosts: tuple[str, ...], origins: tuple[str, ...], logs: Logs, given: dict[str, Any] | None = None,
    shared: SharedCounters | None = None, worker: int = 0,
) -> Starlette:  # fmt: skip
    """Return the app for one home, or for the store that the settings or `given` name."""
    return create_app(Gateway(home, given, shared=shared, worker=worker), hosts=hosts, origins=origins, logs=logs)


def _run(app: Starlette, listening: socket.socket, logs: Logs) -> None:
    """Answer in this process."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", server_header=False, ws="none", proxy_headers=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS, timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES, http=HeaderTimeout,
    )  # fmt: skip
    _log_libraries(logs)
    gc.freeze()  # the app stays: the collector need not scan it again
    gc.set_threshold(_GC_THRESHOLD)
    server = GatewayServer(config, listening, logs)

    def exit_before_start(*_: object) -> None:
        if not server.started:
            _exit_at_once()

    # uvicorn handles signals while it runs and raises them again at its end: by then all is done, and that is no failure
    _on_signals(exit_before_start)
    server.run()


def _exit_at_once(*_: object) -> None:
    """End the process. An exception would be dropped where the signal interrupts a finalizer, and the server would go on."""
    os._exit(0)


def _on_signals(handler: Callable[..., None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def _log_libraries(logs: Logs) -> None:
    """Send warnings and errors of uvicorn and the libraries to our log."""
    root, uvicorn_errors = logging.getLogger(), logging.getLogger("uvicorn.error")
    root.handlers[:], uvicorn_errors.handlers[:] = [LibraryLogHandler(logs)], []
    for logger in (root, uvicorn_errors):
        logger.setLevel(logging.WARNING)


# --- sockets --------------------------------------------------------------------------------------------------------------


def _listen(host: str, port: int, count: int = 1) -> list[socket.socket]:
    """Return a listening socket for each worker; requests that come before the app is ready wait in its queue.

    Of one shared socket a worker takes all connections that come at once; of several on one port, Linux gives each its share.
    """
    try:
        first = _listening_socket(host, port)
        if count == 1 or sys.platform != "linux":
            return [first] * count
        with first:  # no other program listens there: now we may, several times
            port = first.getsockname()[1]
        sockets: list[socket.socket] = []
        try:
            for _ in range(count):
                sockets.append(_listening_socket(host, port, shared=True))
        except BaseException:
            for one in sockets:
                one.close()
            raise
        return sockets
    except OSError as error:
        what = f"cannot listen on port {port} of {host}: {error.strerror or error}"
        raise Busy(what, _listen_fix(error)) from None


def _listen_fix(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "Give --host an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of its addresses"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "Choose a --port above 1023, or 0 for any free port"
    return "Stop the program that uses the port, or choose another --port; 0 takes any free port"


def _listening_socket(host: str, port: int, shared: bool = False) -> socket.socket:
    family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, proto)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(address)
        listening.listen(1024)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


def _own_socket(sockets: list[socket.socket], number: int) -> socket.socket:
    """Return one worker's socket and close the others: those of a worker that has ended must not stay open."""
    for one in sockets:
        if one is not sockets[number]:
            one.close()
    return sockets[number]


# --- slow and endless heads, and request targets ----------------------------------------------------------------------

if TYPE_CHECKING:

    class _Protocol(asyncio.Protocol):
        loop: asyncio.AbstractEventLoop
        transport: asyncio.Transport
        cycle: Any
        scope: Any
        url: bytes

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...
        def on_headers_complete(self) -> None: ...
        def on_message_complete(self) -> None: ...
else:
    _Protocol = AutoHTTPProtocol


class HeaderTimeout(_Protocol):
    """uvicorn's protocol, with limits on the time and the size of a request's head, which uvicorn has only for its body.

    Without them a connection that sends its head byte by byte, or nothing, or without an end, stays open for ever.
    """

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        is_body = self.cycle is not None and self.cycle.more_body  # of a request that may be answered already
        super().data_received(data)
        if not self._is_idle():
            self._stop_timer()
            self._head_bytes = 0
            return
        self._head_bytes += 0 if is_body else len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()
        elif self._timer is None:
            self._start_timer()

    def on_headers_complete(self) -> None:
        """Keep the target as it was sent: httptools' protocol drops the host of `GET http://host/path`, h11's keeps it."""
        self.scope[TARGET] = self.url
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Record in the scope that the whole request has arrived. (httptools' protocol calls this, h11's has no such call.)"""
        self.scope[ARRIVED] = True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        """Return whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self._close_idle)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_idle(self) -> None:
        self._timer = None
        if self._is_idle():
            self.transport.close()
