"""Maintenance: status, check and reindex; trust, review, trace, forgetting a source; of every store."""

from __future__ import annotations

import pytest

from holdfast import Conflict, NotFound, Refused
from holdfast.verbs import status as status_verb

URL = "https://evil.example/page"


# --- status, check, reindex -------------------------------------------------------------------------------------------


def test_a_status_counts_what_there_is(open_any):
    caller = open_any(session="s1", agent="a1")
    caller.store("one\n\n- [2026-01-01] colour: red", key="k")
    caller.store("two", key="g", scope="global")
    caller.files.create("a.md", "words")
    caller.log([{"role": "user", "text": "hello"}], session="s1", client="c")
    status = caller.status()
    assert (status.project, status.session, status.agent, status.enabled) == ("demo", "s1", "a1", True)
    by_scope = {one.scope: one for one in status.scopes}
    assert (by_scope["projects/demo"].notes, by_scope["projects/demo"].files, by_scope["global"].notes) == (1, 1, 1)
    assert (by_scope["projects/demo"].sessions, status.sessions, status.turns, status.facts) == (1, 1, 1, 1)
    assert by_scope["projects/demo"].bytes > 0 and by_scope["projects/demo"].visible
    assert status.passages == 4 and status.degraded == "" and status.briefing_chars > 0


def test_a_status_of_the_callers_own_scopes_counts_nobody_elses(open_any):
    caller, other = open_any(agent="a1"), open_any(agent="a2", project="other")
    caller.store("one\n\n- [2026-01-01] colour: red", key="k")
    caller.store("another", key="k")
    other.store("two\n\n- [2026-01-01] colour: red", key="k", scope="agent")
    other.log([{"role": "user", "text": "hello"}], session="s1", client="c")
    own = [status_verb.status(one._context, one.brief(), whole=False) for one in (caller, other)]
    assert [(one.passages, one.facts, one.turns) for one in own] == [(2, 0, 0), (2, 1, 1)]
    assert [(one.index_bytes, one.ledger_bytes, one.waiting) for one in own] == [(None, None, None)] * 2


def test_a_status_of_nothing_is_all_zeros(any_memory):
    status = any_memory.status()
    assert (status.scopes, status.passages, status.facts, status.briefing_chars) == ((), 0, 0, 0)


def test_a_store_with_nothing_wrong_has_no_problems(any_memory):
    any_memory.store("words", key="k")
    any_memory.files.create("a.md", "words")
    any_memory.log([{"role": "user", "text": "hello"}], session="s", client="c")
    any_memory.forget("k")
    any_memory.store("words again", key="k")
    any_memory.recall("words")
    any_memory.purge("k")
    assert any_memory.check() == []


def test_a_note_that_came_back_after_its_purge_is_reported_and_never_told(any_memory, open_any):
    scope = any_memory.store("the harbour code is forty-two and a half", key="k").note.scope
    data = any_memory._context.store.read_note(scope, "k").data
    receipt = any_memory.purge("k")
    any_memory._context.store.write_note(scope, "back", data, None)  # from a backup
    for caller in (any_memory, open_any()):
        assert len(caller.recall("harbour")) == 0 and caller.list() == []
        assert "forty-two" not in caller.brief().text
    (problem,) = [one for one in any_memory.check() if one.code == "purged"]
    assert receipt.id in problem.message
    assert any_memory.purge("back").deleted and any_memory.check() == []


def test_what_came_to_the_shelf_without_the_catalogue_is_found_by_the_next_call(any_memory, open_any):
    """A writer that died between the two, or a copy from elsewhere: truth first, catalogue second."""
    scope = any_memory.store("words", key="k").note.scope
    other = open_any()
    assert len(other.recall("lighthouse")) == 0
    any_memory._context.store.write_note(scope, "planted", b"the lighthouse stands here\n", None)
    assert [hit.key for hit in other.recall("lighthouse")] == ["planted"]
    any_memory._context.store.erase_file(scope, "notes", "planted.md")
    assert len(other.recall("lighthouse")) == 0
    assert len(open_any().list()) == 1


def test_a_rebuilt_index_answers_the_same(any_memory, open_any):
    any_memory.store("the harbour opens at six\n\n- [2026-01-01] colour: red", key="k", tags="t")
    any_memory.store("the harbour opens at seven\n\n- [2026-01-01] colour: green", key="k")
    any_memory.files.create("a.md", "harbour words")
    any_memory.log([{"role": "user", "text": "harbour talk"}], session="s", client="c")

    def told(caller):
        hits = [(hit.citation, hit.text, hit.score) for hit in caller.recall("harbour", limit=50)]
        return sorted(hits), caller.list(), caller.facts(), caller.brief().text

    before = told(any_memory)
    built = any_memory.reindex()
    assert (built.notes, built.files, built.facts) == (1, 1, 1)
    assert told(any_memory) == told(open_any()) == before


def test_ids_of_projects_that_are_one_are_remembered(any_memory):
    ledger = any_memory._context.ledger
    ledger.projects.link("old", "demo")
    ledger.projects.link("older", "old")
    found = [ledger.projects.find_project(alias) for alias in ("old", "older", "none")]
    assert found == ["demo", "demo", None]


# --- trust ------------------------------------------------------------------------------------------------------------


def test_what_came_from_the_web_is_searchable_and_never_told_until_a_person_approves(any_memory, person):
    any_memory.store("The harbour opens at six.", key="tide", origin="web")
    assert any_memory.get("tide").quarantined and any_memory.recall("harbour")[0].quarantined
    assert "opens at six" not in any_memory.brief().text
    assert [note.key for note in person.review()] == ["tide"]
    assert not person.approve("tide").quarantined
    assert person.review() == [] and "opens at six" in any_memory.brief().text
    person.reindex()
    assert not any_memory.get("tide").quarantined


def test_only_a_person_approves_or_rejects_and_what_was_seen(any_memory, person):
    seen = any_memory.store("one", key="k", origin="web").note.version
    for verb in (any_memory.approve, any_memory.reject):
        with pytest.raises(Refused, match="only a person"):
            verb("k")
    any_memory.store("two", key="k", origin="web")
    with pytest.raises(Conflict):
        person.approve("k", expected=seen)


def test_a_rejected_note_is_forgotten_and_the_decision_is_kept(any_memory, person):
    any_memory.store("one", key="k", origin="web")
    any_memory.store("two", key="l", origin="web")
    person.approve("l")
    assert person.reject("k").deleted and [note.key for note in any_memory.list()] == ["l"]
    assert [(one.action, one.detail) for one in any_memory.trace("l").decisions] == [
        ("approved", {"scope": "project:demo", "key": "l"})
    ]


def test_a_text_is_trusted_no_more_than_what_it_was_made_from(any_memory):
    any_memory.store("a", key="a", made_from=["tool:grep", URL])
    any_memory.store("b", key="b", made_from="note:a")
    any_memory.store("c", key="c", made_from=["note:b"])
    assert [any_memory.get(key).source.trusted for key in "abc"] == ["web"] * 3
    with pytest.raises(NotFound):
        any_memory.store("d", key="d", made_from="note:none")


def test_a_note_is_traced_up_to_its_roots_and_down_to_what_was_made_from_it(any_memory):
    any_memory.store("a page says so", key="first", made_from=[URL])
    any_memory.store("which means", key="second", made_from=["note:first"])
    any_memory.store("so do this", key="third", made_from=["second"])
    up = any_memory.trace("third").versions[0]
    assert up.came_from[0].came_from[0].came_from[0].what == URL
    down = any_memory.trace("first").led_to
    assert (down[0].note, down[0].led_to[0].note) == ("project/second", "project/third")


def test_to_whom_a_note_was_told_is_known(open_any, clock):
    teller = open_any(session="s1", client="claude-code")
    note = teller.store("harbour opens", key="tide").note
    teller.brief()
    assert [(one.version, one.session, one.client, one.time) for one in teller.trace("tide").briefed] == [
        (note.version, "s1", "claude-code", clock.now)
    ]


def test_a_person_decides_what_waits_of_every_agent_and_project(open_any, person):
    for number, (agent, scope) in enumerate([("a1", "agent"), ("a2", "agent"), ("a2", "global"), ("a1", "project")]):
        open_any(agent=agent, project="other").store(f"of a page, {number}", key="k", scope=scope, origin="web")
    notes = person.review(everywhere=True)
    assert sorted(str(note.scope) for note in notes) == ["agent:a1", "agent:a2", "global", "project:other"]
    assert [str(note.scope) for note in person.review()] == ["global"]
    for note in notes:
        decide = person.approve if note.scope.kind == "agent" else person.reject
        decide(note.key, scope=note.scope, expected=note.version)
    assert person.review(everywhere=True) == []
    for agent in ("a1", "a2"):
        one = open_any(agent=agent, project="other")
        assert [note.scope.kind for note in one.list() if not note.quarantined] == ["agent"]
        with pytest.raises(Refused):
            one.review(everywhere=True)


def test_everything_a_source_touched_is_forgotten_at_once(any_memory, person):
    any_memory.store("a page says so", key="first", made_from=[URL])
    any_memory.store("which means", key="second", made_from=["note:first"])
    any_memory.store("something else", key="other")
    assert {note.key for note in any_memory.list(source=URL)} == {"first", "second"}
    assert sorted(one.key for one in any_memory.forget_source(URL, dry_run=True).forgotten) == ["first", "second"]
    assert len(any_memory.list()) == 3
    person.forget_source(URL)
    assert [note.key for note in any_memory.list()] == ["other"]
    with pytest.raises(Refused, match="a person removed"):
        any_memory.restore("second")
    assert person.restore("second").text == "which means"


@pytest.mark.promise("T2")
def test_dated_lines_that_cannot_be_read_as_facts_are_named_with_file_and_line(any_memory):
    any_memory.fact("Telegram", "status", "on", on="2026-03-01")
    any_memory.store("# Bot\n\n- ~~[2026-03-20] status: off~~\n- [2026-03-27] standup notes\n- [ ] task: open", key="bot")
    any_memory.files.create("log.md", "# Log\n" + "- [2026/03/27] a: b\n" * 40 + "```\n- [2026/03/27] a: b\n```\n")
    note, file = sorted(any_memory.check(), key=lambda one: one.path, reverse=True)
    line = any_memory.get("bot").lines[0] + 2
    assert (note.code, note.path) == ("fact", f"projects/demo/notes/bot.md:{line}")
    assert f"line {line}: the line is struck through but not marked as superseded" in note.message
    assert "- ~~[2026-03-20] label: value~~ superseded 2026-03-27" in note.message
    assert file.path == "projects/demo/files/log.md:2"
    assert "40 dated lines" in file.message and "; and 37 more)" in file.message and len(file.message) < 600
    assert [fact.value for fact in any_memory.facts()] == ["on"]
    any_memory.store("# Bot\n\n- ~~[2026-03-20] status: off~~ SUPERSEDED on 2026-03-27", key="bot")
    any_memory.files.delete("log.md")
    assert any_memory.check() == []
