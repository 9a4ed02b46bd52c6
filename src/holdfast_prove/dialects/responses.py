"""OpenAI's responses: /responses, streamed or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast_prove.dialects.base import MODEL, Ask, Dialect, Said, Step, items, text_in


class Responses(Dialect):
    name = "responses"
    ends = ("/responses",)

    def ask(self, path: str, body: dict[str, Any]) -> Ask:
        said = [Said("system", text)] if (text := text_in(body.get("instructions"))) else []
        given = body.get("input")
        said += [Said("user", given)] if isinstance(given, str) else [self._said(item) for item in items(given)]
        return Ask(tuple(said), tuple(_tools(body.get("tools"))), bool(body.get("stream")))

    def _said(self, item: dict[str, Any]) -> Said:
        if item.get("type") == "function_call_output":
            return Said("tool", text_in(item.get("output")), str(item.get("call_id", "")))
        return Said(str(item.get("role") or "assistant"), text_in(item))

    def whole(self, step: Step) -> dict[str, Any]:
        usage = {
            "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
        }  # fmt: skip
        return {**_envelope("completed"), "output": [_item(step)], "usage": usage}

    def events(self, step: Step) -> Iterator[tuple[str, Any]]:
        item = _item(step)
        yield _event("response.created", response={**_envelope("in_progress"), "output": []})
        yield _event("response.output_item.added", output_index=0, item=item)
        if not step.tool:
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            yield _event("response.content_part.added", **place, part={"type": "output_text", "text": "", "annotations": []})
            yield _event("response.output_text.delta", **place, delta=step.text)
            yield _event("response.output_text.done", **place, text=step.text)
        yield _event("response.output_item.done", output_index=0, item=item)
        yield _event("response.completed", response=self.whole(step))


def _event(name: str, **data: Any) -> tuple[str, Any]:
    return name, {"type": name, **data}


def _tools(tools: Any) -> Iterator[tuple[str, str]]:
    """Tools may be offered in groups, each with a name of its own."""
    for tool in items(tools):
        if tool.get("type") == "namespace":
            for one in items(tool.get("tools")):
                yield str(tool.get("name", "")), str(one.get("name", ""))
        else:
            yield "", str(tool.get("name") or tool.get("type") or "")


def _item(step: Step) -> dict[str, Any]:
    import json

    if not step.tool:
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        return {"type": "message", "id": "msg_holdfast", "role": "assistant", "status": "completed", "content": content}
    call = {
        "type": "function_call", "id": "fc_holdfast", "call_id": step.id, "name": step.name, "status": "completed",
        "arguments": json.dumps(step.arguments),
    }  # fmt: skip
    return {**call, "namespace": step.space} if step.space else call


def _envelope(status: str) -> dict[str, Any]:
    return {"id": "resp_holdfast", "object": "response", "created_at": 0, "model": MODEL, "status": status}
