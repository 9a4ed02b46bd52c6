"""A server that goes away or hangs: callers wait for an outage once, get an error soon, and continue when it is back."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import postgres_server
import psycopg
import pytest
from test_postgres_failover import SQL, pair  # noqa: F401
from test_postgres_gateway import PAIR, on_store, own_server, wait_until  # noqa: F401

from holdfast.errors import Busy, Unsure
from holdfast.postgres import Database, PostgresSettings, migrate
from holdfast.postgres import outage as outage_module
from holdfast.postgres.outage import AWAY_SECONDS, Outage
from holdfast.postgres.pool import close_pools, get_pool

SOON = 14  # seconds: ten, plus what a busy machine needs


def timed(ask):
    begun = time.monotonic()
    return ask(), time.monotonic() - begun


@pytest.fixture
def trial(own_server):  # noqa: F811
    """A database of the server, with a table to write to."""
    migrate(own_server.url())
    own_server.sql(postgres_server.TRIAL)
    yield lambda seconds=30, **given: Database(PostgresSettings(url=own_server.url(), tenant="a", **given), SQL, seconds)
    own_server.thaw()
    close_pools(own_server.url())


def frozen_while(server, work):
    """Return the result of work that begins after the server has stopped answering."""
    server.freeze()
    try:
        return work()
    finally:
        server.thaw()


@pytest.mark.battery
@pytest.mark.promise("A7")
def test_requests_in_flight_hear_soon_of_a_database_that_hangs_and_of_one_that_is_killed(home, own_server):  # noqa: F811
    url = postgres_server.Databases(own_server).fresh()
    with on_store(home, url) as one, ThreadPoolExecutor(24) as crowd:
        agent = one.agent("a")
        asked = [
            lambda: agent.get("/gateway/memory"), lambda: agent.post("/gateway/memory", PAIR),
            lambda: agent.post("/v1/recall", {"query": "harbour", "scope": "agent"}), lambda: one.operator.get("/audit"),
        ]  # fmt: skip
        assert [ask().status for ask in asked] == [200] * 4

        def told():
            answers = [one.result() for one in [crowd.submit(timed, ask) for ask in asked * 6]]
            assert {said.status for said, _ in answers} == {503}
            assert all(int(said.headers["retry-after"]) >= 1 for said, _ in answers)
            assert {said.code for said, _ in answers} <= {"busy", "unsure", "unrecorded"}
            return max(seconds for _, seconds in answers)

        first, later = frozen_while(own_server, lambda: (told(), told()))
        assert first < SOON and later < SOON, (first, later)
        wait_until(lambda: agent.get("/gateway/memory").status == 200)
        assert agent.post("/gateway/memory", PAIR).status == 200
        said, seconds = _kept_waiting(url, agent, own_server.freeze)
        own_server.thaw()
        assert said.status == 503 and said.code in ("busy", "unsure") and seconds < SOON, (said, seconds)
        wait_until(lambda: agent.get("/gateway/memory").status == 200)
        said, seconds = _kept_waiting(url, agent, own_server.kill)
        assert said.status == 503 and said.code in ("busy", "unsure") and seconds < SOON, (said, seconds)
        assert told() < SOON
        own_server.start()
        wait_until(lambda: agent.post("/gateway/memory", PAIR).status == 200)


def _kept_waiting(url, agent, end):
    """Run a write whose server ends while it waits for another writer; return how long the error took."""
    said, late_words = [], {**PAIR, "value": f"Late words at {time.monotonic()}."}
    other = psycopg.connect(url)
    other.execute("SELECT * FROM holdfast.shelf_folder FOR UPDATE")
    late = threading.Thread(target=lambda: said.append(timed(lambda: agent.post("/gateway/memory", late_words))))
    late.start()
    wait_until(lambda: other.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone())
    end()
    late.join(120)
    other.close()
    return said[0]


@pytest.mark.battery
def test_a_transaction_is_tried_again_no_longer_than_its_server_may_be_away(trial, own_server):  # noqa: F811
    database = trial()
    assert database.row("count") == (0,)

    def work(db):
        db.execute(SQL["count"]).fetchone()  # a result was read already: everything must be started again
        own_server.freeze()
        db.execute(SQL["count"]).fetchone()

    begun = time.monotonic()
    with pytest.raises(Busy):
        database.write(work)
    assert time.monotonic() - begun < SOON
    begun = time.monotonic()
    for _ in range(5):  # one of these checks whether it is back; the others need not
        with pytest.raises(Busy, match="the database cannot be reached"):
            database.rows("count")
    assert time.monotonic() - begun < SOON - AWAY_SECONDS
    own_server.thaw()
    wait_until(lambda: _answers(database))


def _answers(database):
    try:
        return database.rows("count")
    except Busy:
        return None


@pytest.mark.battery
def test_a_statement_that_only_takes_long_is_waited_for(trial):
    database = trial()
    assert database.query("SELECT pg_sleep(7), 1", ())[0][1] == 1


@pytest.mark.battery
def test_a_statement_that_was_given_up_is_called_off_at_a_server_that_comes_to_again(trial, own_server):  # noqa: F811
    database = trial(statement_seconds=600)
    asked = "SELECT pg_sleep(300), 'given up'"
    running = f"SELECT count(*)::int FROM pg_stat_activity WHERE state = 'active' AND query LIKE $${asked}$$"

    def told():
        with pytest.raises(Busy):
            database.query(asked, ())

    assert database.row("count") == (0,)
    waiting = threading.Thread(target=told)
    waiting.start()
    wait_until(lambda: own_server.sql(running) == [(1,)])
    frozen_while(own_server, lambda: waiting.join(SOON))
    assert not waiting.is_alive()
    wait_until(lambda: own_server.sql(running) == [(0,)], 10)


@pytest.mark.battery
def test_what_waits_for_a_hanging_primary_goes_on_with_the_standby_that_took_over(pair):  # noqa: F811
    primary, standby = pair
    url = f"postgresql://{postgres_server.OWNER}@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
    database = Database(PostgresSettings(url=url, tenant="a"), SQL, 30)
    try:
        assert database.row("count") == (0,)
        primary.freeze()
        standby.promote()
        kept = wait_until(lambda: _kept(database), 30)
        assert kept < SOON and database.row("count") == (1,)
    finally:
        primary.thaw()
        close_pools(url)


def _kept(database):
    begun = time.monotonic()
    try:
        database.write(lambda db: db.execute(SQL["put"], {"id": 1, "said": "x"}), durable=True)
    except (Busy, Unsure):
        return None
    return time.monotonic() - begun


def test_an_outage_counts_from_its_beginning_and_one_at_a_time_looks_whether_it_is_over():
    outage, begun = Outage(), time.monotonic()
    outage.record_answer()
    now = time.monotonic() + 20
    assert outage.deadline(now, 30) == now + 30
    outage.record_loss(now - 4)
    outage.record_loss(now)
    assert outage.deadline(now, 30) == now - 4 + AWAY_SECONDS and outage.deadline(now, 2) == now + 2
    assert outage.seconds_to_connect(1) > 9 and outage.seconds_to_connect(2) > 4  # the rest of the outage's time, per host
    outage.record_answer()
    outage.record_loss(begun - 60)  # a caller that began to wait long ago knows less than one that was answered since
    assert outage.deadline(begun, 30) >= begun + AWAY_SECONDS
    gone = Outage()
    gone.record_loss(now - 60)
    assert gone.seconds_to_connect(1) == 2
    for _ in range(3):
        with pytest.raises(Busy):
            gone.seconds_to_connect(1)
    gone.record_answer()
    assert gone.seconds_to_connect(1) == 5


def test_the_time_that_an_address_gives_a_connection_is_given_to_a_server_that_was_never_met(monkeypatch):
    given, url = [], "postgresql://nobody@127.0.0.1:1,127.0.0.1:2/none"

    def connect(*_, **parameters):
        given.append(parameters["connect_timeout"])
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(psycopg.Connection, "connect", connect)
    for more in ("?connect_timeout=20", "?connect_timeout=0", ""):
        for _ in range(2):
            with pytest.raises(psycopg.OperationalError):
                get_pool(PostgresSettings(url=url + more)).acquire(time.monotonic() + 30)
    assert given == [20, 20, 2, 2, 2, 2]
    outage = Outage(20)
    outage.record_loss(time.monotonic() - 60)
    assert outage.seconds_to_connect(2) == 20  # the one that checks whether the server is there
    outage.record_answer()
    assert outage.seconds_to_connect(2) == 5


@pytest.mark.parametrize(("given", "times"), [(0, (2, 2, 2)), (1, (2, 2, 2)), (3, (3, 3, 3)), (20, (3, 6, 12, 20, 20))])
def test_who_looks_whether_a_server_that_was_met_is_back_takes_a_few_seconds_and_then_what_its_address_gives(
    monkeypatch, given, times
):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(outage_module, "time", clock)
    outage = Outage(given)
    outage.record_answer()
    outage.record_loss(clock.now)
    clock.now += AWAY_SECONDS
    for looks in times:  # a silent server is probed again only after both hosts were checked
        assert outage.seconds_to_connect(2) == looks
        clock.now += 2 * looks
        with pytest.raises(Busy, match="the database cannot be reached"):
            outage.seconds_to_connect(2)
        outage.record_attempt()
        clock.now += 1
    outage.record_answer()
    outage.record_loss(clock.now)
    clock.now += AWAY_SECONDS
    assert outage.seconds_to_connect(2) == times[0]


def test_a_server_that_was_met_and_lets_nobody_in_any_more_is_looked_for_in_seconds():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts connections and never answers
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none?connect_timeout=60"
        pool = get_pool(PostgresSettings(url=url))
        pool.outage.record_answer()
        pool.outage.record_loss(time.monotonic())
        pool.outage._since -= 2 * AWAY_SECONDS  # it has been away for too long
        begun = time.monotonic()
        with pytest.raises(psycopg.errors.ConnectionTimeout):
            pool.acquire(begun + 60)
        assert time.monotonic() - begun < SOON - AWAY_SECONDS


def test_the_time_of_a_write_is_that_of_all_its_tries_and_of_nothing_else():
    database = Database(PostgresSettings(url="postgresql://nobody@127.0.0.1:1/none"), SQL, 30)

    def work(db):
        with database.transaction() as other:
            return db.begun, other.begun

    begun = time.monotonic()
    mine, others = database.write(work)
    assert begun <= mine <= time.monotonic() and others is None
    with database.transaction() as db:
        assert db.begun is None


def test_pools_of_one_address_know_of_the_same_outage():
    store = PostgresSettings(url="postgresql://nobody@127.0.0.1:1/none")
    assert get_pool(store).outage is get_pool(store, "locks").outage
    assert get_pool(store).outage is not get_pool(store.replace(url="postgresql://nobody@127.0.0.1:2/none")).outage
