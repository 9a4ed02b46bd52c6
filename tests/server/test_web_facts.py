"""Pages of the console about facts: subjects, a subject's timeline, the graph and paths. The main ones on both stores."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote

import pytest
from web_client import WebClient

BILLING = "/ui/facts/subject?name=Billing"
WATCHER = """name: watcher
skills: []
allowed_actions: [agent.memory.read]
scopes: [global]
"""
FACTS = [
    ("demo", "Billing", "owner", "[[Ada]]", "2026-01-10"),
    ("demo", "Billing", "owner", "[[Grace]]", "2026-03-01"),
    ("demo", "Billing", "database", "[[Postgres]]", "2026-01-10"),
    ("shop", "Postgres", "host", "[[Turin]]", "2026-02-01"),
    ("shop", "Checkout", "status", "live", "2026-02-02"),
]


@pytest.fixture
def person(any_gateway, clock):
    """The operator at the console of a home with facts in two projects."""
    for project, subject, label, value, on in FACTS:
        body = {"subject": subject, "label": label, "value": value, "on": on, "scope": "project", "project": project}
        answer = any_gateway.operator("POST", "/v1/facts", body)
        assert answer.status in (200, 201), answer
    return sign_in(any_gateway, any_gateway.operator.token)


def sign_in(gateway, token):
    browser = WebClient(gateway.port)
    assert browser.sign_in(token).status == 303
    return browser


def subjects(html):
    return [unescape(name) for name in re.findall(r"data-hit>(.*?)</a>", html)]


def read_facts(any_gateway, subject):
    return any_gateway.operator.get(f"/v1/facts?subject={quote(subject)}&scope=all&history=true").json["facts"]


# --- the API ----------------------------------------------------------------------------------------------------------


def test_the_api_lists_subjects_a_page_at_a_time(any_gateway, person):
    first = any_gateway.operator.get("/v1/facts/subjects?scope=all&limit=2").json
    rest = any_gateway.operator.get(f"/v1/facts/subjects?scope=all&limit=2&cursor={first['next']}").json
    assert [one["subject"] for one in (*first["subjects"], *rest["subjects"])] == ["Billing", "Checkout", "Postgres"]
    assert rest["next"] is None
    assert first["subjects"][0] == {
        "subject": "Billing", "facts": 3, "current": 2, "latest": "2026-03-01", "scopes": 1,
        "scope": {"kind": "project", "id": "demo"},
    }  # fmt: skip
    found = any_gateway.operator.get("/v1/facts/subjects?scope=all&contains=POST").json["subjects"]
    assert [one["subject"] for one in found] == ["Postgres"]
    found = any_gateway.operator.get("/v1/facts/subjects?scope=project&project=demo").json["subjects"]
    assert [one["subject"] for one in found] == ["Billing"]
    assert any_gateway.operator.get("/v1/facts/subjects?cursor=!").status == 422


def test_only_a_person_may_ask_for_facts_of_all_scopes(any_gateway, person):
    agent = any_gateway.agent("reader", "code-review-engineer")
    for path in ("facts?", "facts/subjects?", "graph?entity=Billing&", "graph/path?from=Billing&to=Turin&"):
        assert agent.get(f"/v1/{path}scope=all").status == 403, path
        assert any_gateway.operator.get(f"/v1/{path}scope=all").status == 200, path
    assert agent.get("/v1/facts/subjects").json["subjects"] == []


def test_a_path_of_all_scopes_crosses_projects(any_gateway, person):
    path = any_gateway.operator.get("/v1/graph/path?from=Billing&to=Turin&scope=all").json["path"]
    assert [edge["label"] for edge in path] == ["database", "host"]


def test_a_manager_of_agents_states_a_fact_for_another_agent(any_gateway, person):
    any_gateway.agent("reader", "code-review-engineer")
    body = {"subject": "Limits", "label": "rate", "value": "500", "scope": "agent", "agent": "reader"}
    assert any_gateway.operator("POST", "/v1/facts", body).status == 201
    found = any_gateway.operator.get("/v1/facts?scope=agent&agent=reader").json["facts"]
    assert [(fact["value"], fact["scope"]["id"]) for fact in found] == [("500", "reader")]
    assert any_gateway.agent("other", "code-review-engineer").get("/v1/facts?scope=agent&agent=reader").status == 403


# --- subjects ---------------------------------------------------------------------------------------------------------


def test_subjects_of_all_projects_can_be_found_by_name(person):
    page = person.get("/ui/facts")
    assert subjects(page.text) == ["Billing", "Checkout", "Postgres"]
    assert subjects(person.get("/ui/facts?q=check").text) == ["Checkout"]
    assert subjects(person.get("/ui/facts?scope=project&of=demo").text) == ["Billing"]
    part = person.get("/ui/facts?q=BILL", HX_Request="true").text
    assert "<html" not in part and subjects(part) == ["Billing"]


def test_a_long_list_of_subjects_has_pages(any_gateway, person):
    rows = [f"- [2026-01-01] size: {number}" for number in range(2)]
    for number in range(55):
        text = "\n".join([f"# Thing {number:02}", *rows])
        any_gateway.operator("PUT", f"/v1/notes/global/thing-{number:02}", {"text": text})
    first = person.get("/ui/facts")
    following = unescape(re.search(r'href="(/ui/facts\?cursor=[^"]+)">More subjects', first.text)[1])
    found = subjects(first.text) + subjects(person.get(following).text)
    assert len(found) == len(set(found)) == 58 and len(subjects(first.text)) == 50


def test_no_subject_teaches_how_to_state_a_fact(any_gateway, clock):
    browser = sign_in(any_gateway, any_gateway.operator.token)
    assert "No facts yet" in browser.get("/ui/facts").text and "holdfast fact" in browser.get("/ui/facts").text
    assert "name=Nobody" in browser.get("/ui/facts?q=Nobody").text


def test_a_mistake_in_the_place_is_told_and_the_form_stays(person):
    answer = person.get("/ui/facts?scope=project&of=../x")
    assert answer.status == 422 and 'role="alert"' in answer.text and 'value="../x"' in answer.text


# --- a subject --------------------------------------------------------------------------------------------------------


def test_a_subject_shows_its_current_values_and_its_timeline(person):
    html = person.get(BILLING).text
    current = re.search(r'id="current".*?</dl>', html, re.DOTALL)[0]
    assert ">Grace</a>" in current and ">Postgres</a>" in current and "Ada" not in current
    assert '<s><a href="/ui/facts/subject?name=Ada">Ada</a></s>' in html
    assert "Closed by" in html and "[2026-03-01] owner: <a" in html
    assert 'href="/ui/notes/project/demo/billing"' in html


def test_the_timeline_has_both_clocks(any_gateway, clock):
    body = {"subject": "Billing", "label": "owner", "scope": "project", "project": "demo"}
    clock.set("2026-02-05T09:00:00Z")
    any_gateway.operator("POST", "/v1/facts", {**body, "value": "Ada", "on": "2026-01-10"})
    clock.set("2026-04-06T10:00:00Z")
    any_gateway.operator("POST", "/v1/facts", {**body, "value": "Grace", "on": "2026-03-01"})
    html = sign_in(any_gateway, any_gateway.operator.token).get(BILLING).text
    ada = re.search(r'<li class="closed">.*?</li>', html, re.DOTALL)[0]
    assert re.search(r"True from</dt><dd>2026-01-10<.*Until</dt><dd>2026-03-01<", ada, re.DOTALL)
    assert re.search(r'Recorded</dt><dd><time datetime="2026-02-05T09:00:00Z"', ada)
    assert re.search(r'End recorded</dt><dd><time datetime="2026-04-06T10:00:00Z"', ada)


def test_a_person_states_a_new_value_and_the_previous_one_is_closed(any_gateway, person):
    page = person.get(BILLING)
    fields = {"label": "owner", "value": "[[Linus]]", "on": "2026-04-01", "kind": "project", "id": "demo"}
    sent = person.send_form(page, BILLING, **fields)
    assert sent.status == 303 and sent.headers["location"] == f"{BILLING}&done=saved"
    assert "The fact is stated" in person.get(sent.headers["location"]).text
    owners = {fact["value"]: fact["valid_to"] for fact in read_facts(any_gateway, "Billing") if fact["label"] == "owner"}
    assert owners == {"[[Ada]]": "2026-03-01", "[[Grace]]": "2026-04-01", "[[Linus]]": None}
    assert person.send_form(page, BILLING, **fields).headers["location"].endswith("done=unchanged")


def test_the_form_begins_with_the_scope_of_the_newest_fact(person):
    html = person.get("/ui/facts/subject?name=checkout").text
    assert "<h1>Checkout</h1>" in html
    assert "<option selected>project</option>" in html and re.search(r'id="id" name="id" value="shop"', html)


def test_a_fact_that_is_refused_comes_back_with_the_reason(any_gateway, person):
    page = person.get(BILLING)
    fields = {"label": "a: b", "value": "<b>x</b>", "kind": "project", "id": "demo"}
    refused = person.send_form(page, BILLING, **fields)
    assert refused.status == 422 and 'role="alert"' in refused.text
    assert 'value="a: b"' in refused.text and "&lt;b&gt;x&lt;/b&gt;" in refused.text
    assert person.send_form(page, BILLING, **{**fields, "label": "x", "kind": "nonsense"}).status == 422
    assert person.send_form(page, BILLING, **{**fields, "label": "x", "on": "2026-13-01"}).status == 422
    assert len(read_facts(any_gateway, "Billing")) == 3


def test_a_form_of_another_session_states_nothing(any_gateway, person):
    fields = {"label": "owner", "value": "Eve", "kind": "project", "id": "demo"}
    assert person.post(BILLING, {**fields, "form_token": "x"}).status == 403
    assert len(read_facts(any_gateway, "Billing")) == 3


def test_a_caller_that_may_not_write_is_not_offered_the_form(any_gateway, person):
    any_gateway.operator("POST", "/v1/facts", {"subject": "Shared", "label": "x", "value": "y", "scope": "global"})
    folder = any_gateway.home / "roles"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "watcher.yaml").write_text(WATCHER)
    agent = any_gateway.agent("watcher", "watcher")
    browser = sign_in(any_gateway, agent.token)
    assert subjects(browser.get("/ui/facts").text) == ["Shared"]
    page = browser.get("/ui/facts/subject?name=Shared").text
    assert "State a value" not in page and "<form" in page
    token = re.search(r'name="form_token" value="(.*?)"', page)[1]
    fields = {"label": "x", "value": "z", "kind": "global", "form_token": token}
    assert browser.post("/ui/facts/subject?name=Shared", fields).status == 403


def test_an_unknown_subject_can_get_its_first_fact(any_gateway, person):
    url = "/ui/facts/subject?name=New+thing"
    page = person.get(url)
    assert page.status == 200 and "Nothing is stated yet" in page.text
    assert person.send_form(page, url, label="state", value="new", kind="global", id="").status == 303
    assert [fact["value"] for fact in read_facts(any_gateway, "New thing")] == ["new"]
    assert person.get("/ui/facts/subject").status == 200


def test_a_fact_of_a_file_names_the_file(any_gateway, person):
    file = {"scope": "global", "path": "/memories/list.md", "file_text": "# Printer\n\n- [2026-01-01] state: broken\n"}
    assert any_gateway.operator("POST", "/v1/files/create", file).status in (200, 201)
    assert "<code>global/files/list.md</code>" in person.get("/ui/facts/subject?name=Printer").text


# --- graph and path ---------------------------------------------------------------------------------------------------


def names(html):
    return [unescape(name) for name in re.findall(r'data-name="(.*?)"', html)]


def test_the_graph_lists_entities_and_links_up_to_a_depth(person):
    html = person.get("/ui/graph?entity=billing").text
    assert names(html) == ["Billing", "Grace", "Postgres"]
    assert html.count("<tr data-source=") == 2
    assert names(person.get("/ui/graph?entity=billing&depth=2").text) == ["Billing", "Grace", "Postgres", "Turin"]
    assert names(person.get("/ui/graph?entity=billing&depth=2&scope=project&of=demo").text) == ["Billing", "Grace", "Postgres"]
    assert names(person.get("/ui/graph?entity=billing&depth=999").text) == names(html)


def test_the_graph_is_shown_as_of_a_day(person):
    html = person.get("/ui/graph?entity=Billing&as_of=2026-02-01", HX_Request="true").text
    assert "<html" not in html and names(html) == ["Billing", "Ada", "Postgres"]
    assert 'data-first-day="2026-01-10"' in html and 'data-today="2026-05-01"' in html
    assert "as_of=2026-02-01" in re.search(r'href="([^"]+)">Ada', html)[1]
    assert "Nothing is known" in person.get("/ui/graph?entity=Billing&as_of=2020-01-01").text
    wrong = person.get("/ui/graph?entity=Billing&as_of=yesterday-ish")
    assert wrong.status == 422 and 'role="alert"' in wrong.text


def test_a_graph_that_is_too_large_says_what_was_left_out(any_gateway, person):
    lines = [f"- [2026-01-01] member: [[Member {number:03}]]" for number in range(200)]
    any_gateway.operator("PUT", "/v1/notes/global/club", {"text": "\n".join(["# Club", *lines])})
    html = person.get("/ui/graph?entity=Club").text
    assert len(names(html)) == 150 and "51 entities and 51 links are left out" in html


def test_a_graph_without_an_entity_teaches_what_to_do(person):
    assert "Choose an entity" in person.get("/ui/graph").text
    assert "How are two entities linked?" in person.get("/ui/graph/path").text


@pytest.mark.parametrize(("start", "end"), [("Billing", "Turin"), ("Turin", "Billing")])
def test_a_path_is_shown_as_steps_with_links(person, start, end):
    html = person.get(f"/ui/graph/path?from={start}&to={end}").text
    walked = re.findall(r'<p><a class="title"[^>]*>(.*?)</a>.*?<a class="title"[^>]*>(.*?)</a>', html)
    steps = [("Billing", "Postgres"), ("Postgres", "Turin")]
    assert walked == (steps if start == "Billing" else [(there, here) for here, there in reversed(steps)])
    assert "2 steps" in html and 'href="/ui/notes/project/demo/billing"' in html


def test_a_path_of_one_step_backward_and_none_at_all(person):
    html = person.get("/ui/graph/path?from=Turin&to=Postgres").text
    assert re.search(r'>Turin</a> <span class="arrow">← host', html)
    assert "No path" in person.get("/ui/graph/path?from=Billing&to=Checkout").text
    assert "No path" in person.get("/ui/graph/path?from=Billing&to=Turin&as_of=2026-01-20").text


def test_stored_names_are_only_text(any_gateway, person):
    text = '# <script>x</script>\n\n- [2026-01-01] <i>l</i>: [["><img src=x>]] \u202e\n'
    assert any_gateway.operator("PUT", "/v1/notes/global/hostile", {"text": text}).status == 201
    name = quote("<script>x</script>")
    for path in ("/ui/facts?q=", "/ui/facts/subject?name=", "/ui/graph?entity=", "/ui/graph/path?to=x&from="):
        html = person.get(path + name).text
        assert "<script>x" not in html and "<img" not in html and "<i>l" not in html, path
        assert "\u202e" not in html
