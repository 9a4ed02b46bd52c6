"""The floor under a store on PostgreSQL: the rows of one note (document, catalogue, words, decision) and nothing else, in one
durable transaction each, by as many processes as there are clients. No roles, no row-level security, nothing asked before; the
rows that all of them change come last, so that nobody waits longer than it must."""

from __future__ import annotations

import os
import time
from typing import Any

import psycopg

from holdfast.base.ids import digest
from holdfast.postgres import statements
from holdfast_bench.progress import crowd

_GONE, _MADE, *_ROWS = [statement.encode() for statement in statements(__file__).values()]


def per_second(url: str, clients: int, text: str, seconds: float) -> float:
    """Such transactions in a second, all on one scope, as the notes of one project are."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_GONE)
        connection.execute(_MADE)  # the tables as they are, with their indexes
        try:
            with crowd(clients) as writers:
                counts = writers.starmap(_write, [(url, text, seconds, place) for place in range(clients)], chunksize=1)
        finally:
            connection.execute(_GONE)
    return sum(counts) / seconds


def _write(url: str, text: str, seconds: float, place: int) -> int:
    words = sorted(set(text.split()))
    said: dict[str, Any] = {
        "text": text, "data": text.encode(), "words": words, "codes": [int(digest(word.encode())[:12], 16) for word in words],
        "count": len(words), "now": "2026-05-02T09:00:00Z",
    }  # fmt: skip
    done = 0
    with psycopg.connect(url, options="-c search_path=holdfast_bench") as connection:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            row = {**said, "id": place * 10**9 + done, "name": f"{os.getpid()}-{done}.md"}
            for statement in _ROWS:
                connection.execute(statement, row)
            connection.commit()
            done += 1
    return done
