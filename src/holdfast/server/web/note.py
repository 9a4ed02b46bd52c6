"""One note: read it, compare its versions, change it, forget it, bring it back, or purge it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from holdfast.base import dates
from holdfast.base.markdown import find_title
from holdfast.errors import Conflict, HoldfastError, NotFound, Refused
from holdfast.formats.facts import find_fact_lines
from holdfast.models import AGENT_ORIGINS, RELATION_KINDS, SCOPES, parse_tags
from holdfast.server.problem import Problem
from holdfast.server.web import address, text
from holdfast.server.web.page import Page, Visit, read_number, redirect
from holdfast.server.web.relations import read_relations

_VERSIONS = 5  # on one page
_TRASH = 500
_SHOWN = 20  # records of where a note was shown
_FACTS = 50
_REVIEWED = ("import", "web")  # origins whose texts a person may have approved
CONFLICT_CODES = ("precondition", "conflict")
_REDACTED = "[REDACTED:"  # how a mark in place of a secret begins
_BASE = "/ui/notes/{kind}/{id}/{key}"


class NoteAddress:
    """The note that a request is about."""

    def __init__(self, visit: Visit) -> None:
        params = visit.request.path_params
        if params["kind"] not in SCOPES:
            raise Problem("no_route", "there is no such scope", "Go back to the search")
        self.scope, self.key = address.scope_of(params["kind"], params["id"]), params["key"]
        self.fields = {"scope": params["kind"], "key": self.key, **address.scope_fields(self.scope, visit.caller.agent)}

    def url(self, action: str = "") -> str:
        return address.note_url(self.scope, self.key, action)


async def get_note(visit: Visit) -> Response:
    note = NoteAddress(visit)
    moments = {name: visit.query[name] for name in ("as_of", "known_at") if visit.query.get(name)}
    try:
        found = await visit.call("GET /v1/notes/{scope}/{key}", {**note.fields, **moments})
    except NotFound as error:
        return await _render_missing(visit, note, error, is_past=bool(moments))
    paging = visit.paging(_VERSIONS)
    history = await visit.call("GET /v1/notes/{scope}/{key}/history", {**note.fields, **paging})
    versions = history["versions"]
    return await visit.render(
        "note.html", note=found, scope=note.scope, key=note.key, next=history["next"], is_past=bool(moments),
        as_of=moments.get("as_of", ""), known_at=moments.get("known_at", ""),
        versions=_compare(versions), is_first_page="cursor" not in paging,
        cursor=paging.get("cursor", ""), total=found["versions"], trust=_describe_trust(found),
        facts=_list_facts(found, note.key), kinds=RELATION_KINDS,
        relations=[] if moments else await read_relations(visit, note.fields, note.scope, note.key),
    )  # fmt: skip


async def get_trace(visit: Visit) -> Response:
    """Show where a note was shown, what it was made from and what was made from it."""
    note = NoteAddress(visit)
    trace = await visit.call("GET /v1/trace/{scope}/{key}", note.fields)
    sources = [step for version in trace["versions"] for step in version["came_from"]]
    unique = list({step["what"]: step for step in reversed(sources)}.values())
    shown = trace["briefed"] if visit.query.get("all") == "yes" else trace["briefed"][:_SHOWN]
    return await visit.render(
        "note-trace-parts.html" if visit.is_fragment else "note-trace.html", scope=note.scope, key=note.key, trace=trace,
        sources=[_link_step(step, note.scope) for step in reversed(unique)], shown=shown,
        made=[_link_made(one) for one in trace["led_to"]],
    )  # fmt: skip


def _link_step(step: dict[str, Any], scope: dict[str, str]) -> dict[str, Any]:
    """Return a source with the address of its note; a note is named by kind and key, and its own kind is near."""
    kind, _, key = step["note"].partition("/")
    near = {"kind": kind, "id": scope["id"] if kind == scope["kind"] else ""}
    is_known = bool(key) and (kind in ("global", scope["kind"]))
    return {**step, "url": address.note_url(near, key) if is_known else None}


def _link_made(made: dict[str, Any]) -> dict[str, Any]:
    """Return a note that was made from another, with its address."""
    folder, _, name = made["path"].partition("/notes/")
    url = address.note_url(address.scope_of_folder(folder), name.removesuffix(".md"))
    return {**made, "url": url, "scope": address.scope_of_folder(folder), "led_to": [_link_made(one) for one in made["led_to"]]}


def _list_facts(note: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the facts that the note states; they are about its title."""
    subject = find_title(note["text"], key)
    return [
        {"subject": subject, "label": line.label, "value": line.value, "since": line.valid_from, "until": line.valid_to}
        for line in find_fact_lines(note["text"])[:_FACTS]
    ]


async def get_to_change(visit: Visit, fields: dict[str, str]) -> Any:
    """Return the note that these fields name; raise `Refused` if the caller sees marks in place of its secrets."""
    found = await visit.call("GET /v1/notes/{scope}/{key}", fields)
    _check_unredacted(visit, found["text"])
    return found


def _check_unredacted(visit: Visit, text: str) -> None:
    """Raise `Refused` if a text that is to be stored again has marks in place of secrets."""
    if "memory.export" not in visit.permissions and _REDACTED in text:
        raise Refused("this text has a secret in it that your role may not see", "Let an operator change it")


async def get_edit(visit: Visit) -> Response:
    note = NoteAddress(visit)
    found = await get_to_change(visit, note.fields)
    return await visit.render("edit.html", note=found, draft=found, scope=note.scope, key=note.key, theirs=None, problem=None)


async def post_edit(visit: Visit) -> Response:
    """Store the form over the version that the person saw; show both texts if another was stored since."""
    note, form = NoteAddress(visit), visit.form
    found = await get_to_change(visit, note.fields)
    content = {
        "text": form.get("text", ""), "type": form.get("type", ""), "tags": list(parse_tags(form.get("tags", ""))),
        "pinned": form.get("pinned") == "yes",
    }  # fmt: skip
    kept = _kept_fields(found, is_same_text=content["text"] == found["text"])
    try:
        stored = await _put(visit, note, {**content, **kept}, form.get("version", ""))
    except (HoldfastError, Problem) as error:
        return await _render_refused(visit, note, content, error)
    return redirect(f"{note.url()}?done={'unchanged' if stored['action'] == 'unchanged' else 'saved'}")


async def _render_refused(visit: Visit, note: NoteAddress, content: dict[str, Any], error: Exception) -> Response:
    """Show the form again with what the person wrote, and with the present text if another caller changed the note."""
    problem = visit.describe(error)
    current = await visit.call("GET /v1/notes/{scope}/{key}", note.fields)
    is_conflict = problem["code"] in CONFLICT_CODES
    theirs = text.compare_lines(current["text"], content["text"]) if is_conflict else None
    version = current["version"] if is_conflict else visit.form.get("version", "")
    return await visit.render(
        "edit.html", http_status=problem["status"], note={**current, "version": version}, draft=content, scope=note.scope,
        key=note.key, theirs=theirs, problem=problem,
    )  # fmt: skip


async def post_revert(visit: Visit) -> Response:
    """Bring the text, type and tags of an older version back as a new version; the form names it by its place on its page.

    The places are those that the person saw: the note is stored only if its current version is still the same.
    """
    note, form = NoteAddress(visit), visit.form
    found = await get_to_change(visit, note.fields)
    paging = {"limit": _VERSIONS, **({"cursor": form["cursor"]} if form.get("cursor") else {})}
    versions = (await visit.call("GET /v1/notes/{scope}/{key}/history", {**note.fields, **paging}))["versions"]
    place = read_number(form.get("place"), len(versions))
    if place >= len(versions):
        raise Problem("invalid_request", "the form names no version of this note", "Load the page of the note again")
    older = versions[place]
    _check_unredacted(visit, older["text"])
    content = {"text": older["text"], "type": older["type"], "tags": older["tags"], "pinned": found["pinned"]}
    await _put(visit, note, {**content, **_reverted_fields(older)}, form.get("version", ""))
    return redirect(f"{note.url()}?done=reverted")


def _reverted_fields(older: dict[str, Any]) -> dict[str, str]:
    """Return until when a version that is brought back is true, and how far it is trusted.

    Bringing a text back does not vouch for it: one from the web or an import waits for review again.
    """
    kept = {"valid_to": older["valid_to"]} if older["valid_to"] and older["valid_to"] > dates.now() else {}
    trust = older["source"]["trust"] or older["source"]["origin"]
    if trust in AGENT_ORIGINS:
        kept["origin"] = trust
    return kept


async def post_pin(visit: Visit) -> Response:
    """Pin or unpin the version that the person saw."""
    note, pinned = NoteAddress(visit), visit.form.get("pinned") == "yes"
    found = await get_to_change(visit, note.fields)
    content = {"text": found["text"], "pinned": pinned, **_kept_fields(found, is_same_text=True)}
    await _put(visit, note, content, visit.form.get("version", ""))
    return redirect(f"{note.url()}?done={'pinned' if pinned else 'unpinned'}")


async def post_properties(visit: Visit) -> Response:
    """Change type and tags of the version that the person saw; its text and trust stay."""
    note, form = NoteAddress(visit), visit.form
    found = await get_to_change(visit, note.fields)
    content = {
        "text": found["text"], "type": form.get("type", ""), "tags": list(parse_tags(form.get("tags", ""))),
        **_kept_fields(found, is_same_text=True),
    }  # fmt: skip
    stored = await _put(visit, note, content, form.get("version", ""))
    return redirect(f"{note.url()}?done={'unchanged' if stored['action'] == 'unchanged' else 'saved'}")


async def post_move(visit: Visit) -> Response:
    """Store the note in another scope, where its key must be free, and forget it here; both can be undone.

    The older versions stay with the forgotten note."""
    note, form = NoteAddress(visit), visit.form
    kind, version = form.get("kind", ""), form.get("version", "")
    scope = address.scope_of(kind if kind in SCOPES else "global", form.get("id", "").strip())
    if scope["kind"] != "global" and not scope["id"]:
        message = f"the scope {scope['kind']} needs a name"
        raise Problem("invalid_request", message, f"Go back and enter the name of the {scope['kind']}")
    found = await get_to_change(visit, note.fields)
    if found["version"] != version:
        raise Conflict("another caller changed the note meanwhile", "Load the page again")
    content = {
        "text": found["text"], "type": found["type"], "tags": found["tags"], "pinned": found["pinned"],
        **_kept_fields(found, is_same_text=True),
    }  # fmt: skip
    fields = {"scope": scope["kind"], "key": note.key, **address.scope_fields(scope, visit.caller.agent)}
    await visit.call("PUT /v1/notes/{scope}/{key}", {**fields, **content}, {"If-None-Match": "*"})
    await visit.call("DELETE /v1/notes/{scope}/{key}", note.fields, {"If-Match": f'"{version}"'})
    return redirect(f"{address.note_url(scope, note.key)}?done=moved")


async def post_forget(visit: Visit) -> Response:
    note = NoteAddress(visit)
    headers = {"If-Match": f'"{visit.form.get("version", "")}"'}
    await visit.call("DELETE /v1/notes/{scope}/{key}", note.fields, headers)
    return redirect(f"{note.url()}?done=forgotten")


async def post_restore(visit: Visit) -> Response:
    note = NoteAddress(visit)
    await visit.call("POST /v1/notes/{scope}/{key}/restore", note.fields)
    return redirect(f"{note.url()}?done=restored")


async def get_purge(visit: Visit) -> Response:
    """Ask once more: a purge cannot be undone."""
    note = NoteAddress(visit)
    found = await visit.call("GET /v1/notes/{scope}/{key}", note.fields)
    return await visit.render("purge.html", note=found, scope=note.scope, key=note.key, problem=None)


async def post_purge(visit: Visit) -> Response:
    """Purge once the person has typed the key, and show the receipt."""
    note = NoteAddress(visit)
    if visit.form.get("confirm", "").strip() != note.key:
        found = await visit.call("GET /v1/notes/{scope}/{key}", note.fields)
        problem = {"detail": "This is not the key of the note.", "fix": "Type the key exactly as it is shown"}
        return await visit.render("purge.html", http_status=422, note=found, scope=note.scope, key=note.key, problem=problem)
    transcripts = {"transcripts": True} if visit.form.get("transcripts") == "yes" else {}
    receipt = await visit.call("POST /v1/notes/{scope}/{key}/purge", {**note.fields, **transcripts})
    return await visit.render("receipt.html", receipt=receipt, scope=note.scope, key=note.key)


async def change_pin(visit: Visit, fields: dict[str, Any], pinned: bool) -> None:
    """Pin or unpin the current version of the note that these fields name."""
    found = await get_to_change(visit, fields)
    content = {"text": found["text"], "pinned": pinned, **_kept_fields(found, is_same_text=True)}
    await visit.call("PUT /v1/notes/{scope}/{key}", {**fields, **content}, {"If-Match": f'"{found["version"]}"'})


def _kept_fields(note: dict[str, Any], is_same_text: bool) -> dict[str, str]:
    """Return fields of a note that a change must not lose: until when it is true, and how far it is trusted.

    A new text is the word of the person who wrote it. The same text is trusted as before, unless a person has approved it.
    """
    kept = {"valid_to": note["valid_to"]} if note["valid_to"] else {}
    trust = note["source"]["trust"] or note["source"]["origin"]
    is_approved = trust in _REVIEWED and not note["quarantined"]
    if is_same_text and trust in AGENT_ORIGINS and not is_approved:
        kept["origin"] = trust
    return kept


async def _put(visit: Visit, note: NoteAddress, content: dict[str, Any], version: str) -> Any:
    return await visit.call("PUT /v1/notes/{scope}/{key}", {**note.fields, **content}, {"If-Match": f'"{version}"'})


async def _render_missing(visit: Visit, note: NoteAddress, error: Exception, is_past: bool) -> Response:
    """Show that there is no such note, and offer to bring it back if it is in the trash or the archive."""
    problem = visit.describe(error)
    trashed: list[dict[str, Any]] = []
    if not is_past:
        fields = {name: value for name, value in note.fields.items() if name != "key"}
        page = await visit.call("GET /v1/trash", {**fields, "limit": _TRASH})
        trashed = [one for one in page["trash"] if one["key"] == note.key]
    return await visit.render(
        "note-missing.html", http_status=200 if trashed and visit.query.get("done") else 404, problem=problem, scope=note.scope,
        key=note.key, trashed=trashed[0] if trashed else None, is_past=is_past,
    )  # fmt: skip


def _compare(versions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return versions, newest first, each with the lines that it changed in the previous version; None for the oldest."""
    older = [*[one["text"] for one in versions[1:]], None]
    return [
        {**one, "lines": text.compare_lines(before, one["text"]) if before is not None else None}
        for one, before in zip(versions, older, strict=True)
    ]


def _describe_trust(note: dict[str, Any]) -> str:
    """Return how far the text is trusted, in words."""
    if note["quarantined"]:
        return "Waits for review: agents are not told this until a person approves it."
    words = {
        "user": "A person said this.", "agent": "An agent wrote this.", "tool": "A tool's output said this.",
        "import": "This was imported.", "web": "This came from the web.",
    }  # fmt: skip
    source = note["source"]
    return words.get(source["trust"] or source["origin"], "")


PAGES = (
    Page("GET", _BASE, get_note),
    Page("GET", f"{_BASE}/trace", get_trace),
    Page("GET", f"{_BASE}/edit", get_edit),
    Page("POST", f"{_BASE}/edit", post_edit),
    Page("POST", f"{_BASE}/revert", post_revert),
    Page("POST", f"{_BASE}/pin", post_pin),
    Page("POST", f"{_BASE}/properties", post_properties),
    Page("POST", f"{_BASE}/move", post_move),
    Page("POST", f"{_BASE}/forget", post_forget),
    Page("POST", f"{_BASE}/restore", post_restore),
    Page("GET", f"{_BASE}/purge", get_purge),
    Page("POST", f"{_BASE}/purge", post_purge),
)
