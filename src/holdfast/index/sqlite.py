"""The catalogue in one SQLite file, through FTS5. Deleted, damaged or foreign, it starts anew and the shelf fills it."""

from __future__ import annotations

import os
import threading
import time

import apsw

from holdfast import sql
from holdfast.errors import Busy, DiskTrouble, HoldfastError
from holdfast.facts import fold
from holdfast.leaf import Doc, Passage, Stamp
from holdfast.note import Fact, Note, Record, Scope, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

SQL = sql.load(__file__)
APPLICATION = 0x484F4C44  # "HOLD"
SCHEMA = 1  # another number, another tokenizer: the catalogue is built anew
_UNUSABLE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.SchemaChangeError, apsw.FormatError)
_ANY_TIME = "9"


class Lost(Exception):
    """The catalogue was not usable and has been started anew; fill it and ask again."""


class Found(Record):
    """A passage that matched, and where it stands."""

    passage: int
    seq: int
    past: bool
    lines: tuple[int, int]
    type: str | None
    tags: tuple[str, ...]
    source: Source
    recorded: str
    valid_from: str | None
    valid_to: str | None
    doc: int
    kind: str
    name: str
    key: str
    note_id: str
    versions: int
    scope: str
    part: str
    score: float


class Asked(Record):
    """What a search is for, and on which clock."""

    scopes: tuple[str, ...]
    type: str | None = None
    tags: tuple[str, ...] = ()
    as_of: str | None = None
    known_at: str | None = None
    now: str = ""


class Index:
    """One process's view of the catalogue."""

    def __init__(self, home: str, busy_seconds: float) -> None:
        self._path = os.path.join(home, "index.db")
        self._busy = int(busy_seconds * 1000)
        self._db: apsw.Connection | None = None
        self._inode = 0
        self._pid = 0
        self._lock = threading.RLock()
        self.in_memory = ""  # why, when the home cannot hold the catalogue

    # --- what is in it -------------------------------------------------------------------------------------------

    def folder(self, scope: str, part: str) -> tuple[int, int] | None:
        """The id and the fingerprint of a folder, or None if it was never catalogued."""
        row: tuple[int, int] | None = self._one("folder_of", scope=scope, part=part)
        return row

    def stamps(self, scope: str, part: str) -> dict[str, tuple[Stamp, str]]:
        """Every file of a folder that is catalogued: its stamp and digest."""
        known = self.folder(scope, part)
        if known is None:
            return {}
        rows = self._all("doc_stamps", folder=known[0])
        return {name: ((_unsigned(ino), ctime, size), digest) for name, ino, ctime, size, digest in rows}

    def stamp(self, scope: str, part: str, name: str) -> Stamp | None:
        """The stamp of one catalogued file."""
        known = self.folder(scope, part)
        row = self._one("doc_stamp", folder=known[0], name=name) if known else None
        return (_unsigned(row[1]), row[2], row[3]) if row else None

    # --- changing it ---------------------------------------------------------------------------------------------

    def put(self, docs: Iterable[tuple[Doc, Stamp | None]], still: Callable[[Doc], bool]) -> None:
        """Catalogue files, in one transaction. With each comes the stamp of the bytes it replaced, if the writer knows:
        then only what is new is added. `still` says whether the file on the shelf is the one described: when another
        writer was faster, that writer's description counts, not ours."""
        with self._writing() as db:
            for doc, replaced in docs:
                if still(doc):
                    self._put(db, doc, replaced)

    def drop(self, scope: str, part: str, names: Iterable[str], gone: Callable[[str], bool]) -> int:
        """Take files out that are no longer on the shelf; how many were in."""
        count = 0
        with self._writing() as db:
            known = _row(db, "folder_of", scope=scope, part=part)
            for name in names if known else ():
                row = _row(db, "doc_stamp", folder=known[0], name=name)
                if row and gone(name):
                    _empty(db, row[0])
                    db.execute(SQL["drop_doc"], {"doc": row[0]})
                    self._mixed(db, known[0], row[4])
                    count += 1
        return count

    def restamp(self, scope: str, part: str, stamps: dict[str, Stamp]) -> None:
        """The bytes are the same, only the file system's marks are others (a checkout, a copy back)."""
        with self._writing() as db:
            known = _row(db, "folder_of", scope=scope, part=part)
            for name, stamp in stamps.items() if known else ():
                row = _row(db, "doc_stamp", folder=known[0], name=name)
                if row:
                    mix = hash(stamp)
                    db.execute(SQL["restamp"], {"doc": row[0], "mix": mix, **_stamp(stamp)})
                    self._mixed(db, known[0], row[4], mix)

    def add_folder(self, scope: str, part: str) -> None:
        """Remember that a folder has been looked at, even if it is empty."""
        with self._writing() as db:
            db.execute(SQL["add_folder"], {"scope": scope, "part": part})

    def _put(self, db: apsw.Connection, doc: Doc, replaced: Stamp | None) -> None:
        db.execute(SQL["add_folder"], {"scope": doc.scope, "part": doc.part})
        folder = _row(db, "folder_of", scope=doc.scope, part=doc.part)[0]
        row = _row(db, "doc_stamp", folder=folder, name=doc.name)
        mix = hash(doc.stamp)
        fields = _doc_fields(doc, folder, mix)
        if row is None:
            id = _row(db, "add_doc", **fields)[0]
            passages = doc.passages
            self._mixed(db, folder, mix)
        else:
            id, known = row[0], (_unsigned(row[1]), row[2], row[3])
            if known == doc.stamp and row[5] == doc.digest:
                return
            follows = replaced is not None and known == replaced and row[6] + 1 == doc.versions
            if not follows and len(doc.passages) < doc.versions and doc.kind == "note":
                return  # the one before is not catalogued: leave it to the next look at the folder
            _empty(db, id, current_only=follows)
            passages = doc.passages[:2] if follows else doc.passages
            db.execute(SQL["change_doc"], {**fields, "doc": id})
            self._mixed(db, folder, row[4], mix)
        for passage in passages:
            _add_passage(db, id, passage)
        for fact in doc.facts:
            db.execute(SQL["add_fact"], _fact_fields(id, fact))

    def _mixed(self, db: apsw.Connection, folder: int, *mixes: int) -> None:
        total = 0
        for mix in mixes:
            total ^= mix
        db.execute(SQL["mix_in"], {"folder": folder, "mix": total})
        db.execute(SQL["mark_stale"], {"folder": folder})

    # --- asking it -----------------------------------------------------------------------------------------------

    def search(self, query: str, asked: Asked, limit: int) -> list[Found]:
        """The passages that match any word, best first; at least `limit` of them if there are so many."""
        match = terms(query)
        if not match:
            return []
        pool = max(limit * 4, 40)
        while True:
            scores = dict(self._all("match_now", query=match, pool=pool))
            full = len(scores) >= pool
            if asked.as_of:
                old = dict(self._all("match_past", query=match, pool=pool))
                full = full or len(old) >= pool
                scores.update(old)
            found = self._passages(scores, asked)
            if len(found) >= limit or not full:
                return found
            pool *= 8

    def recent(self, asked: Asked, limit: int, part: str | None = None) -> list[Found]:
        """The newest passages."""
        if asked.as_of:
            rows = self._all("recent_at", scopes=_list(asked.scopes), known_at=asked.known_at or _ANY_TIME)
        else:
            rows = self._all(
                "recent", scopes=_list(asked.scopes), type=asked.type, tags=_list(_folded(asked.tags)),
                now=asked.now, pool=limit, part=part,
            )  # fmt: skip
        return self._passages({row[0]: -0.0 for row in rows}, asked)

    def notes(
        self, scopes: tuple[str, ...], type: str | None = None, tags: tuple[str, ...] = (),
        before: str | None = None, most: int = -1,
    ) -> list[tuple[Any, ...]]:  # fmt: skip
        """The notes of some scopes, newest first, pinned ones before; each a row for `note_of_row`."""
        wanted = _list(_folded(tags))
        return self._all("notes", scopes=_list(scopes), type=type, tags=wanted, before=before, most=most)

    def count(self, scopes: tuple[str, ...]) -> int:
        """How many notes some scopes have."""
        return int(self._one("count_notes", scopes=_list(scopes))[0])

    def facts(
        self, scopes: tuple[str, ...], about: str | None, label: str | None, as_of: str | None
    ) -> list[Fact]:
        """The facts of some scopes, by subject, label and date."""
        rows = self._all(
            "facts", scopes=_list(scopes), about=fold(about) if about else None,
            named=fold(label) if label else None, as_of=as_of,
        )  # fmt: skip
        return [
            Fact(
                subject, label_, value, start, end, retired, tuple(links.split("\n")) if links else (),
                Scope.of_folder(scope), f"{scope}/{part}/{name}", line,
            )
            for subject, label_, value, start, end, retired, links, line, scope, part, name in rows
        ]  # fmt: skip

    def listing(self, scope: str) -> list[tuple[str, str, str, str, str]]:
        """One row a note, for index.md."""
        return self._all("listing", scope=scope)

    def listing_due(self, scope: str, small: int, seconds: float) -> bool:
        """Whether index.md should be made now: always for a small scope, else at most once in `seconds`."""
        state = self._one("listing_state", scope=scope, most=small + 1)
        return bool(state and state[0] and (state[2] <= small or time.time() - state[1] >= seconds))

    def listed(self, scope: str, done: bool = True) -> None:
        """index.md says what the notes say (or, `done` false, failed to)."""
        with self._writing() as db:
            if done:
                db.execute(SQL["set_listed"], {"scope": scope, "time": time.time()})
            else:
                db.execute(SQL["set_stale_again"], {"scope": scope})

    def counts(self) -> list[tuple[str, str, int, int, str]]:
        """Per folder: how many files, how many bytes, last change."""
        return self._all("counts")

    def totals(self) -> tuple[int, int, int, int]:
        """Notes, files, passages, facts."""
        row: tuple[int, int, int, int] = self._one("totals") or (0, 0, 0, 0)
        return row

    def problems(self, scopes: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
        """Files that are not as they should be."""
        return self._all("problems", scopes=_list(scopes))

    def has_note(self, scope: str, name: str) -> bool:
        row = self._one("rows_of_note", scope=scope, name=name)
        return bool(row and row[0])

    def verify(self) -> str:
        """Empty if the whole catalogue is sound, else what is wrong with it."""
        try:
            with self._writing() as db:
                for row in db.execute("PRAGMA integrity_check"):
                    if row[0] != "ok":
                        return str(row[0])
                db.execute(SQL["verify_now"])
                db.execute(SQL["verify_past"])
        except (Lost, apsw.Error) as error:
            return f"unusable: {error or 'started anew'}"
        return ""

    def _passages(self, scores: dict[int, float], asked: Asked) -> list[Found]:
        if not scores:
            return []
        name = "passages_at" if asked.as_of else "passages"
        rows = self._all(
            name, ids="[" + ",".join(map(str, scores)) + "]", scopes=_list(asked.scopes), type=asked.type,
            tags=_list(_folded(asked.tags)), now=asked.now, as_of=asked.as_of, known_at=asked.known_at or _ANY_TIME,
        )  # fmt: skip
        found = [_found(row, -scores[row[0]]) for row in rows]
        return sorted(found, key=lambda one: -one.score)

    # --- the file ------------------------------------------------------------------------------------------------

    def start_anew(self) -> None:
        """Throw the catalogue away; the next look at the shelf fills a new one."""
        with self._lock:
            self.close()
            with self._creating():
                self._remove()

    def scrub(self) -> None:
        """Leave nothing of deleted rows in the file or in its log."""
        with self._lock:
            db = self._open()
            try:
                with self._writing() as writing:
                    writing.execute("INSERT INTO now (now) VALUES ('optimize')")
                    writing.execute("INSERT INTO past (past) VALUES ('optimize')")
                left = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except apsw.Error as error:
                raise _ours(error) from error
            if left and left[0]:
                raise Busy("a reader still holds the old index pages", "Close other Holdfast programs and purge again")

    def close(self) -> None:
        with self._lock:
            if self._db is not None and self._pid == os.getpid():
                self._db.close()
            self._db = None

    def _one(self, query: str, /, **values: Any) -> Any:
        rows = self._all(query, **values)
        return rows[0] if rows else None

    def _all(self, statement: str, /, **values: Any) -> list[Any]:
        with self._lock:
            db = self._open()
            try:
                return db.execute(SQL[statement], values).fetchall()
            except _UNUSABLE as error:
                self.start_anew()
                raise Lost from error
            except apsw.Error as error:
                raise _ours(error) from error

    def _writing(self) -> _Transaction:
        return _Transaction(self)

    def _open(self) -> apsw.Connection:
        """The open file, unless somebody deleted or replaced it, or we are a child of who opened it."""
        if self._db is not None and self._pid == os.getpid():
            if self.in_memory:
                return self._db
            try:
                if os.stat(self._path).st_ino == self._inode:
                    return self._db
            except OSError:
                pass
            self._db.close()
        self._db = None
        self._pid = os.getpid()
        try:
            self._db = self._connect() or self._create()
            self._inode = os.stat(self._path).st_ino
        except (DiskTrouble, OSError) as error:
            self.in_memory = str(error)
            self._db = _fresh(":memory:")
        return self._db

    def _connect(self) -> apsw.Connection | None:
        """The existing file, if it is one of ours, of this schema, and whole."""
        try:
            if os.stat(self._path).st_size == 0:
                return None
        except OSError:
            return None
        try:
            db = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READWRITE)
        except apsw.Error as error:
            raise _ours(error) from error
        try:
            _tuned(db, self._busy)
            ours = db.pragma("application_id") == APPLICATION and db.pragma("user_version") == SCHEMA
            if ours and db.pragma("journal_mode") == "wal":
                return db
        except apsw.BusyError as error:
            raise _ours(error) from error
        except apsw.Error:
            pass
        db.close()
        return None

    def _create(self) -> apsw.Connection:
        """A new file; many processes may come here at once, one makes it."""
        with self._creating():
            db = self._connect()
            if db is not None:
                return db
            self._set_aside()
            try:
                return _fresh(self._path, self._busy)
            except apsw.Error as error:
                raise _ours(error) from error

    def _creating(self) -> _FileLock:
        return _FileLock(os.path.join(os.path.dirname(self._path), "run"), "index.lock", self._busy / 1000)

    def _set_aside(self) -> None:
        """Somebody else's database in our place is theirs: keep it. Anything else there is ours and derived."""
        try:
            other = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY)
            foreign = other.pragma("application_id") != APPLICATION and other.execute(
                "SELECT count(*) FROM sqlite_schema"
            ).fetchone() != (0,)
            other.close()
        except apsw.Error:
            foreign = False
        if foreign:
            os.replace(self._path, f"{self._path}.not-ours")
        self._remove()

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            try:
                os.unlink(self._path + suffix)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise DiskTrouble(f"cannot remove {self._path}{suffix}: {error.strerror}") from error


class _Transaction:
    """BEGIN IMMEDIATE ... COMMIT, with what can go wrong named."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __enter__(self) -> apsw.Connection:
        self._index._lock.acquire()
        try:
            self._db = self._index._open()
            self._db.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._index._lock.release()
            self._named(error)
            raise
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT")
        except BaseException as failure:
            self._undo()
            self._named(failure)
            raise
        else:
            if error is not None:
                self._undo()
                self._named(error)
        finally:
            self._index._lock.release()

    def _undo(self) -> None:
        try:
            if not self._db.getautocommit():
                self._db.execute("ROLLBACK")
        except apsw.Error:
            self._index.close()

    def _named(self, error: BaseException) -> None:
        if isinstance(error, _UNUSABLE):
            self._index.start_anew()
            raise Lost from error
        if isinstance(error, apsw.Error):
            raise _ours(error) from error


class _FileLock:
    """Between processes, while the catalogue file is made or removed."""

    def __init__(self, folder: str, name: str, seconds: float) -> None:
        self._folder, self._name, self._seconds = folder, name, seconds

    def __enter__(self) -> None:
        import fcntl

        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            path = os.path.join(self._folder, self._name)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DiskTrouble(f"cannot lock the index: {error.strerror}") from error
        end = time.monotonic() + self._seconds
        while True:
            try:
                return fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    os.close(self._fd)
                    raise Busy("the index is being made by another process", "Try again in a moment") from None
                time.sleep(0.002)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def terms(query: str) -> str:
    """Any of the query's words, each quoted: nothing in it is syntax."""
    words: dict[str, None] = {}
    word = ""
    for char in query + " ":
        if char.isalnum() or char == "_" or not (char.isascii() or char.isspace()):
            word += char
        elif word:
            words[word] = None
            word = ""
    return " OR ".join([f'"{word}"' for word in list(words)[:64] if '"' not in word and "\0" not in word])


def _tuned(db: apsw.Connection, busy: int) -> None:
    db.set_busy_timeout(busy)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a short command does not pay for everybody's log
    db.execute("PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=268435456")


def _fresh(path: str, busy: int = 0) -> apsw.Connection:
    old = os.umask(0o077)
    try:
        db = apsw.Connection(path)
        _tuned(db, busy)
        db.execute("PRAGMA journal_mode=WAL")
    finally:
        os.umask(old)
    db.execute(f"BEGIN IMMEDIATE; {SQL['schema']}; PRAGMA application_id={APPLICATION}; PRAGMA user_version={SCHEMA}; COMMIT")
    return db


def _ours(error: BaseException) -> HoldfastError:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Busy("the index stayed locked by another process", "Try again in a moment")
    return DiskTrouble(f"the index cannot be used: {error}", "Free space or mend the disk; the notes themselves are safe")


def _row(db: apsw.Connection, statement: str, /, **values: Any) -> Any:
    return db.execute(SQL[statement], values).fetchone()


def _empty(db: apsw.Connection, doc: int, current_only: bool = False) -> None:
    db.execute(SQL["drop_now"], {"doc": doc})
    if not current_only:
        db.execute(SQL["drop_past"], {"doc": doc})
    db.execute(SQL["drop_current" if current_only else "drop_passages"], {"doc": doc})
    db.execute(SQL["drop_facts"], {"doc": doc})


def _add_passage(db: apsw.Connection, doc: int, passage: Passage) -> None:
    id = _row(
        db, "add_passage", doc=doc, seq=passage.seq, past=passage.past, names=passage.names, text=passage.text,
        first_line=passage.lines[0], last_line=passage.lines[1], type=passage.type, tags=_tags(passage.tags),
        source=_source(passage.source), recorded=passage.recorded, valid_from=passage.valid_from,
        valid_to=passage.valid_to, closed=passage.closed, replaced=passage.replaced,
    )[0]  # fmt: skip
    words = {"id": id, "names": passage.names, "text": passage.text}
    db.execute(SQL["add_past" if passage.past else "add_now"], words)


def _doc_fields(doc: Doc, folder: int, mix: int) -> dict[str, Any]:
    return {
        "folder": folder, "name": doc.name, "mix": mix, "digest": doc.digest, "kind": doc.kind, "key": doc.key,
        "note_id": doc.note_id, "title": doc.title, "type": doc.type, "tags": _tags(doc.tags), "created": doc.created,
        "updated": doc.updated, "source": _source(doc.source), "valid_from": doc.valid_from, "valid_to": doc.valid_to,
        "pinned": doc.pinned, "first_line": doc.lines[0], "last_line": doc.lines[1], "versions": doc.versions,
        "problem": doc.problem, **_stamp(doc.stamp),
    }  # fmt: skip


def _fact_fields(doc: int, fact: Fact) -> dict[str, Any]:
    return {
        "doc": doc, "subject": fact.subject, "label": fact.label, "value": fact.value, "about": fold(fact.subject),
        "named": fold(fact.label), "valid_from": fact.valid_from, "valid_to": fact.valid_to,
        "retired_by": fact.retired_by, "links": "\n".join(fact.links), "line": fact.line,
    }  # fmt: skip


def _found(row: tuple[Any, ...], score: float) -> Found:
    (id, seq, past, first, last, type, tags, source, recorded, start, end, doc, kind, name, key, note_id, versions, scope,
     part) = row  # fmt: skip
    return Found(
        id, seq, bool(past), (first, last), type, tags_from(tags), source_from(source), recorded, start, end, doc, kind,
        name, key, note_id, versions, scope, part, score,
    )  # fmt: skip


def _stamp(stamp: Stamp) -> dict[str, int]:
    return {"ino": stamp[0] if stamp[0] < 1 << 63 else stamp[0] - (1 << 64), "ctime": stamp[1], "size": stamp[2]}


def _unsigned(ino: int) -> int:
    return ino if ino >= 0 else ino + (1 << 64)


def _tags(tags: tuple[str, ...]) -> str:
    return "".join([f"\n{tag}" for tag in tags]) + "\n" + "".join([f"{low}\n" for low in _folded(tags)])


def tags_from(kept: str) -> tuple[str, ...]:
    """The tags as written: the first half of what is kept, the second is folded for filters."""
    every = kept.strip("\n").split("\n")
    return tuple(every[: len(every) // 2])


def _folded(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([tag.casefold() for tag in tags])


def _source(source: Source | None) -> str:
    return "\n".join([source.origin, source.agent or "", source.client or "", source.session or ""]) if source else ""


def source_from(kept: str) -> Source:
    if not kept:
        return Source("user")
    origin, agent, client, session = kept.split("\n")
    return Source(origin, agent or None, client or None, session or None)


def _list(values: Iterable[str]) -> str:
    """A JSON list of strings, without importing json for a handful of plain ones."""
    parts = []
    for value in values:
        plain = value.isascii() and value.isprintable() and '"' not in value and "\\" not in value
        if not plain:
            import json

            return json.dumps(list(values))
        parts.append(f'"{value}"')
    return "[" + ",".join(parts) + "]"




def note_of_row(row: tuple[Any, ...]) -> Note:
    """A note as the catalogue has it."""
    (scope, name, key, id, _, type, tags, created, updated, source, start, end, pinned, first, last, version, versions,
     text) = row  # fmt: skip
    return Note(
        Scope.of_folder(scope), key, id, text, type, tags_from(tags), created, updated, source_from(source), start, end,
        bool(pinned), f"{scope}/notes/{name}", (first, last), version, versions,
    )  # fmt: skip
