"""The index in PostgreSQL: the queries of the SQLite index in PostgreSQL's dialect, with the same results in the same order.

Row-level security decides which rows a caller sees. Terms are rows with numbers (see index_text.py) and are ranked by the
formula of SQLite's FTS5. What one query reads is cached while the query lasts (`cache_query`).
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from zlib import crc32

from holdfast.errors import Busy, Unsure
from holdfast.index.filters import SearchFilter, expand_fragments
from holdfast.index.queries import IndexQueries
from holdfast.index.results import FolderSize
from holdfast.models import Progress
from holdfast.postgres import Database, RetryLater, statements
from holdfast.postgres import vectors as vectors_module
from holdfast.postgres.index_text import clean_text, clean_values, fold_speaker, shorten_name, term_number
from holdfast.postgres.index_writer import Change, FilesOfFolder, files_by_folder
from holdfast.postgres.vectors import PostgresVectors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator
    from typing import Any, TypeVar

    from holdfast.base.ids import FileId
    from holdfast.index.entries import IndexEntry
    from holdfast.index.interface import Index
    from holdfast.postgres import PostgresSettings, Session

    T = TypeVar("T")

SQL = {**expand_fragments(statements(__file__)), **vectors_module.SQL}
SQL["notes_of_scope"] = SQL["notes"]  # it reads each scope by itself already
_NAMES = frozenset(("about", "named", "names", "label", "labels"))  # values that are compared with subjects and labels
_COMMON_POSTINGS = 1000  # postings from which a term is common:
_COMMON_SECONDS = 30.0  # for which its count is not read again
_MAX_COUNTED = 20_000  # terms whose counts are cached


class IndexDatabase(Database):
    """The tables of the index, with a cache for what one query reads more than once."""

    def __init__(self, settings: PostgresSettings, seconds: float) -> None:
        super().__init__(settings, SQL, seconds)
        self._thread = threading.local()

    @property
    def cache(self) -> dict[Hashable, Any] | None:
        """The results that this thread's query has read so far; None outside of a query."""
        cache: dict[Hashable, Any] | None = getattr(self._thread, "cache", None)
        return cache

    def read_once(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the cached result of this query, or read it."""
        cache = self.cache
        if cache is None:
            return read()
        if key not in cache:
            cache[key] = read()
        result: T = cache[key]
        return result

    @contextmanager
    def transaction(self, durable: bool = False) -> Iterator[Session]:
        """Return a transaction; its result is never in doubt, since what is indexed can be indexed again."""
        if self.cache is not None:
            self._thread.cache = {}  # it may change what was read
        try:
            with super().transaction(durable) as db:
                yield db
        except Unsure as error:
            raise RetryLater(
                "the connection to the database was lost while the index was changed", "Try again in a moment"
            ) from error

    @contextmanager
    def cache_query(self) -> Iterator[bool]:
        """Cache what is read within; yield whether this is the outermost such block."""
        outermost = self.cache is None
        if outermost:
            self._thread.cache = {}
        try:
            yield outermost
        finally:
            if outermost:
                self._thread.cache = None


class PostgresIndex(IndexQueries):
    """A tenant's index, as one caller sees it."""

    file_state = 1, 0  # there is no file that could be replaced or closed
    in_memory = ""

    def __init__(
        self,
        settings: PostgresSettings,
        busy_seconds: float,
        quarantine: tuple[str, ...] = (),
        *,
        stored_files: str = "",  # the statement that reads which files are in the store, if that is in the same database
    ) -> None:
        super().__init__(quarantine)
        self._database = IndexDatabase(settings, busy_seconds)
        self.vectors = PostgresVectors(self._database)
        self._stored_files = stored_files
        self._term_counts: dict[tuple[tuple[int, ...], str], tuple[int, int, float]] = {}  # see _count

    def _rows(self, statement: str, /, **values: Any) -> list[Any]:
        return self._database.rows(statement, **_encode(values))

    def generation(self) -> int:
        """Return 1: the index is never replaced by another."""
        return 1

    def content_version(self) -> object:
        """Return None: only a query could tell whether another process wrote."""
        return None

    def use_memory(self) -> None:
        """Do nothing: there is no file."""

    def close(self) -> None:
        """Do nothing: connections belong to the process."""

    @contextmanager
    def cache_query(self, filter: SearchFilter) -> Iterator[None]:
        """Read what one query needs more than once only once, and what every query needs in one statement."""
        with self._database.cache_query() as outermost:
            if outermost:
                self._prefetch(filter)
            yield

    def _prefetch(self, filter: SearchFilter) -> None:
        row = self._row("prefetch", scopes=filter.scopes, part=filter.part)
        models, folders, stock, has_facts, has_relations, has_transcripts = row
        cache = self._database.cache
        assert cache is not None
        cache["models"] = [tuple(row) for row in models]
        cache["folders", filter.scopes, filter.part] = [FolderSize(*row) for row in folders]
        cache["stock", tuple([id for id, *_ in folders])] = [tuple(row) for row in stock]
        cache["has facts"] = has_facts
        cache["has relations"] = has_relations
        cache["has transcripts"] = has_transcripts

    @contextmanager
    def read_transaction(self, replica: bool = False) -> Iterator[None]:
        """Read in one transaction, from a replica if there is one and `replica` is set."""
        with self._database.read_transaction(replica):
            yield

    # --- writing --------------------------------------------------------------------------------------------------------------

    def put(self, entries: Iterable[tuple[IndexEntry, FileId | None]], is_current: Callable[[IndexEntry], bool]) -> None:
        """Index files in one transaction.

        Where the store is in the same database, whether the files are current is read under the folder's lock, so that text
        that was purged meanwhile does not come back. Otherwise `is_current` is called before.
        """
        current = [(entry, replaced) for entry, replaced in entries if self._stored_files or is_current(entry)]
        if not current:
            return

        def write(db: Session) -> None:
            change = Change(db, SQL, files_by_folder([entry for entry, _ in current]), self._stored_files)
            for entry, replaced in current:
                if change.is_current(entry):
                    change.put(entry, replaced)
            change.save()

        self._database.write(write)

    def remove(self, scope: str, part: str, names: Iterable[str], is_gone: Callable[[str], bool]) -> int:
        """Remove files from the index that `is_gone` finds missing in the store; return how many were indexed."""
        files = FilesOfFolder([clean_text(name) for name in names if is_gone(name)])
        if not files.names:
            return 0

        def write(db: Session) -> tuple[int, Change]:
            change = Change(db, SQL, {(scope, part): files})
            count = sum([change.remove(scope, part, name) for name in files.names])
            change.save()
            return count, change

        count, change = self._database.write(write)
        if count:
            terms = change.removed_terms()
            with suppress(Busy):  # the files are removed; terms without postings find nothing and are purged later
                self._database.write(lambda db: db.execute(SQL["drop_terms"], {"words": terms}))
        return count

    def add_folder(self, scope: str, part: str) -> None:
        """Record that a folder has been read, even if it is empty."""
        with self._database.transaction() as db:
            db.execute(SQL["add_folder"], {"scope": scope, "part": part})

    def reset(self) -> None:
        """Delete the rows of the index; the next refresh fills it again."""
        statements = (
            "lock_index", "lock_everything", "clear_mentions", "clear_vectors", "clear_parts", "clear_docs",
            "clear_relations", "clear_folders", "drop_orphaned_terms",
        )  # fmt: skip
        with self._database.transaction() as db:
            for statement in statements:
                db.execute(SQL[statement])
        self._clear_caches()

    def scrub(self, seconds: float | None = None, rewrite: bool = False) -> None:
        """Delete the terms that no indexed text has, and what this process has cached."""
        with self._database.transaction() as db:
            db.execute(SQL["lock_index"])
            db.execute(SQL["drop_orphaned_terms"])
        self._clear_caches()

    def _clear_caches(self) -> None:
        self._term_counts.clear()
        term_number.cache_clear()
        self.vectors.clear_copies()

    # --- full-text search -----------------------------------------------------------------------------------------------------

    def match_passages(self, terms: list[str], filter: SearchFilter, most: int) -> dict[int, float]:
        """Return the passages of the filter's folders that have any of these terms; the best has the lowest number. As in FTS5,
        how common a term is in all folders counts."""
        folders = self._folder_ids(filter) if terms else ()
        if not folders:
            return {}
        counts = [everywhere for _, everywhere in self._count(terms, folders).values()]
        scores = self._match([term_number(term) for term in terms], counts, folders, most, past=False)
        if filter.as_of:
            past = [term_number(term, True) for term in terms]
            known = {number: everywhere for number, _, everywhere in self._rows("term_counts", words=past, folders=[])}
            scores.update(self._match(past, [known.get(number, 0) for number in past], folders, most, past=True))
        return scores

    def _match(
        self, numbers: list[int], counts: list[int], folders: tuple[int, ...], most: int, past: bool
    ) -> dict[int, float]:
        return dict(self._rows("match", words=numbers, common=counts, folders=folders, pool=most, past=past))

    def find_postings(self, terms: list[str], filter: SearchFilter, most: int, among: list[int] | None = None) -> list[str]:
        """Return, for each of these terms, the newest passages that have it: their ids, separated by commas.

        With `among`, only those of these passages."""
        folders = self._folder_ids(filter)
        numbers = [term_number(term) for term in terms]
        found = dict(self._rows("postings", words=numbers, folders=folders, most=most, ids=among)) if folders else {}
        return [found.get(number) or "" for number in numbers]

    def count_terms(self, terms: list[str], filter: SearchFilter) -> dict[str, int]:
        """Return how many passages of the filter's folders have each of these terms; terms without any are left out."""
        return {term: here for term, (here, _) in self._count(terms, self._folder_ids(filter)).items() if here}

    def _count(self, terms: list[str], folders: tuple[int, ...]) -> dict[str, tuple[int, int]]:
        """Return how many passages have each of these terms: of these folders, and of all.

        The count of a common term may be half a minute old: it hardly matters, and takes long to read.
        """
        now = time.monotonic()
        if len(self._term_counts) > _MAX_COUNTED:
            self._term_counts.clear()
        cache: dict[Hashable, Any] = self._database.cache if self._database.cache is not None else {}
        known: dict[str, tuple[int, int, float]] = {
            term: cache.get(("count", folders, term)) or self._term_counts.get((folders, term), (0, 0, 0.0)) for term in terms
        }
        new = [term for term in terms if known[term][2] < now and ("count", folders, term) not in cache]
        if new:
            rows = self._rows("term_counts", words=[term_number(term) for term in new], folders=folders)
            counts = {number: (here, everywhere) for number, here, everywhere in rows}
            for term in new:
                here, everywhere = counts.get(term_number(term), (0, 0))
                until = now + _COMMON_SECONDS if everywhere >= _COMMON_POSTINGS else now
                known[term] = self._term_counts[folders, term] = cache["count", folders, term] = here, everywhere, until
        return {term: (here, everywhere) for term, (here, everywhere, _) in known.items()}

    def find_folders(self, filter: SearchFilter) -> list[FolderSize]:
        """Return the folders that a filter selects."""
        find_folders = super().find_folders
        return self._database.read_once(("folders", filter.scopes, filter.part), lambda: find_folders(filter))

    def _folder_ids(self, filter: SearchFilter) -> tuple[int, ...]:
        return tuple([folder.id for folder in self.find_folders(filter)])

    def has_facts(self) -> bool:
        """Return whether any file states a fact."""
        return self._database.read_once("has facts", super().has_facts)

    def has_relations(self) -> bool:
        """Return whether any note states a relation."""
        return self._database.read_once("has relations", super().has_relations)

    def find_adjacent_turns(self, ids: list[int]) -> list[int]:
        """Return these turns, and those before and after each, where people speak under their names."""
        return super().find_adjacent_turns(ids) if self._may_have_transcripts() else []

    def find_speakers(self, names: list[str], filter: SearchFilter) -> list[str]:
        """Return those of these names that are speakers in a transcript of the filter's folders."""
        folders = self._folder_ids(filter) if self._may_have_transcripts() else ()
        if not folders:
            return []
        spoken = tuple([fold_speaker(name) for name in names])
        rows = self._database.read_once(
            ("speakers", spoken, folders), lambda: self._rows("speakers_named", spoken=spoken, folders=folders)
        )
        return [speaker for (speaker,) in rows]

    def _may_have_transcripts(self) -> bool:
        return bool((self._database.cache or {}).get("has transcripts", True))

    # --- checks ---------------------------------------------------------------------------------------------------------------

    def _find_orphaned(self, terms: list[str]) -> list[str]:
        return [term for (term,) in self._rows("orphaned_terms", terms=terms)]

    def read_vectors(self, scope: str, part: str, files: list[str]) -> list[bytes]:
        """Return the numbers of every vector of these files, of all models."""
        return super().read_vectors(scope, part, files) if self.vectors.is_available() else []

    def has_vector(self, vector: bytes) -> bool:
        """Return whether any vector has exactly these numbers."""
        return self.vectors.is_available() and super().has_vector(vector)

    def verify(self, progress: Progress = Progress()) -> str:
        """Check the whole index and return the first problem, or ""."""
        with self._database.read_transaction():
            for text, sum_ in self._rows("text_sums"):
                if crc32(text.encode()) != sum_:
                    return "a text was changed"
            for (folder,) in self._rows("wrong_counts"):
                return f"the counts of {folder} do not match its content"
            if self._row("missing_postings")[0]:
                return "the words of a text were changed"
        return ""


def _encode(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values as the driver takes them: lists for tuples, texts that PostgreSQL can store, long names cut."""
    encoded = clean_values({name: list(value) if isinstance(value, tuple) else value for name, value in values.items()})
    for name in _NAMES.intersection(encoded):
        value = encoded[name]
        if value is not None:
            encoded[name] = [shorten_name(item) for item in value] if isinstance(value, list) else shorten_name(value)
    return encoded


if TYPE_CHECKING:
    _implements: type[Index] = PostgresIndex
