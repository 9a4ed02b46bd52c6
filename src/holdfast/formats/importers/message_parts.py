"""Helpers of all dialects: the text of message parts, and turns for tool calls and their results."""

from __future__ import annotations

import json

from holdfast.formats.transcript import (
    CUT_MARK,
    TOOL_BYTES,
    TURN_BYTES,
    TranscriptLine,
    parse_time_or_none,
    replace_surrogates,
    truncate,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_OWN_TOOL_NAME = "holdfast"
_MAX_OPEN_CALLS = 10_000  # that wait for their result
_MAX_VALUE_CHARS = TOOL_BYTES  # of a nested value: more would be cut anyway


def message_text(content: object) -> str:
    """Return the text of a message: a string, or the text of its parts; pictures and thoughts have none."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _part_text(content)
    if not isinstance(content, list):
        return ""
    return "\n\n".join([text for part in content if (text := part if isinstance(part, str) else _part_text(part))])


def _part_text(part: object) -> str:
    if not isinstance(part, dict) or part.get("thought"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) and part.get("type") in _TEXT_TYPES else ""


_TEXT_TYPES = (None, "text", "input_text", "output_text")
_PART_FIELDS = ("type", "text", "inlineData", "fileData")


def _is_parts(value: object) -> bool:
    """Return whether a value is a list of message parts, even if none has text (pictures, for example)."""
    return isinstance(value, list) and all(
        isinstance(part, dict) and any(name in part for name in _PART_FIELDS) for part in value
    )


def value_text(value: object) -> str:
    """Return the arguments or the result of a tool as text."""
    if isinstance(value, str):
        return value
    if value is None or value == {} or value == []:
        return ""
    text = message_text(value)
    if text or _is_parts(value):
        return text
    try:
        return json.dumps(value, ensure_ascii=False)[: 2 * _MAX_VALUE_CHARS]
    except (ValueError, RecursionError):
        return CUT_MARK


def make_line(
    role: str, text: str, *, id: object = None, time: object = None, speaker: object = None, session: object = None
) -> TranscriptLine:
    """Return a turn; values that are not valid are left out."""
    return TranscriptLine(
        role=role,
        text=truncate(replace_surrogates(text), TOOL_BYTES if role == "tool" else TURN_BYTES),
        id=_clean_name(id),
        time=parse_time_or_none(time),
        speaker=_clean_name(speaker),
        session=_clean_name(session),
    )


def _clean_name(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        return None
    return " ".join(replace_surrogates(value).split())[:500]


class ToolCalls:
    """Turns for tool calls and results; a result is matched to its tool by the id of the call.

    Calls of Holdfast's own tools are left out, because memory must not store its own output.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def make_call_lines(
        self, id: object, name: object, arguments: object, *, time: object, session: object
    ) -> Iterator[TranscriptLine]:
        """Yield the turn of a tool call."""
        tool = name if isinstance(name, str) and name else "tool"
        if isinstance(id, str):
            if len(self._names) >= _MAX_OPEN_CALLS:
                self._names.pop(next(iter(self._names)))
            self._names[id] = tool
        if _OWN_TOOL_NAME not in tool.lower():
            yield make_line("tool", f"{tool} {value_text(arguments)}".strip(), id=id, time=time, speaker=tool, session=session)

    def make_result_lines(self, id: object, result: object, *, time: object, session: object) -> Iterator[TranscriptLine]:
        """Yield the turn of a tool's result."""
        tool = self._names.pop(id, "tool") if isinstance(id, str) else "tool"
        text = value_text(result)
        if text and _OWN_TOOL_NAME not in tool.lower():
            result_id = f"{id}.result" if isinstance(id, str) else None
            yield make_line("tool", text, id=result_id, time=time, speaker=tool, session=session)


def filter_dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; an empty list if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
