"""Parse transcripts of Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<uuid>.jsonl`.

Each line has `timestamp`, `type` and `payload`. The first is `session_meta` with the session's `id`. Turns are in
`response_item`: `message` (`role`, `content` of `input_text` and `output_text`), `function_call` and `custom_tool_call`
(`call_id`, `name`, `arguments` or `input`; a tool of an MCP server has a `namespace`, such as `mcp__files`),
`local_shell_call` (`action`), and the `..._output` of each (`output`).
A message with the role `developer` is written by Codex, and so are some blocks in the user's name (see `noise`).
`event_msg` repeats turns for the screen; `reasoning` is mostly encrypted. Before 0.44 the payload was the line itself.
"""

from __future__ import annotations

from holdfast.formats.importers import noise
from holdfast.formats.importers.message_parts import ToolCalls, make_line, message_text
from holdfast.formats.transcript import parse_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.formats.importers.json_source import SourceRow
    from holdfast.formats.transcript import TranscriptLine

CLIENT = "codex"
_LINE_TYPES = ("session_meta", "response_item", "turn_context", "event_msg", "compacted")
_ITEM_TYPES = ("message", "function_call", "function_call_output", "reasoning", "local_shell_call", "custom_tool_call")
_CLIENT_TEXTS = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")


def matches(row: dict[str, Any]) -> bool:
    """Return whether this program writes objects like this one."""
    if isinstance(row.get("payload"), dict):
        return row.get("type") in _LINE_TYPES
    if row.get("type") in _ITEM_TYPES:
        return "sessionId" not in row
    return "instructions" in row and "timestamp" in row


def parse_turns(rows: Iterator[SourceRow], stem: str) -> Iterator[TranscriptLine]:
    """Yield every turn of a transcript."""
    tools = ToolCalls()
    session = None
    for row in rows:
        payload = row.value.get("payload")
        item = payload if isinstance(payload, dict) else row.value
        if session is None and (row.value.get("type") == "session_meta" or _is_old_header(row.value)):
            session = item.get("id")
        elif row.value.get("type") == "response_item" or not isinstance(payload, dict):
            yield from _parse_item(item, row.value.get("timestamp"), session, tools)


def _is_old_header(line: dict[str, Any]) -> bool:
    return "type" not in line and "payload" not in line and isinstance(line.get("id"), str)


def _parse_item(item: dict[str, Any], time: object, session: object, tools: ToolCalls) -> Iterator[TranscriptLine]:
    kind = str(item.get("type"))
    if kind == "message":
        text, role = message_text(item.get("content")), parse_role(item.get("role")) or "system"
        from_client = role == "user" and noise.remove_noise_from_text(text).lstrip().startswith(
            _CLIENT_TEXTS
        )  # a block whose end is missing
        if text and item.get("role") != "developer":
            yield make_line("system" if from_client else role, text, id=item.get("id"), time=time, session=session)
    elif kind.endswith("_call"):
        arguments = next((item[name] for name in ("arguments", "input", "action") if item.get(name)), None)
        name = "__".join([part for part in (item.get("namespace"), item.get("name")) if isinstance(part, str) and part])
        yield from tools.make_call_lines(
            item.get("call_id") or item.get("id"), name or kind, arguments, time=time, session=session
        )
    elif kind.endswith("_call_output"):
        yield from tools.make_result_lines(item.get("call_id"), item.get("output"), time=time, session=session)
