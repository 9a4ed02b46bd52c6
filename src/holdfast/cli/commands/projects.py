"""project list, project adopt."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.verbs.projects import Adopted, KnownProject


def list_(call: Invocation) -> int:
    return call.answer(call.memory.projects(), _tell_projects)


def adopt(call: Invocation) -> int:
    return call.answer(call.memory.adopt(call["old"], call["new"]), _tell_adopted)


def _tell_projects(screen: Output, projects: list[KnownProject]) -> None:
    if not projects:
        screen.nothing("No projects yet. `holdfast store TEXT` keeps a note for this folder's project.")
        return
    rows = [(one.id, _state(one), f"{one.notes:,}", one.last_write[:10], ", ".join(one.folders)) for one in projects]
    screen.table(("PROJECT", "STATE", "NOTES", "LAST WRITE", "FOLDER"), rows, ("bold", "yellow", "", "dim", ""))
    if any(one.gone for one in projects):
        screen.aside("Folder gone: run `holdfast project adopt PROJECT` in the new folder.")


def _state(one: KnownProject) -> str:
    """The most important thing to know about a project."""
    if one.part_of:
        return f"part of {one.part_of}"
    return "folder gone" if one.gone else "this folder" if one.current else ""


def _tell_adopted(screen: Output, done: Adopted) -> None:
    from holdfast.cli.output import plural

    style = "green" if done.action == "adopted" else "dim"
    verb = "adopted" if done.action == "adopted" else "unchanged:"
    screen.say(f"{screen.paint(verb, style)} {done.old}: {plural(done.notes, 'note')} found from {done.new}")
