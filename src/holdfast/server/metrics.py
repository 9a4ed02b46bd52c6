"""Counts and durations in Prometheus text format: by route and status, never by agent, key or anything of a request."""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.server.logs import RequestRecord

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)  # upper bounds in seconds
_REFUSALS = ("too_many", "quota_exceeded", "unauthenticated", "denied", "wrong_host", "wrong_origin", "too_large", "too_deep")


class Metrics:
    """Counters of the responses of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, int], int] = {}
        self._durations: dict[str, _Histogram] = {}
        self._refused = dict.fromkeys(_REFUSALS, 0)

    def count(self, record: RequestRecord, seconds: float) -> None:
        route = record.route or "none"
        with self._lock:
            self._answers[route, record.status] = self._answers.get((route, record.status), 0) + 1
            self._durations.setdefault(route, _Histogram()).add(seconds)
            if record.outcome in self._refused:
                self._refused[record.outcome] += 1

    def render(self, unrecorded: int) -> str:
        """Return all metrics as text; `unrecorded` counts decisions that could not be written to the audit."""
        with self._lock:
            lines = ["# TYPE holdfast_requests_total counter"]
            for (route, status), count in sorted(self._answers.items()):
                lines.append(f'holdfast_requests_total{{route="{route}",status="{status}"}} {count}')
            lines.append("# TYPE holdfast_request_seconds histogram")
            for route, durations in sorted(self._durations.items()):
                lines += durations.render(route)
            lines.append("# TYPE holdfast_refused_total counter")
            lines += [f'holdfast_refused_total{{why="{why}"}} {count}' for why, count in self._refused.items()]
        lines += ["# TYPE holdfast_audit_unrecorded_total counter", f"holdfast_audit_unrecorded_total {unrecorded}"]
        return "\n".join(lines) + "\n"


class _Histogram:
    """Durations of one route: how many were at most as long as each bound, how many there were, and their sum."""

    def __init__(self) -> None:
        self.at_most = [0] * len(_BUCKETS)
        self.count, self.sum = 0, 0.0

    def add(self, seconds: float) -> None:
        for number in range(bisect_left(_BUCKETS, seconds), len(_BUCKETS)):
            self.at_most[number] += 1
        self.count += 1
        self.sum += seconds

    def render(self, route: str) -> list[str]:
        counts = [*zip(_BUCKETS, self.at_most, strict=True), ("+Inf", self.count)]
        return [
            *[f'holdfast_request_seconds_bucket{{route="{route}",le="{bound}"}} {count}' for bound, count in counts],
            f'holdfast_request_seconds_count{{route="{route}"}} {self.count}',
            f'holdfast_request_seconds_sum{{route="{route}"}} {self.sum:.6f}',
        ]
