"""Files that are made from the weights of a package, so that a model loads faster and shares memory between processes.

They are in `~/.cache/holdfast` (or `$XDG_CACHE_HOME/holdfast`) and may be deleted at any time. Where that folder cannot be
written, a temporary file takes their place.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager

from holdfast import config
from holdfast.embedders import weights
from holdfast.errors import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO


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
        return os.path.isfile(path) and weights.digest(path) == sha256
    except Trouble:
        return False


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
