"""The gateway as a platform uses it: what an agent stores over HTTP, and the answers to callers without permission."""

from __future__ import annotations

import json

import pytest

from holdfast import Memory

NOTE = {"text": "Harbour words.", "key": "harbour", "scope": "agent"}


@pytest.mark.promise("A4")
def test_an_agent_writes_and_reads_its_own_memory_and_the_same_again_changes_nothing(gateway):
    reviewer = gateway.agent("reviewer")
    pair = {"key": "testing", "value": "Use pytest."}
    assert reviewer.post("/gateway/memory", pair).json["action"] == "created"
    again = reviewer.post("/gateway/memory", pair)
    assert (again.status, again.json["action"]) == (200, "unchanged")
    told = reviewer.get("/gateway/memory").json["memory"]
    assert [(row["key"], row["value"]) for row in told] == [("testing", "Use pytest.")]
    assert reviewer.post("/gateway/memory", {**pair, "value": "Use pytest, never unittest."}).json["action"] == "updated"
    assert [row["value"] for row in reviewer.get("/gateway/memory").json["memory"]] == ["Use pytest, never unittest."]
    assert reviewer.get("/gateway/memory?key=testing").json["memory"][0]["key"] == "testing"
    assert reviewer.get("/gateway/memory?key=nothing").json == {"memory": []}


@pytest.mark.promise("A4")
def test_a_pair_is_a_note_in_the_agents_scope_through_every_door(gateway):
    reviewer = gateway.agent("reviewer")
    reviewer.post("/gateway/memory", {"key": "testing", "value": "Use pytest."})
    with Memory(gateway.home, agent="reviewer", project="demo") as memory:
        note = memory.get("testing", scope="agent")
        assert (note.text, note.source.agent, note.source.client) == ("Use pytest.", "reviewer", "http")
        memory.store("From elsewhere.", key="other", scope="agent")
    assert {row["key"] for row in reviewer.get("/gateway/memory").json["memory"]} == {"testing", "other"}
    assert reviewer.get("/v1/notes/agent/testing").json["text"] == "Use pytest."


@pytest.mark.promise("A4")
def test_no_token_a_bad_one_a_role_that_may_not_and_a_key_that_is_none(gateway):
    pair = {"key": "k", "value": "v"}
    for token in (None, "", "hf_aaaaaaaa_" + "a" * 43, "nonsense", gateway.operator.token[:-1] + "~"):
        said = gateway.anonymous.post("/gateway/memory", pair, Authorization=f"Bearer {token}" if token is not None else None)
        assert (said.status, said.code) == (401, "unauthenticated")
        assert said.headers["www-authenticate"].startswith("Bearer")
    secretary = gateway.agent("typist", "secretary")
    assert secretary.get("/gateway/memory").code == "denied"
    said = secretary.post("/gateway/memory", pair)
    assert (said.status, said.code) == (403, "denied")
    reviewer = gateway.agent("reviewer")
    for key in ("", " a", "a\n", "a" * 201, "a\u202eb"):
        assert reviewer.post("/gateway/memory", {"key": key, "value": "v"}).status == 422
    assert reviewer.post("/gateway/memory", {"value": "v"}).status == 422
    assert reviewer.post("/gateway/memory", {"key": "k", "value": ""}).status == 422
    assert reviewer.get("/gateway/memory").json == {"memory": []}


@pytest.mark.promise("A3")
def test_every_decision_over_http_is_a_row_with_the_role(gateway):
    reviewer, secretary = gateway.agent("reviewer"), gateway.agent("typist", "secretary")
    reviewer.post("/gateway/memory", {"key": "k", "value": "v"})
    denied = secretary.get("/gateway/memory")
    rows = gateway.operator.get("/audit?limit=3").json["audit"]
    seen = {(row["agent"], row["action"], row["outcome"], row["metadata"]["role"]) for row in rows}
    assert ("reviewer", "agent.memory.write", "allowed", "code-review-engineer") in seen
    assert ("typist", "agent.memory.read", "denied", "secretary") in seen
    mine = [row for row in rows if row["outcome"] == "denied"]
    assert [row["metadata"]["request"] for row in mine] == [denied.headers["x-request-id"]]
    only = gateway.operator.get("/audit?outcome=denied&agent=typist").json["audit"]
    assert [row["agent"] for row in only] == ["typist"]
    assert gateway.operator.get("/audit/verify").json["ok"] is True
    assert len(gateway.operator.get("/audit/export").lines) >= 5


@pytest.mark.promise("A1")
def test_the_token_alone_says_who_calls(gateway):
    first, second = gateway.agent("first"), gateway.agent("second")
    first.post("/v1/notes", NOTE)
    assert second.get("/v1/notes/agent/harbour").code == "not_found"
    assert second.get("/v1/notes").json["notes"] == []
    assert second.post("/v1/recall", {"query": "harbour", "mode": "keyword"}).json["hits"] == []
    for body in ({**NOTE, "agent": "first"}, {**NOTE, "tenant": "other"}):
        assert second.post("/v1/notes", body).code == "invalid_request"
    assert second.get("/v1/notes?agent=first").code == "denied"


def test_a_role_reaches_no_scope_but_its_own_by_any_route(gateway):
    operator, reviewer = gateway.operator, gateway.agent("reviewer")
    operator.post("/v1/notes", {"text": "Everybody's harbour.", "key": "all", "scope": "global"})
    operator.post("/v1/notes", {"text": "The project's harbour.", "key": "ours", "scope": "project", "project": "demo"})
    assert {note["key"] for note in operator.get("/v1/notes?project=demo").json["notes"]} == {"all", "ours"}
    for said in (
        reviewer.get("/v1/notes?project=demo").json["notes"],
        reviewer.post("/v1/recall", {"query": "harbour", "mode": "keyword", "project": "demo"}).json["hits"],
        reviewer.post("/v1/search", {"query": "harbour", "project": "demo"}).json["results"],
        reviewer.get("/v1/facts?project=demo").json["facts"],
    ):
        assert said == []
    assert "harbour" not in reviewer.post("/v1/brief", {"project": "demo"}).json["text"]
    assert reviewer.get("/v1/read?path=global/notes/all.md&project=demo").json["exists"] is False
    for path in ("/v1/notes/global/all", "/v1/notes/project/ours?project=demo", "/v1/facts?scope=global"):
        assert (reviewer.get(path).status, reviewer.get(path).code) == (403, "denied")
    assert reviewer.post("/v1/notes", {**NOTE, "scope": "global"}).code == "denied"


def test_notes_have_every_verb(gateway):
    agent = gateway.agent("a")
    made = agent.post("/v1/notes", {**NOTE, "tags": ["ci-cd"], "type": "feedback"})
    assert made.status == 201 and made.json["action"] == "created" and made.json["note"]["tags"] == ["ci-cd"]
    assert agent.post("/v1/notes", {**NOTE, "text": "Other words."}).json["action"] == "updated"
    versions = agent.get("/v1/notes/agent/harbour/history").json["versions"]
    assert [one["text"] for one in versions] == ["Other words.", "Harbour words."]
    assert agent("DELETE", "/v1/notes/agent/harbour").json["deleted"] is True
    assert agent("DELETE", "/v1/notes/agent/harbour").json["deleted"] is False
    assert agent.get("/v1/notes/agent/harbour").code == "not_found"
    assert [one["key"] for one in agent.get("/v1/trash").json["trash"]] == ["harbour"]
    assert agent.post("/v1/notes/agent/harbour/restore").json["versions"] == 2
    assert agent.post("/v1/notes/agent/harbour/purge").code == "denied"
    operator = gateway.operator
    operator.post("/v1/notes", NOTE)
    receipt = operator.post("/v1/notes/agent/harbour/purge").json
    assert receipt["deleted"] is True and receipt["checks"]


def test_asking_has_every_verb(gateway):
    agent = gateway.agent("a")
    agent.post("/v1/notes", NOTE)
    assert [hit["key"] for hit in agent.post("/v1/recall", {"query": "harbour", "mode": "keyword"}).json["hits"]] == ["harbour"]
    found = agent.post("/v1/search", {"query": "harbour"}).json
    assert found["results"][0]["path"].startswith("agents/a/notes/harbour.md")
    assert (found["mode"], found["degraded"], found["disabled"]) == ("keyword", True, False) and "embedder" in found["reason"]
    assert agent.post("/v1/search", {"query": "harbour", "mode": "keyword"}).json["degraded"] is False
    assert agent.post("/v1/search", {"query": "harbour", "mode": "recent"}).code == "invalid_request"
    assert "Harbour words." in agent.get("/v1/read?path=agents/a/notes/harbour.md").json["text"]
    stated = {"subject": "Telegram", "label": "owner", "value": "[[Ada]]", "on": "2026-03-27", "scope": "agent"}
    assert agent.post("/v1/facts", stated).status == 201
    assert [fact["value"] for fact in agent.get("/v1/facts?subject=Telegram").json["facts"]] == ["[[Ada]]"]
    assert [one["name"] for one in agent.get("/v1/graph?entity=Ada").json["entities"]] == ["Ada", "Telegram"]
    assert [edge["label"] for edge in agent.get("/v1/graph/path?from=Ada&to=Telegram").json["path"]] == ["owner"]
    assert "Harbour words." in agent.post("/v1/brief").json["text"]
    status = agent.get("/v1/status").json
    assert status["agent"] == "a" and str(gateway.home) not in json.dumps(status)


@pytest.mark.promise("A1")
def test_the_status_tells_an_agent_of_its_own_scopes_and_an_operator_of_all(gateway):
    agent = gateway.agent("a")
    agent.post("/v1/notes", NOTE)
    gateway.agent("payroll").post("/v1/notes", {"text": "Nobody else's.", "key": "k", "scope": "agent"})
    told = agent.get("/v1/status").json
    assert [one["scope"] for one in told["scopes"]] == ["agents/a"] and "payroll" not in json.dumps(told)
    assert (told["index_bytes"], told["passages"]) == (None, 1)
    assert {one["scope"] for one in gateway.operator.get("/v1/status").json["scopes"]} >= {"agents/a", "agents/payroll"}


def test_history_is_kept_and_read_around_a_turn(gateway):
    agent = gateway.agent("a")
    said = {"user": "We deploy on Tuesdays.", "assistant": "Noted."}
    turns = [{"role": role, "text": text, "id": f"t{number}"} for number, (role, text) in enumerate(said.items(), 1)]
    kept = agent.post("/v1/history", {"turns": turns, "session": "s1", "scope": "agent"})
    assert kept.json["added"] == 2, kept
    assert agent.post("/v1/history", {"turns": turns, "session": "s1", "scope": "agent"}).json["added"] == 0
    assert [turn["text"] for turn in agent.get("/v1/history?of=t2").json["turns"]] == ["We deploy on Tuesdays.", "Noted."]
    assert agent.post("/v1/history", {"turns": [{"role": "nobody", "text": "x"}], "scope": "agent"}).status == 422


def test_files_have_their_six_verbs(gateway):
    agent = gateway.agent("a")
    place = {"path": "/memories/plan.md", "scope": "agent"}
    assert agent.post("/v1/files/create", {**place, "file_text": "# Plan\n"}).status == 200
    agent.post("/v1/files/insert", {**place, "insert_line": 1, "insert_text": "- rest"})
    agent.post("/v1/files/str_replace", {**place, "old_str": "rest", "new_str": "work"})
    assert agent.post("/v1/files/view", place).json["text"] == "# Plan\n- work\n"
    move = {"old_path": "/memories/plan.md", "new_path": "/memories/goals.md", "scope": "agent"}
    assert agent.post("/v1/files/rename", move).status == 200
    assert agent.post("/v1/files/view", place).code == "not_found"
    assert agent.post("/v1/files/delete", {"path": "/memories/goals.md", "scope": "agent"}).status == 200
    for path in ("../x", "/etc/passwd", "/memories/../../x", "/memories/%2e%2e/x"):
        assert agent.post("/v1/files/create", {"path": path, "file_text": "x", "scope": "agent"}).status == 422


def test_a_write_to_a_project_that_is_not_named_falls_nowhere(gateway):
    assert gateway.operator.post("/v1/notes", {"text": "Nowhere."}).code == "no_scope"
    said = gateway.operator.post("/v1/notes", {"text": "Here."}, X_Holdfast_Project="demo")
    assert said.json["note"]["scope"] == {"kind": "project", "id": "demo"}
    assert gateway.operator.post("/v1/notes", {"text": "Here.", "project": "../x"}).status == 422
    kept = gateway.operator.post("/v1/notes", {"text": "In a session.", "scope": "session"}, X_Holdfast_Session="s1")
    assert kept.json["note"]["scope"] == {"kind": "session", "id": "s1"}


@pytest.mark.promise("N12")
def test_switched_off_it_writes_nothing_and_says_so(gateway):
    reviewer = gateway.agent("reviewer")
    (gateway.home / "config.toml").write_text("[memory]\nenabled = false\n")
    said = reviewer.post("/gateway/memory", {"key": "k", "value": "v"})
    assert (said.status, said.code) == (403, "disabled")
    assert reviewer.post("/v1/recall", {"query": "x", "mode": "keyword"}).json["disabled"] is True
    (gateway.home / "config.toml").unlink()
    assert reviewer.post("/gateway/memory", {"key": "k", "value": "v"}).status == 200


@pytest.mark.promise("A5")
def test_a_dispatch_brings_role_skills_and_the_whole_memory_of_the_agent(gateway):
    gateway.add_role("runner", ["dispatch", "agent.memory.read", "agent.memory.write"], ["agent", "global"])
    runner = gateway.agent("runner", "runner")
    gateway.operator.post("/v1/notes", {"text": "Not the runner's own.", "key": "g", "scope": "global"})
    for number in range(30):
        runner.post("/gateway/memory", {"key": f"k{number}", "value": f"Thing number {number} of the harbour."})
    said = runner.post("/dispatch", {"task": "Review it"}).json
    assert said["task"] == "Review it" and said["agent"] == "runner" and said["delivered"] == "caller"
    context = said["role_context"]
    assert context["role"] == "runner" and context["left_out"] == 0 and context["degraded"] == ""
    assert all(f"Thing number {number} of" in context["memory"] for number in range(30))
    assert "Not the runner's own." not in context["memory"] and context["memory"] in context["text"]
    small = runner.post("/dispatch", {"task": "Review it", "budget": 800}).json["role_context"]
    assert len(small["memory"]) <= 800 and small["left_out"] > 0
    assert gateway.agent("typist", "secretary").post("/dispatch", {"task": "x"}).code == "denied"
    assert runner.post("/dispatch", {"task": "x", "to": "webhook"}).code == "usage"


@pytest.mark.promise("A5")
def test_a_memory_that_cannot_be_loaded_does_not_block_a_dispatch(gateway):
    gateway.add_role("runner", ["dispatch", "agent.memory.read", "agent.memory.write"])
    runner = gateway.agent("runner", "runner")
    runner.post("/gateway/memory", {"key": "k", "value": "v"})
    store = gateway.home / "shelf" / "agents" / "runner"
    (store / "notes").rename(store / "aside")
    (store / "notes").write_text("no folder")
    said = runner.post("/dispatch", {"task": "Go on"})
    assert said.status == 200 and said.json["role_context"]["role"] == "runner" and said.json["role_context"]["degraded"]


@pytest.mark.promise("A6")
def test_what_is_done_is_recorded_once_and_for_its_agent(gateway):
    gateway.add_role("worker", ["done.read", "done.write"])
    worker, other = gateway.agent("worker", "worker"), gateway.agent("other", "worker")
    deed = {"kind": "triage", "subject": "acme/shop#7"}
    where = "/done/exists?kind=triage&subject=acme/shop%237"
    assert worker.get(where).json == {"exists": False}
    assert [worker.post("/done", deed).status for _ in range(2)] == [201, 200]
    assert worker.get(where).json == {"exists": True} and other.get(where).json == {"exists": False}
    for number in range(5):
        worker.post("/done", {"kind": "triage", "subject": f"acme/shop#{number}"})
    first = worker.get("/done?limit=4").json
    rest = worker.get(f"/done?limit=4&cursor={first['next']}").json
    assert len(first["done"]) == 4 and len(rest["done"]) == 2 and rest["next"] is None
    assert other.get("/done").json["done"] == []


@pytest.mark.promise("A1")
def test_the_operator_lets_agents_in_and_out(gateway):
    operator = gateway.operator
    made = operator.post("/agents", {"name": "new", "role": "code-review-engineer"})
    assert made.status == 201
    token = {"Authorization": f"Bearer {made.json['token']}"}
    assert gateway.anonymous.get("/gateway/memory", **token).status == 200
    turned = operator.post("/agents/new/token").json["token"]
    assert gateway.anonymous.get("/gateway/memory", **token).status == 401
    token = {"Authorization": f"Bearer {turned}"}
    assert gateway.anonymous.get("/gateway/memory", **token).status == 200
    assert operator("DELETE", "/agents/new").json["state"] == "revoked"
    assert gateway.anonymous.get("/gateway/memory", **token).status == 401
    listed = operator.get("/agents")
    assert {row["name"]: row["state"] for row in listed.json["agents"]} == {"operator": "active", "new": "revoked"}
    assert turned not in listed.data.decode()
    assert operator.post("/agents", {"name": "x", "role": "nobody"}).status == 422
    assert operator("DELETE", "/agents/operator").code == "conflict"
    assert operator("DELETE", "/agents/unknown").code == "not_found"
    assert "secretary" in [role["name"] for role in operator.get("/roles").json["roles"]]
    assert gateway.agent("reviewer").get("/agents").code == "denied"
    about = operator.get("/audit?action=agents.manage").json["audit"]
    assert "new" in [row["metadata"].get("name") for row in about]
