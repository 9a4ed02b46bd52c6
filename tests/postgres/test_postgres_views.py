"""The views of `holdfast_views`: the columns that platforms expect, and each reader sees only its own rows."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest
from http_gateway import run_gateway
from postgres_server import database_name

from holdfast import Memory, config
from holdfast.access import AccessGate
from holdfast.api.key_value import KeyValueMemory
from holdfast.api.memory import context_of
from holdfast.context.ledgers import open_ledger
from holdfast.models import Scope
from holdfast.postgres import migrate

COLUMNS = {
    "agent_memory": {
        "agent_id": "text", "key": "text", "value": "text", "metadata": "jsonb", "created_at": "timestamp with time zone",
        "updated_at": "timestamp with time zone",
    },
    "agent_action_log": {
        "id": "bigint", "agent_id": "text", "action": "text", "outcome": "text", "metadata": "jsonb",
        "created_at": "timestamp with time zone",
    },
    "reviewed_prs": {
        "id": "bigint", "agent_id": "text", "owner": "text", "repo": "text", "pr_number": "bigint", "metadata": "jsonb",
        "created_at": "timestamp with time zone",
    },
}  # fmt: skip


@pytest.fixture
def reader(postgres_databases, postgres_url):
    """Read as the login of the service, `holdfast` of postgres-roles.sql, for one tenant and agent."""
    server, database = postgres_databases.server, database_name(postgres_url)
    server.sql("DO $$ BEGIN CREATE ROLE holdfast LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$", database)
    server.sql("GRANT holdfast_app TO holdfast", database)

    def read(statement, tenant="default", agent="*"):
        with psycopg.connect(server.url(database, "holdfast")) as db:
            for name, value in (("role", "holdfast_app"), ("holdfast.tenant", tenant), ("holdfast.agent", agent)):
                db.execute("SELECT set_config(%s, %s, true)", (name, value))
            return db.execute(statement).fetchall()

    return read


def open_memory(home, url, tenant, agent):
    return Memory(home, agent=agent, config=config.load(home).replace(store=url, tenant=tenant))


def store_pair(home, url, tenant, agent, key, value):
    with open_memory(home, url, tenant, agent) as memory:
        return KeyValueMemory(memory, "agent").store(key, value).pair.note


@pytest.mark.promise("A7")
@pytest.mark.parametrize("view", COLUMNS)
def test_a_view_has_the_columns_that_platforms_expect(reader, view):
    rows = reader(
        "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute"
        f" WHERE attrelid = 'holdfast_views.{view}'::regclass AND attnum > 0"
    )
    assert COLUMNS[view].items() <= dict(rows).items()


@pytest.mark.promise("A7")
def test_the_views_ask_as_whoever_reads_and_are_barriers(reader):
    options = reader("SELECT reloptions FROM pg_class WHERE relnamespace = 'holdfast_views'::regnamespace")
    assert len(options) == len(COLUMNS)
    assert all(set(row[0]) == {"security_invoker=true", "security_barrier=true"} for row in options)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader("DELETE FROM holdfast_views.reviewed_prs")


def test_agent_memory_has_the_keys_that_were_given_and_the_exact_values(home, postgres_url, reader):
    tricky = "A line\n\n<!-- holdfast:history -->\n## 2026-01-01 to 2026-02-02\n\\<!-- holdfast:history -->"
    values = {"BuildCmd": "make", "testing": "Use pytest.", 'say "hi"': tricky, "日本語": "はい", "a: b": "odd"}
    values |= {"blank lines": "\n\nA line\n\n\n", "crlf": "One\r\ntwo\r\n", "Ends so": "make\n"}
    notes = {key: store_pair(home, postgres_url, "default", "bot", key, value) for key, value in values.items()}
    for key, value in (("BuildCmd", "make all"), ("Ends so", "make all\n\n")):
        store_pair(home, postgres_url, "default", "bot", key, value)
        values[key] = value
    rows = reader("SELECT key, value, metadata, created_at, updated_at FROM holdfast_views.agent_memory", agent="bot")
    assert {row[0]: row[1] for row in rows} == values
    for key, _, metadata, created, updated in rows:
        assert metadata == {"note": notes[key].key, "id": notes[key].id, "type": "project"}
        assert created == datetime.fromisoformat(notes[key].created) and updated >= created


@pytest.mark.parametrize(
    "field", [b"name: buildcmd", b'name: "BuildCm', b"name: [a]", b'name: "\\u0000"', b"name:", b"owner: Ada"]
)
def test_a_note_edited_by_hand_breaks_no_view(home, postgres_url, reader, field):
    note = store_pair(home, postgres_url, "default", "bot", "BuildCmd", "make").key
    with open_memory(home, postgres_url, "default", "bot") as memory:
        store, scope = context_of(memory).store, Scope("agent", "bot")
        (content,) = store.read_notes([(scope, note)])
        data = content.data.replace(b"name: BuildCmd", field).replace(b"created: 2", b"created: 9999-99-99 2")
        store.write_note(scope, note, data, content.file_id)
        store.write_note(scope, "plain", b"No frontmatter.\n", None)
        store.write_note(scope, "odd", b"\xff\0 bytes", None)
    rows = reader("SELECT key, value, created_at FROM holdfast_views.agent_memory ORDER BY key", agent="bot")
    assert [row[:2] for row in rows] == [(note, "make"), ("odd", "\\377\\000 bytes"), ("plain", "No frontmatter.")]
    assert all(row[2] is not None for row in rows)


@pytest.mark.promise("A7")
def test_a_tenant_and_an_agent_see_only_their_own_rows(home, postgres_url, reader):
    for tenant in ("default", "acme"):
        settings = config.load(home).replace(store=postgres_url, tenant=tenant)
        gate = AccessGate(settings)
        ledger = open_ledger(settings)
        for agent in ("bot", "other"):
            store_pair(home, postgres_url, tenant, agent, "BuildCmd", f"make {tenant} {agent}")
            caller = gate.identify(gate.add(agent, "code-review-engineer")[1])
            gate.for_caller(caller).allow(caller, "agent.memory.read", route="GET /gateway/memory")
            ledger.reviews.record(agent, "acme", "shop", 7, holder="test", now=1_700_000_000)
        gate.close()
        ledger.close()
    for view in COLUMNS:
        statement = f"SELECT DISTINCT tenant, agent_id FROM holdfast_views.{view} WHERE agent_id IN ('bot', 'other')"
        assert reader(statement, "acme", "bot") == [("acme", "bot")]
        assert sorted(reader(statement, "acme", "*")) == [("acme", "bot"), ("acme", "other")]
        assert reader(statement, "", "*") == reader(statement, "acme", "") == reader(statement, "nobody", "*") == []
    (row,) = reader("SELECT owner, repo, pr_number, created_at, metadata FROM holdfast_views.reviewed_prs", "acme", "bot")
    assert row == ("acme", "shop", 7, datetime.fromtimestamp(1_700_000_000, UTC), {"repository": "acme/shop"})


def test_the_gateway_fills_the_action_log(home, postgres_url, reader, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    home.mkdir(mode=0o700)
    with run_gateway(home) as gateway:
        bot, clerk = gateway.agent("bot"), gateway.agent("clerk", "secretary")
        bot.post("/gateway/memory", {"key": "BuildCmd", "value": "make"})
        clerk.get("/gateway/memory")
    statement = "SELECT agent_id, action, outcome, metadata ->> 'role', created_at FROM holdfast_views.agent_action_log"
    assert [row[:4] for row in reader(statement, agent="bot")] == [
        ("bot", "agent.memory.write", "allowed", "code-review-engineer")
    ]
    assert [row[:4] for row in reader(statement, agent="clerk")] == [("clerk", "agent.memory.read", "denied", "secretary")]
    assert all(row[4].tzinfo is not None for row in reader(statement))


def test_an_owner_who_may_not_make_schemas_gets_the_views_once_the_schema_is_there(postgres_databases, empty_postgres_url):
    server, database = postgres_databases.server, database_name(empty_postgres_url)
    for role in ("limited LOGIN", "holdfast_app NOLOGIN"):
        server.sql(f"DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$", database)
    server.sql("GRANT holdfast_app TO limited", database)
    server.sql("CREATE SCHEMA holdfast AUTHORIZATION limited", database)
    url, views = server.url(database, "limited"), "SELECT count(*) FROM pg_views WHERE schemaname = 'holdfast_views'"
    assert "0011_platform_views" in migrate(url)
    assert server.sql(views, database) == [(0,)] and migrate(url) == []
    server.sql("CREATE SCHEMA holdfast_views AUTHORIZATION limited", database)
    assert migrate(url) == ["views"] and migrate(url) == []
    assert server.sql(views, database) == [(3,)]
