"""`holdfast bench context`: its metrics on small texts, the checks of a corpus, and the figures of the shipped corpus."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from holdfast import NotFound, UsageError
from holdfast.cli import main
from holdfast.errors import Trouble
from holdfast_bench import context
from holdfast_bench.context_corpus import Note, Prompt, read_corpus
from holdfast_bench.context_metrics import ShownTexts, contains, has_answer, is_leaked, is_stale, score

CORPUS = Path(__file__).parents[1] / "data" / "context.json"

TINY = {
    "name": "tiny",
    "notes": [
        {"key": "style", "text": "Answer in one line.", "scope": "global", "type": "user", "updated": "2026-01-01"},
        {"key": "host", "text": "The host is alpha.", "scope": "project", "type": "project", "tags": ["ops"]},
        {"key": "host", "text": "The host is beta.", "valid_from": "2026-01-05"},
        {"key": "rule", "text": "Never push on Fridays.", "type": "feedback"},
    ],
    "facts": [{"subject": "Pump", "label": "pressure", "value": "4 bar", "on": "2026-01-02"}],
    "other_project": [{"key": "boat", "text": "The boat is repainted in the first week of every second April."}],
    "turns": [{"role": "user", "text": "the lamp is broken", "time": "2026-01-03T10:00:00Z"}],
    "prompts": [
        {"text": "which host?", "answer": ["beta"], "keys": ["host"], "kind": "stale", "not": ["alpha"]},
        {"text": "how much pressure?", "answer": ["4 bar", "four bar"], "keys": ["fact:pump|Pressure"], "kind": "question"},
        {"text": "what is broken?", "answer": ["lamp"], "keys": ["turn:0"], "kind": "question"},
    ],
    "unrelated": ["thanks", "hello"],
    "always": ["style"],
}


@pytest.fixture
def corpus(tmp_path):
    """Return a function that writes the corpus with changed fields and returns its path."""

    def write(**changed):
        path = tmp_path / "tiny.json"
        path.write_text(json.dumps(TINY | changed), encoding="utf-8")
        return path

    return write


# --- metrics ----------------------------------------------------------------------------------------------------------


def make_prompt(*answer, outdated=()):
    return Prompt("which one?", answer, ("k",), "stale", outdated)


def test_an_answer_may_extend_over_lines_and_its_case_matters():
    assert has_answer(make_prompt("blue  boat\nhouse"), "the blue\n   boat \t house is here")
    assert has_answer(make_prompt("red", "blue"), "it is blue")
    assert not has_answer(make_prompt("Blue"), "it is blue")
    assert not has_answer(make_prompt("blueboat"), "blue boat")


def test_only_a_complete_note_counts_as_contained():
    assert contains("- note: one\n  two three", "one two\nthree")
    assert not contains("- note: one two …", "one two three") and not contains("ONE TWO", "one two")


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        ("the host is Alpha", True), ("the host is beta", False), ("the host was alpha", False), ("alpha -> beta", False),
        ("alpha until May", False), ("superseded: alpha", False), ("the OLD one is alpha", False),
        ("it was so\nthe host is alpha", True), ("the host was alpha\nthe host is alpha", True),
        ("Wasabi holds alpha on the threshold", True),  # `was` and `old` must be whole words
    ],
)  # fmt: skip
def test_an_old_value_is_stale_unless_its_line_marks_it_as_outdated(text, stale):
    assert is_stale(make_prompt("beta", outdated=("gamma", "ALPHA")), text) is stale


def test_an_old_value_may_extend_over_lines_and_a_mark_on_either_line_counts():
    prompt = make_prompt("beta", outdated=("alpha  host",))
    assert is_stale(prompt, "we use the alpha\n  host now")
    assert not is_stale(prompt, "we use the alpha\n  host, which is the old one")
    assert not is_stale(prompt, "alpha\nother host")


def test_a_leak_is_a_key_or_forty_characters_of_a_text():
    text = "The boat is repainted in the first week of every second April, by everybody."
    note = Note("boat-paint", text)
    assert is_leaked(note, "see BOAT-PAINT") and is_leaked(note, text)
    excerpt = text[10:50]
    assert is_leaked(note, f"xx{excerpt.upper()}xx") and is_leaked(note, excerpt.replace(" ", "\n  "))
    assert not is_leaked(note, excerpt[:-1]) and not is_leaked(note, "boat paint")
    short = Note("k-1", "a short text")
    assert is_leaked(short, "here is A short  text.") and not is_leaked(short, "a short")


def test_the_scores_of_a_corpus(corpus):
    start = "Standing: Answer in\n  one line.\nhost: The host is beta."
    shown = ShownTexts(start, ("", "Pump, pressure: 4 bar", "see the boat"), ("", "four"))
    scores = score(read_corpus(corpus()), shown)
    assert (scores.coverage, scores.prompt_only) == (2 / 3, 1 / 3)
    assert {kind: (row.prompts, row.coverage, row.prompt_only) for kind, row in scores.kinds.items()} == {
        "question": (2, 0.5, 0.5), "stale": (1, 1.0, 0.0),
    }  # fmt: skip
    assert (scores.always, scores.stale, scores.noise, scores.empty) == (1.0, 0.0, 2.0, 0.5)
    assert (scores.leaks, scores.leaked, scores.missed) == (1, ("boat",), ("what is broken?",))
    assert (scores.start_chars, scores.prompt_chars) == (len(start), (0 + 21 + 12) / 3)


def test_missed_notes_and_stale_prompts_are_named(corpus):
    shown = ShownTexts("Answer in one", ("the host is alpha", "", ""), ("", ""))
    scores = score(read_corpus(corpus()), shown)
    assert (scores.always, scores.missed_always) == (0.0, ("style",))
    assert (scores.stale, scores.stale_prompts) == (1.0, ("which host?",))


# --- corpora ----------------------------------------------------------------------------------------------------------


def test_a_corpus_is_read_with_its_current_notes(corpus):
    found = read_corpus(corpus())
    assert found.current["host"] == Note("host", "The host is beta.", valid_from="2026-01-05")
    assert [note.text for note in found.project_notes] == ["The host is alpha.", "The host is beta."]
    assert found.prompts[0].outdated == ("alpha",)


PROMPT = TINY["prompts"][1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"notes": None}, "`notes` is missing"), ({"turns": {}}, "`turns` must be a list"),
        ({"prompts": []}, "`prompts` is empty"),
        ({"notes": ["x"]}, "notes[0]: must be an object"), ({"notes": [{"key": "a"}]}, "notes[0]: `text` is missing"),
        ({"notes": [{"key": "a", "text": 5}]}, "notes[0]: `text` must be a text"),
        ({"notes": [{"key": "A b", "text": "x"}]}, "notes[0]: `A b` is not a valid key"),
        ({"notes": [{"key": "a", "text": "x", "scope": "planet"}]}, "notes[0]: scope `planet` is unknown: use project"),
        ({"notes": [{"key": "a", "text": "x", "type": "odd"}]}, "notes[0]: type `odd` is unknown"),
        ({"notes": [{"key": "a", "text": "x", "tags": "t"}]}, "notes[0]: `tags` must be a list of texts"),
        ({"notes": [{"key": "a", "text": "x", "valid_from": "soon"}]}, "notes[0]: `valid_from` must be a date"),
        ({"notes": [*TINY["notes"], {"key": "host", "text": "x", "scope": "global"}]}, "notes[4]: an earlier version of"),
        ({"facts": [{"subject": "a", "label": "b", "value": "c"}]}, "facts[0]: `on` is missing"),
        ({"turns": [{"role": "cat", "text": "x", "time": "2026-01-01"}]}, "turns[0]: role `cat` is unknown"),
        ({"prompts": [PROMPT | {"answer": []}]}, "prompts[0]: `answer` must be a list of texts"),
        ({"prompts": [PROMPT | {"kind": "stale"}]}, "prompts[0]: `not` is missing"),
        ({"prompts": [PROMPT, PROMPT | {"keys": ["nobody"]}]}, "prompts[1]: key `nobody` is not a note, fact or turn"),
        ({"prompts": [PROMPT | {"keys": ["turn:1"]}]}, "prompts[0]: key `turn:1` is not"),
        ({"prompts": [PROMPT | {"keys": ["fact:pump|size"]}]}, "prompts[0]: key `fact:pump|size` is not"),
        ({"unrelated": ["a", ""]}, "unrelated[1]: must be a text"), ({"always": ["x"]}, "always[0]: key `x` is not a note"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_corpus_is_named_with_its_file_and_entry(corpus, capsys, changed, said):
    path = corpus(**changed)
    assert main(["bench", "context", str(path)]) == 2
    told = capsys.readouterr().err
    assert f"{path}: {said}" in told and "docs/benchmarks.md" in told


def test_files_that_are_not_a_corpus(tmp_path):
    with pytest.raises(NotFound):
        read_corpus(tmp_path / "nothing.json")
    for text, said in (("{", "is not JSON"), ("[]", "must hold one JSON object"), ("\xff", "cannot be read")):
        (tmp_path / "odd.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(UsageError, match=said):
            read_corpus(tmp_path / "odd.json")


# --- the command ------------------------------------------------------------------------------------------------------


def test_options_are_parsed(monkeypatch, capsys):
    given = []
    monkeypatch.setattr(context, "run", lambda options: given.append(options) or 0)
    assert main(["bench", "context", "a", "b", "--situation", "hybrid", "--large", "--json"]) == 0
    assert main(["bench", "context", "a", "--situation", "both"]) == 0
    assert given == [context.Options((Path("a"), Path("b")), ("hybrid",), True, True), context.Options((Path("a"),))]
    assert main(["bench", "context", "a", "--situation", "semantic"]) == 2
    assert "Use one of: keyword, hybrid, both" in capsys.readouterr().err


def test_a_large_project_needs_other_files(corpus, capsys):
    assert main(["bench", "context", str(corpus()), "--large"]) == 2
    assert "--large needs at least two files" in capsys.readouterr().err


def test_the_text_for_the_model_is_extracted_from_a_hooks_output():
    said = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "notes"}}
    assert context.extract_model_text(json.dumps(said).encode()) == "notes"
    assert context.extract_model_text(b"") == context.extract_model_text(b"{}\n") == ""


def test_a_failing_hook_stops_the_measurement(monkeypatch, corpus):
    failed = subprocess.CompletedProcess([], 1, b"", b"no such thing")
    monkeypatch.setattr(context.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(Trouble, match="the hook for SessionStart failed: no such thing"):
        context.measure(read_corpus(corpus()), [], "keyword")


@pytest.mark.battery
def test_a_large_project_also_has_the_notes_of_the_other_files(corpus):
    report = context.measure(read_corpus(corpus()), [read_corpus(CORPUS)], "keyword")
    alone = context.measure(read_corpus(corpus()), [], "keyword")
    assert (alone.notes, report.notes) == (3, 3 + len({note.key for note in read_corpus(CORPUS).project_notes}))
    assert report.large and report.scores.start_chars > alone.scores.start_chars
    assert (report.scores.always, report.scores.leaks) == (1.0, 0)


def test_the_clock_is_restored_when_the_corpus_is_stored(corpus):
    from holdfast.base import dates

    before = dates.clock
    context.measure(read_corpus(corpus()), [], "keyword")
    assert dates.clock is before


# --- the shipped corpus -----------------------------------------------------------------------------------------------


def measure_shipped_corpus(capsys, situation):
    assert main(["bench", "context", str(CORPUS), "--situation", situation, "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["files"]
    assert (report["file"], report["situation"], report["failed"], report["slow"]) == ("context.json", situation, 0, 0)
    return report["scores"]


def test_the_shipped_corpus_has_its_known_contents():
    shipped = read_corpus(CORPUS)
    assert (len(shipped.notes), len(shipped.current), len(shipped.facts), len(shipped.turns)) == (29, 25, 8, 20)
    kinds = Counter(prompt.kind for prompt in shipped.prompts)
    assert kinds == {"task": 4, "stale": 4, "paraphrase": 3, "error": 3, "question": 2, "history": 2, "other-language": 2}
    now = "\n".join([*[note.text for note in shipped.current.values()], *[turn.text for turn in shipped.turns]]).casefold()
    assert not [value for prompt in shipped.prompts for value in prompt.outdated if value.casefold() in now]


@pytest.mark.battery
def test_without_another_process_most_answers_are_shown(capsys):
    scores = measure_shipped_corpus(capsys, "keyword")
    assert scores["coverage"] >= 0.85 and scores["prompt_only"] >= 0.7
    assert (scores["always"], scores["stale"], scores["leaks"]) == (1.0, 0.0, 0)
    assert scores["noise"] <= 60 and scores["empty"] >= 0.9
    assert scores["start_chars"] <= 6000 and scores["prompt_chars"] <= 1200


@pytest.mark.battery
@pytest.mark.xdist_group("models")
def test_with_a_resident_process_more_answers_are_shown(capsys):
    scores = measure_shipped_corpus(capsys, "hybrid")
    assert scores["coverage"] >= 0.9 and scores["prompt_only"] >= 0.85
    assert (scores["always"], scores["stale"], scores["leaks"]) == (1.0, 0.0, 0)
    assert scores["noise"] <= 60 and scores["empty"] >= 0.9
    assert scores["start_chars"] <= 6000 and scores["prompt_chars"] <= 1200


def test_the_figures_are_printed_as_a_table(corpus, capsys):
    assert main(["bench", "context", str(corpus()), "--situation", "keyword"]) == 0
    said, told = capsys.readouterr()
    assert "tiny.json: 3 notes, 1 facts, 1 turns, 3 prompts, 2 unrelated prompts" in said
    assert "coverage: the answer is in S + A" in said and "keyword" in said and "keyword, 5 prompts" in told
