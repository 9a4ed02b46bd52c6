"""scaffold, boot: the trees of files an agent keeps, and what it reads of them when it starts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.verbs.scaffold import Scaffolded
    from holdfast.verbs.scaffold.boot import Boot


def scaffold(call: Invocation) -> int:
    return call.answer(call.memory.scaffold(call["name"], **call.given("scope")), _tell_made)


def boot(call: Invocation) -> int:
    return call.answer(call.memory.boot(**call.given("scope", "cap")), _tell_boot)


def _tell_made(screen: Output, made: Scaffolded) -> None:
    for path in made.created:
        screen.say(f"{screen.paint('created', 'green')} {path}")
    from holdfast.cli.output import plural

    there = f", {plural(len(made.kept), 'path')} there already" if made.kept else ""
    screen.aside(f"{plural(len(made.created), 'path')} made in {made.scope.folder}/files{there}")


def _tell_boot(screen: Output, boot: Boot) -> None:
    if boot.text:
        screen.text(boot.text)
    else:
        screen.nothing("nothing to start from: `holdfast scaffold continuity` makes the files")
