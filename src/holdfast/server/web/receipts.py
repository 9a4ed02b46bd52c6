"""Receipts of purges: what was removed, and how that was verified."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.server.web.page import Page, Visit

_LIMIT = 50


async def get_receipts(visit: Visit) -> Response:
    page = await visit.call("GET /v1/receipts", visit.paging(_LIMIT))
    is_first_page = not visit.query.get("cursor")
    return await visit.render("receipts.html", receipts=page["receipts"], next=page["next"], is_first_page=is_first_page)


async def get_receipt(visit: Visit) -> Response:
    receipt = await visit.call("GET /v1/receipts/{id}", {"id": visit.request.path_params["id"]})
    return await visit.render("receipts-one.html", receipt=receipt)


PAGES = (Page("GET", "/ui/receipts", get_receipts), Page("GET", "/ui/receipts/{id}", get_receipt))
