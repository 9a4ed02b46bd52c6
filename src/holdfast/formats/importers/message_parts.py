"""What the dialects share: the parts of a message as text, and tools by their calls."""

from __future__ import annotations

import json

from holdfast.formats.transcript import (
    CUT,
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

_OURS = "holdfast"
_MOST_CALLS = 10_000  # that wait for their result
_SIGNS = TOOL_BYTES  # of a nested value: more would be cut anyway


def message_text(content: object) -> str:
    """The words of a message: a string, or the text of its parts; pictures and thoughts have none."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _part(content)
    if not isinstance(content, list):
        return ""
    return "\n\n".join([text for part in content if (text := part if isinstance(part, str) else _part(part))])


def _part(part: object) -> str:
    if not isinstance(part, dict) or part.get("thought"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) and part.get("type") in _TEXTS else ""


_TEXTS = (None, "text", "input_text", "output_text")
_PARTS = ("type", "text", "inlineData", "fileData")


def _is_parts(value: object) -> bool:
    """Whether these are the parts of a message: those without words are pictures and the like."""
    return isinstance(value, list) and all(isinstance(part, dict) and any(name in part for name in _PARTS) for part in value)


def value_text(value: object) -> str:
    """What a tool was given or gave back, as text."""
    if isinstance(value, str):
        return value
    if value is None or value == {} or value == []:
        return ""
    words = message_text(value)
    if words or _is_parts(value):
        return words
    try:
        return json.dumps(value, ensure_ascii=False)[: 2 * _SIGNS]
    except (ValueError, RecursionError):
        return CUT


def make_line(
    role: str, text: str, id: object = None, time: object = None, speaker: object = None, session: object = None
) -> TranscriptLine:
    """A turn from what a transcript says of it; what it says wrongly is left out."""
    return TranscriptLine(
        role=role,
        text=truncate(replace_surrogates(text), TOOL_BYTES if role == "tool" else TURN_BYTES),
        id=_word(id),
        time=parse_time_or_none(time),
        speaker=_word(speaker),
        session=_word(session),
    )


def _word(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        return None
    return " ".join(replace_surrogates(value).split())[:500]


class Tools:
    """Which tool a result is of. What our own tools were asked and said is not kept: memory does not feed on itself."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def call(self, id: object, name: object, given: object, time: object, session: object) -> Iterator[TranscriptLine]:
        tool = name if isinstance(name, str) and name else "tool"
        if isinstance(id, str):
            if len(self._names) >= _MOST_CALLS:
                self._names.pop(next(iter(self._names)))
            self._names[id] = tool
        if _OURS not in tool.lower():
            yield make_line("tool", f"{tool} {value_text(given)}".strip(), id, time, tool, session)

    def result(self, id: object, result: object, time: object, session: object) -> Iterator[TranscriptLine]:
        tool = self._names.pop(id, "tool") if isinstance(id, str) else "tool"
        text = value_text(result)
        if text and _OURS not in tool.lower():
            yield make_line("tool", text, f"{id}.result" if isinstance(id, str) else None, time, tool, session)


def only_dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of what should be a list of them."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
