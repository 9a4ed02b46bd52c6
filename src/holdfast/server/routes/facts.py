"""Facts and the graph they make."""

from __future__ import annotations

from typing import Any

from holdfast.api import pagination
from holdfast.formats.facts import reads_back
from holdfast.mcp.handlers import ORIGINS
from holdfast.models import Fact, FactSet
from holdfast.safety import validate
from holdfast.server.idempotency import Replay, as_it_stands, ids
from holdfast.server.route import EVERYWHERE, PAGE, READ, SCOPE, SCOPED, WRITE, Asked, Reply, Route
from holdfast.server.routes.notes import AS_OF, MADE_FROM, REDACT
from holdfast.server.schema import answer, fields, flag, number, page_of, ref, rows, text
from holdfast.verbs.graph import Edge, Graph

_SUBJECT = text("What it is about.", minLength=1, maxLength=500)
_LABEL = text("Which property of it.", minLength=1, maxLength=200)


def list_(asked: Asked) -> dict[str, Any]:
    found, following = pagination.facts(
        asked.memory, *asked.page, **asked.only("subject", "label", "as_of", "scope", "history")
    )
    return {"facts": [fact.as_dict() for fact in found], "next": following}


def state(asked: Asked) -> Reply:
    stated = asked.memory.fact(
        asked["subject"], asked["label"], asked["value"], **asked.only("on", "many", "scope", "origin", "made_from", "redact")
    )
    return Reply(stated.as_dict(), 201 if stated.action == "created" else 200)


def _kept(body: dict[str, Any]) -> dict[str, Any]:
    days = [one["valid_from"] for one in body["retired"]]
    told = {"action": body["action"], "redacted": body["redacted"]}
    return {**told, **ids(body["note"]), "from": body["fact"]["valid_from"], "retired": days}


def _stated_before(asked: Asked, kept: dict[str, Any]) -> Any:
    """The same answer as the first time, from the lines as they stand now; where they are gone, from the request."""
    note, redacted = as_it_stands(asked, kept), tuple(kept.get("redacted", ()))
    subject, label, value, _ = validate.fact(
        asked["subject"], asked["label"], asked["value"], bool(redacted), reads_back=reads_back
    )
    every = asked.memory.facts(subject, label=label, history=True)
    lines = [one for one in every if one.scope.kind == kept["scope"]]
    said = [one for one in lines if one.value == value and one.valid_from == kept["from"]]
    if not said:
        said = [Fact(subject, label, value, kept["from"], scope=note.scope)]
    retired = [one for one in lines if one.valid_from in kept["retired"] and one != said[0]]
    return FactSet(kept["action"], said[0], tuple(retired), note, redacted).as_dict()


_STATED_AGAIN = Replay(_kept, _stated_before)


def graph(asked: Asked) -> dict[str, Any]:
    return asked.memory.graph(asked["entity"], **asked.only("depth", "as_of", "scope")).as_dict()


def path(asked: Asked) -> dict[str, Any]:
    found = asked.memory.path(asked["from"], asked["to"], **asked.only("as_of", "scope"))
    return {"path": [edge.as_dict() for edge in found]}


ROUTES = (
    Route(
        "GET", "/v1/facts", READ, list_, "what is stated, now or as of a day, by subject and label", EVERYWHERE,
        {
            "subject": _SUBJECT, "label": _LABEL, "as_of": AS_OF, "scope": SCOPED,
            "history": flag("Everything that ever was stated."), **PAGE,
        },
        answers=page_of(ref(Fact), "facts"), does=("facts",),
    ),
    Route(
        "POST", "/v1/facts", WRITE, state, "state a dated fact; the one it replaces is struck through and kept", "project",
        takes=fields(
            {
                "subject": _SUBJECT, "label": _LABEL,
                "value": text("Its value; [[Name]] links to another subject.", minLength=1),
                "on": text("Since when, a day; otherwise today."), "many": flag("Beside the values it has."), "scope": SCOPE,
                "origin": text("Where the agent has it from.", *ORIGINS), "made_from": MADE_FROM, "redact": REDACT,
            },
            "subject", "label", "value",
        ),
        answers=ref(FactSet), status=201, again=_STATED_AGAIN, does=("fact",),
        example={"subject": "Telegram", "label": "status", "value": "enabled", "on": "2026-03-27", "scope": "agent"},
    ),
    Route(
        "GET", "/v1/graph", READ, graph, "what is linked with something by [[Name]] in facts", EVERYWHERE,
        {
            "entity": text("What it is about, by any of its names.", minLength=1),
            "depth": number("So many links away; otherwise 1.", 0, 10), "as_of": AS_OF, "scope": SCOPED,
        },
        ("entity",), answers=ref(Graph), does=("graph",),
    ),
    Route(
        "GET", "/v1/graph/path", READ, path, "the shortest way from one entity to another; empty if there is none", EVERYWHERE,
        {
            "from": text("Where it begins.", minLength=1), "to": text("Where it ends.", minLength=1), "as_of": AS_OF,
            "scope": SCOPED,
        },
        ("from", "to"), answers=answer(path=rows(ref(Edge))), does=("path",),
    ),
)  # fmt: skip
