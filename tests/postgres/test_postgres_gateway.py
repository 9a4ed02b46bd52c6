"""The gateway on PostgreSQL: the same requests as on a home, replicas that agree at once, isolated tenants, and a database
that goes away and comes back."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import postgres_server
import psycopg
import pytest
import test_http_generated_client
import test_http_github
import test_http_mcp
import test_http_platform_keys
import test_http_walk
import test_http_writes
from http_gateway import Client, run_gateway
from mcp_raw import HOLDFAST
from test_http_audit import CHANGES, changes_of_tokens
from test_http_generated_client import call, generated  # noqa: F401
from test_http_github import TOKEN, github, reviewer  # noqa: F401
from test_http_matrix import ASKS, WHOSE
from test_http_platform_keys import bot  # noqa: F401
from test_http_serve import started
from tiers import tiered
from wait import wait_until

from holdfast import Memory, config
from holdfast.access import AccessGate
from holdfast.base import failure_log
from holdfast.context.ledgers import open_ledger
from holdfast.ledger.audit_verify import verify
from holdfast.postgres.pool import close_pools
from holdfast.server.github import Wanted, review
from holdfast.server.route import NDJSON
from holdfast.server.routes import ROUTES

PAIR = {"key": "harbour", "value": "Harbour words."}

# The tests of a platform's requests are written once, for the fixture `gateway`; here it runs on PostgreSQL.
_ELSEWHERE = {
    "test_a_memory_that_cannot_be_loaded_does_not_block_a_dispatch",  # removes a folder of the home
    "test_a_write_with_a_key_is_done_once_and_answered_the_same",  # reads the home's ledger
    "test_who_dies_between_posting_and_recording_posts_nothing_twice",  # below, with the ledger of the store
    "test_nobody_there_and_nothing_set_are_said",  # the same for every ledger
    "test_an_export_holds_few_notes_at_a_time",  # is about this process's memory, and is slow
    "test_many_lines_are_kept_with_progress_and_come_out_as_they_went_in",  # is slow
}
_HOMES = {"settings", "ledger"}  # fixtures of the SQLite ledger: tests with these are about its file
_HTTP_TESTS = (
    test_http_walk, test_http_writes, test_http_github, test_http_mcp, test_http_platform_keys, test_http_generated_client,
)  # fmt: skip
for _room in _HTTP_TESTS:
    for _name, _test in vars(_room).items():
        if _name.startswith("test_") and _name not in _ELSEWHERE and _HOMES.isdisjoint(inspect.signature(_test).parameters):
            globals()[_name] = _test


@pytest.fixture
def gateway(home, postgres_url, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    home.mkdir(mode=0o700)
    with run_gateway(home) as one:
        yield one


@contextmanager
def on_store(home, url, **sections):
    """The gateway of a home whose settings name a store."""
    home.mkdir(mode=0o700, exist_ok=True)
    said = {"store": {"url": url}, **sections}
    lines = [f"{name}.{key} = {json.dumps(value)}\n" for name, one in said.items() for key, value in one.items()]
    (home / "config.toml").write_text("".join(lines))
    with run_gateway(home) as one:
        yield one
    close_pools(url)


def holdfast(*words, **given):
    done = subprocess.run([*HOLDFAST, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- a running process ------------------------------------------------------------------------------------------------


@pytest.mark.promise("A4")
@pytest.mark.promise("A7")
def test_a_platform_walks_through_a_process_that_made_its_own_schema(home, tmp_path, empty_postgres_url):
    store = ("--store", empty_postgres_url)
    with started(home, tmp_path, "--json", *store) as one:
        operator = Client(one.port, one.token)
        of_home = ("--home", str(home), *store, "--json")
        made = {
            role: Client(one.port, holdfast("agent", "add", role, "--role", role, *of_home, cwd=tmp_path)["token"])
            for role in ("code-review-engineer", "secretary")
        }
        agent, secretary = made.values()
        assert [agent.post("/gateway/memory", PAIR).json["action"] for _ in range(2)] == ["created", "unchanged"]
        assert [row["value"] for row in agent.get("/gateway/memory").json["memory"]] == ["Harbour words."]
        assert Client(one.port).get("/gateway/memory").code == "unauthenticated"
        assert Client(one.port, "hf_12345678_" + "a" * 43).get("/gateway/memory").status == 401
        assert (secretary.post("/gateway/memory", PAIR).code, secretary.get("/gateway/memory").status) == ("denied", 403)
        assert agent.post("/gateway/memory", {"key": "", "value": "x"}).status == 422
        rows = operator.get("/audit").json["audit"]
        told = {(row["agent"], row["action"], row["outcome"], row["metadata"]["role"]) for row in rows}
        assert ("code-review-engineer", "agent.memory.write", "allowed", "code-review-engineer") in told
        assert ("secretary", "agent.memory.write", "denied", "secretary") in told
        assert operator.get("/audit/verify").json["ok"] is True
        assert holdfast("audit", "verify", *of_home, cwd=tmp_path)["ok"] is True
        allowed = holdfast("audit", "list", "--outcome", "allowed", *of_home, cwd=tmp_path)["entries"]
        assert allowed[0]["action"] == "audit.read"
        assert one.ask.get("/readyz").json == {"status": "ok"}
        assert one.stop() == 0
        assert empty_postgres_url not in "".join(one.log)
    kept = [path.name for path in home.rglob("*") if path.is_file()] if home.exists() else []
    assert not {"ledger.db", "index.db", "harbour.md"} & set(kept)


@pytest.mark.promise("A1")
@pytest.mark.promise("A7")
def test_two_replicas_agree_at_once(home, tmp_path, postgres_url):
    with started(home, tmp_path, "--json", "--store", postgres_url) as one:
        token = one.token
        with started(tmp_path / "other", tmp_path, "--json", "--store", postgres_url) as two:
            here, there = Client(one.port, token), Client(two.port, token)
            mine = Client(one.port, here.post("/agents", {"name": "a", "role": "code-review-engineer"}).json["token"])
            also = Client(two.port, mine.token)
            assert mine.post("/v1/notes", {"text": "The harbour closes at nine.", "scope": "agent"}).status == 201
            hits = also.post("/v1/recall", {"query": "harbour", "mode": "keyword"}).json["hits"]
            assert [hit["text"] for hit in hits] == ["The harbour closes at nine."]
            deed = {"kind": "triage", "subject": "acme/shop#7"}
            assert [here.post("/done", deed).json["recorded"], there.post("/done", deed).json["recorded"]] == [True, False]
            said = [client.post("/gateway/memory", PAIR, Idempotency_Key="one") for client in (mine, also)]
            assert said[1].headers["idempotency-replayed"] == "true" and said[0].json == said[1].json
            for number in range(3):  # added by one replica and revoked by the other, each time effective with the next request
                client = Client(two.port, here.post("/agents", {"name": f"b{number}", "role": "secretary"}).json["token"])
                assert client.get("/gateway/memory").code == "denied"
                assert here("DELETE", f"/agents/b{number}").json["state"] == "revoked"
                assert client.get("/gateway/memory").code == "unauthenticated"
            assert there.get("/audit/verify").json["ok"] is True
            assert (one.stop(), two.stop()) == (0, 0)
            assert "token_file" not in json.loads(two.said[0]) and not (tmp_path / "other" / "operator-token").exists()


@pytest.mark.battery
@pytest.mark.promise("A1")
@pytest.mark.promise("A7")
def test_ten_replicas_start_at_once_on_an_empty_database_and_one_writes_the_operators_token(tmp_path, empty_postgres_url):
    words = [*HOLDFAST, "serve", "--port", "0", "--json", "--store", empty_postgres_url, "--home"]
    ten = [
        subprocess.Popen([*words, str(tmp_path / f"home{one}")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for one in range(10)
    ]
    try:
        said = [json.loads(one.stdout.readline()) for one in ten]
        (written,) = [one["token_file"] for one in said if "token_file" in one]
        assert [str(path) for path in tmp_path.glob("home*/operator-token*")] == [written]
        shown = Path(written).read_text().strip()
        for one in (said[0], said[9]):
            port = int(one["url"].rpartition(":")[2])
            assert Client(port, shown).get("/gateway/memory").status == 200
    finally:
        for one in ten:
            one.terminate()
        assert [one.wait(60) for one in ten] == [0] * 10
        for one in ten:
            one.stdout.close()


# --- tenants ----------------------------------------------------------------------------------------------------------


def in_tenant(gateway, tenant, name, role="operator"):
    """Return a client of an agent in a tenant of this gateway's store."""
    gate = AccessGate(config.load(gateway.home).replace(tenant=tenant))
    try:
        return Client(gateway.port, gate.add(name, role)[1])
    finally:
        gate.close()


def fill(operator):
    """Store data of every kind; return the id of a receipt."""
    for scope in ("agent", "project", "global", "session"):
        note = {"text": f"Crimson words in {scope}.", "key": "harbour", "scope": scope}
        assert operator.post("/v1/notes", note, **WHOSE).status == 201
    web = {"text": "Crimson words of a page.", "key": "page", "scope": "agent", "made_from": ["https://blog.example/post"]}
    assert operator.post("/v1/notes", web).status == 201
    fact = {"subject": "Ada", "label": "works_at", "value": "[[Bob]]", "on": "2026-03-27", "scope": "agent"}
    assert operator.post("/v1/facts", fact).status in (200, 201)
    said = {"turns": [{"role": "user", "text": "Crimson turns.", "id": "t1"}], "session": "s1", "scope": "agent"}
    assert operator.post("/v1/history", said).status in (200, 201)
    for path, body in {
        "/done": {"kind": "triage", "subject": "x"}, "/agents": {"name": "reviewer", "role": "secretary"},
        "/v1/files/create": {"path": "/memories/x.md", "file_text": "Crimson file.", "scope": "agent"},
    }.items():  # fmt: skip
        assert operator.post(path, body).status in (200, 201), path
    operator.post("/v1/notes", {"text": "Crimson and purged.", "key": "gone", "scope": "agent"})
    return operator.post("/v1/notes/agent/gone/purge").json["id"]


def asked_of(client, route, receipt, agent=None):
    """Send one request of a route, about data of another tenant."""
    path = route.path.replace("{scope}", "agent").replace("{key}", "harbour").replace("{name}", "reviewer")
    path = path.replace("{id}", receipt)
    body = None if route.reads is None else {**(route.example or {})}
    query = [f"{name}={ASKS[name]}" for name in route.required_fields if name in route.query_fields]
    if agent and body is not None and route.reads != NDJSON:
        body["agent"] = agent
    elif agent:
        query.append(f"agent={agent}")
    kind = route.reads if body is not None else None
    return client(route.method, "?".join([path, "&".join(query)]) if query else path, body, Content_Type=kind, **WHOSE)


_CHANGING = re.compile(
    r"hf_[0-9a-z]{8}_[\w-]{43}|\b\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d{8}T\d{6}\w*|\b[0-9a-f]{16,64}\b|\b01[0-9A-Z]{14}\b"
    r'|"(?:token|new_token|id)":"\w{8}"|"(?:number|seconds|cursor|next|marked)":"?[\d.]+"?'
)


def plainly(said):
    """Return an answer without the values that differ each time."""
    return said.status, said.headers.get("content-type"), _CHANGING.sub("~", said.data.decode("utf-8", "replace"))


@pytest.mark.promise("A7")
def test_with_another_tenants_ids_every_route_answers_as_if_nothing_was_there(tmp_path, postgres_databases, postgres_url):
    empty = postgres_databases.fresh()
    quick = {"serve": {"rate": 0}}
    with on_store(tmp_path / "full", postgres_url, **quick) as full, on_store(tmp_path / "bare", empty, **quick) as bare:
        red = in_tenant(full, "red", "operator")
        receipt = fill(red)
        before = [plainly(red.get(path)) for path in ("/v1/notes", "/agents", "/v1/receipts", "/done")]
        blue, control = in_tenant(full, "blue", "operator"), in_tenant(bare, "blue", "operator")
        for route in [one for one in ROUTES if one.action]:
            for agent in (None, "reviewer") if route.may_name_agent else (None,):
                said, nothing = (asked_of(client, route, receipt, agent) for client in (blue, control))
                assert plainly(said) == plainly(nothing), route.name
                assert said.status < 500 or said.code in ("unreached", "usage", "config"), route.name
                assert b"rimson" not in said.data and b'"red"' not in said.data, route.name
        assert [plainly(red.get(path)) for path in ("/v1/notes", "/agents", "/v1/receipts", "/done")] == before
        assert red.get("/audit/verify").json["ok"] and blue.get("/audit/verify").json["ok"]
        assert {row["tenant"] for row in blue.get("/audit?limit=500").json["audit"]} == {"blue"}
        rows = red.get("/audit?limit=500").json["audit"]
        assert {row["tenant"] for row in rows} == {"red"} and not [row for row in rows if row["outcome"] == "denied"]


@pytest.mark.promise("A7")
def test_tenants_have_agents_and_notes_of_the_same_names(gateway):
    clients = {name: in_tenant(gateway, name, "reviewer", "code-review-engineer") for name in ("red", "blue", "default")}
    for name, client in clients.items():
        assert client.post("/gateway/memory", {"key": "colour", "value": f"Mine is {name}."}).json["action"] == "created"
    for name, client in clients.items():
        assert [row["value"] for row in client.get("/gateway/memory").json["memory"]] == [f"Mine is {name}."]
        hits = client.post("/v1/recall", {"query": "mine colour", "mode": "keyword", "scope": "agent"}).json["hits"]
        assert [hit["text"] for hit in hits] == [f"Mine is {name}."]
    operator = in_tenant(gateway, "red", "chief")
    assert [one["name"] for one in operator.get("/agents").json["agents"]] == ["chief", "reviewer"]
    assert operator("DELETE", "/agents/reviewer").json["state"] == "revoked"
    assert [client.get("/gateway/memory").status for client in clients.values()] == [401, 200, 200]
    assert operator.get("/metrics").code == "denied"  # the counts of the process are about all tenants
    assert operator.get("/traffic").code == "denied"
    assert gateway.operator.get("/metrics").status == 200


@pytest.mark.promise("D1")
def test_the_check_tells_a_tenant_of_its_own_agents_and_audit_alone(gateway, postgres_url):
    operator = in_tenant(gateway, "red", "chief")
    gateway.add_role("gone", ["done.read"])
    for tenant in ("red", "blue", "default"):
        in_tenant(gateway, tenant, f"of-{tenant}", "gone")
    (gateway.home / "roles" / "gone.yaml").unlink()
    (gateway.home / "run").mkdir(mode=0o700, exist_ok=True)
    failure_log.write(
        str(gateway.home), client="of-blue", event="agents.manage", message="it was locked", fix="Try again", name="audit.log"
    )
    (mine,) = operator.get("/v1/check").json["problems"]
    assert mine["code"] == "agent" and "of-red" in mine["message"] and "--tenant red agent revoke of-red" in mine["fix"]
    told = {one["code"]: one["message"] for one in gateway.operator.get("/v1/check").json["problems"]}
    assert "of-default" in told["agent"] and "1 decision is" in told["audit"] and "of-red" not in str(told)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("UPDATE holdfast.agent_action_log SET agent = 'x' WHERE tenant = 'red' AND number = 2")
    broken = [one for one in operator.get("/v1/check").json["problems"] if one["code"] == "audit_chain"]
    assert "row 2 or the row before it was changed" in broken[0]["message"] and "--tenant red audit verify" in broken[0]["fix"]
    assert "audit_chain" not in [one["code"] for one in gateway.operator.get("/v1/check").json["problems"]]


@pytest.mark.promise("A1")
def test_the_command_line_makes_a_tenants_first_agent_and_lists_it_there_alone(home, tmp_path, postgres_url):
    store = ("--home", str(home), "--store", postgres_url, "--json")
    made = holdfast("agent", "add", "boss", "--role", "operator", "--tenant", "red", *store, cwd=tmp_path)
    assert made["agent"] == "boss" and made["token"].startswith("hf_")
    assert [one["agent"] for one in holdfast("agent", "list", "--tenant", "red", *store, cwd=tmp_path)] == ["boss"]
    assert holdfast("agent", "list", *store, cwd=tmp_path) == []
    assert holdfast("audit", "list", "--tenant", "red", *store, cwd=tmp_path)["entries"][0]["agent"] == "(local)"
    with on_store(home, postgres_url) as one:
        assert Client(one.port, made["token"]).get("/agents").status == 200


def test_completion_offers_the_agents_of_the_store(home, tmp_path, postgres_url):
    store = ("--home", str(home), "--store", postgres_url)
    holdfast("agent", "add", "boss", "--role", "operator", *store, "--json", cwd=tmp_path)
    command = [*HOLDFAST, *store, "_complete", "agent", "revoke", ""]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=True)
    assert done.stdout == "boss\toperator\n"


@pytest.mark.promise("N11")
def test_what_expired_is_archived_in_the_memory_of_every_tenant_that_asks(gateway, clock):
    now = time.time()
    settings = config.load(gateway.home)
    clock.set("2020-01-01T00:00:00Z")
    for tenant in ("red", "default"):
        with Memory(config=settings.replace(tenant=tenant), project="demo", origin="user") as memory:
            memory.store("Long ago.", key="old")
    clock.seconds = now
    for client in (in_tenant(gateway, "red", "chief"), gateway.operator):
        asked = "/v1/notes?scope=project&project=demo"
        wait_until(lambda: client.get(asked).json["notes"] == [])  # noqa: B023
        assert client.post("/v1/notes/project/old/restore", {"project": "demo"}).status == 200


# --- reviews ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A6")
def test_who_dies_between_posting_and_recording_posts_nothing_twice(home, github, tmp_path, postgres_url):  # noqa: F811
    code = f"""
from holdfast import config
from holdfast.server.github import Wanted, review
from holdfast.context.ledgers import open_ledger
settings = config.load({str(home)!r}).replace(github_api={github.url!r}, github_token={TOKEN!r}, store={postgres_url!r})
review(settings, open_ledger(settings), "reviewer", Wanted("acme", "shop", 7, "Looks good."))
"""
    github.plan = ["slow"]
    child = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    while not github.reviews:
        assert child.poll() is None
    child.kill()
    child.wait(60)
    settings = config.load(home).replace(github_api=github.url, github_token=TOKEN, store=postgres_url)
    ledger = open_ledger(settings)
    said = review(settings, ledger, "reviewer", Wanted("acme", "shop", 7, "Looks good."))
    assert said.posted is False and said.review_id == 80 and github.posts == 1
    assert ledger.reviews.exists("reviewer", "acme", "shop", 7)
    other = settings.replace(tenant="red")  # its agent of the same name has not reviewed it
    assert review(other, open_ledger(other), "reviewer", Wanted("acme", "shop", 7, "Looks good.")).posted is True


# --- a database that is slow, locked or gone --------------------------------------------------------------------------


@contextmanager
def head_held(url):
    """Lock the head of every chain from another process."""
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM holdfast.audit_head FOR UPDATE")
        yield


@pytest.mark.promise("A3")
def test_a_decision_that_cannot_be_written_down_stands_and_the_next_row_says_so(home, postgres_url):
    with on_store(home, postgres_url, lock={"seconds": 1}) as one:
        agent, secretary = one.agent("a"), one.agent("typist", "secretary")
        with head_held(postgres_url):
            assert agent.post("/gateway/memory", PAIR).status == 200
            assert secretary.post("/gateway/memory", PAIR).code == "denied"
            assert one.operator.get("/v1/export").code == "unrecorded"
        assert agent.get("/gateway/memory").json["memory"][0]["value"] == "Harbour words."
        row = one.operator.get("/audit?agent=a&limit=1").json["audit"][0]
        assert row["action"] == "agent.memory.read" and row["metadata"]["unrecorded"] == 3
        assert "holdfast_audit_unrecorded_total 3" in one.operator.get("/metrics").data.decode()
        assert one.operator.get("/audit/verify").json["ok"] is True


@contextmanager
def refusing(url, change, table, when="true"):
    """Make the database reject this kind of change of a table."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'")
        owner.execute(f"CREATE TRIGGER refuse BEFORE {change} ON holdfast.{table} FOR EACH ROW WHEN ({when}) "
                      "EXECUTE FUNCTION public.refuse()")  # fmt: skip
        try:
            yield
        finally:
            owner.execute("DROP FUNCTION public.refuse() CASCADE")


@pytest.mark.promise("A3")
@pytest.mark.parametrize(("method", "path", "body", "verb"), CHANGES)
def test_a_change_of_tokens_and_its_row_are_both_there_or_neither(gateway, postgres_url, method, path, body, verb):
    gateway.agent("a")
    change = (method, path, body)
    says = f'new.metadata LIKE \'%"verb":"{verb}"%\''
    for table, when in (("agent_action_log", says), ("tokens", "true")):
        where = "UPDATE" if (table, verb) == ("tokens", "revoke") else "INSERT"
        said, rows = changes_of_tokens(gateway, refusing(postgres_url, where, table, when), verb, change)
        assert said.status >= 500
        assert [(row.get("verb"), row["failed"]) for row in rows] == [(None, said.json["code"])], table
    said, rows = changes_of_tokens(gateway, refusing(postgres_url, "INSERT", "agent_action_log"), verb, change)
    assert (said.status, said.code) == (503, "unrecorded") and rows == []
    assert gateway.operator(*change).status in (200, 201)
    told = [row["metadata"] for row in gateway.operator.get("/audit?agent=operator").json["audit"]]
    assert [row["verb"] for row in told if "verb" in row] == [verb]


@pytest.mark.promise("A3")
def test_in_strict_mode_nothing_is_done_that_cannot_be_written_down(home, postgres_url):
    with on_store(home, postgres_url, lock={"seconds": 1}, audit={"mode": "strict"}) as one:
        agent = one.agent("a")
        with head_held(postgres_url):
            said = agent.post("/gateway/memory", PAIR)
            assert (said.status, said.code) == (503, "unrecorded") and int(said.headers["retry-after"]) >= 1
        assert agent.get("/gateway/memory").json == {"memory": []}
        assert agent.post("/gateway/memory", PAIR).status == 200


@pytest.fixture
def own_server():
    """A server that only this test may stop."""
    with postgres_server.cluster() as server:
        yield server


def test_where_no_token_can_be_looked_up_it_is_not_ready(home, postgres_url):
    with on_store(home, postgres_url, lock={"seconds": 1}) as one, psycopg.connect(postgres_url) as other:
        assert one.anonymous.get("/readyz").status == 200
        other.execute("LOCK TABLE holdfast.tokens IN ACCESS EXCLUSIVE MODE")
        wait_until(lambda: one.anonymous.get("/readyz").status == 503)
        other.rollback()
        wait_until(lambda: one.anonymous.get("/readyz").status == 200)


@pytest.mark.promise("A3")
@pytest.mark.promise("A7")
@pytest.mark.parametrize("mode", tiered(["best-effort", "strict"], fast=["strict"]))
def test_a_database_that_goes_away_is_told_as_that_and_when_it_is_back_all_goes_on(home, own_server, mode):
    url = postgres_server.Databases(own_server).fresh()
    with on_store(home, url, lock={"seconds": 3}, audit={"mode": mode}) as one:
        agent = one.agent("a")
        assert agent.post("/gateway/memory", PAIR).status == 200 and one.anonymous.get("/readyz").status == 200
        said = []
        other = psycopg.connect(url)
        other.execute("SELECT * FROM holdfast.shelf_folder FOR UPDATE")
        late = threading.Thread(target=lambda: said.append(agent.post("/gateway/memory", {**PAIR, "value": "Late words."})))
        late.start()
        wait_until(lambda: other.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone())
        own_server.kill()  # while a write is in progress, and waits
        late.join(60)
        other.close()
        assert said[0].status == 503 and said[0].code in ("busy", "unsure") and int(said[0].headers["retry-after"]) >= 1
        wait_until(lambda: one.anonymous.get("/readyz").status == 503)
        assert one.anonymous.get("/healthz").status == 200
        for asked in (
            lambda: agent.get("/gateway/memory"), lambda: agent.post("/gateway/memory", PAIR),
            lambda: agent.post("/v1/recall", {"query": "harbour", "scope": "agent"}), lambda: one.operator.get("/audit"),
        ):  # fmt: skip
            answer = asked()
            assert (answer.status, answer.code) == (503, "busy") and int(answer.headers["retry-after"]) >= 1
            assert not [word for word in (str(own_server.port), "127.0.0.1", "Traceback") if word in answer.data.decode()]
        own_server.start()
        wait_until(lambda: one.anonymous.get("/readyz").status == 200)
        assert agent.get("/gateway/memory").json["memory"][0]["value"] == "Harbour words."
        assert agent.post("/gateway/memory", {**PAIR, "value": "New words."}).json["action"] == "updated"
        assert one.operator.get("/audit/verify").json["ok"] is True
    ledger = open_ledger(config.load(home))
    assert verify(ledger.audit).ok
    close_pools(url)
