"""The done ledger (A6): what an agent has done and need not do again."""

from __future__ import annotations

from typing import Any

from holdfast import dates, guard
from holdfast.doors.http.once import ALL
from holdfast.doors.http.route import NOWHERE, PAGE, Asked, Reply, Route
from holdfast.doors.http.schema import answer, fields, page_of, text
from holdfast.errors import UsageError
from holdfast.ledger.done import Deed
from holdfast.note import stamp

KIND = text("What sort of work.", pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
SUBJECT = text("What it was done to.", minLength=1, maxLength=500)
BY_NUMBER = {**PAGE, "cursor": text("Where the page before ended.", pattern="^[0-9]{1,18}$")}
_DEED = answer(kind={"type": "string"}, subject={"type": "string"}, time={"type": "string"})


def list_(asked: Asked) -> dict[str, Any]:
    found, following = asked.ledger.done.list(asked.caller.agent, asked.given.get("kind"), **page_asked(asked))
    return {"done": [_told(deed) for deed in found], "next": cursor(following)}


def exists(asked: Asked) -> dict[str, Any]:
    return {"exists": asked.ledger.done.exists(asked.caller.agent, asked["kind"], _subject(asked))}


def record(asked: Asked) -> Reply:
    agent, kind, subject, ledger = asked.caller.agent, asked["kind"], _subject(asked), asked.ledger
    for said in (kind, subject):  # they are kept as they are, so the gate stands before them as before a note
        guard.no_secret(said, "what was done", fix="Name it without the secret")
    if ledger.purges.any() and not ledger.done.exists(agent, kind, subject):
        ledger.purges.refuse([("", kind), ("", subject)])
    new = ledger.done.record(agent, kind, subject, int(dates.clock()))
    return Reply({"recorded": new}, 201 if new else 200)


def page_asked(asked: Asked) -> dict[str, Any]:
    """The page that is asked for, as the ledger's lists take it."""
    limit, cursor = asked.page
    return {"limit": limit, "before": int(cursor) if cursor else None}


def cursor(following: int | None) -> str | None:
    return None if following is None else str(following)


def _subject(asked: Asked) -> str:
    subject: str = asked["subject"]
    if not subject.isprintable():
        raise UsageError("a subject is one line of plain text", "Leave line breaks and hidden characters out")
    return subject


def _told(deed: Deed) -> dict[str, str]:
    return {"kind": deed.kind, "subject": deed.subject, "time": stamp(deed.time)}


ROUTES = (
    Route(
        "GET", "/done", "done.read", list_, "what the caller's agent has done, newest first", NOWHERE,
        {"kind": KIND, **BY_NUMBER}, answers=page_of(_DEED, "done"),
    ),
    Route(
        "GET", "/done/exists", "done.read", exists, "whether the caller's agent has done it", NOWHERE,
        {"kind": KIND, "subject": SUBJECT}, ("kind", "subject"), answers=answer(exists={"type": "boolean"}),
        shows={"exists": True},
    ),
    Route(
        "POST", "/done", "done.write", record, "record that it is done; one of many who do so at once is told that it is new",
        NOWHERE, takes=fields({"kind": KIND, "subject": SUBJECT}, "kind", "subject"),
        answers=answer(recorded={"type": "boolean"}), status=201, example={"kind": "triage", "subject": "acme/shop#7"},
        shows={"recorded": True}, again=ALL,
    ),
)  # fmt: skip
