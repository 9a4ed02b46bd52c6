"""Every list of the gateway without a limit has pages, and the client reads them all (tests/contract tests each store)."""

from __future__ import annotations

import pytest
from http_gateway import run_gateway

from holdfast import Memory
from holdfast.server import openapi
from holdfast.server.routes import ROUTES

WHOLE = {  # lists that are returned whole, and why they stay short
    "GET /v1/history": "it takes so many turns before and after one",
    "GET /v1/graph/path": "a way passes each thing once",
    "GET /v1/check": "problems are there to be mended",
    "GET /v1/settings": "the settings are a fixed list",
    "GET /traffic": "the last hour has 60 minutes",
    "GET /v1/status": "a caller has few scopes",
    "GET /v1/activity": "at most 365 days, and the last eight notes",
    "GET /roles": "a person wrote each of the files",
    "GET /agents/{name}/grants": "an agent has at most 200",
    "GET /gateway/memory": "the caller's whole memory is what it is for",
}


@pytest.fixture
def gateway(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as one:
        yield one


def lists(route):
    """Return the names of the arrays in its answer."""
    return [name for name, one in answer(route).items() if one.get("type") == "array"]


def answer(route):
    schema = openapi.schema_of(route.answers)
    return schema.get("properties", {})


def test_every_list_has_pages_or_a_reason_to_come_whole():
    for route in [route for route in ROUTES if route.method == "GET" and lists(route)]:
        assert ("cursor" in route.query_fields and "limit" in route.query_fields) != (route.name in WHOLE), route.name
        assert ("next" in answer(route)) == ("cursor" in route.query_fields), route.name


def turned(ask, path, name, limit):
    """Return all pages joined."""
    seen, cursor = [], ""
    while cursor is not None:
        sign = "&" if "?" in path else "?"
        page = ask.get(f"{path}{sign}limit={limit}" + (f"&cursor={cursor}" if cursor else "")).json
        assert len(page[name]) <= limit
        seen, cursor = [*seen, *page[name]], page["next"]
    return seen


def test_each_list_comes_page_by_page_as_the_whole(gateway):
    ask = gateway.operator
    for number in range(7):
        ask("PUT", "/v1/notes/agent/k", {"text": f"Words that change, {number}.", "made_from": ["https://blog.example/a"]})
        ask("PUT", f"/v1/notes/agent/n{number}", {"text": f"Words to be purged, {number}."})
        ask("PUT", f"/v1/notes/agent/t{number}", {"text": f"Words to throw away, {number}."})
        ask("DELETE", f"/v1/notes/agent/t{number}")
        ask.post(f"/v1/notes/agent/n{number}/purge")
        ask.post("/v1/facts", {"subject": f"Thing {number}", "label": "state", "value": "on", "scope": "agent"})
        gateway.agent(f"agent-{number}")
    for path, name, many in (
        ("/v1/trash", "trash", 7), ("/v1/trash?scope=agent", "trash", 7), ("/v1/receipts", "receipts", 7),
        ("/v1/facts", "facts", 7), ("/v1/notes/agent/k/history", "versions", 7), ("/agents", "agents", 8),
        ("/v1/notes?source=https://blog.example/a", "notes", 1),
    ):  # fmt: skip
        whole = ask.get(path).json
        assert len(whole[name]) == many and whole["next"] is None, path
        for limit in (1, 3, many, many + 1):
            assert turned(ask, path, name, limit) == whole[name], (path, limit)
        sign = "&" if "?" in path else "?"
        for wrong in ("cursor=%0a", "cursor=", "limit=0", "limit=501", "limit=x"):
            assert ask.get(f"{path}{sign}{wrong}").status == 422, (path, wrong)


def test_the_client_returns_whole_lists_however_many_pages_they_have(gateway):
    stated = "\n".join(f"- [2026-01-01] label-{number:04}: on" for number in range(1100))
    kept = [{"text": f"Words, number {number}.", "key": f"k{number:04}"} for number in range(520)]
    with Memory(f"http://127.0.0.1:{gateway.port}", token=gateway.operator.token, project="demo") as memory:
        memory.store(f"# Harbour\n\n{stated}\n", key="harbour", scope="agent")
        assert [fact.label for fact in memory.facts()] == [f"label-{number:04}" for number in range(1100)]
        memory.store_many(kept, scope="project")
        memory.clear("project")
        assert sorted(one.key for one in memory.trash()) == [row["key"] for row in kept]
        assert memory.restore("k0000").key == "k0000"  # it is searched for on every page
