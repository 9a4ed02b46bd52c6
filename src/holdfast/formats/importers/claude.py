"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`.

Each line has `type`, `uuid`, `sessionId`, `timestamp`; for `user` and `assistant` also `message` with `content`, a string
or parts: `text`, `thinking`, `tool_use` (`id`, `name`, `input`), `tool_result` (`tool_use_id`, `content`), `image`. A line
that the client wrote in the user's name has `isMeta`, a summary `isCompactSummary`, and what the client says in the model's
name `isApiErrorMessage` or the model `<synthetic>`; one of a subagent has `isSidechain`, and in a file of its own `agentId`.
Other types (summaries, snapshots, hooks' attachments, progress) are nobody's words.
"""

from __future__ import annotations

from holdfast.formats.importers.message_parts import Tools, make_line, message_text, only_dicts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.formats.importers.json_source import Row
    from holdfast.formats.transcript import TranscriptLine

CLIENT = "claude-code"


def knows(row: dict[str, Any]) -> bool:
    if not isinstance(row.get("type"), str) or "projectHash" in row:
        return False
    if "uuid" in row and isinstance(row.get("message"), dict):
        return True
    return "sessionId" in row and row["type"] not in ("user", "gemini")


def turns(rows: Iterator[Row], stem: str) -> Iterator[TranscriptLine]:
    """Every turn of the file."""
    tools = Tools()
    for row in rows:
        message = row.value.get("message")
        if row.value.get("type") in ("user", "assistant") and isinstance(message, dict):
            yield from _turns(row.value, message.get("content"), tools)


def _turns(line: dict[str, Any], content: object, tools: Tools) -> Iterator[TranscriptLine]:
    id, time, session = line.get("uuid"), line.get("timestamp"), _session(line)
    made = line.get("isMeta") or line.get("isApiErrorMessage") or _is_synthetic(line)
    speaker = "subagent" if line.get("isSidechain") else None
    words = message_text(content)
    if words and not made:
        yield make_line("system" if line.get("isCompactSummary") else line["type"], words, id, time, speaker, session)
    for part in only_dicts(content):
        if part.get("type") == "tool_use":
            yield from tools.call(part.get("id"), part.get("name"), part.get("input"), time, session)
        elif part.get("type") == "tool_result":
            yield from tools.result(part.get("tool_use_id"), part.get("content"), time, session)


def _is_synthetic(line: dict[str, Any]) -> bool:
    message = line.get("message")
    return isinstance(message, dict) and message.get("model") == "<synthetic>"


def _session(line: dict[str, Any]) -> str | None:
    """A subagent with a transcript of its own is a session of its own."""
    session, agent = line.get("sessionId"), line.get("agentId")
    return f"{session}.{agent}" if session and isinstance(agent, str) and agent else session
