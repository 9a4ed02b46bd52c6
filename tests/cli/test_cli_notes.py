"""`store`, `recall`, `get` and `list`: answers for people and for programs, and exit codes."""

from __future__ import annotations

import pytest

from holdfast import Memory


@pytest.mark.promise("N4")
def test_store_says_created_then_unchanged_then_updated(holdfast):
    answers = [holdfast("store", text, "--key", "k", "--json") for text in ("one", "one", "two")]
    assert [answer.json["action"] for answer in answers] == ["created", "unchanged", "updated"]
    assert [answer.code for answer in answers] == [0, 0, 0]
    assert answers[2].json["note"]["text"] == "two"


def test_store_prints_the_new_key_and_its_scope(holdfast):
    assert holdfast("store", "ship it on tuesday").out == "created ship-it-on-tuesday in project:demo\n"


def test_store_keeps_every_option(holdfast):
    options = ("--key", "k", "--scope", "global", "--type", "feedback", "--tag", "ci-cd, a", "--tag", "b", "--pin")
    dates = ("--valid-from", "2026-01-02", "--valid-to", "2030-01-01", "--origin", "tool")
    note = holdfast("store", "text", *options, *dates, "--agent", "bob", "--client", "cc", "--json").json["note"]
    assert note["scope"] == {"kind": "global", "id": ""}
    assert (note["type"], note["tags"], note["pinned"]) == ("feedback", ["ci-cd", "a", "b"], True)
    assert (note["valid_from"], note["valid_to"]) == ("2026-01-02T00:00:00Z", "2030-01-01T00:00:00Z")
    assert note["source"] == {
        "origin": "tool", "agent": "bob", "client": "cc", "session": None, "made_from": [], "trust": None
    }  # fmt: skip


@pytest.mark.promise("N13")
def test_a_note_from_the_command_line_has_the_origin_user(holdfast):
    assert holdfast("store", "mine", "--json").json["note"]["source"]["origin"] == "user"


def test_unpin_removes_a_pin_and_contradicts_pin(holdfast):
    holdfast("store", "text", "--key", "k", "--pin")
    assert holdfast("store", "text", "--key", "k", "--unpin", "--json").json["note"]["pinned"] is False
    assert holdfast("store", "text", "--pin", "--unpin").code == 2


def test_store_reads_stdin_without_the_newline_of_the_pipe(holdfast):
    assert holdfast("store", "-", "--key", "k", stdin="naïve ☕ 日本\n".encode()).code == 0
    assert holdfast("get", "k").out == "naïve ☕ 日本\n"
    assert holdfast("store", "naïve ☕ 日本", "--key", "k", "--json").json["action"] == "unchanged"


@pytest.mark.promise("N6")
@pytest.mark.parametrize(
    ("stdin", "error"),
    [(b"", "invalid_text"), (b"\xff\xfe", "invalid_text"), (b"a\0b", "invalid_text"), (b"x" * 70_000, "too_large")],
)
def test_invalid_stdin_is_rejected(holdfast, stdin, error):
    said = holdfast("store", "-", "--json", stdin=stdin)
    assert (said.code, said.json["error"], said.json["exit_code"]) == (3, error, 3)
    assert holdfast("list", "--json").json == []


def test_a_text_that_looks_like_an_option_is_stored(holdfast):
    for text in ("- [ ] milk", "-5 degrees", "--- a rule"):
        assert holdfast("store", text, "--json").json["note"]["text"] == text
    assert holdfast("store", "--key", "k", "--", "--json").out == "created k in project:demo\n"
    assert holdfast("get", "k").out == "--json\n"


@pytest.mark.promise("N7")
def test_recall_prints_text_citation_and_origin(holdfast):
    holdfast("store", "Use pytest, never unittest", "--key", "testing", "--type", "feedback", "--tag", "ci-cd")
    said = holdfast("recall", "pytest", "--mode", "keyword")
    assert said.out.splitlines()[0].startswith("testing  project feedback ")
    assert said.out.splitlines()[0].endswith("#ci-cd by user")
    assert "    Use pytest, never unittest\n    projects/demo/notes/testing.md:" in said.out
    assert (said.code, said.err) == (0, "")


@pytest.mark.promise("N7")
def test_recall_json_has_every_field_and_the_mode_that_ran(holdfast):
    holdfast("store", "Use pytest", "--key", "testing")
    said = holdfast("recall", "pytest", "--json")
    assert said.err == ""
    assert (said.json["mode"], said.json["degraded"]) == ("keyword", False)
    hit = said.json["hits"][0]
    assert set(hit) >= {"scope", "key", "type", "tags", "text", "score", "citation", "valid_from", "valid_to", "source"}


def test_recall_takes_words_without_quotes_and_all_filters(holdfast):
    holdfast("store", "alpha beta", "--key", "a", "--tag", "x", "--type", "user")
    holdfast("store", "alpha beta", "--key", "b", "--tag", "y")
    filters = ("--tag", "x", "--type", "user", "--scope", "project", "--limit", "5", "--sort", "recency")
    said = holdfast("recall", "alpha", "beta", "--mode", "keyword", *filters, "--json")
    assert [hit["key"] for hit in said.json["hits"]] == ["a"]


def test_recall_says_when_its_answer_is_degraded(holdfast):
    holdfast("store", "something")
    assert "no embedder" in holdfast("recall", "something", "--mode", "hybrid").err
    assert holdfast("recall", "something").err == ""


def test_recall_loads_no_model_by_default(program, home):
    with Memory(home, project="demo") as memory:
        memory.store("the harbour opens at six", key="k")
    loud = {"HOLDFAST_EMBEDDER": "static", "PYTHONVERBOSE": "1"}
    cold, warm = program("recall", "harbour", env=loud), program("recall", "harbour", "--mode", "hybrid", env=loud)
    assert "the harbour opens at six" in cold.out and "the harbour opens at six" in warm.out
    assert "import 'numpy'" not in cold.err and "import 'holdfast.embedders" not in cold.err
    assert "import 'numpy'" in warm.err


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ((), "keyword"), (("--explain",), "hybrid"), (("--now", "2026-01-01"), "hybrid"),
        (("--explain", "--mode", "semantic"), "semantic"), (("--explain", "--mode", "keyword"), "keyword"),
    ],
)  # fmt: skip
def test_recall_mode_is_keyword_by_default(holdfast, monkeypatch, words, mode):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    holdfast("store", "the harbour opens at six", "--key", "k")
    answer = holdfast("recall", "harbour", *words, "--json").json
    assert (answer["mode"], [hit["key"] for hit in answer["hits"]]) == (mode, ["k"])


def test_explain_lists_signals_that_add_up_to_the_score(holdfast, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    holdfast("store", "the harbour opens at six", "--key", "k")
    (hit,) = holdfast("recall", "harbour", "opens", "--explain", "--json").json["hits"]
    assert hit["why"]["bmd"][0] > 0
    rows = [line.split() for line in holdfast("recall", "harbour", "opens", "--explain").out.splitlines()[3:]]
    assert rows[0] == ["SIGNAL", "VALUE", "ADDED"]
    assert ["words", "in", "the", "text"] in [row[:4] for row in rows]
    assert rows[-1] == ["score", f"{hit['score']:.4g}"]
    assert sum(float(row[-1]) for row in rows[1:-1]) == pytest.approx(hit["score"], abs=0.005)
    plain = holdfast("recall", "harbour", "--explain", "--mode", "keyword").out.splitlines()
    assert plain[-1].split()[0] == "score"


def test_every_signal_of_the_ranking_has_a_description():
    from holdfast.search.scoring import WEIGHTS
    from holdfast.search.signals import SIGNALS

    assert {name for legs in WEIGHTS.values() for weights in legs.values() for name in weights} <= set(SIGNALS)


def test_recall_without_hits_exits_0(holdfast):
    said = holdfast("recall", "nowhere", "--mode", "keyword")
    assert (said.code, said.out, said.err) == (0, "", "No results.\n")
    assert holdfast("recall", "nowhere", "--json").json["hits"] == []


def test_recall_without_hits_shows_a_person_how_to_search_every_project(holdfast, terminal):
    hint = "Add `--scope all` to search every project."
    assert f"No results. {hint}" in terminal("recall", "nowhere")[1]
    assert hint not in terminal("recall", "nowhere", "--json")[1]
    everywhere = terminal("recall", "nowhere", "--scope", "all")[1]
    assert "No results." in everywhere and hint not in everywhere
    agent = terminal("recall", "nowhere", CLAUDECODE="1")[1]  # an agent may not search every project
    assert "No results." in agent and hint not in agent


@pytest.mark.promise("T1")
def test_recall_and_get_answer_as_of_a_day(holdfast):
    holdfast("store", "We deploy on Fridays", "--key", "k", "--valid-from", "2026-01-01")
    holdfast("store", "We deploy on Tuesdays", "--key", "k", "--valid-from", "2026-03-01")
    assert holdfast("get", "k", "--as-of", "2026-02-01").out == "We deploy on Fridays\n"
    assert "Fridays" in holdfast("recall", "deploy", "--as-of", "2026-02-01", "--mode", "keyword").out
    assert holdfast("get", "k", "--known-at", "2020-01-01").code == 1


def test_get_prints_only_the_text_into_a_pipe(holdfast):
    holdfast("store", "two\nlines \x1b[31m", "--key", "k")
    assert holdfast("get", "k").out == "two\nlines ⟦ESC [31m⟧\n"
    assert holdfast("get", "k", "--json").json["text"] == "two\nlines \x1b[31m"


def test_get_history_shows_every_version_newest_first(holdfast):
    for text in ("one", "two", "three"):
        holdfast("store", text, "--key", "k")
    assert [version["text"] for version in holdfast("get", "k", "--history", "--json").json] == ["three", "two", "one"]
    shown = holdfast("get", "k", "--history").out
    assert shown.index("three") < shown.index("two") < shown.index("one")
    assert " to now" in shown.splitlines()[0]
    assert holdfast("get", "k", "--history", "--as-of", "2026-01-01").code == 2


@pytest.mark.promise("T1")
def test_a_future_version_is_not_shown_as_lasting_until_now(holdfast, clock):
    holdfast("store", "now", "--key", "k", "--valid-from", "2026-01-01")
    holdfast("store", "later", "--key", "k", "--valid-from", "2030-01-01", "--valid-to", "2031-01-01")
    holdfast("store", "at last", "--key", "k", "--valid-from", "2032-01-01")
    heads = [line.partition("  ")[0] for line in holdfast("get", "k", "--history").out.splitlines() if "recorded" in line]
    assert heads == [
        "from 2032-01-01T00:00:00Z",
        "2030-01-01T00:00:00Z to 2031-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z to 2030-01-01T00:00:00Z",
    ]
    holdfast("fact", "Harbour", "state", "open", "--on", "2026-01-01")
    holdfast("fact", "Harbour", "owner", "Ada", "--on", "2030-01-01")
    rows = {line.split()[1]: line.split()[2:-2] for line in holdfast("facts", "--history").out.splitlines()[1:]}
    assert rows == {"state": ["2026-01-01", "now"], "owner": ["2030-01-01"]}


def test_list_is_an_aligned_table(holdfast):
    holdfast("store", "short", "--key", "a", "--tag", "x")
    holdfast("store", "a text\nof two lines", "--key", "much-longer-key", "--scope", "global")
    lines = holdfast("list").out.splitlines()
    assert lines[0].split() == ["KEY", "SCOPE", "TYPE", "UPDATED", "TAGS", "TEXT"]
    assert {line.index(word) for line, word in zip(lines, ("TEXT", "a text of two lines", "short"), strict=True)} == {
        lines[0].index("TEXT")
    }
    assert [note["key"] for note in holdfast("list", "--scope", "global", "--json").json] == ["much-longer-key"]
    assert len(holdfast("list", "--limit", "1", "--json").json) == 1


def test_columns_line_up_for_wide_characters(holdfast):
    holdfast("store", "日本語", "--key", "a", "--tag", "漢字")
    holdfast("store", "plain", "--key", "b", "--tag", "abcd")
    first, second = holdfast("list").out.splitlines()[1:]
    assert first.replace("漢字", "abcd").index("日本語" if "日本語" in first else "plain") == second.replace(
        "漢字", "abcd"
    ).index("plain" if "plain" in second else "日本語")


def test_list_of_an_empty_memory_says_how_to_store_a_note(holdfast):
    said = holdfast("list")
    assert (said.code, said.out) == (0, "")
    assert "holdfast store" in said.err
