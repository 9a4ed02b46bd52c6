"""Vectors in PostgreSQL, where it has pgvector: each a row, of numbers from -127 to 127 as the embedded catalogue keeps them.

The first vectors of a folder are few enough for every process to keep a copy and to compare them all, exactly as an embedded
catalogue does. Those beyond are compared by PostgreSQL, with an HNSW index for the sizes of our own models. A copy is brought
up to date by the version of the folder's stock; what was taken out meanwhile is found by no row any more.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict

from holdfast.base.record import Record
from holdfast.errors import Trouble
from holdfast.index import vectors
from holdfast.index.vectors import EXACT, PIECES, Model, Waiting, packed, unpacked
from holdfast.postgres import lacking, statements
from holdfast.postgres.index_text import tidied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.postgres import Database

    Found = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    Copies = dict[tuple[int, int], Any]  # by model and folder: a copy, or none yet

SQL = statements(__file__)
_HEAD = 4  # bytes before the numbers of a vector as PostgreSQL sends it
_FAR, _FARTHEST = 400, 1000  # that an HNSW index looks at: at least twice as many as are wanted, as far as it can
_INDEXED = (256, 384, 512)  # sizes that have one
_FEW = 10_000  # of a folder that are compared one by one: an index that holds all folders would look at too many of others
_HELD = 256 << 20  # bytes of copies that a process keeps
_OUTDATED = 32  # that may be gone from a folder before its copy is made anew: these, or one in fifty


class Stock(Record):
    """What vectors of a model a folder has: those that are copied, those that are not, and how often they changed."""

    model: int
    folder: int
    narrow: int
    wide: int
    removed: int
    version: int


class Copy:
    """One process's copy of the vectors of one model in one folder, by their owners. It stays as it is: another replaces it."""

    def __init__(self, owners: NDArray[Any], rows: NDArray[Any], version: int, removed: int) -> None:
        self._owners, self._rows = owners, rows
        self.version, self.removed = version, removed

    @classmethod
    def empty(cls, dim: int, removed: int = 0) -> Copy:
        import numpy as np

        return cls(np.zeros(0, np.int64), np.zeros((0, dim), np.float32), 0, removed)

    @property
    def all(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._owners, self._rows

    @property
    def bytes(self) -> int:
        return int(self._rows.nbytes)

    def more(self, owners: NDArray[Any], rows: NDArray[Any], version: int) -> Copy:
        """With these, too."""
        import numpy as np

        every = np.concatenate([self._owners, owners])
        order = np.argsort(every, kind="stable")
        return Copy(every[order], np.concatenate([self._rows, rows])[order], version, self.removed)

    def nearest(self, query: NDArray[Any], most: int) -> list[int]:
        """The passages whose pieces point most nearly the same way, best first."""
        import numpy as np

        passages = self._owners // PIECES
        best = vectors.enough(np.vecdot(self._rows, query), passages, most)  # unlike `@`, it never waits for another core
        return list(dict.fromkeys(passages[best].tolist()))[:most]

    def of(self, passages: NDArray[Any]) -> Found:
        """The vectors of these passages: for each the place of its passage among them, its piece, and its numbers."""
        places, found = vectors.runs(self._owners, passages)
        return places, self._owners[found] % PIECES, self._rows[found]


_copies: OrderedDict[tuple[str, int, int], Copy] = OrderedDict()  # by address, model and folder; the last used at the end
_lock = threading.RLock()


class PostgresVectors(vectors.VectorIndex):
    """The vectors of a catalogue: what waits for them, what has them, and who is near whom."""

    def __init__(self, database: Database, sql: Mapping[str, str]) -> None:
        there: Any = database
        super().__init__(there, sql)
        self._catalogue, self._url = database, database.settings.url
        self._extension: str | None = None  # which pgvector there is, once that is known
        self._waiting: dict[int, int] = {}

    def there(self) -> bool:
        """Whether this server can keep vectors."""
        if not self._extension:
            row = self._database.row("has_vectors")
            self._extension = row[0] if row else None
        return bool(self._extension)

    def lacking(self) -> tuple[str, str]:
        """What keeps it from doing so and what mends that, if anything does."""
        return ("", "") if self.there() else lacking(self._catalogue)

    # --- models, and what waits for them -----------------------------------------------------------------------------

    def models(self) -> list[Model]:
        """Every model that has vectors here."""
        rows = self._database.rows("models")
        self._waiting = {row[0]: row[7] for row in rows}
        return [Model(*row[:7]) for row in rows]

    def model(self, name: str, dim: int, role: str = "", setting: str = "") -> Model:
        """The model of this name and role, known from now on."""
        what, fix = self.lacking()
        if what:
            raise Trouble(f"{what}: keyword search ran", fix)
        return super().model(name, dim, role, setting)

    def _add_model(self, fields: dict[str, Any]) -> None:
        """While nobody adds passages: each is told what it lacks, by them or by us."""

        def work(db: Any) -> None:
            db.execute(self._sql["lock_all"])
            db.execute(self._sql["add_model"], fields)

        self._catalogue.write(work)

    def forget(self, model: Model) -> None:
        """Take a model and all its vectors out."""

        def work(db: Any) -> None:
            db.execute(self._sql["lock_all"])
            db.execute(self._sql["drop_model"], {"model": model.id})

        self._catalogue.write(work)

    def waiting(self, model: Model, most: int) -> list[Waiting]:
        """The next passages that lack this model's vectors, in the order in which they came."""
        return [Waiting(*row) for row in self._database.rows("waiting", model=model.id, most=most)]

    def count_waiting(self, model: Model) -> int:
        """How many lack them, as when the models were last asked for."""
        if model.id in self._waiting:
            return self._waiting[model.id]
        return int(self._database.row("count_current")[0]) if self.there() else 0

    # --- putting them in ---------------------------------------------------------------------------------------------

    def keep(
        self, model: Model, done: list[Waiting], rows: Iterable[tuple[int, int, NDArray[Any]]], pieces: list[dict[str, object]]
    ) -> Model:
        """Put vectors for these passages; nothing for those that another process was faster with."""
        folders, given = sorted({one.folder for one in done}), list(rows)

        def work(db: Any) -> None:
            db.execute(self._sql["lock_folders"], {"folders": folders})
            taken = db.execute(self._sql["take_lacking"], {"model": model.id, "ids": [one.passage for one in done]})
            stock: Any = db.execute(self._sql["stock_of"], {"model": model.id, "folders": folders})
            there = {row[0] for row in taken.fetchall()}
            within = {one.passage: one.folder for one in done if one.passage in there}
            cut = [tidied(piece) | {"folder": within[one]} for piece in pieces if (one := piece["passage"]) in within]
            if cut:
                db.execute(self._sql["add_pieces"], {"rows": json.dumps(cut, ensure_ascii=False)})
            wanted = [row for row in given if row[1] // PIECES in there]
            if wanted:
                self._put(db, model, wanted, {folder: (narrow, version) for folder, narrow, version in stock.fetchall()})

        self._catalogue.write(work)
        return next((one for one in self.models() if one.id == model.id), model)

    def _put(
        self, db: Any, model: Model, rows: list[tuple[int, int, NDArray[Any]]], stock: dict[int, tuple[int, int]]
    ) -> None:
        import numpy as np

        numbers = packed(np.stack([vector for _, _, vector in rows]))[1].tolist()
        places, narrow, wide = Counter[int](), Counter[int](), Counter[int]()
        told: list[tuple[int, int, int, int, bool, int]] = []
        for folder, owner, _ in rows:
            before, version = stock.get(folder, (0, 0))
            beyond = before + narrow[folder] >= EXACT
            (wide if beyond else narrow)[folder] += 1
            told.append((owner // PIECES, places[owner // PIECES], owner % PIECES, folder, beyond, version + 1))
            places[owner // PIECES] += 1
        touched = sorted({*narrow, *wide})
        grown = {"narrow": [narrow[one] for one in touched], "wide": [wide[one] for one in touched]}
        db.execute(self._sql["grow_stock"], {"model": model.id, "folders": touched, **grown})
        names = ("passages", "places", "piece_numbers", "folders", "wide", "versions")
        columns = dict(zip(names, map(list, zip(*told, strict=True)), strict=True))
        spelled = [str(one) for one in numbers]
        db.execute(self._sql["add_vectors"], {"model": model.id, "dim": model.dim, "vectors": spelled, **columns})

    # --- comparing them ----------------------------------------------------------------------------------------------

    def nearest(self, model: Model, folders: Iterable[int], query: NDArray[Any], most: int) -> list[int]:
        """The passages of these folders whose pieces point most nearly the same way."""
        found: list[int] = []
        for stock, copy in self._fresh(model, list(folders)):
            gone = stock.removed - copy.removed
            found += copy.nearest(query, most + gone)
            if stock.wide:
                found += self._far(model, stock, query, most)
        return found

    def _far(self, model: Model, stock: Stock, query: NDArray[Any], most: int) -> list[int]:
        """Those of a folder that no process keeps a copy of."""
        values = {"model": model.id, "folder": stock.folder, "query": str(query.tolist())}
        found: list[int] = []
        if model.dim in _INDEXED and stock.wide > _FEW:
            with self._database.reading():  # type: ignore[attr-defined]
                far = str(min(max(_FAR, 2 * most), _FARTHEST))
                self._database.rows("look_far" if self._iterates() else "look_far_before", far=far)
                found = [row[0] for row in self._database.rows(f"near_{model.dim}", most=2 * most, **values)]
        if len(found) < min(most, stock.wide):  # the index looked at too many of other folders
            found = [row[0] for row in self._database.rows("near_any", most=most, **values)]
        return list(dict.fromkeys(found))[:most]

    def _iterates(self) -> bool:
        """Whether this pgvector looks further where it found too few: from 0.8 on."""
        return self.there() and tuple(map(int, (self._extension or "0").split(".")[:2])) >= (0, 8)

    def of(self, model: Model, folders: Iterable[int], passages: NDArray[Any]) -> Found:
        """The vectors of these passages, each with the place of its passage among them and its piece."""
        import numpy as np

        fresh = self._fresh(model, list(folders))
        parts = [copy.of(passages) for _, copy in fresh]
        wide = [stock.folder for stock, _ in fresh if stock.wide]
        if wide:
            parts.append(self._wide(model, wide, passages))
        if len(parts) == 1:
            return parts[0]
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, model.dim), np.float32)
        owners, numbers, rows = (np.concatenate([part[column] for part in [nothing, *parts]]) for column in range(3))
        order = np.lexsort((numbers, owners))
        return owners[order], numbers[order], rows[order]

    def _wide(self, model: Model, folders: list[int], passages: NDArray[Any]) -> Found:
        copy = Copy.empty(model.dim)
        owners, numbers = self._database.row("wide_ones", model=model.id, ids=passages.tolist(), folders=folders)
        if owners:
            copy = copy.more(*_read(owners, numbers, model.dim), 0)
        return copy.of(passages)

    # --- copies ------------------------------------------------------------------------------------------------------

    def _fresh(self, model: Model, folders: list[int]) -> list[tuple[Stock, Copy]]:
        """The copies of these folders, up to date."""
        stocks = [Stock(*row) for row in self._database.rows("stock", folders=folders)]
        with _lock:
            copies = {(stock.model, stock.folder): _copies.get((self._url, stock.model, stock.folder)) for stock in stocks}
        behind = [stock for stock in stocks if _is_behind(stock, copies[stock.model, stock.folder], model)]
        if behind:
            copies |= self._refreshed(model, behind, copies)
            self._keep_copies(copies)
        found = [(stock, copies[stock.model, stock.folder]) for stock in stocks if stock.model == model.id]
        return [(stock, copy) for stock, copy in found if copy is not None]

    def _refreshed(self, model: Model, behind: list[Stock], known: Copies) -> Copies:
        """Copies with what came since; from the start where much was taken out."""
        dims = {one.id: one.dim for one in self.models()} | {model.id: model.dim}
        behind = [stock for stock in behind if stock.model in dims]
        made: Copies = {}
        for stock in behind:
            copy = known[stock.model, stock.folder]
            outdated = copy is None or stock.removed - copy.removed > max(_OUTDATED, stock.narrow // 50)
            made[stock.model, stock.folder] = Copy.empty(dims[stock.model], stock.removed) if outdated else copy
        rows = self._database.rows(
            "narrow_ones", models=[one.model for one in behind], folders=[one.folder for one in behind],
            since=[made[one.model, one.folder].version for one in behind], upto=[one.version for one in behind],
        )  # fmt: skip
        came = {(owner, folder): _read(owners, numbers, dims[owner]) for owner, folder, owners, numbers in rows}
        for stock in behind:
            place = stock.model, stock.folder
            nothing = Copy.empty(dims[stock.model])
            made[place] = made[place].more(*came.get(place, nothing.all), stock.version)
        return made

    def _keep_copies(self, copies: Copies) -> None:
        """For the next question; those unused for longest go when there are too many."""
        with _lock:
            for place, copy in copies.items():
                if copy is not None:
                    _copies[self._url, *place] = copy
                    _copies.move_to_end((self._url, *place))
            while sum([copy.bytes for copy in _copies.values()]) > _HELD and len(_copies) > len(copies):
                _copies.popitem(last=False)

    def forget_copies(self) -> None:
        """Of what was erased nothing stays in this process."""
        with _lock:
            for key in [key for key in _copies if key[0] == self._url]:
                del _copies[key]


def _is_behind(stock: Stock, copy: Copy | None, model: Model) -> bool:
    """Whether a copy must be read; of another model only where there is one, so that all are read at once."""
    return stock.model == model.id if copy is None else copy.version < stock.version


def _read(owners: bytes, numbers: bytes, dim: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Owners and unit vectors, from what PostgreSQL sends: whole numbers and halves, the high byte first."""
    import numpy as np

    rows = np.frombuffer(numbers, np.uint8).reshape(-1, _HEAD + 2 * dim)[:, _HEAD:]
    return np.frombuffer(owners, ">i8").astype(np.int64), unpacked(np.ascontiguousarray(rows).view(">f2"))
