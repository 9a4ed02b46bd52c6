"""Which ledger is meant: the home's own, or a tenant's in PostgreSQL."""

from __future__ import annotations

from _thread import allocate_lock

from holdfast.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config

_KEPT = 256  # ledgers of tenants and agents; each is small, and opening one again costs nothing


def open_ledger(config: Config, seconds: float | None = None, agent: str | None = None) -> SqliteLedger:
    """The ledger that the settings name. With an agent, only what that one may see of what agents have done."""
    wait = config.lock_seconds if seconds is None else seconds
    if not config.store and not config.store_read:
        return SqliteLedger(config.home, wait)
    from holdfast.postgres import settings_of
    from holdfast.postgres.ledger import PostgresLedger as Shared

    return Shared(settings_of(config, agent, all_agents=agent is None), wait)


class Ledgers:
    """Those of all tenants, opened as they are asked for; a home has one."""

    def __init__(self, config: Config, seconds: float | None = None) -> None:
        self._config, self._seconds = config, seconds
        self._guard = allocate_lock()
        self._open: dict[tuple[str, str | None], SqliteLedger] = {}

    def of(self, tenant: str, agent: str | None = None) -> SqliteLedger:
        """The tenant's ledger, as the agent sees it."""
        whose = (tenant, agent) if self._config.store else ("", None)
        with self._guard:
            ledger = self._open.pop(whose, None) or open_ledger(self._config.replace(tenant=tenant), self._seconds, agent)
            self._open[whose] = ledger
            old = [self._open.pop(next(iter(self._open)))] if len(self._open) > _KEPT else []
        for one in old:
            one.close()  # whoever is in the middle of something opens it again
        return ledger

    def close(self) -> None:
        with self._guard:
            every = list(self._open.values())
        for ledger in every:
            ledger.close()
