"""The files backend: `shelf/<scope>/notes/<key>.md` in the home, and beside it `history/`, `files/`, `archive/` and
`trash/`.

Every path is built from a scope's folder and a validated key. A write names the id of the file it replaces: if the file was
replaced meanwhile, nothing is written and `Changed` is raised.
"""

from __future__ import annotations

import os
import stat

from holdfast import home as home_folder
from holdfast.base.ids import FileId, file_fingerprint, is_name
from holdfast.errors import Conflict, HoldfastError, from_os
from holdfast.home import Lock
from holdfast.store import atomic, layout
from holdfast.store.atomic import Folder
from holdfast.store.interface import Changed, Document, Entry, no_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.models import Scope, TrashedNote
    from holdfast.store.interface import Check, FileContent, FileRef, NoteKey, NoteWrite
    from holdfast.store.transcripts import TranscriptFiles
    from holdfast.store.tree import FileTree
    from holdfast.store.watch import Watch


class FileStore:
    """The store of one home; see `holdfast.store.interface.Store` for its methods."""

    def __init__(self, home: str, lock_seconds: float) -> None:
        self.home = home
        self._lock_seconds = lock_seconds

    def exists(self) -> bool:
        return home_folder.exists(self.home)

    def check_owner(self) -> None:
        home_folder.check_owner(self.home)

    def named_lock(self, name: str, seconds: float | None = None) -> Lock:
        return Lock(self.home, name, self._lock_seconds if seconds is None else seconds)

    def lock_scope(self, scope: Scope) -> Lock:
        return self.named_lock(scope.folder.replace("/", "+"))

    def open_watch(self) -> Watch | None:
        from holdfast.store.watch import Watch

        return Watch.open()

    def display_path(self, path: str) -> str:
        return os.path.join(self.home, "shelf", path)

    # --- scopes and parts ------------------------------------------------------------------------------------------

    def list_scopes(self) -> list[str]:
        return [path for path, is_scope in self._list_paths() if is_scope]

    def list_strays(self) -> list[str]:
        return [path for path, is_scope in self._list_paths() if not is_scope]

    def _list_paths(self) -> Iterator[tuple[str, bool]]:
        """Yield every path where scopes are stored, and whether it is a scope."""
        root = atomic.open_folder(self.home, ("shelf",))
        if root is None:
            return
        with root, os.scandir(root.fd) as kinds:
            for kind in sorted(kinds, key=lambda entry: entry.name):
                is_folder = kind.is_dir(follow_symlinks=False)
                if not is_folder or kind.name == "global" or kind.name not in layout.SCOPE_KINDS:
                    if not kind.name.startswith(".") and kind.name != layout.TRANSCRIPTS:
                        yield kind.name, is_folder and kind.name == "global"
                    continue
                folder = self._open(kind.name)
                if folder is None:
                    continue
                with folder, os.scandir(folder.fd) as entries:
                    for entry in sorted(entries, key=lambda entry: entry.name):
                        is_scope = entry.is_dir(follow_symlinks=False) and is_name(entry.name)
                        if not entry.name.startswith("."):
                            yield f"{kind.name}/{entry.name}", is_scope

    def list_misnamed(self, scope_folder: str) -> list[str]:
        found: list[str] = []
        top, root = self.display_path(scope_folder), self._open(scope_folder)
        if root is None:
            return found
        with root:
            for _, path, folders, others in atomic.walk(root):
                found += [os.path.join(top, path + name) for name in [*folders, *others] if not atomic.is_utf8(name)]
                _skip_hidden(folders)
        return found

    def has_folder(self, scope_folder: str, part: str = "") -> bool:
        return os.path.isdir(os.path.join(self.home, "shelf", scope_folder, part))

    def entries(self, scope_folder: str, part: str) -> Iterator[Entry]:
        folder = self._open(scope_folder, part)
        if folder is None:
            return
        with folder, os.scandir(folder.fd) as entries:
            for entry in entries:
                if not atomic.is_visible(folder, entry.name):
                    continue
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield Entry(entry.name, atomic.make_file_id(info), stat.S_ISREG(info.st_mode))

    def fingerprint(self, scope_folder: str, part: str) -> int:
        folder = self._open(scope_folder, part)
        if folder is None:
            return 0
        with folder:
            total, odd = _combine_file_ids(folder, with_names=part != "notes")
            for name in odd:
                file_id = atomic.file_id(folder, name) if atomic.is_visible(folder, name) else None
                total ^= file_fingerprint(file_id, "" if part == "notes" else name) if file_id else 0
        return total

    def tree(self, scope_folder: str, lock_seconds: float | None = None) -> FileTree:
        from holdfast.store.tree import FileTree

        return FileTree(self.home, scope_folder, self._lock_seconds if lock_seconds is None else lock_seconds)

    def transcripts(self, scope_folder: str, lock_seconds: float | None = None) -> TranscriptFiles:
        from holdfast.store.transcripts import TranscriptFiles

        return TranscriptFiles(self.home, scope_folder, self._lock_seconds if lock_seconds is None else lock_seconds)

    # --- notes -----------------------------------------------------------------------------------------------------

    def read_note(self, scope: Scope, key: str) -> FileContent | None:
        return self.read_file(scope.folder, "notes", f"{key}.md")

    def read_notes(self, wanted: list[NoteKey]) -> list[FileContent | None]:
        existing: dict[Scope, list[str]] = {}
        for scope, key in wanted:
            if self._may_exist(scope.folder, "notes", f"{key}.md"):  # most new notes are new keys
                existing.setdefault(scope, []).append(key)
        found: dict[NoteKey, FileContent | None] = {}
        for scope, keys in existing.items():
            folder = self._open(scope.folder, "notes")
            if folder is not None:
                with folder:
                    found.update({(scope, key): atomic.read_file(folder, f"{key}.md") for key in keys})
        return [found.get(key) for key in wanted] if found else [None] * len(wanted)

    def find_notes(self, scopes: list[Scope], key: str) -> Iterator[tuple[Scope, FileContent]]:
        for scope in scopes:
            content = self.read_note(scope, key)
            if content is not None:
                yield scope, content

    def read_file(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        folder = self._open(scope_folder, part)
        if folder is None:
            return None
        with folder:
            return atomic.read_file(folder, name)

    def read_batch(self, wanted: list[FileRef]) -> dict[FileRef, FileContent]:
        found: dict[FileRef, FileContent] = {}
        by_folder: dict[tuple[str, str], list[str]] = {}
        for scope, part, name in wanted:
            by_folder.setdefault((scope, part), []).append(name)
        for (scope, part), names in by_folder.items():
            contents = self._read_some(scope, part, names)
            found.update({(scope, part, name): content for name, content in contents.items()})
        return found

    def _read_some(self, scope: str, part: str, names: list[str]) -> dict[str, FileContent]:
        """Return those of a folder's files, or lines of its transcripts, that can be read; the folder is opened once."""
        if part == layout.TRANSCRIPTS:
            return self.transcripts(scope, 0).read_lines_at(names)
        found: dict[str, FileContent] = {}
        try:
            folder = self._open(scope, part) if part in ("notes", "archive") else None
        except HoldfastError:
            return found  # the caller reads each file alone and sees why
        if folder is not None:
            with folder:
                for name in names:
                    try:
                        content = atomic.read_file(folder, name)
                    except HoldfastError:
                        continue  # the caller reads it alone and sees why
                    if content is not None:
                        found[name] = content
        return found

    def file_id(self, scope_folder: str, part: str, name: str) -> FileId | None:
        return self.file_ids(scope_folder, part, [name])[name]

    def file_ids(self, scope_folder: str, part: str, names: list[str]) -> dict[str, FileId | None]:
        folder = self._open(scope_folder, part)
        if folder is None:
            return dict.fromkeys(names)
        with folder:
            return {name: atomic.file_id(folder, name) for name in names}

    def write_note(self, scope: Scope, key: str, data: bytes, expected: FileId | None, *, check: Check = no_check) -> FileId:
        layout.check_note_size(data, f"{key}.md")
        return self._replace(scope, "notes", f"{key}.md", data=data, expected=expected, check=check)

    def write_history(
        self, scope: Scope, name: str, data: bytes, expected: FileId | None, *, note: tuple[str, FileId | None]
    ) -> None:
        note_name, note_id = note

        def check() -> None:
            if self.file_id(scope.folder, "notes", note_name) != note_id:
                raise Changed

        self._replace(scope, "history", name, data=data, expected=expected, check=check)

    def replace_file(self, scope: Scope, part: str, name: str, data: bytes, expected: FileId) -> None:
        self._replace(scope, part, name, data=data, expected=expected, check=no_check)

    def _replace(self, scope: Scope, part: str, name: str, *, data: bytes, expected: FileId | None, check: Check) -> FileId:
        with self._create(scope.folder, part) as folder:
            try:
                fd, temp = atomic.write_temp(folder, data)
                try:
                    with self.lock_scope(scope):
                        if atomic.file_id(folder, name) != expected:
                            raise Changed
                        check()
                        atomic.rename(folder, temp, folder, name)
                    written = atomic.make_file_id(os.fstat(fd))
                except BaseException:
                    atomic.discard_temp(folder, fd, temp)
                    raise
                os.close(fd)
                atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot write {folder.name}/{name}") from error
        return written

    def write_notes(self, notes: list[NoteWrite], *, check: Check = no_check) -> list[FileId]:
        from contextlib import ExitStack

        by_scope: dict[Scope, list[NoteWrite]] = {}
        for note in notes:
            layout.check_note_size(note.data, note.name)
            by_scope.setdefault(note.scope, []).append(note)
        scopes = sorted(by_scope, key=lambda scope: scope.folder)  # in this order every writer takes the locks
        with ExitStack() as stack:
            folders = {scope: stack.enter_context(self._create(scope.folder, "notes")) for scope in scopes}
            try:
                batches = [stack.enter_context(atomic.Batch(folders[scope])) for scope in scopes]
                temps = [
                    [(batch.write(note.data), note.name) for note in by_scope[scope]]
                    for scope, batch in zip(scopes, batches, strict=True)
                ]
                atomic.flush_batches(batches)
                with ExitStack() as locks:
                    for scope in scopes:
                        locks.enter_context(self.lock_scope(scope))
                    if any(atomic.file_id(folders[note.scope], note.name) != note.replaced for note in notes):
                        raise Changed
                    check()
                    for scope, renames in zip(scopes, temps, strict=True):
                        _rename_all(folders[scope], renames)
                    written = [atomic.file_id(folders[note.scope], note.name) or FileId(0, 0, 0) for note in notes]
                atomic.sync_folders(list(folders.values()))
                return written
            except OSError as error:
                raise from_os(error, f"cannot write to {folders[scopes[0]].name}") from error

    def erase_file(self, scope: Scope, part: str, name: str, expected: FileId | None = None) -> bool:
        folder = self._open(scope.folder, part)
        if folder is None:
            return False
        with folder, self.lock_scope(scope):
            try:
                if expected is not None and atomic.file_id(folder, name) not in (expected, None):
                    raise Changed
                os.unlink(name, dir_fd=folder.fd)
                atomic.sync_folder(folder)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise from_os(error, f"cannot erase {folder.name}/{name}") from error
        return True

    # --- trash and archive -----------------------------------------------------------------------------------------

    def move_notes(
        self, scope: Scope, keys: list[str], part: str, seconds: float, expected: dict[str, FileId] | None = None
    ) -> list[str]:
        notes = self._open(scope.folder, "notes")
        if notes is None:
            return []
        moved: list[str] = []
        with notes, self._create(scope.folder, part) as target, self.lock_scope(scope):
            last = layout.find_last_number(os.listdir(target.fd))
            for number, key in enumerate(keys, last + 1):
                if expected is not None and atomic.file_id(notes, f"{key}.md") != expected.get(key):
                    continue
                if not _is_regular(notes, f"{key}.md"):
                    continue  # missing, or a folder or link, which could not be restored
                try:
                    atomic.rename(notes, f"{key}.md", target, layout.format_trash_name(key, seconds, number))
                    moved.append(key)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise from_os(error, f"cannot move {notes.name}/{key}.md") from error
            if moved:
                _sync_folders(target, notes)
        return moved

    def list_trash(self, scope: Scope, key: str | None = None) -> list[TrashedNote]:
        entries = [(part, entry) for part in ("trash", "archive") for entry in self.entries(scope.folder, part)]
        return layout.select_trashed(scope, key, [(part, entry.name) for part, entry in entries if entry.regular])

    def find_archived(self, wanted: list[NoteKey]) -> dict[NoteKey, TrashedNote]:
        names = {scope: self._list_archive(scope) for scope in dict.fromkeys([scope for scope, _ in wanted])}
        return layout.select_last_archived(wanted, names)

    def _list_archive(self, scope: Scope) -> list[str]:
        folder = self._open(scope.folder, "archive") if self._may_exist(scope.folder, "archive") else None
        if folder is None:
            return []
        with folder:
            return os.listdir(folder.fd)

    def trash_archived(self, scope: Scope, note: TrashedNote, seconds: float) -> bool:
        archive = self._open(scope.folder, "archive")
        if archive is None:
            return False
        with archive, self._create(scope.folder, "trash") as trash, self.lock_scope(scope):
            try:
                number = layout.find_last_number(os.listdir(trash.fd)) + 1
                atomic.rename(archive, note.name, trash, layout.format_trash_name(note.key, seconds, number))
                _sync_folders(trash, archive)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise from_os(error, f"cannot move {archive.name}/{note.name}") from error
        return True

    def restore_note(self, scope: Scope, note: TrashedNote, key: str) -> None:
        folder = self._open(scope.folder, note.part)
        if folder is None:
            raise Changed
        with folder, self._create(scope.folder, "notes") as notes, self.lock_scope(scope):
            try:
                if atomic.file_id(notes, f"{key}.md") is not None:
                    raise Changed
                atomic.rename(folder, note.name, notes, f"{key}.md")
                _sync_folders(notes, folder)
            except FileNotFoundError:
                raise Changed from None
            except OSError as error:
                raise from_os(error, f"cannot restore {folder.name}/{note.name}") from error

    # --- index.md --------------------------------------------------------------------------------------------------

    def has_listing(self, scope: Scope) -> bool:
        return os.path.lexists(os.path.join(self.home, "shelf", scope.folder, "index.md"))

    def has_current_listing(self, scope: Scope) -> bool:
        """Return whether index.md is at least as new as the last created, deleted or replaced note of this scope.

        A process may have died before it wrote the file.
        """
        folder = os.path.join(self.home, "shelf", scope.folder)
        try:
            listing, notes = os.lstat(os.path.join(folder, "index.md")), os.lstat(os.path.join(folder, "notes"))
        except OSError:
            return False
        return notes.st_mtime_ns <= listing.st_ctime_ns  # the rename to index.md sets both at once

    def write_listing(self, scope: Scope, data: bytes) -> None:
        """Replace index.md; its temp file is created among the notes, where readers delete it if this writer dies.

        `has_current_listing` needs the same time for index.md and the notes folder, and another time for the next change of the
        folder. Linux since 6.13 gives a new time to what was looked at since its last change; without that, two changes within
        some milliseconds may have the same time.
        """
        folder = self._open(scope.folder)
        if folder is None:
            return
        with folder, self._create(scope.folder, "notes") as notes:
            try:
                fd, temp = atomic.write_temp(notes, data, sync=False)
                try:
                    os.fstat(fd)
                    atomic.rename(notes, temp, folder, "index.md")
                    os.fstat(notes.fd)
                except BaseException:
                    atomic.discard_temp(notes, fd, temp)
                    raise
                os.close(fd)
            except OSError as error:
                raise from_os(error, f"cannot write {folder.name}/index.md") from error

    # --- copying to another store ----------------------------------------------------------------------------------

    def list_digests(self, scope_folder: str, part: str) -> Iterator[tuple[str, str]]:
        from hashlib import sha256

        entries = self.tree(scope_folder).entries() if part == "files" else self.entries(scope_folder, part)
        for name in sorted([entry.name for entry in entries if entry.regular]):
            try:
                content = self.read_document(scope_folder, part, name)
            except HoldfastError:
                yield name, ""
                continue
            if content is not None:
                yield name, sha256(content.data).hexdigest()

    def read_document(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        if part == "files":
            return self.tree(scope_folder).read(tuple(name.split("/")))
        return self.read_file(scope_folder, part, name)

    def add_documents(self, scope_folder: str, part: str, documents: list[Document]) -> None:
        by_folder: dict[str, list[Document]] = {}
        for document in documents:
            folder, _, name = document.name.rpartition("/")
            by_folder.setdefault(folder, []).append(document.replace(name=name))
        for folder, some in by_folder.items():
            self._add_to_folder(scope_folder, (part, *folder.split("/")) if folder else (part,), some)

    def _add_to_folder(self, scope_folder: str, parts: tuple[str, ...], documents: list[Document]) -> None:
        with self._create(scope_folder, *parts) as folder:
            try:
                with atomic.Batch(folder) as batch:
                    temps = [(batch.write(document.data), document) for document in documents]
                    for temp, document in temps:
                        times = document.modified, document.modified
                        os.utime(temp, times, dir_fd=folder.fd, follow_symlinks=False)
                    batch.flush()
                    with self.named_lock(scope_folder.replace("/", "+")):
                        for temp, document in reversed(temps):
                            _link_new(folder, temp, document.name)
                    atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot write to {folder.name}") from error

    def list_empty_folders(self, scope_folder: str) -> list[str]:
        root = self._open(scope_folder, "files")
        if root is None:
            return []
        found = []
        with root:
            for _, path, folders, others in atomic.walk(root):
                if path and all(name.startswith(".") for name in [*folders, *others]):
                    found.append(path.rstrip("/"))
                _skip_hidden(folders)
        return sorted(found)

    def list_unknown_files(self, scope_folder: str) -> list[tuple[str, str]]:
        root = self._open(scope_folder)
        if root is None:
            return []
        found = []
        with root:
            for folder, path, folders, others in atomic.walk(root):
                _skip_hidden(folders)
                for name in others:
                    if name.startswith(".") or not atomic.is_utf8(name) or path + name == "index.md":
                        continue
                    if not _is_regular(folder, name):
                        found.append((path + name, "not a regular file"))
                    elif not _is_copied(path + name):
                        found.append((path + name, "is not in a folder of memory"))
        return sorted(found)

    def finish_copy(self) -> None:
        pass

    # --- folders ---------------------------------------------------------------------------------------------------

    def _may_exist(self, scope_folder: str, *parts: str) -> bool:
        """Return False if there is no such path: one call of the system instead of opening every folder on the way."""
        return os.path.lexists(os.path.join(self.home, "shelf", scope_folder, *parts))

    def _open(self, scope_folder: str, *parts: str) -> Folder | None:
        return atomic.open_folder(self.home, ("shelf", *scope_folder.split("/"), *parts))

    def _create(self, scope_folder: str, *parts: str) -> Folder:
        return atomic.create_folder(self.home, ("shelf", *scope_folder.split("/"), *parts))


def stat_entry(folder: str, name: str) -> Entry | None:
    """Return one file of a folder given by its absolute path, or None if it cannot be seen."""
    try:
        info = os.stat(os.path.join(folder, name), follow_symlinks=False)
    except OSError:
        return None
    return Entry(name, atomic.make_file_id(info), stat.S_ISREG(info.st_mode))


def _rename_all(folder: Folder, temps: list[tuple[str, str]]) -> None:
    """Rename temp files of a batch, the first one last: while it exists, readers leave the others alone."""
    for number, (temp, name) in enumerate(reversed(temps)):
        try:
            atomic.rename(folder, temp, folder, name)
        except OSError as error:
            doing = f"cannot write {folder.name}/{name} ({number} of {len(temps)} were written before it)"
            raise from_os(error, doing) from error


def _link_new(folder: Folder, temp: str, name: str) -> None:
    """Rename a temp file to its final name; a link never overwrites a file that another program created meanwhile."""
    try:
        os.link(temp, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
    except FileExistsError:
        raise Conflict(f"{folder.name}/{name} was changed by another process", "Stop other writers and copy again") from None
    os.unlink(temp, dir_fd=folder.fd)


def _sync_folders(*folders: Folder) -> None:
    for folder in folders:
        try:
            atomic.sync_folder(folder)
        except OSError as error:
            raise from_os(error, f"cannot flush {folder.name}") from error


def _combine_file_ids(folder: Folder, with_names: bool) -> tuple[int, list[str]]:
    """Return the fingerprints of a folder's files combined with XOR, and the names that need a second look.

    The same as `file_fingerprint` for each file, but inlined: a recall in a new process stats every note.
    """
    total, odd = 0, []
    if with_names:
        from zlib import crc32
    with os.scandir(folder.fd) as entries:
        for entry in entries:
            name = entry.name
            if not (name[0].isalnum() and name.isascii()):
                odd.append(name)
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if with_names:
                total ^= hash((info.st_ino, info.st_ctime_ns, info.st_size, crc32(name.encode())))
            else:
                total ^= hash((info.st_ino, info.st_ctime_ns, info.st_size))
    return total, odd


def _skip_hidden(folders: list[str]) -> None:
    """Keep a walk out of hidden folders and those whose names are not UTF-8."""
    folders[:] = [name for name in folders if not name.startswith(".") and atomic.is_utf8(name)]


def _is_regular(folder: Folder, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_copied(path: str) -> bool:
    """Return whether a file at this path of a scope is a document or a transcript."""
    part, *inside = path.split("/")
    if part == "files" or (part in layout.DOCUMENT_PARTS and len(inside) == 1):
        return bool(inside)
    return part in (layout.TRANSCRIPTS, "trash") and len(inside) == 2 and path.endswith(layout.TRANSCRIPT_SUFFIX)
