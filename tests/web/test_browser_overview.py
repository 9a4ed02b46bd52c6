"""The chart of the overview in a browser."""

from __future__ import annotations

from browser import load_axe


def store(gateway):
    sent = gateway.operator.post("/v1/notes", {"text": "We deploy on Tuesdays.", "key": "deploys", "scope": "agent"})
    assert sent.status == 201, sent.json


def test_the_chart_is_drawn_and_its_numbers_stay_in_a_table(open_console, gateway, tmp_path):
    store(gateway)
    axe = load_axe()
    for scheme, width in (("light", 1200), ("dark", 390)):
        console = open_console(color_scheme=scheme, viewport={"width": width, "height": 844})
        console.open("/")
        page = console.page
        page.locator(".chart canvas").wait_for()
        page.screenshot(path=str(tmp_path / f"{scheme}.png"), full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert console.find_violations(axe) == []
        page.get_by_text("Show the numbers").click()
        assert page.get_by_role("columnheader", name="Versions written").is_visible()
        console.check_nothing_happened()
