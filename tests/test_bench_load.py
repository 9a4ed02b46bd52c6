"""`holdfast bench load`: a gateway, its framework without it, and bare writes, pressed on in one run."""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import threading

import pytest

from holdfast import UsageError
from holdfast.bench import main
from holdfast.bench.pressing import press, request


def test_each_kind_of_request_is_measured_against_its_floors_and_none_is_refused(capsys):
    assert main(["load", "--notes", "40", "--seconds", "0.3", "--workers", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["load"]
    assert [(row["what"], row["refused"]) for row in rows] == [
        ("recall, keyword", 0), ("recall, keyword", 0), ("recall, hybrid", 0), ("recall, hybrid", 0), ("store", 0),
        ("store", 0),
    ]  # fmt: skip
    assert all(row["per_second"] > 0 and row["floor_per_second"] > 0 and row["p99_ms"] >= row["p50_ms"] for row in rows)


def test_on_a_store_the_floor_is_a_bare_transaction(capsys, postgres_url):
    assert main(["load", "--notes", "40", "--seconds", "0.3", "--workers", "1", "--store", postgres_url, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["load"]
    assert rows[-1]["floor"].startswith("bare transactions") and not any(row["refused"] for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--notes"], "--notes needs a value"), (["--bogus"], "unknown argument '--bogus'"),
        (["--notes", "many"], "--notes cannot be 'many'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["load", "speed"])
def test_what_cannot_be_read_is_a_usage_error_that_says_where_to_look(name, words, said):
    given = [word.replace("notes", "sizes") if name == "speed" else word for word in words]
    with pytest.raises(UsageError) as error:
        main([name, *given])
    assert said.replace("notes", "sizes" if name == "speed" else "notes") in error.value.message
    assert f"`holdfast bench {name} --help`" in error.value.fix


def test_help_is_the_usage(capsys):
    assert main(["load", "--help"]) == 0
    assert "usage: holdfast bench load" in capsys.readouterr().out


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
