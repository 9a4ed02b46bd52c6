"""Read another program's file, and replace it if it has not changed since."""

from __future__ import annotations

import os
import stat

from holdfast.base.record import Record
from holdfast.errors import Conflict, DiskTrouble, Refused, from_os

_MAX_BYTES = 10 * 1024 * 1024
LOCK = "wiring"  # name of the lock that every editor of such files holds


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
        raise _make_read_error(error, path) from error
    if not stat.S_ISREG(info.st_mode):
        raise Refused(f"{path} is not a regular file", "Move it away, and run it again")
    if info.st_size > _MAX_BYTES:
        raise Refused(f"{path} has {info.st_size:,} bytes, more than a settings file should", "Look what is in it")
    if os.path.islink(path) and info.st_uid not in (os.geteuid(), 0):
        raise Refused(f"{path} is a link to a file of another user's", "Make it a file of your own")
    if info.st_nlink > 1:
        message = f"{path} has {info.st_nlink} names (hard links), and only one of them could be kept"
        raise Refused(message, "Make it a file of its own")
    try:
        with open(real, "rb") as file:
            return FileSnapshot(path, real, file.read(_MAX_BYTES + 1))
    except OSError as error:
        raise _make_read_error(error, path) from error


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
    _check_unchanged(snapshot)
    if new == snapshot.bytes:
        return []
    try:
        if new is None:
            os.unlink(snapshot.real)
            return []
        created = _create_folders(os.path.dirname(snapshot.real), 0o700 if private else 0o777)
        try:
            _write(snapshot, new, 0o600 if private or snapshot.bytes is not None else 0o666)
        except BaseException:
            remove_folders(created)
            raise
    except OSError as error:
        raise from_os(error, f"cannot write {snapshot.path}") from error
    return created


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
        _sync_folder(os.path.dirname(path))
    except OSError as error:
        os.unlink(path)
        raise from_os(error, f"cannot write {path}") from error


def _check_unchanged(snapshot: FileSnapshot) -> None:
    if read(snapshot.path).bytes != snapshot.bytes:
        raise Conflict(f"{snapshot.path} was changed meanwhile", "Run it again to see what would be changed now")


def _write(snapshot: FileSnapshot, new: bytes, mode: int) -> None:
    """Write a temporary file with the same permissions and rename it over the file."""
    folder, name = os.path.split(snapshot.real)
    temporary = os.path.join(folder, f".{name}.holdfast-{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as file:
            file.write(new)
            if snapshot.bytes is not None:
                _copy_permissions(fd, os.stat(snapshot.real))
            file.flush()
            os.fsync(fd)
        _check_unchanged(snapshot)  # again, because writing takes time
        os.replace(temporary, snapshot.real)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _copy_permissions(fd: int, info: os.stat_result) -> None:
    """Give a file the owner, group and mode of another."""
    if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(fd, info.st_uid, info.st_gid)
    os.fchmod(fd, stat.S_IMODE(info.st_mode))


def _create_folders(folder: str, mode: int) -> list[str]:
    """Create the missing folders and return them, outermost first."""
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    for path in missing:
        os.mkdir(path, mode)
        _sync_folder(os.path.dirname(path))
    return missing


def remove_folders(folders: list[str]) -> None:
    """Remove the folders that are empty, innermost first."""
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # not empty, or already removed


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _make_read_error(error: OSError, path: str) -> Exception:
    return DiskTrouble(f"cannot read {path}: {error.strerror}", "Make it readable for this user")
