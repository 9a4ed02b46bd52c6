"""Totals of this process, counted in whichever layer something happens; the gateway shows them as metrics."""

from __future__ import annotations

from _thread import allocate_lock

_lock = allocate_lock()
_totals: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}


def add(name: str, **labels: str) -> None:
    """Count one event of the metric with this name and these labels."""
    key = name, tuple(sorted(labels.items()))
    with _lock:
        _totals[key] = _totals.get(key, 0) + 1


def read() -> dict[tuple[str, tuple[tuple[str, str], ...]], int]:
    """Return all totals by name and labels."""
    with _lock:
        return dict(_totals)
