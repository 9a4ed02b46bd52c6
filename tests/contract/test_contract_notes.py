"""Notes: store, keys, versions, expected, tags, scopes, validation, provenance; of every store."""

from __future__ import annotations

import pytest

from holdfast import (
    Conflict,
    Disabled,
    HoldfastError,
    InvalidKey,
    InvalidText,
    NoScope,
    NotFound,
    SecretFound,
    TooLarge,
    UsageError,
)
from holdfast.base.ids import KEY_PATTERN

HOSTILE = [
    "'; DROP TABLE document; --", "%(tenant)s %s %% \\x00", "$1 $$ $tag$", "a\\'b\"c`d", "---\nid: x\n---\nno front matter",
    "<!-- holdfast:history -->\n## 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z\nforged", "tab\there", "line\r\nend",
    "東京タワー 🚀 مرحبا नमस्ते", "\u202eevil\u200b", "e\u0301 and \u00e9", "\uffff \ufffe", "x" * 20_000, "a\n" * 5000,
]  # fmt: skip


def test_a_store_says_created_then_updated_then_unchanged(any_memory):
    actions = [any_memory.store(text, key="k").action for text in ("one", "two", "two")]
    assert actions == ["created", "updated", "unchanged"]
    assert (any_memory.get("k").text, any_memory.get("k").versions) == ("two", 2)


def test_a_note_is_found_by_the_next_call_of_another_caller(any_memory, open_any):
    other = open_any()
    assert len(other.recall("harbour")) == 0
    any_memory.store("the harbour opens at six", key="harbour")
    assert [hit.key for hit in other.recall("harbour")] == ["harbour"]
    any_memory.store("the harbour opens at seven", key="harbour")
    assert [hit.text for hit in other.recall("harbour")] == ["the harbour opens at seven"]
    assert other.get("harbour").versions == 2


def test_the_old_version_stays_with_its_validity_interval(any_memory, clock):
    any_memory.store("use unittest", key="tests")
    clock.set("2026-06-01T00:00:00Z")
    any_memory.store("use pytest", key="tests")
    new, old = any_memory.history("tests")
    assert (new.text, new.valid_from, new.until) == ("use pytest", "2026-06-01T00:00:00Z", None)
    assert (old.text, old.valid_from, old.until) == ("use unittest", "2026-05-01T12:00:00Z", "2026-06-01T00:00:00Z")


def test_forty_versions_are_all_there_newest_first(any_memory):
    for number in range(40):
        any_memory.store(f"version {number}", key="many")
    assert [one.text for one in any_memory.history("many")] == [f"version {n}" for n in reversed(range(40))]


def test_the_same_content_again_leaves_the_document_as_it_is(any_memory, bytes_of, clock):
    any_memory.store("same", key="k", tags=["a"], type="user")
    before = bytes_of(any_memory, "k")
    clock.forward(days=1)
    assert any_memory.store("same", key="k").action == "unchanged"
    assert bytes_of(any_memory, "k") == before


def test_the_same_note_is_the_same_document_in_every_store(any_memory, bytes_of, clock, monkeypatch):
    monkeypatch.setattr("holdfast.verbs.write.new_id", lambda _: "01K9Z6V0M4Q2ABCD")
    any_memory.store("Use unittest.", key="tests", type="feedback", tags="ci-cd, py")
    clock.forward(days=1)
    any_memory.store("Use pytest.", key="tests")
    assert bytes_of(any_memory, "tests").decode() == (
        "---\nid: 01K9Z6V0M4Q2ABCD\ntype: feedback\ntags: [ci-cd, py]\ncreated: 2026-05-01T12:00:00Z\n"
        "updated: 2026-05-02T12:00:00Z\nsource: {origin: agent}\n---\nUse pytest.\n\n<!-- holdfast:history -->\n"
        "## 2026-05-01T12:00:00Z to 2026-05-02T12:00:00Z\n"
        "<!-- holdfast:version {type: feedback, tags: [ci-cd, py], origin: agent} -->\nUse unittest.\n"
    )


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_comes_back_as_it_was_and_is_found(any_memory, open_any, text):
    kept = any_memory.store(f"marker {text}", key="k").note
    fresh = open_any()
    assert fresh.get("k").text == kept.text == f"marker {text}"
    assert [hit.key for hit in fresh.recall("marker", mode="keyword")] == ["k"]
    assert [note.text for note in fresh.list()] == [kept.text]


@pytest.mark.parametrize(
    ("text", "error"),
    [("", InvalidText), (" \n\t", InvalidText), ("a\0b", InvalidText), (b"caf\xe9", InvalidText), ("half \ud83d", InvalidText),
     ("x" * 65_537, TooLarge), (42, UsageError)],
    ids=["empty", "blank", "NUL", "not UTF-8", "a lone surrogate", "too large", "no text"],
)  # fmt: skip
def test_what_the_gate_refuses_writes_nothing(any_memory, text, error):
    with pytest.raises(error):
        any_memory.store(text, key="k")
    with pytest.raises(error):
        any_memory.store_many([{"text": "fine", "key": "fine"}, {"text": text, "key": "bad"}])
    assert any_memory.list() == [] and any_memory._context.store.list_scopes() == []


@pytest.mark.parametrize("key", ["", "A", "a.b", "-a", "a/b", "../a", "ä", "a\n", "a" * 61, "a\0", 7, "'; --"], ids=ascii)
def test_a_key_that_breaks_the_rule_is_rejected_by_every_verb(any_memory, key):
    with pytest.raises(InvalidKey):
        any_memory.store("text", key=key)
    for verb in (any_memory.get, any_memory.history, any_memory.forget, any_memory.restore, any_memory.purge):
        with pytest.raises(InvalidKey):
            verb(key)
    assert any_memory.list() == []


@pytest.mark.parametrize("text", ["东京在日本", "🚀🚀", "مرحبا بالعالم", "Größe der Kästen", "a b c d e f g"])
def test_a_made_key_is_safe_in_any_script_and_the_same_text_gives_the_same_note(any_memory, open_any, text):
    first = any_memory.store(text)
    assert KEY_PATTERN.match(first.note.key) and any_memory.get(first.note.key).text == text
    assert open_any().store(text).action == "unchanged"


def test_a_secret_is_refused_or_redacted_and_never_kept(any_memory, bytes_of):
    secret = "AKIA" + "Z7QJ3MNB5KDRTWXY"
    with pytest.raises(SecretFound) as refused:
        any_memory.store(f"aws_access_key_id = {secret}", key="k")
    assert secret not in str(refused.value) and any_memory.list() == []
    any_memory.store(f"aws_access_key_id = {secret}", key="k", redact=True)
    assert secret.encode() not in bytes_of(any_memory, "k")


def test_types_and_tags_stay_and_can_be_changed(any_memory):
    any_memory.store("one", key="k", type="feedback", tags=" ci-cd , 日本, ci-cd ")
    note = any_memory.store("two", key="k").note
    assert (note.type, note.tags) == ("feedback", ("ci-cd", "日本"))
    assert any_memory.store("two", key="k", type="reference", tags=[]).note.tags == ()
    assert any_memory.get("k").type == "reference"


def test_expected_names_the_version_that_was_seen_or_conflicts(any_memory, open_any):
    seen = any_memory.store("one", key="k").note.version
    open_any().store("two", key="k")
    with pytest.raises(Conflict):
        any_memory.store("mine", key="k", expected=seen)
    assert [one.text for one in any_memory.history("k")] == ["two", "one"]
    assert any_memory.store("three", key="k", expected=any_memory.get("k").version).action == "updated"


def test_expected_of_a_note_that_is_gone_conflicts(any_memory):
    seen = any_memory.store("one", key="k").note.version
    any_memory.forget("k")
    with pytest.raises(Conflict):
        any_memory.store("two", key="k", expected=seen)
    assert any_memory.list() == []


def test_many_at_once_are_all_kept_and_found(any_memory, open_any):
    stored = any_memory.store_many([{"text": f"harbour number {n}", "key": f"n{n}", "tags": ["t"]} for n in range(50)])
    assert {one.action for one in stored} == {"created"}
    assert len(open_any().list()) == 50
    assert len(open_any().recall("harbour", limit=100)) == 50
    again = any_memory.store_many([{"text": f"harbour number {n}", "key": f"n{n}"} for n in range(40, 60)])
    assert [one.action for one in again] == ["unchanged"] * 10 + ["created"] * 10


def test_many_at_once_are_none_when_one_is_bad(any_memory):
    any_memory.store("one", key="there")
    with pytest.raises(InvalidKey):
        any_memory.store_many([{"text": "two", "key": "there"}, {"text": "x", "key": "NOT"}])
    assert any_memory.history("there")[0].text == "one" and len(any_memory.list()) == 1


def test_many_at_once_go_to_the_scopes_they_name_and_the_first_bad_one_is_named(any_memory):
    stored = any_memory.store_many([{"text": "of all", "key": "k", "scope": "global"}, {"text": "of the project", "key": "k"}])
    assert [one.note.scope.kind for one in stored] == ["global", "project"]
    any_memory.store("The combination of the safe is known.", key="gone")
    any_memory.purge("gone")
    purged, changed = {"text": "The combination of the safe is known."}, {"text": "x", "key": "k", "expected": "0" * 32}
    fine = {"text": "fine", "scope": "global"}
    for rows in ([fine, purged, changed], [fine, changed, purged], [purged, changed], [fine, changed, {"text": ""}]):
        first = 1 + (rows[0] is fine)
        with pytest.raises(HoldfastError, match=rf"\Anote {first}: ") as caught:
            any_memory.store_many(rows)
        assert caught.value.number == first and len(any_memory.list()) == 2


def test_provenance_is_kept_with_every_version(open_any, clock):
    caller = open_any(agent="reviewer", client="cli", session="s1")
    caller.store("one", key="k")
    clock.forward(days=1)
    caller.store("two", key="k", origin="tool")
    new, old = caller.history("k")
    assert (new.source.origin, old.source.origin, new.recorded) == ("tool", "agent", clock.now)
    assert {(one.source.agent, one.source.client, one.source.session) for one in (new, old)} == {("reviewer", "cli", "s1")}


def test_a_pin_and_an_end_are_kept(any_memory):
    any_memory.store("pinned words", key="k", pinned=True, valid_from="2026-01-01", valid_to="2030-01-01")
    note = any_memory.get("k")
    assert (note.pinned, note.valid_from, note.valid_to) == (True, "2026-01-01T00:00:00Z", "2030-01-01T00:00:00Z")
    assert any_memory.store("pinned words", key="k", pinned=False).action == "updated"


def test_what_is_not_there_is_not_found_and_the_nearest_key_is_named(any_memory):
    any_memory.store("words", key="harbour-master")
    with pytest.raises(NotFound, match="harbour-master"):
        any_memory.get("harbour-mastr")
    with pytest.raises(NotFound):
        any_memory.history("nothing")


# --- scopes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def crowd(open_any):
    """Two callers of each kind, each with the same text in all of its scopes."""
    callers = [open_any(project=f"p{n}", session=f"s{n}", agent=f"a{n}") for n in (1, 2)]
    for number, caller in enumerate(callers, 1):
        for scope in ("project", "session", "agent"):
            caller.store(f"harbour words of {scope} {number}", key=f"{scope}-{number}", scope=scope)
            caller.files.create(f"{scope}.md", f"# Page\n\nharbour file of {scope} {number}\n", scope=scope)
            caller.fact(f"Subject {number}", scope, f"value {number}", scope=scope)
    return callers


def test_a_caller_reads_all_that_it_may_see_and_nothing_else(crowd):
    for number, caller in enumerate(crowd, 1):
        hits = caller.recall("harbour", limit=100).hits
        assert sorted(hit.text.split("\n")[-1] for hit in hits) == sorted(
            f"harbour {what} of {scope} {number}" for scope in ("project", "session", "agent") for what in ("words", "file")
        )
        assert all(note.key.endswith(str(number)) for note in caller.list())
        assert {fact.value for fact in caller.facts()} == {f"value {number}"}


def test_no_verb_reaches_what_is_anothers(crowd):
    first, second = crowd
    for scope in ("project", "session", "agent"):
        for verb in (first.get, first.history, first.restore, first.trace):
            with pytest.raises(NotFound):
                verb(f"{scope}-2")
        assert not first.forget(f"{scope}-2").deleted
        assert not first.purge(f"{scope}-2").deleted
    for snippet in second.search("harbour", limit=100):
        assert second.read(snippet.path).text and first.read(snippet.path).text == ""
    assert len(second.list()) == 6


def test_the_nearest_scope_is_meant_when_several_have_the_key(open_any):
    caller = open_any(session="s", agent="a")
    for scope in ("global", "agent", "project", "session"):
        caller.store(f"the harbour of {scope}", key="k", scope=scope)
    assert [hit.scope.kind for hit in caller.recall("harbour")] == ["session", "project", "agent", "global"]
    for scope in ("session", "project", "agent", "global"):
        assert caller.get("k").scope.kind == scope
        caller.forget("k", scope=scope)


def test_a_scope_without_an_id_is_refused_and_nothing_falls_elsewhere(any_memory):
    for scope in ("session", "agent"):
        with pytest.raises(NoScope):
            any_memory.store("words", scope=scope)
    with pytest.raises(UsageError):
        any_memory.store("words", scope="team")
    assert any_memory._context.store.list_scopes() == []


def test_a_global_note_is_seen_from_every_project(open_any):
    open_any(project="one").store("for all", key="g", scope="global")
    assert open_any(project="two").get("g").text == "for all"


def test_names_that_differ_only_in_case_or_look_alike_are_different_scopes(open_any):
    for agent in ("ada", "Ada", "ada.", "ada_"):
        open_any(agent=agent).store(f"words of {agent}", key="k", scope="agent")
    for agent in ("ada", "Ada", "ada.", "ada_"):
        assert open_any(agent=agent).get("k", scope="agent").text == f"words of {agent}"


# --- disabled memory, and an empty store ------------------------------------------------------------------------------


def test_switched_off_writes_are_refused_and_reads_answer_empty(any_memory, open_any, monkeypatch):
    any_memory.store("words", key="k")
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    off = open_any()
    for call in (lambda: off.store("x"), lambda: off.forget("k"), lambda: off.purge("k"), lambda: off.fact("a", "b", "c")):
        with pytest.raises(Disabled):
            call()
    answer = off.recall("words")
    assert (len(answer), answer.disabled, off.list(), off.facts(), off.trash()) == (0, True, [], [], [])
    assert any_memory.get("k").versions == 1


def test_an_empty_store_answers_every_question(any_memory):
    assert len(any_memory.recall("anything")) == 0
    assert len(any_memory.recall(mode="recent")) == 0
    assert any_memory.list() == any_memory.facts() == any_memory.trash() == any_memory.receipts() == []
    assert any_memory.brief().text == "" and any_memory.search("x") == [] and any_memory.review() == []
    assert any_memory.read("projects/demo/notes/k.md").text == "" and list(any_memory.export()) == []
    assert any_memory.clear("project") == 0 and any_memory.retain() == []
    assert not any_memory.forget("k").deleted and not any_memory.purge("k").deleted
    with pytest.raises(NotFound):
        any_memory.get("k")


def test_an_empty_store_stays_empty_when_it_is_asked(any_memory):
    any_memory.recall("anything")
    any_memory.list(), any_memory.brief(), any_memory.status(), any_memory.check()
    assert not any_memory.forget("k").deleted
    assert any_memory._context.store.list_scopes() == []


def test_an_export_has_every_note_with_its_versions(any_memory):
    any_memory.store("one", key="k")
    any_memory.store("two", key="k")
    any_memory.store("other", key="o", tags="t")
    rows = {row["key"]: row for row in any_memory.export()}
    assert sorted(rows) == ["k", "o"]
    assert [one["text"] for one in rows["k"]["versions"]] == ["two", "one"]
