"""Make time and randomness of this process deterministic. Import it before `holdfast`, which then uses these functions."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import time
from datetime import UTC, datetime

FIXED_SIZES = (
    4,
    16,
    32,
)  # of ids, nonces and keys; values of other sizes (temporary names, file ids) must differ from call to call


class Clock:
    """A clock that advances only on demand."""

    def __init__(self, timestamp: str) -> None:
        self.nanoseconds = 0
        self.set(timestamp)

    def set(self, timestamp: str) -> None:
        """Set the time."""
        parsed = datetime.fromisoformat(timestamp.replace("Z", "+00:00")).astimezone(UTC)
        self.nanoseconds = int(parsed.timestamp()) * 10**9

    def advance(self, *, minutes: int = 0, days: int = 0) -> None:
        """Advance the time."""
        self.nanoseconds += (60 * minutes + 86400 * days) * 10**9


clock = Clock("2026-01-05T09:00:00Z")
_other_calls, _token_calls = itertools.count(), itertools.count()


def _make_bytes(seed: str, size: int) -> bytes:
    return hashlib.shake_256(f"golden {seed}".encode()).digest(size)


def _urandom(size: int) -> bytes:
    """Return bytes that depend only on the size if that is a fixed size, so that the number of calls does not matter."""
    return _make_bytes("fixed" if size in FIXED_SIZES else f"call {next(_other_calls)}", size)


def _urandom_for_tokens(size: int) -> bytes:
    return _make_bytes(f"token {next(_token_calls)}", size)


time.time = lambda: clock.nanoseconds / 10**9
time.time_ns = lambda: clock.nanoseconds
os.urandom = _urandom
random._urandom = _urandom_for_tokens  # type: ignore[attr-defined]  # the source of `secrets`: agent tokens
