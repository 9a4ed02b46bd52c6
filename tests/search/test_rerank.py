"""Reranking in hybrid search: it changes the order of the best passages, and nothing else."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tiny_cross_encoder import write_tiny_cross_encoder

from holdfast.embedders import model_server
from holdfast.search import abstention, rerank
from holdfast.search.signals import SIGNALS
from holdfast.verbs.brief import relevance as brief_relevance

QUESTION = "when is the harbour open"
NOTES = {
    "hours": "The harbour is open from six in the morning",
    "dues": "Harbour dues: open the cash box in the harbour office",
    "ferry": "The ferry in the harbour leaves early, it is open at noon",
}


class Server(ThreadingHTTPServer):
    """A real rerank endpoint: relevant is what contains `word`; it records what it reads and can be made to fail."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.word, self.fails, self.seen = "ferry", False, []

    @property
    def setting(self):
        return f"endpoint:toy@http://127.0.0.1:{self.server_port}/v1"

    @property
    def asked(self):
        return len(self.seen)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.seen.append(asked)
        texts = asked["documents"]
        items = [{"index": row, "relevance_score": float(server.word in text)} for row, text in enumerate(texts)]
        body = json.dumps({"results": items}).encode()
        self.send_response(500 if server.fails else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setattr(model_server, "FIRST_PAUSE", 0.0)
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    monkeypatch.setenv("HOLDFAST_RERANKER", server.setting)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def plain(open_memory, monkeypatch):
    """The same home without a reranker."""
    with monkeypatch.context() as patch:
        patch.setenv("HOLDFAST_EMBEDDER", "static")
        patch.delenv("HOLDFAST_RERANKER", raising=False)
        memory = open_memory()
        memory.store_many([{"key": key, "text": text} for key, text in NOTES.items()])
        return memory


@pytest.fixture
def notes(server, plain, open_memory):
    return open_memory()


def keys(answer):
    return [hit.key for hit in answer]


def scores(answer):
    return {hit.key: hit.score for hit in answer}


# --- order ----------------------------------------------------------------------------------------------------------------


def test_a_relevant_passage_moves_up_by_at_most_the_weight(plain, notes):
    before, after = plain.recall(QUESTION), notes.recall(QUESTION)
    assert keys(before)[0] != "ferry" and keys(after)[0] == "ferry"
    assert after.mode == "hybrid" and not after.degraded
    added = {key: scores(after)[key] - scores(before)[key] for key in NOTES}
    assert added == pytest.approx({"hours": 0, "dues": 0, "ferry": rerank.WEIGHT}, abs=0.001)


def test_only_the_best_passages_are_read_and_they_stay_ahead(server, plain, open_memory):
    plain.store_many([{"key": f"pier-{n}", "text": f"Pier {n} of the harbour is open" + " today" * n} for n in range(40)])
    server.word = "today today today"
    before, after = plain.recall(QUESTION, limit=43), open_memory().recall(QUESTION, limit=43)
    assert len(server.seen[-1]["documents"]) == rerank.PASSAGES == 20
    assert keys(before)[:20] != keys(after)[:20] and set(keys(before)[:20]) == set(keys(after)[:20])
    assert keys(before)[20:] == keys(after)[20:]
    assert [scores(before)[key] for key in keys(after)[20:]] == [scores(after)[key] for key in keys(after)[20:]]


def test_explain_shows_what_the_reranker_added(notes):
    why = {hit.key: hit.why for hit in notes.recall(QUESTION, explain=True)}
    assert why["ferry"]["rerank"] == [1.0, 0.2] and why["hours"]["rerank"] == [0.0, 0.0]
    assert "rerank" in SIGNALS


def test_the_reranker_changes_neither_what_is_weak_nor_what_is_found(server, plain, open_memory):
    server.word = "e"  # all of them
    for question in (QUESTION, "what is recursion in programming", "explain harbour economics to a child please", "cash box"):
        before, after = plain.recall(question), open_memory().recall(question)
        assert {hit.key: hit.weak for hit in before} == {hit.key: hit.weak for hit in after}, question


def test_the_text_of_a_person_has_the_name_and_others_have_not(server, plain, open_memory):
    turns = [
        {"id": "1", "text": "I open the harbour at six", "role": "user", "speaker": "Ann"},
        {"id": "2", "text": "The harbour is open", "role": "assistant"},
    ]
    plain.log(turns, session="s1")
    open_memory().recall(QUESTION)
    read = server.seen[-1]["documents"]
    assert "Ann: I open the harbour at six" in read and "The harbour is open" in read and NOTES["hours"] in read


def test_long_texts_are_cut_off_before_they_are_sent(server, plain, open_memory):
    plain.store("harbour open " * 1000, key="long")
    open_memory().recall("harbour open " + "please " * 1000)
    assert max(map(len, server.seen[-1]["documents"])) == 2000
    assert len(server.seen[-1]["query"]) == 1000


# --- when it runs ---------------------------------------------------------------------------------------------------------


def test_only_hybrid_search_asks_it(server, notes):
    for mode in ("keyword", "semantic", "recent"):
        notes.recall(QUESTION, mode=mode)
    notes.recall(QUESTION, as_of="2020-01-01")
    notes.recall("nothing that any note has zzz", kind="fact")
    assert server.asked == 0
    notes.recall(QUESTION)
    assert server.asked == 1


def test_without_an_embedder_nothing_leaves_the_machine(server, plain, open_memory, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")
    assert open_memory().recall(QUESTION).mode == "keyword"
    assert server.asked == 0


def test_the_same_question_about_the_same_texts_is_asked_once(server, notes):
    first = notes.recall(QUESTION)
    assert notes.recall(QUESTION).hits == first.hits
    assert (server.asked, keys(notes.recall(QUESTION, limit=1))) == (1, ["ferry"])
    notes.recall("another question about the harbour")
    assert server.asked == 2
    notes.store("The ferry is late", key="ferry")
    notes.recall(QUESTION)
    assert server.asked == 3


# --- failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("promise-8")
def test_a_failing_reranker_leaves_the_answer_as_it_was_and_says_so(server, plain, notes):
    server.fails = True
    answer = notes.recall(QUESTION)
    assert answer.degraded and "the reranker was not used: the rerank endpoint 127.0.0.1" in answer.reason
    assert (keys(answer), scores(answer)) == (keys(plain.recall(QUESTION)), scores(plain.recall(QUESTION)))
    asked = server.asked
    assert notes.recall("is the harbour open").degraded  # it is not tried again at once
    assert server.asked == asked


def test_a_reranker_that_failed_is_tried_again_later(server, notes, monkeypatch):
    monkeypatch.setattr(rerank, "_RETRY_SECONDS", 0.0)
    server.fails = True
    assert notes.recall(QUESTION).degraded
    server.fails = False
    answer = notes.recall(QUESTION)
    assert not answer.degraded and keys(answer)[0] == "ferry"


@pytest.mark.parametrize("setting", ["model:ms-marco-minilm-l12", "onnx:/nowhere", "nonsense"])
def test_a_reranker_that_cannot_be_opened_leaves_the_answer_as_it_was(plain, open_memory, monkeypatch, setting):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    monkeypatch.setenv("HOLDFAST_RERANKER", setting)
    answer = open_memory().recall(QUESTION)
    assert keys(answer) == keys(plain.recall(QUESTION))
    assert answer.degraded and "the reranker was not used" in answer.reason


# --- languages ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def english(plain, open_memory, tmp_path, monkeypatch):
    """A memory whose reranker is a tiny cross-encoder that says that it only knows English."""
    folder = tmp_path / "reranker"
    folder.mkdir()
    write_tiny_cross_encoder(folder / "model.onnx")
    (folder / "holdfast.toml").write_text('tokenizer = "uncased"\nlanguages = "english"\n')
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    monkeypatch.setenv("HOLDFAST_RERANKER", f"onnx:{folder}")
    return open_memory()


def test_a_model_for_english_reads_english(plain, english):
    answer = english.recall(QUESTION, explain=True)
    assert not answer.degraded
    assert all(hit.why["rerank"][1] > 0.15 for hit in answer)


def test_a_model_for_english_skips_questions_in_other_languages(plain, english):
    question = "wann ist der harbour open"
    assert english.recall(question).hits == plain.recall(question).hits


def test_a_text_in_another_language_gets_the_mean_of_the_others(plain, english):
    plain.store("Der harbour ist open ab sechs Uhr und die Gebühr ist fällig", key="deutsch")
    added = {hit.key: hit.why["rerank"][1] for hit in english.recall(QUESTION, explain=True)}
    others = [added[key] for key in NOTES]
    assert added["deutsch"] == pytest.approx(sum(others) / len(others), abs=0.001)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When is my son's birthday?", True),
        ("The café is open – “until late” 🎉", True),
        ("PostgreSQL 16", True),
        ("", True),
        ("Wann ist der Hafen offen?", False),
        ("¿Cuándo abre el puerto?", False),
        ("Quand est-ce que le port est ouvert", False),
        ("港はいつ開きますか", False),
        ("Когда открыт порт", False),
    ],
)
def test_english_is_told_from_other_languages(text, expected):
    assert abstention.is_mostly_english(text) is expected


# --- briefings ------------------------------------------------------------------------------------------------------------


def test_a_prompt_brings_the_same_notes_in_another_order(server, plain, open_memory, monkeypatch):
    def find(memory):
        found = brief_relevance.find_matches(memory._context, QUESTION, "hybrid")
        return [(match.name, match.score) for match in found]

    monkeypatch.setattr("holdfast.search.vectorize.Vectorizer.compute_threshold", lambda *_: 0.1)
    before, after = find(plain), find(open_memory())
    assert server.asked == 1
    assert before[0][0] != "ferry.md" and after[0][0] == "ferry.md"
    assert sorted(before) == sorted(after)


def test_a_process_that_was_forked_during_a_retry_uses_the_reranker(server, notes, monkeypatch):
    monkeypatch.setattr(rerank, "_RETRY_SECONDS", 0.0)
    server.fails = True
    assert notes.recall(QUESTION).degraded
    server.fails = False
    reranking = notes._context.hybrid_search()._reranking
    reranking._retrying.acquire()  # as by a thread that does not exist after a fork
    assert notes.recall(QUESTION).degraded
    reranking.after_fork()
    assert not notes.recall(QUESTION).degraded
