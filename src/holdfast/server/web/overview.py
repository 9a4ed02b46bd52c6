"""The overview: how much is remembered and where, what changed lately, what waits for review, and problems."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.responses import Response

from holdfast.errors import HoldfastError
from holdfast.server.problem import Problem
from holdfast.server.web import address
from holdfast.server.web.page import Page, Visit, redirect

_READ, _REVIEW = "agent.memory.read", "memory.review"
_RECENT = 8
_LISTED = 50
_WAITING = 5
_DAYS = 30
_SHOWN_SCOPES = 12
_FIXES = {"reindex": "reindexed", "embed": "embedded", "retain": "retained"}  # safe commands that the API also offers


async def get_overview(visit: Visit) -> Response:
    values: dict[str, Any] = {"status": None, "scopes": [], "recent": [], "review": None, "activity": None}
    if _READ in visit.permissions:
        status = await visit.call("GET /v1/status")
        scopes = sorted(status["scopes"], key=lambda one: one["last_write"], reverse=True)
        values |= {
            "status": status, "scopes": [_describe_scope(one) for one in scopes[:_SHOWN_SCOPES]],
            "more_scopes": max(0, len(scopes) - _SHOWN_SCOPES), "notes": sum([one["notes"] for one in scopes]),
            "archived": sum([one["archived"] for one in scopes]), "recent": await _find_recent(visit),
            "activity": await _get_activity(visit),
        }  # fmt: skip
    if _REVIEW in visit.permissions:
        values["review"] = await visit.call("GET /v1/review", {**visit.everywhere, "limit": _WAITING})
    return await visit.render("overview.html", **values)


async def get_problems(visit: Visit) -> Response:
    """Show what `doctor` finds: a check reads every file, so the overview loads it afterwards."""
    try:
        found: Any = (await visit.call("GET /v1/check"))["problems"]
        failure = None
    except (HoldfastError, Problem) as error:
        found, failure = [], visit.describe(error)
    template = "problems-list.html" if visit.is_fragment else "problems.html"
    return await visit.render(template, problems=[_add_button(one) for one in found], failure=failure)


async def post_fix(visit: Visit) -> Response:
    """Run one of the safe fixes."""
    name = visit.request.path_params["name"]
    if name not in _FIXES:
        raise Problem("no_route", "there is no such fix", "Go back to the health page")
    await visit.call(f"POST /v1/{name}")
    return redirect(f"/ui/problems?done={_FIXES[name]}")


def _add_button(problem: dict[str, Any]) -> dict[str, Any]:
    """Return a problem with the name of the fix that a button can run; "" if a person must run the command."""
    words = problem["fix"].split()
    is_safe = len(words) >= 2 and words[0].endswith("holdfast") and words[-1] in _FIXES and "&&" not in words
    return {**problem, "button": words[-1] if is_safe else ""}


async def _find_recent(visit: Visit) -> list[dict[str, Any]]:
    """Return the notes that changed last: of the whole home for a person who manages agents, else of the caller's own scopes.

    A list counts no note as used, as a recall would. It begins with the pinned notes, so more are read than shown.
    """
    page = await visit.call("GET /v1/notes", {**visit.everywhere, "limit": _LISTED})
    found: list[dict[str, Any]] = sorted(page["notes"], key=lambda note: note["updated"], reverse=True)
    return found[:_RECENT]


async def _get_activity(visit: Visit) -> dict[str, Any]:
    """Return the activity of the last days, each with the seconds at which the chart draws it."""
    found = await visit.call("GET /v1/activity", {"days": _DAYS, **visit.everywhere})
    days = [{**one, "seconds": _start_of(one["day"])} for one in found["days"]]
    return {**found, "days": days}


def _start_of(day: str) -> int:
    return int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp())


def _describe_scope(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "scope": address.scope_of_folder(found["scope"])}


PAGES = (Page("GET", "/", get_overview), Page("GET", "/ui/problems", get_problems), Page("POST", "/ui/fixes/{name}", post_fix))
