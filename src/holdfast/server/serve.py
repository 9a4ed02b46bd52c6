"""The server process: listens, says where, answers until it is told to stop, and lets writes under way finish first."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import uvicorn
from starlette.applications import Starlette

from holdfast.errors import Busy
from holdfast.server.app import create_app
from holdfast.server.gateway import Gateway
from holdfast.server.header_timeout import MOST_BYTES, HeaderTimeout
from holdfast.server.logs import LibraryLogHandler, Logs
from holdfast.server.processes import Workers

HOST = "127.0.0.1"
PORT = 8710
_PARTING_SECONDS = 20  # for requests under way; what a thread has begun is finished in any case
_KEEP_SECONDS = 75
_LITTER = 20_000  # objects that were made and not yet let go of, before anybody looks which are out of use


def serve(
    make: Callable[[], Starlette], host: str, port: int, logs: Logs, ready: Callable[[str], object], workers: int = 1
) -> None:
    """Until SIGTERM or Ctrl-C; port 0 means any that is free. With several workers each makes an app of its own."""
    with ExitStack() as stack:
        ears = [stack.enter_context(one) for one in bound(host, port, workers)]
        name = f"[{host}]" if ":" in host else host
        _on_signals(_leave)  # who reads that it is ready may stop it at once
        ready(f"http://{name}:{ears[0].getsockname()[1]}")
        if workers == 1:
            _answer(make, ears[0], logs)
        else:
            one = Workers(
                workers, lambda number: _answer(make, _own(ears, number), logs), lambda code: _mourn(logs, code), stack.close
            )
            one.run()


def _answer(make: Callable[[], Starlette], listening: socket.socket, logs: Logs) -> None:
    """In this process."""
    config = uvicorn.Config(
        make(), log_config=None, access_log=False, lifespan="on", server_header=False, ws="none", proxy_headers=False,
        timeout_graceful_shutdown=_PARTING_SECONDS, timeout_keep_alive=_KEEP_SECONDS,
        h11_max_incomplete_event_size=MOST_BYTES, http=HeaderTimeout,
    )  # fmt: skip
    _hear(logs)
    gc.freeze()  # what is there now stays, and need not be looked through again and again,
    gc.set_threshold(_LITTER)  # nor what a request makes, which is gone with its answer
    server = uvicorn.Server(config)
    _end_well(server)
    server.run(sockets=[listening])


def _own(ears: list[socket.socket], number: int) -> socket.socket:
    """The socket of one worker. It has no part in the others': where one of them is gone for good, its socket must be too."""
    for ear in ears:
        if ear is not ears[number]:
            ear.close()
    return ears[number]


def _mourn(logs: Logs, code: int) -> None:
    logs.log("error", event="worker died", code=code)


def _end_well(server: uvicorn.Server) -> None:
    """The server hears a signal itself while it runs, and raises it again at the end: by then all is done, and that is no
    failure. Before it runs, nothing is under way."""

    def told(*_: object) -> None:
        if not server.started:
            os._exit(0)

    _on_signals(told)


def _leave(*_: object) -> None:
    """Before the server is made: what has begun is undone on the way out, and that is no failure."""
    raise SystemExit(0)


def _on_signals(do: Callable[..., None]) -> None:
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, do)


def bound(host: str, port: int, count: int = 1) -> list[socket.socket]:
    """Sockets that listen, one for each worker; who asks before the app is ready waits in a queue. Of one that all share, a
    worker takes all who come at once; of several on one port, Linux gives each its share."""
    try:
        first = _listening(host, port)
        if count == 1 or sys.platform != "linux":
            return [first] * count
        with first:  # nobody else listens there, and now we may, several times
            port = first.getsockname()[1]
        ears: list[socket.socket] = []
        try:
            for _ in range(count):
                ears.append(_listening(host, port, shared=True))
        except BaseException:
            for ear in ears:
                ear.close()
            raise
        return ears
    except OSError as error:
        what = f"cannot listen on port {port} of {host}: {error.strerror or error}"
        raise Busy(what, "Say --port 0 for any that is free") from None


def _listening(host: str, port: int, shared: bool = False) -> socket.socket:
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


def _hear(logs: Logs) -> None:
    """What the server and the libraries have to say goes into our log, if it is a warning or worse."""
    every, theirs = logging.getLogger(), logging.getLogger("uvicorn.error")
    every.handlers[:], theirs.handlers[:] = [LibraryLogHandler(logs)], []
    for logger in (every, theirs):
        logger.setLevel(logging.WARNING)


def app_of(
    home: str | None, hosts: tuple[str, ...], origins: tuple[str, ...], logs: Logs, given: dict[str, Any] | None = None
) -> Starlette:
    """The app for one home, or for the store that the settings or `given` name."""
    return create_app(Gateway(home, given), hosts=hosts, origins=origins, logs=logs)
