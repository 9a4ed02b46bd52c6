"""Parts of texts for pages: an excerpt with highlighted words, and the lines that two versions differ in."""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

_EXCERPT_CHARS = 320
_BEFORE_CHARS = 80  # shown before the first match
_MIN_STEM_CHARS = 4  # a word is compared without its last letters, down to this many
_MAX_DIFF_LINES = 4000  # comparing more would take seconds
_CONTEXT_LINES = 3
_WORD = re.compile(r"\w+")


class Piece(NamedTuple):
    """A part of a text, and whether it matches the query."""

    text: str
    is_match: bool


class DiffLine(NamedTuple):
    """A line of a comparison: `kind` is added, removed, same or skipped."""

    kind: str
    text: str


def excerpt(text: str, query: str) -> list[Piece]:
    """Return the part of a text around its first match, cut into pieces that match the query and others."""
    pattern = _pattern(query)
    first = pattern.search(text) if pattern else None
    start = max(0, first.start() - _BEFORE_CHARS) if first else 0
    if start:
        start = text.find(" ", start, start + 20) + 1 or start
    shown = text[start : start + _EXCERPT_CHARS]
    pieces = highlight(shown, query)
    dots = Piece("…", False)
    return [*([dots] if start else []), *pieces, *([dots] if start + len(shown) < len(text) else [])]


def highlight(text: str, query: str) -> list[Piece]:
    """Return a text as pieces, those that match a word of the query marked."""
    pattern, pieces, done = _pattern(query), [], 0
    for match in pattern.finditer(text) if pattern else ():
        pieces += [Piece(text[done : match.start()], False), Piece(match.group(), True)]
        done = match.end()
    return [piece for piece in (*pieces, Piece(text[done:], False)) if piece.text]


def _pattern(query: str) -> re.Pattern[str] | None:
    """Return a pattern of the query's words, each without its ending: `deploys` also marks `deploy`."""
    words = [word for word in _WORD.findall(query)[:20] if len(word) > 1]
    stems = {word[: max(_MIN_STEM_CHARS, len(word) - 3)] for word in words}
    if not stems:
        return None
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, stems), key=len, reverse=True))})\w*", re.IGNORECASE)


def compare_lines(old: str, new: str) -> list[DiffLine]:
    """Return the lines of two texts as one list; unchanged lines far from a change are left out."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) + len(after) > _MAX_DIFF_LINES:
        return [DiffLine("skipped", "The two versions are too long to compare line by line.")]
    lines: list[DiffLine] = []
    matcher = difflib.SequenceMatcher(None, before, after)  # `autojunk` bounds the time for lines that occur often
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        if lines or group[0][1] > 0:
            lines.append(DiffLine("skipped", "…"))
        for tag, first, last, first_new, last_new in group:
            if tag == "equal":
                lines += [DiffLine("same", line) for line in before[first:last]]
                continue
            lines += [DiffLine("removed", line) for line in before[first:last]]
            lines += [DiffLine("added", line) for line in after[first_new:last_new]]
    return lines
