"""Transcripts in PostgreSQL: a row for each transcript, and one for each of its lines.

A writer locks the transcript's row. When lines are replaced, the transcript gets another inode, as a file that replaces
another has, so that readers notice.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from holdfast.base.ids import FileId
from holdfast.errors import Busy
from holdfast.postgres.store import SQL, ErasedInode, fingerprint_document, make_inode
from holdfast.store import layout
from holdfast.store.interface import Entry, Line, Position
from holdfast.store.layout import LINE_BYTES, TRANSCRIPT_SUFFIX, TRANSCRIPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.postgres import Session
    from holdfast.postgres.store import PostgresStore
    from holdfast.store.interface import Compose, Transcript

_CHUNK_BYTES = 256 * 1024


class TranscriptRow(NamedTuple):
    """The row of a transcript."""

    inode: int
    changed: int  # ns
    size: int  # bytes
    lines: int
    fingerprint: int

    @property
    def file_id(self) -> FileId:
        return FileId(self.inode, self.changed, self.size)


class PostgresTranscript:
    """One session's transcript; see `holdfast.store.interface.Transcript` for its methods."""

    def __init__(self, store: PostgresStore, scope_folder: str, name: str, part: str = TRANSCRIPTS) -> None:
        self.name, self.part = name, part
        self.path = f"{scope_folder}/{part}/{name}"
        self._client, self._file = layout.split_transcript_name(name)
        self._store, self._scope, self._database = store, scope_folder, store.database
        self._key = {"scope": scope_folder, "part": part, "name": name}

    def file_id(self) -> FileId | None:
        row = self._read_row()
        return row.file_id if row else None

    def read_lines(self, position: Position = Position(), chunk: int = _CHUNK_BYTES) -> Iterator[Line]:
        last = position.offset + max(chunk, 1)
        rows = self._database.rows("first_lines", **self._key, first=position.offset, last=last)
        number, end = position.lines, position.offset
        for _, start, data in rows:
            if data is None:
                continue  # the transcript exists and has no line here
            number, end = number + 1, start + len(data) + 1
            yield _make_line(number, start, data)
        if end > position.offset:
            inode, _, _ = rows[0]
            yield from self._read_lines(inode, Position(end, number), chunk)

    def matches_line_before(self, offset: int, test: Callable[[bytes], bool]) -> bool:
        row = self._read_row()
        found = self._database.row("line_before", ino=row.inode, offset=offset) if row else None
        if found is None:
            return False
        start, data = found
        return start + len(data) + 1 == offset and test(bytes(data))

    def read_unfinished_line(self, offset: int) -> bytes:
        return b""  # every line here is complete

    def append(self, compose: Compose, since: Position = Position()) -> Position:
        addition = _Addition(compose)
        inode = make_inode()

        def insert_lines(db: Session) -> None:
            values = {**self._key, "ino": inode, "changed": time.time_ns()}
            row = TranscriptRow(*db.execute(SQL["begin_transcript"], values).fetchone())
            self._append(db, row, addition, since)

        self._store.run_durably(insert_lines, lock=self._lock, is_done=lambda: self._has_lines(addition))
        return addition.position

    def _append(self, db: Session, row: TranscriptRow, addition: _Addition, since: Position) -> None:
        if row.size < since.offset or since.inode not in (0, row.inode):
            since = Position()
        if not addition.compose(row, self._read_lines(row.inode, since, _CHUNK_BYTES, db)):
            if not row.lines:
                db.execute(SQL["delete_transcript"], self._key)  # it is empty, and stays so
            return
        starts, numbers = [], []
        start = row.size
        for number, data in enumerate(addition.data, row.lines + 1):
            starts.append(start)
            numbers.append(number)
            start += len(data) + 1
        values = {"scope": self._scope, "ino": row.inode, "starts": starts, "numbers": numbers, "data": addition.data}
        db.execute(SQL["add_lines"], values)
        lines = row.lines + len(addition.data)
        self._update(db, row, row._replace(changed=time.time_ns(), size=start, lines=lines))

    def _has_lines(self, addition: _Addition) -> bool:
        """Return whether the lines are where they were added."""
        if not addition.data:
            return True
        rows = self._database.rows("lines", ino=addition.inode, first=addition.start, last=addition.start + 1)
        return any(bytes(data) == addition.data[0] for _, _, data in rows)

    def wait_for_writers(self) -> None:
        self._database.write(self._lock)

    def replace_lines(self, replace: Callable[[Line], bytes | None]) -> int:
        changed: dict[int, bytes] = {}
        new_inode = make_inode()
        written: list[FileId] = []

        def replace_rows(db: Session) -> None:
            row = self._lock(db)
            changed.clear()
            if row is None:
                return
            lines = [(line.number, replace(line)) for line in self._read_lines(row.inode, Position(), _CHUNK_BYTES, db)]
            changed.update({number: data.rstrip(b"\n") for number, data in lines if data is not None})
            for number, data in changed.items():
                db.execute(SQL["change_line"], {"ino": row.inode, "number": number, "data": data})
            if changed:
                db.execute(SQL["renumber_lines"], {"ino": row.inode, "new": new_inode})
                (size,) = db.execute(SQL["transcript_size"], {"ino": new_inode}).fetchone()
                after = row._replace(inode=new_inode, changed=time.time_ns(), size=size)
                written.append(after.file_id)
                self._update(db, row, after)

        self._store.run_durably(replace_rows, lock=self._lock, is_done=lambda: not changed or self.file_id() == written[-1])
        return len(changed)

    def erase(self, expected: FileId | None = None) -> bool:
        erased = ErasedInode()

        def delete_rows(db: Session) -> None:
            row = self._lock(db)
            row = row if row and expected in (None, row.file_id) else None
            erased.record(row.inode if row else 0)
            if row is not None:
                db.execute(SQL["delete_lines"], {"ino": row.inode})
                db.execute(SQL["delete_transcript"], self._key)
                self._change_folder(db, row.fingerprint)
                self._store.forget_recent_name(db, self._scope, (TRANSCRIPTS,), self.name)

        self._store.run_durably(delete_rows, lock=self._lock, is_done=lambda: self._read_row() is None)
        return bool(erased.inode)

    def move_to_trash(self, time: str) -> bool:
        return self._move(self, self._in_trash(layout.format_trashed_transcript(self._file, time)))

    def restore(self, trashed_name: str) -> bool:
        return self._move(self._in_trash(trashed_name), self)

    def _in_trash(self, file: str) -> PostgresTranscript:
        return PostgresTranscript(self._store, self._scope, f"{self._client}/{file}", "trash")

    def _move(self, source: PostgresTranscript, target: PostgresTranscript) -> bool:
        """Move a transcript; return False if there is none or the target exists."""
        moved = 0  # the inode that the last attempt moved

        def move_row(db: Session) -> None:
            nonlocal moved
            row, other = source._lock(db), target._lock(db)
            moved = row.inode if row and not other else 0
            if row is None or other is not None:
                return
            now = time.time_ns()
            fingerprint = target._fingerprint(FileId(row.inode, now, row.size))
            values = {"to_part": target.part, "to_name": target.name, "changed": now, "mix": fingerprint}
            db.execute(SQL["move_transcript"], {**source._key, **values})
            source._change_folder(db, row.fingerprint)
            target._change_folder(db, fingerprint)

        def is_done() -> bool:
            row = target._read_row()
            return row is not None and row.inode == moved

        self._store.run_durably(move_row, lock=source._lock, is_done=is_done)
        return bool(moved)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _read_row(self) -> TranscriptRow | None:
        row = self._database.row("transcript", **self._key)
        return TranscriptRow(*row) if row else None

    def _lock(self, db: Session) -> TranscriptRow | None:
        """Lock the row until the end of the transaction, and return it."""
        row = db.execute(SQL["lock_transcript"], self._key).fetchone()
        return TranscriptRow(*row) if row else None

    def _read_lines(self, inode: int, position: Position, chunk: int, db: Session | None = None) -> Iterator[Line]:
        offset, number = position.offset, position.lines
        while True:
            values = {"ino": inode, "first": offset, "last": offset + max(chunk, 1)}
            rows = self._database.rows("lines", **values) if db is None else db.execute(SQL["lines"], values).fetchall()
            for _, start, data in rows:
                number += 1
                offset = start + len(data) + 1
                yield _make_line(number, start, data)
            if not rows:
                return

    def _update(self, db: Session, before: TranscriptRow, after: TranscriptRow) -> None:
        """Change the row, and with it the fingerprint of its folder."""
        fingerprint = self._fingerprint(after.file_id)
        values = {"ino": after.inode, "size": after.size, "lines": after.lines, "changed": after.changed, "mix": fingerprint}
        db.execute(SQL["update_transcript"], {**self._key, **values})
        self._change_folder(db, before.fingerprint ^ fingerprint)

    def _fingerprint(self, file_id: FileId) -> int:
        return fingerprint_document(TRANSCRIPTS, self.name, file_id) if self.part == TRANSCRIPTS else 0

    def _change_folder(self, db: Session, change: int) -> None:
        if self.part == TRANSCRIPTS:
            self._store.change_folder(db, self._scope, TRANSCRIPTS, change, names=[self.name])


class PostgresTranscripts:
    """The transcripts of one scope; see `holdfast.store.interface.Transcripts` for its methods."""

    def __init__(self, store: PostgresStore, scope_folder: str) -> None:
        self._store, self._scope = store, scope_folder

    def open(self, name: str, part: str = TRANSCRIPTS) -> PostgresTranscript:
        return PostgresTranscript(self._store, self._scope, name, part)

    def entries(self) -> Iterator[Entry]:
        yield from self._list_entries(TRANSCRIPTS)

    def wait_for_writers(self) -> None:
        self._store.database.write(lambda db: db.execute(SQL["wait_for_new_transcripts"], {"scope": self._scope}))

    def list_trashed(self) -> list[Transcript]:
        names = layout.sort_trashed_transcripts([entry.name for entry in self._list_entries("trash")])
        return [self.open(name, "trash") for name in names]

    def list_folders(self) -> list[str]:
        return []  # none is on disk

    def _list_entries(self, part: str) -> list[Entry]:
        rows = self._store.database.rows("transcripts", scope=self._scope, part=part)
        entries = [Entry(name, FileId(inode, changed, size), regular=True) for name, inode, changed, size in rows]
        return [entry for entry in entries if entry.name.endswith(TRANSCRIPT_SUFFIX)]


class _Addition:
    """The lines to append. They are composed once, because the caller does not keep them: if a transaction is repeated, they
    are valid only if no other writer appended meanwhile."""

    def __init__(self, compose: Compose) -> None:
        self._compose = compose
        self._seen: tuple[int, int] | None = None  # inode and size before the last attempt
        self.data: list[bytes] = []
        self.inode = self.start = 0
        self.position = Position()

    def compose(self, row: TranscriptRow, others: Iterator[Line]) -> bool:
        """Compose the lines that follow those of the row, and return whether there are any."""
        if self._seen is None:
            self.data = b"".join(self._compose(others, row.size == 0)).split(b"\n")[:-1]
        elif self.data and self._seen != (row.inode, row.size) and (self._seen[1] or row.size):
            raise Busy(
                "another process wrote to this session while the database was unavailable", "Try again; nothing is added twice"
            )
        self._seen = row.inode, row.size
        self.inode, self.start = row.inode, row.size
        size = row.size + sum([len(data) + 1 for data in self.data])
        self.position = Position(size, row.lines + len(self.data), row.inode if size else 0)
        return bool(self.data)


def _make_line(number: int, start: int, data: bytes) -> Line:
    return Line(number, start, start + len(data) + 1, b"" if len(data) > LINE_BYTES else bytes(data))
