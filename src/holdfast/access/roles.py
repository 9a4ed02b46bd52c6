"""The roles: those that come with Holdfast, and the operator's own in the home, which take precedence.

The folder is checked for each decision: a changed file counts from the next one on. A file that cannot be read takes its role
away, also if one of that name comes with Holdfast: the file may have been narrower.

A file that is added, removed or renamed changes the time of the folder. So while that time is the same, only the file of the
role in question may have changed, and the folder is not listed again.
"""

from __future__ import annotations

import os
import time

from holdfast.access import role_file
from holdfast.base.record import Record
from holdfast.errors import ConfigError, HoldfastError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.access.policy import Role

    FileId = tuple[str, int, int, int, int]  # name, inode, size, and times of a file
    FolderId = tuple[int, int, int]  # inode and times

_SETTLED_NS = 3 * 10**9  # a folder that changed less than this before it was listed may change again without a new time
_BUILTIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "builtin_roles")


class RoleProblem(Record):
    """A role file that cannot be read, and why."""

    role: str
    path: str
    message: str
    fix: str


class _Snapshot(Record):
    """The roles as they were read from these files."""

    files: tuple[FileId, ...] | None
    roles: dict[str, Role]
    problems: tuple[RoleProblem, ...]
    folder: FolderId | None = None  # the folder, if a later change of its names must show in it


class Roles:
    """The roles of one home, read again when a file changes."""

    def __init__(self, home: str) -> None:
        self.folder = os.path.join(home, "roles")
        self._builtin: dict[str, Role] | None = None
        self._snapshot: _Snapshot | None = None

    def get(self, name: str) -> Role | None:
        """Return the role of that name, or None if there is no valid one."""
        snapshot = self._snapshot
        if snapshot is None or not self._is_current(snapshot, name):
            snapshot = self._load_current()
        return snapshot.roles.get(name)

    def _is_current(self, snapshot: _Snapshot, name: str) -> bool:
        """Return whether a snapshot surely has the role of this name as it is now."""
        if snapshot.folder is None or snapshot.folder != _folder_id(self.folder):
            return False
        file = name + role_file.SUFFIX
        known = next((one for one in snapshot.files or () if one[0] == file), None)
        try:
            return known is None or known == _file_id(os.path.join(self.folder, file))
        except OSError:
            return False

    def list(self) -> tuple[Role, ...]:
        """Return the valid roles by name."""
        return tuple([role for _, role in sorted(self._load_current().roles.items())])

    def problems(self) -> tuple[RoleProblem, ...]:
        """Return the files that cannot be read."""
        return self._load_current().problems

    def is_custom(self, name: str) -> bool:
        """Return whether a file in the home defines the role."""
        return self._load_builtin().get(name) != self.get(name) or os.path.lexists(self.path(name))

    def path(self, name: str) -> str:
        """Return the file in the home that defines, or would define, the role."""
        return os.path.join(self.folder, name + role_file.SUFFIX)

    def _load_current(self) -> _Snapshot:
        """Return the roles as they are now; a snapshot, so that a thread never sees half of a change."""
        snapshot = self._snapshot
        folder, now = _folder_id(self.folder), time.time_ns()  # before it is listed
        try:
            files = _list_files(self.folder)
        except OSError as error:  # a file in it might restrict a role, so no role is valid
            trouble = from_os(error, f"cannot read {self.folder}")
            return _Snapshot(None, {}, (RoleProblem("", self.folder, trouble.message, trouble.fix),))
        if snapshot is None or snapshot.files != files:
            snapshot = self._read(files)
        is_settled = folder is not None and max(folder[1], folder[2]) < now - _SETTLED_NS
        snapshot = self._snapshot = snapshot.replace(folder=folder if is_settled else None)
        return snapshot

    def _read(self, files: tuple[FileId, ...]) -> _Snapshot:
        roles, problems = dict(self._load_builtin()), []
        for file, *_ in files:
            path, name = os.path.join(self.folder, file), file.removesuffix(role_file.SUFFIX)
            roles.pop(name, None)
            try:
                roles[name] = _read_custom(path)
            except HoldfastError as error:
                problems.append(RoleProblem(name, path, error.message, error.fix))
        return _Snapshot(files, roles, tuple(problems))

    def _load_builtin(self) -> dict[str, Role]:
        if self._builtin is None:
            files = sorted([name for name in os.listdir(_BUILTIN) if name.endswith(role_file.SUFFIX)])
            self._builtin = {role.name: role for role in [role_file.read(os.path.join(_BUILTIN, name)) for name in files]}
        return self._builtin


def _read_custom(path: str) -> Role:
    if not path.endswith(role_file.SUFFIX):
        raise ConfigError(f"{path}: not read, because a role's file ends in {role_file.SUFFIX}", "Rename it")
    return role_file.read(path)


def _list_files(folder: str) -> tuple[FileId, ...]:
    """Return name, inode, size and times of each file of a folder; hidden files and backups of editors are left out."""
    try:
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".") and not entry.name.endswith("~")]
    except FileNotFoundError:
        return ()
    found = [_file_id(entry.path) for entry in entries]
    return tuple(sorted([file for file in found if file is not None]))  # None: an editor's temporary file, removed meanwhile


def _folder_id(folder: str) -> FolderId | None:
    """Return inode and times of a folder, which change with the names in it; None if it cannot be seen."""
    try:
        at = os.stat(folder)
    except OSError:
        return None
    return at.st_ino, at.st_mtime_ns, at.st_ctime_ns


def _file_id(path: str) -> FileId | None:
    """Return name, inode, size and times of a file; None if it does not exist."""
    try:
        at = os.lstat(path)
    except FileNotFoundError:
        return None
    return os.path.basename(path), at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns
