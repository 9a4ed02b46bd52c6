"""One project for each user of an application: names that no two users share, and a pool of open memories.

For adapters of frameworks that pass the id of a user with every call. A memory of one project reads and writes no other
project, so a query of one user cannot find what another user stored.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256

from holdfast import InvalidKey, Memory

_MAX_NAME = 128  # characters of a project id
_PLAIN = re.compile(r"[a-z0-9-]")
_QUOTED = re.compile(r"_([0-9a-f]{2})")
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")  # no digits: a check for secrets takes them for a token


def project_name(prefix: str, *parts: str) -> str:
    """Return the project id of some names, which may be any text; different names never have the same one.

    A capital letter is quoted too, because some file systems do not distinguish it.
    """
    name = ".".join([prefix, *map(_quote, parts)])
    if len(name) <= _MAX_NAME:
        return name
    return f"{prefix}._-{sha256(name.encode()).hexdigest()}"  # no quoted name contains `_-`


def name_parts(prefix: str, project: str) -> list[str] | None:
    """Return the names of a project id; None if they were too long to be in it."""
    rest = project.removeprefix(f"{prefix}.")
    return None if rest.startswith("_-") else [_unquote(part) for part in rest.split(".")]


def digest_tag(kind: str, value: str) -> str:
    """Return a tag that stands for a value of any length."""
    return f"{kind}-{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:32].translate(_LETTERS)}"


def _quote(part: str) -> str:
    try:
        return "".join(chr(byte) if _PLAIN.match(chr(byte)) else f"_{byte:02x}" for byte in part.encode())
    except UnicodeEncodeError:
        raise InvalidKey("an id is not Unicode: it has a lone surrogate", "Repair the id") from None


def _unquote(part: str) -> str:
    return _QUOTED.sub(lambda found: chr(int(found[1], 16)), part).encode("latin-1").decode()


class MemoryPool:
    """Open memories by project. Several threads can use one at a time; only memories that are not in use are closed."""

    def __init__(self, open_memory: Callable[[str], Memory], size: int = 32) -> None:
        self._open_memory, self._size = open_memory, size
        self._lock = threading.Lock()
        self._open: dict[str, Memory] = {}  # the last used is the last
        self._users: dict[str, int] = {}  # calls that use the memory of a project now

    @contextmanager
    def use(self, project: str) -> Iterator[Memory]:
        """Lend the memory of a project."""
        with self._lock:
            memory = self._open.pop(project, None) or self._open_memory(project)
            self._open[project] = memory
            self._users[project] = self._users.get(project, 0) + 1
        try:
            yield memory
        finally:
            with self._lock:
                self._users[project] -= 1
                self._close_idle(self._size)

    def close(self) -> None:
        """Close every memory that is not in use; a later call opens it again."""
        with self._lock:
            self._close_idle(0)

    def _close_idle(self, keep: int) -> None:
        for project in [one for one in self._open if not self._users[one]][: max(0, len(self._open) - keep)]:
            self._open.pop(project).close()
            del self._users[project]
