"""Transcripts, line for line, also those in the trash."""

from __future__ import annotations

from hashlib import sha256

from holdfast.formats.transcript import parse
from holdfast.store.layout import TRANSCRIPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.models import Progress
    from holdfast.store.interface import Transcript
    from holdfast.verbs.copy.endpoints import End
    from holdfast.verbs.copy.purged import Purged

    Which = tuple[str, str, str]  # scope, part, name

_MOST, _MOST_BYTES = 2000, 8 * 1024 * 1024  # of lines that are added with one flush


class Sessions:
    """Those of every scope."""

    def __init__(self, old: End, new: End, progress: Progress, purged: Purged) -> None:
        self._old, self._new, self._progress, self._purged = old.store, new.store, progress, purged
        self._begun: dict[Which, int] = {}  # how many lines of each are there already
        self.left: list[str] = []
        self.total = self.lines = self.copied = self.verified = 0

    def compare(self) -> Iterator[str]:
        """A transcript may stand there in part: the lines it has must be the first of ours."""
        for which in self._every():
            if self._purged and self._is_purged(which):
                continue
            mine, there = self._ours(which), 0
            for line in _lines(_roll(self._new, which)):
                if next(mine, None) != line:
                    yield "/".join(which)
                    break
                there += 1
            self._begun[which] = there

    def _every(self) -> Iterator[Which]:
        for scope in self._old.scopes():
            transcript_files = self._old.transcript_files(scope)
            yield from [(scope, TRANSCRIPTS, entry.name) for entry in transcript_files.census() if entry.regular]
            yield from [(scope, "trash", transcript_file.name) for transcript_file in transcript_files.list_trashed()]

    def _lines(self, store: Any, which: Which) -> Iterator[bytes]:
        """A line that is too long to be kept ends what can be copied of its file."""
        for line in _lines(_roll(store, which)):
            if line is None:
                what = f"{'/'.join(which)}: a line is longer than what is read"
                self.left += [] if what in self.left else [what]
                return
            yield line

    def _ours(self, which: Which) -> Iterator[bytes]:
        """What is to stand there in the end: every line, but of what was purged only that it was."""
        lines = self._lines(self._old, which)
        return (line for line, _ in self._purged.without(lines)) if self._purged else lines

    def _is_purged(self, which: Which) -> bool:
        """Whether all that was said in it was purged, and nothing of it stands there; what was purged of it is told."""
        kept, gone = 0, []
        for line, receipt in self._purged.without(self._lines(self._old, which)):
            kept += not receipt and parse(line) is not None
            gone += [receipt] if receipt else []
        if gone:
            self.left.append(f"{'/'.join(which)}: {len(gone):,} turns were purged: see receipt {gone[0]}")
        return bool(gone) and not kept and next(_lines(_roll(self._new, which)), b"") == b""

    def bring(self) -> None:
        """The lines that are missing, in their order."""
        self._progress.start("copying transcripts", len(self._begun))
        for which, there in self._begun.items():
            transcript_file = _roll(self._new, which)
            lines = self._ours(which)
            for _ in range(there):
                next(lines)
            for batch in _batches(lines):
                transcript_file.append(lambda others, empty: batch)  # noqa: B023
                self.copied += len(batch)
            self._progress.step()
        self._progress.end()

    def verify(self) -> Iterator[str]:
        """Every line again, as it stands there now."""
        self._progress.start("verifying transcripts", len(self._begun))
        for which in self._begun:
            mine, count = _digest(self._ours(which))
            if (mine, count) != _digest(self._lines(self._new, which)):
                yield "/".join(which)
            self.total, self.lines, self.verified = self.total + 1, self.lines + count, self.verified + 1
            self._progress.step()
        self._progress.end()


def _roll(store: Any, which: Which) -> Transcript:
    scope, part, name = which
    transcript_file: Transcript = store.transcript_files(scope).transcript_file(name, part)
    return transcript_file


def _lines(transcript_file: Transcript) -> Iterator[bytes | None]:
    """The lines with their newlines; None for one that is too long. The last may lack it where a person edited the file."""
    end = 0
    for line in transcript_file.read_lines():
        end = line.end
        yield None if not line.data and line.end - line.start > 1 else line.data + b"\n"
    tail = transcript_file.read_unfinished_line(end)
    if tail:
        yield tail + b"\n"


def _batches(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) == _MOST or size > _MOST_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _digest(lines: Iterator[bytes]) -> tuple[str, int]:
    made, count = sha256(), 0
    for line in lines:
        made.update(line)
        count += 1
    return made.hexdigest(), count
