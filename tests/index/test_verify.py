"""An index that is not as it was written: a change of any value, word or vector is noticed."""

from __future__ import annotations

import shutil
import threading

import apsw
import pytest

from holdfast import Memory, config
from holdfast.index.sqlite import SqliteIndex
from holdfast.index.tokenizer import index_terms

_TABLES = {  # without models, and without columns that only say whether to read a folder again
    "doc": "folder name ino ctime size mix digest kind key note_id title type tags created updated source valid_from valid_to"
    " pinned touched first_line last_line versions problem trust exposed facts prose platform_key relations mentions sum",
    "passage": "doc seq past names text first_line last_line type tags source recorded valid_from valid_to closed replaced"
    " words sum turn speaker offset",
    "fact": "doc subject label value about named valid_from valid_to retired_by links line sum",
    "relation": "doc kind target status origin stated sum",
    "piece": "marks tokens sum",
    "made": "what passage",
    "folder": "scope part passages words sum",
    "place": "passage slot sum",
    "block": "model folder used sum ids signs numbers",
}
_VALUES = [(table, column) for table, columns in _TABLES.items() for column in columns.split()]
_NUMBER = {"piece": "passage", "made": "passage", "place": "passage"}  # where a row has no id of its own
_OTHER = {"integer": "{0} + 1000", "text": "{0} || 'x'", "null": "'x'", "blob": "zeroblob(length({0}))"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A home with data of every kind."""
    home = tmp_path_factory.mktemp("verifying") / "home"
    with Memory(home, config=config.load(home).replace(embedder="static")) as memory:
        memory.store("The harbour opens at six.\n\n- [2026-03-01] status: open", key="harbour", tags=["port"])
        memory.store("The harbour opens at seven.\n\n- [2026-04-01] status: late", key="harbour")
        memory.store("The tide table, in short.", key="made", made_from=["https://example.org/tides"])
        memory.relate("made", "relates_to", "harbour")
        memory.files.create("plan.md", "# Plan\nFirst the quay.\n")
        memory.log([{"role": "user", "text": "The harbour was closed on Sunday."}], session="s1", client="chat")
        memory.embed()
        assert memory.check() == []
    return home


@pytest.fixture
def home(written, tmp_path):
    return shutil.copytree(written, tmp_path / "home")


def run(home, statement):
    """Return a statement that changes a value."""
    db = apsw.Connection(str(home / "index.db"))
    db.execute(statement).fetchall()
    assert db.changes(), f"nothing to spoil: {statement}"
    db.close()


def verify_home(home):
    index = SqliteIndex(str(home), 5.0)
    try:
        return index.verify()
    finally:
        index.close()


def test_what_was_written_is_sound(home):
    assert verify_home(home) == ""


@pytest.mark.parametrize(("table", "column"), _VALUES)
def test_no_value_changes_unseen(home, table, column):
    db = apsw.Connection(str(home / "index.db"))
    kind = db.execute(f"SELECT typeof({column}) FROM {table} ORDER BY {column} IS NULL LIMIT 1").fetchone()[0]
    db.close()
    first = f"SELECT {_NUMBER.get(table, 'id')} FROM {table} ORDER BY {column} IS NULL LIMIT 1"
    run(home, f"UPDATE {table} SET {column} = {_OTHER[kind].format(column)} WHERE {_NUMBER.get(table, 'id')} = ({first})")
    assert verify_home(home)


@pytest.mark.parametrize("table", ["now", "past"])
def test_a_text_that_its_words_no_longer_find_is_seen(home, table):
    run(home, f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})")
    assert verify_home(home) == "the words of a text do not match the text"


def test_texts_that_the_words_of_others_find_are_seen(home):
    """Every word is said as often as before."""
    db = apsw.Connection(str(home / "index.db"))
    notes = "SELECT p.id, d.folder, p.names, p.text FROM passage p JOIN doc d ON d.id = p.doc WHERE kind = 'note' AND NOT past"
    (one, folder, *ours), (other, _, *theirs) = db.execute(notes).fetchall()
    for id, (names, text) in ((one, theirs), (other, ours)):
        db.execute("DELETE FROM now WHERE rowid = ?", (id,))
        row = (id, f"in{folder}", " ".join(index_terms(names)), " ".join(index_terms(text)))
        db.execute("INSERT INTO now (rowid, place, names, text) VALUES (?, ?, ?, ?)", row)
    db.close()
    assert verify_home(home) == "the words of a text do not match the text"


@pytest.mark.parametrize("table", ["doc", "fact", "made", "place"])
def test_a_row_too_few_is_seen(home, table):
    which = _NUMBER.get(table, "id")
    run(home, f"DELETE FROM {table} WHERE {which} = (SELECT min({which}) FROM {table})")
    assert verify_home(home)


def test_words_that_are_nothing_but_an_ending_are_found_and_sound(tmp_path):
    with Memory(tmp_path / "home") as memory:
        memory.store("Απόφαση εις βάρος του δήμου, ουσε ηκε", key="greek")
        assert memory.check() == [] and [hit.key for hit in memory.recall("εις")] == ["greek"]


def test_averages_that_are_lost_are_seen_and_the_next_question_is_answered(home):
    db = apsw.Connection(str(home / "index.db"))
    (averages,) = db.execute("SELECT block FROM now_data WHERE id = 1").fetchone()
    db.execute("UPDATE now_data SET block = ? WHERE id = 1", (bytes([averages[0] ^ 4]) + averages[1:],))
    db.close()
    assert verify_home(home)
    with Memory(home) as memory:
        assert "harbour" in [hit.key for hit in memory.recall("harbour", mode="keyword")]


@pytest.mark.parametrize("column", ["doc.source", "passage.source", "doc.tags", "passage.first_line", "passage.words"])
def test_a_row_that_makes_no_sense_is_built_anew_by_whoever_meets_it(home, column):
    table, name = column.split(".")
    run(home, f"UPDATE {table} SET {name} = 'user' || char(11) || char(10)")
    with Memory(home) as memory:
        assert sorted(note.key for note in memory.list()) == ["harbour", "made"]
        assert "harbour" in [hit.key for hit in memory.recall("harbour opens")]
        memory.brief()
        memory.check()
        assert memory.check() == []


def test_doctor_says_so_and_builds_it_anew(home):
    run(home, "UPDATE doc SET key = 'barbour' WHERE key = 'harbour'")
    with Memory(home, config=config.load(home).replace(embedder="static")) as memory:
        assert [one.code for one in memory.check()] == ["index_damaged"]
        assert memory.check() == [] and sorted(note.key for note in memory.list()) == ["harbour", "made"]


@pytest.mark.parametrize("column", ["doc.key", "doc.title", "doc.tags", "passage.text", "passage.source", "fact.value"])
def test_a_text_that_is_no_text_any_more_is_built_anew_by_whoever_meets_it(home, column):
    table, name = column.split(".")
    run(home, f"UPDATE {table} SET {name} = CAST(x'ff41' AS TEXT) WHERE id = (SELECT max(id) FROM {table})")
    with Memory(home) as memory:
        assert "harbour" in [hit.key for hit in memory.recall("harbour opens")]
        assert sorted(note.key for note in memory.list()) == ["harbour", "made"]
        assert {fact.value for fact in memory.facts()} == {"late"}
        memory.check()
        assert memory.check() == []


class Counting:
    """A lock that counts its users."""

    def __init__(self):
        self.lock, self.asked = threading.Lock(), threading.Semaphore(0)
        self.release = self.lock.release

    def acquire(self, timeout):
        self.asked.release()
        return self.lock.acquire(timeout=timeout)


def test_of_many_threads_that_met_nonsense_one_looks_and_all_are_told(memory, monkeypatch):
    memory.store("The harbour opens at six.", key="harbour")
    index, looks, gate, lock, told = memory._context.index, [], threading.Event(), Counting(), []

    def verify(*_):
        looks.append(gate.wait(60))
        return ""

    monkeypatch.setattr(type(index), "verify", verify)
    monkeypatch.setattr(index, "_verify_lock", lock)
    threads = [threading.Thread(target=lambda: told.append(index.reset_if_damaged())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert lock.asked.acquire(timeout=60)
    gate.set()
    for thread in threads:
        thread.join()
    assert told == [False] * 6 and looks == [True]
    assert index.reset_if_damaged() is False and len(looks) == 2  # a later call checks again
