"""`init`, `path` and `project`: create the home, show where things are, list and adopt projects."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.errors import UsageError
    from holdfast.verbs.projects import Adopted, KnownProject

HOME_PATHS = {"home": "", "shelf": "shelf", "config": "config.toml", "index": "index.db", "ledger": "ledger.db"}
SCOPE_FOLDERS = ("notes", "files")


def init(call: Invocation) -> int:
    """`holdfast init`."""
    from holdfast.errors import Disabled
    from holdfast.store.atomic import open_folder

    memory = call.memory
    if not memory.config.enabled:
        raise Disabled
    folder = open_folder(memory.home, () if memory.config.store else ("shelf",), create=True)
    assert folder is not None  # because of create=True
    with folder:
        marker = _write_marker(call) if call["marker"] else None
    report: dict[str, Any] = {"home": memory.home, "project": memory.project, "marker": marker}
    return call.answer(report, _print_init)


def path(call: Invocation) -> int:
    """`holdfast path`."""
    what = call["what"] or "home"
    found = _write_plugin(call) if what == "plugin" and call["client"] else _find_path(call, what)
    report: dict[str, Any] = {"what": what, "path": found, "exists": os.path.exists(found)}
    return call.answer(report, _print_path)


def list_projects(call: Invocation) -> int:
    """`holdfast project list`."""
    return call.answer(call.memory.projects(), _print_projects)


def adopt_project(call: Invocation) -> int:
    """`holdfast project adopt`."""
    return call.answer(call.memory.adopt(call["old"], call["new"]), _print_adopted)


def _write_plugin(call: Invocation) -> str:
    """Write the plugin of a client again, for this Holdfast and this home, and return its folder."""
    from holdfast import clients, config
    from holdfast.clients.install import write_plugin

    return write_plugin(clients.load(call["client"]), clients.install_target(config.load(call["home"])))


def _write_marker(call: Invocation) -> str:
    """Write the project marker of the working directory and return its path."""
    from holdfast.errors import NotFound
    from holdfast.project import marker

    try:
        folder = os.getcwd()
    except FileNotFoundError:
        raise NotFound("the current folder was deleted", "Change to the folder that you want to mark") from None
    call.memory.mark()
    return os.path.join(folder, marker.MARKER_FOLDER, marker.MARKER_FILE)


def _find_path(call: Invocation, what: str) -> str:
    """Return the path of a part of the home, or of a note by its key."""
    from holdfast.errors import NotFound, Template, UsageError

    memory = call.memory
    if memory.config.store and what not in ("home", "config"):
        raise UsageError("notes in PostgreSQL have no path", "Use `holdfast get KEY` or `holdfast read PATH`")
    if what in HOME_PATHS:
        return os.path.join(memory.home, HOME_PATHS[what]).rstrip("/")
    if what in SCOPE_FOLDERS:
        return find_scope_folder(call, memory.home, what)
    try:
        return os.path.join(memory.home, HOME_PATHS["shelf"], memory.get(what, scope=call["scope"]).path)
    except NotFound as error:
        if what == "plugin":  # a note may have this key, too
            raise _client_missing() from None
        known = ", ".join([*HOME_PATHS, *SCOPE_FOLDERS, "plugin CLIENT"])
        raise NotFound(error.text, Template(error.hint, f". Other names are {known}")) from None


def _client_missing() -> UsageError:
    """Return the error for `holdfast path plugin` without a client; it names the clients that have a plugin."""
    from holdfast import clients
    from holdfast.clients.base import InstallTarget
    from holdfast.errors import UsageError

    target = InstallTarget("", {}, ("holdfast",))
    known = [name for name in clients.names() if clients.load(name).plugin(target)]
    return UsageError("no client was named", f"Run `holdfast path plugin CLIENT` with one of: {', '.join(known)}")


def find_scope_folder(call: Invocation, home: str, name: str) -> str:
    """Return the folder `notes` or `files` of the scope in --scope, otherwise of the project."""
    from holdfast.errors import NoScope, UsageError
    from holdfast.models import SCOPES, Scope

    kind = call["scope"] or "project"
    if kind not in SCOPES:
        raise UsageError(f"unknown scope {kind!r}", f"Use one of: {', '.join(SCOPES)}")
    id = "" if kind == "global" else getattr(call.memory, kind)
    if kind != "global" and not id:
        raise NoScope(f"no {kind} is known", f"Give --{kind}, or set HOLDFAST_{kind.upper()}")
    return os.path.join(home, HOME_PATHS["shelf"], Scope(kind, id).folder, name)


def _print_path(output: Output, report: dict[str, Any]) -> None:
    """Print the path: byte for byte for a shell, with hidden characters marked on a terminal."""
    from holdfast.cli.output import mark_hidden

    output.print_line(mark_hidden(report["path"]) if output.is_terminal else report["path"], exact=True)


def _print_init(output: Output, report: dict[str, Any]) -> None:
    for name, value in report.items():
        if value:
            output.print_line(f"{output.style(f'{name:<8}', 'dim')} {value}")
    output.print_message("store the first note with `holdfast store TEXT`; `holdfast status` shows where it is")


def _print_projects(output: Output, projects: list[KnownProject]) -> None:
    if not projects:
        output.print_empty("No projects yet. Store a note for this folder's project with `holdfast store TEXT`.")
        return
    rows = [
        (project.id, _describe_state(project), f"{project.notes:,}", project.last_write[:10], ", ".join(project.folders))
        for project in projects
    ]
    output.print_table(("PROJECT", "STATE", "NOTES", "LAST WRITE", "FOLDER"), rows, ("bold", "yellow", "", "dim", ""))
    if any(project.gone for project in projects):
        output.print_message("Folder deleted or moved: run `holdfast project adopt PROJECT` in the new folder.")


def _describe_state(project: KnownProject) -> str:
    if project.part_of:
        return f"part of {project.part_of}"
    return "folder gone" if project.gone else "this folder" if project.current else ""


def _print_adopted(output: Output, report: Adopted) -> None:
    from holdfast.cli.output import format_count

    style = "green" if report.action == "adopted" else "dim"
    verb = "adopted" if report.action == "adopted" else "unchanged:"
    count = format_count(report.notes, "note")
    output.print_line(f"{output.style(verb, style)} {report.old}: {count} found from {report.new}")
