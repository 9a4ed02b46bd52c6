"""Names and limits that every store shares: parts of a scope, names in the trash, names and limits of transcripts."""

from __future__ import annotations

from holdfast.base.dates import format_timestamp
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import VIEW_FILES, Conflict, InvalidPath, NotFound, Template, TooLarge
from holdfast.models import TrashedNote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.models import Scope
    from holdfast.store.interface import NoteKey

SCOPE_KINDS = ("global", "projects", "agents", "sessions")
DOCUMENT_PARTS = ("history", "notes", "files", "trash", "archive")  # notes refer to files of their history
TRANSCRIPTS = "transcripts"
TRANSCRIPT_SUFFIX = ".jsonl"
NOTE_FILE_BYTES = 64 * 1024 * 1024
FILE_BYTES = 10 * 1024 * 1024  # of a file in an agent's tree
LINE_BYTES = 8 * 1024 * 1024  # of a transcript's line; a longer one was not written by us
_TRASHED = pattern(r"(?P<key>.+)--(?P<time>\d{8}T\d{6}Z)-(?P<number>[0-9a-f]{8})\.md\Z")


class TrashName(Record):
    """The name of a note's file in trash or archive: `key--time-number.md`."""

    key: str
    time: str
    number: int  # counts up within the folder, because the clock may go back


def format_trash_name(key: str, seconds: float, number: int) -> str:
    """Return the name that a note gets in trash or archive."""
    return f"{key}--{format_timestamp(seconds).replace('-', '').replace(':', '')}-{number:08x}.md"


def parse_trash_name(name: str) -> TrashName | None:
    """Return the parts of a name in trash or archive, or None if it is another file's."""
    match = _TRASHED.match(name)
    if not match:
        return None
    day, time = match["time"][:8], match["time"][9:15]
    dated = f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"
    return TrashName(match["key"], dated, int(match["number"], 16))


def parse_trashed_key(name: str) -> str:
    """Return the key of a note from its name in trash or archive, or an empty string."""
    parsed = parse_trash_name(name)
    return parsed.key if parsed else ""


def find_last_number(names: Iterable[str]) -> int:
    """Return the highest number of these names in trash or archive, or 0."""
    return max([parsed.number for name in names if (parsed := parse_trash_name(name))], default=0)


def select_trashed(scope: Scope, key: str | None, files: Iterable[tuple[str, str]]) -> list[TrashedNote]:
    """Return the notes among files of trash and archive (part and name), of one key if given, newest first."""
    found = []
    for part, name in files:
        parsed = parse_trash_name(name)
        if parsed and key in (None, parsed.key):
            found.append((parsed.number, TrashedNote(scope, parsed.key, parsed.time, part, name)))
    return [note for _, note in sorted(found, key=lambda pair: (pair[0], pair[1].time), reverse=True)]


def select_last_archived(wanted: Iterable[NoteKey], names: Mapping[Scope, Iterable[str]]) -> dict[NoteKey, TrashedNote]:
    """Return the last archived note of each of these keys, from the names in the archives of their scopes."""
    keys = set(wanted)
    found: dict[NoteKey, TrashedNote] = {}
    for scope, names_in_scope in names.items():
        for name in names_in_scope:
            parsed = parse_trash_name(name)
            key = (scope, parsed.key) if parsed else None
            if parsed and key in keys and (key not in found or found[key].name < name):
                found[key] = TrashedNote(scope, parsed.key, parsed.time, "archive", name)
    return found


def check_note_size(data: bytes, name: str) -> None:
    """Raise `TooLarge` if a note's file would be too large to be read back."""
    if len(data) > NOTE_FILE_BYTES:
        raise TooLarge(
            f"{name} would have {len(data):,} bytes with its history; the limit is {NOTE_FILE_BYTES:,}",
            "Store it under a new key; the old note keeps its history",
        )


def make_missing_error(parts: tuple[str, ...]) -> NotFound:
    """Return the error for a path of an agent's tree that does not exist."""
    return NotFound(f"no file {'/'.join(parts)}", Template("List the files with ", VIEW_FILES))


def make_file_in_path_error(path: str) -> Conflict:
    """Return the error for a path of an agent's tree that leads through a file."""
    return Conflict(f"{path} is a file, not a folder", "Choose another path")


def split_transcript_name(name: str) -> tuple[str, str]:
    """Return the client and the file of a transcript's name; raise `InvalidPath` if it is not one."""
    client, _, file = name.partition("/")
    good = client and file.endswith(TRANSCRIPT_SUFFIX) and "/" not in file and "\0" not in name
    if not good or client.startswith(".") or file.startswith("."):
        raise InvalidPath(f"not the name of a transcript: {name[:80]!r}", "It is <client>/<session>.jsonl")
    return client, file


def format_trashed_transcript(file: str, time: str) -> str:
    """Return the name that a transcript's file gets in the trash."""
    return f"{file[: -len(TRANSCRIPT_SUFFIX)]}--{time}{TRANSCRIPT_SUFFIX}"


def sort_trashed_transcripts(names: Iterable[str]) -> list[str]:
    """Return names of transcripts in the trash, newest first."""
    return sorted(names, key=lambda name: name.rpartition("--")[2], reverse=True)
