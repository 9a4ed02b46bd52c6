"""Verify a purge in PostgreSQL: read back every row that the tenant has."""

from __future__ import annotations

import json

from holdfast.verbs.purge import verify_files
from holdfast.verbs.purge.patterns import Patterns
from holdfast.verbs.purge.verify_files import TABLE_PREFIX, ScanResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.postgres.store import PostgresStore

_BATCH = 1 << 20  # bytes of rows that are searched at once
_ROW_SEPARATOR = b"\n\0\n"  # contained in no pattern


class PostgresVerifier:
    """Verifies every row, of every table, that this caller may see."""

    unreachable: tuple[str, ...] = (
        "the write-ahead log, the replicas and the backups of the PostgreSQL server, and what its disk has not yet overwritten",
        "what a model was already shown",
    )

    def __init__(self, context: Context) -> None:
        self._context = context
        store: Any = context.store
        self._store: PostgresStore = store
        self._tables = [TABLE_PREFIX + name for name in self._store.list_tables()]

    def list_files(self, under: str = "") -> list[str]:
        """Return the path of every document and transcript and, unless only those `under` are wanted, every other table."""
        return self._store.list_paths() + ([] if under else self._tables)

    def scan(self, paths: Iterable[str], patterns: Patterns) -> ScanResult:
        """Search these documents and tables, and files outside the store, for the patterns."""
        wanted = dict.fromkeys(paths)
        progress = self._context.progress
        local = [path for path in wanted if path.startswith("/")]
        result = verify_files.scan_files(self._context.config.home, local, patterns, progress)
        if not len(patterns):
            return result
        tables = [path for path in wanted if path.startswith(TABLE_PREFIX)]
        matches = result.matches
        progress.start("verifying", len(tables) + 1)
        try:
            for path, data in self._store.read_everything():
                if path in wanted and (numbers := patterns.find_in(data)):
                    matches[path] = matches.get(path, set()) | numbers
            for path in tables:
                progress.step()
                numbers = self._scan_table(path.removeprefix(TABLE_PREFIX), patterns)
                if numbers:
                    matches[path] = numbers
        finally:
            progress.end()
        return result

    def _scan_table(self, table: str, patterns: Patterns) -> set[int]:
        found: set[int] = set()
        for batch in _join_in_batches(self._store.read_table(table)):
            found |= patterns.find_in(batch)
        return found

    def read_texts(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the texts of these documents, then of the files outside the store."""
        wanted = dict.fromkeys(paths)
        for path, data in self._store.read_everything() if wanted else ():
            if path in wanted:
                yield from verify_files.texts_in(path, data)
        for path in wanted:
            if path.startswith("/"):
                yield from verify_files.read_texts_of_file(self._context.config.home, path)

    def make_patterns(self, texts: Iterable[str], vectors: list[bytes]) -> Patterns:
        """Return the patterns of the texts; vectors are queried one by one, since the server stores them in its own format."""
        return Patterns(texts)

    def describe_searched(self, files: int) -> str:
        """Return, for the receipt, where the pieces of a text were searched for."""
        documents = files - len(self._tables)
        return f"every byte of {documents} documents and every row of {len(self._tables)} other tables"

    def describe_vectors(self, vectors: list[bytes]) -> str:
        """Query each vector; one that remains belongs to another text too, since a vector is deleted with its passage."""
        remaining = sum([self._has_vector(vector) for vector in vectors])
        shared = f"{remaining} found, which other texts have too" if remaining else "none found"
        return f"searched the stored vectors for its {len(vectors)} vectors: {shared}"

    def _has_vector(self, vector: bytes) -> bool:
        return self._context.query(lambda: self._context.index.has_vector(vector))

    def vacuum(self) -> list[str]:
        """Vacuum the tables where that is allowed, so that deleted rows leave the server's files."""
        why = self._store.vacuum()
        return [f"rows in the server's files until it vacuums them: {why}"] if why else []

    def find_other_copies(self, paths: Iterable[str], patterns: Patterns) -> list[str]:
        """Return nothing: a database is not kept in git."""
        return []


def strings_in_table(context: Context, path: str) -> Iterator[str]:
    """Yield every string of every row of one table, named as `list_files` names it."""
    store: Any = context.store
    for row in store.read_table(path.removeprefix(TABLE_PREFIX)):
        yield from [value for value in json.loads(row).values() if isinstance(value, str)]


def _join_in_batches(rows: Iterator[bytes]) -> Iterator[bytes]:
    """Join rows into batches, so that few searches suffice."""
    batch: list[bytes] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row)
        if size >= _BATCH:
            yield _ROW_SEPARATOR.join(batch)
            batch, size = [], 0
    yield _ROW_SEPARATOR.join(batch)
