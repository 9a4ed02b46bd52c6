"""Fields of a framework that a note has no place for: JSON in a comment at the end of its text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from holdfast import UsageError
from holdfast.adapters.secrets import cannot_mask, check_strings
from holdfast.safety.validate import redact


def add_comment(text: str, name: str, fields: Mapping[str, Any], mask: bool) -> str:
    """Return the text of a note with fields in a comment; raise UsageError if they are not JSON.

    Secrets in the fields are masked here, or rejected; the caller stores the note with `redact` equal to `mask`.
    """
    try:
        json.dumps(dict(fields), allow_nan=False)  # rejects what may have no end
        line = json.dumps(check_strings(dict(fields), mask), ensure_ascii=False)
        names = json.loads(line).keys()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the metadata is not JSON: {error}", "Use strings, numbers, lists and dicts") from None
    line = line.replace("<", "\\u003c").replace(">", "\\u003e")  # does not end the comment
    note = f"{text}\n\n<!-- {name} {line} -->"
    if mask and split_comment(redact(note)[0], name)[1].keys() != names:  # a mask took more than a value
        raise cannot_mask()
    return note


def split_comment(text: str, name: str) -> tuple[str, dict[str, Any]]:
    """Return the text of a note and its fields; without a comment that is readable, the whole text and no fields."""
    found = re.fullmatch(rf"(.*)\n\n<!-- {name} (\{{[^\n]*\}}) -->\s*", text, re.S)
    try:
        fields = json.loads(found[2]) if found else None
    except (ValueError, RecursionError):
        fields = None
    return (found[1], fields) if found and isinstance(fields, dict) else (text, {})
