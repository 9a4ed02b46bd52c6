"""`install`, `uninstall` and `render`: connect a client to Holdfast or disconnect it; the changes are shown first."""

from __future__ import annotations

import os
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

    Report = dict[str, Any]
    Result = tuple[Report, Callable[[Output, Any], None]]  # a report, and the function that prints it


class _Declined(Exception):
    """The user was shown the changes and declined them."""


def install(call: Invocation) -> int:
    """`holdfast install`: one client, or each that is found on this machine."""
    from holdfast import clients
    from holdfast.clients.install import list_installed

    client = clients.load(call["client"]) if call["client"] else None
    target, seconds = _load_target(call)
    if call["gateway"]:
        target = target.replace(gateway=True)
    if client:
        return _answer_single(call, lambda: _install_client(call, client, target, seconds))
    detected = [(found, path) for name in clients.names() if (path := (found := clients.load(name)).detect(target))]
    is_decided = call["yes"] or call["dry_run"] or call["print"]
    if not detected or (not is_decided and (call.output.json or not sys.stdin.isatty())):
        names = list_installed(target)
        report = [
            {"client": found.name, "title": found.title, "where": path, "installed": found.name in names}
            for found, path in detected
        ]
        return call.answer(report, _print_detected)
    return _answer_each(call, [found for found, _ in detected], lambda found: _install_client(call, found, target, seconds))


def uninstall(call: Invocation) -> int:
    """`holdfast uninstall`: one client, or all that are installed."""
    from holdfast import clients
    from holdfast.clients.install import list_installed

    client = clients.load(call["client"]) if call["client"] else None
    target, seconds = _load_target(call)
    if client:
        everywhere = bool(call["all"])
        return _answer_single(call, lambda: _uninstall_client(call, client, target, seconds=seconds, everywhere=everywhere))
    known = set(clients.names())
    found = [clients.load(name) for name in list_installed(target) if name in known]
    if not found:
        return call.answer([], lambda output, _: output.print_empty("Nothing is installed."))
    return _answer_each(call, found, lambda client: _uninstall_client(call, client, target, seconds=seconds, everywhere=True))


def render(call: Invocation) -> int:
    """`holdfast render`."""
    rendered = call.memory.render(call["file"], remove=bool(call["remove"]))
    return call.answer(rendered, lambda output, result: output.print_line(f"{result.action} {result.path}"))


def _install_client(call: Invocation, client: Client, target: InstallTarget, seconds: float) -> Result:
    from holdfast.clients.install import apply, plan_install

    changes = _list_changes(call, client, target)
    if call["print"]:
        return _build_paste_report(client, target, changes), _print_paste
    steps = plan_install(client, target, changes)
    if not any(step.changes for step in steps):
        return _build_report(client, [], "nothing"), _print_done
    return _run_steps(call, client, steps, verb="install", run=lambda: apply(client, target, steps, seconds))


def _uninstall_client(call: Invocation, client: Client, target: InstallTarget, *, seconds: float, everywhere: bool) -> Result:
    from holdfast.clients.install import plan_uninstall, revert

    steps = plan_uninstall(client, target, everywhere)
    if not steps:
        revert(client, target, [], seconds, everywhere)
        return _build_report(client, steps, "nothing"), _print_done
    return _run_steps(call, client, steps, verb="uninstall", run=lambda: revert(client, target, steps, seconds, everywhere))


def _run_steps(call: Invocation, client: Client, steps: list[Step], *, verb: str, run: Callable[[], None]) -> Result:
    """Show the changes, ask for confirmation, and make them."""
    changed = [step for step in steps if step.changes]
    print_changes = _print_diffs if call["diff"] else _print_changes
    if call["dry_run"]:
        return _build_report(client, changed, "dry_run"), print_changes
    if not call["yes"]:
        if not call.output.json:
            print_changes(call.output, _build_report(client, changed, verb))
        _confirm_steps(call, client, changed, verb)
    run()
    return _build_report(client, changed, verb), _print_done


def _confirm_steps(call: Invocation, client: Client, steps: list[Step], verb: str) -> None:
    """Ask a person; raise _Declined for no, Refused if there is no terminal."""
    files = f"{len(steps)} file" + ("" if len(steps) == 1 else "s")
    if call.output.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        fix = f"Run `holdfast {verb} {client.name} --yes` to make the changes, or add --dry-run to see them"
        raise Refused(f"cannot ask whether to change {files}, because this is not a terminal; nothing was changed", fix)
    from holdfast.cli.runner import ask_yes_no

    if not ask_yes_no(f"{verb.capitalize()} for {client.title}: change {files} as shown?"):
        raise _Declined


def _answer_single(call: Invocation, run: Callable[[], Result]) -> int:
    """Run it for one client; to decline is not an error."""
    try:
        return call.answer(*run())
    except _Declined:
        call.output.print_message("Nothing was changed.", "yellow")
        return Refused.exit_code


def _answer_each(call: Invocation, clients: list[Client], run: Callable[[Client], Result]) -> int:
    """Run it for each client, go on after an error, and return the highest exit code."""
    reports: list[Report] = []
    exit_code, output = 0, call.output
    for client in clients:
        try:
            if not output.json:
                output.print_line(output.style(client.title, "bold"))
            report, print_report = run(client)
            if not output.json:
                print_report(output, report)
        except _Declined:
            report = {"client": client.name, "title": client.title, "action": "declined"}
        except HoldfastError as error:
            exit_code = max(exit_code, error.exit_code)
            report = {"client": client.name, "title": client.title, "action": "failed", **error.as_dict()}
            output.print_message(str(error), "yellow")
        reports.append(report)
    if {report.get("action") for report in reports} == {"declined"}:
        exit_code = Refused.exit_code
    return call.answer(reports, _print_summary, exit_code)


def _print_summary(output: Output, reports: list[Report]) -> None:
    if reports and {report.get("action") for report in reports} <= {"declined", "nothing"}:
        output.print_message("Nothing was changed.", "yellow")
        return
    labels = {
        "install": "installed", "uninstall": "uninstalled", "nothing": "with nothing to change", "declined": "declined",
        "failed": "failed",
    }  # fmt: skip
    clients = {
        label: [report["client"] for report in reports if report.get("action") == action] for action, label in labels.items()
    }
    counts = [f"{len(names)} {label}" for label, names in clients.items() if names]
    if counts:
        failed = clients["failed"]
        names = f": {', '.join(failed)}" if failed else ""
        output.print_message(", ".join(counts) + names, "yellow" if failed else "green")


def _load_target(call: Invocation) -> tuple[InstallTarget, float]:
    """Return where clients keep their files, and how many seconds to wait for a lock."""
    from holdfast import clients, config, home

    settings = config.load(call["home"])
    home.check_owner(settings.home)
    return clients.install_target(settings), settings.lock_seconds


def _list_changes(call: Invocation, client: Client, target: InstallTarget) -> list[Change]:
    if not call["auto_memory"]:
        return client.changes(target)
    from holdfast.cli.commands.setup import find_scope_folder

    auto_memory = client.auto_memory(target, os.path.join(find_scope_folder(call, target.memory, "files"), "auto-memory"))
    if not auto_memory and call["client"]:
        raise UsageError(f"{client.title} has no setting for the folder of its own memory", "Leave out --auto-memory")
    return [*client.changes(target), *auto_memory]


def _build_paste_report(client: Client, target: InstallTarget, changes: list[Change]) -> Report:
    from holdfast.clients.edits import render_for_paste

    parts = [{"path": path, "text": text} for path, text in render_for_paste(client, target, changes)]
    return {"client": client.name, "parts": parts, "note": client.note}


def _build_report(client: Client, steps: list[Step], action: str) -> Report:
    return {"client": client.name, "title": client.title, "action": action, "changes": steps, "note": client.note}


def _print_changes(output: Output, report: Report) -> None:
    """Print diffs of the user's own files, then one line for each file that is all Holdfast's."""
    ours = [step for step in report["changes"] if step.is_ours]
    _print_step_diffs(output, [step for step in report["changes"] if not step.is_ours])
    for step in ours:
        output.print_line(f"{step.action:<8}{_format_path(step)}")
        _print_kept(output, step)
    if ours:
        output.print_message("use `--diff` to see these files in full")


def _print_diffs(output: Output, report: Report) -> None:
    """Print every file as a diff, the user's own files first."""
    _print_step_diffs(output, sorted(report["changes"], key=lambda step: bool(step.is_ours)))


def _print_step_diffs(output: Output, steps: list[Step]) -> None:
    from holdfast.clients.install import diff

    for step in steps:
        output.print_text(diff(step))
        _print_kept(output, step)


def _format_path(step: Step) -> str:
    from holdfast.cli.output import join_lines

    lines = (step.new or b"").count(b"\n")
    return join_lines(step.path) + (f" ({lines} line{'' if lines == 1 else 's'})" if step.new is not None else "")


def _print_kept(output: Output, step: Step) -> None:
    if step.kept:
        output.print_line(f"your changes to it stay: {step.kept}")


def _print_done(output: Output, report: Report) -> None:
    title, action = report["title"], report["action"]
    if action == "nothing":
        output.print_line(f"{title}: nothing to change")
        return
    for step in report["changes"]:
        output.print_line(f"{'removed' if step.new is None else 'wrote':<8}{step.path}")
        _print_kept(output, step)
    output.print_line(output.style(f"{title}: {'installed' if action == 'install' else 'uninstalled'}", "green"))
    if report["note"] and action == "install":
        output.print_message(report["note"], "yellow")


def _print_paste(output: Output, report: Report) -> None:
    for part in report["parts"]:
        output.print_line(f"# {part['path']}")
        output.print_text(part["text"])
    if report["note"]:
        output.print_message(report["note"], "yellow")


def _print_detected(output: Output, detected: list[Report]) -> None:
    if not detected:
        output.print_empty("No client found on this machine. Name one with `holdfast install CLIENT`.")
        return
    rows = [(report["client"], "yes" if report["installed"] else "no", report["where"]) for report in detected]
    output.print_table(("CLIENT", "INSTALLED", "SEEN AT"), rows, ("cyan", "", "dim"))
    output.print_message("Run `holdfast install CLIENT` to see the changes and confirm them.")
