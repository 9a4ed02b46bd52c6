"""Forget, restore, clear, retain, purge and its receipts; of every store."""

from __future__ import annotations

import json

import pytest

from holdfast import Conflict, NotFound, Purged, Refused
from holdfast.context import usage
from holdfast.models import Scope
from holdfast.store.interface import Document
from holdfast.verbs.read import find_note

WORD = "zanzibarqvx7"  # a word that occurs nowhere else and that no stemmer shortens
LINE = f"the harbour code of {WORD} is forty-two and a half"
TEXT = f"# Harbour\n\n{LINE}\nand nothing else matters"


@pytest.fixture
def noted(any_memory):
    any_memory.store(f"the old word is {WORD}", key="k", tags="t")
    any_memory.store(f"the new word is {WORD} too\n\n- [2026-01-01] status: {WORD}", key="k")
    any_memory.store("something else stays", key="other")
    return any_memory


def documents(memory):
    """Return every document of every scope, byte for byte."""
    store = memory._context.store
    return {
        (scope, part, entry.name): store.read_file(scope, part, entry.name).data
        for scope in store.list_scopes()
        for part in ("notes", "trash", "archive")
        for entry in store.entries(scope, part)
        if entry.regular
    }


def test_a_forgotten_note_is_gone_from_every_answer_at_once_and_for_every_caller(noted, open_any):
    other = open_any()
    assert len(other.recall(WORD)) == 1
    assert noted.forget("k").deleted
    for caller in (noted, other, open_any()):
        assert len(caller.recall(WORD)) == len(caller.recall(WORD, as_of="2100-01-01")) == 0
        assert [note.key for note in caller.list()] == ["other"]
        assert caller.facts() == caller.search(WORD) == []
        assert WORD not in caller.brief().text
        with pytest.raises(NotFound, match="to the trash"):
            caller.get("k")


def test_a_forgotten_note_comes_back_with_its_whole_history(noted, open_any):
    before = noted.get("k"), noted.history("k")
    noted.forget("k")
    assert noted.restore("k") == before[0]
    for caller in (noted, open_any()):
        assert (caller.get("k"), caller.history("k")) == before
        assert [hit.key for hit in caller.recall(WORD)] == ["k"]
        assert len(caller.facts()) == 1


def test_forgetting_says_until_when_and_of_what_is_not_there_that_it_was_not(noted, clock):
    clock.set("2026-05-01T12:00:00Z")
    assert noted.forget("k").restorable_until == "2026-05-31T12:00:00Z"
    assert not noted.forget("k").deleted and not noted.forget("nothing").deleted


def test_the_trash_is_emptied_after_thirty_days(noted, clock):
    noted.forget("k")
    clock.forward(days=29)
    noted.retain()
    noted.restore("k")
    noted.forget("k")
    clock.forward(days=31)
    noted.retain()
    with pytest.raises(NotFound):
        noted.restore("k")
    assert not any(WORD.encode() in data for data in documents(noted).values())


def test_restoring_does_not_overwrite_and_may_go_under_another_key(noted):
    before = noted.history("k")
    noted.forget("k")
    noted.store("a new life", key="k")
    with pytest.raises(Conflict):
        noted.restore("k")
    with pytest.raises(Conflict):
        noted.restore("k", under="other")
    assert noted.restore("k", under="elsewhere").key == "elsewhere"
    assert (noted.history("elsewhere"), noted.get("k").text) == (before, "a new life")


def test_a_key_used_again_after_forget_starts_a_new_note(noted):
    old = noted.get("k")
    noted.forget("k")
    new = noted.store("a new life", key="k")
    assert (new.action, new.note.versions) == ("created", 1) and new.note.id != old.id


@pytest.mark.parametrize("clock_goes", [0, -3600], ids=["still", "back"])
def test_restore_brings_back_the_one_that_was_forgotten_last(any_memory, clock, clock_goes):
    for life in range(4):
        any_memory.store(f"life {life}", key="k")
        any_memory.forget("k")
        clock.forward(clock_goes)
    for life in reversed(range(4)):
        assert any_memory.restore("k").text == f"life {life}"
        any_memory._context.store.erase_file(any_memory.get("k").scope, "notes", "k.md")


def test_the_trash_shows_what_can_be_restored_newest_first(any_memory, clock):
    any_memory.store("archived words", key="archived")
    clock.forward(days=91)
    any_memory.retain()
    for key in ("first", "second"):
        any_memory.store(f"{key} words", key=key)
        clock.forward(days=1)
        any_memory.forget(key)
    assert [(one.key, one.part) for one in any_memory.trash()] == [
        ("second", "trash"), ("first", "trash"), ("archived", "archive"),
    ]  # fmt: skip


def test_clear_forgets_every_note_of_a_scope_and_only_of_that_scope(noted):
    noted.store("global words", key="g", scope="global")
    noted.files.create("page.md", "kept")
    assert noted.clear("project") == 2 and noted.clear("project") == 0
    assert [note.key for note in noted.list()] == ["g"]
    assert noted.files.view("page.md") == "kept"
    assert noted.restore("k").versions == 2


# --- retention --------------------------------------------------------------------------------------------------------


def test_what_was_not_used_for_its_time_is_archived_stays_findable_and_can_be_restored(open_any, clock):
    caller = open_any(session="s1", agent="a1")
    for scope in ("global", "project", "session", "agent"):
        caller.store(f"{scope} harbour words", key=scope, scope=scope)
    caller.store("what the user wants", key="wish", type="user")
    clock.forward(days=91)
    assert sorted(note.key for note in caller.retain(dry_run=True)) == ["project", "session"]
    assert len(caller.list()) == 5
    assert sorted(note.key for note in caller.retain()) == ["project", "session"]
    assert sorted(note.key for note in caller.list()) == ["agent", "global", "wish"]
    assert sorted(note.key for note in caller.list(archived=True)) == ["project", "session"]
    assert [(hit.key, hit.archived) for hit in caller.recall("harbour")] == [
        ("agent", False), ("global", False), ("session", True), ("project", True),
    ]  # fmt: skip
    assert "project harbour" not in caller.brief().text and "project harbour" not in caller.brief(prompt="harbour words").text
    assert caller.restore("project").text == "project harbour words"
    assert caller.retain() == []


@pytest.fixture
def archived(any_memory, clock):
    """A note of two versions that was archived, and one that was not."""
    any_memory.store("The old gull.", key="k")
    any_memory.store(f"# Harbour\n\nThe {WORD} is closed.\n\n- [2026-01-01] depth: 9 m", key="k")
    clock.forward(days=91)
    assert [note.key for note in any_memory.retain()] == ["k"]
    any_memory.store("something else stays", key="other")
    return any_memory


def test_recalling_and_reading_count_as_use(any_memory, clock):
    for key in ("recalled", "read", "got", "untouched"):
        any_memory.store(f"{key} harbour words", key=key)
    clock.forward(days=80)
    assert [hit.key for hit in any_memory.recall("recalled", limit=1)] == ["recalled"]
    any_memory.get("got")
    any_memory.read("projects/demo/notes/read.md")
    clock.forward(days=80)
    assert [note.key for note in any_memory.retain()] == ["untouched"]
    clock.forward(days=11)
    assert sorted(note.key for note in any_memory.retain()) == ["got", "read", "recalled"]


def test_being_shown_to_a_session_counts_as_use(open_any, clock):
    caller = open_any(session="s1")
    caller.store("The harbour is closed.", key="k")
    clock.forward(days=80)
    assert "harbour" in caller.brief().text
    clock.forward(days=80)
    assert caller.retain() == []
    clock.forward(days=11)
    assert [note.key for note in caller.retain()] == ["k"]


def test_being_shown_without_a_session_can_be_noted_and_does_not_count_as_a_recall(any_memory, clock):
    note = any_memory.store("The harbour is closed.", key="k").note
    clock.forward(days=80)
    usage.record_shown(any_memory._context.ledger, [note.id])
    any_memory.recall("harbour")
    assert any_memory._context.ledger.usage.get_counts([note.id]) == {note.id: 1}
    clock.forward(days=80)
    assert any_memory.retain() == []


def test_reading_an_archived_note_tells_that_it_was_archived_and_brings_it_back(archived, open_any):
    note = archived.get("k")
    assert note.archived and note.path == "projects/demo/notes/k.md" and note.versions == 2
    for caller in (archived, open_any()):
        assert not caller.get("k").archived and caller.get("k").version == note.version
        assert [(hit.key, hit.archived) for hit in caller.recall(WORD)] == [("k", False)]
        assert caller.list(archived=True) == [] and caller.trash() == []
    assert archived.retain() == []


def test_the_history_of_an_archived_note_is_read_like_any_other(archived):
    assert len(archived.history("k")) == 2
    assert not archived.get("k").archived


def test_a_citation_of_an_archived_note_can_be_read_before_and_after_it_came_back(archived):
    (hit,) = archived.recall(WORD)
    path = hit.citation.rpartition(":")[0]
    assert path.startswith("projects/demo/archive/k--")
    assert WORD in archived.read(path).text
    assert archived.list(archived=True) == []
    assert WORD in archived.read(path).text
    assert not archived.get("k").archived


def test_a_recalled_archived_note_is_back_after_the_next_retention_run(archived, clock):
    assert archived.recall(WORD).hits[0].archived
    assert archived.recall(WORD).hits[0].archived  # a recall moves no note
    clock.forward(days=1)
    assert archived.retain() == []
    assert not archived.recall(WORD).hits[0].archived
    assert [note.key for note in archived.list()] == ["other", "k"]


def test_storing_on_the_key_of_an_archived_note_goes_on_with_its_history(archived):
    stored = archived.store("The harbour is open.", key="k")
    assert (stored.action, stored.note.versions) == ("updated", 3)
    assert archived.list(archived=True) == []
    assert [hit.text for hit in archived.recall(WORD)] == []


def test_storing_many_goes_on_with_archived_notes_too(archived):
    many = archived.store_many([{"text": "The harbour is open.", "key": "k"}, {"text": "new words", "key": "new"}])
    assert [one.action for one in many] == ["updated", "created"]
    assert len(archived.history("k")) == 3 and archived.list(archived=True) == []


def test_a_fact_in_an_archived_note_is_still_stated_and_setting_it_again_closes_it(archived):
    (fact,) = archived.facts("Harbour")
    assert (fact.value, fact.archived) == ("9 m", True)
    assert archived.facts("k") == [fact]  # by the key of its note
    set_ = archived.fact("Harbour", "depth", "11 m", on="2026-07-01")
    assert [one.value for one in set_.retired] == ["9 m"]
    assert [(one.value, one.archived) for one in archived.facts("Harbour")] == [("11 m", False)]
    assert [one.value for one in archived.facts("k")] == ["11 m"]


def test_an_archived_note_whose_key_is_in_use_again_stays_in_the_archive_and_out_of_answers(archived):
    store, place = archived._context.store, Scope("project", "demo")
    (lies,) = [one for one in store.list_trash(place) if one.part == "archive"]
    data = store.read_file(place.folder, "archive", lies.name).data
    archived.store("a new life", key="k")
    # as an older version of Holdfast left it: the key was free again
    store.add_documents(place.folder, "archive", [Document(lies.name, data, 0)])
    assert archived.get("k").text == "a new life"
    assert len(archived.recall(WORD)) == 0 and archived.list(archived=True) == []
    assert [one.part for one in store.list_trash(place, "k")] == ["archive"]
    assert archived.forget("k").deleted
    assert len(archived.recall(WORD)) == 0  # nor is it found after the other one is forgotten
    assert archived.restore("k").text == "a new life"


def test_an_archived_note_can_be_forgotten_and_restored(archived):
    assert archived.forget("k").deleted
    assert len(archived.recall(WORD)) == 0 and archived.list(archived=True) == []
    assert [(one.key, one.part) for one in archived.trash()] == [("k", "trash")]
    assert not archived.forget("k").deleted
    assert archived.restore("k").versions == 2
    assert [(hit.key, hit.archived) for hit in archived.recall(WORD)] == [("k", False)]


def test_an_archived_note_is_forgotten_only_in_the_version_that_was_seen(archived):
    with pytest.raises(Conflict):
        archived.forget("k", expected="another")
    version = find_note(archived._context, "k", None).parsed.digest
    assert archived.forget("k", expected=version).deleted


def test_clearing_a_scope_forgets_its_archived_notes_too(archived):
    assert archived.clear("project") == 2
    assert archived.list(archived=True) == [] and len(archived.recall(WORD)) == 0


@pytest.mark.parametrize("how", ["key", "text"])
def test_a_purge_of_an_archived_note_leaves_nothing_of_it_in_the_index(archived, person, open_any, how):
    assert len(archived.recall(WORD)) == 1
    receipt = archived.purge("k") if how == "key" else person.purge(text=f"The {WORD} is closed.")
    assert receipt.deleted and receipt.state == "done" and receipt.index_rows >= 1
    for caller in (archived, open_any()):
        assert len(caller.recall(WORD)) == 0 and caller.facts("Harbour") == []
    assert not any(WORD.encode() in data for data in documents(archived).values())
    assert archived._context.index.verify() == ""


def test_an_index_that_is_built_again_knows_archived_notes(archived):
    rebuilt = archived.reindex()
    assert rebuilt.notes == 1
    assert [(hit.key, hit.archived) for hit in archived.recall(WORD)] == [("k", True)]
    assert archived.check() == []


def test_an_archived_note_ranks_below_a_comparable_note(any_memory, clock):
    any_memory.store("The harbour crane lifts ten tonnes.", key="old")
    clock.forward(days=91)
    any_memory.retain()
    any_memory.store("The harbour crane lifts ten tonnes still.", key="new")
    for mode in ("keyword", "hybrid"):
        hits = any_memory.recall("harbour crane tonnes", mode=mode).hits
        assert [(hit.key, hit.archived) for hit in hits] == [("new", False), ("old", True)]
        assert hits[1].score < hits[0].score
    assert [hit.key for hit in any_memory.recall("harbour crane", kind="note")] == ["new", "old"]
    assert [piece.archived for piece in any_memory.search("harbour crane")] == [False, True]


def test_a_caller_who_may_only_read_does_not_bring_an_archived_note_back(archived, open_any):
    reader = open_any(config=archived.config.replace(read_only=True))
    for _ in range(2):
        note = reader.get("k")
        assert note.archived and note.path.startswith("projects/demo/archive/k--")
    assert archived.recall(WORD).hits[0].archived


def test_status_says_how_many_notes_are_archived_and_why(archived):
    assert archived.status().archived == ("1 note archived: not updated or used for 90 days (project)",)


# --- purge ------------------------------------------------------------------------------------------------------------


def test_a_purged_note_is_gone_from_every_document_and_every_answer(noted, open_any):
    other = open_any()
    assert len(other.recall(WORD)) == 1
    assert noted.purge("k").deleted
    for caller in (noted, other, open_any()):
        assert len(caller.recall(WORD)) == 0
        with pytest.raises(NotFound):
            caller.restore("k")
    assert not any(WORD.encode() in data for data in documents(noted).values())
    assert [note.key for note in noted.list()] == ["other"]


def test_a_receipt_names_what_was_removed_how_it_was_checked_and_what_is_beyond(noted):
    noted.recall(WORD)
    receipt = noted.purge("k")
    assert (receipt.deleted, receipt.state, receipt.pending) == (True, "done", ())
    assert receipt.removed == ("projects/demo/notes/k.md",)
    assert (receipt.index_rows >= 1, receipt.usage_rows) == (True, 1)
    assert receipt.checks and receipt.beyond_reach
    assert WORD not in json.dumps(receipt.as_dict())
    assert noted.receipts(receipt.id) == [receipt]
    assert noted.receipts()[0].id == receipt.id


def test_a_purge_reaches_trash_archive_and_every_older_version(any_memory, clock):
    any_memory.store(f"older {WORD}", key="k")
    any_memory.store(f"archived {WORD}", key="k")
    clock.forward(days=200)
    any_memory.retain()
    store, place = any_memory._context.store, Scope("project", "demo")
    store.write_note(place, "k", f"forgotten {WORD}\n".encode(), None)  # by hand, while another one is in the archive
    store.move_notes(place, ["k"], "trash", clock())
    store.write_note(place, "k", f"current {WORD}\n".encode(), None)
    receipt = any_memory.purge("k")
    assert {path.split("/")[2] for path in receipt.removed} == {"notes", "archive", "trash"}
    assert documents(any_memory) == {}


def test_a_purge_of_what_is_not_there_says_so(noted):
    before = documents(noted)
    receipt = noted.purge("nothing")
    assert (receipt.deleted, receipt.removed) == (False, ())
    assert documents(noted) == before


def test_a_purge_leaves_every_other_note_as_it_was(noted):
    before = {name: data for name, data in documents(noted).items() if name[2] != "k.md"}
    noted.purge("k")
    assert documents(noted) == before
    assert [hit.key for hit in noted.recall("stays")] == ["other"]


@pytest.mark.parametrize("text", [TEXT, TEXT.upper(), f"quite another note\n{LINE}\nwith one old line", f"  {LINE}  "])
def test_what_was_purged_is_refused_by_every_way_of_writing(any_memory, open_any, text):
    any_memory.store(TEXT, key="k")
    receipt = any_memory.purge("k")
    other = open_any()
    ways = [
        lambda: other.store(text),
        lambda: other.store_many([{"text": "innocent words", "key": "i"}, {"text": text, "key": "j"}]),
        lambda: other.files.create("page.md", text),
    ]
    for way in ways:
        with pytest.raises(Purged) as refused:
            way()
        assert receipt.id in str(refused.value) and WORD not in str(refused.value).lower()
    assert other.list() == []


def test_a_person_may_take_it_back_and_nobody_else(any_memory, person):
    any_memory.store(TEXT, key="k")
    receipt = any_memory.purge("k")
    with pytest.raises(Refused):
        any_memory.store(TEXT, key="k", again=True)
    assert person.store(TEXT, key="k", again=True).action == "created"
    assert any_memory.store(f"{TEXT}\nand an edit", key="k").action == "updated"
    assert any_memory.receipts(receipt.id)[0].taken_back


def test_the_turns_that_say_a_note_go_with_it_when_asked_and_the_others_keep_their_lines(any_memory):
    texts = (f"please remember: {LINE}", "ok, I will keep that", LINE, "and now?")
    any_memory.log([{"role": "user", "text": text} for text in texts], session="s", client="chat")
    any_memory.store(LINE, key="k")
    before = any_memory.recall("keep that", kind="turn")[0].citation
    receipt = any_memory.purge("k", transcripts=True)
    assert (receipt.state, receipt.turns, receipt.also_said_by) == ("done", 2, ())
    assert any_memory.recall("keep that", kind="turn")[0].citation == before
    assert [turn.text for turn in any_memory.expand(before)] == ["ok, I will keep that", "and now?"]
    lines = [line.data for line in any_memory._context.store.transcripts("projects/demo").open("chat/s.jsonl").read_lines()]
    assert [json.loads(line).get("purged") for line in lines] == [None, receipt.id, None, receipt.id, None]
    again = any_memory.log([{"role": "user", "text": text} for text in texts], session="s", client="chat")
    assert (again.added, again.purged) == (0, 2)


def test_a_whole_session_is_purged_and_does_not_come_back_but_may_go_on(any_memory):
    said = [{"role": "user", "text": text} for text in ("the harbour is closed", "since when?", "since noon today")]
    any_memory.log(said, session="s", client="chat")
    receipt = any_memory.purge(session="s")
    assert (receipt.deleted, receipt.state, receipt.turns) == (True, "done", 3)
    assert receipt.removed == ("projects/demo/transcripts/chat/s.jsonl",)
    again = any_memory.log(said, session="s", client="chat")
    assert (again.added, again.purged) == (0, 3)
    assert any_memory.log([{"role": "user", "text": "something quite new"}], session="s", client="chat").added == 1


def test_a_text_is_purged_wherever_it_stands_and_files_only_when_asked(person, open_any):
    person.store(f"an old version with {WORD}", key="k")
    person.store("a version without it", key="k")
    person.store(f"only {WORD}", key="only")
    person.store(f"for all {WORD}", key="g", scope="global")
    open_any(project="other").store(f"elsewhere {WORD}", key="e")
    person.files.create("plan.md", f"# Plan\nuse {WORD} here\n")
    person.log([{"role": "user", "text": LINE}, {"role": "user", "text": "fine"}], session="s", client="c")
    receipt = person.purge(text=WORD)
    assert receipt.deleted and receipt.also_said_by == ("shelf/projects/demo/files/plan.md",)
    assert not any(WORD.encode() in data for data in documents(person).values())
    assert (person.get("k").text, person.get("k").versions) == ("a version without it", 1)
    assert len(person.recall(WORD, kind="turn")) == 0
    assert WORD.encode() in person._context.store.tree("projects/demo").read(("plan.md",)).data
    with pytest.raises(Purged):
        person.files.view("plan.md")
    assert person.purge(text=WORD, files=True).deleted
    left = person._context.store.tree("projects/demo").read(("plan.md",))
    assert left is None or WORD.encode() not in left.data


def test_where_a_purge_ends_is_said_by_each_store(noted, store):
    """By design: a folder's purge ends at its own files, a server's also has logs, replicas and backups of its own."""
    beyond = " ".join(noted.purge("k").beyond_reach).lower()
    assert "backup" in beyond
    assert ("wal" in beyond or "write-ahead" in beyond) == (store == "postgres")


def test_a_purge_forgets_the_uses(noted, clock):
    for _ in range(5):
        clock.forward(minutes=2)
        noted.recall(WORD)
    noted.purge("k")
    clock.forward(minutes=2)
    noted.recall("stays")
    noted.store("something new", key="k")
    assert [hit.key for hit in noted.recall("something", sort="usage")] == ["other", "k"]


def test_the_facts_of_an_archived_copy_do_not_count_beside_the_note_that_has_its_key_now(archived):
    store, place = archived._context.store, Scope("project", "demo")
    (lies,) = [one for one in store.list_trash(place) if one.part == "archive"]
    data = store.read_file(place.folder, "archive", lies.name).data.replace(b"[2026-01-01]", b"[2026-06-01]")
    archived.store("# Harbour\n\n- [2026-02-01] depth: 11 m", key="k")
    store.add_documents(place.folder, "archive", [Document(lies.name, data, 0)])
    assert [fact.value for fact in archived.facts("Harbour", as_of="2026-07-01")] == ["11 m"]
    assert [hit.text for hit in archived.recall("harbour depth", kind="fact", as_of="2026-07-01")] == [
        "Harbour, depth: 11 m (since 2026-02-01)"
    ]


def test_a_fact_of_an_archived_note_is_recalled_as_archived_and_ranked_lower(archived):
    archived.store("# Pier\n\n- [2026-01-01] depth: 4 m", key="pier")
    hits = archived.recall("depth of harbour and pier", kind="fact", as_of="2026-07-01", explain=True)
    assert [(hit.text.partition(":")[0], hit.archived, hit.score) for hit in hits] == [
        ("Pier, depth", False, 1.0), ("Harbour, depth", True, 0.5),
    ]  # fmt: skip
    assert hits.hits[1].why == {"fact": [1.0, 1.0], "archived": [1.0, -0.5]}


def test_a_line_that_a_newer_one_of_an_archived_note_replaces_is_not_shown_as_current(archived):
    archived.files.create("harbour.md", "# Harbour\n\n- [2025-01-01] depth: 7 m\n")
    assert [fact.value for fact in archived.facts("Harbour")] == ["9 m"]
    index, scopes = archived._context.index, ("projects/demo",)
    assert index.find_newest_facts(scopes, "2026-12-01", 10) == []
    assert index.find_stale_lines(scopes, "2026-12-01") == {"projects/demo/files/harbour.md:3"}
