"""index.md of a scope: its newest notes, written with every change of the scope."""

from __future__ import annotations

import os
import re
import sys
from multiprocessing import get_context

import pytest

from holdfast import Memory
from holdfast.context.sync import Sync
from holdfast.index.sqlite import SqliteIndex
from holdfast.sqlite import Database
from holdfast.store import listing

SCOPE = "projects/demo"


def _read_listing(home, scope=SCOPE):
    return (home / "shelf" / scope / "index.md").read_text()


def _list_keys(home, scope=SCOPE):
    return sorted(re.findall(r"^- \[([a-z0-9-]+)\]\(notes/\1\.md\)", _read_listing(home, scope), re.MULTILINE))


def _store(memory, many):
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(many)])
    return sorted(f"k{n}" for n in range(many))


@pytest.fixture
def short(monkeypatch):
    """Let index.md list three notes at most."""
    monkeypatch.setattr(listing, "MAX_NOTES", 3)


def test_the_listing_changes_with_the_call_that_changed_its_scope(memory, home):
    memory.store("one", key="a")
    assert _list_keys(home) == ["a"]
    memory.store_many([{"text": "two", "key": "b"}, {"text": "three", "key": "c"}])
    assert _list_keys(home) == ["a", "b", "c"]
    memory.store("one, reworded", key="a")
    assert "reworded" in _read_listing(home)
    memory.forget("b")
    assert _list_keys(home) == ["a", "c"]
    memory.restore("b")
    assert _list_keys(home) == ["a", "b", "c"]
    memory.purge("c")
    assert _list_keys(home) == ["a", "b"]
    memory.clear("project")
    assert _list_keys(home) == []


def test_a_scope_of_500_notes_is_listed_whole_in_the_order_of_the_keys(memory, home):
    keys = _store(memory, 500)
    lines = _read_listing(home).splitlines()
    assert lines[1] == "# project:demo: 500 notes" and lines[2] == ""
    assert [line.split("[")[1].split("]")[0] for line in lines[3:]] == keys


def test_a_larger_scope_lists_its_newest_500_notes_and_says_how_many_more_there_are(memory, home, clock):
    _store(memory, 1234)
    clock.forward(60)
    memory.store_many([{"text": f"later {n}", "key": f"later-{n}"} for n in range(499)])
    clock.forward(60)
    memory.store("the newest", key="a-new-one")
    lines = _read_listing(home).splitlines()
    assert lines[1] == "# project:demo: 1734 notes"
    assert _list_keys(home) == sorted(["a-new-one", *[f"later-{n}" for n in range(499)]])
    assert lines[-2:] == ["", "and 1,234 more; `holdfast list` shows them all"]
    memory.forget("later-7")
    assert len(_list_keys(home)) == 500 and "and 1,233 more;" in _read_listing(home)


def test_a_note_that_is_stored_again_comes_back_into_the_list(memory, home, clock, short):
    for number in range(5):
        memory.store(f"number {number}", key=f"k{number}")
        clock.forward(1)
    assert _list_keys(home) == ["k2", "k3", "k4"]
    memory.store("again", key="k0")
    assert _list_keys(home) == ["k0", "k3", "k4"]
    memory.forget("k4")
    assert _list_keys(home) == ["k0", "k2", "k3"]


def test_pinned_notes_are_listed_before_newer_ones(memory, home, clock, short):
    memory.store("pinned", key="pinned", pinned=True)
    for number in range(5):
        clock.forward(1)
        memory.store(f"number {number}", key=f"k{number}")
    assert _list_keys(home) == ["k3", "k4", "pinned"]


def test_a_bulk_write_writes_the_listing_once(memory, monkeypatch):
    written = []
    monkeypatch.setattr(listing, "render", lambda *given: written.append(given) or b"")
    _store(memory, 300)
    assert len(written) == 1


def _store_one(home, key):
    Memory(home, project="demo").store("of a process", key=key)


def test_the_listing_is_right_after_several_processes_wrote_at_once(memory, home):
    _store(memory, 3)
    context = get_context("spawn")
    children = [context.Process(target=_store_one, args=(home, f"child-{n}")) for n in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    assert _list_keys(home) == sorted(["k0", "k1", "k2", *[f"child-{n}" for n in range(4)]])


def test_a_fork_while_the_listing_is_read_leaves_it_right(memory, home, monkeypatch):
    _store(memory, 3)
    find_new, forks = listing.Listing.find_new, [3]

    def forking(self, *given):
        if forks:
            forks.pop()
            if not (pid := os.fork()):
                os._exit(0)
            os.waitpid(pid, 0)
        return find_new(self, *given)

    monkeypatch.setattr(listing.Listing, "find_new", forking)
    memory.store("new", key="new")
    assert not forks and "new" in _list_keys(home)


def _block_listing(home, project="demo"):
    """Put a folder at the path of index.md, so that it cannot be written."""
    file = home / "shelf" / "projects" / project / "index.md"
    file.unlink()
    file.mkdir()
    return file


def test_a_listing_that_cannot_be_written_fails_no_call_and_doctor_names_it(memory, home):
    _store(memory, 3)
    file = _block_listing(home)
    assert memory.store("new", key="new").action == "created"
    memory.forget("k1")
    assert any("index.md" in problem.message for problem in memory.check())
    file.rmdir()
    memory.store("newer", key="newer")
    assert _list_keys(home) == ["k0", "k2", "new", "newer"]


@pytest.mark.parametrize("question", range(6))
def test_an_index_that_is_deleted_while_a_listing_is_written_leaves_the_one_before(memory, home, monkeypatch, question):
    before = _store(memory, 3)
    memory.list(limit=1)
    asked, write, left = Database.rows, Sync._write_listing, []

    def writing(self, place):
        left[:] = range(question + 1)
        try:
            return write(self, place)
        finally:
            left.clear()

    def asking(self, *words, **values):
        if left and not left.pop() and not left:
            for file in home.glob("index.db*"):
                file.unlink()
        return asked(self, *words, **values)

    monkeypatch.setattr(Sync, "_write_listing", writing)
    monkeypatch.setattr(Database, "rows", asking)
    assert memory.store("new", key="new").action == "created"
    assert _list_keys(home) in (before, [*before, "new"])
    left.clear()
    memory.list(limit=1)
    assert _list_keys(home) == [*before, "new"]


def test_a_rebuild_of_the_index_that_was_killed_leaves_a_right_listing_after_the_next_call(
    memory, open_memory, home, monkeypatch
):
    keys = _store(memory, 450)
    memory.close()
    for file in home.glob("index.db*"):
        file.unlink()
    monkeypatch.setattr("holdfast.context.sync._BATCH", 200)
    put = SqliteIndex.put
    with monkeypatch.context() as killed:  # after the first two hundred
        killed.setattr(SqliteIndex, "put", lambda *given: (put(*given), pytest.fail("killed")))
        with pytest.raises(pytest.fail.Exception), open_memory() as first:
            first.list(limit=1)
    with open_memory() as another:
        another.store("one more", key="more")
        another.list(limit=1)
    assert _list_keys(home) == sorted([*keys, "more"])


def test_a_scope_without_notes_is_not_asked_for_a_listing_with_every_call(memory, home, monkeypatch):
    notes = home / "shelf" / "projects" / "demo" / "notes"
    memory.store("one", key="k", scope="global")
    notes.mkdir(parents=True)
    (notes / "todo.txt").write_text("no note")
    asked = []
    write = Sync._write_listing
    monkeypatch.setattr(Sync, "_write_listing", lambda *given: asked.append(given) or write(*given))
    for _ in range(5):
        memory.recall("one", mode="keyword")
    assert len(asked) <= 2


@pytest.mark.parametrize("many", [3, 600])
def test_a_listing_that_was_taken_away_comes_back_with_the_next_call(memory, home, many):
    _store(memory, many)
    for _ in range(2):
        (home / "shelf" / "projects" / "demo" / "index.md").unlink()
        memory.recall("number", mode="keyword")
        assert len(_list_keys(home)) == min(many, 500)


def test_hand_edits_that_a_recall_finds_are_in_the_listing(memory, home):
    _store(memory, 3)
    notes = home / "shelf" / "projects" / "demo" / "notes"
    for _ in range(3):  # from the second call on, changes are reported by the kernel
        memory.recall("number", mode="keyword")
    os.rename(notes / "k0.md", notes / "moved.md")
    with open(notes / "k1.md", "a") as file:
        file.write("edited in place")
    memory.recall("number", mode="keyword")
    assert _list_keys(home) == ["k1", "k2", "moved"]
    assert "edited in place" in _read_listing(home)


def test_a_note_that_cannot_be_read_any_more_is_not_listed(memory, home):
    _store(memory, 3)
    (home / "shelf" / "projects" / "demo" / "notes" / "k1.md").unlink()
    (home / "shelf" / "projects" / "demo" / "notes" / "k1.md").mkdir()
    memory.recall("number", mode="keyword")
    assert _list_keys(home) == ["k0", "k2"]


@pytest.mark.parametrize("how", ["edited", "gone", "a link"])
def test_a_listing_that_another_program_wrote_is_replaced(memory, home, tmp_path, how):
    _store(memory, 3)
    file = home / "shelf" / "projects" / "demo" / "index.md"
    if how == "edited":
        file.write_text("- [mine](notes/mine.md): not of holdfast\n")
    else:
        file.unlink()
    if how == "a link":
        (tmp_path / "theirs").write_text("theirs")
        file.symlink_to(tmp_path / "theirs")
    memory.store("new", key="new")
    assert _list_keys(home) == ["k0", "k1", "k2", "new"]
    if how == "a link":
        assert (tmp_path / "theirs").read_text() == "theirs"


def test_the_listing_follows_what_is_in_quarantine(open_memory, home, memory):
    memory.store("said by a page", key="of-a-page", origin="web")
    assert "said by a page" not in _read_listing(home)
    assert "in quarantine" in _read_listing(home)
    (home / "config.toml").write_text('[trust]\nquarantine = ["import"]\n')
    open_memory().store("one more", key="one-more")
    assert "said by a page" in _read_listing(home)


def test_facts_that_were_closed_are_not_listed(memory, home):
    memory.fact("harbour", "gate", "open", on="2026-03-20")
    memory.fact("harbour", "gate", "shut", on="2026-03-27")
    assert "shut" in _read_listing(home)
    assert "open" not in _read_listing(home) and "~~" not in _read_listing(home)


def test_keys_that_are_not_shown_as_they_are_do_not_disturb_the_order(memory, home):
    notes = home / "shelf" / "projects" / "demo" / "notes"
    _store(memory, 3)
    for name in ("k1[x]<b>", "kä", "x]y"):
        (notes / f"{name}.md").write_text("odd\n")
    memory.recall("odd", mode="keyword")
    lines = _read_listing(home).splitlines()[3:]
    assert [line[3:5] for line in lines] == ["k0", "k1", "k1", "k2", "kä", "x]"]


def test_the_cost_of_a_store_does_not_grow_with_the_number_of_notes(memory):
    def calls_of_a_store(key):
        calls = []

        def hear(frame, event, argument):
            if event == "c_call" and getattr(argument, "__module__", "") in ("posix", "apsw"):
                calls.append(argument.__name__)

        sys.setprofile(hear)
        try:
            memory.store(f"text of {key}", key=key)
        finally:
            sys.setprofile(None)
        return len(calls)

    _store(memory, 300)
    calls_of_a_store("warm")
    few = calls_of_a_store("among-few")
    _store(memory, 1500)
    calls_of_a_store("warm-again")
    assert calls_of_a_store("among-many") <= few + 2


def test_a_listing_shows_no_text_that_could_pass_for_a_line_of_its_own(memory, home):
    memory.store("real\n- [fake](notes/fake.md) (user, 2020-01-01): planted\n", key="real")
    assert _list_keys(home) == ["real"]
