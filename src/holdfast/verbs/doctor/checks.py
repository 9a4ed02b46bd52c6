"""All checks of `holdfast doctor`: each returns problems, with the command that fixes them."""

from __future__ import annotations

import os
from functools import partial
from shlex import quote
from typing import NamedTuple

from holdfast.base import dates, failure_log
from holdfast.config import find_setting, find_setting_source, hide_password
from holdfast.context.sync import CAME_BACK
from holdfast.embedders import available
from holdfast.errors import DiskTrouble, HoldfastError
from holdfast.formats import facts, note_file
from holdfast.formats.frontmatter import parse_file_header
from holdfast.models import Problem, Scope
from holdfast.verbs import projects, purge, render
from holdfast.verbs.doctor import history, permissions, secrets
from holdfast.verbs.doctor.fixes import fixes_for, hide_secrets, is_disk_full
from holdfast.verbs.read import WIKI_INDEX, overviews

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.context.caller import Context
    from holdfast.verbs.doctor.fixes import Fixes

_LEDGER, _READ_ONLY, _DISK = "ledger.db", "read_only", "disk"
_HEARTBEAT, _MAX_HEARTBEAT_LINES = "HEARTBEAT.md", 40
_LOW_DISK = 64 * 1024 * 1024  # bytes
_HOOK_SECONDS = 7 * 86400  # failures of hooks are reported for a week
_MAX_LISTED = 50  # problems of one kind
_MAX_FACT_FILES, _MAX_FACT_LINES = 20, 3  # files with unreadable facts, and lines of each
_CAUSED_BY_READ_ONLY = ("index_unwritable", "index_damaged", "degraded", "unindexed", "ledger")


def find_problems(context: Context) -> list[Problem]:
    """Run every check, for what `Memory.check` returns. While memory is disabled, run only those that open no database."""
    if context.config.store:
        found = _check_postgres(context)
    else:
        found = _check_home(context)
    return [*found, *purge.problems(context), *render.problems(context.config.home)]


def merge_problems(problems: list[Problem], others: list[Problem]) -> list[Problem]:
    """Add problems that another component found, except those that only repeat that the ledger cannot be written."""
    is_full = any(problem.code == _DISK and is_disk_full(problem.path) for problem in problems)
    is_known = is_full or any(problem.path == _LEDGER or problem.code == _READ_ONLY for problem in problems)
    return [*problems, *[problem for problem in others if not is_known or problem.path != _LEDGER]]


def _check_home(context: Context) -> list[Problem]:
    enabled, fixes, home = context.config.enabled, fixes_for(context.config), context.config.home
    if not os.path.isdir(home):
        return permissions.check_missing_home(home, fixes) + (_check_marker(context, fixes) if enabled else [])
    not_ours = permissions.check_owner(home, fixes)
    if not_ours:
        return not_ours
    read_only = _check_read_only(home, fixes)
    problems = permissions.check_mode(home) + _check_settings(context, fixes)
    problems += (read_only or _check_disk(context, fixes)) + _check_hooks(context)
    if not permissions.can_list_scopes(home):
        return problems + ([] if read_only else permissions.check_access(home, fixes))
    obstacles = permissions.check_obstacles(home, fixes, context.store.list_scopes)
    if obstacles:
        return problems + obstacles
    problems += [] if read_only else permissions.check_access(home, fixes, context.store.list_scopes())
    scopes = permissions.readable_scopes(home, context.store.list_scopes())
    checks: list[Callable[[], list[Problem]]] = [partial(_check_names, context, fixes, scopes)]
    if enabled:
        checks = [
            partial(_check_index, context, fixes, scopes),
            partial(_check_marker, context, fixes),
            *checks,
            partial(_check_files, context, fixes, scopes),
            partial(_check_trees, context, fixes, scopes),
            partial(_check_index_rows, context, fixes, scopes),
            partial(_check_ledger, context, fixes),
            partial(_check_embedder, context, fixes),
            partial(_check_reranker, context, fixes),
            partial(secrets.problems, context),
            partial(_check_projects, context, fixes),
            partial(_check_facts, context, fixes, scopes),
            partial(history.problems, context, scopes),
        ]
    found = [problem for check in checks for problem in _run(check)]
    return problems + [problem for problem in found if not read_only or problem.code not in _CAUSED_BY_READ_ONLY]


def _run(check: Callable[[], list[Problem]]) -> list[Problem]:
    """Run one check; if it fails, report that and let the others run."""
    try:
        return check()
    except HoldfastError as error:
        return [Problem("unseen", f"a check failed: {error.message}", error.fix)]


def _check_postgres(context: Context) -> list[Problem]:
    """Run the checks that apply to PostgreSQL, which has no folder whose owner, links or disk could be wrong."""
    from holdfast.postgres import backend

    config, fixes = context.config, fixes_for(context.config)
    problems = _check_settings(context, fixes) + (_check_hooks(context) if os.path.isdir(config.home) else [])
    if not config.enabled:
        return problems
    try:
        scopes = tuple(context.store.list_scopes())
        problems += backend.find_problems(config, context.index)
        problems += _check_index(context, fixes, scopes) + _check_marker(context, fixes)
        problems += _check_files(context, fixes, scopes) + _check_trees(context, fixes, scopes)
        problems += _check_index_rows(context, fixes, scopes) + _check_ledger(context, fixes)
        problems += _check_embedder(context, fixes) + _check_reranker(context, fixes) + secrets.problems(context)
        problems += _check_facts(context, fixes, scopes) + history.problems(context, scopes)
    except HoldfastError as error:  # unreachable from the start, or since then
        store = f"{hide_password(config.store or '')} (tenant {config.tenant})"
        problems.append(Problem("store", f"the store cannot be read: {error.message}", error.fix, store))
    return problems


# --- the home ---------------------------------------------------------------------------------------------------------


def _check_settings(context: Context, fixes: Fixes) -> list[Problem]:
    problems = []
    if not context.config.quarantine:
        what = "trust.quarantine is empty: agents are shown text from the web and from imports without review"
        problems.append(Problem("quarantine-off", what, fixes.holdfast("config trust.quarantine --unset"), "config.toml"))
    edit = fixes.edit(os.path.join(context.config.home, "config.toml"))
    return problems + [
        Problem("unknown_setting", f"config.toml has an unknown setting {name}", edit, "config.toml")
        for name in context.config.unknown
    ]


def _check_disk(context: Context, fixes: Fixes) -> list[Problem]:
    disk = os.statvfs(context.config.home)
    free = disk.f_bavail * disk.f_frsize
    if free < _LOW_DISK:
        what = f"only {free // 1024} KiB are free on the home's disk"
        return [Problem(_DISK, what, fixes.free_space(), context.config.home)]
    return []


def _check_read_only(home: str, fixes: Fixes) -> list[Problem]:
    """Report a file system mounted read-only; it explains every other problem of writing."""
    for path in (home, os.path.join(home, "shelf")):
        if os.path.isdir(path) and os.statvfs(path).f_flag & os.ST_RDONLY:
            what = f"the file system of {path} is mounted read-only: memory can be read but not written"
            return [Problem(_READ_ONLY, what, fixes.remount(path), path)]
    return []


def _check_marker(context: Context, fixes: Fixes) -> list[Problem]:
    """Report a project marker in this folder that is ignored: the project's notes would seem to be lost."""
    ignored = projects.find_ignored_marker(context)
    if not ignored:
        return []
    mark_again = f"(cd {quote(os.path.dirname(os.path.dirname(ignored)))} && {fixes.holdfast('init --marker')})"
    what = f"{ignored} is damaged, copied or from another home, so this folder is identified by its path"
    return [Problem("marker", what, f"{fixes.rename_to_old(ignored)} && {mark_again}", ignored)]


def _check_projects(context: Context, fixes: Fixes) -> list[Problem]:
    """Report projects whose folder was deleted. Not checked on PostgreSQL: the folders may be on other machines."""
    return [
        Problem(
            "project_gone",
            f"the folder of project {project.id} was deleted: {', '.join([hide_secrets(path) for path in project.folders])}",
            f"If it moved, run `{fixes.holdfast(f'project adopt {project.id}')}` in its new folder; to forget its notes run "
            f"`{fixes.holdfast(f'clear --scope project --project {project.id} --yes')}`",
            f"projects/{project.id}",
        )
        for project in projects.list_gone(context)[:_MAX_LISTED]
    ]


def _check_hooks(context: Context) -> list[Problem]:
    """Report the failures of hooks in the last week: equal ones once, with how often and when last."""
    home, since = context.config.home, dates.format_timestamp(dates.clock() - _HOOK_SECONDS)
    times_by_failure: dict[tuple[str, ...], list[str]] = {}
    for failure in failure_log.read(home):
        if failure.time >= since:
            same = failure.client, failure.event, failure.message, failure.fix
            times_by_failure.setdefault(same, []).append(failure.time)
    log = failure_log.path(home)
    return [
        Problem(
            "hook",
            f"the hook of {client} at {event} failed {'once' if len(times) == 1 else f'{len(times)} times'},"
            f" last {times[-1]}: {message}",
            f"{fix}; afterwards run `rm -f {quote(log)}`",
            log,
        )
        for (client, event, message, fix), times in list(times_by_failure.items())[-_MAX_LISTED:]
    ]


# --- notes and files --------------------------------------------------------------------------------------------------


def _check_names(context: Context, fixes: Fixes, scopes: tuple[str, ...]) -> list[Problem]:
    """Report files where only scopes belong, and names that are not UTF-8."""
    store = context.store
    strays = [
        Problem(
            "stray", f"{path} is in the folder of scopes but is not a scope", fixes.move_away(store.display_path(path)), path
        )
        for path in store.list_strays()
    ]
    misnamed = [path for scope in scopes for path in store.list_misnamed(scope)]
    return strays + [
        Problem("misnamed", f"{path!a}: its name is not UTF-8, so searches do not find it", fixes.rename(path), ascii(path))
        for path in misnamed
    ]


def _check_files(context: Context, fixes: Fixes, scopes: tuple[str, ...]) -> list[Problem]:
    """Report files that the index could not read, and notes that came back after their purge."""
    rows = context.query(lambda: context.index.find_problems(scopes))
    problems = []
    for row in rows[:_MAX_LISTED]:
        if not row.problem.startswith(CAME_BACK):
            path = hide_secrets(f"{row.scope}/{row.part}/{row.name}")
            problems.append(Problem("file", f"{path}: {row.problem}", fixes.fix_file(row.scope, row.part, row.name), path))
    for row in rows:
        if row.problem.startswith(CAME_BACK):
            path = hide_secrets(f"{row.scope}/{row.part}/{row.name}")
            fix = fixes.purge_returned(row.scope, row.part, row.name)
            problems.append(Problem("purged", f"{path}: {row.problem}", fix, path))
    if len(rows) > _MAX_LISTED:
        problems.append(
            Problem("file", f"and {len(rows) - _MAX_LISTED} more files with this problem", fixes.holdfast("doctor"))
        )
    return problems


def _check_trees(context: Context, fixes: Fixes, scopes: tuple[str, ...]) -> list[Problem]:
    """Report files of agents' own trees that briefings and start-ups cannot show as they should."""
    return [
        problem
        for scope in scopes
        for problem in (*_check_heartbeat(context, fixes, scope), *_check_overview(context, fixes, scope))
    ]


def _check_heartbeat(context: Context, fixes: Fixes, scope: str) -> list[Problem]:
    """Report a heartbeat that is too long to be read at every start."""
    lines = len((_read_tree_file(context, scope, _HEARTBEAT) or "").splitlines())
    if lines < _MAX_HEARTBEAT_LINES:
        return []
    path = f"{scope}/files/{_HEARTBEAT}"
    what = f"{path} has {lines} lines; keep it under {_MAX_HEARTBEAT_LINES} by moving older entries to another file"
    return [Problem("heartbeat", what, fixes.edit_tree_file(scope, _HEARTBEAT), path)]


def _check_overview(context: Context, fixes: Fixes, scope: str) -> list[Problem]:
    """Report entry files in a tree without an overview page: no briefing mentions them."""
    tree = context.store.tree(scope, 0)
    names = [entry.name for entry in tree.entries() if entry.regular and entry.name.endswith(".md")]
    if not names or overviews(context.store, Scope.of_folder(scope), most=1):
        return []
    first = next((name for name in names if parse_file_header(name, _read_tree_file(context, scope, name) or "").name), None)
    if first is None:
        return []
    page = WIKI_INDEX if WIKI_INDEX in names else "MEMORY.md"
    what = (
        f"{scope}/files has entry files such as {hide_secrets(first)}, but no page that a briefing shows. List them in {page}"
    )
    return [Problem("no_overview", what, fixes.edit_tree_file(scope, page), f"{scope}/files/{page}")]


def _read_tree_file(context: Context, scope: str, name: str) -> str | None:
    """Return the text of a file of a tree, or None if it is missing or cannot be read."""
    try:
        content = context.store.tree(scope, 0).read(tuple(name.split("/")))
    except HoldfastError:
        return None
    return content.data.decode("utf-8", "replace") if content is not None else None


# --- facts ------------------------------------------------------------------------------------------------------------


class _FactFile(NamedTuple):
    """A note or file that may state facts."""

    scope: str
    part: str
    name: str
    text: str  # of a note, its current version
    first_line: int


def _check_facts(context: Context, fixes: Fixes, scopes: tuple[str, ...]) -> list[Problem]:
    """Report files with dated lines that look like facts and cannot be read as such, one problem per file."""
    found: list[Problem] = []
    more = 0
    for file in _list_fact_files(context, scopes):
        lines = facts.find_unreadable_lines(file.text)
        if lines and len(found) < _MAX_FACT_FILES:
            path = hide_secrets(f"{file.scope}/{file.part}/{file.name}")
            fix = fixes.edit(os.path.join(context.config.home, "shelf", file.scope, file.part, file.name))
            where = f"{path}:{lines[0].line + file.first_line}"
            found.append(Problem("fact", _describe_unread_facts(path, lines, file.first_line), fix, where))
        elif lines:
            more += 1
    if more:
        files = "1 more file has" if more == 1 else f"{more} more files have"
        found.append(Problem("fact", f"{files} dated lines that cannot be read as facts.", fixes.holdfast("doctor")))
    return found


def _describe_unread_facts(path: str, lines: list[facts.UnreadableLine], first_line: int) -> str:
    each = "; ".join([f"line {line.line + first_line}: {line.problem}" for line in lines[:_MAX_FACT_LINES]])
    more = f"; and {len(lines) - _MAX_FACT_LINES} more" if len(lines) > _MAX_FACT_LINES else ""
    what = "1 dated line" if len(lines) == 1 else f"{len(lines)} dated lines"
    return f"{path} has {what} that cannot be read as a fact ({each}{more}). {facts.EXPECTED}."


def _list_fact_files(context: Context, scopes: tuple[str, ...]) -> Iterator[_FactFile]:
    for scope in scopes:
        for entry in context.store.entries(scope, "notes"):
            if entry.regular and entry.name.endswith(".md") and (whole := _read_if_dated(context, scope, "notes", entry.name)):
                text, (first, _) = note_file.read_current_text(whole)
                yield _FactFile(scope, "notes", entry.name, text, first)
        for entry in context.store.tree(scope, 0).entries():
            if entry.regular and (whole := _read_if_dated(context, scope, "files", entry.name)):
                yield _FactFile(scope, "files", entry.name, note_file.replace_invalid(whole), 1)


def _read_if_dated(context: Context, scope: str, part: str, name: str) -> str:
    """Return the text of a file that has a date in brackets; "" for others and for files that cannot be read."""
    try:
        if part == "notes":
            content = context.store.read_file(scope, part, name)
        else:
            content = context.store.tree(scope, 0).read(tuple(name.split("/")))
    except HoldfastError:
        return ""  # other checks report it
    if content is None or not any(b"[%d" % digit in content.data for digit in range(10)):
        return ""
    return content.data.decode("utf-8", "surrogateescape")


# --- databases and models ---------------------------------------------------------------------------------------------


def _check_index(context: Context, fixes: Fixes, scopes: tuple[str, ...]) -> list[Problem]:
    """Verify the index, replace a damaged one, and bring it up to date."""
    problems, damage = [], ""
    reindex = fixes.free_space_first() or fixes.holdfast("reindex")
    try:
        damage = context.index.verify(context.progress)
    except DiskTrouble as error:
        fix = fixes.free_space_first() or fixes.fix_database("index.db")
        problems.append(Problem("index_unwritable", error.message, fix, "index.db"))
    if damage:
        problems.append(Problem("index_damaged", f"the index was damaged: {damage}", reindex, "index.db"))
        context.index.reset()
        context.sync.reset()
    degraded = context.refresh(scopes, archived=True)
    if context.index.in_memory and not problems:
        what = f"the index cannot be written: {context.index.in_memory}"
        fix = fixes.free_space_first() or fixes.fix_database("index.db")
        problems.append(Problem("index_unwritable", what, fix, "index.db"))
    elif degraded:
        problems.append(Problem("degraded", degraded, reindex, "index.db"))
    return problems


def _check_index_rows(context: Context, fixes: Fixes, scopes: tuple[str, ...]) -> list[Problem]:
    """Report files without an index row and rows without a file, after the index was brought up to date."""
    problems = []
    for scope in scopes:
        names_by_part = {
            ("notes", "note"): {entry.name for entry in context.store.entries(scope, "notes")},
            ("archive", "archived note"): {entry.name for entry in context.store.entries(scope, "archive")},
            ("transcripts", "transcript"): {entry.name for entry in context.store.transcripts(scope, 0).entries()},
        }
        for (part, kind), names in names_by_part.items():
            rows = set(context.query(partial(context.index.file_ids, scope, part)))
            if names != rows:
                what = f"{scope}: {len(names - rows)} {kind}s without an index row, {len(rows - names)} rows without a {kind}"
                fix = fixes.free_space_first() or fixes.holdfast("reindex")
                problems.append(Problem("unindexed", what, fix, scope))
    return problems


def _check_embedder(context: Context, fixes: Fixes) -> list[Problem]:
    """Report an embedder that cannot work. Vectors that lag behind are not a problem: `status` and answers say so."""
    config = context.config
    failures = available.find_missing_packages(config.embedder) or available.check_models(config.embedder, config.embed_key)
    use_default = _fix_setting(context, fixes, "search.embedder", "default")
    return [Problem("embedder", what, fix or use_default) for what, fix in failures]


def _check_reranker(context: Context, fixes: Fixes) -> list[Problem]:
    """Report a reranker that cannot work."""
    config = context.config
    failures = available.find_reranker_problems(config.reranker)
    failures = failures or available.check_reranker(config.reranker, config.rerank_key)
    use_none = _fix_setting(context, fixes, "search.reranker", "none")
    return [Problem("reranker", what, fix or use_none) for what, fix in failures]


def _fix_setting(context: Context, fixes: Fixes, name: str, value: str) -> str:
    """Return the command that changes a setting, also where an environment variable overrides it."""
    home, setting = context.config.home, find_setting(name)
    fix = fixes.holdfast(f"config {name} {value}")
    if os.path.isdir(home) and find_setting_source(setting, home) == setting.env:
        return f"unset {setting.env}; {fix}"
    return fix


def _check_ledger(context: Context, fixes: Fixes) -> list[Problem]:
    try:
        context.ledger.projects.find_project("")  # any query: a damaged ledger sets itself aside
    except HoldfastError as error:
        return [Problem("ledger", error.message, fixes.free_space_first() or error.fix, _LEDGER)]
    if context.ledger.problem:
        fix = fixes.free_space_first() or fixes.fix_database(_LEDGER)
        return [Problem("ledger", context.ledger.problem, fix, _LEDGER)]
    return []
