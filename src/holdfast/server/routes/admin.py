"""Maintenance of the whole home: check, reindex, embed, archive."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from holdfast.access import health
from holdfast.access.policy import denial_reason
from holdfast.api.memory import context_of
from holdfast.models import Note
from holdfast.server.idempotency import REPLAY_WHOLE, Replay
from holdfast.server.models import RequestModel, ResponseModel
from holdfast.server.problem import hide_home
from holdfast.server.route import JSON, AuthorizedRequest, Route
from holdfast.verbs.doctor.checks import merge_problems
from holdfast.verbs.doctor.fixes import with_fixes
from holdfast.verbs.status import Reindexed

_MAINTAIN = "home.care"


class Retain(RequestModel, kw_only=True):
    dry_run: Annotated[bool, Meta(description="Report what would be archived and change nothing.")] | UnsetType = UNSET


class FoundProblem(ResponseModel, kw_only=True):
    code: str
    message: str
    fix: Annotated[str, Meta(description="The command that fixes it, to run on the server's machine.")]
    path: str


class Checked(ResponseModel, kw_only=True):
    problems: list[FoundProblem]


class Embedded(ResponseModel, kw_only=True):
    left: dict[str, int]
    failed: dict[str, str]


class Retained(ResponseModel, kw_only=True):
    archived: list[Note]


def check(request: AuthorizedRequest, params: RequestModel) -> dict[str, Any]:
    """Return problems without the path of the home; those of roles, agents and the audit only to callers who may see them."""
    home, settings = request.gateway.home, request.gateway.config_of(request.caller)
    is_whole = settings == request.gateway.config()
    role = request.gate.role(request.caller.role)
    gateway_problems = health.find_gate_problems(request.gate, is_whole, lambda action: not denial_reason(role, action, None))
    found = [one.as_dict() for one in merge_problems(request.memory.check(), with_fixes(settings.home, gateway_problems))]
    return {"problems": [{name: hide_home(text, home) for name, text in one.items()} for one in found]}


def reindex(request: AuthorizedRequest, params: RequestModel) -> Reindexed:
    return request.memory.reindex()


def embed(request: AuthorizedRequest, params: RequestModel) -> Embedded:
    left = request.memory.embed()
    return Embedded(left=dict(left), failed=left.failed)


def retain(request: AuthorizedRequest, params: Retain) -> dict[str, Any]:
    """Archive in every scope; of notes that are not the caller's own, only a person sees the text."""
    found = request.memory.retain(**params.given("dry_run"))
    own_scopes = context_of(request.memory).visible_scopes(None)
    is_person = request.caller.is_person
    return {
        "archived": [
            note.as_dict() if is_person or note.scope in own_scopes else _without_text(note.as_dict()) for note in found
        ]
    }


def _without_text(note: dict[str, Any]) -> dict[str, Any]:
    return {**note, "text": "", "tags": [], "source": {**note["source"], "made_from": []}}


_REPLAY_RETAINED = Replay(
    lambda body: {"archived": [_without_text(note) for note in body["archived"]]}, lambda request, params, kept: kept
)

ROUTES = (
    Route(
        "GET", "/v1/check", check,
        is_slow=True,
        action=_MAINTAIN, summary="check the home, roles and audit log, and return each problem with its fix",
        answers=Checked, answer_example={"problems": []}, verbs=("check",),
    ),
    Route(
        "POST", "/v1/reindex", reindex,
        is_slow=True,
        action=_MAINTAIN, summary="delete the index and rebuild it from the files",
        reads=JSON, example={}, answers=Reindexed, replay=REPLAY_WHOLE, verbs=("reindex",),
    ),
    Route(
        "POST", "/v1/embed", embed,
        is_slow=True,
        action=_MAINTAIN, summary="compute all missing vectors now instead of a few with each recall",
        reads=JSON, example={}, answers=Embedded, answer_example={"left": {"search": 0}, "failed": {}},
        replay=REPLAY_WHOLE, verbs=("embed",),
    ),
    Route(
        "POST", "/v1/retain", retain,
        is_slow=True,
        action=_MAINTAIN, summary="archive expired and unused notes, and delete expired trash",
        params=Retain, reads=JSON, example={"dry_run": True},
        answers=Retained, replay=_REPLAY_RETAINED, verbs=("retain",),
    ),
)  # fmt: skip
