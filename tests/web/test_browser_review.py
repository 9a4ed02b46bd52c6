"""A person at the review page: by keyboard alone, in bulk, with undo, and without scripts."""

from __future__ import annotations

import pytest
from browser import load_axe

REVIEW = "/ui/review"


@pytest.fixture
def waiting(gateway):
    """Four notes from the web; the newest is first in the list."""
    gateway.operator("PUT", "/v1/notes/project/limits", {"text": "The limit is 60 calls a minute.", "project": "demo"})
    agent = gateway.agent("reader")
    texts = {
        "zebra": "Zebras sleep standing.", "limits": "The limit is 500 calls a minute.\n\nAsk the **list** first.",
        "harbour": "The harbour closes at ten.", "invoices": "Invoices are sent on Mondays.",
    }  # fmt: skip
    for key, text in texts.items():
        agent("PUT", f"/v1/notes/agent/{key}", {"text": text, "made_from": [f"https://blog.example/{key}"], "tags": ["ops"]})
    return agent


def keys_waiting(gateway):
    return [note["key"] for note in gateway.operator.get("/v1/review?everywhere=true").json["notes"]]


def read(gateway, key):
    return gateway.operator.get(f"/v1/notes/agent/{key}?agent=reader")


def focused(page):
    """Return the key of the note that has the focus."""
    return page.evaluate("document.activeElement.closest('[data-note]')?.querySelector('h2')?.innerText")


def test_the_whole_review_works_by_keyboard(open_console, waiting, gateway):
    console = open_console()
    page, order = console.page, keys_waiting(gateway)
    console.open(REVIEW)
    assert page.get_by_text("approve or reject the selected").is_visible()
    page.keyboard.press("?")
    assert not page.get_by_text("approve or reject the selected").is_visible()
    page.keyboard.press("j")
    assert focused(page) == order[0]
    page.keyboard.press("ArrowDown")
    assert focused(page) == order[1]
    page.keyboard.press("k")
    assert focused(page) == order[0]
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.get_by_role("status").get_by_text("Approved:").wait_for()
    assert not read(gateway, order[1]).json["quarantined"]
    assert focused(page) == order[2]  # the next one took its place
    page.keyboard.press("u")
    page.get_by_text("Undone:").wait_for()
    assert keys_waiting(gateway).count(order[1]) == 1
    page.keyboard.press("j")
    first = focused(page)
    page.keyboard.press("r")
    page.get_by_text("Rejected:").wait_for()
    assert read(gateway, first).status == 404
    page.keyboard.press("u")
    page.get_by_text("Undone:").wait_for()
    assert read(gateway, first).json["quarantined"]
    page.keyboard.press("j")
    edited = focused(page)
    page.keyboard.press("e")
    page.get_by_role("heading", name="Edit and approve").wait_for()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("jkareux? A person wrote this.")  # letters stay letters in a field
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Saved and approved:").wait_for()
    assert read(gateway, edited).json["text"] == "jkareux? A person wrote this."
    console.check_nothing_happened()


def test_many_are_decided_at_once_by_keyboard(open_console, waiting, gateway):
    console = open_console()
    page, order = console.page, keys_waiting(gateway)
    console.open(REVIEW)
    for key in "jxjx":
        page.keyboard.press(key)
    assert page.locator("[data-selected]").inner_text() == "2 selected"
    page.keyboard.press("Shift+A")
    page.get_by_text("Approved:").wait_for()
    assert set(keys_waiting(gateway)) == set(order[2:])
    page.get_by_role("button", name="Select all").click()
    page.get_by_role("button", name="Reject selected").click()
    page.get_by_role("heading", name="Nothing waits for review").wait_for()
    page.keyboard.press("u")
    page.get_by_text("Undone:").wait_for()
    assert set(keys_waiting(gateway)) == set(order[2:])
    console.check_nothing_happened()


def test_a_note_is_shown_beside_what_it_would_change(open_console, waiting):
    console = open_console()
    console.open(REVIEW)
    card = console.page.locator("[data-note]", has_text="500 calls")
    card.scroll_into_view_if_needed()
    card.locator(".diff .removed").get_by_text("60 calls").wait_for()
    card.get_by_text("Where it came from").click()
    assert card.get_by_text("https://blog.example/limits").is_visible()
    zebra = console.page.locator("[data-note]", has_text="Zebras")
    zebra.scroll_into_view_if_needed()
    zebra.get_by_text("new", exact=True).wait_for()
    console.check_nothing_happened()


def test_a_failure_is_told_and_the_others_are_done(open_console, waiting, gateway):
    console = open_console()
    page = console.page
    console.open(REVIEW)
    waiting("PUT", "/v1/notes/agent/limits", {"text": "The limit is 900.", "made_from": ["https://blog.example/limits"]})
    page.get_by_role("button", name="Select all").click()
    page.get_by_role("button", name="Approve selected").click()
    assert "has changed since you read it" in page.get_by_role("alert").inner_text()
    assert keys_waiting(gateway) == ["limits"]


def test_the_review_works_without_scripts(open_console, chromium, waiting, gateway):
    console = open_console()
    plain = chromium.new_context(java_script_enabled=False, storage_state=console.context.storage_state())
    page = plain.new_page()
    page.goto(console.url + REVIEW)
    page.locator("[data-note]", has_text="500 calls").get_by_role("link", name="Show what it would change").click()
    assert "60 calls" in page.locator(".diff .removed").inner_text()
    page.get_by_role("link", name="Review").first.click()
    page.get_by_role("checkbox", name="Select limits").check()
    page.get_by_role("checkbox", name="Select zebra").check()
    page.get_by_role("button", name="Approve selected").click()
    assert set(keys_waiting(gateway)) == {"harbour", "invoices"}
    page.get_by_role("button", name="Undo").click()
    assert len(keys_waiting(gateway)) == 4
    plain.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_review_has_no_serious_accessibility_violation(open_console, waiting, scheme):
    axe, console = load_axe(), open_console(color_scheme=scheme)
    found = {}
    base = f"{REVIEW}/agent/reader/limits"
    done = f"{REVIEW}?approved=agent/reader/zebra@x&rejected=agent/reader/y@x"
    for path in (REVIEW, f"{base}/compare", f"{base}/edit", done):
        assert console.open(path) == 200
        console.page.wait_for_load_state("networkidle")
        found[path] = console.find_violations(axe)
    assert {path: rules for path, rules in found.items() if rules} == {}


def test_hostile_texts_do_nothing_in_the_review(open_console, gateway):
    from test_browser_hostile import HOSTILE

    agent = gateway.agent("mallory")
    for number, text in enumerate(HOSTILE[:20]):
        agent("PUT", f"/v1/notes/agent/hostile-{number}", {"text": f"harbour {text}", "made_from": ["https://blog.example/x"]})
    console = open_console(viewport={"width": 390, "height": 800})
    console.open(REVIEW)
    cards = console.page.locator("[data-note]")
    assert cards.count() >= 15
    for position in range(cards.count()):
        cards.nth(position).scroll_into_view_if_needed()
    console.page.wait_for_load_state("networkidle")
    console.check_nothing_happened()
    assert console.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_key_before_a_note_has_the_focus_decides_nothing(open_console, waiting, gateway):
    before = keys_waiting(gateway)
    console = open_console()
    console.open("/ui/review")
    console.page.keyboard.press("r")
    assert console.page.evaluate("document.activeElement.hasAttribute('data-note')")
    assert keys_waiting(gateway) == before
    console.check_nothing_happened()
