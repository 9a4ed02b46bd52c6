"""What to look for in bytes: every line of what was purged, in every way in which it might be written there. Pure."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST = 12  # characters of a line that make it worth looking for
_PIECE = 24  # a longer line is looked for in pieces: it may be split over pages of a database
_EVERY_WAY = 2000  # pieces that are looked for in every way; what a text has beyond them, as we write it ourselves
_ONE_BY_ONE = 40  # up to so many are looked for one after the other
_SLICE = 64  # bytes of a vector that are looked for together: a longer one may be split over pages too
_WINDOW, _LONG = 8, 15  # bytes: whatever has fifteen holds eight that start at a multiple of eight


class Traces:
    """Pieces of texts, and then of vectors, by numbers."""

    def __init__(self, texts: Iterable[str], vectors: Iterable[bytes] = ()) -> None:
        self.pieces = list(dict.fromkeys([piece for text in texts for piece in pieces(text)]))
        self._numbers: dict[bytes, int] = {}
        for number, piece in enumerate(self.pieces):
            for needle in spellings(piece) if number < _EVERY_WAY else _plain(piece):
                self._numbers.setdefault(needle, number)
        self.vectors = [vector[at : at + _SLICE] for vector in vectors for at in range(0, len(vector) - _SLICE // 2, _SLICE)]
        for number, part in enumerate(self.vectors, len(self.pieces)):
            self._numbers.setdefault(part, number)
        self.overlap = max([len(needle) for needle in self._numbers], default=1) - 1
        self._windows: dict[int, list[bytes]] = {}
        if len(self._numbers) > _ONE_BY_ONE:
            self._cut()

    def _cut(self) -> None:
        """Many are found all at once by eight of their bytes, wherever those may start."""
        for needle in self._numbers:
            for start in range(_WINDOW if len(needle) >= _LONG else 0):
                window = int.from_bytes(needle[start : start + _WINDOW], sys.byteorder)
                self._windows.setdefault(window, []).append(needle)
        self._some = frozenset(self._windows)
        self._short = [needle for needle in self._numbers if len(needle) < _LONG]

    def __len__(self) -> int:
        return len(self._numbers)

    def within(self, data: bytes) -> set[int]:
        """The numbers of those that stand in these bytes."""
        if not self._windows:
            return {number for needle, number in self._numbers.items() if needle in data}
        whole = memoryview(data)[: len(data) // _WINDOW * _WINDOW].cast("Q")
        near = {needle for window in self._some.intersection(whole) for needle in self._windows[window]}
        return {self._numbers[needle] for needle in (*near, *self._short) if needle in data}


def pieces(text: str) -> list[str]:
    """Every line that is long enough, in pieces; the last one reaches back as far as it must."""
    found = []
    for raw in text.split("\n"):
        line = raw.strip()
        if len(line) >= LEAST:
            found += [line[start : start + _PIECE] for start in range(0, len(line), _PIECE)]
            if len(found[-1]) < LEAST:
                found[-1] = line[-_PIECE:]
    return found


def spellings(piece: str) -> list[bytes]:
    """A piece in UTF-8 and UTF-16, in base64 wherever it may start there, in hexadecimal digits, and as JSON spells it."""
    data = piece.encode("utf-8", "surrogatepass")
    wide = [piece.encode(code, "surrogatepass") for code in ("utf-16-le", "utf-16-be")]
    digits = data.hex()
    return [*_plain(piece), *wide, *[_base64(data, shift) for shift in (0, 1, 2)], digits.encode(), digits.upper().encode()]


def _plain(piece: str) -> list[bytes]:
    import json

    data = piece.encode("utf-8", "surrogatepass")
    quoted = json.dumps(piece, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    return list(dict.fromkeys([data, quoted, json.dumps(piece)[1:-1].encode()]))


def _base64(data: bytes, shift: int) -> bytes:
    """The digits that these bytes have wherever they come so many bytes after a multiple of three: what the bytes around
    them have a share in is left off."""
    from base64 import b64encode

    first = -(-8 * shift // 6)
    return b64encode(bytes(shift) + data)[first : (shift + len(data)) * 8 // 6]
