"""The catalogue in one SQLite file, through FTS5. Deleted, damaged or foreign, it starts anew and the shelf fills it."""

from __future__ import annotations

import os
from _thread import allocate_lock

from holdfast import sqlite
from holdfast.base.record import Record
from holdfast.formats.facts import Statement, find_outdated, fold, resolve_statements, subject_key
from holdfast.home import Database, DatabaseReset
from holdfast.index import tokenizer as words
from holdfast.index.results import PLACE, FoundFact, FoundPassage, ListedNote, SearchResult
from holdfast.index.writer import IndexWriter
from holdfast.models import Fact, Note, Progress, Scope, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from typing import Any

    from holdfast.index.results import ListedFile
    from holdfast.index.vectors import VectorIndex

    Known = tuple[int, int]  # a folder's id and its fingerprint

SQL = sqlite.statements(__file__)
APPLICATION = 0x484F4C44  # "HOLD"
SCHEMA = 16  # another number, another tokenizer: the catalogue is built anew
_ANY_TIME = "9"
_MOST_COUNTED = 20_000  # words
_COUNTED = 5_000  # mentions or passages that are looked through to count a word in a place
_LONG_LOOK = 600.0  # seconds that others wait for who looks through a large catalogue


IndexReset = DatabaseReset  # the catalogue was not usable and has been started anew; fill it and ask again


class SearchFilter(Record):
    """What a search is for, and on which clock."""

    scopes: tuple[str, ...]
    part: str | None = None  # notes, files, transcripts, archive; several with a space between; None: all but the archive
    type: str | None = None
    tags: tuple[str, ...] = ()
    as_of: str | None = None
    known_at: str | None = None
    now: str = ""


class SqliteIndex(IndexWriter):
    """One process's view of the catalogue."""

    _looking = allocate_lock()  # held by who looks whether one is spoiled
    _verdicts, _broken = 0, False  # how often that was found out, and what the last time

    def __init__(self, home: str, busy_seconds: float, quarantine: tuple[str, ...] = ()) -> None:
        self._at = home, "index.db", SQL, APPLICATION, SCHEMA, busy_seconds
        super().__init__(Database(*self._at), SQL, listed(quarantine))
        self._vectors: VectorIndex | None = None
        self._common: tuple[object, dict[tuple[str, str], int]] = None, {}  # what it was, and how common words were in places

    @property
    def seen(self) -> tuple[int, int]:
        """Which file was opened last, and how often it was let go of, which is not the same as lost."""
        return self._database.generation, self._database.let_go

    def begin_anew(self) -> None:
        """In a child: what its parent's threads had in hand is half."""
        if self._vectors is not None:
            self._vectors.begin_anew()

    def generation(self) -> int:
        """Which file this is, counted from the first that was opened."""
        with self._database.lock:
            self._database.opened()
            return self._database.generation

    @property
    def vectors(self) -> VectorIndex:
        """The vectors of its passages; search by words needs none."""
        if self._vectors is None:
            from holdfast.index.vectors import VectorIndex

            self._vectors = VectorIndex(self._database, SQL)
        return self._vectors

    @property
    def in_memory(self) -> str:
        """Why the home cannot hold the catalogue, when it cannot."""
        return self._database.reason

    # --- asking it -----------------------------------------------------------------------------------------------

    def search(self, query: str, asked: SearchFilter, limit: int) -> list[FoundPassage]:
        """Keyword search: the passages that have any of the words, best first; at least `limit` if there are so many."""
        if asked.as_of:  # older versions may have words that nothing current has
            terms = list(words.asked(query))
        else:
            terms = words.rarest(*self.looked_for(query, asked))
        pool = max(limit * 4, 40)
        while True:
            scores = self.matches(terms, asked, pool)
            found = self.passages(scores, asked)
            if len(found) >= limit or len(scores) < pool:
                return found
            pool *= 8

    def looked_for(self, query: str, asked: SearchFilter) -> tuple[dict[str, str], dict[str, int]]:
        """The words to look for, each with the word as asked; and how common each is in the places asked about."""
        return words.looked_for(query, lambda terms: self.frequencies(terms, asked), self.beginning)

    def matches(self, terms: list[str], asked: SearchFilter, most: int) -> dict[int, float]:
        """The passages of the places asked about that have any of these words, the best with the lowest number."""
        within = self._within(asked) if terms else None
        if within is None:
            return {}
        match = within + _any_of(terms)
        scores = dict(self._all("match_now", query=match, pool=most))
        if asked.as_of:
            scores.update(self._all("match_past", query=match, pool=most))
        return scores

    def known(self, scopes: tuple[str, ...]) -> dict[tuple[str, str], Known]:
        """The folders of these scopes that were ever catalogued."""
        rows: list[Any] = self._all("known_folders", scopes=listed(scopes))
        return {(row[0], row[1]): row[2:] for row in rows}

    def count_listed(self, scope: str) -> int | None:
        """Return how many notes a scope has, or None where the index has not read it yet."""
        row = self._one("count_listed", scope=scope)
        return int(row[0]) if row else None

    def newest_listed(self, scope: str, most: int) -> list[ListedFile]:
        """Return the first notes of a scope in the order of `notes`: pinned first, then newest first."""
        return self._all("newest_listed", scope=scope, most=most)

    def listed_notes(self, ids: list[int]) -> list[ListedNote]:
        """Return what index.md shows of these notes."""
        return [ListedNote(*row) for row in self._all("listed_notes", ids=_numbers(ids), held=self._held)]

    def having(self, terms: list[str], asked: SearchFilter, most: int) -> list[str]:
        """For each of these words the newest passages of the places asked about that have it, their numbers with commas
        between. Numbers as one text, because there may be thousands, and rating each costs ten times as much as naming it."""
        within = self._within(asked)
        if within is None:
            return [""] * len(terms)
        return [str(self._one("having", query=within + _any_of([term]), most=most)[0] or "") for term in terms]

    def lengths(self, ids: list[int]) -> list[tuple[int, int]]:
        """How many words each of these passages has: id, words."""
        return self._all("lengths", ids=_numbers(ids))

    def _within(self, asked: SearchFilter) -> str | None:
        """What keeps a match of FTS5 to the places asked about; None where there are none."""
        folders = self.folders_of(asked)
        if not folders:
            return None
        if asked.as_of or sum([folder[1] for folder in folders]) < self._one("current")[0]:  # else there is nothing elsewhere
            return f"place : ({' OR '.join([PLACE.format(folder[0]) for folder in folders])}) AND "
        return ""

    def folders_of(self, asked: SearchFilter) -> list[tuple[int, int, int]]:
        """The folders a question is about: id, how many passages, how many words in them."""
        return self._all("folders_of", scopes=listed(asked.scopes), part=asked.part)

    def passage_count(self, asked: SearchFilter) -> int:
        """Return how many passages the folders of a question have."""
        return sum([folder[1] for folder in self.folders_of(asked)])

    def pieces(self, ids: list[int]) -> list[tuple[int, int, str]]:
        """The pieces of these passages: passage, marks, tokens."""
        return self._all("pieces", ids=_numbers(ids))

    def texts(self, ids: list[int]) -> list[tuple[int, str, str, str | None]]:
        """What these passages say: id, what each is called, its text, who said it."""
        return self._all("texts_of", ids=_numbers(ids))

    def beside(self, ids: list[int]) -> list[int]:
        """The turns just before and after these, and these."""
        return [row[0] for row in self._all("beside", ids=_numbers(ids))]

    def who_of(self, names: list[str], asked: SearchFilter) -> list[str]:
        """Those of these names that somebody who speaks in a session of the places asked about has."""
        folders = _numbers([folder[0] for folder in self.folders_of(asked)]) if self._within(asked) != "" else None
        return [row[0] for row in self._all("who_of", names=listed(names), folders=folders)]

    def frequencies(self, terms: list[str], asked: SearchFilter) -> dict[str, int]:
        """In how many passages of the places asked about each of these words stands; one that stands in none is not told."""
        now, within = self._database.mark(), self._within(asked)
        if within is None:
            return {}
        if self._common[0] != now or len(self._common[1]) > _MOST_COUNTED:
            self._common = now, {}
        known = self._common[1]
        fresh = [term for term in terms if (within, term) not in known]
        if fresh:  # counting a common word goes through all its mentions
            counts = self._count(fresh, asked, within)
            known.update({(within, term): counts.get(term, 0) for term in fresh})
        return {term: known[within, term] for term in terms if known[within, term]}

    def _count(self, terms: list[str], asked: SearchFilter, within: str) -> dict[str, int]:
        """Where others have passages too, a word that is common in a large place counts as if it were so everywhere."""
        counts = dict(self._all("frequency", terms=listed(terms)))
        if within and counts:
            here, all_ = sum([folder[1] for folder in self.folders_of(asked)]), self._one("current")[0]
            few = [term for term in counts if min(counts[term], here) <= _COUNTED]
            counts = {term: max(count * here // max(all_, 1), 1) for term, count in counts.items()}
            found = self._all("frequency_within", queries=listed([within + _any_of([term]) for term in few]))
            counts.update({term: count for term, (count,) in zip(few, found, strict=True)})
        return counts

    def beginning(self, start: str) -> list[str]:
        """The commonest words that begin so."""
        rows = self._all("beginning", first=start, last=start[:-1] + chr(ord(start[-1]) + 1))
        return [term for term, _ in rows]

    def recent(self, asked: SearchFilter, limit: int) -> list[FoundPassage]:
        """The newest passages."""
        if asked.as_of:
            rows = self._all("recent_at", scopes=listed(asked.scopes), part=asked.part, known_at=asked.known_at or _ANY_TIME)
        else:
            rows = self._all(
                "recent", scopes=listed(asked.scopes), part=asked.part, type=asked.type, tags=listed(folded_tags(asked.tags)),
                now=asked.now, pool=limit,
            )  # fmt: skip
        return self.passages({row[0]: -0.0 for row in rows}, asked)

    def notes(
        self, scopes: tuple[str, ...], type: str | None = None, tags: tuple[str, ...] = (),
        before: str | None = None, most: int = -1, now: str = "", only: int | None = None, archived: bool = False,
    ) -> list[tuple[Any, ...]]:  # fmt: skip
        """The notes of some scopes, newest first, pinned ones before; each a row for `note_of_row`. `only` 1 are those in
        quarantine, 0 those that are not. With `archived` the archived notes, else the others."""
        where = {"scope": scopes[0]} if len(scopes) == 1 else {"scopes": listed(scopes)}
        return self._all(
            "notes_of_scope" if len(scopes) == 1 else "notes", **where, type=type, tags=listed(folded_tags(tags)),
            before=before, most=most, now=now, held=self._held, only=only, part="archive" if archived else "notes",
        )  # fmt: skip

    def notes_after(
        self, last: Note, scopes: tuple[str, ...], type: str | None, tags: tuple[str, ...], most: int,
        only: int | None = None, archived: bool = False,
    ) -> list[tuple[Any, ...]]:  # fmt: skip
        """The same, from behind one of them on."""
        return self._all(
            "notes_after", scopes=listed(scopes), type=type, tags=listed(folded_tags(tags)), most=most, pinned=int(last.pinned),
            updated=last.updated, id=last.id, scope=last.scope.folder, key=last.key, held=self._held,
            only=only, part="archive" if archived else "notes",
        )  # fmt: skip

    def notes_by_key(self, scope: str, after: str, most: int) -> list[tuple[Any, ...]]:
        """The notes of one scope by their files' names, from behind one on: whatever changes meanwhile, each is met once."""
        return self._all("notes_by_key", scope=scope, after=after, most=most, held=self._held)

    def notes_of(self, ids: list[int]) -> list[tuple[Any, ...]]:
        """The notes of these passages, each a row for `note_of_row` with its passage and what it is called behind it; none is
        archived."""
        return self._all("notes_of", ids=_numbers(ids), held=self._held)

    def note_named(self, scope: str, name: str) -> tuple[Any, ...] | None:
        """The note of that file, a row for `note_of_row`."""
        row: tuple[Any, ...] | None = self._one("note_named", scope=scope, name=name, held=self._held)
        return row

    def count(self, scopes: tuple[str, ...], now: str = "", only: int | None = None) -> int:
        """How many notes some scopes have that are not over; of those in quarantine (1), or of the others (0)."""
        agents = '"agent"' in self._held  # most notes are theirs, so they are not in the index of what may be held
        return int(self._one("count_notes", scopes=listed(scopes), now=now, held=self._held, agents=agents, only=only)[0])

    def facts(
        self, scopes: tuple[str, ...], names: Iterable[str] | None, label: str | None, as_of: str | None,
        last: Fact | None = None, most: int = -1, archived: bool = False,
    ) -> list[Fact]:  # fmt: skip
        """The facts of some scopes, by subject, label and date; about any of these names, folded. So many behind `last`. With
        `archived` also those of archived notes. Of what several files state, those that hold by all of them together: see
        `facts.settle`."""
        named = fold(label) if label else None
        page = {"scopes": listed(scopes), "named": named, "as_of": as_of, "held": self._held, "most": most}
        page["archived"] = archived
        known = sorted(names) if names is not None else []
        found: list[Fact] = []
        while True:
            behind = (fold(last.subject), fold(last.label), last.valid_from, last.line, last.path) if last else (None,) * 5
            after = dict(zip(("about", "label", "start", "line", "last"), behind, strict=True))
            if names is None:
                rows = self._all("facts", **page, **after)
            else:
                rows = self._all("facts_about", names=listed(known), keys=listed(map(subject_key, known)), **page, **after)
            stated = [fact_of(row) for row in rows]
            contested = [one for one, row in zip(stated, rows, strict=True) if row[-1]]
            if not contested:
                return found + stated
            settled = self._settled(scopes, {(one.subject, one.label) for one in contested}, as_of, archived)
            disputed = {(one.path, one.line) for one in contested}
            found += [
                settled.get(place, one) for one in stated if (place := (one.path, one.line)) in settled or place not in disputed
            ]
            if most < 0 or len(rows) < most or len(found) >= most:
                return found if most < 0 else found[:most]
            last = stated[-1]  # others took the place of some: more are needed for a page

    def _settled(
        self, scopes: tuple[str, ...], about: set[tuple[str, str]], as_of: str | None, archived: bool
    ) -> dict[tuple[str, int], Fact]:
        """The facts that hold, by path and line, of the subjects and labels that several files state something about."""
        groups = self._statements(scopes, about, archived)
        return {(one.path, one.line): one for group in groups for one in resolve_statements(group, as_of)}

    def _statements(
        self, scopes: tuple[str, ...], about: set[tuple[str, str]], archived: bool
    ) -> list[list[Statement]]:
        """For each of these subjects and labels all lines that state it."""
        pairs = {(fold(subject), fold(label)) for subject, label in about}
        names, labels = sorted({subject for subject, _ in pairs}), sorted({label for _, label in pairs})
        which = {"names": listed(names), "labels": listed(labels), "scopes": listed(scopes), "archived": archived}
        groups: dict[tuple[str, str], list[Statement]] = {}
        for row in self._all("statements", held=self._held, **which):
            one = fact_of(row)
            groups.setdefault((fold(one.subject), fold(one.label)), []).append(Statement(one, row[-2], bool(row[-1])))
        return [group for pair, group in groups.items() if pair in pairs]

    def stale_lines(self, scopes: tuple[str, ...], now: str) -> set[str]:
        """Return every line of the notes and files of these scopes that states a fact which no longer holds because another
        file has a newer line, as `path:line`. Lines that their own file closed are not among them."""
        if not self.has_facts():
            return set()
        contested = {(subject, label) for subject, label in self._all("contested", scopes=listed(scopes), now=now)}
        if not contested:
            return set()
        groups = self._statements(scopes, contested, True)
        return {f"{one.path}:{one.line}" for group in groups for one in find_outdated(group, now) if not one.archived}

    def newest_facts(self, scopes: tuple[str, ...], now: str, most: int) -> list[Fact]:
        """Return the facts that hold now, newest first; none of a note in quarantine or in the archive."""
        if not self.has_facts():
            return []
        rows = self._all("newest_facts", scopes=listed(scopes), now=now, held=self._held, most=most)
        stated = [fact_of(row) for row in rows]
        contested = {(one.path, one.line) for one, row in zip(stated, rows, strict=True) if row[-1]}
        if not contested:
            return stated
        about = {(one.subject, one.label) for one in stated if (one.path, one.line) in contested}
        settled = self._settled(scopes, about, now, True)
        places = [(one, (one.path, one.line)) for one in stated]
        return [settled.get(place, one) for one, place in places if place in settled or place not in contested]

    def stating(self, scope: str, subject: str) -> str | None:
        """The key of a note that states facts about a subject; of an archived one if no other does."""
        row = self._one("stating", scope=scope, about=fold(subject))
        return str(row[0]) if row else None

    def has_facts(self) -> bool:
        """Whether anything states a fact."""
        return self._one("any_fact") is not None

    def declared(self, scopes: tuple[str, ...], labels: list[str]) -> list[tuple[str, str, tuple[str, ...]]]:
        """The facts that hold under these labels: subject, value, links."""
        rows = self._all("declared", scopes=listed(scopes), labels=listed(labels))
        return [(subject, value, tuple(links.split("\n")) if links else ()) for subject, value, links in rows]

    def stating_passages(self, names: Iterable[str], asked: SearchFilter, now: str, most: int) -> list[tuple[int, str, str]]:
        """The passages that state what holds now about any of these names: passage, subject, label."""
        rows = self._all(
            "stating_passages", names=listed(names), scopes=listed(asked.scopes), part=asked.part, now=now, most=most
        )
        contested = {(subject, label) for _, subject, label, _, _, several in rows if several}
        settled = self._settled(asked.scopes, contested, now, True) if contested else {}
        return [
            (id, subject, label) for id, subject, label, path, line, several in rows if not several or (path, line) in settled
        ]

    def subjects_of(self, ids: Iterable[int], scopes: tuple[str, ...]) -> list[str]:
        """The folded subjects of the facts that stand in the files of these passages."""
        return [about for (about,) in self._all("subjects_of", ids=_numbers(ids), scopes=listed(scopes))]

    def stated_at(self, names: Iterable[str], asked: SearchFilter, at: str, most: int) -> list[FoundFact]:
        """The facts about any of these names, or so labelled, that hold at a moment."""
        rows = self._all(
            "stated_at", names=listed(names), scopes=listed(asked.scopes), as_of=at, known_at=asked.known_at or _ANY_TIME,
            type=asked.type, tags=listed(folded_tags(asked.tags)), held=self._held, most=most,
        )  # fmt: skip
        stated = [
            FoundFact(fact_of(row), row[9], row[10], row[12], row[13], tags_from(row[14]), source_from(row[15]), row[16])
            for row in rows
        ]
        contested = {(row[0], row[1]) for row in rows if row[-1]}
        if not contested:
            return stated
        settled = self._settled(asked.scopes, contested, at, True)
        disputed = {(one.fact.path, one.fact.line) for one, row in zip(stated, rows, strict=True) if row[-1]}
        return [
            one.replace(fact=settled.get(place, one.fact))
            for one in stated
            if (place := (one.fact.path, one.fact.line)) in settled or place not in disputed
        ]

    def amounts(self, scopes: tuple[str, ...] | None) -> tuple[int, int]:
        """Passages and facts of some scopes, or of all."""
        if scopes is None:
            return self.totals()[2:]
        row: tuple[int, int] = self._one("amounts", scopes=listed(scopes))
        return row

    def exposed(self, scopes: tuple[str, ...]) -> frozenset[str]:
        """The paths of the notes of some scopes that seem to hold a secret."""
        return frozenset([row[0] for row in self._all("exposed", scopes=listed(scopes))])

    def problems(self, scopes: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
        """Files that are not as they should be."""
        return self._all("problems", scopes=listed(scopes))

    def unsaid(self, words: list[str]) -> list[str]:
        """Those of these words that the dictionaries still have though nothing that is catalogued says them."""
        self._all("past_words")
        left = []
        for dictionary, match in (("frequency", "match_now"), ("past_frequency", "match_past")):
            known = [row[0] for row in self._all(dictionary, terms=listed(words))]
            left += [word for word in known if not self._all(match, query=f'"{word}"', pool=1)]
        return left

    def asking(self, asked: SearchFilter) -> AbstractContextManager[object]:
        """Around one question: what it asks twice need not be asked twice."""
        from contextlib import nullcontext

        return nullcontext()

    def reading(self, replica: bool = False) -> AbstractContextManager[object]:
        """Around what is only read: one transaction, where beginning one costs time; of a replica, where there is one."""
        from contextlib import nullcontext

        return nullcontext()

    def asked(self, statement: str, **values: Any) -> list[Any]:
        """The rows of a statement by its name."""
        return self._all(statement, **values)

    def verify(self, progress: Progress = Progress()) -> str:
        """Empty if the whole catalogue is sound, else what is wrong with it."""
        from holdfast.index.verify import wrong_in

        try:
            return wrong_in(Database(*self._at), SQL, progress)  # beside us: nobody waits while all is read
        except IndexReset as error:
            return str(error)

    def spoiled(self) -> bool:
        """Whether it holds what was never written; then it begins anew. Of several threads that ask one looks, which may take
        long, and the others wait for what it finds."""
        before = self._verdicts
        waited = self._looking.acquire(timeout=_LONG_LOOK)
        try:
            if self._verdicts == before:
                broken = bool(self.verify())
                if broken:
                    self.start_anew()
                self._verdicts, self._broken = before + 1, broken
            return self._broken
        finally:
            if waited:
                self._looking.release()

    def passages(self, scores: dict[int, float], asked: SearchFilter) -> list[FoundPassage]:
        """Those of these passages that the question may see; what has the lowest number comes first."""
        found = [found_of(row, -scores[row[0]]) for row in self.rows(scores, asked)]
        return sorted(found, key=lambda one: -one.score)

    def rows(self, ids: Iterable[int], asked: SearchFilter) -> list[tuple[Any, ...]]:
        """Those of these passages that the question may see, each a row for `found_of`."""
        wanted = _numbers(ids)
        if wanted == "[]":
            return []
        name = "passages_at" if asked.as_of else "passages"
        return self._all(
            name, ids=wanted, scopes=listed(asked.scopes), type=asked.type,
            tags=listed(folded_tags(asked.tags)), now=asked.now, as_of=asked.as_of, known_at=asked.known_at or _ANY_TIME,
            held=self._held,
        )  # fmt: skip

    def outlines(self, ids: Iterable[int], asked: SearchFilter) -> list[tuple[Any, ...]]:
        """Of the current ones of these what an order is made of: only the columns of OUTLINE, for they are many."""
        return self._all(
            "outlines", ids=_numbers(ids), scopes=listed(asked.scopes), type=asked.type, tags=listed(folded_tags(asked.tags)),
            now=asked.now,
        )  # fmt: skip

    def note_of_id(self, scopes: tuple[str, ...], id: str) -> tuple[str, str, str] | None:
        """The note of that id, if any of these scopes has it: scope, name, how far it can be trusted."""
        row: tuple[str, str, str] | None = self._one("note_of_id", scopes=listed(scopes), id=id)
        return row

    def made_from(self, scopes: tuple[str, ...], what: str) -> list[tuple[str, str]]:
        """The notes that have a version made from something whose name begins so: scope, name."""
        return self._all("made_from", scopes=listed(scopes), first=what, last=what + chr(0x10FFFF))

    def made_from_any(self, scopes: tuple[str, ...], meant: Callable[[str], bool]) -> list[tuple[str, str]]:
        """The notes that have a version made from anything that is meant: scope, name."""
        what = [row[0] for row in self._all("made_of_what") if meant(row[0])]
        return self._all("made_from_any", scopes=listed(scopes), what=listed(what)) if what else []

    def held_saying(self, scopes: tuple[str, ...], texts: Iterable[str]) -> list[tuple[str, str, str]]:
        """The notes in quarantine that say, or did, one of these texts: the text, how far it was trusted, the note's id."""
        rows = self._all("held_saying", scopes=listed(scopes), texts=listed(texts), held=self._held)
        return [(text, source_from(source).trusted if past else trust, id) for text, trust, id, past, source in rows]

    def said_by(self, scopes: tuple[str, ...], name: str) -> list[tuple[str, str]]:
        """The notes that have a version whose source names this: an origin, an agent, a client, a session."""
        return self._all("said_by", scopes=listed(scopes), named=name)

    # --- the file ------------------------------------------------------------------------------------------------

    def start_anew(self) -> None:
        """Throw the catalogue away; the next look at the shelf fills a new one."""
        self._database.renew()

    def go_without_file(self) -> None:
        """Answer from memory: somebody keeps deleting the file."""
        self._database.go_without_file("its file keeps disappearing")

    def close(self) -> None:
        self._database.let_go += 1
        self._database.close()


def _any_of(terms: list[str]) -> str:
    """What FTS5 is asked for: any of these words."""
    return "{names text} : (" + " OR ".join([f'"{term}"' for term in terms]) + ")"


def _numbers(ids: Iterable[int]) -> str:
    return "[" + ",".join(map(str, ids)) + "]"


def found_of(row: tuple[Any, ...], score: float) -> FoundPassage:
    (id, seq, past, first, last, type, tags, source, recorded, start, end, doc, kind, name, key, note_id, versions, scope,
     part, turn, speaker, offset, words, held) = row  # fmt: skip
    return FoundPassage(
        id, seq, bool(past), (first, last), type, tags_from(tags), source_from(source), recorded, start, end, doc, kind,
        name, key, note_id, versions, scope, part, turn, speaker, offset, words, bool(held), score,
    )  # fmt: skip


def fact_of(row: tuple[Any, ...]) -> Fact:
    """A fact as the catalogue has it."""
    subject, label, value, start, end, retired, links, line, scope, part, name, held = row[:12]
    return Fact(
        subject, label, value, start, end, retired, tuple(links.split("\n")) if links else (), Scope.of_folder(scope),
        f"{scope}/{part}/{name}", line, bool(held), part == "archive",
    )  # fmt: skip


def note_of_row(row: tuple[Any, ...], archived: bool = False) -> Note:
    """A note as the catalogue has it."""
    (scope, name, key, id, _, type, tags, created, updated, source, start, end, pinned, first, last, version, versions,
     held, text) = row  # fmt: skip
    return Note(
        Scope.of_folder(scope), key, id, text, type, tags_from(tags), created, updated, source_from(source), start, end,
        bool(pinned), f"{scope}/{'archive' if archived else 'notes'}/{name}", (first, last), version, versions, bool(held),
        archived,
    )  # fmt: skip


def tags_from(kept: str) -> tuple[str, ...]:
    """The tags as written: the first half of what is kept, the second is folded for filters."""
    every = kept.strip("\n").split("\n")
    return tuple(every[: len(every) // 2])


def source_from(kept: str) -> Source:
    if not kept:
        return Source("user")
    origin, agent, client, session, *more = kept.split("\n")
    return Source(origin, agent or None, client or None, session or None, tuple(more[1:]), more[0] or None if more else None)


def folded_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([tag.casefold() for tag in tags])


def read_at(found: FoundPassage) -> tuple[str, str, str]:
    """Where a passage is read: scope, part and name, and of a turn where its line begins."""
    return found.scope, found.part, f"{found.name}:{found.offset}" if found.turn else found.name


def listed(values: Iterable[str]) -> str:
    """A JSON list of strings, without importing json for a handful of plain ones."""
    parts = []
    for value in values:
        plain = value.isascii() and value.isprintable() and '"' not in value and "\\" not in value
        if not plain:
            import json

            return json.dumps(list(values))
        parts.append(f'"{value}"')
    return "[" + ",".join(parts) + "]"


def by_words(found: list[FoundPassage], explain: bool, reason: str = "") -> SearchResult:
    """What a search by words alone found; that they are in it, and how telling they are, is all its order goes by."""
    why = {one.passage: {"bm25": [round(one.score, 3)] * 2} for one in found} if explain else {}
    return SearchResult(found, "keyword", reason, why)


def _in_the_child() -> None:
    """Whoever looked through a catalogue did not come along."""
    SqliteIndex._looking = allocate_lock()


os.register_at_fork(after_in_child=_in_the_child)
