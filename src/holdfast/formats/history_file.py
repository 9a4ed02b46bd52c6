"""Parse and render history files, which hold the versions of a note that no longer fit into its own file.

    ---
    note: deploys                        the key it had then, for people who read the file
    first: 101                           number of its first version, counted from 1
    previous: 01K9Z6V0M4Q2-00000001.md   the history file before it
    ---
    <!-- holdfast:history -->            versions as in a note file, but oldest first
    ## 2026-04-16T10:30:00Z to 2026-05-02T09:00:00Z
    <!-- holdfast:version {origin: agent} -->
    Use unittest.

A file is named after the note's id and the number of its first version: it stays in its place when the note is forgotten,
restored, archived or gets another key. Only versions that the note's field `older` counts belong to the note: more of them
were written by a process that died before it wrote the note file, which still has them.
"""

from __future__ import annotations

from holdfast.base.ids import digest
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.formats import frontmatter, note_file
from holdfast.formats.note_file import HISTORY, NoteFile
from holdfast.models import Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard

FILE_BYTES = 256 * 1024  # a history file that has reached this gets no further version
_NAME = pattern(r"(?P<history>[\w.~-]{1,80})-(?P<first>\d{8,15})\.md\Z")


class HistoryFile(Record):
    """Consecutive versions of a note, oldest first, as they are in the file."""

    note: str
    first: int  # number of the first version, from 1
    previous: str  # name of the file before it; "" for the first one
    sections: tuple[str, ...]

    @property
    def last(self) -> int:
        return self.first + len(self.sections) - 1


class OlderVersion(Record):
    """A version in a history file."""

    version: Version
    number: int  # from 1, the oldest
    file: str
    lines: tuple[int, int]


def format_name(history: str, first: int) -> str:
    """Return the name of a history file."""
    return f"{history}-{first:08d}.md"


def is_history_name(name: Any) -> TypeGuard[str]:
    """Return whether this can be the name of a history file."""
    return isinstance(name, str) and _NAME.match(name) is not None


def parse_history_id(name: str) -> str:
    """Return the id that a name begins with, or an empty string if it is not the name of a history file."""
    match = _NAME.match(name)
    return match["history"] if match else ""


def make_history_id(note_id: str) -> str:
    """Return what the names of a note's history files begin with: its id, or a digest of an id that no file name can have."""
    return note_id if note_id.isascii() else digest(note_id.encode("utf-8", "surrogateescape"))


def belongs_to(name: str, note_id: str) -> bool:
    """Return whether a history file is named after this note; a second history of one id has a suffix after `~`."""
    return bool(note_id) and parse_history_id(name).partition("~")[0] == make_history_id(note_id)


def parse(data: bytes, name: str) -> HistoryFile:
    """Parse a history file; where its header cannot be read, its name says which version is the first."""
    file = _split(data)
    values = {field: _read_field(field, raw) for field, raw in file.fields}
    match = _NAME.match(name)
    first, previous = values.get("first", ""), values.get("previous", "")
    return HistoryFile(
        note=values.get("note", ""),
        first=int(first) if first.isascii() and first.isdecimal() and len(first) < 16 else int(match["first"]) if match else 1,
        previous=previous if is_history_name(previous) and previous != name else "",
        sections=tuple(note_file.past_sections(file)),
    )


def render(file: HistoryFile) -> bytes:
    """Return the bytes of a history file."""
    previous = f"previous: {file.previous}\n" if file.previous else ""
    head = f"---\nnote: {frontmatter.format_value(file.note)}\nfirst: {file.first}\n{previous}---\n"
    return (head + HISTORY + "\n" + "\n".join(file.sections)).encode("utf-8", "surrogateescape")


def older_versions(data: bytes, name: str) -> list[OlderVersion]:
    """Return the versions of a history file, oldest first."""
    file, first = _split(data), parse(data, name).first
    versions, lines = note_file.past_versions(file), note_file.past_version_lines(file)
    return [
        OlderVersion(version=version, number=first + position, file=name, lines=lines[position])
        for position, version in enumerate(versions)
    ]


def replace_texts(data: bytes, name: str, new_texts: dict[int, str]) -> bytes:
    """Return a history file in which versions, by their position from 0, have another text."""
    file = parse(data, name)
    sections = list(file.sections)
    for position, text in new_texts.items():
        version = older_versions(data, name)[position].version
        sections[position] = note_file.render_section(version.replace(text=text), "\n")
    return render(file.replace(sections=tuple(sections)))


def size_of(sections: list[str] | tuple[str, ...]) -> int:
    """Return how many bytes versions take in a file."""
    return sum([len(section.encode("utf-8", "surrogateescape")) + 1 for section in sections])


def _read_field(name: str, raw: str) -> str:
    try:
        value = frontmatter.parse_value(name, raw)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def _split(data: bytes) -> NoteFile:
    return note_file.parse(data.decode("utf-8", "surrogateescape"))
