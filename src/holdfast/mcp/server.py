"""The server: which method of the protocol leads to what. The same for stdio and HTTP."""

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
from holdfast.mcp.background import Alongside
from holdfast.mcp.calls import PROJECT, Calls, Context, Gate, project_of
from holdfast.mcp.early_handshake import SERVER, STATIC
from holdfast.mcp.guidance import instructions
from holdfast.mcp.handlers import sound
from holdfast.mcp.project_resolution import Caller, Started
from holdfast.mcp.tools import BY_NAME
from holdfast.safety.escape import safe

T = TypeVar("T", bound=types.Result)
_LISTS: dict[str, type[types.Result]] = {
    "tools/list": types.ListToolsResult,
    "prompts/list": types.ListPromptsResult,
    "resources/templates/list": types.ListResourceTemplatesResult,
}


def build(started: Started, gate: Gate | None = None) -> Server[Any]:
    """A server that answers for one home; the gate lets callers in, where they have tokens."""
    rooms = _Rooms(Calls(started, gate))
    server: Server[Any] = Server(
        SERVER["name"], version=SERVER["version"], title=SERVER["title"], instructions=instructions(), lifespan=rooms.life
    )
    listing = types.PaginatedRequestParams
    for method, said in STATIC.items():
        server.add_request_handler(method, listing, _always(said, _LISTS[method]))
    server.add_request_handler("tools/call", types.CallToolRequestParams, rooms.call_tool)
    server.add_request_handler("resources/list", listing, rooms.list_resources)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, rooms.read_resource)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, rooms.get_prompt)
    server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, rooms.roots_changed)
    return server


def _always(said: Callable[[], dict[str, Any]], shape: type[T]) -> Callable[[Context, Any], Awaitable[T]]:
    """Answers the same to everybody."""

    async def answer(ctx: Context, params: Any) -> T:
        return shape.model_validate(said())

    return answer


class _Rooms:
    """What is behind each method."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._alongside = Alongside(calls.memories)

    @asynccontextmanager
    async def life(self, _: Server[Any]) -> AsyncIterator[None]:
        """What stands beside the calls, from the first to the last of them."""
        self._alongside.begin()
        try:
            yield
        finally:
            self._alongside.end()
            self._calls.memories.close()

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            known = ", ".join(BY_NAME)
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {safe(params.name[:80])}. Known: {known}")
        answer = await self._calls.tool(tool, params.arguments or {}, ctx)
        if tool.writes:
            self._alongside.begin()  # the home may only have been made by this
        return types.CallToolResult.model_validate(answer)

    async def list_resources(self, ctx: Context, params: types.PaginatedRequestParams) -> types.ListResourcesResult:
        return await self._asked(ctx, types.ListResourcesResult, lambda memory, _: {"resources": resources.listed(memory)})

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri, version = str(params.uri), ctx.protocol_version
        return await self._asked(ctx, types.ReadResourceResult, lambda memory, _: resources.read(memory, uri, version))

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        ask = functools.partial(resources.prompt, name=params.name, given=params.arguments or {})
        return await self._asked(ctx, types.GetPromptResult, ask)

    async def roots_changed(self, ctx: Context, params: types.NotificationParams) -> None:
        self._calls.roots_changed(ctx)

    async def _asked(self, ctx: Context, shape: type[T], verb: Callable[[Memory, Caller], dict[str, Any]]) -> T:
        """An answer of the caller's memory, with the project that it is about."""
        try:
            caller = await self._calls.caller(ctx)
            answer, project = await self._calls.run(caller, lambda memory: (verb(memory, caller), project_of(caller, memory)))
        except HoldfastError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=safe(self._calls.shown(error))) from None
        return shape.model_validate({**answer, "_meta": {PROJECT: sound(project)}})
