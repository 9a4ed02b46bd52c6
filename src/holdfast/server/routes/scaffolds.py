"""Template trees for an agent's own files, and return the start-up text of an agent, composed from its own files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.models import SCOPES
from holdfast.server.idempotency import REPLAY_WHOLE
from holdfast.server.models import ReadScope, ScopedRequest, ScopeName, choices
from holdfast.server.route import ALL_SCOPES, JSON, READ, WRITE, AuthorizedRequest, Route
from holdfast.verbs.scaffold import Scaffolded, list_scaffolds
from holdfast.verbs.scaffold.boot import Boot

if TYPE_CHECKING:
    _AnyScaffold = str
else:
    _AnyScaffold = Literal[tuple(list_scaffolds())]
ScaffoldName = Annotated[_AnyScaffold, choices("The scaffold.", tuple(list_scaffolds()))]


class MakeScaffold(ScopedRequest, kw_only=True):
    name: ScaffoldName
    scope: Annotated[ScopeName, choices("The scope of the files. Default: `agent`.", SCOPES)] = "agent"


class MakeBoot(ScopedRequest, kw_only=True):
    scope: ReadScope | UnsetType = UNSET
    cap: Annotated[
        int, Meta(description="Maximum number of characters. Default: 6000.", ge=1500, le=9000)
    ] | UnsetType = UNSET  # fmt: skip
    scaffolds: Annotated[
        list[ScaffoldName],
        Meta(description="Scaffolds to create first if they are missing. Also needs `agent.memory.write`.", max_length=16),
    ] | UnsetType = UNSET  # fmt: skip
    remember: Annotated[
        bool, Meta(description="Mark the messages of the operator that are shown whole as read. Default: true.")
    ] | UnsetType = UNSET  # fmt: skip


def make_scaffold(request: AuthorizedRequest, params: MakeScaffold) -> Scaffolded:
    return request.memory.scaffold(params.name, scope=params.scope)


def make_boot(request: AuthorizedRequest, params: MakeBoot) -> Boot:
    """Return the start-up text. To have scaffolds made first the caller must be allowed to write, a decision of its own."""
    if params.scaffolds:
        scope = "agent" if params.scope is UNSET else params.scope
        request.gateway.gate.allow(
            request.caller, WRITE, scope, named=request.named, route=request.route.name, request=request.id
        )
        request.target.must_name(scope)
    return request.memory.boot(**params.given("scope", "cap", "scaffolds", "remember"))


ROUTES = (
    Route(
        "POST", "/v1/scaffold", make_scaffold,
        action=WRITE, scope="agent", summary="create the template files of a scaffold; existing files are not changed",
        params=MakeScaffold, reads=JSON, example={"name": "wiki", "scope": "agent"},
        answers=Scaffolded, replay=REPLAY_WHOLE, verbs=("scaffold",),
    ),
    Route(
        "POST", "/v1/boot", make_boot,
        action=READ, scope=ALL_SCOPES, summary="return the start-up text of an agent, composed from its own files",
        params=MakeBoot, reads=JSON, example={"cap": 3000}, answers=Boot, for_model=True, verbs=("boot",),
    ),
)  # fmt: skip
