"""`mcp`: serve memory over MCP, on stdin and stdout or over HTTP."""

from __future__ import annotations

import gc
import os
import signal

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.runner import Invocation
    from holdfast.mcp.project_resolution import LaunchOptions

_WITHOUT_TOKEN = "no token: every user of this machine can read and write this home"


def mcp(call: Invocation) -> int:
    """`holdfast mcp`: serve until the client disconnects or the process is stopped."""
    gc.enable()  # a single command runs without
    if call["http"]:
        if call["url"] is not None:
            raise UsageError(
                "--http and --url cannot be combined: a gateway serves MCP over HTTP at /mcp", "Leave out --http or --url"
            )
        return _serve_http(call)
    for name in ("port", "no_token"):
        if call[name] is not None:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} needs --http", f"Add --http, or leave out {option}")
    from holdfast.mcp.early_handshake import StdioConnection

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))  # before the first call there is nothing to finish
    connection = StdioConnection()
    if connection.answer_handshake(_import_server):
        from holdfast.mcp import server, stdio

        stdio.serve(server.build_server(_build_launch_options(call)), connection)
    elif connection.is_loading:
        os._exit(0)  # nothing is open yet, and Python cannot exit cleanly in the middle of an import
    return 0


def _import_server() -> None:
    """Import the MCP SDK and the server, which takes longer than the handshake."""
    from holdfast.mcp import server, stdio  # noqa: F401


def _serve_http(call: Invocation) -> int:
    from holdfast import config
    from holdfast.mcp import http, token

    port = call["port"] if call["port"] is not None else http.PORT
    if not 0 <= port <= 65535:
        raise UsageError(f"--port must be 0 to 65535, not {port}", "Give a port from 1 to 65535, or 0 for any free port")
    home = config.find_home(call["home"])
    token_text = None if call["no_token"] else token.load_or_create(home)
    access = f"token in {token.path(home)}" if token_text else _WITHOUT_TOKEN

    def report_ready(url: str) -> None:
        call.output.print_message(f"listening on {url} ({access}); stop with Ctrl-C")

    http.serve(_build_launch_options(call), port, token_text, report_ready)
    return 0


def _build_launch_options(call: Invocation) -> LaunchOptions:
    from holdfast.mcp.project_resolution import LaunchOptions

    options = LaunchOptions(
        home=call["home"], project=call["project"], session=call["session"], agent=call["agent"], client=call["client"],
        settings=tuple(call.parse_store_options().items()),
    )  # fmt: skip
    if call["url"] is None and call["token_file"] is None:
        return options
    from holdfast.cli import remote

    return options.replace(url=call["url"], token=remote.read_token(call))
