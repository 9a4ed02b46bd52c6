"""A block of ours in a text of somebody's (B5): between two marks, each alone on its line; the rest is never touched.

Only a begin that is followed by an end, with no other mark between them, is a block of ours. A mark that stands alone was
left over or typed by a person: it is text like any other.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Ours = Callable[[str], bool]

BEGIN, END = "<!-- holdfast:begin -->", "<!-- holdfast:end -->"  # of a briefing
ABOUT_BEGIN, ABOUT_END = "<!-- holdfast:about:begin -->", "<!-- holdfast:about:end -->"  # of an install: how to use the memory
TOML_BEGIN, TOML_END = "# holdfast:begin", "# holdfast:end"


def _any(_inside: str) -> bool:
    return True


def put(text: str, content: str, begin: str = BEGIN, end: str = END, is_own: Ours = _any) -> str:
    """The text with this in its block, which comes last if there is none yet; with nothing to show, without the block. Of
    several, as a copy or a merge leaves them, the last one stays."""
    if not content.strip():
        return remove(text, begin, end, is_own)
    while len(blocks := _find(_lines(text), begin, end, is_own)) > 1:
        text = _cut(_lines(text), *blocks[0])
    lines = _lines(text)
    newline = "\r\n" if "\r\n" in (lines[blocks[0][0]] if blocks else text) else "\n"
    body = [one for one in content.strip("\n").split("\n") if one.strip() not in (begin, end)]  # no mark within the marks
    block = newline.join([begin, *body, end]) + newline
    if not blocks:
        return text + _gap(text, newline) + block
    first, last = blocks[0]
    if not lines[last].endswith("\n"):
        block = block.removesuffix(newline)
    return "".join([*lines[:first], block, *lines[last + 1 :]])


def remove(text: str, begin: str = BEGIN, end: str = END, is_own: Ours = _any) -> str:
    """The text without its block; if that comes last, also without what was put between it and the text before. Where more
    follows after an empty line, one of the two empty lines goes along."""
    while blocks := _find(_lines(text), begin, end, is_own):
        text = _cut(_lines(text), *blocks[-1])
    return text


def _cut(lines: list[str], first: int, last: int) -> str:
    newline = "\r\n" if lines[first].endswith("\r\n") else "\n"
    kept = "".join(lines[:first])
    if last == len(lines) - 1:
        unended = newline + " " + newline
        return kept.removesuffix(unended if kept.endswith(unended) else newline) if _has_gap(kept, newline) else kept
    rest = "".join(lines[last + 1 :])
    return kept + (rest.removeprefix(newline) if _has_gap(kept, newline) else rest)


def _find(lines: list[str], begin: str, end: str, ours: Ours) -> list[tuple[int, int]]:
    """Every begin that is followed by an end with no mark between them, and with what may be ours."""
    first, found = None, []
    for number, line in enumerate(lines):
        mark = line.removeprefix("\ufeff").rstrip("\r\n")
        if mark == begin:
            first = number
        elif mark == end:
            if first is not None and ours("".join(lines[first + 1 : number])):
                found.append((first, number))
            first = None
    return found


def _lines(text: str) -> list[str]:
    """Lines with their ends. Only a newline ends one: a person's text may hold other characters that Python splits at."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _gap(text: str, newline: str) -> str:
    """An empty line between a person's text and ours. Where that text does not end its last line, the line between holds a
    blank, so that the end is known to be ours when it is taken out."""
    if not text:
        return ""
    return newline if text.endswith("\n") else newline + " " + newline


def _has_gap(kept: str, newline: str) -> bool:
    return kept.endswith((newline + " " + newline, "\n" + newline)) or kept == newline
