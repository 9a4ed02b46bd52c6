"""Many notes at once, a line each: out as they are found, in as they come, and never more than a few in memory."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from holdfast.doors.http import problem
from holdfast.doors.http.notes import CONTENT, KEY, REDACT
from holdfast.doors.http.once import ALL, REPLAYED, Streamed
from holdfast.doors.http.reading import must_be_small, once_each
from holdfast.doors.http.route import EVERYWHERE, NDJSON, SCOPED, WRITE, Asked, Lines, Reply, Route
from holdfast.doors.http.schema import fields, flag, text
from holdfast.doors.mcp.verbs import ORIGINS
from holdfast.errors import HoldfastError, Purged, Refused, TooLarge
from holdfast.note import ORIGINS as EVERY_ORIGIN
from holdfast.note import SCOPES, lowest

KIND = NDJSON
MOST_BYTES = 4 * 1024**3
_BATCH = 500
_BATCH_BYTES = 4 * 1024 * 1024
_ESCAPED, _BESIDE = 6, 64 * 1024  # bytes that one of a text may take in JSON, and those for the other fields of a line
_VERSIONS = 32  # full texts that a line which an export wrote may have
_FIX = 'One object a line, such as {"text": "..."}'
_IMPORT = "import"
_NTH = re.compile(r"note ([0-9]+): ")

Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
Row = tuple[int, dict[str, Any]]  # a line's number, and what it says


def export(asked: Asked) -> Reply:
    return Reply(Lines(_exported(asked)))


def _exported(asked: Asked) -> Iterator[dict[str, Any]]:
    """Lines as `holdfast export` writes them: with every version, and of secrets only the rules."""
    yield from asked.memory.export(**asked.only("scope"))


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
        body = problem.for_caller(problem.of(error, asked.id)[1], asked.gateway.home, asked.caller.is_person)
        told = {**body, "title": "The import ended here; what was kept before stays"}
        await answering.end(problem.encoded({"failed": importing.counts, "problem": told}) + b"\n")


class _Importing:
    """One import: where its lines go, how far they are trusted, and how many were kept so far."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._own = bool(asked.given.get("own"))
        self._reached: set[str] = set()
        self.counts = {"line": 0, "created": 0, "updated": 0, "unchanged": 0}
        self.most_bytes = _VERSIONS * (_ESCAPED * asked.gateway.config().note_bytes + _BESIDE)

    def keep(self, batch: list[tuple[int, bytes]]) -> dict[str, int]:
        """One batch: of each scope all of it, or none and the error names the line. Who was let in at the beginning may have
        been shut out since."""
        self._asked.must_still_be_let_in()
        self._reached.clear()
        most = self._asked.memory.origin if self._own else _IMPORT
        scopes: dict[str, list[Row]] = {}
        for number, line in batch:
            row = parsed(number, line, most)
            scopes.setdefault(self._scope(number, row.pop("scope", None)), []).append((number, row))
        for scope, rows in scopes.items():
            self._keep(scope, rows)
        self.counts["line"] = batch[-1][0]
        return dict(self.counts)

    def _keep(self, scope: str, rows: list[Row]) -> None:
        try:
            stored = self._asked.memory.store_many([row for _, row in rows], scope=scope, **self._asked.only("redact"))
        except HoldfastError as error:
            at = self._purged(rows) if isinstance(error, Purged) else _keyed(error.message, rows)
            error.message = f"line {at}: {error.message}" if at else _by_line(error.message, [number for number, _ in rows])
            raise
        for one in stored:
            self.counts[one.action] += 1

    def _purged(self, rows: list[Row]) -> int:
        """The first line that says what was purged; 0 where that cannot be told."""
        purges = self._asked.memory._desk.ledger.purges
        for number, row in rows:
            tags = row.get("tags") or []
            said = [row["text"], *(tags.split(",") if isinstance(tags, str) else tags)]
            if any(purges.receipt_for(text) for text in said):
                return number
        return 0

    def _scope(self, number: int, said: object) -> str:
        """The one that the request names; else the line's own, as an export tells it; whose it is says the request alone."""
        scope = self._asked.given.get("scope") or (said.partition(":")[0] if isinstance(said, str) else said or "project")
        if scope not in SCOPES:
            raise Refused(f"line {number} has a scope that there is none of", f"One of: {', '.join(SCOPES)}")
        if scope not in self._reached:
            try:
                self._asked.must_reach(scope)
            except HoldfastError as error:
                error.message = f"line {number}: {error.message}"
                raise
            self._reached.add(scope)
        return str(scope)


def _keyed(message: str, rows: list[Row]) -> int:
    """The line of the note that a message names by its key, where it does not count them; 0 where it names none."""
    if _NTH.match(message):
        return 0
    return next((number for number, row in rows if row.get("key") and f"note {row['key']!r} " in message), 0)


def _by_line(message: str, numbers: list[int]) -> str:
    """What is wrong with the n-th note, told by its line."""
    found = _NTH.match(message)
    if found is None:
        return f"lines {numbers[0]} to {numbers[-1]}: {message}"
    return f"line {numbers[int(found[1]) - 1]}: {message[found.end() :]}"


def parsed(number: int, line: bytes, most: str = _IMPORT) -> dict[str, Any]:
    """A line as a note. It may say that it is worth less than what brings it, never that it is worth more."""
    try:
        must_be_small(line)
        row = json.loads(line.decode("utf-8"), object_pairs_hook=once_each)
    except problem.Problem as error:
        raise problem.Problem(error.code, f"line {number}: {error.detail}", error.fix) from None
    except (ValueError, RecursionError):
        raise Refused(f"line {number} is not JSON", _FIX) from None
    if not isinstance(row, dict):
        raise Refused(f"line {number} is not a JSON object", _FIX)
    given = row.get("origin") or most
    if given not in EVERY_ORIGIN or (given == "user" and most != "user"):
        raise Refused(f"line {number} has an origin that an agent cannot give", f"One of: {', '.join(ORIGINS)}")
    source = row.get("source")  # an export tells it
    said = [source.get("origin") or "web", source.get("trust") or most] if isinstance(source, dict) else []
    row["origin"] = lowest(most, given, *[one if one in EVERY_ORIGIN else "web" for one in said])
    return {name: value for name, value in row.items() if value is not None}


async def _batches(pieces: AsyncIterator[bytes], most: int) -> AsyncIterator[list[tuple[int, bytes]]]:
    """The lines with their numbers, so many at a time as a flush is worth."""
    batch: list[tuple[int, bytes]] = []
    number = size = 0
    async for line in _lines(pieces, most):
        number += 1
        if not line.strip():
            continue
        batch.append((number, line))
        size += len(line)
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
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
            raise TooLarge(f"line {number} has more than {most:,} bytes", _FIX)
    if size:
        yield b"".join(rest)


_WHERE = text("Where all of them go; otherwise each where its line says, and to the project if that says nothing.", *SCOPES)
_OWN = flag("They are the caller's own words: trusted as the caller is, and not as an import.")
_ITS = text("Where it goes if the request does not say, such as `agent`; `agent:NAME`, as an export has it, is the same.")
_LINE = fields({**CONTENT, "key": KEY, "scope": _ITS}, "text", closed=False)

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
