"""Settings: each with its value, where that comes from and what it does, and a form that changes it in config.toml."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from starlette.responses import Response

from holdfast.errors import HoldfastError
from holdfast.server.problem import Problem
from holdfast.server.web.page import Page, Visit, redirect

_FILE = "config.toml"
_TITLES = {
    "memory": "Memory", "project": "Project", "session": "Session", "agent": "Agent", "client": "Client", "notes": "Notes",
    "retention": "Retention", "brief": "Start briefing", "hooks": "Hooks", "history": "Sessions", "trust": "Trust",
    "lock": "Locks", "search": "Search", "audit": "Audit", "store": "Store", "serve": "Server", "quota": "Quotas",
    "gateway": "Gateway", "github": "GitHub", "dispatch": "Dispatch", "otel": "Traces",
}  # fmt: skip


async def get_settings(visit: Visit) -> Response:
    return await _render(visit, {}, None)


async def post_settings(visit: Visit) -> Response:
    """Change one setting, or remove it from config.toml so that its default applies."""
    name = visit.form.get("name", "")
    value = {} if visit.form.get("do") == "reset" else {"value": visit.form.get("value", "")}
    try:
        changed = await visit.call("PUT /v1/settings/{name}", {"name": name, **value})
    except (HoldfastError, Problem) as error:
        problem = visit.describe(error)
        return await _render(visit, {name: value["value"]} if value else {}, {**problem, "name": name})
    return redirect(f"/ui/settings?changed={changed['name']}#setting-{changed['name']}")


async def _render(visit: Visit, drafts: dict[str, str], problem: dict[str, Any] | None) -> Response:
    """Show all settings; `drafts` are values that a person typed and that were refused."""
    found = await visit.call("GET /v1/settings")
    known = {one["name"]: one for one in found["settings"]}
    settings = [
        {**one, "draft": drafts.get(one["name"], one["value"]), "is_editable": _is_editable(one, found["may_change"])}
        for one in sorted(found["settings"], key=lambda one: list(_TITLES).index(_group(one)) if _group(one) in _TITLES else 99)
    ]
    groups = [{"title": _TITLES.get(group, group), "settings": list(rows)} for group, rows in groupby(settings, _group)]
    return await visit.render(
        "settings.html", groups=groups, may_change=found["may_change"], problem=problem, file=_FILE,
        changed=known.get(visit.query.get("changed", "")), http_status=problem["status"] if problem else 200,
    )  # fmt: skip


def _group(setting: dict[str, Any]) -> str:
    return str(setting["name"]).partition(".")[0]


def _is_editable(setting: dict[str, Any], may_change: bool) -> bool:
    return may_change and not setting["at_the_machine"] and setting["source"] in ("default", _FILE)


PAGES = (Page("GET", "/ui/settings", get_settings), Page("POST", "/ui/settings", post_settings))
