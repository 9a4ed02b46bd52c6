"""`holdfast bench retrieval` and the comparison with peers: what goes in, how it is asked for, what is printed."""

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
from holdfast.cli import main
from holdfast_bench import plot, retrieval
from holdfast_bench.cases import Case, Doc, Query, half, read
from holdfast_bench.ingest import moment

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
    """Finds by words in common, in the shape that Memory answers."""

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
    given = dict.fromkeys(Hit._fields) | {"kind": "turn", "scope": Scope("project", "bench"), "key": key, "score": score}
    return Hit(**given)


@pytest.fixture
def chat(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(CHAT) + "\n", encoding="utf-8")
    return path


def measured(path, memory=None, **given):
    memory = memory or StubMemory()
    return retrieval.measure(path, retrieval.Options(files=(path,), **given), lambda folder: memory), memory


def test_what_was_said_is_logged_and_what_was_noted_is_stored(chat):
    _, memory = measured(chat)
    assert memory.logged == [
        ("1", {"id": "D1:1", "text": "I have a grey cat", "role": "user", "speaker": "Mara", "time": "2025-05-08T00:00:00Z"}),
        ("1", {"id": "D1:2", "text": "what is the cat called", "role": "assistant", "time": "2025-05-08T00:00:00Z"}),
    ]
    assert memory.stored == [
        {"key": "doc-2", "text": "the boat is painted blue", "valid_from": "2025-06-01T10:00:00Z"},
        {"key": "doc-3", "text": "use tabs in makefiles"},
    ]


def test_questions_are_asked_as_a_user_would_and_then_deeper_with_their_now(chat):
    _, memory = measured(chat, mode="keyword")
    assert memory.asked[2:4] == [
        ("grey cat", retrieval.USUAL, "keyword", "2025-06-30T00:00:00Z"),
        ("grey cat", retrieval.DEPTH, "keyword", "2025-06-30T00:00:00Z"),
    ]
    assert memory.asked[4] == ("tabs", retrieval.USUAL, "keyword", None)


def test_the_figures_of_each_kind_and_of_all(chat):
    report, _ = measured(chat)
    assert (report.cases, report.docs, report.questions, report.degraded) == (1, 4, 3, 0)
    assert list(report.kinds) == ["all", "multi", "note", "single"]
    assert report.kinds["all"].docs["recall@5"].mean == 1
    assert report.kinds["multi"].docs["mrr"].mean == 1
    assert report.docs_per_s > 0 and 0 < report.recall_p50_ms <= report.recall_p95_ms


def test_two_runs_give_the_same_figures(chat):
    assert measured(chat)[0].kinds == measured(chat)[0].kinds


def test_everything_is_embedded_before_anything_is_asked(chat):
    report, _ = measured(chat, StubMemory(busy=6))
    assert report.degraded == 0


def test_an_excuse_is_told(chat):
    class NoEmbedder(StubMemory):
        def recall(self, *given, **named):
            return super().recall(*given, **named).replace(degraded=True, reason="no embedder", mode="keyword")

    report, _ = measured(chat, NoEmbedder())
    assert (report.degraded, report.reason, report.ran) == (3, "no embedder", ("keyword",))
    assert "3 answers were degraded: no embedder" in retrieval.as_text(report)


def test_halves_are_of_cases_or_of_the_questions_of_a_single_one(chat):
    several = [Case(str(n), (), ()) for n in range(5)]
    assert [case.name for case in half(several, "A")] == ["0", "2", "4"]
    assert [case.name for case in half(several, "B")] == ["1", "3"]
    assert half(several, None) == several
    assert [query.id for query in half(read(chat), "B")[0].queries] == ["q2"]
    report, _ = measured(chat, half="A")
    assert (report.half, report.questions) == ("A", 2)


def test_files_may_be_gzip(tmp_path):
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(CHAT).encode()))
    (case,) = read(path)
    assert case.queries[0] == Query("q1", "grey cat", ("D1:1",), "single", "2025-06-30")
    assert case.docs[3] == Doc("n1", "use tabs in makefiles", "n1")


A = {"id": "a", "text": "b"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "no JSON: "), ("[]", "not a case: it is no object with fields"),
        ("{}", "not a case: it has no field `name`"), ('{"name": "x"}', "not a case: it has no field `docs`"),
        ('{"name": "x", "docs": []}', "it has no field `queries`"), (({}, []), "it has no list in its field `docs`"),
        (([{"id": "a"}], []), "doc 1 has no field `text`"), (([A, "c"], []), "doc 2 is no object with fields"),
        (([A], [{"id": "q", "text": "t"}]), "query 1 has no field `gold`"),
        (([A], [{"id": "q", "text": "t", "gold": "a"}]), "query 1 has no list in its field `gold`"),
        (([A], [{"id": "q", "text": "t", "gold": ["z"]}]), "query 'q' has no gold, or gold that is not among the docs"),
        (([A], [{"id": "q", "text": "t", "gold": []}]), "query 'q' has no gold"), (([A, A], []), "two docs have the same id"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_case_is_named_and_what_it_lacks_is_said_in_words(tmp_path, capsys, line, said):
    path = tmp_path / "bad.jsonl"
    if not isinstance(line, str):
        line = json.dumps({"name": "x", "docs": line[0], "queries": line[1]})
    path.write_text(json.dumps(CHAT) + "\n" + line + "\n", encoding="utf-8")
    assert main(["bench", "retrieval", str(path)]) == 2
    told = capsys.readouterr().err
    assert f"{path}, line 2: " in told and said in told and "Error:" not in told


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(NotFound):
        read(tmp_path / "nothing.jsonl")
    (tmp_path / "odd.jsonl.gz").write_text("no gzip")
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "odd.jsonl.gz")


def test_words_are_understood(monkeypatch):
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
def test_a_picture_is_drawn(chat, tmp_path):
    report, _ = measured(chat)
    plot.ready(tmp_path / "figures.png")
    plot.draw([report, report], tmp_path / "figures.png")
    assert (tmp_path / "figures.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_drawn_is_refused_before_the_work(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="cannot draw"):
        plot.ready(tmp_path / "figures.txt")
    with pytest.raises(NotFound):
        plot.ready(tmp_path / "nowhere" / "figures.png")
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
def test_dates_as_transcripts_write_them(date, expected):
    assert moment(date) == expected


def test_the_slice_we_ship_is_what_it_should_be():
    *chats, notes = read(SLICE)
    assert [len(case.docs) for case in chats] == [40] * 6
    assert sum(len(case.queries) for case in chats) == 60
    kinds = Counter(query.kind for case in chats for query in case.queries)
    assert kinds == dict.fromkeys(("single-hop", "speaker", "date", "paraphrase", "multi-hop"), 12)
    assert len(notes.docs) == 40 and len(notes.queries) == 30
    assert all(moment(doc.date) for case in chats for doc in case.docs)
    assert not any(doc.date or doc.speaker for doc in notes.docs)


# --- peers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.battery
def test_a_floor_runs_in_a_process_of_its_own_and_a_peer_that_cannot_is_a_row_that_says_why(chat, tmp_path):
    def python(peer, cache):
        if peer.name == "chroma":
            raise runner.Failed("cannot be installed: no such package")
        return sys.executable

    options = runner.Options((chat,), ("fts5", "chroma"), tmp_path / "cache")
    fts5, chroma = runner.compare(read(chat), options, python)
    assert fts5.questions == 3 and not fts5.failed
    assert fts5.docs["any@5"].mean == 1
    assert fts5.docs_per_s > 0 and fts5.peak_mb > 1
    assert chroma.failed == "cannot be installed: no such package"
    table = runner.as_markdown({"chat": [fts5, chroma]}, "").splitlines()
    assert table[0] == "chat"
    assert table[4].startswith("| fts5 3.") and "no such package" in table[5]
    assert len({line.count("|") for line in table[2:]}) == 1


def test_a_peer_that_breaks_is_a_row_with_its_last_words(chat, tmp_path):
    options = runner.Options((chat,), ("langgraph",), tmp_path)
    (row,) = runner.compare(read(chat), options, lambda peer, cache: sys.executable)
    assert row.failed.startswith("did not run: ") and "langgraph" in row.failed


def test_a_peer_never_sees_the_answers(chat):
    assert "gold" not in runner._asked(read(chat)[0])


def test_the_words_of_the_comparison(tmp_path, capsys):
    assert runner.parse(["f", "--only", "mem0,chroma", "--cache", str(tmp_path)]).only == ("mem0", "chroma")
    assert runner.main(["--help"]) == 0 and "scripts/bench-peers" in capsys.readouterr().out
    assert runner.main(["f", "--only", "nobody"]) == 2
    assert runner.main(["f", "--nope"]) == 2 and "there is no option --nope" in capsys.readouterr().err
    assert runner.main([]) == 2
    assert runner.main([str(tmp_path / "nothing.jsonl")]) == 1
    assert runner.parse(["--scale", "10,200"]).scale == (10, 200)  # which needs no file
    assert runner.main(["--scale", "0"]) == 2


def test_every_peer_has_an_adapter():
    there = {path.stem for path in Path(runner.__file__).parent.glob("with_*.py")}
    assert there == {peer.adapter for peer in runner.PEERS}


def test_a_peer_that_is_not_run_now_is_shown_from_an_earlier_run_and_marked(chat, tmp_path, capsys):
    rows = tmp_path / "rows.json"
    assert runner.main([str(chat), "--only", "fts5", "--rows", str(rows)]) == 0
    assert "†" not in capsys.readouterr().out
    kept = json.loads(rows.read_text())
    (title,) = kept
    kept[title][0] |= {"name": "chroma", "run": "2026-01-01T00:00:00Z"}  # what another peer measured another day
    rows.write_text(json.dumps(kept))
    assert runner.main([str(chat), "--only", "fts5", "--rows", str(rows)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip().split()[0] for line in lines[4:6]] == ["fts5", "chroma"]
    assert ["†" in line for line in lines[4:]] == [False, True, False, True]
    rows.write_text('{"chat": [{"name": "fts5"}]}')
    assert runner.main([str(chat), "--only", "fts5", "--rows", str(rows)]) == 2


@pytest.mark.battery
def test_holdfast_is_a_peer_of_the_same_run_with_the_same_measures(chat, tmp_path):
    options = runner.Options((chat,), ("holdfast",), tmp_path)
    (row,) = runner.compare(read(chat), options)
    assert row.failed == "" and row.questions == 3
    assert row.docs["any@5"].mean == 1
    assert row.docs_per_s > 0 and row.p95_ms >= row.p50_ms > 0 and row.peak_mb > 1


@pytest.mark.battery
def test_at_scale_every_peer_gets_the_same_texts_and_holdfast_finds_them(tmp_path):
    first, second = list(peer_scale.data(300)), list(peer_scale.data(300))
    assert first == second and len(first) == 3  # the questions, then sessions of 200 and 100
    docs = {doc["id"]: doc["text"] for line in first[1:] for doc in json.loads(line)}
    asked = json.loads(first[0])
    assert len(docs) == 300 and len(asked["warm"]) == 10 and len(asked["queries"]) == 40
    assert all(set(query["text"].split()) <= set(docs[query["id"]].split()) for query in asked["queries"])
    (row,) = runner.at_scale(300, runner.Options((), ("holdfast",), tmp_path))
    assert row.failed == "" and row.docs == 300
    assert row.found > 0.8 and row.p50_ms > 0 and row.cpu_ms > 0


def test_only_what_has_as_many_passages_is_compared():
    ours = peer_scale.Row("holdfast", "1", "", 1000, 9.0, 10.0, 20.0, 10.0, 1.0, 100.0)
    same = ours.replace(name="mem0-bm25", p50_ms=125.0, cpu_ms=50.0)
    fewer = ours.replace(name="mempalace", docs=500, p50_ms=40.0)
    lines = peer_scale.as_markdown("1,000 passages", [ours, same, fewer], set()).splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[4:]]
    assert [(row[6], row[8]) for row in cells] == [("1.0", "1.0"), ("12.5", "5.0"), ("", "")]


def test_a_peer_that_takes_too_long_to_fill_is_measured_with_what_it_has(monkeypatch, tmp_path):
    monkeypatch.setattr(peer_scale, "PATIENCE", 0)
    (row,) = runner.at_scale(300, runner.Options((), ("holdfast",), tmp_path))
    assert row.docs == 0 and row.found == 0
