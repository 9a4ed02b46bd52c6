"""Read another program's transcript in bounded memory: JSON lines, or one JSON document."""

from __future__ import annotations

import json
import os
import stat
from codecs import getincrementaldecoder
from itertools import islice

from holdfast.base.record import Record
from holdfast.errors import NotFound, Refused, TooLarge, UsageError
from holdfast.models import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self

MAX_ITEM_BYTES = 16 * 1024 * 1024  # of a line or a message; a longer line is skipped, a document with a longer message rejected
_CHUNK = 256 * 1024
_DETECT_LINES = 20  # read to tell JSON lines from a document
_SPACE = " \t\r\n\ufeff"
_STREAMED_LISTS = ("messages", "history")  # of a document: read item by item, whatever their length
_FIX = "Give the path of a transcript: JSON lines, or one JSON document"


class SourceRow(Record):
    """An object of a transcript, with its line number or its position in the list."""

    number: int
    value: Any


class TranscriptSource:
    """An open transcript of another program; use it in a `with`.

    `broken` counts the items that could not be read. `fd` is the open file of an upload, which has no path.
    """

    def __init__(self, path: str, fd: int | None = None) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self.stem = self.name.rsplit(".", 1)[0] or self.name
        self.broken = 0
        self.progress = Progress()
        self._fd = _open_file(path) if fd is None else fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._fd)

    @property
    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read_rows(self) -> Iterator[SourceRow]:
        """Yield every object from the start of the file, in either form."""
        self._rewind()
        lines = self._has_json_lines()
        self._rewind()
        return self._read_line_rows() if lines else self._read_document_rows()

    def _rewind(self) -> None:
        os.lseek(self._fd, 0, os.SEEK_SET)
        self.broken = 0

    def _has_json_lines(self) -> bool:
        """Return whether one of the first lines is a complete object and the first does not open a document."""
        first = True
        for line in islice(self._read_lines(), _DETECT_LINES):
            if first and line is not None and line.strip():
                first = False
                if line.rstrip().endswith((b"{", b"[", b",")):
                    return False
            if line is not None and isinstance(_loads(line), dict):
                return True
        return False

    def _read_line_rows(self) -> Iterator[SourceRow]:
        for number, line in enumerate(self._read_lines(), 1):
            value = _loads(line) if line is not None else None
            if isinstance(value, dict):
                yield SourceRow(number, value)
            elif line is None or line.strip():
                self.broken += 1

    def _read_lines(self) -> Iterator[bytes | None]:
        """Yield each line; None for a line that is too long."""
        buffer, skipping = b"", False
        while chunk := self.read_chunk():
            *complete_lines, rest = chunk.split(b"\n")
            for piece in complete_lines:
                yield None if skipping or len(buffer) + len(piece) > MAX_ITEM_BYTES else buffer + piece
                buffer, skipping = b"", False
            skipping = skipping or len(buffer) + len(rest) > MAX_ITEM_BYTES
            buffer = b"" if skipping else buffer + rest
        if buffer or skipping:
            yield None if skipping else buffer

    def _read_document_rows(self) -> Iterator[SourceRow]:
        """Yield the objects of a list, or of the list in an object; the object's other fields come first, as row 0."""
        document = _DocumentReader(self)
        opening = document.peek()
        if opening == "[":
            yield from document.read_items()
            return
        if opening != "{":
            raise Refused(f"{self.name} is neither lines of JSON nor a JSON document", _FIX)
        document.skip(1)
        fields: dict[str, Any] = {}
        while document.peek() == '"':
            name = document.read_value()
            document.expect(":")
            if name in _STREAMED_LISTS and document.peek() == "[":
                yield SourceRow(0, fields)
                yield from document.read_items()
            else:
                fields[str(name)] = document.read_value()
            if document.peek() == ",":
                document.skip(1)
        document.expect("}")

    def read_chunk(self) -> bytes:
        chunk = os.read(self._fd, _CHUNK)
        self.progress.step(len(chunk))
        return chunk


class _DocumentReader:
    """Parse a document value by value, over a window of text that moves with the position.

    The standard library's decoder parses each value. A streaming parser was not faster and rejected more files: ADR 0033.
    """

    def __init__(self, source: TranscriptSource) -> None:
        self._source = source
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._decode_json = json.JSONDecoder().raw_decode
        self._window, self._position, self._ended = "", 0, False

    def peek(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        while True:
            while self._position < len(self._window) and self._window[self._position] in _SPACE:
                self._position += 1
            if self._position < len(self._window) or not self._read_more():
                return self._window[self._position : self._position + 1]

    def skip(self, count: int) -> None:
        self._position += count

    def expect(self, char: str) -> None:
        if self.peek() != char:
            raise self._broken_error()
        self._position += 1

    def read_value(self) -> Any:
        """Parse the next value, however many chunks it spans."""
        self.peek()
        wanted = 0
        while True:
            if len(self._window) - self._position >= wanted or self._ended:
                try:
                    value, end = self._decode_json(self._window, self._position)
                    if end < len(self._window) or self._ended:  # else a number might go on
                        self._position = end
                        return value
                except (ValueError, RecursionError) as error:
                    if self._ended or isinstance(error, RecursionError):
                        raise self._broken_error() from None
                wanted = 2 * (len(self._window) - self._position)
            if len(self._window) - self._position > MAX_ITEM_BYTES:
                problem = f"a message with more than {MAX_ITEM_BYTES:,} characters, or a document that is broken"
                fix = "The part before it was imported. Split or repair the file and run it again"
                raise TooLarge(f"{self._source.name}: {problem}", fix)
            self._read_more()

    def read_items(self) -> Iterator[SourceRow]:
        """Yield the objects of the list that starts here."""
        self.expect("[")
        number = 0
        while self.peek() not in ("]", ""):
            number += 1
            value = self.read_value()
            if isinstance(value, dict):
                yield SourceRow(number, value)
            else:
                self._source.broken += 1
            if self.peek() == ",":
                self._position += 1
        self.expect("]")

    def _read_more(self) -> bool:
        chunk = self._source.read_chunk()
        self._ended = not chunk
        self._window = self._window[self._position :] + self._decoder.decode(chunk, self._ended)
        self._position = 0
        return not self._ended

    def _broken_error(self) -> Refused:
        return Refused(
            f"{self._source.name} is a broken JSON document",
            "The part before the error was imported. Repair the file and run it again",
        )


def _loads(line: bytes) -> Any:
    """Parse a line, also if some of its bytes are not UTF-8; None if it is not JSON."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _open_file(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, ValueError):  # no file can have a name with a NUL in it
        raise NotFound(f"no file {path}", _FIX) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}", _FIX) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UsageError(f"{path} is not a file", _FIX)
    return fd
