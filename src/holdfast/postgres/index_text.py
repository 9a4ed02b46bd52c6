"""Texts as PostgreSQL can keep and find them: no NUL, no half of a character, words as numbers, long names cut. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_LONGEST = 500  # letters of a name that an index takes whole
_SMALL = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_NOW, _PAST = b"now", b"past"


def plain(text: str) -> str:
    """The same, with U+FFFD for what PostgreSQL takes for no text."""
    if text.isascii() and "\0" not in text:
        return text
    return _NO_TEXT.sub("\ufffd", text)


def tidied(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values, each text of them plain."""
    return {name: plain(value) if isinstance(value, str) else value for name, value in values.items()}


@lru_cache(200_000)
def number_of(term: str, past: bool = False) -> int:
    """A word's number: nobody has to ask for it, and two words have the same once in ten billion billion pairs."""
    digest = blake2b(term.encode("utf-8", "replace"), digest_size=8, person=_PAST if past else _NOW).digest()
    return int.from_bytes(digest, "big", signed=True)


def shortened(name: str) -> str:
    """A name by which something is found: one that is too long for an index ends in a digest of all of it."""
    if len(name) <= _LONGEST:
        return name
    return name[: _LONGEST - 40] + blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest()


def small(speaker: str) -> str:
    """A name in small letters, as far as it is looked at; of ASCII alone, as SQLite compares names."""
    return plain(speaker[:200].translate(_SMALL))
