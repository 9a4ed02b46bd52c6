"""People at the pages of agents and the audit, in a browser."""

from __future__ import annotations

from browser import load_axe


def add_agent(console):
    page = console.page
    console.open("/ui/agents")
    page.get_by_role("link", name="Add an agent").click()
    page.get_by_label("Name").fill("scout")
    page.get_by_label("Role").select_option("code-review-engineer")
    page.get_by_label("Projects").fill("acme-*")
    page.get_by_role("button", name="Add the agent").click()
    page.get_by_role("heading", name="Agent added").wait_for()


def test_a_person_adds_an_agent_copies_its_token_grants_and_revokes(open_console):
    console = open_console(permissions=["clipboard-read", "clipboard-write"])
    page = console.page
    add_agent(console)
    token = page.get_by_label("Token").input_value()
    assert token.startswith("hf_") and token not in page.url
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == token
    page.get_by_role("link", name="Done").click()
    card = page.locator("section.agent", has_text="scout")
    card.locator("summary").click()
    card.get_by_label("Pattern").fill("shop")
    card.get_by_role("button", name="Add the grant").click()
    page.get_by_role("status").get_by_text("Granted").wait_for()
    card.get_by_role("button", name="Remove the grant shop").click()
    page.get_by_role("status").get_by_text("removed").wait_for()
    card.locator("summary").click()
    card.get_by_role("button", name="Make a new token").click()
    page.get_by_role("heading", name="New token").wait_for()
    assert page.get_by_label("Token").input_value() != token
    page.get_by_role("link", name="Done").click()
    card.get_by_role("link", name="Revoke").click()
    page.get_by_role("button", name="Revoke its tokens").click()
    page.get_by_role("status").get_by_text("Revoked").wait_for()
    console.check_nothing_happened()


def test_a_person_filters_and_verifies_the_audit(open_console):
    console = open_console()
    page = console.page
    console.open("/ui/audit")
    page.locator("summary", has_text="Filters").click()
    page.get_by_label("Outcome").select_option("denied")
    page.get_by_role("button", name="Filter").click()
    page.get_by_text("No decisions match these filters").wait_for()
    page.get_by_role("button", name="Verify the chain").click()
    page.get_by_role("heading", name="The chain is whole").wait_for()
    console.check_nothing_happened()


def test_the_pages_are_accessible(open_console):
    axe = load_axe()
    for scheme in ("light", "dark"):
        console = open_console(color_scheme=scheme, viewport={"width": 390, "height": 844} if scheme == "dark" else None)
        if scheme == "light":
            add_agent(console)
            assert console.find_violations(axe) == []
        for path in ("/ui/agents", "/ui/agents/new", "/ui/agents/scout/revoke", "/ui/roles", "/ui/audit"):
            assert console.open(path) == 200
            assert console.find_violations(axe) == [], path
            console.check_nothing_happened()
