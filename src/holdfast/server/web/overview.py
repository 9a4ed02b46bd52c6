"""The overview: how much is remembered and where, what changed lately, what waits for review, and problems."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from holdfast.errors import HoldfastError
from holdfast.server.problem import Problem
from holdfast.server.web import address
from holdfast.server.web.page import Page, Visit, describe_problem

_READ, _REVIEW, _CARE, _MANAGE = "agent.memory.read", "memory.review", "home.care", "agents.manage"
_RECENT = 8
_WAITING = 5
_SHOWN_SCOPES = 12


async def get_overview(visit: Visit) -> Response:
    values: dict[str, Any] = {"status": None, "scopes": [], "recent": [], "review": None}
    if _READ in visit.permissions:
        status = await visit.call("GET /v1/status")
        scopes = sorted(status["scopes"], key=lambda one: one["last_write"], reverse=True)
        values |= {
            "status": status, "scopes": [_describe_scope(one) for one in scopes[:_SHOWN_SCOPES]],
            "more_scopes": max(0, len(scopes) - _SHOWN_SCOPES), "notes": sum([one["notes"] for one in scopes]),
            "archived": sum([one["archived"] for one in scopes]), "recent": await _find_recent(visit),
        }  # fmt: skip
    if _REVIEW in visit.permissions:
        everywhere = {"everywhere": True} if visit.caller.is_person and _MANAGE in visit.permissions else {}
        values["review"] = await visit.call("GET /v1/review", {**everywhere, "limit": _WAITING})
    return await visit.render("overview.html", **values)


async def get_problems(visit: Visit) -> Response:
    """Show what `doctor` finds: a check reads every file, so the overview loads it afterwards."""
    try:
        found: Any = (await visit.call("GET /v1/check"))["problems"]
        failure = None
    except (HoldfastError, Problem) as error:
        found, failure = [], describe_problem(visit.request, error, visit.caller.is_person)
    template = "problems-list.html" if visit.is_fragment else "problems.html"
    return await visit.render(template, problems=found, failure=failure)


async def _find_recent(visit: Visit) -> list[dict[str, Any]]:
    """Return the notes that changed last: of the whole home for a person, else of the caller's own scopes."""
    everywhere = {"scope": "all"} if visit.caller.is_person else {}
    answer = await visit.call("POST /v1/recall", {"mode": "recent", "kind": "note", "limit": _RECENT, **everywhere})
    return [hit for hit in answer["hits"] if hit["kind"] == "note"]


def _describe_scope(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "scope": address.scope_of_folder(found["scope"])}


PAGES = (Page("GET", "/", get_overview), Page("GET", "/ui/problems", get_problems))
