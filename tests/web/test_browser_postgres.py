"""The main flows of the console in a browser, with memory in PostgreSQL."""

from __future__ import annotations

import pytest
from console_pages import fill_pages, list_addresses
from http_gateway import run_gateway

NOTE = "/ui/notes/project/demo/deploys"


@pytest.fixture
def gateway(home, monkeypatch, postgres_url):
    """A gateway on a new database, with two notes."""
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as one:
        for key, text in {"deploys": "We deploy on Mondays.", "testing": "Use pytest."}.items():
            assert one.operator("PUT", f"/v1/notes/project/{key}", {"text": text, "project": "demo"}).status == 201
        yield one


def test_a_person_finds_corrects_forgets_and_restores_a_note(open_console, gateway):
    console = open_console()
    page = console.page
    page.get_by_role("searchbox").fill("deploy")
    page.keyboard.press("Enter")
    page.locator(f"a[data-hit][href='{NOTE}']").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Text").fill("We deploy on Wednesdays.")
    page.get_by_role("button", name="Save").click()
    assert page.get_by_role("status").inner_text().startswith("Saved")
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Undo").click()
    assert gateway.operator.get("/v1/notes/project/deploys?project=demo").json["text"] == "We deploy on Wednesdays."
    console.check_nothing_happened()


def test_a_person_changes_tags_reads_the_trace_and_purges(open_console, gateway):
    console = open_console()
    page = console.page
    console.open(NOTE)
    page.get_by_role("heading", name="Where it was shown").wait_for()
    page.get_by_label("Tags").fill("ops, ci-cd")
    page.get_by_role("button", name="Change").click()
    assert gateway.operator.get("/v1/notes/project/deploys?project=demo").json["tags"] == ["ops", "ci-cd"]
    page.get_by_role("link", name="Purge").click()
    page.get_by_label("Type deploys to confirm").fill("deploys")
    page.get_by_role("button", name="Purge permanently").click()
    page.get_by_role("heading", name="Purged").wait_for()
    console.check_nothing_happened()


def test_a_person_reviews_by_keyboard_reads_a_session_and_sees_facts_and_briefing(open_console, gateway):
    ask = gateway.operator
    ask("PUT", "/v1/notes/project/limit", {"text": "The limit is 500.", "origin": "web", "project": "demo"})
    ask("POST", "/v1/facts", {"subject": "Billing", "label": "database", "value": "[[Postgres]]", "project": "demo"})
    turns = [{"role": "user", "text": "On which day do we deploy?"}, {"role": "assistant", "text": "On Mondays."}]
    kept = {"turns": turns, "session": "s7", "client": "codex", "scope": "project", "project": "demo"}
    assert ask.post("/v1/history", kept).status == 200
    console = open_console()
    page = console.page
    console.open("/ui/review")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.get_by_text("Approved:").wait_for()
    page.keyboard.press("u")
    page.get_by_text("Undone:").wait_for()
    page.get_by_role("link", name="Sessions").click()
    page.get_by_role("link", name="s7").click()
    page.get_by_role("link", name="What agents are told for it").click()
    assert "Mondays" in page.locator("#briefing").inner_text()
    console.open("/ui/graph?entity=Billing")
    page.locator(".drawing[data-nodes='2']").wait_for()
    console.open("/ui/graph/path?from=Billing&to=Postgres")
    page.get_by_role("heading", name="1 step").wait_for()
    console.open("/ui/search")
    page.fill("#q", "mondays")
    page.locator(f"a[data-hit][href='{NOTE}']").wait_for()
    console.check_nothing_happened()


def test_every_page_opens(open_console, gateway):
    console = open_console()
    about = {"key": "deploys", "word": "deploy", "subject": "Shop", "path": "global/files/a.md"}
    gateway.operator("POST", "/v1/files/create", {"path": "/memories/a.md", "file_text": "deploy", "scope": "global"})
    gateway.operator("POST", "/v1/facts", {"subject": "Shop", "label": "uses", "value": "[[Redis]]", "project": "demo"})
    for path in list_addresses(**about, **fill_pages(gateway, "demo")):
        assert console.open(path) == 200, path
        console.check_nothing_happened()
