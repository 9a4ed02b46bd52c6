"""What was typed, read against the table of commands.

Our own reader and not argparse: it knows the table already, it takes the global options on either side of the command,
it can name what was nearly meant, and a cold command starts half a `python -c pass` sooner.
"""

from __future__ import annotations

from holdfast.cli.command import EVERYWHERE
from holdfast.cli.command_table import COMMANDS, FAMILIES, find
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.cli.command import Arg, Command, Option

_EVERYWHERE = {option.name: option for option in EVERYWHERE}
_SHORT = {"-h": "--help"}
_SYNONYMS = {
    "remember": "store", "add": "store", "show": "get", "rm": "forget", "delete": "forget", "find": "recall",
}  # fmt: skip


class ParsedArguments:
    """A request as typed: the command, its values by name, and what is still open when the words end."""

    def __init__(self) -> None:
        self.family = ""  # `file`, until the word after it says which
        self.command: Command | None = None
        self.values: dict[str, Any] = {}
        self.places: list[str] = []  # words that are no option, in order
        self.pending: Option | None = None  # an option that still waits for its value
        self.options: dict[str, Option] = dict(_EVERYWHERE)
        self.rest: list[str] = []  # for a command that reads its own words

    def wants(self, name: str) -> bool:
        return bool(self.values.get(name))


def read(typed: list[str]) -> ParsedArguments:
    """The request, complete; or a UsageError that says what to type instead."""
    words = scan(typed)
    if words.pending:
        raise UsageError(f"{words.pending.name} needs a value", f"Write {words.pending.name} {words.pending.value}")
    if words.command and not words.command.raw and not words.wants("help"):
        _fill(words, words.command)
    return words


def scan(typed: list[str]) -> ParsedArguments:
    """The same as far as it goes: nothing needs to be complete yet, as while a shell completes it."""
    words = ParsedArguments()
    left = list(typed)
    while left:
        word = left.pop(0)
        if word == "--" and not words.pending:
            words.places += left
            break
        if words.pending:
            _give(words, words.pending, word)
        elif _is_option(word):
            _take_option(words, word)
        elif words.command is None:
            _take_command(words, word)
        else:
            words.places.append(word)
        if words.command is not None and words.command.raw:
            words.rest = left
            break
    return words


def json_wanted(typed: list[str]) -> bool:
    """Whether `--json` was asked for, even where the rest makes no sense."""
    end = typed.index("--") if "--" in typed else len(typed)
    return "--json" in typed[:end]


def near(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, or nothing."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), 1, 0.6)), "")


def _is_option(word: str) -> bool:
    """`--name`, `--name=value`, `-h`; not `-` (stdin), `-5`, or a text such as `- [ ] milk`."""
    if word.startswith("--"):
        return word[2:3].isalpha() and " " not in word.partition("=")[0]
    return len(word) == 2 and word[0] == "-" and word[1].isalpha()


def _take_option(words: ParsedArguments, word: str) -> None:
    name, given, value = word.partition("=")
    name = _SHORT.get(name, name)
    option = words.options.get(name)
    if option is None:
        raise _unknown_option(words, name)
    if option.value and not given:
        words.pending = option
    elif given and not option.value:
        raise UsageError(f"{name} takes no value", f"Write {name} alone")
    else:
        _give(words, option, value if given else True)


def _give(words: ParsedArguments, option: Option, value: object) -> None:
    if words.pending and isinstance(value, str) and value.partition("=")[0] in words.options:
        raise UsageError(f"{option.name} needs a value", f"Write {option.name}=... for one that starts with '--'")
    words.pending = None
    if option.number:
        value = _number(str(value), option.name)
    if option.many:
        words.values.setdefault(option.field, []).append(value)
    else:
        words.values[option.field] = value


def _number(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name} needs a whole number, not {text!r}", f"Write {name} 10") from None


def _take_command(words: ParsedArguments, word: str) -> None:
    if not words.family and word in FAMILIES:
        words.family = word
        return
    name = f"{words.family} {word}".strip()
    words.command = find(name)
    if words.command is None:
        raise _unknown_command(name, words.family)
    words.options.update({option.name: option for option in words.command.options})


def _fill(words: ParsedArguments, command: Command) -> None:
    """Words in their places, each by its argument's name."""
    places = list(words.places)
    for arg in command.args:
        if not places:
            if arg.needed:
                raise UsageError(f"{arg.name} is missing: {arg.help}", f"Usage: {command.usage}")
            break
        if arg.words or arg.many:
            words.values[arg.field] = " ".join(places) if arg.words else places
            return
        words.values[arg.field] = places.pop(0)
    if places:
        raise UsageError(f"one word too many: {places[0]!r}", _quoting(command))


def _quoting(command: Command) -> str:
    texts: list[Arg] = [arg for arg in command.args if arg.name in ("TEXT", "VALUE", "NEW")]
    return f'Put quotes around it: "{texts[-1].name}"' if texts else f"Usage: {command.usage}"


def _unknown_command(name: str, family: str) -> UsageError:
    inner = [one.partition(" ")[2] for one in COMMANDS if family and one.startswith(f"{family} ")]
    meant = _SYNONYMS.get(name) or near(name.removeprefix(f"{family} "), inner or [*COMMANDS, *FAMILIES])
    hints = [f"Did you mean `holdfast {f'{family} {meant}'.strip()}`?"] if meant else []
    if inner or not meant:
        hints.append(f"One of: {', '.join(inner)}" if inner else "`holdfast --help` lists them")
    return UsageError(f"there is no command {name!r}", " ".join(hints))


def _unknown_option(words: ParsedArguments, name: str) -> UsageError:
    if words.command is None and any(option.name == name for one in COMMANDS.values() for option in one.options):
        return UsageError(f"{name} is an option of a command", "Write it after the command")
    meant = near(name, words.options)
    if meant:
        return UsageError(f"there is no option {name}", f"Did you mean {meant}?")
    which = f"`holdfast {words.command.name} --help`" if words.command else "`holdfast --help`"
    return UsageError(f"there is no option {name}", f"{which} lists them; put -- before a text that starts with '-'")
