"""Change detection for a home of files: which folders differ from the index.

The index keeps one fingerprint per folder, the XOR of its files' identities, and the store can compute the same number. Equal
numbers mean that no file changed. A process that stays asks the kernel (inotify) instead, from its second refresh on.
"""

from __future__ import annotations

import os
from _thread import RLock
from _weakref import ref

from holdfast.base.fork import on_fork
from holdfast.base.ids import file_fingerprint
from holdfast.base.record import Record
from holdfast.store.atomic import is_utf8
from holdfast.store.files import FileStore, stat_entry
from holdfast.store.interface import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any, Protocol, TypeVar

    from holdfast.base.ids import FileId
    from holdfast.store.interface import Store
    from holdfast.store.watch import Watch

    T = TypeVar("T")
    Folder = tuple[str, str]  # the scope's folder and the part: ("projects/demo", "notes")

    class FolderState(Protocol):
        """The entry of a folder in the index."""

        @property
        def fingerprint(self) -> int: ...

    class IndexedFiles(Protocol):
        """The part of the index that change detection uses."""

        def known_folders(self, scopes: tuple[str, ...]) -> Mapping[Folder, FolderState]: ...
        def file_id(self, scope: str, part: str, name: str) -> FileId | None: ...

    class ChangeDetector(Protocol):
        """Finds the files of the store that differ from the index; each backend implements it."""

        @property
        def lock(self) -> AbstractContextManager[Any]:
            """Held during a refresh, so that another thread does not answer before a change that was seen is indexed."""

        def find_changes(self, scopes: tuple[str, ...], parts: tuple[str, ...]) -> list[FolderChange]:
            """Return the folders of these scopes that differ from the index."""

        def find_folder_change(self, scope: str, part: str) -> FolderChange | None:
            """Compare one folder with the index, even if it was marked as current."""

        def mark_current(self, scope: str, part: str) -> None:
            """Note that the changes found in a folder are indexed."""

        def mark_index_written(self) -> None:
            """Note that this thread writes to the index."""

        def file_ids(self, scope: str, part: str, names: list[str]) -> dict[str, FileId | None]:
            """Return the identity of each of these files as it is now; None for a file that does not exist."""

        def run_query(self, question: Callable[[], T]) -> T:
            """Answer a question to the index, from a replica if that is as current as the last refresh."""

        def use_primary(self) -> AbstractContextManager[object]:
            """Do not ask a replica within this block."""

        def reset(self) -> None:
            """Assume nothing about any folder."""

        def close(self) -> None: ...


_NOTE_PARTS = ("notes", "archive")
_MAX_EVENTS = 200  # changed names of one folder; with more, the whole folder is compared


class FolderChange(Record):
    """A folder that differs from the index: which files changed and which are deleted, or None if that is not known yet."""

    scope: str
    part: str
    changed: list[Entry] | None = None
    deleted: tuple[str, ...] = ()


def list_files(store: Store, scope: str, part: str) -> list[Entry]:
    """Return the files of a folder."""
    if part == "transcripts":
        return list(store.transcripts(scope).entries())
    return list(store.entries(scope, part) if part in _NOTE_PARTS else store.tree(scope).entries())


class FileChanges:
    """Change detection by fingerprints and inotify."""

    def __init__(self, store: FileStore, index: IndexedFiles) -> None:
        self._store, self._index = store, index
        self._root = os.path.join(store.home, "shelf")
        self._watch: Watch | None = None
        self._refreshes = 0
        self._watched: set[Folder] = set()  # folders that were watched before they were compared
        self._clean: set[Folder] = set()  # those of them whose files are all indexed
        self.lock = RLock()
        _instances.add(ref(self, _instances.discard))

    def find_changes(self, scopes: tuple[str, ...], parts: tuple[str, ...]) -> list[FolderChange]:
        self._refreshes += 1
        changes = self._read_events()
        skipped = {(change.scope, change.part) for change in changes} | self._clean
        indexed = self._index.known_folders(scopes)
        for scope in scopes:
            for part in parts:
                if (scope, part) not in skipped and self._differs(scope, part, indexed.get((scope, part))):
                    changes.append(FolderChange(scope, part))
        return changes

    def find_folder_change(self, scope: str, part: str) -> FolderChange | None:
        self._clean.discard((scope, part))
        differs = self._differs(scope, part, self._index.known_folders((scope,)).get((scope, part)))
        return FolderChange(scope, part) if differs else None

    def mark_current(self, scope: str, part: str) -> None:
        if (scope, part) in self._watched:
            self._clean.add((scope, part))

    def mark_index_written(self) -> None:
        """Do nothing: the index of a home has no replica."""

    def file_ids(self, scope: str, part: str, names: list[str]) -> dict[str, FileId | None]:
        if part in _NOTE_PARTS:
            folder = self._path(scope, part)
            return {name: entry.file_id if (entry := stat_entry(folder, name)) else None for name in names}
        if part == "transcripts":
            transcripts = self._store.transcripts(scope)
            return {name: transcripts.open(name).file_id() for name in names}
        tree = self._store.tree(scope)
        return {name: tree.file_id(tuple(name.split("/"))) for name in names}

    def run_query(self, question: Callable[[], T]) -> T:
        return question()

    def use_primary(self) -> AbstractContextManager[object]:
        from contextlib import nullcontext

        return nullcontext()

    def reset(self) -> None:
        self._clean.clear()

    def close(self) -> None:
        with self.lock:  # not while another thread reads events
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    def reset_after_fork(self) -> None:
        """In a child process: a thread that was refreshing does not exist here, and its state is incomplete."""
        if not self.lock.acquire(blocking=False):
            self.lock = RLock()
            self.reset()
        else:
            self.lock.release()

    # --- fingerprints ------------------------------------------------------------------------------------------------

    def _differs(self, scope: str, part: str, known: FolderState | None) -> bool:
        """Compare the fingerprint of a folder with the index; watch the folder first, so that no change is missed."""
        indexed = known.fingerprint if known else None
        if not indexed and not self._store.has_folder(scope, part):
            return False
        watched = self._watch_folder(scope, part)
        if watched:
            self._watched.add((scope, part))
        else:
            self._watched.discard((scope, part))
        if indexed != self._fingerprint(scope, part):
            return True
        self.mark_current(scope, part)
        return False

    def _fingerprint(self, scope: str, part: str) -> int:
        if not self._store.has_folder(scope, part):
            return 0
        if part in _NOTE_PARTS:
            return self._store.fingerprint(scope, part)
        total = 0
        for entry in list_files(self._store, scope, part):
            total ^= file_fingerprint(entry.file_id, entry.name)
        return total

    # --- inotify -----------------------------------------------------------------------------------------------------

    def _read_events(self) -> list[FolderChange]:
        """Return the changes that the kernel reported; from the second refresh on, because one command does not need them."""
        if self._refreshes < 2:
            return []
        if self._watch is not None and self._watch.pid != os.getpid():
            self.close()  # the events of a forked process would be its parent's
            self._clean.clear()
        if self._watch is None:
            self._watch = self._store.open_watch()
            return []
        changes = []
        for path, names in self._watch.read_changes().items():
            scope, part = self._folder_of(path)
            if (scope, part) not in self._clean:
                continue
            if names is None or part != "notes" or len(names) > _MAX_EVENTS:
                self._clean.discard((scope, part))
            elif change := self._compare(scope, part, names):
                self._clean.discard((scope, part))  # until the change is indexed
                changes.append(change)
        for scope, part in list(self._clean):  # another thread may change the set
            if not self._watch.is_watching(self._path(scope, part)):
                self._clean.discard((scope, part))
        return changes

    def _compare(self, scope: str, part: str, names: set[str] | list[str]) -> FolderChange | None:
        """Compare some files with the index; files whose names are not UTF-8 are not notes."""
        changed, deleted = [], []
        for name in filter(is_utf8, names):
            entry = stat_entry(self._path(scope, part), name)
            indexed = self._index.file_id(scope, part, name)
            if entry is None and indexed is not None:
                deleted.append(name)
            elif entry is not None and entry.file_id != indexed:
                changed.append(entry)
        return FolderChange(scope, part, changed, tuple(deleted)) if changed or deleted else None

    def _watch_folder(self, scope: str, part: str) -> bool:
        """Watch a folder and those below it; return whether that worked."""
        if self._watch is None:
            return False
        if part in _NOTE_PARTS:
            return self._watch.add(self._path(scope, part))
        tree = self._store.transcripts(scope) if part == "transcripts" else self._store.tree(scope)
        folders = tree.list_folders()
        return bool(folders) and all(self._watch.add(path) for path in folders)

    def _path(self, scope: str, part: str) -> str:
        return os.path.join(self._root, scope, part)

    def _folder_of(self, path: str) -> Folder:
        """Return the scope and part that a watched folder belongs to."""
        names = os.path.relpath(path, self._root).split("/")
        depth = 1 if names[0] == "global" else 2
        return "/".join(names[:depth]), names[depth]


_instances: set[ref[FileChanges]] = set()


def _reset_after_fork() -> None:
    for changes in [changes for reference in list(_instances) if (changes := reference())]:
        changes.reset_after_fork()


on_fork(child=_reset_after_fork)
