"""The command line: what each command answers to people and to programs, and its exit code."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_result import CliResult

from holdfast import Memory, Trouble
from holdfast.cli import interrupts, main
from holdfast.cli.command import EVERYWHERE, EXIT_CODES
from holdfast.cli.command_table import COMMANDS


@pytest.fixture
def holdfast(home, capsys, monkeypatch, tmp_path):
    """The program, in this process, with a home and a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words, stdin=None, project="demo"):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(["--home", str(home), *(["--project", project] if project else []), *words])
        said = capsys.readouterr()
        return CliResult(code, said.out, said.err)

    return run


@pytest.fixture
def program(home, tmp_path):
    """The program in a process of its own."""

    def command(*words):
        return [sys.executable, "-m", "holdfast", "--home", str(home), "--project", "demo", *words]

    def run(*words, stdin=b"", **more):
        more["env"] = {**os.environ, **more.get("env", {})}
        done = subprocess.run(command(*words), input=stdin, capture_output=True, cwd=tmp_path, timeout=60, **more)
        return CliResult(done.returncode, done.stdout.decode(), done.stderr.decode())

    run.command = command
    return run


# --- notes ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N4")
def test_store_says_created_then_unchanged_then_updated(holdfast):
    answers = [holdfast("store", text, "--key", "k", "--json") for text in ("one", "one", "two")]
    assert [answer.json["action"] for answer in answers] == ["created", "unchanged", "updated"]
    assert [answer.code for answer in answers] == [0, 0, 0]
    assert answers[2].json["note"]["text"] == "two"


def test_store_tells_people_the_key_it_made_and_where(holdfast):
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
def test_what_a_person_types_has_the_origin_user(holdfast):
    assert holdfast("store", "mine", "--json").json["note"]["source"]["origin"] == "user"


def test_a_pin_can_be_taken_away_but_not_together_with_one(holdfast):
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
def test_stdin_that_may_not_be_kept_is_refused(holdfast, stdin, error):
    said = holdfast("store", "-", "--json", stdin=stdin)
    assert (said.code, said.json["error"], said.json["exit_code"]) == (3, error, 3)
    assert holdfast("list", "--json").json == []


def test_a_text_that_looks_like_an_option_goes_through(holdfast):
    for text in ("- [ ] milk", "-5 degrees", "--- a rule"):
        assert holdfast("store", text, "--json").json["note"]["text"] == text
    assert holdfast("store", "--key", "k", "--", "--json").out == "created k in project:demo\n"
    assert holdfast("get", "k").out == "--json\n"


@pytest.mark.promise("N7")
def test_recall_answers_people_with_text_place_and_origin(holdfast):
    holdfast("store", "Use pytest, never unittest", "--key", "testing", "--type", "feedback", "--tag", "ci-cd")
    said = holdfast("recall", "pytest", "--mode", "keyword")
    assert said.out.splitlines()[0].startswith("testing  project feedback ")
    assert said.out.splitlines()[0].endswith("#ci-cd by user")
    assert "    Use pytest, never unittest\n    projects/demo/notes/testing.md:" in said.out
    assert (said.code, said.err) == (0, "")


@pytest.mark.promise("N7")
def test_recall_answers_programs_with_every_field_and_the_mode_that_ran(holdfast):
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


def test_recall_says_when_it_did_less_than_was_asked(holdfast):
    holdfast("store", "something")
    assert "no embedder" in holdfast("recall", "something", "--mode", "hybrid").err
    assert holdfast("recall", "something").err == ""


def test_a_cold_recall_loads_no_model_unless_it_is_asked_to(program, home):
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
def test_recall_looks_by_words_unless_more_is_wanted(holdfast, monkeypatch, words, mode):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    holdfast("store", "the harbour opens at six", "--key", "k")
    answer = holdfast("recall", "harbour", *words, "--json").json
    assert (answer["mode"], [hit["key"] for hit in answer["hits"]]) == (mode, ["k"])


def test_explain_draws_each_signal_and_they_add_up_to_the_score(holdfast, monkeypatch):
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


def test_every_signal_of_the_ranking_has_words_for_people():
    from holdfast.cli.explain import MEANS
    from holdfast.search.scoring import WEIGHTS

    assert {name for legs in WEIGHTS.values() for weights in legs.values() for name in weights} <= set(MEANS)


def test_recall_that_finds_nothing_is_an_answer(holdfast):
    said = holdfast("recall", "nowhere", "--mode", "keyword")
    assert (said.code, said.out, said.err) == (0, "", "nothing found\n")
    assert holdfast("recall", "nowhere", "--json").json["hits"] == []


@pytest.mark.promise("T1")
def test_recall_and_get_answer_as_of_a_day(holdfast):
    holdfast("store", "We deploy on Fridays", "--key", "k", "--valid-from", "2026-01-01")
    holdfast("store", "We deploy on Tuesdays", "--key", "k", "--valid-from", "2026-03-01")
    assert holdfast("get", "k", "--as-of", "2026-02-01").out == "We deploy on Fridays\n"
    assert "Fridays" in holdfast("recall", "deploy", "--as-of", "2026-02-01", "--mode", "keyword").out
    assert holdfast("get", "k", "--known-at", "2020-01-01").code == 1


def test_get_prints_nothing_but_the_text_down_a_pipe(holdfast):
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
def test_what_is_only_going_to_be_true_is_not_said_to_last_until_now(holdfast, clock):
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


def test_an_empty_memory_says_how_to_begin(holdfast):
    said = holdfast("list")
    assert (said.code, said.out) == (0, "")
    assert "holdfast store" in said.err


# --- edit and import --------------------------------------------------------------------------------------------------


def test_edit_stores_what_the_editor_left(holdfast, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("EDITOR", "sed -i s/Fridays/Tuesdays/")
    holdfast("store", "We deploy on Fridays", "--key", "k", "--type", "feedback", "--tag", "x")
    assert holdfast("edit", "k").out == "updated k in project:demo\n"
    note = holdfast("get", "k", "--json").json
    assert (note["text"], note["type"], note["tags"]) == ("We deploy on Tuesdays", "feedback", ["x"])
    assert holdfast("edit", "k", "--json").json["action"] == "unchanged"


def test_an_edit_that_lost_a_race_keeps_your_text_in_a_file(holdfast, home, monkeypatch, tmp_path):
    script = tmp_path / "editor.py"
    script.write_text(
        "import sys\nfrom holdfast import Memory\n"
        f"with Memory({str(home)!r}, project='demo') as memory:\n    memory.store('theirs', key='k')\n"
        "open(sys.argv[1], 'w').write('mine')\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    holdfast("store", "before", "--key", "k")
    said = holdfast("edit", "k", "--json")
    assert (said.code, said.json["error"]) == (4, "conflict")
    kept = said.json["fix"].partition("kept in ")[2].partition(".md")[0] + ".md"
    assert Path(kept).read_text() == "mine"
    assert os.stat(kept).st_mode & 0o777 == 0o600
    Path(kept).unlink()
    assert holdfast("get", "k").out == "theirs\n"


@pytest.mark.parametrize("given", [b"a\r\nb\r\n", b"\xc3\xa9 a\r\n\r\nb\r\n", b"a\r\nb\n", b"a\r\n\r\n"])
def test_lines_that_end_as_on_windows_come_back_byte_for_byte(program, given):
    assert program("store", "-", "--key", "k", stdin=given).code == 0
    assert program("file", "create", "a.md", "-", stdin=given).code == 0
    text = given.removesuffix(b"\r\n" if given.endswith(b"\r\n") else b"\n")
    done = subprocess.run(program.command("get", "k"), capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (text.removesuffix(b"\n") + b"\n", b"")
    assert subprocess.run(program.command("file", "view", "a.md"), capture_output=True, timeout=60).stdout == given
    note = program("get", "k", "--json").json
    assert note["text"].encode() == text and note["hidden"] == []
    hit = subprocess.run(program.command("recall", "a"), capture_output=True, timeout=60).stdout
    assert "⟦".encode() not in hit and b"hidden" not in hit


def test_one_line_from_a_pipe_that_ends_as_on_windows_is_stored_without_its_end(program):
    program("store", "-", "--key", "k", stdin=b"a\r\n")
    assert program("get", "k", "--json").json["text"] == "a"


def test_a_lone_carriage_return_is_a_mark_down_a_pipe_too(program):
    program("store", "-", "--key", "k", stdin=b"all is well\rnothing\r\nb\r\r\n")
    assert program("get", "k").out == "all is well⟦U+000D⟧nothing\r\nb⟦U+000D⟧\n"
    assert program("get", "k", "--json").json["hidden"] == ["control"]


@pytest.mark.parametrize(("editor", "code"), [("false", 3), ("no-such-editor-anywhere", 2), ("truncate -s 0", 3), ("'", 2)])
def test_an_edit_that_fails_changes_nothing_and_leaves_no_file(holdfast, monkeypatch, tmp_path, editor, code):
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(drafts))
    monkeypatch.setenv("EDITOR", editor)
    holdfast("store", "before", "--key", "k")
    assert holdfast("edit", "k").code == code
    assert holdfast("get", "k").out == "before\n"
    assert list(drafts.iterdir()) == []


def test_edit_of_nothing_is_not_found(holdfast):
    assert holdfast("edit", "nothing").code == 1


def test_import_keeps_every_line(holdfast, tmp_path):
    lines = [{"text": "one", "key": "a", "tags": ["x"]}, {"text": "two", "type": "user", "valid_from": "2026-01-01"}]
    file = tmp_path / "notes.jsonl"
    file.write_text("\n\n".join(json.dumps(line) for line in lines) + "\n")
    assert holdfast("import", str(file)).out == "imported 2 notes: 2 created, 0 updated, 0 unchanged\n"
    again = holdfast("import", "-", "--json", stdin=file.read_bytes())
    assert again.json["unchanged"] == 2
    assert again.json["notes"][0] == {"action": "unchanged", "key": "a", "scope": "project"}
    assert holdfast("get", "a", "--json").json["source"]["origin"] == "import"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (b"not json", 3, "line 2"),
        (b'["a list"]', 3, "line 2"),
        (b'{"text": "x", "colour": "red"}', 2, "line 2: "),
        (b'{"text": ""}', 3, "line 2: "),
        (b"\xff", 3, "line 2"),
    ],
)
def test_import_is_all_or_the_bad_line_is_named(holdfast, line, code, said):
    answer = holdfast("import", "-", stdin=b'{"text": "good"}\n' + line + b"\n")
    assert (answer.code, said in answer.err) == (code, True)
    assert holdfast("list", "--json").json == []


def test_import_of_a_folder_or_of_what_cannot_be_read_says_what_to_give(holdfast, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "loop", "/dev/null/x", "x" * 300):
        said = holdfast("import", str(path))
        assert (said.code, said.out) == (2, "")
        assert f"cannot read {path}: " in said.err and "one JSON object a line" in said.err


@pytest.mark.parametrize("words", [("store", "-"), ("file", "create", "a.md", "-"), ("import", "-")])
def test_more_on_stdin_than_may_be_kept_is_refused_at_once_and_never_held(program, home, words):
    """The pipe never ends, and there is memory for a tenth of what a full read of a large file would take."""
    limited = ["sh", "-c", 'ulimit -v 400000; tr "\\0" x </dev/zero | "$@"', "sh", *program.command(*words, "--json")]
    done = subprocess.run(limited, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    said = json.loads(done.stdout)
    assert (done.returncode, said["error"]) == (3, "too_large")
    assert "has more" in said["message"]
    assert not list(home.rglob("*.md"))


def test_import_of_a_missing_file_is_not_found(holdfast):
    assert holdfast("import", "nowhere.jsonl").code == 1


# --- facts ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("T3")
def test_a_fact_retires_the_one_before_it(holdfast):
    holdfast("fact", "Telegram", "status", "disabled", "--on", "2026-03-20")
    said = holdfast("fact", "Telegram", "status", "enabled", "--on", "2026-03-27")
    assert said.out.splitlines() == [
        "updated Telegram: status: enabled (since 2026-03-27) in project:demo",
        "  retired status: disabled (since 2026-03-20)",
    ]
    assert [fact["value"] for fact in holdfast("facts", "Telegram", "--json").json] == ["enabled"]
    assert [fact["value"] for fact in holdfast("facts", "--as-of", "2026-03-22", "--json").json] == ["disabled"]
    assert len(holdfast("facts", "Telegram", "--label", "status", "--history", "--json").json) == 2


def test_many_facts_stand_beside_each_other(holdfast):
    holdfast("fact", "Bob", "likes", "tea")
    holdfast("fact", "Bob", "likes", "cake", "--many", "--scope", "project", "--origin", "agent")
    table = holdfast("facts", "Bob").out.splitlines()
    assert table[0].split() == ["SUBJECT", "LABEL", "FROM", "TO", "SCOPE", "VALUE"]
    assert [line.split()[-1] for line in table[1:]] == ["tea", "cake"]


def test_no_facts_is_an_answer(holdfast):
    said = holdfast("facts")
    assert (said.code, said.out, said.err) == (0, "", "nothing is stated\n")


FACTS = (
    ("Telegram", "owner", "[[Bob]]", "--on", "2026-01-05"), ("Telegram", "owner", "[[Ada]]", "--on", "2026-03-27"),
    ("Ada Lovelace", "alias", "Ada", "--on", "2026-01-01"), ("Ada Lovelace", "team", "[[Platform]]", "--on", "2026-02-01"),
)  # fmt: skip


@pytest.fixture
def linked(holdfast):
    for words in FACTS:
        holdfast("fact", *words)
    return holdfast


@pytest.mark.promise("T4")
def test_graph_draws_what_is_linked_now_or_as_of_a_day(linked):
    assert linked("graph", "telegram", "--depth", "2").out.splitlines() == [
        "Telegram",
        "└── owner → Ada Lovelace (also Ada) (since 2026-03-27)",
        "    └── team → Platform (since 2026-02-01)",
    ]
    before = linked("graph", "Telegram", "--as-of", "2026-02-01").out.splitlines()
    assert before == ["Telegram", "└── owner → Bob (2026-01-05 to 2026-03-27)"]
    around = linked("graph", "Ada", "--json").json["entities"]
    assert [one["name"] for one in around] == ["Ada Lovelace", "Platform", "Telegram"]
    assert linked("graph", "Ada", "--format", "mermaid").out.startswith("graph LR\n")
    assert linked("graph", "Ada", "--format", "dot").out.startswith("digraph facts {\n")


@pytest.mark.promise("T4")
def test_graph_finds_the_way_between_two(linked):
    assert linked("graph", "Platform", "--to", "telegram").out.splitlines() == [
        "Platform", "└── team ← Ada Lovelace (since 2026-02-01)", "    └── owner ← Telegram (since 2026-03-27)"
    ]  # fmt: skip
    assert [edge["label"] for edge in linked("graph", "Ada", "--to", "telegram", "--json").json] == ["owner"]
    said = linked("graph", "Platform", "--to", "Bob")
    assert (said.code, said.out, said.err) == (0, "", "no way leads from Platform to Bob\n")
    assert linked("graph", "Platform", "--to", "Bob", "--json").json == []


def test_graph_of_what_nobody_mentions_is_an_answer_and_a_wrong_word_is_not(linked):
    said = linked("graph", "Zeppelin")
    assert (said.code, said.out, said.err) == (0, "", "nothing is known about Zeppelin\n")
    assert linked("graph", "Zeppelin", "--json").json["entities"] == []
    for words in (("--format", "svg"), ("--depth", "2", "--to", "Ada"), ("--format", "dot", "--json"), ("--depth", "-1")):
        assert linked("graph", "Telegram", *words).code == 2


# --- history ----------------------------------------------------------------------------------------------------------

TURNS = [
    {"role": "user", "text": "My dog Biscuit hates the vacuum", "time": "2026-03-01T10:00:00Z", "id": "t1"},
    {"role": "assistant", "text": "Leave the vacuum out for a while", "time": "2026-03-01T10:00:10Z", "id": "t2"},
    {"speaker": "Ada", "text": "We moved to Lisbon", "time": "2026-03-01T10:01:00Z", "id": "t3"},
]  # fmt: skip
LINES = "".join(json.dumps(turn) + "\n" for turn in TURNS).encode()


@pytest.mark.promise("H1")
def test_log_keeps_each_turn_once(holdfast, tmp_path):
    (tmp_path / "turns.jsonl").write_bytes(LINES)
    said = holdfast("log", "turns.jsonl", "--session", "s1", "--client", "cc")
    assert said.out == "3 turns added, 0 known already in projects/demo/transcripts/cc/s1.jsonl\n"
    again = holdfast("log", "-", "--session", "s1", "--client", "cc", "--json", stdin=LINES)
    assert (again.json["added"], again.json["known"]) == (0, 3)
    assert holdfast("log", "-", stdin=LINES).code == 3
    odd = holdfast("log", "-", "--session", "a name: with spaces", "--json", stdin=LINES).json
    assert (odd["session"], odd["added"]) == ("a name: with spaces", 3)


@pytest.mark.promise("H1")
def test_a_line_that_is_no_turn_is_named_and_says_what_is_kept(holdfast):
    for line, code in ((b"not json", 3), (b"[]", 3), (b'{"role": "moon", "text": "x"}', 2), (b"x" * 7_000_000, 3)):
        said = holdfast("log", "-", "--session", "s1", stdin=LINES + line + b"\n")
        assert (said.code, said.out) == (code, "")
        assert " 4" in said.err and "none is ever added twice" in said.err
    assert holdfast("log", "nowhere.jsonl", "--session", "s1").code == 1


@pytest.mark.promise("H1")
def test_import_history_takes_files_and_folders(holdfast, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "one.jsonl").write_bytes(LINES)
    (tmp_path / "two.jsonl").write_bytes(LINES + b"{broken\n")
    said = holdfast("import-history", "some", "two.jsonl")
    assert said.out.splitlines()[0].split() == ["SESSION", "CLIENT", "ADDED", "KNOWN", "PATH"]
    assert said.out.splitlines()[-1] == "6 turns added, 0 known already in 2 sessions"
    assert said.err == "1 line could not be read\n"
    again = holdfast("import-history", "two.jsonl", "--client", "chat", "--json").json
    assert [(one["session"], one["client"], one["added"], one["known"]) for one in again] == [("two", "chat", 0, 3)]
    (tmp_path / "empty").mkdir()
    nothing = holdfast("import-history", "empty")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no transcript found\n")
    assert holdfast("import-history", "nowhere").code == 1


@pytest.mark.promise("H2")
def test_recall_shows_turns_by_session_and_only_them_if_asked(holdfast):
    holdfast("log", "-", "--session", "s1", "--client", "cc", stdin=LINES)
    holdfast("store", "The vacuum is in the cellar", "--key", "vacuum")
    said = holdfast("recall", "vacuum", "--kind", "turn")
    assert said.out.splitlines() == [
        "session s1  project",
        "  user  2026-03-01T10:00:00Z",
        "    My dog Biscuit hates the vacuum",
        "    projects/demo/transcripts/cc/s1.jsonl:2-2",
        "  assistant  2026-03-01T10:00:10Z",
        "    Leave the vacuum out for a while",
        "    projects/demo/transcripts/cc/s1.jsonl:3-3",
    ]
    assert {hit["kind"] for hit in holdfast("recall", "vacuum", "--json").json["hits"]} == {"note", "turn"}
    assert holdfast("recall", "vacuum").out.count("session s1") == 1
    assert [hit["key"] for hit in holdfast("recall", "vacuum", "--kind", "note", "--json").json["hits"]] == ["vacuum"]
    assert holdfast("recall", "vacuum", "--kind", "moon").code == 2


@pytest.mark.promise("H2")
def test_expand_reads_a_conversation_around_a_turn(holdfast):
    holdfast("log", "-", "--session", "s1", "--client", "cc", stdin=LINES)
    said = holdfast("expand", "t2", "--before", "0", "--after", "1")
    assert said.out.splitlines() == [
        "session s1  projects/demo/transcripts/cc/s1.jsonl:3-4",
        "",
        "> assistant  2026-03-01T10:00:10Z",
        "    Leave the vacuum out for a while",
        "",
        "  Ada  2026-03-01T10:01:00Z",
        "    We moved to Lisbon",
    ]
    cited = holdfast("expand", "projects/demo/transcripts/cc/s1.jsonl:3-3")
    assert cited.out.count("> ") == 1 and "Biscuit" in cited.out
    assert [turn["id"] for turn in holdfast("expand", "t2", "--session", "s1", "--json").json] == ["t1", "t2", "t3"]
    assert holdfast("expand", "nothing").code == 1
    assert holdfast("expand", "t2", "--before", "-1").code == 2


# --- vectors ----------------------------------------------------------------------------------------------------------


def test_embed_says_what_is_left(holdfast, monkeypatch):
    holdfast("store", "the harbour opens at six", "--key", "k")
    assert "no embedder is set" in holdfast("embed").err
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    assert "embedder  static, 1 passage without vectors yet\n" in holdfast("status").out
    assert holdfast("embed").out == "every passage has its vectors\n"
    assert holdfast("embed", "--json").json == {"embedder": "static", "left": {"static": 0}, "failed": {}}
    assert "embedder  static\n" in holdfast("status").out


def test_embed_with_a_model_that_cannot_be_used_says_so(holdfast, monkeypatch):
    from holdfast.embedders import minilm

    def broken(*_):
        raise Trouble("the model is gone", "Put it back")

    monkeypatch.setattr(minilm, "_session", broken)
    monkeypatch.setattr(minilm.MiniLM, "passages", lambda self, texts: broken())
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static,minilm")
    holdfast("store", "the harbour opens at six", "--key", "k")
    said = holdfast("embed")
    assert said.code == 1
    assert (said.out, said.err) == ("", "no vectors of the sentence model: the model is gone\n")


# --- forgetting -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N10")
def test_forget_restore_and_the_trash_between(holdfast):
    holdfast("store", "text", "--key", "k")
    said = holdfast("forget", "k")
    assert (said.code, said.out) == (0, "forgotten k in project:demo\n")
    assert "holdfast restore k" in said.err
    assert holdfast("get", "k").code == 1
    assert [one["key"] for one in holdfast("list", "--trash", "--json").json] == ["k"]
    assert holdfast("list", "--trash").out.splitlines()[1].split()[:3] == ["k", "project", "trash"]
    assert holdfast("restore", "k").out == "restored k in project:demo\n"
    assert holdfast("list", "--trash").err == "nothing to restore\n"
    assert holdfast("restore", "k").code == 1


@pytest.mark.promise("N10")
def test_forgetting_what_is_not_there_says_so(holdfast):
    said = holdfast("forget", "nothing")
    assert (said.code, said.out) == (1, "there is no note nothing; nothing was forgotten\n")
    assert holdfast("forget", "nothing", "--json").json["deleted"] is False
    assert holdfast("purge", "nothing", "--yes", "--json").json["deleted"] is False
    assert holdfast("purge", "nothing", "--yes").code == 1


@pytest.mark.promise("N10")
def test_purge_wants_to_be_sure_and_gives_a_receipt(holdfast):
    holdfast("store", "a secret of some length", "--key", "k")
    refused = holdfast("purge", "k", "--json")
    assert (refused.code, refused.json["fix"]) == (3, "Say --yes")
    assert holdfast("get", "k").code == 0
    said = holdfast("purge", "k", "--yes")
    assert said.out.startswith("purged the note k in project:demo at ")
    assert "projects/demo/notes/k.md" in said.out and "checked" in said.out and "out of reach" in said.out
    assert holdfast("get", "k").code == 1


@pytest.mark.promise("N10")
def test_what_was_purged_is_refused_with_its_receipt_until_a_person_takes_it_back(holdfast):
    holdfast("store", "the harbour code is forty-two", "--key", "k")
    receipt = holdfast("purge", "k", "--yes", "--json").json
    refused = holdfast("store", "the harbour code is forty-two", "--json")
    assert (refused.code, refused.json["error"]) == (3, "purged")
    assert receipt["id"] in refused.json["message"] and "forty" not in refused.out
    listed = holdfast("receipts").out
    assert receipt["id"] in listed and "done" in listed
    assert holdfast("receipts", receipt["id"], "--json").json == receipt
    assert holdfast("receipts", "nothing").code == 1
    assert holdfast("store", "the harbour code is forty-two", "--again").code == 0
    assert "taken back" in holdfast("receipts", receipt["id"]).out


@pytest.mark.promise("N10")
def test_a_text_to_purge_is_read_from_stdin_and_from_nowhere_else(holdfast):
    holdfast("store", "the harbour code is zanzibarqvx7", "--key", "k")
    assert (holdfast("purge", "--text", "zanzibarqvx7", "--yes").code, holdfast("purge", "--yes").code) == (2, 2)
    assert holdfast("purge", "--text", "-", stdin=b"zanzibarqvx7\n").code == 3
    said = holdfast("purge", "--text", "-", "--yes", stdin=b"zanzibarqvx7\n")
    assert said.code == 0 and "zanzibar" not in said.out + said.err
    assert holdfast("get", "k").code == 1


@pytest.mark.promise("N10", "H1")
def test_a_transcript_is_forgotten_restored_and_purged_by_its_session(holdfast):
    holdfast("log", "-", "--session", "s", stdin=b'{"role": "user", "text": "said once and for all"}\n')
    assert holdfast("forget", "--session", "s").code == 0
    assert holdfast("forget", "--session", "s").code == 1
    assert holdfast("restore", "--session", "s", "--json").json["added"] == 1
    assert holdfast("purge", "--session", "s").code == 3
    assert holdfast("purge", "--session", "s", "--yes").code == 0
    again = holdfast("log", "-", "--session", "s", "--json", stdin=b'{"role": "user", "text": "said once and for all"}\n')
    assert (again.json["added"], again.json["purged"]) == (0, 1)


@pytest.mark.promise("N10")
def test_a_purge_that_must_wait_says_so_and_exits_with_4(holdfast, home):
    import apsw

    holdfast("store", "the harbour code is forty-two", "--key", "k")
    holdfast("config", "lock.seconds", "1")
    reader = apsw.Connection(str(home / "index.db"))
    reader.execute("BEGIN").fetchall()
    reader.execute("SELECT count(*) FROM passage").fetchall()
    said = holdfast("purge", "k", "--yes")
    assert said.code == 4 and said.out.startswith("not yet purged") and "left to do" in said.out
    doctor = holdfast("doctor", "--json")
    assert (doctor.code, [one["code"] for one in doctor.json["problems"]]) == (1, ["purge"])
    reader.close()
    assert holdfast("doctor").code == 0


def test_purge_asks_only_where_there_is_something_to_be_sure_about(holdfast):
    assert holdfast("purge", "Not A Key", "--json").json["error"] == "invalid_key"
    assert holdfast("purge", "k", "--scope", "session", "--json").json["error"] == "no_scope"
    assert holdfast("purge", "k", "--scope", "moon", "--json").json["error"] == "usage"
    said = holdfast("purge", "k")
    assert (said.code, said.out) == (1, "there is no note k; nothing was purged\n")
    holdfast("store", "text", "--key", "k")
    holdfast("forget", "k")
    assert (holdfast("purge", "k").code, holdfast("restore", "k").code, holdfast("purge", "k").code) == (3, 0, 3)


def test_clear_looks_at_the_scope_before_it_asks(holdfast):
    assert holdfast("clear", "--scope", "session", "--json").json["error"] == "no_scope"
    assert holdfast("clear", "--scope", "moon", "--json").json["error"] == "usage"
    holdfast("store", "one")
    assert "(1)?" in holdfast("clear", "--scope", "project").err


@pytest.mark.promise("N3")
@pytest.mark.parametrize("words", [("get",), ("get", "--history"), ("forget",), ("purge",), ("edit",), ("path",)])
def test_a_file_whose_name_is_no_key_is_refused_with_the_way_to_its_new_name(holdfast, home, words):
    holdfast("init")
    notes = home / "shelf/global/notes"
    notes.mkdir(parents=True)
    (notes / "My Note.md").write_text("by hand")
    shown = holdfast("list", "--json").json[0]["key"]
    said = holdfast(words[0], shown, *words[1:])
    assert (said.code, "`holdfast doctor` prints the `mv`" in said.err) == (3, True)
    assert holdfast("store", "text", "--key", shown).err.endswith("or leave it out and one is made\n")
    (problem,) = holdfast("doctor", "--json").json["problems"]
    subprocess.run(problem["fix"], shell=True, check=True)
    (note,) = holdfast("list", "--json").json
    assert holdfast("get", note["key"]).out == "by hand\n"


@pytest.mark.promise("N10")
def test_what_was_cleared_under_a_name_that_is_no_key_comes_back_under_one_that_is(holdfast, home):
    holdfast("init")
    notes = home / "shelf/global/notes"
    notes.mkdir(parents=True)
    (notes / "My Note.md").write_text("by hand")
    holdfast("clear", "--scope", "global", "--yes")
    (binned,) = holdfast("list", "--trash", "--json").json
    said = holdfast("restore", binned["key"])
    assert (said.code, "--as KEY" in said.err) == (3, True)
    assert holdfast("restore", binned["key"], "--as", "my-note").code == 0
    assert holdfast("get", "my-note").out == "by hand\n"


def test_doctor_prints_a_fix_with_every_space_in_it(holdfast, home):
    holdfast("store", "one", "--key", "a")
    odd = home / "shelf/projects/demo/notes/two  spaces.md"
    odd.write_text("text")
    assert f"fix: mv -n '{odd}' " in holdfast("doctor").out


def test_clear_needs_a_scope_and_a_yes(holdfast):
    holdfast("store", "one")
    holdfast("store", "two")
    assert holdfast("clear", "--yes").code == 2
    assert holdfast("clear", "--scope", "project").code == 3
    said = holdfast("clear", "--scope", "project", "--yes", "--json")
    assert said.json == {"scope": "project", "forgotten": 2, "beyond_reach": []}
    assert holdfast("clear", "--scope", "project", "--yes").out == "forgot 0 notes of the scope project\n"
    assert len(holdfast("list", "--trash", "--json").json) == 2


@pytest.mark.promise("N11")
def test_retain_shows_and_archives_what_expired(holdfast, clock):
    holdfast("store", "old", "--key", "k")
    clock.forward(days=91)
    dry = holdfast("retain", "--dry-run")
    assert dry.out.splitlines()[-1] == "1 note would be archived: not updated or used for 90 days (project)"
    assert holdfast("retain", "--json").json["archived"][0]["key"] == "k"
    assert holdfast("list").out == ""
    assert holdfast("restore", "k").code == 0


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("F3")
def test_the_six_verbs_of_the_file_tree(holdfast):
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


@pytest.mark.parametrize(
    "given", [b"# Plan\n", b"no end", b"two\n\n", b"a\r\nb", b"\r\n", b"  \n\t", b"", b"\xef\xbb\xbfmark\n"]
)
def test_a_file_from_stdin_is_kept_byte_for_byte(holdfast, home, given):
    assert holdfast("file", "create", "a.md", "-", stdin=given).code == 0
    assert (home / "shelf/projects/demo/files/a.md").read_bytes() == given
    assert holdfast("file", "create", "b.md", "-", stdin=b"\xff").code == 3


def test_a_file_that_was_there_is_updated(holdfast):
    assert holdfast("file", "create", "a.md", "one").out == "created a.md\n"
    assert holdfast("file", "create", "a.md", "two").out == "updated a.md\n"
    assert holdfast("file", "create", "a.md", "two", "--json").json == {"action": "updated", "path": "a.md"}


@pytest.mark.promise("F3")
@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a/../../b", "%2e%2e/a", ""])
def test_a_path_that_leaves_the_tree_is_refused(holdfast, path):
    assert holdfast("file", "create", path, "text", "--json").json["error"] == "invalid_path"


@pytest.mark.promise("F2")
def test_search_shows_where_and_read_reads_it(holdfast):
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
    assert holdfast("search", "nowhere").err == "nothing found\n"
    assert "no embedder is set" in holdfast("search", "pytest", "--mode", "hybrid").err


def test_search_shows_at_most_three_weak_matches_and_says_so(holdfast):
    for number in range(5):
        holdfast("store", f"A good release {number} is boring: make it on Tuesday.", "--key", f"releases-{number}")
    said = holdfast("search", "how do I make a good espresso")
    assert said.out.count("weak match") == 3 and "No strong match" in said.err and "2 more weak matches" in said.err
    assert all(one["weak"] for one in holdfast("search", "how do I make a good espresso", "--json").json["results"])


@pytest.mark.promise("F2")
def test_search_looks_by_words_unless_more_is_wanted(holdfast, monkeypatch):
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
def test_reading_a_missing_file_gives_empty_text_with_its_path_and_exit_1(holdfast, path):
    said = holdfast("read", path, "--json")
    assert (said.code, said.json["text"], said.json["exists"]) == (1, "", False)
    assert said.json["path"] == path.partition(":")[0]
    told = holdfast("read", path)
    assert (told.code, told.out) == (1, "")
    assert "there is no file" in told.err and "holdfast search" in told.err


@pytest.mark.promise("F2")
def test_reading_nothing_of_a_file_that_is_there_is_an_answer(holdfast):
    holdfast("file", "create", "empty.md", "")
    holdfast("file", "create", "short.md", "one line")
    for path in ("empty.md", "short.md:7-9"):
        said = holdfast("read", path)
        assert (said.code, said.out, "no text" in said.err) == (0, "", True)
        assert holdfast("read", path, "--json").json["exists"] is True


@pytest.mark.parametrize("words", [("view", "a.md", "--lines", "x"), ("insert", "a.md", "one", "text")])
def test_lines_are_numbers(holdfast, words):
    assert holdfast("file", *words).code == 2


# --- care -------------------------------------------------------------------------------------------------------------


def test_brief_prints_the_block_as_it_is(holdfast, home):
    holdfast("store", "Use pytest", "--key", "testing")
    with Memory(home, project="demo") as memory:
        told = memory.brief().text
    assert holdfast("brief").out == told
    assert holdfast("brief", "--json").json["shown"] == ["project/testing"]


def test_an_empty_brief_prints_nothing(holdfast):
    said = holdfast("brief")
    assert (said.code, said.out) == (0, "")


@pytest.mark.promise("D2")
def test_status_says_where_memory_lives_and_how_much_there_is(holdfast, home):
    holdfast("store", "one", "--key", "a")
    said = holdfast("status")
    assert f"home      {home}\n" in said.out and "project   demo\n" in said.out
    assert "projects/demo" in said.out and "project/a" in said.out
    scopes = {one["scope"]: one["notes"] for one in holdfast("status", "--json").json["scopes"]}
    assert scopes["projects/demo"] == 1


@pytest.mark.promise("D1")
def test_doctor_is_content_with_a_good_home(holdfast, home):
    holdfast("store", "one")
    said = holdfast("doctor")
    assert (said.code, said.out) == (0, f"all is well in {home}\n")
    assert holdfast("doctor", "--json").json == {
        "quarantined": 0, "ok": True, "home": str(home), "disabled": False, "problems": [],
        "transcripts": {"bytes": 0, "looked_at": 0}, "archived": [],
    }  # fmt: skip


@pytest.mark.promise("D1")
def test_doctor_names_each_problem_with_the_command_that_mends_it(holdfast, home):
    holdfast("store", "one")
    os.chmod(home, 0o755)
    said = holdfast("doctor")
    assert said.code == 1
    assert "problem the home can be read by others (mode 755)" in said.out
    assert f"fix: chmod 700 {home}" in said.out
    report = holdfast("doctor", "--json")
    assert (report.code, report.json["ok"], report.json["problems"][0]["code"]) == (1, False, "permissions")


def test_reindex_says_what_it_found(holdfast):
    holdfast("store", "one")
    assert holdfast("reindex").out.startswith("indexed 1 note and 0 files: 1 passage, 0 facts, in ")
    assert holdfast("reindex", "--json").json["notes"] == 1


@pytest.mark.promise("N12")
def test_switched_off_it_refuses_to_write_and_reads_nothing(holdfast, home, monkeypatch):
    holdfast("store", "one", "--key", "k")
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    assert holdfast("store", "two").code == 3
    said = holdfast("recall", "one", "--json")
    assert (said.code, said.json["disabled"], said.json["hits"]) == (0, True, [])
    assert holdfast("recall", "one").err == "(memory is disabled)\n"
    for command in ("brief", "list", "facts"):
        assert holdfast(command).err == "memory is disabled\n"
    listed = holdfast("list", "--json")
    assert (listed.json, listed.err) == ([], "memory is disabled\n")
    assert holdfast("read", "a.md").err == holdfast("read", "a.md", "--json").err == "memory is disabled\n"


@pytest.mark.promise("N12")
def test_switched_off_status_and_doctor_work_and_say_so(holdfast, home, monkeypatch):
    holdfast("store", "one", "--key", "k")
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    assert "enabled   no: memory is disabled\n" in holdfast("status").out
    assert "project   not looked up" in holdfast("status", project=None).out
    assert holdfast("status", "--json").json["enabled"] is False
    said = holdfast("doctor")
    assert (said.code, said.out) == (0, f"all is well in {home}\n")
    assert said.err.startswith("memory is disabled")
    assert holdfast("doctor", "--json").json["disabled"] is True


@pytest.mark.promise("N12")
@pytest.mark.parametrize(
    "words",
    [
        ("init",), ("reindex",), ("clear", "--scope", "session"), ("clear", "--scope", "moon"), ("purge", "Not A Key"),
        ("store", "-"), ("import", "-"), ("import", "/nowhere"), ("file", "create", "a.md", "-"), ("embed",),
        ("log", "-", "--session", "s"), ("log", "/nowhere", "--session", "s"), ("import-history", "/nowhere"),
    ],
)  # fmt: skip
def test_switched_off_a_write_is_refused_before_anything_is_asked_or_read(holdfast, home, monkeypatch, words):
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    monkeypatch.setattr(sys, "stdin", None)
    assert holdfast(*words, "--json").json["error"] == "disabled"
    assert not home.exists()


# --- set up -----------------------------------------------------------------------------------------------------------


def test_init_makes_a_home_for_its_owner_only(holdfast, home):
    said = holdfast("init")
    assert said.code == 0 and str(home) in said.out and "demo" in said.out
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.promise("P3")
def test_init_with_marker_gives_the_folder_an_id_that_stays(holdfast, tmp_path):
    said = holdfast("init", "--marker", "--json", project=None)
    marker = tmp_path / ".holdfast/project.json"
    assert said.json["marker"] == str(marker)
    assert said.json["project"] == json.loads(marker.read_text())["id"]
    assert (marker.parent.stat().st_mode & 0o777, marker.stat().st_mode & 0o777) == (0o700, 0o600)
    assert holdfast("init", "--marker", "--json", project=None).json == said.json


def test_config_lists_every_setting_with_its_source(holdfast, home, monkeypatch):
    monkeypatch.setenv("HOLDFAST_AGENT", "bob")
    holdfast("config", "brief.entries", "7")
    listed = {one["name"]: (one["value"], one["from"]) for one in holdfast("config", "--json").json}
    assert listed["brief.entries"] == (7, "config.toml")
    assert listed["agent.name"] == ("bob", "HOLDFAST_AGENT")
    assert listed["lock.seconds"] == (30, "default")
    assert "most whole notes of a scope" in holdfast("config").out


def test_config_never_shows_the_key_of_an_endpoint(holdfast, home, monkeypatch):
    told = [holdfast("config", "search.key", "sesame-open", *words) for words in ((), ("--json",))]
    told += [holdfast("config", *words) for words in ((), ("--json",), ("search.key",), ("search.key", "--json"))]
    monkeypatch.setenv("HOLDFAST_EMBED_KEY", "sesame-close")
    told += [holdfast("config", *words) for words in ((), ("--json",), ("search.key",))]
    told += [holdfast("status", "--json"), holdfast("doctor", "--json")]
    assert {said.code for said in told} == {0}
    assert not [said for said in told if "sesame" in said.out + said.err]
    assert told[0].out == "********\n"
    assert "sesame-open" in (home / "config.toml").read_text()
    monkeypatch.delenv("HOLDFAST_EMBED_KEY")
    assert holdfast("config", "search.key", "--unset", "--json").json["value"] is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("word2vec", "there is no embedder 'word2vec'"), ("gpt:4", "there is no kind of embedder 'gpt'"),
        ("default,use", "default is a list itself (static,minilm,use)"), ("minilm,none", "none means no embedder at all"),
        ("minilm,", "an empty name"), ("", "names no embedder"), ("onnx:/nowhere", "no model.onnx in the folder"),
        ("minilm,endpoint:m@http://h/v1", "stand alone"), ("endpoint:m@http://h/v1,minilm", "stand alone"),
        ("endpoint:m@http://user:hunter2@h/v1", "without user"), ("endpoint:m", "endpoint:MODEL@URL"),
        ("fastembed:", "the name"),
    ],
)  # fmt: skip
def test_config_refuses_what_cannot_be_an_embedder(holdfast, home, value, said):
    refused = holdfast("config", "search.embedder", value)
    assert refused.code == 2 and said in refused.err and "hunter2" not in refused.err
    assert refused.err.count("\n") == 2  # what is wrong, and what can be written instead
    assert not (home / "config.toml").exists()


def test_config_says_what_can_be_an_embedder(holdfast):
    told = holdfast("config", "search.embedder", "word2vec").err
    for choice in ("default", "none", "static", "minilm", "use", "endpoint:MODEL@URL", "onnx:FOLDER", "fastembed:NAME"):
        assert choice in told
    assert holdfast("config", "search.embedder", "Static, use").code == 0


@pytest.mark.parametrize(
    "setting",
    [
        "endpoint:m@http://me:hunter2@h/v1", "endpoint:m@http://me:hun@ter2/hunter2@h/v1", "endpoint:m@http://h/v1?key=hunter2",
        "endpoint:m@me:hunter2@h/v1", "http://me:hunter2@h/v1", "endpoint:m@http://h/v1#hunter2", "endpoint:hunter2@h",
    ],
)  # fmt: skip
def test_a_password_in_the_setting_of_an_embedder_is_never_shown(holdfast, home, monkeypatch, setting):
    from holdfast import config

    holdfast("store", "the harbour opens at six", "--key", "k")
    (home / "config.toml").write_text(f'[search]\nembedder = "{setting}"\n')
    monkeypatch.delenv("HOLDFAST_EMBEDDER")
    told = []
    for words in (
        ("config",), ("config", "search.embedder"), ("status",), ("doctor",), ("embed",), ("recall", "harbour", "--explain"),
        ("recall", "harbour", "--mode", "hybrid", "--debug"),
    ):  # fmt: skip
        told += [holdfast(*words), holdfast(*words, "--json")]
    assert [said for said in told if "hunter2" in said.out + said.err] == []
    assert "hunter2" not in repr(config.load(home)) and "********" in repr(config.load(home))
    assert "********" in told[0].out and "********" in holdfast("status").out


@pytest.mark.parametrize("setting", ["default", "minilm,use", "onnx:/a@b", "endpoint:a@b@http://h:1/v1", "fastembed:BAAI/x@2"])
def test_a_setting_without_a_password_is_shown_as_it_is(setting):
    from holdfast.config import without_password

    assert without_password(setting) == setting


def test_config_changes_one_value_and_keeps_a_persons_comments(holdfast, home):
    home.mkdir(mode=0o700)
    file = home / "config.toml"
    file.write_text("# mine\n[brief]\nentries = 5 # enough\n\n[other]\nx = 1\n")
    assert holdfast("config", "brief.entries").out == "5\n"
    assert holdfast("config", "brief.entries", "9").out == "9\n"
    assert holdfast("config", "memory.enabled", "no").out == "false\n"
    assert holdfast("config", "memory.enabled", "true").code == 0
    text = file.read_text()
    assert "# mine\n[brief]\nentries = 9 # enough\n\n[other]\nx = 1\n" in text
    assert "enabled = true" in text
    assert holdfast("config", "brief.entries", "--unset").out == "0\n"
    assert "entries" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_config_follows_a_link_to_where_a_person_keeps_the_file(holdfast, home, tmp_path):
    home.mkdir(mode=0o700)
    (tmp_path / "dotfile.toml").write_text("# dots\n")
    (home / "config.toml").symlink_to(tmp_path / "dotfile.toml")
    assert holdfast("config", "brief.entries", "9").code == 0
    assert (home / "config.toml").is_symlink()
    assert "entries = 9" in (tmp_path / "dotfile.toml").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("brief.entrys",), ("brief.entries", "many"), ("brief.entries", "-1"), ("memory.enabled", "perhaps"),
        ("brief.entries", "5", "--unset"),
    ],
)  # fmt: skip
def test_a_setting_that_makes_no_sense_is_wrong_usage_and_writes_nothing(holdfast, home, words):
    assert holdfast("config", *words).code == 2
    assert not (home / "config.toml").exists()


def test_a_file_that_has_a_value_where_a_table_belongs_is_left_alone(holdfast, home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("brief = 3\n")
    assert holdfast("config", "brief.entries", "5").code == 2
    assert (home / "config.toml").read_text() == "brief = 3\n"


def test_a_folder_that_was_removed_cannot_be_marked(holdfast, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert holdfast("init", "--marker").code == 1


def test_a_setting_nearly_spelled_is_offered(holdfast):
    assert "Did you mean brief.entries?" in holdfast("config", "brief.entrys").err


def test_settings_changed_at_once_are_all_kept(program, home, tmp_path):
    names = ["brief.entries", "notes.max_bytes", "lock.seconds", "retention.trash_days", "retention.project_days"]
    running = [subprocess.Popen(program.command("config", name, "33"), stdout=subprocess.DEVNULL) for name in names]
    assert [one.wait(60) for one in running] == [0] * len(names)
    text = (home / "config.toml").read_text()
    assert text.count("= 33") == len(names)


def test_path_prints_where_things_are(holdfast, home):
    holdfast("store", "text", "--key", "k")
    assert holdfast("path").out == f"{home}\n"
    assert holdfast("path", "index").out == f"{home}/index.db\n"
    assert holdfast("path", "notes").out == f"{home}/shelf/projects/demo/notes\n"
    assert holdfast("path", "files", "--scope", "global").out == f"{home}/shelf/global/files\n"
    assert holdfast("path", "k").out == f"{home}/shelf/projects/demo/notes/k.md\n"
    assert holdfast("path", "config", "--json").json == {
        "what": "config", "path": f"{home}/config.toml", "exists": False
    }  # fmt: skip
    assert holdfast("path", "nothing").code == 1
    assert holdfast("path", "notes", "--scope", "session").code == 3
    assert holdfast("path", "notes", "--scope", "moon").code == 2


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["stroe", "x"], "Did you mean `holdfast store`?"),
        (["remember", "x"], "Did you mean `holdfast store`?"),
        (["add", "x"], "Did you mean `holdfast store`?"),
        (["show", "k"], "Did you mean `holdfast get`?"),
        (["rm", "k"], "Did you mean `holdfast forget`?"),
        (["delete", "k"], "Did you mean `holdfast forget`?"),
        (["find", "x"], "Did you mean `holdfast recall`?"),
        (["file", "veiw", "x"], "Did you mean `holdfast file view`?"),
        (["file", "xyz"], "One of: view, create"),
        (["file"], "needs one of: view, create"),
        (["bench"], "holdfast bench retrieval FILE... [options]  how well recall finds what answers a question"),
        (["bench", "nope"], "One of: speed, retrieval, context, load"),
        (["bench", "lod"], "Did you mean `holdfast bench load`? One of: speed, retrieval, context, load"),
        (["bench", "retrieval", "--modes"], "Did you mean --mode?"),
        (["bench", "retrieval", "--xyzzy"], "there is no option --xyzzy"),
        (["recall", "x", "--limt", "3"], "Did you mean --limit?"),
        (["recall", "x", "--zzz"], "`holdfast recall --help` lists them"),
        (["--scope", "global", "list"], "Write it after the command"),
        (["store"], "Usage: holdfast store TEXT [options]"),
        (["store", "two", "words"], 'Put quotes around it: "TEXT"'),
        (["get", "a", "b"], "Usage: holdfast get KEY [options]"),
        (["recall", "x", "--limit", "ten"], "needs a whole number"),
        (["recall", "x", "--limit"], "Write --limit N"),
        (["recall", "x", "--mode", "--no-color"], "--mode needs a value"),
        (["recall", "x", "--json=yes"], "Write --json alone"),
        (["recall", "x", "--mode", "psychic"], "One of: hybrid, keyword"),
        (["recall", "x", "--limit", "0"], "--limit must be 1 to 100"),
        (["recall", "x", "--now", "soon"], "--now: 'soon' is not a date"),
        (["store", "x", "--valid-to", "2026-01-01", "--valid-from", "2026-02-01"], "say --valid-from too"),
        (["store", "x", "--allow-secret", ""], 'Such as --allow-secret "a test account"'),
        (["recall"], "an empty query"),
        (["recall", "x", "--as-of", "soon"], "Write a day"),
        (["store", "x", "--scope", "moon"], "One of: session, project"),
        (["completion", "tcsh"], "One of: bash, zsh, fish"),
        ([], "holdfast --help"),
    ],
)
def test_wrong_usage_is_exit_2_with_what_to_type_instead(holdfast, words, hint):
    said = holdfast(*words)
    assert (said.code, said.out) == (2, "")
    assert hint in said.err
    assert "Traceback" not in said.err
    answer = holdfast("--json", *words)
    assert (answer.code, answer.json["error"], answer.err) == (2, "usage", "")
    assert set(answer.json) == {"error", "message", "fix", "exit_code"}


def test_a_message_names_every_option_as_it_is_typed(holdfast, tmp_path):
    """Each option of two words that takes a value, with values that cannot be right."""
    holdfast("store", "x", "--key", "k")
    words = {"SUBJECT": "a", "LABEL": "b", "FILE": str(tmp_path / "none"), "ENTITY": "a"}
    tried = 0
    for name, command in COMMANDS.items():
        if command.raw or name.startswith("bench") or name in ("serve", "mcp", "prove", "install", "uninstall", "copy"):
            continue
        for option in [one for one in command.options if one.value and "_" in one.field]:
            for bad in ("", "soon", "2026-99-99"):
                given = [words.get(arg.name, "k") for arg in command.args if arg.needed]
                said = holdfast(*name.split(), *given, f"{option.name}={bad}")
                if said.code:
                    tried += 1
                    assert option.field not in said.err, said.err
                    assert option.name in said.err or not said.err.startswith(f"holdfast: {option.field}")
    assert tried >= 20


def test_what_the_user_wrote_is_not_taken_for_an_option(holdfast):
    assert "'valid_from'" in holdfast("store", "x", "--key", "valid_from").err
    assert "named valid_from" in holdfast("recall", "x", "--as-of", "named valid_from").err
    said = holdfast("import", "-", stdin=b'{"text": "x", "valid_from": "soon"}')
    assert "valid_from: 'soon'" in said.err and "--valid-from" not in said.err  # there it is a field and no option


def test_options_stand_before_or_after_the_command_and_take_an_equals_sign(home, capsys):
    for words in (
        ["--json", f"--home={home}", "store", "x", "--project", "p", "--key=k"],
        ["store", "--key", "k", "x", "--project=p", "--json", "--home", str(home)],
    ):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["note"]["scope"] == {"kind": "project", "id": "p"}


@pytest.mark.promise("N1")
def test_a_scope_without_an_id_is_refused_and_told_how_to_give_one(holdfast):
    said = holdfast("store", "x", "--scope", "session")
    assert said.code == 3
    assert "--session" in said.err
    assert holdfast("store", "x", "--scope", "session", "--session", "s1").out == "created x in session:s1\n"


@pytest.mark.parametrize(
    "words",
    [
        ("store", "--json", "--nope"), ("bench", "speed", "--json", "--nope"), ("bench", "speed", "--nope", "--json"),
        ("bench", "--json", "nope"), ("--json", "bench", "load", "--nope"), ("bench", "speed", "--json", "--seed", "x"),
        ("bench", "load", "--json", "--notes"), ("bench", "retrieval", "--json"), ("bench", "--json"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_words_with_json_are_one_document_whatever_the_command(holdfast, words):
    said = holdfast(*words)
    assert (said.code, said.err, said.json["error"], said.json["exit_code"]) == (2, "", "usage", 2)
    assert said.json["message"] and said.json["fix"]


def test_every_exit_code_is_reached(holdfast, home):
    holdfast("store", "text", "--key", "k")
    codes = {
        holdfast("get", "k").code,
        holdfast("get", "nothing").code,
        holdfast("nonsense").code,
        holdfast("store", "text", "--key", "Not A Key").code,
        holdfast("store", "other", "--key", "k", "--expected", "0" * 32).code,
        holdfast("--home", "/dev/null/x", "store", "text").code,
    }
    assert codes == {0, 1, 2, 3, 4, 5} == {code for code, _ in EXIT_CODES} - {130}


def test_what_nobody_foresaw_is_one_line_without_a_traceback(holdfast, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a bolt came loose")

    monkeypatch.setattr(Memory, "list", broken)
    said = holdfast("list")
    assert (said.code, said.out) == (5, "")
    assert said.err == "holdfast: RuntimeError: a bolt came loose\n  Run it again with --debug to see where\n"
    assert "Traceback" in holdfast("list", "--debug").err
    assert holdfast("list", "--json").json["error"] == "trouble"


def test_debug_shows_the_traceback_of_our_own_errors_too(holdfast):
    assert "Traceback" in holdfast("get", "nothing", "--debug").err
    said = holdfast("get", "nothing", "--debug", "--json")
    assert said.json["error"] == "not_found"


ONE_OF_EACH = [
    ["store", "text", "--key", "k"], ["recall", "text"], ["get", "k"], ["list"], ["edit", "k"], ["import", "-"],
    ["fact", "s", "l", "v"], ["facts"], ["graph", "s"], ["log", "-", "--session", "s1"], ["import-history", "."],
    ["expand", "projects/demo/transcripts/unknown/s1.jsonl:2"], ["embed"],
    ["review"], ["trace", "k"], ["export"],
    ["forget", "k"], ["restore", "k"], ["purge", "k", "--yes"], ["receipts"],
    ["clear", "--scope", "project", "--yes"], ["retain"], ["search", "text"],
    ["file create", "a.md", "text"], ["read", "a.md"], ["file view", "a.md"], ["file str-replace", "a.md", "text", "other"],
    ["file insert", "a.md", "0", "text"], ["file rename", "a.md", "b.md"], ["file delete", "b.md"], ["brief"],
    ["scaffold", "wiki"], ["boot"], ["install"], ["install", "kimi", "--yes"], ["uninstall", "kimi", "--yes"],
    ["render", "AGENTS.md"],
    ["agent add", "reviewer", "--role", "secretary"], ["agent list"], ["agent rotate", "reviewer"],
    ["agent revoke", "reviewer"], ["role list"], ["role check"], ["audit list"], ["audit verify"], ["audit export"],
    ["done list"], ["done exists", "github.review", "acme/shop#7"],
    ["status"], ["doctor"], ["project list"], ["project adopt", "demo", "newer"],
    ["reindex"], ["init"], ["config"], ["path"], ["completion", "bash"], ["help"],
    ["help", "store"], ["demo"], ["copy", "home", "copied"],
]  # fmt: skip


def test_every_command_answers_with_pure_json(holdfast, monkeypatch):
    monkeypatch.setenv("EDITOR", "true")
    assert {words[0] for words in ONE_OF_EACH} == set(COMMANDS) - {
        "bench speed", "bench retrieval", "bench context", "bench load", "resident", "hook", "prove", "mcp", "serve", "migrate",
    }  # fmt: skip
    for words in ONE_OF_EACH:
        said = holdfast(*words[0].split(), *words[1:], "--json", stdin=b'{"text": "more"}\n')
        assert said.code == {"demo": 2, "done exists": 1, "project adopt": 1}.get(words[0], 0), (words, said.out)
        assert said.err == "", words
        assert said.json is not None, words


@pytest.mark.promise("A6")
def test_the_work_that_agents_recorded_is_listed_and_asked_for(holdfast, home):
    with Memory(home, project="demo") as memory:
        ledger = memory._context.ledger
        ledger.done.record("ada", "triage", "acme/shop#3", 1_772_000_000)
        for number in (7, 8):
            ledger.reviews.record("ben", "acme", "shop", number, holder="h", now=1_772_000_100)
    first = holdfast("done", "list", "--limit", "2", "--json").json
    assert [(one["agent"], one["kind"], one["subject"]) for one in first["done"]] == [
        ("ben", "github.review", "acme/shop#8"), ("ben", "github.review", "acme/shop#7")
    ]  # fmt: skip
    rest = holdfast("done", "list", "--cursor", first["next"], "--json").json
    assert [one["subject"] for one in rest["done"]] == ["acme/shop#3"] and rest["next"] is None
    assert "acme/shop#7" in holdfast("done", "list", "--kind", "github.review").out
    assert holdfast("done", "list", "--agent", "ada", "--kind", "github.review", "--json").json["done"] == []
    asked = ("done", "exists", "github.review", "Acme/Shop#7")
    assert [holdfast(*asked, *whose).code for whose in ((), ("--agent", "ben"), ("--agent", "ada"))] == [0, 0, 1]
    assert holdfast("done", "exists", "github.review", "acme/shop#9", "--json").json == {"exists": False}
    assert holdfast("done", "list", "--cursor", "x").code == 2
    with Memory(home, project="demo") as memory:
        memory._context.ledger.done.mask(lambda text: "#3" in text)
    assert holdfast("done", "exists", "triage", "acme/shop#3", "--json").json == {"exists": True}


def test_json_is_utf8_with_dangerous_characters_escaped(program, home):
    with Memory(home, project="demo") as memory:
        memory.store("日本 \x1b[31m \x9b bidi \u202e", key="k")
    done = subprocess.run(program.command("get", "k", "--json"), capture_output=True, env={**os.environ, "LC_ALL": "C"})
    assert "日本".encode() in done.stdout
    assert all(byte >= 0x20 or byte == 0x0A for byte in done.stdout)
    assert b"\\u009b" in done.stdout and b"\\u202e" in done.stdout
    assert json.loads(done.stdout)["text"] == "日本 \x1b[31m \x9b bidi \u202e"


# --- help -------------------------------------------------------------------------------------------------------------


def test_help_names_every_command_option_and_exit_code(holdfast):
    said = holdfast("--help")
    assert said.code == 0
    for name in [name.split()[-1] for name in COMMANDS] + [option.name for option in EVERYWHERE]:
        assert name in said.out
    for code, meaning in EXIT_CODES:
        assert f"  {code:<3}  {meaning}\n" in said.out
    assert holdfast("help").out == holdfast("-h").out == said.out
    assert max(map(len, said.out.splitlines())) <= 100


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"resident"}))
def test_each_command_has_help_with_its_options_and_an_example_that_parses(holdfast, name):
    import shlex

    from holdfast.cli.parser import read

    said = holdfast(*name.split(), "--help")
    assert said.code == 0
    assert said.out.startswith(f"usage: holdfast {name}")
    assert all(option.name in said.out for option in COMMANDS[name].options)
    assert holdfast("help", *name.split()).out == said.out
    if "<(" not in COMMANDS[name].example:
        assert read(shlex.split(COMMANDS[name].example)[1:]).command is COMMANDS[name]


def test_help_of_a_family_lists_what_is_in_it(holdfast):
    assert "holdfast file str-replace PATH OLD NEW" in holdfast("file", "--help").out
    said = holdfast("bench", "--help").out
    assert holdfast("help", "bench").out == said
    for name in ("speed", "retrieval", "context", "load"):
        assert f"holdfast bench {name}" in said and COMMANDS[f"bench {name}"].summary in said


def test_version(holdfast):
    from holdfast import __version__

    assert holdfast("--version").out == f"holdfast {__version__}\n"
    assert holdfast("--version", "--json").json == {"version": __version__}


# --- a process of its own ---------------------------------------------------------------------------------------------


def test_the_program_finds_its_home_and_project_by_itself(tmp_path):
    env = {**os.environ, "HOLDFAST_HOME": str(tmp_path / "elsewhere")}
    run = [sys.executable, "-m", "holdfast"]
    folder = tmp_path / "my-project"
    folder.mkdir()
    subprocess.run([*run, "store", "found again"], cwd=folder, env=env, check=True, capture_output=True)
    said = subprocess.run([*run, "recall", "again"], cwd=folder, env=env, check=True, capture_output=True)
    assert b"found again" in said.stdout
    assert not list(Path(env["HOME"]).iterdir())


def test_a_reader_that_stops_is_no_error(program, home):
    with Memory(home, project="demo") as memory:
        memory.store_many([{"text": f"note {number} " + "word " * 200} for number in range(300)])
    for words in (["list"], ["list", "--json"], ["get", "nothing"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(program.command(*words), stdout=writer, stderr=subprocess.PIPE, timeout=60)
        os.close(writer)
        assert b"Traceback" not in done.stderr and b"Broken" not in done.stderr
        assert done.returncode == (1 if "get" in words else 0)


def test_output_that_cannot_be_written_is_disk_trouble(program):
    with open("/dev/full", "w") as full:
        done = subprocess.run(program.command("--help"), stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 5
    assert b"No space left" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_an_answer_that_cannot_be_written_says_that_it_is_done(program, json):
    with open("/dev/full", "w") as full:
        command = program.command("store", "text", "--key", "k", *json)
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 5 and (json or b"it is done, but the answer could not be written" in done.stderr)
    assert program("get", "k").out == "text\n"


def test_closed_streams_are_no_error(program):
    line = " ".join(f"'{word}'" for word in program.command("store", "text", "--key", "k"))
    assert subprocess.run(["sh", "-c", f"{line} >&- 2>&- <&-"], timeout=60).returncode == 0
    assert program("get", "k").out == "text\n"


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_ctrl_c_ends_it_without_a_traceback_and_with_json_as_one_document(program, tmp_path, words):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = program.command("log", str(pipe), "--session", "s1", *words)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(pipe, "wb"):  # opens when the program has opened its end: it is waiting for us now
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    message, fix = "interrupted; it may be kept, or some of it", "Run it again: what is kept already is not kept twice"
    if words:
        said = {"error": "interrupted", "message": message, "fix": fix, "exit_code": 130}
        assert (json.loads(out), err) == (said, b"")
    else:
        assert (out, err.decode()) == (b"", f"holdfast: {message}\n  {fix}\n")


def _interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_purge_that_ctrl_c_ends_says_that_it_may_have_begun_and_what_ends_it(holdfast, monkeypatch, words):
    holdfast("store", "text", "--key", "k")
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.verbs.purge.job.PurgeJob.scrub", _interrupt)
        said = holdfast("purge", "k", "--yes", *words)
    told = said.json if words else {"message": said.err, "fix": said.err}
    assert said.code == 130 and "interrupted; the purge may have begun" in told["message"]
    assert "Run `holdfast doctor`, which ends it or says what will; if nothing was begun, purge it again" in told["fix"]
    assert holdfast("get", "k").code == 1 and holdfast("doctor").code == 0
    assert [receipt["state"] for receipt in holdfast("receipts", "--json").json] == ["done"]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "hook"])
def test_whatever_ctrl_c_ends_says_what_to_do(monkeypatch, holdfast, command):
    monkeypatch.setattr("holdfast.cli.runner._function", lambda _: _interrupt)
    args = [arg.name for arg in COMMANDS[command].args if arg.needed]
    said = holdfast(*command.split(), *args, "--json")
    assert (said.code, said.json["error"], said.json["exit_code"]) == (130, "interrupted", 130) and said.json["fix"]
    said = holdfast(*command.split(), *args)
    assert said.code == 130 and (said.err == "") == (command not in interrupts._CHANGING)


@pytest.mark.parametrize("command", ["agent add", "agent rotate"])
def test_a_token_that_an_answer_cut_short_may_have_lost_is_not_said_to_be_given(command):
    said = interrupts.stopped(command, KeyboardInterrupt(), answered=True)
    assert "nobody saw" in said.message and "agent rotate" in said.fix
    assert interrupts.stopped("store", KeyboardInterrupt(), answered=True).fix == "Nothing need be done again"


def test_every_command_that_is_said_to_change_something_is_one():
    assert interrupts._CHANGING.keys() <= COMMANDS.keys()


@pytest.mark.parametrize("words", [("store", "-"), ("purge", "--text", "-", "--yes")])
def test_ctrl_c_while_it_waits_for_a_pipe_has_done_nothing(holdfast, monkeypatch, words):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=_interrupt), isatty=lambda: False))
    said = holdfast(*words)
    assert (said.code, said.out, said.err) == (130, "", "holdfast: interrupted; nothing was done\n  Run it again\n")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_import_that_ctrl_c_ends_while_it_reads_says_that_nothing_was_imported(program, tmp_path, words):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    running = subprocess.Popen(program.command("import", str(pipe), *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(pipe, "wb"):
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    said = {"error": "interrupted", "message": "interrupted; nothing was imported", "fix": "Run it again", "exit_code": 130}
    assert running.returncode == 130
    if words:
        assert (json.loads(out), err) == ({**said, "stored": 0}, b"")
    else:
        assert (out, err.decode()) == (b"", "holdfast: interrupted; nothing was imported\n  Run it again\n")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_import_that_ctrl_c_ends_while_it_writes_says_that_some_may_be_kept_and_can_be_run_again(
    holdfast, monkeypatch, words
):
    lines = b"".join(b'{"text": "note %d"}\n' % number for number in range(40))
    rename, done = os.rename, []

    def interrupted(*given, **more):
        done.append(given)
        if len(done) == 20:
            raise KeyboardInterrupt
        return rename(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", interrupted)
        said = holdfast("import", "-", *words, stdin=lines)
    assert said.code == 130
    told = said.json if words else {"message": said.err, "fix": said.err, "stored": None}
    assert "interrupted while 40 notes were imported: none, some or all may be kept" in told["message"]
    assert "Run it again: what is kept already stays as it is" in told["fix"] and told["stored"] is None
    assert "Traceback" not in said.err and bool(said.err) != bool(words)
    again = holdfast("import", "-", "--json", stdin=lines).json
    assert 0 < again["created"] < 40 and again["created"] + again["unchanged"] == 40


def test_ctrl_c_while_the_answer_is_given_is_told_on_stderr(holdfast, monkeypatch):
    def interrupted(call):
        call.close()
        raise KeyboardInterrupt

    holdfast("store", "text", "--key", "k")
    monkeypatch.setattr("holdfast.cli.runner._function", lambda _: lambda call: call.answer({}, print) or interrupted(call))
    said = holdfast("list", "--json")
    assert (said.code, said.json, said.err) == (130, {}, "holdfast: interrupted; the answer may be cut short\n  Run it again\n")
    said = holdfast("store", "text", "--json")
    assert said.err == "holdfast: interrupted; it is done, but the answer may be cut short\n  Nothing need be done again\n"


def test_bytes_that_are_no_utf8_are_refused_as_an_argument_and_survive_in_a_file(program, home):
    assert program("store", b"\xff\xfe".decode("utf-8", "surrogateescape")).code == 3
    notes = home / "shelf/projects/demo/notes"
    notes.mkdir(parents=True, mode=0o700)
    (notes / "hand.md").write_bytes(b"caf\xe9\n")
    assert program("get", "hand").out.startswith("caf")
    assert json.loads(program("get", "hand", "--json").out)["text"].startswith("caf")
    assert program("list").code == program("recall", "caf").code == 0
    assert (notes / "hand.md").read_bytes() == b"caf\xe9\n"


def test_the_demo_shows_real_commands_and_leaves_nothing_behind(program, tmp_path):
    said = program("demo", env={"TMPDIR": str(tmp_path)})
    assert said.code == 0, said.err
    for command in ("store", "recall", "fact", "facts", "forget", "restore", "brief"):
        assert f"$ holdfast {command} " in said.out or f"$ holdfast {command}\n" in said.out
    assert "updated deploys in project:demo" in said.out
    assert "<!-- holdfast:history -->" in said.out
    assert "~/.holdfast/shelf/projects/demo/notes/deploys.md" in said.out
    assert not list(tmp_path.glob("holdfast-demo-*"))
    assert not (Path(os.environ["HOME"]) / ".holdfast").exists()


# --- completion -------------------------------------------------------------------------------------------------------


@pytest.fixture
def complete(holdfast):
    """The words offered for the last of these."""

    def offers(*typed):
        return [line.partition("\t")[0] for line in holdfast("_complete", *typed, project=None).out.splitlines()]

    return offers


def test_completion_offers_commands_options_choices_and_keys(complete, holdfast, home):
    holdfast("store", "text", "--key", "testing")
    holdfast("store", "text", "--key", "gone")
    holdfast("forget", "gone")
    here = ("--home", str(home), "--project", "demo")
    assert complete("st") == ["store", "status"]
    assert complete("file", "str") == ["str-replace"]
    assert complete("recall", "x", "--mo") == ["--mode"]
    assert complete("recall", "--mode", "k") == ["keyword"]
    assert complete("recall", "--mode=", "k") == []
    assert complete("recall", "--mode", "=", "k") == ["keyword"]
    assert complete(*here, "get", "te") == ["testing"]
    assert complete("restore", *here, "") == ["gone"]
    assert complete("config", "brief.e") == ["brief.entries"]
    assert complete("path", *here, "te") == ["testing"]
    assert complete("completion", "z") == ["zsh"]
    assert complete("help", "fac") == ["fact", "facts"]
    assert complete("nonsense", "") == complete("get", "a", "") == []
    assert "store" in complete()


def test_completion_scripts_work_in_a_real_bash(program, tmp_path, holdfast):
    holdfast("store", "text", "--key", "testing")
    shim = tmp_path / "bin" / "holdfast"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {" ".join(program.command())} "$@"\n')
    shim.chmod(0o755)
    script = tmp_path / "completion.bash"
    script.write_text(holdfast("completion", "bash").out)
    subprocess.run(["bash", "-n", str(script)], check=True)
    asked = """
        source "$1"
        COMP_WORDS=(holdfast get te); COMP_CWORD=2; _holdfast; echo "${COMPREPLY[@]}"
        COMP_WORDS=(holdfast recall --mode = se); COMP_CWORD=4; _holdfast; echo "${COMPREPLY[@]}"
        COMP_WORDS=(holdfast list ''); COMP_CWORD=2; _holdfast; echo "${#COMPREPLY[@]}"
        complete -p holdfast
    """
    env = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    shell = ["bash", "-c", asked, "bash", str(script)]
    done = subprocess.run(shell, capture_output=True, text=True, env=env, timeout=60)
    assert done.stdout.splitlines() == ["testing", "semantic", "0", "complete -o default -F _holdfast holdfast"]


def test_every_shell_has_a_script_that_asks_the_program(holdfast):
    for shell in ("bash", "zsh", "fish"):
        said = holdfast("completion", shell)
        assert "_complete" in said.out
        assert holdfast("completion", shell, "--json").json["script"] == said.out


@pytest.mark.parametrize("words", [("trust.quarantine", ""), ("trust.quarantine", "--unset"), ("memory.enabled", "false")])
def test_an_agent_cannot_change_what_keeps_it_in_bounds(holdfast, home, monkeypatch, words):
    holdfast("config", "trust.quarantine", "web")
    before = (home / "config.toml").read_text()
    monkeypatch.setenv("CLAUDECODE", "1")
    refused = holdfast("config", *words)
    assert refused.code == 3
    assert "an agent may not change" in refused.err
    assert (home / "config.toml").read_text() == before
    assert holdfast("config", "brief.entries", "7").code == 0  # all else it may
    assert holdfast("config", "trust.quarantine").code == 0


def test_doctor_says_that_quarantine_is_switched_off_and_how_to_switch_it_on(holdfast, home):
    holdfast("config", "trust.quarantine", "")
    (problem,) = [one for one in holdfast("doctor", "--json").json["problems"] if one["code"] == "quarantine-off"]
    assert problem["fix"].endswith("config trust.quarantine --unset")
    holdfast("config", "trust.quarantine", "--unset")
    assert "quarantine-off" not in holdfast("doctor", "--json").out
