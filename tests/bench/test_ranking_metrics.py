"""The metrics of a ranking, checked against values calculated by hand."""

from __future__ import annotations

import math

import pytest

from holdfast_bench.ranking_metrics import percentile, rank_sessions, score_ranking, summarize


def test_a_single_gold_doc_in_third_place():
    scores = score_ranking(["x", "y", "gold", "z"], ["gold"])
    assert scores["any@5"] == scores["all@5"] == scores["recall@5"] == 1
    assert scores["mrr"] == pytest.approx(1 / 3)
    assert scores["ndcg@10"] == pytest.approx(1 / math.log2(4)) == 0.5


def test_gold_docs_at_different_ranks():
    ranking = [f"x{n}" for n in range(30)]
    ranking[4], ranking[5], ranking[15] = "a", "b", "c"  # places 5, 6 and 16; d is not found
    scores = score_ranking(ranking, ["a", "b", "c", "d"])
    assert [scores[f"any@{k}"] for k in (5, 10, 20)] == [1, 1, 1]
    assert [scores[f"all@{k}"] for k in (5, 10, 20)] == [0, 0, 0]
    assert [scores[f"recall@{k}"] for k in (5, 10, 20)] == [1 / 4, 2 / 4, 3 / 4]
    assert scores["mrr"] == 1 / 5
    gained = 1 / math.log2(6) + 1 / math.log2(7)
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4) + 1 / math.log2(5)
    assert scores["ndcg@10"] == pytest.approx(gained / best)


def test_a_perfect_ranking_scores_one_at_every_sufficient_cutoff():
    gold = [f"g{n}" for n in range(12)]
    scores = score_ranking(gold, gold)
    assert scores["ndcg@10"] == scores["mrr"] == scores["all@20"] == scores["recall@20"] == 1
    assert scores["all@10"] == 0 and scores["recall@10"] == pytest.approx(10 / 12)


@pytest.mark.parametrize("ranking", [[], ["x", "y"]])
def test_a_ranking_without_gold_docs_scores_zero(ranking):
    assert set(score_ranking(ranking, ["gold"]).values()) == {0.0}


def test_a_first_hit_after_rank_twenty_counts_only_for_mrr():
    scores = score_ranking([f"x{n}" for n in range(24)] + ["gold"], ["gold"])
    assert scores["mrr"] == 1 / 25
    assert scores["ndcg@10"] == scores["any@20"] == 0


def test_a_repeated_doc_counts_once():
    scores = score_ranking(["x", "x", "x", "x", "x", "gold"], ["gold"])
    assert scores["mrr"] == 1 / 2 and scores["any@5"] == 1


def test_a_session_has_the_rank_of_its_first_doc():
    session_of = {"a": "1", "b": "2", "c": "1", "d": "3"}
    assert rank_sessions(["b", "a", "c", "d"], session_of) == ["2", "1", "3"]


def test_the_mean_lies_in_its_interval_and_both_are_reproducible():
    scores = [score_ranking(["gold" if n % 3 else "x"], ["gold"]) for n in range(30)]
    first, again = summarize(scores), summarize(scores)
    assert first == again
    mean = first["any@5"]
    assert mean.mean == pytest.approx(2 / 3)
    assert mean.low < mean.mean < mean.high
    spread = math.sqrt(2 / 9 / 30)  # standard error of the mean of 30 trials with probability 2/3
    assert mean.high - mean.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_one_question_has_an_interval_of_width_zero():
    (mean,) = {summarize([score_ranking(["gold"], ["gold"])])[name] for name in ("any@5", "mrr")}
    assert (mean.mean, mean.low, mean.high) == (1, 1, 1)


def test_more_questions_give_a_narrower_interval():
    def width(count):
        mean = summarize([score_ranking(["gold" if n % 2 else "x"], ["gold"]) for n in range(count)])["mrr"]
        return mean.high - mean.low

    assert width(1000) < width(100) / 2


@pytest.mark.parametrize(("share", "expected"), [(0.5, 3), (0.95, 5), (0.2, 1), (0.0, 1), (1.0, 5)])
def test_a_percentile_is_one_of_the_values(share, expected):
    assert percentile([5, 3, 1, 4, 2], share) == expected
