"""How the home is: status, what is wrong and the command that mends it, and the catalogue built anew."""

from __future__ import annotations

import os
import time

from holdfast.base import dates, failure_log
from holdfast.base.record import Record
from holdfast.config import find_setting, hide_password, setting_source
from holdfast.context import archive
from holdfast.context.sync import CAME_BACK
from holdfast.embedders import available, open_for_search
from holdfast.errors import DiskTrouble, HoldfastError
from holdfast.formats.frontmatter import parse_file_header
from holdfast.index.sqlite import SearchFilter
from holdfast.index.vectors import Model
from holdfast.models import Problem, Scope
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

    from holdfast.context.caller import Context
    from holdfast.verbs.brief.render import Brief
    from holdfast.verbs.doctor.fixes import Fix

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
    store: str
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


def status(context: Context, brief: Brief, whole: bool = True) -> Status:
    """The steps of `Memory.status`: of the whole home, or of no more than the scopes that the caller may see."""
    if not context.config.enabled:
        return _switched_off(context, whole)
    home, visible = context.config.home, context.visible_folders(None)
    there = context.store.exists()
    folders = tuple(dict.fromkeys([*visible, *(context.store.scopes() if there and whole else ())]))
    degraded = context.refresh(folders, archived=True) or _without_vectors(context) or _lost(context)
    last: dict[str, str] = {}
    for scope, part, _, _, updated in context.query(context.index.counts) if there else ():
        written = "" if part == "transcripts" else updated  # a turn is dated by when it was said
        last[scope] = max(last.get(scope, ""), written)
    passages, facts = context.query(lambda: context.index.amounts(None if whole else visible)) if there else (0, 0)
    scopes = [_scope(context, scope, scope in visible, last[scope]) for scope in folders if scope in last]
    return Status(
        home, True, context.project_ids()[0], context.session, context.agent, _store(context), tuple(scopes),
        *(_sizes(context) if whole else (None, None)), passages, facts, degraded, len(brief.text), brief.shown,
        sum([one.sessions for one in scopes]), _turns(context, folders) if there else 0, _shown(context),
        "; ".join([what for what, _ in available.find_missing_packages(context.config.embedder)]),
        (_waiting(context) if there else 0) if whole else None,
        context.query(lambda: context.index.count(visible, only=1)) if there else 0,
        tuple(
            archive.reasons([Scope.of_folder(one.scope).kind for one in scopes for _ in range(one.archived)], context.config)
        ),
    )  # fmt: skip


def _without_vectors(context: Context) -> str:
    if not context.config.store:
        return ""  # a home keeps them by itself
    from holdfast.postgres import backend

    return backend.without_vectors(context.config, context.index)[0]


def _lost(context: Context) -> str:
    """What the ledger lost of what was purged."""
    if not context.any_purged():
        return ""
    from holdfast.ledger.integrity import losses

    try:
        return "; ".join(losses(context.ledger.purges))
    except HoldfastError as error:
        return f"what was purged cannot be seen: {error.message}"


def _switched_off(context: Context, whole: bool) -> Status:
    """Where things are and nothing of what is in them. To find out the project would open a database; so it is only told."""
    project, sizes = context.project_ids()[0] if context.project_override else None, _sizes(context) if whole else (None, None)
    return Status(
        context.config.home, False, project, context.session, context.agent, _store(context), (), *sizes, None, None, "", 0, (),
        embedder=_shown(context),
    )  # fmt: skip


def _sizes(context: Context) -> tuple[int | None, int | None]:
    """Of the catalogue and of the ledger; a store has no files to tell the size of."""
    home = context.config.home
    return (None, None) if context.config.store else (_size(home, "index.db"), _size(home, _LEDGER))


def _store(context: Context) -> str:
    """Where the notes stand: a folder, or whose part of which database."""
    if context.config.store:
        return f"{hide_password(context.config.store)} (tenant {context.config.tenant})"
    return os.path.join(context.config.home, "shelf")


def _shown(context: Context) -> str:
    return hide_password(context.config.embedder)


def _scope(context: Context, scope: str, visible: bool, last_write: str) -> ScopeStatus:
    """Counted on the shelf: a link or a pipe is no note."""
    notes = [entry for entry in context.store.entries(scope, "notes") if entry.regular and entry.name.endswith(".md")]
    files = [entry for entry in context.store.tree(scope, 0).census() if entry.regular]
    said = [entry for entry in context.store.transcript_files(scope, 0).census() if entry.regular]
    size = sum([entry.stamp[2] for entry in notes + files + said])
    last = max([last_write, *[dates.timestamp(entry.stamp[1] / 1e9) for entry in said]])
    archived = [one for one in context.store.list_trash(Scope.of_folder(scope)) if one.part == "archive"]
    return ScopeStatus(scope, visible, len(notes), len(files), size, last, len(said), len(archived))


def _turns(context: Context, folders: tuple[str, ...]) -> int:
    return sum(
        [passages for _, passages, _ in context.query(lambda: context.index.folders_of(SearchFilter(folders, "transcripts")))]
    )


def _waiting(context: Context) -> int:
    """How many passages lack vectors of a model that is set: those of the one that has seen the fewest."""
    try:
        wanted = [(one.name, role) for role, one in by_role(open_for_search(context.config.embedder)).items()]
    except HoldfastError:
        return 0  # what is wrong with the setting is told elsewhere
    seen = {(model.name, model.role): model for model in context.query(context.index.vectors.models)}
    unseen = [seen.get(one) or Model(0, one[0], 0, 0) for one in wanted]
    return max([context.query(lambda one=one: context.index.vectors.count_waiting(one)) for one in unseen], default=0)  # type: ignore[misc]


def reindex(context: Context) -> Reindexed:
    """From nothing, all scopes."""
    start = time.monotonic()
    context.index.start_anew()
    context.sync.reset()
    context.sync.refresh(tuple(context.store.scopes()), archived=True)
    notes, files, passages, facts = context.index.totals()
    return Reindexed(notes, files, passages, facts, round(time.monotonic() - start, 3))


def check(context: Context) -> list[Problem]:
    """Everything that is not as it should be. Switched off, only what can be seen without writing anything."""
    enabled, mending, home = context.config.enabled, mending_of(context.config), context.config.home
    if context.config.store:
        return _hosted(context, mending)
    if not os.path.isdir(home):
        return permissions.no_folder(home, mending) + (_marker(context, mending) if enabled else [])
    closed = permissions.closed(home, mending)
    if closed:
        return closed
    sealed = _sealed(home, mending)
    problems = (
        permissions.open_to_others(home) + _config(context, mending) + (sealed or _disk(context, mending)) + _hooks(context)
    )
    if not permissions.can_be_listed(home):
        return problems + ([] if sealed else permissions.shut(home, mending))
    in_the_way = permissions.in_the_way(home, mending, context.store.scopes)
    if in_the_way:
        return problems + in_the_way
    problems += [] if sealed else permissions.shut(home, mending, context.store.scopes())
    scopes = permissions.readable(home, context.store.scopes())
    looks: list[Callable[[], list[Problem]]] = [lambda: _strays(context, mending, scopes)]
    if enabled:
        looks = [
            lambda: _index(context, mending, scopes), lambda: _marker(context, mending), *looks,
            lambda: _files(context, mending, scopes), lambda: _trees(context, mending, scopes),
            lambda: _unindexed(context, mending, scopes), lambda: _ledger(context, mending),
            lambda: _embedder(context, mending), lambda: secrets.problems(context), lambda: _projects(context, mending),
            lambda: fact_lines.problems(context, mending, scopes),
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


def _hosted(context: Context, mending: Fix) -> list[Problem]:
    """A store has no folder whose owner, links or disk could be wrong."""
    from holdfast.postgres import backend

    problems = _config(context, mending) + (_hooks(context) if os.path.isdir(context.config.home) else [])
    if not context.config.enabled:
        return problems
    try:
        scopes = tuple(context.store.scopes())
        problems += backend.problems(context.config, context.index)
        problems += _index(context, mending, scopes) + _marker(context, mending) + _files(context, mending, scopes)
        problems += _trees(context, mending, scopes)
        problems += _unindexed(context, mending, scopes) + _ledger(context, mending) + _embedder(context, mending)
        problems += secrets.problems(context) + fact_lines.problems(context, mending, scopes)
    except HoldfastError as error:  # away from the start, or since a moment
        problems.append(Problem("store", f"the store cannot be asked: {error.message}", error.fix, _store(context)))
    return problems


# --- the home ---------------------------------------------------------------------------------------------------------


def _config(context: Context, mending: Fix) -> list[Problem]:
    fix = mending.edited(os.path.join(context.config.home, "config.toml"))
    what = "trust.quarantine is empty: what came from the web or an import is told to agents, whoever wrote it"
    back = mending.holdfast("config trust.quarantine --unset")
    off = [] if context.config.quarantine else [Problem("quarantine-off", what, back, "config.toml")]
    return off + [
        Problem("unknown_setting", f"config.toml has an unknown setting {name}", fix, "config.toml")
        for name in context.config.unknown
    ]


def _disk(context: Context, mending: Fix) -> list[Problem]:
    room = os.statvfs(context.config.home)
    free = room.f_bavail * room.f_frsize
    if free < _LOW_DISK:
        what = f"only {free // 1024} KiB are free on the home's disk"
        return [Problem(_DISK, what, mending.more_room(), context.config.home)]
    return []


def _sealed(home: str, mending: Fix) -> list[Problem]:
    """A file system that lets nobody write: whatever else cannot be written is for this, and no mode or owner is to blame."""
    for path in (home, os.path.join(home, "shelf")):
        if os.path.isdir(path) and os.statvfs(path).f_flag & os.ST_RDONLY:
            what = f"the file system of {path} is mounted read-only: memory can be read, and nothing can be kept"
            return [Problem(_READ_ONLY, what, mending.writable(path), path)]
    return []


def _marker(context: Context, mending: Fix) -> list[Problem]:
    """A marker of this folder that counts for nothing: its notes would seem to be gone."""
    ignored = context.ignored_marker()
    if not ignored:
        return []
    marked_anew = f"(cd {quoted(os.path.dirname(os.path.dirname(ignored)))} && {mending.holdfast('init --marker')})"
    what = f"{ignored} is damaged, copied or another home's, so this folder goes by its path"
    return [Problem("marker", what, f"{mending.beside(ignored)} && {marked_anew}", ignored)]


def _projects(context: Context, mending: Fix) -> list[Problem]:
    """Projects that no folder leads to any more: their notes are found from nowhere. In a store nobody can tell, since the
    folders may be those of other machines."""
    return [
        Problem(
            "project_gone", f"the folder of the project {one.id} is gone: {', '.join([told(path) for path in one.folders])}",
            f"In its new folder run `{mending.holdfast(f'project adopt {one.id}')}`; to forget its notes run "
            f"`{mending.holdfast(f'clear --scope project --project {one.id} --yes')}`",
            f"projects/{one.id}",
        )
        for one in projects.gone(context)[:_SHOWN]
    ]  # fmt: skip


def _hooks(context: Context) -> list[Problem]:
    """What went wrong in hooks this week: the same trouble once, with how often and when last."""
    home, since = context.config.home, dates.timestamp(dates.clock() - _HOOK_SECONDS)
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


def _strays(context: Context, mending: Fix, scopes: tuple[str, ...]) -> list[Problem]:
    strays = [
        Problem("stray", f"{path} stands where scopes do and is none", mending.out_of_the_way(context.store.full(path)), path)
        for path in context.store.strays()
    ]
    misnamed = [path for scope in scopes for path in context.store.misnamed(scope)]
    return strays + [
        Problem("misnamed", f"{path!a}: its name is not UTF-8, so it is not found", mending.renamed(path), ascii(path))
        for path in misnamed
    ]


def _files(context: Context, mending: Fix, scopes: tuple[str, ...]) -> list[Problem]:
    rows = context.query(lambda: context.index.problems(scopes))
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


def _trees(context: Context, mending: Fix, scopes: tuple[str, ...]) -> list[Problem]:
    """Files of an agent's own tree that its briefings and start-ups cannot tell as they should."""
    return [
        problem for scope in scopes for problem in (*_heartbeat(context, mending, scope), *_unlisted(context, mending, scope))
    ]


def _heartbeat(context: Context, mending: Fix, scope: str) -> list[Problem]:
    """A heartbeat that grew too long to be read at every start."""
    lines = len((_text_of(context, scope, _HEARTBEAT) or "").splitlines())
    if lines < _HEARTBEAT_LINES:
        return []
    path = f"{scope}/files/{_HEARTBEAT}"
    what = f"{path} has {lines} lines; keep it under {_HEARTBEAT_LINES}. Move older news to another file"
    return [Problem("heartbeat", what, mending.rewritten(scope, _HEARTBEAT), path)]


def _unlisted(context: Context, mending: Fix, scope: str) -> list[Problem]:
    """Entry files in a tree without an overview page: no briefing mentions them."""
    tree = context.store.tree(scope, 0)
    names = [entry.name for entry in tree.census() if entry.regular and entry.name.endswith(".md")]
    if not names or overviews(context.store, Scope.of_folder(scope), most=1):
        return []
    first = next((name for name in names if parse_file_header(name, _text_of(context, scope, name) or "").name), None)
    if first is None:
        return []
    page = WIKI_INDEX if WIKI_INDEX in names else "MEMORY.md"
    what = f"{scope}/files has entry files such as {told(first)}, but no page that a briefing shows. List them in {page}"
    return [Problem("no_overview", what, mending.rewritten(scope, page), f"{scope}/files/{page}")]


def _text_of(context: Context, scope: str, name: str) -> str | None:
    """The text of a file, or None if it is missing or cannot be read."""
    try:
        content = context.store.tree(scope, 0).read(tuple(name.split("/")))
    except HoldfastError:
        return None
    return content.data.decode("utf-8", "replace") if content is not None else None


# --- the databases ----------------------------------------------------------------------------------------------------


def _index(context: Context, mending: Fix, scopes: tuple[str, ...]) -> list[Problem]:
    problems, broken = [], ""
    fix = mending.room() or mending.holdfast("reindex")
    try:
        broken = context.index.verify(context.progress)
    except DiskTrouble as error:
        unwritable = mending.room() or mending.of_database("index.db")
        problems.append(Problem("index_unwritable", error.message, unwritable, "index.db"))
    if broken:
        problems.append(Problem("index_damaged", f"the index was damaged: {broken}", fix, "index.db"))
        context.index.start_anew()
        context.sync.reset()
    reason = context.refresh(scopes, archived=True)
    if context.index.in_memory and not problems:
        what = f"the index cannot be kept: {context.index.in_memory}"
        problems.append(Problem("index_unwritable", what, mending.room() or mending.of_database("index.db"), "index.db"))
    elif reason:
        problems.append(Problem("degraded", reason, fix, "index.db"))
    return problems


def _unindexed(context: Context, mending: Fix, scopes: tuple[str, ...]) -> list[Problem]:
    """Entries without an index row, or rows without an entry, after the catalogue had its chance."""
    problems = []
    for scope in scopes:
        notes = {entry.name for entry in context.store.entries(scope, "notes")}
        said = {entry.name for entry in context.store.transcript_files(scope, 0).census()}
        archived = {entry.name for entry in context.store.entries(scope, "archive")}
        every = ("notes", "note", notes), ("archive", "archived note", archived), ("transcripts", "transcript", said)
        for part, kind, here in every:
            known = set(context.query(lambda scope=scope, part=part: context.index.stamps(scope, part)))  # type: ignore[misc]
            if here != known:
                what = f"{scope}: {len(here - known)} {kind}s without an index row, {len(known - here)} rows without a {kind}"
                problems.append(Problem("unindexed", what, mending.room() or mending.holdfast("reindex"), scope))
    return problems


def _embedder(context: Context, mending: Fix) -> list[Problem]:
    """Search by meaning that cannot work. That it lags behind is no problem: `status` says so, and so does the answer."""
    config = context.config
    wrong = available.find_missing_packages(config.embedder) or available.check_endpoint(config.embedder, config.embed_key)
    another = mending.holdfast("config search.embedder default")
    if (
        os.path.isdir(context.config.home)
        and setting_source(find_setting("search.embedder"), context.config.home) == "HOLDFAST_EMBEDDER"
    ):
        another = f"unset HOLDFAST_EMBEDDER; {another}"  # it would go over what the command sets
    return [Problem("embedder", what, fix or another) for what, fix in wrong]


def _ledger(context: Context, mending: Fix) -> list[Problem]:
    try:
        context.ledger.canonical("")  # asked anything, a damaged one sets itself aside
    except HoldfastError as error:
        return [Problem("ledger", error.message, mending.room() or error.fix, _LEDGER)]
    if context.ledger.problem:
        return [Problem("ledger", context.ledger.problem, mending.room() or mending.of_database(_LEDGER), _LEDGER)]
    return []


def _size(home: str, name: str) -> int:
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(os.path.join(home, name + suffix)).st_size
        except OSError:
            pass
    return total
