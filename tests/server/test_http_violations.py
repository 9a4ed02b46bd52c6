"""Requests that break the OpenAPI document are refused, with a status that the document names; on both stores."""

from __future__ import annotations

import pytest
from both_gateways import gateway  # noqa: F401

TURN = {"session": "s", "scope": "agent"}


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_grants_of_an_unknown_agent_are_not_found(gateway, method):  # noqa: F811
    query = "?kind=project&pattern=acme" if method == "DELETE" else ""
    body = {"kind": "project", "pattern": "acme"} if method == "POST" else None
    assert gateway.operator(method, f"/agents/nobody/grants{query}", body).code == "not_found"


def test_an_encoded_path_is_refused_with_a_documented_status(gateway):  # noqa: F811
    for path in ("/v1/notes/agent/a%12b", "/v1/trace/agent/%61", "/problems/a%0cb", "/agents/a%2fb/grants"):
        assert gateway.operator.get(path).code == "bad_target"


def test_an_export_of_the_audit_from_no_moment_is_refused(gateway):  # noqa: F811
    assert gateway.operator.get("/audit/export?since=0").code == "invalid_request"
    assert gateway.operator.get("/audit/export?since=2026-01-01").status == 200


def test_hidden_characters_in_filters_are_refused(gateway):  # noqa: F811
    agent = gateway.agent("ada")
    assert gateway.operator.get("/done?subject=%C2%9B").code == "usage"
    assert agent.get("/v1/notes?tags=a%01").code == "invalid_request"
    assert agent.post("/v1/notes", {"text": "Words.", "tags": ["a\nb"], "scope": "agent"}).code == "invalid_request"


def test_the_time_of_a_turn_without_text_is_checked(gateway):  # noqa: F811
    agent = gateway.agent("ada")
    assert agent.post("/v1/history", {**TURN, "turns": [{"text": "", "time": "0"}]}).code == "usage"
    assert agent.post("/v1/history", {**TURN, "turns": [{"text": "", "time": ""}]}).status == 200


def test_a_header_that_is_not_a_name_is_refused_also_if_a_field_names_another(gateway):  # noqa: F811
    headers = {"X-Holdfast-Project": ".hidden"}
    answer = gateway.operator.get("/v1/notes?project=demo", **headers)
    assert answer.code == "invalid_request"
    assert gateway.operator.get("/v1/notes?project=demo", X_Holdfast_Project="other").status == 200


def test_the_fix_for_a_secret_speaks_of_the_api(gateway):  # noqa: F811
    answer = gateway.operator.post("/v1/notes", {"text": "Words.", "allow_secret": "why", "origin": "web", "scope": "agent"})
    assert answer.code == "refused" and answer.json["fix"] == 'Store it with `{"redact": true}`'


def test_a_path_below_a_file_is_not_found_and_cannot_be_created(gateway):  # noqa: F811
    agent = gateway.agent("ada")
    path = {"path": "/memories/plan/today", "scope": "agent"}
    assert agent.post("/v1/files/create", {**path, "path": "/memories/plan", "file_text": "Plan."}).status == 200
    answer = agent.post("/v1/files/create", {**path, "file_text": "Plan."})
    assert answer.code == "conflict" and answer.json["detail"] == "plan is a file, not a folder"
    for name, fields in (("view", {}), ("delete", {}), ("insert", {"insert_line": 0, "insert_text": "x"})):
        assert agent.post(f"/v1/files/{name}", {**path, **fields}).code == "not_found"
