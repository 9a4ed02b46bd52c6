"""Run one command: parse its arguments, call its handler, print the answer and return the exit code."""

from __future__ import annotations

import os
import sys

from holdfast.cli.output import Output, mark_hidden
from holdfast.cli.parser import parse_args, wants_json
from holdfast.errors import TooLarge, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO, TypeVar

    from holdfast.api.memory import Memory
    from holdfast.base.record import Record
    from holdfast.cli.parser import ParsedArguments
    from holdfast.config import Config

    T = TypeVar("T")

_STORE_OPTIONS = {"store": "store.url", "read_store": "store.read_url", "tenant": "store.tenant"}  # the setting of each


class Invocation:
    """One run of a command: its arguments, the memory it uses and its output."""

    def __init__(self, arguments: ParsedArguments, output: Output) -> None:
        self.arguments = arguments
        self.output = output
        self.is_remote = False  # whether the memory is on a gateway
        self._memory: Memory | None = None
        self._notice = ""  # printed beside the answer

    def __getitem__(self, name: str) -> Any:
        """Return the value of an option or argument, or None if it was not given."""
        return self.arguments.values.get(name)

    def pick(self, *names: str) -> dict[str, Any]:
        """Return those options that were given as keyword arguments, so that the others keep the verb's default."""
        return {name: self[name] for name in names if self[name] is not None}

    @property
    def memory(self) -> Memory:
        """The memory of the caller, opened at the first use."""
        if self._memory is None:
            settings = self.load_settings()
            if settings.url or self["url"] or self["token_file"]:
                self._memory = self._open_remote(settings)
            if self._memory is not None:
                return self._memory
            from holdfast.api.memory import Memory
            from holdfast.cli.progress import ProgressBar

            self._memory = Memory(
                config=settings, project=self["project"], session=self.find_session(), agent=self["agent"],
                client=self["client"], origin=self.find_origin(), progress=None if self.output.json else ProgressBar(),
            )  # fmt: skip
            self.output.memory_disabled = not self._memory.config.enabled
            self._warn_unknown_project(self._memory)
        return self._memory

    def _open_remote(self, settings: Config) -> Memory | None:
        """Open the memory of the gateway, or return None if the command is about this machine."""
        from holdfast.cli import remote

        url = remote.find_url(self, settings)
        self.is_remote = url is not None
        return remote.open_memory(self, settings, url) if url else None

    def _warn_unknown_project(self, memory: Memory) -> None:
        """Warn on stderr if a read names a project that this home does not have: a typo looks like an empty memory."""
        command, config = self.arguments.command, memory.config
        if command and command.reads_project and config.enabled and (self["project"] or config.project):
            from holdfast.api.memory import context_of
            from holdfast.verbs import projects

            self._notice = projects.explain_unknown_project(context_of(memory))
            if self._notice:
                sys.stderr.write(mark_hidden(self._notice) + "\n")

    def load_settings(self) -> Config:
        """Load the settings, with the store options of the command line over them."""
        from holdfast import config

        settings, given = config.load(self["home"]), self.parse_store_options()
        if self["store"] is not None:
            if self["url"] is not None:
                raise UsageError("--store and --url cannot be combined", "Give one of them")
            given["url"] = None  # --store wins over a gateway in the settings
        return settings.replace(**given) if given else settings

    def parse_store_options(self) -> dict[str, Any]:
        """Return the store options of the command line as fields of the settings."""
        given = self.pick(*_STORE_OPTIONS)
        if not given:
            return {}
        from holdfast import config

        settings = {name: config.find_setting(_STORE_OPTIONS[name]) for name in given}
        return {
            setting.field: config.parse_value(setting, given[name], f"--{name.replace('_', '-')}")
            for name, setting in settings.items()
        }

    def find_origin(self) -> str:
        """Return `user`, or `agent` if a coding agent runs this command; an agent cannot write as the user."""
        from holdfast.config import runs_in_agent

        if not runs_in_agent():
            return "user"
        if self["origin"] == "user":
            from holdfast.errors import Refused

            raise Refused(
                "agents cannot use --origin user", "Leave out --origin, or run this yourself in a terminal outside the agent"
            )
        return "agent"

    def find_session(self) -> str | None:
        """Return the session of the caller; None if --session names a transcript whose name is not valid for a caller."""
        from holdfast.base.ids import is_name

        session: str | None = self["session"]
        command = self.arguments.command
        names_transcript = command and any(option.name == "--session" for option in command.options)
        return None if session and names_transcript and not is_name(session) else session

    def read_text(self, name: str, max_bytes: int, what: str, whole: bool = False) -> str | bytes:
        """Return an argument, or stdin if it is `-`; raise TooLarge for more than `max_bytes` bytes.

        Unless `whole`, remove a byte order mark and the last line's end: the pipe adds them.
        """
        given: str = self[name]
        if given != "-" or not self.memory.config.enabled:  # if disabled, reject without waiting for stdin
            return given
        text = _read_stdin(max_bytes + 6)  # enough to see that it is too much
        if not whole:
            text = text.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r\n" if text.endswith(b"\r\n") else b"\n")
        if len(text) > max_bytes:
            raise TooLarge(f"stdin is too large: {what} may have {max_bytes:,} bytes", "Split it, or store a summary")
        return text

    def answer(self, result: T, print_result: Callable[[Output, T], None], code: int = 0) -> int:
        """Print the result, as JSON or with `print_result`, and return the exit code."""
        try:
            if self.output.json:
                data = to_json(result)
                self.output.print_json({**data, "notice": self._notice} if self._notice and isinstance(data, dict) else data)
                if self.output.memory_disabled and not _tells_disabled(result):
                    sys.stderr.write("memory is disabled\n")
            else:
                print_result(self.output, result)
        except OSError as error:
            raise _answer_not_written(error) from error
        return code

    def close(self) -> None:
        """Close the memory if it was opened."""
        if self._memory is not None:
            self._memory.close()


def to_json(value: Any) -> Any:
    """Convert records, and lists and dicts of them, to what `json.dumps` takes."""
    if hasattr(value, "as_dict"):
        record: Record = value
        return record.as_dict()
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    return value


def _tells_disabled(result: Any) -> bool:
    """Return whether a field of the result says that memory is disabled; a list has no such field."""
    return "disabled" in result if isinstance(result, dict) else hasattr(result, "disabled") or hasattr(result, "enabled")


def run(argv: list[str]) -> int:
    """Run the command and return its exit code; report every error."""
    _open_closed_streams()
    output = Output(wants_json(argv), "--no-color" in argv)
    try:
        code = _run(argv, output)
        _flush_answer()
    except KeyboardInterrupt as error:
        from holdfast.cli.error_report import report_interrupt

        return report_interrupt(output, error)
    except BrokenPipeError:
        discard_stdout()
        return 0
    except Exception as error:
        from holdfast.cli.error_report import report_error

        return report_error(output, error, argv)
    return code


def _run(argv: list[str], output: Output) -> int:
    arguments = parse_args(argv)
    command = arguments.command
    if arguments.has("version"):
        return _print_version(output)
    if arguments.has("help") or command is None:
        from holdfast.cli.commands.help import print_help

        return print_help(arguments, output)
    if arguments.values.get("url") is not None:
        from holdfast.cli.remote import check_available

        check_available(command, url_given=True)
    call = Invocation(arguments, output)
    try:
        try:
            code = _load_handler(command.handler)(call)
        finally:
            call.close()
        _flush_answer()
    except KeyboardInterrupt as error:
        from holdfast.cli.error_report import describe_interrupt

        raise describe_interrupt(command.name, error, output.json_printed) from None
    return code


def _load_handler(handler: str) -> Callable[[Invocation], int]:
    """Import the function that runs a command: `module:function` in holdfast.cli.commands."""
    module, _, name = handler.partition(":")
    function: Callable[[Invocation], int] = getattr(__import__(f"holdfast.cli.commands.{module}", fromlist=[name]), name)
    return function


def _print_version(output: Output) -> int:
    from holdfast import __version__

    if output.json:
        output.print_json({"version": __version__})
    else:
        output.print_line(f"holdfast {__version__}")
    return 0


def _open_closed_streams() -> None:
    """Open /dev/null for stdout and stderr if the caller closed them: a command still runs if its output is not read."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def discard_stdout() -> None:
    """Send stdout to /dev/null after its reader closed it, as `| head` does: neither we nor Python's shutdown complain."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
    except (OSError, ValueError):
        pass


def _flush_answer() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _answer_not_written(error) from error


def _answer_not_written(error: OSError) -> Exception:
    """Return the error for an answer that could not be written, although the command is done."""
    from holdfast.errors import Trouble

    if isinstance(error, BrokenPipeError):
        return error
    message = f"the command succeeded, but its output could not be written: {error.strerror}"
    return Trouble(message, "Redirect the output; there is no need to run it again")


def needs_confirmation(call: Invocation) -> bool:
    """Return whether to ask first: not with --yes, nor if memory is disabled, which the verb itself rejects."""
    return not call["yes"] and call.memory.config.enabled


def confirm(call: Invocation, question: str) -> None:
    """Ask before something that cannot be undone; raise Refused for any answer but yes, or if there is no terminal."""
    from holdfast.errors import Refused

    if call.output.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"confirmation needed: {question}", "Add --yes to confirm")
    if not ask_yes_no(question):
        raise Refused("not confirmed; nothing was changed", "Answer y, or add --yes")


def ask_yes_no(question: str) -> bool:
    """Ask a person at a terminal and return whether the answer is yes."""
    sys.stderr.write(f"{mark_hidden(question)} [y/N] ")
    sys.stderr.flush()
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        from holdfast.cli.error_report import interrupted_before_start

        raise interrupted_before_start() from None
    return line.strip().lower() in ("y", "yes")


def _read_stdin(max_bytes: int) -> bytes:
    try:
        return open_stdin().read(max_bytes)
    except KeyboardInterrupt:
        from holdfast.cli.error_report import interrupted_before_start

        raise interrupted_before_start() from None


def open_stdin() -> BinaryIO:
    """Return stdin as bytes; tell a person at a terminal how to end the input."""
    if sys.stdin is None:
        raise UsageError("stdin is closed", "Give the text as an argument, or pipe it in")
    if sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write("Type or paste the text. Press Ctrl-D on an empty line to end it, Ctrl-C to cancel.\n")
        sys.stderr.flush()
    return sys.stdin.buffer


def check_exclusive(call: Invocation, *names: str) -> None:
    """Raise UsageError if more than one of these options was given."""
    given = [f"--{name.replace('_', '-')}" for name in names if call[name] is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} cannot be combined", "Give one of them")
