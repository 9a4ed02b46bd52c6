"""Requests and latency of the last hour, of all workers: one point every 10 seconds, computed from the shared counters.

Each worker keeps a series of its own, because any of them may be asked for it. A worker that is started again begins a new one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from holdfast.server.metrics import DURATION_BOUNDS, RequestTotals

STEP_SECONDS = 10
MAX_POINTS = 360  # an hour
_SHORTEST_SECONDS = STEP_SECONDS / 2  # less is added to the next point: a rate over a moment would be a false peak


class Point(NamedTuple):
    """Requests that were answered in the seconds before `time`."""

    time: int  # Unix time
    seconds: float
    succeeded: int  # status below 400
    client_errors: int
    server_errors: int
    p50_seconds: float | None  # None: there were no requests
    p95_seconds: float | None


class Traffic:
    """The points of the last hour."""

    def __init__(self, read_totals: Callable[[], RequestTotals], clock: Callable[[], float] = time.time) -> None:
        self._read_totals, self._clock = read_totals, clock
        self._lock = threading.Lock()
        self._points: deque[Point] = deque(maxlen=MAX_POINTS)
        self._time, self._totals = clock(), read_totals()  # as they were at the last point

    def sample(self) -> None:
        """Add a point if the last one is 10 seconds old; call it about once a second."""
        with self._lock:
            now = self._clock()
            if now < self._time:  # the clock was set back: the old points would be in the future
                self._points.clear()
                self._time, self._totals = now, self._read_totals()
            elif now // STEP_SECONDS > self._time // STEP_SECONDS and now - self._time >= _SHORTEST_SECONDS:
                totals = self._read_totals()
                self._points.append(_make_point(now, now - self._time, self._totals, totals))
                self._time, self._totals = now, totals

    def list_points(self) -> list[Point]:
        """Return the points of the last hour, oldest first."""
        with self._lock:
            oldest = self._clock() - MAX_POINTS * STEP_SECONDS
            return [point for point in self._points if point.time > oldest]


def _make_point(now: float, seconds: float, before: RequestTotals, after: RequestTotals) -> Point:
    by_class = {1: 0, 2: 0, 3: 0, 4: 0, 5: 0}
    for status, total in after.by_status.items():
        if status:  # 0: the client went away before an answer began
            by_class[status // 100] += round(total - before.by_status.get(status, 0))
    durations = [new - old for new, old in zip(after.by_duration, before.by_duration, strict=True)]
    return Point(
        time=int(now // STEP_SECONDS * STEP_SECONDS), seconds=seconds, succeeded=by_class[1] + by_class[2] + by_class[3],
        client_errors=by_class[4], server_errors=by_class[5], p50_seconds=estimate_percentile(durations, 0.5),
        p95_seconds=estimate_percentile(durations, 0.95),
    )  # fmt: skip


def estimate_percentile(durations: list[float], share: float) -> float | None:
    """Return the seconds within which this share of requests ended, from the counts between `DURATION_BOUNDS`.

    Requests are taken to be spread evenly between two bounds. Beyond the last bound, the last bound is returned."""
    wanted = share * sum(durations)
    if not wanted:
        return None
    lower = 0.0
    for bound, count in zip(DURATION_BOUNDS, durations[:-1], strict=True):
        if count and wanted <= count:
            return lower + (bound - lower) * wanted / count
        wanted -= count
        lower = bound
    return DURATION_BOUNDS[-1]
