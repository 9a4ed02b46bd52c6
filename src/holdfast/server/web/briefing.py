"""What agents are told: the exact text of a briefing, why each note is in it or not, and what a pin changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from holdfast import clients
from holdfast.errors import HoldfastError
from holdfast.server.problem import PARTS, Problem
from holdfast.server.web import address, text
from holdfast.server.web.note import change_pin
from holdfast.server.web.page import Page, Visit, read_number, redirect

_EXPLAINED = 100  # notes on one page
_CHARS_PER_TOKEN = 4  # a common estimate for English
_PROJECTS, _SUGGESTED = "projects/", 200
_FORMS = ("whole", "facts", "title", "out")


async def get_briefing(visit: Visit) -> Response:
    return await _render(visit, visit.query)


async def post_pin(visit: Visit) -> Response:
    """Pin or unpin a note, and show what that changed in the briefing."""
    form = visit.form
    before = await _compose(visit, _read_choice(form))
    kind = form.get("kind", "")
    scope = address.scope_of(kind, form.get("project", "") if kind == "project" else "")
    own = address.scope_fields(scope, "") if scope["id"] else {}
    await change_pin(visit, {"scope": kind, "key": form.get("key", ""), **own}, form.get("pinned") == "yes")
    return await _render(visit, form, before=before)


async def _render(visit: Visit, given: Mapping[str, str], before: dict[str, Any] | None = None) -> Response:
    choice = _read_choice(given)
    values: dict[str, Any] = {"brief": None, "problem": None, "changes": None, "why": [], "counts": {}, "http_status": 200}
    try:
        brief = await _compose(visit, choice)
    except (HoldfastError, Problem) as error:  # such as a project that the role does not reach: the form stays
        problem = visit.describe(error)
        values |= {"problem": problem, "http_status": problem["status"]}
    else:
        why = sorted(brief["why"], key=lambda one: _FORMS.index(one["form"]))
        start = (choice["page"] - 1) * _EXPLAINED
        values |= {
            "brief": brief, "tokens": -(-len(brief["text"]) // _CHARS_PER_TOKEN), "why": why[start : start + _EXPLAINED],
            "counts": {form: len([one for one in why if one["form"] == form]) for form in _FORMS},
            "more": urlencode({**choice, "page": choice["page"] + 1}) if len(why) > start + _EXPLAINED else None,
            "changes": text.compare_lines(before["text"], brief["text"]) if before is not None else None,
        }  # fmt: skip
    return await visit.render("briefing.html", choice=choice, clients=_list_clients(), **values)


async def get_projects(visit: Visit) -> Response:
    """Suggest projects for the form, those that changed last first. Counting them takes a while: the page asks when needed."""
    if not visit.is_fragment:
        return redirect("/ui/briefing")
    scopes = (await visit.call("GET /v1/status"))["scopes"]
    folders = [one["scope"] for one in sorted(scopes, key=lambda one: one["last_write"], reverse=True)]
    projects = [folder.removeprefix(_PROJECTS) for folder in folders if folder.startswith(_PROJECTS)]
    return await visit.render("briefing-projects.html", projects=projects[:_SUGGESTED])


def _read_choice(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the form as it was sent; a client that is not known counts as the first one."""
    caps, client = _list_clients(), given.get("client", "")
    client = client if client in caps else next(iter(caps))
    return {
        "client": client, "project": given.get("project", "").strip(), "prompt": given.get("prompt", "").strip(),
        "page": max(1, read_number(given.get("page"), 1)),
    }  # fmt: skip


def _list_clients() -> dict[str, int]:
    """Return the clients whose hooks show a briefing, proven ones first, with the characters that each shows at most."""
    loaded = sorted([clients.load(name) for name in clients.names()], key=lambda client: not client.proven)
    return {client.name: client.cap for client in loaded if client.injects}


async def _compose(visit: Visit, choice: dict[str, Any]) -> dict[str, Any]:
    """Return the briefing in the words that a hook uses, with its reasons; nothing counts as shown."""
    fields = {"cap": _list_clients()[choice["client"]], "explain": True, "remember": False}
    fields |= {name: choice[name] for name in ("project", "prompt") if choice[name]}
    answer = await visit.call("POST /v1/brief", fields, {PARTS: "parts"})
    found: dict[str, Any] = json.loads(answer) if isinstance(answer, bytes) else answer  # an answer for a model is encoded
    return found


PAGES = (
    Page("GET", "/ui/briefing", get_briefing),
    Page("GET", "/ui/briefing/projects", get_projects),
    Page("POST", "/ui/briefing/pin", post_pin),
)
