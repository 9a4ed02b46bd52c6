"""Notes: list, store, read, change, forget, restore."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.api import pagination
from holdfast.api.memory import begin_store, context_of
from holdfast.errors import Conflict, NotFound
from holdfast.models import SCOPES, TYPES, Forgotten, Note, Scope, Stored, TrashedNote, Version
from holdfast.server.idempotency import REPLAY_NOTE, REPLAY_WHOLE, Replay, current_note, note_ids, note_reply
from holdfast.server.models import (
    LINE_PATTERN,
    PAGE_LIMIT,
    PRINTABLE_PATTERN,
    TEXT_PATTERN,
    AgentOrigin,
    AsOf,
    Everywhere,
    Expected,
    FilterType,
    Key,
    KnownAt,
    MadeFrom,
    NextCursor,
    NoteScope,
    OtherAgent,
    OtherAgentRequest,
    PageCursor,
    PageLimit,
    ReadScope,
    Redact,
    ResponseModel,
    ScopedRequest,
    ScopeName,
    Tags,
    TypeName,
    WriteScope,
    choices,
    moment,
    or_none,
)
from holdfast.server.problem import Problem
from holdfast.server.route import (
    ALL_SCOPES,
    JSON,
    READ,
    WRITE,
    AuthorizedRequest,
    PendingReply,
    Reply,
    Route,
    check_everywhere,
    reply_when_stored,
)
from holdfast.verbs import retention
from holdfast.verbs.read import find_note
from holdfast.verbs.retention import Emptied
from holdfast.verbs.review import all_folders

_PARTS = ("trash", "archive")

NoteText = Annotated[
    str,
    Meta(
        description="The text. At most 64 KiB, unless `notes.max_bytes` says otherwise.", min_length=1,
        extra_json_schema={"pattern": TEXT_PATTERN},
    ),
]  # fmt: skip
NoteType = Annotated[TypeName, choices("The type of the note. Default: `project`.", TYPES)]
ValidFrom = Annotated[str, moment("The time from which it is true. Default: now.")]
ValidTo = Annotated[str, moment("The time until which it is true. Afterwards it is kept but not recalled.")]
Pinned = Annotated[bool, Meta(description="Show it first in briefings and never archive it.")]


class NotePath(OtherAgentRequest, kw_only=True):
    """A request about one note."""

    scope: NoteScope
    key: Key


class _Content(ScopedRequest, kw_only=True):
    text: NoteText
    type: NoteType | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    valid_from: ValidFrom | UnsetType = UNSET
    valid_to: ValidTo | UnsetType = UNSET
    pinned: Pinned | UnsetType = UNSET
    origin: AgentOrigin | UnsetType = UNSET
    made_from: MadeFrom | UnsetType = UNSET
    redact: Redact | UnsetType = UNSET
    again: Annotated[bool, Meta(description="Store it although the same text was purged. Operator only.")] | UnsetType = UNSET
    allow_secret: Annotated[
        str,
        Meta(
            description="The reason to store a text with a secret. Operator only.", max_length=500,
            extra_json_schema={"pattern": LINE_PATTERN},
        ),
    ] | UnsetType = UNSET  # fmt: skip

    def options(self) -> dict[str, Any]:
        """Return everything but the text, as keyword arguments of `Memory.store`."""
        return self.given(
            "type", "tags", "valid_from", "valid_to", "pinned", "origin", "made_from", "redact", "again", "allow_secret"
        )


class StoreNote(_Content, kw_only=True):
    key: Key | UnsetType = UNSET
    scope: WriteScope | UnsetType = UNSET
    expected: Expected | UnsetType = UNSET


class PutNote(_Content, kw_only=True):
    scope: NoteScope
    key: Key
    agent: OtherAgent | UnsetType = UNSET


class GetNote(NotePath, kw_only=True):
    as_of: AsOf | UnsetType = UNSET
    known_at: KnownAt | UnsetType = UNSET


class ListNotes(OtherAgentRequest, kw_only=True):
    scope: ReadScope | UnsetType = UNSET
    type: FilterType | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    source: Annotated[
        str,
        Meta(
            description="Only notes from this source, including notes derived from them.", min_length=1,
            extra_json_schema={"pattern": PRINTABLE_PATTERN},
        ),
    ] | UnsetType = UNSET  # fmt: skip
    archived: Annotated[bool, Meta(description="List archived notes instead of current notes.")] | UnsetType = UNSET
    everywhere: Everywhere | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class ListVersions(NotePath, kw_only=True):
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class ListTrash(OtherAgentRequest, kw_only=True):
    scope: ReadScope | UnsetType = UNSET
    part: (
        Annotated[Literal["trash", "archive"], choices("Only forgotten (`trash`) or only archived (`archive`) notes.", _PARTS)]
        | UnsetType
    ) = UNSET
    everywhere: Everywhere | UnsetType = UNSET
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class EmptyTrash(OtherAgentRequest, kw_only=True):
    scope: ReadScope | UnsetType = UNSET
    older_than_days: Annotated[
        int, Meta(description="Only notes that are in the trash for at least this many days. 0: all.", ge=0, le=36_500)
    ] = 0  # fmt: skip
    everywhere: Everywhere | UnsetType = UNSET


class RestoreNote(NotePath, kw_only=True):
    under: Key | UnsetType = UNSET


class ClearScope(ScopedRequest, kw_only=True):
    scope: Annotated[ScopeName, choices("The scope to clear.", SCOPES)]


class NotePage(ResponseModel, kw_only=True):
    notes: list[Note]
    next: NextCursor


class VersionPage(ResponseModel, kw_only=True):
    versions: list[Version]
    next: NextCursor


class TrashPage(ResponseModel, kw_only=True):
    trash: list[TrashedNote]
    next: NextCursor


class Cleared(ResponseModel, kw_only=True):
    cleared: int
    beyond_reach: list[str]


def list_notes(request: AuthorizedRequest, params: ListNotes) -> NotePage:
    check_everywhere(request, params.everywhere is True)
    filters = params.given("scope", "type", "tags", "source", "archived", "everywhere")
    notes, following = pagination.list_page(request.memory, params.limit, params.cursor, **filters)
    return NotePage(notes=notes, next=following)


def store_note(request: AuthorizedRequest, params: StoreNote) -> PendingReply:
    stored = begin_store(request.memory, params.text, **params.given("key", "scope", "expected"), **params.options())
    return reply_when_stored(stored, _stored_reply)


def get_note(request: AuthorizedRequest, params: GetNote) -> Reply:
    note = request.memory.get(params.key, scope=params.scope, **params.given("as_of", "known_at"))
    etag = f'"{note.version}"'
    if etag in request.header("if-none-match").replace("W/", "").split(", "):
        return Reply(status=304, headers={"etag": etag})
    return note_reply(note)


def put_note(request: AuthorizedRequest, params: PutNote) -> PendingReply:
    expected = _expected_version(request, params)
    with _as_precondition():
        stored = begin_store(
            request.memory, params.text, key=params.key, scope=params.scope, expected=expected, **params.options()
        )
        return reply_when_stored(stored, _stored_reply, _as_precondition)


@contextmanager
def _as_precondition() -> Iterator[None]:
    """Answer a conflict as a condition in the request's headers that does not hold."""
    try:
        yield
    except Conflict as error:
        raise Problem("precondition", error.text, error.hint) from None


def forget_note(request: AuthorizedRequest, params: NotePath) -> Forgotten:
    expected = _expected_version(request, params)
    if request.header("if-none-match") == "*":
        raise Problem("precondition", "`If-None-Match: *` cannot be used to forget a note", "Remove If-None-Match")
    with _as_precondition():
        return request.memory.forget(params.key, scope=params.scope, expected=expected)


def list_versions(request: AuthorizedRequest, params: ListVersions) -> VersionPage:
    found, following = pagination.history_page(request.memory, params.key, params.limit, params.cursor, scope=params.scope)
    return VersionPage(versions=found, next=following)


def restore_note(request: AuthorizedRequest, params: RestoreNote) -> Reply:
    return note_reply(request.memory.restore(params.key, scope=params.scope, **params.given("under")))


def clear_scope(request: AuthorizedRequest, params: ClearScope) -> Cleared:
    cleared = request.memory.clear(params.scope)
    return Cleared(cleared=int(cleared), beyond_reach=list(cleared.beyond_reach))


def list_trash(request: AuthorizedRequest, params: ListTrash) -> TrashPage:
    check_everywhere(request, params.everywhere is True)
    filters = params.given("scope", "part", "everywhere")
    found, following = pagination.trash_page(request.memory, params.limit, params.cursor, **filters)
    return TrashPage(trash=found, next=following)


def empty_trash(request: AuthorizedRequest, params: EmptyTrash) -> Emptied:
    check_everywhere(request, params.everywhere is True)
    scope = or_none(params.scope)
    context = context_of(request.memory)
    if params.everywhere is True:
        scopes = [Scope.of_folder(folder) for folder in all_folders(context, scope)]
    else:
        scopes = context.visible_scopes(scope)
    return retention.empty_trash(context, scopes, params.older_than_days)


def _stored_reply(stored: Stored) -> Reply:
    """Return what was stored, with status 201 for a new note."""
    status = 201 if stored.action == "created" else 200
    return Reply(body=stored, status=status, headers={"etag": f'"{stored.note.version}"'})


def _keep_stored(body: dict[str, Any]) -> dict[str, Any]:
    return {"action": body["action"], "redacted": body["redacted"], **note_ids(body["note"])}


def _rebuild_stored(request: AuthorizedRequest, params: StoreNote | PutNote, kept: dict[str, Any]) -> Reply:
    """Return the same answer as the first time, with the current note."""
    return _stored_reply(Stored(kept["action"], current_note(request, kept), tuple(kept["redacted"])))


_REPLAY_STORED = Replay(_keep_stored, _rebuild_stored)


def _expected_version(request: AuthorizedRequest, params: NotePath | PutNote) -> str | None:
    """Return the version that the request saw: If-Match names it, "" (none) for `If-None-Match: *`, None for any."""
    if request.header("if-none-match") == "*":
        return ""
    named = request.header("if-match")
    if not named:
        return None
    etags = [etag.strip().removeprefix("W/").strip('"') for etag in named.split(",")]
    current = _current_version(request, params)
    if named == "*" and current is None:
        raise Problem("precondition", "there is no such note", "Remove If-Match to create it")
    if named != "*" and (current is None or current not in etags):
        raise Problem(
            "precondition", "the note was changed or deleted since you read it", "Read it again and send its new ETag"
        )
    return None if named == "*" else current


def _current_version(request: AuthorizedRequest, params: NotePath | PutNote) -> str | None:
    """Return a note's version without counting this as a use of the note, as `Memory.get` would."""
    try:
        return find_note(context_of(request.memory), params.key, params.scope).parsed.digest
    except NotFound:
        return None


_NOTE_EXAMPLE: dict[str, Any] = {
    "scope": {"kind": "agent", "id": "reviewer"}, "key": "testing", "id": "01KPAXEB201VA8X6", "text": "Use pytest.",
    "type": "feedback", "tags": ["ci-cd"], "created": "2026-05-02T09:00:00Z", "updated": "2026-05-02T09:00:00Z",
    "source": {
        "origin": "agent", "agent": "reviewer", "client": "http", "session": None, "made_from": [], "trust": None,
    },
    "valid_from": "2026-05-02T09:00:00Z", "valid_to": None, "pinned": False, "path": "agents/reviewer/notes/testing.md",
    "lines": [8, 8], "version": "5f1d7a84db22e8d6b2d5b1b6ad2b3c5a", "versions": 1,
    "quarantined": False, "archived": False, "name": None, "hidden": [],
}  # fmt: skip
_STORED_EXAMPLE = {"action": "created", "note": _NOTE_EXAMPLE, "redacted": []}

ROUTES = (
    Route(
        "GET", "/v1/notes", list_notes,
        action=READ, scope=ALL_SCOPES, summary="list notes you may read: pinned notes first, then newest first",
        params=ListNotes, answers=NotePage, answer_example={"notes": [_NOTE_EXAMPLE], "next": None}, may_name_agent=True,
        verbs=("list",),
    ),
    Route(
        "POST", "/v1/notes", store_note,
        action=WRITE, scope="project", summary="store a note; if the key exists, the text becomes its current version",
        params=StoreNote, reads=JSON, example={"text": "Use pytest.", "key": "testing", "scope": "agent"},
        answers=Stored, status=201, other_status=200, answer_example=_STORED_EXAMPLE, replay=_REPLAY_STORED, verbs=("store",),
    ),
    Route(
        "GET", "/v1/notes/{scope}/{key}", get_note,
        action=READ, scope="project", summary="return a note, current or as it was at a given time",
        params=GetNote, answers=Note, answer_example=_NOTE_EXAMPLE, has_etag=True, problems=("not_found",),
        may_name_agent=True, verbs=("get",),
    ),
    Route(
        "PUT", "/v1/notes/{scope}/{key}", put_note,
        action=WRITE, scope="project", summary="create or replace a note; with If-Match, only if it still is that version",
        params=PutNote, reads=JSON, example={"text": "Use pytest."},
        answers=Stored, other_status=201, answer_example=_STORED_EXAMPLE, has_etag=True, replay=_REPLAY_STORED,
        may_name_agent=True,
    ),
    Route(
        "DELETE", "/v1/notes/{scope}/{key}", forget_note,
        action=WRITE, scope="project", summary="move a note to the trash; it can be restored for 30 days",
        params=NotePath, answers=Forgotten, has_etag=True, replay=REPLAY_WHOLE, may_name_agent=True, verbs=("forget",),
        answer_example={
            "deleted": True, "key": "testing", "scope": {"kind": "agent", "id": "reviewer"},
            "restorable_until": "2026-06-01T09:00:00Z", "beyond_reach": [],
        },
    ),
    Route(
        "GET", "/v1/notes/{scope}/{key}/history", list_versions,
        action=READ, scope="project", summary="list the versions of a note, newest first",
        params=ListVersions, answers=VersionPage, problems=("not_found",), may_name_agent=True, verbs=("history",),
    ),
    Route(
        "POST", "/v1/notes/{scope}/{key}/restore", restore_note,
        action=WRITE, scope="project", summary="restore a forgotten or archived note",
        params=RestoreNote, reads=JSON, example={}, answers=Note, replay=REPLAY_NOTE, problems=("not_found",),
        may_name_agent=True, verbs=("restore",),
    ),
    Route(
        "POST", "/v1/clear", clear_scope,
        action=WRITE, scope="project", summary="move all notes of a scope to the trash; each can be restored for 30 days",
        params=ClearScope, reads=JSON, example={"scope": "session"},
        answers=Cleared, answer_example={"cleared": 3, "beyond_reach": []}, replay=REPLAY_WHOLE, verbs=("clear",),
    ),
    Route(
        "GET", "/v1/trash", list_trash,
        action=READ, scope=ALL_SCOPES, summary="list forgotten and archived notes that can be restored",
        params=ListTrash, answers=TrashPage, may_name_agent=True, verbs=("trash",),
    ),
    Route(
        "POST", "/v1/trash/empty", empty_trash,
        is_slow=True,
        action="memory.purge", scope=ALL_SCOPES,
        summary="permanently delete the contents of the trash; operator only",
        params=EmptyTrash, reads=JSON, example={"older_than_days": 7}, answers=Emptied,
        answer_example={"notes": 3, "sessions": 0}, may_name_agent=True, replay=REPLAY_WHOLE,
    ),
)  # fmt: skip
