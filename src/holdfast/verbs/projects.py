"""The projects of a home: list them, find those whose folder was deleted, adopt one into another, and mark a folder."""

from __future__ import annotations

import os

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import DiskTrouble, NotFound, UsageError
from holdfast.ledger.projects import ADOPTED
from holdfast.project import resolve
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.models import Scope

_MAX_LISTED = 10  # projects that a message names


class KnownProject(Record):
    """A project that has memory in this home."""

    id: str
    notes: int
    sessions: int
    last_write: str  # UTC; empty if there is nothing in it
    folders: tuple[str, ...]  # where it was last seen; empty if that was never recorded
    gone: bool  # whether it has no remote and none of these folders resolves to it; always false in PostgreSQL
    part_of: str | None  # the project that it was adopted into
    current: bool  # whether this caller reads it


class Adopted(Record):
    """The result of `adopt`: `adopted`, or `unchanged` if the notes of `old` were found from `new` already."""

    action: str
    old: str
    new: str
    notes: int


def list_projects(context: Context) -> list[KnownProject]:
    """Return the projects of the home by id."""
    if not context.config.enabled or not context.store.exists():
        return []
    links = context.ledger.projects.list_links()
    seen, clones = _find_folders(context, links)
    current = context.project_ids()
    found = []
    for id in _list_ids(context):
        try:
            notes = [
                one for one in context.store.entries(f"projects/{id}", "notes") if one.regular and one.name.endswith(".md")
            ]
            transcripts = [one for one in context.store.transcripts(f"projects/{id}", 0).entries() if one.regular]
        except DiskTrouble:
            continue  # a folder that cannot be read: `doctor` reports it
        last = max([one.file_id.changed for one in notes + transcripts], default=0)
        part_of = links.get(f"{ADOPTED}{id}")
        folders = seen.get(id, {})
        gone = not context.config.store and not part_of and id not in clones and _is_gone(context, id, folders)
        found.append(
            KnownProject(
                id=id,
                notes=len(notes),
                sessions=len(transcripts),
                last_write=dates.format_timestamp(last / 1e9) if last else "",
                folders=tuple(sorted(folders)),
                gone=gone,
                part_of=part_of,
                current=id in current,
            )
        )
    return found


def list_gone(context: Context) -> list[KnownProject]:
    """Return the projects with notes that no folder resolves to any more."""
    return [one for one in list_projects(context) if one.gone and one.notes]


def adopt(context: Context, old: str, new: str | None) -> Adopted:
    """Let the memory of the project `old` be found from `new`, or from the caller's own project.

    The notes stay where they are. A `new` that is named must exist, unless it is the caller's own. `old`, and every id that
    led to it, leads to `new` from now on. Only a person may.
    """
    context.require_person("join two projects", "project adopt")
    source = _find_existing(context, validate.check_name(old, "project id"))
    own = context.project_ids()[0]
    named = validate.check_name(new, "project id") if new is not None else own
    target = context.ledger.projects.find_project(named) or named
    if old == named:
        fix = "Run it in the folder that should get the memory, or name its project as NEW"
        raise UsageError(f"{old!r} cannot adopt itself", fix)
    if named != own:
        _find_existing(context, named)
    notes = len([one for one in context.store.entries(f"projects/{source}", "notes") if one.name.endswith(".md")])
    if source == target or source in context.ledger.projects.list_adopted(target):
        return Adopted("unchanged", source, target, notes)
    context.ledger.projects.adopt(source, target)
    context.forget_project()
    return Adopted("adopted", source, target, notes)


def find_target_scope(context: Context, scope: Scope, key: str) -> Scope:
    """Return the scope that a note with this key is written to: the older project id that has it, unless other clones read it.

    A clone that changed its remote reads the notes of the old remote and does not write to them.
    """
    older = context.scope_with_key(scope, key)
    if older == scope or older.id in context.ledger.projects.list_adopted(scope.id):
        return older
    cloned = [known.nonce for known in context.ledger.projects.list_locations() if known.id.startswith(resolve.CLONE_PREFIX)]
    return scope if older.id in cloned else older


def write_marker(context: Context) -> str:
    """Write a marker file into the caller's folder, so that its memory moves with it; return the project's id."""
    from holdfast.project import marker

    context.forget_project()
    return marker.write_marker(context.working_folder, context.ledger.projects, dates.now())


def find_ignored_marker(context: Context) -> str:
    """Return the path of a marker in the caller's folder that does not count, or an empty string."""
    if context.project_override:
        return ""
    found = resolve.find_candidates(context.working_folder, None, context.config.isolate_worktrees)
    return resolve.find_ignored_marker(found, context.ledger.projects)


def explain_unknown_project(context: Context) -> str:
    """Return a message if the caller named a project that this home does not have, else an empty string.

    Only a person is shown which projects there are.
    """
    named = context.project_override
    if named is None or not context.config.enabled or context.has_project(named) or context.project_ids()[1:]:
        return ""
    leads = context.ledger.projects.find_project(named)
    if leads is not None and context.origin == "user":
        return f"No project named {named!r} in this home. It is an older ID of {leads!r}: use --project {leads}."
    if not _list_ids(context):
        return ""  # in a home without projects there is nothing that could have been meant instead
    return f"No project named {named!r} in this home.{_list_known(context) if context.origin == 'user' else ''}"


def _find_existing(context: Context, id: str) -> str:
    """Return the project with memory that an id means; raise `NotFound` if there is none."""
    if context.has_project(id):
        return id
    leads = context.ledger.projects.find_project(id)
    if leads is not None and context.has_project(leads):
        return leads
    fix = f"{_list_known(context).strip()} `holdfast project list` shows them"
    raise NotFound(f"no project named {id!r} in this home", fix)


def _list_known(context: Context) -> str:
    ids = _list_ids(context)
    if not ids:
        return " It has no projects yet."
    more = f" and {len(ids) - _MAX_LISTED} more" if len(ids) > _MAX_LISTED else ""
    return f" Known projects: {', '.join(ids[:_MAX_LISTED])}{more}."


def _list_ids(context: Context) -> list[str]:
    return [scope.partition("/")[2] for scope in context.store.list_scopes() if scope.startswith("projects/")]


def _find_folders(context: Context, links: dict[str, str]) -> tuple[dict[str, dict[str, bool]], set[str]]:
    """Return the folders of each project, each with whether it shows that the project has no remote; and those that have one.

    A home of an earlier version has the git folders of repositories, and which of them were known by their path.
    """
    seen: dict[str, dict[str, bool]] = {}
    clones: set[str] = set()
    for place in context.ledger.projects.list_locations():
        id, nonce, path = place.id, place.nonce, place.path
        recorded = id.startswith((resolve.FOLDER_PREFIX, resolve.CLONE_PREFIX))
        project = nonce if recorded else id
        if id.startswith(resolve.CLONE_PREFIX):
            clones.add(project)
            clones.add(links.get(project, project))
        if not recorded and not nonce:  # the git folder of a checkout
            path = os.path.dirname(path) if os.path.basename(path) == ".git" else path
        by_path = id.startswith(resolve.FOLDER_PREFIX) or (not recorded and id not in links)
        for one in {project, links.get(project, project)}:
            known = seen.setdefault(one, {})
            known[path] = known.get(path, False) or by_path
    return seen, clones


def _is_gone(context: Context, id: str, folders: dict[str, bool]) -> bool:
    """Return whether a project was known by its folders alone, and none of them resolves to it any more."""
    return any(folders.values()) and not any(_resolves_to(context, folder, id) for folder in folders)


def _resolves_to(context: Context, folder: str, id: str) -> bool:
    if not os.path.isdir(folder):
        return False
    found = resolve.find_candidates(folder, None, context.config.isolate_worktrees)
    project = resolve.resolve_project(found, context.ledger.projects, context.has_project, remember=False)
    return id in (project.id, *project.aliases)
