"""How the home is: status, what is wrong and the command that mends it, and the catalogue built anew."""

from __future__ import annotations

import os
import time

from holdfast.base import dates, failure_log
from holdfast.config import named, source, without_password
from holdfast.context import archive
from holdfast.context.sync import CAME_BACK
from holdfast.embedders import available, for_search
from holdfast.errors import DiskTrouble, HoldfastError
from holdfast.formats.versions import entry_head
from holdfast.index.sqlite import Asked
from holdfast.index.vectors import Model
from holdfast.models import Problem, Record, Scope
from holdfast.search.vectorize import by_role
from holdfast.verbs import projects
from holdfast.verbs.doctor import facts as fact_lines
from holdfast.verbs.doctor import permissions, secrets
from holdfast.verbs.doctor.fixes import lacks_room, quoted, told
from holdfast.verbs.doctor.fixes import mending as mending_of
from holdfast.verbs.read import WIKI_INDEX, overviews

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.context.caller import Desk
    from holdfast.verbs.brief.render import Brief
    from holdfast.verbs.doctor.fixes import Mending

_LEDGER, _READ_ONLY, _DISK = "ledger.db", "read_only", "disk"
_HEARTBEAT, _HEARTBEAT_LINES = "HEARTBEAT.md", 40
_LOW_DISK = 64 * 1024 * 1024
_HOOK_SECONDS = 7 * 86400
_SHOWN = 50  # problems of one kind that are listed one by one
_FOR_WANT_OF_WRITING = ("index_unwritable", "index_damaged", "degraded", "unindexed", "ledger")  # where nothing can be written


class ScopeStatus(Record):
    """One scope's share."""

    scope: str
    visible: bool
    notes: int
    files: int
    bytes: int
    last_write: str
    sessions: int = 0
    archived: int = 0  # not updated or used for their scope's time: left out of briefings, still found by recall


class Status(Record):
    """Where memory for this folder lives and how much there is."""

    home: str
    enabled: bool
    project: str | None
    session: str | None
    agent: str | None
    shelf: str
    scopes: tuple[ScopeStatus, ...]
    index_bytes: int | None  # None, here and below: not told, or nobody counted
    ledger_bytes: int | None
    passages: int | None
    facts: int | None
    degraded: str
    briefing_chars: int
    briefed: tuple[str, ...]
    sessions: int | None = None
    turns: int | None = None
    embedder: str = "none"
    unusable: str = ""  # what keeps the embedder from being loaded
    waiting: int | None = None  # passages that lack vectors
    quarantined: int | None = None  # notes that this caller may see and that are not told before a person approved them
    archived: tuple[str, ...] = ()  # how many notes are archived and why, a line for each kind of scope


class Reindexed(Record):
    """What a rebuild found."""

    notes: int
    files: int
    passages: int
    facts: int
    seconds: float


def status(desk: Desk, brief: Brief, whole: bool = True) -> Status:
    """The steps of `Memory.status`: of the whole home, or of no more than the scopes that the caller may see."""
    if not desk.config.enabled:
        return _switched_off(desk, whole)
    home, visible = desk.config.home, desk.folders(None)
    there = desk.shelf.there()
    folders = tuple(dict.fromkeys([*visible, *(desk.shelf.scopes() if there and whole else ())]))
    degraded = desk.look(folders, archived=True) or _without_vectors(desk) or _lost(desk)
    last: dict[str, str] = {}
    for scope, part, _, _, updated in desk.ask(desk.index.counts) if there else ():
        written = "" if part == "transcripts" else updated  # a turn is dated by when it was said
        last[scope] = max(last.get(scope, ""), written)
    passages, facts = desk.ask(lambda: desk.index.amounts(None if whole else visible)) if there else (0, 0)
    scopes = [_scope(desk, scope, scope in visible, last[scope]) for scope in folders if scope in last]
    return Status(
        home, True, desk.project_ids()[0], desk.session, desk.agent, _shelf(desk), tuple(scopes),
        *(_sizes(desk) if whole else (None, None)), passages, facts, degraded, len(brief.text), brief.shown,
        sum([one.sessions for one in scopes]), _turns(desk, folders) if there else 0, _shown(desk),
        "; ".join([what for what, _ in available.missing(desk.config.embedder)]),
        (_waiting(desk) if there else 0) if whole else None,
        desk.ask(lambda: desk.index.count(visible, only=1)) if there else 0,
        tuple(archive.reasons([Scope.of_folder(one.scope).kind for one in scopes for _ in range(one.archived)], desk.config)),
    )  # fmt: skip


def _without_vectors(desk: Desk) -> str:
    if not desk.config.store:
        return ""  # a home keeps them by itself
    from holdfast.postgres import backend

    return backend.without_vectors(desk.config, desk.index)[0]


def _lost(desk: Desk) -> str:
    """What the ledger lost of what was purged."""
    if not desk.any_purged():
        return ""
    from holdfast.ledger.integrity import losses

    try:
        return "; ".join(losses(desk.ledger.purges))
    except HoldfastError as error:
        return f"what was purged cannot be seen: {error.message}"


def _switched_off(desk: Desk, whole: bool) -> Status:
    """Where things are and nothing of what is in them. To find out the project would open a database; so it is only told."""
    project, sizes = desk.project_ids()[0] if desk.override else None, _sizes(desk) if whole else (None, None)
    return Status(
        desk.config.home, False, project, desk.session, desk.agent, _shelf(desk), (), *sizes, None, None, "", 0, (),
        embedder=_shown(desk),
    )  # fmt: skip


def _sizes(desk: Desk) -> tuple[int | None, int | None]:
    """Of the catalogue and of the ledger; a store has no files to tell the size of."""
    home = desk.config.home
    return (None, None) if desk.config.store else (_size(home, "index.db"), _size(home, _LEDGER))


def _shelf(desk: Desk) -> str:
    """Where the notes stand: a folder, or whose part of which database."""
    if desk.config.store:
        return f"{without_password(desk.config.store)} (tenant {desk.config.tenant})"
    return os.path.join(desk.config.home, "shelf")


def _shown(desk: Desk) -> str:
    return without_password(desk.config.embedder)


def _scope(desk: Desk, scope: str, visible: bool, last_write: str) -> ScopeStatus:
    """Counted on the shelf: a link or a pipe is no note."""
    notes = [entry for entry in desk.shelf.census(scope, "notes") if entry.regular and entry.name.endswith(".md")]
    files = [entry for entry in desk.shelf.tree(scope, 0).census() if entry.regular]
    said = [entry for entry in desk.shelf.rolls(scope, 0).census() if entry.regular]
    size = sum([entry.stamp[2] for entry in notes + files + said])
    last = max([last_write, *[dates.stamp(entry.stamp[1] / 1e9) for entry in said]])
    archived = [one for one in desk.shelf.binned(Scope.of_folder(scope)) if one.part == "archive"]
    return ScopeStatus(scope, visible, len(notes), len(files), size, last, len(said), len(archived))


def _turns(desk: Desk, folders: tuple[str, ...]) -> int:
    return sum([passages for _, passages, _ in desk.ask(lambda: desk.index.folders_of(Asked(folders, "transcripts")))])


def _waiting(desk: Desk) -> int:
    """How many passages lack vectors of a model that is set: those of the one that has seen the fewest."""
    try:
        wanted = [(one.name, role) for role, one in by_role(for_search(desk.config.embedder)).items()]
    except HoldfastError:
        return 0  # what is wrong with the setting is told elsewhere
    seen = {(model.name, model.role): model for model in desk.ask(desk.index.vectors.models)}
    unseen = [seen.get(one) or Model(0, one[0], 0, 0) for one in wanted]
    return max([desk.ask(lambda one=one: desk.index.vectors.count_waiting(one)) for one in unseen], default=0)  # type: ignore[misc]


def reindex(desk: Desk) -> Reindexed:
    """From nothing, all scopes."""
    start = time.monotonic()
    desk.index.start_anew()
    desk.sync.reset()
    desk.sync.look(tuple(desk.shelf.scopes()), archived=True)
    notes, files, passages, facts = desk.index.totals()
    return Reindexed(notes, files, passages, facts, round(time.monotonic() - start, 3))


def check(desk: Desk) -> list[Problem]:
    """Everything that is not as it should be. Switched off, only what can be seen without writing anything."""
    enabled, mending, home = desk.config.enabled, mending_of(desk.config), desk.config.home
    if desk.config.store:
        return _hosted(desk, mending)
    if not os.path.isdir(home):
        return permissions.no_folder(home, mending) + (_marker(desk, mending) if enabled else [])
    closed = permissions.closed(home, mending)
    if closed:
        return closed
    sealed = _sealed(home, mending)
    problems = permissions.open_to_others(home) + _config(desk, mending) + (sealed or _disk(desk, mending)) + _hooks(desk)
    if not permissions.can_be_listed(home):
        return problems + ([] if sealed else permissions.shut(home, mending))
    in_the_way = permissions.in_the_way(home, mending, desk.shelf.scopes)
    if in_the_way:
        return problems + in_the_way
    problems += [] if sealed else permissions.shut(home, mending, desk.shelf.scopes())
    scopes = permissions.readable(home, desk.shelf.scopes())
    looks: list[Callable[[], list[Problem]]] = [lambda: _strays(desk, mending, scopes)]
    if enabled:
        looks = [
            lambda: _index(desk, mending, scopes), lambda: _marker(desk, mending), *looks,
            lambda: _files(desk, mending, scopes), lambda: _trees(desk, mending, scopes),
            lambda: _unindexed(desk, mending, scopes), lambda: _ledger(desk, mending),
            lambda: _embedder(desk, mending), lambda: secrets.problems(desk), lambda: _projects(desk, mending),
            lambda: fact_lines.problems(desk, mending, scopes),
        ]  # fmt: skip
    found = [problem for look in looks for problem in _seen(look)]
    return problems + [one for one in found if not sealed or one.code not in _FOR_WANT_OF_WRITING]


def beside(problems: list[Problem], more: list[Problem]) -> list[Problem]:
    """Those, and what another look found, without what that says of the ledger once more, or of one that nobody can write."""
    full = any(one.code == _DISK and lacks_room(one.path) for one in problems)
    told = full or any(one.path == _LEDGER or one.code == _READ_ONLY for one in problems)
    return [*problems, *[one for one in more if not told or one.path != _LEDGER]]


def _seen(look: Callable[[], list[Problem]]) -> list[Problem]:
    """What one look finds; one that is kept from looking does not keep the others from it."""
    try:
        return look()
    except HoldfastError as error:
        return [Problem("unseen", f"not everything could be looked at: {error.message}", error.fix)]


def _hosted(desk: Desk, mending: Mending) -> list[Problem]:
    """A store has no folder whose owner, links or disk could be wrong."""
    from holdfast.postgres import backend

    problems = _config(desk, mending) + (_hooks(desk) if os.path.isdir(desk.config.home) else [])
    if not desk.config.enabled:
        return problems
    try:
        scopes = tuple(desk.shelf.scopes())
        problems += backend.problems(desk.config, desk.index)
        problems += _index(desk, mending, scopes) + _marker(desk, mending) + _files(desk, mending, scopes)
        problems += _trees(desk, mending, scopes)
        problems += _unindexed(desk, mending, scopes) + _ledger(desk, mending) + _embedder(desk, mending)
        problems += secrets.problems(desk) + fact_lines.problems(desk, mending, scopes)
    except HoldfastError as error:  # away from the start, or since a moment
        problems.append(Problem("store", f"the store cannot be asked: {error.message}", error.fix, _shelf(desk)))
    return problems


# --- the home ---------------------------------------------------------------------------------------------------------


def _config(desk: Desk, mending: Mending) -> list[Problem]:
    fix = mending.edited(os.path.join(desk.config.home, "config.toml"))
    what = "trust.quarantine is empty: what came from the web or an import is told to agents, whoever wrote it"
    back = mending.holdfast("config trust.quarantine --unset")
    off = [] if desk.config.quarantine else [Problem("quarantine-off", what, back, "config.toml")]
    return off + [
        Problem("unknown_setting", f"config.toml has an unknown setting {name}", fix, "config.toml")
        for name in desk.config.unknown
    ]


def _disk(desk: Desk, mending: Mending) -> list[Problem]:
    room = os.statvfs(desk.config.home)
    free = room.f_bavail * room.f_frsize
    if free < _LOW_DISK:
        what = f"only {free // 1024} KiB are free on the home's disk"
        return [Problem(_DISK, what, mending.more_room(), desk.config.home)]
    return []


def _sealed(home: str, mending: Mending) -> list[Problem]:
    """A file system that lets nobody write: whatever else cannot be written is for this, and no mode or owner is to blame."""
    for path in (home, os.path.join(home, "shelf")):
        if os.path.isdir(path) and os.statvfs(path).f_flag & os.ST_RDONLY:
            what = f"the file system of {path} is mounted read-only: memory can be read, and nothing can be kept"
            return [Problem(_READ_ONLY, what, mending.writable(path), path)]
    return []


def _marker(desk: Desk, mending: Mending) -> list[Problem]:
    """A marker of this folder that counts for nothing: its notes would seem to be gone."""
    ignored = desk.ignored_marker()
    if not ignored:
        return []
    marked_anew = f"(cd {quoted(os.path.dirname(os.path.dirname(ignored)))} && {mending.holdfast('init --marker')})"
    what = f"{ignored} is damaged, copied or another home's, so this folder goes by its path"
    return [Problem("marker", what, f"{mending.beside(ignored)} && {marked_anew}", ignored)]


def _projects(desk: Desk, mending: Mending) -> list[Problem]:
    """Projects that no folder leads to any more: their notes are found from nowhere. In a store nobody can tell, since the
    folders may be those of other machines."""
    return [
        Problem(
            "project_gone", f"the folder of the project {one.id} is gone: {', '.join([told(path) for path in one.folders])}",
            f"In its new folder run `{mending.holdfast(f'project adopt {one.id}')}`; to forget its notes run "
            f"`{mending.holdfast(f'clear --scope project --project {one.id} --yes')}`",
            f"projects/{one.id}",
        )
        for one in projects.gone(desk)[:_SHOWN]
    ]  # fmt: skip


def _hooks(desk: Desk) -> list[Problem]:
    """What went wrong in hooks this week: the same trouble once, with how often and when last."""
    home, since = desk.config.home, dates.stamp(dates.clock() - _HOOK_SECONDS)
    alike: dict[tuple[str, ...], list[str]] = {}
    for mishap in failure_log.read(home):
        if mishap.time >= since:
            alike.setdefault((mishap.client, mishap.event, mishap.message, mishap.fix), []).append(mishap.time)
    log = failure_log.path(home)
    return [
        Problem(
            "hook", f"the hook of {client} at {event} failed {_times(len(times))}, last {times[-1]}: {message}",
            f"{fix}; afterwards rm -f {quoted(log)}", log,
        )
        for (client, event, message, fix), times in list(alike.items())[-_SHOWN:]
    ]  # fmt: skip


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


# --- what stands on the shelf -----------------------------------------------------------------------------------------


def _strays(desk: Desk, mending: Mending, scopes: tuple[str, ...]) -> list[Problem]:
    strays = [
        Problem("stray", f"{path} stands where scopes do and is none", mending.out_of_the_way(desk.shelf.full(path)), path)
        for path in desk.shelf.strays()
    ]
    misnamed = [path for scope in scopes for path in desk.shelf.misnamed(scope)]
    return strays + [
        Problem("misnamed", f"{path!a}: its name is not UTF-8, so it is not found", mending.renamed(path), ascii(path))
        for path in misnamed
    ]


def _files(desk: Desk, mending: Mending, scopes: tuple[str, ...]) -> list[Problem]:
    rows = desk.ask(lambda: desk.index.problems(scopes))
    problems = [
        Problem("file", f"{(path := told(f'{scope}/{part}/{name}'))}: {what}", mending.of_file(scope, part, name), path)
        for scope, part, name, what in rows[:_SHOWN]
        if not what.startswith(CAME_BACK)
    ]
    problems += [
        Problem("purged", f"{(path := told(f'{scope}/{part}/{name}'))}: {what}", mending.of_returned(scope, part, name), path)
        for scope, part, name, what in rows
        if what.startswith(CAME_BACK)
    ]
    if len(rows) > _SHOWN:
        problems.append(Problem("file", f"and {len(rows) - _SHOWN} more files like these", mending.holdfast("doctor")))
    return problems


def _trees(desk: Desk, mending: Mending, scopes: tuple[str, ...]) -> list[Problem]:
    """Files of an agent's own tree that its briefings and start-ups cannot tell as they should."""
    return [problem for scope in scopes for problem in (*_heartbeat(desk, mending, scope), *_unlisted(desk, mending, scope))]


def _heartbeat(desk: Desk, mending: Mending, scope: str) -> list[Problem]:
    """A heartbeat that grew too long to be read at every start."""
    lines = len((_text_of(desk, scope, _HEARTBEAT) or "").splitlines())
    if lines < _HEARTBEAT_LINES:
        return []
    path = f"{scope}/files/{_HEARTBEAT}"
    what = f"{path} has {lines} lines; keep it under {_HEARTBEAT_LINES}. Move older news to another file"
    return [Problem("heartbeat", what, mending.rewritten(scope, _HEARTBEAT), path)]


def _unlisted(desk: Desk, mending: Mending, scope: str) -> list[Problem]:
    """Entry files in a tree without an overview page: no briefing mentions them."""
    tree = desk.shelf.tree(scope, 0)
    names = [entry.name for entry in tree.census() if entry.regular and entry.name.endswith(".md")]
    if not names or overviews(desk.shelf, Scope.of_folder(scope), most=1):
        return []
    first = next((name for name in names if entry_head(name, _text_of(desk, scope, name) or "").name), None)
    if first is None:
        return []
    page = WIKI_INDEX if WIKI_INDEX in names else "MEMORY.md"
    what = f"{scope}/files has entry files such as {told(first)}, but no page that a briefing shows. List them in {page}"
    return [Problem("no_overview", what, mending.rewritten(scope, page), f"{scope}/files/{page}")]


def _text_of(desk: Desk, scope: str, name: str) -> str | None:
    """The text of a file, or None if it is missing or cannot be read."""
    try:
        sheet = desk.shelf.tree(scope, 0).read(tuple(name.split("/")))
    except HoldfastError:
        return None
    return sheet.data.decode("utf-8", "replace") if sheet is not None else None


# --- the databases ----------------------------------------------------------------------------------------------------


def _index(desk: Desk, mending: Mending, scopes: tuple[str, ...]) -> list[Problem]:
    problems, broken = [], ""
    fix = mending.room() or mending.holdfast("reindex")
    try:
        broken = desk.index.verify(desk.progress)
    except DiskTrouble as error:
        unwritable = mending.room() or mending.of_database("index.db")
        problems.append(Problem("index_unwritable", error.message, unwritable, "index.db"))
    if broken:
        problems.append(Problem("index_damaged", f"the index was damaged: {broken}", fix, "index.db"))
        desk.index.start_anew()
        desk.sync.reset()
    reason = desk.look(scopes, archived=True)
    if desk.index.in_memory and not problems:
        what = f"the index cannot be kept: {desk.index.in_memory}"
        problems.append(Problem("index_unwritable", what, mending.room() or mending.of_database("index.db"), "index.db"))
    elif reason:
        problems.append(Problem("degraded", reason, fix, "index.db"))
    return problems


def _unindexed(desk: Desk, mending: Mending, scopes: tuple[str, ...]) -> list[Problem]:
    """Entries without an index row, or rows without an entry, after the catalogue had its chance."""
    problems = []
    for scope in scopes:
        notes = {entry.name for entry in desk.shelf.census(scope, "notes")}
        said = {entry.name for entry in desk.shelf.rolls(scope, 0).census()}
        archived = {entry.name for entry in desk.shelf.census(scope, "archive")}
        every = ("notes", "note", notes), ("archive", "archived note", archived), ("transcripts", "transcript", said)
        for part, kind, here in every:
            known = set(desk.ask(lambda scope=scope, part=part: desk.index.stamps(scope, part)))  # type: ignore[misc]
            if here != known:
                what = f"{scope}: {len(here - known)} {kind}s without an index row, {len(known - here)} rows without a {kind}"
                problems.append(Problem("unindexed", what, mending.room() or mending.holdfast("reindex"), scope))
    return problems


def _embedder(desk: Desk, mending: Mending) -> list[Problem]:
    """Search by meaning that cannot work. That it lags behind is no problem: `status` says so, and so does the answer."""
    wrong = available.missing(desk.config.embedder) or available.silent(desk.config.embedder, desk.config.embed_key)
    another = mending.holdfast("config search.embedder default")
    if os.path.isdir(desk.config.home) and source(named("search.embedder"), desk.config.home) == "HOLDFAST_EMBEDDER":
        another = f"unset HOLDFAST_EMBEDDER; {another}"  # it would go over what the command sets
    return [Problem("embedder", what, fix or another) for what, fix in wrong]


def _ledger(desk: Desk, mending: Mending) -> list[Problem]:
    try:
        desk.ledger.canonical("")  # asked anything, a damaged one sets itself aside
    except HoldfastError as error:
        return [Problem("ledger", error.message, mending.room() or error.fix, _LEDGER)]
    if desk.ledger.problem:
        return [Problem("ledger", desk.ledger.problem, mending.room() or mending.of_database(_LEDGER), _LEDGER)]
    return []


def _size(home: str, name: str) -> int:
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(os.path.join(home, name + suffix)).st_size
        except OSError:
            pass
    return total
