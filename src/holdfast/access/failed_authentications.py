"""Failed authentications, summed up before they are written into the audit.

A request without a valid token costs a caller nothing, so it must not cost a row each: an attacker would fill the disk. The
first failure of an address and a reason in a minute is one row, the others of that minute are a second one with their number.
More than `MAX_SOURCES` sources in a minute are summed up by reason, under the address `(others)`.
"""

from __future__ import annotations

from _thread import allocate_lock

from holdfast.base import dates
from holdfast.base.record import Record

WINDOW_SECONDS = 60
MAX_SOURCES = 20  # in a minute and a process: at most 48 rows a minute, (20 sources + 4 reasons) * 2
OTHERS = "(others)"
UNKNOWN = "(unknown)"  # the agent of a token that was never issued; no agent can have this name
REASONS = ("missing", "invalid", "expired", "revoked")


class AuthenticationFailure(Record):
    """A request without a valid token. `token` is the public part of one that looks like ours, never the secret."""

    reason: str
    address: str
    tenant: str
    token: str = ""
    agent: str = UNKNOWN


class FailureCount(Record):
    """Failures of one source to be recorded as one row: how many there were, and the first of them."""

    failure: AuthenticationFailure
    count: int


class FailedAuthentications:
    """The failures of this process that are not in the audit yet, for any number of threads."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._window = 0  # the minute that is counted
        self._counts: dict[tuple[str, ...], int] = {}  # by source: failures of this minute that were not taken
        self._first: dict[tuple[str, ...], AuthenticationFailure] = {}
        self._taken: set[tuple[str, ...]] = set()  # sources whose first failure was taken
        self._ended: list[FailureCount] = []  # of the minute before
        self.total = 0

    def add(self, failure: AuthenticationFailure) -> None:
        """Count a failure."""
        with self._lock:
            self._begin_window()
            self.total += 1
            key = (failure.tenant, failure.agent, failure.address, failure.reason)
            if key not in self._first and len(self._first) >= MAX_SOURCES:
                failure = failure.replace(address=OTHERS, token="", agent=UNKNOWN)
                key = (failure.tenant, failure.agent, failure.address, failure.reason)
            self._first.setdefault(key, failure)
            self._counts[key] = self._counts.get(key, 0) + 1

    def take(self, all_of_them: bool = False) -> list[FailureCount]:
        """Return what is due: the first failure of each source at once, the others when their minute has ended."""
        with self._lock:
            self._begin_window()
            if all_of_them:
                self._end_window()
            due, self._ended = self._ended, []
            for key, failure in self._first.items():
                if key not in self._taken:
                    self._taken.add(key)
                    self._counts[key] -= 1
                    due.append(FailureCount(failure, 1))
            return due

    def _begin_window(self) -> None:
        window = int(dates.clock()) // WINDOW_SECONDS
        if window != self._window:
            self._end_window()
            self._window = window

    def _end_window(self) -> None:
        self._ended += [FailureCount(failure, self._counts[key]) for key, failure in self._first.items() if self._counts[key]]
        self._counts, self._first, self._taken = {}, {}, set()
