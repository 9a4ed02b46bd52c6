"""Verify a purge in a home on disk: read every byte of Holdfast's files, and ask git what its history still contains."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from shlex import quote
from typing import NamedTuple, Protocol

from holdfast.errors import from_os
from holdfast.formats.history_file import is_history_name, older_versions
from holdfast.formats.note_file import replace_invalid
from holdfast.formats.versions import list_versions, parse_note
from holdfast.sqlite import is_open, read_pieces
from holdfast.store import atomic
from holdfast.verbs.purge.patterns import Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.context.caller import Context
    from holdfast.models import Progress

_CHUNK = 1 << 20  # bytes
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
USER_FOLDERS = ("notes", "history", "trash", "archive", "files", "transcripts")  # of a scope: what people and agents keep
TABLE_PREFIX = "table "  # precedes the name of a table, where the store is a database
_OURS = ("index.db", "ledger.db", "rendered.json", "run", TABLE_PREFIX)


class ScanResult(NamedTuple):
    """The numbers of the patterns found, by path, and the paths that could not be read."""

    matches: dict[str, set[int]]
    unread: list[str]


class Verifier(Protocol):
    """The storage of a memory, as a purge uses it: a home on disk, or a tenant in PostgreSQL."""

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Copies that no purge can reach; every receipt names them."""

    def list_files(self, under: str = "") -> list[str]:
        """Return the paths of everything kept, or only of what is below `under`."""

    def scan(self, paths: Iterable[str], patterns: Patterns) -> ScanResult:
        """Search these paths for the patterns."""

    def read_texts(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the texts of these paths; of a note each version."""

    def make_patterns(self, texts: Iterable[str], vectors: list[bytes]) -> Patterns:
        """Return the patterns to search for."""

    def describe_searched(self, files: int) -> str:
        """Return, for the receipt, where the pieces of a text were searched for."""

    def describe_vectors(self, vectors: list[bytes]) -> str:
        """Return, for the receipt, how the vectors were searched for."""

    def vacuum(self) -> list[str]:
        """Reclaim deleted rows; return what remains beyond reach."""

    def find_other_copies(self, paths: Iterable[str], patterns: Patterns) -> list[str]:
        """Return, for the receipt, which copies of these paths remain elsewhere."""


def open_verifier(context: Context) -> Verifier:
    """Return the verifier of the caller's store."""
    if not context.config.store:
        return FileVerifier(context)
    from holdfast.verbs.purge.verify_postgres import PostgresVerifier

    return PostgresVerifier(context)


class FileVerifier:
    """Verifies every byte of a home."""

    unreachable: tuple[str, ...] = (
        "backups and copies of the home, also on other machines",
        "disk blocks that are not yet overwritten",
        "what a model was already shown",
    )

    def __init__(self, context: Context) -> None:
        self._home, self._progress = context.config.home, context.progress

    def list_files(self, under: str = "") -> list[str]:
        """Return every regular file of the home or of a folder in it; git's own files are packed and asked for otherwise."""
        found: list[str] = []
        root = atomic.open_folder(self._home, tuple(under.split("/")) if under else ())
        if root is None:
            return found
        with root:
            for _, where, folders, names in atomic.walk(root, f"{under}/" if under else ""):
                folders[:] = sorted([name for name in folders if name != ".git"])
                found += [f"{where}{name}" for name in sorted(names) if _is_regular(self._home, f"{where}{name}")]
        return found

    def scan(self, paths: Iterable[str], patterns: Patterns) -> ScanResult:
        """Search these files for the patterns."""
        return scan_files(self._home, paths, patterns, self._progress)

    def read_texts(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the texts of these files."""
        for path in paths:
            yield from read_texts_of_file(self._home, path)

    def make_patterns(self, texts: Iterable[str], vectors: list[bytes]) -> Patterns:
        """Return the patterns: the files contain the bytes of vectors too."""
        return Patterns(texts, vectors)

    def describe_searched(self, files: int) -> str:
        """Return, for the receipt, where the pieces of a text were searched for."""
        return f"every byte of {files} files of the home"

    def describe_vectors(self, vectors: list[bytes]) -> str:
        """Return, for the receipt, how the vectors were searched for."""
        return f"searched the same bytes for its {len(vectors)} vectors: none found"

    def vacuum(self) -> list[str]:
        """Do nothing: index and ledger have emptied their own logs."""
        return []

    def find_other_copies(self, paths: Iterable[str], patterns: Patterns) -> list[str]:
        """Return what the history of the git repository around the home still contains."""
        return find_in_git(self._home, paths, patterns)


def kind_of(path: str) -> str:
    """Return the owner of a path in the home: `user` (kept by people and agents), `temporary` (a write in progress), `ours`
    (derived by us) or `foreign` (put there by another program)."""
    parts = path.split("/")
    if parts[0] != "shelf":
        return "ours" if parts[0].startswith(_OURS) else "foreign"
    if parts[-1].startswith(".holdfast-"):
        return "temporary"
    inside = parts[2:] if parts[1:2] == ["global"] else parts[3:]
    if inside[:1] and inside[0] in USER_FOLDERS:
        return "user"
    return "ours" if inside == ["index.md"] else "foreign"


def _is_regular(home: str, path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(os.path.join(home, path)).st_mode)
    except OSError:
        return False  # deleted since


def scan_files(home: str, paths: Iterable[str], patterns: Patterns, progress: Progress) -> ScanResult:
    """Search files, by paths in the home or absolute ones; raise DiskTrouble for read errors other than missing permission."""
    matches: dict[str, set[int]] = {}
    unread: list[str] = []
    wanted = list(paths)
    progress.start("verifying", len(wanted))
    try:
        for path in wanted if len(patterns) else ():
            try:
                numbers = _scan_file(home, path, patterns)
            except PermissionError:
                unread.append(path)
                continue
            except OSError as error:
                raise from_os(error, f"cannot read {os.path.join(home, path)} back") from error
            if numbers:
                matches[path] = numbers
            progress.step()
    finally:
        progress.end()
    return ScanResult(matches, unread)


def _scan_file(home: str, path: str, patterns: Patterns) -> set[int]:
    """Search a file in overlapping chunks."""
    found: set[int] = set()
    tail = b""
    for chunk in _read_chunks(home, path):
        window = tail + chunk
        found |= patterns.find_in(window)
        tail = window[-patterns.overlap :] if patterns.overlap else b""
    return found


def _read_chunks(home: str, path: str) -> Iterator[bytes]:
    """Yield a file's bytes. A database that this process may have open is read through SQLite: closing another descriptor
    of it would drop its locks. Its shared memory, which holds page numbers and no text, is skipped."""
    name, full = os.path.basename(path), os.path.join(home, path)
    if name.endswith(".db-shm") and is_open(full[: -len("-shm")]):
        return
    if name in ("index.db", "ledger.db"):
        yield from read_pieces(full, _CHUNK)
        return
    try:
        fd = os.open(path, _READ) if os.path.isabs(path) else atomic.open_file(home, path)
    except FileNotFoundError:
        return
    if fd is None:
        return
    with open(fd, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def read_texts_of_file(home: str, path: str) -> list[str]:
    """Return the texts of a file; none if it is missing or cannot be read."""
    try:
        data = b"".join(_read_chunks(home, path))
    except OSError:
        return []
    return texts_in(path, data)


def texts_in(path: str, data: bytes) -> list[str]:
    """Return the texts in a file's bytes: of a note each version without its header, of any other file the whole."""
    inside = path.split("/")[2:] if path.startswith("shelf/global/") else path.split("/")[3:]
    if len(inside) == 2 and inside[0] in ("notes", "trash", "archive") and path.endswith(".md"):
        return [version.text for version in list_versions(parse_note(data, 0))]
    if len(inside) == 2 and inside[0] == "history" and is_history_name(inside[1]):
        return [replace_invalid(place.version.text) for place in older_versions(data, inside[1])]
    return [data.decode("utf-8", "replace")]


# --- git --------------------------------------------------------------------------------------------------------------

_GIT_SECONDS = 20
_MAX_GIT_VERSIONS = 200  # of one file
_DERIVED = ("index.db", "index.db-wal")  # like the index.md beside the notes, derived from them
_LEDGER = ("ledger.db", "ledger.db-wal")  # derived from nothing: never to be deleted


def find_in_git(home: str, paths: Iterable[str], patterns: Patterns) -> list[str]:
    """Return what the history of the git repository around the home still contains, with the command that removes it.

    Purged files are looked up by name, derived files by content. We never run the command ourselves.
    """
    home = os.path.realpath(home)
    root = _git_root(home)
    if not root:
        return []
    own = list(dict.fromkeys(paths))
    derived = [*dict.fromkeys([_listing_of(path) for path in own]), *_DERIVED, *_LEDGER]
    in_repository = {path: os.path.relpath(os.path.join(home, path), root) for path in (*own, *derived)}
    answers = {in_repository[path]: _is_in_history(root, in_repository[path]) for path in own}
    answers.update({in_repository[path]: _history_contains(root, in_repository[path], patterns) for path in derived})
    if None in answers.values():
        return [f"the history of the git repository {root}, if its files were ever committed there: git could not be run"]
    tracked = [path for path, found in answers.items() if found]
    ledger = [path for path in tracked if os.path.basename(path) in _LEDGER]
    removable = [path for path in tracked if path not in ledger]
    names = ", ".join(removable[:3]) + (f" and {len(removable) - 3} more" if len(removable) > 3 else "")
    history = f"the history of the git repository {root} still contains"
    lines = [f"{history} {names}; to remove it, run: {removal_command(root, removable)}"] if removable else []
    return lines + [f"{history} it in {path}: copy that file before you remove it from the history" for path in ledger]


def _listing_of(path: str) -> str:
    """Return the index.md of the scope that a file is in."""
    parts = path.split("/")
    return "/".join([*parts[: 2 if parts[1:2] == ["global"] else 3], "index.md"])


def _history_contains(root: str, path: str, patterns: Patterns) -> bool | None:
    """Return whether any version of a file contains a pattern; None if git cannot say."""
    tracked = _is_in_history(root, path)
    if not tracked or not len(patterns):
        return tracked
    listed = _run_git(root, "rev-list", "--all", "--objects", "--", path)
    if listed is None:
        return None
    rows = [row.partition(b" ") for row in listed.splitlines()]
    blobs = [blob.decode() for blob, _, name in rows if name == os.fsencode(path)]
    if len(blobs) > _MAX_GIT_VERSIONS:
        return True  # too many to read: better reported once too often
    return any((data := _run_git(root, "cat-file", "blob", blob)) is None or patterns.find_in(data) for blob in blobs)


def removal_command(root: str, paths: list[str]) -> str:
    """Return the command that rewrites the history without these files and drops the old objects."""
    git = f"git -C {quote(root)}"
    if shutil.which("git-filter-repo"):
        return f"{git} filter-repo --force --invert-paths {' '.join([f'--path {quote(path)}' for path in paths])}"
    remove = f"git rm -q --cached --ignore-unmatch -- {' '.join([quote(path) for path in paths])}"
    return (
        f"{git} filter-branch -f --index-filter {quote(remove)} -- --all"
        f" && rm -rf {quote(os.path.join(root, '.git', 'refs', 'original'))}"
        f" && {git} reflog expire --expire=now --all && {git} gc --prune=now"
    )


def _git_root(folder: str) -> str:
    """Return the nearest folder at or above this one that is a git work tree; "" if there is none."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return folder


def _is_in_history(root: str, path: str) -> bool | None:
    """Return whether any commit of any branch has this path; None if git cannot say."""
    listed = _run_git(root, "rev-list", "--all", "-n", "1", "--", path)
    return None if listed is None else bool(listed.strip())


def _run_git(root: str, *arguments: str) -> bytes | None:
    """Return git's output; None if it fails or takes more than 20 seconds."""
    command = ["git", "-C", root, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_SECONDS, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
