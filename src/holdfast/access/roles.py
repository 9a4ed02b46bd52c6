"""The roles there are: those that come with Holdfast, and the operator's own in the home, which go over them.

Looked at for each decision: a file that changed counts from the next one on. A file that cannot be read takes its role
away, also where one of that name comes with Holdfast: it may have been narrower.
"""

from __future__ import annotations

import os

from holdfast.access import role_file
from holdfast.base.record import Record
from holdfast.errors import ConfigError, HoldfastError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.access.policy import Role

_SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "builtin_roles")
_Stamp = tuple[tuple[str, int, int, int, int], ...]


class RoleProblem(Record):
    """A role that means nothing, and why."""

    role: str
    path: str
    message: str
    fix: str


class Roles:
    """The roles of one home, read anew when a file changes."""

    def __init__(self, home: str) -> None:
        self.folder = os.path.join(home, "roles")
        self._shipped: dict[str, Role] | None = None
        self._now: tuple[_Stamp | None, dict[str, Role], tuple[RoleProblem, ...]] | None = None

    def get(self, name: str) -> Role | None:
        """The role of that name, if there is a good one."""
        return self._current()[1].get(name)

    def list(self) -> tuple[Role, ...]:
        return tuple([role for _, role in sorted(self._current()[1].items())])

    def faults(self) -> tuple[RoleProblem, ...]:
        return self._current()[2]

    def own(self, name: str) -> bool:
        """Whether the home's own file says what it is."""
        return self._shipped_roles().get(name) != self.get(name) or os.path.lexists(self.path(name))

    def path(self, name: str) -> str:
        """Where the operator's own would stand."""
        return os.path.join(self.folder, name + role_file.SUFFIX)

    def _current(self) -> tuple[_Stamp | None, dict[str, Role], tuple[RoleProblem, ...]]:
        """What is known now; a snapshot, so that a thread never sees half of a change."""
        now = self._now
        try:
            stamp = _stamp(self.folder)
        except OSError as error:  # nobody knows what would have been taken away there
            trouble = from_os(error, f"cannot read {self.folder}")
            return None, {}, (RoleProblem("", self.folder, trouble.message, trouble.fix),)
        if now is None or now[0] != stamp:
            now = self._now = stamp, *self._read(stamp)
        return now

    def _read(self, stamp: _Stamp) -> tuple[dict[str, Role], tuple[RoleProblem, ...]]:
        roles, faults = dict(self._shipped_roles()), []
        for file, *_ in stamp:
            path, name = os.path.join(self.folder, file), file.removesuffix(role_file.SUFFIX)
            roles.pop(name, None)
            try:
                roles[name] = _own(path)
            except HoldfastError as error:
                faults.append(RoleProblem(name, path, error.message, error.fix))
        return roles, tuple(faults)

    def _shipped_roles(self) -> dict[str, Role]:
        if self._shipped is None:
            files = sorted([name for name in os.listdir(_SHIPPED) if name.endswith(role_file.SUFFIX)])
            self._shipped = {role.name: role for role in [role_file.read(os.path.join(_SHIPPED, name)) for name in files]}
        return self._shipped


def _own(path: str) -> Role:
    if not path.endswith(role_file.SUFFIX):
        raise ConfigError(f"{path}: not read, because a role's file ends in {role_file.SUFFIX}", "Rename it")
    return role_file.read(path)


def _stamp(folder: str) -> _Stamp:
    """Another one, other files. Hidden ones are an editor's."""
    try:
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".") and not entry.name.endswith("~")]
    except FileNotFoundError:
        return ()
    found = [(entry.name, at) for entry in entries if (at := _looked_at(entry)) is not None]
    return tuple(sorted([(name, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns) for name, at in found]))


def _looked_at(entry: os.DirEntry[str]) -> os.stat_result | None:
    """None for a file that went away since it was listed, as an editor's do."""
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
