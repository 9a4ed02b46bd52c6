"""Metrics of all workers in Prometheus text format: by route and status, never by agent, key or anything of a request."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from holdfast import __version__
from holdfast.server.shared_counters import SharedCounters

if TYPE_CHECKING:
    from holdfast.server.logs import RequestRecord

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DURATION_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)  # upper bounds in seconds
_REFUSALS = ("too_many", "quota_exceeded", "unauthenticated", "denied", "wrong_host", "wrong_origin", "too_large", "too_deep")

REQUESTS = "holdfast_requests_total"
SECONDS = "holdfast_request_seconds"
REFUSED = "holdfast_refused_total"
UNRECORDED = "holdfast_audit_unrecorded_total"
FAILED_AUTHENTICATIONS = "holdfast_audit_failed_authentications_total"
SHIPPED = "holdfast_audit_shipped_total"
SHIP_FAILURES = "holdfast_audit_ship_failures_total"
SHIP_WAITING = "holdfast_audit_ship_waiting"
BACKGROUND_FAILURES = "holdfast_background_failures_total"
EXPIRED_TOKENS = "holdfast_expired_token_requests_total"
WORKER_RESTARTS = "holdfast_worker_restarts_total"
WORKERS = "holdfast_workers"
MEMORY = "holdfast_process_resident_memory_bytes"
WRITE_QUEUE = "holdfast_write_queue_length"
POOL_MAX = "holdfast_database_pool_max_connections"
POOL_OPEN = "holdfast_database_pool_connections"
POOL_IDLE = "holdfast_database_pool_idle_connections"
POOL_WAITING = "holdfast_database_pool_waiting_requests"
READY = "holdfast_ready"
DATABASE_UP = "holdfast_database_up"
DISK_WRITABLE = "holdfast_disk_writable"
DISK_FREE = "holdfast_disk_free_bytes"
DISK_TOTAL = "holdfast_disk_total_bytes"
VECTOR_BACKLOG = "holdfast_vector_backlog_passages"
TOKENS_EXPIRING = "holdfast_tokens_expiring"
BUILD = "holdfast_build_info"


class Metric(NamedTuple):
    """The type and the description of a metric."""

    type: str
    help: str


METRICS: dict[str, Metric] = {
    REQUESTS: Metric("counter", "Responses by route and HTTP status."),
    SECONDS: Metric("histogram", "Seconds from the head of a request to the end of its response, by route."),
    REFUSED: Metric("counter", "Requests rejected, by reason."),
    UNRECORDED: Metric("counter", "Decisions that could not be written to the audit log."),
    FAILED_AUTHENTICATIONS: Metric("counter", "Failed authentications. The audit log has them in summary rows."),
    SHIPPED: Metric("counter", "Audit rows shipped."),
    SHIP_FAILURES: Metric("counter", "Failed attempts to ship audit rows."),
    SHIP_WAITING: Metric("gauge", "Audit rows waiting to be shipped."),
    EXPIRED_TOKENS: Metric("counter", "Requests rejected because the token has expired."),
    BACKGROUND_FAILURES: Metric("counter", "Failures of background work, by kind of work."),
    WORKER_RESTARTS: Metric("counter", "Worker processes that died and were restarted."),
    WORKERS: Metric("gauge", "Worker processes."),
    MEMORY: Metric("gauge", "Resident memory of a worker process in bytes."),
    WRITE_QUEUE: Metric("gauge", "Writes waiting for the next batch."),
    POOL_MAX: Metric("gauge", "Maximum number of connections, by pool."),
    POOL_OPEN: Metric("gauge", "Open connections to PostgreSQL, by pool."),
    POOL_IDLE: Metric("gauge", "Idle connections to PostgreSQL, by pool."),
    POOL_WAITING: Metric("gauge", "Threads waiting for a connection to PostgreSQL, by pool."),
    READY: Metric("gauge", "1 if the server is ready (/readyz answers 200), otherwise 0."),
    DATABASE_UP: Metric("gauge", "1 if the database with tokens and the audit log answers, otherwise 0."),
    DISK_WRITABLE: Metric("gauge", "1 if memory can be written, 0 if the disk is full or read-only."),
    DISK_FREE: Metric("gauge", "Free bytes on the file system of the home."),
    DISK_TOTAL: Metric("gauge", "Size of the file system of the home in bytes."),
    VECTOR_BACKLOG: Metric("gauge", "Passages of the server's own tenant that have no vectors yet."),
    TOKENS_EXPIRING: Metric("gauge", "Agents of the server's own tenant whose last token expires within this number of days."),
    BUILD: Metric("gauge", "The version of Holdfast; the value is always 1."),
}


class Sample(NamedTuple):
    """A value that is known when the metrics are read."""

    name: str
    value: float
    labels: Mapping[str, str] = {}


class RequestTotals(NamedTuple):
    """Requests of all workers since the gateway started."""

    by_status: dict[int, float]
    by_duration: list[float]  # requests between each bound of `DURATION_BOUNDS` and the previous bound, then the longer ones


class Metrics:
    """Counters and gauges of this process, and the sums of all processes that share its memory."""

    def __init__(self, shared: SharedCounters | None = None, worker: int = 0) -> None:
        self._shared = shared or SharedCounters()
        self._part = self._shared.of_worker(worker)
        self._lock = threading.Lock()
        self._totals: dict[str, float] = {}  # totals of this process as they were last added
        with self._lock:
            for key, _ in self._part.entries():  # of a predecessor that died
                if _type_of(key) == "gauge":
                    self._part.set(key, 0)
            for key in (
                _key(UNRECORDED), _key(EXPIRED_TOKENS), _key(WORKER_RESTARTS), _key(WRITE_QUEUE),
                _key(FAILED_AUTHENTICATIONS), _key(SHIPPED), _key(SHIP_FAILURES), _key(SHIP_WAITING),
                _key(BACKGROUND_FAILURES, work="retention"), *[_key(REFUSED, why=why) for why in _REFUSALS],
            ):  # fmt: skip
                self._part.add(key, 0)
            self._part.set(_key(WORKERS), 1)

    def count(self, record: RequestRecord, seconds: float) -> None:
        """Count an answered request."""
        route = record.route or "none"
        with self._lock:
            self._part.add(_key(REQUESTS, route=route, status=str(record.status)))
            durations = _key(SECONDS, route=route)  # how many were in each bucket, how many were longer, and the sum
            self._part.add(durations, position=bisect_left(DURATION_BOUNDS, seconds), size=len(DURATION_BOUNDS) + 2)
            self._part.add(durations, seconds, position=len(DURATION_BOUNDS) + 1)
            if record.outcome in _REFUSALS:
                self._part.add(_key(REFUSED, why=record.outcome))

    def advance(self, name: str, total: float, **labels: str) -> None:
        """Add what a total that this process keeps elsewhere has grown by since the last call."""
        key = _key(name, **labels)
        with self._lock:
            before = self._totals.get(key, 0)
            self._totals[key] = total
            self._part.add(key, total - before)

    def skip(self, before: Mapping[tuple[str, tuple[tuple[str, str], ...]], float]) -> None:
        """Count totals only from these values on: what they had before belongs to another process."""
        self._totals |= {_key(name, **dict(labels)): total for (name, labels), total in before.items()}

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge of this process; the metrics show the sum over all processes."""
        with self._lock:
            self._part.set(_key(name, **labels), value)

    def sum_requests(self) -> RequestTotals:
        """Return the requests of all processes, summed over routes."""
        by_status: dict[int, float] = {}
        by_duration = [0.0] * (len(DURATION_BOUNDS) + 1)
        for key, numbers in self._shared.sums().items():
            name = key.partition("{")[0]
            if name == REQUESTS:
                status = int(key.rpartition('status="')[2].removesuffix('"}'))
                by_status[status] = by_status.get(status, 0.0) + numbers[0]
            elif name == SECONDS:
                by_duration = [one + more for one, more in zip(by_duration, numbers[:-1], strict=True)]
        return RequestTotals(by_status, by_duration)

    def render(self, samples: Iterable[Sample] = ()) -> str:
        """Return all metrics of all processes as text, and these samples."""
        values = self._shared.sums()
        values |= {_key(one.name, **one.labels): [one.value] for one in samples}
        values[_key(BUILD, version=__version__)] = [1]
        by_name: dict[str, list[str]] = {}
        for key, numbers in sorted(values.items()):
            name, _, labels = key.partition("{")
            by_name.setdefault(name, []).extend(_lines(name, labels.removesuffix("}"), numbers))
        lines: list[str] = []
        for name, metric in METRICS.items():
            if name in by_name or metric.type == "counter":
                lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.type}", *by_name.get(name, [])]
        return "\n".join(lines) + "\n"


def count_restart(shared: SharedCounters) -> None:
    """Count, in the parent process, a worker that died and is started again."""
    shared.of_parent().add(_key(WORKER_RESTARTS))


def _key(name: str, **labels: str) -> str:
    """Return the name and the labels as the text format writes them."""
    if not labels:
        return name
    return name + "{" + ",".join([f'{label}="{_escape(value)}"' for label, value in labels.items()]) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _type_of(key: str) -> str:
    return METRICS[key.partition("{")[0]].type


def _lines(name: str, labels: str, numbers: list[float]) -> list[str]:
    if METRICS[name].type != "histogram":
        return [f"{name}{{{labels}}} {_format(numbers[0])}" if labels else f"{name} {_format(numbers[0])}"]
    *buckets, total = numbers
    lines, count = [], 0.0
    for bound, more in zip((*DURATION_BOUNDS, "+Inf"), buckets, strict=True):
        count += more
        lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {_format(count)}')
    return [*lines, f"{name}_count{{{labels}}} {_format(count)}", f"{name}_sum{{{labels}}} {total:.6f}"]


def _format(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
