"""Keep the index consistent with the store: find the folders that changed, read their files, and update the index.

The store is the source of truth. A write stores first and indexes second; a write that could not be indexed is found by the
next refresh.
"""

from __future__ import annotations

from holdfast.base.ids import FileId
from holdfast.base.record import Record
from holdfast.errors import Busy, DiskTrouble, HoldfastError
from holdfast.formats.versions import ParsedNote, list_versions, parse_note
from holdfast.index.queries import IndexReset
from holdfast.models import Progress, Scope
from holdfast.store import listing as listings
from holdfast.store.changes import list_files
from holdfast.store.interface import Entry
from holdfast.store.layout import parse_trashed_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import TypeVar

    from holdfast.context.purge_filter import PurgeFilter
    from holdfast.index.entries import IndexEntry
    from holdfast.index.interface import Index
    from holdfast.index.sqlite import SqliteIndex
    from holdfast.models import Version
    from holdfast.store.changes import ChangeDetector, FolderChange
    from holdfast.store.files import FileStore
    from holdfast.store.interface import FileContent, Store

    T = TypeVar("T")

PARTS = ("notes", "files", "transcripts")
ARCHIVE = "archive"  # refreshed only for calls that search archived notes too: a briefing never does
_NOTE_PARTS = ("notes", ARCHIVE)
CAME_BACK = "purged, came back: receipt "  # the problem of a file that contains purged text
_BATCH = 500  # files that are indexed in one transaction
_SMALL_FILE = 64 * 1024  # bytes of a file that is read together with the others of its batch
_LISTING_ATTEMPTS = 5  # to write index.md: the index is opened again after a fork
_MANY_FILES = 200  # from here on one process indexes, and the others wait for it
_REFRESH_ATTEMPTS = 3  # while other processes delete the index
_MAX_REOPENED = 50  # times that this process may reopen the index during one query
_DAMAGE_ERRORS = (TypeError, ValueError, LookupError, AttributeError)  # exceptions that a damaged row may cause


class WrittenNote(Record):
    """A note that was just written: its new file and the one that it replaced."""

    scope: Scope
    name: str
    note: ParsedNote
    file_id: FileId
    replaced: FileId | None


class ListingWriter:
    """Writes index.md of the scopes of a home from the rows of its index."""

    def __init__(self, store: FileStore, index: SqliteIndex) -> None:
        self._store, self._index, self._listing = store, index, listings.Listing(store)

    def write(self, scope: Scope) -> bool:
        """Write index.md and return whether the scope has one; raise `IndexReset` if the index is incomplete or new."""
        with self._listing.lock(scope):
            generation = self._index.generation()
            total = self._index.count_listed(scope.folder)
            if total is None and self._store.has_folder(scope.folder, "notes"):
                raise IndexReset("the index has not read these notes yet")
            files = self._index.list_newest_files(scope.folder, listings.MAX_NOTES)
            new_ids = self._listing.find_new(scope, files)
            notes = self._index.read_listed_notes(new_ids) if new_ids else []
            if self._index.generation() != generation:
                raise IndexReset("the index was replaced")
            superseded = self._find_superseded(scope) if files else {}
            return self._listing.write(scope, total or 0, files, notes, superseded)

    def _find_superseded(self, scope: Scope) -> dict[str, str]:
        """Return the keys of the notes that a note of the same scope superseded, each with the key of the current note."""
        if not self._index.has_relations():
            return {}
        from holdfast.base import dates
        from holdfast.context.superseded import find_paths

        found = find_paths(self._index, (scope.folder,), dates.now())
        return {path.rpartition("/")[2].removesuffix(".md"): row.key for path, row in found.items()}


class Sync:
    """Keeps one index consistent with one store."""

    def __init__(
        self, *, store: Store, index: Index, changes: ChangeDetector, purge_filter: PurgeFilter,
        listing: ListingWriter | None, progress: Progress, lock_seconds: float,
    ) -> None:  # fmt: skip
        self._store, self._index, self.changes = store, index, changes
        self._purge_filter, self._listing = purge_filter, listing
        self._progress, self._lock_seconds = progress, lock_seconds
        self._prepared: set[str] = set()  # scopes that `prepare_scope` has seen
        self._all_prepared = False  # whether it has seen all of them
        self._unlisted: set[str] = set()  # scopes whose notes changed since their index.md was written
        self._without_listing: set[str] = set()  # scopes with no index.md that cannot have one, or have no notes
        self._generation = 0  # of the index, at the last refresh
        self._scopes: tuple[str, ...] = ()  # those of the last refresh
        self._archived = False  # whether any call asked for archived notes

    # --- read ------------------------------------------------------------------------------------------------------

    def refresh(self, scopes: tuple[str, ...], archived: bool = False) -> str:
        """Update the index for these scopes, with `archived` also for their archived notes.

        Return an empty string, or why the index may lack something that the store has.
        """
        for attempt in range(_REFRESH_ATTEMPTS):
            try:
                return self.refresh_once(scopes, archived)
            except IndexReset:
                self.reset()
            except (Busy, DiskTrouble) as error:
                if attempt + 1 == _REFRESH_ATTEMPTS or not self.is_outdated():
                    return f"the index could not be brought up to date: {error.message}"
        return "the index is damaged repeatedly"

    def refresh_once(self, scopes: tuple[str, ...], archived: bool = False) -> str:
        """Refresh without a second attempt: raise `IndexReset`, `Busy` or `DiskTrouble` if the index cannot be written."""
        with self.changes.lock:
            self._archived = self._archived or archived
            self._scopes = scopes
            generation = self._index.generation()
            if self._generation != generation:
                self.reset()
            reason = self._index.in_memory and f"the index is kept in memory: {self._index.in_memory}"
            for change in self.changes.find_changes(scopes, (*PARTS, ARCHIVE) if archived else PARTS):
                reason = self._apply_change(change) or reason
            for scope in scopes:
                if scope in self._unlisted or self._lacks_listing(scope):
                    self.write_listing(Scope.of_folder(scope))
            self._generation = generation  # not before: another thread would take half of the changes for all
            return reason

    def query(self, question: Callable[[], T]) -> T:
        """Ask the index; if it turns out to be unusable, rebuild it from the store and ask again."""
        begun, attempts = self._index.file_state[1], _REFRESH_ATTEMPTS
        while attempts and self._index.file_state[1] < begun + _MAX_REOPENED:
            seen = self._index.file_state
            try:
                generation, answer = self._index.generation(), self.changes.run_query(question)
                if not self.is_outdated() and generation == self._index.file_state[0]:
                    return answer
            except (IndexReset, *_DAMAGE_ERRORS) as error:
                if not isinstance(error, IndexReset) and seen == self._index.file_state and not self._index.reset_if_damaged():
                    raise
                self.reset()
            except DiskTrouble:
                if not self.is_outdated():
                    raise
            self.refresh(self._scopes, self._archived)
            attempts -= seen[1] == self._index.file_state[1]  # a fork reopens the index, and that is not an attempt
        return self._query_in_memory(question)

    def _query_in_memory(self, question: Callable[[], T]) -> T:
        """Build the index in memory for one question, because its file cannot be used."""
        self._index.use_memory()
        try:
            self.refresh(self._scopes, self._archived)
            return question()
        except IndexReset:
            raise DiskTrouble("the index cannot be used", "Check the disk; the notes are safe") from None
        finally:
            self._index.close()

    def use_primary(self) -> AbstractContextManager[object]:
        """Ask no replica within this block: a purge verifies what it removed where everything is written."""
        return self.changes.use_primary()

    def is_outdated(self) -> bool:
        """Return whether the index is a different file from the one that was refreshed last."""
        return bool(self._scopes) and self._generation != self._index.generation()

    def reset(self) -> None:
        """Assume nothing about the index: it was lost."""
        self.changes.reset()
        self._prepared.clear()
        self._all_prepared = False

    def close(self) -> None:
        self.changes.close()

    # --- write -----------------------------------------------------------------------------------------------------

    def prepare_scope(self, scope: str) -> None:
        """Index the notes of a scope before the first write to it, so that our own writes are never read back."""
        if scope in self._prepared:
            return
        try:
            if self._index.find_folder(scope, "notes") is None:
                self.refresh_folder(scope, "notes")
            self._prepared.add(scope)
        except (IndexReset, Busy, DiskTrouble):
            self.reset()

    def prepare_all_scopes(self) -> None:
        """Index the notes of every scope that the index does not know, so that its sums are those of all notes."""
        if not self._all_prepared:
            for scope in self._store.list_scopes():
                self.prepare_scope(scope)
            self._all_prepared = True

    def update(self, change: Callable[[], object]) -> None:
        """Index what was just stored; if the index cannot take it now, the next refresh finds it in the store."""
        try:
            change()
        except (IndexReset, Busy, DiskTrouble):
            self.reset()

    def index_notes(self, written: list[WrittenNote]) -> None:
        """Index notes that were just written, in one transaction, without reading them back."""
        from holdfast.index.entries import note_entry

        entries = []
        for one in written:
            folder = one.scope.folder
            if one.replaced is not None:
                entry = note_entry(folder, one.name, one.note, one.file_id, newest_only=True)
            else:
                older = self._read_older(folder, "notes", one.name, one.note)
                entry = note_entry(folder, one.name, one.note, one.file_id, older=older)
            entries.append((entry, one.replaced))
        self._put(entries)

    def _read_older(self, scope: str, part: str, name: str, note: ParsedNote) -> list[Version] | None:
        """Return the versions of a note in history files, newest first; None if the index has them."""
        older = note.header.older
        if older is None:
            return []
        if self._index.has_older_versions(scope, part, name, note.header.id, older.versions):
            return None
        from holdfast.store.note_history import older_versions

        return [place.version for place in older_versions(self._store, scope, note)]

    def index_file(self, scope: str, name: str, written: FileContent) -> None:
        """Index a file that was just written."""
        from holdfast.index.entries import file_entry

        self._put([(file_entry(scope, name, written.data, written.file_id, written.modified), None)])

    def remove_files(self, scope: str, part: str, names: list[str]) -> int:
        """Remove files from the index that are no longer in the store; return how many were in it."""
        self.changes.mark_index_written()
        file_ids = self._lazy_file_ids(scope, part, names)
        return self._index.remove(scope, part, names, lambda name: file_ids(name) is None)

    def refresh_folder(self, scope: str, part: str) -> None:
        """Compare one folder with the index, even if it was known to be current."""
        change = self.changes.find_folder_change(scope, part)
        if change is not None:
            self._apply_change(change)

    def write_listing(self, scope: Scope) -> bool:
        """Write index.md of a scope and return whether that worked.

        The file is derived from the notes: a failure fails no call, and the next change of the scope writes it again.
        """
        if self._listing is None:
            return True
        self._unlisted.discard(scope.folder)
        self._without_listing.add(scope.folder)
        for _ in range(_LISTING_ATTEMPTS):
            try:
                if self._write_listing(scope):
                    self._without_listing.discard(scope.folder)
                return True
            except IndexReset:
                self.reset()
            except (HoldfastError, OSError):
                self.reset()
                return False
        return False

    def _write_listing(self, scope: Scope) -> bool:
        """Write index.md and return whether the scope has one; raise `IndexReset` if the index is incomplete or new."""
        return self._listing is not None and self._listing.write(scope)

    def _lacks_listing(self, scope: str) -> bool:
        """Return whether index.md is missing or older than the last change of the notes: a process may have died before it
        wrote the file."""
        if self._listing is None or scope in self._without_listing or not self._store.has_folder(scope, "notes"):
            return False
        return not self._store.has_current_listing(Scope.of_folder(scope))

    # --- apply changes ---------------------------------------------------------------------------------------------

    def _apply_change(self, change: FolderChange) -> str:
        """Index what changed in a folder; return why that was not possible now, or an empty string."""
        if change.changed is not None:
            self._apply(change.scope, change.part, change.changed, list(change.deleted))
        elif reason := self._reconcile(change.scope, change.part):
            return reason
        self.changes.mark_current(change.scope, change.part)
        return ""

    def _reconcile(self, scope: str, part: str) -> str:
        """Compare every file of a folder with the index, and apply the differences."""
        changed, deleted = self._compare(scope, part)
        if len(changed) <= _MANY_FILES or self._index.in_memory:  # an index in memory is not shared
            self._apply(scope, part, changed, deleted)
            return ""
        lock = self._store.named_lock("catalogue")
        if not lock.acquire(self._lock_seconds):
            return "the index is being rebuilt by another process"
        try:
            self._apply(scope, part, *self._compare(scope, part))
        finally:
            lock.release()
        return ""

    def _compare(self, scope: str, part: str) -> tuple[list[Entry], list[str]]:
        """Return the files of a folder that are new or changed, and the names of those that were deleted."""
        here = {entry.name: entry for entry in list_files(self._store, scope, part)}
        indexed = self._index.file_ids(scope, part)
        changed = [entry for name, entry in here.items() if name not in indexed or indexed[name] != entry.file_id]
        return changed, [name for name in indexed if name not in here]

    def _apply(self, scope: str, part: str, changed: list[Entry], deleted: list[str]) -> None:
        self.changes.mark_index_written()
        self._index.add_folder(scope, part)
        if part == "notes":
            self._unlisted.add(scope)
        if deleted:
            self.remove_files(scope, part, deleted)
        if not changed:
            return
        self._progress.start(f"indexing {scope}/{part}", len(changed))
        try:
            if part == "transcripts":
                self._index_transcripts(scope, changed)
            else:
                self._index_files(scope, part, changed)
        finally:
            self._progress.end()

    def _index_files(self, scope: str, part: str, changed: list[Entry]) -> None:
        for start in range(0, len(changed), _BATCH):
            batch = changed[start : start + _BATCH]
            small = [(scope, part, entry.name) for entry in batch if entry.file_id.size <= _SMALL_FILE]
            contents = self._store.read_batch(small)
            found = [self._describe(scope, part, entry, contents.get((scope, part, entry.name))) for entry in batch]
            self._put([(entry, None) for entry in found if entry])
            self._progress.step(len(batch))

    def _index_transcripts(self, scope: str, changed: list[Entry]) -> None:
        from holdfast.context.transcript_entries import index_transcript

        transcripts = self._store.transcripts(scope)
        for entry in changed:
            index_transcript(self._index, scope, transcripts.open(entry.name), entry, self._purge_filter)
            self._progress.step()

    def _describe(self, scope: str, part: str, entry: Entry, content: FileContent | None = None) -> IndexEntry | None:
        """Return the index entry of a file, reading it unless its content is given; None if it was deleted meanwhile."""
        from holdfast.index.entries import file_entry, unreadable_entry

        key = parse_trashed_key(entry.name) if part == ARCHIVE else ""
        if part == ARCHIVE and not (key and entry.regular):
            return unreadable_entry(scope, part, entry.name, entry.file_id, problem="")  # retention did not put it there
        if part == "notes" and not entry.name.endswith(".md"):
            return unreadable_entry(scope, part, entry.name, entry.file_id, problem="not a markdown file")
        if not entry.regular:
            return unreadable_entry(scope, part, entry.name, entry.file_id, problem="a link or special file; never followed")
        try:
            if part in _NOTE_PARTS:
                content = content or self._store.read_file(scope, part, entry.name)
            else:
                content = content or self._store.tree(scope).read(tuple(entry.name.split("/")))
        except HoldfastError as error:
            return unreadable_entry(scope, part, entry.name, entry.file_id, problem=error.message)
        if content is None:
            return None
        if part in _NOTE_PARTS:
            return self._describe_note(scope, part, entry.name, key, content)
        if b"\0" in content.data:
            return unreadable_entry(scope, part, entry.name, content.file_id, problem="")
        if receipt := self._purge_filter.find_receipt(scope, [content.text()]):
            return unreadable_entry(scope, part, entry.name, content.file_id, problem=CAME_BACK + receipt)
        return file_entry(scope, entry.name, content.data, content.file_id, content.modified)

    def _describe_note(self, scope: str, part: str, name: str, archived_key: str, content: FileContent) -> IndexEntry:
        from holdfast.index.entries import note_entry, unreadable_entry

        note = parse_note(content.data, content.modified)
        try:
            older = self._read_older(scope, part, name, note)
        except HoldfastError as error:
            return unreadable_entry(scope, part, name, content.file_id, problem=error.message)
        if self._purge_filter.any_purged():
            path = f"{scope}/notes/{archived_key or name[:-3]}"
            if receipt := self._purge_filter.find_receipt(
                path, [version.text for version in [*list_versions(note), *(older or [])]]
            ):
                return unreadable_entry(scope, part, name, content.file_id, problem=CAME_BACK + receipt)
        return note_entry(scope, name, note, content.file_id, archived_as=archived_key, older=older)

    def _put(self, entries: list[tuple[IndexEntry, FileId | None]]) -> None:
        """Put entries into the index, except those of files that changed meanwhile."""
        self.changes.mark_index_written()
        names: dict[tuple[str, str], list[str]] = {}
        for entry, _ in entries:
            names.setdefault((entry.scope, entry.part), []).append(entry.name)
        lookups = {folder: self._lazy_file_ids(*folder, some) for folder, some in names.items()}
        self._index.put(entries, lambda entry: lookups[entry.scope, entry.part](entry.name) == entry.file_id)

    def _lazy_file_ids(self, scope: str, part: str, names: list[str]) -> Callable[[str], FileId | None]:
        """Look the files up once, when the index asks within its transaction."""
        found: dict[str, FileId | None] = {}

        def file_id(name: str) -> FileId | None:
            if not found:
                found.update(self.changes.file_ids(scope, part, names))
            return found[name]

        return file_id
