"""MCP over streamable HTTP: an ASGI app to mount, and a server on loopback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings

from holdfast.errors import Busy
from holdfast.mcp.project_resolution import LaunchOptions
from holdfast.mcp.server import build_server
from holdfast.mcp.token import TokenGuard

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from holdfast.mcp.calls import AccessControl

HOST = "127.0.0.1"
PORT = 8711
PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_BODY_BYTES = 16 * 1024 * 1024  # a file may have 10 MiB, and JSON escapes make it longer
_SHUTDOWN_SECONDS = 2


def app(
    started: LaunchOptions, *, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), path: str = PATH,
    gate: AccessControl | None = None,
) -> Starlette:  # fmt: skip
    """Return an ASGI app that answers at `path`.

    Hosts and origins other than loopback must be named, against DNS rebinding. The app asks for no token: the server that
    mounts it authenticates callers and runs its lifespan (`app.router.lifespan_context`). With a gate no session is kept
    between calls, so that a caller cannot use the session of another.
    """
    server = build_server(started.replace(surroundings=False), gate)
    return app_of(server, hosts, origins, path, stateless=gate is not None)


def app_of(
    server: Server[Any], hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), path: str = PATH, stateless: bool = False,
) -> Starlette:  # fmt: skip
    """Return an ASGI app for a server."""
    named = [*[f"{host}:*" for host in _LOOPBACK], *_LOOPBACK, *hosts]
    pages = [*[f"{scheme}://{host}" for scheme in ("http", "https") for host in named], *origins]
    security = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=named, allowed_origins=pages)
    return server.streamable_http_app(
        streamable_http_path=path, transport_security=security, max_request_body_size=_BODY_BYTES, stateless_http=stateless,
    )  # fmt: skip


def serve(started: LaunchOptions, port: int, token: str | None, ready: Callable[[str], object]) -> None:
    """Serve on loopback until stopped, with a token if one is given; port 0 means any free port."""
    import uvicorn

    asgi_app = app(started)
    config = uvicorn.Config(
        TokenGuard(asgi_app, token) if token else asgi_app, host=HOST, port=port, log_level="warning",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )  # fmt: skip
    try:
        listening = config.bind_socket()
    except SystemExit:  # uvicorn has logged the reason
        raise Busy(f"cannot listen on port {port} of {HOST}", "Use --port 0 for any free port") from None
    with listening:
        listening.listen()
        where = f"http://{HOST}:{listening.getsockname()[1]}{PATH}"

        class AnnouncingServer(uvicorn.Server):
            """Calls `ready` after its signal handlers are installed."""

            async def startup(self, *given: Any, **named: Any) -> None:
                await super().startup(*given, **named)
                ready(where)

        AnnouncingServer(config).run(sockets=[listening])
