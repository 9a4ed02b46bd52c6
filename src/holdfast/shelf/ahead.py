"""Counts big folders in children while the parent still imports: the halves of a cold recall side by side.

Only for a program that runs one command, has one thread and has opened nothing yet; `doors.cli` is one. Whoever asks for
a count that is not there counts for himself.
"""

from __future__ import annotations

import os

_BIG = 96 * 1024  # bytes of the folder itself: some two thousand notes; fewer are counted sooner than a child starts
_SHARES = min((os.cpu_count() or 1) - 1, 2)  # children, each with its share of the files, on a processor that we leave free
_children: list[tuple[int, int]] = []  # where each tells its counts, and its process
_places: list[str] = []
_counts: dict[str, int] = {}


def start(home: str, scopes: list[str]) -> None:
    """Begin to count the notes of those scopes that are big."""
    big = [scope for scope in scopes if _size(f"{home}/shelf/{scope}/notes") >= _BIG]
    if not big or _children or not hasattr(os, "fork") or not _SHARES:
        return
    _places[:] = big
    for share in range(_SHARES):
        if not _fork(home, share):
            return


def counting(scope: str) -> bool:
    """Whether children count this scope's notes right now."""
    return bool(_children) and scope in _places


def fingerprint(scope: str) -> int | None:
    """The count of a scope's notes, once; None if nobody counted."""
    if _children:
        _receive()
    return _counts.pop(scope, None)


def _fork(home: str, share: int) -> bool:
    """One more child; without it (too many files or processes) the parent counts for himself."""
    try:
        reader, writer = os.pipe()
    except OSError:
        return False
    try:
        child = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return False
    if child == 0:
        _count(home, share, writer)
    os.close(writer)
    _children.append((reader, child))
    return True


def _receive() -> None:
    """What the children counted; if one did not, nothing."""
    counts = [0] * len(_places)
    whole = len(_children) == _SHARES
    for reader, child in _children:
        with open(reader, "rb") as answers:
            data = answers.read()
        os.waitpid(child, 0)
        whole = whole and len(data) == 8 * len(_places)
        for number in range(len(data) // 8):
            counts[number] ^= int.from_bytes(data[8 * number : 8 * number + 8], "big", signed=True)
    _children.clear()
    if whole:
        _counts.update(zip(_places, counts, strict=True))


def _count(home: str, share: int, writer: int) -> None:
    """The child: count, tell, and leave without a word to anybody else."""
    try:
        counts = []
        for scope in _places:
            folder = os.open(f"{home}/shelf/{scope}/notes", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            total, odd = count(folder, share, _SHARES)
            counts.append(total)
            if odd:  # temp files to sweep, names to look at twice: the parent does that
                os._exit(1)
        os.write(writer, b"".join([total.to_bytes(8, "big", signed=True) for total in counts]))
    finally:
        os._exit(0)


def count(folder: int, share: int = 0, shares: int = 1, named: bool = False) -> tuple[int, list[str]]:
    """The stamps of a folder's files, XORed as `leaf.mix_of` mixes a note's, or with `named` those of other files; and the
    names that need a second look. Of several shares, only the files whose inode falls into this one."""
    total, odd = 0, []
    if named:
        from zlib import crc32
    with os.scandir(folder) as entries:
        for entry in entries:
            if shares > 1 and entry.inode() % shares != share:
                continue
            name = entry.name
            if not (name[0].isalnum() and name.isascii()):
                odd.append(name)
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if named:
                total ^= hash((info.st_ino, info.st_ctime_ns, info.st_size, crc32(name.encode())))
            else:
                total ^= hash((info.st_ino, info.st_ctime_ns, info.st_size))
    return total, odd


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
