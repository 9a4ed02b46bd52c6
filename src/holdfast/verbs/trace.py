"""Where a note came from, where it was told, what was made from it, and what people decided about it (N13)."""

from __future__ import annotations

from holdfast.base.dates import timestamp
from holdfast.base.record import Record
from holdfast.context.caller import path_usage_id
from holdfast.formats import versions as note_versions
from holdfast.models import Note, Source
from holdfast.verbs.quarantine import TAKEN_AWAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.formats.versions import ParsedNote
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


def trace(context: Context, key: str, kind: str | None) -> Trace:
    """The steps of `Memory.trace`."""
    place, there = context.note(key, kind)
    folders = context.visible_folders(None)
    context.refresh(folders)
    name = f"{key}.md"
    id = there.header.id or path_usage_id(place.folder, "notes", name)
    versions = note_versions.list_versions(there)
    trusts = [there.trust, *[version.source.trusted for version in versions[1:]]]
    seen: set[tuple[str, str]] = set()
    sayings = [
        Saying(version.recorded, version.source, trust, _up(context, folders, version, seen))
        for version, trust in zip(versions, trusts, strict=True)
    ]
    return Trace(
        note_versions.to_note(place, key, there, context.config.quarantine), tuple(sayings),
        tuple(
            [Told(version, session, client, timestamp(time)) for version, session, client, time in context.ledger.briefed(id)]
        ),
        _down(context, folders, place, key, there.header.id, {(place.folder, name)}),
        tuple([Decision(action, timestamp(time), detail) for action, detail, time in _decisions(context, id, there)]),
    )  # fmt: skip


def _decisions(context: Context, id: str, there: ParsedNote) -> list[tuple[str, dict[str, str], int]]:
    """Those about the note; then how a person took away what it was made from, whose words it may say again. What was decided
    in a scope that is not this caller's is not told."""
    above = [what[5:] for what in there.header.source.made_from if what.startswith("note:")]
    away = [one for other in above for one in context.ledger.decisions(other) if one[0] in TAKEN_AWAY]
    seen = {str(place) for place in context.visible_scopes(None)}
    return [one for one in (*context.ledger.decisions(id), *away) if one[1].get("scope") in seen]


def read(context: Context, folder: str, name: str) -> ParsedNote | None:
    """A note's file, by what the catalogue calls it."""
    content = context.store.read_name(folder, "notes", name)
    return note_versions.parse_note(content.data, content.modified) if content else None


def refers(source: Source, id: str, key: str, near: bool) -> bool:
    """Whether a version was made from the note of that id; a person may have written a key, which means one nearby."""
    return (bool(id) and f"note:{id}" in source.made_from) or (near and f"note:{key}" in source.made_from)


def _up(
    context: Context, folders: tuple[str, ...], version: Version, seen: set[tuple[str, str]], depth: int = 0
) -> tuple[Step, ...]:
    return tuple([_step(context, folders, what, version.recorded, seen, depth) for what in version.source.made_from])


def _step(context: Context, folders: tuple[str, ...], what: str, when: str, seen: set[tuple[str, str]], depth: int) -> Step:
    """One step up. What a version was made from is told once in a whole trace: many ways may lead to it."""
    if not what.startswith("note:") or depth == _DEEPEST:
        return Step(what)
    found = context.query(lambda: context.index.note_of_id(folders, what[5:])) or _by_key(context, what[5:])
    there = read(context, found[0], found[1]) if found else None
    if found is None or there is None:
        return Step(what)
    versions = note_versions.list_versions(there)
    then = next((version for version in versions if version.recorded <= when), versions[-1])  # what it said at that time
    trust = there.trust if then is versions[0] else then.source.trusted
    if (what, then.recorded) in seen:
        return Step(what, _shown(found[0], found[1]), trust)
    seen.add((what, then.recorded))
    return Step(what, _shown(found[0], found[1]), trust, _up(context, folders, then, seen, depth + 1))


def _by_key(context: Context, key: str) -> tuple[str, str, str] | None:
    from holdfast.base.ids import KEY_PATTERN

    for place in context.visible_scopes(None) if KEY_PATTERN.match(key) else ():
        if context.store.stamp(place.folder, "notes", f"{key}.md"):
            return place.folder, f"{key}.md", ""
    return None


def _down(
    context: Context, folders: tuple[str, ...], place: Scope, key: str, id: str, seen: set[tuple[str, str]], depth: int = 0
) -> tuple[Made, ...]:
    """What was made from a note. What was made from that in turn is told once in a whole trace."""
    made = []
    for folder, name in made_of(context, folders, id, key):
        there = read(context, folder, name)
        near = folder == place.folder or place.kind == "global"
        says = [refers(version.source, id, key, near) for version in note_versions.list_versions(there)] if there else []
        if there is None or not any(says):
            continue
        below: tuple[Made, ...] = ()
        if (folder, name) not in seen and depth < _DEEPEST:
            seen.add((folder, name))
            below = _down(context, folders, _scope(folder), name.removesuffix(".md"), there.header.id, seen, depth + 1)
        made.append(Made(_shown(folder, name), f"{folder}/notes/{name}", says[0], below))
    return tuple(made)


def made_of(context: Context, folders: tuple[str, ...], id: str, key: str) -> list[tuple[str, str]]:
    """The notes that may have been made from one: scope and name."""
    names = [f"note:{one}" for one in (id, key) if one]
    found = [context.query(lambda name=name: context.index.made_from(folders, name)) for name in names]  # type: ignore[misc]
    return list(dict.fromkeys([one for some in found for one in some]))


def _scope(folder: str) -> Scope:
    from holdfast.models import Scope

    return Scope.of_folder(folder)


def _shown(folder: str, name: str) -> str:
    return f"{_scope(folder).kind}/{name.removesuffix('.md')}"
