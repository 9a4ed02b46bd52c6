"""Reviews of pull requests on GitHub: posted once, and recorded."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.safety import validate
from holdfast.server import github
from holdfast.server.github import EVENTS, Reviewed, Wanted
from holdfast.server.idempotency import KEY_HEADER, REPLAY_WHOLE
from holdfast.server.models import RequestModel, choices
from holdfast.server.route import JSON, AuthorizedRequest, Route


class PostReview(RequestModel, kw_only=True):
    owner: Annotated[str, Meta(description="The owner of the repository.", pattern="^[A-Za-z0-9][A-Za-z0-9-]{0,38}$")]
    repo: Annotated[
        str, Meta(description="The name of the repository.", pattern=r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$", max_length=100)
    ]
    pr_number: Annotated[int, Meta(description="The number of the pull request.", ge=1, le=github.MAX_NUMBER)]
    body: Annotated[str, Meta(description="The text of the review.", min_length=1, max_length=65_000)]
    event: Annotated[
        Literal["COMMENT", "APPROVE", "REQUEST_CHANGES"], choices("The type of review. Default: `COMMENT`.", EVENTS)
    ] | UnsetType = UNSET  # fmt: skip
    again: Annotated[
        bool, Meta(description="Post a review even if this agent has already reviewed the pull request.")
    ] | UnsetType = UNSET  # fmt: skip


def _action(given: dict[str, Any]) -> str:
    """Return the action that the event of a review needs; an unknown event needs all of them."""
    event = given.get("event", EVENTS[0])
    return f"github.review.{event.lower()}" if event in EVENTS else "github.review"


def _repository(given: dict[str, Any]) -> str | None:
    """Return the repository of a review; None if it is not named, which validation reports."""
    owner, repo = given.get("owner"), given.get("repo")
    return f"{owner}/{repo}" if isinstance(owner, str) and isinstance(repo, str) else None


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
        action="github.review", choose_action=_action, find_repository=_repository,
        summary="post a review of a pull request, unless this agent has already posted one",
        params=PostReview, reads=JSON,
        example={"owner": "acme", "repo": "shop", "pr_number": 7, "body": "Looks good.", "event": "APPROVE"},
        answers=Reviewed, replay=REPLAY_WHOLE, problems=("not_found", "unreached"),
        answer_example={
            "posted": True, "owner": "acme", "repo": "shop", "pr_number": 7, "reviewed_at": "2026-05-02T09:00:00Z",
            "review_id": 80,
        },
    ),
)  # fmt: skip
