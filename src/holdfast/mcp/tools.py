"""The tools as a client sees them: name, purpose, arguments, and hints on what a call may change.

Every session pays for these words with its context, so an argument whose name says enough has no description.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.base.record import Record
from holdfast.mcp import guidance, handlers, markdown
from holdfast.models import MODES, PARTS, SCOPES, SORTS, TYPES

Schema = dict[str, Any]


def _text(description: str = "", *choices: str) -> Schema:
    return {"type": "string", **_described(description), **({"enum": list(choices)} if choices else {})}


def _number(least: int, most: int | None = None, description: str = "") -> Schema:
    return {"type": "integer", **_described(description), "minimum": least, **({"maximum": most} if most else {})}


def _flag(description: str = "") -> Schema:
    return {"type": "boolean", **_described(description)}


def _list(kind: str, description: str = "") -> Schema:
    return {"type": "array", "items": {"type": kind}, **_described(description)}


def _described(description: str) -> Schema:
    return {"description": description} if description else {}


_WHOSE = {"project": _text(), "folder": _text()}  # the server's instructions say what they are for
_TAGS = _list("string")
_SCOPE = _text("", *SCOPES)
_TYPE = _text("", *TYPES)
_ORIGIN = _text("If not your own work.", *handlers.ORIGINS)
_REDACT = _flag("Mask secrets instead of refusing.")
_MADE_FROM = _list("string", "Sources: URLs, paths, note:KEY.")
_LIMIT = _number(1, 100)
_SHARED = ("scope", "type", "origin", "made_from", "redact")  # mean the same in every tool, so memory_store alone shows
_ONCE = ("description", "enum")  # these of them; a wrong value is refused with the choices


class Tool(Record):
    """One tool: `verb` runs it, `show` makes its result the lines that the model reads; `writes` and `destroys`
    are hints on what it may change."""

    name: str
    description: str
    verb: Callable[..., dict[str, Any]]
    show: Callable[[dict[str, Any]], list[str]]
    arguments: Schema
    needed: tuple[str, ...]
    writes: bool = False
    destroys: bool = False

    @property
    def input_schema(self) -> Schema:
        needed = {"required": list(self.needed)} if self.needed else {}
        return {"type": "object", "properties": {**self.arguments, **_WHOSE}, **needed, "additionalProperties": False}

    def as_shown(self) -> Schema:
        """What `tools/list` shows: the arguments without their limits, which a refusal names, and the hints that matter."""
        schema = self.input_schema
        properties = {name: self._shown(name, one) for name, one in schema["properties"].items()}
        needed = {"required": schema["required"]} if "required" in schema else {}
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {"type": "object", "properties": properties, **needed},
            "annotations": self.annotations,
        }

    @property
    def annotations(self) -> dict[str, bool]:
        """The protocol's hints, without those that mean nothing for such a tool."""
        if not self.writes:
            return {"readOnlyHint": True}
        return {"destructiveHint": True} if self.destroys else {"destructiveHint": False, "openWorldHint": False}

    def _shown(self, name: str, schema: Schema) -> Schema:
        left_out = ("minimum", "maximum", *(_ONCE if name in _SHARED and self.name != "memory_store" else ()))
        return {field: value for field, value in schema.items() if field not in left_out}


TOOLS = (
    Tool(
        "memory_store", guidance.STORE, handlers.store, markdown.stored,
        {
            "text": _text(), "key": _text("a-z, 0-9, -"), "scope": _SCOPE, "type": _TYPE,
            "tags": _TAGS, "valid_from": _text("YYYY-MM-DD"), "valid_to": _text(),
            "pinned": _flag(), "origin": _ORIGIN, "made_from": _MADE_FROM,
            "expected": _text("Version you read; refused if changed since."), "redact": _REDACT,
        },
        ("text",), writes=True,
    ),
    Tool(
        "memory_recall", guidance.RECALL, handlers.recall, markdown.recalled,
        {
            "query": _text(), "scope": _SCOPE, "type": _TYPE, "tags": _TAGS, "limit": _LIMIT,
            "as_of": _text("True then."), "known_at": _text("Recorded by then."),
            "mode": _text("", *MODES), "sort": _text("", *SORTS), "kind": _text("", *PARTS),
        },
        (),
    ),
    Tool(
        "memory_forget", guidance.FORGET, handlers.forget, markdown.forgotten, {"key": _text(), "scope": _SCOPE}, ("key",),
        writes=True, destroys=True,
    ),
    Tool(
        "memory_search", guidance.SEARCH, handlers.search, markdown.searched,
        {"query": _text(), "limit": _LIMIT}, ("query",),
    ),
    Tool(
        "memory_get", guidance.GET, handlers.get, markdown.got,
        {
            "key": _text(), "scope": _SCOPE, "as_of": _text(), "path": _text(), "from": _number(1),
            "lines": _number(1),
        },
        (),
    ),
    Tool(
        "memory_history", guidance.HISTORY, handlers.history, markdown.told,
        {
            "key": _text(), "scope": _SCOPE, "turn": _text(), "before": _number(0, 100),
            "after": _number(0, 100),
        },
        (),
    ),
    Tool(
        "memory_fact", guidance.FACT, handlers.fact, markdown.facts,
        {
            "subject": _text(), "label": _text(), "value": _text(), "on": _text(),
            "many": _flag("Keep the other values."), "scope": _SCOPE, "origin": _ORIGIN, "made_from": _MADE_FROM,
            "redact": _REDACT, "as_of": _text(), "history": _flag(),
        },
        ("subject",), writes=True,
    ),
    Tool(
        "memory_file", guidance.FILE, handlers.file, markdown.filed,
        {
            "command": _text("", *handlers.COMMANDS), "path": _text(),
            "view_range": _list("integer", "[first, last]; -1 = end"), "file_text": _text(), "old_str": _text(),
            "new_str": _text(), "insert_line": _number(0), "insert_text": _text(),
            "old_path": _text(), "new_path": _text(), "scope": _SCOPE, "redact": _REDACT,
        },
        ("command",), writes=True, destroys=True,
    ),
)  # fmt: skip

BY_NAME = {tool.name: tool for tool in TOOLS}
