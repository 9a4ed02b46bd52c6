"""Interpret a note file: the note, its versions with two times (validity and recording), and its next version."""

from __future__ import annotations

from holdfast.base.dates import format_timestamp
from holdfast.base.ids import digest
from holdfast.base.platform_keys import is_name_of
from holdfast.base.record import Record
from holdfast.errors import Conflict, NotFound, Template, command
from holdfast.formats import note_file
from holdfast.formats.note_file import NoteFile, NoteHeader, replace_invalid
from holdfast.models import ORIGINS, Note, Scope, Source, Version, least_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.formats.history_file import OlderVersion
    from holdfast.formats.note_file import Older
    from holdfast.formats.relations import StatedRelation


class ParsedNote(Record):
    """The bytes of a note file and their parsed parts."""

    data: bytes
    file: NoteFile
    header: NoteHeader
    text: str
    lines: tuple[int, int]
    past_count: int  # older versions, in this file and in history files
    is_checked: bool = False  # this process has just searched the text for secrets

    @property
    def digest(self) -> str:
        return digest(self.data)

    @property
    def trust(self) -> str:
        """Return the origin whose trust the text has: its source's, or `user` if a person approved exactly this text."""
        is_approved = self.header.approved is not None and self.header.approved[1] == text_digest(self.text)
        return ORIGINS[0] if is_approved else self.header.source.trusted


def parse_note(data: bytes, modified: int) -> ParsedNote:
    """Parse a note file; `modified` (seconds since 1970) dates a file whose header has no dates."""
    file = note_file.parse(data.decode("utf-8", "surrogateescape"))
    header = note_file.parse_header(file)
    updated = header.updated or header.created or format_timestamp(modified)
    header = header.replace(created=header.created or updated, updated=updated, valid_from=header.valid_from or updated)
    text, first = note_file.current_text(file), 1 + note_file.render_frontmatter(file).count("\n")
    lines, past_count = (first, first + text.count("\n")), note_file.count_past_versions(file) + _count_older(header)
    return ParsedNote(data=data, file=file, header=header, text=text, lines=lines, past_count=past_count)


def _count_older(header: NoteHeader) -> int:
    return header.older.versions if header.older else 0


def text_digest(text: str) -> str:
    """Return the digest by which an approval names a text."""
    return digest(text.encode("utf-8", "surrogateescape"))


# --- the note and its versions --------------------------------------------------------------------------------------------


def to_note(scope: Scope, key: str, parsed: ParsedNote, quarantine: tuple[str, ...] = ()) -> Note:
    """Return the current note; it is quarantined if its trust is one of the origins in `quarantine`."""
    header = parsed.header
    return Note(
        scope=scope,
        key=key,
        id=header.id,
        text=replace_invalid(parsed.text),
        type=header.type,
        tags=header.tags,
        created=header.created,
        updated=header.updated,
        source=header.source,
        valid_from=header.valid_from,
        valid_to=header.valid_to,
        pinned=header.pinned,
        path=f"{scope.folder}/notes/{key}.md",
        lines=parsed.lines,
        version=parsed.digest,
        versions=parsed.past_count + 1,
        quarantined=parsed.trust in quarantine,
        name=platform_key(key, parsed.header),
    )


def platform_key(key: str, header: NoteHeader) -> str | None:
    """Return the platform key that a note was stored under; None if its key is its own, or if the name does not fit the key."""
    return header.name if header.name and is_name_of(header.name, key) else None


def to_note_at(
    scope: Scope, key: str, parsed: ParsedNote, *, as_of: str, known_at: str | None, quarantine: tuple[str, ...] = (),
    older: Iterable[OlderVersion] = (),
) -> Note:  # fmt: skip
    """Return the note as it was at `as_of`, as far as was recorded by `known_at`; raise NotFound if it had no version then.

    `older` are its versions in history files, newest first; they are read no further than needed.
    """
    read: list[Version] = []  # the versions that `find_version` has looked at
    places: list[OlderVersion] = []

    def iterate() -> Iterator[Version]:
        for version in list_versions(parsed):
            read.append(version)
            yield version
        for place in older:
            read.append(place.version.replace(text=replace_invalid(place.version.text)))
            places.append(place)
            yield place.version

    position = find_version(iterate(), as_of, known_at)
    if position is None:
        fix = Template(command("get {} --history", key), " shows them all")
        if known_at is not None and not any(version.recorded <= known_at for version in read):
            raise NotFound(f"no version of {key!r} had been recorded by {known_at}", fix)
        raise NotFound(f"{key!r} had no version at {as_of}", fix)
    version, note = read[position], to_note(scope, key, parsed)
    lines, path = (places[-1].lines, f"{scope.folder}/history/{places[-1].file}") if places else (None, note.path)
    return note.replace(
        text=version.text,
        type=version.type,
        tags=version.tags,
        updated=version.recorded,
        source=version.source,
        valid_from=version.valid_from,
        valid_to=version.until,
        lines=_version_lines(parsed, position) if lines is None else lines,
        path=path,
        quarantined=(version.source.trusted if position else parsed.trust) in quarantine,
    )


def read_past_text(parsed: ParsedNote, number: int) -> tuple[str, tuple[int, int]]:
    """Return the text and lines of an older version, counted from the oldest; ("", (0, 0)) if the file does not have it."""
    versions = list_versions(parsed)
    position = parsed.past_count - number
    is_past = 0 < position < len(versions)
    return (versions[position].text, _version_lines(parsed, position)) if is_past else ("", (0, 0))


def list_versions(parsed: ParsedNote) -> list[Version]:
    """Return every version that is in the note's own file, newest first; see `note_history` for all versions."""
    past = note_file.past_versions(parsed.file)
    return [
        _current_version(parsed).replace(text=replace_invalid(parsed.text)),
        *[version.replace(text=replace_invalid(version.text)) for version in past],
    ]


def find_version(versions: Iterable[Version], as_of: str | None, known_at: str | None) -> int | None:
    """Return the position of the newest version that was valid at `as_of`, as far as was recorded by `known_at`."""
    moment = as_of or known_at or ""
    replaced: str | None = None
    for position, version in enumerate(versions):
        is_known = known_at is None or version.recorded <= known_at
        is_end_known = replaced is not None and (known_at is None or replaced <= known_at)
        end = version.closed if is_end_known else version.valid_to
        if is_known and version.valid_from <= moment and (end is None or moment < end):
            return position
        replaced = version.recorded
    return None


def _current_version(parsed: ParsedNote) -> Version:
    header = parsed.header
    return Version(
        text=parsed.text,
        type=header.type,
        tags=header.tags,
        source=header.source,
        recorded=header.updated,
        valid_from=header.valid_from,
        valid_to=header.valid_to,
    )


def _version_lines(parsed: ParsedNote, position: int) -> tuple[int, int]:
    return parsed.lines if position == 0 else note_file.past_version_lines(parsed.file)[position - 1]


# --- changes of the header ------------------------------------------------------------------------------------------------


def mark_restored(parsed: ParsedNote, now: str) -> ParsedNote:
    """Return a note back from the archive; without the new date, retention would archive it again at once."""
    return _replace_header(parsed, parsed.header.replace(restored=now))


def mark_approved(parsed: ParsedNote, now: str) -> ParsedNote:
    """Return the note with a person's approval of its current text."""
    return _replace_header(parsed, parsed.header.replace(approved=(now, text_digest(parsed.text))))


def lower_trust(parsed: ParsedNote, trust: str) -> ParsedNote:
    """Return the note with at most the trust of an origin and without approval, so that a person must review it again."""
    source = parsed.header.source
    least = least_trusted(source.trusted, trust)
    source = source.replace(trust=least if least != source.origin else None)
    return _replace_header(parsed, parsed.header.replace(source=source, approved=None))


def state_relations(parsed: ParsedNote, relations: tuple[StatedRelation, ...], new_id: str) -> ParsedNote:
    """Return the note with these relations; it gets an id if it has none."""
    header = parsed.header
    return _replace_header(parsed, header.replace(relations=relations, id=header.id or new_id))


def move_to_history(parsed: ParsedNote, kept: int, older: Older) -> ParsedNote:
    """Return the note with its newest `kept` older versions; the others are in history files, as `older` says."""
    file, header = note_file.keep_newest(parsed.file, kept), parsed.header.replace(older=older)
    file = note_file.replace_header(file, header)
    return _render(file, header, parsed.text, past_count=older.versions + kept, is_checked=parsed.is_checked)


def _replace_header(parsed: ParsedNote, header: NoteHeader) -> ParsedNote:
    file = note_file.replace_header(parsed.file, header)
    return _render(file, header, parsed.text, past_count=parsed.past_count)


def _render(file: NoteFile, header: NoteHeader, text: str, *, past_count: int, is_checked: bool = False) -> ParsedNote:
    """Return a file that is about to be written, without parsing it again."""
    before = note_file.render_frontmatter(file)
    first, data = 1 + before.count("\n"), f"{before}{file.body}{file.past}".encode("utf-8", "surrogateescape")
    lines = (first, first + text.count("\n"))
    return ParsedNote(data=data, file=file, header=header, text=text, lines=lines, past_count=past_count, is_checked=is_checked)


# --- the next version -----------------------------------------------------------------------------------------------------


class Draft(Record):
    """The text and properties that a writer gives a note; None keeps a property."""

    key: str
    text: str
    source: Source
    type: str | None = None
    tags: tuple[str, ...] | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    pinned: bool | None = None
    expected: str | None = None
    name: str | None = None  # the platform key that the note key was derived from
    amends: bool | None = None  # the text is made from the previous one; None: unless a person wrote it
    redacted: tuple[str, ...] = ()  # rules whose names replace secrets
    allowed: str = ""  # the rules of secrets that a person wants to keep, and why
    is_checked: bool = False  # the whole text was searched for secrets


class RejectedText(Exception):
    """A write contains texts that a person rejected: the texts, and the digests by which each is known."""

    def __init__(self, rejected: dict[str, str]) -> None:
        self.rejected = rejected


def compose(draft: Draft, old: ParsedNote | None, now: str, new_id: str) -> tuple[str, ParsedNote]:
    """Return the action (created, updated or unchanged) and the file after it; raise Conflict if `expected` does not match."""
    _check_expected(draft, old)
    if old is None:
        header = NoteHeader(
            id=new_id,
            type=draft.type or "project",
            name=draft.name or "",
            tags=draft.tags or (),
            created=now,
            updated=now,
            source=draft.source,
            valid_from=draft.valid_from or now,
            valid_to=draft.valid_to,
            pinned=bool(draft.pinned),
        )
        file = note_file.create(header, draft.text)
        return "created", _render(file, header, draft.text, past_count=0, is_checked=draft.is_checked)
    header = old.header
    now = max(now, header.updated)  # the clock may go backwards; a note's history does not
    if not _differs(draft, header, old.text):
        return "unchanged", old
    new = _next_header(draft, header.replace(id=header.id or new_id), now).replace(source=_next_source(draft, old))
    closed = max(new.valid_from, header.valid_from)
    if header.valid_to and header.valid_from <= header.valid_to < closed:
        closed = header.valid_to
    file = note_file.add_version(old.file, _current_version(old).replace(closed=closed), new, draft.text)
    return "updated", _render(file, new, draft.text, past_count=old.past_count + 1, is_checked=draft.is_checked)


def _next_header(draft: Draft, header: NoteHeader, now: str) -> NoteHeader:
    return header.replace(
        type=draft.type or header.type,
        name=draft.name or header.name,
        tags=header.tags if draft.tags is None else draft.tags,
        updated=now,
        approved=None,
        valid_from=draft.valid_from or now,
        valid_to=draft.valid_to,
        restored="",
        pinned=header.pinned if draft.pinned is None else draft.pinned,
    )


def _next_source(draft: Draft, old: ParsedNote) -> Source:
    """Return the source of the next version; only a person's own text is trusted more than the text that it replaces."""
    source, previous = draft.source, old.header.source
    amends = source.origin != ORIGINS[0] if draft.amends is None else draft.amends
    if not amends:
        return source
    if draft.amends:
        session = (f"session:{previous.session}",) if previous.session and previous.session != source.session else ()
        source = source.replace(made_from=tuple(dict.fromkeys((*previous.made_from, *session, *source.made_from))))
    trust = least_trusted(source.trusted, old.trust)
    return source if trust == source.trusted else source.replace(trust=trust)


def _differs(draft: Draft, header: NoteHeader, text: str) -> bool:
    return (
        draft.text != text
        or draft.type not in (None, header.type)
        or draft.name not in (None, header.name)
        or draft.tags not in (None, header.tags)
        or draft.pinned not in (None, header.pinned)
        or draft.valid_from not in (None, header.valid_from)
        or draft.valid_to not in (None, header.valid_to)
    )


def _check_expected(draft: Draft, old: ParsedNote | None) -> None:
    if draft.expected is None:
        return
    if (old.digest if old else "") != draft.expected:
        if old and not draft.expected:
            raise Conflict(f"the note {draft.key!r} already exists", "Choose another key, or read the note and update it")
        change = "has changed since you read it" if old else "no longer exists"
        raise Conflict(f"the note {draft.key!r} {change}", "Read it again and apply your edit to the new version")
