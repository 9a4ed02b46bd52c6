"""Agents, their tokens and roles (A1, A2), and the audit (A3), for the operator."""

from __future__ import annotations

from typing import Any

from holdfast.access import ACTIONS, Role
from holdfast.base import dates
from holdfast.base.dates import timestamp
from holdfast.errors import Conflict
from holdfast.ledger import audit_verify as chain
from holdfast.ledger.agents import Agent
from holdfast.ledger.audit import Entry
from holdfast.server.idempotency import ALL, Replay
from holdfast.server.problem import without_home
from holdfast.server.route import NDJSON, NOWHERE, PAGE, Asked, Lines, Reply, Route
from holdfast.server.routes.done import BY_NUMBER, cursor, page_asked
from holdfast.server.schema import answer, fields, number, page_of, ref, rows, text

_NAME = text("The agent's name.", pattern="^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$")
_DAYS = number("How long the token lasts; otherwise without end.", 1, 36_500)
_AGENT = answer(
    name={"type": "string"}, role={"type": "string"}, state=text("How it is.", "active", "revoked", "expired"),
    created={"type": "string"}, tokens=rows({"type": "object"}),
)  # fmt: skip
_WITH_TOKEN = answer(agent={"type": "string"}, role={"type": "string"}, token=text("Shown this once."))
_SHOWN = {"agent": "reviewer", "role": "code-review-engineer", "token": "hf_3k9d02ma_..."}


def list_(asked: Asked) -> dict[str, Any]:
    limit, last = asked.page
    found = [agent for agent in asked.gate.agents() if agent.name > last]
    return {"agents": [_told(agent) for agent in found[:limit]], "next": found[limit - 1].name if len(found) > limit else None}


def add(asked: Asked) -> Reply:
    agent, token = asked.gate.add(asked["name"], asked["role"], asked.given.get("days"), permit=asked.permit)
    return Reply({"agent": agent.name, "role": agent.role, "token": token}, 201)


def _shown_once(asked: Asked, kept: dict[str, Any]) -> dict[str, Any]:
    """It is done once, and so is the token shown: nobody has it any more."""
    fix = f"POST /agents/{kept['agent']}/token makes another"
    raise Conflict(f"this was done already, and the token of {kept['agent']} was shown then", fix)


_ONCE = Replay(lambda body: {"agent": body["agent"]}, _shown_once)


def rotate(asked: Asked) -> dict[str, Any]:
    given = asked.only("days", "grace_hours")
    agent, token = asked.gate.rotate(asked["name"], **given, permit=asked.permit)
    return {"agent": agent.name, "role": agent.role, "token": token}


def revoke(asked: Asked) -> dict[str, Any]:
    if asked["name"] == asked.caller.agent:
        raise Conflict("nobody shuts themselves out over HTTP", "Ask with the token of another who may manage agents")
    return _told(asked.gate.revoke(asked["name"], permit=asked.permit))


def roles(asked: Asked) -> dict[str, Any]:
    gate, home = asked.gate, asked.gateway.home
    faults = [{"role": fault.role, "message": fault.message, "fix": fault.fix} for fault in gate.faults()]
    broken = [without_home(one, home) for one in faults]
    return {"roles": [role.as_dict() for role in gate.roles()], "broken": broken}


def audit(asked: Asked) -> dict[str, Any]:
    filters = asked.only("agent", "action", "outcome")
    filters |= {name: dates.moment(asked.given[name], name) for name in ("since", "until") if name in asked.given}
    found, following = asked.gate.ledger.audit.list(**page_asked(asked), **filters)
    return {"audit": [entry.as_dict() for entry in found], "next": cursor(following)}


def export(asked: Asked) -> Reply:
    return Reply(Lines(entry.as_dict() for entry in asked.gate.ledger.audit.walk()))


def verify(asked: Asked) -> dict[str, Any]:
    return chain.verify(asked.gate.ledger.audit).as_dict()


def _told(agent: Agent) -> dict[str, Any]:
    tokens = [
        {"id": one.id, "created": timestamp(one.created), "expires": one.expires and timestamp(one.expires),
         "revoked": one.revoked and timestamp(one.revoked)}
        for one in agent.tokens
    ]  # fmt: skip
    state = agent.state(dates.clock())
    return {"name": agent.name, "role": agent.role, "state": state, "created": timestamp(agent.created), "tokens": tokens}


ROUTES = (
    Route(
        "GET", "/agents", "agents.manage", list_, "every agent with its role and the public parts of its tokens, by name",
        NOWHERE, {**PAGE, "cursor": _NAME}, answers=page_of(_AGENT, "agents"),
    ),
    Route(
        "POST", "/agents", "agents.manage", add, "let an agent in; its token is shown this once", NOWHERE,
        takes=fields({"name": _NAME, "role": text("Its role.", minLength=1, maxLength=100), "days": _DAYS}, "name", "role"),
        answers=_WITH_TOKEN, status=201, example={"name": "reviewer", "role": "code-review-engineer"}, shows=_SHOWN,
        again=_ONCE, permits=True,
    ),
    Route(
        "POST", "/agents/{name}/token", "agents.manage", rotate, "a new token for an agent; the old one ends", NOWHERE,
        {"name": _NAME},
        takes=fields({"days": _DAYS, "grace_hours": number("How long the old one stays good.", 0, 8760)}),
        answers=_WITH_TOKEN, example={"grace_hours": 24}, shows=_SHOWN, again=_ONCE, permits=True,
    ),
    Route(
        "DELETE", "/agents/{name}", "agents.manage", revoke, "end every token of an agent, at once; what it kept stays",
        NOWHERE, {"name": _NAME}, answers=_AGENT, again=ALL, permits=True,
    ),
    Route(
        "GET", "/roles", "roles.read", roles, "every role, and those whose file cannot be read", NOWHERE,
        answers=answer(roles=rows(ref(Role)), broken=rows({"type": "object"})),
    ),
    Route(
        "GET", "/audit", "audit.read", audit, "every decision, newest first", NOWHERE,
        {
            "agent": _NAME, "action": text("Only this action.", *ACTIONS), "outcome": text("Only so.", "allowed", "denied"),
            "since": text("From this moment on.", minLength=1), "until": text("Before this moment.", minLength=1),
            **BY_NUMBER,
        },
        answers=page_of(ref(Entry), "audit"),
    ),
    Route(
        "GET", "/audit/verify", "audit.read", verify, "whether the chain of decisions is whole", NOWHERE,
        answers=ref(chain.Verdict),
    ),
    Route(
        "GET", "/audit/export", "audit.read", export, "every decision, oldest first, one a line", NOWHERE, kind=NDJSON,
        answers=ref(Entry),
    ),
)  # fmt: skip
