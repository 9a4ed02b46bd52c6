"""Hostile texts in notes: on no page does one of them run, load something, or reach another host."""

from __future__ import annotations

import pytest
from console_pages import fill_pages, list_addresses
from hostile_texts import HOSTILE

_STORED = (200, 201)


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
    assert ask("POST", "/v1/history", {"turns": turns, "session": "s1", "scope": "project", "project": "demo"}).status == 200
    named = [
        {"turns": [{"role": "user", "text": "harbour", "speaker": text[:100]}], "session": text[:60], "project": "demo"}
        for text in HOSTILE[::10]
    ]
    facts = [{"subject": "Harbour", "label": f"l{n}", "value": text[:500], "many": True} for n, text in enumerate(HOSTILE[::4])]
    facts += [{"subject": text[:100], "label": "is", "value": "hostile"} for text in HOSTILE[::10]]
    kept = [ask("POST", "/v1/history", one).status in _STORED for one in named]
    kept += [ask("POST", "/v1/facts", {**one, "scope": "global"}).status in _STORED for one in facts]
    assert sum(kept) >= 20  # the API refuses names with line breaks or control characters
    whole = {"path": "/memories/hostile.md", "file_text": "harbour\n\n" + "\n\n".join(HOSTILE), "scope": "global"}
    assert ask("POST", "/v1/files/create", whole).status in _STORED
    return paths


def test_there_are_two_hundred_hostile_texts():
    assert len(HOSTILE) == len(set(HOSTILE)) >= 200


def test_hostile_texts_do_nothing_on_any_page(open_console, hostile, gateway):
    """Every page of the console, and the page of every note."""
    console = open_console()
    about = fill_pages(gateway, "demo")
    texts = [f"harbour {text}" for text in HOSTILE[:2]]
    for text in texts:  # a note of the project with a version, another that waits for review
        gateway.operator("PUT", "/v1/notes/project/hostile", {"text": text, "project": "demo"})
        gateway.operator("PUT", "/v1/notes/project/waiting", {"text": text, "origin": "web", "project": "demo"})
    everywhere = list_addresses(**about, key="hostile", word="harbour", path="global/files/hostile.md", subject="Harbour")
    for path in everywhere:
        assert console.open(path) == 200, path
        console.page.wait_for_load_state("networkidle")  # parts of pages are loaded afterwards
        console.check_nothing_happened()
    for path in [*hostile, *[f"{path}/edit" for path in hostile[::10]]]:
        assert console.open(path) == 200, path
        console.check_nothing_happened()
    console.open("/ui/search?q=harbour&limit=100")
    assert console.page.locator(".hit").count() >= 50


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
