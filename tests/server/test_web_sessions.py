"""Signing in to the console: sessions end with their token, forms belong to their session, and pages have strict headers."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from http_gateway import run_gateway
from web_client import WebClient, hidden_fields

from holdfast import Memory, config
from holdfast.access import AccessGate, sessions
from holdfast.ledger.web_sessions import IDLE_SECONDS, MAX_SECONDS

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)


@pytest.fixture
def browser(any_gateway):
    return WebClient(any_gateway.port)


@pytest.fixture
def person(any_gateway, browser):
    """A browser in which the operator is signed in."""
    assert browser.sign_in(any_gateway.operator.token).status == 303
    return browser


# --- signing in and out -----------------------------------------------------------------------------------------------


def test_a_browser_is_sent_to_sign_in_and_a_program_gets_the_problem_it_got_before(any_gateway, browser):
    sent = browser.get("/")
    assert (sent.status, sent.headers["location"]) == (303, "/sign-in")
    sent = browser.get("/ui/search?q=a%20b")
    assert (sent.status, sent.headers["location"]) == (303, "/sign-in?next=/ui/search%3Fq%3Da%2520b")
    for path in ("/", "/ui/search", "/ui/notes/global/-/k"):
        assert any_gateway.anonymous.get(path).code == "unauthenticated"
        assert any_gateway.operator.get(path).code == "no_route"
        assert any_gateway.operator.get(path, Accept="text/html").code == "no_route"


def test_a_token_signs_in_and_the_cookie_is_for_this_site_only(any_gateway, browser):
    answer = browser.sign_in(any_gateway.operator.token)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    attributes = {part.strip().lower() for part in browser.set_cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes and "secure" not in attributes
    assert any_gateway.operator.token not in browser.set_cookie
    assert browser.get("/").status == 200


def test_behind_a_proxy_that_is_trusted_the_cookie_is_for_https_only(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[serve]\ntrusted_proxies = ["127.0.0.1"]\n')
    with run_gateway(home) as gateway:
        for scheme, is_secure in (("https", True), ("http", False)):
            browser = WebClient(gateway.port)
            browser.post("/sign-in", {"token": gateway.operator.token}, X_Forwarded_Proto=scheme)
            assert ("secure" in browser.set_cookie.lower()) is is_secure


def test_a_wrong_token_and_a_role_that_may_do_nothing_are_refused(any_gateway, browser):
    token = any_gateway.agent("clerk", "secretary").token
    for given, status in (("", 401), ("nonsense", 401), (any_gateway.operator.token[:-1] + "x", 401), (token, 403)):
        answer = browser.sign_in(given)
        assert answer.status == status and 'role="alert"' in answer.text and not browser.cookie
        assert not given or given not in answer.text


def test_signing_out_ends_the_session_everywhere(person):
    other = WebClient(person.port)
    other.cookie = person.cookie
    page = person.get("/")
    assert person.send_form(page, "/sign-out").headers["location"] == "/sign-in"
    assert other.get("/").status == 303


def test_signing_in_again_ends_the_session_before(any_gateway, person):
    other = WebClient(person.port)
    other.cookie = person.cookie
    assert person.sign_in(any_gateway.operator.token).status == 303 and person.cookie != other.cookie
    assert (other.get("/").status, person.get("/").status) == (303, 200)


def test_a_page_of_another_site_signs_nobody_in(any_gateway, browser):
    for site in ("cross-site", "same-site"):
        answer = browser.post("/sign-in", {"token": any_gateway.operator.token}, Sec_Fetch_Site=site)
        assert answer.status == 403 and not browser.cookie


def test_a_session_ends_with_its_token_at_once(any_gateway, browser):
    browser.sign_in(any_gateway.agent("reviewer").token)
    assert browser.get("/").status == 200
    any_gateway.gate.revoke("reviewer")
    assert browser.get("/").status == 303


def test_a_session_ends_when_it_is_not_used_and_after_a_week(any_gateway, browser, clock):
    browser.sign_in(any_gateway.operator.token)
    clock.forward(IDLE_SECONDS - 60)
    assert browser.get("/").status == 200
    clock.forward(IDLE_SECONDS - 60)
    assert browser.get("/").status == 200
    clock.forward(IDLE_SECONDS)
    assert browser.get("/").status == 303
    browser.sign_in(any_gateway.operator.token)
    for _ in range(MAX_SECONDS // (IDLE_SECONDS // 2)):
        clock.forward(IDLE_SECONDS // 2)
        last = browser.get("/").status
    assert last == 303


@pytest.mark.parametrize("cookie", ["", "owner.", "owner." + "a" * 43, "a" * 8 + "." + "b" * 43, "\u00e9", "x" * 5000])
def test_a_made_up_cookie_is_no_session(any_gateway, browser, cookie):
    assert browser.get("/", Cookie=f"holdfast_{browser.port}={cookie}".encode("latin-1", "replace")).status == 303


def test_a_cookie_does_not_let_a_program_use_the_api(person):
    assert person("GET", "/v1/notes", Accept="application/json").status == 401


def test_the_ledger_keeps_neither_cookies_nor_codes(gateway):
    browser = WebClient(gateway.port)
    browser.sign_in(gateway.operator.token)
    code = sessions.make_code(gateway.gate)
    secret = browser.cookie.partition(".")[2]
    with closing(sqlite3.connect(gateway.home / "ledger.db")) as db:
        rows = [*db.execute("SELECT * FROM web_sessions"), *db.execute("SELECT * FROM sign_in_codes")]
    assert len(rows) == 2 and secret not in str(rows) and code not in str(rows)


def test_nobody_is_sent_to_another_site_after_signing_in(any_gateway, browser):
    targets = ("https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example", "javascript:alert(1)", "")
    for target in targets:
        answer = browser.post("/sign-in", {"token": any_gateway.operator.token, "next": target})
        assert answer.headers["location"] == "/", target
    answer = browser.post("/sign-in", {"token": any_gateway.operator.token, "next": "/ui/search?q=a+b"})
    assert answer.headers["location"] == "/ui/search?q=a+b"


def test_a_sign_in_is_a_row_of_the_audit(any_gateway, person):
    rows = [row for row in any_gateway.operator.get("/audit?limit=500").json["audit"] if row["action"] == "authenticate"]
    assert [(row["agent"], row["outcome"], row["metadata"]["by"]) for row in rows] == [("operator", "allowed", "token")]


# --- one-time links ---------------------------------------------------------------------------------------------------


def test_a_link_signs_the_owner_in_once_within_a_minute(any_gateway, browser, clock):
    code = sessions.make_code(any_gateway.gate)
    page = browser.get(f"/sign-in?code={code}")
    assert page.status == 200 and not browser.cookie, "only looking at the link uses nothing up"
    assert browser.send_form(page, "/sign-in").headers["location"] == "/"
    assert browser.get("/").status == 200
    assert WebClient(browser.port).post("/sign-in", {"code": code}).status == 401
    late = sessions.make_code(any_gateway.gate)
    clock.forward(sessions.CODE_SECONDS)
    assert WebClient(browser.port).post("/sign-in", {"code": late}).status == 401


def test_the_owner_reads_and_writes_as_a_person_without_any_token(home):
    home.mkdir(mode=0o700)
    with Memory(home, project="demo", origin="agent", agent="reviewer") as memory:
        memory.store("Use pytest.", key="testing", scope="agent")
    with run_gateway(home) as gateway, closing(AccessGate(config.load(home))) as gate:
        browser = WebClient(gateway.port)
        browser.post("/sign-in", {"code": sessions.make_code(gate)})
        url = "/ui/notes/agent/reviewer/testing"
        page = browser.get(f"{url}/edit")
        answer = browser.send_form(page, f"{url}/edit", text="Use pytest 8.", type="feedback", tags="ci")
        assert answer.headers["location"] == f"{url}?done=saved"
        assert "Use pytest 8." in browser.get(url).text
        rows = gateway.operator.get("/audit?limit=500").json["audit"]
        assert {row["agent"] for row in rows if row["action"] == "agent.memory.write"} == {"(local)"}


# --- forms ------------------------------------------------------------------------------------------------------------


def test_a_form_without_the_sessions_token_changes_nothing(any_gateway, person):
    any_gateway.operator("PUT", "/v1/notes/global/k", {"text": "Words."})
    other = WebClient(person.port)
    other.sign_in(any_gateway.operator.token)
    url = "/ui/notes/global/-/k"
    foreign = other.get(url)
    fields = {"version": any_gateway.operator.get("/v1/notes/global/k").json["version"]}
    for form in (fields, {**fields, "form_token": ""}, {**fields, "form_token": "é"}):
        assert person.post(f"{url}/forget", form).status == 403
    token = foreign.text.partition('name="form_token" value="')[2].partition('"')[0]
    assert person.post(f"{url}/forget", {**fields, "form_token": token}).status == 403
    assert any_gateway.operator.get("/v1/notes/global/k").status == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}],
)
def test_a_form_from_another_site_is_refused(any_gateway, person, headers):
    any_gateway.operator("PUT", "/v1/notes/global/k", {"text": "Words."})
    page = person.get("/ui/notes/global/-/k")
    action = "/ui/notes/global/-/k/forget"
    assert person.post(action, hidden_fields(page.text, action), **headers).status == 403
    assert any_gateway.operator.get("/v1/notes/global/k").status == 200


def test_a_page_of_this_server_may_send_its_form(any_gateway, person):
    any_gateway.operator("PUT", "/v1/notes/global/k", {"text": "Words."})
    page = person.get("/ui/notes/global/-/k")
    action, origin = "/ui/notes/global/-/k/forget", f"http://127.0.0.1:{person.port}"
    assert person.post(action, hidden_fields(page.text, action), Origin=origin, Sec_Fetch_Site="same-origin").status == 303


def test_a_body_that_is_no_form_is_refused(person):
    assert person.post("/sign-out", {}, Content_Type="application/json").status == 415
    assert person("POST", "/sign-in", {"token": "x" * 20_000}).status == 413


# --- headers and static files -----------------------------------------------------------------------------------------


def test_every_page_has_strict_headers(any_gateway, person):
    any_gateway.operator("PUT", "/v1/notes/global/k", {"text": "Words."})
    note = "/ui/notes/global/-/k"
    others = ("/", "/ui/search", "/ui/search?q=words", "/ui/problems", "/ui/notes/a/b/c")
    for path in (*others, note, f"{note}/edit", f"{note}/purge"):
        headers = person.get(path).headers
        assert headers["content-security-policy"] == CSP, path
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
    for path in ("/sign-in", "/ui/problems"):
        assert WebClient(person.port).get(path).headers["content-security-policy"] == CSP


def test_pages_have_no_inline_script_or_style_and_no_other_host(any_gateway, person):
    any_gateway.operator("PUT", "/v1/notes/global/k", {"text": "Words."})
    for path in ("/", "/ui/search?q=words", "/ui/notes/global/-/k", "/ui/notes/global/-/k/edit"):
        html = person.get(path).text
        assert "<script>" not in html and " style=" not in html and "<style" not in html and " onclick" not in html
        assert "https://" not in html and "http://" not in html


def test_static_files_may_be_kept_for_a_year_and_are_named_by_their_content(person):
    paths = set(re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', person.get("/").text))
    assert any(path.endswith("/console.css") for path in paths) and any(path.endswith("/console.js") for path in paths)
    for path in paths:
        file = WebClient(person.port).get(path)
        assert file.status == 200 and file.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert person.get(path, If_None_Match=file.headers["etag"]).status == 304
    assert person.get("/ui/static/0000000000000000/console.css").status == 404
    assert person.get("/ui/static/0000000000000000/../../page.py").status in (400, 404)
