"""Rate limits of a token: requests per second and concurrent requests, so that one caller does not slow down others."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.errors import TooMany

_MAX_BUCKETS = 10_000  # for the most recently used tokens


class RateLimit:
    """A token bucket per access token: it holds one second's worth of requests and refills steadily. 0 means no limit."""

    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when that was counted

    def take(self, token: str) -> None:
        """Count one request; raise `TooMany` if none is left."""
        if not self._per_second:
            return
        size = float(self._per_second)
        with self._lock:
            now = self._clock()
            left, counted = self._buckets.pop(token, (size, now))
            left = min(size, left + (now - counted) * self._per_second)
            self._buckets[token] = (left - 1 if left >= 1 else left, now)
            if len(self._buckets) > _MAX_BUCKETS:
                self._buckets.popitem(last=False)
        if left < 1:
            wait = (1 - left) / self._per_second
            what = f"more than {self._per_second} requests a second"
            raise TooMany(what, "Wait for the seconds in Retry-After", retry_after=wait)


class ConcurrencyLimit:
    """Limits of concurrent requests; one token may have at most half of the running requests.

    A request that waits for its body, or for its answer to be read, counts only for its own token.
    """

    def __init__(self, max_working: int) -> None:
        self._max_working, self._max_per_token = max_working, max(1, max_working // 2)
        self._lock = threading.Lock()
        self.by_token: dict[str, int] = {}
        self._working = 0

    @contextmanager
    def enter(self, token: str) -> Iterator[None]:
        """Count a request from its head to the end of its answer; raise `TooMany` if its token has too many."""
        with self._lock:
            if self.by_token.get(token, 0) >= self._max_per_token:
                raise _too_many()
            self.by_token[token] = self.by_token.get(token, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self.by_token[token] -= 1
                if not self.by_token[token]:
                    del self.by_token[token]

    @contextmanager
    def work(self) -> Iterator[None]:
        """Count a request while its handler runs; raise `TooMany` if too many run."""
        with self._lock:
            if self._working >= self._max_working:
                raise _too_many()
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working -= 1


def _too_many() -> TooMany:
    return TooMany("too many concurrent requests", "Wait until the current ones finish", retry_after=1)
