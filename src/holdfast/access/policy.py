"""The policy: a role names actions and the scopes they may touch; what it does not name is denied. Pure."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.models import SCOPES

ACTIONS = (
    "agent.memory.read",  # recall, get, list, history, facts, graph, brief, boot, expand, status
    "agent.memory.write",  # store, import, fact, log, transcripts, forget, clear, restore, files, scaffold
    "memory.purge",
    "memory.review",
    "memory.export",
    "home.care",  # check, reindex, embed, retain: the home as a whole
    "audit.read",
    "agents.manage",
    "roles.read",
    "metrics.read",  # counts and times, for a scraper
    "github.review",
    "dispatch",
    "done.read",
    "done.write",
)
EVERYTHING = "*"  # what the operator may, and no other role
OPERATOR = "operator"
OF_SCOPES = ("agent.memory.read", "agent.memory.write", "memory.purge", "memory.review", "memory.export")
STRICT = ("memory.purge", "memory.export", "agents.manage")  # never without a row in the audit, whatever the mode


class Caller(Record):
    """Who asks, as the token says. `token` is its public part, never the secret."""

    agent: str
    role: str
    tenant: str = "default"
    token: str = ""

    @property
    def is_person(self) -> bool:
        """Whether a person speaks: who runs the gateway, and nobody else who has a token."""
        return self.role == OPERATOR


class Role(Record):
    """What a role may do, and in whose memory. An empty list means nothing."""

    name: str
    skills: tuple[str, ...] = ()
    allowed_actions: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()


def why_not(role: Role | None, action: str, scope: str | None) -> str:
    """Why this is denied; nothing where it is allowed. With no scope named, one that the role has must be enough: the
    answer is then limited to those."""
    if role is None:
        return "its role is unknown or cannot be read"
    if action not in ACTIONS:
        return "there is no such action"
    if action not in role.allowed_actions and not (EVERYTHING in role.allowed_actions and role.name == OPERATOR):
        return "its role does not name this action"
    if scope is not None and (scope not in SCOPES or scope not in role.scopes):
        return f"its role does not reach the scope {scope}"
    if action in OF_SCOPES and not role.scopes:
        return "its role reaches no scope"
    return ""
