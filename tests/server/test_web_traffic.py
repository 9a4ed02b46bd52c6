"""The page of requests and latency: its tables, its parts, and the roles that may read it."""

from __future__ import annotations

import re

import pytest
from test_http_traffic import Clock, advance, count
from web_client import WebClient

from holdfast.server.traffic import Traffic


@pytest.fixture
def traffic(any_gateway):
    """The series of the gateway, with a clock that the test sets."""
    gateway = any_gateway.app.state.pipeline.gateway
    gateway.traffic = one = Traffic(gateway.metrics.sum_requests, Clock())
    return one


def sign_in(gateway, token):
    browser = WebClient(gateway.port)
    browser.sign_in(token)
    return browser


@pytest.fixture
def person(any_gateway):
    return sign_in(any_gateway, any_gateway.operator.token)


def add_points(gateway, traffic, number=1):
    metrics = gateway.app.state.pipeline.gateway.metrics
    for _ in range(number):
        for _ in range(100):
            count(metrics, 502, 2.0, "none")
        advance(traffic, traffic._clock)


def test_the_page_has_a_table_for_each_chart(any_gateway, traffic, person):
    add_points(any_gateway, traffic, 2)
    html = person.get("/ui/traffic").text
    assert re.findall(r'<table data-chart="time" data-unit="(.*?)">', html) == ["requests/s", "ms"]
    requests, latency = re.findall(r"<table.*?</table>", html, re.DOTALL)
    assert re.findall(r'data-x="(\d+)"', requests) == re.findall(r'data-x="(\d+)"', latency) == ["1000010", "1000020"]
    assert ">10.0</td></tr>" in requests and requests.count('<th scope="col"') == 4 and latency.count('<th scope="col"') == 3
    assert 'hx-trigger="every 10s"' in html


def test_htmx_gets_the_tables_only(any_gateway, traffic, person):
    add_points(any_gateway, traffic)
    part = person.get("/ui/traffic", HX_Request="true").text
    assert "<html" not in part and part.count("<table") == 2


def test_updates_can_be_paused(any_gateway, traffic, person):
    add_points(any_gateway, traffic)
    html = person.get("/ui/traffic?paused=1").text
    assert "hx-trigger" not in html and "Updates are paused." in html and 'href="/ui/traffic">Resume' in html


def test_a_time_without_requests_has_no_latency(any_gateway, traffic, person):
    advance(traffic, traffic._clock)
    advance(traffic, traffic._clock)
    html = person.get("/ui/traffic").text
    assert html.count('<td class="number"></td>') >= 2


def test_without_figures_the_page_says_when_they_come(traffic, person):
    html = person.get("/ui/traffic").text
    assert "No figures yet" in html and "/metrics" in html and "<table" not in html


def test_only_roles_that_may_read_the_metrics_are_offered_and_shown_the_page(any_gateway, person):
    assert "/ui/traffic" in person.get("/").text and "/ui/traffic" in person.get("/ui/agents").text
    any_gateway.add_role("reader", ["agent.memory.read"], ("agent",))
    any_gateway.add_role("scraper", ["metrics.read"], [])
    reader = sign_in(any_gateway, any_gateway.agent("reader", "reader").token)
    assert "/ui/traffic" not in reader.get("/").text and reader.get("/ui/traffic").status == 403
    scraper = sign_in(any_gateway, any_gateway.agent("prometheus", "scraper").token)
    page = scraper.get("/ui/traffic")
    assert page.status == 200 and "/ui/agents" not in page.text
