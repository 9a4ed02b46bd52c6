"""Floors: the cost of the same work on this machine without Holdfast, and the texts that both get."""

from __future__ import annotations

import os
import random
import statistics
import time
from itertools import accumulate
from pathlib import Path

import apsw

from holdfast_bench.processes import time_call

_VOCABULARY_SIZE = 5000
_WORDS_PER_TEXT = 40
_CREATE_TEXT_TABLE = "CREATE VIRTUAL TABLE t USING fts5 (text, tokenize='porter unicode61 remove_diacritics 2')"


class TextGenerator:
    """Generate random texts with word frequencies like those of a natural language; the same seed gives the same texts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = ["".join(self._random.choices(letters, k=self._random.randint(2, 10))) for _ in range(_VOCABULARY_SIZE)]
        self._weights = list(accumulate([1 / (rank + 2) for rank in range(_VOCABULARY_SIZE)]))

    def text(self) -> str:
        """Return the next text."""
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=_WORDS_PER_TEXT))

    def query(self, text: str) -> str:
        """Return four random words of a text."""
        return " ".join(self._random.sample(text.split(), 4))


class BareWriter:
    """Write a file durably (temporary file, fsync, rename, fsync of the folder) and add a row to a SQLite table.

    The row is flushed as well, unless `flush_row` is false; Holdfast does not flush its index, which can be rebuilt.
    """

    def __init__(self, folder: Path, *, flush_row: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._temp = f".temp-{os.getpid()}"
        self._db = apsw.Connection(str(folder.parent / "bare.db"))
        self._db.set_busy_timeout(60_000)
        self._db.execute(f"PRAGMA journal_mode=WAL; PRAGMA synchronous={'FULL' if flush_row else 'NORMAL'}").fetchall()
        self._db.execute("CREATE TABLE IF NOT EXISTS note (name TEXT, text TEXT)")

    def write(self, name: str, text: str) -> None:
        """Write one file and its row."""
        fd = os.open(self._temp, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=self._folder)
        os.write(fd, text.encode())
        os.fsync(fd)
        os.close(fd)
        os.rename(self._temp, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)
        self._db.execute("INSERT INTO note VALUES (?, ?)", (name, text))

    def close(self) -> None:
        """Close the folder and the database."""
        os.close(self._folder)
        self._db.close()


def time_flush(folder: Path) -> float:
    """Return the median milliseconds of an fsync of one small new file."""
    times = []
    for number in range(60):
        fd = os.open(folder / f"flush-{number}", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"flushed")
        times.append(time_call(os.fsync, fd))
        os.close(fd)
    return statistics.median(times)


def time_bulk_write(folder: Path, texts: list[str]) -> float:
    """Return the seconds to write many files with one flush and to index their texts in one FTS5 transaction."""
    folder.mkdir(parents=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    db = apsw.Connection(str(folder.parent / "bulk.db"))
    db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL").fetchall()
    db.execute(_CREATE_TEXT_TABLE)
    start = time.perf_counter()
    for number, text in enumerate(texts):
        file = os.open(f".temp-{number}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=fd)
        os.write(file, text.encode())
        os.close(file)
    os.sync()
    for number in range(len(texts)):
        os.rename(f".temp-{number}", f"bare-{number}.md", src_dir_fd=fd, dst_dir_fd=fd)
    os.fsync(fd)
    with db:
        db.executemany("INSERT INTO t VALUES (?)", [(text,) for text in texts])
    seconds = time.perf_counter() - start
    os.close(fd)
    db.close()
    return seconds


class BareSearch:
    """Search the same texts in one FTS5 table in memory."""

    def __init__(self, texts: list[str]) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.execute(_CREATE_TEXT_TABLE)
        with self._db:
            self._db.executemany("INSERT INTO t VALUES (?)", [(text,) for text in texts])

    def search(self, query: str) -> int:
        """Fetch the ten best texts for a query and return their number."""
        match = " OR ".join([f'"{word}"' for word in query.split()])
        sql = "SELECT rowid, text, rank FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10"
        return len(self._db.execute(sql, (match,)).fetchall())
