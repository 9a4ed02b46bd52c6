"""The agent's own files: `files/` of a scope. Indexed by us, arranged by them, rewritten by nobody else."""

from __future__ import annotations

import os
import stat

from holdfast.base import dates
from holdfast.errors import Conflict, InvalidPath, NotFound, from_os
from holdfast.home import Lock
from holdfast.store import atomic
from holdfast.store.atomic import FILE_BYTES, FileContent, Folder, Stamp
from holdfast.store.files import Entry, nothing_against

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.files import May

_DEPTH = 32


class Tree:
    """One scope's files, by path parts that passed the gate."""

    def __init__(self, home: str, scope_folder: str, lock_seconds: float) -> None:
        self._home = home
        self._root = ("shelf", *scope_folder.split("/"), "files")
        self._lock = scope_folder.replace("/", "+")
        self._lock_seconds = lock_seconds

    def read(self, parts: tuple[str, ...]) -> FileContent | None:
        """A file's bytes; None where there is none."""
        folder = self._folder(parts[:-1]) if parts else None
        if folder is None:
            return None
        with folder:
            return atomic.read(folder, parts[-1], FILE_BYTES)

    def beside(self, part: str, parts: tuple[str, ...]) -> FileContent | None:
        """A file of another part of the same scope, such as its notes."""
        folder = atomic.open_folder(self._home, (*self._root[:-1], part, *parts[:-1]))
        if folder is None:
            return None
        with folder:
            return atomic.read(folder, parts[-1], FILE_BYTES if part == "files" else atomic.NOTE_FILE_BYTES)

    def stamp(self, parts: tuple[str, ...]) -> Stamp | None:
        folder = self._folder(parts[:-1]) if parts else None
        if folder is None:
            return None
        with folder:
            return atomic.stamp(folder, parts[-1])

    def names(self, parts: tuple[str, ...]) -> list[str] | None:
        """The names in a folder (folders end in /), or None if it is not one."""
        folder = self._folder(parts)
        if folder is None:
            return None
        with folder, os.scandir(folder.fd) as entries:
            return sorted(
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
                if not entry.name.startswith(".") and not entry.is_symlink()
            )

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        """Whether a folder stands there."""
        if not parts:
            return True
        folder = self._folder(parts[:-1])
        if folder is None:
            return False
        with folder:
            try:
                mode = os.stat(parts[-1], dir_fd=folder.fd, follow_symlinks=False).st_mode
            except FileNotFoundError:
                return False
            return stat.S_ISDIR(mode)

    def write(self, parts: tuple[str, ...], data: bytes, seen: Stamp | None, may: May = nothing_against) -> FileContent:
        """Put a file in the place of the one that was seen (None: of none); it, as it would be read now. `may` is asked when
        nobody else can write any more."""
        with self._made(parts[:-1]) as folder:
            name = parts[-1]
            _no_link(folder, parts)
            try:
                fd, temp = atomic.write_temp(folder, data)
                try:
                    os.utime(fd, (dates.clock(), dates.clock()))  # by the same clock as everything else we date
                    with self._locked():
                        now = atomic.stamp(folder, name)
                        if now != seen:
                            raise Conflict(f"{'/'.join(parts)} was changed by somebody else", "Read it again and retry")
                        may()
                        os.rename(temp, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
                    info = os.fstat(fd)
                finally:
                    atomic.discard(folder, fd, temp)
                atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot write {'/'.join(parts)}") from error
        return FileContent(data, atomic.stamp_of(info), int(info.st_mtime))

    def plant(self, parts: tuple[str, ...], data: bytes) -> bool:
        """Put a file where there is none; False where something stands. It is linked into place, which no race can make
        overwrite anything, not even what a person's editor writes in that instant."""
        with self._made(parts[:-1]) as folder:
            try:
                if atomic.stamp(folder, parts[-1]) is not None:
                    return False
                fd, temp = atomic.write_temp(folder, data)
                try:
                    os.link(temp, parts[-1], src_dir_fd=folder.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
                except FileExistsError:
                    return False
                finally:
                    atomic.discard(folder, fd, temp)
                atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot write {'/'.join(parts)}") from error
        return True

    def plant_folder(self, parts: tuple[str, ...]) -> bool:
        """Make a folder where there is none; False where there is one."""
        if self.is_folder(parts):
            return False
        with self._made(parts):
            return True

    def delete(self, parts: tuple[str, ...]) -> None:
        """Remove a file, or a folder with all in it."""
        folder = self._folder(parts[:-1])
        if folder is None:
            raise missing(parts)
        with folder, self._locked():
            try:
                _no_link(folder, parts)
                self._remove(folder, parts[-1])
                atomic.sync_folder(folder)
            except FileNotFoundError:
                raise missing(parts) from None
            except OSError as error:
                raise from_os(error, f"cannot delete {'/'.join(parts)}") from error

    def rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Move a file or folder; never over another."""
        if new[: len(old)] == old:
            raise InvalidPath("a folder cannot move into itself", "Choose a name outside of it")
        source = self._folder(old[:-1])
        if source is None or self.stamp(old) is None:
            if source is not None:
                os.close(source.fd)
            raise missing(old)
        with source, self._made(new[:-1]) as target, self._locked():
            try:
                _no_link(source, old)
                if atomic.stamp(target, new[-1]) is not None:
                    raise Conflict(f"{'/'.join(new)} is there already", "Choose another name or delete it first")
                os.rename(old[-1], new[-1], src_dir_fd=source.fd, dst_dir_fd=target.fd)
                atomic.sync_folder(target)
                atomic.sync_folder(source)
            except FileNotFoundError:
                raise missing(old) from None
            except OSError as error:
                raise from_os(error, f"cannot rename {'/'.join(old)}") from error

    def census(self) -> Iterator[Entry]:
        """Every file below, by its path in the tree."""
        root = self._folder(())
        if root is not None:
            with root:
                yield from self._walk(root, "", 0)

    def folders(self) -> list[str]:
        """The absolute path of every folder in the tree."""
        top, root = os.path.join(self._home, *self._root), self._folder(())
        if root is None:
            return []
        with root:
            return [os.path.join(top, where).rstrip("/") for where, inner, _ in atomic.walk(root) if not _prune(inner)]

    def _walk(self, folder: Folder, prefix: str, depth: int) -> Iterator[Entry]:
        inner = []
        with os.scandir(folder.fd) as entries:
            for entry in entries:
                if not atomic.is_plain(folder, entry.name):
                    continue
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISDIR(info.st_mode):
                    inner.append(entry.name)
                else:
                    yield Entry(prefix + entry.name, atomic.stamp_of(info), stat.S_ISREG(info.st_mode))
        for name in inner if depth < _DEPTH else ():
            try:
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.fd)
            except OSError:
                continue  # gone or swapped since we listed it
            with Folder(fd, f"{folder.name}/{name}") as below:
                yield from self._walk(below, f"{prefix}{name}/", depth + 1)

    def _remove(self, folder: Folder, name: str) -> None:
        info = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(name, dir_fd=folder.fd)
            return
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.fd)
        with Folder(fd, f"{folder.name}/{name}") as inner:
            for below in os.listdir(inner.fd):
                self._remove(inner, below)
        os.rmdir(name, dir_fd=folder.fd)

    def _folder(self, parts: tuple[str, ...]) -> Folder | None:
        return atomic.open_folder(self._home, (*self._root, *parts))

    def _made(self, parts: tuple[str, ...]) -> Folder:
        folder = atomic.open_folder(self._home, (*self._root, *parts), create=True)
        assert folder is not None
        return folder

    def _locked(self) -> Lock:
        return Lock(self._home, self._lock, self._lock_seconds)


def missing(parts: tuple[str, ...]) -> NotFound:
    """What to say of a file that is not there."""
    return NotFound(f"no file {'/'.join(parts)}", "`view /memories` lists what there is")


def _no_link(folder: Folder, parts: tuple[str, ...]) -> None:
    try:
        mode = os.stat(parts[-1], dir_fd=folder.fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise InvalidPath(f"{'/'.join(parts)} is a symbolic link", "Links are never followed; remove it by hand")


def _prune(inner: list[str]) -> bool:
    """Do not go into hidden folders."""
    inner[:] = [name for name in inner if not name.startswith(".")]
    return False
