"""Open the ledger that the settings name: the home's own, or a tenant's in PostgreSQL."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.ledger.interface import Ledger

_KEPT = 256  # ledgers of tenants and agents; each is small, and opening one again is cheap


def open_ledger(config: Config, seconds: float | None = None, agent: str | None = None) -> Ledger:
    """Return the ledger that the settings name; with an agent, only the done records that this agent may see."""
    wait = config.lock_seconds if seconds is None else seconds
    if not config.store and not config.store_read:
        from holdfast.ledger.sqlite import SqliteLedger

        return SqliteLedger(config.home, wait)
    from holdfast.postgres import make_settings
    from holdfast.postgres.ledger import PostgresLedger

    return PostgresLedger(make_settings(config, agent, all_agents=agent is None), wait)


class Ledgers:
    """The ledgers of all tenants, opened when first used; a home has one."""

    def __init__(self, config: Config, seconds: float | None = None) -> None:
        self._config, self._seconds = config, seconds
        self._guard = allocate_lock()
        self._open: dict[tuple[str, str | None], Ledger] = {}

    def of(self, tenant: str, agent: str | None = None) -> Ledger:
        """Return the tenant's ledger as the agent sees it."""
        key = (tenant, agent) if self._config.store else ("", None)
        with self._guard:
            ledger = self._open.pop(key, None) or open_ledger(self._config.replace(tenant=tenant), self._seconds, agent)
            self._open[key] = ledger
            oldest = self._open.pop(next(iter(self._open))) if len(self._open) > _KEPT else None
        if oldest is not None:
            oldest.close()  # a thread that still uses it opens it again
        return ledger

    def list_open(self) -> list[Ledger]:
        """Return those that were used, and not closed since to make room for others."""
        with self._guard:
            return list(self._open.values())

    def close(self) -> None:
        """Close all of them."""
        for ledger in self.list_open():
            ledger.close()
