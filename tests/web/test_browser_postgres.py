"""The main flows of the console in a browser, with memory in PostgreSQL."""

from __future__ import annotations

import pytest
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
    page.get_by_role("button", name="Purge for good").click()
    page.get_by_role("heading", name="Purged").wait_for()
    console.check_nothing_happened()
