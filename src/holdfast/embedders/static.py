"""The static model: the mean of fixed vectors of word pieces, thousands of texts per second.

`words.npy` has one vector for each piece of the uncased vocabulary. `scripts/build-word-vectors` made them from MiniLM, so that
the mean of a sentence's pieces is close to MiniLM's vector of the sentence. The file is mapped into memory, so processes share
it.
"""

from __future__ import annotations

import sys
import threading

from holdfast.embedders import weights
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.embedders.wordpiece import WordPiece

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.embedders import Vectors

VECTORS = "7b5615c6efe08d707d386a0b780be84332e8010855060328e72e80697c28d68b"
SCALES = "2208cdc9f3965e1d92471b2b9d6d6d273678a32a22c279a9136563ec0c6094c3"
_MAX_CACHED_WORDS = 50_000


class Static:
    """The vectors of word pieces, as bytes with one scale a piece."""

    name = f"static-{VECTORS[:12]}"
    setting = "static"
    dim = 256

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[NDArray[Any], Vectors, WordPiece] | None = None
        self._words: dict[str, Vectors] = {}

    def passages(self, texts: list[str]) -> Vectors:
        """Return one row per text; control tokens have vectors of zeros."""
        import numpy as np

        from holdfast.embedders.vectors import normalise

        vectors, scales, tokenizer = self._load()
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            ids = tokenizer.ids(text, sys.maxsize)
            np.einsum("i,ij->j", scales[ids], vectors[ids], out=row)  # the sum has the direction of the mean
        return normalise(rows)

    questions = passages

    def words(self, words: list[str]) -> Vectors:
        """Return one row per word; rows are cached, because words repeat."""
        import numpy as np

        cached = self._words
        if missing := [word for word in dict.fromkeys(words) if word not in cached]:
            if len(cached) + len(missing) > _MAX_CACHED_WORDS:
                cached = self._words = {word: cached[word] for word in dict.fromkeys(words) if word in cached}
            cached.update(zip(missing, self.passages(missing), strict=True))
        return np.stack([cached[word] for word in words]) if words else np.zeros((0, self.dim), np.float32)

    def _load(self) -> tuple[NDArray[Any], Vectors, WordPiece]:
        if self._loaded is None:
            with NATIVE_LOCK, self._lock:
                if self._loaded is None:
                    self._loaded = _map_array("words.npy", VECTORS), _map_array("words_scale.npy", SCALES), WordPiece.bundled()
        return self._loaded


def _map_array(name: str, sha256: str) -> NDArray[Any]:
    import numpy as np

    path = weights.bundled_path(name)
    weights.check(path, sha256, "holdfast")
    return np.asarray(np.load(path, mmap_mode="r"))
