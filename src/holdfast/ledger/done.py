"""Records of what agents have done and need not do again: by kind and subject, and reviews of pull requests.

A review is claimed before it is posted, so that only one of many processes posts it. A claim that was never released is
doubtful: its holder may have died before or after posting, and the next holder must check before posting again.

While a damaged ledger lies beside the current one, it is unknown what was done before: then nothing answers "not done".
"""

from __future__ import annotations

from holdfast.base.ids import keyed_digest
from holdfast.base.record import Record
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a method here
    from collections.abc import Callable
    from typing import Any

    from holdfast.ledger.interface import LedgerDatabase, SecretKey, Transaction

REVIEW = "github.review"  # the kind under which reviews are listed; their subject is owner/repo#number
NEW, DOUBTFUL, TAKEN, REVIEWED = "new", "doubtful", "taken", "reviewed"
_MASKED = "purged:"  # before the digest of a subject that was purged


class DoneItem(Record):
    """A record of completed work. The time is in seconds since 1970."""

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


class Claim(Record):
    """The holder of a review that is in progress or was abandoned, and since when."""

    holder: str
    time: int


class _Subject(Record):
    """What a row says was done."""

    number: int
    kind: str
    subject: str


class _Cursor(Record):
    """The row that a page ended with."""

    time: int | None = None
    source: int | None = None
    number: int | None = None


class Done:
    """Records of what was done, unique by agent, kind and subject."""

    def __init__(self, database: LedgerDatabase, secret: SecretKey) -> None:
        self._database, self._secret = database, secret

    def exists(self, agent: str | None, kind: str, subject: str) -> bool:
        """Return whether the agent did it, or any agent if None. Raises Damaged if a damaged ledger may have the record."""
        if self._read("done.find", agent, kind=kind, subject=subject) or self._find_review(agent, kind, subject):
            return True
        if self._is_masked(self._read("done.masked", agent, kind=kind), subject):
            return True
        self._database.check_complete()
        return False

    def record(self, agent: str, kind: str, subject: str, now: int) -> bool:
        """Record it and return whether it is new: of several callers that record the same at once, one gets True."""
        values: dict[str, Any] = {"agent": agent, "kind": kind, "subject": subject, "now": now}

        def insert(transaction: Transaction) -> bool:
            if self._is_masked(transaction.run("done.masked", agent=agent, kind=kind), subject):
                return False
            if not transaction.run("done.record", **values):
                return False
            self._database.check_complete()
            return True

        return self._database.write(insert, retry_after_reset=False)

    def mask(self, matches: Callable[[str], object], agent: str | None = None) -> int:
        """Replace each subject that matches by a keyed digest, so that only the fact that it was done is kept; return how
        many there were. Where the kind matches, the row is deleted. With an agent, only its records."""
        rows = [_Subject(*row) for row in self._database.read_current("done.subjects", agent=agent)]
        matching = [row for row in rows if matches(row.kind) or matches(row.subject)]

        def mask_rows(transaction: Transaction) -> None:
            for row in matching:
                if matches(row.kind):
                    transaction.run("done.remove", number=row.number)
                else:
                    transaction.run("done.mask", number=row.number, subject=self._digest(row.subject))

        if matching:
            self._database.write(mask_rows, retry_after_reset=False)
        return len(matching)

    def list_texts_of_others(self, agent: str) -> List[str]:
        """Return the kinds and subjects of what other agents did."""
        rows = [_Subject(*row) for row in self._database.read_current("done.subjects_of_others", agent=agent)]
        return [text for row in rows for text in (row.kind, row.subject)]

    def list_page(
        self, agent: str | None = None, kind: str | None = None, subject: str | None = None, *, limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[List[DoneItem], str | None]:  # fmt: skip
        """Return what was done and reviewed, newest first, and the cursor of the next page."""
        after = _parse_cursor(cursor)
        rows = self._database.read_current(
            "done.page", agent=agent, kind=kind, subject=subject, review=REVIEW, time=after.time, source=after.source,
            number=after.number, most=limit + 1,
        )  # fmt: skip
        found = [(source, DoneItem(*fields)) for source, *fields in rows]
        items = [item for _, item in found[:limit]]
        if len(found) <= limit:
            return items, None
        source, last = found[limit - 1]
        return items, f"{last.time}-{source}-{last.number}"

    def list(
        self, agent: str | None = None, kind: str | None = None, *, limit: int = 50, before: int | None = None
    ) -> tuple[List[DoneItem], int | None]:
        """Return completed work, newest first, and the number to pass as `before` for the next page."""
        rows = self._database.read_current("done.list", agent=agent, kind=kind, before=before, most=limit + 1)
        items = [DoneItem(*row) for row in rows]
        return items[:limit], items[limit - 1].number if len(items) > limit else None

    def _find_review(self, agent: str | None, kind: str, subject: str) -> List[Any]:
        """Return the review that this kind and subject mean, if they mean one."""
        repository, _, number = subject.lower().rpartition("#")
        owner, _, repo = repository.partition("/")
        if kind != REVIEW or not number.isdecimal() or not number.isascii() or len(number) > 9:
            return []
        return self._read("reviews.find", agent, owner=owner, repo=repo, pr=int(number))

    def _read(self, statement: str, agent: str | None, **values: Any) -> List[Any]:
        """Return the rows of one agent, or of any if None: another statement, so that both can use an index."""
        if agent is None:
            return self._database.read_current(f"{statement}_any", **values)
        return self._database.read_current(statement, agent=agent, **values)

    def _is_masked(self, masked: List[Any], subject: str) -> bool:
        return bool(masked) and (self._digest(subject),) in masked

    def _digest(self, subject: str) -> str:
        return _MASKED + keyed_digest(subject.encode("utf-8", "surrogatepass"), self._secret.load())


class Reviews:
    """Reviews, unique by agent, repository and number."""

    def __init__(self, database: LedgerDatabase, secret: SecretKey) -> None:
        self._database, self._secret = database, secret

    def secret(self) -> bytes:
        """Return the key with which the marks of reviews on GitHub are made."""
        return self._secret.load()

    def get(self, agent: str, owner: str, repo: str, pr: int) -> Review | None:
        """Return the review of a pull request, or None."""
        rows = self._database.read_current("reviews.find", agent=agent, owner=owner, repo=repo, pr=pr)
        return Review(*rows[0]) if rows else None

    def exists(self, agent: str, owner: str, repo: str, pr: int) -> bool:
        """Return whether the agent reviewed it."""
        return self.get(agent, owner, repo, pr) is not None

    def find_claim(self, agent: str, owner: str, repo: str, pr: int) -> Claim | None:
        """Return the claim that was not released, if there is one."""
        rows = self._database.read_current("reviews.find_claim", subject=_claim_subject(agent, owner, repo, pr))
        return Claim(*rows[0]) if rows else None

    def claim(
        self, agent: str, owner: str, repo: str, pr: int, *, holder: str, now: int, lease: int = 120, again: bool = False
    ) -> str:
        """Claim a review for this holder. Return NEW: claimed, and for the first time. DOUBTFUL: claimed, but the previous
        holder disappeared: check whether it is posted. TAKEN: another holder is working on it, or was when the ledger was
        lost. REVIEWED: it is done, and `again` was not given."""
        subject = _claim_subject(agent, owner, repo, pr)

        def try_claim(transaction: Transaction) -> str:
            transaction.lock(f"done {subject}")
            if not again and transaction.run("reviews.find", agent=agent, owner=owner, repo=repo, pr=pr):
                return REVIEWED
            claims = [Claim(*row) for row in transaction.run("reviews.find_claim", subject=subject)]
            if any(claim.holder != holder and abs(now - claim.time) < lease for claim in claims):
                return TAKEN
            if not claims and abs(now - self._database.last_reset()) < lease:
                return TAKEN
            transaction.run("reviews.claim", subject=subject, holder=holder, now=now)
            return DOUBTFUL if claims else NEW

        return self._database.write(try_claim, retry_after_reset=False)

    def record(self, agent: str, owner: str, repo: str, pr: int, *, holder: str, now: int) -> bool:
        """Record a review that is posted, and end the claim; return whether it is new."""
        values: dict[str, Any] = {"agent": agent, "owner": owner, "repo": repo, "pr": pr, "now": now}

        def insert(transaction: Transaction) -> bool:
            new = transaction.run("reviews.record", **values)
            transaction.run("reviews.release", subject=_claim_subject(agent, owner, repo, pr), holder=holder)
            return bool(new)

        return self._database.write(insert, retry_after_reset=False)

    def release(self, agent: str, owner: str, repo: str, pr: int, *, holder: str) -> None:
        """End a claim whose review is certainly not posted: the next caller may try."""
        subject = _claim_subject(agent, owner, repo, pr)
        self._database.write(
            lambda transaction: transaction.run("reviews.release", subject=subject, holder=holder), retry_after_reset=False
        )

    def list(self, agent: str | None = None, *, limit: int = 50, before: int | None = None) -> tuple[List[Review], int | None]:
        """Return reviews, newest first, and the number to pass as `before` for the next page."""
        rows = self._database.read_current("reviews.list", agent=agent, before=before, most=limit + 1)
        reviews = [Review(*row) for row in rows]
        return reviews[:limit], reviews[limit - 1].number if len(reviews) > limit else None


def _claim_subject(agent: str, owner: str, repo: str, pr: int) -> str:
    return "\0".join(["review", agent, owner, repo, str(pr)])


def _parse_cursor(cursor: str | None) -> _Cursor:
    """Return the row that a page ended with; an empty one for the first page."""
    if cursor is None:
        return _Cursor()
    parts = cursor.split("-")
    if len(parts) != 3 or not all(part.isdecimal() and part.isascii() and len(part) <= 18 for part in parts):
        raise UsageError(f"{cursor[:60]!r} is not a cursor", "Pass `next` of the previous page")
    return _Cursor(*[int(part) for part in parts])
