"""Files that are made from the weights of a package, so that a model loads faster and shares memory between processes.

They are in `~/.cache/holdfast` (or `$XDG_CACHE_HOME/holdfast`) and may be deleted at any time. Where that folder cannot be
written, a temporary file takes their place.

The digest of a file is computed once. Then a small file beside it has the digest and the stamp: inode, time of change and size.
Every change of a file changes its stamp, and no program can set it back. The digest of all files takes 60 ms in each process,
on processors without instructions for it 250.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from contextlib import contextmanager

from holdfast import config
from holdfast.embedders import weights
from holdfast.errors import ConfigError, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

_TEMPORARY, _NOTE = "model-", "checked-"  # beginnings of the names of temporary files
_ABANDONED_SECONDS = 3600
_CHECKED = ".checked"  # follows the name of a file whose digest was computed
_SETTLED_NS = 2_000_000_000  # age of a stamp that is noted: a later change within a tick of the clock would not change it


@contextmanager
def cached_file(name: str, sha256: str, write: Callable[[BinaryIO], object]) -> Iterator[str]:
    """Yield the path of a file with this digest, which `write` writes if it is missing or damaged."""
    folder = _find_folder()
    path = os.path.join(folder, name)
    try:
        if folder and _is_complete(path, sha256):
            yield path
            return
        temporary = _write_temporary(folder, write)
        try:
            weights.check(temporary, sha256, "holdfast")
            yield path if os.path.dirname(temporary) == folder and _rename(temporary, path) else temporary
        finally:
            _remove(temporary)
    except OSError as error:  # for example, if the folder is deleted in that moment
        raise Trouble(f"a model cannot be loaded: {error}", "Try again") from error


def _find_folder() -> str:
    """Return the folder of the files; "" for a user without a home directory, as in some containers."""
    try:
        return os.path.abspath(config.find_cache_folder())
    except ConfigError:
        return ""


def _is_complete(path: str, sha256: str) -> bool:
    """Return whether a file has this digest, and no other user can change it."""
    try:
        info = os.lstat(path)
        if not stat.S_ISREG(info.st_mode) or not _is_private(info) or not _is_private(os.stat(os.path.dirname(path))):
            return False
        checked = f"{sha256} {info.st_ino} {info.st_ctime_ns} {info.st_size}"
        if _read_note(path + _CHECKED) == checked:
            return True
        if weights.digest(path) != sha256:
            return False
    except (OSError, Trouble):
        return False
    if time.time_ns() - info.st_ctime_ns > _SETTLED_NS:
        _write_note(path + _CHECKED, checked)
    return True


def _is_private(info: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user and no other can write to it."""
    return info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _rename(temporary: str, path: str) -> bool:
    try:
        os.replace(temporary, path)
    except OSError:  # a folder has its name, for example
        return False
    return True


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _read_note(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write_note(path: str, text: str) -> None:
    """Write a small file at once; where that is not possible, the digest is computed again next time."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=_NOTE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        pass


def _write_temporary(folder: str, write: Callable[[BinaryIO], object]) -> str:
    """Write a new file in the folder, or in the folder of temporary files, and return its path."""
    reason = "its folder belongs to another user, or others can write to it"
    for place in (folder, None) if folder else (None,):
        path = ""
        try:
            if place:
                os.makedirs(place, mode=0o700, exist_ok=True)
                if not _is_private(os.stat(place)):
                    continue
                _remove_abandoned(place)
            descriptor, path = tempfile.mkstemp(dir=place, prefix=_TEMPORARY)
            with os.fdopen(descriptor, "wb") as file:
                write(file)
            return path
        except OSError as error:
            reason = error.strerror or str(error)
            _remove(path)
        except BaseException:
            _remove(path)
            raise
    places = f"{folder} or the temporary folder (TMPDIR)" if folder else "the temporary folder (TMPDIR)"
    raise Trouble(f"a model cannot be prepared: {reason}", f"Make {places} writable, with 110 MB of free space")


def _remove_abandoned(folder: str) -> None:
    """Remove temporary files of processes that were killed."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not name.startswith((_TEMPORARY, _NOTE)):
            continue
        try:
            age = time.time() - os.lstat(path).st_mtime
        except FileNotFoundError:
            continue  # another process has just put it in place
        if age > _ABANDONED_SECONDS:
            _remove(path)
