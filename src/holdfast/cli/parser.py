"""Parse the command line against the table of commands.

A parser of our own instead of argparse: it takes the global options before and after the command, suggests the command or
option that was probably meant, and makes a cold command faster by half of `python -c pass`.
"""

from __future__ import annotations

from holdfast.cli.command import GLOBAL_OPTIONS
from holdfast.cli.command_table import COMMAND_GROUPS, COMMANDS, find_command
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.cli.command import Command, Option

_GLOBAL_OPTIONS = {option.name: option for option in GLOBAL_OPTIONS}
_SHORT_OPTIONS = {"-h": "--help"}
_SYNONYMS = {
    "remember": "store", "add": "store", "show": "get", "rm": "forget", "delete": "forget", "find": "recall",
}  # fmt: skip


class ParsedArguments:
    """A parsed command line: the command, its values by name, and an option that still needs its value."""

    def __init__(self) -> None:
        self.group = ""  # the first word of a command of two words, such as `file`
        self.command: Command | None = None
        self.values: dict[str, Any] = {}
        self.positionals: list[str] = []
        self.pending: Option | None = None  # an option whose value is the next word
        self.options: dict[str, Option] = dict(_GLOBAL_OPTIONS)
        self.rest: list[str] = []  # the words of a raw command

    def has(self, name: str) -> bool:
        """Return whether a switch was given."""
        return bool(self.values.get(name))


def parse_args(argv: list[str]) -> ParsedArguments:
    """Parse a complete command line; raise UsageError with what to type instead."""
    arguments = parse_partial(argv)
    if arguments.pending:
        option = arguments.pending
        raise UsageError(f"{option.name} needs a value", f"Add one: {option.name} {option.value}")
    if arguments.command and not arguments.command.raw and not arguments.has("help"):
        _assign_positionals(arguments, arguments.command)
    return arguments


def parse_partial(argv: list[str]) -> ParsedArguments:
    """Parse a command line that may be incomplete, as in shell completion; raise UsageError for an unknown word."""
    arguments = ParsedArguments()
    left = list(argv)
    while left:
        word = left.pop(0)
        if word == "--" and not arguments.pending:
            arguments.positionals += left
            break
        if arguments.pending:
            _set_value(arguments, arguments.pending, word)
        elif _is_option(word):
            _parse_option(arguments, word)
        elif arguments.command is None:
            _parse_command(arguments, word)
        else:
            arguments.positionals.append(word)
        if arguments.command is not None and arguments.command.raw:
            arguments.rest = left
            break
    return arguments


def wants_json(argv: list[str]) -> bool:
    """Return whether `--json` was given, even if the rest of the command line is wrong."""
    end = argv.index("--") if "--" in argv else len(argv)
    return "--json" in argv[:end]


def _find_similar(word: str, known: Iterable[str]) -> str:
    """Return the known word that was probably meant, or an empty string."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), 1, 0.6)), "")


def _is_option(word: str) -> bool:
    """`--name`, `--name=value`, `-h`; not `-` (stdin), `-5`, or a text such as `- [ ] milk`."""
    if word.startswith("--"):
        return word[2:3].isalpha() and " " not in word.partition("=")[0]
    return len(word) == 2 and word[0] == "-" and word[1].isalpha()


def _parse_option(arguments: ParsedArguments, word: str) -> None:
    name, equals, value = word.partition("=")
    name = _SHORT_OPTIONS.get(name, name)
    option = arguments.options.get(name)
    if option is None:
        raise _unknown_option(arguments, name)
    if option.value and not equals:
        arguments.pending = option
    elif equals and not option.value:
        raise UsageError(f"{name} takes no value", f"Write only {name}")
    else:
        _set_value(arguments, option, value if equals else True)


def _set_value(arguments: ParsedArguments, option: Option, value: object) -> None:
    if arguments.pending and isinstance(value, str) and value.partition("=")[0] in arguments.options:
        raise UsageError(f"{option.name} needs a value", f"Write {option.name}=VALUE if the value starts with '--'")
    arguments.pending = None
    if option.is_integer:
        value = _parse_integer(str(value), option.name)
    if option.repeatable:
        known = arguments.values.get(option.field)  # no list if an option for all commands has the same name
        arguments.values[option.field] = [*known, value] if isinstance(known, list) else [value]
    else:
        arguments.values[option.field] = value


def _parse_integer(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name} needs a whole number, not {text!r}", f"Write it as {name} 10") from None


def _parse_command(arguments: ParsedArguments, word: str) -> None:
    if not arguments.group and word in COMMAND_GROUPS:
        arguments.group = word
        return
    name = f"{arguments.group} {word}".strip()
    arguments.command = find_command(name)
    if arguments.command is None:
        raise _unknown_command(name, arguments.group)
    arguments.options.update({option.name: option for option in arguments.command.options})


def _assign_positionals(arguments: ParsedArguments, command: Command) -> None:
    """Assign the positional words to the command's arguments, in order."""
    words = list(arguments.positionals)
    for arg in command.args:
        if not words:
            if arg.required:
                raise UsageError(f"{arg.name} is missing ({arg.help[:1].lower()}{arg.help[1:]})", f"Usage: {command.usage}")
            break
        if arg.join_rest or arg.repeatable:
            arguments.values[arg.field] = " ".join(words) if arg.join_rest else words
            return
        arguments.values[arg.field] = words.pop(0)
    if words:
        raise UsageError(f"unexpected argument {words[0]!r}", _suggest_quotes(command))


def _suggest_quotes(command: Command) -> str:
    texts = [arg.name for arg in command.args if arg.name in ("TEXT", "VALUE", "NEW")]
    return f'Put quotes around the text: "{texts[-1]}"' if texts else f"Usage: {command.usage}"


def _unknown_command(name: str, group: str) -> UsageError:
    inner = [known.partition(" ")[2] for known in COMMANDS if group and known.startswith(f"{group} ")]
    similar = _SYNONYMS.get(name) or _find_similar(name.removeprefix(f"{group} "), inner or [*COMMANDS, *COMMAND_GROUPS])
    hints = [f"Did you mean `holdfast {f'{group} {similar}'.strip()}`?"] if similar else []
    if inner or not similar:
        hints.append(f"Use one of: {', '.join(inner)}" if inner else "Run `holdfast --help` for the list of commands")
    return UsageError(f"unknown command {name!r}", " ".join(hints))


def _unknown_option(arguments: ParsedArguments, name: str) -> UsageError:
    command = arguments.command
    if command is None and any(option.name == name for known in COMMANDS.values() for option in known.options):
        return UsageError(f"{name} must follow a command", "Write the command first")
    similar = _find_similar(name, arguments.options)
    if similar:
        return UsageError(f"unknown option {name}", f"Did you mean {similar}?")
    help_command = f"`holdfast {command.name} --help`" if command else "`holdfast --help`"
    return UsageError(
        f"unknown option {name}", f"Run {help_command} for the options; put -- before a text that starts with '-'"
    )
