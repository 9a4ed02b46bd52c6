"""Dispatch through the gateway: for which agent it is composed, what the roles allow, and how a webhook recognises it (A5)."""

from __future__ import annotations

import json
import re

import both_gateways
import pytest
from github_server import TOKEN, GitHub

gateway = both_gateways.gateway  # each test runs on both stores
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
    assert "does not have the permission agent.memory.read" in said.json["role_context"]["degraded"]
    (agent, outcome, told), _ = rows_of(gateway, "agent.memory.read")
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
    assert (
        said["role"] == "writer"
        and said["memory"] == ""
        and "writer does not have the permission agent.memory.read" in said["degraded"]
    )
    rows = [row for row in rows_of(gateway, "agent.memory.read") if row[2].get("name") == "writer"]
    (agent, outcome, told), *others = rows
    assert (agent, outcome, told["of_role"], others) == ("operator", "denied", "writer", [])
    assert told["reason"].startswith("writer: ") and told["route"] == "POST /dispatch" and told["scope"] == "agent"
    assert gateway.operator.get("/audit/verify").json["ok"] is True


# --- the memory of a dispatch -----------------------------------------------------------------------------------------


def compose(gateway, agent, **given):
    """Return the role context of a dispatch for an agent, after checks that hold for every one."""
    context = gateway.operator.post("/dispatch", {"task": "x", "agent": agent, **given}).json["role_context"]
    assert context["degraded"] == "" and len(context["memory"]) <= given.get("budget", 9000)
    assert "`holdfast" not in context["text"] and "memory_" not in context["text"]
    last = context["memory"].splitlines()[-2]
    for count, words in ((context["left_out"], "notes? left out"), (len(context["shortened"]), "notes? by title only")):
        said = re.search(rf"([\d,]+) {words}", last)
        assert int(said[1].replace(",", "")) == count if said else count == 0, (words, last)
    assert "`GET /v1/notes`" in last and "`GET /v1/notes/SCOPE/KEY`" in last and "`POST /v1/recall`" in last
    return context


def is_whole(context, value):
    return value.strip() in context["memory"]


@pytest.mark.promise("A5")
def test_a_dispatch_has_every_note_that_the_budget_holds_and_counts_the_others(gateway):
    agent = gateway.agent("reviewer")
    values = {f"k{number:03}": f"Note {number:03}: " + f"harbour words of {number:03} " * 8 for number in range(450)}
    lines = "".join(json.dumps({"key": key, "text": value, "scope": "agent"}) + "\n" for key, value in values.items())
    done = agent("POST", "/v1/import?own=true", raw=lines.encode(), Content_Type="application/x-ndjson")
    assert done.status == 200, done
    for budget in (750, 2000, 9000, 30_000, 200_000):
        context = compose(gateway, "reviewer", budget=budget)
        whole = [key for key, value in values.items() if is_whole(context, value)]
        assert len(whole) == context["notes"] and not {f"agent/{key}" for key in whole} & set(context["shortened"])
        assert len(whole) + len(context["shortened"]) + context["left_out"] == len(values)
        assert len(context["memory"]) > 0.8 * min(budget, 100_000)
    assert context["notes"] == len(values) and context["left_out"] == 0 and "Nothing was left out." in context["memory"]
    assert compose(gateway, "reviewer")["left_out"] > 300  # without a budget: 9,000 characters
    for budget in (749, 400_001):
        refused = gateway.operator.post("/dispatch", {"task": "x", "agent": "reviewer", "budget": budget})
        assert refused.code == "invalid_request"


@pytest.mark.promise("A5")
def test_a_note_too_long_for_the_budget_is_named_as_shortened_and_whole_with_a_larger_one(gateway):
    agent = gateway.agent("reviewer")
    long, facts = "word " * 3000 + "the end", "# Ada\n- [role] " + "captain " * 90 + "of the harbour"
    for key, value in (("long", long), ("facts", facts), ("small", "Small words.")):
        assert agent.post("/gateway/memory", {"key": key, "value": value}).status == 200
    small = compose(gateway, "reviewer", budget=1000)
    assert sorted(small["shortened"]) == ["agent/facts", "agent/long"] and small["left_out"] == 0 and small["notes"] == 1
    assert "the end" not in small["memory"] and "of the harbour" not in small["memory"]
    large = compose(gateway, "reviewer", budget=20_000)
    assert large["shortened"] == [] and large["notes"] == 3 and large["left_out"] == 0
    assert "the end" in large["memory"] and "of the harbour" in large["memory"]


@pytest.mark.promise("A5")
def test_a_dispatch_says_that_notes_are_in_quarantine_and_that_an_overview_is_cut(gateway):
    agent = gateway.agent("reviewer")
    agent.post("/gateway/memory", NOTE)
    agent("PUT", "/v1/notes/agent/page", {"text": "From a web page.", "origin": "web"})
    pages = "".join(f"Line {number} of the overview.\n" for number in range(300))
    created = agent.post("/v1/files/create", {"scope": "agent", "path": "/memories/MEMORY.md", "file_text": pages})
    assert created.status in (200, 201), created
    said = gateway.operator.post("/dispatch", {"task": "x", "agent": "reviewer", "budget": 2000}).json["role_context"]
    assert said["left_out"] == 1 and "1 note left out (1 in quarantine until a person approves them)" in said["memory"]
    assert "files/MEMORY.md" in said["shortened"] and "files/MEMORY.md cut." in said["memory"]
    assert "From a web page" not in said["memory"] and len(said["memory"]) <= 2000
    whole = gateway.operator.post("/dispatch", {"task": "x", "agent": "reviewer", "budget": 20_000}).json["role_context"]
    assert "Line 299 of the overview." in whole["memory"] and whole["shortened"] == []


@pytest.mark.promise("A5")
def test_a_dispatch_for_an_agent_without_notes_says_so_by_an_empty_memory(gateway):
    gateway.agent("new")
    said = gateway.operator.post("/dispatch", {"task": "x", "agent": "new", "budget": 750}).json["role_context"]
    assert (said["memory"], said["notes"], said["shortened"], said["left_out"], said["degraded"]) == ("", 0, [], 0, "")


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
