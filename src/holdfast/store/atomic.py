"""Files without surprises: folders opened step by step without following links, writes that are whole or not there.

A write is temp file, fsync, rename, fsync of the folder. The temp file is held with flock while its writer lives, so
anybody who finds one unheld knows that its writer died, and sweeps it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from holdfast import home as home_folder
from holdfast.base.record import Record
from holdfast.errors import DOCTOR, Damaged, Template, TooLarge, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self

Stamp = tuple[int, int, int]  # inode, ctime in ns, size: every change of a file changes one of them
TEMP = ".holdfast-"
NOTE_FILE_BYTES = 64 * 1024 * 1024
FILE_BYTES = 10 * 1024 * 1024  # of a file in an agent's tree
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_EVENTS = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # modify, attrib, close, moves, create, deletes
_ONLY_FOLDERS = 0x01000000 | 0x02000000  # and never through a link
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_LOST = _OVERFLOW | _IGNORED | 0x2000 | 0x400 | 0x800  # unmounted, the folder itself gone or moved
_EVENT = "iIII"  # what the kernel tells of one event
_libraries: list[Any] = []
_MOST_KEPT = 4
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileContent(Record):
    """A file's bytes, with what the file system said of them before they were read."""

    data: bytes
    stamp: Stamp
    modified: int  # seconds

    def text(self) -> str:
        """The bytes as text; what is not UTF-8 survives the way back."""
        return self.data.decode("utf-8", "surrogateescape")


class Folder:
    """An open folder; use it in a `with`."""

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self.fd)


class Folders:
    """The few folders of a home that are needed again and again: each stays open as long as it is the one at its path. Nobody
    may list one: all who have it stand at the same place in it."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._open: dict[tuple[str, ...], _Kept] = {}

    def open(self, parts: tuple[str, ...], create: bool = False) -> Folder | None:
        """As `open_folder`."""
        kept = self._open.get(parts)
        if kept is not None and kept.is_there():
            return kept
        folder = open_folder(self._home, parts, create)
        if folder is None:
            return None
        if len(self._open) >= _MOST_KEPT:
            self._open.clear()
        self._open[parts] = made = _Kept(folder, self._home, parts)
        return made

    def close(self) -> None:
        self._open.clear()


class _Kept(Folder):
    """It is closed when nobody has it any more."""

    def __init__(self, folder: Folder, home: str, parts: tuple[str, ...]) -> None:
        super().__init__(folder.fd, folder.name)
        self._path = os.path.join(home, *parts)
        self._above = [os.path.join(home, *parts[:end]) for end in range(1, len(parts))]
        self._mark = _which(os.fstat(folder.fd))

    def is_there(self) -> bool:
        """Whether it is the folder at its path, and no link leads there."""
        try:
            there = _which(os.lstat(self._path)) == self._mark
            return there and self._is_ours() and not any(stat.S_ISLNK(os.lstat(path).st_mode) for path in self._above)
        except OSError:
            return False

    def _is_ours(self) -> bool:
        """Somebody may close all descriptors there are, and the next folder that is opened gets the number."""
        try:
            return _which(os.fstat(self.fd)) == self._mark
        except OSError:
            return False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def __del__(self) -> None:
        if self._is_ours():
            os.close(self.fd)


def names(folder: Folder) -> list[str]:
    """What is in it, listed by a descriptor of its own."""
    fd = os.open(".", _FOLDER, dir_fd=folder.fd)
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def _which(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def open_folder(home: str, parts: tuple[str, ...], create: bool = False) -> Folder | None:
    """The folder `home/part/part...`, or None where there is none."""
    doing = "/".join(parts)
    try:
        fd = home_folder.opened(home, create)
        for part in parts:
            if fd is None:
                return None
            try:
                inner = _step(fd, part, create)
            finally:
                os.close(fd)
            fd = inner
    except OSError as error:
        raise from_os(error, f"cannot open {doing or home}") from error
    return Folder(fd, doing) if fd is not None else None


def _step(fd: int, part: str, create: bool) -> int | None:
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


def walk(folder: Folder, path: str = "") -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, but from an open folder, each opened in the one above it, so that no link leads out, not even one that
    takes a folder's place meanwhile: the path with a slash behind it, the folders there, and everything else."""
    inner: list[str] = []
    others: list[str] = []
    with os.scandir(folder.fd) as entries:
        for entry in entries:
            (inner if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    yield path, inner, others
    for name in inner:
        try:
            fd = os.open(name, _FOLDER, dir_fd=folder.fd)
        except OSError:
            continue  # gone or swapped since we listed it
        with Folder(fd, f"{folder.name}/{name}") as below:
            yield from walk(below, f"{path}{name}/")


def open_file(home: str, path: str) -> int | None:
    """A descriptor of a file in the home, with no link anywhere on its way; None where there is none."""
    *parts, name = path.split("/")
    folder = open_folder(home, tuple(parts))
    if folder is None:
        return None
    with folder:
        try:
            return os.open(name, _READ, dir_fd=folder.fd)
        except FileNotFoundError:
            return None


def read(folder: Folder, name: str, cap: int = NOTE_FILE_BYTES) -> FileContent | None:
    """The file's bytes, or None where there is none. Never a link, a pipe or a device."""
    try:
        fd = os.open(name, _READ, dir_fd=folder.fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(error, f"{folder.name}/{name}") from error
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise Damaged(f"{folder.name}/{name} is not a regular file", Template("Remove it; run ", DOCTOR))
        if info.st_size > cap:
            raise Damaged(f"{folder.name}/{name} has {info.st_size:,} bytes; the most read is {cap:,}", "Split the file")
        data = _read_all(fd, info.st_size, cap)
    except OSError as error:
        raise from_os(error, f"cannot read {folder.name}/{name}") from error
    finally:
        os.close(fd)
    return FileContent(data, stamp_of(info), int(info.st_mtime))


def must_stay_readable(data: bytes, name: str) -> None:
    """Nothing is written that could not be read back."""
    if len(data) > NOTE_FILE_BYTES:
        raise TooLarge(
            f"{name} would have {len(data):,} bytes with its history; the most is {NOTE_FILE_BYTES:,}",
            "Store it under a new key; the old note keeps its history",
        )


def _read_all(fd: int, size: int, cap: int) -> bytes:
    data = os.read(fd, size + 1)
    while len(data) > size and len(data) <= cap:  # it grew while we read
        more = os.read(fd, 1 << 20)
        if not more:
            break
        data += more
    return data


def _unreadable(error: OSError, path: str) -> Exception:
    if error.errno == errno.ELOOP:
        return Damaged(f"{path} is a symbolic link", "Replace it by a plain file; links are never followed")
    return from_os(error, f"cannot open {path}")


def stamp_of(info: os.stat_result) -> Stamp:
    return info.st_ino, info.st_ctime_ns, info.st_size


def stamp(folder: Folder, name: str) -> Stamp | None:
    """What the file system says of the file now; None where there is none."""
    try:
        return stamp_of(os.stat(name, dir_fd=folder.fd, follow_symlinks=False))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise from_os(error, f"cannot look at {folder.name}/{name}") from error


def write_temp(folder: Folder, data: bytes, sync: bool = True) -> tuple[int, str]:
    """A complete temp file, held by flock: its descriptor and its name."""
    while True:
        name = f"{TEMP}{os.getpid()}-{os.urandom(6).hex()}.tmp"
        fd = os.open(name, CREATE, 0o600, dir_fd=folder.fd)
        try:
            held = _held(fd)
        except OSError:
            os.close(fd)
            raise
        if not held:
            os.close(fd)
            continue
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if sync:
                os.fsync(fd)
        except BaseException:
            discard(folder, fd, name)
            raise
        return fd, name


def _held(fd: int) -> bool:
    """Whether the temp file is ours: somebody may have swept it in the instant between its making and our hold on it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(fd).st_nlink > 0


def discard(folder: Folder, fd: int, name: str) -> None:
    """Take a temp file away again."""
    try:
        os.unlink(name, dir_fd=folder.fd)
    except OSError:
        pass  # it was renamed, or the disk is failing: a later sweep takes it
    os.close(fd)


def sweep(folder: Folder, name: str) -> bool:
    """Remove a temp file whose writer is gone: while a batch's holder is held, all of it is. Sweepers share their hold, so
    that no two keep each other, nor a process one of them just started, from taking a name away."""
    holder = name[: name.index(".tmp") + 4] if ".tmp." in name else name
    try:
        fd = os.open(holder, _READ, dir_fd=folder.fd)
    except FileNotFoundError:
        return unlinked(folder, name)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return unlinked(folder, name)
    except OSError:
        return False
    finally:
        os.close(fd)


def is_plain(folder: Folder, name: str) -> bool:
    """Whether this is a name we look at: not hidden, and UTF-8. Temp files of dead writers are swept on the way."""
    if name.startswith("."):
        if name.startswith(TEMP):
            sweep(folder, name)
        return False
    return name.isascii() or is_utf8(name)


def is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def unlinked(folder: Folder, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=folder.fd)
    except OSError:
        return False
    return True


def sync_folder(folder: Folder) -> None:
    os.fsync(folder.fd)


def sync_all(folder: Folder) -> None:
    """One flush for every file written on this file system: what makes a bulk write cheap."""
    import ctypes

    syncfs = getattr(_libc(), "syncfs", None)
    if syncfs is None:
        os.sync()
    elif syncfs(folder.fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _libc() -> Any:
    """The C library; opened once, because that takes longer than a flush may."""
    if not _libraries:
        import ctypes

        _libraries.append(ctypes.CDLL(None, use_errno=True))
    return _libraries[0]


class Watch:
    """What changed since the last look, told by the kernel (inotify, so Linux only): a process that stays need not stat
    every note. No thread: the events wait in the kernel until `changes` asks."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._paths: dict[int, str] = {}
        self._inodes: dict[str, int] = {}
        self.pid = os.getpid()

    @classmethod
    def open(cls) -> Watch | None:
        """A watch, or None where the kernel has none to give."""
        fd: int = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        return cls(fd) if fd >= 0 else None

    def add(self, path: str) -> bool:
        """Watch a folder from now on."""
        number: int = _call("inotify_add_watch", self._fd, os.fsencode(path), _EVENTS | _ONLY_FOLDERS)
        if number < 0:
            return False
        self._paths[number] = path
        try:
            self._inodes[path] = os.stat(path).st_ino
        except OSError:
            return False
        return True

    def watched(self, path: str) -> bool:
        """Whether the folder at this path is the one under watch."""
        try:
            return self._inodes.get(path) == os.stat(path).st_ino
        except OSError:
            return False

    def changes(self) -> dict[str, set[str] | None]:
        """For each folder with events: the names they concern, or None for "look at all of it"."""
        from struct import calcsize, unpack_from

        found: dict[str, set[str] | None] = {}
        while True:
            try:
                data = os.read(self._fd, 65536)
            except BlockingIOError:
                return found
            place = 0
            while place < len(data):
                number, mask, _, length = unpack_from(_EVENT, data, place)
                start = place + calcsize(_EVENT)
                place = start + length
                name = data[start:place].rstrip(b"\0")
                self._note(found, number, mask, os.fsdecode(name))

    def _note(self, found: dict[str, set[str] | None], number: int, mask: int, name: str) -> None:
        if mask & _OVERFLOW:  # the queue overflowed: nothing is known any more
            found.update(dict.fromkeys(self._inodes))
            return
        path = self._paths.get(number)
        if path is None or name.startswith("."):
            return
        if mask & (_LOST | _IS_FOLDER):
            found[path] = None
            if mask & _IGNORED:
                self._inodes.pop(path, None)
        elif path not in found:
            found[path] = {name}
        elif (names := found[path]) is not None:
            names.add(name)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def _call(name: str, *arguments: object) -> int:
    try:
        function = getattr(_libc(), name)
    except (AttributeError, OSError):
        return -1
    return int(function(*arguments))
