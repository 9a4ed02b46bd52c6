"""The passages that may answer a question, laid out for counting: their words as numbers, their pieces, their neighbours.

A word's number, stem and vector are worked out once in a process; so are a passage's pieces. Both memories are bounded.
"""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np

from holdfast import pieces, words
from holdfast.index.rows import DOC, ID, RECORDED, SEQ, SPEAKER, START, TURN, VERSIONS, WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from numpy.typing import NDArray

    Vectors = Callable[[list[str]], NDArray[Any]]
    Cut = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # marks of pieces, their numbers of tokens, the tokens of all

_MOST_TOKENS = 300_000
_MOST_PASSAGES = 100_000


class Vocabulary:
    """Tokens as numbers, with the words in each and, where it is a plain word, its vector."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._numbers: dict[str, int] = {}
        self._holders: dict[str, list[int]] = {}
        self._passages: dict[int, Cut] = {}
        self._plain = np.zeros(1024, bool)
        self._table = np.zeros((1024, 256), np.float32)
        self._fresh: list[str] = []  # tokens whose vectors are not in the table yet

    def __len__(self) -> int:
        return len(self._numbers)

    def holders(self, term: str) -> list[int]:
        """The tokens that have this word in them."""
        return self._holders.get(term, [])

    def passage(self, id: int) -> Cut | None:
        """A passage seen before: the marks of its pieces, how many tokens each has, and the tokens of all."""
        return self._passages.get(id)

    def make_room(self) -> None:
        """Forget everything when it has become too much; only between two questions."""
        if len(self._passages) >= _MOST_PASSAGES or len(self._numbers) >= _MOST_TOKENS:
            self.__init__(self._vectors)  # type: ignore[misc]

    def add(self, id: int, rows: list[tuple[int, str]]) -> None:
        """A passage's pieces: marks and tokens."""
        numbers, found, lengths = self._numbers, [], []
        for _, tokens in rows:
            some = tokens.split()
            lengths.append(len(some))
            for token in some:
                number = numbers.get(token)
                found.append(self._new(token) if number is None else number)
        marks = np.array([marks for marks, _ in rows], np.int64)
        self._passages[id] = marks, np.array(lengths, np.int64), np.array(found, np.int32)

    def _new(self, token: str) -> int:
        number = self._numbers[token] = len(self._numbers)
        self._fresh.append(token)
        for term in words.kept(token):
            self._holders.setdefault(term, []).append(number)
        if number >= len(self._plain):
            self._plain = np.concatenate([self._plain, np.zeros(len(self._plain), bool)])
        self._plain[number] = token.isalpha() and token not in words.COMMON and len(token) > 1
        return number

    def plain(self) -> NDArray[Any]:
        """Which tokens are words that mean something by themselves."""
        return self._plain[: len(self._numbers)]

    def table(self) -> NDArray[Any]:
        """The vectors of all tokens, by number."""
        while len(self._table) < len(self._numbers):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        known = len(self._numbers) - len(self._fresh)
        for start in range(0, len(self._fresh), 4096):
            some = self._fresh[start : start + 4096]
            self._table[known + start : known + start + len(some)] = self._vectors(some)
        self._fresh.clear()
        return self._table


class Pool:
    """Candidates side by side: every array has one place for each, or (`p_...`) one for each of their pieces."""

    def __init__(self, rows: list[tuple[Any, ...]], vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.size = len(rows)
        columns = list(zip(*rows, strict=True))
        self.ids = np.array(columns[ID], np.int64)
        self.length = np.maximum(np.array(columns[WORDS], np.float64), 1)
        folded = {speaker: (speaker or "").casefold() for speaker in set(columns[SPEAKER])}
        speakers = [folded[speaker] for speaker in columns[SPEAKER]]
        self.speaker = np.array(speakers)
        self.kind = np.array([_kind(speaker, length) for speaker, length in zip(speakers, columns[WORDS], strict=True)])
        days = [(start or recorded or "")[:10] for start, recorded in zip(columns[START], columns[RECORDED], strict=True)]
        numbers = {day: _day(day) for day in set(days)}
        self.day = np.array([numbers[day] for day in days], np.int64)
        doc, seq = np.array(columns[DOC], np.int64), np.array(columns[SEQ], np.int64)
        turn = np.array([bool(turn) for turn in columns[TURN]])
        every, self.session = np.unique(doc, return_inverse=True)
        self.sessions = len(every)
        self.turns = np.where(turn, np.array(columns[VERSIONS], np.float64), 1)
        self.first = (turn & (seq == 0)).astype(np.float64)
        self._neighbours(self.session * (1 << 40) + seq, turn)
        self._cut()

    def _neighbours(self, keys: NDArray[Any], turn: NDArray[Any]) -> None:
        """The places of the turns before and after each; -1 where there is none."""
        turns = np.flatnonzero(turn)
        turns = turns[np.argsort(keys[turns])]
        follows = keys[turns[1:]] == keys[turns[:-1]] + 1
        self.previous, self.next = np.full(self.size, -1), np.full(self.size, -1)
        self.previous[turns[1:][follows]] = turns[:-1][follows]
        self.next[turns[:-1][follows]] = turns[1:][follows]

    def _cut(self) -> None:
        nothing = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32)
        cut = [self.vocabulary.passage(id) or nothing for id in self.ids.tolist()]
        counts = np.array([len(marks) for marks, _, _ in cut])
        lengths = np.concatenate([lengths for _, lengths, _ in cut])
        self.p_count = counts
        self.p_first = np.cumsum(counts) - counts
        self.p_owner = np.repeat(np.arange(self.size), counts)
        self.p_marks = np.concatenate([marks for marks, _, _ in cut])
        self.p_length = lengths.astype(np.float64)
        self.tokens = np.concatenate([tokens for _, _, tokens in cut])
        self.t_piece = np.repeat(np.arange(len(lengths)), lengths)

    def marked(self, mark: int) -> NDArray[Any]:
        """1 for the pieces that bear a mark, else 0."""
        return ((self.p_marks & mark) > 0).astype(np.float64)

    def mentions(self, terms: Iterable[str]) -> Mentions:
        """Where these words stand."""
        return Mentions(self, [self.vocabulary.holders(term) for term in terms])

    def piece_of(self, owners: NDArray[Any], numbers: NDArray[Any]) -> NDArray[Any]:
        """The places among all pieces of these candidates' pieces."""
        places: NDArray[Any] = self.p_first[owners] + np.minimum(numbers, self.p_count[owners] - 1)
        return places


class Mentions:
    """Where some words stand among all tokens of a pool: found in one pass, since few tokens are among them."""

    def __init__(self, pool: Pool, holders: list[list[int]]) -> None:
        every = sorted({token for some in holders for token in some})
        local = np.zeros(len(pool.vocabulary), np.int32)  # of each token its place among those asked for, counted from 1
        local[every] = np.arange(1, len(every) + 1)
        places = {token: place for place, token in enumerate(every)}
        self._holds = np.zeros((len(holders), len(every)), bool)
        for term, some in enumerate(holders):
            self._holds[term, [places[token] for token in some]] = True
        found = local[pool.tokens]
        self._at = np.flatnonzero(found)
        self._token = found[self._at] - 1
        self._piece = pool.t_piece[self._at]
        self._pieces = len(pool.p_owner)

    def counts(self) -> NDArray[Any]:
        """By word and piece: how often it stands there."""
        rows = [np.bincount(self._piece[holds[self._token]], minlength=self._pieces) for holds in self._holds]
        return np.array(rows, np.float64).reshape(len(rows), self._pieces)

    def side_by_side(self) -> NDArray[Any]:
        """By piece: how many of the words stand just before the one that was asked for next."""
        beside = np.flatnonzero((np.diff(self._at) == 1) & (np.diff(self._piece) == 0))
        score = np.zeros(self._pieces)
        for left, right in pairwise(self._holds):
            hit = beside[left[self._token[beside]] & right[self._token[beside + 1]]]
            score += np.bincount(self._piece[hit], minlength=self._pieces) > 0
        return score


def _kind(speaker: str, length: int) -> str:
    """Turns of named people, turns of a user and an assistant, short texts and long ones are weighed differently."""
    if not speaker:
        return "note" if length <= pieces.NOTE_WORDS else "long"
    return "chat" if speaker in pieces.NAMELESS else "people"


def _day(day: str) -> int:
    """The number of a day; 0 if it is none."""
    try:
        return datetime.date.fromisoformat(day).toordinal()
    except ValueError:
        return 0
