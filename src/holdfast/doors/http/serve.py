"""The server process: listens, says where, answers until it is told to stop, and lets writes under way finish first."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from holdfast.doors.http.app import App
from holdfast.doors.http.gateway import Gateway
from holdfast.doors.http.logs import Logs, Servers
from holdfast.doors.http.timely import MOST_BYTES, Timely
from holdfast.doors.http.workers import Workers
from holdfast.errors import Busy

HOST = "127.0.0.1"
PORT = 8710
_PARTING_SECONDS = 20  # for requests under way; what a thread has begun is finished in any case
_KEEP_SECONDS = 75


def serve(
    make: Callable[[], App], host: str, port: int, logs: Logs, ready: Callable[[str], object], workers: int = 1
) -> None:
    """Until SIGTERM or Ctrl-C; port 0 means any that is free. With several workers each makes an app of its own."""
    with bound(host, port) as listening:
        name = f"[{host}]" if ":" in host else host
        _on_signals(_leave)  # who reads that it is ready may stop it at once
        ready(f"http://{name}:{listening.getsockname()[1]}")
        if workers == 1:
            _answer(make, listening, logs)
        else:
            Workers(workers, lambda: _answer(make, listening, logs), lambda code: _mourn(logs, code)).run()


def _answer(make: Callable[[], App], listening: socket.socket, logs: Logs) -> None:
    """In this process."""
    config = uvicorn.Config(
        make(), log_config=None, access_log=False, lifespan="on", server_header=False, ws="none", proxy_headers=False,
        timeout_graceful_shutdown=_PARTING_SECONDS, timeout_keep_alive=_KEEP_SECONDS,
        h11_max_incomplete_event_size=MOST_BYTES, http=Timely,
    )  # fmt: skip
    _hear(logs)
    server = uvicorn.Server(config)
    _end_well(server)
    server.run(sockets=[listening])


def _mourn(logs: Logs, code: int) -> None:
    logs.say("error", event="worker died", code=code)


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


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens; who asks before the app is ready waits in its queue."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, proto)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(1024)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        what = f"cannot listen on port {port} of {host}: {error.strerror or error}"
        raise Busy(what, "Say --port 0 for any that is free") from None
    listening.setblocking(False)
    return listening


def _hear(logs: Logs) -> None:
    """What the server and the libraries have to say goes into our log, if it is a warning or worse."""
    every, theirs = logging.getLogger(), logging.getLogger("uvicorn.error")
    every.handlers[:], theirs.handlers[:] = [Servers(logs)], []
    for logger in (every, theirs):
        logger.setLevel(logging.WARNING)


def app_of(
    home: str | None, hosts: tuple[str, ...], origins: tuple[str, ...], logs: Logs, given: dict[str, Any] | None = None
) -> App:
    """The app for one home, or for the store that the settings or `given` name."""
    return App(Gateway(home, given), hosts=hosts, origins=origins, logs=logs)
