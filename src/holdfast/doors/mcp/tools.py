"""The tools as a client sees them: name, what it is for, arguments, what it answers, and hints on what it may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.doors.mcp import guidance, verbs
from holdfast.note import MODES, PARTS, SCOPES, SORTS, TYPES, Record

Schema = dict[str, Any]


def _text(description: str, *choices: str) -> Schema:
    return {"type": "string", "description": description, **({"enum": list(choices)} if choices else {})}


def _number(description: str, least: int, most: int | None = None) -> Schema:
    return {"type": "integer", "description": description, "minimum": least, **({"maximum": most} if most else {})}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


_WHOSE = {
    "project": _text("The project's id, if not the one you are in."),
    "folder": _text("Absolute path of the project's directory, if it was not found."),
}
_TAGS: Schema = {"type": "array", "items": {"type": "string"}, "description": "A few words to find it by."}
_SCOPE = _text("Where it applies. Default project.", *SCOPES)
_SCOPED = _text("Only there; otherwise everything you may see.", *SCOPES)
_ORIGIN = _text("Where you have it from, if not from your own work: tool output, the web, an import.", *verbs.ORIGINS)
_REDACT = _flag("Keep it with [REDACTED:rule] in place of a secret, which is refused otherwise.")
_MADE_FROM: Schema = {
    "type": "array", "items": {"type": "string"},
    "description": "What you have it from: the URL, the path, or the note (note:KEY). It is trusted no more than that.",
}  # fmt: skip
_KEY = _text("The note's name: a-z, 0-9 and '-', up to 60.")

_PROJECT: Schema = {
    "type": "object",
    "description": "Which project was used, and how it was found; without an id there is none.",
    "properties": {
        "id": {"type": "string"},
        "found_by": {"type": "string"},
        "folder": {"type": "string"},
        "fix": {"type": "string"},
    },
    "required": ["found_by"],
}
_ROWS: Schema = {"type": "array", "items": {"type": "object"}}
_STRING: Schema = {"type": "string"}
_BOOLEAN: Schema = {"type": "boolean"}
_STRINGS: Schema = {"type": "array", "items": _STRING}
_OBJECT: Schema = {"type": "object"}


class Tool(Record):
    """One tool; `verb` does it, and `hints` are readOnly, destructive, idempotent."""

    name: str
    title: str
    description: str
    verb: Callable[..., dict[str, Any]]
    arguments: Schema
    needed: tuple[str, ...]
    answers: Schema
    always: tuple[str, ...]
    hints: tuple[bool, bool, bool]

    @property
    def input_schema(self) -> Schema:
        needed = {"required": list(self.needed)} if self.needed else {}
        return {"type": "object", "properties": {**self.arguments, **_WHOSE}, **needed, "additionalProperties": False}

    @property
    def writes(self) -> bool:
        return not self.hints[0]

    def as_shown(self) -> Schema:
        """What `tools/list` shows."""
        reads, destroys, again = self.hints
        hints = {"readOnlyHint": reads, "destructiveHint": destroys, "idempotentHint": again, "openWorldHint": False}
        answers = {"project": _PROJECT, "notice": _STRING, **self.answers}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": {"type": "object", "properties": answers, "required": ["project", *self.always]},
            "annotations": {"title": self.title, **hints},
        }


_READS, _ADDS, _CHANGES, _REMOVES = (True, False, True), (False, False, True), (False, True, False), (False, True, True)

TOOLS = (
    Tool(
        "memory_store", "Store a memory", guidance.STORE, verbs.store,
        {
            "text": _text("What to remember, in full sentences. At most 64 KiB."),
            "key": _text("Its name: a-z, 0-9 and '-', up to 60. Made from the text if left out; the same key = a new version."),
            "scope": _SCOPE, "type": _text("What it is. Default project.", *TYPES), "tags": _TAGS,
            "valid_from": _text("True from this day on (YYYY-MM-DD), if not from now."),
            "valid_to": _text("True until this day; afterwards kept, but no longer recalled."),
            "pinned": _flag("Brief it first and never archive it."), "origin": _ORIGIN, "made_from": _MADE_FROM,
            "expected": _text("The `version` you read; if the note has changed since, nothing is written."), "redact": _REDACT,
        },
        ("text",), {"action": _text("", "created", "updated", "unchanged"), "note": _OBJECT}, ("action", "note"), _ADDS,
    ),
    Tool(
        "memory_recall", "Recall memories", guidance.RECALL, verbs.recall,
        {
            "query": _text("What you want to know, in plain words. May be empty with mode recent."),
            "scope": _SCOPED, "type": _text("Only of this type.", *TYPES), "tags": _TAGS,
            "limit": _number("At most so many; otherwise 10.", 1, 100),
            "as_of": _text("What was true on this day."), "known_at": _text("What was recorded by this day."),
            "mode": _text("How to look. Default hybrid: by words and by meaning.", *MODES),
            "sort": _text("What comes first. Default relevance.", *SORTS),
            "kind": _text("Only notes, files, facts, or turns of earlier sessions.", *PARTS),
        },
        (), {"hits": _ROWS, "mode": _STRING, "degraded": _BOOLEAN, "reason": _STRING, "disabled": _BOOLEAN},
        ("hits", "mode", "degraded"), _READS,
    ),
    Tool(
        "memory_forget", "Forget a memory", guidance.FORGET, verbs.forget, {"key": _KEY, "scope": _SCOPED}, ("key",),
        {"deleted": _BOOLEAN, "key": _STRING, "scope": _STRING, "restorable_until": _STRING}, ("deleted", "key"), _REMOVES,
    ),
    Tool(
        "memory_search", "Search notes and files", guidance.SEARCH, verbs.search,
        {"query": _text("The words to look for."), "limit": _number("At most so many; otherwise 10.", 1, 100)},
        ("query",), {"results": _ROWS, "degraded": _BOOLEAN, "reason": _STRING, "disabled": _BOOLEAN},
        ("results", "degraded"), _READS,
    ),
    Tool(
        "memory_get", "Read a note or a piece of a file", guidance.GET, verbs.get,
        {
            "key": _KEY, "scope": _SCOPED, "as_of": _text("The version that held on this day."),
            "path": _text("A path that a hit shows, instead of a key."),
            "from": _number("First line of the path, from 1.", 1), "lines": _number("So many lines.", 1),
        },
        (), {"text": _STRING, "exists": _BOOLEAN, "path": _STRING, "from": {"type": "integer"}, "note": _OBJECT,
         "hidden": _STRINGS},
        ("text",),
        _READS,
    ),
    Tool(
        "memory_history", "How a memory came about", guidance.HISTORY, verbs.history,
        {
            "key": _KEY, "scope": _SCOPED, "turn": _text("The citation or id of a turn, instead of a key."),
            "before": _number("So many turns before it; otherwise 3.", 0, 100),
            "after": _number("So many turns after it; otherwise 3.", 0, 100),
        },
        (), {"versions": _ROWS, "turns": _ROWS}, (), _READS,
    ),
    Tool(
        "memory_fact", "State or ask a dated fact", guidance.FACT, verbs.fact,
        {
            "subject": _text("What it is about."), "label": _text("Which property of it."),
            "value": _text("Its value from now on; leave it out to ask."),
            "on": _text("Since when, a day (YYYY-MM-DD); otherwise today."),
            "many": _flag("Beside the values it has, not in their place."), "scope": _SCOPE, "origin": _ORIGIN,
            "made_from": _MADE_FROM, "redact": _REDACT,
            "as_of": _text("When asking: what was stated for this day."),
            "history": _flag("When asking: everything that ever was stated."),
        },
        ("subject",), {"action": _STRING, "fact": _OBJECT, "retired": _ROWS, "facts": _ROWS, "redacted": _STRINGS}, (), _ADDS,
    ),
    Tool(
        "memory_file", "Your memory files", guidance.FILE, verbs.file,
        {
            "command": _text("What to do.", *verbs.COMMANDS), "path": _text("/memories/..., for all but rename."),
            "view_range": {"type": "array", "items": {"type": "integer"}, "description": "view: [first, last]; -1 is the end."},
            "file_text": _text("create: the whole text."), "old_str": _text("str_replace: the text that stands there once."),
            "new_str": _text("str_replace: what to put in its place."),
            "insert_line": _number("insert: after this line; 0 is the start.", 0), "insert_text": _text("insert: the text."),
            "old_path": _text("rename: from."), "new_path": _text("rename: to."), "scope": _SCOPE, "redact": _REDACT,
        },
        ("command",), {"command": _STRING, "path": _STRING, "text": _STRING, "hidden": _STRINGS}, ("command", "path"), _CHANGES,
    ),
)  # fmt: skip

BY_NAME = {tool.name: tool for tool in TOOLS}
