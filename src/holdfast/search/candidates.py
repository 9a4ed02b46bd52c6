"""The candidates of a search as arrays: what ranking needs of each, their pieces, their neighbours and their similarities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from holdfast.index.vectors import FoundCosines
from holdfast.search import chunking
from holdfast.search.passage_cache import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.search.passage_cache import Outlines, Vocabulary


class CandidatePool:
    """Candidates as arrays: every array has an element for each candidate, or (`p_...`) for each of their pieces."""

    def __init__(self, outlines: Outlines, positions: NDArray[Any], vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.size = len(positions)
        self.ids, words, speaker, self.day, doc, seq, turns, year = np.ascontiguousarray(outlines.take(positions).T)
        self.length = np.maximum(words.astype(np.float64), 1)
        self.speaker, self.kind = outlines.speakers(speaker)  # positions in KINDS
        self.kind[(self.length <= chunking.NOTE_WORDS) & (self.kind == KINDS.index("long"))] = KINDS.index("note")
        self.years = sorted({*year[year > 0].tolist()})  # in which the candidates were recorded
        turn = turns > 0
        sessions, self.session = np.unique(doc, return_inverse=True)
        self.sessions = len(sessions)
        self.turns = np.where(turn, turns.astype(np.float64), 1)
        self.first = (turn & (seq == 0)).astype(np.float64)
        self._find_neighbours(self.session * (1 << 40) + seq, turn)
        self._read_pieces()

    def _find_neighbours(self, keys: NDArray[Any], turn: NDArray[Any]) -> None:
        """Set the positions of the turns before and after each; -1 where there is none."""
        turns = np.flatnonzero(turn)
        turns = turns[np.argsort(keys[turns])]
        follows = keys[turns[1:]] == keys[turns[:-1]] + 1
        self.previous, self.next = np.full(self.size, -1), np.full(self.size, -1)
        self.previous[turns[1:][follows]] = turns[:-1][follows]
        self.next[turns[:-1][follows]] = turns[1:][follows]

    def _read_pieces(self) -> None:
        self.p_count, self.p_marks, lengths, self.tokens = self.vocabulary.read_pieces(self.ids.tolist())
        self.p_first = np.cumsum(self.p_count) - self.p_count
        self.p_owner = np.repeat(np.arange(self.size), self.p_count)
        self.p_length = lengths.astype(np.float64)
        self.t_piece = np.repeat(np.arange(len(lengths)), lengths)

    def has_mark(self, mark: int) -> NDArray[Any]:
        """Return 1 for the pieces with a mark, else 0."""
        return ((self.p_marks & mark) > 0).astype(np.float64)

    def find_occurrences(self, terms: Iterable[str]) -> Occurrences:
        """Return where these terms occur."""
        return Occurrences(self, [self.vocabulary.tokens_with(term) for term in terms])

    def piece_positions(self, owners: NDArray[Any], numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the positions, among all pieces, of these candidates' pieces of these numbers."""
        positions: NDArray[Any] = self.p_first[owners] + np.minimum(numbers, self.p_count[owners] - 1)
        return positions


class Occurrences:
    """The positions of some terms among all tokens of a pool, found in one pass."""

    def __init__(self, pool: CandidatePool, tokens_of_terms: list[list[int]]) -> None:
        tokens = sorted({token for token_list in tokens_of_terms for token in token_list})
        local = np.zeros(len(pool.vocabulary), np.int32)  # of each token its position in `tokens`, counted from 1
        local[tokens] = np.arange(1, len(tokens) + 1)
        positions = {token: position for position, token in enumerate(tokens)}
        self._has_term = np.zeros((len(tokens_of_terms), len(tokens)), bool)
        for term, token_list in enumerate(tokens_of_terms):
            self._has_term[term, [positions[token] for token in token_list]] = True
        found = local[pool.tokens]
        self._at = np.flatnonzero(found)
        self._token = found[self._at] - 1
        self._piece = pool.t_piece[self._at]
        self._pieces = len(pool.p_owner)

    def count_by_piece(self) -> NDArray[Any]:
        """Return how often each term occurs in each piece: an array by term and piece."""
        rows = [np.bincount(self._piece[has_term[self._token]], minlength=self._pieces) for has_term in self._has_term]
        return np.array(rows, np.float64).reshape(len(rows), self._pieces)

    def count_pairs(self) -> NDArray[Any]:
        """Return, by piece, how many of the terms directly precede the next term of the query."""
        adjacent = np.flatnonzero((np.diff(self._at) == 1) & (np.diff(self._piece) == 0))
        score = np.zeros(self._pieces)
        for left, right in pairwise(self._has_term):
            pairs = adjacent[left[self._token[adjacent]] & right[self._token[adjacent + 1]]]
            score += np.bincount(self._piece[pairs], minlength=self._pieces) > 0
        return score


def find_starts(groups: NDArray[Any]) -> NDArray[Any]:
    """Return the position of the first element of each run of equal ones."""
    starts = np.ones(len(groups), bool)
    np.not_equal(groups[1:], groups[:-1], out=starts[1:])
    return starts.nonzero()[0]


def join_chosen(found: FoundCosines, chosen: NDArray[Any], added: FoundCosines | None) -> FoundCosines:
    """Return the similarities of the chosen passages, followed by those of others."""
    positions = np.full(int(max(found.owners.max(initial=0), chosen.max(initial=0))) + 1, -1)
    positions[chosen] = np.arange(len(chosen))
    kept = np.flatnonzero(positions[found.owners] >= 0)
    joined = FoundCosines(positions[found.owners[kept]], found.numbers[kept], found.cosines[kept])
    if added is None:
        return joined
    return FoundCosines(
        np.concatenate([joined.owners, added.owners + len(chosen)]), np.concatenate([joined.numbers, added.numbers]),
        np.concatenate([joined.cosines, added.cosines]),
    )  # fmt: skip


def max_by_owner(found: FoundCosines, size: int) -> NDArray[Any]:
    """Return the highest similarity of each passage's vectors; 0 where it has none."""
    highest = np.zeros(size)
    if len(found.owners):
        starts = find_starts(found.owners)
        highest[found.owners[starts]] = np.maximum.reduceat(found.cosines, starts)
    return highest


def find_highest(score: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the positions of the highest scores, highest first; of equal scores the last, which are the newest passages."""
    if len(score) > count:
        lowest = np.partition(score, -count)[-count]
        above = np.flatnonzero(score > lowest)
        positions = np.r_[above, np.flatnonzero(score == lowest)[len(above) - count :]]
    else:
        positions = np.arange(len(score))
    highest: NDArray[Any] = positions[np.lexsort((-positions, -score[positions]))]
    return highest
