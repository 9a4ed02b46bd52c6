"""prove."""

from __future__ import annotations

import os
import signal

from holdfast.cli.output import one_line, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast_prove.checks import Proof
    from holdfast_prove.run import Run


def prove(call: Invocation) -> int:
    """Run the client in a private home and show what reached the model; exit 1 if anything is red."""
    from holdfast import clients, config
    from holdfast_prove import checks
    from holdfast_prove.run import SECONDS, find_program

    client = clients.load(call["client"])
    environ = config.copy_environment() | {"HOLDFAST_HOME": ""}
    place = clients.install_target(config.Config(home=config.find_home(None, environ)))
    program = find_program(client, place, call["program"])
    keep = _new_folder(call["keep"]) if call["keep"] else ""
    call.screen.aside(f"running {program} in a private home; this takes up to a minute")
    signal.signal(signal.SIGTERM, _stopped)
    proof, run = checks.prove(client, program, place, call["seconds"] or SECONDS)
    if keep:
        _keep(keep, run)
    return call.answer(proof, _tell, 0 if proof.ok else 1)


def _stopped(*_: object) -> NoReturn:
    """As if a person had: the program and all it started go, too."""
    raise KeyboardInterrupt


def _new_folder(path: str) -> str:
    from holdfast.errors import UsageError

    folder = os.path.abspath(path)
    try:
        os.makedirs(folder, mode=0o700)
    except FileExistsError:
        raise UsageError(f"{folder} is there already", "Name a folder that is not") from None
    return folder


def _keep(folder: str, run: Run) -> None:
    """The bytes of every request, and what went in and out of Holdfast."""
    import json

    for number, request in enumerate(run.requests, 1):
        with open(os.path.join(folder, f"request-{number}.json"), "xb") as file:
            file.write(request.body)
    for number, call in enumerate(run.calls, 1):
        with open(os.path.join(folder, f"call-{number}.json"), "x", encoding="utf-8") as text:
            json.dump(call.as_dict(), text, indent=2)


def _tell(screen: Output, proof: Proof) -> None:
    screen.say(f"{screen.paint(f'{proof.client} {proof.version}'.strip(), 'bold')} {visible(proof.program)}")
    width = max(len(check.name) for check in proof.checks)
    for check in proof.checks:
        light = screen.paint("green", "green") if check.ok else screen.paint("red  ", "red")
        screen.say(f"{light}  {check.name:<{width}}  {one_line(check.seen)}")
        if not check.ok:
            screen.say(f"       {screen.paint('fix:', 'dim')} {visible(check.fix)}")
    for number, one in enumerate(proof.requests, 1):
        head = screen.paint(f"request {number}", "dim")
        screen.say(f"{head}  {visible(one.path)}, {one.bytes:,} bytes: {'; '.join(one.pieces)}")
    if proof.refused:
        screen.aside(f"it also wanted to reach, and could not: {', '.join(proof.refused)}")
    if proof.printed:
        screen.aside("the end of what it said:")
        screen.indented(proof.printed, 40)
