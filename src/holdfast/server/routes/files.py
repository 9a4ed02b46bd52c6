"""Files: the agent's own tree, by the six verbs of the memory tool."""

from __future__ import annotations

from typing import Any

from holdfast.mcp import handlers
from holdfast.server.idempotency import Replay
from holdfast.server.route import READ, SCOPE, WRITE, Asked, Route
from holdfast.server.routes.notes import REDACT
from holdfast.server.schema import Schema, answer, fields, number, rows, text

_PATH = text("From /memories, the root of the scope's tree.", minLength=1, maxLength=1024)
_NEEDS: dict[str, tuple[dict[str, Schema], tuple[str, ...], str]] = {
    "view": (
        {
            "path": _PATH,
            "view_range": rows({"type": "integer"}, "[first, last]; -1 is the end.", minItems=2, maxItems=2),
        },
        ("path",), "a file's text, or the names in a folder",
    ),
    "create": (
        {"path": _PATH, "file_text": text("The whole text.")}, ("path", "file_text"),
        "write a file, new or in the place of the old one",
    ),
    "str_replace": (
        {"path": _PATH, "old_str": text("The text that stands there once."), "new_str": text("What to put in its place.")},
        ("path", "old_str"), "replace a text that stands exactly once in a file",
    ),
    "insert": (
        {
            "path": _PATH, "insert_line": number("After this line; 0 is the start.", 0, 10**9),
            "insert_text": text("The text."),
        },
        ("path", "insert_line", "insert_text"), "insert text after a line",
    ),
    "delete": ({"path": _PATH}, ("path",), "remove a file, or a folder with all in it"),
    "rename": ({"old_path": _PATH, "new_path": _PATH}, ("old_path", "new_path"), "move a file or folder, never over another"),
}  # fmt: skip


def _verb(command: str) -> Any:
    def file(asked: Asked) -> dict[str, Any]:
        return handlers.file(asked.memory, {"command": command, **asked.given})

    return _create if command == "create" else file


def _create(asked: Asked) -> dict[str, Any]:
    """Write a file; the answer also says whether it was created or updated."""
    given = asked.given
    how = {name: given[name] for name in ("scope", "redact") if name in given}
    action = asked.memory.files.create(given["path"], given["file_text"], **how)
    return {"command": "create", "path": given["path"], "action": action}


def _told(command: str, asked: Asked, kept: dict[str, Any]) -> dict[str, Any]:
    """What was answered, from the request itself: a path may say as much as a text, and is not kept."""
    return {"command": command, "path": asked["new_path" if command == "rename" else "path"], **kept}


def _kept(body: dict[str, Any]) -> dict[str, Any]:
    return {"action": body["action"]} if "action" in body else {}


def _route(command: str) -> Route:
    properties, needed, summary = _NEEDS[command]
    answers = {"command": {"type": "string"}, "path": {"type": "string"}}
    own = {"view": {"text": {"type": "string"}}, "create": {"action": text("What was done.", "created", "updated")}}
    shape = answer(**answers, **own.get(command, {}))
    how = {"redact": REDACT} if command in ("create", "str_replace", "insert") else {}
    path = {"old_path": "/memories/plan.md", "new_path": "/memories/goals.md"} if command == "rename" else {}
    more = {name: 0 if name == "insert_line" else "Plan" for name in needed if not name.endswith("path")}
    return Route(
        "POST", f"/v1/files/{command}", READ if command == "view" else WRITE, _verb(command), summary, "project",
        takes=fields({**properties, "scope": SCOPE, **how}, *needed), answers=shape,
        example={**(path or {"path": "/memories/plan.md"}), **more, "scope": "agent"}, does=(f"files.{command}",),
        again=None if command == "view" else Replay(_kept, lambda asked, kept: _told(command, asked, kept)),
    )  # fmt: skip


ROUTES = tuple([_route(command) for command in _NEEDS])
