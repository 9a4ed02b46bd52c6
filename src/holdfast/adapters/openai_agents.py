"""OpenAI Agents SDK: a session whose items are files of a scope, tools, and instructions with a briefing.

A session is a folder of segments, which are files of JSON lines. The newest item is the first line of the last segment: an
insert at the start of a file needs no knowledge of its length, so processes can add items at the same time.
"""

from __future__ import annotations

from holdfast.adapters import require

require("openai-agents")

import asyncio
import json
import logging
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from agents import Agent, FunctionTool, RunContextWrapper, SessionSettings, TResponseInputItem, function_tool

from holdfast import Conflict, Contended, Memory, NotFound, UsageError
from holdfast.adapters.secrets import cannot_mask, check_strings
from holdfast.adapters.tools import check_memory, compose_briefing, in_thread, make_tools
from holdfast.safety.validate import redact

CLIENT = "openai-agents"  # recorded as the program that wrote, and the folder of the sessions
_SEGMENT_BYTES = 64 * 1024  # of a segment to which no more items are added: each addition writes the file again
_ATTEMPTS = 100  # of a change while other processes change the session
_MAX_PAUSE = 0.02  # seconds, between attempts
_PLAIN_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BARE_MARK = re.compile(r"(?<=[:,\[] )\[REDACTED:[\w,-]+\]")  # of a secret that was masked together with its quotes
_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class HoldfastSession:
    """The conversation of one session id, for `Runner.run(..., session=...)`.

    Items are stored as they are, and every search can find them. With `redact` the names of rules replace secrets; without it
    an item with a secret is rejected, and the run ends with that error.
    """

    def __init__(
        self, session_id: str, memory: Memory | None = None, *, scope: str = "project", redact: bool = True,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(session_id, str) or not session_id.strip():
            raise UsageError("session_id must be a text that is not empty", 'Pass an id such as "user_123"')
        self.session_id = session_id
        self.session_settings = SessionSettings(**session_settings) if isinstance(session_settings, dict) else session_settings
        self.memory = check_memory(memory, CLIENT)
        self.scope = scope
        self.redact = redact
        self._folder = session_folder(session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest items, oldest first: all, or as many as the limit or the settings say."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await asyncio.to_thread(self._read_items, limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end, all of them or none. They are durable when this returns."""
        if items:
            await _finish(self._add_items, list(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it; None if there is none."""
        return await _finish(self._pop_item)

    async def clear_session(self) -> None:
        """Delete the items of this session."""
        await _finish(self._clear)

    # --- in a worker thread -------------------------------------------------------------------------------------------

    def _read_items(self, limit: int | None) -> list[TResponseInputItem]:
        newest: list[TResponseInputItem] = []
        if limit == 0:
            return newest
        for name in reversed(self._list_segments()):
            newest += parse_lines(self._read_segment(name))
            if limit is not None and 0 < limit <= len(newest):
                del newest[limit:]
                break
        return newest[::-1]

    def _add_items(self, items: list[TResponseInputItem]) -> None:
        text = render_lines(items, self.redact)
        for _ in _attempts():
            names = self._list_segments()
            last = names[-1] if names else ""
            if not last or len(self._read_segment(last)) + len(text) > _SEGMENT_BYTES:
                number = int(last.partition("-")[0] or 0) + 1  # two processes may choose the same number: the names differ
                self.memory.files.create(
                    f"{self._folder}/{number:08}-{uuid4().hex[:12]}.jsonl", text, scope=self.scope, redact=self.redact
                )
                return
            try:
                self.memory.files.insert(f"{self._folder}/{last}", 0, text, scope=self.scope, redact=self.redact)
                return
            except (Conflict, NotFound):
                continue

    def _pop_item(self) -> TResponseInputItem | None:
        for _ in _attempts():
            newest = self._find_newest()
            if newest is None:
                return None
            name, line, item = newest
            try:
                # a segment that becomes empty stays: another process may be adding to it
                self.memory.files.str_replace(f"{self._folder}/{name}", line, "", scope=self.scope, redact=self.redact)
                return item
            except (Conflict, NotFound):
                continue
        return None

    def _find_newest(self) -> tuple[str, str, TResponseInputItem] | None:
        """Return the segment, the line and the value of the newest item."""
        for name in reversed(self._list_segments()):
            for line in self._read_segment(name).split("\n"):
                item = _parse_line(line)
                if item is not None:
                    return name, line, item
        return None

    def _clear(self) -> None:
        for _ in _attempts():
            try:
                self.memory.files.delete(self._folder, scope=self.scope)
            except NotFound:
                return
            except Conflict:
                continue

    def _list_segments(self) -> list[str]:
        try:
            names = self.memory.files.view(self._folder, scope=self.scope).split("\n")
        except NotFound:
            return []
        return sorted(name for name in names if name[:8].isdecimal() and name.endswith(".jsonl"))

    def _read_segment(self, name: str) -> str:
        try:
            return self.memory.files.view(f"{self._folder}/{name}", scope=self.scope)
        except NotFound:  # cleared since it was listed
            return ""


def memory_tools(memory: Memory | None = None, scope: str = "project") -> list[FunctionTool]:
    """Return the tools memory_recall, memory_get, memory_store, memory_fact and memory_forget; the last three write to this
    scope."""
    return [function_tool(in_thread(tool)) for tool in make_tools(check_memory(memory, CLIENT), scope)]


def with_briefing(memory: Memory | None = None, instructions: str = "") -> Callable[..., Any]:
    """Return a function for `Agent(instructions=...)`: the instructions, and what an agent is shown when it starts."""
    opened = check_memory(memory, CLIENT)

    async def compose(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        briefing = await asyncio.to_thread(compose_briefing, opened)
        return "\n\n".join(part for part in (instructions, briefing) if part)

    return compose


def session_folder(session_id: str) -> str:
    """Return the folder of a session: its id, or the letters and digits of it with a digest that no other id has."""
    if _PLAIN_ID.fullmatch(session_id):
        return f"/memories/{CLIENT}/{session_id}"
    words = re.sub(r"[^a-z0-9]+", "-", session_id.lower()).strip("-")[:40].strip("-") or "session"
    return f"/memories/{CLIENT}/{words}.{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def render_lines(items: Sequence[TResponseInputItem], mask: bool = False) -> str:
    """Return items as lines, the last first, with or without their secrets. The id makes each line unique, so that one of two
    equal items can be removed."""
    lines = []
    for item in reversed(items):
        try:
            json.dumps(item, allow_nan=False)  # rejects what may have no end
            line = json.dumps({"id": uuid4().hex[:12], "item": check_strings(item, mask)}, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"an item is not JSON: {error}", "Pass items as `result.to_input_list()` returns them") from None
        lines.append(_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", line) + "\n")
    text = "".join(lines)
    if mask and len(list(parse_lines(redact(text)[0]))) != len(lines):
        raise cannot_mask()
    return text


def parse_lines(text: str) -> Iterator[TResponseInputItem]:
    """Yield the items of lines. A line that is not an item, because of an edit or a purge, is left out and logged."""
    for line in text.split("\n"):
        item = _parse_line(line)
        if item is not None:
            yield item
        elif line.strip():
            _log.warning("a line of a session is not an item and was left out")


def _parse_line(line: str) -> TResponseInputItem | None:
    item = None
    for text in (line, _BARE_MARK.sub(r'"\g<0>"', line)):
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            continue
        item = fields.get("item") if isinstance(fields, dict) else None
        break
    return item if isinstance(item, dict) else None


def _attempts() -> Iterator[int]:
    """Yield the numbers of attempts with short pauses; raise Contended after the last."""
    for number in range(_ATTEMPTS):
        if number:
            time.sleep(random.uniform(0, _MAX_PAUSE))
        yield number
    raise Contended("other processes kept changing the session", "Try again")


async def _finish(change: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a change in a worker thread and wait for its end, even if the caller is cancelled."""
    task = asyncio.ensure_future(asyncio.to_thread(change, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
