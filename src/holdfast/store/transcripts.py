"""Sessions word for word: `transcripts/<client>/<session>.jsonl` of a scope. Lines are appended and never changed in place: a
purge puts another file there, with a mark where a line was.

An append is one write and one flush, under a lock. A crash leaves whole lines and at most one torn tail: readers pass
over it, and the next append takes it away.
"""

from __future__ import annotations

import os
import stat

from holdfast.base.ids import digest
from holdfast.base.record import Record
from holdfast.errors import DOCTOR, Damaged, InvalidPath, Template, from_os
from holdfast.home import Lock
from holdfast.store import atomic
from holdfast.store.files import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.store.atomic import Folder, Stamp

    Compose = Callable[[Iterator["Line"], bool], list[bytes]]

PART = "transcripts"
LINE_BYTES = 8 * 1024 * 1024  # of one of our lines; a longer one is nobody's turn
SUFFIX = ".jsonl"
_CHUNK = 256 * 1024
_STRIPES = 2  # hexadecimal digits of a lock's name: sessions share 256 locks, so that locks do not pile up
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHANGE = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Line(Record):
    """One whole line of a file: its number from 1, the bytes it spans, and its data (empty where it is too long)."""

    number: int
    start: int
    end: int
    data: bytes


class Place(Record):
    """A point between two lines, from which a reader may go on: how many bytes and lines lie before it."""

    offset: int = 0
    lines: int = 0
    file: int = 0  # the inode it is in; 0: whichever stands there


class TranscriptFile:
    """One session's file."""

    def __init__(self, home: str, scope_folder: str, name: str, lock_seconds: float, part: str = PART) -> None:
        self.name, self.part = name, part  # client/session.jsonl, and whether it lies in the trash
        self.path = f"{scope_folder}/{part}/{name}"
        client, self._file = parts_of(name)
        self._home = home
        self._folder = ("shelf", *scope_folder.split("/"), part, client)
        self._lock_seconds = lock_seconds
        self._kept = False  # whether we have flushed the folder that names the file

    def stamp(self) -> Stamp | None:
        """What the file system says of the file now; None where there is none."""
        folder = atomic.open_folder(self._home, self._folder)
        if folder is None:
            return None
        with folder:
            return atomic.stamp(folder, self._file)

    def lines(self, place: Place = Place(), chunk: int = _CHUNK) -> Iterator[Line]:
        """Every whole line from a place on, as the file stands now, read so many bytes at once. A torn tail is no line."""
        folder = atomic.open_folder(self._home, self._folder)
        if folder is None:
            return
        with folder:
            fd = self._opened(folder, _READ)
        if fd is None:
            return
        try:
            yield from _lines(fd, place, chunk)
        finally:
            os.close(fd)

    def ends_so(self, offset: int, test: Callable[[bytes], bool]) -> bool:
        """Whether the line that ends at this byte passes the test."""
        folder = atomic.open_folder(self._home, self._folder)
        if folder is None:
            return False
        with folder:
            fd = self._opened(folder, _READ)
        if fd is None:
            return False
        try:
            start = _end_of_last_line(fd, max(offset - 1, 0))
            data = os.pread(fd, offset - start, start)
        finally:
            os.close(fd)
        return len(data) == offset - start and data.endswith(b"\n") and test(data[:-1])

    def tail(self, offset: int) -> bytes:
        """What stands behind the last whole line, which ends at this byte, if it is a line that only lacks its newline."""
        from holdfast.formats import transcript

        folder = atomic.open_folder(self._home, self._folder)
        fd = None
        if folder is not None:
            with folder:
                fd = self._opened(folder, _READ)
        if fd is None:
            return b""
        try:
            data = os.pread(fd, LINE_BYTES + 1, offset)
        finally:
            os.close(fd)
        return data if len(data) <= LINE_BYTES and transcript.is_complete_line(data) else b""

    def append(self, compose: Compose, since: Place = Place()) -> Place:
        """Add lines, durably and together. `compose` is told whether the file is empty and shown the lines after `since`
        that others may have written, while nobody else writes; it answers with the lines to add. The place behind them is
        where to go on."""
        with self._locked():
            folder = atomic.open_folder(self._home, self._folder, create=True)
            assert folder is not None
            with folder:
                fd = self._opened(folder, _APPEND)
                assert fd is not None
                try:
                    return self._add(folder, fd, compose, since)
                except OSError as error:
                    raise from_os(error, f"cannot write {self.path}") from error
                finally:
                    os.close(fd)

    def _add(self, folder: Folder, fd: int, compose: Compose, since: Place) -> Place:
        size = _mended(fd)
        inode = os.fstat(fd).st_ino
        if size < since.offset or since.file not in (0, inode):  # somebody took the file away meanwhile, or lines out of it
            since = Place()
        count = [since.lines]
        others = _counted(_lines(fd, since), count)
        added = compose(others, size == 0)
        for _ in others:
            pass
        data = b"".join(added)
        try:
            _write(fd, data)
            os.fsync(fd)
        except BaseException:
            os.ftruncate(fd, size)  # all of it or nothing
            raise
        if not self._kept:
            atomic.sync_folder(folder)
            self._kept = True
        return Place(size + len(data), count[0] + len(added), inode)

    def settle(self) -> None:
        """Wait until whoever is about to add lines has done so: what was refused by now, nobody adds after this."""
        with self._locked():
            pass

    def rewrite(self, instead: Callable[[Line], bytes | None]) -> int:
        """Put other bytes in the place of some lines, which `instead` gives, and leave all the others as they are; how many.
        Their number stays, so that citations of the others stay true."""
        with self._locked():
            folder = atomic.open_folder(self._home, self._folder)
            if folder is None:
                return 0
            with folder:
                fd = self._opened(folder, _CHANGE)
                if fd is None:
                    return 0
                try:
                    _mended(fd)
                    return self._rewrite(folder, fd, instead)
                except OSError as error:
                    raise from_os(error, f"cannot write {self.path}") from error
                finally:
                    os.close(fd)

    def _rewrite(self, folder: Folder, fd: int, instead: Callable[[Line], bytes | None]) -> int:
        changed = {line.number: new for line in _lines(fd, Place()) if (new := instead(line)) is not None}
        if not changed:
            return 0
        out, temp = atomic.write_temp(folder, b"", sync=False)
        try:
            for line in _lines(fd, Place()):
                new = changed.get(line.number)
                for piece in _copied(fd, line.start, line.end) if new is None else (new.rstrip(b"\n") + b"\n",):
                    _write(out, piece)
            os.fsync(out)
            os.rename(temp, self._file, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        finally:
            atomic.discard(folder, out, temp)
        atomic.sync_folder(folder)
        return len(changed)

    def erase(self, seen: Stamp | None = None) -> bool:
        """Unlink the file for good, only as it was seen if that is given; whether it was there."""
        with self._locked():
            folder = atomic.open_folder(self._home, self._folder) if seen in (None, self.stamp()) else None
            if folder is None:
                return False
            with folder:
                try:
                    os.unlink(self._file, dir_fd=folder.fd)
                    atomic.sync_folder(folder)
                except FileNotFoundError:
                    return False
                except OSError as error:
                    raise from_os(error, f"cannot erase {self.path}") from error
        return True

    def bin(self, time: str) -> bool:
        """Move the file to the trash; whether there was one."""
        return self._moved(f"{self._file[: -len(SUFFIX)]}--{time}{SUFFIX}", away=True)

    def unbin(self, name: str) -> bool:
        """Bring a file back from the trash; not in the place of another."""
        return self._moved(name, away=False)

    def _moved(self, name: str, away: bool) -> bool:
        other = (*self._folder[:-2], "trash", self._folder[-1])
        with self._locked():
            here = atomic.open_folder(self._home, self._folder, create=not away)
            if here is None:
                return False
            with here:
                there = atomic.open_folder(self._home, other, create=away)
                if there is None:
                    return False
                with there:
                    source, target = ((here, self._file), (there, name)) if away else ((there, name), (here, self._file))
                    try:
                        if atomic.stamp(*source) is None or atomic.stamp(*target) is not None:
                            return False
                        os.rename(source[1], target[1], src_dir_fd=source[0].fd, dst_dir_fd=target[0].fd)
                        atomic.sync_folder(target[0])
                        atomic.sync_folder(source[0])
                    except OSError as error:
                        raise from_os(error, f"cannot move {self.path}") from error
        return True

    def _locked(self) -> Lock:
        return Lock(self._home, f"{PART}+{digest(self.path.encode())[:_STRIPES]}", self._lock_seconds)

    def _opened(self, folder: Folder, flags: int) -> int | None:
        try:
            fd = os.open(self._file, flags, 0o600, dir_fd=folder.fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os(error, f"cannot open {self.path}") from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise Damaged(f"{self.path} is not a regular file", Template("Remove it; run ", DOCTOR))
        return fd


class TranscriptFiles:
    """All sessions of one scope."""

    def __init__(self, home: str, scope_folder: str, lock_seconds: float) -> None:
        self._home = home
        self._scope_folder = scope_folder
        self._lock_seconds = lock_seconds

    def transcript_file(self, name: str, part: str = PART) -> TranscriptFile:
        """The file `client/session.jsonl`, whether it is there or not; or one in the trash."""
        return TranscriptFile(self._home, self._scope_folder, name, self._lock_seconds, part)

    def census(self) -> Iterator[Entry]:
        """Every session's file, as `client/session.jsonl`, in the order of the names."""
        for client in self._clients():
            folder = self._open(client)
            if folder is None:
                continue
            with folder:
                yield from sorted(_entries(folder, client), key=lambda entry: entry.name)

    def settle(self) -> None:
        """Wait until whoever begins a session has done so. A file is there before anybody asks what may stand in it."""

    def trashed(self) -> list[TranscriptFile]:
        """Those in the trash, newest first; each is named `client/session--time.jsonl`."""
        found = []
        for client in self._clients("trash"):
            folder = atomic.open_folder(self._home, ("shelf", *self._scope_folder.split("/"), "trash", client))
            if folder is not None:
                with folder:
                    found += [entry.name for entry in _entries(folder, client) if entry.regular]
        found.sort(key=lambda name: name.rpartition("--")[2], reverse=True)
        return [TranscriptFile(self._home, self._scope_folder, name, self._lock_seconds, "trash") for name in found]

    def folders(self) -> list[str]:
        """The absolute path of every folder in which a session's file may stand, for a watch."""
        top = os.path.join(self._home, "shelf", self._scope_folder, PART)
        return [top, *[os.path.join(top, client) for client in self._clients()]] if os.path.isdir(top) else []

    def _clients(self, part: str = PART) -> list[str]:
        root = atomic.open_folder(self._home, ("shelf", *self._scope_folder.split("/"), part))
        if root is None:
            return []
        with root, os.scandir(root.fd) as entries:
            return sorted(
                entry.name
                for entry in entries
                if atomic.is_plain(root, entry.name) and entry.is_dir(follow_symlinks=False)
            )

    def _open(self, *parts: str) -> Folder | None:
        return atomic.open_folder(self._home, ("shelf", *self._scope_folder.split("/"), PART, *parts))


def _entries(folder: Folder, client: str) -> Iterator[Entry]:
    with os.scandir(folder.fd) as entries:
        for entry in entries:
            if not atomic.is_plain(folder, entry.name) or not entry.name.endswith(SUFFIX):
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield Entry(f"{client}/{entry.name}", atomic.stamp_of(info), stat.S_ISREG(info.st_mode))


def parts_of(name: str) -> tuple[str, str]:
    """The client and the file of a transcript's name."""
    client, _, file = name.partition("/")
    good = client and file.endswith(SUFFIX) and "/" not in file and "\0" not in name
    if not good or client.startswith(".") or file.startswith("."):
        raise InvalidPath(f"not the name of a transcript: {name[:80]!r}", "It is <client>/<session>.jsonl")
    return client, file


def _lines(fd: int, place: Place, size: int = _CHUNK) -> Iterator[Line]:
    """Whole lines, in bounded memory: of one that is too long, only its end is looked for."""
    start = offset = place.offset
    number, held, skipping = place.lines, b"", False
    while chunk := os.pread(fd, size, offset):
        at = 0
        while (newline := chunk.find(b"\n", at)) >= 0:
            number += 1
            end = offset + newline + 1
            data = held + chunk[at:newline]
            yield Line(number, start, end, b"" if skipping or len(data) > LINE_BYTES else data)
            start, at, held, skipping = end, newline + 1, b"", False
        skipping = skipping or len(held) + len(chunk) - at > LINE_BYTES
        held = b"" if skipping else held + chunk[at:]
        offset += len(chunk)


def _counted(lines: Iterator[Line], count: list[int]) -> Iterator[Line]:
    """The lines, and in `count` the number of the last one."""
    for line in lines:
        count[0] = line.number
        yield line


def _mended(fd: int) -> int:
    """The size of the file when its last line is whole: a torn tail is taken away, a missing newline is added."""
    size = os.fstat(fd).st_size
    end = _end_of_last_line(fd, size)
    if end == size:
        return size
    from holdfast.formats import transcript

    if size - end <= LINE_BYTES and transcript.is_complete_line(os.pread(fd, size - end, end)):
        _write(fd, b"\n")
        return size + 1
    os.ftruncate(fd, end)
    return end


def _copied(fd: int, start: int, end: int) -> Iterator[bytes]:
    """The bytes between two places, in pieces."""
    while start < end and (piece := os.pread(fd, min(_CHUNK, end - start), start)):
        yield piece
        start += len(piece)


def _end_of_last_line(fd: int, size: int) -> int:
    end = size
    while end > 0:
        start = max(end - _CHUNK, 0)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
