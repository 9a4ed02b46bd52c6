"""Vectors in the index: found as by exhaustive search, added once, shared, erased completely, never mixed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zlib

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.index import vectors
from holdfast.index.sqlite import SQL, SqliteIndex
from holdfast.index.vectors import PIECES, BlockWriter, Model, pack, unpack
from holdfast.models import Progress
from holdfast.search import candidates, vectorize
from holdfast.search.hybrid import HybridSearch
from holdfast.search.vectorize import Vectorizer


class Toy:
    """A model whose vectors depend only on the words: two texts are as similar as the words they share."""

    setting = "static"

    def __init__(self, name="static-toy", dim=256):
        self.name, self.dim = name, dim
        self.seen = []

    def passages(self, texts):
        self.seen.extend(texts)
        return self.words(texts)

    def questions(self, texts):
        return self.words(texts)

    def words(self, texts):
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row += np.random.default_rng(zlib.crc32((self.name + word).encode())).standard_normal(self.dim)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths == 0, 1, lengths)


@pytest.fixture
def index(home):
    home.mkdir(mode=0o700)
    index = SqliteIndex(str(home), 5)
    yield index
    index.close()


@pytest.fixture
def with_toy(open_memory):
    """A caller with a fake model, and that model."""

    def open_(toy=None, **given):
        memory, toy = open_memory(**given), toy or Toy()
        memory._context.backend._hybrid_search = HybridSearch(memory._context.index, (toy,))
        return memory, toy

    return open_


def directions(count, dim, seed=7):
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def put(index, model, rows, folder=1, first=1):
    """Return a vector for each of the passages from `first` on."""
    with index._database.transaction() as db:
        BlockWriter(db, SQL).put(model, [(folder, (first + place) * PIECES, row) for place, row in enumerate(rows)])


def drop(index, passages):
    with index._database.transaction() as db:
        BlockWriter(db, SQL).remove(passages)


def query_index(home, statement, *values):
    """Read rows of the index through another connection."""
    db = apsw.Connection(str(home / "index.db"))
    try:
        return db.execute(statement, values).fetchall()
    finally:
        db.close()


def bytes_of(home):
    return b"".join(path.read_bytes() for path in sorted(home.glob("index.db*")) if not path.name.endswith("-shm"))


def has_vector_bytes(home, vector):
    """Return whether a part of a vector is in the file; a whole one may be split over pages."""
    signs, numbers = pack(vector[None])
    there = bytes_of(home)
    parts = [numbers[0, place : place + 32].tobytes() for place in range(0, 256, 32)] + [signs[0].tobytes()]
    return any(part in there for part in parts)


# --- packing ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 5), st.sampled_from([8, 12, 64, 100, 256]), st.integers(0, 1000))
def test_a_packed_vector_points_the_same_way(count, dim, seed):
    rows = directions(count, dim, seed)
    signs, numbers = pack(rows)
    again = unpack(numbers)
    assert signs.shape == (count, -(-dim // 8)) and numbers.dtype == np.int8
    assert np.allclose(np.linalg.norm(again, axis=1), 1, atol=1e-5)
    assert ((again * rows).sum(axis=1) > 0.9995).all()


def test_a_vector_of_zeros_stays_one():
    signs, numbers = pack(np.zeros((2, 16), np.float32))
    assert not signs.any() and not numbers.any() and not unpack(numbers).any()


# --- finding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [20, 64, 256, 384])
def test_the_nearest_are_those_that_brute_force_finds(index, dim):
    rows = directions(2500, dim)
    model = index.vectors.ensure_model("m", dim)
    put(index, model, rows)
    for query in directions(10, dim, seed=8):
        exact = np.argsort(-(unpack(pack(rows)[1]) @ query), kind="stable") + 1
        assert index.vectors.find_nearest(model, [1], query, 20) == exact[:20].tolist()


@pytest.mark.parametrize("held", [1 << 30, 0])
@pytest.mark.parametrize("dim", [20, 256])
def test_beyond_what_is_compared_in_full_the_signs_choose_and_the_numbers_decide(index, monkeypatch, dim, held):
    monkeypatch.setattr(vectors, "EXACT", 100)
    monkeypatch.setattr(vectors, "CACHED_BYTES", held)
    monkeypatch.setattr(vectors, "_POOL", 512)
    rows = directions(3000, dim)
    model = index.vectors.ensure_model("m", dim)
    put(index, model, rows)
    full = unpack(pack(rows)[1])
    shared = 0
    for query in directions(20, dim, seed=9):
        near = (query + 0.3 * rows[17]) / np.linalg.norm(query + 0.3 * rows[17])
        found = index.vectors.find_nearest(model, [1], near, 10)
        scores = full[np.array(found) - 1] @ near
        assert (np.diff(scores) <= 1e-6).all()
        shared += len(set(found) & set((np.argsort(-(full @ near))[:10] + 1).tolist()))
    assert shared >= (0.8 if dim == 20 else 0.9) * 200
    for place in (0, 1500, 2999):
        assert index.vectors.find_nearest(model, [1], rows[place], 3)[0] == place + 1


@pytest.mark.parametrize(("exact", "held"), [(50_000, 0), (10, 1 << 30), (10, 0)])
def test_the_vectors_of_some_passages_come_in_their_order(index, monkeypatch, exact, held):
    monkeypatch.setattr(vectors, "EXACT", exact)
    monkeypatch.setattr(vectors, "CACHED_BYTES", held)
    rows = directions(1500, 64)
    model = index.vectors.ensure_model("m", 64)
    with index._database.transaction() as db:  # passage n has n % 3 + 1 vectors, on as many pieces
        some = [(1, (place // 3 + 1) * PIECES + place % 3, row) for place, row in enumerate(rows)]
        BlockWriter(db, SQL).put(model, [some[place] for place in np.random.default_rng(1).permutation(len(some))])
    wanted = np.array([400, 3, 77, 9999, 500])
    result = index.vectors.vectors_of(model, [1], wanted)
    owners, numbers, found = result.owners, result.numbers, result.vectors
    assert owners.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 4, 4, 4]
    assert numbers.tolist() == [0, 1, 2] * 4
    expected = unpack(pack(rows)[1])[[(wanted[owner] - 1) * 3 + number for owner, number in zip(owners, numbers, strict=True)]]
    assert np.allclose(found, expected, atol=1e-6)


def test_of_several_folders_the_vectors_come_in_the_order_of_the_passages(index):
    rows = directions(4, 64)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows[:2], folder=1, first=1)
    put(index, model, rows[2:], folder=2, first=3)
    result = index.vectors.vectors_of(model, [1, 2], np.array([4, 1, 3]))
    owners, found = result.owners, result.vectors
    assert owners.tolist() == [0, 1, 2]
    assert np.allclose(found, unpack(pack(rows[[3, 0, 2]])[1]), atol=1e-6)


def test_a_folder_that_was_not_asked_about_is_not_searched(index):
    rows = directions(4, 64)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows[:2], folder=1, first=1)
    put(index, model, rows[2:], folder=2, first=3)
    assert set(index.vectors.find_nearest(model, [1], rows[3], 10)) == {1, 2}
    assert index.vectors.find_nearest(model, [3], rows[3], 10) == []
    assert len(index.vectors.vectors_of(model, [1], np.array([3, 4])).owners) == 0


def test_a_passage_with_many_near_pieces_leaves_room_for_others(index):
    model = index.vectors.ensure_model("m", 64)
    query, *others = directions(21, 64)
    with index._database.transaction() as db:
        crowd = [(1, PIECES + number % 200, query) for number in range(400)]
        BlockWriter(db, SQL).put(model, crowd + [(1, (2 + place) * PIECES, row) for place, row in enumerate(others)])
    assert len(index.vectors.find_nearest(model, [1], query, 10)) == 10


@settings(max_examples=15)
@given(data=st.data())
def test_after_any_puts_and_drops_brute_force_agrees(data, tmp_path_factory):
    index = SqliteIndex(str(tmp_path_factory.mktemp("home")), 5)
    model, there, last = index.vectors.ensure_model("m", 64), {}, 0
    exact, held = data.draw(st.sampled_from([(50_000, 0), (5, 1 << 30), (5, 0), (64, 16 * 64 * 6)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "SLOTS", 16)
        patch.setattr(vectors, "EXACT", exact)
        patch.setattr(vectors, "CACHED_BYTES", held)
        for _ in range(data.draw(st.integers(1, 6))):
            rows = directions(data.draw(st.integers(0, 40)), 64, seed=last)
            put(index, model, rows, first=last + 1)
            there |= {last + 1 + place: row for place, row in enumerate(rows)}
            last += len(rows)
            gone = [id for id in there if data.draw(st.integers(0, 4)) == 0]
            drop(index, gone)
            there = {id: row for id, row in there.items() if id not in gone}
            query = directions(1, 64, seed=last + 99)[0]
            scores = {id: float(unpack(pack(row[None])[1])[0] @ query) for id, row in there.items()}
            best = sorted(scores, key=lambda id: -scores[id])
            found = index.vectors.find_nearest(model, [1], query, 500)
            assert found == best or np.allclose([scores[id] for id in found], [scores[id] for id in best], atol=1e-6)
    index.close()


# --- blocks ----------------------------------------------------------------------------------------------------------


def test_blocks_fill_up_and_roll_over(index, home, monkeypatch):
    monkeypatch.setattr(vectors, "SLOTS", 1024)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, directions(1000, 64))
    put(index, model, directions(100, 64), first=1001)
    put(index, model, directions(2000, 64), first=1101)
    used = [row[0] for row in query_index(home, "SELECT used FROM block ORDER BY id")]
    assert used == [1024, 1024, 1024, 28]
    assert query_index(home, "SELECT length(ids), length(signs), length(numbers) FROM block LIMIT 1") == [(8192, 8192, 65536)]
    assert index.vectors.find_nearest(model, [1], directions(2000, 64)[1999], 1) == [3100]


def test_a_block_belongs_to_one_model_and_one_folder(index, home):
    one, two = index.vectors.ensure_model("one", 64), index.vectors.ensure_model("two", 64)
    for model in (one, two):
        for folder in (1, 2):
            put(index, model, directions(3, 64), folder)
    assert query_index(home, "SELECT model, folder, used FROM block") == [(m, f, 3) for m in (one.id, two.id) for f in (1, 2)]


def test_a_process_that_stays_sees_what_others_put_and_drop(index, home):
    rows = directions(30, 64)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows[:20])
    assert index.vectors.find_nearest(model, [1], rows[4], 1) == [5]
    other = SqliteIndex(str(home), 5)
    put(other, model, rows[20:], first=21)
    assert index.vectors.find_nearest(model, [1], rows[25], 1) == [26]
    drop(other, [26])
    assert 26 not in index.vectors.find_nearest(model, [1], rows[25], 30)
    other.close()


def test_connections_to_one_file_share_their_copies(index, home):
    rows = directions(30, 64)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows[:20])
    assert index.vectors.find_nearest(model, [1], rows[4], 1) == [5]
    other = SqliteIndex(str(home), 5)
    assert other.vectors.find_nearest(model, [1], rows[4], 1) == [5]
    assert other.vectors._copies is index.vectors._copies
    put(other, model, rows[20:], first=21)
    drop(other, [5])
    assert other.vectors.find_nearest(model, [1], rows[25], 1) == [26]
    assert 5 not in index.vectors.find_nearest(model, [1], rows[4], 30)
    other.close()


def test_a_new_file_has_copies_of_its_own_even_with_the_numbers_of_the_old_one(index, home):
    rows = directions(20, 64)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows[:10])
    assert index.vectors.find_nearest(model, [1], rows[0], 1) == [1]
    inodes = index._database._inodes
    index.reset()
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows[10:])
    index._database._inodes = inodes  # as if the file system had used the numbers of the old files again
    assert index.vectors.cosines_of(model, [1], np.array([1]), rows[10]).cosines[0] > 0.99


def test_a_child_process_does_not_wait_for_a_search_of_its_parent(index):
    rows = directions(5, 64)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows)
    index.vectors.find_nearest(model, [1], rows[0], 1)
    searching, done = threading.Event(), threading.Event()

    def search():
        with index.vectors._copies.lock:
            searching.set()
            done.wait(30)

    thread = threading.Thread(target=search)
    thread.start()
    searching.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(index.vectors.find_nearest(model, [1], rows[2], 1) != [3])
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_only_the_blocks_that_changed_are_read_again(index, monkeypatch):
    monkeypatch.setattr(vectors, "SLOTS", 16)
    rows = directions(64, 64)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows)
    read, real = [], index._database.row
    monkeypatch.setattr(index._database, "row", lambda name, **given: read.append(name) or real(name, **given))
    index.vectors.find_nearest(model, [1], rows[0], 1)
    assert read.count("read_block") == 4
    index.vectors.find_nearest(model, [1], rows[0], 1)
    assert read.count("read_block") == 4
    drop(index, [20])
    index.vectors.find_nearest(model, [1], rows[0], 1)
    assert read.count("read_block") == 5


def test_where_nothing_was_written_no_block_is_asked_about(index, monkeypatch):
    rows = directions(5, 64)
    model = index.vectors.ensure_model("m", 64)
    put(index, model, rows)
    index.vectors.find_nearest(model, [1], rows[0], 1)
    asked_for, real = [], index._database.rows
    monkeypatch.setattr(index._database, "rows", lambda name, **given: asked_for.append(name) or real(name, **given))
    index.vectors.find_nearest(model, [1], rows[0], 1)
    assert asked_for == []


def test_a_dropped_vector_is_zeros_and_leaves_no_trace_in_the_file(index, home):
    rows = directions(5, 256)
    model = index.vectors.ensure_model("m", 256)
    put(index, model, rows)
    index.scrub()
    assert has_vector_bytes(home, rows[1]) and has_vector_bytes(home, rows[2])
    drop(index, [3])
    index.scrub()
    assert has_vector_bytes(home, rows[1]) and not has_vector_bytes(home, rows[2])
    assert query_index(home, "SELECT count(*) FROM place WHERE passage = 3") == [(0,)]


# --- models ----------------------------------------------------------------------------------------------------------


def test_models_are_never_mixed(index):
    rows, others = directions(3, 64), directions(3, 64, seed=99)
    one, two = index.vectors.ensure_model("one", 64), index.vectors.ensure_model("two", 64)
    put(index, one, rows, first=1)
    put(index, two, others, first=4)
    assert set(index.vectors.find_nearest(one, [1], rows[0], 10)) == {1, 2, 3}
    assert set(index.vectors.find_nearest(two, [1], rows[0], 10)) == {4, 5, 6}
    index.vectors.remove_model(one)
    assert [model.name for model in index.vectors.list_models()] == ["two"]
    assert set(index.vectors.find_nearest(two, [1], rows[0], 10)) == {4, 5, 6}


@pytest.mark.parametrize("dim", [64, 128])
def test_a_new_model_in_the_place_of_a_forgotten_one_shares_nothing_with_it(index, home, dim):
    rows = directions(3, 64)
    old = index.vectors.ensure_model("old", 64)
    put(index, old, rows)
    index.vectors.find_nearest(old, [1], rows[0], 1)  # this process has its vectors in memory
    other = SqliteIndex(str(home), 5)
    other.vectors.remove_model(old)
    new = other.vectors.ensure_model("new", dim)
    put(other, new, directions(2, dim, seed=50), first=7)
    other.close()
    assert set(index.vectors.find_nearest(index.vectors.ensure_model("new", dim), [1], directions(1, dim)[0], 10)) == {7, 8}


def test_another_model_embeds_everything_anew_and_then_the_old_vectors_go(with_toy, home):
    memory, _ = with_toy()
    memory.store_many([{"text": f"number {number}"} for number in range(5)])
    memory.embed()
    again, toy = with_toy(Toy("static-other"))
    assert [hit.text for hit in again.recall("number 3", mode="semantic", limit=1)] == ["number 3"]
    assert sorted(toy.seen) == sorted(f"number {number}" for number in range(5))
    with again._context.hybrid_search().vectorizer._background:
        pass
    counts = query_index(
        home, "SELECT m.name, count(*) FROM place p JOIN block b ON b.id = p.block JOIN model m ON m.id = b.model GROUP BY 1"
    )
    assert sorted(counts) == [("static-other", 5)]


def test_vectors_that_come_late_never_go_to_the_model_that_took_the_number(index, home, with_toy):
    memory, _ = with_toy()
    memory.store("about zebras", key="a")
    memory._context.refresh(("projects/demo",))
    mine = memory._context.index.vectors
    old = mine.ensure_model("old", 64)
    late = mine.next_waiting(old, 1)
    mine.remove_model(old)
    new = mine.ensure_model("new", 64)
    mine.add_vectors(old, late, [(1, PIECES, directions(1, 64)[0])], [])
    assert mine.count_waiting(mine.ensure_model("new", 64)) == 1 and mine.find_nearest(new, [1], directions(1, 64)[0], 1) == []


# --- passages get their vectors --------------------------------------------------------------------------------------


def test_each_passage_is_embedded_once(with_toy):
    memory, toy = with_toy()
    memory.store_many([{"text": f"note {number}", "key": f"k{number}"} for number in range(10)])
    memory.recall("note 3")
    memory.recall("note 4")
    assert len(toy.seen) == 10
    memory.store("note eleven", key="k3")
    memory.recall("eleven")
    assert len(toy.seen) == 11 and toy.seen[-1] == "note eleven"


def test_a_crash_between_batches_loses_no_batch(with_toy, monkeypatch):
    monkeypatch.setattr(vectorize, "_BATCH_PASSAGES", 1)

    class Dying(Toy):
        def passages(self, texts):
            if len(self.seen) >= 32:
                raise KeyboardInterrupt
            return super().passages(texts)

    memory, dying = with_toy(Dying())
    memory.store_many([{"text": f"note {number:03}", "key": f"k{number}"} for number in range(100)])
    with pytest.raises(KeyboardInterrupt):
        memory.embed()
    again, toy = with_toy()
    assert again.embed() == {"static": 0}
    assert len(toy.seen) == 68 and not set(toy.seen) & set(dying.seen)


def test_embedding_tells_how_far_it_is(with_toy):
    class Counting(Progress):
        steps = 0
        ended = False

        def start(self, what, total):
            self.what, self.total = what, total

        def step(self, count=1):
            self.steps += count

        def end(self):
            self.ended = True

    memory, toy = with_toy()
    memory.store_many([{"text": f"note {number}"} for number in range(30)])
    memory._context.refresh(("projects/demo",))
    progress = Counting()
    assert Vectorizer(memory._context.index, (toy,)).catch_up(progress, everything=True) == {"static": 0}
    assert (progress.what, progress.total, progress.steps, progress.ended) == ("embedding (static)", 30, 30, True)


@pytest.mark.battery
def test_many_processes_embed_at_once_and_each_passage_is_put_once(memory, home, tmp_path):
    memory.store_many([{"text": f"passage number {number} of many", "key": f"k{number}"} for number in range(1500)])
    code = "import sys; from holdfast import Memory\nwith Memory(sys.argv[1], project='demo') as m: print(m.embed())"
    env = {"HOLDFAST_EMBEDDER": "static", "HOME": str(tmp_path), "PATH": ""}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(home)], env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    for child in children:
        out, err = child.communicate(timeout=120)
        assert child.returncode == 0, (out, err.decode())
    assert query_index(home, "SELECT count(*), count(DISTINCT passage) FROM place") == [(1500, 1500)]
    assert query_index(home, "SELECT count(*), count(DISTINCT passage) FROM piece") == [(1500, 1500)]
    assert query_index(home, "SELECT sum(used) FROM block") == [(1500,)]


def test_what_another_process_embeds_meanwhile_waits_no_more(with_toy, monkeypatch):
    monkeypatch.setattr(vectorize, "_BATCH_PASSAGES", 1)
    other, _ = with_toy()

    class Slow(Toy):
        def passages(self, texts):
            if not self.seen:
                other.embed()
            return super().passages(texts)

    memory, _ = with_toy(Slow())
    memory.store_many([{"text": f"note {number:03}", "key": f"k{number}"} for number in range(100)])
    assert memory.embed() == {"static": 0}


def test_what_went_away_while_it_was_embedded_gets_no_vectors(with_toy, open_memory, home):
    other = open_memory()

    class Slow(Toy):
        def passages(self, texts):
            found = super().passages(texts)
            if "about zebras" in texts:
                other.forget("a")
            return found

    memory, _ = with_toy(Slow())
    memory.store("kept for good", key="b")
    memory.store("about zebras", key="a")
    assert [hit.key for hit in memory.recall("zebras kept")] == ["b"]
    assert query_index(home, "SELECT count(*) FROM place") == [(1,)]
    assert query_index(home, "SELECT tokens FROM piece") == [("b kept for good",)]


def test_what_came_in_the_place_of_what_went_away_gets_vectors_of_its_own(with_toy, open_memory, home):
    other = open_memory()

    class Slow(Toy):
        def passages(self, texts):
            found = super().passages(texts)
            if "about zebras" in texts:
                other.purge("a")
                other.store("cucumbers", key="b")
            return found

    memory, _ = with_toy(Slow())
    memory.store("about zebras", key="a")
    memory.recall("zebras")
    assert [hit.key for hit in memory.recall("zebras", mode="semantic")] == []
    assert [hit.key for hit in memory.recall("cucumbers")] == ["b"]
    assert query_index(home, "SELECT tokens FROM piece") == [("b cucumbers",)]


# --- vectors are deleted with their text -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["forget", "purge", "update", "by hand"])
def test_vectors_and_pieces_go_with_their_text(with_toy, home, note_file, how):
    memory, _ = with_toy()
    memory.store("the rare quuxword stands here", key="a")
    memory.store("something else", key="b")
    assert memory.recall("quuxword", limit=1)[0].key == "a"
    assert b"quuxword" in bytes_of(home)
    if how == "update":
        memory.store("another text", key="a")
    elif how == "by hand":
        note_file("a").unlink()
    else:
        getattr(memory, how)("a")
    memory.recall("else")
    left = 2 if how == "update" else 1
    assert query_index(home, "SELECT count(*) FROM place") == [(left,)]
    assert query_index(home, "SELECT count(*) FROM piece WHERE tokens LIKE '%quux%'") == [(0,)]
    assert [hit.key for hit in memory.recall("quuxword", mode="semantic") if "quux" in hit.text] == []


@pytest.mark.promise("N10")
def test_a_purge_leaves_neither_a_word_nor_a_vector_in_the_catalogue(with_toy, home):
    memory, toy = with_toy()
    memory.store("the rare quuxword stands here\n\nand frobnicators too", key="a")
    memory.store("the rare quuxword again, later", key="a")
    memory.store("something else", key="b")
    memory.recall("quuxword")
    (vector,) = toy.words(["the rare quuxword again, later"])
    assert b"quuxword" in bytes_of(home) and has_vector_bytes(home, vector)
    memory.purge("a")
    after = bytes_of(home)
    assert b"quux" not in after and b"xuuq" not in after and b"frobnic" not in after and not has_vector_bytes(home, vector)
    assert memory.recall("something else")[0].key == "b"


def test_a_reindex_drops_the_vectors_and_the_next_recall_makes_them_again(with_toy, home):
    memory, toy = with_toy()
    memory.store_many([{"text": f"note {number}", "key": f"k{number}"} for number in range(10)])
    first = memory.recall("note 7")
    memory.reindex()
    assert query_index(home, "SELECT count(*) FROM place") == [(0,)]
    again = memory.recall("note 7")
    assert len(toy.seen) == 20
    assert [(hit.key, hit.score) for hit in again] == [(hit.key, hit.score) for hit in first]


def test_a_catalogue_that_was_deleted_comes_back_with_its_vectors(with_toy, home):
    memory, _ = with_toy()
    memory.store_many([{"text": f"note {number}", "key": f"k{number}"} for number in range(10)])
    first = memory.recall("note 7", mode="semantic")
    for path in home.glob("index.db*"):
        path.unlink()
    assert [hit.key for hit in memory.recall("note 7", mode="semantic")] == [hit.key for hit in first]


def test_a_model_that_comes_back_in_another_size_is_another_model(index):
    assert index.vectors.ensure_model("m", 64) == Model(1, "m", 64, 0)
    assert index.vectors.ensure_model("m", 128).dim == 128


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 70))
def test_the_highest_are_those_that_sorting_all_would_give(scores, most):
    scores = np.array(scores, np.float64)
    places = np.arange(len(scores))
    assert candidates.find_highest(scores, most).tolist() == np.lexsort((-places, -scores))[:most].tolist()


def test_indexes_in_memory_never_share_copies(home):
    home.mkdir(mode=0o700)
    (home / "index.db").mkdir()  # cannot be used and cannot be replaced
    first, second = SqliteIndex(str(home), 5), SqliteIndex(str(home), 5)
    try:
        identities = [index._database.file_identity() for index in (first, second)]
        assert first.in_memory and second.in_memory
        assert identities[0] != identities[1]
        assert identities[0] == first._database.file_identity()
    finally:
        first.close()
        second.close()


def test_a_copy_is_complete_after_a_block_could_not_be_read():
    model = Model(1, "toy", 64, 0)
    rows = np.eye(64, dtype=np.float32)[:3]
    signs, numbers = pack(rows)
    ids = np.zeros(vectors.SLOTS, "<i8")
    ids[:3] = np.array([1, 2, 3]) * PIECES
    columns = tuple(data.tobytes().ljust(vectors.SLOTS * width, b"\0") for data, width in ((ids, 8), (signs, 8), (numbers, 64)))
    copy = vectors.FolderVectors(model)

    def fail(block):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy.refresh([(7, 1, 3)], fail)
    for _ in range(2):
        copy.refresh([(7, 1, 3)], lambda block: columns)
        assert copy.find_nearest(rows[1], 1, None) == [2]
