"""Durable records that are not prose: projects, use counts, purges, agents, the audit, and what agents have done.

They hold ids and digests, never the text of a note. Unlike the index they cannot be made again.
"""

from __future__ import annotations

from holdfast.ledger.sqlite import SqliteLedger

__all__ = ["SqliteLedger"]
