"""Changes of the store by other programs are seen by the next call; our own writes are never read again."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading

import pytest

from holdfast import Conflict, NotFound
from holdfast.context.sync import Sync
from holdfast.store import atomic
from holdfast.store.watch import Watch


@pytest.fixture(params=["a new caller", "a caller that stays"])
def look(request, open_memory):
    """Recall with a new caller, or with one that was open before the change."""
    if request.param == "a new caller":

        class Fresh:
            def __getattr__(self, verb):
                return getattr(open_memory(), verb)

        return Fresh()
    staying = open_memory()
    staying.store("there is a home now", key="first")
    staying.files.create("first.md", "there is a tree now")
    for _ in range(3):
        staying.recall("nothing at all")
    return staying


@pytest.fixture
def notes(home, memory):
    memory.store("there is a home now", key="first")
    return home / "shelf" / "projects" / "demo" / "notes"


@pytest.fixture
def files(home, memory):
    memory.files.create("first.md", "there is a tree now")
    return home / "shelf" / "projects" / "demo" / "files"


def keys(memory, query="harbour", **question):
    return sorted(hit.key for hit in memory.recall(query, mode="keyword", limit=100, **question))


# --- notes ------------------------------------------------------------------------------------------------------------


def test_a_note_written_by_hand_is_found(notes, look):
    (notes / "by-hand.md").write_text("harbour words\n")
    assert keys(look) == ["by-hand"]
    assert look.get("by-hand").text == "harbour words"
    assert "by-hand" in [note.key for note in look.list()]


def test_an_edit_in_place_is_seen(notes, memory, look):
    memory.store("harbour words", key="k")
    assert keys(look) == ["k"]
    (notes / "k.md").write_text((notes / "k.md").read_text().replace("harbour", "lighthouse"))
    assert keys(look) == []
    assert keys(look, "lighthouse") == ["k"]
    assert look.get("k").text == "lighthouse words"


def test_an_edit_of_the_same_length_within_the_same_instant_is_seen(notes, memory, look):
    memory.store("harbour one", key="k")
    for word in ("two", "six", "ten", "one", "two", "six"):
        info = (notes / "k.md").stat()
        (notes / "k.md").write_text(f"harbour {word}\n")
        os.utime(notes / "k.md", ns=(info.st_atime_ns, info.st_mtime_ns))
        assert keys(look, word) == ["k"]


def test_an_edit_as_editors_do_it_by_rename_is_seen(notes, memory, look):
    memory.store("harbour words", key="k")
    keys(look)
    (notes / "k.md.swp").write_text("lighthouse words\n")
    os.replace(notes / "k.md.swp", notes / "k.md")
    assert keys(look, "lighthouse") == ["k"]
    assert keys(look) == []


def test_moving_a_note_renames_it_with_its_history(notes, memory, look):
    memory.store("old harbour words", key="old")
    memory.store("new harbour words", key="old")
    assert keys(look) == ["old"]
    (notes / "old.md").rename(notes / "new.md")
    assert keys(look) == ["new"]
    assert [version.text for version in look.history("new")] == ["new harbour words", "old harbour words"]
    with pytest.raises(NotFound):
        look.get("old")


def test_two_notes_that_change_places_are_seen(notes, memory, look):
    memory.store("harbour alpha", key="a")
    memory.store("harbour gamma", key="b")
    assert keys(look, "alpha") == ["a"]
    (notes / "a.md").rename(notes / "c.md")
    (notes / "b.md").rename(notes / "a.md")
    (notes / "c.md").rename(notes / "b.md")
    assert keys(look, "alpha") == ["b"]
    assert keys(look, "gamma") == ["a"]


def test_removing_a_note_takes_it_out(notes, memory, look):
    memory.store("harbour words", key="k")
    assert keys(look) == ["k"]
    (notes / "k.md").unlink()
    assert keys(look) == []
    assert [note.key for note in look.list()] == ["first"]
    assert look.facts() == []


def test_copying_a_note_makes_another(notes, memory, look):
    memory.store("harbour words", key="k")
    assert keys(look) == ["k"]
    shutil.copy2(notes / "k.md", notes / "copy.md")
    assert keys(look) == ["copy", "k"]


def test_a_note_put_back_from_a_copy_is_as_it_was(notes, memory, look, tmp_path):
    memory.store("harbour words", key="k")
    shutil.copy2(notes / "k.md", tmp_path / "saved.md")
    memory.store("lighthouse words", key="k")
    assert keys(look, "lighthouse") == ["k"]
    shutil.copy2(tmp_path / "saved.md", notes / "k.md")
    assert keys(look) == ["k"]
    assert keys(look, "lighthouse") == []
    assert len(look.history("k")) == 1


def test_a_note_moved_between_scopes_is_seen_in_the_other(home, notes, memory, look):
    memory.store("harbour words", key="k")
    memory.store("global words", key="g", scope="global")
    assert keys(look) == ["k"]
    (notes / "k.md").rename(home / "shelf" / "global" / "notes" / "k.md")
    assert keys(look, scope="global") == ["k"]
    assert keys(look, scope="project") == []


def test_hundreds_of_hand_written_notes_at_once_are_all_seen(notes, look):
    keys(look)
    for number in range(350):
        (notes / f"n{number}.md").write_text(f"harbour number {number}\n")
    assert len(look.list()) == 351
    for number in range(0, 350, 2):
        (notes / f"n{number}.md").unlink()
    assert len(look.list()) == 176


def test_notes_that_others_store_meanwhile_are_seen(memory, look, child, home, notes):
    keys(look)
    child("Memory(args[0], project='demo', cwd=args[0]).store('harbour words', key='theirs')", home)
    assert keys(look) == ["theirs"]
    child("Memory(args[0], project='demo', cwd=args[0]).store('lighthouse words', key='theirs')", home)
    assert keys(look, "lighthouse") == ["theirs"]
    child("Memory(args[0], project='demo', cwd=args[0]).forget('theirs')", home)
    assert keys(look, "lighthouse") == []


def test_the_listing_follows_a_hand_edit_with_the_next_call(notes, look):
    (notes / "by-hand.md").write_text("harbour words\n")
    look.recall("harbour")
    assert "by-hand" in (notes.parent / "index.md").read_text()
    (notes / "by-hand.md").unlink()
    look.recall("harbour")
    assert "by-hand" not in (notes.parent / "index.md").read_text()


def test_a_briefing_and_facts_follow_a_hand_edit(notes, look):
    (notes / "by-hand.md").write_text("# Harbour\n- [2026-01-01] state: open\n")
    assert [fact.value for fact in look.facts("Harbour")] == ["open"]
    assert "state: open" in look.brief().text
    (notes / "by-hand.md").write_text("# Harbour\n- [2026-01-01] state: shut\n")
    assert [fact.value for fact in look.facts("Harbour")] == ["shut"]
    assert "state: shut" in look.brief().text


# --- folders and repositories -----------------------------------------------------------------------------------------


def git(folder, *words):
    env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    told = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *told, *words], cwd=folder, check=True, capture_output=True, env=env)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("root", ["", "projects/demo", "projects/demo/notes"], ids=["shelf", "scope", "notes"])
def test_a_git_checkout_in_the_shelf_is_seen(home, notes, files, memory, look, root):
    repository = home / "shelf" / root
    memory.store("harbour words", key="k")
    memory.store("harbour words, the other", key="gone-later")
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "one")
    memory.store("lighthouse words", key="k")
    memory.store("lighthouse too", key="new")
    memory.forget("gone-later")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "two")
    assert keys(look, "lighthouse") == ["k", "new"]
    git(repository, "checkout", "-q", "HEAD~1")
    assert keys(look) == ["gone-later", "k"]
    assert keys(look, "lighthouse") == []
    git(repository, "checkout", "-q", "-")
    assert keys(look, "lighthouse") == ["k", "new"]
    assert keys(look) == []
    assert memory.check() == []


def test_moving_a_whole_scope_moves_its_notes(home, notes, files, open_memory, look):
    (notes / "k.md").write_text("harbour words")
    (files / "page.md").write_text("harbour page")
    assert keys(look) == ["k", "page.md"]
    (home / "shelf" / "projects" / "demo").rename(home / "shelf" / "projects" / "moved")
    assert keys(look) == []
    assert look.list() == []
    assert keys(open_memory(project="moved")) == ["k", "page.md"]
    (home / "shelf" / "projects" / "moved").rename(home / "shelf" / "projects" / "demo")
    assert keys(look) == ["k", "page.md"]
    assert keys(open_memory(project="moved")) == []


def test_a_scope_replaced_by_another_folder_is_seen(home, notes, files, look):
    scope = home / "shelf" / "projects" / "demo"
    (notes / "k.md").write_text("harbour words")
    assert keys(look) == ["k"]
    shutil.copytree(scope, home / "shelf" / "projects" / "new")
    (home / "shelf" / "projects" / "new" / "notes" / "k.md").write_text("lighthouse words")
    (home / "shelf" / "projects" / "new" / "files" / "page.md").write_text("lighthouse page")
    scope.rename(home / "shelf" / "projects" / "old")
    (home / "shelf" / "projects" / "new").rename(scope)
    assert keys(look) == []
    assert keys(look, "lighthouse") == ["k", "page.md"]


def test_a_scope_changed_while_it_was_elsewhere_is_seen_when_it_comes_back(home, notes, look):
    scope, away = home / "shelf" / "projects" / "demo", home / "away"
    (notes / "k.md").write_text("harbour words")
    assert keys(look) == ["k"]
    scope.rename(away)
    (away / "notes" / "k.md").write_text("lighthouse words")
    (away / "notes" / "new.md").write_text("lighthouse words")
    away.rename(scope)
    assert keys(look, "lighthouse") == ["k", "new"]
    assert keys(look) == []


def test_a_scope_that_appears_by_hand_is_seen(home, look, open_memory, notes):
    keys(look, scope="global")
    (home / "shelf" / "global" / "notes").mkdir(parents=True)
    (home / "shelf" / "global" / "notes" / "k.md").write_text("harbour words")
    assert keys(look, scope="global") == ["k"]


def test_a_home_that_is_deleted_and_made_again_is_seen(home, notes, look, open_memory):
    (notes / "k.md").write_text("harbour words")
    assert keys(look) == ["k"]
    shutil.rmtree(home)
    assert keys(look) == []
    open_memory().store("lighthouse words", key="new")
    assert keys(look, "lighthouse") == ["new"]
    assert keys(look) == []


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("F1")
@pytest.mark.parametrize("name", ["page.md", "sub/page.md", "sub/deeper/page.md"])
def test_files_made_edited_moved_copied_and_removed_by_hand_are_seen(files, look, name):
    path = files / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("harbour words")
    assert keys(look) == [name]
    path.write_text("lighthouse words")
    assert (keys(look), keys(look, "lighthouse")) == ([], [name])
    other = path.with_name("other.md")
    path.rename(other)
    assert keys(look, "lighthouse") == [name.replace("page", "other")]
    shutil.copy(other, path)
    assert len(keys(look, "lighthouse")) == 2
    other.unlink()
    assert keys(look, "lighthouse") == [name]
    path.unlink()
    assert keys(look, "lighthouse") == []


@pytest.mark.promise("F1")
def test_a_folder_of_files_that_is_moved_or_removed_is_seen(files, look):
    (files / "a" / "b").mkdir(parents=True)
    (files / "a" / "b" / "page.md").write_text("harbour words")
    (files / "a" / "top.md").write_text("harbour words")
    assert keys(look) == ["a/b/page.md", "a/top.md"]
    (files / "a").rename(files / "z")
    assert keys(look) == ["z/b/page.md", "z/top.md"]
    (files / "z" / "b").rename(files / "b")
    assert keys(look) == ["b/page.md", "z/top.md"]
    (files / "b" / "page.md").write_text("lighthouse words")
    assert keys(look, "lighthouse") == ["b/page.md"]
    shutil.rmtree(files / "b")
    assert keys(look, "lighthouse") == []
    assert keys(look) == ["z/top.md"]


@pytest.mark.promise("F1")
def test_a_folder_moved_in_from_elsewhere_is_seen_with_all_below(files, look, tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "page.md").write_text("harbour words")
    keys(look)
    (tmp_path / "in").rename(files / "in")
    assert keys(look) == ["in/deep/page.md"]
    (files / "in" / "deep" / "page.md").write_text("lighthouse words")
    assert keys(look, "lighthouse") == ["in/deep/page.md"]


# --- our own writes ---------------------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """Return the names of the files whose bytes were read, in order."""
    names = []
    read = atomic.read_file

    def counted(folder, name, *rest, **named):
        content = read(folder, name, *rest, **named)
        if content is not None:
            names.append(name)
        return content

    monkeypatch.setattr(atomic, "read_file", counted)
    return names


@pytest.mark.parametrize("staying", [True, False], ids=["staying", "fresh"])
def test_what_we_wrote_ourselves_is_never_read_again_to_be_indexed(memory, open_memory, reads, staying):
    if staying:
        for _ in range(3):
            memory.recall("nothing")
    memory.store("harbour words", key="a")
    memory.store_many([{"text": f"harbour number {n}", "key": f"n{n}"} for n in range(250)])
    memory.files.create("deep/page.md", "harbour page")
    memory.fact("Harbour", "state", "open")
    assert reads == []
    memory.forget("a")
    assert reads == ["a.md"]  # whether it waits for a person: then an agent may not forget it
    reads.clear()
    for caller in (memory, open_memory(), memory):
        assert caller.recall("nowhere to be found").hits == ()
        caller.list()
        caller.facts()
    assert reads == []


def test_an_update_reads_the_version_it_replaces_once_and_nothing_after(memory, open_memory, reads):
    memory.store("harbour words", key="a")
    memory.store("lighthouse words", key="a")
    assert reads == ["a.md"]
    memory.recall("nowhere to be found")
    open_memory().recall("nowhere to be found")
    assert reads == ["a.md"]


def test_only_what_changed_is_read(memory, reads, notes):
    memory.store_many([{"text": f"harbour number {n}", "key": f"n{n}"} for n in range(30)])
    for _ in range(3):
        memory.recall("nowhere to be found")
    reads.clear()
    (notes / "n7.md").write_text("lighthouse words")
    memory.recall("nowhere to be found")
    assert reads == ["n7.md"]


def test_a_first_write_into_a_home_whose_index_is_gone_does_not_read_what_it_wrote(memory, open_memory, reads, home):
    memory.store("harbour words", key="a")
    memory.close()
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        (home / name).unlink(missing_ok=True)
    reads.clear()
    caller = open_memory()
    caller.store("lighthouse words", key="b")
    caller.recall("nowhere to be found")
    assert reads == ["a.md"]


# --- concurrent changes -----------------------------------------------------------------------------------------------


def test_an_edit_by_hand_between_reading_and_writing_is_not_lost(memory, notes, monkeypatch):
    """A store without `expected` takes the newest bytes as what it replaces: the hand edit stays as a version."""
    memory.store("one", key="k")
    read = atomic.read_file
    edits = iter(["edited by hand meanwhile\n"])

    def read_and_lose_the_race(folder, name, *rest):
        content = read(folder, name, *rest)
        if name == "k.md" and (edit := next(edits, None)):
            (notes / "k.md").write_text(edit)
        return content

    monkeypatch.setattr(atomic, "read_file", read_and_lose_the_race)
    memory.store("two", key="k")
    assert [version.text for version in memory.history("k")] == ["two", "edited by hand meanwhile"]


def test_an_edit_with_expected_that_loses_the_race_conflicts_and_writes_nothing(memory, notes, monkeypatch, no_temp_left):
    seen = memory.store("one", key="k").note.version
    read = atomic.read_file
    edits = iter(["edited by hand meanwhile\n"])

    def read_and_lose_the_race(folder, name, *rest):
        content = read(folder, name, *rest)
        if name == "k.md" and (edit := next(edits, None)):
            (notes / "k.md").write_text(edit)
        return content

    monkeypatch.setattr(atomic, "read_file", read_and_lose_the_race)
    with pytest.raises(Conflict):
        memory.store("two", key="k", expected=seen)
    assert (notes / "k.md").read_text() == "edited by hand meanwhile\n"


def test_a_thread_that_asks_while_another_is_still_reading_a_change_sees_the_change_too(memory, notes, monkeypatch):
    for _ in range(3):
        memory.recall("nothing")
    (notes / "by-hand.md").write_text("harbour words\n")
    describe = Sync._describe
    reading, answered = threading.Event(), threading.Event()

    def slowly(self, *rest):
        reading.set()
        answered.wait(1)
        return describe(self, *rest)

    monkeypatch.setattr(Sync, "_describe", slowly)
    first = threading.Thread(target=memory.recall, args=("harbour",))
    first.start()
    assert reading.wait(60)
    told = keys(memory)
    answered.set()
    first.join()
    assert told == ["by-hand"]


def test_where_the_kernel_tells_nothing_changes_are_seen_all_the_same(memory, notes, files, monkeypatch):
    monkeypatch.setattr(Watch, "open", classmethod(lambda cls: None))
    for _ in range(3):
        memory.recall("nothing")
    (notes / "by-hand.md").write_text("harbour words")
    (files / "sub").mkdir()
    (files / "sub" / "page.md").write_text("harbour page")
    assert keys(memory) == ["by-hand", "sub/page.md"]
    (notes / "by-hand.md").unlink()
    assert keys(memory) == ["sub/page.md"]


def test_where_no_more_folders_can_be_watched_changes_are_seen_all_the_same(memory, notes, files, monkeypatch):
    monkeypatch.setattr(Watch, "add", lambda self, path: False)
    for _ in range(3):
        memory.recall("nothing")
    (notes / "by-hand.md").write_text("harbour words")
    (files / "page.md").write_text("harbour page")
    assert keys(memory) == ["by-hand", "page.md"]


def test_a_note_written_where_a_link_stood_is_a_note(notes, memory, look, tmp_path):
    memory.store("harbour words", key="other")
    (notes / "k.md").symlink_to(tmp_path / "nowhere")
    keys(look)
    (notes / "k.md").unlink()
    (notes / "k.md").write_text("lighthouse words\n")
    assert keys(look, "lighthouse") == ["k"]
    assert "k" in [note.key for note in look.list()]


def test_a_file_whose_name_is_no_text_disturbs_nobody_who_is_listening(memory, home):
    path = home / "shelf" / memory.store("The harbour opens at six.", key="k").note.path
    memory.recall("harbour")
    (path.parent / os.fsdecode(b"\xff\xfe.md")).write_text("The harbour is closed.")
    memory.store("The quay is long.", key="other")
    assert [hit.key for hit in memory.recall("harbour")] == ["k"]
