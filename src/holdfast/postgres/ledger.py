"""The ledger in PostgreSQL: one tenant's part of the same records, behind the same verbs.

What SQLite gets from one writer at a time comes from locks that end with their transaction here. The chain of the audit is
each tenant's own, and its head moves in the same question that appends the row.
"""

from __future__ import annotations

import os
import time
from json.encoder import encode_basestring_ascii as quoted

from holdfast.base import dates
from holdfast.errors import Damaged, Template, Unsure, command
from holdfast.ledger import agents, audit, done, idempotency, sqlite
from holdfast.ledger import audit_mark as marks
from holdfast.ledger.agents import Presented
from holdfast.ledger.audit import canonical
from holdfast.ledger.purges import Purges
from holdfast.ledger.records import Records
from holdfast.postgres import Database, statements
from holdfast.postgres import Lock as Alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from holdfast.ledger.agents import Minted
    from holdfast.ledger.audit import Decision
    from holdfast.postgres import PostgresSettings

    T = TypeVar("T")

SQL = statements(__file__)
_SECRET = "review"
_HEAD = Template("Keep the tables as they are and run ", command("audit verify"))


class _OnPostgres(Records):
    """A part by its name; there is no file that could be missing, damaged or set aside."""

    _name = ""
    _file: Any

    def _rows(self, statement: str, **values: Any) -> list[Any]:
        return list(self._file.rows(f"{self._name}.{statement}", **plain(values)))

    def _run(self, db: Any, statement: str, **values: Any) -> list[Any]:
        return list(db.execute(SQL[f"{self._name}.{statement}"], plain(values)).fetchall())

    def _alone(self, db: Any, name: str) -> None:
        db.execute(SQL["turn"], plain({"name": f"{self._name} {name}"}))

    def _write(self, work: Callable[[Any], T], durable: bool = True) -> T:
        answer: T = self._file.write(work, durable)
        return answer


class Audit(_OnPostgres, audit.Audit):
    """The rows of one tenant."""

    _name = "audit"
    marked_in = "the row in audit_mark"

    def add(self, db: Any, decisions: Iterable[Decision]) -> None:
        now = dates.now()
        told = "\n".join([_told(one, now) for one in decisions])
        if self._run(db, "append", told=told) == [(0,)]:
            self._run(db, "begin")
            if self._run(db, "append", told=told) == [(0,)]:
                raise Damaged("the audit has lost its head", _HEAD)

    def mark(self) -> None:
        if self._unmarked == 0:
            return
        self._marked_at, self._unmarked = time.monotonic(), 0

        def work(db: Any) -> None:
            for count, hash in self._run(db, "marked"):
                self._run(db, "put_mark", count=count, hash=hash)

        self._write(work)

    def noted(self) -> marks.AuditMark | None:
        rows = self._rows("noted")
        return marks.AuditMark(*rows[0]) if rows else None


class Agents(_OnPostgres, agents.Agents):
    """The register of one tenant; `presented` alone knows the tokens of all, each by its exact id, and is nobody's."""

    _name = "agents"
    _register: Any = None

    def presented(self, ids: list[str]) -> dict[str, Presented]:
        self._register = self._register or self._file.for_nobody()
        return {id: Presented(*kept) for id, *kept in self._register.rows(f"{self._name}.token", ids=ids)}

    def add_first(self, name: str, role: str, token: Minted, now: int, told: Decision) -> bool:
        try:
            return super().add_first(name, role, token, now, told)
        except Unsure:  # nobody heard whether it was kept: it is there, or it is not
            return self._stands(token.id)

    def _stands(self, id: str) -> bool:
        """Whether a token is kept, when nobody changes any; durable, so that the standbys have it where the answer is yes."""

        def work(db: Any) -> bool:
            self._alone(db, "agents")
            return bool(self._run(db, "stands", id=id))

        return self._write(work)


class _Secret(_OnPostgres):
    """The tenant's secret is a row, made by whoever needs it first."""

    _name = "done"

    def secret(self) -> bytes:
        rows = self._file.rows("key", name=_SECRET)
        if not rows:
            made = {"name": _SECRET, "value": os.urandom(32)}
            self._write(lambda db: db.execute(SQL["add_key"], made))
            rows = self._file.rows("key", name=_SECRET)
        return bytes(rows[0][0])


class Done(_Secret, done.Done):
    """Deeds."""


class Reviews(_Secret, done.Reviews):
    """Reviews."""


class Repeats(_OnPostgres, idempotency.IdempotencyKeys):
    """Keys of requests."""

    _name = "repeats"


class _Purges(Purges):
    """What was purged: a row says that there is anything to ask for."""

    _ever = _ever_rejected = False

    def any(self) -> bool:
        if not self._ever:  # receipts stay for good
            self._ever, rejected = self._rows("any_purged", {})[0]
            self._ever_rejected = self._ever_rejected or rejected
        return self._ever

    def any_rejected(self) -> bool:
        """As the last question about purges was answered; once that is not asked any more, there may be some."""
        return self._ever or self._ever_rejected

    def show_sign(self, rejected: bool = False) -> None:
        """The row itself is the sign."""

    def _inode(self) -> int:
        """A tenant's key never changes."""
        return 1


class PostgresLedger(sqlite.SqliteLedger):
    """One tenant's records; of what agents have done, those that the store's agent may see."""

    _sql = SQL
    _file: Any

    def __init__(self, settings: PostgresSettings, lock_seconds: float = 30) -> None:
        self._settings = settings
        self._file = Database(settings, SQL, lock_seconds)
        self._counted: dict[str, int] = {}
        self._unreadable: str | None = None
        self._audit: Audit | None = None
        self._purges: Purges | None = None

    def named_lock(self, name: str, seconds: float) -> Alone:
        return Alone(self._settings, name, seconds)

    def _one_more(self, db: Any, ids: list[str], now: int) -> list[Any]:
        """In one question, and in one order, so that two who count the same never wait for each other."""
        return list(db.execute(SQL["count"], {"ids": sorted(ids), "now": now}).fetchall())

    def usage(self, ids: Iterable[str]) -> dict[str, int]:
        wanted = list(dict.fromkeys(ids))
        return dict(self._rows("uses", {"ids": wanted})) if wanted else {}

    def scrub(self, seconds: float | None = None) -> None:
        self._file.scrub(seconds)

    @property
    def problem(self) -> str | None:
        return self._unreadable

    @property
    def purges(self) -> Purges:
        if self._purges is None:
            self._purges = _Purges("", SQL, self._strict_rows, self._write)
        return self._purges

    @property
    def agents(self) -> Agents:
        return Agents(self._file, "", self.audit)

    @property
    def audit(self) -> Audit:
        if self._audit is None:
            with self._file.lock:
                self._audit = self._audit or Audit(self._file, "")
        return self._audit

    @property
    def done(self) -> Done:
        return Done(self._file, "")

    @property
    def reviews(self) -> Reviews:
        return Reviews(self._file, "")

    @property
    def idempotency_keys(self) -> Repeats:
        return Repeats(self._file, "")

    def _strict_rows(self, statement: str, values: dict[str, Any]) -> list[Any]:
        return list(self._file.rows(statement, **plain(values)))

    def _write(self, work: Callable[[Any], T], durable: bool) -> T:
        answer: T = self._file.write(work, durable)
        return answer


def _told(one: Decision, now: str) -> str:
    """What a row says, as it is hashed: plain ASCII on one line, whatever it says."""
    fields = (now, one.tenant, one.agent, one.action, one.outcome, canonical(one.metadata))
    return ",".join([quoted(_text(field)) for field in fields])


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """Values that a column of text takes: what is no character there is shown as unknown."""
    return {name: _text(value) if isinstance(value, str) else value for name, value in values.items()}


def _text(value: str) -> str:
    known = value.replace("\0", "\ufffd") if "\0" in value else value
    return known if known.isascii() else known.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
