"""The basis of a store in PostgreSQL: migrations, named statements, transactions with tenant and agent, and locks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import postgres_server
import psycopg
import pytest
from postgres_server import TRIAL_SQL as SQL
from postgres_server import database_name, put

from holdfast import Memory
from holdfast.errors import Busy, ConfigError, Conflict, InvalidText, Trouble
from holdfast.postgres import Database, Lock, PostgresSettings, migrate, migrations, statements
from holdfast.postgres.pool import close_pools

# --- migrations ---------------------------------------------------------------------------------------------------------


@pytest.mark.battery
@pytest.mark.promise("A7")
def test_ten_processes_that_migrate_at_once_apply_each_step_once(empty_postgres_url, postgres_databases):
    code = "import sys; from holdfast.postgres import migrate; print(len(migrate(sys.argv[1])))"
    command, pipe = [sys.executable, "-c", code, empty_postgres_url], subprocess.PIPE
    started = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(10)]
    said = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * 10, said
    assert sum(int(out) for out, _ in said) == len(migrations.list_migrations())
    rows = postgres_databases.server.sql(
        "SELECT number FROM holdfast.migration ORDER BY number", database_name(empty_postgres_url)
    )
    assert [row[0] for row in rows] == [migration.number for migration in migrations.list_migrations()]
    assert migrate(empty_postgres_url) == []


@pytest.mark.promise("A7")
def test_a_migration_that_was_edited_is_refused(postgres_url, postgres_databases):
    postgres_databases.server.sql(
        "UPDATE holdfast.migration SET digest = 'other' WHERE number = 2", database_name(postgres_url)
    )
    with pytest.raises(ConfigError, match="differs from the one"):
        migrate(postgres_url)


def test_a_step_that_fails_leaves_nothing_of_itself(empty_postgres_url, postgres_databases, monkeypatch, tmp_path):
    shutil.copytree(migrations.FOLDER, tmp_path / "steps")
    (tmp_path / "steps" / "9999_wrong.sql").write_text("CREATE TABLE holdfast.half (tenant text); SELECT 1 / 0;")
    monkeypatch.setattr(migrations, "FOLDER", str(tmp_path / "steps"))
    with pytest.raises(Trouble):
        migrate(empty_postgres_url)
    server, name = postgres_databases.server, database_name(empty_postgres_url)
    assert server.sql("SELECT to_regclass('holdfast.half') IS NULL, max(number) < 9999 FROM holdfast.migration", name) == [
        (True, True)
    ]


def test_entry_files_that_were_catalogued_before_are_read_again_for_their_type(postgres_url, postgres_databases, tmp_path):
    server, name = postgres_databases.server, database_name(postgres_url)
    (step,) = Path(migrations.FOLDER).glob("*_entries.sql")
    with Memory(postgres_url, project="demo", cwd=tmp_path) as memory:
        for number in range(3):
            memory.files.create(f"{number}.md", "---\nname: Harbour\ntype: user\n---\nboats\n")
    server.sql("UPDATE holdfast.doc SET type = NULL", name)
    server.sql("UPDATE holdfast.passage SET type = NULL", name)
    with Memory(postgres_url, project="demo", cwd=tmp_path) as memory:
        assert len(memory.recall("boats", type="user", mode="keyword")) == 0
    server.sql(step.read_text(), name)
    with Memory(postgres_url, project="demo", cwd=tmp_path) as memory:
        assert len(memory.recall("boats", type="user", mode="keyword")) == 3
        assert [one.code for one in memory.check()] == ["no_overview"]  # the database's catalog is consistent again
    forced = "SELECT bool_and(relforcerowsecurity) FROM pg_class WHERE relname IN ('doc', 'folder', 'passage')"
    assert server.sql(forced, name) == [(True,)]


def test_notes_that_were_catalogued_before_are_read_again_for_their_facts(postgres_url, postgres_databases, tmp_path, clock):
    server, name = postgres_databases.server, database_name(postgres_url)
    (step,) = Path(migrations.FOLDER).glob("*_entries.sql")
    closed = "\n- [2026-01-01] colour: red (SUPERSEDED 2026-03-01)"
    with Memory(postgres_url, project="demo", cwd=tmp_path) as memory:
        memory.store(f"# Pier{closed}", key="pier")
        clock.forward(days=91)
        memory.retain()
        memory.store("# Door\n- [2026-01-01] colour: blue", key="door")
        memory.store(f"# Door{closed}", key="door")
        memory.store("no facts", key="plain")
    server.sql("UPDATE holdfast.fact SET valid_to = NULL, retired_by = NULL", name)  # as they were read before
    with Memory(postgres_url, project="demo", cwd=tmp_path) as memory:
        assert len(memory.facts()) == 2
    server.sql(step.read_text(), name)
    assert server.sql("SELECT key FROM holdfast.doc WHERE ctime = -1 ORDER BY key", name) == [("door",), ("pier",)]
    with Memory(postgres_url, project="demo", cwd=tmp_path) as memory:
        assert memory.facts() == [] and len(memory.facts(history=True)) == 2
        assert len(memory.history("door")) == 2 and memory.check() == []


def test_the_first_use_migrates(empty_postgres_url):
    assert Database(PostgresSettings(url=empty_postgres_url), SQL, 10).rows("who") == [("holdfast_app", "default", "")]


def test_a_login_that_may_not_migrate_is_told_who_does(empty_postgres_url, postgres_databases):
    server = postgres_databases.server
    server.sql("DO $$ BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    url = server.url(database_name(empty_postgres_url), "clerk")
    with pytest.raises(ConfigError, match="holdfast migrate"):
        Database(PostgresSettings(url=url), SQL, 10).rows("who")


def test_a_login_with_nothing_but_the_role_can_use_memory_and_nothing_else(open_trial, trial_url, postgres_databases):
    server, name = postgres_databases.server, database_name(trial_url)
    server.sql("DO $$ BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    url = server.url(name, "clerk")
    with pytest.raises(ConfigError, match="holdfast_app"):
        open_trial(url=url).rows("all")
    server.sql("GRANT holdfast_app TO clerk")
    try:
        clerk = open_trial(url=url)
        put(clerk, 1)
        assert clerk.rows("all") == [("a", 1)]
        with psycopg.connect(url) as raw:
            assert raw.execute("SELECT count(*) FROM holdfast.trial").fetchone() == (0,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                raw.execute("SELECT * FROM holdfast.migration")
        assert clerk.vacuum(["trial"]) == ""
    finally:
        close_pools(url)
        server.sql("REVOKE holdfast_app FROM clerk")


def test_an_owner_who_may_make_roles_and_is_no_superuser_migrates_and_then_uses_it():
    """On a server of its own: the role must not be there yet."""
    with postgres_server.cluster() as server:
        server.sql("CREATE ROLE builder LOGIN CREATEROLE NOSUPERUSER")
        server.sql("CREATE DATABASE theirs OWNER builder")
        url = server.url("theirs", "builder")
        assert len(migrate(url)) == len(migrations.list_migrations())
        assert Database(PostgresSettings(url=url), SQL, 10).rows("who") == [("holdfast_app", "default", "")]
        close_pools(url)


def test_the_owner_of_the_schema_needs_no_right_to_make_schemas(empty_postgres_url, postgres_databases):
    server, name = postgres_databases.server, database_name(empty_postgres_url)
    server.sql("DO $$ BEGIN CREATE ROLE tenant_of_it LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    server.sql("DO $$ BEGIN CREATE ROLE holdfast_app; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    server.sql("GRANT holdfast_app TO tenant_of_it")
    server.sql("CREATE SCHEMA holdfast AUTHORIZATION tenant_of_it", name)
    url = server.url(name, "tenant_of_it")
    assert len(migrate(url)) == len(migrations.list_migrations())
    assert migrate(url) == []


def test_a_database_of_a_newer_holdfast_is_refused(postgres_url, postgres_databases):
    statement = "INSERT INTO holdfast.migration (number, name, digest) VALUES (9999, 'later', '')"
    postgres_databases.server.sql(statement, database_name(postgres_url))
    with pytest.raises(ConfigError, match="newer version of Holdfast"):
        Database(PostgresSettings(url=postgres_url), SQL, 10).rows("who")


def test_the_command_migrates_and_says_what_it_did(empty_postgres_url, home):
    def run(*args):
        command = [sys.executable, "-m", "holdfast", "migrate", *args]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOLDFAST_HOME": str(home)})

    first, again = (run("--store", empty_postgres_url, "--json") for _ in range(2))
    assert first.returncode == again.returncode == 0, first.stdout
    assert '"0001_ground"' in first.stdout and '"applied": []' in again.stdout
    assert "Nothing to migrate" in run("--store", empty_postgres_url).stderr
    assert run().returncode == 2
    assert not home.exists()


# --- statements ---------------------------------------------------------------------------------------------------------


def test_statements_are_read_by_name(tmp_path):
    (tmp_path / "postgres.sql").write_text(
        "-- a title\n\n-- name: one\nSELECT :a::text, x[1:2], x[a:b], '100% :no', \"odd:name\" -- why: because\n"
        "FROM t WHERE b = :a AND c LIKE 'y%' AND d % 2 = :b;\n-- name: two\nSELECT $$ :no $$;\n"
    )
    found = statements(str(tmp_path / "x.py"), "postgres")
    assert found == statements(str(tmp_path / "postgres.py"))
    assert found["one"] == (
        "SELECT %(a)s::text, x[1:2], x[a:b], '100%% :no', \"odd:name\" \n"
        "FROM t WHERE b = %(a)s AND c LIKE 'y%%' AND d %% 2 = %(b)s;"
    )
    assert found["two"] == "SELECT $$ :no $$;"


def test_values_are_never_part_of_a_statement(open_trial):
    trial, hostile = open_trial(), "'; DROP TABLE trial; -- %(id)s $1 \\"
    put(trial, 1, said=hostile)
    assert trial.row("one", id=1) == (hostile,)


def test_what_postgresql_cannot_hold_is_refused_and_the_next_is_answered(open_trial):
    trial = open_trial()
    for text in ("a\0b", "a\ud800b"):
        with pytest.raises(InvalidText):
            put(trial, 1, said=text)
    put(trial, 1)
    assert trial.rows("all") == [("a", 1)]


# --- transactions -------------------------------------------------------------------------------------------------------


def test_every_transaction_says_who_asks(open_trial):
    assert open_trial("a", agent="ada").rows("who") == [("holdfast_app", "a", "ada")]
    with open_trial("b", agent="*").transaction() as db:
        assert db.execute(SQL["who"]).fetchall() == [("holdfast_app", "b", "*")]


def test_a_transaction_is_whole_or_nothing(open_trial):
    trial = open_trial()
    with pytest.raises(KeyError), trial.transaction() as db:
        assert db.execute(SQL["put"], {"id": 1, "said": "x"}).fetchall() == [(1,)]
        assert trial.rows("all") == [("a", 1)]  # this thread's queries are in it
        raise KeyError
    with pytest.raises(Conflict):
        put(trial, 2, 2)
    assert trial.rows("all") == []


def test_an_error_that_was_passed_over_does_not_look_like_success(open_trial):
    trial = open_trial()
    put(trial, 1)
    with pytest.raises(Trouble, match="nothing was stored"), trial.transaction() as db:
        db.execute(SQL["put"], {"id": 2, "said": "x"})
        with pytest.raises(Conflict):
            db.execute(SQL["put"], {"id": 1, "said": "x"}).fetchall()
    assert trial.rows("all") == [("a", 1)]


def test_two_writers_that_wait_for_each_other_both_get_through(open_trial):
    trial, both_in = open_trial(), threading.Barrier(2)
    put(trial, 1, 2)

    def work(first, second):
        tries = []

        def change(db):
            tries.append(db.execute(SQL["set"], {"id": first, "said": f"{first}"}).fetchall())
            if len(tries) == 1:
                both_in.wait(30)
            db.execute(SQL["set"], {"id": second, "said": f"{first}"})

        open_trial().write(change)
        return len(tries)

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(work, (1, 2), (2, 1))) == [1, 2]
    assert trial.row("one", id=1) == trial.row("one", id=2)


def test_values_are_those_that_were_given(open_trial):
    with open_trial().transaction() as db:
        row = {"id": 1, "said": "x"}
        for row["id"] in (1, 2):  # the same dict, changed before anything was sent
            db.execute(SQL["put"], row)
    assert open_trial().rows("all") == [("a", 1), ("a", 2)]


def test_changes_are_counted(open_trial):
    trial = open_trial()
    with trial.transaction() as db:
        answers = db.executemany(SQL["put"], [{"id": id, "said": "x"} for id in range(5)])
        assert db.total_changes() == 5
        assert db.execute(SQL["set"], {"id": 1, "said": "y"}).fetchall() == []
        assert db.changes() == 1 and answers.fetchall() == [(id,) for id in range(5)]
        db.execute(SQL["set"], {"id": 9, "said": "y"})
        assert db.changes() == 0 and db.total_changes() == 6
        assert db.execute(SQL["all"]).fetchone() == ("a", 0)


def test_queries_change_nothing(open_trial):
    with pytest.raises((Trouble, Busy)):
        open_trial(seconds=0.2).rows("put", id=1, said="x")
    assert open_trial().rows("all") == []


def test_reading_shares_one_transaction_among_rooms_and_survives_an_error(open_trial):
    one, other = open_trial(), open_trial()
    with one.read_transaction(), other.read_transaction():
        assert one.rows("me") == other.rows("me")
        with pytest.raises(Trouble):
            one.query("SELECT 1 / 0", {})
        assert one.rows("all") == other.rows("all") == []
        put(one, 1)  # a transaction of its own
        assert other.rows("all") == [("a", 1)]


def test_an_index_row_may_wait_for_the_disk_and_a_memory_may_not(open_trial, trial_url, postgres_databases):
    setting = "SELECT current_setting('synchronous_commit')"
    postgres_databases.server.sql(f"ALTER DATABASE {database_name(trial_url)} SET synchronous_commit = off")
    for durable, expected in ((False, "off"), (True, "on")):
        with open_trial().transaction(durable) as db:
            assert db.execute(setting).fetchall() == [(expected,)]


# --- locks --------------------------------------------------------------------------------------------------------------


def test_a_named_lock_is_one_holders_across_processes(trial_url, child):
    store = PostgresSettings(url=trial_url, tenant="a")
    code = """
        from holdfast.postgres import Lock, PostgresSettings
        answer = [Lock(PostgresSettings(url=args[0], tenant=tenant), "x", 1).acquire(0.2) for tenant in ("a", "b")]
        """
    with Lock(store, "x", 1):
        assert child(code, trial_url) == [False, True]
        with pytest.raises(Busy, match="lock on x"):
            Lock(store, "x", 0.1).__enter__()
        with Lock(store, "y", 0.1):
            pass
    assert child(code, trial_url) == [True, True]


def test_a_lock_goes_from_thread_to_thread_and_is_freed_by_death(trial_url):
    store, inside, most = PostgresSettings(url=trial_url), 0, 0

    def work(_):
        nonlocal inside, most
        with Lock(store, "x", 30):
            inside += 1
            most = max(most, inside)
            time.sleep(0.002)
            inside -= 1

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(work, range(40)))
    assert most == 1
    code = (
        "import os, sys; from holdfast.postgres import *; "
        "Lock(PostgresSettings(url=sys.argv[1]), 'x', 1).acquire(1); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, trial_url]).returncode == 9
    with Lock(store, "x", 10):
        pass
    close_pools(trial_url)


# --- prepared statements ------------------------------------------------------------------------------------------------

_PREPARED = {**SQL, "prepared": "SELECT statement FROM pg_prepared_statements"}


def _prepared(url, times):
    database = Database(PostgresSettings(url=url, tenant="a", connections=1), _PREPARED, 10)
    for _ in range(times):
        database.rows("all")
    return [statement for (statement,) in database.rows("prepared")]


def test_a_statement_that_is_used_often_is_prepared(trial_url):
    assert not [text for text in _prepared(trial_url, 2) if "FROM trial" in text]
    assert [text for text in _prepared(trial_url, 5) if "FROM trial" in text] == [SQL["all"]]


def test_behind_a_pooler_no_statement_is_prepared(trial_url, postgres_databases):
    with postgres_server.bouncer(postgres_databases.server) as port:
        url = f"postgresql://{postgres_server.OWNER}@127.0.0.1:{port}/{database_name(trial_url)}"
        try:
            assert _prepared(url, 10) == []
        finally:
            close_pools(url)


def test_a_transaction_that_failed_while_a_statement_was_prepared_does_no_harm_to_the_next(open_trial):
    database = open_trial(connections=1)
    put(database, 1)
    for _ in range(6):  # the statement that fails comes first, so that the server never prepares the second
        with pytest.raises(Conflict), database.transaction() as db:
            db.execute(SQL["put"], {"id": 1, "said": "again"})
            db.execute(SQL["set"], {"id": 1, "said": "lost"})
    with database.transaction() as db:
        db.execute(SQL["set"], {"id": 1, "said": "kept"})
    assert database.rows("one", id=1) == [("kept",)]


def test_a_statement_is_prepared_once_although_transactions_with_it_fail(trial_url):
    database = Database(PostgresSettings(url=trial_url, tenant="a", connections=1), _PREPARED, 10)
    put(database, 1)
    for _ in range(9):
        with pytest.raises(Conflict), database.transaction() as db:
            db.execute(SQL["set"], {"id": 1, "said": "lost"})
            db.execute(SQL["put"], {"id": 1, "said": "again"}).fetchall()
    prepared = [statement for (statement,) in database.rows("prepared")]
    assert sorted(prepared) == sorted(set(prepared)) and any("UPDATE" in statement for statement in prepared)


def test_statements_that_were_prepared_before_a_migration_are_prepared_again(open_trial, postgres_databases, trial_url):
    database = open_trial(connections=1)
    put(database, 1)

    def read_after_another(db):
        assert db.execute(SQL["all"]).fetchall()
        return db.execute(SQL["one"], {"id": 1}).fetchall()

    for type, read in [
        ("varchar(99)", lambda: database.rows("one", id=1)),
        ("text", lambda: database.write(lambda db: db.execute(SQL["one"], {"id": 1}).fetchall())),
        ("varchar(99)", lambda: database.write(read_after_another)),
    ]:
        for _ in range(6):
            read()
        alter = f"ALTER TABLE holdfast.trial ALTER COLUMN said TYPE {type}"
        postgres_databases.server.sql(alter, database_name(trial_url))
        assert len(read()) == 1
