"""Wait for a condition instead of sleeping for a fixed time."""

from __future__ import annotations

import time


def wait_until(condition, seconds=60):
    """Call the condition until its result is true and return the result; fail after this many seconds."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"the condition was not true within {seconds} seconds"
        time.sleep(0.01)
    return result
