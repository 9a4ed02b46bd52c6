"""How far long work is, on stderr: a bar at a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time

from holdfast.models import Progress

_PATIENCE = 0.5  # seconds of silence: short work needs no bar
_REDRAW = 0.1
_LINES = 5.0  # between two lines where nobody watches
_BAR = 30


class Bar(Progress):
    """Says nothing until the work has taken a moment."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._what = ""
        self._total = self._done = 0
        self._shown = False
        self._next = 0.0

    def start(self, what: str, total: int) -> None:
        from holdfast.cli.output import one_line

        what = one_line(what)  # it may name a file
        self._what, self._total, self._done, self._shown = what, total, 0, False
        self._next = time.monotonic() + (_PATIENCE if self._terminal else _LINES)

    def step(self, count: int = 1) -> None:
        if not self._what:
            return  # work too small to have been announced
        self._done += count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + (_REDRAW if self._terminal else _LINES)
            self._draw()

    def end(self) -> None:
        if self._shown and self._terminal:
            _write("\r\x1b[K")
        self._what = ""

    def _draw(self) -> None:
        self._shown = True
        counted = f"{self._what}: {self._done:,} of {self._total:,}"
        full = _BAR * min(self._done, self._total) // max(self._total, 1)
        _write(f"\r\x1b[K{'█' * full}{'░' * (_BAR - full)} {counted}" if self._terminal else f"{counted}\n")


def _write(text: str) -> None:
    """Tell whoever watches; that nobody does is no reason to stop the work."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass
