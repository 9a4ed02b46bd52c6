"""Caches of what ranking needs of passages: their tokens as numbers, their outlines and their mean vectors.

Passages never change: an edited text has new ones. So the tokens and vectors of a passage are valid as long as the index is the
same file. Which passages pass a filter does change, so outlines are valid for one content of the index (see `HybridSearch`).
All caches are bounded.
"""

from __future__ import annotations

import datetime

import numpy as np

from holdfast.index import tokenizer
from holdfast.index.arrays import GrowingArray, extend
from holdfast.index.filters import END_OF_TIME
from holdfast.search import chunking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.index.results import FoundPassage, Outline

    Vectors = Callable[[list[str]], NDArray[Any]]
    PieceArrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]

_MAX_TOKENS = 300_000
_MAX_PASSAGES = 100_000
_MAX_MEANS = 5_000
_UNNAMED_SPEAKERS = ("", "user", "assistant", "system", "tool")  # speakers without a name
KINDS = ("people", "chat", "note", "long")
# The columns of an outline: the passage, its number of words, its speaker, day and file, its number in the file, the number of
# turns of its transcript (0 if it is not a turn), and the year in which it was recorded.
ID, WORDS, SPEAKER, DAY, DOC, SEQ, TURNS, YEAR = range(8)


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
        self._clear()

    def _clear(self) -> None:
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
        self._new_tokens: dict[str, int] = {}  # meaningful tokens whose vectors are not in the table yet

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
            self._clear()

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
        for term in tokenizer.index_terms(token):
            self._tokens_by_term.setdefault(term, []).append(number)
        if number >= len(self._meaningful):
            self._meaningful = extend(self._meaningful, 2 * len(self._meaningful))
        if token.isalpha() and len(token) > 1 and token not in tokenizer.COMMON:
            self._meaningful[number] = True
            self._new_tokens[token] = number

    def meaningful_tokens(self) -> NDArray[Any]:
        """Return, for each token, whether it is a word that means something by itself."""
        return self._meaningful[: len(self._numbers)]

    def token_vectors(self) -> NDArray[Any]:
        """Return the vectors of all tokens, by number; zeros for those that mean nothing by themselves."""
        if len(self._token_vectors) < len(self._numbers):
            self._token_vectors = extend(self._token_vectors, max(len(self._numbers), 2 * len(self._token_vectors)))
        tokens, numbers = [*self._new_tokens], [*self._new_tokens.values()]
        for start in range(0, len(tokens), 4096):
            self._token_vectors[numbers[start : start + 4096]] = self._vectors(tokens[start : start + 4096])
        self._new_tokens.clear()
        return self._token_vectors


class Outlines:
    """What ranking needs of the passages that pass one filter, as arrays: a cache for as long as the index is the same."""

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}  # by passage; -1 for one that the filter drops
        self._rows = GrowingArray(np.int64, (8,))  # by the columns above
        self._ends: dict[int, str] = {}  # by position: when the passage ends
        self._speakers: dict[str, int] = {}  # names, folded
        self._speaker_numbers: dict[str | None, int] = {}  # by the name as written
        self._speaker_names, self._speaker_kinds = np.zeros(0, str), np.zeros(0, np.int64)
        self._days: dict[str, int] = {}
        self._turns: dict[tuple[int, int], int] = {}  # by transcript and number: the position of a turn
        self._adjacent = GrowingArray(np.int64, (2,))  # positions of the turns before and after; -1, or -2 if not looked up
        self.passages: dict[int, FoundPassage] = {}  # those that were results

    def __len__(self) -> int:
        return self._rows.size

    def find_uncached(self, ids: Iterable[int]) -> list[int]:
        """Return those of these passages that are not cached."""
        return [id for id in ids if id not in self._positions]

    def add(self, ids: Iterable[int], rows: list[Outline]) -> None:
        """Cache these passages; those of `ids` without a row do not pass the filter."""
        self._positions.update(dict.fromkeys(ids, -1))
        if not rows:
            return
        first = self._rows.add([self._encode(row) for row in rows])
        self._adjacent.add([(-2, -2)] * len(rows))
        for position, (id, seq, _, _, doc, _, turn, _, _, valid_to) in enumerate(rows, first):
            self._positions[id] = position
            if turn:
                self._turns[doc, seq] = position
            if valid_to is not None:
                self._ends[position] = valid_to

    def _encode(self, row: Outline) -> tuple[int, ...]:
        """Return the row of a passage, by the columns above."""
        id, seq, recorded, valid_from, doc, versions, turn, speaker, words, _ = row
        number = self._speaker_numbers.get(speaker)
        if number is None:
            number = self._add_speaker(speaker)
        moment = valid_from or recorded or ""
        day = self._days.get(moment)
        if day is None:
            day = self._days[moment] = day_number(moment[:10])
        year = int(recorded[:4]) if recorded[:4].isdigit() else 0
        return id, words, number, day, doc, seq, versions if turn else 0, year

    def _add_speaker(self, speaker: str | None) -> int:
        """Give a speaker a number: the same to different spellings."""
        name = (speaker or "").casefold()
        number = self._speaker_numbers[speaker] = self._speakers.setdefault(name, len(self._speakers))
        self._speaker_names = np.array([*self._speakers])
        self._speaker_kinds = np.array([_find_kind(name) for name in self._speakers])
        return number

    def select(self, ids: Iterable[int], now: str) -> NDArray[Any]:
        """Return the positions of those of these passages that pass the filter at this moment."""
        positions = [position for id in ids if (position := self._positions[id]) >= 0]
        if self._ends:
            positions = [position for position in positions if self._ends.get(position, END_OF_TIME) > now]
        return np.array(positions, np.int64)

    def find_next_end(self, positions: NDArray[Any]) -> str:
        """Return when the first of these passages ends."""
        if not self._ends:
            return END_OF_TIME
        return min([self._ends.get(position, END_OF_TIME) for position in positions.tolist()], default=END_OF_TIME)

    def find_isolated(self, positions: NDArray[Any]) -> NDArray[Any]:
        """Return those of these passages, by position, that people said and whose adjacent turns were not looked up."""
        unknown = self._adjacent.take(positions)[:, 0] == -2
        isolated: NDArray[Any] = positions[unknown & self._is_of_people(positions)]
        return isolated

    def _is_of_people(self, positions: NDArray[Any]) -> NDArray[Any]:
        unnamed = [self._speakers[name] for name in _UNNAMED_SPEAKERS if name in self._speakers]
        rows = self._rows.take(positions)
        named: NDArray[Any] = (rows[:, TURNS] > 0) & ~np.isin(rows[:, SPEAKER], unnamed)
        return named

    def ids_at(self, positions: NDArray[Any]) -> list[int]:
        """Return the passages at these positions."""
        ids: list[int] = self._rows.take(positions)[:, ID].tolist()
        return ids

    def link(self, positions: NDArray[Any]) -> None:
        """Record the adjacent turns of these turns, which are cached."""
        turns = self._turns
        for position, (doc, seq) in zip(positions.tolist(), self._rows.take(positions)[:, [DOC, SEQ]].tolist(), strict=True):
            self._adjacent.set(position, (turns.get((doc, seq - 1), -1), turns.get((doc, seq + 1), -1)))

    def add_adjacent(self, positions: NDArray[Any], now: str) -> NDArray[Any]:
        """Return these positions, followed by those of the turns before and after that are not among them."""
        adjacent = self._adjacent.take(positions).ravel()
        is_new = np.zeros(self._rows.size, bool)
        is_new[adjacent[adjacent >= 0]] = True
        is_new[positions] = False
        added = np.flatnonzero(is_new)
        if self._ends:
            added = np.array([position for position in added.tolist() if self._ends.get(position, END_OF_TIME) > now], np.int64)
        return np.concatenate([positions, added])

    def take(self, positions: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of the passages at these positions."""
        return self._rows.take(positions)

    def speakers(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return names, folded, and kinds of these speakers."""
        return self._speaker_names[numbers], self._speaker_kinds[numbers]


class MeanVectors:
    """A cache of the mean vectors of passages, by one model."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._clear()

    def _clear(self) -> None:
        self._positions: dict[int, int] = {}  # by passage
        self._rows = GrowingArray(np.float32, (self._dim,))
        self._rows.add(np.zeros((1, self._dim), np.float32))  # of passages without vectors, which are not cached

    def read(self, ids: list[int], read: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
        """Return a row for each of these passages; `read` returns those that are not cached."""
        if len(self._positions) > _MAX_MEANS:
            self._clear()
        new = [id for id in ids if id not in self._positions]
        if new:
            rows = read(np.array(new, np.int64))
            present = np.flatnonzero(rows.any(axis=1))
            first = self._rows.add(rows[present])
            self._positions.update(zip([new[row] for row in present.tolist()], range(first, self._rows.size), strict=True))
        return self._rows.take(np.array([self._positions.get(id, 0) for id in ids], np.int64))


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
