"""The page of what agents are told, by plain HTTP, on both stores."""

from __future__ import annotations

from html import unescape

import pytest
from both_gateways import gateway  # noqa: F401
from web_client import WebClient

PAGE = "/ui/briefing?client=claude-code&project=demo"


@pytest.fixture
def person(gateway):  # noqa: F811
    for key in ("deploys", "testing"):
        gateway.operator("PUT", f"/v1/notes/project/{key}", {"text": f"About {key} on Mondays.", "project": "demo"})
    browser = WebClient(gateway.port)
    browser.sign_in(gateway.operator.token)
    return browser


def test_the_text_is_what_a_hook_shows_and_is_not_counted_as_shown(person, gateway):  # noqa: F811
    from holdfast import Memory

    html = unescape(person.get(PAGE).text)
    if gateway.store == "home":
        with Memory(gateway.home, project="demo") as memory:
            assert memory.brief(cap=9000, remember=False).text in html
    assert "About deploys on Mondays." in html and "holdfast recall QUERY" in html and "whole" in html


def test_a_prompt_brings_what_bears_on_it(person):
    html = person.get(f"{PAGE}&prompt=when+are+deploys").text
    assert "matches the prompt" in html and "does not match the prompt" in html


def test_the_form_suggests_the_projects_of_the_home(person, gateway):  # noqa: F811
    gateway.operator("PUT", "/v1/notes/project/k", {"text": "Words.", "project": "other"})
    gateway.operator("PUT", "/v1/notes/global/k", {"text": "Words."})
    part = person.get("/ui/briefing/projects", HX_Request="true").text
    assert '<option value="other">' in part and "global" not in part
    assert person.get("/ui/briefing/projects").headers["location"] == "/ui/briefing"


def test_a_pin_shows_what_it_changes(person, gateway):  # noqa: F811
    form = {"client": "claude-code", "project": "demo", "prompt": "", "kind": "project", "key": "testing", "pinned": "yes"}
    assert person.post("/ui/briefing/pin", form).status == 403
    token = person.get(PAGE).text.partition('name="form_token" value="')[2].partition('"')[0]
    html = person.post("/ui/briefing/pin", {**form, "form_token": token}).text
    assert "What this changed" in html and "Standing notes:" in html and "Unpin" in html
    assert gateway.operator.get("/v1/notes/project/testing?project=demo").json["pinned"] is True


def test_a_wrong_project_leaves_the_form(person):
    answer = person.get("/ui/briefing?project=..%2Fx")
    assert answer.status == 422 and 'name="prompt"' in answer.text
