"""Purges and their receipts. A purge is always recorded in the audit."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from holdfast.api import pagination
from holdfast.errors import NotFound, Refused
from holdfast.models import Receipt
from holdfast.server.idempotency import Replay
from holdfast.server.models import (
    CLIENT_PATTERN,
    PAGE_LIMIT,
    TEXT_PATTERN,
    Key,
    NextCursor,
    NoteScope,
    OtherAgentRequest,
    PageCursor,
    PageLimit,
    ResponseModel,
)
from holdfast.server.route import ALL_SCOPES, JSON, AuthorizedRequest, Route

_PURGE = "memory.purge"


class PurgeNote(OtherAgentRequest, kw_only=True):
    scope: NoteScope
    key: Key
    transcripts: Annotated[bool, Meta(description="Also purge transcript turns that contain the text.")] | UnsetType = UNSET


class Purge(OtherAgentRequest, kw_only=True):
    schema_rules: ClassVar[dict[str, Any]] = {  # a text or a session
        "if": {"required": ["text"]}, "then": {"not": {"required": ["session"]}}, "else": {"required": ["session"]},
    }  # fmt: skip
    session: Annotated[
        str, Meta(description="The session whose transcript is purged.", min_length=1, max_length=500)
    ] | UnsetType = UNSET  # fmt: skip
    client: (
        Annotated[str, Meta(description="Only the transcript from this client program.", pattern=CLIENT_PATTERN)] | UnsetType
    ) = UNSET
    text: Annotated[
        str,
        Meta(
            description="A text of at least 12 characters, purged in every scope. Operator only.", min_length=1,
            extra_json_schema={"minLength": 12, "pattern": TEXT_PATTERN},
        ),
    ] | UnsetType = UNSET  # fmt: skip
    files: Annotated[
        bool, Meta(description="With `text`: also replace it in files of agents with a mark.")
    ] | UnsetType = UNSET  # fmt: skip


class ListReceipts(OtherAgentRequest, kw_only=True):
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class GetReceipt(OtherAgentRequest, kw_only=True):
    id: Annotated[str, Meta(description="The id of the receipt.", pattern="^[0-9A-Za-z]{1,40}$")]


class ReceiptPage(ResponseModel, kw_only=True):
    receipts: list[Receipt]
    next: NextCursor


def purge_note(request: AuthorizedRequest, params: PurgeNote) -> Receipt:
    return request.memory.purge(params.key, scope=params.scope, **params.given("transcripts"))


def purge(request: AuthorizedRequest, params: Purge) -> Receipt:
    if params.text is not UNSET and not request.caller.is_person:
        fix = "Purge one of your notes or sessions, or ask the operator"
        raise Refused("only the operator may purge a text in every scope", fix)
    return request.memory.purge(**params.given("session", "client", "text", "files"))


def list_receipts(request: AuthorizedRequest, params: ListReceipts) -> ReceiptPage:
    found, following = pagination.receipts_page(request.memory, params.limit, params.cursor)
    return ReceiptPage(receipts=found, next=following)


def get_receipt(request: AuthorizedRequest, params: GetReceipt) -> Receipt:
    found = request.memory.receipts(params.id)
    if not found:  # memory is disabled
        raise NotFound("there is no such receipt", "`GET /v1/receipts` lists the receipts you may see")
    return found[0]


def _keep_receipt(body: dict[str, Any]) -> dict[str, Any]:
    """Return the receipt's id; where there was nothing to purge, the whole answer, since it has no receipt and no text."""
    return {"id": body["id"]} if body["id"] else body


def _rebuild_receipt(request: AuthorizedRequest, params: object, kept: dict[str, Any]) -> Any:
    return kept if len(kept) > 1 else request.memory.receipts(kept["id"])[0]


_REPLAY_RECEIPT = Replay(_keep_receipt, _rebuild_receipt)
_RECEIPT_EXAMPLE = {
    "key": "testing", "scope": {"kind": "agent", "id": "reviewer"}, "deleted": True,
    "removed": ["agents/reviewer/notes/testing.md"], "index_rows": 1, "usage_rows": 0, "checks": [], "beyond_reach": [],
    "time": "2026-05-02T09:00:00Z", "id": "01KPAXEB201VA8X6", "what": "the note testing in agent:reviewer", "state": "done",
    "pending": [], "turns": 0, "also_said_by": [], "told": [], "taken_back": "",
}  # fmt: skip

ROUTES = (
    Route(
        "POST", "/v1/notes/{scope}/{key}/purge", purge_note,
        is_slow=True,
        action=_PURGE, scope="project", summary="permanently delete a note everywhere, and return a receipt",
        params=PurgeNote, reads=JSON, example={}, answers=Receipt, answer_example=_RECEIPT_EXAMPLE,
        may_name_agent=True, replay=_REPLAY_RECEIPT, verbs=("purge",),
    ),
    Route(
        "POST", "/v1/purge", purge,
        is_slow=True,
        action=_PURGE, scope=ALL_SCOPES, summary="permanently delete a session's transcript, or a text wherever it occurs",
        params=Purge, reads=JSON, example={"text": "The harbour office moves in May.", "files": True},
        answers=Receipt, answer_example=_RECEIPT_EXAMPLE, may_name_agent=True, replay=_REPLAY_RECEIPT, verbs=("purge",),
    ),
    Route(
        "GET", "/v1/receipts", list_receipts,
        action=_PURGE, scope=ALL_SCOPES, summary="list receipts of purges, newest first; they do not contain the purged text",
        params=ListReceipts, answers=ReceiptPage, answer_example={"receipts": [_RECEIPT_EXAMPLE], "next": None},
        may_name_agent=True, verbs=("receipts",),
    ),
    Route(
        "GET", "/v1/receipts/{id}", get_receipt,
        action=_PURGE, scope=ALL_SCOPES, summary="return a receipt",
        params=GetReceipt, answers=Receipt, answer_example=_RECEIPT_EXAMPLE, may_name_agent=True,
        problems=("not_found",), verbs=("receipts",),
    ),
)  # fmt: skip
