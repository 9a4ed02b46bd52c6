"""Relations on the pages of a note and of the review, by plain HTTP, on both stores."""

from __future__ import annotations

import re

import pytest
from web_client import WebClient

PAGE = "/ui/notes/project/demo/deploys"


@pytest.fixture
def person(any_gateway):
    for key, text in (("deploys", "Deploys run on Tuesdays."), ("old-deploys", "Deploys run on Fridays.")):
        any_gateway.operator("PUT", f"/v1/notes/project/{key}", {"text": text, "project": "demo"})
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.operator.token)
    return browser


def send(person, path, page, **fields):
    token = re.search(r'name="form_token" value="([^"]+)"', person.get(page).text)[1]
    return person.post(path, {"form_token": token, **fields})


def relations(gateway, key="deploys"):
    found = gateway.operator.get(f"/v1/notes/project/{key}/relations?project=demo").json["relations"]
    return [(one["key"], one["kind"], one["target"], one["status"]) for one in found]


def test_a_relation_is_stated_followed_and_removed(any_gateway, person):
    send(person, f"{PAGE}/relation", PAGE, relation="supersedes", target="old-deploys")
    assert relations(any_gateway) == [("deploys", "supersedes", "old-deploys", "accepted")]
    assert 'supersedes <a href="/ui/notes/project/demo/old-deploys">' in person.get(PAGE).text
    other = person.get("/ui/notes/project/demo/old-deploys").text
    assert 'is superseded by <a href="/ui/notes/project/demo/deploys">' in other
    removed = {"change": "remove", "relation": "supersedes", "target": "old-deploys", "target_scope": "project"}
    send(person, f"{PAGE}/relation", PAGE, **removed)
    assert relations(any_gateway) == []


def test_a_relation_to_no_note_is_refused_with_a_message(any_gateway, person):
    page = send(person, f"{PAGE}/relation", PAGE, relation="supersedes", target="nothing")
    assert page.status == 404 and "nothing" in page.text
    assert relations(any_gateway) == []


@pytest.mark.parametrize(("decision", "status"), [("accept", "accepted"), ("reject", "rejected")])
def test_a_proposed_relation_is_decided_on_the_review_page(any_gateway, person, decision, status):
    any_gateway.add_role("writer", ["agent.memory.read", "agent.memory.write"], ["project"])
    agent = any_gateway.agent("bot", "writer")
    agent("PUT", "/v1/notes/project/found", {"text": "Deploys run daily.", "project": "demo"})
    body = {"kind": "supersedes", "target": "deploys", "project": "demo"}
    assert agent("POST", "/v1/notes/project/found/relations", body).json["relation"]["status"] == "proposed"
    page = person.get("/ui/review").text
    assert "Proposed relations" in page and ">found</a> supersedes" in page
    named = {"scope": "project", "of": "demo", "key": "found", "relation": "supersedes", "target": "deploys"}
    send(person, "/ui/review/relation", "/ui/review", decision=decision, target_scope="project", **named)
    assert relations(any_gateway) == [("found", "supersedes", "deploys", status)]
    assert "Proposed relations" not in person.get("/ui/review").text
