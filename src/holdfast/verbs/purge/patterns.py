"""Byte patterns of a purged text: every line of it, in every encoding in which a file may contain it."""

from __future__ import annotations

import json
import sys
from base64 import b64encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_LINE = 12  # characters of a line that make it worth searching for
_PIECE = 24  # characters: longer lines are searched for in pieces, since a database may split them over pages
_FULLY_ENCODED = 2000  # pieces that are searched for in every encoding; further ones only as we write them ourselves
_ONE_BY_ONE = 40  # patterns up to which each is searched for separately
_VECTOR_SLICE = 64  # bytes: longer vectors may be split over pages too
_WINDOW, _LONG = 8, 15  # bytes: any 15 bytes contain 8 that start at a multiple of 8


class Patterns:
    """Numbered pieces of texts, followed by slices of vectors."""

    def __init__(self, texts: Iterable[str], vectors: Iterable[bytes] = ()) -> None:
        self.pieces = list(dict.fromkeys([piece for text in texts for piece in split_into_pieces(text)]))
        self._numbers: dict[bytes, int] = {}
        for number, piece in enumerate(self.pieces):
            for needle in encode_all_ways(piece) if number < _FULLY_ENCODED else _encode_plainly(piece):
                self._numbers.setdefault(needle, number)
        self.vectors = [
            vector[start : start + _VECTOR_SLICE]
            for vector in vectors
            for start in range(0, len(vector) - _VECTOR_SLICE // 2, _VECTOR_SLICE)
        ]
        for number, part in enumerate(self.vectors, len(self.pieces)):
            self._numbers.setdefault(part, number)
        self.overlap = max([len(needle) for needle in self._numbers], default=1) - 1
        self._by_window: dict[int, list[bytes]] = {}
        self._short: list[bytes] = []
        if len(self._numbers) > _ONE_BY_ONE:
            self._index_windows()
        self._windows = frozenset(self._by_window)

    def _index_windows(self) -> None:
        """Index the needles by 8-byte windows: with thousands of needles, one pass over the data finds the candidates."""
        for needle in self._numbers:
            for start in range(_WINDOW if len(needle) >= _LONG else 0):
                window = int.from_bytes(needle[start : start + _WINDOW], sys.byteorder)
                self._by_window.setdefault(window, []).append(needle)
        self._short = [needle for needle in self._numbers if len(needle) < _LONG]

    def __len__(self) -> int:
        return len(self._numbers)

    def find_in(self, data: bytes) -> set[int]:
        """Return the numbers of the pieces and vector slices that occur in these bytes."""
        if not self._by_window:
            return {number for needle, number in self._numbers.items() if needle in data}
        windows = memoryview(data)[: len(data) // _WINDOW * _WINDOW].cast("Q")
        candidates = {needle for window in self._windows.intersection(windows) for needle in self._by_window[window]}
        return {self._numbers[needle] for needle in (*candidates, *self._short) if needle in data}


def split_into_pieces(text: str) -> list[str]:
    """Return every line of at least MIN_LINE characters in pieces; a short last piece overlaps the previous one."""
    found = []
    for raw in text.split("\n"):
        line = raw.strip()
        if len(line) >= MIN_LINE:
            found += [line[start : start + _PIECE] for start in range(0, len(line), _PIECE)]
            if len(found[-1]) < MIN_LINE:
                found[-1] = line[-_PIECE:]
    return found


def encode_all_ways(piece: str) -> list[bytes]:
    """Return a piece in UTF-8, UTF-16, JSON, hexadecimal, and base64 at each of the three alignments."""
    data = piece.encode("utf-8", "surrogatepass")
    wide = [piece.encode(encoding, "surrogatepass") for encoding in ("utf-16-le", "utf-16-be")]
    digits = data.hex()
    base64 = [_encode_base64(data, shift) for shift in (0, 1, 2)]
    return [*_encode_plainly(piece), *wide, *base64, digits.encode(), digits.upper().encode()]


def _encode_plainly(piece: str) -> list[bytes]:
    data = piece.encode("utf-8", "surrogatepass")
    quoted = json.dumps(piece, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    return list(dict.fromkeys([data, quoted, json.dumps(piece)[1:-1].encode()]))


def _encode_base64(data: bytes, shift: int) -> bytes:
    """Return the base64 digits that depend on these bytes alone when they start `shift` bytes after a multiple of three."""
    first = -(-8 * shift // 6)
    return b64encode(bytes(shift) + data)[first : (shift + len(data)) * 8 // 6]
