"""Search by words and by meaning: candidates from both, one order for all. The steps of a recall.

Keyword search needs the catalogue alone. Hybrid search also compares vectors; where passages still lack theirs, it says so.
"""

from __future__ import annotations

import os
from _thread import RLock
from _weakref import ref
from itertools import pairwise

from holdfast.base import dates
from holdfast.index import tokenizer
from holdfast.index.results import ID, RECORDED, SPEAKER, TURN, SearchResult
from holdfast.index.sqlite import by_words, found_of
from holdfast.search import abstention, chunking
from holdfast.search.fact_matches import find_stating_passages
from holdfast.search.vectorize import Vectorizer, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.embedders import Embedder
    from holdfast.index.sqlite import SearchFilter, SqliteIndex
    from holdfast.index.vectors import Model
    from holdfast.models import Progress
    from holdfast.search.candidates import CandidatePool, Vocabulary

_LEXICAL, _NEAR = 200, 150  # candidates by words, and by each model
_RATED = 2000  # mentions of a question's words that the catalogue rates one by one
_ROLES = ("user", "assistant", "system", "tool")  # who does not speak under a name
_RARE = 5  # passages that have a name at most for it to count by itself
_BEST = 40  # at least, that are put in their final order


class HybridSearch:
    """Hybrid search of one process: its models, and what it remembers of words and passages."""

    def __init__(self, index: SqliteIndex, embedders: tuple[Embedder, ...]) -> None:
        self._index = index
        self.vectorizer = Vectorizer(index, embedders)
        self._vocabulary: tuple[int, Vocabulary] | None = None
        self._lock = RLock()
        _seekers.add(ref(self, _seekers.discard))

    def search(
        self,
        query: str,
        asked: SearchFilter,
        limit: int,
        now: str | None,
        mode: str,
        explain: bool,
        progress: Progress,
    ) -> SearchResult:
        """The order of everything that may answer. One question after the other: what is remembered of words is shared."""
        with self._lock, self._index.cache_query(asked):
            query = query.encode("utf-8", "replace").decode()  # half a character is in no text
            left = self.vectorizer.catch_up(progress)
            with self._index.read_transaction():
                return self._search(query, asked, limit, now, mode, explain, left)

    def after_fork(self) -> None:
        """In a child: the threads that asked here did not come along, and what one of them was about to remember is half."""
        self.vectorizer.after_fork()
        if not self._lock.acquire(blocking=False):
            self._lock, self._vocabulary = RLock(), None
            self._index.after_fork()
        else:
            self._lock.release()

    def _search(
        self, query: str, asked: SearchFilter, limit: int, now: str | None, mode: str, explain: bool, left: dict[str, int]
    ) -> SearchResult:
        named = self._named(query, asked) if self.vectorizer.by_role else []
        vectors = self.vectorizer.embed_question(_first_person(query, named))
        legs = self._legs(vectors)
        reason = self._reason(left)
        if legs == "lexical":
            return by_words(self._index.search(query, asked, limit), explain, reason)
        import numpy as np

        from holdfast.search import scoring

        terms, common = self._index.resolve_terms(query, asked)
        most = _LEXICAL * 8 if asked.type or asked.tags else _LEXICAL  # more where some may be filtered out
        folders = self._index.find_folders(asked)
        matched = self._by_words(terms, common, asked, folders, most) if mode != "semantic" else []
        near = self._near(vectors, legs, [id for id, _, _ in folders])
        facts = find_stating_passages(self._index, query, asked, asked.as_of or now or dates.now()) if mode != "semantic" else {}
        ids = dict.fromkeys([*matched, *facts, *[id for _, _, some in near.values() for id in some]])
        rows = self._rows(ids, asked)
        if not rows:
            return SearchResult([], mode, reason)
        pool, found = self._signals(query, rows, terms, common, named, near, folders, now, legs)
        found["fact"] = np.array([facts.get(id, 0.0) for id in pool.ids.tolist()])
        found["name"] = self._names(query, terms, common, asked, pool)
        score = scoring.total(pool, found, legs, mode == "semantic")
        has_words = (found["bmd"] > 0) | (found["bmw"] > 0) | (found["fact"] > 0)
        kept = np.flatnonzero((score >= scoring.floor(pool)) | (has_words & (mode != "semantic")))
        if mode != "semantic":
            score -= scoring.LATER * found["later"]  # ranked lower, not removed
        order = kept[np.lexsort((pool.ids[kept], -score[kept]))][: max(2 * limit, _BEST)].tolist()
        places = {rows[place][ID]: place for place in order}
        whole = {row[0]: row for row in self._index.rows(places, asked)}
        best = [found_of(whole[id], float(score[place])) for id, place in places.items() if id in whole]
        why = {id: scoring.why(pool, found, legs, place, mode == "semantic") for id, place in places.items()} if explain else {}
        having = frozenset(pool.ids[found["name"] > 0].tolist())
        return SearchResult(
            best, mode, reason, why, 0.0 if mode == "semantic" else self._threshold(query, vectors), named=having
        )

    def _names(
        self, query: str, terms: dict[str, str], common: dict[str, int], asked: SearchFilter, pool: CandidatePool
    ) -> NDArray[Any]:
        """1 for the candidates that have a rare name of the question, such as an error code; models know nothing of these."""
        import numpy as np

        names = [term for term in abstention.find_names(query, terms) if 0 < common.get(term, 0) <= _RARE]
        having = {int(id) for ids in self._index.find_postings(names, asked, _RARE) for id in ids.split(",") if id} if names else set()
        return np.array([float(id in having) for id in pool.ids.tolist()])

    def _threshold(self, query: str, vectors: dict[str, tuple[Model, NDArray[Any]]]) -> float | None:
        """Return the score that a strong hit must reach; None where no model can tell, so that words must."""
        if "multi" not in vectors or "multi" not in self.vectorizer.by_role:
            return None
        likeness = float((self.vectorizer.general_requests() @ vectors["multi"][1]).max())
        return abstention.threshold(query, likeness)

    def _by_words(
        self, terms: dict[str, str], common: dict[str, int], asked: SearchFilter, folders: list[tuple[int, int, int]], most: int
    ) -> list[int]:
        """The passages with the most telling words of the question. Where mentions are few the catalogue rates them all; where
        they are many it names them, and how rare their words are and how short they are decides."""
        import numpy as np

        from holdfast.search import scoring

        if sum([common.get(term, 0) for term in terms]) <= _RATED:
            return list(self._index.match_passages([term for term in terms if term in common], asked, most))
        passages, total = _sizes(folders)
        chosen = tokenizer.rarest_terms(terms, common, 1)
        named = self._index.find_postings(chosen, asked, tokenizer.POSTINGS)
        mentions = [np.fromstring(one, np.int64, sep=",") if one else np.zeros(0, np.int64) for one in named]
        worth = np.array([_idf(common[term], passages) for term in chosen])
        every = np.concatenate(mentions)
        order = np.argsort(every, kind="stable")  # quick, since the mentions of each word are in order
        starts = np.flatnonzero(np.r_[True, every[order[1:]] != every[order[:-1]]])[: len(every)]
        ids = every[order[starts]]
        score = np.add.reduceat(np.repeat(worth, [len(some) for some in mentions])[order], starts) if len(ids) else ids
        best = _highest(score, 4 * most)
        words_of = np.array(self._lengths(ids[best].tolist()), np.float64)
        rated = score[best] / (1 + scoring.K1 * (1 - scoring.B + scoring.B * words_of * passages / max(total, 1)))
        found: list[int] = ids[best[np.argsort(-rated, kind="stable")[:most]]].tolist()
        return found

    def _lengths(self, ids: list[int]) -> list[int]:
        """How many words each of these passages has; 0 of one that is gone."""
        known = self._words().lengths
        if fresh := [id for id in ids if id not in known]:
            known.update({**dict.fromkeys(fresh, 0), **dict(self._index.count_words(fresh))})
        return [known[id] for id in ids]

    def _rows(self, ids: Iterable[int], asked: SearchFilter) -> list[tuple[Any, ...]]:
        """The candidates, and the turns just before and after those of people, who answer each other."""
        rows = self._index.find_outlines(ids, asked)
        people = [row[ID] for row in rows if row[TURN] and row[SPEAKER] not in _ROLES]
        if people:
            known = set(ids)
            rows += self._index.find_outlines([id for id in dict.fromkeys(self._index.find_adjacent_turns(people)) if id not in known], asked)
        return rows

    def _signals(
        self, query: str, rows: list[tuple[Any, ...]], terms: dict[str, str], common: dict[str, int], named: list[str],
        near: dict[str, tuple[Model, NDArray[Any], list[int]]], folders: list[tuple[int, int, int]], now: str | None,
        legs: str,
    ) -> tuple[CandidatePool, dict[str, NDArray[Any]]]:  # fmt: skip
        from holdfast.search import scoring
        from holdfast.search.candidates import day_of
        from holdfast.search.time_expressions import spans

        pool = self._pool(rows)
        passages, total = _sizes(folders)
        names = {term for name in named for term in tokenizer.query_terms(name)}
        kept = {term: word for term, word in terms.items() if term not in names} or terms
        years = sorted({int(year) for year in {row[RECORDED][:4] for row in rows} if year.isdigit()})
        question = scoring.Question(
            query, kept, {term: _idf(common.get(term, 0), passages) for term in kept}, frozenset(named),
            spans(query, now, tuple(years[:50])), day_of(now[:10]) if now else 0,
        )  # fmt: skip
        nearness = {
            role: scoring.Nearness(*self._index.vectors.vectors_of(model, [id for id, _, _ in folders], pool.ids), vector)
            for role, (model, vector, _) in near.items()
        }
        static: Any = self.vectorizer.by_role["static"]  # without it, words alone are searched
        return pool, scoring.signals(pool, question, total / passages, nearness, static.words(list(kept.values())), legs)

    def _words(self) -> Vocabulary:
        """What is remembered of this catalogue."""
        from holdfast.search.candidates import Vocabulary

        generation = self._index.generation()
        if self._vocabulary is None or self._vocabulary[0] != generation:
            static: Any = self.vectorizer.by_role["static"]
            self._vocabulary = generation, Vocabulary(lambda some: static.words([one.lower() for one in some]))
        return self._vocabulary[1]

    def _pool(self, rows: list[tuple[Any, ...]]) -> CandidatePool:
        from holdfast.search.candidates import CandidatePool

        vocabulary = self._words()
        vocabulary.make_room()
        fresh = vocabulary.unseen([row[ID] for row in rows])
        cut: dict[int, list[tuple[int, str]]] = {}
        for passage, marks, tokens in self._index.read_pieces(fresh) if fresh else ():
            cut.setdefault(passage, []).append((marks, tokens))
        uncut = [id for id in fresh if id not in cut]  # what waits for its vectors
        for passage, names, text, speaker in self._index.read_texts(uncut) if uncut else ():
            some = enumerate(chunking.cut(text, speaker or ""))
            cut[passage] = [(piece.marks, tokens_of(names, piece, speaker, place)) for place, piece in some]
        vocabulary.add(cut)
        return CandidatePool(rows, vocabulary)

    def _near(
        self, vectors: dict[str, tuple[Model, NDArray[Any]]], legs: str, folders: list[int]
    ) -> dict[str, tuple[Model, NDArray[Any], list[int]]]:
        """By role: the model, the question's vector, and the passages nearest to it."""
        near = {}
        for role, (model, vector) in vectors.items():
            if legs == "all" or role == "static":
                near[role] = model, vector, self._index.vectors.find_nearest(model, folders, vector, _NEAR)
        return near

    def _reason(self, left: dict[str, int]) -> str:
        """Why an answer is less than it could be."""
        if not self.vectorizer.by_role:
            return "no embedder is set: keyword search ran"
        said = list(dict.fromkeys(self.vectorizer.failed.copy().values()))
        waiting = max(left.values(), default=0)
        if waiting and not said:
            said.append(f"{waiting:,} passages wait for their vectors: `holdfast embed` makes them now")
        if said and self.vectorizer.older:
            said.append(f"until then the older vectors of {', '.join(self.vectorizer.older)} answer")
        return "; ".join(said)

    def _legs(self, vectors: dict[str, tuple[Model, NDArray[Any]]]) -> str:
        """What an order can stand on: every model, the quick one alone, or words alone."""
        if "static" not in vectors:
            return "lexical"
        return "all" if "sentence" in vectors else "static"

    def _named(self, query: str, asked: SearchFilter) -> list[str]:
        """The people named in a question who speak in sessions: one word or two."""
        found = [token for token in tokenizer.tokens(query) if token[0].isupper()]
        pairs = [f"{first} {second}" for first, second in pairwise(found)]
        every = [name for name in dict.fromkeys([*found, *pairs]) if name.casefold() not in chunking.NAMELESS]
        return self._index.find_speakers(every, asked) if every else []


def _first_person(query: str, names: list[str]) -> str:
    """The question as the named person would say it: turns do not name their own speaker."""
    import re

    for name in sorted(names, key=len, reverse=True):
        query = re.sub(rf"\b{re.escape(name)}['’]s\b", "my", query, flags=re.IGNORECASE)
        query = re.sub(rf"\b{re.escape(name)}\b", "I", query, flags=re.IGNORECASE)
    return " ".join(query.split())


def _highest(score: NDArray[Any], most: int) -> NDArray[Any]:
    """The places of the highest, highest first; of equals the last."""
    import numpy as np

    if len(score) > most:
        least = np.partition(score, -most)[-most]
        above = np.flatnonzero(score > least)
        some = np.r_[above, np.flatnonzero(score == least)[len(above) - most :]]
    else:
        some = np.arange(len(score))
    highest: NDArray[Any] = some[np.lexsort((-some, -score[some]))]
    return highest


def _sizes(folders: list[tuple[int, int, int]]) -> tuple[int, int]:
    """How many passages some folders have, and how many words."""
    return max(sum([count for _, count, _ in folders]), 1), sum([count for _, _, count in folders])


def _idf(frequency: int, passages: int) -> float:
    import math

    frequency = min(frequency, passages)
    return math.log(1 + (passages - frequency + 0.5) / (frequency + 0.5))


_seekers: set[ref[HybridSearch]] = set()


def _in_the_child() -> None:
    for seeker in [one for reference in list(_seekers) if (one := reference())]:
        seeker.after_fork()


os.register_at_fork(after_in_child=_in_the_child)
