"""Invariants after a crash: nothing acknowledged is lost, no file is torn, and opening the home repairs the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

from battery.child_programs import open_memory
from holdfast import HoldfastError, Memory
from holdfast.base.ids import digest
from holdfast.formats.versions import ParsedNote, list_versions, parse_note
from holdfast.store import note_history
from holdfast.store.files import FileStore
from holdfast.store.listing import MAX_NOTES as MAX_LISTED

State = dict[str, bytes]  # the files of the store: their bytes by `scope/part/name`

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_ID_LINE = re.compile(rb"^id: ([0-9A-HJKMNP-TV-Z]{16})$", re.MULTILINE)
_TRASHED = re.compile(r"(.+)--\d{8}T\d{6}.*\.md\Z")
_TOKEN = re.compile(r"\bzq\w+")
_LISTED = re.compile(r"\(notes/([^()/]+)\.md\)")
_GENERATED_COLUMNS = {"id", "folder", "doc", "listed", "stale", "sum"}  # a rebuild of the index may change them


def read_store(home: Path) -> State:
    """Read all files of the store; a trashed file is named by its key and content, since its file name has the time."""
    state: State = {}
    store = home / "shelf"
    for path in sorted(store.rglob("*")):
        inside = path.relative_to(store).parts
        depth = 1 if inside[0] == "global" else 2
        if len(inside) <= depth + 1 or path.is_dir() or path.name.startswith("."):
            continue
        name, data = "/".join(inside), path.read_bytes()
        trashed = _TRASHED.match(path.name) if inside[depth] in ("trash", "archive") else None
        if trashed:
            name = f"{'/'.join(inside[:-1])}/{trashed[1]}#{digest(mask_times_and_ids(data))[:8]}"
        state[name] = data
    return state


def mask_times_and_ids(data: bytes) -> bytes:
    """Replace what differs from one run to the next: times and generated ids."""
    return _ID_LINE.sub(b"id: ID", _TIME.sub(b"TIME", data))


def part_of(item: str) -> str:
    """Return the part of the scope that a file is in, such as "notes"."""
    return item.split("/")[1 if item.startswith("global/") else 2]


def key_of(item: str) -> str:
    """Return the key of a note from the name of its file."""
    return item.rsplit("/", 1)[-1].removesuffix(".md").split("#")[0]


def parse(data: bytes) -> ParsedNote:
    """Parse the file of a note."""
    return parse_note(data, 0)


def read_texts(data: bytes) -> tuple[str, ...]:
    """Return the texts of all versions of a note, newest first."""
    return tuple(version.text for version in list_versions(parse(data)))


def read_all_texts(home: Path, item: str, data: bytes) -> tuple[str, ...]:
    """Return the texts of all versions of a note, newest first, also of those in its history files."""
    scope = "/".join(item.split("/")[: 1 if item.startswith("global/") else 2])
    store = FileStore(str(home), lock_seconds=5)
    return tuple(version.text for version in note_history.list_versions(store, scope, parse(data)))


# --- the store --------------------------------------------------------------------------------------------------------


def find_torn(state: State) -> list[str]:
    """Return what is wrong with files that are not complete notes; history files are read with their notes."""
    return [
        f"torn: {item}: {problem}"
        for item, data in state.items()
        if part_of(item) not in ("files", note_history.PART)
        for problem in _find_problems(data)
    ]


def _find_problems(data: bytes) -> list[str]:
    parsed = parse(data)
    problems = list(parsed.header.problems)
    if not parsed.file.opening or not _ID_LINE.search(data.split(b"\n---", 1)[0]):
        problems.append("no frontmatter with an id")
    if not data.endswith(b"\n") or not parsed.text.strip():
        problems.append(f"it ends in {data[-20:]!r}")
    return problems


def find_differences(before: State, after: State, now: State, unit: str, acknowledged: bool) -> list[str]:
    """Return where the store is neither as before nor as after a verb; an acknowledged verb allows only "after".

    Files that the verb does not change must have the same bytes. `unit` says which changes must happen together.
    """
    problems: list[str] = []
    units: dict[str, list[str]] = {}
    for item in sorted({*before, *after, *now}):
        if before.get(item) == after.get(item):
            if now.get(item) != before.get(item):
                problems.append(f"{'stray' if item not in before else 'lost or changed'}: {item}")
        else:
            units.setdefault(_unit_of(item, unit), []).append(item)
    for items in units.values():
        done = all(_is_same(now.get(item), after.get(item)) for item in items)
        undone = all(now.get(item) == before.get(item) for item in items)
        if acknowledged and not done:
            problems.append(f"acknowledged, but not there: {', '.join(items)}")
        elif not done and not undone:
            problems.append(f"neither old nor new: {', '.join(items)}")
    return problems + _find_changed_ids(before, now)


def split_units(before: State, after: State, now: State, unit: str) -> tuple[list[str], list[str]]:
    """Return the changes of a verb that have happened and those that have not, each by its first file."""
    units: dict[str, list[str]] = {}
    for item in sorted({*before, *after}):
        if before.get(item) != after.get(item):
            units.setdefault(_unit_of(item, unit), []).append(item)
    done = [items[0] for items in units.values() if all(_is_same(now.get(item), after.get(item)) for item in items)]
    return done, [items[0] for items in units.values() if items[0] not in done]


def _unit_of(item: str, unit: str) -> str:
    if unit == "all":
        return ""
    if unit == "item" or part_of(item) == "files":
        return item
    return f"{item.rsplit('/', 2)[0]}:{key_of(item)}"


def _is_same(first: bytes | None, second: bytes | None) -> bool:
    if first is None or second is None:
        return first is second
    return first == second or mask_times_and_ids(first) == mask_times_and_ids(second)


def _find_changed_ids(before: State, now: State) -> list[str]:
    both = [item for item in now if item in before and part_of(item) == "notes"]
    return [f"another id: {item}" for item in both if _parse_id(now[item]) != _parse_id(before[item])]


def _parse_id(data: bytes) -> bytes:
    found = _ID_LINE.search(data)
    return found[1] if found else b""


# --- the home after it is opened again --------------------------------------------------------------------------------


def check_reopened(home: Path, state: State, words: Iterable[str] = (), *, several_writers: bool = False) -> list[str]:
    """Open the home and return what is wrong; `words` may be found only where the store has them.

    With `several_writers`, index.md is checked after one more store in the project: it may lack a note of a writer that was
    killed while another writer was writing index.md, until the next change.
    """
    try:
        with open_memory(home) as memory:
            problems = _check_recall(memory, state, words) + _check_list(home, memory, state)
            problems += find_leftovers(home)
            if not several_writers:
                problems += check_listings(home, state)
            if read_store(home) != state:
                problems.append("reading changed the store")
            problems += [f"check: {one.code}: {one.message}" for one in memory.check() if one.code not in ("disk", "purge")]
            problems += _check_index(home, memory) + _check_next_store(memory)
            if several_writers:
                memory.store("one more change of the project", key="one-more")
                problems += check_listings(home, read_store(home))
    except Exception as error:  # noqa: BLE001 - whatever it raises, the home did not open
        return [f"opening again failed: {type(error).__name__}: {error}"]
    return problems


def _check_recall(memory: Memory, state: State, words: Iterable[str]) -> list[str]:
    """Check that every word of notes, archived notes and files is found in the files that have it, and in no other."""
    where: dict[str, set[str]] = {word: set() for word in words}
    for item, data in state.items():
        if part_of(item) in ("notes", "archive", "files"):
            text = data.decode() if part_of(item) == "files" else parse(data).text
            for token in _TOKEN.findall(text):
                where.setdefault(token, set()).add(item.partition("#")[0])
    problems = []
    for token, items in where.items():
        answer = memory.recall(token, limit=100, mode="keyword")
        found = {_name_cited_file(hit.citation.rpartition(":")[0]) for hit in answer}
        if found != items:
            problems.append(f"recall of {token} finds {sorted(found)}, the store has it in {sorted(items)}")
        if answer.degraded:
            problems.append(f"recall is degraded: {answer.reason}")
    return problems


def _name_cited_file(path: str) -> str:
    """Return the name of a cited file; that of an archived note without the time in its file name."""
    folder, _, name = path.rpartition("/")
    archived = _TRASHED.match(name) if folder.endswith("/archive") else None
    return f"{folder}/{archived[1]}" if archived else path


def _check_list(home: Path, memory: Memory, state: State) -> list[str]:
    texts = {item: read_all_texts(home, item, data) for item, data in state.items() if part_of(item) == "notes"}
    listed = {note.path: (note.text, note.versions) for note in memory.list()}
    expected = {item: (versions[0], len(versions)) for item, versions in texts.items()}
    return [f"list: {item}" for item in sorted({*listed, *expected}) if listed.get(item) != expected.get(item)]


def find_leftovers(home: Path) -> list[str]:
    """Return the temp files that were not deleted."""
    return [f"left over: {path.relative_to(home)}" for path in home.rglob(".holdfast-*")]


def check_listings(home: Path, state: State) -> list[str]:
    """Check that index.md of each scope lists its notes; of a large scope the newest, followed by the number of the others."""
    notes: dict[str, set[str]] = {path.parent.relative_to(home / "shelf").as_posix(): set() for path in _find_listings(home)}
    for item in state:
        if part_of(item) == "notes":
            notes.setdefault(item.rsplit("/", 2)[0], set()).add(key_of(item))
    problems = []
    for scope, keys in notes.items():
        listing = home / "shelf" / scope / "index.md"
        text = listing.read_text() if listing.exists() else ""
        listed = set(_LISTED.findall(text))
        extra, missing = sorted(listed - keys), sorted(keys - listed)
        unlisted = max(0, len(keys) - MAX_LISTED)
        if extra or len(missing) != unlisted or (unlisted and f"\nand {unlisted:,} more;" not in text):
            problems.append(f"{scope}/index.md names {extra[:3]} too many and {missing[:3]} too few")
    return problems


def _find_listings(home: Path) -> list[Path]:
    store = home / "shelf"
    listings = (*store.glob("global/index.md"), *store.glob("*/*/index.md"))
    return [path for path in listings if path.parent.name != "files"]


def _check_index(home: Path, memory: Memory) -> list[str]:
    """Check that the repaired index has the same rows as one that is built from nothing."""
    repaired = read_index_rows(home)
    memory.reindex()
    rebuilt = read_index_rows(home)
    return [
        f"the repaired index differs from a rebuilt one in {table}: {_describe_difference(repaired[table], rebuilt[table])}"
        for table in rebuilt
        if repaired[table] != rebuilt[table]
    ]


def _describe_difference(repaired: list[Any], rebuilt: list[Any]) -> str:
    only_repaired = [row for row in repaired if row not in rebuilt]
    only_rebuilt = [row for row in rebuilt if row not in repaired]
    return f"only repaired {only_repaired[:1]}, only rebuilt {only_rebuilt[:1]}"


def _check_next_store(memory: Memory) -> list[str]:
    text = f"zqafter the next store of {memory.home}"
    try:
        memory.store(text, key="after-all", scope="global")
        if memory.get("after-all", scope="global").text != text:
            return ["the next store is not what get gives"]
        found = [hit.key for hit in memory.recall("zqafter", mode="keyword")]
    except HoldfastError as error:
        return [f"the next store fails: {error}"]
    return [] if found == ["after-all"] else [f"the next store is found as {found}"]


# --- the index --------------------------------------------------------------------------------------------------------

_TABLES: dict[str, str] = {
    "doc": "SELECT folder.scope, folder.part, doc.* FROM doc JOIN folder ON folder.id = doc.folder",
    "passage": "SELECT doc.name, folder.scope, passage.* FROM passage JOIN doc ON doc.id = passage.doc"
    " JOIN folder ON folder.id = doc.folder",
    "fact": "SELECT doc.name, folder.scope, fact.* FROM fact JOIN doc ON doc.id = fact.doc"
    " JOIN folder ON folder.id = doc.folder",
}


def read_index_rows(home: Path) -> dict[str, list[Any]]:
    """Return the rows of each table of the index, without generated columns."""
    if not (home / "index.db").exists():
        return {table: [] for table in _TABLES}
    db = apsw.Connection(str(home / "index.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return {table: sorted(_read_rows(db, query), key=repr) for table, query in _TABLES.items()}
    finally:
        db.close()


def _read_rows(db: apsw.Connection, query: str) -> list[Any]:
    cursor = db.execute(query)
    found = []
    for row in cursor:
        names = [column[0] for column in cursor.get_description()]
        values = zip(names, row, strict=True)
        found.append(tuple(value for name, value in values if name not in _GENERATED_COLUMNS))
    return found


def count_indexed_notes(home: Path) -> int:
    """Return how many notes the index has, without updating it first."""
    db = apsw.Connection(str(home / "index.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        query = "SELECT doc.id FROM doc JOIN folder ON folder.id = doc.folder WHERE part = 'notes' AND kind = 'note'"
        return len(db.execute(query).fetchall())
    finally:
        db.close()
