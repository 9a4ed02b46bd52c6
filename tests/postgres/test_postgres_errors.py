"""Failures of PostgreSQL: too slow, too many connections, gone, gone in the middle; and the errors that callers get."""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import postgres_server
import pytest
from postgres_server import TRIAL_SQL as SQL
from postgres_server import database_name, put
from wait import wait_until

from holdfast import config
from holdfast.errors import Busy, ConfigError, Denied, DiskTrouble, Unsure
from holdfast.postgres import Database, PostgresSettings, make_settings, migrate
from holdfast.postgres.pool import close_pools, get_pool
from holdfast.server.retention import TenantRetention


def test_a_statement_that_takes_too_long_is_busy_and_the_next_one_is_answered(open_trial):
    trial = open_trial(statement_seconds=0.2)
    with pytest.raises(Busy, match=r"longer than store\.statement_seconds"):
        trial.rows("sleep", seconds=30)
    with pytest.raises(Busy), trial.transaction() as db:
        db.execute(SQL["sleep"], {"seconds": 30})
    assert trial.rows("all") == []


def test_rows_that_another_holds_for_too_long_are_busy(open_trial):
    trial = open_trial()
    put(trial, 1)
    with trial.transaction() as db:
        db.execute(SQL["set"], {"id": 1, "said": "y"}).fetchall()
        with pytest.raises(Busy, match="locked the same rows"), open_trial(seconds=0.2).transaction() as other:
            other.execute(SQL["set"], {"id": 1, "said": "z"})
    assert trial.row("one", id=1) == ("y",)


def test_when_all_connections_are_in_use_the_next_caller_waits_and_then_hears_busy(open_trial):
    trial, patient = open_trial(connections=2, seconds=0.3), open_trial(connections=2, seconds=20)
    with ThreadPoolExecutor(2) as threads:
        held = [threading.Event() for _ in range(2)]
        free = threading.Event()

        def hold(number):
            with open_trial(connections=2).transaction() as db:
                db.execute(SQL["me"]).fetchall()
                held[number].set()
                free.wait(30)

        holders = [threads.submit(hold, number) for number in range(2)]
        for one in held:
            one.wait(30)
        with pytest.raises(Busy, match=r"store\.connections"):
            trial.rows("all")
        with ThreadPoolExecutor(1) as more:
            waiting = more.submit(patient.rows, "all")
            free.set()
            assert waiting.result(30) == []
        for holder in holders:
            holder.result(30)


def test_a_tenant_that_holds_its_share_keeps_nobody_else_waiting(open_trial):
    """However many of one tenant's requests wait, half of the connections are not its own once there is another."""
    free, inside = threading.Event(), threading.Semaphore(0)
    other = open_trial(tenant="b", connections=4)
    other.rows("all"), open_trial(connections=4).rows("all")

    def hold(number):
        with open_trial(connections=4, seconds=60).transaction() as db:
            db.execute(SQL["me"]).fetchall()
            inside.release()
            free.wait(30)

    with ThreadPoolExecutor(8) as threads:
        try:
            holders = [threads.submit(hold, number) for number in range(8)]
            assert inside.acquire(timeout=30) and inside.acquire(timeout=30)
            assert open_trial(tenant="b", connections=4, seconds=0.001).rows("all") == []  # does not wait
            assert other.without_tenant().rows("who") == [("holdfast_app", "", "")]
            with pytest.raises(Busy, match=r"all 2 connections that one tenant can use .*store\.connections"):
                open_trial(connections=4, seconds=0.1).rows("all")
            assert not inside.acquire(blocking=False)
        finally:
            free.set()
        for holder in holders:
            holder.result(30)


def test_a_tenant_that_is_alone_has_all_connections_until_another_comes(open_trial):
    free, inside, out = threading.Event(), threading.Semaphore(0), [threading.Event() for _ in range(8)]

    def hold(number):
        with open_trial(connections=4, seconds=60).transaction() as db:
            db.execute(SQL["me"]).fetchall()
            inside.release()
            (out[number] if number < 4 else free).wait(30)

    with ThreadPoolExecutor(9) as threads:
        try:
            holders = [threads.submit(hold, number) for number in range(4)]
            for _ in range(4):
                assert inside.acquire(timeout=30)
            holders += [threads.submit(hold, number) for number in range(4, 8)]
            other = open_trial(tenant="b", connections=4, seconds=60)
            waiting = threads.submit(other.rows, "all")
            wait_until(lambda: get_pool(other.settings).share.several_tenants)  # it waits for all of these
            out[0].set()
            assert waiting.result(30) == []
        finally:
            for one in (free, *out):
                one.set()
        for holder in holders:
            holder.result(30)


def test_a_thread_that_has_a_connection_never_waits_for_a_second_one(open_trial):
    both_in = threading.Barrier(2)

    def work(number):
        trial = open_trial(connections=2, seconds=5)
        with trial.transaction() as db:
            db.execute(SQL["me"]).fetchall()
            both_in.wait(30)
            return open_trial(connections=2, seconds=5).rows("all")

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(work, range(2))) == [[], []]
    me = "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'holdfast'"
    wait_until(lambda: open_trial(connections=2).query(me, ())[0][0] <= 2)


def test_a_connection_killed_between_statements_is_survived(open_trial, trial_url, postgres_databases):
    trial, server = open_trial(), postgres_databases.server

    def kill():
        others = f"datname = '{database_name(trial_url)}' AND pid <> pg_backend_pid()"
        server.sql(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}")

    put(trial, 1)
    kill()
    assert trial.rows("all") == [("a", 1)]
    kill()
    put(trial, 2)
    with trial.read_transaction():
        trial.rows("all")
        kill()
        assert trial.rows("all") == [("a", 1), ("a", 2)]
    with pytest.raises(Busy), trial.transaction() as db:  # what it has read may be outdated
        db.execute(SQL["all"]).fetchall()
        kill()
        db.execute(SQL["put"], {"id": 3, "said": "x"}).fetchall()
    tries = []

    def work(db):
        tries.append(db.execute(SQL["all"]).fetchall())
        if len(tries) == 1:
            kill()
        db.execute(SQL["put"], {"id": 3, "said": "x"})

    trial.write(work, durable=True)
    assert len(tries) == 2 and trial.rows("all") == [("a", 1), ("a", 2), ("a", 3)]


@pytest.mark.parametrize("cut", ["before", "after"])
def test_when_the_answer_to_commit_is_lost_nobody_pretends_to_know(open_trial, trial_url, postgres_databases, cut):
    wire = postgres_server.CommitCutter(postgres_databases.server)
    url = f"postgresql://{postgres_server.OWNER}@127.0.0.1:{wire.port}/{database_name(trial_url)}"
    try:
        far = open_trial(url=url)
        for id, reads in ((1, False), (2, True)):  # everything in one batch, or COMMIT by itself
            put(far, 10 + id)
            wire.cut = cut
            with pytest.raises(Unsure), far.transaction(durable=True) as db:
                answer = db.execute(SQL["put"], {"id": id, "said": "x"})
                if reads:
                    answer.fetchall()
            wire.cut = ""
            assert (open_trial().row("one", id=id) is not None) == (cut == "after")
            assert far.row("one", id=10 + id) == ("x",)
    finally:
        close_pools(url)
        wire.close()


def test_whether_the_first_agent_was_kept_is_settled_as_durably_as_it_is_kept(postgres_url):
    from holdfast.ledger.agents import TokenDigest
    from holdfast.ledger.audit import Decision
    from holdfast.postgres.ledger import PostgresLedger

    ledger, asked = PostgresLedger(PostgresSettings(url=postgres_url, agent="*"), 10), []
    write = ledger.database.connection.write

    def losing(work, durable=False):
        asked.append(durable)
        answer = write(work, durable)
        if len(asked) == 1:
            raise Unsure("the answer was lost")
        return answer

    ledger.database.connection.write = losing
    told = Decision("operator", "agents.manage", "allowed", {})
    assert (
        ledger.agents.add_first("operator", role="operator", token=TokenDigest("id", b"digest"), now=1, decision=told) is True
    )
    assert asked == [True, True]


def test_a_commit_that_no_standby_confirms_is_not_acknowledged(open_trial, postgres_databases):
    server, trial = postgres_databases.server, open_trial()
    trial.rows("all")
    server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    server.sql("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: server.sql("SHOW synchronous_standby_names") == [("nobody",)])
        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(put, trial, 1)
            wait_until(lambda: server.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
            with pytest.raises(DiskTrouble, match="no standby confirmed") as raised:
                writing.result(30)
        assert raised.value.may_be_done  # a caller that gets this error must check before it repeats the write
        with trial.transaction() as db:  # derived data need not wait
            db.execute(SQL["put"], {"id": 2, "said": "x"})
    finally:
        server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        server.sql("SELECT pg_reload_conf()")


def test_a_server_that_is_not_there_is_busy_and_no_password_is_told(home):
    where = f"postgresql://holdfast:hunter2@127.0.0.1:{postgres_server.free_port()}/memory"
    settings = config.load(home, {"HOLDFAST_STORE": where, "HOLDFAST_STORE_READ": where, "HOLDFAST_TENANT": "a"})
    store = make_settings(settings, "ada", all_agents=False)
    assert (store.agent, store.tenant, make_settings(settings, "ada", all_agents=True).agent) == ("ada", "a", "*")
    begun = time.monotonic()
    with pytest.raises(Busy) as caught:
        Database(store, SQL, 0.2).rows("all")
    assert time.monotonic() - begun < 5
    assert "hunter2" not in f"{caught.value}{store!r}{settings!r}{get_pool(store)!r}"


@pytest.mark.parametrize("url", ["mysql://x/y", "postgresql://h/d?no=such", "postgresql://h:port/d"])
def test_an_address_that_is_none_is_refused(home, url):
    settings = config.load(home, {"HOLDFAST_STORE": url})
    with pytest.raises(ConfigError):
        Database(make_settings(settings, None, all_agents=True), SQL, 1).rows("all")


@pytest.mark.parametrize(
    ("database", "user", "why"),
    [("no_such", postgres_server.OWNER, "does not exist on the server"), ("postgres", "nobody_known", "not allow this user")],
)
def test_a_server_that_does_not_let_us_in_is_asked_once_and_nobody_is_told_its_names(postgres_databases, database, user, why):
    server = postgres_databases.server
    begun = time.monotonic()
    for work in (lambda url: Database(PostgresSettings(url=url), SQL, 30).rows("all"), migrate):
        with pytest.raises(ConfigError, match=rf"{why}.*store\.url") as caught:
            work(server.url(database, user))
        assert database not in f"{caught.value}" and user not in f"{caught.value}"
    assert time.monotonic() - begun < 4  # it is tried for five seconds if no server answers
    other = f"127.0.0.1:{postgres_server.free_port()}"
    with pytest.raises(Busy):  # of two servers the other one may come back
        Database(PostgresSettings(url=f"postgresql://{user}@{other},127.0.0.1:{server.port}/{database}"), SQL, 0.1).rows("all")


def test_a_wrong_password_is_told_as_what_it_is(tmp_path):
    with postgres_server.cluster() as server:
        server.sql("CREATE ROLE clerk LOGIN PASSWORD 'right'")
        rules = server.data / "pg_hba.conf"
        rules.write_text("host all clerk 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        server.sql("SELECT pg_reload_conf()")
        for password, why in ((":wrong", "rejected the user or password"), ("", "requires a password")):
            url = f"postgresql://clerk{password}@127.0.0.1:{server.port}/postgres?passfile={tmp_path}/none"
            with pytest.raises(ConfigError, match=why) as caught:
                Database(PostgresSettings(url=url), SQL, 30).rows("all")
            assert "clerk" not in f"{caught.value}" and "wrong" not in f"{caught.value}"


def test_a_replica_that_does_not_let_us_in_is_passed_over(open_trial, postgres_databases):
    trial = open_trial(read_url=postgres_databases.server.url("no_such"))
    put(trial, 1)
    with trial.read_transaction(replica=True):
        assert trial.rows("all") == [("a", 1)]


def is_of_pool(thread):
    """Return whether it is a thread of the connection pool."""
    return thread.name.startswith("holdfast-")


def test_tenants_are_seen_to_one_after_the_other_and_their_end_is_waited_for_once(home):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a database that never answers
        settings = config.load(home).replace(store=f"postgresql://x@127.0.0.1:{silent.getsockname()[1]}/y")
        tending, before = TenantRetention(), set(threading.enumerate())
        for number in range(6):
            tending.begin(settings.replace(tenant=f"t{number}"))
        threads = {thread for thread in set(threading.enumerate()) - before if not is_of_pool(thread)}
        silent.settimeout(30)
        with silent.accept()[0]:
            begun = time.monotonic()
            tending.close()
            assert len(threads) == 1 and time.monotonic() - begun < 4
            tending.begin(settings.replace(tenant="late"))
            assert {thread for thread in set(threading.enumerate()) - before if not is_of_pool(thread)} <= threads
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_a_tenant_that_could_not_be_seen_to_is_seen_to_with_its_next_request(home):
    tending, before = TenantRetention(), set(threading.enumerate())
    settings = config.load(home).replace(tenant="a")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        tending.begin(settings.replace(store=7))  # an unexpected kind of error
        for thread in set(threading.enumerate()) - before:
            thread.join(30)
        tending.begin(settings.replace(store=f"postgresql://x@127.0.0.1:{listening.getsockname()[1]}/y"))
        listening.accept()[0].close()
    tending.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)


def test_a_row_for_somebody_else_is_denied(open_trial):
    with pytest.raises(Denied), open_trial().transaction() as db:
        db.execute("INSERT INTO trial (tenant, id) VALUES ('b', 1)")


def test_a_fork_has_connections_of_its_own(open_trial):
    trial = open_trial()
    put(trial, 1)
    with trial.read_transaction():
        (parent,) = trial.rows("me")[0]
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(into, f"{trial.rows('me')[0][0]} {len(trial.rows('all'))}".encode())
            finally:
                os._exit(0)
        os.close(into)
        with open(out) as said:
            process, rows = said.read().split()
        assert os.waitpid(child, 0)[1] == 0
        assert int(process) != parent and rows == "1"
        assert trial.rows("me") == [(parent,)]
