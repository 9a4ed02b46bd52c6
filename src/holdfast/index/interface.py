"""The interface of an index. `SqliteIndex` and `postgres.PostgresIndex` implement it and check that at their end.

The index is derived from the store and can be deleted at any time. Scopes are folders of the store such as `projects/abc`;
parts are notes, files, transcripts and archive. Timestamps are text. Any query may raise `IndexReset` (the index was replaced
by an empty one; refresh it and query again), `Busy` or `DiskTrouble`.

Import this module for type checking only: `typing` is too slow for a cold start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from holdfast.base.ids import FileId
    from holdfast.index.entries import IndexEntry
    from holdfast.index.filters import SearchFilter
    from holdfast.index.results import (
        AgentUsage,
        FileProblem,
        FolderFiles,
        FolderSize,
        FolderState,
        FoundFact,
        FoundNote,
        FoundPassage,
        LabelledFact,
        NoteLocation,
        Outline,
        PassageRow,
        PassageText,
        PieceRow,
        QuarantinedText,
        StatingPassage,
        SubjectRow,
        Superseding,
        Totals,
    )
    from holdfast.index.vectors import FoundCosines, FoundVectors, Model, WaitingPassage
    from holdfast.models import Fact, Note, Progress, Relation


class VectorIndex(Protocol):
    """The vectors of an index's passages."""

    def list_models(self) -> list[Model]:
        """Return every model that has vectors here."""

    def ensure_model(self, name: str, dim: int, role: str = "", setting: str = "") -> Model:
        """Return the model of this name and role; add it if it is new, and replace one of another dimension."""

    def mark_used(self, model: Model, newest: int) -> None:
        """Record that this model is still in use although a newer one was added."""

    def remove_model(self, model: Model) -> None:
        """Remove a model and all its vectors."""

    def next_waiting(self, model: Model, most: int) -> list[WaitingPassage]:
        """Return the next passages without vectors of this model, in the order in which they were added."""

    def count_waiting(self, model: Model) -> int:
        """Return how many passages have no vectors of this model yet."""

    def find_speakers(self, doc: int) -> list[str]:
        """Return the speakers of a transcript."""

    def add_vectors(
        self, model: Model, done: list[WaitingPassage], rows: Iterable[tuple[int, int, NDArray[Any]]],
        pieces: list[dict[str, object]],
    ) -> Model:  # fmt: skip
        """Add vectors (folder, owner, unit vector) and pieces of passages that were waiting; return the model."""

    def has_vectors(self, model: Model, folders: Iterable[int]) -> bool:
        """Return whether any of these folders has a vector of this model."""

    def find_nearest(self, model: Model, folders: Iterable[int], query: NDArray[Any], most: int) -> list[int]:
        """Return the passages of these folders with the most similar vectors."""

    def vectors_of(self, model: Model, folders: Iterable[int], passages: NDArray[Any]) -> FoundVectors:
        """Return the vectors of these passages, by passage and piece."""

    def cosines_of(self, model: Model, folders: Iterable[int], passages: NDArray[Any], query: NDArray[Any]) -> FoundCosines:
        """Return the similarity of a query to each vector of these passages, by passage and piece."""


class Index(Protocol):
    """Search and lookups over everything in the store."""

    # --- state ----------------------------------------------------------------------------------------------------------------

    @property
    def vectors(self) -> VectorIndex:
        """The vectors of the passages; keyword search does not need them."""

    @property
    def file_state(self) -> tuple[int, int]:
        """The generation of the file that is open, and how often it was closed."""

    @property
    def in_memory(self) -> str:
        """Why the index is kept in memory, or ""."""

    def generation(self) -> int:
        """Return a number that changes when the index is replaced by another."""

    def content_version(self) -> object:
        """Return a value that changes with every write of any process; None where that is not known without a query."""

    def cache_query(self, filter: SearchFilter) -> AbstractContextManager[object]:
        """Within this, read what one query needs more than once only once."""

    def read_transaction(self, replica: bool = False) -> AbstractContextManager[object]:
        """Within this, read in one transaction; from a replica if there is one and `replica` is set."""

    # --- writing --------------------------------------------------------------------------------------------------------------

    def put(self, entries: Iterable[tuple[IndexEntry, FileId | None]], is_current: Callable[[IndexEntry], bool]) -> None:
        """Index files in one transaction, each with the id of the file that it replaced, if known; skip those that another
        writer changed meanwhile, as `is_current` finds."""

    def remove(self, scope: str, part: str, names: Iterable[str], is_gone: Callable[[str], bool]) -> int:
        """Remove files from the index that `is_gone` finds missing in the store; return how many were indexed."""

    def add_folder(self, scope: str, part: str) -> None:
        """Record that a folder has been read, even if it is empty."""

    def reset(self) -> None:
        """Delete the index; the next refresh fills a new one."""

    def use_memory(self) -> None:
        """Keep the index in memory: another program keeps deleting its file."""

    def scrub(self, seconds: float | None = None, rewrite: bool = False) -> None:
        """Leave nothing of deleted rows behind; wait at most `seconds` for readers."""

    def close(self) -> None:
        """Close the index; the next query opens it again."""

    # --- search ---------------------------------------------------------------------------------------------------------------

    def search(self, query: str, filter: SearchFilter, limit: int) -> list[FoundPassage]:
        """Return the passages that have any of the words, best first; at least `limit` if there are as many."""

    def resolve_terms(self, query: str, filter: SearchFilter) -> tuple[dict[str, str], dict[str, int]]:
        """Return the terms to look for, each with the word of the query, and how many passages have each term."""

    def match_passages(self, terms: list[str], filter: SearchFilter, most: int) -> dict[int, float]:
        """Return the passages of the filter's folders that have any of these terms; the best has the lowest number."""

    def count_terms(self, terms: list[str], filter: SearchFilter) -> dict[str, int]:
        """Return how many passages of the filter's folders have each of these terms; terms without any are left out."""

    def find_terms_by_prefix(self, prefix: str) -> list[str]:
        """Return the most common terms that start with this prefix."""

    def find_postings(self, terms: list[str], filter: SearchFilter, most: int, among: list[int] | None = None) -> list[str]:
        """Return, for each of these terms, the newest passages that have it: their ids, separated by commas.

        With `among`, only those of these passages."""

    def find_passages(self, scores: dict[int, float], filter: SearchFilter) -> list[FoundPassage]:
        """Return those of these passages that pass the filter, the lowest number first; a passage's score is the negative."""

    def find_rows(self, ids: Iterable[int], filter: SearchFilter) -> list[PassageRow]:
        """Return the rows of those of these passages that pass the filter."""

    def find_outlines(self, ids: Iterable[int], filter: SearchFilter) -> list[Outline]:
        """Return what ranking needs of these passages, without those that are not current or do not pass the filter.

        `filter.now` is ignored: the caller checks `valid_to`, so that it can cache rows.
        """

    def find_recent(self, filter: SearchFilter, limit: int) -> list[FoundPassage]:
        """Return the newest passages."""

    def find_folders(self, filter: SearchFilter) -> list[FolderSize]:
        """Return the folders that a filter selects."""

    def count_passages(self, filter: SearchFilter) -> int:
        """Return how many passages the folders of a filter have."""

    def count_words(self, ids: list[int]) -> dict[int, int]:
        """Return how many words each of these passages has."""

    def read_pieces(self, ids: list[int]) -> list[PieceRow]:
        """Return the pieces of these passages, in order."""

    def read_texts(self, ids: list[int]) -> list[PassageText]:
        """Return the texts of these passages."""

    def find_adjacent_turns(self, ids: list[int]) -> list[int]:
        """Return these turns, and those before and after each, where people speak under their names."""

    def find_speakers(self, names: list[str], filter: SearchFilter) -> list[str]:
        """Return those of these names that are speakers in a transcript of the filter's folders."""

    # --- notes ----------------------------------------------------------------------------------------------------------------

    def list_notes(
        self, scopes: tuple[str, ...], type: str | None = None, tags: tuple[str, ...] = (), before: str | None = None,
        most: int = -1, now: str = "", only: int | None = None, archived: bool = False,
    ) -> list[Note]:  # fmt: skip
        """Return the notes of some scopes, pinned notes first, then newest first; `only` those in quarantine (1) or not (0)."""

    def list_notes_after(
        self, last: Note, scopes: tuple[str, ...], *, type: str | None, tags: tuple[str, ...], most: int,
        only: int | None = None, archived: bool = False,
    ) -> list[Note]:  # fmt: skip
        """Return the notes that follow `last` in the order of `list_notes`."""

    def list_notes_by_key(self, scope: str, after: str, most: int) -> list[Note]:
        """Return the notes of a scope by key, after a file name."""

    def find_note(self, scope: str, name: str) -> Note | None:
        """Return the note of a file, or None."""

    def count_notes(self, scopes: tuple[str, ...], now: str = "", only: int | None = None) -> int:
        """Return how many notes of some scopes have not ended; only those in quarantine (1), or only the others (0)."""

    def find_note_by_id(self, scopes: tuple[str, ...], id: str) -> NoteLocation | None:
        """Return where the note of an id is, if it is in one of these scopes."""

    def find_notes_made_from(self, scopes: tuple[str, ...], prefix: str) -> list[tuple[str, str]]:
        """Return scope and name of the notes with a version made from a source whose name starts with this prefix."""

    def find_notes_made_from_any(self, scopes: tuple[str, ...], matches: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Return scope and name of the notes with a version made from a source whose name matches."""

    def find_notes_by_source(self, scopes: tuple[str, ...], source: str) -> list[tuple[str, str]]:
        """Return scope and name of the notes with a version of this origin, agent, client or session."""

    def has_quarantined(self) -> bool:
        """Return whether any note is in quarantine."""

    def find_quarantined_texts(self, scopes: tuple[str, ...], texts: Iterable[str]) -> list[QuarantinedText]:
        """Return those of these texts that a note in quarantine has or had."""

    def find_exposed_notes(self, scopes: tuple[str, ...]) -> frozenset[str]:
        """Return the paths of the notes that seem to hold a secret."""

    # --- relations ------------------------------------------------------------------------------------------------------------

    def has_relations(self) -> bool:
        """Return whether any note states a relation."""

    def find_superseding(self, docs: Iterable[int], scopes: tuple[str, ...], now: str) -> list[Superseding]:
        """Return the current notes of some scopes that superseded one of these (by their rows); not those in quarantine."""

    def list_superseded(self, scopes: tuple[str, ...], now: str) -> dict[int, str]:
        """Return the paths of the valid notes of some scopes that a note supersedes, whether that is current or not, by row."""

    def list_relations(self, scopes: tuple[str, ...], *, note: Note | None = None, status: str | None = None) -> list[Relation]:
        """Return the relations between notes of some scopes; those of one note, in either direction, if it is given."""

    def find_relation_sources(self, targets: Iterable[str]) -> list[tuple[str, str, str]]:
        """Return scope, part and name of the notes that state a relation to one of these: ids, or scopes and keys."""

    def list_mentions(self, scopes: tuple[str, ...]) -> list[Fact]:
        """Return the links in notes and files that are not in a fact, as facts without a date."""

    # --- facts ----------------------------------------------------------------------------------------------------------------

    def has_facts(self) -> bool:
        """Return whether any file states a fact."""

    def find_facts(
        self, scopes: tuple[str, ...], names: Iterable[str] | None, label: str | None, as_of: str | None,
        *, last: Fact | None = None, most: int = -1, archived: bool = False,
    ) -> list[Fact]:  # fmt: skip
        """Return the facts of some scopes by subject, label and date, as settled among the files that state them."""

    def list_subjects(self, scopes: tuple[str, ...], *, contains: str, after: str, now: str, most: int) -> list[SubjectRow]:
        """Return the subjects of facts by folded name, after one of these and with a text in it."""

    def find_newest_facts(self, scopes: tuple[str, ...], now: str, most: int) -> list[Fact]:
        """Return the facts that hold now, newest first; none of a note in quarantine or in the archive."""

    def find_facts_at(self, names: Iterable[str], filter: SearchFilter, at: str, most: int) -> list[FoundFact]:
        """Return the facts that hold at a moment and have one of these names (folded) as subject or label."""

    def find_stating_passages(self, names: Iterable[str], filter: SearchFilter, now: str, most: int) -> list[StatingPassage]:
        """Return the passages that state a fact which holds now and has one of these names (folded) as subject or label."""

    def find_stale_lines(self, scopes: tuple[str, ...], now: str) -> set[str]:
        """Return, as `path:line`, the lines that state a fact which a newer line of another file replaced."""

    def find_note_stating(self, scope: str, subject: str) -> str | None:
        """Return the key of a note that states facts about a subject, or None."""

    def find_labelled_facts(self, scopes: tuple[str, ...], labels: list[str]) -> list[LabelledFact]:
        """Return the facts with these labels that hold now."""

    def find_subjects(self, ids: Iterable[int], scopes: tuple[str, ...]) -> list[str]:
        """Return the folded subjects of the facts in the files of these passages."""

    # --- files ----------------------------------------------------------------------------------------------------------------

    def known_folders(self, scopes: tuple[str, ...]) -> dict[tuple[str, str], FolderState]:
        """Return the indexed folders of these scopes, by scope and part."""

    def find_folder(self, scope: str, part: str) -> FolderState | None:
        """Return an indexed folder, or None."""

    def file_ids(self, scope: str, part: str) -> dict[str, FileId]:
        """Return the inode, ctime and size of every indexed file of a folder, by name."""

    def file_id(self, scope: str, part: str, name: str) -> FileId | None:
        """Return the inode, ctime and size of an indexed file, or None."""

    def file_digest(self, scope: str, part: str, name: str) -> tuple[int, str] | None:
        """Return the inode and the digest of an indexed file, or None."""

    def has_older_versions(self, scope: str, part: str, name: str, note_id: str, count: int) -> bool:
        """Return whether the first `count` versions of this note are indexed."""

    def agent_usage(self, agent: str) -> AgentUsage:
        """Return how many notes an agent has, and the bytes of its notes and files."""

    def has_note(self, scope: str, name: str, part: str = "notes") -> bool:
        """Return whether a file is indexed."""

    def count_files(self) -> list[FolderFiles]:
        """Return, for each folder, how many files are indexed."""

    def count_all(self) -> Totals:
        """Return how much the index holds."""

    def count_types(self, scopes: tuple[str, ...]) -> dict[str, int]:
        """Return how many notes of each type some scopes have."""

    def count_versions_by_day(self, scopes: tuple[str, ...], since: str) -> dict[str, int]:
        """Return how many versions of notes were recorded on each day since a moment; days without any are left out."""

    def list_note_ids(self, scopes: tuple[str, ...]) -> list[str]:
        """Return the ids of the notes of some scopes, archived ones included; notes without an id are left out."""

    def find_notes_by_id(self, ids: list[str], scopes: tuple[str, ...]) -> dict[str, FoundNote]:
        """Return those of the notes with these ids that are in some scopes, by id; none that is in quarantine or archived."""

    def count_passages_and_facts(self, scopes: tuple[str, ...] | None) -> tuple[int, int]:
        """Return how many passages and facts some scopes have, or all."""

    def find_problems(self, scopes: tuple[str, ...]) -> list[FileProblem]:
        """Return the indexed files that are not as they should be."""

    # --- checks ---------------------------------------------------------------------------------------------------------------

    def verify(self, progress: Progress = ...) -> str:
        """Check the whole index and return the first problem, or ""."""

    def reset_if_damaged(self) -> bool:
        """Check the whole index, reset it if it is damaged, and return whether it was."""

    def list_texts(self, transcripts: bool, scopes: Sequence[str] | None = None) -> list[str]:
        """Return every indexed text, or those of some scopes, with or without the turns of transcripts."""

    def read_vectors(self, scope: str, part: str, files: list[str]) -> list[bytes]:
        """Return the numbers of every vector of these files, of all models."""

    def has_vector(self, vector: bytes) -> bool:
        """Return whether any vector has exactly these numbers."""

    def find_orphaned_terms(self, terms: Iterable[str]) -> list[str]:
        """Return those of these terms that the full-text dictionary still has although no indexed text has them."""
