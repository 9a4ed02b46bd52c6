"""Reading back the bytes of everything, to see what still stands where: here of a home, in `tables` of a store."""

from __future__ import annotations

import os
import stat

from holdfast.errors import from_os
from holdfast.formats.versions import list_versions, parse_note
from holdfast.sqlite import in_use, pieces_of
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.context.caller import Context
    from holdfast.models import Progress
    from holdfast.verbs.purge.patterns import Traces
    from holdfast.verbs.purge.verify_postgres import Tables

    Found = tuple[dict[str, set[int]], list[str]]  # which traces stand in which files, and those that could not be read

_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
TRUTH = ("notes", "trash", "archive", "files", "transcripts")
TABLE = "table "  # what stands before the name of one, where a home has a database
_OURS = ("index.db", "ledger.db", "rendered.json", "run", TABLE)
BEYOND = (
    "backups and copies of the home, also on other machines",
    "blocks a disk has not yet overwritten",
    "what a model was already told",
)


def whole(context: Context) -> Home | Tables:
    """All that is ours, wherever it is kept."""
    if not context.config.store:
        return Home(context)
    from holdfast.verbs.purge.verify_postgres import Tables

    return Tables(context)


class Home:
    """Every byte of a home."""

    beyond: tuple[str, ...] = BEYOND

    def __init__(self, context: Context) -> None:
        self._home, self._progress = context.config.home, context.progress

    def files(self, under: str = "") -> list[str]:
        """Every file, or those of the shelf."""
        return files_of(self._home, under)

    def scan(self, paths: Iterable[str], traces: Traces) -> Found:
        """Which of the traces stand in which of these files; and the files that could not be read."""
        return scan(self._home, paths, traces, self._progress)

    def texts(self, paths: Iterable[str]) -> Iterator[str]:
        """What these files say, one text after the other."""
        for path in paths:
            yield from texts_of(self._home, path)

    def traced(self, texts: Iterable[str], vectors: list[bytes]) -> Traces:
        """What is looked for: the numbers of vectors stand in the bytes too."""
        from holdfast.verbs.purge.patterns import Traces

        return Traces(texts, vectors)

    def looked_in(self, files: int) -> str:
        return f"every byte of {files} files of the home"

    def told_of_vectors(self, vectors: list[bytes]) -> str:
        return f"the numbers of its {len(vectors)} vectors looked for in the same bytes: none found"

    def swept(self) -> list[str]:
        """What is left to be said when the databases have emptied their own logs."""
        return []

    def held_elsewhere(self, paths: Iterable[str], traces: Traces) -> list[str]:
        """What git keeps of it."""
        from holdfast.verbs.purge import git

        return git.still_held(self._home, paths, traces)


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
    root = atomic.open_folder(home, tuple(under.split("/")) if under else ())
    if root is None:
        return found
    with root:
        for where, folders, names in atomic.walk(root, f"{under}/" if under else ""):
            folders[:] = sorted([name for name in folders if name != ".git"])
            found += [f"{where}{name}" for name in sorted(names) if _is_regular(home, f"{where}{name}")]
    return found


def _is_regular(home: str, path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(os.path.join(home, path)).st_mode)
    except OSError:
        return False  # it went away


def scan(home: str, paths: Iterable[str], traces: Traces, progress: Progress) -> Found:
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
    if name.endswith(".db-shm") and in_use(full[: -len("-shm")]):
        return
    if name in ("index.db", "ledger.db"):
        yield from pieces_of(full, _CHUNK)
        return
    try:
        fd = os.open(path, _READ) if os.path.isabs(path) else atomic.open_file(home, path)
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
    return said_in(path, data)


def said_in(path: str, data: bytes) -> list[str]:
    """What these bytes of a file say."""
    inside = path.split("/")[2:] if path.startswith("shelf/global/") else path.split("/")[3:]
    if len(inside) == 2 and inside[0] in ("notes", "trash", "archive") and path.endswith(".md"):
        return [version.text for version in list_versions(parse_note(data, 0))]
    return [data.decode("utf-8", "replace")]
