"""The embedding every peer gets at scale: a fixed random vector a word, added up. It costs next to nothing: in their favour."""

from __future__ import annotations

import zlib
from typing import Any

DIM = 384
_words: dict[str, Any] = {}


def embed(texts: list[str]) -> Any:
    """A normalised vector a text."""
    import numpy as np

    vectors = np.zeros((len(texts), DIM), np.float32)
    for number, text in enumerate(texts):
        vectors[number] = np.sum([_word(word) for word in text.lower().split()] or [_word("")], axis=0)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def _word(word: str) -> Any:
    import numpy as np

    if word not in _words:
        seed = zlib.crc32(word.encode("utf-8"))  # Python's own hash differs from process to process
        _words[word] = np.random.default_rng(seed).standard_normal(DIM, dtype=np.float32)
    return _words[word]
