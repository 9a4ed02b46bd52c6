"""The interface of a store, the source of truth: notes, an agent's own files and transcripts, with trash and archive.

Two backends implement it: files in the home (`holdfast.store.files`) and PostgreSQL (`holdfast.postgres.store`). A scope is
named by its folder (`projects/demo`) and has parts: `notes`, `history`, `files`, `trash`, `archive` and
`transcripts`.
"""

from __future__ import annotations

from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from holdfast.base.ids import FileId
    from holdfast.models import Scope, TrashedNote

    NoteKey = tuple[Scope, str]  # scope and key
    from holdfast.store.watch import Watch
else:
    Protocol = object  # `typing` takes a third of the time that a short command may take to start

FileRef = tuple[str, str, str]  # scope folder, part, file name


class NoteWrite(Record):
    """One note to write: its scope and file name, its new bytes, and the file that it replaces (None: it is new)."""

    scope: Scope
    name: str
    data: bytes
    replaced: FileId | None


class Changed(Exception):
    """The file is not the one that the writer has read: read it again and retry."""


class FileContent(Record):
    """A file's bytes, and the id and time of modification it had before they were read."""

    data: bytes
    file_id: FileId
    modified: int  # seconds since 1970

    def text(self) -> str:
        """Return the bytes as text; bytes that are not UTF-8 survive a round trip."""
        return self.data.decode("utf-8", "surrogateescape")


class Entry(Record):
    """One file of a part, as a listing shows it."""

    name: str
    file_id: FileId
    regular: bool  # not a link, folder or special file


class Document(Record):
    """A file on its way from one store to another."""

    name: str  # in the part `files`: its path
    data: bytes
    modified: int  # seconds since 1970


class Line(Record):
    """One complete line of a transcript."""

    number: int  # from 1
    start: int  # byte offsets; `end` is after the newline
    end: int
    data: bytes  # empty if the line is longer than `layout.LINE_BYTES`


class Position(Record):
    """A point between two lines of a transcript, from which a reader can go on."""

    offset: int = 0  # bytes before it
    lines: int = 0  # lines before it
    inode: int = 0  # of the file; 0: of any


def no_check() -> None:
    """Accept every write."""


if TYPE_CHECKING:
    Check = Callable[[], None]  # runs under the lock, directly before a write; raises to reject it
    Compose = Callable[[Iterator[Line], bool], list[bytes]]


class StoreLock(Protocol):
    """A lock that one thread of one process holds at a time."""

    def __enter__(self) -> object: ...
    def __exit__(self, *_: object) -> None: ...

    def acquire(self, seconds: float) -> bool:
        """Take the lock and return whether it was free within `seconds`."""

    def release(self) -> None:
        """Free the lock."""


class Tree(Protocol):
    """An agent's own files in one scope, named by the parts of their path."""

    def read(self, parts: tuple[str, ...]) -> FileContent | None:
        """Return a file, or None if there is none."""

    def read_part(self, part: str, parts: tuple[str, ...]) -> FileContent | None:
        """Return a file of another part of the same scope, such as its notes."""

    def file_id(self, parts: tuple[str, ...]) -> FileId | None:
        """Return the id of a file or folder, or None."""

    def list_names(self, parts: tuple[str, ...]) -> list[str] | None:
        """Return the sorted names in a folder (folders end in /), or None if it is not a folder."""

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        """Return whether there is a folder at this path."""

    def write(self, parts: tuple[str, ...], data: bytes, expected: FileId | None, *, check: Check = no_check) -> FileContent:
        """Replace the file with id `expected` (None: create it) durably and return it; raise `Conflict` if it changed."""

    def append(
        self, parts: tuple[str, ...], compose: Callable[[bytes], bytes]
    ) -> tuple[FileContent | None, FileContent | None]:
        """Append lines to a file durably, creating it if needed; return the file before and after.

        `compose` gets the bytes of the file and returns the lines to append, or none. No line that another writer appends
        meanwhile is lost. `compose` may run several times, and raises to reject the write.
        """

    def create_file(self, parts: tuple[str, ...], data: bytes) -> bool:
        """Create a file and return True, or return False if something has this path."""

    def create_folder(self, parts: tuple[str, ...]) -> bool:
        """Create a folder and return True, or return False if it exists."""

    def delete(self, parts: tuple[str, ...]) -> None:
        """Delete a file, or a folder with everything in it; raise `NotFound` if there is none."""

    def rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Move a file or folder; raise `Conflict` if the new path is taken and `NotFound` if there is no old one."""

    def entries(self) -> Iterator[Entry]:
        """Yield every file by its path."""

    def list_folders(self) -> list[str]:
        """Return the absolute path of every folder on disk, for a watch."""


class Transcript(Protocol):
    """The transcript of one session. Lines are appended; a purge replaces lines and keeps their numbers."""

    name: str  # client/session.jsonl
    part: str  # `transcripts` or `trash`
    path: str  # scope folder, part and name

    def file_id(self) -> FileId | None:
        """Return the id of the transcript, or None if there is none."""

    def read_lines(self, position: Position = Position(), chunk: int = ...) -> Iterator[Line]:
        """Yield every complete line from a position on, reading about `chunk` bytes at a time."""

    def matches_line_before(self, offset: int, test: Callable[[bytes], bool]) -> bool:
        """Return whether a line ends at this offset and passes the test."""

    def read_unfinished_line(self, offset: int) -> bytes:
        """Return the bytes after the last complete line, which ends at `offset`, if they only lack the newline."""

    def append(self, compose: Compose, since: Position = Position()) -> Position:
        """Append lines durably, all or none, and return the position after them.

        `compose` runs under the lock: it gets the lines after `since` and whether the transcript is empty, and returns the
        lines to append.
        """

    def wait_for_writers(self) -> None:
        """Wait until every append that has started is done."""

    def replace_lines(self, replace: Callable[[Line], bytes | None]) -> int:
        """Replace the lines for which `replace` returns bytes and return their count; line numbers stay."""

    def erase(self, expected: FileId | None = None) -> bool:
        """Delete the transcript permanently, only with id `expected` if given; return whether it was deleted."""

    def move_to_trash(self, time: str) -> bool:
        """Move the transcript to the trash; return whether there was one."""

    def restore(self, trashed_name: str) -> bool:
        """Move a file of the trash to this transcript; return False if there is none or this one exists."""


class Transcripts(Protocol):
    """The transcripts of one scope."""

    def open(self, name: str, part: str = ...) -> Transcript:
        """Return the transcript `client/session.jsonl`, existing or not, or one in the trash."""

    def entries(self) -> Iterator[Entry]:
        """Yield every transcript, in the order of names."""

    def wait_for_writers(self) -> None:
        """Wait until every transcript that is being started is visible."""

    def list_trashed(self) -> list[Transcript]:
        """Return the transcripts in the trash, newest first; each is named `client/session--time.jsonl`."""

    def list_folders(self) -> list[str]:
        """Return the absolute path of every folder on disk, for a watch."""


class Store(Protocol):
    """The source of truth of one home or tenant."""

    home: str

    def exists(self) -> bool:
        """Return whether there is anything to read."""

    def check_owner(self) -> None:
        """Raise `DiskTrouble` if another user owns the store."""

    def named_lock(self, name: str, seconds: float | None = None) -> StoreLock:
        """Return a lock between all processes that use this store; `seconds` is how long entering it waits."""

    def lock_scope(self, scope: Scope) -> StoreLock:
        """Return the lock that every writer of this scope's notes holds."""

    def open_watch(self) -> Watch | None:
        """Return a watch for changed files, or None where changes are not reported."""

    def display_path(self, path: str) -> str:
        """Return where a path of the store is, for a person to read."""

    # --- scopes and parts ------------------------------------------------------------------------------------------

    def list_scopes(self) -> list[str]:
        """Return the folder of every scope."""

    def list_strays(self) -> list[str]:
        """Return the paths among the scopes that are not scopes."""

    def list_misnamed(self, scope_folder: str) -> list[str]:
        """Return the paths in a scope that are not UTF-8 and cannot be requested."""

    def has_folder(self, scope_folder: str, part: str = "") -> bool:
        """Return whether a scope, or a part of it, exists."""

    def entries(self, scope_folder: str, part: str) -> Iterator[Entry]:
        """Yield every file of `notes`, `history`, `trash` or `archive`."""

    def fingerprint(self, scope_folder: str, part: str) -> int:
        """Return a number that changes with every file of a part; 0 for an empty one."""

    def tree(self, scope_folder: str, lock_seconds: float | None = None) -> Tree:
        """Return the agent's own files of a scope."""

    def transcripts(self, scope_folder: str, lock_seconds: float | None = None) -> Transcripts:
        """Return the transcripts of a scope."""

    # --- notes -----------------------------------------------------------------------------------------------------

    def read_note(self, scope: Scope, key: str) -> FileContent | None:
        """Return a note, or None if there is none."""

    def read_notes(self, wanted: list[NoteKey]) -> list[FileContent | None]:
        """Return many notes, also of several scopes, in the order of `wanted`."""

    def find_notes(self, scopes: list[Scope], key: str) -> Iterator[tuple[Scope, FileContent]]:
        """Yield the notes with this key, in the order of `scopes`."""

    def read_file(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        """Return a file of `notes`, `history`, `trash` or `archive` by name, or None if there is none."""

    def read_batch(self, wanted: list[FileRef]) -> dict[FileRef, FileContent]:
        """Return the files that are cheaper to read together than one by one: perhaps none of them."""

    def file_id(self, scope_folder: str, part: str, name: str) -> FileId | None:
        """Return the id of a file, or None if there is none."""

    def file_ids(self, scope_folder: str, part: str, names: list[str]) -> dict[str, FileId | None]:
        """Return the ids of many files."""

    def write_note(self, scope: Scope, key: str, data: bytes, expected: FileId | None, *, check: Check = no_check) -> FileId:
        """Replace the note with id `expected` (None: create it) durably; raise `Changed` if it was replaced since.

        `check` runs under the lock and raises to reject the write.
        """

    def write_notes(self, notes: list[NoteWrite], *, check: Check = no_check) -> list[FileId]:
        """Write notes of one scope or several durably, as `write_note` does; none is written if one is not as expected."""

    def write_history(
        self, scope: Scope, name: str, data: bytes, expected: FileId | None, *, note: tuple[str, FileId | None]
    ) -> None:
        """Replace the history file with id `expected` (None: create it) durably.

        `note` is the name and id of the note file that still has the versions: raise `Changed` if that file or the history file
        was replaced since. A purge that erases both leaves nothing behind then.
        """

    def replace_file(self, scope: Scope, part: str, name: str, data: bytes, expected: FileId) -> None:
        """Replace a file of any part durably; raise `Changed` if it was replaced since."""

    def erase_file(self, scope: Scope, part: str, name: str, expected: FileId | None = None) -> bool:
        """Delete a file permanently and return whether it was there; raise `Changed` if it is not `expected`."""

    # --- trash and archive -----------------------------------------------------------------------------------------

    def move_notes(
        self, scope: Scope, keys: list[str], part: str, seconds: float, expected: dict[str, FileId] | None = None
    ) -> list[str]:
        """Move notes to the trash or the archive, dated `seconds`, and return the keys that were moved.

        With `expected`, notes that were replaced since stay.
        """

    def list_trash(self, scope: Scope, key: str | None = None) -> list[TrashedNote]:
        """Return the notes in trash and archive, newest first."""

    def find_archived(self, wanted: list[NoteKey]) -> dict[NoteKey, TrashedNote]:
        """Return the last archived note of each of these keys that has one; the keys may be of several scopes."""

    def trash_archived(self, scope: Scope, note: TrashedNote, seconds: float) -> bool:
        """Move an archived note to the trash; return False if it is not in the archive any more."""

    def restore_note(self, scope: Scope, note: TrashedNote, key: str) -> None:
        """Move a note out of trash or archive to a key; raise `Changed` if the key is taken or the note was moved."""

    # --- index.md --------------------------------------------------------------------------------------------------

    def has_listing(self, scope: Scope) -> bool:
        """Return whether anything is at the path of this scope's index.md."""

    def has_current_listing(self, scope: Scope) -> bool:
        """Return whether index.md of this scope was written after the last change of the names of its notes."""

    def write_listing(self, scope: Scope, data: bytes) -> None:
        """Replace index.md; it is derived, so it is not flushed."""

    # --- copying to another store ----------------------------------------------------------------------------------

    def list_digests(self, scope_folder: str, part: str) -> Iterator[tuple[str, str]]:
        """Yield the name and SHA-256 of every document of a part; the digest is empty if it cannot be read."""

    def read_document(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        """Return one document of a part."""

    def add_documents(self, scope_folder: str, part: str, documents: list[Document]) -> None:
        """Create documents durably with their times of modification; raise `Conflict` if one exists."""

    def list_empty_folders(self, scope_folder: str) -> list[str]:
        """Return the empty folders of the tree of files."""

    def list_unknown_files(self, scope_folder: str) -> list[tuple[str, str]]:
        """Return the paths in a scope that a copy leaves behind, each with the reason."""

    def finish_copy(self) -> None:
        """Prepare the store for queries after many documents were added."""
