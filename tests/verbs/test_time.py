"""Time and facts: what was true when, what was known when, and the dated lines that state it."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime

import pytest

from holdfast import HoldfastError, NotFound, UsageError


def texts(answer):
    return sorted(hit.text for hit in answer)


@pytest.fixture
def colours(memory, clock):
    """A door that was red from March, as recorded on 1 May, and green from June, as recorded on 10 June."""
    memory.store("the door is red", key="door", valid_from="2026-03-01")
    clock.set("2026-06-10T09:00:00Z")
    memory.store("the door is green", key="door", valid_from="2026-06-01")
    return memory


# --- two times (T1) ---------------------------------------------------------------------------------------------------


@pytest.mark.promise("T1")
@pytest.mark.parametrize(
    ("as_of", "told"),
    [
        ("2026-02-28", None),
        ("2026-03-01", "red"),
        ("2026-05-31", "red"),
        ("2026-05-31T23:59:59Z", "red"),
        ("2026-06-01", "green"),
        ("2026-06-01T00:00:00Z", "green"),
        ("2030-01-01", "green"),
        (date(2026, 4, 1), "red"),
        ("2026-06-01T01:30:00+02:00", "red"),
        (datetime(2026, 7, 1, tzinfo=UTC), "green"),
    ],
    ids=str,
)
def test_as_of_answers_with_what_was_true_then(colours, as_of, told):
    wanted = [f"the door is {told}"] if told else []
    assert texts(colours.recall("door", as_of=as_of)) == wanted
    assert texts(colours.recall(mode="recent", as_of=as_of)) == wanted
    assert texts(colours.recall("red green", as_of=as_of, mode="keyword")) == wanted
    if told:
        assert colours.get("door", as_of=as_of).text == wanted[0]
    else:
        with pytest.raises(NotFound):
            colours.get("door", as_of=as_of)


@pytest.mark.promise("T1")
@pytest.mark.parametrize(
    ("known_at", "told"),
    [
        ("2026-04-30", None),
        ("2026-05-01", "red"),
        ("2026-06-09", "red"),
        ("2026-06-10T08:59:59Z", "red"),
        ("2026-06-10", "green"),
    ],
)
def test_known_at_answers_with_what_was_recorded_by_then(colours, known_at, told):
    wanted = [f"the door is {told}"] if told else []
    assert texts(colours.recall("door", known_at=known_at)) == wanted
    assert texts(colours.recall(mode="recent", known_at=known_at)) == wanted
    if told:
        assert colours.get("door", known_at=known_at).text == wanted[0]
    else:
        with pytest.raises(NotFound):
            colours.get("door", known_at=known_at)


@pytest.mark.promise("N13", "T1")
@pytest.mark.parametrize("ten", ["2026-03-27T10:00", "2026-03-27 10:00:00", datetime(2026, 3, 27, 10)], ids=repr)
def test_a_moment_that_names_no_zone_is_utc_wherever_it_is_given_and_wherever_we_are(memory, note_file, monkeypatch, ten):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        assert memory.store("the door", key="door", valid_from=ten).note.valid_from == "2026-03-27T10:00:00Z"
        assert memory.fact("Door", "state", "open", on=ten).fact.valid_from == "2026-03-27T10:00:00Z"
        note_file("hand").write_text(f"---\nvalid_from: {ten}\n---\nby hand\n")
        assert memory.get("hand").valid_from == "2026-03-27T10:00:00Z"
        assert memory.get("door", as_of=ten).text == "the door"
        with pytest.raises(NotFound):
            memory.get("door", as_of="2026-03-27T09:59:59Z")
        assert memory.store("a day", key="day", valid_from=date(2026, 3, 27)).note.valid_from == "2026-03-27T00:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.promise("T1")
def test_both_clocks_together_say_what_was_believed_then_about_another_time(colours):
    """On 5 June nobody knew yet that the door was green since 1 June."""
    assert texts(colours.recall("door", as_of="2026-06-05", known_at="2026-06-05")) == ["the door is red"]
    assert texts(colours.recall("door", as_of="2026-06-05", known_at="2026-06-11")) == ["the door is green"]
    assert texts(colours.recall("door", as_of="2026-04-01", known_at="2026-04-01")) == []
    assert texts(colours.recall("door", as_of="2026-04-01", known_at="2026-05-02")) == ["the door is red"]


@pytest.mark.promise("T1")
def test_an_answer_about_then_carries_the_interval_it_held_in(colours):
    (hit,) = colours.recall("door", as_of="2026-04-01")
    assert (hit.valid_from, hit.valid_to) == ("2026-03-01T00:00:00Z", "2026-06-01T00:00:00Z")
    note = colours.get("door", as_of="2026-04-01")
    assert (note.valid_from, note.valid_to, note.updated) == (hit.valid_from, hit.valid_to, "2026-05-01T12:00:00Z")


@pytest.mark.promise("T1")
def test_a_text_with_an_end_is_not_recalled_after_it(memory, clock):
    memory.store("the sale is on", key="sale", valid_from="2026-04-01", valid_to="2026-05-15")
    assert len(memory.recall("sale")) == 1
    clock.set("2026-05-15T00:00:00Z")
    assert len(memory.recall("sale")) == 0
    assert len(memory.recall(mode="recent")) == 0
    assert len(memory.recall("sale", as_of="2026-05-14")) == 1
    assert len(memory.recall("sale", as_of="2026-05-15")) == 0
    assert memory.get("sale").valid_to == "2026-05-15T00:00:00Z"


@pytest.mark.promise("T1")
def test_the_gap_between_an_end_and_the_next_beginning_belongs_to_nobody(memory):
    memory.store("the old lease", key="lease", valid_from="2026-01-01", valid_to="2026-02-01")
    memory.store("the new lease", key="lease", valid_from="2026-03-01")
    assert texts(memory.recall("lease", as_of="2026-01-15")) == ["the old lease"]
    assert texts(memory.recall("lease", as_of="2026-02-15")) == []
    assert texts(memory.recall("lease", as_of="2026-03-15")) == ["the new lease"]


@pytest.mark.promise("T1")
def test_a_version_about_the_future_leaves_the_present_to_the_one_before_it(memory):
    memory.store("the price is ten", key="price")
    memory.store("the price is twelve", key="price", valid_from="2100-01-01")
    assert texts(memory.recall("price", as_of="2099-12-31")) == ["the price is ten"]
    assert texts(memory.recall("price", as_of="2100-01-01")) == ["the price is twelve"]


@pytest.mark.promise("T1")
def test_filters_heed_the_labels_that_the_version_had_then(memory, clock):
    memory.store("the door is red", key="door", tags="paint", type="user")
    clock.forward(days=10)
    memory.store("the door is green", key="door", tags="metal", type="reference")
    assert texts(memory.recall("door", as_of="2026-05-02", tags="paint", type="user")) == ["the door is red"]
    assert texts(memory.recall("door", as_of="2026-05-02", tags="metal")) == []
    assert texts(memory.recall("door", as_of="2026-06-01", tags="metal")) == ["the door is green"]
    assert texts(memory.recall(mode="recent", as_of="2026-05-02", type="user")) == ["the door is red"]


@pytest.mark.promise("T1")
@pytest.mark.parametrize(
    "bad", ["soon", "2026-13-01", "2026-02-30", "", "10:00", 5, "2026-01-01T25:00:00Z", "２０２６-01-01"], ids=ascii
)
def test_a_date_that_is_none_is_refused_everywhere_before_any_work(memory, home, bad):
    for call in (
        lambda: memory.store("text", valid_from=bad),
        lambda: memory.store("text", valid_to=bad),
        lambda: memory.recall("text", as_of=bad),
        lambda: memory.recall("text", known_at=bad),
        lambda: memory.get("k", as_of=bad),
        lambda: memory.get("k", known_at=bad),
        lambda: memory.fact("a", "b", "c", on=bad),
        lambda: memory.facts("a", as_of=bad),
    ):
        with pytest.raises(UsageError):
            call()
    assert not home.exists()


@pytest.mark.promise("T1")
@pytest.mark.parametrize("end", ["2026-01-01", "2025-12-31"])
def test_a_text_cannot_end_before_it_begins(memory, home, end):
    with pytest.raises(UsageError):
        memory.store("text", valid_from="2026-01-01", valid_to=end)
    assert not home.exists()


@pytest.mark.promise("T1")
def test_a_text_that_ended_before_it_was_said_needs_a_beginning_before_its_end(memory, clock, home):
    with pytest.raises(UsageError):
        memory.store("text", valid_to="2026-01-01")
    assert not home.exists()


@pytest.mark.promise("T1")
def test_files_are_known_from_the_day_they_were_written(memory, clock):
    memory.files.create("page.md", "harbour page")
    assert len(memory.recall("harbour", known_at="2026-04-30")) == 0
    assert len(memory.recall("harbour", known_at="2026-05-01")) == 1
    assert len(memory.recall("harbour", as_of="2026-05-02")) == 1


def test_a_clock_that_goes_backwards_does_not_reorder_history(memory, clock):
    memory.store("one", key="k")
    clock.back(days=30)
    memory.store("two", key="k")
    clock.back(days=30)
    memory.store("three", key="k")
    versions = memory.history("k")
    assert [version.text for version in versions] == ["three", "two", "one"]
    recorded = [version.recorded for version in versions]
    assert recorded == sorted(recorded, reverse=True)
    assert memory.get("k").updated >= memory.get("k").created
    assert [hit.text for hit in memory.recall("three")] == ["three"]


# --- facts by hand (T2) -----------------------------------------------------------------------------------------------

LINES = (
    "# Telegram\n\n- ~~[2026-03-20] status: disabled~~ superseded 2026-03-27\n- [2026-03-27] status: enabled\n"
    "- [2026-03-27] works_at: [[Acme]] with [[Jane Doe|Jane]]\n- no date: nothing\n- [2026-99-99] bad: date\n"
)


@pytest.mark.promise("T2")
@pytest.mark.parametrize("where", ["notes/telegram.md", "files/telegram.md", "files/deep/er/telegram.md"])
@pytest.mark.parametrize("who", ["a person", "an agent"])
def test_a_dated_line_in_any_note_or_file_is_a_fact(memory, home, where, who):
    memory.store("there is a home now")
    path = home / "shelf" / "projects" / "demo" / where
    if who == "a person":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINES)
    elif where.startswith("notes/"):
        memory.store(LINES, key="telegram")
    else:
        memory.files.create(where.removeprefix("files/"), LINES)
    now = {(fact.label, fact.value) for fact in memory.facts("Telegram")}
    assert now == {("status", "enabled"), ("works_at", "[[Acme]] with [[Jane Doe|Jane]]")}
    assert [fact.value for fact in memory.facts("telegram", label="status", as_of="2026-03-21")] == ["disabled"]
    (linked,) = memory.facts("Telegram", label="works_at")
    assert linked.links == ("Acme", "Jane Doe")
    assert linked.path == f"projects/demo/{where}"
    assert path.read_text().split("\n")[linked.line - 1] == "- [2026-03-27] works_at: [[Acme]] with [[Jane Doe|Jane]]"


@pytest.mark.promise("T2")
def test_in_a_list_of_many_things_the_label_is_the_thing(memory):
    memory.files.create(
        "WORLD_MODEL.md",
        "# World\n- [2026-03-27] Telegram: enabled\n- ~~[2026-03-20] Telegram: disabled~~ superseded 2026-03-27\n"
        "- [2026-01-01] Signal: unused\n",
    )
    assert [fact.value for fact in memory.facts("Telegram")] == ["enabled"]
    assert [fact.value for fact in memory.facts("telegram", as_of="2026-03-26")] == ["disabled"]
    assert {fact.label for fact in memory.facts("World")} == {"Telegram", "Signal"}


@pytest.mark.promise("T2")
def test_a_closed_line_says_when_and_by_what_it_was_closed(memory):
    memory.store(LINES, key="telegram")
    (closed,) = [fact for fact in memory.facts("Telegram", history=True) if fact.value == "disabled"]
    assert (closed.valid_from, closed.valid_to) == ("2026-03-20", "2026-03-27")
    assert "enabled" in closed.retired_by


@pytest.mark.promise("T2")
def test_facts_follow_the_current_version_only(memory):
    memory.store("# A\n- [2026-01-01] b: old", key="a")
    memory.store("# A\n- [2026-01-01] b: new", key="a")
    assert [fact.value for fact in memory.facts(history=True)] == ["new"]


# --- setting facts (T3) -----------------------------------------------------------------------------------------------


@pytest.mark.promise("T3")
def test_a_new_value_strikes_the_old_line_dates_it_and_writes_the_new_one(memory):
    assert memory.fact("Telegram", "status", "disabled", on="2026-03-20").action == "created"
    answer = memory.fact("Telegram", "status", "enabled", on="2026-03-27")
    assert answer.action == "updated"
    assert memory.get("telegram").text.split("\n")[-2:] == [
        "- ~~[2026-03-20] status: disabled~~ superseded 2026-03-27",
        "- [2026-03-27] status: enabled",
    ]
    assert [fact.value for fact in memory.facts("Telegram")] == ["enabled"]
    assert [fact.value for fact in memory.facts("Telegram", as_of="2026-03-26")] == ["disabled"]
    assert [fact.value for fact in memory.facts("Telegram", as_of="2026-03-27")] == ["enabled"]
    assert memory.facts("Telegram", as_of="2026-03-19") == []


@pytest.mark.promise("T3")
def test_each_retired_fact_names_what_retired_it(memory):
    memory.fact("Telegram", "status", "disabled", on="2026-03-20")
    (retired,) = memory.fact("Telegram", "status", "enabled", on="2026-03-27").retired
    assert (retired.value, retired.valid_to, retired.retired_by) == (
        "disabled",
        "2026-03-27",
        "[2026-03-27] status: enabled",
    )
    (kept,) = [fact for fact in memory.facts("Telegram", history=True) if fact.valid_to]
    assert kept == retired


@pytest.mark.promise("T3")
def test_a_fact_dated_earlier_slots_into_history_and_does_not_become_current(memory):
    memory.fact("Telegram", "status", "enabled", on="2026-03-27")
    memory.fact("Telegram", "status", "unknown", on="2026-03-01")
    assert [fact.value for fact in memory.facts("Telegram")] == ["enabled"]
    assert [fact.value for fact in memory.facts("Telegram", as_of="2026-03-10")] == ["unknown"]
    memory.fact("Telegram", "status", "disabled", on="2026-03-20")
    told = {
        day: [fact.value for fact in memory.facts("Telegram", as_of=day)] for day in ("2026-03-05", "2026-03-22", "2026-04-01")
    }
    assert told == {"2026-03-05": ["unknown"], "2026-03-22": ["disabled"], "2026-04-01": ["enabled"]}


@pytest.mark.promise("T3")
def test_several_values_at_once_only_when_asked(memory):
    memory.fact("Team", "member", "Ann", on="2026-01-01")
    memory.fact("Team", "member", "Bob", on="2026-02-01", many=True)
    assert sorted(fact.value for fact in memory.facts("Team")) == ["Ann", "Bob"]
    assert memory.fact("Team", "member", "Bob", on="2026-02-01", many=True).action == "unchanged"
    memory.fact("Team", "member", "Cid", on="2026-03-01")
    assert [fact.value for fact in memory.facts("Team")] == ["Cid"]
    assert len(memory.facts("Team", history=True)) == 3


@pytest.mark.promise("T3")
def test_the_same_fact_again_changes_nothing(memory, truth):
    memory.fact("Telegram", "status", "enabled", on="2026-03-27")
    before = truth()
    answer = memory.fact("Telegram", "status", "enabled", on="2026-04-01")
    assert (answer.action, answer.retired) == ("unchanged", ())
    assert answer.fact.valid_from == "2026-03-27"
    assert truth() == before


@pytest.mark.promise("T3")
def test_the_same_facts_in_the_same_order_make_the_same_text(open_memory):
    def life(project):
        memory = open_memory(project=project)
        for value, on in (
            ("a", "2026-01-01"),
            ("b", "2026-03-01"),
            ("c", "2026-02-01"),
            ("b", "2026-04-01"),
            ("a", "2026-05-01"),
        ):
            memory.fact("Thing", "state", value, on=on)
        return memory.get("thing").text

    assert life("one") == life("two")


@pytest.mark.promise("T3")
def test_setting_a_fact_can_be_undone_from_the_notes_history(memory):
    memory.fact("Telegram", "status", "disabled", on="2026-03-20")
    before = memory.get("telegram").text
    memory.fact("Telegram", "status", "enabled", on="2026-03-27")
    assert memory.history("telegram")[1].text == before
    memory.store(before, key="telegram")
    assert [fact.value for fact in memory.facts("Telegram")] == ["disabled"]


@pytest.mark.promise("T3")
def test_other_labels_other_lines_and_prose_stay_as_they_are(memory):
    memory.store("# Telegram\n\nProse before.\n\n- [2026-01-01] owner: Ann\n* not dated\n\nProse after.\n", key="telegram")
    memory.fact("Telegram", "status", "on", on="2026-03-01")
    memory.fact("Telegram", "status", "off", on="2026-03-02")
    text = memory.get("telegram").text
    for kept in ("Prose before.", "- [2026-01-01] owner: Ann", "* not dated", "Prose after."):
        assert kept in text.split("\n")
    assert [fact.value for fact in memory.facts("Telegram", label="owner")] == ["Ann"]


@pytest.mark.promise("T3")
@pytest.mark.parametrize("subject", ["telegram", "TELEGRAM", "  Telegram "])
@pytest.mark.parametrize("label", ["status", "Status", " STATUS "])
def test_names_that_differ_only_in_case_or_spacing_are_one(memory, subject, label):
    memory.fact("Telegram", "status", "off", on="2026-01-01")
    memory.fact(subject, label, "on", on="2026-02-01")
    assert [fact.value for fact in memory.facts(subject, label=label)] == ["on"]
    assert len(memory.list()) == 1


@pytest.mark.promise("T3")
@pytest.mark.parametrize("subject", ["東京", "Ünïcode thing", "a.b/c", "What is this: a subject?", "x" * 150])
def test_a_subject_may_be_called_anything(memory, subject):
    memory.fact(subject, "status", "on", on="2026-01-01")
    memory.fact(subject, "status", "off", on="2026-02-01")
    assert [fact.value for fact in memory.facts(subject)] == ["off"]
    assert len(memory.list()) == 1


@pytest.mark.promise("T3")
@pytest.mark.parametrize(
    "parts",
    [
        ("", "b", "c"),
        ("a", " ", "c"),
        ("a", "b", ""),
        ("a\nb", "b", "c"),
        ("a", "b: c", "d"),
        ("a", "b", "c\n- [2026-01-01] x: y"),
    ],
    ids=ascii,
)
def test_a_fact_that_would_not_be_one_line_is_refused(memory, home, parts):
    with pytest.raises(HoldfastError):
        memory.fact(*parts)
    assert not home.exists()


@pytest.mark.promise("T3")
@pytest.mark.parametrize("value", ["~~x~~ superseded 2026-01-01", "a: b: c", "[2026-01-01] x: y", "~~", "*bold*", "- x", "x~~"])
def test_a_value_that_looks_like_our_own_marks_stays_a_value(memory, value):
    memory.fact("Thing", "state", value, on="2026-01-01")
    assert [fact.value for fact in memory.facts("Thing")] == [value]
    memory.fact("Thing", "state", "next", on="2026-02-01")
    assert [fact.value for fact in memory.facts("Thing", as_of="2026-01-15")] == [value]
    assert [fact.value for fact in memory.facts("Thing")] == ["next"]


@pytest.mark.promise("T3")
def test_without_a_date_a_fact_is_of_today(memory, clock):
    assert memory.fact("Thing", "state", "on").fact.valid_from == "2026-05-01"


@pytest.mark.promise("T3")
def test_a_fact_can_be_dated_to_the_second(memory):
    memory.fact("Thing", "state", "on", on="2026-01-01T10:00:00Z")
    memory.fact("Thing", "state", "off", on="2026-01-01T12:00:00+01:00")
    assert [fact.value for fact in memory.facts("Thing", as_of="2026-01-01T10:59:59Z")] == ["on"]
    assert [fact.value for fact in memory.facts("Thing", as_of="2026-01-01T11:00:00Z")] == ["off"]


@pytest.mark.promise("T3")
def test_facts_are_counted_from_now_and_a_future_one_is_not_yet(memory, clock):
    memory.fact("Thing", "state", "now", on="2026-01-01")
    memory.fact("Thing", "state", "then", on="2026-12-01")
    assert [fact.value for fact in memory.facts("Thing")] == ["now"]
    clock.set("2026-12-01T00:00:00Z")
    assert [fact.value for fact in memory.facts("Thing")] == ["then"]


@pytest.mark.promise("T3")
def test_a_fact_about_a_forgotten_subject_starts_anew(memory):
    memory.fact("Thing", "state", "old", on="2026-01-01")
    memory.forget("thing")
    assert memory.facts("Thing", history=True) == []
    assert memory.fact("Thing", "state", "new", on="2026-02-01").action == "created"
    assert [fact.value for fact in memory.facts("Thing", history=True)] == ["new"]


@pytest.mark.promise("T3")
@pytest.mark.parametrize(
    ("subject", "key", "text"),
    [
        ("Telegram", "telegram", "plain words"),
        ("Telegram", "telegram", "# Messengers\n\nplain words"),
        ("Big Thing", "big-thing", "plain words"),
        ("big-thing", "big-thing", "# Big Thing"),
    ],
)
def test_a_fact_set_in_a_note_that_was_there_before_is_found_under_its_subject(memory, subject, key, text):
    memory.store(text, key=key)
    memory.fact(subject, "status", "on", on="2026-01-01")
    assert [fact.value for fact in memory.facts(subject)] == ["on"]
    memory.fact(subject, "status", "off", on="2026-02-01")
    assert [fact.value for fact in memory.facts(subject)] == ["off"]


@pytest.mark.promise("T3")
def test_a_fact_closes_the_line_of_its_subject_in_whichever_note_that_stands(memory):
    memory.store("# Telegram\n\n- [2026-03-20] status: disabled", key="messenger-bot")
    memory.fact("Telegram", "status", "enabled", on="2026-03-27")
    assert [fact.value for fact in memory.facts("Telegram")] == ["enabled"]
