"""Parse plain chats: messages in the format of OpenAI's API, one per line, one list per line, or one document.

A message has `role` and `content` (or `text`; a string or parts), and optionally `name` or `speaker`, `id`, a time and a
session. An assistant's `tool_calls` and the results with `tool_call_id` become turns of a tool. A line with `messages` is
a session of its own.
"""

from __future__ import annotations

from holdfast.formats.importers.message_parts import ToolCalls, filter_dicts, make_line, message_text
from holdfast.formats.transcript import parse_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.formats.importers.json_source import SourceRow
    from holdfast.formats.transcript import TranscriptLine

CLIENT = "chat"
_TIME_FIELDS = ("time", "timestamp", "created_at", "created", "create_time", "date")
_SESSION_FIELDS = ("session", "session_id", "sessionId", "conversation_id", "thread_id")


def matches(row: dict[str, Any]) -> bool:
    """Return whether an object is a message or a list of messages."""
    if isinstance(row.get("messages"), list):
        return True
    return ("role" in row or "speaker" in row) and ("content" in row or "text" in row)


def parse_turns(rows: Iterator[SourceRow], stem: str) -> Iterator[TranscriptLine]:
    """Yield every turn of a transcript."""
    tools = ToolCalls()
    document_session: object = None
    for row in rows:
        if isinstance(row.value.get("messages"), list):
            session = _first_value(row.value, (*_SESSION_FIELDS, "id")) or f"{stem}-{row.number}"
            for message in filter_dicts(row.value["messages"]):
                yield from parse_message(message, session, tools)
        elif row.number == 0:
            document_session = _first_value(row.value, (*_SESSION_FIELDS, "id"))
        else:
            yield from parse_message(row.value, _first_value(row.value, _SESSION_FIELDS) or document_session, tools)


def parse_message(message: dict[str, Any], session: object, tools: ToolCalls) -> Iterator[TranscriptLine]:
    """Yield the turns of one message: its text, and the tools it calls."""
    name = message.get("speaker") or message.get("name")
    role = parse_role(message.get("role"), name if isinstance(name, str) else None)
    content = message.get("content") or message.get("text")
    time = _first_value(message, _TIME_FIELDS)
    if role == "tool" and isinstance(message.get("tool_call_id"), str):
        yield from tools.make_result_lines(message["tool_call_id"], content, time=time, session=session)
    elif role is not None and (text := message_text(content)):
        id = message.get("id") or message.get("uuid")
        yield make_line(role, text, id=id, time=time, speaker=name, session=session)
    yield from parse_tool_calls(message, session, tools)


def parse_tool_calls(message: dict[str, Any], session: object, tools: ToolCalls) -> Iterator[TranscriptLine]:
    """Yield a turn for each tool call of a message."""
    time = _first_value(message, _TIME_FIELDS)
    for call in filter_dicts(message.get("tool_calls")):
        function = call.get("function")
        if isinstance(function, dict):
            yield from tools.make_call_lines(
                call.get("id"), function.get("name"), function.get("arguments"), time=time, session=session
            )


def _first_value(fields: dict[str, Any], names: tuple[str, ...]) -> object:
    return next((fields[name] for name in names if fields.get(name)), None)
