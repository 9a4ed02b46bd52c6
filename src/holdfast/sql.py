"""SQL by name, what SQLite's errors mean to us, and how a database is set aside."""

from __future__ import annotations

import os
import time

import apsw

from holdfast.errors import Busy, Damaged, DiskTrouble, HoldfastError, Trouble, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError)
FAILURES = (apsw.Error, UnicodeDecodeError)  # of a statement: the second where a damaged text is no text any more


def statements(module_file: str) -> dict[str, str]:
    """SQL by name: the `-- name: x` sections of the .sql file beside a module."""
    with open(os.path.splitext(module_file)[0] + ".sql", encoding="utf-8") as file:
        sections = ("\n" + file.read()).split("\n-- name: ")
    named = [section.partition("\n") for section in sections[1:]]
    return {name.strip(): statement.strip() for name, _, statement in named}


class Patience:
    """Waits for what another process has, so many seconds at most. Most are done within a millisecond, so it looks again soon,
    and then less and less often: SQLite's own patience begins with what others take for all they do."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = 0.0

    def __call__(self, tries: int) -> bool:
        """Whether to try again, after so many times in vain."""
        now = time.monotonic()
        if tries == 0:
            self._end = now + self._seconds
        if now >= self._end:
            return False
        time.sleep(min(0.0002 * 1.4 ** min(tries, 20), 0.01))
        return True


def ours(error: BaseException, path: str) -> HoldfastError:
    """An error of SQLite as one of Holdfast's."""
    what = f"{os.path.basename(path)}: {error}"
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Busy(what, "Another process holds it; try again in a moment")
    if isinstance(error, apsw.FullError):
        return DiskTrouble(what, "Free some space and try again; no file is half-written")
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError):
        return DiskTrouble(what, "Make the home writable for this user, or point HOLDFAST_HOME elsewhere")
    if isinstance(error, apsw.IOError):
        return DiskTrouble(what, "Check the disk, then run `holdfast doctor`")
    if isinstance(error, (*DAMAGE, UnicodeDecodeError)):
        return Damaged(what, "Run `holdfast doctor`")
    return Trouble(what, "Run `holdfast doctor`")


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
