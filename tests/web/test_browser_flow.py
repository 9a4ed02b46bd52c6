"""People at the console: search by keyboard, correct a note, undo, purge; and the pages are accessible."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from browser import Console, load_axe
from console_pages import fill_pages, list_addresses

NOTE = "/ui/notes/project/demo/deploys"


@pytest.fixture
def notes(gateway):
    """A few notes in two projects; one has two versions."""
    texts = {
        "deploys": "We deploy on **Tuesdays**, never on Fridays.\n\nAsk [the list](https://example.com/list) first.",
        "testing": "Use pytest, never unittest.",
        "release": "# Release\n\n1. Tag\n2. Build\n\n| step | owner |\n|---|---|\n| tag | Ada |",
    }
    for project in ("demo", "shop"):
        for key, text in texts.items():
            body = {"text": text, "type": "feedback", "tags": ["ops"], "project": project}
            gateway.operator("PUT", f"/v1/notes/project/{key}", body)
    gateway.operator("PUT", "/v1/notes/project/deploys", {"text": "We deploy on Mondays.", "project": "demo"})
    gateway.agent("reader")("PUT", "/v1/notes/agent/limits", {"text": "The limit is 500.", "origin": "web"})


def read(gateway):
    return gateway.operator.get("/v1/notes/project/deploys?project=demo").json


def test_search_works_by_keyboard_alone(open_console, notes):
    console = open_console()
    page = console.page
    page.keyboard.press("Tab")  # the link that skips the head
    console.open("/ui/search")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("deploy mondays", delay=10)
    page.wait_for_selector("a[data-hit]")
    page.wait_for_url(re.compile("mondays"))
    page.keyboard.press("ArrowDown")
    first = page.evaluate("document.activeElement.getAttribute('href')")
    assert first == NOTE
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('href')") != first
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{NOTE}")
    page.go_back()
    page.wait_for_selector("a[data-hit]")
    assert page.input_value("#q") == "deploy mondays"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "q"
    console.check_nothing_happened()


def test_filters_change_the_results_at_once(open_console, notes):
    console = open_console()
    console.open("/ui/search?q=deploy")
    page = console.page
    page.get_by_text("Filters").click()
    page.select_option("#scope", "project")
    page.fill("#of", "shop")
    page.keyboard.press("Tab")
    page.wait_for_url(re.compile("of=shop"))
    page.locator("a[data-hit][href*='/demo/']").first.wait_for(state="detached")
    assert page.locator("a[data-hit][href*='/shop/']").count() >= 1
    console.check_nothing_happened()


def test_a_person_finds_a_wrong_note_corrects_it_and_undoes_that(open_console, notes, gateway):
    console = open_console()
    page = console.page
    page.get_by_role("searchbox").fill("deploy")
    page.keyboard.press("Enter")
    page.locator(f"a[data-hit][href='{NOTE}']").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Text").fill("We deploy on Wednesdays.")
    page.get_by_label("Tags").fill("ops, ci-cd")
    page.get_by_label("Pinned").check()
    page.get_by_role("button", name="Save").click()
    assert page.get_by_role("status").inner_text().startswith("Saved")
    assert (read(gateway)["text"], read(gateway)["tags"], read(gateway)["pinned"]) == (
        "We deploy on Wednesdays.", ["ops", "ci-cd"], True,
    )  # fmt: skip
    assert page.locator(".diff .removed").first.inner_text().endswith("We deploy on Mondays.")
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Undo").click()
    assert "The note is back" in page.get_by_role("status").inner_text()
    assert read(gateway)["text"] == "We deploy on Wednesdays."
    console.check_nothing_happened()


def test_a_person_undoes_an_edit_and_brings_an_older_text_back(open_console, notes, gateway):
    console = open_console()
    page = console.page
    console.open(f"{NOTE}/edit")
    page.get_by_label("Text").fill("We never deploy.")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Undo").click()
    assert page.get_by_role("status").inner_text().startswith("The older text is the current one again.")
    assert read(gateway)["text"] == "We deploy on Mondays."
    page.get_by_role("button", name="Bring this text back").last.click()
    assert read(gateway)["text"].startswith("We deploy on **Tuesdays**")
    assert read(gateway)["versions"] == 5
    console.check_nothing_happened()


def test_a_person_finds_out_why_an_agent_was_told_something(open_console, notes, gateway):
    told = gateway.operator.post("/v1/brief", {"session": "s7", "project": "demo", "prompt": "On which day do we deploy?"})
    assert "Mondays" in told.data.decode()
    turns = [{"role": "user", "text": "On which day do we deploy?"}, {"role": "assistant", "text": "On Mondays."}]
    kept = {"turns": turns, "session": "s7", "client": "codex", "scope": "project", "project": "demo"}
    assert gateway.operator.post("/v1/history", kept).status == 200
    console = open_console()
    page = console.page
    page.get_by_role("link", name="Sessions").click()
    page.get_by_role("link", name="s7").click()
    page.get_by_role("link", name="What agents are told for it").click()
    page.get_by_role("heading", name="What agents are told").wait_for()
    assert "Mondays" in page.locator("#briefing").inner_text()
    page.get_by_role("region", name="Notes and reasons").get_by_role("link", name="deploys").click()
    page.get_by_role("heading", name="Where it was shown").wait_for()
    page.get_by_role("link", name="s7").click()
    page.get_by_role("link", name="s7").click()
    page.get_by_role("heading", name="s7").wait_for()
    console.check_nothing_happened()


def test_the_briefing_suggests_projects_once_their_field_has_the_focus(open_console, notes):
    console = open_console()
    console.open("/ui/briefing")
    assert console.page.locator("#projects option").count() == 0
    console.page.locator("#project").focus()
    console.page.locator("#projects option[value=shop]").wait_for(state="attached")
    console.check_nothing_happened()


def test_a_person_sees_a_conflict_and_decides(open_console, notes, gateway):
    console = open_console()
    page = console.page
    console.open(f"{NOTE}/edit")
    gateway.operator("PUT", "/v1/notes/project/deploys", {"text": "We deploy on Sundays.", "project": "demo"})
    page.get_by_label("Text").fill("We deploy at night.")
    page.get_by_role("button", name="Save").click()
    assert "changed while you edited it" in page.get_by_role("alert").inner_text()
    assert "Sundays" in page.locator(".diff .removed").inner_text()
    page.get_by_role("button", name="Save").click()
    assert read(gateway)["text"] == "We deploy at night."


def test_a_purge_asks_for_the_key_and_shows_its_receipt(open_console, notes, gateway):
    console = open_console()
    page = console.page
    console.open(NOTE)
    page.get_by_role("link", name="Purge").click()
    page.get_by_label("Type deploys to confirm").fill("deploys")
    page.get_by_role("button", name="Purge permanently").click()
    page.get_by_role("heading", name="Purged").wait_for()
    assert gateway.operator.get("/v1/receipts").json["receipts"][0]["id"] in page.content()
    assert console.open(NOTE) == 404


def test_the_health_of_the_home_loads_into_the_overview(open_console, notes):
    console = open_console()
    console.page.get_by_text("No problems found.").wait_for()
    console.check_nothing_happened()


def test_everything_can_be_read_without_scripts(chromium, gateway, notes):
    console = Console(chromium, gateway, java_script_enabled=False)
    from holdfast.access import sessions

    page = console.page
    page.goto(f"{console.url}/sign-in?code={sessions.make_code(gateway.gate)}")
    page.get_by_role("button", name="Open the console").click()
    page.get_by_role("searchbox").fill("deploy mondays")
    page.get_by_role("button", name="Search").click()
    page.locator(f"a[href='{NOTE}']").first.click()
    assert page.get_by_role("heading", name="deploys").is_visible()
    console.open("/ui/problems")
    assert page.get_by_text("No problems found.").is_visible()
    console.context.close()


def test_signing_out_leaves_no_page_behind(open_console, notes):
    console = open_console()
    console.page.get_by_role("button", name="Sign out").click()
    console.page.wait_for_url("**/sign-in")
    console.open(NOTE)
    assert "/sign-in?next=" in console.page.url
    assert console.context.cookies() == []


def test_a_session_that_ended_sends_a_live_search_to_the_sign_in(open_console, notes):
    console = open_console()
    console.open("/ui/search")
    console.context.clear_cookies()
    console.page.fill("#q", "deploy")
    console.page.wait_for_url("**/sign-in")


def test_ui_prints_a_link_that_a_browser_can_use(chromium, home, tmp_path):
    command = [sys.executable, "-m", "holdfast", "--home", str(home), "ui", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        link = process.stdout.readline().strip()
        page = chromium.new_page()
        page.goto(link)
        page.get_by_role("heading", name="Nothing is remembered yet").wait_for()
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)  # uses the running one
        assert second.returncode == 0 and re.match(r"http://127\.0\.0\.1:\d+", link)[0] in second.stdout
        page.close()
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0 and not (home / "run" / "server.json").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_accessibility_violation(open_console, notes, gateway, scheme):
    axe = load_axe()
    console = open_console(color_scheme=scheme)
    ask = gateway.operator
    ask("POST", "/v1/facts", {"subject": "Shop", "label": "uses", "value": "[[Redis]]", "project": "demo"})
    ask("POST", "/v1/files/create", {"path": "/memories/a.md", "file_text": "deploy", "scope": "global"})
    about = {"key": "deploys", "word": "deploy", "subject": "Shop", "path": "global/files/a.md"}
    pages = (*list_addresses(**about, **fill_pages(gateway, "demo")), "/ui/search?q=deploy&type=feedback", f"{NOTE}x")
    found = {}
    for path in pages:
        console.open(path)
        console.page.wait_for_load_state("networkidle")
        found[path] = console.find_violations(axe)
    console.page.get_by_role("button", name="Sign out").click()
    found["/sign-in"] = console.find_violations(axe)
    assert {path: rules for path, rules in found.items() if rules} == {}


def test_no_page_is_wider_than_a_phone(open_console, notes, gateway):
    console = open_console(viewport={"width": 390, "height": 844})
    ask = gateway.operator
    ask("POST", "/v1/facts", {"subject": "Shop", "label": "uses", "value": "[[Redis]]", "project": "demo"})
    ask("POST", "/v1/files/create", {"path": "/memories/a.md", "file_text": "deploy", "scope": "global"})
    about = {"key": "deploys", "word": "deploy", "subject": "Shop", "path": "global/files/a.md"}
    gateway.operator("PUT", f"/v1/notes/project/{'long-key-' * 6}k", {"text": "Words.", "type": "feedback", "project": "demo"})
    wide = []
    for path in list_addresses(**about, **fill_pages(gateway, "demo")):
        assert console.open(path) == 200, path
        if console.page.evaluate("document.documentElement.scrollWidth") > 390:
            wide.append(path)
    assert wide == []
