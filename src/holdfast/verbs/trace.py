"""Trace a note: its sources, the sessions it was shown to, the notes derived from it, and the decisions of people."""

from __future__ import annotations

from holdfast.base.dates import format_timestamp
from holdfast.base.ids import KEY_PATTERN
from holdfast.base.record import Record
from holdfast.context.usage import path_usage_id
from holdfast.formats import versions as note_versions
from holdfast.models import Note, Scope, Source
from holdfast.store import note_history
from holdfast.verbs.quarantine import TAKEN_AWAY
from holdfast.verbs.read import find_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.formats.versions import ParsedNote
    from holdfast.index.results import NoteLocation
    from holdfast.ledger.usage import PersonDecision
    from holdfast.models import Version

_MAX_DEPTH = 20  # steps up or down


class Step(Record):
    """One thing that a version was made from. Of a note it names the key, and what that one was made from."""

    what: str
    note: str = ""  # project/deploys; empty if it is not a note, or one that does not exist any more
    trust: str = ""
    came_from: tuple[Step, ...] = ()


class Saying(Record):
    """One version: when it was recorded, its writer, its trust and its sources."""

    recorded: str
    source: Source
    trust: str
    came_from: tuple[Step, ...]


class Made(Record):
    """A note derived from another: whether its current version is, and the notes derived from it in turn."""

    note: str
    path: str
    current: bool  # or only an older version of it was
    led_to: tuple[Made, ...] = ()


class Told(Record):
    """One record that a note was shown: which version, to which session of which client, and when first."""

    version: str
    session: str
    client: str
    time: str


class Decision(Record):
    """A decision of a person."""

    action: str
    time: str
    detail: dict[str, str]


class Trace(Record):
    """The history of a note: where it came from and where it was shown."""

    note: Note
    versions: tuple[Saying, ...]  # newest first
    briefed: tuple[Told, ...]
    led_to: tuple[Made, ...]
    decisions: tuple[Decision, ...]


def trace(context: Context, key: str, kind: str | None) -> Trace:
    """Implement `Memory.trace`."""
    found = find_note(context, key, kind)
    scope, parsed = found.scope, found.parsed
    folders = context.visible_folders(None)
    context.refresh(folders)
    name = f"{key}.md"
    id = parsed.header.id or path_usage_id(scope.folder, "notes", name)
    versions = note_history.list_versions(context.store, scope.folder, parsed)
    trusts = [parsed.trust, *[version.source.trusted for version in versions[1:]]]
    seen: set[tuple[str, str]] = set()
    sayings = [
        Saying(version.recorded, version.source, trust, _trace_sources(context, folders, version, seen))
        for version, trust in zip(versions, trusts, strict=True)
    ]
    history = context.ledger.sessions.list_history(id)
    shown = [Told(one.version, one.session, one.client, format_timestamp(one.time)) for one in history]
    decisions = [Decision(one.action, format_timestamp(one.time), one.detail) for one in _list_decisions(context, id, parsed)]
    return Trace(
        note=note_versions.to_note(scope, key, parsed, context.config.quarantine),
        versions=tuple(sayings),
        briefed=tuple(shown),
        led_to=_trace_derived(context, folders, scope=scope, key=key, id=parsed.header.id, seen={(scope.folder, name)}),
        decisions=tuple(decisions),
    )


def _list_decisions(context: Context, id: str, parsed: ParsedNote) -> list[PersonDecision]:
    """Return the decisions about a note, then those that removed a note it was made from, whose text it may repeat. Decisions
    in scopes that the caller may not see are left out."""
    sources = [what.removeprefix("note:") for what in parsed.header.source.made_from if what.startswith("note:")]
    of_sources = [decision for source in sources for decision in context.ledger.decisions.list(source)]
    taken_away = [decision for decision in of_sources if decision.action in TAKEN_AWAY]
    visible = {str(scope) for scope in context.visible_scopes(None)}
    decisions = [*context.ledger.decisions.list(id), *taken_away]
    return [decision for decision in decisions if decision.detail.get("scope") in visible]


def read_note(context: Context, folder: str, name: str) -> ParsedNote | None:
    """Return the note in a file of a scope; None if there is none."""
    content = context.store.read_file(folder, "notes", name)
    return note_versions.parse_note(content.data, content.modified) if content else None


def is_made_from(source: Source, id: str, key: str, nearby: bool) -> bool:
    """Return whether a version was made from the note of that id; a key, which a person may have written, means a note
    that is `nearby`."""
    return (bool(id) and f"note:{id}" in source.made_from) or (nearby and f"note:{key}" in source.made_from)


# --- what it was made from --------------------------------------------------------------------------------------------


def _trace_sources(
    context: Context, folders: tuple[str, ...], version: Version, seen: set[tuple[str, str]], depth: int = 0
) -> tuple[Step, ...]:
    return tuple(
        [
            _trace_source(context, folders, what, recorded=version.recorded, seen=seen, depth=depth)
            for what in version.source.made_from
        ]
    )


def _trace_source(
    context: Context, folders: tuple[str, ...], what: str, *, recorded: str, seen: set[tuple[str, str]], depth: int
) -> Step:
    """Return one source of a version and the sources of that source. Each is expanded once in a whole trace."""
    if not what.startswith("note:") or depth == _MAX_DEPTH:
        return Step(what)
    id = what.removeprefix("note:")
    found = context.query(lambda: context.index.find_note_by_id(folders, id)) or _find_by_key(context, id)
    parsed = read_note(context, found.scope, found.name) if found else None
    if found is None or parsed is None:
        return Step(what)
    folder, name = found.scope, found.name
    versions = note_history.list_versions(context.store, folder, parsed)
    then = next((version for version in versions if version.recorded <= recorded), versions[-1])  # what it said at that time
    trust = parsed.trust if then is versions[0] else then.source.trusted
    if (what, then.recorded) in seen:
        return Step(what, _shown_name(folder, name), trust)
    seen.add((what, then.recorded))
    return Step(what, _shown_name(folder, name), trust, _trace_sources(context, folders, then, seen, depth + 1))


def _find_by_key(context: Context, key: str) -> NoteLocation | None:
    """Return where the nearest note with this key is, without its id."""
    from holdfast.index.results import NoteLocation

    for scope in context.visible_scopes(None) if KEY_PATTERN.match(key) else ():
        if context.store.file_id(scope.folder, "notes", f"{key}.md"):
            return NoteLocation(scope.folder, f"{key}.md", "")
    return None


# --- what was made from it --------------------------------------------------------------------------------------------


def _trace_derived(
    context: Context, folders: tuple[str, ...], *, scope: Scope, key: str, id: str, seen: set[tuple[str, str]], depth: int = 0
) -> tuple[Made, ...]:
    """Return the notes made from a note, each with those made from it. Each is expanded once in a whole trace."""
    made = []
    for folder, name in list_derived(context, folders, id, key):
        parsed = read_note(context, folder, name)
        if parsed is None:
            continue
        nearby = folder == scope.folder or scope.kind == "global"
        every = note_history.list_versions(context.store, folder, parsed)
        made_from = [is_made_from(version.source, id, key, nearby) for version in every]
        if not any(made_from):
            continue
        derived: tuple[Made, ...] = ()
        if (folder, name) not in seen and depth < _MAX_DEPTH:
            seen.add((folder, name))
            derived = _trace_derived(
                context, folders, scope=Scope.of_folder(folder), key=name.removesuffix(".md"), id=parsed.header.id, seen=seen,
                depth=depth + 1,
            )  # fmt: skip
        made.append(Made(_shown_name(folder, name), f"{folder}/notes/{name}", made_from[0], derived))
    return tuple(made)


def list_derived(context: Context, folders: tuple[str, ...], id: str, key: str) -> list[tuple[str, str]]:
    """Return folder and name of the notes that may have been made from a note."""
    names = [f"note:{name}" for name in (id, key) if name]
    found = [context.query(lambda name=name: context.index.find_notes_made_from(folders, name)) for name in names]  # type: ignore[misc]
    return list(dict.fromkeys([note for notes in found for note in notes]))


def _shown_name(folder: str, name: str) -> str:
    return f"{Scope.of_folder(folder).kind}/{name.removesuffix('.md')}"
