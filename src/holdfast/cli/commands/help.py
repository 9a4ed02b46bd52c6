"""`help` and `--help`: the help pages, from the table of commands."""

from __future__ import annotations

from holdfast.cli.command import EXIT_CODES, GLOBAL_OPTIONS
from holdfast.cli.command_table import COMMAND_GROUPS, COMMANDS, SECTIONS
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.command import Command, Option
    from holdfast.cli.output import Output
    from holdfast.cli.parser import ParsedArguments
    from holdfast.cli.runner import Invocation

_MAX_ALIGNED = 30  # characters of a left column; a longer one does not widen the column


def print_help(arguments: ParsedArguments, output: Output) -> int:
    """Print the help for `--help`; raise UsageError if only the command is missing."""
    if not arguments.has("help"):
        raise _command_missing(arguments.group)
    return _print_page(arguments.command, arguments.group, output)


def show_help(call: Invocation) -> int:
    """`holdfast help [COMMAND]`."""
    from holdfast.cli.parser import parse_partial

    topic = parse_partial((call["command"] or "").split())
    return _print_page(topic.command, topic.group, call.output)


def _command_missing(group: str) -> UsageError:
    if not group:
        return UsageError("no command given", "Run `holdfast --help` for the list of commands")
    names = ", ".join(name.partition(" ")[2] for name in COMMANDS if _is_in_group(name, group))
    rows = "\n".join([row.strip() for row in _format_group_rows(group)])
    return UsageError(f"`holdfast {group}` needs a command: {names}", rows)


def _print_page(command: Command | None, group: str, output: Output) -> int:
    if output.json:
        commands = [command] if command else [known for name, known in COMMANDS.items() if _is_in_group(name, group)]
        output.print_json({"commands": [_to_json(known) for known in commands], "exit_codes": dict(EXIT_CODES)})
        return 0
    output.print_line(format_command(command) if command else _format_group(group) if group else _format_overview())
    return 0


def _format_overview() -> str:
    """Return the page of `holdfast --help`."""
    lines = ["usage: holdfast COMMAND ... [options]", ""]
    lines += ["Durable memory for AI agents, in Markdown files that you own.", ""]
    for title, commands in SECTIONS:
        rows = [(command.name, command.summary) for command in commands if " " not in command.name]
        for group, about in COMMAND_GROUPS.items():
            inner = [command.name.partition(" ")[2] for command in commands if command.name.startswith(f"{group} ")]
            if inner:
                rows.append((group, f"{about}: {', '.join(inner)}"))
        lines += [title, *_format_rows(rows), ""]
    options = [(_format_option(option), option.help) for option in GLOBAL_OPTIONS]
    lines += ["Global options, before or after the command", *_format_rows(options), ""]
    lines += ["Exit codes", *_format_rows([(str(code), meaning) for code, meaning in EXIT_CODES]), ""]
    return "\n".join([*lines, "Run `holdfast COMMAND --help` for the help of one command."])


def _format_group(group: str) -> str:
    return "\n".join([f"usage: holdfast {group} COMMAND ...", "", *_format_group_rows(group)])


def _format_group_rows(group: str) -> list[str]:
    commands = [command for name, command in COMMANDS.items() if _is_in_group(name, group)]
    return _format_rows([(command.usage, command.summary) for command in commands])


def format_command(command: Command) -> str:
    """Return the help page of one command."""
    lines = [f"usage: {command.usage}", "", format_sentence(command.summary), ""]
    if command.args:
        lines += [*_format_rows([(str(arg), arg.help) for arg in command.args]), ""]
    if command.options:
        options = [(_format_option(option), describe_option(option)) for option in command.options]
        lines += ["Options", *_format_rows(options), ""]
    if command.example:
        lines += ["Example", f"  {command.example}", ""]
    return "\n".join([*lines, "Run `holdfast --help` for the options of all commands."])


def describe_option(option: Option) -> str:
    """Return the help of an option with its possible values."""
    return f"{option.help} [possible values: {', '.join(list_choices(option))}]" if option.choices else option.help


def list_choices(option: Option) -> tuple[str, ...]:
    """Return the possible values of an option; empty if any value is accepted."""
    from holdfast import models

    if not isinstance(option.choices, str):
        return option.choices
    return tuple(getattr(models, option.choices)) if option.choices else ()


def format_sentence(text: str) -> str:
    """Return the text with a full stop."""
    return text + "."


def _is_in_group(name: str, group: str) -> bool:
    return not group or name.startswith(f"{group} ")


def _format_option(option: Option) -> str:
    return f"{option.name} {option.value}".rstrip()


def _format_rows(rows: list[tuple[str, str]]) -> list[str]:
    width = max([len(left) for left, _ in rows if len(left) <= _MAX_ALIGNED], default=20)
    return [f"  {left:<{width}}  {right}" for left, right in rows]


def _to_json(command: Command) -> dict[str, object]:
    return {
        "name": command.name,
        "summary": command.summary,
        "usage": command.usage,
        "args": [{"name": arg.name, "help": arg.help, "needed": arg.required} for arg in command.args],
        "options": [
            {
                "name": option.name, "value": option.value, "help": option.help, "choices": list(list_choices(option)),
                "many": option.repeatable,
            }
            for option in command.options
        ],
        "example": command.example,
    }  # fmt: skip
