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

MAX_ITEM_BYTES = 16 * 1024 * 1024  # of a line or a message: a longer line is skipped, a document with one is rejected
_CHUNK = 256 * 1024
_DETECT_LINES = 20  # that are read to tell JSON lines from a document
_SPACE = " \t\r\n\ufeff"
_STREAMED_LISTS = ("messages", "history")  # of a document: read item by item, whatever their length
_FIX = "Give the path of a transcript: JSON lines, or one JSON document"


class Row(Record):
    """An object of a transcript, with the number of its line or of its position in the list."""

    number: int
    value: Any


class Source:
    """An open transcript; use it in a `with`. `broken` counts the items that could not be read. `fd` is the open file of an
    upload, which has no path."""

    def __init__(self, path: str, fd: int | None = None) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self.stem = self.name.rsplit(".", 1)[0] or self.name
        self.broken = 0
        self.progress = Progress()
        self._fd = _opened(path) if fd is None else fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._fd)

    @property
    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def rows(self) -> Iterator[Row]:
        """Yield every object from the start of the file, in either form."""
        self._rewind()
        lines = self._is_lines()
        self._rewind()
        return self._line_rows() if lines else self._document_rows()

    def _rewind(self) -> None:
        os.lseek(self._fd, 0, os.SEEK_SET)
        self.broken = 0

    def _is_lines(self) -> bool:
        """Return whether one of the first lines is a complete object and the first does not open a document."""
        first = True
        for line in islice(self._lines(), _DETECT_LINES):
            if first and line is not None and line.strip():
                first = False
                if line.rstrip().endswith((b"{", b"[", b",")):
                    return False
            if line is not None and isinstance(_loads(line), dict):
                return True
        return False

    def _line_rows(self) -> Iterator[Row]:
        for number, line in enumerate(self._lines(), 1):
            value = _loads(line) if line is not None else None
            if isinstance(value, dict):
                yield Row(number, value)
            elif line is None or line.strip():
                self.broken += 1

    def _lines(self) -> Iterator[bytes | None]:
        """Yield each line; None for a line that is too long."""
        held, skipping = b"", False
        while chunk := self._chunk():
            *whole, rest = chunk.split(b"\n")
            for piece in whole:
                yield None if skipping or len(held) + len(piece) > MAX_ITEM_BYTES else held + piece
                held, skipping = b"", False
            skipping = skipping or len(held) + len(rest) > MAX_ITEM_BYTES
            held = b"" if skipping else held + rest
        if held or skipping:
            yield None if skipping else held

    def _document_rows(self) -> Iterator[Row]:
        """Yield the objects of a list, or of the list in an object; the object's other fields come first, as row 0."""
        text = _DocumentReader(self)
        opening = text.peek()
        if opening == "[":
            yield from text.items()
            return
        if opening != "{":
            raise Refused(f"{self.name} is neither lines of JSON nor a JSON document", _FIX)
        text.skip(1)
        fields: dict[str, Any] = {}
        while text.peek() == '"':
            name = text.value()
            text.expect(":")
            if name in _STREAMED_LISTS and text.peek() == "[":
                yield Row(0, fields)
                yield from text.items()
            else:
                fields[str(name)] = text.value()
            if text.peek() == ",":
                text.skip(1)
        text.expect("}")

    def _chunk(self) -> bytes:
        chunk = os.read(self._fd, _CHUNK)
        self.progress.step(len(chunk))
        return chunk


class _DocumentReader:
    """Parse a document value by value, over a window of text that moves with the position.

    The standard library's decoder parses each value. A streaming parser was not faster and rejected more files: ADR 0033.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decode = getincrementaldecoder("utf-8")("replace")
        self._scan = json.JSONDecoder().raw_decode
        self._window, self._at, self._ended = "", 0, False

    def peek(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        while True:
            while self._at < len(self._window) and self._window[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._window) or not self._more():
                return self._window[self._at : self._at + 1]

    def skip(self, count: int) -> None:
        self._at += count

    def expect(self, char: str) -> None:
        if self.peek() != char:
            raise self._broken()
        self._at += 1

    def value(self) -> Any:
        """Parse the next value, however many chunks it spans."""
        self.peek()
        wanted = 0
        while True:
            if len(self._window) - self._at >= wanted or self._ended:
                try:
                    value, end = self._scan(self._window, self._at)
                    if end < len(self._window) or self._ended:  # else a number might go on
                        self._at = end
                        return value
                except (ValueError, RecursionError) as error:
                    if self._ended or isinstance(error, RecursionError):
                        raise self._broken() from None
                wanted = 2 * (len(self._window) - self._at)
            if len(self._window) - self._at > MAX_ITEM_BYTES:
                problem = f"a message with more than {MAX_ITEM_BYTES:,} characters, or a document that is broken"
                fix = "What stands before it has been kept; split the file or repair it"
                raise TooLarge(f"{self._source.name}: {problem}", fix)
            self._more()

    def items(self) -> Iterator[Row]:
        """Yield the objects of the list that starts here."""
        self.expect("[")
        number = 0
        while self.peek() not in ("]", ""):
            number += 1
            value = self.value()
            if isinstance(value, dict):
                yield Row(number, value)
            else:
                self._source.broken += 1
            if self.peek() == ",":
                self._at += 1
        self.expect("]")

    def _more(self) -> bool:
        chunk = self._source._chunk()
        self._ended = not chunk
        self._window = self._window[self._at :] + self._decode.decode(chunk, self._ended)
        self._at = 0
        return not self._ended

    def _broken(self) -> Refused:
        return Refused(f"{self._source.name} is a broken JSON document", "What could be read has been kept; repair the file")


def _loads(line: bytes) -> Any:
    """Parse a line, also if some of its bytes are not UTF-8; None if it is not JSON."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _opened(path: str) -> int:
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
