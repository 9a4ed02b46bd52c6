"""The home folder: ownership, permissions, locks and its SQLite files.

A `Database` is one file that any number of processes, threads and forks share. It is made under a lock, opened when first
needed, looked up anew when somebody deleted or replaced it, and when it turns out damaged it is thrown away (what is
derived) or set aside (what is truth) and `DatabaseReset` tells the caller to ask again.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from _thread import RLock  # what threading.RLock is, without that import
from _weakref import ref

import apsw

from holdfast.errors import Busy, Damaged, DiskTrouble, HoldfastError, from_os
from holdfast.sqlite import DAMAGE, FAILURES, databases, ours, percent, set_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, Self

    class Opened(Protocol):
        """An open folder."""

        fd: int

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PAGE = 4096
_TUNING = (  # a short log: whoever opens the file alone reads all of it first
    "PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY;"
    "PRAGMA mmap_size=268435456; PRAGMA cache_size=-65536; PRAGMA wal_autocheckpoint=400"
)


def exists(home: str) -> bool:
    return os.path.isdir(home)


def opened(home: str, create: bool) -> int | None:
    """A descriptor of the home; None where there is none and none is to be made."""
    try:
        fd = os.open(home, _FOLDER)
    except FileNotFoundError:
        if not create:
            return None
        _make(home)
        fd = os.open(home, _FOLDER)
    owner = os.fstat(fd).st_uid
    if owner != os.geteuid():
        os.close(fd)
        raise DiskTrouble(
            f"the home {home} belongs to user {owner}, not to you ({os.geteuid()})",
            "Run as its owner, chown it, or set HOLDFAST_HOME to a folder of your own",
        )
    return fd


def must_be_ours(home: str, create: bool = False) -> None:
    """Refuse a home that is somebody else's, whatever could be read of it."""
    try:
        fd = opened(home, create)
    except OSError as error:
        raise from_os(error, f"cannot open the home {home}") from error
    if fd is not None:
        os.close(fd)


def _make(home: str) -> None:
    """The home and what is missing above it, each on disk before the next."""
    above = os.path.dirname(home)
    if above and not os.path.isdir(above):
        _make(above)
    try:
        os.mkdir(home, 0o700)
    except FileExistsError:
        pass
    _sync(above)


def _sync(folder: str) -> None:
    fd = os.open(folder, _FOLDER)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def patience(seconds: float) -> Callable[[int], bool]:
    """Waits for what another process has: says whether to try again, after so many times in vain. Most are done within a
    millisecond, so it looks again soon, and then less and less often; SQLite's own begins with a whole one."""
    ends = [0.0]

    def again(tries: int) -> bool:
        if tries == 0:
            ends[0] = time.monotonic() + seconds
        time.sleep(min(0.0002 * 1.4 ** min(tries, 20), 0.01))
        return time.monotonic() < ends[0]

    return again


class Lock:
    """An advisory lock between processes, on a file outside anybody's repository. Freed by the kernel on death."""

    def __init__(self, home: str, name: str, seconds: float, folder: Opened | None = None) -> None:
        self._home, self._name, self._seconds = home, name, seconds
        self._folder = folder  # of locks, for who has it open
        self._fd = -1

    def __enter__(self) -> Self:
        if not self.acquire(self._seconds):
            raise Busy(f"another process has held the lock on {self._name} for {self._seconds:g} s", "Try again")
        return self

    def acquire(self, seconds: float) -> bool:
        """Whether it was free in time."""
        self._fd = self._open()
        again, tries = patience(seconds), 0
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                pass
            except OSError as error:
                self.release()
                raise from_os(error, f"cannot lock {self._name}") from error
            except BaseException:
                self.release()
                raise
            if not again(tries):
                self.release()
                return False
            tries += 1

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            if self._folder is not None:
                return os.open(f"{self._name}.lock", flags, 0o600, dir_fd=self._folder.fd)
            fd = opened(self._home, create=True)
            assert fd is not None
            for folder in ("run", "locks"):
                fd = _into(fd, folder)
            try:
                return os.open(f"{self._name}.lock", flags, 0o600, dir_fd=fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise from_os(error, f"cannot lock {self._name}") from error

    def release(self) -> None:
        """Let go, also of a copy that a child forked meanwhile may hold."""
        fd, self._fd = self._fd, -1
        try:
            fcntl.flock(fd, fcntl.LOCK_UN)
        except OSError:
            pass
        os.close(fd)

    def leave(self) -> None:
        """In a child: the lock is its parent's."""
        os.close(self._fd)

    def __exit__(self, *_: object) -> None:
        self.release()


def _into(fd: int, folder: str) -> int:
    """The folder in a folder, made if it is not there, never through a link; the outer one is closed."""
    try:
        try:
            return os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
        except FileNotFoundError:
            try:
                os.mkdir(folder, 0o700, dir_fd=fd)
            except FileExistsError:
                pass
            return os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
    finally:
        os.close(fd)


class DatabaseReset(Exception):
    """The file was not usable and has been started anew; ask again."""


class Database:
    """One SQLite file of the home. Making this object touches nothing."""

    truth = False  # what is truth makes the home when it is written to, and cannot be written in memory

    def __init__(self, home: str, name: str, sql: dict[str, str], application: int, version: int, seconds: float) -> None:
        self._home = home
        self._path = os.path.join(os.path.realpath(home), name)  # SQLite follows no link, and a home may be behind one
        self._sql = sql
        self._application, self._version = application, version
        self._seconds = seconds
        self._db: apsw.Connection | None = None
        self._files: tuple[int, int, int] | None = (0, 0, 0)  # None: in memory whatever the home says
        self._bytes = (0, 0)
        self.lock = RLock()
        self.reason = self.fix = ""  # why it cannot be written, when it cannot, and what helps where that is known
        self.generation = 0  # another number, another file: what was asked of the one before must be asked again
        self.let_go = 0  # how often it was closed for a fork, or by who was done with it
        databases.add(ref(self, databases.discard))

    # --- running statements --------------------------------------------------------------------------------------

    def rows(self, statement: str, /, **values: Any) -> list[Any]:
        """All rows of a named query."""
        with self.lock:
            db = self.opened()
            try:
                return db.execute(self._sql[statement], values).fetchall()
            except FAILURES as error:
                raise self.failed(error) from error

    def mark(self) -> tuple[int, int, int]:
        """Another one, another content: something was written, here or by another process."""
        with self.lock:
            db = self.opened()
            return self.generation, int(db.pragma("data_version")), db.total_changes()

    def row(self, statement: str, /, **values: Any) -> Any:
        """Its first row, or None."""
        rows = self.rows(statement, **values)
        return rows[0] if rows else None

    def transaction(self, durable: bool = False) -> Transaction:
        """BEGIN IMMEDIATE ... COMMIT around a `with`; durable means on the disk when it ends."""
        return Transaction(self, durable)

    def scrub(self, seconds: float | None = None) -> None:
        """Leave nothing of deleted rows in the write-ahead log; wait so long for readers of old pages."""
        with self.lock:
            if not _look(self._path)[0]:
                return
            try:
                db = self.opened()
                db.set_busy_handler(patience(self._seconds if seconds is None else seconds))
                left = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                db.set_busy_handler(patience(self._seconds))
            except apsw.Error as error:
                raise self.failed(error) from error
        if left and left[0]:
            raise Busy(f"another process still reads old pages of {self._path}", "Close it and try again")

    def failed(self, error: BaseException) -> BaseException:
        """What SQLite said, as one of ours; a damaged file is renewed on the way."""
        spoiled = isinstance(error, UnicodeDecodeError) and not self.truth
        if spoiled or isinstance(error, DAMAGE) or (isinstance(error, apsw.ReadOnlyError) and self._should_be_writable()):
            self.renew()
            return DatabaseReset(str(error))
        if not isinstance(error, FAILURES):
            return error
        if not isinstance(error, apsw.BusyError | apsw.LockedError):
            self.close()  # its files may be gone, or its log be open for reading only: the next use starts afresh
        return ours(error, self._path)

    def _should_be_writable(self) -> bool:
        """A derived file that refuses to be written though we may write it has a damaged header."""
        return not self.truth and os.access(self._path, os.W_OK) and os.access(self._home, os.W_OK)

    # --- the file ------------------------------------------------------------------------------------------------

    def opened(self, make_home: bool = False) -> apsw.Connection:
        """The open file, unless somebody deleted or replaced it since. Where there is no home, asking makes none."""
        if make_home and not exists(self._home):
            must_be_ours(self._home, create=True)
        if self._db is not None:
            if self._files is None:
                return self._db
            files, sizes = _files(self._path)
            same = files == self._files and (files[0] or not exists(self._home))
            whole, self._bytes = sizes[0] >= self._bytes[0] and sizes[1] >= self._bytes[1], sizes
            if same and whole and not (self.reason and self._mended()):
                return self._db
            self.close()
        self.reason = self.fix = ""
        self.generation += 1
        try:
            if exists(self._home):
                self._keep(_look(self._path)[0], self._connect() or self._make())
            else:  # a file that another process makes from now on is not the one we have open
                self._db, self._files = self._in_memory(), (0, 0, 0)
        except (DiskTrouble, Damaged) as error:
            self.reason, self.fix = error.message, error.fix if getattr(error, "full", False) else ""
            self._keep(_look(self._path)[0], self._frozen() or self._in_memory())
        assert self._db is not None
        return self._db

    def _keep(self, before: int, db: apsw.Connection) -> None:
        """Remember which file this is: the one seen before connecting, so that one put there meanwhile is noticed."""
        self._db = db
        (main, log, shared), self._bytes = _files(self._path)
        self._files = before or main, log, shared

    def _mended(self) -> bool:
        """Whether what could not be used can be by now: trouble passes, and a process may stay for long."""
        try:
            (self._connect() or self._make()).close()
        except HoldfastError:
            return False
        return True

    def close(self) -> None:
        with self.lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def go_without_file(self, reason: str) -> None:
        """Work in memory until closed: the file keeps going away under us."""
        with self.lock:
            self.close()
            self._db, self._files, self.reason = self._in_memory(), None, reason
            self.generation += 1

    def renew(self) -> None:
        """Take the file away, so that the next use makes a new one."""
        with self.lock:
            failed = self._files[0] if self._files else 0
            self.close()
            with Lock(self._home, os.path.basename(self._path), self._seconds):
                if failed in (0, _look(self._path)[0]):
                    self.take_away(self._path)

    def take_away(self, path: str) -> None:
        """What is derived is removed, with its log: beside a new file that would be taken for the new one's."""
        for suffix in ("-wal", "-shm", "-journal", ""):
            try:
                os.unlink(path + suffix)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise from_os(error, f"cannot remove {path}{suffix}") from error

    def _connect(self) -> apsw.Connection | None:
        """A connection to a sound file of ours; None when there is none, or none yet."""
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os(error, f"cannot open {self._path}") from error
        if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
            return None
        if not self.truth and found.st_size % _PAGE:
            return None  # cut short within a page: SQLite would read the rest as zeros and say nothing
        try:
            db = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
            try:
                self._tune(db)
                if self._is_ours(db):
                    return db
            except DAMAGE:
                pass
            db.close()
        except apsw.Error as error:
            raise ours(error, self._path) from error
        return None

    def _is_ours(self, db: apsw.Connection) -> bool:
        application, version = db.pragma("application_id"), db.pragma("user_version")
        if application == self._application and version > self._version:
            self.newer(version)
        return bool(application == self._application and version == self._version)

    def newer(self, version: int) -> None:
        """A file of a later Holdfast: what is derived is just built again."""

    def _make(self) -> apsw.Connection:
        """A new file; many processes may come here at once, one makes it."""
        with Lock(self._home, os.path.basename(self._path), self._seconds):
            db = self._connect()
            if db is not None:
                return db
            if os.path.lexists(self._path):
                self._not_ours()
            try:
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
                return self._filled(self._path)
            except apsw.Error as error:
                raise ours(error, self._path) from error
            except OSError as error:
                raise from_os(error, f"cannot make {self._path}") from error

    def _not_ours(self) -> None:
        """Something else in our place. A half-made file of ours is removed, somebody's database is kept beside."""
        application, filled = self._what_is_there()
        if application is not None and not filled:
            Database.take_away(self, self._path)
        elif application not in (None, self._application) and not self.truth:
            set_aside(self._path, f"{self._path}.not-ours")
        self.take_away(self._path)

    def _what_is_there(self) -> tuple[int | None, bool]:
        """The application id of the database in our place (None: it is no database) and whether it holds anything."""
        if not os.path.isfile(self._path) or os.path.islink(self._path):
            return None, False  # SQLite would wait at a pipe for ever
        try:
            other = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW)
            try:
                filled = other.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,)
                return int(other.pragma("application_id")), filled
            finally:
                other.close()
        except apsw.Error:
            return None, False

    def _filled(self, path: str) -> apsw.Connection:
        db = apsw.Connection(path)
        self._tune(db)
        db.execute("PRAGMA journal_mode=WAL; BEGIN IMMEDIATE").fetchall()
        db.execute(self._sql["schema"]).fetchall()
        db.execute(f"PRAGMA application_id={self._application:d}; PRAGMA user_version={self._version:d}; COMMIT").fetchall()
        return db

    def _in_memory(self) -> apsw.Connection:
        """Where nothing can be kept: empty, and gone with the process."""
        return self._filled(":memory:")

    def _frozen(self) -> apsw.Connection | None:
        """The main file as it stands, in a home that cannot be written to."""
        try:
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            db = apsw.Connection(f"file:{percent(self._path)}?immutable=1", flags=flags)
            return db if self._is_ours(db) else None
        except (apsw.Error, HoldfastError):
            return None

    def _tune(self, db: apsw.Connection) -> None:
        db.set_busy_handler(patience(self._seconds))
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a short command does not pay for everybody's log
        db.execute(_TUNING).fetchall()


class Transaction:
    """All of it or nothing, with what can go wrong named."""

    def __init__(self, database: Database, durable: bool) -> None:
        self._database = database
        self._durable = durable

    def __enter__(self) -> apsw.Connection:
        self._database.lock.acquire()
        try:
            self._db = self._database.opened(make_home=self._database.truth)
            if self._database.truth and self._database.reason:
                raise DiskTrouble(self._database.reason, self._database.fix or "Make the home writable for this user")
            self._db.execute("PRAGMA synchronous=FULL; BEGIN IMMEDIATE" if self._durable else "BEGIN IMMEDIATE")
        except BaseException as error:
            self._database.lock.release()
            raise self._database.failed(error) from error
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT; PRAGMA synchronous=NORMAL" if self._durable else "COMMIT")
            else:
                self._undo()
        except BaseException as failure:
            self._undo()
            raise self._database.failed(failure) from failure
        else:
            if isinstance(error, FAILURES):
                raise self._database.failed(error) from error
        finally:
            self._database.lock.release()

    def _undo(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except apsw.Error:
            self._database.close()


def _files(path: str) -> tuple[tuple[int, int, int], tuple[int, int]]:
    """The inodes of a database, its log and its shared memory: if one was deleted, all of it must be opened anew. And the
    bytes of the two that are read as memory: if they are fewer, somebody wrote over one, and to read what is gone is death."""
    main, log, shared = _look(path), _look(path + "-wal"), _look(path + "-shm")
    return (main[0], log[0], shared[0]), (main[1], shared[1])


def _look(path: str) -> tuple[int, int]:
    try:
        found = os.lstat(path)
        return found.st_ino, found.st_size
    except OSError:
        return 0, 0
