"""Texts as PostgreSQL can store and find them: no NUL, no half of a character, terms as numbers, long names cut. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_INVALID = re.compile("[\x00\ud800-\udfff]")
_LONGEST_NAME = 500  # characters that an index takes whole
_LONGEST_SPEAKER = 200
_SMALL = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_NOW, _PAST = b"now", b"past"


def clean_text(text: str) -> str:
    """Return the text with U+FFFD for the characters that PostgreSQL cannot store."""
    if text.isascii() and "\0" not in text:
        return text
    return _INVALID.sub("\ufffd", text)


def clean_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with every text of them cleaned, also in lists."""
    return {name: _clean(value) for name, value in values.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [clean_text(item) for item in value]
    return value


@lru_cache(200_000)
def term_number(term: str, past: bool = False) -> int:
    """Return the number of a term: computed, so no table is read; two terms share one in 2^64 pairs."""
    digest = blake2b(term.encode("utf-8", "replace"), digest_size=8, person=_PAST if past else _NOW).digest()
    return int.from_bytes(digest, "big", signed=True)


def shorten_name(name: str) -> str:
    """Return a subject or label as it is indexed: one that is too long for an index ends in a digest of the whole."""
    if len(name) <= _LONGEST_NAME:
        return name
    return name[: _LONGEST_NAME - 40] + blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest()


def fold_speaker(speaker: str) -> str:
    """Return the beginning of a speaker's name in small letters; of ASCII only, as SQLite compares names."""
    return clean_text(speaker[:_LONGEST_SPEAKER].translate(_SMALL))
