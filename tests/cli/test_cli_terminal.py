"""The command line in a real terminal: colour, width, questions, and stored text that cannot control it."""

from __future__ import annotations

import sys

import pytest

from holdfast import Memory
from holdfast.cli.output import mark_hidden, truncate, wrap_line

ESC = "\x1b"


@pytest.fixture
def filled(home):
    with Memory(home, project="demo") as memory:
        memory.store("Use pytest, never unittest", key="testing", type="feedback", tags="ci-cd")
        memory.store("word " * 60, key="long")


def test_a_terminal_gets_colour(terminal, filled):
    code, shown = terminal("recall", "pytest", "--mode", "keyword")
    assert code == 0
    assert f"{ESC}[1mtesting{ESC}[0m" in shown


@pytest.mark.parametrize("how", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_colour_can_be_switched_off(terminal, filled, how):
    for words in (["recall", "pytest"], ["list"], ["get", "nothing"], ["status"]):
        assert ESC not in terminal(*words, *([] if how else ["--no-color"]), **how)[1]


def test_json_at_a_terminal_is_still_json(terminal, filled):
    import json

    code, shown = terminal("recall", "pytest", "--json")
    assert (code, ESC in shown) == (0, False)
    assert json.loads(shown)["hits"][0]["key"] == "testing"


def test_text_is_wrapped_to_the_terminal(terminal, filled):
    for words in (["recall", "word", "--mode", "keyword"], ["get", "long", "--no-color"]):
        _, shown = terminal(*words, columns=50)
        body = [line for line in shown.splitlines() if "word word" in line]
        assert body and all(len(line) <= 50 for line in body)


def test_a_table_fits_the_terminal(terminal, filled):
    for columns in (50, 80, 200):
        _, shown = terminal("list", "--no-color", columns=columns)
        assert shown.count("\n") == 3
        assert max(len(line) for line in shown.splitlines()) <= columns


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_key_is_never_truncated(terminal, home, columns):
    keys = ["k-" + "long-" * 11 + "end", "a-key-of-thirty-characters-or-so", "short"]
    with Memory(home, project="demo") as memory:
        for key in keys:
            memory.store("word " * 60, key=key, tags="one,two")
    _, shown = terminal("list", "--no-color", columns=columns)
    assert all(key in shown for key in keys)
    assert all(len(line) <= columns for line in shown.splitlines() if not line.startswith("k-long"))
    assert shown.count("…") >= len(keys)  # of the text
    for key in keys:
        terminal("forget", key)
    _, shown = terminal("list", "--trash", "--no-color", columns=columns)
    assert all(key in shown for key in keys)


@pytest.mark.parametrize("columns", [0, 60, 120])
def test_the_reason_of_a_briefing_is_never_cut(terminal, holdfast, home, columns):
    with Memory(home, project="demo", origin="user") as memory:
        memory.store("use tabs", key="web-note", origin="web")
    call = ("brief", "--explain", "--no-color")
    shown = terminal(*call, columns=columns)[1] if columns else holdfast(*call).out
    assert "in quarantine: it came from web and was not approved yet (`holdfast review`)" in " ".join(shown.split())
    assert not columns or max(map(len, shown.splitlines())) <= columns


def test_store_from_a_terminal_says_how_to_end_the_input(terminal, home):
    code, shown = terminal("store", "-", "--key", "k", typed="typed by hand\n\x04")
    assert code == 0
    assert "Press Ctrl-D on an empty line to end it" in shown
    with Memory(home, project="demo") as memory:
        assert memory.get("k").text == "typed by hand"


def test_a_long_hit_is_cut_on_a_terminal(terminal, home):
    with Memory(home, project="demo") as memory:
        memory.store("\n".join(f"needle {number}" for number in range(100)), key="k")
    _, shown = terminal("recall", "needle", "--mode", "keyword", "--no-color")
    assert "... 88 more lines" in shown and "needle 99" not in shown


def test_get_prints_the_details_of_the_note_on_a_terminal(terminal, filled):
    _, shown = terminal("get", "testing", "--no-color")
    assert shown.startswith("Use pytest, never unittest\nproject:demo feedback #ci-cd ")


@pytest.mark.promise("B3")
def test_stored_text_cannot_control_the_terminal(terminal, home):
    with Memory(home, project="demo") as memory:
        memory.store(f"red {ESC}[31m title {ESC}]0;x\x07 csi \x9b2J back \b\r bidi \u202e end", key="k", tags="t")
        memory.fact("S", "l", "plain")
    (home / "shelf/projects/demo/files").mkdir(mode=0o700)
    (home / "shelf/projects/demo/files/a.md").write_text(f"red {ESC}[2J")
    for words in (
        ["recall", "red"], ["get", "k"], ["get", "k", "--history"], ["list"], ["search", "red"], ["brief"],
        ["file", "view", "a.md"], ["recall", "red", "--json"], ["get", f"{ESC}[31m"], ["bad\x1bword"],
    ):  # fmt: skip
        _, shown = terminal(*words, "--no-color")
        assert not {ESC, "\x07", "\x9b", "\b", "\u202e"} & set(shown), words
    assert "red ⟦ESC [31m⟧ title" in terminal("get", "k", "--no-color")[1]


def test_crlf_ends_a_line_and_a_lone_carriage_return_is_marked(terminal, home):
    with Memory(home, project="demo") as memory:
        memory.store("first\r\nsecond\r\n" + "word " * 15 + "wide\r\n", key="crlf")
    for words in (["get", "crlf"], ["recall", "second"], ["brief"]):
        _, shown = terminal(*words, "--no-color")
        assert "⟦" not in shown and "hidden" not in shown, words
    assert terminal("get", "crlf", columns=79)[1].startswith("first\nsecond\n" + "word " * 15 + "wide\n")
    with Memory(home, project="demo") as memory:
        memory.store("first\r\nshown\rhidden\r", key="lone")
    assert "first\nshown⟦U+000D⟧hidden⟦U+000D⟧\n" in terminal("get", "lone")[1]


def test_carriage_returns_are_marked_in_lines_with_colours():
    from holdfast.cli.output import _mark_hidden_styled

    assert _mark_hidden_styled(f"evil\r{ESC}[2m good{ESC}[0m") == f"evil⟦U+000D⟧{ESC}[2m good{ESC}[0m"
    assert _mark_hidden_styled(f"{ESC}[2mevil\r{ESC}[0m good") == f"{ESC}[2mevil⟦U+000D⟧{ESC}[0m good"


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, False), ("n\n", 3, True), ("\n", 3, True)])
def test_purge_asks_at_a_terminal(terminal, filled, home, typed, code, left):
    answered, shown = terminal("purge", "testing", typed=typed)
    assert "Permanently delete 'testing' with its whole history? [y/N]" in shown
    assert answered == code
    assert (home / "shelf/projects/demo/notes/testing.md").exists() == left


def test_clear_asks_at_a_terminal(terminal, filled, home):
    assert terminal("clear", "--scope", "project", typed="yes\n")[0] == 0
    assert not list((home / "shelf/projects/demo/notes").iterdir())


def test_reindex_draws_a_progress_bar(home, tmp_path, monkeypatch):
    from holdfast.cli import progress

    shown = []
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_REDRAW_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", _FakeStderr(shown))
    with Memory(home, project="demo") as memory:
        memory.store_many([{"text": f"note {number}"} for number in range(30)])
    with Memory(home, project="demo", progress=progress.ProgressBar()) as memory:
        memory.reindex()
    drawn = "".join(shown)
    assert "█" in drawn and "of 30" in drawn
    assert drawn.endswith(f"\r{ESC}[K")


def test_progress_is_plain_lines_without_a_terminal(monkeypatch):
    from holdfast.cli import progress

    shown = []
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", _FakeStderr(shown, terminal=False))
    bar = progress.ProgressBar()
    bar.start("indexing", 2)
    bar.step()
    bar.end()
    assert "".join(shown) == "indexing: 1 of 2\n"


class _FakeStderr:
    """A stderr that collects what is written to it."""

    def __init__(self, shown, terminal=True):
        self._shown = shown
        self._terminal = terminal

    def isatty(self):
        return self._terminal

    def write(self, text):
        self._shown.append(text)

    def flush(self):
        pass


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ☕ 日本\n\ttab", "plain ☕ 日本\n\ttab"),
        ("\x1b[0m\x07\x7f\r", "⟦ESC [0m⟧⟦U+0007⟧⟦U+007F⟧⟦U+000D⟧"),
        ("one\r\ntwo\rthree\r\rfour\r", "one\r\ntwo⟦U+000D⟧three⟦U+000D⟧⟦U+000D⟧four⟦U+000D⟧"),
        ("\x9b \u202e \u2028", "⟦U+009B⟧ ⟦U+202E⟧ ⟦U+2028⟧"),
        ("caf\udce9", "caf⟦byte E9⟧"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
    ],
)
def test_hidden_and_control_characters_are_marked(text, shown):
    assert mark_hidden(text) == shown


def test_wrapping_and_truncating_count_cells_not_characters():
    assert wrap_line("日本 日本 日本", 9) == ["日本 日本", "日本"]
    assert truncate("日本日本", 5) == "日本…"
    assert wrap_line("  indented words here", 12) == ["  indented", "words here"]


@pytest.mark.promise("S2")
@pytest.mark.parametrize("more", [(), ("--history",)])
def test_get_marks_a_secret_at_a_terminal(terminal, home, more):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with Memory(home, project="demo", origin="user") as memory:
        memory.store(f"use {token}", key="k", allow_secret="a test account")
    code, shown = terminal("get", "k", *more, columns=200)
    assert code == 0
    assert "⟦secret: github-pat⟧" in shown
