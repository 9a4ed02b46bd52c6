"""Every row that a tenant has, read back: documents and lines by their path, and whatever other tables hold."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.postgres.store import PostgresStore

_TRUTH = ("document", "line")  # that are read by their paths


def paths(store: PostgresStore) -> list[str]:
    """Where every document and transcript stands, from the home that would have it."""
    found = []
    for scope in store.scopes():
        for part in ("notes", "files", "trash", "archive"):
            found += [f"shelf/{scope}/{part}/{entry.name}" for entry in store.entries(scope, part)]
        transcript_files = store.transcript_files(scope)
        found += [f"shelf/{scope}/transcripts/{entry.name}" for entry in transcript_files.census()]
        found += [f"shelf/{transcript_file.path}" for transcript_file in transcript_files.trashed()]
    return found


def documents(store: PostgresStore) -> Iterator[tuple[str, bytes]]:
    """Their bytes, each with its path; of a transcript line by line."""
    for statement in ("look_through_documents", "look_through_lines"):
        for scope, part, name, data in _looked_through(store, statement):
            yield f"shelf/{scope}/{part}/{name}", bytes(data)


def tables(store: PostgresStore) -> list[str]:
    """The other tables."""
    return [row[0] for row in store.database.rows("tables") if row[0] not in _TRUTH]


def rows(store: PostgresStore, table: str) -> Iterator[bytes]:
    """What one of them holds."""
    for (data,) in _looked_through(store, "look_through", name=table):
        yield bytes(data)


def vacuumed(store: PostgresStore) -> str:
    """Take away what was deleted from all of them; why that could not be done, if it could not."""
    return store.database.vacuum([*_TRUTH, *tables(store)])


def analyzed(store: PostgresStore) -> str:
    """Let the server count what is in all of them, to plan by; why that could not be done, if it could not."""
    return store.database.analyze([*_TRUTH, *tables(store)])


def _looked_through(store: PostgresStore, statement: str, **values: str) -> Iterator[Any]:
    """All rows of a question, some at a time."""
    database = store.database
    with database.reading():
        database.rows(statement, **values)
        while found := database.rows("some"):
            yield from found
        database.rows("looked")
