"""`prove`: run a client's real program against Holdfast and show what reached the model."""

from __future__ import annotations

import os
import signal

from holdfast.cli.output import join_lines, mark_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast_prove.checks import Proof
    from holdfast_prove.run import Run


def prove(call: Invocation) -> int:
    """`holdfast prove`; exit 1 if a check fails."""
    from holdfast import clients, config
    from holdfast_prove import checks
    from holdfast_prove.run import DEFAULT_SECONDS, find_program

    client = clients.load(call["client"])
    environ = config.copy_environment() | {"HOLDFAST_HOME": ""}
    place = clients.install_target(config.Config(home=config.find_home(None, environ)))
    program = find_program(client, place, call["program"])
    keep = _create_folder(call["keep"]) if call["keep"] else ""
    call.output.print_message(f"running {program} in a temporary home; this takes up to a minute")
    signal.signal(signal.SIGTERM, _interrupt)
    proof, run = checks.prove(client, program, place, call["seconds"] or DEFAULT_SECONDS)
    if keep:
        _write_run(keep, run)
    return call.answer(proof, _print_proof, 0 if proof.ok else 1)


def _interrupt(*_: object) -> NoReturn:
    """Treat SIGTERM as Ctrl-C, so that the client and its child processes are stopped, too."""
    raise KeyboardInterrupt


def _create_folder(path: str) -> str:
    """Create a folder and return its absolute path; raise UsageError if it exists."""
    from holdfast.errors import UsageError

    folder = os.path.abspath(path)
    try:
        os.makedirs(folder, mode=0o700)
    except FileExistsError:
        raise UsageError(f"{folder} exists already", "Name a new folder") from None
    return folder


def _write_run(folder: str, run: Run) -> None:
    """Write every request of the client and every call of Holdfast to a file of its own."""
    import json

    for number, request in enumerate(run.requests, 1):
        with open(os.path.join(folder, f"request-{number}.json"), "xb") as file:
            file.write(request.body)
    for number, call in enumerate(run.calls, 1):
        with open(os.path.join(folder, f"call-{number}.json"), "x", encoding="utf-8") as text:
            json.dump(call.as_dict(), text, indent=2)


def _print_proof(output: Output, proof: Proof) -> None:
    output.print_line(f"{output.style(f'{proof.client} {proof.version}'.strip(), 'bold')} {mark_hidden(proof.program)}")
    width = max(len(check.name) for check in proof.checks)
    for check in proof.checks:
        state = output.style("green", "green") if check.ok else output.style("red  ", "red")
        output.print_line(f"{state}  {check.name:<{width}}  {join_lines(check.seen)}")
        if not check.ok:
            output.print_line(f"       {output.style('fix:', 'dim')} {mark_hidden(check.fix)}")
    for number, request in enumerate(proof.requests, 1):
        head = output.style(f"request {number}", "dim")
        output.print_line(f"{head}  {mark_hidden(request.path)}, {request.bytes:,} bytes: {'; '.join(request.pieces)}")
    if proof.refused:
        output.print_message(f"blocked network access to: {', '.join(proof.refused)}")
    if proof.printed:
        output.print_message("last output of the program:")
        output.print_indented(proof.printed, 40)
