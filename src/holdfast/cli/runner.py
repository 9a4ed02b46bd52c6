"""One call of the command line, from the words typed to the exit code."""

from __future__ import annotations

import os
import sys

from holdfast.cli.output import Output, visible
from holdfast.cli.parser import json_wanted, read
from holdfast.errors import HoldfastError, TooLarge, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO, TypeVar

    from holdfast.api.memory import Memory
    from holdfast.base.record import Record
    from holdfast.cli.parser import ParsedArguments
    from holdfast.config import Config

    T = TypeVar("T")

_OF_STORE = {"store": "store.url", "read_store": "store.read_url", "tenant": "store.tenant"}


class Invocation:
    """What was asked, the memory it is asked of, and where the answer goes."""

    def __init__(self, words: ParsedArguments, screen: Output) -> None:
        self.words = words
        self.screen = screen
        self._memory: Memory | None = None
        self.is_remote = False  # whether it is a gateway's
        self._notice = ""  # what is said beside the answer

    def __getitem__(self, name: str) -> Any:
        """What was given for that option or argument; None if nothing was."""
        return self.words.values.get(name)

    @property
    def memory(self) -> Memory:
        """The memory of whoever types; opened once."""
        if self._memory is None:
            settings = self.settings()
            if settings.url or self["url"] or self["token_file"]:
                self._memory = self._at_gateway(settings)
            if self._memory is not None:
                return self._memory
            from holdfast.api.memory import Memory
            from holdfast.cli.progress import Bar

            self._memory = Memory(
                config=settings, project=self["project"], session=self._session(), agent=self["agent"],
                client=self["client"], origin=self._origin(), progress=None if self.screen.json else Bar(),
            )  # fmt: skip
            self.screen.disabled = not self._memory.config.enabled
            self._say_if_unknown(self._memory)
        return self._memory

    def _say_if_unknown(self, memory: Memory) -> None:
        """Say on stderr that a read names a project which this home does not have: a typing error looks like no notes."""
        command, config = self.words.command, memory.config
        if command and command.reads_project and config.enabled and (self["project"] or config.project):
            from holdfast.api.memory import context_of
            from holdfast.verbs import projects

            self._notice = projects.explain_unknown_project(context_of(memory))
            if self._notice:
                sys.stderr.write(visible(self._notice) + "\n")

    def settings(self) -> Config:
        """The settings, and over them what the command line says of the store."""
        from holdfast import config

        settings, given = config.load(self["home"]), self.store_settings()
        if self["store"] is not None:
            if self["url"] is not None:
                raise UsageError("--store and --url contradict each other", "Give one of them")
            given["url"] = None  # one that the settings name is not meant
        return settings.replace(**given) if given else settings

    def store_settings(self) -> dict[str, Any]:
        """What the command line says of the store, as settings."""
        given = self.given(*_OF_STORE)
        if not given:
            return {}
        from holdfast import config

        settings = {name: config.find_setting(_OF_STORE[name]) for name in given}
        return {
            one.field: config.parse_value(one, given[name], f"--{name.replace('_', '-')}") for name, one in settings.items()
        }

    def _at_gateway(self, settings: Config) -> Memory | None:
        """The memory at the address that is meant; None where that is this machine after all."""
        from holdfast.cli import remote

        url = remote.url_of(self, settings)
        self.is_remote = url is not None
        return remote.memory(self, settings, url) if url else None

    def _origin(self) -> str:
        """Who types: a person, unless a coding agent says that it runs this. An agent cannot speak as a person."""
        from holdfast.config import runs_in_agent

        if not runs_in_agent():
            return "user"
        if self["origin"] == "user":
            from holdfast.errors import Refused

            raise Refused("an agent cannot speak as the user", "Leave --origin away, or run this in a terminal of your own")
        return "agent"

    def _session(self) -> str | None:
        """The caller's session. Where the command means a transcript's, that may have a name which no caller's could have."""
        from holdfast.base.ids import is_name

        named: str | None = self["session"]
        of_transcript = self.words.command and any(option.name == "--session" for option in self.words.command.options)
        return None if named and of_transcript and not is_name(named) else named

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the options that were given, as keyword arguments: what was not keeps the verb's own default."""
        return {name: self[name] for name in names if self[name] is not None}

    def text(self, name: str, most: int, what: str, whole: bool = False) -> str | bytes:
        """An argument, or stdin where it says `-`. A byte order mark and the end of the last line are the pipe's and not the
        text's, unless it is wanted whole."""
        given: str = self[name]
        if given != "-" or not self.memory.config.enabled:  # switched off, it is refused without waiting for a pipe
            return given
        text = _read(most + 6)  # no more than tells that it is too much
        if not whole:
            text = text.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r\n" if text.endswith(b"\r\n") else b"\n")
        if len(text) > most:
            raise TooLarge(f"{what} may have {most:,} bytes, and stdin has more", "Split it, or keep a summary of it")
        return text

    def answer(self, what: T, tell: Callable[[Output, T], None], code: int = 0) -> int:
        """Give the answer, as JSON or as `tell` tells it to people."""
        try:
            if self.screen.json:
                said = plain(what)
                self.screen.document({**said, "notice": self._notice} if self._notice and isinstance(said, dict) else said)
                if self.screen.disabled and not _says_so(what):
                    sys.stderr.write("memory is disabled\n")
            else:
                tell(self.screen, what)
        except OSError as error:
            raise _unwritten(error) from error
        return code

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()


def _says_so(what: Any) -> bool:
    """Whether an answer has a field that tells that memory is switched off; a bare list has none."""
    return "disabled" in what if isinstance(what, dict) else hasattr(what, "disabled") or hasattr(what, "enabled")


def plain(what: Any) -> Any:
    """Records, and lists of them, as JSON can hold them."""
    if hasattr(what, "as_dict"):
        record: Record = what
        return record.as_dict()
    if isinstance(what, list | tuple):
        return [plain(one) for one in what]
    if isinstance(what, dict):
        return {name: plain(one) for name, one in what.items()}
    return what


def run(typed: list[str]) -> int:
    """Read the words, do it, answer, and turn whatever went wrong into a message and an exit code."""
    _open_streams()
    screen = Output(json_wanted(typed), "--no-color" in typed)
    try:
        code = _run(typed, screen)
        _hand_over()
    except HoldfastError as error:
        code = _failed(screen, error, typed)
    except KeyboardInterrupt as error:
        code = _interrupted(screen, error)
    except BrokenPipeError:
        code = _unheard()
    except Exception as error:
        code = _failed(screen, _unexpected(error), typed)
    return code


def _hand_over() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> Exception:
    """An answer that finds no place: what was asked for is done all the same."""
    from holdfast.errors import Trouble

    if isinstance(error, BrokenPipeError):
        return error
    what = f"it is done, but the answer could not be written: {error.strerror}"
    return Trouble(what, "Let the output go elsewhere; nothing need be done again")


def _open_streams() -> None:
    """A caller may have closed them; then nobody listens, which is no reason to fail."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _run(typed: list[str], screen: Output) -> int:
    words = read(typed)
    if words.wants("version"):
        return _version(screen)
    if words.wants("help") or words.command is None:
        from holdfast.cli.commands.help import show

        return show(words, screen)
    if words.values.get("url") is not None:
        from holdfast.cli.remote import must_be_offered

        must_be_offered(words.command, given=True)
    call = Invocation(words, screen)
    try:
        try:
            code = _function(words.command.target)(call)
        finally:
            call.close()
        _hand_over()
    except KeyboardInterrupt as error:
        from holdfast.cli.interrupts import stopped

        raise stopped(words.command.name, error, screen.answered) from None
    return code


def _function(target: str) -> Callable[[Invocation], int]:
    """The function that does it, and only now its module."""
    module, _, name = target.partition(":")
    function: Callable[[Invocation], int] = getattr(__import__(f"holdfast.cli.commands.{module}", fromlist=[name]), name)
    return function


def _version(screen: Output) -> int:
    from holdfast import __version__

    if screen.json:
        screen.document({"version": __version__})
    else:
        screen.say(f"holdfast {__version__}")
    return 0


def _failed(screen: Output, error: HoldfastError, typed: list[str]) -> int:
    if "--debug" in typed:
        import traceback

        sys.stderr.write(visible("".join(traceback.format_exception(error))))
    from holdfast.cli.flags import as_typed

    message, fix = as_typed(error, typed)
    try:
        if screen.json:
            screen.document({**error.as_dict(), "message": message, "fix": fix})
            sys.stdout.flush()
        else:
            _flush_quietly()
            _complain(screen, message, fix)
    except OSError:
        _unheard()
    return error.exit_code


def _complain(screen: Output, message: str, fix: str) -> None:
    sys.stderr.write(screen.paint("holdfast:", "red", sys.stderr) + f" {visible(message)}\n")
    if fix:
        sys.stderr.write("".join([f"  {line}\n" for line in visible(fix).split("\n")]))
    sys.stderr.flush()


def _interrupted(screen: Output, error: KeyboardInterrupt) -> int:
    """Ctrl-C. A program that reads JSON is told on stdout; where its answer is on the way already, which may be stuck half-way,
    on stderr. A person is told where there is more to know than that."""
    from holdfast.cli.interrupts import Stopped
    from holdfast.models import Interrupted

    known = error if isinstance(error, Interrupted | Stopped) else Stopped()
    told = {"error": "interrupted", "message": known.message, "fix": known.fix, "exit_code": 130}
    try:
        if screen.json and not screen.answered:
            screen.document({**told, "stored": known.stored} if isinstance(known, Interrupted) else told)
        elif screen.json or not isinstance(known, Stopped) or known.changes:
            _complain(screen, known.message, known.fix)
    except OSError:
        pass
    _flush_quietly()
    return 130


def _unexpected(error: Exception) -> HoldfastError:
    """Something nobody foresaw, as one of ours; `--debug` shows the rest."""
    from holdfast.errors import Trouble, from_os

    if isinstance(error, OSError) and error.errno is not None:
        known = from_os(error)
        known.__cause__ = error
        return known
    trouble = Trouble(f"{type(error).__name__}: {error}", "Run it again with --debug to see where")
    trouble.__cause__ = error
    return trouble


def _flush_quietly() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _unheard()


def _unheard() -> int:
    """Whoever read our output has stopped, as `| head` does: no complaint, now or when Python ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass
    return 0


def must_ask(call: Invocation) -> bool:
    """Whether a person must be asked first: not after `--yes`; and switched off, the verb refuses by itself."""
    return not call["yes"] and call.memory.config.enabled


def confirm(call: Invocation, question: str) -> None:
    """Ask before what cannot be undone; where nobody can be asked, `--yes` must have been given."""
    from holdfast.errors import Refused

    if call.screen.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"not without being sure: {question}", "Say --yes")
    if not agreed(question):
        raise Refused("nothing was done", "Answer y, or say --yes")


def agreed(question: str) -> bool:
    """Ask a person at a terminal; whether they said yes."""
    sys.stderr.write(f"{visible(question)} [y/N] ")
    sys.stderr.flush()
    return _answered().strip().lower() in ("y", "yes")


def _answered() -> str:
    try:
        return sys.stdin.readline()
    except KeyboardInterrupt:
        from holdfast.cli.interrupts import nothing_done

        raise nothing_done() from None


def _read(most: int) -> bytes:
    """What is piped in, before anything is done with it."""
    try:
        return stdin().read(most)
    except KeyboardInterrupt:
        from holdfast.cli.interrupts import nothing_done

        raise nothing_done() from None


def stdin() -> BinaryIO:
    """What is piped in; a person at a terminal is told how to end it."""
    if sys.stdin is None:
        raise UsageError("there is no stdin to read from", "Give the text itself, or pipe it in")
    if sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write("Type or paste the text. Press Ctrl-D on an empty line to end it, Ctrl-C to cancel.\n")
        sys.stderr.flush()
    return sys.stdin.buffer


def only_one(call: Invocation, *names: str) -> None:
    """Refuse options that contradict each other."""
    given = [f"--{name.replace('_', '-')}" for name in names if call[name] is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other", "Give one of them")
