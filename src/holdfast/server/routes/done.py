"""The done ledger: what an agent has done and need not do again."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from holdfast.base import dates
from holdfast.base.dates import format_timestamp
from holdfast.base.invisible import is_printable
from holdfast.errors import UsageError
from holdfast.ledger.done import REVIEW, DoneItem
from holdfast.models import Scope
from holdfast.safety import validate
from holdfast.server.idempotency import REPLAY_WHOLE
from holdfast.server.models import (
    NAME_PATTERN,
    PAGE_LIMIT,
    PRINTABLE_PATTERN,
    NextCursor,
    PageLimit,
    RequestModel,
    ResponseModel,
    Timestamp,
    or_none,
)
from holdfast.server.route import JSON, AuthorizedRequest, Reply, Route

_KIND_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
Kind = Annotated[str, Meta(description="The kind of work.", pattern=_KIND_PATTERN)]
FilterKind = Annotated[
    str,
    Meta(
        description=f"The kind of work. Reviews of pull requests are `{REVIEW}`, with the subject `owner/repo#7`.",
        pattern=_KIND_PATTERN,
    ),
]
Subject = Annotated[
    str,
    Meta(
        description="The object of the work, one line.", min_length=1, max_length=500,
        extra_json_schema={"pattern": PRINTABLE_PATTERN},  # `_checked_subject` checks it
    ),
]  # fmt: skip
FilterAgent = Annotated[
    str,
    Meta(description="Only work of this agent. Another agent than your own also needs `agents.manage`.", pattern=NAME_PATTERN),
]


class ListDone(RequestModel, kw_only=True):
    kind: FilterKind | UnsetType = UNSET
    subject: Subject | UnsetType = UNSET
    agent: FilterAgent | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: Annotated[
        str, Meta(description="The `next` of the previous page.", pattern="^[0-9]{1,18}-[01]-[0-9]{1,18}$")
    ] | UnsetType = UNSET  # fmt: skip


class IsDone(RequestModel, kw_only=True):
    kind: FilterKind
    subject: Subject
    agent: FilterAgent | UnsetType = UNSET


class RecordDone(RequestModel, kw_only=True):
    kind: Kind
    subject: Subject


class Done(ResponseModel, kw_only=True):
    agent: str
    kind: str
    subject: str
    time: Timestamp


class DonePage(ResponseModel, kw_only=True):
    done: list[Done]
    next: NextCursor


class Exists(ResponseModel, kw_only=True):
    exists: bool


class Recorded(ResponseModel, kw_only=True):
    recorded: bool


def list_done(request: AuthorizedRequest, params: ListDone) -> DonePage:
    agent = _agent(request, or_none(params.agent))
    filters = params.given("kind", "subject")
    if "subject" in filters:
        _checked_subject(filters["subject"])
    found, following = request.ledger.done.list_page(agent, **filters, limit=params.limit, cursor=or_none(params.cursor))
    return DonePage(done=[_done(item) for item in found], next=following)


def is_done(request: AuthorizedRequest, params: IsDone) -> Exists:
    agent = _agent(request, or_none(params.agent))
    return Exists(exists=request.ledger.done.exists(agent, params.kind, _checked_subject(params.subject)))


def _agent(request: AuthorizedRequest, named: str | None) -> str | None:
    """Return the agent whose work is meant: by default the caller, for the operator every agent (None)."""
    if named is not None and named != request.caller.agent:
        request.gate.allow(request.caller, "agents.manage", route=request.route.name, request=request.id)
        return named
    return None if named is None and request.caller.is_person else request.caller.agent


def record_done(request: AuthorizedRequest, params: RecordDone) -> Reply:
    agent, kind, subject, ledger = request.caller.agent, params.kind, _checked_subject(params.subject), request.ledger
    for text in (kind, subject):  # they are stored as they are, so they are checked as notes are
        validate.reject_secrets(text, "what was done", fix="Name it without the secret")
    if ledger.purges.has_purges() and not ledger.done.exists(agent, kind, subject):
        folder = Scope("agent", agent).folder
        ledger.purges.check_new_texts([(folder, kind), (folder, subject)])
    is_new = ledger.done.record(agent, kind, subject, int(dates.clock()))
    return Reply(body=Recorded(recorded=is_new), status=201 if is_new else 200)


def _checked_subject(subject: str) -> str:
    if not is_printable(subject):
        raise UsageError("a subject must be one line of printable text", "Remove line breaks and hidden characters")
    return subject


def _done(item: DoneItem) -> Done:
    return Done(agent=item.agent, kind=item.kind, subject=item.subject, time=format_timestamp(item.time))


ROUTES = (
    Route(
        "GET", "/done", list_done,
        action="done.read", summary="list recorded work, newest first: your own; for the operator, that of all agents",
        params=ListDone, answers=DonePage,
    ),
    Route(
        "GET", "/done/exists", is_done,
        action="done.read", summary="tell whether work was recorded: by you; for the operator, by any agent",
        params=IsDone, answers=Exists, answer_example={"exists": True},
    ),
    Route(
        "POST", "/done", record_done,
        action="done.write", summary="record work as done; `recorded` is true only for the first of several identical requests",
        params=RecordDone, reads=JSON, example={"kind": "triage", "subject": "acme/shop#7"},
        answers=Recorded, status=201, other_status=200, answer_example={"recorded": True}, replay=REPLAY_WHOLE,
    ),
)  # fmt: skip
