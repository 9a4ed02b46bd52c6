"""Post a review of a pull request on GitHub once.

Look for it, claim it, post it, record it. GitHub's own list of reviews decides: ours contains a mark that only we can make, and
we look for it before we post, whatever the ledger says. A review that was sent without an answer is never sent again by the
same request, and by the next one only after so long that GitHub must have finished with it.
"""

from __future__ import annotations

import os
import time

from holdfast.access.grants import is_repository
from holdfast.base import dates
from holdfast.base.dates import format_timestamp
from holdfast.base.ids import digest, keyed_digest
from holdfast.base.record import Record
from holdfast.errors import Busy, HoldfastError, NotFound, TooMany, Trouble, Unreached, UsageError
from holdfast.ledger import done
from holdfast.server import github_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.base.http_client import Response
    from holdfast.config import Config
    from holdfast.ledger.done import Claim
    from holdfast.ledger.interface import Ledger

MAX_NUMBER = 10**9  # of a pull request
EVENTS = ("COMMENT", "APPROVE", "REQUEST_CHANGES")
SECONDS = 10.0  # timeout of one request
SETTLE = 120  # seconds after which a sent review is posted or never will be: GitHub ends its own work after ten
PAUSE = 0.5  # seconds before the second attempt; twice as long before the third
TRIES, LOOKS = 3, 2
LONGEST_PAUSE = 5.0  # seconds that we wait for GitHub's rate limit; for more the caller has to come back
_PAGE_SIZE, _MAX_PAGES = 100, 50
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_OPERATOR = "Ask the operator to"
_MARK_START = "<!-- holdfast:review "


class Wanted(Record):
    """The review to post. With `again`, `key` tells it from other reviews of the same pull request."""

    owner: str
    repo: str
    pr_number: int
    body: str
    event: str = "COMMENT"
    again: bool = False
    key: str = ""


class Reviewed(Record):
    """The result; `posted` is false if the review had been posted before."""

    posted: bool
    owner: str
    repo: str
    pr_number: int
    reviewed_at: str
    review_id: int | None = None


class _InDoubt(Exception):
    """It is not known whether the review was posted."""


def review(config: Config, ledger: Ledger, agent: str, wanted: Wanted) -> Reviewed:
    """Post a review unless it was posted before; one at a time for each pull request."""
    _check_names(wanted)
    token = github_token.find(config, agent)
    if not token:
        raise UsageError("no token for GitHub is configured", f"{_OPERATOR} set github.token or HOLDFAST_GITHUB_TOKEN")
    owner = f"{config.tenant}/{agent}" if config.store else agent
    subject = f"{owner}/{wanted.owner.lower()}/{wanted.repo.lower()}#{wanted.pr_number}"
    with ledger.named_lock(f"review-{digest(subject.encode())[:2]}", config.lock_seconds):
        return _Review(config, token, ledger, agent, wanted, subject).run()


def _check_names(wanted: Wanted) -> None:
    """Raise UsageError unless owner, repository, number and event are valid: they become part of an outgoing request."""
    if not is_repository(wanted.owner, wanted.repo):
        raise UsageError("not a valid name of a GitHub repository", "Check owner and repo")
    number = wanted.pr_number
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_NUMBER:
        raise UsageError("not a valid number of a pull request", f"Give 1 to {MAX_NUMBER:,}")
    if wanted.event not in EVENTS:
        raise UsageError("unknown review event", f"One of: {', '.join(EVENTS)}")


class _Mark:
    """The mark in a review's text, by which we find it again: a digest of its pull request and agent.

    With `again` also what tells it from others: the request's key, or else its text and a random number kept in its claim.
    """

    def __init__(self, secret: bytes, subject: str, wanted: Wanted, left: Claim | None) -> None:
        def sign(*parts: str) -> str:
            return keyed_digest("\n".join([subject, *parts]).encode("utf-8", "surrogatepass"), secret)

        self._common = f"{_MARK_START}{sign()} "
        self.own, self.may_be_there = "", True
        if wanted.again and wanted.key:
            self.own = sign("key", wanted.key)
        elif wanted.again:
            says, before = sign("says", wanted.event, wanted.body), _own(left)
            self.may_be_there = before.startswith(f"{says}-")  # the same review was left in doubt: look for that one
            self.own = before if self.may_be_there else f"{says}-{os.urandom(8).hex()}"
        self.text = self._text(self.own)
        self.result = self.text if wanted.again else self._common  # without `again` any review of this agent counts

    def _text(self, own: str) -> str:
        return f"{self._common}{own} -->" if own else f"{self._common}-->"

    def settled(self, left: Claim | None, row: dict[str, Any]) -> str:
        """Return the holder of a claim that was left for this review; "" if it was for another one."""
        return left.holder if left is not None and self._text(_own(left)) in str(row.get("body")) else ""


def _own(left: Claim | None) -> str:
    return left.holder.partition("/")[0] if left is not None else ""


class _Review:
    def __init__(
        self, config: Config, token: str, ledger: Ledger, agent: str, wanted: Wanted, subject: str
    ) -> None:  # fmt: skip
        from holdfast.base.http_client import JsonClient  # urllib3 is slow to import, and binds a socket on ::1 then

        self._github = JsonClient(config.github_api, "GitHub", token, SECONDS)
        self._path = f"/repos/{wanted.owner}/{wanted.repo}/pulls/{wanted.pr_number}/reviews"
        self._wanted, self._subject = wanted, subject
        self._reviews = ledger.reviews
        self._names = (agent, wanted.owner.lower(), wanted.repo.lower(), wanted.pr_number)

    def run(self) -> Reviewed:
        before = None if self._wanted.again else self._reviews.get(*self._names)
        if before is not None:
            return self._result(False, format_timestamp(before.reviewed_at))
        left = self._reviews.find_claim(*self._names)
        self._mark = _Mark(self._reviews.secret(), self._subject, self._wanted, left)
        found = self._find() if self._mark.may_be_there else None
        if found is not None:
            return self._record(found, False, self._mark.settled(left, found))
        holder = f"{self._mark.own}/{os.urandom(8).hex()}"
        self._claim(left, holder)
        try:
            posted = self._post()
        except _InDoubt as error:  # the claim stays: the next request looks first
            fix = f"Try again in {SETTLE} seconds. Holdfast checks GitHub before it posts"
            raise Unreached(str(error), fix, retry_after=SETTLE) from None
        except HoldfastError:
            self._reviews.release(*self._names, holder=holder)
            raise
        return self._record(posted, True, holder)  # an error here leaves the claim, because it is posted

    def _claim(self, left: Claim | None, holder: str) -> None:
        """Claim the review before it is posted; raise while one that was sent before may still appear."""
        now = int(dates.clock())
        claimed = self._reviews.claim(*self._names, holder=holder, now=now, lease=SETTLE, again=self._wanted.again)
        if claimed == done.TAKEN:
            wait = max(1, left.time + SETTLE - now) if left is not None else SETTLE
            what = "a review was sent a moment ago, and GitHub has not confirmed it yet"
            raise Unreached(what, f"Try again in {wait} seconds", retry_after=wait)
        if claimed == done.REVIEWED:
            raise Busy("another process reviewed it at the same time", "Try again. A review is never posted twice")

    def _record(self, row: dict[str, Any], posted: bool, holder: str) -> Reviewed:
        now = int(dates.clock())
        self._reviews.record(*self._names, holder=holder, now=now)
        id = row.get("id")
        return self._result(posted, format_timestamp(now), id if isinstance(id, int) else None)

    def _result(self, posted: bool, when: str, id: int | None = None) -> Reviewed:
        return Reviewed(
            posted=posted,
            owner=self._wanted.owner,
            repo=self._wanted.repo,
            pr_number=self._wanted.pr_number,
            reviewed_at=when,
            review_id=id,
        )

    def _post(self) -> dict[str, Any]:
        """Post it and return GitHub's row. Without an answer, or after a server error, check whether it was posted."""
        body = {"body": f"{self._wanted.body}\n\n{self._mark.text}", "event": self._wanted.event}
        try:
            response = self._request("POST", self._path, body)
        except Unreached as error:
            if not error.sent:
                raise
            why = error.message
        else:
            if 200 <= response.status < 300:
                row = response.json()
                return row if isinstance(row, dict) else {}
            if response.status < 500:
                raise _error_of(response)
            why = f"GitHub answered with status {response.status}"
        for look in range(LOOKS):
            time.sleep(PAUSE * 2**look)
            try:
                found = self._find()
            except HoldfastError as error:
                raise _InDoubt(f"it is not known whether the review was posted: {why}; {error.message}") from None
            if found is not None:
                return found
        raise _InDoubt(f"it is not known whether the review was posted: {why}")

    def _find(self) -> dict[str, Any] | None:
        """Return our review, if GitHub has it."""
        for page in range(1, _MAX_PAGES + 1):
            try:
                response = self._request("GET", f"{self._path}?per_page={_PAGE_SIZE}&page={page}")
            except Unreached as error:
                raise Unreached(error.text, error.hint, sent=False) from None
            rows = response.json()
            if response.status != 200 or not isinstance(rows, list):
                raise _error_of(response)
            for row in rows:
                if isinstance(row, dict) and self._mark.result in str(row.get("body")):
                    return row
            if len(rows) < _PAGE_SIZE:
                return None
        fix = "Send it with `again` and without an idempotency key to skip the check"
        raise Trouble("the pull request has too many reviews to check", fix)

    def _request(self, method: str, path: str, body: Any = None) -> Response:
        """Return GitHub's response; try again only if nothing was done: not reached, rate limited, or a failed GET."""
        for attempt in range(1, TRIES + 1):
            try:
                response = self._github.request(method, path, body, _HEADERS)
            except Unreached as error:
                if error.sent or attempt == TRIES:
                    raise
                pause = PAUSE * 2 ** (attempt - 1)
            else:
                pause = _rate_limit_pause(response)
                if not pause and method == "GET" and response.status >= 500 and attempt < TRIES:
                    pause = PAUSE * 2 ** (attempt - 1)
                if not pause:
                    return response
                if attempt == TRIES or pause > LONGEST_PAUSE:
                    raise TooMany("GitHub's rate limit is reached", "Wait for the seconds in Retry-After", retry_after=pause)
            time.sleep(pause)
        raise AssertionError("unreachable")


def _rate_limit_pause(response: Response) -> float:
    """Return for how many seconds GitHub asks us to wait; 0 if it does not."""
    if response.status not in (403, 429):
        return 0.0
    after, left = response.headers.get("retry-after", ""), response.headers.get("x-ratelimit-remaining", "")
    if after.isdecimal():
        return float(after) or PAUSE
    if left == "0" or response.status == 429:
        until = response.headers.get("x-ratelimit-reset", "")
        return max(float(until) - time.time(), PAUSE) if until.isdecimal() else 60.0
    return 0.0


def _error_of(response: Response) -> HoldfastError:
    """Return GitHub's refusal as one of Holdfast's errors."""
    body = response.json()
    why = str(body.get("message", ""))[:200] if isinstance(body, dict) else ""
    if response.status == 401:
        return Unreached("GitHub rejected the token", f"{_OPERATOR} set a new github.token", sent=False)
    if response.status == 403:
        return Unreached(f"GitHub denied it: {why}", f"{_OPERATOR} allow its token to write pull requests", sent=False)
    if response.status == 404:
        return NotFound("the pull request does not exist, or the token cannot see it", "Check owner, repo and pr_number")
    if response.status == 422:
        return UsageError(f"GitHub rejected this review: {why}", "Check the event and the body")
    return Unreached(f"GitHub answered with status {response.status}", "Try again later, or check github.api", sent=False)
