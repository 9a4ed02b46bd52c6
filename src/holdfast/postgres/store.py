"""A table of the same markdown documents, in PostgreSQL: the bytes that a home would have as files.

A write changes the number of its folder first, and so waits for whoever writes there; then it puts the document in the
place of the one that was seen, and both are kept or none. A COMMIT whose answer was lost is settled by looking.
"""

from __future__ import annotations

import os
import time
from functools import reduce
from operator import xor

from holdfast.base import dates
from holdfast.base.ids import file_fingerprint
from holdfast.base.record import Record
from holdfast.errors import Busy, Unsure
from holdfast.postgres import Database, statements
from holdfast.postgres import Lock as Alone
from holdfast.store import atomic, files
from holdfast.store.atomic import FileContent
from holdfast.store.files import Changed, Entry, nothing_against

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from holdfast.models import Scope, TrashedNote
    from holdfast.postgres import PostgresSettings, Session
    from holdfast.postgres.pipeline import Result as Answer
    from holdfast.postgres.transcripts import PostgresTranscripts
    from holdfast.postgres.tree import Tree
    from holdfast.store.atomic import Stamp
    from holdfast.store.files import May, Named, Right
    from holdfast.store.transfer import Brought

    T = TypeVar("T")

SQL = statements(__file__)
_AT_ONCE = 500  # documents that one statement takes
_TRIES = 5  # at a COMMIT whose answer is lost again and again
_FEW, _SHORT = 24, 200  # names of what changed last, and characters of one
_MOVED = ("archive", "notes", "trash")  # between which notes move


class Put(Record):
    """One document on its way: what is written, and the stamp of what it replaces."""

    name: str
    data: bytes
    stamp: Stamp
    modified: int
    mix: int
    seen: Stamp | None


def drawn() -> int:
    """A number that nobody else has: what an inode is to a file."""
    return int.from_bytes(os.urandom(8), "big") >> 2


def share(part: str, name: str, stamp: Stamp) -> int:
    """A document's share of its folder's number, as the catalogue counts it."""
    return file_fingerprint(stamp, "" if part == "notes" else name)


def mixed(shares: list[int]) -> int:
    return reduce(xor, shares, 0)


class PostgresStore(files.FileStore):
    """The truth of one tenant, as one caller may see it."""

    def __init__(self, settings: PostgresSettings, home: str, lock_seconds: float) -> None:
        super().__init__(home, lock_seconds)
        self.settings = settings
        self.database = Database(settings, SQL, lock_seconds)

    # --- what stands beside the notes ------------------------------------------------------------------------------

    def tree(self, scope_folder: str, seconds: float | None = None) -> Tree:
        from holdfast.postgres.tree import Tree

        return Tree(self, scope_folder)

    def transcript_files(self, scope_folder: str, seconds: float | None = None) -> PostgresTranscripts:
        from holdfast.postgres.transcripts import PostgresTranscripts

        return PostgresTranscripts(self, scope_folder)

    def named_lock(self, name: str, seconds: float | None = None) -> Right:
        return Alone(self.settings, name, self._lock_seconds if seconds is None else seconds)

    def exists(self) -> bool:
        return True

    def must_be_ours(self) -> None:
        """The server sees to that: nobody else's rows are ever shown."""

    def has(self, scope_folder: str, part: str = "") -> bool:
        return self.database.row("has", scope=scope_folder, part=part) is not None

    def watch(self) -> None:
        """Nothing tells of changes: whoever asks looks."""

    # --- for a copy --------------------------------------------------------------------------------------------------

    def digests(self, scope_folder: str, part: str) -> Iterator[tuple[str, str]]:
        from holdfast.postgres import transfer

        return transfer.digests(self, scope_folder, part)

    def bring(self, scope_folder: str, part: str, brought: list[Brought]) -> None:
        from holdfast.postgres import transfer

        transfer.bring(self, scope_folder, part, brought)

    def bare_folders(self, scope_folder: str) -> list[str]:
        from holdfast.postgres import transfer

        return transfer.folders(self, scope_folder)

    # --- notes -----------------------------------------------------------------------------------------------------

    def full(self, path: str) -> str:
        from holdfast.config import hide_password

        return f"{hide_password(self.settings.url)} ({path})"

    def read_name(self, scope_folder: str, part: str, name: str) -> FileContent | None:
        row = self.database.row("read", scope=scope_folder, part=part, name=name)
        return _sheet(*row) if row else None

    def read_many(self, scope: Scope, keys: list[str]) -> list[FileContent | None]:
        names = [f"{key}.md" for key in keys]
        rows = self.database.rows("read_these", scope=scope.folder, part="notes", names=names)
        here = {name: _sheet(*rest) for name, *rest in rows}
        return [here.get(name) for name in names]

    def nearest(self, scopes: list[Scope], key: str) -> Iterator[tuple[Scope, FileContent]]:
        here = self.read_ahead([(scope.folder, "notes", f"{key}.md") for scope in scopes])
        for scope in scopes:
            if content := here.get((scope.folder, "notes", f"{key}.md")):
                yield scope, content

    def read_ahead(self, wanted: list[Named]) -> dict[Named, FileContent]:
        """All documents with one question, and all lines of transcripts (each named with where it begins) with another."""
        documents = [one for one in wanted if one[1] != "transcripts"]
        scopes, parts, names = (list(column) for column in zip(*documents, strict=True)) if documents else ([], [], [])
        rows = self.database.rows("read_ahead", scopes=scopes, parts=parts, names=names) if documents else []
        lines = [(scope, *name.rpartition(":")[::2]) for scope, part, name in wanted if part == "transcripts"]
        if lines:
            within, transcript_files, starts = (list(column) for column in zip(*lines, strict=True))
            rows += self.database.rows("lines_ahead", scopes=within, names=transcript_files, starts=starts)
        return {(scope, part, name): _sheet(*rest) for scope, part, name, *rest in rows}

    def stamp(self, scope_folder: str, part: str, name: str) -> Stamp | None:
        return self.stamps(scope_folder, part, [name])[name]

    def stamps(self, scope_folder: str, part: str, names: list[str]) -> dict[str, Stamp | None]:
        rows = self.database.rows("stamps", scope=scope_folder, part=part, names=names)
        here = {name: (stamp, changed, size) for name, stamp, changed, size, _ in rows}
        return {name: here.get(name) for name in names}

    def _put(
        self, scope: Scope, part: str, name: str, data: bytes, seen: Stamp | None, may: May = nothing_against
    ) -> Stamp:
        return self.put(scope.folder, part, [put(part, name, data, seen)], may)[0]

    def write_many(self, scope: Scope, notes: list[tuple[str, bytes, Stamp | None]], may: May = nothing_against) -> list[Stamp]:
        for name, data, _ in notes:
            atomic.must_stay_readable(data, name)
        return self.put(scope.folder, "notes", [put("notes", name, data, seen) for name, data, seen in notes], may)

    def put(
        self, scope_folder: str, part: str, puts: list[Put], may: May = nothing_against,
        before: Callable[[Session], None] = lambda _: None,
    ) -> list[Stamp]:  # fmt: skip
        """Every document is as seen and put, or none is (`Changed`). `before` is done first, when nobody else can write."""
        if not puts:
            return []

        def work(db: Session) -> None:
            shares = [one.mix ^ (share(part, one.name, one.seen) if one.seen else 0) for one in puts]
            self.mix(db, scope_folder, part, mixed(shares), names=[one.name for one in puts])
            before(db)
            answers = put_all(db, scope_folder, part, puts)
            may()  # what it asks goes to the server together with the rest
            if sum([len(answer.fetchall()) for answer in answers]) < len(puts):
                raise Changed

        def stands() -> bool:
            here = self.stamps(scope_folder, part, [one.name for one in puts])
            return all(here[one.name] == one.stamp for one in puts)

        self.surely(work, lambda db: self.hold(db, scope_folder, (part,)), stands)
        return [one.stamp for one in puts]

    def move_notes(
        self, scope: Scope, keys: list[str], part: str, seconds: float, seen: dict[str, Stamp] | None = None
    ) -> list[str]:
        time_ = dates.timestamp(seconds).replace("-", "").replace(":", "")
        moves: list[tuple[str, str]] = []

        def work(db: Session) -> None:
            last = self.hold(db, scope.folder, ("notes", part))[part]
            here = self._standing(db, scope.folder, "notes", [f"{key}.md" for key in keys])
            going = [
                key
                for key in dict.fromkeys(keys)
                if (there := here.get(f"{key}.md")) and (seen is None or there[0] == seen.get(key))
            ]
            moves[:] = [(f"{key}.md", f"{key}--{time_}-{last + number:08x}.md") for number, key in enumerate(going, 1)]
            self._move(db, scope.folder, ("notes", part), moves, here, last + len(moves))

        self._moved(scope, part, work, moves)
        return [name[:-3] for name, _ in moves]

    def restore(self, scope: Scope, one: TrashedNote, key: str) -> None:
        moves = [(one.name, f"{key}.md")]

        def work(db: Session) -> None:
            self.hold(db, scope.folder, (one.part, "notes"))
            here = self._standing(db, scope.folder, one.part, [one.name])
            if not here or self._standing(db, scope.folder, "notes", [f"{key}.md"]):
                raise Changed
            self._move(db, scope.folder, (one.part, "notes"), moves, here)

        self._moved(scope, "notes", work, moves)

    def _archived_names(self, scope_folder: str, keys: list[str]) -> list[str]:
        return [name for (name,) in self.database.rows("archived", scope=scope_folder, keys=keys)] if keys else []

    def trash_archived(self, scope: Scope, one: TrashedNote, seconds: float) -> bool:
        time_ = dates.timestamp(seconds).replace("-", "").replace(":", "")
        moves: list[tuple[str, str]] = []

        def work(db: Session) -> None:
            last = self.hold(db, scope.folder, ("archive", "trash"))["trash"]
            here = self._standing(db, scope.folder, "archive", [one.name])
            moves[:] = [(name, f"{one.key}--{time_}-{last + 1:08x}.md") for name in here]
            self._move(db, scope.folder, ("archive", "trash"), moves, here, last + len(moves))

        self._moved(scope, "trash", work, moves)
        return bool(moves)

    def _standing(self, db: Session, scope_folder: str, part: str, names: list[str]) -> dict[str, tuple[Stamp, int]]:
        """The stamp and the share of those that are there."""
        rows = db.execute(SQL["stamps"], {"scope": scope_folder, "part": part, "names": names})
        return {name: ((stamp, changed, size), mix) for name, stamp, changed, size, mix in rows}

    def _move(
        self, db: Session, scope_folder: str, parts: tuple[str, str], moves: list[tuple[str, str]],
        here: dict[str, tuple[Stamp, int]], last: int = 0,
    ) -> None:  # fmt: skip
        """From one part to another, each under its new name."""
        now, names, targets = time.time_ns(), [name for name, _ in moves], [target for _, target in moves]
        stamps = [here[name][0] for name in names]
        come = [share(parts[1], to, (stamp, now, size)) for to, (stamp, _, size) in zip(targets, stamps, strict=True)]
        row = {"scope": scope_folder, "part": parts[0], "to_part": parts[1], "changed": now}
        db.execute(SQL["move"], {**row, "names": names, "to_names": targets, "mixes": come})
        self.mix(db, scope_folder, parts[0], mixed([here[name][1] for name in names]), names=names)
        self.mix(db, scope_folder, parts[1], mixed(come), last, targets)

    def _moved(self, scope: Scope, part: str, work: Callable[[Session], None], moves: list[tuple[str, str]]) -> None:
        def stands() -> bool:
            here = self.stamps(scope.folder, part, [target for _, target in moves])
            return all(here[target] is not None for _, target in moves)

        self.surely(work, lambda db: self.hold(db, scope.folder, _MOVED), stands)

    def erase(self, scope: Scope, part: str, name: str, seen: Stamp | None = None) -> bool:
        taken = Taken()

        def work(db: Session) -> None:
            self.hold(db, scope.folder, _MOVED)
            here = self._standing(db, scope.folder, part, [name])
            if here and seen is not None and here[name][0] != seen:
                raise Changed
            taken.note(here[name][0][0] if here else 0)
            if here:
                db.execute(SQL["erase"], {"scope": scope.folder, "part": part, "name": name})
                self.mix(db, scope.folder, part, here[name][1])
                self.unname(db, scope.folder, _MOVED, name)

        self.surely(
            work, lambda db: self.hold(db, scope.folder, _MOVED), lambda: self.stamp(scope.folder, part, name) is None
        )
        return bool(taken.last)

    def entries(self, scope_folder: str, part: str) -> Iterator[Entry]:
        for name, *stamp in self.database.rows("census", scope=scope_folder, part=part):
            yield Entry(name, tuple(stamp), regular=True)

    def misnamed(self, scope_folder: str) -> list[str]:
        return []

    def passed_over(self, scope_folder: str) -> list[tuple[str, str]]:
        return []  # nothing else can stand here

    def fingerprint(self, scope_folder: str, part: str) -> int:
        return self.fingerprints((scope_folder,)).get((scope_folder, part), 0)

    def fingerprints(self, scopes: tuple[str, ...]) -> dict[tuple[str, str], int]:
        rows = self.database.rows("fingerprints", scopes=list(scopes))
        return {(scope, part): mix for scope, part, mix in rows}

    def scopes(self) -> list[str]:
        return [row[0] for row in self.database.rows("scopes")]

    def strays(self) -> list[str]:
        return []

    def has_listing(self, scope: Scope) -> bool:
        return False

    def write_listing(self, scope: Scope, data: bytes) -> None:
        """There is no folder in which anybody would look for it."""

    def lock(self, scope: Scope) -> Right:
        return Held(self, scope.folder)

    # --- within a transaction ----------------------------------------------------------------------------------------

    def hold(self, db: Session, scope_folder: str, parts: tuple[str, ...]) -> dict[str, int]:
        """From here on nobody else writes to these parts; the number that came last into each."""
        return dict(db.execute(SQL["hold"], {"scope": scope_folder, "parts": list(parts)}).fetchall())

    def mix(
        self, db: Session, scope_folder: str, part: str, mix: int, last: int = 0, names: list[str] | None = None
    ) -> None:
        """Change a folder's number, and wait for whoever writes there; the names are what changes, as far as they are few."""
        few = [name for name in names or () if len(name) <= _SHORT][:_FEW]
        db.execute(SQL["mixed"], {"scope": scope_folder, "part": part, "mix": mix, "last": last, "names": few})

    def unname(self, db: Session, scope_folder: str, parts: tuple[str, ...], name: str) -> None:
        """Forget that what is erased for good ever changed, here or in the trash: a name may be made of its first words."""
        stem, dot, suffix = name.rpartition(".")
        own = stem.rpartition("--")[0] or stem  # of what is in the trash: what it was called before
        row = {"scope": scope_folder, "parts": list(parts), "name": name, "plain": own + dot + suffix, "trashed": f"{own}--"}
        db.execute(SQL["unname"], row)

    def surely(self, work: Callable[[Session], None], hold: Callable[[Session], object], stands: Callable[[], bool]) -> None:
        """Do it durably. Where the answer to COMMIT was lost, whoever carried it out may still be at it: wait until nobody
        writes there, look whether it `stands`, and do it again if not."""
        doubtful: Unsure | None = None
        for _ in range(_TRIES):
            try:
                # looking is durable too: what it finds is with the standbys by then, and not just here
                if doubtful and self.database.write(lambda db: (hold(db), stands())[1], durable=True):
                    return None
                doubtful = None
                return self.database.write(work, durable=True)
            except Unsure as error:
                doubtful = error
            except Busy:
                if doubtful:  # nobody could look: it may be there all the same
                    break
                raise
        raise Unsure("the database went away while it was told to keep this", "Look whether it is kept") from doubtful


class Taken:
    """What each try of an erasure found, by its number; 0 is nothing. One whose answer was lost may have been carried out, and
    what stands there since is somebody else's."""

    def __init__(self) -> None:
        self.last = 0

    def note(self, number: int) -> None:
        if self.last and number not in (0, self.last):
            raise Busy("somebody else wrote here while the database was away", "Try again")
        self.last = number


class Held:
    """The right to change a scope's documents: a transaction that holds its folders' rows."""

    def __init__(self, store: PostgresStore, scope_folder: str) -> None:
        self._store, self._scope_folder = store, scope_folder
        self._session: Any = None

    def __enter__(self) -> object:
        self._session = self._store.database.transaction()
        try:
            self._store.hold(self._session.__enter__(), self._scope_folder, _MOVED)
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


def put(part: str, name: str, data: bytes, seen: Stamp | None, modified: int | None = None) -> Put:
    """A document that is to take the place of the one seen."""
    stamp = drawn(), time.time_ns(), len(data)
    return Put(name, data, stamp, int(dates.clock()) if modified is None else modified, share(part, name, stamp), seen)


def put_all(db: Session, scope_folder: str, part: str, puts: list[Put]) -> list[Answer]:
    """Many documents with few statements; each answers with a row for every one that is put."""
    answers = []
    for start in range(0, len(puts), _AT_ONCE):
        some = puts[start : start + _AT_ONCE]
        new, next_ = [one for one in some if one.seen is None], [one for one in some if one.seen is not None]
        if new:
            answers.append(db.execute(SQL["put_new"], _columns(scope_folder, part, new)))
        if next_:
            answers.append(db.execute(SQL["put_next"], _columns(scope_folder, part, next_)))
    return answers


def _columns(scope_folder: str, part: str, puts: list[Put]) -> dict[str, Any]:
    return {
        "scope": scope_folder, "part": part, "names": [one.name for one in puts], "data": [one.data for one in puts],
        "stamps": [one.stamp[0] for one in puts], "changed": [one.stamp[1] for one in puts],
        "modified": [one.modified for one in puts], "mixes": [one.mix for one in puts],
        "seen": [one.seen[0] if one.seen else 0 for one in puts],
        "seen_changed": [one.seen[1] if one.seen else 0 for one in puts],
    }  # fmt: skip


def _sheet(data: bytes, stamp: int, changed: int, modified: int) -> FileContent:
    return FileContent(bytes(data), (stamp, changed, len(data)), modified)
