"""Reviews on GitHub (A6): posted once, and recorded."""

from __future__ import annotations

from typing import Any

from holdfast.safety import validate
from holdfast.server import github
from holdfast.server.github import EVENTS, Reviewed, Wanted
from holdfast.server.idempotency import ALL, HEADER
from holdfast.server.route import NOWHERE, Asked, Route
from holdfast.server.schema import fields, flag, number, ref, text

_SHOWN = {
    "posted": True, "owner": "acme", "repo": "shop", "pr_number": 7, "reviewed_at": "2026-05-02T09:00:00Z", "review_id": 80,
}  # fmt: skip


def review(asked: Asked) -> dict[str, Any]:
    validate.reject_secrets(asked["body"], "a review")
    wanted = Wanted(**asked.only("owner", "repo", "pr_number", "body", "event", "again"), key=asked.header(HEADER))
    return github.review(asked.gateway.config_of(asked.caller), asked.ledger, asked.caller.agent, wanted).as_dict()


ROUTES = (
    Route(
        "POST", "/github/review", "github.review", review, "post a review of a pull request, unless it was posted before",
        NOWHERE,
        takes=fields(
            {
                "owner": text("Whose repository.", pattern="^[A-Za-z0-9][A-Za-z0-9-]{0,38}$"),
                "repo": text("Which one.", pattern="^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$"),
                "pr_number": number("The pull request.", 1, 10**9),
                "body": text("What the review says.", minLength=1, maxLength=65_000),
                "event": text("What it amounts to; otherwise a comment.", *EVENTS),
                "again": flag("Post it even if this agent has reviewed the pull request before."),
            },
            "owner", "repo", "pr_number", "body",
        ),
        answers=ref(Reviewed), shows=_SHOWN, again=ALL,
        example={"owner": "acme", "repo": "shop", "pr_number": 7, "body": "Looks good.", "event": "APPROVE"},
    ),
)  # fmt: skip
