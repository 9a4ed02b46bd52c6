"""`holdfast serve` as a person starts it: the first token, the address it listens on, its log, and how it stops."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import uvicorn
from http_gateway import Client
from mcp_raw import HOLDFAST
from tiers import tiered

from holdfast import Memory
from holdfast.server.processes import Workers
from holdfast.server.serve import HeaderTimeout


def holdfast_without(package):
    """Return the command `holdfast` in a process that does not have this package."""
    code = f"import sys; sys.modules[{package!r}] = None; from holdfast.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code]


class Process:
    """A server process: its port, its output, and its log so far."""

    def __init__(self, home, tmp_path, *words, env=(), terminal=False, command=None, before=None):
        master, slave = os.openpty() if terminal else (None, None)
        self.process = subprocess.Popen(
            [*(command or HOLDFAST), "serve", "--port", "0", "--home", str(home), *words],
            stdout=slave if terminal else subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            env={**os.environ, **dict(env)}, preexec_fn=before,
        )  # fmt: skip
        if terminal:
            os.close(slave)
            self.process.stdout = os.fdopen(master, encoding="utf-8")
        self.home, self.log, self.said = Path(home), [], []
        self._readers = [
            threading.Thread(target=self._read, args=(stream, kept))
            for stream, kept in ((self.process.stderr, self.log), (self.process.stdout, self.said))
        ]
        for reader in self._readers:
            reader.start()
        try:
            self.port = int(re.search(r"http://\S+:(\d+)", self.line("listening")).group(1))
        except BaseException:
            self.process.terminate()
            self.ended()
            raise
        self.ask = Client(self.port)

    def _read(self, stream, kept):
        with suppress(OSError):  # a terminal that its last program has closed
            for line in stream:
                kept.append(line)

    def line(self, words):
        """Return the first line of the log with these words, after waiting for it."""
        return self.until(lambda: next((line for line in list(self.log) if words in line), None))

    def until(self, seen):
        """Return the result of the check as soon as it is not empty, while the server runs."""
        deadline = time.monotonic() + 120
        while not (found := seen()):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log
            time.sleep(0.01)
        return found

    def stop(self, sign=signal.SIGTERM):
        self.process.send_signal(sign)
        return self.ended()

    def ended(self):
        code = self.process.wait(120)
        for reader in self._readers:
            reader.join()  # its output ends with it
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    @property
    def token(self):
        """Return the operator's token, which the first start writes to a file: stdout is not a terminal."""
        return (self.home / "operator-token").read_text().strip()


@contextmanager
def started(home, tmp_path, *words, **given):
    one = Process(home, tmp_path, *words, **given)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.stop()


@pytest.mark.promise("A1")
def test_the_first_start_writes_the_operators_token_to_a_file_and_no_log_has_it(home, tmp_path):
    with started(home, tmp_path) as one:
        token = one.token
        file = home / "operator-token"
        assert str(file) in one.line("operator token") and file.stat().st_mode & 0o777 == 0o600
        client = Client(one.port, token)
        assert client.post("/gateway/memory", {"key": "k", "value": "Harbour words."}).status == 200
        assert one.stop() == 0
        assert token not in "".join(one.log) and "Harbour" not in "".join(one.log)
        rows = [json.loads(line) for line in one.log]
        assert [row["event"] for row in rows[:2]] == ["listening", "operator token"] and one.said == []
        assert rows[2]["route"] == "POST /gateway/memory" and rows[2]["status"] == 200
    (home / "operator-token").unlink()
    assert token not in "".join(path.read_bytes().decode("latin-1") for path in home.rglob("*") if path.is_file())
    with started(home, tmp_path) as one:
        assert Client(one.port, token).get("/gateway/memory").json["memory"][0]["value"] == "Harbour words."
        assert one.stop(signal.SIGINT) == 0
        assert one.said == [] and not (home / "operator-token").exists()


def test_a_start_where_the_settings_name_a_gateway_says_whose_home_it_answers_for(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:9")
    with started(home, tmp_path) as one:
        assert f"using the home {home}, not the gateway" in one.line("HOLDFAST_URL")
        assert one.stop() == 0


@pytest.mark.parametrize("count", tiered(["1", "2"], fast=["1"]))
@pytest.mark.parametrize("sign", tiered([signal.SIGTERM, signal.SIGINT], fast=[signal.SIGTERM]))
def test_a_start_that_is_stopped_as_soon_as_it_says_that_it_listens_is_no_failure(home, tmp_path, sign, count):
    with started(home, tmp_path, "--workers", count) as one:
        assert one.stop(sign) == 0
        assert not [line for line in one.log if "Traceback" in line]


STOPPED_IN_A_FINALIZER = """
import os, signal, sys
from holdfast.cli import main
from holdfast.server import serve

class Resource:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return None  # the handler has run by now, and Python drops what it raises here

def create_app(*args, **options):
    Resource()
    return make(*args, **options)

make, serve.create_app = serve.create_app, create_app
sys.exit(main())
"""


def test_a_start_that_is_stopped_while_python_runs_a_finalizer_ends(home, tmp_path):
    with started(home, tmp_path, command=[sys.executable, "-c", STOPPED_IN_A_FINALIZER]) as one:
        assert one.ended() == 0 and not [line for line in one.log if "Exception ignored" in line]


def test_with_json_the_address_and_the_file_of_the_token_come_as_one_document(home, tmp_path):
    with started(home, tmp_path, "--json") as one:
        one.stop()
        told = json.loads("".join(one.said))
        assert told == {"url": f"http://127.0.0.1:{one.port}", "agent": "operator", "token_file": str(home / "operator-token")}


@pytest.mark.promise("promise-6")
def test_it_listens_on_loopback_and_goes_by_no_other_name(home, tmp_path):
    with started(home, tmp_path, "--allow-host", "memory.example", "--allow-origin", "https://page.example") as one:
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        mine = [row[1] for row in listening if row[3] == "0A" and int(row[1].split(":")[1], 16) == one.port]
        assert mine == [f"0100007F:{one.port:04X}"]
        assert one.ask.get("/healthz", Host="memory.example", Origin="https://page.example").status == 200
        assert one.ask.get("/healthz", Host="evil.example").status == 421


def test_a_port_that_is_taken_or_does_not_exist_is_said(home, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for given, code, says in [(port, 4, "cannot listen"), ("99999", 2, "not 99999")]:
            words = [*HOLDFAST, "serve", "--port", given, "--home", str(home)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
            assert done.returncode == code and says in done.stderr and "Traceback" not in done.stderr
            assert "hf_" not in done.stdout  # only a server that listens prints the first token


def refuses(port):
    """Return whether new connections are refused."""
    try:
        socket.create_connection(("127.0.0.1", port), 60).close()
    except ConnectionError:
        return True
    return False


def test_a_write_under_way_is_finished_before_it_stops(home, tmp_path):
    with started(home, tmp_path, "--json") as one:
        token = one.token
        Client(one.port, token).post("/gateway/memory", {"key": "first", "value": "There is a home."})
        body = json.dumps({"key": "late", "value": "Kept while it was told to stop."}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=60)
        connection.putrequest("POST", "/gateway/memory")
        for name, value in (("Authorization", f"Bearer {token}"), ("Content-Type", "application/json"),
                            ("Content-Length", str(len(body)))):  # fmt: skip
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(body[:10])
        for _ in range(3):  # requests before this one are in progress when this one has been answered
            one.ask.get("/healthz")
        one.process.send_signal(signal.SIGTERM)
        one.until(lambda: refuses(one.port))
        connection.send(body[10:])
        said = connection.getresponse()
        assert said.status == 200 and json.loads(said.read())["action"] == "created"
        connection.close()
        assert one.ended() == 0
    with Memory(home, agent="operator", project="demo") as memory:
        assert memory.get("late", scope="agent").text == "Kept while it was told to stop."


@pytest.mark.promise("N11")
def test_it_archives_what_expired_and_answers_for_commands_that_come_and_go(home, tmp_path, clock):
    clock.set("2020-01-01T00:00:00Z")
    with Memory(home, project="demo") as memory:
        memory.store("Long ago.", key="old")
    with started(home, tmp_path) as one:
        archive = home / "shelf" / "projects" / "demo" / "archive"
        one.until(lambda: archive.is_dir() and list(archive.iterdir()) and (home / "run" / "resident.sock").exists())
        one.until(lambda: any("1 note archived: not updated or used for 90 days (project)" in line for line in one.log))
        one.stop()
    assert not (home / "run" / "resident.sock").exists()


def workers(one, count):
    """Return its child processes, if there are this many."""
    pid = one.process.pid
    found = {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return found if len(found) == count else set()


def test_several_workers_answer_on_one_port_and_one_that_dies_is_started_again(home, tmp_path):
    with started(home, tmp_path, "--json", "--workers", "3") as one:
        client = Client(one.port, one.token)
        for number in range(20):
            assert client.post("/gateway/memory", {"key": f"k{number}", "value": f"Thing {number}."}).status == 200
        assert len(client.get("/gateway/memory").json["memory"]) == 20
        first = one.until(lambda: workers(one, 3))  # one may have answered all before the last was started
        killed = min(first)
        os.kill(killed, signal.SIGKILL)
        one.line("worker died")
        now = one.until(lambda: workers(one, 3))  # a parent that reports a death has waited for it
        assert client.get("/audit/verify").json["ok"] is True
        assert one.stop() == 0
        assert not [child for child in now if Path(f"/proc/{child}").exists()]


@pytest.mark.battery
def test_workers_share_who_comes_and_their_port_is_still_theirs_alone(home, tmp_path):
    with started(home, tmp_path, "--json", "--workers", "2") as one:
        both = one.until(lambda: workers(one, 2))
        crowd = [socket.create_connection(("127.0.0.1", one.port), 60) for _ in range(64)]
        try:
            for connection in crowd:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert all(connection.recv(1000).startswith(b"HTTP/1.1 200") for connection in crowd)
            answered = {pid: len([fd for fd in _links(f"/proc/{pid}/fd") if fd.startswith("socket:")]) for pid in both}
        finally:
            for connection in crowd:
                connection.close()
        assert min(answered.values()) > 10, answered  # by chance alone: a billion to one
        for count in ("1", "2"):
            words = [*HOLDFAST, "serve", "--port", str(one.port), "--home", str(home), "--workers", count]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
            assert done.returncode == 4 and "cannot listen" in done.stderr and "choose another --port" in done.stderr
        assert one.stop() == 0


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_not_called_a_port_in_use(home, tmp_path, host):
    words = [*HOLDFAST, "serve", "--host", host, "--port", "0", "--home", str(home)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 4 and "Give --host an address of this machine" in done.stderr


def _links(folder):
    for name in os.listdir(folder):
        with suppress(OSError):
            yield os.readlink(f"{folder}/{name}")


def test_whom_the_server_was_started_for_says_nothing_about_its_callers(home, tmp_path):
    env = {f"HOLDFAST_{name}": f"the-servers-{name.lower()}" for name in ("PROJECT", "SESSION", "AGENT", "CLIENT")}
    with started(home, tmp_path, "--json", env=env) as one:
        client = Client(one.port, one.token)
        assert client.post("/v1/notes", {"text": "Nowhere."}).code == "no_scope"
        assert client.post("/v1/notes", {"text": "Nowhere.", "scope": "session"}).code == "no_scope"
        assert "the-servers" not in client.post("/v1/notes", {"text": "Mine.", "scope": "agent"}).data.decode()


def test_what_libraries_say_is_one_line_without_a_word_of_a_request(home, tmp_path):
    with started(home, tmp_path, "--json") as one:
        client = Client(one.port, one.token)
        for body in (b"the combination", b'{"jsonrpc": "2.0", "id": 1, "method": "combination"}', b'{"combination": 1}'):
            said = client("POST", "/mcp", raw=body, Accept="application/json, text/event-stream")
            assert 200 <= said.status < 500
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "memory_recall", "arguments": {"query": "combination"}}}  # fmt: skip
        data = json.dumps(call).encode()
        for sent in (data, data[:-1]):  # and closes the connection: after the body, and within it
            with socket.create_connection(("127.0.0.1", one.port), 30) as connection:
                connection.sendall(
                    f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {one.token}\r\n"
                    "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(data)}\r\n\r\n".encode()
                    + sent
                )
        for _ in range(3):
            client.get("/healthz")
        assert one.stop() == 0
        assert "combination" not in "".join(one.log)
        assert all(json.loads(line)["event"] for line in one.log)  # and no traceback of many lines


@contextmanager
def timely(monkeypatch, seconds):
    """A server without an app, with this time limit for a request's head."""
    monkeypatch.setattr("holdfast.server.serve.HEAD_SECONDS", seconds)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_config=None, lifespan="off", http=HeaderTimeout, timeout_keep_alive=60
    )
    with config.bind_socket() as listening:
        listening.listen()
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\nHost:"])
def test_a_head_that_does_not_come_in_time_ends_the_connection(monkeypatch, head):
    with timely(monkeypatch, 0.3) as port, socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(head)
        assert connection.recv(1000) == b""  # and not after the 30 seconds that this test waits
    with timely(monkeypatch, 60) as port, socket.create_connection(("127.0.0.1", port), 30) as connection:
        for _ in range(2):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            said = b""
            while not said.endswith(b"ok"):
                said += (piece := connection.recv(1000))
                assert piece
        if head:
            monkeypatch.setattr("holdfast.server.serve.HEAD_SECONDS", 0.3)
            connection.sendall(head)  # also after an answer
            assert connection.recv(1000) == b""


@pytest.mark.parametrize("piece", [b"a" * 50_000, b"X-B: b\r\n" * 5000])
def test_a_head_that_has_no_end_ends_the_connection(monkeypatch, piece):
    with timely(monkeypatch, 60) as port, socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        sent, said = 0, b""
        with suppress(OSError):
            while sent < 50_000_000:
                connection.sendall(piece)
                sent += len(piece)
        with suppress(OSError):
            said = connection.recv(1000)
        assert sent < 50_000_000
        assert not said or said.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


def test_what_is_refused_before_its_body_was_read_is_told_so_however_long_that_is(gateway):
    length = 3_000_000
    head = f"POST /v1/notes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer no\r\nContent-Length: {length}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.operator.port), 30) as connection:
        connection.sendall(head.encode() + b"x" * length)
        after = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        with suppress(OSError):
            connection.sendall(after)
        said = b""
        with suppress(OSError):
            while piece := connection.recv(100_000):
                said += piece
    assert said.startswith(b"HTTP/1.1 401") and b"HTTP/1.1 431" not in said


def test_a_signal_that_comes_while_a_worker_is_started_again_is_not_lost(tmp_path):
    born = []

    class Told(Workers):
        def _restart(self, number):
            os.kill(os.getpid(), signal.SIGTERM)  # after the check that no stop was requested
            super()._restart(number)

    def work(number):
        os._exit(0)

    before = {sign: signal.getsignal(sign) for sign in (signal.SIGTERM, signal.SIGINT)}
    try:
        workers = Told(1, work, born.append)
        workers.run()
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
    assert born == [0]  # one died, and none was started after the stop
