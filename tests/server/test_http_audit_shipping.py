"""The gateway ships its audit to a real file, real sockets and a real HTTP server, on a home and on PostgreSQL."""

from __future__ import annotations

import fcntl
import http.server
import json
import re
import socket
import tempfile
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from http_gateway import run_gateway
from test_http_audit_trail import PAIR, opened, store  # noqa: F401
from wait import wait_until

from holdfast import config
from holdfast.access import AccessGate
from holdfast.access.health import find_problems
from holdfast.errors import ConfigError, HoldfastError
from holdfast.ledger.audit import Decision, target_id
from holdfast.ledger.audit_verify import verify_lines
from holdfast.server import audit_shipper
from holdfast.server.audit_shipper import AuditShipper
from holdfast.server.audit_sinks import FileSink, open_sink

SYSLOG = re.compile(rb"<(\d+)>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) \S+ holdfast \d+ audit - (\{.*\})")


def ship_to(home, address, **more):
    """Write the setting; the gateway reads it with its next request or turn."""
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in {"ship": address, **more}.items()]
    (home / "config.toml").write_text("[audit]\n" + "".join(lines))


@contextmanager
def collector(fails=()):
    """A webhook; the requests whose numbers are in `fails` are answered with 503, or with nothing at all (None)."""
    taken, seen = [], []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            seen.append(dict(self.headers.items()))
            failure = dict(fails).get(len(seen), 204)
            if failure is None:
                taken.extend(body.splitlines(keepends=True))  # taken, but its answer is lost
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if failure == 204:
                taken.extend(body.splitlines(keepends=True))
            self.send_response(failure)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/audit", taken, seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def is_shipped(home, address):
    with opened(home) as ledger:
        return ledger.audit.read_position(target_id(address)) == ledger.audit.read_head().count


def expected_rows(home):
    with opened(home) as ledger:
        return [entry.as_dict() for entry in ledger.audit.export()]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Let an attempt follow a failed one soon."""
    monkeypatch.setattr(audit_shipper, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(audit_shipper, "_MAX_WAIT_SECONDS", 0.2)


def ship_problems(home):
    return [one for one in find_problems(config.load(home)) if one.code == "audit_ship"]


def test_rows_are_appended_to_a_file_and_go_on_after_a_restart(home, store, tmp_path):  # noqa: F811
    file = tmp_path / "audit.jsonl"
    address = f"file:{file}"
    ship_to(home, address)
    for turn in (1, 2):
        with run_gateway(home) as gateway:
            if turn == 1:
                gateway.agent("a").post("/gateway/memory", PAIR)
            gateway.anonymous.get("/gateway/memory")
            wait_until(lambda: is_shipped(home, address))
    with run_gateway(home):
        wait_until(lambda: is_shipped(home, address))
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert lines == expected_rows(home)  # each once, since nothing failed
    assert file.stat().st_mode & 0o777 == 0o600
    with open(file, "rb") as shipped:
        assert verify_lines(shipped).ok


def test_a_file_may_be_rotated_and_a_torn_line_is_written_again(home, tmp_path):
    with opened(home) as ledger:
        for number in range(4):
            ledger.audit.append(Decision("a", "dispatch", "allowed", {"role": "r", "number": number}))
        entries = list(ledger.audit.export())
    file = tmp_path / "audit.jsonl"
    sink = FileSink(str(file))
    sink.send(entries[:2])
    file.write_bytes(file.read_bytes()[:-7])  # killed in the middle of the second row
    sink.send(entries[1:3])
    assert [json.loads(line)["number"] for line in file.read_text().splitlines()] == [1, 2, 3]
    file.rename(tmp_path / "audit.jsonl.1")
    sink.send(entries[3:])
    assert verify_lines([(tmp_path / "audit.jsonl.1").read_bytes().splitlines()[-1], file.read_bytes()]).ok
    assert len(file.read_text().splitlines()) == 1
    file.unlink()
    file.mkdir()
    with pytest.raises(HoldfastError):
        sink.send(entries)


@pytest.mark.parametrize("kind", ["unix", "udp"])
def test_rows_are_sent_to_syslog_as_rfc_5424_says(home, store, kind):  # noqa: F811
    folder = tempfile.mkdtemp(prefix="hf-")  # the path of a socket has at most about 100 bytes
    with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET, socket.SOCK_DGRAM) as syslog:
        syslog.bind(f"{folder}/log" if kind == "unix" else ("127.0.0.1", 0))
        syslog.settimeout(60)
        address = f"syslog:unix:{folder}/log" if kind == "unix" else f"syslog:udp://127.0.0.1:{syslog.getsockname()[1]}"
        ship_to(home, address)
        with run_gateway(home) as gateway:
            gateway.agent("typist", "secretary").post("/gateway/memory", PAIR)
            wait_until(lambda: is_shipped(home, address))
            rows = expected_rows(home)
            messages = [SYSLOG.fullmatch(syslog.recv(65536)) for _ in rows]
    assert [json.loads(message[3]) for message in messages] == rows
    assert [message[2].decode() for message in messages] == [row["time"] for row in rows]
    assert [int(message[1]) for message in messages] == [13 * 8 + (6 if row["outcome"] == "allowed" else 4) for row in rows]
    assert any(row["outcome"] == "denied" for row in rows)


def test_a_webhook_gets_every_row_although_some_requests_fail(home, store):  # noqa: F811
    with collector(fails={1: 503, 2: None, 4: 500}.items()) as (address, taken, seen):
        ship_to(home, address, ship_key="collector-key")
        with run_gateway(home) as gateway:
            agent = gateway.agent("a")
            for _ in range(5):
                assert agent.get("/gateway/memory").status == 200
                wait_until(lambda: is_shipped(home, address))
            assert len(seen) > 4
            wait_until(lambda: is_shipped(home, address))
            counts = gateway.operator.get("/metrics").data.decode()
            assert "holdfast_audit_ship_failures_total 3" in counts and "holdfast_audit_ship_waiting" in counts
            wait_until(lambda: is_shipped(home, address))
    numbers = [json.loads(line)["number"] for line in taken]
    assert sorted(set(numbers)) == [row["number"] for row in expected_rows(home)]
    assert len(numbers) > len(set(numbers))  # a batch whose answer was lost came again
    assert verify_lines(taken).ok
    assert all(headers["Authorization"] == "Bearer collector-key" for headers in seen)
    assert {headers["Content-Type"] for headers in seen} == {"application/x-ndjson"}
    assert len({headers["Idempotency-Key"] for headers in seen}) < len(seen)  # the same batch has the same key


def test_no_request_waits_for_a_place_that_does_not_answer(home, store):  # noqa: F811
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        ship_to(home, f"http://127.0.0.1:{silent.getsockname()[1]}/")
        with run_gateway(home) as gateway:
            agent, shipper = gateway.agent("a"), gateway.app.state.pipeline.gateway.audit_shipper
            connection, _ = silent.accept()  # and says nothing: shipping waits
            with connection:
                assert [agent.get("/gateway/memory").status for _ in range(20)] == [200] * 20
                assert agent.post("/gateway/memory", PAIR).status == 200
                assert (shipper.counts.rows, shipper.counts.failures) == (0, 0)  # it still waits
            assert gateway.operator.get("/audit/verify").json["ok"] is True


def test_a_place_that_fails_is_reported_and_what_waits_is_counted(home, store):  # noqa: F811
    with socket.socket() as nobody:  # bound, and not listening: refused at once
        nobody.bind(("127.0.0.1", 0))
        ship_to(home, f"http://127.0.0.1:{nobody.getsockname()[1]}/")
        with run_gateway(home) as gateway:
            shipper = gateway.app.state.pipeline.gateway.audit_shipper
            wait_until(lambda: shipper.counts.failures >= 2)
            gateway.operator.get("/gateway/memory")
            wait_until(lambda: shipper.counts.waiting >= 2)
            assert re.search(r"^holdfast_audit_ship_waiting [1-9]", gateway.operator.get("/metrics").data.decode(), re.M)
    assert ship_problems(home) == []  # not yet: rows may wait for five minutes


def test_two_stores_that_ship_to_one_file_append_in_turn(home, tmp_path):
    path = tmp_path / "audit.jsonl"
    settings = config.load(home).replace(audit_ship=f"file:{path}")
    with closing(AccessGate(config.load(home))) as gate:
        gate.add("one", "secretary")
    shipper = AuditShipper(lambda: settings)
    with path.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b'{"half": ')
        other.flush()
        shipper.ship()
        assert (shipper.counts.rows, shipper.counts.waiting, shipper.counts.is_failing) == (0, 1, False)
        other.write(b'"a line"}\n')
    shipper.ship()
    shipper.close_ledgers()
    first, second = path.read_text().splitlines()
    assert first == '{"half": "a line"}' and json.loads(second)["number"] == 1


def test_an_address_that_cannot_be_used_is_reported_until_it_is_corrected(home, tmp_path):
    settings = config.load(home).replace(audit_ship="syslog:udp://nowhere")
    shipper = AuditShipper(lambda: settings)
    with closing(AccessGate(config.load(home))) as gate:
        gate.add("one", "secretary")
    for _ in range(3):
        shipper.ship()
    assert (shipper.counts.failures, shipper.counts.is_failing) == (3, True)
    settings = settings.replace(audit_ship=f"file:{tmp_path}/audit.jsonl")
    shipper.ship()
    assert (shipper.counts.rows, shipper.counts.is_failing) == (1, False)
    shipper.close_ledgers()


def test_doctor_reports_rows_that_wait_for_long(home, store, clock):  # noqa: F811
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        ship_to(home, f"http://127.0.0.1:{nobody.getsockname()[1]}/")
        with run_gateway(home) as gateway:
            shipper = gateway.app.state.pipeline.gateway.audit_shipper
            wait_until(lambda: shipper.counts.failures)
    clock.forward(minutes=10)
    (problem,) = ship_problems(home)
    assert problem.code == "audit_ship" and "wait to be shipped" in problem.message and "did not answer" in problem.message
    assert problem.hint


def test_of_several_gateways_one_ships_at_a_time_and_no_row_is_left_out(home, store, tmp_path):  # noqa: F811
    file = tmp_path / "audit.jsonl"
    address = f"file:{file}"
    ship_to(home, address)
    with run_gateway(home) as first, run_gateway(home) as second:
        second.operator.token = first.operator.token
        agents = [first.agent(f"a{number}") for number in range(4)]
        for agent in agents:
            agent.port = second.port if agent is agents[-1] else first.port

        def ask(agent):
            for _ in range(10):
                agent.get("/gateway/memory")

        threads = [threading.Thread(target=ask, args=(agent,)) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: is_shipped(home, address))
    with run_gateway(home):
        wait_until(lambda: is_shipped(home, address))
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert lines == expected_rows(home)


def test_rows_of_every_tenant_are_shipped_also_of_those_that_ask_nothing(home, postgres_url, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    home.mkdir(mode=0o700)
    for tenant in ("acme", "bolt"):
        with closing(AccessGate(config.load(home).replace(tenant=tenant))) as gate:
            gate.add("reviewer", "code-review-engineer")
    file = tmp_path / "audit.jsonl"
    ship_to(home, f"file:{file}")
    with run_gateway(home):
        wait_until(lambda: file.exists() and len(file.read_bytes().splitlines()) == 3)
    shipped = [json.loads(line)["tenant"] for line in file.read_bytes().splitlines()]
    assert sorted(shipped) == ["acme", "bolt", "default"]
    with open(file, "rb") as lines:
        assert verify_lines(lines).ok


def test_what_was_not_shipped_yet_is_not_removed(home, store, clock):  # noqa: F811
    address = f"file:{home}/shipped.jsonl"
    clock.set("2020-01-01T00:00:00Z")
    with opened(home) as ledger:
        for number in range(10):
            ledger.audit.append(Decision("a", "dispatch", "allowed", {"role": "r", "number": number}))
        ledger.audit.save_position(target_id(address), 4)
    clock.set("2026-05-01T12:00:00Z")
    settings = config.load(home).replace(audit_ship=address)
    with closing(AccessGate(settings)) as gate:
        assert gate.prune_audit("2020-02-01T00:00:00.000Z").removed == 4
    shipper = AuditShipper(lambda: settings)
    shipper.ship()
    shipper.close_ledgers()
    assert [json.loads(line)["number"] for line in (home / "shipped.jsonl").read_text().splitlines()] == list(range(5, 12))
    with closing(AccessGate(settings)) as gate:
        assert gate.prune_audit("2020-02-01T00:00:00.000Z").removed == 6


@pytest.mark.parametrize(
    "address",
    ["", "file:relative", "syslog:unix:relative", "syslog:udp://host", "syslog:udp://host:0", "syslog:udp://:514", "ftp://x",
     "https://", "https://user:secret@host/", "syslog:tcp://host:514"],
)  # fmt: skip
def test_an_address_that_names_nothing_is_refused_and_not_shown(address):
    with pytest.raises(ConfigError) as refused:
        open_sink(address)
    assert "secret" not in refused.value.message + refused.value.fix


def test_the_settings_of_the_audit_are_checked(home):
    home.mkdir(mode=0o700)
    for line in ('audit.ship = "nowhere"', "audit.keep_days = 6", 'serve.trusted_proxies = ["10.0.0.0/99"]',
                 'serve.trusted_proxies = "10.0.0.0/8"', "serve.trusted_proxies = [10]"):  # fmt: skip
        (home / "config.toml").write_text(line + "\n")
        with pytest.raises(ConfigError):
            config.load(home)
    ship = "https://log.example/audit?token=very-secret"
    (home / "config.toml").write_text(f'audit.ship = "{ship}"\naudit.ship_key = "very-secret"\naudit.keep_days = 7\n')
    assert "very-secret" not in repr(config.load(home)) and config.load(home).audit_keep_days == 7
    assert Path(home).exists()
