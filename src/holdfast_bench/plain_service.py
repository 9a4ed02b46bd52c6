"""A plain memory service, as a team would write it in an afternoon: the floor of `holdfast bench load`.

FastAPI with a token check, an audit row for each request and full-text search, on SQLite or PostgreSQL. It has no versions,
roles, trust, secrets, limits or files; a store is durable when it is answered, as in Holdfast.
`python -m holdfast_bench.plain_service DATABASE FIXTURE` prints its port. DATABASE is a new file or a postgresql:// address;
FIXTURE is a JSON file with the tokens and the texts of the notes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, Protocol

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel

from holdfast_bench.processes import listen_on_loopback

SHARED = "shared"  # every agent reads these notes and its own


class Database(Protocol):
    """What the service needs of a database. Each call writes an audit row."""

    def load(self, digests: dict[str, str], texts: list[str]) -> None: ...
    def find_agent(self, digest: str) -> str | None: ...
    def store(self, agent: str, key: str, text: str) -> None: ...
    def read(self, agent: str, key: str) -> str | None: ...
    def recall(self, agent: str, words: list[str]) -> list[tuple[str, str]]: ...


class SqliteDatabase:
    """One connection per thread, with a write-ahead log. A store is flushed; the audit row of a read is not."""

    def __init__(self, path: str) -> None:
        self._path, self._local = path, threading.local()
        self._connection().executescript(
            "CREATE TABLE token (digest TEXT PRIMARY KEY, agent TEXT) WITHOUT ROWID;"
            "CREATE TABLE audit (id INTEGER PRIMARY KEY, at TEXT, agent TEXT, action TEXT);"
            "CREATE TABLE note (id INTEGER PRIMARY KEY, agent TEXT, key TEXT, text TEXT, UNIQUE (agent, key));"
            "CREATE VIRTUAL TABLE words USING fts5 (text, content=note, content_rowid=id);"
            "CREATE TRIGGER added AFTER INSERT ON note BEGIN INSERT INTO words (rowid, text) VALUES (new.id, new.text); END;"
            "CREATE TRIGGER changed AFTER UPDATE ON note BEGIN"
            "  INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);"
            "  INSERT INTO words (rowid, text) VALUES (new.id, new.text); END;"
        )

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = sqlite3.connect(self._path, timeout=60, isolation_level=None)
            self._local.connection.execute("PRAGMA journal_mode=WAL")
        self._local.connection.execute("PRAGMA synchronous=NORMAL")
        return self._local.connection  # type: ignore[no-any-return]

    def _record(self, db: sqlite3.Connection, agent: str, action: str) -> None:
        db.execute("INSERT INTO audit (at, agent, action) VALUES (datetime('now'), ?, ?)", (agent, action))

    def load(self, digests: dict[str, str], texts: list[str]) -> None:
        db = self._connection()
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO token VALUES (?, ?)", digests.items())
        rows = [(SHARED, f"note-{number}", text) for number, text in enumerate(texts)]
        db.executemany("INSERT INTO note (agent, key, text) VALUES (?, ?, ?)", rows)
        db.execute("COMMIT")

    def find_agent(self, digest: str) -> str | None:
        row = self._connection().execute("SELECT agent FROM token WHERE digest = ?", (digest,)).fetchone()
        return row[0] if row else None

    def store(self, agent: str, key: str, text: str) -> None:
        db = self._connection()
        db.execute("PRAGMA synchronous=FULL")
        db.execute("BEGIN IMMEDIATE")
        self._record(db, agent, "store")
        db.execute(
            "INSERT INTO note (agent, key, text) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET text = excluded.text",
            (agent, key, text),
        )
        db.execute("COMMIT")

    def read(self, agent: str, key: str) -> str | None:
        db = self._connection()
        self._record(db, agent, "read")
        query = "SELECT text FROM note WHERE key = ? AND agent IN (?, ?)"
        row = db.execute(query, (key, agent, SHARED)).fetchone()
        return row[0] if row else None

    def recall(self, agent: str, words: list[str]) -> list[tuple[str, str]]:
        db = self._connection()
        self._record(db, agent, "recall")
        query = (
            "SELECT key, note.text FROM words JOIN note ON note.id = words.rowid WHERE words MATCH ? AND agent IN (?, ?)"
            " ORDER BY rank LIMIT 10"
        )
        return db.execute(query, (" OR ".join(f'"{word}"' for word in words), agent, SHARED)).fetchall()


class PostgresDatabase:
    """A pool of connections, one transaction for each request. A store is flushed; the audit row of a read is not."""

    def __init__(self, url: str) -> None:
        from psycopg_pool import ConnectionPool

        self._pool = ConnectionPool(url, min_size=4, max_size=20, kwargs={"options": "-c search_path=holdfast_plain"})
        with self._pool.connection() as db:
            db.execute(
                "DROP SCHEMA IF EXISTS holdfast_plain CASCADE; CREATE SCHEMA holdfast_plain;"
                "CREATE TABLE token (digest text PRIMARY KEY, agent text);"
                "CREATE TABLE audit (id bigserial PRIMARY KEY, at timestamptz DEFAULT now(), agent text, action text);"
                "CREATE TABLE note (agent text, key text, text text, PRIMARY KEY (agent, key),"
                "  words tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED);"
                "CREATE INDEX ON note USING gin (words)"
            )

    def load(self, digests: dict[str, str], texts: list[str]) -> None:
        with self._pool.connection() as db, db.cursor() as cursor:
            cursor.executemany("INSERT INTO token VALUES (%s, %s)", digests.items())
            rows = [(SHARED, f"note-{number}", text) for number, text in enumerate(texts)]
            cursor.executemany("INSERT INTO note VALUES (%s, %s, %s)", rows)

    def find_agent(self, digest: str) -> str | None:
        with self._pool.connection() as db:
            row = db.execute("SELECT agent FROM token WHERE digest = %s", (digest,)).fetchone()
        return row[0] if row else None

    def store(self, agent: str, key: str, text: str) -> None:
        with self._pool.connection() as db:
            db.execute("INSERT INTO audit (agent, action) VALUES (%s, 'store')", (agent,))
            upsert = "INSERT INTO note VALUES (%s, %s, %s) ON CONFLICT (agent, key) DO UPDATE SET text = excluded.text"
            db.execute(upsert, (agent, key, text))

    def _record_read(self, db: Any, agent: str, action: str) -> None:
        insert = "INSERT INTO audit (agent, action) SELECT %s, %s FROM set_config('synchronous_commit', 'off', true)"
        db.execute(insert, (agent, action))

    def read(self, agent: str, key: str) -> str | None:
        with self._pool.connection() as db:
            self._record_read(db, agent, "read")
            query = "SELECT text FROM note WHERE key = %s AND agent IN (%s, %s)"
            row = db.execute(query, (key, agent, SHARED)).fetchone()
        return row[0] if row else None

    def recall(self, agent: str, words: list[str]) -> list[tuple[str, str]]:
        with self._pool.connection() as db:
            self._record_read(db, agent, "recall")
            query = (
                "SELECT key, text FROM note, to_tsquery('english', %s) AS query WHERE words @@ query AND agent IN (%s, %s)"
                " ORDER BY ts_rank(words, query) DESC LIMIT 10"
            )
            return db.execute(query, (" | ".join(words), agent, SHARED)).fetchall()


class NoteBody(BaseModel):
    """The body of a store."""

    key: str
    text: str


class RecallBody(BaseModel):
    """The body of a recall."""

    query: str


def make_app(database: Database) -> FastAPI:
    """Return the service."""
    app = FastAPI()

    def find_agent(authorization: Annotated[str, Header()]) -> str:
        agent = database.find_agent(digest_of(authorization.removeprefix("Bearer ")))
        if agent is None:
            raise HTTPException(401)
        return agent

    @app.post("/notes", status_code=201)
    def store(note: NoteBody, agent: str = Depends(find_agent)) -> dict[str, Any]:
        database.store(agent, note.key, note.text)
        return {"key": note.key, "text": note.text}

    @app.get("/notes/{key}")
    def read(key: str, agent: str = Depends(find_agent)) -> dict[str, Any]:
        text = database.read(agent, key)
        if text is None:
            raise HTTPException(404)
        return {"key": key, "text": text}

    @app.post("/recall")
    def recall(body: RecallBody, agent: str = Depends(find_agent)) -> dict[str, Any]:
        hits = database.recall(agent, re.findall(r"\w+", body.query))
        return {"hits": [{"key": key, "text": text} for key, text in hits]}

    return app


def digest_of(token: str) -> str:
    """Return what the service keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def main(address: str, fixture: str) -> None:
    """Fill the database, print the port, and serve until the process is ended."""
    given = json.loads(Path(fixture).read_text())
    database: Database = PostgresDatabase(address) if "://" in address else SqliteDatabase(address)
    database.load({digest_of(token): f"agent-{number}" for number, token in enumerate(given["tokens"])}, given["texts"])
    with listen_on_loopback() as listener:
        print(listener.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(make_app(database), log_config=None, access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
