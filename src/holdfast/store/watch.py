"""Changed files, reported by the kernel (inotify, Linux only), so that a long-running process need not stat every note.

No thread: events wait in the kernel until `Watch.read_changes` reads them.
"""

from __future__ import annotations

import os
from struct import calcsize, unpack_from

from holdfast.store.atomic import load_libc

# Constants of <sys/inotify.h>
_EVENTS = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # modify, attrib, close, moves, create, deletes
_ONLY_FOLDERS = 0x01000000 | 0x02000000  # and never through a link
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_FOLDER_LOST = _OVERFLOW | _IGNORED | 0x2000 | 0x400 | 0x800  # unmounted, deleted or moved
_EVENT = "iIII"  # watch number, mask, cookie, length of the name that follows


class Watch:
    """Which files of some folders changed since the last call of `read_changes`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._paths: dict[int, str] = {}
        self._inodes: dict[str, int] = {}
        self.pid = os.getpid()

    @classmethod
    def open(cls) -> Watch | None:
        """Return a new watch, or None where the kernel has none."""
        fd = _call_libc("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        return cls(fd) if fd >= 0 else None

    def add(self, path: str) -> bool:
        """Watch a folder from now on and return whether that worked."""
        number = _call_libc("inotify_add_watch", self._fd, os.fsencode(path), _EVENTS | _ONLY_FOLDERS)
        if number < 0:
            return False
        self._paths[number] = path
        try:
            self._inodes[path] = os.stat(path).st_ino
        except OSError:
            return False
        return True

    def is_watching(self, path: str) -> bool:
        """Return whether the folder that is now at this path is the watched one."""
        try:
            return self._inodes.get(path) == os.stat(path).st_ino
        except OSError:
            return False

    def read_changes(self) -> dict[str, set[str] | None]:
        """Return the changed names of each folder with events, or None if the whole folder must be read."""
        found: dict[str, set[str] | None] = {}
        while True:
            try:
                data = os.read(self._fd, 65536)
            except BlockingIOError:
                return found
            offset = 0
            while offset < len(data):
                number, mask, _, length = unpack_from(_EVENT, data, offset)
                start = offset + calcsize(_EVENT)
                offset = start + length
                self._add_event(found, number, mask, os.fsdecode(data[start:offset].rstrip(b"\0")))

    def _add_event(self, found: dict[str, set[str] | None], number: int, mask: int, name: str) -> None:
        if mask & _OVERFLOW:  # events were lost
            found.update(dict.fromkeys(self._inodes))
            return
        path = self._paths.get(number)
        if path is None or name.startswith("."):
            return
        if mask & (_FOLDER_LOST | _IS_FOLDER):
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


def _call_libc(name: str, *arguments: object) -> int:
    try:
        function = getattr(load_libc(), name)
    except (AttributeError, OSError):
        return -1
    return int(function(*arguments))
