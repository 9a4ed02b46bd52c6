"""install, uninstall, render: a client learns of Holdfast, or forgets it; what would be changed is shown first."""

from __future__ import annotations

import sys

from holdfast.errors import HoldfastError, Refused, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.clients.base import Change, Client, InstallTarget
    from holdfast.clients.install import Step

    Told = tuple[dict[str, Any], Callable[[Output, Any], None]]  # what was done, and how to tell people


class _Declined(Exception):
    """A person was shown the changes and did not want them."""


def install(call: Invocation) -> int:
    from holdfast import clients
    from holdfast.clients import install as rooms

    one = clients.load(call["client"]) if call["client"] else None
    place, seconds = _place(call)
    if call["gateway"]:
        place = place.replace(gateway=True)
    if one:
        return _alone(call, lambda: _installed(call, one, place, seconds))
    seen = [(client, where) for name in clients.names() if (where := (client := clients.load(name)).detect(place))]
    told_how = call["yes"] or call["dry_run"] or call["print"]
    if not seen or (not told_how and (call.screen.json or not sys.stdin.isatty())):
        done = rooms.list_installed(place)
        found = [
            {"client": client.name, "title": client.title, "where": where, "installed": client.name in done}
            for client, where in seen
        ]
        return call.answer(found, _tell_found)
    return _each(call, [client for client, _ in seen], lambda client: _installed(call, client, place, seconds))


def uninstall(call: Invocation) -> int:
    from holdfast import clients
    from holdfast.clients import install as rooms

    one = clients.load(call["client"]) if call["client"] else None
    place, seconds = _place(call)
    if one:
        return _alone(call, lambda: _uninstalled(call, one, place, seconds, bool(call["all"])))
    known = set(clients.names())
    there = [clients.load(name) for name in rooms.list_installed(place) if name in known]
    if not there:
        return call.answer([], lambda screen, _: screen.nothing("nothing is installed"))
    return _each(call, there, lambda client: _uninstalled(call, client, place, seconds, True))


def render(call: Invocation) -> int:
    rendered = call.memory.render(call["file"], remove=bool(call["remove"]))
    return call.answer(rendered, lambda screen, one: screen.say(f"{one.action} {one.path}"))


def _installed(call: Invocation, client: Client, place: InstallTarget, seconds: float) -> Told:
    from holdfast.clients import install as rooms

    changes = _changes(call, client, place)
    if call["print"]:
        return _to_paste(client, place, changes), _tell_to_paste
    steps = rooms.plan_install(client, place, changes)
    if not any(step.changes for step in steps):
        return _report(client, [], "nothing"), _tell_done
    return _carried_out(call, client, steps, "install", lambda: rooms.apply(client, place, steps, seconds))


def _uninstalled(call: Invocation, client: Client, place: InstallTarget, seconds: float, everywhere: bool) -> Told:
    from holdfast.clients import install as rooms

    steps = rooms.plan_uninstall(client, place, everywhere)
    if not steps:
        rooms.revert(client, place, [], seconds, everywhere)
        return _report(client, steps, "nothing"), _tell_done
    return _carried_out(call, client, steps, "uninstall", lambda: rooms.revert(client, place, steps, seconds, everywhere))


def _carried_out(call: Invocation, client: Client, steps: list[Step], verb: str, do: Callable[[], None]) -> Told:
    """Show it, ask, do it."""
    shown = [step for step in steps if step.changes]
    tell = _tell_all if call["diff"] else _tell_changes
    if call["dry_run"]:
        return _report(client, shown, "dry_run"), tell
    if not call["yes"]:
        if not call.screen.json:
            tell(call.screen, _report(client, shown, verb))
        _ask(call, client, shown, verb)
    do()
    return _report(client, shown, verb), _tell_done


def _ask(call: Invocation, client: Client, steps: list[Step], verb: str) -> None:
    files = f"{len(steps)} file" + ("" if len(steps) == 1 else "s")
    if call.screen.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        fix = f"holdfast {verb} {client.name} --yes does it, --dry-run only shows it"
        raise Refused(f"nobody can be asked whether to change {files}; nothing was", fix)
    from holdfast.cli.runner import agreed

    if not agreed(f"{verb.capitalize()} for {client.title}: change {files} as shown?"):
        raise _Declined


def _alone(call: Invocation, do: Callable[[], Told]) -> int:
    """For one client. To decline is an answer and no failure."""
    try:
        return call.answer(*do())
    except _Declined:
        call.screen.aside("Nothing was changed.", "yellow")
        return Refused.exit_code


def _each(call: Invocation, them: list[Client], do: Callable[[Client], Told]) -> int:
    """One after the other; what fails for one does not keep the others from it, and the worst of it is the exit code."""
    reports: list[dict[str, Any]] = []
    worst, screen = 0, call.screen
    for client in them:
        try:
            if not screen.json:
                screen.say(screen.paint(client.title, "bold"))
            report, tell = do(client)
            if not screen.json:
                tell(screen, report)
        except _Declined:
            report = {"client": client.name, "title": client.title, "action": "declined"}
        except HoldfastError as error:
            worst = max(worst, error.exit_code)
            report = {"client": client.name, "title": client.title, "action": "failed", **error.as_dict()}
            screen.aside(str(error), "yellow")
        reports.append(report)
    if {report.get("action") for report in reports} == {"declined"}:
        worst = Refused.exit_code
    return call.answer(reports, _tell_sum, worst)


def _tell_sum(screen: Output, reports: list[dict[str, Any]]) -> None:
    if reports and {one.get("action") for one in reports} <= {"declined", "nothing"}:
        screen.aside("Nothing was changed.", "yellow")
        return
    words = {
        "install": "installed", "uninstall": "uninstalled", "nothing": "with nothing to change", "declined": "declined",
        "failed": "failed",
    }  # fmt: skip
    by_word = {word: [one["client"] for one in reports if one.get("action") == action] for action, word in words.items()}
    counts = [f"{len(names)} {word}" for word, names in by_word.items() if names]
    if counts:
        failed = by_word["failed"]
        screen.aside(", ".join(counts) + (f": {', '.join(failed)}" if failed else ""), "yellow" if failed else "green")


def _place(call: Invocation) -> tuple[InstallTarget, float]:
    from holdfast import clients, config, home

    settings = config.load(call["home"])
    home.must_be_ours(settings.home)
    return clients.install_target(settings), settings.lock_seconds


def _changes(call: Invocation, client: Client, place: InstallTarget) -> list[Change]:
    if not call["auto_memory"]:
        return client.changes(place)
    import os

    from holdfast.cli.commands.setup import part_folder

    own = client.auto_memory(place, os.path.join(part_folder(call, place.memory, "files"), "auto-memory"))
    if not own and call["client"]:
        raise UsageError(f"{client.title} keeps no memory of its own whose place can be set", "Leave --auto-memory away")
    return [*client.changes(place), *own]


def _to_paste(client: Client, place: InstallTarget, changes: list[Change]) -> dict[str, Any]:
    from holdfast.clients.edits import render_for_paste

    parts = [{"path": path, "text": text} for path, text in render_for_paste(client, place, changes)]
    return {"client": client.name, "parts": parts, "note": client.note}


def _report(client: Client, steps: list[Step], action: str) -> dict[str, Any]:
    return {"client": client.name, "title": client.title, "action": action, "changes": steps, "note": client.note}


def _tell_changes(screen: Output, report: dict[str, Any]) -> None:
    """First what changes in the user's own files, as a diff; then a line for each file that is all ours."""
    ours = [step for step in report["changes"] if step.is_ours]
    _tell_diffs(screen, [step for step in report["changes"] if not step.is_ours])
    for step in ours:
        screen.say(f"{step.action:<8}{_path_of(step)}")
        _tell_kept(screen, step)
    if ours:
        screen.aside("`--diff` shows these files in full")


def _tell_all(screen: Output, report: dict[str, Any]) -> None:
    """The same, with every file as a diff."""
    _tell_diffs(screen, sorted(report["changes"], key=lambda step: bool(step.is_ours)))


def _tell_diffs(screen: Output, steps: list[Step]) -> None:
    from holdfast.clients.install import diff

    for step in steps:
        screen.text(diff(step))
        _tell_kept(screen, step)


def _path_of(step: Step) -> str:
    from holdfast.cli.output import one_line

    lines = (step.new or b"").count(b"\n")
    return one_line(step.path) + (f" ({lines} line{'' if lines == 1 else 's'})" if step.new is not None else "")


def _tell_kept(screen: Output, step: Step) -> None:
    if step.kept:
        screen.say(f"what you changed in it is kept: {step.kept}")


def _tell_done(screen: Output, report: dict[str, Any]) -> None:
    title, action = report["title"], report["action"]
    if action == "nothing":
        screen.say(f"{title}: nothing to change")
        return
    for step in report["changes"]:
        screen.say(f"{'removed' if step.new is None else 'wrote':<8}{step.path}")
        _tell_kept(screen, step)
    screen.say(screen.paint(f"{title}: {'installed' if action == 'install' else 'uninstalled'}", "green"))
    if report["note"] and action == "install":
        screen.aside(report["note"], "yellow")


def _tell_to_paste(screen: Output, report: dict[str, Any]) -> None:
    for part in report["parts"]:
        screen.say(f"# {part['path']}")
        screen.text(part["text"])
    if report["note"]:
        screen.aside(report["note"], "yellow")


def _tell_found(screen: Output, found: list[dict[str, Any]]) -> None:
    if not found:
        screen.nothing("no client was found: `holdfast install CLIENT` installs for one all the same")
        return
    rows = [(one["client"], "yes" if one["installed"] else "no", one["where"]) for one in found]
    screen.table(("CLIENT", "INSTALLED", "SEEN AT"), rows, ("cyan", "", "dim"))
    screen.aside("`holdfast install CLIENT` shows what it would change, and asks")
