"""The overview and the health page: problems with a button where a safe fix exists."""

from __future__ import annotations

import re

import pytest
from web_client import WebClient

from holdfast.server.web.overview import _add_button


@pytest.fixture
def person(any_gateway):
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.operator.token)
    return browser


@pytest.mark.parametrize("name, said", [("reindex", "The index was rebuilt"), ("embed", "vectors"), ("retain", "archived")])
def test_a_safe_fix_runs_by_a_button(person, name, said):
    token = re.search(r'name="form_token" value="([^"]+)"', person.get("/ui/problems").text)[1]
    sent = person.post(f"/ui/fixes/{name}", {"form_token": token})
    assert sent.status == 303 and said in person.get(sent.headers["location"]).text


def test_only_safe_fixes_have_a_button_and_an_address(person):
    button = lambda fix: _add_button({"fix": fix})["button"]  # noqa: E731
    assert button("holdfast reindex") == "reindex" and button("holdfast --home /x embed") == "embed"
    assert button("rm /x") == button("holdfast purge k") == button("mv a b && holdfast reindex") == button("") == ""
    token = re.search(r'name="form_token" value="([^"]+)"', person.get("/ui/problems").text)[1]
    assert person.post("/ui/fixes/purge", {"form_token": token}).status == 404


def test_a_fix_needs_the_right_to_care_for_the_home(any_gateway):
    any_gateway.add_role("reader", ["agent.memory.read"], ("agent",))
    browser = WebClient(any_gateway.port)
    browser.sign_in(any_gateway.agent("reader", "reader").token)
    token = re.search(r'name="form_token" value="([^"]+)"', browser.get("/").text)[1]
    assert browser.post("/ui/fixes/reindex", {"form_token": token}).status == 403
