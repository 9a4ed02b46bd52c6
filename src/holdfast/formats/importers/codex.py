"""Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<uuid>.jsonl`.

Each line has `timestamp`, `type` and `payload`. The first is `session_meta` with the session's `id`. What was said is in
`response_item`: `message` (`role`, `content` of `input_text` and `output_text`), `function_call` and `custom_tool_call`
(`call_id`, `name`, `arguments` or `input`; a tool of an MCP server has a `namespace`, such as `mcp__files`),
`local_shell_call` (`action`), and the `..._output` of each (`output`).
A message of the role `developer` is Codex's own, and so are blocks in the user's name (see `noise`).
`event_msg` says the same again for the screen; `reasoning` is mostly encrypted. Before 0.44 the payload was the line itself.
"""

from __future__ import annotations

from holdfast.formats.importers import noise
from holdfast.formats.importers.message_parts import Tools, make_line, message_text
from holdfast.formats.transcript import parse_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.formats.importers.json_source import Row
    from holdfast.formats.transcript import TranscriptLine

CLIENT = "codex"
_LINES = ("session_meta", "response_item", "turn_context", "event_msg", "compacted")
_ITEMS = ("message", "function_call", "function_call_output", "reasoning", "local_shell_call", "custom_tool_call")
_MADE = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")


def knows(row: dict[str, Any]) -> bool:
    if isinstance(row.get("payload"), dict):
        return row.get("type") in _LINES
    if row.get("type") in _ITEMS:
        return "sessionId" not in row
    return "instructions" in row and "timestamp" in row


def turns(rows: Iterator[Row], stem: str) -> Iterator[TranscriptLine]:
    """Every turn of the file."""
    tools = Tools()
    session = None
    for row in rows:
        payload = row.value.get("payload")
        item = payload if isinstance(payload, dict) else row.value
        if session is None and (row.value.get("type") == "session_meta" or _is_old_head(row.value)):
            session = item.get("id")
        elif row.value.get("type") == "response_item" or not isinstance(payload, dict):
            yield from _turns(item, row.value.get("timestamp"), session, tools)


def _is_old_head(line: dict[str, Any]) -> bool:
    return "type" not in line and "payload" not in line and isinstance(line.get("id"), str)


def _turns(item: dict[str, Any], time: object, session: object, tools: Tools) -> Iterator[TranscriptLine]:
    kind = str(item.get("type"))
    if kind == "message":
        words, role = message_text(item.get("content")), parse_role(item.get("role")) or "system"
        made = role == "user" and noise.remove_noise_from_text(words).lstrip().startswith(_MADE)  # a block whose end is missing
        if words and item.get("role") != "developer":
            yield make_line("system" if made else role, words, item.get("id"), time, None, session)
    elif kind.endswith("_call"):
        given = next((item[name] for name in ("arguments", "input", "action") if item.get(name)), None)
        name = "__".join([part for part in (item.get("namespace"), item.get("name")) if isinstance(part, str) and part])
        yield from tools.call(item.get("call_id") or item.get("id"), name or kind, given, time, session)
    elif kind.endswith("_call_output"):
        yield from tools.result(item.get("call_id"), item.get("output"), time, session)
