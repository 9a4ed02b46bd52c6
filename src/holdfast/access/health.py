"""Find problems of the gateway for `doctor` and `/v1/check`: roles that cannot be read, agents without a role, decisions
that are not in the audit, an audit that was changed, and a database login that row-level security does not bind.
"""

from __future__ import annotations

import os

from holdfast.access.gate import LOG, AccessGate
from holdfast.access.role_file import SUFFIX
from holdfast.base import dates, failure_log
from holdfast.errors import HoldfastError
from holdfast.ledger.audit import target_id
from holdfast.ledger.audit_chain import MARK_FILE
from holdfast.ledger.audit_verify import compare_ends, verify_newest
from holdfast.models import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.config import Config

_WEEK = 7 * 86400
SHIP_LOG = "ship.log"  # of failures to ship the audit
_SHIP_SECONDS = 300  # after which a row should have been shipped


def find_problems(config: Config) -> list[Finding]:
    """Return all problems, or none if there is no gateway."""
    gate = AccessGate(config)
    try:
        return find_gate_problems(gate)
    finally:
        gate.close()


def find_gate_problems(
    gate: AccessGate, all_tenants: bool = True, is_allowed: Callable[[str], bool] = lambda action: True
) -> list[Finding]:
    """Return the problems of a gate; without `all_tenants`, only those of its tenant.

    `is_allowed` says for an action whether the caller may do it; the answer is limited to that."""
    config = gate.config
    try:
        roles = _find_role_problems(gate) if is_allowed("roles.read") else []
        agents = _find_agent_problems(gate) if is_allowed("agents.manage") else []
        audit = (
            [*(_find_unrecorded(config) if all_tenants else []), *_find_chain_problems(gate), *_find_unshipped(gate)]
            if is_allowed("audit.read")
            else []
        )
        login = _find_login_problem(config) if all_tenants and is_allowed("agents.manage") else []
        return roles + agents + audit + login
    except HoldfastError as error:
        return [Finding(code="gateway", message=error.message, hint=error.fix, path="" if config.store else "ledger.db")]


def _find_login_problem(config: Config) -> list[Finding]:
    """Row-level security keeps tenants and agents apart; it does not bind a superuser."""
    if not config.store:
        return []
    from holdfast import postgres

    problem, fix = postgres.login_problem(postgres.make_settings(config, None, all_agents=True))
    return [Finding(code="login", message=problem, hint=fix)] if problem else []


def _find_role_problems(gate: AccessGate) -> list[Finding]:
    """A role file with a mistake has to be edited; anything else in the folder is moved aside."""
    return [
        Finding(
            code="role",
            message=f"{f'the role {problem.role} is not' if problem.role else 'no role is'} valid: {problem.message}",
            path=problem.path,
            action="edit" if _is_role_file(problem.path) else "move_aside",
            target=problem.path,
        )
        for problem in gate.role_problems()
    ]


def _is_role_file(path: str) -> bool:
    return path.endswith(SUFFIX) and os.path.isfile(path) and not os.path.islink(path)


def _find_agent_problems(gate: AccessGate) -> list[Finding]:
    """Agents whose role does not exist can do nothing."""
    known = [role.name for role in gate.roles()] + [problem.role for problem in gate.role_problems()]
    now = dates.clock()
    return [
        Finding(
            code="agent",
            message=f"the agent {agent.name} has the role {agent.role}, which does not exist: every request is denied",
            action="run",
            target=f"agent revoke {agent.name}",
            tenant=_tenant_name(gate),
        )
        for agent in gate.agents()
        if agent.role not in known and agent.state(now) == "active"
    ]


def _find_unrecorded(config: Config) -> list[Finding]:
    """Report how many decisions of this week are not in the audit, and why the last one is not."""
    since = dates.format_timestamp(dates.clock() - _WEEK)
    missed = [entry for entry in failure_log.read(config.home, LOG) if entry.time >= since]
    if not missed:
        return []
    last, log = missed[-1], failure_log.path(config.home, LOG)
    count = "1 decision is" if len(missed) == 1 else f"{len(missed):,} decisions are"
    message = f"{count} not in the audit, last {last.time} ({last.client}, {last.event}): {last.message}"
    return [Finding(code="audit", message=message, path=log, action="remove", target=log, hint=last.fix)]


def _find_chain_problems(gate: AccessGate) -> list[Finding]:
    """Compare both ends of the audit and check its newest rows; `audit verify` checks all of it."""
    wrong = compare_ends(gate.ledger.audit) or verify_newest(gate.ledger.audit)
    if not wrong:
        return []
    aside = "delete the tenant's row of holdfast.audit_mark" if gate.config.store else f"move {MARK_FILE} aside"
    message = f"{wrong}: the audit was changed, or the ledger was lost or restored from a backup; after a restore, {aside}"
    path = "" if gate.config.store else MARK_FILE
    return [
        Finding(code="audit_chain", message=message, path=path, action="run", target="audit verify", tenant=_tenant_name(gate))
    ]


def _find_unshipped(gate: AccessGate) -> list[Finding]:
    """Report rows that should have been shipped long ago, and why the last attempt failed."""
    config, audit = gate.config, gate.ledger.audit
    head = audit.read_head()
    if not config.audit_ship or head is None:
        return []
    position = audit.read_position(target_id(config.audit_ship))
    oldest = next(audit.iterate_rows(position + 1, most=1), None) if position < head.count else None
    if oldest is None or oldest.time > dates.format_milliseconds(dates.clock() - _SHIP_SECONDS):
        return []
    failures = failure_log.read(config.home, SHIP_LOG)
    why = f": {failures[-1].message}" if failures else "; is the gateway running?"
    count = f"{head.count - position:,} rows of the audit" if head.count - position > 1 else "1 row of the audit"
    message = f"{count} wait to be shipped, the oldest since {oldest.time}{why}"
    hint = failures[-1].fix if failures else "Start the server, or remove the setting audit.ship"
    return [Finding(code="audit_ship", message=message, hint=hint, tenant=_tenant_name(gate))]


def _tenant_name(gate: AccessGate) -> str:
    """Return the tenant that a command has to name; "" where it is the default."""
    config = gate.config
    return config.tenant if config.store and config.tenant != "default" else ""
