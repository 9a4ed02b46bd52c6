"""Waiting for what happens elsewhere: no test sleeps and hopes."""

from __future__ import annotations

import time


def until(asked, seconds=60):
    """Ask until it is so; what was answered then."""
    end = time.monotonic() + seconds
    while not (answer := asked()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return answer
