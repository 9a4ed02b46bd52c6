"""Relations between notes: state, remove and list them, and decide about those that agents propose.

A relation is in the frontmatter of the note that states it, and names the other note by its id (see `formats.relations`).
"""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.ids import new_id
from holdfast.base.record import Record
from holdfast.errors import Busy, Conflict, NotFound, Refused, Template, UsageError, command
from holdfast.formats import versions
from holdfast.formats.relations import MAX_RELATIONS, StatedRelation, target_of
from holdfast.index.results import relation_path
from holdfast.models import (
    DERIVED_FROM,
    ORIGINS,
    RELATION_KINDS,
    RELATION_STATUSES,
    SYMMETRIC_KINDS,
    Related,
    Relation,
    Scope,
    least_trusted,
)
from holdfast.safety import validate
from holdfast.store.interface import Changed
from holdfast.verbs import quota, review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.context.caller import Context
    from holdfast.formats.versions import ParsedNote
    from holdfast.models import Note
    from holdfast.store.interface import FileContent

    Change = Callable[[ParsedNote, StatedRelation | None], tuple[str, StatedRelation | None]]
    # from the note and the relation it states now, if any, to the action and the relation after it

_ATTEMPTS = 100  # to change a note that other processes keep changing
_PERSON = ORIGINS[0]
_SUPERSEDES = RELATION_KINDS[2]
_PROPOSED, _ACCEPTED, _REJECTED = RELATION_STATUSES


# --- stating ----------------------------------------------------------------------------------------------------------


def relate(context: Context, key: str, kind: str, target: str, *, scope: str | None, target_scope: str | None) -> Related:
    """State a relation; see `Memory.relate`."""
    validate.check_choice(kind, RELATION_KINDS, "kind of relation")
    source = _find_note(context, key, scope)
    other = _find_target(context, source, target, target_scope)
    reverse = _find_stated(other.parsed, kind, source, other.scope) if kind in SYMMETRIC_KINDS else None
    if reverse is not None and (context.origin != _PERSON or reverse.status == _ACCEPTED):
        return Related("unchanged", _describe(reverse, other, source))
    if kind == _SUPERSEDES:
        _refuse_cycle(context, source, other)
    other = _with_id(context, source, other)

    def change(note: ParsedNote, known: StatedRelation | None) -> tuple[str, StatedRelation | None]:
        status = _find_status(context, kind, note, other.parsed)
        if known is not None and _is_settled(context, known, status):
            return "unchanged", known
        if known is None and len(note.header.relations) >= MAX_RELATIONS:
            raise Refused(f"{key!r} has {MAX_RELATIONS} relations, which is the most", "Remove one of them first")
        stated = StatedRelation(kind, target_of(other.id), status, context.origin, dates.now())
        return "created" if known is None else "updated", stated

    return _change_without_cycle(context, source, kind, other, change)


def unrelate(context: Context, key: str, kind: str, target: str, *, scope: str | None, target_scope: str | None) -> Related:
    """Remove a relation; see `Memory.unrelate`."""
    validate.check_choice(kind, RELATION_KINDS, "kind of relation")
    source = _find_note(context, key, scope)
    other = _find_target(context, source, target, target_scope)

    def change(_: ParsedNote, known: StatedRelation | None) -> tuple[str, StatedRelation | None]:
        if known is None:
            raise _no_relation(key, kind, target)
        _refuse_removal(context, known)
        return "removed", None

    return _change(context, source, kind, other, change)


def decide(
    context: Context, key: str, kind: str, target: str, *, accept: bool, scope: str | Scope | None,
    target_scope: str | Scope | None,
) -> Related:  # fmt: skip
    """Accept or reject a relation as a person; see `Memory.accept_relation`."""
    review.require_person(context, "accept or reject a relation")
    validate.check_choice(kind, RELATION_KINDS, "kind of relation")
    source = _find_note(context, key, scope)
    other = _find_target(context, source, target, target_scope)
    status = _ACCEPTED if accept else _REJECTED
    if accept and kind == _SUPERSEDES:
        _refuse_cycle(context, source, other)

    def change(_: ParsedNote, known: StatedRelation | None) -> tuple[str, StatedRelation | None]:
        if known is None:
            raise _no_relation(key, kind, target)
        origin = _PERSON if accept else known.origin  # what a person accepted counts as the person's statement
        if (known.status, known.origin) == (status, origin):
            return "unchanged", known
        return "updated", known.replace(status=status, origin=origin, time=dates.now())

    return _change_without_cycle(context, source, kind, other, change)


class _Located(Record):
    """A note and where it is."""

    scope: Scope
    key: str
    parsed: ParsedNote
    content: FileContent

    @property
    def id(self) -> str:
        return self.parsed.header.id


def _find_note(context: Context, key: str, where: str | Scope | None) -> _Located:
    """Return the visible note of a key; with a whole scope, which only a person may name, that of any caller."""
    validate.check_existing_key(key)
    if isinstance(where, Scope):
        scopes = [where] if where in context.visible_scopes(None) or where.folder in review.all_folders(context) else []
    else:
        scopes = context.scopes_with_key(key, where)
    for scope in scopes:
        if (located := _read_note(context, scope, key)) is not None:
            return located
    raise NotFound(f"no note {key!r}", Template(command("list"), " shows the notes there are"))


def _read_note(context: Context, scope: Scope, key: str) -> _Located | None:
    content = context.store.read_note(scope, key)
    if content is None:
        return None
    parsed = versions.parse_note(content.data, content.modified)
    if context.purge_filter.any_purged():
        context.purge_filter.refuse_returned(f"{scope.folder}/notes/{key}", [parsed.text])
    return _Located(scope, key, parsed, content)


def _find_target(context: Context, source: _Located, target: str, where: str | Scope | None) -> _Located:
    """Return the other note; without a scope the one beside the source if there is one."""
    validate.check_existing_key(target)
    beside = _read_note(context, source.scope, target) if where is None else None
    found = beside or _find_note(context, target, where)
    if (found.scope, found.key) == (source.scope, source.key):
        raise UsageError(f"{target!r} cannot be related to itself", "Name another note")
    is_same_project = found.scope.kind == source.scope.kind == "project"
    if found.scope != source.scope and found.scope.kind != "global" and not is_same_project:
        what = (
            f"{source.key!r} in {source.scope} cannot be related to {target!r} in {found.scope}: not all its readers see that"
        )
        raise UsageError(what, "Relate notes of the same scope, or to a note of the scope global")
    return found


def _find_stated(note: ParsedNote, kind: str, target: _Located, scope: Scope) -> StatedRelation | None:
    """Return the relation of this kind that a note of a scope states to another one, named by id or, in the scope, by key."""
    for relation in note.header.relations:
        by_key = not relation.target_id and relation.target == target.key and scope == target.scope
        if relation.kind == kind and (by_key or (target.id and relation.target_id == target.id)):
            return relation
    return None


def _find_status(context: Context, kind: str, source: ParsedNote, target: ParsedNote) -> str:
    """Return the status of a new relation: an agent's waits for a person if the other note is trusted more than the agent, or
    more than the note that states it."""
    if context.origin == _PERSON or kind == RELATION_KINDS[0]:
        return _ACCEPTED
    stated = least_trusted(context.origin, source.trust)
    return _ACCEPTED if ORIGINS.index(target.trust) >= ORIGINS.index(stated) else _PROPOSED


def _is_settled(context: Context, known: StatedRelation, status: str) -> bool:
    """Return whether stating a relation again changes nothing. A person confirms what an agent stated; an agent's own statement
    about a note that a person has replaced since is proposed again."""
    is_a_persons = known.status == _ACCEPTED and known.origin == _PERSON
    return is_a_persons or (context.origin != _PERSON and (known.status != _ACCEPTED or status == _ACCEPTED))


def _refuse_cycle(context: Context, source: _Located, target: _Located) -> None:
    """Raise `Conflict` if the target supersedes the source, directly or through other notes."""
    folders = tuple(dict.fromkeys([*context.visible_folders(None), source.scope.folder, target.scope.folder]))
    context.refresh(folders, archived=True)
    below: dict[tuple[Scope, str], list[tuple[Scope, str]]] = {}
    for relation in context.query(lambda: context.index.list_relations(folders)):
        if relation.kind == _SUPERSEDES and relation.status == _ACCEPTED:
            below.setdefault((relation.scope, relation.key), []).append((relation.target_scope, relation.target))
    waiting, seen = [(target.scope, target.key)], set[tuple[Scope, str]]()
    while waiting:
        place = waiting.pop()
        if place == (source.scope, source.key):
            fix = Template("Remove that relation first: ", command("relate --list {}", target.key), " shows it")
            raise Conflict(f"{target.key!r} supersedes {source.key!r} already, so the reverse would be a circle", fix)
        if place not in seen:
            seen.add(place)
            waiting += below.get(place, ())


def _refuse_removal(context: Context, known: StatedRelation) -> None:
    """Raise `Refused` if an agent removes what a person rejected or stated: it could propose it again, or override it."""
    if context.origin == _PERSON:
        return
    if known.status == _REJECTED or ORIGINS.index(known.origin) < ORIGINS.index(context.origin):
        fix = Template("A person can use ", command("relate --remove KEY KIND TARGET"))
        raise Refused("agents cannot remove a relation that a person stated or rejected", fix)


def _no_relation(key: str, kind: str, target: str) -> NotFound:
    fix = Template(command("relate --list {}", key), " shows its relations")
    return NotFound(f"{key!r} does not state that it {kind} {target!r}", fix)


# --- writing ----------------------------------------------------------------------------------------------------------


def _with_id(context: Context, source: _Located, target: _Located) -> _Located:
    """Return the target with an id; a note that a person wrote by hand gets one if it is in the same scope."""
    if target.id:
        return target
    if target.scope != source.scope:
        raise Conflict(f"the note {target.key!r} in {target.scope} has no id yet", "Store it once, then relate it")
    return _write(context, target, lambda note: note.header.relations)


def _change_without_cycle(context: Context, source: _Located, kind: str, target: _Located, change: Change) -> Related:
    """Change a relation, and take it back if another process stated the reverse at the same time."""
    before: StatedRelation | None = None

    def change_and_keep(note: ParsedNote, known: StatedRelation | None) -> tuple[str, StatedRelation | None]:
        nonlocal before
        before = known
        return change(note, known)

    related = _change(context, source, kind, target, change_and_keep)
    if kind != _SUPERSEDES or related.action == "unchanged" or related.relation.status != _ACCEPTED:
        return related
    try:
        _refuse_cycle(context, source, target)
    except Conflict:
        current = _read_note(context, source.scope, source.key)
        if current is not None:
            _write(context, current, lambda note: _replace(note, _find_stated(note, kind, target, source.scope), before))
        raise
    return related


def _change(context: Context, source: _Located, kind: str, target: _Located, change: Change) -> Related:
    """Change the relation between two notes in the file of the first."""
    action, before, after = "", None, None

    def next_relations(note: ParsedNote) -> tuple[StatedRelation, ...]:
        nonlocal action, before, after
        _refuse_unreadable(source.key, note)
        before = _find_stated(note, kind, target, source.scope)
        action, after = change(note, before)
        return note.header.relations if action == "unchanged" else _replace(note, before, after)

    written = _write(context, source, next_relations)
    relation = after or before
    assert relation is not None
    return Related(action, _describe(relation, written, target))


def _replace(note: ParsedNote, before: StatedRelation | None, after: StatedRelation | None) -> tuple[StatedRelation, ...]:
    """Return the relations of a note with one of them replaced; None before adds one, None after removes it."""
    added = [after] if after is not None else []
    if before is None:
        return (*note.header.relations, *added)
    return tuple([one for relation in note.header.relations for one in (added if relation is before else [relation])])


def _refuse_unreadable(key: str, note: ParsedNote) -> None:
    """Raise `Conflict` if the field of the relations cannot be read: it may have a rejection, which must not be lost."""
    problem = next((problem for problem in note.header.problems if problem.startswith("relations: ")), None)
    if problem is not None:
        fix = Template("Correct the file by hand; ", command("doctor"), " shows it")
        raise Conflict(f"the relations of {key!r} cannot be read: {problem.removeprefix('relations: ')}", fix)


def _write(context: Context, located: _Located, next_relations: Callable[[ParsedNote], tuple[StatedRelation, ...]]) -> _Located:
    """Write the relations of a note as they follow from its current file; other processes may change it meanwhile."""
    scope, key = located.scope, located.key
    context.sync.prepare_scope(scope.folder)
    current: _Located | None = located
    for _ in range(_ATTEMPTS):
        if current is None:
            raise NotFound(f"no note {key!r}: it was just deleted", Template(command("list"), " shows the notes there are"))
        relations = next_relations(current.parsed)
        if relations == current.parsed.header.relations and current.id:
            return current
        new = versions.state_relations(current.parsed, relations, new_id(int(dates.clock() * 1000)))
        quota.check(context, bytes=len(new.data) - len(current.content.data))
        try:
            context.store.write_note(scope, key, new.data, current.content.file_id)
        except Changed:
            current = _read_note(context, scope, key)
            continue
        context.update_index(lambda: context.sync.refresh_folder(scope.folder, "notes"))
        context.sync.write_listing(scope)
        return current.replace(parsed=new)
    raise Busy(f"other processes keep changing the note {key!r}", "Try again")


def _describe(relation: StatedRelation, source: _Located, target: _Located) -> Relation:
    return Relation(
        kind=relation.kind, status=relation.status, origin=relation.origin, time=relation.time, scope=source.scope,
        key=source.key, id=source.id, target_scope=target.scope, target=target.key, target_id=target.id,
    )  # fmt: skip


def remove_purged(context: Context, ids: list[str], scopes: list[Scope], key: str) -> list[str]:
    """Take the relations to a purged note out of every note that states one, also in the trash; return their paths."""
    paths = {relation_path(scope.folder, key) for scope in scopes}
    found = context.query(lambda: context.index.find_relation_sources([*ids, *paths]))
    trashed = [
        (scope.folder, note.part, note.name)
        for scope in map(Scope.of_folder, context.store.list_scopes())
        for note in context.store.list_trash(scope) if note.part == "trash"
    ]  # fmt: skip
    return [
        f"{folder}/{part}/{name}"
        for folder, part, name in [*found, *trashed]
        if _remove_targets(context, Scope.of_folder(folder), part, name, set(ids) | paths)
    ]


def _remove_targets(context: Context, scope: Scope, part: str, name: str, targets: set[str]) -> bool:
    """Remove the relations to these targets (ids, or scopes and keys) from one file; return whether it had any."""
    for _ in range(_ATTEMPTS):
        content = context.store.read_file(scope.folder, part, name)
        if content is None or b"relations:" not in content.data:
            return False
        note = versions.parse_note(content.data, content.modified)
        kept = tuple(
            [
                relation
                for relation in note.header.relations
                if (relation.target_id or relation_path(scope.folder, relation.target)) not in targets
            ]
        )
        if kept == note.header.relations:
            return False
        new = versions.state_relations(note, kept, note.header.id)
        try:
            context.store.replace_file(scope, part, name, new.data, content.file_id)
        except Changed:
            continue
        if part != "trash":
            context.update_index(lambda: context.sync.refresh_folder(scope.folder, part))
        return True
    raise Busy(f"other processes keep changing {name}", "Purge it again")


# --- listing ----------------------------------------------------------------------------------------------------------


def list_relations(
    context: Context, key: str | None, *, scope: str | Scope | None, status: str | None, everywhere: bool
) -> list[Relation]:
    """Return the relations of a note in both directions, or all relations; see `Memory.relations`."""
    if status is not None:
        validate.check_choice(status, RELATION_STATUSES, "status")
    if not context.config.enabled:
        return []
    if everywhere or isinstance(scope, Scope):
        folders = review.all_folders(context)
    else:
        folders = context.visible_folders(None)
    if key is None:
        context.refresh(folders, archived=True)
        found = context.query(lambda: context.index.list_relations(folders, status=status))
        return found if scope is None else [one for one in found if one.scope in _find_scopes(context, scope, everywhere)]
    located = _find_note(context, key, scope)
    context.refresh(folders, archived=True)
    note = versions.to_note(located.scope, key, located.parsed, context.config.quarantine)
    found = context.query(lambda: context.index.list_relations(folders, note=note, status=status))
    return found + (_list_derived(context, note, folders) if status in (None, _ACCEPTED) else [])


def _find_scopes(context: Context, scope: str | Scope, everywhere: bool) -> list[Scope]:
    if isinstance(scope, Scope):
        return [scope]
    return (
        [Scope.of_folder(folder) for folder in review.all_folders(context, scope)]
        if everywhere
        else context.visible_scopes(scope)
    )


def _list_derived(context: Context, note: Note, folders: tuple[str, ...]) -> list[Relation]:
    """Return what a note was made from and what was made from it, as far as these are notes."""
    made_from = [source.removeprefix("note:") for source in note.source.made_from if source.startswith("note:")]
    sources = context.query(lambda: context.index.find_notes_by_id(made_from, folders)) if made_from else {}
    derived = [_derived(note, Scope.of_folder(found.scope), found.key, id) for id, found in sources.items()]
    if not note.id:
        return derived
    name = f"note:{note.id}"
    for folder, file in context.query(lambda: context.index.find_notes_made_from(folders, name)):
        made = context.query(lambda folder=folder, file=file: context.index.find_note(folder, file))  # type: ignore[misc]
        if made is not None and name in made.source.made_from:
            derived.append(_derived(made, note.scope, note.key, note.id))
    return derived


def _derived(note: Note, scope: Scope, key: str, id: str) -> Relation:
    return Relation(
        kind=DERIVED_FROM, status=_ACCEPTED, origin=note.source.origin, time=note.updated, scope=note.scope, key=note.key,
        id=note.id, target_scope=scope, target=key, target_id=id,
    )  # fmt: skip
