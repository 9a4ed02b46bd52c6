"""Export and import of many notes, one per line: sent as they are found, stored as they arrive, few in memory at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.base import json_lines
from holdfast.errors import HoldfastError, Refused, Template, TooLarge
from holdfast.models import AGENT_ORIGINS, ORIGINS, SCOPES
from holdfast.safety.validate import resolve_aliases
from holdfast.server import problem
from holdfast.server.body import check_json_size
from holdfast.server.idempotency import REPLAY_WHOLE, Upload
from holdfast.server.models import (
    AgentOrigin,
    Expected,
    Key,
    MadeFrom,
    ReadScope,
    Redact,
    ResponseModel,
    ScopedRequest,
    ScopeName,
    Tags,
    choices,
)
from holdfast.server.problem import REPLAYED_HEADER, encode_json
from holdfast.server.route import ALL_SCOPES, NDJSON, WRITE, AuthorizedRequest, Reply, Route
from holdfast.server.routes.notes import NoteText, NoteType, Pinned, ValidFrom, ValidTo
from holdfast.verbs.export import Export as ExportRows
from holdfast.verbs.write import kind_of

_BATCH_LINES = 500
_BATCH_BYTES = 4 * 1024 * 1024
_MAX_VERSIONS = 32  # full texts in one line of an export
_LINE_FIX = 'Send one JSON object per line, such as {"text": "..."}'
_IMPORT = "import"

Batch = list[tuple[int, bytes | HoldfastError]]  # lines with their numbers; the last may be one that is too long


class Export(ScopedRequest, kw_only=True):
    scope: ReadScope | UnsetType = UNSET


class Import(ScopedRequest, kw_only=True):
    scope: Annotated[
        ScopeName,
        choices("The scope of every line. Default: the line's own `scope`, or else `project`.", SCOPES),
    ] | UnsetType = UNSET  # fmt: skip
    redact: Redact | UnsetType = UNSET
    own: Annotated[
        bool, Meta(description="Trust the lines as the caller's own text. Default: trust them as an import.")
    ] = False  # fmt: skip


class ImportLine(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One line of an import. An export writes the last fields; an import reads only the name of these."""

    text: NoteText
    type: NoteType | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    valid_from: ValidFrom | UnsetType = UNSET
    valid_to: ValidTo | UnsetType = UNSET
    pinned: Pinned | UnsetType = UNSET
    origin: AgentOrigin | UnsetType = UNSET
    made_from: MadeFrom | UnsetType = UNSET
    key: Key | UnsetType = UNSET
    scope: Annotated[
        str,
        Meta(
            description=(
                "The scope, if the request names none. `agent:NAME`, as in an export, means `agent`."
            ),
            pattern=f"^(?:{'|'.join(SCOPES)})(?::|$)",
        ),
    ] | UnsetType = UNSET  # fmt: skip
    expected: Expected | UnsetType = UNSET
    name: Annotated[str, Meta(description="The platform's key for this note.")] | UnsetType = UNSET
    id: Any = None
    created: Any = None
    updated: Any = None
    source: Any = None
    quarantined: Any = None
    relations: Any = None
    versions: Any = None
    redacted: Any = None


class Row(ResponseModel, kw_only=True):
    """A line of an export, or of the answer to an import."""


def export_notes(request: AuthorizedRequest, params: Export) -> Reply:
    rows = request.memory.export(**params.given("scope"))  # opened before the handler returns: closed after the last row
    return Reply(body=_export_rows(request, rows))


def _export_rows(request: AuthorizedRequest, rows: ExportRows) -> Iterator[dict[str, Any]]:
    """Yield every note with all its versions; of secrets only the names of their rules.

    Where notes are left out, a last row says which; an import skips it.
    """
    yield from rows
    if rows.left_out.count:
        left_out = rows.left_out.as_dict()
        notes = [{**one, "why": problem.plain(one["why"], request.gateway.home)} for one in left_out["notes"]]
        yield {json_lines.LEFT_OUT: {**left_out, "notes": notes}}


async def import_notes(request: AuthorizedRequest, params: Import, upload: Upload) -> Reply:
    """Store a few hundred notes at a time and report after each batch; the first bad line ends the import."""
    answer = await upload.replayed_answer()
    if answer is not None:
        return Reply(body=_encode_lines(_replayed(answer)), headers={REPLAYED_HEADER: "true"})
    return Reply(body=_encode_lines(_import(request, params, upload)))


async def _replayed(answer: Any) -> AsyncIterator[dict[str, Any]]:
    yield {"done": answer}


async def _encode_lines(rows: AsyncIterator[dict[str, Any]]) -> AsyncGenerator[bytes]:
    async for row in rows:
        yield encode_json(row) + b"\n"


async def _import(request: AuthorizedRequest, params: Import, upload: Upload) -> AsyncIterator[dict[str, Any]]:
    importer = _Importer(request, params)
    has_answered = False
    try:
        async for batch in _batches(upload.chunks(), importer.max_line_bytes):
            counts = await upload.threads(lambda: importer.store(batch))  # noqa: B023
            has_answered = True
            yield {"progress": counts}
        await upload.finish(importer.counts)
        yield {"done": importer.counts}
    except (HoldfastError, problem.Problem) as error:
        if not has_answered:
            raise  # an answer with a status of its own
        await upload.drop(error)
        with_parts = problem.wants_parts(request.headers)
        body = problem.of(error, request.id, with_parts)[1]
        shown = problem.for_caller(body, request.gateway.home, request.caller.is_person)
        title = "The import stopped here; notes stored before are kept"
        yield {"failed": importer.counts, "problem": {**shown, "title": title}}


class _InvalidLine(Refused):
    """A line that HTTP refuses with a code of its own. It passes through `store_many`, which may find an earlier bad line."""

    def __init__(self, problem_code: str, message: str | Template, fix: str | Template) -> None:
        super().__init__(message, fix)
        self.problem_code = problem_code


class _Importer:
    """One import: where its lines go, how far they are trusted, and how many are stored so far."""

    def __init__(self, request: AuthorizedRequest, params: Import) -> None:
        self._request, self._params = request, params
        self._reached_scopes: set[str] = set()
        self._line_numbers: list[int] = []  # of the notes in a batch
        self.counts = {"line": 0, "created": 0, "updated": 0, "unchanged": 0}
        self.max_line_bytes = _MAX_VERSIONS * json_lines.max_line_bytes(request.gateway.config().note_bytes)

    def store(self, batch: Batch) -> dict[str, int]:
        """Store all of a batch, or nothing and raise an error with the number of the first bad line."""
        self._request.recheck()
        self._reached_scopes.clear()
        self._line_numbers.clear()
        try:
            stored = self._request.memory.store_many(self._notes(batch), **self._params.given("redact", "scope"))
        except _InvalidLine as error:
            raise problem.Problem(error.problem_code, error.text, error.hint, line=error.number) from None
        except HoldfastError as error:
            if error.item == "note":
                error.about("line", self._line_numbers[error.number - 1])
            raise
        for one in stored:
            self.counts[one.action] += 1
        self.counts["line"] = batch[-1][0]
        return dict(self.counts)

    def _notes(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Yield each line as a note, when `store_many` has checked those before it."""
        most_trusted = self._request.memory.origin if self._params.own else _IMPORT
        for number, line in batch:
            try:
                if isinstance(line, HoldfastError):
                    raise line
                note = parse_line(line, most_trusted)
                if note is None:
                    continue
                self._must_reach(note.get("scope"))
            except HoldfastError as error:
                error.about("line", number)
                raise
            self._line_numbers.append(number)
            yield note

    def _must_reach(self, line_scope: object) -> None:
        """Check the scope that the request names, or else the line's own; only the request can name its owner."""
        named = None if self._params.scope is UNSET else self._params.scope
        scope = named or ("project" if line_scope is None else kind_of(line_scope))
        if scope not in self._reached_scopes:
            self._request.must_reach(scope)
            self._reached_scopes.add(scope)


def parse_line(line: bytes, most_trusted: str = _IMPORT) -> dict[str, Any] | None:
    """Return a line as a note; None for the row that says what an export left out.

    A line may claim less trust than `most_trusted`, never more.
    """
    try:
        check_json_size(line)
        row = json_lines.parse_line(line, _LINE_FIX)
    except json_lines.DuplicateField as error:
        raise _InvalidLine("invalid_request", error.text, error.hint) from None
    except problem.Problem as error:
        raise _InvalidLine(error.code, error.detail, error.fix) from None
    if json_lines.is_left_out_line(row):
        return None
    row = resolve_aliases(row, ("text", "type"))
    origin = most_trusted if row.get("origin") is None else row["origin"]
    if origin not in ORIGINS or (origin == "user" and most_trusted != "user"):
        raise Refused("an agent cannot set this origin", f"Use one of: {', '.join(AGENT_ORIGINS)}")
    row["origin"] = json_lines.line_origin(row, most_trusted)
    return {name: value for name, value in row.items() if value is not None}


async def _batches(chunks: AsyncIterator[bytes], max_line_bytes: int) -> AsyncIterator[Batch]:
    """Yield lines in batches that are worth one flush to disk."""
    batch: Batch = []
    number = size = 0
    try:
        async for line in _lines(chunks, max_line_bytes):
            number += 1
            if json_lines.is_blank(line):
                continue
            batch.append((number, line))
            size += len(line)
            if len(batch) >= _BATCH_LINES or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except TooLarge as error:
        if error.item != "line":
            raise
        batch.append((error.number, error))
    if batch:
        yield batch


async def _lines(chunks: AsyncIterator[bytes], max_line_bytes: int) -> AsyncIterator[bytes]:
    unfinished: list[bytes] = []  # pieces of a line that has not ended yet
    number, size = 1, 0
    async for chunk in chunks:
        first, *more = chunk.split(b"\n")
        unfinished.append(first)
        size += len(first)
        for following in more:
            if size > max_line_bytes:
                break
            yield b"".join(unfinished)
            unfinished, size = [following], len(following)
            number += 1
        if size > max_line_bytes:
            raise TooLarge(f"it has more than {max_line_bytes:,} bytes", _LINE_FIX).about("line", number)
    if size:
        yield b"".join(unfinished)


ROUTES = (
    Route(
        "GET", "/v1/export", export_notes,
        is_slow=True,
        action="memory.export", scope=ALL_SCOPES,
        summary="export all notes you may read, one JSON object per line, in the format of /v1/import",
        params=Export, answers=Row, media_type=NDJSON,
        answer_example={
            "key": "testing", "text": "Use pytest.", "type": "feedback", "scope": "agent:reviewer", "redacted": [],
        },
        verbs=("export",),
    ),
    Route(
        "POST", "/v1/import", import_notes,
        action=WRITE, scope=ALL_SCOPES,
        summary="store many notes, one JSON object per line; the answer reports progress line by line",
        params=Import, reads=NDJSON, line=ImportLine,
        example={"text": "Use pytest.", "key": "testing", "scope": "agent"},
        answers=Row, media_type=NDJSON, replay=REPLAY_WHOLE, verbs=("store_many",),
        answer_example={"done": {"line": 1, "created": 1, "updated": 0, "unchanged": 0}},
    ),
)  # fmt: skip
