"""The web console: pages that the server renders. They reach memory through the routes of the API only."""

from __future__ import annotations

from holdfast.server.web import (
    agents,
    audit,
    briefing,
    facts,
    file,
    graph,
    note,
    overview,
    receipts,
    relations,
    review,
    search,
    sessions,
    settings,
    sign_in,
    static,
    traffic,
    trash,
)
from holdfast.server.web.page import Page

_MODULES = (
    sign_in,
    overview,
    search,
    note,
    relations,
    file,
    facts,
    graph,
    sessions,
    briefing,
    review,
    trash,
    receipts,
    settings,
    agents,
    audit,
    traffic,
    static,
)

PAGES: tuple[Page, ...] = tuple([page for module in _MODULES for page in module.PAGES])
