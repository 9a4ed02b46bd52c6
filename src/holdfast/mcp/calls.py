"""Run one call: find the caller and its project, check the arguments, run the verb, and turn a failure into an answer."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from holdfast import config
from holdfast.api.memory import Memory
from holdfast.api.memory_cache import MemoryCache
from holdfast.base.record import Record
from holdfast.config import Config, check_gateway_url
from holdfast.errors import HoldfastError, NoScope, Template, UsageError, default_words
from holdfast.mcp import markdown, project_resolution
from holdfast.mcp.handlers import scope_of, writes
from holdfast.mcp.project_resolution import Caller, LaunchOptions
from holdfast.mcp.tools import Tool
from holdfast.safety.escape import escape_text
from holdfast.safety.model_text import show_hidden
from holdfast.safety.validate import resolve_aliases

if TYPE_CHECKING:
    from holdfast.errors import Wording

PROJECT = "holdfast/project"  # the field of `_meta` that says which project was used
T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
Admit = Callable[[Context, str, bool, str | None, dict[str, Any]], Caller]  # tool, whether it writes, scope, arguments
_MAX_CONCURRENT_CALLS = 16  # further calls wait; reading from the client does not
_ROOTS_SECONDS = 5.0  # a client that declares roots and does not send them delays one call, once
_MAX_CACHED_ROOTS = 256
_OPEN_MEMORIES = 16
_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list}
_TYPE_NAMES = {"string": "a string", "integer": "a whole number", "boolean": "true or false", "array": "a list"}


class AccessControl(Record):
    """Access control, where callers have tokens: `admit` finds and checks the caller, `redact` removes from a message what the
    caller may not read, `report_error` records an unexpected error, `words` names what a caller without a shell can do."""

    admit: Admit
    redact: Callable[[str], str]
    report_error: Callable[[Exception], object]
    words: Wording


class Calls:
    """Runs verbs for the connected clients."""

    def __init__(self, started: LaunchOptions, gate: AccessControl | None = None) -> None:
        self.started = started
        self._gate = gate
        self._admit = gate.admit if gate else None
        self._words: Wording = gate.words if gate else default_words
        self.memories = Memories(started, self._words)
        self._roots: OrderedDict[int, tuple[object, str]] = OrderedDict()
        self._root_changes = 0  # how often any client has said that its roots have changed
        self._limit: anyio.CapacityLimiter | None = None

    async def tool(self, tool: Tool, given: object, ctx: Context) -> dict[str, Any]:
        """Return the result of a tool call; an error becomes a result with its fix."""
        caller = None
        try:
            arguments = check_arguments(tool.input_schema, given)
            caller = await self._tool_caller(tool, arguments, ctx)
            _require_project(caller, scope_of(tool.name, arguments))
            answer = await self.run(caller, lambda memory: _run_tool(caller, memory, tool, arguments, self._redact))
        except HoldfastError as error:
            return _error_result(self.shown(error), caller)
        except Exception as error:
            return _error_result(self._report_unexpected(error), caller)
        return answer

    def _redact(self, text: str) -> str:
        return self._gate.redact(text) if self._gate else text

    def shown(self, error: HoldfastError) -> str:
        """Return the message of an error as the caller may read it."""
        message, fix = error.whole().render(self._words), Template(error.hint).render(self._words)
        text = f"{message}. {fix}" if fix else message
        return self._redact(text)

    def _report_unexpected(self, error: Exception) -> str:
        """Report an unexpected error, on the user's own machine to stderr, and return one line for the agent."""
        message = f"Memory failed ({type(error).__name__}). Continue without it, and tell the user"
        if self._gate:
            self._gate.report_error(error)
            return message
        import traceback

        sys.stderr.write(show_hidden("".join(traceback.format_exception(error))))  # stderr may be a terminal
        return f"{message} to run `holdfast doctor`"

    async def _tool_caller(self, tool: Tool, arguments: dict[str, Any], ctx: Context) -> Caller:
        admit, scope = self._admit, scope_of(tool.name, arguments)
        if admit is None:
            return await self.caller(ctx, *await self._run_in_thread(lambda: project_resolution.pop_arguments(arguments)))
        is_write = writes(tool.name, arguments)
        return await self._run_in_thread(lambda: admit(ctx, tool.name, is_write, scope, arguments))

    async def run(self, caller: Caller, verb: Callable[[Memory], T]) -> T:
        """Run a verb on the caller's memory, in a thread."""

        def work() -> T:
            with self.memories.lend(caller) as memory:
                return verb(memory)

        return await self._run_in_thread(work)

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run work that reads files in a thread, so that a slow disk delays no other call."""
        if self._limit is None:
            self._limit = anyio.CapacityLimiter(_MAX_CONCURRENT_CALLS)
        return await anyio.to_thread.run_sync(work, limiter=self._limit)

    # --- the caller and its project ------------------------------------------------------------------------------

    async def caller(self, ctx: Context, found_by: str = "", project: str | None = None, folder: str | None = None) -> Caller:
        """Return the caller; a project or folder that the call names comes first."""
        if (admit := self._admit) is not None:
            return await self._run_in_thread(lambda: admit(ctx, ctx.method, False, None, {}))
        params = ctx.session.client_params
        client = project_resolution.client_name(self.started, params.client_info.name if params else None)
        meta = (ctx.params or {}).get("_meta")
        sent, environment = await self._run_in_thread(lambda: self._client_hints(client, meta))
        if project is None and folder is None:
            found_by, project, folder = await self._find_project(ctx, sent.folder, environment.folder)
        session = project_resolution.first_session_id(self.started.session, sent.session, environment.session)
        return Caller(
            found_by=found_by, project=project, folder=folder, session=session, agent=self.started.agent, client=client
        )

    def _client_hints(self, client: str | None, meta: object) -> tuple[project_resolution.Hints, project_resolution.Hints]:
        """Return the folder and session that the client sends with the call, and those of its environment variables."""
        no_hints = project_resolution.Hints("", "")
        environment = project_resolution.from_environment(client) if self.started.surroundings else no_hints
        return project_resolution.from_call_metadata(meta), environment

    async def _find_project(self, ctx: Context, sent: str, environment: str) -> tuple[str, str | None, str | None]:
        """Return how the project was found, its id and its folder; the module project_resolution says in which order."""
        set_ = self.started.project or (await self._run_in_thread(self.memories.config)).project
        if set_:
            return "setting", set_, None
        if sent:
            return "call metadata", None, sent
        if root := await self._client_root(ctx):
            return "roots", None, root
        if environment:
            return "environment", None, environment
        if self.started.surroundings and (here := await self._run_in_thread(project_resolution.from_working_folder)):
            return "working directory", None, here
        return "nothing", None, None

    async def _client_root(self, ctx: Context) -> str:
        """Return the client's first root; it is asked once per connection, and again after a change."""
        params = ctx.session.client_params
        if params is None or params.capabilities.roots is None or not ctx.session.can_send_request:
            return ""
        if id(params) in self._roots:
            return self._roots[id(params)][1]
        changes = self._root_changes
        root = await self._ask_client_root(ctx)
        if changes == self._root_changes:  # otherwise the answer may be outdated, and the next call asks again
            self._roots[id(params)] = (params, root)
            while len(self._roots) > _MAX_CACHED_ROOTS:
                self._roots.popitem(last=False)
        return root

    async def _ask_client_root(self, ctx: Context) -> str:
        metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
        try:
            result = await ctx.session.send_request(
                types.ListRootsRequest(), types.ListRootsResult, _ROOTS_SECONDS, metadata=metadata
            )
        except (MCPError, ValueError):  # no answer, or an invalid one
            return ""
        return await self._run_in_thread(lambda: project_resolution.from_roots([str(root.uri) for root in result.roots]))

    def roots_changed(self, ctx: Context) -> None:
        """Ask the client for its roots again with the next call."""
        self._root_changes += 1
        self._roots.pop(id(ctx.session.client_params), None)


class Memories:
    """The open memories, one per caller."""

    def __init__(self, started: LaunchOptions, words: Wording = default_words) -> None:
        self._started, self._words = started, words
        self._cache = MemoryCache(_OPEN_MEMORIES)
        self._no_project = f"none-{os.urandom(8).hex()}"  # an id that no notes are stored under

    def config(self) -> Config:
        """Load the settings, which a person may change while this process runs. The caller's names in them count only if the
        client started this process, because then the environment is the client's."""
        started = self._started
        settings = config.load(started.home).replace(**dict(started.settings))
        if not started.surroundings:
            return settings.replace(project=None, session=None, agent=None, client=None, url=None)
        if started.url or started.token:
            return settings.replace(url=started.url or settings.url, token=started.token or settings.token)
        return settings

    @contextmanager
    def lend(self, caller: Caller) -> Iterator[Memory]:
        """Yield the caller's memory for one call."""
        settings, caller = self.config(), caller.replace(found_by="")
        with self._cache.lend((settings, caller), lambda: self._open(settings, caller)) as memory:
            yield memory

    def close(self) -> None:
        """Close all memories; one in use is closed when its call ends."""
        self._cache.clear()

    def _open(self, settings: Config, caller: Caller) -> Memory:
        project = self._no_project if caller.has_no_project else caller.project
        tenant = caller.tenant or settings.tenant
        settings = settings.replace(
            allowed_scopes=caller.allowed_scopes, tenant=tenant, read_only=caller.read_only, most_notes=caller.most_notes,
            most_bytes=caller.most_bytes,
        )  # fmt: skip
        if caller.folder:
            settings = settings.replace(project=None)  # a folder that is named comes before the setting
        if settings.url:  # at a gateway the token says which agent
            return Memory(
                check_gateway_url(settings.url), config=settings, project=project, session=caller.session,
                client=caller.client, cwd=caller.folder,
            )  # fmt: skip
        return Memory(
            config=settings, project=project, session=caller.session, agent=caller.agent, client=caller.client,
            cwd=caller.folder, words=self._words,
        )  # fmt: skip


# --- arguments ---------------------------------------------------------------------------------------------------------


def check_arguments(schema: dict[str, Any], given: object) -> dict[str, Any]:
    """Return the arguments without nulls; raise `UsageError` if the schema does not allow them."""
    if not isinstance(given, dict):
        raise UsageError("the arguments must be an object", f"Use: {', '.join(schema['properties'])}")
    arguments = {name: value for name, value in given.items() if value is not None}
    arguments = resolve_aliases(arguments, schema["properties"])
    for name, value in arguments.items():
        if name not in schema["properties"]:
            raise _unknown_argument(str(name), list(schema["properties"]))
        _check_value(name, schema["properties"][name], value)
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        fix = _description(schema["properties"][missing[0]]) or f"Add {' and '.join(missing)}"
        raise UsageError(f"missing: {', '.join(missing)}", fix)
    return arguments


def _unknown_argument(name: str, known: list[str]) -> UsageError:
    near = get_close_matches(name, known, 1)
    shown = ascii(name[:80])
    return UsageError(f"unknown argument {shown}", f"Did you mean {near[0]}?" if near else f"Use: {', '.join(known)}")


def _check_value(name: str, schema: dict[str, Any], value: object) -> None:
    kind = schema["type"]
    if kind == "array" and isinstance(value, str) and schema["items"]["type"] == "string":
        return  # a string with commas is accepted too
    if not isinstance(value, _TYPES[kind]) or (kind != "boolean" and isinstance(value, bool)):
        raise UsageError(
            f"{name} must be {_TYPE_NAMES[kind]}, not {type(value).__name__}",
            _description(schema) or f"Give {_TYPE_NAMES[kind]}",
        )
    if isinstance(value, list):
        for item in value:
            _check_value(f"each item of {name}", schema["items"], item)
    elif "enum" in schema and value not in schema["enum"]:
        raise UsageError(f"unknown {name} {str(value)[:80]!a}", f"Use one of: {', '.join(schema['enum'])}")
    elif isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise UsageError(f"{name} {value} is out of range", f"Use {schema['minimum']} to {schema.get('maximum', 'any number')}")


def _description(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).rstrip(".")


# --- results -----------------------------------------------------------------------------------------------------------


def describe_project(caller: Caller, memory: Memory) -> dict[str, Any]:
    """Return which project was used and how it was found."""
    if caller.has_no_project:
        return {"found_by": "no project is known", "fix": caller.fix}
    id = memory.project if memory.config.enabled else caller.project  # if memory is disabled, nothing is looked up
    known = {"id": id, "folder": caller.folder}
    return {"found_by": caller.found_by, **{name: value for name, value in known.items() if value}}


def _run_tool(
    caller: Caller, memory: Memory, tool: Tool, arguments: dict[str, Any], redact: Callable[[str], str]
) -> dict[str, Any]:
    """Run a tool and return one text for the model. Programs find the project in `_meta`."""
    answer = show_hidden(tool.verb(memory, arguments))
    if isinstance(answer, dict) and answer.get("reason"):
        answer["reason"] = redact(answer["reason"])
    project = show_hidden(describe_project(caller, memory))
    text = "\n".join([*tool.show(answer), markdown.format_project(project)])
    return {"content": [{"type": "text", "text": text}], "_meta": {PROJECT: project}}


def _require_project(caller: Caller, scope: str | None) -> None:
    if scope == "project" and caller.has_no_project:
        raise NoScope("no project is known", caller.fix)


def _error_result(message: str, caller: Caller | None) -> dict[str, Any]:
    project = ""
    if caller is not None and not caller.has_no_project:
        project = f" (Project: {caller.project or caller.folder}, found by {caller.found_by}.)"
    text = " ".join(f"{message.rstrip('.')}.{project}".split("\n"))
    escaped = escape_text(show_hidden(text))  # the message may quote stored text
    return {"content": [{"type": "text", "text": escaped}], "isError": True}
