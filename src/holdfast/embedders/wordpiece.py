"""WordPiece, the tokenizer of uncased BERT models: MiniLM, the static model and others.

`uncased.txt` is the vocabulary of Google's bert-base-uncased (Apache-2.0). Names of control tokens in a text, such as `[SEP]`,
are plain text, so that a stored text cannot control the model.
"""

from __future__ import annotations

import unicodedata
from functools import cache

from holdfast.embedders import weights

VOCABULARY = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
START, END, UNKNOWN = 101, 102, 100
MARK_TOKENS = 2  # the start and end tokens, which every text has
_MAX_WORD_CHARS = 100
_MAX_CACHED_WORDS = 100_000

_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class WordPiece:
    """Greedy longest match, word by word, with a cache of words."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._vocabulary = vocabulary
        self._characters = _Characters()
        self._words: dict[str, tuple[int, ...]] = {}

    @classmethod
    @cache
    def bundled(cls) -> WordPiece:
        """Return the tokenizer with the bundled vocabulary, one for the whole process."""
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


class _Characters(dict[int, str]):
    """Map each character to nothing, a space, its lower case, or itself between spaces."""

    def __missing__(self, point: int) -> str:
        mapped = self[point] = _map_character(chr(point), point)
        return mapped


def _map_character(char: str, point: int) -> str:
    category = unicodedata.category(char)
    if char in "\t\n\r" or category[0] == "Z":
        return " "
    if point == 0xFFFD or category in ("Cc", "Cf", "Co", "Cs", "Mn"):
        return ""
    if category[0] == "P" or char in "$+<=>^`|~" or any(first <= point <= last for first, last in _CJK):
        return f" {char} "
    return char.lower()
