"""A person restores from trash and archive, empties the trash, reads receipts and changes settings."""

from __future__ import annotations

import pytest
from browser import load_axe


@pytest.fixture
def notes(gateway):
    """Three forgotten notes, one of them in another project, and one purged note."""
    for key, project in (("deploys", "demo"), ("testing", "demo"), ("release", "shop"), ("plan", "demo")):
        gateway.operator("PUT", f"/v1/notes/project/{key}", {"text": "Words of the harbour.", "project": project})
    for key, project in (("deploys", "demo"), ("testing", "demo"), ("release", "shop")):
        gateway.operator("DELETE", f"/v1/notes/project/{key}?project={project}")
    gateway.operator.post("/v1/notes/project/plan/purge", {"project": "demo"})


@pytest.fixture
def archived(gateway, clock):
    """A note that retention archived."""
    clock.set("2020-01-01T00:00:00Z")
    gateway.operator("PUT", "/v1/notes/project/stale", {"text": "Old words.", "project": "demo", "type": "project"})
    clock.set("2020-12-01T00:00:00Z")
    gateway.operator.post("/v1/retain")


def read(gateway, key, project="demo"):
    return gateway.operator.get(f"/v1/notes/project/{key}?project={project}")


def test_a_person_restores_a_note(open_console, notes, gateway):
    console = open_console()
    page = console.page
    page.get_by_role("link", name="Trash").click()
    page.get_by_role("button", name="Restore release").click()
    page.get_by_text("The note is back:").wait_for()
    assert read(gateway, "release", "shop").status == 200
    page.get_by_role("status").get_by_role("link", name="release").click()
    page.get_by_role("heading", name="release").wait_for()
    console.check_nothing_happened()


def test_a_person_empties_the_trash(open_console, notes, gateway):
    console = open_console()
    page = console.page
    console.open("/ui/trash")
    page.get_by_role("link", name="Empty the trash").click()
    page.get_by_label("Type empty to confirm").fill("emty")
    page.get_by_role("button", name="Delete permanently").click()
    assert "not the word" in page.get_by_role("alert").inner_text()
    page.get_by_label("Type empty to confirm").fill("empty")
    page.get_by_role("button", name="Delete permanently").click()
    page.get_by_text("Erased from the trash: 3.").wait_for()
    assert page.get_by_role("heading", name="The trash is empty").is_visible()
    console.check_nothing_happened()


def test_a_person_brings_an_archived_note_back(open_console, archived, gateway):
    console = open_console()
    page = console.page
    console.open("/ui/trash")
    page.get_by_role("link", name="Archive").click()
    assert page.get_by_text("Old words.").is_visible()
    page.get_by_role("button", name="Bring back stale").click()
    page.get_by_text("The note is back:").wait_for()
    assert not read(gateway, "stale").json["archived"]
    console.check_nothing_happened()


def test_a_person_reads_a_receipt(open_console, notes):
    console = open_console()
    page = console.page
    console.open("/ui/trash")
    page.get_by_role("link", name="Receipts").click()
    page.get_by_role("link", name="The note plan").click()
    page.get_by_role("heading", name="Verified").wait_for()
    assert "Words of the harbour" not in page.content()
    console.check_nothing_happened()


def test_a_person_changes_a_setting_and_takes_it_back(open_console, gateway):
    console = open_console()
    page = console.page
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("brief.total_chars", exact=True).fill("4000")
    page.keyboard.press("Enter")
    page.get_by_text("brief.total_chars is now 4000.").wait_for()
    assert "total_chars = 4000" in (gateway.home / "config.toml").read_text()
    page.get_by_role("button", name="Use default of brief.total_chars").click()
    page.get_by_text("brief.total_chars is now 6300.").wait_for()
    page.get_by_label("hooks.capture", exact=True).select_option("true")
    page.get_by_role("button", name="Save hooks.capture").click()
    page.get_by_text("hooks.capture is now true.").wait_for()
    assert page.get_by_label("store.url", exact=True).count() == 0
    console.check_nothing_happened()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_these_pages_have_no_serious_accessibility_violation(open_console, notes, gateway, scheme):
    axe, console = load_axe(), open_console(color_scheme=scheme)
    receipt = gateway.operator.get("/v1/receipts").json["receipts"][0]["id"]
    found = {}
    for path in ("/ui/trash", "/ui/trash/empty", "/ui/archive", "/ui/receipts", f"/ui/receipts/{receipt}", "/ui/settings"):
        assert console.open(path) == 200
        found[path] = console.find_violations(axe)
    assert {path: rules for path, rules in found.items() if rules} == {}


def test_these_pages_fit_a_phone(open_console, notes):
    console = open_console(viewport={"width": 390, "height": 800})
    for path in ("/ui/trash", "/ui/trash/empty", "/ui/archive", "/ui/receipts", "/ui/settings"):
        console.open(path)
        assert console.page.evaluate("document.documentElement.scrollWidth") <= 390, path
