"""The tools: name, description, arguments, and hints on what a call may change.

Every session pays for these words with its context, so an argument with a clear name has no description.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.base.record import Record
from holdfast.mcp import guidance, handlers, markdown
from holdfast.models import AGENT_ORIGINS, MODES, PARTS, SCOPES, SORTS, TYPES

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


_PROJECT_ARGUMENTS = {"project": _text(), "folder": _text()}  # the server's instructions say what they are for
_TAGS = _list("string")
_SCOPE = _text("", *SCOPES)
_TYPE = _text("", *TYPES)
_ORIGIN = _text("If not your own work.", *AGENT_ORIGINS)
_REDACT = _flag("Mask secrets instead of rejecting.")
_MADE_FROM = _list("string", "Sources: URLs, paths, note:KEY.")
_LIMIT = _number(1, 100)
_SHARED_ARGUMENTS = (
    "scope",
    "type",
    "origin",
    "made_from",
    "redact",
)  # mean the same in every tool, so memory_store alone shows
_SHOWN_ONCE = ("description", "enum")  # these of them; a wrong value is refused with the choices


class Tool(Record):
    """One tool: `verb` runs it, `show` formats its result for the model; `writes` and `destroys` are hints on what it may
    change."""

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
        return {
            "type": "object",
            "properties": {**self.arguments, **_PROJECT_ARGUMENTS},
            **needed,
            "additionalProperties": False,
        }

    def as_shown(self, at_gateway: bool = False) -> Schema:
        """Return the entry of `tools/list`: arguments without limits, which an error names, and the hints that matter.

        A gateway does not offer `folder`: the folders are on its callers' machines."""
        schema = self.input_schema
        shown = [name for name in schema["properties"] if not (at_gateway and name == "folder")]
        properties = {name: self._shown(name, schema["properties"][name]) for name in shown}
        needed = {"required": schema["required"]} if "required" in schema else {}
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {"type": "object", "properties": properties, **needed},
            "annotations": self.annotations,
        }

    @property
    def annotations(self) -> dict[str, bool]:
        """Return the protocol's hints that apply to the tool."""
        if not self.writes:
            return {"readOnlyHint": True}
        return {"destructiveHint": True} if self.destroys else {"destructiveHint": False, "openWorldHint": False}

    def _shown(self, name: str, schema: Schema) -> Schema:
        left_out = ("minimum", "maximum", *(_SHOWN_ONCE if name in _SHARED_ARGUMENTS and self.name != "memory_store" else ()))
        return {field: value for field, value in schema.items() if field not in left_out}


TOOLS = (
    Tool(
        "memory_store", guidance.STORE, verb=handlers.store, show=markdown.format_store,
        arguments={
            "text": _text(), "key": _text("a-z, 0-9, -"), "scope": _SCOPE, "type": _TYPE,
            "tags": _TAGS, "valid_from": _text("YYYY-MM-DD"), "valid_to": _text(),
            "pinned": _flag(), "origin": _ORIGIN, "made_from": _MADE_FROM,
            "expected": _text("Version you read."), "redact": _REDACT,
            "relations": _list("string", "relates_to, contradicts or supersedes KEY"),
        },
        needed=("text",), writes=True,
    ),
    Tool(
        "memory_recall", guidance.RECALL, verb=handlers.recall, show=markdown.format_recall,
        arguments={
            "query": _text(), "scope": _SCOPE, "type": _TYPE, "tags": _TAGS, "limit": _LIMIT,
            "as_of": _text("True then."), "known_at": _text("Recorded by then."),
            "mode": _text("", *MODES), "sort": _text("", *SORTS), "kind": _text("", *PARTS),
        },
        needed=(),
    ),
    Tool(
        "memory_forget", guidance.FORGET, verb=handlers.forget, show=markdown.format_forget,
        arguments={"key": _text(), "scope": _SCOPE}, needed=("key",), writes=True, destroys=True,
    ),
    Tool(
        "memory_search", guidance.SEARCH, verb=handlers.search, show=markdown.format_search,
        arguments={"query": _text(), "limit": _LIMIT}, needed=("query",),
    ),
    Tool(
        "memory_get", guidance.GET, verb=handlers.get, show=markdown.format_get,
        arguments={
            "key": _text(), "scope": _SCOPE, "as_of": _text(), "path": _text(), "from": _number(1),
            "lines": _number(1),
        },
        needed=(),
    ),
    Tool(
        "memory_history", guidance.HISTORY, verb=handlers.history, show=markdown.format_history,
        arguments={
            "key": _text(), "scope": _SCOPE, "turn": _text(), "before": _number(0, 100),
            "after": _number(0, 100),
        },
        needed=(),
    ),
    Tool(
        "memory_fact", guidance.FACT, verb=handlers.fact, show=markdown.format_facts,
        arguments={
            "subject": _text(), "label": _text(), "value": _text(), "on": _text(),
            "many": _flag("Keep the other values."), "scope": _SCOPE, "origin": _ORIGIN, "made_from": _MADE_FROM,
            "redact": _REDACT, "as_of": _text(), "history": _flag(),
        },
        needed=("subject",), writes=True,
    ),
    Tool(
        "memory_file", guidance.FILE, verb=handlers.file, show=markdown.format_file,
        arguments={
            "command": _text("", *handlers.COMMANDS), "path": _text(),
            "view_range": _list("integer", "[first, last]; -1 = end"), "file_text": _text(), "old_str": _text(),
            "new_str": _text(), "insert_line": _number(0), "insert_text": _text(),
            "old_path": _text(), "new_path": _text(), "scope": _SCOPE, "redact": _REDACT,
        },
        needed=("command",), writes=True, destroys=True,
    ),
)  # fmt: skip

BY_NAME = {tool.name: tool for tool in TOOLS}
