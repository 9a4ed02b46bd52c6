"""Fix time and randomness of this process. Import it before `holdfast`: what is imported later sees the fixed functions."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import time
from datetime import UTC, datetime

FIXED_SIZES = (4, 16, 32)  # ids, nonces and keys; other sizes (temporary names, file stamps) must differ from call to call


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self, moment: str) -> None:
        self.nanoseconds = 0
        self.set(moment)

    def set(self, moment: str) -> None:
        parsed = datetime.fromisoformat(moment.replace("Z", "+00:00")).astimezone(UTC)
        self.nanoseconds = int(parsed.timestamp()) * 10**9

    def forward(self, *, minutes: int = 0, days: int = 0) -> None:
        self.nanoseconds += (60 * minutes + 86400 * days) * 10**9


clock = Clock("2026-01-05T09:00:00Z")
_other_calls, _token_calls = itertools.count(), itertools.count()


def _bytes(seed: str, size: int) -> bytes:
    return hashlib.shake_256(f"golden {seed}".encode()).digest(size)


def _urandom(size: int) -> bytes:
    """Return bytes that depend on the size alone where the sizes are fixed, so that the number of calls does not matter."""
    return _bytes("fixed" if size in FIXED_SIZES else f"call {next(_other_calls)}", size)


def _urandom_of_tokens(size: int) -> bytes:
    return _bytes(f"token {next(_token_calls)}", size)


time.time = lambda: clock.nanoseconds / 10**9
time.time_ns = lambda: clock.nanoseconds
os.urandom = _urandom
random._urandom = _urandom_of_tokens  # type: ignore[attr-defined]  # what `secrets` draws from: agent tokens
