"""The progress of long work, on stderr: a bar on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import sys
import time

from holdfast.models import Progress

_DELAY_SECONDS = 0.5  # before a bar is drawn: short work needs none
_REDRAW_SECONDS = 0.1
_LINE_SECONDS = 5.0  # between two lines where stderr is not a terminal
_BAR_WIDTH = 30  # characters


class ProgressBar(Progress):
    """Show how much of the work is done; print nothing until it has taken a moment."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._title = ""
        self._total = self._done = 0
        self._drawn = False
        self._next_draw = 0.0  # time.monotonic()

    def start(self, what: str, total: int) -> None:
        """Begin work of `total` steps."""
        from holdfast.cli.output import join_lines

        self._title = join_lines(what)  # it may name a file
        self._total, self._done, self._drawn = total, 0, False
        self._next_draw = time.monotonic() + (_DELAY_SECONDS if self._is_terminal else _LINE_SECONDS)

    def step(self, count: int = 1) -> None:
        """Count steps that are done, and draw if it is time."""
        if not self._title:
            return  # the work is too small to have been started here
        self._done += count
        now = time.monotonic()
        if now >= self._next_draw:
            self._next_draw = now + (_REDRAW_SECONDS if self._is_terminal else _LINE_SECONDS)
            self._draw()

    def end(self) -> None:
        """Remove the bar."""
        if self._drawn and self._is_terminal:
            _write("\r\x1b[K")
        self._title = ""

    def _draw(self) -> None:
        self._drawn = True
        line = f"{self._title}: {self._done:,} of {self._total:,}"
        full = _BAR_WIDTH * min(self._done, self._total) // max(self._total, 1)
        _write(f"\r\x1b[K{'█' * full}{'░' * (_BAR_WIDTH - full)} {line}" if self._is_terminal else f"{line}\n")


def _write(text: str) -> None:
    """Write to stderr; a closed stderr must not stop the work."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass
