"""The review page by plain HTTP: what waits beside what it would change, decisions, failures and undo, on both stores."""

from __future__ import annotations

import re

import pytest
from web_client import WebClient

REF = re.compile(r'name="note-0" value="([^"]+)"')


@pytest.fixture
def agent(any_gateway):
    """An agent with two notes from the web; one is about something that a person said differently."""
    client = any_gateway.agent("reader")
    any_gateway.operator("PUT", "/v1/notes/project/limits", {"text": "The limit is 60 calls a minute.", "project": "demo"})
    from_the_web(client, "limits", "The limit is 500 calls a minute.")
    from_the_web(client, "zebra", "Zebras sleep standing.")
    return client


def from_the_web(client, key, text):
    body = {"text": text, "made_from": ["https://blog.example/post"]}
    assert client("PUT", f"/v1/notes/agent/{key}", body).json["note"]["quarantined"]


@pytest.fixture
def person(any_gateway, agent):
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.operator.token)
    return browser


def refs(page):
    return {value.split("/")[2].split("@")[0]: value for value in REF.findall(page.text)}


def token(page):
    return re.search(r'name="form_token" value="([^"]+)"', page.text)[1]


def decide(person, decision, *values, page=None):
    page = page or person.get("/ui/review")
    fields = {"form_token": token(page), "decision": decision, **{f"note-{n}": value for n, value in enumerate(values)}}
    return person.post("/ui/review/decide", fields)


def read(gateway, key="limits"):
    return gateway.operator.get(f"/v1/notes/agent/{key}?agent=reader")


def waiting(gateway):
    return {note["key"] for note in gateway.operator.get("/v1/review?everywhere=true").json["notes"]}


def test_what_waits_is_listed_with_its_source_and_trust(person):
    page = person.get("/ui/review")
    assert set(refs(page)) == {"limits", "zebra"} and "agent reader" in page.text
    assert "The limit is 500 calls a minute." in page.text and "https://blog.example/post" in page.text
    assert "trusted as" in page.text and "<kbd>j</kbd>" in page.text


def test_a_note_is_shown_beside_the_trusted_note_of_its_key(person):
    for headers in ({}, {"HX_Request": "true"}):
        html = person.get("/ui/review/agent/reader/limits/compare", **headers).text
        removed, added = (re.search(rf'class="line {kind}".*?</div>', html)[0] for kind in ("removed", "added"))
        assert "60 calls" in removed and "500 calls" in added and "/ui/notes/project/demo/limits" in html
        assert "https://blog.example/post" in html
        assert ("<html" in html) == (not headers)


def test_a_note_like_no_other_is_new(person):
    assert ">new</span>" in person.get("/ui/review/agent/reader/zebra/compare").text


def test_a_note_that_changed_is_shown_beside_what_it_said_before(person, agent):
    from_the_web(agent, "zebra", "Zebras sleep lying down.")
    html = person.get("/ui/review/agent/reader/zebra/compare").text
    assert "said before" in html and "standing" in re.search(r'class="line removed".*?</div>', html)[0]


def test_an_approval_can_be_undone(any_gateway, person):
    page = person.get("/ui/review")
    sent = decide(person, "approve", refs(page)["limits"], page=page)
    assert sent.status == 303 and not read(any_gateway).json["quarantined"]
    page = person.get(sent.headers["location"])
    assert "Approved:" in page.text and set(refs(page)) == {"zebra"}
    undone = person.send_form(page, "/ui/review/undo")
    assert read(any_gateway).json["quarantined"] and read(any_gateway).json["source"]["made_from"]
    page = person.get(undone.headers["location"])
    assert "Undone:" in page.text and set(refs(page)) == {"limits", "zebra"}
    trace = any_gateway.operator.get("/v1/trace/agent/limits?agent=reader").json
    assert [one["action"] for one in trace["decisions"]][:2] == ["quarantined", "approved"]


def test_a_rejection_can_be_undone(any_gateway, person):
    page = person.get("/ui/review")
    sent = decide(person, "reject", refs(page)["limits"], page=page)
    assert read(any_gateway).status == 404
    page = person.get(sent.headers["location"])
    assert "Rejected:" in page.text
    person.send_form(page, "/ui/review/undo")
    assert read(any_gateway).json["quarantined"]


def test_many_are_decided_at_once_and_each_failure_is_told(any_gateway, person, agent):
    page = person.get("/ui/review")
    seen = refs(page)
    from_the_web(agent, "limits", "The limit is 700 calls a minute.")
    answer = decide(person, "approve", *seen.values(), page=page)
    assert answer.status == 409 and "limits: " in answer.text and "has changed since you read it" in answer.text
    assert "Approved:" in answer.text and waiting(any_gateway) == {"limits"}
    page = person.get("/ui/review")
    sent = decide(person, "reject", *refs(page).values(), page=page)
    assert sent.status == 303 and waiting(any_gateway) == set()
    assert "Nothing waits for review" in person.get(sent.headers["location"]).text


def test_an_undo_of_a_note_that_changed_since_is_refused(any_gateway, person):
    page = person.get("/ui/review")
    page = person.get(decide(person, "approve", refs(page)["limits"], page=page).headers["location"])
    any_gateway.operator("PUT", "/v1/notes/agent/limits", {"text": "A person wrote this.", "agent": "reader"})
    refused = person.send_form(page, "/ui/review/undo")
    assert refused.status == 409 and "has changed since" in refused.text
    assert not read(any_gateway).json["quarantined"]


def test_a_text_is_edited_and_approved(any_gateway, person):
    url = "/ui/review/agent/reader/limits/edit"
    sent = person.send_form(person.get(url), url, text="The limit is 550.", type="reference", tags="api")
    note = read(any_gateway).json
    assert (note["text"], note["tags"], note["quarantined"], note["source"]["origin"]) == (
        "The limit is 550.", ["api"], False, "user",
    )  # fmt: skip
    page = person.get(sent.headers["location"])
    assert "Saved and approved:" in page.text
    person.send_form(page, "/ui/review/undo")
    assert read(any_gateway).json["quarantined"]


def test_an_edit_that_leaves_the_text_approves_it_as_it_is(any_gateway, person):
    url = "/ui/review/agent/reader/limits/edit"
    person.send_form(person.get(url), url, text="The limit is 500 calls a minute.", type="project", tags="api")
    note = read(any_gateway).json
    assert not note["quarantined"] and note["source"]["origin"] == "web" and note["tags"] == ["api"]


def test_an_edit_of_another_version_shows_the_conflict(any_gateway, person, agent):
    url = "/ui/review/agent/reader/limits/edit"
    page = person.get(url)
    from_the_web(agent, "limits", "The limit is 700 calls a minute.")
    refused = person.send_form(page, url, text="Mine.", type="project", tags="")
    assert refused.status == 412 and "changed while you edited it" in refused.text and "Mine.</textarea>" in refused.text
    assert person.send_form(refused, url, text="Mine.", type="project", tags="").status == 303
    assert read(any_gateway).json["text"] == "Mine."


def test_the_list_is_paged(any_gateway, person, agent):
    for number in range(24):
        from_the_web(agent, f"more-{number}", f"Words from the web, number {number}.")
    page = person.get("/ui/review")
    assert len(refs(page)) == 20
    following = person.get(re.search(r'href="(/ui/review\?cursor=[^"]+)"', page.text)[1])
    assert len(refs(following)) == 6 and not set(refs(page)) & set(refs(following))


def test_a_form_without_its_token_or_with_nonsense_decides_nothing(any_gateway, person):
    page = person.get("/ui/review")
    good = refs(page)["limits"]
    assert person.post("/ui/review/decide", {"decision": "approve", "note-0": good}).status == 403
    assert decide(person, "purge", good, page=page).status == 422
    for bad in ("x", "agent/reader", "nonsense/a/b@c", f"agent/../limits@{good.rpartition('@')[2]}", "agent/reader/limits@"):
        assert decide(person, "approve", bad, page=page).status in (303, 404, 422), bad
    assert waiting(any_gateway) == {"limits", "zebra"}
    assert person.get("/ui/review?approved=x&rejected=a/b&undone=%00&at=x&approved=agent/reader/limits").status == 200


def test_who_may_not_decide_sees_no_buttons_and_is_refused(any_gateway, agent):
    any_gateway.add_role("curator", ["agent.memory.read", "agent.memory.write", "memory.review"])
    curator = any_gateway.agent("curator", "curator")
    from_the_web(curator, "own", "Words of the web.")
    browser = WebClient(any_gateway.port)
    browser.sign_in(curator.token)
    page = browser.get("/ui/review")
    assert "Words of the web." in page.text and "500 calls" not in page.text and "Approve" not in page.text
    version = curator.get("/v1/notes/agent/own").json["version"]
    assert decide(browser, "approve", f"agent/curator/own@{version}", page=page).status == 422
    assert decide(browser, "approve", f"agent/reader/limits@{version}", page=page).status == 403
    reader = WebClient(any_gateway.port)
    reader.sign_in(any_gateway.agent("plain").token)
    assert reader.get("/ui/review").status == 403 and 'href="/ui/review"' not in reader.get("/").text


def test_only_a_person_puts_a_note_in_quarantine(any_gateway, agent):
    any_gateway.add_role("curator", ["agent.memory.read", "agent.memory.write", "memory.review"])
    curator = any_gateway.agent("curator", "curator")
    own = curator("PUT", "/v1/notes/agent/own", {"text": "My words."}).json["note"]
    refused = curator.post("/v1/review/agent/own/quarantine", {"version": own["version"]})
    assert (refused.status, refused.code) == (422, "refused")
    body = {"version": own["version"], "agent": "curator"}
    done = any_gateway.operator.post("/v1/review/agent/own/quarantine", body)
    assert done.status == 200 and done.json["quarantined"] and done.json["source"]["trust"] == "web"
    assert any_gateway.operator.post("/v1/review/agent/own/quarantine", body).status == 409
    assert any_gateway.operator.post("/v1/review/agent/none/quarantine", {"version": "x", "agent": "curator"}).status == 404
