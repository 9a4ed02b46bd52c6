"""The two times of a note, facts and the graph; of every store."""

from __future__ import annotations

import pytest

from holdfast import NotFound, UsageError


def texts(answer):
    return [hit.text for hit in answer]


@pytest.fixture
def colours(any_memory, clock):
    """A door that was red from March, as recorded in May, and green from June, as recorded on 10 June."""
    any_memory.store("the door is red", key="door", valid_from="2026-03-01")
    clock.set("2026-06-10T09:00:00Z")
    any_memory.store("the door is green", key="door", valid_from="2026-06-01")
    return any_memory


@pytest.mark.parametrize(
    ("as_of", "told"), [("2026-02-28", None), ("2026-03-01", "red"), ("2026-05-31", "red"), ("2026-06-01", "green"),
                        ("2026-06-01T01:30:00+02:00", "red"), ("2030-01-01", "green")],
)  # fmt: skip
def test_as_of_answers_with_what_was_true_then(colours, as_of, told):
    wanted = [f"the door is {told}"] if told else []
    assert texts(colours.recall("door", as_of=as_of)) == wanted
    assert texts(colours.recall(mode="recent", as_of=as_of)) == wanted
    if told:
        assert colours.get("door", as_of=as_of).text == wanted[0]
    else:
        with pytest.raises(NotFound):
            colours.get("door", as_of=as_of)


@pytest.mark.parametrize(
    ("known_at", "told"), [("2026-04-30", None), ("2026-05-01", "red"), ("2026-06-09", "red"), ("2026-06-10", "green")]
)
def test_known_at_answers_with_what_was_recorded_by_then(colours, known_at, told):
    wanted = [f"the door is {told}"] if told else []
    assert texts(colours.recall("door", known_at=known_at)) == wanted
    assert texts(colours.recall(mode="recent", known_at=known_at)) == wanted


def test_both_clocks_together_say_what_was_believed_then_about_another_time(colours):
    assert texts(colours.recall("door", as_of="2026-06-05", known_at="2026-06-05")) == ["the door is red"]
    assert texts(colours.recall("door", as_of="2026-06-05", known_at="2026-06-11")) == ["the door is green"]
    assert texts(colours.recall("door", as_of="2026-04-01", known_at="2026-04-01")) == []


def test_an_answer_about_then_carries_its_interval_and_cites_the_history(colours):
    (hit,) = colours.recall("door", as_of="2026-04-01")
    assert (hit.kind, hit.valid_from, hit.valid_to) == ("past", "2026-03-01T00:00:00Z", "2026-06-01T00:00:00Z")
    path, _, lines = hit.citation.rpartition(":")
    first, last = map(int, lines.split("-"))
    assert colours.read(path, first, last - first + 1).text.strip() == "the door is red"


def test_a_text_with_an_end_is_not_recalled_after_it(any_memory, clock):
    any_memory.store("the sale is on", key="sale", valid_from="2026-04-01", valid_to="2026-05-15")
    assert len(any_memory.recall("sale")) == 1
    clock.set("2026-05-15T00:00:00Z")
    assert len(any_memory.recall("sale")) == len(any_memory.recall(mode="recent")) == 0
    assert len(any_memory.recall("sale", as_of="2026-05-14")) == 1


def test_the_labels_of_a_version_are_those_it_had_then(any_memory, clock):
    any_memory.store("the door is red", key="door", tags="paint", type="user")
    clock.forward(days=10)
    any_memory.store("the door is green", key="door", tags="metal", type="reference")
    assert texts(any_memory.recall("door", as_of="2026-05-02", tags="paint", type="user")) == ["the door is red"]
    assert texts(any_memory.recall("door", as_of="2026-05-02", tags="metal")) == []
    assert texts(any_memory.recall(mode="recent", as_of="2026-05-02", type="user")) == ["the door is red"]


def test_a_date_that_is_none_is_refused_before_any_work(any_memory):
    for bad in ("soon", "2026-13-01", "", 5):
        with pytest.raises(UsageError):
            any_memory.recall("x", as_of=bad)
        with pytest.raises(UsageError):
            any_memory.store("x", valid_from=bad)


# --- facts ------------------------------------------------------------------------------------------------------------


def test_a_new_value_closes_the_old_one_and_names_what_retired_it(any_memory):
    any_memory.fact("Telegram", "status", "disabled", on="2026-03-20")
    done = any_memory.fact("Telegram", "status", "enabled", on="2026-03-27")
    assert [(one.value, one.valid_to) for one in done.retired] == [("disabled", "2026-03-27")]
    assert "- ~~[2026-03-20] status: disabled~~ superseded 2026-03-27" in any_memory.get("telegram").text
    was, now = any_memory.facts("telegram", history=True)
    assert (was.value, was.retired_by, now.value, now.valid_to) == ("disabled", done.retired[0].retired_by, "enabled", None)


def test_facts_are_told_as_of_a_day(any_memory):
    any_memory.fact("Door", "colour", "red", on="2026-01-01")
    any_memory.fact("Door", "colour", "green", on="2026-03-01")
    assert [one.value for one in any_memory.facts("Door")] == ["green"]
    assert [one.value for one in any_memory.facts("door", as_of="2026-02-01")] == ["red"]
    assert any_memory.facts("Door", as_of="2025-12-31") == []


def test_an_earlier_fact_slots_into_history(any_memory):
    any_memory.fact("Door", "colour", "green", on="2026-03-01")
    any_memory.fact("Door", "colour", "red", on="2026-01-01")
    assert [one.value for one in any_memory.facts("Door")] == ["green"]
    assert [one.value for one in any_memory.facts("Door", as_of="2026-02-01")] == ["red"]


def test_several_values_at_once_only_when_asked(any_memory):
    any_memory.fact("Team", "member", "Ada", on="2026-01-01")
    any_memory.fact("Team", "member", "Bob", on="2026-01-02", many=True)
    assert {one.value for one in any_memory.facts("team")} == {"Ada", "Bob"}
    any_memory.fact("Team", "member", "Cleo", on="2026-01-03")
    assert "Cleo" in {one.value for one in any_memory.facts("team")}


def test_the_same_fact_again_changes_nothing(any_memory, bytes_of):
    any_memory.fact("Door", "colour", "red", on="2026-01-01")
    before = bytes_of(any_memory, "door")
    assert any_memory.fact("Door", "colour", "red", on="2026-01-01").action == "unchanged"
    assert bytes_of(any_memory, "door") == before


@pytest.mark.parametrize("where", ["note", "file"])
def test_a_dated_line_in_any_note_or_file_is_a_fact(any_memory, where):
    text = "# Telegram\n\n- [2026-03-27] status: enabled\n- ~~[2026-03-20] status: disabled~~ superseded 2026-03-27\n"
    if where == "note":
        any_memory.store(text, key="any")
    else:
        any_memory.files.create("deep/any.md", text)
    (fact,) = any_memory.facts("telegram")
    assert (fact.label, fact.value, fact.valid_from) == ("status", "enabled", "2026-03-27")
    assert len(any_memory.facts(label="STATUS", history=True)) == 2


def test_facts_follow_the_current_text_and_go_with_their_note(any_memory):
    any_memory.store("# Door\n\n- [2026-01-01] colour: red", key="k")
    any_memory.store("# Door\n\n- [2026-01-01] size: big", key="k")
    assert [one.label for one in any_memory.facts("door")] == ["size"]
    any_memory.forget("k")
    assert any_memory.facts() == []


def test_links_make_a_graph_under_any_of_their_names(any_memory):
    any_memory.fact("Telegram", "owner", "[[Ada]]", on="2026-01-01")
    any_memory.fact("Ada Lovelace", "alias", "Ada", on="2026-01-01")
    any_memory.fact("Ada Lovelace", "team", "[[Platform]]", on="2026-02-01")
    graph = any_memory.graph("ada", depth=2)
    assert graph.start == "Ada Lovelace"
    assert {entity.name for entity in graph.entities} == {"Ada Lovelace", "Telegram", "Platform"}
    assert [edge.label for edge in any_memory.path("telegram", "platform")] == ["owner", "team"]
    assert any_memory.path("telegram", "platform", as_of="2026-01-15") == []


def test_a_subject_may_be_called_anything(any_memory):
    for subject in ("O'Brien; --", "100% %s", "東京", "a: b"):
        any_memory.fact(subject, "kind", "thing", on="2026-01-01")
        assert [one.value for one in any_memory.facts(subject)] == ["thing"], subject


# --- one value, although several files state one --------------------------------------------------------------------------


def values(memory, *subject, **asked):
    return [(fact.value, fact.stale_in) for fact in memory.facts(*subject, **asked)]


@pytest.mark.promise("T3")
def test_a_fact_in_a_file_that_is_set_again_has_one_current_value(any_memory):
    any_memory.files.create("telegram.md", "# Telegram\n\nIn use.\n- [2026-01-05] status: [[Off]]\n- [2026-01-05] owner: Ada\n")
    before = any_memory.files.view("telegram.md")
    stated = any_memory.fact("Telegram", "status", "[[On]]", on="2026-03-27")
    place = "projects/demo/files/telegram.md:4"
    assert (stated.action, stated.fact.value, stated.fact.stale_in) == ("created", "[[On]]", (place,))
    assert values(any_memory, "Telegram", label="status") == [("[[On]]", (place,))]
    assert values(any_memory, "Telegram", label="owner") == [("Ada", ())]
    assert [edge.target for edge in any_memory.graph("Telegram").edges] == ["On"]
    assert values(any_memory, "Telegram", label="status", as_of="2026-02-01") == [("[[Off]]", ())]
    (old,) = any_memory.facts("Telegram", label="status", as_of="2026-02-01")
    assert (old.valid_from, old.valid_to) == ("2026-01-05", "2026-03-27")
    every = {fact.value: fact for fact in any_memory.facts("Telegram", label="status", history=True)}
    assert every["[[Off]]"].valid_to == "2026-03-27" and "notes/telegram.md" in every["[[Off]]"].retired_by
    assert every["[[On]]"].stale_in == (place,)
    assert any_memory.files.view("telegram.md") == before


def test_a_newer_line_in_a_file_ends_an_older_fact(any_memory):
    any_memory.files.create("telegram.md", "# Telegram\n[2026-05-01] status: on\n")
    stated = any_memory.fact("Telegram", "status", "off", on="2026-03-27").fact
    assert (stated.valid_to, stated.stale_in) == ("2026-05-01", ())
    assert stated.retired_by == "[2026-05-01] status: on (projects/demo/files/telegram.md:2)"
    assert values(any_memory, "Telegram", as_of="2026-06-01") == [("on", ("projects/demo/notes/telegram.md:10",))]
    assert values(any_memory, "Telegram", as_of="2026-04-01") == [("off", ())]


@pytest.mark.promise("T3")
def test_of_two_notes_that_state_the_same_the_newer_line_counts(any_memory):
    any_memory.store("# Canary\n- [2026-02-01] share: 5 %", key="rollout")
    any_memory.store("# canary\n- [2026-04-01] Share: 10 %", key="plan")
    assert [(fact.value, len(fact.stale_in)) for fact in any_memory.facts("Canary")] == [("10 %", 1)]
    any_memory.store("# Canary\n- [2026-04-01] share: 10 %", key="rollout")
    assert [(fact.value, fact.stale_in) for fact in any_memory.facts("Canary")] == [("10 %", ())]  # one place states it
    any_memory.store("# Canary\n- ~~[2026-04-20] share: 20 %~~ ended 2026-04-25", key="rollout")
    assert any_memory.facts("Canary") == []  # the earlier value does not come back


def test_several_values_of_one_file_stay_together_with_those_of_others(any_memory):
    any_memory.files.create("team.md", "# Team\n- [2026-01-01] member: Ann\n- [2026-01-15] member: Eve\n")
    stated = any_memory.fact("Team", "member", "Bob", on="2026-02-01", many=True)
    assert stated.fact.stale_in == ()
    found = [(fact.value, fact.valid_to, fact.stale_in) for fact in any_memory.facts("Team")]
    assert found == [("Ann", None, ()), ("Eve", None, ()), ("Bob", None, ())]
    assert [fact.valid_to for fact in any_memory.facts("Team", history=True)] == [None] * 3
    any_memory.files.create("one.md", "# Team\n- [2025-01-15] member: Cid\n")
    assert len(any_memory.facts("Team")) == 4
    assert any_memory._context.index.find_stale_lines(("projects/demo",), "2026-12-01") == set()


@pytest.mark.parametrize("where", ["notes", "files"])
def test_unrelated_texts_with_the_same_title_keep_their_facts(any_memory, where):
    def write(name, text):
        if where == "notes":
            any_memory.store(text, key=name)
        else:
            any_memory.files.create(f"{name}.md", text)

    write("billing", "# Decisions\n\nAbout billing.\n- [2026-01-01] decision: use Stripe\n")
    write("search", "# Decisions\n\nAbout search.\n- [2026-02-01] decision: use FTS5\n")
    assert values(any_memory, "Decisions") == [("use Stripe", ()), ("use FTS5", ())]
    write("bare", "# Decisions\n- [2026-03-01] decision: use both\n")
    assert [value for value, _ in values(any_memory, "Decisions")] == ["use both"]


def test_files_that_share_only_their_name_keep_their_facts(any_memory):
    for folder in ("a", "b"):
        any_memory.files.create(f"{folder}/plan.md", f"- [2026-01-01] step: {folder}\n")
    assert sorted(values(any_memory, "plan")) == [("a", ()), ("b", ())]
    any_memory.fact("Plan", "step", "c", on="2026-02-01")
    assert [(value, len(stale)) for value, stale in values(any_memory, "plan")] == [("c", 2)]


def test_a_fact_of_a_file_with_prose_is_replaced_by_that_of_a_note_with_prose(any_memory):
    any_memory.files.create("telegram.md", "---\nname: t\n---\n# Telegram\n\nThe bot.\n- [2026-01-05] status: off\n")
    any_memory.store("# Telegram\n\nFor alerts.\n- [2026-01-01] status: new", key="telegram")
    any_memory.fact("Telegram", "status", "on", on="2026-02-01")
    assert values(any_memory, "Telegram") == [("on", ("projects/demo/files/telegram.md:7",))]


def test_a_farther_scope_or_a_text_in_quarantine_ends_nothing(any_memory, open_any):
    any_memory.fact("Python", "version", "3.11", on="2026-01-01")
    any_memory.fact("Python", "version", "3.12", on="2026-02-01", scope="global")
    assert [fact.value for fact in any_memory.facts("Python")] == ["3.11", "3.12"]
    any_memory.fact("Python", "version", "3.13", on="2026-03-01")
    assert [fact.value for fact in any_memory.facts("Python")] == ["3.13"]
    any_memory.store("# Python\n- [2026-04-01] version: 2.7", key="from-the-web", origin="web")
    found = [(fact.value, fact.quarantined) for fact in any_memory.facts("Python")]
    assert found == [("3.13", False), ("2.7", True)]


def test_pages_of_facts_are_full_whatever_was_left_out(any_memory):
    from holdfast.api import pagination

    rows = "".join(f"- [2026-01-0{day}] label {number}: old\n" for number in range(6) for day in (1,))
    any_memory.files.create("thing.md", f"# Thing\n{rows}")
    for number in (0, 1, 2, 4):
        any_memory.fact("Thing", f"label {number}", "new", on="2026-02-01")
    found, cursor = [], ""
    while cursor is not None:
        page, cursor = pagination.facts_page(any_memory, 2, cursor, subject="Thing")
        found.append([fact.value for fact in page])
    assert found == [["new", "new"], ["new", "old"], ["new", "old"]]


# --- recall as of a day answers with facts --------------------------------------------------------------------------------


@pytest.fixture
def canary(any_memory):
    any_memory.fact("Canary", "share of traffic", "5 %", on="2026-02-01")
    any_memory.fact("Canary", "share of traffic", "10 %", on="2026-04-01")
    any_memory.fact("Canary", "owner", "Ada", on="2026-01-01")
    any_memory.fact("Canary", "alias", "the bird", on="2026-01-01")
    any_memory.store("Traffic lights are counted on Fridays.", key="lights", valid_from="2026-01-01")
    return any_memory


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
@pytest.mark.parametrize(
    "query", ["canary share of traffic", "how much traffic does the canary get?", "the bird: share of traffic"]
)
def test_recall_as_of_a_day_answers_with_the_fact_that_held_then(canary, mode, query):
    best = canary.recall(query, as_of="2026-03-01", mode=mode)[0]
    assert (best.kind, best.text) == ("fact", "Canary, share of traffic: 5 % (2026-02-01 to 2026-04-01)")
    assert (best.valid_from, best.valid_to, best.key) == ("2026-02-01", "2026-04-01", "canary")
    path, _, lines = best.citation.rpartition(":")
    assert "5 %" in canary.read(path, int(lines.split("-")[0]), 1).text
    later = canary.recall(query, as_of="2026-04-15", mode=mode)
    assert later[0].text == "Canary, share of traffic: 10 % (since 2026-04-01)"
    assert not any("5 %" in hit.text for hit in later if hit.kind == "fact")
    scores = [hit.score for hit in later]
    assert scores == sorted(scores, reverse=True)


def test_facts_can_be_recalled_alone_now_or_then(canary):
    now = canary.recall("canary share", kind="fact")
    assert [(hit.kind, hit.text) for hit in now] == [("fact", "Canary, share of traffic: 10 % (since 2026-04-01)")]
    assert {hit.text.split(":")[0] for hit in canary.recall("canary", kind="fact", as_of="2026-01-15")} == {
        "Canary, owner", "Canary, alias",
    }  # fmt: skip
    assert all(hit.kind != "fact" for hit in canary.recall("canary share"))
    assert all(hit.kind == "note" for hit in canary.recall("traffic", kind="note", as_of="2026-03-01"))
    assert list(canary.recall("good espresso", as_of="2026-03-01")) == []
    assert list(canary.recall("canary share", as_of="2026-03-01", known_at="2026-03-01")) == []  # stated later
    assert list(canary.recall("canary share", kind="fact", type="user")) == []
    assert len(canary.recall("canary share", kind="fact", type="project")) == 1
    assert canary.recall("canary share", kind="fact", explain=True)[0].why == {"fact": [1.0, 1.0]}
    with pytest.raises(UsageError):
        canary.recall(mode="recent", kind="fact")


def test_a_recalled_fact_is_the_newest_of_several_files(canary):
    canary.files.create("canary.md", "# Canary\n[2026-04-20] share of traffic: 25 %\n")
    assert [hit.text for hit in canary.recall("canary share", kind="fact")] == [
        "Canary, share of traffic: 25 % (since 2026-04-20)"
    ]
    (then,) = canary.recall("canary share", kind="fact", as_of="2026-04-15")
    assert then.text == "Canary, share of traffic: 10 % (2026-04-01 to 2026-04-20)"


def test_every_line_that_another_file_states_anew_is_stale(any_memory):
    index, scopes = any_memory._context.index, ("projects/demo",)

    def stale(now="2026-12-01"):
        any_memory.facts()  # depends on what was recorded
        return {place.removeprefix("projects/demo/") for place in index.find_stale_lines(scopes, now)}

    assert stale() == set()
    for number in range(12):
        lines = f"- [2026-01-{number + 1:02}] status: off\n- [2026-01-01] {number}: a\n"
        any_memory.files.create(f"{number}.md", f"# Telegram\n{lines}")
    any_memory.files.create("closed.md", "# Telegram\n- ~~[2026-01-20] status: off~~ superseded 2026-01-25\n")
    every = {f"files/{number}.md:2" for number in range(12)}
    assert stale() == every and any_memory.facts("Telegram", label="status") == []  # the newest one has ended
    assert stale("2026-01-15") == every - {"files/11.md:2"} and stale("2026-01-01") == set()
    any_memory.store("# telegram\n- [2026-03-01] Status: off", key="t")
    assert stale() == every  # even if the value is the same
    assert len(any_memory.facts("Telegram", label="status")) == 1
    assert index.find_stale_lines(("global",), "2026-12-01") == set()
