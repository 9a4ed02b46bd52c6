"""OpenAI's chat completions: /chat/completions, streamed or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast_prove.dialects.base import MODEL, Ask, Dialect, Said, Step, items, text_in

_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


class Completions(Dialect):
    name = "completions"
    ends = ("/chat/completions",)

    def ask(self, path: str, body: dict[str, Any]) -> Ask:
        said = [
            Said(str(message.get("role", "")), text_in(message.get("content")), str(message.get("tool_call_id") or ""))
            for message in items(body.get("messages"))
        ]
        functions = [tool["function"] for tool in items(body.get("tools")) if isinstance(tool.get("function"), dict)]
        return Ask(tuple(said), tuple(("", str(one.get("name", ""))) for one in functions), bool(body.get("stream")))

    def whole(self, step: Step) -> dict[str, Any]:
        choice = {"index": 0, "message": {"role": "assistant", **_content(step)}, "finish_reason": _why(step)}
        return {**_envelope("chat.completion"), "choices": [choice], "usage": _USAGE}

    def events(self, step: Step) -> Iterator[tuple[str, Any]]:
        envelope = _envelope("chat.completion.chunk")
        delta = {"role": "assistant", **_content(step)}
        yield "", {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield "", {**envelope, "choices": [{"index": 0, "delta": {}, "finish_reason": _why(step)}], "usage": _USAGE}
        yield "", "[DONE]"


def _why(step: Step) -> str:
    return "tool_calls" if step.tool else "stop"


def _content(step: Step) -> dict[str, Any]:
    import json

    if not step.tool:
        return {"content": step.text}
    function = {"name": step.name, "arguments": json.dumps(step.arguments)}
    return {"content": None, "tool_calls": [{"index": 0, "id": step.id, "type": "function", "function": function}]}


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-holdfast", "object": kind, "created": 0, "model": MODEL}
