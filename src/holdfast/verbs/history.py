"""Sessions word for word: turns are kept, transcripts of other programs brought in, and what stands around a turn read (H1-H3).

A turn is kept once, whoever brings it and however often. Turns come as a stream and go to disk in batches, so memory
stays small; each batch is on disk before the next is read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping

from holdfast.base import dates
from holdfast.base.lazy_re import pattern
from holdfast.errors import Damaged, HoldfastError, InvalidKey, NoScope, NotFound, Template, UsageError, command, phrase
from holdfast.formats import transcript
from holdfast.formats.importers import chat, noise
from holdfast.formats.importers.detect import dialect, folder, unknown
from holdfast.formats.importers.json_source import Source
from holdfast.formats.importers.message_parts import Tools, message_text
from holdfast.formats.transcript import CompactMap, KnownTurns, TranscriptHeader, TranscriptLine
from holdfast.models import Logged, Progress, Turn
from holdfast.safety import validate
from holdfast.store.transcripts import Place, TranscriptFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.formats.importers.detect import Dialect
    from holdfast.models import Scope
    from holdfast.store.transcripts import Line, TranscriptFiles

MOST_AROUND = 1000  # turns before and after
_REDACTED = "[REDACTED:"
_UNKNOWN = "unknown"  # the client of a caller that names none
_BATCH = 4 * 1024 * 1024  # characters that wait to be written
_BATCH_TURNS = 5000
_OPEN = 64  # sessions of one import that are held open
_SAME = 4  # how often the same words at the same time are looked for
_CITATION = pattern(r"(?P<scope>.+?)/transcripts/(?P<name>[^/]+/[^/]+\.jsonl):(?P<first>\d{1,12})(?:-(?P<last>\d{1,12}))?\Z")


# --- keeping ----------------------------------------------------------------------------------------------------------


def log(
    context: Context,
    given: Iterable[Mapping[str, Any]],
    session: str | None,
    client: str | None,
    scope: str,
    redact: bool = False,
) -> Logged:
    """The steps of `Memory.log`."""
    context.require_enabled()
    if session is None and context.session is None:
        ways = "Give one: log(turns, session=...), Memory(session=...), --session or HOLDFAST_SESSION"
        fix = Template(phrase("session of turns", ways))
        raise NoScope("no session is known whose turns these are", fix)
    name = _name(session if session is not None else context.session, "session id")
    keeper = _Keeper(context, scope, _name(client or context.client or _UNKNOWN, "client's name"), kept=transcript.LIVE)
    for said in gated(given, redact):
        keeper.add(name, said)
    return keeper.done(name)


def gated(given: Iterable[Mapping[str, Any]], redact: bool) -> Iterator[TranscriptLine]:
    """The turns of some mappings, one after the other through the gate."""
    tools = Tools()
    for number, one in enumerate(given, 1):
        yield from _gated(one, number, tools, redact)


def import_history(
    context: Context, path: str | os.PathLike[str], client: str | None, scope: str, progress: Progress | None = None,
    written: str | None = None, kept: str = "",
) -> list[Logged]:  # fmt: skip
    """The steps of `Memory.import_history`: a file, or every transcript in a folder. They are kept as the client's; the
    dialect they are `written` in is the client's own, if it is not named; `kept` says whether a hook brings them."""
    context.require_enabled()
    who = _name(client, "client's name") if client is not None else None
    place = os.fspath(path)
    if not os.path.isdir(place):
        return _imported(context, place, who, written or who, scope, progress or Progress(), True, kept)
    return [
        one
        for file in files_in(place, context.config.home)
        for one in _imported(context, file, who, written or who, scope, progress or Progress(), False, kept)
    ]


def import_upload(
    context: Context, fd: int, name: str, client: str | None, scope: str, written: str | None = None
) -> list[Logged]:
    """The same for a transcript that was sent: a file that is open and has no name but the one it was given."""
    context.require_enabled()
    who = _name(client, "client's name") if client is not None else None
    with Source(name, fd) as source:
        return _read(context, source, who, written or who, scope, Progress(), True, "")


def files_in(folder: str, home: str) -> Iterator[str]:
    """What may be a transcript; what this home keeps itself is none."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted([one for one in folders if os.path.realpath(os.path.join(where, one)) != os.path.realpath(home)])
        yield from [os.path.join(where, name) for name in sorted(names) if name.endswith((".jsonl", ".json"))]


def _imported(
    context: Context, path: str, client: str | None, written: str | None, scope: str, progress: Progress, must: bool, kept: str
) -> list[Logged]:
    with Source(path) as source:
        return _read(context, source, client, written, scope, progress, must, kept)


def _read(
    context: Context,
    source: Source,
    client: str | None,
    written: str | None,
    scope: str,
    progress: Progress,
    must: bool,
    kept: str,
) -> list[Logged]:
    """The turns of one transcript. One that `must` be read and cannot is an error; of others, what could be."""
    reader = reader_of(source, written, must)
    if reader is None:
        return []
    keeper = _Keeper(context, scope, client or reader.CLIENT, folder(source, reader), kept)
    source.progress = progress
    progress.start(f"reading {source.name}", source.size)
    try:
        for session, said in said_in(source, reader, context.config.tool_turns):
            keeper.add(session, said)
    except HoldfastError:
        keeper.flush()
        if must:
            raise
        return keeper.all(source.stem, source.broken + 1)  # the others of its folder are read all the same
    finally:
        progress.end()
    return keeper.all(source.stem, source.broken)


def reader_of(source: Source, written: str | None, must: bool) -> Dialect | None:
    """Who can read it; None where nobody can and it need not be."""
    try:
        reader = dialect(source, written)
    except HoldfastError:
        if must:
            raise
        return None
    if reader is None and must:
        raise unknown(source)
    return reader


def said_in(source: Source, reader: Dialect, tools: bool) -> Iterator[tuple[str, TranscriptLine]]:
    """Every turn with its session, without what no one said: blocks of Holdfast or of the client, and what `tools` were
    given and gave back, unless that is asked for. A turn that says nothing else is left out."""
    for said in reader.turns(source.rows(), source.stem):
        if said.role == "tool" and not tools:
            continue
        text = transcript.strip_own_output(said.text)
        bare = noise.remove_noise(said.replace(text=text) if text != said.text else said)
        if bare.text.strip():
            yield said.session or source.stem, bare


def _places(context: Context, scope: str) -> list[Scope]:
    return [context.scope(scope), *context.visible_scopes(scope)[1:]]


def of_folder(context: Context, folder: str) -> Context:
    """Who works in the folder that a transcript names: its sessions are that project's, wherever we stand. A project that
    the caller names itself comes first."""
    if context.project_override:
        return context
    from holdfast.context.caller import Context

    other = Context(
        context.config, None, context.session, context.agent, context.client, context.origin, folder, context.progress
    )
    other.ledger = context.ledger  # the only room of it that is used, and open already
    return other


def _gated(given: object, number: int, tools: Tools, redact: bool) -> Iterator[TranscriptLine]:
    """The turns of one mapping, if they may be kept; nothing where it says nothing."""
    try:
        if not isinstance(given, Mapping):
            raise UsageError(f"a turn is a mapping, not {type(given).__name__}", 'Such as {"role": "user", "text": "..."}')
        said = _gate(given, redact)
    except HoldfastError as error:
        kept = "turns before it may be kept, and none is ever added twice"
        error.hint = Template(error.hint, "; ", kept) if error.hint else kept
        error.about("turn", number)
        raise
    if said is not None:
        yield said
    yield from chat.calls(dict(given), None, tools)


def _gate(given: Mapping[str, Any], redact: bool) -> TranscriptLine | None:
    speaker = given.get("speaker") or given.get("name") or None
    if speaker is not None:
        speaker = validate.one_line(speaker, "speaker", 200)
        if not redact:
            validate.reject_secrets(speaker, "a speaker", fix="Give another name, or log it with redact=True")
    role = transcript.parse_role(given.get("role"), speaker)
    if role is None:
        raise UsageError(f"unknown role {str(given.get('role'))[:40]!r}", f"One of: {', '.join(transcript.ROLES)}")
    text = given.get("text") if given.get("text") is not None else given.get("content")
    text = message_text(text) if isinstance(text, list | dict) else text
    if isinstance(text, str):
        text = noise.remove_noise(TranscriptLine(role, transcript.strip_own_output(text))).text
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    if isinstance(text, str):
        text = transcript.truncate(text, transcript.TOOL_BYTES) if role == "tool" else text
    text = validate.text(text, transcript.TURN_BYTES, "a turn", allowed=redact)  # the keeper redacts it
    id = given.get("id")
    return TranscriptLine(
        role, text, str(id) if id is not None and id != "" else None, transcript.parse_time(given.get("time")), speaker
    )


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 500 or not value.isprintable():
        raise InvalidKey(
            f"not a valid {what}: {ascii(validate.without_secrets(str(value)))[:80]}", "Use up to 500 characters on one line"
        )
    validate.reject_secrets(value, f"a {what}", fix="Give it another name")
    return value


def without_secrets(said: TranscriptLine) -> TranscriptLine:
    """A turn as it may be kept; one with too many places to look at is a mark, and those after it are kept all the same."""
    text, rules = validate.redact_or_withhold(said.text)
    speaker = validate.redact_or_withhold(said.speaker)[0] if said.speaker else said.speaker
    id = validate.redact_or_withhold(said.id)[0] if said.id else said.id
    if not rules and (speaker, id) == (said.speaker, said.id):
        return said
    return said.replace(text=text, speaker=speaker, id=id)


class _Keeper:
    """Sorts turns by session, and writes them in batches."""

    def __init__(self, context: Context, scope: str, client: str, where: str = "", kept: str = "") -> None:
        self._context, self._kept = context, kept
        self._whose = of_folder(context, where) if where and scope == "project" else context
        self._places = _places(self._whose, scope)
        self._client = client
        self._counts: dict[str, list[int]] = {}  # of each session: added, known, purged, redacted
        self._paths: dict[str, str] = {}
        self._open: dict[str, _Session] = {}
        self._seen = CompactMap()
        self._waiting = self._chars = 0

    def add(self, session: str, said: TranscriptLine) -> None:
        if not said.text.strip():
            return
        session, said = validate.redact_or_withhold(session)[0], without_secrets(said)
        one = self._session(session)
        one.pending.append(transcript.assign_id(said, session, self._seen))
        self._waiting += 1
        self._chars += len(said.text)
        if self._waiting >= _BATCH_TURNS or self._chars >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        self._waiting = self._chars = 0
        for one in self._open.values():
            one.flush()
        self._whose.record_project()

    def done(self, session: str, broken: int = 0) -> Logged:
        """What happened to one session."""
        self.flush()
        added, known, purged, redacted = self._counts.get(session, (0, 0, 0, 0))
        path = self._paths.get(session) or self._roll(session).path
        return Logged(session, self._client, added, known, path, broken, purged, redacted)

    def all(self, otherwise: str, broken: int) -> list[Logged]:
        """What happened to each; what could not be read is counted with the first."""
        self.flush()
        sessions = list(self._counts) or ([otherwise] if broken else [])
        return [self.done(session, 0 if number else broken) for number, session in enumerate(sessions)]

    def _session(self, name: str) -> _Session:
        one = self._open.pop(name, None)
        if one is None:
            if len(self._open) >= _OPEN:
                self._open.pop(next(iter(self._open))).flush()
            transcript_file = self._roll(name)
            self._paths[name] = transcript_file.path
            counts = self._counts.setdefault(name, [0, 0, 0, 0])
            one = _Session(transcript_file, name, self._client, counts, self._context, self._kept)
        self._open[name] = one  # the last used is the last
        return one

    def _roll(self, session: str) -> TranscriptFile:
        """The session's file: where it is already, be it under an older id of the project, else in the caller's scope."""
        name = f"{transcript.file_name(self._client)}/{transcript.file_name(session)}.jsonl"
        transcript_files = [_rolls(self._context, place.folder).transcript_file(name) for place in self._places]
        return next(
            (
                transcript_file
                for transcript_file in transcript_files[1:]
                if transcript_file.stamp() and not transcript_files[0].stamp()
            ),
            transcript_files[0],
        )


class _Session:
    """One session that is being written."""

    def __init__(
        self, transcript_file: TranscriptFile, name: str, client: str, counts: list[int], context: Context, kept: str = ""
    ) -> None:
        self.pending: list[TranscriptLine] = []
        self._roll = transcript_file
        self._kept = kept
        self._name, self._client = name, client
        self._counts = counts
        self._context = context
        self._known = KnownTurns()
        self._place = Place()

    def flush(self) -> None:
        """Write those that are new, after what others wrote meanwhile."""
        if self.pending:
            self._place = self._roll.append(self._compose, self._place)

    def _compose(self, others: Iterator[Line], empty: bool) -> list[bytes]:
        for line in others:
            if line.number == 1:
                _header(self._roll, line.data, self._name)
            elif said := transcript.parse(line.data):
                self._know(said)
        said_now, self.pending = self.pending, []
        new = [one for said in said_now if (one := self._known.admit(said))]
        self._counts[1] += len(said_now) - len(new)
        purged = self._context.purged_turns([(self._name, said.id or "", said.text) for said in new], standing=False)
        new = [said for place, said in enumerate(new) if place not in purged]
        self._counts[0] += len(new)
        self._counts[2] += len(purged)
        self._counts[3] += sum([_REDACTED in f"{said.speaker} {said.text}" for said in new])
        lines = [transcript.render(one) for one in new]
        if empty and new:
            lines.insert(
                0, transcript.render_header(TranscriptHeader(self._name, self._client, new[0].time or dates.now(), self._kept))
            )
        return lines

    def _know(self, said: TranscriptLine) -> None:
        """Count a turn as known. One that was kept with noise in it is known by what is left, so that it is not added again."""
        bare = noise.remove_noise(said)
        self._known.add(bare)
        if bare is not said and bare.text and any(said.id == transcript.derive_id(said, number) for number in range(_SAME)):
            for role in (said.role, "user"):
                one = bare.replace(role=role)
                self._known.add(one.replace(id=transcript.derive_id(one, 0)))


def _header(transcript_file: TranscriptFile, line: bytes, session: str | None = None) -> TranscriptHeader:
    header = transcript.parse_header(line)
    if header is None:
        raise Damaged(f"{transcript_file.path} does not start as a transcript does", "Move it out of the transcripts folder")
    if session is not None and header.session != session:
        raise Damaged(f"{transcript_file.path} is the transcript of another session", "Give it the name it had")
    return header


# --- reading ----------------------------------------------------------------------------------------------------------


def expand(context: Context, what: str, before: int, after: int, session: str | None) -> list[Turn]:
    """The steps of `Memory.expand`: the turn that a citation or an id names, with those around it."""
    for count in (before, after):
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_AROUND:
            raise UsageError(f"before and after must be 0 to {MOST_AROUND}, not {count!r}", "Ask for fewer turns")
    if not isinstance(what, str) or not what.strip():
        raise UsageError("nothing to look around", "Give a turn's id or the citation of a hit")
    if not context.config.enabled:
        return []
    transcript_file, first, last = _cited(context, what) or _found(context, what, session)
    around = _around(context, transcript_file, first, last, before, after)
    if not around:
        raise _missing(what)
    return around


def turns_of(transcript_file: TranscriptFile, place: Place = Place(), header: TranscriptHeader | None = None) -> Iterator[Turn]:
    """Every turn of a session's file from a place on; from the start the header is read, later it must be given."""
    for line in transcript_file.lines(place):
        if header is None:
            header = _header(transcript_file, line.data)
        elif said := transcript.parse(line.data):
            yield transcript.to_turn(said, header, line.number, transcript_file.path)


def _cited(context: Context, what: str) -> tuple[TranscriptFile, int, int] | None:
    match = _CITATION.match(what)
    if match is None:
        return None
    if match["scope"] not in context.visible_folders(None):
        raise _missing(what)
    first = int(match["first"])
    return _rolls(context, match["scope"]).transcript_file(match["name"]), first, int(match["last"] or first)


def _found(context: Context, id: str, session: str | None) -> tuple[TranscriptFile, int, int]:
    """The one turn of that id that this caller may see."""
    found = [
        (transcript_file, number)
        for folder in context.visible_folders(None)
        for transcript_file in _of_session(_rolls(context, folder), session)
        if (number := _line_of(transcript_file, id))
    ]
    if not found:
        raise _missing(id)
    if len(found) > 1:
        names = ", ".join(transcript_file.path for transcript_file, _ in found[:3])
        raise UsageError(f"several sessions have a turn {id!r}: {names}", "Say which session, or give a hit's citation")
    transcript_file, number = found[0]
    return transcript_file, number, number


def _of_session(transcript_files: TranscriptFiles, session: str | None) -> Iterator[TranscriptFile]:
    wanted = f"/{transcript.file_name(session)}.jsonl" if session is not None else ".jsonl"
    for entry in transcript_files.census():
        if entry.regular and entry.name.endswith(wanted):
            yield transcript_files.transcript_file(entry.name)


def _line_of(transcript_file: TranscriptFile, id: str) -> int | None:
    needle = transcript.encode_id(id)
    for line in transcript_file.lines():
        if needle in line.data and (said := transcript.parse(line.data)) and said.id == id:
            return line.number
    return None


def _around(context: Context, transcript_file: TranscriptFile, first: int, last: int, before: int, after: int) -> list[Turn]:
    """The turns on those lines and around them; none if those lines hold none."""
    ahead: deque[Turn] = deque(maxlen=before)
    there: list[Turn] = []
    follow: list[Turn] = []
    for turn in turns_of(transcript_file):
        line = turn.number + 2
        if line < first:
            ahead.append(turn)
        elif line <= last:
            there.append(turn)
        elif not there or len(follow) == after:
            break
        else:
            follow.append(turn)
    around = [*ahead, *there, *follow]
    gone = context.purged_turns([(one.session, one.id or "", one.text) for one in around])
    left = [one for place, one in enumerate(around) if place not in gone]  # what was purged and came back is not told
    return left if any(one in left for one in there) else []


def _missing(what: str) -> NotFound:
    fix = Template("Give a turn's id, or a citation as ", command("recall"), " shows it")
    return NotFound(f"no turn {what[:200]!r}", fix)


def _rolls(context: Context, folder: str) -> TranscriptFiles:
    return context.store.transcript_files(folder)
