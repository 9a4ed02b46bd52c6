"""Where notes came from: what waits for a person, what one source touched, and where a note went."""

from __future__ import annotations

from typing import Any

from holdfast.api import pagination
from holdfast.api.memory import context_of
from holdfast.errors import NotFound, UsageError
from holdfast.models import Forgotten, Note, Scope
from holdfast.server.idempotency import ALL, NOTE
from holdfast.server.route import EVERYWHERE, PAGE, READ, SCOPED, WRITE, Asked, Route
from holdfast.server.routes.notes import IN
from holdfast.server.schema import fields, flag, number, page_of, ref, text
from holdfast.verbs.forget_source import Swept
from holdfast.verbs.trace import Trace

_REVIEW = "memory.review"
_SEEN = fields({"version": text("The `version` of the note you read.", minLength=1, maxLength=100)}, "version")
_PAGE = page_of(ref(Note), "notes")
_WAITING = {
    **_PAGE, "properties": {**_PAGE["properties"], "waiting": number("How many there are in all.", 0, 10**9)},
    "required": [*_PAGE["required"], "waiting"],
}  # fmt: skip
_OF_ALL = flag("Of every agent, project and session; a person's to ask, and takes `agents.manage` too.")
_EXAMPLE = {"version": "5f1d7a84db22e8d6b2d5b1b6ad2b3c5a"}


def waiting(asked: Asked) -> dict[str, Any]:
    if asked.given.get("everywhere"):
        if asked.whose.agent is not None:
            raise UsageError("`everywhere` and `agent` contradict each other", "Give one of them")
        asked.gate.allow(asked.caller, "agents.manage", route=asked.route.name, request=asked.id)
    elif asked.whose.agent is not None:
        _must_be_somebody(asked, asked.whose.agent)
    found, following, count = pagination.waiting(asked.memory, *asked.page, **asked.only("scope", "everywhere"))
    return {"notes": [note.as_dict() for note in found], "next": following, "waiting": count}


def _must_be_somebody(asked: Asked, agent: str) -> None:
    """One that was let in, or that has kept something here before there was a gateway."""
    try:
        asked.gate.agent(agent)
    except NotFound:
        if not context_of(asked.memory).store.has(Scope("agent", agent).folder):
            raise


def approve(asked: Asked) -> dict[str, Any]:
    return asked.memory.approve(asked["key"], scope=asked["scope"], expected=asked["version"]).as_dict()


def reject(asked: Asked) -> dict[str, Any]:
    return asked.memory.reject(asked["key"], scope=asked["scope"], expected=asked["version"]).as_dict()


def trace(asked: Asked) -> dict[str, Any]:
    return asked.memory.trace(asked["key"], scope=asked["scope"]).as_dict()


def forget_source(asked: Asked) -> dict[str, Any]:
    return asked.memory.forget_source(asked["source"], **asked.only("revert", "dry_run", "everywhere")).as_dict()


ROUTES = (
    Route(
        "GET", "/v1/review", _REVIEW, waiting, "what is in quarantine: too little trusted to be told, and approved by nobody",
        EVERYWHERE, {"scope": SCOPED, "everywhere": _OF_ALL, **PAGE}, answers=_WAITING, others=True, does=("review",),
    ),
    Route(
        "POST", "/v1/review/{scope}/{key}/approve", _REVIEW, approve, "let the text that you read be told; a person's to do",
        "project", IN, takes=_SEEN, answers=ref(Note), example=_EXAMPLE, others=True, again=NOTE, does=("approve",),
    ),
    Route(
        "POST", "/v1/review/{scope}/{key}/reject", _REVIEW, reject, "forget a note that you read; a person's to do",
        "project", IN, takes=_SEEN, answers=ref(Forgotten), example=_EXAMPLE, others=True, again=ALL, does=("reject",),
    ),
    Route(
        "GET", "/v1/trace/{scope}/{key}", READ, trace,
        "where a note came from, to whom it was told, what was made from it, and what people decided", "project", IN,
        answers=ref(Trace), others=True, does=("trace",),
    ),
    Route(
        "POST", "/v1/forget-source", WRITE, forget_source, "forget all that came from a source, be it by way of other notes",
        EVERYWHERE,
        takes=fields(
            {
                "source": text(
                    "An address or its beginning, a path, session:ID, client:NAME, agent:NAME, origin:web or note:KEY.",
                    minLength=1, maxLength=2000,
                ),
                "revert": flag("A note with an older text that did not come from it gets that back instead."),
                "dry_run": flag("Only say what would be forgotten."),
                "everywhere": flag("In all scopes there are; a person's to say."),
            },
            "source",
        ),
        answers=ref(Swept), example={"source": "https://blog.example/post", "dry_run": True}, again=ALL,
        does=("forget_source",),
    ),
)  # fmt: skip
