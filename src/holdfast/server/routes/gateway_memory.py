"""`/gateway/memory`: an agent's own notes as keys and values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.api import pagination
from holdfast.api.memory import begin_store
from holdfast.errors import NotFound
from holdfast.models import Note
from holdfast.safety.model_text import QUARANTINED
from holdfast.server.idempotency import Replay
from holdfast.server.models import Key, Redact, ResponseModel, ScopedRequest, choices
from holdfast.server.route import JSON, READ, WRITE, AuthorizedRequest, PendingReply, Route, reply_when_stored


class GetPairs(ScopedRequest, kw_only=True):
    key: Key | UnsetType = UNSET


class StorePair(ScopedRequest, kw_only=True):
    key: Key
    value: Annotated[str, Meta(description="What to remember.", min_length=1)]
    redact: Redact | UnsetType = UNSET


class Pair(ResponseModel, kw_only=True):
    """A note as key and value. `hidden` and `quarantined` are added if they apply."""

    key: str
    value: str
    updated_at: str


class StoredPair(Pair, kw_only=True):
    action: Annotated[Literal["created", "updated", "unchanged"], choices("What it did.", ("created", "updated", "unchanged"))]


class Pairs(ResponseModel, kw_only=True):
    memory: list[Pair]


def get_pairs(request: AuthorizedRequest, params: GetPairs) -> dict[str, Any]:
    if params.key is not UNSET:
        try:
            return {"memory": [_pair(request.memory.get(params.key, scope="agent"))]}
        except NotFound:
            return {"memory": []}
    return {"memory": [_pair(note) for note in pagination.iterate_notes(request.memory, "agent")]}


def store_pair(request: AuthorizedRequest, params: StorePair) -> PendingReply:
    stored = begin_store(request.memory, params.value, key=params.key, scope="agent", **params.given("redact"))
    return reply_when_stored(stored, lambda done: {**_pair(done.note), "action": done.action})


def _pair(note: Note) -> dict[str, Any]:
    hidden = {"hidden": list(note.hidden)} if note.hidden else {}
    quarantined = {"quarantined": QUARANTINED} if note.quarantined else {}
    return {"key": note.key, "value": note.text, "updated_at": note.updated, **hidden, **quarantined}


_REPLAY_STORED = Replay(
    lambda body: {name: body[name] for name in ("key", "updated_at", "action")},
    lambda request, params, kept: {**kept, "value": params.value},
)
_PAIR_EXAMPLE = {"key": "testing", "value": "Use pytest.", "updated_at": "2026-05-02T09:00:00Z"}

ROUTES = (
    Route(
        "GET", "/gateway/memory", get_pairs,
        action=READ, scope="agent", summary="the caller's own memory, as keys and values",
        params=GetPairs, answers=Pairs, answer_example={"memory": [_PAIR_EXAMPLE]}, for_model=True,
    ),
    Route(
        "POST", "/gateway/memory", store_pair,
        action=WRITE, scope="agent", summary="keep a value under a key; the same again changes nothing",
        params=StorePair, reads=JSON, example={"key": "testing", "value": "Use pytest."},
        answers=StoredPair, answer_example={**_PAIR_EXAMPLE, "action": "created"},
        replay=_REPLAY_STORED, for_model=True,
    ),
)  # fmt: skip
