"""Every repeated answer says that it is one, on both stores."""

from __future__ import annotations

import both_gateways
import pytest
from github_server import TOKEN, GitHub
from test_http_parity import LINES, WRITES, furnish, request_of

gateway = both_gateways.gateway


@pytest.fixture
def github(gateway):
    """A GitHub server that the settings of the gateway name."""
    one = GitHub()
    (gateway.home / "config.toml").write_text(f'[github]\napi = "{one.url}"\ntoken = "{TOKEN}"\n')
    yield one
    one.close()


@pytest.mark.promise("A4")
def test_every_write_that_comes_again_under_its_key_says_that_it_is_a_replay(gateway, github):
    ask, replayed = gateway.operator, []
    for number, route in enumerate(WRITES):
        if route.path.startswith("/v1/settings") and gateway.store == "postgres":
            continue  # a server on PostgreSQL does not change settings over HTTP
        path, body = request_of(route, furnish(ask), number)
        if route.path == "/v1/history/restore":
            body = {"session": "brought-back"}
            ask.post("/v1/history", {**body, "turns": [{"text": "Said."}], "scope": "agent"})
            ask.post("/v1/history/forget", body)
        sent = {"Idempotency_Key": f"key-{number}", "X_Holdfast_Project": "demo", "X_Holdfast_Session": "s1"}
        if body is not None:
            sent["Content_Type"] = route.reads
        first, again = [ask(route.method, path, body, **sent) for _ in range(2)]
        assert first.status in (200, 201) and "idempotency-replayed" not in first.headers, (route.name, first)
        assert again.headers.get("idempotency-replayed") == "true", (route.name, again)
        if again.status >= 400:
            assert again.code == "conflict" and again.json["replayed"] is True
            replayed.append(route.name)
        else:
            assert again.status == first.status
            assert (again.headers["content-type"] == LINES) == (first.headers["content-type"] == LINES)
    assert replayed == ["POST /agents", "POST /agents/{name}/token"]  # a token is shown once
    assert github.posts == 1
