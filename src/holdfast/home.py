"""The home folder: ownership, permissions, and the locks inside it."""

from __future__ import annotations

import fcntl
import os
import time

from holdfast.errors import Busy, DiskTrouble, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FIRST_WAIT, _LONGEST_WAIT = 0.0002, 0.01  # seconds between two attempts at a lock
_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def exists(home: str) -> bool:
    """Return whether the home folder exists."""
    return os.path.isdir(home)


def open_home(home: str, create: bool) -> int | None:
    """Return a descriptor of the home folder, or None if it does not exist and `create` is false.

    Raise `DiskTrouble` if it is not a folder or another user owns it, and OSError if it cannot be opened.
    """
    try:
        fd = _open_or_create(home, create)
    except (NotADirectoryError, FileExistsError):
        raise DiskTrouble(f"the home {home} is not a folder", "Set --home or HOLDFAST_HOME to a folder") from None
    if fd is None:
        return None
    owner = os.fstat(fd).st_uid
    if owner != os.geteuid():
        os.close(fd)
        raise DiskTrouble(
            f"the home {home} belongs to user {owner}, not to you ({os.geteuid()})",
            "Run as its owner, change its owner (chown), or set HOLDFAST_HOME to another folder",
        )
    return fd


def check_owner(home: str, create: bool = False) -> None:
    """Raise `DiskTrouble` if another user owns the home folder or it cannot be opened."""
    try:
        fd = open_home(home, create)
    except OSError as error:
        raise from_os(error, f"cannot open the home {home}") from error
    if fd is not None:
        os.close(fd)


def _open_or_create(home: str, create: bool) -> int | None:
    try:
        return os.open(home, _FOLDER)
    except FileNotFoundError:
        if not create:
            return None
    _create_folders(home)
    return os.open(home, _FOLDER)


def _create_folders(path: str) -> None:
    """Create a folder and its missing parents, each flushed to disk before the next."""
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        _create_folders(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    fd = os.open(parent, _FOLDER)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_busy_handler(seconds: float) -> Callable[[int], bool]:
    """Return a function that waits after a failed attempt (numbered from 0) and returns whether to try again.

    Most locks are free within a millisecond, so the first waits are short; SQLite's own handler starts with a whole one.
    """
    deadline = [0.0]

    def wait(attempt: int) -> bool:
        if attempt == 0:
            deadline[0] = time.monotonic() + seconds
        time.sleep(min(_FIRST_WAIT * 1.4 ** min(attempt, 20), _LONGEST_WAIT))
        return time.monotonic() < deadline[0]

    return wait


class Lock:
    """An advisory lock between processes, on a file in the home. The kernel frees it when its process dies."""

    def __init__(self, home: str, name: str, seconds: float) -> None:
        self._home, self._name, self._seconds = home, name, seconds
        self._fd = -1

    def __enter__(self) -> Self:
        if not self.acquire(self._seconds):
            raise Busy(f"another process has held the lock on {self._name} for {self._seconds:g} s", "Try again")
        return self

    def acquire(self, seconds: float) -> bool:
        """Take the lock and return whether it was free within `seconds`."""
        self._fd = self._open()
        try:
            if self._try():
                return True
            from holdfast.base import tracing

            with tracing.span("lock.wait"):
                is_locked = self._wait(seconds)
        except OSError as error:
            self.release()
            raise from_os(error, f"cannot lock {self._name}") from error
        except BaseException:
            self.release()
            raise
        if not is_locked:
            self.release()
        return is_locked

    def _wait(self, seconds: float) -> bool:
        """Try again until the lock is taken or the time is over."""
        wait, attempt = make_busy_handler(seconds), 0
        while wait(attempt):
            if self._try():
                return True
            attempt += 1
        return False

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _open(self) -> int:
        try:
            fd = open_home(self._home, create=True)
            assert fd is not None
            for folder in ("run", "locks"):
                fd = _enter_folder(fd, folder)
            try:
                return os.open(f"{self._name}.lock", _LOCK_FILE, 0o600, dir_fd=fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise from_os(error, f"cannot lock {self._name}") from error

    def release(self) -> None:
        """Free the lock, including the copy of its descriptor that a forked child may have."""
        fd, self._fd = self._fd, -1
        try:
            fcntl.flock(fd, fcntl.LOCK_UN)
        except OSError:
            pass
        os.close(fd)

    def close_in_child(self) -> None:
        """Close the descriptor in a forked child without freeing the parent's lock."""
        os.close(self._fd)

    def __exit__(self, *_: object) -> None:
        self.release()


def _enter_folder(fd: int, name: str) -> int:
    """Close a folder's descriptor and return that of a folder in it, created if missing, never through a link."""
    try:
        try:
            return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
        except FileNotFoundError:
            try:
                os.mkdir(name, 0o700, dir_fd=fd)
            except FileExistsError:
                pass
            return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
    finally:
        os.close(fd)
