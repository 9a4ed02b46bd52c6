"""Relations over HTTP and with a RemoteMemory, on both stores."""

from __future__ import annotations

import pytest

from holdfast import Memory
from holdfast.errors import Denied, NotFound

URL = "/v1/notes/project/deploys/relations"
PROJECT = {"project": "demo"}


@pytest.fixture
def gateway(any_gateway):
    for key in ("deploys", "old-deploys"):
        any_gateway.operator("PUT", f"/v1/notes/project/{key}", {"text": f"Words about {key}.", **PROJECT})
    any_gateway.add_role("writer", ["agent.memory.read", "agent.memory.write"], ["project", "global"])
    return any_gateway


def test_a_relation_is_stated_listed_and_removed(gateway):
    body = {"kind": "supersedes", "target": "old-deploys", **PROJECT}
    created, again = gateway.operator("POST", URL, body), gateway.operator("POST", URL, body)
    assert (created.status, again.status) == (201, 200)
    relation = created.json["relation"]
    assert (relation["status"], relation["origin"], relation["target"]) == ("accepted", "user", "old-deploys")
    assert gateway.operator.get(f"{URL}?project=demo").json == {"relations": [relation], "next": None}
    query = "?kind=supersedes&target=old-deploys&project=demo"
    assert gateway.operator("DELETE", URL + query).json["action"] == "removed"
    assert gateway.operator("DELETE", URL + query).status == 404


def test_an_agent_proposes_and_only_the_operator_decides(gateway):
    agent = gateway.agent("bot", "writer")
    agent("PUT", "/v1/notes/project/found", {"text": "Found.", **PROJECT})
    body = {"kind": "supersedes", "target": "deploys", **PROJECT}
    stated = agent("POST", "/v1/notes/project/found/relations", body).json["relation"]
    assert (stated["status"], stated["origin"]) == ("proposed", "agent")
    assert agent("POST", "/v1/review/project/found/relations/accept", body).status == 403
    assert agent.get("/v1/relations?everywhere=true").status == 403
    waiting = gateway.operator.get("/v1/relations?status=proposed&everywhere=true").json["relations"]
    assert [one["key"] for one in waiting] == ["found"]
    rejected = gateway.operator("POST", "/v1/review/project/found/relations/reject", body).json
    assert (rejected["action"], rejected["relation"]["status"]) == ("updated", "rejected")
    again = agent("POST", "/v1/notes/project/found/relations", body)
    assert (again.status, again.json["relation"]["status"]) == (200, "rejected")
    query = "?kind=supersedes&target=deploys&project=demo"
    assert agent("DELETE", f"/v1/notes/project/found/relations{query}").json["code"] == "refused"


def test_a_list_of_relations_is_paged(gateway):
    for number in range(3):
        gateway.operator("PUT", f"/v1/notes/project/n{number}", {"text": f"Words {number}.", **PROJECT})
        gateway.operator("POST", URL, {"kind": "relates_to", "target": f"n{number}", **PROJECT})
    seen, cursor = [], ""
    while cursor is not None:
        page = gateway.operator.get(f"{URL}?project=demo&limit=2" + (f"&cursor={cursor}" if cursor else "")).json
        seen += [one["target"] for one in page["relations"]]
        cursor = page["next"]
    assert sorted(seen) == ["n0", "n1", "n2"]
    assert gateway.operator.get(f"{URL}?project=demo&cursor=bad").status == 422


def test_recall_names_the_current_note(gateway):
    gateway.operator("POST", URL, {"kind": "supersedes", "target": "old-deploys", **PROJECT})
    hits = gateway.operator("POST", "/v1/recall", {"query": "old", "mode": "keyword", **PROJECT}).json["hits"]
    assert [(hit["key"], hit["superseded_by"]) for hit in hits] == [("deploys", None), ("old-deploys", "deploys")]


def test_a_remote_memory_has_the_same_methods(gateway):
    url, token = f"http://127.0.0.1:{gateway.port}", gateway.operator.token
    with Memory(url, token=token, project="demo") as person:
        related = person.relate("deploys", "supersedes", "old-deploys")
        assert (related.action, related.relation.status) == ("created", "accepted")
        assert person.relations("deploys") == person.relations("old-deploys") == person.relations() == [related.relation]
        scope = related.relation.scope
        rejected = person.reject_relation("deploys", "supersedes", "old-deploys", scope=scope, target_scope=scope)
        assert rejected.relation.status == "rejected"
        assert person.accept_relation("deploys", "supersedes", "old-deploys").relation.status == "accepted"
        assert person.unrelate("deploys", "supersedes", "old-deploys").action == "removed"
        with pytest.raises(NotFound):
            person.relate("nothing", "supersedes", "deploys")
    with Memory(url, token=gateway.agent("bot", "writer").token, project="demo") as agent:
        agent.store("Found.", key="found")
        assert agent.relate("found", "contradicts", "deploys").relation.status == "proposed"
        with pytest.raises(Denied):
            agent.accept_relation("found", "contradicts", "deploys")
