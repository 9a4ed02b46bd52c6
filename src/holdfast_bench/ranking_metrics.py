"""Quality of a ranking: any, all and recall at 5, 10 and 20, NDCG@10 and MRR, and their means with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from holdfast.base.record import Record

CUTOFFS = (5, 10, 20)
NAMES = (*(f"{name}@{k}" for name in ("any", "all", "recall") for k in CUTOFFS), "ndcg@10", "mrr")
RESAMPLES = 2000
SEED = 20230508  # any constant


class Mean(Record):
    """A mean over questions, and the interval that contains 95 % of the means of resampled questions."""

    mean: float
    low: float
    high: float


def score_ranking(ranking: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """Return every metric of one ranking, each from 0 to 1; only the first occurrence of an id counts."""
    ranked = list(dict.fromkeys(ranking))
    wanted = set(gold)
    hits = [id in wanted for id in ranked]
    scores: dict[str, float] = {}
    for k in CUTOFFS:
        count = sum(hits[:k])
        scores |= {f"any@{k}": float(count > 0), f"all@{k}": float(count == len(wanted)), f"recall@{k}": count / len(wanted)}
    scores["ndcg@10"] = _discounted_gain(hits[:10]) / _discounted_gain([True] * min(len(wanted), 10))
    scores["mrr"] = 1 / (hits.index(True) + 1) if True in hits else 0.0
    return {name: scores[name] for name in NAMES}


def rank_sessions(ranking: Sequence[str], session_by_doc: Mapping[str, str]) -> list[str]:
    """Return the distinct sessions of a ranking of documents, each at the rank of its first document."""
    return list(dict.fromkeys(session_by_doc[id] for id in ranking))


def summarize(scores: Sequence[Mapping[str, float]], seed: int = SEED) -> dict[str, Mean]:
    """Return the mean of every metric over questions with its interval; the same scores give the same interval."""
    import numpy as np

    table = np.array([[row[name] for name in NAMES] for row in scores], dtype=np.float64)
    count = len(table)
    shares = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    low, high = np.percentile(shares @ table, (2.5, 97.5), axis=0)
    means = table.mean(axis=0)
    return {name: Mean(float(means[n]), float(low[n]), float(high[n])) for n, name in enumerate(NAMES)}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is at least as large as this share of the values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def _discounted_gain(hits: Sequence[bool]) -> float:
    return sum(1 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
