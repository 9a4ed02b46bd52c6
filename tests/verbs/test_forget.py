"""Forget, restore, clear, purge: what is deleted, what can be restored, and what leaves no byte."""

from __future__ import annotations

import os

import pytest

from holdfast import Conflict, InvalidKey, NotFound
from holdfast.store.files import FileStore

SECRET = "zanzibarqvx7"  # a word that occurs nowhere else and that no stemmer shortens


@pytest.fixture
def noted(memory):
    memory.store(f"the old word is {SECRET}", key="k", tags="t")
    memory.store(f"the new word is {SECRET} too\n\n- [2026-01-01] status: {SECRET}", key="k")
    memory.store("something else stays", key="other")
    return memory


def holding(home, word=SECRET):
    """Return the files of the home that contain a word, in upper or lower case."""
    return sorted(
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and word.lower().encode() in path.read_bytes().lower()
    )


# --- forget (N10) -----------------------------------------------------------------------------------------------------


@pytest.mark.promise("N10")
def test_a_forgotten_note_is_gone_from_every_answer_at_once_and_for_every_caller(noted, open_memory, home):
    other = open_memory()
    assert len(other.recall(SECRET)) == 1
    assert noted.forget("k").deleted
    for caller in (noted, other, open_memory()):
        assert len(caller.recall(SECRET)) == 0
        assert len(caller.recall(SECRET, as_of="2100-01-01")) == 0
        assert len(caller.recall(mode="recent")) == 1
        assert [note.key for note in caller.list()] == ["other"]
        assert caller.facts() == []
        assert caller.search(SECRET) == []
        assert SECRET not in caller.brief().text
        for verb in (caller.get, caller.history):
            with pytest.raises(NotFound):
                verb("k")
    assert SECRET not in (home / "shelf" / "projects" / "demo" / "index.md").read_text()


@pytest.mark.promise("N10", "F2")
def test_no_path_reads_what_lies_in_the_trash(noted, home):
    noted.forget("k")
    for name in os.listdir(home / "shelf" / "projects" / "demo" / "trash"):
        for path in (f"projects/demo/trash/{name}", f"trash/{name}"):
            assert noted.read(path).text == ""


@pytest.mark.promise("N10")
def test_a_forgotten_note_comes_back_with_its_whole_history(noted, open_memory):
    before = noted.get("k"), noted.history("k")
    noted.forget("k")
    assert noted.restore("k") == before[0]
    for caller in (noted, open_memory()):
        assert (caller.get("k"), caller.history("k")) == before
        assert [hit.key for hit in caller.recall(SECRET)] == ["k"]
        assert len(caller.facts()) == 1


@pytest.mark.promise("N10")
def test_a_forgotten_note_says_until_when_it_can_be_restored(noted, clock):
    clock.set("2026-05-01T12:00:00Z")
    assert noted.forget("k").restorable_until == "2026-05-31T12:00:00Z"


@pytest.mark.promise("N10")
def test_thirty_days_are_kept_and_then_the_trash_is_emptied(noted, clock, home):
    noted.forget("k")
    clock.forward(days=29)
    noted.retain()
    noted.restore("k")
    noted.forget("k")
    clock.forward(days=31)
    noted.retain()
    with pytest.raises(NotFound):
        noted.restore("k")
    assert holding(home / "shelf") == []


@pytest.mark.promise("N10")
def test_forgetting_what_is_not_there_says_so_and_is_no_error(noted):
    answer = noted.forget("nothing")
    assert (answer.deleted, answer.key, answer.restorable_until) == (False, "nothing", None)
    assert noted.forget("k").deleted
    assert not noted.forget("k").deleted


@pytest.mark.promise("N10")
def test_a_version_that_was_seen_is_forgotten_and_no_other(noted):
    seen = noted.get("k").version
    noted.store("Said since.", key="k")
    with pytest.raises(Conflict):
        noted.forget("k", expected=seen)
    assert noted.get("k").text == "Said since."
    assert noted.forget("k", expected=noted.get("k").version).deleted
    with pytest.raises(Conflict):
        noted.forget("k", expected=seen)


@pytest.mark.promise("N10")
def test_forgetting_in_a_home_that_is_not_there_makes_none(memory, home):
    assert not memory.forget("k").deleted
    assert not memory.purge("k").deleted
    with pytest.raises(NotFound):
        memory.restore("k")
    assert not home.exists()


@pytest.mark.promise("N10")
def test_restoring_what_was_never_forgotten_is_not_found(noted):
    with pytest.raises(NotFound):
        noted.restore("other")
    with pytest.raises(NotFound):
        noted.restore("nothing")


@pytest.mark.promise("N10")
def test_restoring_does_not_overwrite_the_note_that_has_the_key_by_now(noted, truth):
    noted.forget("k")
    noted.store("a new life", key="k")
    before = truth()
    with pytest.raises(Conflict):
        noted.restore("k")
    assert truth() == before


@pytest.mark.promise("N10")
def test_a_note_whose_key_was_taken_comes_back_under_another(noted, open_memory, truth):
    before = noted.history("k")
    noted.forget("k")
    noted.store("a new life", key="k")
    kept = truth()
    with pytest.raises(InvalidKey):
        noted.restore("k", under="../k")
    with pytest.raises(Conflict):
        noted.restore("k", under="other")
    assert truth() == kept
    assert noted.restore("k", under="elsewhere").key == "elsewhere"
    for caller in (noted, open_memory()):
        assert caller.history("elsewhere") == before
        assert caller.get("k").text == "a new life"
        assert [hit.key for hit in caller.recall(SECRET)] == ["elsewhere"]


@pytest.mark.promise("N10")
def test_a_key_used_again_after_forget_starts_a_new_note(noted):
    old = noted.get("k")
    noted.forget("k")
    new = noted.store("a new life", key="k")
    assert new.action == "created"
    assert new.note.id != old.id
    assert new.note.versions == 1


@pytest.mark.promise("N10")
@pytest.mark.parametrize("clock_goes", [0, 1, -3600], ids=["still", "forward", "back"])
def test_restore_brings_back_the_one_that_was_forgotten_last(memory, clock, clock_goes):
    for life in range(8):
        memory.store(f"life {life}", key="k")
        memory.forget("k")
        clock.forward(clock_goes)
    for life in reversed(range(8)):
        assert memory.restore("k").text == f"life {life}"
        os.unlink(os.path.join(memory.home, "shelf", memory.get("k").path))


@pytest.mark.promise("N10")
def test_a_key_that_is_the_beginning_of_another_is_restored_by_itself(memory):
    memory.store("short", key="a")
    memory.store("long", key="a--20260101t000000z-00000000")
    memory.forget("a--20260101t000000z-00000000")
    memory.forget("a")
    assert memory.restore("a").text == "short"
    assert memory.restore("a--20260101t000000z-00000000").text == "long"


@pytest.mark.promise("N10", "N11")
def test_the_trash_shows_what_can_be_restored_newest_first_and_no_more(memory, open_memory, clock):
    memory.store("archived words", key="archived")
    clock.forward(days=91)
    memory.retain()
    for key in ("first", "second"):
        memory.store(f"{key} words", key=key)
        clock.forward(days=1)
        memory.forget(key)
    open_memory(project="other").store("theirs", key="theirs")
    open_memory(project="other").forget("theirs")
    assert [(one.key, one.part) for one in memory.trash()] == [
        ("second", "trash"),
        ("first", "trash"),
        ("archived", "archive"),
    ]
    assert [one.key for one in memory.trash(scope="global")] == []
    memory.restore("first")
    memory.purge("second")
    assert [one.key for one in memory.trash()] == ["archived"]


# --- clear ------------------------------------------------------------------------------------------------------------


def test_clear_forgets_every_note_of_a_scope_and_only_of_that_scope(noted):
    noted.store("global words", key="g", scope="global")
    assert noted.clear("project") == 2
    assert [note.key for note in noted.list()] == ["g"]
    assert noted.clear("project") == 0
    assert noted.restore("k").versions == 2
    assert noted.restore("other").text == "something else stays"


def test_clear_leaves_the_agents_files_alone(noted):
    noted.files.create("page.md", "kept")
    noted.clear("project")
    assert noted.files.view("page.md") == "kept"


def test_clear_forgets_hand_written_notes_too_even_those_with_names_that_are_no_keys(noted, note_file):
    note_file("Not A Key").write_text("by hand")
    assert noted.clear("project") == 3
    assert noted.list() == []


# --- purge (N10) ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N10")
def test_a_purged_note_leaves_no_byte_in_anything_we_own(noted, home):
    noted.recall(SECRET)
    assert holding(home) != []
    noted.purge("k")
    assert holding(home) == []


@pytest.mark.promise("N10")
def test_a_purge_reaches_trash_archive_and_every_older_version(memory, home, clock):
    memory.store(f"forgotten {SECRET}", key="k")
    memory.forget("k")
    memory.store(f"archived {SECRET}", key="k")
    clock.forward(days=200)
    assert [note.key for note in memory.retain()] == ["k"]
    memory.store(f"older {SECRET}", key="k")
    memory.store("newer", key="k")
    memory.forget("k")
    memory.store(f"current {SECRET}", key="k")
    receipt = memory.purge("k")
    assert receipt.deleted
    assert holding(home) == []
    with pytest.raises(NotFound):
        memory.restore("k")


@pytest.mark.promise("N10")
def test_a_purge_while_another_caller_has_the_home_open_leaves_no_byte_either(noted, open_memory, home):
    other = open_memory()
    for _ in range(3):
        assert len(other.recall(SECRET)) == 1
    noted.purge("k")
    assert len(other.recall(SECRET)) == 0
    assert holding(home) == []


@pytest.mark.promise("N10")
def test_a_purge_of_a_note_written_by_many_callers_and_rebuilt_indexes_leaves_no_byte(noted, open_memory, home):
    for number in range(5):
        caller = open_memory()
        caller.store(f"version {number} {SECRET}", key="k")
        caller.recall(SECRET)
        caller.close()
    noted.reindex()
    noted.store_many([{"text": f"filler {n} " + "words " * 200, "key": f"f{n}"} for n in range(50)])
    open_memory().purge("k")
    assert holding(home) == []
    assert len(noted.list()) == 51


@pytest.mark.promise("N10")
def test_a_purge_of_a_long_text_leaves_none_of_its_words(memory, home):
    words = [f"xq{n}zanzibar" for n in range(3000)]
    memory.store(" ".join(words), key="long")
    memory.store("short", key="other")
    memory.recall(words[7])
    memory.purge("long")
    assert [word for word in words[::100] if holding(home, word)] == []


@pytest.mark.promise("N10")
def test_a_receipt_names_what_was_removed_and_how_it_was_checked(noted):
    noted.recall(SECRET)
    receipt = noted.purge("k")
    assert receipt.deleted
    assert receipt.removed == ("projects/demo/notes/k.md",)
    assert receipt.index_rows >= 1
    assert receipt.usage_rows == 1
    assert len(receipt.checks) >= 3
    assert receipt.beyond_reach
    assert SECRET not in str(receipt)


@pytest.mark.promise("N10")
def test_a_purge_of_a_forgotten_note_names_the_trash(noted, home):
    noted.forget("k")
    receipt = noted.purge("k")
    assert receipt.deleted
    assert [path.rsplit("/", 1)[0] for path in receipt.removed] == ["projects/demo/trash"]
    assert holding(home) == []


@pytest.mark.promise("N10")
def test_a_purge_of_what_is_not_there_says_so(noted, truth):
    before = truth()
    receipt = noted.purge("nothing")
    assert (receipt.deleted, receipt.removed) == (False, ())
    assert truth() == before


@pytest.mark.promise("N10")
def test_a_purge_forgets_the_uses_so_a_later_note_of_that_key_starts_at_nothing(noted, clock):
    for _ in range(5):
        clock.forward(minutes=2)
        noted.recall(SECRET)
    noted.purge("k")
    clock.forward(minutes=2)
    noted.recall("stays")
    noted.store("something new", key="k")
    assert [hit.key for hit in noted.recall("something", sort="usage")] == ["other", "k"]
    assert noted.get("k").versions == 1


@pytest.mark.promise("N10")
def test_a_purge_leaves_every_other_note_as_it_was(noted, truth):
    before = {path: data for path, data in truth().items() if not path.endswith("/k.md")}
    noted.purge("k")
    assert truth() == before
    assert [hit.key for hit in noted.recall("stays")] == ["other"]


@pytest.mark.promise("N10")
def test_a_purge_in_a_home_whose_index_is_gone_still_purges(noted, home):
    for name in os.listdir(home):
        if name.startswith("index.db"):
            os.unlink(home / name)
    assert noted.purge("k").deleted
    assert holding(home) == []


def test_a_note_that_comes_back_is_catalogued_without_a_look_at_the_others(memory, home, monkeypatch):
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(20)])
    memory.forget("k7")
    with monkeypatch.context() as blind:
        blind.setattr(FileStore, "fingerprint", lambda *_arguments: pytest.fail("the folder was looked through"))
        memory.restore("k7")
    with memory.__class__(home, project="demo", cwd=home.parent) as another:
        assert "k7" in [hit.key for hit in another.recall("number 7", mode="keyword").hits]
    assert memory.check() == []


def test_a_folder_with_the_name_of_a_note_is_not_forgotten(memory, home):
    memory.store("harbour", key="k")
    folder = home / "shelf/projects/demo/notes/dir.md"
    folder.mkdir()
    assert not memory.forget("dir").deleted and memory.trash() == []
    assert memory.clear("project") == 1 and folder.is_dir()
