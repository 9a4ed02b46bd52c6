"""Ship the audit: hand every row to the sink that `audit.ship` names, at least once, in order, and never in a request's way.

The ledger keeps up to which row the audit was shipped, so shipping goes on after a restart where it ended. Of several
processes one ships at a time. At most one batch is in memory. While the sink fails, the wait between two attempts doubles,
up to a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from holdfast.access.health import SHIP_LOG
from holdfast.base import failure_log
from holdfast.config import Config
from holdfast.context.ledgers import Ledgers
from holdfast.errors import Busy, HoldfastError
from holdfast.ledger.audit import Audit, target_id
from holdfast.ledger.interface import Ledger
from holdfast.server.audit_sinks import Sink, open_sink

_BATCH_ROWS = 500
_BATCHES_PER_TURN = 20  # of one tenant; then the others have their turn
_IDLE_SECONDS = 1.0
_MAX_WAIT_SECONDS = 60.0
_LOCK_SECONDS = 5.0
_log = logging.getLogger("holdfast.audit")
_log.setLevel(logging.INFO)


@dataclass
class ShipCounts:
    """What this process shipped and what it knows of the rows that wait."""

    rows: int = 0
    failures: int = 0
    waiting: int = 0  # rows that were not shipped when it last looked
    is_failing: bool = False


class AuditShipper:
    """Ships for one gateway; used by one thread at a time."""

    def __init__(self, read_settings: Callable[[], Config]) -> None:
        self._read_settings = read_settings
        self._settings: Config | None = None
        self._ledgers: Ledgers | None = None  # of its own: no request waits for a lock that shipping holds
        self._sink: Sink | None = None
        self._positions: dict[str, int] = {}  # by tenant, also where the ledger could not be written
        self._wait = _IDLE_SECONDS
        self._closed = False
        self.counts = ShipCounts()

    def ship(self) -> float:
        """Ship what is new; return after how many seconds to call this again."""
        try:
            self._load_settings()
            if self._sink is not None:
                self._ship_tenants(self._sink)
        except HoldfastError as error:
            self._wait = min(self._wait * 2, _MAX_WAIT_SECONDS)
            self._report_failure(error)
            return self._wait
        if self.counts.is_failing:
            self.counts.is_failing = False
            _log.info("shipping of the audit works again")
        self._wait = _IDLE_SECONDS
        return self._wait

    def close(self) -> None:
        """Stop after the batch under way; what is left is shipped after the next start."""
        self._closed = True

    def close_ledgers(self) -> None:
        """Close what shipping opened; call it when `ship` no longer runs."""
        if self._ledgers is not None:
            self._ledgers.close()

    def _load_settings(self) -> None:
        """Open the sink again if the settings changed; raise ConfigError as long as they name none that can be used."""
        settings = self._read_settings()
        if settings is not self._settings:
            self.close_ledgers()
            self._settings, self._positions, self._sink = settings, {}, None
            self._ledgers = Ledgers(settings, _LOCK_SECONDS)
        if settings.audit_ship and self._sink is None:
            self._sink = open_sink(settings.audit_ship, settings.audit_ship_key)

    def _ship_tenants(self, sink: Sink) -> None:
        assert self._settings is not None and self._ledgers is not None
        target, waiting = target_id(self._settings.audit_ship or ""), 0
        for tenant in self._list_tenants(self._settings, target):
            if not self._closed:
                waiting += self._ship_ledger(self._ledgers.of(tenant), tenant, target, sink)
        self.counts.waiting = waiting

    def _list_tenants(self, settings: Config, target: str) -> list[str]:
        """Return the tenants with rows that were not shipped; a home has one."""
        assert self._ledgers is not None
        own = self._ledgers.of(settings.tenant)
        return own.audit.list_unshipped_tenants(target) if settings.store else [settings.tenant]

    def _ship_ledger(self, ledger: Ledger, tenant: str, target: str, sink: Sink) -> int:
        """Ship some batches of one ledger, unless another process does; return how many rows wait."""
        audit = ledger.audit
        position = self._find_position(audit, tenant, target)
        head = audit.read_head()
        if head is None or head.count <= position:
            return 0
        try:
            with ledger.named_lock(f"audit-ship-{target[:8]}", 0):
                for _ in range(_BATCHES_PER_TURN):
                    position = self._find_position(audit, tenant, target)  # another process may have shipped meanwhile
                    batch = list(islice(audit.iterate_chain(position + 1, most=_BATCH_ROWS), _BATCH_ROWS))
                    if not batch or self._closed:
                        break
                    self.counts.waiting = head.count - position
                    sink.send(batch)
                    position = self._positions[tenant] = batch[-1].number
                    self.counts.rows += len(batch)
                    self._save_position(audit, target, position)
        except Busy:
            pass  # another process ships these rows, or appends to the same file; the next turn looks again
        return max(head.count - position, 0)

    def _find_position(self, audit: Audit, tenant: str, target: str) -> int:
        position = max(audit.read_position(target), self._positions.get(tenant, 0))
        head = audit.read_head()
        if head is not None and position > head.count:  # the ledger was replaced, and its audit began again
            position = self._positions[tenant] = 0
        return position

    def _save_position(self, audit: Audit, target: str, position: int) -> None:
        try:
            audit.save_position(target, position)
        except HoldfastError as error:  # this process goes on behind it; after a restart some rows are shipped again
            self._report_failure(error)

    def _report_failure(self, error: HoldfastError) -> None:
        assert self._settings is not None
        self.counts.failures += 1
        self.counts.is_failing = True
        _log.warning("the audit was not shipped, next attempt in %d s: %s", self._wait, error.message)
        failure_log.write(
            self._settings.home, client="gateway", event="audit.ship", message=error.message, fix=error.fix, name=SHIP_LOG
        )
