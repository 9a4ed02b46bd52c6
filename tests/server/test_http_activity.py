"""Activity by day over HTTP, on both stores: what is counted, for whom, and within which limits."""

from __future__ import annotations


def test_writes_and_uses_of_today_are_counted_with_the_notes(any_gateway):
    agent = any_gateway.agent("ada")
    for text in ("We deploy on Tuesdays.", "We deploy on Mondays."):
        sent = agent.post("/v1/notes", {"text": text, "key": "deploys", "scope": "agent"})
        assert sent.status in (200, 201), sent.json
    assert agent.get("/v1/notes/agent/deploys").status == 200
    assert agent.post("/v1/recall", {"query": "deploy", "mode": "keyword"}).json["hits"]
    found = agent.get("/v1/activity?days=7").json
    assert len(found["days"]) == 7 and sum(one["written"] for one in found["days"]) == 2
    assert sum(one["used"] for one in found["days"]) == 1 and found["used"][0]["key"] == "deploys"


def test_others_see_nothing_of_it_and_only_a_manager_sees_everything(any_gateway):
    any_gateway.agent("ada").post("/v1/notes", {"text": "We deploy on Tuesdays.", "key": "deploys", "scope": "agent"})
    other = any_gateway.agent("bob")
    assert sum(one["written"] for one in other.get("/v1/activity").json["days"]) == 0
    assert other.get("/v1/activity?everywhere=true").status == 403
    whole = any_gateway.operator.get("/v1/activity?everywhere=true").json
    assert sum(one["written"] for one in whole["days"]) == 1 and len(whole["days"]) == 30


def test_days_are_bounded(any_gateway):
    assert len(any_gateway.operator.get("/v1/activity?days=365").json["days"]) == 365
    for days in ("0", "366", "x"):
        assert any_gateway.operator.get(f"/v1/activity?days={days}").status == 422
