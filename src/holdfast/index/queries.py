"""Queries that are the same for SQLite and PostgreSQL: both have a statement of the same name for each.

`IndexQueries` turns rows into records and makes the decisions that no database makes: which terms to look for, how many
candidates to read, which of several files' facts hold.
"""

from __future__ import annotations

from _thread import allocate_lock
from _weakref import ref

from holdfast.base.fork import on_fork
from holdfast.base.ids import FileId, unsigned
from holdfast.index import tokenizer
from holdfast.index.filters import SearchFilter, fold_tags
from holdfast.index.results import (
    AgentUsage,
    FileProblem,
    FolderFiles,
    FolderSize,
    FolderState,
    FoundFact,
    FoundFactRow,
    FoundNote,
    FoundPassage,
    IndexedFile,
    LabelledFact,
    MentionRow,
    NoteLocation,
    NoteRow,
    PassageRow,
    PassageText,
    QuarantinedText,
    RelationRow,
    StatedFactRow,
    StatementRow,
    StatingPassage,
    SubjectRow,
    Superseding,
    Totals,
    decode_links,
    decode_source,
    decode_tags,
    relation_path,
)
from holdfast.models import Fact, Note, Progress, Relation
from holdfast.sqlite import DatabaseReset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    from holdfast.formats.facts import Statement
    from holdfast.index.results import Outline, PieceRow

    Contestable = TypeVar("Contestable", StatedFactRow, FoundFactRow, StatingPassage)

_VERIFY_SECONDS = 600.0  # that a thread waits while another one checks a large index
_TERM_BATCH = 5_000  # terms looked up at once
IndexReset = DatabaseReset  # the index was not usable and has been replaced; fill it and query again


class IndexQueries:
    """The part of `Index` that runs named statements; a database adds how it runs them, full-text search and writing."""

    def __init__(self, quarantine: tuple[str, ...]) -> None:
        self._quarantine = quarantine  # the origins whose notes are in quarantine
        self._verify_lock = allocate_lock()  # held while one thread checks the whole index
        self._verify_count, self._was_damaged = 0, False  # how many checks there were, and the result of the last
        _indexes.add(ref(self, _indexes.discard))

    # --- what a database adds -------------------------------------------------------------------------------------------------

    def _rows(self, statement: str, /, **values: Any) -> list[Any]:
        """Return the rows of a named query; a list or tuple among the values is a list in SQL."""
        raise NotImplementedError

    def _row(self, statement: str, /, **values: Any) -> Any:
        """Return the first row of a named query, or None."""
        rows = self._rows(statement, **values)
        return rows[0] if rows else None

    def count_terms(self, terms: list[str], filter: SearchFilter) -> dict[str, int]:
        raise NotImplementedError

    def match_passages(self, terms: list[str], filter: SearchFilter, most: int) -> dict[int, float]:
        raise NotImplementedError

    def _find_orphaned(self, terms: list[str]) -> list[str]:
        raise NotImplementedError

    def cache_query(self, filter: SearchFilter) -> AbstractContextManager[object]:
        raise NotImplementedError

    def read_transaction(self, replica: bool = False) -> AbstractContextManager[object]:
        raise NotImplementedError

    def verify(self, progress: Progress = Progress()) -> str:
        raise NotImplementedError

    def reset(self) -> None:
        raise NotImplementedError

    # --- search ---------------------------------------------------------------------------------------------------------------

    def search(self, query: str, filter: SearchFilter, limit: int) -> list[FoundPassage]:
        """Return the passages that have any of the words, best first; at least `limit` if there are as many."""
        with self.read_transaction(), self.cache_query(filter):
            if filter.as_of:  # past versions may have words that no current passage has
                terms = list(tokenizer.query_terms(query))
            else:
                terms = tokenizer.rarest_terms(*self.resolve_terms(query, filter))
            pool = max(limit * 4, 40)
            while True:
                scores = self.match_passages(terms, filter, pool)
                found = self.find_passages(scores, filter)
                if len(found) >= limit or len(scores) < pool:
                    return found
                pool *= 8

    def resolve_terms(self, query: str, filter: SearchFilter) -> tuple[dict[str, str], dict[str, int]]:
        """Return the terms to look for, each with the word of the query, and how many passages have each term."""
        return tokenizer.resolve_terms(query, lambda terms: self.count_terms(terms, filter), self.find_terms_by_prefix)

    def find_terms_by_prefix(self, prefix: str) -> list[str]:
        """Return the most common terms that start with this prefix."""
        rows = self._rows("terms_by_prefix", first=prefix, last=prefix[:-1] + chr(ord(prefix[-1]) + 1))
        return [term for term, _ in rows]

    def find_passages(self, scores: dict[int, float], filter: SearchFilter) -> list[FoundPassage]:
        """Return those of these passages that pass the filter, the lowest number first; a passage's score is the negative."""
        found = [row.to_passage(-scores[row.id]) for row in self.find_rows(scores, filter)]
        return sorted(found, key=lambda passage: -passage.score)

    def find_rows(self, ids: Iterable[int], filter: SearchFilter) -> list[PassageRow]:
        """Return the rows of those of these passages that pass the filter."""
        wanted = [*ids]
        if not wanted:
            return []
        statement = "passages_at" if filter.as_of else "passages"
        rows = self._rows(statement, ids=wanted, quarantine=self._quarantine, **filter.parameters())
        return [PassageRow(*row) for row in rows]

    def find_outlines(self, ids: Iterable[int], filter: SearchFilter) -> list[Outline]:
        """Return what ranking needs of those of these passages that are current and pass the filter, but for `filter.now`."""
        return self._rows("outlines", ids=[*ids], **filter.parameters())

    def find_recent(self, filter: SearchFilter, limit: int) -> list[FoundPassage]:
        """Return the newest passages."""
        rows = self._rows("recent_at" if filter.as_of else "recent", pool=limit, **filter.parameters())
        return self.find_passages({id: -0.0 for (id,) in rows}, filter)

    def find_folders(self, filter: SearchFilter) -> list[FolderSize]:
        """Return the folders that a filter selects."""
        return [FolderSize(*row) for row in self._rows("folders", scopes=filter.scopes, part=filter.part)]

    def count_passages(self, filter: SearchFilter) -> int:
        """Return how many passages the folders of a filter have."""
        return sum([folder.passages for folder in self.find_folders(filter)])

    def count_words(self, ids: list[int]) -> dict[int, int]:
        """Return how many words each of these passages has."""
        return dict(self._rows("passage_words", ids=ids))

    def read_pieces(self, ids: list[int]) -> list[PieceRow]:
        """Return the pieces of these passages, in order."""
        return self._rows("pieces", ids=ids)

    def read_texts(self, ids: list[int]) -> list[PassageText]:
        """Return the texts of these passages."""
        return [PassageText(*row) for row in self._rows("passage_texts", ids=ids)]

    def find_adjacent_turns(self, ids: list[int]) -> list[int]:
        """Return these turns, and those before and after each, where people speak under their names."""
        return [id for (id,) in self._rows("adjacent_turns", ids=ids)]

    # --- notes ----------------------------------------------------------------------------------------------------------------

    def list_notes(
        self, scopes: tuple[str, ...], type: str | None = None, tags: tuple[str, ...] = (), before: str | None = None,
        most: int = -1, now: str = "", only: int | None = None, archived: bool = False,
    ) -> list[Note]:  # fmt: skip
        """Return the notes of some scopes, pinned notes first, then newest first.

        `before` keeps notes that were last used earlier, `now` leaves out notes that have ended, `only` keeps those in
        quarantine (1) or the others (0), and `archived` returns archived notes instead of current ones.
        """
        return self._notes(
            "notes_of_scope" if len(scopes) == 1 else "notes", scope="".join(scopes[:1]), scopes=scopes, type=type,
            tags=fold_tags(tags), before=before, most=most, now=now, only=only, part="archive" if archived else "notes",
        )  # fmt: skip

    def list_notes_after(
        self, last: Note, scopes: tuple[str, ...], *, type: str | None, tags: tuple[str, ...], most: int,
        only: int | None = None, archived: bool = False,
    ) -> list[Note]:  # fmt: skip
        """Return the notes that follow `last` in the order of `list_notes`."""
        return self._notes(
            "notes_after", scopes=scopes, type=type, tags=fold_tags(tags), most=most, pinned=int(last.pinned),
            updated=last.updated, id=last.id, scope=last.scope.folder, key=last.key, only=only,
            part="archive" if archived else "notes",
        )  # fmt: skip

    def list_notes_by_key(self, scope: str, after: str, most: int) -> list[Note]:
        """Return the notes of a scope by key, after a file name: each is returned once, whatever changes meanwhile."""
        return self._notes("notes_by_key", scope=scope, after=after, most=most)

    def find_note(self, scope: str, name: str) -> Note | None:
        """Return the note of a file, or None."""
        notes = self._notes("note_of_file", scope=scope, name=name)
        return notes[0] if notes else None

    def _notes(self, statement: str, **values: Any) -> list[Note]:
        rows = self._rows(statement, quarantine=self._quarantine, **values)
        return [NoteRow(*row).to_note() for row in rows]

    def count_notes(self, scopes: tuple[str, ...], now: str = "", only: int | None = None) -> int:
        """Return how many notes of some scopes have not ended; only those in quarantine (1), or only the others (0)."""
        agents = "agent" in self._quarantine  # most notes are by agents, so the index of doubted notes leaves them out
        values = {"now": now, "quarantine": self._quarantine, "agents": agents, "only": only}
        return int(self._row("count_notes", scopes=scopes, **values)[0])

    def find_note_by_id(self, scopes: tuple[str, ...], id: str) -> NoteLocation | None:
        """Return where the note of an id is, if it is in one of these scopes."""
        row = self._row("note_of_id", scopes=scopes, id=id)
        return NoteLocation(*row) if row else None

    def find_notes_made_from(self, scopes: tuple[str, ...], prefix: str) -> list[tuple[str, str]]:
        """Return scope and name of the notes with a version made from a source whose name starts with this prefix."""
        return self._rows("made_from", scopes=scopes, first=prefix, last=prefix + chr(0x10FFFF))

    def find_notes_made_from_any(self, scopes: tuple[str, ...], matches: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Return scope and name of the notes with a version made from a source whose name matches."""
        sources = [source for (source,) in self._rows("made_from_sources") if matches(source)]
        return self._rows("made_from_any", scopes=scopes, what=sources) if sources else []

    def find_notes_by_source(self, scopes: tuple[str, ...], source: str) -> list[tuple[str, str]]:
        """Return scope and name of the notes with a version of this origin, agent, client or session."""
        return self._rows("notes_by_source", scopes=scopes, source=source)

    def has_quarantined(self) -> bool:
        """Return whether any note is in quarantine."""
        return self._row("any_quarantined", quarantine=self._quarantine) is not None

    def find_quarantined_texts(self, scopes: tuple[str, ...], texts: Iterable[str]) -> list[QuarantinedText]:
        """Return those of these texts that a note in quarantine has or had."""
        rows = self._rows("quarantined_texts", scopes=scopes, texts=[*texts], quarantine=self._quarantine)
        return [
            QuarantinedText(text, decode_source(source).trusted if past else trust, id)
            for text, trust, id, past, source in rows
        ]

    def find_exposed_notes(self, scopes: tuple[str, ...]) -> frozenset[str]:
        """Return the paths of the notes that seem to hold a secret."""
        return frozenset([path for (path,) in self._rows("exposed_notes", scopes=scopes)])

    # --- relations ------------------------------------------------------------------------------------------------------------

    def has_relations(self) -> bool:
        """Return whether any note states a relation."""
        return self._row("any_relation") is not None

    def find_superseding(self, docs: Iterable[int], scopes: tuple[str, ...], now: str) -> list[Superseding]:
        """Return the current notes of some scopes that superseded one of these; not those in quarantine."""
        rows = self._rows("superseding", docs=[*docs], scopes=scopes, now=now, quarantine=self._quarantine)
        return [Superseding(*row) for row in rows]

    def list_superseded(self, scopes: tuple[str, ...], now: str) -> dict[int, str]:
        """Return the paths of the valid notes of some scopes that a note supersedes, whether that is current or not, by row."""
        if not self.has_relations():
            return {}
        return dict(self._rows("superseded", scopes=scopes, now=now, quarantine=self._quarantine))

    def list_relations(self, scopes: tuple[str, ...], *, note: Note | None = None, status: str | None = None) -> list[Relation]:
        """Return the relations between notes of some scopes; those of one note, in either direction, if it is given."""
        of_note: dict[str, Any] = {"targets": None, "scope": "", "name": ""}
        if note is not None:
            path = relation_path(note.scope.folder, note.key)
            of_note = {"targets": [one for one in (note.id, path) if one], "scope": note.scope.folder, "name": f"{note.key}.md"}
        rows = self._rows("relations", scopes=scopes, status=status, **of_note)
        return [RelationRow(*row).to_relation() for row in rows]

    def find_relation_sources(self, targets: Iterable[str]) -> list[tuple[str, str, str]]:
        """Return scope, part and name of the notes that state a relation to one of these: ids, or scopes and keys."""
        return self._rows("relation_sources", targets=[*targets]) if self.has_relations() else []

    def list_mentions(self, scopes: tuple[str, ...]) -> list[Fact]:
        """Return the links in notes and files that are not in a fact, as facts without a date."""
        rows = self._rows("mentions", scopes=scopes, quarantine=self._quarantine)
        return [fact for row in rows for fact in MentionRow(*row).to_facts()]

    # --- facts ----------------------------------------------------------------------------------------------------------------

    def has_facts(self) -> bool:
        """Return whether any file states a fact."""
        return self._row("any_fact") is not None

    def find_facts(
        self, scopes: tuple[str, ...], names: Iterable[str] | None, label: str | None, as_of: str | None,
        *, last: Fact | None = None, most: int = -1, archived: bool = False,
    ) -> list[Fact]:  # fmt: skip
        """Return the facts of some scopes by subject, label and date, as settled among the files that state them.

        `names` (folded) keeps facts about any of these subjects, `last` starts after a fact, and `archived` includes the facts
        of archived notes.
        """
        from holdfast.formats.facts import normalize_name, subject_key

        page: dict[str, Any] = {
            "scopes": scopes, "named": normalize_name(label) if label else None, "as_of": as_of, "quarantine": self._quarantine,
            "most": most, "archived": archived,
        }  # fmt: skip
        known = sorted(names) if names is not None else []
        found: list[Fact] = []
        while True:
            behind: tuple[object, ...] = (None,) * 5
            if last:
                subject, name = normalize_name(last.subject), normalize_name(last.label)
                behind = (subject, name, last.valid_from, last.line, last.path)
            page.update(zip(("about", "label", "start", "line", "last"), behind, strict=True))
            if names is None:
                read = self._rows("facts", **page)
            else:
                read = self._rows("facts_about", names=known, keys=[subject_key(name) for name in known], **page)
            rows = [StatedFactRow(*row) for row in read]
            found += [settled or row.to_fact() for row, settled in self._settle(rows, scopes, as_of, archived)]
            if most < 0 or len(rows) < most or len(found) >= most:
                return found if most < 0 else found[:most]
            last = rows[-1].to_fact()  # some rows did not hold: read on until the page is full

    def list_subjects(self, scopes: tuple[str, ...], *, contains: str, after: str, now: str, most: int) -> list[SubjectRow]:
        """Return the subjects of facts by folded name, after one of these and with a text in it."""
        rows = self._rows("subjects", scopes=scopes, contains=contains, after=after, now=now, most=most)
        return [SubjectRow(*row) for row in rows]

    def find_newest_facts(self, scopes: tuple[str, ...], now: str, most: int) -> list[Fact]:
        """Return the facts that hold now, newest first; none of a note in quarantine or in the archive."""
        if not self.has_facts():
            return []
        rows = [
            StatedFactRow(*row)
            for row in self._rows("newest_facts", scopes=scopes, now=now, quarantine=self._quarantine, most=most)
        ]
        return [settled or row.to_fact() for row, settled in self._settle(rows, scopes, now, archived=True)]

    def find_facts_at(self, names: Iterable[str], filter: SearchFilter, at: str, most: int) -> list[FoundFact]:
        """Return the facts that hold at a moment and have one of these names (folded) as subject or label."""
        values = filter.parameters() | {"as_of": at}
        rows = [
            FoundFactRow(*row)
            for row in self._rows("facts_at", names=[*names], quarantine=self._quarantine, most=most, **values)
        ]
        return [
            FoundFact(
                fact=settled or row.to_fact(), part=row.part, name=row.name, key=row.key, note_id=row.note_id,
                tags=decode_tags(row.tags), source=decode_source(row.source), updated=row.updated,
                file_id=FileId(unsigned(row.ino), row.ctime, row.size),
            )
            for row, settled in self._settle(rows, filter.scopes, at, archived=True)
        ]  # fmt: skip

    def find_stating_passages(self, names: Iterable[str], filter: SearchFilter, now: str, most: int) -> list[StatingPassage]:
        """Return the passages that state a fact which holds now and has one of these names (folded) as subject or label."""
        values = filter.parameters() | {"now": now}
        rows = [StatingPassage(*row) for row in self._rows("stating_passages", names=[*names], most=most, **values)]
        return [row for row, _ in self._settle(rows, filter.scopes, now, archived=True)]

    def find_stale_lines(self, scopes: tuple[str, ...], now: str) -> set[str]:
        """Return, as `path:line`, the lines that state a fact which a newer line of another file replaced; not those that
        their own file closed."""
        if not self.has_facts():
            return set()
        from holdfast.formats.facts import find_outdated

        contested = {(subject, label) for subject, label in self._rows("contested", scopes=scopes, now=now)}
        groups = self._read_statements(scopes, contested, archived=True) if contested else []
        return {f"{fact.path}:{fact.line}" for group in groups for fact in find_outdated(group, now) if not fact.archived}

    def find_note_stating(self, scope: str, subject: str) -> str | None:
        """Return the key of a note that states facts about a subject, of an archived note if no other does, or None."""
        from holdfast.formats.facts import normalize_name

        row = self._row("note_stating", scope=scope, about=normalize_name(subject))
        return str(row[0]) if row else None

    def find_labelled_facts(self, scopes: tuple[str, ...], labels: list[str]) -> list[LabelledFact]:
        """Return the facts with these labels that hold now."""
        rows = self._rows("labelled_facts", scopes=scopes, labels=labels)
        return [LabelledFact(subject, value, decode_links(links)) for subject, value, links in rows]

    def find_subjects(self, ids: Iterable[int], scopes: tuple[str, ...]) -> list[str]:
        """Return the folded subjects of the facts in the files of these passages."""
        return [subject for (subject,) in self._rows("subjects_of", ids=[*ids], scopes=scopes)]

    def _settle(
        self, rows: list[Contestable], scopes: tuple[str, ...], at: str | None, archived: bool
    ) -> list[tuple[Contestable, Fact | None]]:
        """Return the rows that hold, each with the fact as settled among several files; None where one file alone states it."""
        contested = {(row.subject, row.label) for row in rows if row.stated_elsewhere}
        if not contested:
            return [(row, None) for row in rows]
        from holdfast.formats.facts import resolve_statements

        groups = self._read_statements(scopes, contested, archived)
        settled = {(fact.path, fact.line): fact for group in groups for fact in resolve_statements(group, at)}
        return [
            (row, settled.get((row.path, row.line)))
            for row in rows
            if not row.stated_elsewhere or (row.path, row.line) in settled
        ]

    def _read_statements(
        self, scopes: tuple[str, ...], contested: set[tuple[str, str]], archived: bool
    ) -> list[list[Statement]]:
        """Return, for each of these subjects and labels, all lines that state it."""
        from holdfast.formats.facts import Statement, normalize_name

        pairs = {(normalize_name(subject), normalize_name(label)) for subject, label in contested}
        names, labels = sorted({subject for subject, _ in pairs}), sorted({label for _, label in pairs})
        rows = self._rows(
            "statements", names=names, labels=labels, scopes=scopes, archived=archived, quarantine=self._quarantine
        )
        groups: dict[tuple[str, str], list[Statement]] = {}
        for row in [StatementRow(*row) for row in rows]:
            statement = Statement(row.to_fact(), row.updated, bool(row.prose))
            groups.setdefault((normalize_name(row.subject), normalize_name(row.label)), []).append(statement)
        return [group for pair, group in groups.items() if pair in pairs]

    # --- files ----------------------------------------------------------------------------------------------------------------

    def known_folders(self, scopes: tuple[str, ...]) -> dict[tuple[str, str], FolderState]:
        """Return the indexed folders of these scopes, by scope and part."""
        rows = self._rows("known_folders", scopes=scopes)
        return {(scope, part): FolderState(id, fingerprint) for scope, part, id, fingerprint in rows}

    def find_folder(self, scope: str, part: str) -> FolderState | None:
        """Return an indexed folder, or None."""
        row = self._row("folder_of", scope=scope, part=part)
        return FolderState(*row) if row else None

    def file_ids(self, scope: str, part: str) -> dict[str, FileId]:
        """Return the inode, ctime and size of every indexed file of a folder, by name."""
        folder = self.find_folder(scope, part)
        rows = self._rows("file_ids", folder=folder.id) if folder else []
        return {name: FileId(unsigned(ino), ctime, size) for name, ino, ctime, size in rows}

    def file_id(self, scope: str, part: str, name: str) -> FileId | None:
        """Return the inode, ctime and size of an indexed file, or None."""
        file = self._find_file(scope, part, name)
        return file.file_id if file else None

    def file_digest(self, scope: str, part: str, name: str) -> tuple[int, str] | None:
        """Return the inode and the digest of an indexed file, or None."""
        file = self._find_file(scope, part, name)
        return (file.file_id.inode, file.digest) if file else None

    def has_older_versions(self, scope: str, part: str, name: str, note_id: str, count: int) -> bool:
        """Return whether the first `count` versions of this note are indexed."""
        from holdfast.index.rows import has_older_rows  # not for a recall: it reads facts

        return has_older_rows(self._find_file(scope, part, name), note_id, count)

    def agent_usage(self, agent: str) -> AgentUsage:
        """Return how many notes an agent has, and the bytes of its notes and files."""
        row = self._row("agent_usage", agent=agent)
        return AgentUsage(*map(int, row)) if row else AgentUsage()

    def has_note(self, scope: str, name: str, part: str = "notes") -> bool:
        """Return whether a file is indexed."""
        return self._find_file(scope, part, name) is not None

    def _find_file(self, scope: str, part: str, name: str) -> IndexedFile | None:
        folder = self.find_folder(scope, part)
        row = self._row("indexed_file", folder=folder.id, name=name) if folder else None
        return IndexedFile(*row) if row else None

    def count_files(self) -> list[FolderFiles]:
        """Return, for each folder, how many files are indexed."""
        return [FolderFiles(*row) for row in self._rows("file_counts")]

    def count_all(self) -> Totals:
        """Return how much the index holds."""
        return Totals(*self._row("totals"))

    def count_types(self, scopes: tuple[str, ...]) -> dict[str, int]:
        """Return how many notes of each type some scopes have."""
        return {str(type): int(count) for type, count in self._rows("type_counts", scopes=scopes)}

    def count_versions_by_day(self, scopes: tuple[str, ...], since: str) -> dict[str, int]:
        """Return how many versions of notes were recorded on each day since a moment; days without any are left out."""
        return {str(day): int(count) for day, count in self._rows("versions_by_day", scopes=scopes, since=since)}

    def list_note_ids(self, scopes: tuple[str, ...]) -> list[str]:
        """Return the ids of the notes of some scopes, archived ones included; notes without an id are left out."""
        return [str(id) for (id,) in self._rows("note_ids", scopes=scopes)]

    def find_notes_by_id(self, ids: list[str], scopes: tuple[str, ...]) -> dict[str, FoundNote]:
        """Return those of the notes with these ids that are in some scopes, by id; none that is in quarantine or archived."""
        rows = self._rows("notes_by_id", ids=ids, scopes=scopes, quarantine=self._quarantine)
        return {str(id): FoundNote(*values) for id, *values in rows}

    def count_passages_and_facts(self, scopes: tuple[str, ...] | None) -> tuple[int, int]:
        """Return how many passages and facts some scopes have, or all."""
        if scopes is None:
            totals = self.count_all()
            return totals.passages, totals.facts
        passages, facts = self._row("passages_and_facts", scopes=scopes)
        return passages, facts

    def find_problems(self, scopes: tuple[str, ...]) -> list[FileProblem]:
        """Return the indexed files that are not as they should be."""
        return [FileProblem(*row) for row in self._rows("problems", scopes=scopes)]

    # --- checks ---------------------------------------------------------------------------------------------------------------

    def list_texts(self, transcripts: bool, scopes: Sequence[str] | None = None) -> list[str]:
        """Return every indexed text, or those of some scopes, with or without the turns of transcripts."""
        if scopes is None:
            return [str(text) for (text,) in self._rows("all_texts", transcripts=transcripts)]
        return [str(text) for (text,) in self._rows("texts_of_scopes", transcripts=transcripts, scopes=tuple(scopes))]

    def read_vectors(self, scope: str, part: str, files: list[str]) -> list[bytes]:
        """Return the numbers of every vector of these files, of all models."""
        return [numbers for (numbers,) in self._rows("vectors_of_files", scope=scope, part=part, files=files)]

    def has_vector(self, vector: bytes) -> bool:
        """Return whether any vector has exactly these numbers."""
        return self._row("has_vector", vector=vector) is not None

    def find_orphaned_terms(self, terms: Iterable[str]) -> list[str]:
        """Return those of these terms that the full-text dictionary still has although no indexed text has them."""
        wanted = list(dict.fromkeys(terms))
        batches = range(0, len(wanted), _TERM_BATCH)
        return [term for start in batches for term in self._find_orphaned(wanted[start : start + _TERM_BATCH])]

    def reset_if_damaged(self) -> bool:
        """Check the whole index, reset it if it is damaged, and return whether it was; threads share one check."""
        before = self._verify_count
        lock = self._verify_lock
        waited = lock.acquire(timeout=_VERIFY_SECONDS)
        try:
            if self._verify_count == before:
                damaged = bool(self.verify())
                if damaged:
                    self.reset()
                self._verify_count, self._was_damaged = before + 1, damaged
            return self._was_damaged
        finally:
            if waited:
                lock.release()


_indexes: set[ref[IndexQueries]] = set()


def _after_fork() -> None:
    for index in [index for reference in list(_indexes) if (index := reference())]:
        index._verify_lock = allocate_lock()  # a thread of the parent may have held it


on_fork(child=_after_fork)
