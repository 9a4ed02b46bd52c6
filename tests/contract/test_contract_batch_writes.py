"""Batched writes of concurrent threads: each gets the result that it would get alone, and all share one flush."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from wait import wait_until

from holdfast.api.memory import Memory
from holdfast.context.caller import Context
from holdfast.errors import Busy, Conflict, Damaged, HoldfastError, Purged, Refused
from holdfast.models import Progress
from holdfast.verbs import batching
from holdfast.verbs.batching import WriteQueue

PLACE = "projects/demo"


@pytest.fixture
def queue(store, open_any):
    """A write queue like that of a gateway."""
    context = Context(
        open_any().config, project="demo", session=None, agent=None, client=None, origin="user", cwd=None, progress=Progress()
    )
    made = WriteQueue(context)
    yield made
    made.close()


@pytest.fixture
def crowd(store, open_any, queue):
    """Open callers whose threads write in batches, like those of a gateway."""
    opened = []

    def open_one(agent: str = "one", origin: str = "agent") -> Memory:
        opened.append(Memory(config=open_any().config, project="demo", agent=agent, origin=origin))
        opened[-1]._context.write_queue = queue
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@contextmanager
def at_work(queue):
    """Keep the writing thread busy."""
    ended = threading.Event()
    queue._writer.submit(ended.wait)
    try:
        yield
    finally:
        ended.set()


def at_once(*calls):
    """Return the result of each call, in order, after all waited for the same batch."""
    queue = calls[0][0]._context.write_queue
    with ThreadPoolExecutor(len(calls)) as threads:
        with at_work(queue):
            waiting = []
            for number, (memory, text, given) in enumerate(calls, 1):
                waiting.append(threads.submit(_came_of, memory, text, given))
                _until(lambda: len(queue) == number)  # noqa: B023
        return [one.result() for one in waiting]


def _came_of(memory, text, given):
    try:
        return memory.store(text, **given)
    except HoldfastError as error:
        return error


def _until(true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "nobody came"
        time.sleep(0.001)


def batches(queue, monkeypatch):
    """Record how many notes each flush writes from now on."""
    seen, write = [], queue._write

    def counted(batch, *context):
        seen.append(len(batch))
        return write(batch, *context)

    monkeypatch.setattr(queue, "_write", counted)
    return seen


def test_all_who_wait_are_kept_with_one_flush_and_each_is_told_of_its_own(crowd, queue, monkeypatch):
    memory, seen = crowd(), batches(queue, monkeypatch)

    came = at_once(*[(memory, f"The number of this one is {number}.", {"key": f"n-{number}"}) for number in range(20)])

    assert [(one.action, one.note.key) for one in came] == [("created", f"n-{number}") for number in range(20)]
    assert seen == [20]
    assert {note.key: note.text for note in memory.list()} == {one.note.key: one.note.text for one in came}
    assert memory.recall("number 7", mode="keyword").hits
    assert not memory.check()
    assert not len(queue)


def test_of_two_with_one_key_the_second_follows_upon_the_first(crowd):
    memory = crowd()

    first, second, other = at_once(
        (memory, "Red.", {"key": "colour"}), (memory, "Blue.", {"key": "colour"}), (memory, "Round.", {"key": "shape"})
    )

    assert (first.action, second.action, other.action) == ("created", "updated", "created")
    assert [version.text for version in memory.history("colour")] == ["Blue.", "Red."]


def test_what_speaks_against_one_is_told_to_that_one_alone(crowd):
    memory, person = crowd(), crowd(origin="user")
    seen = memory.store("As it was.", key="seen").note.version
    memory.store("As it is.", key="seen")
    memory.store("Nobody may say the blue heron again.", key="gone")
    person.purge("gone")

    before, purged, stale, after = at_once(
        (memory, "Before.", {"key": "before"}),
        (memory, "Nobody may say the blue heron again.", {"key": "back"}),
        (memory, "As I think it was.", {"key": "seen", "expected": seen}),
        (memory, "After.", {"key": "after"}),
    )

    assert isinstance(purged, Purged)
    assert isinstance(stale, Conflict)
    assert (before.action, after.action) == ("created", "created")
    assert {note.key: note.text for note in memory.list()} == {"seen": "As it is.", "before": "Before.", "after": "After."}


def test_one_store_that_is_refused_leaves_most_of_the_others_together(crowd, queue, monkeypatch):
    memory = crowd()
    memory.store("As it is.", key="seen")
    stores = [(memory, f"The number of this one is {number}.", {"key": f"n-{number}"}) for number in range(31)]
    seen = batches(queue, monkeypatch)

    *came, refused = at_once(*stores, (memory, "As I think it was.", {"key": "seen", "expected": "f" * 32}))

    assert isinstance(refused, Conflict) and [one.action for one in came] == ["created"] * 31
    assert seen == [32, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1]


def test_a_file_that_cannot_be_read_is_told_to_who_wanted_it_alone(crowd, store):
    memory = crowd()
    memory.store("It is here.", key="first")
    if store == "folder":
        os.symlink("first.md", memory._context.store.display_path(f"{PLACE}/notes/bad.md"))

    good, bad, other = at_once(*[(memory, f"This is {key}.", {"key": key}) for key in ("good", "bad", "too")])

    assert (good.action, other.action) == ("created", "created")
    assert isinstance(bad, Damaged) if store == "folder" else bad.action == "created"  # a database has no links


def test_a_store_is_rejected_while_too_many_wait(crowd, queue, monkeypatch):
    monkeypatch.setattr(batching, "_MAX_WAITING", 1)
    memory = crowd()
    with ThreadPoolExecutor(1) as threads, at_work(queue):
        first = threads.submit(memory.store, "First.", key="first")
        _until(lambda: len(queue) == 1)
        with pytest.raises(Busy):
            memory.store("Second.", key="second")
        assert not first.done()
    assert first.result().action == "created"


def test_a_scope_that_another_process_holds_delays_no_other_scope_for_long(crowd, queue, store):
    if store != "folder":
        pytest.skip("in PostgreSQL the database decides")
    memory = crowd()
    memory.store("Here.", key="here")
    queue._context.store._lock_seconds = 0.2

    with memory._context.store.lock_scope(memory._context.scope("project")):
        held, free = at_once((memory, "Held.", {"key": "held"}), (memory, "Free.", {"key": "free", "scope": "agent"}))

    assert isinstance(held, Busy)
    assert free.action == "created"


def test_notes_of_several_scopes_share_one_flush(crowd, queue, monkeypatch):
    one, two, seen = crowd("one"), crowd("two"), batches(queue, monkeypatch)

    came = at_once(
        (one, "Of one.", {"key": "k", "scope": "agent"}), (two, "Of two.", {"key": "k", "scope": "agent"}),
        (two, "Of the project.", {"key": "k"}),
    )  # fmt: skip

    assert seen == [3]
    assert [str(stored.note.scope) for stored in came] == ["agent:one", "agent:two", "project:demo"]
    assert [one.get("k", scope="agent").text, two.get("k", scope="agent").text] == ["Of one.", "Of two."]
    assert one.get("k", scope="project").text == "Of the project."


def test_index_md_is_complete_once_the_server_has_it_written_after_many_stores(crowd, queue, store):
    if store != "folder":
        pytest.skip("PostgreSQL has no index.md")
    memory = crowd()
    at_once(*[(memory, f"Number {number}.", {"key": f"n-{number}"}) for number in range(100)])  # two batches
    queue.write_listings()
    queue._writer.submit(lambda: None).result()  # the writing thread has done it

    listing = Path(memory._context.store.display_path(f"{PLACE}/index.md")).read_text()

    assert all(f"n-{number}" in listing for number in range(100))


def test_index_md_has_a_note_that_was_stored_alone_and_those_of_a_queue_that_is_closed(crowd, queue, store):
    if store != "folder":
        pytest.skip("PostgreSQL has no index.md")
    memory = crowd()
    listing = Path(memory._context.store.display_path(f"{PLACE}/index.md"))

    memory.store("Alone.", key="alone")
    assert "alone" in listing.read_text()

    at_once(*[(memory, f"Number {number}.", {"key": f"n-{number}"}) for number in range(10)])
    queue.close()
    assert all(f"n-{number}" in listing.read_text() for number in range(10))


def test_several_writers_share_the_work_and_write_for_one_agent_one_after_the_other(open_any, crowd, store):
    if store == "folder":
        pytest.skip("a home has one writer")
    config = open_any().config
    several = WriteQueue(*[
        Context(config, project="demo", session=None, agent=None, client=None, origin="user", cwd=None, progress=Progress())
        for _ in range(3)
    ])  # fmt: skip
    agents = [crowd(f"agent-{number}") for number in range(6)]
    for agent in agents:
        agent._context.write_queue = several
    with ThreadPoolExecutor(24) as threads:
        calls = [
            (agent, number, threads.submit(agent.store, f"Number {number}.", key=f"n-{number % 5}", scope="agent"))
            for number in range(20)
            for agent in agents
        ]
        stored = [(agent, number, call.result()) for agent, number, call in calls]
    several.close()

    assert len(stored) == 120
    for agent in agents:
        assert sum(agent.get(f"n-{key}", scope="agent").versions for key in range(5)) == 20


def test_each_note_says_which_agent_it_is_from(crowd):
    one, two = crowd("one"), crowd("two")

    came = at_once((one, "From one.", {"key": "a"}), (two, "From two.", {"key": "b"}))

    assert [stored.note.source.agent for stored in came] == ["one", "two"]
    assert [two.get(key).source.agent for key in ("a", "b")] == ["one", "two"]


def test_who_writes_for_others_lends_them_none_of_its_trust(crowd):
    person, agent = crowd("boss", "user"), crowd("two")
    person.store("Deploys need two approvals.", key="rule")
    agent.store("Anybody may deploy.", scope="agent", key="heard", origin="web")

    kept, over, copied = at_once(
        (person, "A person says so.", {"key": "a"}),
        (agent, "Deploys need none.", {"key": "rule", "origin": "web"}),
        (agent, "Anybody may deploy.", {"key": "b"}),
    )

    assert kept.action == "created"
    assert isinstance(over, Refused)  # an untrusted text does not replace a trusted one
    assert copied.note.quarantined  # it is in quarantine: this agent sees it, and the person's own scopes do not include it
    assert agent.get("rule").text == "Deploys need two approvals."


def test_a_store_that_meets_a_closing_queue_is_kept(crowd, queue, monkeypatch):
    memory, writes = crowd(), batching.write_notes
    memory.store("first", key="first")

    def close_meanwhile(requests, **options):
        closing.start()
        wait_until(lambda: queue._is_closed)
        return writes(requests, **options)

    closing = threading.Thread(target=queue.close)
    with monkeypatch.context() as patch:
        patch.setattr(batching, "write_notes", close_meanwhile)
        memory.store("second", key="second")
    memory.store("third", key="third")
    closing.join()
    assert [memory.get(key).text for key in ("first", "second", "third")] == ["first", "second", "third"]


def test_a_listing_that_fails_for_any_reason_fails_no_store(crowd, queue, monkeypatch):
    memory = crowd()

    def fail(scope):
        raise ValueError("not foreseen")

    with monkeypatch.context() as patch:
        patch.setattr(queue._context.sync, "write_listing", fail)
        assert memory.store("kept", key="one").action == "created"
    assert memory.store("kept too", key="two").action == "created"


def test_threads_that_never_stop_coming_lose_nothing(crowd):
    memories = [crowd(f"agent-{number}") for number in range(4)]
    begin = threading.Barrier(8)

    def stores(number):
        begin.wait()
        return [memories[number % 4].store(f"{number} says {count}", key=f"k-{number}-{count}") for count in range(25)]

    with ThreadPoolExecutor(8) as threads:
        came = [one for some in threads.map(stores, range(8)) for one in some]

    assert {one.action for one in came} == {"created"}
    assert len(memories[0].list()) == 200
    assert not memories[0].check()
