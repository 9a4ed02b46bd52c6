"""Idempotency keys: a request that is sent twice is done once, known by its agent and a key that the caller chose.

The stored answer consists of ids from which it can be made again, never of a text: purged text must not live on here.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from holdfast.base.fork import on_fork
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import Busy, Conflict
from holdfast.home import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ledger.interface import LedgerDatabase, Transaction

_DAY = 86400
_PROCESS_NAME = pattern(r"alive\+[0-9]+-[0-9a-f]{12}\Z")
_HOUR = 3600  # after which the file of an ended process is removed
_names_lock = allocate_lock()
_names: dict[str, tuple[str, Lock]] = {}  # by home: the name of this process, and the lock on its file


class KeptAnswer(Record):
    """The stored answer of a request."""

    status: int
    answer: str


class IdempotencyKeys:
    """The keys of requests, kept for a day."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def begin(self, agent: str, key: str, digest: str, now: int, *, lease: int = 120, keep: int = _DAY) -> KeptAnswer | None:
        """Return the answer that was given already, or None: then do the request, and call `finish` or `drop`.

        Raises Busy while another process does it, and Conflict if the key was used for another request. A request whose
        process has ended may be done again: at once if that is certain, else after `lease` seconds."""
        home = self._database.home
        process = process_name(home)

        def find_or_begin(transaction: Transaction) -> KeptAnswer | None:
            transaction.lock(f"repeats {agent} {key}")
            transaction.run("keys.remove_old", before=now - keep)
            for kept_digest, status, answer, begun in transaction.run("keys.find", agent=agent, key=key):
                if kept_digest != digest:
                    raise Conflict("this idempotency key was used for another request", "Use a new key for each request")
                if status is not None:
                    return KeptAnswer(status, answer)
                if abs(now - begun) < lease and not has_ended(home, answer):
                    message = "a request with this idempotency key is in progress, or its process ended before it finished"
                    raise Busy(message, f"Try again in a moment, at the latest {lease} seconds after it began")
            transaction.run("keys.begin", agent=agent, key=key, digest=digest, process=process, now=now)
            return None

        return self._database.write(find_or_begin, durable=False, retry_after_reset=False)

    def finish(self, agent: str, key: str, digest: str, *, status: int, answer: str) -> None:
        """Keep the answer of a request that is done."""
        self._write("keys.finish", agent=agent, key=key, digest=digest, status=status, answer=answer)

    def drop(self, agent: str, key: str, digest: str) -> None:
        """Forget a request that was not done, so that the next one with this key may try."""
        self._write("keys.drop", agent=agent, key=key, digest=digest)

    def _write(self, statement: str, **values: str | int) -> None:
        self._database.write(lambda transaction: transaction.run(statement, **values), durable=False, retry_after_reset=False)


# --- processes --------------------------------------------------------------------------------------------------------

# Each process holds a lock on a file of its own, which the kernel releases when the process ends.


def process_name(home: str) -> str:
    """Return the name by which other processes see that this one is running; "" without a home."""
    if not home:
        return ""
    with _names_lock:
        if home in _names and os.path.lexists(_process_file(home, _names[home][0])):
            return _names[home][0]
        _remove_old_files(home)
        name = f"alive+{os.getpid()}-{os.urandom(6).hex()}"
        lock = Lock(home, name, 0)
        if not lock.acquire(0):
            return ""
        _names[home] = name, lock
        return name


def has_ended(home: str, name: str) -> bool:
    """Return whether the process of that name has certainly ended; False if its file is missing."""
    if not _PROCESS_NAME.match(name) or not os.path.lexists(_process_file(home, name)):
        return False
    lock = Lock(home, name, 0)
    if not lock.acquire(0):
        return False
    lock.release()
    return True


def _remove_old_files(home: str) -> None:
    """Remove the files of processes that ended long ago."""
    try:
        names = [file.removesuffix(".lock") for file in os.listdir(os.path.dirname(_process_file(home, "")))]
        for name in names:
            is_old = _PROCESS_NAME.match(name) and os.lstat(_process_file(home, name)).st_mtime < time.time() - _HOUR
            if is_old and has_ended(home, name):
                os.unlink(_process_file(home, name))
    except OSError:
        pass  # there are none yet, or another process removes them too


def _process_file(home: str, name: str) -> str:
    return os.path.join(home, "run", "locks", f"{name}.lock")


def _after_fork() -> None:
    """Let a child process have a name of its own: its parent's ends with the parent."""
    global _names_lock
    _names_lock = allocate_lock()
    for _, lock in _names.values():
        lock.close_in_child()
    _names.clear()


on_fork(child=_after_fork)
