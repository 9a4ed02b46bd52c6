"""A folder outside the home that no process may touch: its bytes are compared, and inotify reports every access."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from hashlib import sha256
from pathlib import Path

CANARY = "zqcanary7d1e"  # a word that is in these files and nowhere else
_EVENTS = {
    0x1: "read", 0x2: "written", 0x4: "its rights changed", 0x8: "closed after writing", 0x20: "opened", 0x40: "moved away",
    0x80: "moved in", 0x100: "made", 0x200: "removed", 0x400: "the folder removed", 0x800: "the folder moved",
}  # fmt: skip
_OVERFLOW = 0x4000
_EVENT_HEADER = struct.Struct("iIII")  # watch, mask, cookie, length of the name


class WatchedFolder:
    """The folder `outside` beside a home; use it in a `with` block and call `find_changes` at the end."""

    def __init__(self, parent: Path) -> None:
        self.root = parent / "outside"
        self.secret = self.root / "secret.md"

    def __enter__(self) -> WatchedFolder:
        (self.root / "inner").mkdir(parents=True)
        for name in ("secret.md", "inner/secret.md", "keep.md", "MEMORY.md", "secret.jsonl"):
            (self.root / name).write_text(f"# Secret\n\n{CANARY} is nobody's business.\n- [2026-03-27] status: {CANARY}\n")
        (self.root / "hard.md").write_text("a file with two names, one of them in the tree\n")
        self._digests = self._compute_digests()
        self._inotify = _Inotify([self.root, self.root / "inner"])
        return self

    def __exit__(self, *_: object) -> None:
        self._inotify.close()

    def find_changes(self) -> list[str]:
        """Return every access since the last call, and every file whose bytes differ from the beginning."""
        events = self._inotify.read_events()
        digests = self._compute_digests()
        changed = [name for name in {*self._digests, *digests} if self._digests.get(name) != digests.get(name)]
        self._inotify.read_events()  # drop those of the reading just now
        return [f"outside: {name} was {event} {count} times" for (name, event), count in events.items()] + [
            f"outside: the bytes of {name} changed" for name in sorted(changed)
        ]

    def _compute_digests(self) -> dict[str, str]:
        files = [path for path in self.root.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): sha256(path.read_bytes()).hexdigest() for path in files}


class _Inotify:
    """The accesses to some folders, on systems with inotify; hard.md may be opened by its other name and is left out."""

    def __init__(self, folders: list[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)) if hasattr(libc, "inotify_init1") else -1
        self._names = {}
        for folder in folders if self._fd >= 0 else ():
            watch = libc.inotify_add_watch(self._fd, os.fsencode(folder), sum(_EVENTS))
            self._names[int(watch)] = folder.name
        self._available = self._fd >= 0 and all(watch >= 0 for watch in self._names)

    def read_events(self) -> Counter[tuple[str, str]]:
        """Return how often each event of each name happened since the last call."""
        found: Counter[tuple[str, str]] = Counter()
        while self._available:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                break
            offset = 0
            while offset < len(data):
                watch, mask, _, length = _EVENT_HEADER.unpack_from(data, offset)
                offset += _EVENT_HEADER.size
                name = data[offset : offset + length].rstrip(b"\0").decode(errors="replace")
                offset += length
                self._count(found, f"{self._names.get(watch, '?')}/{name}".rstrip("/"), mask)
        return found

    def _count(self, found: Counter[tuple[str, str]], name: str, mask: int) -> None:
        if mask & _OVERFLOW:
            found["everything", "lost count of"] += 1
        for bit, event in _EVENTS.items():
            if mask & bit and not name.endswith("hard.md"):
                found[name, event] += 1

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
