"""The pages of the audit: filters, pages of rows, and the verification of the chain."""

from __future__ import annotations

import re

import pytest
from web_client import WebClient


@pytest.fixture
def person(any_gateway):
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.operator.token)
    return browser


def count_rows(html):
    return len(re.findall(r"<tr>\s*<td><time", html))


def test_the_audit_is_filtered_by_token_and_address(any_gateway):
    agent = any_gateway.agent("reader")
    agent.get("/v1/status")
    rows = any_gateway.operator.get("/audit?agent=reader").json["audit"]
    token = rows[0]["metadata"]["token"]
    found = lambda query: any_gateway.operator.get(f"/audit?{query}").json["audit"]  # noqa: E731
    assert [row["number"] for row in found(f"token={token}")] == [row["number"] for row in rows]
    assert found("address=127.0.0.1&agent=reader") == rows
    assert found("address=10.9.8.7") == found("token=nothing") == []


def test_filters_reach_the_api_and_stay_in_the_form(any_gateway, person):
    any_gateway.agent("reader").get("/v1/status")
    html = person.get("/ui/audit?agent=reader&outcome=allowed&address=127.0.0.1").text
    assert count_rows(html) >= 1 and 'value="reader"' in html and "GET /v1/status" in html
    assert count_rows(person.get("/ui/audit?agent=nobody").text) == 0
    assert "No decisions match these filters" in person.get("/ui/audit?agent=nobody").text


def test_a_wrong_filter_is_told(person):
    answer = person.get("/ui/audit?since=2026-13-45")
    assert answer.status == 422 and 'role="alert"' in answer.text and 'value="2026-13-45"' in answer.text


def test_older_rows_are_on_the_next_page(any_gateway, person):
    agent = any_gateway.agent("reader")
    for _ in range(60):
        agent.get("/v1/status")
    html = person.get("/ui/audit?agent=reader").text
    older = re.search(r'href="(/ui/audit\?[^"]*cursor=[^"]*)"', html)[1].replace("&amp;", "&")
    assert count_rows(html) == 50 and "agent=reader" in older and count_rows(person.get(older).text) == 10


def test_the_chain_is_verified(person):
    answer = person.send_form(person.get("/ui/audit"), "/ui/audit/verify")
    assert answer.status == 200 and "The chain is whole" in answer.text


def test_other_roles_may_not_read_the_audit(any_gateway):
    any_gateway.add_role("reader", ["agent.memory.read"], ("agent",))
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.agent("reader", "reader").token)
    refused = browser.get("/ui/audit")
    assert refused.status == 403 and 'role="alert"' in refused.text and "audit.read" in refused.text
