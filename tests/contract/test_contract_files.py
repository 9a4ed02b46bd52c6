"""The agent's own files: six commands, search, pieces, briefing; of every store."""

from __future__ import annotations

import pytest

from holdfast import Conflict, InvalidPath, InvalidText, NotFound, UsageError


def test_a_file_is_created_read_and_found_when_the_call_returns(any_memory, open_any):
    other = open_any()
    any_memory.files.create("/memories/deep/plan.md", "# Plan\n\nthe harbour opens at six\n")
    assert other.files.view("deep/plan.md") == "# Plan\n\nthe harbour opens at six\n"
    (hit,) = other.recall("harbour")
    assert (hit.kind, hit.citation.rpartition(":")[0]) == ("file", "projects/demo/files/deep/plan.md")


def test_whether_a_file_was_there_is_told(any_memory):
    assert [any_memory.files.create("deep/a.md", text) for text in ("one", "two")] == ["created", "updated"]


def test_a_folder_shows_its_names_and_a_file_its_lines(any_memory):
    for path in ("b.md", "a.md", "deep/c.md", "deep/er/d.md"):
        any_memory.files.create(path, "one\ntwo\nthree\n")
    assert any_memory.files.view("/memories") == "a.md\nb.md\ndeep/"
    assert any_memory.files.view("deep") == "c.md\ner/"
    assert any_memory.files.view("a.md", (2, 3)) == "two\nthree"
    with pytest.raises(UsageError):
        any_memory.files.view("a.md", (9, 10))


def test_an_edit_replaces_what_stands_once_and_inserts_after_a_line(any_memory):
    any_memory.files.create("a.md", "one\ntwo\n")
    any_memory.files.str_replace("a.md", "two", "zwei harbour")
    any_memory.files.insert("a.md", 0, "zero")
    assert any_memory.files.view("a.md") == "zero\none\nzwei harbour\n"
    assert len(any_memory.recall("harbour")) == 1 and len(any_memory.recall("two")) == 0
    with pytest.raises(Conflict):
        any_memory.files.str_replace("a.md", "e", "x")


def test_a_deleted_file_or_folder_is_gone_from_every_answer(any_memory, open_any):
    any_memory.files.create("deep/a.md", "harbour words")
    any_memory.files.create("deep/er/b.md", "harbour words too")
    any_memory.files.delete("deep")
    assert len(open_any().recall("harbour")) == 0 and any_memory.files.view("/memories") == ""
    with pytest.raises(NotFound):
        any_memory.files.view("deep/a.md")
    with pytest.raises(NotFound):
        any_memory.files.delete("deep/a.md")


def test_a_file_or_folder_moves_and_never_over_another(any_memory):
    any_memory.files.create("old/a.md", "harbour words")
    any_memory.files.create("b.md", "other words")
    any_memory.files.rename("old", "new")
    assert any_memory.files.view("new/a.md") == "harbour words"
    assert any_memory.recall("harbour")[0].citation.startswith("projects/demo/files/new/a.md:")
    with pytest.raises(Conflict):
        any_memory.files.rename("new/a.md", "b.md")
    with pytest.raises(InvalidPath):
        any_memory.files.rename("new", "new/er")
    with pytest.raises(NotFound):
        any_memory.files.rename("none.md", "c.md")


def test_a_file_cannot_stand_where_a_folder_stands_nor_below_a_file(any_memory):
    any_memory.files.create("deep/a.md", "words")
    with pytest.raises(InvalidPath):
        any_memory.files.create("deep", "words")
    with pytest.raises(Exception) as refused:
        any_memory.files.create("deep/a.md/b.md", "words")
    assert hasattr(refused.value, "exit_code"), "one of our own errors"
    assert any_memory.files.view("deep") == "a.md"


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../a", "a/../b", "a\0b", "%2e%2e/a", ".git/x", "a" * 256, 5, "．．/a"])
def test_a_path_that_is_none_of_ours_is_refused_by_every_verb(any_memory, path):
    files = any_memory.files
    for verb in (files.view, files.delete, lambda one: files.create(one, "x"), lambda one: files.rename("a.md", one)):
        with pytest.raises(InvalidPath):
            verb(path)


@pytest.mark.parametrize("path", ["Größe/日本 語.md", "no-extension", "a b.md", "a..b.md", "x" * 255, "it's 100%_.md"])
def test_an_honest_path_is_kept_as_it_is(any_memory, open_any, path):
    any_memory.files.create(path, "harbour words")
    assert open_any().files.view(path) == "harbour words"
    assert open_any().read(any_memory.search("harbour")[0].path).text.strip() == "harbour words"


def test_a_file_may_be_empty_but_not_broken(any_memory):
    any_memory.files.create("a.md", "")
    assert any_memory.files.view("a.md") == ""
    for bad in ("a\0b", b"caf\xe9"):
        with pytest.raises(InvalidText):
            any_memory.files.create("b.md", bad)
    assert any_memory.files.view("/memories") == "a.md"


def test_a_piece_is_read_by_the_path_that_search_shows_and_a_missing_one_is_empty(any_memory):
    any_memory.files.create("a.md", "# One\n\nfirst\n\n# Two\n\nharbour\n")
    (found,) = any_memory.search("harbour")
    assert any_memory.read(found.path, *found.lines[:1], 3).text == "# Two\n\nharbour"
    missing = any_memory.read("projects/demo/files/none.md")
    assert (missing.text, missing.exists) == ("", False)


def test_an_overview_is_briefed(any_memory):
    any_memory.files.create("MEMORY.md", "the harbour is where it always was\n")
    assert "the harbour is where it always was" in any_memory.brief().text


@pytest.mark.parametrize("name", ["wiki", "continuity"])
def test_a_scaffold_is_made_only_where_it_is_missing(any_memory, name):
    made = any_memory.scaffold(name)
    assert made.created and not any_memory.scaffold(name).created
    assert any_memory.files.view("/memories")


def test_files_of_many_folders_are_all_searched(any_memory, open_any):
    for number in range(30):
        any_memory.files.create(f"d{number % 5}/{number}.md", f"harbour page number{number}")
    assert len(open_any().recall("harbour", limit=100)) == 30
    assert [hit.key for hit in open_any().recall("number17")] == [open_any().recall("number17")[0].key]


def test_an_entry_is_found_by_the_type_in_its_frontmatter(any_memory):
    any_memory.files.create("e.md", "---\nname: Harbour\ndescription: where ships are\ntype: feedback\n---\nabout boats\n")
    any_memory.files.create("plain.md", "boats too\n")
    (hit,) = any_memory.recall("boats", type="feedback", mode="keyword")
    assert (hit.key, hit.type, hit.name, hit.description) == ("e.md", "feedback", "Harbour", "where ships are")
    assert [one.key for one in any_memory.recall(mode="recent", type="feedback")] == ["e.md"]
