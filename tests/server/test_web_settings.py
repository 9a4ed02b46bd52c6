"""Settings by plain HTTP: values and their sources, changes in config.toml, and what only the machine may change."""

from __future__ import annotations

import re

import pytest
from web_client import WebClient

PATH = "/ui/settings"


@pytest.fixture
def operator(gateway):
    return gateway.operator


@pytest.fixture
def person(gateway, operator):
    browser = WebClient(gateway.port)
    browser.sign_in(operator.token)
    return browser


def by_name(operator):
    return {one["name"]: one for one in operator.get("/v1/settings").json["settings"]}


def save(person, name, **fields):
    token = re.search(r'name="form_token" value="([^"]+)"', person.get(PATH).text)[1]
    return person.post(PATH, {"form_token": token, "name": name, **fields})


def test_every_setting_is_shown_with_its_value_and_its_source(person, operator):
    from holdfast.config import SETTINGS

    page = person.get(PATH)
    assert page.status == 200
    assert [one.name for one in SETTINGS if f'id="setting-{one.name}"' not in page.text] == []
    found = by_name(operator)
    assert found["brief.total_chars"]["source"] == "default" and found["brief.total_chars"]["value"] == "6300"
    assert found["trust.quarantine"]["value"] == "web, import" and found["trust.quarantine"]["kind"] == "list"


def test_a_change_goes_to_config_toml_keeps_its_comments_and_applies(gateway, person, operator):
    file = gateway.home / "config.toml"
    file.write_text("# mine\n[brief]\ntotal_chars = 5000  # enough\n")
    sent = save(person, "brief.total_chars", value="4000", do="change")
    assert sent.headers["location"] == f"{PATH}?changed=brief.total_chars#setting-brief.total_chars"
    assert file.read_text() == "# mine\n[brief]\ntotal_chars = 4000  # enough\n"
    assert "brief.total_chars is now 4000" in person.get(f"{PATH}?changed=brief.total_chars").text
    assert by_name(operator)["brief.total_chars"]["source"] == "config.toml"
    save(person, "brief.total_chars", value="4000", do="reset")
    assert by_name(operator)["brief.total_chars"]["source"] == "default" and "total_chars" not in file.read_text()


def test_memory_can_be_switched_off_and_on_again(gateway, person, operator):
    save(person, "memory.enabled", value="false", do="change")
    assert operator("PUT", "/v1/notes/global/k", {"text": "Words."}).code == "disabled"
    assert save(person, "memory.enabled", value="true", do="change").status == 303
    assert operator("PUT", "/v1/notes/global/k", {"text": "Words."}).status == 201


def test_a_setting_that_is_read_at_the_start_says_so(person, operator):
    restarted = [name for name, one in by_name(operator).items() if one["needs_restart"]]
    assert "serve.rate" in restarted and person.get(PATH).text.count("needs a restart") == len(restarted)


@pytest.mark.parametrize(
    ("name", "value"),
    [("brief.total_chars", "lots"), ("brief.total_chars", "1"), ("memory.enabled", "perhaps"), ("hooks.capture", "1.5")],
)
def test_a_value_that_does_not_fit_is_refused_and_stays_in_its_field(gateway, person, name, value):
    (gateway.home / "config.toml").write_text("# mine\n")
    refused = save(person, name, value=value, do="change")
    assert refused.status in (400, 422) and 'role="alert"' in refused.text and name in refused.text
    assert (gateway.home / "config.toml").read_text() == "# mine\n"
    if name == "brief.total_chars":
        assert f'value="{value}"' in refused.text


def test_what_weakens_security_or_moves_the_store_is_changed_at_the_machine(gateway, person, operator):
    names = (
        "store.url", "serve.trusted_proxies", "serve.rate", "serve.body_bytes", "quota.notes", "trust.quarantine",
        "gateway.token", "audit.mode", "search.key", "github.token",
    )  # fmt: skip
    for name in names:
        assert f"<code>holdfast config {name} VALUE</code>" in person.get(PATH).text, name
        assert operator("PUT", f"/v1/settings/{name}", {"value": "x"}).code == "refused", name
    assert operator("PUT", "/v1/settings/no.such", {"value": "x"}).status == 404
    assert save(person, "store.url", value="postgresql://x", do="change").status == 422


def test_secrets_are_never_shown(gateway, person, operator):
    (gateway.home / "config.toml").write_text(
        '[github]\ntoken = "ghp_hidden"\n[search]\nkey = "sk-hidden"\nembedder = "endpoint:https://me:hidden@host.example/v1"\n'
    )
    assert "hidden@" not in person.get(PATH).text and "_hidden" not in person.get(PATH).text
    assert b"hidden" not in operator.get("/v1/settings").data.replace(b"hidden characters", b"")


def test_the_environment_wins_and_the_page_says_so(gateway, person, operator, monkeypatch):
    monkeypatch.setenv("HOLDFAST_ENABLED", "true")
    assert "Set by HOLDFAST_ENABLED" in person.get(PATH).text
    refused = operator("PUT", "/v1/settings/memory.enabled", {"value": "false"})
    assert refused.code == "refused" and "HOLDFAST_ENABLED" in refused.json["detail"]


def test_a_change_is_in_the_audit(person, operator):
    save(person, "retention.trash_days", value="20", do="change")
    rows = operator.get("/audit?limit=20").json["audit"]
    (row,) = [one for one in rows if one["metadata"].get("route") == "PUT /v1/settings/{name}"]
    assert row["action"] == "settings.manage" and row["metadata"]["name"] == "retention.trash_days"


def test_only_who_may_manage_settings_sees_and_changes_them(gateway, person):
    gateway.add_role("carer", ["agent.memory.read", "home.care"])
    carer = gateway.agent("carer", "carer")
    assert carer.get("/v1/settings").code == "denied" == carer("PUT", "/v1/settings/memory.enabled", {"value": "false"}).code
    browser = WebClient(gateway.port)
    browser.sign_in(carer.token)
    assert browser.get(PATH).status == 403 and f'href="{PATH}"' not in browser.get("/").text
    assert person.post(PATH, {"name": "memory.enabled", "value": "false"}).status == 403


def test_a_gateway_on_postgresql_shows_its_settings_and_changes_none(home, postgres_url, monkeypatch):
    from http_gateway import run_gateway

    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as gateway:
        browser = WebClient(gateway.port)
        browser.sign_in(gateway.operator.token)
        html = browser.get(PATH).text
        assert "at its machine" in html and 'name="value"' not in html and "Set by HOLDFAST_STORE" in html
        refused = gateway.operator("PUT", "/v1/settings/brief.total_chars", {"value": "4000"})
        assert refused.code == "refused"
