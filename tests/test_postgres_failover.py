"""A primary is killed, its standby takes over: writes go on, and nothing that was acknowledged is lost."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import postgres
from holdfast.errors import Contended, Trouble
from holdfast.postgres import Database, Store, migrate
from holdfast.postgres.pool import hang_up

SQL = {
    "put": "INSERT INTO trial (id, said) VALUES (%(id)s, %(said)s) ON CONFLICT DO NOTHING",
    "all": "SELECT id FROM trial",
    "count": "SELECT count(*) FROM trial",
    "where": "SELECT pg_is_in_recovery()",
}
BEFORE, AFTER = 150, 150


@pytest.fixture
def pair():
    """A primary that waits for its standby, and that standby."""
    with postgres.folder_of_its_own() as folder:
        primary, standby = postgres.Server(folder / "one"), postgres.Server(folder / "two", synchronous_standby_names="")
        try:
            primary.make().start()
            migrate(primary.url())
            primary.sql(postgres.TRIAL)
            standby.follow(primary, "second").start()
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'second'")
            primary.sql("SELECT pg_reload_conf()")
            until(lambda: primary.sql("SELECT sync_state::text FROM pg_stat_replication") == [("sync",)])
            yield primary, standby
        finally:
            for server in (primary, standby):
                server.stop("immediate")


def until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


class Writers:
    """Four threads that write numbered rows, and remember which ones were acknowledged."""

    def __init__(self, url):
        self.url = url
        self.kept = []
        self.doubted = []
        self._stop = threading.Event()

    def write(self, writer):
        database = Database(Store(url=self.url), SQL, 20)
        number = writer
        while not self._stop.is_set():
            try:
                database.write(lambda db, id=number: db.execute(SQL["put"], {"id": id, "said": "x"}), durable=True)
                self.kept.append(number)
            except (Contended, Trouble) as error:
                self.doubted.append((number, type(error).__name__))
            number += 4

    def wait_for(self, count):
        until(lambda: len(self.kept) >= count, 60)

    def stop(self):
        self._stop.set()


@pytest.mark.promise("A7")
def test_a_primary_is_killed_its_standby_promoted_and_nothing_acknowledged_is_lost(pair):
    primary, standby = pair
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    url = f"postgresql://{postgres.OWNER}@{hosts}/postgres?target_session_attrs=read-write"
    writers = Writers(url)
    with ThreadPoolExecutor(4) as threads:
        try:
            writing = [threads.submit(writers.write, number) for number in range(4)]
            writers.wait_for(BEFORE)
            primary.kill()
            standby.promote()
            writers.wait_for(len(writers.kept) + AFTER)
        finally:
            writers.stop()
        for one in writing:
            one.result(60)
    try:
        there = {id for (id,) in Database(Store(url=url), SQL, 20).rows("all")}
    finally:
        hang_up(url)
    assert set(writers.kept) - there == set()
    assert len(writers.doubted) <= 8, writers.doubted  # one write of each was under way, and each says so


def test_questions_go_to_a_replica_and_to_the_primary_when_it_is_gone(pair):
    primary, standby = pair
    store = Store(url=primary.url(), read_url=standby.url(), tenant="a")
    database = Database(store, SQL, 10)
    try:
        with database.reading(replica=True):
            assert database.rows("where") == [(True,)]
        with database.reading():
            assert database.rows("where") == [(False,)]
        with database.transaction(durable=True) as db:
            db.execute(SQL["put"], {"id": 1, "said": "x"})

        def arrived():
            with database.reading(replica=True):
                return database.row("count") == (1,)

        until(arrived)
        primary.sql("ALTER SYSTEM RESET synchronous_standby_names")
        primary.sql("SELECT pg_reload_conf()")
        with database.reading(replica=True):
            assert database.row("count") == (1,)
            standby.kill()
            assert database.rows("where") == [(False,)]  # within one question, without a word
        with database.reading(replica=True):
            assert database.rows("where") == [(False,)]
    finally:
        hang_up()
