"""Write index entries to SQLite: all rows of a transaction are collected and inserted together, which is far cheaper.

Each row has a checksum (`sum`), by which `verify` finds rows that are not as they were written.
"""

from __future__ import annotations

from _operator import itemgetter  # operator.itemgetter, without importing operator

from holdfast.base.ids import FileId, file_fingerprint
from holdfast.index.entries import IndexEntry, Passage
from holdfast.index.filters import folder_term
from holdfast.index.results import FolderState, IndexedFile
from holdfast.index.rows import (
    APPEND,
    NEXT_VERSION,
    SKIP,
    doc_fields,
    fact_fields,
    first_replaced,
    passage_fields,
    plan_update,
    relation_fields,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import apsw

    Sql = Mapping[str, str]
    Values = Callable[[Mapping[str, Any]], tuple[Any, ...]]

_NOT_SUMMED = frozenset(("sum", "folder_term", "name_terms", "text_terms"))  # not columns of the summed row
_FLAGS = ("past", "pinned", "exposed", "prose")


class Change:
    """The changes of one transaction; `save` writes them."""

    def __init__(self, db: apsw.Connection, sql: Sql) -> None:
        self._db, self._sql = db, sql
        self._folders = _Folders(db, sql)
        self._last_ids: list[int] = []  # of the newest doc and passage
        self._docs: list[dict[str, Any]] = []
        self._passages: list[dict[str, Any]] = []
        self._facts: list[dict[str, Any]] = []
        self._made: list[dict[str, Any]] = []
        self._relations: list[dict[str, Any]] = []

    def put(self, entry: IndexEntry, replaced: FileId | None) -> None:
        """Index a file; `replaced` is the id of the file before it, if the writer knows it."""
        folder = self._folders.find_or_add(entry.scope, entry.part)
        known = None if self._folders.was_empty(folder) else self._find(folder, entry.name)
        plan = plan_update(entry, known, replaced)
        if plan == SKIP:
            return
        mix = file_fingerprint(entry.file_id, entry.name if entry.part != "notes" else "")
        if known is None:
            self._folders.mix(folder, mix)
            id = self._next_doc()
            self._docs.append(doc_fields(id, entry, folder, mix))
            self._add(id, folder, entry.passages, entry)
            return
        if plan != APPEND:
            self._folders.shrink(folder, *self._remove_passages(known.id, first_replaced(plan, entry, known)))
        self._db.execute(self._sql["change_doc"], _add_sums([doc_fields(known.id, entry, folder, mix)])[0])
        self._folders.mix(folder, known.mix ^ mix)
        self._add(known.id, folder, entry.passages[:2] if plan == NEXT_VERSION else entry.passages, entry)

    def remove(self, scope: str, part: str, name: str) -> bool:
        """Remove a file from the index; return whether it was indexed."""
        folder = self._folders.find_or_add(scope, part)
        known = self._find(folder, name)
        if known is None:
            return False
        self._folders.shrink(folder, *self._remove_passages(known.id))
        self._db.execute(self._sql["drop_doc"], {"doc": known.id})
        self._folders.mix(folder, known.mix)
        return True

    def save(self) -> None:
        """Write everything that was put."""
        for statement, rows in (
            ("add_doc", _add_sums(self._docs)),
            ("add_passage", _add_sums(self._passages)),
            ("add_now", [row for row in self._passages if not row["past"]]),
            ("add_past", [row for row in self._passages if row["past"]]),
            ("add_fact", _add_sums(self._facts)),
            ("add_made", self._made),
            ("add_relation", _add_sums(self._relations)),
        ):
            if rows:
                self._db.executemany(self._sql[statement], map(_inserted[self._sql[statement]], rows))
        self._folders.save()

    def _find(self, folder: int, name: str) -> IndexedFile | None:
        row: Any = self._db.execute(self._sql["indexed_file"], {"folder": folder, "name": name}).fetchone()
        return IndexedFile(*row) if row else None

    def _add(self, doc: int, folder: int, passages: tuple[Passage, ...], entry: IndexEntry) -> None:
        for passage in passages:
            fields = passage_fields(self._next_passage(), doc, passage)
            fields["folder_term"] = folder_term(folder)
            self._passages.append(fields)
            if passage.source and passage.source.made_from:
                self._made.extend([{"passage": fields["id"], "what": source} for source in passage.source.made_from])
            if not passage.past:
                self._folders.grow(folder, fields["words"])
        self._facts.extend([fact_fields(doc, fact) for fact in entry.facts])
        self._relations.extend([relation_fields(doc, entry.scope, relation) for relation in entry.relations])

    def _next_doc(self) -> int:
        return self._next_id(0)

    def _next_passage(self) -> int:
        return self._next_id(1)

    def _next_id(self, which: int) -> int:
        if not self._last_ids:
            row: Any = self._db.execute(self._sql["last_ids"]).fetchone()
            self._last_ids = list(row)
        self._last_ids[which] += 1
        return self._last_ids[which]

    def _remove_passages(self, doc: int, first: int = 0) -> tuple[int, int]:
        """Remove a file's passages from a number on; return how many were current, and how many words these had."""
        of = {"doc": doc, "first": first}
        sizes: Any = self._db.execute(self._sql["sizes"], of).fetchone()
        passages, words = sizes
        rows: Any = self._db.execute(self._sql["embedded"], of)
        embedded = [id for (id,) in rows]
        if embedded:
            from holdfast.index.vectors import BlockWriter

            BlockWriter(self._db, self._sql).remove(embedded)
        for statement in ("drop_now", "drop_past", "drop_pieces", "drop_made", "drop_passages"):
            self._db.execute(self._sql[statement], of)
        self._db.execute(self._sql["drop_facts"], {"doc": doc})
        self._db.execute(self._sql["drop_relations"], {"doc": doc})
        return passages, words


class _Folders:
    """The folders that one transaction changes: looked up once, their counts and fingerprints written once."""

    def __init__(self, db: apsw.Connection, sql: Sql) -> None:
        self._db, self._sql = db, sql
        self._ids: dict[tuple[str, str], int] = {}
        self._mixes: dict[int, int] = {}
        self._sizes: dict[int, tuple[int, int]] = {}
        self._empty: dict[int, bool] = {}  # whether no file of it was indexed before

    def find_or_add(self, scope: str, part: str) -> int:
        known = self._ids.get((scope, part))
        if known is None:
            state = self._find(scope, part)
            if state is None:
                self._db.execute(self._sql["add_folder"], folder_fields(scope, part))
                state = self._find(scope, part)
                assert state is not None
            known = self._ids[scope, part] = state.id
            self._empty[known] = not state.fingerprint and not self._has_files(known)
        return known

    def _find(self, scope: str, part: str) -> FolderState | None:
        row: Any = self._db.execute(self._sql["folder_of"], {"scope": scope, "part": part}).fetchone()
        return FolderState(*row) if row else None

    def _has_files(self, folder: int) -> bool:
        return self._db.execute(self._sql["any_doc"], {"folder": folder}).fetchone() is not None

    def was_empty(self, folder: int) -> bool:
        """Whether no file of it was indexed before this transaction."""
        return self._empty[folder]

    def mix(self, folder: int, mix: int) -> None:
        self._mixes[folder] = self._mixes.get(folder, 0) ^ mix

    def grow(self, folder: int, words: int) -> None:
        """Count one more current passage of this many words."""
        passages, before = self._sizes.get(folder, (0, 0))
        self._sizes[folder] = passages + 1, before + words

    def shrink(self, folder: int, passages: int, words: int) -> None:
        """Count fewer current passages and words."""
        before = self._sizes.get(folder, (0, 0))
        self._sizes[folder] = before[0] - passages, before[1] - words

    def save(self) -> None:
        for folder, mix in self._mixes.items():
            passages, words = self._sizes.get(folder, (0, 0))
            self._db.execute(self._sql["mix_in"], {"folder": folder, "mix": mix, "passages": passages, "words": words})


def folder_fields(scope: str, part: str) -> dict[str, Any]:
    """Return the columns of a new folder."""
    fields = {"scope": scope, "part": part}
    return {**fields, "sum": checksum(fields)}


# --- checksums of rows --------------------------------------------------------------------------------------------------------


def checksum(row: Mapping[str, Any]) -> int:
    """Return the checksum of a row, whatever the order of its columns."""
    return _crc(_summed[tuple(row)](row))


def _crc(values: tuple[Any, ...]) -> int:
    from zlib import crc32  # only writers need it

    return crc32(ascii([*values]).encode())


def _add_sums(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the checksum to each of the rows, which all have the same columns, with flags as SQLite returns them: 0 or 1."""
    if rows:
        summed, flags = _summed[tuple(rows[0])], [flag for flag in _FLAGS if flag in rows[0]]
        for row in rows:
            for flag in flags:
                row[flag] = int(row[flag])
            row["sum"] = _crc(summed(row))
    return rows


class _Summed(dict[tuple[str, ...], "Values"]):
    """By the names of a row's columns: a getter of the values that its checksum covers, in the order of their names."""

    def __missing__(self, names: tuple[str, ...]) -> Values:
        getter = self[names] = itemgetter(*sorted(set(names) - _NOT_SUMMED))
        return getter


class _Inserted(dict[str, "Values"]):
    """By an INSERT statement: a getter of its values from a row, in its order; SQLite would look up each by its name."""

    def __missing__(self, statement: str) -> Values:
        values = statement.partition("VALUES")[2].split(",")
        getter = self[statement] = itemgetter(*[value.strip(" \n():;") for value in values])
        return getter


_summed, _inserted = _Summed(), _Inserted()
