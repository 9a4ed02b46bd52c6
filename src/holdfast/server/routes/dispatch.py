"""Dispatch (A5): what an agent in a role should know for a task, for the caller or for a webhook."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import Any

from holdfast.access import Caller
from holdfast.access.policy import Role, denial_reason
from holdfast.errors import Denied, HoldfastError, Template, Unreached, UsageError, command
from holdfast.server.gateway import Target
from holdfast.server.idempotency import HEADER, Replay
from holdfast.server.route import NOWHERE, OTHERS, READ, Asked, Route
from holdfast.server.schema import answer, fields, number, rows, text

_BUDGET = 9000
_ENTRIES = 100
_SECONDS = 10.0


def dispatch(asked: Asked) -> dict[str, Any]:
    """Compose, and hand over."""
    whom = _whom(asked)
    told = {"agent": whom.agent, "task": asked["task"], "role_context": _composed(asked, whom), "request_id": asked.id}
    if asked.given.get("to", "caller") == "caller":
        return {**told, "delivered": "caller"}
    _hand_over(asked, told)
    return {**told, "delivered": "webhook"}


def _told_again(asked: Asked, kept: dict[str, Any]) -> dict[str, Any]:
    """Composed as things stand now, and handed over to nobody: that was done."""
    whom = _whom(asked)
    return {"agent": whom.agent, "task": asked["task"], "role_context": _composed(asked, whom), **kept}


def _whom(asked: Asked) -> Caller:
    """For whom it is composed: the caller, or the agent that somebody who manages them named."""
    name = asked.whose.agent
    if name is None or name == asked.caller.agent:
        return asked.caller
    agent = asked.gate.agent(name)
    return Caller(agent.name, agent.role, agent.tenant)


def _composed(asked: Asked, whom: Caller) -> dict[str, Any]:
    """The role, its skills, and the memory; a memory that may not or cannot be loaded is said to be missing, and blocks
    nothing."""
    role = asked.gate.role(whom.role)
    skills = list(role.skills)
    told: dict[str, Any] = {"role": whom.role, "skills": skills, "memory": "", "left_out": 0, "degraded": ""}
    try:
        told |= _memory(asked, whom, role)
    except HoldfastError as error:
        told["degraded"] = f"memory could not be loaded: {error.message}"
    except Exception as error:
        told["degraded"] = f"memory could not be loaded: {type(error).__name__}"
    named = f"Role: {told['role']}\nSkills: {', '.join(skills) or 'none'}\n"
    return {**told, "text": f"{named}\n{told['memory']}" if told["memory"] else named}


def _memory(asked: Asked, whom: Caller, role: Role) -> dict[str, Any]:
    """All of the agent's own within the budget, and of no other scope. Reading it is a decision of its own, with its row."""
    named = {} if whom is asked.caller else {"name": whom.agent}
    asked.gateway.gate.allow(asked.caller, READ, "agent", route=asked.route.name, request=asked.id, **named)
    reason = denial_reason(role, READ, "agent")  # what the agent itself may not read it is not told either
    if reason:
        fix = Template("Give it a role that may; ", command("role list"), " shows them")
        raise Denied(f"{whom.agent} may not {READ}: {reason}", fix)
    budget = asked.given.get("budget", _BUDGET)
    wide = {"brief_entries": _ENTRIES, "brief_scope_chars": budget, "brief_total_chars": budget}
    settings = asked.gateway.config_of(asked.caller).replace(**wide)
    with asked.gateway.lend(whom, Target(), ("agent",), settings) as memory:
        brief = memory.brief(remember=False, cap=budget)
    return {"memory": brief.text, "left_out": brief.left_out, "degraded": "memory is disabled" if brief.disabled else ""}


def _hand_over(asked: Asked, told: dict[str, Any]) -> None:
    """Once: whoever takes it may have begun with it, even if no answer came."""
    settings = asked.gateway.config_of(asked.caller)
    if not settings.webhook:
        raise UsageError("no webhook is set here", "Ask for it with to: caller, or have dispatch.webhook set")
    from holdfast.base.http_client import JsonClient  # urllib3 takes a while to import, and binds a socket on ::1 then

    webhook = JsonClient(settings.webhook, "the webhook", settings.webhook_key, _SECONDS)
    whose = {"X-Holdfast-Tenant": settings.tenant} if settings.store else {}
    answered = webhook.request("POST", "", told, {"Idempotency-Key": _key(asked, told), **whose})
    if not 200 <= answered.status < 300:
        raise Unreached(f"the webhook answered with status {answered.status}", "Look into its log by the request id")


def _key(asked: Asked, told: dict[str, Any]) -> str:
    """Another one for each hand-over, and the same for a request that comes again under a key of its caller's own, which no
    other agent and no other task can have."""
    key = asked.header(HEADER)
    own = ["key", key, told["agent"], told["task"]] if key else ["chance", os.urandom(16).hex()]
    return sha256(json.dumps([asked.caller.tenant, asked.caller.agent, *own]).encode()).hexdigest()


_CONTEXT = answer(
    role={"type": "string"}, skills=rows({"type": "string"}), memory={"type": "string"}, left_out={"type": "integer"},
    degraded={"type": "string"}, text={"type": "string"},
)  # fmt: skip

ROUTES = (
    Route(
        "POST", "/dispatch", "dispatch", dispatch, "what an agent should know for a task: role, skills, memory", NOWHERE,
        takes=fields(
            {
                **OTHERS,
                "task": text("What is to be done; handed on as it is.", minLength=1, maxLength=100_000),
                "budget": number("Most characters of memory; otherwise 9000.", 750, _BUDGET),
                "to": text("Who gets it; otherwise the caller.", "caller", "webhook"),
            },
            "task",
        ),
        answers=answer(
            agent={"type": "string"}, task={"type": "string"}, role_context=_CONTEXT, delivered={"type": "string"},
            request_id={"type": "string"},
        ),
        example={"task": "Review pull request 7 of acme/shop"}, for_model=True, others=True,
        again=Replay(lambda body: {"request_id": body["request_id"], "delivered": body["delivered"]}, _told_again),
    ),
)  # fmt: skip
