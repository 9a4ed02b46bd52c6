"""The policy: a role names actions and scopes; everything else is denied. Pure functions on plain data."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.models import SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ledger.agents import Grant

OWNER = "(local)"  # the owner of the home at this machine; no agent can have this name
ACTIONS = (
    "agent.memory.read",  # recall, get, list, history, facts, graph, brief, boot, expand, status
    "agent.memory.write",  # store, import, fact, log, transcripts, forget, clear, restore, files, scaffold
    "memory.purge",
    "memory.review",
    "memory.export",
    "home.care",  # check, reindex, embed, retain: the home as a whole
    "settings.manage",  # read and change the settings of the gateway
    "audit.read",
    "agents.manage",
    "roles.read",
    "metrics.read",  # counts and times, for a scraper
    "github.review",  # all of the next three
    "github.review.comment",
    "github.review.approve",
    "github.review.request_changes",
    "dispatch",
    "done.read",
    "done.write",
)
RECORDED_ACTIONS = ("authenticate", "audit.prune")  # rows of the audit that no role decides
EVERYTHING = "*"  # every action; only for the operator
OPERATOR = "operator"
SCOPED_ACTIONS = ("agent.memory.read", "agent.memory.write", "memory.purge", "memory.review", "memory.export")
# never done without a row in the audit, in any mode
STRICT = ("memory.purge", "memory.export", "agents.manage", "settings.manage")


class Caller(Record):
    """An authenticated caller. `token` is the public part of its token, never the secret; `grants` are the agent's own, and
    `address` is the client's."""

    agent: str
    role: str
    tenant: str = "default"
    token: str = ""
    grants: tuple[Grant, ...] = ()
    address: str = ""

    @property
    def is_person(self) -> bool:
        """Whether the caller is a person; only the operator of the gateway is."""
        return self.role == OPERATOR

    @property
    def has_memory(self) -> bool:
        """Whether the caller has a scope `agent` of its own; the owner of the home has none."""
        return self.agent != OWNER


class Quota(Record):
    """How much an agent may keep, and how often it may ask. 0 means no limit; None is what the settings say."""

    notes: int | None = None
    bytes: int | None = None
    requests: int | None = None  # on a day, in UTC


class Role(Record):
    """The actions and scopes that a role allows, and the projects, sessions and repositories that all its agents reach.

    An empty list allows nothing."""  # published in openapi.json

    name: str
    skills: tuple[str, ...] = ()
    allowed_actions: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    quota: Quota = Quota()


def is_unlimited(role: Role) -> bool:
    """Return whether a role has every action and reaches everything; only the operator's may."""
    return role.name == OPERATOR and EVERYTHING in role.allowed_actions


def has_action(role: Role, action: str) -> bool:
    """Return whether a role names an action, or one that it is part of: `github.review` allows `github.review.approve`."""
    return action in role.allowed_actions or any(action.startswith(f"{one}.") for one in role.allowed_actions)


def may_try(role: Role, action: str) -> bool:
    """Return whether a role names an action or a part of it: the body of the request says which one is meant."""
    parts = [one for one in ACTIONS if one == action or one.startswith(f"{action}.")]
    return any(not denial_reason(role, one, None) for one in parts)


def denial_reason(role: Role | None, action: str, scope: str | None) -> str:
    """Return why an action is denied, or "" if it is allowed.

    If the request names no scope, any scope of the role is enough: the answer is limited to those of the role."""
    if role is None:
        return "its role is unknown or cannot be read"
    if action not in ACTIONS:
        return "the action does not exist"
    if not has_action(role, action) and not is_unlimited(role):
        return "its role does not name this action"
    if not role.scopes and (scope is not None or action in SCOPED_ACTIONS):
        return "its role reaches no scope"
    if scope is not None and (scope not in SCOPES or scope not in role.scopes):
        return f"its role does not reach the scope {scope}, only {', '.join(role.scopes)}"
    return ""
