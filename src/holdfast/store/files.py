"""A home of markdown files: `shelf/<scope>/notes/<key>.md`, and beside it `files/`, `archive/` and `trash/`.

Every path is built from a scope's folder and a key that passed the gate. A write names the stamp of the file it means to
replace: if the file is another by then, nothing happens and `Changed` says so.
"""

from __future__ import annotations

import os
import stat

from holdfast import home as home_folder
from holdfast.base.dates import timestamp as utc
from holdfast.base.ids import file_fingerprint, is_name
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import from_os
from holdfast.home import Lock
from holdfast.models import TrashedNote
from holdfast.store import atomic
from holdfast.store.atomic import FileContent, Folder, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from holdfast.models import Scope
    from holdfast.store.atomic import Watch
    from holdfast.store.transcripts import TranscriptFiles
    from holdfast.store.transfer import Brought
    from holdfast.store.tree import Tree

    May = Callable[[], None]
    Named = tuple[str, str, str]  # scope, part and name

    class Right(Protocol):
        """What only one has at a time."""

        def __enter__(self) -> object: ...
        def __exit__(self, *_: object) -> None: ...
        def acquire(self, seconds: float) -> bool: ...
        def release(self) -> None: ...

_BINNED = pattern(r"(?P<key>.+)--(?P<time>\d{8}T\d{6}Z)-(?P<number>[0-9a-f]{8})\.md\Z")
_FEW = 64  # files that are asked for one by one rather than by listing the folder
KINDS = ("global", "projects", "agents", "sessions")


class Changed(Exception):
    """The file is not the one the writer saw."""


def nothing_against() -> None:
    """Nothing speaks against it."""


class Entry(Record):
    """One file of a folder, as the file system shows it."""

    name: str
    stamp: Stamp
    regular: bool


def entry_at(folder: str, name: str) -> Entry | None:
    """One file of a folder, if it is there."""
    try:
        info = os.stat(os.path.join(folder, name), follow_symlinks=False)
    except OSError:
        return None
    return Entry(name, atomic.stamp_of(info), stat.S_ISREG(info.st_mode))


class FileStore:
    """The truth of one home."""

    def __init__(self, home: str, lock_seconds: float) -> None:
        self.home = home
        self._lock_seconds = lock_seconds
        self._folders = atomic.Folders(home)

    # --- what stands beside the notes ------------------------------------------------------------------------------

    def tree(self, scope_folder: str, seconds: float | None = None) -> Tree:
        """The agent's own files of a scope; writers wait so long for each other."""
        from holdfast.store.tree import Tree

        return Tree(self.home, scope_folder, self._lock_seconds if seconds is None else seconds)

    def transcript_files(self, scope_folder: str, seconds: float | None = None) -> TranscriptFiles:
        """What was said in the sessions of a scope."""
        from holdfast.store.transcripts import TranscriptFiles

        return TranscriptFiles(self.home, scope_folder, self._lock_seconds if seconds is None else seconds)

    def named_lock(self, name: str, seconds: float | None = None) -> Right:
        """A right that only one has at a time, whichever process asks."""
        locks = self._folders.open(("run", "locks"), create=True)
        return Lock(self.home, name, self._lock_seconds if seconds is None else seconds, locks)

    def exists(self) -> bool:
        """Whether there is anything to look into."""
        return home_folder.exists(self.home)

    def must_be_ours(self) -> None:
        """Refuse what is somebody else's."""
        home_folder.must_be_ours(self.home)

    def has(self, scope_folder: str, part: str = "") -> bool:
        """Whether a scope, or a part of it, has a folder."""
        return os.path.isdir(os.path.join(self.home, "shelf", scope_folder, part))

    def watch(self) -> Watch | None:
        """What tells of changes from now on, where anything can."""
        return atomic.Watch.open()

    # --- for a copy: what carrying says ------------------------------------------------------------------------------

    def digests(self, scope_folder: str, part: str) -> Iterator[tuple[str, str]]:
        from holdfast.store import transfer

        return transfer.digests(self, scope_folder, part)

    def carried(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        from holdfast.store import transfer

        return transfer.read(self, scope_folder, part, name)

    def bring(self, scope_folder: str, part: str, brought: list[Brought]) -> None:
        from holdfast.store import transfer

        transfer.bring(self, scope_folder, part, brought)

    def bare_folders(self, scope_folder: str) -> list[str]:
        from holdfast.store import transfer

        return transfer.folders(self, scope_folder)

    def passed_over(self, scope_folder: str) -> list[tuple[str, str]]:
        from holdfast.store import transfer

        return transfer.passed_over(self, scope_folder)

    # --- notes -----------------------------------------------------------------------------------------------------

    def path(self, scope: Scope, key: str, part: str = "notes") -> str:
        """Where a note stands, from the home's shelf."""
        return f"{scope.folder}/{part}/{key}.md"

    def full(self, path: str) -> str:
        """The same as an absolute path, to show to a person."""
        return os.path.join(self.home, "shelf", path)

    def read(self, scope: Scope, key: str, part: str = "notes") -> FileContent | None:
        """The bytes of a note, or None."""
        return self.read_name(scope.folder, part, f"{key}.md")

    def read_name(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        folder = self._at_hand(scope_folder, part)
        if folder is None:
            return None
        with folder:
            return atomic.read(folder, name)

    def read_many(self, scope: Scope, keys: list[str]) -> list[FileContent | None]:
        """The bytes of each note that is there."""
        folder = self._at_hand(scope.folder, "notes")
        if folder is None:
            return [None] * len(keys)
        with folder:
            here = self._names(folder, len(keys))
            return [atomic.read(folder, f"{key}.md") if here is None or f"{key}.md" in here else None for key in keys]

    def nearest(self, scopes: list[Scope], key: str) -> Iterator[tuple[Scope, FileContent]]:
        """The notes of that key in these scopes, in their order."""
        for scope in scopes:
            content = self.read(scope, key)
            if content is not None:
                yield scope, content

    def read_ahead(self, wanted: list[Named]) -> dict[Named, FileContent]:
        """Those of these documents that are cheaper read together: here none is."""
        return {}

    def stamp(self, scope_folder: str, part: str, name: str) -> Stamp | None:
        """What the file system says of a file now."""
        folder = self._at_hand(scope_folder, part)
        if folder is None:
            return None
        with folder:
            return atomic.stamp(folder, name)

    def stamps(self, scope_folder: str, part: str, names: list[str]) -> dict[str, Stamp | None]:
        """The same for many."""
        folder = self._at_hand(scope_folder, part)
        if folder is None:
            return dict.fromkeys(names)
        with folder:
            return {name: atomic.stamp(folder, name) for name in names}

    def write(self, scope: Scope, key: str, data: bytes, seen: Stamp | None, may: May = nothing_against) -> Stamp:
        """Put a note in the place of the one that was seen (None: of none). Durable when it returns. `may` is asked when
        nobody else can write any more, and raises what speaks against it."""
        atomic.must_stay_readable(data, f"{key}.md")
        return self._put(scope, "notes", f"{key}.md", data, seen, may)

    def replace(self, scope: Scope, part: str, name: str, data: bytes, seen: Stamp) -> None:
        """Put other bytes in the place of a file of any part that was seen."""
        self._put(scope, part, name, data, seen)

    def _put(
        self, scope: Scope, part: str, name: str, data: bytes, seen: Stamp | None, may: May = nothing_against
    ) -> Stamp:
        with self._made_ready(scope.folder, part) as folder:
            try:
                fd, temp = atomic.write_temp(folder, data)
                try:
                    with self.lock(scope):
                        if atomic.stamp(folder, name) != seen:
                            raise Changed
                        may()
                        os.rename(temp, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
                    written = atomic.stamp_of(os.fstat(fd))
                except BaseException:
                    atomic.discard(folder, fd, temp)
                    raise
                os.close(fd)
                atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot write {folder.name}/{name}") from error
        return written

    def write_many(self, scope: Scope, notes: list[tuple[str, bytes, Stamp | None]], may: May = nothing_against) -> list[Stamp]:
        """The same for many, by file name, flushed together. Every one is as seen and put, or none is."""
        from holdfast.store.batch import Batch

        for name, data, _ in notes:
            atomic.must_stay_readable(data, name)
        with self._made_ready(scope.folder, "notes") as folder:
            temps: list[tuple[str, str]] = []
            try:
                with Batch(folder) as batch:
                    temps = [(batch.write(data), name) for name, data, _ in notes]
                    batch.flush()
                    with self.lock(scope):
                        self._as_seen(folder, notes)
                        may()
                        for number, (temp, name) in enumerate(reversed(temps)):  # while the first is there, we live
                            try:
                                os.rename(temp, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
                            except OSError as error:
                                doing = f"cannot write {folder.name}/{name} ({number} of {len(temps)} were written before it)"
                                raise from_os(error, doing) from error
                        stamps = [atomic.stamp(folder, name) or (0, 0, 0) for name, _, _ in notes]
                    atomic.sync_folder(folder)
                    return stamps
            except OSError as error:
                raise from_os(error, f"cannot write to {folder.name}") from error

    def _as_seen(self, folder: Folder, notes: list[tuple[str, bytes, Stamp | None]]) -> None:
        here = self._names(folder, len(notes))
        for name, _, seen in notes:
            if (atomic.stamp(folder, name) if here is None or name in here else None) != seen:
                raise Changed

    def _names(self, folder: Folder, wanted: int) -> set[str] | None:
        """What is there, listed where that is cheaper than asking for each that is wanted; None where it is not."""
        return set(atomic.names(folder)) if wanted > _FEW else None

    def move_notes(
        self, scope: Scope, keys: list[str], part: str, seconds: float, seen: dict[str, Stamp] | None = None
    ) -> list[str]:
        """Move notes to the trash or the archive, in one durable step each; the keys that were there. Where it is told
        which files were seen, those that are others by now stay."""
        notes = self._open(scope.folder, "notes")
        if notes is None:
            return []
        moved = []
        time = utc(seconds).replace("-", "").replace(":", "")
        with notes, self._make(scope.folder, part) as binned, self.lock(scope):
            number = self._last_binned(binned)
            for number, key in enumerate(keys, number + 1):  # noqa: B020
                if seen is not None and atomic.stamp(notes, f"{key}.md") != seen.get(key):
                    continue
                try:
                    target = f"{key}--{time}-{number:08x}.md"
                    os.rename(f"{key}.md", target, src_dir_fd=notes.fd, dst_dir_fd=binned.fd)
                    moved.append(key)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise from_os(error, f"cannot move {notes.name}/{key}.md") from error
            if moved:
                self._sync(binned, notes)
        return moved

    def list_trash(self, scope: Scope, key: str | None = None) -> list[TrashedNote]:
        """What lies in trash and archive, newest first."""
        found = []
        for part in ("trash", "archive"):
            for entry in self.entries(scope.folder, part):
                match = _BINNED.match(entry.name)
                if match and entry.regular and key in (None, match["key"]):
                    found.append(TrashedNote(scope, match["key"], _stamp(match["time"]), part, entry.name))
        return sorted(found, key=lambda one: (one.name.rpartition("-")[2], one.time), reverse=True)

    def archived(self, scope: Scope, keys: list[str]) -> dict[str, TrashedNote]:
        """The archived note of each of these keys that has one; of several copies the last that was archived."""
        found: dict[str, TrashedNote] = {}
        for name in self._archived_names(scope.folder, keys):
            match = _BINNED.match(name)
            if match and match["key"] in keys:
                one = TrashedNote(scope, match["key"], _stamp(match["time"]), "archive", name)
                if one.key not in found or found[one.key].name < name:
                    found[one.key] = one
        return found

    def _archived_names(self, scope_folder: str, keys: list[str]) -> list[str]:
        """The names in the archive that may be of these keys."""
        folder = self._open(scope_folder, "archive") if keys else None
        if folder is None:
            return []
        with folder:
            return os.listdir(folder.fd)

    def trash_archived(self, scope: Scope, one: TrashedNote, seconds: float) -> bool:
        """Move an archived note to the trash; False if it is not in the archive any more."""
        archive = self._open(scope.folder, "archive")
        if archive is None:
            return False
        time = utc(seconds).replace("-", "").replace(":", "")
        with archive, self._make(scope.folder, "trash") as trash, self.lock(scope):
            try:
                target = f"{one.key}--{time}-{self._last_binned(trash) + 1:08x}.md"
                os.rename(one.name, target, src_dir_fd=archive.fd, dst_dir_fd=trash.fd)
                self._sync(trash, archive)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise from_os(error, f"cannot move {archive.name}/{one.name}") from error
        return True

    def _last_binned(self, folder: Folder) -> int:
        """The number of the note that came last: names count up, because the clock may go back."""
        numbers = [match["number"] for name in os.listdir(folder.fd) if (match := _BINNED.match(name))]
        return max([int(number, 16) for number in numbers], default=0)

    def restore(self, scope: Scope, one: TrashedNote, key: str) -> None:
        """Bring a note back under a key, unless another has that by now (`Changed`)."""
        folder = self._open(scope.folder, one.part)
        if folder is None:
            raise Changed
        with folder, self._make(scope.folder, "notes") as notes, self.lock(scope):
            try:
                if atomic.stamp(notes, f"{key}.md") is not None:
                    raise Changed
                os.rename(one.name, f"{key}.md", src_dir_fd=folder.fd, dst_dir_fd=notes.fd)
                self._sync(notes, folder)
            except FileNotFoundError:
                raise Changed from None
            except OSError as error:
                raise from_os(error, f"cannot restore {folder.name}/{one.name}") from error

    def erase(self, scope: Scope, part: str, name: str, seen: Stamp | None = None) -> bool:
        """Unlink one file for good; where it is told which was seen, no other (`Changed`)."""
        folder = self._open(scope.folder, part)
        if folder is None:
            return False
        with folder, self.lock(scope):
            try:
                if seen is not None and atomic.stamp(folder, name) not in (seen, None):
                    raise Changed
                os.unlink(name, dir_fd=folder.fd)
                atomic.sync_folder(folder)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise from_os(error, f"cannot erase {folder.name}/{name}") from error
        return True

    def entries(self, scope_folder: str, part: str) -> Iterator[Entry]:
        """Every file of a folder; temp files of dead writers are swept on the way."""
        folder = self._open(scope_folder, part)
        if folder is None:
            return
        with folder, os.scandir(folder.fd) as entries:
            for entry in entries:
                if not atomic.is_plain(folder, entry.name):
                    continue
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield Entry(entry.name, atomic.stamp_of(info), stat.S_ISREG(info.st_mode))

    def misnamed(self, scope_folder: str) -> list[str]:
        """Files and folders of a scope whose names are not UTF-8: nobody can ask for those."""
        found: list[str] = []
        top, root = os.path.join(self.home, "shelf", scope_folder), self._open(scope_folder)
        if root is None:
            return found
        with root:
            for where, folders, names in atomic.walk(root):
                found += [os.path.join(top, where + name) for name in [*folders, *names] if not atomic.is_utf8(name)]
                folders[:] = [name for name in folders if not name.startswith(".") and atomic.is_utf8(name)]
        return found

    def fingerprint(self, scope_folder: str, part: str) -> int:
        """One number for the whole folder that changes with any of its files: the quick form of `census`."""
        folder = self._open(scope_folder, part)
        if folder is None:
            return 0
        with folder:
            total, odd = _fingerprint(folder, named=part != "notes")
            for name in odd:
                stamp = atomic.stamp(folder, name) if atomic.is_plain(folder, name) else None
                total ^= file_fingerprint(stamp, "" if part == "notes" else name) if stamp else 0
        return total

    def fingerprints(self, scopes: tuple[str, ...]) -> dict[tuple[str, str], int]:
        """The same for every part of these scopes that has one to tell; here each part is asked by itself."""
        return {}

    def scopes(self) -> list[str]:
        """The folder of every scope that has one."""
        return [path for path, good in self._scope_entries() if good]

    def strays(self) -> list[str]:
        """What stands where scopes do and is none."""
        return [path for path, good in self._scope_entries() if not good]

    def _scope_entries(self) -> Iterator[tuple[str, bool]]:
        root = atomic.open_folder(self.home, ("shelf",))
        if root is None:
            return
        with root, os.scandir(root.fd) as kinds:
            for kind in sorted(kinds, key=lambda entry: entry.name):
                folder = kind.is_dir(follow_symlinks=False)
                if not folder or kind.name == "global" or kind.name not in KINDS:
                    if not kind.name.startswith(".") and kind.name != "transcripts":
                        yield kind.name, folder and kind.name == "global"
                    continue
                inner = self._open(kind.name)
                if inner is None:
                    continue
                with inner, os.scandir(inner.fd) as entries:
                    for entry in sorted(entries, key=lambda entry: entry.name):
                        good = entry.is_dir(follow_symlinks=False) and is_name(entry.name)
                        if not entry.name.startswith("."):
                            yield f"{kind.name}/{entry.name}", good

    def has_listing(self, scope: Scope) -> bool:
        """Whether this scope has an index.md, or something in its place; asked by every call that looks."""
        return os.path.lexists(os.path.join(self.home, "shelf", scope.folder, "index.md"))

    def write_listing(self, scope: Scope, data: bytes) -> None:
        """Write index.md. It is derived from the notes, so it is replaced in one step but not flushed. Its temporary file is
        created among the notes, where readers sweep what a dead writer left."""
        folder = self._open(scope.folder)
        if folder is None:
            return
        with folder, self._made_ready(scope.folder, "notes") as notes:
            try:
                fd, temp = atomic.write_temp(notes, data, sync=False)
                try:
                    os.rename(temp, "index.md", src_dir_fd=notes.fd, dst_dir_fd=folder.fd)
                except BaseException:
                    atomic.discard(notes, fd, temp)
                    raise
                os.close(fd)
            except OSError as error:
                raise from_os(error, f"cannot write {folder.name}/index.md") from error

    def lock(self, scope: Scope) -> Right:
        """The right to change this scope's files."""
        return self.named_lock(scope.folder.replace("/", "+"))

    def close(self) -> None:
        """Let go of what is open; it is opened again at need."""
        self._folders.close()

    def _at_hand(self, scope_folder: str, part: str) -> Folder | None:
        """A folder that is needed again soon; it is not to be listed."""
        return self._folders.open(("shelf", *scope_folder.split("/"), part))

    def _made_ready(self, scope_folder: str, part: str) -> Folder:
        """The same, made if it is not there."""
        folder = self._folders.open(("shelf", *scope_folder.split("/"), part), create=True)
        assert folder is not None
        return folder

    def _open(self, scope_folder: str, *parts: str) -> Folder | None:
        return atomic.open_folder(self.home, ("shelf", *scope_folder.split("/"), *parts))

    def _make(self, scope_folder: str, *parts: str) -> Folder:
        folder = atomic.open_folder(self.home, ("shelf", *scope_folder.split("/"), *parts), create=True)
        assert folder is not None
        return folder

    def _sync(self, *folders: Folder) -> None:
        for folder in folders:
            try:
                atomic.sync_folder(folder)
            except OSError as error:
                raise from_os(error, f"cannot flush {folder.name}") from error


def _fingerprint(folder: Folder, named: bool) -> tuple[int, list[str]]:
    """Return the stamps of a folder's files, XORed as `leaf.mix_of` mixes them (with their names, if `named`), and the names
    that need a second look. Written out, because a recall stats every note."""
    total, odd = 0, []
    if named:
        from zlib import crc32
    with os.scandir(folder.fd) as entries:
        for entry in entries:
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


def key_of_trashed(name: str) -> str:
    """The key of a note in the trash or the archive, from the name of its file; empty where that is not such a name."""
    match = _BINNED.match(name)
    return match["key"] if match else ""


def number_of_trashed(name: str) -> int:
    """Which one it was to go to the trash or the archive, by its name there."""
    match = _BINNED.match(name)
    return int(match["number"], 16) if match else 0


def _stamp(compact: str) -> str:
    day, time = compact[:8], compact[9:15]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"
