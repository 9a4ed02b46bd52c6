"""Changes the catalogue in PostgreSQL: the decisions are those of `changing`, the rows of a call go out together.

A folder's row is locked first, so that those who change the same folder follow each other and its counts stay true. What is
not waited for is queued: a call is two round trips, however many files it brings.
"""

from __future__ import annotations

import json
from collections import Counter
from zlib import crc32

from holdfast.index import writer
from holdfast.postgres.index_text import number_of, plain, shortened, small, tidied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from holdfast.base.ids import FileId
    from holdfast.index.entries import IndexEntry, Passage
    from holdfast.models import Fact
    from holdfast.postgres import Session

_MOST_TIMES = 32_767
_AT_ONCE = 500  # docs that one statement takes out


class Change(writer.Change):
    """One transaction's changes; nothing is whole before `save`."""

    def __init__(
        self, db: Session, sql: Mapping[str, str], names: Mapping[tuple[str, str], Names], standing: str = ""
    ) -> None:
        there: Any = db
        super().__init__(there, sql)
        self._standing = standing
        self._folders: Any = Folders(there, sql, names, standing)
        self._outdated: tuple[list[int], list[int]] = [], []  # docs of which all passages go, and those of which the current do
        self._gone: list[int] = []  # docs
        self._said: list[Any] = []  # the answers to what takes passages out: which words they said

    def stands(self, doc: IndexEntry) -> bool:
        """Whether the file on the shelf is the one described, as far as that could be asked; a transcript may have grown."""
        if not self._standing:
            return True
        here = self._folders.here.get((doc.scope, doc.part, plain(doc.name)))
        if here is not None and doc.part == "transcripts":
            return bool(here[0] == doc.stamp[0] and here[2] >= doc.stamp[2])
        return bool(here == doc.stamp)

    def _summed(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """As they are: here only the text has a sum, which `_kept` makes."""
        return rows

    def put(self, doc: IndexEntry, replaced: FileId | None) -> None:
        """Catalogue a file, or what is new of it."""
        super().put(_sound(doc), replaced)

    def _row(self, folder: int, name: str) -> Any:
        return self._folders.known.get((folder, plain(name)))

    def _next(self, which: int) -> int:
        number: int = self._folders.ids[which].pop()
        return number

    def _add(self, doc: int, folder: int, passages: tuple[Passage, ...], facts: tuple[Fact, ...]) -> None:
        before = [(rows, len(rows)) for rows in (self._passages, self._facts, self._made)]
        super()._add(doc, folder, passages, facts)
        for row in [row for rows, length in before for row in rows[length:]]:
            row["folder"] = folder  # by which row-level security tells whose it is

    def drop(self, scope: str, part: str, name: str, gone: Callable[[str], bool]) -> bool:
        """Take a file out that is no longer on the shelf; whether it was in."""
        folder = self._folders.id(scope, part)
        row = self._row(folder, name)
        if not row or not gone(name):
            return False
        self._empty(row[0])
        self._gone.append(row[0])
        self._folders.mix(folder, row[4])
        return True

    def said(self) -> list[int]:
        """The numbers of the words that were said by what is gone, once it is."""
        return list({word for answer in self._said for (words,) in answer.fetchall() for word in words})

    def _empty(self, doc: int, current_only: bool = False) -> tuple[int, int]:
        """Take a doc's passages out, with those of the others; PostgreSQL counts by itself how much less there is."""
        self._outdated[current_only].append(doc)
        return 0, 0

    def save(self) -> None:
        """Queue everything that goes, and then everything that was put."""
        for current_only, docs in enumerate(self._outdated):
            for some in _few(docs):
                self._db.execute(self._sql["drop_vectors"], {"docs": some})
                fewer = self._db.execute(self._sql["drop_passages"], {"docs": some, "current_only": bool(current_only)})
                self._said.append(fewer)
                self._db.execute(self._sql["drop_facts"], {"docs": some})
        for some in _few(self._gone):
            self._db.execute(self._sql["drop_docs"], {"docs": some})
        passages = [self._kept(row) for row in self._passages]
        facts = [fact | {"about": shortened(fact["about"]), "named": shortened(fact["named"])} for fact in self._facts]
        made = [row | {"number": number} for number, row in enumerate(self._made)]
        self._insert("add_docs", self._docs)
        self._insert("add_passages", passages)
        self._insert("add_mentions", passages)
        self._insert("add_facts", facts)
        self._insert("add_made", made)
        self._words()
        self._folders.save()

    def _insert(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
        told = [tidied(row) for row in rows]
        if told:
            self._db.execute(self._sql[statement], {"rows": json.dumps(told, ensure_ascii=False)})

    def _kept(self, row: dict[str, Any]) -> dict[str, Any]:
        """A passage's row, with the numbers of its words."""
        said = Counter([*row["called"].split(), *row["said"].split()])
        text, length = plain(row["text"]), 1 + said.total()  # as many as SQLite's full-text table counts
        self._folders.count(row["folder"], bool(row["past"]), length)
        return {name: value for name, value in row.items() if name not in writer.ONLY_WORDS} | {
            "text": text, "sum": crc32(text.encode()), "length": length,
            "terms": [number_of(term, bool(row["past"])) for term in said],
            "times": [min(times, _MOST_TIMES) for times in said.values()],
            "spoken": small(row["speaker"]) if row["speaker"] else None,
        }  # fmt: skip

    def _words(self) -> None:
        """The words of what is current, in order: two who add the same then never wait for each other."""
        said = [word for row in self._passages if not row["past"] for word in f"{row['called']} {row['said']}".split()]
        terms = sorted(dict.fromkeys([plain(word) for word in said]))
        if terms:
            now, past = [number_of(term) for term in terms], [number_of(term, True) for term in terms]
            self._db.execute(self._sql["add_words"], {"terms": terms, "now_codes": now, "past_codes": past})


class Names:
    """The files of one folder that a call is about, and how many passages they may bring."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.passages = 0

    @staticmethod
    def of(docs: Iterable[IndexEntry]) -> dict[tuple[str, str], Names]:
        """By scope and part."""
        found: dict[tuple[str, str], Names] = {}
        for doc in docs:
            names = found.setdefault((doc.scope, doc.part), Names())
            names.files.append(plain(doc.name))
            names.passages += len(doc.passages)
        return dict(sorted(found.items()))


class Folders:
    """The folders one transaction touches: locked in their order, their files looked up at once, their counts written once."""

    def __init__(self, db: Any, sql: Mapping[str, str], names: Mapping[tuple[str, str], Names], standing: str = "") -> None:
        self._db, self._sql, self._looks = db, {**sql, "standing": standing}, bool(standing)
        self.here: dict[tuple[str, str, str], FileId] = {}  # what is on the shelf
        self.ids: tuple[list[int], list[int]] = [], []  # for new docs, and for passages; taken from their ends
        self.known: dict[tuple[int, str], tuple[Any, ...]] = {}
        self._folders: dict[tuple[str, str], int] = {}
        self._mixes: dict[int, int] = {}
        self._more: dict[int, Counter[str]] = {}
        for place, some in names.items():
            self._lock(*place, some)

    def _lock(self, scope: str, part: str, names: Names) -> None:
        place = {"scope": scope, "part": part}
        mine = self._db.execute(self._sql["lock_folder"], {**place, "docs": len(names.files), "passages": names.passages})
        rows = self._db.execute(self._sql["doc_rows"], {**place, "doc_names": names.files})
        here = self._db.execute(self._sql["standing"], {**place, "doc_names": names.files}) if self._looks else None
        folder, docs, passages = mine.fetchone()
        self._folders[scope, part] = folder
        self.ids[0][:0], self.ids[1][:0] = docs[::-1], passages[::-1]
        self.known.update({(folder, name): tuple(row) for name, *row in rows.fetchall()})
        self.here.update({(scope, part, name): tuple(stamp) for name, *stamp in (here.fetchall() if here else ())})

    def id(self, scope: str, part: str) -> int:
        return self._folders[scope, part]

    def was_empty(self, folder: int) -> bool:
        """Whether its files need not be looked up: they were."""
        return False

    def mix(self, folder: int, mix: int) -> None:
        self._mixes[folder] = self._mixes.get(folder, 0) ^ mix

    def grow(self, folder: int, words: int) -> None:
        """One more current passage of so many words."""
        self._more.setdefault(folder, Counter()).update(passages=1, words=words)

    def count(self, folder: int, past: bool, length: int) -> None:
        """A passage of so many words, with what it is called."""
        more = {"old": 1, "old_tokens": length} if past else {"tokens": length}
        self._more.setdefault(folder, Counter()).update(more)

    def shrink(self, folder: int, gone: tuple[int, int]) -> None:
        """PostgreSQL has counted what is gone already."""

    def save(self) -> None:
        for folder, mix in self._mixes.items():
            more = self._more.get(folder, Counter())
            counts = {name: more[name] for name in ("passages", "words", "tokens", "old", "old_tokens")}
            self._db.execute(self._sql["mix_in"], {"folder": folder, "mix": mix, **counts})


def _few(docs: list[int]) -> list[list[int]]:
    return [docs[start : start + _AT_ONCE] for start in range(0, len(docs), _AT_ONCE)]


def _sound(doc: IndexEntry) -> IndexEntry:
    """A document whose texts PostgreSQL can keep; its name stays, since the fingerprint counts it."""
    source = doc.source.replace(**{name: plain(value) for name, value in vars(doc.source).items() if isinstance(value, str)})
    texts = {name: plain(value) for name, value in vars(doc).items() if isinstance(value, str) and name != "name"}
    return doc.replace(**texts, source=source, tags=tuple(map(plain, doc.tags)))
