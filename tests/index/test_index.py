"""The index is derived: whatever happens to it, the next call answers correctly and the store is unchanged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast import Memory
from holdfast.models import Progress

PARTS = ("index.db", "index.db-wal", "index.db-shm")


def fill(memory):
    memory.store("the harbour opened at six", key="opening", tags="hours", valid_from="2026-01-01")
    memory.store("the harbour opens at seven", key="opening", valid_from="2026-03-01")
    memory.store("harbour dues are paid on Friday", key="dues", type="feedback")
    memory.store("harbour rules for all", key="rules", scope="global")
    memory.fact("Harbour", "state", "closed", on="2026-01-01")
    memory.fact("Harbour", "state", "open", on="2026-02-01")
    memory.files.create("deep/page.md", "# Ships\nharbour ships\n\n- [2026-01-01] Ship: Aurora\n")
    memory.store_many([{"text": f"filler number {n} " + "words " * 50, "key": f"filler-{n}"} for n in range(40)])
    memory.store("forgotten harbour", key="forgotten")
    memory.forget("forgotten")
    memory.recall("harbour")


def answers(memory):
    """Return everything that a caller can read, without what may differ between two builds of the same index."""

    def told(answer):
        return sorted((str(hit.scope), hit.key, hit.text, hit.citation, hit.valid_from, hit.valid_to) for hit in answer)

    return {
        "now": told(memory.recall("harbour", mode="keyword", limit=100)),
        "then": told(memory.recall("harbour", mode="keyword", as_of="2026-02-15", limit=100)),
        "recent": told(memory.recall(mode="recent", limit=100)),
        "degraded": memory.recall("harbour", mode="keyword").degraded,
        "list": sorted((str(note.scope), note.key, note.text, note.version, note.versions) for note in memory.list()),
        "facts": sorted(
            (fact.subject, fact.label, fact.value, fact.valid_from, fact.line) for fact in memory.facts(history=True)
        ),
        "search": sorted(snippet.path for snippet in memory.search("ships")),
        "brief": memory.brief().left_out,
    }


def settle(home):
    """Move all of the index into its main file."""
    db = apsw.Connection(str(Path(home) / "index.db"))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    for name in PARTS[1:]:
        (Path(home) / name).unlink(missing_ok=True)


def _drop(*names):
    return lambda home: [(home / name).unlink(missing_ok=True) for name in names]


def _cut(size):
    def cut(home):
        path = home / "index.db"
        os.truncate(path, size if size >= 0 else path.stat().st_size + size)

    return cut


def _over(start, make, name="index.db"):
    def over(home):
        with open(home / name, "r+b") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(int(start * length) if start < 1 else start)
            file.write(make(max(length - file.tell(), 0)))

    return over


def _statement(text):
    def run(home):
        db = apsw.Connection(str(home / "index.db"))  # not sqlite3: two libraries in one process break each other's locks
        try:
            db.execute(text).fetchall()
        except apsw.BusyError:
            pass  # another process has it open: then this cannot happen to it
        db.close()

    return run


def _garbage(length):
    return bytes((n * 197 + n // 251) % 256 for n in range(length))


DAMAGE = {
    "deleted": _drop(*PARTS),
    "deleted, log left behind": _drop("index.db"),
    "deleted, shared memory left behind": _drop("index.db", "index.db-wal"),
    "log deleted": _drop("index.db-wal"),
    "shared memory deleted": _drop("index.db-shm"),
    "log and shared memory deleted": _drop("index.db-wal", "index.db-shm"),
    **{f"truncated to {size}": _cut(size) for size in (0, 1, 15, 16, 99, 100, 512, 4095, 4096, 4097, 8192, 40960, -4096, -1)},
    "all garbage": _over(0, _garbage),
    "garbage after the header": _over(100, _garbage),
    "garbage after the first page": _over(4096, _garbage),
    "garbage in the second half": _over(0.5, _garbage),
    "all zeros": _over(0, bytes),
    "zeros after the first page": _over(4096, bytes),
    "zeros in the second half": _over(0.5, bytes),
    "a text file": lambda home: (home / "index.db").write_text("not a database\n"),
    "a file that only begins like a database": lambda home: (home / "index.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000),
    "of another schema": _statement("PRAGMA user_version = 99"),
    "of an older schema": _statement("PRAGMA user_version = 0"),
    "without a table": _statement("DROP TABLE passage"),
    "without its full-text table": _statement("PRAGMA writable_schema=1; DELETE FROM sqlite_schema WHERE name = 'now'"),
    "in another journal mode": _statement("PRAGMA journal_mode = DELETE"),
}
LOG_DAMAGE = {
    "log all garbage": _over(0, _garbage, "index.db-wal"),
    "log garbage in the second half": _over(0.5, _garbage, "index.db-wal"),
    "log truncated": lambda home: os.truncate(home / "index.db-wal", (home / "index.db-wal").stat().st_size // 2),
    "log emptied": lambda home: os.truncate(home / "index.db-wal", 0),
    "shared memory garbage": _over(0, _garbage, "index.db-shm"),
    "main file emptied, log left": _cut(0),
    "main file deleted, log left": _drop("index.db"),
}


@pytest.fixture
def filled(memory, home, truth):
    """Return the answers of a home, and the bytes of its store."""
    fill(memory)
    told, bytes_ = answers(memory), truth()
    memory.close()
    assert told["now"] and told["then"] and told["facts"] and told["search"]
    return told, bytes_


# --- the next call answers correctly ----------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_new_caller_answers_right_whatever_happened_to_the_index(filled, home, open_memory, truth, damage):
    settle(home)
    DAMAGE[damage](home)
    assert answers(open_memory()) == filled[0]
    assert truth() == filled[1]
    assert open_memory().check() == []


@pytest.mark.parametrize("damage", LOG_DAMAGE)
def test_a_new_caller_answers_right_whatever_happened_to_the_log_of_the_index(filled, home, open_memory, truth, damage):
    assert (home / "index.db-wal").stat().st_size > 0
    LOG_DAMAGE[damage](home)
    assert answers(open_memory()) == filled[0]
    assert truth() == filled[1]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_caller_that_has_the_index_open_answers_right_too(child, home, truth, damage):
    told = child(
        """
        from pathlib import Path
        sys.path.insert(0, args[2])
        import test_index as here
        memory = Memory(args[0], project="demo", cwd=args[0])
        here.fill(memory)
        for _ in range(3):
            before = here.answers(memory)
        here.DAMAGE[args[1]](Path(args[0]))
        answer = {"before": before, "after": here.answers(memory)}
        memory.store("the harbour has a new note", key="new")
        answer["new"] = [hit.key for hit in memory.recall("new", mode="keyword")]
        fresh, mine = here.answers(Memory(args[0], project="demo", cwd=args[0])), here.answers(memory)
        fresh["degraded"] = mine["degraded"]  # a log deleted under an open file: whoever comes next may have to say so
        answer["again"] = fresh == mine
        """,
        home,
        damage,
        Path(__file__).parent,
    )
    assert told["after"] == told["before"]
    assert told["new"] == ["new"]
    assert told["again"]


@pytest.mark.parametrize("verb", ["store", "store_many", "forget", "restore", "purge", "fact", "files", "clear"])
@pytest.mark.parametrize(
    "damage", ["deleted", "all garbage", "garbage in the second half", "truncated to 4096", "truncated to 0"]
)
def test_a_write_into_a_home_with_a_damaged_index_is_kept_and_found(filled, home, open_memory, verb, damage):
    settle(home)
    DAMAGE[damage](home)
    memory = open_memory()
    {
        "store": lambda: memory.store("a lighthouse", key="dues"),
        "store_many": lambda: memory.store_many([{"text": "a lighthouse", "key": "new"}]),
        "forget": lambda: memory.forget("dues"),
        "restore": lambda: memory.restore("forgotten"),
        "purge": lambda: memory.purge("dues"),
        "fact": lambda: memory.fact("Harbour", "state", "lighthouse", on="2026-04-01"),
        "files": lambda: memory.files.create("new.md", "a lighthouse"),
        "clear": lambda: memory.clear("project"),
    }[verb]()
    mine, fresh = answers(memory), answers(open_memory())
    assert mine == fresh
    memory.reindex()
    assert answers(memory) == mine
    if verb in ("store", "store_many", "fact", "files"):
        assert len(memory.recall("lighthouse")) == 1


def test_a_flipped_byte_anywhere_never_fails_a_call_nor_shows_a_text_that_is_not_there(filled, home, open_memory, truth):
    settle(home)
    data = (home / "index.db").read_bytes()
    texts = {text for _, _, text, _, _, _ in filled[0]["now"] + filled[0]["then"]}
    for place in [*range(0, 100, 9), *range(100, len(data), len(data) // 30)]:
        for name in PARTS:
            (home / name).unlink(missing_ok=True)
        (home / "index.db").write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        memory = open_memory()
        for question in ({}, {"as_of": "2026-02-15"}):
            assert {hit.text for hit in memory.recall("harbour", mode="keyword", limit=100, **question)} <= texts
        memory.list()
        memory.facts()
        memory.store(f"flipped at {place}", key="flipped")
        assert memory.get("flipped").text == f"flipped at {place}"
        memory.purge("flipped")
        memory.reindex()
        assert answers(memory) == filled[0]
        memory.close()
    assert truth() == filled[1]


def test_a_flipped_byte_in_the_text_tables_is_found_by_check_and_mended(filled, home, open_memory):
    settle(home)
    data = (home / "index.db").read_bytes()
    place = data.index(b"harbour dues are paid")
    (home / "index.db").write_bytes(data[:place] + b"garbour" + data[place + 7 :])
    memory = open_memory()
    assert "index_damaged" in {problem.code for problem in memory.check()}
    assert memory.check() == []
    assert answers(memory) == filled[0]


def test_an_index_from_yesterday_is_brought_up_to_date(filled, home, open_memory, tmp_path):
    settle(home)
    shutil.copy(home / "index.db", tmp_path / "yesterday.db")
    memory = open_memory()
    memory.store("the harbour opens at eight", key="opening")
    memory.forget("dues")
    memory.store("lighthouse", key="new")
    memory.files.delete("deep")
    told = answers(memory)
    memory.close()
    _drop(*PARTS)(home)
    shutil.copy(tmp_path / "yesterday.db", home / "index.db")
    assert answers(open_memory()) == told


def test_the_index_of_another_home_does_not_lend_its_notes(filled, home, open_memory, tmp_path):
    other = open_memory(home=tmp_path / "other")
    other.store("a stranger in the harbour", key="stranger")
    other.store("a strange opening of the harbour", key="opening")
    other.close()
    _drop(*PARTS)(home)
    for name in PARTS:
        if (tmp_path / "other" / name).exists():
            shutil.copy(tmp_path / "other" / name, home / name)
    assert answers(open_memory()) == filled[0]


def test_a_home_copied_with_its_index_answers_as_the_first_one_does(filled, home, open_memory, tmp_path):
    shutil.copytree(home, tmp_path / "copy")
    assert answers(open_memory(home=tmp_path / "copy")) == filled[0]
    assert answers(open_memory()) == filled[0]


# --- files that are not ours ------------------------------------------------------------------------------------------


def _foreign(path, row, wal=False):
    db = apsw.Connection(str(path))
    if wal:
        db.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").fetchall()
    db.execute("CREATE TABLE precious (what TEXT)")
    db.execute("INSERT INTO precious VALUES (?)", (row,))
    return db


def _rows_aside(home):
    rows = []
    for path in sorted(home.glob("index.db*")):
        if "not-ours" in path.name and not path.name.endswith(("-wal", "-shm")):
            db = apsw.Connection(str(path))
            rows += [row for (row,) in db.execute("SELECT what FROM precious")]
            db.close()
    return rows


def test_somebody_elses_database_in_our_place_is_kept_beside(filled, home, open_memory, truth):
    _drop(*PARTS)(home)
    _foreign(home / "index.db", "keep me").close()
    data = (home / "index.db").read_bytes()
    assert answers(open_memory()) == filled[0]
    assert (home / "index.db.not-ours").read_bytes() == data
    assert truth() == filled[1]


def test_a_second_foreign_database_does_not_overwrite_the_first(filled, home, open_memory):
    for row in ("first", "second"):
        _drop(*PARTS)(home)
        _foreign(home / "index.db", row).close()
        memory = open_memory()
        memory.recall("harbour")
        memory.close()
    assert sorted(_rows_aside(home)) == ["first", "second"]


def test_a_foreign_database_keeps_what_stands_in_its_log(filled, home, open_memory, tmp_path):
    _drop(*PARTS)(home)
    db = _foreign(tmp_path / "theirs.db", "only in the log", wal=True)
    shutil.copy(tmp_path / "theirs.db", home / "index.db")
    shutil.copy(tmp_path / "theirs.db-wal", home / "index.db-wal")
    db.close()
    assert answers(open_memory()) == filled[0]
    assert _rows_aside(home) == ["only in the log"]


# --- building the index -----------------------------------------------------------------------------------------------


class RecordedProgress(Progress):
    def __init__(self):
        self.events = []

    def start(self, what, total):
        self.events.append(("start", total))

    def step(self, count=1):
        self.events.append(("step", count))

    def end(self):
        self.events.append(("end", 0))


def test_a_rebuild_says_how_far_it_is_and_a_call_with_nothing_to_do_says_nothing(filled, home, open_memory):
    _drop(*PARTS)(home)
    heard = RecordedProgress()
    memory = open_memory(progress=heard)
    memory.recall("harbour")
    totals = [count for event, count in heard.events if event == "start"]
    steps = [count for event, count in heard.events if event == "step"]
    assert sum(totals) == sum(steps) == 45
    assert heard.events[0][0] == "start" and heard.events[-1][0] == "end"
    heard.events.clear()
    memory.recall("harbour")
    assert heard.events == []


def test_reindex_builds_all_of_it_anew_and_says_what_it_found(filled, home, open_memory):
    memory = open_memory()
    _statement("UPDATE passage SET text = 'garbour'")(home)
    built = memory.reindex()
    assert (built.notes, built.files, built.facts) == (44, 1, 3)
    assert built.passages >= 47
    assert built.seconds >= 0
    assert answers(memory) == filled[0]


def test_reindex_covers_scopes_that_the_caller_cannot_see(open_memory):
    open_memory(project="other").store("text", key="k")
    assert open_memory().reindex().notes == 1


def test_callers_that_have_the_old_index_open_follow_a_reindex(filled, open_memory):
    first, second = open_memory(), open_memory()
    for _ in range(3):
        assert answers(first) == filled[0]
    second.reindex()
    assert answers(first) == filled[0]
    second.store("lighthouse", key="new")
    assert len(first.recall("lighthouse")) == 1


def test_the_index_may_be_deleted_again_and_again_while_others_read_and_write(home):
    code = (
        "import os, sys\nfrom holdfast import Memory\nhome, me = sys.argv[1:]\n"
        "memory = Memory(home, project='demo', cwd=home)\n"
        "for n in range(30):\n"
        "    if n % 5 == ord(me) % 5:\n"
        "        for name in ('index.db', 'index.db-wal', 'index.db-shm'):\n"
        "            try:\n                os.unlink(os.path.join(home, name))\n"
        "            except FileNotFoundError:\n                pass\n"
        "    memory.store(f'word{n} of {me}', key=f'{me}-{n}')\n"
        "    found = [hit.key for hit in memory.recall(f'word{n}', limit=100)]\n"
        "    assert f'{me}-{n}' in found, (n, found)\n"
    )
    home.mkdir(0o700)
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(home), name], stderr=subprocess.PIPE, text=True)
        for name in ("a", "b", "c")
    ]
    assert [process.communicate(timeout=60)[1] for process in running] == ["", "", ""]
    with Memory(home, project="demo", cwd=home) as memory:
        assert len(memory.list()) == 90


def test_the_index_is_never_asked_to_hold_what_the_shelf_does_not(filled, home, open_memory):
    """Rows without a note are dropped, notes without a row are read: after any damage the two agree."""
    settle(home)
    _statement(
        "UPDATE doc SET name = 'ghost.md', key = 'ghost' WHERE key = 'dues';UPDATE folder SET fingerprint = fingerprint + 1"
    )(home)
    memory = open_memory()
    assert answers(memory) == filled[0]
    assert memory.check() == []
