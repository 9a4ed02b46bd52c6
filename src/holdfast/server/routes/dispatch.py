"""Dispatch: what an agent in a role should know for a task, for the caller or for a webhook."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.access import Caller
from holdfast.access.policy import Role, denial_reason
from holdfast.errors import Denied, HoldfastError, Template, Unreached, UsageError, command
from holdfast.server.gateway import Target
from holdfast.server.idempotency import KEY_HEADER, Replay
from holdfast.server.models import OtherAgent, RequestModel, ResponseModel, choices
from holdfast.server.route import JSON, READ, AuthorizedRequest, Route

_MAX_CHARS = 9000
_MAX_ENTRIES = 100
_WEBHOOK_SECONDS = 10.0


class Dispatch(RequestModel, kw_only=True):
    agent: OtherAgent | UnsetType = UNSET
    task: Annotated[str, Meta(description="What is to be done; handed on as it is.", min_length=1, max_length=100_000)]
    budget: Annotated[int, Meta(description="Most characters of memory; otherwise 9000.", ge=750, le=_MAX_CHARS)] = _MAX_CHARS
    to: Annotated[
        Literal["caller", "webhook"], choices("Who gets it; otherwise the caller.", ("caller", "webhook"))
    ] = "caller"  # fmt: skip


class RoleContext(ResponseModel, kw_only=True):
    role: str
    skills: list[str]
    memory: str
    left_out: int
    degraded: str
    text: str


class Dispatched(ResponseModel, kw_only=True):
    agent: str
    task: str
    role_context: RoleContext
    delivered: str
    request_id: str


def dispatch(request: AuthorizedRequest, params: Dispatch) -> Dispatched:
    """Compose what the agent should know, and hand it over."""
    agent = _receiving_agent(request)
    dispatched = Dispatched(
        agent=agent.agent, task=params.task, role_context=_compose(request, params, agent), delivered="caller",
        request_id=request.id,
    )  # fmt: skip
    if params.to == "webhook":
        _post_to_webhook(request, dispatched)
        dispatched.delivered = "webhook"
    return dispatched


def _rebuild_dispatched(request: AuthorizedRequest, params: Dispatch, kept: dict[str, Any]) -> Dispatched:
    """Compose it again from the current memory; the webhook has had it and does not get it twice."""
    agent = _receiving_agent(request)
    return Dispatched(agent=agent.agent, task=params.task, role_context=_compose(request, params, agent), **kept)


def _receiving_agent(request: AuthorizedRequest) -> Caller:
    """Return the caller, or the agent that a caller who manages agents named."""
    name = request.target.agent
    if name is None or name == request.caller.agent:
        return request.caller
    agent = request.gate.agent(name)
    return Caller(agent.name, agent.role, agent.tenant)


def _compose(request: AuthorizedRequest, params: Dispatch, agent: Caller) -> RoleContext:
    """Return the role, its skills and the memory; `degraded` says why a memory is missing."""
    role = request.gate.role(agent.role)
    context = RoleContext(role=agent.role, skills=list(role.skills), memory="", left_out=0, degraded="", text="")
    try:
        _load_memory(request, params, agent, role, context)
    except HoldfastError as error:
        context.degraded = f"memory could not be loaded: {error.message}"
    except Exception as error:
        context.degraded = f"memory could not be loaded: {type(error).__name__}"
    heading = f"Role: {context.role}\nSkills: {', '.join(context.skills) or 'none'}\n"
    context.text = f"{heading}\n{context.memory}" if context.memory else heading
    return context


def _load_memory(request: AuthorizedRequest, params: Dispatch, agent: Caller, role: Role, context: RoleContext) -> None:
    """Brief the agent's own scope within the budget. Reading it is a decision of its own, with an audit row."""
    about = {} if agent is request.caller else {"name": agent.agent}
    request.gateway.gate.allow(request.caller, READ, "agent", route=request.route.name, request=request.id, **about)
    reason = denial_reason(role, READ, "agent")  # an agent is not shown what it may not read itself
    if reason:
        fix = Template("Give it a role that may; ", command("role list"), " shows them")
        raise Denied(f"{agent.agent} may not {READ}: {reason}", fix)
    limits = {"brief_entries": _MAX_ENTRIES, "brief_scope_chars": params.budget, "brief_total_chars": params.budget}
    settings = request.gateway.config_of(request.caller).replace(**limits)
    with request.gateway.open_memory(agent, Target(), ("agent",), settings=settings) as memory:
        brief = memory.brief(remember=False, cap=params.budget)
    context.memory, context.left_out = brief.text, brief.left_out
    context.degraded = "memory is disabled" if brief.disabled else ""


def _post_to_webhook(request: AuthorizedRequest, dispatched: Dispatched) -> None:
    """Send it once: the receiver may have begun with it even if no answer came."""
    settings = request.gateway.config_of(request.caller)
    if not settings.webhook:
        raise UsageError("no webhook is set here", "Ask for it with to: caller, or have dispatch.webhook set")
    from holdfast.base.http_client import JsonClient  # urllib3 is slow to import, and binds a socket on ::1 then

    webhook = JsonClient(settings.webhook, "the webhook", settings.webhook_key, _WEBHOOK_SECONDS)
    tenant = {"X-Holdfast-Tenant": settings.tenant} if settings.store else {}
    body = {name: value for name, value in dispatched.as_dict().items() if name != "delivered"}
    response = webhook.request("POST", "", body, {"Idempotency-Key": _webhook_key(request, dispatched), **tenant})
    if not 200 <= response.status < 300:
        raise Unreached(f"the webhook answered with status {response.status}", "Look into its log by the request id")


def _webhook_key(request: AuthorizedRequest, dispatched: Dispatched) -> str:
    """Return a new key, or the same one for the same request under the caller's own key; no other agent or task has it."""
    key = request.header(KEY_HEADER)
    own = ["key", key, dispatched.agent, dispatched.task] if key else ["chance", os.urandom(16).hex()]
    return sha256(json.dumps([request.caller.tenant, request.caller.agent, *own]).encode()).hexdigest()


ROUTES = (
    Route(
        "POST", "/dispatch", dispatch,
        is_slow=True,
        action="dispatch", summary="what an agent should know for a task: role, skills, memory",
        params=Dispatch, reads=JSON, example={"task": "Review pull request 7 of acme/shop"},
        answers=Dispatched, for_model=True, may_name_agent=True,
        replay=Replay(
            lambda body: {"request_id": body["request_id"], "delivered": body["delivered"]}, _rebuild_dispatched
        ),
    ),
)  # fmt: skip
