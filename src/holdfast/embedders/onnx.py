"""An ONNX sentence model in a folder: `model.onnx`, `tokenizer.json` and optional settings in `holdfast.toml`.

The settings of holdfast.toml, all optional: `passage_prefix` and `question_prefix` (for models such as e5), `pooling`
("mean", or "first" for models such as bge), `max_tokens`, and `tokenizer` ("file" for tokenizer.json, or "uncased" for the
bundled vocabulary of bert-base-uncased, which needs no further package). `similarity_low` and `similarity_high` are the cosines
that mean 0 and 1 for the ranking, which was fitted to MiniLM; they do not change vectors.
"""

from __future__ import annotations

import hashlib
import os
import threading

from holdfast.embedders import weights
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.embedders.wordpiece import WordPiece
from holdfast.errors import ConfigError, Damaged, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.embedders import Vectors
    from holdfast.embedders.session import Session

    Settings = dict[str, str | int | float]
    SplitTexts = Callable[[list[str]], list[list[int]]]

PACKAGE = "holdfast[onnx]"
SETTINGS_FILE = "holdfast.toml"
DEFAULTS: Settings = {
    "passage_prefix": "", "question_prefix": "", "pooling": "mean", "max_tokens": 256, "tokenizer": "file",
    "similarity_low": 0.0, "similarity_high": 1.0,
}  # fmt: skip
POOLING = ("mean", "first")
TOKENIZERS = ("file", "uncased")
_SIMILARITY = ("similarity_low", "similarity_high")
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
        self._settings = _load_settings(os.path.join(folder, SETTINGS_FILE))
        self._name = ""
        self._loaded: tuple[Session, SplitTexts] | None = None

    @property
    def name(self) -> str:
        """Return the digest of the files and settings that determine a vector."""
        with NATIVE_LOCK, self._lock:
            if not self._name:
                self._name = self._make_name()
            return self._name

    @property
    def dim(self) -> int:
        """Return the number of dimensions that the model has."""
        return self._load()[0].dim

    @property
    def similarity_range(self) -> tuple[float, float]:
        """Return the cosines that mean 0 and 1 for the ranking."""
        return float(self._settings["similarity_low"]), float(self._settings["similarity_high"])

    def passages(self, texts: list[str]) -> Vectors:
        """Return one row per text that can be found."""
        return self._embed(texts, str(self._settings["passage_prefix"]))

    def questions(self, texts: list[str]) -> Vectors:
        """Return one row per question."""
        return self._embed(texts, str(self._settings["question_prefix"]))

    def _make_name(self) -> str:
        settings = {name: value for name, value in self._settings.items() if name not in _SIMILARITY}
        if settings["tokenizer"] == DEFAULTS["tokenizer"]:
            del settings["tokenizer"]  # names of folders stay as they were before there was a choice
        parts = self._digest_files(), repr(sorted(settings.items()))
        return f"onnx-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:12]}"

    def _digest_files(self) -> str:
        paths = [os.path.join(self._folder, file) for file in FILES]
        return weights.digest(*filter(os.path.isfile, paths))

    def _embed(self, texts: list[str], prefix: str) -> Vectors:
        from holdfast.embedders.vectors import run_in_batches

        session, split_texts = self._load()
        full = [position for position, text in enumerate(texts) if text and not text.isspace()]
        ids: list[list[int]] = [[] for _ in texts]
        for position, tokens in zip(full, split_texts([prefix + texts[position] for position in full]), strict=True):
            ids[position] = tokens
        run = session.first_vectors if self._settings["pooling"] == "first" else session.mean_vectors
        return run_in_batches(ids, 0, session.dim, run)

    def _load(self) -> tuple[Session, SplitTexts]:
        if self._loaded is None:
            with NATIVE_LOCK, self._lock:
                if self._loaded is None:
                    split_texts = self._load_tokenizer(int(self._settings["max_tokens"]))
                    self._loaded = self._load_session(), split_texts
        return self._loaded

    def _load_session(self) -> Session:
        from holdfast.embedders.session import Session

        return Session(os.path.join(self._folder, "model.onnx"), self._threads)

    def _load_tokenizer(self, max_tokens: int) -> SplitTexts:
        """Return the function that turns texts into token ids."""
        if self._settings["tokenizer"] == "uncased":
            pieces = WordPiece.bundled()
            return lambda texts: [pieces.ids(text, max_tokens) for text in texts]
        tokenizer = load_tokenizer(os.path.join(self._folder, "tokenizer.json"), max_tokens)

        def split_texts(texts: list[str]) -> list[list[int]]:
            with NATIVE_LOCK:
                return [encoding.ids for encoding in tokenizer.encode_batch(texts)]

        return split_texts


def load_tokenizer(path: str, max_tokens: int) -> Any:
    """Return the tokenizer of a tokenizer.json, which gives at most this many tokens."""
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


def _load_settings(path: str) -> Settings:
    """Return the defaults, overridden by the settings of the file."""
    return check_settings(read_table(path), path)


def read_table(path: str) -> dict[str, Any]:
    """Return the settings of a holdfast.toml as they are; none if there is no file."""
    if not os.path.isfile(path):
        return {}
    import tomllib

    try:
        return tomllib.loads(weights.read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "Correct the line, or remove the file") from None


def check_settings(table: dict[str, Any], where: str) -> Settings:
    """Return the defaults, overridden by these settings; raise ConfigError if one is invalid."""
    for name, value in table.items():
        kinds = (int, float) if name in _SIMILARITY else (type(DEFAULTS.get(name)),)
        if name not in DEFAULTS or type(value) not in kinds:
            raise ConfigError(f"{where}: {name} = {value!r} is not a valid setting", f"Valid settings: {', '.join(DEFAULTS)}")
    merged = {**DEFAULTS, **table}
    if merged["pooling"] not in POOLING or not 8 <= int(merged["max_tokens"]) <= 8192:
        raise ConfigError(f"{where}: pooling is mean or first, max_tokens 8 to 8192", "Correct the line, or remove it")
    if merged["tokenizer"] not in TOKENIZERS:
        raise ConfigError(f"{where}: tokenizer is file or uncased", "Correct the line, or remove it")
    if not -1 <= float(merged["similarity_low"]) < float(merged["similarity_high"]) <= 2:
        message = f"{where}: similarity_low must be below similarity_high, both from -1 to 2"
        raise ConfigError(message, "Correct the lines, or remove them")
    return merged
