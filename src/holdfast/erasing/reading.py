"""Reading back the bytes of everything in a home, to see what still stands where."""

from __future__ import annotations

import os
import stat

from holdfast import house
from holdfast.errors import from_os
from holdfast.leaf import opened, versions_of
from holdfast.shelf import disk
from holdfast.sql import pieces_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.erasing.traces import Traces
    from holdfast.note import Progress

_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
TRUTH = ("notes", "trash", "archive", "files", "transcripts")
_OURS = ("index.db", "ledger.db", "rendered.json", "run")


def kind_of(path: str) -> str:
    """Whose a file of the home is: `truth` (what people and agents keep), `temp` (a writer's, under way), `ours` (made by us),
    or `beside` (somebody put it there)."""
    parts = path.split("/")
    if parts[0] != "shelf":
        return "ours" if parts[0].startswith(_OURS) else "beside"
    if parts[-1].startswith(".holdfast-"):
        return "temp"
    inside = parts[2:] if parts[1:2] == ["global"] else parts[3:]
    if inside[:1] and inside[0] in TRUTH:
        return "truth"
    return "ours" if inside == ["index.md"] else "beside"


def files_of(home: str, under: str = "") -> list[str]:
    """Every regular file of the home, from there; what git keeps of it is packed, and asked for otherwise."""
    found: list[str] = []
    root = disk.open_folder(home, tuple(under.split("/")) if under else ())
    if root is None:
        return found
    with root:
        for where, folders, names in disk.walk(root, f"{under}/" if under else ""):
            folders[:] = sorted([name for name in folders if name != ".git"])
            found += [f"{where}{name}" for name in sorted(names) if _is_regular(home, f"{where}{name}")]
    return found


def _is_regular(home: str, path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(os.path.join(home, path)).st_mode)
    except OSError:
        return False  # it went away


def scan(home: str, paths: Iterable[str], traces: Traces, progress: Progress) -> tuple[dict[str, set[int]], list[str]]:
    """Which of the traces stand in which of these files; and the files that could not be read."""
    found, unread = {}, []
    some = list(paths)
    progress.start("reading everything back", len(some))
    try:
        for path in some if len(traces) else ():
            full = os.path.join(home, path)
            try:
                numbers = _within(home, path, traces)
            except PermissionError:
                unread.append(path)
                continue
            except OSError as error:
                raise from_os(error, f"cannot read {full} back") from error
            if numbers:
                found[path] = numbers
            progress.step()
    finally:
        progress.end()
    return found, unread


def _within(home: str, path: str, traces: Traces) -> set[int]:
    """Read in pieces that overlap."""
    found: set[int] = set()
    tail = b""
    for piece in _pieces(home, path):
        window = tail + piece
        found |= traces.within(window)
        tail = window[-traces.overlap :] if traces.overlap else b""
    return found


def _pieces(home: str, path: str) -> Iterator[bytes]:
    """A file's bytes. A database that somebody in this process may have open is read through SQLite: to close another
    descriptor of it would drop their locks; and its shared memory, which holds page numbers and no text, not at all."""
    name, full = os.path.basename(path), os.path.join(home, path)
    if name.endswith(".db-shm") and house.in_use(full[: -len("-shm")]):
        return
    if name in ("index.db", "ledger.db"):
        yield from pieces_of(full, _CHUNK)
        return
    try:
        fd = os.open(path, _READ) if os.path.isabs(path) else disk.open_file(home, path)
    except FileNotFoundError:
        return
    if fd is None:
        return
    with open(fd, "rb", buffering=0) as file:
        while piece := file.read(_CHUNK):
            yield piece


def texts_of(home: str, path: str) -> list[str]:
    """What a file says: of a note each version, and not what is said about it; of any other the whole. Nothing where there is
    none, or it cannot be read."""
    try:
        data = b"".join(_pieces(home, path))
    except OSError:
        return []
    inside = path.split("/")[2:] if path.startswith("shelf/global/") else path.split("/")[3:]
    if len(inside) == 2 and inside[0] in ("notes", "trash", "archive") and path.endswith(".md"):
        return [version.text for version in versions_of(opened(data, 0))]
    return [data.decode("utf-8", "replace")]
