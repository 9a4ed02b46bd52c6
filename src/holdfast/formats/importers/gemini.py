"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json` or `.jsonl`, and `logs.json` beside it.

A chat is one document (`sessionId`, `projectHash`, `messages`), or since 2026 lines: one with `sessionId` and `projectHash`,
then a message a line, a changed message again under its id, `$set` for what is said about the chat and `$rewindTo`. A
message has `id`, `timestamp`, `type` (`user`, `gemini`, `info`, ...), `content` (a string or parts) and for `gemini`
`toolCalls` (`id`, `name`, `args`, `result`, `status`). A log is a list of `sessionId`, `messageId`, `type`, `message`: only
what the user typed. A saved chat (`/chat save`) is a list of `role` and `parts`.
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

CLIENT = "gemini"
_UNFINISHED = ("validating", "scheduled", "executing", "awaiting_approval")


def knows(row: dict[str, Any]) -> bool:
    if isinstance(row.get("sessionId"), str):
        return "projectHash" in row or "messages" in row or "messageId" in row
    return "$set" in row or "$rewindTo" in row or (isinstance(row.get("parts"), list) and "role" in row)


def turns(rows: Iterator[Row], stem: str) -> Iterator[TranscriptLine]:
    """Every turn of the file."""
    tools = Tools()
    session: object = None
    for row in rows:
        session = row.value.get("sessionId") or session
        for message in only_dicts(row.value.get("messages")) or [row.value]:
            yield from _turns(message, session, tools)


def _turns(message: dict[str, Any], session: object, tools: Tools) -> Iterator[TranscriptLine]:
    if "messageId" in message:
        id = f"log-{message['messageId']}"
        yield make_line("user", message_text(message.get("message")), id, message.get("timestamp"), None, session)
        return
    role = parse_role(message.get("type") or message.get("role") or "")
    if role is None:
        return
    time, parts = message.get("timestamp"), message.get("parts")
    words = message_text(message.get("content") or parts)
    if words:
        yield make_line(role, words, message.get("id"), time, None, session)
    for part in only_dicts(parts):
        yield from _saved(part, time, session, tools)
    for call in only_dicts(message.get("toolCalls")):
        if call.get("status") not in _UNFINISHED:
            when = call.get("timestamp") or time
            yield from tools.call(call.get("id"), call.get("name"), call.get("args"), when, session)
            yield from tools.result(call.get("id"), _result(call), when, session)


def _saved(part: dict[str, Any], time: object, session: object, tools: Tools) -> Iterator[TranscriptLine]:
    """What a part of a saved chat says of tools."""
    call, answer = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, dict):
        yield from tools.call(call.get("id"), call.get("name"), call.get("args"), time, session)
    if isinstance(answer, dict):
        yield from tools.result(answer.get("id"), _answer(answer), time, session)


def _result(call: dict[str, Any]) -> object:
    answers = [
        part["functionResponse"] for part in only_dicts(call.get("result")) if isinstance(part.get("functionResponse"), dict)
    ]
    return "\n\n".join([str(_answer(answer)) for answer in answers]) if answers else call.get("result")


def _answer(answer: dict[str, Any]) -> object:
    """The words in a tool's answer, which mostly stand under `output`."""
    response = answer.get("response")
    return response["output"] if isinstance(response, dict) and isinstance(response.get("output"), str) else response
