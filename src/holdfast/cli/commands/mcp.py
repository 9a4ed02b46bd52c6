"""mcp."""

from __future__ import annotations

import gc
import os
import signal

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.runner import Invocation
    from holdfast.mcp.project_resolution import LaunchOptions

_TO_ALL = "without a token: every user of this machine may read and write this home"


def mcp(call: Invocation) -> int:
    """Until the client hangs up, or somebody stops it."""
    gc.enable()  # a process that stays needs what one command does without
    if call["http"]:
        if call["url"] is not None:
            raise UsageError("a gateway serves MCP over HTTP itself, at /mcp", "Leave --http out, or --url")
        return _http(call)
    for name in ("port", "no_token"):
        if call[name] is not None:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} is for --http", f"Say --http too, or leave {option} out")
    from holdfast.mcp.early_handshake import StdioConnection

    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: os._exit(0))  # until calls are answered there is nothing to finish
    connection = StdioConnection()
    if connection.answer_handshake(_load):
        from holdfast.mcp import server, stdio

        stdio.serve(server.build_server(_started(call)), connection)
    elif connection.is_loading:
        os._exit(0)  # nothing is open yet, and Python cannot end well in the middle of an import
    return 0


def _load() -> None:
    """The SDK and all that answers calls."""
    from holdfast.mcp import server, stdio  # noqa: F401


def _http(call: Invocation) -> int:
    from holdfast import config
    from holdfast.mcp import http, token

    port = call["port"] if call["port"] is not None else http.PORT
    if not 0 <= port <= 65535:
        raise UsageError(f"there is no port {port}", "Give one of 1 to 65535, or 0 for any that is free")
    home = config.find_home(call["home"])
    secret = None if call["no_token"] else token.load_or_create(home)
    let_in = f"to whoever sends the token in {token.path(home)}" if secret else _TO_ALL
    say = call.screen.aside
    http.serve(_started(call), port, secret, lambda where: say(f"answering at {where} ({let_in}); stop with Ctrl-C"))
    return 0


def _started(call: Invocation) -> LaunchOptions:
    from holdfast.mcp.project_resolution import LaunchOptions

    started = LaunchOptions(call["home"], call["project"], call["session"], call["agent"], call["client"])
    started = started.replace(settings=tuple(call.store_settings().items()))
    if call["url"] is None and call["token_file"] is None:
        return started
    from holdfast.cli import remote

    return started.replace(url=call["url"], token=remote.token(call))
