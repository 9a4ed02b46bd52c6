"""Storing: types, keys, versions, tags, validation, provenance, and the files that are written."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Conflict, HoldfastError, InvalidKey, InvalidText, Memory, NotFound, TooLarge, UsageError
from holdfast.base.ids import KEY_PATTERN

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
CAP = 64 * 1024
BAD_TEXTS = {
    "empty": ("", InvalidText),
    "blank": (" \n\t\n ", InvalidText),
    "a byte order mark": ("\ufeff\n", InvalidText),
    "a NUL": ("before\0after", InvalidText),
    "not UTF-8": (b"caf\xe9", InvalidText),
    "a lone surrogate": ("half \ud83d", InvalidText),
    "over the cap": ("x" * (CAP + 1), TooLarge),
    "over the cap in bytes": ("é" * (CAP // 2 + 1), TooLarge),
    "not a text": (42, UsageError),
}
BAD_KEYS = [
    "",
    "A",
    "a.b",
    "-a",
    "a b",
    "a_b",
    "a/b",
    "../a",
    "ä",
    "a\n",
    "\na",
    "a" * 61,
    "ａ",
    "a\0",
    "日本",
    7,
    b"a",
]


# --- types (N2) -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N2")
def test_a_note_is_of_type_project_unless_it_says_otherwise(memory):
    assert memory.store("plain").note.type == "project"


@pytest.mark.promise("N2")
@pytest.mark.parametrize("type", ["user", "feedback", "project", "reference"])
def test_each_of_the_four_types_is_kept(memory, type):
    memory.store("typed", key="typed", type=type)
    assert memory.get("typed").type == type


@pytest.mark.promise("N2")
@pytest.mark.parametrize("type", ["note", "User", "feed back"])
def test_a_fifth_type_is_refused_and_nothing_is_written(memory, home, type):
    with pytest.raises(UsageError, match="user, feedback, project, reference"):
        memory.store("typed", type=type)
    assert not home.exists()


@pytest.mark.promise("N2")
def test_a_type_is_a_label_and_never_moves_a_note(memory):
    first = memory.store("about the user", key="moved", type="user").note
    second = memory.store("about the user", key="moved", type="reference").note
    assert first.path == second.path == "projects/demo/notes/moved.md"
    assert first.scope == second.scope


@pytest.mark.promise("N2")
def test_a_type_stays_when_the_next_version_names_none(memory):
    memory.store("one", key="k", type="feedback")
    assert memory.store("two", key="k").note.type == "feedback"


# --- keys (N3) --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N3")
@pytest.mark.parametrize("key", ["a", "0", "a-b", "0-9", "a" * 60, "a--b-"])
def test_a_key_within_the_rule_is_kept_as_it_is(memory, key):
    assert memory.store("text", key=key).note.key == key
    assert memory.get(key).text == "text"


@pytest.mark.promise("N3", "S1")
@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_a_key_that_breaks_the_rule_is_rejected_and_nothing_is_written(memory, home, key):
    with pytest.raises(InvalidKey):
        memory.store("text", key=key)
    with pytest.raises(InvalidKey):
        memory.store_many([{"text": "fine", "key": "fine"}, {"text": "text", "key": key}])
    assert not home.exists()


@pytest.mark.promise("N3")
@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_no_verb_that_takes_a_key_lets_a_broken_one_through(memory, key):
    for verb in (memory.get, memory.history, memory.forget, memory.restore, memory.purge):
        with pytest.raises(InvalidKey):
            verb(key)


@pytest.mark.promise("N3")
def test_keys_that_only_resemble_each_other_never_merge(memory):
    memory.store("the one", key="ab")
    with pytest.raises(InvalidKey):
        memory.store("the other", key="a.b")
    assert memory.get("ab").text == "the one"
    assert memory.get("ab").versions == 1


@pytest.mark.promise("N3")
def test_without_a_key_one_is_made_from_the_first_six_words(memory):
    assert memory.store("Deploys happen on Friday mornings").note.key == "deploys-happen-on-friday-mornings"
    assert memory.store("one two three four five six seven").note.key.startswith("one-two-three-four-five-six-")


@pytest.mark.promise("N3")
@pytest.mark.parametrize(
    "text", ["东京在日本", "🚀🚀", "مرحبا بالعالم", "привет мир", "Größe der Kästen", "¿?", "— …", "\u202eevil", "नमस्ते"]
)
def test_a_made_key_is_safe_in_any_script_and_the_note_is_there(memory, text):
    key = memory.store(text).note.key
    assert KEY_PATTERN.match(key)
    assert memory.get(key).text == text


@pytest.mark.promise("N3")
@pytest.mark.parametrize(
    "texts",
    [
        ("东京", "大阪"),
        ("🚀", "🔥"),
        ("one two three four five six seven", "one two three four five six eight"),
        ("Größe", "Grosse"),
        ("C is fast", "C++ is fast"),
        ("timeout is 5", "timeout is -5"),
    ],
    ids=str,
)
def test_different_texts_without_a_key_become_different_notes(memory, texts):
    first, second = (memory.store(text) for text in texts)
    assert first.note.key != second.note.key
    assert second.action == "created"


@pytest.mark.promise("N3")
@pytest.mark.parametrize("text", ["Deploy on Friday", "东京在日本", "one two three four five six seven eight", "🚀"])
def test_the_same_content_without_a_key_is_the_same_note(memory, open_memory, text):
    assert memory.store(text).action == "created"
    assert memory.store(text).action == "unchanged"
    assert open_memory().store(text).action == "unchanged"
    assert len(memory.list()) == 1


# --- versions (N4) ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("N4")
def test_a_store_says_created_then_updated_then_unchanged(memory):
    assert memory.store("one", key="k").action == "created"
    assert memory.store("two", key="k").action == "updated"
    assert memory.store("two", key="k").action == "unchanged"


@pytest.mark.promise("N4")
def test_the_old_version_stays_with_its_validity_interval(memory, clock):
    memory.store("use unittest", key="tests")
    clock.set("2026-06-01T00:00:00Z")
    memory.store("use pytest", key="tests")
    new, old = memory.history("tests")
    assert (new.text, new.valid_from, new.until) == ("use pytest", "2026-06-01T00:00:00Z", None)
    assert (old.text, old.valid_from, old.until) == ("use unittest", "2026-05-01T12:00:00Z", "2026-06-01T00:00:00Z")
    assert memory.get("tests").text == "use pytest"
    assert memory.get("tests").versions == 2


@pytest.mark.promise("N4")
def test_a_hundred_versions_are_all_there_newest_first(memory):
    for number in range(100):
        memory.store(f"version {number}", key="many")
    assert [version.text for version in memory.history("many")] == [f"version {number}" for number in reversed(range(100))]


@pytest.mark.promise("N4")
def test_the_same_content_again_leaves_the_file_alone(memory, note_file, clock):
    memory.store("same", key="k", tags=["a"], type="user")
    before = note_file("k").read_bytes(), note_file("k").stat().st_ino
    clock.forward(days=3)
    assert memory.store("same", key="k").action == "unchanged"
    assert memory.store("same", key="k", tags="a", type="user").action == "unchanged"
    assert (note_file("k").read_bytes(), note_file("k").stat().st_ino) == before
    assert len(memory.history("k")) == 1


@pytest.mark.promise("N4")
def test_going_back_to_an_older_text_is_a_new_version(memory):
    for text in ("one", "two", "one"):
        memory.store(text, key="k")
    assert [version.text for version in memory.history("k")] == ["one", "two", "one"]


@pytest.mark.promise("N4")
@pytest.mark.parametrize("change", [{"tags": ["new"]}, {"type": "user"}, {"pinned": True}, {"valid_to": "2030-01-01"}], ids=str)
def test_new_labels_on_the_same_text_are_an_update(memory, change):
    memory.store("same", key="k")
    assert memory.store("same", key="k", **change).action == "updated"
    assert memory.store("same", key="k", **change).action == "unchanged"


@pytest.mark.promise("N4")
def test_a_note_is_searchable_from_anywhere_when_the_call_returns(memory, open_memory):
    other = open_memory()
    other.recall("anything")
    memory.store("the harbour master is Ingrid")
    for caller in (memory, other, open_memory()):
        assert [hit.text for hit in caller.recall("ingrid")] == ["the harbour master is Ingrid"]


@pytest.mark.promise("N4")
def test_only_the_current_version_is_found_once_another_took_over(memory):
    memory.store("the colour is vermilion", key="k")
    memory.store("the colour is turquoise", key="k")
    assert len(memory.recall("turquoise")) == 1
    assert len(memory.recall("vermilion")) == 0


def test_an_edit_that_names_the_version_it_saw_goes_through(memory):
    seen = memory.store("one", key="k").note.version
    assert memory.store("two", key="k", expected=seen).action == "updated"
    assert memory.store("three", key="k", expected=memory.get("k").version).action == "updated"


def test_an_edit_of_a_version_that_is_no_more_loses_by_name_and_writes_nothing(memory, open_memory, truth):
    seen = memory.store("one", key="k").note.version
    open_memory().store("two", key="k")
    before = truth()
    with pytest.raises(Conflict):
        memory.store("three", key="k", expected=seen)
    with pytest.raises(Conflict):
        memory.store_many([{"text": "other", "key": "other"}, {"text": "three", "key": "k", "expected": seen}])
    assert truth() == before


def test_an_edit_of_a_note_that_was_forgotten_meanwhile_conflicts(memory):
    seen = memory.store("one", key="k").note.version
    memory.forget("k")
    with pytest.raises(Conflict):
        memory.store("two", key="k", expected=seen)
    with pytest.raises(NotFound):
        memory.get("k")


def test_a_hand_edit_changes_the_version_so_a_blind_store_conflicts(memory, note_file, truth):
    seen = memory.store("one", key="k").note.version
    note_file("k").write_text(note_file("k").read_text().replace("one", "one, said by hand"))
    before = truth()
    with pytest.raises(Conflict):
        memory.store("two", key="k", expected=seen)
    assert truth() == before


# --- tags (N5) --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N5")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["ci-cd", "Ünïcode", "日本"], ("ci-cd", "Ünïcode", "日本")),
        (" ci-cd ,  two words ,,x", ("ci-cd", "two words", "x")),
        (("a", "a", " a "), ("a",)),
        (["a,b", "c"], ("a", "b", "c")),
        ("", ()),
        ([], ()),
        (None, ()),
        (
            ['quo"te', "co:lon", "#hash", "[b]", "{c}", "- d", "'", "true", "*", "&x", "!t", "%", "@"],
            ('quo"te', "co:lon", "#hash", "[b]", "{c}", "- d", "'", "true", "*", "&x", "!t", "%", "@"),
        ),
        (["-->", "<!-- holdfast:history -->"], ("-->", "<!-- holdfast:history -->")),
    ],
    ids=ascii,
)
def test_tags_come_back_trimmed_and_whole_from_file_index_and_history(memory, open_memory, given, kept):
    memory.store("text", key="k", tags=given)
    assert memory.get("k").tags == kept
    assert memory.list()[0].tags == kept
    memory.store("later text", key="k", tags=["other"])
    assert open_memory().history("k")[1].tags == kept


@pytest.mark.promise("N5")
def test_tags_stay_when_the_next_version_names_none_and_go_when_it_names_an_empty_list(memory):
    memory.store("one", key="k", tags="a,b")
    assert memory.store("two", key="k").note.tags == ("a", "b")
    assert memory.store("two", key="k", tags=[]).note.tags == ()


@pytest.mark.promise("N5", "S1")
@pytest.mark.parametrize("tag", ["a\nb", "a\x1bb", "a\0b", "x" * 101, "\ud800"], ids=ascii)
def test_a_tag_that_could_break_a_line_is_refused_or_trimmed_and_never_kept(memory, truth, tag):
    try:
        kept = memory.store("text", key="k", tags=[tag]).note.tags
        assert all(char.isprintable() for one in kept for char in one)
    except HoldfastError:
        assert truth() == {}


# --- what is rejected (N6, S1) ----------------------------------------------------------------------------------------


@pytest.mark.promise("N6", "S1")
@pytest.mark.parametrize("why", BAD_TEXTS)
def test_a_text_that_cannot_be_kept_is_refused_and_nothing_is_written(memory, home, why):
    text, error = BAD_TEXTS[why]
    with pytest.raises(error) as raised:
        memory.store(text, key="k")
    assert raised.value.message
    assert not home.exists()


@pytest.mark.promise("N6", "S1")
@pytest.mark.parametrize("why", BAD_TEXTS)
def test_one_bad_note_of_many_is_named_and_none_is_written(memory, home, why):
    text, error = BAD_TEXTS[why]
    with pytest.raises(error, match="note 2"):
        memory.store_many([{"text": "fine"}, {"text": text}, {"text": "fine too"}])
    assert not home.exists()


@pytest.mark.promise("N6", "S1")
@pytest.mark.parametrize("why", ["empty", "blank", "a NUL", "a lone surrogate", "over the cap", "not a text"])
@pytest.mark.parametrize("place", ["subject", "label", "value"])
def test_no_part_of_a_fact_gets_around_the_gate(memory, home, why, place):
    parts = {"subject": "Telegram", "label": "status", "value": "on", place: BAD_TEXTS[why][0]}
    with pytest.raises(HoldfastError):
        memory.fact(**parts)
    assert not home.exists()


@pytest.mark.promise("N6", "S1")
@pytest.mark.parametrize("why", ["a NUL", "a lone surrogate", "not a text"])
def test_no_file_verb_gets_around_the_gate(memory, truth, why):
    memory.files.create("page.md", "one\ntwo\n")
    before, bad = truth(), BAD_TEXTS[why][0]
    for write in (
        lambda: memory.files.create("new.md", bad),
        lambda: memory.files.create("page.md", bad),
        lambda: memory.files.str_replace("page.md", "one", bad),
        lambda: memory.files.insert("page.md", 1, bad),
    ):
        with pytest.raises(HoldfastError):
            write()
    assert truth() == before


@pytest.mark.promise("N6", "S1")
def test_a_file_over_ten_mebibytes_is_refused_by_every_file_verb(memory, truth):
    most = 10 * 1024 * 1024
    memory.files.create("page.md", "x" * (most - 1))
    before = truth()
    for write in (
        lambda: memory.files.create("new.md", "x" * (most + 1)),
        lambda: memory.files.insert("page.md", 0, "yy"),
    ):
        with pytest.raises(TooLarge):
            write()
    assert truth() == before


@pytest.mark.promise("N6")
def test_a_note_of_exactly_the_cap_is_kept(memory):
    text = "é" * (CAP // 2)
    memory.store(text, key="full")
    assert memory.get("full").text == text


@pytest.mark.promise("N6")
def test_the_cap_is_a_setting(home, open_memory):
    home.mkdir(0o700)
    (home / "config.toml").write_text("[notes]\nmax_bytes = 10\n")
    memory = open_memory()
    memory.store("0123456789")
    with pytest.raises(TooLarge, match="10"):
        memory.store("0123456789a")


@pytest.mark.promise("N6", "S1")
def test_facts_cannot_grow_a_note_over_the_cap(home, open_memory, truth):
    home.mkdir(0o700)
    (home / "config.toml").write_text("[notes]\nmax_bytes = 100\n")
    memory = open_memory()
    memory.fact("Telegram", "status", "on", on="2026-01-01")
    before = truth()
    with pytest.raises(TooLarge):
        memory.fact("Telegram", "motto", "x" * 100)
    assert truth() == before


@pytest.mark.promise("N6")
def test_bytes_that_are_utf8_are_kept_as_text(memory):
    assert memory.store("café".encode()).note.text == "café"


# --- provenance (N13) -------------------------------------------------------------------------------------------------


@pytest.mark.promise("N13")
@pytest.mark.parametrize("origin", ["user", "agent", "tool", "web", "import"])
def test_each_version_says_who_wrote_it_through_what_and_when(open_memory, clock, origin):
    first = open_memory(agent="reviewer", client="claude-code", session="7f3a")
    first.store("one", key="k", origin=origin)
    clock.forward(days=1)
    second = open_memory(agent="writer", client="codex", session="8b")
    second.store("two", key="k", origin="user")
    new, old = open_memory().history("k")
    nothing = {"made_from": [], "trust": None}
    by = {"origin": origin, "agent": "reviewer", "client": "claude-code", "session": "7f3a"}
    assert new.source.as_dict() == {"origin": "user", "agent": "writer", "client": "codex", "session": "8b", **nothing}
    assert old.source.as_dict() == {**by, **nothing}
    assert (old.recorded, new.recorded) == ("2026-05-01T12:00:00Z", "2026-05-02T12:00:00Z")


@pytest.mark.promise("N13")
def test_facts_and_bulk_notes_carry_provenance_too(open_memory):
    memory = open_memory(agent="reviewer", client="codex", origin="tool")
    (many,) = memory.store_many([{"text": "bulk"}])
    fact = memory.fact("Telegram", "status", "on")
    named = memory.store_many([{"text": "of its own", "origin": "web"}, {"text": "of all"}], origin="import")
    assert many.note.source == fact.note.source
    assert (many.note.source.origin, many.note.source.agent, many.note.source.client) == ("tool", "reviewer", "codex")
    assert [one.note.source.origin for one in named] == ["web", "import"]


@pytest.mark.promise("N13")
def test_an_unknown_origin_is_refused(memory, home):
    with pytest.raises(UsageError):
        memory.store("text", origin="god")
    with pytest.raises(UsageError):
        Memory(home, origin="god")
    assert not home.exists()


@pytest.mark.promise("N13")
def test_every_timestamp_is_utc_to_the_second(memory):
    memory.store("one", key="k", valid_from="2026-03-01T00:30:00+02:00", valid_to="2030-01-01")
    memory.store("two", key="k")
    note = memory.get("k")
    stamps = [note.created, note.updated, note.valid_from]
    for version in memory.history("k"):
        stamps += [version.recorded, version.valid_from, version.until or note.updated]
    assert all(STAMP.match(stamp) for stamp in stamps)
    assert memory.history("k")[1].valid_from == "2026-02-28T22:30:00Z"


# --- bulk writes ------------------------------------------------------------------------------------------------------


def test_many_notes_are_kept_at_once_and_answered_in_their_order(memory, open_memory):
    memory.store("old", key="k1")
    notes = [{"text": f"note number {number}", "key": f"k{number}", "tags": "bulk"} for number in range(5)]
    stored = memory.store_many([*notes, {"text": "keyless"}, {"text": "old", "key": "k9"}])
    assert [one.action for one in stored] == ["created", "updated", *["created"] * 5]
    assert [one.note.key for one in stored] == ["k0", "k1", "k2", "k3", "k4", "keyless", "k9"]
    assert memory.history("k1")[1].text == "old"
    for caller in (memory, open_memory()):
        assert len(caller.recall("number", tags="bulk")) == 5
    assert {one.action for one in memory.store_many(notes)} == {"unchanged"}


def test_what_many_answers_is_what_get_says(memory):
    for one in memory.store_many([{"text": "alpha", "tags": "x"}, {"text": "beta", "type": "user", "pinned": True}]):
        assert one.note == memory.get(one.note.key)


def test_many_answers_once_for_each_note_that_was_given(memory):
    stored = memory.store_many([{"text": "twice"}, {"text": "once"}, {"text": "twice"}])
    assert [one.note.text for one in stored] == ["twice", "once", "twice"]
    assert len(memory.list()) == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"text": "fine", "colour": "red"},
        {"key": "no-text"},
        {"text": "fine", "type": "odd"},
        {"text": "t", "valid_from": "soon"},
    ],
    ids=str,
)
def test_a_malformed_note_of_many_is_named_and_none_is_written(memory, home, bad):
    with pytest.raises(HoldfastError, match="note 2"):
        memory.store_many([{"text": "first"}, bad])
    assert not home.exists()


def test_one_key_with_two_texts_in_one_bulk_is_refused(memory, home):
    with pytest.raises(UsageError, match="'k'"):
        memory.store_many([{"text": "one", "key": "k"}, {"text": "two", "key": "k"}])
    assert not home.exists()


def test_many_of_nothing_is_nothing(memory):
    assert memory.store_many([]) == []


def test_pinned_notes_are_listed_first_and_stay_pinned_until_unpinned(memory, clock):
    memory.store("old but pinned", key="old", pinned=True)
    clock.forward(days=1)
    memory.store("new", key="new")
    assert [note.key for note in memory.list()] == ["old", "new"]
    memory.store("old, reworded", key="old")
    assert memory.get("old").pinned
    memory.store("old, reworded", key="old", pinned=False)
    clock.forward(days=1)
    memory.store("newer", key="newer")
    assert memory.list()[0].key == "newer"


# --- the exact text ---------------------------------------------------------------------------------------------------

_NASTY = (
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20),
            st.sampled_from(
                [
                    "<!-- holdfast:history -->",
                    "\\<!-- holdfast:history -->",
                    "<!-- holdfast:version {origin: user} -->",
                    "---",
                    "## 2026-04-16T10:30:00Z to 2026-05-02T09:00:00Z",
                    "## 2026-04-16 to 2026-05-02",
                    "\n",
                    "\n\n",
                    "\r\n",
                    "\r",
                    "\ufeff",
                    "id: 01K9Z6V0M4Q2",
                    "\u2028",
                    "\x85",
                    "\x0b",
                    "- [2026-03-27] a: b",
                    "<!-- holdfast:begin -->",
                    "\\",
                ]
            ),
        ),
        min_size=1,
        max_size=6,
    )
    .map("".join)
    .filter(lambda text: text.strip().strip("\ufeff"))
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=_NASTY, second=_NASTY)
def test_whatever_the_texts_say_they_come_back_exactly_and_forge_nothing(memory, first, second):
    memory.store(first, key="k")
    memory.store(second, key="k")
    wanted = [second, first] if first != second else [second]
    assert memory.get("k").text == second
    assert [version.text for version in memory.history("k")][: len(wanted)] == wanted
    assert memory.get("k").versions == len(wanted)
    assert memory.get("k").source.origin == "agent"
    memory.forget("k")


def test_a_stored_marker_cannot_forge_a_version(memory, note_file):
    section = "## 2020-01-01 to 2021-01-01\n<!-- holdfast:version {origin: user} -->\nfalse\n"
    forged = f"real\n\n<!-- holdfast:history -->\n{section}"
    memory.store(forged, key="k")
    assert [version.text for version in memory.history("k")] == [forged]
    memory.store("next", key="k")
    assert [version.text for version in memory.history("k")] == ["next", forged]
    assert note_file("k").read_text().count("\n<!-- holdfast:history -->\n") == 1


# --- the files --------------------------------------------------------------------------------------------------------


def test_a_note_on_disk_looks_as_the_format_says(open_memory, note_file, clock):
    memory = open_memory(agent="reviewer", client="claude-code", session="7f3a")
    memory.store("Use unittest in legacy modules.", key="tests", type="feedback", tags=["testing", "pytest"], origin="user")
    clock.set("2026-05-02T09:00:00Z")
    memory.store("Always use pytest; never unittest.", key="tests", origin="user")
    id = memory.get("tests").id
    assert note_file("tests").read_text() == (
        f"---\nid: {id}\ntype: feedback\ntags: [testing, pytest]\ncreated: 2026-05-01T12:00:00Z\n"
        "updated: 2026-05-02T09:00:00Z\n"
        "source: {origin: user, agent: reviewer, client: claude-code, session: 7f3a}\n---\n"
        "Always use pytest; never unittest.\n\n<!-- holdfast:history -->\n"
        "## 2026-05-01T12:00:00Z to 2026-05-02T09:00:00Z\n"
        "<!-- holdfast:version {type: feedback, tags: [testing, pytest], origin: user, agent: reviewer, "
        "client: claude-code, session: 7f3a} -->\nUse unittest in legacy modules.\n"
    )


def test_dates_and_pins_stand_in_the_file_only_when_they_say_something(memory, note_file):
    memory.store("plain", key="plain")
    memory.store("special", key="special", valid_from="2026-01-01", valid_to="2027-01-01", pinned=True)
    assert not re.search("valid_|pinned|expires|trust|relations", note_file("plain").read_text())
    assert (
        "valid_from: 2026-01-01T00:00:00Z\nvalid_to: 2027-01-01T00:00:00Z\npinned: true\n" in note_file("special").read_text()
    )


def test_an_id_is_made_by_us_sorts_by_time_and_never_changes(memory, clock):
    first = memory.store("one", key="a").note.id
    clock.forward(1)
    second = memory.store("two", key="b").note.id
    assert first < second
    assert memory.store("three", key="a").note.id == first


def test_a_file_with_no_frontmatter_is_a_note_whose_key_is_its_name(memory, note_file):
    memory.store("there is a home now")
    note_file("by-hand").write_text("Written by a person.\n")
    assert memory.get("by-hand").text == "Written by a person."
    assert memory.recall("person")[0].key == "by-hand"


def test_what_a_person_put_into_the_frontmatter_survives_an_update_byte_for_byte(memory, note_file):
    memory.store("there is a home now")
    theirs = "# a comment\nmood:   'fine'   # why not\nnested:\n    - one\n    - {two: 3}\nTitle : x\n"
    note_file("k").write_text(f"---\n{theirs}type: user\n---\nold words\n")
    memory.store("new words", key="k")
    assert theirs in note_file("k").read_text()
    assert memory.get("k").type == "user"
    assert [version.text for version in memory.history("k")] == ["new words", "old words"]


def test_bytes_that_are_not_utf8_survive_in_the_history_of_a_hand_written_note(memory, note_file):
    memory.store("there is a home now")
    note_file("k").write_bytes(b"caf\xe9 au lait\n")
    memory.store("tea", key="k")
    assert b"caf\xe9 au lait" in note_file("k").read_bytes()
    assert memory.get("k").text == "tea"


def test_files_are_for_their_owner_only_whatever_the_umask(child, home):
    child(
        """
        os.umask(0)
        memory = Memory(args[0], project="demo", session="s", agent="a")
        memory.recall("nothing yet")
        for scope in ("global", "project", "session", "agent"):
            memory.store("text", key="k", scope=scope); memory.store("more", key="k", scope=scope)
            memory.files.create("deep/er/page.md", "text", scope=scope)
        memory.store_many([{"text": "many"}]); memory.fact("a", "b", "c"); memory.recall("text"); memory.brief()
        memory.forget("many"); memory.restore("many"); memory.forget("a"); memory.reindex(); memory.check()
        """,
        home,
    )
    wrong = {
        str(path.relative_to(home.parent)): oct(mode)
        for path in [home, *home.rglob("*")]
        if (mode := stat.S_IMODE(path.lstat().st_mode)) != (0o700 if path.is_dir() else 0o600)
    }
    assert wrong == {}


def test_a_store_leaves_nothing_beside_the_note(memory, home, no_temp_left):
    memory.store("one", key="k")
    memory.store("two", key="k")
    memory.store_many([{"text": "three"}, {"text": "four"}])
    assert sorted(os.listdir(home / "shelf" / "projects" / "demo" / "notes")) == ["four.md", "k.md", "three.md"]
    assert sorted(os.listdir(home / "shelf" / "projects" / "demo")) == ["index.md", "notes"]


@pytest.fixture
def steps(monkeypatch):
    """Record the flushes and renames on disk, in order."""
    told = []

    def hear(name, show):
        whole = getattr(os, name)

        def heard(*args, **kwargs):
            told.append((name, show(args)))
            return whole(*args, **kwargs)

        monkeypatch.setattr(os, name, heard)

    def what(fd):
        return "folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"

    hear("write", lambda args: "file")
    hear("fsync", lambda args: what(args[0]))
    hear("rename", lambda args: args[1])
    return told


@pytest.mark.disk
@pytest.mark.parametrize("verb", ["store", "store again", "fact", "files.create", "files.str_replace"])
def test_a_write_is_flushed_before_it_is_renamed_and_its_folder_is_flushed_after(memory, steps, verb):
    memory.store("old words", key="k")
    memory.files.create("page.md", "old words")
    memory.fact("Harbour", "state", "old")
    steps.clear()
    name = {
        "store": lambda: memory.store("new words", key="new").note.path,
        "store again": lambda: memory.store("new words", key="k").note.path,
        "fact": lambda: memory.fact("Harbour", "state", "new").note.path,
        "files.create": lambda: memory.files.create("new.md", "words") and "new.md",
        "files.str_replace": lambda: memory.files.str_replace("page.md", "old", "new") or "page.md",
    }[verb]().rsplit("/", 1)[-1]
    renamed = steps.index(("rename", name))
    before, after = steps[:renamed], steps[renamed + 1 :]
    assert ("write", "file") in before
    assert ("fsync", "file") in before[before.index(("write", "file")) :]
    assert ("fsync", "folder") in after


@pytest.mark.disk
def test_forgetting_and_restoring_flush_the_folders_they_change(memory, steps):
    memory.store("words", key="k")
    memory.forget("k")
    memory.restore("k")
    for verb in (memory.forget, memory.restore):
        steps.clear()
        verb("k")
        renamed = next(place for place, (name, what) in enumerate(steps) if name == "rename" and what.startswith("k"))
        assert steps[renamed + 1 :].count(("fsync", "folder")) >= 2


@pytest.mark.disk
@pytest.mark.parametrize("count", [2, 4, 5, 20])
def test_many_are_all_flushed_before_the_first_is_renamed(memory, steps, monkeypatch, count):
    from holdfast.store import atomic

    flush = atomic.sync_filesystem
    monkeypatch.setattr(atomic, "sync_filesystem", lambda folder: steps.append(("flush", "all")) or flush(folder))
    memory.store_many([{"text": f"words {n}", "key": f"k{n}"} for n in range(count)])
    renames = [place for place, (name, what) in enumerate(steps) if name == "rename" and what.startswith("k")]
    before = steps[: renames[0]]
    assert len(renames) == count
    assert (before.count(("flush", "all")), before.count(("fsync", "file"))) == ((1, 0) if count > 4 else (0, count))
    assert ("write", "file") not in before[
        next(n for n, step in enumerate(before) if step[0] in ("flush", "fsync") and step[1] in ("all", "file")) :
    ]
    assert ("fsync", "folder") in steps[renames[-1] :]


@pytest.mark.disk
def test_a_few_do_not_wait_for_what_others_write_on_the_same_disk(memory, monkeypatch):
    from holdfast.store import atomic

    monkeypatch.setattr(atomic, "sync_filesystem", lambda folder: pytest.fail("flushed all of the file system"))
    memory.store_many([{"text": f"words {n}", "key": f"k{n}"} for n in range(4)])


@pytest.mark.disk
@pytest.mark.parametrize("trouble", [None, OSError, AttributeError])
def test_the_disk_is_told_of_all_of_a_few_before_it_is_waited_for_the_first(memory, steps, monkeypatch, trouble):
    def told(*args):
        steps.append(("told", "file"))
        if trouble:
            raise trouble("not here")

    monkeypatch.setattr(os, "posix_fadvise", told, raising=False)
    memory.store_many([{"text": f"words {n}", "key": f"k{n}"} for n in range(3)])
    told_or_waited = [name for name, what_ in steps if name in ("told", "fsync") and what_ == "file"]
    assert told_or_waited == ["told"] * 3 + ["fsync"] * 3
    assert len(memory.list()) == 3


def test_one_scopes_lock_does_not_hold_up_another(open_memory, home):
    from holdfast.home import Lock

    memory = open_memory()
    memory.store("words", key="k")
    with Lock(str(home), "projects+demo", 1):
        assert memory.store("words", key="k", scope="global").action == "created"
        assert memory.recall("words").hits


def test_locks_stand_outside_the_shelf(memory, home):
    memory.store("text")
    assert list((home / "shelf").rglob("*lock*")) == []


# --- folders that stay open between stores ------------------------------------------------------------------------------------


def shelf_of(memory):
    return os.path.join(memory.home, "shelf", "projects", memory.project)


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_folder_that_was_taken_away_and_made_anew_is_the_one_that_is_written_to(memory, many):
    memory.store("Before.", key="before")
    os.rename(shelf_of(memory), shelf_of(memory) + ".away")
    os.makedirs(os.path.join(shelf_of(memory), "notes"))
    if many:
        memory.store_many([{"text": "After.", "key": "after"}, {"text": "Later.", "key": "later"}])
    else:
        memory.store("After.", key="after")
    assert os.path.exists(os.path.join(shelf_of(memory), "notes", "after.md"))
    assert os.listdir(os.path.join(shelf_of(memory) + ".away", "notes")) == ["before.md"]


@pytest.mark.parametrize("inner", ["notes", ""], ids=["notes", "project"])
def test_nothing_is_written_through_a_link_that_took_a_folders_place(memory, tmp_path, inner):
    memory.store("Before.", key="before")
    place = os.path.join(shelf_of(memory), inner).rstrip("/")
    os.rename(place, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", place)
    with pytest.raises(HoldfastError):
        memory.store("After.", key="after")
    with pytest.raises(HoldfastError):
        memory.store_many([{"text": "After.", "key": "after"}, {"text": "Later.", "key": "later"}])
    written = [name for _, _, names in os.walk(tmp_path / "elsewhere") for name in names]
    assert [name for name in written if name != "index.md"] == ["before.md"]


_CLOSES_ALL = """
import os, sys
from holdfast import Memory
memory = Memory(sys.argv[1], project="demo")
memory.store("Before.", key="before")
memory._context.index.close(), memory._context.ledger.close()
os.closerange(3, 100)  # as programs do that go into the background
others = [os.open(sys.argv[2], os.O_RDONLY) for _ in range(20)]
memory.store("After.", key="after")
memory.store_many([{"text": "Later.", "key": "later"}, {"text": "Last.", "key": "last"}])
print(sorted(os.listdir(sys.argv[2])), [os.fstat(one).st_nlink > 0 for one in others].count(True), memory.get("after").text)
"""


def test_a_program_that_closes_all_descriptors_writes_to_no_other_folder(tmp_path):
    (tmp_path / "other").mkdir()
    words = [sys.executable, "-c", _CLOSES_ALL, str(tmp_path / "home"), str(tmp_path / "other")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[] 20 After.\n", "")


_FORKS_WHILE_STORING = """
import gc, os, sys
from holdfast import Memory
memory, codes = Memory(sys.argv[1], project="demo"), []

def notes():
    for number in range(3):
        if number == 1:
            child = os.fork()
            if child == 0:
                os._exit(0 if gc.isenabled() else 9)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        yield {"text": f"Number {number}.", "key": f"n{number}"}

memory.store_many(notes())
print(codes, gc.isenabled())
"""


def test_a_child_that_is_forked_during_an_import_looks_for_litter_again(tmp_path):
    words = [sys.executable, "-c", _FORKS_WHILE_STORING, str(tmp_path / "home")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[0] True\n", "")


@pytest.mark.parametrize("notes", [["text"], [None], [{"text": "good"}, 7], {"text": "x"}, "text", b"text", None, 7])
def test_what_is_no_list_of_mappings_is_refused_and_nothing_is_kept(memory, notes):
    with pytest.raises(UsageError, match="mapping"):
        memory.store_many(notes)
    assert memory.list() == []


@pytest.mark.parametrize(
    "given",
    [
        {"type": ""}, {"type": []}, {"type": 0}, {"origin": ""}, {"origin": 0}, {"made_from": ""}, {"made_from": 0},
        {"made_from": {}}, {"tags": [1, True]}, {"expected": False},
    ],
)  # fmt: skip
def test_what_is_of_another_kind_is_refused_be_it_empty(memory, given):
    with pytest.raises(HoldfastError) as caught:
        memory.store("text", **given)
    assert caught.value.code in ("usage", "invalid_text") and memory.list() == []
    assert memory.store("text", type=None, origin=None, made_from=[], tags=[], expected=None).action == "created"
