"""Facts: parsed in every variant that people write, set without losing anything, and compared with a simple model."""

from __future__ import annotations

import pytest
import strategies as some
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.errors import Refused, SecretFound
from holdfast.formats import facts
from holdfast.formats.facts import FactLine
from holdfast.models import Fact, Scope
from holdfast.safety import validate

DAYS = [f"2026-03-{day:02d}" for day in range(1, 9)]
MOMENTS = [*DAYS, *[f"{day}T{hour}:00:00Z" for day in DAYS for hour in ("00", "12")]]
STATEMENTS = st.tuples(st.sampled_from(["status", "Status ", "owner"]), st.sampled_from("ABC"), st.sampled_from(MOMENTS))

dated = st.builds(
    FactLine, st.just(0), some.labels, some.one_line, some.days | some.stamps, st.none() | some.days | some.stamps
)


def parse_all(text: str) -> list[tuple[str, str, str, str | None]]:
    return [(line.label, line.value, line.valid_from, line.valid_to) for line in facts.find_fact_lines(text)]


def set_all(text, *sets, many=False):
    for label, value, on in sets:
        text = facts.set_fact(text, label, value, on, many).text
    return text


def to_moment(when: str) -> str:
    return when if len(when) > 10 else f"{when}T00:00:00Z"


def values_at(text: str, label: str, when: str) -> list[str]:
    return [
        line.value
        for line in facts.find_fact_lines(text)
        if facts.normalize_name(line.label) == facts.normalize_name(label)
        and to_moment(line.valid_from) <= to_moment(when)
        and (line.valid_to is None or to_moment(when) < to_moment(line.valid_to))
    ]


class Oracle:
    """A simple model: every value that was set, in order; setting the current value again changes nothing."""

    def __init__(self):
        self.sets: list[tuple[str, str]] = []

    def value(self, when):
        earlier = [
            (to_moment(on), number, value) for number, (on, value) in enumerate(self.sets) if to_moment(on) <= to_moment(when)
        ]
        return max(earlier)[2] if earlier else None

    def set(self, value, on):
        if self.value(on) == value:
            return "unchanged"
        self.sets.append((on, value))
        return "updated" if len(self.sets) > 1 else "created"


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("T2")
@given(dated, some.raw_texts)
@example(FactLine(0, "a", "x~~ superseded 2020-01-01", "2026-01-01", "2026-02-01"), "")
@example(FactLine(0, "~~", "~~", "2026-01-01", None), "")
@example(FactLine(0, "[2026-01-01]", "y: z", "2026-01-01", "2026-02-01"), "")
def test_a_line_we_write_reads_back_as_itself(line, around):
    rows = [row for row in around.split("\n") if "```" not in row and "~~~" not in row]  # code blocks have no facts
    around = "".join(row + "\n" for row in rows if not facts.find_fact_lines(row))
    found = facts.find_fact_lines(f"{around}{facts.format_line(line)}\n{around}")
    assert found == [line.replace(line=around.count("\n"))]


@given(some.raw_texts, some.raw_texts, some.days | some.stamps)
def test_whatever_the_gate_lets_through_as_a_fact_is_one_line_that_reads_back(label, value, on):
    try:
        label, value = validate.check_label(label), validate.check_line(value, "value")
    except Refused:
        return
    edit = facts.set_fact("# S\n", label, value, on, False)
    assert parse_all(edit.text) == [(label, value, on, None)]
    assert facts.find_fact_lines(edit.text)[0].line == edit.line


@pytest.mark.promise("T2")
@pytest.mark.parametrize(
    ("row", "fact"),
    [
        ("- [2026-03-27] Telegram: enabled", ("Telegram", "enabled", "2026-03-27", None)),
        ("- ~~[2026-03-20] Telegram: off~~ superseded 2026-03-27", ("Telegram", "off", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] Telegram: off~~ ended 2026-03-27", ("Telegram", "off", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] Telegram: off~~ closed 2026-03-27  ", ("Telegram", "off", "2026-03-20", "2026-03-27")),
        ("  * [2026-03-27] a: b", ("a", "b", "2026-03-27", None)),
        ("\t+ [2026-03-27] a: b\t", ("a", "b", "2026-03-27", None)),
        ("- [2026-03-27] a: b\r", ("a", "b", "2026-03-27", None)),
        ("- ~~[2026-03-20] a: b~~ superseded 2026-03-27 \r", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- [2026-03-27T10:00:00Z] a: b", ("a", "b", "2026-03-27T10:00:00Z", None)),
        ("- [2026-03-27]  spaced out :   wide", ("spaced out", "wide", "2026-03-27", None)),
        ("- [2026-03-27] works_at: [[Acme]]", ("works_at", "[[Acme]]", "2026-03-27", None)),
        ("- [2026-03-27] url: http://x/y: z", ("url", "http://x/y: z", "2026-03-27", None)),
        ("- [2024-02-29] 記憶: 🧠", ("記憶", "🧠", "2024-02-29", None)),
        ("[2026-03-27] Telegram: enabled", ("Telegram", "enabled", "2026-03-27", None)),
        ("  [2026-03-27] Telegram: enabled\r", ("Telegram", "enabled", "2026-03-27", None)),
        ("~~[2026-03-20] Telegram: off~~ superseded on 2026-03-27", ("Telegram", "off", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] a: b~~ SUPERSEDED 2026-03-27", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] a: b~~ Superseded on 2026-03-27.", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] a: b~~ (superseded 2026-03-27)", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] a: b~~ [SUPERSEDED on 2026-03-27]", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] a: b~~ — ended on 2026-03-27", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] a: b~~ superseded by the new bot on 2026-03-27", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] a: b~~ superseded on 2026-03-27 by the new bot", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- ~~[2026-03-20] a: b~~ superseded 2026-03-27T10:00:00Z", ("a", "b", "2026-03-20", "2026-03-27T10:00:00Z")),
        ("- [2026-03-20] ~~a: b~~ superseded 2026-03-27", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- [2026-03-20] a: b (superseded 2026-03-27)", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- [2026-03-20] a: b — SUPERSEDED on 2026-03-27", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- [2026-03-20] a: b SUPERSEDED 2026-03-27", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- [2026-03-20] contract: ended 2026-03-27", ("contract", "ended 2026-03-27", "2026-03-20", None)),
        ("- ~~[2026-03-20] a: b~~ SUPERSEDED by [2026-03-27] a: c", ("a", "b", "2026-03-20", "2026-03-27")),
        ("- [2026-03-20] plan: done - superseded by B", ("plan", "done - superseded by B", "2026-03-20", None)),
        ("- [2026-03-20] plan: superseded by B", ("plan", "superseded by B", "2026-03-20", None)),
        ("- [2026-03-27] **Telegram**: enabled", ("Telegram", "enabled", "2026-03-27", None)),
        ("- [2026-03-27] **Telegram:** enabled", ("Telegram", "enabled", "2026-03-27", None)),
        ("- ~~[2026-03-20] **a:** b~~ superseded 2026-03-27", ("a", "b", "2026-03-20", "2026-03-27")),
    ],
)
def test_lines_are_facts_however_people_write_them(row, fact):
    assert parse_all(f"before\n{row}\nafter") == [fact]
    assert facts.find_fact_lines(f"before\n{row}\nafter")[0].line == 1


@pytest.mark.promise("T2")
@pytest.mark.parametrize(
    "row",
    [
        "- [2026-02-30] a: b", "- [2026-13-01] a: b", "- [0000-01-01] a: b", "- [2026-03-27T25:00:00Z] a: b",
        "- ~~[2026-03-20] a: b~~ superseded 2026-02-30", "- ~~[2026-03-20] a: b~~",
        "- ~~[2026-03-20] a: b superseded 2026-03-21",
        "- [2026-03-27] no colon", "- [2026-03-27] a:b", "- [2026-03-27] : b", "- [2026-03-27] a: ",
        "- [2026-03-27]   : x",
        "    [2026-03-27] a: b", "[2026-03-27] standup notes", "[2026-03-27] Meeting at 10:30", "[2026-03-27](log.md): b",
        "[2026-03-27]: http://x", "- [x] [2026-03-27] task: done", "- ~~[2026-03-20] a: b~~ SUPERSEDED",
        "- ~~[2026-03-20] a: b~~ superseded 2026-03-27 or 2026-03-28", "- [2026-03-20] ~~a: b~~",
        "- ~~[2026-03-20] a: b~~ superseded, see 2026-03-27.md", "- ~~[2026-03-20] a: b~~ now off",
        "-[2026-03-27] a: b", "- [26-03-27] a: b", "- [ ] task: open", "- [x] task: done",
        "- [٢٠٢٦-٠٣-٢٧] a: b", "1. [2026-03-27] a: b", "> - [2026-03-27] a: b", "- [2026-03-27]a: b", "",
    ],
)  # fmt: skip
def test_what_is_not_quite_a_fact_is_only_text(row):
    assert parse_all(row) == []


@given(some.raw_texts | some.broken_texts)
def test_any_text_can_be_read_for_facts(text):
    found = facts.parse_facts(text, "subject", Scope("global"), "p", 1)
    rows = text.split("\n")
    for fact in found:
        assert fact.label in rows[fact.line - 1]
        assert fact.value in rows[fact.line - 1]


def test_a_line_in_a_code_block_is_part_of_the_code():
    log = "[2026-03-27] ERROR: disk full\n- [2026-03-27] a: b\n"
    assert parse_all(f"```text\n{log}```\n") == []
    assert len(parse_all(f"```text\n{log}")) == 2  # a block that is never closed does not count


def test_a_closed_line_without_a_date_ends_when_the_next_one_begins():
    text = "- ~~[2026-03-20] Telegram: off~~ SUPERSEDED\n- [2026-03-27] telegram: on\n- [2026-03-22] other: x"
    assert parse_all(text)[0] == ("Telegram", "off", "2026-03-20", "2026-03-27")
    assert parse_all(text.replace("[2026-03-27]", "[2026-03-19]"))[0][0] == "telegram"  # nothing begins later
    assert parse_all(set_all("- ~~[2026-03-20] a: b~~ superseded by c", ("a", "c", "2026-03-25")))[0][3] == "2026-03-25"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("- ~~[2026-03-20] a: b~~", "not marked as superseded"),
        ("- ~~[2026-03-20] a: b~~ now off", "not marked as superseded"),
        ("- [2026-03-20] ~~a: b~~", "not marked as superseded"),
        ("- ~~[2026-03-20] a: b superseded 2026-03-21", "not struck through to its end"),
        ("- ~~[2026-03-20] a: b~~ SUPERSEDED", "does not say when"),
        ("- ~~[2026-03-20] a: b~~ superseded 2026-03-27 or 2026-03-28", "does not say clearly when"),
        ("- ~~[2026-03-20] a: b~~ superseded 2026-02-30", "no such date"),
        ("[2026-02-30] a: b", "no such date"),
        ("- ~~[2026-03-20] done with it~~ superseded 2026-03-21", "no `label: value`"),
        ("- [2026/03/27] Telegram: enabled", "not the expected one"),
        ("- [27.03.2026] Telegram: enabled", "not the expected one"),
        ("- [2026-03-27 10:00] Telegram: enabled", "not the expected one"),
        ("- [2026-03-27]Telegram: enabled", "not the expected one"),
        ("-[2026-03-27] Telegram: enabled", "not the expected one"),
        ("1. [2026-03-27] Telegram: enabled", "not the expected one"),
        ("- [2026-03-20] a: b SUPERSEDED", "does not say when"),
        ("- [2026-03-20] a: b (superseded 2026-03-27 or 2026-03-28)", "does not say clearly when"),
        ("- **[2026-03-27]** Telegram: enabled", "not the expected one"),
    ],
)
def test_a_dated_line_that_cannot_be_read_is_named(row, problem):
    (found,) = facts.find_unreadable_lines(f"before\n{row}\nafter")
    assert found.line == 1 and problem in found.problem
    assert facts.find_unreadable_lines(f"```\n{row}\n```") == []
    assert parse_all(row) == []


@pytest.mark.parametrize(
    "row",
    [
        "- [2026-03-27] a: b", "- ~~[2026-03-20] a: b~~ SUPERSEDED on 2026-03-27", "[2026-03-27] standup notes", "plain",
        "- [2026-03-27] Meeting at 10:30", "[2026-03-27](log.md): b", "[2026-03-27]: http://x", "- [x] [2026-03-27] task: done",
        "- [ ] task: open", "- ~~[2026-03-20] struck log line~~", "~~struck~~ prose", "- [2026-03-27] a: ", "2026-03-27: talk",
        "- [1.2.3] Fixed: a leak", "see [2026-03-27] a: b", "> - [2026-03-27] a: b",
    ],
)  # fmt: skip
def test_what_is_read_or_not_meant_as_a_fact_is_not_named(row):
    assert facts.find_unreadable_lines(row) == []


@given(some.raw_texts | some.broken_texts)
def test_a_line_is_read_or_named_and_never_both(text):
    read, named = {line.line for line in facts.find_fact_lines(text)}, {one.line for one in facts.find_unreadable_lines(text)}
    assert not read & named


def test_facts_carry_their_subject_place_and_links():
    text = "# Ada\n- [2026-03-27] works_at: [[Acme]] and [[Bell Labs|Bell]]\n"
    (fact,) = facts.parse_facts(text, "Ada", Scope("project", "p"), "projects/p/notes/ada.md", 7)
    assert (fact.subject, fact.line, fact.path, fact.scope) == (
        "Ada",
        8,
        "projects/p/notes/ada.md",
        Scope("project", "p"),
    )
    assert fact.links == ("Acme", "Bell Labs")


@pytest.mark.parametrize(
    "text",
    [
        "- [2026-01-01] a:" + " " * 300_000 + "\n",
        "- [2026-01-01] a: x" + " " * 300_000 + "y\n",
        "- [2026-01-01] a: x" + " \t" * 150_000 + "\x0b\n",
        "- [2026-01-01] " + "a" * 300_000 + "\n",
        "- [2026-01-01] a: " + "[[" * 150_000 + "\n",
        "- ~~[2026-01-01] a: " + "~~ superseded " * 20_000 + "\n",
        "- ~~[2026-01-01] a: x~~ superseded 2026-01-01\n" * 10_000,
        "".join(f"- ~~[2026-01-01] a{n}: x~~ superseded 2026-01-02\n" for n in range(10_000)),
        "\n" * 300_000 + "- [2026-01-01] a: b",
        "- ~~[2026-01-01] a: x~~ superseded by " + "on (" * 100_000 + "\n",
        "- ~~[2026-01-01] a: x~~ superseded by " + " on" * 100_000 + " 2026-01-02\n",
        "- [2026-01-01] a: x" + " (superseded" * 50_000 + "\n",
        "- ~~[2026-01-01] a: x~~ superseded\n" * 10_000 + "- [2026-02-01] a: y\n",
        "- ~~[2026-01-01] a: x~~ superseded " + "2026-01-02 " * 50_000 + "\n",
        "[2026-01-01] a: x\n```\n" * 10_000,
        "> " * 100_000 + "[2026-01-01]" + " " * 100_000 + ":\n",
    ],
    ids=range(16),
)
def test_hostile_lines_are_read_in_one_go(text):
    facts.parse_facts(text, "s", Scope("global"), "p", 1)
    facts.set_fact(text, "a", "new", "2026-05-01", False)
    facts.find_unreadable_lines(text)
    facts.drop_ended_facts(text, "2026-05-01")


# --- showing ----------------------------------------------------------------------------------------------------------


def test_the_current_text_leaves_out_closed_lines_and_nothing_else():
    text = "# Canary\r\n\n- ~~[2026-02-01] share: 5 %~~ ended 2026-09-01\n- [2026-09-01] share: 10 %\r\n  ~~crossed~~ out\n"
    assert facts.drop_ended_facts(text, "2026-10-01T00:00:00Z") == (
        "# Canary\r\n\n- [2026-09-01] share: 10 %\r\n  ~~crossed~~ out\n"
    )
    assert facts.drop_ended_facts(text, "2026-09-01") == facts.drop_ended_facts(text, "2026-10-01")
    assert facts.drop_ended_facts(text, "2026-08-31T23:59:59Z") == text


@given(some.raw_texts)
def test_a_text_without_closed_facts_is_current_as_it_stands(text):
    kept = "\n".join(row for row in text.split("\n") if "~~[" not in row and "] ~~" not in row)
    assert facts.drop_ended_facts(kept, "2026-01-01") == kept


def test_a_struck_line_that_cannot_be_read_is_not_current():
    text = "# Canary\n- ~~[2026-02-01] a: 5 %~~\n- [2026-02-01] ~~a: 6 %~~ old\n~~[2026-01-01] a: 4 %~~ SUPERSEDED\nx"
    assert facts.drop_ended_facts(text, "2026-10-01") == "# Canary\nx"
    text = "- [2026-02-01] a: 5 % SUPERSEDED\n- [2026-03-01] b: 1"
    assert facts.drop_ended_facts(text, "2026-10-01") == "- [2026-03-01] b: 1"


def test_a_statement_says_what_holds_and_since_when():
    parse_all = ("Canary", "share of traffic", "10 %", "2026-09-01")
    assert facts.format_statement(*parse_all) == "Canary, share of traffic: 10 % (since 2026-09-01)"
    assert facts.format_statement(*parse_all, "2026-12-01") == "Canary, share of traffic: 10 % (2026-09-01 to 2026-12-01)"


# --- several files ------------------------------------------------------------------------------------------------------

LINE = st.tuples(st.sampled_from(MOMENTS), st.sampled_from("ABC"), st.none() | st.sampled_from(MOMENTS))


@given(st.dictionaries(st.sampled_from(["notes/a.md", "notes/b.md", "files/c.md"]), st.lists(LINE, min_size=1), min_size=1))
def test_of_several_files_the_one_with_the_newest_line_counts_at_every_moment(said_in):
    place = Scope("project", "p")
    statements = [
        facts.Statement(Fact("s", "l", value, start, end, scope=place, path=f"projects/p/{name}", line=number), name)
        for name, rows in said_in.items()
        for number, (start, value, end) in enumerate(rows)
    ]
    every = facts.resolve_statements(statements, None)
    assert len(every) == len(statements)
    for when in ("2026-02-01", *MOMENTS, "2026-12-31"):
        rows = [(one.fact, one.updated) for one in statements]
        begun = [
            (to_moment(one.valid_from), "/notes/" in one.path, name)
            for one, name in rows
            if to_moment(one.valid_from) <= to_moment(when)
        ]
        holding = [(one, name) for one, name in rows if facts._is_fact_valid(one, to_moment(when))]
        several = any(one.path == two.path and one.value != two.value for one, _ in holding for two, _ in holding)
        wanted = [(one.path, one.line) for one, name in holding if several or name == max(begun)[2]]
        found = facts.resolve_statements(statements, when)
        assert [(one.path, one.line) for one in found] == wanted
        assert all(one.valid_to is None or to_moment(one.valid_to) > to_moment(when) for one in found)
        stale = {place for one in found for place in one.stale_in}
        assert not stale & {f"{one.path}:{one.line}" for one in found}
        outdated = {(one.path, one.line) for one in facts.find_outdated(statements, when)}
        assert outdated == {(one.path, one.line) for one, _ in holding} - set(wanted)
    now = {(one.path, one.line): one for one in facts.resolve_statements(statements, "2026-12-31")}
    assert [one for one in every if one.valid_to is None] == [one for one in now.values() if one.valid_to is None]


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("# Telegram\n\n## Now\n- [2026-01-01] status: on\n- ~~[2025-01-01] status: off~~ superseded 2026-01-01\n", False),
        ("# Telegram\r\n\r\n[2026-01-01] status: on\r\n", False),
        ("# Telegram\n\nThe bot.\n- [2026-01-01] status: on\n", True),
        ("- [2026-01-01] status: on\n- [2026-01-02] standup notes\n", True),
    ],
)
def test_a_text_with_more_than_headings_and_facts_has_prose(text, prose):
    assert facts.has_prose(text) is prose


# --- setting ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("T3")
def test_setting_a_fact_strikes_the_old_line_and_writes_the_new_one():
    text = set_all("# Telegram\n", ("status", "disabled", "2026-03-20"))
    edit = facts.set_fact(text, "status", "enabled", "2026-03-27", False)
    assert edit.text == (
        "# Telegram\n\n- ~~[2026-03-20] status: disabled~~ superseded 2026-03-27\n- [2026-03-27] status: enabled"
    )
    assert (edit.action, edit.line) == ("updated", 3)
    assert [(line.value, line.valid_to) for line in edit.retired] == [("disabled", "2026-03-27")]


@pytest.mark.promise("T3")
def test_a_fact_dated_earlier_slots_into_history_and_does_not_become_current():
    text = set_all("", ("status", "new", "2026-03-27"), ("status", "old", "2026-03-20"))
    assert text == "- ~~[2026-03-20] status: old~~ superseded 2026-03-27\n- [2026-03-27] status: new"
    text = set_all(text, ("status", "middle", "2026-03-22"))
    assert parse_all(text) == [
        ("status", "old", "2026-03-20", "2026-03-22"),
        ("status", "middle", "2026-03-22", "2026-03-27"),
        ("status", "new", "2026-03-27", None),
    ]


@pytest.mark.promise("T3")
@given(st.lists(STATEMENTS, min_size=1, max_size=9), some.raw_texts)
def test_after_any_sequence_the_lines_say_what_a_plain_list_of_it_says(sets, start):
    start = "\n".join(row for row in start.split("\n") if not facts.find_fact_lines(row))
    text, oracles = start, {}
    for label, value, on in sets:
        oracle = oracles.setdefault(facts.normalize_name(label), Oracle())
        before = text
        edit = facts.set_fact(text, label, value, on, False)
        text = edit.text
        assert edit.action == oracle.set(value, on)
        written = facts.find_fact_lines(text)[[line.line for line in facts.find_fact_lines(text)].index(edit.line)]
        assert (facts.normalize_name(written.label), written.value) == (facts.normalize_name(label), value)
        if edit.action == "unchanged":
            assert text == before
            assert value in values_at(text, label, on) and written.value == value
        else:
            assert written.valid_from == on
            assert len(facts.find_fact_lines(text)) == len(facts.find_fact_lines(before)) + 1  # nothing is ever removed
        assert facts.set_fact(text, label, value, on, False).action == "unchanged"
    for label, oracle in oracles.items():
        mine = [line for line in facts.find_fact_lines(text) if facts.normalize_name(line.label) == label]
        assert [(line.valid_to is None) for line in mine].count(True) == 1
        assert sorted((to_moment(line.valid_from), line.value) for line in mine) == sorted(
            (to_moment(on), v) for on, v in oracle.sets
        )
        for when in ("2026-02-01", *MOMENTS, "2026-12-31"):
            assert values_at(text, label, when) == ([oracle.value(when)] if oracle.value(when) else [])
        current = next(line for line in mine if line.valid_to is None)
        assert to_moment(current.valid_from) == max(to_moment(line.valid_from) for line in mine)
        starts = sorted({to_moment(line.valid_from) for line in mine})
        for line in mine:  # contiguous: each ends where another one begins
            assert line.valid_to is None or to_moment(line.valid_to) in starts
            assert line.valid_to is None or to_moment(line.valid_to) >= to_moment(line.valid_from)


@pytest.mark.promise("T3")
@given(st.lists(STATEMENTS, min_size=1, max_size=8), some.raw_texts)
def test_every_other_line_survives_byte_for_byte(sets, start):
    kept = [row for row in start.split("\n") if not facts.find_fact_lines(row)]
    after = set_all("\n".join(kept), *sets).split("\n")
    others = [row for row in after if not facts.find_fact_lines(row)]
    while kept and not kept[-1].strip():  # blank lines at the very end make room
        kept.pop()
    assert others[: len(kept)] == kept
    assert all(not row.strip() for row in others[len(kept) :])


@pytest.mark.promise("T3")
@given(st.lists(STATEMENTS, min_size=1, max_size=8))
def test_each_retired_fact_names_what_retired_it(sets):
    text = ""
    for label, value, on in sets:
        edit = facts.set_fact(text, label, value, on, False)
        text = edit.text
        every = facts.parse_facts(text, "s", Scope("global"), "p", 0)
        for old in edit.retired:
            named = [
                one.retired_by
                for one in every
                if (one.label, one.value, one.valid_from, one.valid_to) == (old.label, old.value, old.valid_from, on)
            ]
            assert f"[{on}] {label.strip()}: {value}" in named
    for one in facts.parse_facts(text, "s", Scope("global"), "p", 0):
        assert (one.retired_by is None) == (one.valid_to is None)
        assert one.retired_by is None or one.retired_by.startswith("[")  # a fact, not only a date


def test_a_line_a_person_ended_without_an_heir_says_when():
    text = "- ~~[2026-03-20] a: b~~ ended 2026-03-27\n- [2026-03-27] other: c"
    assert facts.parse_facts(text, "s", Scope("global"), "p", 0)[0].retired_by == "superseded 2026-03-27"


@pytest.mark.promise("T3")
@given(st.lists(STATEMENTS, max_size=6), STATEMENTS)
def test_several_values_at_once_only_when_asked(sets, last):
    label, value, on = last
    text = set_all("", *sets, many=True)
    mine = [line for line in facts.find_fact_lines(text) if facts.normalize_name(line.label) == facts.normalize_name(label)]
    assert sorted(line.value for line in mine) == sorted(
        {value for name, value, _ in sets if facts.normalize_name(name) == facts.normalize_name(label)}
    )
    assert all(line.valid_to is None for line in mine)
    edit = facts.set_fact(text, label, value, on, True)
    assert edit.retired == ()
    assert facts.set_fact(edit.text, label, value, on, True).action == "unchanged"
    final = facts.set_fact(text, label, "Z", "2026-12-01", False)
    assert len(final.retired) == len(mine)
    assert values_at(final.text, label, "2026-12-01") == ["Z"]


@pytest.mark.promise("T3")
def test_saying_what_holds_already_changes_nothing_and_points_at_the_line_that_says_so():
    text = set_all("", ("s", "A", "2026-03-01"), ("s", "B", "2026-03-02"), ("s", "A", "2026-03-03"))
    edit = facts.set_fact(text, "S", "A", "2026-03-05", False)
    assert (edit.text, edit.action, edit.line, edit.retired) == (text, "unchanged", 2, ())


def test_a_retired_line_keeps_the_shape_a_person_gave_it():
    text = "# WORLD\r\n\r\n  * [2026-03-20]  Status :  on \r\n    because of X\r\n\r\nend\r\n"
    edit = facts.set_fact(text, "status", "off", "2026-03-27", False)
    assert edit.text == (
        "# WORLD\r\n\r\n  * ~~[2026-03-20]  Status :  on~~ superseded 2026-03-27 \r\n    because of X\r\n"
        "  * [2026-03-27] status: off\r\n\r\nend\r\n"
    )
    assert edit.text.split("\n")[edit.line] == "  * [2026-03-27] status: off\r"


def test_a_line_is_closed_in_the_words_and_the_form_that_the_text_has():
    text = "# T\n~~[2026-03-01] s: A~~ SUPERSEDED on 2026-03-09\n[2026-03-09] **s**: B\nend"
    assert set_all(text, ("s", "C", "2026-03-20")) == (
        "# T\n~~[2026-03-01] s: A~~ SUPERSEDED on 2026-03-09\n~~[2026-03-09] **s**: B~~ SUPERSEDED on 2026-03-20\n"
        "[2026-03-20] s: C\nend"
    )
    text = "- [2026-03-01] ~~s: A~~ superseded on 2026-03-09"
    assert set_all(text, ("s", "B", "2026-03-05")) == ("- [2026-03-01] ~~s: A~~ superseded on 2026-03-05\n- [2026-03-05] s: B")
    text = "- [2026-03-01] s: A (superseded 2026-03-09)"
    assert set_all(text, ("s", "B", "2026-03-05")) == ("- ~~[2026-03-01] s: A~~ superseded 2026-03-05\n- [2026-03-05] s: B")


def test_an_old_line_a_person_closed_can_be_closed_earlier():
    text = "- ~~[2026-03-01] s: A~~ ended 2026-03-09"
    assert set_all(text, ("s", "B", "2026-03-05")) == ("- ~~[2026-03-01] s: A~~ superseded 2026-03-05\n- [2026-03-05] s: B")


@pytest.mark.parametrize(
    ("start", "after"),
    [
        ("", "- [2026-01-01] a: b"),
        ("\n\n", "- [2026-01-01] a: b"),
        ("# T", "# T\n\n- [2026-01-01] a: b"),
        ("# T\r\n", "# T\r\n\r\n- [2026-01-01] a: b\r"),
        ("- one", "- one\n- [2026-01-01] a: b"),
        ("- [2026-01-01] x: y\n\nmore", "- [2026-01-01] x: y\n- [2026-01-01] a: b\n\nmore"),
    ],
)
def test_a_first_fact_finds_a_sensible_place(start, after):
    edit = facts.set_fact(start, "a", "b", "2026-01-01", False)
    assert (edit.text, edit.action) == (after, "created")
    assert edit.text.split("\n")[edit.line].startswith("- [2026-01-01] a: b")


@pytest.mark.promise("T3")
def test_a_day_and_its_first_second_are_the_same_date():
    text = set_all("", ("s", "A", "2026-03-01T00:00:00Z"), ("s", "B", "2026-03-01"))
    assert values_at(text, "s", "2026-03-01") == ["B"]
    text = set_all("", ("s", "A", "2026-03-01"), ("s", "B", "2026-03-01T00:00:00Z"))
    assert values_at(text, "s", "2026-03-01") == ["B"]


@pytest.mark.parametrize("value", ["off (superseded 2026-03-27)", "off SUPERSEDED 2026-03-27"])
def test_a_value_that_would_read_as_a_closed_fact_is_refused(memory, value):
    with pytest.raises(Refused, match="closed fact"):
        memory.fact("Telegram", "status", value)
    with pytest.raises(Refused, match="~~"):
        memory.fact("Telegram", "~~status", "off")
    assert memory.fact("Telegram", "**status**", "off").fact.label == "status"


# --- a value that looks like a secret -----------------------------------------------------------------------------------

VALUE = "Xk93!mmQ2zLp"


def test_a_fact_whose_value_is_a_secret_is_refused_or_stated_without_it(memory):
    with pytest.raises(SecretFound, match="--redact"):
        memory.fact("Harbour", "password", VALUE)
    parse_all = memory.fact("Harbour", "password", VALUE, redact=True)
    assert parse_all.redacted and parse_all.fact.value == f"[REDACTED:{parse_all.redacted[0]}]"
    assert memory.facts("Harbour")[0].value == parse_all.fact.value
    assert memory.fact("Harbour", "password", VALUE, redact=True).action == "unchanged"
    assert memory.fact("Harbour", "depth", "12 m", redact=True).redacted == ()


def test_a_name_that_holds_a_secret_is_refused_all_the_same(memory):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with pytest.raises(SecretFound):
        memory.fact(f"Account {token}", "state", "open", redact=True)


def test_every_door_states_it_without_the_secret(memory, home, gateway, capsys):
    from holdfast.cli import main
    from holdfast.mcp import handlers

    set_all = handlers.fact(memory, {"subject": "Mcp", "label": "password", "value": VALUE, "redact": True})
    assert set_all["fact"]["value"] == f"[REDACTED:{set_all['redacted'][0]}]"
    command = ["--home", str(home), "--project", "demo", "fact", "Cli", "password", VALUE]
    assert main(command) == 3
    assert main([*command, "--redact"]) == 0
    assert "removed what looks like a secret" in capsys.readouterr().err
    body = {"subject": "Http", "label": "password", "value": VALUE, "scope": "agent"}
    agent = gateway.agent("reviewer")
    assert agent.post("/v1/facts", body).code == "secret"
    first, again = [agent.post("/v1/facts", {**body, "redact": True}, Idempotency_Key="once") for _ in range(2)]
    assert first.status == 201 and first.json["redacted"] == set_all["redacted"]
    assert again.json["fact"] == first.json["fact"] and again.json["redacted"] == first.json["redacted"]
    with Memory(f"http://127.0.0.1:{gateway.port}", token=agent.token) as remote:
        parse_all = remote.fact("Remote", "password", VALUE, scope="agent", redact=True)
        assert (parse_all.redacted, parse_all.fact.value) == (tuple(set_all["redacted"]), set_all["fact"]["value"])
    assert not any(VALUE.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_every_door_names_the_file_that_still_states_an_older_value(memory, home, gateway, capsys):
    from holdfast.cli import main
    from holdfast.mcp import handlers

    memory.files.create("telegram.md", "# Telegram\n- [2026-01-05] status: off\n")
    place = "projects/demo/files/telegram.md:2"
    assert main(["--home", str(home), "--project", "demo", "fact", "Telegram", "status", "on", "--on", "2026-02-01"]) == 0
    assert f"{place} still states an older value of Telegram, status" in capsys.readouterr().err
    assert main(["--home", str(home), "--project", "demo", "facts", "Telegram", "--json"]) == 0
    assert f'"stale_in": ["{place}"]' in capsys.readouterr().out
    set_all = handlers.fact(memory, {"subject": "Telegram", "label": "status", "value": "paused", "on": "2026-03-01"})
    assert set_all["fact"]["stale_in"] == [place]
    assert handlers.fact(memory, {"subject": "Telegram"})["facts"][0]["stale_in"] == [place]
    agent = gateway.agent("reviewer")
    with Memory(f"http://127.0.0.1:{gateway.port}", token=agent.token) as remote:
        remote.files.create("signal.md", "# Signal\n- [2026-01-05] status: off\n", scope="agent")
        parse_all = remote.fact("Signal", "status", "on", on="2026-02-01", scope="agent").fact
        assert parse_all.stale_in == ("agents/reviewer/files/signal.md:2",)
        assert remote.facts("Signal") == [parse_all]
        (hit,) = remote.recall("signal status", kind="fact", as_of="2026-01-20", scope="agent")
        assert hit.text == "Signal, status: off (2026-01-05 to 2026-02-01)"
