"""Addresses of every page of the console that a signed-in person can open. A new page must say here how it is opened."""

from __future__ import annotations

from urllib.parse import quote

from holdfast.server.web import PAGES

_NOTE = "/ui/notes/{kind}/{id}/{key}"
_SESSION = "/ui/sessions/{kind}/{id}/{client}/{file}"
_REVIEWED = "/ui/review/{kind}/{id}/{waiting}"
_ADDRESSES = {  # by the path of the page
    "/": ("/",),
    "/ui/problems": ("/ui/problems",),
    "/ui/search": (
        "/ui/search?q={word}&limit=100", "/ui/search?mode=recent&limit=100", "/ui/search?q={word}&kind=turn",
        "/ui/search?q={word}&kind=fact", "/ui/search?q={word}&source=user",
    ),
    _NOTE: (_NOTE,),
    f"{_NOTE}/trace": (f"{_NOTE}/trace",),
    f"{_NOTE}/edit": (f"{_NOTE}/edit",),
    f"{_NOTE}/purge": (f"{_NOTE}/purge",),
    "/ui/file": ("/ui/file?path={path}",),
    "/ui/facts": ("/ui/facts",),
    "/ui/facts/subject": ("/ui/facts/subject?name={subject}",),
    "/ui/graph": ("/ui/graph", "/ui/graph?entity={subject}"),
    "/ui/graph/path": ("/ui/graph/path", "/ui/graph/path?from={subject}&to={subject}"),
    "/ui/sessions": ("/ui/sessions", "/ui/sessions?q={word}"),
    _SESSION: (_SESSION, f"{_SESSION}?q={{word}}", f"{_SESSION}?turn=0#turn-0"),
    f"{_SESSION}/note": (f"{_SESSION}/note?turn=0",),
    "/ui/briefing": ("/ui/briefing", "/ui/briefing?project={id}", "/ui/briefing?project={id}&prompt={word}"),
    "/ui/briefing/projects": ("/ui/briefing/projects",),
    "/ui/review": ("/ui/review",),
    "/ui/review/{kind}/{id}/{key}/compare": (f"{_REVIEWED}/compare",),
    "/ui/review/{kind}/{id}/{key}/edit": (f"{_REVIEWED}/edit",),
    "/ui/trash": ("/ui/trash",),
    "/ui/trash/empty": ("/ui/trash/empty",),
    "/ui/archive": ("/ui/archive",),
    "/ui/receipts": ("/ui/receipts",),
    "/ui/receipts/{id}": ("/ui/receipts/{receipt}",),
    "/ui/settings": ("/ui/settings",),
    "/ui/agents": ("/ui/agents",),
    "/ui/agents/new": ("/ui/agents/new",),
    "/ui/agents/{name}/revoke": ("/ui/agents/{agent}/revoke",),
    "/ui/roles": ("/ui/roles",),
    "/ui/audit": ("/ui/audit",),
    "/ui/traffic": ("/ui/traffic",),
}  # fmt: skip


def list_addresses(**values):
    """Return the addresses of every page that is opened with GET, with these values in place of its parameters."""
    known = {name: quote(value, safe="") for name, value in values.items()}
    pages = [page.path for page in PAGES if page.method == "GET" and not page.is_public]
    return [address.format_map(known) for path in pages for address in _ADDRESSES[path]]


def fill_pages(gateway, project):
    """Store what the pages about one thing need: an agent, a note that waits for review, the receipt of a purge and a session.

    Return their names as values for `list_addresses`; the notes are in the project."""
    gateway.agent("visitor")
    ask = gateway.operator
    ask("PUT", "/v1/notes/project/waiting", {"text": "The limit is 500.", "origin": "web", "project": project})
    ask("PUT", "/v1/notes/project/gone", {"text": "A text that is purged.", "project": project})
    receipt = ask("POST", "/v1/notes/project/gone/purge", {"project": project}).json["id"]
    turns = [{"role": "user", "text": "When do we deploy?"}, {"role": "assistant", "text": "On Tuesdays."}]
    kept = {"turns": turns, "session": "kept", "client": "codex", "scope": "project", "project": project}
    assert ask("POST", "/v1/history", kept).status == 200
    about = {"kind": "project", "id": project, "agent": "visitor", "waiting": "waiting", "receipt": receipt}
    return {**about, "client": "codex", "file": "kept"}
