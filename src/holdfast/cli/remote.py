"""`--url`: the same commands, asked of a gateway; and which are about this machine alone."""

from __future__ import annotations

import os

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.api.memory import Memory
    from holdfast.cli.command import Command
    from holdfast.cli.runner import Invocation
    from holdfast.config import Config

OFFERED = (
    "store", "recall", "get", "list", "edit", "import", "export", "fact", "facts", "graph", "log", "expand", "forget",
    "restore", "purge", "receipts", "search", "read", "file", "brief", "status", "review", "trace", "mcp", "clear", "scaffold",
    "boot", "import-history", "retain", "doctor", "reindex", "embed",
)  # fmt: skip
OF_THE_HOME = ("render", "resident", "project")  # about a memory, but not one that a gateway lets anybody ask for
_TOKEN_BYTES = 4096


def url_of(call: Invocation, settings: Config) -> str | None:
    """The gateway that is meant. One from the settings is for what a gateway offers, and not for what is about this machine."""
    command = call.words.command
    given: str | None = call["url"]
    if given is None and call["token_file"] is not None and not settings.url:
        raise UsageError("--token-file is for a gateway", "Say which one with --url")
    return given or (settings.url if command is None or _is(command, OFFERED) or _is(command, OF_THE_HOME) else None)


def must_be_offered(command: Command, given: bool) -> None:
    """Refuse what cannot be asked over HTTP; `given` on the command line, also what is about this machine alone."""
    if not _is(command, OFFERED) and (given or _is(command, OF_THE_HOME)):
        what = f"`holdfast {command.name}` is about the machine it runs on, and cannot be asked of a gateway"
        fix = "Leave --url out" if given else "Run it where the gateway runs, or unset HOLDFAST_URL (gateway.url)"
        raise UsageError(what, fix)


def say_where(call: Invocation, settings: Config) -> None:
    """What is about this machine's home acts on it though the settings name a gateway: say so."""
    if settings.url:
        call.screen.aside(f"on the home {settings.home} of this machine; HOLDFAST_URL (gateway.url) is not asked")


def memory(call: Invocation, settings: Config, url: str) -> Memory:
    """The memory at that address."""
    from holdfast.api.memory import Memory
    from holdfast.cli.progress import Bar

    if call.words.command is not None:
        must_be_offered(call.words.command, call["url"] is not None)
    return Memory(
        url, token=token(call), config=settings, project=call["project"], session=call._session(), agent=call["agent"],
        client=call["client"], origin=call._origin(), progress=None if call.screen.json else Bar(),
    )  # fmt: skip


def token(call: Invocation) -> str | None:
    """The token in the file that was named: a token itself on a command line, every user of the machine could see."""
    path = call["token_file"]
    if path is None:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            said = file.read(_TOKEN_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it holds no token"
        raise UsageError(f"cannot read a token from {path}: {why}", "Name a file with the token and nothing else") from None
    if not said:
        raise UsageError(f"{path} is empty", "Name a file with the token and nothing else")
    return said


def _is(command: Command, names: tuple[str, ...]) -> bool:
    return command.name.partition(" ")[0] in names
