"""Index entries: what the index records of a note file, of a file in the tree, and of each passage in them."""

from __future__ import annotations

from holdfast.base.dates import timestamp
from holdfast.base.ids import KEY_PATTERN, digest
from holdfast.base.lazy_re import pattern
from holdfast.base.markdown import find_title
from holdfast.base.record import Record
from holdfast.formats import frontmatter, note_file
from holdfast.formats.note_file import NoteHeader, replace_invalid
from holdfast.models import Fact, Scope, Source, Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.base.ids import FileId
    from holdfast.formats.versions import ParsedNote

_COMMENT = pattern(r"(?s)<!--.*?-->")
_HEADING = pattern(r"(?m)^#{1,6} ")
_SECTION_LINES = 40


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
    stamp: FileId
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
    scope: str, name: str, parsed: ParsedNote, stamp: FileId, newest_only: bool = False, archived_as: str = ""
) -> IndexEntry:
    """A note's file; with `newest_only` just the current version and the one before it. A file of the archive is named after
    its key and a time: `archived_as` is the key."""
    key, part = (archived_as, "archive") if archived_as else (name.removesuffix(".md"), "notes")
    head, text = parsed.head, replace_invalid(parsed.text)
    title = find_title(text, key)
    past = note_file.past_versions(parsed.page, 1 if newest_only else None) if parsed.older else []
    passages = _versions(key, title, text, head, past, parsed.lines, parsed.older)
    facts = _facts(text, title, scope, f"{scope}/{part}/{name}", parsed.lines[0])
    return IndexEntry(
        scope, part, name, stamp, parsed.digest, "note", key, head.id, title, head.type, head.tags, head.created,
        head.updated, head.source, head.valid_from, head.valid_to, head.pinned, max(head.updated, head.restored),
        parsed.lines, parsed.older + 1, _problem(key, parsed), passages, facts, parsed.trust, _is_exposed(parsed),
        bool(facts) and _has_prose(text),
    )  # fmt: skip


def file_entry(scope: str, name: str, data: bytes, stamp: FileId, modified: int) -> IndexEntry:
    """A text file of the agent's own tree: one passage a section."""
    text = replace_invalid(data.decode("utf-8", "surrogateescape"))
    title = find_title(text, name.rsplit("/", 1)[-1].rsplit(".", 1)[0])
    updated, entry = timestamp(modified), frontmatter.parse_file_header(name, text)
    called = f"{name} {title}" if entry.name in ("", title) else f"{name} {title} {entry.name}"
    passages = tuple(
        [
            Passage(seq, False, called, section, lines, entry.type, (), None, updated)
            for seq, (lines, section) in enumerate(split_sections(_without_comments(text, name)))
        ]
    )
    facts = _facts(text, title, scope, f"{scope}/files/{name}", 1)
    return IndexEntry(
        scope, "files", name, stamp, digest(data), "file", name, "", title, entry.type, (), updated, updated, Source(), None,
        None, False, updated, (1, text.count("\n") + 1), 1, entry.problem, passages, facts,
        prose=bool(facts) and _has_prose(note_file.parse(text).body if text.startswith("---") else text),
    )  # fmt: skip


def unreadable_entry(scope: str, part: str, name: str, stamp: FileId, problem: str) -> IndexEntry:
    """A file that is there but is not text we can keep: known, so that it is looked at once and reported."""
    kind = "note" if part in ("notes", "archive") else "file"
    return IndexEntry(
        scope, part, name, stamp, "", f"bad {kind}", name, "", name, None, (), "", "", Source(), None, None, False,
        "", (1, 1), 1, problem, (), (),
    )  # fmt: skip


def _is_exposed(parsed: ParsedNote) -> bool:
    """Return whether the text seems to contain a secret."""
    if parsed.is_checked:
        return False
    from holdfast.safety import secrets

    return secrets.exposes(replace_invalid(parsed.text))


def _facts(text: str, title: str, scope: str, path: str, first_line: int) -> tuple[Fact, ...]:
    if "[" not in text or not any(f"[{digit}" in text for digit in "0123456789"):
        return ()
    from holdfast.formats.facts import facts_of

    return tuple(facts_of(text, title, Scope.of_folder(scope), path, first_line))


def _has_prose(text: str) -> bool:
    from holdfast.formats.facts import has_prose

    return has_prose(text)


def _without_comments(text: str, name: str) -> str:
    """Markdown as a reader sees it, line for line: what stands in comments is not said, and a heading over nothing else says
    nothing."""
    if "<!--" not in text or not name.endswith(".md"):
        return text
    rows = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text).split("\n")
    for (first, last), section in split_sections(text):
        if "<!--" in section and all(not row.strip() or _HEADING.match(row) for row in rows[first - 1 : last]):
            rows[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(rows)


def split_sections(text: str) -> list[tuple[tuple[int, int], str]]:
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
