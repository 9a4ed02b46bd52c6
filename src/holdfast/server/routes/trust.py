"""Provenance of notes: what waits for a person's review, what one source affected, and where a note was shown."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from holdfast.api import pagination
from holdfast.api.memory import context_of
from holdfast.errors import NotFound
from holdfast.models import Forgotten, Note, Scope
from holdfast.server.idempotency import REPLAY_NOTE, REPLAY_WHOLE, note_reply
from holdfast.server.models import (
    PAGE_LIMIT,
    PRINTABLE_PATTERN,
    Everywhere,
    Key,
    NextCursor,
    NoteScope,
    OtherAgentRequest,
    PageCursor,
    PageLimit,
    ReadScope,
    ResponseModel,
    ScopedRequest,
)
from holdfast.server.route import ALL_SCOPES, JSON, READ, WRITE, AuthorizedRequest, Reply, Route, check_everywhere
from holdfast.verbs.forget_source import Swept
from holdfast.verbs.trace import Trace

_REVIEW = "memory.review"


class ListQuarantined(OtherAgentRequest, kw_only=True):
    scope: ReadScope | UnsetType = UNSET
    everywhere: Everywhere | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class ReviewNote(OtherAgentRequest, kw_only=True):
    scope: NoteScope
    key: Key
    version: Annotated[str, Meta(description="The `version` of the note that you reviewed.", min_length=1, max_length=100)]


class TraceNote(OtherAgentRequest, kw_only=True):
    scope: NoteScope
    key: Key


class ForgetSource(ScopedRequest, kw_only=True):
    source: Annotated[
        str,
        Meta(
            description="A URL or its beginning, a path, session:ID, client:NAME, agent:NAME, origin:web or note:KEY.",
            min_length=1,
            max_length=2000,
            extra_json_schema={"pattern": PRINTABLE_PATTERN},
        ),
    ]
    revert: Annotated[
        bool, Meta(description="If a note has an older version from another source, restore that version instead.")
    ] | UnsetType = UNSET  # fmt: skip
    dry_run: Annotated[bool, Meta(description="Report what would be forgotten and change nothing.")] | UnsetType = UNSET
    everywhere: Annotated[bool, Meta(description="In every scope of the home. Operator only.")] | UnsetType = UNSET


class QuarantinePage(ResponseModel, kw_only=True):
    notes: list[Note]
    next: NextCursor
    waiting: Annotated[int, Meta(description="Number of notes in quarantine.", ge=0, le=10**9)]


def list_quarantined(request: AuthorizedRequest, params: ListQuarantined) -> QuarantinePage:
    check_everywhere(request, params.everywhere is True)
    if request.target.agent is not None:
        _check_agent_exists(request, request.target.agent)
    found, following, count = pagination.review_page(
        request.memory, params.limit, params.cursor, **params.given("scope", "everywhere")
    )
    return QuarantinePage(notes=found, next=following, waiting=count)


def _check_agent_exists(request: AuthorizedRequest, agent: str) -> None:
    """Raise `NotFound` unless the agent has had a token, or has notes from before there was a gateway."""
    try:
        request.gate.agent(agent)
    except NotFound:
        if not context_of(request.memory).store.has_folder(Scope("agent", agent).folder):
            raise


def approve_note(request: AuthorizedRequest, params: ReviewNote) -> Reply:
    return note_reply(request.memory.approve(params.key, scope=params.scope, expected=params.version))


def reject_note(request: AuthorizedRequest, params: ReviewNote) -> Forgotten:
    return request.memory.reject(params.key, scope=params.scope, expected=params.version)


def quarantine_note(request: AuthorizedRequest, params: ReviewNote) -> Reply:
    return note_reply(request.memory.quarantine(params.key, scope=params.scope, expected=params.version))


def trace_note(request: AuthorizedRequest, params: TraceNote) -> Trace:
    return request.memory.trace(params.key, scope=params.scope)


def forget_source(request: AuthorizedRequest, params: ForgetSource) -> Swept:
    return request.memory.forget_source(params.source, **params.given("revert", "dry_run", "everywhere"))


_VERSION_EXAMPLE = {"version": "5f1d7a84db22e8d6b2d5b1b6ad2b3c5a"}

ROUTES = (
    Route(
        "GET", "/v1/review", list_quarantined,
        action=_REVIEW, scope=ALL_SCOPES,
        summary="list quarantined notes, which agents are not shown until a person approves them",
        params=ListQuarantined, answers=QuarantinePage, may_name_agent=True, problems=("not_found",), verbs=("review",),
    ),
    Route(
        "POST", "/v1/review/{scope}/{key}/approve", approve_note,
        action=_REVIEW, scope="project", summary="approve a note so that agents are shown it; operator only",
        params=ReviewNote, reads=JSON, example=_VERSION_EXAMPLE,
        answers=Note, may_name_agent=True, replay=REPLAY_NOTE, problems=("not_found",), verbs=("approve",),
    ),
    Route(
        "POST", "/v1/review/{scope}/{key}/reject", reject_note,
        action=_REVIEW, scope="project", summary="reject a note and move it to the trash; operator only",
        params=ReviewNote, reads=JSON, example=_VERSION_EXAMPLE,
        answers=Forgotten, may_name_agent=True, replay=REPLAY_WHOLE, problems=("not_found",), verbs=("reject",),
    ),
    Route(
        "POST", "/v1/review/{scope}/{key}/quarantine", quarantine_note,
        action=_REVIEW, scope="project",
        summary="withdraw an approval; the note waits for review again; operator only",
        params=ReviewNote, reads=JSON, example=_VERSION_EXAMPLE,
        answers=Note, may_name_agent=True, replay=REPLAY_NOTE, problems=("not_found",), verbs=("quarantine",),
    ),
    Route(
        "GET", "/v1/trace/{scope}/{key}", trace_note,
        action=READ, scope="project",
        summary="return the sources of a note, where it was shown, what was derived from it, and review decisions",
        params=TraceNote, answers=Trace, may_name_agent=True, problems=("not_found",), verbs=("trace",),
    ),
    Route(
        "POST", "/v1/forget-source", forget_source,
        action=WRITE, scope=ALL_SCOPES, summary="forget every note from a source, including notes derived from them",
        params=ForgetSource, reads=JSON, example={"source": "https://blog.example/post", "dry_run": True},
        answers=Swept, replay=REPLAY_WHOLE, problems=("not_found",), verbs=("forget_source",),
    ),
)  # fmt: skip
