"""Parse transcripts of Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`.

Each line has `type`, `uuid`, `sessionId`, `timestamp`; for `user` and `assistant` also `message` with `content`, a string
or parts: `text`, `thinking`, `tool_use` (`id`, `name`, `input`), `tool_result` (`tool_use_id`, `content`), `image`. A line
that the client wrote in the user's name has `isMeta`, a summary has `isCompactSummary`, and a message that the client wrote in
the model's name has `isApiErrorMessage` or the model `<synthetic>`. A line of a subagent has `isSidechain`, and in a file of
its own also `agentId`. Lines of other types (summaries, snapshots, hooks' attachments, progress) are not turns.
"""

from __future__ import annotations

from holdfast.formats.importers.message_parts import ToolCalls, filter_dicts, make_line, message_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.formats.importers.json_source import SourceRow
    from holdfast.formats.transcript import TranscriptLine

CLIENT = "claude-code"


def matches(row: dict[str, Any]) -> bool:
    """Return whether this program writes objects like this one."""
    if not isinstance(row.get("type"), str) or "projectHash" in row:
        return False
    if "uuid" in row and isinstance(row.get("message"), dict):
        return True
    return "sessionId" in row and row["type"] not in ("user", "gemini")


def parse_turns(rows: Iterator[SourceRow], stem: str) -> Iterator[TranscriptLine]:
    """Yield every turn of a transcript."""
    tools = ToolCalls()
    for row in rows:
        message = row.value.get("message")
        if row.value.get("type") in ("user", "assistant") and isinstance(message, dict):
            yield from _parse_message(row.value, message.get("content"), tools)


def _parse_message(line: dict[str, Any], content: object, tools: ToolCalls) -> Iterator[TranscriptLine]:
    id, time, session = line.get("uuid"), line.get("timestamp"), _session_id(line)
    from_client = line.get("isMeta") or line.get("isApiErrorMessage") or _is_synthetic(line)
    speaker = "subagent" if line.get("isSidechain") else None
    text = message_text(content)
    if text and not from_client:
        role = "system" if line.get("isCompactSummary") else line["type"]
        yield make_line(role, text, id=id, time=time, speaker=speaker, session=session)
    for part in filter_dicts(content):
        if part.get("type") == "tool_use":
            yield from tools.make_call_lines(part.get("id"), part.get("name"), part.get("input"), time=time, session=session)
        elif part.get("type") == "tool_result":
            yield from tools.make_result_lines(part.get("tool_use_id"), part.get("content"), time=time, session=session)


def _is_synthetic(line: dict[str, Any]) -> bool:
    message = line.get("message")
    return isinstance(message, dict) and message.get("model") == "<synthetic>"


def _session_id(line: dict[str, Any]) -> str | None:
    """Return the session of a line; a subagent with a transcript of its own is a session of its own."""
    session, agent = line.get("sessionId"), line.get("agentId")
    return f"{session}.{agent}" if session and isinstance(agent, str) and agent else session
