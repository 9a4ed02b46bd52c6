"""Messages between the operator and an agent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.api import pagination
from holdfast.errors import UsageError
from holdfast.server.idempotency import Replay
from holdfast.server.models import (
    PAGE_LIMIT,
    TEXT_PATTERN,
    NextCursor,
    OtherAgentRequest,
    PageCursor,
    PageLimit,
    ReadScope,
    Redact,
    ResponseModel,
    choices,
    or_none,
)
from holdfast.server.route import ALL_SCOPES, JSON, READ, WRITE, AuthorizedRequest, Route
from holdfast.verbs.operator_messages import AGENT, RECIPIENTS, Message, check_message

_DEFAULT_SCOPE = "agent"
MessageId = Annotated[
    str, Meta(description="The id of a message.", min_length=1, extra_json_schema={"pattern": r"^[^\s]"})
]  # fmt: skip


class SendMessage(OtherAgentRequest, kw_only=True):
    text: Annotated[
        str, Meta(description="The text. At most 64 KiB.", min_length=1, extra_json_schema={"pattern": TEXT_PATTERN})
    ]  # fmt: skip
    to: Annotated[
        Literal["agent", "operator"], choices("The recipient. Default: `agent`, which only the operator may use.", RECIPIENTS)
    ] = "agent"  # fmt: skip
    re: Annotated[MessageId, Meta(description="The message that this one answers.")] | UnsetType = UNSET
    scope: ReadScope | UnsetType = UNSET
    redact: Redact = False


class ListMessages(OtherAgentRequest, kw_only=True):
    scope: ReadScope | UnsetType = UNSET
    unread: Annotated[bool, Meta(description="Only unread messages.")] | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class ReadMessages(OtherAgentRequest, kw_only=True):
    id: Annotated[MessageId, Meta(description="Only this message. Default: every unread message to you.")] | UnsetType = UNSET
    scope: ReadScope | UnsetType = UNSET


class MessagePage(ResponseModel, kw_only=True):
    messages: list[Message]
    next: NextCursor


class MessageList(ResponseModel, kw_only=True):
    messages: list[Message]


def send_message(request: AuthorizedRequest, params: SendMessage) -> Message:
    scope = or_none(params.scope)
    if scope is None and params.re is UNSET:  # an answer goes to the scope of the message
        request.must_reach(_DEFAULT_SCOPE)
        scope = _DEFAULT_SCOPE
    if params.to == AGENT and scope == _DEFAULT_SCOPE and request.caller.is_person and request.target.agent is None:
        raise UsageError("no agent is named", "Name the agent as `agent`, or use another scope")
    return request.memory.operator_send(params.text, to=params.to, re=or_none(params.re), scope=scope, redact=params.redact)


def list_messages(request: AuthorizedRequest, params: ListMessages) -> MessagePage:
    found, following = pagination.message_page(
        request.memory, params.limit, params.cursor, **params.given("scope", "unread")
    )  # fmt: skip
    return MessagePage(messages=found, next=following)


def read_messages(request: AuthorizedRequest, params: ReadMessages) -> MessageList:
    return MessageList(messages=request.memory.operator_read(or_none(params.id), scope=or_none(params.scope)))


def _keep_sent(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in ("text", "hidden")}


def _rebuild_sent(request: AuthorizedRequest, params: SendMessage, kept: dict[str, Any]) -> dict[str, Any]:
    """Return the answer again with the text of the request: the ledger keeps no text."""
    message = Message(**kept, text=check_message(params.text, params.redact))
    return {**message.as_dict(), "scope": kept["scope"]}


def _keep_read(body: dict[str, Any]) -> dict[str, Any]:
    return {"ids": [message["id"] for message in body["messages"]]}


def _rebuild_read(request: AuthorizedRequest, params: ReadMessages, kept: dict[str, Any]) -> MessageList:
    """Return the same messages again, from the files."""
    found = request.memory.operator_list(scope=or_none(params.scope))
    return MessageList(messages=[message for message in found if message.id in kept["ids"]])


_EXAMPLE: dict[str, Any] = {
    "id": "01KPAXEB201VA8X6", "scope": {"kind": "agent", "id": "reviewer"}, "to": "agent", "sender": "operator",
    "time": "2026-05-02T09:00:00Z", "text": "Look at billing first.", "re": None, "read": False, "hidden": [],
}  # fmt: skip

ROUTES = (
    Route(
        "GET", "/v1/operator/messages", list_messages,
        action=READ, scope=ALL_SCOPES, summary="list messages between the operator and agents, newest first",
        params=ListMessages, answers=MessagePage, answer_example={"messages": [_EXAMPLE], "next": None}, may_name_agent=True,
        verbs=("operator_list",),
    ),
    Route(
        "POST", "/v1/operator/messages", send_message,
        action=WRITE, scope=ALL_SCOPES, summary="send a message to an agent (operator only), or to the operator",
        params=SendMessage, reads=JSON, example={"text": "Billing is up again.", "to": "operator"}, status=201,
        answers=Message, answer_example=_EXAMPLE, may_name_agent=True, replay=Replay(_keep_sent, _rebuild_sent),
        problems=("not_found",), verbs=("operator_send",),
    ),
    Route(
        "POST", "/v1/operator/messages/read", read_messages,
        action=WRITE, scope=ALL_SCOPES, summary="return unread messages to you, or one message, and mark them as read",
        params=ReadMessages, reads=JSON, example={}, answers=MessageList, answer_example={"messages": [_EXAMPLE]},
        may_name_agent=True, replay=Replay(_keep_read, _rebuild_read), problems=("not_found",), verbs=("operator_read",),
    ),
)  # fmt: skip
