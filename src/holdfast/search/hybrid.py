"""Hybrid search: candidates by keywords, by similar vectors and by facts, ranked together.

Keyword search needs the index alone. Hybrid search also compares vectors; where passages have none yet, the result says so.
"""

from __future__ import annotations

from _thread import RLock
from _weakref import ref
from itertools import pairwise

from holdfast.base import dates
from holdfast.base.fork import on_fork
from holdfast.base.record import Record
from holdfast.errors import Template, command, default_words
from holdfast.index import tokenizer
from holdfast.index.results import SearchResult, keyword_result
from holdfast.search import abstention, chunking
from holdfast.search.fact_matches import match_facts
from holdfast.search.vectorize import Vectorizer, piece_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.embedders import Embedder
    from holdfast.errors import Wording
    from holdfast.index.filters import SearchFilter
    from holdfast.index.interface import Index
    from holdfast.index.results import FolderSize, Outline
    from holdfast.models import Progress
    from holdfast.search.candidates import CandidatePool, Vocabulary
    from holdfast.search.vectorize import QuestionVector

    QueryVectors = dict[str, QuestionVector]  # by role

_KEYWORD_CANDIDATES, _NEAREST_CANDIDATES = 200, 150  # by keywords, and by each model
_MAX_RANKED = 2000  # postings of a query's terms up to which the index ranks them one by one
_UNNAMED_SPEAKERS = ("user", "assistant", "system", "tool")  # speakers without a name
_RARE_NAME_PASSAGES = 5  # passages up to which a name counts as a signal of its own
_MIN_RESULTS = 40  # that are returned


class _Query(Record):
    """A query, with what the index knows of its words."""

    text: str
    filter: SearchFilter
    folders: list[FolderSize]
    terms: dict[str, str]  # each with the word of the query
    frequencies: dict[str, int]  # by term: how many passages have it
    people: list[str]  # named in it, who speak in transcripts
    now: str | None

    @property
    def folder_ids(self) -> list[int]:
        return [folder.id for folder in self.folders]

    @property
    def passages(self) -> int:
        return max(sum([folder.passages for folder in self.folders]), 1)

    @property
    def words(self) -> int:
        return sum([folder.words for folder in self.folders])


class _Nearest(Record):
    """The passages whose vectors are most similar to that of a query, by one model."""

    question: QuestionVector
    passages: list[int]


class HybridSearch:
    """Hybrid search of one process: its models, and what it has cached of terms and passages."""

    def __init__(self, index: Index, embedders: tuple[Embedder, ...]) -> None:
        self._index = index
        self.words: Wording = default_words  # how the reasons of a degraded answer name commands
        self.vectorizer = Vectorizer(index, embedders)
        self._vocabulary: tuple[int, Vocabulary] | None = None  # with the generation of the index
        self._lock = RLock()
        _searches.add(ref(self, _searches.discard))

    def search(
        self, query: str, filter: SearchFilter, *, limit: int, now: str | None, mode: str, explain: bool, progress: Progress
    ) -> SearchResult:
        """Return the ranked passages; `mode` is hybrid or semantic. Queries run one at a time, since they share a cache."""
        with self._lock, self._index.cache_query(filter):
            query = query.encode("utf-8", "replace").decode()  # a lone surrogate is in no text
            waiting = self.vectorizer.catch_up(progress)
            with self._index.read_transaction():
                return self._search(query, filter, limit=limit, now=now, mode=mode, explain=explain, waiting=waiting)

    def after_fork(self) -> None:
        """Discard the cache if a thread of the parent process may have left it half filled."""
        self.vectorizer.after_fork()
        if not self._lock.acquire(blocking=False):
            self._lock, self._vocabulary = RLock(), None
            self._index.after_fork()
        else:
            self._lock.release()

    def _search(
        self, text: str, filter: SearchFilter, *, limit: int, now: str | None, mode: str, explain: bool, waiting: dict[str, int]
    ) -> SearchResult:
        people = self._find_people(text, filter) if self.vectorizer.by_role else []
        vectors = self.vectorizer.embed_question(_to_first_person(text, people))
        models = _usable_models(vectors)
        reason = self._degraded_reason(waiting)
        if models == "none":
            return keyword_result(self._index.search(text, filter, limit), explain, reason)
        import numpy as np

        from holdfast.search import scoring

        semantic = mode == "semantic"
        terms, frequencies = self._index.resolve_terms(text, filter)
        folders = self._index.find_folders(filter)
        query = _Query(text=text, filter=filter, folders=folders, terms=terms, frequencies=frequencies, people=people, now=now)
        matched = [] if semantic else self._find_by_keywords(query)
        nearest = self._find_nearest(vectors, models, query.folder_ids)
        facts = {} if semantic else match_facts(self._index, text, filter, filter.as_of or now or dates.now())
        ids = dict.fromkeys([*matched, *facts, *[id for found in nearest.values() for id in found.passages]])
        rows = self._read_outlines(ids, filter)
        if not rows:
            return SearchResult([], mode, reason)
        pool, signals = self._compute_signals(query, rows, nearest, models)
        signals["fact"] = np.array([facts.get(id, 0.0) for id in pool.ids.tolist()])
        signals["name"] = self._find_rare_names(query, pool)
        score = scoring.total_scores(pool, signals, models, semantic)
        has_words = (signals["bmd"] > 0) | (signals["bmw"] > 0) | (signals["fact"] > 0)
        above_minimum = np.flatnonzero((score >= scoring.min_scores(pool)) | (has_words & (not semantic)))
        if not semantic:
            score -= scoring.LATER_PENALTY * signals["later"]  # ranked lower, not removed
        ranked = above_minimum[np.lexsort((pool.ids[above_minimum], -score[above_minimum]))]
        order = ranked[: max(2 * limit, _MIN_RESULTS)].tolist()
        positions = {rows[position].id: position for position in order}
        rows_by_id = {row.id: row for row in self._index.find_rows(positions, filter)}
        best = [rows_by_id[id].to_passage(float(score[position])) for id, position in positions.items() if id in rows_by_id]
        explained = positions if explain else {}
        explanations = {id: scoring.explain(pool, signals, models, position, semantic) for id, position in explained.items()}
        return SearchResult(
            found=best, mode=mode, reason=reason, why=explanations,
            threshold=0.0 if semantic else self._threshold(text, vectors),
            named=frozenset(pool.ids[signals["name"] > 0].tolist()),
        )  # fmt: skip

    # --- candidates -----------------------------------------------------------------------------------------------------------

    def _find_by_keywords(self, query: _Query) -> list[int]:
        """Return the passages with the most telling words of the query.

        Where the postings are few, the index ranks them all. Where they are many, it only lists them, and how rare their terms
        are and how short the passages are decides.
        """
        import numpy as np

        from holdfast.search import scoring

        filtered = query.filter.type or query.filter.tags
        max_candidates = _KEYWORD_CANDIDATES * 8 if filtered else _KEYWORD_CANDIDATES  # the filter may drop most of them
        if sum([query.frequencies.get(term, 0) for term in query.terms]) <= _MAX_RANKED:
            known = [term for term in query.terms if term in query.frequencies]
            return list(self._index.match_passages(known, query.filter, max_candidates))
        rarest = tokenizer.rarest_terms(query.terms, query.frequencies, 1)
        postings = [
            np.fromstring(ids, np.int64, sep=",") if ids else np.zeros(0, np.int64)
            for ids in self._index.find_postings(rarest, query.filter, tokenizer.POSTINGS)
        ]
        weights = np.array([_compute_idf(query.frequencies[term], query.passages) for term in rarest])
        all_ids = np.concatenate(postings)
        order = np.argsort(all_ids, kind="stable")  # fast, since the postings of each term are in order
        starts = np.flatnonzero(np.r_[True, all_ids[order[1:]] != all_ids[order[:-1]]])[: len(all_ids)]
        ids = all_ids[order[starts]]
        score = np.add.reduceat(np.repeat(weights, [len(posting) for posting in postings])[order], starts) if len(ids) else ids
        best = _find_highest(score, 4 * max_candidates)
        lengths = np.array(self._count_words(ids[best].tolist()), np.float64)
        ranked = score[best] / (1 + scoring.K1 * (1 - scoring.B + scoring.B * lengths * query.passages / max(query.words, 1)))
        found: list[int] = ids[best[np.argsort(-ranked, kind="stable")[:max_candidates]]].tolist()
        return found

    def _find_nearest(self, vectors: QueryVectors, models: str, folders: list[int]) -> dict[str, _Nearest]:
        """Return, by role, the passages nearest to the query's vector."""
        nearest = {}
        for role, question in vectors.items():
            if models == "all" or role == "static":
                passages = self._index.vectors.find_nearest(question.model, folders, question.vector, _NEAREST_CANDIDATES)
                nearest[role] = _Nearest(question, passages)
        return nearest

    def _read_outlines(self, ids: Iterable[int], filter: SearchFilter) -> list[Outline]:
        """Return the candidates, and the turns before and after those of people, who answer each other."""
        rows = self._index.find_outlines(ids, filter)
        people = [row.id for row in rows if row.turn and row.speaker not in _UNNAMED_SPEAKERS]
        if people:
            known = set(ids)
            adjacent = [id for id in dict.fromkeys(self._index.find_adjacent_turns(people)) if id not in known]
            rows += self._index.find_outlines(adjacent, filter)
        return rows

    # --- signals --------------------------------------------------------------------------------------------------------------

    def _compute_signals(
        self, query: _Query, rows: list[Outline], nearest: dict[str, _Nearest], models: str
    ) -> tuple[CandidatePool, dict[str, NDArray[Any]]]:
        """Return the candidates side by side, and every signal for each of them."""
        from holdfast.search import scoring
        from holdfast.search.candidates import day_number
        from holdfast.search.time_expressions import find_spans

        pool = self._make_pool(rows)
        of_people = {term for name in query.people for term in tokenizer.query_terms(name)}
        terms = {term: word for term, word in query.terms.items() if term not in of_people} or query.terms
        years = sorted({int(year) for year in {row.recorded[:4] for row in rows} if year.isdigit()})
        question = scoring.Question(
            text=query.text, terms=terms,
            idf={term: _compute_idf(query.frequencies.get(term, 0), query.passages) for term in terms},
            people=frozenset(query.people), times=find_spans(query.text, query.now, tuple(years[:50])),
            today=day_number(query.now[:10]) if query.now else 0,
        )  # fmt: skip
        similarities = {
            role: scoring.Similarity(
                self._index.vectors.vectors_of(found.question.model, query.folder_ids, pool.ids),
                found.question.vector,
                *found.question.similarity_range,
            )
            for role, found in nearest.items()
        }
        static: Any = self.vectorizer.by_role["static"]  # without it, keyword search ran
        word_vectors = static.words(list(terms.values()))
        average = query.words / query.passages
        return pool, scoring.compute_signals(
            pool, question, average=average, similarities=similarities, word_vectors=word_vectors, models=models
        )

    def _find_rare_names(self, query: _Query, pool: CandidatePool) -> NDArray[Any]:
        """Return 1 for the candidates that have a rare name of the query, such as an error code: models do not know these."""
        import numpy as np

        names = [
            term
            for term in abstention.find_names(query.text, query.terms)
            if 0 < query.frequencies.get(term, 0) <= _RARE_NAME_PASSAGES
        ]
        postings = self._index.find_postings(names, query.filter, _RARE_NAME_PASSAGES) if names else []
        with_name = {int(id) for ids in postings for id in ids.split(",") if id}
        return np.array([float(id in with_name) for id in pool.ids.tolist()])

    def _threshold(self, query: str, vectors: QueryVectors) -> float | None:
        """Return the score that a strong hit must reach; None where no model can tell, so that words must."""
        if "multi" not in vectors or "multi" not in self.vectorizer.by_role:
            return None
        likeness = float((self.vectorizer.embed_general_requests() @ vectors["multi"].vector).max())
        return abstention.threshold(query, likeness)

    def _make_pool(self, rows: list[Outline]) -> CandidatePool:
        from holdfast.search.candidates import CandidatePool

        vocabulary = self._open_vocabulary()
        vocabulary.clear_if_full()
        uncached = vocabulary.find_uncached([row.id for row in rows])
        pieces: dict[int, list[tuple[int, str]]] = {}
        for row in self._index.read_pieces(uncached) if uncached else ():
            pieces.setdefault(row.passage, []).append((row.marks, row.tokens))
        uncut = [id for id in uncached if id not in pieces]  # they wait for vectors
        for text in self._index.read_texts(uncut) if uncut else ():
            cut = enumerate(chunking.cut(text.text, text.speaker or ""))
            pieces[text.id] = [(piece.marks, piece_tokens(text.names, piece, text.speaker, number)) for number, piece in cut]
        vocabulary.add(pieces)
        return CandidatePool(rows, vocabulary)

    def _open_vocabulary(self) -> Vocabulary:
        """Return the cache of terms and passages, a new one for another index."""
        from holdfast.search.candidates import Vocabulary

        generation = self._index.generation()
        if self._vocabulary is None or self._vocabulary[0] != generation:
            static: Any = self.vectorizer.by_role["static"]
            self._vocabulary = generation, Vocabulary(lambda tokens: static.words([token.lower() for token in tokens]))
        return self._vocabulary[1]

    def _count_words(self, ids: list[int]) -> list[int]:
        """Return how many words each of these passages has; 0 for one that was deleted."""
        known = self._open_vocabulary().lengths
        if new := [id for id in ids if id not in known]:
            known.update({**dict.fromkeys(new, 0), **self._index.count_words(new)})
        return [known[id] for id in ids]

    def _find_people(self, query: str, filter: SearchFilter) -> list[str]:
        """Return the people named in a query, in one word or two, who speak in transcripts."""
        found = [token for token in tokenizer.tokens(query) if token[0].isupper()]
        pairs = [f"{first} {second}" for first, second in pairwise(found)]
        names = [name for name in dict.fromkeys([*found, *pairs]) if name.casefold() not in chunking.NAMELESS]
        return self._index.find_speakers(names, filter) if names else []

    def _degraded_reason(self, waiting: dict[str, int]) -> str:
        """Return why the result is less than it could be, or ""."""
        if not self.vectorizer.by_role:
            return "no embedder is set: keyword search ran"
        reasons = list(dict.fromkeys(self.vectorizer.failed.copy().values()))
        max_waiting = max(waiting.values(), default=0)
        if max_waiting and not reasons:
            waits = Template(f"{max_waiting:,} passages wait for their vectors: ", command("embed"), " creates them now")
            reasons.append(waits.render(self.words))
        if reasons and self.vectorizer.older:
            reasons.append(f"until then, older vectors of {', '.join(self.vectorizer.older)} answer")
        return "; ".join(reasons)


def _usable_models(vectors: QueryVectors) -> str:
    """Return which models can rank: all, static (the fast one alone), or none."""
    if "static" not in vectors:
        return "none"
    return "all" if "sentence" in vectors else "static"


def _to_first_person(query: str, names: list[str]) -> str:
    """Return the query as the named person would say it: turns do not name their own speaker."""
    import re

    for name in sorted(names, key=len, reverse=True):
        query = re.sub(rf"\b{re.escape(name)}['’]s\b", "my", query, flags=re.IGNORECASE)
        query = re.sub(rf"\b{re.escape(name)}\b", "I", query, flags=re.IGNORECASE)
    return " ".join(query.split())


def _find_highest(score: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the positions of the highest scores, highest first; of equal scores the last."""
    import numpy as np

    if len(score) > count:
        lowest = np.partition(score, -count)[-count]
        above = np.flatnonzero(score > lowest)
        positions = np.r_[above, np.flatnonzero(score == lowest)[len(above) - count :]]
    else:
        positions = np.arange(len(score))
    highest: NDArray[Any] = positions[np.lexsort((-positions, -score[positions]))]
    return highest


def _compute_idf(frequency: int, passages: int) -> float:
    """Return the inverse document frequency of a term."""
    import math

    frequency = min(frequency, passages)
    return math.log(1 + (passages - frequency + 0.5) / (frequency + 0.5))


_searches: set[ref[HybridSearch]] = set()


def _after_fork() -> None:
    for search in [search_object for reference in list(_searches) if (search_object := reference())]:
        search.after_fork()


on_fork(child=_after_fork)
