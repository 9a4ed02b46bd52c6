"""Quotas of agents: how many notes and bytes an agent may keep, and how many requests it may make on a day.

A role names limits of its own; where it names none, the settings `quota.notes`, `quota.bytes` and `quota.requests_per_day`
apply. Persons (the operator) have no quota. Requests are counted here; notes and bytes are checked by `verbs.quota` when a
note or a file is written, against the sums that the index keeps.
"""

from __future__ import annotations

from holdfast.access.policy import OPERATOR, Quota
from holdfast.base import dates
from holdfast.context.caller import Context
from holdfast.errors import QuotaExceeded
from holdfast.index.results import AgentUsage
from holdfast.ledger.request_counts import DAY_SECONDS
from holdfast.models import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.access.policy import Caller, Role
    from holdfast.config import Config
    from holdfast.ledger.interface import Ledger

_UNLIMITED = Quota(0, 0, 0)


def find_quota(caller: Caller, role: Role, config: Config) -> Quota:
    """Return the limits of a caller, each a number; 0 means no limit."""
    return _UNLIMITED if caller.is_person else merge_quota(role, config)


def merge_quota(role: Role, config: Config) -> Quota:
    """Return the limits of an agent with this role."""
    own = role.quota
    return Quota(
        config.quota_notes if own.notes is None else own.notes,
        config.quota_bytes if own.bytes is None else own.bytes,
        config.quota_requests if own.requests is None else own.requests,
    )


def describe_usage(config: Config, roles: dict[str, Role], ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Return, for each agent by name, how much it has of what it may have; `roles` has the role of each agent.

    `limit` is None where there is none.
    """
    context = Context(config, project=None, session=None, agent=None, client=None, origin="user", cwd=None, progress=Progress())
    try:
        if context.store.exists():
            context.sync.prepare_all_scopes()
        return {agent: _describe_agent(context, config, agent, role, ledger) for agent, role in roles.items()}
    finally:
        context.close()


def _describe_agent(context: Context, config: Config, agent: str, role: Role, ledger: Ledger) -> dict[str, Any]:
    quota = _UNLIMITED if role.name == OPERATOR else merge_quota(role, config)
    used = context.query(lambda: context.index.agent_usage(agent)) if context.store.exists() else AgentUsage()
    requests = ledger.request_counts.today(agent, dates.clock()) if quota.requests else 0
    return {
        "notes": {"used": used.notes, "limit": quota.notes or None},
        "bytes": {"used": used.bytes, "limit": quota.bytes or None},
        "requests": {"used": requests, "limit": quota.requests or None},
    }


def count_request(ledger: Ledger, agent: str, quota: Quota) -> None:
    """Count a request of an agent; raise `QuotaExceeded` if it has made as many today as it may."""
    if not quota.requests:
        return
    now = dates.clock()
    if ledger.request_counts.count(agent, quota.requests, now):
        return
    error = QuotaExceeded(
        f"{agent} has made the {quota.requests:,} requests that its role or the setting quota.requests_per_day allows in a day",
        "Wait until midnight UTC, or ask an operator to raise the quota",
    )
    error.retry_after = DAY_SECONDS - now % DAY_SECONDS
    raise error
