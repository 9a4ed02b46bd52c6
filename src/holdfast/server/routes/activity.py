"""Activity: notes written, shown and used, by day."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from holdfast.api.memory import context_of
from holdfast.server.models import Everywhere, ScopedRequest
from holdfast.server.route import ALL_SCOPES, READ, AuthorizedRequest, Route, check_everywhere
from holdfast.verbs.activity import Activity, get_activity


class GetActivity(ScopedRequest, kw_only=True):
    days: Annotated[int, Meta(description="Number of days, including today.", ge=1, le=365)] = 30
    everywhere: Everywhere | UnsetType = UNSET


def show_activity(request: AuthorizedRequest, params: GetActivity) -> Activity:
    check_everywhere(request, params.everywhere is True)
    return get_activity(context_of(request.memory), params.days, params.everywhere is True)


ROUTES = (
    Route(
        "GET", "/v1/activity", show_activity,
        action=READ, scope=ALL_SCOPES,
        summary=(
            "count activity per UTC day: note versions recorded, versions first shown to a session, notes last used;"
            " and list the notes shown and used most recently"
        ),
        params=GetActivity, answers=Activity,
    ),
)  # fmt: skip
