"""MCP through the gateway: the same tokens, the same roles, the same decisions."""

from __future__ import annotations

import io
import json
from contextlib import asynccontextmanager

import pytest
from http_gateway import run_gateway
from mcp.client.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_sdk import parse_result, run

from holdfast import Memory
from holdfast.errors import DiskTrouble

STORE = {"text": "Harbour words.", "key": "harbour", "scope": "agent"}


@asynccontextmanager
async def reached(gateway, client, mode="auto", **headers):
    sent = {"Authorization": f"Bearer {client.token}", **headers}
    address = f"http://127.0.0.1:{gateway.port}/mcp"
    async with (
        create_mcp_http_client(sent) as connection,
        Client(streamable_http_client(address, http_client=connection), mode=mode) as one,
    ):
        yield one


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_an_agent_works_over_mcp_with_its_token_and_sees_the_same_memory(gateway, mode):
    reviewer, other = gateway.agent("reviewer"), gateway.agent("other")

    async def talk():
        async with reached(gateway, reviewer, mode) as client:
            stored = await client.call_tool("memory_store", STORE)
            assert parse_result(stored).startswith("Created "), stored
            found = await client.call_tool("memory_recall", {"query": "harbour", "mode": "keyword"})
            assert parse_result(found).keys == ["harbour"]
        async with reached(gateway, other, mode) as client:
            found = await client.call_tool("memory_recall", {"query": "harbour", "mode": "keyword"})
            assert parse_result(found).keys == []

    run(talk)
    note = reviewer.get("/v1/notes/agent/harbour").json
    assert note["text"] == "Harbour words." and note["source"]["agent"] == "reviewer"
    assert other.get("/v1/notes").json["notes"] == []


def test_a_role_decides_there_as_everywhere_and_every_decision_is_a_row(gateway):
    secretary, reviewer = gateway.agent("typist", "secretary"), gateway.agent("reviewer")
    gateway.operator.post("/v1/notes", {"text": "Everybody's harbour.", "key": "all", "scope": "global"})

    async def talk():
        async with reached(gateway, secretary) as client:
            calls = {"memory_store": STORE, "memory_recall": {"query": "harbour"}, "memory_get": {"key": "all"}}
            for name, given in calls.items():
                said = await client.call_tool(name, given)
                assert said.is_error and "does not have the permission" in said.content[0].text, name
            with pytest.raises(Exception, match="does not have the permission"):
                await client.list_resources()
        async with reached(gateway, reviewer) as client:
            said = await client.call_tool("memory_store", {**STORE, "scope": "global"})
            assert said.is_error and "scope global" in said.content[0].text
            found = await client.call_tool("memory_recall", {"query": "harbour", "mode": "keyword"})
            assert parse_result(found).keys == []
            said = await client.call_tool("memory_store", {**STORE, "folder": str(gateway.home)})
            assert said.is_error and "folder" in said.content[0].text

    run(talk)
    rows = gateway.operator.get("/audit?agent=typist").json["audit"]
    assert {(row["outcome"], row["metadata"]["role"]) for row in rows} == {("denied", "secretary")}
    routes = [row["metadata"]["route"] for row in rows]
    assert "MCP memory_store" in routes and "MCP resources/list" in routes
    allowed = gateway.operator.get("/audit?agent=reviewer&outcome=allowed").json["audit"]
    assert "MCP memory_recall" in [row["metadata"]["route"] for row in allowed]


def test_without_a_token_not_a_byte_reaches_it(gateway):
    for token in (None, "Bearer nonsense"):
        said = gateway.anonymous.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, Authorization=token)
        assert (said.status, said.code) == (401, "unauthenticated")
    assert gateway.operator.post("/mcp", {}, Host="evil.example").status == 421


def test_there_is_no_stream_to_open_and_no_session_to_end(gateway):
    for method in ("GET", "DELETE", "HEAD", "PUT", "PROPFIND"):
        said = gateway.operator(method, "/mcp", Accept="text/event-stream")
        assert (said.status, said.headers["allow"]) == (405, "POST"), method
        assert method == "HEAD" or said.code == "wrong_method"
    assert gateway.operator("INVENTED", "/mcp").status in (400, 405)  # one parser rejects names that it does not know itself
    assert gateway.anonymous.get("/mcp").status == 401
    counts = gateway.operator.get("/metrics").data.decode()
    assert 'route="GET /mcp",status="405"' in counts and "INVENTED" not in counts and "PUT /mcp" not in counts


def test_the_limits_of_a_body_are_the_gateways(gateway):
    (gateway.home / "config.toml").write_text("[serve]\nbody_bytes = 4096\n")
    said = gateway.operator.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "x" * 5000})
    assert (said.status, said.code) == (413, "too_large")
    deep = gateway.operator("POST", "/mcp", raw=b'{"a":' * 40 + b"0" + b"}" * 40)
    assert (deep.status, deep.code) == (413, "too_deep")


def test_what_fails_is_told_without_the_homes_place_and_logged_without_a_word_of_the_call(home, monkeypatch, capfd):
    log = io.StringIO()
    with run_gateway(home, log) as gateway:

        async def said():
            async with reached(gateway, gateway.operator) as client:
                return await client.call_tool("memory_recall", {"query": "the combination"})

        def fails(error):
            def recall(memory, query, **given):
                raise error(query)

            monkeypatch.setattr(Memory, "recall", recall)
            return run(said).content[0].text

        told = fails(lambda query: DiskTrouble(f"cannot read {gateway.home}/index.db", "Make room"))
        assert "HOME/index.db" in told and str(home) not in told
        assert "ValueError" in fails(lambda query: ValueError(f"{query} is wrong"))
    assert "combination" not in log.getvalue() + "".join(capfd.readouterr())
    line = next(one for one in map(json.loads, log.getvalue().splitlines()) if one["event"] == "mcp")
    assert line["trouble"][0] == "ValueError" and any("calls.py" in frame for frame in line["trouble"])


def test_a_token_that_is_revoked_ends_a_conversation(gateway):
    agent = gateway.agent("a")

    async def talk():
        async with reached(gateway, agent, "legacy") as client:
            assert not (await client.call_tool("memory_store", STORE)).is_error
            gateway.gate.revoke("a")
            with pytest.raises(Exception):  # noqa: B017  # what the client says of a 401 is its own
                await client.call_tool("memory_store", STORE)

    run(talk)


def test_a_project_is_named_by_the_call_or_by_a_header(gateway):
    async def talk():
        async with reached(gateway, gateway.operator, X_Holdfast_Project="x") as client:
            lost = await client.call_tool("memory_store", {"text": "Nowhere."})
            assert lost.is_error and "`project`" in str(lost.content) and "`folder`" not in str(lost.content)
            kept = await client.call_tool("memory_store", {"text": "Here.", "project": "demo"})
            assert parse_result(kept).project["id"] == "demo"
        async with reached(gateway, gateway.operator, **{"X-Holdfast-Project": "headed"}) as client:
            kept = await client.call_tool("memory_store", {"text": "Here too."})
            assert parse_result(kept).project["id"] == "headed"

    run(talk)
