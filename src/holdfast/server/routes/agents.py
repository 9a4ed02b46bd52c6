"""Agents, their tokens and roles, and the audit, for the operator."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.access import ACTIONS, Role
from holdfast.access.grants import KINDS, MAX_GRANTS, PROJECT, REPOSITORY, SESSION, make_grants
from holdfast.access.policy import RECORDED_ACTIONS
from holdfast.base import dates
from holdfast.base.dates import format_timestamp
from holdfast.errors import Conflict
from holdfast.ledger import audit_verify
from holdfast.ledger.agents import Agent, Grant
from holdfast.ledger.audit import ChainedEntry, Entry
from holdfast.server.idempotency import REPLAY_WHOLE, Replay
from holdfast.server.models import (
    NAME_PATTERN,
    PAGE_LIMIT,
    AgentName,
    NextCursor,
    PageLimit,
    RequestModel,
    ResponseModel,
    Timestamp,
    choices,
    moment,
)
from holdfast.server.problem import without_home
from holdfast.server.route import JSON, NDJSON, AuthorizedRequest, Reply, Route

_MANAGE = "agents.manage"
TokenDays = Annotated[int, Meta(description="Days until the token expires. Default: never.", ge=1, le=36_500)]
ActionName = Literal[
    "agent.memory.read", "agent.memory.write", "memory.purge", "memory.review", "memory.export", "home.care", "settings.manage",
    "audit.read", "agents.manage", "roles.read", "metrics.read", "github.review", "github.review.comment",
    "github.review.approve", "github.review.request_changes", "dispatch", "done.read", "done.write", "authenticate",
    "audit.prune",
]  # fmt: skip


GrantKind = Annotated[Literal["project", "session", "repository"], choices("What the pattern matches.", KINDS)]
_NAMES = r"(?!.*\*\*)[A-Za-z0-9_*-][A-Za-z0-9._*-]{0,127}"
_REPOSITORIES = r"(?!.*\*\*)(?:\*|[A-Za-z0-9*][A-Za-z0-9*-]{0,38}/(?!\.*$)[A-Za-z0-9._*-]{1,100})"
Pattern = Annotated[
    str,
    Meta(
        description="A project or session such as `acme-*`, or a repository such as `acme/*`. `*` matches any characters.",
        pattern=f"^{_NAMES}$|^{_REPOSITORIES}$",
    ),
]
NamePatterns = Annotated[list[Annotated[str, Meta(pattern=f"^{_NAMES}$")]], Meta(max_length=MAX_GRANTS)]
RepositoryPatterns = Annotated[list[Annotated[str, Meta(pattern=f"^{_REPOSITORIES}$")]], Meta(max_length=MAX_GRANTS)]
Since = Annotated[str, moment("At or after this time.")]
Until = Annotated[str, moment("Before this time.")]


class ListAgents(RequestModel, kw_only=True):
    limit: PageLimit = PAGE_LIMIT
    cursor: Annotated[str, Meta(description="The `next` of the previous page.", pattern=NAME_PATTERN)] = ""


class AddAgent(RequestModel, kw_only=True):
    name: AgentName
    role: Annotated[str, Meta(description="The agent's role.", min_length=1, max_length=100)]
    days: TokenDays | UnsetType = UNSET
    projects: Annotated[NamePatterns, Meta(description="Projects to grant.")] = []
    sessions: Annotated[NamePatterns, Meta(description="Sessions to grant, in addition to the agent's own.")] = []
    repositories: Annotated[RepositoryPatterns, Meta(description="Repositories to grant for reviews.")] = []


class RotateToken(RequestModel, kw_only=True):
    name: AgentName
    days: Annotated[
        int, Meta(description="Days until the token expires. Default: the lifetime of the old token.", ge=1, le=36_500)
    ] | UnsetType = UNSET  # fmt: skip
    grace_hours: (
        Annotated[int, Meta(description="Hours that the old token stays valid. Default: 0.", ge=0, le=8760)] | UnsetType
    ) = UNSET


class RevokeAgent(RequestModel, kw_only=True):
    name: AgentName


class ListGrants(RequestModel, kw_only=True):
    name: AgentName


class ChangeGrant(RequestModel, kw_only=True):
    schema_rules: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"kind": {"const": REPOSITORY}}},
        "then": {"properties": {"pattern": {"pattern": f"^{_REPOSITORIES}$"}}},
        "else": {"properties": {"pattern": {"pattern": f"^{_NAMES}$"}}},
    }
    name: AgentName
    kind: GrantKind
    pattern: Pattern


class ListAudit(RequestModel, kw_only=True):
    agent: AgentName | UnsetType = UNSET
    action: Annotated[ActionName, choices("Only this action.", (*ACTIONS, *RECORDED_ACTIONS))] | UnsetType = UNSET
    outcome: Annotated[Literal["allowed", "denied"], choices("Only this outcome.", ("allowed", "denied"))] | UnsetType = UNSET
    since: Since | UnsetType = UNSET
    until: Until | UnsetType = UNSET
    token: Annotated[
        str, Meta(description="Only requests with the token of this id.", pattern="^[A-Za-z0-9_-]{1,64}$")
    ] | UnsetType = UNSET  # fmt: skip
    address: (
        Annotated[str, Meta(description="Only requests from this address.", pattern="^[0-9A-Fa-f.:]{1,64}$")] | UnsetType
    ) = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: Annotated[str, Meta(description="The `next` of the previous page.", pattern="^[0-9]{1,18}$")] = ""


class Used(ResponseModel, kw_only=True):
    used: int
    limit: Annotated[int | None, Meta(description="Null if there is no limit.")]


class QuotaUse(ResponseModel, kw_only=True):
    notes: Used
    bytes: Used
    requests: Annotated[Used, Meta(description="Requests today (UTC). Counted only if there is a limit.")]


class ExportAudit(RequestModel, kw_only=True):
    since: Since | UnsetType = UNSET
    until: Until | UnsetType = UNSET


class AgentInfo(ResponseModel, kw_only=True):
    name: str
    role: str
    state: Annotated[Literal["active", "revoked", "expired"], choices("The agent's state.", ("active", "revoked", "expired"))]
    created: Timestamp
    tokens: list[dict[str, Any]]
    grants: list[Grant]
    quota: Annotated[QuotaUse | None, Meta(description="Usage and limits. Only in the list of agents.")] = None


class AgentGrants(ResponseModel, kw_only=True):
    agent: str
    role: str
    grants: Annotated[list[Grant], Meta(description="The agent's own grants. Its role may have more.")]


class AgentPage(ResponseModel, kw_only=True):
    agents: list[AgentInfo]
    next: NextCursor


class NewToken(ResponseModel, kw_only=True):
    agent: str
    role: str
    token: Annotated[str, Meta(description="The token. It is shown only once.")]


class Roles(ResponseModel, kw_only=True):
    roles: list[Role]
    broken: list[dict[str, Any]]


class AuditPage(ResponseModel, kw_only=True):
    audit: list[Entry]
    next: NextCursor


def list_agents(request: AuthorizedRequest, params: ListAgents) -> AgentPage:
    found = [agent for agent in request.gate.agents() if agent.name > params.cursor]
    page = found[: params.limit]
    usage = request.gate.usage(page)
    return AgentPage(
        agents=[_info(agent, usage[agent.name]) for agent in page], next=page[-1].name if len(found) > params.limit else None
    )


def add_agent(request: AuthorizedRequest, params: AddAgent) -> Reply:
    days = None if params.days is UNSET else params.days
    granted = make_grants({PROJECT: params.projects, SESSION: params.sessions, REPOSITORY: params.repositories})
    agent, token = request.gate.add(params.name, params.role, days, granted=granted, permit=request.permit)
    return Reply(body=NewToken(agent=agent.name, role=agent.role, token=token), status=201)


def rotate_token(request: AuthorizedRequest, params: RotateToken) -> NewToken:
    agent, token = request.gate.rotate(params.name, **params.given("days", "grace_hours"), permit=request.permit)
    return NewToken(agent=agent.name, role=agent.role, token=token)


def _refuse_second_token(request: AuthorizedRequest, params: object, kept: dict[str, Any]) -> NewToken:
    """Raise `Conflict`: the token was shown in the first answer and is not stored."""
    fix = f"Issue a new token with `POST /agents/{kept['agent']}/token`"
    raise Conflict(f"the token of {kept['agent']} was shown in the first answer and cannot be shown again", fix)


_TOKEN_SHOWN_ONCE = Replay(lambda body: {"agent": body["agent"]}, _refuse_second_token)


def revoke_agent(request: AuthorizedRequest, params: RevokeAgent) -> AgentInfo:
    if params.name == request.caller.agent:
        raise Conflict("you cannot revoke your own agent over HTTP", "Use the token of another agent with `agents.manage`")
    return _info(request.gate.revoke(params.name, permit=request.permit))


def list_grants(request: AuthorizedRequest, params: ListGrants) -> AgentGrants:
    return _grants(request.gate.agent(params.name))


def add_grant(request: AuthorizedRequest, params: ChangeGrant) -> AgentGrants:
    return _grants(request.gate.grant(params.name, params.kind, params.pattern, permit=request.permit))


def remove_grant(request: AuthorizedRequest, params: ChangeGrant) -> AgentGrants:
    return _grants(request.gate.ungrant(params.name, params.kind, params.pattern, permit=request.permit))


def _grants(agent: Agent) -> AgentGrants:
    return AgentGrants(agent=agent.name, role=agent.role, grants=list(agent.grants))


def list_roles(request: AuthorizedRequest, params: RequestModel) -> Roles:
    home = request.gateway.home
    faults = [{"role": fault.role, "message": fault.message, "fix": fault.fix} for fault in request.gate.role_problems()]
    return Roles(roles=list(request.gate.roles()), broken=[without_home(one, home) for one in faults])


def list_audit(request: AuthorizedRequest, params: ListAudit) -> AuditPage:
    filters = {**params.given("agent", "action", "outcome", "token", "address"), **_parse_period(params)}
    before = int(params.cursor) if params.cursor else None
    found, following = request.gate.ledger.audit.list(limit=params.limit, before=before, **filters)
    return AuditPage(audit=list(found), next=None if following is None else str(following))


def export_audit(request: AuthorizedRequest, params: ExportAudit) -> Reply:
    return Reply(body=(entry.as_dict() for entry in request.gate.ledger.audit.export(**_parse_period(params))))


def _parse_period(params: ListAudit | ExportAudit) -> dict[str, str]:
    return {name: dates.parse_moment_milliseconds(text, name) for name, text in params.given("since", "until").items()}


def verify_audit(request: AuthorizedRequest, params: RequestModel) -> audit_verify.Verdict:
    return audit_verify.verify(request.gate.ledger.audit)


def _info(agent: Agent, usage: dict[str, Any] | None = None) -> AgentInfo:
    tokens = [
        {"id": one.id, "created": format_timestamp(one.created), "expires": one.expires and format_timestamp(one.expires),
         "revoked": one.revoked and format_timestamp(one.revoked)}
        for one in agent.tokens
    ]  # fmt: skip
    state: Any = agent.state(dates.clock())
    quota = QuotaUse(**{name: Used(**one) for name, one in usage.items()}) if usage else None
    return AgentInfo(
        name=agent.name, role=agent.role, state=state, created=format_timestamp(agent.created), tokens=tokens,
        grants=list(agent.grants), quota=quota,
    )  # fmt: skip


_GRANTS_EXAMPLE = {
    "agent": "reviewer", "role": "code-review-engineer", "grants": [{"kind": "repository", "pattern": "acme/*"}],
}  # fmt: skip
_TOKEN_EXAMPLE = {"agent": "reviewer", "role": "code-review-engineer", "token": "hf_3k9d02ma_..."}

ROUTES = (
    Route(
        "GET", "/agents", list_agents,
        action=_MANAGE, summary="list agents by name, with role, tokens (without their secrets), grants and quota use",
        params=ListAgents, answers=AgentPage,
    ),
    Route(
        "POST", "/agents", add_agent,
        action=_MANAGE, summary="create an agent and return its token, which is shown only once",
        params=AddAgent, reads=JSON,
        example={"name": "reviewer", "role": "code-review-engineer", "repositories": ["acme/*"]},
        answers=NewToken, status=201, answer_example=_TOKEN_EXAMPLE, replay=_TOKEN_SHOWN_ONCE, records_decision=True,
    ),
    Route(
        "POST", "/agents/{name}/token", rotate_token,
        action=_MANAGE, summary="issue a new token for an agent; the old one expires after `grace_hours`",
        params=RotateToken, reads=JSON, example={"grace_hours": 24},
        answers=NewToken, answer_example=_TOKEN_EXAMPLE, replay=_TOKEN_SHOWN_ONCE, records_decision=True,
        problems=("not_found",),
    ),
    Route(
        "DELETE", "/agents/{name}", revoke_agent,
        action=_MANAGE, summary="revoke all tokens of an agent immediately; its memory is kept",
        params=RevokeAgent, answers=AgentInfo, replay=REPLAY_WHOLE, records_decision=True, problems=("not_found",),
    ),
    Route(
        "GET", "/agents/{name}/grants", list_grants,
        action=_MANAGE, summary="list the projects, sessions and repositories granted to an agent",
        params=ListGrants, answers=AgentGrants, answer_example=_GRANTS_EXAMPLE, problems=("not_found",),
    ),
    Route(
        "POST", "/agents/{name}/grants", add_grant,
        action=_MANAGE, summary="grant a pattern to an agent; it applies from the next request",
        params=ChangeGrant, reads=JSON, example={"kind": "repository", "pattern": "acme/*"},
        answers=AgentGrants, answer_example=_GRANTS_EXAMPLE, replay=REPLAY_WHOLE, records_decision=True,
        problems=("not_found",),
    ),
    Route(
        "DELETE", "/agents/{name}/grants", remove_grant,
        action=_MANAGE, summary="remove a grant; the pattern must be the granted one",
        params=ChangeGrant, answers=AgentGrants, replay=REPLAY_WHOLE, records_decision=True, problems=("not_found",),
    ),
    Route(
        "GET", "/roles", list_roles,
        action="roles.read", summary="list roles, and role files with errors", answers=Roles,
    ),
    Route(
        "GET", "/audit", list_audit,
        action="audit.read", summary="list audit rows, newest first", params=ListAudit, answers=AuditPage,
    ),
    Route(
        "GET", "/audit/verify", verify_audit,
        action="audit.read", summary="verify the hash chain of the audit log", answers=audit_verify.Verdict,
    ),
    Route(
        "GET", "/audit/export", export_audit,
        action="audit.read", summary="export audit rows, oldest first, one JSON object per line",
        params=ExportAudit, answers=ChainedEntry,
        media_type=NDJSON,
    ),
)  # fmt: skip
