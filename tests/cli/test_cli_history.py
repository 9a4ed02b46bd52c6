"""`log`, `import-history`, `expand` and `embed`."""

from __future__ import annotations

import json

import pytest

from holdfast import Trouble

TURNS = [
    {"role": "user", "text": "My dog Biscuit hates the vacuum", "time": "2026-03-01T10:00:00Z", "id": "t1"},
    {"role": "assistant", "text": "Leave the vacuum out for a while", "time": "2026-03-01T10:00:10Z", "id": "t2"},
    {"speaker": "Ada", "text": "We moved to Lisbon", "time": "2026-03-01T10:01:00Z", "id": "t3"},
]  # fmt: skip
LINES = "".join(json.dumps(turn) + "\n" for turn in TURNS).encode()


@pytest.mark.promise("H1")
def test_log_stores_each_turn_once(holdfast, tmp_path):
    (tmp_path / "turns.jsonl").write_bytes(LINES)
    said = holdfast("log", "turns.jsonl", "--session", "s1", "--client", "cc")
    assert said.out == "3 turns added, 0 known in projects/demo/transcripts/cc/s1.jsonl\n"
    again = holdfast("log", "-", "--session", "s1", "--client", "cc", "--json", stdin=LINES)
    assert (again.json["added"], again.json["known"]) == (0, 3)
    assert holdfast("log", "-", stdin=LINES).code == 3
    odd = holdfast("log", "-", "--session", "a name: with spaces", "--json", stdin=LINES).json
    assert (odd["session"], odd["added"]) == ("a name: with spaces", 3)


@pytest.mark.promise("H1")
def test_log_names_a_line_that_is_not_a_turn(holdfast):
    for line, code in ((b"not json", 3), (b"[]", 3), (b'{"role": "moon", "text": "x"}', 2), (b"x" * 7_000_000, 3)):
        said = holdfast("log", "-", "--session", "s1", stdin=LINES + line + b"\n")
        assert (said.code, said.out) == (code, "")
        assert " 4" in said.err and "none is stored twice" in said.err
    assert holdfast("log", "nowhere.jsonl", "--session", "s1").code == 1


@pytest.mark.promise("H1")
def test_import_history_reads_files_and_folders(holdfast, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "one.jsonl").write_bytes(LINES)
    (tmp_path / "two.jsonl").write_bytes(LINES + b"{broken\n")
    said = holdfast("import-history", "some", "two.jsonl")
    assert said.out.splitlines()[0].split() == ["SESSION", "CLIENT", "ADDED", "KNOWN", "PATH"]
    assert said.out.splitlines()[-1] == "6 turns added, 0 known in 2 sessions"
    assert said.err == "skipped 1 line that could not be read\n"
    again = holdfast("import-history", "two.jsonl", "--client", "chat", "--json").json
    assert [(one["session"], one["client"], one["added"], one["known"]) for one in again] == [("two", "chat", 0, 3)]
    (tmp_path / "empty").mkdir()
    nothing = holdfast("import-history", "empty")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "No transcripts found.\n")
    assert holdfast("import-history", "nowhere").code == 1


@pytest.mark.promise("H2")
def test_recall_groups_turns_by_session_and_filters_by_kind(holdfast):
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
def test_expand_prints_the_turns_around_a_turn(holdfast):
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


# --- embed ------------------------------------------------------------------------------------------------------------


def test_embed_says_how_many_passages_are_left(holdfast, monkeypatch):
    holdfast("store", "the harbour opens at six", "--key", "k")
    assert "No embedder is set" in holdfast("embed").err
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    assert "embedder  static, 1 passage without vectors yet\n" in holdfast("status").out
    assert holdfast("embed").out == "All passages have vectors.\n"
    assert holdfast("embed", "--json").json == {"embedder": "static", "left": {"static": 0}, "failed": {}}
    assert "embedder  static\n" in holdfast("status").out


def test_embed_reports_a_model_that_fails(holdfast, monkeypatch):
    from holdfast.embedders import minilm

    def broken(*_):
        raise Trouble("the model is gone", "Put it back")

    monkeypatch.setattr(minilm, "_load_session", broken)
    monkeypatch.setattr(minilm.MiniLM, "passages", lambda self, texts: broken())
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static,minilm")
    holdfast("store", "the harbour opens at six", "--key", "k")
    said = holdfast("embed")
    assert said.code == 1
    assert (said.out, said.err) == ("", "no vectors from the sentence model: the model is gone\n")
