"""Ask: recall, search, read, briefings, and how much there is."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.models import MODES, PARTS, RECALL_OPTIONS, SCOPES, SEARCH_MODES, SORTS, Answer
from holdfast.server.models import (
    PATH_PATTERN,
    AsOf,
    FilterType,
    KnownAt,
    OtherAgentRequest,
    ResponseModel,
    ScopedRequest,
    Tags,
    choices,
    moment,
    or_none,
)
from holdfast.server.route import ALL_SCOPES, JSON, READ, AuthorizedRequest, Route
from holdfast.verbs.brief.render import Brief
from holdfast.verbs.read import Piece, Snippet

Limit = Annotated[int, Meta(description="Maximum number of hits. Default: 10.", ge=1, le=100)]
LineNumber = Annotated[int, Meta(description="The first line; 1 is the first of the file.", ge=1, le=10**9)]
Amount = Annotated[int | None, Meta(description="Null if not shown: totals of the whole home are shown to the operator only.")]


class Recall(OtherAgentRequest, kw_only=True):
    schema_rules: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"mode": {"const": "recent"}}, "required": ["mode"]},
        "else": {"properties": {"query": {"pattern": r"\S"}}, "required": ["query"]},
    }
    query: Annotated[
        str, Meta(description="The question in plain words. May be empty with mode `recent`.", max_length=10_000)
    ] = ""  # fmt: skip
    scope: Annotated[
        Literal["session", "project", "agent", "global", "all"],
        choices(
            "Only this scope. Default: every scope you may read. `all` (operator only): every scope of the home.",
            (*SCOPES, "all"),
        ),
    ] | UnsetType = UNSET  # fmt: skip
    type: FilterType | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    as_of: AsOf | UnsetType = UNSET
    known_at: KnownAt | UnsetType = UNSET
    mode: Annotated[
        Literal["hybrid", "keyword", "semantic", "recent"],
        choices("The search mode. Default: `hybrid`, by words and by meaning.", MODES),
    ] | UnsetType = UNSET  # fmt: skip
    sort: Annotated[
        Literal["relevance", "recency", "usage"], choices("The order of hits. Default: `relevance`.", SORTS)
    ] | UnsetType = UNSET  # fmt: skip
    kind: Annotated[
        Literal["note", "file", "turn", "fact"],
        choices("Only notes, files, transcript turns or facts.", tuple(PARTS)),
    ] | UnsetType = UNSET  # fmt: skip
    now: Annotated[str, moment("The current time, for questions such as `last week`. Default: now.")] | UnsetType = UNSET
    explain: Annotated[
        bool, Meta(description="Explain the rank of each hit. With mode `recent` only the date decides.")
    ] | UnsetType = UNSET  # fmt: skip
    archived: Annotated[
        bool, Meta(description="true: only archived notes. false: none. Default: both, archived notes ranked lower.")
    ] | UnsetType = UNSET  # fmt: skip


class Search(ScopedRequest, kw_only=True):
    query: Annotated[str, Meta(description="The words to search for.", min_length=1, max_length=10_000)]
    limit: Limit | UnsetType = UNSET
    mode: Annotated[
        Literal["hybrid", "keyword", "semantic"],
        choices("The search mode. Default: `hybrid`, by words and by meaning.", SEARCH_MODES),
    ] | UnsetType = UNSET  # fmt: skip


class Read(ScopedRequest, kw_only=True):
    path: Annotated[
        str,
        Meta(
            description="The path, as hits show it.", min_length=1, max_length=1024,
            extra_json_schema={"pattern": PATH_PATTERN},
        ),
    ]  # fmt: skip
    first_line: LineNumber = msgspec.field(name="from", default=1)
    lines: Annotated[int, Meta(description="Number of lines.", ge=1, le=10**9)] | UnsetType = UNSET


class MakeBrief(ScopedRequest, kw_only=True):
    prompt: Annotated[
        str, Meta(description="Return notes relevant to this prompt that the session has not seen yet.", max_length=100_000)
    ] | UnsetType = UNSET  # fmt: skip
    again: Annotated[bool, Meta(description="Include notes that the session has already seen.")] | UnsetType = UNSET
    cap: Annotated[int, Meta(description="Maximum number of characters.", ge=750, le=9000)] | UnsetType = UNSET
    explain: (
        Annotated[bool, Meta(description="Explain why each note is included or left out. Nothing is recorded as shown.")]
        | UnsetType
    ) = UNSET
    mode: Annotated[
        Literal["keyword", "hybrid"], choices("With `prompt`: the search mode.", ("keyword", "hybrid"))
    ] | UnsetType = UNSET  # fmt: skip
    remember: Annotated[
        bool, Meta(description="Record what this session was shown. Default: true.")
    ] | UnsetType = UNSET  # fmt: skip


class GetStatus(ScopedRequest, kw_only=True):
    whole: Annotated[
        bool,
        Meta(
            description="For the operator: count the whole home. Default: true. Other callers see counts of their scopes only."
        ),
    ] = True


class SearchResults(ResponseModel, kw_only=True):
    results: list[Snippet]
    mode: str
    degraded: bool
    reason: str
    disabled: bool


class Status(ResponseModel, kw_only=True):
    """The fields that every status has; it may have more."""

    enabled: bool
    scopes: list[dict[str, Any]]
    passages: Amount
    facts: Amount
    sessions: Amount
    turns: Amount
    quarantined: Amount
    waiting: Amount
    index_bytes: Amount
    ledger_bytes: Amount


def recall(request: AuthorizedRequest, params: Recall) -> Answer:
    return request.memory.recall(params.query, **params.given(*RECALL_OPTIONS))


def search(request: AuthorizedRequest, params: Search) -> Any:
    return request.memory.search(params.query, **params.given("limit", "mode")).as_dict()


def read(request: AuthorizedRequest, params: Read) -> Piece:
    return request.memory.read(params.path, params.first_line, or_none(params.lines))


def brief(request: AuthorizedRequest, params: MakeBrief) -> Brief:
    return request.memory.brief(**params.given("prompt", "again", "cap", "explain", "mode", "remember"))


def status(request: AuthorizedRequest, params: GetStatus) -> dict[str, Any]:
    """Return how much the caller may see; where the home is, and what others have in it, is left out."""
    found = request.memory.status(whole=request.caller.is_person and params.whole).as_dict()
    return {name: value for name, value in found.items() if name not in ("home", "shelf", "project")}


ROUTES = (
    Route(
        "POST", "/v1/recall", recall,
        action=READ, scope=ALL_SCOPES, summary="search notes, files, facts and transcripts by meaning and by words",
        params=Recall, reads=JSON, example={"query": "which test runner", "mode": "keyword"},
        answers=Answer, may_name_agent=True, verbs=("recall",),
        answer_example={"hits": [], "mode": "keyword", "degraded": False, "reason": "", "disabled": False},
    ),
    Route(
        "POST", "/v1/search", search,
        action=READ, scope=ALL_SCOPES, summary="search notes and files; return path, lines, score and snippet of each hit",
        params=Search, reads=JSON, example={"query": "pytest"}, answers=SearchResults, verbs=("search",),
    ),
    Route(
        "GET", "/v1/read", read,
        action=READ, scope=ALL_SCOPES,
        summary="read lines of a file by the path that hits show; a missing file is an empty text",
        params=Read, answers=Piece, verbs=("read",),
    ),
    Route(
        "POST", "/v1/brief", brief,
        action=READ, scope=ALL_SCOPES, summary="return the briefing that an agent is shown at session start or with a prompt",
        params=MakeBrief, reads=JSON, example={"cap": 3000}, answers=Brief, for_model=True, verbs=("brief",),
    ),
    Route(
        "GET", "/v1/status", status,
        action=READ, scope=ALL_SCOPES, summary="count notes, facts, sessions and turns in the scopes you may read",
        params=GetStatus, answers=Status, verbs=("status",),
    ),
)  # fmt: skip
