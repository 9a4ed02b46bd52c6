"""Gauges: each worker writes its own numbers to the shared memory, and `render` adds those of the machine and the database."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.api.memory import context_of
from holdfast.base import dates, totals
from holdfast.errors import HoldfastError
from holdfast.server import metrics as names
from holdfast.server.audit_shipper import ShipCounts
from holdfast.server.metrics import Sample
from holdfast.verbs.status import count_waiting

if TYPE_CHECKING:
    from holdfast.server.gateway import Gateway

_EXPIRY_DAYS = (7, 30)
_DAY_SECONDS = 86400


def publish(gateway: Gateway) -> None:
    """Write the gauges of this process, and the totals that other modules keep, to the memory that all workers share."""
    metrics = gateway.metrics
    metrics.advance(names.UNRECORDED, gateway.gate.unrecorded)
    for (name, labels), total in totals.read().items():
        metrics.advance(name, total, **dict(labels))
    shipped = gateway.audit_shipper.counts if gateway.audit_shipper is not None else ShipCounts()
    metrics.advance(names.FAILED_AUTHENTICATIONS, gateway.gate.failed_authentications.total)
    metrics.advance(names.SHIPPED, shipped.rows)
    metrics.advance(names.SHIP_FAILURES, shipped.failures)
    metrics.set(names.SHIP_WAITING, shipped.waiting)
    metrics.set(names.WRITE_QUEUE, gateway.count_waiting_stores())
    if (size := _resident_bytes()) is not None:
        metrics.set(names.MEMORY, size, worker=str(gateway.worker))
    if gateway.settings.store:
        for (name, pool), value in _pool_sizes().items():
            metrics.set(name, value, pool=pool)


def render(gateway: Gateway) -> str:
    """Return the metrics of all workers in Prometheus text format. What cannot be measured now is left out."""
    publish(gateway)
    problems = gateway.health.find_problems()
    is_up = "database" not in problems
    samples = [
        Sample(names.READY, not problems), Sample(names.DATABASE_UP, is_up), Sample(names.DISK_WRITABLE, "disk" not in problems)
    ]  # fmt: skip
    with suppress(OSError):
        room = os.statvfs(gateway.home)
        samples.append(Sample(names.DISK_FREE, room.f_bavail * room.f_frsize))
        samples.append(Sample(names.DISK_TOTAL, room.f_blocks * room.f_frsize))
    if is_up:
        with suppress(HoldfastError):  # it went away meanwhile
            samples += _count_expiring_tokens(gateway)
            samples += _count_vector_backlog(gateway)
    return gateway.metrics.render(samples)


def _count_expiring_tokens(gateway: Gateway) -> list[Sample]:
    agents, now = gateway.readiness_ledger.agents, dates.clock()
    return [
        Sample(names.TOKENS_EXPIRING, agents.count_expiring(now, days * _DAY_SECONDS), {"days": str(days)})
        for days in _EXPIRY_DAYS
    ]


def _count_vector_backlog(gateway: Gateway) -> list[Sample]:
    if not gateway.config().enabled:
        return []
    with gateway.open_whole_memory() as memory:
        context = context_of(memory)
        return [Sample(names.VECTOR_BACKLOG, count_waiting(context) if context.store.exists() else 0)]


def _pool_sizes() -> dict[tuple[str, str], int]:
    """Return the sizes of the connection pools by metric and kind of pool."""
    from holdfast.postgres.pool import pool_states

    sizes: dict[tuple[str, str], int] = {}
    for pool in pool_states():
        for name, value in (
            (names.POOL_MAX, pool.max), (names.POOL_OPEN, pool.open), (names.POOL_IDLE, pool.idle),
            (names.POOL_WAITING, pool.waiting),
        ):  # fmt: skip
            sizes[name, pool.kind] = sizes.get((name, pool.kind), 0) + value
    return sizes


def _resident_bytes() -> int | None:
    """Return the resident memory of this process; None where the system does not say (not Linux)."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
