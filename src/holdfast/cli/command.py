"""The classes that describe a command, the options that every command takes, and the exit codes.

Plain objects and no imports: every command loads this module.
"""

from __future__ import annotations

_PROJECT_READERS = (
    "recall", "list", "facts", "graph", "search", "brief", "status", "get", "expand", "export", "trace", "boot"
)  # fmt: skip


class Option:
    """An option such as `--scope SCOPE`; with an empty `value` it is a switch.

    `choices` are the values it takes, or the name of a tuple of them in holdfast.models. A `repeatable` option collects a list.
    """

    __slots__ = ("choices", "help", "is_integer", "name", "repeatable", "value")

    def __init__(
        self, name: str, value: str, help: str, *, choices: str | tuple[str, ...] = "", repeatable: bool = False,
        is_integer: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.value = value
        self.help = help
        self.choices = choices
        self.repeatable = repeatable
        self.is_integer = is_integer

    @property
    def field(self) -> str:
        """The name under which the parser keeps the value: `valid_from` for `--valid-from`."""
        return self.name.lstrip("-").replace("-", "_")


class Arg:
    """A positional argument. `join_rest` takes all remaining words as one text, `repeatable` takes them as a list;
    `completion` names what shell completion offers for it."""

    __slots__ = ("completion", "help", "join_rest", "name", "repeatable", "required")

    def __init__(
        self, name: str, help: str, *, required: bool = True, join_rest: bool = False, repeatable: bool = False,
        completion: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.help = help
        self.required = required
        self.join_rest = join_rest
        self.repeatable = repeatable
        self.completion = completion

    @property
    def field(self) -> str:
        """The name under which the parser keeps the value."""
        return self.name.lower()

    def __str__(self) -> str:
        usage = f"{self.name}..." if self.join_rest or self.repeatable else self.name
        return usage if self.required else f"[{usage}]"


class Command:
    """A command: `handler` is the `module:function` of holdfast.cli.commands that runs it.

    The parser hands a `raw` command the words after its name unread.
    """

    __slots__ = ("args", "example", "handler", "name", "options", "raw", "summary")

    def __init__(
        self, name: str, handler: str, summary: str, *, args: tuple[Arg, ...] = (), options: tuple[Option, ...] = (),
        example: str = "", raw: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.handler = handler
        self.summary = summary
        self.args = args
        self.options = options
        self.example = example
        self.raw = raw

    @property
    def reads_project(self) -> bool:
        """Whether it reads the memory of a project and changes nothing."""
        return self.name in _PROJECT_READERS

    @property
    def usage(self) -> str:
        """The usage line, such as `holdfast get KEY [options]`."""
        words = ["holdfast", self.name, *[str(arg) for arg in self.args]]
        return " ".join([*words, "[options]"] if self.options else words)


GLOBAL_OPTIONS = (
    Option("--home", "DIR", "the folder memory lives in (HOLDFAST_HOME; ~/.holdfast)"),
    Option("--project", "ID", "the project, instead of finding it out (HOLDFAST_PROJECT)"),
    Option("--session", "ID", "the session (HOLDFAST_SESSION)"),
    Option("--agent", "NAME", "the agent (HOLDFAST_AGENT)"),
    Option("--client", "NAME", "the program that asks, kept with what is written (HOLDFAST_CLIENT)"),
    Option("--url", "URL", "a gateway to ask, not the home; token: HOLDFAST_TOKEN (HOLDFAST_URL)"),
    Option("--token-file", "FILE", "with --url: a file with the token, and nothing else in it"),
    Option("--store", "URL", "a postgresql:// address where memory is kept, not the home (HOLDFAST_STORE)"),
    Option("--read-store", "URL", "with --store: a replica of it to search in (HOLDFAST_STORE_READ)"),
    Option("--tenant", "NAME", "with --store: whose memory there (HOLDFAST_TENANT; default)"),
    Option("--json", "", "answer with one JSON document on stdout, also for errors"),
    Option("--no-color", "", "no colour (as do NO_COLOR and TERM=dumb)"),
    Option("--debug", "", "show the traceback of an error"),
    Option("--help", "", "show help, for everything or for one command"),
    Option("--version", "", "show the version"),
)

EXIT_CODES = (
    (0, "done"),
    (1, "not there, or a problem was found"),
    (2, "wrong usage"),
    (3, "refused; nothing was written"),
    (4, "busy or conflict: somebody else was there first"),
    (5, "damaged, or disk trouble"),
    (130, "interrupted"),
)
