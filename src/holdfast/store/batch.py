"""Many files written as one: temp files that are flushed together."""

from __future__ import annotations

import errno
import os

from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_FEW = 4  # files that are flushed one by one


class Batch:
    """Temp files of one bulk write. The names of all begin with that of the first, which is held: as long as it is there, and
    so it is renamed last, it stands for the living writer."""

    def __init__(self, folder: atomic.Folder) -> None:
        self._folder = folder
        self._names: list[str] = []
        self._open: list[int] = []  # the first few of them

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> str:
        """One more complete temp file, not yet flushed."""
        if not self._names:
            fd, name = atomic.write_temp(self._folder, data, sync=False)
            self._names.append(name)
            self._open.append(fd)
            return name
        name = f"{self._names[0]}.{len(self._names)}"
        fd = os.open(name, atomic.CREATE, 0o600, dir_fd=self._folder.fd)
        self._names.append(name)
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            if len(self._open) < _FEW:
                self._open.append(fd)
            else:
                os.close(fd)
        return name

    def flush(self) -> None:
        """All of them are on the disk for good: many with one flush of the file system, a few by themselves, so that nobody
        waits for what others write there. The disk is told of all before it is waited for the first."""
        if len(self._names) > _FEW:
            atomic.sync_all(self._folder)
            return
        for fd in self._open:
            _begin_to_write(fd)
        for fd in reversed(self._open):
            os.fsync(fd)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for name in reversed(self._names) if kind else ():
            atomic.unlinked(self._folder, name)  # unless it was renamed already, or the disk is failing: a later sweep takes it
        for fd in self._open:
            os.close(fd)


def _begin_to_write(fd: int) -> None:
    """Linux takes "no longer needed" for "write it out now", and does not wait; elsewhere nothing is lost by asking."""
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    except (AttributeError, OSError):
        pass
