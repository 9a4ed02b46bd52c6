"""What the file of a note means: the note, its versions on both clocks, its next version, its entry in the catalogue. Pure."""

from __future__ import annotations

from holdfast.base.dates import timestamp as utc
from holdfast.base.ids import KEY_PATTERN, digest
from holdfast.base.lazy_re import pattern
from holdfast.base.markdown import find_title
from holdfast.base.record import Record
from holdfast.errors import Conflict, NotFound, Template, command
from holdfast.formats import note_file as page
from holdfast.formats.note_file import NoteFile, NoteHeader, replace_invalid
from holdfast.models import ORIGINS, TYPES, Fact, Note, Scope, Source, Version, least_trusted

Stamp = tuple[int, int, int]
_COMMENT = pattern(r"(?s)<!--.*?-->")
_HEADING = pattern(r"(?m)^#{1,6} ")
_SECTION_LINES = 40
_ENTRY_CHARS = 500  # of an entry's name or description


def fingerprint_of(stamp: Stamp, name: str) -> int:
    """A file's share of its folder's fingerprint. In a tree its path counts: moving a folder changes nothing else."""
    if not name:
        return hash(stamp)
    import zlib

    return hash((*stamp, zlib.crc32(name.encode("utf-8", "surrogateescape"))))


class Passage(Record):
    """A piece of text that can be found by itself."""

    seq: int
    past: bool
    names: str
    text: str
    lines: tuple[int, int]
    type: str | None
    tags: tuple[str, ...]
    source: Source | None
    recorded: str
    valid_from: str | None = None
    valid_to: str | None = None
    closed: str | None = None
    replaced: str | None = None
    turn: str | None = None
    speaker: str | None = None
    offset: int | None = None


class IndexEntry(Record):
    """A file, as the catalogue knows it."""

    scope: str
    part: str
    name: str
    stamp: Stamp
    digest: str
    kind: str
    key: str
    note_id: str
    title: str
    type: str | None
    tags: tuple[str, ...]
    created: str
    updated: str
    source: Source
    valid_from: str | None
    valid_to: str | None
    pinned: bool
    touched: str
    lines: tuple[int, int]
    versions: int
    problem: str
    passages: tuple[Passage, ...]
    facts: tuple[Fact, ...]
    trust: str = ""  # of a note: how far its text can be trusted,
    exposed: bool = False  # and whether it seems to hold a secret
    prose: bool = False  # whether it says more than the facts it states


def note_entry(
    scope: str, name: str, parsed: ParsedNote, stamp: Stamp, newest_only: bool = False, archived_as: str = ""
) -> IndexEntry:
    """A note's file; with `newest_only` just the current version and the one before it. A file of the archive is named after
    its key and a time: `archived_as` is the key."""
    key, part = (archived_as, "archive") if archived_as else (name.removesuffix(".md"), "notes")
    head, text = parsed.head, replace_invalid(parsed.text)
    title = find_title(text, key)
    past = page.past_versions(parsed.page, 1 if newest_only else None) if parsed.older else []
    passages = _versions(key, title, text, head, past, parsed.lines, parsed.older)
    facts = _facts(text, title, scope, f"{scope}/{part}/{name}", parsed.lines[0])
    return IndexEntry(
        scope, part, name, stamp, parsed.digest, "note", key, head.id, title, head.type, head.tags, head.created,
        head.updated, head.source, head.valid_from, head.valid_to, head.pinned, max(head.updated, head.restored),
        parsed.lines, parsed.older + 1, _problem(key, parsed), passages, facts, parsed.trust, parsed.exposed,
        bool(facts) and _has_prose(text),
    )  # fmt: skip


def file_entry(scope: str, name: str, data: bytes, stamp: Stamp, modified: int) -> IndexEntry:
    """A text file of the agent's own tree: one passage a section."""
    text = replace_invalid(data.decode("utf-8", "surrogateescape"))
    title = find_title(text, name.rsplit("/", 1)[-1].rsplit(".", 1)[0])
    updated, entry = utc(modified), entry_head(name, text)
    called = f"{name} {title}" if entry.name in ("", title) else f"{name} {title} {entry.name}"
    passages = tuple(
        [
            Passage(seq, False, called, section, lines, entry.type, (), None, updated)
            for seq, (lines, section) in enumerate(sections(_without_comments(text, name)))
        ]
    )
    facts = _facts(text, title, scope, f"{scope}/files/{name}", 1)
    return IndexEntry(
        scope, "files", name, stamp, digest(data), "file", name, "", title, entry.type, (), updated, updated, Source(), None,
        None, False, updated, (1, text.count("\n") + 1), 1, entry.problem, passages, facts,
        prose=bool(facts) and _has_prose(page.parse(text).body if text.startswith("---") else text),
    )  # fmt: skip


def unreadable_entry(scope: str, part: str, name: str, stamp: Stamp, problem: str) -> IndexEntry:
    """A file that is there but is not text we can keep: known, so that it is looked at once and reported."""
    kind = "note" if part in ("notes", "archive") else "file"
    return IndexEntry(
        scope, part, name, stamp, "", f"bad {kind}", name, "", name, None, (), "", "", Source(), None, None, False,
        "", (1, 1), 1, problem, (), (),
    )  # fmt: skip


def _facts(text: str, title: str, scope: str, path: str, first_line: int) -> tuple[Fact, ...]:
    if "[" not in text or not any(f"[{digit}" in text for digit in "0123456789"):
        return ()
    from holdfast.formats.facts import parse_facts

    return tuple(parse_facts(text, title, Scope.of_folder(scope), path, first_line))


def _has_prose(text: str) -> bool:
    from holdfast.formats.facts import has_prose

    return has_prose(text)


def _without_comments(text: str, name: str) -> str:
    """Markdown as a reader sees it, line for line: what stands in comments is not said, and a heading over nothing else says
    nothing."""
    if "<!--" not in text or not name.endswith(".md"):
        return text
    rows = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text).split("\n")
    for (first, last), section in sections(text):
        if "<!--" in section and all(not row.strip() or _HEADING.match(row) for row in rows[first - 1 : last]):
            rows[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(rows)


def sections(text: str) -> list[tuple[tuple[int, int], str]]:
    """A file cut at its headings, and long sections cut again, each with its lines."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    cuts = [0]
    for number, line in enumerate(lines):
        if number and (_HEADING.match(line) or number - cuts[-1] >= _SECTION_LINES):
            cuts.append(number)
    pieces = []
    for start, end in zip(cuts, [*cuts[1:], len(lines)], strict=True):
        piece = "\n".join(lines[start:end])
        if piece.strip():
            pieces.append(((start + 1, max(end, start + 1)), piece))
    return pieces


def _versions(
    key: str, title: str, current: str, head: NoteHeader, past: list[Version], lines: tuple[int, int], older: int
) -> tuple[Passage, ...]:
    called = f"{key.replace('-', ' ')} {title if title != key else ''}"
    passages = [
        Passage(
            older, False, f"{called} {' '.join(head.tags)}", current, lines, head.type, head.tags, head.source,
            head.updated, head.valid_from, head.valid_to,
        )
    ]  # fmt: skip
    replaced = head.updated
    for place, version in enumerate(past):
        passages.append(
            Passage(
                older - 1 - place, True, f"{called} {' '.join(version.tags)}", replace_invalid(version.text), (0, 0),
                version.type, version.tags, version.source, version.recorded, version.valid_from, version.valid_to,
                version.closed, replaced,
            )
        )  # fmt: skip
        replaced = version.recorded
    return tuple(passages)


def _problem(key: str, parsed: ParsedNote) -> str:
    found = list(parsed.head.problems)
    if not KEY_PATTERN.match(key):
        found.append("its name is not a valid key")
    if not parsed.data.isascii() and parsed.data.decode("utf-8", "replace").encode() != parsed.data:
        found.append("not UTF-8")
    if not parsed.page.opening and parsed.data.startswith(b"---"):
        found.append("its frontmatter is never closed")
    if not parsed.text.strip():
        found.append("it is empty")
    return "; ".join(found)


class EntryHead(Record):
    """What the frontmatter of an entry file says, and what is wrong with it."""

    name: str = ""
    description: str = ""
    type: str | None = None
    problem: str = ""


def entry_head(name: str, text: str) -> EntryHead:
    """Read the frontmatter of a file. A Markdown file that starts one should have a `name` in it (F5)."""
    if not name.endswith(".md") or not text.startswith("---"):
        return EntryHead()
    content = page.parse(text)
    if not content.opening:
        return EntryHead(problem="its frontmatter is never closed")
    fields = _plain_fields(content.fields)
    if fields is None:
        import yaml

        try:
            said = yaml.load("".join([raw for _, raw in content.fields])[:16384], Loader=yaml.BaseLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            return EntryHead(problem="its frontmatter is not valid YAML")
        fields = {key: value for key, value in said.items() if isinstance(value, str)} if isinstance(said, dict) else {}
        if isinstance(said, dict) and said.get("name") and "name" not in fields:
            fields["name"] = str(said["name"])
    called, type = _one_line(fields.get("name", "")), fields.get("type", "").strip().lower()
    problem = "" if called else "its frontmatter has no name"
    return EntryHead(called, _one_line(fields.get("description", "")), type if type in TYPES else None, problem)


def _plain_fields(fields: tuple[tuple[str, str], ...]) -> dict[str, str] | None:
    """The fields, if each is plain words on one line, as most are; None where only a YAML parser can tell."""
    found: dict[str, str] = {}
    for key, raw in fields:
        value = page.plain_value(key, raw)
        if value is None or key in found:
            return None
        found[key] = value
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_ENTRY_CHARS]


# --- the note and its versions -----------------------------------------------------------------------------------------


class ParsedNote(Record):
    """A note's file, opened: its bytes and what they say."""

    data: bytes
    page: NoteFile
    head: NoteHeader
    text: str
    lines: tuple[int, int]
    older: int
    gated: bool = False  # whether its text passed the gate just now, and so holds no secret

    @property
    def digest(self) -> str:
        return digest(self.data)

    @property
    def exposed(self) -> bool:
        """Whether its text seems to hold a secret."""
        if self.gated:
            return False
        from holdfast.safety import secrets

        return secrets.has_secret(replace_invalid(self.text))

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
    gated: bool = False  # whether all of the text was looked through for secrets


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
        return "created", _leaf(page.create(head, draft.text), head, draft.text, 0, draft.gated)
    head = old.head
    now = max(now, head.updated)  # the clock may go backwards; a note's history does not
    if not _differs(draft, head, old.text):
        return "unchanged", old
    new = _head(draft, head.replace(id=head.id or new_id), now).replace(source=_source(draft, old))
    closed = max(new.valid_from, head.valid_from)
    if head.valid_to and head.valid_from <= head.valid_to < closed:
        closed = head.valid_to
    before = Version(old.text, head.type, head.tags, head.source, head.updated, head.valid_from, head.valid_to, closed)
    return "updated", _leaf(page.add_version(old.page, before, new, draft.text), new, draft.text, old.older + 1, draft.gated)


def _leaf(content: NoteFile, head: NoteHeader, text: str, older: int, gated: bool = False) -> ParsedNote:
    """A file we are about to write, without reading it back."""
    above = page.render_frontmatter(content)
    first, data = 1 + above.count("\n"), f"{above}{content.body}{content.past}".encode("utf-8", "surrogateescape")
    return ParsedNote(data, content, head, text, (first, first + text.count("\n")), older, gated)


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
