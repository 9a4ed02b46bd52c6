"""Vectors for more passages than models embed in reasonable time: those of other passages, slightly changed.

The bundled models embed the first texts themselves. All other texts get copies of these vectors with some noise, as long and as
many as the models would return. A search therefore does the same work as with real vectors; only what it finds by similarity
means nothing. Questions are always embedded by the models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from holdfast import embedders

EMBEDDED = 5_000  # texts that each model embeds itself
_NOISE = 0.3  # length of the noise; the similarity of a copy to its source is about 0.96

Embed = Callable[[list[str]], Any]


class _Reused:
    """The vectors of one model."""

    def __init__(self, embed: Embed, dim: int, limit: int) -> None:
        self._embed = embed
        self._positions: dict[str, int] = {}  # of the texts that were embedded
        self._rows = np.zeros((limit, dim), np.float32)
        self._random = np.random.default_rng(dim)

    def passages(self, texts: list[str]) -> Any:
        """Return a vector for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._positions]
        first = len(self._positions)
        embedded = new[: len(self._rows) - first]
        if embedded:
            self._rows[first : first + len(embedded)] = self._embed(embedded)
            self._positions.update(zip(embedded, range(first, first + len(embedded)), strict=True))
        positions = np.array([self._positions.get(text, -1) for text in texts], np.int64)
        copies = np.flatnonzero(positions < 0)
        positions[copies] = self._random.integers(len(self._positions), size=len(copies))
        rows = self._rows[positions]
        noise = self._random.standard_normal((len(copies), rows.shape[1]), np.float32)
        rows[copies] += noise * (_NOISE / rows.shape[1] ** 0.5)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@contextmanager
def reuse_vectors(limit: int = EMBEDDED) -> Iterator[None]:
    """Let the models of the default setting embed this many texts themselves, within this block."""
    models = [vars(model) for model in embedders.open_for_search("default", None)]
    for model, attributes in zip(embedders.open_for_search("default", None), models, strict=True):
        attributes["passages"] = _Reused(model.passages, model.dim, limit).passages
    try:
        yield
    finally:
        for attributes in models:
            del attributes["passages"]
