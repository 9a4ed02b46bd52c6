"""`/metrics` of a gateway: valid Prometheus text, summed over workers that come and go, with gauges of both stores."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from http_gateway import Client, run_gateway
from prometheus_client.parser import text_string_to_metric_families
from test_http_serve import started, workers
from test_postgres_gateway import on_store, own_server, wait_until  # noqa: F401

from holdfast.api.memory import Memory
from holdfast.errors import DiskTrouble
from holdfast.postgres.pool import Pool, PoolState
from holdfast.server import known_scrapers
from holdfast.server.metrics import METRICS, Metrics
from holdfast.server.shared_counters import SharedCounters

PAIR = {"key": "k", "value": "Harbour words."}
POOL = {f"holdfast_database_pool_{name}" for name in ("max_connections", "connections", "idle_connections", "waiting_requests")}


def parse(text):
    """Return the samples by name and labels, after checks that `promtool check metrics` makes."""
    samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        assert (family.type == "counter") == (f"{family.name}_total" in METRICS), family.name
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in samples and sample.value >= 0, key
            samples[key] = sample.value
    return samples


def scrape(client):
    answer = client.get("/metrics")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return parse(answer.data.decode())


@pytest.fixture(params=["embedded", "postgres"])
def store(request):
    """Words for the command line that name the store."""
    return () if request.param == "embedded" else ("--store", request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["embedded", "postgres"])
def gateway(request, home):
    if request.param == "embedded":
        with run_gateway(home) as one:
            yield one
    else:
        with on_store(home, request.getfixturevalue("postgres_url"), lock={"seconds": 2}) as one:
            yield one


def stored(samples):
    return samples.get(("holdfast_requests_total", ("route", "POST /gateway/memory"), ("status", "200")), 0)


def test_every_declared_metric_is_exposed_and_documented(gateway):
    gateway.operator.post("/gateway/memory", PAIR)
    samples = scrape(gateway.operator)
    names = {name for name, *_ in samples}
    found = {name for name, metric in METRICS.items() if name in names or f"{name}_bucket" in names or metric.type == "counter"}
    assert set(METRICS) - found == (set() if gateway.gate.config.store else POOL)
    assert samples[("holdfast_ready",)] == samples[("holdfast_database_up",)] == samples[("holdfast_disk_writable",)] == 1
    room = os.statvfs(gateway.home)
    assert samples[("holdfast_disk_total_bytes",)] == room.f_blocks * room.f_frsize
    assert 0 < samples[("holdfast_disk_free_bytes",)] <= samples[("holdfast_disk_total_bytes",)]
    assert samples[("holdfast_workers",)] == 1 and samples[("holdfast_write_queue_length",)] == 0
    assert samples[("holdfast_process_resident_memory_bytes", ("worker", "0"))] > 10_000_000
    if gateway.gate.config.store:
        pool = ("pool", "primary")
        assert (
            samples[("holdfast_database_pool_max_connections", pool)]
            >= samples[("holdfast_database_pool_connections", pool)]
            > 0
        )


def test_a_histogram_counts_what_the_counter_counts(gateway):
    for number in range(5):
        gateway.operator.post("/gateway/memory", {**PAIR, "key": f"k{number}"})
    samples, route = scrape(gateway.operator), ("route", "POST /gateway/memory")
    buckets = [value for key, value in samples.items() if key[0] == "holdfast_request_seconds_bucket" and route in key]
    assert (
        buckets == sorted(buckets) and buckets[-1] == samples[("holdfast_request_seconds_count", route)] == stored(samples) == 5
    )
    assert samples[("holdfast_request_seconds_sum", route)] > 0


def replace_worker(one):
    """Kill a worker, and wait until another one has taken its place."""
    before = one.until(lambda: workers(one, 3))
    os.kill(max(before), signal.SIGKILL)
    one.until(lambda: workers(one, 3) - before)


def test_any_worker_answers_with_the_sum_of_all_and_no_count_is_lost_or_doubled_when_one_dies(home, tmp_path, store):
    with started(home, tmp_path, *store, "--workers", "3") as one:
        client = Client(one.port, one.token)

        def write(count):
            for _ in range(count):
                assert client.post("/gateway/memory", PAIR).status == 200

        one.until(lambda: workers(one, 3))
        write(30)
        assert {stored(scrape(client)) for _ in range(8)} == {30}
        for killed in range(1, 4):
            replace_worker(one)
            write(10)
            samples = [scrape(client) for _ in range(4)]
            assert {stored(sample) for sample in samples} == {30 + 10 * killed}
            assert {sample[("holdfast_worker_restarts_total",)] for sample in samples} == {killed}
        one.until(lambda: scrape(client)[("holdfast_workers",)] == 3)
        assert one.stop() == 0


def test_a_worker_that_takes_over_continues_the_counters_and_begins_its_gauges_again():
    shared = SharedCounters(2)
    first, other = Metrics(shared, 0), Metrics(shared, 1)
    first.advance("holdfast_audit_unrecorded_total", 3)
    other.advance("holdfast_audit_unrecorded_total", 4)
    first.set("holdfast_write_queue_length", 7)
    second = Metrics(shared, 0)  # after the first one was killed
    second.advance("holdfast_audit_unrecorded_total", 1)
    for one in (second, other):
        samples = parse(one.render())
        assert samples[("holdfast_audit_unrecorded_total",)] == 8 and samples[("holdfast_write_queue_length",)] == 0
        assert samples[("holdfast_workers",)] == 2


def test_a_part_that_is_full_takes_no_new_series_and_keeps_counting_the_others():
    shared = SharedCounters(1)
    part = shared.of_worker(0)
    part.add("first")
    for number in range(20_000):
        part.add(f"series-with-a-long-name-{number:09}")
    part.add("first")
    sums = shared.sums()
    assert sums["first"] == [2] and 5_000 < len(sums) < 20_000


def test_tokens_that_end_soon_are_counted_by_agent_and_expired_ones_when_they_are_used(gateway, clock):
    clock.set("2026-05-01T12:00:00Z")
    for name, days in (("week", 7), ("month", 30), ("year", 365), ("ever", None)):
        gateway.gate.add(name, "secretary", days)
    short = Client(gateway.port, gateway.gate.add("short", "code-review-engineer", 1)[1])
    gateway.gate.add("rotated", "secretary", 5)
    gateway.gate.rotate("rotated", 365, grace_hours=24)  # its old token ends soon, and it has another
    gateway.gate.add("revoked", "secretary", 5)
    gateway.gate.revoke("revoked")

    def expiring():
        samples = scrape(gateway.operator)
        return [samples[("holdfast_tokens_expiring", ("days", days))] for days in ("7", "30")]

    assert expiring() == [2, 3]
    before = scrape(gateway.operator)[("holdfast_expired_token_requests_total",)]
    clock.forward(days=2)
    assert expiring() == [1, 2]
    assert [short.get("/gateway/memory").status for _ in range(3)] == [401] * 3
    gateway.anonymous.get("/gateway/memory", Authorization="Bearer hf_aaaaaaaa_" + "a" * 43)  # unknown, not expired
    assert scrape(gateway.operator)[("holdfast_expired_token_requests_total",)] == before + 3


def test_passages_that_wait_for_vectors_are_counted(gateway, monkeypatch):
    for number in range(4):
        gateway.operator.post("/v1/notes", {"text": f"Harbour words {number}.", "scope": "agent", "key": f"n{number}"})
    assert scrape(gateway.operator)[("holdfast_vector_backlog_passages",)] == 0  # with the embedder `none` nothing waits
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")
    path = gateway.home / "config.toml"
    path.write_text((path.read_text() if path.exists() else "") + "\n")  # the settings are read again
    assert scrape(gateway.operator)[("holdfast_vector_backlog_passages",)] == 4
    assert gateway.operator.post("/v1/embed").status == 200
    assert scrape(gateway.operator)[("holdfast_vector_backlog_passages",)] == 0


def test_writes_that_wait_for_a_batch_are_counted(gateway):
    agent, go_on = gateway.agent("writer"), threading.Event()
    assert agent.post("/gateway/memory", {"key": "first", "value": "First."}).status == 200
    (queue,) = gateway.app.state.pipeline.gateway._write_queues.values()
    for _ in queue._contexts:  # one for each writing thread
        queue._writer.submit(go_on.wait)
    with ThreadPoolExecutor(3) as threads:
        try:
            answers = [
                threads.submit(agent.post, "/gateway/memory", {"key": f"k-{number}", "value": f"Value {number}."})
                for number in range(3)
            ]
            wait_until(lambda: len(queue) == 3)
            assert scrape(gateway.operator)[("holdfast_write_queue_length",)] == 3
        finally:
            go_on.set()
        assert [one.result().status for one in answers] == [200] * 3
    assert scrape(gateway.operator)[("holdfast_write_queue_length",)] == 0


def test_threads_that_wait_for_a_connection_are_counted():
    pool = Pool("postgresql://nobody@localhost/nothing", 1, 1.0)
    assert pool.share.acquire(math.inf, "")
    waiter = threading.Thread(target=pool.share.acquire, args=(time.monotonic() + 60, ""))
    waiter.start()
    try:
        wait_until(lambda: pool.state("").waiting == 1)
        assert pool.state("") == PoolState(kind="primary", max=1, open=0, idle=0, waiting=1)
    finally:
        pool.share.release(threading.get_ident(), "")
        waiter.join(60)
    assert pool.state("locks") == PoolState(kind="locks", max=1, open=0, idle=0, waiting=0)


def test_a_failure_of_retention_is_counted(home, monkeypatch):
    def fail(self):
        raise DiskTrouble("no", "no")

    monkeypatch.setattr(Memory, "retain", fail)
    home.mkdir(mode=0o700)
    with run_gateway(home) as one:
        key = ("holdfast_background_failures_total", ("work", "retention"))
        one.operator.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, Accept="application/json, text/event-stream")
        wait_until(lambda: scrape(one.operator)[key] >= 1)


def test_a_failure_of_a_tenants_retention_is_counted(home, postgres_url, monkeypatch):
    def fail(self):
        raise DiskTrouble("no", "no")

    monkeypatch.setattr(Memory, "retain", fail)
    with on_store(home, postgres_url) as one:
        key = ("holdfast_background_failures_total", ("work", "retention"))
        before = scrape(one.operator)[key]
        one.operator.get("/gateway/memory")
        wait_until(lambda: scrape(one.operator)[key] > before)


def test_decisions_that_are_not_in_the_audit_are_summed_over_workers():
    shared = SharedCounters(2)
    for worker in (0, 1):
        Metrics(shared, worker).advance("holdfast_audit_unrecorded_total", worker + 1)
    assert shared.sums()["holdfast_audit_unrecorded_total"] == [3]


def test_while_the_database_is_away_a_known_scraper_reads_that_it_is_away(home, own_server, monkeypatch):  # noqa: F811
    import postgres_server

    url = postgres_server.Databases(own_server).fresh()
    with on_store(home, url, lock={"seconds": 1}) as one:
        one.add_role("scraper", ["metrics.read"], [])
        scraper, stranger, denied = one.agent("prometheus", "scraper"), one.agent("other", "scraper"), one.agent("reviewer")
        assert denied.get("/metrics").code == "denied"
        assert scrape(scraper)[("holdfast_database_up",)] == 1
        own_server.kill()
        wait_until(lambda: one.anonymous.get("/readyz").status == 503)
        samples = scrape(scraper)
        assert samples[("holdfast_database_up",)] == samples[("holdfast_ready",)] == 0
        assert not [key for key in samples if key[0] == "holdfast_tokens_expiring"]
        assert stranger.get("/metrics").code == denied.get("/metrics").code == scraper.get("/gateway/memory").code == "busy"
        with monkeypatch.context() as later:
            later.setattr(known_scrapers, "_KNOWN_SECONDS", 0.0)
            assert scraper.get("/metrics").code == "busy"
        own_server.start()
        wait_until(lambda: one.anonymous.get("/readyz").status == 200)
        assert scrape(scraper)[("holdfast_database_up",)] == 1
        one.gate.revoke("prometheus")
        assert scraper.get("/metrics").status == 401


def test_metrics_name_no_agent_tenant_key_or_text(gateway):
    agent = gateway.agent("walter")
    agent.post("/gateway/memory", {"key": "combination", "value": "Harbour words."})
    agent.get("/v1/notes/agent/combination")
    text = gateway.operator.get("/metrics").data.decode().lower()
    assert not [word for word in ("walter", "combination", "harbour", "hf_") if word in text]
