"""Vectors in PostgreSQL, where it has pgvector: each a row, of numbers from -127 to 127 as in the SQLite index.

The first vectors of a folder (`narrow`) are few enough for every process to keep a copy and to compare them all, exactly as
with SQLite. Those beyond (`wide`) are compared by PostgreSQL, with an HNSW index for the dimensions of our own models. The
table `stock` has a version for each folder and model, by which a copy is brought up to date; no row leads to passages that
were removed meanwhile.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict

from holdfast.base.record import Record
from holdfast.errors import Trouble
from holdfast.index.queries import IndexReset
from holdfast.index.vectors import (
    EXACT,
    PIECES,
    FoundCosines,
    FoundVectors,
    Model,
    WaitingPassage,
    find_runs,
    join_vectors,
    pack,
    top_passages,
    unpack,
)
from holdfast.postgres import statements, vector_problem
from holdfast.postgres.index_text import clean_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.index.interface import VectorIndex
    from holdfast.postgres import Session
    from holdfast.postgres.index import IndexDatabase

    Copies = dict[tuple[int, int], Any]  # by model and folder: a copy, or None

SQL = statements(__file__)
_HEADER_BYTES = 4  # before the numbers of a vector as PostgreSQL sends it
_EF_SEARCH, _MAX_EF_SEARCH = 400, 1000  # candidates of an HNSW search: twice as many as are wanted, within these limits
_INDEXED_DIMS = (256, 384, 512)  # that have an HNSW index
_FEW_WIDE = 10_000  # vectors of a folder that are compared one by one: the HNSW index has the vectors of all folders
_CACHED_BYTES = 256 << 20  # of copies that a process keeps
_MAX_REMOVED = 32  # vectors, or one in fifty, that may be missing from a folder before its copy is read again


class Stock(Record):
    """The number of vectors of a model in a folder: narrow, wide and removed ones; and their version."""

    model: int
    folder: int
    narrow: int
    wide: int
    removed: int
    version: int


class Copy:
    """A copy of the narrow vectors of one model in one folder, ordered by owner. It is never changed, only replaced."""

    def __init__(self, owners: NDArray[Any], rows: NDArray[Any], version: int, removed: int) -> None:
        self._owners, self._rows = owners, rows
        self.version, self.removed = version, removed

    @classmethod
    def empty(cls, dim: int, removed: int = 0) -> Copy:
        import numpy as np

        return cls(np.zeros(0, np.int64), np.zeros((0, dim), np.float32), 0, removed)

    @property
    def bytes(self) -> int:
        return int(self._rows.nbytes)

    def extend(self, owners: NDArray[Any], rows: NDArray[Any], version: int) -> Copy:
        """Return a copy with these vectors added."""
        import numpy as np

        both = np.concatenate([self._owners, owners])
        order = np.argsort(both, kind="stable")
        return Copy(both[order], np.concatenate([self._rows, rows])[order], version, self.removed)

    def find_nearest(self, query: NDArray[Any], most: int) -> list[int]:
        """Return the passages with the most similar vectors, best first."""
        import numpy as np

        passages = self._owners // PIECES
        best = top_passages(np.vecdot(self._rows, query), passages, most)  # unlike `@`, it never waits for another core
        return list(dict.fromkeys(passages[best].tolist()))[:most]

    def vectors_of(self, passages: NDArray[Any]) -> FoundVectors:
        """Return the vectors of these passages."""
        positions, found = find_runs(self._owners, passages)
        return FoundVectors(positions, self._owners[found] % PIECES, self._rows[found])


_copies: OrderedDict[tuple[str, int, int], Copy] = OrderedDict()  # by address, model and folder; the last used at the end
_lock = threading.RLock()


class PostgresVectors:
    """The vectors of an index: models, passages that wait for vectors, and similar passages."""

    def __init__(self, database: IndexDatabase) -> None:
        self._database, self._url = database, database.settings.url
        self._version: str | None = None  # of pgvector, once it is known
        self._waiting: dict[int, int] = {}  # by model, as of the last `list_models`

    def is_available(self) -> bool:
        """Return whether this server can store vectors."""
        if not self._version:
            row = self._database.row("has_vectors")
            self._version = row[0] if row else None
        return bool(self._version)

    def find_problem(self) -> tuple[str, str]:
        """Return why vectors cannot be stored, and how to fix that; ("", "") if they can."""
        return ("", "") if self.is_available() else vector_problem(self._database)

    # --- models, and passages that wait for vectors ---------------------------------------------------------------------------

    def list_models(self) -> list[Model]:
        """Return every model that has vectors here."""
        rows = self._database.read_once("models", lambda: self._database.rows("models"))
        found = [(Model(*fields), waiting) for *fields, waiting in rows]
        self._waiting = {model.id: waiting for model, waiting in found}
        return [model for model, _ in found]

    def ensure_model(self, name: str, dim: int, role: str = "", setting: str = "") -> Model:
        """Return the model of this name and role; add it if it is new, and replace one of another dimension."""
        problem, fix = self.find_problem()
        if problem:
            raise Trouble(f"{problem}: keyword search ran", fix)
        known = self._find_model(name, role)
        if known and known.dim == dim:
            return known
        if known:  # another model of the same name: its vectors are useless
            self.remove_model(known)
        self._write_exclusively("add_model", name=name, dim=dim, role=role, setting=setting)
        added = self._find_model(name, role)
        if added is None:
            raise IndexReset("the index was replaced during the search")
        return added

    def _find_model(self, name: str, role: str) -> Model | None:
        return next((model for model in self.list_models() if (model.name, model.role) == (name, role)), None)

    def mark_used(self, model: Model, newest: int) -> None:
        """Record that this model is still in use although a newer one was added."""
        with self._database.transaction() as db:
            db.execute(SQL["model_asked"], {"model": model.id, "newest": newest})

    def remove_model(self, model: Model) -> None:
        """Remove a model and all its vectors."""
        self._write_exclusively("drop_model", model=model.id)

    def _write_exclusively(self, statement: str, **values: Any) -> None:
        """Run a statement while no passages are added: each passage waits for every model."""

        def write(db: Any) -> None:
            db.execute(SQL["lock_index"])
            db.execute(SQL[statement], values)

        self._database.write(write)

    def next_waiting(self, model: Model, most: int) -> list[WaitingPassage]:
        """Return the next passages without vectors of this model, in the order in which they were added."""
        return [WaitingPassage(*row) for row in self._database.rows("next_waiting", model=model.id, most=most)]

    def count_waiting(self, model: Model) -> int:
        """Return how many passages have no vectors of this model, as of the last `list_models`."""
        if model.id in self._waiting:
            return self._waiting[model.id]
        return int(self._database.row("count_current")[0]) if self.is_available() else 0

    def find_speakers(self, doc: int) -> list[str]:
        """Return the speakers of a transcript."""
        return [speaker for (speaker,) in self._database.rows("speakers_of", doc=doc)]

    # --- adding vectors -------------------------------------------------------------------------------------------------------

    def add_vectors(
        self, model: Model, done: list[WaitingPassage], rows: Iterable[tuple[int, int, NDArray[Any]]],
        pieces: list[dict[str, object]],
    ) -> Model:  # fmt: skip
        """Add the vectors and pieces of passages that were waiting, except those that another process added first."""
        folders, vectors = sorted({waiting_passage.folder for waiting_passage in done}), list(rows)

        def write(db: Any) -> None:
            db.execute(SQL["lock_folders"], {"folders": folders})
            taken = db.execute(
                SQL["take_lacking"], {"model": model.id, "ids": [waiting_passage.passage for waiting_passage in done]}
            )
            stock = db.execute(SQL["stock_of"], {"model": model.id, "folders": folders})
            waiting = {passage for (passage,) in taken.fetchall()}
            folder_of = {
                waiting_passage.passage: waiting_passage.folder
                for waiting_passage in done
                if waiting_passage.passage in waiting
            }
            kept_pieces = [(id, piece) for piece in pieces if (id := int(str(piece["passage"]))) in folder_of]
            added = [clean_values(piece) | {"folder": folder_of[id]} for id, piece in kept_pieces]
            if added:
                db.execute(SQL["add_pieces"], {"rows": json.dumps(added, ensure_ascii=False)})
            present_vectors = [(folder, owner, vector) for folder, owner, vector in vectors if owner // PIECES in waiting]
            if present_vectors:
                self._insert(
                    db, model, present_vectors, {folder: (narrow, version) for folder, narrow, version in stock.fetchall()}
                )

        self._database.write(write)
        return next((waiting_passage for waiting_passage in self.list_models() if waiting_passage.id == model.id), model)

    def _insert(
        self, db: Session, model: Model, rows: list[tuple[int, int, NDArray[Any]]], stock: dict[int, tuple[int, int]]
    ) -> None:
        """Add vectors; `stock` has the number of narrow vectors and the version of each folder."""
        import numpy as np

        numbers = pack(np.stack([vector for _, _, vector in rows]))[1].tolist()
        next_places, narrow, wide = Counter[int](), Counter[int](), Counter[int]()
        added: list[tuple[int, int, int, int, bool, int]] = []
        for folder, owner, _ in rows:
            before, version = stock.get(folder, (0, 0))
            is_wide = before + narrow[folder] >= EXACT
            (wide if is_wide else narrow)[folder] += 1
            added.append((owner // PIECES, next_places[owner // PIECES], owner % PIECES, folder, is_wide, version + 1))
            next_places[owner // PIECES] += 1
        folders = sorted({*narrow, *wide})
        counts = {"narrow": [narrow[item] for item in folders], "wide": [wide[item] for item in folders]}
        db.execute(SQL["grow_stock"], {"model": model.id, "folders": folders, **counts})
        names = ("passages", "places", "piece_numbers", "folders", "wide", "versions")
        columns = dict(zip(names, map(list, zip(*added, strict=True)), strict=True))
        texts = [str(item) for item in numbers]
        db.execute(SQL["add_vectors"], {"model": model.id, "dim": model.dim, "vectors": texts, **columns})

    # --- comparing vectors ----------------------------------------------------------------------------------------------------

    def has_vectors(self, model: Model, folders: Iterable[int]) -> bool:
        """Return whether any of these folders has a vector of this model."""
        stocks = self._read_stocks(list(folders))
        return any(stock.model == model.id and (stock.narrow or stock.wide) for stock in stocks)

    def find_nearest(self, model: Model, folders: Iterable[int], query: NDArray[Any], most: int) -> list[int]:
        """Return the passages of these folders with the most similar vectors."""
        found: list[int] = []
        for stock, copy in self._refresh(model, list(folders)):
            removed = stock.removed - copy.removed  # the copy still has them
            found += copy.find_nearest(query, most + removed)
            if stock.wide:
                found += self._find_nearest_wide(model, stock, query, most)
        return found

    def _find_nearest_wide(self, model: Model, stock: Stock, query: NDArray[Any], most: int) -> list[int]:
        """Return the passages with the most similar wide vectors, which no process keeps a copy of."""
        values = {"model": model.id, "folder": stock.folder, "query": str(query.tolist())}
        found: list[int] = []
        if model.dim in _INDEXED_DIMS and stock.wide > _FEW_WIDE:
            with self._database.read_transaction():
                candidates = str(min(max(_EF_SEARCH, 2 * most), _MAX_EF_SEARCH))
                self._database.rows("set_ef_search" if self._can_iterate() else "set_ef_search_only", candidates=candidates)
                found = [id for (id,) in self._database.rows(f"near_{model.dim}", most=2 * most, **values)]
        if len(found) < min(most, stock.wide):  # the index found too many of other folders
            found = [id for (id,) in self._database.rows("near_any", most=most, **values)]
        return list(dict.fromkeys(found))[:most]

    def _can_iterate(self) -> bool:
        """Return whether pgvector continues a search that found too few: from version 0.8 on."""
        return self.is_available() and tuple(map(int, (self._version or "0").split(".")[:2])) >= (0, 8)

    def cosines_of(self, model: Model, folders: Iterable[int], passages: NDArray[Any], query: NDArray[Any]) -> FoundCosines:
        """Return the similarity of a query to each vector of these passages, by passage and piece."""
        import numpy as np

        found = self.vectors_of(model, folders, passages)
        return FoundCosines(found.owners, found.numbers, np.vecdot(found.vectors, query))

    def vectors_of(self, model: Model, folders: Iterable[int], passages: NDArray[Any]) -> FoundVectors:
        """Return the vectors of these passages, by passage and piece."""
        import numpy as np

        copies = self._refresh(model, list(folders))
        parts = [copy.vectors_of(passages) for _, copy in copies]
        wide = [stock.folder for stock, _ in copies if stock.wide]
        if wide:
            parts.append(self._read_wide(model, wide, passages))
        if len(parts) == 1:
            return parts[0]
        none = FoundVectors(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, model.dim), np.float32))
        return join_vectors([none, *parts])

    def _read_wide(self, model: Model, folders: list[int], passages: NDArray[Any]) -> FoundVectors:
        copy = Copy.empty(model.dim)
        owners, numbers = self._database.row("wide_vectors", model=model.id, ids=passages.tolist(), folders=folders)
        if owners:
            copy = copy.extend(*_decode_vectors(owners, numbers, model.dim), 0)
        return copy.vectors_of(passages)

    # --- copies ---------------------------------------------------------------------------------------------------------------

    def _refresh(self, model: Model, folders: list[int]) -> list[tuple[Stock, Copy]]:
        """Return up-to-date copies of these folders' vectors."""
        stocks = self._read_stocks(folders)
        with _lock:
            copies = {(stock.model, stock.folder): _copies.get((self._url, stock.model, stock.folder)) for stock in stocks}
        behind = [stock for stock in stocks if _is_behind(stock, copies[stock.model, stock.folder], model)]
        if behind:
            copies |= self._read_copies(model, behind, copies)
            self._keep_copies(copies)
        found = [(stock, copies[stock.model, stock.folder]) for stock in stocks if stock.model == model.id]
        return [(stock, copy) for stock, copy in found if copy is not None]

    def _read_stocks(self, folders: list[int]) -> list[Stock]:
        rows = self._database.read_once(("stock", tuple(folders)), lambda: self._database.rows("stock", folders=folders))
        return [Stock(*row) for row in rows]

    def _read_copies(self, model: Model, behind: list[Stock], known: Copies) -> Copies:
        """Return the copies with the vectors added since; read again from the start where many were removed."""
        dims = {stock.id: stock.dim for stock in self.list_models()} | {model.id: model.dim}
        behind = [stock for stock in behind if stock.model in dims]
        refreshed: Copies = {}
        for stock in behind:
            copy = known[stock.model, stock.folder]
            outdated = copy is None or stock.removed - copy.removed > max(_MAX_REMOVED, stock.narrow // 50)
            refreshed[stock.model, stock.folder] = Copy.empty(dims[stock.model], stock.removed) if outdated else copy
        rows = self._database.rows(
            "narrow_vectors", models=[stock.model for stock in behind], folders=[stock.folder for stock in behind],
            since=[refreshed[stock.model, stock.folder].version for stock in behind], upto=[stock.version for stock in behind],
        )  # fmt: skip
        added = {
            (model_id, folder): _decode_vectors(owners, numbers, dims[model_id]) for model_id, folder, owners, numbers in rows
        }
        for stock in behind:
            key = stock.model, stock.folder
            owners, vectors = added.get(key) or _decode_vectors(b"", b"", dims[stock.model])
            refreshed[key] = refreshed[key].extend(owners, vectors, stock.version)
        return refreshed

    def _keep_copies(self, copies: Copies) -> None:
        """Cache copies for the next query; drop those that were not used for longest when there are too many."""
        with _lock:
            for key, copy in copies.items():
                if copy is not None:
                    _copies[self._url, *key] = copy
                    _copies.move_to_end((self._url, *key))
            while sum([copy.bytes for copy in _copies.values()]) > _CACHED_BYTES and len(_copies) > len(copies):
                _copies.popitem(last=False)

    def clear_copies(self) -> None:
        """Delete the copies of this database from memory, since they may have what was purged."""
        with _lock:
            for key in [key for key in _copies if key[0] == self._url]:
                del _copies[key]


def _is_behind(stock: Stock, copy: Copy | None, model: Model) -> bool:
    """Return whether a copy must be read; those of other models that exist are read in the same statement."""
    return stock.model == model.id if copy is None else copy.version < stock.version


def _decode_vectors(owners: bytes, numbers: bytes, dim: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return owners and unit vectors from what PostgreSQL sends: 64-bit integers and half floats, big-endian."""
    import numpy as np

    rows = np.frombuffer(numbers, np.uint8).reshape(-1, _HEADER_BYTES + 2 * dim)[:, _HEADER_BYTES:]
    return np.frombuffer(owners, ">i8").astype(np.int64), unpack(np.ascontiguousarray(rows).view(">f2"))


if TYPE_CHECKING:
    _implements: type[VectorIndex] = PostgresVectors
