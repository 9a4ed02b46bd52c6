"""MCP on the same port and with the same tokens: the caller's agent and role decide there as on every route."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from holdfast.access import NamedResources
from holdfast.access.grants import reachable_scopes
from holdfast.access.policy import denial_reason
from holdfast.access.quota import find_quota
from holdfast.errors import UsageError
from holdfast.mcp import http
from holdfast.mcp.calls import AccessControl
from holdfast.mcp.project_resolution import FOUND_BY_GATEWAY, LaunchOptions
from holdfast.mcp.project_resolution import Caller as McpCaller
from holdfast.server.body import check_json_size
from holdfast.server.pipeline import record
from holdfast.server.problem import Problem, in_request, plain, where
from holdfast.server.route import READ, WRITE

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from holdfast.errors import Term
    from holdfast.mcp.calls import Context
    from holdfast.server.logs import Logs
    from holdfast.server.pipeline import Pipeline

PATH = http.PATH
_LOGGED_METHODS = ("POST", "GET", "DELETE")  # those of the protocol: metrics are by route, and callers cannot add any
TOOLS = {  # the MCP tool for a command or a phrase of a text; for others the caller may send a request with the same token
    "recall": "memory_recall",
    "recall a query": "memory_recall",
    "get a note": "memory_get",
    "get {} --history": "memory_history with the key {}",
}
_CALLER, _REQUEST_ID = "holdfast.caller", "holdfast.request_id"


def in_tools(term: Term) -> str:
    """Return the words for a term of a message where the caller has MCP tools and no shell."""
    return TOOLS[term.name].format(*term.args) if term.name in TOOLS else in_request(term)


class McpEndpoint:
    """Pass requests to the MCP server once their caller is known and their body is read within our limits."""

    def __init__(self, pipeline: Pipeline, hosts: tuple[str, ...], origins: tuple[str, ...], logs: Logs) -> None:
        self._pipeline, self._gateway, self._logs = pipeline, pipeline.gateway, logs
        gate = AccessControl(self._admit, self._redact, self._log_failure, in_tools)
        names = tuple([name for host in hosts for name in (host, f"{host}:*")])
        own_origins = tuple([origin for host in names for origin in (f"http://{host}", f"https://{host}")])
        started = LaunchOptions(self._gateway.home, settings=(*self._gateway.given.items(), ("by_token", True)))
        self._app = http.app(started, hosts=names, origins=(*own_origins, *origins), gate=gate)

    def lifespan(self) -> AbstractAsyncContextManager[Any]:
        return self._app.router.lifespan_context(self._app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        with ExitStack() as stack:
            caller = await self._pipeline.authenticate_early(request, stack)
            method = "GET" if request.method == "HEAD" else request.method
            record(request).route = f"{method} {PATH}" if method in _LOGGED_METHODS else ""
            if method != "POST":  # no session is kept between calls, so there is no stream to open or to end
                fix = "Use POST. There is no separate stream"
                raise Problem("wrong_method", "this path supports POST", fix, {"allow": "POST"})
            data = await self._pipeline.read_body(request)
            await self._pipeline.threads(lambda: check_json_size(data))
            unread = [{"type": "http.request", "body": data, "more_body": False}]

            async def receive_read() -> Message:
                return unread.pop() if unread else await receive()

            own_scope = {key: value for key, value in scope.items() if key not in ("app", "router", "path_params", "endpoint")}
            await self._app({**own_scope, _CALLER: caller, _REQUEST_ID: record(request).id}, receive_read, send)

    def _redact(self, text: str) -> str:
        return plain(text, self._gateway.home)

    def _log_failure(self, error: Exception) -> None:
        self._logs.log("error", event="mcp", trouble=[type(error).__name__, *where(error)])

    def _admit(self, ctx: Context, tool: str, writes: bool, scope: str | None, arguments: dict[str, Any]) -> McpCaller:
        """Return the caller once the gate has allowed the call. A folder is on the caller's machine and means nothing here."""
        request = ctx.request
        assert request is not None
        caller, id = request.scope[_CALLER], request.scope[_REQUEST_ID]
        gate = self._gateway.gate
        project = arguments.pop("project", None) or request.headers.get("x-holdfast-project") or None
        session = request.headers.get("x-holdfast-session") or None
        named = NamedResources(project=project, session=session)
        role = gate.allow(caller, WRITE if writes else READ, scope, named=named, route=f"MCP {tool}", request=id)
        if arguments.pop("folder", None) is not None:
            raise UsageError("a server cannot use a folder", "Pass `project` with the project's id")
        quota = find_quota(caller, role, self._gateway.config())
        return McpCaller(
            found_by=FOUND_BY_GATEWAY,
            project=project,
            session=session,
            agent=caller.agent,
            client="mcp",
            allowed_scopes=reachable_scopes(role, caller, project, session),
            tenant=caller.tenant if self._gateway.config().store else None,
            read_only=bool(denial_reason(role, WRITE, None)),
            most_notes=quota.notes or 0,
            most_bytes=quota.bytes or 0,
        )
