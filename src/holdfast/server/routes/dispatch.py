"""Dispatch: what an agent in a role should know for a task, for the caller or for a webhook."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.access import Caller
from holdfast.api.memory import context_of
from holdfast.errors import HoldfastError, Unreached, UsageError
from holdfast.server.gateway import Target
from holdfast.server.idempotency import KEY_HEADER, Replay
from holdfast.server.models import NAME_PATTERN, OtherAgent, RequestModel, ResponseModel, choices
from holdfast.server.problem import in_request, plain
from holdfast.server.route import JSON, READ, AuthorizedRequest, Route
from holdfast.verbs.brief import select

_DEFAULT_CHARS = 9000
_MIN_CHARS, _MAX_CHARS = 750, 400_000
_WEBHOOK_SECONDS = 10.0


class Dispatch(RequestModel, kw_only=True):
    agent: OtherAgent | UnsetType = UNSET
    project: Annotated[
        str,
        Meta(description="The task's project. It is granted to the agent; also needs `agents.manage`.", pattern=NAME_PATTERN),
    ] | UnsetType = UNSET  # fmt: skip
    task: Annotated[str, Meta(description="The task, passed on unchanged.", min_length=1, max_length=100_000)]
    budget: Annotated[int, Meta(description="Maximum characters of `memory`. Default: 9000.", ge=_MIN_CHARS, le=_MAX_CHARS)] = (
        _DEFAULT_CHARS
    )
    to: Annotated[
        Literal["caller", "webhook"], choices("Where to send it. Default: back to the caller.", ("caller", "webhook"))
    ] = "caller"  # fmt: skip


class RoleContext(ResponseModel, kw_only=True):
    role: str
    skills: list[str]
    memory: Annotated[str, Meta(description="Notes as one data block within `budget`. Its last line says what was left out.")]
    notes: Annotated[int, Meta(description="Number of notes that `memory` contains in full.")]
    shortened: Annotated[
        list[str], Meta(description="Notes that `memory` lists by title only, and file overviews that were cut.")
    ]
    left_out: Annotated[int, Meta(description="Number of notes not in `memory`, including quarantined notes.")]
    degraded: Annotated[str, Meta(description="Why the memory is missing; empty if it is not missing.")]
    text: Annotated[str, Meta(description="Role, skills and memory as one text for the agent.")]


class Dispatched(ResponseModel, kw_only=True):
    agent: str
    task: str
    role_context: RoleContext
    delivered: str
    request_id: str


def dispatch(request: AuthorizedRequest, params: Dispatch) -> Dispatched:
    """Compose what the agent should know, and hand it over."""
    agent = _receiving_agent(request)
    if params.project is not UNSET:
        request.gate.grant_dispatched_project(
            request.caller, agent.agent, params.project, route=request.route.name, request=request.id
        )
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
    context = RoleContext(
        role=agent.role, skills=list(role.skills), memory="", notes=0, shortened=[], left_out=0, degraded="", text="",
    )  # fmt: skip
    try:
        _load_memory(request, params, agent, context)
    except HoldfastError as error:
        context.degraded = plain(f"memory could not be loaded: {error.whole().render(in_request)}", request.gateway.home)
    except Exception as error:
        context.degraded = f"memory could not be loaded: {type(error).__name__}"
    heading = f"Role: {context.role}\nSkills: {', '.join(context.skills) or 'none'}\n"
    context.text = f"{heading}\n{context.memory}" if context.memory else heading
    return context


def _load_memory(request: AuthorizedRequest, params: Dispatch, agent: Caller, context: RoleContext) -> None:
    """Compose all notes of the agent's own scope within the budget. Reading them is a decision of its own, with one audit row:
    an agent is not shown what its own role may not read, also if another agent dispatches for it."""
    about: dict[str, Any] = {"route": request.route.name, "request": request.id}
    if agent is request.caller:
        request.gateway.gate.allow(agent, READ, "agent", **about)
    else:
        request.gateway.gate.allow_for(request.caller, agent, READ, "agent", **about)
    role = request.gate.role(agent.role)
    with request.gateway.open_memory(agent, role, Target(), ("agent",)) as memory:
        if not memory.config.enabled:
            context.degraded = "memory is disabled"
            return
        composed = select.compose_everything(context_of(memory), params.budget)
    context.memory, context.left_out = composed.brief.text, composed.brief.left_out
    context.notes, context.shortened = len(composed.whole), [*composed.brief.listed, *composed.cut]


def _post_to_webhook(request: AuthorizedRequest, dispatched: Dispatched) -> None:
    """Send it once: the receiver may have begun with it even if no answer came."""
    settings = request.gateway.config_of(request.caller)
    if not settings.webhook:
        raise UsageError("no webhook is set on this server", 'Send `"to": "caller"`, or set dispatch.webhook on the server')
    from holdfast.base.http_client import JsonClient  # urllib3 is slow to import, and binds a socket on ::1 then

    webhook = JsonClient(settings.webhook, "the webhook", settings.webhook_key, _WEBHOOK_SECONDS)
    tenant = {"X-Holdfast-Tenant": settings.tenant} if settings.store else {}
    body = {name: value for name, value in dispatched.as_dict().items() if name != "delivered"}
    response = webhook.request("POST", "", body, {"Idempotency-Key": _webhook_key(request, dispatched), **tenant})
    if not 200 <= response.status < 300:
        raise Unreached(f"the webhook answered with status {response.status}", "Look for the request id in its log")


def _webhook_key(request: AuthorizedRequest, dispatched: Dispatched) -> str:
    """Return a new key, or the same one for the same request under the caller's own key; no other agent or task has it."""
    key = request.header(KEY_HEADER)
    own = ["key", key, dispatched.agent, dispatched.task] if key else ["chance", os.urandom(16).hex()]
    return sha256(json.dumps([request.caller.tenant, request.caller.agent, *own]).encode()).hexdigest()


ROUTES = (
    Route(
        "POST", "/dispatch", dispatch,
        is_slow=True,
        action="dispatch", summary="compose the context of an agent for a task: role, skills and memory",
        params=Dispatch, reads=JSON, example={"task": "Review pull request 7 of acme/shop"},
        answers=Dispatched, for_model=True, may_name_agent=True, problems=("not_found", "unreached"),
        replay=Replay(
            lambda body: {"request_id": body["request_id"], "delivered": body["delivered"]}, _rebuild_dispatched
        ),
    ),
)  # fmt: skip
