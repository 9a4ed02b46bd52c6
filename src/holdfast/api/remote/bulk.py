"""Many at once: notes and turns sent some hundreds at a time, notes told line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from holdfast.api.remote import parameters
from holdfast.api.remote.connection import GatewayClient, encode
from holdfast.api.remote.errors import error_of
from holdfast.api.remote.records import made
from holdfast.base.record import Record
from holdfast.context.caller import Context
from holdfast.errors import Denied, HoldfastError, NoScope, NotFound
from holdfast.formats.versions import Draft
from holdfast.models import Interrupted, Logged, Note, Progress, Stored
from holdfast.safety import validate
from holdfast.verbs import history, write
from holdfast.verbs.export import LeftOut

_ROWS, _BYTES = 500, 3 * 1024 * 1024  # what a gateway keeps as one: all of it, or none
_FEW = 20
_TURNS, _TURN_BYTES = 1000, 8 * 1024 * 1024
T = TypeVar("T")
Noted = Callable[[str, str], Note]
Listed = Callable[[dict[str, Any]], Iterator[Note]]


class Row(Record):
    """A note on its way: which of many it is and where it goes, as it passed the gate, and as its line."""

    number: int
    kind: str
    draft: Draft
    line: bytes


def rows(
    context: Context, notes: Iterable[Mapping[str, Any]], scope: str | None, origin: str | None, redact: bool
) -> list[Row]:
    """All of them through the gate before the first is sent; an error names the bad one. What a note was made from is weighed
    where that stands."""
    found = []
    for one in write.Gate(context, scope, origin, redact, weighs=False).let_in(notes):
        body = {**parameters.of_draft(one.draft, one.draft.key), "scope": one.scope.kind}
        body["made_from"] = list(one.made_from) or None
        line = encode({name: value for name, value in body.items() if value is not None}) + b"\n"
        found.append(Row(one.number, one.scope.kind, one.draft, line))
    return found


def kept(gateway: GatewayClient, headers: dict[str, str], rows: list[Row], noted: Noted, listed: Listed) -> list[Stored]:
    """Send them, a few hundred as one; each with what became of it."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row.kind, []).append(row)
    done = 0
    try:
        before = {kind: _found(some, kind, noted, listed) for kind, some in kinds.items()}
        for batch in _batches([(len(row.line), row) for row in rows], _ROWS, _BYTES):
            _import(gateway, headers, batch)
            done += len(batch)
        after = {kind: _found(some, kind, noted, listed) for kind, some in kinds.items()}
        names = {(row.kind, row.draft.key): row.draft for row in rows}
        stored = {(kind, key): _stored(draft, before[kind].get(key), after[kind]) for (kind, key), draft in names.items()}
        return write.each([(row.kind, row.draft.key) for row in rows], stored)
    except HoldfastError as error:
        error.done_before += done
        raise error from None
    except KeyboardInterrupt as error:
        raise Interrupted(done) from error


def exported(
    gateway: GatewayClient, headers: dict[str, str], query: dict[str, Any], progress: Progress, left_out: LeftOut
) -> Iterator[dict[str, Any]]:
    """Every note as it comes; the connection is let go when nobody wants more."""
    progress.start("exporting", 0)
    try:
        with gateway.stream_lines("GET", "/v1/export", query=query, headers=headers) as lines:
            for line in lines:
                if "left_out" in line:
                    left_out.count, left_out.notes = line["left_out"]["count"], line["left_out"]["notes"]
                else:
                    progress.step()
                    yield {"redacted": [], **line}
    finally:
        progress.end()


def logged(
    context: Context, given: Iterable[Mapping[str, Any]], session: str | None, client: str | None, kind: str, redact: bool,
    request: Callable[..., Any],
) -> Logged:  # fmt: skip
    """Turns, each through the gate first."""
    named = session if session is not None else context.session
    if named is None:
        raise NoScope("no session is known whose turns these are", "Give one: log(turns, session=...) or Memory(session=...)")
    said, redacted = [], 0
    for turn in history.gated(given, redact):
        clean = validate.without_secrets(turn.text) if redact else turn.text
        redacted += clean != turn.text
        fields = {"role": turn.role, "speaker": turn.speaker, "time": turn.time, "id": turn.id or None, "text": clean}
        said.append((len(clean), {name: value for name, value in fields.items() if value is not None}))
    told = Logged(named, client or context.client or "", 0, 0, "")
    body = {"scope": kind, "session": named, **({"client": client or context.client} if client or context.client else {})}
    for batch in list(_batches(said, _TURNS, _TURN_BYTES)) or [[]]:
        one = made(Logged, request("POST", "/v1/history", {**body, "turns": batch}, keyed=True))
        told = one.replace(added=told.added + one.added, known=told.known + one.known, redacted=told.redacted + one.redacted)
    return told.replace(redacted=max(told.redacted, redacted))


def _import(gateway: GatewayClient, headers: dict[str, str], batch: list[Row]) -> None:
    data = b"".join([row.line for row in batch])
    try:
        for line in gateway.request_lines("POST", "/v1/import", data, query={"own": True}, headers=headers):
            if isinstance(line, dict) and "problem" in line:
                raise error_of(200, {}, line["problem"])
    except HoldfastError as error:
        if error.item == "line" and error.number <= len(batch):
            error.about("note", batch[error.number - 1].number)
        raise


def _batches(sized: list[tuple[int, T]], most: int, most_bytes: int) -> Iterator[list[T]]:
    batch: list[T] = []
    room = most_bytes
    for size, one in sized:
        if batch and (len(batch) == most or size > room):
            yield batch
            batch, room = [], most_bytes
        batch.append(one)
        room -= size
    if batch:
        yield batch


def _found(rows: list[Row], kind: str, noted: Noted, listed: Listed) -> dict[str, Note]:
    """Those of the notes that are there: a few one by one, many out of the list."""
    keys = list(dict.fromkeys([row.draft.key for row in rows]))
    found: dict[str, Note] = {}
    if len(keys) <= _FEW:
        for key in keys:
            try:
                found[key] = noted(kind, key)
            except (NotFound, Denied):
                pass
        return found
    wanted = set(keys)
    for note in listed({"scope": kind}):
        if note.key in wanted:
            found[note.key] = note
            if len(found) == len(wanted):
                break
    return found


def _stored(draft: Draft, old: Note | None, after: dict[str, Note]) -> Stored:
    new = after.get(draft.key)
    if new is None:
        raise _gone(draft.key)
    action = "created" if old is None else "unchanged" if old.version == new.version else "updated"
    return Stored(action, new, draft.redacted)


def _gone(key: str) -> HoldfastError:
    return NotFound(f"{key!r} was kept, and is gone or out of reach by now", "Somebody else forgot it meanwhile")
