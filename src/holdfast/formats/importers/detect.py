"""Detect the dialect of a transcript from its first objects."""

from __future__ import annotations

import os
from itertools import islice

from holdfast.errors import UsageError
from holdfast.formats.importers import chat, claude, codex, gemini

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    from holdfast.formats.importers.json_source import SourceRow, TranscriptSource
    from holdfast.formats.transcript import TranscriptLine

    class Dialect(Protocol):
        """A module that parses the transcripts of one program."""

        CLIENT: str

        def matches(self, row: dict[str, Any]) -> bool: ...
        def parse_turns(self, rows: Iterator[SourceRow], stem: str) -> Iterator[TranscriptLine]: ...


_DETECT_ROWS = 50
_OTHER_NAMES = {"claude": "claude-code", "gemini-cli": "gemini", "openai": "chat"}  # of dialects


def all_dialects() -> dict[str, Dialect]:
    """Return every dialect by its client; plain chat comes last, because it requires the fewest fields."""
    return {dialect.CLIENT: dialect for dialect in (claude, codex, gemini, chat)}


def find_dialect(source: TranscriptSource, name: str | None) -> Dialect | None:
    """Return the dialect of a name, or else the first that matches one of the first objects; None if there is none."""
    dialects = all_dialects()
    by_name = dialects.get(_OTHER_NAMES.get(name or "", name or ""))
    if by_name is not None:
        return by_name
    for row in islice(source.read_rows(), _DETECT_ROWS):
        for dialect in dialects.values():
            if dialect.matches(row.value):
                return dialect
    return None


def find_folder(source: TranscriptSource, dialect: Dialect) -> str:
    """Return the folder that the program worked in, if the transcript names it; "" otherwise.

    Claude Code names it in each row, Codex in its header.
    """
    for row in islice(source.read_rows(), _DETECT_ROWS) if dialect.CLIENT in (claude.CLIENT, codex.CLIENT) else ():
        payload = row.value.get("payload")
        for folder in (row.value.get("cwd"), payload.get("cwd") if isinstance(payload, dict) else None):
            if isinstance(folder, str) and os.path.isabs(folder) and "\0" not in folder:
                return folder
    return ""


def unknown_format_error(source: TranscriptSource) -> UsageError:
    """Return the error for a transcript that no dialect matches."""
    clients = ", ".join(all_dialects())
    return UsageError(
        f"{source.name} has an unknown transcript format", f"Use a transcript of {clients}, or JSON lines with role and content"
    )
