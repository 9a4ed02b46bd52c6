"""One call from its arguments to its answer: who calls, for which project, the verb, and what went wrong in words."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast.errors import HoldfastError, NoScope
from holdfast.mcp import markdown
from holdfast.mcp import project_resolution as who
from holdfast.mcp.arguments import checked
from holdfast.mcp.handlers import scope_of, sound, writes
from holdfast.mcp.memories import Memories
from holdfast.mcp.project_resolution import Caller, Started
from holdfast.mcp.tools import Tool
from holdfast.verbs.brief import render

PROJECT = "holdfast/project"  # the field of `_meta` that says which project was used
T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
Admit = Callable[[Context, str, bool, str | None, dict[str, Any]], Caller]  # tool, whether it writes, scope, arguments


class Gate(Record):
    """Where callers have tokens: who calls and whether they may, what of a message they are shown, who hears of failures."""

    admit: Admit
    shown: Callable[[str], str]
    failed: Callable[[Exception], object]


_AT_ONCE = 16  # calls that run at a time; the others wait, and reading on never does
_ROOTS_SECONDS = 5.0  # a client that says it has roots and does not tell them holds up one call, once
_CONNECTIONS = 256


class Calls:
    """Runs verbs for whoever is connected; where callers have tokens, the gate says who that is and whether they may."""

    def __init__(self, started: Started, gate: Gate | None = None) -> None:
        self.started = started
        self._gate = gate
        self._admit = gate.admit if gate else None
        self.memories = Memories(started.home, started.surroundings, started.url, started.token, started.settings)
        self._roots: OrderedDict[int, tuple[object, str]] = OrderedDict()
        self._changes = 0  # how often any client has said that its roots have changed
        self._limit: anyio.CapacityLimiter | None = None

    async def tool(self, tool: Tool, given: object, ctx: Context) -> dict[str, Any]:
        """The answer to a call; what is refused or fails comes back as an error that says what to do."""
        caller = None
        try:
            arguments = checked(tool.input_schema, given)
            caller = await self._of_tool(tool, arguments, ctx)
            _must_have_project(caller, scope_of(tool.name, arguments))
            answer = await self.run(caller, lambda memory: _answered(caller, memory, tool, arguments))
        except HoldfastError as error:
            return _failed(self.shown(error), caller)
        except Exception as error:
            return _failed(self._unforeseen(error), caller)
        return answer

    def shown(self, error: HoldfastError) -> str:
        """What went wrong, as whoever calls may read it."""
        return self._gate.shown(str(error)) if self._gate else str(error)

    def _unforeseen(self, error: Exception) -> str:
        """Said in one line to the agent; where the user's own machine runs this, in full to whoever reads our stderr."""
        said = f"Memory could not do this ({type(error).__name__}). Go on without it, and tell the user"
        if self._gate:
            self._gate.failed(error)
            return said
        import traceback

        sys.stderr.write(sound("".join(traceback.format_exception(error))))  # a terminal may be behind it
        return f"{said} to run `holdfast doctor`"

    async def _of_tool(self, tool: Tool, arguments: dict[str, Any], ctx: Context) -> Caller:
        admit, scope = self._admit, scope_of(tool.name, arguments)
        if admit is None:
            return await self.caller(ctx, *await self._aside(lambda: who.named(arguments)))
        return await self._aside(lambda: admit(ctx, tool.name, writes(tool.name, arguments), scope, arguments))

    async def run(self, caller: Caller, verb: Callable[[Memory], T]) -> T:
        """Do it in a thread of its own, on the caller's memory."""

        def work() -> T:
            with self.memories.lend(caller) as memory:
                return verb(memory)

        return await self._aside(work)

    async def _aside(self, work: Callable[[], T]) -> T:
        """Whatever touches files: in a thread, so that nobody else waits for a slow disk."""
        if self._limit is None:
            self._limit = anyio.CapacityLimiter(_AT_ONCE)
        return await anyio.to_thread.run_sync(work, limiter=self._limit)

    async def caller(self, ctx: Context, found_by: str = "", project: str | None = None, folder: str | None = None) -> Caller:
        """Who calls; a project or folder that the call names itself comes first."""
        if (admit := self._admit) is not None:
            return await self._aside(lambda: admit(ctx, ctx.method, False, None, {}))
        params = ctx.session.client_params
        client = who.client_name(self.started, params.client_info.name if params else None)
        meta = (ctx.params or {}).get("_meta")
        sent, session, told, their_session = await self._aside(lambda: self._told(client, meta))
        if project is None and folder is None:
            found_by, project, folder = await self._found(ctx, sent, told)
        named = who.session_id(self.started.session, session, their_session)
        return Caller(found_by, project, folder, named, self.started.agent, client)

    def _told(self, client: str | None, meta: object) -> tuple[str, str, str, str]:
        """Folder and session as the client sends them along, and as its variables name them."""
        told = who.of_surroundings(client) if self.started.surroundings else ("", "")
        return (*who.sent_along(meta), *told)

    async def _found(self, ctx: Context, sent: str, told: str) -> tuple[str, str | None, str | None]:
        set_ = self.started.project or (await self._aside(self.memories.config)).project
        if set_:
            return "setting", set_, None
        if sent:
            return "call metadata", None, sent
        if root := await self._root(ctx):
            return "roots", None, root
        if told:
            return "environment", None, told
        if self.started.surroundings and (here := await self._aside(who.of_working_folder)):
            return "working directory", None, here
        return "nothing", None, None

    async def _root(self, ctx: Context) -> str:
        """The client's first root; asked once a connection, and again when it says that they have changed."""
        params = ctx.session.client_params
        if params is None or params.capabilities.roots is None or not ctx.session.can_send_request:
            return ""
        if id(params) in self._roots:
            return self._roots[id(params)][1]
        changes = self._changes
        root = await self._asked(ctx)
        if changes == self._changes:  # else it may be the one from before, and the next call asks again
            self._roots[id(params)] = (params, root)
            while len(self._roots) > _CONNECTIONS:
                self._roots.popitem(last=False)
        return root

    async def _asked(self, ctx: Context) -> str:
        beside = ServerMessageMetadata(related_request_id=ctx.request_id)
        try:
            told = await ctx.session.send_request(
                types.ListRootsRequest(), types.ListRootsResult, _ROOTS_SECONDS, metadata=beside
            )
        except (MCPError, ValueError):  # none, or none that can be understood
            return ""
        return await self._aside(lambda: who.of_roots([str(root.uri) for root in told.roots]))

    def roots_changed(self, ctx: Context) -> None:
        self._changes += 1
        self._roots.pop(id(ctx.session.client_params), None)


def project_of(caller: Caller, memory: Memory) -> dict[str, Any]:
    """Which project was used, and how it was found."""
    if caller.is_lost:
        return {"found_by": "nothing tells which project this is", "fix": caller.fix}
    id = memory.project if memory.config.enabled else caller.project  # switched off, nothing is looked up
    known = {"id": id, "folder": caller.folder}
    return {"found_by": caller.found_by, **{name: value for name, value in known.items() if value}}


def _answered(caller: Caller, memory: Memory, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a tool; its result is one text for the model. Programs find the project in `_meta`."""
    answer = sound(tool.verb(memory, arguments))
    used = sound(project_of(caller, memory))
    text = "\n".join([*tool.show(answer), markdown.project(used)])
    return {"content": [{"type": "text", "text": text}], "_meta": {PROJECT: used}}


def _must_have_project(caller: Caller, scope: str | None) -> None:
    if scope == "project" and caller.is_lost:
        raise NoScope("no project is known, and nothing falls into another scope", caller.fix)


def _failed(message: str, caller: Caller | None) -> dict[str, Any]:
    used = ""
    if caller is not None and not caller.is_lost:
        used = f" (Project: {caller.project or caller.folder}, found by {caller.found_by}.)"
    told = render.safe(sound(" ".join(f"{message.rstrip('.')}.{used}".split("\n"))))  # it may quote what somebody wrote
    return {"content": [{"type": "text", "text": told}], "isError": True}
