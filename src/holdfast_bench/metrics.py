"""How good a ranking is: any, all and recall at 5, 10 and 20, NDCG@10 and MRR, with a bootstrap interval for each mean."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from holdfast.base.record import Record

AT = (5, 10, 20)
NAMES = (*(f"{name}@{k}" for name in ("any", "all", "recall") for k in AT), "ndcg@10", "mrr")
RESAMPLES = 2000
SEED = 20230508  # any number will do; it must only stay the same


class Mean(Record):
    """A mean over questions, and the interval that holds 95 % of the means of resampled questions."""

    mean: float
    low: float
    high: float


def score(ranking: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """Every measure of one ranking, each from 0 to 1. An id that comes twice counts where it came first."""
    ranked = list(dict.fromkeys(ranking))
    wanted = set(gold)
    found = [id in wanted for id in ranked]
    measures: dict[str, float] = {}
    for k in AT:
        hits = sum(found[:k])
        measures |= {f"any@{k}": float(hits > 0), f"all@{k}": float(hits == len(wanted)), f"recall@{k}": hits / len(wanted)}
    measures["ndcg@10"] = _gain(found[:10]) / _gain([True] * min(len(wanted), 10))
    measures["mrr"] = 1 / (found.index(True) + 1) if True in found else 0.0
    return {name: measures[name] for name in NAMES}


def sessions(ranking: Sequence[str], session_of: Mapping[str, str]) -> list[str]:
    """The different sessions of a ranking, each where its first doc stands."""
    return list(dict.fromkeys(session_of[id] for id in ranking))


def summary(scores: Sequence[Mapping[str, float]], seed: int = SEED) -> dict[str, Mean]:
    """The mean of every measure over questions, with its interval: the same every time."""
    import numpy as np

    table = np.array([[one[name] for name in NAMES] for one in scores], dtype=np.float64)
    count = len(table)
    shares = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    low, high = np.percentile(shares @ table, (2.5, 97.5), axis=0)
    means = table.mean(axis=0)
    return {name: Mean(float(means[n]), float(low[n]), float(high[n])) for n, name in enumerate(NAMES)}


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies: the nearest one that was measured."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def _gain(found: Sequence[bool]) -> float:
    return sum(1 / math.log2(place + 2) for place, hit in enumerate(found) if hit)
