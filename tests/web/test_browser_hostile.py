"""Hostile texts in notes: on no page does one of them run, load something, or reach another host."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from console_pages import fill_pages, list_addresses
from hostile_texts import HOSTILE

_STORED = (200, 201)
_NEXT = re.compile(
    r"^(Next page|Later (turns|lines)|Older( sessions| versions| receipts)?|More (facts|subjects|notes|agents))$"
)


@pytest.fixture
def few(gateway):
    """A note and a session for pages that need one."""
    gateway.operator("PUT", "/v1/notes/global/hostile-1", {"text": "harbour"})
    kept = {"turns": [{"role": "user", "text": "harbour"}], "session": "hostile", "client": "codex", "project": "demo"}
    assert gateway.operator("POST", "/v1/history", kept).status == 200


@pytest.fixture
def hidden(gateway, clock):
    """Notes with these texts that retention archived, and others that wait for review."""
    clock.set("2020-01-01T00:00:00Z")
    for number, text in enumerate(HOSTILE):
        note = {"text": f"harbour {text}", "type": "project", "project": "shop"}
        assert gateway.operator("PUT", f"/v1/notes/project/old-{number}", note).status in _STORED
    clock.set("2020-12-01T00:00:00Z")
    assert gateway.operator.post("/v1/retain").status == 200
    for number, text in enumerate(HOSTILE):
        note = {"text": f"harbour {text}", "origin": "web", "project": "demo"}
        assert gateway.operator("PUT", f"/v1/notes/project/waits-{number}", note).status in _STORED


@pytest.fixture
def hostile(gateway):
    """The addresses of notes with these texts; the word `harbour` finds each of them. The same texts are names, tags, sources,
    facts, turns, speakers, session ids and files where the API accepts them."""
    paths, ask = [], gateway.operator
    for number, text in enumerate(HOSTILE):
        line = text[:60].replace("\n", " ").replace(",", " ")
        tags = [line] if number % 3 == 0 and text.isprintable() else []
        claims = {"made_from": [line]} if number % 5 == 0 and line.isprintable() else {}
        answer = ask("PUT", f"/v1/notes/global/hostile-{number}", {"text": f"harbour {text}", "tags": tags, **claims})
        if answer.status == 422 and claims:
            answer = ask("PUT", f"/v1/notes/global/hostile-{number}", {"text": f"harbour {text}", "tags": tags})
        assert answer.status in _STORED, (text[:80], answer)
        paths.append(f"/ui/notes/global/-/hostile-{number}")
    turns = [{"role": "user", "text": f"harbour {text}", "speaker": "Ada"} for text in HOSTILE]
    kept = {"turns": turns, "session": "hostile", "client": "codex", "scope": "project", "project": "demo"}
    assert ask("POST", "/v1/history", kept).status == 200
    named = [
        {"turns": [{"role": "user", "text": "harbour", "speaker": text[:100]}], "session": text[:60], "project": "demo"}
        for text in HOSTILE[::10]
    ]
    facts = [{"subject": "Harbour", "label": f"l{n}", "value": text[:500], "many": True} for n, text in enumerate(HOSTILE[::4])]
    facts += [{"subject": "Harbour", "label": "near", "value": f"[[{text[:60]}]]", "many": True} for text in HOSTILE[::7]]
    facts += [{"subject": text[:100], "label": "is", "value": "hostile"} for text in HOSTILE[::10]]
    kept = [ask("POST", "/v1/history", one).status in _STORED for one in named]
    kept += [ask("POST", "/v1/facts", {**one, "scope": "global"}).status in _STORED for one in facts]
    assert sum(kept) >= 20  # the API refuses names with line breaks or control characters
    whole = {"path": "/memories/hostile.md", "file_text": "harbour\n\n" + "\n\n".join(HOSTILE), "scope": "global"}
    assert ask("POST", "/v1/files/create", whole).status in _STORED
    return paths


def test_there_are_two_hundred_hostile_texts():
    assert len(HOSTILE) == len(set(HOSTILE)) >= 200


def test_hostile_texts_do_nothing_on_any_page(open_console, hidden, hostile, gateway):
    """Every page of the console with all its further pages, and the page of every note."""
    console = open_console()
    about = fill_pages(gateway, "demo")
    texts = [f"harbour {text}" for text in HOSTILE[:2]]
    for text in texts:  # a note of the project with a version, another that waits for review
        gateway.operator("PUT", "/v1/notes/project/hostile", {"text": text, "project": "demo"})
        gateway.operator("PUT", "/v1/notes/project/waiting", {"text": text, "origin": "web", "project": "demo"})
    everywhere = list_addresses(**about, key="hostile", word="harbour", path="global/files/hostile.md", subject="Harbour")
    seen = set()
    for path in [*everywhere, "/ui/sessions/project/demo/codex/hostile"]:
        assert console.open(path) == 200, path
        seen |= check_pages_from(console)
    assert {"/ui/review", "/ui/archive", "/ui/sessions/project/demo/codex/hostile"} <= seen  # they have more pages than one
    compared = [f"/ui/review/project/demo/waits-{number}/compare" for number in range(0, len(HOSTILE), 10)]
    for path in [*hostile, *compared, *[f"{path}/edit" for path in hostile[::10]]]:
        assert console.open(path) == 200, path
        console.check_nothing_happened()
    console.open("/ui/search?q=harbour&limit=100")
    assert console.page.locator(".hit").count() >= 50


def check_pages_from(console):
    """Check this page and those that its link to the next page leads to; return the paths of those with such a link."""
    paths = set()
    for _ in range(20):
        console.page.wait_for_load_state("networkidle")  # parts of pages are loaded afterwards
        console.check_nothing_happened()
        link = console.page.get_by_role("link", name=_NEXT)
        if not link.count():
            break
        paths.add(re.sub(r"^https?://[^/]+|[?#].*", "", console.page.url))
        assert console.open(link.first.get_attribute("href")) == 200
    return paths


@pytest.mark.parametrize("field", [
    "/ui/sessions?q=", "/ui/sessions/project/demo/codex/hostile?q=", "/ui/briefing?prompt=", "/ui/briefing?project=",
    "/ui/facts?q=", "/ui/graph?entity=", "/ui/graph/path?to=x&from=", "/ui/facts/subject?name=", "/ui/audit?agent=",
    "/ui/search?q=x&tag=", "/ui/search?q=x&as_of=", "/ui/notes/global/-/hostile-1?as_of=", "/ui/file?path=",
    "/sign-in?next=", "/ui/trash?restored=",
])  # fmt: skip
def test_a_hostile_address_does_nothing(open_console, few, field):
    console = open_console()
    for text in HOSTILE[::12]:
        status = console.open(field + quote(text[:300], safe=""))
        assert status < 500, (field, text[:300])
        console.check_nothing_happened()


def test_a_hostile_query_does_nothing(open_console, hostile):
    console = open_console()
    console.open("/ui/search")
    for text in HOSTILE[:20]:
        with console.page.expect_response(lambda response: "/ui/search" in response.url):
            console.page.fill("#q", text)
        console.check_nothing_happened()
        assert console.page.input_value("#q") == text


def test_what_was_typed_into_the_editor_is_stored_as_it_is(open_console, hostile, gateway):
    console = open_console()
    for number in (6, 22, 57):
        console.open(f"{hostile[number]}/edit")
        console.page.locator("#tags").fill("kept")
        console.page.get_by_role("button", name="Save").click()
        assert "done=saved" in console.page.url
        assert gateway.operator.get(f"/v1/notes/global/hostile-{number}").json["text"] == f"harbour {HOSTILE[number]}"


def test_a_long_line_does_not_make_the_page_wider(open_console, hostile):
    console = open_console(viewport={"width": 390, "height": 800})
    for path in (hostile[53], "/ui/search?q=harbour&limit=100", "/"):
        console.open(path)
        assert console.page.evaluate("document.documentElement.scrollWidth") <= 390, path


@pytest.mark.parametrize("path", ["/", "/ui/search?q=harbour"])
def test_pages_with_hostile_texts_can_be_read_without_scripts(open_console, hostile, chromium, path):
    console = open_console()
    state = console.context.storage_state()
    plain = chromium.new_context(java_script_enabled=False, storage_state=state)
    page = plain.new_page()
    assert page.goto(console.url + path).status == 200
    assert page.locator("a[href^='/ui/notes/']").count() > 3
    plain.close()
