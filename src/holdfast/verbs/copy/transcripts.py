"""Copy transcripts line by line, also those in the trash."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from holdfast.formats.transcript import parse_line
from holdfast.store.layout import TRANSCRIPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.models import Progress
    from holdfast.store.interface import Transcript
    from holdfast.verbs.copy.endpoints import Endpoint
    from holdfast.verbs.copy.purged import PurgedContent

_BATCH, _BATCH_BYTES = 2000, 8 * 1024 * 1024  # lines added with one flush


class _TranscriptRef(NamedTuple):
    scope: str
    part: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.scope}/{self.part}/{self.name}"


class TranscriptsCopy:
    """Copies the transcripts of every scope."""

    def __init__(self, old: Endpoint, new: Endpoint, progress: Progress, purged: PurgedContent) -> None:
        self._old, self._new, self._progress, self._purged = old.store, new.store, progress, purged
        self._existing: dict[_TranscriptRef, int] = {}  # how many lines of each the target has already
        self.left: list[str] = []
        self.total = self.lines = self.copied = self.verified = 0

    def find_conflicts(self) -> Iterator[str]:
        """Yield the transcripts whose lines in the target are not the first lines of the source's."""
        for ref in self._list_transcripts():
            if self._purged and self._is_purged(ref):
                continue
            ours, existing = self._lines_to_copy(ref), 0
            for line in _read_all_lines(_open_transcript(self._new, ref)):
                if next(ours, None) != line:
                    yield ref.path
                    break
                existing += 1
            self._existing[ref] = existing

    def _list_transcripts(self) -> Iterator[_TranscriptRef]:
        for scope in self._old.list_scopes():
            transcript_files = self._old.transcripts(scope)
            yield from [_TranscriptRef(scope, TRANSCRIPTS, entry.name) for entry in transcript_files.entries() if entry.regular]
            yield from [_TranscriptRef(scope, "trash", trashed.name) for trashed in transcript_files.list_trashed()]

    def _read_lines(self, store: Any, ref: _TranscriptRef) -> Iterator[bytes]:
        """Yield the lines of a transcript up to the first that is too long to be read; report that one."""
        for line in _read_all_lines(_open_transcript(store, ref)):
            if line is None:
                what = f"{ref.path}: a line is too long to read"
                self.left += [] if what in self.left else [what]
                return
            yield line

    def _lines_to_copy(self, ref: _TranscriptRef) -> Iterator[bytes]:
        """Return the lines that the target must have in the end: every line, purged turns replaced."""
        lines = self._read_lines(self._old, ref)
        return (line for line, _ in self._purged.replace_turns(lines)) if self._purged else lines

    def _is_purged(self, ref: _TranscriptRef) -> bool:
        """Return whether all turns were purged and the target has none of them; report how many turns were purged."""
        kept, receipts = 0, []
        for line, receipt in self._purged.replace_turns(self._read_lines(self._old, ref)):
            if receipt:
                receipts.append(receipt)
            else:
                kept += parse_line(line) is not None
        if receipts:
            self.left.append(f"{ref.path}: {len(receipts):,} turns were purged: see receipt {receipts[0]}")
        is_missing = next(_read_all_lines(_open_transcript(self._new, ref)), b"") == b""
        return bool(receipts) and not kept and is_missing

    def copy_missing(self) -> None:
        """Append the lines that are missing, in their order."""
        self._progress.start("copying transcripts", len(self._existing))
        for ref, existing in self._existing.items():
            transcript_file = _open_transcript(self._new, ref)
            lines = self._lines_to_copy(ref)
            for _ in range(existing):
                next(lines)
            for batch in _batch_lines(lines):
                transcript_file.append(lambda others, empty: batch)  # noqa: B023
                self.copied += len(batch)
            self._progress.step()
        self._progress.end()

    def find_differences(self) -> Iterator[str]:
        """Yield the transcripts whose lines in the target are not those of the source."""
        self._progress.start("verifying transcripts", len(self._existing))
        for ref in self._existing:
            digest, count = _digest_lines(self._lines_to_copy(ref))
            if (digest, count) != _digest_lines(self._read_lines(self._new, ref)):
                yield ref.path
            self.total += 1
            self.lines += count
            self.verified += 1
            self._progress.step()
        self._progress.end()


def _open_transcript(store: Any, ref: _TranscriptRef) -> Transcript:
    transcript_file: Transcript = store.transcripts(ref.scope).open(ref.name, ref.part)
    return transcript_file


def _read_all_lines(transcript_file: Transcript) -> Iterator[bytes | None]:
    """Yield the lines with their newlines, None for one that is too long. A last line without a newline gets one."""
    end = 0
    for line in transcript_file.read_lines():
        end = line.end
        yield None if not line.data and line.end - line.start > 1 else line.data + b"\n"
    tail = transcript_file.read_unfinished_line(end)
    if tail:
        yield tail + b"\n"


def _batch_lines(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) == _BATCH or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _digest_lines(lines: Iterator[bytes]) -> tuple[str, int]:
    digest, count = sha256(), 0
    for line in lines:
        digest.update(line)
        count += 1
    return digest.hexdigest(), count
