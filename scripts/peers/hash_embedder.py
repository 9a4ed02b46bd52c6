"""The embedder of all peers at scale: the sum of a fixed random vector per word. It costs almost nothing, in their favour."""

from __future__ import annotations

import zlib
from typing import Any

DIMENSIONS = 384
_word_vectors: dict[str, Any] = {}


def embed(texts: list[str]) -> Any:
    """Return a normalised vector per text."""
    import numpy as np

    vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
    for number, text in enumerate(texts):
        vectors[number] = np.sum([_embed_word(word) for word in text.lower().split()] or [_embed_word("")], axis=0)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def _embed_word(word: str) -> Any:
    import numpy as np

    if word not in _word_vectors:
        seed = zlib.crc32(word.encode("utf-8"))  # Python's own hash differs from process to process
        _word_vectors[word] = np.random.default_rng(seed).standard_normal(DIMENSIONS, dtype=np.float32)
    return _word_vectors[word]
