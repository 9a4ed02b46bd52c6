"""Bare SQLite FTS5 with Porter stemming, not a product: a query is its words joined with OR. The floor to beat."""

from __future__ import annotations

import os
import re
import sqlite3
from typing import Any

NEEDS_EMBEDDER = False


class Peer:
    """One FTS5 table."""

    version = sqlite3.sqlite_version

    def __init__(self, folder: str, embed: Any) -> None:
        self._db = sqlite3.connect(os.path.join(folder, "fts.db"))
        self._db.execute("CREATE VIRTUAL TABLE doc USING fts5 (id UNINDEXED, text, tokenize='porter unicode61')")

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            with self._db:
                self._db.executemany("INSERT INTO doc VALUES (?, ?)", [(doc["id"], doc["spoken_text"]) for doc in session])

    def search(self, text: str, k: int) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        if not match:
            return []
        sql = "SELECT id FROM doc WHERE doc MATCH ? ORDER BY rank LIMIT ?"
        return [id for (id,) in self._db.execute(sql, (match, k))]

    def close(self) -> None:
        self._db.close()
