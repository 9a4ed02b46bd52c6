"""Parse transcripts of Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json` or `.jsonl`, and `logs.json` beside it.

A chat is one document (`sessionId`, `projectHash`, `messages`), or since 2026 JSON lines: a line with `sessionId` and
`projectHash`, then one message per line. A changed message is repeated with its id; `$set` changes properties of the chat, and
there is `$rewindTo`. A message has `id`, `timestamp`, `type` (`user`, `gemini`, `info`, ...), `content` (a string or parts) and
for `gemini` `toolCalls` (`id`, `name`, `args`, `result`, `status`). A log is a list of `sessionId`, `messageId`, `type`,
`message`: only what the user typed. A saved chat (`/chat save`) is a list of `role` and `parts`.
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

CLIENT = "gemini"
_UNFINISHED = ("validating", "scheduled", "executing", "awaiting_approval")


def matches(row: dict[str, Any]) -> bool:
    """Return whether this program writes objects like this one."""
    if isinstance(row.get("sessionId"), str):
        return "projectHash" in row or "messages" in row or "messageId" in row
    return "$set" in row or "$rewindTo" in row or (isinstance(row.get("parts"), list) and "role" in row)


def parse_turns(rows: Iterator[SourceRow], stem: str) -> Iterator[TranscriptLine]:
    """Yield every turn of a transcript."""
    tools = ToolCalls()
    session: object = None
    for row in rows:
        session = row.value.get("sessionId") or session
        for message in filter_dicts(row.value.get("messages")) or [row.value]:
            yield from _parse_message(message, session, tools)


def _parse_message(message: dict[str, Any], session: object, tools: ToolCalls) -> Iterator[TranscriptLine]:
    if "messageId" in message:
        id = f"log-{message['messageId']}"
        text = message_text(message.get("message"))
        yield make_line("user", text, id=id, time=message.get("timestamp"), session=session)
        return
    role = parse_role(message.get("type") or message.get("role") or "")
    if role is None:
        return
    time, parts = message.get("timestamp"), message.get("parts")
    text = message_text(message.get("content") or parts)
    if text:
        yield make_line(role, text, id=message.get("id"), time=time, session=session)
    for part in filter_dicts(parts):
        yield from _parse_saved_part(part, time, session, tools)
    for call in filter_dicts(message.get("toolCalls")):
        if call.get("status") not in _UNFINISHED:
            call_time = call.get("timestamp") or time
            yield from tools.make_call_lines(
                call.get("id"), call.get("name"), call.get("args"), time=call_time, session=session
            )
            yield from tools.make_result_lines(call.get("id"), _result_text(call), time=call_time, session=session)


def _parse_saved_part(part: dict[str, Any], time: object, session: object, tools: ToolCalls) -> Iterator[TranscriptLine]:
    """Yield the tool call and the tool result in a part of a saved chat."""
    call, response = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, dict):
        yield from tools.make_call_lines(call.get("id"), call.get("name"), call.get("args"), time=time, session=session)
    if isinstance(response, dict):
        yield from tools.make_result_lines(response.get("id"), _response_output(response), time=time, session=session)


def _result_text(call: dict[str, Any]) -> object:
    responses = [
        part["functionResponse"] for part in filter_dicts(call.get("result")) if isinstance(part.get("functionResponse"), dict)
    ]
    return "\n\n".join([str(_response_output(response)) for response in responses]) if responses else call.get("result")


def _response_output(response: dict[str, Any]) -> object:
    """Return the output of a tool from its response, which is usually under `output`."""
    output = response.get("response")
    return output["output"] if isinstance(output, dict) and isinstance(output.get("output"), str) else output
