"""Sessions word for word in PostgreSQL: a row for each transcript, and one for each of its lines.

Whoever adds lines holds the transcript's row. When lines in its midst change, it gets another number, as a file that is
put in the place of another has another inode: readers who are in the midst of it notice.
"""

from __future__ import annotations

import time

from holdfast.errors import Busy
from holdfast.postgres.store import SQL, Taken, drawn, share
from holdfast.store import transcripts
from holdfast.store.files import Entry
from holdfast.store.transcripts import LINE_BYTES, PART, SUFFIX, Line, Place, parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from holdfast.postgres import Session
    from holdfast.postgres.store import PostgresStore
    from holdfast.store.atomic import Stamp
    from holdfast.store.transcripts import Compose
    from holdfast.store.transcripts import TranscriptFile as AnyRoll

_CHUNK = 256 * 1024


class Row:
    """A transcript's row as it was when somebody looked."""

    def __init__(self, ino: int, changed: int, size: int, lines: int, mix: int) -> None:
        self.ino, self.changed, self.size, self.lines, self.mix = ino, changed, size, lines, mix

    @property
    def stamp(self) -> Stamp:
        return self.ino, self.changed, self.size


class PostgresTranscript(transcripts.TranscriptFile):
    """One session's transcript."""

    def __init__(self, store: PostgresStore, scope_folder: str, name: str, part: str = PART) -> None:
        self.name, self.part = name, part
        self.path = f"{scope_folder}/{part}/{name}"
        self._client, self._file = parts_of(name)
        self._store, self._scope, self._database = store, scope_folder, store.database
        self._key = {"scope": scope_folder, "part": part, "name": name}

    def stamp(self) -> Stamp | None:
        row = self._row()
        return row.stamp if row else None

    def lines(self, place: Place = Place(), chunk: int = _CHUNK) -> Iterator[Line]:
        last = place.offset + max(chunk, 1)
        rows = self._database.rows("first_lines", **self._key, first=place.offset, last=last)
        number, end = place.lines, place.offset
        for _, start, data in [row for row in rows if row[2] is not None]:
            number, end = number + 1, start + len(data) + 1
            yield _line(number, start, data)
        if end > place.offset:
            yield from self._lines(rows[0][0], Place(end, number), chunk)

    def ends_so(self, offset: int, test: Callable[[bytes], bool]) -> bool:
        row = self._row()
        last = self._database.row("line_before", ino=row.ino, offset=offset) if row else None
        return bool(last and last[0] + len(last[1]) + 1 == offset and test(bytes(last[1])))

    def tail(self, offset: int) -> bytes:
        return b""  # every line here is whole

    def append(self, compose: Compose, since: Place = Place()) -> Place:
        addition = _Addition(compose)
        ino = drawn()

        def work(db: Session) -> None:
            row = Row(*db.execute(SQL["begin_roll"], {**self._key, "ino": ino, "changed": time.time_ns()}).fetchone())
            self._extend(db, row, addition, since)

        self._store.surely(work, self._lock, lambda: self._has(addition))
        return addition.place

    def _extend(self, db: Session, row: Row, addition: _Addition, since: Place) -> None:
        if row.size < since.offset or since.file not in (0, row.ino):
            since = Place()
        if not addition.composed(row, self._lines(row.ino, since, _CHUNK, db)):
            if not row.lines:  # nothing was said yet, nor is it now
                db.execute(SQL["erase_roll"], self._key)
            return
        starts, numbers = [], []
        start = row.size
        for number, data in enumerate(addition.data, row.lines + 1):
            starts.append(start)
            numbers.append(number)
            start += len(data) + 1
        row_ = {"scope": self._scope, "ino": row.ino, "starts": starts, "numbers": numbers, "data": addition.data}
        db.execute(SQL["add_lines"], row_)
        self._set(db, row, Row(row.ino, time.time_ns(), start, row.lines + len(addition.data), 0))

    def _has(self, addition: _Addition) -> bool:
        """Whether the lines stand where they were put."""
        if not addition.data:
            return True
        found = self._database.rows("lines", ino=addition.ino, first=addition.start, last=addition.start + 1)
        return bool(found) and bytes(found[0][2]) == addition.data[0]

    def settle(self) -> None:
        self._database.write(self._lock)

    def rewrite(self, instead: Callable[[Line], bytes | None]) -> int:
        changed: dict[int, bytes] = {}
        new, stamped = drawn(), [(0, 0, 0)]

        def work(db: Session) -> None:
            row = self._lock(db)
            changed.clear()
            if row is None:
                return
            found = [(line.number, instead(line)) for line in self._lines(row.ino, Place(), _CHUNK, db)]
            changed.update({number: data.rstrip(b"\n") for number, data in found if data is not None})
            for number, data in changed.items():
                db.execute(SQL["change_line"], {"ino": row.ino, "number": number, "data": data})
            if changed:
                db.execute(SQL["renew_lines"], {"ino": row.ino, "new": new})
                size = db.execute(SQL["roll_size"], {"ino": new}).fetchone()[0]
                after = Row(new, time.time_ns(), size, row.lines, 0)
                stamped.append(after.stamp)
                self._set(db, row, after)

        self._store.surely(work, self._lock, lambda: not changed or self.stamp() == stamped[-1])
        return len(changed)

    def erase(self, seen: Stamp | None = None) -> bool:
        taken = Taken()

        def work(db: Session) -> None:
            row = self._lock(db)
            row = row if row and seen in (None, row.stamp) else None
            taken.note(row.ino if row else 0)
            if row is not None:
                db.execute(SQL["erase_lines"], {"ino": row.ino})
                db.execute(SQL["erase_roll"], self._key)
                self._mix(db, row.mix)
                self._store.unname(db, self._scope, (PART,), self.name)

        self._store.surely(work, self._lock, lambda: self._row() is None)  # or, where it has changed since, nothing was done
        return bool(taken.last)

    def _moved(self, name: str, away: bool) -> bool:
        trashed = PostgresTranscript(self._store, self._scope, f"{self._client}/{name}", "trash")
        source, target = (self, trashed) if away else (trashed, self)
        moved = [0]

        def work(db: Session) -> None:
            row, other = source._lock(db), target._lock(db)
            moved[0] = row.ino if row and not other else 0
            if row is None or other is not None:
                return
            now = time.time_ns()
            mix = target._share((row.ino, now, row.size))
            to = {"to_part": target.part, "to_name": target.name, "changed": now, "mix": mix}
            db.execute(SQL["move_roll"], {**source._key, **to})
            source._mix(db, row.mix)
            target._mix(db, mix)

        def stands() -> bool:
            there = target._row()
            return there is not None and there.ino == moved[0]

        self._store.surely(work, source._lock, stands)
        return bool(moved[0])

    # --- its rows ----------------------------------------------------------------------------------------------------

    def _row(self) -> Row | None:
        row = self._database.row("roll", **self._key)
        return Row(*row) if row else None

    def _lock(self, db: Session) -> Row | None:
        row = db.execute(SQL["lock_roll"], self._key).fetchone()
        return Row(*row) if row else None

    def _lines(self, ino: int, place: Place, chunk: int, db: Session | None = None) -> Iterator[Line]:
        offset, number = place.offset, place.lines
        while True:
            asked = {"ino": ino, "first": offset, "last": offset + max(chunk, 1)}
            rows = self._database.rows("lines", **asked) if db is None else db.execute(SQL["lines"], asked).fetchall()
            for _, start, data in rows:
                number += 1
                offset = start + len(data) + 1
                yield _line(number, start, data)
            if not rows:
                return

    def _set(self, db: Session, before: Row, after: Row) -> None:
        """Change the row, and with it the number of the folder it is in."""
        mix = self._share(after.stamp)
        row = {"ino": after.ino, "size": after.size, "lines": after.lines, "changed": after.changed, "mix": mix}
        db.execute(SQL["set_roll"], {**self._key, **row})
        self._mix(db, before.mix ^ mix)

    def _share(self, stamp: Stamp) -> int:
        return share(PART, self.name, stamp) if self.part == PART else 0

    def _mix(self, db: Session, mix: int) -> None:
        if self.part == PART:
            self._store.mix(db, self._scope, PART, mix, names=[self.name])


def _line(number: int, start: int, data: bytes) -> Line:
    return Line(number, start, start + len(data) + 1, b"" if len(data) > LINE_BYTES else bytes(data))


class _Addition:
    """The lines that are to be added. They are composed once, since whoever composes them lets go of them; where a
    transaction must be done again they count only if nobody else has added any meanwhile."""

    def __init__(self, compose: Compose) -> None:
        self._compose = compose
        self._seen: tuple[int, int] | None = None
        self.data: list[bytes] = []
        self.ino = self.start = 0
        self.place = Place()

    def composed(self, row: Row, others: Iterator[Line]) -> bool:
        """Whether there are any, behind what stands there."""
        if self._seen is None:
            self.data = b"".join(self._compose(others, row.size == 0)).split(b"\n")[:-1]
        elif self.data and self._seen != (row.ino, row.size) and (self._seen[1] or row.size):
            raise Busy("others wrote to this session while the database was away", "Try again; nothing is added twice")
        self._seen = row.ino, row.size
        self.ino, self.start = row.ino, row.size
        size = row.size + sum([len(data) + 1 for data in self.data])
        self.place = Place(size, row.lines + len(self.data), row.ino if size else 0)
        return bool(self.data)


class PostgresTranscripts(transcripts.TranscriptFiles):
    """All sessions of one scope."""

    def __init__(self, store: PostgresStore, scope_folder: str) -> None:
        self._store, self._scope = store, scope_folder

    def transcript_file(self, name: str, part: str = PART) -> PostgresTranscript:
        return PostgresTranscript(self._store, self._scope, name, part)

    def census(self) -> Iterator[Entry]:
        for name, *stamp in self._rows(PART):
            yield Entry(name, tuple(stamp), regular=True)

    def settle(self) -> None:
        self._store.database.write(lambda db: db.execute(SQL["settle_rolls"], {"scope": self._scope}))

    def trashed(self) -> list[AnyRoll]:
        names = sorted([row[0] for row in self._rows("trash")], key=lambda name: name.rpartition("--")[2], reverse=True)
        return [self.transcript_file(name, "trash") for name in names]

    def folders(self) -> list[str]:
        return []

    def _rows(self, part: str) -> list[Any]:
        rows = self._store.database.rows("rolls", scope=self._scope, part=part)
        return [row for row in rows if row[0].endswith(SUFFIX)]
