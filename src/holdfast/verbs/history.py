"""Transcripts of sessions: log turns, import transcripts of other programs, and read the turns around one (promises H1 to H3).

A turn is stored once, however often it arrives. Turns are read as a stream and written in batches, so that memory use stays
small; each batch is on disk before the next is read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping

from holdfast.base import dates
from holdfast.base.lazy_re import pattern
from holdfast.errors import (
    REDACT,
    Damaged,
    HoldfastError,
    InvalidKey,
    NoScope,
    NotFound,
    Template,
    UsageError,
    command,
    phrase,
)
from holdfast.formats import transcript
from holdfast.formats.importers import chat, noise
from holdfast.formats.importers.detect import find_dialect, find_folder, unknown_format_error
from holdfast.formats.importers.json_source import TranscriptSource
from holdfast.formats.importers.message_parts import ToolCalls, message_text
from holdfast.formats.transcript import CompactMap, KnownTurns, TranscriptHeader, TranscriptLine
from holdfast.models import Logged, Progress, Turn
from holdfast.safety import validate
from holdfast.store.interface import Position, Transcript
from holdfast.verbs import quota

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.formats.importers.detect import Dialect
    from holdfast.store.interface import Line, Transcripts

MOST_AROUND = 1000  # turns before and after
_REDACTED = "[REDACTED:"
_UNKNOWN_CLIENT = "unknown"
_BATCH_CHARS = 4 * 1024 * 1024  # of turns that wait to be written
_BATCH_TURNS = 5000
_MAX_OPEN_SESSIONS = 64  # of one import
_MAX_SAME = 4  # how often the same words at the same time are looked for
_CITATION = pattern(r"(?P<scope>.+?)/transcripts/(?P<name>[^/]+/[^/]+\.jsonl):(?P<first>\d{1,12})(?:-(?P<last>\d{1,12}))?\Z")


# --- logging and importing --------------------------------------------------------------------------------------------


def log(
    context: Context, turns: Iterable[Mapping[str, Any]], *, session: str | None, client: str | None, scope: str,
    redact: bool = False,
) -> Logged:  # fmt: skip
    """Implement `Memory.log`: check the turns and append them to the session's transcript."""
    context.require_enabled()
    if session is None and context.session is None:
        ways = "Set --session, HOLDFAST_SESSION or log(turns, session=...)"
        fix = Template(phrase("session of turns", ways))
        raise NoScope("no session is known for these turns", fix)
    name = _check_name(session if session is not None else context.session, "session id")
    checked_client = _check_name(client or context.client or _UNKNOWN_CLIENT, "client's name")
    writer = _Writer(context, scope=scope, client=checked_client, kept=transcript.LIVE)
    for turn in check_turns(turns, redact):
        writer.add(name, turn)
    return writer.finish_session(name)


def check_turns(given: Iterable[Mapping[str, Any]], redact: bool) -> Iterator[TranscriptLine]:
    """Yield the turns of these mappings; raise a typed error, which names the turn's number, for one that may not be stored."""
    tools = ToolCalls()
    for number, mapping in enumerate(given, 1):
        yield from _check_mapping(mapping, number, tools, redact)


def import_history(
    context: Context, path: str | os.PathLike[str], *, client: str | None, scope: str, progress: Progress | None = None,
    written: str | None = None, kept: str = "",
) -> list[Logged]:  # fmt: skip
    """Implement `Memory.import_history`: import a transcript, or every transcript in a folder.

    `written` names the dialect of the file, by default the client's own; `kept` says whether a hook imports it live.
    """
    context.require_enabled()
    checked_client = _check_name(client, "client's name") if client is not None else None
    progress, location = progress or Progress(), os.fspath(path)
    is_folder = os.path.isdir(location)
    found: list[Logged] = []
    for file in list_transcripts(location, context.config.home) if is_folder else [location]:
        with TranscriptSource(file) as source:
            found += _import_source(
                context, source, client=checked_client, written=written or checked_client, scope=scope, progress=progress,
                required=not is_folder, kept=kept,
            )  # fmt: skip
    return found


def import_upload(
    context: Context, fd: int, name: str, *, client: str | None, scope: str, written: str | None = None
) -> list[Logged]:
    """Import a transcript that was uploaded: an open file, and the name that the sender gave it."""
    context.require_enabled()
    checked_client = _check_name(client, "client's name") if client is not None else None
    with TranscriptSource(name, fd) as source:
        return _import_source(
            context, source, client=checked_client, written=written or checked_client, scope=scope, progress=Progress(),
            required=True, kept="",
        )  # fmt: skip


def list_transcripts(folder: str, home: str) -> Iterator[str]:
    """Yield the files below a folder that may be transcripts, except those of this home."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted([one for one in folders if os.path.realpath(os.path.join(where, one)) != os.path.realpath(home)])
        yield from [os.path.join(where, name) for name in sorted(names) if name.endswith((".jsonl", ".json"))]


def _import_source(
    context: Context, source: TranscriptSource, *, client: str | None, written: str | None, scope: str, progress: Progress,
    required: bool, kept: str,
) -> list[Logged]:  # fmt: skip
    """Import the turns of one transcript; raise if it is `required` and cannot be read, else import what can be read."""
    reader = find_reader(source, written, required)
    if reader is None:
        return []
    writer = _Writer(context, scope=scope, client=client or reader.CLIENT, folder=find_folder(source, reader), kept=kept)
    source.progress = progress
    progress.start(f"reading {source.name}", source.size)
    try:
        for session, turn in read_turns(source, reader, context.config.tool_turns):
            writer.add(session, turn)
    except HoldfastError:
        writer.flush()
        if required:
            raise
        return writer.finish_all(source.stem, source.broken + 1)  # the other files of the folder are imported all the same
    finally:
        progress.end()
    return writer.finish_all(source.stem, source.broken)


def find_reader(source: TranscriptSource, written: str | None, required: bool) -> Dialect | None:
    """Return the reader of a transcript; None if there is none and it is not `required`."""
    try:
        reader = find_dialect(source, written)
    except HoldfastError:
        if required:
            raise
        return None
    if reader is None and required:
        raise unknown_format_error(source)
    return reader


def read_turns(source: TranscriptSource, reader: Dialect, tools: bool) -> Iterator[tuple[str, TranscriptLine]]:
    """Yield every turn with its session, without blocks that Holdfast or the client inserted and, unless `tools`, without
    calls and results of tools. A turn that says nothing else is left out."""
    for turn in reader.parse_turns(source.read_rows(), source.stem):
        if turn.role == "tool" and not tools:
            continue
        text = transcript.strip_own_output(turn.text)
        bare = noise.remove_noise(turn.replace(text=text) if text != turn.text else turn)
        if bare.text.strip():
            yield turn.session or source.stem, bare


def context_of_folder(context: Context, folder: str) -> Context:
    """Return the context of the folder that a transcript names: its sessions belong to that project, wherever the caller is.
    A project that the caller names itself takes precedence."""
    if context.project_override:
        return context
    from holdfast.context.caller import Context

    other = Context(
        context.config, project=None, session=context.session, agent=context.agent, client=context.client,
        origin=context.origin, cwd=folder, progress=context.progress,
    )  # fmt: skip
    other.ledger = context.ledger  # open already, and the only part of it that is used
    return other


def _check_mapping(given: object, number: int, tools: ToolCalls, redact: bool) -> Iterator[TranscriptLine]:
    """Yield the turns of one mapping; none if it has no text."""
    try:
        if not isinstance(given, Mapping):
            raise UsageError(
                f"a turn must be a mapping, not {type(given).__name__}", 'Use a mapping such as {"role": "user", "text": "..."}'
            )
        turn = _check_turn(given, redact)
    except HoldfastError as error:
        kept = "turns before it may be stored, and none is stored twice"
        error.hint = Template(error.hint, "; ", kept) if error.hint else kept
        error.about("turn", number)
        raise
    if turn is not None:
        yield turn
    yield from chat.parse_tool_calls(dict(given), None, tools)


def _check_turn(given: Mapping[str, Any], redact: bool) -> TranscriptLine | None:
    speaker = given.get("speaker") or given.get("name") or None
    if speaker is not None:
        speaker = validate.check_line(speaker, "speaker", 200)
        if not redact:
            validate.reject_secrets(speaker, "a speaker", fix=Template("Give another name, or log it with ", REDACT))
    role = transcript.parse_role(given.get("role"), speaker)
    if role is None:
        raise UsageError(f"unknown role {str(given.get('role'))[:40]!r}", f"Use one of: {', '.join(transcript.ROLES)}")
    time = transcript.parse_time(given.get("time"))
    text = given.get("text") if given.get("text") is not None else given.get("content")
    text = message_text(text) if isinstance(text, list | dict) else text
    if isinstance(text, str):
        text = noise.remove_noise(TranscriptLine(role, transcript.strip_own_output(text))).text
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    if isinstance(text, str):
        text = transcript.truncate(text, transcript.TOOL_BYTES) if role == "tool" else text
    text = validate.check_text(text, transcript.TURN_BYTES, "a turn", allowed=redact)  # the writer redacts it
    id = given.get("id")
    return TranscriptLine(role, text, str(id) if id is not None and id != "" else None, time, speaker)


def _check_name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 500 or not value.isprintable():
        raise InvalidKey(
            f"not a valid {what}: {ascii(validate.hide_secrets(str(value)))[:80]}", "Use up to 500 characters on one line"
        )
    validate.reject_secrets(value, f"a {what}", fix="Give it another name")
    return value


def redact_turn(turn: TranscriptLine) -> TranscriptLine:
    """Return a turn with its secrets masked; one that is too long to be searched becomes a mark."""
    text, rules = validate.redact_or_withhold(turn.text)
    speaker = validate.redact_or_withhold(turn.speaker)[0] if turn.speaker else turn.speaker
    id = validate.redact_or_withhold(turn.id)[0] if turn.id else turn.id
    if not rules and (speaker, id) == (turn.speaker, turn.id):
        return turn
    return turn.replace(text=text, speaker=speaker, id=id)


# --- writing ----------------------------------------------------------------------------------------------------------


class _Counts:
    """The number of turns of one session that were added, known, purged and redacted."""

    def __init__(self) -> None:
        self.added = self.known = self.purged = self.redacted = 0


class _Writer:
    """Sorts turns by session, and writes them in batches."""

    def __init__(self, context: Context, *, scope: str, client: str, folder: str = "", kept: str = "") -> None:
        self._context, self._client, self._kept = context, client, kept
        self._owner = context_of_folder(context, folder) if folder and scope == "project" else context
        self._scopes = [self._owner.scope(scope), *self._owner.visible_scopes(scope)[1:]]
        self._counts: dict[str, _Counts] = {}  # by session
        self._paths: dict[str, str] = {}
        self._open: dict[str, _SessionWriter] = {}  # the last used is the last
        self._seen = CompactMap()
        self._waiting_turns = self._waiting_chars = 0
        self._token_agent = context.agent if context.config.by_token else None
        self._token_origin = context.origin if context.config.by_token else None

    def add(self, session: str, turn: TranscriptLine) -> None:
        if not turn.text.strip():
            return
        session, turn = validate.redact_or_withhold(session)[0], redact_turn(turn)
        turn = turn.replace(agent=self._token_agent, origin=self._token_origin)
        self._session_writer(session).pending.append(transcript.assign_id(turn, session, self._seen))
        self._waiting_turns += 1
        self._waiting_chars += len(turn.text)
        if self._waiting_turns >= _BATCH_TURNS or self._waiting_chars >= _BATCH_CHARS:
            self.flush()

    def flush(self) -> None:
        """Write the waiting turns."""
        self._waiting_turns = self._waiting_chars = 0
        for session_writer in self._open.values():
            session_writer.flush()
        self._owner.record_project()

    def finish_session(self, session: str, broken: int = 0) -> Logged:
        """Flush, and return the result of one session; `broken` lines could not be read."""
        self.flush()
        counts = self._counts.get(session) or _Counts()
        return Logged(
            session=session, client=self._client, added=counts.added, known=counts.known,
            path=self._paths.get(session) or self._transcript_file(session).path, broken=broken,
            purged=counts.purged, redacted=counts.redacted,
        )  # fmt: skip

    def finish_all(self, default_session: str, broken: int) -> list[Logged]:
        """Flush, and return the result of each session; broken lines are counted with the first."""
        self.flush()
        sessions = list(self._counts) or ([default_session] if broken else [])
        return [self.finish_session(session, 0 if number else broken) for number, session in enumerate(sessions)]

    def _session_writer(self, session: str) -> _SessionWriter:
        session_writer = self._open.pop(session, None)
        if session_writer is None:
            if len(self._open) >= _MAX_OPEN_SESSIONS:
                self._open.pop(next(iter(self._open))).flush()
            transcript_file = self._transcript_file(session)
            self._paths[session] = transcript_file.path
            counts = self._counts.setdefault(session, _Counts())
            session_writer = _SessionWriter(
                self._context, transcript_file, session=session, client=self._client, counts=counts, kept=self._kept
            )
        self._open[session] = session_writer
        return session_writer

    def _transcript_file(self, session: str) -> Transcript:
        """Return the session's file: where it is already, also under an older id of the project, else in the caller's scope."""
        name = f"{transcript.make_file_name(self._client)}/{transcript.make_file_name(session)}.jsonl"
        files = [self._context.store.transcripts(scope.folder).open(name) for scope in self._scopes]
        if not files[0].file_id():
            return next((older for older in files[1:] if older.file_id()), files[0])
        return files[0]


class _SessionWriter:
    """Appends the turns of one session to its file."""

    def __init__(
        self, context: Context, transcript_file: Transcript, *, session: str, client: str, counts: _Counts, kept: str
    ) -> None:
        self.pending: list[TranscriptLine] = []
        self._context, self._transcript_file = context, transcript_file
        self._session, self._client, self._kept = session, client, kept
        self._counts = counts
        self._known = KnownTurns()
        self._position = Position()  # up to which the file was read

    def flush(self) -> None:
        """Append the pending turns that are new, after those that other processes appended."""
        if self.pending:
            quota.check(self._context, bytes=sum([len(turn.text.encode("utf-8", "replace")) for turn in self.pending]))
            self._position = self._transcript_file.append(self._compose, self._position)

    def _compose(self, others: Iterator[Line], empty: bool) -> list[bytes]:
        """Return the lines to append, given the lines that others appended; called under the file's lock."""
        for line in others:
            if line.number == 1:
                _parse_header(self._transcript_file, line.data, self._session)
            elif turn := transcript.parse_line(line.data):
                self._add_known(turn)
        pending, self.pending = self.pending, []
        new = [admitted for turn in pending if (admitted := self._known.add_if_new(turn))]
        self._counts.known += len(pending) - len(new)
        turns = [(self._session, turn.id or "", turn.text) for turn in new]
        folder = self._transcript_file.path.partition("/transcripts/")[0]
        purged = self._context.purge_filter.find_purged_turns(turns, new_in=folder)
        new = [turn for number, turn in enumerate(new) if number not in purged]
        self._counts.added += len(new)
        self._counts.purged += len(purged)
        self._counts.redacted += sum([_REDACTED in f"{turn.speaker} {turn.text}" for turn in new])
        lines = [transcript.render_line(turn) for turn in new]
        if empty and new:
            header = TranscriptHeader(self._session, self._client, new[0].time or dates.now(), self._kept)
            lines.insert(0, transcript.render_header(header))
        return lines

    def _add_known(self, turn: TranscriptLine) -> None:
        """Count a stored turn as known. One that was stored with noise in it is known by what is left, so that it is not
        added again."""
        bare = noise.remove_noise(turn)
        self._known.add(bare)
        if bare is not turn and bare.text and any(turn.id == transcript.derive_id(turn, number) for number in range(_MAX_SAME)):
            for role in (turn.role, "user"):
                same = bare.replace(role=role)
                self._known.add(same.replace(id=transcript.derive_id(same, 0)))


def _parse_header(transcript_file: Transcript, line: bytes, session: str | None = None) -> TranscriptHeader:
    header = transcript.parse_header(line)
    if header is None:
        raise Damaged(
            f"{transcript_file.path} does not start with the header of a transcript", "Move it out of the transcripts folder"
        )
    if session is not None and header.session != session:
        raise Damaged(f"{transcript_file.path} is the transcript of another session", "Rename the file to its original name")
    return header


# --- reading ----------------------------------------------------------------------------------------------------------


def expand(context: Context, what: str, *, before: int, after: int, session: str | None = None) -> list[Turn]:
    """Return the turn that a citation or an id names, with the turns around it; see `Memory.expand`."""
    for count in (before, after):
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_AROUND:
            raise UsageError(f"before and after must be 0 to {MOST_AROUND}, not {count!r}", f"Use 0 to {MOST_AROUND:,}")
    if not isinstance(what, str) or not what.strip():
        raise UsageError("no turn was named", "Give the ID of a turn or the citation of a hit")
    if not context.config.enabled:
        return []
    transcript_file, first, last = _find_by_citation(context, what) or _find_by_id(context, what, session)
    turns = _read_around(context, transcript_file, first=first, last=last, before=before, after=after)
    if not turns:
        raise _not_found(what)
    return turns


def turns_of(
    transcript_file: Transcript, place: Position = Position(), header: TranscriptHeader | None = None
) -> Iterator[Turn]:
    """Yield every turn of a session's file from a position on; from the start the header is read, later it must be given."""
    for line in transcript_file.read_lines(place):
        if header is None:
            header = _parse_header(transcript_file, line.data)
        elif turn := transcript.parse_line(line.data):
            yield transcript.to_turn(turn, header, line.number, transcript_file.path)


def _find_by_citation(context: Context, what: str) -> tuple[Transcript, int, int] | None:
    """Return the file and the first and last line that a citation names; None if it is not a citation."""
    match = _CITATION.match(what)
    if match is None:
        return None
    if match["scope"] not in context.visible_folders(None):
        raise _not_found(what)
    first = int(match["first"])
    transcript_file = context.store.transcripts(match["scope"]).open(match["name"])
    return transcript_file, first, int(match["last"] or first)


def _find_by_id(context: Context, id: str, session: str | None) -> tuple[Transcript, int, int]:
    """Return the file and line of the one turn with that id that this caller may see."""
    found = [
        (transcript_file, number)
        for folder in context.visible_folders(None)
        for transcript_file in _files_of_session(context.store.transcripts(folder), session)
        if (number := _find_line(transcript_file, id))
    ]
    if not found:
        raise _not_found(id)
    if len(found) > 1:
        names = ", ".join(transcript_file.path for transcript_file, _ in found[:3])
        raise UsageError(f"several sessions have a turn {id!r}: {names}", "Name the session, or give the citation of a hit")
    transcript_file, number = found[0]
    return transcript_file, number, number


def _files_of_session(transcript_files: Transcripts, session: str | None) -> Iterator[Transcript]:
    """Yield the files of a session, or all files of a scope."""
    wanted = f"/{transcript.make_file_name(session)}.jsonl" if session is not None else ".jsonl"
    for entry in transcript_files.entries():
        if entry.regular and entry.name.endswith(wanted):
            yield transcript_files.open(entry.name)


def _find_line(transcript_file: Transcript, id: str) -> int | None:
    needle = transcript.encode_id(id)
    for line in transcript_file.read_lines():
        if needle in line.data and (turn := transcript.parse_line(line.data)) and turn.id == id:
            return line.number
    return None


def _read_around(
    context: Context, transcript_file: Transcript, *, first: int, last: int, before: int, after: int
) -> list[Turn]:
    """Return the turns on those lines and around them; none if those lines contain none."""
    earlier: deque[Turn] = deque(maxlen=before)
    wanted: list[Turn] = []
    later: list[Turn] = []
    for turn in turns_of(transcript_file):
        line = turn.number + 2
        if line < first:
            earlier.append(turn)
        elif line <= last:
            wanted.append(turn)
        elif not wanted or len(later) == after:
            break
        else:
            later.append(turn)
    turns = [*earlier, *wanted, *later]
    purged = context.purge_filter.find_purged_turns([(turn.session, turn.id or "", turn.text) for turn in turns])
    left = [turn for number, turn in enumerate(turns) if number not in purged]  # a purged turn that came back is not shown
    return left if any(turn in left for turn in wanted) else []


def _not_found(what: str) -> NotFound:
    fix = Template("Give the ID of a turn, or a citation from the output of ", command("recall"))
    return NotFound(f"no turn {what[:200]!r}", fix)
