"""An agent's own files in PostgreSQL: documents named by their path, and a row for each folder."""

from __future__ import annotations

import time
from typing import NamedTuple

from holdfast.base.ids import FileId
from holdfast.errors import Conflict, Damaged, InvalidPath
from holdfast.postgres.store import SQL, combine, fingerprint_document, make_content, make_pending, queue_writes
from holdfast.store.interface import Changed, no_check
from holdfast.store.layout import make_file_in_path_error, make_missing_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.postgres import Session
    from holdfast.postgres.store import PostgresStore
    from holdfast.store.interface import Check, Entry, FileContent

_PARTS = ("files", "folders")


class TreeRow(NamedTuple):
    """A file or folder of the tree."""

    part: str  # files or folders
    name: str  # its path
    file_id: FileId
    fingerprint: int


class PostgresTree:
    """The files of one scope; see `holdfast.store.interface.Tree` for its methods."""

    def __init__(self, store: PostgresStore, scope_folder: str) -> None:
        self._store, self._scope = store, scope_folder
        self._database = store.database

    def read(self, parts: tuple[str, ...]) -> FileContent | None:
        return self.read_part("files", parts) if parts else None

    def read_part(self, part: str, parts: tuple[str, ...]) -> FileContent | None:
        row = self._database.row("read_in_tree", scope=self._scope, part=part, name="/".join(parts))
        if row is None:
            return None
        found_part, *content = row
        if found_part == "folders":
            raise Damaged(f"{self._scope}/files/{'/'.join(parts)} is not a regular file", "Name a file in it")
        return make_content(*content)

    def file_id(self, parts: tuple[str, ...]) -> FileId | None:
        found = self._list_below(parts) if parts else []
        return found[0].file_id if found else None

    def list_names(self, parts: tuple[str, ...]) -> list[str] | None:
        prefix = "".join([f"{part}/" for part in parts])
        rows = self._database.rows("list_folder", scope=self._scope, prefix=prefix, skip=len(prefix) + 1)
        return sorted([name for (name,) in rows]) if rows or (parts and self.is_folder(parts)) else None

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        rows = self._database.rows("find_paths", scope=self._scope, names=["/".join(parts)]) if parts else []
        return not parts or any(part == "folders" for part, _ in rows)

    def write(self, parts: tuple[str, ...], data: bytes, expected: FileId | None, *, check: Check = no_check) -> FileContent:
        document = make_pending("files", "/".join(parts), data, expected)
        try:
            self._store.write_documents(
                self._scope, "files", [document], check=check, prepare=lambda db: self.create_parents(db, parts)
            )
        except Changed:
            raise Conflict(f"{document.name} was changed by another process", "Read it again and retry") from None
        inode, changed, _ = document.file_id
        return make_content(data, inode, changed, document.modified)

    def append(
        self, parts: tuple[str, ...], compose: Callable[[bytes], bytes]
    ) -> tuple[FileContent | None, FileContent | None]:
        deadline = time.monotonic() + self._store.lock_seconds
        while True:
            before = self.read(parts)
            old = before.data if before else b""
            added = compose(old)
            if not added:
                return before, before
            try:
                return before, self.write(parts, old + added, before.file_id if before else None)
            except Conflict:
                if time.monotonic() > deadline:
                    raise

    def create_file(self, parts: tuple[str, ...], data: bytes) -> bool:
        document = make_pending("files", "/".join(parts), data, None)
        try:
            self._store.write_documents(self._scope, "files", [document], prepare=lambda db: self.create_parents(db, parts))
        except Changed:
            return False
        return True

    def create_folder(self, parts: tuple[str, ...]) -> bool:
        if self.is_folder(parts):
            return False

        def insert_rows(db: Session) -> None:
            self._lock(db)
            self.create_parents(db, (*parts, ""))

        self._store.run_durably(insert_rows, lock=self._lock, is_done=lambda: self.is_folder(parts))
        return True

    def delete(self, parts: tuple[str, ...]) -> None:
        def delete_rows(db: Session) -> None:
            self._lock(db)
            found = self._list_below(parts, db)
            if not found:
                raise make_missing_error(parts)
            for row in found:
                db.execute(SQL["delete_document"], {"scope": self._scope, "part": row.part, "name": row.name})
            change = combine([row.fingerprint for row in found])
            self._store.change_folder(db, self._scope, "files", change, names=[row.name for row in found])

        self._store.run_durably(delete_rows, lock=self._lock, is_done=lambda: not self._list_below(parts))

    def rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        if new[: len(old)] == old:
            raise InvalidPath("a folder cannot move into itself", "Choose a destination outside the folder")

        def move_rows(db: Session) -> None:
            self._lock(db)
            found = self._list_below(old, db)
            if not found:
                raise make_missing_error(old)
            if self._list_below(new, db):
                raise Conflict(f"{'/'.join(new)} already exists", "Choose another name or delete it first")
            self.create_parents(db, new)
            self._move_rows(db, found, len("/".join(old)), "/".join(new))

        self._store.run_durably(
            move_rows, lock=self._lock, is_done=lambda: not self._list_below(old) and bool(self._list_below(new))
        )

    def entries(self) -> Iterator[Entry]:
        yield from self._store.entries(self._scope, "files")

    def list_folders(self) -> list[str]:
        return []  # none is on disk

    # --- within a transaction ----------------------------------------------------------------------------------------

    def _lock(self, db: Session) -> None:
        self._store.lock_folders(db, self._scope, _PARTS)

    def create_parents(self, db: Session, parts: tuple[str, ...]) -> None:
        """Create the folders above a path; raise `Conflict` if one of them is a file, `Changed` if the path is a folder."""
        parents = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        path = "/".join(parts)
        rows = db.execute(SQL["find_paths"], {"scope": self._scope, "names": [*parents, path]}).fetchall()
        found = {(part, name) for part, name in rows}
        for parent in parents:
            if ("files", parent) in found:
                raise make_file_in_path_error(parent)
        if ("folders", path) in found:
            raise Changed
        missing = [parent for parent in parents if ("folders", parent) not in found]
        documents = [make_pending("folders", parent, b"", None)._replace(fingerprint=0) for parent in missing]
        queue_writes(db, self._scope, "folders", documents)

    def _list_below(self, parts: tuple[str, ...], db: Session | None = None) -> list[TreeRow]:
        """Return a file, or a folder followed by everything in it; an empty list if there is none."""
        path = "/".join(parts)
        values = {"scope": self._scope, "name": path, "prefix": f"{path}/"}
        rows = self._database.rows("list_below", **values) if db is None else db.execute(SQL["list_below"], values).fetchall()
        found = [TreeRow(part, name, FileId(inode, changed, size), mix) for part, name, inode, changed, size, mix in rows]
        return sorted(found, key=lambda row: row.name) if any(row.name == path for row in found) else []

    def _move_rows(self, db: Session, found: list[TreeRow], prefix_length: int, new_path: str) -> None:
        """Give rows a new path in place of the first `prefix_length` characters of their names."""
        now, added = time.time_ns(), []
        for part in _PARTS:
            rows = [row for row in found if row.part == part]
            new_names = [new_path + row.name[prefix_length:] for row in rows]
            fingerprints = [0] * len(rows)
            if part == "files":
                moved = [FileId(row.file_id.inode, now, row.file_id.size) for row in rows]
                fingerprints = [fingerprint_document(part, *pair) for pair in zip(new_names, moved, strict=True)]
            added += fingerprints
            values = {"scope": self._scope, "part": part, "to_part": part, "changed": now, "mixes": fingerprints}
            db.execute(SQL["move_documents"], {**values, "names": [row.name for row in rows], "to_names": new_names})
        names = [name for row in found for name in (row.name, new_path + row.name[prefix_length:])]
        change = combine([*[row.fingerprint for row in found], *added])
        self._store.change_folder(db, self._scope, "files", change, names=names)
