"""People at the pages about facts: find a subject, state a value, walk the graph through time, and find a path."""

from __future__ import annotations

import re

import pytest
from browser import Console, load_axe

BILLING = "/ui/facts/subject?name=Billing"
GRAPH = "/ui/graph?entity=Billing&depth=2"
PATH = "/ui/graph/path?from=Billing&to=Turin"
HOSTILE = "<img src=x onerror=window.__ran=1>\"'><script>window.__ran=1</script>"


@pytest.fixture
def facts(gateway):
    """Facts of two projects that are linked with each other; some are closed."""
    rows = [
        ("demo", "Billing", "owner", "[[Ada]]", "2026-01-10"),
        ("demo", "Billing", "owner", "[[Grace]]", "2026-03-01"),
        ("demo", "Billing", "database", "[[Postgres]]", "2026-01-10"),
        ("demo", "Billing", "status", "in production", "2026-02-15"),
        ("demo", "Grace", "team", "[[Payments]]", "2026-01-01"),
        ("demo", "Checkout", "calls", "[[Billing]]", "2026-02-02"),
        ("shop", "Postgres", "host", "[[Turin]]", "2026-02-01"),
        ("shop", "Turin", "region", "[[Italy]]", "2026-02-01"),
    ]
    for project, subject, label, value, on in rows:
        body = {"subject": subject, "label": label, "value": value, "on": on, "scope": "project", "project": project}
        assert gateway.operator("POST", "/v1/facts", body).status in (200, 201)


def drawn(page):
    """Return the names of the entities that are drawn."""
    page.wait_for_selector(".drawing canvas")
    return sorted(page.evaluate("window.holdfastGraph.nodes().map((node) => node.data('name'))"))


def test_a_person_finds_a_subject_by_keyboard(open_console, facts):
    console = open_console()
    page = console.page
    page.get_by_role("link", name="Facts", exact=True).click()
    page.get_by_role("searchbox").press_sequentially("bill")
    page.wait_for_url(re.compile("q=bill"))
    page.locator("a[data-hit]", has_text="Checkout").wait_for(state="detached")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{BILLING}")
    assert page.locator(".timeline s").inner_text() == "Ada"
    console.check_nothing_happened()


def test_the_place_of_subjects_is_chosen_at_once(open_console, facts):
    console = open_console()
    console.open("/ui/facts")
    page = console.page
    page.locator("summary", has_text="Where").click()
    page.select_option("#scope", "project")
    page.fill("#of", "shop")
    page.keyboard.press("Tab")
    page.locator("a[data-hit]", has_text="Billing").wait_for(state="detached")
    assert page.locator("a[data-hit]").all_inner_texts() == ["Postgres", "Turin"]
    console.check_nothing_happened()


def test_a_person_states_a_value_and_sees_what_it_closed(open_console, facts, gateway):
    console = open_console()
    console.open(BILLING)
    page = console.page
    page.get_by_label("Label").fill("owner")
    page.get_by_label("Value", exact=True).fill("[[Linus]]")
    page.get_by_label("True from").fill("2026-05-01")
    page.get_by_role("button", name="State it").click()
    assert "The fact is stated" in page.get_by_role("status").inner_text()
    assert page.locator(".timeline s").all_inner_texts() == ["Grace", "Ada"]
    assert "[2026-05-01] owner: Linus" in page.locator(".closer").first.inner_text()
    page.get_by_label("Label").fill("a:b")
    page.get_by_label("Value", exact=True).fill("kept words")
    page.get_by_role("button", name="State it").click()
    page.get_by_role("alert").wait_for()
    assert page.get_by_label("Value", exact=True).input_value() == "kept words"
    page.get_by_role("link", name="projects/demo/notes/billing.md").first.click()
    page.wait_for_url("**/ui/notes/project/demo/billing")
    console.check_nothing_happened()


def test_the_graph_is_drawn_and_a_click_puts_an_entity_in_the_centre(open_console, facts):
    console = open_console()
    console.open("/ui/graph?entity=Billing")
    page = console.page
    assert drawn(page) == ["Billing", "Checkout", "Grace", "Postgres"]
    page.select_option("#depth", "2")
    page.wait_for_selector(".drawing[data-nodes='6']")
    assert drawn(page) == ["Billing", "Checkout", "Grace", "Payments", "Postgres", "Turin"]
    place = page.evaluate("window.holdfastGraph.nodes('[name = \"Postgres\"]').renderedPosition()")
    page.locator(".drawing").click(position=place)
    page.wait_for_url(re.compile("entity=Postgres.*depth=2|depth=2.*entity=Postgres"))
    assert page.locator("h2").first.inner_text() == "Postgres"
    page.get_by_role("button", name="Fit").click()
    page.get_by_role("link", name="Open its facts").click()
    page.wait_for_url("**/ui/facts/subject?name=Postgres")
    console.check_nothing_happened()


def test_the_time_slider_moves_the_graph(open_console, facts):
    console = open_console()
    console.open("/ui/graph?entity=Billing")
    page = console.page
    assert "Grace" in drawn(page)
    page.locator("#time").focus()
    page.keyboard.press("Home")
    page.wait_for_url(re.compile("as_of=2026-01-10"))
    page.wait_for_selector(".drawing[data-nodes='3']")
    assert drawn(page) == ["Ada", "Billing", "Postgres"]
    assert page.locator("#as_of").input_value() == "2026-01-10"
    page.keyboard.press("End")
    page.wait_for_selector(".drawing[data-nodes='4']")
    page.get_by_role("button", name="Now").click()
    page.wait_for_url(re.compile("as_of=(&|$)"))
    page.go_back()
    page.wait_for_selector(".drawing[data-nodes]")
    console.check_nothing_happened()


def test_the_links_of_the_table_work_by_keyboard(open_console, facts):
    console = open_console()
    console.open("/ui/graph?entity=Billing")
    page = console.page
    page.locator("tbody a", has_text="Grace").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("entity=Grace"))
    assert drawn(page) == ["Billing", "Grace", "Payments"]
    console.check_nothing_happened()


def test_a_person_finds_the_path_between_two_entities(open_console, facts):
    console = open_console()
    console.open(BILLING)
    page = console.page
    page.get_by_role("link", name="Path…").click()
    assert page.get_by_label("From").input_value() == "Billing"
    page.get_by_label("To").fill("Italy")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="3 steps").wait_for()
    page.get_by_label("As of").fill("2026-01-15")
    page.get_by_role("button", name="Find the path").click()
    page.get_by_role("heading", name="No path").wait_for()
    console.check_nothing_happened()


def test_the_pages_can_be_read_and_used_without_scripts(chromium, open_console, facts, gateway):
    signed_in = open_console()
    console = Console(chromium, gateway, java_script_enabled=False, storage_state=signed_in.context.storage_state())
    page = console.page
    console.open("/ui/facts?q=bil")
    page.get_by_role("link", name="Billing").click()
    page.get_by_label("Label").fill("status")
    page.get_by_label("Value", exact=True).fill("retired")
    page.get_by_role("button", name="State it").click()
    assert page.get_by_text("The fact is stated").is_visible()
    page.get_by_role("link", name="Graph", exact=True).click()
    assert page.get_by_role("table").is_visible() and not page.locator(".drawing, #slider").first.is_visible()
    page.get_by_label("As of").fill("2026-01-15")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("table").get_by_role("link", name="Ada").click()
    assert page.locator("h2").first.inner_text() == "Ada"
    console.context.close()


def test_hostile_names_do_nothing(open_console, facts, gateway):
    links = f"- [2026-01-01] {HOSTILE}: [[{HOSTILE}]] [[javascript:window.__ran=1]]"
    text = f"# {HOSTILE}\n\n{links}\n- [2026-01-01] long: {'x' * 1500}\n"
    assert gateway.operator("PUT", "/v1/notes/global/hostile", {"text": text}).status == 201
    console = open_console(viewport={"width": 390, "height": 800})
    page = console.page
    console.open("/ui/facts?q=onerror")
    console.check_nothing_happened()
    page.locator("a[data-hit]").click()
    for name in ("Graph", "Open its facts", "Path…"):
        console.check_nothing_happened()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_role("link", name=name, exact=True).last.click()
    console.check_nothing_happened()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_accessible(open_console, facts, scheme):
    axe = load_axe()
    console = open_console(color_scheme=scheme)
    for path in ("/ui/facts", "/ui/facts?q=nothing", BILLING, GRAPH, "/ui/graph", PATH, "/ui/graph/path"):
        assert console.open(path) == 200
        console.page.wait_for_load_state("networkidle")
        assert console.find_violations(axe) == [], path
        console.check_nothing_happened()


@pytest.mark.parametrize("width", [390, 1200])
def test_no_page_is_wider_than_the_screen(open_console, facts, width):
    console = open_console(viewport={"width": width, "height": 800})
    for path in ("/ui/facts", BILLING, GRAPH, PATH):
        console.open(path)
        assert console.page.evaluate("document.documentElement.scrollWidth") <= width, path
