"""The same decision through every interface: each route and each MCP tool, for each role, in each scope, as the policy says."""

from __future__ import annotations

import json

import pytest
from http_gateway import run_gateway
from mcp.client.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_sdk import run

from holdfast.access.policy import denial_reason
from holdfast.models import SCOPES
from holdfast.server.route import ALL_SCOPES, NDJSON, NO_SCOPE
from holdfast.server.routes import ROUTES

OWN = {
    "reader": (["agent.memory.read", "done.read", "roles.read", "audit.read"], ["agent", "project", "session", "global"]),
    "curator": (["memory.review", "memory.purge", "agent.memory.read"], ["agent"]),
    "scraper": (["metrics.read"], []),
    "runner": (["dispatch", "agent.memory.write", "done.write", "memory.export", "memory.purge"], ["agent", "project"]),
}
ROLES = ("operator", "code-review-engineer", "secretary", *OWN)
WHOSE = {"X_Holdfast_Project": "demo", "X_Holdfast_Session": "s1"}
ASKS = {"entity": "Ada", "from": "Ada", "to": "Bob", "of": "t1", "path": "x.md", "kind": "triage", "subject": "x"}
READ, WRITE = "agent.memory.read", "agent.memory.write"
FILE, FACT = {"path": "/memories/x.md"}, {"subject": "Ada", "label": "town"}
TOOLS = [
    ("memory_store", {"text": "Words.", "key": "m"}, WRITE),
    ("memory_recall", {"query": "words", "mode": "keyword"}, READ),
    ("memory_get", {"key": "m"}, READ),
    ("memory_search", {"query": "words"}, READ),
    ("memory_history", {"key": "m"}, READ),
    ("memory_fact", {**FACT, "value": "Turin"}, WRITE),
    ("memory_fact", FACT, READ),
    ("memory_file", {**FILE, "command": "create", "file_text": "Words."}, WRITE),
    ("memory_file", {**FILE, "command": "view"}, READ),
    ("memory_forget", {"key": "m"}, WRITE),
]


@pytest.fixture
def gateway(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as one:
        for name, (actions, scopes) in OWN.items():
            one.add_role(name, actions, scopes)
        yield one


def asked(client, route, scope):
    """Return one request of a route as in its example, in a scope; without one if the scope is None."""
    path = route.path.replace("{scope}", scope or "agent").replace("{key}", "k").replace("{name}", "nobody")
    body = None if route.reads is None else dict(route.example or {})
    query = [f"{name}={ASKS[name]}" for name in route.required_fields if name in route.query_fields]
    if scope and "{scope}" not in route.path:
        if body is not None and route.reads != NDJSON and "scope" in route.fields:
            body["scope"] = scope
        elif "scope" in route.query_fields:
            query.append(f"scope={scope}")
    for name in ("project", "session"):
        if body is not None:
            body.pop(name, None)  # the headers name the owner
    return client(route.method, "?".join([path, "&".join(query)]) if query else path, None if body is None else body,
                  Content_Type=route.reads if body is not None else None, **WHOSE)  # fmt: skip


def scopes_of(route):
    """Return the scopes that a request of the route can name, and its default."""
    if route.scope == NO_SCOPE:
        return [(None, None)]
    if "{scope}" in route.path:
        return [(scope, scope) for scope in SCOPES]
    named = [(scope, scope) for scope in SCOPES] if "scope" in route.fields else []
    return [*named, (None, None if route.scope == ALL_SCOPES else route.scope)]


@pytest.mark.promise("A2")
@pytest.mark.parametrize("name", ROLES)
def test_every_route_is_allowed_or_denied_as_the_policy_says(gateway, name):
    client, role = gateway.agent("asker", name), gateway.gate.role(name)
    wrong, seen = [], 0
    for route in ROUTES:
        for scope, meant in scopes_of(route) if route.action else ():
            if scope is None and meant is not None and route.example and "scope" in route.example:
                continue  # its example names one
            said = asked(client, route, scope)
            denied = bool(denial_reason(role, route.action, meant))
            seen += 2 if route.path == "/dispatch" and not denied else 1  # reading the memory is a decision of its own
            if (said.status == 403) != denied or said.status in (401, 500):
                wrong.append((route.name, scope, denied, said))
    assert wrong == [] and seen > 100
    rows = gateway.gate.ledger.audit.list(limit=1000, agent="asker")[0]
    assert len(rows) == seen  # one row per decision, and no other


@pytest.mark.promise("A2")
@pytest.mark.parametrize("name", ROLES)
def test_every_tool_is_allowed_or_denied_as_the_policy_says(gateway, name):
    client, role = gateway.agent("asker", name), gateway.gate.role(name)
    sent = {"Authorization": f"Bearer {client.token}", "X-Holdfast-Project": "demo", "X-Holdfast-Session": "s1"}

    async def talk():
        address = f"http://127.0.0.1:{gateway.port}/mcp"
        async with (
            create_mcp_http_client(sent) as connection,
            Client(streamable_http_client(address, http_client=connection), mode="auto") as tools,
        ):
            assert {tool.name for tool in (await tools.list_tools()).tools} == {tool for tool, _, _ in TOOLS}
            for tool, given, action in TOOLS:
                for scope in scopes_of_tool(tool):
                    said = await tools.call_tool(tool, {**given, "scope": scope} if scope else given)
                    denied = bool(denial_reason(role, action, scope))
                    assert ("may not" in json.dumps([one.text for one in said.content])) == denied, (tool, scope, said)
                    assert said.is_error or not denied

    run(talk)
    rows = gateway.gate.ledger.audit.list(limit=1000, agent="asker")[0]
    assert len(rows) == sum(len(scopes_of_tool(tool)) for tool, _, _ in TOOLS)


def scopes_of_tool(tool):
    """Return the scopes that a call of the tool can name."""
    return (None,) if tool == "memory_search" else SCOPES


@pytest.mark.promise("A2")
@pytest.mark.parametrize("name", ROLES)
def test_resources_and_prompts_are_allowed_or_denied_as_the_policy_says(gateway, name):
    client, role = gateway.agent("asker", name), gateway.gate.role(name)
    denied = bool(denial_reason(role, READ, None))

    async def refused(asking):
        try:
            await asking
        except MCPError as error:
            return "may not" in str(error)
        return False

    async def talk():
        address, sent = f"http://127.0.0.1:{gateway.port}/mcp", {"Authorization": f"Bearer {client.token}"}
        async with (
            create_mcp_http_client(sent) as connection,
            Client(streamable_http_client(address, http_client=connection), mode="auto") as one,
        ):
            prompt = (await one.list_prompts()).prompts[0]
            needed = {argument.name: "words" for argument in prompt.arguments or () if argument.required}
            for asking in (
                one.list_resources(), one.read_resource("holdfast://briefing"), one.get_prompt(prompt.name, needed),
            ):  # fmt: skip
                assert await refused(asking) == denied

    run(talk)
    rows = gateway.gate.ledger.audit.list(limit=1000, agent="asker")[0]
    assert [row.outcome for row in rows] == ["denied" if denied else "allowed"] * 3
