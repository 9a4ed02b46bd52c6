"""A primary is killed and its standby takes over: writes continue, and nothing that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections import Counter

import postgres_server
import pytest
from wait import wait_until

from holdfast import Memory
from holdfast.config import load
from holdfast.errors import NotFound
from holdfast.postgres import Database, PostgresSettings, migrate
from holdfast.postgres.pool import close_pools

SQL = {
    "put": "INSERT INTO trial (id, said) VALUES (%(id)s, %(said)s) ON CONFLICT DO NOTHING",
    "count": "SELECT count(*) FROM trial",
    "where": "SELECT pg_is_in_recovery()",
}
BEFORE, AFTER = 30, 30  # notes of each writer


@pytest.fixture
def pair():
    """A primary that waits for its standby, and that standby."""
    with postgres_server.temporary_folder() as folder:
        primary, standby = (
            postgres_server.Server(folder / "one"),
            postgres_server.Server(folder / "two", synchronous_standby_names=""),
        )
        try:
            primary.make().start()
            migrate(primary.url())
            primary.sql(postgres_server.TRIAL)
            standby.follow(primary, "second").start()
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'second'")
            primary.sql("SELECT pg_reload_conf()")
            wait_until(lambda: primary.sql("SELECT sync_state::text FROM pg_stat_replication") == [("sync",)])
            yield primary, standby
        finally:
            for server in (primary, standby):
                server.stop("immediate")


WRITER = """
import json, os, sys, threading
from holdfast import HoldfastError, Memory
from holdfast.config import load
home, url, who = sys.argv[1:]
over = threading.Event()

def write(name):
    memory = Memory(config=load(home).replace(store=url, lock_seconds=30), project="demo", cwd=home)
    number = 0
    while not over.is_set():
        number += 1
        key = f"{name}-{number}" if number % 3 else f"{name}-journal"
        told = [key, f"{name} says {number}"]
        try:
            memory.store(told[1], key=key)
            told += ["kept", ""]
        except HoldfastError as error:
            told += ["unsure" if error.may_be_done else "refused", f"{error.code}: {error}"]
        except BaseException as error:
            told += ["broken", repr(error)]
        os.write(1, json.dumps(told).encode() + b"\\n")  # of two threads: a line at a time
    memory.close()

threads = [threading.Thread(target=write, args=(f"{who}{number}",)) for number in range(2)]
for one in threads:
    one.start()
sys.stdin.read()
over.set()
for one in threads:
    one.join()
"""


class Writers:
    """Two processes of two threads each that store notes, and the answer that each got for each note."""

    def __init__(self, home, url):
        self.told = []
        command = [sys.executable, "-c", WRITER, str(home), url]
        self._children = [
            subprocess.Popen([*command, who], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for who in ("ada", "bob")
        ]
        self._listening = [threading.Thread(target=self._listen, args=(child,)) for child in self._children]
        for one in self._listening:
            one.start()

    def _listen(self, child):
        for line in child.stdout:
            self.told.append(tuple(json.loads(line)))

    def kept(self):
        """Return how many notes of each thread were acknowledged."""
        return Counter(key.partition("-")[0] for key, _, outcome, _ in list(self.told) if outcome == "kept")

    def wait_for(self, more):
        """Wait until each thread has stored this many more notes."""
        before = self.kept()
        wait_until(lambda: all(self.kept()[who] >= before[who] + more for who in ("ada0", "ada1", "bob0", "bob1")), 45)

    def end(self, seconds=60):
        """Let each finish its current write; kill those that do not."""
        for child in self._children:
            child.stdin.close()
        for child in self._children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(seconds)
            child.kill()
            child.wait()
        for one, child in zip(self._listening, self._children, strict=True):
            one.join()
            child.stdout.close()
        return [child.returncode for child in self._children]


@pytest.mark.battery
@pytest.mark.promise("A7")
def test_a_primary_is_killed_its_standby_promoted_and_no_note_that_was_acknowledged_is_lost(pair, tmp_path):
    primary, standby = pair
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    url = f"postgresql://{postgres_server.OWNER}@{hosts}/postgres?target_session_attrs=read-write"
    (tmp_path / "home").mkdir(mode=0o700)
    writers = Writers(tmp_path / "home", url)
    try:
        writers.wait_for(BEFORE)
        primary.kill()
        standby.promote()
        writers.wait_for(AFTER)  # in the same processes, without an error
    finally:
        codes = writers.end()
    assert codes == [0, 0]
    others = [(outcome, error) for _, _, outcome, error in writers.told if outcome != "kept"]
    assert [one for one in others if one[0] == "broken" or not one[1].startswith(("busy: ", "unsure: ", "disk: "))] == []
    assert len(others) <= 8, others  # each had one store in progress
    with Memory(config=load(tmp_path / "home").replace(store=url), project="demo", origin="user", cwd=tmp_path) as memory:
        for key, text, outcome, _ in writers.told:
            times = [version.text for version in memory.history(key)].count(text) if memory_has(memory, key) else 0
            assert times == 1 if outcome == "kept" else times <= 1 if outcome == "unsure" else times == 0, (key, text, outcome)
            if outcome == "kept" and not key.endswith("journal"):
                assert memory.get(key).text == text
        assert memory.recall("says", mode="keyword").hits and memory.check() == []
    close_pools(url)


def memory_has(memory, key):
    try:
        return bool(memory.get(key))
    except NotFound:
        return False


@pytest.mark.battery
def test_questions_go_to_a_replica_and_to_the_primary_when_it_is_gone(pair):
    primary, standby = pair
    store = PostgresSettings(url=primary.url(), read_url=standby.url(), tenant="a")
    database = Database(store, SQL, 10)
    try:
        with database.read_transaction(replica=True):
            assert database.rows("where") == [(True,)]
        with database.read_transaction():
            assert database.rows("where") == [(False,)]
        with database.transaction(durable=True) as db:
            db.execute(SQL["put"], {"id": 1, "said": "x"})

        def arrived():
            with database.read_transaction(replica=True):
                return database.row("count") == (1,)

        wait_until(arrived)
        primary.sql("ALTER SYSTEM RESET synchronous_standby_names")
        primary.sql("SELECT pg_reload_conf()")
        with database.read_transaction(replica=True):
            assert database.row("count") == (1,)
            standby.kill()
            assert database.rows("where") == [(False,)]  # within one query, without an error
        with database.read_transaction(replica=True):
            assert database.rows("where") == [(False,)]
    finally:
        close_pools()
