"""Rerank the best passages of a hybrid search: a model that reads each of them together with the question adds to its score.

What it adds is never negative, so the passages that it reads stay ahead of the others. Whether a hit is weak is decided by the
score before, to which the threshold was fitted: a reranker changes the order only.
docs/adr/0046-rerank-the-best-passages.md has the figures.
"""

from __future__ import annotations

import time
from _thread import allocate_lock
from hashlib import sha256

from holdfast.embedders.rerankers import NONE, open_reranker
from holdfast.errors import ConfigError, Trouble
from holdfast.search import abstention, chunking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders.rerankers import Reranker
    from holdfast.index.interface import Index
    from holdfast.index.results import Explanation, FoundPassage, SearchResult

    Relevance = list[float | None]  # of each passage; None: the model cannot read it

PASSAGES = 20  # the best ones, which the reranker reads
WEIGHT = 0.2  # of its judgement: what it adds to a score at most
_PASSAGE_CHARS, _QUESTION_CHARS = 2000, 1000  # that it reads at most
_RETRY_SECONDS = 30.0  # before a reranker that failed is tried again
_CACHED_QUESTIONS = 64


class Reranking:
    """The reranker of one process, and what it said about the last questions."""

    def __init__(self, setting: str = NONE, key: str | None = None) -> None:
        self._setting, self._key = setting, key
        self._is_set = setting.strip().lower() != NONE
        self._reranker: Reranker | None = None  # opened with the first question
        self._failed, self._retry_at = "", 0.0  # why it could not be used, and when it is tried again
        self._retrying = allocate_lock()  # held by the one question that tries it again
        self._cache: dict[bytes, Relevance] = {}  # threads use it without a lock, by single operations

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent process may have held."""
        self._retrying = allocate_lock()

    def read_texts(self, index: Index, result: SearchResult) -> list[str]:
        """Return the texts of the passages to read, best first; none if no reranker is set or the search was not hybrid."""
        if not self._is_set or result.mode != "hybrid":
            return []
        ids = [passage.passage for passage in result.found[:PASSAGES]]
        texts = {row.id: row.text for row in index.read_texts(ids)}
        return [_format_passage(passage, texts.get(passage.passage, "")) for passage in result.found[:PASSAGES]]

    def rerank(self, question: str, result: SearchResult, texts: list[str], explain: bool) -> SearchResult:
        """Return the result in its new order; the same result, marked as degraded, if the reranker fails."""
        if not texts:
            return result
        try:
            relevance = self._judge(question[:_QUESTION_CHARS], texts)
        except (Trouble, ConfigError) as error:
            self._failed, self._retry_at, relevance = error.message, time.monotonic() + _RETRY_SECONDS, None
        if relevance is None:
            reason = f"the reranker was not used: {self._failed}"
            return result.replace(reason=f"{result.reason}; {reason}" if result.reason else reason)
        return _add_relevance(result, relevance, explain) if any(one is not None for one in relevance) else result

    def _judge(self, question: str, texts: list[str]) -> Relevance | None:
        """Return how well each text answers the question; None until a reranker that failed is tried again.

        Only one question at a time tries it again, so that an endpoint that is down does not keep all threads waiting.
        """
        if not self._failed:
            return self._judge_now(question, texts)
        if time.monotonic() < self._retry_at or not self._retrying.acquire(blocking=False):
            return None
        try:
            relevance = self._judge_now(question, texts)
        finally:
            self._retrying.release()
        self._failed = ""
        return relevance

    def _judge_now(self, question: str, texts: list[str]) -> Relevance:
        if self._reranker is None:
            self._reranker = open_reranker(self._setting, key=self._key)
        return self._judge_cached(self._reranker, question, texts) if self._reranker is not None else []

    def _judge_cached(self, reranker: Reranker, question: str, texts: list[str]) -> Relevance:
        key = sha256(repr((question, texts)).encode()).digest()  # no text stays in memory after it was purged
        relevance = self._cache.get(key)
        if relevance is None:
            relevance = _judge_readable(reranker, question, texts)
            if len(self._cache) >= _CACHED_QUESTIONS:
                self._cache = {}
            self._cache[key] = relevance
        return relevance


def _judge_readable(reranker: Reranker, question: str, texts: list[str]) -> Relevance:
    """Let the reranker judge the texts that it can read: a model for English says nothing about other languages."""
    relevance: Relevance = [None] * len(texts)
    readable = [position for position, text in enumerate(texts) if text and not text.isspace()]
    if reranker.english_only:
        is_english = abstention.is_mostly_english
        readable = [position for position in readable if is_english(texts[position])] if is_english(question) else []
    found = reranker.relevance(question, [texts[position] for position in readable]) if readable else []
    for position, value in zip(readable, found, strict=True):
        relevance[position] = value
    return relevance


def _format_passage(passage: FoundPassage, text: str) -> str:
    """Return the text that the reranker reads; of a person's turn with the name, which the text does not contain."""
    speaker = passage.speaker or ""
    has_name = speaker and speaker.casefold() not in chunking.NAMELESS
    return (f"{speaker}: {text}" if has_name else text)[:_PASSAGE_CHARS]


def _add_relevance(result: SearchResult, relevance: Relevance, explain: bool) -> SearchResult:
    """Return the result with higher scores of the passages that were read, in the new order.

    A passage that the model cannot read gets the mean of what the others got.
    """
    known = [value for value in relevance if value is not None]
    mean = sum(known) / len(known)
    first, rest = result.found[: len(relevance)], result.found[len(relevance) :]
    pairs = zip(first, relevance, strict=True)
    values = {passage.passage: mean if value is None else value for passage, value in pairs}
    raised = [passage.replace(score=passage.score + WEIGHT * values[passage.passage]) for passage in first]
    raised.sort(key=lambda passage: -passage.score)  # stable: equal scores stay in their order
    why = _explain(result.why, values) if explain else result.why
    first_scores = {passage.passage: passage.score for passage in first} | result.first_scores
    return result.replace(found=[*raised, *rest], why=why, first_scores=first_scores)


def _explain(why: Explanation, values: dict[int, float]) -> Explanation:
    added = {id: {"rerank": [round(value, 4), round(WEIGHT * value, 4)]} for id, value in values.items()}
    return {id: {**signals, **added.get(id, {})} for id, signals in why.items()}
