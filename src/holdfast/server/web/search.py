"""Search: as you type with JavaScript, and as a plain form without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from holdfast.errors import HoldfastError
from holdfast.models import MODES, PARTS, SCOPES, TYPES
from holdfast.search.signals import SIGNALS
from holdfast.server.problem import Problem
from holdfast.server.web import address, text
from holdfast.server.web.page import Page, Visit

_LIMITS = (20, 50, 100)
_ARCHIVED = ("with", "without", "only")
_CHOICES = {"type": TYPES, "mode": MODES, "kind": tuple(PARTS), "archived": _ARCHIVED}
_MIN_ADDED = 0.001  # what adds less to a score is rounding
_SHOWN_SIGNALS = 8


async def get_search(visit: Visit) -> Response:
    filters = _read_filters(visit)
    values: dict[str, Any] = {"answer": None, "hits": [], "problem": None, "http_status": 200, "more": None}
    if filters["q"].strip() or filters["mode"] == "recent":
        try:
            values |= await _search(visit, filters)
        except (HoldfastError, Problem) as error:  # such as a date that is none: the form stays as it is
            problem = visit.describe(error)
            values |= {"problem": problem, "http_status": problem["status"]}
    template = "search-results.html" if visit.is_fragment else "search.html"
    return await visit.render(template, filters=filters, choices=_CHOICES, limits=_LIMITS, **values)


def _read_filters(visit: Visit) -> dict[str, Any]:
    """Return the form as it was sent; a choice that is not offered counts as none."""
    query: Mapping[str, str] = visit.query
    names = ("q", "scope", "of", "tag", "source", "as_of", "known_at", *_CHOICES)
    given = {name: query.get(name, "") for name in names}
    found: dict[str, Any] = {name: value if value in _CHOICES.get(name, (value,)) else "" for name, value in given.items()}
    offered = (*SCOPES, "all") if visit.caller.is_person else SCOPES
    found["scope"] = found["scope"] if found["scope"] in offered else "all" if visit.caller.is_person else ""
    limit = query.get("limit", "")
    found["limit"] = int(limit) if limit in map(str, _LIMITS) else _LIMITS[0]
    return found


async def _search(visit: Visit, filters: dict[str, Any]) -> dict[str, Any]:
    answer = await visit.call("POST /v1/recall", _recall_fields(visit, filters))
    wanted = filters["source"].strip().lower()
    hits = [_describe_hit(hit, filters["q"]) for hit in answer["hits"] if not wanted or _is_from(hit, wanted)]
    larger = [limit for limit in _LIMITS if limit > filters["limit"]]
    is_full = len(answer["hits"]) >= filters["limit"]
    return {"answer": answer, "hits": hits, "more": larger[0] if larger and is_full else None}


def _recall_fields(visit: Visit, filters: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the recall: those that are filled in."""
    limit = _LIMITS[-1] if filters["source"].strip() else filters["limit"]  # the source is looked up among the hits
    fields: dict[str, Any] = {"query": filters["q"], "limit": limit, "explain": filters["mode"] != "recent"}
    fields |= {name: filters[name] for name in ("type", "mode", "kind", "as_of", "known_at") if filters[name]}
    if filters["archived"] in ("without", "only"):
        fields["archived"] = filters["archived"] == "only"
    if filters["tag"].strip():
        fields["tags"] = [tag.strip() for tag in filters["tag"].split(",") if tag.strip()]
    scope, of = filters["scope"], filters["of"].strip()
    if scope:
        fields["scope"] = scope
    if of and scope in ("project", "agent", "session"):
        fields |= address.scope_fields({"kind": scope, "id": of}, visit.caller.agent)
    return fields


def _is_from(hit: dict[str, Any], wanted: str) -> bool:
    """Return whether a hit has this origin, or comes from this agent, client or session."""
    source = hit["source"] or {}
    return wanted in [str(source.get(name) or "").lower() for name in ("origin", "agent", "client", "session")]


def _describe_hit(hit: dict[str, Any], query: str) -> dict[str, Any]:
    key = address.find_note_key(hit)
    return {
        **hit, "pieces": text.excerpt(hit["text"], query),
        "url": address.note_url(hit["scope"], key) if key else address.file_url(hit) or address.turn_url(hit["citation"]),
        "title": hit["name"] or key or address.turn_label(hit) or hit["key"] or hit["citation"], "reasons": _list_reasons(hit),
    }  # fmt: skip


def _list_reasons(hit: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what each signal of the ranking added to the score, the largest first."""
    signals = [(SIGNALS.get(name, name), added) for name, (_, added) in (hit["why"] or {}).items() if abs(added) >= _MIN_ADDED]
    signals.sort(key=lambda signal: -abs(signal[1]))
    return [{"what": what, "added": added} for what, added in signals[:_SHOWN_SIGNALS]]


PAGES = (Page("GET", "/ui/search", get_search),)
