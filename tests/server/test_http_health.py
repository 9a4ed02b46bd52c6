"""Readiness and the log of outages: a full disk, a read-only disk, a database that is away; each is over when its cause is."""

from __future__ import annotations

import io
import json
import os
import subprocess
import threading
from contextlib import contextmanager

import postgres_server
import psycopg
import pytest
from http_gateway import run_gateway
from test_full_disk import Disk
from test_postgres_gateway import own_server  # noqa: F401
from wait import wait_until

from holdfast.errors import Busy, DiskTrouble
from holdfast.postgres.pool import close_pools
from holdfast.server import app
from holdfast.server.health import Health

PAIR = {"key": "k", "value": "Harbour words."}


@contextmanager
def mounted(folder, *words):
    if subprocess.run(["mount", *words, str(folder)], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder, "-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs"):
        yield Disk(folder)


def outages(log):
    """Return what the log says about outages: the event, the part and the code of each line."""
    rows = [json.loads(line) for line in log.getvalue().splitlines()]
    return [(row["event"], row["part"], row.get("code")) for row in rows if row["event"].startswith("outage")]


def ready(gateway):
    answer = gateway.anonymous.get("/readyz")
    assert answer.json["status"] == "ok" or answer.headers["retry-after"] == "1"
    return answer.status, answer.json["status"]


def until_ready(gateway):
    wait_until(lambda: ready(gateway) == (200, "ok"))


def until_down(gateway, code):
    wait_until(lambda: ready(gateway) == (503, code))


def assert_outage(gateway, log, part, code, over):
    """Check that an outage shows in readiness, health and the log, with one line however many requests come, and ends."""
    until_down(gateway, code)
    assert gateway.anonymous.get("/healthz").status == 200
    wait_until(lambda: outages(log) == [("outage", part, code)])
    for _ in range(20):
        gateway.anonymous.get("/readyz")
        gateway.operator.post("/gateway/memory", PAIR)
    over()
    until_ready(gateway)
    wait_until(lambda: len(outages(log)) > 1)
    assert outages(log) == [("outage", part, code), ("outage over", part, None)]
    assert gateway.operator.post("/gateway/memory", PAIR).status == 200


def test_a_full_disk_makes_it_unready_until_there_is_space(disk):
    log = io.StringIO()
    with run_gateway(disk.home, log) as gateway:
        assert gateway.operator.post("/gateway/memory", PAIR).status == 200
        until_ready(gateway)
        disk.fill(left=256 * 1024)  # a short note still fits: a large one does not
        assert_outage(gateway, log, "disk", "disk", disk.free)


def test_a_read_only_disk_makes_it_unready_until_it_can_be_written(disk):
    log = io.StringIO()
    with run_gateway(disk.home, log) as gateway:
        assert gateway.operator.post("/gateway/memory", PAIR).status == 200
        gateway.operator.get("/gateway/memory")

        def remount(mode):
            # -o remount of the whole file system fails while a file is open for writing: a bind mount over it does not
            subprocess.run(["mount", "--bind", "-o", mode, disk.folder, disk.folder], check=True)
            subprocess.run(["mount", "-o", f"remount,{mode},bind", disk.folder], check=True)

        remount("ro")
        until_down(gateway, "disk")
        assert gateway.anonymous.get("/healthz").status == 200
        wait_until(lambda: outages(log) and outages(log)[0] == ("outage", "disk", "disk"))
        subprocess.run(["mount", "-o", "remount,rw,bind", disk.folder], check=True)
        until_ready(gateway)
        wait_until(lambda: ("outage over", "disk", None) in outages(log))
        subprocess.run(["umount", "-l", disk.folder], check=True)


@contextmanager
def on_postgres(home, url, log, seconds=2):
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(f"[store]\nurl = {json.dumps(url)}\n[lock]\nseconds = {seconds}\n")
    with run_gateway(home, log) as gateway:
        yield gateway
    close_pools(url)


def test_a_database_that_goes_away_and_comes_back_is_logged_once_each(home, own_server):  # noqa: F811
    log, url = io.StringIO(), postgres_server.Databases(own_server).fresh()
    with on_postgres(home, url, log) as gateway:
        assert gateway.operator.post("/gateway/memory", PAIR).status == 200
        until_ready(gateway)
        own_server.kill()
        assert_outage(gateway, log, "database", "busy", own_server.start)


def test_a_database_without_space_makes_it_unready(home, postgres_url, monkeypatch):
    monkeypatch.setattr("holdfast.server.gateway._FULL_SECONDS", 3.0)
    log = io.StringIO()
    with on_postgres(home, postgres_url, log) as gateway, psycopg.connect(postgres_url, autocommit=True) as owner:
        until_ready(gateway)
        owner.execute("CREATE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS "
                      "'BEGIN RAISE EXCEPTION ''no'' USING ERRCODE = ''53100''; END'")  # fmt: skip
        owner.execute(
            "CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON holdfast.document FOR EACH ROW EXECUTE FUNCTION public.full()"
        )
        assert gateway.operator.post("/gateway/memory", PAIR).status == 507
        until_down(gateway, "disk")
        wait_until(lambda: outages(log) == [("outage", "disk", "disk")])
        owner.execute("DROP FUNCTION public.full() CASCADE")
        until_ready(gateway)
        wait_until(lambda: outages(log) == [("outage", "disk", "disk"), ("outage over", "disk", None)])
        assert gateway.operator.post("/gateway/memory", PAIR).status == 200


def test_a_database_that_accepts_no_writes_makes_it_unready(home, postgres_url):
    log = io.StringIO()
    with on_postgres(home, postgres_url, log) as gateway, psycopg.connect(postgres_url, autocommit=True) as owner:
        name = owner.info.dbname

        def set_read_only(value):
            owner.execute("SET default_transaction_read_only = off")
            owner.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
            owner.execute(others, [name])

        until_ready(gateway)
        set_read_only("on")
        until_down(gateway, "busy")
        wait_until(lambda: outages(log) == [("outage", "database", "busy")])
        set_read_only("off")
        until_ready(gateway)


def test_of_many_that_ask_at_once_one_checks_and_its_result_is_kept(monkeypatch):
    checked, clock = [], [100.0]
    monkeypatch.setattr("holdfast.server.health.time.monotonic", lambda: clock[0])

    def check():
        checked.append(1)
        raise Busy("away", "wait")

    health = Health(database=check, disk=lambda: None)
    crowd = [threading.Thread(target=health.find_problems) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(60)
    assert len(checked) == 1 and list(health.find_problems()) == ["database"]
    clock[0] += 1.0
    health.find_problems()
    assert len(checked) == 2


def test_a_probe_leaves_no_file_behind(home):
    from holdfast.server.health import check_disk

    check_disk(str(home))  # there is no home yet
    assert not home.exists()
    home.mkdir()
    check_disk(str(home))
    assert os.listdir(home) == []
    if os.getuid() != 0:
        home.chmod(0o500)
        with pytest.raises(DiskTrouble):
            check_disk(str(home))


def test_an_unforeseen_error_ends_no_task_of_the_gateway(home, monkeypatch):
    log, published = io.StringIO(), []

    def publish(gateway):
        published.append(True)
        if len(published) == 1:
            raise ValueError("not foreseen")

    monkeypatch.setattr(app, "_WATCH_SECONDS", 0.02)
    monkeypatch.setattr(app.gauges, "publish", publish)
    with run_gateway(home, log=log):
        wait_until(lambda: len(published) > 2)
    rows = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(row["task"], row["trouble"]) for row in rows if row["event"] == "task"] == [("watch", "ValueError")]
