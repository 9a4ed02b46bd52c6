"""The measures of a ranking, against cases worked out by hand."""

from __future__ import annotations

import math

import pytest

from holdfast_bench import metrics


def test_a_single_gold_doc_in_third_place():
    scores = metrics.score(["x", "y", "gold", "z"], ["gold"])
    assert scores["any@5"] == scores["all@5"] == scores["recall@5"] == 1
    assert scores["mrr"] == pytest.approx(1 / 3)
    assert scores["ndcg@10"] == pytest.approx(1 / math.log2(4)) == 0.5


def test_gold_that_comes_at_different_depths():
    ranking = [f"x{n}" for n in range(30)]
    ranking[4], ranking[5], ranking[15] = "a", "b", "c"  # places 5, 6 and 16; d is not found
    scores = metrics.score(ranking, ["a", "b", "c", "d"])
    assert [scores[f"any@{k}"] for k in (5, 10, 20)] == [1, 1, 1]
    assert [scores[f"all@{k}"] for k in (5, 10, 20)] == [0, 0, 0]
    assert [scores[f"recall@{k}"] for k in (5, 10, 20)] == [1 / 4, 2 / 4, 3 / 4]
    assert scores["mrr"] == 1 / 5
    gained = 1 / math.log2(6) + 1 / math.log2(7)
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4) + 1 / math.log2(5)
    assert scores["ndcg@10"] == pytest.approx(gained / best)


def test_a_perfect_ranking_is_one_everywhere_that_has_room():
    gold = [f"g{n}" for n in range(12)]
    scores = metrics.score(gold, gold)
    assert scores["ndcg@10"] == scores["mrr"] == scores["all@20"] == scores["recall@20"] == 1
    assert scores["all@10"] == 0 and scores["recall@10"] == pytest.approx(10 / 12)


@pytest.mark.parametrize("ranking", [[], ["x", "y"]])
def test_nothing_found_is_zero(ranking):
    assert set(metrics.score(ranking, ["gold"]).values()) == {0.0}


def test_first_place_past_the_tenth_counts_for_mrr_alone():
    scores = metrics.score([f"x{n}" for n in range(24)] + ["gold"], ["gold"])
    assert scores["mrr"] == 1 / 25
    assert scores["ndcg@10"] == scores["any@20"] == 0


def test_a_doc_that_comes_twice_takes_one_place():
    scores = metrics.score(["x", "x", "x", "x", "x", "gold"], ["gold"])
    assert scores["mrr"] == 1 / 2 and scores["any@5"] == 1


def test_sessions_stand_where_their_first_doc_does():
    session_of = {"a": "1", "b": "2", "c": "1", "d": "3"}
    assert metrics.sessions(["b", "a", "c", "d"], session_of) == ["2", "1", "3"]


def test_the_mean_lies_in_its_interval_and_is_the_same_every_time():
    scores = [metrics.score(["gold" if n % 3 else "x"], ["gold"]) for n in range(30)]
    first, again = metrics.summary(scores), metrics.summary(scores)
    assert first == again
    found = first["any@5"]
    assert found.mean == pytest.approx(2 / 3)
    assert found.low < found.mean < found.high
    spread = math.sqrt(2 / 9 / 30)  # of the mean of 30 throws that come out two times in three
    assert found.high - found.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_one_question_has_no_spread():
    (found,) = {metrics.summary([metrics.score(["gold"], ["gold"])])[name] for name in ("any@5", "mrr")}
    assert (found.mean, found.low, found.high) == (1, 1, 1)


def test_more_questions_narrow_the_interval():
    def width(count):
        mean = metrics.summary([metrics.score(["gold" if n % 2 else "x"], ["gold"]) for n in range(count)])["mrr"]
        return mean.high - mean.low

    assert width(1000) < width(100) / 2


@pytest.mark.parametrize(("share", "expected"), [(0.5, 3), (0.95, 5), (0.2, 1), (0.0, 1), (1.0, 5)])
def test_percentiles_are_values_that_were_measured(share, expected):
    assert metrics.percentile([5, 3, 1, 4, 2], share) == expected
