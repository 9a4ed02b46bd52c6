"""The library's messages in the words of the command line: `valid_from` becomes `--valid-from`. Loaded only for an error."""

from __future__ import annotations

import re

from holdfast.doors.cli.command import EVERYWHERE
from holdfast.doors.cli.words import scan
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.doors.cli.command import Command
    from holdfast.errors import HoldfastError

_OTHERWISE_NAMED = {"made_from": "--from", "tags": "--tag", "pinned": "--pin"}  # parameters whose option has another name
_QUOTED = r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`"""  # what the user wrote, or a command: left as it is
_NAME = re.compile(rf"{_QUOTED}|(?<![\w.-])([a-z]+(?:_[a-z]+)+)(=?)(?![\w-])")
_FIRST = re.compile(r"([a-z]+)(?=:| must )")
_IN_PYTHON = re.compile(r"(`--[a-z-]+`) \(\w+=\w+\)")  # an option, and the same for a program


def as_typed(error: HoldfastError, typed: list[str]) -> tuple[str, str]:
    """The message and the fix of an error, with the parameters that they name written as the options of the command."""
    command = _command(typed)
    if command is None:
        return error.message, error.fix
    flags, message = _flags(command), error.message
    first = _FIRST.match(message)
    if first and any(option.field == first[1] for option in command.options):
        message = f"--{message}"
    return _replaced(message, flags), _IN_PYTHON.sub(r"\1", _replaced(error.fix, flags))


def _command(typed: list[str]) -> Command | None:
    try:
        return scan(typed).command
    except UsageError:
        return None


def _flags(command: Command) -> dict[str, str]:
    own = {option.field: option.name for option in (*EVERYWHERE, *command.options)}
    return {**own, **{name: flag for name, flag in _OTHERWISE_NAMED.items() if flag in own.values()}}


def _replaced(text: str, flags: dict[str, str]) -> str:
    def flag(found: re.Match[str]) -> str:
        name, given = found[1], found[2]
        return flags[name] + (" " if given else "") if name in flags else found[0]

    return _NAME.sub(flag, text)
