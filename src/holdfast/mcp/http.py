"""The server over streamable HTTP: an app that others can mount, and a server of its own on loopback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings

from holdfast.errors import Busy
from holdfast.mcp.project_resolution import Started
from holdfast.mcp.server import build
from holdfast.mcp.token import Guarded

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from holdfast.mcp.calls import Gate

HOST = "127.0.0.1"
PORT = 8711
PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_BODY_BYTES = 16 * 1024 * 1024  # a file may have 10 MiB, and JSON may spell it longer
_PARTING_SECONDS = 2


def app(
    started: Started, *, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), path: str = PATH,
    gate: Gate | None = None,
) -> Starlette:  # fmt: skip
    """An ASGI app that answers at `path`. Hosts and origins other than loopback's are refused unless they are named here, so
    that no web page reaches it by a name of its own. Whoever mounts it says who may come in, since it asks for no token, and
    runs its lifespan (`app.router.lifespan_context`). Where a gate looks at each call, no session is kept between calls:
    nobody can come in by another's."""
    server = build(started.replace(surroundings=False), gate)
    return app_of(server, hosts, origins, path, stateless=gate is not None)


def app_of(
    server: Server[Any], hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), path: str = PATH, stateless: bool = False,
) -> Starlette:  # fmt: skip
    """The same for a server that is there already."""
    named = [*[f"{host}:*" for host in _LOOPBACK], *_LOOPBACK, *hosts]
    pages = [*[f"{scheme}://{host}" for scheme in ("http", "https") for host in named], *origins]
    security = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=named, allowed_origins=pages)
    return server.streamable_http_app(
        streamable_http_path=path, transport_security=security, max_request_body_size=_BODY_BYTES, stateless_http=stateless,
    )  # fmt: skip


def serve(started: Started, port: int, token: str | None, ready: Callable[[str], object]) -> None:
    """Answer on loopback until stopped, to whoever has the token if there is one; port 0 means any that is free."""
    import uvicorn

    answering = app(started)
    config = uvicorn.Config(
        Guarded(answering, token) if token else answering, host=HOST, port=port, log_level="warning",
        timeout_graceful_shutdown=_PARTING_SECONDS,
    )  # fmt: skip
    try:
        listening = config.bind_socket()
    except SystemExit:  # it has said why
        raise Busy(f"cannot listen on port {port} of {HOST}", "Say --port 0 for any that is free") from None
    with listening:
        listening.listen()
        where = f"http://{HOST}:{listening.getsockname()[1]}{PATH}"

        class Announced(uvicorn.Server):
            """Says that it is ready when it is: a signal that comes then finds it listening to signals too."""

            async def startup(self, *given: Any, **named: Any) -> None:
                await super().startup(*given, **named)
                ready(where)

        Announced(config).run(sockets=[listening])
