"""The static model: the mean of fixed token vectors. Thousands of texts a second, and a vector for each word."""

from __future__ import annotations

import json
import threading

from holdfast.embedders import weights
from holdfast.embedders.native_lock import GATE
from holdfast.errors import Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders import Vectors
    from holdfast.embedders.bpe import BytePairs

PACKAGE = "wordllama==0.4.0.post1"
TABLE = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENS = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
MOST_WORDS_KEPT = 50_000


class Static:
    """The token vectors of wordllama's l2_supercat, read from its files; the package itself is never imported."""

    name = f"static-{TABLE[:12]}"
    setting = "static"
    dim = 256

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Vectors, BytePairs] | None = None
        self._words: dict[str, Vectors] = {}

    def passages(self, texts: list[str]) -> Vectors:
        """One row a text."""
        import numpy as np

        from holdfast.embedders.vectors import normalised

        table, tokens = self._load()
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text and not text.isspace():
                row[:] = table[tokens.ids(text)].sum(axis=0)  # as the mean, but for the length; faster than np.add.reduceat
        return normalised(rows)

    questions = passages

    def words(self, words: list[str]) -> Vectors:
        """One row a word; words come again and again, so they are remembered."""
        import numpy as np

        known = self._words
        if fresh := [word for word in dict.fromkeys(words) if word not in known]:
            if len(known) + len(fresh) > MOST_WORDS_KEPT:
                known = self._words = {word: known[word] for word in dict.fromkeys(words) if word in known}
            known.update(zip(fresh, self.passages(fresh), strict=True))
        return np.stack([known[word] for word in words]) if words else np.zeros((0, self.dim), np.float32)

    def _load(self) -> tuple[Vectors, BytePairs]:
        if self._loaded is None:
            with GATE, self._lock:
                if self._loaded is None:
                    self._loaded = _table(), _tokens()
        return self._loaded


def _table() -> Vectors:
    """The one array of the safetensors file: eight bytes of length, a header in JSON, the numbers."""
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


def _tokens() -> BytePairs:
    from holdfast.embedders.bpe import BytePairs

    path = weights.package_path("wordllama", PACKAGE, "tokenizers", "l2_supercat_tokenizer_config.json")
    model = json.loads(weights.read(path, TOKENS, PACKAGE))["model"]
    return BytePairs(model["vocab"], model["merges"])
