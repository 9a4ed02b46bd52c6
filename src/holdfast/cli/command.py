"""The classes that describe a command, the options that every command takes, and the exit codes.

Plain objects and no imports: every command loads this module.
"""

from __future__ import annotations

_PROJECT_READERS = (
    "recall", "list", "facts", "graph", "search", "brief", "status", "get", "expand", "export", "trace", "boot",
    "operator list",
)  # fmt: skip


class Option:
    """An option such as `--scope SCOPE`; with an empty `value` it is a switch.

    `choices` are the possible values, or the name of a tuple of them in holdfast.models. A `repeatable` option collects a list.
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
        """Name of the parsed value: `valid_from` for `--valid-from`."""
        return self.name.lstrip("-").replace("-", "_")


class Arg:
    """A positional argument. `join_rest` takes all remaining words as one text, `repeatable` takes them as a list.

    `completion` names the kind of values that shell completion offers.
    """

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
        """Name of the parsed value."""
        return self.name.lower()

    def __str__(self) -> str:
        usage = f"{self.name}..." if self.join_rest or self.repeatable else self.name
        return usage if self.required else f"[{usage}]"


class Command:
    """A command: `handler` is the `module:function` of holdfast.cli.commands that runs it.

    The parser does not parse the words after the name of a `raw` command.
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
        """Return whether the command reads the memory of a project and changes nothing."""
        return self.name in _PROJECT_READERS

    @property
    def usage(self) -> str:
        """Return the usage line, such as `holdfast get KEY [options]`."""
        words = ["holdfast", self.name, *[str(arg) for arg in self.args]]
        return " ".join([*words, "[options]"] if self.options else words)


GLOBAL_OPTIONS = (
    Option("--home", "DIR", "Folder of the home (HOLDFAST_HOME) [default: ~/.holdfast]"),
    Option("--project", "ID", "ID of the project (HOLDFAST_PROJECT) [default: project of this folder]"),
    Option("--session", "ID", "ID of the session (HOLDFAST_SESSION)"),
    Option("--agent", "NAME", "Name of the agent (HOLDFAST_AGENT)"),
    Option("--client", "NAME", "Name of the calling program, recorded with each write (HOLDFAST_CLIENT)"),
    Option("--url", "URL", "URL of a gateway to use (HOLDFAST_URL); set its token in HOLDFAST_TOKEN"),
    Option("--token-file", "FILE", "With --url: file that contains only the token"),
    Option("--store", "URL", "postgresql:// URL of a store to use instead of the home (HOLDFAST_STORE)"),
    Option("--read-store", "URL", "With --store: URL of a replica for searches (HOLDFAST_STORE_READ)"),
    Option("--tenant", "NAME", "With --store: tenant in the store (HOLDFAST_TENANT) [default: default]"),
    Option("--json", "", "Print one JSON document to stdout, also for errors"),
    Option("--no-color", "", "Print without colour (also NO_COLOR, TERM=dumb)"),
    Option("--debug", "", "Show the traceback of an error"),
    Option("--help", "", "Show help for all commands or for one"),
    Option("--version", "", "Show the version"),
)

EXIT_CODES = (
    (0, "Success"),
    (1, "Not found, or a problem was reported"),
    (2, "Wrong usage"),
    (3, "Rejected; nothing was written"),
    (4, "Conflict or busy; try again"),
    (5, "Damaged file, disk error or unreachable service"),
    (130, "Interrupted"),
)
