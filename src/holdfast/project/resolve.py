"""Resolve the project of a folder: from an override, the git remote, a marker or the path (promises P1, P2 and P3).

`find_candidates` reads only the folder and git's own files: starting git takes longer than the rest of a cold recall.
`resolve_project` compares the candidates with the ledger, so that memory survives a rename, a move and a remote that is added
later, and never follows a path to another repository that is there now. A repository that has memory gets an id of its own
inside its git folder (docs/adr/0028).
"""

from __future__ import annotations

import os

from holdfast.base.ids import is_name
from holdfast.base.record import Record
from holdfast.errors import HoldfastError, InvalidKey, NoScope
from holdfast.project.git import (
    checkout_id,
    find_repository,
    first_reflog_line,
    is_same_folder,
    parent_folders,
    path_id,
    real_path,
    remote_id,
    short_hex,
    starts_with_clone,
    starts_with_first_commit,
)
from holdfast.project.marker import MARKER_FILE, MARKER_FOLDER, Marker, is_marked, is_valid_here, read_marker, record_location
from holdfast.project.repository_id import read_id, write_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.project.git import Repository
    from holdfast.project.marker import Location, Registry


FOLDER_PREFIX, CLONE_PREFIX = "folder:", "clone:"  # locations in the ledger: of a folder without a remote, and with one
_CLONED_PREFIX, _EARLIER_PREFIX = "cloned:", "before:"  # links in the ledger: of a cloned repository, and to an earlier project
_MAX_EARLIER = 16  # earlier projects of one repository that are read
_ID_LENGTH = 32


class Candidates(Record):
    """Every id that a folder may have, and the evidence for each.

    `cloned` is also true for a repository whose first entries have expired from git's reflog: its origin is then unknown, and
    an earlier repository at this path may be another one.
    """

    path: str
    root: str
    override: str | None = None
    remote: str | None = None
    marker: Marker | None = None
    checkout: str | None = None
    cloned: bool = False
    is_clone: bool = False  # git's reflog still says that it was cloned
    git_folder: str = ""  # common to all worktrees; it moves with the checkout
    git_id: str | None = None  # from the id that Holdfast wrote into git's folder
    worktree: str = ""  # suffix of the ids of a worktree that has its own memory
    folder: str = ""  # as a person would name it: the main checkout, or the worktree if it has its own memory


class Project(Record):
    """The id that memory is written under, older ids that reads include, and the evidence that decided."""

    id: str
    aliases: tuple[str, ...]
    how: str  # override, remote, marker, path


def find_candidates(cwd: str, override: str | None = None, isolate_worktrees: bool = False) -> Candidates:
    """Return every id that a folder may have; files that cannot be read count as absent."""
    if override is None and not os.path.isabs(cwd):
        _require_current_folder()
    here = real_path(cwd)
    if override is not None:
        if not is_name(override):
            raise InvalidKey(
                f"the project id {override[:140]!r} is not valid",
                "Use 1 to 128 letters, digits, dots, `_` and `-`, not starting with a dot",
            )
        return Candidates(path=path_id(here), root=here, override=override)
    repository, marked = _find_roots(here)
    if repository is None:
        root = marked or here
        return Candidates(path=path_id(root), root=root, marker=read_marker(root) if marked else None, folder=root)
    return _read_repository(repository, marked, isolate_worktrees)


def _require_current_folder() -> None:
    """Raise NoScope if the current folder was removed: all removed folders would be one project."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise NoScope(
            "the current folder was deleted", "Change to a folder that exists, or name a project with --project"
        ) from None


def _read_repository(repository: Repository, marked: str | None, isolate: bool) -> Candidates:
    isolated = isolate and bool(repository.worktree)
    suffix = f"-wt-{short_hex(f'{repository.worktree}/{repository.common}', 8)}" if isolated else ""
    checkout_suffix = f"-wt-{short_hex(repository.worktree, 8)}" if isolated else ""  # no path in it: it survives a move
    if marked is None and not isolated:
        marked = repository.main  # a marker that git does not track is only in the main checkout
    remote = remote_id(repository) if repository.common else None
    first = first_reflog_line(repository.common) if repository.common else None
    stored_id = read_id(repository.common) if repository.common else None
    return Candidates(
        path=path_id(repository.main) + suffix,
        root=repository.root,
        remote=remote + suffix if remote else None,
        marker=read_marker(marked) if marked else None,
        checkout=checkout_id(first) + checkout_suffix if first else None,
        cloned=first is not None and not starts_with_first_commit(first),
        is_clone=first is not None and starts_with_clone(first),
        git_folder=repository.common,
        git_id=_format_git_id(stored_id, checkout_suffix) if stored_id else None,
        worktree=checkout_suffix,
        folder=repository.root if isolated else repository.main,
    )


def _format_git_id(stored_id: str, worktree: str) -> str:
    """Return the ledger's id of a repository; its colon distinguishes it from project ids."""
    return f"git:{stored_id}{worktree}"


def resolve_project(
    candidates: Candidates, registry: Registry, has_notes: Callable[[str], bool], *, remember: bool = True
) -> Project:
    """Return the project of a folder in the order of promise P1, unless an older id of this folder already has notes."""
    if candidates.override is not None:
        return Project(candidates.override, _find_adopted(candidates.override, registry, has_notes), "override")
    evidence = _Evidence(candidates, registry, has_notes)
    projects = evidence.find_projects()
    id = projects[0] if projects and not evidence.is_detached(projects[0]) else evidence.resolve_alias(evidence.primary)
    if remember:
        try:
            id = evidence.remember(id)
        except HoldfastError:
            pass  # a home that cannot be written to still answers
    older = dict.fromkeys([*projects, *_find_adopted(id, registry, has_notes)])
    return Project(id, tuple([other for other in older if other != id]), evidence.how)


def _find_adopted(id: str, registry: Registry, has_notes: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the projects with notes that a person joined to this one."""
    return tuple([other for other in registry.list_adopted(id) if has_notes(other)])


def find_ignored_marker(candidates: Candidates, registry: Registry) -> str:
    """Return the path of a marker that does not count; "" if there is none."""
    marker = candidates.marker
    if candidates.remote or not is_marked(candidates.root) or (marker is not None and is_valid_here(marker, registry)):
        return ""
    return f"{candidates.root}/{MARKER_FOLDER}/{MARKER_FILE}"


class _CachedRegistry:
    """A registry that asks the ledger once for each id until something is written: a cold recall must be fast."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._links: dict[str, str | None] = {}
        self._locations: dict[str, Location | None] = {}

    def find_project(self, alias: str) -> str | None:
        if alias not in self._links:
            self._links[alias] = self._registry.find_project(alias)
        return self._links[alias]

    def find_location(self, id: str) -> Location | None:
        if id not in self._locations:
            self._locations[id] = self._registry.find_location(id)
        return self._locations[id]

    def link(self, alias: str, project: str, instead: str | None = None) -> None:
        self._links.clear()
        self._registry.link(alias, project, instead)

    def put_location(self, id: str, nonce: str, path: str) -> None:
        self._locations.clear()
        self._registry.put_location(id, nonce, path)

    def list_adopted(self, project: str) -> list[str]:
        return self._registry.list_adopted(project)

    def list_links(self) -> dict[str, str]:
        return self._registry.list_links()


class _Evidence:
    """The candidates of a folder, combined with the records of the ledger."""

    def __init__(self, candidates: Candidates, registry: Registry, has_notes: Callable[[str], bool]) -> None:
        self.candidates = candidates
        self.registry = registry = _CachedRegistry(registry)
        self._has_notes, self._has_notes_cache = has_notes, dict[str, bool]()
        marker = candidates.marker
        self.marker = marker if marker is not None and is_valid_here(marker, registry) else None
        self._knows_git_id = candidates.git_id is not None and registry.find_location(candidates.git_id) is not None
        self.git_id = self._distinguish_copy(candidates.git_id, lambda path: _is_same_id(candidates.git_id, read_id(path)))
        checkout = None if self._knows_git_id else candidates.checkout
        self.checkout = self._distinguish_copy(checkout, lambda path: _is_same_start(checkout, first_reflog_line(path)))
        if candidates.remote is not None:
            self.how, self.primary = "remote", candidates.remote
        elif self.marker is not None:
            self.how, self.primary = "marker", self.marker.id
        else:
            self.how, self.primary = "path", candidates.path
            if self._is_path_abandoned():
                self.primary = self._copy_id(candidates.path)

    def _is_path_abandoned(self) -> bool:
        """Return whether the repository that had this path is elsewhere now, so that this one is another project."""
        git_folder, id = self.candidates.git_folder, self.resolve_alias(self.candidates.path)
        if not git_folder or self.candidates.git_id is not None or not self.has_notes(id):
            return False
        for alias, project in self.registry.list_links().items():
            location = self.registry.find_location(alias) if alias.startswith("git:") and project == id else None
            if location is None or is_same_folder(location.path, git_folder):
                continue
            if _is_same_id(alias, read_id(location.path)):
                return True
        return False

    def has_notes(self, id: str) -> bool:
        """Return whether a project has notes, with a cache: PostgreSQL needs a round trip."""
        if id not in self._has_notes_cache:
            self._has_notes_cache[id] = self._has_notes(id)
        return self._has_notes_cache[id]

    def resolve_alias(self, id: str) -> str:
        """Return the project of an id, which is itself unless it is an alias."""
        return self.registry.find_project(id) or id

    def find_projects(self) -> list[str]:
        """Return the projects with notes that the evidence leads to, strongest first."""
        leads = [self.primary]
        followed = self._find_project(self.git_id)
        if followed is not None:
            leads.append(followed)
            if self.how == "path" and self.has_notes(followed):  # it moved here; the path may have had another project
                leads = [followed, self.primary] if self._owns_path() else [followed]
        elif (followed := self._find_project_by_reflog()) is not None:
            leads.append(followed)
            if self.how == "path" and self.candidates.cloned:
                leads.remove(self.primary)  # a clone that lost its remote; the path may have had another project
        leads += self._list_earlier(followed)
        if self.marker is not None:
            leads.append(self.marker.id)
        if self._owns_path():
            leads.append(self.candidates.path)
        return [id for id in dict.fromkeys(map(self.resolve_alias, leads)) if self.has_notes(id)]

    def is_detached(self, id: str) -> bool:
        """Return whether this clone no longer has the remote whose project it used.

        It then writes under its new remote, and other clones of the old one (a template, for example) never see its notes. A
        repository that started here only renamed its remote, and a project that is known by a path has no other clones.
        """
        if self.how != "remote" or self.resolve_alias(self.primary) == id or id == self.candidates.path:
            return False
        if self.registry.find_project(self.primary) is not None or self.has_notes(self.primary):
            return False
        git_id = self.git_id
        return self.candidates.is_clone or (git_id is not None and self._find_project(_CLONED_PREFIX + git_id) is not None)

    def _list_earlier(self, project: str | None) -> list[str]:
        """Return the earlier projects of this repository, newest first."""
        found: list[str] = []
        while project is not None and self.git_id is not None and len(found) < _MAX_EARLIER:
            project = self.registry.find_project(_format_earlier(self.git_id, project))
            if project is None or project in found:
                break
            found.append(project)
        return found

    def _update_git_link(self, git_id: str, project: str) -> None:
        """Link the repository to its current project and keep the previous one."""
        current = self.registry.find_project(git_id)
        if current is not None and current != project and self.has_notes(current) and self.has_notes(project):
            earlier = _format_earlier(git_id, project)
            self.registry.link(earlier, current, instead=self.registry.find_project(earlier))
            self.registry.link(git_id, project, instead=current)

    def remember(self, id: str) -> str:
        """Record new evidence in the ledger and return the final id, because another process may have linked first."""
        candidates, marker = self.candidates, self.marker
        if id != self.primary and not self.has_notes(self.primary):
            id = self._link(self.primary, id)
        has_notes = self.has_notes(id)
        repository_id = (has_notes and self._ensure_git_id()) or self.git_id or self.checkout
        if repository_id is not None:
            self._link(repository_id, self._find_project_by_reflog() or id)
            if repository_id.startswith("git:"):
                self._update_git_link(repository_id, id)
            if not repository_id.endswith(self._copy_id("")):
                record_location(repository_id, "", candidates.git_folder, self.registry)
            if candidates.path in (id, self.primary):
                record_location(candidates.path, "", candidates.git_folder, self.registry)
        if marker is not None:
            record_location(marker.id, marker.nonce, marker.folder, self.registry)
        if has_notes:
            record_location(folder_id(id, candidates), id, candidates.folder, self.registry)
        return id

    def _ensure_git_id(self) -> str | None:
        """Return the repository's id, and write one if it is missing or if this is a copy of another repository."""
        candidates = self.candidates
        if not candidates.git_folder or (candidates.git_id is not None and self.git_id == candidates.git_id):
            return self.git_id
        copied = candidates.git_id.removeprefix("git:")[:_ID_LENGTH] if candidates.git_id is not None else None
        stored_id = write_id(candidates.git_folder, instead=copied)
        if stored_id and candidates.is_clone:  # the entry in git's reflog expires
            self.registry.link(_CLONED_PREFIX + _format_git_id(stored_id, candidates.worktree), self.primary)
        return _format_git_id(stored_id, candidates.worktree) if stored_id else self.git_id

    def _find_project(self, id: str | None) -> str | None:
        return self.registry.find_project(id) if id is not None else None

    def _find_project_by_reflog(self) -> str | None:
        """Return the project with notes that the reflog leads to.

        The reflog is weak evidence, because git shortens it and a copy has the same one. It counts until this home knows the
        repository by its id.
        """
        project = self._find_project(self.checkout)
        return project if project is not None and self.has_notes(project) else None

    def _owns_path(self) -> bool:
        """Return whether the notes of this path belong to this repository.

        They do not if it may have been cloned, or if a checkout was seen here before: if it was this one, its own id leads to
        its notes.
        """
        return not self.candidates.cloned and self.registry.find_location(self.candidates.path) is None

    def _distinguish_copy(self, id: str | None, still_exists: Callable[[str], bool]) -> str | None:
        """Return the id, or another one if this repository is a copy of the one with this id.

        `still_exists` tells whether the original is still in the git folder where it was last seen. Two repositories that were
        created in the same second also have the same id.
        """
        location = self.registry.find_location(id) if id else None
        if id is None or location is None:
            return id
        if is_same_folder(location.path, self.candidates.git_folder):
            return id
        return self._copy_id(id) if still_exists(location.path) or self.registry.find_project(self._copy_id(id)) else id

    def _copy_id(self, id: str) -> str:
        """Return the id of a copy of the repository with this id; it depends on the path."""
        return f"{id}-at-{short_hex(self.candidates.git_folder, 8)}"

    def _link(self, alias: str, project: str) -> str:
        """Link an alias to a project, unless it leads to one with notes, and return its project."""
        current = self.registry.find_project(alias)
        if current is not None and (current == project or self.has_notes(current)):
            return current
        self.registry.link(alias, project, instead=current)
        return self.resolve_alias(alias)


def folder_id(project: str, candidates: Candidates) -> str:
    """Return the ledger's id of a folder of a project; with a remote, other clones share it."""
    return f"{CLONE_PREFIX if candidates.remote else FOLDER_PREFIX}{short_hex(f'{project} {candidates.folder}', 16)}"


def _format_earlier(git_id: str, project: str) -> str:
    """Return the ledger's link from a repository's project to the project that it had earlier."""
    return f"{_EARLIER_PREFIX}{git_id}:{project}"


def _is_same_id(id: str | None, stored: str | None) -> bool:
    return id is not None and stored is not None and id.startswith(_format_git_id(stored, ""))


def _is_same_start(id: str | None, first: bytes | None) -> bool:
    return id is not None and first is not None and id.startswith(checkout_id(first))


def _find_roots(start: str) -> tuple[Repository | None, str | None]:
    """Return the repository of a folder, and the nearest folder up to its root that has a marker, valid or not."""
    marked = None
    for folder in parent_folders(start):
        if marked is None and is_marked(folder):
            marked = folder
        repository = find_repository(folder)
        if repository is not None:
            return repository, marked
    return None, marked
