"""A write with an Idempotency-Key is done once: whoever sends it again is told what came of it the first time.

The ledger keeps ids and never a text, so an answer with a note in it is made again from the note as it stands.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import Any

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import Busy, Conflict, Contended, HoldfastError, NotFound
from holdfast.ledger.idempotency import KeptAnswer
from holdfast.models import Note, Scope, Source
from holdfast.server.problem import Problem
from holdfast.server.route import Asked, Reply

HEADER = "idempotency-key"
REPLAYED = "idempotency-replayed"
_MOST = 200
_WHOSE = ("x-holdfast-project", "x-holdfast-session", "if-match", "if-none-match")  # what makes it another request
_STREAM_SECONDS = 600  # that a body which comes piece by piece may take before another may begin


class Replay(Record):
    """What to keep of an answer, and how to make it again from that and the request."""

    keep: Callable[[dict[str, Any]], dict[str, Any]]
    tell: Callable[[Asked, dict[str, Any]], Any]


ALL = Replay(lambda body: body, lambda asked, kept: kept)  # answers of ids alone
NOTE = Replay(lambda body: ids(body), lambda asked, kept: noted(as_it_stands(asked, kept)))  # an answer that is a note


def ids(note: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a note: by what it is found again, and nothing that anybody wrote."""
    named = {name: note[name] for name in ("key", "id", "type", "created", "updated", "valid_from", "version", "versions")}
    return {**named, "scope": note["scope"]["kind"], "of": note["scope"]["id"]}


def as_it_stands(asked: Asked, kept: dict[str, Any]) -> Note:
    """The note as it is now; where it is gone by now, what was kept of it."""
    try:
        return asked.memory.get(kept["key"], scope=kept["scope"])
    except NotFound:
        return Note(
            Scope(kept["scope"], kept["of"]), kept["key"], kept["id"], "", kept["type"], (), kept["created"], kept["updated"],
            Source("agent", asked.caller.agent), kept["valid_from"], None, False, "", (0, 0), kept["version"], kept["versions"],
        )  # fmt: skip


def run(asked: Asked, again: Replay | None, request: bytes) -> Reply:
    """The verb's answer, or the one that this key has had before."""
    key = _key(asked)
    if again is None or not key:
        return replied(asked.route.verb(asked))
    agent, digest, repeats = asked.caller.agent, _digest(asked, request), asked.ledger.idempotency_keys
    before = _begun(asked, key, digest)
    if before is not None:
        reply = replied(again.tell(asked, json.loads(before.answer)))
        return reply.replace(status=before.status, headers={**reply.headers, REPLAYED: "true"})
    try:
        reply = replied(asked.route.verb(asked))
    except BaseException as error:
        if not _may_be_done(error):
            _best_effort(lambda: repeats.drop(agent, key, digest))  # it was not done, and may be tried again
        raise
    kept = json.dumps(again.keep(reply.body))
    _best_effort(lambda: repeats.finish(agent, key, digest, reply.status or asked.route.status, kept))
    return reply


class Streamed:
    """The same for a body that comes piece by piece: its digest is known at its end, and is kept with the answer."""

    def __init__(self, asked: Asked, request: bytes) -> None:
        self._asked, self._sum = asked, sha256()
        self._key, self._request = _key(asked), _digest(asked, request)
        self._before: dict[str, Any] | None = None

    def begin(self) -> None:
        """Whether it is new: in a thread, before any of the body is read."""
        before = _begun(self._asked, self._key, self._request, _STREAM_SECONDS) if self._key else None
        self._before = None if before is None else json.loads(before.answer)

    async def pieces(self, given: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The body, looked at as it passes."""
        async for piece in given:
            self._sum.update(piece)
            yield piece

    async def before(self, given: AsyncIterator[bytes]) -> Any:
        """What this very body was answered before; None where it is the first."""
        if self._before is None:
            return None
        async for _ in self.pieces(given):
            pass
        if self._before["digest"] != self._sum.hexdigest():
            what = "this idempotency key was used for another request"
            raise Problem("reused_key", what, "Make up a new key for each request")
        return self._before["answer"]

    def finish(self, answer: Any) -> None:
        if self._key:
            kept = json.dumps({"digest": self._sum.hexdigest(), "answer": answer})
            agent, repeats = self._asked.caller.agent, self._asked.ledger.idempotency_keys
            _best_effort(lambda: repeats.finish(agent, self._key, self._request, 200, kept))

    def drop(self, error: BaseException) -> None:
        """It was not done to its end, and may be tried again."""
        if self._key and self._before is None and not _may_be_done(error):
            agent, repeats = self._asked.caller.agent, self._asked.ledger.idempotency_keys
            _best_effort(lambda: repeats.drop(agent, self._key, self._request))


def replied(answer: Any) -> Reply:
    return answer if isinstance(answer, Reply) else Reply(answer)


def noted(note: Note) -> Reply:
    return Reply(note.as_dict(), 200, {"etag": f'"{note.version}"'})


def _may_be_done(error: BaseException) -> bool:
    """Whether the answer was lost and not the deed: then the key stays as that of one whose doer went away."""
    return isinstance(error, HoldfastError) and error.may_be_done


def _best_effort(work: Callable[[], object]) -> None:
    """What was done stays done, and what failed is told as it failed, also where the ledger cannot be written now."""
    try:
        work()
    except HoldfastError:
        pass


def _key(asked: Asked) -> str:
    """What stands for the caller's key, which may be any text: the ledger keeps none."""
    key = asked.header(HEADER)
    if len(key) > _MOST or not key.isprintable():
        raise Problem("invalid_request", f"an idempotency key may have {_MOST} printable characters", "Make up a shorter one")
    return sha256(key.encode()).hexdigest() if key else ""


def _digest(asked: Asked, request: bytes) -> str:
    """Of all that makes it this request; what stands in its head for one route may not be answered for another's."""
    return sha256("\n".join([asked.header(name) for name in _WHOSE]).encode() + b"\n" + request).hexdigest()


def _begun(asked: Asked, key: str, digest: str, lease: int = 120) -> KeptAnswer | None:
    try:
        return asked.ledger.idempotency_keys.begin(asked.caller.agent, key, digest, int(dates.clock()), lease)
    except Conflict as error:
        raise Problem("reused_key", error.text, error.hint) from None
    except Busy as error:
        contended = Contended(error.text, error.hint)
        contended.retry_after = 1
        raise contended from None
