"""Activity: notes written, shown and used, by day."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from holdfast.api.memory import context_of
from holdfast.server.models import ScopedRequest
from holdfast.server.route import ALL_SCOPES, READ, AuthorizedRequest, Route
from holdfast.verbs.activity import Activity, get_activity


class GetActivity(ScopedRequest, kw_only=True):
    days: Annotated[int, Meta(description="How many days, today included.", ge=1, le=365)] = 30
    everywhere: Annotated[
        bool, Meta(description="Of every agent, project and session; a person's to ask, and takes `agents.manage` too.")
    ] | UnsetType = UNSET  # fmt: skip


def show_activity(request: AuthorizedRequest, params: GetActivity) -> Activity:
    everywhere = params.everywhere is True
    if everywhere:
        request.gate.allow(request.caller, "agents.manage", route=request.route.name, request=request.id)
    return get_activity(context_of(request.memory), params.days, everywhere)


ROUTES = (
    Route(
        "GET", "/v1/activity", show_activity,
        action=READ, scope=ALL_SCOPES,
        summary=(
            "per day in UTC, the versions of notes recorded, the versions first shown to a session, and the notes last used"
            " that day; and the notes shown and used last"
        ),
        params=GetActivity, answers=Activity,
    ),
)  # fmt: skip
