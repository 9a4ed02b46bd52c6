"""The APIs that clients use to call a model: parse their requests into one form, and format replies for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MODEL = "holdfast-proof"
Event = tuple[str, Any]  # name (empty if the API does not name its events) and data


@dataclass(frozen=True)
class Message:
    """One part of a request to the model."""

    role: str  # system | developer | user | assistant | tool
    text: str
    tool_call_id: str = ""  # of the call that a tool's result answers


class ToolName(NamedTuple):
    """A tool as the client offers it; most APIs have no namespaces."""

    namespace: str = ""
    name: str = ""


@dataclass(frozen=True)
class ModelRequest:
    """One request to the model."""

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolName, ...] = ()
    stream: bool = False

    def tool_result(self, tool: str) -> str | None:
        """Return the results of a tool, found by its name or by the id of `Reply.call_id`; None if it was not called yet."""
        suffix = tool.replace("_", "")  # some clients remove underscores from ids
        texts = [
            message.text
            for message in self.messages
            if message.role == "tool" and message.tool_call_id.replace("_", "").endswith(suffix)
        ]
        return "\n".join(texts) if texts else None

    def find_tool(self, tool: str) -> ToolName | None:
        """Return how the client offers a tool of Holdfast, with any prefix before its name."""
        suffixes = (f"_{tool}", f"-{tool}")
        return next((offered for offered in self.tools if offered.name == tool or offered.name.endswith(suffixes)), None)


@dataclass(frozen=True)
class Reply:
    """The model's reply: a text, or the call of a tool."""

    text: str = ""
    tool: str = ""  # its name in Holdfast; empty for a text
    offered: ToolName = field(default_factory=ToolName)  # its name as the client offers it
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def call_id(self) -> str:
        """Return the id of the call; it ends with the tool's name, so that `ModelRequest.tool_result` finds its result."""
        return f"call_{self.tool}"


class ModelApi:
    """One API of model providers, recognised by the end of the request path."""

    path_endings: tuple[str, ...] = ()

    def parse_request(self, path: str, body: dict[str, Any]) -> ModelRequest:
        """Parse a request; unknown parts are left out."""
        raise NotImplementedError

    def make_response(self, reply: Reply) -> dict[str, Any]:
        """Return the reply as one JSON document."""
        raise NotImplementedError

    def make_events(self, reply: Reply) -> Iterator[Event]:
        """Yield the reply as a stream of events."""
        raise NotImplementedError


class AnthropicMessages(ModelApi):
    """Anthropic: POST /v1/messages."""

    path_endings = ("/messages",)

    def parse_request(self, path: str, body: dict[str, Any]) -> ModelRequest:
        messages = [Message("system", text)] if (text := _extract_text(body.get("system"))) else []
        for message in _list_objects(body.get("messages")):
            messages += self._parse_content(str(message.get("role", "")), message.get("content"))
        tools = tuple(ToolName("", str(tool.get("name", ""))) for tool in _list_objects(body.get("tools")))
        return ModelRequest(tuple(messages), tools, bool(body.get("stream")))

    def _parse_content(self, role: str, content: Any) -> list[Message]:
        if isinstance(content, str):
            return [Message(role, content)]
        return [
            Message("tool", _extract_text(part.get("content")), str(part.get("tool_use_id", "")))
            if part.get("type") == "tool_result"
            else Message(role, _extract_text(part))
            for part in _list_objects(content)
        ]

    def make_response(self, reply: Reply) -> dict[str, Any]:
        if reply.tool:
            content = {"type": "tool_use", "id": reply.call_id, "name": reply.offered.name, "input": reply.arguments}
        else:
            content = {"type": "text", "text": reply.text}
        return {**self._envelope(), "content": [content], "stop_reason": self._stop_reason(reply)}

    def make_events(self, reply: Reply) -> Iterator[Event]:
        yield "message_start", {"type": "message_start", "message": {**self._envelope(), "content": [], "stop_reason": None}}
        if reply.tool:
            block = {"type": "tool_use", "id": reply.call_id, "name": reply.offered.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}
        yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        end = {"stop_reason": self._stop_reason(reply), "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
        yield "message_stop", {"type": "message_stop"}

    def _stop_reason(self, reply: Reply) -> str:
        return "tool_use" if reply.tool else "end_turn"

    def _envelope(self) -> dict[str, Any]:
        usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        return {
            "id": "msg_holdfast", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None, "usage": usage,
        }  # fmt: skip


class OpenAIResponses(ModelApi):
    """OpenAI: POST /responses."""

    path_endings = ("/responses",)

    def parse_request(self, path: str, body: dict[str, Any]) -> ModelRequest:
        messages = [Message("system", text)] if (text := _extract_text(body.get("instructions"))) else []
        items = body.get("input")
        if isinstance(items, str):
            messages.append(Message("user", items))
        else:
            messages += [self._parse_item(item) for item in _list_objects(items)]
        return ModelRequest(tuple(messages), tuple(self._parse_tools(body.get("tools"))), bool(body.get("stream")))

    def _parse_item(self, item: dict[str, Any]) -> Message:
        if item.get("type") == "function_call_output":
            return Message("tool", _extract_text(item.get("output")), str(item.get("call_id", "")))
        return Message(str(item.get("role") or "assistant"), _extract_text(item))

    def _parse_tools(self, tools: Any) -> Iterator[ToolName]:
        """Yield the tools, including those in namespaces."""
        for tool in _list_objects(tools):
            if tool.get("type") == "namespace":
                for member in _list_objects(tool.get("tools")):
                    yield ToolName(str(tool.get("name", "")), str(member.get("name", "")))
            else:
                yield ToolName("", str(tool.get("name") or tool.get("type") or ""))

    def make_response(self, reply: Reply) -> dict[str, Any]:
        usage = {
            "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
        }  # fmt: skip
        return {**self._envelope("completed"), "output": [self._make_item(reply)], "usage": usage}

    def make_events(self, reply: Reply) -> Iterator[Event]:
        item = self._make_item(reply)
        yield self._make_event("response.created", response={**self._envelope("in_progress"), "output": []})
        yield self._make_event("response.output_item.added", output_index=0, item=item)
        if not reply.tool:
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            part = {"type": "output_text", "text": "", "annotations": []}
            yield self._make_event("response.content_part.added", **place, part=part)
            yield self._make_event("response.output_text.delta", **place, delta=reply.text)
            yield self._make_event("response.output_text.done", **place, text=reply.text)
        yield self._make_event("response.output_item.done", output_index=0, item=item)
        yield self._make_event("response.completed", response=self.make_response(reply))

    def _make_event(self, name: str, **data: Any) -> Event:
        return name, {"type": name, **data}

    def _make_item(self, reply: Reply) -> dict[str, Any]:
        if not reply.tool:
            content = [{"type": "output_text", "text": reply.text, "annotations": []}]
            return {"type": "message", "id": "msg_holdfast", "role": "assistant", "status": "completed", "content": content}
        call = {
            "type": "function_call", "id": "fc_holdfast", "call_id": reply.call_id, "name": reply.offered.name,
            "status": "completed", "arguments": json.dumps(reply.arguments),
        }  # fmt: skip
        return {**call, "namespace": reply.offered.namespace} if reply.offered.namespace else call

    def _envelope(self, status: str) -> dict[str, Any]:
        return {"id": "resp_holdfast", "object": "response", "created_at": 0, "model": MODEL, "status": status}


class OpenAIChatCompletions(ModelApi):
    """OpenAI: POST /chat/completions."""

    path_endings = ("/chat/completions",)
    _usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}

    def parse_request(self, path: str, body: dict[str, Any]) -> ModelRequest:
        messages = [
            Message(str(message.get("role", "")), _extract_text(message.get("content")), str(message.get("tool_call_id") or ""))
            for message in _list_objects(body.get("messages"))
        ]
        functions = [tool["function"] for tool in _list_objects(body.get("tools")) if isinstance(tool.get("function"), dict)]
        tools = tuple(ToolName("", str(function.get("name", ""))) for function in functions)
        return ModelRequest(tuple(messages), tools, bool(body.get("stream")))

    def make_response(self, reply: Reply) -> dict[str, Any]:
        message = {"role": "assistant", **self._make_content(reply)}
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason(reply)}
        return {**self._envelope("chat.completion"), "choices": [choice], "usage": self._usage}

    def make_events(self, reply: Reply) -> Iterator[Event]:
        envelope = self._envelope("chat.completion.chunk")
        delta = {"role": "assistant", **self._make_content(reply)}
        end = {"index": 0, "delta": {}, "finish_reason": self._finish_reason(reply)}
        yield "", {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield "", {**envelope, "choices": [end], "usage": self._usage}
        yield "", "[DONE]"

    def _finish_reason(self, reply: Reply) -> str:
        return "tool_calls" if reply.tool else "stop"

    def _make_content(self, reply: Reply) -> dict[str, Any]:
        if not reply.tool:
            return {"content": reply.text}
        function = {"name": reply.offered.name, "arguments": json.dumps(reply.arguments)}
        return {"content": None, "tool_calls": [{"index": 0, "id": reply.call_id, "type": "function", "function": function}]}

    def _envelope(self, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-holdfast", "object": kind, "created": 0, "model": MODEL}


class GoogleGenerateContent(ModelApi):
    """Google: POST …:generateContent and …:streamGenerateContent."""

    path_endings = (":generateContent", ":streamGenerateContent")

    def parse_request(self, path: str, body: dict[str, Any]) -> ModelRequest:
        system = body.get("systemInstruction") or body.get("system_instruction")
        system_text = _extract_text(system.get("parts") if isinstance(system, dict) else system)
        messages = [Message("system", system_text)] if system_text else []
        for content in _list_objects(body.get("contents")):
            role = "assistant" if content.get("role") == "model" else "user"
            messages += [self._parse_part(role, part) for part in _list_objects(content.get("parts"))]
        functions = [
            function
            for tool in _list_objects(body.get("tools"))
            for function in _list_objects(tool.get("functionDeclarations"))
        ]
        tools = tuple(ToolName("", str(function.get("name", ""))) for function in functions)
        return ModelRequest(tuple(messages), tools, path.endswith(":streamGenerateContent"))

    def _parse_part(self, role: str, part: dict[str, Any]) -> Message:
        result = part.get("functionResponse")
        if isinstance(result, dict):
            return Message("tool", _extract_text(result.get("response")), str(result.get("name", "")))
        return Message(role, _extract_text(part))

    def make_response(self, reply: Reply) -> dict[str, Any]:
        call = {"name": reply.offered.name, "args": reply.arguments}
        part = {"functionCall": call} if reply.tool else {"text": reply.text}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "holdfast"}

    def make_events(self, reply: Reply) -> Iterator[Event]:
        yield "", self.make_response(reply)


_APIS: tuple[ModelApi, ...] = (AnthropicMessages(), OpenAIResponses(), OpenAIChatCompletions(), GoogleGenerateContent())


def find_api(path: str) -> ModelApi | None:
    """Return the API of a request path, or None if the request is not for the model."""
    return next((api for api in _APIS if path.endswith(api.path_endings)), None)


def encode_events(events: Iterator[Event]) -> bytes:
    """Return events as the body of a server-sent event stream."""
    lines = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        lines.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return "".join(lines).encode()


def _list_objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; an empty list for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _extract_text(value: Any) -> str:
    """Return all text in a value, at any depth, joined with newlines."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_extract_text, value)))
    if isinstance(value, dict):
        names = ("text", "content", "output", "result", "error")
        return "\n".join(filter(None, (_extract_text(value.get(name)) for name in names)))
    return ""
