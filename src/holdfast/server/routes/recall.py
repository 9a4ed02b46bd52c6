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

Limit = Annotated[int, Meta(description="At most so many; otherwise 10.", ge=1, le=100)]
LineNumber = Annotated[int, Meta(description="First line, from 1.", ge=1, le=10**9)]
Amount = Annotated[
    int | None, Meta(description="null where it is not told: what is counted over the whole home is the operator's to know.")
]


class Recall(OtherAgentRequest, kw_only=True):
    schema_rules: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"mode": {"const": "recent"}}, "required": ["mode"]},
        "else": {"properties": {"query": {"pattern": r"\S"}}, "required": ["query"]},
    }
    query: Annotated[
        str, Meta(description="What you want to know, in plain words. May be empty with mode recent.", max_length=10_000)
    ] = ""  # fmt: skip
    scope: Annotated[
        Literal["session", "project", "agent", "global", "all"],
        choices(
            "Only there; otherwise everything you may see. `all` is the operator's: every scope of the home.", (*SCOPES, "all")
        ),
    ] | UnsetType = UNSET  # fmt: skip
    type: FilterType | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    as_of: AsOf | UnsetType = UNSET
    known_at: KnownAt | UnsetType = UNSET
    mode: Annotated[
        Literal["hybrid", "keyword", "semantic", "recent"],
        choices("How to look. Otherwise hybrid: by words and by meaning.", MODES),
    ] | UnsetType = UNSET  # fmt: skip
    sort: Annotated[
        Literal["relevance", "recency", "usage"], choices("What comes first. Otherwise relevance.", SORTS)
    ] | UnsetType = UNSET  # fmt: skip
    kind: Annotated[
        Literal["note", "file", "turn", "fact"],
        choices("Only notes, files, facts, or turns of earlier sessions.", tuple(PARTS)),
    ] | UnsetType = UNSET  # fmt: skip
    now: Annotated[str, moment("When it is, for questions such as `last week`.")] | UnsetType = UNSET
    explain: Annotated[
        bool, Meta(description="Why each hit is where it is; with mode recent its date alone says.")
    ] | UnsetType = UNSET  # fmt: skip
    archived: Annotated[
        bool, Meta(description="Only archived notes, or with false none of them; otherwise both, archived ones lower.")
    ] | UnsetType = UNSET  # fmt: skip


class Search(ScopedRequest, kw_only=True):
    query: Annotated[str, Meta(description="What to look for.", min_length=1, max_length=10_000)]
    limit: Limit | UnsetType = UNSET
    mode: Annotated[
        Literal["hybrid", "keyword", "semantic"],
        choices("How to look. Otherwise hybrid: by words and by meaning.", SEARCH_MODES),
    ] | UnsetType = UNSET  # fmt: skip


class Read(ScopedRequest, kw_only=True):
    path: Annotated[
        str,
        Meta(
            description="The path, as hits cite it.", min_length=1, max_length=1024,
            extra_json_schema={"pattern": PATH_PATTERN},
        ),
    ]  # fmt: skip
    first_line: LineNumber = msgspec.field(name="from", default=1)
    lines: Annotated[int, Meta(description="So many lines.", ge=1, le=10**9)] | UnsetType = UNSET


class MakeBrief(ScopedRequest, kw_only=True):
    prompt: Annotated[
        str, Meta(description="What bears on this and was not shown to the session yet.", max_length=100_000)
    ] | UnsetType = UNSET  # fmt: skip
    again: Annotated[bool, Meta(description="Also what was shown to the session.")] | UnsetType = UNSET
    cap: Annotated[int, Meta(description="At most so many characters.", ge=750, le=9000)] | UnsetType = UNSET
    explain: Annotated[bool, Meta(description="Why each note is in or out; not counted as shown.")] | UnsetType = UNSET
    mode: Annotated[
        Literal["keyword", "hybrid"], choices("With a prompt: how to look.", ("keyword", "hybrid"))
    ] | UnsetType = UNSET  # fmt: skip
    remember: Annotated[
        bool, Meta(description="Whether to remember what this session was shown; otherwise yes.")
    ] | UnsetType = UNSET  # fmt: skip


class GetStatus(ScopedRequest, kw_only=True):
    whole: Annotated[
        bool,
        Meta(description="To the operator, of the whole home; otherwise yes. Nobody else is told of more than their scopes."),
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
        action=READ, scope=ALL_SCOPES, summary="find what is known about something",
        params=Recall, reads=JSON, example={"query": "which test runner", "mode": "keyword"},
        answers=Answer, may_name_agent=True, verbs=("recall",),
        answer_example={"hits": [], "mode": "keyword", "degraded": False, "reason": "", "disabled": False},
    ),
    Route(
        "POST", "/v1/search", search,
        action=READ, scope=ALL_SCOPES, summary="pieces of notes and files that match: path, lines, score, snippet",
        params=Search, reads=JSON, example={"query": "pytest"}, answers=SearchResults, verbs=("search",),
    ),
    Route(
        "GET", "/v1/read", read,
        action=READ, scope=ALL_SCOPES, summary="a piece of a file by the path that hits show; a missing one is empty text",
        params=Read, answers=Piece, verbs=("read",),
    ),
    Route(
        "POST", "/v1/brief", brief,
        action=READ, scope=ALL_SCOPES, summary="what an agent is told when it starts, or with a prompt",
        params=MakeBrief, reads=JSON, example={"cap": 3000}, answers=Brief, for_model=True, verbs=("brief",),
    ),
    Route(
        "GET", "/v1/status", status,
        action=READ, scope=ALL_SCOPES, summary="how much there is in the scopes you may see",
        params=GetStatus, answers=Status, verbs=("status",),
    ),
)  # fmt: skip
