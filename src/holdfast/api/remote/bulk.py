"""Many notes or turns at once: checked here, sent in batches; exported notes and imported transcripts as streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.api.remote.caller import RemoteCaller, draft_fields, drop_none
from holdfast.api.remote.client import GatewayClient, encode, error_from_problem
from holdfast.api.remote.records import parse_record, parse_records
from holdfast.base.record import Record
from holdfast.errors import Denied, HoldfastError, NoScope, NotFound
from holdfast.formats import transcript
from holdfast.formats.importers import chat
from holdfast.formats.importers.detect import find_folder
from holdfast.formats.importers.json_source import TranscriptSource
from holdfast.formats.transcript import CompactMap, TranscriptLine
from holdfast.formats.versions import Draft
from holdfast.models import Interrupted, Logged, Note, Progress, Stored
from holdfast.safety import validate
from holdfast.verbs import history, write
from holdfast.verbs.export import LeftOut

if TYPE_CHECKING:
    from holdfast.formats.importers.detect import Dialect

_BATCH_NOTES, _BATCH_NOTE_BYTES = 500, 3 * 1024 * 1024  # a gateway stores a batch of this size completely or not at all
_BATCH_TURNS, _BATCH_TURN_BYTES = 1000, 8 * 1024 * 1024
_BATCH_LINES, _BATCH_LINE_BYTES = 1000, 4 * 1024 * 1024
_FEW_KEYS = 20  # that are read one by one; more are read from the list of all notes
T = TypeVar("T")
Request = Callable[..., Any]
GetNote = Callable[[str, str], Note]
ListNotes = Callable[[dict[str, Any]], Iterator[Note]]


# --- notes -----------------------------------------------------------------------------------------------------------


class CheckedNote(Record):
    """One of many notes: its number, the scope it goes to, the checked draft and the line to send."""

    number: int
    kind: str
    draft: Draft
    line: bytes


def check_notes(
    caller: RemoteCaller, notes: Iterable[Mapping[str, Any]], *, scope: str | None, origin: str | None, redact: bool
) -> list[CheckedNote]:
    """Check all notes before the first is sent; an error names the bad one. The gateway judges what a note was made from."""
    checked = []
    reader = write.BulkReader(caller.scope, caller.make_draft, scope=scope, origin=origin, redact=redact)
    for note in reader.read(notes):
        kind = note.scope.kind
        fields = {
            **draft_fields(note.draft, note.draft.key),
            "name": note.draft.name,
            "scope": kind,
            "made_from": list(note.made_from) or None,
        }
        checked.append(CheckedNote(note.number, kind, note.draft, encode(drop_none(fields)) + b"\n"))
    return checked


def store_notes(
    gateway: GatewayClient, headers: dict[str, str], notes: list[CheckedNote], get_note: GetNote, list_notes: ListNotes
) -> list[Stored]:
    """Send notes in batches and return the result for each; an error says how many were stored before it."""
    by_kind: dict[str, list[CheckedNote]] = {}
    for note in notes:
        by_kind.setdefault(note.kind, []).append(note)
    done = 0
    try:
        before = {kind: _find_notes(some, kind, get_note, list_notes) for kind, some in by_kind.items()}
        for batch in _split([(len(note.line), note) for note in notes], _BATCH_NOTES, _BATCH_NOTE_BYTES):
            _import(gateway, headers, batch)
            done += len(batch)
        after = {kind: _find_notes(some, kind, get_note, list_notes) for kind, some in by_kind.items()}
        drafts = {(note.kind, note.draft.key): note.draft for note in notes}
        stored = {(kind, key): _stored(draft, before[kind].get(key), after[kind]) for (kind, key), draft in drafts.items()}
        return write.results_in_order([(note.kind, note.draft.key) for note in notes], stored)
    except HoldfastError as error:
        error.done_before += done
        raise error from None
    except KeyboardInterrupt as error:
        raise Interrupted(done) from error


def _import(gateway: GatewayClient, headers: dict[str, str], batch: list[CheckedNote]) -> None:
    data = b"".join([note.line for note in batch])
    try:
        for line in gateway.request_lines("POST", "/v1/import", data, query={"own": True}, headers=headers):
            if isinstance(line, dict) and "problem" in line:
                raise error_from_problem(200, {}, line["problem"])
    except HoldfastError as error:
        if error.item == "line" and error.number <= len(batch):
            error.about("note", batch[error.number - 1].number)
        raise


def _find_notes(notes: list[CheckedNote], kind: str, get_note: GetNote, list_notes: ListNotes) -> dict[str, Note]:
    """Return, by key, those of the notes that the gateway has."""
    keys = list(dict.fromkeys([note.draft.key for note in notes]))
    found: dict[str, Note] = {}
    if len(keys) <= _FEW_KEYS:
        for key in keys:
            try:
                found[key] = get_note(kind, key)
            except (NotFound, Denied):
                pass
        return found
    wanted = set(keys)
    for note in list_notes({"scope": kind}):
        if note.key in wanted:
            found[note.key] = note
            if len(found) == len(wanted):
                break
    return found


def _stored(draft: Draft, old: Note | None, after: dict[str, Note]) -> Stored:
    new = after.get(draft.key)
    if new is None:
        raise NotFound(f"{draft.key!r} was stored, but cannot be read any more", "Another caller forgot it meanwhile")
    action = "created" if old is None else "unchanged" if old.version == new.version else "updated"
    return Stored(action, new, draft.redacted)


def export_notes(
    gateway: GatewayClient, headers: dict[str, str], query: dict[str, Any], progress: Progress, left_out: LeftOut
) -> Iterator[dict[str, Any]]:
    """Yield every note as it arrives; the connection is closed when the caller stops reading."""
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


def _split(sized: list[tuple[int, T]], most: int, most_bytes: int) -> Iterator[list[T]]:
    """Yield batches within these limits on items and bytes; an item that is larger gets a batch of its own."""
    batch: list[T] = []
    left = most_bytes
    for size, item in sized:
        if batch and (len(batch) == most or size > left):
            yield batch
            batch, left = [], most_bytes
        batch.append(item)
        left -= size
    if batch:
        yield batch


# --- turns -----------------------------------------------------------------------------------------------------------


def log_turns(
    caller: RemoteCaller, turns: Iterable[Mapping[str, Any]], *, session: str | None, client: str | None, kind: str,
    redact: bool, request: Request,
) -> Logged:  # fmt: skip
    """Check every turn, send them in batches and return the sums."""
    session = session if session is not None else caller.session
    if session is None:
        raise NoScope("no session is known for these turns", "Set log(turns, session=...) or Memory(session=...)")
    checked, redacted = [], 0
    for turn in history.check_turns(turns, redact):
        text = validate.hide_secrets(turn.text) if redact else turn.text
        redacted += text != turn.text
        fields = {"role": turn.role, "speaker": turn.speaker, "time": turn.time, "id": turn.id or None, "text": text}
        checked.append((len(text), drop_none(fields)))
    client = client or caller.client
    body = {"scope": kind, "session": session, **({"client": client} if client else {})}
    total = Logged(session, client or "", 0, 0, "")
    for batch in list(_split(checked, _BATCH_TURNS, _BATCH_TURN_BYTES)) or [[]]:
        logged = parse_record(Logged, request("POST", "/v1/history", {**body, "turns": batch}, keyed=True))
        total = logged.replace(
            added=total.added + logged.added, known=total.known + logged.known, redacted=total.redacted + logged.redacted
        )
    return total.replace(redacted=max(total.redacted, redacted))


def import_transcripts(caller: RemoteCaller, path: str, client: str | None, kind: str, request: Request) -> list[Logged]:
    """Send the turns of a transcript, or of every transcript in a folder."""
    if not os.path.isdir(path):
        return _import_transcript(caller, path, client, kind, request, must_be_one=True)
    return [
        logged
        for file in history.list_transcripts(path, caller.config.home)
        for logged in _import_transcript(caller, file, client, kind, request, must_be_one=False)
    ]


def _import_transcript(
    caller: RemoteCaller, path: str, client: str | None, kind: str, request: Request, *, must_be_one: bool
) -> list[Logged]:
    with TranscriptSource(path) as source:
        reader = history.find_reader(source, client, must_be_one)
        if reader is None:
            return []
        where = find_folder(source, reader) if kind == "project" else ""
        upload = _TranscriptUpload(request, client or reader.CLIENT, kind, caller.project_of(where) if where else None)
        source.progress = caller.progress
        caller.progress.start(f"reading {source.name}", source.size)
        cut_short = list[HoldfastError]()
        try:
            for batch in _line_batches(source, reader, caller.config.tool_turns, cut_short):
                upload.send(batch)
        finally:
            caller.progress.end()
        if cut_short and must_be_one:
            raise cut_short[0]
        return upload.results(source.stem, source.broken + len(cut_short))  # the other files of its folder are read on


def _line_batches(source: TranscriptSource, reader: Dialect, tools: bool, cut_short: list[HoldfastError]) -> Iterator[bytes]:
    lines, size = list[bytes](), 0
    for line in _chat_lines(source, reader, tools, cut_short):
        lines.append(line)
        size += len(line)
        if len(lines) >= _BATCH_LINES or size >= _BATCH_LINE_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    if lines:
        yield b"".join(lines)


def _chat_lines(source: TranscriptSource, reader: Dialect, tools: bool, cut_short: list[HoldfastError]) -> Iterator[bytes]:
    """Yield the turns as lines of a plain chat, each with the id that a home gives it. An error goes to `cut_short`."""
    tally = CompactMap()
    try:
        for session, turn in history.read_turns(source, reader, tools):
            name = validate.redact_or_withhold(session)[0]
            yield _chat_line(name, transcript.assign_id(history.redact_turn(turn), name, tally))
    except HoldfastError as error:
        cut_short.append(error)


def _chat_line(session: str, turn: TranscriptLine) -> bytes:
    fields = {
        "session": session, "id": turn.id, "role": turn.role, "speaker": turn.speaker, "time": turn.time, "content": turn.text,
    }  # fmt: skip
    return encode(drop_none(fields)) + b"\n"


class _TranscriptUpload:
    """The upload of one transcript, and the result for each of its sessions."""

    def __init__(self, request: Request, client: str, kind: str, project: str | None) -> None:
        self._request, self._client = request, client
        self._query = {"client": client, "scope": kind, "written": chat.CLIENT, "project": project}
        self._sessions: dict[str, Logged] = {}

    def send(self, batch: bytes) -> None:
        """Send some lines, and add up the counts of each session."""
        answer = self._request("POST", "/v1/history/import", batch, query=self._query, keyed=True)
        for logged in parse_records(Logged, answer, "sessions"):
            before = self._sessions.get(logged.session)
            self._sessions[logged.session] = logged if before is None else _add_counts(before, logged)

    def results(self, default_session: str, broken: int) -> list[Logged]:
        """Return the result for each session; lines that could not be read are counted with the first session."""
        found = list(self._sessions.values())
        if not found and broken:
            found = [Logged(default_session, self._client, 0, 0, "")]
        return [logged if number else logged.replace(broken=broken) for number, logged in enumerate(found)]


def _add_counts(before: Logged, logged: Logged) -> Logged:
    counts = ("added", "known", "purged", "redacted")
    return logged.replace(**{name: getattr(before, name) + getattr(logged, name) for name in counts})
