"""What must hold after anything: nothing acknowledged is lost, nothing is torn, and opening again mends the rest."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

from battery.verbs import caller
from holdfast import HoldfastError, Memory
from holdfast.base.ids import digest
from holdfast.formats.versions import ParsedNote, list_versions, parse_note
from holdfast.store.listing import MAX_NOTES as SMALL

State = dict[str, bytes]  # what stands on the shelf: `scope/part/name`, and its bytes

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_ID_LINE = re.compile(rb"^id: ([0-9A-HJKMNP-TV-Z]{16})$", re.MULTILINE)
_BINNED = re.compile(r"(.+)--\d{8}T\d{6}.*\.md\Z")
_TOKEN = re.compile(r"\bzq\w+")
_LISTED = re.compile(r"\(notes/([^()/]+)\.md\)")
_LAG = 1.1  # seconds
_OWN = {"id", "folder", "doc", "listed", "stale", "sum"}  # columns that a rebuild may number or date anew


def read(home: Path) -> State:
    """The truth, straight from the disk. A binned file goes by its key and its content, as its name holds the time."""
    state: State = {}
    store = home / "shelf"
    for path in sorted(store.rglob("*")):
        inside = path.relative_to(store).parts
        depth = 1 if inside[0] == "global" else 2
        if len(inside) <= depth + 1 or path.is_dir() or path.name.startswith("."):
            continue
        name, data = "/".join(inside), path.read_bytes()
        binned = _BINNED.match(path.name) if inside[depth] in ("trash", "archive") else None
        if binned:
            name = f"{'/'.join(inside[:-1])}/{binned[1]}#{digest(masked(data))[:8]}"
        state[name] = data
    return state


def masked(data: bytes) -> bytes:
    """The bytes without what differs from one run to the next: the time of day and generated ids."""
    return _ID_LINE.sub(b"id: ID", _TIME.sub(b"TIME", data))


def part_of(item: str) -> str:
    return item.split("/")[1 if item.startswith("global/") else 2]


def key_of(item: str) -> str:
    return item.rsplit("/", 1)[-1].removesuffix(".md").split("#")[0]


def leaf_of(data: bytes) -> ParsedNote:
    return parse_note(data, 0)


def texts_of(data: bytes) -> tuple[str, ...]:
    """Every version's text, newest first."""
    return tuple(version.text for version in list_versions(leaf_of(data)))


# --- the truth --------------------------------------------------------------------------------------------------------


def torn(state: State) -> list[str]:
    """Files that are not whole notes."""
    return [f"torn: {item}: {what}" for item, data in state.items() if part_of(item) != "files" for what in _wrong_in(data)]


def _wrong_in(data: bytes) -> list[str]:
    parsed = leaf_of(data)
    wrong = list(parsed.header.problems)
    if not parsed.file.opening or not _ID_LINE.search(data.split(b"\n---", 1)[0]):
        wrong.append("no frontmatter with an id")
    if not data.endswith(b"\n") or not parsed.text.strip():
        wrong.append(f"it ends in {data[-20:]!r}")
    return wrong


def differences(before: State, after: State, now: State, unit: str, acknowledged: bool) -> list[str]:
    """Where the shelf is neither as before nor as after the verb; with an acknowledgement only "after" will do.
    What the verb does not touch must have the very bytes it had."""
    wrong: list[str] = []
    units: dict[str, list[str]] = {}
    for item in sorted({*before, *after, *now}):
        if before.get(item) == after.get(item):
            if now.get(item) != before.get(item):
                wrong.append(f"{'stray' if item not in before else 'lost or changed'}: {item}")
        else:
            units.setdefault(_unit_of(item, unit), []).append(item)
    for items in units.values():
        done = all(_same(now.get(item), after.get(item)) for item in items)
        undone = all(now.get(item) == before.get(item) for item in items)
        if acknowledged and not done:
            wrong.append(f"acknowledged, but not there: {', '.join(items)}")
        elif not done and not undone:
            wrong.append(f"neither old nor new: {', '.join(items)}")
    return wrong + _other_ids(before, now)


def changed_units(before: State, after: State, now: State, unit: str) -> tuple[list[str], list[str]]:
    """The units of a verb that have happened, and those that have not; by their first item."""
    units: dict[str, list[str]] = {}
    for item in sorted({*before, *after}):
        if before.get(item) != after.get(item):
            units.setdefault(_unit_of(item, unit), []).append(item)
    done = [items[0] for items in units.values() if all(_same(now.get(item), after.get(item)) for item in items)]
    return done, [items[0] for items in units.values() if items[0] not in done]


def _unit_of(item: str, unit: str) -> str:
    if unit == "all":
        return ""
    if unit == "item" or part_of(item) == "files":
        return item
    return f"{item.rsplit('/', 2)[0]}:{key_of(item)}"


def _same(one: bytes | None, other: bytes | None) -> bool:
    return one == other or (one is not None and other is not None and masked(one) == masked(other))


def _other_ids(before: State, now: State) -> list[str]:
    both = [item for item in now if item in before and part_of(item) == "notes"]
    return [f"another id: {item}" for item in both if _id_in(now[item]) != _id_in(before[item])]


def _id_in(data: bytes) -> bytes:
    found = _ID_LINE.search(data)
    return found[1] if found else b""


# --- opening it again -------------------------------------------------------------------------------------------------


def reopened(home: Path, state: State, also: Iterable[str] = ()) -> list[str]:
    """What is wrong when the home is opened again. `also` are words that may not be found unless the shelf has them."""
    try:
        with caller(home) as memory:
            wrong = _finds(memory, state, also) + _lists(memory, state)
            wrong += left_over(home) + listings(home, state, memory)
            if read(home) != state:
                wrong.append("reading changed the shelf")
            wrong += [f"check: {one.code}: {one.message}" for one in memory.check() if one.code not in ("disk", "purge")]
            wrong += _catalogue_drifted(home, memory) + _next_store(memory)
    except Exception as error:  # noqa: BLE001 - whatever it raises, the home did not open
        return [f"opening again failed: {type(error).__name__}: {error}"]
    return wrong


def _finds(memory: Memory, state: State, also: Iterable[str]) -> list[str]:
    """Every word of the shelf is found where it stands, and nowhere else."""
    where: dict[str, set[str]] = {token: set() for token in also}
    for item, data in state.items():
        if part_of(item) in ("notes", "files"):
            text = leaf_of(data).text if part_of(item) == "notes" else data.decode()
            for token in _TOKEN.findall(text):
                where.setdefault(token, set()).add(item)
    wrong = []
    for token, items in where.items():
        answer = memory.recall(token, limit=100, mode="keyword")
        found = {hit.citation.rpartition(":")[0] for hit in answer}
        if found != items:
            wrong.append(f"recall of {token} finds {sorted(found)}, the shelf has it in {sorted(items)}")
        if answer.degraded:
            wrong.append(f"recall is degraded: {answer.reason}")
    return wrong


def _lists(memory: Memory, state: State) -> list[str]:
    store = {item: texts_of(data) for item, data in state.items() if part_of(item) == "notes"}
    listed = {note.path: (note.text, note.versions) for note in memory.list()}
    expected = {item: (texts[0], len(texts)) for item, texts in store.items()}
    return [f"list: {item}" for item in sorted({*listed, *expected}) if listed.get(item) != expected.get(item)]


def left_over(home: Path) -> list[str]:
    """Temp files that nobody swept."""
    return [f"left over: {path.relative_to(home)}" for path in home.rglob(".holdfast-*")]


def listings(home: Path, state: State, memory: Memory) -> list[str]:
    """index.md of each scope names its notes; in a large one it may lag by a second, until the next call."""
    wrong = _listings(home, state)
    if wrong and len(state) > SMALL:
        time.sleep(_LAG)
        memory.list()
        wrong = _listings(home, state)
    return wrong


def _listings(home: Path, state: State) -> list[str]:
    notes: dict[str, set[str]] = {path.parent.relative_to(home / "shelf").as_posix(): set() for path in _pages(home)}
    for item in state:
        if part_of(item) == "notes":
            notes.setdefault(item.rsplit("/", 2)[0], set()).add(key_of(item))
    wrong = []
    for scope, keys in notes.items():
        page = home / "shelf" / scope / "index.md"
        named = set(_LISTED.findall(page.read_text())) if page.exists() else set()
        if named != keys:
            extra, missing = sorted(named - keys)[:3], sorted(keys - named)[:3]
            wrong.append(f"{scope}/index.md names {extra} too many and {missing} too few")
    return wrong


def _pages(home: Path) -> list[Path]:
    store = home / "shelf"
    pages = (*store.glob("global/index.md"), *store.glob("*/*/index.md"))
    return [page for page in pages if page.parent.name != "files"]


def _catalogue_drifted(home: Path, memory: Memory) -> list[str]:
    """A catalogue that mended itself says what one built from nothing says."""
    mended = rows(home)
    memory.reindex()
    fresh = rows(home)
    return [
        f"the mended index differs from a rebuilt one in {table}: {_first_difference(mended[table], fresh[table])}"
        for table in fresh
        if mended[table] != fresh[table]
    ]


def _first_difference(mended: list[Any], fresh: list[Any]) -> str:
    only_mended, only_fresh = [row for row in mended if row not in fresh], [row for row in fresh if row not in mended]
    return f"only mended {only_mended[:1]}, only rebuilt {only_fresh[:1]}"


def _next_store(memory: Memory) -> list[str]:
    text = f"zqafter the next store of {memory.home}"
    try:
        memory.store(text, key="after-all", scope="global")
        if memory.get("after-all", scope="global").text != text:
            return ["the next store is not what get gives"]
        found = [hit.key for hit in memory.recall("zqafter", mode="keyword")]
    except HoldfastError as error:
        return [f"the next store fails: {error}"]
    return [] if found == ["after-all"] else [f"the next store is found as {found}"]


_TABLES: dict[str, str] = {
    "doc": "SELECT folder.scope, folder.part, doc.* FROM doc JOIN folder ON folder.id = doc.folder",
    "passage": "SELECT doc.name, folder.scope, passage.* FROM passage JOIN doc ON doc.id = passage.doc"
    " JOIN folder ON folder.id = doc.folder",
    "fact": "SELECT doc.name, folder.scope, fact.* FROM fact JOIN doc ON doc.id = fact.doc"
    " JOIN folder ON folder.id = doc.folder",
}


def rows(home: Path) -> dict[str, list[Any]]:
    """Everything the index says, without the numbers it gives its rows."""
    if not (home / "index.db").exists():
        return {table: [] for table in _TABLES}
    db = apsw.Connection(str(home / "index.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return {table: sorted(_named(db, query), key=repr) for table, query in _TABLES.items()}
    finally:
        db.close()


def _named(db: apsw.Connection, query: str) -> list[Any]:
    cursor = db.execute(query)
    found = []
    for row in cursor:
        names = [column[0] for column in cursor.get_description()]
        found.append(tuple(value for name, value in zip(names, row, strict=True) if name not in _OWN))
    return found


def index_rows(home: Path, part: str = "notes") -> int:
    """How many files of a part the index has, as it stands: nothing is brought up to date first."""
    db = apsw.Connection(str(home / "index.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        query = "SELECT doc.id FROM doc JOIN folder ON folder.id = doc.folder WHERE part = ? AND kind = 'note'"
        return len(db.execute(query, (part,)).fetchall())
    finally:
        db.close()
