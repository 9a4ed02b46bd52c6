"""The audit through the gateway when its ledger cannot be written in the middle of things (A3)."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import pytest

from http_gateway import served

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
    with served(home) as one:
        yield one


@contextmanager
def held(home):
    """Another process has the ledger open for writing and does not let go of it."""
    words = [sys.executable, "-c", HOLD, str(home / "ledger.db")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        try:
            yield
        finally:
            other.stdin.close()
            other.wait(20)


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
