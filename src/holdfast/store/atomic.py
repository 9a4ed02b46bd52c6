"""Atomic, durable files: folders opened step by step without following links, and writes that are complete or absent.

A write is: temp file, fsync, rename, fsync of the folder. The writer holds an flock on its temp file while it lives, so a
temp file without that lock belongs to a dead writer, and the next reader deletes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from holdfast import home as home_folder
from holdfast.base import dates
from holdfast.base.ids import FileId
from holdfast.errors import DOCTOR, Damaged, Template, from_os
from holdfast.store.interface import FileContent
from holdfast.store.layout import NOTE_FILE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self


TEMP_PREFIX = ".holdfast-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SYNCED_ONE_BY_ONE = 4  # files of a batch; more are flushed with the whole file system
_libc: list[Any] = []


class Folder:
    """An open folder; use it in a `with`."""

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self.fd)


def open_folder(home: str, parts: tuple[str, ...], create: bool = False) -> Folder | None:
    """Open the folder `home/part/part...` without following links; return None if it does not exist."""
    path = "/".join(parts)
    try:
        fd = home_folder.open_home(home, create)
        for part in parts:
            if fd is None:
                return None
            try:
                inner = _open_inner(fd, part, create)
            finally:
                os.close(fd)
            fd = inner
    except OSError as error:
        raise from_os(error, f"cannot open {path or home}") from error
    return Folder(fd, path) if fd is not None else None


def create_folder(home: str, parts: tuple[str, ...]) -> Folder:
    """Open a folder, created if it does not exist."""
    folder = open_folder(home, parts, create=True)
    assert folder is not None
    return folder


def _open_inner(fd: int, part: str, create: bool) -> int | None:
    try:
        return os.open(part, _FOLDER, dir_fd=fd)
    except FileNotFoundError:
        if not create:
            return None
    try:
        os.mkdir(part, 0o700, dir_fd=fd)
        os.fsync(fd)
    except FileExistsError:
        pass
    return os.open(part, _FOLDER, dir_fd=fd)


def walk(folder: Folder, path: str = "") -> Iterator[tuple[Folder, str, list[str], list[str]]]:
    """Yield every folder below an open one: the folder, its path ending in a slash, its folders and its other names.

    Like `os.walk`, but each folder is opened in the one above, so that no link leads out. Remove names from the list of
    folders to skip them.
    """
    folders: list[str] = []
    others: list[str] = []
    with os.scandir(folder.fd) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    yield folder, path, folders, others
    for name in folders:
        try:
            fd = os.open(name, _FOLDER, dir_fd=folder.fd)
        except OSError:
            continue  # deleted or replaced since it was listed
        with Folder(fd, f"{folder.name}/{name}") as inner:
            yield from walk(inner, f"{path}{name}/")


def open_file(home: str, path: str) -> int | None:
    """Return a descriptor of a file in the home, opened without following links, or None if it does not exist."""
    *parts, name = path.split("/")
    folder = open_folder(home, tuple(parts))
    if folder is None:
        return None
    with folder:
        try:
            return os.open(name, _READ, dir_fd=folder.fd)
        except FileNotFoundError:
            return None


def read_file(folder: Folder, name: str, max_bytes: int = NOTE_FILE_BYTES) -> FileContent | None:
    """Return a file, or None if it does not exist; raise `Damaged` for a link, a special file or one that is too large."""
    try:
        fd = os.open(name, _READ, dir_fd=folder.fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            fix = "Replace it by a plain file; links are never followed"
            raise Damaged(f"{folder.name}/{name} is a symbolic link", fix) from error
        raise from_os(error, f"cannot open {folder.name}/{name}") from error
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise Damaged(f"{folder.name}/{name} is not a regular file", Template("Remove it; run ", DOCTOR))
        if info.st_size > max_bytes:
            raise Damaged(f"{folder.name}/{name} has {info.st_size:,} bytes; at most {max_bytes:,} are read", "Split the file")
        data = _read_all(fd, info.st_size, max_bytes)
    except OSError as error:
        raise from_os(error, f"cannot read {folder.name}/{name}") from error
    finally:
        os.close(fd)
    return FileContent(data, make_file_id(info), int(info.st_mtime))


def _read_all(fd: int, size: int, most_bytes: int) -> bytes:
    data = os.read(fd, size + 1)
    while len(data) > size and len(data) <= most_bytes:  # the file grew meanwhile
        more = os.read(fd, 1 << 20)
        if not more:
            break
        data += more
    return data


def make_file_id(info: os.stat_result) -> FileId:
    """Return the id of a file from its stat."""
    return FileId(info.st_ino, info.st_ctime_ns, info.st_size)


def file_id(folder: Folder, name: str) -> FileId | None:
    """Return the id of a file, or None if it does not exist."""
    try:
        return make_file_id(os.stat(name, dir_fd=folder.fd, follow_symlinks=False))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise from_os(error, f"cannot look at {folder.name}/{name}") from error


def write_temp(folder: Folder, data: bytes, sync: bool = True) -> tuple[int, str]:
    """Write a complete temp file, locked with flock, and return its descriptor and name."""
    while True:
        name = f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(6).hex()}.tmp"
        fd = os.open(name, _CREATE, 0o600, dir_fd=folder.fd)
        try:
            locked = _lock_temp(fd)
        except OSError:
            os.close(fd)
            raise
        if not locked:
            os.close(fd)
            continue
        try:
            write_all(fd, data)
            if sync:
                os.fsync(fd)
        except BaseException:
            discard_temp(folder, fd, name)
            raise
        return fd, name


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes to a descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def append(folder: Folder, name: str, data: bytes) -> None:
    """Append bytes to a file and flush it; create it if it does not exist. If that fails, nothing is appended."""
    fd = os.open(name, _APPEND, 0o600, dir_fd=folder.fd)
    start, written = os.fstat(fd).st_size, 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
        os.utime(fd, (dates.clock(), dates.clock()))  # the clock that dates everything else
        os.fsync(fd)
    except BaseException:
        if os.fstat(fd).st_size == start + written:  # otherwise another program appended too
            os.ftruncate(fd, start)
        raise
    finally:
        os.close(fd)


def _lock_temp(fd: int) -> bool:
    """Lock a new temp file and return whether it still exists: another process may have deleted it before the lock."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(fd).st_nlink > 0


def discard_temp(folder: Folder, fd: int, name: str) -> None:
    """Delete a temp file, unless it was renamed, and close it."""
    unlink(folder, name)  # if the disk is failing, a later reader deletes it
    os.close(fd)


def remove_abandoned(folder: Folder, name: str) -> bool:
    """Delete a temp file if its writer is dead, and return whether that worked.

    The first file of a batch is locked for all of them. Cleaners take a shared lock: they do not stop each other, nor does
    a process that one of them has just forked.
    """
    locked = name[: name.index(".tmp") + 4] if ".tmp." in name else name
    try:
        fd = os.open(locked, _READ, dir_fd=folder.fd)
    except FileNotFoundError:
        return unlink(folder, name)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return unlink(folder, name)
    except OSError:
        return False
    finally:
        os.close(fd)


def is_visible(folder: Folder, name: str) -> bool:
    """Return whether a name is UTF-8 and not hidden; temp files of dead writers are deleted on the way."""
    if name.startswith("."):
        if name.startswith(TEMP_PREFIX):
            remove_abandoned(folder, name)
        return False
    return name.isascii() or is_utf8(name)


def is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def unlink(folder: Folder, name: str) -> bool:
    """Delete a file and return whether that worked."""
    try:
        os.unlink(name, dir_fd=folder.fd)
    except OSError:
        return False
    return True


def rename(source: Folder, name: str, target: Folder, new_name: str) -> None:
    """Move a file from one open folder to another."""
    os.rename(name, new_name, src_dir_fd=source.fd, dst_dir_fd=target.fd)


def sync_folder(folder: Folder) -> None:
    os.fsync(folder.fd)


def sync_folders(folders: list[Folder]) -> None:
    """Flush folders to disk: many with one flush of the file system, a few by themselves."""
    if len(folders) > _SYNCED_ONE_BY_ONE:
        sync_filesystem(folders[0])
        return
    for folder in folders:
        sync_folder(folder)


def sync_filesystem(folder: Folder) -> None:
    """Flush every file of the folder's file system: far cheaper for a bulk write than one flush per file."""
    import ctypes

    syncfs = getattr(load_libc(), "syncfs", None)
    if syncfs is None:
        os.sync()
    elif syncfs(folder.fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def load_libc() -> Any:
    """Return the C library, loaded once because loading takes longer than a flush."""
    if not _libc:
        import ctypes

        _libc.append(ctypes.CDLL(None, use_errno=True))
    return _libc[0]


class Batch:
    """Temp files of one bulk write. All names begin with that of the first, which is locked and must be renamed last."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._names: list[str] = []
        self._open: list[int] = []  # descriptors of the first few

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> str:
        """Write one more complete temp file, not yet flushed, and return its name."""
        if not self._names:
            fd, name = write_temp(self._folder, data, sync=False)
            self._names.append(name)
            self._open.append(fd)
            return name
        name = f"{self._names[0]}.{len(self._names)}"
        fd = os.open(name, _CREATE, 0o600, dir_fd=self._folder.fd)
        self._names.append(name)
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            if len(self._open) < _SYNCED_ONE_BY_ONE:
                self._open.append(fd)
            else:
                os.close(fd)
        return name

    def flush(self) -> None:
        """Flush the files to disk."""
        flush_batches([self])

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for name in reversed(self._names) if kind else ():
            unlink(self._folder, name)  # fails for those that were renamed
        for fd in self._open:
            os.close(fd)


def flush_batches(batches: list[Batch]) -> None:
    """Flush the files of batches on one file system: many with one flush of the file system, a few by themselves.

    A few do not wait for what other programs write to the same disk. Their writing starts before the first is waited for.
    """
    if sum([len(batch._names) for batch in batches]) > _SYNCED_ONE_BY_ONE:
        sync_filesystem(batches[0]._folder)
        return
    open_files = [fd for batch in batches for fd in batch._open]
    for fd in open_files:
        _start_writing(fd)
    for fd in reversed(open_files):
        os.fsync(fd)


def _start_writing(fd: int) -> None:
    """Start writing a file to disk without waiting: Linux does so for "no longer needed"."""
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    except (AttributeError, OSError):
        pass
