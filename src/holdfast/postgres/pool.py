"""The connections of this process, by address.

psycopg_pool keeps them open between uses. Three things it does not do are added here: a limit per tenant (`FairShare`), an
error with its cause for waiting callers when a connection cannot be made, and new connections for all callers when one died.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed

from holdfast.base import tracing
from holdfast.base.fork import on_fork
from holdfast.errors import Busy
from holdfast.postgres.connection import Connection
from holdfast.postgres.outage import Outage
from holdfast.postgres.settings import (
    connect_timeout,
    connection_parameters,
    host_count,
    same_server,
    with_timeout,
)

if TYPE_CHECKING:
    from holdfast.postgres.settings import PostgresSettings

_log = logging.getLogger("holdfast.postgres")  # the gateway writes it; elsewhere only an application that configures it
_log.addHandler(logging.NullHandler())
_NAME = "holdfast"
_IDLE_SECONDS = 300  # after which psycopg_pool begins to close connections that are not used
_AVOID_SECONDS = 10


class FairShare:
    """A semaphore that gives one tenant at most half of its slots once several tenants ask for one.

    A thread that already has a slot never waits for a second one: two such threads would wait for each other for ever.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._changed = threading.Condition()
        self._used = 0
        self.waiting = 0  # threads that wait for a slot
        self._by_thread = Counter[int]()
        self._by_tenant = Counter[str]()
        self._first_tenant = ""
        self.several_tenants = False

    def acquire(self, end: float, tenant: str) -> bool:
        """Take a slot and return whether it is within the limit; raise Busy if none is free by `end` (time.monotonic)."""
        thread = threading.get_ident()
        with self._changed:
            self._first_tenant = self._first_tenant or tenant
            self.several_tenants = self.several_tenants or tenant not in ("", self._first_tenant)
            while self._refusal_reason(tenant) and not self._by_thread[thread]:
                self.waiting += 1
                try:
                    is_changed = self._changed.wait(end - time.monotonic())
                finally:
                    self.waiting -= 1
                if not is_changed and (reason := self._refusal_reason(tenant)):
                    raise Busy(reason, "Try again in a moment, or raise store.connections")
            self._used += 1
            self._by_thread[thread] += 1
            self._by_tenant[tenant] += 1
            return self._used <= self._size

    def release(self, thread: int, tenant: str) -> None:
        """Release the slot that this thread took for this tenant."""
        with self._changed:
            self._used -= 1
            self._by_thread[thread] -= 1
            if not self._by_thread[thread]:
                del self._by_thread[thread]
            self._by_tenant[tenant] -= 1
            if not self._by_tenant[tenant]:
                del self._by_tenant[tenant]
            self._changed.notify_all()  # not every waiter may take it

    def _refusal_reason(self, tenant: str) -> str:
        """Return why this tenant gets no slot now, or "". A request whose token is not checked yet has no tenant."""
        if self._used >= self._size:
            return f"all {self._size} connections to the database are in use"
        share = max(self._size // 2, 1)
        if self.several_tenants and tenant and self._by_tenant[tenant] >= share:
            return f"all {share} connections that one tenant can use are busy"
        return ""


class PoolState(NamedTuple):
    """The connections of one pool, and the threads that wait for one."""

    kind: str  # primary, read or locks
    max: int
    open: int
    idle: int
    waiting: int


class PoolKey(NamedTuple):
    """Which pool is meant: connections of another size or for another purpose are not shared."""

    url: str
    kind: str
    size: int


class Connections(ConnectionPool[Connection]):
    """A psycopg_pool that closes itself when it cannot connect, so that waiting callers get the error at once."""

    def __init__(self, pool: Pool, size: int, seconds: int) -> None:
        self.failure: BaseException | None = None
        self._connect_to = pool, seconds
        super().__init__(
            kwargs={"opener": self._open_connection}, connection_class=Connection, min_size=0, max_size=size,
            max_idle=_IDLE_SECONDS, name=_NAME, num_workers=1, open=True,
        )  # fmt: skip

    def _open_connection(self) -> Connection:
        pool, seconds = self._connect_to
        try:
            connection = pool.connect(seconds)
        except BaseException as error:
            self.failure = error
            threading.Thread(target=self.close, name=f"{_NAME}-close", daemon=True).start()  # it joins this thread
            raise
        connection.pool = self
        return connection


class Pool:
    """At most `size` connections to one address, and one more for each thread that has one and needs a second."""

    def __init__(
        self, url: str, size: int, statement_seconds: float, primary: bool = True, outage: Outage | None = None
    ) -> None:
        self.parameters = connection_parameters(url, primary)
        self.outage = outage or Outage()
        self.share = FairShare(size)
        self._size = size
        self._statement_seconds = statement_seconds
        self._hosts = host_count(self.parameters)
        self._guard = threading.Lock()
        self._open: Connections | None = None
        self.ready = False  # whether the schema was checked
        self._avoid_until = 0.0
        self._trouble = ""  # what was wrong when the replica last failed, until it answers

    def acquire(self, end: float, tenant: str = "") -> Connection:
        """Return a connection that seems alive; wait until `end` (time.monotonic) for one to be released."""
        with tracing.span("postgres.acquire_connection"):
            return self._acquire(end, tenant)

    def _acquire(self, end: float, tenant: str) -> Connection:
        thread = threading.get_ident()
        within_limit = self.share.acquire(end, tenant)
        try:
            if within_limit:
                connection = self._acquire_pooled(end)
            else:
                connection = self.connect(self.outage.seconds_to_connect(self._hosts))
        except BaseException:
            self.share.release(thread, tenant)
            raise
        connection.holder = thread, tenant
        return connection

    def release(self, connection: Connection) -> None:
        """Keep the connection for the next caller, unless it is dead, in a transaction, or beyond the limit."""
        connection.warnings.clear()
        pool = connection.pool
        if pool is None:
            connection.close()
        else:
            if not connection.is_idle:
                connection.close()
                pool.close(0)  # the others lead to the same server
            pool.putconn(connection)
        self.share.release(*connection.holder)

    def _acquire_pooled(self, end: float) -> Connection:
        while True:
            pool = self._get_open_pool()
            seconds = max(end - time.monotonic(), self.outage.least_seconds(self._hosts))
            try:
                connection = pool.getconn(seconds)
            except PoolClosed:
                if pool.failure is not None:
                    raise pool.failure.with_traceback(None) from None
                continue  # another thread found that its connection is dead
            if not connection.is_closed_by_server():
                return connection
            pool.close(0)
            pool.putconn(connection)
            if time.monotonic() >= end:
                raise psycopg.OperationalError("the server closed the connection")

    def _get_open_pool(self) -> Connections:
        with self._guard:
            if self._open is None or self._open.closed:
                self._open = Connections(self, self._size, self.outage.seconds_to_connect(self._hosts))
            else:
                self.outage.check()
            return self._open

    def connect(self, seconds: int) -> Connection:
        """Make a new connection; at most this many seconds per host."""
        try:
            connection = Connection.connect(**with_timeout(self.parameters, seconds))
        finally:
            self.outage.record_attempt()
        try:
            address = same_server(self.parameters, connection)
            connection.enter_pipeline(self._statement_seconds, lambda: self.outage.is_answering(address))
            connection.detect_pooler()
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the connections that are not in use; the others are closed when they are released."""
        with self._guard:
            pool, self._open = self._open, None
        if pool is not None:
            pool.close(0)

    def state(self, kind: str) -> PoolState:
        """Return how many connections there are now."""
        with self._guard:
            stats = self._open.get_stats() if self._open is not None else {}
        waiting = self.share.waiting + stats.get("requests_waiting", 0)
        return PoolState(
            kind=kind or "primary", max=self._size, open=stats.get("pool_size", 0), idle=stats.get("pool_available", 0),
            waiting=waiting,
        )  # fmt: skip

    # --- a replica --------------------------------------------------------------------------------------------------

    def avoid_replica(self, trouble: str = "") -> None:
        """Leave the replica out for a while, so that it does not delay every query; log the first time why."""
        self._avoid_until = time.monotonic() + _AVOID_SECONDS
        self.close()
        with self._guard:
            begun, self._trouble = bool(trouble and not self._trouble), self._trouble or trouble
        if begun:
            _log.warning("the read replica is not used, the primary answers: %s", trouble)

    def record_replica_answer(self) -> None:
        """Log that the replica answers, if it did not before."""
        if self._trouble:
            with self._guard:
                over, self._trouble = bool(self._trouble), ""
            if over:
                _log.warning("the read replica is used again")

    @property
    def is_avoided(self) -> bool:
        return time.monotonic() < self._avoid_until


_pools: dict[PoolKey, Pool] = {}
_outages: dict[str, Outage] = {}
_guard = threading.Lock()


def get_pool(settings: PostgresSettings, kind: str = "") -> Pool:
    """Return the pool for this store's address: its own, that of its replica ("read"), or one that holds locks ("locks")."""
    url = settings.read_url if kind == "read" else settings.url
    key = PoolKey(url, kind, settings.connections)
    with _guard:
        pool = _pools.get(key)
        if pool is None:
            outage = _outages.setdefault(url, Outage(connect_timeout(url)))
            pool = _pools[key] = Pool(url, settings.connections, settings.statement_seconds, kind != "read", outage)
        return pool


def pool_states() -> list[PoolState]:
    """Return the state of every pool of this process."""
    with _guard:
        pools = list(_pools.items())
    return [pool.state(key.kind) for key, pool in pools]


def close_pools(url: str | None = None) -> None:
    """Close the unused connections to an address, or to all; the next caller connects again."""
    with _guard:
        found = [pool for key, pool in _pools.items() if url in (None, key.url)]
    for pool in found:
        pool.close()


_pools_of_parent: list[Pool] = []  # kept: deleting a pool would wait for threads and locks that are not in this process


def _after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    _pools_of_parent.extend(_pools.values())
    _pools.clear()
    _outages.clear()


def _is_of_another_pool(record: logging.LogRecord) -> bool:
    """Return whether psycopg_pool logs about another pool: Holdfast reports its own errors, without names of users."""
    return not (isinstance(record.args, tuple) and record.args and str(record.args[0]).startswith(_NAME))


logging.getLogger("psycopg.pool").addFilter(_is_of_another_pool)
on_fork(child=_after_fork)
atexit.register(close_pools)
