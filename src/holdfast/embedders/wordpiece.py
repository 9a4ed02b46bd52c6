"""Text to the word pieces of uncased BERT, as its reference tokenizer cuts them.

The vocabulary in `uncased.txt` is that of Google's bert-base-uncased, Apache-2.0. The names of control tokens in a text,
such as `[SEP]`, are plain text here: what somebody stores cannot steer the model.
"""

from __future__ import annotations

import unicodedata

from holdfast.embedders import weights

VOCABULARY = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
START, END, UNKNOWN = 101, 102, 100
LONGEST_WORD = 100
MOST_WORDS_KEPT = 100_000

_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class Characters(dict[int, str]):
    """What each character becomes: nothing, a space, itself in lower case, or itself between spaces."""

    def __missing__(self, point: int) -> str:
        made = self[point] = _character(chr(point), point)
        return made


class WordPiece:
    """Greedy longest match, word by word; words are remembered, since most come again."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._vocabulary = vocabulary
        self._characters = Characters()
        self._words: dict[str, tuple[int, ...]] = {}

    @classmethod
    def bundled(cls) -> WordPiece:
        """With the vocabulary that Holdfast brings."""
        data = weights.read(weights.bundled_path("uncased.txt"), VOCABULARY, "holdfast")
        return cls({piece: number for number, piece in enumerate(data.decode().splitlines())})

    def ids(self, text: str, most: int) -> list[int]:
        """The numbers of the pieces between the two that mark start and end, cut off at `most`."""
        found = [START]
        for word in unicodedata.normalize("NFD", text).translate(self._characters).split():
            found += self._word(word)
            if len(found) >= most:
                break
        return [*found[: most - 1], END]

    def _word(self, word: str) -> tuple[int, ...]:
        known = self._words.get(word)
        if known is None:
            if len(self._words) >= MOST_WORDS_KEPT:
                self._words = {}
            known = self._words[word] = self._cut(word)
        return known

    def _cut(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
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


def _character(char: str, point: int) -> str:
    category = unicodedata.category(char)
    if char in "\t\n\r" or category[0] == "Z":
        return " "
    if point == 0xFFFD or category in ("Cc", "Cf", "Co", "Cs", "Mn"):
        return ""
    if category[0] == "P" or char in "$+<=>^`|~" or any(first <= point <= last for first, last in _CJK):
        return f" {char} "
    return char.lower()
