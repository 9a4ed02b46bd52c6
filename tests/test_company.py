"""What several do on one thread at once is done once for all of them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast import company
from holdfast.doors.http.aside import Aside, Table


def at_one_table(*works, most=1):
    """What came of each, when all were there before the first was begun."""

    async def all_of_them():
        table, gate = Table(most), threading.Event()
        first = asyncio.create_task(table(gate.wait))
        await asyncio.sleep(0)
        rest = [asyncio.create_task(table(work)) for work in works]
        await asyncio.sleep(0)
        gate.set()
        await first
        came = await asyncio.gather(*rest, return_exceptions=True)
        table.end()
        return came

    return asyncio.run(all_of_them())


def test_who_works_alone_waits_for_nobody_and_asks_each_time():
    asked = []

    company.wait()
    for _ in range(2):
        company.once("this", lambda: asked.append("this"))

    assert asked == ["this", "this"]


def test_who_comes_to_a_common_step_lets_the_others_come_as_far():
    seen = []

    def work(name):
        for step in ("decide", "write"):
            seen.append((step, name))
            company.wait()
        return threading.current_thread().name

    came = at_one_table(*[lambda name=name: work(name) for name in "abc"])

    assert seen == [("decide", "a"), ("decide", "b"), ("decide", "c"), ("write", "a"), ("write", "b"), ("write", "c")]
    assert len(set(came)) == 1


def test_what_one_asked_is_known_to_those_who_came_before_it_was_asked_and_to_no_others():
    asked = []

    def work():
        return company.once("who", lambda: asked.append("who") or len(asked))

    assert at_one_table(work, work, work) == [1, 1, 1]
    assert at_one_table(work, work) == [2, 2]
    assert work() == 3


def test_what_fails_fails_for_itself():
    def bad():
        company.wait()
        raise ValueError("mine")

    def good():
        company.wait()
        return "good"

    first, failed, last = at_one_table(good, bad, good)

    assert (first, last) == ("good", "good")
    assert isinstance(failed, ValueError)
    company.wait()  # nobody is left to give way to


def test_work_whose_caller_hangs_up_is_done_to_its_end():
    done, begun, gate = [], threading.Event(), threading.Event()

    def work():
        begun.set()
        gate.wait()
        done.append(True)

    async def hang_up(aside):
        task = asyncio.create_task(aside(work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        aside.end()

    for aside in (Aside(1), Table(1)):
        begun.clear()
        gate.clear()
        asyncio.run(hang_up(aside))
    assert done == [True, True]


def test_one_that_takes_long_keeps_only_its_own_thread():
    async def two_threads():
        table, gate = Table(2), threading.Event()
        slow = asyncio.create_task(table(gate.wait))
        await asyncio.sleep(0)
        quick = await table(lambda: "quick")
        gate.set()
        assert await slow
        table.end()
        return quick

    assert asyncio.run(two_threads()) == "quick"
