"""The floor under a store on PostgreSQL: the rows of the truth alone, a document and its folder's number, in one durable
transaction each, by as many processes as there are clients."""

from __future__ import annotations

import os
import time
from multiprocessing import get_context

import psycopg

_MADE = """
DROP SCHEMA IF EXISTS holdfast_bench CASCADE;
CREATE SCHEMA holdfast_bench;
CREATE TABLE holdfast_bench.document (scope text, name text, data bytea, stamp bigint, PRIMARY KEY (scope, name));
CREATE TABLE holdfast_bench.folder (scope text PRIMARY KEY, mix bigint)
"""
_GONE = "DROP SCHEMA IF EXISTS holdfast_bench CASCADE"
_DOCUMENT = "INSERT INTO holdfast_bench.document (scope, name, data, stamp) VALUES (%s, %s, %s, %s)"
_FOLDER = """INSERT INTO holdfast_bench.folder (scope, mix) VALUES (%s, %s)
ON CONFLICT (scope) DO UPDATE SET mix = folder.mix # excluded.mix"""


def per_second(url: str, clients: int, text: str, seconds: float) -> float:
    """Such transactions in a second, all on one scope, as the notes of one project are."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in _MADE.split(";"):
            connection.execute(statement.encode())
        try:
            with get_context("fork").Pool(clients) as crowd:
                counts = crowd.starmap(_write, [(url, text, seconds)] * clients, chunksize=1)
        finally:
            connection.execute(_GONE)
    return sum(counts) / seconds


def _write(url: str, text: str, seconds: float) -> int:
    done = 0
    with psycopg.connect(url) as connection:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            connection.execute(_DOCUMENT, ("projects/bench", f"{os.getpid()}-{done}.md", text.encode(), done))
            connection.execute(_FOLDER, ("projects/bench", done))
            connection.commit()
            done += 1
    return done
