"""Vectors in the catalogue: blocks of slots in SQLite, so that they are as safe, shared and erasable as the rest of it.

A block holds the vectors of one model and one folder: for each slot the passage it belongs to, its signs (one bit a
number) and its numbers (one byte each). A vector is put by writing its slot in place, and taken out by zeroing it. A
process that asks keeps the signs in memory (and the numbers too while there are few), and reads again only the blocks that
changed since. numpy is imported by those who ask, not by those who only erase.
"""

from __future__ import annotations

from holdfast.house import Renewed
from holdfast.note import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    import apsw
    from numpy.typing import NDArray

    from holdfast.house import Database

    Fetch = Callable[[list[tuple[int, int]]], NDArray[Any]]  # the numbers in these slots

SLOTS = 256  # of a block
PIECES = 1 << 14  # vectors of a passage are told apart by a number below this: an owner is `passage * PIECES + number`
EXACT = 50_000  # vectors of a folder up to which every one is compared; beyond, the signs choose whom to compare
_POOL = 512  # that the signs choose


class Model(Record):
    """An embedder, as the catalogue knows it: `done` is the last passage it has embedded."""

    id: int
    name: str
    dim: int
    done: int


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
                self._fill(model, block, used, now)

    def _block(self, model: Model, folder: int) -> tuple[int, int]:
        """The block with room, and how many of its slots are taken."""
        row = self._db.execute(self._sql["open_block"], {"model": model.id, "folder": folder, "slots": SLOTS}).fetchone()
        if row:
            return int(row[0]), int(row[1])
        sizes = {"ids": 8 * SLOTS, "signs": -(-model.dim // 8) * SLOTS, "numbers": model.dim * SLOTS}
        self._db.execute(self._sql["add_block"], {"model": model.id, "folder": folder, **sizes})
        return int(self._db.last_insert_rowid()), 0

    def _fill(self, model: Model, block: int, used: int, rows: list[tuple[int, NDArray[Any]]]) -> None:
        import numpy as np

        ids = np.array([passage for passage, _ in rows], dtype="<i8")
        signs, numbers = packed(np.stack([vector for _, vector in rows]))
        self._write(block, "ids", used * 8, ids.tobytes())
        self._write(block, "signs", used * signs.shape[1], signs.tobytes())
        self._write(block, "numbers", used * model.dim, numbers.tobytes())
        self._db.execute(self._sql["grow_block"], {"block": block, "used": used + len(rows)})
        places = [{"passage": int(id) // PIECES, "block": block, "slot": used + place} for place, id in enumerate(ids)]
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
    lengths = np.sqrt(np.einsum("ij,ij->i", loose, loose))
    lengths[lengths == 0] = 1
    loose /= lengths[:, None]
    return loose


class Reader:
    """One process's copy of the vectors of one model in one folder: their signs, and their numbers while they are few."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._width = -(-model.dim // 8)
        self._blocks: dict[int, tuple[int, NDArray[Any], NDArray[Any], NDArray[Any] | None]] = {}
        self._joined: _Joined | None = None

    def refresh(self, stamps: list[tuple[int, int, int]], read: Callable[[int], tuple[bytes, bytes, bytes]]) -> None:
        """Read what changed: `stamps` are (block, stamp, used) of all blocks, `read` gives a block's three columns."""
        exact = sum(used for _, _, used in stamps) <= EXACT
        if {block for block, _, _ in stamps} != set(self._blocks):
            self._blocks = {block: self._blocks[block] for block, _, _ in stamps if block in self._blocks}
            self._joined = None
        for block, stamp, used in stamps:
            known = self._blocks.get(block)
            if not known or known[0] != stamp or (known[3] is not None) != exact:
                self._blocks[block] = (stamp, *self._parts(read(block), used, exact))
                self._joined = None

    def _parts(self, row: tuple[bytes, bytes, bytes], used: int, exact: bool) -> tuple[Any, Any, Any]:
        import numpy as np

        ids = np.frombuffer(row[0], dtype="<i8")[:used]
        signs = np.frombuffer(row[1], dtype=np.uint8).reshape(SLOTS, self._width)[:used]
        if not exact:
            return ids, signs, None
        return ids, signs, unpacked(np.frombuffer(row[2], dtype=np.int8).reshape(SLOTS, self._model.dim)[:used])

    def _all(self) -> _Joined:
        if self._joined is None:
            self._joined = _Joined(self._blocks)
        return self._joined

    def nearest(self, query: NDArray[Any], most: int, fetch: Fetch) -> list[int]:
        """The passages whose pieces point most nearly the same way, best first."""
        import numpy as np

        all_ = self._all()
        if not len(all_.ids):
            return []
        if all_.numbers is not None:
            scores = np.vecdot(all_.numbers, query)  # unlike `@`, it never waits for another core
            best = _enough(scores, all_.ids // PIECES, most)
        else:
            near = _top(-_distances(all_.signs, np.packbits(query > 0)), _POOL)
            scores = np.full(len(all_.ids), -1.0, np.float32)
            scores[near] = np.vecdot(unpacked(fetch(all_.slots(near))), query)
            best = near[np.argsort(-scores[near], kind="stable")]
        return list(dict.fromkeys([owner // PIECES for owner in all_.ids[best].tolist() if owner]))[:most]

    def of(self, passages: NDArray[Any], fetch: Fetch) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The vectors of these passages: for each the place of its passage among them, its piece, and its numbers."""
        import numpy as np

        all_ = self._all()
        ids, order = all_.sorted()
        first, last = np.searchsorted(ids, passages * PIECES), np.searchsorted(ids, passages * PIECES + PIECES)
        owners = np.repeat(np.arange(len(passages)), last - first)
        rows = order[np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])] if len(owners) else order[:0]
        vectors = all_.numbers[rows] if all_.numbers is not None else unpacked(fetch(all_.slots(rows)))
        return owners, all_.ids[rows] % PIECES, vectors


class _Joined:
    """All blocks of a folder as one."""

    def __init__(self, blocks: dict[int, tuple[int, NDArray[Any], NDArray[Any], NDArray[Any] | None]]) -> None:
        import numpy as np

        parts = list(blocks.values())
        self.ids = np.concatenate([part[1] for part in parts]) if parts else np.zeros(0, "<i8")
        self.signs = np.concatenate([part[2] for part in parts]) if parts else np.zeros((0, 8), np.uint8)
        full = [part[3] for part in parts if part[3] is not None]
        self.numbers = np.concatenate(full) if parts and len(full) == len(parts) else None
        self._blocks = np.array(list(blocks))
        self._starts = np.cumsum([0] + [len(part[1]) for part in parts])
        self._sorted: tuple[NDArray[Any], NDArray[Any]] | None = None

    def sorted(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The ids in order, and where each stands."""
        import numpy as np

        if self._sorted is None:
            order = np.argsort(self.ids, kind="stable")
            self._sorted = self.ids[order], order
        return self._sorted

    def slots(self, rows: NDArray[Any]) -> list[tuple[int, int]]:
        """The block and the slot of each row."""
        import numpy as np

        place = np.searchsorted(self._starts, rows, "right") - 1
        return list(zip(self._blocks[place].tolist(), (rows - self._starts[place]).tolist(), strict=True))


def _enough(scores: NDArray[Any], passages: NDArray[Any], most: int) -> NDArray[Any]:
    """The places of the highest, as many as it takes to name `most` passages: a long one has many pieces."""
    import numpy as np

    wide = most * 2
    while len(np.unique(passages[(best := _top(scores, wide))])) <= most and wide < len(scores):
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


def _distances(signs: NDArray[Any], query: NDArray[Any]) -> NDArray[Any]:
    """In how many signs each differs from the query."""
    import numpy as np

    wide = signs.view(np.uint64) if signs.shape[1] % 8 == 0 and signs.flags.c_contiguous else signs
    same = query.view(np.uint64) if wide.dtype == np.uint64 else query
    total: NDArray[Any] = np.bitwise_count(wide[:, 0] ^ same[0]).astype(np.int32)
    for column in range(1, wide.shape[1]):
        total += np.bitwise_count(wide[:, column] ^ same[column])
    return total


class Shelved:
    """The vectors of a catalogue: what waits for them, what has them, and who is near whom."""

    def __init__(self, database: Database, sql: Mapping[str, str]) -> None:
        self._database = database
        self._sql = sql
        self._readers: dict[tuple[int, int, int], Reader] = {}

    def models(self) -> list[Model]:
        """Every model that has vectors here."""
        return [Model(*row) for row in self._database.rows("models")]

    def model(self, name: str, dim: int) -> Model:
        """The model of this name, known from now on."""
        for model in self.models():
            if model.name == name and model.dim == dim:
                return model
            if model.name == name:  # the same name for another model: its vectors mean nothing any more
                self.forget(model)
        with self._database.transaction() as db:
            db.execute(self._sql["add_model"], {"name": name, "dim": dim})
        for model in self.models():
            if model.name == name:
                return model
        raise Renewed("the catalogue went away while it was asked")  # as one does that is kept in memory

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
        self, model: Model, done: int, rows: Iterable[tuple[int, int, NDArray[Any]]], pieces: list[dict[str, object]]
    ) -> Model:
        """Put vectors for everything up to the passage `done`; nothing, if another process was faster."""
        with self._database.transaction() as db:
            there: set[Any] = {row[0] for row in db.execute(self._sql["still"], {"after": model.done, "last": done})}
            db.execute(self._sql["model_done"], {"model": model.id, "before": model.done, "done": done})
            if db.changes():
                db.executemany(self._sql["add_piece"], [piece for piece in pieces if piece["passage"] in there])
                Writer(db, self._sql).put(model, [row for row in rows if row[1] // PIECES in there])
        return next((one for one in self.models() if one.id == model.id), model)

    def nearest(self, model: Model, folders: Iterable[int], query: NDArray[Any], most: int) -> list[int]:
        """The passages of these folders whose pieces point most nearly the same way."""
        return [id for folder in folders for id in self._reader(model, folder).nearest(query, most, self._fetch(model))]

    def of(
        self, model: Model, folders: Iterable[int], passages: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The vectors of these passages, each with the place of its passage among them and its piece."""
        import numpy as np

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
        stamps = self._database.rows("stamps_of_blocks", model=model.id, folder=folder)
        reader.refresh(stamps, lambda block: self._database.row("read_block", block=block))
        return reader

    def _fetch(self, model: Model) -> Fetch:
        def fetch(slots: list[tuple[int, int]]) -> NDArray[Any]:
            import numpy as np

            numbers = np.zeros((len(slots), model.dim), np.int8)
            by_block: dict[int, list[int]] = {}
            for place, (block, _) in enumerate(slots):
                by_block.setdefault(block, []).append(place)
            with self._database.lock:
                db = self._database.opened()
                for block, places in by_block.items():
                    with db.blob_open("main", "block", "numbers", block, False) as blob:
                        for place in places:
                            blob.seek(slots[place][1] * model.dim)
                            numbers[place] = np.frombuffer(blob.read(model.dim), np.int8)
            return numbers

        return fetch
