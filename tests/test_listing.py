"""index.md of a scope: made with every change while it is small, amended when the scope is large, and right in the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from multiprocessing import get_context

import pytest

from holdfast import Memory, late, sync
from holdfast.house import Database
from holdfast.index import changing
from holdfast.index.changing import Catalogued
from holdfast.shelf.folder import Shelf
from waiting import until


def _listed(home, scope="projects/demo"):
    text = (home / "shelf" / scope / "index.md").read_text()
    return sorted(re.findall(r"^- \[([a-z0-9-]+)\]\(notes/\1\.md\)", text, re.MULTILINE))


def test_the_listing_of_a_small_scope_changes_with_the_store_that_changed_it(memory, home):
    memory.store("one", key="a")
    assert _listed(home) == ["a"]
    memory.store_many([{"text": "two", "key": "b"}, {"text": "three", "key": "c"}])
    assert _listed(home) == ["a", "b", "c"]
    memory.store("one, reworded", key="a")
    assert "reworded" in (home / "shelf" / "projects" / "demo" / "index.md").read_text()
    memory.forget("b")
    assert _listed(home) == ["a", "c"]
    memory.restore("b")
    assert _listed(home) == ["a", "b", "c"]
    memory.purge("c")
    assert _listed(home) == ["a", "b"]
    memory.clear("project")
    assert _listed(home) == []


def _burst(memory):
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(300)])
    for number in range(5):
        memory.store(f"late {number}", key=f"late-{number}")
    memory.forget("k7")


_AFTER_THE_BURST = sorted([f"k{n}" for n in range(300) if n != 7] + [f"late-{n}" for n in range(5)])


def test_the_listing_of_a_large_scope_waits_for_the_end_of_a_burst_and_is_right_when_the_memory_is_closed(
    memory, home, monkeypatch
):
    monkeypatch.setattr(sync, "_LAG", 3600)
    _burst(memory)
    assert len(_listed(home)) == 300
    memory.close()
    assert _listed(home) == _AFTER_THE_BURST


def test_the_listing_of_a_large_scope_is_right_a_moment_after_a_burst_without_another_call(memory, home, monkeypatch):
    monkeypatch.setattr(sync, "_LAG", 0.3)
    _burst(memory)
    until(lambda: _listed(home) == _AFTER_THE_BURST)


def test_the_listing_of_a_large_scope_is_right_when_the_process_ended_without_closing(home, tmp_path):
    script = (
        "from holdfast import Memory, sync\n"
        "sync._LAG = 3600\n"
        "memory = Memory(project='demo')\n"
        "memory.store_many([{'text': f'number {n}', 'key': f'k{n}'} for n in range(300)])\n"
        "for n in range(5): memory.store(f'late {n}', key=f'late-{n}')\n"
        "memory.forget('k7')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, env={**os.environ, "HOLDFAST_HOME": str(home)})
    assert _listed(home) == _AFTER_THE_BURST


def test_what_a_killed_process_left_out_of_a_large_listing_is_in_it_after_the_next_call(memory, open_memory, home, monkeypatch):
    monkeypatch.setattr(sync, "_LAG", 3600)
    pid = os.fork()
    if not pid:
        _burst(memory)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert len(_listed(home)) == 300
    with open_memory() as another:
        another.list(limit=1)
    assert _listed(home) == _AFTER_THE_BURST


def test_a_child_leaves_the_listing_to_its_parent(memory, home, monkeypatch):
    monkeypatch.setattr(sync, "_LAG", 3600)
    _burst(memory)
    pid = os.fork()
    if not pid:
        memory.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(_listed(home)) == 300
    memory.close()
    assert _listed(home) == _AFTER_THE_BURST


def test_where_no_thread_is_to_be_had_a_later_call_makes_the_listing(memory, home, monkeypatch):
    def no_more(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(late, "start_new_thread", no_more)
    monkeypatch.setattr(sync, "_LAG", 0.2)
    _burst(memory)

    def made():
        memory.list(limit=1)
        return _listed(home) == _AFTER_THE_BURST

    until(made)


def test_a_fork_while_a_listing_is_made_leaves_it_right(memory, home, monkeypatch):
    monkeypatch.setattr(sync, "_MOST_LAG", 0)
    _burst(memory)
    newest, forks = Catalogued.newest, [3]

    def forking(self):
        if forks.pop() if forks else 0:
            if not (pid := os.fork()):
                os._exit(0)
            os.waitpid(pid, 0)
        return newest(self)

    monkeypatch.setattr(Catalogued, "newest", forking)
    memory.store("new", key="new")
    assert not forks and "new" in _listed(home)


def _in_a_process(home):
    memory = Memory(home, project="demo")
    memory.store("of a child", key="child")
    memory.forget("k9")


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_the_listing_of_a_large_scope_is_right_when_a_process_of_multiprocessing_ended(memory, home, monkeypatch, way):
    monkeypatch.setattr(sync, "_LAG", 3600)
    _burst(memory)
    memory.close()
    child = get_context(way).Process(target=_in_a_process, args=(home,))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert _listed(home) == sorted({*_AFTER_THE_BURST, "child"} - {"k9"})


def _in_the_way(home, project="demo"):
    """A folder where index.md should be: none can be made."""
    file = home / "shelf" / "projects" / project / "index.md"
    file.unlink()
    file.mkdir()
    return file


@pytest.mark.parametrize("many", [3, 300])
def test_a_listing_that_cannot_be_made_fails_no_call_and_doctor_names_it(memory, home, monkeypatch, many):
    monkeypatch.setattr(sync, "_LAG", 3600)
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(many)])
    file = _in_the_way(home)
    assert memory.store("new", key="new").action == "created"
    memory.forget("k1")
    memory.close()
    assert any("index.md" in problem.message for problem in memory.check())
    file.rmdir()
    memory.store("newer", key="newer")
    memory.close()
    assert {"new", "newer"} <= set(_listed(home)) and "k1" not in _listed(home)


def test_a_listing_that_cannot_be_made_keeps_no_other_from_being_made(memory, open_memory, home, monkeypatch):
    monkeypatch.setattr(sync, "_LAG", 0.3)
    other = open_memory(project="other")
    other.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(300)])
    _in_the_way(home, "other")
    other.store("one more", key="more")
    _burst(memory)
    until(lambda: _listed(home) == _AFTER_THE_BURST)


def test_a_child_that_was_forked_while_a_listing_is_made_can_close(memory, monkeypatch):
    monkeypatch.setattr(sync, "_LAG", 3600)
    _burst(memory)
    at_it, may_go_on = threading.Event(), threading.Event()
    made = sync.Sync._list

    def slowly(*arguments):
        at_it.set()
        may_go_on.wait(60)
        made(*arguments)

    monkeypatch.setattr(sync.Sync, "_list", slowly)
    closing = threading.Thread(target=memory._desk.sync.close)
    closing.start()
    at_it.wait(60)
    pid = os.fork()
    if not pid:
        signal.alarm(30)
        memory._desk.sync.close()
        os._exit(0)
    may_go_on.set()
    closing.join()
    assert os.waitpid(pid, 0)[1] == 0


def test_a_handler_of_signals_may_close_what_is_being_closed(home, tmp_path):
    script = (
        "import os, signal, sys\n"
        "from holdfast import Memory, sync\n"
        "sync._LAG = 3600\n"
        "memory = Memory(project='demo')\n"
        "memory.store_many([{'text': f'number {n}', 'key': f'k{n}'} for n in range(300)])\n"
        "memory.store('late', key='late')\n"
        "signal.signal(signal.SIGTERM, lambda *_: (memory.close(), sys.exit(7)))\n"
        "made = sync.Sync._list\n"
        "sync.Sync._list = lambda *given: (os.kill(os.getpid(), signal.SIGTERM), made(*given))\n"
        "memory.close()\n"
    )
    env = {**os.environ, "HOLDFAST_HOME": str(home)}
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=tmp_path, env=env, timeout=60).returncode == 7


def test_a_store_into_a_catalogue_that_is_half_built_leaves_a_right_listing_alone(memory, open_memory, home, monkeypatch):
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(1200)])
    memory.close()
    before = _listed(home)
    for file in home.glob("index.db*"):
        file.unlink()
    put = Catalogued.put
    with monkeypatch.context() as killed:  # after the first five hundred
        killed.setattr(Catalogued, "put", lambda *given: (put(*given), pytest.fail("killed")))
        with pytest.raises(pytest.fail.Exception), open_memory() as first:
            first.list(limit=1)
    with open_memory() as another:
        another.store("one more", key="more")
    assert set(before) <= set(_listed(home))
    with open_memory() as another:
        another.list(limit=1)
    assert _listed(home) == sorted([*before, "more"])


@pytest.mark.parametrize("question", range(6))
@pytest.mark.parametrize("many", [3, 300])
def test_a_catalogue_that_goes_while_a_listing_is_made_leaves_the_one_before(memory, home, monkeypatch, many, question):
    monkeypatch.setattr(sync, "_MOST_LAG", 0)
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(many)])
    memory.list(limit=1)
    before = _listed(home)
    asked, make, left = Database.rows, sync.Sync._list, []

    def making(self, *words):
        left[:] = range(question + 1)
        make(self, *words)
        left.clear()

    def asking(self, *words, **values):
        if left and not left.pop() and not left:
            for file in home.glob("index.db*"):
                file.unlink()
        return asked(self, *words, **values)

    monkeypatch.setattr(sync.Sync, "_list", making)
    monkeypatch.setattr(Database, "rows", asking)
    assert memory.store("new", key="new").action == "created"
    assert _listed(home) in (before, [*before, "new"])
    left.clear()
    memory.list(limit=1)
    assert _listed(home) == [*before, "new"]


def test_a_scope_without_notes_is_not_asked_for_a_listing_with_every_call(memory, home, monkeypatch):
    notes = home / "shelf" / "projects" / "demo" / "notes"
    memory.store("one", key="k", scope="global")
    notes.mkdir(parents=True)
    (notes / "todo.txt").write_text("no note")
    asked = []
    made = sync.Sync._list
    monkeypatch.setattr(sync.Sync, "_list", lambda *arguments: (asked.append(arguments), made(*arguments)))
    for _ in range(5):
        memory.recall("one", mode="keyword")
    assert len(asked) <= 2


def test_a_clock_that_was_put_back_does_not_keep_a_large_listing_from_being_made(memory, home, monkeypatch):
    with monkeypatch.context() as ahead:
        ahead.setattr(changing.time, "time", lambda: 4_000_000_000.0)
        memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(300)])
    memory.store("when it was put right", key="later")
    assert "later" in _listed(home)


@pytest.mark.parametrize("many", [3, 300])
def test_a_listing_that_was_taken_away_comes_back_with_the_next_call(memory, home, many):
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(many)])
    for _ in range(2):
        (home / "shelf" / "projects" / "demo" / "index.md").unlink()
        memory.recall("number", mode="keyword")
        assert len(_listed(home)) == many


class _Makings:
    """How often index.md was made anew, and what it would be if it were made now."""

    def __init__(self, memory, home, monkeypatch):
        monkeypatch.setattr(sync, "_LAG", 0.0)
        monkeypatch.setattr(sync, "_SHARE", 0)
        self._memory, self._file = memory, home / "shelf" / "projects" / "demo" / "index.md"
        self.whole = 0
        made = sync.Sync._list_all
        monkeypatch.setattr(sync.Sync, "_list_all", lambda *arguments: self._counted(made(*arguments)))

    def _counted(self, result):
        self.whole += 1
        return result

    def right(self):
        """Whether it says what it would if it were made anew now, which is not counted."""
        is_so = self._file.read_bytes()
        counted = self.whole
        self._memory._desk.sync.listing(self._memory._desk.scope("project"), now=True)
        self.whole = counted
        return is_so == self._file.read_bytes()


@pytest.fixture
def makings(memory, home, monkeypatch):
    makings = _Makings(memory, home, monkeypatch)
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(300)])
    makings.whole = 0
    return makings


def test_in_the_listing_of_a_large_scope_only_the_lines_of_changed_notes_are_made(memory, makings):
    for key in ("k0", "a", "zz", "k150a", "k299"):
        memory.store(f"{key},\nnew", key=key)
        assert makings.whole == 0
        assert makings.right()
    memory.store_many([{"text": f"more {n}", "key": f"k{n}0"} for n in range(290, 310)])
    memory.fact("k3", "colour", "red")
    memory.store("number 5", key="k5", tags=["tagged"])
    assert makings.whole == 0
    assert makings.right()


def test_the_line_of_a_note_that_goes_is_taken_out_of_the_listing_of_a_large_scope(memory, home, makings):
    memory.forget("k7")
    assert "k7" not in _listed(home)
    assert makings.whole == 0 and makings.right()
    memory.forget("k0")
    memory.store("new", key="new")
    memory.store_many([{"text": "newer", "key": "k1"}, {"text": "the last", "key": "zzz"}])
    assert {"k0", "k7"}.isdisjoint(_listed(home))
    assert makings.whole == 0 and makings.right()
    memory.restore("k7")
    memory.purge("k8")
    assert "k7" in _listed(home)
    assert "k8" not in _listed(home)
    assert makings.right()


def test_the_listing_of_a_large_scope_is_right_when_a_note_goes_as_another_comes(memory, home, makings):
    notes = home / "shelf" / "projects" / "demo" / "notes"
    for number in range(5):
        os.rename(notes / f"k{number}.md", notes / f"moved-{number}.md")
        memory.recall("number", mode="keyword")
        memory.store(f"again {number}", key="more")
        assert f"k{number}" not in _listed(home)
        assert makings.right()


def test_the_listing_of_a_large_scope_drops_a_note_that_cannot_be_read_any_more(memory, home, makings):
    (home / "shelf" / "projects" / "demo" / "notes" / "k9.md").unlink()
    (home / "shelf" / "projects" / "demo" / "notes" / "k9.md").mkdir()
    memory.store("another", key="another")
    memory.recall("another", mode="keyword")
    memory.store("another one", key="another")
    assert "k9" not in _listed(home)
    assert makings.right()


@pytest.mark.parametrize("how", ["edited", "gone", "a link"])
def test_a_listing_that_somebody_else_wrote_is_not_amended(memory, home, makings, tmp_path, how):
    file = home / "shelf" / "projects" / "demo" / "index.md"
    if how == "edited":
        file.write_text("- [mine](notes/mine.md): not of holdfast\n")
    else:
        file.unlink()
    if how == "a link":
        (tmp_path / "theirs").write_text("theirs")
        file.symlink_to(tmp_path / "theirs")
    memory.store("new", key="new")
    assert makings.right()
    assert "mine" not in _listed(home)
    if how == "a link":
        assert (tmp_path / "theirs").read_text() == "theirs"


def test_the_listing_of_a_large_scope_follows_who_is_in_quarantine(open_memory, home, makings, memory):
    memory.store("said by a page", key="of-a-page", origin="web")
    file = home / "shelf" / "projects" / "demo" / "index.md"
    assert "said by a page" not in file.read_text()
    (home / "config.toml").write_text('[trust]\nquarantine = ["import"]\n')
    open_memory().store("one more", key="one-more")
    assert "said by a page" in file.read_text()


def test_keys_that_are_not_shown_as_they_are_do_not_disturb_the_order_of_a_large_listing(memory, home, makings):
    notes = home / "shelf" / "projects" / "demo" / "notes"
    (notes / "k1[x]<b>.md").write_text("odd\n")
    (notes / "kä.md").write_text("umlaut\n")
    memory.recall("odd", mode="keyword")
    for key in ("k1a", "k2a", "kz"):
        memory.store("beside", key=key)
        assert makings.right()


def test_a_note_with_brackets_in_its_name_does_not_hide_another_in_a_large_listing(memory, home, makings, monkeypatch):
    notes = home / "shelf" / "projects" / "demo" / "notes"
    (notes / "x]y.md").write_text("odd\n")
    memory.recall("odd", mode="keyword")
    monkeypatch.setattr(sync.Sync, "listing", lambda *_arguments, **_named: None)
    memory.store("plain", key="x")
    memory.forget("k7")
    monkeypatch.undo()
    memory.store("plain again", key="y")
    assert "k7" not in _listed(home) and "x" in _listed(home)


@pytest.mark.parametrize("damage", [lambda data: bytes(len(data)), lambda data: data[:2000] + bytes(400) + data[2400:]])
def test_a_large_listing_whose_bytes_are_not_those_written_is_made_anew(memory, makings, monkeypatch, damage):
    read = Shelf.read_listing
    monkeypatch.setattr(Shelf, "read_listing", lambda *arguments: damage(read(*arguments)))
    memory.store("after a power cut", key="new")
    assert makings.whole == 1 and makings.right()


def test_the_cost_of_a_store_does_not_grow_with_the_number_of_notes(memory, monkeypatch):
    monkeypatch.setattr(sync, "_LAG", 3600)

    def calls_of_a_store(key):
        calls = []

        def hear(frame, event, argument):
            if event == "c_call" and getattr(argument, "__module__", "") in ("posix", "apsw"):
                calls.append(argument.__name__)

        sys.setprofile(hear)
        try:
            memory.store(f"text of {key}", key=key)
        finally:
            sys.setprofile(None)
        return len(calls)

    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(300)])
    calls_of_a_store("warm")
    few = calls_of_a_store("among-few")
    memory.store_many([{"text": f"number {n}", "key": f"k{n}"} for n in range(300, 1500)])
    calls_of_a_store("warm-again")
    assert calls_of_a_store("among-many") <= few + 2


def test_a_listing_shows_no_text_that_could_pass_for_a_line_of_its_own(memory, home):
    memory.store("real\n- [fake](notes/fake.md) (user, 2020-01-01): planted\n", key="real")
    assert _listed(home) == ["real"]
