"""The ledger in one SQLite file: which ids are one project, where markers were seen, what was used how often.

Made under a lock, so that any number of processes may open an empty home at once. A file that is damaged or
not ours is set aside, never deleted: it was truth. Reads make nothing; what cannot be read answers empty.
"""

from __future__ import annotations

import os
import stat
import time
from _thread import RLock  # what threading.RLock is, without that import
from _weakref import ref

from holdfast import sql
from holdfast.errors import Busy, Damaged, DiskTrouble, HoldfastError, Trouble, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    import apsw

    T = TypeVar("T")

SQL = sql.load(__file__)
_APPLICATION, _VERSION, _TABLES = 1215260236, 1, 3
_MINUTE = 60
_MEMO_MOST = 10_000


class Ledger:
    """Durable records that are not prose. Making one touches nothing; the file is opened when needed."""

    def __init__(self, home: str, lock_seconds: float = 30) -> None:
        self._home = home
        self._seconds = lock_seconds
        self._path = ""
        self._db: apsw.Connection | None = None
        self._inode = (0, 0)
        self._lock = RLock()
        self._counted: dict[str, int] = {}
        self._unreadable: str | None = None

    def close(self) -> None:
        with self._lock:
            self._drop()

    # ── whose memory it is: what identity.Registry asks for ──

    def canonical(self, alias: str) -> str | None:
        """The project that goes by this other id."""
        rows = self._rows("canonical", {"alias": alias})
        return str(rows[0][0]) if rows else None

    def link(self, alias: str, project: str, instead: str | None = None) -> None:
        """Let an id lead to a project. The first writer wins, unless the link still says `instead`."""

        def work(db: apsw.Connection) -> None:
            beyond = db.execute(SQL["canonical"], {"alias": project}).fetchall()
            target = beyond[0][0] if beyond else project
            if target != alias:
                db.execute(SQL["link"], {"alias": alias, "project": target, "instead": instead})
                db.execute(SQL["lead_on"], {"alias": alias})

        self._write(work, durable=True)

    def place(self, id: str) -> tuple[str, str] | None:
        """The nonce and the path of a marker or a checkout, as last seen."""
        rows = self._rows("place", {"id": id})
        return (str(rows[0][0]), os.fsdecode(rows[0][1])) if rows else None

    def put_place(self, id: str, nonce: str, path: str) -> None:
        row = {"id": id, "nonce": nonce, "path": os.fsencode(path)}
        self._write(lambda db: db.execute(SQL["put_place"], row), durable=True)

    # ── usage ──

    def count(self, ids: Iterable[str], now: int) -> None:
        """One more use of each, at most once a minute. Within the minute the file is not touched again."""
        with self._lock:
            due = [id for id in dict.fromkeys(ids) if abs(now - self._counted.get(id, -_MINUTE)) >= _MINUTE]
            if not due:
                return
            rows = [{"id": id, "now": now} for id in due]
            counted = self._write(lambda db: db.executemany(SQL["count"], rows).fetchall(), durable=False)
            if len(self._counted) + len(counted) > _MEMO_MOST:
                self._counted.clear()
            self._counted.update((str(row[0]), now) for row in counted)

    def usage(self, ids: Iterable[str]) -> dict[str, int]:
        """How often each was used; those never used are left out."""
        return dict(self._rows("uses", *({"id": id} for id in ids)))

    def forget(self, ids: Sequence[str]) -> int:
        """Remove the usage of these ids, and say how many had any."""
        with self._lock:
            for id in ids:
                self._counted.pop(id, None)
            if not self.usage(ids):
                return 0

            def work(db: apsw.Connection) -> int:
                before = db.total_changes()
                db.executemany(SQL["forget"], [{"id": id} for id in ids]).fetchall()
                return db.total_changes() - before

            return self._write(work, durable=True)

    def scrub(self) -> None:
        """Leave no byte of what was forgotten: its rows are zeros already, now the write-ahead log goes."""
        with self._lock:
            if not os.path.lexists(self._where()):
                return
            rows = self._run(lambda db: db.execute(SQL["empty_wal"]).fetchall(), self._open_to_write())
            if rows and rows[0][0]:
                raise Busy("another process reads the ledger; its log still stands", "Try again in a moment")

    # ── what stands in its way ──

    @property
    def problem(self) -> str | None:
        """What a person should know: a ledger that was set aside, or one that cannot be read."""
        try:
            aside = sorted(name for name in os.listdir(self._home) if _is_aside(name))
        except OSError:
            aside = []
        if aside:
            return f"a damaged ledger was set aside as {', '.join(aside)}; its links and counts are missing"
        return self._unreadable

    # ── running statements ──

    def _rows(self, name: str, *bindings: dict[str, Any]) -> list[tuple[Any, ...]]:
        """All rows for all bindings; none where there is no ledger or it cannot be read here."""

        def ask(db: apsw.Connection) -> list[tuple[Any, ...]]:
            return db.executemany(SQL[name], bindings).fetchall()

        with self._lock:
            for last_try in (False, True):
                db = self._open_to_read()
                if db is None:
                    return []
                try:
                    return self._run(ask, db)
                except Damaged:
                    if last_try or not self._could_replace():
                        return []
            return []

    def _write(self, work: Callable[[apsw.Connection], T], durable: bool) -> T:
        """Do it in one transaction; durable means on the disk, and in the main file, before this returns."""

        def transact(db: apsw.Connection) -> T:
            db.execute(SQL["sync_each_commit" if durable else "sync_at_checkpoint"])
            db.execute(SQL["begin"])
            answer = work(db)
            db.execute(SQL["commit"])
            if durable:
                db.execute(SQL["move_to_main_file"]).fetchall()
            return answer

        with self._lock:
            try:
                return self._run(transact, self._open_to_write())
            except Damaged:
                self._replace()
                return self._run(transact, self._open_to_write())

    def _run(self, work: Callable[[apsw.Connection], T], db: apsw.Connection) -> T:
        """Any failure closes the connection: that rolls back, and the next call starts afresh."""
        import apsw

        try:
            return work(db)
        except apsw.Error as error:
            self._drop()
            raise _ours(error) from error
        except BaseException:
            self._drop()
            raise

    # ── opening ──

    def _where(self) -> str:
        if not self._path:
            self._path = f"{os.path.realpath(self._home)}/ledger.db"
        return self._path

    def _open_to_write(self) -> apsw.Connection:
        return self._opened() or self._keep(self._attach_or_make())

    def _open_to_read(self) -> apsw.Connection | None:
        """The ledger if there is one, as far as this user may read it."""
        try:
            db = self._opened()
            return self._open_to_write() if db is None and os.path.lexists(self._where()) else db
        except (DiskTrouble, Damaged) as error:
            self._unreadable = str(error)
        try:
            return self._attach(frozen=True)
        except HoldfastError:
            return None

    def _opened(self) -> apsw.Connection | None:
        """The ledger if it stands ready, looked up anew when another file has taken its place."""
        if self._db is not None and _inode(self._where()) == self._inode:
            return self._db
        self._drop()
        try:
            db = self._attach()
        except (Busy, Damaged):
            return None  # it may be in the making: whoever needs it looks again under the lock
        return self._keep(db) if db is not None else None

    def _keep(self, db: apsw.Connection) -> apsw.Connection:
        self._db, self._unreadable = db, None
        _open_ledgers.add(ref(self, _open_ledgers.discard))
        return db

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _attach(self, frozen: bool = False) -> apsw.Connection | None:
        """A connection to a sound ledger; None when there is no file yet or nothing in it."""
        import apsw

        path = self._where()
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os(error, "opening the ledger") from error
        self._inode = (found.st_dev, found.st_ino)  # before connecting: a file put there meanwhile is noticed
        if not stat.S_ISREG(found.st_mode):
            raise Damaged(f"{path} is not a regular file", "Run `holdfast doctor`")
        if found.st_size == 0:
            return None
        try:
            db = _connect(path, self._seconds, frozen)
            sound = False
            try:
                sound = _is_sound(db.execute(SQL["identify"]).fetchall()[0])
            finally:
                if not sound:
                    db.close()
        except apsw.Error as error:
            raise _ours(error) from error
        return db if sound else None

    def _attach_or_make(self) -> apsw.Connection:
        self._make_folders()
        with self._file_lock():
            try:
                db = self._attach()
            except Damaged:
                self._set_aside()
                db = None
            return db or self._make()

    def _make(self) -> apsw.Connection:
        import apsw

        path = self._where()
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(path, flags, 0o600))  # SQLite gives its other files the same mode
            self._inode = _inode(path)
            db = _connect(path, self._seconds)
            try:
                for name in ("make_wal", "sync_each_commit", "begin", "schema", "commit"):
                    db.execute(SQL[name]).fetchall()
            except apsw.Error:
                db.close()
                raise
            _sync_folder(os.path.dirname(path))
        except apsw.Error as error:
            raise _ours(error) from error
        except OSError as error:
            raise from_os(error, "making the ledger") from error
        return db

    def _make_folders(self) -> None:
        try:
            for folder in (self._home, f"{self._home}/run"):
                os.makedirs(folder, 0o700, exist_ok=True)
        except OSError as error:
            raise from_os(error, "making the home") from error

    def _file_lock(self) -> _FileLock:
        return _FileLock(f"{self._home}/run/ledger.lock", self._seconds)

    # ── when the file is not what it must be ──

    def _could_replace(self) -> bool:
        try:
            self._replace()
        except HoldfastError as error:
            self._unreadable = str(error)
            return False
        return True

    def _replace(self) -> None:
        """Set the file aside that just failed, unless another process has done so already."""
        failed = self._inode
        self._make_folders()
        with self._file_lock():
            if _inode(self._where()) == failed:
                self._set_aside()

    def _set_aside(self) -> None:
        """Its log goes first: beside a new file it would be taken for that one's."""
        path = self._where()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        name, number = f"{path}.damaged-{stamp}", 1
        while os.path.lexists(name):
            number += 1
            name = f"{path}.damaged-{stamp}-{number}"
        try:
            for suffix in ("-wal", "-shm", ""):
                if os.path.lexists(path + suffix):
                    os.rename(path + suffix, name + suffix)
            _sync_folder(os.path.dirname(path))
        except OSError as error:
            raise from_os(error, "setting the damaged ledger aside") from error


class _FileLock:
    """Between processes, while the file is made or set aside."""

    def __init__(self, path: str, seconds: float) -> None:
        self._path, self._seconds, self._fd = path, seconds, -1

    def __enter__(self) -> None:
        import fcntl

        deadline = time.monotonic() + self._seconds
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            while True:
                try:
                    return fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise
                    time.sleep(0.005)
        except BlockingIOError:
            os.close(self._fd)
            raise Busy("another process is making the ledger", "Try again in a moment") from None
        except OSError as error:
            raise from_os(error, "locking the ledger") from error

    def __exit__(self, *_: object) -> None:
        import fcntl

        fcntl.flock(self._fd, fcntl.LOCK_UN)  # a child forked meanwhile has the descriptor too
        os.close(self._fd)


def _connect(path: str, seconds: float, frozen: bool = False) -> apsw.Connection:
    """Frozen reads the main file alone: all that can be done in a home that cannot be written to."""
    import apsw

    if frozen:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:{_percent(path)}?immutable=1", flags=flags)
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    db.set_busy_timeout(int(seconds * 1000))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a one-shot command need not wait for the disk
    db.execute(SQL["prepare"]).fetchall()
    return db


def _is_sound(row: tuple[Any, ...]) -> bool:
    """Whether it is a ledger; False when it is a database with nothing in it yet."""
    application, version, objects, tables = row
    if application == _APPLICATION and version > _VERSION:
        raise Trouble("ledger.db was written by a newer Holdfast", "Upgrade this one")
    if application == _APPLICATION and tables == _TABLES:
        return True
    if application == 0 and objects == 0:
        return False
    raise Damaged("ledger.db is not a ledger of Holdfast", "Run `holdfast doctor`")


def _ours(error: apsw.Error) -> HoldfastError:
    """What SQLite said, as one of ours."""
    import apsw

    what = f"the ledger: {error}"
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Busy(what, "Another process holds it; try again in a moment")
    if isinstance(error, apsw.FullError):
        return DiskTrouble(what, "Free some space and try again; nothing was half-written")
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError):
        return DiskTrouble(what, "Make the home writable for this user, or point HOLDFAST_HOME elsewhere")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.FormatError):
        return Damaged(what, "It is set aside by itself; run `holdfast doctor`")
    if isinstance(error, apsw.IOError):
        return DiskTrouble(what, "Check the disk, then run `holdfast doctor`")
    return Trouble(what, "Run `holdfast doctor`")


def _inode(path: str) -> tuple[int, int]:
    try:
        found = os.lstat(path)
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _is_aside(name: str) -> bool:
    return name.startswith("ledger.db.damaged-") and not name.endswith(("-wal", "-shm"))


def _percent(path: str) -> str:
    """A path as a file: URI spells it."""
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
    return "".join(chr(byte) if byte in letters else f"%{byte:02x}" for byte in os.fsencode(path))


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# No connection may be open across a fork: SQLite in the child would take the parent's locks for its own.
_open_ledgers: set[ref[Ledger]] = set()
_waiting: list[Ledger] = []
_abandoned: list[apsw.Connection] = []


def _before_fork() -> None:
    for reference in list(_open_ledgers):
        ledger = reference()
        if ledger is not None:
            ledger._lock.acquire()
            ledger._drop()
            _waiting.append(ledger)


def _after_fork_in_parent() -> None:
    while _waiting:
        _waiting.pop()._lock.release()


def _after_fork_in_child() -> None:
    """A fork that Python did not announce leaves a connection open: not even closing it would be safe."""
    _waiting.clear()
    for reference in list(_open_ledgers):
        ledger = reference()
        if ledger is not None:
            ledger._lock = RLock()
            if ledger._db is not None:
                _abandoned.append(ledger._db)
                ledger._db = None


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
