"""Generate docs/api.md from the routes."""

from __future__ import annotations

import json

from holdfast.server import problem
from holdfast.server.api_introduction import INTRODUCTION
from holdfast.server.openapi import Schema, body_schema, describe_alias, schema_of
from holdfast.server.route import Route
from holdfast.server.routes import ROUTES
from holdfast.server.validation import request_fields

_TITLES = {
    "notes": "Notes", "trash": "Trash", "recall": "Recall", "search": "Search", "read": "Read", "brief": "Briefing",
    "status": "Status", "activity": "Activity", "facts": "Facts", "graph": "Graph", "history": "History", "files": "Files",
    "export": "Export", "import": "Import", "clear": "Clear", "check": "Check", "reindex": "Reindex", "embed": "Embed",
    "retain": "Retain", "scaffold": "Scaffolds", "boot": "Start-up text", "memory": "Key-value memory", "dispatch": "Dispatch",
    "operator": "Operator messages", "review": "Quarantine", "github": "Reviews on GitHub",
    "purge": "Purge", "receipts": "Receipts", "trace": "Trace", "forget-source": "Forget a source",
    "done": "Finished work", "agents": "Agents and tokens", "roles": "Roles", "audit": "Audit", "metrics": "Metrics",
    "healthz": "Health", "readyz": "Readiness", "openapi.json": "OpenAPI", "problems": "Problems",
}  # fmt: skip


def render() -> str:
    """Return docs/api.md."""
    lines = [INTRODUCTION.rstrip("\n")]
    groups: dict[str, list[Route]] = {}
    for route in ROUTES:
        groups.setdefault(route.group, []).append(route)
    for group, routes in groups.items():
        lines += ["", f"## {_TITLES.get(group, group.capitalize())}"]
        for route in routes:
            lines += _route(route)
    return "\n".join([*lines, *_problems()]) + "\n"


def _route(route: Route) -> list[str]:
    summary = f"{route.summary[0].upper()}{route.summary[1:]}."
    needs = f"Action: `{route.action}`." if route.action else "No token needed."
    lines = ["", f"### {route.method} {route.path}", "", summary, "", f"{needs}{_extras(route)}"]
    if fields := _fields(route):
        needed = {*route.required_fields, *(body_schema(route).get("required", ()) if route.line else ())}
        rows = [_field(name, one, name in needed) for name, one in fields.items()]
        lines += ["", "| Field | Type | Meaning |", "|---|---|---|", *rows]
    if route.example:
        lines += ["", "```json", json.dumps(route.example, ensure_ascii=False), "```"]
    return lines


def _fields(route: Route) -> dict[str, Schema]:
    """Return what a request takes, but not the project and session of the caller."""
    schemas = {name: schema_of(field.hint) for name, field in request_fields(route.params).items()}
    if route.line is not None:
        schemas |= schema_of(route.line).get("properties", {})
    names = dict.fromkeys([*route.fields, *schemas])
    shown = [name for name in names if name not in ("project", "session") and "description" in schemas[name]]
    return {name: describe_alias(name, schemas[name]) if name in route.fields else schemas[name] for name in shown}


def _extras(route: Route) -> str:
    text = f" Python: {', '.join([f'`{verb}`' for verb in route.verbs])}." if route.verbs else ""
    headers = ["Idempotency-Key"] if route.replay else []
    if route.has_etag:
        headers += ["If-None-Match"] if route.method == "GET" else ["If-Match", "If-None-Match"]
    text += f" Headers: {', '.join([f'`{name}`' for name in headers])}." if headers else ""
    text += " Returns an `ETag`." if route.has_etag else ""
    return text


def _field(name: str, schema: Schema, needed: bool) -> str:
    kinds = ", ".join([schema.get("type", "any"), *(["required"] if needed else [])])
    choices = f" One of: {', '.join([f'`{one}`' for one in schema['enum']])}." if "enum" in schema else ""
    limits = f" {schema['minimum']:,} to {schema['maximum']:,}." if "minimum" in schema else ""
    return f"| `{name}` | {kinds} | {schema.get('description', '')}{choices}{limits} |"


def _problems() -> list[str]:
    rows = [f"| `{code}` | {status} | {title} |" for code, (status, title) in sorted(problem.kinds().items())]
    return [
        "", "## Error codes", "", "| Code | Status | Meaning |", "|---|---|---|", *rows,
    ]  # fmt: skip
