"""What agents have done and need not do again: anything by its kind and subject, and reviews of pull requests.

A review is claimed before it is posted, so that of many who ask at once one posts. A claim that nobody let go of is
doubtful: its holder may have died before or after posting, and whoever takes it over must look before posting again.

Where a damaged ledger stands beside this one, nobody knows what was done before: then there is no "no".
"""

from __future__ import annotations

import os

from holdfast import sqlite
from holdfast.base.ids import keyed_digest
from holdfast.base.record import Record
from holdfast.errors import UsageError
from holdfast.ledger import review_key
from holdfast.ledger.records import Records, lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a verb here
    from collections.abc import Callable
    from typing import Any

    import apsw

SQL = sqlite.statements(__file__)
REVIEW = "github.review"  # the kind under which reviews are listed; their subject is owner/repo#number
NEW, DOUBTFUL, TAKEN, REVIEWED = "new", "doubtful", "taken", "reviewed"


class DoneItem(Record):
    """Something that was done."""

    number: int
    agent: str
    kind: str
    subject: str
    time: int


class Review(Record):
    """A pull request that was reviewed."""

    number: int
    agent: str
    owner: str
    repo: str
    pr_number: int
    reviewed_at: int


class _Deeds(Records):
    """What was done is known by a secret of the home where it must not be known by name."""

    def secret(self) -> bytes:
        """The same as long as the home lives, whatever becomes of the ledger."""
        return review_key.of(os.path.dirname(self._path))


class Done(_Deeds):
    """Deeds, unique by agent, kind and subject."""

    _sql = SQL

    def exists(self, agent: str | None, kind: str, subject: str) -> bool:
        """Whether the agent did it, or any agent if None."""
        known = self._of(agent, "exists", "exists_any", kind=kind, subject=subject)
        if known or self._reviewed(agent, kind, subject):
            return True
        return self._is_masked(self._of(agent, "masked", "masked_any", kind=kind), subject) or self._never()

    def _of(self, agent: str | None, one: str, every: str, **given: Any) -> List[Any]:
        """The rows of one agent; of every agent if None."""
        return self._rows(every, **given) if agent is None else self._rows(one, agent=agent, **given)

    def record(self, agent: str, kind: str, subject: str, now: int) -> bool:
        """Whether it is new; however many ask at once, one is told so."""
        row: dict[str, Any] = {"agent": agent, "kind": kind, "subject": subject, "now": now}

        def work(db: apsw.Connection) -> bool:
            if self._is_masked(self._run(db, "masked", agent=agent, kind=kind), subject):
                return False
            return bool(self._run(db, "record", **row)) and not self._never()

        return self._write(work)

    def unsay(self, says: Callable[[str], object]) -> int:
        """Keep no subject that says this, but that it was done: a digest stands for it, which only this home can make. How
        many there were."""
        rows = [row for row in self._rows("every") if says(row[1]) or says(row[2])]

        def work(db: apsw.Connection) -> None:
            for number, kind, subject in rows:
                if says(kind):
                    self._run(db, "remove", number=number)
                else:
                    self._run(db, "mask", number=number, subject=self._mask(subject))

        if rows:
            self._write(work)
        return len(rows)

    def _reviewed(self, agent: str | None, kind: str, subject: str) -> List[Any]:
        """The row of a review that is asked for by its kind and subject."""
        repository, _, number = subject.lower().rpartition("#")
        owner, _, repo = repository.partition("/")
        if kind != REVIEW or not number.isdecimal() or not number.isascii() or len(number) > 9:
            return []
        return self._of(agent, "reviewed", "reviewed_any", owner=owner, repo=repo, pr=int(number))

    def page(
        self, agent: str | None = None, kind: str | None = None, subject: str | None = None, *, limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[List[DoneItem], str | None]:  # fmt: skip
        """Return deeds and reviews together, newest first, and the cursor of the next page."""
        place = dict(zip(("time", "source", "number"), _place(cursor), strict=True))
        wanted = {"agent": agent, "kind": kind, "subject": subject, "review": REVIEW}
        rows = self._rows("page", **wanted, **place, most=limit + 1)
        last = rows[limit - 1] if len(rows) > limit else None
        return [DoneItem(*row[1:]) for row in rows[:limit]], f"{last[5]}-{last[0]}-{last[1]}" if last else None

    def _is_masked(self, masked: List[Any], subject: str) -> bool:
        return bool(masked) and (self._mask(subject),) in masked

    def _mask(self, subject: str) -> str:
        return "purged:" + keyed_digest(subject.encode("utf-8", "surrogatepass"), self.secret())

    def _never(self) -> bool:
        """False; an error where a damaged ledger may know better, until a person has taken that away."""
        if self._lost_at():
            raise lost()
        return False

    def list(
        self, agent: str | None = None, kind: str | None = None, *, limit: int = 50, before: int | None = None
    ) -> tuple[List[DoneItem], int | None]:
        """The newest first, and what to give as `before` for the next page."""
        rows = self._rows("list", agent=agent, kind=kind, before=before, most=limit + 1)
        return [DoneItem(*row) for row in rows[:limit]], rows[limit - 1][0] if len(rows) > limit else None


def _place(cursor: str | None) -> tuple[int | None, ...]:
    """Time, source and number of the row that a page ended with."""
    if cursor is None:
        return None, None, None
    parts = cursor.split("-")
    if len(parts) != 3 or not all(part.isdecimal() and part.isascii() and len(part) <= 18 for part in parts):
        raise UsageError(f"{cursor[:60]!r} is not a cursor", "Give the `next` of the page before")
    return tuple([int(part) for part in parts])


class Claim(Record):
    """Who is at a review or left it, and since when it may be posted."""

    holder: str
    time: int


class Reviews(_Deeds):
    """Reviews, unique by agent, repository and number."""

    _sql = SQL

    def get(self, agent: str, owner: str, repo: str, pr: int) -> Review | None:
        rows = self._rows("reviewed", agent=agent, owner=owner, repo=repo, pr=pr)
        return Review(*rows[0]) if rows else None

    def exists(self, agent: str, owner: str, repo: str, pr: int) -> bool:
        return self.get(agent, owner, repo, pr) is not None

    def left(self, agent: str, owner: str, repo: str, pr: int) -> Claim | None:
        """The claim that nobody let go of, if there is one."""
        rows = self._rows("claimed", subject=_subject(agent, owner, repo, pr))
        return Claim(*rows[0]) if rows else None

    def claim(
        self, agent: str, owner: str, repo: str, pr: int, holder: str, now: int, lease: int = 120, again: bool = False
    ) -> str:
        """NEW: yours, and nobody was there before. DOUBTFUL: yours, but whoever had it went away without a word: look
        whether it is posted. TAKEN: somebody is at it, or was when the ledger was lost. REVIEWED: done, and `again` was
        not asked for."""
        named: dict[str, Any] = {"agent": agent, "owner": owner, "repo": repo, "pr": pr}
        subject = _subject(agent, owner, repo, pr)

        def work(db: apsw.Connection) -> str:
            self._alone(db, subject)
            if not again and self._run(db, "reviewed", **named):
                return REVIEWED
            held = self._run(db, "claimed", subject=subject)
            if held and held[0][0] != holder and abs(now - held[0][1]) < lease:
                return TAKEN
            if not held and abs(now - self._lost_at()) < lease:
                return TAKEN
            self._run(db, "claim", subject=subject, holder=holder, now=now)
            return DOUBTFUL if held else NEW

        return self._write(work)

    def record(self, agent: str, owner: str, repo: str, pr: int, holder: str, now: int) -> bool:
        """It is posted: kept once, and the claim ends. Whether it is new."""
        row: dict[str, Any] = {"agent": agent, "owner": owner, "repo": repo, "pr": pr, "now": now}

        def work(db: apsw.Connection) -> bool:
            new = self._run(db, "record_review", **row)
            self._let_go(db, _subject(agent, owner, repo, pr), holder)
            return bool(new)

        return self._write(work)

    def release(self, agent: str, owner: str, repo: str, pr: int, holder: str) -> None:
        """It is surely not posted: the next may try."""
        self._write(lambda db: self._let_go(db, _subject(agent, owner, repo, pr), holder))

    def _let_go(self, db: apsw.Connection, subject: str, holder: str) -> None:
        self._run(db, "release", subject=subject, holder=holder)

    def list(
        self, agent: str | None = None, *, limit: int = 50, before: int | None = None
    ) -> tuple[List[Review], int | None]:
        """The newest first, and what to give as `before` for the next page."""
        rows = self._rows("list_reviews", agent=agent, before=before, most=limit + 1)
        return [Review(*row) for row in rows[:limit]], rows[limit - 1][0] if len(rows) > limit else None


def _subject(agent: str, owner: str, repo: str, pr: int) -> str:
    return "\0".join(["review", agent, owner, repo, str(pr)])
