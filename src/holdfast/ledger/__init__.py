"""What happened: ids and digests, never content. Durable, because nothing else could tell it again."""

from __future__ import annotations

from holdfast.ledger.sqlite import SqliteLedger

__all__ = ["SqliteLedger"]
