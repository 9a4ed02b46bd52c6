"""Vectors in the catalogue: blocks of slots in SQLite, so that they are as safe, shared and erasable as the rest of it.

A block holds the vectors of one model and one folder: for each slot the passage it belongs to, its signs (one bit a
number) and its numbers (one byte each). A vector is put by writing its slot in place, and taken out by zeroing it. A
process that asks keeps the signs in memory (and the numbers too unless there are many), and reads again only the blocks that
changed since. numpy is imported by those who ask, not by those who only erase.
"""

from __future__ import annotations

from _thread import RLock

from holdfast.base.record import Record
from holdfast.home import DatabaseReset
from holdfast.index.writer import sum_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    import apsw
    from numpy.typing import NDArray

    from holdfast.home import Database

    Buffer = bytes | memoryview
    Fetch = Callable[[list[tuple[int, int]]], NDArray[Any]]  # the numbers in these slots

SLOTS = 256  # of a block
PIECES = 1 << 14  # vectors of a passage are told apart by a number below this: an owner is `passage * PIECES + number`
EXACT = 16_384  # vectors of a folder up to which every one is compared; beyond, the signs choose whom to compare
HELD = 128 << 20  # bytes of the numbers that are kept in memory; where there are more, they are read when they are needed
_POOL, _POOL_AFAR = 2048, 512  # that the signs choose from numbers in memory, and from others
_AT_ONCE = 32_768  # slots whose signs are compared at once: what a processor keeps near it


class Model(Record):
    """An embedder, as the catalogue knows it: `done` is the last passage it has embedded."""

    id: int
    name: str
    dim: int
    done: int
    role: str = ""
    setting: str = ""  # what opens it again
    asked: int = 0  # the newest other model that was here when somebody who has this one set last asked


class Waiting(Record):
    """A passage that lacks vectors."""

    passage: int
    folder: int
    names: str
    text: str
    speaker: str | None
    doc: int


class Writer:
    """Puts vectors into blocks, within the transaction of its connection."""

    def __init__(self, db: apsw.Connection, sql: Mapping[str, str]) -> None:
        self._db = db
        self._sql = sql

    def put(self, model: Model, rows: Iterable[tuple[int, int, NDArray[Any]]]) -> None:
        """Vectors (folder, owner, unit vector); an owner is a passage and one of its pieces, and may have several."""
        by_folder: dict[int, list[tuple[int, NDArray[Any]]]] = {}
        for folder, passage, vector in rows:
            by_folder.setdefault(folder, []).append((passage, vector))
        for folder, some in by_folder.items():
            while some:
                block, used = self._block(model, folder)
                now, some = some[: SLOTS - used], some[SLOTS - used :]
                self._fill(model, folder, block, used, now)

    def _block(self, model: Model, folder: int) -> tuple[int, int]:
        """The block with room, and how many of its slots are taken."""
        row = self._db.execute(self._sql["open_block"], {"model": model.id, "folder": folder, "slots": SLOTS}).fetchone()
        if row:
            return int(row[0]), int(row[1])
        sum_ = sum_of({"model": model.id, "folder": folder, "used": 0})
        sizes = {"sum": sum_, "ids": 8 * SLOTS, "signs": -(-model.dim // 8) * SLOTS, "numbers": model.dim * SLOTS}
        self._db.execute(self._sql["add_block"], {"model": model.id, "folder": folder, **sizes})
        return int(self._db.last_insert_rowid()), 0

    def _fill(self, model: Model, folder: int, block: int, used: int, rows: list[tuple[int, NDArray[Any]]]) -> None:
        import numpy as np

        ids = np.array([passage for passage, _ in rows], dtype="<i8")
        signs, numbers = packed(np.stack([vector for _, vector in rows]))
        self._write(block, "ids", used * 8, ids.tobytes())
        self._write(block, "signs", used * signs.shape[1], signs.tobytes())
        self._write(block, "numbers", used * model.dim, numbers.tobytes())
        grown = {"model": model.id, "folder": folder, "used": used + len(rows)}
        self._db.execute(self._sql["grow_block"], {**grown, "block": block, "sum": sum_of(grown)})
        places = [
            {"passage": int(one[0]) // PIECES, "block": block, "slot": slot, "sum": sum_of_slot(*[of.tobytes() for of in one])}
            for slot, one in enumerate(zip(ids, signs, numbers, strict=True), used)
        ]
        self._db.executemany(self._sql["add_place"], places)

    def drop(self, passages: Iterable[int]) -> None:
        """Zero every slot of these passages."""
        for passage in passages:
            places: list[Any] = self._db.execute(self._sql["places"], {"passage": passage}).fetchall()
            for block, slot, dim in places:
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


def sum_of_slot(owner: Buffer, signs: Buffer, numbers: Buffer) -> int:
    """Of what a slot holds: by it `verifying` tells if it is what was put there."""
    from zlib import crc32

    return crc32(numbers, crc32(signs, crc32(owner)))


def packed(vectors: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Unit vectors as signs (one bit a number) and as bytes that keep their directions to half a percent."""
    import numpy as np

    signs = np.packbits(vectors > 0, axis=1)
    most = np.abs(vectors).max(axis=1, keepdims=True)
    most[most == 0] = 1
    return signs, np.rint(vectors * (127 / most)).astype(np.int8)


def unpacked(numbers: NDArray[Any]) -> NDArray[Any]:
    """The unit vectors again."""
    import numpy as np

    loose = numbers.astype(np.float32)
    loose *= _scales(loose)[:, None]
    return loose


def _scales(loose: NDArray[Any]) -> NDArray[Any]:
    """What makes each row a unit vector."""
    import numpy as np

    lengths = np.sqrt(np.einsum("ij,ij->i", loose, loose))
    lengths[lengths == 0] = 1
    scales: NDArray[Any] = 1 / lengths
    return scales


class Reader:
    """One process's copy of the vectors of one model in one folder: their signs, and their numbers unless they are many.

    A block's slots stand side by side, and blocks in the order in which they were first read; an empty slot's id is 0."""

    def __init__(self, model: Model) -> None:
        import numpy as np

        self.mark: object = None  # what the catalogue was when this was read
        self._model = model
        self._words = -(-model.dim // 64)
        self._places: dict[int, tuple[int, int]] = {}  # of each block its place and stamp
        self._blocks: list[int] = []
        self._ids = np.zeros(0, np.int64)
        self._signs = np.zeros((self._words, 0), np.uint64)  # by column: a slot's signs in words of 64
        self._numbers: NDArray[Any] | None = None  # as they are kept, or as unit vectors while there are few
        self._scales = np.zeros(0, np.float32)  # what makes unit vectors of those as they are kept
        self._sorted: tuple[NDArray[Any], NDArray[Any]] | None = None

    def refresh(self, stamps: list[tuple[int, int, int]], read: Callable[[int], tuple[bytes, bytes, bytes]]) -> None:
        """Read what changed: `stamps` are (block, stamp, used) of all blocks, `read` gives a block's three columns."""
        self._make_room(stamps)
        for block, stamp, _ in stamps:
            if block not in self._places:
                self._blocks.append(block)
            place, known = self._places.get(block, (len(self._blocks) - 1, None))
            if known != stamp:
                self._take(place, read(block))
                self._places[block] = place, stamp
                self._sorted = None

    def _make_room(self, stamps: list[tuple[int, int, int]]) -> None:
        """Room for all blocks; everything is read again when one is gone, or when the numbers are kept another way."""
        import numpy as np

        there = {block for block, _, _ in stamps}
        slots = len(there) * SLOTS
        kind = np.float32 if slots <= EXACT else np.int8 if slots * self._model.dim <= HELD else None
        same = kind is None if self._numbers is None else self._numbers.dtype == kind
        if not same or not there.issuperset(self._blocks):
            self.__init__(self._model)  # type: ignore[misc]
        if slots > len(self._ids):
            room = slots + slots // 4 // SLOTS * SLOTS
            self._ids = _longer(self._ids, room)
            self._signs = np.ascontiguousarray(_longer(self._signs.T, room).T)
            if kind is not None:
                before = np.zeros((0, self._model.dim), kind) if self._numbers is None else self._numbers
                self._numbers = _longer(before, room)
                self._scales = _longer(self._scales, room)

    def _take(self, place: int, row: tuple[bytes, bytes, bytes]) -> None:
        import numpy as np

        slots = slice(place * SLOTS, place * SLOTS + SLOTS)
        self._ids[slots] = np.frombuffer(row[0], dtype="<i8")
        self._signs[:, slots] = _as_words(np.frombuffer(row[1], np.uint8).reshape(SLOTS, -1)).T
        if self._numbers is not None:
            numbers = np.frombuffer(row[2], np.int8).reshape(SLOTS, self._model.dim)
            self._scales[slots] = _scales(numbers.astype(np.float32))
            self._numbers[slots] = unpacked(numbers) if self._numbers.dtype == np.float32 else numbers

    def nearest(self, query: NDArray[Any], most: int, fetch: Fetch) -> list[int]:
        """The passages whose pieces point most nearly the same way, best first."""
        import numpy as np

        slots = len(self._blocks) * SLOTS
        ids = self._ids[:slots]
        if self._numbers is not None and self._numbers.dtype == np.float32:
            scores = np.vecdot(self._numbers[:slots], query)  # unlike `@`, it never waits for another core
            best = enough(np.where(ids > 0, scores, -2), ids // PIECES, most)
        else:
            near = _fewest(self._distances(query, ids), _POOL if self._numbers is not None else _POOL_AFAR)
            best = near[enough(self._likeness(near, query, fetch), ids[near] // PIECES, most)]
        return list(dict.fromkeys([owner // PIECES for owner in ids[best].tolist() if owner]))[:most]

    def _distances(self, query: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
        """In how many signs each slot differs from the query; an empty one in more than there are."""
        import numpy as np

        asked = _as_words(np.packbits(query > 0)[None])[0]
        total = np.zeros(len(ids), np.uint16)
        for start in range(0, len(ids), _AT_ONCE):
            some = total[start : start + _AT_ONCE]
            for column, word in zip(self._signs[:, start : start + len(some)], asked, strict=True):
                some += np.bitwise_count(column ^ word)
        total[ids == 0] = 64 * self._words + 1
        return total

    def _likeness(self, slots: NDArray[Any], query: NDArray[Any], fetch: Fetch) -> NDArray[Any]:
        """How nearly each slot points the same way. Dividing the sums by the lengths saves dividing every number."""
        import numpy as np

        if self._numbers is None:
            like: NDArray[Any] = np.vecdot(self._vectors(slots, fetch), query)
        else:
            like = np.vecdot(self._numbers.take(slots, axis=0).astype(np.float32), query) * self._scales[slots]
        return like

    def of(self, passages: NDArray[Any], fetch: Fetch) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The vectors of these passages: for each the place of its passage among them, its piece, and its numbers."""
        import numpy as np

        if self._sorted is None:
            ids = self._ids[: len(self._blocks) * SLOTS]
            order = np.argsort(ids, kind="stable")
            self._sorted = ids[order], order
        ids, order = self._sorted
        owners, found = runs(ids, passages)
        return owners, ids[found] % PIECES, self._vectors(order[found], fetch)

    def _vectors(self, slots: NDArray[Any], fetch: Fetch) -> NDArray[Any]:
        import numpy as np

        if not len(slots):
            return np.zeros((0, self._model.dim), np.float32)
        if self._numbers is None:
            blocks = np.array(self._blocks, np.int64)[slots // SLOTS]
            return unpacked(fetch(list(zip(blocks.tolist(), (slots % SLOTS).tolist(), strict=True))))
        numbers = self._numbers.take(slots, axis=0)
        return numbers if numbers.dtype == np.float32 else numbers.astype(np.float32) * self._scales[slots, None]


def runs(owners: NDArray[Any], passages: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Among sorted owners those of these passages: for each the place of its passage, and its own."""
    import numpy as np

    first, last = np.searchsorted(owners, passages * PIECES), np.searchsorted(owners, passages * PIECES + PIECES)
    counts = last - first
    places = np.repeat(np.arange(len(passages)), counts)
    return places, np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(len(places))


def _longer(rows: NDArray[Any], length: int) -> NDArray[Any]:
    """The same rows, and zeros after them."""
    import numpy as np

    longer = np.zeros((length, *rows.shape[1:]), rows.dtype)
    longer[: len(rows)] = rows
    return longer


def _as_words(signs: NDArray[Any]) -> NDArray[Any]:
    """Rows of packed signs as words of 64, the last one filled up with zeros."""
    import numpy as np

    wide = np.zeros((len(signs), -(-signs.shape[1] // 8) * 8), np.uint8)
    wide[:, : signs.shape[1]] = signs
    return wide.view(np.uint64)


def enough(scores: NDArray[Any], passages: NDArray[Any], most: int) -> NDArray[Any]:
    """The places of the highest, as many as it takes to name `most` passages: a long one has many pieces."""
    wide = most * 2
    while len(set(passages[(best := _top(scores, wide))].tolist())) <= most and wide < len(scores):  # no np.unique: see gate.py
        wide *= 8
    return best


def _top(scores: NDArray[Any], most: int) -> NDArray[Any]:
    """The places of the highest, highest first; of equals the first."""
    import numpy as np

    if len(scores) > most:
        some = np.argpartition(-scores, most)[:most]
        some.sort()
        return some[np.argsort(-scores[some], kind="stable")]
    return np.argsort(-scores, kind="stable")


def _fewest(distances: NDArray[Any], most: int) -> NDArray[Any]:
    """The places of the smallest, and of all that are as small as the last of them: numbers this small are quicker counted
    than sorted."""
    import numpy as np

    upto = np.cumsum(np.bincount(distances))
    return np.flatnonzero(distances <= np.searchsorted(upto, min(most, len(distances))))


def _follows(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a slot stands just behind another: then both are read at once."""
    return one[0] == other[0] and one[1] + 1 == other[1]


class VectorIndex:
    """The vectors of a catalogue: what waits for them, what has them, and who is near whom."""

    def __init__(self, database: Database, sql: Mapping[str, str]) -> None:
        self._database = database
        self._sql = sql
        self._readers: dict[tuple[int, int, int], Reader] = {}
        self._reading = RLock()  # who reads anew what changed does so before another compares

    def begin_anew(self) -> None:
        """In a child: a thread that compared just now did not come along."""
        self._readers, self._reading = {}, RLock()

    def models(self) -> list[Model]:
        """Every model that has vectors here."""
        return [Model(*row) for row in self._database.rows("models")]

    def model(self, name: str, dim: int, role: str = "", setting: str = "") -> Model:
        """The model of this name and role, known from now on."""
        for model in self.models():
            if (model.name, model.role, model.dim) == (name, role, dim):
                return model
            if (model.name, model.role) == (name, role):  # the same name for another model: its vectors mean nothing any more
                self.forget(model)
        self._add_model({"name": name, "dim": dim, "role": role, "setting": setting})
        for model in self.models():
            if (model.name, model.role) == (name, role):
                return model
        raise DatabaseReset("the catalogue went away while it was asked")  # as one does that is kept in memory

    def _add_model(self, fields: dict[str, Any]) -> None:
        with self._database.transaction() as db:
            db.execute(self._sql["add_model"], fields)

    def asked_for(self, model: Model, newest: int) -> None:
        """Note that somebody still has this model set, though a newer one came."""
        with self._database.transaction() as db:
            db.execute(self._sql["model_asked"], {"model": model.id, "newest": newest})

    def forget(self, model: Model) -> None:
        """Take a model and all its vectors out."""
        with self._database.transaction() as db:
            for statement in ("drop_model_places", "drop_blocks", "drop_model"):
                db.execute(self._sql[statement], {"model": model.id})

    def waiting(self, model: Model, most: int) -> list[Waiting]:
        """The next passages that lack this model's vectors, in the order in which they came."""
        return [Waiting(*row) for row in self._database.rows("waiting", done=model.done, most=most)]

    def count_waiting(self, model: Model) -> int:
        return int(self._database.row("count_waiting", done=model.done)[0])

    def speakers(self, doc: int) -> list[str]:
        """Who speaks in a session."""
        return [row[0] for row in self._database.rows("speakers", doc=doc)]

    def keep(
        self, model: Model, done: list[Waiting], rows: Iterable[tuple[int, int, NDArray[Any]]], pieces: list[dict[str, object]]
    ) -> Model:
        """Put vectors for the passages that were waiting; nothing, if another process was faster."""
        last = done[-1].passage
        with self._database.transaction() as db:
            there: set[Any] = {row[0] for row in db.execute(self._sql["still"], {"after": model.done, "last": last})}
            db.execute(self._sql["model_done"], {"model": model.id, "before": model.done, "done": last})
            if db.changes():
                mine = [piece | {"sum": sum_of(piece)} for piece in pieces if piece["passage"] in there]
                db.executemany(self._sql["add_piece"], mine)
                Writer(db, self._sql).put(model, [row for row in rows if row[1] // PIECES in there])
        return next((one for one in self.models() if one.id == model.id), model)

    def nearest(self, model: Model, folders: Iterable[int], query: NDArray[Any], most: int) -> list[int]:
        """The passages of these folders whose pieces point most nearly the same way."""
        with self._reading:
            return [id for folder in folders for id in self._reader(model, folder).nearest(query, most, self._fetch(model))]

    def of(
        self, model: Model, folders: Iterable[int], passages: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The vectors of these passages, each with the place of its passage among them and its piece."""
        import numpy as np

        with self._reading:
            parts = [self._reader(model, folder).of(passages, self._fetch(model)) for folder in folders]
        if len(parts) == 1:
            return parts[0]
        owners, numbers, vectors = (np.concatenate([part[column] for part in parts]) for column in range(3))
        order = np.lexsort((numbers, owners))
        return owners[order], numbers[order], vectors[order]

    def _reader(self, model: Model, folder: int) -> Reader:
        key = self._database.generation, model.id, folder
        reader = self._readers.get(key)
        if reader is None:
            self._readers = {known: one for known, one in self._readers.items() if known[0] == key[0]}
            reader = self._readers[key] = Reader(model)
        now = self._database.mark()
        if reader.mark != now:
            stamps = self._database.rows("stamps_of_blocks", model=model.id, folder=folder)
            reader.refresh(stamps, self._read)
            reader.mark = now
        return reader

    def _read(self, block: int) -> tuple[bytes, bytes, bytes]:
        row: tuple[bytes, bytes, bytes] | None = self._database.row("read_block", block=block)
        if row is None:
            raise DatabaseReset("vectors went away while they were compared")  # of a model that nobody asks for any more
        return row

    def _fetch(self, model: Model) -> Fetch:
        def fetch(slots: list[tuple[int, int]]) -> NDArray[Any]:
            import apsw
            import numpy as np

            numbers = np.zeros((len(slots), model.dim), np.int8)
            order = sorted(range(len(slots)), key=slots.__getitem__)
            starts = [0, *[n for n in range(1, len(order)) if not _follows(slots[order[n - 1]], slots[order[n]])]]
            with self._database.lock:
                db = self._database.opened()
                try:
                    opened = db.blob_open("main", "block", "numbers", slots[order[0]][0], False)
                    with opened as blob:
                        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
                            block, slot = slots[order[start]]
                            blob.reopen(block)
                            blob.seek(slot * model.dim)
                            read = np.frombuffer(blob.read((end - start) * model.dim), np.int8)
                            numbers[order[start:end]] = read.reshape(-1, model.dim)
                except apsw.SQLError as error:
                    raise DatabaseReset("vectors went away while they were compared") from error
            return numbers

        return fetch
