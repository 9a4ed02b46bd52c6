"""An agent's own files on disk: `files/` of a scope. Holdfast indexes them and never rewrites them."""

from __future__ import annotations

import os
import stat

from holdfast.base import dates
from holdfast.errors import Conflict, Damaged, InvalidPath, from_os
from holdfast.home import Lock
from holdfast.store import atomic
from holdfast.store.atomic import Folder
from holdfast.store.interface import Entry, FileContent, no_check
from holdfast.store.layout import FILE_BYTES, NOTE_FILE_BYTES, make_file_in_path_error, make_missing_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.base.ids import FileId
    from holdfast.store.interface import Check

_DEPTH = 32  # folders in folders that are listed


class FileTree:
    """The files of one scope; see `holdfast.store.interface.Tree` for its methods."""

    def __init__(self, home: str, scope_folder: str, lock_seconds: float) -> None:
        self._home = home
        self._root = ("shelf", *scope_folder.split("/"), "files")
        self._lock_name = scope_folder.replace("/", "+")
        self._lock_seconds = lock_seconds

    def read(self, parts: tuple[str, ...]) -> FileContent | None:
        return self.read_part("files", parts) if parts else None

    def read_part(self, part: str, parts: tuple[str, ...]) -> FileContent | None:
        folder = self._open(parts[:-1], part)
        if folder is None:
            return None
        with folder:
            return atomic.read_file(folder, parts[-1], FILE_BYTES if part == "files" else NOTE_FILE_BYTES)

    def file_id(self, parts: tuple[str, ...]) -> FileId | None:
        folder = self._open(parts[:-1]) if parts else None
        if folder is None:
            return None
        with folder:
            return atomic.file_id(folder, parts[-1])

    def list_names(self, parts: tuple[str, ...]) -> list[str] | None:
        folder = self._open(parts)
        if folder is None:
            return None
        with folder, os.scandir(folder.fd) as entries:
            return sorted(
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
                if not entry.name.startswith(".") and not entry.is_symlink()
            )

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        if not parts:
            return True
        folder = self._open(parts[:-1])
        if folder is None:
            return False
        with folder:
            return stat.S_ISDIR(_mode(folder, parts[-1]))

    def write(self, parts: tuple[str, ...], data: bytes, expected: FileId | None, *, check: Check = no_check) -> FileContent:
        path, name = "/".join(parts), parts[-1]
        with self._create(parts[:-1]) as folder:
            _reject_link(folder, parts)
            try:
                fd, temp = atomic.write_temp(folder, data)
                try:
                    os.utime(fd, (dates.clock(), dates.clock()))  # the clock that dates everything else
                    with self._lock():
                        if atomic.file_id(folder, name) != expected:
                            raise Conflict(f"{path} was changed by another process", "Read it again and retry")
                        check()
                        atomic.rename(folder, temp, folder, name)
                    info = os.fstat(fd)
                finally:
                    atomic.discard_temp(folder, fd, temp)
                atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot write {path}") from error
        return FileContent(data, atomic.make_file_id(info), int(info.st_mtime))

    def append(
        self, parts: tuple[str, ...], compose: Callable[[bytes], bytes]
    ) -> tuple[FileContent | None, FileContent | None]:
        """Append in place: replacing the file would lose a line that a shell appends meanwhile (`>>`)."""
        with self._create(parts[:-1]) as folder:
            try:
                with self._lock():
                    before = self.read(parts)
                    added = compose(before.data if before else b"")
                    if not added:
                        return before, before
                    atomic.append(folder, parts[-1], added)
                if before is None:
                    atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot write {'/'.join(parts)}") from error
        return before, self.read(parts)

    def create_file(self, parts: tuple[str, ...], data: bytes) -> bool:
        """Create a file by linking it into place: that never overwrites a file that another program created meanwhile."""
        with self._create(parts[:-1]) as folder:
            try:
                if atomic.file_id(folder, parts[-1]) is not None:
                    return False
                fd, temp = atomic.write_temp(folder, data)
                try:
                    os.link(temp, parts[-1], src_dir_fd=folder.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
                except FileExistsError:
                    return False
                finally:
                    atomic.discard_temp(folder, fd, temp)
                atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot write {'/'.join(parts)}") from error
        return True

    def create_folder(self, parts: tuple[str, ...]) -> bool:
        if self.is_folder(parts):
            return False
        with self._create(parts):
            return True

    def delete(self, parts: tuple[str, ...]) -> None:
        folder = self._open(parts[:-1])
        if folder is None:
            raise make_missing_error(parts)
        with folder, self._lock():
            try:
                _reject_link(folder, parts)
                _remove(folder, parts[-1])
                atomic.sync_folder(folder)
            except FileNotFoundError:
                raise make_missing_error(parts) from None
            except OSError as error:
                raise from_os(error, f"cannot delete {'/'.join(parts)}") from error

    def rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        if new[: len(old)] == old:
            raise InvalidPath("a folder cannot move into itself", "Choose a destination outside the folder")
        source = self._open(old[:-1]) if self.file_id(old) is not None else None
        if source is None:
            raise make_missing_error(old)
        with source, self._create(new[:-1]) as target, self._lock():
            try:
                _reject_link(source, old)
                if atomic.file_id(target, new[-1]) is not None:
                    raise Conflict(f"{'/'.join(new)} already exists", "Choose another name or delete it first")
                atomic.rename(source, old[-1], target, new[-1])
                atomic.sync_folder(target)
                atomic.sync_folder(source)
            except FileNotFoundError:
                raise make_missing_error(old) from None
            except OSError as error:
                raise from_os(error, f"cannot rename {'/'.join(old)}") from error

    def entries(self) -> Iterator[Entry]:
        root = self._open(())
        if root is None:
            return
        with root:
            for folder, path, folders, others in atomic.walk(root):
                for name in others:
                    if not atomic.is_visible(folder, name):
                        continue
                    try:
                        info = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    yield Entry(path + name, atomic.make_file_id(info), stat.S_ISREG(info.st_mode))
                deeper = path.count("/") < _DEPTH
                folders[:] = [name for name in folders if deeper and atomic.is_visible(folder, name)]

    def list_folders(self) -> list[str]:
        top, root = os.path.join(self._home, *self._root), self._open(())
        if root is None:
            return []
        found = []
        with root:
            for _, path, folders, _ in atomic.walk(root):
                folders[:] = [name for name in folders if not name.startswith(".")]
                found.append(os.path.join(top, path).rstrip("/"))
        return found

    def _open(self, parts: tuple[str, ...], part: str = "files") -> Folder | None:
        """Open a folder of the tree, or of another part of its scope; return None if it does not exist or is a file."""
        try:
            return atomic.open_folder(self._home, (*self._root[:-1], part, *parts))
        except Damaged:
            if self._find_file_in_path(parts, part):
                return None
            raise

    def _create(self, parts: tuple[str, ...]) -> Folder:
        try:
            return atomic.create_folder(self._home, (*self._root, *parts))
        except Damaged:
            if path := self._find_file_in_path(parts, self._root[-1]):
                raise make_file_in_path_error(path) from None
            raise

    def _find_file_in_path(self, parts: tuple[str, ...], part: str) -> str:
        """Return the first part of a folder's path that is a regular file; "" if there is none, or a link before it."""
        for count in range(1, len(parts) + 1):
            try:
                mode = os.lstat(os.path.join(self._home, *self._root[:-1], part, *parts[:count])).st_mode
            except OSError:
                return ""
            if not stat.S_ISDIR(mode):
                return "/".join(parts[:count]) if stat.S_ISREG(mode) else ""
        return ""

    def _lock(self) -> Lock:
        return Lock(self._home, self._lock_name, self._lock_seconds)


def _remove(folder: Folder, name: str) -> None:
    """Delete a file, or a folder with everything in it."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder.fd)
        return
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.fd)
    with Folder(fd, f"{folder.name}/{name}") as inner:
        for below in os.listdir(inner.fd):
            _remove(inner, below)
    os.rmdir(name, dir_fd=folder.fd)


def _mode(folder: Folder, name: str) -> int:
    """Return the mode of a file, or 0 if it does not exist."""
    try:
        return os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0


def _reject_link(folder: Folder, parts: tuple[str, ...]) -> None:
    if stat.S_ISLNK(_mode(folder, parts[-1])):
        raise InvalidPath(f"{'/'.join(parts)} is a symbolic link", "Links are never followed; remove it by hand")
