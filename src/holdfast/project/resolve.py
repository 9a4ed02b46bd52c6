"""For which project somebody asks: an override, the git remote, a marker, or the place itself (P1, P2, P3).

`look` reads a folder and git's own files, and nothing else: starting git would cost more than all the rest of
a cold recall. `settle` weighs what was found against what the ledger remembers, so that memory survives a
rename, a move and a remote gained later, and never follows a path to another repository that is there now.
A repository that has memory gets an id of its own inside its git folder (docs/adr/0028).
"""

from __future__ import annotations

from holdfast.base.ids import is_name
from holdfast.base.record import Record
from holdfast.errors import HoldfastError, InvalidKey
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
    from holdfast.project.marker import Registry


FOLDER, CLONE = "folder:", "clone:"  # rows of the ledger's places: a folder without a remote, and one with
_CLONED, _BEFORE = "cloned:", "before:"  # rows of its links: a repository that was cloned, and its project before this one
_MOST_BEFORE = 16  # earlier projects of one repository that are read
_ID_LENGTH = 32


class Candidates(Record):
    """Every id that this folder could go by, and what tells whether to believe it.

    `cloned` also holds for a repository whose beginning has faded from git's reflog: where it came from is
    then unknown, and whatever stood at this path before need not be it.
    """

    path: str
    root: str
    override: str | None = None
    remote: str | None = None
    marker: Marker | None = None
    checkout: str | None = None
    cloned: bool = False
    is_clone: bool = False  # git's reflog still says that it was cloned
    git_folder: str = ""  # git's folder for all worktrees; moves with the checkout
    git_id: str | None = None  # from the id that Holdfast wrote into git's folder
    worktree: str = ""  # what is added to the ids of a worktree that has a memory of its own
    folder: str = ""  # the folder a person would name: the main checkout, or the worktree if it is on its own


class Project(Record):
    """The id that memory is written under, older ids that reads include, and what decided."""

    id: str
    aliases: tuple[str, ...]
    how: str  # override, remote, marker, path


def find_candidates(cwd: str, override: str | None = None, isolate_worktrees: bool = False) -> Candidates:
    """Return everything that a folder says about its project; whatever cannot be read counts as absent."""
    here = real_path(cwd)
    if override is not None:
        if not is_name(override):
            raise InvalidKey(
                f"the project id {override[:140]!r} breaks the rule",
                "Use 1 to 128 of A-Z a-z 0-9 . _ - and no dot in front",
            )
        return Candidates(path=path_id(here), root=here, override=override)
    repository, marked = _walk(here)
    if repository is None:
        root = marked or here
        return Candidates(path=path_id(root), root=root, marker=read_marker(root) if marked else None, folder=root)
    return _look_at(repository, marked, isolate_worktrees)


def _look_at(repository: Repository, marked: str | None, isolate: bool) -> Candidates:
    apart = isolate and bool(repository.worktree)
    own = f"-wt-{short_hex(f'{repository.worktree}/{repository.common}', 8)}" if apart else ""
    own_checkout = f"-wt-{short_hex(repository.worktree, 8)}" if apart else ""  # no path in it: it survives a move
    if marked is None and not apart:
        marked = repository.main  # a marker that git does not track stands in the main checkout only
    remote = remote_id(repository) if repository.common else None
    first = first_reflog_line(repository.common) if repository.common else None
    kept = read_id(repository.common) if repository.common else None
    return Candidates(
        path=path_id(repository.main) + own,
        root=repository.root,
        remote=remote + own if remote else None,
        marker=read_marker(marked) if marked else None,
        checkout=checkout_id(first) + own_checkout if first else None,
        cloned=first is not None and not starts_with_first_commit(first),
        is_clone=first is not None and starts_with_clone(first),
        git_folder=repository.common,
        git_id=_git_id(kept, own_checkout) if kept else None,
        worktree=own_checkout,
        folder=repository.root if apart else repository.main,
    )


def _git_id(kept: str, worktree: str) -> str:
    """Return the ledger's id of a repository; its colon distinguishes it from project ids."""
    return f"git:{kept}{worktree}"


def resolve_project(
    candidates: Candidates, registry: Registry, has_notes: Callable[[str], bool], *, remember: bool = True
) -> Project:
    """Return the project of a folder in P1's order, unless an older id of this folder already has notes."""
    if candidates.override is not None:
        return Project(candidates.override, _adopted(candidates.override, registry, has_notes), "override")
    evidence = _Evidence(candidates, registry, has_notes)
    known = evidence.known()
    id = known[0] if known and not evidence.is_detached(known[0]) else evidence.led(evidence.primary)
    if remember:
        try:
            id = evidence.remember(id)
        except HoldfastError:
            pass  # a home that cannot be written to still answers
    older = dict.fromkeys([*known, *_adopted(id, registry, has_notes)])
    return Project(id, tuple([other for other in older if other != id]), evidence.how)


def _adopted(id: str, registry: Registry, has_notes: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the projects with notes that a person joined to this one."""
    return tuple([other for other in registry.adopted(id) if has_notes(other)])


def find_ignored_marker(seen: Candidates, registry: Registry) -> str:
    """Return the path of a marker that does not count; "" if there is none."""
    if seen.remote or not is_marked(seen.root) or (seen.marker is not None and is_valid_here(seen.marker, registry)):
        return ""
    return f"{seen.root}/{MARKER_FOLDER}/{MARKER_FILE}"


class _AskedOnce:
    """What the ledger says, asked once of each id until something is written: a cold recall settles its project too."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._links: dict[str, str | None] = {}
        self._places: dict[str, tuple[str, str] | None] = {}

    def canonical(self, alias: str) -> str | None:
        if alias not in self._links:
            self._links[alias] = self._registry.canonical(alias)
        return self._links[alias]

    def place(self, id: str) -> tuple[str, str] | None:
        if id not in self._places:
            self._places[id] = self._registry.place(id)
        return self._places[id]

    def link(self, alias: str, project: str, instead: str | None = None) -> None:
        self._links.clear()
        self._registry.link(alias, project, instead)

    def put_place(self, id: str, nonce: str, path: str) -> None:
        self._places.clear()
        self._registry.put_place(id, nonce, path)

    def adopted(self, project: str) -> list[str]:
        return self._registry.adopted(project)

    def links(self) -> dict[str, str]:
        return self._registry.links()


class _Evidence:
    """What a folder says, combined with what the ledger remembers."""

    def __init__(self, candidates: Candidates, registry: Registry, has_notes: Callable[[str], bool]) -> None:
        self.candidates = candidates
        self.registry = registry = _AskedOnce(registry)
        self._has_notes, self._noted = has_notes, dict[str, bool]()
        marker = candidates.marker
        self.marker = marker if marker is not None and is_valid_here(marker, registry) else None
        self._knows_git_id = candidates.git_id is not None and registry.place(candidates.git_id) is not None
        self.git_id = self._own(candidates.git_id, lambda place: _same_id(candidates.git_id, read_id(place)))
        known = None if self._knows_git_id else candidates.checkout
        self.checkout = self._own(known, lambda place: _same_start(known, first_reflog_line(place)))
        if candidates.remote is not None:
            self.how, self.primary = "remote", candidates.remote
        elif self.marker is not None:
            self.how, self.primary = "marker", self.marker.id
        else:
            self.how, self.primary = "path", candidates.path
            if self._path_was_left():
                self.primary = self._twin(candidates.path)

    def _path_was_left(self) -> bool:
        """Whether the repository that this path's id belongs to lives elsewhere now: a new one here is another project."""
        place, id = self.candidates.git_folder, self.led(self.candidates.path)
        if not place or self.candidates.git_id is not None or not self.has_notes(id):
            return False
        for alias, project in self.registry.links().items():
            seen = self.registry.place(alias) if alias.startswith("git:") and project == id else None
            if seen is not None and not is_same_folder(seen[1], place) and _same_id(alias, read_id(seen[1])):
                return True
        return False

    def has_notes(self, id: str) -> bool:
        """Return whether a project has notes, with a cache: PostgreSQL needs a round trip."""
        if id not in self._noted:
            self._noted[id] = self._has_notes(id)
        return self._noted[id]

    def led(self, id: str) -> str:
        """Return the project of an id, which is itself unless it is an alias."""
        return self.registry.canonical(id) or id

    def known(self) -> list[str]:
        """Return the projects with notes that the evidence leads to, strongest first."""
        leads = [self.primary]
        followed = self._canonical(self.git_id)
        if followed is not None:
            leads.append(followed)
            if self.how == "path" and self.has_notes(followed):  # it moved here; the path may have been another's
                leads = [followed, self.primary] if self._path_is_ours() else [followed]
        elif (followed := self._led_by_reflog()) is not None:
            leads.append(followed)
            if self.how == "path" and self.candidates.cloned:
                leads.remove(self.primary)  # a clone that lost its remote; the path may have been another's
        leads += self._before(followed)
        if self.marker is not None:
            leads.append(self.marker.id)
        if self._path_is_ours():
            leads.append(self.candidates.path)
        return [id for id in dict.fromkeys(map(self.led, leads)) if self.has_notes(id)]

    def is_detached(self, id: str) -> bool:
        """Whether this clone has left the remote whose project it used: then it writes under its new remote, and other
        clones of the old one (a template, for example) never see what it stores. A repository that began here only renamed
        its remote, and a project that is known by a path has no other clones."""
        if self.how != "remote" or self.led(self.primary) == id or id == self.candidates.path:
            return False
        if self.registry.canonical(self.primary) is not None or self.has_notes(self.primary):
            return False
        git_id = self.git_id
        return self.candidates.is_clone or (git_id is not None and self._canonical(_CLONED + git_id) is not None)

    def _before(self, project: str | None) -> list[str]:
        """Return the earlier projects of this repository, newest first."""
        found: list[str] = []
        while project is not None and self.git_id is not None and len(found) < _MOST_BEFORE:
            project = self.registry.canonical(_before(self.git_id, project))
            if project is None or project in found:
                break
            found.append(project)
        return found

    def _follow(self, git_id: str, id: str) -> None:
        """Link the repository to its current project and keep the previous one."""
        now = self.registry.canonical(git_id)
        if now is not None and now != id and self.has_notes(now) and self.has_notes(id):
            self.registry.link(_before(git_id, id), now, instead=self.registry.canonical(_before(git_id, id)))
            self.registry.link(git_id, id, instead=now)

    def remember(self, id: str) -> str:
        """Record what is new and return the final id, because another process may have linked first."""
        candidates, marker = self.candidates, self.marker
        if id != self.primary and not self.has_notes(self.primary):
            id = self._link(self.primary, id)
        noted = self.has_notes(id)
        known_by = (noted and self._kept_in_git()) or self.git_id or self.checkout
        if known_by is not None:
            self._link(known_by, self._led_by_reflog() or id)
            if known_by.startswith("git:"):
                self._follow(known_by, id)
            if not known_by.endswith(self._twin("")):
                record_location(known_by, "", candidates.git_folder, self.registry)
            if candidates.path in (id, self.primary):
                record_location(candidates.path, "", candidates.git_folder, self.registry)
        if marker is not None:
            record_location(marker.id, marker.nonce, marker.folder, self.registry)
        if noted:
            record_location(folder_id(id, candidates), id, candidates.folder, self.registry)
        return id

    def _kept_in_git(self) -> str | None:
        """Return the repository's id, and write one if it is missing or if this is a copy of another repository."""
        candidates = self.candidates
        if not candidates.git_folder or (candidates.git_id is not None and self.git_id == candidates.git_id):
            return self.git_id
        copied = candidates.git_id.removeprefix("git:")[:_ID_LENGTH] if candidates.git_id is not None else None
        kept = write_id(candidates.git_folder, instead=copied)
        if kept and candidates.is_clone:  # git's reflog forgets it
            self.registry.link(_CLONED + _git_id(kept, candidates.worktree), self.primary)
        return _git_id(kept, candidates.worktree) if kept else self.git_id

    def _canonical(self, id: str | None) -> str | None:
        return self.registry.canonical(id) if id is not None else None

    def _led_by_reflog(self) -> str | None:
        """The project with notes that the reflog leads to. It is the weaker evidence, since git shortens it and a copy has
        the same: it counts until this home knows the repository by its id."""
        followed = self._canonical(self.checkout)
        return followed if followed is not None and self.has_notes(followed) else None

    def _path_is_ours(self) -> bool:
        """Whether what this path remembers is this repository's: not if it came from elsewhere, nor if a
        checkout was seen here before (were it this very one, we would know it without the path)."""
        return not self.candidates.cloned and self.registry.place(self.candidates.path) is None

    def _own(self, id: str | None, stands: Callable[[str], bool]) -> str | None:
        """A copy, or a twin made in the same second, must not pass for the repository whose id it has: `stands` says
        whether that one is still where it was last seen."""
        place = self.candidates.git_folder
        seen = self.registry.place(id) if id else None
        if id is None or seen is None or is_same_folder(seen[1], place):
            return id
        return self._twin(id) if stands(seen[1]) or self.registry.canonical(self._twin(id)) else id

    def _twin(self, id: str) -> str:
        return f"{id}-at-{short_hex(self.candidates.git_folder, 8)}"

    def _link(self, alias: str, project: str) -> str:
        now = self.registry.canonical(alias)
        if now is not None and (now == project or self.has_notes(now)):
            return now
        self.registry.link(alias, project, instead=now)
        return self.led(alias)


def folder_id(project: str, candidates: Candidates) -> str:
    """Return the ledger's id of a folder of a project; with a remote, other clones share it."""
    return f"{CLONE if candidates.remote else FOLDER}{short_hex(f'{project} {candidates.folder}', 16)}"


def _before(git_id: str, project: str) -> str:
    return f"{_BEFORE}{git_id}:{project}"


def _same_id(id: str | None, kept: str | None) -> bool:
    return id is not None and kept is not None and id.startswith(_git_id(kept, ""))


def _same_start(id: str | None, first: bytes | None) -> bool:
    return id is not None and first is not None and id.startswith(checkout_id(first))


def _walk(here: str) -> tuple[Repository | None, str | None]:
    """Return the repository of a folder, and the nearest folder up to its root that has a marker, valid or not."""
    marked = None
    for folder in parent_folders(here):
        if marked is None and is_marked(folder):
            marked = folder
        repository = find_repository(folder)
        if repository is not None:
            return repository, marked
    return None, marked
