"""Review: notes in quarantine beside what they would change; approve, edit or reject them, one or many, and undo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from holdfast.errors import HoldfastError, NotFound
from holdfast.models import AGENT_ORIGINS, SCOPES, parse_tags
from holdfast.server.problem import Problem
from holdfast.server.web import address, text
from holdfast.server.web.note import CONFLICT_CODES, get_to_change
from holdfast.server.web.page import Page, Visit, redirect
from holdfast.server.web.relations import read_proposed

_REVIEW = "memory.review"
_LIMIT = 20  # notes on one page; a form has at most 64 fields
_QUERY_CHARS = 400  # of the text that similar notes are looked for with
_SIMILAR = 8
_DECISIONS = {"approve": "approved", "reject": "rejected"}
_UNDOABLE = ("approved", "edited", "rejected")  # what the address of the page may say was just done
_BASE = "/ui/review/{kind}/{id}/{key}"


class NoteRef(NamedTuple):
    """A note and the version that the person saw, as forms and addresses name it: `project/demo/deploys@VERSION`."""

    kind: str
    id: str
    key: str
    version: str

    @property
    def scope(self) -> dict[str, str]:
        return address.scope_of(self.kind, self.id)

    def fields(self, visit: Visit) -> dict[str, str]:
        """Return the fields by which the API names the note."""
        return {"scope": self.kind, "key": self.key, **address.scope_fields(self.scope, visit.caller.agent)}

    def __str__(self) -> str:
        return f"{self.kind}/{self.id}/{self.key}@{self.version}"


def parse_ref(value: str) -> NoteRef | None:
    """Return the note that a field names; None if it names none."""
    place, _, version = value.rpartition("@")
    parts = place.split("/")
    if len(parts) != 3 or parts[0] not in SCOPES or not all(parts) or not version:
        return None
    return NoteRef(parts[0], parts[1], parts[2], version)


def make_ref(note: dict[str, Any]) -> NoteRef:
    """Return how forms name a note of the API."""
    return NoteRef(note["scope"]["kind"], note["scope"].get("id") or "-", note["key"], note["version"])


# --- the list -------------------------------------------------------------------------------------------------------------


async def get_review(visit: Visit) -> Response:
    done = {name: _parse_refs(visit.request.query_params.getlist(name)) for name in (*_UNDOABLE, "undone")}
    return await _render_list(visit, done, [])


async def _render_list(visit: Visit, done: dict[str, list[NoteRef]], failures: list[dict[str, Any]]) -> Response:
    cursor = visit.form.get("cursor") or visit.query.get("cursor", "")
    page = await visit.call("GET /v1/review", {**visit.everywhere, "limit": _LIMIT, **({"cursor": cursor} if cursor else {})})
    at = visit.form.get("at") or visit.query.get("at", "")
    return await visit.render(
        "review.html", notes=[{**note, "ref": make_ref(note)} for note in page["notes"]], waiting=page["waiting"],
        next=page["next"], cursor=cursor, at=at if at.isascii() and at.isdecimal() else "", may_decide=_may_decide(visit),
        done_notes=done, failures=failures, relations=await read_proposed(visit),
        http_status=failures[0]["problem"]["status"] if failures else 200,
    )  # fmt: skip


def _may_decide(visit: Visit) -> bool:
    """Return whether the visitor may approve and reject: a person who may review."""
    return visit.caller.is_person and _REVIEW in visit.permissions


def _parse_refs(values: Iterable[str]) -> list[NoteRef]:
    found = [parse_ref(value) for value in values]
    return [ref for ref in found if ref][:_LIMIT]


def _refs_of_form(visit: Visit, prefix: str) -> list[NoteRef]:
    """Return the notes that the fields `PREFIX-0`, `PREFIX-1` and so on name."""
    return _parse_refs([value for name, value in visit.form.items() if name.startswith(f"{prefix}-")])


# --- decisions ------------------------------------------------------------------------------------------------------------


async def post_decide(visit: Visit) -> Response:
    """Approve or reject the notes of a form, each on its own: one that fails does not keep the others."""
    decision = visit.form.get("decision", "")
    if decision not in _DECISIONS:
        raise Problem("invalid_request", "the form names no decision", "Load the page again")
    refs = _refs_of_form(visit, "note")
    done, failures = [], []
    for ref in refs:
        try:
            fields = {**ref.fields(visit), "version": ref.version}
            answer = await visit.call(f"POST /v1/review/{{scope}}/{{key}}/{decision}", fields)
        except (HoldfastError, Problem) as error:
            failures.append(_describe_failure(visit, ref, error))
        else:
            done.append(ref._replace(version=answer["version"]) if decision == "approve" else ref)
    return await _finish(visit, {_DECISIONS[decision]: done}, failures)


async def post_undo(visit: Visit) -> Response:
    """Let notes wait for review again: take an approval back, or restore what was rejected."""
    done, failures = [], []
    for name in _UNDOABLE:
        for ref in _refs_of_form(visit, name):
            try:
                await _undo(visit, ref, was_rejected=name == "rejected")
                done.append(ref)
            except (HoldfastError, Problem) as error:
                failures.append(_describe_failure(visit, ref, error))
    return await _finish(visit, {"undone": done}, failures)


async def _undo(visit: Visit, ref: NoteRef, was_rejected: bool) -> None:
    if was_rejected:
        await visit.call("POST /v1/notes/{scope}/{key}/restore", ref.fields(visit))
    else:
        await visit.call("POST /v1/review/{scope}/{key}/quarantine", {**ref.fields(visit), "version": ref.version})


def _describe_failure(visit: Visit, ref: NoteRef, error: Exception) -> dict[str, Any]:
    return {"ref": ref, "problem": visit.describe(error)}


async def _finish(visit: Visit, done: dict[str, list[NoteRef]], failures: list[dict[str, Any]]) -> Response:
    """Show the list again; what failed is shown at once, since an address should not carry it."""
    if failures:
        return await _render_list(visit, {name: done.get(name, []) for name in (*_UNDOABLE, "undone")}, failures)
    query = [(name, str(ref)) for name, refs in done.items() for ref in refs]
    query += [(name, visit.form[name]) for name in ("cursor", "at") if visit.form.get(name)]
    return redirect(f"/ui/review?{urlencode(query)}")


# --- what it would change -------------------------------------------------------------------------------------------------


async def get_compare(visit: Visit) -> Response:
    """Show one note beside what it would change, and where it came from."""
    ref = _ref_of_path(visit)
    trace = await visit.call("GET /v1/trace/{scope}/{key}", ref.fields(visit))
    note = trace["note"]
    other = await _find_earlier_version(visit, ref, note) or await _find_similar(visit, note)
    lines = text.compare_lines(other["text"], note["text"]) if other else []
    template = "review-compare-part.html" if visit.is_fragment else "review-compare.html"
    return await visit.render(
        template, note={**note, "ref": make_ref(note)}, trace=trace, other=other, lines=lines, scope=note["scope"], key=ref.key
    )


async def _find_earlier_version(visit: Visit, ref: NoteRef, note: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the note said before."""
    if note["versions"] < 2:
        return None
    history = await visit.call("GET /v1/notes/{scope}/{key}/history", {**ref.fields(visit), "limit": 2})
    if len(history["versions"]) < 2:
        return None
    return {"what": "before", "text": history["versions"][1]["text"], "url": address.note_url(note["scope"], note["key"])}


async def _find_similar(visit: Visit, note: dict[str, Any]) -> dict[str, Any] | None:
    """Return the trusted note with the same key, or else the most similar one; None if there is none."""
    fields = {"query": f"{note['key'].replace('-', ' ')} {note['text'][:_QUERY_CHARS]}", "kind": "note", "limit": _SIMILAR}
    everywhere = {"scope": "all"} if visit.caller.is_person else {}
    answer = await visit.call("POST /v1/recall", {**fields, **everywhere})
    own = (note["scope"]["kind"], note["scope"].get("id") or "", note["key"])
    hits = [
        hit for hit in answer["hits"]
        if hit["kind"] == "note" and not hit["quarantined"] and _place(hit) != own
    ]  # fmt: skip
    same_key = [hit for hit in hits if hit["key"] == note["key"]]
    found = same_key or [hit for hit in hits if not hit["weak"]]
    if not found:
        return None
    hit = found[0]
    scope = address.scope_fields(hit["scope"], visit.caller.agent)
    try:
        whole = await visit.call("GET /v1/notes/{scope}/{key}", {"scope": hit["scope"]["kind"], "key": hit["key"], **scope})
    except NotFound:  # forgotten in this moment
        return None
    what = "same key" if same_key else "similar"
    return {**whole, "what": what, "url": address.note_url(whole["scope"], whole["key"])}


def _place(hit: dict[str, Any]) -> tuple[str, str, str]:
    return hit["scope"]["kind"], hit["scope"].get("id") or "", hit["key"]


def _ref_of_path(visit: Visit) -> NoteRef:
    params = visit.request.path_params
    ref = parse_ref(f"{params['kind']}/{params['id']}/{params['key']}@-")
    if ref is None:
        raise Problem("no_route", "there is no such note", "Go back to the review")
    return ref


# --- edit and approve -----------------------------------------------------------------------------------------------------


async def get_edit(visit: Visit) -> Response:
    ref = _ref_of_path(visit)
    note = await get_to_change(visit, ref.fields(visit))
    return await visit.render("review-edit.html", note=note, draft=note, ref=make_ref(note), theirs=None, problem=None)


async def post_edit(visit: Visit) -> Response:
    """Store the person's text over the version that they saw, and approve it."""
    ref, form = _ref_of_path(visit), visit.form
    note = await get_to_change(visit, ref.fields(visit))
    draft: dict[str, Any] = {"text": form.get("text", ""), "type": form.get("type", "")}
    draft["tags"] = list(parse_tags(form.get("tags", "")))
    try:
        approved = await _store_and_approve(visit, ref, note, draft)
    except (HoldfastError, Problem) as error:
        problem = visit.describe(error)
        is_conflict = problem["code"] in CONFLICT_CODES
        theirs = text.compare_lines(note["text"], draft["text"]) if is_conflict else None
        version = note["version"] if is_conflict else form.get("version", "")
        return await visit.render(
            "review-edit.html", http_status=problem["status"], note={**note, "version": version}, draft=draft,
            ref=make_ref(note), theirs=theirs, problem=problem,
        )  # fmt: skip
    return redirect(f"/ui/review?{urlencode({'edited': str(make_ref(approved))})}")


async def _store_and_approve(visit: Visit, ref: NoteRef, note: dict[str, Any], draft: dict[str, Any]) -> Any:
    fields = {**ref.fields(visit), **draft, "pinned": note["pinned"]}
    if note["valid_to"]:
        fields["valid_to"] = note["valid_to"]
    trust = note["source"]["trust"] or note["source"]["origin"]
    if draft["text"] == note["text"] and trust in AGENT_ORIGINS:
        fields["origin"] = trust  # the text is not the person's: they approve it
    headers = {"If-Match": f'"{visit.form.get("version", "")}"'}
    stored = await visit.call("PUT /v1/notes/{scope}/{key}", fields, headers)
    version = {"version": stored["note"]["version"]}
    return await visit.call("POST /v1/review/{scope}/{key}/approve", {**ref.fields(visit), **version})


PAGES = (
    Page("GET", "/ui/review", get_review),
    Page("POST", "/ui/review/decide", post_decide),
    Page("POST", "/ui/review/undo", post_undo),
    Page("GET", f"{_BASE}/compare", get_compare),
    Page("GET", f"{_BASE}/edit", get_edit),
    Page("POST", f"{_BASE}/edit", post_edit),
)
