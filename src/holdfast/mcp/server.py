"""The MCP server: a handler for each method of the protocol, the same for stdio and HTTP."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from holdfast.api.memory import Memory
from holdfast.errors import HoldfastError
from holdfast.mcp import resources
from holdfast.mcp.background import BackgroundWork
from holdfast.mcp.calls import PROJECT, AccessControl, Calls, Context, describe_project
from holdfast.mcp.early_handshake import SERVER, STATIC_RESULTS
from holdfast.mcp.guidance import instructions
from holdfast.mcp.project_resolution import Caller, LaunchOptions
from holdfast.mcp.tools import BY_NAME, TOOLS
from holdfast.safety.escape import escape_text
from holdfast.safety.model_text import show_hidden

T = TypeVar("T", bound=types.Result)
_LISTS: dict[str, type[types.Result]] = {
    "tools/list": types.ListToolsResult,
    "prompts/list": types.ListPromptsResult,
    "resources/templates/list": types.ListResourceTemplatesResult,
}


def build_server(started: LaunchOptions, gate: AccessControl | None = None) -> Server[Any]:
    """Return a server for one home; the gate checks callers, where they have tokens."""
    handlers = _RequestHandlers(Calls(started, gate))
    server: Server[Any] = Server(
        SERVER["name"],
        version=SERVER["version"],
        title=SERVER["title"],
        instructions=instructions(at_gateway=gate is not None),
        lifespan=handlers.lifespan,
    )
    listing = types.PaginatedRequestParams
    for method, result in STATIC_RESULTS.items():
        server.add_request_handler(method, listing, _static_handler(result, _LISTS[method]))
    if gate is not None:
        tools = {"tools": [tool.as_shown(at_gateway=True) for tool in TOOLS]}
        server.add_request_handler("tools/list", listing, _static_handler(lambda: tools, types.ListToolsResult))
    server.add_request_handler("tools/call", types.CallToolRequestParams, handlers.call_tool)
    server.add_request_handler("resources/list", listing, handlers.list_resources)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, handlers.read_resource)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, handlers.get_prompt)
    server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, handlers.roots_changed)
    return server


def _static_handler(result: Callable[[], dict[str, Any]], shape: type[T]) -> Callable[[Context, Any], Awaitable[T]]:
    """Return a handler with the same result for every caller."""

    async def answer(ctx: Context, params: Any) -> T:
        return shape.model_validate(result())

    return answer


class _RequestHandlers:
    """The handlers of the methods that need a memory."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._background = BackgroundWork(calls.memories)

    @asynccontextmanager
    async def lifespan(self, _: Server[Any]) -> AsyncIterator[None]:
        """Run background work from the first call to the last, and close the memories at the end."""
        self._background.start()
        try:
            yield
        finally:
            self._background.stop()
            self._calls.memories.close()

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            known = ", ".join(BY_NAME)
            raise MCPError(
                code=types.INVALID_PARAMS, message=f"Unknown tool: {escape_text(params.name[:80])}. Use one of: {known}"
            )
        answer = await self._calls.tool(tool, params.arguments or {}, ctx)
        if tool.writes:
            self._background.start()  # this call may have created the home
        return types.CallToolResult.model_validate(answer)

    async def list_resources(self, ctx: Context, params: types.PaginatedRequestParams) -> types.ListResourcesResult:
        return await self._answer(
            ctx, types.ListResourcesResult, lambda memory, _: {"resources": resources.list_resources(memory)}
        )

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri, version = str(params.uri), ctx.protocol_version
        return await self._answer(
            ctx, types.ReadResourceResult, lambda memory, _: resources.read_resource(memory, uri, version)
        )

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        ask = functools.partial(resources.get_prompt, name=params.name, given=params.arguments or {})
        return await self._answer(ctx, types.GetPromptResult, ask)

    async def roots_changed(self, ctx: Context, params: types.NotificationParams) -> None:
        self._calls.roots_changed(ctx)

    async def _answer(self, ctx: Context, shape: type[T], verb: Callable[[Memory, Caller], dict[str, Any]]) -> T:
        """Return an answer from the caller's memory, with the project in `_meta`."""
        try:
            caller = await self._calls.caller(ctx)
            answer, project = await self._calls.run(
                caller, lambda memory: (verb(memory, caller), describe_project(caller, memory))
            )
        except HoldfastError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=escape_text(self._calls.shown(error))) from None
        return shape.model_validate({**answer, "_meta": {PROJECT: show_hidden(project)}})
