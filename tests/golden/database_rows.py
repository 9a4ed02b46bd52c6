"""Dump, load and compare the rows of a home's ledger.db and of a PostgreSQL store."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

COUNTED_FILES = re.compile(r"every byte of \d+ files")  # of the home, including locks and databases
RANDOM_COLUMNS = {"stamp", "mix", "ino", "fingerprint"}  # random numbers and their sums
INDEX_TABLES = {  # derived tables: their surrogate ids depend on the order in which rows were indexed
    "doc", "fact", "folder", "lacking", "made", "mention", "model", "passage", "piece", "stock", "vectors", "word",
}  # fmt: skip
LATER_COLUMNS = {"platform_key"}  # added to derived tables after the golden rows were written
SURROGATE_COLUMNS = {"id", "doc", "folder", "passage", "fact", "model", "word", "listed", "version"}


def dump_ledger(path: Path) -> str:
    """Return the schema and the rows of a ledger, a line each."""
    with sqlite3.connect(path) as db:
        lines = [*db.iterdump(), f"PRAGMA user_version={db.execute('PRAGMA user_version').fetchone()[0]};"]
    db.close()
    return COUNTED_FILES.sub("every byte of N files", "\n".join(lines)) + "\n"


def dump_postgres(url: str) -> str:
    """Return every row of a store and the positions of its sequences, as lines of JSON."""
    with psycopg.connect(url) as db:
        lines = []
        for table in _list_tables(db):
            rows = db.execute(sql.SQL("SELECT to_jsonb(t) FROM holdfast.{} AS t").format(sql.Identifier(table))).fetchall()
            lines += sorted(json.dumps({"table": table, "row": row}, ensure_ascii=False) for (row,) in rows)
        sequences = db.execute(
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'holdfast' ORDER BY sequencename"
        ).fetchall()
    lines += [json.dumps({"sequence": name, "last": last}) for name, last in sequences if last is not None]
    return "\n".join(lines) + "\n"


def load_postgres(url: str, text: str) -> None:
    """Insert dumped rows into the tables of an empty store."""
    with psycopg.connect(url) as db:
        db.execute("SET session_replication_role = replica")  # rows as they are: no triggers
        for line in text.splitlines():
            entry = json.loads(line)
            if "sequence" in entry:
                db.execute("SELECT setval(format('holdfast.%%I', %s::text)::regclass, %s)", (entry["sequence"], entry["last"]))
                continue
            columns = sql.SQL(", ").join(map(sql.Identifier, entry["row"]))
            statement = sql.SQL(
                "INSERT INTO holdfast.{table} ({columns}) OVERRIDING SYSTEM VALUE "
                "SELECT {columns} FROM jsonb_populate_record(NULL::holdfast.{table}, %s::jsonb)"
            ).format(table=sql.Identifier(entry["table"]), columns=columns)
            db.execute(statement, (json.dumps(entry["row"]),))


def remove_varying_columns(text: str) -> str:
    """Return dumped rows, sorted, without columns that are random or depend on the order of indexing."""
    lines = []
    for entry in map(json.loads, text.splitlines()):
        if "table" in entry:
            excluded = RANDOM_COLUMNS | SURROGATE_COLUMNS | LATER_COLUMNS if entry["table"] in INDEX_TABLES else RANDOM_COLUMNS
            row: dict[str, Any] = {name: value for name, value in entry["row"].items() if name not in excluded}
            lines.append(f"{entry['table']} {json.dumps(row, ensure_ascii=False, sort_keys=True)}")
    return COUNTED_FILES.sub("every byte of N files", "\n".join(sorted(lines))) + "\n"


def _list_tables(db: psycopg.Connection[Any]) -> list[str]:
    found = db.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'holdfast' AND table_type = 'BASE TABLE'"
    ).fetchall()
    return sorted(name for (name,) in found if name != "migration")
