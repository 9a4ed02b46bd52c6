"""Health of the gateway: whether its database answers and whether memory can be written, and a log line when that changes."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, from_os, no_space

if TYPE_CHECKING:
    from holdfast.server.logs import Logs

_KEEP_SECONDS = 1.0  # for which a result is used again: the request that asks for it needs no token
_PROBE_BYTES = 64 * 1024
MIN_FREE_BYTES = 1024 * 1024  # with less, a purge is not started either


class Health:
    """Run the checks at most once a second, for any number of threads. A check raises the error that it finds."""

    def __init__(self, **checks: Callable[[], None]) -> None:
        self._checks = checks
        self._lock = threading.Lock()
        self._problems: dict[str, HoldfastError] = {}
        self._checked_at = -_KEEP_SECONDS

    def find_problems(self) -> dict[str, HoldfastError]:
        """Return the error of each part that does not work; empty if the gateway is ready."""
        with self._lock:  # of threads that ask at the same time, one checks
            if time.monotonic() - self._checked_at >= _KEEP_SECONDS:
                self._problems = {name: error for name, check in self._checks.items() if (error := _run(check))}
                self._checked_at = time.monotonic()
            return self._problems


class OutageLog:
    """Write one line when a part stops working, and one when it works again."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._since: dict[str, float] = {}

    def update(self, problems: dict[str, HoldfastError]) -> None:
        now = time.monotonic()
        for part, error in problems.items():
            if part not in self._since:
                self._since[part] = now
                self._logs.log("error", event="outage", part=part, code=error.code, message=error.message)
        for part in [part for part in self._since if part not in problems]:
            seconds = round(now - self._since.pop(part), 1)
            self._logs.log("warning", event="outage over", part=part, seconds=seconds)


def check_disk(home: str) -> None:
    """Raise `DiskTrouble` if nothing can be written to the home: the disk is full or read-only, or it is not ours."""
    if not os.path.isdir(home):
        return  # the first write creates it
    try:
        room = os.statvfs(home)
        if room.f_bavail * room.f_frsize < MIN_FREE_BYTES:
            raise no_space(f"less than {MIN_FREE_BYTES // 1024} KiB are free on the disk of {home}", home)
        with tempfile.TemporaryFile(dir=home, buffering=0) as probe:  # a quota shows only when something is written
            probe.write(bytes(_PROBE_BYTES))
    except OSError as error:
        raise from_os(error, f"cannot write to {home}") from error


def _run(check: Callable[[], None]) -> HoldfastError | None:
    try:
        check()
    except HoldfastError as error:
        return error
    return None
