"""brief, hook."""

from __future__ import annotations

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.verbs.brief.render import Brief

_ROWS = 100  # notes that are listed one by one; --json has them all


def brief(call: Invocation) -> int:
    cap: int | None = call["cap"]
    if cap is not None and not 750 <= cap <= 9000:
        raise UsageError(f"--cap must be 750 to 9000, not {cap}", "Ask for 750 to 9000 characters")
    if call["again"] and call["prompt"] is None:
        raise UsageError("--again goes with --prompt", "A start briefing is always whole")
    made = call.memory.brief(prompt=call["prompt"], again=bool(call["again"]), cap=cap, explain=bool(call["explain"]))
    if call["explain"]:
        return call.answer(made, _tell_explained)
    return call.answer(made, _tell if call["prompt"] is None else _tell_prompt)


def hook(call: Invocation) -> int:
    """What the fast way in `doors.cli` does not take: other options before it, or a person who asks."""
    from holdfast import cli
    from holdfast.hooks import main

    if call.words.command and call.words.rest[:1] in (["--help"], ["-h"]):
        from holdfast.cli.commands.help import of_command

        call.screen.text(of_command(call.words.command))
        return 0

    return main(call.words.rest, call["home"], enforce_deadline=cli.alone)


def _tell(screen: Output, brief: Brief) -> None:
    if brief.text:
        screen.text(brief.text)
    else:
        screen.nothing("nothing to tell: `holdfast store TEXT` keeps a note, `holdfast brief --explain` says why")


def _tell_prompt(screen: Output, brief: Brief) -> None:
    if brief.text:
        screen.text(brief.text)
    else:
        screen.nothing("No notes match this prompt, or the session was shown them already. Add --explain to see why.")


def _tell_explained(screen: Output, brief: Brief) -> None:
    from holdfast.cli.output import one_line, plural

    if not brief.why:
        screen.nothing("there is no note here yet: `holdfast store TEXT` keeps the first one")
        return
    first = sorted(brief.why, key=lambda one: not one.told)
    rows = [("in" if one.told else "out", one_line(one.name), one.reason) for one in first[:_ROWS]]
    screen.table(("", "NOTE", "WHY"), rows, ("bold", "", "dim"))
    if len(first) > _ROWS:
        screen.aside(f"and {len(first) - _ROWS:,} more; --json has them all")
    told = len([one for one in first if one.told])
    screen.aside(f"{plural(told, 'note')} of {len(first):,} in {len(brief.text):,} characters")
