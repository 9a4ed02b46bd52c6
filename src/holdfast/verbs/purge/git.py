"""What git still holds of a home: said plainly, with the command that takes it out. Nothing of it is ever run by us."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.verbs.purge.patterns import Traces

_SECONDS = 20
_MOST = 200  # versions of a file that are looked into
_DERIVED = ("index.db", "index.db-wal")  # made from the notes, as is the index.md beside them
_LEDGER = ("ledger.db", "ledger.db-wal")  # not made from anything: never to be taken out of the way


def still_held(home: str, paths: Iterable[str], traces: Traces) -> list[str]:
    """What a person should know of the history of the repository that the home is in; nothing where it is in none. The files
    themselves are asked for by name, and what is made from them by what it says."""
    home = os.path.realpath(home)
    root = _root(home)
    if not root:
        return []
    own = list(dict.fromkeys(paths))
    made = [*dict.fromkeys([_listing(path) for path in own]), *_DERIVED, *_LEDGER]
    inside = {path: os.path.relpath(os.path.join(home, path), root) for path in (*own, *made)}
    answers = {inside[path]: _in_history(root, inside[path]) for path in own}
    answers.update({inside[path]: _says(root, inside[path], traces) for path in made})
    if None in answers.values():
        return [f"the history of the git repository {root}, if its files were ever committed there: git could not be asked"]
    tracked = [path for path, there in answers.items() if there]
    if not tracked:
        return []
    ledger = [path for path in tracked if os.path.basename(path) in _LEDGER]
    out = [path for path in tracked if path not in ledger]
    names = ", ".join(out[:3]) + (f" and {len(out) - 3} more" if len(out) > 3 else "")
    held = f"the history of the git repository {root} still holds"
    told = [f"{held} {names}; to take it out: {command(root, out)}"] if out else []
    return told + [f"{held} it in {path}: copy that file before you take it out of there" for path in ledger]


def _listing(path: str) -> str:
    """The index.md of the scope that a file is in."""
    parts = path.split("/")
    return "/".join([*parts[: 2 if parts[1:2] == ["global"] else 3], "index.md"])


def _says(root: str, path: str, traces: Traces) -> bool | None:
    """Whether any version of a file that is made from others holds a piece of it; None if git cannot say."""
    there = _in_history(root, path)
    if not there or not len(traces):
        return there
    listed = _asked(root, "rev-list", "--all", "--objects", "--", path)
    if listed is None:
        return None
    rows = [row.partition(b" ") for row in listed.splitlines()]
    blobs = [row[0].decode() for row in rows if row[2] == os.fsencode(path)]
    if len(blobs) > _MOST:
        return True  # nobody looks into so many: better said once too often
    return any((data := _asked(root, "cat-file", "blob", blob)) is None or traces.within(data) for blob in blobs)


def command(root: str, paths: list[str]) -> str:
    """What rewrites the history without these files, and lets go of what it was before."""
    import shutil
    from shlex import quote

    where = f"git -C {quote(root)}"
    if shutil.which("git-filter-repo"):
        return f"{where} filter-repo --force --invert-paths {' '.join([f'--path {quote(path)}' for path in paths])}"
    remove = f"git rm -q --cached --ignore-unmatch -- {' '.join([quote(path) for path in paths])}"
    return (
        f"{where} filter-branch -f --index-filter {quote(remove)} -- --all"
        f" && rm -rf {quote(os.path.join(root, '.git', 'refs', 'original'))}"
        f" && {where} reflog expire --expire=now --all && {where} gc --prune=now"
    )


def _root(folder: str) -> str:
    """The nearest folder at or above this one that git keeps."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    return folder


def _in_history(root: str, path: str) -> bool | None:
    """Whether any commit of any branch has this path; None if git cannot say."""
    listed = _asked(root, "rev-list", "--all", "-n", "1", "--", path)
    return None if listed is None else bool(listed.strip())


def _asked(root: str, *words: str) -> bytes | None:
    import subprocess

    asked = ["git", "-C", root, *words]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
