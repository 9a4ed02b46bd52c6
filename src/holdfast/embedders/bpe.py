"""Text to the tokens of a SentencePiece BPE vocabulary with byte fallback, as the reference tokenizer cuts them.

No token of such a vocabulary goes on after a word's end, so no merge ever crosses the start of a word: each word is cut alone
and remembered, which is faster than cutting whole texts.
"""

from __future__ import annotations

import re
from itertools import pairwise

SPACE = "▁"
MOST_WORDS_KEPT = 200_000
LONGEST_WORD = 512  # what is longer is cut there: merging takes the square of the length
NEVER = 1 << 30

_WORD = re.compile(f"{SPACE}*[^{SPACE}]{{1,{LONGEST_WORD}}}|{SPACE}+")


class BytePairs:
    """Merges the two neighbours that come first in the list of merges, again and again."""

    def __init__(self, vocabulary: dict[str, int], merges: list[str]) -> None:
        self._vocabulary = vocabulary
        self._ranks = {merge: rank for rank, merge in enumerate(merges)}  # "left right", as the file writes them
        self._bytes = [vocabulary[f"<0x{byte:02X}>"] for byte in range(256)]
        self._words: dict[str, tuple[int, ...]] = {}

    def ids(self, text: str) -> list[int]:
        """The numbers of the tokens of a text."""
        words, found = self._words, list[int]()
        for word in _WORD.findall(SPACE + text.replace(" ", SPACE)) if text else ():
            known = words.get(word)
            found += self._remember(word) if known is None else known
        return found

    def _remember(self, word: str) -> tuple[int, ...]:
        if len(self._words) >= MOST_WORDS_KEPT:
            self._words.clear()
        made = self._words[word] = self._cut(word)
        return made

    def _cut(self, word: str) -> tuple[int, ...]:
        parts = list(word)
        ranks = [self._rank(*pair) for pair in pairwise(parts)]
        while ranks and (best := min(ranks)) < NEVER:
            left = ranks.index(best)
            parts[left : left + 2] = [parts[left] + parts[left + 1]]
            del ranks[left]
            if left > 0:
                ranks[left - 1] = self._rank(parts[left - 1], parts[left])
            if left < len(ranks):
                ranks[left] = self._rank(parts[left], parts[left + 1])
        return tuple(number for part in parts for number in self._numbers(part))

    def _rank(self, left: str, right: str) -> int:
        return self._ranks.get(f"{left} {right}", NEVER)

    def _numbers(self, part: str) -> list[int]:
        number = self._vocabulary.get(part)
        return [number] if number is not None else [self._bytes[byte] for byte in part.encode("utf-8", "replace")]
