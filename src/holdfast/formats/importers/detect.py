"""Which dialect a transcript is written in, from its first objects."""

from __future__ import annotations

import os
from itertools import islice

from holdfast.errors import UsageError
from holdfast.formats.importers import chat, claude, codex, gemini

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    from holdfast.formats.importers.json_source import Row, Source
    from holdfast.formats.transcript import TranscriptLine

    class Dialect(Protocol):
        CLIENT: str

        def knows(self, row: dict[str, Any]) -> bool: ...
        def turns(self, rows: Iterator[Row], stem: str) -> Iterator[TranscriptLine]: ...


_FIRST = 50
_NAMES = {"claude": "claude-code", "gemini-cli": "gemini", "openai": "chat"}


def dialects() -> dict[str, Dialect]:
    """Every dialect by its client; the plain chat last, since it asks for least."""
    return {one.CLIENT: one for one in (claude, codex, gemini, chat)}


def dialect(source: Source, name: str | None) -> Dialect | None:
    """The dialect of that name or of that client; else the first that knows one of the first objects. None: nobody does."""
    known = dialects()
    named = known.get(_NAMES.get(name or "", name or ""))
    if named is not None:
        return named
    for row in islice(source.rows(), _FIRST):
        for one in known.values():
            if one.knows(row.value):
                return one
    return None


def folder(source: Source, reader: Dialect) -> str:
    """Where the program worked, if the transcript says it: Claude Code in each row, Codex in its head."""
    for row in islice(source.rows(), _FIRST) if reader.CLIENT in (claude.CLIENT, codex.CLIENT) else ():
        payload = row.value.get("payload")
        for said in (row.value.get("cwd"), payload.get("cwd") if isinstance(payload, dict) else None):
            if isinstance(said, str) and os.path.isabs(said) and "\0" not in said:
                return said
    return ""


def unknown(source: Source) -> UsageError:
    clients = ", ".join(dialects())
    return UsageError(f"{source.name} is no transcript that we know", f"Known: {clients}; or lines of role and content")
