"""`holdfast bench load`: requests per second of the gateway with many agents, beside a plain service in the same minutes."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count, cycle
from pathlib import Path
from typing import NamedTuple

from holdfast import config
from holdfast.access import AccessGate
from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast.errors import ConfigError, Trouble
from holdfast.ledger.agents import Grant
from holdfast_bench.floors import TextGenerator
from holdfast_bench.processes import (
    PrintProgress,
    compile_bytecode,
    holdfast_command,
    make_progress_printer,
    minimal_environment,
    start_process,
    temporary_folder,
)

Address = tuple[str, int]

_CLIENTS = 16
_SETTINGS = '[serve]\nrate = 0\nat_once = 256\n[search]\nembedder = "static"\n'
_ROLE = """name: load
allowed_actions: [agent.memory.read, agent.memory.write]
scopes: [agent, project]
"""
_CHUNK_BYTES = 256 * 1024
_RESPONSE_SECONDS = 60.0  # until every connection has had its first response, and until the last responses are in
_PLAIN = "plain FastAPI service"


class Options(Record):
    """The options of the command."""

    agents: tuple[int, ...] = (1, 16, 100)
    notes: tuple[int, ...] = (10_000,)
    workers: tuple[int, ...] = (1,)
    seconds: float = 4.0
    store: str = ""
    json: bool = False


class Kind(NamedTuple):
    """A kind of request: its name, and the least share of the plain service's rate to reach (0: no target)."""

    what: str
    least_share: float
    least_share_postgres: float


READ = Kind("read", 0.9, 0.9)
STORE = Kind("store", 0.9, 0.7)
KEYWORD = Kind("recall, keyword", 1.5, 1.0)
HYBRID = Kind("recall, hybrid", 0, 0)  # the plain service has no such thing


class Load(Record):
    """One kind of request with one number of agents; the field names are the keys of the JSON report."""

    what: str
    agents: int
    notes: int
    workers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    refused: int
    memory_mb: float  # resident, of all processes of the gateway
    floor: str
    floor_per_second: float  # 0: there is no floor
    share: float  # of the floor
    target: str
    met: bool


class LoadResult(Record):
    """The responses that a load client received."""

    responses: int
    refused: int  # responses without a 2xx status
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        """Return the responses per second."""
        return self.responses / self.seconds


class Corpus(Record):
    """The notes that every agent may read, and queries for them."""

    texts: list[str]
    queries: list[str]
    generator: TextGenerator


def run(options: Options) -> int:
    """Measure, print the report and return the exit status."""
    if find_spec("fastapi") is None:
        raise ConfigError("FastAPI is not installed, and this compares with it", "pip install 'holdfast[bench]'")
    print_progress = make_progress_printer(options.json)
    with temporary_folder("load") as base:
        compile_bytecode()
        rows = [row for notes in options.notes for row in _measure(base, notes, options, print_progress)]
    _print_report(rows, options.json)
    return 0


def _measure(base: Path, notes: int, options: Options, print_progress: PrintProgress) -> list[Load]:
    """Measure the gateway and the plain service at one number of notes.

    Each number of agents has a new home and a new plain service, so that no measurement begins with the notes of another.
    """
    generator = TextGenerator(1)
    texts = [generator.text() for _ in range(notes)]
    corpus = Corpus(texts, [generator.query(text) for text in texts[:300]], generator)
    rows = []
    for workers in options.workers:
        for agents in options.agents:
            processes = "process" if workers == 1 else "processes"
            print_progress(f"{agents} {'agent' if agents == 1 else 'agents'}, {workers} {processes}, {notes:,} notes")
            name = f"{notes}-{workers}-{agents}"
            home, tokens = _make_home(base / f"home-{name}", options.store, name, texts, agents)
            fixture = base / f"fixture-{name}.json"
            fixture.write_text(json.dumps({"tokens": tokens, "texts": texts}))
            database = options.store or str(base / f"plain-{name}.db")
            with (
                _start_plain_service(database, str(fixture), str(home)) as plain,
                start_gateway(str(home), workers) as (gateway, process),
            ):
                for kind in (READ, KEYWORD, HYBRID, STORE):  # stores last: vectors of new notes are computed meanwhile
                    floor = None if kind is HYBRID else _press(plain, _plain_requests(kind, corpus, tokens), options)
                    result = _press(gateway, _gateway_requests(kind, corpus, tokens), options)
                    rows.append(
                        _compare(
                            kind, result, floor, agents=agents, notes=notes, workers=workers,
                            memory_mb=_resident_mb(process.pid), on_postgres=bool(options.store),
                        )
                    )  # fmt: skip
    return rows


def _make_home(home: Path, store: str, name: str, texts: list[str], agents: int) -> tuple[Path, list[str]]:
    """Make a home with notes in a shared project and agents who may read them; return it and the agents' tokens."""
    home.mkdir(0o700)
    (home / "config.toml").write_text(_SETTINGS + _store_settings(store, name))
    with Memory(str(home), project="bench", cwd=home.parent) as memory:
        memory.store_many([{"text": text, "key": f"note-{number}"} for number, text in enumerate(texts)])
        memory.embed()
    return home, _add_agents(home, agents)


def _store_settings(store: str, name: str) -> str:
    """Return the settings of a PostgreSQL store with a tenant of its own, or nothing for a store of files."""
    return f'[store]\nurl = {json.dumps(store)}\ntenant = "load-{os.getpid()}-{name}"\n' if store else ""


def _add_agents(home: Path, number: int) -> list[str]:
    """Add agents that may read the project and write their own notes; return their tokens."""
    (home / "roles").mkdir(0o700)
    (home / "roles" / "load.yaml").write_text(_ROLE)
    gate = AccessGate(config.load(str(home)))
    try:
        granted = (Grant("project", "bench"),)
        return [gate.add(f"load-{agent}", "load", granted=granted)[1] for agent in range(number)]
    finally:
        gate.close()


def _compare(
    kind: Kind, result: LoadResult, floor: LoadResult | None, *, agents: int, notes: int, workers: int, memory_mb: float,
    on_postgres: bool,
) -> Load:  # fmt: skip
    """Return the row of one kind of request."""
    share = result.per_second / floor.per_second if floor else 0.0
    least = (kind.least_share_postgres if on_postgres else kind.least_share) if floor else 0
    return Load(
        what=kind.what, agents=agents, notes=notes, workers=workers, per_second=result.per_second, p50_ms=result.p50_ms,
        p99_ms=result.p99_ms, refused=result.refused, memory_mb=memory_mb, floor=_PLAIN if floor else "",
        floor_per_second=floor.per_second if floor else 0.0, share=share, target=f"≥ {least:.1f}x" if least else "",
        met=share >= least and not result.refused,
    )  # fmt: skip


def _press(address: Address, requests: Iterator[bytes], options: Options) -> LoadResult:
    """Send the requests, first to warm up; raise Trouble if there is no response in time."""
    send_requests(address, requests, _CLIENTS, min(1.0, options.seconds))  # until models are loaded and caches warm
    result = send_requests(address, requests, _CLIENTS, options.seconds)
    if not result.responses:
        raise Trouble(f"no answer in {result.seconds:.0f} seconds", "Measure with fewer notes")
    return result


def _gateway_requests(kind: Kind, corpus: Corpus, tokens: list[str]) -> Iterator[bytes]:
    """Yield requests to the gateway, each with the token of the next agent."""
    for number, token in zip(count(), cycle(tokens), strict=False):
        if kind is READ:
            yield encode_request("GET", f"/v1/notes/project/note-{number % len(corpus.texts)}", b"", token)
        elif kind is STORE:
            body = {"text": corpus.generator.text(), "key": f"load-{number}", "scope": "agent"}
            yield encode_request("POST", "/v1/notes", json.dumps(body).encode(), token)
        else:
            body = {"query": corpus.queries[number % len(corpus.queries)], "mode": kind.what.rpartition(" ")[2]}
            yield encode_request("POST", "/v1/recall", json.dumps(body).encode(), token)


def _plain_requests(kind: Kind, corpus: Corpus, tokens: list[str]) -> Iterator[bytes]:
    """Yield the same requests to the plain service."""
    for number, token in zip(count(), cycle(tokens), strict=False):
        if kind is READ:
            yield encode_request("GET", f"/notes/note-{number % len(corpus.texts)}", b"", token)
        elif kind is STORE:
            body = {"text": corpus.generator.text(), "key": f"load-{number}"}
            yield encode_request("POST", "/notes", json.dumps(body).encode(), token)
        else:
            body = {"query": corpus.queries[number % len(corpus.queries)]}
            yield encode_request("POST", "/recall", json.dumps(body).encode(), token)


# --- servers ----------------------------------------------------------------------------------------------------------


@contextmanager
def _start_plain_service(database: str, fixture: str, home: str) -> Iterator[Address]:
    """Run the plain service and yield its address."""
    command = [sys.executable, "-m", "holdfast_bench.plain_service", database, fixture]
    with _start_server(command, home) as process:
        assert process.stdout is not None
        yield "127.0.0.1", int(process.stdout.readline())


@contextmanager
def start_gateway(home: str, workers: int) -> Iterator[tuple[Address, subprocess.Popen[bytes]]]:
    """Run the gateway as a user starts it; yield its address and its process."""
    with _start_server(holdfast_command("serve", "--port", "0", "--workers", str(workers), "--json"), home) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        yield ("127.0.0.1", int(url.rpartition(":")[2])), process


def _resident_mb(pid: int) -> float:
    """Return the resident memory of a process and its children, in MB."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue  # it has ended
        if str(pid) in (fields["Pid"].strip(), fields["PPid"].strip()):
            total += int(fields.get("VmRSS", "0 kB").split()[0])
    return total / 1024


@contextmanager
def _start_server(command: list[str], home: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server that ends gracefully."""
    environment = minimal_environment(HOLDFAST_HOME=home, HOME=home)
    with start_process(command, graceful=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        yield process


# --- load client ------------------------------------------------------------------------------------------------------


def encode_request(method: str, path: str, body: bytes, token: str = "") -> bytes:
    """Return the bytes of one HTTP/1.1 request on a persistent connection."""
    bearer = f"Authorization: Bearer {token}\r\nX-Holdfast-Project: bench\r\n" if token else ""
    content = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if method != "GET" else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}{content}\r\n".encode() + body


def send_requests(address: Address, requests: Iterator[bytes], clients: int, seconds: float) -> LoadResult:
    """Keep one request under way on each of `clients` connections for this many seconds, from one process."""
    connections = {one.fileno(): one for one in (_Connection(address) for _ in range(clients))}
    poll, times, refused = select.epoll(), list[float](), 0
    try:
        for connection in connections.values():
            poll.register(connection.fileno(), select.EPOLLIN)
            connection.send(next(requests))
        start = time.perf_counter()
        while (now := time.perf_counter()) - start < (seconds if len(times) >= clients else _RESPONSE_SECONDS):
            for fd, _ in poll.poll(1):
                connection = connections[fd]
                try:
                    if not connection.receive():
                        continue
                except ConnectionError:  # a server may close a persistent connection: send the request on a new one
                    connections.pop(fd)
                    connection.reconnect()
                    connections[connection.fileno()] = connection
                    poll.register(connection.fileno(), select.EPOLLIN)
                    continue
                times.append(time.perf_counter() - connection.sent_at)
                refused += not connection.succeeded
                connection.send(next(requests))
        _receive_remaining(connections, poll)
    finally:
        poll.close()
        for connection in connections.values():
            connection.close()
    times.sort()
    p50, p99 = (times[len(times) // 2], times[len(times) * 99 // 100]) if times else (0.0, 0.0)
    return LoadResult(responses=len(times), refused=refused, seconds=now - start, p50_ms=p50 * 1000, p99_ms=p99 * 1000)


def _receive_remaining(connections: dict[int, _Connection], poll: select.epoll) -> None:
    """Wait for the requests under way without counting them; otherwise they would slow down the next measurement."""
    waiting, end = set(connections), time.perf_counter() + _RESPONSE_SECONDS
    while waiting and time.perf_counter() < end:
        for fd, _ in poll.poll(1):
            try:
                complete = connections[fd].receive()
            except ConnectionError:
                complete = True
            if complete:
                poll.unregister(fd)
                waiting.discard(fd)


class _Connection:
    """One connection with at most one request under way."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket = self._connect()
        self._request, self._received = b"", b""
        self.sent_at = 0.0
        self.succeeded = False

    def _connect(self) -> socket.socket:
        connected = socket.create_connection(self._address, timeout=30)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    def reconnect(self) -> None:
        """Send the same request on a new connection; its time still counts from the first attempt."""
        self._socket.close()
        self._socket, self._received = self._connect(), b""
        self._socket.sendall(self._request)

    def fileno(self) -> int:
        """Return the file descriptor of the socket."""
        return self._socket.fileno()

    def send(self, request: bytes) -> None:
        """Send the next request."""
        self._request, self._received, self.sent_at = request, b"", time.perf_counter()
        self._socket.sendall(request)

    def receive(self) -> bool:
        """Read what has arrived and return whether the response is complete; raise ConnectionError if the server closed."""
        data = self._socket.recv(_CHUNK_BYTES)
        if not data:
            raise ConnectionError("the server hung up")
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return False
        self.succeeded = head[9:10] == b"2"
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        return len(body) >= int(length)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


# --- report -----------------------------------------------------------------------------------------------------------


def _print_report(rows: list[Load], as_json: bool) -> None:
    """Print the rows as a table or as JSON."""
    if as_json:
        print(json.dumps({"load": [row.as_dict() for row in rows]}, indent=2))
        return
    print(f"\n{'16 connections':<18}{'agents':>7}{'notes':>9}{'a second':>10}{'p50':>10}{'p99':>10}{'memory':>9}  of the floor")
    for row in rows:
        mark = f"   {row.refused} refused" if row.refused else "" if row.met else f"   missed ({row.target})"
        share = f"{row.share:.2f}x ({row.floor_per_second:,.0f}/s, {row.floor}){mark}" if row.floor else mark.strip()
        workers = f", {row.workers} processes" if row.workers > 1 else ""
        print(
            f"{row.what:<18}{row.agents:>7}{row.notes:>9,}{row.per_second:>10,.0f}{row.p50_ms:>7.1f} ms{row.p99_ms:>7.1f} ms"
            f"{row.memory_mb:>6.0f} MB  {share}{workers}"
        )
