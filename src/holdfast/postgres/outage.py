"""Track whether the server at an address answers, how long callers wait for it, and which of them tries to connect again.

All threads of the process share it per address. So an outage is waited for once, from its beginning, and not by every
transaction again; after that, callers get an error at once while one of them checks whether the server is back.
"""

from __future__ import annotations

import threading
import time

import psycopg

from holdfast.postgres.errors import RetryLater, retry_or_correct
from holdfast.postgres.settings import CONNECT_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Address = tuple[tuple[str, Any], ...]

AWAY_SECONDS = 9.0  # how long callers wait for a server that went away
_UNKNOWN_SECONDS = 5.0  # the same for one that never answered
SILENCE_SECONDS = 3.0  # without a byte of an answer, before the server is probed
_PROBE_SECONDS = 3  # that a known server may take to accept a connection; if it takes longer, it counts as away
_MIN_SECONDS = 2  # for a connection: libpq does not accept less
_PAUSE_SECONDS = 1.0  # between two attempts to reach a server that is away
_FRESH_SECONDS = 2.0  # for which the result of a probe is used again
_ANSWERED = ("FATAL:", "ERROR:")  # the server's own words, if only that it accepts no more connections


class Outage:
    """The state of the server at one address, or of whichever of several hosts accepts writes."""

    def __init__(self, connect_timeout: int = 0) -> None:
        self._connect_timeout = connect_timeout  # of the address; 0 where it has none
        self._guard = threading.Lock()
        self._probing = threading.Lock()
        self._known = False  # whether the server ever answered
        self._last_answer = 0.0
        self._since = 0.0  # when it went away; 0 if it has not
        self._next_try = 0.0
        self._try_seconds = _PROBE_SECONDS
        self._probed: dict[Address, tuple[float, bool]] = {}

    def record_answer(self) -> None:
        """Record that the server answered."""
        self._last_answer = time.monotonic()
        if self._since or not self._known:
            with self._guard:
                self._known, self._since, self._try_seconds = True, 0.0, _PROBE_SECONDS

    def record_loss(self, since: float) -> None:
        """Record that the server did not answer a caller who waited since then, unless it answered another one later."""
        with self._guard:
            self._since = self._since or max(since, self._last_answer)

    def deadline(self, begun: float, seconds: float) -> float:
        """Return until when a caller waits that began then and has this many seconds: no longer than an outage may last."""
        longest = seconds if self._known else min(seconds, _UNKNOWN_SECONDS)
        since = self._since
        return min(begun + longest, since + AWAY_SECONDS) if since else begun + longest

    def check(self) -> None:
        """Raise RetryLater if the outage has lasted too long and another caller is checking whether it is over."""
        if self._since and self._since + AWAY_SECONDS <= time.monotonic() < self._next_try:
            fix = "Try again in a moment" if self._known else retry_or_correct()
            raise RetryLater("the database cannot be reached", fix)

    def least_seconds(self, hosts: int) -> int:
        """Return how long a caller waits at least for a connection, however little time it has."""
        if self._connect_timeout and not self._known:
            return hosts * self._connect_timeout + 1
        return hosts * _MIN_SECONDS

    def seconds_to_connect(self, hosts: int) -> int:
        """Return how long a connection attempt may take per host; raise RetryLater if this caller is not to try now.

        A server that never answered gets the time that its address sets. When a server has been away for too long, one caller
        at a time tries; its first attempts are short."""
        with self._guard:
            self.check()
            now = time.monotonic()
            if self._since and now >= self._since + AWAY_SECONDS:
                seconds = self._connect_timeout or _MIN_SECONDS
                if self._known:
                    seconds = max(min(seconds, self._try_seconds), _MIN_SECONDS)
                    self._try_seconds *= 2  # the server may only be slow
                self._next_try = now + hosts * seconds + _PAUSE_SECONDS  # unless the attempt ends sooner
                return seconds
            if self._connect_timeout and not self._known:
                return self._connect_timeout
            if self._since:
                return max(int((self._since + AWAY_SECONDS - now) / hosts), _MIN_SECONDS)
            return CONNECT_SECONDS if self._known else max(int(_UNKNOWN_SECONDS / hosts), _MIN_SECONDS)

    def record_attempt(self) -> None:
        """Record that an attempt to connect has ended."""
        with self._guard:
            self._next_try = min(self._next_try, time.monotonic() + _PAUSE_SECONDS)

    def is_answering(self, address: dict[str, Any]) -> bool:
        """Return whether the server that owes an answer accepts another connection: then it is only slow.

        Of all threads that want to know at the same time, one connects."""
        key = tuple([(name, address.get(name)) for name in ("host", "hostaddr", "port")])
        with self._probing:
            when, answered = self._probed.get(key, (0.0, False))
            if time.monotonic() - when > _FRESH_SECONDS or not when:
                answered = _accepts_connections(address)
                self._probed = {key: (time.monotonic(), answered)}
            return answered


def _accepts_connections(address: dict[str, Any]) -> bool:
    try:
        psycopg.connect(**{**address, "connect_timeout": _PROBE_SECONDS, "target_session_attrs": "any"}).close()
    except psycopg.Error as error:
        return any(words in str(error) for words in _ANSWERED)
    return True
