"""Report errors and Ctrl-C in the words of the command line, with what the command may have done."""

from __future__ import annotations

import sys

from holdfast.cli.command import GLOBAL_OPTIONS
from holdfast.cli.output import mark_hidden
from holdfast.cli.parser import parse_partial
from holdfast.cli.runner import discard_stdout
from holdfast.errors import HoldfastError, Template, Trouble, UsageError, from_os
from holdfast.models import Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.command import Command
    from holdfast.cli.output import Output
    from holdfast.errors import Term

_RENAMED_FIELDS = {"made_from": "--from", "tags": "--tag", "pinned": "--pin"}  # parameters whose option has another name
_PHRASES = {"redact": "`--redact`", "view the files": "`holdfast file view /memories`"}

_RUN_AGAIN = "Run it again"
_STORED = ("all, some or none of it may be stored", "Run it again; what is stored already is not stored twice")
_PURGE = (
    "the purge may have started",
    "Run `holdfast doctor` to finish it; if nothing was started, run the purge again",
)
_TOKEN = (
    "a token may have been created but not shown",
    "Check with `holdfast agent list`, and get a new token with `holdfast agent rotate`",
)
_REPEATABLE = ("it may be partly done", "Run it again; it continues where it stopped")
_UNKNOWN = ("it may be done, or partly done", "Check the current state, and run it again if it is not done")
CHANGING_COMMANDS = {  # every command that changes anything: what it may have done when it is interrupted, and the fix
    "store": _STORED, "fact": _STORED, "log": _STORED, "import-history": _STORED, "purge": _PURGE, "agent add": _TOKEN,
    "agent rotate": _TOKEN, "copy": _REPEATABLE, "migrate": _REPEATABLE, "reindex": _REPEATABLE, "embed": _REPEATABLE,
    "retain": _REPEATABLE,
    **dict.fromkeys(
        ("edit", "import", "forget", "restore", "clear", "review", "file create", "file str-replace", "file insert",
         "file delete", "file rename", "scaffold", "install", "uninstall", "render", "agent revoke", "init", "config",
         "project adopt"),
        _UNKNOWN,
    ),
}  # fmt: skip


class CommandInterrupted(KeyboardInterrupt):
    """Ctrl-C during a command, with what is known about its effect; `is_important` if a person should see it."""

    def __init__(self, effect: str = "", fix: str = _RUN_AGAIN) -> None:
        super().__init__(effect)
        self.message = f"interrupted; {effect}" if effect else "interrupted"
        self.fix = fix
        self.is_important = bool(effect)


def interrupted_before_start() -> CommandInterrupted:
    """Return the interrupt of a command that still waited for an answer or for its input."""
    return CommandInterrupted("nothing was changed")


def describe_interrupt(command: str, error: KeyboardInterrupt, answered: bool) -> KeyboardInterrupt:
    """Return an interrupt that says what the command may have done; if it has `answered`, that the answer may be cut short."""
    if isinstance(error, Interrupted | CommandInterrupted):
        return error
    if not answered or CHANGING_COMMANDS.get(command) is _TOKEN:  # an answer that is cut short may lack the token
        return CommandInterrupted(*CHANGING_COMMANDS.get(command, ()))
    effect = "the output may be incomplete"
    if command in CHANGING_COMMANDS:
        return CommandInterrupted(f"it is done, but {effect}", "There is no need to run it again")
    return CommandInterrupted(effect)


def report_interrupt(output: Output, error: KeyboardInterrupt) -> int:
    """Report Ctrl-C and return its exit code.

    With --json the report goes to stdout, or to stderr if an answer was already begun there. A person sees it only if the
    command may have changed something.
    """
    known = error if isinstance(error, Interrupted | CommandInterrupted) else CommandInterrupted()
    report = {"error": "interrupted", "message": known.message, "fix": known.fix, "exit_code": 130}
    try:
        if output.json and not output.json_printed:
            output.print_json({**report, "stored": known.stored} if isinstance(known, Interrupted) else report)
        elif output.json or not isinstance(known, CommandInterrupted) or known.is_important:
            _print_error(output, known.message, known.fix)
    except OSError:
        pass
    _flush_stdout()
    return 130


def report_error(output: Output, error: Exception, argv: list[str]) -> int:
    """Report an error with its fix, with --debug also its traceback, and return its exit code."""
    error = error if isinstance(error, HoldfastError) else _wrap_unexpected(error)
    if "--debug" in argv:
        import traceback

        sys.stderr.write(mark_hidden("".join(traceback.format_exception(error))))
    message, fix = format_error(error, argv)
    try:
        if output.json:
            output.print_json({**error.as_dict(), "message": message, "fix": fix})
            sys.stdout.flush()
        else:
            _flush_stdout()
            _print_error(output, message, fix)
    except OSError:
        discard_stdout()
    return error.exit_code


def format_error(error: HoldfastError, argv: list[str]) -> tuple[str, str]:
    """Return the message and the fix of an error, with parameters as options of the command: `--valid-from` for valid_from."""
    command = _find_command(argv)
    if command is None:
        return error.message, error.fix
    flags = _list_flags(command)

    def format_term(term: Term) -> str:
        if term.kind == "phrase":
            return _PHRASES.get(term.name, "")
        flag = flags.get(term.name, "")
        return f'{flag} "{term.args[0]}"' if flag and term.kind == "argument" else flag if term.kind == "field" else ""

    return error.whole().render(format_term), Template(error.hint).render(format_term)


def _find_command(argv: list[str]) -> Command | None:
    try:
        return parse_partial(argv).command
    except UsageError:
        return None


def _list_flags(command: Command) -> dict[str, str]:
    flags = {option.field: option.name for option in (*GLOBAL_OPTIONS, *command.options)}
    return {**flags, **{name: flag for name, flag in _RENAMED_FIELDS.items() if flag in flags.values()}}


def _wrap_unexpected(error: Exception) -> HoldfastError:
    """Return an unexpected exception as a HoldfastError."""
    if isinstance(error, OSError) and error.errno is not None:
        wrapped = from_os(error)
    else:
        wrapped = Trouble(f"{type(error).__name__}: {error}", "Run it again with --debug and report the traceback")
    wrapped.__cause__ = error
    return wrapped


def _print_error(output: Output, message: str, fix: str) -> None:
    sys.stderr.write(output.style("holdfast:", "red", sys.stderr) + f" {mark_hidden(message)}\n")
    if fix:
        sys.stderr.write("".join([f"  {line}\n" for line in mark_hidden(fix).split("\n")]))
    sys.stderr.flush()


def _flush_stdout() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()
