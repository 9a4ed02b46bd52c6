"""Transcripts on disk: `transcripts/<client>/<session>.jsonl` of a scope.

Lines are appended and never changed in place: a purge replaces the file by another. An append is one write and one flush,
under a lock. A crash leaves complete lines and at most one torn tail: readers skip it, and the next append removes it.
"""

from __future__ import annotations

import os
import stat

from holdfast.base.ids import digest
from holdfast.errors import DOCTOR, Damaged, HoldfastError, Template, from_os
from holdfast.home import Lock
from holdfast.store import atomic, layout
from holdfast.store.atomic import Folder
from holdfast.store.interface import Entry, FileContent, Line, Position
from holdfast.store.layout import LINE_BYTES, TRANSCRIPT_SUFFIX, TRANSCRIPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.base.ids import FileId
    from holdfast.store.interface import Compose, Transcript

_CHUNK_BYTES = 256 * 1024
_SHORT_LINE = 4096  # bytes of a line that is read with others
_LOCK_DIGITS = 2  # hexadecimal digits of a lock's name: sessions share 256 locks, so that lock files do not pile up
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHANGE = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = _CHANGE | os.O_CREAT


class TranscriptFile:
    """One session's file; see `holdfast.store.interface.Transcript` for its methods."""

    def __init__(self, home: str, scope_folder: str, name: str, lock_seconds: float, part: str = TRANSCRIPTS) -> None:
        self.name, self.part = name, part
        self.path = f"{scope_folder}/{part}/{name}"
        client, self._file = layout.split_transcript_name(name)
        self._home = home
        self._folder = ("shelf", *scope_folder.split("/"), part, client)
        self._lock_seconds = lock_seconds
        self._folder_synced = False

    def file_id(self) -> FileId | None:
        folder = atomic.open_folder(self._home, self._folder)
        if folder is None:
            return None
        with folder:
            return atomic.file_id(folder, self._file)

    def read_lines(self, position: Position = Position(), chunk: int = _CHUNK_BYTES) -> Iterator[Line]:
        fd = self._open_to_read()
        if fd is None:
            return
        try:
            yield from _read_lines(fd, position, chunk)
        finally:
            os.close(fd)

    def read_lines_at(self, folder: Folder, places: list[str]) -> dict[str, FileContent]:
        """Return the short lines that begin at these offsets, each after the last colon of a place."""
        found: dict[str, FileContent] = {}
        try:
            fd = self._open(folder, _READ)
        except HoldfastError:
            return found  # the caller reads each line alone and sees why
        if fd is None:
            return found
        try:
            info = os.fstat(fd)
            for place in places:
                offset = place.rpartition(":")[2]
                data, newline, _ = os.pread(fd, _SHORT_LINE, int(offset) if offset.isdigit() else 0).partition(b"\n")
                if newline:
                    found[place] = FileContent(data, atomic.make_file_id(info), int(info.st_mtime))
        except OSError:
            pass  # the caller reads the other lines alone and sees why
        finally:
            os.close(fd)
        return found

    def matches_line_before(self, offset: int, test: Callable[[bytes], bool]) -> bool:
        fd = self._open_to_read()
        if fd is None:
            return False
        try:
            start = _find_last_line_end(fd, max(offset - 1, 0))
            data = os.pread(fd, offset - start, start)
        finally:
            os.close(fd)
        return len(data) == offset - start and data.endswith(b"\n") and test(data[:-1])

    def read_unfinished_line(self, offset: int) -> bytes:
        fd = self._open_to_read()
        if fd is None:
            return b""
        try:
            data = os.pread(fd, LINE_BYTES + 1, offset)
        finally:
            os.close(fd)
        return data if len(data) <= LINE_BYTES and _is_complete(data) else b""

    def append(self, compose: Compose, since: Position = Position()) -> Position:
        with self._lock(), atomic.create_folder(self._home, self._folder) as folder:
            fd = self._open(folder, _APPEND)
            assert fd is not None
            try:
                return self._append(folder, fd, compose, since)
            except OSError as error:
                raise from_os(error, f"cannot write {self.path}") from error
            finally:
                os.close(fd)

    def _append(self, folder: Folder, fd: int, compose: Compose, since: Position) -> Position:
        size = _repair_tail(fd)
        inode = os.fstat(fd).st_ino
        if size < since.offset or since.inode not in (0, inode):  # the file was replaced or shortened
            since = Position()
        others = _CountedLines(_read_lines(fd, since), since.lines)
        added = compose(iter(others), size == 0)
        others.read_rest()
        data = b"".join(added)
        try:
            atomic.write_all(fd, data)
            os.fsync(fd)
        except BaseException:
            os.ftruncate(fd, size)  # all lines or none
            raise
        if not self._folder_synced:
            atomic.sync_folder(folder)
            self._folder_synced = True
        return Position(size + len(data), others.count + len(added), inode)

    def wait_for_writers(self) -> None:
        with self._lock():
            pass

    def replace_lines(self, replace: Callable[[Line], bytes | None]) -> int:
        with self._lock():
            folder = atomic.open_folder(self._home, self._folder)
            if folder is None:
                return 0
            with folder:
                fd = self._open(folder, _CHANGE)
                if fd is None:
                    return 0
                try:
                    _repair_tail(fd)
                    return self._replace_lines(folder, fd, replace)
                except OSError as error:
                    raise from_os(error, f"cannot write {self.path}") from error
                finally:
                    os.close(fd)

    def _replace_lines(self, folder: Folder, fd: int, replace: Callable[[Line], bytes | None]) -> int:
        changed = {line.number: new for line in _read_lines(fd, Position()) if (new := replace(line)) is not None}
        if not changed:
            return 0
        out, temp = atomic.write_temp(folder, b"", sync=False)
        try:
            for line in _read_lines(fd, Position()):
                new = changed.get(line.number)
                for piece in _read_range(fd, line.start, line.end) if new is None else (new.rstrip(b"\n") + b"\n",):
                    atomic.write_all(out, piece)
            os.fsync(out)
            atomic.rename(folder, temp, folder, self._file)
        finally:
            atomic.discard_temp(folder, out, temp)
        atomic.sync_folder(folder)
        return len(changed)

    def erase(self, expected: FileId | None = None) -> bool:
        with self._lock():
            folder = atomic.open_folder(self._home, self._folder) if expected in (None, self.file_id()) else None
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

    def move_to_trash(self, time: str) -> bool:
        with self._lock():
            here = atomic.open_folder(self._home, self._folder)
            if here is None:
                return False
            with here, atomic.create_folder(self._home, self._trash_folder()) as trash:
                return self._move(here, self._file, trash, layout.format_trashed_transcript(self._file, time))

    def restore(self, trashed_name: str) -> bool:
        with self._lock(), atomic.create_folder(self._home, self._folder) as here:
            trash = atomic.open_folder(self._home, self._trash_folder())
            if trash is None:
                return False
            with trash:
                return self._move(trash, trashed_name, here, self._file)

    def _move(self, source: Folder, name: str, target: Folder, new_name: str) -> bool:
        try:
            if atomic.file_id(source, name) is None or atomic.file_id(target, new_name) is not None:
                return False
            atomic.rename(source, name, target, new_name)
            atomic.sync_folder(target)
            atomic.sync_folder(source)
        except OSError as error:
            raise from_os(error, f"cannot move {self.path}") from error
        return True

    def _trash_folder(self) -> tuple[str, ...]:
        return (*self._folder[:-2], "trash", self._folder[-1])

    def _lock(self) -> Lock:
        return Lock(self._home, f"{TRANSCRIPTS}+{digest(self.path.encode())[:_LOCK_DIGITS]}", self._lock_seconds)

    def _open_to_read(self) -> int | None:
        folder = atomic.open_folder(self._home, self._folder)
        if folder is None:
            return None
        with folder:
            return self._open(folder, _READ)

    def _open(self, folder: Folder, flags: int) -> int | None:
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
    """The transcripts of one scope; see `holdfast.store.interface.Transcripts` for its methods."""

    def __init__(self, home: str, scope_folder: str, lock_seconds: float) -> None:
        self._home = home
        self._scope_folder = scope_folder
        self._lock_seconds = lock_seconds

    def open(self, name: str, part: str = TRANSCRIPTS) -> TranscriptFile:
        return TranscriptFile(self._home, self._scope_folder, name, self._lock_seconds, part)

    def entries(self) -> Iterator[Entry]:
        for client in self._list_clients(TRANSCRIPTS):
            yield from sorted(self._list_files(TRANSCRIPTS, client), key=lambda entry: entry.name)

    def read_lines_at(self, places: list[str]) -> dict[str, FileContent]:
        """Return the lines that begin at these places, `client/session.jsonl:offset`, except those that are long or gone.

        Each folder and file is opened once: the ten hits of a recall took 0.8 ms one by one.
        """
        found: dict[str, FileContent] = {}
        clients: dict[str, dict[str, list[str]]] = {}
        for place in places:
            name = place.rpartition(":")[0]
            clients.setdefault(name.partition("/")[0], {}).setdefault(name, []).append(place)
        for client, files in clients.items():
            try:
                folder = self._open(TRANSCRIPTS, client)
            except HoldfastError:
                continue  # the caller reads each line alone and sees why
            if folder is not None:
                with folder:
                    for name, places_in_file in files.items():
                        found.update(self.open(name).read_lines_at(folder, places_in_file))
        return found

    def wait_for_writers(self) -> None:
        """Return at once: a file is created before its writer checks what may be written to it."""

    def list_trashed(self) -> list[Transcript]:
        entries = [entry for client in self._list_clients("trash") for entry in self._list_files("trash", client)]
        names = layout.sort_trashed_transcripts([entry.name for entry in entries if entry.regular])
        return [self.open(name, "trash") for name in names]

    def list_folders(self) -> list[str]:
        top = os.path.join(self._home, "shelf", self._scope_folder, TRANSCRIPTS)
        return [top, *[os.path.join(top, client) for client in self._list_clients(TRANSCRIPTS)]] if os.path.isdir(top) else []

    def _list_clients(self, part: str) -> list[str]:
        root = self._open(part)
        if root is None:
            return []
        with root, os.scandir(root.fd) as entries:
            return sorted(
                entry.name for entry in entries if atomic.is_visible(root, entry.name) and entry.is_dir(follow_symlinks=False)
            )

    def _list_files(self, part: str, client: str) -> list[Entry]:
        found: list[Entry] = []
        folder = self._open(part, client)
        if folder is None:
            return found
        with folder, os.scandir(folder.fd) as entries:
            for entry in entries:
                if not atomic.is_visible(folder, entry.name) or not entry.name.endswith(TRANSCRIPT_SUFFIX):
                    continue
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                found.append(Entry(f"{client}/{entry.name}", atomic.make_file_id(info), stat.S_ISREG(info.st_mode)))
        return found

    def _open(self, *parts: str) -> Folder | None:
        return atomic.open_folder(self._home, ("shelf", *self._scope_folder.split("/"), *parts))


class _CountedLines:
    """Lines that a caller may read in part, and how many there are."""

    def __init__(self, lines: Iterator[Line], count: int) -> None:
        self._lines, self.count = lines, count

    def __iter__(self) -> Iterator[Line]:
        for line in self._lines:
            self.count = line.number
            yield line

    def read_rest(self) -> None:
        """Count the lines that the caller did not read."""
        for line in self._lines:
            self.count = line.number


def _read_lines(fd: int, position: Position, size: int = _CHUNK_BYTES) -> Iterator[Line]:
    """Yield complete lines in bounded memory: the data of a line that is too long is not kept."""
    start = offset = position.offset
    number, kept, too_long = position.lines, b"", False
    while chunk := os.pread(fd, size, offset):
        at = 0
        while (newline := chunk.find(b"\n", at)) >= 0:
            number += 1
            end = offset + newline + 1
            data = kept + chunk[at:newline]
            yield Line(number, start, end, b"" if too_long or len(data) > LINE_BYTES else data)
            start, at, kept, too_long = end, newline + 1, b"", False
        too_long = too_long or len(kept) + len(chunk) - at > LINE_BYTES
        kept = b"" if too_long else kept + chunk[at:]
        offset += len(chunk)


def _repair_tail(fd: int) -> int:
    """Remove a torn last line, or add its missing newline, and return the size of the file."""
    size = os.fstat(fd).st_size
    end = _find_last_line_end(fd, size)
    if end == size:
        return size
    if size - end <= LINE_BYTES and _is_complete(os.pread(fd, size - end, end)):
        atomic.write_all(fd, b"\n")
        return size + 1
    os.ftruncate(fd, end)
    return end


def _is_complete(data: bytes) -> bool:
    """Return whether bytes without a newline are a complete line."""
    from holdfast.formats import transcript  # imports json: not on the cold path

    return transcript.is_complete_line(data)


def _read_range(fd: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes between two offsets in pieces."""
    while start < end and (piece := os.pread(fd, min(_CHUNK_BYTES, end - start), start)):
        yield piece
        start += len(piece)


def _find_last_line_end(fd: int, size: int) -> int:
    """Return the offset after the last newline within the first `size` bytes, or 0."""
    end = size
    while end > 0:
        start = max(end - _CHUNK_BYTES, 0)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
