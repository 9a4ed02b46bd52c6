"""What `doctor` and `/v1/check` tell of the gateway: roles that mean nothing, agents without one, decisions that are not in
the audit, and an audit that is not what was written."""

from __future__ import annotations

import os
from shlex import quote

from holdfast.access.gate import LOG, AccessGate
from holdfast.access.role_file import SUFFIX
from holdfast.base import dates, failure_log
from holdfast.errors import HoldfastError
from holdfast.ledger import audit_mark
from holdfast.ledger.audit_verify import glance, newest
from holdfast.models import Problem
from holdfast.verbs.doctor.fixes import Fixes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.config import Config

_SECONDS = 7 * 86400


def problems(config: Config) -> list[Problem]:
    """Everything about it that is not as it should be; where there is no gateway, nothing."""
    gate = AccessGate(config)
    try:
        return found(gate)
    finally:
        gate.close()


def found(gate: AccessGate, whole: bool = True, may: Callable[[str], bool] = lambda action: True) -> list[Problem]:
    """The same of a porter that is there already; one that is not the `whole` gateway's knows of its own tenant alone. Whoever
    asks is told no more than their other actions let them see."""
    config = gate.config
    try:
        roles = _roles(gate) if may("roles.read") else []
        agents = _agents(gate) if may("agents.manage") else []
        audit = [*(_unrecorded(config) if whole else []), *_chain(gate)] if may("audit.read") else []
        return roles + agents + audit
    except HoldfastError as error:
        return [Problem("gateway", error.message, error.fix, "" if config.store else "ledger.db")]


def _roles(gate: AccessGate) -> list[Problem]:
    """A file with a mistake is a person's to correct; what is no file of a role goes out of the way."""
    fixes = Fixes(gate.config.home)
    return [
        Problem(
            "role", f"{f'the role {fault.role} means' if fault.role else 'every role means'} nothing: {fault.message}",
            (fixes.edit if _is_ours(fault.path) else fixes.move_away)(fault.path), fault.path,
        )
        for fault in gate.faults()
    ]  # fmt: skip


def _is_ours(path: str) -> bool:
    return path.endswith(SUFFIX) and os.path.isfile(path) and not os.path.islink(path)


def _agents(gate: AccessGate) -> list[Problem]:
    """Those whose role is not there: they can do nothing."""
    known, broken = [role.name for role in gate.roles()], [fault.role for fault in gate.faults()]
    now = dates.clock()
    return [
        Problem(
            "agent", f"the agent {agent.name} has the role {agent.role}, which is not there: it can do nothing",
            _command(gate, f"agent revoke {agent.name}"),
        )
        for agent in gate.agents()
        if agent.role not in known and agent.role not in broken and agent.state(now) == "active"
    ]  # fmt: skip


def _unrecorded(config: Config) -> list[Problem]:
    """Decisions of this week that could not be written down: how many, the last one, and why."""
    since = dates.timestamp(dates.clock() - _SECONDS)
    missed = [one for one in failure_log.read(config.home, LOG) if one.time >= since]
    if not missed:
        return []
    last, log = missed[-1], failure_log.path(config.home, LOG)
    count = "1 decision is" if len(missed) == 1 else f"{len(missed):,} decisions are"
    what = f"{count} not in the audit, last {last.time} ({last.client}, {last.event}): {last.message}"
    return [Problem("audit", what, f"{last.fix}; afterwards rm -f {quote(log)}", log)]


def _chain(gate: AccessGate) -> list[Problem]:
    """Both ends of the audit against each other, and its last rows; `audit verify` reads all of it."""
    wrong = glance(gate.ledger.audit) or newest(gate.ledger.audit)
    if not wrong:
        return []
    aside = "delete the tenant's row of holdfast.audit_mark" if gate.config.store else f"move {audit_mark.NAME} aside"
    what = f"{wrong}: somebody changed it, or the ledger was lost or put back; in that case {aside}"
    place = "" if gate.config.store else audit_mark.NAME
    return [Problem("audit_chain", what, _command(gate, "audit verify"), place)]


def _command(gate: AccessGate, words: str) -> str:
    """A command of ours, for the tenant that it is about."""
    config = gate.config
    of = f"--tenant {quote(config.tenant)} " if config.store and config.tenant != "default" else ""
    return Fixes(config.home).holdfast(of + words)
