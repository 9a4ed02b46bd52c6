"""Counts and times, in the text that Prometheus reads: by route and status, never by agent, key or anything of a request."""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.server.request import Request

_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)  # seconds
_REFUSED = ("too_many", "unauthenticated", "denied", "wrong_host", "wrong_origin", "too_large", "too_deep")


class Metrics:
    """What this process has answered."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._answers: dict[tuple[str, int], int] = {}
        self._times: dict[str, list[float]] = {}  # counts up to each bound, all of them, and their sum
        self._refused = dict.fromkeys(_REFUSED, 0)

    def count(self, request: Request, status: int, seconds: float) -> None:
        route = request.route or "none"
        with self._guard:
            self._answers[route, status] = self._answers.get((route, status), 0) + 1
            times = self._times.setdefault(route, [0.0] * (len(_BOUNDS) + 2))
            for place in range(bisect_left(_BOUNDS, seconds), len(_BOUNDS)):
                times[place] += 1
            times[-2] += 1
            times[-1] += seconds
            if request.outcome in self._refused:
                self._refused[request.outcome] += 1

    def text(self, unrecorded: int) -> str:
        with self._guard:
            answers, times = dict(self._answers), {route: list(one) for route, one in self._times.items()}
            refused = dict(self._refused)
        lines = ["# TYPE holdfast_requests_total counter"]
        for (route, status), count in sorted(answers.items()):
            lines.append(f'holdfast_requests_total{{route="{route}",status="{status}"}} {count}')
        lines.append("# TYPE holdfast_request_seconds histogram")
        for route, one in sorted(times.items()):
            for bound, many in zip((*_BOUNDS, "+Inf"), one, strict=False):
                lines.append(f'holdfast_request_seconds_bucket{{route="{route}",le="{bound}"}} {int(many)}')
            lines.append(f'holdfast_request_seconds_count{{route="{route}"}} {int(one[-2])}')
            lines.append(f'holdfast_request_seconds_sum{{route="{route}"}} {one[-1]:.6f}')
        lines.append("# TYPE holdfast_refused_total counter")
        lines += [f'holdfast_refused_total{{why="{why}"}} {count}' for why, count in refused.items()]
        lines += ["# TYPE holdfast_audit_unrecorded_total counter", f"holdfast_audit_unrecorded_total {unrecorded}"]
        return "\n".join(lines) + "\n"
