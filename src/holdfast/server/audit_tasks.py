"""What the gateway does for its audit beside the requests: move the mark, record failed authentications, write what a full disk
kept out, remove old rows, and ship new ones. Each runs in a thread of its own pool, so no request waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from holdfast.access.gate import LOCAL
from holdfast.base import dates
from holdfast.errors import Busy, HoldfastError
from holdfast.server.audit_shipper import AuditShipper
from holdfast.server.threads import ThreadPool

if TYPE_CHECKING:
    from holdfast.access import AccessGate
    from holdfast.server.gateway import Gateway
    from holdfast.server.logs import Logs

_KEEP_SECONDS = 1.0  # between two moves of the mark
_FAILED_SECONDS = 5.0  # to wait after a failure
_PRUNE_SECONDS = 3600.0
_DAY = 86400


class AuditTasks:
    """The tasks of one gateway."""

    def __init__(self, gateway: Gateway, logs: Logs) -> None:
        self._gateway, self._logs = gateway, logs
        self._threads = ThreadPool(2)
        self._shipper = gateway.audit_shipper = AuditShipper(gateway.config)
        self._is_started = False
        self._pruned_at = -_PRUNE_SECONDS

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the tasks inside a `with`; at its end, what a thread has begun is finished."""
        tasks = [asyncio.create_task(self._repeat(work)) for work in (self.keep, self._shipper.ship)]
        try:
            yield
        finally:
            self._shipper.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._threads(self._shipper.close_ledgers)
            self._threads.close()

    async def _repeat(self, work: Callable[[], float]) -> None:
        """Call `work` again after as many seconds as it returns."""
        while True:
            try:
                seconds = await self._threads(work)
            except Exception as error:  # the task must go on, whatever it is
                self._logs.log("error", event="audit task", trouble=type(error).__name__)
                seconds = _FAILED_SECONDS
            await asyncio.sleep(seconds)

    def keep(self) -> float:
        """Bring the audit up to date; return after how many seconds to call this again."""
        gate = self._gateway.gate
        try:
            self._start(gate)
            gate.record_failures()
            if not gate.config.store:
                gate.ledger.agents.apply_pending()
            for ledger in gate.open_ledgers():
                ledger.audit.write_deferred()
                ledger.audit.save_mark()
            self._prune(gate)
        except HoldfastError:
            return _FAILED_SECONDS  # an older mark is still true, and a full disk or an outage is reported elsewhere
        return _KEEP_SECONDS

    def _start(self, gate: AccessGate) -> None:
        """Once: move a mark that a killed process left behind, and allocate the file for revocations on a full disk."""
        if not self._is_started and gate.ledger.audit.read_head() is not None:
            gate.ledger.audit.save_mark(always=True)
            with suppress(HoldfastError):  # a full disk; the next change of agents tries again
                gate.ledger.agents.reserve()
            self._is_started = True

    def _prune(self, gate: AccessGate) -> None:
        """Remove rows that are older than `audit.keep_days`, of the tenants that sent requests to this process."""
        days = gate.config.audit_keep_days
        if not days or time.monotonic() - self._pruned_at < _PRUNE_SECONDS:
            return
        self._pruned_at = time.monotonic()
        before = dates.format_milliseconds(dates.clock() - days * _DAY)
        for tenant in {ledger.tenant for ledger in gate.open_ledgers()}:
            own_gate = gate.for_caller(LOCAL.replace(tenant=tenant)) if gate.config.store else gate
            with suppress(Busy), own_gate.ledger.named_lock("audit-prune", 0):
                pruned = own_gate.prune_audit(before)
                if pruned.removed:
                    self._logs.log("info", event="audit pruned", tenant=tenant or None, rows=pruned.removed)
