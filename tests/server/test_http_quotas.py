"""Quotas of agents through HTTP: notes, bytes and requests, on a home and on PostgreSQL."""

from __future__ import annotations

import gc
import json
import subprocess
import threading

import pytest
from http_gateway import Client, run_gateway
from mcp_raw import HOLDFAST

from holdfast.access.role_file import parse
from holdfast.errors import ConfigError
from holdfast.postgres.pool import close_pools

WRITER = ("agent.memory.read", "agent.memory.write")


@pytest.fixture(params=["folder", "postgres"])
def start(request, home, monkeypatch):
    """Start a gateway with these settings."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        monkeypatch.setenv("HOLDFAST_STORE", url)
    running = []

    def start(*settings):
        home.mkdir(mode=0o700, exist_ok=True)
        (home / "config.toml").write_text("".join([f"{line}\n" for line in settings]))
        context = run_gateway(home)
        running.append(context)
        return context.__enter__()

    yield start
    for context in running:
        context.__exit__(None, None, None)
    if request.param == "postgres":
        close_pools(url)


def add_agent(gateway, name, quota=None, scopes=("agent", "global")):
    """Add an agent whose role has this quota; its role is named like it."""
    folder = gateway.home / "roles"
    folder.mkdir(mode=0o700, exist_ok=True)
    role = {"name": name, "allowed_actions": list(WRITER), "scopes": list(scopes), **({"quota": quota} if quota else {})}
    (folder / f"{name}.yaml").write_text(json.dumps(role))
    return gateway.agent(name, name)


def put(client, key, text="Some words.", scope="agent"):
    return client("PUT", f"/v1/notes/{scope}/{key}", {"text": text})


def usage(gateway, name):
    listed = {agent["name"]: agent["quota"] for agent in gateway.operator.get("/agents").json["agents"]}
    return listed[name]


def test_an_agent_keeps_as_many_notes_as_its_role_allows(start):
    gateway = start()
    ada = add_agent(gateway, "ada", {"notes": 3})
    for number in range(3):
        assert put(ada, f"note-{number}", scope=("agent", "global")[number % 2]).status in (200, 201)
    refused = put(ada, "one-more")
    assert (refused.status, refused.code) == (429, "quota_exceeded") and "retry-after" not in refused.headers
    assert "3 notes; 1" in refused.json["detail"] and "quota.notes" in refused.json["detail"]
    assert put(ada, "note-1", "Other words.", scope="global").status == 200, "a note that is there may be updated"
    assert usage(gateway, "ada")["notes"] == {"used": 3, "limit": 3}
    assert ada("DELETE", "/v1/notes/agent/note-0").status == 200
    assert put(ada, "one-more").status == 201, "what is forgotten does not count"
    assert ada.post("/v1/notes/agent/note-0/restore").code == "quota_exceeded"
    assert 'holdfast_refused_total{why="quota_exceeded"} 2' in gateway.operator.get("/metrics").data.decode()


def test_a_refused_store_is_not_logged_as_a_failure_of_the_server(start, caplog):
    gateway = start()
    ada = add_agent(gateway, "ada", {"notes": 1})
    assert put(ada, "first").status == 201
    for _ in range(20):
        assert put(ada, "second").code == "quota_exceeded"
    gc.collect()
    assert not [entry.message for entry in caplog.records if entry.name == "asyncio"]


def test_the_settings_apply_to_agents_whose_role_says_nothing_and_not_to_the_operator(start):
    gateway = start("quota.notes = 1")
    ada, bob = add_agent(gateway, "ada"), add_agent(gateway, "bob", {"notes": 0})
    assert put(ada, "first").status == 201 and put(ada, "second").code == "quota_exceeded"
    for number in range(3):
        assert put(bob, f"note-{number}").status == 201
        assert put(gateway.operator, f"mine-{number}", scope="global").status == 201
    assert usage(gateway, "bob")["notes"] == {"used": 3, "limit": None}


def test_bytes_count_with_every_version_and_free_themselves(start):
    gateway = start()
    ada = add_agent(gateway, "ada", {"bytes": 20_000})
    text = "word " * 200
    stored = 0
    while put(ada, "growing", f"{text}{stored}").status in (200, 201):
        stored += 1
        assert stored < 40
    assert stored > 10
    refused = put(ada, "growing", f"{text}again")
    assert refused.code == "quota_exceeded" and "20,000" in refused.json["detail"]
    assert usage(gateway, "ada")["bytes"]["used"] <= 20_000
    assert put(ada, "growing", f"{text}{stored - 1}").status == 200, "an unchanged note needs nothing"
    assert ada.post("/v1/files/create", {"path": "a.txt", "file_text": "x " * 7_500, "scope": "agent"}).code == "quota_exceeded"
    assert ada("DELETE", "/v1/notes/agent/growing").status == 200
    assert ada.post("/v1/files/create", {"path": "a.txt", "file_text": "x " * 7_500, "scope": "agent"}).status in (200, 201)
    assert usage(gateway, "ada")["bytes"]["used"] == 15_000


def test_versions_in_history_files_count(start):
    gateway = start("notes.inline_versions = 2")
    ada = add_agent(gateway, "ada")
    for number in range(30):
        assert put(ada, "k", f"{'word ' * 40}{number}").status in (200, 201)
    assert usage(gateway, "ada")["bytes"]["used"] > 30 * 200
    assert len(ada.get("/v1/notes/agent/k/history").json["versions"]) == 30


def test_a_note_counts_for_the_agent_that_wrote_it_last(start):
    gateway = start()
    ada, bob = add_agent(gateway, "ada", {"notes": 1}), add_agent(gateway, "bob", {"notes": 1})
    assert put(ada, "shared", scope="global").status == 201
    assert put(bob, "own").status == 201
    assert put(bob, "shared", "Bob's words.", scope="global").code == "quota_exceeded"
    assert bob("DELETE", "/v1/notes/agent/own").status == 200
    assert put(bob, "shared", "Bob's words.", scope="global").status == 200
    assert usage(gateway, "ada")["notes"]["used"] == 0 and usage(gateway, "bob")["notes"]["used"] == 1


def test_a_bulk_import_stores_nothing_beyond_the_quota(start):
    gateway = start()
    ada = add_agent(gateway, "ada", {"notes": 5})
    lines = "".join([json.dumps({"text": f"Words {n}.", "key": f"k{n}"}) + "\n" for n in range(9)]).encode()
    ada("POST", "/v1/import?scope=agent", raw=lines, Content_Type="application/x-ndjson")
    assert usage(gateway, "ada")["notes"]["used"] <= 5


@pytest.mark.parametrize("quota", [{"notes": 10}, {"bytes": 4000}])
def test_parallel_stores_do_not_exceed_a_quota(start, quota):
    gateway = start()
    ada = add_agent(gateway, "ada", quota)
    statuses = []

    def store_some(first):
        statuses.extend([put(ada, f"note-{number}", "word " * 20).status for number in range(first, first + 3)])

    threads = [threading.Thread(target=store_some, args=(first,)) for first in range(0, 60, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = usage(gateway, "ada")
    for name, limit in quota.items():
        assert 0.8 * limit < used[name]["used"] <= limit
    assert statuses.count(201) == used["notes"]["used"] and set(statuses) == {201, 429}


def test_mcp_calls_count_for_the_quota(start):
    gateway = start()
    ada = add_agent(gateway, "ada", {"notes": 2})

    def call(name, **arguments):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return ada.post("/mcp", message, Accept="application/json, text/event-stream").data.decode()

    for number in range(2):
        assert "Created" in call("memory_store", text=f"Words {number}.", key=f"note-{number}", scope="agent")
    refused = call("memory_store", text="One more.", key="one-more", scope="agent")
    assert "quota.notes" in refused and '"isError":true' in refused
    assert put(ada, "one-more").code == "quota_exceeded" and usage(gateway, "ada")["notes"]["used"] == 2


def test_requests_of_a_day_are_counted_for_all_tokens_of_an_agent(start, clock):
    gateway = start("quota.requests_per_day = 5")
    ada = add_agent(gateway, "ada", {"requests": 3})
    bob = add_agent(gateway, "bob")
    for _ in range(3):
        assert ada.get("/v1/notes").status == 200
    refused = ada.get("/v1/notes")
    assert (refused.status, refused.code) == (429, "quota_exceeded")
    assert 0 < int(refused.headers["retry-after"]) <= 86400
    assert ada.post("/v1/recall", {"query": "words"}).code == "quota_exceeded"
    assert [bob.get("/v1/notes").status for _ in range(6)] == [200] * 5 + [429]
    assert usage(gateway, "ada")["requests"] == {"used": 3, "limit": 3}
    assert gateway.operator.get("/v1/notes").status == 200
    clock.forward(days=1)
    assert ada.get("/v1/notes").status == 200, "a new day"


def test_a_second_gateway_counts_the_same_requests_and_notes(start):
    one = start()
    ada = add_agent(one, "ada", {"notes": 2, "requests": 6})
    with run_gateway(one.home) as other:
        there = Client(other.port, ada.token)
        assert put(ada, "first").status == 201 and put(there, "second").status == 201
        assert put(ada, "third").code == put(there, "third").code == "quota_exceeded"
        assert ada.get("/v1/notes").status == there.get("/v1/notes").status == 200
        assert ada.get("/v1/notes").status == there.get("/v1/notes").status == 429


def test_the_command_line_shows_quotas(start):
    gateway = start("quota.notes = 7")
    ada = add_agent(gateway, "ada", {"requests": 100})
    put(ada, "first")
    done = subprocess.run(
        [*HOLDFAST, "--home", str(gateway.home), "agent", "list"], capture_output=True, text=True, check=True, timeout=120
    )
    assert "1 of 7 notes, 1 of 100 requests" in done.stdout


@pytest.mark.parametrize(
    "quota", ["5", "[1]", "{notes: many}", "{notes: -1}", "{words: 5}", "{notes: 1, notes: 2}", "{bytes: [1]}"]
)
def test_a_role_with_a_quota_that_means_nothing_is_refused(quota):
    text = f"name: writer\nallowed_actions: []\nquota: {quota}\n"
    with pytest.raises(ConfigError, match="role:3"):
        parse(text)


def test_relations_count_for_the_quota(start):
    gateway = start()
    agent = add_agent(gateway, "small", {"bytes": 1000})
    put(agent, "first")
    used = usage(gateway, "small")["bytes"]["used"]
    fill = "x" * (1000 - used - (used - len("Some words.")) - 30)  # leaves 30 bytes, fewer than a relation needs
    assert put(agent, "other", fill).status == 201
    refused = agent("POST", "/v1/notes/agent/other/relations", {"kind": "relates_to", "target": "first"})
    assert (refused.status, refused.code) == (429, "quota_exceeded")
    assert agent.get("/v1/relations").json["relations"] == []
