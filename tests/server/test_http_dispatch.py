"""Dispatch through the gateway: for which agent it is composed, what the roles allow, and how a webhook recognises it (A5)."""

from __future__ import annotations

import pytest
from github_server import TOKEN, GitHub

NOTE = {"key": "k", "value": "Harbour words."}


@pytest.fixture
def hook(gateway):
    """A webhook that records what it receives."""
    one = GitHub()
    (gateway.home / "config.toml").write_text(f'[dispatch]\nwebhook = "{one.url}/hook"\nkey = "{TOKEN}"\n')
    yield one
    one.close()


def rows_of(gateway, action):
    return [(row.agent, row.outcome, row.metadata) for row in gateway.gate.ledger.audit.list(action=action)[0]]


@pytest.mark.promise("A5", "A3")
def test_memory_that_the_role_may_not_read_is_not_in_a_dispatch_and_a_row_says_so(gateway):
    gateway.add_role("runner", ["dispatch", "agent.memory.write"])
    runner = gateway.agent("runner", "runner")
    runner.post("/gateway/memory", NOTE)
    assert runner.get("/gateway/memory").code == "denied"
    said = runner.post("/dispatch", {"task": "Go"})
    assert said.status == 200 and "Harbour" not in said.data.decode()
    assert "may not agent.memory.read" in said.json["role_context"]["degraded"]
    ((agent, outcome, told), _) = rows_of(gateway, "agent.memory.read")
    assert (agent, outcome, told["route"], told["scope"]) == ("runner", "denied", "POST /dispatch", "agent")
    gateway.add_role("runner", ["dispatch", "agent.memory.read", "agent.memory.write"], ["project"])
    assert "does not reach the scope agent" in runner.post("/dispatch", {"task": "Go"}).json["role_context"]["degraded"]


@pytest.mark.promise("A5")
def test_who_manages_agents_dispatches_for_one_with_its_role_and_its_memory(gateway, hook):
    reviewer = gateway.agent("reviewer")
    reviewer.post("/gateway/memory", NOTE)
    gateway.operator.post("/gateway/memory", {"key": "own", "value": "The operator's own."})
    said = gateway.operator.post("/dispatch", {"task": "Review it", "agent": "reviewer", "to": "webhook"}).json
    context = said["role_context"]
    assert said["agent"] == "reviewer" and context["role"] == "code-review-engineer" and context["skills"] == ["update-memory"]
    assert "Harbour words." in context["memory"] and "operator's own" not in context["memory"] and context["degraded"] == ""
    assert hook.reviews["/hook"][0]["agent"] == "reviewer"
    assert [told["name"] for agent, _, told in rows_of(gateway, "agent.memory.read") if agent == "operator"] == ["reviewer"]
    managed = [told for *_, told in rows_of(gateway, "agents.manage") if told.get("route") == "POST /dispatch"]
    assert [told["name"] for told in managed] == ["reviewer"]
    assert gateway.operator.post("/dispatch", {"task": "x", "agent": "nobody"}).code == "not_found"
    assert gateway.operator.post("/dispatch", {"task": "x"}).json["agent"] == "operator"


@pytest.mark.promise("A5", "A1")
def test_who_may_not_manage_agents_dispatches_for_no_other_and_no_role_gives_another_more(gateway):
    gateway.add_role("runner", ["dispatch", "agent.memory.read", "agent.memory.write"])
    gateway.add_role("writer", ["agent.memory.write"])
    runner, writer = gateway.agent("runner", "runner"), gateway.agent("writer", "writer")
    writer.post("/gateway/memory", NOTE)
    assert runner.post("/dispatch", {"task": "x", "agent": "writer"}).code == "denied"
    assert runner.post("/dispatch", {"task": "x", "agent": "runner"}).json["agent"] == "runner"
    said = gateway.operator.post("/dispatch", {"task": "x", "agent": "writer"}).json["role_context"]
    assert said["role"] == "writer" and said["memory"] == "" and "writer may not agent.memory.read" in said["degraded"]


@pytest.mark.promise("A5")
def test_a_webhook_can_tell_two_dispatches_apart_and_one_that_comes_again(gateway, hook):
    gateway.add_role("runner", ["dispatch"])
    first, second = gateway.agent("first", "runner"), gateway.agent("second", "runner")
    task = {"task": "Go", "to": "webhook"}
    for agent in (first, second, first):
        assert agent.post("/dispatch", task, X_Request_Id="same").status == 200
    assert first.post("/dispatch", {**task, "task": "Stay"}, X_Request_Id="same").status == 200
    assert len(set(hook.keys)) == 4 and "same" not in hook.keys
    hook.plan = ["drop"]
    assert first.post("/dispatch", task, Idempotency_Key="mine").code == "unreached"
    assert first.post("/dispatch", task, Idempotency_Key="mine").status == 200
    assert second.post("/dispatch", task, Idempotency_Key="mine").status == 200
    *_, dropped, again, other = hook.keys
    assert dropped == again != other and len(set(hook.keys)) == 6
    assert first.post("/dispatch", task, Idempotency_Key="mine").headers["idempotency-replayed"] == "true"
    assert hook.posts == 7
