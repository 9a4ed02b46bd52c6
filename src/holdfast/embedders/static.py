"""The static model: the mean of fixed token vectors, thousands of texts per second.

Its tokenizer is SentencePiece BPE with byte fallback. No token of such a vocabulary crosses the end of a word, so each word is
split on its own and cached, which is faster than splitting whole texts.
"""

from __future__ import annotations

import json
import re
import threading
from itertools import pairwise

from holdfast.embedders import weights
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.errors import Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders import Vectors

PACKAGE = "wordllama==0.4.0.post1"
TABLE = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENS = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
_MAX_CACHED_WORDS = 50_000
_SPACE = "▁"
_MAX_CACHED_SPLITS = 200_000
_MAX_WORD_CHARS = 512  # merging takes time quadratic in the length; longer words are split here
_NO_MERGE = 1 << 30

_WORD = re.compile(f"{_SPACE}*[^{_SPACE}]{{1,{_MAX_WORD_CHARS}}}|{_SPACE}+")


class Static:
    """Token vectors of wordllama's l2_supercat, read from its files without importing the package."""

    name = f"static-{TABLE[:12]}"
    setting = "static"
    dim = 256

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Vectors, _BytePairs] | None = None
        self._words: dict[str, Vectors] = {}

    def passages(self, texts: list[str]) -> Vectors:
        """Return one row per text."""
        import numpy as np

        from holdfast.embedders.vectors import normalise

        table, tokens = self._load()
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text and not text.isspace():
                row[:] = table[tokens.ids(text)].sum(axis=0)  # the sum has the direction of the mean
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

    def _load(self) -> tuple[Vectors, _BytePairs]:
        if self._loaded is None:
            with NATIVE_LOCK, self._lock:
                if self._loaded is None:
                    self._loaded = _load_table(), _load_tokenizer()
        return self._loaded


def _load_table() -> Vectors:
    """Return the only array of the safetensors file: eight bytes of length, a JSON header, the numbers."""
    import numpy as np

    path = weights.package_path("wordllama", PACKAGE, "weights", "l2_supercat_256.safetensors")
    data = weights.read(path, TABLE, PACKAGE)
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    array = next(value for name, value in header.items() if name != "__metadata__")
    if array["dtype"] != "F16" or array["shape"][1] != Static.dim:
        raise Damaged(f"{path} does not hold the array that was expected", weights.install_hint(PACKAGE))
    start, end = array["data_offsets"]
    numbers = np.frombuffer(data, np.float16, (end - start) // 2, 8 + size + start)
    return numbers.reshape(array["shape"]).astype(np.float32)


def _load_tokenizer() -> _BytePairs:
    path = weights.package_path("wordllama", PACKAGE, "tokenizers", "l2_supercat_tokenizer_config.json")
    model = json.loads(weights.read(path, TOKENS, PACKAGE))["model"]
    return _BytePairs(model["vocab"], model["merges"])


class _BytePairs:
    """Byte-pair encoding: repeatedly merge the neighbours that come first in the list of merges."""

    def __init__(self, vocabulary: dict[str, int], merges: list[str]) -> None:
        self._vocabulary = vocabulary
        self._ranks = {merge: rank for rank, merge in enumerate(merges)}  # "left right", as in the file
        self._bytes = [vocabulary[f"<0x{byte:02X}>"] for byte in range(256)]
        self._words: dict[str, tuple[int, ...]] = {}

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        words, ids = self._words, list[int]()
        for word in _WORD.findall(_SPACE + text.replace(" ", _SPACE)) if text else ():
            cached = words.get(word)
            ids += self._split_new_word(word) if cached is None else cached
        return ids

    def _split_new_word(self, word: str) -> tuple[int, ...]:
        if len(self._words) >= _MAX_CACHED_SPLITS:
            self._words.clear()
        ids = self._words[word] = self._split_word(word)
        return ids

    def _split_word(self, word: str) -> tuple[int, ...]:
        parts = list(word)
        ranks = [self._rank(*pair) for pair in pairwise(parts)]
        while ranks and (best := min(ranks)) < _NO_MERGE:
            left = ranks.index(best)
            parts[left : left + 2] = [parts[left] + parts[left + 1]]
            del ranks[left]
            if left > 0:
                ranks[left - 1] = self._rank(parts[left - 1], parts[left])
            if left < len(ranks):
                ranks[left] = self._rank(parts[left], parts[left + 1])
        return tuple(number for part in parts for number in self._token_ids(part))

    def _rank(self, left: str, right: str) -> int:
        return self._ranks.get(f"{left} {right}", _NO_MERGE)

    def _token_ids(self, part: str) -> list[int]:
        number = self._vocabulary.get(part)
        return [number] if number is not None else [self._bytes[byte] for byte in part.encode("utf-8", "replace")]
