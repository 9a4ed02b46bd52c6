"""Check that the whole SQLite index is as it was written: its pages, every row, every term, every vector."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import itemgetter

from holdfast.index.filters import folder_term
from holdfast.index.sqlite_writer import checksum
from holdfast.index.tokenizer import index_terms
from holdfast.index.vectors import PIECES, SLOTS, slot_checksum
from holdfast.sqlite import ERRORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    import apsw

    from holdfast.models import Progress
    from holdfast.sqlite import Database

    Sql = Mapping[str, str]
    SlotRow = tuple[int, int, int]  # slot, passage, checksum

_OTHER_WORDS = "the words of a text do not match the text"
_OTHER_VECTOR = "a vector was changed"
_PROGRESS_STEP = 1000  # passages
_MADE_FROM_LINE = 5  # the line of the column `source` at which the names of what a version was made from begin


def find_damage(database: Database, sql: Sql, progress: Progress) -> str:
    """Check an index through a connection of its own, as of one moment; return the first problem, or ""."""
    db = database.connection()
    try:
        db.execute("BEGIN")
        check = _Check(db, sql, progress)
        return check.check_pages() or check.check_rows() or check.check_passages() or check.check_vectors()
    except ERRORS as error:
        raise database.handle_error(error) from error
    finally:
        database.close()


class _TermCounts:
    """The number of occurrences of each term, and the sum of the ids of the passages that have it."""

    def __init__(self) -> None:
        self.occurrences: Counter[str] = Counter()
        self.id_sums: dict[str, int] = {}

    def add(self, passage: int, terms: list[str]) -> None:
        self.occurrences.update(terms)
        sums = self.id_sums
        for term in terms:
            sums[term] = sums.get(term, 0) + passage


class _Check:
    """The checks of each part; each returns a problem, or ""."""

    def __init__(self, db: apsw.Connection, sql: Sql, progress: Progress) -> None:
        self._db, self._sql, self._progress = db, sql, progress

    def check_pages(self) -> str:
        found = [str(message) for (message,) in self._db.execute(self._sql["integrity_check"])]
        return "" if found == ["ok"] else found[0]

    def check_rows(self) -> str:
        facts: Counter[int] = Counter()
        for row in self._read("fact_rows"):
            facts[row["doc"]] += 1
            if checksum(row) != row["sum"]:
                return "a fact was changed"
        for row in self._read("doc_rows"):
            if checksum(row) != row["sum"] or facts.pop(row["id"], 0) != row["facts"]:
                return "the record of a file was changed"
        relations: Counter[int] = Counter()
        for row in self._read("relation_rows"):
            relations[row["doc"]] += 1
            if checksum(row) != row["sum"]:
                return "a relation was changed"
        if relations != Counter(dict(self._db.execute(self._sql["relation_counts"]))):
            return "the relations of a note were changed"
        if facts or any(checksum(row) != row["sum"] for row in self._read("piece_rows")):
            return "a row was changed"
        return ""

    def check_passages(self) -> str:
        """Check each passage, and what is derived from all of them: terms, counts, and what they were made from."""
        terms = _TermCounts(), _TermCounts()  # of current and of past passages
        folders = list(self._read("folder_sizes"))
        if any(checksum({"scope": folder["scope"], "part": folder["part"]}) != folder["sum"] for folder in folders):
            return "a folder was changed"
        counted = {folder["id"]: (folder["passages"], folder["words"]) for folder in folders}
        sizes, made_from = dict.fromkeys(counted, (0, 0)), set()
        for row in self._read_with_progress("passage_rows", sum([passages for passages, _ in counted.values()])):
            folder = row.pop("of_folder")
            if checksum(row) != row["sum"] or folder not in sizes:
                return "a text was changed"
            terms[row["past"]].add(row["id"], [folder_term(folder), *index_terms(row["names"]), *index_terms(row["text"])])
            made_from.update([(source, row["id"]) for source in row["source"].split("\n")[_MADE_FROM_LINE:]])
            if not row["past"]:
                passages, words = sizes[folder]
                sizes[folder] = passages + 1, words + row["words"]
        if made_from != set(self._db.execute(self._sql["made_rows"])):
            return "the sources of notes were changed"
        if sizes != counted:
            return "the counts of a folder do not match its content"
        return self._check_terms(*terms) or self._check_ranks([id for id, (passages, _) in sizes.items() if passages][:1])

    def _check_ranks(self, folders: list[int]) -> str:
        """Check the averages that a full-text table keeps: without them it cannot rank."""
        queries = [{"query": f'"{folder_term(folder)}"', "pool": 1} for folder in folders]
        found = [row for query in queries for row in self._db.execute(self._sql["match_now"], query)]
        return "" if all(rank is not None for _, rank in found) else "the word averages were changed"

    def _check_terms(self, *expected: _TermCounts) -> str:
        self._db.execute(self._sql["term_instances"])
        for statement, terms in zip(("instances_now", "instances_past"), expected, strict=True):
            for term, occurrences, id_sum in self._db.execute(self._sql[statement]):
                if terms.occurrences.pop(term, 0) != occurrences or terms.id_sums[term] != id_sum:
                    return _OTHER_WORDS
            if terms.occurrences:
                return _OTHER_WORDS
        return ""

    def check_vectors(self) -> str:
        """Check that every used slot has its row in `place`, and holds what was written."""
        by_block = groupby(self._db.execute(self._sql["place_rows"]), itemgetter(0))
        block, rows = next(by_block, (0, iter(())))
        for row in self._read("block_rows"):
            id, columns = row["id"], [row["ids"], row["signs"], row["numbers"]]
            if checksum({name: row[name] for name in ("model", "folder", "used")}) != row["sum"]:
                return _OTHER_VECTOR
            slots: list[SlotRow] = [(slot, passage, sum_) for _, slot, passage, sum_ in rows] if id == block else []
            is_block = all(isinstance(column, bytes) for column in columns) and len(columns[0]) == 8 * SLOTS
            if not is_block or not _has_slots(columns, slots):
                return _OTHER_VECTOR
            if id == block:
                block, rows = next(by_block, (0, iter(())))
        return _OTHER_VECTOR if block else ""

    def _read_with_progress(self, statement: str, total: int) -> Iterator[dict[str, Any]]:
        """Read rows and report progress if there are many."""
        if total < _PROGRESS_STEP:
            yield from self._read(statement)
            return
        self._progress.start("checking the index", total)
        try:
            for number, row in enumerate(self._read(statement)):
                if number % _PROGRESS_STEP == _PROGRESS_STEP - 1:
                    self._progress.step(_PROGRESS_STEP)
                yield row
        finally:
            self._progress.end()

    def _read(self, statement: str) -> Iterator[dict[str, Any]]:
        rows = self._db.execute(self._sql[statement])
        for row in rows:
            yield dict(zip([column[0] for column in rows.get_description()], row, strict=True))


def _has_slots(block: list[bytes], expected: list[SlotRow]) -> bool:
    """Return whether a block has these slots and no others."""
    columns = [memoryview(column) for column in block]
    used = len([owner for owner in columns[0].cast("q") if owner])
    for slot, passage, sum_ in expected:
        owner, signs, numbers = (_read_slot(column, slot) for column in columns)
        if slot_checksum(owner, signs, numbers) != sum_ or int.from_bytes(owner, "little") // PIECES != passage:
            return False
    return used == len(expected)


def _read_slot(column: memoryview, slot: int) -> memoryview:
    width = len(column) // SLOTS
    return column[slot * width : slot * width + width]
