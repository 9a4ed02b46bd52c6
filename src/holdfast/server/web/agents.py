"""Agents: who may use the gateway, with which role, tokens and grants; and the roles."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import Response

from holdfast.access.grants import KINDS
from holdfast.errors import HoldfastError
from holdfast.server.problem import Problem
from holdfast.server.web.page import Page, Visit, redirect

_LIST = "/ui/agents"
_AGENTS = 25  # on one page
_NAMES = re.compile(r"[\s,]+")


async def get_agents(visit: Visit) -> Response:
    return await _render_agents(visit, problem=None)


async def _render_agents(visit: Visit, problem: dict[str, Any] | None) -> Response:
    page = await visit.call("GET /agents", visit.paging(_AGENTS))
    return await visit.render(
        "agents.html", http_status=problem["status"] if problem else 200, agents=page["agents"], next=page["next"],
        kinds=KINDS, problem=problem,
    )  # fmt: skip


async def get_new_agent(visit: Visit) -> Response:
    return await _render_form(visit, {}, None)


async def post_new_agent(visit: Visit) -> Response:
    """Add an agent and show its token in this answer only: no address and no other page has it."""
    form = visit.form
    fields: dict[str, Any] = {"name": form.get("name", "").strip(), "role": form.get("role", ""), **_read_number(form, "days")}
    for name in ("projects", "sessions", "repositories"):
        fields[name] = [one for one in _NAMES.split(form.get(name, "")) if one]
    try:
        made = await visit.call("POST /agents", fields)
    except (HoldfastError, Problem) as error:
        return await _render_form(visit, dict(form), visit.describe(error))
    return await visit.render("agent-token.html", made=made, is_new=True)


async def _render_form(visit: Visit, draft: dict[str, str], problem: dict[str, Any] | None) -> Response:
    roles = (await visit.call("GET /roles"))["roles"] if "roles.read" in visit.permissions else []
    status = problem["status"] if problem else 200
    return await visit.render("agent-new.html", http_status=status, draft=draft, roles=roles, problem=problem)


async def post_rotate(visit: Visit) -> Response:
    """Make a new token for an agent and show it in this answer only."""
    fields = {"name": _name(visit), **_read_number(visit.form, "days"), **_read_number(visit.form, "grace_hours")}
    try:
        made = await visit.call("POST /agents/{name}/token", fields)
    except (HoldfastError, Problem) as error:
        return await _render_agents(visit, visit.describe(error))
    return await visit.render("agent-token.html", made=made, is_new=False)


async def get_revoke(visit: Visit) -> Response:
    """Ask once more: every token of the agent ends at once."""
    found = await visit.call("GET /agents/{name}/grants", {"name": _name(visit)})
    return await visit.render("agent-revoke.html", agent=found)


async def post_revoke(visit: Visit) -> Response:
    await visit.call("DELETE /agents/{name}", {"name": _name(visit)})
    return redirect(f"{_LIST}?done=revoked")


async def post_grant(visit: Visit) -> Response:
    return await _change_grant(visit, "POST", "granted")


async def post_ungrant(visit: Visit) -> Response:
    return await _change_grant(visit, "DELETE", "ungranted")


async def _change_grant(visit: Visit, method: str, done: str) -> Response:
    fields = {"name": _name(visit), "kind": visit.form.get("kind", ""), "pattern": visit.form.get("pattern", "").strip()}
    try:
        await visit.call(f"{method} /agents/{{name}}/grants", fields)
    except (HoldfastError, Problem) as error:
        return await _render_agents(visit, visit.describe(error))
    return redirect(f"{_LIST}?done={done}")


async def get_roles(visit: Visit) -> Response:
    found = await visit.call("GET /roles")
    return await visit.render("roles.html", roles=found["roles"], broken=found["broken"])


def _name(visit: Visit) -> str:
    return str(visit.request.path_params["name"])


def _read_number(form: Any, name: str) -> dict[str, Any]:
    """Return a number of the form, if it was filled in; the API rejects what is not one."""
    text = form.get(name, "").strip()
    return {name: int(text) if text.isascii() and text.isdecimal() else text} if text else {}


PAGES = (
    Page("GET", _LIST, get_agents),
    Page("GET", f"{_LIST}/new", get_new_agent),
    Page("POST", f"{_LIST}/new", post_new_agent),
    Page("POST", _LIST + "/{name}/rotate", post_rotate),
    Page("GET", _LIST + "/{name}/revoke", get_revoke),
    Page("POST", _LIST + "/{name}/revoke", post_revoke),
    Page("POST", _LIST + "/{name}/grants/add", post_grant),
    Page("POST", _LIST + "/{name}/grants/remove", post_ungrant),
    Page("GET", "/ui/roles", get_roles),
)
