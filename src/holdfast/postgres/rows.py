"""Every row that a tenant has, read back: documents and lines by their path, and whatever other tables hold."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.postgres.store import Shelf

_TRUTH = ("document", "line")  # that are read by their paths


def paths(shelf: Shelf) -> list[str]:
    """Where every document and transcript stands, from the home that would have it."""
    found = []
    for scope in shelf.scopes():
        for part in ("notes", "files", "trash", "archive"):
            found += [f"shelf/{scope}/{part}/{entry.name}" for entry in shelf.census(scope, part)]
        rolls = shelf.rolls(scope)
        found += [f"shelf/{scope}/transcripts/{entry.name}" for entry in rolls.census()]
        found += [f"shelf/{roll.path}" for roll in rolls.trashed()]
    return found


def documents(shelf: Shelf) -> Iterator[tuple[str, bytes]]:
    """Their bytes, each with its path; of a transcript line by line."""
    for statement in ("look_through_documents", "look_through_lines"):
        for scope, part, name, data in _looked_through(shelf, statement):
            yield f"shelf/{scope}/{part}/{name}", bytes(data)


def tables(shelf: Shelf) -> list[str]:
    """The other tables."""
    return [row[0] for row in shelf.database.rows("tables") if row[0] not in _TRUTH]


def rows(shelf: Shelf, table: str) -> Iterator[bytes]:
    """What one of them holds."""
    for (data,) in _looked_through(shelf, "look_through", name=table):
        yield bytes(data)


def vacuumed(shelf: Shelf) -> str:
    """Take away what was deleted from all of them; why that could not be done, if it could not."""
    return shelf.database.vacuum([*_TRUTH, *tables(shelf)])


def analyzed(shelf: Shelf) -> str:
    """Let the server count what is in all of them, to plan by; why that could not be done, if it could not."""
    return shelf.database.analyze([*_TRUTH, *tables(shelf)])


def _looked_through(shelf: Shelf, statement: str, **values: str) -> Iterator[Any]:
    """All rows of a question, some at a time."""
    database = shelf.database
    with database.reading():
        database.rows(statement, **values)
        while found := database.rows("some"):
            yield from found
        database.rows("looked")
