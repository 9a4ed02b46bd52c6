"""Static files of the console: a stylesheet, scripts and an icon. The digest in their address lets browsers keep them."""

from __future__ import annotations

import functools
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from holdfast.server.problem import Problem
from holdfast.server.web.page import Page

_FOLDER = Path(__file__).parent / "static"
_FILES = {  # by name: no other file is served
    "agents.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "graph.js": "text/javascript; charset=utf-8",
    "review.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "vendor/cytoscape.min.js": "text/javascript; charset=utf-8",
    "traffic.js": "text/javascript; charset=utf-8",
    "vendor/htmx.min.js": "text/javascript; charset=utf-8",
    "vendor/uPlot.iife.min.js": "text/javascript; charset=utf-8",
    "vendor/uPlot.min.css": "text/css; charset=utf-8",
}
_YEAR = 365 * 86400


class StaticFile(NamedTuple):
    """A file and the digest of its bytes."""

    data: bytes
    media_type: str
    digest: str


@functools.cache
def load(name: str) -> StaticFile:
    """Return a file by its name."""
    data = (_FOLDER / name).read_bytes()
    return StaticFile(data, _FILES[name], sha256(data).hexdigest()[:16])


def address(name: str) -> str:
    """Return the address of a file, which changes with its content."""
    return f"/ui/static/{load(name).digest}/{name}"


async def get_static(request: Request) -> Response:
    name, digest = request.path_params["name"], request.path_params["digest"]
    if name not in _FILES or load(name).digest != digest:
        raise Problem("no_route", "there is no such file", "Load the page again")
    file = load(name)
    headers = {
        "content-type": file.media_type, "cache-control": f"public, max-age={_YEAR}, immutable", "etag": f'"{digest}"',
        "x-content-type-options": "nosniff",
    }  # fmt: skip
    if f'"{digest}"' in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.data, headers=headers)


PAGES = (Page("GET", "/ui/static/{digest}/{name:path}", get_static, is_public=True),)
