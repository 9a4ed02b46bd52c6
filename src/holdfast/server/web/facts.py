"""Facts: the subjects that have some, and a subject's values over time with a form for a new value."""

from __future__ import annotations

import functools
import re
from datetime import date
from typing import Any

from starlette.responses import Response

from holdfast.base import dates
from holdfast.errors import HoldfastError
from holdfast.formats.facts import find_fact_lines, normalize_name
from holdfast.server.problem import Problem
from holdfast.server.web import address
from holdfast.server.web.fact_scope import FactScope
from holdfast.server.web.page import Page, Visit, redirect

_SUBJECTS = 50  # on one page
_FACTS = 200
_NOTES = 5  # whose versions are read, to tell when a line was recorded
_VERSIONS = 100
_NEW_FIELDS = ("label", "value", "on", "many", "kind", "id")
_LINK = re.compile(r"(\[\[[^\[\]\n]+\]\])")
_SUBJECT_PATH = "/ui/facts/subject"


# --- the list of subjects -------------------------------------------------------------------------------------------------


async def get_subjects(visit: Visit) -> Response:
    scope, contains = FactScope(visit), visit.query.get("q", "").strip()
    values: dict[str, Any] = {"subjects": [], "next": None, "problem": None, "http_status": 200}
    fields = {"contains": contains} if contains else {}
    try:
        found = await visit.call("GET /v1/facts/subjects", {**scope.fields, **fields, **visit.paging(_SUBJECTS)})
        values |= {"subjects": found["subjects"]}
        values["next"] = scope.link("/ui/facts", q=contains, cursor=found["next"]) if found["next"] else None
    except (HoldfastError, Problem) as error:  # such as a scope without its name: the form stays as it is
        problem = visit.describe(error)
        values |= {"problem": problem, "http_status": problem["status"]}
    template = "facts-list.html" if visit.is_fragment else "facts.html"
    return await visit.render(template, scope=scope, q=contains, **values)


# --- one subject ----------------------------------------------------------------------------------------------------------


async def get_subject(visit: Visit) -> Response:
    return await _render_subject(visit, visit.query.get("name", ""), FactScope(visit))


async def post_subject(visit: Visit) -> Response:
    """State a new value in the chosen scope; show the form again if it is refused."""
    name, form, scope = visit.query.get("name", ""), visit.form, FactScope(visit)
    target = {"kind": form.get("kind", ""), "id": form.get("id", "").strip()}
    fields: dict[str, Any] = {"subject": name, "label": form.get("label", ""), "value": form.get("value", "")}
    fields["scope"] = target["kind"]
    fields |= address.scope_fields(target, visit.caller.agent) if target["id"] else {}
    fields |= {"on": form["on"]} if form.get("on") else {}
    fields |= {"many": True} if form.get("many") == "yes" else {}
    try:
        stated = await visit.call("POST /v1/facts", fields)
    except (HoldfastError, Problem) as error:
        problem = visit.describe(error)
        return await _render_subject(visit, name, scope, problem)
    done = "unchanged" if stated["action"] == "unchanged" else "saved"
    return redirect(scope.link(_SUBJECT_PATH, name=stated["fact"]["subject"], done=done))


async def _render_subject(visit: Visit, name: str, scope: FactScope, problem: dict[str, Any] | None = None) -> Response:
    found: dict[str, Any] = {"facts": [], "next": None}
    if name.strip():
        asked = {**scope.fields, "subject": name, "history": True, **visit.paging(_FACTS)}
        found = await visit.call("GET /v1/facts", asked)
    facts = found["facts"]
    recorded = await _find_recorded(visit, facts)
    rows = [_describe_fact(fact, recorded, scope) for fact in facts]
    status = problem["status"] if problem else 200
    following = scope.link(_SUBJECT_PATH, name=name, cursor=found["next"]) if found["next"] else None
    return await visit.render(
        "facts-subject.html", http_status=status, name=_find_spelling(facts, name), scope=scope, problem=problem,
        groups=_group_by_label(rows), next=following, draft=_read_draft(visit, facts),
        action=scope.link(_SUBJECT_PATH, name=name),
    )  # fmt: skip


def _find_spelling(facts: list[dict[str, Any]], name: str) -> str:
    """Return the subject as its facts write it."""
    same = [fact["subject"] for fact in facts if normalize_name(fact["subject"]) == normalize_name(name)]
    return str(same[0]) if same else name


def _read_draft(visit: Visit, facts: list[dict[str, Any]]) -> dict[str, str]:
    """Return the fields of the form for a new value; the scope is that of the newest fact."""
    if visit.form:
        return {name: visit.form.get(name, "") for name in _NEW_FIELDS}
    newest = max(facts, key=lambda fact: str(fact["valid_from"]), default=None)
    scope = newest["scope"] if newest else {"kind": "global", "id": ""}
    draft = dict.fromkeys(_NEW_FIELDS, "") | {"kind": scope["kind"], "id": scope.get("id") or ""}
    return draft | {"label": visit.query.get("label", "")}


async def _find_recorded(visit: Visit, facts: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, str]]:
    """Return when the lines of these facts were first recorded, and when their ends were, from the versions of their notes."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    paths = {fact["path"]: fact["scope"] for fact in facts}
    notes = [(path, scope, key) for path, scope in paths.items() if (key := address.find_key_in_path(path))]
    for path, scope, key in notes[:_NOTES]:
        fields = {"scope": scope["kind"], "key": key, **address.scope_fields(scope, visit.caller.agent), "limit": _VERSIONS}
        try:
            history = await visit.call("GET /v1/notes/{scope}/{key}/history", fields)
        except (HoldfastError, Problem):  # such as a note that was forgotten since
            continue
        found |= await visit.pipeline.threads(functools.partial(_read_clocks, path, history["versions"]))
    return found


def _read_clocks(path: str, versions: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, str]]:
    """Return when each line of a note was first recorded, and its end; parsing 100 long versions takes a while."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for version in versions:  # the newest first: the oldest one that has the line remains
        for line in find_fact_lines(version["text"]):
            clocks = found.setdefault((path, line.label, line.value, line.valid_from), {})
            clocks["recorded"] = version["recorded"]
            if line.valid_to:
                clocks["closed"] = version["recorded"]
    return found


def _cut_links(value: str, scope: FactScope) -> list[tuple[str, str | None]]:
    """Return a value in parts, each with the address of the subject that it links to: `[[Name]]`, or `[[Name|words]]`."""
    parts: list[tuple[str, str | None]] = []
    for part in _LINK.split(value):
        name, _, words = part[2:-2].partition("|")
        if _LINK.fullmatch(part) and name.strip():
            parts.append((words or name, scope.link(_SUBJECT_PATH, name=name)))
        elif part:
            parts.append((part, None))
    return parts


def _describe_fact(fact: dict[str, Any], recorded: dict[tuple[str, ...], dict[str, str]], scope: FactScope) -> dict[str, Any]:
    clocks = recorded.get((fact["path"], fact["label"], fact["value"], fact["valid_from"]), {})
    now = dates.now()
    state = "closed" if fact["valid_to"] and fact["valid_to"] <= now else "planned" if fact["valid_from"] > now else "current"
    return {
        **fact, "url": address.fact_url(fact), "recorded": clocks.get("recorded"),
        "closed_recorded": clocks.get("closed") if fact["valid_to"] else None, "state": state,
        "parts": _cut_links(fact["value"], scope), "closer": _cut_links(fact["retired_by"] or "", scope),
    }  # fmt: skip


def _group_by_label(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts by subject and label, each group with its newest value first and the place of each on a common scale."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((normalize_name(row["subject"]), normalize_name(row["label"])), []).append(row)
    first = min([row["valid_from"][:10] for row in rows], default="")
    return [
        {
            "subject": group[0]["subject"], "label": group[0]["label"],
            "facts": [_place(row, first) for row in sorted(group, key=lambda row: str(row["valid_from"]), reverse=True)],
        }
        for group in groups.values()
    ]  # fmt: skip


def _place(row: dict[str, Any], first: str) -> dict[str, Any]:
    """Return a fact with the start and the length of its bar, in hundredths of the time from the first fact until today."""
    start, today = date.fromisoformat(first), date.fromisoformat(dates.now()[:10])
    begin = date.fromisoformat(row["valid_from"][:10])
    end = date.fromisoformat(row["valid_to"][:10]) if row["valid_to"] else max(today, begin)
    whole = max(1, (max(today, end) - start).days)
    left = min(99.0, max(0.0, 100 * (begin - start).days / whole))
    return {**row, "left": round(left, 2), "width": round(min(100 - left, max(1.0, 100 * (end - begin).days / whole)), 2)}


PAGES = (
    Page("GET", "/ui/facts", get_subjects),
    Page("GET", _SUBJECT_PATH, get_subject),
    Page("POST", _SUBJECT_PATH, post_subject),
)
