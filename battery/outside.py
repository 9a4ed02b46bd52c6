"""A place outside the home that nobody may touch, and three ways to see that somebody did: its bytes, a canary in what
was said, and the kernel's own word (inotify) on every opening, reading, writing and removing there."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from hashlib import sha256
from pathlib import Path

CANARY = "zqcanary7d1e"  # stands in the sentinel and nowhere else
_EVENTS = {
    0x1: "read", 0x2: "written", 0x4: "its rights changed", 0x8: "closed after writing", 0x20: "opened", 0x40: "moved away",
    0x80: "moved in", 0x100: "made", 0x200: "removed", 0x400: "the folder removed", 0x800: "the folder moved",
}  # fmt: skip
_HEAD = struct.Struct("iIII")
_FOLDER = 0x40000000


class Outside:
    """Use it in a `with`, and ask `problems` at the end. Its folder's name and contents are the same for every run."""

    def __init__(self, root: Path) -> None:
        self.root = root / "outside"
        self.secret = self.root / "secret.md"

    def __enter__(self) -> Outside:
        (self.root / "inner").mkdir(parents=True)
        for name in ("secret.md", "inner/secret.md", "keep.md", "MEMORY.md", "secret.jsonl"):
            (self.root / name).write_text(f"# Secret\n\n{CANARY} is nobody's business.\n- [2026-03-27] status: {CANARY}\n")
        (self.root / "hard.md").write_text("a file with two names, one of them in the tree\n")
        self._before = self._digests()
        self._watch = _Watch([self.root, self.root / "inner"])
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close()

    def problems(self) -> list[str]:
        """What happened to it since; asking changes nothing of what is said next time, but what was heard is told once."""
        heard = self._watch.heard()
        after = self._digests()
        changed = [name for name in {*self._before, *after} if self._before.get(name) != after.get(name)]
        self._watch.heard()  # of our own reading just now
        return [f"outside: {name} was {what} {count} times" for (name, what), count in heard.items()] + [
            f"outside: the bytes of {name} changed" for name in sorted(changed)
        ]

    def _digests(self) -> dict[str, str]:
        files = [path for path in self.root.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): sha256(path.read_bytes()).hexdigest() for path in files}


class _Watch:
    """inotify, where there is one. A file with a second name in the home may be opened there: it is not watched for that."""

    def __init__(self, folders: list[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)) if hasattr(libc, "inotify_init1") else -1
        self._names = {}
        for folder in folders if self._fd >= 0 else ():
            number = libc.inotify_add_watch(self._fd, os.fsencode(folder), sum(_EVENTS))
            self._names[int(number)] = folder.name

    @property
    def works(self) -> bool:
        return self._fd >= 0 and all(number >= 0 for number in self._names)

    def heard(self) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        while self.works:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                break
            place = 0
            while place < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, place)
                name = data[place + _HEAD.size : place + _HEAD.size + length].rstrip(b"\0").decode(errors="replace")
                place += _HEAD.size + length
                self._count(found, f"{self._names.get(number, '?')}/{name}".rstrip("/"), mask)
        return found

    def _count(self, found: Counter[tuple[str, str]], name: str, mask: int) -> None:
        if mask & 0x4000:
            found["everything", "lost count of"] += 1
        for bit, what in _EVENTS.items():
            if mask & bit and not name.endswith("hard.md"):
                found[name, what] += 1

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
