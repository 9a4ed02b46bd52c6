"""`brief` and `hook`: print what an agent is shown, and run the hook of a client."""

from __future__ import annotations

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.verbs.brief.render import Brief

_MAX_ROWS = 100  # notes that --explain lists; --json has them all


def brief(call: Invocation) -> int:
    """`holdfast brief`."""
    cap: int | None = call["cap"]
    if cap is not None and not 750 <= cap <= 9000:
        raise UsageError(f"--cap must be 750 to 9000, not {cap}", "Give a number of characters from 750 to 9000")
    if call["again"] and call["prompt"] is None:
        raise UsageError("--again needs --prompt", "Add --prompt TEXT, or leave out --again")
    explain = bool(call["explain"])
    result = call.memory.brief(prompt=call["prompt"], again=bool(call["again"]), cap=cap, explain=explain)
    if explain:
        return call.answer(result, _print_explained)
    return call.answer(result, _print_start if call["prompt"] is None else _print_prompt)


def hook(call: Invocation) -> int:
    """`holdfast hook` with global options or --help; `holdfast.cli.main` runs the usual form without the command table."""
    from holdfast import cli
    from holdfast.hooks import main

    command, rest = call.arguments.command, call.arguments.rest
    if command and rest[:1] in (["--help"], ["-h"]):
        from holdfast.cli.commands.help import format_command

        call.output.print_text(format_command(command))
        return 0

    return main(rest, call["home"], enforce_deadline=cli.owns_process)


def _print_start(output: Output, brief: Brief) -> None:
    if brief.text:
        output.print_text(brief.text)
    else:
        output.print_empty(
            "No notes to show. Store one with `holdfast store TEXT`, or run `holdfast brief --explain` for the reasons."
        )


def _print_prompt(output: Output, brief: Brief) -> None:
    if brief.text:
        output.print_text(brief.text)
    else:
        output.print_empty("No notes match this prompt, or the session was shown them already. Add --explain to see why.")


def _print_explained(output: Output, brief: Brief) -> None:
    from holdfast.cli.output import format_count, join_lines

    if not brief.why:
        output.print_empty("No notes yet. Store one with `holdfast store TEXT`.")
        return
    reasons = sorted(brief.why, key=lambda reason: not reason.told)
    rows = [("in" if reason.told else "out", join_lines(reason.name), reason.reason) for reason in reasons[:_MAX_ROWS]]
    output.print_table(("", "NOTE", "WHY"), rows, ("bold", "", "dim"), wrap=True)
    if len(reasons) > _MAX_ROWS:
        output.print_message(f"and {len(reasons) - _MAX_ROWS:,} more; use --json for all")
    shown = len([reason for reason in reasons if reason.told])
    output.print_message(f"{format_count(shown, 'note')} of {len(reasons):,} in {len(brief.text):,} characters")
