"""Relations between notes on the pages of a note and of the review: list, state, remove, accept and reject them."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from holdfast.errors import NotFound
from holdfast.models import RELATION_KINDS, SCOPES
from holdfast.server.problem import Problem
from holdfast.server.web import address
from holdfast.server.web.page import Page, Visit, redirect

_SHOWN = 100  # relations on one page
_DECISIONS = ("accept", "reject")
_WORDS = {
    "relates_to": ("relates to", "is related to"), "contradicts": ("contradicts", "is contradicted by"),
    "supersedes": ("supersedes", "is superseded by"), "derived_from": ("is derived from", "is the source of"),
}  # fmt: skip


async def read_relations(visit: Visit, fields: dict[str, str], scope: dict[str, str], key: str) -> list[dict[str, Any]]:
    """Return the relations of a note, as it reads them: in words, with the other note and its address."""
    try:
        page = await visit.call("GET /v1/notes/{scope}/{key}/relations", {**fields, "limit": _SHOWN})
    except NotFound:  # an archived note
        return []
    return [_describe(one, _is_same(one["scope"], scope) and one["key"] == key) for one in page["relations"]]


async def read_proposed(visit: Visit) -> list[dict[str, Any]]:
    """Return the relations that wait for a person."""
    page = await visit.call("GET /v1/relations", {**visit.everywhere, "status": "proposed", "limit": _SHOWN})
    return [_describe(one, states_it=True) for one in page["relations"]]


def _describe(relation: dict[str, Any], states_it: bool) -> dict[str, Any]:
    other_scope, other_key = ("target_scope", "target") if states_it else ("scope", "key")
    return {
        **relation, "states_it": states_it, "words": _WORDS[relation["kind"]][0 if states_it else 1],
        "other_key": relation[other_key], "other_url": address.note_url(relation[other_scope], relation[other_key]),
        "url": address.note_url(relation["scope"], relation["key"]), "can_change": relation["kind"] in RELATION_KINDS,
    }  # fmt: skip


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (one["kind"], one.get("id") or "") == (other["kind"], other.get("id") or "")


async def post_relation(visit: Visit) -> Response:
    """State or remove a relation of the note of this page."""
    params, form = visit.request.path_params, visit.form
    scope, key = _scope(params["kind"], params["id"]), params["key"]
    method = "DELETE" if form.get("change") == "remove" else "POST"
    answer = await visit.call(f"{method} /v1/notes/{{scope}}/{{key}}/relations", _fields(visit, scope, key))
    done = {"created": "related", "updated": "related", "removed": "unrelated"}.get(answer["action"], "unchanged")
    return redirect(f"{address.note_url(scope, key)}?done={done}")


async def post_decision(visit: Visit) -> Response:
    """Accept or reject a proposed relation."""
    form = visit.form
    decision = form.get("decision", "")
    if decision not in _DECISIONS:
        raise Problem("invalid_request", "the form names no decision", "Load the page again")
    scope = _scope(form.get("scope", ""), form.get("of", ""))
    fields = _fields(visit, scope, form.get("key", ""))
    await visit.call(f"POST /v1/review/{{scope}}/{{key}}/relations/{decision}", fields)
    return redirect("/ui/review")


def _scope(kind: str, id: str) -> dict[str, str]:
    if kind not in SCOPES:
        raise Problem("no_route", "there is no such scope", "Go back to the search")
    return address.scope_of(kind, id)


def _fields(visit: Visit, scope: dict[str, str], key: str) -> dict[str, Any]:
    """Return the fields by which the API names a relation of a form."""
    form = visit.form
    target_scope = {"target_scope": form["target_scope"]} if form.get("target_scope") else {}
    return {
        "scope": scope["kind"], "key": key, **address.scope_fields(scope, visit.caller.agent),
        "kind": form.get("relation", ""), "target": form.get("target", "").strip(), **target_scope,
    }  # fmt: skip


PAGES = (
    Page("POST", "/ui/notes/{kind}/{id}/{key}/relation", post_relation),
    Page("POST", "/ui/review/relation", post_decision),
)
