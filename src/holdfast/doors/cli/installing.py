"""install, uninstall, render: a client learns of Holdfast, or forgets it; what would be changed is shown first."""

from __future__ import annotations

import sys

from holdfast.errors import Refused, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.clients.installing import Step
    from holdfast.clients.shape import Change, Client, Place
    from holdfast.doors.cli.call import Call
    from holdfast.doors.cli.screen import Screen


def install(call: Call) -> int:
    from holdfast import clients

    if not call["client"]:
        return _each_that_is_there(call)
    client = clients.load(call["client"])
    place, seconds = _place(call)
    changes = _changes(call, client, place)
    if call["print"]:
        return call.answer(_to_paste(client, place, changes), _tell_to_paste)
    return _one(call, client, place, changes, seconds)


def uninstall(call: Call) -> int:
    from holdfast import clients
    from holdfast.clients import installing as rooms

    client = clients.load(call["client"])
    place, seconds = _place(call)
    steps = rooms.undone(client, place, [*client.changes(place), *client.auto_memory(place, "")])
    if not steps:
        rooms.revert(client, place, [], seconds)
        return call.answer(_report(client, steps, "nothing"), _tell_done)
    return _carried_out(call, client, steps, "uninstall", lambda: rooms.revert(client, place, steps, seconds))


def render(call: Call) -> int:
    rendered = call.memory.render(call["file"], remove=bool(call["remove"]))
    return call.answer(rendered, lambda screen, one: screen.say(f"{one.action} {one.path}"))


def _one(call: Call, client: Client, place: Place, changes: list[Change], seconds: float) -> int:
    from holdfast.clients import installing as rooms

    steps = rooms.planned(client, place, changes)
    if not any(step.changes for step in steps):
        return call.answer(_report(client, [], "nothing"), _tell_done)
    return _carried_out(call, client, steps, "install", lambda: rooms.apply(client, place, steps, seconds))


def _carried_out(call: Call, client: Client, steps: list[Step], verb: str, do: Any) -> int:
    """Show it, ask, do it."""
    shown = [step for step in steps if step.changes]
    if call["dry_run"]:
        return call.answer(_report(client, shown, "dry_run"), _tell_changes)
    if not call["yes"]:
        if not call.screen.json:
            _tell_changes(call.screen, _report(client, shown, verb))
        _ask(call, client, shown, verb)
    do()
    return call.answer(_report(client, shown, verb), _tell_done)


def _ask(call: Call, client: Client, steps: list[Step], verb: str) -> None:
    files = f"{len(steps)} file" + ("" if len(steps) == 1 else "s")
    if call.screen.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        fix = f"holdfast {verb} {client.name} --yes does it, --dry-run only shows it"
        raise Refused(f"nobody can be asked whether to change {files}; nothing was", fix)
    from holdfast.doors.cli.call import confirm

    confirm(call, f"{verb.capitalize()} for {client.title}: change {files} as shown?")


def _each_that_is_there(call: Call) -> int:
    """Look which clients are on this machine, and ask for each."""
    from holdfast import clients
    from holdfast.clients import installing as rooms

    place, seconds = _place(call)
    seen = [(client, where) for name in clients.names() if (where := (client := clients.load(name)).detect(place))]
    done = rooms.installed(place)
    if call.screen.json or call["dry_run"] or (not call["yes"] and not sys.stdin.isatty()):
        found = [
            {"client": client.name, "title": client.title, "where": where, "installed": client.name in done}
            for client, where in seen
        ]
        return call.answer(found, _tell_found)
    if not seen:
        call.screen.nothing("no client was found: `holdfast install CLIENT` installs for one all the same")
    for client, where in seen:
        call.screen.say(f"{call.screen.paint(client.title, 'bold')}  {where}")
        try:
            _one(call, client, place, _changes(call, client, place), seconds)
        except Refused as error:
            call.screen.aside(str(error), "yellow")
    return 0


def _place(call: Call) -> tuple[Place, float]:
    from holdfast import clients, config, house

    settings = config.load(call["home"])
    house.must_be_ours(settings.home)
    return clients.place(settings), settings.lock_seconds


def _changes(call: Call, client: Client, place: Place) -> list[Change]:
    if not call["auto_memory"]:
        return client.changes(place)
    import os

    from holdfast.doors.cli.setup import scope_folder

    folder = os.path.join(place.memory, "shelf", scope_folder(call), "files", "auto-memory")
    own = client.auto_memory(place, folder)
    if not own:
        raise UsageError(f"{client.title} keeps no memory of its own whose place can be set", "Leave --auto-memory away")
    return [*client.changes(place), *own]


def _to_paste(client: Client, place: Place, changes: list[Change]) -> dict[str, Any]:
    from holdfast.clients.editing import pasted

    parts = [{"path": path, "text": text} for path, text in pasted(client, place, changes)]
    return {"client": client.name, "parts": parts, "note": client.note}


def _report(client: Client, steps: list[Step], action: str) -> dict[str, Any]:
    return {"client": client.name, "title": client.title, "action": action, "changes": steps, "note": client.note}


def _tell_changes(screen: Screen, report: dict[str, Any]) -> None:
    from holdfast.clients.installing import diff

    for step in report["changes"]:
        screen.text(diff(step))
        if step.kept:
            screen.say(f"what you changed in it is kept: {step.kept}")


def _tell_done(screen: Screen, report: dict[str, Any]) -> None:
    title, action = report["title"], report["action"]
    if action == "nothing":
        screen.say(f"{title}: nothing to change")
        return
    for step in report["changes"]:
        screen.say(f"{'removed' if step.new is None else 'wrote':<8}{step.path}")
    screen.say(screen.paint(f"{title}: {'installed' if action == 'install' else 'uninstalled'}", "green"))
    if report["note"] and action == "install":
        screen.aside(report["note"], "yellow")


def _tell_to_paste(screen: Screen, report: dict[str, Any]) -> None:
    for part in report["parts"]:
        screen.say(f"# {part['path']}")
        screen.text(part["text"])
    if report["note"]:
        screen.aside(report["note"], "yellow")


def _tell_found(screen: Screen, found: list[dict[str, Any]]) -> None:
    if not found:
        screen.nothing("no client was found: `holdfast install CLIENT` installs for one all the same")
        return
    rows = [(one["client"], "yes" if one["installed"] else "no", one["where"]) for one in found]
    screen.table(("CLIENT", "INSTALLED", "SEEN AT"), rows, ("cyan", "", "dim"))
    screen.aside("`holdfast install CLIENT` shows what it would change, and asks")
