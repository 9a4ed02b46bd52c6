"""The meaning of a note file: the note, its versions on both clocks, its next version."""

from __future__ import annotations

from holdfast.base.dates import timestamp as utc
from holdfast.base.ids import digest
from holdfast.base.record import Record
from holdfast.errors import Conflict, NotFound, Template, command
from holdfast.formats import note_file as page
from holdfast.formats.note_file import NoteFile, NoteHeader, replace_invalid
from holdfast.models import ORIGINS, Note, Scope, Source, Version, least_trusted


class ParsedNote(Record):
    """A note's file, opened: its bytes and what they say."""

    data: bytes
    page: NoteFile
    head: NoteHeader
    text: str
    lines: tuple[int, int]
    older: int
    is_checked: bool = False  # this process has just checked the text for secrets

    @property
    def digest(self) -> str:
        return digest(self.data)

    @property
    def trust(self) -> str:
        """How far its text can be trusted: as far as what it was made from, or as a person's own once one approved it."""
        approved = self.head.approved is not None and self.head.approved[1] == mark_of(self.text)
        return ORIGINS[0] if approved else self.head.source.trusted


def mark_of(text: str) -> str:
    """What an approval names a text by."""
    return digest(text.encode("utf-8", "surrogateescape"))


def parse_note(data: bytes, modified: int) -> ParsedNote:
    """The file that has these bytes. A person's file need not date itself: the file system does."""
    content = page.parse(data.decode("utf-8", "surrogateescape"))
    head = page.parse_header(content)
    updated = head.updated or head.created or utc(modified)
    head = head.replace(created=head.created or updated, updated=updated, valid_from=head.valid_from or updated)
    text, first = page.current_text(content), 1 + page.render_frontmatter(content).count("\n")
    return ParsedNote(data, content, head, text, (first, first + text.count("\n")), page.count_past_versions(content))


def restored(parsed: ParsedNote, now: str) -> ParsedNote:
    """A note back from the archive: it counts as touched, or it would be archived again at once."""
    head = parsed.head.replace(restored=now)
    return _leaf(page.replace_header(parsed.page, head), head, parsed.text, parsed.older)


def approved(parsed: ParsedNote, now: str) -> ParsedNote:
    """The same note, whose text a person read and let pass."""
    head = parsed.head.replace(approved=(now, mark_of(parsed.text)))
    return _leaf(page.replace_header(parsed.page, head), head, parsed.text, parsed.older)


def doubted(parsed: ParsedNote, trust: str) -> ParsedNote:
    """The same note, whose text a person took away: back from the trash, it waits until one lets it pass."""
    source = parsed.head.source
    least = least_trusted(source.trusted, trust)
    head = parsed.head.replace(source=source.replace(trust=least if least != source.origin else None), approved=None)
    return _leaf(page.replace_header(parsed.page, head), head, parsed.text, parsed.older)


def note_of(scope: Scope, key: str, parsed: ParsedNote, quarantine: tuple[str, ...] = ()) -> Note:
    """The note as its file says; what is trusted no more than `quarantine` says is marked."""
    head = parsed.head
    return Note(
        scope, key, head.id, replace_invalid(parsed.text), head.type, head.tags, head.created, head.updated, head.source,
        head.valid_from, head.valid_to, head.pinned, f"{scope.folder}/notes/{key}.md", parsed.lines, parsed.digest,
        parsed.older + 1, parsed.trust in quarantine,
    )  # fmt: skip


def note_at(
    scope: Scope, key: str, parsed: ParsedNote, as_of: str, known_at: str | None, quarantine: tuple[str, ...] = ()
) -> Note:
    """The note as it was."""
    versions = versions_of(parsed)
    place = version_at(versions, as_of, known_at)
    if place is None:
        fix = Template(command("get {} --history", key), " shows them all")
        raise NotFound(f"{key!r} had no version at {as_of}", fix)
    version = versions[place]
    return note_of(scope, key, parsed).replace(
        text=version.text, type=version.type, tags=version.tags, updated=version.recorded, source=version.source,
        valid_from=version.valid_from, valid_to=version.until, lines=_lines_of(parsed, place),
        quarantined=(version.source.trusted if place else parsed.trust) in quarantine,
    )  # fmt: skip


def past_text(parsed: ParsedNote, seq: int) -> tuple[str, tuple[int, int]]:
    """The text of an older version, counted from the oldest, and its lines; (0, 0) if the file has it no more."""
    versions = versions_of(parsed)
    place = len(versions) - 1 - seq
    return (versions[place].text, _lines_of(parsed, place)) if 0 < place < len(versions) else ("", (0, 0))


def versions_of(parsed: ParsedNote) -> list[Version]:
    """Every version, newest first."""
    head = parsed.head
    current = Version(replace_invalid(parsed.text), head.type, head.tags, head.source, head.updated, head.valid_from, head.valid_to)
    return [current, *[version.replace(text=replace_invalid(version.text)) for version in page.past_versions(parsed.page)]]


def version_at(versions: list[Version], as_of: str | None, known_at: str | None) -> int | None:
    """The place of the version that held at `as_of`, as far as was recorded by `known_at`: the newest that covers it."""
    moment = as_of or known_at or ""
    replaced: str | None = None
    for place, version in enumerate(versions):
        known = known_at is None or version.recorded <= known_at
        closing_known = replaced is not None and (known_at is None or replaced <= known_at)
        end = version.closed if closing_known else version.valid_to
        if known and version.valid_from <= moment and (end is None or moment < end):
            return place
        replaced = version.recorded
    return None


def _lines_of(parsed: ParsedNote, place: int) -> tuple[int, int]:
    """Where in the file the text of a version stands; 0 is the current one."""
    return parsed.lines if place == 0 else page.past_version_lines(parsed.page)[place - 1]


# --- its next version -------------------------------------------------------------------------------------------------


class Draft(Record):
    """What a writer wants a note to say. None leaves things as they are."""

    key: str
    text: str
    source: Source
    type: str | None = None
    tags: tuple[str, ...] | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    pinned: bool | None = None
    expected: str | None = None
    amends: bool | None = None  # whether it is made from the text before it; unsaid, everything but a person's own is
    redacted: tuple[str, ...] = ()  # rules whose names stand in place of secrets
    allowed: str = ""  # which secrets a person wants kept, by their rules, and why
    is_checked: bool = False  # the whole text was searched for secrets


class Rejected(Exception):
    """Texts that a person rejected would be kept as if nobody had: which ones, and the digests that each is known by."""

    def __init__(self, rejected: dict[str, str]) -> None:
        self.rejected = rejected


def compose(draft: Draft, old: ParsedNote | None, now: str, new_id: str) -> tuple[str, ParsedNote]:
    """What happens (created, updated, unchanged) and the file after it."""
    _as_expected(draft, old)
    if old is None:
        head = NoteHeader(
            new_id, draft.type or "project", draft.tags or (), now, now, draft.source, draft.valid_from or now,
            draft.valid_to, bool(draft.pinned), "", (),
        )  # fmt: skip
        return "created", _leaf(page.create(head, draft.text), head, draft.text, 0, draft.is_checked)
    head = old.head
    now = max(now, head.updated)  # the clock may go backwards; a note's history does not
    if not _differs(draft, head, old.text):
        return "unchanged", old
    new = _head(draft, head.replace(id=head.id or new_id), now).replace(source=_source(draft, old))
    closed = max(new.valid_from, head.valid_from)
    if head.valid_to and head.valid_from <= head.valid_to < closed:
        closed = head.valid_to
    before = Version(old.text, head.type, head.tags, head.source, head.updated, head.valid_from, head.valid_to, closed)
    return "updated", _leaf(page.add_version(old.page, before, new, draft.text), new, draft.text, old.older + 1, draft.is_checked)


def _leaf(content: NoteFile, head: NoteHeader, text: str, older: int, is_checked: bool = False) -> ParsedNote:
    """A file we are about to write, without reading it back."""
    above = page.render_frontmatter(content)
    first, data = 1 + above.count("\n"), f"{above}{content.body}{content.past}".encode("utf-8", "surrogateescape")
    return ParsedNote(data, content, head, text, (first, first + text.count("\n")), older, is_checked)


def _head(draft: Draft, head: NoteHeader, now: str) -> NoteHeader:
    return head.replace(
        type=draft.type or head.type,
        tags=head.tags if draft.tags is None else draft.tags,
        updated=now,
        approved=None,
        valid_from=draft.valid_from or now,
        valid_to=draft.valid_to,
        restored="",
        pinned=head.pinned if draft.pinned is None else draft.pinned,
    )


def _source(draft: Draft, old: ParsedNote) -> Source:
    """Who says it now. What nobody trusted does not become more so by being written anew: only a person's own text does."""
    source, before = draft.source, old.head.source
    if not (source.origin != ORIGINS[0] if draft.amends is None else draft.amends):
        return source
    if draft.amends:
        session = (f"session:{before.session}",) if before.session and before.session != source.session else ()
        source = source.replace(made_from=tuple(dict.fromkeys((*before.made_from, *session, *source.made_from))))
    trust = least_trusted(source.trusted, old.trust)
    return source if trust == source.trusted else source.replace(trust=trust)


def _differs(draft: Draft, head: NoteHeader, text: str) -> bool:
    return (
        draft.text != text
        or draft.type not in (None, head.type)
        or draft.tags not in (None, head.tags)
        or draft.pinned not in (None, head.pinned)
        or draft.valid_from not in (None, head.valid_from)
        or draft.valid_to not in (None, head.valid_to)
    )


def _as_expected(draft: Draft, old: ParsedNote | None) -> None:
    if draft.expected is None:
        return
    if (old.digest if old else "") != draft.expected:
        if old and not draft.expected:
            raise Conflict(f"there is a note {draft.key!r} already", "Choose another key, or get it and edit what it says")
        what = "has changed since you read it" if old else "is not there any more"
        raise Conflict(f"the note {draft.key!r} {what}", "Get it again, and make your edit to what it says now")
