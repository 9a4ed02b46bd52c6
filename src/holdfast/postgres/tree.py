"""The agent's own files in PostgreSQL: documents named by their path, and beside them the folders that were made."""

from __future__ import annotations

import time

from holdfast.errors import Conflict, Damaged, InvalidPath
from holdfast.postgres.store import SQL, _sheet, mixed, put, put_all, share
from holdfast.store import tree
from holdfast.store.files import Changed, nothing_against

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.postgres import Session
    from holdfast.postgres.store import PostgresStore
    from holdfast.store.atomic import FileContent, Stamp
    from holdfast.store.files import Entry, May

    Below = list[tuple[str, str, Stamp, int]]  # part, name, stamp, share

_PARTS = ("files", "folders")
_FIX = "A file stands where a folder should be, or the other way round"


class Tree(tree.Tree):
    """One scope's files."""

    def __init__(self, store: PostgresStore, scope_folder: str) -> None:
        self._store, self._scope = store, scope_folder
        self._database = store.database

    def read(self, parts: tuple[str, ...]) -> FileContent | None:
        return self.beside("files", parts) if parts else None

    def beside(self, part: str, parts: tuple[str, ...]) -> FileContent | None:
        rows = self._database.rows("read_in_tree", scope=self._scope, part=part, name="/".join(parts))
        if rows and rows[0][0] == "folders":
            raise Damaged(f"{self._scope}/files/{'/'.join(parts)} is not a regular file", "Name a file in it")
        return _sheet(*rows[0][1:]) if rows else None

    def stamp(self, parts: tuple[str, ...]) -> Stamp | None:
        here = self._below(parts) if parts else []
        return here[0][2] if here else None

    def names(self, parts: tuple[str, ...]) -> list[str] | None:
        prefix = "".join([f"{part}/" for part in parts])
        rows = self._database.rows("inside", scope=self._scope, prefix=prefix, skip=len(prefix) + 1)
        return sorted([row[0] for row in rows]) if rows or (parts and self.is_folder(parts)) else None

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        rows = self._database.rows("standing", scope=self._scope, names=["/".join(parts)]) if parts else []
        return not parts or any(part == "folders" for part, _ in rows)

    def write(self, parts: tuple[str, ...], data: bytes, seen: Stamp | None, may: May = nothing_against) -> FileContent:
        one = put("files", "/".join(parts), data, seen)
        try:
            self._store.put(self._scope, "files", [one], may, lambda db: self.make_room(db, parts))
        except Changed:
            raise Conflict(f"{one.name} was changed by somebody else", "Read it again and retry") from None
        return _sheet(data, one.stamp[0], one.stamp[1], one.modified)

    def plant(self, parts: tuple[str, ...], data: bytes) -> bool:
        one = put("files", "/".join(parts), data, None)
        try:
            self._store.put(self._scope, "files", [one], before=lambda db: self.make_room(db, parts))
        except Changed:
            return False
        return True

    def plant_folder(self, parts: tuple[str, ...]) -> bool:
        if self.is_folder(parts):
            return False
        made: list[str] = []

        def work(db: Session) -> None:
            self._hold(db)
            self.make_room(db, (*parts, ""))
            made.append("/".join(parts))

        self._store.surely(work, self._hold, lambda: self.is_folder(parts))
        return True

    def delete(self, parts: tuple[str, ...]) -> None:
        def work(db: Session) -> None:
            self._hold(db)
            here = self._below(parts, db)
            if not here:
                raise tree.missing(parts)
            for part, name, _, _ in here:
                db.execute(SQL["erase"], {"scope": self._scope, "part": part, "name": name})
            gone = mixed([mix for _, _, _, mix in here])
            self._store.mix(db, self._scope, "files", gone, names=[name for _, name, _, _ in here])

        self._store.surely(work, self._hold, lambda: not self._below(parts))

    def rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        if new[: len(old)] == old:
            raise InvalidPath("a folder cannot move into itself", "Choose a name outside of it")

        def work(db: Session) -> None:
            self._hold(db)
            here = self._below(old, db)
            if not here:
                raise tree.missing(old)
            if self._below(new, db):
                raise Conflict(f"{'/'.join(new)} is there already", "Choose another name or delete it first")
            self.make_room(db, new)
            self._move(db, here, len("/".join(old)), "/".join(new))

        self._store.surely(work, self._hold, lambda: not self._below(old) and bool(self._below(new)))

    def census(self) -> Iterator[Entry]:
        yield from self._store.entries(self._scope, "files")

    def folders(self) -> list[str]:
        return []

    def made(self) -> list[str]:
        """Every folder of the tree, by its path in it."""
        return [entry.name for entry in self._store.entries(self._scope, "folders")]

    # --- within a transaction ----------------------------------------------------------------------------------------

    def _hold(self, db: Session) -> None:
        self._store.hold(db, self._scope, _PARTS)

    def make_room(self, db: Session, parts: tuple[str, ...]) -> None:
        """Make the folders on the way to a file; nothing else may stand there, and no folder where the file goes."""
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        path = "/".join(parts)
        standing = db.execute(SQL["standing"], {"scope": self._scope, "names": [*above, path]}).fetchall()
        if any(part == "files" and name in above for part, name in standing):
            raise Damaged(f"cannot open {self._scope}/files/{path}: not a directory", _FIX)
        if ("folders", path) in standing:
            raise Changed
        missing = [put("folders", name, b"", None) for name in above if ("folders", name) not in standing]
        put_all(db, self._scope, "folders", [one.replace(mix=0) for one in missing])

    def _below(self, parts: tuple[str, ...], db: Session | None = None) -> Below:
        """What stands there: a file, or a folder and all in it, itself first."""
        path = "/".join(parts)
        asked = {"scope": self._scope, "name": path, "prefix": f"{path}/"}
        rows = self._database.rows("below", **asked) if db is None else db.execute(SQL["below"], asked).fetchall()
        found = [(part, name, (stamp, changed, size), mix) for part, name, stamp, changed, size, mix in rows]
        return sorted(found, key=lambda one: one[1]) if any(name == path for _, name, _, _ in found) else []

    def _move(self, db: Session, here: Below, skip: int, path: str) -> None:
        now, gone, come = time.time_ns(), [mix for _, _, _, mix in here], []
        for kind in _PARTS:
            some = [(name, path + name[skip:], stamp) for part, name, stamp, _ in here if part == kind]
            mixes = [share(kind, to, (drawn, now, size)) if kind == "files" else 0 for _, to, (drawn, _, size) in some]
            come += mixes
            row = {"scope": self._scope, "part": kind, "to_part": kind, "changed": now, "mixes": mixes}
            db.execute(SQL["move"], {**row, "names": [name for name, _, _ in some], "to_names": [to for _, to, _ in some]})
        names = [one for _, name, _, _ in here for one in (name, path + name[skip:])]
        self._store.mix(db, self._scope, "files", mixed(gone + come), names=names)
