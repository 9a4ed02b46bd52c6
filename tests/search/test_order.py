"""The order of results: relevance first, then the nearer scope, then the newer one."""

from __future__ import annotations

from itertools import pairwise

import pytest
import strategies as some
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base.record import Record
from holdfast.search import order

SCOPES = ("sessions/s", "projects/p", "agents/a", "global")


class Found(Record):
    scope: str
    key: str
    kind: str
    score: float
    recorded: str
    note_id: str = ""
    archived: bool = False


def note(key, scope="global", score=1.0, recorded="2026-01-01T00:00:00Z", kind="note"):
    return Found(scope, key, kind, score, recorded)


def keys(found, sort="relevance", usage=None, scopes=SCOPES):
    return [one.key for one in order.order(found, scopes, sort, usage or {}, lambda one: one.key)]


candidates = st.builds(
    Found,
    st.sampled_from([*SCOPES, "projects/older"]),
    st.sampled_from([f"k{number}" for number in range(12)]),
    st.sampled_from(["note", "file"]),
    st.sampled_from([0.0, 1e-06, 2e-06, 0.5, 0.5000001, 1.0, 7.25]) | st.floats(0, 30),
    some.stamps,
)
pools = st.lists(candidates, max_size=12)
pools_of_different_keys = st.lists(candidates, max_size=12, unique_by=lambda one: one.key)


@pytest.mark.promise("N7")
@given(pools, st.sampled_from(["relevance", "recency", "usage"]))
def test_nothing_is_added_and_nothing_is_lost(found, sort):
    ordered = order.order(found, SCOPES, sort, {"k1": 3}, lambda one: one.key)
    assert sorted(map(repr, ordered)) == sorted(map(repr, found))
    assert order.order(found, SCOPES, sort, {"k1": 3}, lambda one: one.key) == ordered


@pytest.mark.promise("N7", "N8")
@given(pools_of_different_keys)
def test_relevance_stands_above_all_then_the_nearer_scope_then_the_newer(found):
    ordered = order.order(found, SCOPES, "relevance", {}, lambda one: one.key)
    for before, after in pairwise(ordered):
        assert before.score >= after.score * 0.99
        if before.score == after.score:
            nearness = [SCOPES.index(one.scope) if one.scope in SCOPES else len(SCOPES) for one in (before, after)]
            assert nearness[0] <= nearness[1]
            if nearness[0] == nearness[1]:
                assert before.recorded >= after.recorded


@pytest.mark.promise("N7")
@pytest.mark.parametrize("size", [1e-06, 0.01, 1.0, 1000.0])
def test_the_size_of_the_scores_does_not_matter(size):
    """A word that most notes have scores in millionths; the note that has it most often still comes first."""
    found = [note("near", "sessions/s", size, "2026-05-01T00:00:00Z"), note("relevant", "global", 1.1 * size)]
    assert keys(found) == ["relevant", "near"]


@pytest.mark.promise("N8")
def test_when_relevance_ties_the_nearer_scope_comes_first_however_old_it_is():
    found = [note(scope, scope, 5.0, f"2026-05-0{day}T00:00:00Z") for day, scope in enumerate(reversed(SCOPES), 1)]
    assert keys(found) == list(SCOPES)
    assert keys(found[::-1]) == list(SCOPES)
    assert keys([one.replace(score=5.0 + number / 10_000) for number, one in enumerate(found[::-1])]) == list(SCOPES)


@pytest.mark.promise("N8")
@given(pools.map(lambda found: list({(one.scope, one.key): one.replace(kind="note") for one in found}.values())))
def test_of_notes_with_the_same_key_the_nearer_one_always_stands_before(found):
    for sort in ("relevance", "recency", "usage"):
        ordered = order.order(found, SCOPES, sort, {}, lambda one: one.key)
        for key in {one.key for one in found}:
            nearness = [(*SCOPES, "projects/older").index(one.scope) for one in ordered if one.key == key]
            assert nearness == sorted(nearness)


@pytest.mark.promise("N8")
def test_the_nearer_namesake_takes_the_best_place_of_its_key():
    found = [note("style", "global", 9.0), note("other", "global", 5.0), note("style", "projects/p", 1.0)]
    ordered = order.order(found, SCOPES, "relevance", {}, lambda one: one.key)
    assert [(one.key, one.scope) for one in ordered] == [
        ("style", "projects/p"),
        ("other", "global"),
        ("style", "global"),
    ]


def test_files_of_the_same_name_are_no_namesakes():
    found = [note("index.md", "global", 9.0, kind="file"), note("index.md", "projects/p", 1.0, kind="file")]
    assert order.order(found, SCOPES, "relevance", {}, lambda one: one.key) == found


@pytest.mark.promise("N7")
@given(pools_of_different_keys)
def test_by_recency_the_newest_comes_first_and_equals_by_relevance(found):
    ordered = order.order(found, SCOPES, "recency", {}, lambda one: one.key)
    assert [one.recorded for one in ordered] == sorted([one.recorded for one in found], reverse=True)
    same_second = [one.replace(recorded="2026-01-01T00:00:00Z") for one in found]
    assert order.order(same_second, SCOPES, "recency", {}, lambda one: one.key) == order.order(
        same_second, SCOPES, "relevance", {}, lambda one: one.key
    )


@pytest.mark.promise("N7")
@given(pools_of_different_keys, st.dictionaries(st.sampled_from([f"k{number}" for number in range(12)]), st.integers(0, 5)))
def test_by_usage_the_most_used_comes_first_and_equals_by_relevance(found, usage):
    ordered = order.order(found, SCOPES, "usage", usage, lambda one: one.key)
    assert [usage.get(one.key, 0) for one in ordered] == sorted([usage.get(one.key, 0) for one in found], reverse=True)
    unused = order.order(found, SCOPES, "usage", {}, lambda one: one.key)
    assert unused == order.order(found, SCOPES, "relevance", {}, lambda one: one.key)


def test_a_scope_nobody_asked_for_comes_last():
    assert keys([note("far", "projects/older"), note("near", "global")]) == ["near", "far"]
    assert keys([]) == []
