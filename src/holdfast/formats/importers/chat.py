"""Plain chats: messages in the shape of OpenAI's API, one a line, one list a line, or one document.

A message has `role` and `content` (or `text`; a string or parts), and if it likes `name` or `speaker`, `id`, a time and a
session. An assistant's `tool_calls` and the answers with `tool_call_id` are kept as a tool's. A line with `messages` is
a session of its own.
"""

from __future__ import annotations

from holdfast.formats.importers.message_parts import Tools, make_line, message_text, only_dicts
from holdfast.formats.transcript import parse_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.formats.importers.json_source import Row
    from holdfast.formats.transcript import TranscriptLine

CLIENT = "chat"
_TIMES = ("time", "timestamp", "created_at", "created", "create_time", "date")
_SESSIONS = ("session", "session_id", "sessionId", "conversation_id", "thread_id")


def knows(row: dict[str, Any]) -> bool:
    if isinstance(row.get("messages"), list):
        return True
    return ("role" in row or "speaker" in row) and ("content" in row or "text" in row)


def turns(rows: Iterator[Row], stem: str) -> Iterator[TranscriptLine]:
    """Every turn of the file."""
    tools = Tools()
    around: object = None
    for row in rows:
        if isinstance(row.value.get("messages"), list):
            session = _first(row.value, (*_SESSIONS, "id")) or f"{stem}-{row.number}"
            for message in only_dicts(row.value["messages"]):
                yield from message_turns(message, session, tools)
        elif row.number == 0:
            around = _first(row.value, (*_SESSIONS, "id"))
        else:
            yield from message_turns(row.value, _first(row.value, _SESSIONS) or around, tools)


def message_turns(message: dict[str, Any], session: object, tools: Tools) -> Iterator[TranscriptLine]:
    """The turns of one message: its words, and the tools it calls."""
    name = message.get("speaker") or message.get("name")
    role = parse_role(message.get("role"), name if isinstance(name, str) else None)
    content = message.get("content") or message.get("text")
    time = _first(message, _TIMES)
    if role == "tool" and isinstance(message.get("tool_call_id"), str):
        yield from tools.result(message["tool_call_id"], content, time, session)
    elif role is not None and (words := message_text(content)):
        yield make_line(role, words, message.get("id") or message.get("uuid"), time, name, session)
    yield from calls(message, session, tools)


def calls(message: dict[str, Any], session: object, tools: Tools) -> Iterator[TranscriptLine]:
    """What a message asks of tools."""
    time = _first(message, _TIMES)
    for call in only_dicts(message.get("tool_calls")):
        function = call.get("function")
        if isinstance(function, dict):
            yield from tools.call(call.get("id"), function.get("name"), function.get("arguments"), time, session)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> object:
    return next((fields[name] for name in names if fields.get(name)), None)
