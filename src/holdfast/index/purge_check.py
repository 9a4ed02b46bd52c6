"""Whether the catalogue holds anything of what was erased: words, vectors, rows."""

from __future__ import annotations

from holdfast.index.sqlite import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from holdfast.index.sqlite import SqliteIndex

_AT_ONCE = 5_000


def vectors_of(index: SqliteIndex, scope: str, part: str, names: list[str]) -> list[bytes]:
    """The numbers of every vector of these files, of all models."""
    return [row[0] for row in _rows(index, "vectors_of", scope=scope, part=part, names=listed(names))]


def has_vector(index: SqliteIndex, vector: bytes) -> bool:
    """Whether a vector that counts has the same numbers: another text says the same."""
    return bool(_rows(index, "has_vector", vector=vector))


def lingering(index: SqliteIndex, words: Iterable[str]) -> list[str]:
    """Those of these words that the dictionaries still have though nothing that is catalogued says them."""
    wanted = list(dict.fromkeys(words))
    return [word for start in range(0, len(wanted), _AT_ONCE) for word in index.find_orphaned_terms(wanted[start : start + _AT_ONCE])]


def texts(index: SqliteIndex, turns: bool) -> Iterator[str]:
    """Everything that is catalogued, with or without what was said in sessions."""
    for row in _rows(index, "texts_kept", turns=turns):
        yield str(row[0])


def _rows(index: SqliteIndex, statement: str, **values: Any) -> list[Any]:
    return index.asked(statement, **values)
