"""Check the home's folders: their owner, and whether this user may enter, read and change them."""

from __future__ import annotations

import os
import stat
from shlex import quote
from typing import NamedTuple

from holdfast import home as home_folder
from holdfast.errors import HoldfastError
from holdfast.models import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.verbs.doctor.fixes import Fixes

_PARTS = ("notes", "history", "files", "transcripts", "trash", "archive")  # of a scope
_PARENTS = ("shelf", "shelf/projects", "shelf/agents", "shelf/sessions")  # folders that contain scopes
_LOCKS = ("run", "run/locks")
_READABLE = os.R_OK | os.X_OK


class _Expected(NamedTuple):
    """A path in the home, and whether a file mode is what belongs there."""

    path: str
    is_allowed: Callable[[int], bool]


def check_missing_home(home: str, fixes: Fixes) -> list[Problem]:
    """Report what keeps a home from being created; a home that does not exist yet is not a problem."""
    try:
        os.lstat(home)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [
            Problem("home", f"the home {home} cannot be created: {error.strerror}", "Set HOLDFAST_HOME to another folder", home)
        ]
    return [Problem("home", f"the home {home} is not a folder", fixes.rename_to_old(home), home)]


def check_owner(home: str, fixes: Fixes) -> list[Problem]:
    """Report a home that belongs to another user, or that its own owner may not enter."""
    try:
        home_folder.check_owner(home)
    except HoldfastError as error:
        return [Problem("owner", error.message, fixes.grant_access(home), home)]
    return []


def check_mode(home: str) -> list[Problem]:
    """Report a home that other users can read."""
    mode = os.stat(home).st_mode & 0o777
    if mode & 0o077:
        what = f"other users can read the home (mode {mode:03o})"
        return [Problem("permissions", what, f"chmod 700 {quote(home)}", home)]
    return []


def check_obstacles(home: str, fixes: Fixes, list_scopes: Callable[[], Iterable[str]]) -> list[Problem]:
    """Report files at the path of a folder or a lock of Holdfast: until they are removed, little else can be checked."""
    top = [_Expected(path, stat.S_ISDIR) for path in (*_LOCKS, "shelf")]
    wrong = _find_wrong(home, top) or _find_wrong(home, _expected_inside(home, list_scopes()))
    return [
        Problem("in_the_way", f"{path} is a link or has the wrong file type", fixes.move_away(os.path.join(home, path)), path)
        for path in wrong
    ]


def _expected_inside(home: str, scopes: Iterable[str]) -> list[_Expected]:
    folders = list(scopes)
    expected = [_Expected(f"shelf/{scope}/{part}", stat.S_ISDIR) for scope in folders for part in _PARTS]
    expected += [_Expected(f"shelf/{scope}/index.md", lambda mode: not stat.S_ISDIR(mode)) for scope in folders]
    return expected + [_Expected(os.path.relpath(path, home), stat.S_ISREG) for path in _lock_files(home)]


def _find_wrong(home: str, expected: list[_Expected]) -> list[str]:
    return [
        path
        for path, is_allowed in expected
        if os.path.lexists(full := os.path.join(home, path)) and not is_allowed(os.lstat(full).st_mode)
    ]


def can_list_scopes(home: str) -> bool:
    """Return whether the folders that contain scopes can be read."""
    return all(os.access(path, _READABLE) for name in _PARENTS if os.path.isdir(path := os.path.join(home, name)))


def readable_scopes(home: str, scopes: Iterable[str]) -> tuple[str, ...]:
    """Return those of these scopes whose folders can all be read."""
    return tuple(
        [scope for scope in scopes if all(os.access(path, _READABLE) for path in _existing_folders(home, _folders_of([scope])))]
    )


def check_access(home: str, fixes: Fixes, scopes: Iterable[str] = ()) -> list[Problem]:
    """Report folders and locks in the home that this user may not read or change; only the topmost of nested ones."""
    folders = _existing_folders(home, [*_LOCKS, *_PARENTS, *_folders_of(scopes)])
    closed = [path for path in folders if not os.access(path, os.R_OK | os.W_OK | os.X_OK)]
    closed += [path for path in _lock_files(home) if not os.access(path, os.R_OK | os.W_OK)][:1]
    top = [path for path in closed if not any(path.startswith(f"{other}/") for other in closed)]
    return [_access_problem(home, fixes, path) for path in top]


def _access_problem(home: str, fixes: Fixes, path: str) -> Problem:
    name, owner = os.path.relpath(path, home), os.stat(path).st_uid
    whose = (
        f"belongs to user {owner}, not to you ({os.geteuid()})" if owner != os.geteuid() else "is not accessible to its owner"
    )
    if name.startswith("run/locks/"):  # where one lock is another user's, others are too
        fix = fixes.grant_access(os.path.dirname(path), example=path)
        return Problem("owner", f"{name} {whose}: the lock cannot be used", fix, name)
    what = "it cannot be written to" if os.access(path, os.R_OK) else "it cannot be read"
    return Problem("owner", f"{name} {whose}: {what}", fixes.grant_access(path), name)


def _folders_of(scopes: Iterable[str]) -> list[str]:
    return [f"shelf/{scope}{part}" for scope in scopes for part in ("", *[f"/{part}" for part in _PARTS])]


def _existing_folders(home: str, names: Iterable[str]) -> list[str]:
    paths = [os.path.join(home, name) for name in names]
    return [path for path in paths if os.path.isdir(path) and not os.path.islink(path)]


def _lock_files(home: str) -> list[str]:
    folder = os.path.join(home, "run", "locks")
    return sorted([os.path.join(folder, name) for name in os.listdir(folder)]) if os.access(folder, _READABLE) else []
