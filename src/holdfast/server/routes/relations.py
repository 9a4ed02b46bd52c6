"""Relations between notes, and a person's decisions about those that agents propose."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.api import pagination
from holdfast.models import RELATION_KINDS, RELATION_STATUSES, Related, Relation
from holdfast.server.idempotency import REPLAY_WHOLE
from holdfast.server.models import (
    PAGE_LIMIT,
    Everywhere,
    Key,
    NextCursor,
    NoteScope,
    OtherAgentRequest,
    PageCursor,
    PageLimit,
    ReadScope,
    ResponseModel,
    choices,
)
from holdfast.server.route import ALL_SCOPES, JSON, READ, WRITE, AuthorizedRequest, Reply, Route, check_everywhere

_REVIEW = "memory.review"
Status = Annotated[
    Literal["proposed", "accepted", "rejected"], choices("Only relations with this status.", RELATION_STATUSES)
]  # fmt: skip


class ListRelations(OtherAgentRequest, kw_only=True):
    scope: ReadScope | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    everywhere: Everywhere | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class ListNoteRelations(OtherAgentRequest, kw_only=True):
    scope: NoteScope
    key: Key
    status: Status | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class ChangeRelation(OtherAgentRequest, kw_only=True):
    scope: NoteScope
    key: Key
    kind: Annotated[
        Literal["relates_to", "contradicts", "supersedes"], choices("What the note states of the other one.", RELATION_KINDS)
    ]  # fmt: skip
    target: Annotated[Key, Meta(description="The key of the other note.")]
    target_scope: Annotated[
        NoteScope, Meta(description="The scope of the other note. Default: that of the note, if it is there.")
    ] | UnsetType = UNSET  # fmt: skip


class RelationPage(ResponseModel, kw_only=True):
    relations: list[Relation]
    next: NextCursor


def list_relations(request: AuthorizedRequest, params: ListRelations) -> RelationPage:
    check_everywhere(request, params.everywhere is True)
    found, following = pagination.relations_page(
        request.memory, params.limit, params.cursor, **params.given("scope", "status", "everywhere")
    )
    return RelationPage(relations=found, next=following)


def list_note_relations(request: AuthorizedRequest, params: ListNoteRelations) -> RelationPage:
    found, following = pagination.relations_page(
        request.memory, params.limit, params.cursor, key=params.key, scope=params.scope, **params.given("status")
    )
    return RelationPage(relations=found, next=following)


def relate(request: AuthorizedRequest, params: ChangeRelation) -> Reply:
    related = request.memory.relate(params.key, params.kind, params.target, scope=params.scope, **params.given("target_scope"))
    return Reply(body=related, status=201 if related.action == "created" else 200)


def unrelate(request: AuthorizedRequest, params: ChangeRelation) -> Related:
    return request.memory.unrelate(params.key, params.kind, params.target, scope=params.scope, **params.given("target_scope"))


def accept_relation(request: AuthorizedRequest, params: ChangeRelation) -> Related:
    return request.memory.accept_relation(
        params.key, params.kind, params.target, scope=params.scope, **params.given("target_scope")
    )


def reject_relation(request: AuthorizedRequest, params: ChangeRelation) -> Related:
    return request.memory.reject_relation(
        params.key, params.kind, params.target, scope=params.scope, **params.given("target_scope")
    )


_EXAMPLE = {"kind": "supersedes", "target": "old-deploys"}

ROUTES = (
    Route(
        "GET", "/v1/relations", list_relations,
        action=READ, scope=ALL_SCOPES, summary="list relations between notes, such as those that wait for review",
        params=ListRelations, answers=RelationPage, may_name_agent=True, verbs=("relations",),
    ),
    Route(
        "GET", "/v1/notes/{scope}/{key}/relations", list_note_relations,
        action=READ, scope="project", summary="list the relations of a note in both directions, and what it was made from",
        params=ListNoteRelations, answers=RelationPage, may_name_agent=True, problems=("not_found",), verbs=("relations",),
    ),
    Route(
        "POST", "/v1/notes/{scope}/{key}/relations", relate,
        action=WRITE, scope="project", summary="state that a note relates to, contradicts or supersedes another note",
        params=ChangeRelation, reads=JSON, answers=Related, status=201, other_status=200, example=_EXAMPLE,
        replay=REPLAY_WHOLE, may_name_agent=True, problems=("not_found", "conflict"), verbs=("relate",),
    ),
    Route(
        "DELETE", "/v1/notes/{scope}/{key}/relations", unrelate,
        action=WRITE, scope="project", summary="remove a relation that a note states",
        params=ChangeRelation, answers=Related, replay=REPLAY_WHOLE, may_name_agent=True, problems=("not_found", "conflict"),
        verbs=("unrelate",),
    ),
    Route(
        "POST", "/v1/review/{scope}/{key}/relations/accept", accept_relation,
        action=_REVIEW, scope="project", summary="accept a relation that an agent proposed; operator only",
        params=ChangeRelation, reads=JSON, answers=Related, example=_EXAMPLE,
        replay=REPLAY_WHOLE, may_name_agent=True, problems=("not_found", "conflict"), verbs=("accept_relation",),
    ),
    Route(
        "POST", "/v1/review/{scope}/{key}/relations/reject", reject_relation,
        action=_REVIEW, scope="project", summary="reject a relation, so that it is never proposed again; operator only",
        params=ChangeRelation, reads=JSON, answers=Related, example=_EXAMPLE,
        replay=REPLAY_WHOLE, may_name_agent=True, problems=("not_found", "conflict"), verbs=("reject_relation",),
    ),
)  # fmt: skip
