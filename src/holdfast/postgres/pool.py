"""Connections of this process, by address: as many as the settings allow, kept open between uses, thrown away when they die.

No thread of its own: whoever needs a connection makes it, and hears at once why it cannot be made. A fork begins with
none: the parent's stay the parent's.
"""

from __future__ import annotations

import atexit
import os
import threading
import time

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.errors import Busy, ConfigError
from holdfast.postgres.line import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.postgres.store import Store

_STALE = 300  # seconds after which an unused connection is not trusted any more
STRANGER_SECONDS = 5  # how long an address that never answered is tried
_CONNECT_SECONDS = 5
_AVOID_SECONDS = 10


class Pool:
    """At most so many connections to one address; a thread that has one already is given a second one beyond that."""

    def __init__(self, url: str, most: int, patience: float, primary: bool = True) -> None:
        self.parameters = parameters(url, primary)
        self._most = most
        self._patience = patience
        self._change = threading.Condition()
        self._idle: list[Line] = []
        self._out = 0
        self._held: dict[int, int] = {}  # how many each thread has
        self.met = False  # whether it ever answered
        self.ready = False  # whether its schema was looked at
        self._avoided = 0.0  # until when, because it did not answer

    def borrow(self, end: float) -> Line:
        """A connection that seems alive; waits until then for one of the others to come back."""
        me = threading.get_ident()
        with self._change:
            while self._out >= self._most and not self._held.get(me):  # who has one and waited would hold up everybody
                if not self._change.wait(end - time.monotonic()) and self._out >= self._most:
                    raise Busy(
                        f"all {self._most} connections to the database are in use",
                        "Try again in a moment, or set store.connections higher",
                    )
            self._out += 1
            self._held[me] = self._held.get(me, 0) + 1
        try:
            line = self._alive() or self._connect()
        except BaseException:
            self._one_less(me)
            raise
        line.holder = me
        return line

    def give_back(self, line: Line) -> None:
        """Ready for the next one, unless it was left within a transaction."""
        line.since = time.monotonic()
        line.warnings.clear()
        keep = line.idle
        with self._change:
            keep = keep and self._out + len(self._idle) <= self._most
            if keep:
                self._idle.append(line)
            self._one_less(line.holder)
        if not keep:
            line.close()

    def avoid(self) -> None:
        """Leave it alone for a while: a replica that is gone must not hold up every question."""
        self._avoided = time.monotonic() + _AVOID_SECONDS
        self.close()

    @property
    def avoided(self) -> bool:
        return time.monotonic() < self._avoided

    def close(self) -> None:
        """Hang up where nobody is talking."""
        with self._change:
            idle, self._idle = self._idle, []
        for line in idle:
            line.close()

    def _one_less(self, holder: int) -> None:
        with self._change:
            self._out -= 1
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]
            self._change.notify()

    def _alive(self) -> Line | None:
        """The connection that was used last, if it still is one."""
        while True:
            with self._change:
                if not self._idle:
                    return None
                line = self._idle.pop()
            if time.monotonic() - line.since < _STALE and not line.hung_up():
                return line
            line.close()

    def _connect(self) -> Line:
        connection = psycopg.connect(**self.parameters)
        self.met = True
        return Line(connection, self._patience)


def parameters(url: str, primary: bool = True) -> dict[str, Any]:
    """What to connect with: what the URL says, and that a server that is dead is found out soon."""
    try:
        said = conninfo_to_dict(url)
        [int(port) for port in str(said.get("port") or 5432).split(",") if port]
    except (psycopg.Error, ValueError):
        raise ConfigError("store.url is not a valid address", "Write it as postgresql://user@host:5432/database") from None
    if primary and "," in str(said.get("host", "")):
        said.setdefault("target_session_attrs", "read-write")  # of several, the one that can be written to
    usual: dict[str, Any] = {"application_name": "holdfast", "connect_timeout": _CONNECT_SECONDS, "tcp_user_timeout": 20_000}
    usual |= {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    always = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
    return {**usual, **{name: value for name, value in said.items() if value is not None}, **always}


_pools: dict[tuple[str, str, int], Pool] = {}
_making = threading.Lock()


def pool_of(store: Store, kind: str = "") -> Pool:
    """The pool for this store's address: its own, that of its replica ("read"), or one that only holds locks ("locks")."""
    url = store.read_url if kind == "read" else store.url
    key = url, kind, store.connections
    with _making:
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = Pool(url, store.connections, store.statement_seconds, primary=kind != "read")
        return pool


def hang_up(url: str | None = None) -> None:
    """Close what is open to an address, or to all of them; whoever comes next connects anew."""
    with _making:
        found = [pool for key, pool in _pools.items() if url in (None, key[0])]
    for pool in found:
        pool.close()


_of_the_parent: list[Pool] = []  # the driver leaves connections alone that another process made


def _in_the_child() -> None:
    global _making
    _making = threading.Lock()
    _of_the_parent.extend(_pools.values())
    _pools.clear()


os.register_at_fork(after_in_child=_in_the_child)
atexit.register(hang_up)
