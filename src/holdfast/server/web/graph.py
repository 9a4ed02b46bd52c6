"""The graph of entities that facts link by [[Name]], as of a day, and the path between two of them."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

from starlette.responses import Response

from holdfast.base import dates
from holdfast.errors import HoldfastError
from holdfast.formats.facts import normalize_name
from holdfast.server.problem import Problem
from holdfast.server.web import address
from holdfast.server.web.fact_scope import FactScope
from holdfast.server.web.page import Page, Visit

_DEPTHS = (1, 2, 3, 4)
_MAX_ENTITIES = 150  # drawn and listed: more cannot be read
_MAX_EDGES = 400
_HISTORY = 200  # facts of the centre that are read, to find where the time slider begins
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


async def get_graph(visit: Visit) -> Response:
    scope, query = FactScope(visit), visit.query
    depth = query.get("depth", "")
    asked: dict[str, Any] = {
        "entity": query.get("entity", "").strip(), "depth": int(depth) if depth in map(str, _DEPTHS) else 1,
        "as_of": query.get("as_of", "").strip(),
    }  # fmt: skip
    values: dict[str, Any] = {"graph": None, "first_day": "", "problem": None, "http_status": 200}
    if asked["entity"]:
        try:
            values |= await _read_graph(visit, scope, asked)
        except (HoldfastError, Problem) as error:
            problem = visit.describe(error)
            values |= {"problem": problem, "http_status": problem["status"]}
    template = "graph-drawing.html" if visit.is_fragment else "graph.html"
    return await visit.render(template, scope=scope, asked=asked, depths=_DEPTHS, today=_today(), **values)


async def _read_graph(visit: Visit, scope: FactScope, asked: dict[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in asked.items() if value}
    found = await visit.call("GET /v1/graph", {**scope.fields, **fields})
    history = await visit.call(
        "GET /v1/facts", {**scope.fields, "subject": asked["entity"], "history": True, "limit": _HISTORY}
    )
    graph = _cut_graph(found)
    days = [fact["valid_from"] for fact in history["facts"]] + [edge["valid_from"] for edge in graph["edges"]]
    return {"graph": _describe_graph(graph, scope, asked), "first_day": _first_day(days, asked["as_of"])}


def _cut_graph(graph: dict[str, Any]) -> dict[str, Any]:
    """Return the nearest entities and the links among them, and how many of each were left out."""
    entities = graph["entities"][:_MAX_ENTITIES]
    shown = {one["name"] for one in entities}
    edges = [edge for edge in graph["edges"] if edge["source"] in shown and edge["target"] in shown][:_MAX_EDGES]
    return {
        "start": graph["start"], "entities": entities, "edges": edges,
        "more_entities": len(graph["entities"]) - len(entities), "more_edges": len(graph["edges"]) - len(edges),
    }  # fmt: skip


def _describe_graph(graph: dict[str, Any], scope: FactScope, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the graph with a number and addresses for each entity."""
    numbers = {one["name"]: number for number, one in enumerate(graph["entities"])}
    entities = [
        {
            **one, "number": numbers[one["name"]], "url": scope.link("/ui/facts/subject", name=one["name"]),
            "centre_url": scope.link("/ui/graph", **{**asked, "entity": one["name"]}),
        }
        for one in graph["entities"]
    ]  # fmt: skip
    edges = [
        {
            **edge, "from": entities[numbers[edge["source"]]], "to": entities[numbers[edge["target"]]],
            "note_url": address.fact_url(edge["fact"]),
        }
        for edge in graph["edges"]
    ]  # fmt: skip
    return {**graph, "entities": entities, "edges": edges}


def _first_day(days: list[str], as_of: str) -> str:
    """Return the day at which the time slider begins: the first that is known, or a year ago."""
    known = [day[:10] for day in (*days, as_of) if _DAY.match(day)]
    return min([*known, _today()]) if known else (date.fromisoformat(_today()) - timedelta(days=365)).isoformat()


def _today() -> str:
    return dates.now()[:10]


async def get_path(visit: Visit) -> Response:
    """Show the shortest path from one entity to another as steps."""
    scope, query = FactScope(visit), visit.query
    asked = {name: query.get(name, "").strip() for name in ("from", "to", "as_of")}
    values: dict[str, Any] = {"steps": None, "problem": None, "http_status": 200}
    if asked["from"] and asked["to"]:
        try:
            fields = {name: value for name, value in asked.items() if value}
            found = await visit.call("GET /v1/graph/path", {**scope.fields, **fields})
            values["steps"] = _describe_steps(found["path"], scope, asked)
        except (HoldfastError, Problem) as error:
            problem = visit.describe(error)
            values |= {"problem": problem, "http_status": problem["status"]}
    return await visit.render("graph-path.html", scope=scope, asked=asked, today=_today(), **values)


def _describe_steps(path: list[dict[str, Any]], scope: FactScope, asked: dict[str, str]) -> list[dict[str, Any]]:
    """Return the links in the order in which they are walked, each with the entity it leads to and its direction."""
    steps = []
    at = _first_entity(path, asked)
    for edge in path:
        is_forward = edge["source"] == at
        leads_to = edge["target"] if is_forward else edge["source"]
        steps.append({
            **edge, "here": at, "there": leads_to, "is_forward": is_forward, "note_url": address.fact_url(edge["fact"]),
            "here_url": scope.link("/ui/facts/subject", name=at), "there_url": scope.link("/ui/facts/subject", name=leads_to),
        })  # fmt: skip
        at = leads_to
    return steps


def _first_entity(path: list[dict[str, Any]], asked: dict[str, str]) -> str:
    """Return the end of the first link at which the path begins; the names that were asked for may be aliases."""
    if not path:
        return ""
    source, target = str(path[0]["source"]), str(path[0]["target"])
    if len(path) > 1:
        return target if source in (path[1]["source"], path[1]["target"]) else source
    start, end = normalize_name(asked["from"]), normalize_name(asked["to"])
    return target if start == normalize_name(target) or end == normalize_name(source) else source


PAGES = (Page("GET", "/ui/graph", get_graph), Page("GET", "/ui/graph/path", get_path))
