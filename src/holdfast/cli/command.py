"""What a command is made of: its words, its options, and the function that does it; what every one takes, and how it may
end. Plain objects and no imports."""

from __future__ import annotations

_OF_A_PROJECT = (  # whose answer depends on the project
    "recall", "list", "facts", "graph", "search", "brief", "status", "get", "expand", "export", "trace", "boot"
)  # fmt: skip


class Option:
    """A word that starts with `--`. With no `value` it is a switch. `choices` are the words it may be given, or the name of
    where they stand in holdfast.models."""

    __slots__ = ("choices", "help", "many", "name", "number", "value")

    def __init__(
        self, name: str, value: str, help: str, *, choices: str | tuple[str, ...] = "", many: bool = False,
        number: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.value = value
        self.help = help
        self.choices = choices
        self.many = many
        self.number = number

    @property
    def field(self) -> str:
        return self.name.lstrip("-").replace("-", "_")


class Arg:
    """A word in its place. `words` takes all that are left, as one text, and `many` as a list; `offers` is what completion
    proposes."""

    __slots__ = ("help", "many", "name", "needed", "offers", "words")

    def __init__(
        self, name: str, help: str, *, needed: bool = True, words: bool = False, many: bool = False, offers: str = ""
    ) -> None:
        self.name = name
        self.help = help
        self.needed = needed
        self.words = words
        self.many = many
        self.offers = offers

    @property
    def field(self) -> str:
        return self.name.lower()

    def __str__(self) -> str:
        shown = f"{self.name}..." if self.words or self.many else self.name
        return shown if self.needed else f"[{shown}]"


class Command:
    """One thing that can be asked for. `raw` commands read their own words."""

    __slots__ = ("args", "example", "name", "options", "raw", "summary", "target")

    def __init__(
        self, name: str, target: str, summary: str, *, args: tuple[Arg, ...] = (), options: tuple[Option, ...] = (),
        example: str = "", raw: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.target = target
        self.summary = summary
        self.args = args
        self.options = options
        self.example = example
        self.raw = raw

    @property
    def reads_project(self) -> bool:
        """Whether it reads the memory of a project and changes nothing."""
        return self.name in _OF_A_PROJECT

    @property
    def usage(self) -> str:
        words = ["holdfast", self.name, *[str(arg) for arg in self.args]]
        return " ".join([*words, "[options]"] if self.options else words)


EVERYWHERE = (
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
