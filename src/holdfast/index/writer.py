"""Changes the catalogue: files are put in and taken out within one transaction, and their rows added together at its end.

A file's row, those of its passages and of its facts are made here, numbered here, and written as many at once as there are:
far cheaper than one by one.
"""

from __future__ import annotations

from _operator import itemgetter  # what operator.itemgetter is, without that import

from holdfast.base.ids import FileId, file_fingerprint
from holdfast.formats.facts import fold
from holdfast.index.entries import IndexEntry, Passage
from holdfast.index.results import PLACE
from holdfast.index.tokenizer import kept
from holdfast.models import Fact, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    import apsw

    from holdfast.home import Database

    Sql = Mapping[str, str]
    Values = Callable[[Mapping[str, Any]], tuple[Any, ...]]


ONLY_WORDS = ("place", "called", "said")  # of a passage: what only SQLite's full-text tables need
_NO_COLUMNS = frozenset(("sum", *ONLY_WORDS))
_FLAGS = ("past", "pinned", "exposed", "prose")


class IndexWriter:
    """The files that are catalogued: what a writer must know of them, and how they come and go."""

    def __init__(self, database: Database, sql: Sql, held: str = "[]") -> None:
        self._database, self._sql = database, sql
        self._held = held  # the origins that are in quarantine, as JSON
        self._one, self._all, self._writing = database.row, database.rows, database.transaction

    def folder(self, scope: str, part: str) -> tuple[int, int] | None:
        """The id and the fingerprint of a folder, or None if it was never catalogued."""
        row: tuple[int, int] | None = self._one("folder_of", scope=scope, part=part)
        return row

    def stamps(self, scope: str, part: str) -> dict[str, tuple[FileId, str]]:
        """Every file of a folder that is catalogued: its stamp and digest."""
        known = self.folder(scope, part)
        if known is None:
            return {}
        rows = self._all("doc_stamps", folder=known[0])
        return {name: ((unsigned(ino), ctime, size), digest) for name, ino, ctime, size, digest in rows}

    def mark(self, scope: str, part: str, name: str) -> tuple[int, str] | None:
        """The inode and the digest of one catalogued file."""
        known = self.folder(scope, part)
        row = self._one("doc_stamp", folder=known[0], name=name) if known else None
        return (unsigned(row[1]), row[5]) if row else None

    def stamp(self, scope: str, part: str, name: str) -> FileId | None:
        """The stamp of one catalogued file."""
        known = self.folder(scope, part)
        row = self._one("doc_stamp", folder=known[0], name=name) if known else None
        return (unsigned(row[1]), row[2], row[3]) if row else None

    def put(self, docs: Iterable[tuple[IndexEntry, FileId | None]], still: Callable[[IndexEntry], bool]) -> None:
        """Catalogue files, in one transaction. With each comes the stamp of the bytes it replaced, if the writer knows:
        then only what is new is added. `still` says whether the file on the shelf is the one described: when another
        writer was faster, that writer's description counts, not ours."""
        with self._writing() as db:
            change = Change(db, self._sql)
            for doc, replaced in docs:
                if still(doc):
                    change.put(doc, replaced)
            change.save()

    def drop(self, scope: str, part: str, names: Iterable[str], gone: Callable[[str], bool]) -> int:
        """Take files out that are no longer on the shelf; how many were in."""
        with self._writing() as db:
            change = Change(db, self._sql)
            count = sum([change.drop(scope, part, name, gone) for name in names])
            change.save()
        return count

    def add_folder(self, scope: str, part: str) -> None:
        """Remember that a folder has been looked at, even if it is empty."""
        with self._writing() as db:
            db.execute(self._sql["add_folder"], _folder(scope, part))

    def has_held(self) -> bool:
        """Whether any note is in quarantine: one look into an index that is mostly empty, since every store asks."""
        return self._one("any_held", held=self._held) is not None

    def counts(self) -> list[tuple[str, str, int, int, str]]:
        """Per folder: how many files, how many bytes, last change."""
        return self._all("counts")

    def totals(self) -> tuple[int, int, int, int]:
        """Notes, files, passages, facts."""
        row: tuple[int, int, int, int] = self._one("totals") or (0, 0, 0, 0)
        return row

    def has_note(self, scope: str, name: str, part: str = "notes") -> bool:
        row = self._one("rows_of_note", scope=scope, part=part, name=name)
        return bool(row and row[0])

    def scrub(self, seconds: float | None = None, rewrite: bool = False) -> None:
        """Leave nothing of deleted rows in the file or in its log. SQLite zeroes what it deletes, but not the copies it leaves
        in unused space when it moves rows between pages: only a `rewrite` of the whole file takes those."""
        with self._writing() as db:
            db.execute(self._sql["optimize_now"])
            db.execute(self._sql["optimize_past"])
        if rewrite:
            self._all("rewrite")
        self._database.scrub(seconds)


class Change:
    """One transaction's changes; nothing is whole before `save`."""

    def __init__(self, db: apsw.Connection, sql: Sql) -> None:
        self._db, self._sql = db, sql
        self._folders = _Folders(db, sql)
        self._last: list[int] = []  # ids of the newest doc and passage
        self._docs: list[dict[str, Any]] = []
        self._passages: list[dict[str, Any]] = []
        self._facts: list[dict[str, Any]] = []
        self._made: list[dict[str, Any]] = []

    def put(self, doc: IndexEntry, replaced: FileId | None) -> None:
        """Catalogue a file. With it comes the stamp of the bytes it replaced, if the writer knows: then only what is new
        is added."""
        folder = self._folders.id(doc.scope, doc.part)
        row = None if self._folders.was_empty(folder) else self._row(folder, doc.name)
        mix = file_fingerprint(doc.stamp, doc.name if doc.part != "notes" else "")
        partial = doc.kind == "session" and len(doc.passages) < doc.versions
        if partial and (row is None or row[6] != doc.versions - len(doc.passages)):
            return  # the turns before are not catalogued, or others went on: leave it to the next look
        if row is None:
            self._folders.mix(folder, mix)
            id = self._next(0)
            self._docs.append(doc_fields(id, doc, folder, mix))
            self._add(id, folder, doc.passages, doc.facts)
            return
        id, known = row[0], (unsigned(row[1]), row[2], row[3])
        if known == doc.stamp and row[5] == doc.digest:
            return
        follows = replaced is not None and known == replaced and row[6] + 1 == doc.versions
        if not follows and len(doc.passages) < doc.versions and doc.kind == "note":
            return  # the one before is not catalogued: leave it to the next look at the folder
        grew = doc.kind == "session" and row[5] and row[6] == doc.versions - len(doc.passages)
        if not grew:  # else the turns before are catalogued already
            self._folders.shrink(folder, self._empty(id, current_only=follows))
        self._db.execute(self._sql["change_doc"], self._summed([doc_fields(id, doc, folder, mix)])[0])
        self._folders.mix(folder, row[4] ^ mix)
        self._add(id, folder, doc.passages[:2] if follows else doc.passages, doc.facts)

    def drop(self, scope: str, part: str, name: str, gone: Callable[[str], bool]) -> bool:
        """Take a file out that is no longer on the shelf; whether it was in."""
        folder = self._folders.id(scope, part)
        row = self._row(folder, name)
        if not row or not gone(name):
            return False
        self._folders.shrink(folder, self._empty(row[0]))
        self._db.execute(self._sql["drop_doc"], {"doc": row[0]})
        self._folders.mix(folder, row[4])
        return True

    def save(self) -> None:
        """Write everything that was put."""
        for statement, rows in (
            ("add_doc", self._summed(self._docs)),
            ("add_passage", self._summed(self._passages)),
            ("add_now", [row for row in self._passages if not row["past"]]),
            ("add_past", [row for row in self._passages if row["past"]]),
            ("add_fact", self._summed(self._facts)),
            ("add_made", self._made),
        ):
            if rows:
                self._db.executemany(self._sql[statement], map(_in_order[self._sql[statement]], rows))
        self._folders.save()

    def _row(self, folder: int, name: str) -> Any:
        return _one(self._db.execute(self._sql["doc_stamp"], {"folder": folder, "name": name}))

    def _summed(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The same rows, each with its sum; all have the same columns. They are as they will be read back, where true is 1."""
        if rows:
            told, flags = _told[tuple(rows[0])], [flag for flag in _FLAGS if flag in rows[0]]
            for row in rows:
                for flag in flags:
                    row[flag] = int(row[flag])
                row["sum"] = _sum(told(row))
        return rows

    def _add(self, doc: int, folder: int, passages: tuple[Passage, ...], facts: tuple[Fact, ...]) -> None:
        for passage in passages:
            fields = passage_fields(self._next(1), doc, folder, passage)
            self._passages.append(fields)
            if passage.source and passage.source.made_from:
                self._made.extend([{"passage": fields["id"], "what": what} for what in passage.source.made_from])
            if not passage.past:
                self._folders.grow(folder, fields["words"])
        self._facts.extend([fact_fields(doc, fact) for fact in facts])

    def _next(self, which: int) -> int:
        if not self._last:
            self._last = list(_one(self._db.execute(self._sql["last_ids"])))
        self._last[which] += 1
        return self._last[which]

    def _empty(self, doc: int, current_only: bool = False) -> tuple[int, int]:
        """Take a doc's passages out; how many current ones there were, and how many words in them."""
        of = {"doc": doc}
        passages, words = _one(self._db.execute(self._sql["sizes"], of))
        embedded = [row[0] for row in self._db.execute(self._sql["embedded"], of)]
        if embedded:
            from holdfast.index.vectors import Writer

            Writer(self._db, self._sql).drop(embedded)
        for statement in ("drop_now", "drop_pieces") if current_only else ("drop_now", "drop_past", "drop_pieces"):
            self._db.execute(self._sql[statement], of)
        self._db.execute(self._sql["drop_made_now" if current_only else "drop_made"], of)
        self._db.execute(self._sql["drop_current" if current_only else "drop_passages"], of)
        self._db.execute(self._sql["drop_facts"], of)
        return passages, words


class _Folders:
    """The folders one transaction touches: looked up once, their fingerprints written once."""

    def __init__(self, db: apsw.Connection, sql: Sql) -> None:
        self._db, self._sql = db, sql
        self._ids: dict[tuple[str, str], int] = {}
        self._mixes: dict[int, int] = {}
        self._sizes: dict[int, tuple[int, int]] = {}
        self._empty: dict[int, bool] = {}  # whether nothing of it was catalogued before

    def id(self, scope: str, part: str) -> int:
        known = self._ids.get((scope, part))
        if known is None:
            place = {"scope": scope, "part": part}
            row = _one(self._db.execute(self._sql["folder_of"], place))
            if row is None:
                self._db.execute(self._sql["add_folder"], _folder(scope, part))
                row = _one(self._db.execute(self._sql["folder_of"], place))
            known, fingerprint = row
            self._ids[scope, part] = known
            self._empty[known] = not fingerprint and _one(self._db.execute(self._sql["any_doc"], {"folder": known})) is None
        return known

    def was_empty(self, folder: int) -> bool:
        """Whether nothing of it was catalogued before this transaction."""
        return self._empty[folder]

    def mix(self, folder: int, mix: int) -> None:
        self._mixes[folder] = self._mixes.get(folder, 0) ^ mix

    def grow(self, folder: int, words: int) -> None:
        """One more current passage of so many words."""
        passages, before = self._sizes.get(folder, (0, 0))
        self._sizes[folder] = passages + 1, before + words

    def shrink(self, folder: int, gone: tuple[int, int]) -> None:
        """So many passages less, and words."""
        passages, words = self._sizes.get(folder, (0, 0))
        self._sizes[folder] = passages - gone[0], words - gone[1]

    def save(self) -> None:
        for folder, mix in self._mixes.items():
            passages, words = self._sizes.get(folder, (0, 0))
            self._db.execute(self._sql["mix_in"], {"folder": folder, "mix": mix, "passages": passages, "words": words})


def _one(rows: apsw.Cursor) -> Any:
    return rows.fetchone()


# --- rows: what index.sqlite reads back -------------------------------------------------------------------------------


def sum_of(row: Mapping[str, Any]) -> int:
    """Of everything a row says, whatever the order of its columns: by it `verifying` tells if it is what was written."""
    return _sum(_told[tuple(row)](row))


def _sum(values: tuple[Any, ...]) -> int:
    from zlib import crc32  # not before anything is written

    return crc32(ascii([*values]).encode())


class _Told(dict[tuple[str, ...], "Values"]):
    """By the names of a row's columns: what takes the values from it that count, in the order of their names."""

    def __missing__(self, names: tuple[str, ...]) -> Values:
        told = self[names] = itemgetter(*sorted(set(names) - _NO_COLUMNS))
        return told


class _InOrder(dict[str, "Values"]):
    """By a statement that inserts: what takes its values from a row, in its order. SQLite would look up each by its name."""

    def __missing__(self, statement: str) -> Values:
        values = statement.partition("VALUES")[2].split(",")
        taken = self[statement] = itemgetter(*[value.strip(" \n():;") for value in values])
        return taken


_told, _in_order = _Told(), _InOrder()


def _folder(scope: str, part: str) -> dict[str, Any]:
    fields = {"scope": scope, "part": part}
    return {**fields, "sum": sum_of(fields)}


def passage_fields(id: int, doc: int, folder: int, passage: Passage) -> dict[str, Any]:
    said = kept(passage.text)
    return {
        "id": id, "doc": doc, "seq": passage.seq, "past": passage.past, "names": passage.names, "text": passage.text,
        "first_line": passage.lines[0], "last_line": passage.lines[1], "type": passage.type, "tags": _tags(passage.tags),
        "source": _source(passage.source), "recorded": passage.recorded, "valid_from": passage.valid_from,
        "valid_to": passage.valid_to, "closed": passage.closed, "replaced": passage.replaced, "words": len(said),
        "turn": passage.turn, "speaker": passage.speaker, "offset": passage.offset, "place": PLACE.format(folder),
        "called": " ".join(kept(passage.names)), "said": " ".join(said),
    }  # fmt: skip


def doc_fields(id: int, doc: IndexEntry, folder: int, mix: int) -> dict[str, Any]:
    return {
        "id": id, "folder": folder, "name": doc.name, "mix": mix, "digest": doc.digest, "kind": doc.kind, "key": doc.key,
        "note_id": doc.note_id, "title": doc.title, "type": doc.type, "tags": _tags(doc.tags), "created": doc.created,
        "updated": doc.updated, "source": _source(doc.source), "valid_from": doc.valid_from, "valid_to": doc.valid_to,
        "pinned": doc.pinned, "touched": doc.touched, "first_line": doc.lines[0], "last_line": doc.lines[1],
        "versions": doc.versions, "trust": doc.trust, "exposed": doc.exposed, "facts": len(doc.facts), "prose": doc.prose,
        "problem": doc.problem, **stamp_fields(doc.stamp),
    }  # fmt: skip


def fact_fields(doc: int, fact: Fact) -> dict[str, Any]:
    return {
        "doc": doc, "subject": fact.subject, "label": fact.label, "value": fact.value, "about": fold(fact.subject),
        "named": fold(fact.label), "valid_from": fact.valid_from, "valid_to": fact.valid_to,
        "retired_by": fact.retired_by, "links": "\n".join(fact.links), "line": fact.line,
    }  # fmt: skip


def stamp_fields(stamp: FileId) -> dict[str, int]:
    return {"ino": stamp[0] if stamp[0] < 1 << 63 else stamp[0] - (1 << 64), "ctime": stamp[1], "size": stamp[2]}


def unsigned(ino: int) -> int:
    return ino if ino >= 0 else ino + (1 << 64)


def _tags(tags: tuple[str, ...]) -> str:
    if not tags:
        return "\n"
    return "".join([f"\n{tag}" for tag in tags]) + "\n" + "".join([f"{tag.casefold()}\n" for tag in tags])


def _source(source: Source | None) -> str:
    if not source:
        return ""
    who = [source.origin, source.agent or "", source.client or "", source.session or ""]
    return "\n".join([*who, source.trust or "", *source.made_from] if source.trust or source.made_from else who)
