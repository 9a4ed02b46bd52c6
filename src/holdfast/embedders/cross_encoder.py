"""A reranker in a folder: a cross-encoder as `model.onnx`, `tokenizer.json` and optional settings in `holdfast.toml`.

The settings of holdfast.toml, both optional: `tokenizer` ("file" for tokenizer.json, or "uncased" for the bundled vocabulary of
bert-base-uncased, which needs no further package) and `languages` ("all", or "english" for a model that knows no other).
"""

from __future__ import annotations

import math
import os
import threading

from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.embedders.onnx import SETTINGS_FILE, TOKENIZERS, load_tokenizer, read_table
from holdfast.embedders.rerankers import logit_to_relevance
from holdfast.embedders.wordpiece import MARK_TOKENS, WordPiece
from holdfast.errors import ConfigError, Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.embedders.session import Session

    Pair = tuple[list[int], list[int]]  # token ids of question and passage, and for each whether it is of the passage
    SplitPair = Callable[[str, str], Pair]

QUESTION_TOKENS, PASSAGE_TOKENS = 64, 200  # the first ones are read: time grows with them
_PAIR_TOKENS = QUESTION_TOKENS + PASSAGE_TOKENS + 3  # with the marks around both
_CHOICES = {"tokenizer": TOKENIZERS, "languages": ("all", "english")}  # the first is the default
_HINT = "Choose a cross-encoder that gives one number for each pair of texts, or set another reranker"


class CrossEncoder:
    """A cross-encoder. Pairs run one by one: the scale of 8-bit numbers depends on all texts of a batch, and a score must not.

    Measured with one thread, that takes no longer than batches, in which short texts are padded.
    """

    def __init__(self, folder: str, threads: int = 1) -> None:
        if not os.path.isabs(folder) or not os.path.isfile(os.path.join(folder, "model.onnx")):
            raise ConfigError(f"there is no model.onnx in the folder {folder!r}", "Set onnx: and the full path of a folder")
        self.setting = f"onnx:{folder}"
        self.folder = folder
        self._threads = threads
        self._lock = threading.RLock()
        self._settings = self._read_settings()
        self._loaded: tuple[Session, SplitPair] | None = None

    @property
    def english_only(self) -> bool:
        """Return whether it only understands English."""
        return self._settings["languages"] == "english"

    @property
    def has_tokenizer_file(self) -> bool:
        """Return whether it uses the tokenizer.json of its folder instead of the bundled vocabulary."""
        return self._settings["tokenizer"] == "file"

    def relevance(self, question: str, passages: list[str]) -> list[float]:
        """Return for each passage how well it answers the question, from 0 to 1."""
        import numpy as np

        session, split_pair = self._load()
        found = []
        for passage in passages:
            ids, types = split_pair(question, passage)
            logit = float(session.rows(np.array([ids], np.int64), np.array([types], np.int64))[0, 0])
            if not math.isfinite(logit):
                raise Damaged(f"{self.folder} gives a score that is not a finite number", _HINT)
            found.append(logit_to_relevance(logit))
        return found

    def _read_settings(self) -> dict[str, str]:
        path = os.path.join(self.folder, SETTINGS_FILE)
        return check_settings(read_table(path), path)

    def _load(self) -> tuple[Session, SplitPair]:
        if self._loaded is None:
            with NATIVE_LOCK, self._lock:
                if self._loaded is None:
                    self._loaded = self._load_session(), self._load_tokenizer()
        return self._loaded

    def _load_session(self) -> Session:
        from holdfast.embedders.session import Session

        path = os.path.join(self.folder, "model.onnx")
        session = Session(path, self._threads, _HINT)
        if session.dim != 1:
            raise Damaged(f"{path} gives {session.dim} numbers for a pair", _HINT)
        return session

    def _load_tokenizer(self) -> SplitPair:
        """Return the function that turns question and passage into token ids; tokenizer.json cuts the longer of them first."""
        if not self.has_tokenizer_file:
            return split_pair
        tokenizer = load_tokenizer(os.path.join(self.folder, "tokenizer.json"), _PAIR_TOKENS)

        def split_with_file(question: str, passage: str) -> Pair:
            with NATIVE_LOCK:
                encoding = tokenizer.encode(question, passage)
                return encoding.ids, encoding.type_ids

        return split_with_file


def split_pair(question: str, passage: str) -> Pair:
    """Return the token ids of a pair by the bundled vocabulary: START question END passage END."""
    pieces = WordPiece.bundled()
    first = pieces.ids(question, QUESTION_TOKENS + MARK_TOKENS)
    second = pieces.ids(passage, PASSAGE_TOKENS + MARK_TOKENS)[1:]
    return [*first, *second], [0] * len(first) + [1] * len(second)


def check_settings(table: dict[str, Any], where: str) -> dict[str, str]:
    """Return the defaults, overridden by these settings; raise ConfigError if one is invalid."""
    for name, value in table.items():
        if value not in _CHOICES.get(name, ()):
            choices = "; ".join([f"{name} is {' or '.join(values)}" for name, values in _CHOICES.items()])
            raise ConfigError(f"{where}: {name} = {value!r} is not a valid setting", f"Valid settings: {choices}")
    return {name: table.get(name, values[0]) for name, values in _CHOICES.items()}
