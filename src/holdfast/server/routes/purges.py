"""Purging, and its receipts. Never without a row in the audit."""

from __future__ import annotations

from typing import Any

from holdfast.api import pagination
from holdfast.errors import NotFound, Refused
from holdfast.models import Receipt
from holdfast.server.idempotency import Replay
from holdfast.server.route import EVERYWHERE, PAGE, Asked, Route
from holdfast.server.routes.notes import IN
from holdfast.server.schema import fields, flag, page_of, ref, text

_PURGE = "memory.purge"
_SHOWN = {
    "key": "testing", "scope": {"kind": "agent", "id": "reviewer"}, "deleted": True,
    "removed": ["agents/reviewer/notes/testing.md"], "index_rows": 1, "usage_rows": 0, "checks": [], "beyond_reach": [],
    "time": "2026-05-02T09:00:00Z", "id": "01KPAXEB201VA8X6", "what": "the note testing in agent:reviewer", "state": "done",
    "pending": [], "turns": 0, "also_said_by": [], "told": [], "taken_back": "",
}  # fmt: skip


def note(asked: Asked) -> dict[str, Any]:
    return asked.memory.purge(asked["key"], scope=asked["scope"], **asked.only("transcripts")).as_dict()


def anything(asked: Asked) -> dict[str, Any]:
    if "text" in asked.given and not asked.caller.is_person:
        fix = "The operator does it; you may purge a note or a session of yours"
        raise Refused("only a person may purge a text wherever it stands, since that reaches every scope", fix)
    return asked.memory.purge(**asked.only("session", "client", "text", "files")).as_dict()


def list_(asked: Asked) -> dict[str, Any]:
    found, following = pagination.receipts(asked.memory, *asked.page)
    return {"receipts": [one.as_dict() for one in found], "next": following}


def get(asked: Asked) -> dict[str, Any]:
    found = asked.memory.receipts(asked["id"])
    if not found:  # memory is switched off
        raise NotFound("no such receipt", "GET /v1/receipts lists those you may see")
    return found[0].as_dict()


def _kept(body: dict[str, Any]) -> dict[str, Any]:
    """The receipt's id; where nothing was there to purge there is no receipt to look up, nor a word in the answer."""
    return {"id": body["id"]} if body["id"] else body


def _told_again(asked: Asked, kept: dict[str, Any]) -> dict[str, Any]:
    return kept if len(kept) > 1 else asked.memory.receipts(kept["id"])[0].as_dict()


_AGAIN = Replay(_kept, _told_again)


ROUTES = (
    Route(
        "POST", "/v1/notes/{scope}/{key}/purge", _PURGE, note, "remove a note for good, everywhere, with a receipt", "project",
        IN, takes=fields({"transcripts": flag("Also the turns of sessions that say it.")}), answers=ref(Receipt), example={},
        shows=_SHOWN, others=True, again=_AGAIN, does=("purge",),
    ),
    Route(
        "POST", "/v1/purge", _PURGE, anything, "remove a session's transcript for good, or a text wherever it stands",
        EVERYWHERE,
        takes=fields({
            "session": text("The session whose transcript is to go.", minLength=1, maxLength=500),
            "client": text("Only as kept from this program.", minLength=1, maxLength=100),
            "text": text("The text, 12 characters or more, in every scope; the operator's alone.", minLength=1),
            "files": flag("With a text: also in files of agents, where a mark takes its place."),
        }),
        answers=ref(Receipt), example={"text": "The harbour office moves in May.", "files": True}, shows=_SHOWN, others=True,
        again=_AGAIN, does=("purge",),
    ),
    Route(
        "GET", "/v1/receipts", _PURGE, list_, "what was purged, newest first, and not a word of it", EVERYWHERE, PAGE,
        answers=page_of(ref(Receipt), "receipts"), shows={"receipts": [_SHOWN], "next": None}, others=True, does=("receipts",),
    ),
    Route(
        "GET", "/v1/receipts/{id}", _PURGE, get, "one receipt", EVERYWHERE,
        {"id": text("Its id.", pattern="^[0-9A-Za-z]{1,40}$")}, answers=ref(Receipt), shows=_SHOWN, others=True,
        does=("receipts",),
    ),
)  # fmt: skip
