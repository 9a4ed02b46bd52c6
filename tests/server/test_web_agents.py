"""The pages about agents: add, rotate, revoke, grant; the token is shown once, and only to people who manage agents."""

from __future__ import annotations

import re

import pytest
from web_client import WebClient

TOKEN = re.compile(r"hf_[A-Za-z0-9]+_[A-Za-z0-9_-]+")


@pytest.fixture
def person(any_gateway):
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.operator.token)
    return browser


def add(person, **fields):
    given = {"name": "scout", "role": "code-review-engineer", "projects": "acme-*, shop", "days": "30", **fields}
    return person.send_form(person.get("/ui/agents/new"), "/ui/agents/new", **given)


def find(gateway, name="scout"):
    return next(one for one in gateway.operator.get("/agents").json["agents"] if one["name"] == name)


def test_an_agent_is_added_and_its_token_is_shown_once(any_gateway, person):
    page = add(person)
    (token,) = set(TOKEN.findall(page.text))
    assert page.status == 200 and page.headers["cache-control"] == "no-store" and "location" not in page.headers
    agent = find(any_gateway)
    assert agent["role"] == "code-review-engineer" and agent["tokens"][0]["expires"]
    assert {one["pattern"] for one in agent["grants"]} == {"acme-*", "shop"}
    html = person.get("/ui/agents").text
    assert agent["tokens"][0]["id"] in html and token not in html and "acme-*" in html


def test_a_mistake_comes_back_with_the_form(person):
    refused = add(person, name="no spaces allowed")
    assert refused.status == 422 and 'role="alert"' in refused.text and 'value="no spaces allowed"' in refused.text
    assert add(person, days="many").status == 422


def test_a_token_is_rotated(any_gateway, person):
    first = TOKEN.search(add(person).text)[0]
    page = person.send_form(person.get("/ui/agents"), "/ui/agents/scout/rotate", grace_hours="0", days="")
    second = TOKEN.search(page.text)[0]
    assert first != second and page.headers["cache-control"] == "no-store"
    assert len(find(any_gateway)["tokens"]) == 2


def test_a_revocation_asks_first(any_gateway, person):
    add(person)
    page = person.get("/ui/agents/scout/revoke")
    assert "Revoke scout?" in page.text and find(any_gateway)["state"] == "active"
    sent = person.send_form(page, "/ui/agents/scout/revoke")
    assert sent.headers["location"] == "/ui/agents?done=revoked"
    assert find(any_gateway)["state"] == "revoked"


def test_grants_are_added_and_removed(any_gateway, person):
    add(person, projects="")
    person.send_form(person.get("/ui/agents"), "/ui/agents/scout/grants/add", kind="repository", pattern="acme/*")
    assert find(any_gateway)["grants"] == [{"kind": "repository", "pattern": "acme/*"}]
    wrong = person.send_form(person.get("/ui/agents"), "/ui/agents/scout/grants/add", kind="repository", pattern="a b")
    assert wrong.status == 422 and 'role="alert"' in wrong.text
    person.send_form(person.get("/ui/agents"), "/ui/agents/scout/grants/remove")
    assert find(any_gateway)["grants"] == []


def test_roles_show_what_they_allow(person):
    html = person.get("/ui/roles").text
    assert "code-review-engineer" in html and "agent.memory.read" in html and "Allowed actions" in html


def test_other_roles_are_neither_offered_nor_allowed_these_pages(any_gateway, person):
    add(person)
    any_gateway.add_role("reader", ["agent.memory.read"], ("agent",))
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.agent("reader", "reader").token)
    html = browser.get("/").text
    assert "/ui/agents" not in html and "/ui/audit" not in html
    form = {"form_token": re.search(r'name="form_token" value="([^"]+)"', html)[1], "name": "x", "role": "operator"}
    for path in ("/ui/agents", "/ui/agents/scout/revoke", "/ui/roles"):
        assert browser.get(path).status == 403, path
    for path in ("new", "scout/rotate", "scout/revoke", "scout/grants/add", "scout/grants/remove"):
        assert browser.post(f"/ui/agents/{path}", {**form, "kind": "project", "pattern": "x"}).status == 403, path
    assert find(any_gateway)["state"] == "active"


def test_a_form_without_its_token_is_refused(any_gateway, person):
    assert person.post("/ui/agents/new", {"name": "scout", "role": "operator"}).status == 403
    assert "scout" not in [one["name"] for one in any_gateway.operator.get("/agents").json["agents"]]
