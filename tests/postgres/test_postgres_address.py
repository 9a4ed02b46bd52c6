"""Messages for people whose PostgreSQL is not as Holdfast needs it: its address, its pgvector, its replica."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess

import postgres_server
import pytest
from http_gateway import Client
from mcp_raw import HOLDFAST
from postgres_server import TRIAL_SQL as SQL
from postgres_server import database_name, put
from test_http_serve import started

from holdfast import AsyncMemory, ConfigError, Memory, NotFound, UsageError, config
from holdfast.context.ledgers import open_ledger
from holdfast.postgres import Database, PostgresSettings, migrate, newest_version, replica_problem
from holdfast.postgres.migrations import list_migrations
from holdfast.postgres.pool import close_pools, get_pool


@pytest.fixture
def open_at(tmp_path):
    """Open a person's memory in a store."""
    every = []

    def open_(url, **settings):
        given = config.load(tmp_path / "home").replace(store=url, **{"embedder": "static", **settings})
        every.append(Memory(config=given, project="demo", cwd=tmp_path, origin="user"))
        return every[-1]

    yield open_
    for memory in every:
        memory.close()


@pytest.fixture
def owned(empty_postgres_url, postgres_databases):
    """A database whose schema owner is not a superuser, migrated without pgvector: its name and the owner's address."""
    server, name = postgres_databases.server, database_name(empty_postgres_url)
    for role in ("keeper LOGIN", "holdfast_app"):
        server.sql(f"DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    server.sql("GRANT holdfast_app TO keeper")
    server.sql("CREATE SCHEMA holdfast AUTHORIZATION keeper", name)
    url = server.url(name, "keeper")
    assert len(migrate(url)) == len(list_migrations())
    yield name, url
    close_pools(url)


def holdfast(tmp_path, *words, **settings):
    environment = {"HOME": str(tmp_path), "HOLDFAST_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], **settings}
    return subprocess.run([*HOLDFAST, *words], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120)


# --- pgvector ---------------------------------------------------------------------------------------------------------


def test_pgvector_that_is_not_created_is_named_with_what_mends_it_and_migrate_sees_it_when_it_is(
    owned, open_at, postgres_databases, tmp_path
):
    name, url = owned
    memory = open_at(url)
    memory.store("The harbour opens at seven.", key="harbour")
    reason = memory.recall("harbour").reason
    assert "on the PostgreSQL server, but not created in this database" in reason
    (problem,) = [one for one in memory.check() if one.code == "vectors"]
    assert "not created in this database" in problem.message and "not created" in memory.status().degraded
    done = holdfast(tmp_path, "migrate", "--store", url)
    assert done.returncode == 0 and "Nothing to migrate" in done.stdout + done.stderr and "not created" in done.stderr
    create, then = re.findall("`([^`]+)`", problem.fix)
    postgres_databases.server.sql(create, name)
    (problem,) = [one for one in memory.check() if one.code == "vectors"]
    assert "the tables were made without it" in problem.message and then in problem.fix
    done = holdfast(tmp_path, *then.split()[1:], "--store", url, "--json")
    assert json.loads(done.stdout) == {"applied": ["vectors"], "version": newest_version(), "without_vectors": ""}
    assert migrate(url) == []
    found = open_at(url).recall("harbour")  # a process that has just found none checks again later
    assert (found.mode, found.degraded) == ("hybrid", False)
    assert not [one for one in memory.check() if one.code == "vectors"] and memory.status().degraded == ""


def test_whoever_opens_the_store_makes_the_vectors_when_pgvector_came_and_it_may(owned, open_at, postgres_databases):
    name, url = owned
    open_at(url).store("The harbour opens at seven.", key="harbour")
    close_pools(url)
    postgres_databases.server.sql("CREATE EXTENSION vector SCHEMA public", name)
    found = open_at(f"{url}?application_name=later").recall("harbour")  # another address: as another process opens it
    assert (found.mode, found.degraded) == ("hybrid", False)
    close_pools(f"{url}?application_name=later")


def test_a_login_that_may_not_make_the_vectors_goes_on_with_words_and_says_who_makes_them(owned, open_at, postgres_databases):
    server, (name, url) = postgres_databases.server, owned
    server.sql("CREATE EXTENSION vector SCHEMA public", name)
    server.sql("DO $$ BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    server.sql("GRANT holdfast_app TO clerk")
    clerk = server.url(name, "clerk")
    try:
        memory = open_at(clerk)
        memory.store("The harbour opens at seven.", key="harbour")
        assert memory.recall("harbour").mode == "keyword"
        with pytest.raises(ConfigError, match="as the owner of the schema"):
            migrate(clerk)
        migrate(url)
        assert open_at(clerk).recall("harbour").mode == "hybrid"
        assert migrate(clerk) == []  # no permission is missing any more
    finally:
        close_pools(clerk)
        server.sql("REVOKE holdfast_app FROM clerk")


@pytest.mark.parametrize(
    ("state", "what"),
    [
        ((None, None, None, False, False), "not installed on the PostgreSQL server"),
        (("0.8.0", "0.8.0", "extras", False, False), "in the schema extras"),
        (("0.6.0", "0.6.0", "public", False, False), "older than 0.7"),
    ],
)
def test_what_else_pgvector_can_lack_is_told_apart(state, what):
    from holdfast.postgres.checks import VectorSupport, describe_vector_problem

    said, fix = describe_vector_problem(VectorSupport(*state))
    assert what in said and "holdfast migrate" in fix


def test_who_wants_no_vectors_hears_nothing_of_pgvector(owned, open_at):
    memory = open_at(owned[1], embedder="none")
    assert not [one for one in memory.check() if one.code == "vectors"] and memory.status().degraded == ""


def test_an_address_where_no_server_answers_is_answered_with_the_setting(tmp_path):
    url = f"postgresql://x:hunter2@127.0.0.1:{postgres_server.free_port()}/y?connect_timeout=2"
    said = holdfast(tmp_path, "recall", "harbour", "--json", HOLDFAST_STORE=url)
    assert said.returncode == 4 and "hunter2" not in said.stdout + said.stderr
    assert json.loads(said.stdout)["fix"] == "Try again in a moment, or correct store.url (HOLDFAST_STORE)"


# --- a replica --------------------------------------------------------------------------------------------------------


def test_a_replica_that_is_away_shut_or_another_database_is_named_by_a_check(open_at, postgres_url, postgres_databases):
    server = postgres_databases.server
    away = f"postgresql://x:hunter2@127.0.0.1:{postgres_server.free_port()}/y"
    found = {}
    for read_url in (postgres_url, away, server.url("no_such"), server.url("postgres"), f"{postgres_url}?sslmode=bogus"):
        memory = open_at(postgres_url, store_read=read_url)
        memory.store("The harbour opens at seven.", key="harbour")
        assert [hit.key for hit in memory.recall("harbour", mode="keyword")] == ["harbour"]
        found[read_url] = [f"{one.message}. {one.fix}" for one in memory.check() if one.code == "replica"]
        close_pools(read_url)
    right, none, shut, other, mistaken = found.values()
    assert right == []
    assert "replica cannot be reached" in none[0] and "database cannot be reached" in none[0] and "hunter2" not in none[0]
    assert "does not exist on the server" in shut[0] and "store.read_url" in shut[0] and "no_such" not in shut[0]
    assert "not a replica of store.url" in other[0] and "sslmode in store.read_url" in mistaken[0]


@pytest.mark.battery
def test_a_server_that_is_full_or_away_is_a_problem_that_a_check_lists(open_at, postgres_url, postgres_databases):
    server, login = postgres_databases.server, f"guest_{database_name(postgres_url)}"
    server.sql(f"CREATE ROLE {login} LOGIN")
    try:
        server.sql(f"GRANT holdfast_app TO {login}")
        memory = open_at(server.url(database_name(postgres_url), login), store_read=postgres_url)
        memory.store("The harbour opens at seven.", key="harbour")
        server.sql(f"ALTER ROLE {login} CONNECTION LIMIT 1")  # the memory has it already
        (problem,) = [one for one in memory.check() if one.code == "replica"]
        assert "cannot be told" in problem.message and problem.fix
    finally:
        memory.close()
        close_pools(server.url(database_name(postgres_url), login))
        server.sql(f"DROP ROLE {login}")
    away = open_at(f"postgresql://x:hunter2@127.0.0.1:{postgres_server.free_port()}/y")
    told = [one for one in away.check() if one.code == "store"]
    assert len(told) == 1 and "cannot be reached" in told[0].message and "hunter2" not in str(told)


@pytest.mark.battery
def test_a_replica_that_was_promoted_is_named_too():

    with postgres_server.temporary_folder() as folder:
        primary, standby = postgres_server.Server(folder / "one").make().start(), postgres_server.Server(folder / "two")
        try:
            standby.follow(primary, "two").start()
            store = PostgresSettings(url=primary.url(), read_url=standby.url())
            assert replica_problem(store) == ("", "")
            standby.promote()
            assert "no longer follows a primary" in replica_problem(store)[0]
        finally:
            standby.stop("immediate")
            primary.stop("immediate")


def test_a_replica_that_is_out_is_logged_once_and_once_when_it_is_back(open_trial, postgres_databases, caplog):
    server = postgres_databases.server
    server.sql("DROP ROLE IF EXISTS late")
    read_url = server.url(database_name(open_trial().settings.url), "late")
    trial = open_trial(read_url=read_url)
    put(trial, 1)
    pool = get_pool(trial.settings, "read")

    def ask():
        pool._avoid_until = 0.0  # as after its time limit
        with trial.read_transaction(replica=True):
            assert trial.rows("all") == [("a", 1)]

    try:
        with caplog.at_level(logging.WARNING, "holdfast.postgres"):
            ask(), ask()
            assert len(caplog.messages) == 1 and "store.read_url" in caplog.text and "late" not in caplog.text
            server.sql("CREATE ROLE late LOGIN IN ROLE holdfast_app")
            ask(), ask()
            assert len(caplog.messages) == 2 and "is used again" in caplog.messages[1]
    finally:
        close_pools(read_url)
        server.sql("DROP ROLE IF EXISTS late")


def test_a_replica_on_a_server_that_knows_nothing_of_us_is_passed_over(open_trial, tmp_path):
    with postgres_server.cluster() as other:
        trial = open_trial(read_url=other.url())
        put(trial, 1)
        with trial.read_transaction(replica=True):
            assert trial.rows("all") == [("a", 1)]
        close_pools(other.url())


def test_a_replica_of_nothing_is_refused(home, tmp_path):
    settings = config.load(home, {"HOLDFAST_STORE_READ": "postgresql://h/d"})
    for work in (lambda: Memory(config=settings, cwd=tmp_path), lambda: open_ledger(settings)):
        with pytest.raises(ConfigError, match=r"store\.read_url.*HOLDFAST_STORE_READ"):
            work()
    Memory("http://127.0.0.1:9", token="hf_x", config=settings).close()  # a caller of a gateway uses no store
    done = holdfast(tmp_path, "list", HOLDFAST_STORE_READ="postgresql://h/d")
    assert done.returncode == ConfigError.exit_code and "HOLDFAST_STORE_READ" in done.stderr


# --- an address -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mistake",
    ["sslmode=bogus", "connect_timeout=abc", "keepalives_idle=x", "target_session_attrs=foo", "service=zz", "hostaddr=a,b"],
)
def test_a_mistake_in_the_address_is_told_at_once_and_its_value_is_not(postgres_url, mistake):
    name, _, value = mistake.partition("=")
    for work in (lambda url: Database(PostgresSettings(url=url), SQL, 600).rows("all"), migrate):
        with pytest.raises(ConfigError, match=name) as caught:
            work(f"{postgres_url}?{mistake}")
        assert f'"{value}"' not in str(caught.value) and f"'{value}'" not in str(caught.value)


def test_a_port_that_there_is_not_is_told_at_once():
    with pytest.raises(ConfigError, match="port"):
        Database(PostgresSettings(url="postgresql://x@127.0.0.1:99999/y"), SQL, 600).rows("all")


# --- for Python -------------------------------------------------------------------------------------------------------


def test_the_address_of_a_store_is_a_home(postgres_url, tmp_path, home, monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setenv("HOLDFAST_STORE_READ", "postgresql://of-another/store")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")
    with Memory(postgres_url, project="demo", agent="ada", cwd=tmp_path) as memory:
        memory.store("The harbour opens at seven.", key="harbour", scope="agent")
        assert memory.config.embedder == "none" and memory.config.store_read is None and memory.home == str(home)
    with Memory(postgres_url, project="demo", agent="bob", cwd=tmp_path) as memory:
        assert not list(memory.recall("harbour"))

    async def asked():
        async with AsyncMemory(postgres_url, project="demo", agent="ada", cwd=tmp_path) as memory:
            return [hit.key for hit in await memory.recall("harbour")]

    assert asyncio.run(asked()) == ["harbour"]
    with pytest.raises(UsageError, match="token"):
        Memory(postgres_url, token="hf_x")
    with pytest.raises(ConfigError, match="--store"):
        config.find_home(postgres_url)


# --- in every interface -----------------------------------------------------------------------------------------------


def test_the_audit_of_a_tenant_that_never_was_is_not_sound_but_not_there(postgres_url, tmp_path):
    with Memory(config=config.load(tmp_path / "home").replace(store=postgres_url, tenant="acme"), cwd=tmp_path) as memory:
        memory.store("The harbour opens at seven.", key="harbour", scope="global")
    words = ("audit", "verify", "--store", postgres_url, "--tenant")
    asked = {tenant: holdfast(tmp_path, *words, tenant) for tenant in ("acme", "acne")}
    assert (asked["acme"].returncode, asked["acne"].returncode) == (0, NotFound.exit_code)
    assert "'acne'" in asked["acne"].stderr and "sound" not in asked["acne"].stdout
    assert holdfast(tmp_path, "audit", "verify", "--store", postgres_url).returncode == 0  # a new database has no problem


def test_migrate_by_a_login_that_may_not_finds_nothing_to_do_where_all_is_done(postgres_url, postgres_databases, tmp_path):
    server = postgres_databases.server
    server.sql("DO $$ BEGIN CREATE ROLE usher LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    server.sql("GRANT holdfast_app TO usher")
    done = holdfast(tmp_path, "migrate", "--store", server.url(database_name(postgres_url), "usher"))
    assert done.returncode == 0 and "Nothing to migrate" in done.stdout + done.stderr


def test_a_gateway_logs_the_replica_that_it_goes_without_and_its_check_names_it(postgres_url, home, tmp_path):
    away = f"postgresql://x:hunter2@127.0.0.1:{postgres_server.free_port()}/y"
    with started(home, tmp_path, "--json", "--store", postgres_url, "--read-store", away) as gateway:
        client = Client(gateway.port, gateway.token)
        assert client.post("/v1/notes", {"text": "The harbour opens at seven.", "scope": "global"}).status == 201
        for _ in range(3):
            assert client.post("/v1/recall", {"query": "harbour", "mode": "keyword"}).json["hits"]
        (problem,) = [one for one in client.get("/v1/check").json["problems"] if one["code"] == "replica"]
        assert "cannot be reached" in problem["message"] and "store.read_url" in problem["fix"]
        gateway.stop()
        told = [line for line in "".join(gateway.log).splitlines() if "replica" in line]
    assert len(told) == 1 and json.loads(told[0])["level"] == "warning" and "hunter2" not in "".join(gateway.log)


# --- the login --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option, why", [("SUPERUSER", "is a superuser"), ("BYPASSRLS", "has BYPASSRLS"), ("NOBYPASSRLS", "")])
def test_doctor_warns_of_a_login_that_row_level_security_does_not_bind(
    postgres_url, postgres_databases, home, tmp_path, option, why
):
    server, login = postgres_databases.server, f"login_{option.lower()}_{database_name(postgres_url)}"
    server.sql(f"CREATE ROLE {login} LOGIN {option}")
    url = server.url(database_name(postgres_url), login)
    try:
        server.sql(f"GRANT holdfast_app TO {login}")
        told = json.loads(holdfast(tmp_path, "doctor", "--json", "--home", str(home), "--store", url).stdout)["problems"]
        found = [(one["message"], one["fix"]) for one in told if one["code"] == "login"]
        with started(home, tmp_path, "--json", "--store", url) as gateway:
            over_http = Client(gateway.port, gateway.token).get("/v1/check").json["problems"]
        assert [(one["message"], one["fix"]) for one in over_http if one["code"] == "login"] == found
        if not why:
            assert found == []
        else:
            ((message, fix),) = found
            assert login in message and why in message and "postgres-roles.sql" in fix
    finally:
        close_pools(url)
        server.sql(f"DROP ROLE {login}")
