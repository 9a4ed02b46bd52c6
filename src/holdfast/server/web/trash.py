"""Trash and archive: restore notes, bring them back, or empty the trash."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from holdfast.errors import HoldfastError
from holdfast.models import SCOPES
from holdfast.server.problem import Problem
from holdfast.server.web import address
from holdfast.server.web.page import Page, Visit, read_number, redirect

_LIMIT = 50
_CONFIRM = "empty"
_AGES = (0, 7, 30)  # days that the form to empty the trash offers
_PURGE = "memory.purge"


async def get_trash(visit: Visit) -> Response:
    return await _render_trash(visit, None)


async def _render_trash(visit: Visit, problem: dict[str, Any] | None) -> Response:
    page = await visit.call("GET /v1/trash", {**visit.everywhere, **visit.paging(_LIMIT), "part": "trash"})
    return await visit.render(
        "trash.html", rows=_mark_newest(page["trash"]), next=page["next"], problem=problem, may_empty=_may_empty(visit),
        restored=_read_place(visit.query.get("restored", "")), emptied=read_number(visit.query.get("emptied"), -1),
        is_first_page=not visit.query.get("cursor"), http_status=problem["status"] if problem else 200,
    )  # fmt: skip


async def get_archive(visit: Visit) -> Response:
    return await _render_archive(visit, None)


async def _render_archive(visit: Visit, problem: dict[str, Any] | None) -> Response:
    page = await visit.call("GET /v1/notes", {**visit.everywhere, **visit.paging(_LIMIT), "archived": True})
    return await visit.render(
        "archive.html", notes=page["notes"], next=page["next"], problem=problem,
        restored=_read_place(visit.query.get("restored", "")), is_first_page=not visit.query.get("cursor"),
        http_status=problem["status"] if problem else 200,
    )  # fmt: skip


async def post_restore(visit: Visit) -> Response:
    """Restore a note from the trash, or from the archive."""
    return await _restore(visit, "/ui/trash", _render_trash)


async def post_unarchive(visit: Visit) -> Response:
    return await _restore(visit, "/ui/archive", _render_archive)


async def _restore(visit: Visit, back: str, render: Any) -> Response:
    place = _read_place(visit.form.get("note", ""))
    if place is None:
        raise Problem("invalid_request", "the form names no note", "Load the page again")
    fields = {"scope": place["scope"]["kind"], "key": place["key"]}
    try:
        await visit.call(
            "POST /v1/notes/{scope}/{key}/restore", {**fields, **address.scope_fields(place["scope"], visit.caller.agent)}
        )
    except (HoldfastError, Problem) as error:
        found: Response = await render(visit, visit.describe(error))
        return found
    return redirect(f"{back}?{urlencode({'restored': visit.form['note']})}")


async def get_empty(visit: Visit) -> Response:
    """Ask once more: what is erased cannot be restored."""
    return await _render_empty(visit, _AGES[0], None)


async def _render_empty(visit: Visit, age: int, problem: dict[str, Any] | None) -> Response:
    return await visit.render(
        "trash-empty.html", http_status=422 if problem else 200, ages=_AGES, age=age, word=_CONFIRM,
        may_empty=_may_empty(visit), problem=problem,
    )  # fmt: skip


async def post_empty(visit: Visit) -> Response:
    """Empty the trash once the person has typed the word."""
    given = visit.form.get("older_than_days", "0")
    age = int(given) if given in map(str, _AGES) else 0
    if visit.form.get("confirm", "").strip().lower() != _CONFIRM:
        problem = {"detail": "This is not the word.", "fix": f"Type {_CONFIRM} to confirm"}
        return await _render_empty(visit, age, problem)
    erased = await visit.call("POST /v1/trash/empty", {**visit.everywhere, "older_than_days": age})
    return redirect(f"/ui/trash?emptied={erased['notes'] + erased['sessions']}")


def _may_empty(visit: Visit) -> bool:
    return visit.caller.is_person and _PURGE in visit.permissions


def _mark_newest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of the trash, newest first, with how forms name each note; of one key only the newest can be restored."""
    seen: set[str] = set()
    marked = []
    for row in rows:
        place = f"{row['scope']['kind']}/{row['scope'].get('id') or '-'}/{row['key']}"
        marked.append({**row, "place": place, "is_newest": place not in seen})
        seen.add(place)
    return marked


def _read_place(value: str) -> dict[str, Any] | None:
    """Return the scope and key that `project/demo/deploys` names; None if it names none."""
    parts = value.split("/")
    if len(parts) != 3 or parts[0] not in SCOPES or not all(parts):
        return None
    return {"scope": address.scope_of(parts[0], parts[1]), "key": parts[2]}


PAGES = (
    Page("GET", "/ui/trash", get_trash),
    Page("POST", "/ui/trash", post_restore),
    Page("GET", "/ui/trash/empty", get_empty),
    Page("POST", "/ui/trash/empty", post_empty),
    Page("GET", "/ui/archive", get_archive),
    Page("POST", "/ui/archive", post_unarchive),
)
