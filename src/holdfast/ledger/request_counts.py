"""How many requests each agent makes on a day, for agents with a quota of requests."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ledger.interface import LedgerDatabase

DAY_SECONDS = 86400


class RequestCounts:
    """Counts of one day, in UTC, shared by all processes; only the last day of an agent is kept."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def count(self, agent: str, most: int, now: float) -> bool:
        """Count one more request of today, and return True; return False if the agent has made `most` requests today."""
        values = {"agent": agent, "day": int(now) // DAY_SECONDS, "most": most}
        return bool(self._database.write(lambda transaction: transaction.run("quotas.count_request", **values), durable=False))

    def today(self, agent: str, now: float) -> int:
        """Return how many requests were counted today."""
        rows = self._database.read_or_empty("quotas.requests", agent=agent, day=int(now) // DAY_SECONDS)
        return int(rows[0][0]) if rows else 0
