"""The access gate: identify the caller by its token, decide by its role, and write every decision into the audit."""

from __future__ import annotations

from _thread import allocate_lock
from contextlib import contextmanager

from holdfast.access import grants, tokens
from holdfast.access.failed_authentications import UNKNOWN, AuthenticationFailure, FailedAuthentications
from holdfast.access.grants import NOTHING, NamedResources
from holdfast.access.policy import OPERATOR, OWNER, STRICT, Caller, Role, denial_reason
from holdfast.access.quota import count_request, describe_usage, find_quota
from holdfast.access.roles import Roles
from holdfast.base import dates, failure_log, totals
from holdfast.context.ledgers import Ledgers
from holdfast.errors import ConfigError, Denied, HoldfastError, Template, Term, Unrecorded, UsageError, command
from holdfast.ledger import audit_checkpoint
from holdfast.ledger.audit import Decision, target_id
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.access.roles import RoleProblem
    from holdfast.config import Config
    from holdfast.ledger.agents import Agent, Grant, StoredToken
    from holdfast.ledger.audit_checkpoint import Pruned
    from holdfast.ledger.interface import Ledger

LOG = "audit.log"  # of decisions that could not be written into the audit
LOCAL = Caller(OWNER, OPERATOR)
_WAIT_SECONDS = 5  # for the ledger: a request must not wait as long as a person would
_DAY, _MAX_DAYS = 86400, 36500


class MissedDecisions:
    """Decisions of this process that are not in the audit: their number, and by tenant how many no audit row mentions yet."""

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.count = 0
        self.unmentioned: dict[str, int] = {}


class Permit:
    """An allowed change of agents or tokens: its row in the audit is written in one transaction with the change.

    If nothing is changed in the `with` block, the row is written at its end, and says why."""

    def __init__(self, gate: AccessGate, caller: Caller, role: Role, action: str, meta: dict[str, Any]) -> None:
        self._gate, self._caller, self._action, self._meta = gate, caller, action, meta
        self.role = role
        self.used = False

    def __enter__(self) -> Permit:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.used:
            return
        reason = {"failed": getattr(error, "code", type(error).__name__)} if error is not None else {}
        meta = {**self._meta, **reason}
        if getattr(error, "may_be_done", False):  # then no other error may say that nothing was done
            self._gate._record(self._caller, self._action, "allowed", meta)
        else:
            self._gate._record_or_fail(self._caller, self._action, meta)

    def decision(self, **more: Any) -> Decision:
        """Return the row that is written with the change."""
        return _make_decision(self._caller, self._action, "allowed", {**self._meta, **more})


class AccessGate:
    """Decide about requests, for any number of threads. Creating this object touches nothing.

    `shared` is a gate of the same home for another tenant. A gate that replaces another takes over its `missed` and its
    `failed_authentications`."""

    def __init__(self, config: Config, shared: AccessGate | None = None) -> None:
        self.config = config
        failed = shared.failed_authentications if shared else FailedAuthentications()
        self.failed_authentications: FailedAuthentications = failed
        self._ledgers: Ledgers = shared._ledgers if shared else Ledgers(config, min(config.lock_seconds, _WAIT_SECONDS))
        self.missed: MissedDecisions = shared.missed if shared else MissedDecisions()
        self._roles: Roles = shared._roles if shared else Roles(config.home)
        self._local = LOCAL.replace(tenant=config.tenant) if config.store else LOCAL

    def for_caller(self, caller: Caller) -> AccessGate:
        """Return the gate of the caller's tenant, with its agents and its audit; a home has only one."""
        if not self.config.store or caller.tenant == self.config.tenant:
            return self
        return AccessGate(self.config.replace(tenant=caller.tenant), self)

    @property
    def ledger(self) -> Ledger:
        """The ledger of this tenant."""
        return self._ledgers.of(self._local.tenant)

    def close(self) -> None:
        """Write what is left to be recorded, and close the ledgers."""
        self.record_failures(all_of_them=True)
        self._ledgers.close()

    def open_ledgers(self) -> list[Ledger]:
        """Return the ledgers that are open now."""
        return self._ledgers.list_open()

    @property
    def unrecorded(self) -> int:
        """Decisions of this process that are not in the audit."""
        return self.missed.count

    # --- authentication -------------------------------------------------------------------------------------------

    def identify(self, token: str, address: str = "") -> Caller:
        """Return the caller of a token; raises Unauthenticated. Nothing is cached: a revocation takes effect at once.

        A failure of a client with an address is counted for the audit (see `record_failures`)."""
        with self._counted_failures(address):
            return self._find_caller(token).replace(address=address)

    def identify_owner(self, address: str = "") -> Caller:
        """Return the owner of the home as a caller, who came by a one-time link."""
        return self._local.replace(address=address)

    def identify_by_id(self, id: str, address: str = "") -> Caller:
        """Return the caller of a token by its public part, for a session that was begun with the whole token.

        Raises Unauthenticated as soon as the token is revoked or has expired."""
        with self._counted_failures(address):
            stored = self.ledger.agents.find_tokens([id]).get(id)
            if stored is None:
                raise tokens.RejectedToken("this token is not valid", "invalid", id=id)
            return self._check_token(id, stored).replace(address=address)

    @contextmanager
    def _counted_failures(self, address: str) -> Iterator[None]:
        """Count a failed authentication of a client with an address for the audit."""
        try:
            yield
        except tokens.RejectedToken as error:
            if address:
                agent, tenant = error.agent or UNKNOWN, error.tenant or self._local.tenant
                self.failed_authentications.add(
                    AuthenticationFailure(reason=error.reason, address=address, tenant=tenant, token=error.id, agent=agent)
                )
            raise

    def _find_caller(self, token: str) -> Caller:
        if not token:
            raise tokens.RejectedToken("a token is required", "missing")
        id = tokens.parse_token_id(token)
        stored = self.ledger.agents.find_tokens([id]).get(id)
        if not tokens.matches(token, stored.digest if stored else bytes(32)) or stored is None:
            raise tokens.RejectedToken("this token is not valid", "invalid", id=id)
        return self._check_token(id, stored)

    def _check_token(self, id: str, stored: StoredToken) -> Caller:
        """Return the caller of a token that is neither revoked nor expired."""
        of_agent = {"id": id, "agent": stored.agent, "tenant": stored.tenant}
        if stored.revoked is not None:
            raise tokens.RejectedToken("this token was revoked", "revoked", **of_agent)
        if stored.expires is not None and stored.expires <= dates.clock():
            totals.add("holdfast_expired_token_requests_total")
            raise tokens.RejectedToken("this token has expired", "expired", **of_agent)
        return Caller(agent=stored.agent, role=stored.role, tenant=stored.tenant, token=id, grants=stored.grants)

    def count_request(self, caller: Caller) -> None:
        """Count a request for the quota of the caller's agent; raises QuotaExceeded."""
        quota = find_quota(caller, self.role(caller.role), self.config)
        if quota.requests:
            count_request(self._ledgers.of(caller.tenant), caller.agent, quota)

    def record_sign_in(self, caller: Caller, by: str) -> None:
        """Write into the audit that a person signed in to the console: by a token, or by a one-time link."""
        self._record_or_fail(caller, "authenticate", {"by": by})

    def record_failures(self, all_of_them: bool = False) -> None:
        """Write failed authentications that are due into the audit; those of the current minute only with `all_of_them`."""
        for one in self.failed_authentications.take(all_of_them):
            failure = one.failure
            meta = {"reason": failure.reason, "address": failure.address, "count": one.count}
            token = {"token": failure.token} if failure.token else {}
            decision = Decision(
                agent=failure.agent, action="authenticate", outcome="denied", metadata={**meta, **token}, tenant=failure.tenant
            )
            self._append(decision)

    # --- authorization --------------------------------------------------------------------------------------------

    def allow(
        self, caller: Caller, action: str, scope: str | None = None, *, named: NamedResources = NOTHING, **meta: Any
    ) -> Role:
        """Decide by the caller's role and grants, write the decision into the audit, and return the role.

        Raises Denied, or Unrecorded if the row must be written and cannot. `meta` is names and ids, never a text."""
        role, meta = self._decide(caller, action, scope, named, meta)
        self._record_or_fail(caller, action, meta)
        return role

    def allow_for(self, caller: Caller, agent: Caller, action: str, scope: str | None = None, **meta: Any) -> Role:
        """Decide by the roles of the caller and of the agent that it acts for, write one row in the caller's name, and return
        the agent's role."""
        about = {**meta, "name": agent.agent, "of_role": agent.role}
        _, about = self._decide(caller, action, scope, NOTHING, about)
        role = self._roles.get(agent.role)
        reason = denial_reason(role, action, scope)
        if reason or role is None:
            self._record(caller, action, "denied", {**about, "reason": f"{agent.agent}: {reason}"})
            fix = Template("An operator may change its role: ", command("role list"), " lists them")
            raise Denied(f"{agent.agent} does not have the permission {action}: {reason}", fix)
        self._record_or_fail(caller, action, about)
        return role

    def permit(
        self, caller: Caller, action: str, scope: str | None = None, *, named: NamedResources = NOTHING, **meta: Any
    ) -> Permit:
        """Decide in the same way, but write the row of an allowed change together with the change."""
        role, meta = self._decide(caller, action, scope, named, meta)
        return Permit(self, caller, role, action, meta)

    def would_allow(self, caller: Caller, action: str, scope: str | None, named: NamedResources = NOTHING) -> bool:
        """Return what `allow` would decide now, without a row in the audit."""
        role = self._roles.get(caller.role)
        if role is None or denial_reason(role, action, scope):
            return False
        return not grants.find_missing(role, caller, scope, named)

    def _decide(
        self, caller: Caller, action: str, scope: str | None, named: NamedResources, meta: dict[str, Any]
    ) -> tuple[Role, dict[str, Any]]:
        """Return the role and the metadata for the row of an allowed action; write the row of a denied one and raise.

        Nothing is looked up but the role and the grants, so a denial is the same whether or not what is named exists."""
        role = self._roles.get(caller.role)
        reason = denial_reason(role, action, scope)
        meta = {**meta, **({"scope": scope} if scope else {})}
        missing = ""
        if role is not None and not reason:
            missing = grants.find_missing(role, caller, scope, named)
            if not missing:
                return role, meta
        if missing:
            reason = f"it has no grant for the {missing} in the request"
            meta |= grants.audit_details(missing, named)
            fix = Template("An operator may grant it: ", _grant_command(missing, caller.agent))
        else:
            fix = Template("An operator may change its role: ", command("role list"), " lists them")
        self._record(caller, action, "denied", {**meta, "reason": reason})
        raise Denied(f"{caller.agent} does not have the permission {action}: {reason}", fix)

    def _record_or_fail(self, caller: Caller, action: str, meta: dict[str, Any]) -> None:
        """Write the row of an allowed action; raise Unrecorded if that fails and the action needs its row."""
        failure = self._record(caller, action, "allowed", meta)
        if failure is not None and self._is_strict(action):
            message = Template("nothing was done, because the audit could not be written: ", failure.whole())
            raise Unrecorded(message, failure.hint) from failure

    def role(self, name: str) -> Role:
        """Return a role as it is now; one that is unknown or cannot be read allows nothing."""
        return self._roles.get(name) or Role(name)

    def _is_strict(self, action: str) -> bool:
        return action in STRICT or self.config.audit_mode == "strict"

    def _record(self, caller: Caller, action: str, outcome: str, meta: dict[str, Any]) -> HoldfastError | None:
        """Write a row; return the error if that fails. It is logged and counted, and the next row says how many are missing."""
        missed, tenant = self.missed, caller.tenant
        with missed.lock:
            missing = missed.unmentioned.pop(tenant, 0)
        decision = _make_decision(caller, action, outcome, {**meta, **({"unrecorded": missing} if missing else {})})
        return self._append(decision, missing)

    def _append(self, decision: Decision, missing: int = 0) -> HoldfastError | None:
        """Add a row; return the error if that fails. `missing` is how many missing rows it mentions."""
        missed, tenant = self.missed, decision.tenant
        try:
            self._ledgers.of(tenant).audit.append(decision, self._is_strict(decision.action))
        except HoldfastError as error:
            with missed.lock:
                missed.count += 1
                missed.unmentioned[tenant] = missed.unmentioned.get(tenant, 0) + missing + 1
            failure_log.write(
                self.config.home, client=decision.agent, event=decision.action, message=error.message, fix=error.fix, name=LOG
            )
            return error
        return None

    def prune_audit(self, before: str) -> Pruned:
        """Remove the audit's rows that are older than a moment (with milliseconds), and record that.

        Rows that were not shipped yet stay, if the settings name a place to ship them to."""
        audit_checkpoint.check_before(before)
        audit = self.ledger.audit
        through = audit.read_position(target_id(self.config.audit_ship)) if self.config.audit_ship else None
        if audit_checkpoint.has_older_rows(audit, before, through):
            meta = {"before": before, "role": self._local.role}
            audit.append(Decision(self._local.agent, "audit.prune", "allowed", meta, self._local.tenant), durable=True)
        return audit_checkpoint.prune(audit, before, through)

    # --- agents and their tokens ----------------------------------------------------------------------------------

    def add(
        self, name: str, role: str, days: int | None = None, *, granted: tuple[Grant, ...] = (), permit: Permit | None = None
    ) -> tuple[Agent, str]:
        """Add an agent with these grants; return it and its token, which is shown only now.

        Without a permit the owner of the home does this."""
        validate.reject_secrets(validate.check_name(name, "agent"), "the name of an agent", fix="Give it another name")
        self._check_role(role)
        new, now = tokens.make_token(), int(dates.clock())
        about = {"grants": " ".join([f"{grant.kind}:{grant.pattern}" for grant in granted])} if granted else {}
        with self._recorded_change(permit, "add", name, new, of_role=role, **about) as decision:
            expires = _compute_expiry(now, days)
            self.ledger.agents.add(
                name, role=role, token=new.stored, now=now, expires=expires, grants=granted, decision=decision
            )
        return self.agent(name), new.token

    def rotate(
        self, name: str, days: int | None = None, grace_hours: int = 0, *, permit: Permit | None = None
    ) -> tuple[Agent, str]:
        """Give an agent a new token; the old one ends at once, or after the grace period."""
        if not 0 <= grace_hours <= _MAX_DAYS * 24:
            raise UsageError(
                f"the grace period must be 0 hours or more, not {grace_hours}", "Leave it out to end the old token at once"
            )
        self.agent(name)
        new, now = tokens.make_token(), int(dates.clock())
        with self._recorded_change(permit, "rotate", name, new) as decision:
            expires, grace = _compute_expiry(now, days), grace_hours * 3600
            self.ledger.agents.rotate(name, token=new.stored, now=now, expires=expires, grace_seconds=grace, decision=decision)
        return self.agent(name), new.token

    def revoke(self, name: str, *, permit: Permit | None = None) -> Agent:
        """Revoke every token of an agent, in every process at once. Its notes stay."""
        self.agent(name)
        with self._recorded_change(permit, "revoke", name) as decision:
            is_recorded = self.ledger.agents.revoke(name, int(dates.clock()), decision)
        if not is_recorded:
            message = f"the tokens of {name} are revoked; the row that says so is written when there is space"
            failure_log.write(
                self.config.home, client=decision.agent, event=decision.action, message=message, fix="Free some space", name=LOG
            )
        return self.agent(name)

    # --- grants ---------------------------------------------------------------------------------------------------

    def grant(self, name: str, kind: str, pattern: str, *, permit: Permit | None = None) -> Agent:
        """Let an agent reach what fits a pattern, from its next request on. One that it has already changes nothing."""
        grant = grants.make_grant(kind, pattern)
        self.agent(name)
        with self._recorded_change(permit, "grant", name, kind=grant.kind, pattern=grant.pattern) as decision:
            now = int(dates.clock())
            self.ledger.agents.grant(name, grant, now=now, most=grants.MAX_GRANTS, decision=decision)
        return self.agent(name)

    def ungrant(self, name: str, kind: str, pattern: str, *, permit: Permit | None = None) -> Agent:
        """Take a grant back, from the agent's next request on; raises NotFound if it does not have exactly this one."""
        grant = grants.make_grant(kind, pattern)
        self.agent(name)
        with self._recorded_change(permit, "ungrant", name, kind=grant.kind, pattern=grant.pattern) as decision:
            self.ledger.agents.ungrant(name, grant, decision)
        return self.agent(name)

    def grant_dispatched_project(self, caller: Caller, name: str, project: str, **meta: Any) -> None:
        """Grant an agent the project that a task is dispatched for, unless it reaches it already.

        The caller must be allowed to manage agents; that is a decision of its own, with its own row."""
        with self.permit(caller, "agents.manage", name=name, **meta) as permit:
            agent = self.agent(name)
            receiver = Caller(agent=agent.name, role=agent.role, tenant=agent.tenant, grants=agent.grants)
            if not grants.is_granted(self.role(agent.role), receiver, grants.PROJECT, project):
                self.grant(name, grants.PROJECT, project, permit=permit)

    def has_agents(self) -> bool:
        """Return whether there is any agent, also one that was revoked."""
        return self.ledger.agents.exist()

    def first_token(self, token: str | None = None) -> str | None:
        """Add the operator and return its token if there is no agent yet, else None. Of concurrent callers, one gets it.

        The token is a new one, or the one given."""
        new, now = tokens.make_token() if token is None else tokens.parse_token(token), int(dates.clock())
        with self._recorded_change(None, "add", OPERATOR, new, of_role=OPERATOR) as decision:
            is_first = self.ledger.agents.add_first(OPERATOR, role=OPERATOR, token=new.stored, now=now, decision=decision)
        return new.token if is_first else None

    @contextmanager
    def _recorded_change(
        self, permit: Permit | None, verb: str, name: str, new: tokens.NewToken | None = None, **more: str
    ) -> Iterator[Decision]:
        """Yield the audit row that is written with a change: in the name of the caller, or of the home's owner."""
        used_permit = permit or Permit(self, self._local, Role(self._local.role), "agents.manage", {})
        token = {"new_token": new.stored.id} if new else {}
        yield used_permit.decision(verb=verb, name=name, **token, **more)
        used_permit.used = True

    def agent(self, name: str) -> Agent:
        """Return an agent; raises NotFound."""
        return self.ledger.agents.get(name)

    def agents(self) -> list[Agent]:
        """Return all agents by name."""
        return self.ledger.agents.list()

    def usage(self, agents: list[Agent]) -> dict[str, dict[str, Any]]:
        """Return, for each of these agents by name, how much of its quota is used."""
        return describe_usage(self.config, {agent.name: self.role(agent.role) for agent in agents}, self.ledger)

    # --- roles ----------------------------------------------------------------------------------------------------

    def roles(self) -> tuple[Role, ...]:
        """Return the valid roles."""
        return self._roles.list()

    def role_problems(self) -> tuple[RoleProblem, ...]:
        """Return the role files that cannot be read; their roles allow nothing."""
        return self._roles.problems()

    def is_custom(self, role: str) -> bool:
        """Return whether a role is the operator's own, not one that comes with Holdfast."""
        return self._roles.is_custom(role)

    def _check_role(self, name: str) -> None:
        """Raise UsageError if there is no such role, or ConfigError if its file cannot be read."""
        if self._roles.get(name) is not None:
            return
        broken = [problem for problem in self.role_problems() if problem.role == name]
        if broken:
            raise ConfigError(f"the role {name!r} is not valid: {broken[0].message}", broken[0].fix)
        known = ", ".join([role.name for role in self.roles()])
        raise UsageError(f"unknown role {str(name)[:60]!r}", f"One of: {known}; or write {self._roles.path('NAME')}")


def _grant_command(kind: str, agent: str) -> Term:
    """Return the command that grants an agent something of this kind."""
    if kind == grants.PROJECT:
        return command("agent grant {} project PATTERN", agent)
    if kind == grants.SESSION:
        return command("agent grant {} session PATTERN", agent)
    return command("agent grant {} repository PATTERN", agent)


def _make_decision(caller: Caller, action: str, outcome: str, meta: dict[str, Any]) -> Decision:
    token = {"token": caller.token} if caller.token else {}
    address = {"address": caller.address} if caller.address else {}
    metadata = {**meta, **token, **address, "role": caller.role}
    return Decision(agent=caller.agent, action=action, outcome=outcome, metadata=metadata, tenant=caller.tenant)


def _compute_expiry(now: int, days: int | None) -> int | None:
    """Return the time at which a token with a lifetime of this many days expires, in seconds since 1970."""
    if days is None:
        return None
    if not 1 <= days <= _MAX_DAYS:
        raise UsageError(
            f"the lifetime of a token must be 1 to {_MAX_DAYS:,} days, not {days}",
            "Leave it out for a token that does not expire",
        )
    return now + days * _DAY
