"""Help, from the table."""

from __future__ import annotations

from holdfast.cli.command import EVERYWHERE, EXIT_CODES
from holdfast.cli.command_table import COMMANDS, FAMILIES, GROUPS
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.command import Command, Option
    from holdfast.cli.output import Output
    from holdfast.cli.parser import ParsedArguments
    from holdfast.cli.runner import Invocation


def show(words: ParsedArguments, screen: Output) -> int:
    """`--help` anywhere; or no command at all, which is wrong usage."""
    if not words.wants("help"):
        raise _unsaid(words.family)
    return _show(words.command, words.family, screen)


def _unsaid(family: str) -> UsageError:
    """What could have been said, in place of nothing."""
    if not family:
        return UsageError("no command was given", "`holdfast --help` shows more")
    kinds = ", ".join(name.partition(" ")[2] for name in COMMANDS if _belongs(name, family))
    return UsageError(f"`holdfast {family}` needs one of: {kinds}", "\n".join([row.strip() for row in _of_family(family)]))


def help_(call: Invocation) -> int:
    """`holdfast help [COMMAND]`."""
    from holdfast.cli.parser import scan

    asked = scan((call["command"] or "").split())
    return _show(asked.command, asked.family, call.screen)


def _show(command: Command | None, family: str, screen: Output) -> int:
    if screen.json:
        asked = [command] if command else [one for name, one in COMMANDS.items() if _belongs(name, family)]
        screen.document({"commands": [_plain(one) for one in asked], "exit_codes": dict(EXIT_CODES)})
        return 0
    screen.say(of_command(command) if command else of_family(family) if family else overview())
    return 0


def overview() -> str:
    """The page of `holdfast --help`."""
    lines = ["usage: holdfast COMMAND ... [options]", ""]
    lines += ["Durable memory for AI agents: plain markdown that people own.", ""]
    for title, group in GROUPS:
        rows = [(command.name, command.summary) for command in group if " " not in command.name]
        for family, about in FAMILIES.items():
            inner = [command.name.partition(" ")[2] for command in group if command.name.startswith(f"{family} ")]
            if inner:
                rows.append((family, f"{about}: {', '.join(inner)}"))
        lines += [title, *_rows(rows), ""]
    everywhere = [(_spelled(option), option.help) for option in EVERYWHERE]
    lines += ["Options, before or after the command", *_rows(everywhere), ""]
    lines += ["Exit codes", *_rows([(str(code), meaning) for code, meaning in EXIT_CODES]), ""]
    return "\n".join([*lines, "`holdfast COMMAND --help` says more about one command."])


def of_family(family: str) -> str:
    return "\n".join([f"usage: holdfast {family} COMMAND ...", "", *_of_family(family)])


def _of_family(family: str) -> list[str]:
    return _rows([(command.usage, command.summary) for name, command in COMMANDS.items() if _belongs(name, family)])


def of_command(command: Command) -> str:
    """The page of one command."""
    lines = [f"usage: {command.usage}", "", sentence(command.summary), ""]
    if command.args:
        lines += [*_rows([(str(arg), arg.help) for arg in command.args]), ""]
    if command.options:
        lines += ["Options", *_rows([(_spelled(option), explained(option)) for option in command.options]), ""]
    if command.example:
        lines += ["Example", f"  {command.example}", ""]
    return "\n".join([*lines, "`holdfast --help` lists the options that every command takes."])


def explained(option: Option) -> str:
    """What an option does, with the words it may be given."""
    return f"{option.help}: {', '.join(choices(option))}" if option.choices else option.help


def choices(option: Option) -> tuple[str, ...]:
    """The words an option may be given, from where the rule itself stands."""
    from holdfast import models

    if not isinstance(option.choices, str):
        return option.choices
    return tuple(getattr(models, option.choices)) if option.choices else ()


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _belongs(name: str, family: str) -> bool:
    return not family or name.startswith(f"{family} ")


def _spelled(option: Option) -> str:
    return f"{option.name} {option.value}".rstrip()


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    widest = max([len(left) for left, _ in rows if len(left) <= 30], default=20)
    return [f"  {left:<{widest}}  {right}" for left, right in rows]


def _plain(command: Command) -> dict[str, object]:
    return {
        "name": command.name,
        "summary": command.summary,
        "usage": command.usage,
        "args": [{"name": arg.name, "help": arg.help, "needed": arg.needed} for arg in command.args],
        "options": [
            {"name": one.name, "value": one.value, "help": one.help, "choices": list(choices(one)), "many": one.many}
            for one in command.options
        ],
        "example": command.example,
    }
