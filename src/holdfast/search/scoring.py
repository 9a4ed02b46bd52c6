"""Score candidates: signals of what a passage says, who said it, when and what it means, added up with fixed weights. Pure.

The weights for turns were fitted on one half of public conversations and checked on the other; those for long texts were
chosen, and those for notes and the scale between kinds set by hand, on both halves. docs/adr/0013-ranking.md has the figures.
They are round numbers on purpose.
"""

from __future__ import annotations

import numpy as np

from holdfast.base.lazy_re import pattern
from holdfast.search import chunking
from holdfast.search.candidates import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.search.candidates import CandidatePool
    from holdfast.search.time_expressions import Span

    Array = NDArray[Any]

# Names of signals. Words: in the text (bmd), with the turn before (bmw), in the session (bms), side by side (big), of similar
# meaning (soft), of similar meaning in the session (soft_sm). Similarity by the static, sentence and multilingual model: of the
# best piece (c_), of the whole (d_), of the whole with its neighbours (g_). Speakers: the person named (spk), the user (ru) or
# the assistant (ra) where the question means them, the first person (fp). Time: within the time of the question (date), close
# to it (near). A fact that the question names (fact) and a rare name such as an error code (name): set by hand, the public data
# have none. Small talk: a turn of one to three words (small).
WEIGHTS: dict[str, dict[str, dict[str, float]]] = {
    "people": {
        "all": {
            "bmd": -0.45, "bmw": 0.35, "bms": 0.15, "spk": 0.3, "date": 0.3, "near": 0.55, "qonly": -0.25, "when": 0.15,
            "num": 0.15, "loglen": 0.05, "first": 0.05, "soft": 0.3, "soft_sm": 0.15, "c_sentence": 0.35, "g_sentence": 0.85,
            "name": 0.2,
        },
        "static": {
            "bmd": -0.45, "bmw": 0.4, "bms": 0.2, "spk": 0.3, "date": 0.3, "near": 0.55, "qonly": -0.25, "when": 0.2,
            "num": 0.2, "loglen": 0.05, "first": 0.05, "soft": 0.35, "soft_sm": 0.15, "c_static": 0.05, "g_static": 0.7,
            "name": 0.2,
        },
    },
    "chat": {
        "all": {
            "bmd": 0.2, "bms": 0.15, "big": 0.1, "date": 0.35, "near": 0.1, "ru": 0.1, "ra": 0.2, "num": 0.05, "when": 0.15,
            "first": 0.1, "loglen": -0.05, "direct": 0.15, "soft": 0.15, "c_static": 0.25, "d_static": 0.25,
            "c_sentence": 0.35, "small": -0.3, "name": 0.2,
        },
        "static": {
            "bmd": 0.15, "bms": 0.2, "big": 0.1, "date": 0.35, "near": 0.1, "ru": 0.2, "ra": 0.1, "num": 0.1, "when": 0.15,
            "first": 0.1, "loglen": -0.05, "direct": 0.15, "soft": 0.25, "c_static": 0.45, "d_static": 0.35,
            "small": -0.3, "name": 0.2,
        },
    },
    "note": {
        "all": {
            "bmd": 0.25, "big": 0.15, "date": 0.25, "near": 0.2, "when": 0.1, "soft": 0.1, "c_static": 0.1, "c_sentence": 0.8,
            "c_multi": 1.0, "fact": 0.3, "name": 0.2,
        },
        "static": {"bmd": 0.35, "c_static": 0.9, "fact": 0.3, "name": 0.2},
    },
    "long": {
        "all": {
            "bmd": 0.3, "big": 0.15, "date": 0.3, "near": 0.25, "fp": 0.15, "when": 0.15, "soft": 0.15, "c_static": 0.4,
            "c_sentence": 0.55, "fact": 0.3, "name": 0.2,
        },
        "static": {
            "bmd": 0.35, "big": 0.2, "date": 0.3, "near": 0.25, "fp": 0.2, "when": 0.15, "soft": 0.15, "c_static": 0.75,
            "fact": 0.3, "name": 0.2,
        },
    },
}  # fmt: skip
# Scores of an unrelated passage and of a good answer, set by hand, so that kinds can be compared.
_SCALE = {"people": (0.28, 1.6), "chat": (0.2, 1.4), "note": (0.25, 1.7), "long": (0.3, 1.5)}
_FLOOR = {"people": 0.06, "chat": -0.107, "note": -0.1, "long": 0.0}  # least score of a candidate without any word
LATER = 0.15  # subtracted where something was said, or became true, well after the day of the question:
_SMALL_TALK = 3  # words
_WELL_AFTER = 14  # days, since clocks and dates are often some days off
K1, B = 0.9, 0.4
_LEAST_SIMILAR = 0.3  # similarity up to which words have nothing in common
_MISSING = 0.2  # similarity where the sentence model has no vector: long turns of assistants
_SLACK = {"day": 0, "month": 7, "quarter": 14, "season": 14, "year": 31, "half": 31, "about": 2}  # days: people tell later
_WHEN = pattern(
    r"(?i)^\s*when\b|\bwhat (?:date|day|month|year|time)\b|\bhow long ago\b|\bwhich (?:date|day|month|year)\b"
    r"|\bhow many (?:days|weeks|months|years)\b"
)
_NUMBER = pattern(r"(?i)\bhow (?:many|much|often|long|old|far)\b|\bwhat number\b|\btotal\b")
_OF_ASSISTANT = pattern(
    r"(?i)\b(?:you|your)\b.{0,40}\b(?:told|said|say|mention\w*|recommend\w*|suggest\w*|gave|give|provid\w*|list\w*|shar\w*"
    r"|explain\w*|advis\w*|wrote|made|describ\w*|generat\w*|show\w*|use\w*|creat\w*)\b"
    r"|\bour (?:previous|last|earlier|past)\b|\bremind me\b|\bprevious(?:ly)? (?:chat|conversation|discuss\w*)"
)


class Question:
    """What scoring needs of a question."""

    def __init__(
        self, *, text: str, terms: Mapping[str, str], idf: Mapping[str, float], people: frozenset[str], times: list[Span],
        today: int,
    ) -> None:  # fmt: skip
        self.terms = terms  # each with the word of the question
        self.idf = idf
        self.people = people  # named in it
        self.times = times
        self.today = today  # ordinal of the day of the question; 0 if unknown
        self.when = float(bool(_WHEN.search(text)))
        self.number = float(bool(_NUMBER.search(text)))
        self.of_assistant = float(bool(_OF_ASSISTANT.search(text)) and not people)
        self.whole = sum(idf[term] for term in terms) or 1.0


class Similarity:
    """The vectors of the candidates by one model, each with its candidate's position and its piece, and the question's."""

    def __init__(self, owners: Array, numbers: Array, vectors: Array, question: Array) -> None:
        self.owners, self.numbers, self.vectors, self.question = owners, numbers, vectors, question


def compute_signals(
    pool: CandidatePool, question: Question, average: float, similarities: Mapping[str, Similarity], word_vectors: Array,
    models: str,
) -> dict[str, Array]:  # fmt: skip
    """Return every signal that WEIGHTS names for the kinds of the candidates, for each candidate.

    `average` is the mean length of a passage in words, `word_vectors` are those of the question's words.
    """
    occurrences = pool.find_occurrences(question.terms)
    counts = occurrences.counts()
    bm = _bm25(counts, question, pool.p_length, float(pool.p_length.mean()))
    soft = _soft_matches(pool, question, word_vectors)
    weighed = {name for kind in set(pool.kind.tolist()) for name in WEIGHTS[KINDS[kind]][models]}
    best_of: dict[str, Array] = {}
    found: dict[str, Array] = {}
    for name, one in similarities.items():
        _add_similarity(pool, name, one, weighed, best_of, found)
    people = pool.marked(chunking.PEOPLE)
    rough = 0.5 * bm + 0.5 * soft + 0.2 * people * (1 - question.of_assistant)
    if question.number or question.when:
        rough += 0.1 * question.number * pool.marked(chunking.NUMBER) + 0.1 * question.when * pool.marked(chunking.TIME)
    for name, share in (("static", 0.5), ("sentence", 1.0), ("multi", 0.5)):
        rough = rough + share * best_of[name] if name in best_of else rough
    at = _best_piece(pool, rough)
    found.update({"soft": soft[at], "big": occurrences.count_pairs()[at] / max(len(question.terms) - 1, 1)})
    found.update({f"c_{name}": values[at] for name, values in best_of.items()})
    found["fp"] = people[at] * (1 - question.of_assistant)
    found["direct"] = pool.marked(chunking.DIRECTIVE)[at] * people[at]
    found["qonly"] = (pool.p_marks[at] // chunking.QUESTIONS) / 8
    found["when"] = pool.marked(chunking.TIME)[at] * question.when
    found["num"] = pool.marked(chunking.NUMBER)[at] * question.number
    if "soft_sm" in weighed:
        found["soft_sm"] = _max_by(found["soft"], pool.session, pool.sessions)[pool.session]
    found["loglen"] = np.log1p(np.minimum(pool.length, 3000))
    found["first"] = pool.first
    found["small"] = (pool.length <= _SMALL_TALK).astype(np.float64)
    _add_words(pool, question, counts, average, found)
    _add_speakers(pool, question, found)
    _add_times(pool, question, found)
    return found


def total(pool: CandidatePool, found: Mapping[str, Array], models: str, meaning_only: bool = False) -> Array:
    """Return the score of each candidate by the weights of its kind, or by similarity of meaning alone."""
    score = np.zeros(pool.size)
    for place in set(pool.kind.tolist()):
        mine, kind = np.flatnonzero(pool.kind == place), KINDS[place]
        names = [name for name in WEIGHTS[kind][models] if name in found and (not meaning_only or name[1] == "_")]
        low, high = _SCALE[kind]
        sums = sum([WEIGHTS[kind][models][name] * found[name][mine] for name in names], np.zeros(len(mine)))
        score[mine] = (sums - low) / (high - low)
    return score


def floor(pool: CandidatePool) -> Array:
    """Return the least score of each candidate if it has no word of the question."""
    least: Array = np.array([_FLOOR[kind] for kind in KINDS])[pool.kind]
    return least


def explain(
    pool: CandidatePool, found: Mapping[str, Array], models: str, place: int, meaning_only: bool = False
) -> dict[str, list[float]]:
    """Return, for the candidate at `place`, the value of each signal and what it added to the score."""
    kind = KINDS[pool.kind[place]]
    explanation = {}
    for name, weight in WEIGHTS[kind][models].items():
        value = float(found[name][place]) if name in found else 0.0
        if value and (not meaning_only or name[1] == "_"):
            explanation[name] = [round(value, 4), round(weight * value / (_SCALE[kind][1] - _SCALE[kind][0]), 4)]
    if found["later"][place] and not meaning_only:
        explanation["later"] = [1.0, -LATER]
    return explanation


def _bm25(counts: Array, question: Question, length: Array, average: float) -> Array:
    """Return BM25 divided by the weight of the whole question: 0 to about 2 for every question."""
    norm = K1 * (1 - B + B * length / max(average, 1.0))
    idf = np.array([question.idf[term] for term in question.terms]).reshape(-1, 1)
    score: Array = (idf * counts * (K1 + 1) / (counts + norm)).sum(axis=0)
    return score / question.whole


def _add_words(pool: CandidatePool, question: Question, counts: Array, average: float, found: dict[str, Array]) -> None:
    """Add the signals of words: in the passage, with the turn before, in the session."""
    own = np.add.reduceat(counts, pool.p_first, axis=1)
    found["bmd"] = _bm25(own, question, pool.length, average)
    before = own + _shift(own.T, pool.previous).T
    found["bmw"] = _bm25(before, question, pool.length + _shift(pool.length, pool.previous), 2 * average)
    whole = np.array([np.bincount(pool.session, count, pool.sessions)[pool.session] for count in own]).reshape(own.shape)
    long = pool.turns * average
    found["bms"] = _bm25(whole, question, long, float(long.mean()))


def _soft_matches(pool: CandidatePool, question: Question, of_question: Array) -> Array:
    """Return, for each piece, how similar its words are to those of the question, by the static model."""
    score = np.zeros(len(pool.p_owner))
    seen = np.zeros(len(pool.vocabulary), bool)
    seen[pool.tokens] = True
    meant = seen & pool.vocabulary.plain()
    used = np.flatnonzero(meant)
    table = pool.vocabulary.table().take(used, axis=0)
    like = np.array([np.vecdot(table, vector) for vector in of_question]).reshape(len(of_question), len(used))
    for row, term in zip(like, question.terms, strict=True):
        held = pool.vocabulary.tokens_with(term)
        row[np.searchsorted(used, [token for token in held if meant[token]])] = 1
    near = np.flatnonzero((like > _LEAST_SIMILAR).any(axis=0))
    place = np.zeros(len(seen), np.int32)  # of each token its position in `near`, counted from 1
    place[used[near]] = np.arange(1, len(near) + 1)
    found = place[pool.tokens]
    at = np.flatnonzero(found)
    if not len(at):
        return score
    which, owner = near[found[at] - 1], pool.t_piece[at]
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    for row, term in zip(like, question.terms, strict=True):
        nearest = np.maximum.reduceat(row[which], starts)
        score[owner[starts]] += question.idf[term] * np.clip((nearest - _LEAST_SIMILAR) / (1 - _LEAST_SIMILAR), 0, 1)
    return score / question.whole


def _add_similarity(
    pool: CandidatePool, name: str, one: Similarity, weighed: set[str], best_of: dict[str, Array], found: dict[str, Array]
) -> None:
    """Add the similarity of the best vector of each piece, of the mean of each passage, and of that with its neighbours."""
    like = np.vecdot(one.vectors, one.question)  # unlike `@`, it never waits for another core
    missing = _MISSING if name == "sentence" else 0.0
    best = np.full(len(pool.p_owner), -1.0)
    if len(like):
        places = pool.piece_of(one.owners, one.numbers // chunking.LENGTHS)  # in order, since the vectors are
        starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
        best[places[starts]] = np.maximum.reduceat(like, starts)
    best_of[name] = np.where(best < -0.999, missing, np.maximum(best, 0))
    if not weighed & {f"d_{name}", f"g_{name}"}:
        return
    mean = np.zeros((pool.size, one.vectors.shape[1]), np.float32)
    if len(like):
        starts = np.flatnonzero(np.r_[True, one.owners[1:] != one.owners[:-1]])
        weight = np.sqrt(np.maximum(one.numbers % chunking.LENGTHS, 1)).astype(np.float32)  # longer ones say more
        mean[one.owners[starts]] = _sums(one.vectors * weight[:, None], starts)
    mean = _unit(mean)
    if f"d_{name}" in weighed:
        found[f"d_{name}"] = np.vecdot(mean, one.question)
    if f"g_{name}" in weighed:
        around = _unit(mean + 0.5 * _shift(mean, pool.previous) + 0.5 * _shift(mean, pool.next))
        found[f"g_{name}"] = np.vecdot(around, one.question)


def _sums(rows: Array, starts: Array) -> Array:
    """Return the sum of each run of rows; for wide rows and short runs twice as fast as np.add.reduceat."""
    lengths = np.diff(np.r_[starts, len(rows)])
    total: Array = rows[starts]
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        total[longer] += rows[starts[longer] + place]
    return total


def _add_speakers(pool: CandidatePool, question: Question, found: dict[str, Array]) -> None:
    """Add the signals of who speaks."""
    if len(question.people) == 1:
        found["spk"] = (pool.speaker == next(iter(question.people)).casefold()) * 1.0
    found["ru"] = (pool.speaker == "user") * (1 - question.of_assistant)
    found["ra"] = (pool.speaker == "assistant") * question.of_assistant


def _add_times(pool: CandidatePool, question: Question, found: dict[str, Array]) -> None:
    """Add the signals of time: within a time of the question, close to a day that it names, and later than the question."""
    inside, near = np.zeros(pool.size), np.zeros(pool.size)
    for span in question.times:
        start, end = span.start_day, span.end_day
        later = (pool.day >= start) & (pool.day <= end + _SLACK.get(span.kind, 1))
        inside = np.maximum(inside, np.where((pool.day >= start) & (pool.day <= end), 1.0, np.where(later, 0.7, 0.0)))
        if span.kind in ("day", "about"):
            near = np.maximum(near, np.exp(-np.abs(pool.day - (start + end) / 2) / 10))
    found["date"], found["near"] = inside, near
    found["later"] = (pool.day > question.today + _WELL_AFTER) * float(question.today > 0)


def _best_piece(pool: CandidatePool, rough: Array) -> Array:
    """Return the position of each candidate's best piece."""
    best = np.maximum.reduceat(rough, pool.p_first)
    hit = np.flatnonzero(rough >= best[pool.p_owner] - 1e-12)
    at = np.zeros(pool.size, np.int64)
    at[pool.p_owner[hit][::-1]] = hit[::-1]
    return at


def _max_by(values: Array, places: Array, size: int) -> Array:
    """Return the highest value of each group."""
    most = np.full(size, -9.0)
    np.maximum.at(most, places, values)
    return most


def _shift(values: Array, places: Array) -> Array:
    """Return the value of each candidate's neighbour; 0 where it has none."""
    moved = np.zeros_like(values)
    there = places >= 0
    moved[there] = values[places[there]]
    return moved


def _unit(rows: Array) -> Array:
    """Return the rows as unit vectors."""
    result: Array = rows / (np.linalg.norm(rows, axis=-1, keepdims=True) + 1e-9)
    return result
