"""How the home is: status, what is wrong and the command that mends it, and the catalogue built anew."""

from __future__ import annotations

import os
import time

from holdfast import house
from holdfast.errors import DiskTrouble
from holdfast.note import Problem, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.briefing import Brief
    from holdfast.desk import Desk

_LOW_DISK = 64 * 1024 * 1024
_SHOWN = 50  # problems of one kind that are listed one by one


class ScopeStatus(Record):
    """One scope's share."""

    scope: str
    visible: bool
    notes: int
    files: int
    bytes: int
    last_write: str


class Status(Record):
    """Where memory for this folder lives and how much there is."""

    home: str
    enabled: bool
    project: str | None
    session: str | None
    agent: str | None
    shelf: str
    scopes: tuple[ScopeStatus, ...]
    index_bytes: int
    ledger_bytes: int
    passages: int
    facts: int
    degraded: str
    briefing_chars: int
    briefed: tuple[str, ...]


class Reindexed(Record):
    """What a rebuild found."""

    notes: int
    files: int
    passages: int
    facts: int
    seconds: float


def status(desk: Desk, brief: Brief) -> Status:
    """The steps of `Memory.status`."""
    home, visible = desk.config.home, desk.folders(None)
    there = os.path.isdir(home)
    degraded = desk.look(tuple(dict.fromkeys([*visible, *(desk.shelf.scopes() if there else ())])))
    rows = desk.ask(desk.index.counts) if there else []
    totals = desk.ask(desk.index.totals) if there else (0, 0, 0, 0)
    scopes: dict[str, ScopeStatus] = {}
    for scope, part, count, size, last in rows:
        old = scopes.get(scope) or ScopeStatus(scope, scope in visible, 0, 0, 0, "")
        scopes[scope] = old.replace(**{part: count}, bytes=old.bytes + size, last_write=max(old.last_write, last))
    return Status(
        home, desk.config.enabled, desk.project_ids()[0], desk.session, desk.agent, os.path.join(home, "shelf"),
        tuple(scopes.values()), _size(home, "index.db"), _size(home, "ledger.db"), totals[2], totals[3], degraded,
        len(brief.text), brief.shown,
    )  # fmt: skip


def reindex(desk: Desk) -> Reindexed:
    """From nothing, all scopes."""
    start = time.monotonic()
    desk.index.start_anew()
    desk.sync.reset()
    desk.sync.look(tuple(desk.shelf.scopes()))
    notes, files, passages, facts = desk.index.totals()
    return Reindexed(notes, files, passages, facts, round(time.monotonic() - start, 3))


def check(desk: Desk) -> list[Problem]:
    """Everything that is not as it should be."""
    if not os.path.isdir(desk.config.home):
        return _no_folder(desk) + _marker(desk)
    try:
        house.must_be_ours(desk.config.home)
    except DiskTrouble as error:
        return [Problem("owner", error.message, f"sudo chown -R $(id -u) {_quoted(desk.config.home)}", desk.config.home)]
    problems = _home(desk) + _config(desk)
    try:
        broken = desk.index.verify()
    except DiskTrouble as error:
        broken = ""
        problems.append(Problem("index_unwritable", error.message, error.fix, "index.db"))
    if broken:
        problems.append(Problem("index_damaged", f"the index was damaged: {broken}", "holdfast reindex", "index.db"))
        desk.index.start_anew()
        desk.sync.reset()
    scopes = tuple(desk.shelf.scopes())
    reason = desk.look(scopes)
    if reason:
        problems.append(Problem("degraded", reason, "holdfast reindex", "index.db"))
    problems += _marker(desk) + _strays(desk) + _files(desk, scopes) + _unindexed(desk, scopes)
    if desk.ledger.problem:
        fix = "Compare it with a backup; until then usage and aliases are counted anew"
        problems.append(Problem("ledger", desk.ledger.problem, fix, "ledger.db"))
    return problems + _disk(desk)


def _home(desk: Desk) -> list[Problem]:
    mode = os.stat(desk.config.home).st_mode & 0o777
    if mode & 0o077:
        what = f"the home can be read by others (mode {mode:03o})"
        return [Problem("permissions", what, f"chmod 700 {_quoted(desk.config.home)}", desk.config.home)]
    return []


def _no_folder(desk: Desk) -> list[Problem]:
    home = desk.config.home
    if not os.path.lexists(home):
        return []
    return [Problem("home", f"the home {home} is not a folder", f"mv {_quoted(home)} {_quoted(home + '.old')}", home)]


def _marker(desk: Desk) -> list[Problem]:
    """A marker of this folder that counts for nothing: its notes would seem to be gone."""
    ignored = desk.ignored_marker()
    if not ignored:
        return []
    what = f"{ignored} is damaged, copied or another home's, so this folder goes by its path"
    return [Problem("marker", what, f"rm {_quoted(ignored)} && holdfast init --marker", ignored)]


def _config(desk: Desk) -> list[Problem]:
    return [
        Problem("unknown_setting", f"config.toml has an unknown setting {name}", "holdfast config", "config.toml")
        for name in desk.config.unknown
    ]


def _strays(desk: Desk) -> list[Problem]:
    strays = [
        Problem("stray", f"{path} stands where scopes do and is none", f"rm {_quoted(desk.shelf.full(path))}", path)
        for path in desk.shelf.strays()
    ]
    misnamed = [path for scope in desk.shelf.scopes() for path in desk.shelf.misnamed(scope)]
    return strays + [
        Problem("misnamed", f"{path!a}: its name is not UTF-8", "Rename it; until then it is not found", ascii(path))
        for path in misnamed
    ]


def _files(desk: Desk, scopes: tuple[str, ...]) -> list[Problem]:
    rows = desk.ask(lambda: desk.index.problems(scopes))
    problems = [
        Problem("file", f"{scope}/{part}/{name}: {what}", _fix(desk, scope, part, name, what), f"{scope}/{part}/{name}")
        for scope, part, name, what in rows[:_SHOWN]
    ]
    if len(rows) > _SHOWN:
        problems.append(Problem("file", f"and {len(rows) - _SHOWN} more files like these", "holdfast doctor"))
    return problems


def _fix(desk: Desk, scope: str, part: str, name: str, what: str) -> str:
    path = _quoted(os.path.join(desk.config.home, "shelf", scope, part, name))
    if "valid key" in what:
        from holdfast.note import key_of

        better = os.path.join(desk.config.home, "shelf", scope, part, key_of(name.removesuffix(".md")) + ".md")
        return f"mv {path} {_quoted(better)}"
    return f"rm {path}" if "link" in what or "empty" in what else f"${{EDITOR:-vi}} {path}"


def _unindexed(desk: Desk, scopes: tuple[str, ...]) -> list[Problem]:
    """Entries without an index row, or rows without an entry, after the catalogue had its chance."""
    problems = []
    for scope in scopes:
        here = {entry.name for entry in desk.shelf.census(scope, "notes")}
        known = set(desk.ask(lambda scope=scope: desk.index.stamps(scope, "notes")))  # type: ignore[misc]
        if here != known:
            what = f"{scope}: {len(here - known)} notes without an index row, {len(known - here)} rows without a note"
            problems.append(Problem("unindexed", what, "holdfast reindex", scope))
    return problems


def _disk(desk: Desk) -> list[Problem]:
    room = os.statvfs(desk.config.home)
    free = room.f_bavail * room.f_frsize
    if free < _LOW_DISK:
        return [Problem("disk", f"only {free // 1024} KiB are free on the home's disk", "Free some space", desk.config.home)]
    return []


def _size(home: str, name: str) -> int:
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(os.path.join(home, name + suffix)).st_size
        except OSError:
            pass
    return total


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
