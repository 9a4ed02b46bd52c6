"""`holdfast bench load`: the gateway's requests per second, compared with its web framework alone and with bare writes."""

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
from itertools import count, cycle
from pathlib import Path

from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast.errors import Trouble
from holdfast_bench.floors import BareWriter, TextGenerator
from holdfast_bench.processes import (
    PrintProgress,
    compile_bytecode,
    holdfast_command,
    make_progress_printer,
    minimal_environment,
    start_pool,
    start_process,
    temporary_folder,
)

Address = tuple[str, int]

_AGENT = "operator"
_CLIENTS = 16
_SETTINGS = '[serve]\nrate = 0\nat_once = 256\n[search]\nembedder = "static"\n'
_CHUNK_BYTES = 256 * 1024
_RESPONSE_SECONDS = 60.0  # until every connection has had its first response, and until the last responses are in


class Options(Record):
    """The options of the command."""

    notes: tuple[int, ...] = (10_000,)
    workers: tuple[int, ...] = (1, 2)
    seconds: float = 4.0
    store: str = ""
    json: bool = False


class Load(Record):
    """One kind of request at one number of worker processes and notes; the field names are the keys of the JSON report."""

    what: str
    notes: int
    workers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    refused: int
    floor: str
    floor_per_second: float
    share: float  # of the floor
    target: str
    met: bool


class Floor(Record):
    """The floor of a figure: a name, operations per second, and the lowest share of them to reach (0: no target)."""

    name: str
    per_second: float
    least_share: float


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


def run(options: Options) -> int:
    """Measure, print the report and return the exit status."""
    print_progress = make_progress_printer(options.json)
    with temporary_folder("load") as base:
        compile_bytecode()
        rows = [row for notes in options.notes for row in _measure(base, notes, options, print_progress)]
    _print_report(rows, options.json)
    return 0


def _measure(base: Path, notes: int, options: Options, print_progress: PrintProgress) -> list[Load]:
    """Measure the floors and the gateway at one number of notes."""
    home, generator = base / f"home-{notes}", TextGenerator(1)
    home.mkdir(0o700)
    (home / "config.toml").write_text(_SETTINGS + _store_settings(options.store, notes))
    texts = [generator.text() for _ in range(notes)]
    print_progress(f"importing {notes:,} notes")
    with Memory(str(home), project="bench", cwd=base) as memory:
        memory.store_many([{"text": text, "key": f"note-{number}"} for number, text in enumerate(texts)])
        memory.embed()
    queries = [generator.query(text) for text in texts[:300]]
    print_progress("measuring the floors")
    with _start_bare_server(str(home)) as address:
        hello = _post_all(address, "/hello", [json.dumps({"query": queries[0], "mode": "keyword"}).encode()], "", options)
        bare = {
            mode: _post_all(address, "/recall", _recall_bodies(queries, mode), "", options) for mode in ("keyword", "hybrid")
        }
    write_floors = _measure_write_floors(base / f"bare-{notes}", generator, options)
    rows = []
    for workers in options.workers:
        print_progress(f"pressing on {workers} {'process' if workers == 1 else 'processes'} at {notes:,} notes")
        with _start_gateway(str(home), workers) as (address, token):
            for mode, floor in bare.items():
                result = _post_all(address, "/v1/recall", _recall_bodies(queries, mode), token, options)
                for compared in (
                    Floor("the same verb, bare", floor.per_second, 0.5),
                    Floor("an endpoint that does nothing", hello.per_second, 0),
                ):
                    rows.append(_compare(f"recall, {mode}", notes, workers, result, compared))
            requests = _store_requests(generator, token, workers)
            send_requests(address, requests, _CLIENTS, min(1.0, options.seconds))  # warm up, as before recalls
            result = send_requests(address, requests, _CLIENTS, options.seconds)
            rows += [_compare("store", notes, workers, result, compared) for compared in write_floors]
    return rows


def _store_settings(store: str, notes: int) -> str:
    """Return the settings of a PostgreSQL store with a tenant of its own, or nothing for a store of files."""
    return f'[store]\nurl = {json.dumps(store)}\ntenant = "load-{os.getpid()}-{notes}"\n' if store else ""


def _measure_write_floors(folder: Path, generator: TextGenerator, options: Options) -> list[Floor]:
    """Measure bare writes: durable files, or transactions on PostgreSQL."""
    if not options.store:
        flushed = _count_bare_writes(folder / "flushed", generator, options.seconds, flush_row=True)
        light = _count_bare_writes(folder / "light", generator, options.seconds, flush_row=False)
        return [
            Floor("bare durable writes of 16 processes into one folder", flushed, 0.5),
            Floor("the same, their rows not flushed", light, 0),
        ]
    from holdfast_bench import postgres_floor

    per_second = postgres_floor.count_transactions(
        options.store, clients=_CLIENTS, text=generator.text(), seconds=options.seconds
    )
    return [Floor("bare transactions of 16 processes", per_second, 0.5)]


def _count_bare_writes(folder: Path, generator: TextGenerator, seconds: float, *, flush_row: bool) -> float:
    """Return the bare writes per second of 16 processes into one folder, like the notes of a home."""
    text = generator.text()
    BareWriter(folder / "notes", flush_row=flush_row).close()
    with start_pool(_CLIENTS) as pool:
        counts = pool.starmap(_write_files, [(folder, text, seconds, flush_row)] * _CLIENTS, chunksize=1)
    return sum(counts) / seconds


def _write_files(folder: Path, text: str, seconds: float, flush_row: bool) -> int:
    """Write files for this many seconds and return their number."""
    writer, written, end = BareWriter(folder / "notes", flush_row=flush_row), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        writer.write(f"{os.getpid()}-{written}.md", text)
        written += 1
    writer.close()
    return written


def _compare(what: str, notes: int, workers: int, result: LoadResult, floor: Floor) -> Load:
    """Return the row of one kind of request against one floor."""
    share = result.per_second / floor.per_second
    return Load(
        what=what, notes=notes, workers=workers, per_second=result.per_second, p50_ms=result.p50_ms, p99_ms=result.p99_ms,
        refused=result.refused, floor=floor.name, floor_per_second=floor.per_second, share=share,
        target=f"≥ {floor.least_share:.0%}" if floor.least_share else "",
        met=share >= floor.least_share and not result.refused,
    )  # fmt: skip


def _recall_bodies(queries: list[str], mode: str) -> list[bytes]:
    return [json.dumps({"query": query, "mode": mode}).encode() for query in queries]


def _post_all(address: Address, path: str, bodies: list[bytes], token: str, options: Options) -> LoadResult:
    """Post the bodies again and again, first to warm up; raise Trouble if there is no response in time."""
    requests = [encode_request("POST", path, body, token) for body in bodies]
    send_requests(address, cycle(requests), _CLIENTS, min(1.0, options.seconds))  # until models are loaded and caches warm
    result = send_requests(address, cycle(requests), _CLIENTS, options.seconds)
    if not result.responses:
        raise Trouble(f"{path} gave no answer in {result.seconds:.0f} seconds", "Measure with fewer notes")
    return result


def _store_requests(generator: TextGenerator, token: str, round: int) -> Iterator[bytes]:
    """Yield requests that each store a new note."""
    for number in count():
        body = json.dumps({"text": generator.text(), "key": f"load-{round}-{number}", "scope": "project"}).encode()
        yield encode_request("POST", "/v1/notes", body, token)


# --- servers ----------------------------------------------------------------------------------------------------------


@contextmanager
def _start_bare_server(home: str) -> Iterator[Address]:
    """Run the bare server and yield its address."""
    with _start_server([sys.executable, "-m", "holdfast_bench.bare_server", home, _AGENT], home) as process:
        assert process.stdout is not None
        yield "127.0.0.1", int(process.stdout.readline())


@contextmanager
def _start_gateway(home: str, workers: int) -> Iterator[tuple[Address, str]]:
    """Run the gateway as a user starts it; yield its address and an operator's token."""
    environment = minimal_environment(HOLDFAST_HOME=home, HOME=home)
    add_agent = holdfast_command("agent", "add", f"load-{workers}", "--role", "operator", "--json")
    token = json.loads(subprocess.run(add_agent, capture_output=True, check=True, env=environment).stdout)["token"]
    with _start_server(holdfast_command("serve", "--port", "0", "--workers", str(workers), "--json"), home) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        yield ("127.0.0.1", int(url.rpartition(":")[2])), token


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
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


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
    print(f"\n{'16 clients':<18}{'notes':>9}{'workers':>9}{'a second':>10}{'p50':>10}{'p99':>10}{'share':>8}  of")
    for row in rows:
        mark = "" if row.met else f"   missed ({row.target})" if not row.refused else f"   {row.refused} refused"
        print(
            f"{row.what:<18}{row.notes:>9,}{row.workers:>9}{row.per_second:>10,.0f}{row.p50_ms:>7.1f} ms{row.p99_ms:>7.1f} ms"
            f"{row.share:>8.0%}  {row.floor} ({row.floor_per_second:,.0f}/s){mark}"
        )
