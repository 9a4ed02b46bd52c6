"""Dump, load and compare the rows of a home's ledger.db and of a PostgreSQL store."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from holdfast.ledger.sqlite import SqliteLedger

COUNTED_FILES = re.compile(r"every (byte|row) of \d+ (files|other tables)")  # of the home with locks and databases, or a store
_SENTENCES = re.compile(  # of a receipt, whose wording may change: in JSON, also within JSON or within a SQL text
    r'(\\?"(?:checks|beyond_reach|pending|told)\\?"): \[[^\]]*\]'
)
_COMMENT = re.compile(r" *--[^\n]*")  # of a statement in the schema
NEW_TABLES = (  # since version 0.1.0
    "agent_usage", "grants", "request_count", "audit_checkpoint", "audit_shipped", "file_sources",
    "web_sessions", "sign_in_codes",
)  # fmt: skip
_OF_NEW_TABLE = re.compile(rf'(CREATE TABLE|INSERT INTO) "?({"|".join(NEW_TABLES)})"?\W')
RANDOM_COLUMNS = {"stamp", "mix", "ino", "fingerprint"}  # random numbers and their sums
INDEX_TABLES = {  # derived tables: their surrogate ids depend on the order in which rows were indexed
    "doc", "fact", "folder", "lacking", "made", "mention", "model", "passage", "piece", "stock", "vectors", "word",
}  # fmt: skip
NEW_COLUMNS = {"doc": {"agent", "bytes", "platform_key", "mentions"}}
AUDIT_TABLES = {"agent_action_log", "audit_head", "audit_mark"}
SURROGATE_COLUMNS = {"id", "doc", "folder", "passage", "fact", "model", "word", "listed", "version"}


def without_new_audit_fields(line: str) -> str:
    """Return a row of the audit as version 0.1.0 wrote it: without milliseconds and addresses, and with any hash."""
    line = re.sub(r"(T\d\d:\d\d:\d\d)\.000Z", r"\1Z", line)
    line = re.sub(r'(\\?)"address\1":\1"127\.0\.0\.1\1",', "", line)
    return re.sub(r"\b[0-9a-f]{64}\b", "HASH", line)


def dump_ledger(path: Path) -> str:
    """Return the schema and the rows of a ledger, brought up to the present version, without tables that are new."""
    with closing(SqliteLedger(str(path.parent))) as ledger:
        ledger.projects.find_project("")
    with sqlite3.connect(path) as db:
        lines = [line for line in db.iterdump() if not _OF_NEW_TABLE.match(line)]
        lines = [without_new_audit_fields(line) if line.startswith('INSERT INTO "audit') else line for line in lines]
        lines = [_COMMENT.sub("", line) if line.startswith("CREATE ") else line for line in lines]
    db.close()
    return _without_sentences("\n".join(lines)) + "\n"


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
        if "table" in entry and entry["table"] not in NEW_TABLES and not _is_history_folder(entry):
            excluded = RANDOM_COLUMNS | SURROGATE_COLUMNS if entry["table"] in INDEX_TABLES else RANDOM_COLUMNS
            excluded |= NEW_COLUMNS.get(entry["table"], set())
            row: dict[str, Any] = {name: value for name, value in entry["row"].items() if name not in excluded}
            line = f"{entry['table']} {json.dumps(row, ensure_ascii=False, sort_keys=True)}"
            lines.append(without_new_audit_fields(line) if entry["table"] in AUDIT_TABLES else line)
    return _without_sentences("\n".join(sorted(lines))) + "\n"


def _without_sentences(text: str) -> str:
    """Return dumped rows without the sentences of receipts and the numbers of files in them."""
    return _SENTENCES.sub(r"\1: [...]", COUNTED_FILES.sub(r"every \1 of N \2", text))


def _is_history_folder(entry: dict[str, Any]) -> bool:
    """Return whether a row only says that a scope may have history files, which version 0.1.0 did not have."""
    return entry["table"] == "shelf_folder" and entry["row"]["part"] == "history"


def _list_tables(db: psycopg.Connection[Any]) -> list[str]:
    found = db.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'holdfast' AND table_type = 'BASE TABLE'"
    ).fetchall()
    return sorted(name for (name,) in found if name != "migration")
