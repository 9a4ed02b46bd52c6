"""The store in PostgreSQL: documents, trees and transcripts, byte for byte, with concurrent writers."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tiers import tiered

from holdfast.base.ids import FileId, file_fingerprint
from holdfast.errors import Busy, Conflict, Damaged, InvalidPath, NotFound, Unsure
from holdfast.models import Scope
from holdfast.postgres import PostgresSettings
from holdfast.postgres.store import PostgresStore
from holdfast.postgres.transcripts import PostgresTranscript, PostgresTranscripts
from holdfast.postgres.tree import PostgresTree
from holdfast.store import interface
from holdfast.store.files import FileStore
from holdfast.store.interface import Changed, NoteWrite
from holdfast.store.transcripts import TranscriptFile, TranscriptFiles
from holdfast.store.tree import FileTree

HERE = Scope("project", "demo")
FOLDER = HERE.folder
BYTES = [b"", b"plain", b"nul \0 within", b"\xff\xfe not UTF-8", "Grüße 🌊\n".encode(), bytes(range(256)) * 400]


@pytest.fixture
def open_store(postgres_url, tmp_path):
    """Open a store on the database, as a tenant and agent see it."""

    def opened(tenant="default", agent="*", seconds=20.0):
        return PostgresStore(PostgresSettings(url=postgres_url, tenant=tenant, agent=agent), str(tmp_path), seconds)

    return opened


@pytest.fixture
def store(open_store):
    return open_store()


def computed_fingerprints(store, scope=FOLDER):
    """Compute the fingerprints of a scope from its entries."""
    counts = {"notes": 0, "files": 0, "transcripts": 0}
    for entry in store.entries(scope, "notes"):
        counts["notes"] ^= file_fingerprint(entry.file_id, "")
    for entry in store.tree(scope).entries():
        counts["files"] ^= file_fingerprint(entry.file_id, entry.name)
    for entry in store.transcripts(scope).entries():
        counts["transcripts"] ^= file_fingerprint(entry.file_id, entry.name)
    return counts


def stored_fingerprints(store, scope=FOLDER):
    return {part: store.fingerprint(scope, part) for part in ("notes", "files", "transcripts")}


# --- notes ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A7")
@pytest.mark.parametrize("data", BYTES, ids=range(len(BYTES)))
def test_bytes_come_back_as_they_were_given(store, data):
    stamp = store.write_note(HERE, "k", data, None)
    content = store.read_note(HERE, "k")
    assert content.data == data
    assert content.file_id == stamp == store.file_id(FOLDER, "notes", "k.md")
    assert stamp.size == len(data)


@pytest.mark.promise("A7")
def test_a_write_names_what_it_replaces(store):
    first = store.write_note(HERE, "k", b"one", None)
    with pytest.raises(Changed):
        store.write_note(HERE, "k", b"two", None)
    second = store.write_note(HERE, "k", b"two", first)
    assert second != first
    with pytest.raises(Changed):
        store.write_note(HERE, "k", b"three", first)
    with pytest.raises(Changed):
        store.write_note(HERE, "other", b"three", second)
    assert store.read_note(HERE, "k").data == b"two"
    assert store.read_note(HERE, "other") is None
    assert stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_what_may_not_be_written_is_not(store):
    def no():
        raise Conflict("somebody is against it")

    with pytest.raises(Conflict):
        store.write_note(HERE, "k", b"one", None, check=no)
    assert store.read_note(HERE, "k") is None
    assert store.fingerprint(FOLDER, "notes") == 0
    assert not store.has_folder(FOLDER)


@pytest.mark.promise("A7")
def test_many_are_written_all_or_none(store):
    seen = store.write_note(HERE, "a", b"one", None)
    notes = [NoteWrite(HERE, f"n{number}.md", b"text", None) for number in range(300)]
    with pytest.raises(Changed):
        store.write_notes([*notes, NoteWrite(HERE, "a.md", b"two", FileId(1, 2, 3))])
    assert [entry.name for entry in store.entries(FOLDER, "notes")] == ["a.md"]
    stamps = store.write_notes([*notes, NoteWrite(HERE, "a.md", b"two", seen)])
    assert store.file_ids(FOLDER, "notes", ["n0.md", "a.md"]) == {"n0.md": stamps[0], "a.md": stamps[-1]}
    read = store.read_notes([(HERE, "a"), (HERE, "missing"), (HERE, "n7")])
    assert [content and content.data for content in read] == [b"two", None, b"text"]
    assert stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_many_writers_lose_nothing(open_store):
    """Each of them counts numbers up, the same ones, again whenever another was faster."""

    def counted_up(store, key):
        content = store.read_note(HERE, key)
        now = int(content.data) if content else 0
        try:
            store.write_note(HERE, key, str(now + 1).encode(), content.file_id if content else None)
        except Changed:
            return False
        return True

    def work(_):
        store = open_store(seconds=60)
        for turn in range(200):
            while not counted_up(store, f"count-{turn % 5}"):
                pass

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(work, range(8)))
    store = open_store()
    assert [int(store.read_note(HERE, f"count-{number}").data) for number in range(5)] == [320] * 5
    assert stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_notes_go_to_the_trash_and_come_back(store):
    for key in ("a", "b", "c"):
        store.write_note(HERE, key, key.encode(), None)
    seen = {"b": store.file_id(FOLDER, "notes", "b.md"), "c": (0, 0, 0)}
    assert store.move_notes(HERE, ["a", "missing"], "trash", 1000.0) == ["a"]
    assert store.move_notes(HERE, ["b", "c"], "trash", 500.0, seen) == ["b"]
    assert [one.key for one in store.list_trash(HERE)] == ["b", "a"]  # the last first, although the clock went back
    assert [entry.name for entry in store.entries(FOLDER, "notes")] == ["c.md"]
    one = store.list_trash(HERE, "a")[0]
    with pytest.raises(Changed):
        store.restore_note(HERE, one, "c")
    store.restore_note(HERE, one, "a")
    with pytest.raises(Changed):
        store.restore_note(HERE, one, "again")
    assert store.read_note(HERE, "a").data == b"a"
    assert stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_what_is_erased_is_gone_and_only_what_was_seen_is(store):
    stamp = store.write_note(HERE, "k", b"one", None)
    with pytest.raises(Changed):
        store.erase_file(HERE, "notes", "k.md", (1, 2, 3))
    assert store.erase_file(HERE, "notes", "k.md", stamp) is True
    assert store.erase_file(HERE, "notes", "k.md") is False
    assert store.read_note(HERE, "k") is None
    assert store.fingerprint(FOLDER, "notes") == 0


@pytest.mark.promise("A7")
def test_tenants_and_agents_are_apart(open_store):
    mine, yours = Scope("agent", "mine"), Scope("agent", "yours")
    everybody = open_store()
    for place in (HERE, mine, yours):
        everybody.write_note(place, "k", b"text", None)
    assert everybody.list_scopes() == ["agents/mine", "agents/yours", "projects/demo"]
    one = open_store(agent="mine")
    assert one.list_scopes() == ["agents/mine", "projects/demo"]
    assert one.read_note(yours, "k") is None and one.read_note(mine, "k").data == b"text"
    other = open_store(tenant="other")
    assert other.list_scopes() == [] and other.read_note(HERE, "k") is None
    other.write_note(HERE, "k", b"another's", None)
    assert everybody.read_note(HERE, "k").data == b"text"
    nobody = open_store(tenant="")
    assert nobody.list_scopes() == []


@pytest.mark.promise("A7")
def test_who_holds_a_scope_keeps_writers_out(open_store):
    store, other = open_store(), open_store(seconds=0.3)
    with store.lock_scope(HERE):
        with pytest.raises(Busy):
            other.write_note(HERE, "k", b"one", None)
        other.write_note(Scope("global"), "k", b"one", None)
    other.write_note(HERE, "k", b"one", None)


@pytest.mark.promise("A7")
def test_a_named_lock_is_held_by_one_process_at_a_time(open_store):
    first, second = open_store().named_lock("purge"), open_store().named_lock("purge", 0)
    with first:
        assert second.acquire(0) is False
        with open_store(tenant="other").named_lock("purge", 0):
            pass
    assert second.acquire(0) is True
    second.release()


# --- lost answers -----------------------------------------------------------------------------------------------------


class Losing:
    """A database that commits, or does not, and loses the answer."""

    def __init__(self, database, times, done, meanwhile=lambda: None):
        self._database, self._times, self._done, self._meanwhile = database, times, done, meanwhile

    def __getattr__(self, name):
        return getattr(self._database, name)

    def write(self, work, durable=False):
        if not durable or self._times == 0:
            return self._database.write(work, durable)
        self._times -= 1

        def undone(db):
            work(db)
            if not self._done:
                raise KeyError

        try:
            self._database.write(undone, durable)
        except KeyError:
            pass
        self._meanwhile()
        raise Unsure("the answer was lost")


@pytest.mark.promise("A7")
@pytest.mark.parametrize("done", [True, False], ids=["kept", "not kept"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_answer_is_settled_by_looking(store, times, done):
    def lose():
        store.database = Losing(store.database, times, done)

    lose()
    stamp = store.write_note(HERE, "k", b"one", None)
    assert store.file_id(FOLDER, "notes", "k.md") == stamp
    lose()
    assert store.move_notes(HERE, ["k"], "trash", 1000.0) == ["k"]
    lose()
    store.restore_note(HERE, store.list_trash(HERE)[0], "k")
    lose()
    assert store.erase_file(HERE, "notes", "k.md") is True
    lose()
    store.tree(FOLDER).write(("a", "b.md"), b"file", None)
    lose()
    store.tree(FOLDER).rename(("a",), ("z",))
    lose()
    store.transcripts(FOLDER).open("c/s.jsonl").append(lambda others, empty: [b"one\n"])
    lose()
    assert store.transcripts(FOLDER).open("c/s.jsonl").replace_lines(lambda line: b"other") == 1
    transcript_file = store.transcripts(FOLDER).open("c/s.jsonl")
    assert [line.data for line in transcript_file.read_lines()] == [b"other"]
    lose()
    assert transcript_file.move_to_trash("20260101T000000Z") is True and transcript_file.file_id() is None
    lose()
    assert transcript_file.restore("s--20260101T000000Z.jsonl") is True and transcript_file.file_id() is not None
    lose()
    assert store.transcripts(FOLDER).open("c/s.jsonl").erase() is True and transcript_file.file_id() is None
    assert stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_what_somebody_else_erased_before_the_second_try_was_not_erased_by_us(store, open_store):
    store.write_note(HERE, "k", b"one", None)
    write, tries = store.database.write, []

    def outrun(work, durable=False):
        """Lose the first attempt before its COMMIT; then another caller erases the note."""

        def twice(db):
            work(db)
            tries.append(db)
            if len(tries) == 1:
                raise KeyError

        with contextlib.suppress(KeyError):
            return write(twice, durable)
        assert open_store().erase_file(HERE, "notes", "k.md") is True
        return write(work, durable)

    store.database.write = outrun
    assert store.erase_file(HERE, "notes", "k.md") is False


@pytest.mark.promise("A7")
def test_a_second_try_never_erases_what_somebody_wrote_after_the_first(store, open_store):
    store.write_note(HERE, "k", b"one", None)
    store.database = Losing(store.database, 1, True, lambda: open_store().write_note(HERE, "k", b"another's", None))
    with pytest.raises(Busy, match="another process"):
        store.erase_file(HERE, "notes", "k.md")
    assert store.read_note(HERE, "k").data == b"another's"
    name = "c/s.jsonl"
    open_store().transcripts(FOLDER).open(name).append(lambda others, empty: [b"one\n"])
    again = lambda: open_store().transcripts(FOLDER).open(name).append(lambda others, empty: [b"another's\n"])  # noqa: E731
    store.database = Losing(open_store().database, 1, True, again)
    with pytest.raises(Busy, match="another process"):
        store.transcripts(FOLDER).open(name).erase()
    assert [line.data for line in open_store().transcripts(FOLDER).open(name).read_lines()] == [b"another's"]


@pytest.mark.promise("A7")
def test_who_cannot_look_whether_it_is_kept_says_so(store):
    database = store.database

    class Away(Losing):
        def write(self, work, durable=False):
            if self._times == 0:
                raise Busy("the database cannot be reached")
            return super().write(work, durable)

    store.database = Away(database, 1, True)
    with pytest.raises(Unsure):
        store.write_note(HERE, "k", b"one", None)
    store.database = database
    assert store.read_note(HERE, "k").data == b"one"


@pytest.mark.promise("A7")
def test_what_settles_a_lost_answer_is_as_durable_as_the_write(store):
    asked = []

    class Told(Losing):
        def write(self, work, durable=False):
            asked.append(durable)
            return super().write(work, durable)

    store.database = Told(store.database, 1, True)
    store.write_note(HERE, "k", b"one", None)
    assert asked == [True, True]


@pytest.mark.promise("A7")
def test_an_answer_that_is_lost_for_ever_is_trouble(store):
    store.database = Losing(store.database, 100, False)
    with pytest.raises(Unsure):
        store.write_note(HERE, "k", b"one", None)


# --- trees ------------------------------------------------------------------------------------------------------------


def both_trees(store, tmp_path):
    return {"postgres": store.tree(FOLDER), "folder": FileStore(str(tmp_path / "home"), 5).tree(FOLDER)}


def told(tree, verb, given):
    """Return the result: an answer, or the kind of error."""
    try:
        return getattr(tree, verb)(*given)
    except (Conflict, Damaged, InvalidPath, NotFound) as error:
        return type(error).__name__


TREE_STORY = [
    ("list_names", ()), ("is_folder", ()), ("is_folder", ("a",)), ("read", ("a", "b.md")),
    ("write", ("a", "b.md"), b"one", None), ("write", ("a", "b.md"), b"two", None), ("list_names", ()),
    ("list_names", ("a",)), ("is_folder", ("a",)), ("is_folder", ("a", "b.md")), ("read", ("a",)),
    ("write", ("a", "b.md", "c.md"), b"below a file", None), ("write", ("a",), b"over a folder", None),
    ("create_file", ("a", "b.md"), b"no"), ("create_file", ("a", "p.md"), b"yes"), ("create_folder", ("x", "y")),
    ("create_folder", ("x", "y")), ("list_names", ()), ("list_names", ("x",)), ("list_names", ("x", "y")),
    ("list_names", ("nowhere",)), ("rename", ("a",), ("a", "inside")), ("rename", ("nowhere",), ("b",)),
    ("rename", ("a", "p.md"), ("a", "b.md")), ("rename", ("a", "p.md"), ("q", "p.md")), ("list_names", ("q",)),
    ("rename", ("a",), ("z", "deep")), ("list_names", ()), ("list_names", ("z",)), ("read", ("z", "deep", "b.md")),
    ("rename", ("q", "p.md"), ("z", "deep")), ("delete", ("nowhere",)), ("delete", ("z", "deep", "b.md")),
    ("list_names", ("z", "deep")), ("delete", ("z",)), ("list_names", ()), ("write", ("100%_\\", "ß.md"), b"odd names", None),
    ("list_names", ("100%_\\",)), ("delete", ("100%_\\",)), ("delete", ("q",)), ("list_names", ()),
]  # fmt: skip


@pytest.mark.promise("A7")
def test_a_tree_behaves_as_a_folder_does(store, tmp_path):
    trees = both_trees(store, tmp_path)
    for verb, *given in TREE_STORY:
        answers = {}
        for kind, one in trees.items():
            answer = told(one, verb, given)
            answers[kind] = getattr(answer, "data", answer)
            if verb == "rename" and answer is None:
                answers[kind] = sorted(entry.name for entry in one.entries())
        assert answers["postgres"] == answers["folder"], (verb, given)
        assert stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_a_file_is_put_in_the_place_of_the_one_seen(store):
    tree = store.tree(FOLDER)
    first = tree.write(("n.md",), b"one", None)
    assert tree.file_id(("n.md",)) == first.file_id
    second = tree.write(("n.md",), b"\0 \xff", first.file_id)
    with pytest.raises(Conflict):
        tree.write(("n.md",), b"three", first.file_id)
    assert tree.read(("n.md",)) == second
    assert tree.read_part("notes", ("k.md",)) is None


# --- transcripts ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A7")
def test_lines_are_added_and_read_on_from_a_place(store):
    transcript_file = store.transcripts(FOLDER).open("c/s.jsonl")
    assert transcript_file.file_id() is None and list(transcript_file.read_lines()) == []
    first = transcript_file.append(lambda others, empty: [b"head\n", b"nul \0 \xff\n"] if empty else [])
    assert (first.offset, first.lines) == (13, 2)
    shown = []

    def compose(others, empty):
        shown.extend([line.data for line in others])
        assert not empty
        return [b"third\n"]

    other = store.transcripts(FOLDER).open("c/s.jsonl")
    second = other.append(compose)
    assert shown == [b"head", b"nul \0 \xff"]
    lines = list(transcript_file.read_lines(first))
    assert [(line.number, line.start, line.end, line.data) for line in lines] == [(3, 13, 19, b"third")]
    assert transcript_file.file_id()[2] == second.offset == 19
    assert transcript_file.matches_line_before(13, lambda data: data == b"nul \0 \xff")
    assert not transcript_file.matches_line_before(12, lambda data: True)
    assert [line.data for line in transcript_file.read_lines(chunk=1)] == [b"head", b"nul \0 \xff", b"third"]
    assert stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_nothing_said_leaves_nothing(store):
    transcript_file = store.transcripts(FOLDER).open("c/s.jsonl")
    transcript_file.append(lambda others, empty: [])
    assert transcript_file.file_id() is None and stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_lines_are_replaced_and_the_others_keep_their_numbers(store):
    transcript_file = store.transcripts(FOLDER).open("c/s.jsonl")
    place = transcript_file.append(lambda others, empty: [b"one\n", b"secret words\n", b"three\n"])
    before = transcript_file.file_id()
    assert transcript_file.replace_lines(lambda line: None) == 0 and transcript_file.file_id() == before
    assert transcript_file.replace_lines(lambda line: b"gone\n" if line.number == 2 else None) == 1
    assert transcript_file.file_id()[0] != before[0]
    lines = [(line.number, line.start, line.data) for line in transcript_file.read_lines()]
    assert lines == [(1, 0, b"one"), (2, 4, b"gone"), (3, 9, b"three")]
    shown = []
    transcript_file.append(lambda others, empty: shown.extend(others) or [b"four\n"], place)
    assert len(shown) == 3  # another file since then: all of it is shown
    assert [line.data for line in transcript_file.read_lines()][-1] == b"four"
    assert stored_fingerprints(store) == computed_fingerprints(store)


@pytest.mark.promise("A7")
def test_transcripts_go_to_the_trash_and_come_back_or_go_for_good(store):
    transcript_files = store.transcripts(FOLDER)
    transcript_file = transcript_files.open("c/s.jsonl")
    transcript_file.append(lambda others, empty: [b"one\n"])
    assert transcript_file.move_to_trash("20260101T000000Z") is True
    assert transcript_file.move_to_trash("20260102T000000Z") is False
    assert [one.name for one in transcript_files.list_trashed()] == ["c/s--20260101T000000Z.jsonl"]
    assert list(transcript_files.entries()) == [] and stored_fingerprints(store) == computed_fingerprints(store)
    transcript_file.append(lambda others, empty: [b"again\n"])
    assert transcript_file.restore("s--20260101T000000Z.jsonl") is False  # not over another one
    assert transcript_file.erase() is True and transcript_file.erase() is False
    assert transcript_file.restore("s--20260101T000000Z.jsonl") is True
    assert [line.data for line in transcript_file.read_lines()] == [b"one"]
    assert transcript_file.move_to_trash("20260103T000000Z") and transcript_files.list_trashed()[0].erase()
    assert transcript_files.list_trashed() == [] and stored_fingerprints(store) == computed_fingerprints(store)


ADDER = """
import json, sys
from holdfast.postgres import PostgresSettings
from holdfast.postgres.store import PostgresStore
url, who = sys.argv[1:]
store = PostgresStore(PostgresSettings(url=url, agent="*"), "/nowhere", 60)
transcript = store.transcripts("projects/demo").open("c/s.jsonl")
for number in range(50):
    transcript.append(lambda others, empty: [json.dumps([who, number, part]).encode() + b"\\n" for part in (1, 2)])
"""


@pytest.mark.battery
@pytest.mark.promise("A7")
def test_processes_that_add_at_once_tear_nothing(store, postgres_url):
    command = [sys.executable, "-c", ADDER, postgres_url]
    children = [subprocess.Popen([*command, f"p{number}"], env=dict(os.environ)) for number in range(4)]
    assert [child.wait(120) for child in children] == [0] * 4
    lines = list(store.transcripts(FOLDER).open("c/s.jsonl").read_lines())
    said = [tuple(json.loads(line.data)) for line in lines]
    assert [line.number for line in lines] == list(range(1, 401))
    assert [line.start for line in lines[1:]] == [line.end for line in lines[:-1]]
    assert sorted(said) == sorted((f"p{who}", number, part) for who in range(4) for number in range(50) for part in (1, 2))
    assert all(said[place][:2] == said[place + 1][:2] for place in range(0, 400, 2))  # those of one call are adjacent
    assert stored_fingerprints(store) == computed_fingerprints(store)


# --- fingerprints of folders ----------------------------------------------------------------------------------------------


@pytest.mark.promise("A7")
@pytest.mark.parametrize("seed", tiered(range(6), fast=[0]))
def test_a_folders_fingerprint_is_always_that_of_its_documents(store, seed):
    chance = random.Random(seed)
    keys, paths = ["a", "b", "c"], [("a.md",), ("d", "b.md"), ("d", "e", "c.md"), ("f", "g.md")]

    def step(tree, transcript_files):
        key, path = chance.choice(keys), chance.choice(paths)
        transcript_file = transcript_files.open(f"c/{key}.jsonl")
        steps = [
            lambda: store.write_note(HERE, key, chance.randbytes(20), store.file_id(FOLDER, "notes", f"{key}.md")),
            lambda: store.move_notes(HERE, chance.sample(keys, 2), chance.choice(["trash", "archive"]), 1000.0),
            lambda: [store.restore_note(HERE, one, one.key) for one in store.list_trash(HERE)[:1]],
            lambda: store.erase_file(HERE, "notes", f"{key}.md"),
            lambda: tree.write(path, chance.randbytes(9), tree.file_id(path)),
            lambda: tree.rename(path[:1], chance.choice(paths)),
            lambda: tree.delete(path[: chance.randint(1, len(path))]),
            lambda: transcript_file.append(lambda others, empty: [b"line %d\n" % chance.randint(0, 10**6)]),
            lambda: transcript_file.replace_lines(lambda line: b"other" if chance.random() < 0.3 else None),
            lambda: transcript_file.move_to_trash(f"2026010{chance.randint(1, 9)}T000000Z"),
            lambda: [
                transcript_file.restore(one.name.partition("/")[2])
                for one in transcript_files.list_trashed()[:1]
                if f"/{key}--" in one.name
            ],
            lambda: transcript_file.erase(),
        ]
        try:
            chance.choice(steps)()
        except (Changed, Conflict, Damaged, InvalidPath, NotFound):
            pass

    for _ in range(60):
        step(store.tree(FOLDER), store.transcripts(FOLDER))
        assert stored_fingerprints(store) == computed_fingerprints(store)
    assert store.has_folder(FOLDER, "notes") and store.has_folder(FOLDER, "files")


# --- the interface, and what other callers see of it -------------------------------------------------------------------


def _signatures(cls):
    """Return the parameters of every public method that a class defines itself."""
    return {
        name: [(one.name, one.kind, one.default is not one.empty) for one in inspect.signature(method).parameters.values()]
        for name, method in vars(cls).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


@pytest.mark.promise("A7")
@pytest.mark.parametrize(
    ("protocol", "backends"),
    [
        (interface.Store, (FileStore, PostgresStore)),
        (interface.Tree, (FileTree, PostgresTree)),
        (interface.Transcripts, (TranscriptFiles, PostgresTranscripts)),
        (interface.Transcript, (TranscriptFile, PostgresTranscript)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_both_backends_define_every_method_of_the_interface(protocol, backends):
    wanted = _signatures(protocol)
    for backend in backends:
        assert backend.__bases__ == (object,)
        assert wanted.items() <= _signatures(backend).items()


@pytest.mark.promise("A7")
def test_agent_memory_shows_keys_and_values(store, postgres_url):
    note = b"---\nid: x\n---\nThe value,\nin two lines.\n\n<!-- holdfast:history -->\n## older\nold\n"
    store.write_note(Scope("agent", "reviewer"), "style", note, None)
    store.write_note(Scope("agent", "reviewer"), "odd", b"\xff\0 bytes", None)
    store.write_note(HERE, "not-an-agents", b"text", None)
    with psycopg.connect(postgres_url) as db:
        db.execute("SELECT set_config('role', 'holdfast_app', true), set_config('holdfast.tenant', 'default', true)")
        asked = "SELECT agent, key, value FROM holdfast.agent_memory ORDER BY key"
        assert db.execute(asked).fetchall() == []
        db.execute("SELECT set_config('holdfast.agent', 'reviewer', true)")
        rows = db.execute(asked).fetchall()
    assert rows == [("reviewer", "odd", "\\377\\000 bytes"), ("reviewer", "style", "The value,\nin two lines.")]
