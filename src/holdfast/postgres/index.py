"""The catalogue in PostgreSQL: the same questions in its dialect, and the same answers in the same order.

Which rows anybody sees is row-level security's business. Words are rows with their numbers (see pgtext) and are rated by the
formula of SQLite's FTS5. What was asked is remembered while one question lasts (`asking`).
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager, suppress
from zlib import crc32

from holdfast.errors import Busy, Unsure
from holdfast.index import sqlite
from holdfast.index.results import OUTLINE
from holdfast.index.sqlite import listed
from holdfast.index.writer import IndexWriter
from holdfast.models import Progress
from holdfast.postgres import Database, statements, vectors
from holdfast.postgres import RetryLater as Again
from holdfast.postgres.index_text import number_of, plain, shortened, small, tidied
from holdfast.postgres.index_writer import Change, Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from holdfast.base.ids import FileId
    from holdfast.index.entries import IndexEntry
    from holdfast.index.results import FoundPassage
    from holdfast.index.sqlite import SearchFilter
    from holdfast.postgres import PostgresSettings, Session

SQL = {**statements(__file__), **vectors.SQL}
_LISTS = frozenset(("scopes", "ids", "tags", "held", "names", "keys", "labels", "terms", "texts", "what"))  # told as JSON
_BY_NAME = frozenset(  # that look for a name which may be too long
    ("facts", "facts_about", "statements", "stated_at", "stating", "declared", "stating_passages")
)
_NAMES = ("about", "named", "names", "label", "labels")
_REMEMBERED = frozenset(("folders_of", "models", "stock", "who_of", "any_fact"))
_COMMON = 1000  # mentions from which a word counts as common:
_REST = 30.0  # seconds for which it is not counted again
_MOST_COUNTED = 20_000  # words
_JUST = "counted"


class Catalogue(Database):
    """The tenant's rows: texts are tidied on their way, and lists come as lists."""

    def __init__(self, store: PostgresSettings, seconds: float) -> None:
        super().__init__(store, SQL, seconds)
        self._here = threading.local()

    @property
    def seen(self) -> dict[Any, Any] | None:
        """What this thread's question was told so far; None outside of one."""
        seen: dict[Any, Any] | None = getattr(self._here, "seen", None)
        return seen

    def rows(self, statement: str, /, **values: Any) -> list[Any]:
        if statement == "notes_of_scope":  # `notes` asks each scope by itself
            statement, values["scopes"] = "notes", [values.pop("scope")]
        seen = self.seen
        if seen is None or statement not in _REMEMBERED:
            return super().rows(statement, **_told(statement, values))
        key = statement, *[tuple(value) if isinstance(value, list) else value for value in values.values()]
        if key not in seen:
            seen[key] = super().rows(statement, **_told(statement, values))
        rows: list[Any] = seen[key]
        return rows

    @contextmanager
    def transaction(self, durable: bool = False) -> Iterator[Session]:
        """What is catalogued can be catalogued again: where nobody heard whether it was, nothing is in doubt but time."""
        if self.seen is not None:
            self._here.seen = {}  # what was told may not be so any more
        try:
            with super().transaction(durable) as db:
                yield db
        except Unsure as error:
            raise Again("the database went away while the catalogue was changed", "Try again in a moment") from error

    @contextmanager
    def asking(self) -> Iterator[bool]:
        """What is asked more than once within this is asked once; whether nobody further out said so already."""
        first = self.seen is None
        if first:
            self._here.seen = {}
        try:
            yield first
        finally:
            if first:
                self._here.seen = None


def _told(statement: str, values: dict[str, Any]) -> dict[str, Any]:
    """As the driver takes them."""
    told = tidied(values)
    for name in _LISTS.intersection(values):
        if isinstance(values[name], str):
            told[name] = [plain(one) if isinstance(one, str) else one for one in json.loads(values[name])]
    if statement in _BY_NAME:
        for name in _NAMES:
            value = told.get(name)
            if value is not None:
                told[name] = [shortened(one) for one in value] if isinstance(value, list) else shortened(value)
    return told


class PostgresIndex(sqlite.SqliteIndex):
    """One caller's view of a tenant's catalogue."""

    def __init__(self, store: PostgresSettings, busy_seconds: float, quarantine: tuple[str, ...] = ()) -> None:
        self._catalogue = Catalogue(store, busy_seconds)
        database: Any = self._catalogue
        IndexWriter.__init__(self, database, SQL, listed(quarantine))
        self._vectors: Any = vectors.PostgresVectors(database, SQL)
        self.standing = ""  # the statement that asks which files are on the shelf, where that is in the same database
        self._counted: dict[tuple[tuple[int, ...], str], tuple[int, int, float]] = {}  # how common words are, and until when

    @contextmanager
    def asking(self, asked: SearchFilter) -> Iterator[None]:
        """What one question asks twice is asked once, and what every question asks is asked together."""
        with self._catalogue.asking() as first:
            if first:
                self._prepare(asked)
            yield

    def _prepare(self, asked: SearchFilter) -> None:
        """The models, the folders with what vectors they have, whether there are facts, and whether anybody spoke."""
        scopes = listed(asked.scopes)
        models, folders, stock, facts, talks = self._one("prepare", scopes=scopes, part=asked.part)
        seen = self._catalogue.seen
        assert seen is not None
        seen["models",] = [tuple(row) for row in models]
        seen["folders_of", scopes, asked.part] = [tuple(row) for row in folders]
        seen["stock", tuple([row[0] for row in folders])] = [tuple(row) for row in stock]
        seen["any_fact",] = [(1,)] if facts else []
        seen["talks"] = talks

    @contextmanager
    def reading(self, replica: bool = False) -> Iterator[None]:
        """What is asked within is asked in one transaction; of a replica if one is given and was wanted."""
        with self._catalogue.reading(replica):
            yield

    # --- changing it -------------------------------------------------------------------------------------------------

    def put(self, docs: Iterable[tuple[IndexEntry, FileId | None]], still: Callable[[IndexEntry], bool]) -> None:
        """Catalogue files, in one transaction. Where the shelf is in the same database, it is asked when nobody else can
        change the folder: what was purged meanwhile does not come back. Else `still` is asked before."""
        meant = [(doc, replaced) for doc, replaced in docs if self.standing or still(doc)]
        if not meant:
            return

        def work(db: Session) -> None:
            change = Change(db, self._sql, Names.of([doc for doc, _ in meant]), self.standing)
            for doc, replaced in meant:
                if change.stands(doc):
                    change.put(doc, replaced)
            change.save()

        self._catalogue.write(work)

    def drop(self, scope: str, part: str, names: Iterable[str], gone: Callable[[str], bool]) -> int:
        """Take files out that are no longer on the shelf; how many were in."""
        meant = Names()
        meant.files = [plain(name) for name in names if gone(name)]
        if not meant.files:
            return 0

        def work(db: Session) -> tuple[int, Change]:
            change = Change(db, self._sql, {(scope, part): meant})
            count = sum([change.drop(scope, part, name, lambda _: True) for name in meant.files])
            change.save()
            return count, change

        count, change = self._catalogue.write(work)
        if count:
            words = change.said()
            with suppress(Busy):  # the files are out; words that nothing says are found by nobody, and go with the next purge
                self._catalogue.write(lambda db: db.execute(self._sql["drop_words"], {"words": words}))
        return count

    def start_anew(self) -> None:
        """Throw the catalogue away; the next look at the shelf fills a new one."""
        with self._catalogue.transaction() as db:
            for statement in ("lock_all", "lock_everything", "clear_mentions", "clear_vectors", "clear_parts", "clear_docs"):
                db.execute(self._sql[statement])
            db.execute(self._sql["clear_folders"])
            db.execute(self._sql["drop_unsaid"])
        self._forget()

    def scrub(self, seconds: float | None = None, rewrite: bool = False) -> None:
        """Take the words out that nothing says any more, and forget what this process remembers."""
        with self._catalogue.transaction() as db:
            db.execute(self._sql["lock_all"])
            db.execute(self._sql["drop_unsaid"])
        self._forget()

    def _forget(self) -> None:
        self._counted.clear()
        number_of.cache_clear()
        self._vectors.forget_copies()

    # --- asking it ---------------------------------------------------------------------------------------------------

    def search(self, query: str, asked: SearchFilter, limit: int) -> list[FoundPassage]:
        """Keyword search, in one transaction."""
        with self.reading(), self.asking(asked):
            return super().search(query, asked, limit)

    def matches(self, terms: list[str], asked: SearchFilter, most: int) -> dict[int, float]:
        """The passages of the places asked about that have any of these words, the best with the lowest number; how common a
        word is everywhere counts, as in FTS5."""
        folders = self._folders(asked) if terms else ()
        if not folders:
            return {}
        common = [all_ for _, all_ in self._counts(terms, folders).values()]
        scores = self._rated([number_of(term) for term in terms], common, folders, most, False)
        if asked.as_of:
            past = [number_of(term, True) for term in terms]
            counts = {word: all_ for word, _, all_ in self._all("frequency", words=past, folders=[])}
            scores.update(self._rated(past, [counts.get(word, 0) for word in past], folders, most, True))
        return scores

    def _rated(self, words: list[int], common: list[int], folders: tuple[int, ...], most: int, past: bool) -> dict[int, float]:
        return dict(self._all("match", words=words, common=common, folders=list(folders), pool=most, past=past))

    def having(self, terms: list[str], asked: SearchFilter, most: int) -> list[str]:
        """For each of these words the newest passages of the places asked about that have it, with commas between."""
        folders = list(self._folders(asked))
        numbers = [number_of(term) for term in terms]
        named = dict(self._all("having", words=numbers, folders=folders, most=most)) if folders else {}
        return [named.get(number) or "" for number in numbers]

    def frequencies(self, terms: list[str], asked: SearchFilter) -> dict[str, int]:
        """In how many passages of the places asked about each of these words stands; one that stands in none is not told."""
        return {term: here for term, (here, _) in self._counts(terms, self._folders(asked)).items() if here}

    def _counts(self, terms: list[str], folders: tuple[int, ...]) -> dict[str, tuple[int, int]]:
        """In how many passages each of these words stands: of these folders, and of all. How common a common word is may be
        half a minute old: it decides next to nothing, and is what takes long to count."""
        now = time.monotonic()
        if len(self._counted) > _MOST_COUNTED:
            self._counted.clear()
        just: dict[Any, Any] = self._catalogue.seen or {}  # by this very question
        known = {term: just.get((_JUST, folders, term), self._counted.get((folders, term), (0, 0, 0.0))) for term in terms}
        fresh = [term for term in terms if known[term][2] < now and (_JUST, folders, term) not in just]
        if fresh:
            words = [number_of(term) for term in fresh]
            counts = {word: (here, all_) for word, here, all_ in self._all("frequency", words=words, folders=list(folders))}
            for term in fresh:
                here, all_ = counts.get(number_of(term), (0, 0))
                known[term] = self._counted[folders, term] = here, all_, now + _REST if all_ >= _COMMON else now
        if self._catalogue.seen is not None:
            self._catalogue.seen.update({(_JUST, folders, term): known[term] for term in fresh})
        return {term: (here, all_) for term, (here, all_, _) in known.items()}

    def _folders(self, asked: SearchFilter) -> tuple[int, ...]:
        return tuple([id for id, _, _ in self.folders_of(asked)])

    def beside(self, ids: list[int]) -> list[int]:
        """The turns just before and after these, and these; nothing need be asked where nobody spoke."""
        return super().beside(ids) if self._talks() else []

    def who_of(self, names: list[str], asked: SearchFilter) -> list[str]:
        """Those of these names that somebody who speaks in a session of the places asked about has."""
        folders = list(self._folders(asked)) if self._talks() else []
        spoken = [small(name) for name in names]
        return [row[0] for row in self._all("who_of", spoken=spoken, folders=folders)] if folders else []

    def _talks(self) -> bool:
        return bool((self._catalogue.seen or {}).get("talks", True))

    def outlines(self, ids: Iterable[int], asked: SearchFilter) -> list[tuple[Any, ...]]:
        """Of those that are current what an order is made of."""
        return [tuple([row[column] for column in OUTLINE]) for row in self.rows(ids, asked)]

    def unsaid(self, words: list[str]) -> list[str]:
        """Those of these words that the dictionary still has though nothing that is catalogued says them."""
        return [row[0] for row in self._all("lingering", terms=words)]

    def asked(self, statement: str, **values: Any) -> list[Any]:
        """The rows of a statement by its name; none of vectors where there are none."""
        if statement in ("vectors_of", "has_vector") and not self._vectors.there():
            return []
        return super().asked(statement, **values)

    def verify(self, progress: Progress = Progress()) -> str:
        """Empty if the whole catalogue is sound, else what is wrong with it."""
        with self._catalogue.reading():
            for text, sum_ in self._all("texts"):
                if crc32(text.encode()) != sum_:
                    return "a text is not what was written"
            untrue = self._one("untrue")
            if untrue:
                return f"the counts of {untrue[0]} are not those of what it holds"
            if self._one("mentions_missed")[0]:
                return "the words of a text are not those that were written"
        return ""
