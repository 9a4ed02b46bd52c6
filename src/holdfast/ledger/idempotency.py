"""Requests that may come twice and are done once: by the agent and a key that the caller made up.

The answer that is kept is ids, from which it is made again, never a text: what is purged must not live on here.
"""

from __future__ import annotations

import os

from holdfast import sqlite
from holdfast.base.record import Record
from holdfast.errors import Busy, Conflict
from holdfast.ledger import liveness
from holdfast.ledger.records import Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw

SQL = sqlite.statements(__file__)
_DAY = 86400


class KeptAnswer(Record):
    """What a request with this key was answered."""

    status: int
    answer: str


class IdempotencyKeys(Records):
    """Keys of requests, for a day."""

    _sql = SQL

    @property
    def _home(self) -> str:
        """Where processes show that they live."""
        return os.path.dirname(self._path)

    def begin(self, agent: str, key: str, digest: str, now: int, lease: int = 120, keep: int = _DAY) -> KeptAnswer | None:
        """The answer that was given already, or None: go ahead, then `finish` or `drop`. While another is at it, Busy;
        and another request under the same key is a Conflict. One whose doer ended may be done again: at once where its process
        is known to be gone, else after a while."""
        doer = liveness.sign(self._home)

        def work(db: apsw.Connection) -> KeptAnswer | None:
            self._alone(db, f"{agent} {key}")
            self._run(db, "sweep", before=now - keep)
            kept = self._run(db, "kept", agent=agent, key=key)
            if kept:
                was, status, answer, time = kept[0]
                if was != digest:
                    raise Conflict("this idempotency key was used for another request", "Make up a new key for each request")
                if status is not None:
                    return KeptAnswer(status, answer)
                if abs(now - time) < lease and not liveness.is_gone(self._home, answer):
                    what = "a request with this idempotency key is under way, or was when its process ended"
                    raise Busy(what, f"Try again in a moment, at the latest {lease} seconds after it began")
            self._run(db, "begin", agent=agent, key=key, digest=digest, doer=doer, now=now)
            return None

        return self._write(work, durable=False)

    def finish(self, agent: str, key: str, digest: str, status: int, answer: str) -> None:
        """It is done, and this is what it answered."""
        row: dict[str, Any] = {"agent": agent, "key": key, "digest": digest, "status": status, "answer": answer}
        self._write(lambda db: self._run(db, "finish", **row), durable=False)

    def drop(self, agent: str, key: str, digest: str) -> None:
        """It was not done: the next with this key may try. Another request's is left alone."""
        self._write(lambda db: self._run(db, "drop", agent=agent, key=key, digest=digest), durable=False)
