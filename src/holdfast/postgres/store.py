"""The PostgreSQL backend of the store: the same documents, byte for byte, that a home has as files.

A write first changes the fingerprint of its folder, and so waits for other writers of that folder; then it replaces the
document, and both are committed or neither. If the answer to COMMIT is lost, the store looks whether it took effect.
"""

from __future__ import annotations

import os
import time
from functools import reduce
from operator import xor
from typing import NamedTuple

from holdfast.base import dates
from holdfast.base.ids import FileId, file_fingerprint
from holdfast.config import hide_password
from holdfast.errors import Busy, Conflict, Unsure
from holdfast.models import Scope
from holdfast.postgres import Database, Lock, statements
from holdfast.store import layout
from holdfast.store.interface import Changed, Entry, FileContent, NoteWrite, no_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from holdfast.models import TrashedNote
    from holdfast.postgres import PostgresSettings, Session
    from holdfast.postgres.connection import Result
    from holdfast.postgres.transcripts import PostgresTranscripts
    from holdfast.postgres.tree import PostgresTree
    from holdfast.store.interface import Check, Document, FileRef, NoteKey

SQL = statements(__file__)
_BATCH = 500  # documents that one statement writes
_DIGESTS = 2000  # that one query computes
_ATTEMPTS = 5  # at a COMMIT whose answer is lost
_RECENT_NAMES, _NAME_CHARACTERS = 24, 200  # of the last changes of a folder, and of one name; longer names are left out
_NOTE_PARTS = ("archive", "history", "notes", "trash")  # between which notes move, and where their older versions are
_DOCUMENT_TABLES = ("document", "line")


class PendingDocument(NamedTuple):
    """A document that is about to be written."""

    name: str
    data: bytes
    file_id: FileId
    modified: int  # seconds since 1970
    fingerprint: int
    expected: FileId | None  # of the document it replaces


class StoredDocument(NamedTuple):
    """The id and fingerprint of a document in the database."""

    file_id: FileId
    fingerprint: int


class Move(NamedTuple):
    """The old and the new name of a document that goes to another part."""

    name: str
    new_name: str


class PostgresStore:
    """The store of one tenant, as one caller may see it; see `holdfast.store.interface.Store` for its methods."""

    def __init__(self, settings: PostgresSettings, home: str, lock_seconds: float) -> None:
        self.home = home
        self.settings = settings
        self.database = Database(settings, SQL, lock_seconds)
        self.lock_seconds = lock_seconds

    def exists(self) -> bool:
        return True

    def check_owner(self) -> None:
        """Return at once: row-level security shows no other tenant's rows."""

    def named_lock(self, name: str, seconds: float | None = None) -> Lock:
        return Lock(self.settings, name, self.lock_seconds if seconds is None else seconds)

    def lock_scope(self, scope: Scope) -> ScopeLock:
        return ScopeLock(self, scope.folder)

    def open_watch(self) -> None:
        """Return None: changes are found by comparing fingerprints."""

    def display_path(self, path: str) -> str:
        return f"{hide_password(self.settings.url)} ({path})"

    # --- scopes and parts ------------------------------------------------------------------------------------------

    def list_scopes(self) -> list[str]:
        return [scope for (scope,) in self.database.rows("scopes")]

    def list_strays(self) -> list[str]:
        return []

    def list_misnamed(self, scope_folder: str) -> list[str]:
        return []

    def has_folder(self, scope_folder: str, part: str = "") -> bool:
        return self.database.row("has_folder", scope=scope_folder, part=part) is not None

    def entries(self, scope_folder: str, part: str) -> Iterator[Entry]:
        for name, inode, changed, size in self.database.rows("entries", scope=scope_folder, part=part):
            yield Entry(name, FileId(inode, changed, size), regular=True)

    def fingerprint(self, scope_folder: str, part: str) -> int:
        row = self.database.row("fingerprint", scope=scope_folder, part=part)
        return int(row[0]) if row else 0

    def tree(self, scope_folder: str, lock_seconds: float | None = None) -> PostgresTree:
        from holdfast.postgres.tree import PostgresTree

        return PostgresTree(self, scope_folder)

    def transcripts(self, scope_folder: str, lock_seconds: float | None = None) -> PostgresTranscripts:
        from holdfast.postgres.transcripts import PostgresTranscripts

        return PostgresTranscripts(self, scope_folder)

    # --- notes -----------------------------------------------------------------------------------------------------

    def read_note(self, scope: Scope, key: str) -> FileContent | None:
        return self.read_file(scope.folder, "notes", f"{key}.md")

    def read_notes(self, wanted: list[NoteKey]) -> list[FileContent | None]:
        refs = [(scope.folder, "notes", f"{key}.md") for scope, key in wanted]
        found = self.read_batch(refs)
        return [found.get(ref) for ref in refs]

    def find_notes(self, scopes: list[Scope], key: str) -> Iterator[tuple[Scope, FileContent]]:
        found = self.read_batch([(scope.folder, "notes", f"{key}.md") for scope in scopes])
        for scope in scopes:
            if content := found.get((scope.folder, "notes", f"{key}.md")):
                yield scope, content

    def read_file(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        row = self.database.row("read", scope=scope_folder, part=part, name=name)
        return make_content(*row) if row else None

    def read_batch(self, wanted: list[FileRef]) -> dict[FileRef, FileContent]:
        """Read documents with one query and lines of transcripts, named `client/session.jsonl:offset`, with another."""
        rows: list[Any] = []
        documents = [ref for ref in wanted if ref[1] != layout.TRANSCRIPTS]
        if documents:
            scopes, parts, names = (list(column) for column in zip(*documents, strict=True))
            rows += self.database.rows("read_batch", scopes=scopes, parts=parts, names=names)
        lines = [(scope, *name.rpartition(":")[::2]) for scope, part, name in wanted if part == layout.TRANSCRIPTS]
        if lines:
            scopes, names, offsets = (list(column) for column in zip(*lines, strict=True))
            rows += self.database.rows("read_line_batch", scopes=scopes, names=names, starts=offsets)
        return {(scope, part, name): make_content(*content) for scope, part, name, *content in rows}

    def file_id(self, scope_folder: str, part: str, name: str) -> FileId | None:
        return self.file_ids(scope_folder, part, [name])[name]

    def file_ids(self, scope_folder: str, part: str, names: list[str]) -> dict[str, FileId | None]:
        rows = self.database.rows("file_ids", scope=scope_folder, part=part, names=names)
        found = {name: FileId(inode, changed, size) for name, inode, changed, size, _ in rows}
        return {name: found.get(name) for name in names}

    def write_note(self, scope: Scope, key: str, data: bytes, expected: FileId | None, *, check: Check = no_check) -> FileId:
        return self.write_notes([NoteWrite(scope, f"{key}.md", data, expected)], check=check)[0]

    def write_notes(self, notes: list[NoteWrite], *, check: Check = no_check) -> list[FileId]:
        folders: dict[str, list[PendingDocument]] = {}
        file_ids = []
        for note in notes:
            layout.check_note_size(note.data, note.name)
            pending = make_pending("notes", note.name, note.data, note.replaced)
            folders.setdefault(note.scope.folder, []).append(pending)
            file_ids.append(pending.file_id)
        self._write_folders("notes", dict(sorted(folders.items())), check=check)
        return file_ids

    def write_history(
        self, scope: Scope, name: str, data: bytes, expected: FileId | None, *, note: tuple[str, FileId | None]
    ) -> None:
        note_name, note_id = note

        def lock_note(db: Session) -> None:
            self.lock_folders(db, scope.folder, ("notes",))  # after "history", in the order of `_NOTE_PARTS`
            found = self._find_documents(db, scope.folder, "notes", [note_name]).get(note_name)
            if (found.file_id if found else None) != note_id:
                raise Changed

        self.write_documents(scope.folder, "history", [make_pending("history", name, data, expected)], prepare=lock_note)

    def replace_file(self, scope: Scope, part: str, name: str, data: bytes, expected: FileId) -> None:
        self.write_documents(scope.folder, part, [make_pending(part, name, data, expected)])

    def erase_file(self, scope: Scope, part: str, name: str, expected: FileId | None = None) -> bool:
        erased = ErasedInode()

        def delete_row(db: Session) -> None:
            self.lock_folders(db, scope.folder, _NOTE_PARTS)
            found = self._find_documents(db, scope.folder, part, [name]).get(name)
            if found and expected is not None and found.file_id != expected:
                raise Changed
            erased.record(found.file_id.inode if found else 0)
            if found:
                db.execute(SQL["delete_document"], {"scope": scope.folder, "part": part, "name": name})
                self.change_folder(db, scope.folder, part, found.fingerprint)
                self.forget_recent_name(db, scope.folder, _NOTE_PARTS, name)

        self.run_durably(
            delete_row,
            lock=lambda db: self.lock_folders(db, scope.folder, _NOTE_PARTS),
            is_done=lambda: self.file_id(scope.folder, part, name) is None,
        )
        return bool(erased.inode)

    # --- trash and archive -----------------------------------------------------------------------------------------

    def move_notes(
        self, scope: Scope, keys: list[str], part: str, seconds: float, expected: dict[str, FileId] | None = None
    ) -> list[str]:
        moves: list[Move] = []

        def move_rows(db: Session) -> None:
            last = self.lock_folders(db, scope.folder, ("notes", part))[part]
            found = self._find_documents(db, scope.folder, "notes", [f"{key}.md" for key in keys])
            moving = [
                key
                for key in dict.fromkeys(keys)
                if (note := found.get(f"{key}.md")) and (expected is None or note.file_id == expected.get(key))
            ]
            moves[:] = [
                Move(f"{key}.md", layout.format_trash_name(key, seconds, number)) for number, key in enumerate(moving, last + 1)
            ]
            self._move_documents(db, scope.folder, ("notes", part), moves, found=found, last=last + len(moves))

        self._run_move(scope, part, move_rows, moves)
        return [move.name.removesuffix(".md") for move in moves]

    def list_trash(self, scope: Scope, key: str | None = None) -> list[TrashedNote]:
        files = [(part, entry.name) for part in ("trash", "archive") for entry in self.entries(scope.folder, part)]
        return layout.select_trashed(scope, key, files)

    def find_archived(self, wanted: list[NoteKey]) -> dict[NoteKey, TrashedNote]:
        if not wanted:
            return {}
        folders, keys = [scope.folder for scope, _ in wanted], [key for _, key in wanted]
        names: dict[Scope, list[str]] = {}
        for folder, name in self.database.rows("archived_names", scopes=folders, keys=keys):
            names.setdefault(Scope.of_folder(folder), []).append(name)
        return layout.select_last_archived(wanted, names)

    def trash_archived(self, scope: Scope, note: TrashedNote, seconds: float) -> bool:
        moves: list[Move] = []

        def move_row(db: Session) -> None:
            last = self.lock_folders(db, scope.folder, ("archive", "trash"))["trash"]
            found = self._find_documents(db, scope.folder, "archive", [note.name])
            moves[:] = [Move(name, layout.format_trash_name(note.key, seconds, last + 1)) for name in found]
            self._move_documents(db, scope.folder, ("archive", "trash"), moves, found=found, last=last + len(moves))

        self._run_move(scope, "trash", move_row, moves)
        return bool(moves)

    def restore_note(self, scope: Scope, note: TrashedNote, key: str) -> None:
        moves = [Move(note.name, f"{key}.md")]

        def move_row(db: Session) -> None:
            self.lock_folders(db, scope.folder, (note.part, "notes"))
            found = self._find_documents(db, scope.folder, note.part, [note.name])
            if not found or self._find_documents(db, scope.folder, "notes", [f"{key}.md"]):
                raise Changed
            self._move_documents(db, scope.folder, (note.part, "notes"), moves, found=found)

        self._run_move(scope, "notes", move_row, moves)

    def _move_documents(
        self, db: Session, scope_folder: str, parts: tuple[str, str], moves: list[Move], *,
        found: dict[str, StoredDocument], last: int = 0,
    ) -> None:  # fmt: skip
        """Move documents from one part to another within a transaction."""
        source, target = parts
        now, names, new_names = time.time_ns(), [move.name for move in moves], [move.new_name for move in moves]
        fingerprints = []
        for move in moves:
            file_id = found[move.name].file_id
            fingerprints.append(fingerprint_document(target, move.new_name, FileId(file_id.inode, now, file_id.size)))
        row = {"scope": scope_folder, "part": source, "to_part": target, "changed": now}
        db.execute(SQL["move_documents"], {**row, "names": names, "to_names": new_names, "mixes": fingerprints})
        self.change_folder(db, scope_folder, source, combine([found[name].fingerprint for name in names]), names=names)
        self.change_folder(db, scope_folder, target, combine(fingerprints), last=last, names=new_names)

    def _run_move(self, scope: Scope, part: str, work: Callable[[Session], None], moves: list[Move]) -> None:
        def is_done() -> bool:
            found = self.file_ids(scope.folder, part, [move.new_name for move in moves])
            return all(found[move.new_name] is not None for move in moves)

        self.run_durably(work, lock=lambda db: self.lock_folders(db, scope.folder, _NOTE_PARTS), is_done=is_done)

    # --- index.md: a database has no such file -------------------------------------------------------------------------

    def has_current_listing(self, scope: Scope) -> bool:
        return True

    def has_listing(self, scope: Scope) -> bool:
        return False

    def write_listing(self, scope: Scope, data: bytes) -> None:
        pass

    # --- copying to another store ----------------------------------------------------------------------------------

    def list_digests(self, scope_folder: str, part: str) -> Iterator[tuple[str, str]]:
        after = ""
        while rows := self.database.rows("digests", scope=scope_folder, part=part, after=after, most=_DIGESTS):
            yield from rows
            after, _ = rows[-1]

    def read_document(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        if part == "files":
            return self.tree(scope_folder).read(tuple(name.split("/")))
        return self.read_file(scope_folder, part, name)

    def add_documents(self, scope_folder: str, part: str, documents: list[Document]) -> None:
        names = [document.name for document in documents]

        def prepare(db: Session) -> None:
            if part == "files":
                for path in sorted({name.rpartition("/")[0] for name in names} - {""}):
                    self.tree(scope_folder).create_parents(db, (*path.split("/"), ""))
            elif part in ("trash", "archive"):  # later names in this folder are numbered after these
                self.change_folder(db, scope_folder, part, 0, last=layout.find_last_number(names))

        pending = [make_pending(part, document.name, document.data, None, modified=document.modified) for document in documents]
        try:
            self.write_documents(scope_folder, part, pending, prepare=prepare)
        except Changed:
            raise Conflict(
                f"another process writes to {scope_folder}/{part}", "Stop the other writers and copy again"
            ) from None

    def list_empty_folders(self, scope_folder: str) -> list[str]:
        folders = [entry.name for entry in self.entries(scope_folder, "folders")]
        files = [entry.name for entry in self.entries(scope_folder, "files")]
        parents = {name.rpartition("/")[0] for name in [*folders, *files]}
        return [name for name in folders if name not in parents]

    def list_unknown_files(self, scope_folder: str) -> list[tuple[str, str]]:
        return []

    def finish_copy(self) -> None:
        """Update the statistics of the query planner; if the role may not, the server does so later."""
        self.database.analyze([*_DOCUMENT_TABLES, *self.list_tables()])

    # --- reading everything back, after a purge ------------------------------------------------------------------------

    def list_paths(self) -> list[str]:
        """Return the path that every document and transcript would have in a home."""
        found = []
        for scope in self.list_scopes():
            for part in layout.DOCUMENT_PARTS:
                found += [f"shelf/{scope}/{part}/{entry.name}" for entry in self.entries(scope, part)]
            transcripts = self.transcripts(scope)
            found += [f"shelf/{scope}/{layout.TRANSCRIPTS}/{entry.name}" for entry in transcripts.entries()]
            found += [f"shelf/{transcript.path}" for transcript in transcripts.list_trashed()]
        return found

    def read_everything(self) -> Iterator[tuple[str, bytes]]:
        """Yield the path and bytes of every document, and of every line of every transcript."""
        for statement in ("open_documents", "open_lines"):
            for scope, part, name, data in self._fetch_rows(statement):
                yield f"shelf/{scope}/{part}/{name}", bytes(data)

    def list_tables(self) -> list[str]:
        """Return the tables that hold neither documents nor transcripts."""
        return [name for (name,) in self.database.rows("tables") if name not in _DOCUMENT_TABLES]

    def read_table(self, table: str) -> Iterator[bytes]:
        """Yield every row of a table as JSON."""
        for (data,) in self._fetch_rows("open_table", name=table):
            yield bytes(data)

    def vacuum(self) -> str:
        """Remove deleted rows from the files of all tables; return why that was not possible, or an empty string."""
        return self.database.vacuum([*_DOCUMENT_TABLES, *self.list_tables()])

    def _fetch_rows(self, statement: str, **values: str) -> Iterator[Any]:
        """Yield the rows of a cursor in batches."""
        with self.database.read_transaction():
            self.database.rows(statement, **values)
            while rows := self.database.rows("fetch_rows"):
                yield from rows
            self.database.rows("close_cursor")

    # --- transactions ------------------------------------------------------------------------------------------------

    def write_documents(
        self, scope_folder: str, part: str, documents: list[PendingDocument], *,
        check: Check = no_check, prepare: Callable[[Session], None] = lambda _: None,
    ) -> list[FileId]:  # fmt: skip
        """Write documents, all or none, and return their ids; raise `Changed` if one is not as expected.

        `prepare` runs first in the transaction, when other writers of the folder wait.
        """
        if documents:
            self._write_folders(part, {scope_folder: documents}, check=check, prepare=prepare)
        return [document.file_id for document in documents]

    def _write_folders(
        self, part: str, folders: dict[str, list[PendingDocument]], *,
        check: Check, prepare: Callable[[Session], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """Write documents of several scopes in one transaction; the order of the scopes is that of the locks."""

        def replace_documents(db: Session) -> None:
            results = []
            for scope_folder, documents in folders.items():
                replaced = [
                    fingerprint_document(part, document.name, document.expected) for document in documents if document.expected
                ]
                change = combine([*replaced, *[document.fingerprint for document in documents]])
                self.change_folder(db, scope_folder, part, change, names=[document.name for document in documents])
            prepare(db)
            for scope_folder, documents in folders.items():
                results += queue_writes(db, scope_folder, part, documents)
            check()  # its queries go to the server together with the writes
            if sum([len(result.fetchall()) for result in results]) < sum(map(len, folders.values())):
                raise Changed

        def lock(db: Session) -> None:
            for scope_folder in folders:
                self.lock_folders(db, scope_folder, (part,))

        def is_done() -> bool:
            for scope_folder, documents in folders.items():
                found = self.file_ids(scope_folder, part, [document.name for document in documents])
                if any(found[document.name] != document.file_id for document in documents):
                    return False
            return True

        self.run_durably(replace_documents, lock=lock, is_done=is_done)

    def lock_folders(self, db: Session, scope_folder: str, parts: tuple[str, ...]) -> dict[str, int]:
        """Make other writers of these parts wait, and return the last number used in the names of each."""
        return dict(db.execute(SQL["lock_folders"], {"scope": scope_folder, "parts": list(parts)}).fetchall())

    def change_folder(
        self, db: Session, scope_folder: str, part: str, change: int, *, last: int = 0, names: list[str] | None = None
    ) -> None:
        """Combine a change with the fingerprint of a folder, and record a few changed names for other readers."""
        recent = [name for name in names or () if len(name) <= _NAME_CHARACTERS][:_RECENT_NAMES]
        row = {"scope": scope_folder, "part": part, "mix": change, "last": last, "names": recent}
        db.execute(SQL["change_folder"], row)

    def forget_recent_name(self, db: Session, scope_folder: str, parts: tuple[str, ...], name: str) -> None:
        """Remove an erased name, and those it has in the trash, from the changed names: it may contain words of the text."""
        stem, dot, suffix = name.rpartition(".")
        plain = stem.rpartition("--")[0] or stem  # the name without what the trash added
        row = {"scope": scope_folder, "parts": list(parts), "name": name}
        db.execute(SQL["forget_recent_name"], {**row, "plain": plain + dot + suffix, "trashed": f"{plain}--"})

    def run_durably(
        self, work: Callable[[Session], None], *, lock: Callable[[Session], object], is_done: Callable[[], bool]
    ) -> None:
        """Run `work` in a durable transaction, again if the answer to COMMIT was lost and it did not take effect.

        A lost COMMIT may still be running: `lock` waits for it, then `is_done` looks. Raise `Unsure` if that is not possible.
        """
        lost: Unsure | None = None
        for _ in range(_ATTEMPTS):
            try:
                # looking is durable too, so that what it finds is on the standbys
                if lost and self.database.write(lambda db: (lock(db), is_done())[1], durable=True):
                    return None
                lost = None
                return self.database.write(work, durable=True)
            except Unsure as error:
                lost = error
            except Busy:
                if lost:
                    break
                raise
        raise Unsure(
            "the connection to the database was lost during the commit", "Check whether it was stored before you try again"
        ) from lost

    def _find_documents(self, db: Session, scope_folder: str, part: str, names: list[str]) -> dict[str, StoredDocument]:
        """Return the documents that exist, by name."""
        rows = db.execute(SQL["file_ids"], {"scope": scope_folder, "part": part, "names": names})
        return {name: StoredDocument(FileId(inode, changed, size), mix) for name, inode, changed, size, mix in rows}


class ErasedInode:
    """The inode that the attempts of an erasure found; 0 for none.

    An attempt whose answer was lost may have taken effect: a document that exists since then was written by another caller.
    """

    def __init__(self) -> None:
        self.inode = 0

    def record(self, inode: int) -> None:
        """Record the inode that an attempt found; raise `Busy` if an earlier attempt found another."""
        if self.inode and inode not in (0, self.inode):
            raise Busy("another process wrote here while the database was unavailable", "Try again")
        self.inode = inode


class ScopeLock:
    """The lock on a scope's documents: a transaction that locks the rows of its folders."""

    def __init__(self, store: PostgresStore, scope_folder: str) -> None:
        self._store, self._scope_folder = store, scope_folder
        self._session: Any = None

    def __enter__(self) -> object:
        self._session = self._store.database.transaction()
        try:
            self._store.lock_folders(self._session.__enter__(), self._scope_folder, _NOTE_PARTS)
        except BaseException as error:
            self._session.__exit__(type(error), error, None)
            raise
        return self

    def acquire(self, seconds: float) -> bool:
        try:
            self.__enter__()
        except Busy:
            return False
        return True

    def release(self) -> None:
        self._session.__exit__(None, None, None)

    def __exit__(self, *_: object) -> None:
        self.release()


def make_inode() -> int:
    """Return a random number that identifies a document, as an inode does a file."""
    return int.from_bytes(os.urandom(8), "big") >> 2


def fingerprint_document(part: str, name: str, file_id: FileId) -> int:
    """Return what a document adds to the fingerprint of its folder, as the index computes it."""
    return file_fingerprint(file_id, "" if part == "notes" else name)


def combine(fingerprints: list[int]) -> int:
    """Return the fingerprint of several documents, or of a change that adds and removes them."""
    return reduce(xor, fingerprints, 0)


def make_pending(part: str, name: str, data: bytes, expected: FileId | None, *, modified: int | None = None) -> PendingDocument:
    """Return a document to write, with a new id."""
    file_id = FileId(make_inode(), time.time_ns(), len(data))
    return PendingDocument(
        name=name,
        data=data,
        file_id=file_id,
        modified=int(dates.clock()) if modified is None else modified,
        fingerprint=fingerprint_document(part, name, file_id),
        expected=expected,
    )


def queue_writes(db: Session, scope_folder: str, part: str, documents: list[PendingDocument]) -> list[Result]:
    """Queue the statements that write documents; each returns a row for every document that was written."""
    results = []
    for start in range(0, len(documents), _BATCH):
        batch = documents[start : start + _BATCH]
        new = [document for document in batch if document.expected is None]
        changed = [document for document in batch if document.expected is not None]
        if new:
            results.append(db.execute(SQL["insert_documents"], _make_columns(scope_folder, part, new)))
        if changed:
            results.append(db.execute(SQL["update_documents"], _make_columns(scope_folder, part, changed)))
    return results


def _make_columns(scope_folder: str, part: str, documents: list[PendingDocument]) -> dict[str, Any]:
    ids = [document.file_id for document in documents]
    expected = [document.expected or (0, 0, 0) for document in documents]
    return {
        "scope": scope_folder,
        "part": part,
        "names": [document.name for document in documents],
        "data": [document.data for document in documents],
        "stamps": [inode for inode, _, _ in ids],
        "changed": [changed for _, changed, _ in ids],
        "modified": [document.modified for document in documents],
        "mixes": [document.fingerprint for document in documents],
        "seen": [inode for inode, _, _ in expected],
        "seen_changed": [changed for _, changed, _ in expected],
    }


def make_content(data: bytes, inode: int, changed: int, modified: int) -> FileContent:
    """Return a document from the columns of its row."""
    return FileContent(bytes(data), FileId(inode, changed, len(data)), modified)
