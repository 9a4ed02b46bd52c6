"""Durable records that are not prose: audit log, agents, usage, purges; ids and digests, no text."""

from __future__ import annotations

from holdfast.ledger.sqlite import SqliteLedger

__all__ = ["SqliteLedger"]
