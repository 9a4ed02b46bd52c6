"""The done ledger (A6): what an agent has done and need not do again."""

from __future__ import annotations

from typing import Any

from holdfast.base import dates
from holdfast.base.dates import timestamp
from holdfast.errors import UsageError
from holdfast.ledger.done import REVIEW, DoneItem
from holdfast.safety import validate
from holdfast.server.idempotency import ALL
from holdfast.server.route import NOWHERE, PAGE, Asked, Reply, Route
from holdfast.server.schema import answer, fields, page_of, text

KIND = text("What sort of work.", pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
SUBJECT = text("What it was done to.", minLength=1, maxLength=500)
BY_NUMBER = {**PAGE, "cursor": text("Where the page before ended.", pattern="^[0-9]{1,18}$")}
_PAGED = {**PAGE, "cursor": text("Where the page before ended.", pattern="^[0-9]{1,18}-[01]-[0-9]{1,18}$")}
_NAME = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$"
_AGENT = text("Only of this agent; another than the caller's takes `agents.manage`.", pattern=_NAME)
_KIND = {**KIND, "description": f"What sort of work. Reviews of pull requests are `{REVIEW}`, with the subject `owner/repo#7`."}
_DEED = answer(agent={"type": "string"}, kind={"type": "string"}, subject={"type": "string"}, time={"type": "string"})


def list_(asked: Asked) -> dict[str, Any]:
    limit, after = asked.page
    wanted = asked.only("kind", "subject")
    found, following = asked.ledger.done.page(_agent(asked), **wanted, limit=limit, cursor=after or None)
    return {"done": [_told(deed) for deed in found], "next": following}


def exists(asked: Asked) -> dict[str, Any]:
    return {"exists": asked.ledger.done.exists(_agent(asked), asked["kind"], _subject(asked))}


def _agent(asked: Asked) -> str | None:
    """Whose work is meant: the caller's own; None, for every agent's, where the operator names none."""
    named: str | None = asked.given.get("agent")
    if named is not None and named != asked.caller.agent:
        asked.gate.allow(asked.caller, "agents.manage", route=asked.route.name, request=asked.id)
        return named
    return None if named is None and asked.caller.is_person else asked.caller.agent


def record(asked: Asked) -> Reply:
    agent, kind, subject, ledger = asked.caller.agent, asked["kind"], _subject(asked), asked.ledger
    for said in (kind, subject):  # they are kept as they are, so the gate stands before them as before a note
        validate.reject_secrets(said, "what was done", fix="Name it without the secret")
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


def _told(deed: DoneItem) -> dict[str, str]:
    return {"agent": deed.agent, "kind": deed.kind, "subject": deed.subject, "time": timestamp(deed.time)}


ROUTES = (
    Route(
        "GET", "/done", "done.read", list_,
        "what was done, newest first: by the caller's agent; the operator sees every agent's", NOWHERE,
        {"kind": _KIND, "subject": SUBJECT, "agent": _AGENT, **_PAGED}, answers=page_of(_DEED, "done"),
    ),
    Route(
        "GET", "/done/exists", "done.read", exists,
        "whether it was done: by the caller's agent; for the operator by any agent", NOWHERE,
        {"kind": _KIND, "subject": SUBJECT, "agent": _AGENT}, ("kind", "subject"), answers=answer(exists={"type": "boolean"}),
        shows={"exists": True},
    ),
    Route(
        "POST", "/done", "done.write", record, "record that it is done; one of many who do so at once is told that it is new",
        NOWHERE, takes=fields({"kind": KIND, "subject": SUBJECT}, "kind", "subject"),
        answers=answer(recorded={"type": "boolean"}), status=201, example={"kind": "triage", "subject": "acme/shop#7"},
        shows={"recorded": True}, again=ALL,
    ),
)  # fmt: skip
