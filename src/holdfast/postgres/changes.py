"""Change detection in PostgreSQL: one query compares the fingerprints of all folders with those of the index.

Nothing reports changes here. What another process stored is found by the next refresh. A replica answers a query only if it
has everything that the primary had at the last refresh.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from threading import local
from typing import TYPE_CHECKING, NamedTuple

from holdfast.base.ids import FileId
from holdfast.postgres import Database, statements
from holdfast.store.changes import FolderChange
from holdfast.store.interface import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from holdfast.postgres.index import PostgresIndex
    from holdfast.postgres.store import PostgresStore

    T = TypeVar("T")

SQL = statements(__file__)


class _RecentFile(NamedTuple):
    """A file that changed lately, in the store and in the index; None where it is in only one of them."""

    folder_difference: int  # between the fingerprints of the whole folder, in the store and in the index
    name: str
    inode: int | None
    changed: int
    size: int
    fingerprint: int
    indexed_inode: int | None
    indexed_changed: int | None
    indexed_fingerprint: int


class _ThreadState(local):
    """One thread's knowledge of the replica."""

    fingerprints: dict[tuple[str, str], int] | None = None  # what a replica must have to be asked; None: ask the primary
    primary_only = False
    used_replica = False  # whether a replica answered the last query


class PostgresChanges:
    """Change detection by one query."""

    def __init__(self, store: PostgresStore, index: PostgresIndex, lock_seconds: float) -> None:
        self._store, self._index = store, index
        self._database = Database(store.settings, SQL, lock_seconds)
        self.thread_state = _ThreadState()
        self.lock = nullcontext()  # each thread has its own connection, and PostgreSQL isolates them

    def find_changes(self, scopes: tuple[str, ...], parts: tuple[str, ...]) -> list[FolderChange]:
        self.mark_index_written()
        rows = self._database.rows("compare_folders", scopes=list(scopes), parts=list(parts))
        differing = [(scope, part) for scope, part, fingerprint, indexed in rows if fingerprint != indexed]
        if not differing and self._database.settings.read_url:
            self.thread_state.fingerprints = {(scope, part): fingerprint for scope, part, fingerprint, _ in rows}
        return [self._find_differences(scope, part) for scope, part in sorted(differing)]

    def find_folder_change(self, scope: str, part: str) -> FolderChange | None:
        self.mark_index_written()
        known = self._index.known_folders((scope,)).get((scope, part))
        if known and known.fingerprint == self._store.fingerprint(scope, part):
            return None
        return self._find_differences(scope, part)

    def _find_differences(self, scope: str, part: str) -> FolderChange:
        """Return which files differ, if the last changes of the folder account for the whole difference.

        Mostly another writer is between its two steps: it has stored a note and not yet indexed it.
        """
        changed, deleted, difference = [], [], 0
        files = [_RecentFile(*row) for row in self._database.rows("compare_recent", scope=scope, part=part)]
        for file in files:
            if (file.inode, file.changed) == (file.indexed_inode, file.indexed_changed):
                continue
            difference ^= file.fingerprint ^ file.indexed_fingerprint
            if file.inode is None:
                deleted.append(file.name)
            else:
                changed.append(Entry(file.name, FileId(file.inode, file.changed, file.size), regular=True))
        if not files or difference != files[0].folder_difference:
            return FolderChange(scope, part)
        return FolderChange(scope, part, changed, tuple(deleted))

    def mark_current(self, scope: str, part: str) -> None:
        """Do nothing: the next refresh compares every folder."""

    def mark_index_written(self) -> None:
        """Ask no replica until the next refresh: none has what this thread just changed."""
        self.thread_state.fingerprints, self.thread_state.used_replica = None, False

    def file_ids(self, scope: str, part: str, names: list[str]) -> dict[str, FileId | None]:
        if part != "transcripts":
            return self._store.file_ids(scope, part, names)
        transcripts = self._store.transcripts(scope)
        if len(names) == 1:
            return {names[0]: transcripts.open(names[0]).file_id()}
        by_name = {entry.name: entry.file_id for entry in transcripts.entries()}
        return {name: by_name.get(name) for name in names}

    def run_query(self, question: Callable[[], T]) -> T:
        """Answer from a replica that has all that the primary had at the last refresh.

        The replica is compared in the transaction that answers: one address may lead to several servers.
        """
        state = self.thread_state
        state.used_replica = False
        if state.fingerprints is not None and not state.primary_only:
            with self._index.read_transaction(replica=True):
                indexed = self._index.known_folders(tuple(dict.fromkeys([scope for scope, _ in state.fingerprints])))
                if all(folder in indexed and indexed[folder].fingerprint == it for folder, it in state.fingerprints.items()):
                    state.used_replica = True
                    return question()
        return question()

    @contextmanager
    def use_primary(self) -> Iterator[None]:
        before = self.thread_state.primary_only
        self.thread_state.primary_only = True
        try:
            yield
        finally:
            self.thread_state.primary_only = before

    def reset(self) -> None:
        self.mark_index_written()

    def close(self) -> None:
        """Do nothing: the connections belong to the pool of the process."""
