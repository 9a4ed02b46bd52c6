"""History files of notes: read the versions of a note that are not in its own file, and move versions there.

A store writes a whole note file for each version, so the file keeps only the newest versions. Older ones are moved to files of
the part `history`, some at a time, and those files are durable before the note file is written without the versions.
"""

from __future__ import annotations

from itertools import count

from holdfast.base.ids import digest
from holdfast.base.record import Record
from holdfast.formats import history_file, note_file, versions
from holdfast.formats.history_file import HistoryFile
from holdfast.formats.note_file import Older, replace_invalid
from holdfast.store.interface import Changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.base.ids import FileId
    from holdfast.formats.history_file import OlderVersion
    from holdfast.formats.versions import ParsedNote
    from holdfast.models import Scope, Version
    from holdfast.store.interface import Store

PART = "history"


class HistoryWrite(Record):
    """A history file to write before its note: the bytes, and the file it replaces (None: a new file)."""

    name: str
    data: bytes
    expected: FileId | None


# --- reading ----------------------------------------------------------------------------------------------------------


def list_versions(store: Store, scope_folder: str, parsed: ParsedNote) -> list[Version]:
    """Return every version of a note, newest first, with those in history files."""
    found = versions.list_versions(parsed)
    older = [place.version for place in older_versions(store, scope_folder, parsed)]
    return found + [version.replace(text=replace_invalid(version.text)) for version in older]


def older_versions(store: Store, scope_folder: str, parsed: ParsedNote) -> Iterator[OlderVersion]:
    """Yield the versions of a note that are in history files, newest first, reading one file at a time."""
    if parsed.header.older is None:
        return
    counted = parsed.header.older.versions
    for name, data in _read_files(store, scope_folder, parsed.header.older):
        for place in reversed(history_file.older_versions(data, name)):
            if place.number <= counted:  # a file before it may end with versions that another file has too
                counted = place.number - 1
                yield place


def read_older_version(store: Store, scope_folder: str, parsed: ParsedNote, number: int) -> OlderVersion | None:
    """Return one version, counted from 1, the oldest; None if no history file has it."""
    older = parsed.header.older
    for name, data in _read_files(store, scope_folder, older) if older and number <= older.versions else ():
        if history_file.parse(data, name).first <= number:
            return next((place for place in history_file.older_versions(data, name) if place.number == number), None)
    return None


def list_files(store: Store, scope_folder: str, parsed: ParsedNote) -> list[str]:
    """Return the names of a note's history files, newest first, with those of writers that died."""
    older = parsed.header.older
    named = [name for name, _ in _read_files(store, scope_folder, older)] if older else []
    if not parsed.header.id:
        return named
    entries = [entry.name for entry in store.entries(scope_folder, PART)]
    return list(dict.fromkeys([*named, *[name for name in entries if history_file.belongs_to(name, parsed.header.id)]]))


def find_missing(store: Store, scope_folder: str, parsed: ParsedNote) -> int:
    """Return how many versions the note file counts that no history file has."""
    older = parsed.header.older
    return older.versions - sum(1 for _ in older_versions(store, scope_folder, parsed)) if older else 0


def is_forgotten(store: Store, scope: Scope, name: str, key: str) -> bool:
    """Return whether the trash, and nothing else, has the note of a history file; `key` is the key in the file."""
    places = [("notes", f"{key}.md"), *[(trashed.part, trashed.name) for trashed in store.list_trash(scope, key)]]
    found: set[str] = set()
    for part, file in places:
        content = store.read_file(scope.folder, part, file)
        if content and history_file.belongs_to(name, versions.parse_note(content.data, content.modified).header.id):
            found.add(part)
    return found == {"trash"}


def _read_files(store: Store, scope_folder: str, older: Older) -> Iterator[tuple[str, bytes]]:
    """Yield the name and bytes of each history file, newest first; end where one is missing."""
    name, seen = older.file, set[str]()
    while name and name not in seen:  # a person may have edited the names into a circle
        seen.add(name)
        content = store.read_file(scope_folder, PART, name)
        if content is None:
            return
        yield name, content.data
        name = history_file.parse(content.data, name).previous


# --- moving versions to history files -----------------------------------------------------------------------------------


def split_off(
    store: Store, scope_folder: str, key: str, parsed: ParsedNote, *, most_versions: int, most_bytes: int
) -> tuple[ParsedNote, list[HistoryWrite]]:
    """Return a note that is about to be written without its oldest versions, and the history files to write before it.

    A note file with more than `most_versions` older versions, or `most_bytes` of them, keeps half as many, so that the next
    stores move none. One older version always stays: the index reads the previous version from the file.
    """
    older = parsed.header.older
    inline = parsed.past_count - (older.versions if older else 0)
    is_large = len(parsed.data) > most_bytes and history_file.size_of([parsed.file.past]) > most_bytes
    if inline <= 1 or (inline <= most_versions and not is_large):
        return parsed, []
    sections = note_file.past_sections(parsed.file)
    kept = _count_kept(sections, most_versions, most_bytes)
    moved = list(reversed(sections[kept:]))
    if not moved:
        return parsed, []
    writes = _append(store, scope_folder, key=key, note_id=parsed.header.id, older=older, moved=moved)
    before = older.bytes if older else 0
    new = Older(
        versions=(older.versions if older else 0) + len(moved),
        bytes=before + history_file.size_of(moved),
        file=writes.last_name,
    )
    return versions.move_to_history(parsed, kept, new), writes.writes


def write(store: Store, scope: Scope, note_name: str, note_id: FileId | None, writes: list[HistoryWrite]) -> None:
    """Write history files durably, oldest first; raise `Changed` if the note or one of them was replaced meanwhile."""
    if note_id is None and writes:
        raise Changed  # a new note has no older versions: another process deleted the file
    for one in writes:
        store.write_history(scope, one.name, one.data, one.expected, note=(note_name, note_id))


def _count_kept(sections: list[str], most_versions: int, most_bytes: int) -> int:
    """Return how many of these versions, newest first, stay in the note file."""
    kept, size = 1, len(sections[0])
    while kept < min(len(sections), max(1, most_versions // 2)) and size + len(sections[kept]) <= most_bytes // 2:
        size += len(sections[kept])
        kept += 1
    return kept


class _Appended(Record):
    writes: list[HistoryWrite]
    last_name: str


def _append(store: Store, scope_folder: str, *, key: str, note_id: str, older: Older | None, moved: list[str]) -> _Appended:
    """Return the files that add versions, oldest first, to the history of a note.

    A file may have versions after those that the note counts. If they are the moved ones, a process died after it wrote
    them, or is about to write the note. Otherwise another note has the same history (a person copied a note file, or put an
    old one back): then this note goes on in files of its own, and no version of the other is lost.
    """
    history = history_file.parse_history_id(older.file) if older else history_file.make_history_id(note_id)
    counted, previous = (older.versions, older.file) if older else (0, "")
    current = _read_last(store, scope_folder, older)
    if current is None or not _agree(current.after, moved) or _is_full(current.file):
        current = _start_file(store, scope_folder, history, HistoryFile(key, counted + 1, previous, ()), moved)
    writes: list[HistoryWrite] = []
    while True:
        sections = list(current.file.sections)
        done = 0
        while done < len(moved) and (done == 0 or history_file.size_of(sections) < history_file.FILE_BYTES):
            sections.append(moved[done])
            done += 1
        file = current.file.replace(sections=tuple(sections))
        if len(current.after) < done:  # else another process has written them already
            writes.append(HistoryWrite(current.name, history_file.render(file), current.file_id))
        moved = moved[done:]
        if not moved:
            return _Appended(writes, current.name)
        new = HistoryFile(key, file.last + 1, current.name, ())
        current = _start_file(store, scope_folder, history_file.parse_history_id(current.name), new, moved)


def _is_full(file: HistoryFile) -> bool:
    return history_file.size_of(file.sections) >= history_file.FILE_BYTES


class _OpenFile(Record):
    """A history file that versions are added to: those that count, and those after them."""

    name: str
    file: HistoryFile
    after: list[str]
    file_id: FileId | None


def _read_last(store: Store, scope_folder: str, older: Older | None) -> _OpenFile | None:
    content = store.read_file(scope_folder, PART, older.file) if older else None
    if content is None or older is None:
        return None
    file = history_file.parse(content.data, older.file)
    counted = max(0, older.versions - file.first + 1)
    return _OpenFile(older.file, file.replace(sections=file.sections[:counted]), list(file.sections[counted:]), content.file_id)


def _start_file(store: Store, scope_folder: str, history: str, new: HistoryFile, moved: list[str]) -> _OpenFile:
    """Return a new file for these versions; one that a process wrote before it died is used again if it has the same."""
    text = "".join(moved).encode("utf-8", "surrogateescape")
    stem = history
    for number in count(1):
        name = history_file.format_name(stem, new.first)
        content = store.read_file(scope_folder, PART, name)
        after = list(history_file.parse(content.data, name).sections) if content else []
        if _agree(after, moved):
            break
        stem = f"{history.partition('~')[0]}~{digest(b'%d ' % number + text)[:8]}"
    return _OpenFile(name, new, after, content.file_id if content else None)


def _agree(found: list[str], moved: list[str]) -> bool:
    """Return whether one list begins with the other."""
    return all(one == other for one, other in zip(found, moved, strict=False))


# --- erasing ----------------------------------------------------------------------------------------------------------


def erase(store: Store, scope: Scope, parsed: ParsedNote) -> list[str]:
    """Erase the history files of a note, oldest first so that a second attempt finds the rest; return their names."""
    return [name for name in reversed(list_files(store, scope.folder, parsed)) if store.erase_file(scope, PART, name)]
