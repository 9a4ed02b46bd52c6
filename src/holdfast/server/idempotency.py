"""A write with an Idempotency-Key runs once: the same request again gets the answer of the first.

The ledger keeps ids and never a text, so an answer that contains a note is built again from the current note.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import Busy, Conflict, Contended, HoldfastError, NotFound
from holdfast.ledger.idempotency import KeptAnswer
from holdfast.models import Note, Scope, Source
from holdfast.server.models import RequestModel, ResponseModel
from holdfast.server.problem import REPLAYED_HEADER, Problem, Replayed
from holdfast.server.route import AuthorizedRequest, PendingReply, Reply
from holdfast.server.threads import ThreadPool

KEY_HEADER = "idempotency-key"
MAX_KEY_CHARS = 200
_SIGNIFICANT_HEADERS = ("x-holdfast-project", "x-holdfast-session", "if-match", "if-none-match")  # they change the request
_LEASE_SECONDS = 120
_UPLOAD_LEASE_SECONDS = 600  # how long an upload may take before another request with the same key may begin


@dataclass(frozen=True)
class Replay:
    """The way to repeat an answer: what to store of it, and how to rebuild it from that and the request."""

    keep: Callable[[dict[str, Any]], dict[str, Any]]
    rebuild: Callable[[AuthorizedRequest, Any, dict[str, Any]], Any]


REPLAY_WHOLE = Replay(lambda body: body, lambda request, params, kept: kept)  # of answers that contain only ids
REPLAY_NOTE = Replay(lambda body: note_ids(body), lambda request, params, kept: note_reply(current_note(request, kept)))


def note_ids(note: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a note: enough to find it again, and no text of it."""
    names = ("key", "id", "type", "created", "updated", "valid_from", "version", "versions")
    return {**{name: note[name] for name in names}, "scope": note["scope"]["kind"], "of": note["scope"]["id"]}


def current_note(request: AuthorizedRequest, kept: dict[str, Any]) -> Note:
    """Return the current note; if it was deleted, what was stored of it."""
    try:
        return request.memory.get(kept["key"], scope=kept["scope"])
    except NotFound:
        return Note(
            scope=Scope(kept["scope"], kept["of"]), key=kept["key"], id=kept["id"], text="", type=kept["type"], tags=(),
            created=kept["created"], updated=kept["updated"], source=Source("agent", request.caller.agent),
            valid_from=kept["valid_from"], valid_to=None, pinned=False, path="", lines=(0, 0), version=kept["version"],
            versions=kept["versions"],
        )  # fmt: skip


def note_reply(note: Note) -> Reply:
    """Return a note with its ETag."""
    return Reply(body=note.as_dict(), status=200, headers={"etag": f'"{note.version}"'})


def run_once(request: AuthorizedRequest, params: RequestModel, content: bytes) -> Reply | PendingReply:
    """Run the handler, or return the answer that the same key had before. `content`: all that identifies the request."""
    route, key = request.route, _hash_key(request)
    if route.replay is None or not key:
        answer = route.handler(request, params)
        return answer if isinstance(answer, PendingReply) else to_reply(answer)
    agent, digest, keys = request.caller.agent, _digest(request, content), request.ledger.idempotency_keys
    before = _begin(request, key, digest, _LEASE_SECONDS)
    if before is not None:
        try:
            reply = to_reply(route.replay.rebuild(request, params, json.loads(before.answer)))
        except (HoldfastError, Problem) as error:
            raise Replayed(error) from error
        return replace(reply, status=before.status, headers={**reply.headers, REPLAYED_HEADER: "true"})

    def finish(run: Callable[[], Any]) -> Reply:
        try:
            reply = to_reply(run())
        except BaseException as error:
            drop(error)
            raise
        kept = json.dumps(route.replay.keep(reply.body)) if route.replay else ""
        _best_effort(lambda: keys.finish(agent, key, digest, status=reply.status or route.status, answer=kept))
        return reply

    def drop(error: BaseException) -> None:
        if not _may_be_done(error):
            _best_effort(lambda: keys.drop(agent, key, digest))  # nothing was done: it may be tried again

    try:
        answer = route.handler(request, params)
    except BaseException as error:
        drop(error)
        raise
    if isinstance(answer, PendingReply):
        pending = answer
        return PendingReply(future=pending.future, build=lambda future: finish(lambda: pending.build(future)), blocks=True)
    return finish(lambda: answer)


class Upload:
    """A body that arrives in chunks while it is stored; its digest is known at its end and kept with the answer."""

    def __init__(self, request: AuthorizedRequest, head: bytes, chunks: AsyncIterator[bytes], threads: ThreadPool) -> None:
        self._request, self._chunks, self.threads = request, chunks, threads
        self._key, self._head_digest = _hash_key(request), _digest(request, head)
        self._body_digest = sha256()
        self._kept: dict[str, Any] | None = None

    async def begin(self) -> None:
        """Look the key up before any of the body is read."""
        if self._key:
            begin = lambda: _begin(self._request, self._key, self._head_digest, _UPLOAD_LEASE_SECONDS)  # noqa: E731
            before = await self.threads(begin)
            self._kept = None if before is None else json.loads(before.answer)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        async for chunk in self._chunks:
            self._body_digest.update(chunk)
            yield chunk

    async def replayed_answer(self) -> Any:
        """Return the answer that the same body had under the same key before; None if it is the first."""
        if self._kept is None:
            return None
        async for _ in self.chunks():
            pass
        if self._kept["digest"] != self._body_digest.hexdigest():
            what = "this idempotency key was used for another request"
            raise Problem("reused_key", what, "Use a new key for each request")
        return self._kept["answer"]

    async def finish(self, answer: Any) -> None:
        """Keep the answer for the same upload sent again."""
        if self._key:
            kept = json.dumps({"digest": self._body_digest.hexdigest(), "answer": answer})
            agent, keys = self._request.caller.agent, self._request.ledger.idempotency_keys

            def keep() -> None:
                keys.finish(agent, self._key, self._head_digest, status=200, answer=kept)

            await self.threads(lambda: _best_effort(keep))

    async def drop(self, error: BaseException) -> None:
        """Allow the key again after an upload that did not finish."""
        if self._key and self._kept is None and not _may_be_done(error):
            agent, keys = self._request.caller.agent, self._request.ledger.idempotency_keys
            await self.threads(lambda: _best_effort(lambda: keys.drop(agent, self._key, self._head_digest)))


def to_reply(answer: Any) -> Reply:
    """Return what a handler returned as a reply, with models and records as plain data."""
    reply = answer if isinstance(answer, Reply) else Reply(body=answer)
    return replace(reply, body=reply.body.as_dict()) if isinstance(reply.body, Record | ResponseModel) else reply


def _may_be_done(error: BaseException) -> bool:
    """Return whether only the answer was lost: then the key stays taken until its lease ends."""
    return isinstance(error, HoldfastError) and error.may_be_done


def _best_effort(work: Callable[[], object]) -> None:
    """Run `work` and ignore errors of the ledger: the request's own result or error counts."""
    try:
        work()
    except HoldfastError:
        pass


def _hash_key(request: AuthorizedRequest) -> str:
    """Return a hash of the caller's key, since the key may be any text and the ledger keeps none; "" without a key."""
    key = request.header(KEY_HEADER)
    if len(key) > MAX_KEY_CHARS or not key.isprintable():
        what = f"an idempotency key can have at most {MAX_KEY_CHARS} printable characters"
        raise Problem("invalid_request", what, "Use a shorter key")
    return sha256(key.encode()).hexdigest() if key else ""


def _digest(request: AuthorizedRequest, content: bytes) -> str:
    """Return a digest of everything that makes this request different from others."""
    headers = "\n".join([request.header(name) for name in _SIGNIFICANT_HEADERS])
    return sha256(headers.encode() + b"\n" + content).hexdigest()


def _begin(request: AuthorizedRequest, key: str, digest: str, lease: int) -> KeptAnswer | None:
    try:
        return request.ledger.idempotency_keys.begin(request.caller.agent, key, digest, int(dates.clock()), lease=lease)
    except Conflict as error:
        raise Problem("reused_key", error.text, error.hint) from None
    except Busy as error:
        contended = Contended(error.text, error.hint)
        contended.retry_after = 1
        raise contended from None
