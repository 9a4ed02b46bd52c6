"""An error in the words of the command line: `valid_from` becomes `--valid-from`. Loaded only for an error."""

from __future__ import annotations

from holdfast.cli.command import EVERYWHERE
from holdfast.cli.parser import scan
from holdfast.errors import Template, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.command import Command
    from holdfast.errors import HoldfastError, Term

_OTHERWISE_NAMED = {"made_from": "--from", "tags": "--tag", "pinned": "--pin"}  # parameters whose option has another name
_PHRASES = {"redact": "`--redact`"}


def as_typed(error: HoldfastError, typed: list[str]) -> tuple[str, str]:
    """Return the message and the hint of an error, with the parameters that they name as the options of the command."""
    command = _command(typed)
    if command is None:
        return error.message, error.fix
    flags = _flags(command)

    def words(term: Term) -> str:
        if term.kind == "phrase":
            return _PHRASES.get(term.name, "")
        flag = flags.get(term.name, "")
        return f'{flag} "{term.args[0]}"' if flag and term.kind == "argument" else flag if term.kind == "field" else ""

    return error.whole().render(words), Template(error.hint).render(words)


def _command(typed: list[str]) -> Command | None:
    try:
        return scan(typed).command
    except UsageError:
        return None


def _flags(command: Command) -> dict[str, str]:
    own = {option.field: option.name for option in (*EVERYWHERE, *command.options)}
    return {**own, **{name: flag for name, flag in _OTHERWISE_NAMED.items() if flag in own.values()}}
