"""Concurrent threads and processes: no lost update, only success or a named error; of every store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Conflict, Memory

WRITER = """
import json, sys
from holdfast import Conflict, Memory
home, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.stdin.readline()
with Memory(home, project="demo", agent=f"w{number}") as memory:
    for turn in range(count):
        memory.store(f"writer {number} turn {turn}", key="shared")
        memory.store(f"harbour of {number} turn {turn}", key=f"own-{number}-{turn}")
        memory.log([{"role": "user", "text": f"said by {number} turn {turn}"}], session="s", client="c")
print(json.dumps("done"))
"""


def at_once(works):
    """Run all in threads that start together, and return the result or error of each."""
    ready = threading.Barrier(len(works))

    def run(work):
        ready.wait()
        try:
            return work()
        except Exception as error:  # noqa: BLE001
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


@pytest.fixture
def processes(home, tmp_path):
    """Start writers that wait for a signal, and end those that still run."""
    started = []

    def start(count, turns):
        for number in range(count):
            words = [sys.executable, "-c", WRITER, str(home), str(number), str(turns)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            started.append(subprocess.Popen(words, cwd=tmp_path, text=True, env=os.environ.copy(), **pipes))
        return started

    yield start
    for one in started:
        one.kill()
        one.communicate()


def test_threads_share_one_memory_and_every_write_is_there(any_memory):
    def work(number):
        for turn in range(4):
            any_memory.store(f"harbour of {number} turn {turn}", key=f"n{number}-{turn}")
            assert any(hit.key == f"n{number}-{turn}" for hit in any_memory.recall(f"harbour turn {turn}", limit=100))
        return "done"

    assert at_once([lambda n=n: work(n) for n in range(6)]) == ["done"] * 6
    assert len(any_memory.list()) == 24


def test_no_version_of_a_note_that_all_write_is_lost(any_memory, open_any):
    callers = [open_any() for _ in range(4)]

    def work(number, caller):
        return [caller.store(f"by {number} turn {turn}", key="k").action for turn in range(5)]

    done = at_once([lambda n=n, one=one: work(n, one) for n, one in enumerate(callers)])
    assert all(isinstance(one, list) for one in done), done
    assert {one.text for one in any_memory.history("k")} == {f"by {n} turn {t}" for n in range(4) for t in range(5)}
    assert [action for one in done for action in one].count("created") == 1


def test_of_many_who_saw_the_same_version_one_wins(any_memory, open_any):
    seen = any_memory.store("start", key="k").note.version
    callers = [open_any() for _ in range(6)]
    done = at_once([lambda n=n, one=one: one.store(f"by {n}", key="k", expected=seen) for n, one in enumerate(callers)])
    won = [one for one in done if not isinstance(one, Exception)]
    assert len(won) == 1 and all(isinstance(one, Conflict) for one in done if one is not won[0]), done
    assert [one.text for one in any_memory.history("k")] == [won[0].note.text, "start"]


def test_of_many_who_create_the_same_key_one_does(any_memory, open_any):
    callers = [open_any() for _ in range(6)]
    done = at_once([lambda one=one: one.store("the same words", key="k").action for one in callers])
    assert sorted(done) == ["created"] + ["unchanged"] * 5
    assert any_memory.get("k").versions == 1


def test_of_many_who_forget_one_does_and_all_may_try(any_memory, open_any):
    any_memory.store("words", key="k")
    done = at_once([lambda one=open_any(): one.forget("k").deleted for _ in range(6)])
    assert sorted(done) == [False] * 5 + [True]
    assert any_memory.restore("k").text == "words"


def test_a_session_that_many_write_has_every_turn_once(any_memory, open_any):
    def work(number, caller):
        for turn in range(5):
            turns = [{"role": "user", "text": f"by {number} turn {turn}", "id": f"{number}-{turn}"}]
            caller.log(turns, session="s", client="c")
            caller.log(turns, session="s", client="c")
        return "done"

    assert at_once([lambda n=n, one=open_any(): work(n, one) for n in range(4)]) == ["done"] * 4
    lines = [
        json.loads(line.data) for line in any_memory._context.store.transcripts("projects/demo").open("c/s.jsonl").read_lines()
    ]
    assert sorted(line["text"] for line in lines[1:]) == sorted(f"by {n} turn {t}" for n in range(4) for t in range(5))
    assert len(any_memory.recall("turn", kind="turn", limit=100)) == 20


def test_files_that_many_edit_lose_no_line_that_was_acknowledged(any_memory, open_any):
    any_memory.files.create("log.md", "start\n")

    def work(number, caller):
        done = 0
        for turn in range(5):
            try:
                caller.files.insert("log.md", 1, f"by {number} turn {turn}")
                done += 1
            except Conflict:
                pass
        return done

    done = at_once([lambda n=n, one=open_any(): work(n, one) for n in range(4)])
    assert sum(done) == len(any_memory.files.view("log.md").splitlines()) - 1


def test_many_bulk_writers_with_keys_in_common_all_end(any_memory, open_any):
    """Each takes the same keys in another order: nobody may wait for somebody who waits for him."""

    def work(number, caller):
        keys = list(range(12))[:: -1 if number % 2 else 1]
        return len(caller.store_many([{"text": f"by {number}", "key": f"n{key}"} for key in keys]))

    assert at_once([lambda n=n, one=open_any(): work(n, one) for n in range(4)]) == [12] * 4
    for note in any_memory.list():
        assert note.versions == 4


def test_processes_write_into_one_store_and_nothing_is_lost(any_memory, processes):
    writers = processes(3, 5)
    for one in writers:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in writers:
        out, err = one.communicate(timeout=120)
        assert one.returncode == 0 and json.loads(out) == "done", err
    assert len(any_memory.recall("harbour", limit=100)) == 15
    wanted = {f"writer {n} turn {t}" for n in range(3) for t in range(5)}
    assert {one.text for one in any_memory.history("shared")} == wanted
    assert len(any_memory.recall("said", kind="turn", limit=100)) == 15
    assert any_memory.check() == []


def test_a_writer_that_is_killed_leaves_every_acknowledged_note_and_nobody_waits_for_it(any_memory, processes):
    (writer,) = processes(1, 10_000)
    any_memory.store("words", key="mine")
    writer.stdin.write("go\n")
    writer.stdin.flush()
    while len(any_memory.list()) < 10:
        assert writer.poll() is None, writer.communicate()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    any_memory.store("after it died", key="shared")
    assert any_memory.get("shared").text == "after it died"
    own = [note for note in any_memory.list() if note.key.startswith("own-")]
    assert sorted(hit.key for hit in any_memory.recall("harbour", limit=100, sort="recency"))[:1]
    assert {int(note.key.rpartition("-")[2]) for note in own} == set(range(len(own)))
    assert any_memory.check() == []


def test_a_fork_after_use_lets_both_go_on(any_memory, home, tmp_path):
    any_memory.store("before", key="before")
    child = os.fork()
    if child == 0:
        try:
            any_memory.store("by the child", key="child")
            os._exit(0 if any_memory.recall("child") else 1)
        except BaseException:  # noqa: BLE001
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    any_memory.store("by the parent", key="parent")
    assert sorted(note.key for note in any_memory.list()) == ["before", "child", "parent"]


def test_closing_twice_and_using_after_close_is_harmless(any_memory):
    any_memory.store("words", key="k")
    any_memory.close()
    any_memory.close()
    assert any_memory.get("k").text == "words" and len(any_memory.recall("words")) == 1


def test_a_memory_is_a_context_manager(store, home, tmp_path):
    with Memory(home, project="demo", cwd=tmp_path) as memory:
        memory.store("words", key="k")
    with Memory(home, project="demo", cwd=tmp_path) as memory:
        assert memory.get("k").text == "words"
