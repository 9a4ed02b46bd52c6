"""People at the page of requests and latency, in a browser."""

from __future__ import annotations

import random

from browser import load_axe
from test_http_traffic import Clock, advance, count

from holdfast.server.traffic import Traffic


def add_points(gateway, number):
    """Replace the series of the gateway with one that has so many points."""
    inner = gateway.app.state.pipeline.gateway
    clock, chance = Clock(1_780_000_000.0), random.Random(7)
    inner.traffic = traffic = Traffic(inner.metrics.sum_requests, clock)
    for _ in range(number):
        for _ in range(chance.randrange(20, 60)):
            count(inner.metrics, chance.choices((200, 404, 500), (95, 4, 1))[0], chance.expovariate(100), "none")
        advance(traffic, clock)
    return traffic


def test_a_person_reads_the_figures_and_they_are_updated(open_console, gateway):
    traffic = add_points(gateway, 30)
    console = open_console()
    page = console.page
    page.clock.install()
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Traffic").click()
    page.get_by_role("heading", name="Traffic").wait_for()
    rows = page.locator("table[data-unit='requests/s'] tbody tr")
    assert rows.count() == page.locator("table[data-unit='ms'] tbody tr").count() == 30
    assert page.locator(".chart canvas").count() == 2
    page.get_by_text("Show the numbers").last.click()
    page.locator("#latency").evaluate("one => { one.scrollTop = 100; one.focus(); }")
    advance(traffic, traffic._clock)
    page.clock.run_for(10_000)
    rows.nth(30).wait_for(state="attached")
    assert page.locator(".chart canvas").count() == 2
    assert page.locator("#latency").evaluate("one => [one.scrollTop, document.activeElement.id]") == [100, "latency"]
    page.get_by_role("link", name="Pause updates").click()
    page.get_by_text("Updates are paused.").wait_for()
    page.get_by_role("link", name="Resume updates").click()
    page.get_by_text("Updated every 10 seconds.").wait_for()
    console.check_nothing_happened()


def test_the_page_can_be_read_without_scripts(open_console, gateway):
    console = open_console()  # signs in with a script
    add_points(gateway, 3)
    page = console.context.browser.new_context(
        java_script_enabled=False, storage_state=console.context.storage_state()
    ).new_page()
    page.goto(console.url + "/ui/traffic")
    assert page.get_by_role("table", name="Latency in milliseconds").get_by_role("row").count() == 4
    page.context.close()


def test_the_page_is_accessible(open_console, gateway):
    axe = load_axe()
    for number in (0, 30):
        add_points(gateway, number)
        for scheme, width in (("light", 1200), ("dark", 390)):
            console = open_console(color_scheme=scheme, viewport={"width": width, "height": 844})
            assert console.open("/ui/traffic") == 200
            assert console.find_violations(axe) == []
            assert console.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            console.check_nothing_happened()
