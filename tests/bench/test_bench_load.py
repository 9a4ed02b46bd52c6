"""`holdfast bench`: what it asks for, and that nothing of it stays. `load`: a gateway, its framework without it, and bare
writes, pressed on in one run."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from waiting import until

from holdfast.cli import main
from holdfast_bench import load, speed
from holdfast_bench.floors import program
from holdfast_bench.load_client import press, request
from holdfast_bench.progress import started


def bench(*words):
    return main(["bench", *words])


@pytest.mark.battery
def test_each_kind_of_request_is_measured_against_its_floors_and_none_is_refused(capsys):
    assert bench("load", "--notes", "40", "--seconds", "0.3", "--workers", "1", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["load"]
    assert [(row["what"], row["refused"]) for row in rows] == [
        ("recall, keyword", 0), ("recall, keyword", 0), ("recall, hybrid", 0), ("recall, hybrid", 0), ("store", 0),
        ("store", 0),
    ]  # fmt: skip
    assert all(row["per_second"] > 0 and row["floor_per_second"] > 0 and row["p99_ms"] >= row["p50_ms"] for row in rows)


@pytest.mark.battery
def test_on_a_store_the_floor_is_a_bare_transaction(capsys, postgres_url):
    assert bench("load", "--notes", "40", "--seconds", "0.3", "--workers", "1", "--store", postgres_url, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["load"]
    assert rows[-1]["floor"].startswith("bare transactions") and not any(row["refused"] for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("load --notes", "--notes needs a value"), ("load --notes many", "--notes cannot be 'many'"),
        ("load --workers 0", "--workers cannot be '0'"), ("load --seconds 0", "--seconds cannot be '0'"),
        ("load --seconds nan", "--seconds cannot be 'nan'"), ("speed --sizes -1", "--sizes cannot be '-1'"),
        ("speed --bogus", "there is no option --bogus"), ("retrieval f --mode recent", "--mode cannot be 'recent'"),
        ("retrieval f --half C", "--half cannot be 'C'"), ("retrieval f --limit-cases 0", "--limit-cases cannot be 0"),
        ("retrieval f --mode", "--mode needs a value"), ("retrieval --half A", "FILE is missing"),
        ("speed --sizes ,", "--sizes cannot be ','"), ("speed --sizes=", "--sizes cannot be ''"),
        ("speed --sizes ,,", "N,N: how many notes"), ("speed --passages=", "--passages cannot be ''"),
        ("load --workers ,", "--workers cannot be ','"), ("load --workers=", "N,N: how many processes answer"),
        ("load --notes ,", "--notes cannot be ','"), ("load --notes=", "N,N: how many notes there are"),
    ],
)  # fmt: skip
def test_words_that_mean_nothing_are_refused_before_anything_is_measured(capsys, monkeypatch, words, said):
    for measured in (speed, load):
        monkeypatch.setattr(measured, "run", lambda *_: 0)
    assert bench(*words.split()) == 2
    assert said in capsys.readouterr().err


def test_words_are_understood_on_either_side(monkeypatch):
    asked = []
    monkeypatch.setattr(speed, "run", lambda *given: asked.append(given) or 0)
    monkeypatch.setattr(load, "run", lambda options: asked.append(options) or 0)
    assert main(["--json", "bench", "speed", "--quick", "--seed", "0"]) == 0
    assert main(["bench", "speed", "--sizes", "30,20,30", "--passages", ","]) == 0
    assert main(["--store", "postgresql://x/y", "bench", "load", "--workers=2,1", "--seconds", "0.5", "--json"]) == 0
    assert main(["bench", "load"]) == 0
    assert asked == [
        ((1_000, 10_000), (1_000, 10_000), 0, True), ((20, 30), (), 1, False),
        load.Options((10_000,), (1, 2), 0.5, "postgresql://x/y", True), load.Options(),
    ]  # fmt: skip


def of_folder(folder):
    """The command lines of the processes that know of that folder by their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if bytes(folder) in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_bytes())
    return found


SPEED, LOAD = "speed --sizes 30 --passages ,", "load --notes 30 --workers 2 --seconds 0.5"


@pytest.mark.battery
@pytest.mark.parametrize(
    ("words", "child", "many", "sign"),
    [
        (SPEED, b"hook", 1, signal.SIGTERM), (SPEED, b"hook", 1, signal.SIGHUP), (SPEED, b"hook", 1, signal.SIGINT),
        (LOAD, b"bench.bare", 1, signal.SIGTERM), (LOAD, b"bench", 10, signal.SIGTERM), (LOAD, b"serve", 3, signal.SIGHUP),
        ("retrieval CASES --mode keyword", b"", 0, signal.SIGTERM), ("context CORPUS", b"hook", 1, signal.SIGINT),
        pytest.param(
            "context CORPUS --situation hybrid", b"resident", 1, signal.SIGTERM, marks=pytest.mark.xdist_group("models")
        ),
    ],
)  # fmt: skip
def test_whoever_ends_it_ends_all_it_started_and_nothing_is_left(tmp_path, words, child, many, sign):
    temp, cases = tmp_path / "temp", tmp_path / "cases.jsonl"
    temp.mkdir()
    docs = [{"id": f"d{number}", "text": f"words {number}"} for number in range(20_000)]
    cases.write_text(json.dumps({"name": "x", "docs": docs, "queries": [{"id": "q", "text": "words", "gold": ["d1"]}]}))
    named = {"CASES": str(cases), "CORPUS": str(Path(__file__).parents[1] / "data" / "context.json")}
    command = [*program(), "bench", *[named.get(word, word) for word in words.split()]]
    with started(command, env={**os.environ, "TMPDIR": str(temp)}, stderr=subprocess.PIPE) as running:
        until(lambda: list(temp.glob("*/*")) and sum([child in line for line in of_folder(temp)]) >= many)
        assert running.poll() is None
        running.send_signal(sign)
        said = running.communicate(timeout=60)[1]
    assert (running.returncode, b"Traceback" in said) == (130, False), said
    assert list(temp.iterdir()) == []
    until(lambda: not of_folder(temp))


@pytest.mark.battery
def test_who_presses_ctrl_c_again_and_again_leaves_nothing_behind(tmp_path):
    command, env = [*program(), "bench", *SPEED.split()], {**os.environ, "TMPDIR": str(tmp_path)}
    with started(command, env=env, stderr=subprocess.PIPE) as running:
        until(lambda: list(tmp_path.glob("*/*")))
        for sign in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            running.send_signal(sign)
            running.poll()
        said = running.communicate(timeout=60)[1]
    assert (running.returncode, b"Traceback" in said) == (130, False), said
    assert list(tmp_path.iterdir()) == []


class _Hesitant(threading.Thread):
    """A server that answers the first request on a connection at once, and any other when nobody has hung up meanwhile."""

    def __init__(self, connections):
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections = connections
        self.address = self._listener.getsockname()
        self.unheard = 0

    def run(self):
        with self._listener, contextlib.ExitStack() as stack:
            callers = [stack.enter_context(self._listener.accept()[0]) for _ in range(self._connections)]
            for caller in callers:
                self._answer(caller)
            for caller in callers:
                caller.recv(4096)
                hung_up, _, _ = select.select([caller], [], [], 0.2)
                self.unheard += bool(hung_up)
                caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def _answer(self, caller):
        caller.recv(4096)
        caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_what_is_under_way_when_the_time_is_over_is_waited_for_and_not_counted():
    server = _Hesitant(3)
    server.start()
    pressed = press(server.address, itertools.repeat(request("GET", "/", b"")), 3, 0.0)
    server.join(30)
    assert (pressed.answers, pressed.refused, server.unheard) == (3, 0, 0)
