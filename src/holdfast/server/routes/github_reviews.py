"""Reviews of pull requests on GitHub: posted once, and recorded."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.safety import validate
from holdfast.server import github
from holdfast.server.github import EVENTS, Reviewed, Wanted
from holdfast.server.idempotency import KEY_HEADER, REPLAY_WHOLE
from holdfast.server.models import RequestModel, choices
from holdfast.server.route import JSON, AuthorizedRequest, Route


class PostReview(RequestModel, kw_only=True):
    owner: Annotated[str, Meta(description="Whose repository.", pattern="^[A-Za-z0-9][A-Za-z0-9-]{0,38}$")]
    repo: Annotated[str, Meta(description="Which one.", pattern="^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$")]
    pr_number: Annotated[int, Meta(description="The pull request.", ge=1, le=10**9)]
    body: Annotated[str, Meta(description="What the review says.", min_length=1, max_length=65_000)]
    event: Annotated[
        Literal["COMMENT", "APPROVE", "REQUEST_CHANGES"], choices("What it amounts to; otherwise a comment.", EVENTS)
    ] | UnsetType = UNSET  # fmt: skip
    again: Annotated[
        bool, Meta(description="Post it even if this agent has reviewed the pull request before.")
    ] | UnsetType = UNSET  # fmt: skip


def post_review(request: AuthorizedRequest, params: PostReview) -> Reviewed:
    validate.reject_secrets(params.body, "a review")
    fields = params.given("owner", "repo", "pr_number", "body", "event", "again")
    wanted = Wanted(**fields, key=request.header(KEY_HEADER))
    settings = request.gateway.config_of(request.caller)
    return github.review(settings, request.ledger, request.caller.agent, wanted)


ROUTES = (
    Route(
        "POST", "/github/review", post_review,
        is_slow=True,
        action="github.review", summary="post a review of a pull request, unless it was posted before",
        params=PostReview, reads=JSON,
        example={"owner": "acme", "repo": "shop", "pr_number": 7, "body": "Looks good.", "event": "APPROVE"},
        answers=Reviewed, replay=REPLAY_WHOLE,
        answer_example={
            "posted": True, "owner": "acme", "repo": "shop", "pr_number": 7, "reviewed_at": "2026-05-02T09:00:00Z",
            "review_id": 80,
        },
    ),
)  # fmt: skip
