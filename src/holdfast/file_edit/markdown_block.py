"""Add, replace and remove Holdfast's block of lines in another program's file; the rest is never changed.

A block is between two marks, each alone on its line, with no other mark between them. A mark without its partner was left over
or typed by a person: it is ordinary text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    IsOwn = Callable[[str], bool]

BEGIN, END = "<!-- holdfast:begin -->", "<!-- holdfast:end -->"  # of a briefing
ABOUT_BEGIN, ABOUT_END = "<!-- holdfast:about:begin -->", "<!-- holdfast:about:end -->"  # of an install: how to use the memory
TOML_BEGIN, TOML_END = "# holdfast:begin", "# holdfast:end"


def _accept_any(_content: str) -> bool:
    return True


def put(text: str, content: str, begin: str = BEGIN, end: str = END, is_own: IsOwn = _accept_any) -> str:
    """Return the text with this content in its block; a new block is added at the end.

    Without content, the block is removed. Of several blocks, as a copy or a merge leaves them, the last one stays.
    """
    if not content.strip():
        return remove(text, begin, end, is_own)
    while len(blocks := _find_blocks(_split_lines(text), begin, end, is_own)) > 1:
        text = _remove_lines(_split_lines(text), *blocks[0])
    lines = _split_lines(text)
    newline = "\r\n" if "\r\n" in (lines[blocks[0][0]] if blocks else text) else "\n"
    body = [line for line in content.strip("\n").split("\n") if line.strip() not in (begin, end)]  # no mark within a block
    block = newline.join([begin, *body, end]) + newline
    if not blocks:
        return text + _make_gap(text, newline) + block
    first, last = blocks[0]
    if not lines[last].endswith("\n"):
        block = block.removesuffix(newline)
    return "".join([*lines[:first], block, *lines[last + 1 :]])


def remove(text: str, begin: str = BEGIN, end: str = END, is_own: IsOwn = _accept_any) -> str:
    """Return the text without its blocks.

    With a block at the end, the gap before it is removed too. If text follows after an empty line, one of the two empty lines
    is removed.
    """
    while blocks := _find_blocks(_split_lines(text), begin, end, is_own):
        text = _remove_lines(_split_lines(text), *blocks[-1])
    return text


def _remove_lines(lines: list[str], first: int, last: int) -> str:
    """Return the text without these lines, and without the gap before them."""
    newline = "\r\n" if lines[first].endswith("\r\n") else "\n"
    kept = "".join(lines[:first])
    if last == len(lines) - 1:
        unended = newline + " " + newline
        return kept.removesuffix(unended if kept.endswith(unended) else newline) if _has_gap(kept, newline) else kept
    rest = "".join(lines[last + 1 :])
    return kept + (rest.removeprefix(newline) if _has_gap(kept, newline) else rest)


def _find_blocks(lines: list[str], begin: str, end: str, is_own: IsOwn) -> list[tuple[int, int]]:
    """Return the first and last line of each block whose content `is_own` accepts."""
    first, found = None, []
    for number, line in enumerate(lines):
        mark = line.removeprefix("\ufeff").rstrip("\r\n")
        if mark == begin:
            first = number
        elif mark == end:
            if first is not None and is_own("".join(lines[first + 1 : number])):
                found.append((first, number))
            first = None
    return found


def _split_lines(text: str) -> list[str]:
    """Return the lines with their ends; only a newline ends a line, not the other characters that Python splits at."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _make_gap(text: str, newline: str) -> str:
    """Return the empty line to add between a text and a block.

    If the text does not end with a newline, the line has a blank, so that removing the block also removes the newline.
    """
    if not text:
        return ""
    return newline if text.endswith("\n") else newline + " " + newline


def _has_gap(kept: str, newline: str) -> bool:
    return kept.endswith((newline + " " + newline, "\n" + newline)) or kept == newline
