"""The index in one SQLite file, with FTS5. If the file is missing, damaged or foreign, a new one is made and filled again."""

from __future__ import annotations

from holdfast import sqlite
from holdfast.index.filters import SearchFilter, expand_fragments, folder_term
from holdfast.index.queries import IndexQueries, IndexReset
from holdfast.index.results import ListedNote
from holdfast.models import Progress
from holdfast.sqlite import ContentCache, Database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from holdfast.base.ids import FileId
    from holdfast.index.entries import IndexEntry
    from holdfast.index.interface import Index
    from holdfast.index.results import FolderSize, ListedFile
    from holdfast.index.vectors import SqliteVectors

SQL = expand_fragments(sqlite.load_statements(__file__))
APPLICATION = 0x484F4C44  # "HOLD"
SCHEMA = 19  # raise it when the schema, the tokenizer or what is embedded changes: the index is rebuilt
_MOST_COUNTED = 20_000  # terms whose counts are cached
_MAX_CACHED_NAMES = 32  # capitalized words of a question up to which the speakers among them are cached
_EXACT_COUNT = 5_000  # postings or passages up to which a term is counted exactly within some folders


class SqliteIndex(IndexQueries):
    """The index of a home, as one process has it open."""

    def __init__(self, home: str, busy_seconds: float, quarantine: tuple[str, ...] = ()) -> None:
        super().__init__(quarantine)
        self._home, self._busy_seconds = home, busy_seconds
        self._database = self._open_database()
        self._cache = ContentCache(self._database)
        self._vectors: SqliteVectors | None = None
        self._term_counts: dict[tuple[str, str], int] = {}  # by folders and term,
        self._counted_at: object = None  # for this content of the index

    def _open_database(self) -> Database:
        return Database(self._home, "index.db", sql=SQL, application=APPLICATION, version=SCHEMA, seconds=self._busy_seconds)

    def _rows(self, statement: str, /, **values: Any) -> list[Any]:
        encoded = {name: json_list(value) if type(value) in (list, tuple) else value for name, value in values.items()}
        return self._database.rows(statement, **encoded)

    @property
    def file_state(self) -> tuple[int, int]:
        """The generation of the file that is open, and how often it was closed."""
        return self._database.generation, self._database.times_closed

    def generation(self) -> int:
        """Return which file this is, counted from the first that this process opened."""
        pinned = self._database.pinned_version()
        if pinned is not None:
            return pinned[0]
        with self._database.lock:
            self._database.connection()
            return self._database.generation

    @property
    def vectors(self) -> SqliteVectors:
        """The vectors of the passages; keyword search does not need them."""
        if self._vectors is None:
            from holdfast.index.vectors import SqliteVectors

            self._vectors = SqliteVectors(self._database, SQL)
        return self._vectors

    @property
    def in_memory(self) -> str:
        """Why the index is kept in memory, or ""."""
        return self._database.reason

    # --- full-text search -----------------------------------------------------------------------------------------------------

    def match_passages(self, terms: list[str], filter: SearchFilter, most: int) -> dict[int, float]:
        """Return the passages of the filter's folders that have any of these terms; the best has the lowest number."""
        within = self._match_folders(filter) if terms else None
        if within is None:
            return {}
        match = within + _match_any(terms)
        scores = dict(self._rows("match_now", query=match, pool=most))
        if filter.as_of:
            scores.update(self._rows("match_past", query=match, pool=most))
        return scores

    def find_postings(self, terms: list[str], filter: SearchFilter, most: int, among: list[int] | None = None) -> list[str]:
        """Return, for each of these terms, the newest passages that have it: their ids, separated by commas.

        As one text, because there may be thousands: ranking each would cost ten times as much. With `among`, only those of
        these passages: SQLite selects them while other threads run.
        """
        within = self._match_folders(filter)
        if within is None or not terms:
            return [""] * len(terms)
        statement, ids = ("postings", {}) if among is None else ("postings_among", {"ids": among})
        return [str(self._row(statement, query=within + _match_any([term]), most=most, **ids)[0] or "") for term in terms]

    def count_terms(self, terms: list[str], filter: SearchFilter) -> dict[str, int]:
        """Return how many passages of the filter's folders have each of these terms; terms without any are left out."""
        content, within = self._database.content_version(), self._match_folders(filter)
        if within is None:
            return {}
        if self._counted_at != content or len(self._term_counts) > _MOST_COUNTED:
            self._counted_at, self._term_counts = content, {}
        known = self._term_counts
        new = [term for term in terms if (within, term) not in known]
        if new:  # counting a common term reads all its postings
            counts = self._count_new(new, filter, within)
            known.update({(within, term): counts.get(term, 0) for term in new})
        return {term: known[within, term] for term in terms if known[within, term]}

    def _count_new(self, terms: list[str], filter: SearchFilter, within: str) -> dict[str, int]:
        """Count terms; a term that is common in a large folder is estimated from its count in all folders."""
        counts: dict[str, int] = dict(self._rows("term_counts", terms=terms))
        if within and counts:
            here, everywhere = self.count_passages(filter), self._count_current()
            exact = [term for term in counts if min(counts[term], here) <= _EXACT_COUNT]
            counts = {term: max(count * here // max(everywhere, 1), 1) for term, count in counts.items()}
            found = self._rows("term_counts_within", queries=[within + _match_any([term]) for term in exact])
            counts.update({term: count for term, (count,) in zip(exact, found, strict=True)})
        return counts

    def _match_folders(self, filter: SearchFilter) -> str | None:
        """Return the FTS5 query that restricts a match to the filter's folders; None where there are none, "" for all."""
        folders = self.find_folders(filter)
        if not folders:
            return None
        if filter.as_of or sum([folder.passages for folder in folders]) < self._count_current():
            return f"place : ({' OR '.join([folder_term(folder.id) for folder in folders])}) AND "
        return ""

    def _count_current(self) -> int:
        count: int = self._cache.get("current", lambda: int(self._row("count_current")[0]))
        return count

    def find_folders(self, filter: SearchFilter) -> list[FolderSize]:
        """Return the folders that a filter selects."""
        read = super().find_folders
        folders: list[FolderSize] = self._cache.get(("folders", filter.scopes, filter.part), lambda: read(filter))
        return folders

    def has_facts(self) -> bool:
        """Return whether any file states a fact."""
        return bool(self._cache.get("facts", super().has_facts))

    def find_speakers(self, names: list[str], filter: SearchFilter) -> list[str]:
        """Return those of these names that are speakers in a transcript of the filter's folders."""
        if len(names) > _MAX_CACHED_NAMES:
            return self._read_speakers(names, filter)
        key = "speakers", tuple(names), filter.scopes, filter.part
        speakers: list[str] = self._cache.get(key, lambda: self._read_speakers(names, filter))
        return speakers

    def _read_speakers(self, names: list[str], filter: SearchFilter) -> list[str]:
        restricted = self._match_folders(filter) != ""
        folders = [folder.id for folder in self.find_folders(filter)] if restricted else None
        return [speaker for (speaker,) in self._rows("speakers_named", names=names, folders=folders)]

    def _find_orphaned(self, terms: list[str]) -> list[str]:
        self._rows("past_dictionary")
        orphaned = []
        for dictionary, match in (("term_counts", "match_now"), ("past_term_counts", "match_past")):
            known = [term for term, _ in self._rows(dictionary, terms=terms)]
            orphaned += [term for term in known if not self._rows(match, query=f'"{term}"', pool=1)]
        return orphaned

    # --- for index.md ---------------------------------------------------------------------------------------------------------

    def count_listed(self, scope: str) -> int | None:
        """Return how many notes a scope has, or None where the index has not read it yet."""
        row = self._row("count_listed", scope=scope)
        return int(row[0]) if row else None

    def list_newest_files(self, scope: str, most: int) -> list[ListedFile]:
        """Return the first notes of a scope in the order of `list_notes`."""
        return self._rows("newest_files", scope=scope, most=most)

    def read_listed_notes(self, ids: list[int]) -> list[ListedNote]:
        """Return what index.md shows of these notes."""
        return [ListedNote(*row) for row in self._rows("listed_notes", ids=ids, quarantine=self._quarantine)]

    # --- transactions ---------------------------------------------------------------------------------------------------------

    def cache_query(self, filter: SearchFilter) -> AbstractContextManager[object]:
        """Do nothing: reading twice is cheap here."""
        from contextlib import nullcontext

        return nullcontext()

    def read_transaction(self, replica: bool = False) -> AbstractContextManager[object]:
        """Look once whether the content changed: each statement is a transaction of its own, which costs nothing here."""
        return self._database.pin_content()

    def content_version(self) -> object:
        """Return a value that changes with every write of this or another process."""
        return self._database.content_version()

    def put(self, entries: Iterable[tuple[IndexEntry, FileId | None]], is_current: Callable[[IndexEntry], bool]) -> None:
        """Index files in one transaction.

        Each entry comes with the id of the file that it replaced, if the writer knows it: then only new passages are added.
        `is_current` says, under the lock, whether the file in the store is still the one that was read; if another writer was
        faster, the entry of that writer counts.
        """
        from holdfast.index.sqlite_writer import Change

        with self._database.transaction() as db:
            change = Change(db, SQL)
            for entry, replaced in entries:
                if is_current(entry):
                    change.put(entry, replaced)
            change.save()

    def remove(self, scope: str, part: str, names: Iterable[str], is_gone: Callable[[str], bool]) -> int:
        """Remove files from the index that `is_gone` finds missing in the store; return how many were indexed."""
        from holdfast.index.sqlite_writer import Change

        with self._database.transaction() as db:
            change = Change(db, SQL)
            count = sum([is_gone(name) and change.remove(scope, part, name) for name in names])
            change.save()
        return count

    def add_folder(self, scope: str, part: str) -> None:
        """Record that a folder has been read, even if it is empty."""
        from holdfast.index.sqlite_writer import folder_fields

        with self._database.transaction() as db:
            db.execute(SQL["add_folder"], folder_fields(scope, part))

    # --- the file -------------------------------------------------------------------------------------------------------------

    def scrub(self, seconds: float | None = None, rewrite: bool = False) -> None:
        """Leave nothing of deleted rows in the file or its log; wait at most `seconds` for readers.

        SQLite zeroes deleted rows, but not the copies that it leaves in unused space when it moves rows between pages: only a
        `rewrite` of the whole file removes those.
        """
        with self._database.transaction() as db:
            db.execute(SQL["optimize_now"])
            db.execute(SQL["optimize_past"])
        if rewrite:
            self._rows("rewrite")
        self._database.scrub(seconds)

    def verify(self, progress: Progress = Progress()) -> str:
        """Check the whole index and return the first problem, or ""."""
        from holdfast.index.verify import find_damage

        try:
            return find_damage(self._open_database(), SQL, progress)  # a connection of its own: no other thread waits for it
        except IndexReset as error:
            return str(error)

    def reset(self) -> None:
        """Delete the index; the next refresh fills a new one."""
        self._database.reset()

    def use_memory(self) -> None:
        """Keep the index in memory: another program keeps deleting its file."""
        self._database.switch_to_memory("its file keeps disappearing")

    def close(self) -> None:
        """Close the file; the next query opens it again."""
        self._database.times_closed += 1
        self._database.close()


def json_list(values: Sequence[Any]) -> str:
    """Return a JSON list, of numbers only or of strings only, without importing json for numbers and plain strings."""
    if values and isinstance(values[0], int):  # there may be hundreds of numbers
        return f"[{','.join(map(str, values))}]"
    parts = []
    for value in values:
        if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
            parts.append(f'"{value}"')
        else:
            import json

            return json.dumps(list(values))
    return "[" + ",".join(parts) + "]"


def _match_any(terms: list[str]) -> str:
    """Return the FTS5 query for passages that have any of these terms in their names or text."""
    return "{names text} : (" + " OR ".join([f'"{term}"' for term in terms]) + ")"


if TYPE_CHECKING:
    _implements: type[Index] = SqliteIndex
