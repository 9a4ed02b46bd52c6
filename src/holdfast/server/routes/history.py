"""History: the transcripts of sessions, stored word for word and read around a hit."""

from __future__ import annotations

import os
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.api import pagination
from holdfast.api.memory import context_of
from holdfast.errors import from_os
from holdfast.formats.importers.detect import all_dialects
from holdfast.formats.transcript import ROLES
from holdfast.models import Forgotten, Logged, Turn
from holdfast.server.idempotency import REPLAY_WHOLE, Upload
from holdfast.server.models import (
    CLIENT_PATTERN,
    LINE_PATTERN,
    MOMENT,
    PAGE_LIMIT,
    NextCursor,
    OtherAgentRequest,
    PageCursor,
    PageLimit,
    Redact,
    RequestModel,
    ResponseModel,
    ScopedRequest,
    WriteScope,
    choices,
    or_none,
)
from holdfast.server.problem import REPLAYED_HEADER
from holdfast.server.route import ALL_SCOPES, JSON, NDJSON, READ, WRITE, AuthorizedRequest, Reply, Route
from holdfast.verbs.history import import_upload
from holdfast.verbs.sessions import SessionSummary

Client = Annotated[str, Meta(description="The client program of the session.", pattern=CLIENT_PATTERN)]

# One line, or the whole document: the program that wrote it decides what it says and how.
TranscriptBody = dict[str, Any] | Annotated[list[Any], Meta(extra_json_schema={"items": {}})]

if TYPE_CHECKING:
    TranscriptFormat = str
else:
    TranscriptFormat = Literal[tuple(all_dialects())]  # the formats that an importer reads


class NewTurn(RequestModel, kw_only=True):
    role: Annotated[Literal["user", "assistant", "system", "tool"], choices("The role of the speaker.", ROLES)] | UnsetType = (
        UNSET
    )
    text: Annotated[str, Meta(description="The text, word for word.", extra_json_schema={"pattern": r"^[^\u0000]*$"})]
    id: Annotated[str, Meta(description="The id of the turn.")] | UnsetType = UNSET
    speaker: Annotated[
        str, Meta(description="The name of the speaker.", max_length=200, extra_json_schema={"pattern": f"{LINE_PATTERN}|^$"})
    ] | UnsetType = UNSET  # fmt: skip
    time: Annotated[
        str, Meta(description="The time, or empty.", extra_json_schema={"anyOf": [*MOMENT, {"type": "string", "maxLength": 0}]})
    ] | UnsetType = UNSET  # fmt: skip


class LogTurns(ScopedRequest, kw_only=True):
    turns: Annotated[list[NewTurn], Meta(description="The turns, in order.", max_length=10_000)]
    client: Client | UnsetType = UNSET
    scope: WriteScope | UnsetType = UNSET
    redact: Redact | UnsetType = UNSET


class ExpandTurn(OtherAgentRequest, kw_only=True):
    of: Annotated[str, Meta(description="The citation of a hit, or the id of a turn.", min_length=1)]
    before: Annotated[int, Meta(description="Number of turns before it. Default: 3.", ge=0, le=1000)] | UnsetType = UNSET
    after: Annotated[int, Meta(description="Number of turns after it. Default: 3.", ge=0, le=1000)] | UnsetType = UNSET


class ImportTranscript(ScopedRequest, kw_only=True):
    client: Annotated[
        str, Meta(description="The program that wrote the transcript. Default: detected.", pattern=CLIENT_PATTERN)
    ] | UnsetType = UNSET  # fmt: skip
    written: Annotated[
        TranscriptFormat,
        choices("The format of the transcript. Default: that of `client`.", tuple(all_dialects())),
    ] | UnsetType = UNSET  # fmt: skip
    name: Annotated[
        str,
        Meta(
            description="The name of the file. It names the session if no line does.", pattern="^[^/\\x00-\\x1f]{1,200}$"
        ),
    ] | UnsetType = UNSET  # fmt: skip
    scope: WriteScope = "project"


class NameSession(OtherAgentRequest, kw_only=True):
    session: Annotated[str, Meta(description="The session's id.", min_length=1, max_length=500)]
    client: Client | UnsetType = UNSET


class ListSessions(ScopedRequest, kw_only=True):
    match: Annotated[
        str, Meta(description="Only sessions with this text in the name of their scope, client or session.", max_length=200)
    ] | UnsetType = UNSET  # fmt: skip
    everywhere: Annotated[
        bool, Meta(description="Include every agent, project and session. Operator only; also needs `agents.manage`.")
    ] | UnsetType = UNSET  # fmt: skip
    limit: PageLimit = PAGE_LIMIT
    cursor: PageCursor = ""


class SessionPage(ResponseModel, kw_only=True):
    sessions: list[SessionSummary]
    next: NextCursor


class Turns(ResponseModel, kw_only=True):
    turns: list[Turn]


class ImportedSessions(ResponseModel, kw_only=True):
    sessions: list[Logged]


def log_turns(request: AuthorizedRequest, params: LogTurns) -> Logged:
    return request.memory.log(msgspec.to_builtins(params.turns), **params.given("scope", "client", "redact"))


def expand_turn(request: AuthorizedRequest, params: ExpandTurn) -> Turns:
    return Turns(turns=request.memory.expand(params.of, **params.given("before", "after")))


def list_sessions(request: AuthorizedRequest, params: ListSessions) -> SessionPage:
    if params.everywhere is True:
        request.gate.allow(request.caller, "agents.manage", route=request.route.name, request=request.id)
    filters = params.given("match", "everywhere")
    found, following = pagination.sessions_page(request.memory, params.limit, params.cursor, **filters)
    return SessionPage(sessions=found, next=following)


async def import_transcript(request: AuthorizedRequest, params: ImportTranscript, upload: Upload) -> Reply:
    """Store a transcript of any length. It waits in a file without a name, which disappears with the request."""
    answer = await upload.replayed_answer()
    if answer is not None:
        return Reply(body=answer, headers={REPLAYED_HEADER: "true"})
    threads = upload.threads
    with await threads(lambda: _temporary_file(request)) as file:
        digest = sha256()
        async for chunk in upload.chunks():
            digest.update(chunk)
            await threads(lambda: _write(file, chunk))  # noqa: B023
        answer = await threads(lambda: _import_file(request, params, file, digest.hexdigest()))
        await upload.finish(answer)
    return Reply(body=answer)


def _temporary_file(request: AuthorizedRequest) -> IO[bytes]:
    """Return a file in the home: its disk has room for what will be stored there."""
    home, run_folder = request.gateway.home, os.path.join(request.gateway.home, "run")
    try:
        return TemporaryFile(dir=run_folder if os.path.isdir(run_folder) else home)
    except OSError as error:
        raise from_os(error) from error


def _write(file: IO[bytes], chunk: bytes) -> None:
    try:
        file.write(chunk)
    except OSError as error:
        raise from_os(error) from error


def _import_file(request: AuthorizedRequest, params: ImportTranscript, file: IO[bytes], digest: str) -> dict[str, Any]:
    """Import the file. A session that no line names gets the file's name, or else a hash, so that it is stored once."""
    try:
        file.flush()
    except OSError as error:
        raise from_os(error) from error
    request.recheck()
    name = or_none(params.name) or request.target.session or digest[:16]
    descriptor = os.dup(file.fileno())
    logged = import_upload(
        context_of(request.memory),
        descriptor,
        name,
        client=or_none(params.client),
        scope=params.scope,
        written=or_none(params.written),
    )
    return ImportedSessions(sessions=list(logged)).as_dict()


def forget_session(request: AuthorizedRequest, params: NameSession) -> Forgotten:
    return request.memory.forget_session(params.session, **params.given("client"))


def restore_session(request: AuthorizedRequest, params: NameSession) -> Logged:
    return request.memory.restore_session(params.session, **params.given("client"))


ROUTES = (
    Route(
        "POST", "/v1/history", log_turns,
        action=WRITE, scope="project",
        summary="store turns of a session word for word; turns that are already stored are skipped",
        params=LogTurns, reads=JSON,
        example={"turns": [{"role": "user", "text": "We deploy on Tuesdays."}], "session": "7f3a", "scope": "agent"},
        answers=Logged, replay=REPLAY_WHOLE, verbs=("log",),
    ),
    Route(
        "GET", "/v1/history", expand_turn,
        action=READ, scope=ALL_SCOPES, summary="return the turns around a turn, by its citation or id",
        params=ExpandTurn, answers=Turns, may_name_agent=True, problems=("not_found",), verbs=("expand",),
    ),
    Route(
        "GET", "/v1/history/sessions", list_sessions,
        action=READ, scope=ALL_SCOPES, summary="list sessions with a stored transcript, most recently changed first",
        params=ListSessions, answers=SessionPage,
    ),
    Route(
        "POST", "/v1/history/import", import_transcript,
        action=WRITE, scope="project", summary="import another program's transcript, sent unchanged",
        params=ImportTranscript, reads=NDJSON, line=TranscriptBody,
        example={"role": "user", "content": "We deploy on Tuesdays."},
        answers=ImportedSessions, replay=REPLAY_WHOLE, verbs=("import_history",),
    ),
    Route(
        "POST", "/v1/history/forget", forget_session,
        action=WRITE, scope=ALL_SCOPES, summary="move the transcript of a session to the trash; it can be restored for 30 days",
        params=NameSession, reads=JSON, example={"session": "7f3a"},
        answers=Forgotten, may_name_agent=True, replay=REPLAY_WHOLE, verbs=("forget_session",),
    ),
    Route(
        "POST", "/v1/history/restore", restore_session,
        action=WRITE, scope=ALL_SCOPES, summary="restore a forgotten transcript of a session",
        params=NameSession, reads=JSON, example={"session": "7f3a"},
        answers=Logged, may_name_agent=True, replay=REPLAY_WHOLE, problems=("not_found",), verbs=("restore_session",),
    ),
)  # fmt: skip
