"""An agent's purge refuses its text in the scopes that it covered; a person's purge refuses it everywhere. On both stores."""

from __future__ import annotations

import json

import both_gateways
import pytest

gateway = both_gateways.gateway
TEXT = "The combination of the harbour safe is written on the door."
OTHER = "The keeper of the lighthouse hides the lamp under the stairs."
ACTIONS = ["agent.memory.read", "agent.memory.write", "memory.purge", "done.write"]


@pytest.fixture
def pair(gateway):
    """Two agents that may purge, with one project."""
    gateway.add_role("keeper", ACTIONS, ["agent", "project"])
    return gateway.agent("first", "keeper"), gateway.agent("second", "keeper")


def ways(agent, scope, **headers):
    """Try to bring the text back through every way that writes; return the status or code of each."""
    line = json.dumps({"key": "imported", "text": TEXT, "scope": scope}).encode()
    file = {"scope": scope, "path": "/memories/page.md", "file_text": f"# Page\n{TEXT}\n"}
    fact = {"subject": "Harbour", "label": "said", "value": TEXT, "scope": scope}
    turn = {"session": "s1", "turns": [{"role": "assistant", "text": TEXT}], "scope": scope}
    return {
        "note": agent("PUT", f"/v1/notes/{scope}/again", {"text": f"- {TEXT.upper()}"}, **headers),
        "tag": agent("PUT", f"/v1/notes/{scope}/tagged", {"text": "Some other words.", "tags": [TEXT]}, **headers),
        "import": agent("POST", "/v1/import?own=true", raw=line, Content_Type="application/x-ndjson", **headers),
        "file": agent.post("/v1/files/create", file, **headers),
        "fact": agent.post("/v1/facts", fact, **headers),
        "log": agent.post("/v1/history", turn, **headers),
    }


def is_refused(said):
    """Return whether a write was refused as purged; of turns, whether they were left out."""
    if said.status == 422:
        return said.code == "purged"
    assert said.status in (200, 201), said
    return said.json.get("purged", 0) > 0 if b'"done"' not in said.data else False


@pytest.mark.promise("N10", "A1")
def test_a_purge_of_ones_own_note_refuses_the_text_there_and_nowhere_else(gateway, pair):
    first, second = pair
    assert first("PUT", "/v1/notes/agent/code", {"text": TEXT}).status in (200, 201)
    receipt = first.post("/v1/notes/agent/code/purge").json
    assert receipt["state"] == "done" and any("agents/first; other scopes may store it" in line for line in receipt["checks"])
    assert {way: is_refused(said) for way, said in ways(first, "agent").items()} == dict.fromkeys(ways(first, "agent"), True)
    assert first.post("/done", {"kind": "said", "subject": TEXT}).code == "purged"
    assert not any(is_refused(said) for said in ways(second, "agent").values())
    assert second.post("/done", {"kind": "said", "subject": TEXT}).status == 201
    assert second.get("/v1/notes/agent/again").json["text"] == f"- {TEXT.upper()}"
    hits = second.post("/v1/recall", {"query": "combination harbour safe", "mode": "keyword"}).json["hits"]
    assert hits and first.post("/v1/recall", {"query": "combination harbour safe", "mode": "keyword"}).json["hits"] == []


@pytest.mark.promise("N10")
def test_a_purge_in_a_project_refuses_the_text_there_for_everybody_and_not_in_another(gateway, pair):
    first, second = pair
    demo, other = {"X_Holdfast_Project": "demo"}, {"X_Holdfast_Project": "other"}
    assert first("PUT", "/v1/notes/project/code", {"text": TEXT}, **demo).status in (200, 201)
    assert first.post("/v1/notes/project/code/purge", **demo).json["state"] == "done"
    for agent in pair:
        assert all(is_refused(said) for said in ways(agent, "project", **demo).values())
    assert not any(is_refused(said) for said in ways(second, "project", **other).values())
    assert not is_refused(first("PUT", "/v1/notes/agent/code", {"text": TEXT}))


@pytest.mark.promise("N10")
def test_a_persons_purge_refuses_the_text_everywhere_until_a_person_takes_it_back(gateway, pair):
    first, second = pair
    operator = gateway.operator
    operator("PUT", "/v1/notes/agent/code", {"text": TEXT})
    receipt = operator.post("/v1/notes/agent/code/purge").json
    assert receipt["state"] == "done" and not any("other scopes may store it" in line for line in receipt["checks"])
    for agent in (first, second, operator):
        assert is_refused(agent("PUT", "/v1/notes/agent/code", {"text": TEXT}))
    assert operator("PUT", "/v1/notes/agent/code", {"text": TEXT, "again": True}).status in (200, 201)
    assert not is_refused(first("PUT", "/v1/notes/agent/code", {"text": TEXT}))


@pytest.mark.promise("N10")
def test_a_purge_of_a_note_that_another_agent_has_too_leaves_that_one_alone(gateway, pair):
    first, second = pair
    for agent in pair:
        agent("PUT", "/v1/notes/agent/code", {"text": f"{TEXT}\n{OTHER}"})
    assert first.post("/v1/notes/agent/code/purge").json["state"] == "done"
    assert is_refused(first("PUT", "/v1/notes/agent/new", {"text": OTHER}))  # although another scope says it
    assert second("PUT", "/v1/notes/agent/code", {"text": f"{TEXT}\n{OTHER}\nAnd a new line."}).status == 200
    assert OTHER in second.get("/v1/notes/agent/code").json["text"]


@pytest.mark.promise("N10")
def test_digests_of_an_older_version_refuse_the_text_everywhere(gateway, pair):
    purges = gateway.gate.ledger.purges
    stored = {"id": "r1", "key": "k", "time": "2026-05-01T12:00:00Z", "what": "the note k", "state": "done", "deleted": True}
    purges.save_receipt("r1", stored, purges.digests([TEXT]), time=1)
    for agent in (*pair, gateway.operator):
        assert is_refused(agent("PUT", "/v1/notes/agent/code", {"text": TEXT}))


@pytest.mark.promise("N10")
def test_a_file_with_what_an_agent_purged_is_known_where_it_comes_back_and_not_elsewhere(gateway, pair):
    if gateway.store != "home":
        pytest.skip("only a home has files that a person can put back")
    first, second = pair
    first("PUT", "/v1/notes/agent/code", {"text": TEXT})
    path = gateway.home / "shelf" / "agents" / "first" / "notes" / "code.md"
    data = path.read_bytes()
    first.post("/v1/notes/agent/code/purge")
    path.write_bytes(data)
    path.with_name("copy.md").write_bytes(data)
    elsewhere = gateway.home / "shelf" / "agents" / "second" / "notes"
    elsewhere.mkdir(parents=True)
    (elsewhere / "code.md").write_bytes(data)
    question = {"query": "combination of the harbour safe", "mode": "keyword"}
    assert first.post("/v1/recall", question).json["hits"] == []
    assert first.get("/v1/notes/agent/copy").code == "purged"
    assert [hit["key"] for hit in second.post("/v1/recall", question).json["hits"]] == ["code"]
    found = gateway.operator.get("/v1/check").json["problems"]
    assert sorted(one["path"] for one in found if "purged, came back" in one["message"]) == [
        "agents/first/notes/code.md", "agents/first/notes/copy.md",
    ]  # fmt: skip


@pytest.mark.promise("N10")
def test_a_session_that_an_agent_purged_is_refused_in_its_scope_only(gateway, pair):
    first, second = pair
    turns = {"session": "s1", "turns": [{"role": "user", "text": TEXT}], "scope": "agent"}
    assert first.post("/v1/history", turns).status in (200, 201)
    assert first.post("/v1/purge", {"session": "s1"}).json["state"] == "done"
    assert first.post("/v1/history", {**turns, "session": "s2"}).json["purged"] == 1
    assert second.post("/v1/history", {**turns, "session": "s2"}).json["purged"] == 0


def purge_probe(agent, text, session):
    """Let an agent store a text as a note and as a turn and purge both; return the receipts without what always differs."""
    assert agent("PUT", "/v1/notes/agent/probe", {"text": text}).status in (200, 201)
    agent.post("/v1/history", {"session": session, "turns": [{"role": "user", "text": f"{text} So be it."}], "scope": "agent"})
    said = [agent.post("/v1/notes/agent/probe/purge").json, agent.post("/v1/purge", {"session": session}).json]
    said += [agent.get(f"/v1/receipts/{one['id']}").json for one in said]
    assert [one["state"] for one in said] == ["done"] * 4, said
    shown = [{name: value for name, value in one.items() if name not in ("id", "time")} for one in said]
    return json.loads(json.dumps(shown).replace(session, "SESSION"))


@pytest.mark.promise("N10")
@pytest.mark.promise("A9")
def test_the_receipt_of_an_agent_does_not_tell_whether_a_scope_that_it_does_not_reach_says_the_same(gateway, pair):
    gateway.add_role("keeper", [*ACTIONS, "done.read"], ["agent", "project"])
    first, other = pair[0], gateway.agent("third", "keeper", {"project": ["secret"]})
    there, missing = "The merger with the shipyard closes on Friday.", "The merger with the railways closes on Monday."
    named = {"X_Holdfast_Project": "secret"}
    assert other("PUT", "/v1/notes/project/same", {"text": f"{there}\n{there} So be it."}, **named).status == 201
    turns = [{"role": "user", "text": there}, {"role": "user", "text": f"{there} So be it."}]
    assert other.post("/v1/history", {"session": "s9", "turns": turns}, **named).status == 200
    assert other.post("/done", {"kind": "said", "subject": there}).status == 201
    assert purge_probe(first, there, "sess-1") == purge_probe(first, missing, "sess-2")
    assert [one["subject"] for one in other.get("/done").json["done"]] == [there]  # the records of others stay as they are


@pytest.mark.promise("A9")
def test_an_agent_that_reads_a_persons_receipt_learns_nothing_of_other_scopes(gateway, pair):
    first, operator = pair[0], gateway.operator
    for project in ("demo", "secret"):
        operator("PUT", "/v1/notes/project/code", {"text": TEXT}, X_Holdfast_Project=project)
    whole = operator.post("/v1/notes/project/code/purge", X_Holdfast_Project="demo").json
    assert whole["also_said_by"] and whole["checks"]
    seen = first.get(f"/v1/receipts/{whole['id']}", X_Holdfast_Project="demo").json
    assert (seen["state"], seen["also_said_by"], seen["checks"]) == ("done", [], [])
    assert "secret" not in json.dumps([seen, first.get("/v1/receipts", X_Holdfast_Project="demo").json])
