"""Reading back the rows of everything a tenant has in PostgreSQL: what `reading` is to a home."""

from __future__ import annotations

from holdfast.verbs.purge import verify_files
from holdfast.verbs.purge.patterns import Traces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.postgres.store import PostgresStore
    from holdfast.verbs.purge.verify_files import Found

_BATCH = 1 << 20  # bytes of rows that are looked through at once
_BETWEEN = b"\n\0\n"  # rows: no trace has this


class Tables:
    """Every row that this caller may see, of every table."""

    beyond: tuple[str, ...] = (
        "the write-ahead log, the replicas and the backups of the PostgreSQL server, and what its disk has not yet overwritten",
        "what a model was already told",
    )

    def __init__(self, context: Context) -> None:
        self._context = context
        store: Any = context.store
        self._store: PostgresStore = store
        self._tables = [verify_files.TABLE + name for name in self._store.list_tables()]

    def files(self, under: str = "") -> list[str]:
        """Every document and transcript by its path; and, unless only those are wanted, every other table."""
        return self._store.list_paths() + ([] if under else self._tables)

    def scan(self, paths: Iterable[str], traces: Traces) -> Found:
        """Which of the traces stand in which of these documents and tables, and in files beside the store."""
        wanted = dict.fromkeys(paths)
        local = [path for path in wanted if path.startswith("/")]
        found, unread = verify_files.scan(self._context.config.home, local, traces, self._context.progress)
        if not len(traces):
            return found, unread
        tables = [path for path in wanted if path.startswith(verify_files.TABLE)]
        self._context.progress.start("reading everything back", len(tables) + 1)
        try:
            for path, data in self._store.read_everything():
                if path in wanted and (numbers := traces.within(data)):
                    found[path] = found.get(path, set()) | numbers
            for path in tables:
                self._context.progress.step()
                numbers = self._within(path[len(verify_files.TABLE) :], traces)
                if numbers:
                    found[path] = numbers
        finally:
            self._context.progress.end()
        return found, unread

    def _within(self, table: str, traces: Traces) -> set[int]:
        found: set[int] = set()
        for batch in _batches(self._store.read_table(table)):
            found |= traces.within(batch)
        return found

    def texts(self, paths: Iterable[str]) -> Iterator[str]:
        """What these documents say."""
        some = dict.fromkeys(paths)
        for path, data in self._store.read_everything() if some else ():
            if path in some:
                yield from verify_files.said_in(path, data)
        yield from [
            text for path in some if path.startswith("/") for text in verify_files.texts_of(self._context.config.home, path)
        ]

    def traced(self, texts: Iterable[str], vectors: list[bytes]) -> Traces:
        """What is looked for in rows; vectors are asked for one by one, since a server does not tell how it writes them."""
        return Traces(texts)

    def told_of_vectors(self, vectors: list[bytes]) -> str:
        """Each is asked for; one that is still there is another text's too, since a vector goes with its passage."""
        here = sum([self._context.query(lambda one=one: self._context.index.has_vector(one)) for one in vectors])  # type: ignore[misc]
        shared = f"{here} are other texts' too" if here else "none is there"
        return f"its {len(vectors)} vectors looked for among those that are kept: {shared}"

    def looked_in(self, files: int) -> str:
        documents = files - len(self._tables)
        return f"every byte of {documents} documents and in every row of {len(self._tables)} other tables"

    def swept(self) -> list[str]:
        """Deleted rows are taken out of the tables' files where that is allowed."""
        why = self._store.vacuum()
        return [f"rows in the server's files until it vacuums them: {why}"] if why else []

    def held_elsewhere(self, paths: Iterable[str], traces: Traces) -> list[str]:
        """Nobody keeps a database in git."""
        return []


def strings(context: Context, path: str) -> Iterator[str]:
    """Every text of every row of one table."""
    import json

    store: Any = context.store
    for row in store.read_table(path[len(verify_files.TABLE) :]):
        yield from [value for value in json.loads(row).values() if isinstance(value, str)]


def _batches(rows: Iterator[bytes]) -> Iterator[bytes]:
    """Rows put together, so that looking through them is few calls."""
    held: list[bytes] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row)
        if size >= _BATCH:
            yield _BETWEEN.join(held)
            held, size = [], 0
    yield _BETWEEN.join(held)
