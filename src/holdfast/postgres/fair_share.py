"""Limit how many connections are in use, in all and per tenant."""

from __future__ import annotations

import threading
import time
from collections import Counter

from holdfast.errors import Busy


class FairShare:
    """A semaphore that gives one tenant at most half of its slots once several tenants ask for one.

    A thread that already has a slot never waits for a second one: two such threads would wait for each other for ever.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._changed = threading.Condition()
        self._used = 0
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
            while self._refusal(tenant) and not self._by_thread[thread]:
                if not self._changed.wait(end - time.monotonic()) and (why := self._refusal(tenant)):
                    raise Busy(why, "Try again in a moment, or set store.connections higher")
            self._used += 1
            self._by_thread[thread] += 1
            self._by_tenant[tenant] += 1
            return self._used <= self._size

    def release(self, thread: int, tenant: str) -> None:
        """Give back the slot that this thread took for this tenant."""
        with self._changed:
            self._used -= 1
            self._by_thread[thread] -= 1
            if not self._by_thread[thread]:
                del self._by_thread[thread]
            self._by_tenant[tenant] -= 1
            if not self._by_tenant[tenant]:
                del self._by_tenant[tenant]
            self._changed.notify_all()  # not every waiter may take it

    def _refusal(self, tenant: str) -> str:
        """Return why this tenant gets no slot now, or "". A request whose token is not checked yet has no tenant."""
        if self._used >= self._size:
            return f"all {self._size} connections to the database are in use"
        share = max(self._size // 2, 1)
        if self.several_tenants and tenant and self._by_tenant[tenant] >= share:
            return f"all {share} connections to the database that one tenant may have are in use"
        return ""
