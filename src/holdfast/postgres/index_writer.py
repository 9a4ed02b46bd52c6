"""Write index entries to PostgreSQL: all rows of a transaction are collected and sent together.

The row of a folder is locked first, so that writers of the same folder follow each other and its counts stay right.
Statements whose result is not needed are queued: a call takes two round trips, however many files it indexes.
"""

from __future__ import annotations

import json
from collections import Counter
from zlib import crc32

from holdfast.base.ids import FileId, file_fingerprint
from holdfast.index.results import IndexedFile
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
from holdfast.postgres.index_text import clean_text, clean_values, fold_speaker, shorten_name, term_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    from holdfast.index.entries import IndexEntry, Passage
    from holdfast.postgres import Session

    T = TypeVar("T")

    Sql = Mapping[str, str]
    FolderKey = tuple[str, str]  # scope and part

_MAX_TIMES = 32_767  # of a term in a passage: a smallint
_BATCH = 500  # docs that one statement removes
_COUNTS = ("passages", "words", "tokens", "old", "old_tokens")  # columns of a folder


class FilesOfFolder:
    """The files of one folder that a call is about, and how many passages they may bring."""

    def __init__(self, names: list[str] | None = None) -> None:
        self.names: list[str] = names or []
        self.passages = 0


def files_by_folder(entries: Iterable[IndexEntry]) -> dict[FolderKey, FilesOfFolder]:
    """Return the files of the entries by scope and part, in the order in which folders are locked."""
    found: dict[FolderKey, FilesOfFolder] = {}
    for entry in entries:
        files = found.setdefault((entry.scope, entry.part), FilesOfFolder())
        files.names.append(clean_text(entry.name))
        files.passages += len(entry.passages)
    return dict(sorted(found.items()))


class Change:
    """The changes of one transaction; `save` writes them."""

    def __init__(self, db: Session, sql: Sql, files: Mapping[FolderKey, FilesOfFolder], stored_files: str = "") -> None:
        self._db: Any = db
        self._sql = sql
        self._checks_store = bool(stored_files)
        self._folders = _Folders(db, sql, files, stored_files)
        self._docs: list[dict[str, Any]] = []
        self._passages: list[dict[str, Any]] = []
        self._facts: list[dict[str, Any]] = []
        self._made: list[dict[str, Any]] = []
        self._relations: list[dict[str, Any]] = []
        self._replaced: list[tuple[int, int]] = []  # docs whose passages are removed, and from which number on,
        self._removed: list[int] = []  # and docs that are removed
        self._removed_terms: list[Any] = []  # results of the statements that remove passages

    def is_current(self, entry: IndexEntry) -> bool:
        """Return whether the file in the store is the one of the entry, where the store can be read; a transcript may have
        grown."""
        if not self._checks_store:
            return True
        stored = self._folders.stored.get((entry.scope, entry.part, clean_text(entry.name)))
        if stored is not None and entry.part == "transcripts":
            return stored.inode == entry.file_id.inode and stored.size >= entry.file_id.size
        return stored == entry.file_id

    def put(self, entry: IndexEntry, replaced: FileId | None) -> None:
        """Index a file; `replaced` is the id of the file before it, if the writer knows it."""
        entry = _clean_entry(entry)
        folder = self._folders.ids[entry.scope, entry.part]
        known = self._folders.indexed.get((folder, clean_text(entry.name)))
        plan = plan_update(entry, known, replaced)
        if plan == SKIP:
            return
        mix = file_fingerprint(entry.file_id, entry.name if entry.part != "notes" else "")
        if known is None:
            self._folders.mix(folder, mix)
            id = self._folders.doc_ids.pop()
            self._docs.append(doc_fields(id, entry, folder, mix))
            self._add(id, folder, entry.passages, entry)
            return
        if plan != APPEND:
            self._replaced.append((known.id, first_replaced(plan, entry, known)))
        self._db.execute(self._sql["change_doc"], doc_fields(known.id, entry, folder, mix))
        self._folders.mix(folder, known.mix ^ mix)
        self._add(known.id, folder, entry.passages[:2] if plan == NEXT_VERSION else entry.passages, entry)

    def remove(self, scope: str, part: str, name: str) -> bool:
        """Remove a file from the index; return whether it was indexed."""
        folder = self._folders.ids[scope, part]
        known = self._folders.indexed.get((folder, clean_text(name)))
        if known is None:
            return False
        self._replaced.append((known.id, 0))
        self._removed.append(known.id)
        self._folders.mix(folder, known.mix)
        return True

    def removed_terms(self) -> list[int]:
        """Return the numbers of the terms of the passages that were removed, once `save` has run."""
        return list({term for result in self._removed_terms for (terms,) in result.fetchall() for term in terms})

    def save(self) -> None:
        """Queue the statements that remove rows, then those that add rows."""
        for replaced in _split_batches(self._replaced):
            passages_of = {"docs": [doc for doc, _ in replaced], "firsts": [first for _, first in replaced]}
            self._db.execute(self._sql["drop_vectors"], passages_of)
            self._removed_terms.append(self._db.execute(self._sql["drop_passages"], passages_of))
            for statement in ("drop_facts", "drop_relations"):
                self._db.execute(self._sql[statement], {"docs": passages_of["docs"]})
        for batch in _split_batches(self._removed):
            self._db.execute(self._sql["drop_docs"], {"docs": batch})
        mentions = [self._count_mentions(row) for row in self._passages]
        passages = [_passage_columns(row, of_row) for row, of_row in zip(self._passages, mentions, strict=True)]
        facts = [fact | {"about": shorten_name(fact["about"]), "named": shorten_name(fact["named"])} for fact in self._facts]
        made_rows = [row | {"number": number} for number, row in enumerate(self._made)]
        self._insert("add_docs", self._docs)
        self._insert("add_passages", passages)
        self._insert("add_mentions", mentions)
        self._insert("add_facts", facts)
        self._insert("add_made", made_rows)
        self._insert("add_relations", self._relations)
        self._add_terms()
        self._folders.save()

    def _add(self, doc: int, folder: int, passages: tuple[Passage, ...], entry: IndexEntry) -> None:
        """Collect rows; each has its folder, by which row-level security decides who sees it."""
        of_folder = {"folder": folder}
        for passage in passages:
            fields = passage_fields(self._folders.passage_ids.pop(), doc, passage) | of_folder
            self._passages.append(fields)
            if passage.source and passage.source.made_from:
                self._made.extend(
                    [{"passage": fields["id"], "what": source} | of_folder for source in passage.source.made_from]
                )
            if not passage.past:
                self._folders.count(folder, passages=1, words=fields["words"])
        self._facts.extend([fact_fields(doc, fact) | of_folder for fact in entry.facts])
        self._relations.extend([relation_fields(doc, entry.scope, relation) | of_folder for relation in entry.relations])

    def _insert(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
        cleaned = [clean_values(row) for row in rows]
        if cleaned:
            self._db.execute(self._sql[statement], {"rows": json.dumps(cleaned, ensure_ascii=False)})

    def _count_mentions(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the numbers of a passage's terms and how often each occurs, and count its length."""
        past = bool(row["past"])
        terms = Counter([*row["name_terms"].split(), *row["text_terms"].split()])
        length = 1 + terms.total()  # as SQLite's full-text table counts, with the folder's term
        self._folders.count(row["folder"], **({"old": 1, "old_tokens": length} if past else {"tokens": length}))
        return {
            "id": row["id"], "folder": row["folder"], "length": length,
            "terms": [term_number(term, past) for term in terms],
            "times": [min(times, _MAX_TIMES) for times in terms.values()],
        }  # fmt: skip

    def _add_terms(self) -> None:
        """Add the terms of current passages in alphabetical order, so that two writers never wait for each other."""
        current = [row for row in self._passages if not row["past"]]
        words = [term for row in current for term in f"{row['name_terms']} {row['text_terms']}".split()]
        terms = sorted({clean_text(term) for term in words})
        self._insert("add_words", [{"term": term, "now": term_number(term), "past": term_number(term, True)} for term in terms])


class _Folders:
    """The folders that one transaction changes: locked in order, their files looked up at once, their counts written once."""

    def __init__(self, db: Any, sql: Sql, files: Mapping[FolderKey, FilesOfFolder], stored_files: str) -> None:
        self._db, self._sql, self._checks_store = db, {**sql, "stored_files": stored_files}, bool(stored_files)
        self.ids: dict[FolderKey, int] = {}
        self.doc_ids: list[int] = []  # for new docs and passages; taken from the end
        self.passage_ids: list[int] = []
        self.indexed: dict[tuple[int, str], IndexedFile] = {}
        self.stored: dict[tuple[str, str, str], FileId] = {}
        self._mixes: dict[int, int] = {}
        self._counts: dict[int, Counter[str]] = {}
        if files:
            self._lock_and_look_up(files)

    def _lock_and_look_up(self, files: Mapping[FolderKey, FilesOfFolder]) -> None:
        """Lock the folders and look their files up, in one round trip."""
        scopes, parts = [scope for scope, _ in files], [part for _, part in files]
        named = [(scope, part, name) for (scope, part), of_folder in files.items() for name in of_folder.names]
        names = {column: [one[place] for one in named] for place, column in enumerate(("scopes", "parts", "names"))}
        passages = sum([of_folder.passages for of_folder in files.values()])
        locked = self._db.execute(self._sql["lock_folder_rows"], {"scopes": scopes, "parts": parts})
        new = self._db.execute(self._sql["new_ids"], {"docs": len(named), "passages": passages})
        indexed = self._db.execute(self._sql["indexed_files"], names)
        stored = self._db.execute(self._sql["stored_files"], names) if self._checks_store else None
        self.ids = {(scope, part): folder for scope, part, folder in locked.fetchall()}
        doc_ids, passage_ids = new.fetchone()
        self.doc_ids, self.passage_ids = doc_ids[::-1], passage_ids[::-1]
        self.indexed = {(folder, name): IndexedFile(*row) for folder, name, *row in indexed.fetchall()}
        self.stored = {(scope, part, name): FileId(*id) for scope, part, name, *id in (stored.fetchall() if stored else ())}

    def mix(self, folder: int, mix: int) -> None:
        self._mixes[folder] = self._mixes.get(folder, 0) ^ mix

    def count(self, folder: int, **counts: int) -> None:
        """Add to the counts of a folder; statements that remove passages subtract theirs themselves."""
        self._counts.setdefault(folder, Counter()).update(counts)

    def save(self) -> None:
        if not self._mixes:
            return
        counts = [self._counts.get(folder, Counter[str]()) for folder in self._mixes]
        columns = {name: [one[name] for one in counts] for name in _COUNTS}
        self._db.execute(self._sql["mix_in"], {"folders": [*self._mixes], "mixes": [*self._mixes.values()], **columns})


def _passage_columns(row: dict[str, Any], mentions: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a passage."""
    text = clean_text(row["text"])
    return {name: value for name, value in row.items() if name not in ("name_terms", "text_terms")} | {
        "text": text, "sum": crc32(text.encode()), "length": mentions["length"], "terms": mentions["terms"],
        "spoken": fold_speaker(row["speaker"]) if row["speaker"] else None,
    }  # fmt: skip


def _split_batches(docs: list[T]) -> list[list[T]]:
    return [docs[start : start + _BATCH] for start in range(0, len(docs), _BATCH)]


def _clean_entry(entry: IndexEntry) -> IndexEntry:
    """Return an entry whose texts PostgreSQL can store; its name stays, since the fingerprint covers it."""
    of_source = {name: clean_text(text) for name, text in vars(entry.source).items() if isinstance(text, str)}
    texts = {name: clean_text(text) for name, text in vars(entry).items() if isinstance(text, str) and name != "name"}
    return entry.replace(**texts, source=entry.source.replace(**of_source), tags=tuple(map(clean_text, entry.tags)))
