"""The home's folders: whose they are, and whether this user may enter, read and change them."""

from __future__ import annotations

import os
import stat

from holdfast import home as home_folder
from holdfast.errors import HoldfastError
from holdfast.models import Problem
from holdfast.verbs.doctor.fixes import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.verbs.doctor.fixes import Fix

PARTS = ("notes", "files", "transcripts", "trash", "archive")  # of a scope
_GROUPS = ("shelf", "shelf/projects", "shelf/agents", "shelf/sessions")  # folders that scopes stand in
_LOCKS = ("run", "run/locks")
_SEEN = os.R_OK | os.X_OK


def no_folder(home: str, mending: Fix) -> list[Problem]:
    """No home yet is no problem, unless none can be made there."""
    try:
        os.lstat(home)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [Problem("home", f"there can be no home {home}: {error.strerror}", "Set HOLDFAST_HOME to another folder", home)]
    return [Problem("home", f"the home {home} is not a folder", mending.beside(home), home)]


def closed(home: str, mending: Fix) -> list[Problem]:
    """A home that is somebody else's, or that its own owner may not enter."""
    try:
        home_folder.check_owner(home)
    except HoldfastError as error:
        return [Problem("owner", error.message, mending.opened(home), home)]
    return []


def open_to_others(home: str) -> list[Problem]:
    mode = os.stat(home).st_mode & 0o777
    if mode & 0o077:
        what = f"the home can be read by others (mode {mode:03o})"
        return [Problem("permissions", what, f"chmod 700 {quoted(home)}", home)]
    return []


def in_the_way(home: str, mending: Fix, scopes: Callable[[], Iterable[str]]) -> list[Problem]:
    """What stands where a folder or a lock of ours belongs: until it is gone, little else works or can be looked at."""
    wrong = _wrong(home, [(path, stat.S_ISDIR) for path in (*_LOCKS, "shelf")]) or _wrong(home, _inside(home, scopes()))
    return [
        Problem("in_the_way", f"{path} is a link or something else than it must be", mending.out_of_the_way(full), path)
        for path, full in wrong
    ]


def _inside(home: str, scopes: Iterable[str]) -> list[tuple[str, Callable[[int], bool]]]:
    """The places of a home, and what may stand there."""
    every = list(scopes)
    places = [(f"shelf/{scope}/{part}", stat.S_ISDIR) for scope in every for part in PARTS]
    places += [(f"shelf/{scope}/index.md", lambda mode: not stat.S_ISDIR(mode)) for scope in every]
    return places + [(os.path.relpath(path, home), stat.S_ISREG) for path in _locks(home)]


def _wrong(home: str, places: list[tuple[str, Callable[[int], bool]]]) -> list[tuple[str, str]]:
    """Where something else stands than may."""
    full = [(path, os.path.join(home, path), may) for path, may in places]
    return [(path, where) for path, where, may in full if os.path.lexists(where) and not may(os.lstat(where).st_mode)]


def can_be_listed(home: str) -> bool:
    """Whether it can be seen which scopes there are."""
    return all(os.access(path, _SEEN) for name in _GROUPS if os.path.isdir(path := os.path.join(home, name)))


def readable(home: str, scopes: Iterable[str]) -> tuple[str, ...]:
    """Those of these scopes that can be looked at."""
    return tuple([scope for scope in scopes if all(os.access(path, _SEEN) for path in _folders(home, _of_scopes([scope])))])


def shut(home: str, mending: Fix, scopes: Iterable[str] = ()) -> list[Problem]:
    """Folders and locks that this user may not read or change, though the home is theirs: stores fail there. What is below
    such a folder is not named too."""
    full = os.R_OK | os.W_OK | os.X_OK
    wrong = [path for path in _folders(home, [*_LOCKS, *_GROUPS, *_of_scopes(scopes)]) if not os.access(path, full)]
    wrong += [path for path in _locks(home) if not os.access(path, os.R_OK | os.W_OK)][:1]
    top = [path for path in wrong if not any(path.startswith(f"{other}/") for other in wrong)]
    return [_problem(home, mending, path) for path in top]


def _of_scopes(scopes: Iterable[str]) -> list[str]:
    return [f"shelf/{scope}{part}" for scope in scopes for part in ("", *[f"/{part}" for part in PARTS])]


def _folders(home: str, names: Iterable[str]) -> list[str]:
    every = [os.path.join(home, name) for name in names]
    return [path for path in every if os.path.isdir(path) and not os.path.islink(path)]


def _locks(home: str) -> list[str]:
    folder = os.path.join(home, *_LOCKS[1].split("/"))
    return sorted([os.path.join(folder, name) for name in os.listdir(folder)]) if os.access(folder, _SEEN) else []


def _problem(home: str, mending: Fix, path: str) -> Problem:
    name, owner = os.path.relpath(path, home), os.stat(path).st_uid
    whose = f"belongs to user {owner}, not to you ({os.geteuid()})" if owner != os.geteuid() else "is shut for its own owner"
    what = "nothing in it can be seen" if not os.access(path, os.R_OK) else "nothing can be written there"
    if name.startswith("run/locks/"):  # where one is somebody else's, others are too
        fix = mending.opened(os.path.dirname(path), path)
        return Problem("owner", f"{name} {whose}: nothing can be locked with it", fix, name)
    return Problem("owner", f"{name} {whose}: {what}", mending.opened(path), name)
