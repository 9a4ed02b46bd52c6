"""The API as an OpenAPI 3.1 document, made from the table of routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast import __version__
from holdfast.access import Role
from holdfast.ledger.audit import Entry
from holdfast.ledger.audit_verify import Verdict
from holdfast.models import Answer, Fact, FactSet, Forgotten, Logged, Note, Receipt, Stored, TrashedNote, Turn, Version
from holdfast.server import problem, schema
from holdfast.server.github import Reviewed
from holdfast.server.schema import Schema
from holdfast.verbs.brief.render import Brief
from holdfast.verbs.forget_source import Swept
from holdfast.verbs.graph import Edge, Graph
from holdfast.verbs.read import Piece, Snippet
from holdfast.verbs.scaffold import Scaffolded
from holdfast.verbs.scaffold.boot import Boot
from holdfast.verbs.status import Reindexed
from holdfast.verbs.trace import Trace

if TYPE_CHECKING:
    from holdfast.server.route import Route

_KINDS = (
    Answer, TrashedNote, Boot, Brief, Edge, Entry, Fact, FactSet, Forgotten, Graph, Logged, Note, Piece, Receipt, Reindexed,
    Reviewed, Role, Scaffolded, Snippet, Stored, Swept, Trace, Turn, Verdict, Version,
)  # fmt: skip
_PROBLEM: Schema = {
    "type": "object",
    "description": "What went wrong (RFC 9457): `code` stays the same, `fix` says what to do.",
    "properties": {
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"}, "detail": {"type": "string"},
        "code": {"type": "string"}, "fix": {"type": "string"}, "request_id": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
        "line": {"type": "integer", "description": "Of an import: the first line that it is about."},
    },
    "required": ["type", "title", "status", "detail", "code", "fix", "request_id"],
}  # fmt: skip
_FAILED = {"$ref": "#/components/responses/Problem"}
_HEADERS = {
    "If-Match": "The ETag of the version you saw; another by now is refused with 412.",
    "If-None-Match": "`*` to write only a note that is not there; an ETag to read only one that has changed.",
    "Idempotency-Key": "Made up by you: sent again with the same request, it is not done again.",
}
_made: dict[int, dict[str, Any]] = {}


def document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Made once: it says the same to everybody."""
    if id(routes) not in _made:
        _made[id(routes)] = _document(routes)
    return _made[id(routes)]


def _document(routes: tuple[Route, ...]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    shape = {"schema": {"$ref": "#/components/schemas/Problem"}}
    failed = {"description": "What went wrong.", "content": {problem.KIND.decode(): shape}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast", "version": __version__, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Durable memory for AI agents, for whoever has a token and a role that allows it.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "hf_..."}},
            "schemas": {**schema.components(*_KINDS), "Problem": _PROBLEM},
            "responses": {"Problem": failed},
        },
    }  # fmt: skip


def _operation(route: Route) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": _name(route), "summary": route.summary[0].upper() + route.summary[1:], "tags": [route.group],
        "responses": _responses(route),
    }  # fmt: skip
    if route.action:
        told["description"] = f"Needs the action `{route.action}`."
    else:
        told["security"] = []
    if parameters := [*_parameters(route), *_headers(route)]:
        told["parameters"] = parameters
    if route.body is not None:
        example = {} if route.example is None else {"example": route.example}
        needed = bool(route.body.get("required"))
        kinds = dict.fromkeys([route.reads, "application/json"])  # a single line is JSON too
        content = {kind: {"schema": route.body, **example} for kind in kinds}
        told["requestBody"] = {"required": needed, "content": content}
    return told


def _responses(route: Route) -> dict[str, Any]:
    content = {"schema": route.answers, **({} if route.shows is None else {"example": route.shows})}
    done = {"description": "Done.", "content": {route.kind: content}}
    either = (200, route.status) if route.again or route.tagged else (route.status,)
    statuses = {str(status): done for status in either}
    if route.tagged:
        statuses["201"] = done
        if route.method == "GET":
            statuses["304"] = {"description": "It is still the version you named."}
    if route.path == "/readyz":
        statuses["503"] = done
    return {**statuses, "default": _FAILED}


def _parameters(route: Route) -> list[dict[str, Any]]:
    named = [_parameter(name, "path", route.query[name], True) for name in route.places]
    return named + [_parameter(name, "query", one, name in route.needs) for name, one in route.asks.items()]


def _parameter(name: str, where: str, shape: Schema, needed: bool) -> dict[str, Any]:
    shown = {key: value for key, value in shape.items() if key != "description"}
    return {"name": name, "in": where, "required": needed, "description": shape.get("description", ""), "schema": shown}


def _headers(route: Route) -> list[dict[str, Any]]:
    wanted = ["Idempotency-Key"] if route.again else []
    if route.tagged:
        wanted += ["If-None-Match"] if route.method == "GET" else ["If-Match", "If-None-Match"]
    return [_parameter(name, "header", {"type": "string", "description": _HEADERS[name]}, False) for name in wanted]


def _name(route: Route) -> str:
    """`GET /v1/notes/{scope}/{key}` is get_notes_scope_key."""
    parts = [part.strip("{}").replace(".", "_") for part in route.path.split("/") if part and part != "v1"]
    return "_".join([route.method.lower(), *parts])
