"""What the battery found: one table for a person, or the same as JSON."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Self

MOST = 20  # failures of one row that a person is shown


@dataclass
class Row:
    """One thing that was tried, how often, and every time it went wrong."""

    name: str
    count: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    figure: str = ""  # what was measured, in its own words: "0 opens outside", "98.9 %"


def repeat(part: str, share: float, seed: int) -> str:
    """The command that does the same once more."""
    return f"python -m battery {part} --seed {seed}{' --quick' if share < 1 else ''}"


class Report:
    """Collects rows, shows progress on stderr, and tells the end."""

    def __init__(self, quiet: bool = False) -> None:
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self._live = not quiet and sys.stderr.isatty()
        self._plain = not quiet and not self._live

    def row(self, name: str) -> Timed:
        """A new row; time is taken while it is used in a `with`."""
        self.rows.append(Row(name))
        return Timed(self.rows[-1], self)

    def note(self, line: str) -> None:
        """Something the reader must know, such as what could not be tried here."""
        self.notes.append(line)

    def not_tried(self, what: str, why: str) -> None:
        """Something that cannot be tried here: a row that counts for nothing, and a note that nobody can miss."""
        self.rows.append(Row(what, figure="NOT TRIED"))
        self.note(f"NOT TRIED: {what}, because {why}")

    def progress(self, name: str, done: int, total: int) -> None:
        """Where a long row is."""
        if self._live:
            sys.stderr.write(f"\r\x1b[K{name}: {done}/{total}")
            sys.stderr.flush()

    def finished(self, row: Row) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")
        if self._live or self._plain:
            told = f"{row.name}: {row.count}, {len(row.failures)} failed, {row.seconds:.1f} s {row.figure}"
            sys.stderr.write(told.rstrip() + "\n")
            sys.stderr.flush()

    @property
    def failed(self) -> int:
        return sum(len(row.failures) for row in self.rows)

    @property
    def passed(self) -> int:
        return sum(row.count for row in self.rows) - self.failed

    def text(self) -> str:
        """The table, then each failure with how to repeat it."""
        width = max([4, *(len(row.name) for row in self.rows)])
        lines = [f"{'name':<{width}}  {'count':>7}  {'failures':>8}  {'seconds':>8}  figure"]
        for row in self.rows:
            shown = f"{row.name:<{width}}  {row.count:>7,}  {len(row.failures):>8,}  {row.seconds:>8.1f}  {row.figure}"
            lines.append(shown.rstrip())
        for row in self.rows:
            lines += [f"FAILED {row.name}: {failure}" for failure in row.failures[:MOST]]
            if len(row.failures) > MOST:
                lines.append(f"FAILED {row.name}: and {len(row.failures) - MOST:,} more, all of them with --json")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join([*lines, f"{self.passed:,} passed, {self.failed:,} failed"])

    def json(self) -> str:
        rows = [asdict(row) for row in self.rows]
        told = {"passed": self.passed, "failed": self.failed, "notes": self.notes, "rows": rows}
        return json.dumps(told, indent=2, ensure_ascii=False)


class Timed:
    """A row under way."""

    def __init__(self, row: Row, report: Report) -> None:
        self._row = row
        self._report = report

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        return self

    def tried(self, problems: list[str], repeat: str, total: int = 0) -> None:
        """One try; its problems, if any, are one failure."""
        self._row.count += 1
        if problems:
            self._row.failures.append(f"{'; '.join(problems)} (repeat: {repeat})")
        self._report.progress(self._row.name, self._row.count, total)

    @property
    def failures(self) -> list[str]:
        return self._row.failures

    def figure(self, text: str) -> None:
        """The figure of this row, as a person reads it."""
        self._row.figure = text

    def failed(self, problems: list[str], repeat: str) -> None:
        """What is wrong with the row as a whole, such as a figure below its bound: it counts as one more try."""
        if problems:
            self.tried(problems, repeat)

    def __exit__(self, *_: object) -> None:
        self._row.seconds = round(time.monotonic() - self._start, 3)
        self._report.finished(self._row)
