"""How much one token may ask: so many requests a second, and so many at a time; the others do not feel it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.errors import TooMany

_KNOWN = 10_000  # tokens whose last requests are remembered


class RateLimit:
    """A bucket a token: it holds one second's worth, and fills as time goes by. Nought means no limit."""

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._guard = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left in it, and since when

    def take(self, token: str) -> None:
        """One request; refused if there is none left."""
        if not self._rate:
            return
        with self._guard:
            now = self._clock()
            left, since = self._buckets.pop(token, (float(self._rate), now))
            left = min(float(self._rate), left + (now - since) * self._rate)
            self._buckets[token] = (left - 1 if left >= 1 else left, now)
            if len(self._buckets) > _KNOWN:
                self._buckets.popitem(last=False)
        if left < 1:
            wait = (1 - left) / self._rate
            raise TooMany(f"more than {self._rate} requests a second", "Wait as long as Retry-After says", retry_after=wait)


class ConcurrencyLimit:
    """How many requests are under way: of one token at most half of what all together may have at work. One that waits for
    its body, or for its answer to be read, counts for its own token and for nobody else's."""

    def __init__(self, most: int) -> None:
        self._most, self._each = most, max(1, most // 2)
        self._guard = threading.Lock()
        self.of: dict[str, int] = {}
        self.count = 0  # at work

    @contextmanager
    def enter(self, token: str) -> Iterator[None]:
        """For as long as one request takes, from its head to the end of its answer."""
        with self._guard:
            if self.of.get(token, 0) >= self._each:
                raise _crowded()
            self.of[token] = self.of.get(token, 0) + 1
        try:
            yield
        finally:
            with self._guard:
                self.of[token] -= 1
                if not self.of[token]:
                    del self.of[token]

    @contextmanager
    def work(self) -> Iterator[None]:
        """For as long as it is being worked on."""
        with self._guard:
            if self.count >= self._most:
                raise _crowded()
            self.count += 1
        try:
            yield
        finally:
            with self._guard:
                self.count -= 1


def _crowded() -> TooMany:
    return TooMany("too many requests at a time", "Wait for the ones under way", retry_after=1)
