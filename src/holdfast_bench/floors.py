"""The floors: what the machine itself costs, with nothing of ours in the way."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import apsw

from holdfast_bench.progress import started

_WORDS = 5000
_TEXT_WORDS = 40


class Prose:
    """Texts whose words are as unevenly common as in language: the same from the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = ["".join(self._random.choices(letters, k=self._random.randint(2, 10))) for _ in range(_WORDS)]
        self._weights = list(accumulate([1 / (rank + 2) for rank in range(_WORDS)]))

    def text(self) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=_TEXT_WORDS))

    def query(self, text: str) -> str:
        """Four words that somebody remembers of a text."""
        return " ".join(self._random.sample(text.split(), 4))


class BareWriter:
    """temp, fsync, rename, fsync of the folder, and a row in a write-ahead log as SQLite comes: with a flush of its own. Or
    without, as our index is, which can be made anew: the lighter of the two."""

    def __init__(self, folder: Path, light: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._temp = f".temp-{os.getpid()}"
        self._db = apsw.Connection(str(folder.parent / "bare.db"))
        self._db.set_busy_timeout(60_000)
        self._db.execute(f"PRAGMA journal_mode=WAL; PRAGMA synchronous={'NORMAL' if light else 'FULL'}").fetchall()
        self._db.execute("CREATE TABLE IF NOT EXISTS note (name TEXT, text TEXT)")

    def write(self, name: str, text: str) -> None:
        fd = os.open(self._temp, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=self._folder)
        os.write(fd, text.encode())
        os.fsync(fd)
        os.close(fd)
        os.rename(self._temp, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)
        self._db.execute("INSERT INTO note VALUES (?, ?)", (name, text))

    def close(self) -> None:
        os.close(self._folder)
        self._db.close()


def flush(folder: Path) -> float:
    """Milliseconds that the disk takes to have one small file for good."""
    took = []
    for number in range(60):
        fd = os.open(folder / f"flush-{number}", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"flushed")
        took.append(milliseconds(os.fsync, fd))
        os.close(fd)
    return statistics.median(took)


def bare_bulk(folder: Path, texts: list[str]) -> float:
    """Seconds that many files cost when nothing is done but what must be: temp files, one flush, renames, and the texts in
    a full-text index in one transaction."""
    folder.mkdir(parents=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    db = apsw.Connection(str(folder.parent / "bulk.db"))
    db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL").fetchall()
    db.execute("CREATE VIRTUAL TABLE t USING fts5 (text, tokenize='porter unicode61 remove_diacritics 2')")
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
    """One FTS5 table of the same texts, asked for the ten best."""

    def __init__(self, texts: list[str]) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE t USING fts5 (text, tokenize='porter unicode61 remove_diacritics 2')")
        with self._db:
            self._db.executemany("INSERT INTO t VALUES (?)", [(text,) for text in texts])

    def search(self, query: str) -> int:
        match = " OR ".join([f'"{word}"' for word in query.split()])
        sql = "SELECT rowid, text, rank FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10"
        return len(self._db.execute(sql, (match,)).fetchall())


def bare_python() -> list[str]:
    return [sys.executable, "-I", "-c", "pass"]


def program() -> list[str]:
    """The command as a user starts it."""
    script = Path(sys.executable).with_name("holdfast")
    return [str(script)] if script.exists() else [sys.executable, "-m", "holdfast"]


def cold_recall(query: str) -> list[str]:
    """A recall by a process that starts for it."""
    return [*program(), "recall", "--mode", "keyword", "--project", "bench", query]


def hook(event: str) -> list[str]:
    """A hook as most clients run it."""
    return [*program(), "hook", "generic", event]


def process(command: list[str], home: str, told: bytes = b"") -> float:
    """Milliseconds of a whole process that is told something on stdin."""
    environment = plain_environment() | {"HOLDFAST_HOME": home, "HOME": home, "HOLDFAST_PROJECT": "bench"}
    start = time.perf_counter()
    with started(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        process.communicate(told)
        return (time.perf_counter() - start) * 1000


def handshake() -> bytes:
    """What a client says first to an MCP server."""
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    said = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    return b"".join([json.dumps(line).encode() + b"\n" for line in said])


def answered(command: list[str], home: str, told: bytes, lines: int) -> float:
    """Milliseconds until a process that stays has answered with so many lines."""
    environment = plain_environment() | {"HOLDFAST_HOME": home, "HOME": home}
    start = time.perf_counter()
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(told)
        process.stdin.flush()
        for _ in range(lines):
            process.stdout.readline()
        return (time.perf_counter() - start) * 1000


def milliseconds(work: Callable[..., object], *given: object, **named: object) -> float:
    start = time.perf_counter()
    work(*given, **named)
    return (time.perf_counter() - start) * 1000


def cpu_milliseconds(work: Callable[..., object], *given: object, **named: object) -> float:
    """What the process itself worked, whatever else ran beside it."""
    start = time.process_time()
    work(*given, **named)
    return (time.process_time() - start) * 1000


def index_bytes(home: str) -> int:
    """What the catalogue takes on disk, with its log."""
    files = [Path(home, name) for name in ("index.db", "index.db-wal")]
    return sum([file.stat().st_size for file in files if file.exists()])


def compiled() -> None:
    """Bytecode for our modules, as every installer makes it; an editable checkout may lack it."""
    package = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(package)], check=False, env=plain_environment())


def plain_environment() -> dict[str, str]:
    return {"PATH": os.defpath, "LANG": "C.UTF-8"}
