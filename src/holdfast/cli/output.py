"""Print answers: aligned and coloured on a terminal, plain text into a pipe, one JSON document with --json.

Stored text may hold invisible characters and sequences that control a terminal. All output but --json shows each of them as a
visible mark.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_MIN_LAST_COLUMN = 20  # cells of a table's last column; narrower, the other columns shrink
_MAX_LAST_COLUMN = 100  # cells of a table's last column in a pipe, which has no width


class Output:
    """The output of one command."""

    def __init__(self, json: bool = False, no_color: bool = False) -> None:
        self.json = json
        self._no_color = no_color
        self.json_printed = False  # whether the one JSON document was printed
        self.memory_disabled = False  # whether memory is switched off, which is then why there is nothing to show
        self.is_terminal = _is_terminal(sys.stdout)
        self.width = _terminal_width() if self.is_terminal else 0
        self._set_encoding(sys.stdout)

    def _set_encoding(self, stream: TextIO) -> None:
        """Write UTF-8 into a pipe; keep the encoding of a terminal."""
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure and self.is_terminal:
            reconfigure(errors="replace")
        elif reconfigure:
            reconfigure(encoding="utf-8", errors="surrogateescape")  # paths may have bytes that are not UTF-8

    def print_line(self, text: str = "", exact: bool = False) -> None:
        """Print one line; unless `exact`, mark hidden characters, and control sequences except Holdfast's own styles."""
        sys.stdout.write((text if exact else _mark_hidden_styled(text) if self.is_terminal else mark_hidden(text)) + "\n")

    def print_text(self, text: str, wrap: bool = False) -> None:
        """Print stored text, with a message if it has hidden characters."""
        marked = mark_hidden(text)
        for line in self._split_lines(marked):
            for part in wrap_line(line, self.width) if wrap and self.is_terminal else [line]:
                self.print_line(part, exact=True)
        if marked is not text:
            from holdfast.base.invisible import find_kinds

            found = find_kinds(text)
            if found:
                message = f"hidden characters are shown as marks ({', '.join(found)}); use --json for the exact text"
                self.print_message(message, "yellow")

    def _split_lines(self, marked: str) -> list[str]:
        """Split text into lines; a pipe gets the carriage returns of CRLF line ends, a terminal does not."""
        lines = marked.removesuffix("\n").split("\n")
        return [line.removesuffix("\r") for line in lines] if self.is_terminal else lines

    def print_indented(self, text: str, max_lines: int = 0) -> None:
        """Print text under its heading: on a terminal wrapped and cut to `max_lines` (0: all), in a pipe whole."""
        lines = self._split_lines(mark_hidden(text))
        if self.is_terminal:
            lines = [part for line in lines for part in wrap_line(line, max(self.width - 4, 20))]
        shown = lines[:max_lines] if max_lines and self.is_terminal and len(lines) > max_lines + 1 else lines
        for line in shown:
            self.print_line("    " + line if line else "", exact=True)
        if len(shown) < len(lines):
            self.print_line("    " + self.style(f"... {len(lines) - len(shown)} more lines", "dim"))

    def print_message(self, text: str, style: str = "dim") -> None:
        """Print a message for people on stderr; it is not part of the answer, and --json leaves it out."""
        if not self.json:
            sys.stdout.flush()  # keep the order where stdout and stderr are one terminal
            sys.stderr.write(self.style(mark_hidden(text), style, sys.stderr) + "\n")

    def print_empty(self, text: str) -> None:
        """Print why there is nothing to show, or that memory is disabled, which must not look like an empty memory."""
        self.print_message("memory is disabled" if self.memory_disabled else text, "yellow")

    def print_json(self, data: Any) -> None:
        """Print the answer as one JSON document, with hidden characters escaped; print nothing if `data` cannot be encoded."""
        import json

        from holdfast.safety.hidden_chars import escape_json

        document = escape_json(json.dumps(data, ensure_ascii=False, indent=2 if self.is_terminal else None))
        self.json_printed = True
        self.print_line(document, exact=True)

    def style(self, text: str, name: str, stream: TextIO | None = None) -> str:
        """Return the text in a colour or weight of `_STYLES` if the stream is a terminal with colour."""
        if not text or not name or self._no_color or self.json or not _is_terminal(stream or sys.stdout):
            return text
        from holdfast.config import allows_colour

        return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if allows_colour() else text

    def print_table(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[str]],
        styles: Sequence[str] = (),
        indent: int = 0,
        wrap: bool = False,
    ) -> None:
        """Print aligned columns; the last one takes the rest of the width and is cut, or with `wrap` continued below.

        A key is never cut: one that is wider than the column KEY gets a line of its own, with the rest of its row below.
        """
        cells = [[join_lines(cell) for cell in row] for row in rows]
        widths = [max(map(measure_width, column)) for column in zip(head, *cells, strict=True)]
        if self.is_terminal or not wrap:
            self._shrink_columns(widths, indent)
        self.print_line(" " * indent + self._format_row(head, widths, ["dim"] * len(head)))
        key_column = head.index("KEY") if "KEY" in head else -1
        for row in cells:
            first, *more = wrap_line(row[-1], widths[-1]) if wrap else [row[-1]]
            for line in self._format_row_lines([*row[:-1], first], widths, styles or [""] * len(row), key_column):
                self.print_line(" " * indent + line)
            for part in more:
                blank = " " * (indent + sum(widths[:-1]) + 2 * len(widths[:-1]))
                self.print_line(blank + self.style(part, styles[-1] if styles else ""))

    def _shrink_columns(self, widths: list[int], indent: int) -> None:
        """Narrow the last column, then repeatedly the widest one, until a row fits the terminal."""
        gaps = 2 * (len(widths) - 1) + indent
        room = self.width - gaps - sum(widths[:-1]) if self.is_terminal else _MAX_LAST_COLUMN
        widths[-1] = min(widths[-1], max(room, _MIN_LAST_COLUMN))
        while self.is_terminal and sum(widths) + gaps > self.width and max(widths) > 1:
            widths[widths.index(max(widths))] -= 1

    def _format_row_lines(self, row: Sequence[str], widths: list[int], styles: Sequence[str], key_column: int) -> list[str]:
        """Return a row as one line, or as two if its key is wider than its column."""
        if key_column < 0 or measure_width(row[key_column]) <= widths[key_column]:
            return [self._format_row(row, widths, styles)]
        rest = key_column + 1
        first = self._format_row(row[:rest], [*widths[:key_column], measure_width(row[key_column])], styles[:rest])
        indent = " " * (sum(widths[:rest]) + 2 * rest)
        return [first, indent + self._format_row(row[rest:], widths[rest:], styles[rest:])]

    def _format_row(self, row: Sequence[str], widths: list[int], styles: Sequence[str]) -> str:
        cells = [
            self.style(truncate(cell, width), style) + " " * (width - measure_width(truncate(cell, width)))
            for cell, width, style in zip(row, widths, styles, strict=True)
        ]
        return "  ".join(cells).rstrip()


def mark_hidden(text: str) -> str:
    """Replace every hidden character, and every character that controls a terminal, by a visible mark."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text  # the usual case, without an import
    from holdfast.safety.hidden_chars import make_visible

    return make_visible(text)


def _mark_hidden_styled(text: str) -> str:
    """Mark hidden characters like `mark_hidden` in a line that may contain Holdfast's own styles."""
    if "\x1b[" not in text:
        return mark_hidden(text)
    first, *rest = text.split("\x1b[")
    parts = [mark_hidden(first)]
    for part in rest:
        code, letter, _ = part.partition("m")
        is_style = letter and (code == "0" or code in _STYLES.values())
        parts.append(f"\x1b[{code}m{mark_hidden(part[len(code) + 1 :])}" if is_style else mark_hidden("\x1b[" + part))
    return "".join(parts)


def join_lines(text: str) -> str:
    """Return the text on one line, with hidden characters marked."""
    return " ".join(mark_hidden(text).split())


def describe_hidden(kinds: tuple[str, ...]) -> list[str]:
    """Return a list with the hidden characters of a text by kind, or an empty list if it has none."""
    return [f"hidden: {', '.join(kinds)}"] if kinds else []


def wrap_line(line: str, width: int) -> list[str]:
    """Break a line between words into parts of at most `width` terminal cells; a longer word stays whole."""
    if measure_width(line) <= width:
        return [line]
    parts: list[str] = []
    current = line[: len(line) - len(line.lstrip())]
    for word in line.split():
        longer = f"{current} {word}" if current.strip() else current + word
        if current.strip() and measure_width(longer) > width:
            parts.append(current)
            longer = word
        current = longer
    return [*parts, current]


def truncate(text: str, width: int) -> str:
    """Cut the text to `width` terminal cells, with an ellipsis at the end."""
    if measure_width(text) <= width:
        return text
    kept, used = 0, 1
    for char in text:
        used += measure_width(char)
        if used > width:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def measure_width(text: str) -> int:
    """Return the width of a text in terminal cells: two for a CJK character, none for a combining mark."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum([0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text])


def format_bytes(count: int) -> str:
    """Return a number of bytes with its unit: `1.5 KiB`."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun: `1 note`, `2 notes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
