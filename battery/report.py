"""The results of a run: one table for people, or the same as JSON."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Self

MAX_SHOWN = 20  # failures of one row in the table


@dataclass
class Row:
    """One kind of test: how often it ran, and each failure."""

    name: str
    count: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    figure: str = ""  # what was measured: "0 opens outside", "98.9 %"


def repeat_command(part: str, share: float, seed: int) -> str:
    """Return the command that runs a part again with the same cases."""
    return f"python -m battery {part} --seed {seed}{' --quick' if share < 1 else ''}"


class Report:
    """Collects rows and notes, shows progress on stderr and renders the results."""

    def __init__(self, quiet: bool = False) -> None:
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self._quiet = quiet
        self._on_terminal = not quiet and sys.stderr.isatty()

    def start_row(self, name: str) -> RunningRow:
        """Add a row; its time is measured while it is used in a `with` block."""
        self.rows.append(Row(name))
        return RunningRow(self.rows[-1], self)

    def add_note(self, line: str) -> None:
        """Add a line below the table, such as what could not be tried on this machine."""
        self.notes.append(line)

    def add_not_tried(self, name: str, reason: str) -> None:
        """Add a row and a note for something that cannot be tried on this machine; it counts neither as passed nor failed."""
        self.rows.append(Row(name, figure="NOT TRIED"))
        self.add_note(f"NOT TRIED: {name}, because {reason}")

    def show_progress(self, name: str, done: int, total: int) -> None:
        """Show on a terminal how far a row is."""
        if self._on_terminal:
            sys.stderr.write(f"\r\x1b[K{name}: {done}/{total}")
            sys.stderr.flush()

    def show_row(self, row: Row) -> None:
        """Print a finished row to stderr."""
        if self._on_terminal:
            sys.stderr.write("\r\x1b[K")
        if not self._quiet:
            line = f"{row.name}: {row.count}, {len(row.failures)} failed, {row.seconds:.1f} s {row.figure}"
            sys.stderr.write(line.rstrip() + "\n")
            sys.stderr.flush()

    @property
    def failed(self) -> int:
        return sum(len(row.failures) for row in self.rows)

    @property
    def passed(self) -> int:
        return sum(row.count for row in self.rows) - self.failed

    def render_text(self) -> str:
        """Return the table, then each failure with the command that repeats it."""
        width = max([4, *(len(row.name) for row in self.rows)])
        lines = [f"{'name':<{width}}  {'count':>7}  {'failures':>8}  {'seconds':>8}  figure"]
        for row in self.rows:
            line = f"{row.name:<{width}}  {row.count:>7,}  {len(row.failures):>8,}  {row.seconds:>8.1f}  {row.figure}"
            lines.append(line.rstrip())
        for row in self.rows:
            lines += [f"FAILED {row.name}: {failure}" for failure in row.failures[:MAX_SHOWN]]
            if len(row.failures) > MAX_SHOWN:
                lines.append(f"FAILED {row.name}: and {len(row.failures) - MAX_SHOWN:,} more, all of them with --json")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join([*lines, f"{self.passed:,} passed, {self.failed:,} failed"])

    def render_json(self) -> str:
        """Return the results as JSON, with every failure."""
        rows = [asdict(row) for row in self.rows]
        results = {"passed": self.passed, "failed": self.failed, "notes": self.notes, "rows": rows}
        return json.dumps(results, indent=2, ensure_ascii=False)


class RunningRow:
    """A row whose tests are running."""

    def __init__(self, row: Row, report: Report) -> None:
        self._row = row
        self._report = report

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        return self

    def add(self, problems: list[str], repeat: str, total: int = 0) -> None:
        """Count one test; its problems, if any, are one failure, shown with the command that repeats it."""
        self._row.count += 1
        if problems:
            self._row.failures.append(f"{'; '.join(problems)} (repeat: {repeat})")
        self._report.show_progress(self._row.name, self._row.count, total)

    @property
    def failures(self) -> list[str]:
        return self._row.failures

    def set_figure(self, text: str) -> None:
        """Set what the row measured."""
        self._row.figure = text

    def __exit__(self, *_: object) -> None:
        self._row.seconds = round(time.monotonic() - self._start, 3)
        self._report.show_row(self._row)
