"""Vectors in SQLite, in blocks of slots, so that they are as safe, shared and erasable as the rest of the index.

A block holds the vectors of one model and one folder: for each slot the passage it belongs to, its signs (one bit a number)
and its numbers (one byte each). A vector is added by writing its slot in place, and removed by zeroing it. A process that
searches keeps the signs in memory (and the numbers unless there are many), and reads again only the blocks that changed. All
its connections to a file share one copy: those of a server with 10,000 notes took 50 MB each.
numpy is imported by searches only, not by code that removes vectors.
"""

from __future__ import annotations

from _thread import RLock
from weakref import WeakValueDictionary

from holdfast.base.fork import on_fork
from holdfast.base.record import Record
from holdfast.index.queries import IndexReset
from holdfast.index.sqlite_writer import checksum
from holdfast.sqlite import ContentCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    import apsw
    from numpy.typing import NDArray

    from holdfast.sqlite import Database

    Buffer = bytes | memoryview
    from holdfast.index.interface import VectorIndex

    Fetch = Callable[[list[tuple[int, int]]], NDArray[Any]]  # reads the numbers of slots: (block, slot)

SLOTS = 256  # of a block
PIECES = 1 << 14  # vectors of a passage have numbers below this; the owner of a vector is `passage * PIECES + number`
EXACT = 16_384  # vectors of a folder up to which all are compared; with more, their signs choose which to compare
CACHED_BYTES = 128 << 20  # of numbers that are kept in memory; where there are more, they are read when needed
_POOL, _POOL_ON_DISK = 2048, 512  # vectors that the signs choose, with numbers in memory and on disk
_SIGNS_BATCH = 32_768  # slots whose signs are compared at once: they fit a processor's cache
_NUMBERS_BATCH = 1024  # slots whose numbers are compared at once, for the same reason


class Model(Record):
    """An embedder whose vectors the index has; it has embedded the passages up to `done`."""

    id: int
    name: str
    dim: int
    done: int
    role: str = ""
    setting: str = ""  # opens the embedder again
    asked: int = 0  # the id of the newest other model when a process with this model set last searched


class WaitingPassage(Record):
    """A passage that has no vectors yet."""

    passage: int
    folder: int
    names: str
    text: str
    speaker: str | None
    doc: int


class FoundVectors(Record):
    """Vectors of some passages, each with the position of its passage (`owners`) and its piece (`numbers`)."""

    owners: NDArray[Any]
    numbers: NDArray[Any]
    vectors: NDArray[Any]


class FoundCosines(Record):
    """The similarity of a query to each vector of some passages; the other fields are as in `FoundVectors`."""

    owners: NDArray[Any]
    numbers: NDArray[Any]
    cosines: NDArray[Any]


def join_vectors(parts: list[FoundVectors]) -> FoundVectors:
    """Return the vectors of several folders, by passage and piece."""
    return FoundVectors(*_join([(part.owners, part.numbers, part.vectors) for part in parts]))


def join_cosines(parts: list[FoundCosines]) -> FoundCosines:
    """Return the similarities of the vectors of several folders, by passage and piece."""
    return FoundCosines(*_join([(part.owners, part.numbers, part.cosines) for part in parts]))


def _join(parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Join owners, numbers and values, and sort them by owner and number."""
    import numpy as np

    owners, numbers, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((numbers, owners))
    return owners[order], numbers[order], values[order]


class BlockWriter:
    """Writes vectors to blocks, within the transaction of its connection."""

    def __init__(self, db: apsw.Connection, sql: Mapping[str, str]) -> None:
        self._db = db
        self._sql = sql

    def put(self, model: Model, rows: Iterable[tuple[int, int, NDArray[Any]]]) -> None:
        """Add vectors: (folder, owner, unit vector); an owner may have several."""
        by_folder: dict[int, list[tuple[int, NDArray[Any]]]] = {}
        for folder, owner, vector in rows:
            by_folder.setdefault(folder, []).append((owner, vector))
        for folder, vectors in by_folder.items():
            while vectors:
                block, used = self._open_block(model, folder)
                fits, vectors = vectors[: SLOTS - used], vectors[SLOTS - used :]
                self._write_slots(model, folder, block, used, fits)

    def _open_block(self, model: Model, folder: int) -> tuple[int, int]:
        """Return a block with free slots, and how many slots are used."""
        row = self._db.execute(self._sql["open_block"], {"model": model.id, "folder": folder, "slots": SLOTS}).fetchone()
        if row:
            return int(row[0]), int(row[1])
        sum_ = checksum({"model": model.id, "folder": folder, "used": 0})
        sizes = {"sum": sum_, "ids": 8 * SLOTS, "signs": -(-model.dim // 8) * SLOTS, "numbers": model.dim * SLOTS}
        self._db.execute(self._sql["add_block"], {"model": model.id, "folder": folder, **sizes})
        return int(self._db.last_insert_rowid()), 0

    def _write_slots(self, model: Model, folder: int, block: int, used: int, rows: list[tuple[int, NDArray[Any]]]) -> None:
        """Write vectors to the next free slots of a block."""
        import numpy as np

        ids = np.array([passage for passage, _ in rows], dtype="<i8")
        signs, numbers = pack(np.stack([vector for _, vector in rows]))
        self._write(block, "ids", used * 8, ids.tobytes())
        self._write(block, "signs", used * signs.shape[1], signs.tobytes())
        self._write(block, "numbers", used * model.dim, numbers.tobytes())
        fields = {"model": model.id, "folder": folder, "used": used + len(rows)}
        self._db.execute(self._sql["grow_block"], {**fields, "block": block, "sum": checksum(fields)})
        slot_rows = [
            {
                "passage": int(owner) // PIECES, "block": block, "slot": slot,
                "sum": slot_checksum(owner.tobytes(), slot_signs.tobytes(), slot_numbers.tobytes()),
            }
            for slot, (owner, slot_signs, slot_numbers) in enumerate(zip(ids, signs, numbers, strict=True), used)
        ]  # fmt: skip
        self._db.executemany(self._sql["add_place"], slot_rows)

    def remove(self, passages: Iterable[int]) -> None:
        """Zero every slot of these passages."""
        for passage in passages:
            slots: list[Any] = self._db.execute(self._sql["places"], {"passage": passage}).fetchall()
            for block, slot, dim in slots:
                width = -(-dim // 8)
                self._write(block, "ids", slot * 8, bytes(8))
                self._write(block, "signs", slot * width, bytes(width))
                self._write(block, "numbers", slot * dim, bytes(dim))
                self._db.execute(self._sql["touch_block"], {"block": block})
            self._db.execute(self._sql["drop_places"], {"passage": passage})

    def _write(self, block: int, column: str, offset: int, data: bytes) -> None:
        with self._db.blob_open("main", "block", column, block, True) as blob:
            blob.seek(offset)
            blob.write(data)


def slot_checksum(owner: Buffer, signs: Buffer, numbers: Buffer) -> int:
    """Return the checksum of a slot, by which `verify` finds slots that are not as they were written."""
    from zlib import crc32

    return crc32(numbers, crc32(signs, crc32(owner)))


def pack(vectors: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return unit vectors as signs (one bit a number) and as bytes that keep their directions to half a percent."""
    import numpy as np

    signs = np.packbits(vectors > 0, axis=1)
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    largest[largest == 0] = 1
    return signs, np.rint(vectors * (127 / largest)).astype(np.int8)


def unpack(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the unit vectors of packed numbers."""
    import numpy as np

    vectors = numbers.astype(np.float32)
    vectors *= _compute_scales(vectors)[:, None]
    return vectors


def _compute_scales(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the factor that makes each row a unit vector."""
    import numpy as np

    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths == 0] = 1
    scales: NDArray[Any] = 1 / lengths
    return scales


class _Sorted(Record):
    """The slots of a folder by owner, and the passages that these belong to, each with its first slot in this order."""

    ids: NDArray[Any]
    order: NDArray[Any]
    numbers: NDArray[Any]
    starts: NDArray[Any]


class FolderVectors:
    """A copy of the vectors of one model in one folder, in memory: their signs, and their numbers unless they are many.

    Blocks are in the order in which they were first read; an empty slot has the id 0.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._words = -(-model.dim // 64)
        self._clear()

    def _clear(self) -> None:
        import numpy as np

        self._positions: dict[int, tuple[int, int]] = {}  # of each block: its position here, and the stamp of its content
        self._blocks: list[int] = []
        self._ids = np.zeros(0, np.int64)
        self._signs = np.zeros((self._words, 0), np.uint64)  # by column: the signs of a slot in words of 64 bits
        self._numbers: NDArray[Any] | None = None  # as bytes, or as unit vectors while there are few
        self._scales = np.zeros(0, np.float32)  # make unit vectors of bytes
        self._sorted: _Sorted | None = None
        self._compared: tuple[NDArray[Any], NDArray[Any]] | None = None  # the last query, and its similarity to every slot

    def refresh(self, stamps: list[tuple[int, int, int]], read: Callable[[int], tuple[bytes, bytes, bytes]]) -> None:
        """Read the blocks that changed: `stamps` has (block, stamp, used) of all blocks, `read` returns a block's columns."""
        self._resize(stamps)
        for block, stamp, _ in stamps:
            position, known = self._positions.get(block, (len(self._blocks), None))
            if known == stamp:
                continue
            columns = read(block)  # may fail: until then the copy stays as it was
            self._sorted = self._compared = None
            self._copy(position, columns)
            if position == len(self._blocks):
                self._blocks.append(block)
            self._positions[block] = position, stamp

    def _resize(self, stamps: list[tuple[int, int, int]]) -> None:
        """Make room for all blocks; start again when one was deleted, or when the numbers are to be kept in another form."""
        import numpy as np

        from holdfast.index.arrays import extend

        blocks = {block for block, _, _ in stamps}
        slots = len(blocks) * SLOTS
        kind = np.float32 if slots <= EXACT else np.int8 if slots * self._model.dim <= CACHED_BYTES else None
        same = kind is None if self._numbers is None else self._numbers.dtype == kind
        if not same or not blocks.issuperset(self._blocks):
            self._clear()
        if slots > len(self._ids):
            room = slots + slots // 4 // SLOTS * SLOTS
            self._ids = extend(self._ids, room)
            self._signs = np.ascontiguousarray(extend(self._signs.T, room).T)
            if kind is not None:
                before = np.zeros((0, self._model.dim), kind) if self._numbers is None else self._numbers
                self._numbers = extend(before, room)
                self._scales = extend(self._scales, room)

    def _copy(self, position: int, block: tuple[bytes, bytes, bytes]) -> None:
        import numpy as np

        ids, signs, packed = block
        slots = slice(position * SLOTS, position * SLOTS + SLOTS)
        self._ids[slots] = np.frombuffer(ids, dtype="<i8")
        self._signs[:, slots] = _to_words(np.frombuffer(signs, np.uint8).reshape(SLOTS, -1)).T
        if self._numbers is not None:
            numbers = np.frombuffer(packed, np.int8).reshape(SLOTS, self._model.dim)
            self._scales[slots] = _compute_scales(numbers.astype(np.float32))
            self._numbers[slots] = unpack(numbers) if self._numbers.dtype == np.float32 else numbers

    def find_nearest(self, query: NDArray[Any], most: int, fetch: Fetch) -> list[int]:
        """Return the passages with the most similar vectors, best first."""
        import numpy as np

        if self._keeps_all():
            passages = self._sort()
            if not len(passages.starts):
                return []
            similarity = np.maximum.reduceat(self._compare_all(query)[passages.order], passages.starts)
            similarity[passages.numbers == 0] = -2  # empty slots
            best = passages.numbers[_find_highest(similarity, most)]
            return [passage for passage in best.tolist() if passage]
        ids = self._ids[: len(self._blocks) * SLOTS]
        near = _find_smallest(self._count_differences(query, ids), _POOL if self._numbers is not None else _POOL_ON_DISK)
        best = near[top_passages(self._compute_similarity(near, query, fetch), ids[near] // PIECES, most)]
        return list(dict.fromkeys([owner // PIECES for owner in ids[best].tolist() if owner]))[:most]

    def _keeps_all(self) -> bool:
        """Return whether all vectors are few enough to be kept as unit vectors and compared one by one."""
        return self._numbers is not None and self._numbers.itemsize == 4

    def _compare_all(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return the similarity of every slot, which a search needs twice."""
        import numpy as np

        assert self._numbers is not None
        if self._compared is None or self._compared[0] is not query:
            rows = self._numbers[: len(self._blocks) * SLOTS]
            self._compared = query, np.vecdot(rows, query)  # unlike `@`, it never waits for another core
        return self._compared[1]

    def _sort(self) -> _Sorted:
        """Return the slots by owner."""
        import numpy as np

        if self._sorted is None:
            ids = self._ids[: len(self._blocks) * SLOTS]
            order = np.argsort(ids, kind="stable")
            ids = ids[order]
            numbers, starts = np.unique(ids // PIECES, return_index=True)
            self._sorted = _Sorted(ids, order, numbers, starts)
        return self._sorted

    def _count_differences(self, query: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
        """Return in how many signs each slot differs from the query; for an empty slot more than there are."""
        import numpy as np

        query_words = _to_words(np.packbits(query > 0)[None])[0]
        differences = np.zeros(len(ids), np.uint16)
        for start in range(0, len(ids), _SIGNS_BATCH):
            batch = differences[start : start + _SIGNS_BATCH]
            for column, word in zip(self._signs[:, start : start + len(batch)], query_words, strict=True):
                batch += np.bitwise_count(column ^ word)
        differences[ids == 0] = 64 * self._words + 1
        return differences

    def _compute_similarity(self, slots: NDArray[Any], query: NDArray[Any], fetch: Fetch) -> NDArray[Any]:
        """Return the cosine of each slot's vector and the query. Scaling the sums saves scaling every number."""
        import numpy as np

        if self._numbers is None:
            cosines: NDArray[Any] = np.vecdot(self._take_vectors(slots, fetch), query)
            return cosines
        cosines = np.empty(len(slots), np.float32)
        for start in range(0, len(slots), _NUMBERS_BATCH):
            rows = self._numbers.take(slots[start : start + _NUMBERS_BATCH], axis=0)
            np.vecdot(rows.astype(np.float32), query, out=cosines[start : start + _NUMBERS_BATCH])
        cosines *= self._scales[slots]
        return cosines

    def vectors_of(self, passages: NDArray[Any], fetch: Fetch) -> FoundVectors:
        """Return the vectors of these passages."""
        by_owner = self._sort()
        owners, found = find_runs(by_owner.ids, passages)
        return FoundVectors(owners, by_owner.ids[found] % PIECES, self._take_vectors(by_owner.order[found], fetch))

    def cosines_of(self, passages: NDArray[Any], query: NDArray[Any], fetch: Fetch) -> FoundCosines:
        """Return the similarity of a query to each vector of these passages."""
        by_owner = self._sort()
        owners, found = find_runs(by_owner.ids, passages)
        slots = by_owner.order[found]
        cosines = self._compare_all(query)[slots] if self._keeps_all() else self._compute_similarity(slots, query, fetch)
        return FoundCosines(owners, by_owner.ids[found] % PIECES, cosines)

    def _take_vectors(self, slots: NDArray[Any], fetch: Fetch) -> NDArray[Any]:
        import numpy as np

        if not len(slots):
            return np.zeros((0, self._model.dim), np.float32)
        if self._numbers is None:
            blocks = np.array(self._blocks, np.int64)[slots // SLOTS]
            return unpack(fetch(list(zip(blocks.tolist(), (slots % SLOTS).tolist(), strict=True))))
        numbers = self._numbers.take(slots, axis=0)
        return numbers if numbers.dtype == np.float32 else numbers.astype(np.float32) * self._scales[slots, None]


def find_runs(owners: NDArray[Any], passages: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Find the sorted owners that belong to these passages; return the position of the passage and of the owner for each."""
    import numpy as np

    first, last = np.searchsorted(owners, passages * PIECES), np.searchsorted(owners, passages * PIECES + PIECES)
    counts = last - first
    positions = np.repeat(np.arange(len(passages)), counts)
    return positions, np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(len(positions))


def _to_words(signs: NDArray[Any]) -> NDArray[Any]:
    """Return rows of packed signs as words of 64 bits, the last one padded with zeros."""
    import numpy as np

    wide = np.zeros((len(signs), -(-signs.shape[1] // 8) * 8), np.uint8)
    wide[:, : signs.shape[1]] = signs
    return wide.view(np.uint64)


def top_passages(scores: NDArray[Any], passages: NDArray[Any], most: int) -> NDArray[Any]:
    """Return the positions of the highest scores, enough to name `most` passages: a long one has many vectors."""
    count = most * 2
    while len(set(passages[(best := _find_highest(scores, count))].tolist())) <= most and count < len(scores):
        count *= 8
    return best


def _find_highest(scores: NDArray[Any], most: int) -> NDArray[Any]:
    """Return the positions of the highest scores, highest first; of equal scores the first."""
    import numpy as np

    if len(scores) > most:
        best = np.argpartition(-scores, most)[:most]
        best.sort()
        return best[np.argsort(-scores[best], kind="stable")]
    return np.argsort(-scores, kind="stable")


def _find_smallest(distances: NDArray[Any], most: int) -> NDArray[Any]:
    """Return the positions of the smallest distances, and of all that equal the last one. They are counted, not sorted: the
    numbers are small, and that is faster."""
    import numpy as np

    counts = np.cumsum(np.bincount(distances))
    return np.flatnonzero(distances <= np.searchsorted(counts, min(most, len(distances))))


def _is_next_slot(slot: tuple[int, int], next_slot: tuple[int, int]) -> bool:
    """Return whether the second slot directly follows the first, so that both can be read at once."""
    block, number = slot
    return (block, number + 1) == next_slot


class _Copies:
    """The copies of the vectors of one file, which all connections of a process to it share."""

    def __init__(self) -> None:
        self.lock = RLock()  # held while copies are refreshed and compared
        self.folders: dict[tuple[int, int], FolderVectors] = {}  # by model and folder


_copies: WeakValueDictionary[object, _Copies] = WeakValueDictionary()  # by file
on_fork(child=_copies.clear)  # a thread of the parent process may hold their lock


class SqliteVectors:
    """The vectors of an index: models, passages that wait for vectors, and similar passages."""

    def __init__(self, database: Database, sql: Mapping[str, str]) -> None:
        self._database = database
        self._sql = sql
        self._cache = ContentCache(database)
        self._copies = _Copies()
        self._contents: dict[tuple[int, int], object] = {}  # of the index when a copy was last refreshed here

    def list_models(self) -> list[Model]:
        """Return every model that has vectors here."""
        models: list[Model] = self._cache.get("models", lambda: [Model(*row) for row in self._database.rows("models")])
        return models

    def ensure_model(self, name: str, dim: int, role: str = "", setting: str = "") -> Model:
        """Return the model of this name and role; add it if it is new, and replace one of another dimension."""
        for model in self.list_models():
            if (model.name, model.role, model.dim) == (name, role, dim):
                return model
            if (model.name, model.role) == (name, role):  # another model of the same name: its vectors are useless
                self.remove_model(model)
        self._add_model({"name": name, "dim": dim, "role": role, "setting": setting})
        for model in self.list_models():
            if (model.name, model.role) == (name, role):
                return model
        raise IndexReset("the index was replaced during the search")  # as an index in memory can be

    def _add_model(self, fields: dict[str, Any]) -> None:
        with self._database.transaction() as db:
            db.execute(self._sql["add_model"], fields)

    def mark_used(self, model: Model, newest: int) -> None:
        """Record that this model is still in use although a newer one was added."""
        with self._database.transaction() as db:
            db.execute(self._sql["model_asked"], {"model": model.id, "newest": newest})

    def remove_model(self, model: Model) -> None:
        """Remove a model and all its vectors."""
        with self._database.transaction() as db:
            for statement in ("drop_model_places", "drop_blocks", "drop_model"):
                db.execute(self._sql[statement], {"model": model.id})

    def next_waiting(self, model: Model, most: int) -> list[WaitingPassage]:
        """Return the next passages without vectors of this model, in the order in which they were added."""
        return [WaitingPassage(*row) for row in self._database.rows("next_waiting", done=model.done, most=most)]

    def count_waiting(self, model: Model) -> int:
        """Return how many passages have no vectors of this model yet."""
        return int(self._database.row("count_waiting", done=model.done)[0])

    def find_speakers(self, doc: int) -> list[str]:
        """Return the speakers of a transcript."""
        return [speaker for (speaker,) in self._database.rows("speakers_of", doc=doc)]

    def add_vectors(
        self, model: Model, done: list[WaitingPassage], rows: Iterable[tuple[int, int, NDArray[Any]]],
        pieces: list[dict[str, object]],
    ) -> Model:  # fmt: skip
        """Add the vectors and pieces of passages that were waiting, unless another process did; return the model."""
        last = done[-1].passage
        with self._database.transaction() as db:
            present: set[Any] = {passage for (passage,) in db.execute(self._sql["still"], {"after": model.done, "last": last})}
            db.execute(self._sql["model_done"], {"model": model.id, "before": model.done, "done": last})
            if db.changes():
                present_pieces = [piece | {"sum": checksum(piece)} for piece in pieces if piece["passage"] in present]
                db.executemany(self._sql["add_piece"], present_pieces)
                still_wanted = [(folder, owner, vector) for folder, owner, vector in rows if owner // PIECES in present]
                BlockWriter(db, self._sql).put(model, still_wanted)
        return next((known for known in self.list_models() if known.id == model.id), model)

    def has_vectors(self, model: Model, folders: Iterable[int]) -> bool:
        """Return whether any of these folders has a vector of this model."""
        ids = list(folders)
        return bool(self._cache.get(("vectors", model.id, *ids), lambda: self._has_vectors(model, ids)))

    def _has_vectors(self, model: Model, folders: list[int]) -> bool:
        return any(self._database.row("any_block", model=model.id, folder=folder) for folder in folders)

    def find_nearest(self, model: Model, folders: Iterable[int], query: NDArray[Any], most: int) -> list[int]:
        """Return the passages of these folders with the most similar vectors."""
        with self._open_copies().lock:
            copies = [self._refresh(model, folder) for folder in folders]
            return [id for copy in copies for id in copy.find_nearest(query, most, self._fetch(model))]

    def vectors_of(self, model: Model, folders: Iterable[int], passages: NDArray[Any]) -> FoundVectors:
        """Return the vectors of these passages, by passage and piece."""
        with self._open_copies().lock:
            parts = [self._refresh(model, folder).vectors_of(passages, self._fetch(model)) for folder in folders]
        return parts[0] if len(parts) == 1 else join_vectors(parts)

    def cosines_of(self, model: Model, folders: Iterable[int], passages: NDArray[Any], query: NDArray[Any]) -> FoundCosines:
        """Return the similarity of a query to each vector of these passages, by passage and piece."""
        fetch = self._fetch(model)
        with self._open_copies().lock:
            parts = [self._refresh(model, folder).cosines_of(passages, query, fetch) for folder in folders]
        return parts[0] if len(parts) == 1 else join_cosines(parts)

    def _open_copies(self) -> _Copies:
        """Return the copies of the file that is open."""
        identity = self._database.file_identity()
        copies = _copies.get(identity) or _copies.setdefault(identity, _Copies())
        if copies is not self._copies:
            self._copies, self._contents = copies, {}
        return copies

    def _refresh(self, model: Model, folder: int) -> FolderVectors:
        """Return an up-to-date copy of a folder's vectors."""
        key = model.id, folder
        copy = self._copies.folders.get(key)
        if copy is None:
            copy = self._copies.folders[key] = FolderVectors(model)
        content = self._database.content_version()
        if self._contents.get(key) != content:
            copy.refresh(self._database.rows("stamps_of_blocks", model=model.id, folder=folder), self._read)
            self._contents[key] = content
        return copy

    def _read(self, block: int) -> tuple[bytes, bytes, bytes]:
        row: tuple[bytes, bytes, bytes] | None = self._database.row("read_block", block=block)
        if row is None:
            raise IndexReset("vectors were removed during the search")  # of a model that is no longer in use
        return row

    def _fetch(self, model: Model) -> Fetch:
        def fetch(slots: list[tuple[int, int]]) -> NDArray[Any]:
            import apsw
            import numpy as np

            numbers = np.zeros((len(slots), model.dim), np.int8)
            order = sorted(range(len(slots)), key=slots.__getitem__)
            starts = [
                0,
                *[
                    position
                    for position in range(1, len(order))
                    if not _is_next_slot(slots[order[position - 1]], slots[order[position]])
                ],
            ]
            with self._database.lock:
                db = self._database.connection()
                try:
                    first = db.blob_open("main", "block", "numbers", slots[order[0]][0], False)
                    with first as blob:
                        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
                            block, slot = slots[order[start]]
                            blob.reopen(block)
                            blob.seek(slot * model.dim)
                            block_numbers = np.frombuffer(blob.read((end - start) * model.dim), np.int8)
                            numbers[order[start:end]] = block_numbers.reshape(-1, model.dim)
                except apsw.SQLError as error:
                    raise IndexReset("vectors were removed during the search") from error
            return numbers

        return fetch


if TYPE_CHECKING:
    _implements: type[VectorIndex] = SqliteVectors
