"""Hybrid search: candidates by keywords, by similar vectors and by facts, ranked together.

Keyword search needs the index alone. Hybrid search also compares vectors; where passages have none yet, the result says so.
"""

from __future__ import annotations

from _thread import RLock
from _weakref import ref
from itertools import pairwise

from holdfast.base import dates
from holdfast.base.fork import on_fork
from holdfast.base.lru import LruCache
from holdfast.base.record import Record
from holdfast.errors import Template, command, default_words
from holdfast.index import tokenizer
from holdfast.index.filters import END_OF_TIME
from holdfast.index.results import SearchResult, keyword_result
from holdfast.index.vectors import FoundCosines
from holdfast.search import abstention, chunking
from holdfast.search.fact_matches import match_facts
from holdfast.search.question import asks_for_many, find_named, find_parts, find_subject, to_first_person
from holdfast.search.rerank import Reranking
from holdfast.search.vectorize import MAX_CACHED_CHARS, Vectorizer, piece_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.embedders import Embedder
    from holdfast.errors import Wording
    from holdfast.index.filters import SearchFilter
    from holdfast.index.interface import Index
    from holdfast.index.results import FolderSize, FoundPassage
    from holdfast.index.vectors import Model
    from holdfast.models import Progress
    from holdfast.search.candidates import CandidatePool
    from holdfast.search.passage_cache import MeanVectors, Outlines, Vocabulary
    from holdfast.search.vectorize import QuestionVector

    QueryVectors = dict[str, QuestionVector]  # by role

_KEYWORD_CANDIDATES, _NEAREST_CANDIDATES = 200, 150  # numbers of candidates found by keywords, and by each model
_MAX_RANKED = 2000  # postings of a query's terms up to which the index ranks them one by one
_RARE_NAME_PASSAGES = 5  # passages up to which a name counts as a signal of its own
_MAX_SCORED, _MAX_SCORED_WORDS, _MIN_SCORED = 200, 200_000, 60  # candidates that get all signals, and the words in them
_ROUGH_SHARES = {"static": 0.5, "sentence": 1.0, "multi": 0.5}  # weights of the models when these candidates are chosen
_MIN_RESULTS = 40  # results that are returned at least
_CACHED_RESULTS, _CACHED_FILTERS = 256, 8  # results, and filters with outlines, for one content of the index
_CACHED_MODELS = 3  # models with cached mean vectors
_MAX_OUTLINES, _MAX_FOUND = 20_000, 2_000  # outlines and passages that are cached for a filter


class _Query(Record):
    """A query, or one of the things that it compares, with its vectors and what the index knows of its words."""

    asked: str  # the question as the caller wrote it
    text: str  # the part of it that is searched
    vectors: QueryVectors
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


class _CachedResult(Record):
    """The result of a search, and the period in which it is valid while the content of the index does not change."""

    result: SearchResult
    since: str
    until: str


class HybridSearch:
    """Hybrid search of one process: its models, and what it has cached of terms and passages."""

    def __init__(self, index: Index, embedders: tuple[Embedder, ...], reranking: Reranking | None = None) -> None:
        self._index = index
        self._reranking = reranking or Reranking()
        self.words: Wording = default_words  # how the reasons of a degraded answer name commands
        self.vectorizer = Vectorizer(index, embedders)
        self._vocabulary: tuple[int, Vocabulary] | None = None  # with the generation of the index
        self._means = LruCache(_CACHED_MODELS)  # of passages, by generation of the index and model
        self._content: object = None  # of the index, when these were cached:
        self._results, self._outlines = LruCache(_CACHED_RESULTS), LruCache(_CACHED_FILTERS)
        self._lock = RLock()
        _searches.add(ref(self, _searches.discard))

    def search(
        self, query: str, filter: SearchFilter, *, limit: int, now: str | None, mode: str, explain: bool, progress: Progress
    ) -> SearchResult:
        """Return the ranked passages; `mode` is hybrid or semantic. Queries run one at a time, since they share a cache.

        The reranker runs outside of the lock: it may take longer than everything else.
        """
        with self._lock, self._index.cache_query(filter):
            query = query.encode("utf-8", "replace").decode()  # a lone surrogate is in no text
            waiting = self.vectorizer.catch_up(progress)
            with self._index.read_transaction():
                self._check_content()
                result = self._search(query, filter, limit=limit, now=now, mode=mode, explain=explain, waiting=waiting)
                texts = self._reranking.read_texts(self._index, result)
        return self._reranking.rerank(query, result, texts, explain)

    def after_fork(self) -> None:
        """Discard the cache if a thread of the parent process may have left it half filled."""
        self.vectorizer.after_fork()
        self._reranking.after_fork()
        if not self._lock.acquire(blocking=False):
            self._lock, self._vocabulary, self._content = RLock(), None, None
            self._means.clear()
        else:
            self._lock.release()

    def _search(
        self, text: str, filter: SearchFilter, *, limit: int, now: str | None, mode: str, explain: bool, waiting: dict[str, int]
    ) -> SearchResult:
        asked, text = text, find_subject(text) or text
        people = self._find_people(text, filter) if self.vectorizer.by_role else []
        folders = self._index.find_folders(filter)
        vectors = self.vectorizer.embed_question(to_first_person(text, people), [folder.id for folder in folders])
        models = _usable_models(vectors)
        reason = self._degraded_reason(waiting)
        if models == "none":
            return keyword_result(self._index.search(text, filter, limit), explain, reason)
        facts = {} if mode == "semantic" else match_facts(self._index, text, filter, filter.as_of or now or dates.now())
        used = tuple([(role, question.model.id, question.similarity_range) for role, question in vectors.items()])
        key = (asked, limit, now, mode, used, tuple(facts.items()), *_filter_key(filter))
        cached: _CachedResult | None = None if explain else self._results.get(key)
        if cached is None or not cached.since <= filter.now < cached.until:
            query = self._make_query(asked, text, vectors, filter, folders, people, now)
            threshold = 0.0 if mode == "semantic" else self.vectorizer.compute_threshold(asked, people, vectors)
            cached = self._rank(query, limit=limit, mode=mode, explain=explain, models=models, facts=facts, threshold=threshold)
            may_cache = self._content is not None and len(asked) <= MAX_CACHED_CHARS
            if may_cache and not explain and not self.vectorizer.failed:  # callers may change an explanation
                self._results.put(key, cached)
        return cached.result.replace(found=[*cached.result.found], reason=reason)

    def _make_query(
        self, asked: str, text: str, vectors: QueryVectors, filter: SearchFilter, folders: list[FolderSize],
        people: list[str], now: str | None,
    ) -> _Query:  # fmt: skip
        terms, frequencies = self._index.resolve_terms(text, filter)
        return _Query(
            asked=asked, text=text, vectors=vectors, filter=filter, folders=folders, terms=terms, frequencies=frequencies,
            people=people, now=now,
        )  # fmt: skip

    def _make_parts(self, query: _Query) -> list[_Query]:
        """Return the two things that a query compares as queries of their own, if it does."""
        parts = []
        for text in find_parts(query.text):
            people = find_named(text, query.people)
            vectors = self.vectorizer.embed_question(to_first_person(text, people), query.folder_ids)
            if vectors.keys() == query.vectors.keys():
                parts.append(self._make_query(text, text, vectors, query.filter, query.folders, people, query.now))
        return parts

    def _rank(
        self, query: _Query, *, limit: int, mode: str, explain: bool, models: str, facts: dict[int, float],
        threshold: float | None,
    ) -> _CachedResult:  # fmt: skip
        """Find candidates, score them, and return the best."""
        import numpy as np

        from holdfast.search import scoring

        semantic, filter = mode == "semantic", query.filter
        queries = [query, *([] if semantic else self._make_parts(query))]
        matched = [{} if semantic else self._find_by_keywords(one) for one in queries]
        nearest = [id for one in queries for id in self._find_nearest(one, models)]
        ids = dict.fromkeys([*[id for found in matched for id in found], *facts, *nearest])
        outlines = self._open_outlines(filter)
        candidates = self._read_outlines(outlines, ids, filter)
        if not len(candidates):
            return _CachedResult(SearchResult([], mode), filter.now, END_OF_TIME)
        compared = [self._compare(one, models, outlines.ids_at(candidates)) for one in queries]
        chosen = self._choose_best(outlines, candidates, matched, facts, compared)
        positions = self._add_adjacent(outlines, candidates[chosen], filter)
        until = outlines.find_next_end(np.concatenate([candidates, positions]))
        pool = self._make_pool(outlines, positions)
        all_signals = [
            self._compute_signals(one, pool, self._extend(one, models, found, chosen, pool), models)
            for one, found in zip(queries, compared, strict=True)
        ]
        signals = all_signals[0]
        signals["fact"] = np.array([facts.get(id, 0.0) for id in pool.ids.tolist()])
        signals["name"] = self._find_rare_names(query, pool)
        score, *part_scores = [scoring.total_scores(pool, one, models, semantic) for one in all_signals]
        has_words = (signals["bmd"] > 0) | (signals["bmw"] > 0) | (signals["fact"] > 0)
        above_minimum = np.flatnonzero((score >= scoring.min_scores(pool)) | (has_words & (not semantic)))
        first_score = score
        if not semantic:  # ranked lower, not removed
            first_score = score + scoring.ADJUSTMENTS["later"] * signals["later"]
            score = scoring.order_by_question(pool, first_score, signals, part_scores, asks_for_many(query.asked))
        ranked = above_minimum[np.lexsort((pool.ids[above_minimum], -score[above_minimum]))]
        best = ranked[: max(2 * limit, _MIN_RESULTS)].tolist()
        passages = self._read_passages(outlines, pool.ids[best].tolist(), filter)
        found = [passages[id].replace(score=float(score[at])) for at in best if (id := int(pool.ids[at])) in passages]
        why = {int(pool.ids[at]): scoring.explain(pool, signals, models, at, semantic) for at in best} if explain else {}
        result = SearchResult(
            found=found, mode=mode, why=why, threshold=threshold, named=frozenset(pool.ids[signals["name"] > 0].tolist()),
            first_scores={} if score is first_score else {int(pool.ids[at]): float(first_score[at]) for at in best},
        )  # fmt: skip
        return _CachedResult(result, filter.now, until)

    # --- what is cached while the content of the index is the same ------------------------------------------------------------

    def _check_content(self) -> None:
        """Discard what was cached for another content; where the content is not known (None), nothing is kept."""
        content = self._index.content_version()
        if content is None or content != self._content:
            self._content = content
            self._results.clear()
            self._outlines.clear()

    def _open_outlines(self, filter: SearchFilter) -> Outlines:
        from holdfast.search.passage_cache import Outlines

        outlines: Outlines | None = self._outlines.get(_filter_key(filter))
        if outlines is None or len(outlines) > _MAX_OUTLINES:
            outlines = Outlines()
            self._outlines.put(_filter_key(filter), outlines)
        return outlines

    def _read_passages(self, outlines: Outlines, ids: Iterable[int], filter: SearchFilter) -> dict[int, FoundPassage]:
        """Return these candidates as passages, without their scores."""
        known = outlines.passages
        if len(known) > _MAX_FOUND:
            known.clear()
        if new := [id for id in ids if id not in known]:
            known.update({row.id: row.to_passage(0.0) for row in self._index.find_rows(new, filter)})
        return known

    # --- candidates -----------------------------------------------------------------------------------------------------------

    def _find_by_keywords(self, query: _Query) -> dict[int, float]:
        """Return the passages with the most telling words of the query, each with the weight of these words.

        Where the postings are few, the index ranks them all. Where they are many, it only lists them, and how rare their terms
        are and how short the passages are decides.
        """
        import numpy as np

        from holdfast.search import scoring
        from holdfast.search.candidates import find_highest

        filtered = query.filter.type or query.filter.tags
        max_candidates = _KEYWORD_CANDIDATES * 8 if filtered else _KEYWORD_CANDIDATES  # the filter may drop most of them
        if sum([query.frequencies.get(term, 0) for term in query.terms]) <= _MAX_RANKED:
            known = [term for term in query.terms if term in query.frequencies]
            return {id: -rank for id, rank in self._index.match_passages(known, query.filter, max_candidates).items()}
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
        best = find_highest(score, 4 * max_candidates)
        lengths = np.array(self._count_words(ids[best].tolist()), np.float64)
        ranked = score[best] / (1 + scoring.K1 * (1 - scoring.B + scoring.B * lengths * query.passages / max(query.words, 1)))
        highest = np.argsort(-ranked, kind="stable")[:max_candidates]
        return dict(zip(ids[best[highest]].tolist(), ranked[highest].tolist(), strict=True))

    def _find_nearest(self, query: _Query, models: str) -> list[int]:
        """Return the passages whose vectors are most similar to those of the query, by each model."""
        found = []
        for question in _used_vectors(query, models).values():
            found += self._index.vectors.find_nearest(question.model, query.folder_ids, question.vector, _NEAREST_CANDIDATES)
        return found

    def _read_outlines(self, outlines: Outlines, ids: Iterable[int], filter: SearchFilter) -> NDArray[Any]:
        """Return the positions of the candidates that pass the filter."""
        if uncached := outlines.find_uncached(ids):
            outlines.add(uncached, self._index.find_outlines(uncached, filter))
        return outlines.select(ids, filter.now)

    def _choose_best(
        self, outlines: Outlines, positions: NDArray[Any], matched: list[dict[int, float]], facts: dict[int, float],
        compared: list[dict[str, FoundCosines]],
    ) -> NDArray[Any]:  # fmt: skip
        """Return which candidates are best by words and by similarity: the signals of each cost time, more of long ones.

        `matched` and `compared` are those of the query and of its parts; the highest value counts.
        """
        import numpy as np

        from holdfast.search.candidates import max_by_owner
        from holdfast.search.passage_cache import WORDS

        words, ids = outlines.take(positions)[:, WORDS], outlines.ids_at(positions)
        if len(positions) <= _MAX_SCORED and int(words.sum()) <= _MAX_SCORED_WORDS:
            return np.arange(len(positions))
        score = np.full(len(positions), -np.inf)
        for by_words, by_similarity in zip(matched, compared, strict=True):
            highest = max(by_words.values(), default=0.0) or 1.0
            rough = np.array([by_words.get(id, 0.0) for id in ids]) / (2 * highest)
            for role, found in by_similarity.items():
                rough += _ROUGH_SHARES[role] * max_by_owner(found, len(positions))
            score = np.maximum(score, rough)
        if facts:
            score += [facts.get(id, 0.0) for id in ids]
        order = np.argsort(-score, kind="stable")[:_MAX_SCORED]
        fits = max(int(np.searchsorted(np.cumsum(words[order]), _MAX_SCORED_WORDS)), _MIN_SCORED)
        return np.sort(order[:fits])

    def _compare(self, query: _Query, models: str, ids: list[int]) -> dict[str, FoundCosines]:
        """Return, by role, how similar the vectors of these passages are to the query."""
        import numpy as np

        passages, vectors = np.array(ids, np.int64), self._index.vectors
        return {
            role: vectors.cosines_of(question.model, query.folder_ids, passages, question.vector)
            for role, question in _used_vectors(query, models).items()
        }

    def _extend(
        self, query: _Query, models: str, found: dict[str, FoundCosines], chosen: NDArray[Any], pool: CandidatePool
    ) -> dict[str, FoundCosines]:
        """Return the similarities of the chosen candidates, and of the turns that were added after them."""
        from holdfast.search.candidates import join_chosen

        added = pool.ids[len(chosen) :].tolist()
        found_added = self._compare(query, models, added) if added else {}
        return {role: join_chosen(found[role], chosen, found_added.get(role)) for role in found}

    def _add_adjacent(self, outlines: Outlines, positions: NDArray[Any], filter: SearchFilter) -> NDArray[Any]:
        """Add the turns before and after those of people, who answer each other."""
        isolated = outlines.find_isolated(positions)
        if len(isolated):
            adjacent = self._index.find_adjacent_turns(outlines.ids_at(isolated))
            if uncached := outlines.find_uncached(dict.fromkeys(adjacent)):
                outlines.add(uncached, self._index.find_outlines(uncached, filter))
            outlines.link(isolated)
        return outlines.add_adjacent(positions, filter.now)

    # --- signals --------------------------------------------------------------------------------------------------------------

    def _compute_signals(
        self, query: _Query, pool: CandidatePool, cosines: dict[str, FoundCosines], models: str
    ) -> dict[str, NDArray[Any]]:
        """Return every signal for each of the candidates."""
        from holdfast.search import scoring
        from holdfast.search.passage_cache import day_number
        from holdfast.search.question import Question
        from holdfast.search.time_expressions import find_spans

        of_people = {term for name in query.people for term in tokenizer.query_terms(name)}
        terms = {term: word for term, word in query.terms.items() if term not in of_people} or query.terms
        question = Question(
            text=query.text, terms=terms,
            idf={term: _compute_idf(query.frequencies.get(term, 0), query.passages) for term in terms},
            people=frozenset(query.people), times=find_spans(query.text, query.now, tuple(pool.years[:50])),
            today=day_number(query.now[:10]) if query.now else 0,
        )  # fmt: skip
        similarities = {
            role: scoring.Similarity(
                found,
                query.vectors[role].vector,
                self._mean_reader(query.vectors[role].model, query.folder_ids, pool.ids),
                *query.vectors[role].similarity_range,
            )
            for role, found in cosines.items()
        }
        static: Any = self.vectorizer.by_role["static"]  # without it, keyword search ran
        word_vectors = static.words(list(terms.values()))
        average = query.words / query.passages
        return scoring.compute_signals(
            pool, question, average=average, similarities=similarities, word_vectors=word_vectors, models=models
        )

    def _mean_reader(self, model: Model, folders: list[int], ids: NDArray[Any]) -> Callable[[], NDArray[Any]]:
        """Return a function that reads the mean vectors of the candidates: not all kinds of them need it."""
        from holdfast.search import scoring

        def read_new(new: NDArray[Any]) -> NDArray[Any]:
            return scoring.mean_vectors(self._index.vectors.vectors_of(model, folders, new), len(new))

        return lambda: self._open_means(model).read(ids.tolist(), read_new)

    def _open_means(self, model: Model) -> MeanVectors:
        from holdfast.search.passage_cache import MeanVectors

        key = self._index.generation(), model.id
        means: MeanVectors | None = self._means.get(key)
        if means is None:
            means = MeanVectors(model.dim)
            self._means.put(key, means)
        return means

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

    def _make_pool(self, outlines: Outlines, positions: NDArray[Any]) -> CandidatePool:
        from holdfast.search.candidates import CandidatePool

        vocabulary = self._open_vocabulary()
        vocabulary.clear_if_full()
        uncached = vocabulary.find_uncached(outlines.ids_at(positions))
        pieces: dict[int, list[tuple[int, str]]] = {}
        for passage, marks, tokens in self._index.read_pieces(uncached) if uncached else ():
            pieces.setdefault(passage, []).append((marks, tokens))
        uncut = [id for id in uncached if id not in pieces]  # they wait for vectors
        names = self._read_names(outlines, positions, uncut) if uncut else {}
        for text in self._index.read_texts(uncut) if uncut else ():
            cut = enumerate(chunking.cut(text.text, text.speaker or "", names.get(text.id, ())))
            pieces[text.id] = [(piece.marks, piece_tokens(text.names, piece, text.speaker, number)) for number, piece in cut]
        vocabulary.add(pieces)
        return CandidatePool(outlines, positions, vocabulary)

    def _read_names(self, outlines: Outlines, positions: NDArray[Any], ids: list[int]) -> dict[int, tuple[str, ...]]:
        """Return, for these passages, the names of the people who speak in their transcripts."""
        from holdfast.search.passage_cache import DOC, ID, TURNS

        transcripts = {id: doc for id, doc, turns in outlines.take(positions)[:, [ID, DOC, TURNS]].tolist() if turns}
        wanted = {id: transcripts[id] for id in ids if id in transcripts}
        names = {doc: self.vectorizer.read_person_names(doc) for doc in set(wanted.values())}
        return {id: names[doc] for id, doc in wanted.items()}

    def _open_vocabulary(self) -> Vocabulary:
        """Return the cache of terms and passages, a new one for another index."""
        from holdfast.search.passage_cache import Vocabulary

        generation = self._index.generation()
        if self._vocabulary is None or self._vocabulary[0] != generation:
            static: Any = self.vectorizer.by_role["static"]  # not its `words`, which would keep each row a second time
            self._vocabulary = generation, Vocabulary(lambda tokens: static.questions([token.lower() for token in tokens]))
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
            reasons.append(f"meanwhile, older vectors of {', '.join(self.vectorizer.older)} answer")
        return "; ".join(reasons)


def _filter_key(filter: SearchFilter) -> tuple[object, ...]:
    """Return what a filter asks for, apart from the current time."""
    return filter.scopes, filter.part, filter.type, filter.tags, filter.as_of, filter.known_at


def _used_vectors(query: _Query, models: str) -> QueryVectors:
    """Return the vectors of a query by the models that rank."""
    return {role: question for role, question in query.vectors.items() if models == "all" or role == "static"}


def _usable_models(vectors: QueryVectors) -> str:
    """Return which models can rank: all, static (the fast one alone), or none."""
    if "static" not in vectors:
        return "none"
    return "all" if "sentence" in vectors else "static"


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
