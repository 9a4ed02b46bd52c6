"""The group-commit queue: concurrent items are written in one batch, and each caller gets its own result."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.base.batch_queue import BatchQueue
from holdfast.errors import Busy, Refused, Unsure


class Writes:
    """Records the batches; the first one waits until the gate opens, so that the others have to queue."""

    def __init__(self, outcome=lambda item: item.upper()):
        self.batches, self.begun, self.gate, self.outcome = [], threading.Event(), threading.Event(), outcome

    def __call__(self, batch):
        self.batches.append(batch)
        self.begun.set()
        assert self.gate.wait(60)
        return [self.outcome(item) for item in batch]


def submit_all(queue, writes, *items):
    """Futures of a first item that is being written and of the others, which wait in this order."""
    threads = ThreadPoolExecutor(len(items) + 1)
    futures = [threads.submit(queue.submit, "first")]
    assert writes.begun.wait(60)
    for number, item in enumerate(items, 1):
        futures.append(threads.submit(queue.submit, item))
        wait_until(lambda: len(queue) == number)  # noqa: B023
    threads.shutdown(wait=False)
    return futures


def wait_until(true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_single_caller_is_written_at_once():
    assert BatchQueue(lambda batch: [len(batch)]).submit("a") == 1


def test_items_that_wait_are_written_together_and_each_caller_gets_its_own_result():
    writes = Writes()
    futures = submit_all(BatchQueue(writes), writes, "a", "b", "c")
    writes.gate.set()
    assert [one.result(60) for one in futures] == ["FIRST", "A", "B", "C"]
    assert writes.batches == [["first"], ["a", "b", "c"]]


def test_an_error_of_one_item_is_raised_to_its_caller_alone():
    writes = Writes(lambda item: Refused("no", "") if item == "bad" else item)
    futures = submit_all(BatchQueue(writes), writes, "good", "bad")
    writes.gate.set()
    assert futures[1].result(60) == "good"
    with pytest.raises(Refused):
        futures[2].result(60)


@pytest.mark.parametrize(("raised", "others"), [(Busy("nobody answers", ""), Busy), (ZeroDivisionError(), Unsure)])
def test_an_error_of_the_whole_batch_is_raised_to_every_caller_and_the_next_batch_goes_on(raised, others):
    def outcome(item):
        if item == "bad":
            raise raised
        return item

    writes = Writes(outcome)
    queue = BatchQueue(writes)
    futures = submit_all(queue, writes, "a", "bad", "b")
    writes.gate.set()
    errors = [one.exception(60) for one in futures[1:]]
    assert [type(one) for one in errors] == [type(raised), others, others]
    assert len({id(one) for one in errors}) == 3
    assert queue.submit("later") == "later"


def test_many_threads_lose_nothing():
    written = []

    def write(batch):
        written.extend(batch)
        return batch

    queue = BatchQueue(write)
    with ThreadPoolExecutor(16) as threads:
        came = list(threads.map(lambda number: queue.submit(number), range(2000)))
    assert came == list(range(2000))
    assert sorted(written) == came
