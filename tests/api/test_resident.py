"""A resident process answers recalls of short commands; without one everything works too."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

from holdfast.api import resident
from holdfast.api.resident import Resident, parse_answer, recall
from holdfast.cli import main
from holdfast.errors import Busy
from holdfast.models import Answer


@pytest.fixture
def staying(home, memory, tmp_path):
    """A resident process on the test's home, started as a user starts it."""
    memory.store("harbour words", key="k")
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "resident", "--home", str(home)], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert "answering" in process.stderr.readline()
    yield process
    process.send_signal(signal.SIGINT)
    process.wait(60)
    process.stderr.close()


def test_where_nobody_stays_there_is_nobody_to_ask(home, memory):
    assert not resident.is_running(str(home))
    assert recall(str(home), {"project": "demo"}, {"query": "harbour"}) is None


def test_it_answers_as_the_caller_would(home, memory, staying):
    told = recall(str(home), {"project": "demo"}, {"query": "harbour", "limit": 5})
    own = memory.recall("harbour", limit=5)
    assert [hit.key for hit in told] == [hit.key for hit in own] == ["k"]
    assert told[0].scope == own[0].scope and told[0].source == own[0].source and told.mode == own.mode


def test_another_project_is_told_nothing(home, staying):
    assert recall(str(home), {"project": "other"}, {"query": "harbour"}).hits == ()


def test_a_store_of_another_process_is_in_its_next_answer(home, memory, staying):
    recall(str(home), {"project": "demo"}, {"query": "harbour"})
    memory.store("lighthouse words", key="new")
    assert [hit.key for hit in recall(str(home), {"project": "demo"}, {"query": "lighthouse"})] == ["new"]


def test_the_socket_is_the_users_alone(home, staying):
    mode = os.stat(home / "run" / resident.SOCKET_NAME).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600


def test_the_command_line_asks_it_without_a_word(home, staying, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "recall", "harbour", "--json", "--home", str(home), "--project", "demo"],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert [hit["key"] for hit in told["hits"]] == ["k"]
    assert told["reason"] == "no embedder is set: keyword search ran"  # a reason that only hybrid mode gives


def test_the_command_line_searches_by_it_too(home, staying, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "search", "harbour", "--json", "--home", str(home), "--project", "demo"],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert [one["snippet"] for one in told["results"]] == ["harbour words"]
    assert told["reason"] == "no embedder is set: keyword search ran"  # a reason that only hybrid mode gives


@pytest.mark.parametrize("sent", [b"\n", b"{}\n", b"[]\n", b"\xff\n", b'{"who": {}, "asked": {"bogus": 1}}\n', b"no newline",
                                  b'{"who": [], "asked": {"query": "x"}}\n', b"[" * 100_000 + b"\n"])  # fmt: skip
def test_nonsense_gets_an_error_and_it_goes_on(home, staying, sent):
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(home / "run" / resident.SOCKET_NAME))
        caller.sendall(sent)
        caller.shutdown(socket.SHUT_WR)
        assert "error" in json.loads(caller.makefile().read())
    assert recall(str(home), {"project": "demo"}, {"query": "harbour"}) is not None


def test_a_second_one_is_refused(home, staying, open_memory):
    with pytest.raises(Busy, match="another resident process"):
        Resident(str(home), open_memory).serve()


def test_a_socket_left_by_one_that_died_hinders_nobody(home, memory, staying):
    staying.kill()
    staying.wait()
    assert resident.is_running(str(home))
    assert recall(str(home), {"project": "demo"}, {"query": "harbour"}) is None
    assert [hit.key for hit in memory.recall("harbour")] == ["k"]


def test_it_goes_by_the_settings_as_they_are_now(home, memory, tmp_path, monkeypatch):
    monkeypatch.delenv("HOLDFAST_EMBEDDER")
    memory.store("harbour words", key="k")
    settings = home / "config.toml"
    settings.write_text('[search]\nembedder = "none"\n')
    words = [sys.executable, "-m", "holdfast", "resident", "--home", str(home)]
    staying = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert "answering" in staying.stderr.readline()
        assert "no embedder" in recall(str(home), {"project": "demo"}, {"query": "harbour"}).reason
        settings.write_text('[search]\nembedder = "static"\n')
        told = recall(str(home), {"project": "demo"}, {"query": "harbour"})
        assert (told.mode, told.degraded, told[0].key) == ("hybrid", False, "k")
    finally:
        staying.send_signal(signal.SIGINT)
        staying.wait(60)
        staying.stderr.close()


def test_an_answer_survives_the_way_through_json(memory):
    memory.store("harbour words", key="k", tags=["a", "b"])
    answer = memory.recall("harbour", mode="keyword")
    assert parse_answer(json.loads(json.dumps(answer.as_dict()))) == answer


class Slow:
    """A memory that answers when the test allows it."""

    def __init__(self):
        self.asked, self.answers, self.closed = threading.Event(), threading.Event(), threading.Event()

    def recall(self, query, **asked):
        self.asked.set()
        assert self.answers.wait(30)
        assert not self.closed.is_set(), "closed in the middle of a recall"
        return Answer((), "keyword", False, "")

    def close(self):
        self.closed.set()


@pytest.fixture
def in_thread(home):
    """A resident in this process, with memories of the test."""
    home.mkdir(mode=0o700)
    opened, ready = queue.Queue(), threading.Event()
    opened.slow = True

    def opens(**who):
        opened.put(one := Slow())
        if not opened.slow:
            one.answers.set()
        return one

    staying = Resident(str(home), opens)
    thread = threading.Thread(target=staying.serve, args=(lambda _: ready.set(),))
    thread.start()
    assert ready.wait(30)
    yield opened
    staying.stop()
    thread.join(30)


@pytest.mark.parametrize("why", ["settings", "room"])
def test_a_memory_in_use_is_not_closed(home, in_thread, why):
    answers = []
    caller = threading.Thread(target=lambda: answers.append(recall(str(home), {"project": "demo"}, {"query": "harbour"})))
    caller.start()
    first = in_thread.get(timeout=30)
    assert first.asked.wait(30)
    if why == "settings":
        (home / "config.toml").write_text('[search]\nembedder = "none"\n')
    in_thread.slow = False
    for number in range(70):
        assert recall(str(home), {"project": f"p{number}"}, {"query": "x"}) is not None
    assert not first.closed.is_set()
    first.answers.set()
    caller.join(30)
    assert answers[0].mode == "keyword"
    assert why == "room" or first.closed.wait(30)  # after it was returned


def test_listening_leaves_the_umask_of_the_process_alone(home, tmp_path, monkeypatch):
    home.mkdir(mode=0o700)

    def no_umask(mode):
        raise AssertionError("the umask is every thread's")

    monkeypatch.setattr(os, "umask", no_umask)
    ready = threading.Event()
    staying = Resident(str(home), lambda **who: Slow())
    thread = threading.Thread(target=staying.serve, args=(lambda _: ready.set(),))
    thread.start()
    assert ready.wait(30)
    assert stat.S_IMODE(os.stat(home / "run" / resident.SOCKET_NAME).st_mode) == 0o600
    staying.stop()
    thread.join(30)


def test_a_suspended_one_delays_a_command_for_some_seconds_only(home, memory, staying, monkeypatch, capsys):
    monkeypatch.setattr(resident, "SECONDS", 0.3)
    staying.send_signal(signal.SIGSTOP)
    try:
        assert main(["--home", str(home), "--project", "demo", "recall", "harbour"]) == 0
        told = capsys.readouterr()
        assert "did not answer within 0.3 seconds" in told.err and "harbour words" in told.out
        assert resident.find_matches(str(home), {"project": "demo"}, "harbour", 0.3) is None
    finally:
        staying.send_signal(signal.SIGCONT)
