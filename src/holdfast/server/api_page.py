"""Generate docs/api.md from the routes."""

from __future__ import annotations

import json

from holdfast.server import problem
from holdfast.server.openapi import Schema, body_schema, schema_of
from holdfast.server.route import Route
from holdfast.server.routes import ROUTES
from holdfast.server.validation import request_fields

_TITLES = {
    "notes": "Notes", "trash": "Trash", "recall": "Recall", "search": "Search", "read": "Read", "brief": "Briefing",
    "status": "Status", "activity": "Activity", "facts": "Facts", "graph": "Graph", "history": "History", "files": "Files",
    "export": "Export", "import": "Import", "clear": "Clear", "check": "Check", "reindex": "Reindex", "embed": "Embed",
    "retain": "Retain", "scaffold": "Scaffolds", "boot": "Start-up", "memory": "The caller's memory", "dispatch": "Dispatch",
    "review": "Quarantine", "github": "Reviews on GitHub",
    "purge": "Purge", "receipts": "Receipts", "trace": "Trace", "forget-source": "Forgetting a source",
    "done": "What is done", "agents": "Agents and tokens", "roles": "Roles", "audit": "Audit", "metrics": "Metrics",
    "healthz": "Health", "readyz": "Readiness", "openapi.json": "OpenAPI", "problems": "Problems",
}  # fmt: skip


def render() -> str:
    """Return docs/api.md."""
    lines = [
        "# The API", "", "<!-- Made by `python -m holdfast.cli.docs_pages docs` from server/routes/; change it there. -->", "",
        "What `holdfast serve` answers; [the gateway](gateway.md) says how to run it. The same as OpenAPI 3.1 stands at",
        "`/openapi.json`. Every route but the last four needs `Authorization: Bearer TOKEN` and a role that allows its action.",
        "`project` and `session` may also come as the headers `X-Holdfast-Project` and `X-Holdfast-Session`.",
    ]  # fmt: skip
    groups: dict[str, list[Route]] = {}
    for route in ROUTES:
        groups.setdefault(route.group, []).append(route)
    for group, routes in groups.items():
        lines += ["", f"## {_TITLES.get(group, group.capitalize())}"]
        for route in routes:
            lines += _route(route)
    return "\n".join([*lines, *_problems()]) + "\n"


def _route(route: Route) -> list[str]:
    needs = f" Action `{route.action}`." if route.action else " Without a token."
    summary = f"{route.summary[0].upper()}{route.summary[1:]}."
    lines = ["", f"### {route.method} {route.path}", "", f"{summary}{needs}{_extras(route)}"]
    if fields := _fields(route):
        needed = {*route.required_fields, *(body_schema(route).get("required", ()) if route.line else ())}
        lines += ["", *[_field(name, one, name in needed) for name, one in fields.items()]]
    if route.example:
        lines += ["", "```json", json.dumps(route.example, ensure_ascii=False), "```"]
    return lines


def _fields(route: Route) -> dict[str, Schema]:
    """Return what a request takes, but not the project and session of the caller."""
    schemas = {name: schema_of(field.hint) for name, field in request_fields(route.params).items()}
    if route.line is not None:
        schemas |= schema_of(route.line).get("properties", {})
    names = dict.fromkeys([*route.fields, *schemas])
    return {name: schemas[name] for name in names if name not in ("project", "session") and "description" in schemas[name]}


def _extras(route: Route) -> str:
    text = f" In Python: {', '.join([f'`{verb}`' for verb in route.verbs])}." if route.verbs else ""
    text += " Takes `Idempotency-Key`." if route.replay else ""
    if route.has_etag:
        text += " Answers with an `ETag`; takes `If-None-Match`" + ("." if route.method == "GET" else " and `If-Match`.")
    return text


def _field(name: str, schema: Schema, needed: bool) -> str:
    kinds = ", ".join([schema.get("type", "any"), *(["needed"] if needed else [])])
    choices = f" One of: {', '.join([f'`{one}`' for one in schema['enum']])}." if "enum" in schema else ""
    limits = f" {schema['minimum']:,} to {schema['maximum']:,}." if "minimum" in schema else ""
    return f"- `{name}` ({kinds}): {schema.get('description', '')}{choices}{limits}".rstrip()


def _problems() -> list[str]:
    rows = [f"| `{code}` | {status} | {title} |" for code, (status, title) in sorted(problem.kinds().items())]
    return [
        "", "## What goes wrong", "",
        "As `application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, `code`, `fix`, `request_id`, and for a",
        "request that does not fit its schema `errors`, each with a `pointer` and a `detail`. Codes stay the same.", "",
        "| Code | Status | Means |", "|---|---|---|", *rows,
    ]  # fmt: skip
