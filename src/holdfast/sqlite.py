"""SQLite helpers: SQL by name, translation of errors, moving a damaged database aside, and forks."""

from __future__ import annotations

import os
from _thread import RLock  # what threading.RLock is, without that import

import apsw

from holdfast.errors import DOCTOR, Busy, Damaged, DiskTrouble, HoldfastError, Template, Trouble, from_os, no_space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _weakref import ref
    from collections.abc import Iterator
    from typing import Any

DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError)
_BESIDE = 128 * 1024  # bytes of an empty log with what is shared about it
FAILURES = (apsw.Error, UnicodeDecodeError)  # of a statement: the second where a damaged text is no text any more


def statements(module_file: str) -> dict[str, str]:
    """SQL by name: the `-- name: x` sections of the .sql file beside a module."""
    with open(os.path.splitext(module_file)[0] + ".sql", encoding="utf-8") as file:
        sections = ("\n" + file.read()).split("\n-- name: ")
    named = [section.partition("\n") for section in sections[1:]]
    return {name.strip(): statement.strip() for name, _, statement in named}


def ours(error: BaseException, path: str) -> HoldfastError:
    """An error of SQLite as one of Holdfast's."""
    what = f"{os.path.basename(path)}: {error}"
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Busy(what, "Another process holds it; try again in a moment")
    if isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError | apsw.CantOpenError) and _is_full(path)):
        return no_space(what, os.path.dirname(path))
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError):
        return DiskTrouble(what, "Make the home writable for this user, or point HOLDFAST_HOME elsewhere")
    if isinstance(error, apsw.IOError):
        return DiskTrouble(what, Template("Check the disk, then run ", DOCTOR))
    if isinstance(error, (*DAMAGE, UnicodeDecodeError)):
        return Damaged(what, Template("Run ", DOCTOR))
    return Trouble(what, Template("Run ", DOCTOR))


def _is_full(path: str) -> bool:
    """Whether its disk has no room for even the files that SQLite makes beside a database, which it does not say as such."""
    folder = os.path.dirname(path)
    try:
        room = os.statvfs(folder)
        return room.f_bavail * room.f_frsize < _BESIDE and os.access(folder, os.W_OK)
    except OSError:
        return False


def set_aside(path: str, name: str) -> None:
    """Rename a database with its log, which goes first: beside a new file it would be taken for that one's."""
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


def percent(path: str) -> str:
    """A path as a file: URI spells it."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
    return "".join([chr(byte) if byte in plain else f"%{byte:02x}" for byte in os.fsencode(path)])


def pieces_of(path: str, size: int) -> Iterator[bytes]:
    """The bytes of a database's own file, read as SQLite reads it: whoever has it open keeps their locks."""
    try:
        file = apsw.VFSFile("unix", path, [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    except apsw.CantOpenError:
        return
    try:
        total = file.xFileSize()
        for start in range(0, total, size):
            yield file.xRead(min(size, total - start), start)
    except apsw.Error as error:
        raise ours(error, path) from error
    finally:
        file.xClose()


# No connection may be open across a fork: SQLite in the child would take the parent's locks for its own.
databases: set[ref[Any]] = set()  # of `house`, each with a lock and a way to be closed
_held: list[Any] = []


def in_use(path: str) -> bool:
    """Whether anybody in this process has this database open."""
    real = os.path.realpath(path)
    return any(one._path == real and one._db is not None for reference in list(databases) if (one := reference()))


def _before_fork() -> None:
    for database in [one for reference in list(databases) if (one := reference())]:
        database.lock.acquire()
        database.close()
        database.let_go += 1
        _held.append(database)


def _after_fork() -> None:
    while _held:
        _held.pop().lock.release()


def _in_the_child() -> None:
    for database in _held:
        database.lock = RLock()
    _held.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_the_child)
