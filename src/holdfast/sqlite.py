"""SQLite files of the home: connections, transactions, recovery from damage, SQL by name.

A `Database` is one file that any number of processes, threads and forks share. It is created under a lock, opened on first
use and opened again after another process deleted or replaced it. A damaged file is deleted if it is derived, else set
aside; `DatabaseReset` then tells the caller to run its query again.
"""

from __future__ import annotations

import os
import stat
from _thread import RLock, _local  # of threading, without importing it
from _weakref import ref

import apsw

from holdfast import home as home_folder
from holdfast.base import tracing
from holdfast.base.fork import on_fork
from holdfast.errors import DOCTOR, Busy, Damaged, DiskTrouble, HoldfastError, Template, Trouble, from_os, no_space
from holdfast.home import Lock, make_busy_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    ContentVersion = tuple[int, int, int]

DAMAGE_ERRORS = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError)
ERRORS = (apsw.Error, UnicodeDecodeError)  # of a statement; the second where damaged text is not UTF-8
_MAX_CACHED = 1000  # values that a cache keeps for one content
_PAGE_BYTES = 4096
_LOG_BYTES = 128 * 1024  # of an empty write-ahead log and its shared memory
_PLAIN_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"  # of a path in a file: URI
_PRAGMAS = (  # a short log, because the first process to open the file reads all of it
    "PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY;"
    "PRAGMA mmap_size=268435456; PRAGMA cache_size=-65536; PRAGMA wal_autocheckpoint=400"
)


def stop_counting_memory() -> None:
    """Let SQLite not count the memory it allocates, in a process that has no connection open yet.

    Each allocation takes a lock for that, which all threads share: two threads then search 1.4 times as fast as one, without
    it twice as fast.
    """
    apsw.shutdown()
    apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
    apsw.initialize()


def load_statements(module_file: str) -> dict[str, str]:
    """Return the `-- name: x` sections of the .sql file beside a module, by name."""
    with open(os.path.splitext(module_file)[0] + ".sql", encoding="utf-8") as file:
        sections = ("\n" + file.read()).split("\n-- name: ")
    named = [section.partition("\n") for section in sections[1:]]
    return {name.strip(): statement.strip() for name, _, statement in named}


class DatabaseReset(Exception):
    """The file was unusable and has been replaced by a new one: repeat the query."""


class Database:
    """One SQLite file of the home. Creating this object opens nothing."""

    is_source_of_truth = False  # not derived: never deleted, creates the home when written to, and is not written in memory

    def __init__(self, home: str, name: str, *, sql: dict[str, str], application: int, version: int, seconds: float) -> None:
        self._home = home
        self._path = os.path.join(os.path.realpath(home), name)  # SQLite follows no link, but the home may be one
        self._sql = sql
        self._application, self._version = application, version
        self._seconds = seconds
        self._db: apsw.Connection | None = None
        self._inodes: tuple[int, int, int] | None = (0, 0, 0)  # None: in memory, whatever is on disk
        self._is_in_memory = False  # the open database
        self._sizes = (0, 0)
        self.lock = RLock()
        self.reason = self.fix = ""  # why the file cannot be written, and the fix if it is known
        self.generation = 0  # changes with the file: answers of an earlier generation are void
        self.times_closed = 0  # for a fork, or by a caller that was done with it
        self.pinned = _local()  # `version`: of each thread within `pin_content`
        databases.add(ref(self, databases.discard))

    # --- running statements --------------------------------------------------------------------------------------

    def rows(self, statement: str, /, **values: Any) -> list[Any]:
        """Return all rows of a named query."""
        with self.lock:
            db = self.connection()
            try:
                return db.execute(self._sql[statement], values).fetchall()
            except ERRORS as error:
                raise self.handle_error(error) from error

    def row(self, statement: str, /, **values: Any) -> Any:
        """Return the first row of a named query, or None."""
        rows = self.rows(statement, **values)
        return rows[0] if rows else None

    def content_version(self) -> ContentVersion:
        """Return a value that changes with every write of this or another process; within `pin_content` the pinned one."""
        pinned = self.pinned_version()
        if pinned is not None:
            return pinned
        with self.lock:
            db = self.connection()
            try:
                return self.generation, int(db.pragma("data_version")), db.total_changes()
            except ERRORS as error:
                raise self.handle_error(error) from error

    def pinned_version(self) -> ContentVersion | None:
        """Return the version that this thread read in the `pin_content` that it is in; the generation is its first number."""
        version: ContentVersion | None = getattr(self.pinned, "version", None)
        return version

    def file_identity(self) -> object:
        """Return a value that is equal for all connections to the same file, and different for each database in memory."""
        with self.lock:
            if self._db is None:
                self.connection()
            return (id(self), self.generation) if self._is_in_memory else (self._path, self._inodes)

    def pin_content(self) -> PinnedContent:
        """Return a context manager within which this thread reads the content version once, until it writes."""
        return PinnedContent(self)

    def transaction(self, durable: bool = False) -> Transaction:
        """Return a context manager for BEGIN IMMEDIATE ... COMMIT; `durable` flushes the commit to disk."""
        return Transaction(self, durable)

    def scrub(self, seconds: float | None = None) -> None:
        """Empty the write-ahead log, which may hold deleted rows, waiting up to `seconds` for readers of old pages."""
        with self.lock:
            if not _stat(self._path)[0]:
                return
            try:
                db = self.connection()
                db.set_busy_handler(make_busy_handler(self._seconds if seconds is None else seconds))
                left = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                db.set_busy_handler(make_busy_handler(self._seconds))
            except apsw.Error as error:
                raise self.handle_error(error) from error
        if left and left[0]:
            raise Busy(f"another process is still reading {self._path}", "Stop that process, or try again later")

    def handle_error(self, error: BaseException) -> BaseException:
        """Return the exception to raise for an error of SQLite; a damaged file is reset on the way."""
        garbled = isinstance(error, UnicodeDecodeError) and not self.is_source_of_truth
        bad_header = isinstance(error, apsw.ReadOnlyError) and self._should_be_writable()
        if garbled or bad_header or isinstance(error, DAMAGE_ERRORS):
            self.reset()
            return DatabaseReset(str(error))
        if not isinstance(error, ERRORS):
            return error
        if not isinstance(error, apsw.BusyError | apsw.LockedError):
            self.close()  # its files may be deleted, or its log open for reading only: the next use opens it again
        return translate_error(error, self._path)

    def _should_be_writable(self) -> bool:
        """Return whether a derived file must have a damaged header if SQLite calls it read-only."""
        return not self.is_source_of_truth and os.access(self._path, os.W_OK) and os.access(self._home, os.W_OK)

    # --- the file ------------------------------------------------------------------------------------------------

    def connection(self, make_home: bool = False) -> apsw.Connection:
        """Return the open connection, opened again if the file was deleted or replaced; in memory where there is no home."""
        if make_home and not home_folder.exists(self._home):
            home_folder.check_owner(self._home, create=True)
        if self._db is not None:
            if self._inodes is None or self.pinned_version() is not None:  # the file was looked at when the content was pinned
                return self._db
            inodes, sizes = _stat_files(self._path)
            same = inodes == self._inodes and (inodes[0] or not home_folder.exists(self._home))
            shrunk = sizes[0] < self._sizes[0] or sizes[1] < self._sizes[1]
            self._sizes = sizes
            if same and not shrunk and not (self.reason and self._is_usable_again()):
                return self._db
            self.close()
        self.reason = self.fix = ""
        self.generation += 1
        try:
            if home_folder.exists(self._home):
                self._remember_file(_stat(self._path)[0], self._connect() or self._create_file())
            else:  # inode 0: a file that another process creates from now on is noticed
                self._db, self._inodes, self._is_in_memory = self._open_memory(), (0, 0, 0), True
        except (DiskTrouble, Damaged) as error:
            self.reason, self.fix = error.message, error.fix if getattr(error, "full", False) else ""
            self._remember_file(_stat(self._path)[0], self._open_read_only())
        assert self._db is not None
        return self._db

    def _remember_file(self, inode: int, db: apsw.Connection | None) -> None:
        """Record which file is open: the inode from before connecting, so that a later replacement is noticed.

        Without a connection, because the file cannot be used, work in memory until the file changes.
        """
        self._db, self._is_in_memory = db or self._open_memory(), db is None
        (main, log, shared), self._sizes = _stat_files(self._path)
        self._inodes = inode or main, log, shared

    def _is_usable_again(self) -> bool:
        """Return whether a file that could not be used can be opened now, for processes that run for long."""
        try:
            (self._connect() or self._create_file()).close()
        except HoldfastError:
            return False
        return True

    def close(self) -> None:
        with self.lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def switch_to_memory(self, reason: str) -> None:
        """Work in memory until closed, for a file that keeps disappearing."""
        with self.lock:
            self.close()
            self._db, self._inodes, self._is_in_memory, self.reason = self._open_memory(), None, True, reason
            self.generation += 1

    def reset(self) -> None:
        """Remove the file, so that the next use creates a new one."""
        with self.lock:
            failed = self._inodes[0] if self._inodes else 0
            self.close()
            with Lock(self._home, os.path.basename(self._path), self._seconds):
                if failed in (0, _stat(self._path)[0]):
                    self.remove_files(self._path)

    def remove_files(self, path: str) -> None:
        """Delete a database with its log, which SQLite would apply to a new file of the same name."""
        for suffix in ("-wal", "-shm", "-journal", ""):
            try:
                os.unlink(path + suffix)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise from_os(error, f"cannot remove {path}{suffix}") from error

    def _connect(self, has_lock: bool = False) -> apsw.Connection | None:
        """Return a connection to a complete file of Holdfast, or None if there is none."""
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os(error, f"cannot open {self._path}") from error
        if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
            return None
        if not self.is_source_of_truth and found.st_size % _PAGE_BYTES:
            return None  # truncated within a page: SQLite would silently read the rest as zeros
        try:
            db = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
            try:
                self._tune(db)
                if self._has_own_schema(db, has_lock):
                    return db
            except DAMAGE_ERRORS:
                pass
            db.close()
        except apsw.Error as error:
            raise translate_error(error, self._path) from error
        return None

    def _has_own_schema(self, db: apsw.Connection, has_lock: bool) -> bool:
        """Return whether this is a file of this version; a source of truth of an older version is migrated under the lock."""
        if db.pragma("application_id") != self._application:
            return False
        version = db.pragma("user_version")
        if self.is_source_of_truth and 1 <= version < self._version:
            if db.readonly("main"):
                self.adapt_read_only(db)
                return True
            if has_lock:
                self.migrate(db)
            else:
                with Lock(self._home, os.path.basename(self._path), self._seconds):
                    self.migrate(db)
            version = db.pragma("user_version")
        if version > self._version:
            self.reject_newer(version)
        return bool(version == self._version)

    def migrate(self, db: apsw.Connection) -> None:
        """Bring a file of an older version up to date; only a source of truth is migrated, a derived file is rebuilt."""
        raise NotImplementedError

    def adapt_read_only(self, db: apsw.Connection) -> None:
        """Make a file of an older version readable for this connection, if it cannot be migrated because it is read-only."""
        raise NotImplementedError

    def reject_newer(self, version: int) -> None:
        """Raise if a later version of Holdfast wrote the file and it must not be deleted; a derived file is rebuilt instead."""

    def _create_file(self) -> apsw.Connection:
        """Return a connection to a new file; of several concurrent processes, one creates it."""
        with Lock(self._home, os.path.basename(self._path), self._seconds):
            db = self._connect(has_lock=True)
            if db is not None:
                return db
            if os.path.lexists(self._path):
                self._clear_path()
            try:
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
                return self._create_schema(self._path)
            except apsw.Error as error:
                raise translate_error(error, self._path) from error
            except OSError as error:
                raise from_os(error, f"cannot make {self._path}") from error

    def _clear_path(self) -> None:
        """Remove an incomplete file of Holdfast, and set another program's database aside."""
        application, has_tables = self._inspect()
        if application is not None and not has_tables:
            Database.remove_files(self, self._path)
        elif application not in (None, self._application) and not self.is_source_of_truth:
            set_aside(self._path, f"{self._path}.not-ours")
        self.remove_files(self._path)

    def _inspect(self) -> tuple[int | None, bool]:
        """Return the application id of the database at our path (None: not a database) and whether it has tables."""
        if not os.path.isfile(self._path) or os.path.islink(self._path):
            return None, False  # SQLite would wait at a pipe for ever
        try:
            other = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW)
            try:
                has_tables = other.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,)
                return int(other.pragma("application_id")), has_tables
            finally:
                other.close()
        except apsw.Error:
            return None, False

    def _create_schema(self, path: str) -> apsw.Connection:
        db = apsw.Connection(path)
        self._tune(db)
        db.execute("PRAGMA journal_mode=WAL; BEGIN IMMEDIATE").fetchall()
        db.execute(self._sql["schema"]).fetchall()
        db.execute(f"PRAGMA application_id={self._application:d}; PRAGMA user_version={self._version:d}; COMMIT").fetchall()
        return db

    def _open_memory(self) -> apsw.Connection:
        """Return an empty database that ends with the process."""
        return self._create_schema(":memory:")

    def _open_read_only(self) -> apsw.Connection | None:
        """Return a connection to the main file, without its log, in a home that cannot be written to."""
        try:
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            db = apsw.Connection(f"file:{quote_path(self._path)}?immutable=1", flags=flags)
            return db if self._has_own_schema(db, has_lock=False) else None
        except (apsw.Error, HoldfastError):
            return None

    def _tune(self, db: apsw.Connection) -> None:
        db.set_busy_handler(make_busy_handler(self._seconds))
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # so that a short command does not write the whole log
        db.execute(_PRAGMAS).fetchall()


class PinnedContent:
    """A block in which one thread reads the content version once; what it reads may be newer than the version, never older."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        pinned = self._database.pinned
        self._outermost = self._database.pinned_version() is None
        if self._outermost:
            pinned.version = self._database.content_version()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._outermost:
            self._database.pinned.version = None


class ContentCache:
    """What was read within `pin_content`, kept until the content changes. Callers must not change what they get."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cached: tuple[ContentVersion | None, dict[Any, Any]] = None, {}  # one tuple: threads replace both at once

    def get(self, key: object, read: Callable[[], Any]) -> Any:
        """Return what `read` returned for this key while the content was the same; outside of `pin_content` read again."""
        version = self._database.pinned_version()
        if version is None:
            return read()
        cached, values = self._cached
        if cached != version or len(values) > _MAX_CACHED:
            values = {}
            self._cached = version, values
        if key not in values:
            values[key] = read()
        return values[key]


class Transaction:
    """BEGIN IMMEDIATE ... COMMIT, or ROLLBACK after an error; errors of SQLite are raised as Holdfast's."""

    def __init__(self, database: Database, durable: bool) -> None:
        self._database = database
        self._durable = durable

    def __enter__(self) -> apsw.Connection:
        database = self._database
        with tracing.span("sqlite.begin"):  # the wait for other writers
            self._begin(database)
        return self._db

    def _begin(self, database: Database) -> None:
        database.pinned.version = None  # this thread changes the content
        database.lock.acquire()
        try:
            self._db = database.connection(make_home=database.is_source_of_truth)
            if database.reason and database.is_source_of_truth:
                raise DiskTrouble(database.reason, database.fix or "Make the home writable for this user")
            self._db.execute("PRAGMA synchronous=FULL; BEGIN IMMEDIATE" if self._durable else "BEGIN IMMEDIATE")
        except BaseException as error:
            database.lock.release()
            raise database.handle_error(error) from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT; PRAGMA synchronous=NORMAL" if self._durable else "COMMIT")
            else:
                self._roll_back()
        except BaseException as failure:
            self._roll_back()
            raise self._database.handle_error(failure) from failure
        else:
            if isinstance(error, ERRORS):
                raise self._database.handle_error(error) from error
        finally:
            self._database.lock.release()

    def _roll_back(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except apsw.Error:
            self._database.close()


def translate_error(error: BaseException, path: str) -> HoldfastError:
    """Convert an error of SQLite to one of Holdfast's."""
    message = f"{os.path.basename(path)}: {error}"
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Busy(message, "Another process is using it; try again in a moment")
    if isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError | apsw.CantOpenError) and _is_disk_full(path)):
        return no_space(message, os.path.dirname(path))
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError):
        return DiskTrouble(message, "Make the home writable for this user, or set HOLDFAST_HOME to another folder")
    if isinstance(error, apsw.IOError):
        return DiskTrouble(message, Template("Check the disk, then run ", DOCTOR))
    if isinstance(error, (*DAMAGE_ERRORS, UnicodeDecodeError)):
        return Damaged(message, Template("Run ", DOCTOR))
    return Trouble(message, Template("Run ", DOCTOR))


def _is_disk_full(path: str) -> bool:
    """Return whether the disk has no space for the log of a database, which SQLite reports as another error."""
    folder = os.path.dirname(path)
    try:
        free = os.statvfs(folder)
        return free.f_bavail * free.f_frsize < _LOG_BYTES and os.access(folder, os.W_OK)
    except OSError:
        return False


def set_aside(path: str, name: str) -> None:
    """Rename a database; its log goes first, because SQLite would apply it to a new file of the same name."""
    number, free = 1, name
    while os.path.lexists(free):
        number += 1
        free = f"{name}-{number}"
    try:
        for suffix in ("-wal", "-shm", ""):
            if os.path.lexists(path + suffix):
                os.rename(path + suffix, free + suffix)
    except OSError as error:
        raise from_os(error, f"cannot set {path} aside") from error


def quote_path(path: str) -> str:
    """Return a path as a file: URI spells it."""
    return "".join([chr(byte) if byte in _PLAIN_BYTES else f"%{byte:02x}" for byte in os.fsencode(path)])


def read_pieces(path: str, size: int) -> Iterator[bytes]:
    """Yield the bytes of a database file, read through SQLite so that open connections of this process keep their locks."""
    try:
        file = apsw.VFSFile("unix", path, [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    except apsw.CantOpenError:
        return
    try:
        total = file.xFileSize()
        for start in range(0, total, size):
            yield file.xRead(min(size, total - start), start)
    except apsw.Error as error:
        raise translate_error(error, path) from error
    finally:
        file.xClose()


def _stat_files(path: str) -> tuple[tuple[int, int, int], tuple[int, int]]:
    """Return the inodes of a database, its log and its shared memory, and the sizes of the two mapped into memory.

    A deleted file must be opened again, and reading a mapped file that another program truncated would kill the process.
    """
    main, log, shared = _stat(path), _stat(path + "-wal"), _stat(path + "-shm")
    return (main[0], log[0], shared[0]), (main[1], shared[1])


def _stat(path: str) -> tuple[int, int]:
    """Return the inode and the size of a file, or zeros."""
    try:
        found = os.lstat(path)
        return found.st_ino, found.st_size
    except OSError:
        return 0, 0


# No connection may be open across a fork: SQLite in the child would take the parent's locks for its own.
databases: set[ref[Database]] = set()
_held: list[Database] = []


def is_open(path: str) -> bool:
    """Return whether this process has a database open."""
    real = os.path.realpath(path)
    return any(
        database._path == real and database._db is not None for reference in list(databases) if (database := reference())
    )


def _before_fork() -> None:
    for database in [database for reference in list(databases) if (database := reference())]:
        database.lock.acquire()
        database.close()
        database.times_closed += 1
        _held.append(database)


def _after_fork() -> None:
    while _held:
        _held.pop().lock.release()


def _reset_in_child() -> None:
    for database in _held:
        database.lock = RLock()
    _held.clear()


on_fork(before=_before_fork, parent=_after_fork, child=_reset_in_child)
