"""The same decision through every interface: each route and each MCP tool, for each role, in each scope, with each set of
grants, as the policy says; on both stores."""

from __future__ import annotations

import inspect
import itertools
import json

import pytest
from http_gateway import EVERYTHING, NO_GRANTS
from mcp.client.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_sdk import run
from tiers import tiered

from holdfast.access.policy import denial_reason, may_try
from holdfast.models import SCOPES
from holdfast.server.github import EVENTS
from holdfast.server.route import ALL_SCOPES, NDJSON, NO_SCOPE
from holdfast.server.routes import ROUTES

READ, WRITE = "agent.memory.read", "agent.memory.write"
OWN = {
    "reader": (["agent.memory.read", "done.read", "roles.read", "audit.read"], ["agent", "project", "session", "global"]),
    "curator": (["memory.review", "memory.purge", "agent.memory.read"], ["agent"]),
    "scraper": (["metrics.read"], []),
    "worker": ([READ, WRITE, "memory.purge", "memory.export", "github.review.approve"], SCOPES),
    "runner": (["dispatch", "agent.memory.write", "done.write", "memory.export", "memory.purge"], ["agent", "project"]),
}
GRANTS = {  # each with what it reaches of the project, session and repository that the requests name
    "everything": (EVERYTHING, {"project", "session", "repository"}),
    "these": ({"project": ["de*o"], "session": ["s1"], "repository": ["acme/*"]}, {"project", "session", "repository"}),
    "project": ({"project": ["d*", "acme-*"], "session": ["s", "s1x", "s*2"]}, {"project"}),
    "session": ({"project": ["dem", "demo-*", "*x"], "session": ["*"], "repository": ["a*e/s*p"]}, {"session", "repository"}),
    "none": (NO_GRANTS, set()),
}
ROLES = ("operator", "code-review-engineer", "secretary", *OWN)
OWNERS = {"project": "demo", "session": "s1"}
WHOSE = {"X_Holdfast_Project": "demo", "X_Holdfast_Session": "s1"}
ASKS = {
    "pattern": "acme", "entity": "Ada", "from": "Ada", "to": "Bob", "of": "t1", "path": "x.md", "kind": "project",
    "subject": "x", "target": "x",
}  # fmt: skip
RELATION = {"kind": "supersedes", "target": "old"}
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
def matrix(any_gateway):
    """A gateway with the roles above."""
    for name, (actions, scopes) in OWN.items():
        any_gateway.add_role(name, actions, scopes)
    return any_gateway


def asked(client, route, scope, by="header", **fields):
    """Return one request of a route as in its example, in a scope; without one if the scope is None. The project and session
    are named by headers or by fields, and more fields may be given."""
    path = route.path.replace("{scope}", scope or "agent").replace("{key}", "k").replace("{name}", "nobody")
    path = path.replace("{id}", "r1")
    body = None if route.reads is None else dict(route.example or {})
    asks = RELATION if route.path.endswith("/relations") else ASKS
    query = [f"{name}={asks[name]}" for name in route.required_fields if name in route.query_fields]
    if scope and "{scope}" not in route.path:
        if body is not None and route.reads != NDJSON and "scope" in route.fields:
            body["scope"] = scope
        elif "scope" in route.query_fields:
            query.append(f"scope={scope}")
    for name in ("project", "session"):
        if body is not None:
            body.pop(name, None)  # the headers or fields name the owner
    named = {name: value for name, value in OWNERS.items() if name in route.fields and route.scope != NO_SCOPE}
    for name, value in {**(named if by == "field" else {}), **fields}.items():
        if name in route.query_fields:
            query.append(f"{name}={value}")
        elif body is not None:
            body[name] = value
    headers = WHOSE if by == "header" else {}
    return client(route.method, "?".join([path, "&".join(query)]) if query else path, None if body is None else body,
                  Content_Type=route.reads if body is not None else None, **headers)  # fmt: skip


def scopes_of(route):
    """Return the scopes that a request of the route can name, and its default."""
    if route.scope == NO_SCOPE:
        return [(None, None)]
    if "{scope}" in route.path:
        return [(scope, scope) for scope in SCOPES]
    named = [(scope, scope) for scope in SCOPES] if "scope" in route.fields else []
    return [*named, (None, None if route.scope == ALL_SCOPES else route.scope)]


def is_about_a_session(route):
    """Return whether the route's own field `session` says what to forget or purge, and not whose memory is used."""
    return route.reads is not None and "session" in inspect.get_annotations(route.params)


def is_denied(role, reached, action, scope, named):
    """Return what must be decided: `named` are the kinds that the request names, `reached` those it has a grant for."""
    if denial_reason(role, action, scope):
        return True
    if role.name == "operator":
        return False
    counted = {kind for kind in ("project", "session") if kind in role.scopes and scope in (None, kind)} | {"repository"}
    return bool(named & counted - reached)


def requests_of(route):
    """Yield each request of a route: the scope that it names, the one that is meant, its action, the kinds it names, and
    fields that are not as in its example."""
    for scope, meant in scopes_of(route) if route.action else ():
        if scope is None and meant is not None and route.example and "scope" in route.example:
            continue  # its example names one
        if route.path == "/github/review":
            for event in EVENTS:
                yield scope, meant, f"github.review.{event.lower()}", {"repository"}, {"event": event}
        elif route.scope == NO_SCOPE:
            yield scope, meant, route.action, set(), {}
        else:
            yield scope, meant, route.action, {"project"} if is_about_a_session(route) else {"project", "session"}, {}


STORES = ("home", "postgres")
CASES = list(itertools.product(STORES, ROLES, GRANTS))
SAMPLE = [
    ("home", "worker", "session"), ("home", "worker", "none"), ("home", "reader", "these"), ("postgres", "worker", "session"),
]  # fmt: skip
FAST = [*SAMPLE, ("home", "worker", "project"), *[("home", role, "everything") for role in ROLES if role != "operator"]]
EACH = ("any_gateway", "name", "grants")


@pytest.mark.promise("A2")
@pytest.mark.promise("A9")
@pytest.mark.parametrize(EACH, tiered(CASES, FAST), indirect=["any_gateway"])
def test_every_route_is_allowed_or_denied_as_role_and_grants_say(matrix, name, grants):
    check_every_route(matrix, name, grants, "header")


@pytest.mark.promise("A2")
@pytest.mark.promise("A9")
@pytest.mark.parametrize(EACH, tiered(CASES, SAMPLE), indirect=["any_gateway"])
def test_a_field_that_names_a_project_or_session_counts_as_a_header_does(matrix, name, grants):
    check_every_route(matrix, name, grants, "field")


def check_every_route(matrix, name, grants, by):
    """Send every request of every route, and compare the answers and the audit with what the policy says."""
    given, reached = GRANTS[grants]
    client, role = matrix.agent("asker", name, given), matrix.gate.role(name)
    wrong, expected, routes = [], {}, set()
    for route in ROUTES:
        for scope, meant, action, named, fields in requests_of(route):
            said = asked(client, route, scope, by, **fields)
            routes.add(route.name)
            denied = is_denied(role, reached, action, meant, named)
            action = route.action if not may_try(role, route.action) else action  # then nothing of the body is read
            expected[said.headers["x-request-id"]] = (action, "denied" if denied else "allowed")
            if (said.status == 403) != denied or said.status in (401, 500) or (denied and said.code != "denied"):
                wrong.append((route.name, scope, denied, said))
    assert wrong == [] and routes == {route.name for route in ROUTES if route.action}
    rows = [row for row in read_audit(matrix) if row.agent == "asker"]
    first = {row.metadata["request"]: (row.action, row.outcome) for row in reversed(rows)}  # later rows are other decisions
    assert first == expected
    more = [row.metadata["route"] for row in rows if (row.action, row.outcome) != expected[row.metadata["request"]]]
    assert set(more) <= {"POST /dispatch"} and len(rows) == len(expected) + len(more)  # it also decides on the memory


@pytest.mark.promise("A2")
@pytest.mark.promise("A9")
def test_only_who_manages_agents_may_name_another_agent_and_no_answer_tells_whether_it_exists(matrix):
    actions = [READ, WRITE, "memory.purge", "memory.review", "dispatch", "done.read"]
    matrix.add_role("manager", ["agents.manage", *actions], SCOPES)
    matrix.add_role("plain", actions, SCOPES)
    manager, plain = matrix.agent("manager", "manager"), matrix.agent("plain", "plain")
    matrix.agent("victim", "plain")
    routes = [route for route in ROUTES if route.may_name_agent or route.name in ("GET /done", "GET /done/exists")]
    assert len(routes) > 8
    for route in routes:
        scope = "agent" if "{scope}" in route.path else None
        there, missing = [asked(plain, route, scope, agent=agent) for agent in ("victim", "nobody")]
        assert there.status == missing.status == 403, (route.name, there)
        assert {**there.json, "request_id": ""} == {**missing.json, "request_id": ""}
        if route.may_name_agent:
            asked(manager, route, scope, agent="victim")
    managed = [row.outcome for row in read_audit(matrix) if row.agent == "manager" and row.action == "agents.manage"]
    assert managed == ["allowed"] * len([route for route in routes if route.may_name_agent])
    denied = [row for row in read_audit(matrix) if row.agent == "plain" and row.outcome == "denied"]
    assert len(denied) == 2 * len(routes) and {row.action for row in denied} == {"agents.manage"}


def read_audit(gateway):
    """Return all rows, oldest first."""
    return list(gateway.gate.ledger.audit.iterate_entries())


@pytest.mark.promise("A2")
@pytest.mark.promise("A9")
@pytest.mark.parametrize(EACH, tiered(CASES, SAMPLE), indirect=["any_gateway"])
def test_every_tool_is_allowed_or_denied_as_role_and_grants_say(matrix, name, grants):
    given, reached = GRANTS[grants]
    client, role, named = matrix.agent("asker", name, given), matrix.gate.role(name), {"project", "session"}
    sent = {"Authorization": f"Bearer {client.token}", "X-Holdfast-Session": "s1"}
    expected = []

    async def talk(headers, project):
        address = f"http://127.0.0.1:{matrix.port}/mcp"
        async with (
            create_mcp_http_client({**sent, **headers}) as connection,
            Client(streamable_http_client(address, http_client=connection), mode="auto") as tools,
        ):
            assert {tool.name for tool in (await tools.list_tools()).tools} == {tool for tool, _, _ in TOOLS}
            for tool, given, action in TOOLS:
                for scope in scopes_of_tool(tool):
                    said = await tools.call_tool(tool, {**given, **project, **({"scope": scope} if scope else {})})
                    denied = is_denied(role, reached, action, scope, named)
                    expected.append((f"MCP {tool}", action, "denied" if denied else "allowed"))
                    answer = json.dumps([one.text for one in said.content])
                    assert ("does not have the permission" in answer) == denied, (tool, scope, said)
                    assert said.is_error or not denied

    run(lambda: talk({"X-Holdfast-Project": "demo"}, {}))
    run(lambda: talk({}, {"project": "demo"}))  # an argument names it as well
    assert [(row.metadata["route"], row.action, row.outcome) for row in read_audit(matrix) if row.agent == "asker"] == expected


def scopes_of_tool(tool):
    """Return the scopes that a call of the tool can name."""
    return (None,) if tool == "memory_search" else SCOPES


@pytest.mark.promise("A2")
@pytest.mark.promise("A9")
@pytest.mark.parametrize(EACH, tiered(CASES, SAMPLE), indirect=["any_gateway"])
def test_resources_and_prompts_are_allowed_or_denied_as_role_and_grants_say(matrix, name, grants):
    given, reached = GRANTS[grants]
    client, role = matrix.agent("asker", name, given), matrix.gate.role(name)
    denied = is_denied(role, reached, READ, None, {"project"})

    async def refused(asking):
        try:
            await asking
        except MCPError as error:
            return "does not have the permission" in str(error)
        return False

    async def talk():
        address = f"http://127.0.0.1:{matrix.port}/mcp"
        sent = {"Authorization": f"Bearer {client.token}", "X-Holdfast-Project": "demo"}
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
    rows = [row for row in read_audit(matrix) if row.agent == "asker"]
    assert [row.outcome for row in rows] == ["denied" if denied else "allowed"] * 3
