"""Parse JSON lines, the format in which notes and turns are imported and exported: one object per line."""

from __future__ import annotations

import json

from holdfast.errors import Refused, UsageError
from holdfast.models import ORIGINS, least_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEFT_OUT = "left_out"
_MAX_ESCAPE_BYTES = 6  # for one byte of a text
_OTHER_FIELDS_BYTES = 64 * 1024  # of a line, besides the text
_BOM = b"\xef\xbb\xbf"  # some programs write it before a text


class DuplicateField(UsageError):
    """A field occurs twice in an object; a proxy may have checked the other value."""

    def __init__(self, field: str) -> None:
        super().__init__(f"the field {field[:80]!r} occurs twice", "Remove one of them")
        self.field = field


def is_blank(line: bytes) -> bool:
    """Return whether a line has only white space."""
    return not line.removeprefix(_BOM).strip()


def max_line_bytes(text_bytes: int) -> int:
    """Return the maximum length of a line whose text has at most `text_bytes` bytes."""
    return _MAX_ESCAPE_BYTES * text_bytes + _OTHER_FIELDS_BYTES


def parse_line(line: bytes, fix: str) -> dict[str, Any]:
    """Return the object of a line; raise Refused if it is not one. The caller adds the line number."""
    try:
        row = json.loads(line.decode("utf-8-sig"), object_pairs_hook=reject_duplicate_fields)
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON: {_describe_error(error)}", fix) from None
    if not isinstance(row, dict):
        raise Refused("not a JSON object", fix)
    return row


def is_left_out_line(row: dict[str, Any]) -> bool:
    """Return whether this is the last line of an export, which lists the notes that were left out."""
    return row.keys() == {LEFT_OUT}


def _describe_error(error: Exception) -> str:
    """Return why a line is not JSON, without the parser's own line number, which would be wrong."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return "it is nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"


def reject_duplicate_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise DuplicateField if a field occurs twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        from collections import Counter

        raise DuplicateField(Counter([name for name, _ in pairs]).most_common(1)[0][0])
    return fields


def line_origin(row: dict[str, Any], importer_origin: str) -> Any:
    """Return the origin of an imported note: the least trusted of its own, its exported source's and the importer's.

    An unknown exported origin gets the least trust; an unknown origin in the line itself is returned and rejected later.
    """
    origin, source = importer_origin if row.get("origin") is None else row["origin"], row.get("source")
    if origin not in ORIGINS:
        return origin
    exported = [source.get("origin"), source.get("trust") or importer_origin] if isinstance(source, dict) else []
    return least_trusted(
        importer_origin, origin, *[exported_origin if exported_origin in ORIGINS else "web" for exported_origin in exported]
    )
