"""Callers that have read the metrics: for a while they may read them on while the database that holds their tokens is away.

Otherwise the metrics could never say that the database is away. Nothing else is answered without looking up the token.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.access import Caller

_MAX_SCRAPERS = 16
_KNOWN_SECONDS = 900.0  # since the token was last looked up: it may have been revoked or have expired after that


class KnownScrapers:
    """The callers that read the metrics last, by a digest of their token."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()

    def remember(self, token: str, caller: Caller) -> None:
        """Remember a caller whose token was looked up just now and whose role allowed it to read the metrics."""
        with self._lock:
            self._callers[_digest(token)] = (caller, time.monotonic())
            self._callers.move_to_end(_digest(token))
            if len(self._callers) > _MAX_SCRAPERS:
                self._callers.popitem(last=False)

    def forget(self, token: str) -> None:
        """Forget a token that was looked up and is not valid, or may no longer read the metrics."""
        with self._lock:
            self._callers.pop(_digest(token), None)

    def find(self, token: str) -> Caller | None:
        """Return the caller of a token that was looked up within the last 15 minutes."""
        with self._lock:
            caller, seen = self._callers.get(_digest(token), (None, 0.0))
        return caller if time.monotonic() - seen < _KNOWN_SECONDS else None


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
