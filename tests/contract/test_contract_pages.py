"""Lists without a limit are returned page by page: each item once, in the order of the whole list; of every store."""

from __future__ import annotations

import pytest

from holdfast import UsageError
from holdfast.api import pagination

LIMITS = (1, 4, 11, 12, 13)
NAMES = ["Ada", "ada", "Bob", "Zoë", "日本", "a b", "Bob's boat"]


def walked(turn, limit):
    """Return all pages joined; none is longer than allowed."""
    seen, found, cursor = [], *turn(limit)
    while cursor is not None:
        assert len(found) == limit
        seen, (found, cursor) = [*seen, *found], turn(limit, cursor)
    assert len(found) <= limit
    return [*seen, *found]


def test_facts_come_page_by_page_in_the_order_of_the_whole_list(open_any):
    memory = open_any(agent="reviewer")
    for number, name in enumerate(NAMES):
        for scope in ("project", "agent", "global"):
            memory.fact(name, "town", f"{scope} {number}", on="2026-01-01", scope=scope)
            memory.fact(name, "town", f"later {number}", on="2026-02-01", scope=scope)
    for given in ({}, {"history": True}, {"as_of": "2026-01-15"}, {"subject": "ada", "history": True}, {"scope": "agent"}):
        whole = memory.facts(**given)
        assert len(whole) >= 5
        for limit in LIMITS:
            assert walked(lambda *page, given=given: pagination.facts_page(memory, *page, **given), limit) == whole, (
                given,
                limit,
            )
    assert pagination.facts_page(memory, 5, subject="nobody") == ([], None)


def test_a_fact_that_is_new_moves_none_of_the_others_off_a_page(any_memory):
    for number in range(6):
        any_memory.fact(f"thing {number}", "state", "on", on="2026-01-01")
    first, cursor = pagination.facts_page(any_memory, 3)
    any_memory.fact("thing 0", "colour", "red", on="2026-01-01")
    any_memory.forget("thing-2")
    rest, end = pagination.facts_page(any_memory, 3, cursor)
    assert [one.subject for one in (*first, *rest)] == [f"thing {number}" for number in range(6)] and end is None


def test_facts_by_any_of_their_subjects_names_come_once(any_memory):
    any_memory.fact("Ada Lovelace", "also known as", "Ada", on="2026-01-01")
    any_memory.fact("Ada", "town", "London", on="2026-01-01")
    any_memory.fact("Ada Lovelace", "trade", "numbers", on="2026-01-01")
    whole = any_memory.facts("Ada")
    assert {one.value for one in whole} == {"Ada", "London", "numbers"}
    assert walked(lambda *page: pagination.facts_page(any_memory, *page, subject="Ada"), 1) == whole


def test_the_trash_comes_page_by_page_whatever_is_brought_back_meanwhile(open_any, clock):
    memory = open_any(agent="reviewer", session="s1")
    for scope in ("project", "agent", "session", "global"):
        for number in range(3):
            memory.store(f"words {number}", key=f"k{number}", scope=scope)
            memory.forget(f"k{number}", scope=scope)
            clock.forward(seconds=-1 if number else 5)  # the clock may go back
    whole = memory.trash()
    assert len(whole) == 12
    for limit in LIMITS:
        assert walked(lambda *page: pagination.trash_page(memory, *page), limit) == whole, limit
    assert walked(lambda *page: pagination.trash_page(memory, *page, scope="agent"), 2) == memory.trash(scope="agent")
    first, cursor = pagination.trash_page(memory, 5)
    for one in first[3:]:
        memory.restore(one.key, scope=one.scope.kind)
    assert pagination.trash_page(memory, 12, cursor) == (whole[5:], None)


def test_the_versions_of_a_note_come_page_by_page_and_new_ones_move_nothing(any_memory, clock):
    for number in range(12):
        any_memory.store(f"text {number}", key="k")
        clock.forward(days=1)
    whole = any_memory.history("k")
    for limit in LIMITS:
        assert walked(lambda *page: pagination.history_page(any_memory, "k", *page, scope="project"), limit) == whole, limit
    first, cursor = pagination.history_page(any_memory, "k", 5, scope="project")
    any_memory.store("text 12", key="k")
    rest, end = pagination.history_page(any_memory, "k", 20, cursor, scope="project")
    assert [one.text for one in (*first, *rest)] == [f"text {number}" for number in range(11, -1, -1)] and end is None


def test_receipts_come_page_by_page_and_an_agent_sees_its_own(open_any, clock):
    person, reviewer = open_any(origin="user", agent="boss"), open_any(agent="reviewer", project="elsewhere")
    for number in range(6):
        for memory, scope in ((person, "project"), (reviewer, "agent")):
            memory.store(f"Words that are to go, number {number} of {scope}.", key=f"k{number}", scope=scope)
            memory.purge(f"k{number}", scope=scope)
        clock.forward(seconds=number % 2)
    for memory, many in ((person, 12), (reviewer, 6)):
        whole = memory.receipts()
        assert len(whole) == many
        for limit in LIMITS:
            assert walked(lambda *page, memory=memory: pagination.receipts_page(memory, *page), limit) == whole, limit
    others = next(one.id for one in person.receipts() if one.scope.kind == "project")
    with pytest.raises(UsageError):
        pagination.receipts_page(reviewer, 5, others)


def test_what_came_from_a_source_comes_page_by_page(any_memory, clock):
    for number in range(12):
        key = f"k{number:02}"
        any_memory.store(f"text {number}", key=key, pinned=number % 5 == 0, made_from="https://blog.example/post")
        clock.forward(seconds=number % 2)
    any_memory.store("of another", key="other")
    whole = any_memory.list(source="https://blog.example/post")
    assert len(whole) == 12
    for limit in LIMITS:
        assert (
            walked(lambda *page: pagination.list_page(any_memory, *page, source="https://blog.example/post"), limit) == whole
        ), limit


@pytest.mark.parametrize("cursor", ["x", "ü", "Zm9v", "YQpiCmMKZAplCmY", "YQpiCmMKZA", "YQpiCmMKeApl", "9" * 30, "-1", "0x1"])
def test_what_is_no_cursor_is_refused_by_every_list(any_memory, cursor):
    any_memory.store("words", key="k")
    any_memory.forget("k")
    any_memory.store("words", key="k")
    for turn in (pagination.list_page, pagination.facts_page, pagination.trash_page, pagination.receipts_page,
                 lambda memory, *page: pagination.history_page(memory, "k", *page, scope=None)):  # fmt: skip
        with pytest.raises(UsageError):
            turn(any_memory, 5, cursor)
