"""Whether the whole catalogue still is what was written: its pages, every row, every word, every vector."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import itemgetter

from holdfast.index.results import PLACE
from holdfast.index.tokenizer import index_terms
from holdfast.index.vectors import PIECES, SLOTS, sum_of_slot
from holdfast.index.writer import sum_of
from holdfast.sqlite import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    import apsw

    from holdfast.home import Database
    from holdfast.models import Progress

    Sql = Mapping[str, str]

_OTHER_WORDS = "the words that find a text are not those it says"
_OTHER_VECTOR = "a vector is not what was written"
_MANY = 1000  # passages
_MADE_FROM = 5  # the line of a passage's source with which begins what it was made from


def wrong_in(database: Database, sql: Sql, progress: Progress) -> str:
    """Empty if it is sound, else what is wrong with it; as it stands at one moment, however many write meanwhile."""
    db = database.opened()  # nobody else has this one
    try:
        db.execute("BEGIN")
        look = _Look(db, sql, progress)
        return look.pages() or look.rows() or look.passages() or look.vectors()
    except FAILURES as error:
        raise database.failed(error) from error
    finally:
        database.close()


class _Said:
    """Of each word how often it is said, and in which passages: their numbers, added up."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self.where: dict[str, int] = {}

    def add(self, passage: int, words: list[str]) -> None:
        self.times.update(words)
        where = self.where
        for word in words:
            where[word] = where.get(word, 0) + passage


class _Look:
    """Each part of it; every answer is empty if that part is sound."""

    def __init__(self, db: apsw.Connection, sql: Sql, progress: Progress) -> None:
        self._db, self._sql, self._progress = db, sql, progress

    def pages(self) -> str:
        found = [str(row[0]) for row in self._db.execute(self._sql["verify_pages"])]
        return "" if found == ["ok"] else found[0]

    def rows(self) -> str:
        facts: Counter[int] = Counter()
        for row in self._named("fact_rows"):
            facts[row["doc"]] += 1
            if sum_of(row) != row["sum"]:
                return "a fact is not what was written"
        for row in self._named("doc_rows"):
            if sum_of(row) != row["sum"] or facts.pop(row["id"], 0) != row["facts"]:
                return "what is known of a file is not what was written"
        if facts or any(sum_of(row) != row["sum"] for row in self._named("piece_rows")):
            return "a row is not what was written"
        return ""

    def passages(self) -> str:
        """Each of them, and what is made of all of them: the words that find them, their counts, what they came from."""
        said = _Said(), _Said()
        folders = list(self._named("folder_sizes"))
        if any(sum_of({"scope": one["scope"], "part": one["part"]}) != one["sum"] for one in folders):
            return "a folder is not what was written"
        counted = {one["id"]: (one["passages"], one["words"]) for one in folders}
        sizes, made = dict.fromkeys(counted, (0, 0)), set()
        for row in self._watched("passage_rows", sum([passages for passages, _ in counted.values()])):
            folder = row.pop("of_folder")
            if sum_of(row) != row["sum"] or folder not in sizes:
                return "a text is not what was written"
            said[row["past"]].add(row["id"], [PLACE.format(folder), *index_terms(row["names"]), *index_terms(row["text"])])
            made.update([(what, row["id"]) for what in row["source"].split("\n")[_MADE_FROM:]])
            if not row["past"]:
                sizes[folder] = sizes[folder][0] + 1, sizes[folder][1] + row["words"]
        if made != set(self._db.execute(self._sql["made_rows"])):
            return "what notes were made from is not what was written"
        if sizes != counted:
            return "the counts of a folder are not those of what it holds"
        return self._words(*said) or self._ranks([id for id, (passages, _) in sizes.items() if passages][:1])

    def _ranks(self, folders: list[int]) -> str:
        """How telling a word is goes by averages that the full-text table keeps: without them it has no answer."""
        asked = [{"query": f'"{PLACE.format(folder)}"', "pool": 1} for folder in folders]
        found = [row for one in asked for row in self._db.execute(self._sql["match_now"], one)]
        return "" if all(rank is not None for _, rank in found) else "the averages of words are not what was written"

    def _words(self, *said: _Said) -> str:
        self._db.execute(self._sql["instances"])
        for statement, words in zip(("said_now", "said_past"), said, strict=True):
            for term, times, where in self._db.execute(self._sql[statement]):
                if words.times.pop(term, 0) != times or words.where[term] != where:
                    return _OTHER_WORDS
            if words.times:
                return _OTHER_WORDS
        return ""

    def vectors(self) -> str:
        """Every slot that is taken has its place, and holds what was put there."""
        places = groupby(self._db.execute(self._sql["place_rows"]), itemgetter(0))
        block, some = next(places, (0, iter(())))
        for row in self._named("block_rows"):
            id, columns = row["id"], [row["ids"], row["signs"], row["numbers"]]
            if sum_of({name: row[name] for name in ("model", "folder", "used")}) != row["sum"]:
                return _OTHER_VECTOR
            mine = [place[1:] for place in some] if id == block else []
            if not all(isinstance(one, bytes) for one in columns) or len(columns[0]) != 8 * SLOTS or not _holds(columns, mine):
                return _OTHER_VECTOR
            if id == block:
                block, some = next(places, (0, iter(())))
        return _OTHER_VECTOR if block else ""

    def _watched(self, statement: str, total: int) -> Iterator[dict[str, Any]]:
        """The same, while somebody who waits is told how far it is, if it takes long."""
        if total < _MANY:
            yield from self._named(statement)
            return
        self._progress.start("checking the index", total)
        try:
            for number, row in enumerate(self._named(statement)):
                if number % _MANY == _MANY - 1:
                    self._progress.step(_MANY)
                yield row
        finally:
            self._progress.end()

    def _named(self, statement: str) -> Iterator[dict[str, Any]]:
        rows = self._db.execute(self._sql[statement])
        for row in rows:
            yield dict(zip([column[0] for column in rows.get_description()], row, strict=True))


def _holds(row: list[bytes], places: list[Any]) -> bool:
    """Whether a block holds these, (slot, passage, sum), and no others."""
    columns = [memoryview(column) for column in row]
    taken = len([owner for owner in columns[0].cast("q") if owner])
    for slot, passage, sum_ in places:
        owner, signs, numbers = (_slot(column, slot) for column in columns)
        if sum_of_slot(owner, signs, numbers) != sum_ or int.from_bytes(owner, "little") // PIECES != passage:
            return False
    return taken == len(places)


def _slot(column: memoryview, slot: int) -> memoryview:
    width = len(column) // SLOTS
    return column[slot * width : slot * width + width]
