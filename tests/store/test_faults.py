"""Faults: homes that are missing, read-only, full or another user's; planted files; concurrent processes and forks."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from tiers import tiered

from holdfast import DiskTrouble, HoldfastError, Memory, NotFound, Trouble
from holdfast.store import atomic, layout

ROOT = os.geteuid() == 0
READS = {
    "recall": lambda memory: memory.recall("harbour"),
    "recall recent": lambda memory: memory.recall(mode="recent"),
    "recall as of": lambda memory: memory.recall("harbour", as_of="2026-01-01"),
    "get": lambda memory: memory.get("k"),
    "history": lambda memory: memory.history("k"),
    "list": lambda memory: memory.list(),
    "facts": lambda memory: memory.facts("Harbour"),
    "brief": lambda memory: memory.brief(),
    "status": lambda memory: memory.status(),
    "check": lambda memory: memory.check(),
    "search": lambda memory: memory.search("harbour"),
    "read": lambda memory: memory.read("page.md"),
    "files.view": lambda memory: memory.files.view("page.md"),
    "retain dry": lambda memory: memory.retain(dry_run=True),
    "trash": lambda memory: memory.trash(),
}
WRITES = {
    "store": lambda memory: memory.store("new harbour words", key="new"),
    "store again": lambda memory: memory.store("other harbour words", key="k"),
    "store_many": lambda memory: memory.store_many([{"text": f"harbour {n}", "key": f"m{n}"} for n in range(3)]),
    "fact": lambda memory: memory.fact("Harbour", "state", "shut", on="2026-03-01"),
    "forget": lambda memory: memory.forget("k"),
    "restore": lambda memory: memory.restore("forgotten"),
    "purge": lambda memory: memory.purge("k"),
    "clear": lambda memory: memory.clear("project"),
    "files.create": lambda memory: memory.files.create("deep/new.md", "harbour"),
    "files.str_replace": lambda memory: memory.files.str_replace("page.md", "harbour", "lighthouse"),
    "files.insert": lambda memory: memory.files.insert("page.md", 0, "harbour"),
    "files.delete": lambda memory: memory.files.delete("page.md"),
    "files.rename": lambda memory: memory.files.rename("page.md", "deep/moved.md"),
}

CARE = {
    "reindex": lambda memory: memory.reindex(),
    "retain": lambda memory: memory.retain(),
    "mark": lambda memory: memory.mark(),
    "project": lambda memory: memory.project,
}


def fill(memory):
    memory.store("old harbour words", key="k")
    memory.store("harbour words", key="k")
    memory.store("forgotten harbour words", key="forgotten")
    memory.forget("forgotten")
    memory.fact("Harbour", "state", "open", on="2026-01-01")
    memory.files.create("page.md", "harbour page\n")


@pytest.fixture
def filled(open_memory):
    memory = open_memory()
    fill(memory)
    memory.close()


@pytest.fixture
def anybodys(request):
    """A folder that every user may enter; pytest's own is closed to other users."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


# --- no home ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", READS)
def test_a_read_without_a_home_answers_and_makes_none(memory, home, tmp_path, verb):
    try:
        READS[verb](memory)
    except NotFound:
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("verb", READS)
def test_a_read_without_the_folder_that_the_home_would_be_in_answers_too(open_memory, tmp_path, verb):
    memory = open_memory(home=tmp_path / "not" / "there" / "home")
    try:
        READS[verb](memory)
    except NotFound:
        pass
    assert os.listdir(tmp_path) == []


def test_a_write_makes_the_home_and_all_above_it(open_memory, tmp_path):
    open_memory(home=tmp_path / "not" / "there" / "home").store("text", key="k")
    assert (tmp_path / "not" / "there" / "home" / "shelf" / "projects" / "demo" / "notes" / "k.md").exists()


@pytest.mark.parametrize("verb", [*READS, *WRITES])
def test_a_file_where_the_home_should_be_is_said_and_left_alone(memory, home, verb):
    home.write_text("precious")
    try:
        (READS | WRITES)[verb](memory)
    except HoldfastError as error:
        assert error.message
    assert home.read_text() == "precious"


@pytest.mark.parametrize("verb", ["store", "store_many", "fact", "files.create"])
def test_no_write_is_acknowledged_when_the_home_is_a_file(memory, home, verb):
    home.write_text("precious")
    with pytest.raises(Trouble):
        WRITES[verb](memory)


@pytest.mark.parametrize("where", ["a file above it", "a name too long", "a link to itself", "a file for its shelf"])
def test_a_home_that_cannot_be_opened_breaks_no_verb_untyped(home, tmp_path, where):
    (tmp_path / "file").write_text("x")
    place = {"a file above it": tmp_path / "file" / "home", "a name too long": tmp_path / ("x" * 300)}.get(where, home)
    if where == "a link to itself":
        home.symlink_to(home)
    elif where == "a file for its shelf":
        home.mkdir(mode=0o700)
        (home / "shelf").write_text("x")
    for name, verb in (READS | WRITES | CARE).items():
        try:
            with Memory(place, project="demo", cwd=tmp_path) as memory:
                verb(memory)
        except HoldfastError as error:
            assert error.message and error.fix, name


@pytest.mark.parametrize("call", ["listdir", "open", "rename", "scandir", "stat", "statvfs"])
def test_whatever_the_system_refuses_a_verb_raises_one_of_our_errors(filled, home, tmp_path, monkeypatch, call):
    """Each verb, in a home that is copied for it, while one system call fails from its first or its third use on."""
    real, untyped = getattr(os, call), []
    for name, verb in (READS | WRITES | CARE).items():
        for spared in (0, 2):
            life = tmp_path / "life"
            shutil.copytree(home, life)
            left = [spared]

            def refused(*args, left=left, **kwargs):
                if left[0]:
                    left[0] -= 1
                    return real(*args, **kwargs)
                raise OSError(errno.EIO, "Input/output error")

            try:
                with monkeypatch.context() as patch:
                    patch.setattr(os, call, refused)
                    with Memory(life, project="demo", cwd=tmp_path) as memory:
                        verb(memory)
            except HoldfastError as error:
                assert error.message
            except OSError as error:
                untyped.append(f"{name}: {error!r}")
            shutil.rmtree(life)
    assert untyped == []


def test_a_home_that_vanishes_under_a_caller_is_made_again_by_its_next_write(memory, home):
    fill(memory)
    for _ in range(3):
        memory.recall("harbour")
    shutil.rmtree(home)
    assert memory.recall("harbour").hits == ()
    assert not home.exists()
    memory.store("lighthouse words", key="k")
    assert [hit.text for hit in memory.recall("lighthouse")] == ["lighthouse words"]


# --- read-only, full, another user's ----------------------------------------------------------------------------------


def _run_as_other_user(child, home, code):
    """Run code as a user who is not root, because root ignores file modes."""
    return child(
        f"""
        try:
            memory = Memory(args[0], project="demo", cwd="/")
        except HoldfastError as error:
            print(json.dumps({{"recall": type(error).__name__}}))
            sys.exit()
        {code}
        """,
        home,
        Path(__file__).parent,
        first="sys.path.insert(0, args[1])\nimport test_faults as here\n",
        as_nobody=True,
    )


_EACH_READ = """
        answer = {}
        for name, read in here.READS.items():
            try:
                said = read(memory)
                answer[name] = [len(said.hits), said.degraded, said.reason] if name == "recall" else "ok"
            except HoldfastError as error:
                answer[name] = type(error).__name__"""
_EACH_WRITE = """
        answer = {}
        for name, write in here.WRITES.items():
            try:
                write(memory)
                answer[name] = "ok"
            except HoldfastError as error:
                answer[name] = type(error).__name__"""


def _change_owner(path, user):
    """Give a tree to another user."""
    if ROOT:
        for one in [path, *path.rglob("*")]:
            os.chown(one, user, user, follow_symlinks=False)


def _close(path):
    for one in [*path.rglob("*"), path]:
        one.chmod(0o500 if one.is_dir() else 0o400)


def _open(path):
    for one in [path, *path.rglob("*")]:
        one.chmod(0o700 if one.is_dir() else 0o600)


@pytest.fixture
def read_only(open_memory, anybodys, truth):
    """A filled home of another user, with no write permission."""
    home = anybodys / "home"
    memory = open_memory(home=home)
    fill(memory)
    memory.recall("harbour")
    memory.close()
    _change_owner(home, 65534 if ROOT else os.getuid())
    before = truth(home)
    _close(home)
    yield home
    _open(home)
    assert truth(home) == before


def test_a_read_only_home_answers_every_read(child, read_only):
    told = _run_as_other_user(child, read_only, _EACH_READ)
    hits, _, _ = told.pop("recall")
    assert hits == 3
    assert {name: said for name, said in told.items() if said != "ok"} == {}


def test_a_read_only_home_whose_index_is_gone_still_answers_and_says_that_it_is_degraded(child, read_only):
    read_only.chmod(0o700)
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        (read_only / name).unlink(missing_ok=True)
    read_only.chmod(0o500)
    hits, degraded, reason = _run_as_other_user(child, read_only, _EACH_READ)["recall"]
    assert hits == 3
    assert degraded
    assert "index" in reason


_LIST_AND_RECALL = """
        answer = [len(memory.list()), len(memory.recall("harbour", mode="keyword", limit=100))]"""


@pytest.mark.parametrize("gone", [False, True])
def test_a_read_only_home_with_many_notes_that_the_index_has_not_seen_never_looks_empty(child, open_memory, anybodys, gone):
    home = anybodys / "home"
    with open_memory(home=home) as memory:
        memory.store_many([{"text": f"harbour {number}", "key": f"k{number}"} for number in range(250)])
    with open(home / "shelf" / "projects" / "demo" / "notes" / "k7.md", "a") as file:
        file.write("by hand\n")
    for name in ("index.db", "index.db-wal", "index.db-shm") if gone else ():
        (home / name).unlink(missing_ok=True)
    _change_owner(home, 65534 if ROOT else os.getuid())
    _close(home)
    try:
        told = _run_as_other_user(child, home, _LIST_AND_RECALL)
    finally:
        _open(home)
    assert told == [250, 100]


def test_a_read_only_home_refuses_every_write_by_name(child, read_only):
    told = _run_as_other_user(child, read_only, _EACH_WRITE)
    assert {name: said for name, said in told.items() if said not in ("DiskTrouble", "Damaged")} == {}


def test_a_home_that_cannot_even_be_read_is_said_and_never_looks_like_nothing_found(child, open_memory, anybodys):
    home = anybodys / "home"
    memory = open_memory(home=home)
    fill(memory)
    memory.close()
    _change_owner(home, 65534 if ROOT else os.getuid())
    home.chmod(0o000)
    told = _run_as_other_user(child, home, _EACH_READ)
    home.chmod(0o700)
    said = told["recall"]
    assert isinstance(said, str) or said[1], said


@pytest.mark.skipif(not ROOT, reason="only root can give a folder to somebody else")
def test_a_home_that_belongs_to_somebody_else_is_refused_by_name_and_stays_as_it_is(open_memory, anybodys, truth, child):
    home = anybodys / "home"
    memory = open_memory(home=home)
    fill(memory)
    memory.close()
    _change_owner(home, 12345)
    _open(home)
    before, names = truth(home), sorted(os.listdir(home))
    other, went = open_memory(home=home), {}
    for name, call in (READS | WRITES).items():
        try:
            said = call(other)
            went[name] = "degraded" if getattr(said, "degraded", False) else "went through"
        except DiskTrouble as error:
            assert "12345" in str(error)
    assert {name: how for name, how in went.items() if how == "went through" and name not in ("check", "status")} == {}
    assert truth(home) == before
    assert sorted(os.listdir(home)) == names
    assert all(path.lstat().st_uid == 12345 for path in home.rglob("*"))


@pytest.mark.skipif(not ROOT, reason="only root can give a folder to somebody else")
def test_check_reports_a_home_that_belongs_to_somebody_else(open_memory, anybodys):
    home = anybodys / "home"
    memory = open_memory(home=home)
    fill(memory)
    memory.close()
    _change_owner(home, 12345)
    problems = open_memory(home=home).check()
    assert any("12345" in problem.message for problem in problems)


@pytest.fixture
def small_disk(tmp_path):
    """A small disk."""
    place = tmp_path / "disk"
    place.mkdir()
    done = (
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(place)], capture_output=True, text=True)
        if ROOT
        else None
    )
    if done is None or done.returncode:
        pytest.skip("a disk that fills up needs the right to mount a small tmpfs")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_refuses_writes_by_name_loses_nothing_and_half_writes_nothing(open_memory, small_disk, truth):
    home = small_disk / "home"
    memory = open_memory(home=home)
    fill(memory)
    before, written = truth(home), {}
    with pytest.raises(DiskTrouble) as raised:
        for number in range(1000):
            text = f"harbour {number} " + "x" * 20_000
            memory.store(text, key=f"big-{number}")
            written[f"projects/demo/notes/big-{number}.md"] = text
    assert "space" in raised.value.message.lower() or "full" in raised.value.message.lower()
    assert written
    after = truth(home)
    assert {path: data for path, data in after.items() if path in before} == before
    for path, text in written.items():
        assert text.encode() in after.pop(path)
    assert set(after) == set(before)
    assert list(home.rglob(".holdfast-*")) == []
    for name, write in WRITES.items():
        try:
            write(memory)
        except HoldfastError as error:
            assert error.message, name
    assert list(home.rglob(".holdfast-*")) == []


def test_reads_go_on_when_the_disk_is_full(open_memory, small_disk):
    home = small_disk / "home"
    memory = open_memory(home=home)
    fill(memory)
    with open(small_disk / "filler", "wb", buffering=0) as filler, pytest.raises(OSError):
        while filler.write(b"x" * 4096):
            pass
    (home / "shelf" / "projects" / "demo" / "notes" / "k.md").rename(
        home / "shelf" / "projects" / "demo" / "notes" / "moved.md"
    )
    for caller in (memory, open_memory(home=home)):
        answer = caller.recall("harbour", mode="keyword")
        assert answer.degraded or sorted(hit.key for hit in answer) == ["harbour", "moved", "page.md"]
        assert caller.get("moved").text == "harbour words"
        assert caller.list() and caller.facts() and caller.brief().text
    (small_disk / "filler").unlink()
    memory.store("there is room again", key="room")
    assert [hit.key for hit in open_memory(home=home).recall("room")] == ["room"]


# --- planted files ----------------------------------------------------------------------------------------------------


def _plant(path, what, outside):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "fifo":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to(outside)
    elif what == "dangling link":
        path.symlink_to(outside / "nowhere")
    elif what == "folder":
        path.mkdir()
        (path / "inside").write_text("x")
    elif what == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as one:
            here = os.getcwd()
            os.chdir(path.parent)
            one.bind(path.name)
            os.chdir(here)
    elif what == "file":
        path.write_text("precious")


PLANTED = {
    "shelf/projects/demo/notes/k.md": ("fifo", "link", "dangling link", "folder", "socket"),
    "shelf/projects/demo/files/page.md": ("fifo", "link", "dangling link", "folder", "socket"),
    "shelf/projects/demo/notes": ("fifo", "link", "dangling link", "file"),
    "shelf/projects/demo/files": ("fifo", "link", "dangling link", "file"),
    "shelf/projects/demo/trash": ("fifo", "link", "dangling link", "file"),
    "shelf/projects/demo/index.md": ("fifo", "link", "dangling link", "folder"),
    "shelf/projects/demo": ("fifo", "link", "dangling link", "file"),
    "shelf/projects": ("fifo", "link", "dangling link", "file"),
    "shelf": ("fifo", "link", "dangling link", "file"),
    "index.db": ("fifo", "link", "dangling link", "folder", "socket"),
    "index.db-wal": ("fifo", "link", "dangling link", "folder"),
    "ledger.db": ("fifo", "link", "dangling link", "folder", "socket"),
    "run": ("fifo", "link", "dangling link", "file"),
    "run/locks": ("fifo", "link", "dangling link", "file"),
    "run/locks/projects+demo.lock": ("fifo", "link", "dangling link", "folder"),
    "config.toml": ("fifo", "dangling link", "folder"),
}


def try_all(home, where, what, outside):
    """Run every verb in a home with a planted file; return the results and the errors."""
    outside.mkdir()
    (outside / "precious.md").write_text("harbour precious")
    _plant(home / where, what, outside)
    wrong = []
    for verbs in (READS, WRITES):
        try:
            memory = Memory(home, project="demo", cwd=home.parent)
        except HoldfastError:
            continue
        for name, verb in verbs.items():
            try:
                told = verb(memory)
                if name == "recall" and any(hit.text == "harbour precious" for hit in told):
                    wrong.append("recall shows what stands outside the home")
            except HoldfastError:
                pass
            except Exception as error:  # noqa: BLE001  that there is none is what this finds out
                wrong.append(f"{name} raises {type(error).__name__}: {error}")
        memory.close()
    if os.listdir(outside) != ["precious.md"] or (outside / "precious.md").read_text() != "harbour precious":
        wrong.append(f"outside the home there is {os.listdir(outside)}")
    if what == "file" and (home / where).is_file() and (home / where).read_text() != "precious":
        wrong.append("somebody's file was overwritten")
    return wrong + [f"left {path.name}" for path in home.rglob(".holdfast-*")]


@pytest.mark.parametrize(
    "where",
    tiered(PLANTED, fast=["shelf/projects/demo/notes/k.md", "index.db", "config.toml"]),
    ids=lambda where: where.replace("shelf/projects/demo", "scope"),
)
def test_whatever_is_planted_in_the_home_no_call_hangs_leaves_the_home_or_breaks_untyped(child, filled, home, tmp_path, where):
    """A child does all verbs, so that a hang or a crash is seen; outside nothing may change."""
    told = child(
        """
        from pathlib import Path
        import shutil
        sys.path.insert(0, args[1])
        import test_faults as here
        answer = {}
        for what in here.PLANTED[args[2]]:
            life = Path(args[0]).parent / what
            life.mkdir()
            shutil.copytree(args[0], life / "home")
            print("now a", what, "at", args[2], file=sys.stderr, flush=True)
            answer[what] = here.try_all(life / "home", args[2], what, life / "outside")
        """,
        home,
        Path(__file__).parent,
        where,
        timeout=60,
    )
    assert {what: wrong for what, wrong in told.items() if wrong} == {}


@pytest.mark.parametrize("what", ["fifo", "link", "dangling link", "folder", "socket"])
def test_one_planted_note_does_not_hide_the_others(filled, home, open_memory, tmp_path, what):
    _plant(home / "shelf/projects/demo/notes/planted.md", what, tmp_path)
    _plant(home / "shelf/projects/demo/files/planted.md", what, tmp_path)
    memory = open_memory()
    assert sorted(hit.key for hit in memory.recall("harbour")) == ["harbour", "k", "page.md"]
    assert any(problem.path.endswith("notes/planted.md") for problem in memory.check())
    with pytest.raises(HoldfastError):
        memory.get("planted")
    memory.store("harbour again", key="other")
    assert len(memory.recall("harbour")) == 4


@pytest.mark.parametrize("what", ["fifo", "link", "dangling link", "folder", "socket"])
@pytest.mark.parametrize("verb", ["store", "fact"])
def test_a_store_onto_something_planted_is_refused_or_replaces_it_and_never_goes_through_it(
    filled, home, open_memory, tmp_path, what, verb
):
    outside = tmp_path / "outside.md"
    outside.write_text("precious")
    path = home / "shelf/projects/demo/notes/planted.md"
    _plant(path, what, outside)
    memory = open_memory()
    write = {"store": lambda: memory.store("text", key="planted"), "fact": lambda: memory.fact("planted", "a", "b")}[verb]
    try:
        write()
    except Trouble:
        assert not stat.S_ISREG(path.lstat().st_mode)
    else:
        assert memory.get("planted").text
    assert outside.read_text() == "precious"


# --- too much data ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["files/huge.txt", "notes/huge.md"])
def test_a_file_of_a_gigabyte_is_passed_over_and_reported(filled, home, open_memory, where):
    path = home / "shelf" / "projects" / "demo" / where
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    memory = open_memory()
    assert sorted(hit.key for hit in memory.recall("harbour")) == ["harbour", "k", "page.md"]
    assert any(where in problem.path for problem in memory.check())
    memory.store("harbour again", key="other")
    for call in (lambda: memory.files.view("huge.txt"), lambda: memory.get("huge")):
        with pytest.raises(HoldfastError):
            call()
    assert path.stat().st_size == 1 << 30


@pytest.mark.battery
def test_ten_thousand_malformed_notes_break_nothing_and_are_reported(filled, home, open_memory):
    notes = home / "shelf" / "projects" / "demo" / "notes"
    shapes = [
        b"---\ntype: odd\n---\nbroken",
        b"---\nnever closed",
        b"\xff\xfe broken",
        b"",
        b"---\ntags: {a: [\n---\nbroken",
        b"\0\0\0",
        b"---\nupdated: never\nsource: 5\nvalid_from: x\n---\nbroken",
        b"---\n---\n",
        b"---\nid: [1, 2]\ncreated: 99\n---\nbroken \xe2\x82",
        b"<!-- holdfast:history -->\n## 2020-01-01 to 2019-01-01\n",
        b"---\nsource: {origin: god, agent: [x]}\npinned: perhaps\n---\nbroken",
    ]
    folder = os.open(notes, os.O_RDONLY)
    for number in range(10_000):
        name = f"bad-{number}.md" if number % 10 else f"Bad {number}.md"
        fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
        os.write(fd, shapes[number % len(shapes)])
        os.close(fd)
    os.close(folder)
    memory = open_memory()
    assert sorted(hit.key for hit in memory.recall("harbour", mode="keyword")) == ["harbour", "k", "page.md"]
    problems = [problem for problem in memory.check() if problem.code == "file"]
    shown = [problem for problem in problems if problem.path]
    rest = [
        int(word)
        for problem in problems
        if not problem.path
        for word in problem.message.replace(",", "").split()
        if word.isdigit()
    ]
    assert 10_000 - 950 <= len(shown) + sum(rest) <= 10_000
    assert all(problem.fix for problem in problems)
    assert memory.get("bad-1") and memory.brief().text and len(memory.list()) > 5000
    memory.store("harbour again", key="bad-1")
    assert memory.get("bad-1").text == "harbour again"


def test_a_note_with_a_thousand_versions_by_hand_is_read(filled, home, open_memory):
    past = "".join(f"## 2020-01-01T00:00:{n % 60:02d}Z to 2020-01-01T00:00:{n % 60:02d}Z\nversion {n}\n\n" for n in range(5000))
    (home / "shelf/projects/demo/notes/long.md").write_text(f"now\n\n<!-- holdfast:history -->\n{past}")
    memory = open_memory()
    assert len(memory.history("long")) == 5001
    assert memory.store("next", key="long").note.versions == 5002


def test_a_deep_tree_and_a_long_name_break_nothing(filled, home, open_memory):
    deep = home / "shelf/projects/demo/files"
    for _ in range(100):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "page.md").write_text("harbour deep")
    (home / "shelf/projects/demo/files" / ("n" * 251 + ".md")).write_text("harbour long")
    memory = open_memory()
    assert len(memory.recall("harbour")) >= 4
    memory.check()


# --- clocks -----------------------------------------------------------------------------------------------------------


def test_a_clock_that_goes_backwards_loses_nothing(memory, open_memory, clock):
    fill(memory)
    clock.back(days=3650)
    memory.store("ten years earlier, harbour", key="k")
    memory.fact("Harbour", "state", "shut")
    memory.store("new and old, harbour", key="new")
    assert memory.get("k").text == "ten years earlier, harbour"
    assert len(memory.history("k")) == 3
    for caller in (memory, open_memory()):
        assert sorted(hit.key for hit in caller.recall("harbour")) == ["harbour", "k", "new", "page.md"]
    memory.forget("k")
    assert memory.restore("k").versions == 3
    assert memory.check() == []


@pytest.mark.parametrize("moment", [0, -1, 2**31, 2**33])
def test_a_clock_far_away_breaks_nothing(memory, clock, moment):
    clock.seconds = moment
    fill(memory)
    assert len(memory.recall("harbour")) == 3
    assert memory.retain() == []
    assert memory.check() == []


# --- concurrency ------------------------------------------------------------------------------------------------------

_TOGETHER = """
import sys, time
from holdfast import Memory
while time.time() < float(sys.argv[3]):
    pass
memory = Memory(sys.argv[1], project="demo", cwd="/")
memory.store("harbour words", key="k" + sys.argv[2])
memory.store_many([{"text": "harbour many", "key": "m" + sys.argv[2]}])
memory.files.create(f"page-{sys.argv[2]}.md", "harbour page")
memory.fact("Harbour", "from " + sys.argv[2], "yes")
assert len(memory.recall(mode="recent", limit=100)) >= 4
"""


def test_many_processes_that_make_the_same_home_at_once_all_succeed(home, open_memory):
    import time

    for round in range(3):
        start = str(time.time() + 0.4)
        running = [
            subprocess.Popen(
                [sys.executable, "-c", _TOGETHER, str(home), f"{round}-{n}", start], stderr=subprocess.PIPE, text=True
            )
            for n in range(6)
        ]
        assert [process.communicate(timeout=60)[1] for process in running] == [""] * 6
        memory = open_memory()
        assert len(memory.list()) == 13
        assert len(memory.facts("Harbour")) == 6
        assert len([hit for hit in memory.recall("harbour page", limit=100) if hit.kind == "file"]) == 6
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert memory.check() == []
        memory.close()
        shutil.rmtree(home)


_CROWD = """
import sys
from holdfast import Conflict, Memory
memory = Memory(sys.argv[1], project="demo", cwd="/")
lost = 0
for n in range(15):
    memory.store(f"harbour {sys.argv[2]} {n}", key=f"{sys.argv[2]}-{n}")
    memory.store(f"plain {sys.argv[2]} {n}", key="plain")
    try:
        memory.store(f"edit {sys.argv[2]} {n}", key="edited", expected=memory.get("edited").version)
    except Conflict:
        lost += 1
    memory.fact("Harbour", f"label {n}", sys.argv[2], on="2026-01-01", many=True)
print(lost)
"""


def test_many_processes_write_into_one_home_and_nothing_is_lost(open_memory, home):
    memory = open_memory()
    memory.store("start", key="edited")
    running = [
        subprocess.Popen([sys.executable, "-c", _CROWD, str(home), name], stdout=-1, stderr=-1, text=True)
        for name in ("ann", "bob", "cid")
    ]
    said = [process.communicate(timeout=60) for process in running]
    assert [errors for _, errors in said] == ["", "", ""]
    lost = sum(int(out) for out, _ in said)
    assert len(memory.history("edited")) - 1 + lost == 45
    assert len(memory.history("plain")) == 45
    assert len(memory.list()) == 48
    assert len(memory.facts("Harbour")) == 45
    assert len(memory.recall("harbour", limit=100, mode="keyword")) == 46
    assert memory.check() == []
    assert list(home.rglob(".holdfast-*")) == []


def test_threads_share_one_memory(memory):
    errors = []

    def life(name):
        try:
            for number in range(12):
                memory.store(f"harbour {name} {number}", key=f"{name}-{number}")
                memory.store(f"shared {name} {number}", key="shared")
                assert f"{name}-{number}" in [hit.key for hit in memory.recall(f"{name} {number}", limit=100)]
                memory.get("shared")
                memory.brief()
                memory.fact("Harbour", name, str(number), on=f"2026-01-{number + 1:02d}")
                memory.files.create(f"{name}.md", f"page {number}")
                if number % 4 == 3:
                    memory.forget(f"{name}-{number}")
                    memory.list()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=life, args=(name,)) for name in ("ann", "bob", "cid", "dan")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(memory.history("shared")) == 48
    assert len([note for note in memory.list() if "-" in note.key]) == 36
    assert sorted((fact.label, fact.value) for fact in memory.facts("Harbour")) == [
        (name, "11") for name in ("ann", "bob", "cid", "dan")
    ]
    assert memory.check() == []


def test_a_fork_after_use_lets_both_go_on(child, home):
    told = child(
        """
        memory = Memory(args[0], project="demo", cwd=args[0])
        for n in range(3):
            memory.store(f"before {n}", key=f"b{n}"); memory.recall("before")
        pids = []
        for n in range(3):
            pid = os.fork()
            if pid == 0:
                try:
                    for m in range(10):
                        memory.store(f"child {n} {m}", key=f"c{n}-{m}")
                        assert len(memory.recall(f"child {n} {m}", mode="keyword", limit=100)) >= 1 + m
                        memory.store(f"child {n} {m}", key="shared")
                    os._exit(0)
                except BaseException:
                    import traceback; traceback.print_exc()
                    os._exit(1)
            pids.append(pid)
        for m in range(10):
            memory.store(f"parent {m}", key=f"p{m}"); memory.recall("parent")
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        found = len(memory.recall("child", limit=100))
        answer = [codes, len(memory.list()), len(memory.history("shared")), found, len(memory.check())]
        """,
        home,
    )
    assert told == [[0, 0, 0], 44, 30, 31, 0]


# --- failing calls ----------------------------------------------------------------------------------------------------


def _failing(monkeypatch, name, nth, number):
    """The nth call of one of the operating system's functions fails."""
    count = iter(range(10**9))
    whole = getattr(os, name)

    def fail(*args, **kwargs):
        if next(count) == nth:
            raise number() if isinstance(number, type) else OSError(number, os.strerror(number))
        return whole(*args, **kwargs)

    monkeypatch.setattr(os, name, fail)
    return count


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """A filled home to copy."""
    keep = tmp_path_factory.mktemp("worlds") / "home"
    with Memory(keep, project="demo", cwd=keep.parent) as memory:
        fill(memory)
        memory.recall("harbour")
    return keep


FAULTS = [(name, errno.EIO) for name in ("fsync", "rename", "write", "unlink", "mkdir", "open")]
FAULTS += [("write", errno.ENOSPC), ("fsync", KeyboardInterrupt), ("rename", KeyboardInterrupt)]


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize(
    ("name", "number"),
    tiered(FAULTS, fast=[("rename", errno.EIO), ("write", errno.ENOSPC)]),
    ids=lambda part: {5: "EIO", 28: "ENOSPC", KeyboardInterrupt: "Ctrl-C"}.get(part, part),
)
def test_a_system_call_that_fails_leaves_every_note_as_it_was_or_as_it_should_be(
    home, worlds, open_memory, truth, verb, name, number
):
    shutil.copytree(worlds, home)
    before = truth()
    with open_memory() as memory:
        WRITES[verb](memory)
    after = truth()
    for nth in range(12):
        shutil.rmtree(home)
        shutil.copytree(worlds, home)
        memory = open_memory()
        memory.recall("harbour")
        with pytest.MonkeyPatch.context() as patch:
            count = _failing(patch, name, nth, number)
            try:
                WRITES[verb](memory)
                said = "ok"
            except (HoldfastError, KeyboardInterrupt) as error:
                said = type(error).__name__
            calls = next(count)
        memory.close()
        left = truth()
        _is_old_or_new(left, before, after, verb)
        if said == "ok" and verb not in ("store_many", "clear"):
            assert _same(left, after), f"acknowledged but not done: {name} call {nth}"
        with open_memory() as fresh:
            fresh.recall("harbour")
            assert list(home.rglob(".holdfast-*")) == [], f"a temp file is left: {name} call {nth} said {said}"
            cut_short = verb == "purge" and said != "ok"  # then doctor may report it, with the command that finishes it
            assert [one for one in fresh.check() if not (cut_short and one.code == "purge")] == []
        if calls <= nth:
            break


def _shape(path):
    """Return a path without the time and the random part in the name of a trashed note."""
    return path.split("--")[0]


def _body(data):
    """Return a file without ids and times, which differ in each run."""
    return [
        line
        for line in data.split(b"\n")
        if not line.startswith((b"id: ", b"created: ", b"updated: ", b"## ", b"<!-- holdfast:version"))
    ]


def _same(left, right):
    return sorted((_shape(path), _body(data)) for path, data in left.items() if atomic.TEMP_PREFIX not in path) == sorted(
        (_shape(path), _body(data)) for path, data in right.items()
    )


def _is_old_or_new(left, before, after, verb):
    """Check that each file is complete: the old one or the new one."""
    allowed = {}
    for world in (before, after):
        for path, data in world.items():
            allowed.setdefault(_shape(path), []).append(_body(data))
    for path, data in left.items():
        if atomic.TEMP_PREFIX in path:
            continue  # if it could not be unlinked, the next reader of the folder deletes it
        assert _body(data) in allowed.get(_shape(path), []), f"{path} is half of something after {verb}"
    names = {_shape(path) for path in left}
    assert {_shape(path).replace("/notes/", "/x/").replace("/trash/", "/x/").removesuffix(".md") for path in before} - {
        name.replace("/notes/", "/x/").replace("/trash/", "/x/").removesuffix(".md") for name in names
    } <= _runs(verb), f"lost by {verb}"


def _runs(verb):
    return {
        "purge": {"projects/demo/x/k"},
        "files.delete": {"projects/demo/files/page"},
        "files.rename": {"projects/demo/files/page"},
    }.get(verb, set())


def test_a_lock_that_somebody_keeps_is_busy_and_nothing_is_written(open_memory, home, truth, no_temp_left):
    from holdfast import Busy
    from holdfast.home import Lock

    memory = open_memory()
    fill(memory)
    before = truth()
    impatient = open_memory(config=memory.config.replace(lock_seconds=1))
    with Lock(str(home), "projects+demo", 1), pytest.raises(Busy):
        impatient.store("text", key="k")
    assert truth() == before
    assert impatient.store("text", key="k").action == "updated"


def test_the_temp_file_of_a_writer_that_died_is_swept_and_that_of_one_who_lives_is_not(filled, home, open_memory):
    import fcntl

    notes = home / "shelf" / "projects" / "demo" / "notes"
    dead, alive = notes / f"{atomic.TEMP_PREFIX}1-dead.tmp", notes / f"{atomic.TEMP_PREFIX}1-alive.tmp"
    dead.write_text("half")
    with open(alive, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        open_memory().recall("harbour")
        assert not dead.exists()
        assert alive.exists()
    open_memory().recall("harbour")
    assert not alive.exists()


def test_a_config_that_cannot_be_read_is_an_error_with_a_fix(home, open_memory):
    from holdfast import ConfigError

    home.mkdir(0o700)
    for data in (
        b"not toml [",
        b"\xff\xfe",
        b"[memory]\nenabled = 'perhaps'\n",
        b"[notes]\nmax_bytes = -1\n",
        b"memory = 5\n[memory]\n",
    ):
        (home / "config.toml").write_bytes(data)
        with pytest.raises(ConfigError):
            open_memory()


def test_closing_twice_and_using_after_close_is_harmless(memory):
    memory.store("harbour words", key="k")
    memory.close()
    memory.close()
    assert len(memory.recall("harbour")) == 1


def test_a_memory_is_a_context_manager_that_lets_go_of_its_files(home, tmp_path):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(3):
        with Memory(home, project="demo", cwd=tmp_path) as memory:
            fill(memory) if not home.exists() else None
            for _ in range(3):
                memory.recall("harbour")
            memory.files.create("page.md", "text")
            with pytest.raises(HoldfastError):
                memory.files.create("page.md/below", "text")
            with pytest.raises(HoldfastError):
                memory.get("missing")
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("where", ["the home", "a folder above it"])
def test_a_home_behind_a_link_of_its_owners_works_like_any_other(open_memory, tmp_path, where):
    (tmp_path / "real" / "home").mkdir(parents=True, mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "home" if where == "the home" else tmp_path / "real")
    home = tmp_path / "link" if where == "the home" else tmp_path / "link" / "home"
    memory = open_memory(home=home)
    fill(memory)
    for caller in (memory, memory, memory, open_memory(home=home), open_memory(home=tmp_path / "real" / "home")):
        answer = caller.recall("harbour", mode="keyword")
        assert (len(answer), answer.degraded) == (3, False)
        assert caller.check() == []
    (tmp_path / "real/home/shelf/projects/demo/notes/by-hand.md").write_text("harbour by hand")
    assert len(memory.recall("harbour")) == 4


def test_a_relative_home_stays_where_it_was_when_the_process_moves(open_memory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory = open_memory(home="home")
    monkeypatch.chdir("/")
    fill(memory)
    assert len(memory.recall("harbour")) == 3
    assert (tmp_path / "home" / "shelf").is_dir()


@pytest.mark.battery
def test_a_note_whose_history_has_grown_to_the_most_that_is_read_is_refused_and_stays_readable(filled, home, open_memory):
    path = home / "shelf" / "projects" / "demo" / "notes" / "k.md"
    section = "## 2020-01-01T00:00:00Z to 2020-01-02T00:00:00Z\n" + "x" * 60_000 + "\n\n"
    with open(path, "a") as file:
        file.write("\n" + section * ((layout.NOTE_FILE_BYTES - path.stat().st_size - 30_000) // len(section)))
    memory = open_memory()
    try:
        memory.store("harbour " + "y" * 60_000, key="k")
    except HoldfastError:
        assert memory.get("k").text == "harbour words"
    else:
        assert memory.get("k").text.startswith("harbour yyy")


@pytest.mark.parametrize("part", ["notes", "files"])
@pytest.mark.parametrize("name", [b"new\nline.md", b"tab\t.md", b'quote".md', b"back\\slash.md", b"a:1-2.md", b"\x1b[2J.md"])
def test_a_name_that_only_a_person_could_think_of_breaks_nothing(filled, home, open_memory, part, name):
    with open(os.path.join(os.fsencode(home), b"shelf/projects/demo", part.encode(), name), "wb") as file:
        file.write(b"harbour of an odd name\n")
    memory = open_memory()
    assert "harbour of an odd name" in [hit.text for hit in memory.recall("harbour")]
    assert [hit.key for hit in memory.recall("odd")] == [name.decode().removesuffix(".md" if part == "notes" else "")]
    for verb in READS.values():
        verb(memory)
    memory.reindex()
    assert len(memory.recall("odd")) == 1


@pytest.mark.parametrize("place", [b"notes/caf\xe9.md", b"files/caf\xe9.md", b"files/caf\xe9/page.md"])
def test_a_name_that_is_not_utf8_breaks_nothing_and_is_reported(filled, home, open_memory, place):
    path = os.path.join(os.fsencode(home), b"shelf/projects/demo", place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"harbour of an odd name\n")
    memory = open_memory()
    for verb in READS.values():
        verb(memory)
    assert len(memory.recall("harbour")) >= 3
    assert any("caf" in problem.message for problem in memory.check())
    assert os.path.exists(path)


@pytest.mark.parametrize("name", ["index.db", "index.db-shm"])
@pytest.mark.parametrize("left", [0, 4096])
def test_an_index_that_somebody_cuts_short_while_it_is_open_is_mended(child, home, name, left):
    code = """
        memory = Memory(args[0], project="demo")
        memory.store_many([{"text": f"words number {n} of the harbour " * 20, "key": f"k{n}"} for n in range(300)])
        memory._context.index._database.scrub()
        memory.recall("harbour", mode="keyword")
        os.truncate(os.path.join(args[0], args[1]), int(args[2]))
        found = memory.recall("number 17", mode="keyword").hits
        answer = [len(found), memory.store("new", key="new").action, len(memory.list())]
    """
    assert child(code, home, name, left) == [10, "created", 301]
