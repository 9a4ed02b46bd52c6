"""The projects of a home: which there are, whose folder is gone, and joining one to another."""

from __future__ import annotations

import os

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import DiskTrouble, NotFound, UsageError
from holdfast.ledger.sqlite import ADOPTED
from holdfast.project import resolve
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.models import Scope

_NAMED = 10  # projects that a message lists


class KnownProject(Record):
    """A project that has memory in this home."""

    id: str
    notes: int
    sessions: int
    last_write: str  # UTC; empty if there is nothing in it
    folders: tuple[str, ...]  # where it was last seen; none if nobody wrote that down
    gone: bool  # whether it has no remote and none of these folders leads to it any more; always false in a store
    part_of: str | None  # the project that it was adopted into
    current: bool  # whether this caller reads it


class Adopted(Record):
    """What `adopt` did: `adopted`, or `unchanged` if the notes of `old` were found from `new` already."""

    action: str
    old: str
    new: str
    notes: int


def every(context: Context) -> list[KnownProject]:
    """Return the projects of the home by id."""
    if not context.config.enabled or not context.store.exists():
        return []
    links = context.ledger.links()
    seen, clones = _seen(context, links)
    current = context.project_ids()
    found = []
    for id in _ids(context):
        try:
            notes = [
                one for one in context.store.entries(f"projects/{id}", "notes") if one.regular and one.name.endswith(".md")
            ]
            said = [one for one in context.store.transcript_files(f"projects/{id}", 0).census() if one.regular]
        except DiskTrouble:
            continue  # a folder that cannot be read: `doctor` says so
        last = max([one.stamp[1] for one in notes + said], default=0)
        part_of = links.get(f"{ADOPTED}{id}")
        folders = seen.get(id, {})
        gone = not context.config.store and not part_of and id not in clones and _is_gone(context, id, folders)
        found.append(
            KnownProject(
                id, len(notes), len(said), dates.timestamp(last / 1e9) if last else "", tuple(sorted(folders)), gone, part_of,
                id in current,
            )
        )  # fmt: skip
    return found


def gone(context: Context) -> list[KnownProject]:
    """Return the projects with notes that no folder leads to any more."""
    return [one for one in every(context) if one.gone and one.notes]


def adopt(context: Context, old: str, new: str | None) -> Adopted:
    """Let the memory of the project `old` be found from `new`, or from the caller's own project.

    The notes stay where they are. A `new` that is named must exist, unless it is the caller's own. `old`, and every id that
    led to it, leads to `new` from now on. Only a person may.
    """
    context.require_person("join two projects", "project adopt")
    source = _existing(context, validate.name(old, "project id"))
    own = context.project_ids()[0]
    named = validate.name(new, "project id") if new is not None else own
    target = context.ledger.canonical(named) or named
    if old == named:
        fix = "Run it in the folder that should have the memory, or name that project as NEW"
        raise UsageError(f"{old!r} cannot adopt itself", fix)
    if named != own:
        _existing(context, named)
    notes = len([one for one in context.store.entries(f"projects/{source}", "notes") if one.name.endswith(".md")])
    if source == target or source in context.ledger.adopted(target):
        return Adopted("unchanged", source, target, notes)
    context.ledger.adopt(source, target)
    context.forget_project()
    return Adopted("adopted", source, target, notes)


def place_to_write(context: Context, scope: Scope, key: str) -> Scope:
    """Return where a note with this key is written: the older project that has it, unless other clones can read that one.

    A clone that changed its remote reads the notes of the old remote and does not write to them.
    """
    place = context.scope_holding(scope, key)
    if place == scope or place.id in context.ledger.adopted(scope.id):
        return place
    cloned = [nonce for id, nonce, _ in context.ledger.places() if id.startswith(resolve.CLONE)]
    return scope if place.id in cloned else place


def unknown(context: Context) -> str:
    """Return what to say if the caller named a project that this home does not have; nothing if it has it.

    Only a person is told which projects there are.
    """
    named = context.project_override
    if named is None or not context.config.enabled or context.store.has(f"projects/{named}") or context.project_ids()[1:]:
        return ""
    leads = context.ledger.canonical(named)
    if leads is not None and context.origin == "user":
        return f"No project named {named!r} in this home. It is an older id of {leads!r}: use --project {leads}."
    if not _ids(context):
        return ""  # in a home without projects there is nothing that could have been meant instead
    return f"No project named {named!r} in this home.{_known(context) if context.origin == 'user' else ''}"


def _existing(context: Context, id: str) -> str:
    """The project that an id means: one with memory."""
    if context.store.has(f"projects/{id}"):
        return id
    leads = context.ledger.canonical(id)
    if leads is not None and context.store.has(f"projects/{leads}"):
        return leads
    raise NotFound(f"no project named {id!r} in this home", f"{_known(context).strip()} `holdfast project list` shows them")


def _known(context: Context) -> str:
    ids = _ids(context)
    if not ids:
        return " It has no projects yet."
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f" Known projects: {', '.join(ids[:_NAMED])}{more}."


def _ids(context: Context) -> list[str]:
    return [scope.partition("/")[2] for scope in context.store.scopes() if scope.startswith("projects/")]


def _seen(context: Context, links: dict[str, str]) -> tuple[dict[str, dict[str, bool]], set[str]]:
    """The folders of each project, each with whether it tells that the project has no remote; and those that have one.

    A home of an earlier version knows the git folders of repositories, and which of them went by their path.
    """
    seen: dict[str, dict[str, bool]] = {}
    clones: set[str] = set()
    for id, nonce, path in context.ledger.places():
        recorded = id.startswith((resolve.FOLDER, resolve.CLONE))
        project = nonce if recorded else id
        if id.startswith(resolve.CLONE):
            clones.add(project)
            clones.add(links.get(project, project))
        if not recorded and not nonce:  # the git folder of a checkout
            path = os.path.dirname(path) if os.path.basename(path) == ".git" else path
        by_path = id.startswith(resolve.FOLDER) or (not recorded and id not in links)
        for one in {project, links.get(project, project)}:
            known = seen.setdefault(one, {})
            known[path] = known.get(path, False) or by_path
    return seen, clones


def _is_gone(context: Context, id: str, folders: dict[str, bool]) -> bool:
    """Whether a project was known by its folders alone, and none of them leads to it any more."""
    return any(folders.values()) and not any(_leads_to(context, folder, id) for folder in folders)


def _leads_to(context: Context, folder: str, id: str) -> bool:
    if not os.path.isdir(folder):
        return False
    found = resolve.find_candidates(folder, None, context.config.isolate_worktrees)
    project = resolve.resolve_project(found, context.ledger, lambda one: context.store.has(f"projects/{one}"), remember=False)
    return id in (project.id, *project.aliases)
