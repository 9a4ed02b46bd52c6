"""Where answers go: aligned and coloured for a person at a terminal, plain down a pipe, one JSON document with --json.

What was stored may hold anything, also characters that nobody sees and sequences that drive a terminal. Whatever people or
models read here shows each of them as a mark; `--json` alone has the text as it was kept.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_LEAST = 20  # cells of the last column, before others give way
_GIST = 100  # characters of a note in a table that has no edge


class Output:
    """One command's way to the outside."""

    def __init__(self, json: bool = False, plain: bool = False) -> None:
        self.json = json
        self._plain = plain
        self.answered = False  # whether the one JSON document has been said
        self.disabled = False  # whether memory is switched off, which is why there is nothing to show
        self.terminal = _is_terminal(sys.stdout)
        self.width = _width() if self.terminal else 0
        self._prepare(sys.stdout)

    def _prepare(self, stream: TextIO) -> None:
        """A pipe carries UTF-8; a terminal keeps its own encoding. Nothing that was shown has a byte that is neither."""
        change = getattr(stream, "reconfigure", None)
        if change and self.terminal:
            change(errors="replace")
        elif change:
            change(encoding="utf-8", errors="surrogateescape")  # a path of somebody else's may have such bytes

    # --- saying --------------------------------------------------------------------------------------------------

    def say(self, text: str = "", exact: bool = False) -> None:
        """A line of the answer. A net below all who say something: beside our own colours nothing drives a terminal."""
        sys.stdout.write((text if exact else _coloured(text) if self.terminal else visible(text)) + "\n")

    def text(self, text: str, wrap: bool = False) -> None:
        """Stored text, with a remark if anything in it had to be made visible."""
        seen = visible(text)
        for line in self._lines(seen):
            for piece in wrapped(line, self.width) if wrap and self.terminal else [line]:
                self.say(piece, exact=True)
        if seen is not text:
            from holdfast.base.invisible import find_kinds

            found = find_kinds(text)
            if found:
                self.aside(f"hidden characters are shown as marks ({', '.join(found)}); --json has the text as it is", "yellow")

    def _lines(self, seen: str) -> list[str]:
        """What was made visible, by its lines. A carriage return that is left there is part of a line's end: it goes down a
        pipe as it was kept, and a terminal has no use for it."""
        lines = seen.removesuffix("\n").split("\n")
        return [line.removesuffix("\r") for line in lines] if self.terminal else lines

    def aside(self, text: str, style: str = "dim") -> None:
        """A remark for people; never part of the answer."""
        if not self.json:
            sys.stdout.flush()  # in the order in which it was said, also where both go to one place
            sys.stderr.write(self.paint(visible(text), style, sys.stderr) + "\n")

    def nothing(self, text: str) -> None:
        """There is nothing to show, and why; an off switch must not look like an empty memory."""
        self.aside("memory is disabled" if self.disabled else text, "yellow")

    def document(self, data: Any) -> None:
        """The answer as JSON: every text exactly as it is, and harmless on a terminal, since what is hidden is spelled out.
        Until all of it can be said, nothing is."""
        import json

        from holdfast.safety.hidden_chars import escape_json

        said = escape_json(json.dumps(data, ensure_ascii=False, indent=2 if self.terminal else None))
        self.answered = True
        self.say(said, exact=True)

    def paint(self, text: str, style: str, stream: TextIO | None = None) -> str:
        """The text in a colour, if there is anybody to see it."""
        if not text or not style or self._plain or self.json or not _is_terminal(stream or sys.stdout):
            return text
        from holdfast.config import allows_colour

        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if allows_colour() else text

    # --- shapes --------------------------------------------------------------------------------------------------

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], styles: Sequence[str] = (), indent: int = 0) -> None:
        """Columns that line up. The last one takes what is left of the terminal. A key is never shortened: one that is wider
        than its column stands on a line of its own, and the rest of its row below it."""
        cells = [[one_line(cell) for cell in row] for row in rows]
        sizes = [max(map(cells_wide, column)) for column in zip(head, *cells, strict=True)]
        self._fit(sizes, indent)
        self.say(" " * indent + self._row(head, sizes, ["dim"] * len(head)))
        key = head.index("KEY") if "KEY" in head else -1
        for row in cells:
            for line in self._lines_of(row, sizes, styles or [""] * len(row), key):
                self.say(" " * indent + line)

    def _fit(self, sizes: list[int], indent: int) -> None:
        """Narrow the last column, and where that is not enough always the widest, until a line fits."""
        gaps = 2 * (len(sizes) - 1) + indent
        room = self.width - gaps - sum(sizes[:-1]) if self.terminal else _GIST
        sizes[-1] = min(sizes[-1], max(room, _LEAST))
        while self.terminal and sum(sizes) + gaps > self.width and max(sizes) > 1:
            sizes[sizes.index(max(sizes))] -= 1

    def _lines_of(self, row: Sequence[str], sizes: list[int], styles: Sequence[str], key: int) -> list[str]:
        """A row as one line, or as two where its key is wider than the key's column."""
        if key < 0 or cells_wide(row[key]) <= sizes[key]:
            return [self._row(row, sizes, styles)]
        rest = key + 1
        first = self._row(row[:rest], [*sizes[:key], cells_wide(row[key])], styles[:rest])
        return [first, " " * (sum(sizes[:rest]) + 2 * rest) + self._row(row[rest:], sizes[rest:], styles[rest:])]

    def _row(self, row: Sequence[str], sizes: list[int], styles: Sequence[str]) -> str:
        shown = [
            self.paint(shortened(cell, size), style) + " " * (size - cells_wide(shortened(cell, size)))
            for cell, size, style in zip(row, sizes, styles, strict=True)
        ]
        return "  ".join(shown).rstrip()

    def indented(self, text: str, most: int = 0) -> None:
        """A text under its heading: wrapped and, if `most` is given, cut on a terminal; whole down a pipe."""
        lines = self._lines(visible(text))
        if self.terminal:
            lines = [piece for line in lines for piece in wrapped(line, max(self.width - 4, 20))]
        kept = lines[:most] if most and self.terminal and len(lines) > most + 1 else lines
        for line in kept:
            self.say("    " + line if line else "", exact=True)
        if len(kept) < len(lines):
            self.say("    " + self.paint(f"... {len(lines) - len(kept)} more lines", "dim"))


def visible(text: str) -> str:
    """The text with every character that drives a terminal, or hides, as a mark."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text  # most are, and nothing more is loaded
    from holdfast.safety.hidden_chars import make_visible

    return make_visible(text)


def _coloured(text: str) -> str:
    """The same for a line that has colours of ours."""
    if "\x1b[" not in text:
        return visible(text)
    first, *rest = text.split("\x1b[")
    pieces = [visible(first)]
    for piece in rest:
        code, letter, _ = piece.partition("m")
        ours = letter and (code == "0" or code in _STYLES.values())
        pieces.append(f"\x1b[{code}m{visible(piece[len(code) + 1 :])}" if ours else visible("\x1b[" + piece))
    return "".join(pieces)


def one_line(text: str) -> str:
    """The text on one line, for a table."""
    return " ".join(visible(text).split())


def hidden_mark(kinds: tuple[str, ...]) -> list[str]:
    """What a line about a text says of its hidden characters; mostly nothing."""
    return [f"hidden: {', '.join(kinds)}"] if kinds else []


def wrapped(line: str, width: int) -> list[str]:
    """The line in pieces no wider than that, broken between words."""
    if cells_wide(line) <= width:
        return [line]
    pieces: list[str] = []
    current = line[: len(line) - len(line.lstrip())]
    for word in line.split():
        longer = f"{current} {word}" if current.strip() else current + word
        if current.strip() and cells_wide(longer) > width:
            pieces.append(current)
            longer = word
        current = longer
    return [*pieces, current]


def shortened(text: str, width: int) -> str:
    """As much of the text as fits in so many cells."""
    if cells_wide(text) <= width:
        return text
    kept, used = 0, 1
    for char in text:
        used += cells_wide(char)
        if used > width:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def cells_wide(text: str) -> int:
    """How many cells of a terminal a text takes: two for a CJK character, none for a combining mark."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum([0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text])


def size(count: int) -> str:
    """Bytes as people read them."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
