"""Idempotency keys: a request that is sent twice is done once, known by its agent and a key that the caller chose.

The stored answer consists of ids from which it can be made again, never of a text: purged text must not live on here.
"""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import Busy, Conflict
from holdfast.ledger import liveness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ledger.interface import LedgerDatabase, Transaction

_DAY = 86400


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
        process = liveness.process_name(home)

        def find_or_begin(transaction: Transaction) -> KeptAnswer | None:
            transaction.lock(f"repeats {agent} {key}")
            transaction.run("keys.remove_old", before=now - keep)
            for kept_digest, status, answer, time in transaction.run("keys.find", agent=agent, key=key):
                if kept_digest != digest:
                    raise Conflict("this idempotency key was used for another request", "Make up a new key for each request")
                if status is not None:
                    return KeptAnswer(status, answer)
                if abs(now - time) < lease and not liveness.has_ended(home, answer):
                    message = "a request with this idempotency key is under way, or was when its process ended"
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
