"""docs/api.md, from the table of routes: it cannot say anything else."""

from __future__ import annotations

import json

from holdfast.server import problem
from holdfast.server.route import Route
from holdfast.server.routes.table import ROUTES, group_of
from holdfast.server.schema import Schema

_TITLES = {
    "notes": "Notes", "trash": "Trash", "recall": "Recall", "search": "Search", "read": "Read", "brief": "Briefing",
    "status": "Status", "facts": "Facts", "graph": "Graph", "history": "History", "files": "Files", "export": "Export",
    "import": "Import", "clear": "Clear", "check": "Check", "reindex": "Reindex", "embed": "Embed", "retain": "Retain",
    "scaffold": "Scaffolds", "boot": "Start-up", "memory": "The caller's memory", "dispatch": "Dispatch",
    "review": "Quarantine", "github": "Reviews on GitHub",
    "purge": "Purge", "receipts": "Receipts", "trace": "Trace", "forget-source": "Forgetting a source",
    "done": "What is done", "agents": "Agents and tokens", "roles": "Roles", "audit": "Audit", "metrics": "Metrics",
    "healthz": "Health", "readyz": "Readiness", "openapi.json": "OpenAPI", "problems": "Problems",
}  # fmt: skip


def render() -> str:
    """docs/api.md: every route."""
    lines = [
        "# The API", "", "<!-- Made by `python -m holdfast.cli.docs_pages docs` from server/routes/; change it there. -->", "",
        "What `holdfast serve` answers; [the gateway](gateway.md) says how to run it. The same as OpenAPI 3.1 stands at",
        "`/openapi.json`. Every route but the last four needs `Authorization: Bearer TOKEN` and a role that allows its action.",
        "`project` and `session` may also come as the headers `X-Holdfast-Project` and `X-Holdfast-Session`.",
    ]  # fmt: skip
    for group, routes in group_of(ROUTES).items():
        lines += ["", f"## {_TITLES[group]}"]
        for route in routes:
            lines += _route(route)
    return "\n".join([*lines, *_problems()]) + "\n"


def _route(route: Route) -> list[str]:
    needs = f" Action `{route.action}`." if route.action else " Without a token."
    said = f"{route.summary[0].upper()}{route.summary[1:]}."
    lines = ["", f"### {route.method} {route.path}", "", f"{said}{needs}{_extras(route)}"]
    fields = {name: one for name, one in route.shape["properties"].items() if name not in ("project", "session")}
    if fields:
        needed = set(route.shape.get("required", ()))
        lines += ["", *[_field(name, one, name in needed) for name, one in fields.items()]]
    if route.example:
        lines += ["", "```json", json.dumps(route.example, ensure_ascii=False), "```"]
    return lines


def _extras(route: Route) -> str:
    said = f" In Python: {', '.join([f'`{verb}`' for verb in route.does])}." if route.does else ""
    said += " Takes `Idempotency-Key`." if route.again else ""
    if route.tagged:
        said += " Answers with an `ETag`; takes `If-None-Match`" + ("." if route.method == "GET" else " and `If-Match`.")
    return said


def _field(name: str, shape: Schema, needed: bool) -> str:
    kind = shape.get("type", "")
    told = [kind, *(["needed"] if needed else [])]
    choices = f" One of: {', '.join([f'`{one}`' for one in shape['enum']])}." if "enum" in shape else ""
    span = f" {shape['minimum']:,} to {shape['maximum']:,}." if "minimum" in shape else ""
    return f"- `{name}` ({', '.join(told)}): {shape.get('description', '')}{choices}{span}".rstrip()


def _problems() -> list[str]:
    rows = [f"| `{code}` | {status} | {title} |" for code, (status, title) in sorted(problem.kinds().items())]
    return [
        "", "## What goes wrong", "",
        "As `application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, `code`, `fix`, `request_id`, and for a",
        "request that does not fit its schema `errors`, each with a `pointer` and a `detail`. Codes stay the same.", "",
        "| Code | Status | Means |", "|---|---|---|", *rows,
    ]  # fmt: skip
