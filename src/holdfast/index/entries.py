"""Index entries: what the index records of a note file, of a file in the tree, and of each passage in them."""

from __future__ import annotations

from holdfast.base.dates import format_timestamp
from holdfast.base.ids import KEY_PATTERN, digest
from holdfast.base.lazy_re import pattern
from holdfast.base.markdown import find_title
from holdfast.base.record import Record
from holdfast.formats import frontmatter, note_file, versions
from holdfast.formats.note_file import replace_invalid
from holdfast.models import Fact, Scope, Source, Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.base.ids import FileId
    from holdfast.formats.relations import StatedRelation
    from holdfast.formats.versions import ParsedNote

_COMMENT = pattern(r"(?s)<!--.*?-->")
_HEADING = pattern(r"(?m)^#{1,6} ")
_SECTION_LINES = 40
_MAX_MENTIONS = 500  # names that a text links outside its facts


class Passage(Record):
    """A piece of text that a search can find."""

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
    """The entry of one file in the index."""

    scope: str
    part: str
    name: str
    file_id: FileId
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
    trust: str = ""  # of a note: the origin whose trust its text has
    exposed: bool = False  # the text seems to contain a secret
    prose: bool = False  # the text says more than its facts
    first_seq: int = 0  # number of the first passage; the versions before it are in history files, and indexed already
    history_bytes: int = 0  # of a note: in its history files
    is_partial: bool = False  # of a note: it has only the newest versions
    platform_key: str | None = None  # of a note: the key that a platform stored it under
    relations: tuple[StatedRelation, ...] = ()  # of a note, to other notes
    mentions: tuple[str, ...] = ()  # names that the text links outside its facts


def note_entry(
    scope: str,
    name: str,
    parsed: ParsedNote,
    file_id: FileId,
    newest_only: bool = False,
    archived_as: str = "",
    older: list[Version] | None = None,
) -> IndexEntry:
    """Return the entry of a note file, with `newest_only` of its current and previous version only.

    A file in the archive is named after its key and a time; pass its key as `archived_as`. `older` are the versions in history
    files, newest first; None leaves out their passages, which the index has already.
    """
    key, part = (archived_as, "archive") if archived_as else (name.removesuffix(".md"), "notes")
    header, text = parsed.header, replace_invalid(parsed.text)
    platform_key = versions.platform_key(key, header)
    title = find_title(text, platform_key or key)
    past = note_file.past_versions(parsed.file, 1 if newest_only else None) if parsed.past_count else []
    counted = header.older.versions if header.older else 0
    facts = _find_facts(text, title, scope, path=f"{scope}/{part}/{name}", first_line=parsed.lines[0])
    return IndexEntry(
        scope=scope,
        part=part,
        name=name,
        file_id=file_id,
        digest=parsed.digest,
        kind="note",
        key=key,
        note_id=header.id,
        title=title,
        type=header.type,
        tags=header.tags,
        created=header.created,
        updated=header.updated,
        source=header.source,
        valid_from=header.valid_from,
        valid_to=header.valid_to,
        pinned=header.pinned,
        touched=max(header.updated, header.restored),
        lines=parsed.lines,
        versions=parsed.past_count + 1,
        problem=_find_problems(key, parsed),
        passages=_version_passages(_join_names(key, platform_key, title), parsed, past + (older or [])),
        facts=facts,
        trust=parsed.trust,
        exposed=_is_exposed(parsed),
        prose=bool(facts) and _has_prose(text),
        first_seq=counted if older is None and not newest_only else 0,
        history_bytes=header.older.bytes if header.older else 0,
        is_partial=(newest_only and len(past) < parsed.past_count) or (older is None and counted > 0),
        platform_key=platform_key,
        relations=header.relations,
        mentions=_find_mentions(text, title),
    )


def file_entry(scope: str, name: str, data: bytes, file_id: FileId, modified: int) -> IndexEntry:
    """Return the entry of a text file in the tree, with a passage for each section."""
    text = replace_invalid(data.decode("utf-8", "surrogateescape"))
    title = find_title(text, name.rsplit("/", 1)[-1].rsplit(".", 1)[0])
    updated, header = format_timestamp(modified), frontmatter.parse_file_header(name, text)
    names = f"{name} {title}" if header.name in ("", title) else f"{name} {title} {header.name}"
    passages = [
        Passage(
            seq=seq,
            past=False,
            names=names,
            text=section,
            lines=lines,
            type=header.type,
            tags=(),
            source=None,
            recorded=updated,
        )
        for seq, (lines, section) in enumerate(split_sections(_remove_comments(text, name)))
    ]
    facts = _find_facts(text, title, scope, path=f"{scope}/files/{name}", first_line=1)
    return IndexEntry(
        scope=scope,
        part="files",
        name=name,
        file_id=file_id,
        digest=digest(data),
        kind="file",
        key=name,
        note_id="",
        title=title,
        type=header.type,
        tags=(),
        created=updated,
        updated=updated,
        source=Source(),
        valid_from=None,
        valid_to=None,
        pinned=False,
        touched=updated,
        lines=(1, text.count("\n") + 1),
        versions=1,
        problem=header.problem,
        passages=tuple(passages),
        facts=facts,
        prose=bool(facts) and _has_prose(note_file.parse(text).body if text.startswith("---") else text),
        mentions=_find_mentions(text, title),
    )


def unreadable_entry(scope: str, part: str, name: str, file_id: FileId, *, problem: str) -> IndexEntry:
    """Return the entry of a file that is not valid text, so that it is read once and reported."""
    return IndexEntry(
        scope=scope,
        part=part,
        name=name,
        file_id=file_id,
        digest="",
        kind="bad note" if part in ("notes", "archive") else "bad file",
        key=name,
        note_id="",
        title=name,
        type=None,
        tags=(),
        created="",
        updated="",
        source=Source(),
        valid_from=None,
        valid_to=None,
        pinned=False,
        touched="",
        lines=(1, 1),
        versions=1,
        problem=problem,
        passages=(),
        facts=(),
    )


def split_sections(text: str) -> list[tuple[tuple[int, int], str]]:
    """Split a text at its headings, and long sections every 40 lines; return the lines and text of each section."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    cuts = [0]
    for number, line in enumerate(lines):
        if number and (_HEADING.match(line) or number - cuts[-1] >= _SECTION_LINES):
            cuts.append(number)
    sections = []
    for start, end in zip(cuts, [*cuts[1:], len(lines)], strict=True):
        section = "\n".join(lines[start:end])
        if section.strip():
            sections.append(((start + 1, max(end, start + 1)), section))
    return sections


def _join_names(key: str, platform_key: str | None, title: str) -> str:
    """Return what a note is called: its key, and its title if it has one."""
    called = platform_key or key.replace("-", " ")
    return f"{called} {title if title != (platform_key or key) else ''}"


def _version_passages(names: str, parsed: ParsedNote, past: list[Version]) -> tuple[Passage, ...]:
    """Return a passage for the current version and for each older one."""
    header, count = parsed.header, parsed.past_count
    passages = [
        Passage(
            seq=count,
            past=False,
            names=f"{names} {' '.join(header.tags)}",
            text=replace_invalid(parsed.text),
            lines=parsed.lines,
            type=header.type,
            tags=header.tags,
            source=header.source,
            recorded=header.updated,
            valid_from=header.valid_from,
            valid_to=header.valid_to,
        )
    ]
    replaced = header.updated
    for position, version in enumerate(past):
        passages.append(
            Passage(
                seq=count - 1 - position,
                past=True,
                names=f"{names} {' '.join(version.tags)}",
                text=replace_invalid(version.text),
                lines=(0, 0),
                type=version.type,
                tags=version.tags,
                source=version.source,
                recorded=version.recorded,
                valid_from=version.valid_from,
                valid_to=version.valid_to,
                closed=version.closed,
                replaced=replaced,
            )
        )
        replaced = version.recorded
    return tuple(passages)


def _find_facts(text: str, title: str, scope: str, *, path: str, first_line: int) -> tuple[Fact, ...]:
    if "[" not in text or not any(f"[{digit}" in text for digit in "0123456789"):
        return ()
    from holdfast.formats.facts import parse_facts

    return tuple(parse_facts(text, title, Scope.of_folder(scope), path, first_line))


def _find_mentions(text: str, title: str) -> tuple[str, ...]:
    if "[[" not in text:
        return ()
    from holdfast.formats.facts import find_mentions

    return tuple(find_mentions(text, title)[:_MAX_MENTIONS])


def _has_prose(text: str) -> bool:
    from holdfast.formats.facts import has_prose

    return has_prose(text)


def _is_exposed(parsed: ParsedNote) -> bool:
    """Return whether the text seems to contain a secret."""
    if parsed.is_checked:
        return False
    from holdfast.safety import secrets

    return secrets.has_secret(replace_invalid(parsed.text))


def _remove_comments(text: str, name: str) -> str:
    """Blank the comments of a Markdown file, and headings with nothing but comments below them; line numbers stay."""
    if "<!--" not in text or not name.endswith(".md"):
        return text
    rows = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text).split("\n")
    for (first, last), section in split_sections(text):
        if "<!--" in section and all(not row.strip() or _HEADING.match(row) for row in rows[first - 1 : last]):
            rows[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(rows)


def _find_problems(key: str, parsed: ParsedNote) -> str:
    problems = list(parsed.header.problems)
    if not KEY_PATTERN.match(key):
        problems.append("its name is not a valid key")
    if not parsed.data.isascii() and parsed.data.decode("utf-8", "replace").encode() != parsed.data:
        problems.append("not UTF-8")
    if not parsed.file.opening and parsed.data.startswith(b"---"):
        problems.append("its frontmatter is never closed")
    if not parsed.text.strip():
        problems.append("it is empty")
    return "; ".join(problems)
