"""Counts big folders in a child while the parent still imports: the two halves of a cold recall side by side.

Only for a program that runs one command, has one thread and has opened nothing yet; `doors.cli` is one. Whoever asks for
a count that is not there counts for himself.
"""

from __future__ import annotations

import os

_BIG = 96 * 1024  # bytes of the folder itself: some two thousand notes; fewer are counted sooner than a child starts
_pipe: tuple[int, int] | None = None
_places: list[str] = []
_counts: dict[str, int] = {}


def start(home: str, scopes: list[str]) -> None:
    """Begin to count the notes of those scopes that are big."""
    global _pipe
    big = [scope for scope in scopes if _size(f"{home}/shelf/{scope}/notes") >= _BIG]
    if not big or _pipe is not None or not hasattr(os, "fork") or (os.cpu_count() or 1) < 2:
        return
    try:
        reader, writer = os.pipe()
    except OSError:
        return  # too many open files: then the parent counts for himself
    try:
        child = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return
    if child == 0:
        _count(home, big, writer)
    os.close(writer)
    _pipe = reader, child
    _places[:] = big


def counting(scope: str) -> bool:
    """Whether a child counts this scope's notes right now."""
    return _pipe is not None and scope in _places


def fingerprint(scope: str) -> int | None:
    """The count of a scope's notes, once; None if nobody counted."""
    if _pipe is not None:
        _receive()
    return _counts.pop(scope, None)


def _receive() -> None:
    global _pipe
    if _pipe is None:
        return
    reader, child = _pipe
    _pipe = None
    with open(reader, "rb") as answers:
        data = answers.read()
    os.waitpid(child, 0)
    if len(data) == 8 * len(_places):
        for number, place in enumerate(_places):
            _counts[place] = int.from_bytes(data[8 * number : 8 * number + 8], "big", signed=True)


def _count(home: str, scopes: list[str], writer: int) -> None:
    """The child: count, tell, and leave without a word to anybody else."""
    try:
        counts = []
        for scope in scopes:
            folder = os.open(f"{home}/shelf/{scope}/notes", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            total, odd = count(folder)
            counts.append(total)
            if odd:  # temp files to sweep, names to look at twice: the parent does that
                os._exit(1)
        os.write(writer, b"".join([total.to_bytes(8, "big", signed=True) for total in counts]))
    finally:
        os._exit(0)


def count(folder: int) -> tuple[int, list[str]]:
    """The stamps of a folder's files, XORed as `leaf.mix_of` mixes a note's; and the names that need a second look."""
    total, odd = 0, []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if not (name[0].isalnum() and name.isascii()):
                odd.append(name)
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            total ^= hash((info.st_ino, info.st_ctime_ns, info.st_size))
    return total, odd


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
