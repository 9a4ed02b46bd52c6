"""Agents and their tokens. Every change and its row in the audit are one transaction: neither is there without the other."""

from __future__ import annotations

from json import dumps

from holdfast import sqlite
from holdfast.base.record import Record
from holdfast.errors import Conflict, HoldfastError, NotFound, Template, command
from holdfast.ledger.records import Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a verb here
    from collections.abc import Callable
    from typing import Any, TypeVar

    import apsw

    from holdfast.home import Database
    from holdfast.ledger.audit import Audit, Decision

    T = TypeVar("T")

SQL = sqlite.statements(__file__)


class Token(Record):
    """What may be known of one."""

    id: str
    created: int
    expires: int | None
    revoked: int | None

    def is_valid(self, now: float) -> bool:
        return self.revoked is None and (self.expires is None or self.expires > now)


class Agent(Record):
    """Who may come in, in which role, with which tokens; the newest last."""

    name: str
    role: str
    tenant: str
    created: int
    tokens: tuple[Token, ...]

    def state(self, now: float) -> str:
        if any(token.is_valid(now) for token in self.tokens):
            return "active"
        return "revoked" if all(token.revoked is not None for token in self.tokens) else "expired"


class Minted(Record):
    """A new token as it is kept."""

    id: str
    digest: bytes


class Presented(Record):
    """What is kept of the token that somebody shows, and whose it is."""

    digest: bytes
    expires: int | None
    revoked: int | None
    agent: str
    role: str
    tenant: str


class Agents(Records):
    """The register of one home."""

    _sql = SQL
    _begins_anew = True

    def __init__(self, file: Database, path: str, audit: Audit) -> None:
        super().__init__(file, path)
        self._audit = audit

    def list(self) -> List[Agent]:
        tokens: dict[str, List[Token]] = {}
        for agent, *fields in self._rows("tokens", agent=None):
            tokens.setdefault(agent, []).append(Token(*fields))
        return [_agent(row, tokens.get(row[0], [])) for row in self._rows("agents", name=None)]

    def get(self, name: str) -> Agent:
        rows = self._rows("agents", name=name)
        if not rows:
            raise unknown(name)
        return _agent(rows[0], [Token(*fields) for _, *fields in self._rows("tokens", agent=name)])

    def presented(self, ids: List[str]) -> dict[str, Presented]:
        """The tokens of these public parts; asked anew every time, so that a revocation counts at once."""
        return {id: Presented(*kept) for id, *kept in self._rows("token", ids=dumps(ids))}

    def add(self, name: str, role: str, token: Minted, now: int, expires: int | None, told: Decision) -> None:
        """A new agent, or one that had been revoked."""

        def work(db: apsw.Connection) -> None:
            if self._run(db, "valid", agent=name) != [(0,)]:
                rotate, revoke = command("agent rotate {}", name), command("agent revoke {}", name)
                fix = Template(rotate, " gives it a new token, ", revoke, " ends it")
                raise Conflict(f"there is an agent {name!r} already", fix)
            for other in self._run(db, "spelled_otherwise", name=name):  # their folders are one where case does not count
                raise Conflict(f"there is an agent {other[0]!r}, and case alone tells none apart", "Choose another name")
            self._let_in(db, name, role, token, now, expires)

        self._changed(work, told)

    def add_first(self, name: str, role: str, token: Minted, now: int, told: Decision) -> bool:
        """The first of all; False where there is any agent, whoever was quicker."""
        if self._rows("any_agent"):
            return False

        def work(db: apsw.Connection) -> None:
            if self._run(db, "any_agent"):
                raise _Late("somebody was quicker")
            self._let_in(db, name, role, token, now, None)

        try:
            self._changed(work, told)
        except _Late:
            return False
        return True

    def _let_in(
        self, db: apsw.Connection, name: str, role: str, token: Minted, now: int, expires: int | None
    ) -> None:
        self._run(db, "put_agent", name=name, role=role, tenant="default", now=now)
        self._put(db, name, token, now, expires)

    def _put(self, db: apsw.Connection, name: str, token: Minted, now: int, expires: int | None) -> None:
        row: dict[str, Any] = {"id": token.id, "agent": name, "digest": token.digest, "now": now, "expires": expires}
        self._run(db, "put_token", **row)

    def rotate(self, name: str, token: Minted, now: int, expires: int | None, grace: int, told: Decision) -> None:
        """A new token in the place of the old, which ends now or after a grace. Without an end of its own the new one
        lasts as long as the old one did."""

        def work(db: apsw.Connection) -> None:
            if not self._run(db, "agents", name=name):
                raise unknown(name)
            if self._run(db, "valid", agent=name) == [(0,)]:
                fix = Template(command("agent add {}", name), " lets it in again")
                raise Conflict(f"the agent {name!r} is revoked", fix)
            span = self._run(db, "span", agent=name)[0][0]
            self._put(db, name, token, now, expires if expires is not None else now + span if span else None)
            if grace:
                self._run(db, "end_tokens", agent=name, id=token.id, end=now + grace)
            else:
                self._run(db, "revoke_tokens", agent=name, id=token.id, now=now)

        self._changed(work, told)

    def revoke(self, name: str, now: int, told: Decision) -> int:
        """Every token of the agent; how many were still good."""

        def work(db: apsw.Connection) -> int:
            if not self._run(db, "agents", name=name):
                raise unknown(name)
            return len(self._run(db, "revoke_tokens", agent=name, id="", now=now))

        return self._changed(work, told)

    def _changed(self, work: Callable[[apsw.Connection], T], told: Decision) -> T:
        """The change with its row in the audit, both or neither, on the disk."""

        def both(db: apsw.Connection) -> T:
            self._alone(db, "agents")
            answer = work(db)
            self._audit.add(db, [told])
            return answer

        answer = self._write(both)
        self._audit.added(1)
        return answer


class _Late(HoldfastError):
    """Somebody else made the first agent."""


def _agent(row: tuple[str, str, str, int], tokens: list[Token]) -> Agent:
    name, role, tenant, created = row
    return Agent(name, role, tenant, created, tuple(tokens))


def unknown(name: str) -> NotFound:
    return NotFound(f"there is no agent {name!r}", Template(command("agent list"), " shows them"))
