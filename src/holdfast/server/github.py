"""A review of a pull request on GitHub, posted once (A6).

Look, claim, post, record. GitHub's own list of reviews has the last word: ours is known there by a mark that nobody else can
make, and it is looked for before anything is posted, whatever the ledger says. What was sent without an answer is never
sent again by the same request, and by the next only when so much time has passed that GitHub must be done with it.
"""

from __future__ import annotations

import os
import time

from holdfast.base import dates
from holdfast.base.dates import timestamp
from holdfast.base.ids import digest, keyed_digest
from holdfast.base.record import Record
from holdfast.errors import Busy, HoldfastError, NotFound, TooMany, Trouble, Unreached, UsageError
from holdfast.ledger import done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.base.http_client import Response
    from holdfast.config import Config
    from holdfast.ledger.done import Claim
    from holdfast.ledger.sqlite import SqliteLedger

EVENTS = ("COMMENT", "APPROVE", "REQUEST_CHANGES")
SECONDS = 10.0  # for one request
SETTLE = 120  # seconds after which what was sent is posted or never will be: GitHub ends its own work after ten
PAUSE = 0.5  # before the second try or look; twice as long before the third
TRIES, LOOKS = 3, 2
LONGEST_PAUSE = 5.0  # what GitHub may ask us to wait before we hand that on to whoever asked us
_PAGE, _PAGES = 100, 50
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_WHO = "Whoever runs this gateway"
_SIGN = "<!-- holdfast:review "


class Wanted(Record):
    """What is to be said, and of what. `key` makes a review that is asked for again one of its own."""

    owner: str
    repo: str
    pr_number: int
    body: str
    event: str = "COMMENT"
    again: bool = False
    key: str = ""


class Reviewed(Record):
    """What came of it; `posted` is false if it had been before."""

    posted: bool
    owner: str
    repo: str
    pr_number: int
    reviewed_at: str
    review_id: int | None = None


class _Unheard(Exception):
    """Nobody can say whether it was posted."""


def review(config: Config, ledger: SqliteLedger, agent: str, wanted: Wanted) -> Reviewed:
    """Post it, unless it was posted before. One at a time for each pull request: the lock goes away with its holder."""
    if not config.github_token:
        raise UsageError("no token for GitHub is set here", f"{_WHO} sets github.token, or HOLDFAST_GITHUB_TOKEN")
    whose = f"{config.tenant}/{agent}" if config.store else agent
    subject = f"{whose}/{wanted.owner.lower()}/{wanted.repo.lower()}#{wanted.pr_number}"
    with ledger.named_lock(f"review-{digest(subject.encode())[:2]}", config.lock_seconds):
        return _Review(config, ledger, agent, wanted, subject).run()


class _Mark:
    """How one review is known: by its pull request and agent, and where it was asked for `again` by what makes it another
    one: the request's key, or else what it says and a number of its own, which its claim keeps."""

    def __init__(self, secret: bytes, subject: str, wanted: Wanted, left: Claim | None) -> None:
        def named(*told: str) -> str:
            return keyed_digest("\n".join([subject, *told]).encode("utf-8", "surrogatepass"), secret)

        self._of_all = f"{_SIGN}{named()} "
        self.own, self.may_be_there = "", True
        if wanted.again and wanted.key:
            self.own = named("key", wanted.key)
        elif wanted.again:
            says, before = named("says", wanted.event, wanted.body), _own(left)
            self.may_be_there = before.startswith(f"{says}-")  # one like it was left in doubt: this asks for that one
            self.own = before if self.may_be_there else f"{says}-{os.urandom(8).hex()}"
        self.text = self._text(self.own)
        self.result = self.text if wanted.again else self._of_all  # any of this agent's is the one to be posted once

    def _text(self, own: str) -> str:
        return f"{self._of_all}{own} -->" if own else f"{self._of_all}-->"

    def settled(self, left: Claim | None, row: dict[str, Any]) -> str:
        """Who left a claim for this very review on GitHub; nobody where it was for another one."""
        return left.holder if left is not None and self._text(_own(left)) in str(row.get("body")) else ""


def _own(left: Claim | None) -> str:
    return left.holder.partition("/")[0] if left is not None else ""


class _Review:
    def __init__(self, config: Config, ledger: SqliteLedger, agent: str, wanted: Wanted, subject: str) -> None:
        from holdfast.base.http_client import JsonClient  # urllib3 takes a while to import, and binds a socket on ::1 then

        self._github = JsonClient(config.github_api, "GitHub", config.github_token, SECONDS)
        self._path = f"/repos/{wanted.owner}/{wanted.repo}/pulls/{wanted.pr_number}/reviews"
        self._wanted, self._subject = wanted, subject
        self._reviews = ledger.reviews
        self._names = (agent, wanted.owner.lower(), wanted.repo.lower(), wanted.pr_number)

    def run(self) -> Reviewed:
        before = None if self._wanted.again else self._reviews.get(*self._names)
        if before is not None:
            return self._told(False, timestamp(before.reviewed_at))
        left = self._reviews.left(*self._names)
        self._mark = _Mark(self._reviews.secret(), self._subject, self._wanted, left)
        found = self._found() if self._mark.may_be_there else None
        if found is not None:
            return self._recorded(found, False, self._mark.settled(left, found))
        holder = f"{self._mark.own}/{os.urandom(8).hex()}"
        self._claim(left, holder)
        try:
            posted = self._post()
        except _Unheard as error:  # the claim stays, and with it the doubt
            fix = f"Ask again in {SETTLE} seconds: it is looked up before anything is posted"
            raise Unreached(str(error), fix, retry_after=SETTLE) from None
        except HoldfastError:
            self._reviews.release(*self._names, holder)
            raise
        return self._recorded(posted, True, holder)  # whatever fails here leaves the claim, because it is posted

    def _claim(self, left: Claim | None, holder: str) -> None:
        """From now on it may be posted. Not while one that was sent before may still come to light."""
        now = int(dates.clock())
        claimed = self._reviews.claim(*self._names, holder, now, SETTLE, self._wanted.again)
        if claimed == done.TAKEN:
            wait = max(1, left.time + SETTLE - now) if left is not None else SETTLE
            what = "a review was sent a moment ago, and GitHub neither answered nor shows it yet"
            raise Unreached(what, f"Ask again in {wait} seconds", retry_after=wait)
        if claimed == done.REVIEWED:
            raise Busy("somebody else reviewed it in this very moment", "Ask again: nothing is posted twice")

    def _recorded(self, row: dict[str, Any], posted: bool, holder: str) -> Reviewed:
        now = int(dates.clock())
        self._reviews.record(*self._names, holder, now)
        id = row.get("id")
        return self._told(posted, timestamp(now), id if isinstance(id, int) else None)

    def _told(self, posted: bool, when: str, id: int | None = None) -> Reviewed:
        return Reviewed(posted, self._wanted.owner, self._wanted.repo, self._wanted.pr_number, when, id)

    def _post(self) -> dict[str, Any]:
        """What GitHub keeps of it. Without an answer, or with one of a server in trouble, it may be posted or not."""
        body = {"body": f"{self._wanted.body}\n\n{self._mark.text}", "event": self._wanted.event}
        try:
            response = self._ask("POST", self._path, body)
        except Unreached as error:
            if not error.sent:
                raise
            why = error.message
        else:
            if 200 <= response.status < 300:
                told = response.json()
                return told if isinstance(told, dict) else {}
            if response.status < 500:
                raise _refused(response)
            why = f"GitHub answered with status {response.status}"
        for look in range(LOOKS):
            time.sleep(PAUSE * 2**look)
            try:
                found = self._found()
            except HoldfastError as error:
                raise _Unheard(f"it is not known whether the review was posted: {why}; {error.message}") from None
            if found is not None:
                return found
        raise _Unheard(f"it is not known whether the review was posted: {why}")

    def _found(self) -> dict[str, Any] | None:
        """Our review, if GitHub has it."""
        for page in range(1, _PAGES + 1):
            try:
                response = self._ask("GET", f"{self._path}?per_page={_PAGE}&page={page}")
            except Unreached as error:
                raise Unreached(error.text, error.hint, sent=False) from None
            rows = response.json()
            if response.status != 200 or not isinstance(rows, list):
                raise _refused(response)
            for row in rows:
                if isinstance(row, dict) and self._mark.result in str(row.get("body")):
                    return row
            if len(rows) < _PAGE:
                return None
        fix = "Ask for it with `again` and without an idempotency key: then nothing is looked up"
        raise Trouble("the pull request has too many reviews to look through", fix)

    def _ask(self, method: str, path: str, body: Any = None) -> Response:
        """An answer. Asked again only where surely nothing was done: nobody was there, GitHub said to wait a little, or
        nothing was to be done."""
        for attempt in range(1, TRIES + 1):
            try:
                response = self._github.request(method, path, body, _HEADERS)
            except Unreached as error:
                if error.sent or attempt == TRIES:
                    raise
                pause = PAUSE * 2 ** (attempt - 1)
            else:
                pause = _asked_to_wait(response)
                if not pause and method == "GET" and response.status >= 500 and attempt < TRIES:
                    pause = PAUSE * 2 ** (attempt - 1)
                if not pause:
                    return response
                if attempt == TRIES or pause > LONGEST_PAUSE:
                    raise TooMany("GitHub asks us to wait", "Wait as long as Retry-After says", retry_after=pause)
            time.sleep(pause)
        raise AssertionError("unreachable")


def _asked_to_wait(response: Response) -> float:
    """How long GitHub asks us to wait; nought if it does not."""
    if response.status not in (403, 429):
        return 0.0
    after, left = response.headers.get("retry-after", ""), response.headers.get("x-ratelimit-remaining", "")
    if after.isdecimal():
        return float(after) or PAUSE
    if left == "0" or response.status == 429:
        until = response.headers.get("x-ratelimit-reset", "")
        return max(float(until) - time.time(), PAUSE) if until.isdecimal() else 60.0
    return 0.0


def _refused(response: Response) -> HoldfastError:
    """What GitHub said no to, as one of ours."""
    told = response.json()
    why = str(told.get("message", ""))[:200] if isinstance(told, dict) else ""
    if response.status == 401:
        return Unreached("GitHub does not accept the token", f"{_WHO} sets github.token anew", sent=False)
    if response.status == 403:
        return Unreached(f"GitHub does not allow it: {why}", f"{_WHO} lets its token write pull requests", sent=False)
    if response.status == 404:
        return NotFound("no such pull request, or none that the token may see", "Check owner, repo and pr_number")
    if response.status == 422:
        return UsageError(f"GitHub does not take this review: {why}", "Check the event and the body")
    return Unreached(f"GitHub answered with status {response.status}", "Ask later, or have github.api checked", sent=False)
