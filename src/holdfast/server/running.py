"""Which server of a home runs: its address in a file of the home, for `holdfast ui` on the same machine.

The file also names the process, which holds a lock as long as it lives: what a killed server left behind counts for nothing.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast import home as home_folder
from holdfast.base.record import Record
from holdfast.errors import HoldfastError
from holdfast.ledger.idempotency import has_ended, process_name

_FILE = os.path.join("run", "server.json")
_MAX_BYTES = 4096


class RunningServer(Record):
    """A server: its address, its process id and the name by which others see that it lives."""

    url: str
    pid: int
    process: str


@contextmanager
def announce(home: str, url: str) -> Iterator[None]:
    """Say in the home that this process serves it, until the end of the `with` block; a read-only home says nothing."""
    server: RunningServer | None = None
    with suppress(HoldfastError, OSError):
        server = RunningServer(url, os.getpid(), process_name(home))
        home_folder.check_owner(home, create=True)
        _write(home, server)
    try:
        yield
    finally:
        if server is not None and os.getpid() == server.pid and _read(home) == server:
            with suppress(OSError):
                os.unlink(os.path.join(home, _FILE))


def find_server(home: str) -> RunningServer | None:
    """Return the server of this home that runs now, if one said so."""
    server = _read(home)
    if server is None or not server.process or has_ended(home, server.process):
        return None
    return server if _is_alive(server.pid) else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(home: str) -> RunningServer | None:
    try:
        fd = os.open(os.path.join(home, _FILE), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            found = json.loads(file.read(_MAX_BYTES))
        return RunningServer(str(found["url"]), int(found["pid"]), str(found["process"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(home: str, server: RunningServer) -> None:
    path = os.path.join(home, _FILE)
    temporary = f"{path}.{secrets.token_hex(8)}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, json.dumps(server.as_dict()).encode())
    finally:
        os.close(fd)
    os.replace(temporary, path)
