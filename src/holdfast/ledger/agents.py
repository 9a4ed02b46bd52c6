"""Agents and their tokens. Each change and its row in the audit are one transaction: both are kept, or neither.

A revocation on a full disk is the exception: it takes effect at once, and its row follows when there is space."""

from __future__ import annotations

from contextlib import suppress
from json import dumps, loads

from holdfast.base.dates import format_timestamp
from holdfast.base.record import Record
from holdfast.errors import Conflict, DiskTrouble, HoldfastError, NotFound, Template, Unsure, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a method here
    from collections.abc import Callable
    from typing import TypeVar

    from holdfast.ledger.audit import Audit, Decision
    from holdfast.ledger.interface import LedgerDatabase, Transaction
    from holdfast.ledger.revocations import PendingRevocation, RevocationFile

    T = TypeVar("T")

_LOCK_NAME = "agents agents"  # held while agents or tokens are changed


class Token(Record):
    """The public fields of a token. Times are in seconds since 1970."""

    id: str
    created: int
    expires: int | None
    revoked: int | None

    def is_valid(self, now: float) -> bool:
        return self.revoked is None and (self.expires is None or self.expires > now)


class Grant(Record):
    """A pattern of projects, sessions or repositories that an agent reaches; `kind` says which."""

    kind: str
    pattern: str


class Agent(Record):
    """An agent that may use the gateway, its role, its tokens, newest last, and its grants."""

    name: str
    role: str
    tenant: str
    created: int
    tokens: tuple[Token, ...]
    grants: tuple[Grant, ...] = ()

    def state(self, now: float) -> str:
        if any(token.is_valid(now) for token in self.tokens):
            return "active"
        return "revoked" if all(token.revoked is not None for token in self.tokens) else "expired"


class TokenDigest(Record):
    """A new token as it is stored: its public part, and the digest of all of it."""

    id: str
    digest: bytes


class StoredToken(Record):
    """The stored columns of a token and of the agent it belongs to, with the agent's grants."""

    digest: bytes
    expires: int | None
    revoked: int | None
    agent: str
    role: str
    tenant: str
    grants: tuple[Grant, ...]
    created: int


class Agents:
    """The agents of one home or tenant."""

    def __init__(self, database: LedgerDatabase, audit: Audit, revocations: RevocationFile | None = None) -> None:
        self._database, self._audit = database, audit
        self._revocations = revocations  # those that a full disk keeps out of the ledger; None where that is a server's

    def list(self) -> List[Agent]:
        """Return all agents by name."""
        return self._find(None)

    def get(self, name: str) -> Agent:
        """Return one agent; raise NotFound if there is none."""
        found = self._find(name)
        if not found:
            raise _unknown_agent_error(name)
        return found[0]

    def _find(self, name: str | None) -> List[Agent]:
        tokens: dict[str, List[Token]] = {}
        pending = self._read_pending()
        for agent, *fields in self._database.read_current("agents.tokens", agent=name):
            token = Token(*fields)
            end = token.revoked if token.revoked is not None else _find_pending(pending, agent, token.created)
            tokens.setdefault(agent, []).append(token.replace(revoked=end))
        grants: dict[str, List[Grant]] = {}
        for agent, kind, pattern in self._database.read_current("agents.grants", agent=name):
            grants.setdefault(agent, []).append(Grant(kind, pattern))
        return [
            Agent(
                name=name,
                role=role,
                tenant=tenant,
                created=created,
                tokens=tuple(tokens.get(name, [])),
                grants=tuple(grants.get(name, [])),
            )
            for name, role, tenant, created in self._database.read_current("agents.list", name=name)
        ]

    def find_tokens(self, ids: List[str]) -> dict[str, StoredToken]:
        """Return the tokens with these public parts, of any tenant. Nothing is cached: a revocation takes effect at once."""
        pending = self._read_pending()  # first: another process may move them into the ledger meanwhile
        rows = self._database.read_any_tenant("agents.find_tokens", ids=dumps(ids))
        found = {
            id: StoredToken(*fields, _parse_grants(granted), created)  # type: ignore[call-arg]
            for id, *fields, granted, created in rows
        }
        if not pending:
            return found
        return {
            id: token.replace(revoked=_find_pending(pending, token.agent, token.created)) if token.revoked is None else token
            for id, token in found.items()
        }

    def _read_pending(self) -> dict[str, int]:
        """Return the revocations that are not in the ledger yet: until when an agent's tokens are revoked."""
        pending = self._revocations.read() if self._revocations is not None else []
        return {one.agent: max(one.time, *[other.time for other in pending if other.agent == one.agent]) for one in pending}

    def count_expiring(self, now: float, seconds: float) -> int:
        """Return how many agents have a valid token now and none that is valid after this many seconds."""
        rows = self._database.read_current("agents.count_expiring", now=int(now), until=int(now + seconds))
        return int(rows[0][0]) if rows else 0  # no rows: there is no ledger yet

    def add(
        self, name: str, *, role: str, token: TokenDigest, now: int, expires: int | None, grants: tuple[Grant, ...] = (),
        decision: Decision,
    ) -> None:  # fmt: skip
        """Add an agent, or readmit a revoked one, with these grants only; raise Conflict if there is an agent of that name."""

        def add_rows(transaction: Transaction) -> None:
            if _has_tokens(transaction, name):
                rotate, revoke = command("agent rotate {}", name), command("agent revoke {}", name)
                fix = Template(rotate, " gives it a new token, ", revoke, " ends it")
                raise Conflict(f"the agent {name!r} already exists", fix)
            # Folders of agents are the same where the file system ignores case.
            for (other,) in transaction.run("agents.same_but_for_case", name=name):
                raise Conflict(f"the agent {other!r} exists, and names must differ in more than case", "Choose another name")
            for (other,) in transaction.run("agents.sharing_sessions", name=name):
                message = f"sessions of {name!r} and {other!r} could not be told apart: one name begins with the other"
                raise Conflict(message, "Choose a name that does not begin with the other and a dot")
            _put_agent(transaction, name, role, now)
            _put_token(transaction, name, token, now, expires)
            transaction.run("agents.remove_grants", agent=name)
            for grant in grants:
                _put_grant(transaction, name, grant, now)

        self._change(add_rows, decision)

    def exist(self) -> bool:
        """Return whether there is any agent."""
        return bool(self._database.read_current("agents.any"))

    def add_first(self, name: str, *, role: str, token: TokenDigest, now: int, decision: Decision) -> bool:
        """Add the first agent; return False if there is one, also if another process added it first."""
        if self.exist():
            return False

        def add_rows(transaction: Transaction) -> None:
            if transaction.run("agents.any"):
                raise _NotFirst("another process changed it first")
            _put_agent(transaction, name, role, now)
            _put_token(transaction, name, token, now, None)

        try:
            self._change(add_rows, decision)
        except _NotFirst:
            return False
        except Unsure:  # the answer to COMMIT was lost: the token is there, or it is not
            return self._has_token(token.id)
        return True

    def _has_token(self, id: str) -> bool:
        """Return whether a token is stored; durable, so that the standbys have it too if the answer is yes."""

        def touch_token(transaction: Transaction) -> bool:
            transaction.lock(_LOCK_NAME)
            return bool(transaction.run("agents.touch_token", id=id))

        return self._database.write(touch_token)

    def rotate(
        self, name: str, *, token: TokenDigest, now: int, expires: int | None, grace_seconds: int, decision: Decision
    ) -> None:
        """Give an agent a new token; the old ones end now or after the grace period.

        If no end is given, the new token lasts as long as the old one did."""

        def replace_tokens(transaction: Transaction) -> None:
            if not transaction.run("agents.list", name=name):
                raise _unknown_agent_error(name)
            if not _has_tokens(transaction, name):
                fix = Template(command("agent add {}", name), " lets it in again")
                raise Conflict(f"the agent {name!r} is revoked", fix)
            (lifetime,) = transaction.run("agents.token_lifetime", agent=name)[0]
            end = expires if expires is not None else now + lifetime if lifetime else None
            _put_token(transaction, name, token, now, end)
            if grace_seconds:
                transaction.run("agents.end_tokens", agent=name, id=token.id, end=now + grace_seconds)
            else:
                transaction.run("agents.revoke_tokens", agent=name, id=token.id, now=now)

        self._change(replace_tokens, decision)

    def revoke(self, name: str, now: int, decision: Decision) -> bool:
        """Revoke every token of an agent; return whether the row is in the audit.

        On a full disk the revocation takes effect without it. In a home, `apply_pending` writes the row as soon as there is
        space; on a server, `Audit.write_deferred` of this process does."""

        def revoke_tokens(transaction: Transaction) -> None:
            if not transaction.run("agents.list", name=name):
                raise _unknown_agent_error(name)
            transaction.run("agents.revoke_tokens", agent=name, id="", now=now)

        try:
            self._change(revoke_tokens, decision)
        except DiskTrouble as error:
            if error.may_be_done:
                raise
            try:
                self._revoke_without_row(name, now, decision, revoke_tokens)
            except HoldfastError:
                raise error from None
            return False
        return True

    def grant(self, name: str, grant: Grant, *, now: int, most: int, decision: Decision) -> bool:
        """Grant something to an agent, which may have `most` grants; return False if it has this one already."""

        def add_grant(transaction: Transaction) -> bool:
            if not transaction.run("agents.list", name=name):
                raise _unknown_agent_error(name)
            known = [Grant(kind, pattern) for _, kind, pattern in transaction.run("agents.grants", agent=name)]
            if grant in known:
                return False
            if len(known) >= most:
                raise Conflict(f"the agent {name!r} has {most} grants, which is the maximum", "Use patterns, such as acme-*")
            _put_grant(transaction, name, grant, now)
            return True

        return self._change(add_grant, decision)

    def ungrant(self, name: str, grant: Grant, decision: Decision) -> None:
        """Take a grant back, by exactly its pattern; raise NotFound if the agent does not have it."""

        def remove_grant(transaction: Transaction) -> None:
            if not transaction.run("agents.list", name=name):
                raise _unknown_agent_error(name)
            if not transaction.run("agents.remove_grant", agent=name, kind=grant.kind, pattern=grant.pattern):
                fix = Template(command("agent grants {}", name), " lists its grants")
                raise NotFound(f"{name!r} has no grant for the {grant.kind} {grant.pattern!r}", fix)

        self._change(remove_grant, decision)

    def _revoke_without_row(
        self, name: str, now: int, decision: Decision, revoke_tokens: Callable[[Transaction], None]
    ) -> None:
        noted = decision.replace(metadata={**decision.metadata, "revoked_at": format_timestamp(now)})
        if self._revocations is not None:
            from holdfast.ledger.revocations import PendingRevocation

            self._revocations.add(PendingRevocation(name, now, noted))
        else:
            self._database.write(revoke_tokens)
            self._audit.defer(noted)

    def reserve(self) -> None:
        """Allocate the space that a revocation on a full disk needs, if that was not done yet."""
        if self._revocations is not None and self._database.read_current("agents.any"):
            self._revocations.reserve()

    def apply_pending(self) -> None:
        """Move revocations that a full disk kept out of the ledger into it, each with its row in the audit."""
        if self._read_pending():
            self._change(lambda transaction: None, None)

    def _change(self, change: Callable[[Transaction], T], decision: Decision | None) -> T:
        """Do the change and add its row to the audit in one durable transaction, after the revocations that are pending."""
        if self._revocations is None or not self._revocations.read():
            return self._write_change(change, decision, [])
        with self._revocations.turn():  # of several processes one moves them, so that each has one row
            pending = self._revocations.read()
            result = self._write_change(change, decision, pending)
            with suppress(DiskTrouble):  # the change is kept, and the next one removes them
                self._revocations.remove(pending)
        return result

    def _write_change(
        self, change: Callable[[Transaction], T], decision: Decision | None, pending: List[PendingRevocation]
    ) -> T:
        decisions = [*[one.decision for one in pending], *([decision] if decision is not None else [])]

        def change_and_record(transaction: Transaction) -> T:
            transaction.lock(_LOCK_NAME)
            for one in pending:
                transaction.run("agents.revoke_older", agent=one.agent, time=one.time)
            result = change(transaction)
            if decisions:
                self._audit.append_in(transaction, decisions)
            return result

        result = self._database.write(change_and_record)
        self._audit.update_mark(len(decisions))
        with suppress(DiskTrouble):  # then a later change allocates it
            self.reserve()
        return result


class _NotFirst(HoldfastError):
    """There is an agent already."""


def _find_pending(pending: dict[str, int], agent: str, created: int) -> int | None:
    """Return when a token was revoked by what is pending; None if it was not."""
    end = pending.get(agent)
    return end if end is not None and created <= end else None


def _has_tokens(transaction: Transaction, name: str) -> bool:
    """Return whether an agent has tokens that are not revoked."""
    return transaction.run("agents.count_valid", agent=name) != [(0,)]


def _put_agent(transaction: Transaction, name: str, role: str, now: int) -> None:
    transaction.run("agents.put", name=name, role=role, now=now)


def _put_token(transaction: Transaction, name: str, token: TokenDigest, now: int, expires: int | None) -> None:
    transaction.run("agents.put_token", id=token.id, agent=name, digest=token.digest, now=now, expires=expires)


def _put_grant(transaction: Transaction, name: str, grant: Grant, now: int) -> None:
    transaction.run("agents.put_grant", agent=name, kind=grant.kind, pattern=grant.pattern, now=now)


def _parse_grants(column: str | None) -> tuple[Grant, ...]:
    """Return grants from a JSON list of kinds and patterns."""
    return tuple([Grant(kind, pattern) for kind, pattern in loads(column)]) if column else ()


def _unknown_agent_error(name: str) -> NotFound:
    return NotFound(f"there is no agent {name!r}", Template(command("agent list"), " lists them"))
