"""Notes: list, keep, read, change, forget, restore."""

from __future__ import annotations

from typing import Any

from holdfast.api import pagination
from holdfast.api.memory import context_of
from holdfast.errors import Conflict, NotFound
from holdfast.mcp.handlers import ORIGINS
from holdfast.models import SCOPES, TYPES, Forgotten, Note, Stored, TrashedNote, Version
from holdfast.server.idempotency import ALL, NOTE, Replay, as_it_stands, ids, noted
from holdfast.server.problem import Problem
from holdfast.server.route import EVERYWHERE, PAGE, READ, SCOPE, SCOPED, WRITE, Asked, Reply, Route
from holdfast.server.schema import answer, fields, flag, page_of, ref, rows, text

KEY = text("The note's name: a-z, 0-9 and '-', up to 60.", pattern="^[a-z0-9][a-z0-9-]{0,59}$")
TAGS = rows({"type": "string"}, "A few words to find it by.", maxItems=100)
_DAY = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
AS_OF = text("What was true on this day (YYYY-MM-DD, or a moment).", pattern=_DAY)
KNOWN_AT = text("What was recorded by this day.", pattern=_DAY)
MADE_FROM = rows(
    {"type": "string", "minLength": 1, "maxLength": 2000},
    "What it came from: addresses, paths, note:KEY, turn:CITATION. It is trusted no more than that.", maxItems=64,
)  # fmt: skip
EXPECTED = text("The `version` you read; if the note has changed since, nothing is written.")
REDACT = flag("Keep the names of rules in place of secrets, instead of refusing them.")
CONTENT = {
    "text": text("What to remember. At most 64 KiB, unless set otherwise.", minLength=1),
    "type": text("What it is; otherwise about the project.", *TYPES),
    "tags": TAGS,
    "valid_from": text("True from this day on, if not from now.", pattern=_DAY),
    "valid_to": text("True until this day; afterwards kept, but no longer recalled.", pattern=_DAY),
    "pinned": flag("Brief it first and never archive it."),
    "origin": text("Where the agent has it from, if not from its own work.", *ORIGINS),
    "made_from": MADE_FROM,
}
_INSISTING = {
    "redact": REDACT,
    "again": flag("Keep it although it was purged; a person's to say."),
    "allow_secret": text("Why a secret in it is to be kept; a person's to say.", maxLength=500),
}
IN = {"scope": text("Where it belongs.", *SCOPES), "key": KEY}
_NAMES = (*[name for name in CONTENT if name != "text"], *_INSISTING)
_NOTE: dict[str, Any] = {
    "scope": {"kind": "agent", "id": "reviewer"}, "key": "testing", "id": "01KPAXEB201VA8X6", "text": "Use pytest.",
    "type": "feedback", "tags": ["ci-cd"], "created": "2026-05-02T09:00:00Z", "updated": "2026-05-02T09:00:00Z",
    "source": {
        "origin": "agent", "agent": "reviewer", "client": "http", "session": None, "made_from": [], "trust": None,
    },
    "valid_from": "2026-05-02T09:00:00Z", "valid_to": None, "pinned": False, "path": "agents/reviewer/notes/testing.md",
    "lines": [8, 8], "version": "5f1d7a84db22e8d6b2d5b1b6ad2b3c5a", "versions": 1,
    "quarantined": False, "archived": False, "hidden": [],
}  # fmt: skip
_STORED = {"action": "created", "note": _NOTE, "redacted": []}


def list_(asked: Asked) -> dict[str, Any]:
    notes, following = pagination.page(asked.memory, *asked.page, **asked.only("scope", "type", "tags", "source", "archived"))
    return {"notes": [note.as_dict() for note in notes], "next": following}


def store(asked: Asked) -> Reply:
    stored = asked.memory.store(asked["text"], **asked.only("key", "scope", "expected", *_NAMES))
    return told(stored)


def get(asked: Asked) -> Reply:
    note = asked.memory.get(asked["key"], scope=asked["scope"], **asked.only("as_of", "known_at"))
    tag = f'"{note.version}"'
    if tag in asked.header("if-none-match").replace("W/", "").split(", "):
        return Reply(None, 304, {"etag": tag})
    return noted(note)


def put(asked: Asked) -> Reply:
    expected = _expected(asked)
    try:
        stored = asked.memory.store(
            asked["text"], key=asked["key"], scope=asked["scope"], expected=expected, **asked.only(*_NAMES)
        )
    except Conflict as error:
        raise _not_as_seen(error) from None
    return told(stored)


def forget(asked: Asked) -> dict[str, Any]:
    expected = _expected(asked)
    if asked.header("if-none-match") == "*":
        raise Problem("precondition", "only what is there can be forgotten", "Leave If-None-Match out")
    try:
        return asked.memory.forget(asked["key"], scope=asked["scope"], expected=expected).as_dict()
    except Conflict as error:
        raise _not_as_seen(error) from None


def history(asked: Asked) -> dict[str, Any]:
    found, following = pagination.versions(asked.memory, asked["key"], *asked.page, scope=asked["scope"])
    return {"versions": [one.as_dict() for one in found], "next": following}


def restore(asked: Asked) -> Reply:
    return noted(asked.memory.restore(asked["key"], scope=asked["scope"], **asked.only("under")))


def clear(asked: Asked) -> dict[str, Any]:
    cleared = asked.memory.clear(asked["scope"])
    return {"cleared": int(cleared), "beyond_reach": list(cleared.beyond_reach)}


def trash(asked: Asked) -> dict[str, Any]:
    found, following = pagination.binned(asked.memory, *asked.page, **asked.only("scope"))
    return {"trash": [one.as_dict() for one in found], "next": following}


def told(stored: Stored) -> Reply:
    """201 for a new note."""
    return Reply(stored.as_dict(), 201 if stored.action == "created" else 200, {"etag": f'"{stored.note.version}"'})


def _kept(body: dict[str, Any]) -> dict[str, Any]:
    return {"action": body["action"], "redacted": body["redacted"], **ids(body["note"])}


def _stored_before(asked: Asked, kept: dict[str, Any]) -> Reply:
    """The same answer as the first time, with the note as it stands now."""
    return told(Stored(kept["action"], as_it_stands(asked, kept), tuple(kept["redacted"])))


_STORED_AGAIN = Replay(_kept, _stored_before)


def _expected(asked: Asked) -> str | None:
    """The version that the request saw: If-Match names it, and If-None-Match: * says that there was none."""
    if asked.header("if-none-match") == "*":
        return ""
    named = asked.header("if-match")
    if not named:
        return None
    tags, there = [tag.strip().removeprefix("W/").strip('"') for tag in named.split(",")], _version(asked)
    if named == "*" and there is None:
        raise Problem("precondition", "there is no such note", "Leave If-Match out to make one")
    if named != "*" and (there is None or there not in tags):
        raise Problem("precondition", "it is another version by now, or gone", "Read it again")
    return None if named == "*" else there


def _version(asked: Asked) -> str | None:
    try:
        return context_of(asked.memory).find_note(asked["key"], asked["scope"])[1].digest  # to compare it is no use of the note
    except NotFound:
        return None


def _not_as_seen(error: Conflict) -> Problem:
    return Problem("precondition", error.text, error.hint)


ROUTES = (
    Route(
        "GET", "/v1/notes", READ, list_, "the notes you may see, newest first, pinned ones before", EVERYWHERE,
        {
            "scope": SCOPED, "type": text("Only of this type.", *TYPES), "tags": TAGS,
            "source": text("Only what came from it, be it by way of other notes.", minLength=1),
            "archived": flag("The archived notes instead."), **PAGE,
        },
        answers=page_of(ref(Note), "notes"), shows={"notes": [_NOTE], "next": None}, does=("list",),
    ),
    Route(
        "POST", "/v1/notes", WRITE, store, "keep a text; on a key that exists it becomes the current version", "project",
        takes=fields({**CONTENT, **_INSISTING, "key": KEY, "scope": SCOPE, "expected": EXPECTED}, "text"),
        answers=ref(Stored), status=201, example={"text": "Use pytest.", "key": "testing", "scope": "agent"}, shows=_STORED,
        again=_STORED_AGAIN, does=("store",),
    ),
    Route(
        "GET", "/v1/notes/{scope}/{key}", READ, get, "one note, as it is or as it was", "project",
        {**IN, "as_of": AS_OF, "known_at": KNOWN_AT}, answers=ref(Note), shows=_NOTE, tagged=True, does=("get",),
    ),
    Route(
        "PUT", "/v1/notes/{scope}/{key}", WRITE, put, "write one note; with If-Match only over the version you saw", "project",
        IN, takes=fields({**CONTENT, **_INSISTING}, "text"), answers=ref(Stored), example={"text": "Use pytest."},
        shows=_STORED, tagged=True, again=_STORED_AGAIN,
    ),
    Route(
        "DELETE", "/v1/notes/{scope}/{key}", WRITE, forget, "put a note in the trash; it can be restored for 30 days",
        "project", IN, answers=ref(Forgotten), tagged=True, again=ALL, does=("forget",),
        shows={
            "deleted": True, "key": "testing", "scope": {"kind": "agent", "id": "reviewer"},
            "restorable_until": "2026-06-01T09:00:00Z", "beyond_reach": [],
        },
    ),
    Route(
        "GET", "/v1/notes/{scope}/{key}/history", READ, history, "every version of a note, newest first", "project",
        {**IN, **PAGE}, answers=page_of(ref(Version), "versions"), does=("history",),
    ),
    Route(
        "POST", "/v1/notes/{scope}/{key}/restore", WRITE, restore, "bring back what was forgotten or archived", "project", IN,
        takes=fields({"under": KEY}), answers=ref(Note), example={}, again=NOTE, does=("restore",),
    ),
    Route(
        "POST", "/v1/clear", WRITE, clear, "put every note of a scope in the trash, from where each can be restored", "project",
        takes=fields({"scope": text("Whose notes.", *SCOPES)}, "scope"), example={"scope": "session"}, again=ALL,
        answers=answer(cleared={"type": "integer"}, beyond_reach=rows({"type": "string"})), does=("clear",),
        shows={"cleared": 3, "beyond_reach": []},
    ),
    Route(
        "GET", "/v1/trash", READ, trash, "what was forgotten or archived and can be restored", EVERYWHERE,
        {"scope": SCOPED, **PAGE}, answers=page_of(ref(TrashedNote), "trash"), does=("trash",),
    ),
)  # fmt: skip
