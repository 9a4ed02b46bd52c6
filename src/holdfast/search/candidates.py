"""The passages that may answer a question, laid out for counting: their words as numbers, their pieces, their neighbours.

A word's number, stem and vector are worked out once in a process; so are a passage's pieces. Both memories are bounded.
"""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np

from holdfast.index import tokenizer
from holdfast.index.results import DOC, ID, RECORDED, SEQ, SPEAKER, START, TURN, VERSIONS, WORDS
from holdfast.search import chunking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    Vectors = Callable[[list[str]], NDArray[Any]]
    Cut = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]

_MOST_TOKENS = 300_000
_MOST_PASSAGES = 100_000
KINDS = ("people", "chat", "note", "long")


class Growing:
    """An array that grows at its end."""

    def __init__(self, kind: type, columns: tuple[int, ...] = ()) -> None:
        self._rows: NDArray[Any] = np.zeros((1024, *columns), kind)
        self.size = 0

    def add(self, rows: Any) -> int:
        """Put rows at the end; where they begin."""
        start, end = self.size, self.size + len(rows)
        while end > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[start:end] = rows
        self.size = end
        return start

    def take(self, places: NDArray[Any]) -> NDArray[Any]:
        taken: NDArray[Any] = self._rows.take(places, axis=0)
        return taken


class _Numbers(dict[str, int]):
    """The numbers of tokens; one that has none yet gets the next."""

    def __init__(self, new: Callable[[str, int], None]) -> None:
        self._told = new

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self)
        self._told(token, number)
        return number


class Vocabulary:
    """Tokens as numbers, with the words in each and, where it is a plain word, its vector; and passages seen before."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._numbers = _Numbers(self._new)
        self._holders: dict[str, list[int]] = {}
        self.lengths: dict[int, int] = {}  # how many words passages have
        self._passages: dict[int, int] = {}  # each one's row among these: its first piece, how many, its first token, how many
        self._spans, self._pieces, self._tokens = Growing(np.int64, (4,)), Growing(np.int64, (2,)), Growing(np.int32)
        self._pieces.add([(0, 0)])
        self._spans.add([(0, 1, 0, 0)])  # what is not known has one piece without tokens
        self._plain = np.zeros(1024, bool)
        self._table = np.zeros((1024, 256), np.float32)
        self._fresh: list[str] = []  # tokens whose vectors are not in the table yet

    def __len__(self) -> int:
        return len(self._numbers)

    def holders(self, term: str) -> list[int]:
        """The tokens that have this word in them."""
        return self._holders.get(term, [])

    def unseen(self, ids: Iterable[int]) -> list[int]:
        """Those of these passages that were not added yet."""
        return [id for id in ids if id not in self._passages]

    def cut(self, ids: list[int]) -> Cut:
        """For each passage how many pieces it has; their marks and numbers of tokens; the tokens of all."""
        seen = self._passages
        spans = self._spans.take(np.array([seen.get(id, 0) for id in ids], np.int64))
        rows = self._pieces.take(_runs(spans[:, 0], spans[:, 1]))
        return spans[:, 1], rows[:, 0], rows[:, 1], self._tokens.take(_runs(spans[:, 2], spans[:, 3]))

    def make_room(self) -> None:
        """Forget everything when it has become too much; only between two questions."""
        if max(len(self._passages), len(self.lengths)) >= _MOST_PASSAGES or len(self._numbers) >= _MOST_TOKENS:
            self.__init__(self._vectors)  # type: ignore[misc]

    def add(self, cut: Mapping[int, list[tuple[int, str]]]) -> None:
        """Passages, each with its pieces: marks and tokens. Many at once, since an array costs more than what is in it."""
        piece, token = self._pieces.size, self._tokens.size
        marked: list[tuple[int, int]] = []
        numbers: list[int] = []
        spans = []
        for rows in cut.values():
            first, start = len(marked), len(numbers)
            for marks, tokens in rows:
                some = tokens.split()
                marked.append((marks, len(some)))
                numbers.extend(map(self._numbers.__getitem__, some))
            spans.append((piece + first, len(rows), token + start, len(numbers) - start))
        if spans:
            self._pieces.add(marked)
            self._tokens.add(numbers)
            place = self._spans.add(spans)
            self._passages.update(zip(cut, range(place, place + len(spans)), strict=True))

    def _new(self, token: str, number: int) -> None:
        self._fresh.append(token)
        for term in tokenizer.index_terms(token):
            self._holders.setdefault(term, []).append(number)
        if number >= len(self._plain):
            self._plain = np.concatenate([self._plain, np.zeros(len(self._plain), bool)])
        self._plain[number] = token.isalpha() and token not in tokenizer.COMMON and len(token) > 1

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


class CandidatePool:
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
        short = self.length <= chunking.NOTE_WORDS
        kinds = {speaker: _kind(speaker) for speaker in folded.values()}
        self.kind = np.array([kinds[speaker] for speaker in speakers])  # places in KINDS
        self.kind[short & (self.kind == KINDS.index("long"))] = KINDS.index("note")
        days = [(start or recorded or "")[:10] for start, recorded in zip(columns[START], columns[RECORDED], strict=True)]
        numbers = {day: day_of(day) for day in set(days)}
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
        self.p_count, self.p_marks, lengths, self.tokens = self.vocabulary.cut(self.ids.tolist())
        self.p_first = np.cumsum(self.p_count) - self.p_count
        self.p_owner = np.repeat(np.arange(self.size), self.p_count)
        self.p_length = lengths.astype(np.float64)
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

    def __init__(self, pool: CandidatePool, holders: list[list[int]]) -> None:
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


def _kind(speaker: str) -> int:
    """Turns of named people, turns of a user and an assistant, short texts and long ones are weighed differently."""
    return KINDS.index("long" if not speaker else "chat" if speaker in chunking.NAMELESS else "people")


def _runs(first: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """So many places from each first one on."""
    ends = np.cumsum(counts)
    places: NDArray[Any] = np.repeat(first - ends + counts, counts) + np.arange(ends[-1])
    return places


def day_of(day: str) -> int:
    """The number of a day; 0 if it is none."""
    try:
        return datetime.date.fromisoformat(day).toordinal()
    except ValueError:
        return 0
