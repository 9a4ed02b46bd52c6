"""The passages that may answer a question, laid out for counting: their words as numbers, their pieces, their neighbours.

A word's number, stem and vector are worked out once in a process; so are a passage's pieces. Both memories are bounded.
"""

from __future__ import annotations

import datetime

import numpy as np

from holdfast import pieces, words
from holdfast.index.rows import DOC, ID, RECORDED, SEQ, SPEAKER, START, TURN, VERSIONS, WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from numpy.typing import NDArray

    Vectors = Callable[[list[str]], NDArray[Any]]

_MOST_TOKENS = 300_000
_MOST_PASSAGES = 100_000


class Vocabulary:
    """Tokens as numbers, with the words in each and, where it is a plain word, its vector."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._numbers: dict[str, int] = {}
        self._holders: dict[str, list[int]] = {}
        self._passages: dict[int, tuple[list[int], list[NDArray[Any]]]] = {}
        self._plain = np.zeros(1024, bool)
        self._table = np.zeros((1024, 256), np.float32)
        self._known = 0  # tokens whose vectors are in the table

    def __len__(self) -> int:
        return len(self._numbers)

    def holders(self, term: str) -> list[int]:
        """The tokens that have this word in them."""
        return self._holders.get(term, [])

    def passage(self, id: int) -> tuple[list[int], list[NDArray[Any]]] | None:
        """A passage seen before: the marks of its pieces, and their tokens."""
        return self._passages.get(id)

    def make_room(self) -> None:
        """Forget everything when it has become too much; only between two questions."""
        if len(self._passages) >= _MOST_PASSAGES or len(self._numbers) >= _MOST_TOKENS:
            self.__init__(self._vectors)  # type: ignore[misc]

    def add(self, id: int, rows: list[tuple[int, str]]) -> None:
        """A passage's pieces: marks and tokens."""
        self._passages[id] = [marks for marks, _ in rows], [self._tokens(tokens) for _, tokens in rows]

    def _tokens(self, tokens: str) -> NDArray[Any]:
        numbers = self._numbers
        found = []
        for token in tokens.split():
            number = numbers.get(token)
            found.append(self._new(token) if number is None else number)
        return np.array(found, np.int64)

    def _new(self, token: str) -> int:
        number = self._numbers[token] = len(self._numbers)
        for term in words.kept(token):
            self._holders.setdefault(term, []).append(number)
        if number >= len(self._plain):
            self._plain = np.concatenate([self._plain, np.zeros(len(self._plain), bool)])
        self._plain[number] = token.isalpha() and token not in words.COMMON and len(token) > 1
        return number

    def plain(self) -> NDArray[Any]:
        """Which tokens are words that mean something by themselves."""
        return self._plain

    def table(self) -> NDArray[Any]:
        """The vectors of all tokens, by number."""
        fresh = list(self._numbers)[self._known :]
        if fresh:
            while len(self._table) < len(self._numbers):
                self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            for start in range(0, len(fresh), 4096):
                some = fresh[start : start + 4096]
                self._table[self._known : self._known + len(some)] = self._vectors(some)
                self._known += len(some)
        return self._table


class Pool:
    """Candidates side by side: every array has one place for each, or (`p_...`) one for each of their pieces."""

    def __init__(self, rows: list[tuple[Any, ...]], vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.size = len(rows)
        self.ids = np.array([row[ID] for row in rows], np.int64)
        speakers = [row[SPEAKER] or "" for row in rows]
        self.speaker = np.array([speaker.casefold() for speaker in speakers])
        self.kind = np.array([_kind(speaker, row[WORDS]) for speaker, row in zip(speakers, rows, strict=True)])
        days: dict[str, int] = {}
        self.day = np.array([_day((row[START] or row[RECORDED] or "")[:10], days) for row in rows], np.int64)
        self.length = np.array([row[WORDS] or 1 for row in rows], np.float64)
        sessions: dict[int, int] = {}
        self.session = np.array([sessions.setdefault(row[DOC], len(sessions)) for row in rows], np.int64)
        self.sessions = len(sessions)
        self.turns = np.array([row[VERSIONS] if row[TURN] else 1 for row in rows], np.float64)
        place = {(row[DOC], row[SEQ]): number for number, row in enumerate(rows) if row[TURN]}
        self.previous = np.array([place.get((row[DOC], row[SEQ] - 1), -1) if row[TURN] else -1 for row in rows], np.int64)
        self.next = np.array([place.get((row[DOC], row[SEQ] + 1), -1) if row[TURN] else -1 for row in rows], np.int64)
        self.first = np.array([float(bool(row[TURN]) and row[SEQ] == 0) for row in rows])
        self._cut()

    def _cut(self) -> None:
        owners: list[int] = []
        marks: list[int] = []
        tokens: list[NDArray[Any]] = []
        for place, id in enumerate(self.ids.tolist()):
            its_marks, its_tokens = self.vocabulary.passage(id) or ([0], [np.zeros(0, np.int64)])
            owners.extend([place] * len(its_marks))
            marks.extend(its_marks)
            tokens.extend(its_tokens)
        self.p_owner = np.array(owners, np.int64)
        self.p_marks = np.array(marks, np.int64)
        self.p_length = np.array([len(one) for one in tokens], np.float64)
        self.tokens = np.concatenate(tokens) if tokens else np.zeros(0, np.int64)
        self.t_piece = np.repeat(np.arange(len(tokens)), self.p_length.astype(np.int64))
        self.p_first = np.searchsorted(self.p_owner, np.arange(self.size))

    def marked(self, mark: int) -> NDArray[Any]:
        """1 for the pieces that bear a mark, else 0."""
        return ((self.p_marks & mark) > 0).astype(np.float64)

    def count(self, term: str) -> NDArray[Any]:
        """How often each piece has a word."""
        mine = self.t_piece[self.holding(term)[self.tokens]]
        return np.bincount(mine, minlength=len(self.p_owner)).astype(np.float64)

    def holding(self, term: str) -> NDArray[Any]:
        """Which tokens have this word in them."""
        chosen = np.zeros(len(self.vocabulary), bool)
        chosen[self.vocabulary.holders(term)] = True
        return chosen

    def piece_of(self, owners: NDArray[Any], numbers: NDArray[Any]) -> NDArray[Any]:
        """The places among all pieces of these candidates' pieces."""
        counts = np.bincount(self.p_owner, minlength=self.size)
        places: NDArray[Any] = self.p_first[owners] + np.minimum(numbers, counts[owners] - 1)
        return places


def _kind(speaker: str, length: int) -> str:
    """Turns of named people, turns of a user and an assistant, short texts and long ones are weighed differently."""
    if not speaker:
        return "note" if length <= pieces.NOTE_WORDS else "long"
    return "chat" if speaker.casefold() in pieces.NAMELESS else "people"


def _day(day: str, known: dict[str, int]) -> int:
    """The number of a day; 0 if it is none."""
    number = known.get(day)
    if number is None:
        try:
            number = datetime.date.fromisoformat(day).toordinal()
        except ValueError:
            number = 0
        known[day] = number
    return number
