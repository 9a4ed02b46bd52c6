"""`holdfast bench retrieval` and the comparison with peers: input, queries and reports."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from peers import runner
from peers import scale as peer_scale

from holdfast import Answer, Hit, NotFound, Scope, UsageError
from holdfast.base.record import field_names
from holdfast.cli import main
from holdfast_bench import retrieval
from holdfast_bench.retrieval import parse_date
from holdfast_bench.retrieval_cases import Case, Doc, Query, read_cases, select_half

SLICE = Path(__file__).parents[1] / "data" / "slice.jsonl"

CHAT = {
    "name": "chat",
    "docs": [
        {"id": "D1:1", "session": "1", "speaker": "Mara", "date": "2025-05-08", "text": "I have a grey cat"},
        {"id": "D1:2", "session": "1", "speaker": "assistant", "date": "2025-05-08", "text": "what is the cat called"},
        {"id": "D2:1", "session": "2", "speaker": "", "date": "2025-06-01T10:00:00Z", "text": "the boat is painted blue"},
        {"id": "n1", "session": "n1", "speaker": "", "date": "", "text": "use tabs in makefiles"},
    ],
    "queries": [
        {"id": "q1", "text": "grey cat", "kind": "single", "date": "2025-06-30", "gold": ["D1:1"]},
        {"id": "q2", "text": "tabs", "kind": "note", "date": None, "gold": ["n1"]},
        {"id": "q3", "text": "blue cat", "kind": "multi", "date": None, "gold": ["D1:1", "D2:1"]},
    ],
}


class StubMemory:
    """A stand-in for Memory that finds texts by common words."""

    def __init__(self, busy=0):
        self.texts, self.logged, self.stored, self.asked = {}, [], [], []
        self.busy = busy

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def log(self, turns, *, session, redact):
        self.logged += [(session, turn) for turn in turns]
        self.texts |= {turn["id"]: turn["text"] for turn in turns}

    def store_many(self, notes, redact):
        self.stored += notes
        self.texts |= {note["key"]: note["text"] for note in notes}

    def embed(self):
        self.busy = 0

    def recall(self, query, *, limit, mode, now=None):
        self.asked.append((query, limit, mode, now))
        words = set(query.split())
        scores = Counter({key: len(words & set(text.split())) for key, text in self.texts.items()})
        hits = [_hit(key, score) for key, score in scores.most_common(limit) if score] + [_hit("elsewhere", 0.1)]
        reason = f"{self.busy} left to embed" if self.busy > 0 else ""
        return Answer(tuple(hits), mode, bool(reason), reason)


def _hit(key, score):
    given = dict.fromkeys(field_names(Hit)) | {"kind": "turn", "scope": Scope("project", "bench"), "key": key, "score": score}
    return Hit(**given)


@pytest.fixture
def chat(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(CHAT) + "\n", encoding="utf-8")
    return path


def measure(path, memory=None, **options):
    memory = memory or StubMemory()
    return retrieval.measure(path, retrieval.Options(files=(path,), **options), lambda folder: memory), memory


def test_docs_with_a_speaker_are_logged_and_others_are_stored_as_notes(chat):
    _, memory = measure(chat)
    assert memory.logged == [
        ("1", {"id": "D1:1", "text": "I have a grey cat", "role": "user", "speaker": "Mara", "time": "2025-05-08T00:00:00Z"}),
        ("1", {"id": "D1:2", "text": "what is the cat called", "role": "assistant", "time": "2025-05-08T00:00:00Z"}),
    ]
    assert memory.stored == [
        {"key": "doc-2", "text": "the boat is painted blue", "valid_from": "2025-06-01T10:00:00Z"},
        {"key": "doc-3", "text": "use tabs in makefiles"},
    ]


def test_a_question_is_asked_with_the_usual_limit_then_deeper_and_with_its_date(chat):
    _, memory = measure(chat, mode="keyword")
    assert memory.asked[2:4] == [
        ("grey cat", retrieval.LIMIT, "keyword", "2025-06-30T00:00:00Z"),
        ("grey cat", retrieval.DEPTH, "keyword", "2025-06-30T00:00:00Z"),
    ]
    assert memory.asked[4] == ("tabs", retrieval.LIMIT, "keyword", None)


def test_figures_are_given_for_all_questions_and_each_kind(chat):
    report, _ = measure(chat)
    assert (report.cases, report.docs, report.questions, report.degraded) == (1, 4, 3, 0)
    assert list(report.kinds) == ["all", "multi", "note", "single"]
    assert report.kinds["all"].docs["recall@5"].mean == 1
    assert report.kinds["multi"].docs["mrr"].mean == 1
    assert report.docs_per_s > 0 and 0 < report.recall_p50_ms <= report.recall_p95_ms


def test_two_runs_give_the_same_figures(chat):
    assert measure(chat)[0].kinds == measure(chat)[0].kinds


def test_all_docs_are_embedded_before_the_first_question(chat):
    report, _ = measure(chat, StubMemory(busy=6))
    assert report.degraded == 0


def test_degraded_answers_are_reported_with_their_reason(chat):
    class NoEmbedder(StubMemory):
        def recall(self, *given, **named):
            return super().recall(*given, **named).replace(degraded=True, reason="no embedder", mode="keyword")

    report, _ = measure(chat, NoEmbedder())
    assert (report.degraded, report.reason, report.ran) == (3, "no embedder", ("keyword",))
    assert "3 answers were degraded: no embedder" in retrieval.format_report(report)


def test_a_half_is_every_second_case_or_question_of_a_single_case(chat):
    several = [Case(str(n), (), ()) for n in range(5)]
    assert [case.name for case in select_half(several, "A")] == ["0", "2", "4"]
    assert [case.name for case in select_half(several, "B")] == ["1", "3"]
    assert select_half(several, None) == several
    assert [query.id for query in select_half(read_cases(chat), "B")[0].queries] == ["q2"]
    report, _ = measure(chat, half="A")
    assert (report.half, report.questions) == ("A", 2)


def test_files_may_be_gzip(tmp_path):
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(CHAT).encode()))
    (case,) = read_cases(path)
    assert case.queries[0] == Query("q1", "grey cat", ("D1:1",), "single", "2025-06-30")
    assert case.docs[3] == Doc("n1", "use tabs in makefiles", "n1")


A = {"id": "a", "text": "b"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "no JSON: "), ("[]", "not a case: it is no object with fields"),
        ("{}", "not a case: it has no field `docs`"), ('{"name": "x"}', "not a case: it has no field `docs`"),
        ('{"name": "x", "docs": []}', "it has no field `queries`"), (({}, []), "it has no list in its field `docs`"),
        (([{"id": "a"}], []), "doc 1 has no field `text`"), (([A, "c"], []), "doc 2 is no object with fields"),
        (([A], [{"id": "q", "text": "t"}]), "query 1 has no field `gold`"),
        (([A], [{"id": "q", "text": " ", "gold": ["a"]}]), "the text of query 1 is empty or contains NUL"),
        (([{"id": "a", "text": "a\0"}], []), "the text of doc 1 is empty or contains NUL"),
        (([{"id": "a", "text": "a", "date": "nonsense"}], []), "the date of doc 1 cannot be read: 'nonsense'"),
        (([A], [{"id": "q", "text": "t", "gold": "a"}]), "query 1 has no list in its field `gold`"),
        (([A], [{"id": "q", "text": "t", "gold": ["z"]}]), "query 'q' has no gold, or gold that is not among the docs"),
        (([A], [{"id": "q", "text": "t", "gold": []}]), "query 'q' has no gold"), (([A, A], []), "two docs have the same id"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_a_case_is_named_with_the_reason(tmp_path, capsys, line, said):
    path = tmp_path / "bad.jsonl"
    if not isinstance(line, str):
        line = json.dumps({"name": "x", "docs": line[0], "queries": line[1]})
    path.write_text(json.dumps(CHAT) + "\n" + line + "\n", encoding="utf-8")
    assert main(["bench", "retrieval", str(path)]) == 2
    stderr = capsys.readouterr().err
    assert f"{path}, line 2: " in stderr and said in stderr and "Error:" not in stderr


def test_unreadable_files_are_rejected(tmp_path):
    with pytest.raises(NotFound):
        read_cases(tmp_path / "nothing.jsonl")
    (tmp_path / "odd.jsonl.gz").write_text("no gzip")
    with pytest.raises(UsageError, match="cannot be read"):
        read_cases(tmp_path / "odd.jsonl.gz")


def test_options_are_parsed(monkeypatch):
    asked = []
    monkeypatch.setattr(retrieval, "run", lambda options: asked.append(options) or 0)
    words = ["a", "--mode=semantic", "b", "--half", "B", "--limit-cases", "3", "--json", "--plot", "p.png"]
    assert main(["bench", "retrieval", *words]) == 0
    assert main(["bench", "retrieval", "a"]) == 0
    full = retrieval.Options((Path("a"), Path("b")), "semantic", "B", 3, True, Path("p.png"))
    assert asked == [full, retrieval.Options((Path("a"),))]


def test_the_command_measures_notes_in_a_real_home(tmp_path, capsys):
    path = tmp_path / "notes.jsonl"
    notes = [doc for doc in CHAT["docs"] if doc["id"] == "n1"]
    path.write_text(json.dumps({"name": "notes", "docs": notes, "queries": [CHAT["queries"][1]]}), encoding="utf-8")
    assert main(["bench", "retrieval", str(path), "--mode", "keyword", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["files"]
    assert report["kinds"]["all"]["docs"]["mrr"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert main(["bench", "retrieval", str(path), "--mode", "keyword"]) == 0
    assert "NDCG@10" in capsys.readouterr().out


@pytest.mark.battery
def test_a_plot_is_drawn(chat, tmp_path):
    report, _ = measure(chat)
    retrieval.check_plot(tmp_path / "figures.png")
    retrieval.draw_plot([report, report], tmp_path / "figures.png")
    assert (tmp_path / "figures.png").read_bytes().startswith(b"\x89PNG")


def test_an_impossible_plot_is_rejected_before_the_measurement(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="cannot draw"):
        retrieval.check_plot(tmp_path / "figures.txt")
    with pytest.raises(NotFound):
        retrieval.check_plot(tmp_path / "nowhere" / "figures.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match="matplotlib"):
        retrieval.run(retrieval.Options((SLICE,), plot=tmp_path / "figures.png"))


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("", None), ("2025-05-08", "2025-05-08T00:00:00Z"), ("2025-05-08T13:56:00Z", "2025-05-08T13:56:00Z"),
        ("1:56 pm on 8 May, 2023", "2023-05-08T00:00:00Z"), ("2023/04/10 (Mon) 17:50", "2023-04-10T00:00:00Z"),
        ("March-15-2024", "2024-03-15T00:00:00Z"), ("some day", None),
    ],
)  # fmt: skip
def test_dates_of_transcripts_are_parsed(date, expected):
    assert parse_date(date) == expected


def test_the_shipped_slice_has_its_known_contents():
    *chats, notes = read_cases(SLICE)
    assert [len(case.docs) for case in chats] == [40] * 6
    assert sum(len(case.queries) for case in chats) == 60
    kinds = Counter(query.kind for case in chats for query in case.queries)
    assert kinds == dict.fromkeys(("single-hop", "speaker", "date", "paraphrase", "multi-hop"), 12)
    assert len(notes.docs) == 40 and len(notes.queries) == 30
    assert all(parse_date(doc.date) for case in chats for doc in case.docs)
    assert not any(doc.date or doc.speaker for doc in notes.docs)


# --- peers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.battery
def test_a_peer_runs_in_its_own_process_and_one_that_cannot_is_a_row_with_the_reason(chat, tmp_path):
    def install(peer, cache):
        if peer.name == "chroma":
            raise runner.PeerError("cannot be installed: no such package")
        return sys.executable

    options = runner.Options((chat,), ("fts5", "chroma"), tmp_path / "cache")
    fts5, chroma = runner.compare(read_cases(chat), options, install)
    assert fts5.questions == 3 and not fts5.failed
    assert fts5.docs["any@5"].mean == 1
    assert fts5.docs_per_s > 0 and fts5.peak_mb > 1
    assert chroma.failed == "cannot be installed: no such package"
    table = runner.format_tables({"chat": [fts5, chroma]}, "").splitlines()
    assert table[0] == "chat"
    assert table[4].startswith("| fts5 3.") and "no such package" in table[5]
    assert len({line.count("|") for line in table[2:]}) == 1


def test_a_failing_peer_is_a_row_with_the_last_line_of_its_output(chat, tmp_path):
    options = runner.Options((chat,), ("chroma",), tmp_path)
    (row,) = runner.compare(read_cases(chat), options, lambda peer, cache: sys.executable)
    assert row.failed.startswith("did not run: ") and "chromadb" in row.failed


def test_a_peer_never_gets_the_gold_docs(chat):
    assert "gold" not in runner._encode_case(read_cases(chat)[0])


def test_the_options_of_the_comparison_are_parsed(tmp_path, capsys):
    assert runner.parse_args(["f", "--only", "mem0,chroma", "--cache", str(tmp_path)]).only == ("mem0", "chroma")
    assert runner.main(["--help"]) == 0 and "scripts/bench-peers" in capsys.readouterr().out
    assert runner.main(["f", "--only", "nobody"]) == 2
    assert runner.main(["f", "--nope"]) == 2 and "there is no option --nope" in capsys.readouterr().err
    assert runner.main([]) == 2
    assert runner.main([str(tmp_path / "nothing.jsonl")]) == 1
    assert runner.parse_args(["--scale", "10,200"]).scale == (10, 200)  # needs no file
    assert runner.main(["--scale", "0"]) == 2


def test_every_peer_has_an_adapter():
    modules = {path.stem for path in Path(runner.__file__).parent.glob("adapter_*.py")}
    assert modules == {peer.adapter for peer in runner.PEERS}


def test_rows_of_an_earlier_run_are_shown_and_marked(chat, tmp_path, capsys):
    rows = tmp_path / "rows.json"
    assert runner.main([str(chat), "--only", "fts5", "--rows", str(rows)]) == 0
    assert "†" not in capsys.readouterr().out
    saved = json.loads(rows.read_text())
    (title,) = saved
    saved[title][0] |= {"name": "chroma", "run": "2026-01-01T00:00:00Z"}  # a row of another peer from another day
    rows.write_text(json.dumps(saved))
    assert runner.main([str(chat), "--only", "fts5", "--rows", str(rows)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip().split()[0] for line in lines[4:6]] == ["fts5", "chroma"]
    assert ["†" in line for line in lines[4:]] == [False, True, False, True]
    rows.write_text('{"chat": [{"name": "fts5"}]}')
    assert runner.main([str(chat), "--only", "fts5", "--rows", str(rows)]) == 2


@pytest.mark.battery
def test_holdfast_is_measured_like_a_peer(chat, tmp_path):
    options = runner.Options((chat,), ("holdfast",), tmp_path)
    (row,) = runner.compare(read_cases(chat), options)
    assert row.failed == "" and row.questions == 3
    assert row.docs["any@5"].mean == 1
    assert row.docs_per_s > 0 and row.p95_ms >= row.p50_ms > 0 and row.peak_mb > 1


@pytest.mark.battery
def test_at_scale_the_input_is_reproducible_and_holdfast_finds_the_texts(tmp_path):
    first, second = list(peer_scale.generate_input(300)), list(peer_scale.generate_input(300))
    assert first == second and len(first) == 3  # the queries, then sessions of 200 and 100 docs
    docs = {doc["id"]: doc["text"] for line in first[1:] for doc in json.loads(line)}
    queries = json.loads(first[0])
    assert len(docs) == 300 and len(queries["warm"]) == 10 and len(queries["queries"]) == 40
    assert all(set(query["text"].split()) <= set(docs[query["id"]].split()) for query in queries["queries"])
    (row,) = runner.compare_at_scale(300, runner.Options((), ("holdfast",), tmp_path))
    assert row.failed == "" and row.docs == 300
    assert row.found > 0.8 and row.p50_ms > 0 and row.cpu_ms > 0


def test_only_peers_with_the_same_number_of_passages_are_compared():
    ours = peer_scale.ScaleRow("holdfast", "1", "", 1000, 9.0, 10.0, 20.0, 10.0, 1.0, 100.0)
    same = ours.replace(name="mem0-bm25", p50_ms=125.0, cpu_ms=50.0)
    fewer = ours.replace(name="mempalace", docs=500, p50_ms=40.0)
    lines = peer_scale.format_table("1,000 passages", [ours, same, fewer], set()).splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[4:]]
    assert [(row[6], row[8]) for row in cells] == [("1.0", "1.0"), ("12.5", "5.0"), ("", "")]


def test_a_peer_that_takes_too_long_to_fill_is_measured_with_the_docs_it_has(monkeypatch, tmp_path):
    monkeypatch.setattr(peer_scale, "FILL_SECONDS", 0)
    (row,) = runner.compare_at_scale(300, runner.Options((), ("holdfast",), tmp_path))
    assert row.docs == 0 and row.found == 0
