"""`GET /traffic`: requests and latency of the last hour, of all workers, on both stores."""

from __future__ import annotations

import pytest
from wait import wait_until

from holdfast.server.logs import RequestRecord
from holdfast.server.metrics import DURATION_BOUNDS, Metrics
from holdfast.server.shared_counters import SharedCounters
from holdfast.server.traffic import MAX_POINTS, Traffic, estimate_percentile


class Clock:
    """A clock that a test sets."""

    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


def count(metrics, status, seconds=0.004, route="GET /x"):
    record = RequestRecord("id", "GET", address="")
    record.route, record.status = route, status
    metrics.count(record, seconds)


def make_traffic():
    metrics, clock = Metrics(), Clock()
    return metrics, clock, Traffic(metrics.sum_requests, clock)


def advance(traffic, clock, seconds=10):
    clock.now += seconds
    traffic.sample()


def test_a_point_counts_what_was_answered_since_the_one_before():
    metrics, clock, traffic = make_traffic()
    for status in (200, 201, 303, 404, 429, 500, 0):
        count(metrics, status)
    advance(traffic, clock)
    count(metrics, 503)
    advance(traffic, clock)
    advance(traffic, clock)
    points = traffic.list_points()
    assert [(one.time, one.seconds) for one in points] == [(1_000_010, 10), (1_000_020, 10), (1_000_030, 10)]
    assert [(one.succeeded, one.client_errors, one.server_errors) for one in points] == [(3, 2, 1), (0, 0, 1), (0, 0, 0)]
    assert points[1].p95_seconds > points[1].p50_seconds > 0.001 and points[2].p50_seconds is None


def test_the_series_is_of_all_workers_whichever_is_asked():
    shared, clock = SharedCounters(2), Clock()
    workers = [Metrics(shared, number) for number in range(2)]
    series = [Traffic(one.sum_requests, clock) for one in workers]
    for number, metrics in enumerate(workers):
        for _ in range(number + 1):
            count(metrics, 200, 0.03)
    for one in series:
        advance(one, clock, 10 if one is series[0] else 0)
    assert series[0].list_points() == series[1].list_points()
    assert series[0].list_points()[0].succeeded == 3


def test_a_worker_that_is_started_again_does_not_count_what_was_before():
    shared, clock = SharedCounters(1), Clock()
    count(Metrics(shared), 200)
    metrics = Metrics(shared)
    traffic = Traffic(metrics.sum_requests, clock)
    count(metrics, 200)
    advance(traffic, clock)
    assert [one.succeeded for one in traffic.list_points()] == [1]


def test_points_begin_at_multiples_of_ten_seconds_and_a_short_time_is_added_to_the_next():
    metrics, clock = Metrics(), Clock(1_000_007.0)
    traffic = Traffic(metrics.sum_requests, clock)
    for _ in range(12):
        advance(traffic, clock, 1)
    assert traffic.list_points()[0][:2] == (1_000_010, 5)  # not at 10, after 3 seconds
    for _ in range(20):
        advance(traffic, clock, 1)
    assert [one.time for one in traffic.list_points()] == [1_000_010, 1_000_020, 1_000_030]


def test_a_pause_of_the_process_gives_one_longer_point():
    metrics, clock, traffic = make_traffic()
    count(metrics, 200)
    advance(traffic, clock, 60)
    assert [(one.seconds, one.succeeded) for one in traffic.list_points()] == [(60, 1)]


def test_an_hour_is_kept():
    _, clock, traffic = make_traffic()
    for _ in range(MAX_POINTS + 50):
        advance(traffic, clock)
    points = traffic.list_points()
    assert len(points) == MAX_POINTS and points[-1].time == clock.now
    clock.now += 1800  # and nothing was sampled meanwhile
    assert len(traffic.list_points()) == MAX_POINTS // 2


def test_a_clock_that_is_set_back_begins_a_new_series():
    metrics, clock, traffic = make_traffic()
    advance(traffic, clock)
    count(metrics, 200)
    advance(traffic, clock, -3600)
    assert traffic.list_points() == []
    advance(traffic, clock)
    assert [one.time for one in traffic.list_points()] == [1_000_010 - 3600 + 10]


@pytest.mark.parametrize(
    ("seconds", "share", "expected"),
    [
        ([], 0.5, None),
        ([0.0005], 0.5, 0.0005),
        ([0.03] * 10, 0.5, 0.03),  # the middle between the bounds 0.01 and 0.05
        ([0.003] * 90 + [0.7] * 10, 0.95, 0.75),
        ([60.0], 0.95, 5.0),
    ],
)
def test_a_percentile_lies_between_the_bounds_of_the_histogram(seconds, share, expected):
    counts = [0.0] * (len(DURATION_BOUNDS) + 1)
    for one in seconds:
        counts[sum([one > bound for bound in DURATION_BOUNDS])] += 1
    found = estimate_percentile(counts, share)
    assert found == (None if expected is None else pytest.approx(expected))


# --- the route ------------------------------------------------------------------------------------------------------------


def test_the_route_answers_with_the_points(any_gateway):
    gateway = any_gateway.app.state.pipeline.gateway
    clock = Clock()
    gateway.traffic = traffic = Traffic(gateway.metrics.sum_requests, clock)
    assert any_gateway.operator.get("/traffic").json == {"points": []}
    assert any_gateway.operator.get("/v1/notes/agent/none").status == 404
    wait_until(lambda: gateway.metrics.sum_requests().by_status.get(404))  # it is counted after it was sent
    advance(traffic, clock)
    (point,) = any_gateway.operator.get("/traffic").json["points"]
    assert point["time"] == "1970-01-12T13:46:50Z" and point["seconds"] == 10
    assert (point["succeeded"], point["client_errors"], point["server_errors"]) == (1, 1, 0)
    assert 0 < point["p50_ms"] <= point["p95_ms"]


def test_it_takes_the_action_of_the_metrics(any_gateway):
    any_gateway.add_role("scraper", ["metrics.read"], [])
    assert any_gateway.agent("scraper", "scraper").get("/traffic").status == 200
    assert any_gateway.agent("reviewer").get("/traffic").code == "denied"
    assert any_gateway.anonymous.get("/traffic").status == 401
