"""`search`, `read` and the commands of the file tree."""

from __future__ import annotations

import pytest


@pytest.mark.promise("F3")
def test_the_six_commands_of_the_file_tree(holdfast):
    assert holdfast("file", "create", "plans/a.md", "# Plan\n- one").out == "created plans/a.md\n"
    assert holdfast("file", "insert", "plans/a.md", "1", "- zero").code == 0
    assert holdfast("file", "str-replace", "/memories/plans/a.md", "one", "two").code == 0
    assert holdfast("file", "view", "plans/a.md").out == "# Plan\n- zero\n- two\n"
    assert holdfast("file", "view", "plans/a.md", "--lines", "2-2").out == "- zero\n"
    assert holdfast("file", "view", "plans/a.md", "--lines", "2-", "--json").json["text"] == "- zero\n- two"
    assert holdfast("file", "rename", "plans/a.md", "b.md", "--json").json == {"action": "renamed", "path": "b.md"}
    assert "b.md" in holdfast("file", "view", "/memories").out
    assert holdfast("file", "delete", "b.md").code == 0
    assert holdfast("file", "view", "b.md").code == 1


@pytest.mark.parametrize("words", [("view", "none.md"), ("delete", "none.md"), ("rename", "none.md", "b.md")], ids=" ".join)
def test_a_missing_file_is_answered_with_the_command_that_lists_the_files(holdfast, words):
    said = holdfast("file", *words, "--json")
    assert (said.code, said.json["fix"]) == (1, "List the files with `holdfast file view /memories`")
    holdfast("file", "create", "a.md", "text")
    assert "a.md" in holdfast("file", "view", "/memories").out


@pytest.mark.parametrize(
    "given", [b"# Plan\n", b"no end", b"two\n\n", b"a\r\nb", b"\r\n", b"  \n\t", b"", b"\xef\xbb\xbfmark\n"]
)
def test_a_file_from_stdin_is_stored_byte_for_byte(holdfast, home, given):
    assert holdfast("file", "create", "a.md", "-", stdin=given).code == 0
    assert (home / "shelf/projects/demo/files/a.md").read_bytes() == given
    assert holdfast("file", "create", "b.md", "-", stdin=b"\xff").code == 3


def test_create_updates_an_existing_file(holdfast):
    assert holdfast("file", "create", "a.md", "one").out == "created a.md\n"
    assert holdfast("file", "create", "a.md", "two").out == "updated a.md\n"
    assert holdfast("file", "create", "a.md", "two", "--json").json == {"action": "updated", "path": "a.md"}


@pytest.mark.promise("F3")
@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a/../../b", "%2e%2e/a", ""])
def test_a_path_outside_the_tree_is_rejected(holdfast, path):
    assert holdfast("file", "create", path, "text", "--json").json["error"] == "invalid_path"


@pytest.mark.promise("F2")
def test_read_takes_the_paths_that_search_prints(holdfast):
    holdfast("store", "Use pytest", "--key", "testing")
    answer = holdfast("search", "pytest", "--json").json
    assert {name: answer[name] for name in answer if name != "results"} == {
        "mode": "keyword", "degraded": False, "reason": "", "disabled": False,
    }  # fmt: skip
    (found,) = answer["results"]
    cited = f"{found['path']}:{found['lines'][0]}-{found['lines'][1]}"
    assert holdfast("search", "pytest").out.splitlines() == [cited, "    Use pytest"]
    assert holdfast("read", cited).out == "Use pytest\n"
    assert "Use pytest" in holdfast("read", found["path"]).out
    assert holdfast("search", "nowhere").err == "No results.\n"
    assert "no embedder is set" in holdfast("search", "pytest", "--mode", "hybrid").err


def test_search_prints_at_most_three_weak_matches(holdfast):
    for number in range(5):
        holdfast("store", f"A good release {number} is boring: make it on Tuesday.", "--key", f"releases-{number}")
    said = holdfast("search", "how do I make a good espresso")
    assert said.out.count("weak match") == 3 and "No strong match" in said.err and "2 more weak matches" in said.err
    assert all(one["weak"] for one in holdfast("search", "how do I make a good espresso", "--json").json["results"])


@pytest.mark.promise("F2")
def test_search_mode_is_keyword_by_default(holdfast, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    holdfast("store", "The harbour opens at six", "--key", "k")
    for words, mode, count in (((), "keyword", 0), (("--mode", "hybrid"), "hybrid", 1)):
        answer = holdfast("search", "port entrance", *words, "--json").json
        assert (answer["mode"], answer["degraded"], len(answer["results"])) == (mode, False, count)
    assert "recent" in holdfast("search", "harbour", "--mode", "recent", "--json").json["message"]


@pytest.mark.promise("F2")
@pytest.mark.parametrize(
    "path", ["global/notes/none.md", "none.md", "projects/demo/files/none.md:3-4", "projects/other/notes/k.md"]
)
def test_read_of_a_missing_file_exits_1_with_empty_text(holdfast, path):
    said = holdfast("read", path, "--json")
    assert (said.code, said.json["text"], said.json["exists"]) == (1, "", False)
    assert said.json["path"] == path.partition(":")[0]
    told = holdfast("read", path)
    assert (told.code, told.out) == (1, "")
    assert "No file" in told.err and "holdfast search" in told.err


@pytest.mark.promise("F2")
def test_read_of_lines_beyond_the_end_exits_0(holdfast):
    holdfast("file", "create", "empty.md", "")
    holdfast("file", "create", "short.md", "one line")
    for path in ("empty.md", "short.md:7-9"):
        said = holdfast("read", path)
        assert (said.code, said.out, "no text" in said.err) == (0, "", True)
        assert holdfast("read", path, "--json").json["exists"] is True


@pytest.mark.parametrize("words", [("view", "a.md", "--lines", "x"), ("insert", "a.md", "one", "text")])
def test_line_numbers_must_be_numbers(holdfast, words):
    assert holdfast("file", *words).code == 2
