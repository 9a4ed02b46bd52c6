"""MCP on the same port, for the same tokens: the caller's agent and role decide there as everywhere."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from holdfast.access.policy import denial_reason
from holdfast.errors import UsageError
from holdfast.mcp import http
from holdfast.mcp.calls import Gate
from holdfast.mcp.project_resolution import AFAR, Started
from holdfast.mcp.project_resolution import Caller as Whose
from holdfast.server.problem import Problem, plain, where
from holdfast.server.route import READ, WRITE

if TYPE_CHECKING:
    from holdfast.access import Caller
    from holdfast.mcp.calls import Context
    from holdfast.server.body import Message, Receive
    from holdfast.server.gateway import Gateway
    from holdfast.server.logs import Logs
    from holdfast.server.request import Request

_METHODS = ("POST", "GET", "DELETE")  # those of the protocol: counts are by route, and nobody makes up one
_CALLER, _REQUEST = "holdfast.caller", "holdfast.request"


def is_at(path: str) -> bool:
    return path == http.PATH


def must_be_a_call(request: Request) -> None:
    """No session is kept between calls, so there is no stream to open and nothing to end."""
    request.route = f"{request.method} {http.PATH}" if request.method in _METHODS else ""
    if request.method != "POST":
        raise Problem("wrong_method", "this path knows POST", "Use POST; there is no stream beside it", {"allow": "POST"})


class Mounted:
    """The MCP server inside the gateway; what stands beside it (retention, the resident socket) stands beside both."""

    def __init__(self, gateway: Gateway, hosts: tuple[str, ...], origins: tuple[str, ...], logs: Logs) -> None:
        self._gateway, self._logs = gateway, logs
        gate = Gate(self._admit, self._shown, self._failed)
        names = tuple([name for host in hosts for name in (host, f"{host}:*")])
        pages = tuple([page for host in names for page in (f"http://{host}", f"https://{host}")])
        started = Started(gateway.home, settings=tuple(gateway.given.items()))
        self._app = http.app(started, hosts=names, origins=(*pages, *origins), gate=gate)

    def life(self) -> AbstractAsyncContextManager[Any]:
        return self._app.router.lifespan_context(self._app)

    async def __call__(self, request: Request, caller: Caller, data: bytes, receive: Receive, send: Any) -> None:
        """One call, whose body was read already within our own limits."""
        unread = [{"type": "http.request", "body": data, "more_body": False}]

        async def rest() -> Message:
            return unread.pop() if unread else await receive()

        await self._app({**request.scope, _CALLER: caller, _REQUEST: request.id}, rest, send)

    def _shown(self, said: str) -> str:
        return plain(said, self._gateway.home)

    def _failed(self, error: Exception) -> None:
        self._logs.say("error", event="mcp", trouble=[type(error).__name__, *where(error)])

    def _admit(self, ctx: Context, tool: str, writes: bool, scope: str | None, arguments: dict[str, Any]) -> Whose:
        """Who calls, once the porter has decided. A folder of the caller's means nothing here: it is elsewhere."""
        request = ctx.request
        assert request is not None
        caller, id = request.scope[_CALLER], request.scope[_REQUEST]
        gate = self._gateway.gate
        gate.allow(caller, WRITE if writes else READ, scope, route=f"MCP {tool}", request=id)
        if arguments.pop("folder", None) is not None:
            raise UsageError("a folder means nothing to a gateway", "Pass `project` with the project's id")
        project = arguments.pop("project", None) or request.headers.get("x-holdfast-project")
        session, role = request.headers.get("x-holdfast-session"), gate.role(caller.role)
        return Whose(
            AFAR, project or None, None, session or None, caller.agent, "mcp",
            role.scopes, caller.tenant if self._gateway.config().store else None, bool(denial_reason(role, WRITE, None)),
        )  # fmt: skip
