"""`holdfast bench`: its options, and that it leaves nothing behind; `holdfast bench load`: its rows and its load client."""

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
from wait import wait_until

from holdfast.cli import main
from holdfast_bench import load, speed
from holdfast_bench.load import encode_request, send_requests
from holdfast_bench.processes import holdfast_command, start_process


def run_bench(*arguments):
    return main(["bench", *arguments])


KINDS = ["read", "recall, keyword", "recall, hybrid", "store"]
QUICK = ("load", "--agents", "1,3", "--notes", "40", "--seconds", "0.3", "--json")


@pytest.mark.battery
def test_each_kind_of_request_is_measured_beside_the_plain_service_and_none_is_refused(capsys):
    assert run_bench(*QUICK) == 0
    rows = json.loads(capsys.readouterr().out)["load"]
    assert [(row["agents"], row["what"], row["refused"]) for row in rows] == [(n, kind, 0) for n in (1, 3) for kind in KINDS]
    assert all(row["per_second"] > 0 and row["p99_ms"] >= row["p50_ms"] and row["memory_mb"] > 10 for row in rows)
    assert [row["floor_per_second"] > 0 for row in rows] == [True, True, False, True] * 2


@pytest.mark.battery
def test_on_postgres_the_plain_service_uses_the_same_server(capsys, postgres_url):
    assert run_bench(*QUICK, "--store", postgres_url) == 0
    rows = json.loads(capsys.readouterr().out)["load"]
    assert [(row["agents"], row["what"], row["refused"]) for row in rows] == [(n, kind, 0) for n in (1, 3) for kind in KINDS]
    assert rows[3]["target"] == "≥ 0.7x"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("load --notes", "--notes needs a value"), ("load --notes many", "--notes cannot be 'many'"),
        ("load --workers 0", "--workers cannot be '0'"), ("load --seconds 0", "--seconds cannot be '0'"),
        ("load --seconds nan", "--seconds cannot be 'nan'"), ("speed --sizes -1", "--sizes cannot be '-1'"),
        ("speed --bogus", "unknown option --bogus"), ("retrieval f --mode recent", "--mode cannot be 'recent'"),
        ("retrieval f --half C", "--half cannot be 'C'"), ("retrieval f --limit-cases 0", "--limit-cases cannot be 0"),
        ("retrieval f --mode", "--mode needs a value"), ("retrieval --half A", "FILE is missing"),
        ("speed --sizes ,", "--sizes cannot be ','"), ("speed --sizes=", "--sizes cannot be ''"),
        ("speed --sizes ,,", "N,N: Numbers of notes"), ("speed --passages=", "--passages cannot be ''"),
        ("load --workers ,", "--workers cannot be ','"), ("load --workers=", "N,N: Numbers of gateway processes"),
        ("load --notes ,", "--notes cannot be ','"), ("load --notes=", "N,N: Numbers of notes"),
    ],
)  # fmt: skip
def test_wrong_options_are_rejected_before_anything_is_measured(capsys, monkeypatch, words, said):
    for command in (speed, load):
        monkeypatch.setattr(command, "run", lambda *_: 0)
    assert run_bench(*words.split()) == 2
    assert said in capsys.readouterr().err


def test_options_may_stand_before_and_after_the_command(monkeypatch):
    calls = []
    monkeypatch.setattr(speed, "run", lambda *arguments: calls.append(arguments) or 0)
    monkeypatch.setattr(load, "run", lambda options: calls.append(options) or 0)
    assert main(["--json", "bench", "speed", "--quick", "--seed", "0"]) == 0
    assert main(["bench", "speed", "--sizes", "30,20,30", "--passages", ","]) == 0
    assert main(["--store", "postgresql://x/y", "bench", "load", "--workers=2,1", "--seconds", "0.5", "--json"]) == 0
    assert main(["bench", "load"]) == 0
    assert calls == [
        ((1_000, 10_000), (1_000, 10_000), 0, True, None), ((20, 30), (), 1, False, None),
        load.Options(workers=(1, 2), seconds=0.5, store="postgresql://x/y", json=True), load.Options(),
    ]  # fmt: skip


def processes_using(folder):
    """Return the command lines of the processes with this folder in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if bytes(folder) in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes())
    return found


SPEED, LOAD = "speed --sizes 30 --passages ,", "load --agents 2 --notes 30 --workers 2 --seconds 0.5"


@pytest.mark.battery
@pytest.mark.parametrize(
    ("words", "child", "count", "number"),
    [
        (SPEED, b"hook", 1, signal.SIGTERM), (SPEED, b"hook", 1, signal.SIGHUP), (SPEED, b"hook", 1, signal.SIGINT),
        (LOAD, b"plain_service", 1, signal.SIGTERM), (LOAD, b"serve", 3, signal.SIGHUP),
        ("retrieval CASES --mode keyword", b"", 0, signal.SIGTERM), ("context CORPUS", b"hook", 1, signal.SIGINT),
        pytest.param(
            "context CORPUS --situation hybrid", b"resident", 1, signal.SIGTERM, marks=pytest.mark.xdist_group("models")
        ),
    ],
)  # fmt: skip
def test_a_signal_ends_a_benchmark_and_all_its_processes_and_removes_its_folder(tmp_path, words, child, count, number):
    temp, cases = tmp_path / "temp", tmp_path / "cases.jsonl"
    temp.mkdir()
    docs = [{"id": f"d{number}", "text": f"words {number}"} for number in range(20_000)]
    cases.write_text(json.dumps({"name": "x", "docs": docs, "queries": [{"id": "q", "text": "words", "gold": ["d1"]}]}))
    paths = {"CASES": str(cases), "CORPUS": str(Path(__file__).parents[1] / "data" / "context.json")}
    command = holdfast_command("bench", *[paths.get(word, word) for word in words.split()])
    with start_process(command, env={**os.environ, "TMPDIR": str(temp)}, stderr=subprocess.PIPE) as running:
        wait_until(lambda: list(temp.glob("*/*")) and sum([child in line for line in processes_using(temp)]) >= count)
        assert running.poll() is None
        running.send_signal(number)
        stderr = running.communicate(timeout=60)[1]
    assert (running.returncode, b"Traceback" in stderr) == (130, False), stderr
    assert list(temp.iterdir()) == []
    wait_until(lambda: not processes_using(temp))


@pytest.mark.battery
def test_repeated_ctrl_c_leaves_nothing_behind(tmp_path):
    command, env = holdfast_command("bench", *SPEED.split()), {**os.environ, "TMPDIR": str(tmp_path)}
    with start_process(command, env=env, stderr=subprocess.PIPE) as running:
        wait_until(lambda: list(tmp_path.glob("*/*")))
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            running.send_signal(number)
            running.poll()
        stderr = running.communicate(timeout=60)[1]
    assert (running.returncode, b"Traceback" in stderr) == (130, False), stderr
    assert list(tmp_path.iterdir()) == []


class _SlowServer(threading.Thread):
    """Answer the first request of each connection at once and the second after 0.2 s; count clients that close before that."""

    def __init__(self, count):
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._count = count
        self.address = self._listener.getsockname()
        self.closed_early = 0

    def run(self):
        with self._listener, contextlib.ExitStack() as stack:
            connections = [stack.enter_context(self._listener.accept()[0]) for _ in range(self._count)]
            for connection in connections:
                self._answer(connection)
            for connection in connections:
                connection.recv(4096)
                closed, _, _ = select.select([connection], [], [], 0.2)
                self.closed_early += bool(closed)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def _answer(self, connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_requests_under_way_at_the_end_are_waited_for_and_not_counted():
    server = _SlowServer(3)
    server.start()
    result = send_requests(server.address, itertools.repeat(encode_request("GET", "/", b"")), 3, 0.0)
    server.join(30)
    assert (result.responses, result.refused, server.closed_early) == (3, 0, 0)
