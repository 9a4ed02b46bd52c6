"""The audit of the gateway while its ledger cannot be written (A3)."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import apsw
import pytest
from http_gateway import run_gateway

CHANGES = [
    ("POST", "/agents", {"name": "new", "role": "secretary"}, "add"),
    ("POST", "/agents/a/token", {}, "rotate"), ("DELETE", "/agents/a", None, "revoke"),
]  # fmt: skip
HOLD = """
import sqlite3, sys
ledger = sqlite3.connect(sys.argv[1], isolation_level=None)
ledger.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""
PAIR = {"key": "k", "value": "Harbour words."}


@pytest.fixture
def gateway(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[lock]\nseconds = 1\n")
    with run_gateway(home) as one:
        yield one


@contextmanager
def held(home):
    """Keep the ledger open for writing in another process."""
    words = [sys.executable, "-c", HOLD, str(home / "ledger.db")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        try:
            yield
        finally:
            other.stdin.close()
            other.wait(60)


@pytest.mark.promise("A3")
def test_a_decision_that_cannot_be_written_down_stands_and_the_next_row_says_so(gateway):
    agent, secretary = gateway.agent("a"), gateway.agent("typist", "secretary")
    with held(gateway.home):
        assert agent.post("/gateway/memory", PAIR).status == 200
        assert secretary.post("/gateway/memory", PAIR).code == "denied"
    assert agent.get("/gateway/memory").json["memory"][0]["value"] == "Harbour words."
    row = gateway.operator.get("/audit?agent=a&limit=1").json["audit"][0]
    assert row["action"] == "agent.memory.read" and row["metadata"]["unrecorded"] == 2
    assert "holdfast_audit_unrecorded_total 2" in gateway.operator.get("/metrics").data.decode()
    assert gateway.operator.get("/audit/verify").json["ok"] is True


@pytest.mark.promise("A3")
def test_purging_exporting_and_changing_tokens_are_never_done_without_a_row(gateway):
    operator = gateway.operator
    operator.post("/gateway/memory", PAIR)
    with held(gateway.home):
        for said in (
            operator.post("/v1/notes/agent/k/purge"), operator.get("/v1/export"),
            operator.post("/agents", {"name": "new", "role": "secretary"}),
        ):  # fmt: skip
            assert (said.status, said.code) == (503, "unrecorded") and b"Harbour" not in said.data
    assert operator.get("/v1/notes/agent/k").status == 200
    assert [row["name"] for row in operator.get("/agents").json["agents"]] == ["operator"]


@contextmanager
def refusing(home, change, table, when="1"):
    """Make the ledger reject this kind of change of a table."""
    ledger = apsw.Connection(f"{home}/ledger.db")
    ledger.execute(f"CREATE TRIGGER refuse BEFORE {change} ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, 'refused'); END")
    try:
        yield
    finally:
        ledger.execute("DROP TRIGGER refuse")
        ledger.close()


def changes_of_tokens(gateway, injected, verb, change):
    """Return the agents and the audit rows of a change, before it and after it was tried and failed."""
    before = gateway.operator.get("/agents").json
    with injected:
        said = gateway.operator(*change)
    rows = [row["metadata"] for row in gateway.operator.get("/audit?action=agents.manage&limit=500").json["audit"]]
    assert gateway.operator.get("/audit/verify").json["ok"] is True
    assert gateway.operator.get("/agents").json == before, "it was changed"
    return said, [row for row in rows if row.get("request") == said.headers["x-request-id"]]


@pytest.mark.promise("A3")
@pytest.mark.parametrize(("method", "path", "body", "verb"), CHANGES)
def test_a_change_of_tokens_and_its_row_are_both_there_or_neither(gateway, method, path, body, verb):
    gateway.agent("a")
    change = (method, path, body)
    says = f"json_extract(new.metadata, '$.verb') = '{verb}'"
    for table, when in (("audit", says), ("tokens", "1")):
        where = "UPDATE" if (table, verb) == ("tokens", "revoke") else "INSERT"
        said, rows = changes_of_tokens(gateway, refusing(gateway.home, where, table, when), verb, change)
        assert said.status >= 500
        assert [(row.get("verb"), row["failed"]) for row in rows] == [(None, said.json["code"])], table
    said, rows = changes_of_tokens(gateway, refusing(gateway.home, "INSERT", "audit"), verb, change)
    assert (said.status, said.code) == (503, "unrecorded") and rows == []
    said = gateway.operator(*change)
    assert said.status in (200, 201)
    (row,) = [row for row in gateway.operator.get("/audit").json["audit"] if row["metadata"].get("verb") == verb
              and row["agent"] == "operator"]  # fmt: skip
    assert row["metadata"]["request"] == said.headers["x-request-id"] and "failed" not in row["metadata"]
    assert ("new_token" in row["metadata"]) == (verb != "revoke") and row["metadata"]["name"] in ("new", "a")


@pytest.mark.promise("A3")
def test_a_change_that_was_refused_has_a_row_that_says_so(gateway):
    gateway.agent("a")
    for method, path, body, code in (
        ("POST", "/agents", {"name": "a", "role": "secretary"}, "conflict"), ("DELETE", "/agents/nobody", None, "not_found"),
        ("POST", "/agents", {"name": "b", "role": "nothing"}, "usage"), ("POST", "/agents", {"name": "b"}, "invalid_request"),
        ("DELETE", "/agents/operator", None, "conflict"),
    ):  # fmt: skip
        said = gateway.operator(method, path, body)
        row = gateway.operator.get("/audit?action=agents.manage&limit=1").json["audit"][0]
        assert said.code == code and row["metadata"]["request"] == said.headers["x-request-id"]
        assert (row["outcome"], row["metadata"]["failed"]) == ("allowed", code)


@pytest.mark.promise("A3")
def test_in_strict_mode_nothing_is_done_that_cannot_be_written_down(gateway):
    agent = gateway.agent("a")
    (gateway.home / "config.toml").write_text('[lock]\nseconds = 1\n[audit]\nmode = "strict"\n')
    with held(gateway.home):
        said = agent.post("/gateway/memory", PAIR)
        assert (said.status, said.code) == (503, "unrecorded") and int(said.headers["retry-after"]) >= 1
        assert agent.get("/gateway/memory").code == "unrecorded"
    assert agent.get("/gateway/memory").json == {"memory": []}
    assert agent.post("/gateway/memory", PAIR).status == 200


@pytest.mark.promise("A3")
def test_what_could_not_be_written_down_is_told_also_after_a_setting_was_changed(gateway):
    agent = gateway.agent("a")
    with held(gateway.home):
        assert agent.post("/gateway/memory", PAIR).status == 200
    (gateway.home / "config.toml").write_text("[lock]\nseconds = 2\n")
    assert agent.get("/gateway/memory").status == 200
    assert gateway.operator.get("/audit?agent=a&limit=1").json["audit"][0]["metadata"]["unrecorded"] == 1
    assert "holdfast_audit_unrecorded_total 1" in gateway.operator.get("/metrics").data.decode()
