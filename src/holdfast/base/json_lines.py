"""Lines of JSON, as notes and turns come in many: an object each, none of whose fields comes twice."""

from __future__ import annotations

import json

from holdfast.errors import Refused, UsageError
from holdfast.models import ORIGINS, least_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEFT_OUT = "left_out"
_ESCAPED = 6  # bytes that one byte of a text may take in JSON
_BESIDE = 64 * 1024  # for all the other fields of a line
_BOM = b"\xef\xbb\xbf"  # which some programs write before a text


class FieldTwice(UsageError):
    """Whoever looked at it on the way may have gone by the other one."""

    def __init__(self, field: str) -> None:
        super().__init__(f"the field {field[:80]!r} comes twice", "Give it once")
        self.field = field


def is_blank(line: bytes) -> bool:
    return not line.removeprefix(_BOM).strip()


def line_bytes(text_bytes: int) -> int:
    """How long a line may be whose text may have so many bytes."""
    return _ESCAPED * text_bytes + _BESIDE


def parsed(line: bytes, fix: str) -> dict[str, Any]:
    """The object that a line is; which line it is, says who counts them."""
    try:
        row = json.loads(line.decode("utf-8-sig"), object_pairs_hook=once_each)
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON: {_why(error)}", fix) from None
    if not isinstance(row, dict):
        raise Refused("not a JSON object", fix)
    return row


def tells_what_is_missing(row: dict[str, Any]) -> bool:
    """Whether it is the last line of an export that is no note, but says which notes it has not."""
    return row.keys() == {LEFT_OUT}


def _why(error: Exception) -> str:
    """In words for who wrote the line: JSON's own count of lines would only mislead."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return "it is nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, none of whose fields comes twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        from collections import Counter

        raise FieldTwice(Counter([name for name, _ in pairs]).most_common(1)[0][0])
    return found


def origin_of(row: dict[str, Any], brings: str) -> Any:
    """Of a note's line: what it says and what it was where it was exported, never trusted more than what brings it. What we do
    not know was trusted least there, and is refused by the gate where the line itself says it."""
    said, source = brings if row.get("origin") is None else row["origin"], row.get("source")
    if said not in ORIGINS:
        return said
    exported = [source.get("origin"), source.get("trust") or brings] if isinstance(source, dict) else []
    return least_trusted(brings, said, *[one if one in ORIGINS else "web" for one in exported])
