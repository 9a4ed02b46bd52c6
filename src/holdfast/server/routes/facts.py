"""Facts, and the graph of subjects that their links make."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.api import pagination
from holdfast.formats.facts import reads_back
from holdfast.models import AGENT_ORIGINS, SCOPES, Fact, FactSet
from holdfast.safety import validate
from holdfast.server.idempotency import Replay, current_note, note_ids
from holdfast.server.models import (
    LABEL_PATTERN,
    LINE_PATTERN,
    PAGE_LIMIT,
    AsOf,
    MadeFrom,
    NextCursor,
    OriginName,
    OtherAgentRequest,
    PageCursor,
    PageLimit,
    Redact,
    ResponseModel,
    WriteScope,
    choices,
    moment,
)
from holdfast.server.route import ALL_SCOPES, JSON, READ, WRITE, AuthorizedRequest, Reply, Route
from holdfast.verbs.facts import FactSubject
from holdfast.verbs.graph import Edge, Graph

_LINE = {"pattern": LINE_PATTERN}
FactScope = Annotated[
    Literal["session", "project", "agent", "global", "all"],
    choices(
        "Only this scope. Default: every scope you may read. `all` (operator only): every scope of the home.",
        (*SCOPES, "all"),
    ),
]
Subject = Annotated[
    str, Meta(description="The subject, such as a person or a service.", min_length=1, max_length=500, extra_json_schema=_LINE)
]
Label = Annotated[
    str, Meta(description="The property, such as `status`.", min_length=1, max_length=200, extra_json_schema=_LINE)
]
NewSubject = Annotated[str, Meta(description="The subject: one line.", min_length=1, max_length=200, extra_json_schema=_LINE)]
NewLabel = Annotated[
    str,
    Meta(
        description="The property: one line without a colon.", min_length=1, max_length=200,
        extra_json_schema={"pattern": LABEL_PATTERN},
    ),
]  # fmt: skip


class ListFacts(OtherAgentRequest, kw_only=True):
    subject: Subject | UnsetType = UNSET
    label: Label | UnsetType = UNSET
    as_of: AsOf | UnsetType = UNSET
    scope: FactScope | UnsetType = UNSET
    history: Annotated[bool, Meta(description="Include facts that are no longer true.")] | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class ListSubjects(OtherAgentRequest, kw_only=True):
    contains: Annotated[
        str, Meta(description="Only names that contain this text.", max_length=500, extra_json_schema=_LINE)
    ] | UnsetType = UNSET  # fmt: skip
    scope: FactScope | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class StateFact(OtherAgentRequest, kw_only=True):
    subject: NewSubject
    label: NewLabel
    value: Annotated[
        str,
        Meta(
            description="The value, one line. [[Name]] links to another subject.", min_length=1, max_length=2000,
            extra_json_schema=_LINE,
        ),
    ]  # fmt: skip
    on: Annotated[str, moment("The day from which it is true. Default: today.")] | UnsetType = UNSET
    many: Annotated[bool, Meta(description="Keep the current values too, instead of closing them.")] | UnsetType = UNSET
    scope: WriteScope | UnsetType = UNSET
    origin: (
        Annotated[OriginName, choices("Where the fact came from, if not from the agent's own work.", AGENT_ORIGINS)] | UnsetType
    ) = UNSET
    made_from: MadeFrom | UnsetType = UNSET
    redact: Redact | UnsetType = UNSET


class GetGraph(OtherAgentRequest, kw_only=True):
    entity: Annotated[str, Meta(description="The entity, by any of its names.", min_length=1)]
    depth: Annotated[int, Meta(description="Maximum number of links away. Default: 1.", ge=0, le=10)] | UnsetType = UNSET
    as_of: AsOf | UnsetType = UNSET
    scope: FactScope | UnsetType = UNSET


class FindPath(OtherAgentRequest, kw_only=True):
    start: Annotated[str, Meta(description="The first entity.", min_length=1)] = msgspec.field(name="from")
    to: Annotated[str, Meta(description="The last entity.", min_length=1)]
    as_of: AsOf | UnsetType = UNSET
    scope: FactScope | UnsetType = UNSET


class FactPage(ResponseModel, kw_only=True):
    facts: list[Fact]
    next: NextCursor


class SubjectPage(ResponseModel, kw_only=True):
    subjects: list[FactSubject]
    next: NextCursor


class GraphPath(ResponseModel, kw_only=True):
    path: list[Edge]


def list_facts(request: AuthorizedRequest, params: ListFacts) -> FactPage:
    filters = params.given("subject", "label", "as_of", "scope", "history")
    found, following = pagination.facts_page(request.memory, params.limit, params.cursor, **filters)
    return FactPage(facts=found, next=following)


def list_subjects(request: AuthorizedRequest, params: ListSubjects) -> SubjectPage:
    filters = params.given("contains", "scope")
    found, following = pagination.subjects_page(request.memory, params.limit, params.cursor, **filters)
    return SubjectPage(subjects=found, next=following)


def state_fact(request: AuthorizedRequest, params: StateFact) -> Reply:
    options = params.given("on", "many", "scope", "origin", "made_from", "redact")
    stated = request.memory.fact(params.subject, params.label, params.value, **options)
    return Reply(body=stated, status=201 if stated.action == "created" else 200)


def _keep_stated(body: dict[str, Any]) -> dict[str, Any]:
    days = [one["valid_from"] for one in body["retired"]]
    kept = {"action": body["action"], "redacted": body["redacted"]}
    return {**kept, **note_ids(body["note"]), "from": body["fact"]["valid_from"], "retired": days}


def _rebuild_stated(request: AuthorizedRequest, params: StateFact, kept: dict[str, Any]) -> FactSet:
    """Return the same answer as the first time, from the current facts; if they were deleted, from the request."""
    note, redacted = current_note(request, kept), tuple(kept.get("redacted", ()))
    subject, label, value, _ = validate.check_fact(
        params.subject, params.label, params.value, bool(redacted), reads_back=reads_back
    )
    every = request.memory.facts(subject, label=label, history=True)
    in_scope = [one for one in every if one.scope.kind == kept["scope"]]
    stated = [one for one in in_scope if one.value == value and one.valid_from == kept["from"]]
    fact = stated[0] if stated else Fact(subject, label, value, kept["from"], scope=note.scope)
    retired = [one for one in in_scope if one.valid_from in kept["retired"] and one != fact]
    return FactSet(kept["action"], fact, tuple(retired), note, redacted)


def get_graph(request: AuthorizedRequest, params: GetGraph) -> Graph:
    return request.memory.graph(params.entity, **params.given("depth", "as_of", "scope"))


def find_path(request: AuthorizedRequest, params: FindPath) -> GraphPath:
    return GraphPath(path=request.memory.path(params.start, params.to, **params.given("as_of", "scope")))


ROUTES = (
    Route(
        "GET", "/v1/facts", list_facts,
        action=READ, scope=ALL_SCOPES, summary="list facts by subject and label, current or as of a day",
        params=ListFacts, answers=FactPage, may_name_agent=True, verbs=("facts",),
    ),
    Route(
        "GET", "/v1/facts/subjects", list_subjects,
        action=READ, scope=ALL_SCOPES, summary="list the subjects of facts by name",
        params=ListSubjects, answers=SubjectPage, may_name_agent=True,
    ),
    Route(
        "POST", "/v1/facts", state_fact,
        action=WRITE, scope="project", summary="record a dated fact; a fact it replaces is closed and kept as history",
        params=StateFact, reads=JSON, answers=FactSet, status=201, other_status=200,
        replay=Replay(_keep_stated, _rebuild_stated), may_name_agent=True,
        example={"subject": "Telegram", "label": "status", "value": "enabled", "on": "2026-03-27", "scope": "agent"},
        verbs=("fact",),
    ),
    Route(
        "GET", "/v1/graph", get_graph,
        action=READ, scope=ALL_SCOPES, summary="return the entities that facts link to an entity with [[Name]]",
        params=GetGraph, answers=Graph, may_name_agent=True, verbs=("graph",),
    ),
    Route(
        "GET", "/v1/graph/path", find_path,
        action=READ, scope=ALL_SCOPES, summary="return the shortest path between two entities; empty if there is none",
        params=FindPath, answers=GraphPath, may_name_agent=True, verbs=("path",),
    ),
)  # fmt: skip
