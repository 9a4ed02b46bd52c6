"""The audit: every decision with filters, and whether the chain of its rows is whole."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from holdfast.access.policy import ACTIONS, RECORDED_ACTIONS
from holdfast.errors import HoldfastError
from holdfast.server.problem import Problem
from holdfast.server.web.page import Page, Visit

_ROWS = 50  # on one page
_FILTERS = ("agent", "action", "outcome", "since", "until", "token", "address")
_SHOWN_ALREADY = ("address", "token", "role", "route")  # in columns of their own


async def get_audit(visit: Visit) -> Response:
    filters = {name: visit.query.get(name, "").strip() for name in _FILTERS}
    given: dict[str, Any] = {name: value for name, value in filters.items() if value}
    rows, following, problem = [], None, None
    try:
        page = await visit.call("GET /audit", {**given, **visit.paging(_ROWS)})
        rows, following = [_describe_row(row) for row in page["audit"]], page["next"]
    except (HoldfastError, Problem) as error:  # such as a date that is none: the form stays as it is
        problem = visit.describe(error)
    older = f"/ui/audit?{urlencode({**given, 'cursor': following})}" if following else None
    return await visit.render(
        "audit.html", http_status=problem["status"] if problem else 200, rows=rows, older=older, filters=filters,
        is_filtered=bool(given), is_first=not visit.query.get("cursor"), actions=(*ACTIONS, *RECORDED_ACTIONS), problem=problem,
    )  # fmt: skip


async def post_verify(visit: Visit) -> Response:
    """Compute the hash of every row again and show the result."""
    verdict = await visit.call("GET /audit/verify")
    return await visit.render("audit-verified.html", verdict=verdict)


def _describe_row(row: dict[str, Any]) -> dict[str, Any]:
    details = {name: value for name, value in row["metadata"].items() if name not in _SHOWN_ALREADY}
    return {**row, "details": details}


PAGES = (Page("GET", "/ui/audit", get_audit), Page("POST", "/ui/audit/verify", post_verify))
