"""Anthropic's messages: /v1/messages, streamed or not, and the counting of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast_prove.dialects.base import MODEL, Ask, Dialect, Said, Step, items, text_in


class Messages(Dialect):
    name = "messages"
    ends = ("/messages",)

    def ask(self, path: str, body: dict[str, Any]) -> Ask:
        said = [Said("system", text)] if (text := text_in(body.get("system"))) else []
        for message in items(body.get("messages")):
            said += self._said(str(message.get("role", "")), message.get("content"))
        tools = tuple(("", str(tool.get("name", ""))) for tool in items(body.get("tools")))
        return Ask(tuple(said), tools, bool(body.get("stream")))

    def _said(self, role: str, content: Any) -> list[Said]:
        if isinstance(content, str):
            return [Said(role, content)]
        return [
            Said("tool", text_in(part.get("content")), str(part.get("tool_use_id", "")))
            if part.get("type") == "tool_result"
            else Said(role, text_in(part))
            for part in items(content)
        ]

    def whole(self, step: Step) -> dict[str, Any]:
        if step.tool:
            content = {"type": "tool_use", "id": step.id, "name": step.name, "input": step.arguments}
        else:
            content = {"type": "text", "text": step.text}
        return {**_envelope(), "content": [content], "stop_reason": _why(step)}

    def events(self, step: Step) -> Iterator[tuple[str, Any]]:
        import json

        yield "message_start", {"type": "message_start", "message": {**_envelope(), "content": [], "stop_reason": None}}
        if step.tool:
            block = {"type": "tool_use", "id": step.id, "name": step.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step.text}
        yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        ended = {"stop_reason": _why(step), "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
        yield "message_stop", {"type": "message_stop"}


def _why(step: Step) -> str:
    return "tool_use" if step.tool else "end_turn"


def _envelope() -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": "msg_holdfast", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
