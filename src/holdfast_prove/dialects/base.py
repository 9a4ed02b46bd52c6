"""What a request to a model says, in our words, and what a dialect of such requests must be able to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.base.record import Record

MODEL = "holdfast-proof"


class Said(Record):
    """One piece of a request: who says it, and what; for a tool's answer also which call it answers."""

    role: str  # system | developer | user | assistant | tool
    text: str
    call: str = ""


class Ask(Record):
    """One request to the model."""

    said: tuple[Said, ...] = ()
    tools: tuple[tuple[str, str], ...] = ()  # the namespace a tool is offered in, mostly none, and its name
    stream: bool = False

    def answer_of(self, tool: str) -> str | None:
        """What came back from that tool, by its name or by the id that we gave the call; None if it was not called yet."""
        # some clients pass an id on without its underscores
        mark = tool.replace("_", "")
        texts = [one.text for one in self.said if one.role == "tool" and one.call.replace("_", "").endswith(mark)]
        return "\n".join(texts) if texts else None

    def offered(self, tool: str) -> tuple[str, str] | None:
        """How the client calls that tool: whatever it puts before our name."""
        ends = (f"_{tool}", f"-{tool}")
        return next(((space, name) for space, name in self.tools if name == tool or name.endswith(ends)), None)


class Step(Record):
    """What the model does next: say something, or call a tool."""

    text: str = ""
    tool: str = ""  # our name of it
    space: str = ""
    name: str = ""  # the client's name of it
    arguments: dict[str, Any] = {}

    @property
    def id(self) -> str:
        """The id of the call; it ends with our name of the tool, so that its answer is known again."""
        return f"call_{self.tool}"


class Dialect:
    """One way of asking a model. What is asked of it is known by the end of the path."""

    name = ""
    ends: tuple[str, ...] = ()

    def ask(self, path: str, body: dict[str, Any]) -> Ask:
        """The request in our words; whatever it has that we do not know is left out."""
        raise NotImplementedError

    def whole(self, step: Step) -> dict[str, Any]:
        """The answer as one document."""
        raise NotImplementedError

    def events(self, step: Step) -> Iterator[tuple[str, Any]]:
        """The answer as a stream of events, each with its name, if it has one, and its data."""
        raise NotImplementedError


def stream(events: Iterator[tuple[str, Any]]) -> bytes:
    """Server-sent events."""
    lines = []
    for name, data in events:
        said = data if isinstance(data, str) else json.dumps(data)
        lines.append((f"event: {name}\n" if name else "") + f"data: {said}\n\n")
    return "".join(lines).encode()


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; of anything else, none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_in(value: Any) -> str:
    """All the text in a piece of content, however deep it is wrapped."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_in, value)))
    if isinstance(value, dict):
        return "\n".join(filter(None, (text_in(value.get(name)) for name in ("text", "content", "output", "result", "error"))))
    return ""
