"""`--url`: open the memory of a gateway, and reject the commands that need this machine's home."""

from __future__ import annotations

import os

from holdfast.config import check_gateway_url
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.api.memory import Memory
    from holdfast.cli.command import Command
    from holdfast.cli.runner import Invocation
    from holdfast.config import Config

_GATEWAY_COMMANDS = (
    "store", "recall", "get", "list", "edit", "import", "export", "fact", "facts", "graph", "log", "expand", "forget",
    "restore", "purge", "receipts", "search", "read", "file", "brief", "status", "review", "trace", "mcp", "clear", "scaffold",
    "boot", "import-history", "retain", "doctor", "reindex", "embed",
    "operator",
)  # fmt: skip
_HOME_COMMANDS = ("render", "resident", "project")  # use a memory, but no gateway offers them
_MAX_TOKEN_BYTES = 4096


def find_url(call: Invocation, settings: Config) -> str | None:
    """Return the gateway's URL: from --url, or from the settings for a command that uses a memory."""
    command = call.arguments.command
    given: str | None = call["url"]
    if given is None and call["token_file"] is not None and not settings.url:
        raise UsageError("--token-file needs a gateway", "Add --url URL")
    uses_memory = command is None or _is_in(command, _GATEWAY_COMMANDS) or _is_in(command, _HOME_COMMANDS)
    url = given or (settings.url if uses_memory else None)
    return check_gateway_url(url) if url else None


def check_available(command: Command, url_given: bool) -> None:
    """Raise UsageError for a command that no gateway offers; if only the settings name a gateway, local commands pass."""
    if not _is_in(command, _GATEWAY_COMMANDS) and (url_given or _is_in(command, _HOME_COMMANDS)):
        message = f"`holdfast {command.name}` works only on this machine's home, not on a gateway"
        fix = "Leave out --url" if url_given else "Run it on the machine of the gateway, or unset HOLDFAST_URL (gateway.url)"
        raise UsageError(message, fix)


def report_local_home(call: Invocation, settings: Config) -> None:
    """Say that the command uses this machine's home although the settings name a gateway."""
    if settings.url:
        call.output.print_message(f"using the home {settings.home}, not the gateway in HOLDFAST_URL (gateway.url)")


def open_memory(call: Invocation, settings: Config, url: str) -> Memory:
    """Open the memory of the gateway at that URL."""
    from holdfast.api.memory import Memory
    from holdfast.cli.progress import ProgressBar

    command = call.arguments.command
    if command is not None:
        check_available(command, url_given=call["url"] is not None)
    is_about_agent = command is not None and _is_in(command, ("operator",))  # --agent names another agent there
    return Memory(
        url, token=read_token(call), config=settings, project=call["project"], session=call.find_session(),
        agent=None if is_about_agent else call["agent"], client=call["client"], origin=call.find_origin(),
        progress=None if call.output.json else ProgressBar(),
    )  # fmt: skip


def read_token(call: Invocation) -> str | None:
    """Read the token from --token-file: on the command line itself, every user of the machine could see it."""
    path = call["token_file"]
    if path is None:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            token = file.read(_MAX_TOKEN_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it contains no token"
        raise UsageError(f"cannot read a token from {path}: {reason}", "Name a file that contains only the token") from None
    if not token:
        raise UsageError(f"{path} is empty", "Name a file that contains only the token")
    return token


def _is_in(command: Command, names: tuple[str, ...]) -> bool:
    return command.name.partition(" ")[0] in names
