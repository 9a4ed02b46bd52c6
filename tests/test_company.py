"""What several do on one thread at once is done once for all of them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast import company
from holdfast.doors.http.aside import Aside, Table
from holdfast.errors import Busy


async def seated(table, gate):
    """A guest who keeps a thread until the gate opens, and has it already."""
    begun = threading.Event()

    def work():
        begun.set()
        return gate.wait()

    task = asyncio.create_task(table(work))
    await asyncio.to_thread(begun.wait)
    return task


def at_one_table(*works, most=1):
    """What came of each, when all were there before the first was begun."""

    async def all_of_them():
        table, gate = Table(most), threading.Event()
        first = await seated(table, gate)
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


def test_what_each_wants_to_know_is_asked_once_for_all():
    asked = []

    def ask(names):
        asked.append(names)
        return {name: name.upper() for name in names if name != "c"}

    def work(name):
        return company.of_all("letters", name, ask)

    came = at_one_table(*[lambda name=name: work(name) for name in "abca"])

    assert came == ["A", "B", None, "A"]
    assert asked == [["a", "b", "c"]]
    assert [work("a"), work("c")] == ["A", None]  # alone
    assert asked[1:] == [["a"], ["c"]]


def test_who_wants_to_know_more_later_asks_again_and_what_was_told_is_known():
    asked = []

    def ask(names):
        asked.append(names)
        return dict.fromkeys(names, len(asked))

    def work(*names):
        return [company.of_all("letters", name, ask) for name in names]

    assert at_one_table(lambda: work("a", "b"), lambda: work("c", "a")) == [[1, 2], [1, 1]]
    assert asked == [["a", "c"], ["b"]]


def test_what_speaks_against_asking_is_told_to_each_and_asked_only_once():
    asked = []

    def ask(names):
        asked.append(names)
        raise Busy("nobody answers", "Try again")

    came = at_one_table(*[lambda name=name: company.of_all("letters", name, ask) for name in "abc"])

    assert asked == [["a", "b", "c"]]
    assert [(type(one), one.message) for one in came] == [(Busy, "nobody answers")] * 3
    assert len({id(one) for one in came}) == 3


def test_what_nobody_foresaw_is_told_to_who_asked_and_the_next_asks_again():
    asked = []

    def ask(names):
        asked.append(names)
        if len(asked) == 1:
            raise ZeroDivisionError("nobody foresaw this")
        return dict.fromkeys(names, "answer")

    first, *others = at_one_table(*[lambda name=name: company.of_all("letters", name, ask) for name in "abc"])

    assert isinstance(first, ZeroDivisionError) and others == ["answer", "answer"]
    assert asked == [["a", "b", "c"]] * 2


def test_what_is_asked_of_one_place_is_not_answered_by_another():
    def work(place):
        return company.of_all(("tokens", place), "same", lambda names: dict.fromkeys(names, place))

    assert at_one_table(lambda: work("here"), lambda: work("there")) == ["here", "there"]


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


class Odd(BaseException):
    """Not even an error."""


@pytest.mark.parametrize("kind", [StopIteration, Odd])
def test_whatever_is_raised_is_told_to_its_own_and_the_table_goes_on(kind):
    def bad():
        company.wait()
        raise kind("mine")

    async def one_after_another():
        table, gate = Table(1), threading.Event()
        first = await seated(table, gate)
        rest = [asyncio.ensure_future(table(work)) for work in (bad, lambda: "good", lambda: "too")]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.wait([first, *rest])
        failure = rest[0].exception()
        later = await table(lambda: "later")
        table.end()
        return failure, [one.result() for one in rest[1:]], later

    failure, came, later = asyncio.run(one_after_another())

    assert isinstance(failure, RuntimeError if kind is StopIteration else kind)
    assert (came, later) == (["good", "too"], "later")


def test_where_no_thread_is_to_be_had_who_asks_is_told_and_the_next_is_served(monkeypatch):
    async def once_in_vain():
        table = Table(1)
        with monkeypatch.context() as patched:
            patched.setattr(table._threads, "submit", _no_thread)
            with pytest.raises(RuntimeError, match="no thread"):
                await table(lambda: "in vain")
        came = await table(lambda: "served")
        table.end()
        return came

    assert asyncio.run(once_in_vain()) == "served"


def _no_thread(*_):
    raise RuntimeError("no thread")


def test_who_is_done_is_told_before_the_others_are():
    gate = threading.Event()

    def slow():
        company.wait()
        gate.wait()
        return "slow"

    async def party():
        table, door = Table(1), threading.Event()
        first = await seated(table, door)
        late, quick = asyncio.create_task(table(slow)), asyncio.create_task(table(lambda: "quick"))
        await asyncio.sleep(0)
        door.set()
        await first
        came = await quick
        assert not late.done()
        gate.set()
        table_says = await late
        table.end()
        return came, table_says

    assert asyncio.run(party()) == ("quick", "slow")


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
        slow = await seated(table, gate)
        quick = await table(lambda: "quick")
        gate.set()
        assert await slow
        table.end()
        return quick

    assert asyncio.run(two_threads()) == "quick"


def test_all_who_come_in_one_step_of_the_loop_sit_at_the_table_together():
    parties = []

    def work():
        parties.append(threading.get_ident())
        company.wait()
        return len(parties)

    async def at_once():
        table = Table(2)
        came = await asyncio.gather(*[table(work) for _ in range(5)])
        table.end()
        return came

    assert asyncio.run(at_once()) == [5] * 5  # all had come as far when the first went on
    assert len(set(parties)) == 1


def test_who_does_not_fit_at_one_table_is_served_at_another():
    gate = threading.Event()

    async def many():
        table = Table(2)
        slow = asyncio.create_task(table(gate.wait))
        others = [asyncio.create_task(table(lambda: "served")) for _ in range(30)]
        last = await others[-1]
        gate.set()
        await asyncio.gather(slow, *others)
        table.end()
        return last

    assert asyncio.run(many()) == "served"


def test_a_loop_that_ended_before_it_called_a_thread_keeps_no_other_waiting():
    table = Table(1)

    async def gone_at_once():
        table(lambda: None).send(None)  # asked, and then the loop is stopped

    loop = asyncio.new_event_loop()
    loop.run_until_complete(gone_at_once())
    loop._ready.clear()
    loop.close()

    async def asks():
        return await asyncio.wait_for(table(lambda: "served"), 30)

    assert asyncio.run(asks()) == "served"
    table.end()
