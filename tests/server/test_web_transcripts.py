"""Pages of kept sessions by plain HTTP, on both stores."""

from __future__ import annotations

import pytest
from both_gateways import gateway  # noqa: F401
from web_client import WebClient

SESSION = "/ui/sessions/project/demo/http/7f3a"
TURNS = [{"role": "user" if number % 2 else "assistant", "text": f"Turn {number} about zebras."} for number in range(120)]


@pytest.fixture
def person(gateway):  # noqa: F811
    gateway.operator("POST", "/v1/history", {"turns": TURNS, "session": "7f3a", "client": "http", "project": "demo"})
    gateway.operator("POST", "/v1/history", {"turns": TURNS[:2], "session": "other", "client": "http", "project": "shop"})
    browser = WebClient(gateway.port)
    browser.sign_in(gateway.operator.token)
    return browser


def test_sessions_are_listed_filtered_and_paged(person, gateway):  # noqa: F811
    html = person.get("/ui/sessions").text
    assert f'href="{SESSION}"' in html and "120" in html and "project shop" in html
    assert "project shop" not in person.get("/ui/sessions?q=7f3").text
    assert "No session matches" in person.get("/ui/sessions?q=nothing").text
    first = gateway.operator.get("/v1/history/sessions?everywhere=true&limit=1").json
    second = gateway.operator.get(f"/v1/history/sessions?everywhere=true&limit=1&cursor={first['next']}").json
    assert {first["sessions"][0]["session"], second["sessions"][0]["session"]} == {"7f3a", "other"}
    assert second["next"] is None


def test_an_agent_lists_only_its_own_sessions(person, gateway):  # noqa: F811
    agent = gateway.agent("reader", "code-review-engineer")
    assert agent.get("/v1/history/sessions").json["sessions"] == []
    assert agent.get("/v1/history/sessions?everywhere=true").status == 403


def test_a_transcript_is_read_page_by_page(person):
    first, last = person.get(SESSION).text, person.get(f"{SESSION}?page=3").text
    assert "Turn 0 about" in first and "Later turns" in first and "Earlier turns" not in first
    assert "Turn 119 about" in last and "Later turns" not in last
    assert person.get(f"{SESSION}x").status == 404


def test_a_hit_leads_to_its_turn(person):
    html = person.get("/ui/search?q=zebras&kind=turn&mode=keyword").text
    assert f'href="{SESSION}?page=' in html and "#turn-" in html
    assert 'class="card found" id="turn-57"' in person.get(f"{SESSION}?page=2&turn=57").text
    assert "Found in this session" in person.get(f"{SESSION}?q=zebras").text


def test_a_note_from_a_turn_names_its_source(person, gateway):  # noqa: F811
    page = person.get(f"{SESSION}/note?turn=4")
    assert "Turn 4 about zebras." in page.text
    fields = {"text": "Zebras matter.", "key": "zebras", "type": "project", "scope": "project", "tags": ""}
    assert person.send_form(page, f"{SESSION}/note", **fields).status == 303
    note = gateway.operator.get("/v1/notes/project/zebras?project=demo").json
    assert note["source"]["made_from"] == ["turn:projects/demo/transcripts/http/7f3a.jsonl:6-6"]
    assert (note["source"]["trust"] or note["source"]["origin"]) != "user"
    assert person.send_form(page, f"{SESSION}/note", **fields).status == 409  # the key is taken
    assert person.post(f"{SESSION}/note", fields).status == 403  # without the token of the form


def test_a_session_is_forgotten_and_comes_back(person):
    page = person.get(SESSION)
    gone = person.send_form(page, f"{SESSION}/forget")
    assert gone.status == 303 and person.get(SESSION).status == 404
    assert person.send_form(page, f"{SESSION}/forget").status == 404  # it is forgotten already
    listed = person.get(gone.headers["location"])
    assert person.send_form(listed, f"{SESSION}/restore").status == 303
    assert person.get(SESSION).status == 200
