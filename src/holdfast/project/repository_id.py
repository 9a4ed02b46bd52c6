"""An id of a git repository, kept in the file `holdfast-id` inside its git folder, so that memory follows a move.

Git leaves unknown files in its folder alone, and `git clone` does not copy them. `cp -r` does: the caller compares where
the id was last seen. The id is random and names no home, so several homes may use it.
"""

from __future__ import annotations

import os

from holdfast.project.git import read_regular_file

ID_FILE = "holdfast-id"
_LENGTH = 32  # hex digits
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_id(common: str) -> str | None:
    """Return the id in a git folder; None if there is none, or if the file does not hold one."""
    data = read_regular_file(f"{common}/{ID_FILE}", _LENGTH + 2, os.O_NOFOLLOW)
    text = data.decode("ascii", "replace").removesuffix("\n") if data is not None else ""
    return text if len(text) == _LENGTH and all(letter in "0123456789abcdef" for letter in text) else None


def write_id(common: str, instead: str | None = None) -> str | None:
    """Write a new id into a git folder and return the one that is there now, or None if that is not possible.

    An id that another process wrote first is kept. Only the id `instead` is replaced. A file that holds anything else is
    never touched, and nothing is written into a folder that belongs to another user.
    """
    try:
        folder = os.open(common, _OPEN_FOLDER)
    except (OSError, ValueError):
        return None
    temporary = f".{ID_FILE}-{os.urandom(6).hex()}.tmp"
    try:
        if os.fstat(folder).st_uid != os.geteuid() or not os.path.isdir(f"{common}/objects"):
            return None
        _write(folder, temporary, f"{os.urandom(_LENGTH // 2).hex()}\n".encode())
        try:
            _publish(folder, temporary, common, instead)
        finally:
            _remove(folder, temporary)
        os.fsync(folder)
    except OSError:
        pass  # a read-only or full disk: the repository is still known by its reflog and its path
    finally:
        os.close(folder)
    now = read_id(common)
    return now if now != instead else None


def _write(folder: int, name: str, data: bytes) -> None:
    file = os.open(name, _NEW_FILE, 0o644, dir_fd=folder)
    try:
        os.write(file, data)
        os.fsync(file)
    except OSError:
        _remove(folder, name)
        raise
    finally:
        os.close(file)


def _publish(folder: int, temporary: str, common: str, instead: str | None) -> None:
    """Rename the complete file to its final name: over the id `instead`, otherwise only if no file exists."""
    if instead is not None:
        if read_id(common) == instead:
            os.rename(temporary, ID_FILE, src_dir_fd=folder, dst_dir_fd=folder)
        return
    try:
        os.link(temporary, ID_FILE, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not os.path.lexists(f"{common}/{ID_FILE}"):
            os.rename(temporary, ID_FILE, src_dir_fd=folder, dst_dir_fd=folder)


def _remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        pass
