"""The platform's own memory route (A4): key and value, a note in the agent's scope, the same thing through every door."""

from __future__ import annotations

from typing import Any

from holdfast.api import pagination
from holdfast.errors import NotFound
from holdfast.mcp.handlers import QUARANTINED
from holdfast.models import Note
from holdfast.server.idempotency import Replay
from holdfast.server.route import READ, WRITE, Asked, Route
from holdfast.server.routes.notes import KEY, REDACT
from holdfast.server.schema import answer, fields, rows, text

_PAIR = answer(key={"type": "string"}, value={"type": "string"}, updated_at={"type": "string"})
_SHOWN = {"key": "testing", "value": "Use pytest.", "updated_at": "2026-05-02T09:00:00Z"}


def get(asked: Asked) -> dict[str, Any]:
    if "key" in asked.given:
        try:
            return {"memory": [_pair(asked.memory.get(asked["key"], scope="agent"))]}
        except NotFound:
            return {"memory": []}
    return {"memory": [_pair(note) for note in pagination.every(asked.memory, "agent")]}


def put(asked: Asked) -> dict[str, Any]:
    stored = asked.memory.store(asked["value"], key=asked["key"], scope="agent", **asked.only("redact"))
    return {**_pair(stored.note), "action": stored.action}


def _pair(note: Note) -> dict[str, Any]:
    """A note as key and value; what is hidden in it or in quarantine is said, and of nearly every note there is nothing to."""
    hidden = {"hidden": list(note.hidden)} if note.hidden else {}
    held = {"quarantined": QUARANTINED} if note.quarantined else {}
    return {"key": note.key, "value": note.text, "updated_at": note.updated, **hidden, **held}


def _kept(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in ("key", "updated_at", "action")}


def _put_before(asked: Asked, kept: dict[str, Any]) -> dict[str, Any]:
    return {**kept, "value": asked["value"]}


ROUTES = (
    Route(
        "GET", "/gateway/memory", READ, get, "the caller's own memory, as keys and values", "agent",
        {"key": KEY}, answers=answer(memory=rows(_PAIR)), shows={"memory": [_SHOWN]}, for_model=True,
    ),
    Route(
        "POST", "/gateway/memory", WRITE, put, "keep a value under a key; the same again changes nothing", "agent",
        takes=fields({"key": KEY, "value": text("What to remember.", minLength=1), "redact": REDACT}, "key", "value"),
        answers=answer(**_PAIR["properties"], action=text("What it did.", "created", "updated", "unchanged")),
        example={"key": "testing", "value": "Use pytest."}, shows={**_SHOWN, "action": "created"},
        again=Replay(_kept, _put_before), for_model=True,
    ),
)  # fmt: skip
