"""Asking: recall, search, read, facts, the graph, briefings, and how much there is."""

from __future__ import annotations

from typing import Any

from holdfast.models import MODES, PARTS, SCOPES, SEARCH_MODES, SORTS, TYPES, Answer
from holdfast.server.route import EVERYWHERE, READ, Asked, Route
from holdfast.server.routes.notes import AS_OF, KNOWN_AT, TAGS
from holdfast.server.schema import Schema, answer, fields, flag, number, ref, rows, text
from holdfast.verbs.brief.render import Brief
from holdfast.verbs.read import Piece, Snippet

_LIMIT = number("At most so many; otherwise 10.", 1, 100)
_AMOUNTS = ("passages", "facts", "sessions", "turns", "quarantined", "waiting", "index_bytes", "ledger_bytes")
_NOT_TOLD = "null where it is not told: what is counted over the whole home is the operator's to know."
_STRING: Schema = {"type": "string"}
_FILTERS = ("scope", "type", "tags", "limit", "as_of", "known_at", "mode", "sort", "kind", "now", "explain")


def recall(asked: Asked) -> dict[str, Any]:
    return asked.memory.recall(asked.given.get("query", ""), **asked.only(*_FILTERS)).as_dict()


def search(asked: Asked) -> dict[str, Any]:
    return asked.memory.search(asked["query"], **asked.only("limit", "mode")).as_dict()


def read(asked: Asked) -> dict[str, Any]:
    return asked.memory.read(asked["path"], asked.given.get("from", 1), asked.given.get("lines")).as_dict()


def brief(asked: Asked) -> dict[str, Any]:
    return asked.memory.brief(**asked.only("prompt", "again", "cap", "explain", "mode", "remember")).as_dict()


def status(asked: Asked) -> dict[str, Any]:
    """How much there is of what the caller may see; whose else memory is there, how much and where, is nobody's business."""
    told = asked.memory.status(whole=asked.caller.is_person and asked.given.get("whole", True))
    return {name: value for name, value in told.as_dict().items() if name not in ("home", "shelf", "project")}


ROUTES = (
    Route(
        "POST", "/v1/recall", READ, recall, "find what is known about something", EVERYWHERE,
        takes=fields({
            "query": text("What you want to know, in plain words. May be empty with mode recent.", maxLength=10_000),
            "scope": text("Only there; otherwise everything you may see. `all` is the operator's: every scope of the home.",
                          *SCOPES, "all"),
            "type": text("Only of this type.", *TYPES), "tags": TAGS, "limit": _LIMIT, "as_of": AS_OF,
            "known_at": KNOWN_AT, "mode": text("How to look. Otherwise hybrid: by words and by meaning.", *MODES),
            "sort": text("What comes first. Otherwise relevance.", *SORTS),
            "kind": text("Only notes, files, facts, or turns of earlier sessions.", *PARTS),
            "now": text("When it is, for questions such as `last week`."),
            "explain": flag("Why each hit is where it is; with mode recent its date alone says."),
        }),
        answers=ref(Answer), example={"query": "which test runner", "mode": "keyword"},
        shows={"hits": [], "mode": "keyword", "degraded": False, "reason": "", "disabled": False}, does=("recall",),
    ),
    Route(
        "POST", "/v1/search", READ, search, "pieces of notes and files that match: path, lines, score, snippet", EVERYWHERE,
        takes=fields({
            "query": text("What to look for.", minLength=1, maxLength=10_000), "limit": _LIMIT,
            "mode": text("How to look. Otherwise hybrid: by words and by meaning.", *SEARCH_MODES),
        }, "query"),
        answers=answer(
            results=rows(ref(Snippet)), mode=_STRING, degraded={"type": "boolean"}, reason=_STRING, disabled={"type": "boolean"}
        ),
        example={"query": "pytest"}, does=("search",),
    ),
    Route(
        "GET", "/v1/read", READ, read, "a piece of a file by the path that hits show; a missing one is empty text", EVERYWHERE,
        {
            "path": text("The path, as hits cite it.", minLength=1), "from": number("First line, from 1.", 1, 10**9),
            "lines": number("So many lines.", 1, 10**9),
        },
        ("path",),
        answers=ref(Piece), does=("read",),
    ),
    Route(
        "POST", "/v1/brief", READ, brief, "what an agent is told when it starts, or with a prompt", EVERYWHERE,
        takes=fields({
            "prompt": text("What bears on this and was not shown to the session yet.", maxLength=100_000),
            "again": flag("Also what was shown to the session."), "cap": number("At most so many characters.", 750, 9000),
            "explain": flag("Why each note is in or out; not counted as shown."),
            "mode": text("With a prompt: how to look.", "keyword", "hybrid"),
            "remember": flag("Whether to remember what this session was shown; otherwise yes."),
        }),
        answers=ref(Brief), example={"cap": 3000}, for_model=True, does=("brief",),
    ),
    Route(
        "GET", "/v1/status", READ, status, "how much there is in the scopes you may see", EVERYWHERE,
        {"whole": flag("To the operator, of the whole home; otherwise yes. Nobody else is told of more than their scopes.")},
        answers=fields(
            {
                "enabled": {"type": "boolean"}, "scopes": rows({"type": "object"}),
                **{name: {"type": ["integer", "null"], "description": _NOT_TOLD} for name in _AMOUNTS},
            },
            "enabled", "scopes", *_AMOUNTS, closed=False,
        ),
        does=("status",),
    ),
)  # fmt: skip
