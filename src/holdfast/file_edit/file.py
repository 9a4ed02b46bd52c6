"""Read another program's file, and replace it if it has not changed since."""

from __future__ import annotations

import os
import stat

from holdfast.base.record import Record
from holdfast.errors import Conflict, DiskTrouble, Refused, from_os

_MOST = 10 * 1024 * 1024
LOCK = "wiring"  # what everybody holds who edits such files


class FileSnapshot(Record):
    """A file as it was read. A symbolic link is followed: its target is read and written, and the link stays."""

    path: str
    real: str
    bytes: bytes | None = None


def read(path: str) -> FileSnapshot:
    """Read a file or note its absence; raise Refused for anything that cannot be edited safely."""
    real = os.path.realpath(path)
    try:
        info = os.stat(real)
    except FileNotFoundError:
        if os.path.islink(path):
            raise Refused(f"{path} is a link to {real}, which is not there", "Remove the link, or make its target") from None
        return FileSnapshot(path, real)
    except OSError as error:
        raise _unreadable(error, path) from error
    if not stat.S_ISREG(info.st_mode):
        raise Refused(f"{path} is not a regular file", "Move it away, and run it again")
    if info.st_size > _MOST:
        raise Refused(f"{path} has {info.st_size:,} bytes, more than a settings file should", "Look what is in it")
    if os.path.islink(path) and info.st_uid not in (os.geteuid(), 0):
        raise Refused(f"{path} is a link to a file of another user's", "Make it a file of your own")
    if info.st_nlink > 1:
        what = f"{path} has {info.st_nlink} names (hard links), and only one of them could be kept"
        raise Refused(what, "Make it a file of its own")
    try:
        with open(real, "rb") as file:
            return FileSnapshot(path, real, file.read(_MOST + 1))
    except OSError as error:
        raise _unreadable(error, path) from error


def check_writable(snapshot: FileSnapshot) -> None:
    """Raise an error if the file could not be written."""
    if snapshot.bytes is not None and not os.stat(snapshot.real).st_mode & 0o222:
        raise DiskTrouble(f"{snapshot.path} is read-only", f"chmod u+w {snapshot.real}")
    folder = os.path.dirname(snapshot.real)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise Refused(f"{folder} is not a folder", "Move it away, and run it again")
    if not os.stat(folder).st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        raise DiskTrouble(f"the folder {folder} is read-only", f"chmod u+w {folder}")


def replace(snapshot: FileSnapshot, new: bytes | None, private: bool = False) -> list[str]:
    """Replace the file unless it has changed, and return the folders that were created.

    A `private` file and its new folders are accessible to their owner only. Raise Conflict if the file has changed.
    """
    _must_be_the_same(snapshot)
    if new == snapshot.bytes:
        return []
    try:
        if new is None:
            os.unlink(snapshot.real)
            return []
        made = _folders(os.path.dirname(snapshot.real), 0o700 if private else 0o777)
        try:
            _write(snapshot, new, 0o600 if private or snapshot.bytes is not None else 0o666)
        except BaseException:
            remove_folders(made)
            raise
    except OSError as error:
        raise from_os(error, f"cannot write {snapshot.path}") from error
    return made


def create(path: str, content: bytes) -> None:
    """Create a file that only its owner can read; raise Conflict if it exists."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(f"{path} was made meanwhile", "Run it again") from None
    except OSError as error:
        raise from_os(error, f"cannot write {path}") from error
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        _flush(os.path.dirname(path))
    except OSError as error:
        os.unlink(path)
        raise from_os(error, f"cannot write {path}") from error


def _must_be_the_same(found: FileSnapshot) -> None:
    if read(found.path).bytes != found.bytes:
        raise Conflict(f"{found.path} was changed meanwhile", "Run it again to see what would be changed now")


def _write(found: FileSnapshot, new: bytes, rights: int) -> None:
    """Write a temporary file with the same permissions and rename it over the file."""
    folder, name = os.path.split(found.real)
    temporary = os.path.join(folder, f".{name}.holdfast-{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, rights)
    try:
        with open(fd, "wb") as file:
            file.write(new)
            if found.bytes is not None:
                _same_rights(fd, os.stat(found.real))
            file.flush()
            os.fsync(fd)
        _must_be_the_same(found)  # once more, now that all the slow work is done
        os.replace(temporary, found.real)
    except BaseException:
        os.unlink(temporary)
        raise
    _flush(folder)


def _same_rights(fd: int, info: os.stat_result) -> None:
    if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(fd, info.st_uid, info.st_gid)
    os.fchmod(fd, stat.S_IMODE(info.st_mode))


def _folders(folder: str, rights: int) -> list[str]:
    """Create the missing folders and return them, outermost first."""
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    for one in missing:
        os.mkdir(one, rights)
        _flush(os.path.dirname(one))
    return missing


def remove_folders(folders: list[str]) -> None:
    """Remove the folders that are empty, innermost first."""
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # somebody keeps something there, or it is gone


def _flush(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _unreadable(error: OSError, path: str) -> Exception:
    return DiskTrouble(f"cannot read {path}: {error.strerror}", "Make it readable for this user")
