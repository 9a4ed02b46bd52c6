"""Many notes at once, a line each: out as they are found, in as they come, and never more than a few in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from holdfast.base import json_lines
from holdfast.errors import HoldfastError, Refused, Template, TooLarge
from holdfast.mcp.handlers import ORIGINS
from holdfast.models import ORIGINS as EVERY_ORIGIN
from holdfast.models import SCOPES
from holdfast.server import problem
from holdfast.server.body import must_be_small
from holdfast.server.idempotency import ALL, REPLAYED, Streamed
from holdfast.server.route import EVERYWHERE, NDJSON, SCOPED, WRITE, Asked, Lines, Reply, Route
from holdfast.server.routes.notes import CONTENT, EXPECTED, KEY, REDACT
from holdfast.server.schema import fields, flag, text
from holdfast.verbs.write import kind_of

KIND = NDJSON
MOST_BYTES = 4 * 1024**3
_BATCH = 500
_BATCH_BYTES = 4 * 1024 * 1024
_VERSIONS = 32  # full texts that a line which an export wrote may have
_FIX = 'One object a line, such as {"text": "..."}'
_IMPORT = "import"

Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
Batch = list[tuple[int, bytes | HoldfastError]]


def export(asked: Asked) -> Reply:
    return Reply(Lines(_exported(asked)))


def _exported(asked: Asked) -> Iterator[dict[str, Any]]:
    """Lines as `holdfast export` writes them: with every version, and of secrets only the rules. Where notes are left out, the
    last line is none and says which; an import goes over it."""
    rows = asked.memory.export(**asked.only("scope"))
    yield from rows
    if rows.left_out.count:
        told = rows.left_out.as_dict()
        why = [{**one, "why": problem.plain(one["why"], asked.gateway.home)} for one in told["notes"]]
        yield {json_lines.LEFT_OUT: {**told, "notes": why}}


def must_be_lines(kind: str) -> None:
    """Lines of JSON, or a single one that calls itself JSON."""
    if kind.partition(";")[0].strip().lower() not in (KIND, "application/json"):
        raise problem.Problem("wrong_type", f"this route reads {KIND}", f"Send Content-Type: {KIND}")


async def import_(asked: Asked, once: Streamed, pieces: AsyncIterator[bytes], answering: Any, aside: Aside) -> None:
    """Keep a few hundred at a time and say so after each; what is wrong with a line ends it, and what was kept stays."""
    before = await once.before(pieces)
    if before is not None:
        await answering.begin(200, {REPLAYED: "true"}, KIND.encode())
        await answering.end(problem.encoded({"done": before}) + b"\n")
        return
    importing = _Importing(asked)
    begun = False
    try:
        async for batch in _batches(once.pieces(pieces), importing.most_bytes):
            told = await aside(lambda: importing.keep(batch))  # noqa: B023
            if not begun:
                await answering.begin(200, {}, KIND.encode())
                begun = True
            await answering.piece(problem.encoded({"progress": told}) + b"\n")
        await aside(lambda: once.finish(importing.counts))
        if not begun:
            await answering.begin(200, {}, KIND.encode())
        await answering.end(problem.encoded({"done": importing.counts}) + b"\n")
    except (HoldfastError, problem.Problem) as error:
        if not begun:
            raise
        await aside(partial(once.drop, error))
        parts = asked.header(problem.PARTS) == "parts"
        body = problem.for_caller(problem.of(error, asked.id, parts)[1], asked.gateway.home, asked.caller.is_person)
        told = {**body, "title": "The import ended here; what was kept before stays"}
        await answering.end(problem.encoded({"failed": importing.counts, "problem": told}) + b"\n")


class _Unfit(Refused):
    """What only HTTP says of a line: on its way past the gate, which may have something to say of one before it."""

    def __init__(self, what: str, message: str | Template, fix: str | Template) -> None:
        super().__init__(message, fix)
        self.what = what


class _Importing:
    """One import: where its lines go, how far they are trusted, and how many were kept so far."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._own = bool(asked.given.get("own"))
        self._reached: set[str] = set()
        self._numbers: list[int] = []  # of the lines of a batch that are notes
        self.counts = {"line": 0, "created": 0, "updated": 0, "unchanged": 0}
        self.most_bytes = _VERSIONS * json_lines.line_bytes(asked.gateway.config().note_bytes)

    def keep(self, batch: Batch) -> dict[str, int]:
        """One batch: all of it, or none and the error names the first bad line. Who was let in at the beginning may have been
        shut out since."""
        self._asked.must_still_be_let_in()
        self._reached.clear()
        self._numbers.clear()
        try:
            stored = self._asked.memory.store_many(self._notes(batch), **self._asked.only("redact", "scope"))
        except _Unfit as error:
            raise problem.Problem(error.what, error.text, error.hint, line=error.number) from None
        except HoldfastError as error:
            if error.item == "note":
                error.about("line", self._numbers[error.number - 1])
            raise
        for one in stored:
            self.counts[one.action] += 1
        self.counts["line"] = batch[-1][0]
        return dict(self.counts)

    def _notes(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Each line when those before it have passed the gate."""
        most = self._asked.memory.origin if self._own else _IMPORT
        for number, line in batch:
            try:
                if isinstance(line, HoldfastError):
                    raise line
                row = parsed(line, most)
                if row is None:
                    continue
                self._must_reach(row.get("scope"))
            except HoldfastError as error:
                error.about("line", number)
                raise
            self._numbers.append(number)
            yield row

    def _must_reach(self, own: object) -> None:
        """The scope that the request names; else the line's own, as an export tells it; whose it is says the request alone."""
        scope = self._asked.given.get("scope") or ("project" if own is None else kind_of(own))
        if scope not in self._reached:
            self._asked.must_reach(scope)
            self._reached.add(scope)


def parsed(line: bytes, most: str = _IMPORT) -> dict[str, Any] | None:
    """A line as a note; None for the one that says what an export left out. It may say that it is worth less than what brings
    it, never that it is worth more."""
    try:
        must_be_small(line)
        row = json_lines.parse_line(line, _FIX)
    except json_lines.DuplicateField as error:
        raise _Unfit("invalid_request", error.text, error.hint) from None
    except problem.Problem as error:
        raise _Unfit(error.code, error.detail, error.fix) from None
    if json_lines.is_left_out_line(row):
        return None
    given = most if row.get("origin") is None else row["origin"]
    if given not in EVERY_ORIGIN or (given == "user" and most != "user"):
        raise Refused("it has an origin that an agent cannot give", f"One of: {', '.join(ORIGINS)}")
    row["origin"] = json_lines.line_origin(row, most)
    return {name: value for name, value in row.items() if value is not None}


async def _batches(pieces: AsyncIterator[bytes], most: int) -> AsyncIterator[Batch]:
    """The lines with their numbers, so many at a time as a flush is worth; the last may be one that is too long to be read."""
    batch: Batch = []
    number = size = 0
    try:
        async for line in _lines(pieces, most):
            number += 1
            if json_lines.is_blank(line):
                continue
            batch.append((number, line))
            size += len(line)
            if len(batch) >= _BATCH or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except TooLarge as error:
        if error.item != "line":
            raise
        batch.append((error.number, error))
    if batch:
        yield batch


async def _lines(pieces: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    rest: list[bytes] = []  # what came of a line that has not ended yet
    number, size = 1, 0
    async for piece in pieces:
        first, *more = piece.split(b"\n")
        rest.append(first)
        size += len(first)
        for following in more:
            if size > most:
                break
            yield b"".join(rest)
            rest, size = [following], len(following)
            number += 1
        if size > most:
            raise TooLarge(f"it has more than {most:,} bytes", _FIX).about("line", number)
    if size:
        yield b"".join(rest)


_WHERE = text("Where all of them go; otherwise each where its line says, and to the project if that says nothing.", *SCOPES)
_OWN = flag("They are the caller's own words: trusted as the caller is, and not as an import.")
_ITS = text("Where it goes if the request does not say, such as `agent`; `agent:NAME`, as an export has it, is the same.")
_LINE = fields({**CONTENT, "key": KEY, "scope": _ITS, "expected": EXPECTED}, "text", closed=False)

ROUTES = (
    Route(
        "GET", "/v1/export", "memory.export", export, "every note you may see, one a line, as /v1/import takes them",
        EVERYWHERE, {"scope": SCOPED}, answers=fields({}, closed=False), kind=KIND,
        shows={"key": "testing", "text": "Use pytest.", "type": "feedback", "scope": "agent:reviewer", "redacted": []},
        does=("export",),
    ),
    Route(
        "POST", "/v1/import", WRITE, import_, "keep many notes, one a line; answers line by line how far it is", EVERYWHERE,
        {"scope": _WHERE, "redact": REDACT, "own": _OWN}, takes=_LINE, answers=fields({}, closed=False), kind=KIND, reads=KIND,
        example={"text": "Use pytest.", "key": "testing", "scope": "agent"}, again=ALL, does=("store_many",),
        shows={"done": {"line": 1, "created": 1, "updated": 0, "unchanged": 0}},
    ),
)  # fmt: skip
