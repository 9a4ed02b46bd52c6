"""Connections of this process, by address: as many as the settings allow, kept open between uses, thrown away when they die.

No thread of its own: whoever needs a connection makes it, and hears at once why it cannot be made. A fork begins with
none: the parent's stay the parent's.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import Counter

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.errors import Busy, ConfigError
from holdfast.postgres.contact import Contact
from holdfast.postgres.line import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.postgres.store import Store

_log = logging.getLogger("holdfast.postgres")  # a gateway writes it down; elsewhere nobody is told unless they ask
_log.addHandler(logging.NullHandler())
_STALE = 300  # seconds after which an unused connection is not trusted any more
_CONNECT_SECONDS = 5
_AVOID_SECONDS = 10


class Pool:
    """At most so many connections to one address; a thread that has one already is given a second one beyond that. Where
    several tenants ask, one of them has half of them at most: however many requests it sends, the others are answered."""

    def __init__(self, url: str, most: int, patience: float, primary: bool = True, contact: Contact | None = None) -> None:
        self.parameters = parameters(url, primary)
        self.contact = contact or Contact()
        self._most = most
        self._patience = patience
        self._change = threading.Condition()
        self._idle: list[Line] = []
        self._out = 0
        self._held = Counter[int]()  # how many each thread has,
        self._used = Counter[str]()  # and each tenant
        self._several = False  # whether more than one tenant ever asked:
        self._first = ""  # one other than this
        self.ready = False  # whether its schema was looked at
        self._avoided = 0.0  # until when, because it did not answer,
        self._trouble = ""  # and what was wrong then, until it answers

    def borrow(self, end: float, tenant: str = "") -> Line:
        """A connection that seems alive; waits until then for one of the others to come back."""
        me = threading.get_ident()
        with self._change:
            self._first = self._first or tenant
            self._several = self._several or tenant not in ("", self._first)
            while self._refuses(tenant) and not self._held[me]:  # who has one and waited would hold up everybody
                if not self._change.wait(end - time.monotonic()) and (why := self._refuses(tenant)):
                    raise Busy(why, "Try again in a moment, or set store.connections higher")
            self._out += 1
            self._held[me] += 1
            self._used[tenant] += 1
        try:
            line = self._alive() or self._connect(end)
        except BaseException:
            self._one_less(me, tenant)
            raise
        line.holder, line.tenant = me, tenant
        return line

    def _refuses(self, tenant: str) -> str:
        """Why it gives no connection to a tenant now, if it does not. Who has none yet (and shows a token) has no share."""
        if self._out >= self._most:
            return f"all {self._most} connections to the database are in use"
        share = max(self._most // 2, 1)
        if self._several and tenant and self._used[tenant] >= share:
            return f"all {share} connections to the database that one tenant may have are in use"
        return ""

    def give_back(self, line: Line) -> None:
        """Ready for the next one, unless it was left within a transaction."""
        line.since = time.monotonic()
        line.warnings.clear()
        keep = line.idle
        with self._change:
            keep = keep and self._out + len(self._idle) <= self._most
            if keep:
                self._idle.append(line)
            self._one_less(line.holder, line.tenant)
        if not keep:
            line.close()

    def avoid(self, trouble: str = "") -> None:
        """Leave it alone for a while: a replica that is gone must not hold up every question. The first time it is told why."""
        self._avoided = time.monotonic() + _AVOID_SECONDS
        self.close()
        with self._change:
            begun, self._trouble = bool(trouble and not self._trouble), self._trouble or trouble
        if begun:
            _log.warning("the read replica is left out, the primary answers: %s", trouble)

    def answered(self) -> None:
        """What was wrong with it, if anything was, is over."""
        if self._trouble:
            with self._change:
                over, self._trouble = bool(self._trouble), ""
            if over:
                _log.warning("the read replica answers again")

    @property
    def avoided(self) -> bool:
        return time.monotonic() < self._avoided

    def close(self) -> None:
        """Hang up where nobody is talking."""
        with self._change:
            idle, self._idle = self._idle, []
        for line in idle:
            line.close()

    def _one_less(self, holder: int, tenant: str) -> None:
        with self._change:
            self._out -= 1
            self._held[holder] -= 1
            self._used[tenant] -= 1
            if not self._held[holder]:
                del self._held[holder]
            if not self._used[tenant]:
                del self._used[tenant]
            self._change.notify_all()  # of those who wait, not every one may have it

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

    def _connect(self, end: float) -> Line:
        """A new one, in the time that is left, to whichever host there is."""
        hosts = str(self.parameters.get("host", "")).count(",") + 1
        seconds = self.contact.seconds_to_connect(end, hosts)
        try:
            connection = psycopg.connect(**{**self.parameters, **_within(seconds, self.parameters["connect_timeout"])})
        finally:
            self.contact.looked()
        return Line(connection, self._patience, lambda: self.contact.answers(_where(self.parameters, connection)))


def parameters(url: str, primary: bool = True) -> dict[str, Any]:
    """What to connect with: what the URL says, and that a server that is dead is found out soon."""
    try:
        said = conninfo_to_dict(url)
        [int(port) for port in str(said.get("port") or 5432).split(",") if port]
    except (psycopg.Error, ValueError):
        name = "store.url" if primary else "store.read_url"
        raise ConfigError(f"{name} is not a valid address", "Write it as postgresql://user@host:5432/database") from None
    if primary and "," in str(said.get("host", "")):
        said.setdefault("target_session_attrs", "read-write")  # of several, the one that can be written to
    usual: dict[str, Any] = {"application_name": "holdfast", "connect_timeout": _CONNECT_SECONDS, "tcp_user_timeout": 20_000}
    usual |= {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    always = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
    return {**usual, **{name: value for name, value in said.items() if value is not None}, **always}


def _given_seconds(url: str) -> int:
    """How long a connection may take, as the address itself says; nought where it does not, or makes no sense."""
    try:
        return max(int(str(conninfo_to_dict(url).get("connect_timeout", 0))), 0)
    except (psycopg.Error, ValueError):
        return 0


def _within(seconds: int, usual: object) -> dict[str, Any]:
    """No longer than that, nor than is usual; what is no number is told by the client library."""
    try:
        given = int(str(usual))
        return {"connect_timeout": min(seconds, given) if given > 0 else seconds}
    except ValueError:
        return {}


def _where(given: dict[str, Any], connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """What to connect with to the very server that this connection leads to."""
    there = connection.info
    address = {**given, "host": there.host, "port": there.port}
    if "hostaddr" in address:
        address["hostaddr"] = there.hostaddr
    return address


_pools: dict[tuple[str, str, int], Pool] = {}
_contacts: dict[str, Contact] = {}
_making = threading.Lock()


def pool_of(store: Store, kind: str = "") -> Pool:
    """The pool for this store's address: its own, that of its replica ("read"), or one that only holds locks ("locks")."""
    url = store.read_url if kind == "read" else store.url
    key = url, kind, store.connections
    with _making:
        pool = _pools.get(key)
        if pool is None:
            contact = _contacts.setdefault(url, Contact(_given_seconds(url)))
            pool = _pools[key] = Pool(url, store.connections, store.statement_seconds, kind != "read", contact)
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
    _contacts.clear()


os.register_at_fork(after_in_child=_in_the_child)
atexit.register(hang_up)
