"""The audit of a running gateway, on a home and on PostgreSQL: the mark, times, failed authentications and client addresses."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from itertools import pairwise

import psycopg
import pytest
from http_gateway import Client, run_gateway
from mcp_raw import HOLDFAST
from starlette.datastructures import Headers
from test_http_serve import started
from wait import wait_until

from holdfast import config
from holdfast.access.failed_authentications import MAX_SOURCES, OTHERS, REASONS
from holdfast.base import dates
from holdfast.context.ledgers import open_ledger
from holdfast.ledger.audit_verify import verify
from holdfast.server.client_address import find_client_address

PAIR = {"key": "harbour", "value": "Harbour words."}


@pytest.fixture(params=["home", "postgres"])
def store(request, home, monkeypatch):
    """Where the gateway keeps everything: "" for the home, else the URL of a database."""
    home.mkdir(mode=0o700)
    if request.param == "home":
        return ""
    url = request.getfixturevalue("postgres_url")
    monkeypatch.setenv("HOLDFAST_STORE", url)
    return url


@pytest.fixture
def gateway(home, store):
    with run_gateway(home) as one:
        yield one


@contextmanager
def opened(home):
    """The ledger as another process sees it."""
    with closing(open_ledger(config.load(home))) as ledger:
        yield ledger


def change(home, store, *statements):
    """Run SQL as an intruder who can write the database."""
    if store:
        with psycopg.connect(store, autocommit=True) as db:
            for statement in statements:
                db.execute(statement.replace("TABLE", "holdfast.agent_action_log").replace("HEAD", "holdfast.audit_head"))
        return
    with closing(sqlite3.connect(home / "ledger.db", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement.replace("TABLE", "audit").replace("HEAD", "audit_head"))


def rows(client, query="action=authenticate&limit=500"):
    return client.get(f"/audit?{query}").json["audit"]


# --- the mark ---------------------------------------------------------------------------------------------------------


def test_rows_cut_off_while_nobody_asks_anything_are_noticed(gateway, home, store):
    agent = gateway.agent("a")
    for _ in range(7):
        assert agent.post("/gateway/memory", PAIR).status == 200
    with opened(home) as ledger:
        head = ledger.audit.read_head()
        wait_until(lambda: ledger.audit.read_mark() == head)  # no request comes meanwhile
        left = head.count - 5
        change(
            home, store, f"DELETE FROM TABLE WHERE number > {left}",
            f"UPDATE HEAD SET count = {left}, marked = {left}, hash = (SELECT hash FROM TABLE WHERE number = {left})",
        )  # fmt: skip
        verdict = verify(ledger.audit)
    assert not verdict.ok and verdict.problems == (f"row {head.count} is missing, but {ledger.audit.mark_name} refers to it",)
    assert gateway.operator.get("/audit/verify").json["ok"] is False


def test_a_gateway_that_ends_leaves_no_row_behind_the_mark(home, store):
    with run_gateway(home) as gateway:
        agent = gateway.agent("a")
        for _ in range(3):
            agent.get("/gateway/memory")
        gateway.anonymous.get("/gateway/memory")
    with opened(home) as ledger:
        assert ledger.audit.read_mark() == ledger.audit.read_head() == ledger.audit.read_last()


def test_a_mark_that_a_killed_process_left_behind_is_moved_at_the_next_start(home):
    home.mkdir(mode=0o700)
    with run_gateway(home) as gateway:
        old = (home / "audit.head").read_bytes()
        gateway.operator.get("/gateway/memory")
    (home / "audit.head").write_bytes(old)  # killed after the ledger was written, and before the file
    with run_gateway(home), opened(home) as ledger:
        assert wait_until(lambda: ledger.audit.read_mark() == ledger.audit.read_head())
        assert verify(ledger.audit).ok


# --- times ------------------------------------------------------------------------------------------------------------


def test_rows_have_milliseconds_and_older_rows_are_found_and_verified_beside_them(home, store, clock, monkeypatch):
    clock.set("2020-05-02T09:00:00Z")
    with run_gateway(home) as gateway:
        operator = gateway.operator
        for second, milliseconds in ((10, 0.0), (10, 0.123), (10, 0.5), (11, 0.25)):
            clock.set(f"2020-05-02T09:00:{second}Z")
            clock.forward(milliseconds)
            old_form = milliseconds == 0.0
            with monkeypatch.context() as patched:
                if old_form:
                    patched.setattr(dates, "now_milliseconds", dates.now)  # as versions before wrote it
                operator.get("/gateway/memory")
        found = [row["time"] for row in rows(operator, "action=agent.memory.read")]
        day = "2020-05-02T09:00:"
        assert found == [f"{day}11.250Z", f"{day}10.500Z", f"{day}10.123Z", f"{day}10Z"]

        def between(**period):
            query = "&".join(f"{name}={moment}" for name, moment in period.items())
            return [row["time"] for row in rows(operator, f"action=agent.memory.read&{query}")][::-1]

        assert between(since=f"{day}10Z") == found[::-1]
        assert between(until=f"{day}10Z") == []
        assert between(since=f"{day}10.123Z", until=f"{day}10.5Z") == [f"{day}10.123Z"]
        assert between(since=f"{day}11Z") == [f"{day}11.250Z"]
        assert between(until=f"{day}11Z") == [f"{day}10Z", f"{day}10.123Z", f"{day}10.500Z"]
        first = operator.get("/audit?action=agent.memory.read&limit=2").json
        second = operator.get(f"/audit?action=agent.memory.read&limit=2&cursor={first['next']}").json
        assert [row["time"] for page in (first, second) for row in page["audit"]] == found
        assert operator.get("/audit/verify").json["ok"] is True
        for period, expected in ((f"since={day}11Z", found[:1]), (f"until={day}11Z", found[:0:-1])):
            exported = operator.get(f"/audit/export?{period}").lines
            assert [row["time"] for row in exported if row["action"] == "agent.memory.read"] == expected
            assert all(after["previous"] == before["hash"] for before, after in pairwise(exported))
        assert operator.get(f"/audit/export?since={day}11Z").lines[0]["previous"]


# --- failed authentications -------------------------------------------------------------------------------------------


def test_failed_authentications_are_in_the_audit_and_the_log_with_the_public_part_of_the_token(home, store, clock):
    log = io.StringIO()
    with run_gateway(home, log) as gateway:
        revoked, expired = gateway.agent("gone"), Client(gateway.port, gateway.gate.add("old", "secretary", 1)[1])
        gateway.operator("DELETE", "/agents/gone")
        clock.forward(days=2)
        unknown = Client(gateway.port, "hf_abcdefgh_" + "x" * 43)
        for client in (gateway.anonymous, unknown, revoked, revoked, revoked, expired, Client(gateway.port, "nonsense")):
            assert client.get("/gateway/memory").status == 401
        revoked.post("/mcp", {})  # every door
        wait_until(lambda: len(rows(gateway.operator)) >= 4)
        clock.forward(minutes=2)
        wait_until(lambda: sum(row["metadata"]["count"] for row in rows(gateway.operator)) == 8)
        found = rows(gateway.operator)
        assert gateway.operator.get("/audit/verify").json["ok"] is True
    assert {(row["agent"], row["metadata"]["reason"]) for row in found} == {
        ("(unknown)", "missing"), ("(unknown)", "invalid"), ("gone", "revoked"), ("old", "expired"),
    }  # fmt: skip
    assert all(row["outcome"] == "denied" and row["metadata"]["address"] == "127.0.0.1" for row in found)
    tokens = {row["metadata"]["reason"]: row["metadata"].get("token") for row in found}
    assert tokens == {
        "missing": None, "invalid": "abcdefgh", "revoked": revoked.token[3:11], "expired": expired.token[3:11],
    }  # fmt: skip
    assert sum(row["metadata"]["count"] for row in found if row["metadata"]["reason"] == "revoked") == 4
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    told = [(line["reason"], line.get("token"), line["address"]) for line in lines if line.get("status") == 401]
    assert told[:3] == [("missing", None, "127.0.0.1"), ("invalid", "abcdefgh", "127.0.0.1"), ("revoked", revoked.token[3:11], "127.0.0.1")]  # fmt: skip  # noqa: E501
    everything = log.getvalue() + json.dumps(found)
    assert not any(client.token[12:] in everything for client in (revoked, expired, unknown)) and "nonsense" not in everything


def test_many_failures_of_many_addresses_are_few_rows(home, store, clock):
    (home / "config.toml").write_text('[serve]\ntrusted_proxies = ["127.0.0.0/8"]\n')
    with run_gateway(home) as gateway:
        before = gateway.gate.ledger.audit.read_head().count
        for number in range(3 * MAX_SOURCES):
            for _ in range(3):
                gateway.anonymous.get("/gateway/memory", X_Forwarded_For=f"2001:db8::{number:x}")
        clock.forward(minutes=1)

        def counted():
            found = rows(gateway.operator)
            return found if sum(row["metadata"]["count"] for row in found) == 9 * MAX_SOURCES else None

        found = wait_until(counted)
        others = [row for row in found if row["metadata"]["address"] == OTHERS]
        assert len(found) <= 2 * (MAX_SOURCES + len(REASONS))
        assert sum(row["metadata"]["count"] for row in others) == 6 * MAX_SOURCES
        assert len({row["metadata"]["address"] for row in found}) == MAX_SOURCES + 1
        assert gateway.gate.ledger.audit.read_head().count - before < 9 * MAX_SOURCES
        assert (
            f"holdfast_audit_failed_authentications_total {9 * MAX_SOURCES}" in gateway.operator.get("/metrics").data.decode()
        )


# --- client addresses -------------------------------------------------------------------------------------------------


def test_every_decision_has_the_clients_address_and_only_a_trusted_proxy_can_name_another(home, store):
    log = io.StringIO()
    with run_gateway(home, log) as gateway:
        agent, secretary = gateway.agent("a"), gateway.agent("typist", "secretary")
        forged = {"X_Forwarded_For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
        agent.post("/gateway/memory", PAIR, **forged)
        secretary.post("/gateway/memory", PAIR, **forged)
        gateway.operator.post("/agents", {"name": "new", "role": "secretary"}, **forged)
        assert {row["metadata"]["address"] for row in rows(gateway.operator, "limit=500") if row["agent"] != "(local)"} == {
            "127.0.0.1"
        }
        (home / "config.toml").write_text('[serve]\ntrusted_proxies = ["127.0.0.1", "10.0.0.0/8"]\n')
        gateway.operator.get("/gateway/memory")  # the settings are read again
        agent.post("/gateway/memory", PAIR, X_Forwarded_For="6.6.6.6, 198.51.100.7, 10.1.2.3")
        secretary.post("/gateway/memory", PAIR, Forwarded='for=6.6.6.6;proto=https, for="[2001:db8::5]:4711"')
        gateway.operator.post("/agents", {"name": "newer", "role": "secretary"}, X_Forwarded_For="198.51.100.8:5555")
        said = {
            row["agent"]: row["metadata"]["address"]
            for row in reversed(rows(gateway.operator, "limit=500&action=agent.memory.write"))
        }
        assert said == {"a": "198.51.100.7", "typist": "2001:db8::5"}
        assert rows(gateway.operator, "action=agents.manage&limit=1")[0]["metadata"]["address"] == "198.51.100.8"
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["address"] for line in lines if line["route"] == "POST /gateway/memory"] == [
        "127.0.0.1", "127.0.0.1", "198.51.100.7", "2001:db8::5",
    ]  # fmt: skip
    assert all(line["token"] for line in lines if line["status"] == 200)
    assert all(len(line["token"]) == 8 for line in lines if "token" in line)


@pytest.mark.parametrize(("words", "address"), [((), "127.0.0.1"), (("--trusted-proxy", "127.0.0.1"), "198.51.100.7")])
def test_a_process_trusts_the_proxies_that_its_command_line_names(home, tmp_path, words, address):
    with started(home, tmp_path, "--json-logs", *words) as process:
        process.ask.get("/gateway/memory", X_Forwarded_For="198.51.100.7")
        assert json.loads(process.line('"status": 401'))["address"] == address
        wrong = [*HOLDFAST, "serve", "--home", str(home), "--port", "0", "--trusted-proxy", "10.0.0.0/99"]
        rejected = subprocess.run(wrong, capture_output=True, text=True, timeout=120)
        assert rejected.returncode != 0 and "--trusted-proxy" in rejected.stderr and "10.0.0.0/99" in rejected.stderr


@pytest.mark.parametrize(
    ("peer", "sent", "trusted", "address"),
    [
        ("198.51.100.1", ["1.1.1.1"], (), "198.51.100.1"),
        ("198.51.100.1", ["1.1.1.1"], ("10.0.0.0/8",), "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1"], ("10.0.0.0/8",), "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6, 1.1.1.1, 10.0.0.2"], ("10.0.0.0/8",), "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6", "1.1.1.1"], ("10.0.0.0/8",), "1.1.1.1"),  # two lines are one list
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], ("10.0.0.0/8",), "10.0.0.3"),
        ("10.0.0.1", ["1.1.1.1, unknown"], ("10.0.0.0/8",), "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1, <script>, 10.0.0.2"], ("10.0.0.0/8",), "10.0.0.2"),
        ("10.0.0.1", [""], ("10.0.0.0/8",), "10.0.0.1"),
        ("10.0.0.1", [], ("10.0.0.0/8",), "10.0.0.1"),
        ("::ffff:10.0.0.1", ["[2001:db8::1]:99"], ("10.0.0.0/8",), "2001:db8::1"),
        ("fe80::1%eth0", ["1.1.1.1"], ("fe80::/10",), "1.1.1.1"),
        ("", ["1.1.1.1"], ("0.0.0.0/0",), ""),
        ("10.0.0.1", [",".join(["10.0.0.9"] * 5000)], ("10.0.0.0/8",), "10.0.0.9"),
        ("10.0.0.1", ["1.1.1.1, [2001:db8::1]" + "9" * 60_000], ("10.0.0.0/8",), "10.0.0.1"),
    ],
)
def test_the_last_hop_that_no_trusted_proxy_has_is_the_client(peer, sent, trusted, address):
    headers = Headers(raw=[(b"x-forwarded-for", one.encode()) for one in sent])
    assert find_client_address(peer, headers, trusted) == address
