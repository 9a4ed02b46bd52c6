"""Where a note came from, where it was told, what was made from it, and what people decided about it (N13)."""

from __future__ import annotations

from holdfast.context.caller import nameless_id
from holdfast.formats import versions as note_versions
from holdfast.models import Note, Record, Source, stamp
from holdfast.verbs.quarantine import TAKEN_AWAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Desk
    from holdfast.formats.versions import Leaf
    from holdfast.models import Scope, Version

_DEEPEST = 20  # steps up or down


class Step(Record):
    """One thing that a version was made from. Of a note it names the key, and what that one was made from."""

    what: str
    note: str = ""  # project/deploys; empty if it is no note, or none that is still there
    trust: str = ""
    came_from: tuple[Step, ...] = ()


class Saying(Record):
    """One version: when it was recorded, whose words it is, how far they can be trusted, and what they were made from."""

    recorded: str
    source: Source
    trust: str
    came_from: tuple[Step, ...]


class Made(Record):
    """A note that was made from another: whether it still says so, and what was made from it in turn."""

    note: str
    path: str
    current: bool  # or only an older version of it was
    led_to: tuple[Made, ...] = ()


class Told(Record):
    """A telling: which version, to which session of which client, and when first."""

    version: str
    session: str
    client: str
    time: str


class Decision(Record):
    """What a person decided."""

    action: str
    time: str
    detail: dict[str, str]


class Trace(Record):
    """All that is known about where a note came from and where it went."""

    note: Note
    versions: tuple[Saying, ...]  # newest first
    briefed: tuple[Told, ...]
    led_to: tuple[Made, ...]
    decisions: tuple[Decision, ...]


def trace(desk: Desk, key: str, kind: str | None) -> Trace:
    """The steps of `Memory.trace`."""
    place, there = desk.note(key, kind)
    folders = desk.folders(None)
    desk.look(folders)
    name = f"{key}.md"
    id = there.head.id or nameless_id(place.folder, "notes", name)
    versions = note_versions.versions_of(there)
    trusts = [there.trust, *[version.source.trusted for version in versions[1:]]]
    seen: set[tuple[str, str]] = set()
    sayings = [
        Saying(version.recorded, version.source, trust, _up(desk, folders, version, seen))
        for version, trust in zip(versions, trusts, strict=True)
    ]
    return Trace(
        note_versions.note_of(place, key, there, desk.config.quarantine), tuple(sayings),
        tuple([Told(version, session, client, stamp(time)) for version, session, client, time in desk.ledger.briefed(id)]),
        _down(desk, folders, place, key, there.head.id, {(place.folder, name)}),
        tuple([Decision(action, stamp(time), detail) for action, detail, time in _decisions(desk, id, there)]),
    )  # fmt: skip


def _decisions(desk: Desk, id: str, there: Leaf) -> list[tuple[str, dict[str, str], int]]:
    """Those about the note; then how a person took away what it was made from, whose words it may say again. What was decided
    in a scope that is not this caller's is not told."""
    above = [what[5:] for what in there.head.source.made_from if what.startswith("note:")]
    away = [one for other in above for one in desk.ledger.decisions(other) if one[0] in TAKEN_AWAY]
    seen = {str(place) for place in desk.places(None)}
    return [one for one in (*desk.ledger.decisions(id), *away) if one[1].get("scope") in seen]


def read(desk: Desk, folder: str, name: str) -> Leaf | None:
    """A note's file, by what the catalogue calls it."""
    sheet = desk.shelf.read_name(folder, "notes", name)
    return note_versions.opened(sheet.data, sheet.modified) if sheet else None


def refers(source: Source, id: str, key: str, near: bool) -> bool:
    """Whether a version was made from the note of that id; a person may have written a key, which means one nearby."""
    return (bool(id) and f"note:{id}" in source.made_from) or (near and f"note:{key}" in source.made_from)


def _up(desk: Desk, folders: tuple[str, ...], version: Version, seen: set[tuple[str, str]], depth: int = 0) -> tuple[Step, ...]:
    return tuple([_step(desk, folders, what, version.recorded, seen, depth) for what in version.source.made_from])


def _step(desk: Desk, folders: tuple[str, ...], what: str, when: str, seen: set[tuple[str, str]], depth: int) -> Step:
    """One step up. What a version was made from is told once in a whole trace: many ways may lead to it."""
    if not what.startswith("note:") or depth == _DEEPEST:
        return Step(what)
    found = desk.ask(lambda: desk.index.note_of_id(folders, what[5:])) or _by_key(desk, what[5:])
    there = read(desk, found[0], found[1]) if found else None
    if found is None or there is None:
        return Step(what)
    versions = note_versions.versions_of(there)
    then = next((version for version in versions if version.recorded <= when), versions[-1])  # what it said at that time
    trust = there.trust if then is versions[0] else then.source.trusted
    if (what, then.recorded) in seen:
        return Step(what, _shown(found[0], found[1]), trust)
    seen.add((what, then.recorded))
    return Step(what, _shown(found[0], found[1]), trust, _up(desk, folders, then, seen, depth + 1))


def _by_key(desk: Desk, key: str) -> tuple[str, str, str] | None:
    from holdfast.models import KEY

    for place in desk.places(None) if KEY.match(key) else ():
        if desk.shelf.stamp(place.folder, "notes", f"{key}.md"):
            return place.folder, f"{key}.md", ""
    return None


def _down(
    desk: Desk, folders: tuple[str, ...], place: Scope, key: str, id: str, seen: set[tuple[str, str]], depth: int = 0
) -> tuple[Made, ...]:
    """What was made from a note. What was made from that in turn is told once in a whole trace."""
    made = []
    for folder, name in made_of(desk, folders, id, key):
        there = read(desk, folder, name)
        near = folder == place.folder or place.kind == "global"
        says = [refers(version.source, id, key, near) for version in note_versions.versions_of(there)] if there else []
        if there is None or not any(says):
            continue
        below: tuple[Made, ...] = ()
        if (folder, name) not in seen and depth < _DEEPEST:
            seen.add((folder, name))
            below = _down(desk, folders, _scope(folder), name.removesuffix(".md"), there.head.id, seen, depth + 1)
        made.append(Made(_shown(folder, name), f"{folder}/notes/{name}", says[0], below))
    return tuple(made)


def made_of(desk: Desk, folders: tuple[str, ...], id: str, key: str) -> list[tuple[str, str]]:
    """The notes that may have been made from one: scope and name."""
    names = [f"note:{one}" for one in (id, key) if one]
    found = [desk.ask(lambda name=name: desk.index.made_from(folders, name)) for name in names]  # type: ignore[misc]
    return list(dict.fromkeys([one for some in found for one in some]))


def _scope(folder: str) -> Scope:
    from holdfast.models import Scope

    return Scope.of_folder(folder)


def _shown(folder: str, name: str) -> str:
    return f"{_scope(folder).kind}/{name.removesuffix('.md')}"
