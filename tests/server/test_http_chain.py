"""Checks before every handler of the gateway: hosts, tokens, limits; and what is logged afterwards."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import sqlite3
import threading
import time

import pytest
from http_gateway import run_gateway

from holdfast.errors import TooLarge, TooMany
from holdfast.ledger.audit import Audit
from holdfast.server.app import create_app
from holdfast.server.body import check_json_size
from holdfast.server.gateway import Gateway
from holdfast.server.limits import RateLimit
from holdfast.server.logs import Logs
from holdfast.server.problem import Problem
from holdfast.server.routes import ROUTES

HOSTS = [  # headers that a rebound page, a broken proxy or an attacker may send
    "", " ", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:8710",
    "127.0.0.2", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "::1", "[::1",
    "[::1]evil.example", "localhost:", "localhost:x", "localhost:80:80", "localhost:123456", "localhost:-1", "localhost:+80",
    "user@localhost", "localhost@evil.example", "localhost/evil.example", "localhost?x", "localhost#x", "http://localhost",
    "localhost.", "local host", "localhost,evil.example", "*", "*.localhost", "192.168.0.1", "10.0.0.1",
    "169.254.169.254", "host.docker.internal", "xn--lcalhost-1wa",
]  # fmt: skip
ORIGINS = [
    "null", "https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "file://",
    "http://localhost@evil.example", "chrome-extension://abcdef", "https://evil.example:443", "http://", "localhost",
    "javascript://localhost", "http://localhost/evil", "http://0.0.0.0:8710", "http://127.0.0.1:1", "http://localhost",
]  # fmt: skip


@pytest.mark.promise("promise-6")
def test_hosts_and_origins_that_are_not_ours_are_refused(gateway):
    token = f"Authorization: Bearer {gateway.operator.token}\r\n"
    assert len(HOSTS) + len(ORIGINS) >= 50
    for host in HOSTS:
        said = gateway.anonymous.raw(
            f"GET /gateway/memory HTTP/1.1\r\nHost: {host}\r\n{token}Connection: close\r\n\r\n".encode()
        )
        status = int(said.split(b" ", 2)[1])
        assert status in (400, 421), (host, said[:200])
    for origin in ORIGINS:
        said = gateway.operator.get("/gateway/memory", Origin=origin)
        assert (said.status, said.code) == (403, "wrong_origin"), origin
    twice = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n{token}Connection: close\r\n\r\n"
    assert gateway.anonymous.raw(twice.encode()).split(b" ", 2)[1] in (b"400", b"421")
    for host in ("localhost", f"localhost:{gateway.port}", "127.0.0.1", "LOCALHOST:1", "[::1]:8710"):
        assert gateway.operator.get("/gateway/memory", Host=host, Origin=f"http://{host}").status == 200


def test_names_and_pages_that_somebody_named_are_let_in(home):
    with run_gateway(home, hosts=("memory.example",), origins=("https://page.example",)) as gateway:
        assert gateway.operator.get("/gateway/memory", Host="memory.example:443").status == 200
        said = gateway.operator.get("/gateway/memory", Origin="https://page.example")
        assert said.status == 200 and said.headers["access-control-allow-origin"] == "https://page.example"
        assert "access-control-allow-origin" not in gateway.operator.get("/gateway/memory").headers
        asked = {"Origin": "https://page.example", "Access_Control_Request_Method": "POST"}
        told = gateway.anonymous("OPTIONS", "/gateway/memory", **asked)
        assert told.status == 204 and "authorization" in told.headers["access-control-allow-headers"]
        assert gateway.anonymous("OPTIONS", "/gateway/memory", **{**asked, "Origin": "https://evil.example"}).status == 403
        assert gateway.operator.get("/gateway/memory", Host="other.example").status == 421


class Spied(Gateway):
    """Records every use of anything but the access gate."""

    def __init__(self, home):
        self.used = []
        super().__init__(home)

    def open_memory(self, *given, **named):
        self.used.append("memory")
        return super().open_memory(*given, **named)

    @property
    def ledger(self):
        self.used.append("ledger")
        return self._ledger

    @ledger.setter
    def ledger(self, ledger):
        self._ledger = ledger


def asked(app, route, headers):
    """Send one request directly to the app; return its status, and how often the body was read."""
    seen = {"status": 0, "body": 0}

    async def receive():
        seen["body"] += 1
        return {"type": "http.request", "body": json.dumps(route.example or {}).encode(), "more_body": False}

    async def send(message):
        seen["status"] = message.get("status", seen["status"])

    path = route.path.replace("{scope}", "agent").replace("{key}", "k").replace("{name}", "n").replace("{code}", "busy")
    kind = route.reads or "application/json"
    scope = {
        "type": "http", "method": route.method, "path": path, "query_string": b"", "http_version": "1.1",
        "headers": [(b"host", b"localhost"), (b"content-type", kind.encode()), *headers], "client": ("127.0.0.1", 1),
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return seen["status"], seen["body"]


@pytest.mark.promise("promise-6")
def test_no_route_does_any_work_before_it_is_known_who_asks(home):
    gateway = Spied(str(home))
    guarded = [route for route in ROUTES if route.action]
    assert len(guarded) > 40
    wrong = ([], [(b"authorization", b"Bearer hf_aaaaaaaa_" + b"a" * 43)], [(b"authorization", b"Basic eDp5")])
    for route in guarded:
        for headers in wrong:
            assert asked(create_app(gateway), route, headers) == (401, 0), route.name
    assert gateway.used == []
    assert not home.exists()  # no home was created to look up the token
    token = gateway.gate.first_token()
    status, body = asked(create_app(gateway), next(one for one in ROUTES if one.path == "/gateway/memory" and one.reads),
                         [(b"authorization", f"Bearer {token}".encode())])  # fmt: skip
    assert (status, body) == (200, 1) and "memory" in gateway.used  # so the spy would have seen it
    gateway.close()


def test_everything_that_asks_for_a_token_asks_for_one_only(gateway):
    token = gateway.operator.token
    for given in (f"Basic {token}", token, f"Bearer {token} {token}", "Bearer", f"Bearer x{token}"):
        assert gateway.anonymous.get("/gateway/memory", Authorization=given).code == "unauthenticated", given
    sent = f"Authorization: Bearer {token}\r\n"
    twice = f"GET /gateway/memory HTTP/1.1\r\nHost: localhost\r\n{sent}{sent}Connection: close\r\n\r\n"
    assert gateway.anonymous.raw(twice.encode()).split(b" ", 2)[1] == b"401"
    assert gateway.anonymous.get("/no/such/path").status == 401
    assert gateway.operator.get("/no/such/path").code == "no_route"
    assert gateway.anonymous.get(f"/gateway/memory?access_token={token}").status == 401
    assert gateway.anonymous.get("/gateway/memory", Authorization=f"bearer {token}").status == 200


def test_a_path_says_which_methods_it_knows(gateway):
    said = gateway.operator("PATCH", "/v1/notes")
    assert said.code == "wrong_method" and said.headers["allow"] == "GET, POST"
    head = gateway.operator("HEAD", "/gateway/memory")
    assert head.status == 200 and head.data == b""


def test_a_body_that_is_too_large_too_deep_or_no_json_is_refused(gateway):
    (gateway.home / "config.toml").write_text("[serve]\nbody_bytes = 4096\n")
    operator = gateway.operator
    said = operator.post("/gateway/memory", {"key": "k", "value": "x" * 5000})
    assert (said.status, said.code) == (413, "too_large")
    chunked = b"".join(b"1000\r\n" + b"x" * 4096 + b"\r\n" for _ in range(3)) + b"0\r\n\r\n"
    head = (
        f"POST /gateway/memory HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {operator.token}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    assert operator.raw(head.encode() + chunked).split(b" ", 2)[1] == b"413"
    deep = b'{"key": "k", "value": ' + b"[" * 40 + b"]" * 40 + b"}"
    said = operator("POST", "/gateway/memory", raw=deep)
    assert (said.status, said.code) == (413, "too_deep")
    flat = json.dumps({"key": "k", "value": "[" * 200}).encode()
    assert operator("POST", "/gateway/memory", raw=flat).status == 200
    for wrong in (b"{", b"", b"\xff", b'{"key": NaN}', b"null x"):
        assert operator("POST", "/gateway/memory", raw=wrong).status == 400, wrong
    assert operator("POST", "/gateway/memory", raw=b"[]").code == "invalid_request"
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    assert operator("POST", "/gateway/memory", raw=b"a=b", **form).code == "wrong_type"
    assert operator("POST", "/gateway/memory", raw=b'{"key": "\\ud800", "value": "v"}').status == 422


def test_what_cannot_be_read_is_told_as_that_wherever_it_was_to_go(gateway):
    reviewer = gateway.agent("reviewer")  # only the scope agent, and no project
    sent = json.dumps({"text": "x", "scope": "agent"}).encode()
    for path in ("/v1/notes", "/v1/facts"):
        assert reviewer("POST", path, raw=sent, Content_Type="text/plain").code == "wrong_type"
        assert reviewer("POST", path, raw=b"{bad").code == "not_json"
        assert reviewer("POST", path, raw=b"[]").code == "invalid_request"
    rows = gateway.operator.get("/audit?agent=reviewer").json["audit"]
    assert [row["outcome"] for row in rows] == ["allowed"] * 6


def small(text, **most):
    try:
        check_json_size(text.encode(), **most)
    except (Problem, TooLarge) as error:
        return error.code
    return ""


def test_depth_is_that_of_brackets_outside_of_texts():
    assert small('{"a": [[1]], "b": [[2]], "c": [[3]]}', depth=3) == ""
    assert small('{"a": [[[1]]]}', depth=3) == "too_deep"
    assert small('{"a": "[[[[[", "b": "\\"[[[[", "c\\\\": [1, "]]]]"]}', depth=3) == ""
    assert small('{"a\\\\": [[[0]]]}', depth=3) == "too_deep"
    assert small('{"a\\\\\\"[[[[": [0]}', depth=3) == ""
    assert small("]" * 10_000_000 + "[" * 40) == ""  # not JSON: the parser rejects its first character


def test_values_are_counted_before_anything_is_parsed():
    assert small('{"a": "' + "," * 50 + '", "b": [1, 2]}', values=10) == ""
    assert small('{"a": [' + "[]," * 20 + "0]}", values=10) == "too_large"
    assert small('{"a": [' + '"",' * 20 + '""]}', values=10) == "too_large"
    assert small("[" + ",".join("1" * 20) + "]", values=10) == "too_large"


def test_a_role_that_may_not_is_told_so_before_any_of_its_body_is_read(home):
    gateway = Gateway(str(home))
    gateway.gate.first_token()
    token = gateway.gate.add("typist", "secretary")[1]
    taking = [route for route in ROUTES if route.reads is not None]
    assert len(taking) > 20
    for route in taking:
        assert asked(create_app(gateway), route, [(b"authorization", f"Bearer {token}".encode())]) == (403, 0), route.name
    rows = gateway.gate.ledger.audit.list(limit=1000, agent="typist")[0]
    assert [row.outcome for row in rows] == ["denied"] * len(taking)
    gateway.close()


def test_a_small_body_that_came_with_its_head_is_parsed_only_for_callers_that_may_send_it(gateway):
    engineer = gateway.agent("engineer")
    for path, status in (("/v1/recall", 400), ("/agents", 403)):  # an engineer may recall, and may not manage agents
        assert gateway.anonymous("POST", path, raw=b"{no json").status == 401
        assert engineer("POST", path, raw=b"{no json").status == status
    rows = gateway.operator.get("/audit?agent=engineer").json["audit"]
    assert [row["outcome"] for row in rows] == ["denied", "allowed"]


def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(gateway):
    many = b'{"a": [' + b"[]," * 3_000_000 + b"0]}"
    for path in ("/gateway/memory", "/mcp"):
        said = gateway.operator("POST", path, raw=many)
        assert (said.status, said.code) == (413, "too_large") and "values" in said.json["detail"]
    assert gateway.operator.get("/audit?limit=1").status == 200
    long = {"key": "k", "value": "a, [b], {c}, " * 4000}
    assert gateway.operator.post("/gateway/memory", long).status == 200  # a text may have any characters


def test_the_audit_takes_no_text_of_a_request(gateway):
    text = "The combination is 1234"
    typist, operator = gateway.agent("typist", "secretary"), gateway.operator
    for client in (typist, operator):
        for name, role in ((text, "reader"), ("x", text), (text * 9, text)):
            assert client.post("/agents", {"name": name, "role": role}).status in (403, 422)
        assert client("DELETE", f"/agents/{text.replace(' ', '%20')}").status in (403, 422)
        client.post("/v1/receipts", {"agent": text})
        client.get(f"/v1/receipts?agent={text.replace(' ', '+')}")
    assert b"combination" not in operator.get("/audit/export").data
    assert operator.post("/agents", {"name": "new", "role": "secretary"}).status == 201
    row = next(one for one in operator.get("/audit").json["audit"] if one["metadata"]["route"] == "POST /agents")
    assert (row["metadata"]["name"], row["metadata"]["of_role"]) == ("new", "secretary")


def test_a_header_that_says_whose_memory_is_meant_comes_once(gateway):
    for name in ("X-Holdfast-Project", "X-Holdfast-Session"):
        said = gateway.anonymous.raw(
            f"GET /gateway/memory HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {gateway.operator.token}\r\n"
            f"{name}: one\r\n{name}: other\r\nConnection: close\r\n\r\n".encode()
        )
        assert said.split(b" ", 2)[1] == b"422" and b"invalid_request" in said


def test_a_schema_says_where_a_request_is_wrong(gateway):
    said = gateway.operator.post("/v1/recall", {"query": 5, "limit": 1000, "mode": "magic", "nonsense": 1})
    assert (said.status, said.code) == (422, "invalid_request")
    assert {one["pointer"] for one in said.json["errors"]} == {"/query", "/limit", "/mode", "/nonsense"}
    assert gateway.operator.post("/v1/recall", {"query": "x", "limit": 3.0, "mode": "keyword"}).status == 200
    assert gateway.operator.get("/v1/notes?limit=many").json["errors"][0]["pointer"] == "/limit"
    assert gateway.operator.get("/v1/notes?limit=5&limit=6").code == "invalid_request"
    assert gateway.operator.get("/v1/graph").json["errors"] == [{"pointer": "/entity", "detail": "is missing"}]


def test_a_bucket_fills_as_time_goes_by():
    now = [0.0]
    rates = RateLimit(10, lambda: now[0])
    for _ in range(10):
        rates.take("a")
    with pytest.raises(TooMany) as refused:
        rates.take("a")
    assert 0 < refused.value.retry_after <= 0.1
    rates.take("b")
    now[0] = 0.25
    assert [took(rates, "a") for _ in range(4)] == [True, True, False, False]


def took(rates, token):
    try:
        rates.take(token)
    except TooMany:
        return False
    return True


def test_a_flood_at_ten_times_the_limit_gets_what_it_may_and_nobody_else_feels_it():
    now, passed = [0.0], 0
    rates = RateLimit(100, lambda: now[0])
    seconds = 60
    for request in range(seconds * 1000):  # ten times the limit, evenly
        now[0] = request / 1000
        passed += took(rates, "flood")
        if request % 20 == 0:
            assert took(rates, "other")
    assert seconds * 100 <= passed <= seconds * 100 + 100  # the refill, and what was in the bucket at first


def test_while_one_floods_another_is_answered(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 5\n")
    with run_gateway(home) as gateway:
        flood, other, said, over = gateway.agent("flood"), gateway.agent("other"), [], threading.Event()

        def ask():
            while not over.is_set():
                said.append(flood.get("/gateway/memory").status)

        flooding = [threading.Thread(target=ask) for _ in range(4)]
        begun = time.monotonic()
        for thread in flooding:
            thread.start()
        waited = []
        try:
            while len(waited) < 6 or said.count(429) < 30:
                before = time.monotonic()
                assert other.get("/gateway/memory").status == 200  # alternating with rejected requests
                waited.append(time.monotonic() - before)
                assert before - begun < 60
                time.sleep(0.3)
        finally:
            over.set()
            for thread in flooding:
                thread.join()
        spent = time.monotonic() - begun
        assert set(said) == {200, 429} and said.count(200) <= 5 + spent * 5 + 1
        assert sorted(waited)[len(waited) // 2] < 2, waited


def test_who_asks_too_often_is_told_when_to_come_back(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 1\n")
    with run_gateway(home) as gateway:
        flood, other = gateway.agent("flood"), gateway.agent("other")
        begun = time.monotonic()
        said = [flood.get("/gateway/memory") for _ in range(50)]
        spent = time.monotonic() - begun
        passed = [one for one in said if one.status == 200]
        refused = [one for one in said if one.status == 429]
        assert len(passed) + len(refused) == 50 and refused
        assert len(passed) <= 1 + spent + 1
        assert all(one.code == "too_many" and int(one.headers["retry-after"]) >= 1 for one in refused)
        assert other.get("/gateway/memory").status == 200


def unfinished(gateway, client, path="/gateway/memory"):
    """Start a request whose body does not arrive, after it was counted."""
    before = under_way(gateway)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", gateway.port), 30)
    connection.sendall(head.encode())
    deadline = time.monotonic() + 60
    while under_way(gateway) == before:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return connection


def under_way(gateway):
    return sum(gateway.app.state.pipeline.concurrency.by_token.values())


def test_no_token_has_more_than_half_of_what_can_be_answered_at_a_time(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nat_once = 4\n")
    with run_gateway(home) as gateway:
        greedy, other = gateway.agent("greedy"), gateway.agent("other")
        deadline = time.monotonic() + 60
        held = [unfinished(gateway, greedy) for _ in range(2)]
        said = greedy.get("/gateway/memory")
        assert said.code == "too_many" and said.headers["retry-after"] == "1"
        assert other.get("/gateway/memory").status == 200
        for one in held:
            one.close()
        while (said := greedy.get("/gateway/memory")).status != 200 and time.monotonic() < deadline:
            pass
        assert said.status == 200


@pytest.mark.parametrize("path", ["/gateway/memory", "/v1/import", "/mcp"])
def test_bodies_that_do_not_come_shut_nobody_else_out(home, path):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nat_once = 4\n")
    with run_gateway(home) as gateway:
        slow, other = [gateway.agent(f"slow-{number}") for number in range(3)], gateway.agent("other")
        held = [unfinished(gateway, client, path) for client in slow for _ in range(2)]  # more than all callers may have
        assert other.get("/gateway/memory").status == 200
        assert other.post("/gateway/memory", {"key": "k", "value": "v"}).status == 200
        assert slow[0].post(path, {}).code == "too_many"
        for one in held:
            one.close()


def test_a_body_has_so_long_in_all_however_often_a_piece_of_it_comes(gateway, monkeypatch):
    monkeypatch.setattr("holdfast.server.body._BODY_SECONDS", 0.3)
    for path in ("/gateway/memory", "/mcp"):
        connection = unfinished(gateway, gateway.operator, path)
        answer = b""
        connection.settimeout(0.02)
        for _ in range(9):
            connection.sendall(b" ")
            try:
                answer += connection.recv(65536)
            except TimeoutError:
                continue
        connection.settimeout(20)
        answer = answer or connection.recv(65536)
        connection.close()
        assert answer.split(b" ", 2)[1] == b"408" and b"application/problem+json" in answer


def test_a_request_keeps_its_id_if_it_can_stand_in_a_log(gateway):
    assert gateway.anonymous.get("/healthz", X_Request_Id="abc-1.2").headers["x-request-id"] == "abc-1.2"
    for wrong in ("a b", "x" * 65, '{"level":"error"}', "ä"):
        assert gateway.anonymous.get("/healthz", X_Request_Id=wrong.encode()).headers["x-request-id"] != wrong
    said = gateway.operator.get("/v1/notes/agent/none", X_Request_Id="mine")
    assert said.json["request_id"] == "mine"


def test_the_log_and_the_counts_never_have_a_body_a_token_a_key_or_a_text(home):
    log = io.StringIO()
    with run_gateway(home, log) as gateway:
        operator = gateway.operator
        operator.post("/gateway/memory", {"key": "secret-key", "value": "The combination is 1234."})
        operator.get("/v1/notes/agent/secret-key")
        operator.post("/v1/recall", {"query": "combination", "mode": "keyword"})
        operator.post("/gateway/memory", {"key": "COMBINATION\n", "value": "v"})
        gateway.anonymous.get("/gateway/memory", Authorization="Bearer combination")
        counts = operator.get("/metrics")
        assert counts.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    told = (log.getvalue() + counts.data.decode()).lower()
    for never in ("combination", "secret-key", operator.token.lower(), operator.token[12:].lower()):
        assert never not in told
    assert [line["status"] for line in lines] == [200, 200, 200, 422, 401, 200]
    assert lines[0]["agent"] == "operator" and lines[0]["route"] == "POST /gateway/memory"
    assert lines[4]["outcome"] == "unauthenticated"
    assert 'holdfast_requests_total{route="POST /gateway/memory",status="200"} 1' in counts.data.decode()
    assert 'holdfast_refused_total{why="unauthenticated"} 1' in counts.data.decode()
    assert 'holdfast_request_seconds_count{route="POST /v1/recall"} 1' in counts.data.decode()


def test_a_scraper_may_read_the_counts_and_nothing_else(gateway):
    assert gateway.anonymous.get("/metrics").status == 401
    assert gateway.agent("reviewer").get("/metrics").code == "denied"
    gateway.add_role("scraper", ["metrics.read"], [])
    scraper = gateway.agent("prometheus", "scraper")
    assert b"holdfast_requests_total" in scraper.get("/metrics").data
    for path in ("/audit", "/audit/export", "/agents", "/roles", "/done", "/v1/notes", "/v1/check", "/gateway/memory"):
        assert scraper.get(path).code == "denied", path
    gateway.add_role("auditor", ["audit.read"], [])
    assert gateway.agent("auditor", "auditor").get("/metrics").code == "denied"


def test_health_is_told_to_everybody_and_readiness_is_the_ledgers(gateway):
    assert gateway.anonymous.get("/healthz").json == {"status": "ok"}
    assert gateway.anonymous.get("/readyz").json == {"status": "ok"}
    assert gateway.anonymous.get("/problems/busy").json["status"] == 503
    assert gateway.anonymous.get("/problems/nonsense").code == "no_route"


def test_a_ledger_that_cannot_be_read_makes_it_unready(home):
    first = Gateway(str(home))
    first.gate.first_token()
    first.close()
    newer = sqlite3.connect(home / "ledger.db")
    newer.execute("PRAGMA user_version = 99")  # as written by a later version of Holdfast
    newer.close()
    gateway = Gateway(str(home))
    ready = next(route for route in ROUTES if route.path == "/readyz")
    assert asked(create_app(gateway), ready, []) == (503, 0)
    assert asked(create_app(gateway), ROUTES[0], [(b"authorization", b"Bearer hf_aaaaaaaa_" + b"a" * 43)])[0] == 500
    gateway.close()


def test_a_refusal_that_is_being_written_down_keeps_nobody_at_the_door(gateway, monkeypatch):
    append, begun, gate, said = Audit.append, threading.Event(), threading.Event(), []

    def slow(self, decision, durable=False):
        if decision.outcome == "denied":
            begun.set()
            gate.wait(60)
        append(self, decision, durable)

    monkeypatch.setattr(Audit, "append", slow)
    secretary = gateway.agent("secretary", "secretary")
    pair = {"key": "harbour", "value": "words"}
    refused = threading.Thread(target=lambda: said.append(secretary.post("/gateway/memory", pair)))
    refused.start()
    try:
        assert begun.wait(60)
        assert gateway.agent("reviewer").post("/gateway/memory", pair).status == 200 and not said
    finally:
        gate.set()
        refused.join()
    assert said[0].status == 403


def test_what_nobody_foresaw_is_a_problem_too_and_says_nothing_of_what_was_asked(home, monkeypatch):
    log = io.StringIO()
    with run_gateway(home, log) as gateway:
        monkeypatch.setattr("holdfast.api.pagination.iterate_notes", lambda *given: 1 / 0)
        said = gateway.operator.get("/gateway/memory")
        assert (said.status, said.code) == (500, "unforeseen") and said.json["detail"] == "ZeroDivisionError"
    line = json.loads(log.getvalue().splitlines()[-1])
    assert line["trouble"][0] == "ZeroDivisionError" and any("gateway_memory.py" in frame for frame in line["trouble"])


def test_a_problem_does_not_say_where_the_home_is(gateway):
    said = gateway.operator.post("/agents", {"name": "x", "role": "nobody"})
    assert said.status == 422 and str(gateway.home) not in said.data.decode() and "HOME/roles" in said.json["fix"]


def test_a_role_whose_file_is_broken_does_not_say_where_the_home_is(gateway):
    (gateway.home / "roles").mkdir(mode=0o700)
    (gateway.home / "roles" / "broken.yaml").write_text("name: [\n")
    said = gateway.operator.get("/roles")
    assert said.json["broken"][0]["role"] == "broken" and str(gateway.home) not in said.data.decode()


def test_many_ask_at_once_and_each_gets_its_own_answer(gateway):
    agents = [gateway.agent(f"a{number}") for number in range(6)]
    failed = []

    def work(agent, number):
        for turn in range(8):
            agent.post("/gateway/memory", {"key": f"k{turn}", "value": f"{number} {turn}"})
        told = {row["key"]: row["value"] for row in agent.get("/gateway/memory").json["memory"]}
        if told != {f"k{turn}": f"{number} {turn}" for turn in range(8)}:
            failed.append((number, told))

    threads = [threading.Thread(target=work, args=(agent, number)) for number, agent in enumerate(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert gateway.operator.get("/audit/verify").json["ok"] is True


def test_logs_go_on_without_a_stream():
    closed = io.StringIO()
    closed.close()
    logs = Logs(closed)
    logs.log("info", event="x")
    logs.log("info", event="y")
