"""Files that are made from the weights of a package, so that a model loads faster and shares memory between processes.

They are in `~/.cache/holdfast` (or `$XDG_CACHE_HOME/holdfast`) and may be deleted at any time. Where that folder cannot be
written, a temporary file takes their place.

The digest of a file is computed once. Then a small file beside it has the digest and the stamp: inode, time of change and size.
Every change of a file changes its stamp, and no program can set it back. The digest of all files takes 60 ms in each process,
on processors without instructions for it 250.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager

from holdfast import config
from holdfast.embedders import weights
from holdfast.errors import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

_CHECKED = ".checked"  # follows the name of a file whose digest was computed
_SETTLED_NS = 2_000_000_000  # age of a stamp that is noted: a later change within a tick of the clock would not change it


@contextmanager
def cached_file(name: str, sha256: str, write: Callable[[BinaryIO], object]) -> Iterator[str]:
    """Yield the path of a file with this digest, which `write` writes if it is missing or damaged."""
    folder = config.find_cache_folder()
    path = os.path.join(folder, name)
    if _is_complete(path, sha256):
        yield path
        return
    temporary = _write_temporary(folder, write)
    try:
        weights.check(temporary, sha256, "holdfast")
        if os.path.dirname(temporary) == folder:
            os.replace(temporary, path)
            yield path
        else:
            yield temporary
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _is_complete(path: str, sha256: str) -> bool:
    try:
        info = os.stat(path)
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


def _read_note(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write_note(path: str, text: str) -> None:
    """Write a small file at once; where that is not possible, the digest is computed again next time."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix="checked-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        pass


def _write_temporary(folder: str, write: Callable[[BinaryIO], object]) -> str:
    """Write a new file in the folder, or in the folder of temporary files, and return its path."""
    for place in (folder, None):
        path = ""
        try:
            if place:
                os.makedirs(place, mode=0o700, exist_ok=True)
            descriptor, path = tempfile.mkstemp(dir=place, prefix="model-")
            with os.fdopen(descriptor, "wb") as file:
                write(file)
            return path
        except OSError as error:
            reason = error.strerror
            if path:
                os.unlink(path)
    raise Trouble(f"a model cannot be prepared: {reason}", f"Make room in {folder} or in {tempfile.gettempdir()}")
