"""The candidates of a search as arrays: their tokens as numbers, their pieces, their neighbours.

The number, terms and vector of a token, and the pieces of a passage, are computed once in a process and cached. Both caches are
bounded.
"""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np

from holdfast.index import tokenizer
from holdfast.search import chunking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.index.results import Outline

    Vectors = Callable[[list[str]], NDArray[Any]]
    PieceArrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]

_MAX_TOKENS = 300_000
_MAX_PASSAGES = 100_000
KINDS = ("people", "chat", "note", "long")


class GrowingArray:
    """An array that grows at its end."""

    def __init__(self, dtype: type, columns: tuple[int, ...] = ()) -> None:
        self._rows: NDArray[Any] = np.zeros((1024, *columns), dtype)
        self.size = 0

    def add(self, rows: Any) -> int:
        """Add rows at the end; return the position of the first."""
        start, end = self.size, self.size + len(rows)
        while end > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[start:end] = rows
        self.size = end
        return start

    def take(self, positions: NDArray[Any]) -> NDArray[Any]:
        """Return the rows at these positions."""
        rows: NDArray[Any] = self._rows.take(positions, axis=0)
        return rows


class _Numbers(dict[str, int]):
    """The numbers of tokens; a new token gets the next number and is passed to `add`."""

    def __init__(self, add: Callable[[str, int], None]) -> None:
        self._add = add

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self)
        self._add(token, number)
        return number


class Vocabulary:
    """A cache of tokens as numbers, with their terms and vectors, and of passages as tokens."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._numbers = _Numbers(self._add_token)
        self._tokens_by_term: dict[str, list[int]] = {}
        self.lengths: dict[int, int] = {}  # in words, by passage
        self._passages: dict[int, int] = {}  # its row in _spans
        self._spans = GrowingArray(np.int64, (4,))  # of a passage: first piece, number of pieces, first token, number of tokens
        self._pieces = GrowingArray(np.int64, (2,))  # of a piece: its marks, number of tokens
        self._tokens = GrowingArray(np.int32)
        self._pieces.add([(0, 0)])
        self._spans.add([(0, 1, 0, 0)])  # an unknown passage has one piece without tokens
        self._meaningful = np.zeros(1024, bool)
        self._token_vectors = np.zeros((1024, 256), np.float32)
        self._new_tokens: list[str] = []  # tokens whose vectors are not in the table yet

    def __len__(self) -> int:
        return len(self._numbers)

    def tokens_with(self, term: str) -> list[int]:
        """Return the tokens that have this term."""
        return self._tokens_by_term.get(term, [])

    def find_uncached(self, ids: Iterable[int]) -> list[int]:
        """Return those of these passages that are not cached."""
        return [id for id in ids if id not in self._passages]

    def read_pieces(self, ids: list[int]) -> PieceArrays:
        """Return, for these passages: how many pieces each has, the marks and number of tokens of each piece, all tokens."""
        seen = self._passages
        spans = self._spans.take(np.array([seen.get(id, 0) for id in ids], np.int64))
        rows = self._pieces.take(_expand_runs(spans[:, 0], spans[:, 1]))
        return spans[:, 1], rows[:, 0], rows[:, 1], self._tokens.take(_expand_runs(spans[:, 2], spans[:, 3]))

    def clear_if_full(self) -> None:
        """Clear the cache when it is full; call it between two queries only."""
        if max(len(self._passages), len(self.lengths)) >= _MAX_PASSAGES or len(self._numbers) >= _MAX_TOKENS:
            self.__init__(self._vectors)  # type: ignore[misc]

    def add(self, pieces_by_passage: Mapping[int, list[tuple[int, str]]]) -> None:
        """Cache passages, each with the marks and tokens of its pieces."""
        piece, token = self._pieces.size, self._tokens.size
        piece_rows: list[tuple[int, int]] = []
        numbers: list[int] = []
        spans = []
        for rows in pieces_by_passage.values():
            first, start = len(piece_rows), len(numbers)
            for marks, tokens in rows:
                piece_tokens = tokens.split()
                piece_rows.append((marks, len(piece_tokens)))
                numbers.extend(map(self._numbers.__getitem__, piece_tokens))
            spans.append((piece + first, len(rows), token + start, len(numbers) - start))
        if spans:
            self._pieces.add(piece_rows)
            self._tokens.add(numbers)
            position = self._spans.add(spans)
            self._passages.update(zip(pieces_by_passage, range(position, position + len(spans)), strict=True))

    def _add_token(self, token: str, number: int) -> None:
        self._new_tokens.append(token)
        for term in tokenizer.index_terms(token):
            self._tokens_by_term.setdefault(term, []).append(number)
        if number >= len(self._meaningful):
            self._meaningful = np.concatenate([self._meaningful, np.zeros(len(self._meaningful), bool)])
        self._meaningful[number] = token.isalpha() and token not in tokenizer.COMMON and len(token) > 1

    def meaningful_tokens(self) -> NDArray[Any]:
        """Return, for each token, whether it is a word that means something by itself."""
        return self._meaningful[: len(self._numbers)]

    def token_vectors(self) -> NDArray[Any]:
        """Return the vectors of all tokens, by number."""
        while len(self._token_vectors) < len(self._numbers):
            self._token_vectors = np.concatenate([self._token_vectors, np.zeros_like(self._token_vectors)])
        known = len(self._numbers) - len(self._new_tokens)
        for start in range(0, len(self._new_tokens), 4096):
            batch = self._new_tokens[start : start + 4096]
            self._token_vectors[known + start : known + start + len(batch)] = self._vectors(batch)
        self._new_tokens.clear()
        return self._token_vectors


class CandidatePool:
    """Candidates as arrays: every array has an element for each candidate, or (`p_...`) for each of their pieces."""

    def __init__(self, rows: list[Outline], vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.size = len(rows)
        self.ids = np.array([row.id for row in rows], np.int64)
        self.length = np.maximum(np.array([row.words for row in rows], np.float64), 1)
        folded = {speaker: (speaker or "").casefold() for speaker in {row.speaker for row in rows}}
        speakers = [folded[row.speaker] for row in rows]
        self.speaker = np.array(speakers)
        short = self.length <= chunking.NOTE_WORDS
        kinds = {speaker: _find_kind(speaker) for speaker in folded.values()}
        self.kind = np.array([kinds[speaker] for speaker in speakers])  # positions in KINDS
        self.kind[short & (self.kind == KINDS.index("long"))] = KINDS.index("note")
        days = [(row.valid_from or row.recorded or "")[:10] for row in rows]
        numbers = {day: day_number(day) for day in set(days)}
        self.day = np.array([numbers[day] for day in days], np.int64)
        doc, seq = np.array([row.doc for row in rows], np.int64), np.array([row.seq for row in rows], np.int64)
        turn = np.array([bool(row.turn) for row in rows])
        sessions, self.session = np.unique(doc, return_inverse=True)
        self.sessions = len(sessions)
        self.turns = np.where(turn, np.array([row.versions for row in rows], np.float64), 1)
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


def _find_kind(speaker: str) -> int:
    """Return the kind of a candidate, which decides its weights; a short text without a speaker becomes a note later."""
    return KINDS.index("long" if not speaker else "chat" if speaker in chunking.NAMELESS else "people")


def _expand_runs(first: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """Return the positions of all runs, in sequence; each run has a first position and a length."""
    ends = np.cumsum(counts)
    positions: NDArray[Any] = np.repeat(first - ends + counts, counts) + np.arange(ends[-1])
    return positions


def day_number(day: str) -> int:
    """Return the ordinal of an ISO date; 0 if it is not a date."""
    try:
        return datetime.date.fromisoformat(day).toordinal()
    except ValueError:
        return 0
