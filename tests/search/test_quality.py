"""Retrieval quality of the bundled models on the bundled sample: the figures may change only on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast_bench import retrieval

pytestmark = [pytest.mark.battery, pytest.mark.xdist_group("models")]

SLICE = Path(__file__).parents[1] / "data" / "slice.jsonl"
FIGURES = {  # hybrid, in percent: recall@5, recall@10, NDCG@10, MRR; then MRR by session
    "all": (85.2, 91.5, 75.9, 73.5, 89.9),
    "date": (87.5, 95.8, 72.1, 64.6, 95.8),
    "multi-hop": (55.6, 81.9, 64.5, 71.5, 95.8),
    "note-other-language": (93.8, 93.8, 90.6, 89.6, 89.6),
    "note-paraphrase": (100.0, 100.0, 88.0, 83.9, 83.9),
    "paraphrase": (70.8, 75.0, 55.5, 55.9, 83.3),
    "single-hop": (91.7, 91.7, 70.5, 64.0, 86.1),
    "speaker": (91.7, 100.0, 83.0, 77.7, 95.8),
}
NAMES = ("recall@5", "recall@10", "ndcg@10", "mrr")


@pytest.fixture(scope="module")
def reports():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_EMBEDDER", "default")
        return {mode: measure(mode) for mode in ("hybrid", "keyword")}


def measure(mode):
    return retrieval.measure(SLICE, retrieval.Options(files=(SLICE,), mode=mode))


def figures(report):
    return {
        kind: (*[100 * row.docs[name].mean for name in NAMES], 100 * row.sessions["mrr"].mean)
        for kind, row in report.kinds.items()
    }


def test_what_was_asked_for_ran_and_nothing_was_degraded(reports):
    assert {mode: (report.ran, report.degraded) for mode, report in reports.items()} == {
        "hybrid": (("hybrid",), 0), "keyword": (("keyword",), 0),
    }  # fmt: skip


@pytest.mark.parametrize("kind", FIGURES)
def test_the_figures_of_the_slice(reports, kind):
    assert figures(reports["hybrid"])[kind] == pytest.approx(FIGURES[kind], abs=0.1)


def test_hybrid_is_at_least_as_good_as_keyword(reports):
    hybrid, keyword = figures(reports["hybrid"]), figures(reports["keyword"])
    assert all(one >= other for one, other in zip(hybrid["all"], keyword["all"], strict=True))
    for kind in FIGURES:
        assert all(one >= other for one, other in zip(hybrid[kind][:2], keyword[kind][:2], strict=True)), kind


def test_every_kind_of_question_is_measured(reports):
    assert list(reports["hybrid"].kinds) == list(FIGURES)
