"""A stored file, read by the path that a search result cites."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.server.problem import Problem
from holdfast.server.web import address
from holdfast.server.web.page import Page, Visit, read_number

_LINES = 500  # on one page


async def get_file(visit: Visit) -> Response:
    """Show a part of a file; a path that no file has gives an empty text, which counts as missing."""
    path, first = visit.query.get("path", ""), max(1, read_number(visit.query.get("from"), 1))
    if not path:
        raise Problem("invalid_request", "no file is named", "Open a file from the search")
    scope = address.scope_of_folder("/".join(path.split("/")[: 1 if path.startswith("global/") else 2]))
    fields = {"path": path, "from": first, "lines": _LINES, **address.scope_fields(scope, visit.caller.agent)}
    fields.pop("agent", None)
    piece = await visit.call("GET /v1/read", fields)
    lines = piece["text"].split("\n")
    return await visit.render(
        "file.html", http_status=200 if piece["text"] or first > 1 else 404, path=path,
        text=piece["text"], first=first, scope=scope,
        earlier=max(1, first - _LINES) if first > 1 else None, later=first + _LINES if len(lines) >= _LINES else None,
    )  # fmt: skip


PAGES = (Page("GET", "/ui/file", get_file),)
