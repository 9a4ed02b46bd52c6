"""The porter: says who a token is, decides what its role may, and writes every decision down."""

from __future__ import annotations

from _thread import allocate_lock
from contextlib import contextmanager

from holdfast.access import tokens
from holdfast.access.policy import OPERATOR, STRICT, Caller, Role, why_not
from holdfast.access.roles import Roles
from holdfast.base import dates, failure_log
from holdfast.context.ledgers import Ledgers
from holdfast.errors import ConfigError, Denied, HoldfastError, Template, Unrecorded, UsageError, command
from holdfast.ledger.audit import Decision
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.access.roles import RoleProblem
    from holdfast.config import Config
    from holdfast.ledger import SqliteLedger
    from holdfast.ledger.agents import Agent

LOG = "audit.log"  # of decisions that could not be written into the audit
LOCAL = Caller("(local)", OPERATOR)  # who owns the home and sits at it; no agent can have this name
_WAIT_SECONDS = 5  # for the ledger: a request must not wait as long as a person does
_DAY, _MOST_DAYS = 86400, 36500


class Missed:
    """Decisions of this process that are not in the audit, and by tenant those that no row speaks of yet."""

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.count = 0
        self.untold: dict[str, int] = {}


class Permit:
    """What was allowed and changes tokens: its row goes into the audit together with the change, both or neither. Where
    nothing was changed, the row is written at the end, and says why."""

    def __init__(self, gate: AccessGate, caller: Caller, role: Role, action: str, meta: dict[str, Any]) -> None:
        self._gate, self._caller, self._action, self._meta = gate, caller, action, meta
        self.role = role  # by which it was allowed
        self.used = False

    def __enter__(self) -> Permit:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.used:
            return
        why = {"failed": getattr(error, "code", type(error).__name__)} if error is not None else {}
        told = {**self._meta, **why}
        if getattr(error, "may_be_done", False):  # whoever asks is told that, and never that nothing was done
            self._gate._record(self._caller, self._action, "allowed", told)
        else:
            self._gate._must_record(self._caller, self._action, told)

    def decision(self, **more: Any) -> Decision:
        """The row that the change writes."""
        return _decision(self._caller, self._action, "allowed", {**self._meta, **more})


class AccessGate:
    """One home's porter, for any number of threads. Making one touches nothing. One that takes another's place goes on with
    what that could not write down."""

    def __init__(self, config: Config, of: AccessGate | None = None, missed: Missed | None = None) -> None:
        self.config = config
        self._ledgers: Ledgers = of._ledgers if of else Ledgers(config, min(config.lock_seconds, _WAIT_SECONDS))
        self.missed: Missed = of.missed if of else missed or Missed()
        self._roles: Roles = of._roles if of else Roles(config.home)
        self._local = LOCAL.replace(tenant=config.tenant) if config.store else LOCAL

    def of(self, caller: Caller) -> AccessGate:
        """The same for the caller's tenant: its agents and its audit. A home has but one."""
        if not self.config.store or caller.tenant == self.config.tenant:
            return self
        return AccessGate(self.config.replace(tenant=caller.tenant), self)

    @property
    def ledger(self) -> SqliteLedger:
        return self._ledgers.of(self._local.tenant)

    def close(self) -> None:
        self._ledgers.close()

    @property
    def unrecorded(self) -> int:
        """Decisions of this process that are not in the audit."""
        return self.missed.count

    # --- who it is ------------------------------------------------------------------------------------------------

    def identify(self, token: str) -> Caller:
        """Whose token it is, as the ledger says now: nothing is remembered, so a revocation counts at once."""
        id = tokens.id_of(token)
        kept = self.ledger.agents.presented([id]).get(id)
        if not tokens.matches(token, kept.digest if kept else bytes(32)) or kept is None:
            raise tokens.invalid("this token is not valid")
        if kept.revoked is not None:
            raise tokens.invalid("this token was revoked")
        if kept.expires is not None and kept.expires <= dates.clock():
            raise tokens.invalid("this token has expired")
        return Caller(kept.agent, kept.role, kept.tenant, id)

    # --- what it may ----------------------------------------------------------------------------------------------

    def allow(self, caller: Caller, action: str, scope: str | None = None, **meta: Any) -> Role:
        """Decide by the role, write one row, and raise Denied unless it is allowed. Where the row cannot be written and
        must be, nothing is allowed. `meta` is names and ids, never a text. Return the role."""
        role, told = self._allowed(caller, action, scope, meta)
        self._must_record(caller, action, told)
        return role

    def permit(self, caller: Caller, action: str, scope: str | None = None, **meta: Any) -> Permit:
        """The same, but what is allowed is written down with the change that it is for."""
        role, told = self._allowed(caller, action, scope, meta)
        return Permit(self, caller, role, action, told)

    def _allowed(self, caller: Caller, action: str, scope: str | None, meta: dict[str, Any]) -> tuple[Role, dict[str, Any]]:
        """The role, and what the row of a yes says; a no is written down and raised."""
        role = self._roles.get(caller.role)
        reason = why_not(role, action, scope)
        told = {**meta, **({"scope": scope} if scope else {})}
        if reason or role is None:
            self._record(caller, action, "denied", {**told, "reason": reason})
            fix = Template("An operator may change its role: ", command("role list"), " shows them")
            raise Denied(f"{caller.agent} may not {action}: {reason}", fix)
        return role, told

    def _must_record(self, caller: Caller, action: str, meta: dict[str, Any]) -> None:
        """The row of a yes, which fails what it is for only where nothing may be done without it."""
        failure = self._record(caller, action, "allowed", meta)
        if failure is not None and self._is_strict(action):
            what = Template("nothing was done, because the audit could not be written: ", failure.whole())
            raise Unrecorded(what, failure.hint) from failure

    def role(self, name: str) -> Role:
        """A role as it is now; one that is unknown or cannot be read has nothing."""
        return self._roles.get(name) or Role(name)

    def _is_strict(self, action: str) -> bool:
        return action in STRICT or self.config.audit_mode == "strict"

    def _record(self, caller: Caller, action: str, outcome: str, meta: dict[str, Any]) -> HoldfastError | None:
        """One row; what kept it from being written, if anything did. That is logged and counted, and the next row says how
        many are missing."""
        missed, tenant = self.missed, caller.tenant
        with missed.lock:
            missing = missed.untold.pop(tenant, 0)
        told = _decision(caller, action, outcome, {**meta, **({"unrecorded": missing} if missing else {})})
        try:
            self._ledgers.of(tenant).audit.append(told, self._is_strict(action))
        except HoldfastError as error:
            with missed.lock:
                missed.count += 1
                missed.untold[tenant] = missed.untold.get(tenant, 0) + missing + 1
            failure_log.write(
                self.config.home, client=caller.agent, event=action, message=error.message, fix=error.fix, name=LOG
            )
            return error
        return None

    # --- agents and their tokens ----------------------------------------------------------------------------------

    def add(self, name: str, role: str, days: int | None = None, *, permit: Permit | None = None) -> tuple[Agent, str]:
        """Let an agent in: it, and its token, which is shown this once. Without a `permit` it is the owner of the home who
        does this."""
        validate.reject_secrets(validate.name(name, "agent"), "the name of an agent", fix="Give it another name")
        self._must_be_a_role(role)
        made, now = tokens.make(), int(dates.clock())
        with self._changing(permit, "add", name, made, of_role=role) as told:
            self.ledger.agents.add(name, role, made.kept, now, _end(now, days), told)
        return self.agent(name), made.token

    def rotate(
        self, name: str, days: int | None = None, grace_hours: int = 0, *, permit: Permit | None = None
    ) -> tuple[Agent, str]:
        """A new token for an agent. The old one ends at once, or after a grace."""
        if not 0 <= grace_hours <= _MOST_DAYS * 24:
            raise UsageError(f"a grace is 0 hours or more, not {grace_hours}", "Leave it out to end the old token at once")
        self.agent(name)
        made, now = tokens.make(), int(dates.clock())
        with self._changing(permit, "rotate", name, made) as told:
            self.ledger.agents.rotate(name, made.kept, now, _end(now, days), grace_hours * 3600, told)
        return self.agent(name), made.token

    def revoke(self, name: str, *, permit: Permit | None = None) -> Agent:
        """End every token of an agent, in every process at once. What it has kept stays."""
        self.agent(name)
        with self._changing(permit, "revoke", name) as told:
            self.ledger.agents.revoke(name, int(dates.clock()), told)
        return self.agent(name)

    def first_token(self) -> str | None:
        """The operator's, where there is no agent at all; None where there is one. Of many who ask at once, one is told."""
        made = tokens.make()
        with self._changing(None, "add", OPERATOR, made, of_role=OPERATOR) as told:
            first = self.ledger.agents.add_first(OPERATOR, OPERATOR, made.kept, int(dates.clock()), told)
        return made.token if first else None

    @contextmanager
    def _changing(
        self, permit: Permit | None, verb: str, name: str, made: tokens.NewToken | None = None, **more: str
    ) -> Iterator[Decision]:
        """The row that goes with a change: the caller's, or the owner's of the home."""
        given = permit or Permit(self, self._local, Role(self._local.role), "agents.manage", {})
        new = {"new_token": made.kept.id} if made else {}
        yield given.decision(verb=verb, name=name, **new, **more)
        given.used = True

    def agent(self, name: str) -> Agent:
        return self.ledger.agents.get(name)

    def agents(self) -> list[Agent]:
        return self.ledger.agents.list()

    # --- roles ----------------------------------------------------------------------------------------------------

    def roles(self) -> tuple[Role, ...]:
        """Those that are good."""
        return self._roles.list()

    def faults(self) -> tuple[RoleProblem, ...]:
        """Files of roles that cannot be read; their roles mean nothing."""
        return self._roles.faults()

    def is_own(self, role: str) -> bool:
        """Whether a role is the operator's own, not one that comes with Holdfast."""
        return self._roles.own(role)

    def _must_be_a_role(self, name: str) -> None:
        if self._roles.get(name) is not None:
            return
        broken = [fault for fault in self.faults() if fault.role == name]
        if broken:
            raise ConfigError(f"the role {name!r} means nothing: {broken[0].message}", broken[0].fix)
        known = ", ".join([role.name for role in self.roles()])
        raise UsageError(f"there is no role {str(name)[:60]!r}", f"One of: {known}; or write {self._roles.path('NAME')}")


def _decision(caller: Caller, action: str, outcome: str, meta: dict[str, Any]) -> Decision:
    token = {"token": caller.token} if caller.token else {}
    return Decision(caller.agent, action, outcome, {**meta, **token, "role": caller.role}, caller.tenant)


def _end(now: int, days: int | None) -> int | None:
    if days is None:
        return None
    if not 1 <= days <= _MOST_DAYS:
        raise UsageError(f"a token lasts 1 to {_MOST_DAYS:,} days, not {days}", "Leave it out for one that does not end")
    return now + days * _DAY
