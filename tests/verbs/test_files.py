"""The agent's own files: searched, read in pieces, edited by six commands, and never rewritten by Holdfast."""

from __future__ import annotations

import os
import threading

import pytest

from holdfast import Conflict, HoldfastError, InvalidPath, InvalidText, NotFound, TooLarge, UsageError
from holdfast.store.tree import FileTree
from holdfast.verbs.read import overviews

REFUSED = [
    "",
    " ",
    "/etc/passwd",
    "~/x",
    "~root",
    "/",
    "//etc/passwd",
    "/memoriesX",
    "/memories2/a.md",
    "../a.md",
    "a/../b.md",
    "/memories/../a.md",
    "/memories/a/../../b",
    "a/..",
    "..",
    ".",
    "./a.md",
    "a/./b.md",
    ".hidden",
    "a/.git/config",
    "a\\b",
    "..\\a",
    "%2e%2e/a",
    "a%2fb",
    "%2E%2E%2Fa",
    "a\0b",
    "a\nb",
    "\u202ea",
    "a\u200b",
    "․․/a",
    "．．/a",
    "a／b",
    "a∕..∕b",
    "…",
    "a/ /b",
    "a/. /b",
    "\ufeffa",
    "a" * 256,
    "/".join(["d" * 200] * 6),
    "C:\\x",
    "a/\x7f",
    "‥/a",
    "%c0%ae%c0%ae/a",
    5,
    None,
    b"a.md",
]
HONEST = [
    "a.md",
    "/memories/a.md",
    "deep/er/still/a.md",
    "Größe/日本 語.md",
    "no-extension",
    "a b.md",
    "UPPER.MD",
    "a..b.md",
    "x" * 255,
]


@pytest.fixture
def tree(home):
    path = home / "shelf" / "projects" / "demo" / "files"
    path.mkdir(parents=True)
    for folder in (home, home / "shelf", home / "shelf" / "projects", home / "shelf" / "projects" / "demo", path):
        folder.chmod(0o700)
    return path


# --- one tree per scope, indexed and never rewritten (F1) -------------------------------------------------------------


@pytest.mark.promise("F1")
@pytest.mark.parametrize("scope", ["global", "project", "session", "agent"])
def test_each_scope_has_a_tree_of_its_own(open_memory, scope):
    memory = open_memory(session="s1", agent="a1")
    memory.files.create("page.md", f"harbour of {scope}", scope=scope)
    assert memory.files.view("page.md", scope=scope) == f"harbour of {scope}"
    for other in {"global", "project", "session", "agent"} - {scope}:
        with pytest.raises(NotFound):
            memory.files.view("page.md", scope=other)
    assert [hit.scope.kind for hit in memory.recall("harbour")] == [scope]


@pytest.mark.promise("F1")
def test_every_text_file_is_indexed_and_none_is_rewritten(memory, tree, truth):
    (tree / "a" / "b").mkdir(parents=True)
    odd = {
        "plain.txt": b"harbour one\n",
        "a/b/page.md": b"---\nname: x\n---\nharbour two",
        "crlf.md": b"harbour three\r\n\r\n",
        "bom.md": b"\xef\xbb\xbfharbour four",
        "latin.txt": b"harbour caf\xe9 five",
        "code.py": b"harbour = 6",
        "Makefile": b"harbour: seven",
        "marks.md": b"harbour <!-- holdfast:history -->\n## 2020-01-01 to 2021-01-01\neight",
    }
    for name, data in odd.items():
        (tree / name).write_bytes(data)
    before = truth()
    assert sorted(hit.key for hit in memory.recall("harbour", limit=100)) == sorted(odd)
    memory.store("a note beside them")
    memory.reindex()
    memory.check()
    memory.brief()
    assert {path: data for path, data in truth().items() if "/files/" in path} == {
        p: d for p, d in before.items() if "/files/" in p
    }


@pytest.mark.promise("F1")
def test_what_is_not_text_or_is_hidden_is_passed_over(memory, tree):
    (tree / "image.png").write_bytes(b"harbour\0\x01\x02")
    (tree / ".hidden.md").write_text("harbour")
    (tree / ".git").mkdir()
    (tree / ".git" / "page.md").write_text("harbour")
    (tree / "empty.md").write_text("")
    assert len(memory.recall("harbour")) == 0
    assert memory.check() == []


@pytest.mark.promise("F1")
def test_a_link_in_the_tree_is_never_followed(memory, tree, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("harbour secret")
    (tree / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (tree / "folder").symlink_to(tmp_path / "outside")
    assert len(memory.recall("harbour")) == 0
    assert any("link" in problem.message for problem in memory.check())


# --- search and read (F2) ---------------------------------------------------------------------------------------------


@pytest.mark.promise("F2")
def test_search_gives_path_lines_score_and_snippet_of_notes_and_files(memory):
    memory.store("the harbour opens at six", key="opening")
    memory.files.create("deep/page.md", "# Intro\nnothing\n\n# Dues\nharbour dues\nare paid\n")
    found = {snippet.path: snippet for snippet in memory.search("harbour")}
    assert set(found) == {"projects/demo/notes/opening.md", "projects/demo/files/deep/page.md"}
    page = found["projects/demo/files/deep/page.md"]
    assert page.lines == (4, 6)
    assert page.snippet == "# Dues\nharbour dues\nare paid"
    assert isinstance(page.score, float)


@pytest.mark.promise("F2")
def test_search_marks_weak_matches_like_recall(memory):
    memory.store("A good release is boring: make it on Tuesday.", key="releases")
    memory.store("We charge in yen and euro.", key="currencies")
    assert [one.weak for one in memory.search("how do I make a good espresso")] == [True]
    assert [one["weak"] for one in memory.search("can we charge in yen?").as_dict()["results"]][:1] == [False]


def test_search_is_a_list_that_says_how_it_looked(memory, open_memory, monkeypatch):
    memory.store("The harbour opens at six", key="k")
    found = memory.search("harbour")
    assert isinstance(found, list) and len(found) == 1 and found[0].snippet == "The harbour opens at six"
    assert (found.mode, found.degraded, found.disabled) == ("keyword", True, False) and "no embedder" in found.reason
    words = memory.search("harbour", mode="keyword")
    assert (words.mode, words.degraded, words.reason) == ("keyword", False, "") and words == found
    with pytest.raises(UsageError):
        memory.search("harbour", mode="recent")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    meant = open_memory().search("port entrance")
    assert [one.path for one in meant] == ["projects/demo/notes/k.md"] and (meant.mode, meant.degraded) == ("hybrid", False)


@pytest.mark.promise("F2")
def test_the_piece_that_search_names_can_be_read(memory):
    memory.files.create("page.md", "\n".join(f"line {n}" for n in range(1, 101)))
    memory.store("line of a note\nwith two lines", key="k")
    for snippet in memory.search("line", limit=20):
        first, last = snippet.lines
        piece = memory.read(snippet.path, first, last - first + 1)
        assert piece.text.startswith(snippet.snippet[:100])
        assert piece.path == snippet.path
    assert memory.read("projects/demo/files/page.md", 5, 3).text == "line 5\nline 6\nline 7"
    assert memory.read("projects/demo/files/page.md", 99).text == "line 99\nline 100"
    assert memory.read("projects/demo/files/page.md", 200).text == ""


@pytest.mark.promise("F2")
def test_a_path_of_the_tree_alone_reads_from_the_project(memory):
    memory.files.create("page.md", "text")
    assert memory.read("page.md").text == "text"
    assert memory.read("/memories/page.md").text == "text"


@pytest.mark.promise("F2")
@pytest.mark.parametrize(
    "path",
    [
        "nothing.md",
        "deep/nothing.md",
        "projects/demo/files/nothing.md",
        "projects/demo/notes/nothing.md",
        "global/files/x",
        "deep",
    ],
)
def test_a_missing_file_reads_as_empty_text_with_its_path(memory, home, path):
    piece = memory.read(path)
    assert (piece.path, piece.text) == (path, "")
    assert not home.exists()
    memory.files.create("deep/page.md", "text")
    assert (memory.read(path).path, memory.read(path).text) == (path, "")


@pytest.mark.promise("F2", "F3")
@pytest.mark.parametrize("path", REFUSED, ids=lambda path: ascii(path)[:30])
def test_read_refuses_a_path_that_climbs_or_hides(memory, home, path):
    with pytest.raises(HoldfastError):
        memory.read(path)
    assert not home.exists()


@pytest.mark.promise("F2")
@pytest.mark.parametrize("wrong", [(0, 1), (1, 0), (-1, None), (1, -5)])
def test_read_counts_lines_from_one(memory, wrong):
    with pytest.raises(UsageError):
        memory.read("page.md", *wrong)


# --- the six commands (F3) --------------------------------------------------------------------------------------------


@pytest.mark.promise("F3")
@pytest.mark.parametrize("path", HONEST, ids=lambda path: ascii(path)[:30])
def test_a_file_is_made_searched_read_and_deleted_by_its_honest_path(memory, open_memory, path):
    memory.files.create(path, "harbour text\n")
    for caller in (memory, open_memory()):
        assert caller.files.view(path) == "harbour text\n"
        assert len(caller.recall("harbour")) == 1
    memory.files.delete(path)
    for caller in (memory, open_memory()):
        assert len(caller.recall("harbour")) == 0
        with pytest.raises(NotFound):
            caller.files.view(path)


@pytest.mark.promise("F3", "S1")
@pytest.mark.parametrize("path", REFUSED, ids=lambda path: ascii(path)[:30])
def test_a_path_that_climbs_or_hides_is_refused_by_every_verb_and_nothing_is_touched(memory, tmp_path, home, path):
    files = memory.files
    for call in (
        lambda: files.view(path),
        lambda: files.create(path, "text"),
        lambda: files.str_replace(path, "a", "b"),
        lambda: files.insert(path, 0, "a"),
        lambda: files.delete(path),
        lambda: files.rename(path, "fine.md"),
        lambda: files.rename("fine.md", path),
    ):
        with pytest.raises(InvalidPath):
            call()
    assert not home.exists()
    assert [path for path in tmp_path.iterdir() if path.name != "home"] == []


@pytest.mark.promise("F3")
@pytest.mark.parametrize("path", ["/memories", "/memories/"])
def test_the_root_of_the_tree_can_be_viewed_and_nothing_else_done_with_it(memory, path):
    memory.files.create("b.md", "text")
    memory.files.create("a/c.md", "text")
    assert memory.files.view(path) == "a/\nb.md"
    assert memory.files.view("a") == "c.md"
    for call in (
        lambda: memory.files.create(path, "text"),
        lambda: memory.files.delete(path),
        lambda: memory.files.rename(path, "x"),
        lambda: memory.files.rename("b.md", path),
        lambda: memory.files.str_replace(path, "a", "b"),
        lambda: memory.files.insert(path, 0, "b"),
    ):
        with pytest.raises(HoldfastError):
            call()
    assert memory.files.view(path) == "a/\nb.md"


@pytest.mark.promise("F3")
def test_view_shows_a_range_of_lines(memory):
    memory.files.create("page.md", "one\ntwo\nthree\nfour")
    assert memory.files.view("page.md", (2, 3)) == "two\nthree"
    assert memory.files.view("page.md", (3, -1)) == "three\nfour"
    for wrong in ((0, 1), (3, 2), (9, 9)):
        with pytest.raises(UsageError):
            memory.files.view("page.md", wrong)


@pytest.mark.promise("F3")
def test_create_replaces_what_was_there_and_is_searchable_when_it_returns(memory):
    memory.files.create("page.md", "vermilion")
    memory.files.create("page.md", "turquoise")
    assert memory.files.view("page.md") == "turquoise"
    assert len(memory.recall("turquoise")) == 1
    assert len(memory.recall("vermilion")) == 0


@pytest.mark.promise("F3")
def test_str_replace_changes_a_text_that_stands_exactly_once(memory, truth):
    memory.files.create("page.md", "one two\ntwo three\n")
    memory.files.str_replace("page.md", "three", "harbour")
    assert memory.files.view("page.md") == "one two\ntwo harbour\n"
    assert len(memory.recall("harbour")) == 1
    before = truth()
    for old in ("two", "absent", ""):
        with pytest.raises(Conflict):
            memory.files.str_replace("page.md", old, "x")
    with pytest.raises(NotFound):
        memory.files.str_replace("nothing.md", "a", "b")
    assert truth() == before


@pytest.mark.promise("F3")
@pytest.mark.parametrize(
    ("line", "told"),
    [(0, "new\none\ntwo\n"), (1, "one\nnew\ntwo\n"), (2, "one\ntwo\nnew\n")],
    ids=["start", "middle", "end"],
)
def test_insert_puts_text_after_a_line(memory, line, told):
    memory.files.create("page.md", "one\ntwo\n")
    memory.files.insert("page.md", line, "new\n")
    assert memory.files.view("page.md") == told


@pytest.mark.promise("F3")
@pytest.mark.parametrize("line", [-1, 99])
def test_insert_refuses_a_line_that_is_not_there(memory, truth, line):
    memory.files.create("page.md", "one\n")
    before = truth()
    with pytest.raises(UsageError):
        memory.files.insert("page.md", line, "x")
    with pytest.raises(NotFound):
        memory.files.insert("nothing.md", 0, "x")
    assert truth() == before


@pytest.mark.promise("F3")
def test_delete_removes_a_file_or_a_folder_with_all_in_it(memory, home):
    for path in ("a/b/one.md", "a/b/two.md", "a/three.md", "four.md"):
        memory.files.create(path, f"harbour {path}")
    memory.files.delete("a")
    assert memory.files.view("/memories") == "four.md"
    assert len(memory.recall("harbour")) == 1
    with pytest.raises(NotFound):
        memory.files.delete("a")


@pytest.mark.promise("F3")
def test_rename_moves_a_file_or_folder_and_never_over_another(memory, truth):
    memory.files.create("a/one.md", "harbour one")
    memory.files.create("two.md", "harbour two")
    memory.files.rename("a", "b/c")
    assert memory.files.view("b/c/one.md") == "harbour one"
    assert sorted(hit.key for hit in memory.recall("harbour")) == ["b/c/one.md", "two.md"]
    before = truth()
    with pytest.raises(Conflict):
        memory.files.rename("b/c/one.md", "two.md")
    with pytest.raises(NotFound):
        memory.files.rename("nothing.md", "new.md")
    with pytest.raises(HoldfastError):
        memory.files.rename("b", "b/c/inside")
    assert truth() == before


@pytest.mark.promise("F3")
@pytest.mark.parametrize("where", ["file", "folder", "root"])
def test_a_symlink_anywhere_on_the_path_is_refused(memory, tree, tmp_path, where):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "page.md").write_text("secret")
    if where == "file":
        (tree / "page.md").symlink_to(outside / "page.md")
        path = "page.md"
    elif where == "folder":
        (tree / "link").symlink_to(outside)
        path = "link/page.md"
    else:
        tree.rmdir()
        tree.symlink_to(outside)
        path = "page.md"
    for call in (
        lambda: memory.files.view(path),
        lambda: memory.files.create(path, "text"),
        lambda: memory.files.str_replace(path, "secret", "b"),
        lambda: memory.files.insert(path, 0, "a"),
        lambda: memory.files.rename(path, "mine.md"),
        lambda: memory.read(path),
    ):
        with pytest.raises(HoldfastError):
            call()
    if where != "file":
        with pytest.raises(HoldfastError):
            memory.files.delete(path)
        with pytest.raises(HoldfastError):
            memory.files.create(path.replace("page", "new"), "text")
    assert os.listdir(outside) == ["page.md"]
    assert (outside / "page.md").read_text() == "secret"


@pytest.mark.promise("F3")
def test_writes_are_whole_or_not_there_and_leave_nothing_beside(memory, home, no_temp_left):
    memory.files.create("page.md", "one")
    memory.files.str_replace("page.md", "one", "two")
    memory.files.insert("page.md", 0, "zero")
    assert os.listdir(home / "shelf" / "projects" / "demo" / "files") == ["page.md"]


@pytest.mark.promise("F3")
def test_an_edit_of_a_file_that_somebody_changed_meanwhile_conflicts(memory, tree, monkeypatch, no_temp_left):
    (tree / "page.md").write_text("one two")
    read = FileTree.read

    def read_and_lose_the_race(self, parts):
        content = read(self, parts)
        (tree / "page.md").write_text("one two three, said somebody")
        return content

    monkeypatch.setattr(FileTree, "read", read_and_lose_the_race)
    with pytest.raises(Conflict):
        memory.files.str_replace("page.md", "one", "zero")
    assert (tree / "page.md").read_text() == "one two three, said somebody"


@pytest.mark.promise("F3")
def test_a_file_may_be_emptied(memory):
    memory.files.create("page.md", "harbour")
    memory.files.create("page.md", "")
    assert memory.files.view("page.md") == ""
    assert len(memory.recall("harbour")) == 0


@pytest.mark.promise("F3")
def test_a_file_of_exactly_ten_mebibytes_is_kept_and_one_byte_more_is_refused(memory):
    most = 10 * 1024 * 1024
    memory.files.create("full.txt", "x" * most)
    with pytest.raises(TooLarge):
        memory.files.create("over.txt", "x" * (most + 1))
    assert len(memory.files.view("full.txt")) == most


@pytest.mark.promise("F3")
def test_a_file_where_a_folder_is_meant_and_the_other_way_round_is_refused(memory, truth):
    memory.files.create("page", "text")
    memory.files.create("folder/page", "text")
    before = truth()
    for call in (
        lambda: memory.files.create("page/below", "text"),
        lambda: memory.files.create("folder", "text"),
        lambda: memory.files.str_replace("folder", "a", "b"),
        lambda: memory.files.insert("folder", 0, "b"),
        lambda: memory.files.rename("page", "page/below"),
        lambda: memory.files.view("page/below"),
    ):
        with pytest.raises(HoldfastError):
            call()
    assert truth() == before


@pytest.mark.promise("F3")
def test_line_endings_and_odd_bytes_of_a_file_survive_an_edit(memory, tree):
    (tree / "page.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\x0c\xe2\x80\xa8three")
    memory.files.str_replace("page.md", "two", "zwei")
    assert (tree / "page.md").read_bytes() == b"\xef\xbb\xbfone\r\nzwei\r\n\x0c\xe2\x80\xa8three"


def test_lines_that_end_as_on_windows_are_told_without_the_end_of_the_last_and_hide_nothing(memory):
    memory.files.create("a.md", "# One\r\nharbour two\r\n\r\n# Three\r\nfour\r")
    path = "projects/demo/files/a.md"
    pieces = [memory.read(path, 1, 1), memory.read(path, 1, 2), memory.read(path)]
    assert [(one.text, one.hidden) for one in pieces] == [
        ("# One", ()), ("# One\r\nharbour two", ()), ("# One\r\nharbour two\r\n\r\n# Three\r\nfour\r", ("control",)),
    ]  # fmt: skip
    assert memory.files.view("a.md", (2, 2)) == "harbour two"
    assert memory.files.view("a.md", (5, 5)) == "four\r"  # without a newline after it
    (hit,) = memory.recall("harbour", mode="keyword")
    (found,) = memory.search("harbour")
    assert (hit.text, hit.hidden, found.snippet, found.hidden) == ("# One\r\nharbour two\r\n", (), hit.text, ())


# --- the overview (F4) ------------------------------------------------------------------------------------------------


@pytest.mark.promise("F4")
@pytest.mark.parametrize("name", ["MEMORY.md", "index.md", "memory/index.md"])
def test_the_overview_of_the_tree_is_shown_in_a_briefing(memory, name):
    memory.files.create(name, "# My tree\n- harbour.md: about the harbour\n")
    text = memory.brief().text
    assert f"files/{name}" in text
    assert "harbour.md: about the harbour" in text


@pytest.mark.promise("F4")
def test_of_a_long_overview_200_lines_are_shown_and_the_file_stays_as_it_is(home, open_memory):
    home.mkdir(0o700)
    (home / "config.toml").write_text("[brief]\nscope_chars = 9000\ntotal_chars = 9000\n")
    memory = open_memory()
    page = "\n".join(f"l{n}" for n in range(1, 251)) + "\n"
    memory.files.create("MEMORY.md", page)
    text = memory.brief().text
    assert "l200\n" in text
    assert "l201" not in text
    assert "[... 50 more lines truncated]" in text
    assert memory.files.view("MEMORY.md") == page


@pytest.mark.promise("F4")
@pytest.mark.parametrize("blank", ["", "\n\n", "  \t\n"])
def test_a_blank_overview_counts_as_absent(memory, blank):
    memory.files.create("MEMORY.md", blank)
    assert memory.brief().text == ""
    memory.files.create("index.md", "the second one")
    assert "the second one" in memory.brief().text


@pytest.mark.promise("F4", "F6")
def test_the_index_of_a_wiki_is_shown_once_something_is_written_in_it(memory):
    memory.scaffold("wiki")
    assert memory.brief().text == ""  # not written to yet
    page = memory.files.view("memory/index.md")
    memory.files.create("memory/index.md", page + "- [Releases](memories/releases.md): when and how we release\n")
    text = memory.brief().text
    assert "files/memory/index.md" in text
    assert "when and how we release" in text


def test_an_untouched_index_of_an_earlier_template_is_not_shown(memory):
    earlier = "# Index\n\n<!-- One line\na page. -->\n\n## Memories\n\n<!-- e.g. - [A](memories/a.md) -->\n\n## Data\n"
    memory.files.create("memory/index.md", earlier)
    assert memory.brief().text == ""


def test_overview_pages_come_in_order_each_with_all_its_lines(memory):
    store, place = memory._context.store, memory._context.scope("project")
    memory.files.create("memory/index.md", "- [Harbour](memories/harbour.md)\n- two\n\n")
    memory.files.create("index.md", "top\n")
    assert [(one.path, one.lines) for one in overviews(store, place)] == [("files/index.md", 1), ("files/memory/index.md", 2)]
    memory.files.create("MEMORY.md", "\n".join(f"line {n}" for n in range(250)))
    assert [one.lines for one in overviews(store, place)] == [250, 1, 2]
    assert overviews(store, place)[0].path == "files/MEMORY.md"
    memory.files.create("MEMORY.md", " \n")
    assert next((page.path, page.text) for page in overviews(store, place)) == ("files/index.md", "top\n")


# --- entry files (F5) -------------------------------------------------------------------------------------------------


ENTRY = "---\nname: Harbour\ndescription: where ships are\ntype: reference\n---\ntext about boats\n"


@pytest.mark.promise("F5")
def test_an_entry_with_a_name_is_fine(memory):
    memory.files.create("entry.md", ENTRY)
    memory.files.create("MEMORY.md", "- [Harbour](entry.md)\n")
    assert memory.check() == []
    assert "projects/demo/files/entry.md" in {one.path for one in memory.search("harbour")}


@pytest.mark.promise("F5")
@pytest.mark.parametrize("mode", ["keyword", "recent"])
def test_an_entry_is_found_by_the_type_in_its_frontmatter_and_shows_its_name(memory, mode):
    memory.files.create("entry.md", ENTRY)
    memory.files.create("plain.md", "boats without frontmatter\n")
    memory.files.create("odd.md", "---\nname: Odd\ntype: recipe\n---\nboats of another kind\n")
    memory.store("boats in a note", key="boats", type="reference")
    found = {hit.key: hit for hit in memory.recall("boats", mode=mode, type="reference")}
    assert sorted(found) == ["boats", "entry.md"]
    hit = found["entry.md"]
    assert (hit.type, hit.name, hit.description) == ("reference", "Harbour", "where ships are")
    assert (found["boats"].name, found["boats"].description) == (None, None)
    assert [hit.key for hit in memory.recall("boats", mode=mode, type="feedback")] == []
    kinds = {hit.key: (hit.type, hit.name) for hit in memory.recall("boats", mode=mode)}
    assert kinds["plain.md"] == (None, None) and kinds["odd.md"] == (None, "Odd")


def test_every_section_of_an_entry_is_found_by_its_name(memory):
    memory.files.create("e.md", '---\nname: "Harbour: north"\ntype: [user]\n---\n# One\nboats\n\n# Two\ncranes\n')
    (hit,) = memory.recall("harbour cranes", mode="keyword", limit=1)
    assert (hit.name, hit.type, hit.text) == ("Harbour: north", None, "# Two\ncranes")


def test_a_secret_in_an_entrys_name_is_not_shown(memory, home):
    memory.files.create("e.md", ENTRY)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (home / "shelf/projects/demo/files/e.md").write_text(ENTRY.replace("where ships are", f"see {token}"))
    (hit,) = memory.recall("boats", mode="keyword")
    assert token not in str(hit.description) and "REDACTED" in str(hit.description)


@pytest.mark.promise("F5", "D1")
def test_entries_that_no_page_lists_are_reported_with_the_page_to_write(memory, home):
    memory.files.create("deep/entry.md", ENTRY)
    (problem,) = memory.check()
    assert (problem.code, problem.path) == ("no_overview", "projects/demo/files/MEMORY.md")
    assert "deep/entry.md" in problem.message and str(home / "shelf/projects/demo/files/MEMORY.md") in problem.fix
    memory.scaffold("wiki")  # whose index was not written to yet
    assert [one.path for one in memory.check()] == ["projects/demo/files/memory/index.md"]
    memory.files.create("memory/index.md", "- [Harbour](../deep/entry.md)\n")
    assert memory.check() == []


def test_files_that_are_no_entries_need_no_overview(memory):
    memory.files.create("notes.md", "# Plan\n")
    memory.files.create("data.csv", "a,b\n")
    assert memory.check() == []


@pytest.mark.promise("F5", "D1")
@pytest.mark.parametrize(
    "entry",
    [
        "---\ndescription: x\n---\nharbour",
        "---\nname:\n---\nharbour",
        "---\nname: x\nharbour",
        "---\nname: [x\n---\nharbour",
    ],
    ids=["no name", "empty name", "never closed", "not YAML"],
)
def test_a_malformed_entry_is_still_searchable_and_is_reported(memory, entry):
    memory.files.create("entry.md", entry)
    assert len(memory.search("harbour")) == 1
    (problem,) = memory.check()
    assert problem.path == "projects/demo/files/entry.md"
    assert problem.fix


@pytest.mark.parametrize(
    "wrong",
    [
        lambda files: files.str_replace("a.md", None, "x"), lambda files: files.str_replace("a.md", "one", None),
        lambda files: files.str_replace("a.md", b"one", "x"), lambda files: files.insert("a.md", 0, b"x"),
        lambda files: files.create("b.md", None), lambda files: files.create("b.md", 7),
        lambda files: files.create("b.md", None, redact=True),
    ],
)  # fmt: skip
def test_what_is_no_text_is_a_typed_error(memory, wrong):
    memory.files.create("a.md", "one")
    with pytest.raises(UsageError):
        wrong(memory.files)
    assert memory.files.view("a.md") == "one"


def test_a_file_may_be_given_as_bytes(open_memory):
    memory = open_memory(origin="user")
    memory.store("something that goes", key="k")
    memory.purge("k")  # from now on each write is compared with purged text
    memory.files.create("b.md", "größe\n".encode())
    assert memory.files.view("b.md") == "größe\n"
    with pytest.raises(InvalidText):
        memory.files.create("b.md", b"\xff")


def test_viewing_a_folder_that_another_writer_creates_and_deletes_shows_it_or_says_that_it_is_missing(open_memory):
    memory, writer = open_memory(), open_memory()
    finished, seen = threading.Event(), set()

    def write():
        for _ in range(40):
            writer.files.create("a/b.md", "x")
            writer.files.delete("a")
        finished.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not finished.is_set():
        try:
            seen.add(memory.files.view("a"))
        except NotFound:
            seen.add("missing")
    thread.join()
    assert seen == {"b.md", "", "missing"} or seen == {"b.md", "missing"}
