"""Kept sessions: list them, read a transcript turn by turn, make a note from a turn, forget a session and bring it back."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from holdfast.errors import HoldfastError, NotFound
from holdfast.models import SCOPES, parse_tags
from holdfast.server.problem import Problem
from holdfast.server.web import address, text
from holdfast.server.web.page import Page, Visit, read_number, redirect

_FOLDERS = {"project": "projects", "agent": "agents", "session": "sessions"}
_LISTED = 30  # sessions on one page
_AROUND = 3  # turns of the neighbouring pages that a page also shows
_SEARCHED = 100
_TITLE_CHARS = 60
_BASE = "/ui/sessions/{kind}/{id}/{client}/{file}"


class SessionAddress:
    """The transcript that a request is about."""

    def __init__(self, visit: Visit) -> None:
        params = visit.request.path_params
        if params["kind"] not in SCOPES:
            raise Problem("no_route", "there is no such scope", "Go back to the sessions")
        self.scope = address.scope_of(params["kind"], params["id"])
        folder = f"{_FOLDERS[params['kind']]}/{params['id']}" if params["kind"] in _FOLDERS else "global"
        self.path = f"{folder}/transcripts/{params['client']}/{params['file']}.jsonl"
        self.fields = address.scope_fields(self.scope, visit.caller.agent)

    def url(self, action: str = "") -> str:
        return address.session_url(self.path, action)

    def cite(self, first: int, last: int) -> str:
        """Return the citation of turns by their numbers, which begin with 0; the first line of the file is its header."""
        return f"{self.path}:{first + 2}-{last + 2}"


async def get_sessions(visit: Visit) -> Response:
    """List the kept transcripts: of the whole home for a person who manages agents, else of the caller's own scopes."""
    match, cursor, project = (visit.query.get(name, "").strip() for name in ("q", "cursor", "project"))
    fields: dict[str, Any] = {"limit": _LISTED}
    if visit.everywhere:
        fields |= visit.everywhere
    elif project:
        fields["project"] = project
    fields |= {name: value for name, value in (("match", match), ("cursor", cursor)) if value}
    page = await visit.call("GET /v1/history/sessions", fields)
    following = {"q": match, "project": project, "cursor": page["next"]} if page["next"] else None
    forgotten = {name: visit.query.get(name, "") for name in ("path", "session", "client")}
    return await visit.render(
        "sessions.html", sessions=page["sessions"], q=match, project=project, everywhere="everywhere" in fields,
        next=urlencode(following) if following else None, is_first_page=not cursor, forgotten=forgotten,
    )  # fmt: skip


async def get_session(visit: Visit) -> Response:
    """Show a page of turns, with a few of the neighbouring pages; `turn` is the one that a hit is about."""
    session, page = SessionAddress(visit), max(1, read_number(visit.query.get("page"), 1))
    first = (page - 1) * address.TURNS
    fields = {**session.fields, "of": session.cite(first, first + address.TURNS - 1), "before": _AROUND, "after": _AROUND}
    turns = (await visit.call("GET /v1/history", fields))["turns"]
    query = visit.query.get("q", "").strip()
    hits, problem = [], None
    if query:
        try:
            hits = await _search(visit, session, query)
        except (HoldfastError, Problem) as error:
            problem = visit.describe(error)
    return await visit.render(
        "session.html", session=turns[0]["session"], client=turns[0]["client"], scope=session.scope, path_of=session.path,
        turns=[{**turn, "pieces": text.highlight(turn["text"], query)} for turn in turns],
        found=read_number(visit.query.get("turn"), -1), page=page,
        has_next=turns[-1]["number"] >= first + address.TURNS, q=query, hits=hits, problem=problem,
    )  # fmt: skip


async def _search(visit: Visit, session: SessionAddress, query: str) -> list[dict[str, Any]]:
    """Return the turns of this session among the best hits of its scope."""
    fields = {"query": query, "kind": "turn", "scope": session.scope["kind"], "limit": _SEARCHED, **session.fields}
    answer = await visit.call("POST /v1/recall", fields)
    own = [hit for hit in answer["hits"] if hit["citation"].startswith(f"{session.path}:")]
    return [{**hit, "pieces": text.excerpt(hit["text"], query), "url": address.turn_url(hit["citation"])} for hit in own]


async def _get_turn(visit: Visit, session: SessionAddress, number: int) -> dict[str, Any]:
    of = session.cite(number, number)
    turns = (await visit.call("GET /v1/history", {**session.fields, "of": of, "before": 0, "after": 0}))["turns"]
    found: dict[str, Any] = turns[0]
    return found


async def get_make_note(visit: Visit) -> Response:
    """Offer a form for a note with the text of a turn."""
    session = SessionAddress(visit)
    turn = await _get_turn(visit, session, read_number(visit.query.get("turn"), 0))
    draft = {"text": turn["text"], "key": "", "type": "project", "tags": "", "scope": session.scope["kind"]}
    return await _render_form(visit, session, turn, draft, None)


async def post_make_note(visit: Visit) -> Response:
    """Store a note that names the turn as its source, so that it is never trusted more than the turn."""
    session, form = SessionAddress(visit), visit.form
    turn = await _get_turn(visit, session, read_number(form.get("turn"), 0))
    draft = {name: form.get(name, "") for name in ("text", "key", "type", "tags", "scope")}
    fields = {name: draft[name] for name in ("text", "key", "type", "scope") if draft[name]}
    source = {"made_from": [f"turn:{turn['citation']}"], "tags": list(parse_tags(draft["tags"]))}
    try:
        stored = await visit.call("POST /v1/notes", {**session.fields, **fields, **source, "expected": ""})
    except (HoldfastError, Problem) as error:
        return await _render_form(visit, session, turn, draft, visit.describe(error))
    return redirect(f"{address.note_url(stored['note']['scope'], stored['note']['key'])}?done=saved")


async def _render_form(
    visit: Visit, session: SessionAddress, turn: dict[str, Any], draft: dict[str, Any], problem: dict[str, Any] | None
) -> Response:
    back = address.turn_url(turn["citation"])
    return await visit.render(
        "session-note.html", http_status=problem["status"] if problem else 200, turn=turn, draft=draft, problem=problem,
        path_of=session.path, back=back, scope=session.scope,
    )  # fmt: skip


async def post_forget(visit: Visit) -> Response:
    """Put a transcript in the trash, and offer to bring it back."""
    session, names = SessionAddress(visit), _names(visit)
    forgotten = await visit.call("POST /v1/history/forget", {**session.fields, **names})
    if not forgotten["deleted"]:
        raise NotFound("there is no such session", "Go back to the sessions")
    return redirect("/ui/sessions?" + urlencode({"done": "forgotten", "path": session.path, **names}))


async def post_restore(visit: Visit) -> Response:
    session = SessionAddress(visit)
    await visit.call("POST /v1/history/restore", {**session.fields, **_names(visit)})
    return redirect(f"{session.url()}?done=restored")


def _names(visit: Visit) -> dict[str, str]:
    return {name: visit.form.get(name, "") for name in ("session", "client")}


PAGES = (
    Page("GET", "/ui/sessions", get_sessions),
    Page("GET", _BASE, get_session),
    Page("GET", f"{_BASE}/note", get_make_note),
    Page("POST", f"{_BASE}/note", post_make_note),
    Page("POST", f"{_BASE}/forget", post_forget),
    Page("POST", f"{_BASE}/restore", post_restore),
)
