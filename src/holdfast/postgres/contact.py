"""Whether the server at an address is there: since when it is not, how long that is waited out, and who looks again.

All who ask that address in this process share it. So one outage is waited out once, from when it began, and not by every
transaction of a request anew; and after that nobody waits for what somebody found to be away a moment ago.
"""

from __future__ import annotations

import threading
import time

import psycopg

from holdfast.postgres.trouble import Again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Address = tuple[tuple[str, Any], ...]

AWAY_SECONDS = 9.0  # how long a server that went away is waited for: then whoever asks is told, and may come again
_STRANGER_SECONDS = 5.0  # the same for one that never answered
SILENCE_SECONDS = 3.0  # without a byte of an answer, before somebody looks whether the server still answers anybody
_LOOK_SECONDS = 3  # that one which was met may take to let one more in: longer, and it counts as away
_LEAST_SECONDS = 2  # for a connection; the client library takes less for this
_AGAIN_SECONDS = 1.0  # between two who look whether one that is away is back
_FRESH_SECONDS = 2.0  # for which what was seen is taken for true
_ANSWERED = ("FATAL:", "ERROR:")  # the server's own words, if only that it lets nobody else in


class Contact:
    """With the server at one address, or with whichever of several takes writes."""

    def __init__(self, given: int = 0) -> None:
        self._given = given  # seconds that its address gives a connection, if it says how many
        self._guard = threading.Lock()
        self._looking = threading.Lock()
        self._met = False  # whether it ever answered,
        self._found = 0.0  # and when it did last
        self._since = 0.0  # when it went away, if it has
        self._next = 0.0  # when somebody may look again,
        self._looks = _LOOK_SECONDS  # and how long that may take at most
        self._seen: dict[Address, tuple[float, bool]] = {}

    def found(self) -> None:
        """It has answered."""
        self._found = time.monotonic()
        if self._since or not self._met:
            with self._guard:
                self._met, self._since, self._looks = True, 0.0, _LOOK_SECONDS

    def lost(self, since: float) -> None:
        """It has not, to somebody who began to wait then; whoever was answered later knows better."""
        with self._guard:
            self._since = self._since or max(since, self._found)

    def end(self, begun: float, seconds: float) -> float:
        """Until when somebody waits for it who began then and has so many seconds: not longer than it may be away."""
        most = seconds if self._met else min(seconds, _STRANGER_SECONDS)
        since = self._since
        return min(begun + most, since + AWAY_SECONDS) if since else begun + most

    def seconds_to_connect(self, end: float, hosts: int) -> int:
        """How long a new connection may take to each of so many hosts; to one that was never met, as long as its address
        says. Of those who come when it has been away for too long one looks whether it is back, and the others are told at
        once: so whoever looks first does not take long."""
        with self._guard:
            now = time.monotonic()
            if self._since and now >= self._since + AWAY_SECONDS:
                if now < self._next:
                    raise Again("the database is not there", "Try again in a moment")
                seconds = self._given or _LEAST_SECONDS
                if self._met:
                    seconds = max(min(seconds, self._looks), _LEAST_SECONDS)
                    self._looks *= 2  # it may be there, and slow
                self._next = now + hosts * seconds + _AGAIN_SECONDS  # if nobody learns anything sooner
                return seconds
            if self._given and not self._met:
                return self._given
            if self._since:
                end = min(end, self._since + AWAY_SECONDS)
            elif not self._met:
                end = min(end, now + _STRANGER_SECONDS)
        return max(int((end - now) / hosts), _LEAST_SECONDS)

    def looked(self) -> None:
        """Whoever looked knows."""
        with self._guard:
            self._next = min(self._next, time.monotonic() + _AGAIN_SECONDS)

    def answers(self, address: dict[str, Any]) -> bool:
        """Whether the very server that owes somebody an answer lets another one in: one that does is only slow. Of all who
        wonder at the same time one looks."""
        key = tuple([(name, address.get(name)) for name in ("host", "hostaddr", "port")])
        with self._looking:
            when, seen = self._seen.get(key, (0.0, False))
            if time.monotonic() - when > _FRESH_SECONDS or not when:
                seen = _lets_in(address)
                self._seen = {key: (time.monotonic(), seen)}
            return seen


def _lets_in(address: dict[str, Any]) -> bool:
    try:
        psycopg.connect(**{**address, "connect_timeout": _LOOK_SECONDS, "target_session_attrs": "any"}).close()
    except psycopg.Error as error:
        return any(words in str(error) for words in _ANSWERED)
    return True
