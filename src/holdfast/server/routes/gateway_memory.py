"""`/gateway/memory`: an agent's own notes as keys and values. A key may be any printable text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.api.key_value import KeyValueMemory, Pair
from holdfast.base.platform_keys import MAX_CHARS, normalize
from holdfast.safety.model_text import QUARANTINED
from holdfast.server.idempotency import Replay
from holdfast.server.models import TEXT_PATTERN, Redact, ResponseModel, ScopedRequest, Timestamp, choices
from holdfast.server.route import JSON, READ, WRITE, AuthorizedRequest, PendingReply, Route, reply_when_stored

_SCOPE = "agent"
_REFUSED = (  # in a key: control and bidi characters, spaces other than the ordinary one, and what is invisible
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u2000-\u200b\u200e\u200f\u2028-\u202f"
    r"\u205f-\u206f\u3000\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
    f"{''.join([chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(1, 15)])}"
)
_PRIVATE_USE = r"\ue000-\uf8ff" "\U000f0000-\U0010ffff"
_KEY_PATTERN = f"^(?!.*[{_PRIVATE_USE}])[^ {_REFUSED}]([^{_REFUSED}]*[^ {_REFUSED}])?$"
PlatformKey = Annotated[
    str,
    Meta(
        description=(
            "1 to 200 printable characters, without a space at either end. It is converted to Unicode NFC. Joiners and "
            "variation selectors are rejected except in scripts and emoji that need them."
        ),
        min_length=1, max_length=MAX_CHARS,
        extra_json_schema={"pattern": _KEY_PATTERN},  # `check_platform_key` checks it
    ),
]  # fmt: skip


class GetPairs(ScopedRequest, kw_only=True):
    key: PlatformKey | UnsetType = UNSET


class StorePair(ScopedRequest, kw_only=True):
    key: PlatformKey
    value: Annotated[str, Meta(description="The value to store.", min_length=1, extra_json_schema={"pattern": TEXT_PATTERN})]
    redact: Redact | UnsetType = UNSET


class KeyAndValue(ResponseModel, kw_only=True):
    """A note as key and value. `hidden` and `quarantined` are added if they apply."""

    key: str
    value: str
    updated_at: Timestamp
    note: Annotated[str, Meta(description="The key of the note that holds the value, for `/v1/notes/agent/{key}`.")]


class StoredKeyAndValue(KeyAndValue, kw_only=True):
    action: Annotated[
        Literal["created", "updated", "unchanged"], choices("What was done.", ("created", "updated", "unchanged"))
    ]


class Pairs(ResponseModel, kw_only=True):
    memory: list[KeyAndValue]


def get_pairs(request: AuthorizedRequest, params: GetPairs) -> dict[str, Any]:
    memory = KeyValueMemory(request.memory, _SCOPE)
    if params.key is UNSET:
        return {"memory": [_answer(pair) for pair in memory.pairs()]}
    pair = memory.get(params.key)
    return {"memory": [_answer(pair)] if pair else []}


def store_pair(request: AuthorizedRequest, params: StorePair) -> PendingReply:
    pairs = KeyValueMemory(request.memory, _SCOPE)
    stored = pairs.begin_store(params.key, params.value, **params.given("redact"))
    return reply_when_stored(stored, lambda done: {**_answer(pairs.stored_pair(params.key, done).pair), "action": done.action})


def _answer(pair: Pair) -> dict[str, Any]:
    note = pair.note
    hidden = {"hidden": list(note.hidden)} if note.hidden else {}
    quarantined = {"quarantined": QUARANTINED} if note.quarantined else {}
    return {
        "key": pair.key, "value": note.text, "updated_at": note.updated, "note": note.key, **hidden, **quarantined,
    }  # fmt: skip


def _rebuild_stored(request: AuthorizedRequest, params: StorePair, kept: dict[str, Any]) -> dict[str, Any]:
    """Return the same answer as the first time; the key and the value are those of the request, the ledger keeps the note's."""
    return {**kept, "key": normalize(params.key), "value": params.value, "note": kept["key"]}


_REPLAY_STORED = Replay(
    lambda body: {"key": body["note"], "updated_at": body["updated_at"], "action": body["action"]}, _rebuild_stored
)
_PAIR_EXAMPLE = {
    "key": "Deploy Steps", "value": "Deploy from main, on Tuesdays.", "updated_at": "2026-05-02T09:00:00Z",
    "note": "deploy-steps--glibiljplioagopdfdhlgloaapachidl",
}  # fmt: skip

ROUTES = (
    Route(
        "GET", "/gateway/memory", get_pairs,
        action=READ, scope=_SCOPE, summary="return the caller's own memory as keys and values",
        params=GetPairs, answers=Pairs, answer_example={"memory": [_PAIR_EXAMPLE]}, for_model=True,
    ),
    Route(
        "POST", "/gateway/memory", store_pair,
        action=WRITE, scope=_SCOPE, summary="store a value under a key; storing the same value again changes nothing",
        params=StorePair, reads=JSON, example={"key": "Deploy Steps", "value": "Deploy from main, on Tuesdays."},
        answers=StoredKeyAndValue, answer_example={**_PAIR_EXAMPLE, "action": "created"},
        replay=_REPLAY_STORED, for_model=True,
    ),
)  # fmt: skip
