"""An ONNX sentence model in a folder: `model.onnx`, `tokenizer.json` and optional settings in `holdfast.toml`.

The settings of holdfast.toml, all optional: `passage_prefix` and `question_prefix` (for models such as e5), `pooling`
("mean", or "first" for models such as bge) and `max_tokens`.
"""

from __future__ import annotations

import hashlib
import os
import threading

from holdfast.embedders import weights
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.errors import ConfigError, Damaged, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.embedders import Vectors
    from holdfast.embedders.session import Session

PACKAGE = "holdfast[onnx]"
DEFAULTS: dict[str, str | int] = {"passage_prefix": "", "question_prefix": "", "pooling": "mean", "max_tokens": 256}
POOLING = ("mean", "first")
FILES = ("model.onnx", "model.onnx_data", "model.onnx.data", "tokenizer.json")


class OnnxFolder:
    """A model in a user's folder; its name has the digest of its files, so that a changed model is a different one."""

    def __init__(self, folder: str, threads: int = 1) -> None:
        if not os.path.isabs(folder) or not os.path.isfile(os.path.join(folder, "model.onnx")):
            raise ConfigError(f"there is no model.onnx in the folder {folder!r}", "Set onnx: and the full path of a folder")
        self.setting = f"onnx:{folder}"
        self._folder = folder
        self._threads = threads
        self._lock = threading.RLock()
        self._settings = _load_settings(os.path.join(folder, "holdfast.toml"))
        self._name = ""
        self._loaded: tuple[Session, Any] | None = None

    @property
    def name(self) -> str:
        """Return the digest of the files and settings that determine a vector."""
        with NATIVE_LOCK, self._lock:
            if not self._name:
                paths = [os.path.join(self._folder, file) for file in FILES]
                parts = weights.digest(*filter(os.path.isfile, paths)), repr(sorted(self._settings.items()))
                self._name = f"onnx-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:12]}"
            return self._name

    @property
    def dim(self) -> int:
        """Return the number of dimensions that the model has."""
        return self._load()[0].dim

    def passages(self, texts: list[str]) -> Vectors:
        """Return one row per text that can be found."""
        return self._embed(texts, str(self._settings["passage_prefix"]))

    def questions(self, texts: list[str]) -> Vectors:
        """Return one row per question."""
        return self._embed(texts, str(self._settings["question_prefix"]))

    def _embed(self, texts: list[str], prefix: str) -> Vectors:
        from holdfast.embedders.vectors import run_in_batches

        session, tokenizer = self._load()
        with NATIVE_LOCK:
            encodings = tokenizer.encode_batch([prefix + text for text in texts])
        ids = [encoding.ids if text and not text.isspace() else [] for encoding, text in zip(encodings, texts, strict=True)]
        run = session.first_vectors if self._settings["pooling"] == "first" else session.mean_vectors
        return run_in_batches(ids, 0, session.dim, run)

    def _load(self) -> tuple[Session, Any]:
        if self._loaded is None:
            with NATIVE_LOCK, self._lock:
                if self._loaded is None:
                    from holdfast.embedders.session import Session

                    tokenizer = _load_tokenizer(os.path.join(self._folder, "tokenizer.json"), int(self._settings["max_tokens"]))
                    self._loaded = Session(os.path.join(self._folder, "model.onnx"), self._threads), tokenizer
        return self._loaded


def _load_tokenizer(path: str, max_tokens: int) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise Trouble("the package tokenizers is not installed", weights.install_hint(PACKAGE)) from None
    text = weights.read_text(path)
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:
        raise Damaged(f"{path} is not a tokenizer: {error}", "Put the model's own tokenizer.json there") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _load_settings(path: str) -> dict[str, str | int]:
    """Return the defaults, overridden by the settings of the file."""
    if not os.path.isfile(path):
        return DEFAULTS
    import tomllib

    try:
        table = tomllib.loads(weights.read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "Correct the line, or remove the file") from None
    for name, value in table.items():
        if name not in DEFAULTS or type(value) is not type(DEFAULTS[name]):
            raise ConfigError(f"{path}: {name} = {value!r} is not a valid setting", f"Valid settings: {', '.join(DEFAULTS)}")
    merged = {**DEFAULTS, **table}
    if merged["pooling"] not in POOLING or not 8 <= int(merged["max_tokens"]) <= 8192:
        raise ConfigError(f"{path}: pooling is mean or first, max_tokens 8 to 8192", "Correct the line, or remove it")
    return merged
