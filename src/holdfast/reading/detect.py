"""Which dialect a transcript is written in, from its first objects."""

from __future__ import annotations

from itertools import islice

from holdfast.errors import UsageError
from holdfast.reading import chat, claude, codex, gemini

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    from holdfast.reading.source import Row, Source
    from holdfast.turns import Said

    class Dialect(Protocol):
        CLIENT: str

        def knows(self, row: dict[str, Any]) -> bool: ...
        def turns(self, rows: Iterator[Row], stem: str) -> Iterator[Said]: ...


_FIRST = 50
_NAMES = {"claude": "claude-code", "gemini-cli": "gemini", "openai": "chat"}


def dialects() -> dict[str, Dialect]:
    """Every dialect by its client; the plain chat last, since it asks for least."""
    return {one.CLIENT: one for one in (claude, codex, gemini, chat)}


def dialect(source: Source, client: str | None) -> Dialect | None:
    """The dialect of that client, if it has one; else the first that knows one of the first objects. None: nobody does."""
    known = dialects()
    named = known.get(_NAMES.get(client or "", client or ""))
    if named is not None:
        return named
    for row in islice(source.rows(), _FIRST):
        for one in known.values():
            if one.knows(row.value):
                return one
    return None


def unknown(source: Source) -> UsageError:
    clients = ", ".join(dialects())
    return UsageError(f"{source.name} is no transcript that we know", f"Known: {clients}; or lines of role and content")
