"""A dump of the database, restored elsewhere: everything reads the same, with the same permissions.

The commands are those of docs/operations.md.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import psycopg
import pytest

from holdfast import Memory, Purged, config
from holdfast.access import AccessGate
from holdfast.ledger.audit_verify import verify
from holdfast.postgres import migrate
from holdfast.postgres.pool import close_pools

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
GONE = "zanzibarqvx7 is the word that must be gone for good"
GIVEN = {"project": "demo", "agent": "reviewer", "session": "s1"}
DUMPER = "backup_of_the_test"


def command(program, number=0):
    """Return the words of a command on the page."""
    lines = [line for line in PAGE.read_text().splitlines() if re.match(rf"(\S+=\S+ )?{program} ", line)]
    return shlex.split(lines[number])[1:]


@pytest.fixture
def dumper(postgres_databases):
    """The role that makes backups: reads every row and writes none."""
    server = postgres_databases.server
    server.sql(f"CREATE ROLE {DUMPER} LOGIN BYPASSRLS; GRANT pg_read_all_data TO {DUMPER}")
    yield DUMPER
    server.sql(f"DROP ROLE {DUMPER}")


@pytest.fixture
def filled(postgres_url, monkeypatch, home, tmp_path):
    """A database with data of every kind, and an operator's token."""
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    with Memory(home, **GIVEN, cwd=tmp_path) as memory:
        memory.store("The harbour opens at six.", key="harbour", tags="hours")
        memory.store("The harbour opens at seven.\n\n- [2026-01-01] colour: red", key="harbour")
        memory.store("words of the agent", key="own", scope="agent")
        memory.store("forgotten words", key="forgotten")
        memory.forget("forgotten")
        memory.store(GONE, key="gone")
        memory.purge("gone")
        memory.files.create("deep/page.md", "# Page\n\nharbour words\n")
        memory.log([{"role": "user", "text": f"turn {n} of the harbour"} for n in range(20)], session="talk", client="c")
        memory.recall("harbour")
        memory.brief()
    with Memory(home, **{**GIVEN, "agent": "other"}, cwd=tmp_path) as memory:
        memory.store("words of another agent", key="own", scope="agent")
    gate = AccessGate(config.load(home))
    token = gate.first_token()
    gate.close()
    return token


def told(home, tmp_path):
    """Return the answers of the store in the settings."""
    with Memory(home, **GIVEN, cwd=tmp_path) as memory:
        hits = sorted((hit.citation, hit.text, hit.score) for hit in memory.recall("harbour words", limit=100))
        return hits, memory.list(), memory.facts(), memory.trash(), memory.receipts(), memory.history("harbour"), memory.check()


def restored(databases, url, dumper, *more):
    """Dump and restore as the page says; return the address of the copy."""
    server, file = databases.server, databases.server.folder / "memory.dump"
    words = [{"memory": url.rpartition("/")[2], "holdfast_backup": dumper, "memory.dump": str(file)}.get(word, word)
             for word in [*command("pg_dump"), *more]]  # fmt: skip
    server.run("pg_dump", "-h", "127.0.0.1", "-p", server.port, *words)
    copy = databases.fresh(migrated=False)
    words = [{"memory": copy.rpartition("/")[2], "memory.dump": str(file)}.get(word, word) for word in command("pg_restore")]
    server.run("pg_restore", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", *words)
    file.unlink()
    return copy


@pytest.fixture
def copied(postgres_databases, postgres_url, filled, dumper):
    copies = []

    def make(*more):
        copies.append(restored(postgres_databases, postgres_url, dumper, *more))
        return copies[-1]

    yield make
    for url in copies:
        close_pools(url)
        postgres_databases.drop(url)


@pytest.mark.parametrize(
    "with_index",
    [pytest.param(True, id="whole"), pytest.param(False, id="without the index", marks=pytest.mark.battery)],
)
def test_a_restored_dump_answers_the_same(copied, home, tmp_path, monkeypatch, filled, with_index):
    before = told(home, tmp_path)
    copy = copied(*([] if with_index else [word for word in command("pg_dump", 1) if word.startswith("--exclude")]))
    assert migrate(copy) == []
    monkeypatch.setenv("HOLDFAST_STORE", copy)
    assert told(home, tmp_path) == before
    with Memory(home, **GIVEN, cwd=tmp_path) as memory:
        with pytest.raises(Purged):
            memory.store(GONE, key="again")
        assert memory.store("The harbour is closed.", key="harbour").note.versions == 3
        assert memory.restore("forgotten").text == "forgotten words"
        assert memory.log([{"role": "user", "text": "one more"}], session="talk", client="c").added == 1
        assert verify(memory._context.ledger.audit).ok
    gate = AccessGate(config.load(home))
    assert gate.identify(filled).agent == "operator"
    gate.close()


def test_a_restored_dump_is_as_closed_as_it_was(copied, postgres_databases, postgres_url, home, tmp_path, monkeypatch):
    copy = copied()
    server, name = postgres_databases.server, copy.rpartition("/")[2]
    state = """SELECT relname, relrowsecurity, relforcerowsecurity, coalesce(relacl, acldefault('r', relowner))::text
        FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1"""
    policies = """SELECT tablename, policyname, roles, cmd, qual, with_check FROM pg_policies
        WHERE schemaname = 'holdfast' ORDER BY 1, 2"""
    for query in (state, policies):
        assert server.sql(query, name) == server.sql(query, postgres_url.rpartition("/")[2])
    tables = [row[0] for row in server.sql(state, name) if row[0] not in ("migration", "agent_memory")]
    assert len(tables) > 20 and all(row[1] and row[2] for row in server.sql(state, name) if row[0] in tables)
    with psycopg.connect(copy) as connection:
        for tenant in (None, "somebody-else"):
            with connection.transaction(force_rollback=True):
                connection.execute("SET LOCAL ROLE holdfast_app")
                if tenant:
                    connection.execute("SELECT set_config('holdfast.tenant', %s, true)", [tenant])
                for table in tables:
                    assert connection.execute(f"SELECT count(*) FROM holdfast.{table}").fetchone() == (0,), table
    monkeypatch.setenv("HOLDFAST_STORE", copy)
    with Memory(home, **GIVEN, cwd=tmp_path) as memory:
        assert memory.get("own", scope="agent").text == "words of the agent"


def test_who_may_not_read_every_row_gets_no_dump_rather_than_half_of_one(postgres_databases, postgres_url, filled):
    server = postgres_databases.server
    server.sql("CREATE ROLE half_blind LOGIN; GRANT pg_read_all_data TO half_blind")
    try:
        words = ["-U", "half_blind", "-d", postgres_url.rpartition("/")[2], "-f", server.folder / "half.sql"]
        done = server.run("pg_dump", "-h", "127.0.0.1", "-p", server.port, *words, check=False)
        assert done.returncode != 0 and "row-level security" in done.stdout
    finally:
        server.sql("DROP ROLE half_blind")
