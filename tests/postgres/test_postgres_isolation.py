"""No tenant sees another tenant's rows: the database's catalog, every named statement, and every pooled connection."""

from __future__ import annotations

import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import postgres_server
import psycopg
import pytest
from postgres_server import database_name

import holdfast
from holdfast.errors import HoldfastError
from holdfast.index.filters import expand_fragments
from holdfast.postgres import Database, Lock, PostgresSettings, statements
from holdfast.postgres.connection import Result
from holdfast.postgres.pool import close_pools, get_pool
from holdfast.postgres.sql import number_placeholders

ROOMS = Path(holdfast.__file__).parent
OURS = "relnamespace = 'holdfast'::regnamespace"
SQL = {
    "put": "INSERT INTO trial (id, said) VALUES (%(id)s, %(said)s)",
    "all": "SELECT tenant, id, said FROM trial ORDER BY id",
}
LEFT_BEHIND = """SELECT current_user = session_user, coalesce(current_setting('holdfast.tenant', true), ''),
    coalesce(current_setting('holdfast.agent', true), ''), current_setting('search_path'), current_setting('statement_timeout'),
    current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),
    current_setting('synchronous_commit'),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"""
CURSOR = re.compile(r"^DECLARE \w+ [A-Z ]*CURSOR FOR\s+")
NOTHING = (True, "", "", '"$user", public', "0", "0", "0", "on", 0)


# --- the database's catalog ---------------------------------------------------------------------------------------------


@pytest.fixture
def look(postgres_url, postgres_databases):
    return lambda statement: postgres_databases.server.sql(statement, database_name(postgres_url))


@pytest.mark.promise("A7")
def test_every_table_is_closed_forced_and_has_a_policy(look):
    tables = look(
        "SELECT relname::text, relrowsecurity, relforcerowsecurity,"
        " ARRAY(SELECT polname::text FROM pg_policy WHERE polrelid = pg_class.oid ORDER BY 1)"
        f" FROM pg_class WHERE {OURS} AND relkind IN ('r', 'p')"
    )
    others = {"migration": ["owner_only"], "tokens": ["own_tenant", "shown"]}  # `shown` is for what `presented` looks up
    others |= {name: ["listed", "own_tenant"] for name in ("audit_head", "audit_shipped")}  # for `unshipped_tenants`
    assert len(tables) > 10
    assert [table for table in tables if table[1:] != (True, True, others.get(table[0], ["own_tenant"]))] == []
    roles = look("SELECT DISTINCT polroles::regrole[]::text FROM pg_policy WHERE polname IN ('owner_only', 'shown', 'listed')")
    assert roles == [("{postgres}",)]  # the owner's only


@pytest.mark.promise("A7")
def test_the_tenant_leads_every_key(look):
    keys = look(
        "SELECT relname::text, indexrelid::regclass::text, attname::text FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indrelid LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]"
        f" WHERE {OURS} AND indisunique AND relname <> 'migration'"
    )
    tables = look(f"SELECT relname::text FROM pg_class WHERE {OURS} AND relkind IN ('r', 'p') AND relname <> 'migration'")
    assert [key for key in keys if key[2] != "tenant"] == []
    assert {key[0] for key in keys} == {table[0] for table in tables}  # each has one


@pytest.mark.promise("A7")
def test_the_role_of_the_application_owns_nothing_and_passes_no_wall(look):
    assert look(
        "SELECT rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles"
        " WHERE rolname = 'holdfast_app'"
    ) == [(False,) * 6]
    assert look("SELECT objid FROM pg_shdepend WHERE refobjid = 'holdfast_app'::regrole AND deptype = 'o'") == []
    assert look("SELECT FROM pg_auth_members WHERE member = 'holdfast_app'::regrole") == []


@pytest.mark.promise("A7")
def test_views_ask_as_whoever_looks_and_only_named_functions_know_better(look):
    views = look(f"SELECT relname::text, coalesce(reloptions::text, '') FROM pg_class WHERE {OURS} AND relkind IN ('v', 'm')")
    assert views and [view for view in views if "security_invoker=true" not in view[1]] == []
    trusted = look(
        "SELECT proname::text, coalesce(proconfig::text, '') FROM pg_proc"
        " WHERE pronamespace = 'holdfast'::regnamespace AND prosecdef ORDER BY 1"
    )
    of_audit = ["begin_audit_after", "prune_audit", "unshipped_tenants"]  # the last one tells names of tenants, to ship rows
    assert [row[0] for row in trusted] == sorted([*of_audit, "presented", "version"])
    assert all("search_path" in row[1] for row in trusted)


@pytest.mark.promise("A7")
def test_nothing_is_granted_to_everybody(look):
    granted = look(
        "SELECT 'table', relname::text FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner))) AS one"
        f" WHERE {OURS} AND relkind IN ('r', 'p', 'v', 'm') AND one.grantee = 0"
        " UNION ALL SELECT 'function', proname::text"
        " FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS one"
        " WHERE pronamespace = 'holdfast'::regnamespace AND one.grantee = 0"
        " UNION ALL SELECT 'schema', nspname::text FROM pg_namespace, aclexplode(nspacl) AS one"
        " WHERE nspname = 'holdfast' AND one.grantee = 0"
        " UNION ALL SELECT 'sequence', relname::text FROM pg_class, aclexplode(relacl) AS one"
        f" WHERE {OURS} AND relkind = 'S' AND one.grantee = 0"
    )
    assert granted == []


# --- every named statement ----------------------------------------------------------------------------------------------


def sql_files():
    """Return the modules with statements on the tables."""
    return sorted([path for path in (ROOMS / "postgres").glob("*.sql") if path.name != "common.sql"])


def spoken(path):
    """Return the statements of a module; of a cursor only the declared query."""
    found = {name: CURSOR.sub("", text) for name, text in expand_fragments(statements(str(path))).items()}
    return {name: text for name, text in found.items() if not text.startswith(("FETCH ", "CLOSE "))}


# Tables that the agents of a tenant share: ids, digests and the audit, and no text.
SHARED = {
    "links", "places", "usage", "told", "prompts", "briefed", "decisions", "receipts", "purged", "keys", "claims",
    "agent_action_log", "audit_head", "audit_mark", "audit_checkpoint", "audit_shipped", "model",
}  # fmt: skip


class Rows:
    """Insert rows of one tenant, or only of an agent, into every table; few different values, so that joins find them."""

    def __init__(self, url, agent=""):
        self._agent = agent
        with psycopg.connect(url, autocommit=True) as self._raw:
            self._raw.execute("SET search_path = holdfast, public; SET session_replication_role = replica")  # as a superuser
            for (table,) in self._raw.execute(
                f"SELECT relname FROM pg_class WHERE {OURS} AND relkind IN ('r', 'p') AND relname <> 'migration'"
            ).fetchall():
                if not agent or table not in SHARED:
                    self._fill(table)
            if agent:  # otherwise the next number from the sequence would be one of these rows'
                self._raw.execute(f"SELECT setval(oid::regclass, 1000) FROM pg_class WHERE {OURS} AND relkind = 'S'")

    def _fill(self, table):
        columns = self._raw.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attgenerated = ''", [f"holdfast.{table}"],
        ).fetchall()  # fmt: skip
        for number in (1, 2):
            values = [self._value(table, name, kind, number) for name, kind in columns]
            names = ", ".join(f'"{name}"' for name, _ in columns)
            self._raw.execute(
                f"INSERT INTO holdfast.{table} ({names}) OVERRIDING SYSTEM VALUE VALUES ({', '.join(values)})"
                " ON CONFLICT DO NOTHING"
            )

    def _value(self, table, name, kind, number):
        if name == "tenant":
            return "'a'"
        if self._agent and name in ("scope", "agent"):
            return f"'agents/{self._agent}'" if name == "scope" else f"'{self._agent}'"
        if (table, name) == ("agent_action_log", "outcome"):
            return "'allowed'"
        if (table, name) == ("grants", "kind"):
            return "'project'"
        base = kind.partition("(")[0].partition("[")[0]
        plain = {
            "text": f"'x{number}'", "character": f"'x{number}'", "bytea": f"'x{number}'::bytea", "boolean": "true",
            "tsvector": f"'x{number}'::tsvector", "jsonb": "'{}'::jsonb", "json": "'{}'::json", "\"char\"": "'x'",
            "vector": "array_fill(0.5, ARRAY[%s])::vector" % (kind.partition("(")[2].rstrip(")") or "3"),
            "halfvec": "array_fill(0.5, ARRAY[%s])::halfvec" % (kind.partition("(")[2].rstrip(")") or "3"),
            "timestamp with time zone": "now()",
        }.get(base, str(number))  # fmt: skip
        return f"ARRAY[{plain}]::{kind}" if kind.endswith("[]") else plain


GUESSES = {
    "text": ["x1", '["x1", "x2"]', "[1, 2]"],
    "text[]": [["x1", "x2"]], "bigint[]": [[1, 2]], "integer[]": [[1, 2]], "bytea": [b"x1"], "boolean": [True],
    "double precision": [1.0], "real": [1.0], "real[]": [[0.5] * 3], "double precision[]": [[0.5] * 3], "tsquery": ["x1 | x2"],
    "jsonb": ['["x1", 1]', "{}"], "json": ['["x1", 1]', "{}"], "tsvector": ["x1 x2"],
    "bytea[]": [[b"x1"]], "vector": ["[0.5,0.5,0.5]"], "halfvec": ["[0.5,0.5,0.5]"], "boolean[]": [[True]], "numeric": [1],
}  # fmt: skip


def kinds_of(connection, statement):
    """Return the types that PostgreSQL infers for the values; None if it does not understand the statement here."""
    try:
        connection.execute("DEALLOCATE ALL")
        connection.execute(b"PREPARE one AS " + number_placeholders(statement)[0].rstrip(b"; \n"))
    except psycopg.Error:
        return None
    row = connection.execute("SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'one'").fetchone()
    return row[0] or []


def fillings(statement, kinds):
    """Yield a few sets of plausible values."""
    names = number_placeholders(statement)[1]
    chosen = [GUESSES.get(kind, [1]) for kind in kinds]
    for turn in range(max([len(one) for one in chosen], default=1)):
        yield dict(zip(names, [one[turn % len(one)] for one in chosen], strict=True))


def outcome(database, statement, values):
    """Return what a caller gets: rows, the number of affected rows, or the kind of error. Roll everything back."""

    class Back(Exception):
        pass

    try:
        with database.transaction() as db:
            answer = db.execute(statement, values)
            rows, changed = answer.fetchall(), db.changes()
            raise Back
    except Back:
        return (len(rows), changed) if statement.lstrip().upper().startswith("INSERT") else (rows, changed)
    except HoldfastError as error:
        return type(error).__name__, error.message


@pytest.mark.promise("A7")
def test_every_named_statement_tells_a_stranger_what_an_empty_database_tells(postgres_databases):
    full, own, empty = [postgres_databases.fresh() for _ in range(3)]
    seen, told, mistaken = 0, [], []
    try:
        Rows(full)
        Rows(own, "ada")
        with psycopg.connect(full, autocommit=True, prepare_threshold=None) as raw:
            raw.execute("SET search_path = holdfast, public")
            for path in sql_files():
                for name, statement in spoken(path).items():
                    kinds = kinds_of(raw, statement)
                    if kinds is None:
                        mistaken.append(f"{path.parent.name}/{path.name}: {name}")
                        continue
                    for values in fillings(statement, kinds):
                        there = f"{path.parent.name}/{path.name}: {name}"
                        seen += _compare(full, empty, statement, values, there, told, [("", "*"), ("b", "x1"), ("b", "*")])
                        _compare(own, empty, statement, values, there, told, [("a", "bob"), ("a", "")])
    finally:
        for url in (full, own, empty):
            close_pools(url)
            postgres_databases.drop(url)
    assert told == [] and mistaken == []
    assert not sql_files() or seen > 50, "too few statements found the rows that are there: this test proves little"


def _compare(full, empty, statement, values, name, told, strangers):
    """Return whether the tenant itself sees something that a stranger must not; add what a stranger sees to `told`."""
    if "presented(" in statement or "unshipped_tenants(" in statement:  # there is no tenant yet, or all of them are meant
        return 0
    if name.endswith(": new_ids"):  # the next numbers of sequences that all tenants share: no rows
        return 0
    if strangers[0][0] == "a" and name.endswith(": add_words"):  # the number of new ones: a word is stored once per tenant
        return 0
    own = outcome(Database(PostgresSettings(url=full, tenant="a", agent="*"), {}, 5), statement, values)
    for tenant, agent in strangers:
        stranger = PostgresSettings(url=full, tenant=tenant, agent=agent)
        there = outcome(Database(stranger, {}, 5), statement, values)
        nowhere = outcome(Database(stranger.replace(url=empty), {}, 5), statement, values)
        if tenant == "a" and there[0] == "Conflict":  # with a number that another agent drew at random
            continue
        if there != nowhere:
            told.append((name, values, tenant, agent, there, nowhere))
    return own != nowhere


@pytest.mark.promise("A7")
def test_an_agent_sees_no_row_of_another_in_any_table(look, postgres_url):
    Rows(postgres_url, "ada")
    names = look(f"SELECT relname::text FROM pg_class WHERE {OURS} AND relkind IN ('r', 'p') AND relname <> 'migration'")
    tables = sorted({name for (name,) in names} - SHARED)
    assert {"document", "passage", "word", "vectors", "tokens"} <= set(tables)

    def seen(agent):
        database = Database(PostgresSettings(url=postgres_url, tenant="a", agent=agent), {}, 5)
        return [table for table in tables if database.query(f"SELECT count(*) FROM {table}", {})[0][0]]

    assert seen("*") == tables
    of_people = ("agents", "grants", "tokens", "web_sessions", "sign_in_codes")  # an agent sees none
    assert seen("ada") == [table for table in tables if table not in of_people]
    assert [seen(agent) for agent in ("bob", "", "agents/ada", "%")] == [[]] * 4


# --- every pooled connection --------------------------------------------------------------------------------------------


def trial_of(postgres_databases, url):
    postgres_databases.server.sql(postgres_server.TRIAL, database_name(url))
    for tenant in "abcd":
        with Database(PostgresSettings(url=url, tenant=tenant), SQL, 30).transaction(durable=True) as db:
            db.execute(SQL["put"], {"id": ord(tenant), "said": tenant})


def visit(url, number, connections):
    """Run one transaction of one of four tenants, reading or writing, committed or failed; then check what is left behind."""
    tenant = "abcd"[number % 4]
    store = PostgresSettings(url=url, tenant=tenant, agent=f"agent-{number}", connections=connections)
    database = Database(store, SQL, 60)
    expected = [(tenant, ord(tenant), tenant)]
    if number % 3 == 0:
        assert database.rows("all") == expected
    elif number % 3 == 1:
        with database.transaction() as db:
            assert db.execute(SQL["all"]).fetchall() == expected
    else:
        with pytest.raises(KeyError), database.transaction(durable=True) as db:
            db.execute("UPDATE trial SET said = 'other'")
            raise KeyError
    pool, left = get_pool(store), Result()
    connection = pool.acquire(time.monotonic() + 60)
    try:
        connection.run([(LEFT_BEHIND, (), left)])
    finally:
        pool.release(connection)
    assert left.rows == [NOTHING]


@pytest.mark.battery
@pytest.mark.promise("A7")
def test_ten_thousand_checkouts_leave_nothing_behind_and_show_nothing_foreign(postgres_databases, postgres_url):
    trial_of(postgres_databases, postgres_url)
    with ThreadPoolExecutor(8) as threads:
        assert sum(1 for _ in threads.map(lambda number: visit(postgres_url, number, 4), range(10_000))) == 10_000


@pytest.mark.promise("A7")
def test_behind_a_pooler_in_transaction_mode_nothing_is_left_behind_either(postgres_databases, postgres_url):
    trial_of(postgres_databases, postgres_url)
    with postgres_server.bouncer(postgres_databases.server) as port:
        url = f"postgresql://{postgres_server.OWNER}@127.0.0.1:{port}/{database_name(postgres_url)}"
        try:
            with ThreadPoolExecutor(8) as threads:  # eight connections to the pooler share two to the server
                list(threads.map(lambda number: visit(url, number, 8), range(600)))
            one, other = Lock(PostgresSettings(url=url), "x", 0.2), Lock(PostgresSettings(url=url, tenant="b"), "x", 0.2)
            with one, pytest.raises(HoldfastError), Lock(PostgresSettings(url=postgres_url), "x", 0.2):
                pass
            with other:
                pass
        finally:
            close_pools(url)


def test_a_pooler_lets_migrations_through(postgres_databases, empty_postgres_url):
    with postgres_server.bouncer(postgres_databases.server) as port:
        url = f"postgresql://{postgres_server.OWNER}@127.0.0.1:{port}/{database_name(empty_postgres_url)}"
        try:
            assert Database(PostgresSettings(url=url), {"one": "SELECT holdfast.tenant()"}, 10).rows("one") == [("default",)]
        finally:
            close_pools(url)


def test_many_tenants_at_once_read_only_their_own(postgres_databases, postgres_url):
    trial_of(postgres_databases, postgres_url)
    counts = itertools.count()

    def read(tenant):
        for _ in range(50):
            assert (
                Database(PostgresSettings(url=postgres_url, tenant=tenant, connections=3), SQL, 30).rows("all")[0][0] == tenant
            )
            next(counts)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(read, "abcd"))
    assert next(counts) == 200
