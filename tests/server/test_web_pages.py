"""Pages of the console by plain HTTP: what they show, what they change, and that they have no path to memory but the API."""

from __future__ import annotations

import re

import pytest
from web_client import WebClient

from holdfast.server.web import PAGES
from holdfast.server.web.markdown import render
from holdfast.server.web.text import compare_lines, excerpt, highlight

NOTE = "/ui/notes/project/demo/deploys"


@pytest.fixture
def operator(any_gateway):
    return any_gateway.operator


@pytest.fixture
def person(any_gateway, operator):
    """A browser in which the operator is signed in; there is a note with two versions."""
    for text in ("We deploy on Tuesdays.\nNever on Fridays.", "We deploy on Mondays.\nNever on Fridays."):
        operator("PUT", "/v1/notes/project/deploys", {"text": text, "type": "feedback", "tags": ["ci-cd"], "project": "demo"})
    browser = WebClient(any_gateway.port)
    browser.sign_in(operator.token)
    return browser


def current(operator):
    return operator.get("/v1/notes/project/deploys?project=demo").json


# --- reading ----------------------------------------------------------------------------------------------------------


def test_the_overview_counts_by_scope_and_type_and_shows_what_changed(person):
    html = person.get("/").text
    assert "Changed lately" in html and f'href="{NOTE}"' in html
    assert "project demo" in html and "feedback 1" in html


def test_the_overview_counts_no_note_as_used(person, operator):
    for _ in range(3):
        assert person.get("/").status == 200
    activity = operator.get("/v1/activity").json
    assert activity["used"] == [] and sum([day["used"] for day in activity["days"]]) == 0


def test_a_turn_that_was_found_is_named_by_its_session_and_number(person, operator):
    turns = [{"role": "user", "text": "Hello."}, {"role": "user", "text": "The harbour is closed."}]
    kept = {"turns": turns, "session": "7f3a", "client": "codex", "scope": "project", "project": "demo"}
    assert operator.post("/v1/history", kept).status == 200
    assert "session 7f3a, turn 2</a>" in person.get("/ui/search?q=harbour&kind=turn").text


def test_an_empty_home_teaches_the_next_step(any_gateway, operator):
    browser = WebClient(any_gateway.port)
    browser.sign_in(operator.token)
    html = browser.get("/").text
    assert "Nothing is remembered yet" in html and "holdfast install" in html and "holdfast store" in html


def test_problems_come_with_the_command_that_fixes_each(gateway):
    (gateway.home / "roles").mkdir(mode=0o700)
    (gateway.home / "roles" / "broken.yaml").write_text("name: [")
    browser = WebClient(gateway.port)
    browser.sign_in(gateway.operator.token)
    (problem, *_) = gateway.operator.get("/v1/check").json["problems"]
    page, part = browser.get("/ui/problems").text, browser.get("/ui/problems", HX_Request="true").text
    assert "<html" in page and "<html" not in part
    assert "broken" in part and problem["fix"].split("\n")[0][:20] in part.replace("&#39;", "'").replace("&#34;", '"')


def test_the_overview_shows_what_waits_for_review(any_gateway, operator, person):
    agent = any_gateway.agent("reader", "code-review-engineer")
    agent("PUT", "/v1/notes/agent/limits", {"text": "The limit is 500.", "origin": "web"})
    html = person.get("/").text
    assert "Waiting for review" in html and 'href="/ui/notes/agent/reader/limits"' in html
    assert "Waits for review" in person.get("/ui/notes/agent/reader/limits").text


def test_search_finds_everywhere_and_highlights_and_explains(person):
    html = person.get("/ui/search?q=deploys").text
    assert f'href="{NOTE}"' in html and "<mark>deploy</mark>" in html and "<html" in html
    assert "Why is it here?" in html
    part = person.get("/ui/search?q=deploys", HX_Request="true").text
    assert f'href="{NOTE}"' in part and "<html" not in part


def test_filters_of_the_search_reach_the_api(person, operator):
    operator("PUT", "/v1/notes/global/other", {"text": "Deploy other things.", "type": "user"})
    found = lambda query: set(re.findall(r'href="(/ui/notes/[^"]+)"', person.get(f"/ui/search?q=deploy&{query}").text))  # noqa: E731
    assert found("") == {NOTE, "/ui/notes/global/-/other"}
    assert found("scope=project&of=demo") == {NOTE} == found("type=feedback") == found("tag=ci-cd")
    assert found("scope=global") == {"/ui/notes/global/-/other"} == found("type=user")
    assert found("kind=file") == found("archived=only") == found("as_of=2020-01-01") == set()
    assert found("mode=keyword&archived=without") == {NOTE, "/ui/notes/global/-/other"}
    assert found("scope=nonsense&mode=nonsense&limit=9999&type=x") == found("")


def test_a_mistake_in_a_filter_is_told_and_the_form_stays(person):
    answer = person.get("/ui/search?q=deploy&as_of=2026-13-45")
    assert answer.status == 422 and 'role="alert"' in answer.text and 'value="2026-13-45"' in answer.text


def test_a_note_shows_its_versions_with_both_clocks_and_the_changed_lines(person):
    html = person.get(NOTE).text
    assert "We deploy on Mondays." in html and "Recorded" in html and "True from" in html
    removed, added = (re.search(rf'class="line {kind}".*?</div>', html)[0] for kind in ("removed", "added"))
    assert "Tuesdays" in removed and "Mondays" in added


def test_a_note_is_shown_as_it_was(person, clock, operator):
    clock.set("2020-06-01T12:00:00Z")
    operator("PUT", "/v1/notes/global/era", {"text": "Old words."})
    clock.set("2021-06-01T12:00:00Z")
    operator("PUT", "/v1/notes/global/era", {"text": "New words."})
    html = person.get("/ui/notes/global/-/era?as_of=2020-12-01").text
    assert "As it was" in html and "<p>Old words.</p>" in html and "Edit" not in html
    assert person.get("/ui/notes/global/-/era?as_of=2019-01-01").status == 404


def test_unknown_notes_scopes_and_paths_are_pages_too(person):
    for path in ("/ui/notes/global/-/missing", "/ui/notes/nonsense/-/k", "/ui/notes/project/..%20/k", "/ui/notes/agent/x/-"):
        answer = person.get(path)
        assert answer.status in (404, 422, 400), path
        assert answer.headers["content-type"].startswith("text/html"), path


# --- changing ---------------------------------------------------------------------------------------------------------


def test_an_edit_is_stored_as_the_next_version(person, operator):
    page = person.get(f"{NOTE}/edit")
    sent = person.send_form(page, f"{NOTE}/edit", text="One.\r\nTwo.", type="user", tags="a, b", pinned="yes")
    assert sent.headers["location"] == f"{NOTE}?done=saved"
    note = current(operator)
    assert (note["text"], note["type"], note["tags"], note["pinned"]) == ("One.\nTwo.", "user", ["a", "b"], True)
    assert note["source"]["origin"] == "user" and note["versions"] == 3
    page = person.get(f"{NOTE}/edit")
    assert (
        person.send_form(page, f"{NOTE}/edit", text="One.\nTwo.", type="user", tags="a, b", pinned="yes")
        .headers["location"]
        .endswith("?done=unchanged")
    )


def revert(person, place, page=None):
    """Send the form that brings a version back: that of a page that was read, or of the current page."""
    return person.send_form(page or person.get(NOTE), f"{NOTE}/revert", place=place)


def test_an_older_version_comes_back_as_a_new_one(person, operator):
    before = current(operator)
    assert revert(person, "1").headers["location"] == f"{NOTE}?done=reverted"
    after = current(operator)
    assert after["text"].startswith("We deploy on Tuesdays.") and after["versions"] == before["versions"] + 1
    assert (after["type"], after["tags"]) == ("feedback", ["ci-cd"])
    html = person.get(f"{NOTE}?done=reverted").text
    assert "The older text is the current one again." in html and ">Undo</button>" in html


def test_an_older_version_is_not_brought_back_over_a_change_of_another_caller(person, operator):
    seen = person.get(NOTE)
    operator("PUT", "/v1/notes/project/deploys", {"text": "We deploy at night.", "project": "demo"})
    assert revert(person, "1", seen).status in (409, 412)
    assert current(operator)["text"] == "We deploy at night."


@pytest.mark.parametrize("place", ["", "2", "-1", "x", "99999"])
def test_a_version_that_does_not_exist_is_not_brought_back(person, operator, place):
    assert revert(person, place).status == 422
    assert current(operator)["text"].startswith("We deploy on Mondays.")


def test_a_text_of_an_agent_that_is_brought_back_stays_the_word_of_an_agent(person, operator):
    operator("PUT", "/v1/notes/project/deploys", {"text": "We deploy at noon.", "origin": "agent", "project": "demo"})
    page = person.get(f"{NOTE}/edit")
    person.send_form(page, f"{NOTE}/edit", text="We deploy at one.", type="feedback", tags="")
    assert revert(person, "1").status == 303
    after = current(operator)
    assert after["text"] == "We deploy at noon." and (after["source"]["trust"] or after["source"]["origin"]) == "agent"


def test_a_text_from_the_web_that_is_brought_back_waits_for_review_again(person, operator):
    operator("PUT", "/v1/notes/project/deploys", {"text": "The web says noon.", "origin": "web", "project": "demo"})
    page = person.get(f"{NOTE}/edit")
    person.send_form(page, f"{NOTE}/edit", text="We deploy at one.", type="feedback", tags="")
    assert not current(operator)["quarantined"]
    assert revert(person, "1").status == 303
    assert current(operator)["text"] == "The web says noon." and current(operator)["quarantined"]


def test_of_two_edits_the_second_is_shown_the_conflict_and_loses_nothing(person, operator):
    page = person.get(f"{NOTE}/edit")
    operator("PUT", "/v1/notes/project/deploys", {"text": "Changed meanwhile.", "project": "demo"})
    refused = person.send_form(page, f"{NOTE}/edit", text="My words.", type="user", tags="")
    assert refused.status == 412 and "changed while you edited it" in refused.text
    assert "My words.</textarea>" in refused.text and "Changed meanwhile." in refused.text
    assert current(operator)["text"] == "Changed meanwhile."
    saved = person.send_form(refused, f"{NOTE}/edit", text="My words.", type="user", tags="")
    assert saved.status == 303 and current(operator)["text"] == "My words."


def test_a_text_that_may_not_be_stored_comes_back_with_the_reason(person, operator):
    page = person.get(f"{NOTE}/edit")
    text = "key AKIA" + "QYLPMN5HHHFPZAM2"
    refused = person.send_form(page, f"{NOTE}/edit", text=text, type="user", tags="")
    assert refused.status == 422 and 'role="alert"' in refused.text and text in refused.text
    assert "Mondays" in current(operator)["text"]


def test_a_pin_changes_nothing_else(person, operator):
    before = current(operator)
    person.send_form(person.get(NOTE), f"{NOTE}/pin")
    pinned = current(operator)
    assert pinned["pinned"] and {**pinned, "pinned": False}["text"] == before["text"]
    assert (pinned["type"], pinned["tags"], pinned["source"]) == (before["type"], before["tags"], before["source"])
    person.send_form(person.get(NOTE), f"{NOTE}/pin")
    assert not current(operator)["pinned"]


def test_a_pin_or_a_tag_gives_no_trust_and_a_text_of_ones_own_does(any_gateway, operator, person):
    agent = any_gateway.agent("reader")
    agent("PUT", "/v1/notes/agent/limits", {"text": "The limit is 500.", "origin": "web", "valid_to": "2999-01-01"})
    url, read = "/ui/notes/agent/reader/limits", lambda: operator.get("/v1/notes/agent/limits?agent=reader").json
    person.send_form(person.get(url), f"{url}/pin")
    assert read()["pinned"] and read()["quarantined"] and read()["valid_to"].startswith("2999-01-01")
    person.send_form(person.get(f"{url}/edit"), f"{url}/edit", text="The limit is 500.", type="user", tags="api")
    assert read()["tags"] == ["api"] and read()["quarantined"]
    person.send_form(person.get(f"{url}/edit"), f"{url}/edit", text="The limit is 600.", type="user", tags="api")
    assert not read()["quarantined"] and read()["source"]["origin"] == "user"
    assert read()["valid_to"].startswith("2999-01-01")


def test_a_note_moves_to_another_scope_and_leaves_its_versions_in_the_trash(person, operator):
    moved = person.send_form(person.get(NOTE), f"{NOTE}/move", kind="project", id="shop")
    assert moved.status == 303 and moved.headers["location"] == "/ui/notes/project/shop/deploys?done=moved"
    there = operator.get("/v1/notes/project/deploys?project=shop").json
    assert (there["text"], there["type"], there["tags"]) == ("We deploy on Mondays.\nNever on Fridays.", "feedback", ["ci-cd"])
    assert operator.get("/v1/notes/project/deploys?project=demo").status == 404
    operator("POST", "/v1/notes/project/deploys/restore", {"project": "demo"})
    assert current(operator)["versions"] == 2


def test_a_note_does_not_move_over_another_nor_without_a_name(person, operator):
    version = current(operator)["version"]
    operator("PUT", "/v1/notes/project/deploys", {"text": "Another note.", "project": "shop"})
    assert person.send_form(person.get(NOTE), f"{NOTE}/move", kind="project", id="shop", version=version).status == 412
    assert person.send_form(person.get(NOTE), f"{NOTE}/move", kind="project", id="", version=version).status == 422
    assert person.send_form(person.get(NOTE), f"{NOTE}/move", kind="project", id="other", version="outdated").status == 409
    assert current(operator)["version"] == version
    assert operator.get("/v1/notes/project/deploys?project=shop").json["text"] == "Another note."


def test_the_filter_by_source_keeps_what_comes_from_there(any_gateway, operator, person):
    any_gateway.agent("reader")("PUT", "/v1/notes/agent/other", {"text": "We deploy from the harbour."})
    everyone = person.get("/ui/search?q=deploy").text
    of_agent = person.get("/ui/search?q=deploy&source=reader").text
    assert NOTE in everyone and "/ui/notes/agent/reader/other" in everyone
    assert f'href="{NOTE}"' not in of_agent and "/ui/notes/agent/reader/other" in of_agent


def test_forget_can_be_undone(person, operator):
    sent = person.send_form(person.get(NOTE), f"{NOTE}/forget")
    page = person.get(sent.headers["location"])
    assert page.status == 200 and "Undo" in page.text
    assert operator.get("/v1/notes/project/deploys?project=demo").status == 404
    sent = person.send_form(page, f"{NOTE}/restore")
    assert "The note is back" in person.get(sent.headers["location"]).text
    assert "Mondays" in current(operator)["text"]


def test_forget_of_another_version_is_refused(person, operator):
    page = person.get(NOTE)
    operator("PUT", "/v1/notes/project/deploys", {"text": "Changed meanwhile.", "project": "demo"})
    assert person.send_form(page, f"{NOTE}/forget").status == 412
    assert current(operator)["text"] == "Changed meanwhile."


def test_purge_needs_the_key_and_shows_the_receipt(person, operator):
    page = person.get(f"{NOTE}/purge")
    assert "It cannot be undone" in page.text
    assert person.send_form(page, f"{NOTE}/purge", confirm="other").status == 422
    assert current(operator)
    receipt = person.send_form(page, f"{NOTE}/purge", confirm="deploys")
    (kept,) = operator.get("/v1/receipts").json["receipts"]
    assert receipt.status == 200 and kept["id"] in receipt.text and "Verified" in receipt.text
    assert "Mondays" not in receipt.text and person.get(NOTE).status == 404


# --- roles and the one path -------------------------------------------------------------------------------------------


def test_what_a_role_may_not_do_is_not_offered_and_is_refused(any_gateway, person):
    any_gateway.add_role("reader", ["agent.memory.read"], ("agent", "project", "global"))
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.agent("reader", "reader").token)
    html = browser.get(NOTE).text
    assert "Mondays" in html
    assert not [word for word in ("Edit", "Forget", "Purge", ">Pin<", "Health") if word in html]
    token = re.search(r'name="form_token" value="([^"]+)"', html)[1]
    for action in ("edit", "pin", "forget", "restore", "purge"):
        fields = {"form_token": token, "text": "Mine.", "type": "user", "version": "", "confirm": "deploys"}
        assert browser.post(f"{NOTE}/{action}", fields).status == 403, action
    assert browser.get("/ui/problems").status == 200 and "does not have the permission" in browser.get("/ui/problems").text
    assert "all my scopes" in browser.get("/ui/search").text
    assert browser.get("/ui/notes/agent/operator/k").status == 403


def test_a_role_that_may_not_export_cannot_overwrite_a_secret_with_its_mark(gateway):
    secret = "AKIA" + "QYLPMN5HHHFPZAM2"
    gateway.operator("PUT", "/v1/notes/global/k", {"text": f"The key is {secret}.", "allow_secret": "a test"})
    gateway.add_role("writer", ["agent.memory.read", "agent.memory.write"], ("global",))
    browser = WebClient(gateway.port)
    browser.sign_in(gateway.agent("writer", "writer").token)
    page = browser.get("/ui/notes/global/-/k")
    assert secret not in page.text and "REDACTED" in page.text
    assert browser.get("/ui/notes/global/-/k/edit").status == 422
    assert browser.send_form(page, "/ui/notes/global/-/k/pin").status == 422
    assert secret in gateway.operator.get("/v1/notes/global/k").json["text"]


def test_every_page_that_shows_memory_leaves_the_rows_of_the_api_in_the_audit(any_gateway, person):
    before = len(any_gateway.operator.get("/audit?limit=500").json["audit"])
    for path in ("/", "/ui/search?q=deploys", NOTE, f"{NOTE}/edit", "/ui/problems"):
        person.get(path)
        rows = any_gateway.operator.get("/audit?limit=500").json["audit"]
        assert [row for row in rows[: len(rows) - before] if "/v1/" in row["metadata"].get("route", "")], path
        before = len(rows)


def test_pages_do_not_collide_with_the_api(any_gateway):
    paths = {page.path for page in PAGES}
    document = any_gateway.anonymous.get("/openapi.json").json["paths"]
    assert not paths & set(document) and not [path for path in document if path.startswith("/ui/")]


def test_a_page_counts_for_the_rate_limit_of_its_token(home):
    from http_gateway import run_gateway

    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 1\n")
    with run_gateway(home) as gateway:
        browser = WebClient(gateway.port)
        browser.sign_in(gateway.operator.token)
        answer = browser.get("/")  # asks the API several times
        assert answer.status == 429 and answer.headers["retry-after"] == "1"
        assert answer.headers["content-type"].startswith("text/html")


# --- texts ------------------------------------------------------------------------------------------------------------


def test_markdown_runs_and_loads_nothing():
    html = render(
        "<script>x</script> ![alt](https://evil.example/a.png) [a](javascript:x) [b](https://ok.example) "
        "[c](data:text/html,x) <https://auto.example> [d](/local) \u202e"
    )
    assert "<script" not in html and "<img" not in html and "javascript:x" in html
    assert re.findall(r'href="([^"]*)"', html) == ["https://ok.example", "https://auto.example"]
    assert 'rel="noreferrer noopener nofollow"' in html and "https://evil.example/a.png" in html and "⟦U+202E⟧" in html


def test_headings_of_a_note_stand_below_those_of_the_page():
    assert render("# One") == "<h3>One</h3>\n" or "<h3>One</h3>" in render("# One")


def test_an_excerpt_starts_near_the_first_match():
    pieces = excerpt("word " * 100 + "harbour " + "tail " * 100, "harbours")
    assert [piece.text for piece in pieces if piece.is_match] == ["harbour"]
    assert pieces[0].text == "…" and pieces[-1].text == "…" and sum(len(piece.text) for piece in pieces) < 400


def test_words_are_highlighted_without_their_endings():
    marked = [piece.text for piece in highlight("Deploys, deployed (redeploy).", "deploying now") if piece.is_match]
    assert marked == ["Deploys", "deployed"]
    assert highlight("a.*b", ".*") == [("a.*b", False)] == highlight("a.*b", "")


def test_lines_far_from_a_change_are_left_out():
    old = "\n".join(map(str, range(50)))
    lines = compare_lines(old, old.replace("25", "twenty-five"))
    assert [line.kind for line in lines] == ["skipped", "same", "same", "same", "removed", "added", "same", "same", "same"]
    assert compare_lines(old, old) == []
    assert compare_lines("a\n" * 5000, "b\n" * 5000)[0].kind == "skipped"
