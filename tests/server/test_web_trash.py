"""Trash, archive and receipts by plain HTTP, on both stores."""

from __future__ import annotations

import re

import pytest
from web_client import WebClient


@pytest.fixture
def operator(any_gateway):
    return any_gateway.operator


@pytest.fixture
def person(any_gateway, operator):
    browser = WebClient(any_gateway.port)
    browser.sign_in(operator.token)
    return browser


def keep(operator, key, project="demo", **more):
    operator("PUT", f"/v1/notes/project/{key}", {"text": f"Words of {key}.", "project": project, **more})


def forget(operator, key, project="demo"):
    keep(operator, key, project)
    assert operator("DELETE", f"/v1/notes/project/{key}?project={project}").json["deleted"]


def status(operator, key, project="demo"):
    return operator.get(f"/v1/notes/project/{key}?project={project}").status


def token(page):
    return re.search(r'name="form_token" value="([^"]+)"', page.text)[1]


def restore(person, path, place):
    return person.post(path, {"form_token": token(person.get(path)), "note": place})


def test_the_trash_of_every_scope_is_listed_and_restored(person, operator):
    assert "The trash is empty" in person.get("/ui/trash").text
    forget(operator, "one")
    forget(operator, "two", "shop")
    page = person.get("/ui/trash")
    assert "project demo" in page.text and "project shop" in page.text
    sent = restore(person, "/ui/trash", "project/shop/two")
    assert sent.status == 303 and status(operator, "two", "shop") == 200 and status(operator, "one") == 404
    page = person.get(sent.headers["location"])
    assert "The note is back" in page.text and 'value="project/shop/two"' not in page.text


def test_a_restore_that_fails_is_told(person, operator):
    forget(operator, "one")
    keep(operator, "one")
    answer = restore(person, "/ui/trash", "project/demo/one")
    assert answer.status == 409 and "nother note has the key" in answer.text
    assert restore(person, "/ui/trash", "project/demo/none").status == 404
    assert restore(person, "/ui/trash", "nonsense").status == 422
    assert person.post("/ui/trash", {"note": "project/demo/one"}).status == 403


def test_of_two_copies_only_the_newer_one_is_offered(person, operator):
    forget(operator, "one")
    forget(operator, "one")
    html = person.get("/ui/trash").text
    assert html.count('value="project/demo/one"') == 1 and "older copy" in html


def test_the_trash_is_paged(person, operator):
    for number in range(52):
        forget(operator, f"k{number}", f"p{number % 3}")
    first = person.get("/ui/trash")
    second = person.get(re.search(r'href="(/ui/trash\?cursor=[^"]+)"', first.text)[1])
    found = [set(re.findall(r'name="note" value="([^"]+)"', page.text)) for page in (first, second)]
    assert (len(found[0]), len(found[1]), len(found[0] | found[1])) == (50, 2, 52)


def test_emptying_asks_for_a_word_and_erases_for_good(person, operator):
    forget(operator, "one")
    forget(operator, "two", "shop")
    keep(operator, "stays")
    page = person.get("/ui/trash/empty")
    assert "cannot be restored" in page.text
    assert person.send_form(page, "/ui/trash/empty", confirm="no", older_than_days="0").status == 422
    sent = person.send_form(page, "/ui/trash/empty", confirm="empty", older_than_days="7")
    assert sent.headers["location"] == "/ui/trash?emptied=0" and "Nothing to erase" in person.get("/ui/trash?emptied=0").text
    sent = person.send_form(page, "/ui/trash/empty", confirm="empty", older_than_days="0")
    assert sent.headers["location"] == "/ui/trash?emptied=2"
    assert "The trash is empty" in person.get("/ui/trash").text and status(operator, "stays") == 200
    assert operator.post("/v1/notes/project/one/restore", {"project": "demo"}).status == 404


def test_only_what_is_old_enough_is_erased(person, operator, clock):
    clock.set("2030-01-01T00:00:00Z")
    forget(operator, "old")
    clock.set("2030-01-09T00:00:00Z")
    forget(operator, "young")
    erased = operator.post("/v1/trash/empty", {"older_than_days": 7, "project": "demo"})
    assert erased.json == {"notes": 1, "sessions": 0}
    assert [one["key"] for one in operator.get("/v1/trash?project=demo").json["trash"]] == ["young"]


def test_only_a_person_empties_the_trash_or_sees_all_of_it(any_gateway):
    any_gateway.add_role("purger", ["agent.memory.read", "agent.memory.write", "memory.purge"])
    agent = any_gateway.agent("purger", "purger")
    agent("PUT", "/v1/notes/agent/own", {"text": "Mine."})
    agent("DELETE", "/v1/notes/agent/own")
    assert agent.post("/v1/trash/empty").code == "refused"
    assert agent.get("/v1/trash?everywhere=true").code == "denied" == agent.get("/v1/notes?everywhere=true").code
    assert any_gateway.operator.get("/v1/trash?everywhere=true&agent=purger").status == 422
    browser = WebClient(any_gateway.port)
    browser.sign_in(agent.token)
    page = browser.get("/ui/trash")
    assert 'value="agent/purger/own"' in page.text and "Empty the trash" not in page.text
    fields = {"form_token": token(page), "confirm": "empty", "older_than_days": "0"}
    assert browser.post("/ui/trash/empty", fields).status == 422
    assert restore(browser, "/ui/trash", "agent/purger/own").status == 303


def test_a_reader_is_offered_no_restore(any_gateway, operator):
    forget(operator, "one")
    any_gateway.add_role("looker", ["agent.memory.read"], ("project",))
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.agent("looker", "looker").token)
    page = browser.get("/ui/trash")
    assert page.status == 200 and "Restore</" not in page.text and "Receipts" not in page.text
    assert browser.post("/ui/trash", {"form_token": token(page), "note": "project/demo/one"}).status == 403
    assert browser.get("/ui/receipts").status == 403


def test_archived_notes_are_listed_with_their_text_and_brought_back(any_gateway, person, operator, clock):
    assert "Nothing is archived" in person.get("/ui/archive").text
    clock.set("2030-01-01T00:00:00Z")
    keep(operator, "stale", type="project")
    clock.set("2031-01-01T00:00:00Z")
    assert [note["key"] for note in operator.post("/v1/retain").json["archived"]] == ["stale"]
    person = WebClient(any_gateway.port)
    person.sign_in(operator.token)  # the session before has expired
    page = person.get("/ui/archive")
    assert "Words of stale." in page.text and "stale" not in person.get("/ui/trash").text
    sent = restore(person, "/ui/archive", "project/demo/stale")
    assert "The note is back" in person.get(sent.headers["location"]).text
    assert operator.get("/v1/notes?archived=true&everywhere=true").json["notes"] == []


def test_receipts_are_listed_and_read(person, operator):
    assert "Nothing was purged" in person.get("/ui/receipts").text
    keep(operator, "secret-plan")
    operator.post("/v1/notes/project/secret-plan/purge", {"project": "demo"})
    html = person.get("/ui/receipts").text
    (url,) = re.findall(r'href="(/ui/receipts/[^"]+)"', html)
    page = person.get(url)
    assert "Verified" in page.text and "Removed" in page.text and "Words of" not in page.text
    assert person.get("/ui/receipts/NONE").status == 404 and person.get("/ui/receipts/-x").status in (404, 422)
