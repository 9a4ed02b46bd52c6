"""The web console: pages that the server renders. They reach memory through the routes of the API only."""

from __future__ import annotations

from holdfast.server.web import note, overview, search, sign_in, static
from holdfast.server.web.page import Page

PAGES: tuple[Page, ...] = (*sign_in.PAGES, *overview.PAGES, *search.PAGES, *note.PAGES, *static.PAGES)
