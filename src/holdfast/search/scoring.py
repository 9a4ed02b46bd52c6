"""Score candidates: signals of what a passage says, who said it, when and what it means, added up with fixed weights. Pure.

The weights for turns were fitted on one half of public conversations and checked on the other; five of those for chats with an
assistant, the weights for long texts and for notes, and the scale between kinds were set by hand. They are round numbers on
purpose.
Figures: docs/adr/0013-rank-by-a-weighted-sum-of-signals.md
"""

from __future__ import annotations

import numpy as np

from holdfast.search import chunking
from holdfast.search.candidates import find_starts
from holdfast.search.passage_cache import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.index.vectors import FoundCosines, FoundVectors
    from holdfast.search.candidates import CandidatePool
    from holdfast.search.question import Question

    Array = NDArray[Any]

# search/signals.py says what each signal means. A fact that the question names (fact) and a rare name such as an error code
# (name) have weights that were set by hand, because the public data have none.
WEIGHTS: dict[str, dict[str, dict[str, float]]] = {
    "people": {
        "all": {
            "bmw": 0.3, "bms": 0.15, "spk": 0.25, "date": 0.35, "near": 0.5, "qonly": -0.3, "when": 0.15, "num": 0.15,
            "loglen": 0.05, "first": 0.05, "soft_sm": 0.25, "g_sentence": 0.6, "c_or_g": 0.7, "named": 0.2, "name": 0.2,
        },
        "static": {
            "bmw": 0.3, "bms": 0.15, "spk": 0.3, "date": 0.3, "near": 0.55, "qonly": -0.25, "when": 0.2, "num": 0.2,
            "loglen": 0.05, "first": 0.05, "soft": 0.2, "soft_sm": 0.25, "c_static": 0.05, "g_static": 0.7, "named": 0.2,
            "name": 0.2,
        },
    },
    "chat": {
        "all": {
            "bmd": 0.1, "big": 0.15, "date": 0.2, "near": 0.6, "ru": 0.2, "num": 0.05, "when": 0.15, "first": 0.1,
            "loglen": -0.05, "direct": 0.45, "soft": 0.2, "soft_sm": 0.2, "c_static": 0.15, "d_static": 0.3,
            "c_sentence": 0.4, "c_sentence_sm": 0.25, "c_sentence_ra": 0.4, "small": -0.3, "name": 0.2,
        },
        "static": {
            "bmd": 0.15, "bms": 0.2, "big": 0.1, "date": 0.35, "near": 0.1, "ru": 0.2, "ra": 0.1, "num": 0.1, "when": 0.15,
            "first": 0.1, "loglen": -0.05, "direct": 0.15, "soft": 0.25, "c_static": 0.45, "d_static": 0.35,
            "small": -0.3, "name": 0.2,
        },
    },
    "note": {
        "all": {
            "bmd": 0.25, "big": 0.15, "date": 0.1, "near": 0.2, "soft": 0.1, "c_static": 0.1, "c_sentence": 0.8, "c_multi": 0.3,
            "d_multi": 0.7, "fact": 0.3, "name": 0.2,
        },
        "static": {"bmd": 0.35, "c_static": 0.9, "fact": 0.3, "name": 0.2},
    },
    "long": {
        "all": {
            "bmd": 0.25, "big": 0.4, "date": 0.1, "near": 0.25, "fp": 0.1, "qonly": 0.1, "when": 0.1, "soft": 0.4,
            "c_static": 0.45, "c_sentence": 0.4, "d_sentence": 0.25, "fact": 0.3, "name": 0.2,
        },
        "static": {
            "bmd": 0.35, "big": 0.2, "date": 0.3, "near": 0.25, "fp": 0.2, "when": 0.15, "soft": 0.15, "c_static": 0.75,
            "fact": 0.3, "name": 0.2,
        },
    },
}  # fmt: skip
# Scores of an unrelated passage and of a good answer, set by hand, so that kinds can be compared.
_SCORE_RANGE = {"people": (0.28, 1.6), "chat": (0.3, 1.5), "note": (0.25, 1.7), "long": (0.3, 1.5)}
# The least score of a candidate without any word of the question.
_MIN_SCORE = {"people": 0.06, "chat": -0.19, "note": -0.1, "long": 0.0}
# Weights of what counts for all kinds: the answer to one of two things that the question compares, each better candidate of the
# same session where the answer is in several, and what was said, or became true, well after the day of the question.
ADJUSTMENTS = {"part": 0.3, "repeat": -0.04, "later": -0.15}
_MAX_REPEATS = 4
_SMALL_TALK_WORDS = 3
_LATER_DAYS = 14  # clocks and dates are often some days off
K1, B = 0.9, 0.4
_MIN_SIMILARITY = 0.3  # similarity up to which words have nothing in common
_MISSING_SIMILARITY = 0.2  # assumed where the sentence model has no vector: for long turns of assistants
_SLACK_DAYS = {"day": 0, "month": 7, "quarter": 14, "season": 14, "year": 31, "half": 31, "about": 2}  # days: people tell later


class Similarity:
    """How similar the vectors of the candidates are to the question, by one model: each with its candidate and its piece.

    `low` and `high` are the cosines of the model that count as 0 and 1: those of some models are all between 0.6 and 0.9.
    """

    def __init__(
        self, found: FoundCosines, question: Array, means: Callable[[], Array], low: float = 0.0, high: float = 1.0
    ) -> None:
        self._question, self._low, self._high = question, low, high
        self.means = means  # reads the mean vector of each candidate
        self.owners, self.numbers, self.cosines = found.owners, found.numbers, self._scale(found.cosines)

    def compare(self, vectors: Array) -> Array:
        """Return how similar each vector is to that of the question, on the scale that the weights were fitted to."""
        return self._scale(np.vecdot(vectors, self._question))  # unlike `@`, it never waits for another core

    def _scale(self, cosines: Array) -> Array:
        if (self._low, self._high) == (0.0, 1.0):
            return cosines
        return np.where(cosines == 0, 0, (cosines - self._low) / (self._high - self._low))  # 0: there is no vector


def mean_vectors(found: FoundVectors, size: int) -> Array:
    """Return the mean of each passage's vectors as a unit vector; zeros where it has none."""
    mean = np.zeros((size, found.vectors.shape[1]), np.float32)
    if len(found.owners):
        starts = find_starts(found.owners)
        weight = np.sqrt(np.maximum(found.numbers % chunking.LENGTHS, 1)).astype(np.float32)  # longer ones say more
        mean[found.owners[starts]] = _sum_runs(found.vectors * weight[:, None], starts)
    return _normalise(mean)


def compute_signals(
    pool: CandidatePool,
    question: Question,
    *,
    average: float,
    similarities: Mapping[str, Similarity],
    word_vectors: Array,
    models: str,
) -> dict[str, Array]:
    """Return every signal that WEIGHTS names for the kinds of the candidates, for each candidate.

    `average` is the mean length of a passage in words, `word_vectors` are those of the question's words.
    """
    occurrences = pool.find_occurrences(question.terms)
    counts = occurrences.count_by_piece()
    bm = _compute_bm25(counts, question, pool.p_length, float(pool.p_length.mean()))
    soft = _compute_soft_matches(pool, question, word_vectors)
    used_names = {name for kind in set(pool.kind.tolist()) for name in WEIGHTS[KINDS[kind]][models]}
    by_piece: dict[str, Array] = {}
    signals: dict[str, Array] = {}
    for name, similarity in similarities.items():
        _add_similarity(pool, name, similarity, used_names=used_names, by_piece=by_piece, signals=signals)
    people = pool.has_mark(chunking.PEOPLE)
    rough = 0.5 * bm + 0.5 * soft + 0.2 * people * (1 - question.about_assistant)
    if question.asks_number or question.asks_when:
        numbers, times = pool.has_mark(chunking.NUMBER), pool.has_mark(chunking.TIME)
        rough += 0.1 * question.asks_number * numbers + 0.1 * question.asks_when * times
    for name, share in (("static", 0.5), ("sentence", 1.0), ("multi", 0.5)):
        rough = rough + share * by_piece[name] if name in by_piece else rough
    best = _find_best_piece(pool, rough)
    signals.update({"soft": soft[best], "big": occurrences.count_pairs()[best] / max(len(question.terms) - 1, 1)})
    signals.update({f"c_{name}": values[best] for name, values in by_piece.items()})
    signals["fp"] = people[best] * (1 - question.about_assistant)
    signals["direct"] = pool.has_mark(chunking.DIRECTIVE)[best] * people[best] * question.asks_for_work
    signals["qonly"] = (pool.p_marks[best] // chunking.QUESTIONS) / 8
    signals["when"] = pool.has_mark(chunking.TIME)[best] * question.asks_when
    signals["num"] = pool.has_mark(chunking.NUMBER)[best] * question.asks_number
    signals["named"] = pool.has_mark(chunking.NAME)[best] * question.asks_name
    signals["soft_sm"] = _max_by_group(signals["soft"], pool.session, pool.sessions)[pool.session]
    signals["loglen"] = np.log1p(np.minimum(pool.length, 3000))
    signals["first"] = pool.first
    signals["small"] = (pool.length <= _SMALL_TALK_WORDS).astype(np.float64)
    _add_words(pool, question, counts, average, signals)
    _add_speakers(pool, question, signals)
    _add_times(pool, question, signals)
    if "sentence" in similarities:
        _add_sentences(pool, signals)
    return signals


def total_scores(pool: CandidatePool, signals: Mapping[str, Array], models: str, meaning_only: bool = False) -> Array:
    """Return the score of each candidate by the weights of its kind, or by similarity of meaning alone."""
    score = np.zeros(pool.size)
    for kind_number in set(pool.kind.tolist()):
        members, kind = np.flatnonzero(pool.kind == kind_number), KINDS[kind_number]
        names = [name for name in WEIGHTS[kind][models] if name in signals and (not meaning_only or name[1] == "_")]
        low, high = _SCORE_RANGE[kind]
        sums = sum([WEIGHTS[kind][models][name] * signals[name][members] for name in names], np.zeros(len(members)))
        score[members] = (sums - low) / (high - low)
    return score


def order_by_question(
    pool: CandidatePool, score: Array, signals: dict[str, Array], part_scores: list[Array], is_spread: bool
) -> Array:
    """Return the scores in whose order the candidates answer a question that compares two things, or whose answer is spread
    over sessions; `part_scores` are those for the two things."""
    if part_scores:
        signals["part"] = np.max(part_scores, axis=0) - score
        score = score + ADJUSTMENTS["part"] * signals["part"]
    if is_spread:
        signals["repeat"] = np.minimum(_rank_in_sessions(pool, score), _MAX_REPEATS)
        score = score + ADJUSTMENTS["repeat"] * signals["repeat"]
    return score


def min_scores(pool: CandidatePool) -> Array:
    """Return the least score of each candidate that has no word of the question."""
    scores: Array = np.array([_MIN_SCORE[kind] for kind in KINDS])[pool.kind]
    return scores


def explain(
    pool: CandidatePool, signals: Mapping[str, Array], models: str, position: int, meaning_only: bool = False
) -> dict[str, list[float]]:
    """Return, for the candidate at `position`, the value of each signal and what it added to the score."""
    kind = KINDS[pool.kind[position]]
    low, high = _SCORE_RANGE[kind]
    explanation = {"base": [1.0, round(-low / (high - low), 4)]}
    for name, weight in WEIGHTS[kind][models].items():
        value = float(signals[name][position]) if name in signals else 0.0
        if value and (not meaning_only or name[1] == "_"):
            explanation[name] = [round(value, 4), round(weight * value / (high - low), 4)]
    for name, weight in ADJUSTMENTS.items():
        value = float(signals[name][position]) if name in signals else 0.0
        if value and not meaning_only:
            explanation[name] = [round(value, 4), round(weight * value, 4)]
    return explanation


def _compute_bm25(counts: Array, question: Question, length: Array, average: float) -> Array:
    """Return BM25 divided by the weight of the whole question: 0 to about 2 for every question."""
    norm = K1 * (1 - B + B * length / max(average, 1.0))
    idf = np.array([question.idf[term] for term in question.terms]).reshape(-1, 1)
    score: Array = (idf * counts * (K1 + 1) / (counts + norm)).sum(axis=0)
    return score / question.total_idf


def _add_words(pool: CandidatePool, question: Question, counts: Array, average: float, signals: dict[str, Array]) -> None:
    """Add the signals of words: in the passage, with the turn before, in the session."""
    counts_by_passage = np.add.reduceat(counts, pool.p_first, axis=1)
    signals["bmd"] = _compute_bm25(counts_by_passage, question, pool.length, average)
    with_previous = counts_by_passage + _take_neighbour(counts_by_passage.T, pool.previous).T
    signals["bmw"] = _compute_bm25(
        with_previous, question, pool.length + _take_neighbour(pool.length, pool.previous), 2 * average
    )
    by_session = np.array(
        [np.bincount(pool.session, count, pool.sessions)[pool.session] for count in counts_by_passage]
    ).reshape(counts_by_passage.shape)
    session_lengths = pool.turns * average
    signals["bms"] = _compute_bm25(by_session, question, session_lengths, float(session_lengths.mean()))


def _compute_soft_matches(pool: CandidatePool, question: Question, word_vectors: Array) -> Array:
    """Return, for each piece, how similar its words are to those of the question, by the static model."""
    score = np.zeros(len(pool.p_owner))
    seen = np.zeros(len(pool.vocabulary), bool)
    seen[pool.tokens] = True
    meaningful = seen & pool.vocabulary.meaningful_tokens()
    tokens = np.flatnonzero(meaningful)
    table = pool.vocabulary.token_vectors().take(tokens, axis=0)
    similarity = np.array([np.vecdot(table, vector) for vector in word_vectors]).reshape(len(word_vectors), len(tokens))
    for row, term in zip(similarity, question.terms, strict=True):
        with_term = pool.vocabulary.tokens_with(term)
        row[np.searchsorted(tokens, [token for token in with_term if meaningful[token]])] = 1
    near = np.flatnonzero((similarity > _MIN_SIMILARITY).any(axis=0))
    positions = np.zeros(len(seen), np.int32)  # of each token its position in `near`, counted from 1
    positions[tokens[near]] = np.arange(1, len(near) + 1)
    found = positions[pool.tokens]
    at = np.flatnonzero(found)
    if not len(at):
        return score
    columns, owner = near[found[at] - 1], pool.t_piece[at]
    starts = find_starts(owner)
    for row, term in zip(similarity, question.terms, strict=True):
        nearest = np.maximum.reduceat(row[columns], starts)
        score[owner[starts]] += question.idf[term] * np.clip((nearest - _MIN_SIMILARITY) / (1 - _MIN_SIMILARITY), 0, 1)
    return score / question.total_idf


def _add_similarity(
    pool: CandidatePool,
    name: str,
    similarity: Similarity,
    *,
    used_names: set[str],
    by_piece: dict[str, Array],
    signals: dict[str, Array],
) -> None:
    """Add the similarity of the best vector of each piece, of the mean of each passage, and of that with its neighbours."""
    cosines = similarity.cosines
    default = _MISSING_SIMILARITY if name == "sentence" else 0.0
    best = np.full(len(pool.p_owner), -np.inf)
    if len(cosines):
        # in order, since the vectors are
        positions = pool.piece_positions(similarity.owners, similarity.numbers // chunking.LENGTHS)
        starts = find_starts(positions)
        best[positions[starts]] = np.maximum.reduceat(cosines, starts)
    by_piece[name] = np.where(np.isneginf(best), default, np.maximum(best, 0))
    if not used_names & {f"d_{name}", f"g_{name}"}:
        return
    mean = similarity.means()
    if f"d_{name}" in used_names:
        signals[f"d_{name}"] = similarity.compare(mean)
    if f"g_{name}" in used_names:
        with_neighbours = _normalise(mean + 0.5 * _take_neighbour(mean, pool.previous) + 0.5 * _take_neighbour(mean, pool.next))
        signals[f"g_{name}"] = similarity.compare(with_neighbours)


def _add_sentences(pool: CandidatePool, signals: dict[str, Array]) -> None:
    """Add what follows from the similarity of sentences: of the whole session, of an assistant's message, with neighbours."""
    sentence = signals["c_sentence"]
    signals["c_sentence_sm"] = _max_by_group(sentence, pool.session, pool.sessions)[pool.session]
    signals["c_sentence_ra"] = sentence * signals["ra"]
    if "g_sentence" in signals:
        signals["c_or_g"] = np.maximum(sentence, signals["g_sentence"])


def _sum_runs(rows: Array, starts: Array) -> Array:
    """Return the sum of each run of rows; for wide rows and short runs twice as fast as np.add.reduceat."""
    lengths = np.diff(np.r_[starts, len(rows)])
    sums: Array = rows[starts]
    for offset in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > offset)
        sums[longer] += rows[starts[longer] + offset]
    return sums


def _add_speakers(pool: CandidatePool, question: Question, signals: dict[str, Array]) -> None:
    """Add the signals of who speaks."""
    if len(question.people) == 1:
        signals["spk"] = (pool.speaker == next(iter(question.people)).casefold()) * 1.0
    signals["ru"] = (pool.speaker == "user") * (1 - question.about_assistant)
    signals["ra"] = (pool.speaker == "assistant") * question.about_assistant


def _add_times(pool: CandidatePool, question: Question, signals: dict[str, Array]) -> None:
    """Add the signals of time: within a time of the question, close to a day that it names, and later than the question."""
    inside, near = np.zeros(pool.size), np.zeros(pool.size)
    for span in question.times:
        start, end = span.start_day, span.end_day
        later = (pool.day >= start) & (pool.day <= end + _SLACK_DAYS.get(span.kind, 1))
        inside = np.maximum(inside, np.where((pool.day >= start) & (pool.day <= end), 1.0, np.where(later, 0.7, 0.0)))
        if span.kind in ("day", "about"):
            near = np.maximum(near, np.exp(-np.abs(pool.day - (start + end) / 2) / 10))
    signals["date"], signals["near"] = inside, near
    signals["later"] = (pool.day > question.today + _LATER_DAYS) * float(question.today > 0)


def _find_best_piece(pool: CandidatePool, rough: Array) -> Array:
    """Return the position of each candidate's best piece."""
    best = np.maximum.reduceat(rough, pool.p_first)
    best_pieces = np.flatnonzero(rough >= best[pool.p_owner] - 1e-12)
    positions = np.zeros(pool.size, np.int64)
    positions[pool.p_owner[best_pieces][::-1]] = best_pieces[::-1]
    return positions


def _max_by_group(values: Array, groups: Array, size: int) -> Array:
    """Return the highest value of each group."""
    highest = np.full(size, -9.0)
    np.maximum.at(highest, groups, values)
    return highest


def _rank_in_sessions(pool: CandidatePool, score: Array) -> Array:
    """Return how many candidates of the same session have a higher score than each; of equal ones the older is higher."""
    order = np.lexsort((pool.ids, -score, pool.session))
    starts = find_starts(pool.session[order])
    ranks = np.zeros(pool.size)
    ranks[order] = np.arange(pool.size) - np.repeat(starts, np.diff(np.r_[starts, pool.size]))
    return ranks


def _take_neighbour(values: Array, positions: Array) -> Array:
    """Return the value of each candidate's neighbour; 0 where it has none."""
    neighbours = np.zeros_like(values)
    present = positions >= 0
    neighbours[present] = values[positions[present]]
    return neighbours


def _normalise(rows: Array) -> Array:
    """Return the rows as unit vectors."""
    result: Array = rows / (np.sqrt(np.vecdot(rows, rows)) + 1e-9)[..., None]
    return result
