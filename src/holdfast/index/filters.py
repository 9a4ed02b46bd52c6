"""The filter of a search, its values in SQL, and the SQL fragments that several statements share.

To add a filter: take it as an argument in `api`, add a field and its value here, and add its condition to the fragments
`{passage_filter}` and `{doc_filter}` in index/sqlite.sql and postgres/index.sql.
"""

from __future__ import annotations

from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

END_OF_TIME = "9"  # later than every timestamp, compared as text


class SearchFilter(Record):
    """Which passages a search may find, and the moment it is about."""

    scopes: tuple[str, ...]
    part: str | None = None  # notes, files, transcripts, archive; several separated by spaces; None: all but the archive
    type: str | None = None
    tags: tuple[str, ...] = ()
    as_of: str | None = None
    known_at: str | None = None
    now: str = ""

    def parameters(self) -> dict[str, Any]:
        """Return the value of each placeholder that the conditions of a filter use."""
        return {
            "scopes": self.scopes, "part": self.part, "type": self.type, "tags": fold_tags(self.tags), "now": self.now,
            "as_of": self.as_of, "known_at": self.known_at or END_OF_TIME,
        }  # fmt: skip


def fold_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags as filters compare them: without regard to case."""
    return tuple([tag.casefold() for tag in tags])


def expand_fragments(statements: Mapping[str, str]) -> dict[str, str]:
    """Return the statements with each `{fragment}` replaced by its text.

    A fragment is a section of the .sql file whose name has braces; it may use the fragments above it.
    """
    fragments: dict[str, str] = {}
    expanded: dict[str, str] = {}
    for name, text in statements.items():
        if "{" in text:
            for fragment, content in fragments.items():
                text = text.replace(fragment, content)
        (fragments if name.startswith("{") else expanded)[name] = text
    return expanded


def folder_term(folder: int) -> str:
    """Return the term in the column `place` of SQLite's full-text tables that restricts a search to a folder."""
    return f"in{folder}"
