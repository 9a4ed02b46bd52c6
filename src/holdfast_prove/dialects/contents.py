"""Google's generateContent and streamGenerateContent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast_prove.dialects.base import MODEL, Ask, Dialect, Said, Step, items, text_in


class Contents(Dialect):
    name = "contents"
    ends = (":generateContent", ":streamGenerateContent")

    def ask(self, path: str, body: dict[str, Any]) -> Ask:
        system = body.get("systemInstruction") or body.get("system_instruction")
        said = [Said("system", text)] if (text := _text(system)) else []
        for content in items(body.get("contents")):
            role = "assistant" if content.get("role") == "model" else "user"
            said += [self._said(role, part) for part in items(content.get("parts"))]
        tools = [one for tool in items(body.get("tools")) for one in items(tool.get("functionDeclarations"))]
        stream = path.endswith(":streamGenerateContent")
        return Ask(tuple(said), tuple(("", str(one.get("name", ""))) for one in tools), stream)

    def _said(self, role: str, part: dict[str, Any]) -> Said:
        answer = part.get("functionResponse")
        if isinstance(answer, dict):
            return Said("tool", text_in(answer.get("response")), str(answer.get("name", "")))
        return Said(role, text_in(part))

    def whole(self, step: Step) -> dict[str, Any]:
        part = {"functionCall": {"name": step.name, "args": step.arguments}} if step.tool else {"text": step.text}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "holdfast"}

    def events(self, step: Step) -> Iterator[tuple[str, Any]]:
        yield "", self.whole(step)


def _text(system: Any) -> str:
    return text_in(system.get("parts")) if isinstance(system, dict) else text_in(system)
