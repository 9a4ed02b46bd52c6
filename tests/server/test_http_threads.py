"""The thread pool of the HTTP server: what a thread has begun it finishes, and pools do not wait for each other."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast.server.threads import ThreadPool


def test_a_pool_returns_the_result_or_raises_the_error():
    async def both():
        pool = ThreadPool(1)
        assert await pool(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await pool(lambda: 1 / 0)

    asyncio.run(both())


def test_work_of_a_cancelled_caller_runs_to_its_end_before_the_caller_ends():
    done, begun, gate = [], threading.Event(), threading.Event()

    def work():
        begun.set()
        gate.wait(60)
        done.append(True)
        raise ValueError("nobody hears of it")

    async def cancelled():
        task = asyncio.create_task(ThreadPool(1)(work))
        await asyncio.to_thread(begun.wait)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == [True]

    asyncio.run(cancelled())


def test_a_loop_that_ends_waits_for_the_work_under_way():
    done, begun, gate = [], threading.Event(), threading.Event()

    def work():
        begun.set()
        gate.wait(60)
        done.append(True)

    async def leave():
        asyncio.get_running_loop().call_later(0.1, gate.set)
        task = asyncio.create_task(ThreadPool(1)(work))
        await asyncio.to_thread(begun.wait)
        return task

    asyncio.run(leave())
    assert done == [True]


def test_a_pool_that_is_full_keeps_no_other_waiting():
    async def two_pools():
        gate, full, other = threading.Event(), ThreadPool(1), ThreadPool(1)
        slow = asyncio.create_task(full(lambda: gate.wait(60)))
        waits = asyncio.create_task(full(lambda: "second"))
        assert await asyncio.wait_for(other(lambda: "quick"), 60) == "quick"
        assert not waits.done()
        gate.set()
        assert await slow and await waits == "second"

    asyncio.run(two_pools())


def test_a_further_call_starts_only_while_the_running_ones_are_stuck():
    running, most, gate = [], [], threading.Event()

    def wait():
        running.append(1)
        gate.wait(60)
        running.pop()

    def pass_by():
        running.append(1)
        most.append(len(running))
        running.pop()

    async def many():
        pool = ThreadPool(8, at_once=2)
        stuck = [asyncio.create_task(pool.run_briefly(wait)) for _ in range(2)]
        while len(running) < 2:
            await asyncio.sleep(0.01)
        await pool.run_briefly(pass_by)  # both are stuck, so it starts as a third
        assert most == [3]
        gate.set()
        await asyncio.gather(*stuck)
        most.clear()
        await asyncio.gather(*[pool.run_briefly(pass_by) for _ in range(50)])
        assert len(most) == 50 and max(most) <= 2
        pool.close()

    asyncio.run(many())


def test_a_caller_that_is_cancelled_while_it_waits_takes_no_place():
    gate = threading.Event()

    async def cancelled():
        pool = ThreadPool(4, at_once=1)
        first = asyncio.create_task(pool.run_briefly(lambda: gate.wait(60)))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(pool.run_briefly(lambda: 7)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in waiting[:2]:
            task.cancel()
        gate.set()
        assert await first is True
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [asyncio.CancelledError, asyncio.CancelledError, int]
        assert await pool.run_briefly(lambda: 8) == 8  # no place was lost
        pool.close()

    asyncio.run(cancelled())
