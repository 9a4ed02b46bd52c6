"""A named lock between processes, per tenant: held by a transaction on a connection of its own, freed when that ends."""

from __future__ import annotations

import threading
import time
from hashlib import blake2b

from holdfast.base.fork import on_fork
from holdfast.errors import Busy
from holdfast.postgres.database import Session
from holdfast.postgres.pool import get_pool
from holdfast.postgres.sql import SQL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from holdfast.postgres.settings import PostgresSettings


class Lock:
    """The interface of a home's file lock, on PostgreSQL."""

    def __init__(self, settings: PostgresSettings, name: str, seconds: float) -> None:
        self._settings = settings
        self._name = name
        self._seconds = seconds
        self._number = _lock_number(settings.tenant, name)
        self._session: Session | None = None

    def __enter__(self) -> Self:
        if not self.acquire(self._seconds):
            raise Busy(f"another process has held the lock on {self._name} for {self._seconds:g} s", "Try again")
        return self

    def acquire(self, seconds: float) -> bool:
        """Take the lock and return whether it was free in time. Threads of this process wait here, not on a connection each."""
        end = time.monotonic() + seconds
        local = _get_local_lock(self._settings.url, self._number)
        if not local.acquire(timeout=max(seconds, 0)):
            return False
        try:
            pause = 0.002
            while not self._try_lock():
                if time.monotonic() + pause >= end:
                    local.release()
                    return False
                time.sleep(pause)
                pause = min(pause * 1.5, 0.05)
        except BaseException:
            local.release()
            raise
        return True

    def _try_lock(self) -> bool:
        session = Session(self._settings, self._seconds, idle_seconds=_NO_LIMIT, pool=get_pool(self._settings, "locks"))
        is_locked = False
        try:
            is_locked = bool(session.execute(SQL["try_lock"], {"number": self._number}).fetchone()[0])
            return is_locked
        finally:
            if is_locked:
                self._session = session
            else:
                session.rollback()

    def release(self) -> None:
        """Release the lock; in a child process that was forked while it was held, do nothing."""
        session, self._session = self._session, None
        if session is not None and session.is_of_this_process():
            session.rollback()
            _get_local_lock(self._settings.url, self._number).release()

    def __exit__(self, *_: object) -> None:
        self.release()


_NO_LIMIT = 0.0
_locks: dict[tuple[str, int], threading.Lock] = {}
_guard = threading.Lock()


def _get_local_lock(url: str, number: int) -> threading.Lock:
    with _guard:
        return _locks.setdefault((url, number), threading.Lock())


def _lock_number(tenant: str, name: str) -> int:
    digest = blake2b(f"{tenant}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8, person=b"holdfast").digest()
    return int.from_bytes(digest, "big", signed=True)


def _after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    _locks.clear()


on_fork(child=_after_fork)
