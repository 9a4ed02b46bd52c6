"""The floor of a store on PostgreSQL: insert only the rows of one note, in one durable transaction.

One process per client, without roles, row-level security or preceding queries. The rows that all processes update come last
in the transaction, so that they wait for each other as briefly as possible.
"""

from __future__ import annotations

import os
import time
from typing import Any

import psycopg

from holdfast.base.ids import digest
from holdfast.postgres import statements
from holdfast_bench.processes import start_pool

_STATEMENTS = {name: statement.encode() for name, statement in statements(__file__).items()}
_DROP_SCHEMA, _CREATE_SCHEMA = _STATEMENTS.pop("drop_schema"), _STATEMENTS.pop("create_schema")


def count_transactions(url: str, *, clients: int, text: str, seconds: float) -> float:
    """Return the number of such transactions per second, all in one scope like the notes of one project."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_DROP_SCHEMA)
        connection.execute(_CREATE_SCHEMA)
        try:
            with start_pool(clients) as pool:
                counts = pool.starmap(_write, [(url, text, seconds, number) for number in range(clients)], chunksize=1)
        finally:
            connection.execute(_DROP_SCHEMA)
    return sum(counts) / seconds


def _write(url: str, text: str, seconds: float, client: int) -> int:
    """Write notes for this many seconds and return their number."""
    words = sorted(set(text.split()))
    note: dict[str, Any] = {
        "text": text, "data": text.encode(), "words": words, "codes": [int(digest(word.encode())[:12], 16) for word in words],
        "count": len(words), "now": "2026-05-02T09:00:00Z",
    }  # fmt: skip
    count = 0
    with psycopg.connect(url, options="-c search_path=holdfast_bench") as connection:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            values = {**note, "id": client * 10**9 + count, "name": f"{os.getpid()}-{count}.md"}
            for statement in _STATEMENTS.values():
                connection.execute(statement, values)
            connection.commit()
            count += 1
    return count
